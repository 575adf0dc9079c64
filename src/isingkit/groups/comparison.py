"""GroupComparison: do the networks of two or more groups differ, where, and by how much."""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_array

from isingkit._kernels.threads import blas_threads_for
from isingkit.arrays import BoolArray, FloatArray
from isingkit.drawing import Look, draw_network
from isingkit.estimators.auto import AutoIsing
from isingkit.estimators.q_values import benjamini_hochberg
from isingkit.exceptions import IsingkitWarning, SettingError, require_choice, require_number
from isingkit.groups.deviations import deviations, pooled_fit
from isingkit.groups.grouped_rows import GroupedRows, grouped_rows
from isingkit.groups.likelihood_ratio import LikelihoodRatios
from isingkit.groups.nct import network_comparison_test
from isingkit.groups.networks import group_networks
from isingkit.groups.relabelling import PairTests, tests_of_pairs
from isingkit.groups.summary import summary
from isingkit.groups.tables import (
    centralities_of,
    edges_by_nct,
    edges_of,
    no_centralities,
    overall_by_nct,
    overall_of,
    signs_of,
)
from isingkit.model import IsingModel
from isingkit.network_layout import positions
from isingkit.notebook import Summary
from isingkit.result_table import ResultTable
from isingkit.spins import Names, Table
from isingkit.worlds.graphs import Seed, generator

LEVEL = 0.05
_MOST_ROUNDS = 10  # of tests given pairs that differ


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupComparison(Summary):
    """What `compare_groups` found. Prints as a summary; `plot` draws it.

    Tables are structured arrays. Of two groups a difference is the second less the first, of more
    the largest less the smallest.
    """

    method: str  # "score" or "nct"
    fields: str  # "free" or "equal"
    control: str  # "fwer" or "fdr"
    n_permutations: int
    labels: Names  # of the groups, in order
    sizes: tuple[int, ...]  # rows of each
    names: Names  # of the columns
    p_value: float  # that no pair differs
    # global strength and density: measure, value_<label> and error_<label> of each group,
    # difference, std_error, low, high, p_value
    overall: ResultTable
    # pairs coupled in all rows together, and pairs that differ, surest difference first: source,
    # target, coupling_<label> of each group, difference, std_error, low, high, z, p_value,
    # q_value
    edges: ResultTable
    # of each column its strength and its expected influence: name, measure, value_<label> of each
    # group, difference, std_error, low, high, z, p_value, q_value
    centralities: ResultTable
    models: dict[str, IsingModel]  # the network of each group
    n_pairs: int  # that were tested
    n_untestable: int  # pairs of which some group tells nothing

    @property
    def differing(self) -> ResultTable:
        """The rows of `edges` that differ: with family-wise control, with a probability of 0.95
        none of them falsely; with "fdr", some 5 percent of them.
        """
        column = "p_value" if self.control == "fwer" else "q_value"
        return self.edges[self.edges[column] <= LEVEL]  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return "\n".join(summary(self))

    def plot(self, axes: Any = None) -> Any:
        """Draw the network of each group, in one layout and on one scale, and, of two groups, what
        differs between them; returns the Axes.

        Parameters
        ----------
        axes
            Axes to draw into, one for each network; by default new ones.
        """
        from matplotlib import pyplot

        panels = network_panels(self)
        places = positions(shared_couplings(self))
        is_new = axes is None
        if is_new:
            size = (5.5 * len(panels), 4.5)
            axes = pyplot.subplots(1, len(panels), figsize=size, layout="constrained")[1]
        strongest = max(float(abs(couplings).max()) for _, couplings in panels)
        look = Look(places=places, strongest=strongest)
        for one, (title, couplings) in zip(axes, panels, strict=True):
            draw_network(one, couplings, self.names, look)
            one.set_title(title.replace("$", r"\$"))
        if is_new:
            axes[0].figure.get_layout_engine().set(h_pad=0.15)  # else tops of titles are cut off
        return axes


def shared_couplings(found: GroupComparison) -> Any:
    """(n_spins, n_spins) CSR: the mean size of couplings over groups, which one layout is for."""
    sizes = [abs(model.couplings) for model in found.models.values()]
    return sum(sizes) / len(sizes)


def network_panels(found: GroupComparison) -> list[tuple[str, Any]]:
    """Titles and matrices of couplings: of each group, and what differs between two."""
    panels = [
        (f"{label} ({size} rows)", found.models[label].couplings)
        for label, size in zip(found.labels, found.sizes, strict=True)
    ]
    if len(panels) == 2:
        first, second = found.labels
        panels.append((f"what differs: {second} less {first}", difference_couplings(found)))
    return panels


def difference_couplings(found: GroupComparison) -> Any:
    """(n_spins, n_spins) CSR: differences of the pairs that differ."""
    place = {name: k for k, name in enumerate(found.names)}
    matrix = np.zeros((len(place), len(place)))
    for row in found.differing:
        i = place[str(row["source"])]
        j = place[str(row["target"])]
        matrix[i, j] = matrix[j, i] = row["difference"]
    return csr_array(matrix)


def compare_groups(
    X: Any,
    groups: Any,
    *,
    fields: str = "free",
    permutations: int = 10_000,
    covariates: Any = None,
    row_groups: Any = None,
    sample_weight: Any = None,
    counts: Any = None,
    control: str = "fwer",
    method: str = "score",
    missing: str = "error",
    random_state: Seed = None,
) -> GroupComparison:
    """Whether the networks of two or more groups of rows differ, where, and by how much.

    One network is learnt of all rows. For each pair it is asked how much likelier the rows are with
    a coupling in each group than with one for all, given neighbours, fields and covariates of each
    group. To first order, differences are sums over rows: relabelled rows give what the largest of
    all pairs is where labels mean nothing, by one product of matrices for all relabellings, and no
    network is learnt anew.

    Parameters
    ----------
    X
        One row a sample, one column a spin: anything that `fit` takes.
    groups
        Label of each row: a number or a text.
    fields
        "free": groups may differ in how often columns are high, which is no difference of
        networks. "equal": labels would mean nothing at all, and p-values are exact; a difference
        may then be one of fields.
    permutations
        How often rows are relabelled.
    covariates
        What else is known of each row: a table of numbers or categories that shift fields, in all
        groups alike.
    row_groups
        Which rows belong together (a person, a site): one label for each. They are relabelled
        together; those with rows in both of two groups change these for each other.
    sample_weight
        How much each row matters, as in a survey: of the rows of a group only ratios count.
    counts
        How many equal samples each row stands for; these are relabelled one by one.
    control
        What `differing` lists: "fwer", pairs whose family-wise p-value is at most 0.05, or "fdr",
        those whose q-value is.
    method
        "score"; or "nct", the Network Comparison Test with eLasso, which learns both networks anew
        for each permutation: ask for fewer.
    missing
        "error" or "drop".
    random_state
        Seed or numpy Generator of the relabelling.

    Examples
    --------
    >>> import numpy as np
    >>> import isingkit as ik
    >>> truth = ik.random_regular(n_spins=12, degree=3, coupling=0.4, random_state=0)
    >>> other = truth.couplings.copy()
    >>> other[0, other[[0]].indices[0]] *= -1
    >>> other[other[[0]].indices[0], 0] *= -1
    >>> one = np.asarray(ik.sample(truth, n_samples=300, random_state=1))
    >>> two = np.asarray(ik.sample(ik.IsingModel(other), n_samples=300, random_state=2))
    >>> labels = ["one"] * 300 + ["two"] * 300
    >>> found = ik.compare_groups(np.concatenate([one, two]), labels, random_state=0)
    >>> len(found.differing), found.p_value < 0.001
    (1, True)
    """
    require_choice("fields", fields, ("free", "equal"))
    require_choice("control", control, ("fwer", "fdr"))
    require_choice("method", method, ("score", "nct"))
    require_number("permutations", permutations, at_least=1, whole=True)
    if method == "nct" and fields != "free":
        expected = "'free' with method 'nct', which learns each group's fields by themselves"
        raise SettingError(setting="fields", value=fields, expected=expected)
    rows = grouped_rows(X, groups, covariates, row_groups, sample_weight, counts, missing)
    rng = generator(random_state)
    settings = _Settings(method, fields, control, int(permutations))
    with blas_threads_for(rows.packed.n_spins):
        if method == "nct":
            return _compared_by_nct(rows, settings, rng)
        return _compared(rows, settings, rng)


@dataclass(frozen=True, slots=True)
class _Settings:
    method: str
    fields: str
    control: str
    n_permutations: int

    @property
    def fields_are_free(self) -> bool:
        return self.fields == "free"


def _compared(rows: GroupedRows, settings: _Settings, rng: Generator) -> GroupComparison:
    graph = _pooled_graph(rows, settings.fields_are_free)
    tests, couplings = _tested(rows, graph, settings, int(rng.integers(2**63)))
    q_values = benjamini_hochberg(tests.p_values)
    differs = (tests.family_p_values if settings.control == "fwer" else q_values) <= LEVEL
    shown = graph[tuple(tests.pairs.T)] | differs
    networks = group_networks(rows, tests.pairs[shown])
    pooled = couplings[tuple(networks.pairs.T)]
    signs = signs_of(networks, pooled, differs[shown])
    n_testable = int(tests.is_testable.sum())
    models = zip(rows.labels, networks.models(), strict=True)
    return GroupComparison(
        **_heading(rows, settings),
        p_value=tests.p_value,
        overall=overall_of(networks, signs),
        edges=edges_of(networks, tests, q_values, shown),
        centralities=centralities_of(networks, signs),
        models=dict(models),
        n_pairs=n_testable,
        n_untestable=len(tests.is_testable) - n_testable,
    )


def _tested(
    rows: GroupedRows, graph: BoolArray, settings: _Settings, seed: int
) -> tuple[PairTests, FloatArray]:
    """Tests of all pairs, and couplings that all groups share.

    A coupling that differs by much disturbs those beside it beyond first order. So the surest
    pairs that differ get couplings of their own, and all others are tested anew, until no more
    differ.
    """
    is_free = settings.fields_are_free
    ratios = LikelihoodRatios(rows)
    differs = np.zeros_like(graph)
    tests: PairTests | None = None
    for _ in range(_MOST_ROUNDS):
        fit = pooled_fit(rows, graph, is_free, differs)
        roots = partial(ratios.roots, graph | differs) if is_free else None
        relabelling = (settings.n_permutations, np.random.default_rng(seed))
        latest = tests_of_pairs(deviations(fit), roots, rows, differs, *relabelling)
        tests = latest if tests is None else tests.stepped_down(latest, differs)
        more = _surest_apart(tests, differs)
        if not more.any():
            break
        differs = differs | more
    assert tests is not None
    return tests, fit.couplings + fit.couplings.T


def _surest_apart(tests: PairTests, differs: BoolArray) -> BoolArray:
    """(n_spins, n_spins): pairs that differ and were not known to, of those with a common spin the
    surest.
    """
    found = np.zeros_like(differs)
    order = np.argsort(-np.round(np.abs(tests.statistics), 9), kind="stable")
    taken: set[int] = set()
    for place in order:
        i, j = tests.pairs[place].tolist()
        is_new = tests.family_p_values[place] <= LEVEL and not differs[i, j]
        if is_new and not taken & {i, j}:
            found[i, j] = found[j, i] = True
            taken |= {i, j}
    return found


def _heading(rows: GroupedRows, settings: _Settings) -> dict[str, Any]:
    """What a comparison says of itself."""
    return {
        "method": settings.method,
        "fields": settings.fields,
        "control": settings.control,
        "n_permutations": settings.n_permutations,
        "labels": rows.labels,
        "sizes": tuple(rows.sizes.tolist()),
        "names": rows.packed.names,
    }


def _pooled_graph(rows: GroupedRows, fields_are_free: bool) -> BoolArray:
    """(n_spins, n_spins): edges of all rows together, given groups where fields are free."""
    names = list(rows.covariate_names)
    columns = [rows.covariates]
    if fields_are_free:
        names += [f"group {label}" for label in rows.labels[1:]]
        columns.append(rows.indicators[:, 1:])
    values = np.concatenate(columns, axis=1)
    table = Table(tuple(names), values) if names else None
    estimator = AutoIsing(rows="independent", hidden=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsingkitWarning)  # of a network that is only a means
        weights = rows.weights if rows.are_weighted else None
        spins = rows.varying_within if fields_are_free else rows.packed
        estimator.fit(spins, None, weights, covariates=table, groups=rows.units)
    return np.asarray(estimator.model_.couplings.toarray() != 0)


def _compared_by_nct(rows: GroupedRows, settings: _Settings, rng: Generator) -> GroupComparison:
    found = network_comparison_test(rows, settings.n_permutations, rng)
    return GroupComparison(
        **_heading(rows, settings),
        p_value=found.p_value,
        overall=overall_by_nct(rows, found),
        edges=edges_by_nct(rows, found),
        centralities=no_centralities(rows),
        models=found.models(rows),
        n_pairs=len(found.pairs),
        n_untestable=0,
    )
