"""The network of a table with missing cells, found together with completions of the table.

Cells are drawn from a network, given those that are there, and the network is found anew, until
both go together. What is drawn explains, but is not explained: a pair is tested, and its coupling
estimated, in the rows where both were observed. Why: docs/design/missing.md.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from tqdm import tqdm

from isingkit.arrays import FloatArray, Pairs
from isingkit.estimators.fitted_graph import FittedGraph, fit_graph, samples_of
from isingkit.estimators.imputation import drawn_network, impute, start
from isingkit.estimators.network_estimates import NetworkEstimates
from isingkit.estimators.network_search import Found, Problem, Strategy
from isingkit.estimators.row_design import RowDesign
from isingkit.estimators.screened_rows import SearchSettings
from isingkit.exceptions import UnobservedPairWarning, warn
from isingkit.packing import PackedSpins, bits
from isingkit.spins import RowWeights


@dataclass(frozen=True, slots=True)
class ImputationSettings:
    """How cells are drawn. Why these numbers: docs/design/missing.md."""

    n_rounds: int = 3  # networks that are found and drawn from, before completions are kept
    n_completions: int = 5
    n_sweeps: int = 10  # of the missing cells of a row, from one completion to the next
    # of networks to draw from: what is drawn without an edge hides the edge
    level: float = 0.2
    least_effect: float = 0.2  # variance of averaged scores, in units of that of complete rows


SETTINGS = ImputationSettings()


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Rows with missing cells, and what they count for."""

    packed: PackedSpins
    design: RowDesign
    values: FloatArray  # (n_spins, n_rows): 0 where missing

    @property
    def n_observed(self) -> FloatArray:
        """(n_spins, n_spins): rows in which two spins are both observed."""
        seen = (self.values != 0).astype(np.float64)
        return seen @ seen.T

    @property
    def observed(self) -> float:
        """The same as a fraction of all rows, over all pairs."""
        return float(self.n_observed.mean() / self.packed.n_samples)

    def completed(self, completions: list[FloatArray]) -> tuple[PackedSpins, RowDesign]:
        """Completions one after the other, each counting for its part; rows that belong together
        are, at least, the completions of one.
        """
        n_completions = len(completions)
        n_rows = self.packed.n_samples
        design = self.design
        ones = np.ones(n_rows)
        totals = ones if design.weights is None else design.weights.totals
        squares = ones if design.weights is None else design.weights.squares
        part = 1 / n_completions
        weights = RowWeights(
            np.tile(part * totals, n_completions), np.tile(part * squares, n_completions)
        )
        groups = np.arange(n_rows) if design.groups is None else design.groups
        least = SETTINGS.least_effect if design.groups is None else design.least_effect
        spins = np.concatenate(completions, axis=1)
        covariates = None
        if design.covariates is not None:
            covariates = np.tile(design.covariates, (1, n_completions))
        whole = replace(
            design,
            weights=weights,
            groups=np.tile(groups, n_completions),
            outcomes=np.tile(self.values, (1, n_completions)),
            observed=self.observed,
            least_effect=least,
            covariates=covariates,
        )
        return self._packed(spins), whole

    def single(self, completion: FloatArray) -> tuple[PackedSpins, RowDesign]:
        """One completion by itself."""
        design = replace(self.design, outcomes=self.values, observed=self.observed)
        return self._packed(completion), design

    def _packed(self, spins: FloatArray) -> PackedSpins:
        words = bits(spins.T.astype(np.int8))
        return PackedSpins(words, spins.shape[1], self.packed.names, None, self.packed.mapping)


def imputed_search(
    packed: PackedSpins, design: RowDesign, settings: SearchSettings, rng: Generator
) -> Strategy[tuple[Found, NetworkEstimates] | None]:
    """The network, tested in all completions together, and estimates combined by Rubin's rules;
    None where a search is futile.

    z-scores are those of scores averaged over completions, with the variance that these averages
    have between rows: the score of what was observed.
    """
    values = np.ascontiguousarray(np.asarray(packed, dtype=np.float64).T)
    table = _Table(packed, design, values)
    _warn_of_unobserved(table)
    generous = replace(settings, level=max(settings.level, SETTINGS.level), control="fdr")
    generous = replace(generous, progress=False)
    state = start(values, values != 0, rng)
    n_steps = SETTINGS.n_rounds + SETTINGS.n_completions + 1
    with tqdm(
        total=n_steps, desc="imputing", disable=not settings.progress, delay=1, leave=False
    ) as bar:
        for _ in range(SETTINGS.n_rounds):
            found = yield Problem(*table.single(state), generous)
            if found is None:
                return None
            fitted = found.fitted
            state = _drawn(table, fitted, state, rng)
            bar.update()
        pairs = fitted.graph.pairs
        completions = []
        for _ in range(SETTINGS.n_completions):
            state = _drawn(table, _fitted(table, state, pairs, settings), state, rng)
            completions.append(state)
            bar.update()
        whole = yield Problem(*table.completed(completions), replace(settings, progress=False))
        bar.update()
    if whole is None:
        return None
    return whole, _combined(table, whole, completions)


def _warn_of_unobserved(table: _Table) -> None:
    """Nothing can be said of pairs that were never observed together."""
    unobserved = np.argwhere(np.triu(table.n_observed == 0, k=1))
    if len(unobserved):
        names = table.packed.names
        warn(UnobservedPairWarning(pairs=[(names[i], names[j]) for i, j in unobserved]))


def _fitted(
    table: _Table, completion: FloatArray, pairs: Pairs, settings: SearchSettings
) -> FittedGraph:
    samples = samples_of(*table.single(completion))
    return fit_graph(samples, pairs, fit_fields=settings.fit_fields, n_jobs=settings.n_jobs)


def _drawn(table: _Table, fitted: FittedGraph, state: FloatArray, rng: Generator) -> FloatArray:
    """The next completion, from coefficients that are as uncertain as the data leave them."""
    network = drawn_network(fitted, rng)
    observed = table.values != 0
    return impute(state, observed, network, SETTINGS.n_sweeps, rng, fitted.n_jobs)


def _combined(table: _Table, found: Found, completions: list[FloatArray]) -> NetworkEstimates:
    r"""Rubin's rules: variances are U + (1 + 1/m) B, U their mean and B that between completions.

    With m completions that has (m - 1) (1 + U / ((1 + 1/m) B))^2 degrees of freedom.
    """
    fitted = found.fitted
    graph = fitted.graph
    directed = []
    variances = []
    for completion in completions:
        again = _fitted(table, completion, graph.pairs, found.settings)
        couplings, errors = again.observed_couplings_and_errors()
        directed.append(couplings)
        variances.append(errors**2)
    n_completions = len(completions)
    within = np.mean(variances, axis=0)
    between = np.var(np.mean(directed, axis=2), axis=0, ddof=1) * (1 + 1 / n_completions)
    ratio = within / np.maximum(between, 1e-12 * within + 1e-300)
    freedom = (n_completions - 1) * (1 + ratio) ** 2
    if table.design.n_groups > 1:
        freedom = np.minimum(freedom, table.design.n_groups - 1)
    means = np.empty(len(graph.indices))
    means[graph.sides] = np.mean(directed, axis=0)
    return NetworkEstimates(replace(fitted, couplings=means), np.sqrt(within + between), freedom)
