"""ScreenedRows: rows and their candidate pairs, as matrices of all pairs or as bits.

What the steps after the screen work with.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from isingkit.arrays import Pairs
from isingkit.estimators.bits import bits_of
from isingkit.estimators.bits import without_covariates as bits_without_covariates
from isingkit.estimators.checkpoint import ALIKE
from isingkit.estimators.fitted_graph import FittedGraph, Samples, samples_of, samples_of_bits
from isingkit.estimators.moments import SecondMoments
from isingkit.estimators.normal import normal_equations, without_covariates
from isingkit.estimators.predicted_memory import bytes_by_matrices, bytes_by_tiles
from isingkit.estimators.row_design import RowDesign, row_design
from isingkit.estimators.score_cache import ScoreCache, dense_scores, sparse_scores
from isingkit.estimators.screen import Screen, candidates, screen
from isingkit.estimators.tiled_screen import screen_by_tiles
from isingkit.gram import gram_of
from isingkit.memory import require_memory
from isingkit.packing import PackedSpins, bits
from isingkit.spins import RowWeights

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
class ScreenedRows:
    """Rows, what the screen says of their pairs, and how pairs are scored."""

    moments: SecondMoments
    screen: Screen
    candidates: Pairs
    samples: Samples
    # by the least z-score that is looked at, and samples beside causes
    scores: Callable[[float, Samples], ScoreCache]
    looks_for_causes: bool
    # the same of some of the rows, where all are more than it takes to tell causes
    of_some: "Callable[[], ScreenedRows] | None" = None


def screened_bits(packed: PackedSpins, design: RowDesign, settings: SearchSettings) -> ScreenedRows:
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
        checkpoint = checkpoint / ALIKE / f"{design.design_effect:.9g}"
    screened, pairs = screen_by_tiles(bits, checkpoint, n_jobs, settings.progress)
    samples = samples_of_bits(packed, design)

    def scores(least: float, beside: Samples) -> ScoreCache:
        return sparse_scores(bits, least, n_jobs)

    # a look costs as much as a search, of so many columns: causes are those that are asked for
    looks = settings.hidden not in (0, "auto")
    return ScreenedRows(bits, screened, pairs, samples, scores, looks)


def screened_matrices(
    packed: PackedSpins, design: RowDesign, settings: SearchSettings
) -> ScreenedRows:
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

    def scores(least: float, beside: Samples) -> ScoreCache:
        return dense_scores(moments, beside, settings.fit_fields, least)

    pairs = candidates(screened, moments)
    screened = replace(screened, scores=screened.scores.astype(np.float32))  # to be looked at
    looks = design.outcomes is None  # which is not known of rows that were imputed
    of_some = None
    if design.is_counted and packed.present is None and samples.n_rows > _MOST_ROWS:
        of_some = lambda: screened_matrices(*_some_rows(packed, samples), settings)  # noqa: E731
    return ScreenedRows(moments, screened, pairs, samples, scores, looks, of_some)


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
