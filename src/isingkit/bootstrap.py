"""Bootstrap: how far edges vary when rows are drawn anew."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.random import Generator

from isingkit.arrays import FloatArray, IntArray, distinct
from isingkit.centrality import MEASURES, measures_of
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.resampling import Refits, over_resamples, redrawn, refits
from isingkit.exceptions import IsingkitError, require_choice, require_number
from isingkit.model import IsingModel
from isingkit.result_table import ResultTable, as_table
from isingkit.spins import Names
from isingkit.worlds.graphs import Seed, generator

_BAND = (0.025, 0.975)
_TIE = 1e-9  # between couplings: what is less is rounding
_Edges = tuple[IntArray, FloatArray]  # keys of pairs, sorted, and their couplings


@dataclass(frozen=True, slots=True, eq=False)
class Bootstrap:
    """Couplings learnt from rows drawn anew, with replacement.

    `edges` has a row for each pair that is an edge of any of the networks, the most frequent first:
    source, target, coupling (learnt from all rows; 0 where it is no edge there), inclusion (share
    of the networks that have it), low and high (between which 95 percent of its couplings are).
    For a penalised estimator these are no confidence intervals, as couplings are drawn to zero.
    """

    edges: ResultTable
    couplings: FloatArray  # (n_resamples, n_pairs): columns as the rows of `edges`
    names: Names  # of the columns of the table

    @property
    def n_resamples(self) -> int:
        """Networks learnt; rows that allow for none are left out."""
        return len(self.couplings)

    def differences(self) -> ResultTable:
        """Tests whether edges of the network of all rows differ, for each two of them: source,
        target, other_source, other_target, difference of couplings, low and high (between which 95
        percent of the differences are), and `differs`, whether zero is outside of these.

        As in bootnet there is no correction for many tests, of which some come out by chance.
        """
        own = np.flatnonzero(self.edges["coupling"])
        edges = self.edges[own]
        first, second = np.triu_indices(len(own), 1)
        one, other = edges[first], edges[second]
        columns = {
            "source": one["source"],
            "target": one["target"],
            "other_source": other["source"],
            "other_target": other["target"],
        }
        tests = _difference_tests(edges["coupling"], self.couplings[:, own])
        return as_table(columns | tests)

    def centrality_differences(self, measure: str = "strength") -> ResultTable:
        """Tests whether columns differ in a centrality, for each two of them: name, other_name,
        difference in the network of all rows, low and high (between which 95 percent of the
        differences are), and `differs`, whether zero is outside of these.

        As in bootnet there is no correction for many tests, of which some come out by chance.

        Parameters
        ----------
        measure
            "strength", "expected_influence", "betweenness" or "closeness", as `centrality` has
            them.
        """
        require_choice("measure", measure, MEASURES)
        own = measures_of(self._model(self.edges["coupling"]))[measure]
        drawn = [measures_of(self._model(one))[measure] for one in self.couplings]
        names = np.array(self.names, dtype=np.str_)
        first, second = np.triu_indices(len(names), 1)
        columns = {"name": names[first], "other_name": names[second]}
        return as_table(columns | _difference_tests(own, np.array(drawn)))

    def together(self, communities: Callable[[IsingModel], Sequence[Any]]) -> FloatArray:
        """(n_columns, n_columns): in what share of the networks two columns are in one community,
        which needs no labels that mean the same in all of them.

        Parameters
        ----------
        communities
            Gives the community of each column of a model: one label for each, of any kind.
        """
        found = np.zeros((len(self.names), len(self.names)))
        for couplings in self.couplings:
            labels = list(communities(self._model(couplings)))
            codes = np.unique([str(label) for label in labels], return_inverse=True)[1]
            found += codes[:, None] == codes
        return found / self.n_resamples

    def _model(self, couplings: FloatArray) -> IsingModel:
        """With couplings of the pairs of `edges`."""
        place = {name: k for k, name in enumerate(self.names)}
        matrix = np.zeros((len(place), len(place)))
        for row, coupling in zip(self.edges[["source", "target"]], couplings, strict=True):
            i, j = place[str(row["source"])], place[str(row["target"])]
            matrix[i, j] = matrix[j, i] = coupling
        return IsingModel(matrix, names=self.names)

    def __repr__(self) -> str:
        return f"Bootstrap({self.n_resamples} networks, {len(self.edges)} pairs)"

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>{self.edges._repr_html_()}"


def _difference_tests(own: FloatArray, drawn: FloatArray) -> dict[str, Any]:
    """Columns difference, low, high and differs, of each two of some values.

    own: (n,), of all rows
    drawn: (n_resamples, n), of rows drawn anew
    """
    first, second = np.triu_indices(len(own), 1)
    low = np.empty(len(first))
    high = np.empty(len(first))
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        low[k], high[k] = np.quantile(drawn[:, i] - drawn[:, j], _BAND)
    differs = (low > _TIE) | (high < -_TIE)
    return {"difference": own[first] - own[second], "low": low, "high": high, "differs": differs}


def bootstrap(
    estimator: IsingEstimator,
    X: Any,
    *,
    n_resamples: int = 1000,
    sample_weight: Any = None,
    counts: Any = None,
    groups: Any = None,
    covariates: Any = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Bootstrap:
    """How often each edge is found, and how far its coupling varies, when rows are drawn anew: R's
    bootnet with type = "nonparametric".

    The same for any number of threads. The estimator itself stays as it is. `AutoIsing` tests edges
    as if rows were independent, and rows drawn twice are not: take its `stability`.

    Parameters
    ----------
    estimator
        Any of isingkit, such as `ELassoIsing()`, fitted or not.
    X
        Samples, as for its `fit`.
    n_resamples
        How many times rows are drawn.
    sample_weight
        How much each row matters.
    counts
        How many equal samples each row stands for; these are drawn one by one.
    groups
        Which rows belong together; these are drawn together.
    covariates
        What else is known of each row, as for the estimator's `fit`: it stays with the row.
    random_state
        Seed, or a numpy Generator.
    n_jobs
        Threads to use; None or -1 is all.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import isingkit as ik
    >>> chain = ik.IsingModel([[0, 0.5, 0], [0.5, 0, 0.1], [0, 0.1, 0]], names=["a", "b", "c"])
    >>> rows = ik.exact(chain).sample(n_samples=2000, random_state=0)
    >>> found = ik.bootstrap(ik.ELassoIsing(), rows, n_resamples=100, random_state=1)
    >>> found.differences()["differs"]
    array([ True])
    """
    require_number("n_resamples", n_resamples, at_least=2, whole=True)
    rows = refits(estimator, X, sample_weight, counts, groups, covariates)
    own, *seeds = generator(random_state).spawn(1 + n_resamples)
    whole = _edges_of(rows.network((rows.packed, rows.weights), own))
    every = over_resamples(_redrawn_edges, rows, seeds, "bootstrap", n_jobs, progress)
    found = [edges for edges in every if not isinstance(edges, IsingkitError)]
    if not found:
        raise every[0]
    keys = distinct(*(edges[0] for edges in (whole, *found)))
    couplings = np.array([_at(keys, edges) for edges in found])
    return _arranged(rows.packed.names, keys, _at(keys, whole), couplings)


def _redrawn_edges(rows: Refits, rng: Generator) -> _Edges | IsingkitError:
    """What is learnt from rows drawn anew, or why nothing is."""
    try:
        return _edges_of(rows.network(redrawn(rows.packed, rows.weights, rng), rng))
    except IsingkitError as error:
        return error


def _edges_of(model: IsingModel) -> _Edges:
    upper = scipy.sparse.triu(model.couplings, k=1).tocoo()
    keys = upper.row.astype(np.int64) * model.n_spins + upper.col
    order = np.argsort(keys)
    return keys[order], upper.data[order]


def _at(keys: IntArray, edges: _Edges) -> FloatArray:
    """(n_keys,): couplings of these pairs, 0 where one is no edge."""
    couplings = np.zeros(len(keys))
    couplings[np.searchsorted(keys, edges[0])] = edges[1]
    return couplings


def _arranged(names: Names, keys: IntArray, own: FloatArray, couplings: FloatArray) -> Bootstrap:
    """The most frequent pairs first, equal ones in the order of their columns."""
    inclusion = (couplings != 0).mean(axis=0)
    order = np.argsort(-inclusion, kind="stable")
    low, high = np.quantile(couplings[:, order], _BAND, axis=0)
    labels = np.array(names, dtype=np.str_)
    source, target = np.divmod(keys[order], len(names))
    columns = {
        "source": labels[source],
        "target": labels[target],
        "coupling": own[order],
        "inclusion": inclusion[order],
        "low": low,
        "high": high,
    }
    return Bootstrap(as_table(columns), couplings[:, order], names)
