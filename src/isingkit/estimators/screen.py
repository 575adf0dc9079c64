"""Screen: ridge estimates of all pairs in units of their noise, and the candidates they leave."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from isingkit._kernels.threads import parallel_map
from isingkit.arrays import BoolArray, FloatArray, Pairs, distinct
from isingkit.estimators.graph import pairs_of
from isingkit.estimators.moments import SecondMoments, best_resolvent, noise_factors
from isingkit.estimators.normal import DenseResolvent, NormalEquations

RIDGES = (0.3, 1.0, 3.0)
LEAST_SCORE = 1.5  # of a candidate
DIGITS = 6  # of scores that tell one from another: rounding does not reach them
_ROWS_PER_CANDIDATE = 8
_ROWS = 64  # of a matrix, scaled or looked through at a time
# candidates of a spin
_FEWEST = 2
_MOST = 25


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """Ridge estimates in units of their noise."""

    # (n_spins, n_spins), symmetric, 0 on the diagonal, about standard normal for far pairs; or CSR
    scores: Any
    ridge: float  # the one of the smallest leave-one-out error
    error: float  # mean squared leave-one-out error of a spin
    least: float = 0.0  # where scores are CSR, smaller ones are left out


@dataclass(frozen=True, slots=True, eq=False)
class ScoreScales:
    """What makes scores of the resolvent: -R_ij (own_i others_j + own_j others_i) / 2."""

    own: FloatArray  # (n_spins,): 1 / (R_ii e_i), e_i the leave-one-out error; 0 for constants
    others: FloatArray  # (n_spins,): 1 / noise; 0 for constants
    error: float  # mean squared leave-one-out error


def score_scales(
    moments: SecondMoments, ridge: float, diagonal: FloatArray, squares: FloatArray
) -> ScoreScales:
    """From the diagonals of R and R^2."""
    left_out, noise = noise_factors(moments, ridge, diagonal, squares)
    own = 1 / (diagonal * np.sqrt(left_out))
    others = 1 / np.sqrt(noise)
    own[~moments.changes] = 0.0
    others[~moments.changes] = 0.0
    return ScoreScales(own, others, float(left_out[moments.changes].mean()))


def screen(moments: NormalEquations) -> Screen:
    """The screen by the ridge among RIDGES that predicts left-out samples best."""
    if moments.changes.sum() < 2:
        return Screen(np.zeros_like(moments.matrix), RIDGES[-1], 1.0)
    best: Any = best_resolvent(moments, RIDGES)
    return screen_at(best)


def screen_at(resolvent: DenseResolvent) -> Screen:
    """The screen at one ridge."""
    moments = resolvent.moments
    scores, diagonal, squares = resolvent.whole()
    scales = score_scales(moments, resolvent.ridge, diagonal, squares)
    _scale_both_ways(scores, scales.own, scales.others)
    first, second = moments.unobserved.T
    scores[first, second] = scores[second, first] = 0.0
    return Screen(scores, resolvent.ridge, scales.error)


def _scale_both_ways(matrix: FloatArray, own: FloatArray, others: FloatArray) -> None:
    """matrix[i, j] -> -matrix[i, j] (own_i others_j + own_j others_i) / 2 in place, 0 on the
    diagonal.
    """

    def scale(start: int, stop: int) -> None:
        some = slice(start, stop)
        factors = own[some, None] * others
        factors += own * others[some, None]
        factors /= -2
        matrix[some] *= factors

    parallel_map(scale, len(matrix), chunk=_ROWS)
    np.fill_diagonal(matrix, 0.0)


def candidates(found: Screen, moments: SecondMoments) -> Pairs:
    """Pairs that are among the best of either spin and above the noise; few enough for the samples.

    Of equal scores, which rounding may tell apart, those of the first spins are better: equal
    columns are not all candidates.
    """
    most = most_candidates(moments)
    n_spins = moments.n_spins
    keys = [np.empty(0, np.int64)]
    for start in range(0, n_spins, _ROWS):
        size = np.round(np.abs(found.scores[start : start + _ROWS]), DIGITS)
        row, column = np.nonzero(_best(size, most) & (size > LEAST_SCORE))
        row += start
        keys.append(np.minimum(row, column) * n_spins + np.maximum(row, column))
    return pairs_of(distinct(*keys), n_spins)


def _best(size: FloatArray, most: int) -> BoolArray:
    """Which are among so many of the largest of their row; the first of equal ones."""
    level = np.partition(size, -most, axis=1)[:, -most]
    best = size >= level[:, None]
    for i in np.flatnonzero(best.sum(axis=1) > most):
        equal = np.flatnonzero(size[i] == level[i])
        n_larger = int((size[i] > level[i]).sum())
        best[i, equal[most - n_larger :]] = False
    return best


def most_candidates(moments: SecondMoments) -> int:
    """Of a spin."""
    by_rows = np.clip(moments.n_effective // _ROWS_PER_CANDIDATE, _FEWEST, _MOST)
    return int(min(by_rows, moments.n_spins - 1))
