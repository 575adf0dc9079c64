"""Found: the network of a table, and what it was found with."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from isingkit._kernels.threads import one_blas_thread
from isingkit.arrays import FloatArray, Pairs
from isingkit.estimators.bits import bits_of, goes_by_bits
from isingkit.estimators.bits import without_covariates as bits_without_covariates
from isingkit.estimators.cause_look import EdgeRule, leftover, without_weak
from isingkit.estimators.cause_search import (
    CauseEvidence,
    Network,
    Select,
    explain_all,
    search,
    search_given,
    spread_outside,
)
from isingkit.estimators.checkpoint import ALIKE
from isingkit.estimators.edge_tests import EdgeTester, critical_z, screening_z
from isingkit.estimators.elimination import Elimination, eliminate
from isingkit.estimators.fitted_graph import (
    FittedGraph,
    Samples,
    fit_graph,
    samples_of,
    samples_of_bits,
)
from isingkit.estimators.hidden_causes import HiddenCauses, shared_causes
from isingkit.estimators.local_fdr import likelier_than_chance
from isingkit.estimators.missed_edges import beyond_missed
from isingkit.estimators.moments import SecondMoments
from isingkit.estimators.normal import normal_equations, without_covariates
from isingkit.estimators.predicted_memory import bytes_by_matrices, bytes_by_tiles
from isingkit.estimators.row_design import RowDesign, row_design
from isingkit.estimators.score_cache import ScoreCache, dense_scores, sparse_scores
from isingkit.estimators.screen import Screen, candidates, screen
from isingkit.estimators.selection import Selection, keep_significant, select_edges
from isingkit.estimators.sparsity import Sparsity, sparsity_of
from isingkit.estimators.tiled_screen import screen_by_tiles
from isingkit.gram import gram_of
from isingkit.memory import require_memory
from isingkit.packing import PackedSpins, bits
from isingkit.spins import RowWeights

# pairs outside a network that stand out, beyond which causes are looked for first; noise makes some
# 3 for each spin
_CROWD, _CROWD_PER_SPIN = 2000, 10
_MOST_ROWS = 1 << 15  # different ones, among which causes are looked for


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Settings of `AutoIsing` that the search needs."""

    level: float
    control: str  # "fdr" or "fwer"
    fit_fields: bool
    hidden: int | str = 0  # causes that are no columns, or "auto"
    checkpoint: Path | None = None
    n_jobs: int | None = None
    progress: bool = False
    # whether a search for a network without causes is futile, by what it has so far; asked by one
    # that takes long
    is_futile: Callable[[FittedGraph], bool] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The network found, and what each step on the way to it left."""

    settings: SearchSettings
    moments: SecondMoments
    screen: Screen
    candidates: Pairs
    elimination: Elimination
    network: Network
    causes: CauseEvidence
    sparsity: Sparsity

    @property
    def tester(self) -> EdgeTester:
        return self.network.tester

    @property
    def selection(self) -> Selection:
        return self.network.selection

    @property
    def fitted(self) -> FittedGraph:
        return self.selection.fitted

    @property
    def weights(self) -> FloatArray:
        """(n_edges,): by the rest of the graph."""
        tests = self.selection.tests
        return tests.weights[tests.inside]

    @property
    def n_changing(self) -> int:
        """Spins that are not constant."""
        return int(self.moments.changes.sum())

    def margins(self) -> FloatArray:
        """(n_edges,): by how much less their z-scores could be."""
        tests, fitted = self.selection.tests, self.selection.fitted
        level, control = self.settings.level, self.settings.control
        critical = critical_z(self.n_changing, len(self.weights), level, control, self.weights)
        z_scores = tests.z_scores[tests.inside]
        return self.tester.margins(fitted, fitted.graph.pairs, z_scores, critical)


def find_network(packed: PackedSpins, design: RowDesign, settings: SearchSettings) -> Found:
    """The network of rows that count for what a design says: screen, eliminate, refit, test."""
    # what was imputed explains but is not explained, which bits cannot tell
    is_large = goes_by_bits(packed) and design.outcomes is None
    road = _by_bits if is_large else _by_matrices
    way = road(packed, design, settings)
    moments = way.moments
    with one_blas_thread():  # once for all steps, which use threads themselves
        elimination = eliminate(moments, way.candidates, settings.n_jobs)
        pairs = elimination.survivors
        sparsity = sparsity_of(moments, way.samples, settings.n_jobs)
        if sparsity.is_dense:
            network, evidence, sparsity = _if_dense(way, pairs, sparsity, settings)
        else:
            network, evidence = _search(way, pairs, sparsity, settings)
        # where a cause is seen and ignored, or nothing is sparse, it is not edges that are missed
        lacks_causes = network.hidden is None and evidence.n_found > 0
        if settings.control == "fwer" or not (lacks_causes or sparsity.is_dense):
            network = _without_doubtful(network, settings)
    screened = (moments, way.screen, way.candidates, elimination)
    return Found(settings, *screened, network, evidence, sparsity)


def _without_doubtful(network: Network, settings: SearchSettings) -> Network:
    """The network without edges that missed ones may have made, or chance."""
    level, control = settings.level, settings.control
    tester, selection = beyond_missed(network.tester, network.selection, level, control)
    if control == "fdr":
        tester, selection = likelier_than_chance(tester, selection, level)
    return replace(network, tester=tester, selection=selection)


def _if_dense(
    way: "_Screened", pairs: Pairs, sparsity: Sparsity, settings: SearchSettings
) -> tuple[Network, CauseEvidence, Sparsity]:
    """The network where nearly all pairs seem to be coupled, and whether they are."""
    if way.looks_for_causes and settings.hidden == "auto" and sparsity.may_be_causes:
        network, evidence = _search(way, pairs, sparsity, settings)
        if explain_all(network, evidence):
            return network, evidence, Sparsity(spread_outside(network))
    return *_without_search(way, pairs, settings), sparsity


def _without_search(
    way: "_Screened", pairs: Pairs, settings: SearchSettings
) -> tuple[Network, CauseEvidence]:
    """Significant couplings where nearly all pairs have one: no edges to tell from others."""
    samples, changes = way.samples, way.moments.changes
    fitted = fit_graph(samples, pairs, fit_fields=settings.fit_fields, n_jobs=settings.n_jobs)
    tester = EdgeTester(way.scores(np.inf), changes, settings.progress, clear_z=0.0)
    selection = keep_significant(fitted, tester, settings.level, settings.control)
    return Network(tester, selection), CauseEvidence(0.0)


def _search(
    way: "_Screened", start: Pairs, sparsity: Sparsity, settings: SearchSettings
) -> tuple[Network, CauseEvidence]:
    """The network, with the causes that are asked for or believed."""

    select = _selecting(way, settings)
    rule = EdgeRule(settings.level, settings.control, int(way.moments.changes.sum()))
    plain = sparsity.causes
    if way.looks_for_causes and settings.hidden == "auto" and plain is not None:
        fields, n_jobs = settings.fit_fields, settings.n_jobs
        fitted = fit_graph(way.samples, plain.pairs, fit_fields=fields, n_jobs=n_jobs)
        return search_given(select, fitted, plain.loadings, rule)
    if way.looks_for_causes:
        of_some = way.of_some
        in_some = None if of_some is None else lambda: _selecting(of_some(), settings)
        return search(select, start, settings.hidden, rule, in_some)
    network = select(None, start)
    left = leftover(network.fitted, network.tester.scores)
    return network, CauseEvidence(left, was_looked_for=False)


def _selecting(way: "_Screened", settings: SearchSettings) -> Select:
    """What finds networks of these rows."""
    changes = way.moments.changes
    n_changing = int(changes.sum())
    level, control = settings.level, settings.control

    def select(hidden: HiddenCauses | None, start: Pairs, is_bounded: bool = False) -> Network:
        samples = way.samples if hidden is None else hidden.beside(way.samples, bent=True)
        fitted = fit_graph(samples, start, fit_fields=settings.fit_fields, n_jobs=settings.n_jobs)
        if way.of_some is not None:  # tests of so many rows take long: what goes need not be tested
            fitted = without_weak(fitted, EdgeRule(level, control, n_changing))
        shared = None if hidden is None else shared_causes(fitted, hidden)
        scores = way.scores(screening_z(n_changing, len(start), level, control))
        is_strict = control == "fwer"
        tester = EdgeTester(scores, changes, settings.progress, shared, is_strict=is_strict)
        most = max(_CROWD, _CROWD_PER_SPIN * way.moments.n_spins) if is_bounded else np.inf
        is_futile = settings.is_futile if hidden is None else None
        asked = (way.candidates, level, control, most, is_futile)
        return Network(tester, select_edges(fitted, tester, *asked), hidden)

    return select


@dataclass(frozen=True, slots=True, eq=False)
class _Screened:
    """What the steps after the screen work with: matrices, or bits."""

    moments: SecondMoments
    screen: Screen
    candidates: Pairs
    samples: Samples
    scores: Callable[[float], ScoreCache]  # by the least z-score that is looked at
    looks_for_causes: bool
    # the same of some of the rows, where all are more than it takes to tell causes
    of_some: "Callable[[], _Screened] | None" = None


def _by_bits(packed: PackedSpins, design: RowDesign, settings: SearchSettings) -> _Screened:
    """Next to nothing of the size of all pairs is stored."""
    n_spins, n_rows = packed.n_spins, packed.n_samples
    n_bytes = bytes_by_tiles(n_spins, n_rows, packed.present is None)
    require_memory(n_bytes, n_spins=n_spins, n_samples=n_rows)
    bits = bits_of(packed, settings.fit_fields, design.weights)
    bits = replace(bits, design_effect=design.design_effect)
    if design.covariates is not None:
        bits = bits_without_covariates(bits, design.covariates)
    n_jobs = settings.n_jobs
    checkpoint = settings.checkpoint
    if checkpoint is not None and design.design_effect != 1:
        checkpoint = checkpoint / ALIKE
    screened, pairs = screen_by_tiles(bits, checkpoint, n_jobs, settings.progress)
    samples = samples_of_bits(packed, design)

    def scores(least: float) -> ScoreCache:
        return sparse_scores(bits, least, n_jobs)

    # a look costs as much as a search, of so many columns: causes are those that are asked for
    looks = settings.hidden not in (0, "auto")
    return _Screened(bits, screened, pairs, samples, scores, looks)


def _by_matrices(packed: PackedSpins, design: RowDesign, settings: SearchSettings) -> _Screened:
    """All pairs in memory."""
    n_spins, n_rows = packed.n_spins, packed.n_samples
    require_memory(bytes_by_matrices(n_spins, n_rows), n_spins=n_spins, n_samples=n_rows)
    moments = normal_equations(gram_of(packed, design.weights), settings.fit_fields)
    if design.covariates is not None:
        moments = without_covariates(moments, packed, design.known)
    n_effective = moments.n_effective * design.observed / design.design_effect
    moments = replace(moments, n_effective=n_effective)
    screened = screen(moments)
    samples = samples_of(packed, design)

    def scores(least: float) -> ScoreCache:
        return dense_scores(moments, samples, settings.fit_fields, least)

    pairs = candidates(screened, moments)
    looks = design.outcomes is None  # which is not known of rows that were imputed
    of_some = None
    if design.is_counted and packed.present is None and samples.n_rows > _MOST_ROWS:
        of_some = lambda: _by_matrices(*_some_rows(packed, samples), settings)  # noqa: E731
    return _Screened(moments, screened, pairs, samples, scores, looks, of_some)


def _some_rows(packed: PackedSpins, samples: Samples) -> tuple[PackedSpins, RowDesign]:
    """So many samples at random that about `_MOST_ROWS` different rows are left at most.

    Drawn from different rows and their counts: the same for a histogram and for repeated rows.
    """
    rng = np.random.default_rng(0)
    counts = rng.binomial(samples.sample_weights.astype(np.int64), _MOST_ROWS / samples.n_rows)
    kept = np.flatnonzero(counts)
    words = bits(np.ascontiguousarray(samples.spins[:, kept].T).astype(np.int8))
    some = PackedSpins(words, len(kept), packed.names, None, packed.mapping)
    times = counts[kept].astype(np.float64)
    return some, row_design(RowWeights(times, times))
