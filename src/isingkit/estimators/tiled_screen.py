"""The screen of large networks, tile by tile: only what may be a candidate is stored."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import ndtri

from isingkit.arrays import FloatArray, IntArray, Pairs, distinct
from isingkit.estimators import sizes
from isingkit.estimators.bits import Bits
from isingkit.estimators.executor import current_executor
from isingkit.estimators.graph import keys_of, pairs_of, symmetric_matrix
from isingkit.estimators.moments import best_resolvent
from isingkit.estimators.primal import Primal
from isingkit.estimators.screen import (
    DIGITS,
    LEAST_SCORE,
    RIDGES,
    ScoreScales,
    Screen,
    most_candidates,
    score_scales,
)
from isingkit.estimators.tiles import (
    MARGIN,
    Kept,
    bytes_of_responses,
    screened,
    settings_of,
    spins_of_band,
)

_DIGITS = 9  # of a design effect: rounding does not reach them
# by noise a spin has about twice so many times its candidates above each level
_LEVELS = (1, 4, 16, 64)


@dataclass(slots=True, eq=False)
class ScoreScreen:
    """Pairs of large score, tile by tile."""

    bits: Bits
    ridge: float
    least: float
    scales: ScoreScales
    # a `Dual` or a `Primal`, made where it is needed: workers of a cluster make their own
    resolvent: Any = None

    @property
    def n_bytes(self) -> int:
        """Memory beyond the bits themselves."""
        return bytes_of_responses(self.bits)

    def settings(self) -> dict[str, Any]:
        """What the result depends on, beside the data."""
        found = {"screen": "scores", "ridge": self.ridge, "least": self.least}
        if self.bits.design_effect != 1:
            found["design_effect"] = round(self.bits.design_effect, _DIGITS)
        return found | settings_of(self.bits)

    def prepare(self, n_jobs: int | None = None) -> None:
        """Make what all bands need, where it is not there yet."""
        if self.resolvent is None:
            resolvent = self.bits.resolvent(self.ridge)
            resolvent.prepare()
            self.resolvent = resolvent

    def band(self, number: int, n_jobs: int | None = None) -> Kept:
        """Pairs of the spins of one band with all later ones."""
        self.prepare(n_jobs)
        rows = spins_of_band(self.bits, number)
        return self.pairs_of(rows, self.least, rows, n_jobs)

    def pairs_of(
        self, rows: IntArray, least: float, after: IntArray | None, n_jobs: int | None
    ) -> Kept:
        """Pairs (i, j) of spins i with all others, or later ones, of a score above `least`."""
        own = self.scales.own
        others = self.scales.others
        if isinstance(self.resolvent, Primal):
            return self._of_matrix(rows, least, after)
        responses = self.bits.for_signs(self.resolvent.responses(rows, n_jobs))
        factor = self.bits.n_samples / (2 * self.ridge * self.bits.n_spins)
        of_rows = factor * np.stack([own[rows], others[rows]])
        of_spins = np.stack([others, own])
        level = least * (1 - MARGIN)
        pairs, sums = self.bits.large_sums(
            responses, level, of_rows, of_spins, after=after, is_centred=True, n_jobs=n_jobs
        )
        i = rows[pairs[:, 0]]
        j = pairs[:, 1]
        scores = factor * sums * (own[i] * others[j] + own[j] * others[i])
        passes = (np.abs(scores) > least) & (i != j)
        both = np.column_stack([scores, scores])
        return self._seen_together(Kept(np.column_stack([i, j])[passes], both[passes]))

    def _of_matrix(self, rows: IntArray, least: float, after: IntArray | None) -> Kept:
        """The same where the resolvent of all pairs is at hand."""
        own = self.scales.own
        others = self.scales.others
        scores = self.resolvent.rows(rows)
        scores *= -self.bits.n_samples / 2
        scores *= own[rows, None] * others + own * others[rows, None]
        first = -1 if after is None else after
        place, j = np.nonzero(np.abs(scores) > least)
        i = rows[place]
        passes = (j > np.broadcast_to(first, len(rows))[place]) & (i != j)
        found = scores[place, j][passes]
        both = np.column_stack([found, found])
        return self._seen_together(Kept(np.column_stack([i, j])[passes], both))

    def _seen_together(self, kept: Kept) -> Kept:
        together = self.bits.seen_together(kept.pairs)
        return Kept(kept.pairs[together], kept.values[together])


def screen_by_tiles(
    bits: Bits,
    checkpoint: Path | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> tuple[Screen, Pairs]:
    """What `screen` and `candidates` find, but only what may matter is stored: scores are CSR.

    A pair is a candidate where its score is among the best of either spin. The noise of so many
    spins says above which score each has about twice as many; the few that have less are looked at
    again.
    """
    n_spins = bits.n_spins
    if bits.changes.sum() < 2:
        nothing = scipy.sparse.csr_array((n_spins, n_spins))
        return Screen(nothing, RIDGES[-1], 1.0), np.empty((0, 2), np.int64)
    resolvent: Any = best_resolvent(bits, RIDGES)
    scales = score_scales(bits, resolvent.ridge, *resolvent.all_diagonals(n_jobs))
    most = most_candidates(bits)
    levels = [_level_by_noise(times * most / n_spins) for times in _LEVELS]
    found = ScoreScreen(bits, resolvent.ridge, levels[0], scales)
    kept = screened(
        found,
        bits.packed,
        checkpoint=checkpoint,
        n_jobs=n_jobs,
        progress=progress,
        run=current_executor(),
    )
    found.resolvent = resolvent
    pairs = kept.pairs
    scores = kept.values[:, 0]
    for level in dict.fromkeys([*levels[1:], LEAST_SCORE]):
        n_found = np.bincount(pairs.ravel(), minlength=n_spins)
        short = np.flatnonzero((n_found < most) & bits.changes)
        pairs, scores = _looked_at_again(found, short, level, pairs, scores, n_jobs)
    matrix = symmetric_matrix(pairs, scores, n_spins)
    return Screen(matrix, resolvent.ridge, scales.error, levels[0]), _best_of_either(matrix, most)


def _level_by_noise(fraction: float) -> float:
    """The score that such a fraction of a spin's pairs exceed by noise."""
    return max(-float(ndtri(min(fraction, 0.5))), LEAST_SCORE)


def _looked_at_again(
    found: ScoreScreen,
    short: IntArray,
    level: float,
    pairs: Pairs,
    scores: FloatArray,
    n_jobs: int | None,
) -> tuple[Pairs, FloatArray]:
    """Pairs and scores, and those of spins that have too few, down to a lower level."""
    more = [
        found.pairs_of(short[first : first + sizes.BAND], level, None, n_jobs)
        for first in range(0, len(short), sizes.BAND)
    ]
    pairs = np.concatenate([pairs, *(np.sort(one.pairs, axis=1) for one in more)])
    scores = np.concatenate([scores, *(one.values[:, 0] for one in more)])
    _, place = np.unique(keys_of(pairs, found.bits.n_spins), return_index=True)
    return pairs[place], scores[place]


def _best_of_either(matrix: scipy.sparse.csr_array, most: int) -> Pairs:
    """Pairs that are among the best of either spin, as in `candidates`."""
    size = np.round(np.abs(matrix.data), DIGITS)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((matrix.indices, -size, rows))
    best = order[np.arange(len(order)) - matrix.indptr[rows] < most]
    pairs = np.column_stack([rows[best], matrix.indices[best]]).astype(np.int64)
    n_spins = matrix.shape[0]
    return pairs_of(distinct(keys_of(np.sort(pairs, axis=1), n_spins)), n_spins)
