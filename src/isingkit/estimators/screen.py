"""Screen: which pairs deserve a closer look, from ridge regressions whose noise is calibrated on
the data; then elimination.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.stats import norm

from isingkit._kernels import auto as kernels
from isingkit._kernels import estimators as matrices
from isingkit._kernels.threads import one_blas_thread, parallel_map
from isingkit.arrays import FloatArray
from isingkit.estimators.bits import Bits
from isingkit.estimators.dual import Dual
from isingkit.estimators.executor import current_executor
from isingkit.estimators.normal import NormalEquations, factor_of, inverse_of
from isingkit.estimators.tiles import (
    BAND,
    TRIFLE,
    Kept,
    bytes_of_responses,
    screened,
    spins_of_band,
)

Pairs = NDArray[np.int64]  # (n, 2), first < second
RIDGES = (0.3, 1.0, 3.0)
_LOOKED_AT = 64  # spins whose error decides on the ridge
_LEAST_SCORE = 1.5  # to be a candidate
_DIGITS = 6  # of scores that count


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """Ridge estimates in units of their noise."""

    # (n_spins, n_spins): symmetric, 0 on the diagonal; about normal with standard deviation 1 for
    # far pairs; or CSR
    scores: Any
    ridge: float  # the one of the smallest leave-one-out error
    error: float  # mean squared leave-one-out error of a spin
    least: float = 0.0  # where scores are CSR, smaller ones are left out


@dataclass(frozen=True, slots=True, eq=False)
class Elimination:
    """What elimination left, and in which order the rest went."""

    survivors: Pairs  # kept at either end
    directed: NDArray[np.int64]  # (2 n_candidates, 2): a spin, and a candidate of it
    order: NDArray[
        np.int64
    ]  # (2 n_candidates,): 1 for the candidate that the spin dropped first, and so on; 0 if it kept it


def screen(normal: NormalEquations) -> Screen:
    """The screen by the ridge among RIDGES that predicts left-out samples best."""
    if normal.changes.sum() < 2:
        return Screen(np.zeros_like(normal.matrix), RIDGES[-1], 1.0)
    return screen_at(normal, *_best_ridge(normal, RIDGES, None))


def best_ridge(
    normal: NormalEquations | Bits, ridges: tuple[float, ...], products: FloatArray | None = None
) -> float:
    """The one of the smallest leave-one-out error, by up to 64 spins. `products`: of samples of
    bits, where they are known.
    """
    if isinstance(normal, Bits) and products is None:
        products = normal.products_of_samples()
    return _best_ridge(normal, ridges, products)[0] if normal.changes.sum() > 1 else ridges[-1]


def _best_ridge(
    normal: NormalEquations | Bits, ridges: tuple[float, ...], products: FloatArray | None
) -> tuple[float, FloatArray | None]:
    """The same, and the factor of normal equations with that ridge."""
    changing = np.flatnonzero(normal.changes)
    spins = changing[np.linspace(0, len(changing) - 1, min(_LOOKED_AT, len(changing))).astype(int)]
    best, least, factor = ridges[-1], *_error_at(normal, ridges[-1], spins, products)
    for ridge in ridges[-2::-1]:  # downwards while that helps: errors fall, then rise
        error, other = _error_at(normal, ridge, spins, products)
        if error >= least:
            break
        best, least, factor = ridge, error, other
    return best, factor


def noise_at(normal: NormalEquations | Bits, ridge: float) -> float:
    """Standard deviation of the ridge estimate of a coupling that is not there, about the same for
    all pairs.
    """
    if np.isinf(ridge) or normal.changes.sum() < 2:
        return float(1 / np.sqrt(normal.n_effective))
    if isinstance(normal, Bits):
        diagonal, squares = _diagonals(Dual(normal, ridge), np.arange(normal.n_spins), None)
    else:
        _, diagonal, squares = _resolvent(normal, ridge)
    left_out, noise = _noise(normal, ridge, diagonal, squares)
    return float(np.sqrt(left_out[normal.changes].mean() * noise[normal.changes].mean()))


def _error_at(
    normal: NormalEquations | Bits,
    ridge: float,
    spins: NDArray[np.intp],
    products: FloatArray | None,
) -> tuple[float, FloatArray | None]:
    """Mean squared leave-one-out error of these spins at one ridge; and the factor of normal
    equations.
    """
    if isinstance(normal, Bits):
        return float(
            _left_out(normal, ridge, *_diagonals(Dual(normal, ridge, products), spins, None))[
                0
            ].mean()
        ), None
    columns = np.zeros((normal.n_spins, len(spins)), order="F")
    columns[spins, np.arange(len(spins))] = normal.n_samples
    factor = factor_of(normal, ridge)
    resolvent, _ = lapack.dpotrs(factor, columns, lower=0, overwrite_b=1)
    diagonal, squares = resolvent[spins, np.arange(len(spins))], (resolvent**2).sum(axis=0)
    return float(_left_out(normal, ridge, diagonal, squares)[0].mean()), factor


def _left_out(
    normal: NormalEquations | Bits, ridge: float, diagonal: FloatArray, squares: FloatArray
) -> tuple[FloatArray, float]:
    r"""Mean squared leave-one-out errors of spins, and t2, from R_ii and (R^2)_ii of those spins.

    With C the sample correlations, z = \lambda / \alpha and R = (C + z)^{-1}: t = Tr C R / N is the
    share of unknowns in use, and a residual left out is a residual over 1 - t / \alpha.
    """
    alpha, z = normal.n_effective / normal.n_spins, ridge * normal.n_spins / normal.n_samples
    in_use, turn = 1 - z * diagonal.mean(), -(diagonal - z * squares).mean()
    effective = z / (1 - in_use / alpha)
    in_use_twice = (in_use + effective * turn) / (1 + effective * turn / alpha)
    return np.maximum(1 / diagonal - z * squares / diagonal**2, 1e-12) / (
        1 - in_use / alpha
    ) ** 2, in_use_twice


def screen_at(normal: NormalEquations, ridge: float, factor: FloatArray | None = None) -> Screen:
    r"""Scores of ridge estimates at one ridge.

    The noise of \hat J_ij is E_i [C' (C' + k)^{-2}]_jj / M with E_i the leave-one-out error, where
    the true correlations C' with their effective ridge k are told from the sample's by t2: [C
    R^2]_jj (1 - t2 / \alpha).
    """
    scores, diagonal, squares = _resolvent(normal, ridge, factor)
    left_out, noise = _noise(normal, ridge, diagonal, squares)
    own, others = 1 / (diagonal * np.sqrt(left_out)), 1 / np.sqrt(noise)
    own[~normal.changes], others[~normal.changes] = 0.0, 0.0
    parallel_map(
        matrices.scaled_both_ways, normal.n_spins, scores, own, others, chunk=matrices.TILE
    )
    scores[tuple(normal.unobserved.T)] = scores[tuple(normal.unobserved.T[::-1])] = 0.0
    return Screen(scores, ridge, float(left_out[normal.changes].mean()))


def _resolvent(
    normal: NormalEquations, ridge: float, factor: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """R, its diagonal, and that of its square; `factor`: of the normal equations, where it is
    known. It is overwritten.
    """
    resolvent, n_tiles = inverse_of(normal, ridge, factor), -(-normal.n_spins // matrices.TILE)
    squares = np.empty((n_tiles, normal.n_spins))
    parallel_map(matrices.mirrored, n_tiles, resolvent, float(normal.n_samples), squares)
    return resolvent, np.diagonal(resolvent).copy(), squares.sum(axis=0)


def _noise(
    normal: NormalEquations | Bits, ridge: float, diagonal: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The noise of estimate (i, j) has variance left_out[i] * noise[j]."""
    alpha, z = normal.n_effective / normal.n_spins, ridge * normal.n_spins / normal.n_samples
    errors, in_use_twice = _left_out(
        normal, ridge, diagonal[normal.changes], squares[normal.changes]
    )
    left_out = np.ones(normal.n_spins)
    left_out[normal.changes] = errors
    return left_out, np.maximum(
        (diagonal - z * squares) * (1 - in_use_twice / alpha) / normal.n_effective, 1e-300
    )


def candidates(found: Screen, normal: NormalEquations) -> Pairs:
    """Pairs that are among the best of either spin and above the noise; few enough for the samples.

    Of equal scores, which rounding may tell apart, those of the first spins are better: equal
    columns are not all candidates.
    """
    sizes, most = np.round(np.abs(found.scores), _DIGITS), _most_candidates(normal)
    level = np.partition(sizes, -most, axis=1)[:, -most]
    best = sizes >= level[:, None]
    for i in np.flatnonzero(best.sum(axis=1) > most):
        equal = np.flatnonzero(sizes[i] == level[i])
        best[i, equal[most - int((sizes[i] > level[i]).sum()) :]] = False
    return np.argwhere(np.triu((best | best.T) & (sizes > _LEAST_SCORE), 1))


def _most_candidates(normal: NormalEquations | Bits) -> int:
    return int(min(np.clip(normal.n_effective // 8, 2, 25), normal.n_spins - 1))


@dataclass(slots=True, eq=False)
class ScoreScreen:
    """Pairs of large score, tile by tile."""

    bits: Bits
    ridge: float
    least: float
    # (n_spins,): 1 / (R_ii e_i), e_i the leave-one-out error; 0 for spins that never change
    own: FloatArray
    others: FloatArray  # (n_spins,): 1 / noise
    _dual: Any = None

    @property
    def n_bytes(self) -> int:
        """Memory beyond the bits themselves."""
        return bytes_of_responses(self.bits)

    def settings(self) -> dict[str, Any]:
        """What the result depends on, beside the data."""
        return {
            "screen": "scores",
            "ridge": self.ridge,
            "least": self.least,
            "centred": bool(self.bits.sums.any()),
        }

    def prepare(self, n_jobs: int | None = None) -> None:
        """Make what all bands need, where it is not there yet."""
        if self._dual is None:
            dual = Dual(self.bits, self.ridge)
            dual.prepare()
            self._dual = dual

    def band(self, number: int, n_jobs: int | None = None) -> Kept:
        """Pairs of the spins of one band with all later ones."""
        self.prepare(n_jobs)
        rows = spins_of_band(self.bits, number)
        return self.pairs_of(rows, self.least, rows, n_jobs)

    def pairs_of(
        self,
        rows: NDArray[np.int64],
        least: float,
        after: NDArray[np.int64] | None,
        n_jobs: int | None,
    ) -> Kept:
        """Pairs (i, j) of spins i with all others, or later ones, of a score above `least`."""
        y, factor = (
            self._dual.responses(rows, n_jobs),
            self.bits.n_samples / (2 * self.ridge * self.bits.n_spins),
        )
        of_rows, of_spins = (
            factor * np.stack([self.own[rows], self.others[rows]]),
            np.stack([self.others, self.own]),
        )
        pairs, sums = self.bits.large_sums(
            y, least * (1 - TRIFLE), of_rows, of_spins, after=after, n_jobs=n_jobs
        )
        i, j = rows[pairs[:, 0]], pairs[:, 1]
        scores = factor * sums * (self.own[i] * self.others[j] + self.own[j] * self.others[i])
        passes = (np.abs(scores) > least) & (i != j)
        return Kept(np.column_stack([i, j])[passes], np.column_stack([scores, scores])[passes])


def screen_by_tiles(
    bits: Bits, checkpoint: Path | None = None, n_jobs: int | None = None, progress: bool = False
) -> tuple[Screen, Pairs]:
    """What `screen` and `candidates` find, but only what may matter is stored: scores are CSR.

    A pair is a candidate where its score is among the best of either spin. The noise of so many
    spins says above which score each has about twice as many; the few that have less are looked at
    again.
    """
    n_spins, most = bits.n_spins, _most_candidates(bits)
    if bits.changes.sum() < 2:
        return Screen(scipy.sparse.csr_array((n_spins, n_spins)), RIDGES[-1], 1.0), np.empty(
            (0, 2), np.int64
        )
    products = bits.products_of_samples()
    ridge = best_ridge(bits, RIDGES, products)
    dual = Dual(bits, ridge, products)
    diagonal, squares = _diagonals(dual, np.arange(n_spins), n_jobs)
    left_out, noise = _noise(bits, ridge, diagonal, squares)
    own, others = 1 / (diagonal * np.sqrt(left_out)), 1 / np.sqrt(noise)
    own[~bits.changes], others[~bits.changes] = 0.0, 0.0
    leasts = [
        max(float(norm.isf(min(share * most / n_spins, 0.5))), _LEAST_SCORE)
        for share in (1, 4, 16, 64)
    ]
    found = ScoreScreen(bits, ridge, leasts[0], own, others)
    kept = screened(
        found,
        bits.packed,
        checkpoint=checkpoint,
        n_jobs=n_jobs,
        progress=progress,
        run=current_executor(),
    )
    found._dual = (
        dual  # only now: workers of a cluster make their own, which is quicker than to send it
    )
    pairs, scores = kept.pairs, kept.values[:, 0]
    for least in dict.fromkeys([*leasts[1:], _LEAST_SCORE]):
        short = np.flatnonzero(
            (np.bincount(pairs.ravel(), minlength=n_spins) < most) & bits.changes
        )
        more = [
            found.pairs_of(short[first : first + BAND], least, None, n_jobs)
            for first in range(0, len(short), BAND)
        ]
        pairs = np.concatenate([pairs, *(np.sort(one.pairs, axis=1) for one in more)])
        _, place = np.unique(pairs[:, 0] * n_spins + pairs[:, 1], return_index=True)
        pairs, scores = (
            pairs[place],
            np.concatenate([scores, *(one.values[:, 0] for one in more)])[place],
        )
    matrix = _both_ways(pairs, scores, n_spins)
    return Screen(matrix, ridge, float(left_out[bits.changes].mean()), leasts[0]), _best_of_either(
        matrix, most
    )


def _diagonals(dual: Dual, some: NDArray[Any], n_jobs: int | None) -> tuple[FloatArray, FloatArray]:
    """R_ii and (R^2)_ii of some spins."""
    dual.prepare()
    factor = dual.bits.n_samples / (dual.ridge * dual.bits.n_spins)
    left, squares = dual.left_and_squares(some, n_jobs)
    return factor * left, factor**2 * squares


def _both_ways(pairs: Pairs, values: FloatArray, n_spins: int) -> scipy.sparse.csr_array:
    both = np.concatenate([pairs, pairs[:, ::-1]])
    matrix = scipy.sparse.csr_array(
        (np.concatenate([values, values]), (both[:, 0], both[:, 1])), shape=(n_spins, n_spins)
    )
    matrix.sort_indices()
    return matrix


def _best_of_either(matrix: scipy.sparse.csr_array, most: int) -> Pairs:
    """Pairs that are among the best of either spin, as in `candidates`."""
    n_spins, sizes = matrix.shape[0], np.round(np.abs(matrix.data), _DIGITS)
    rows = np.repeat(np.arange(n_spins), np.diff(matrix.indptr))
    order = np.lexsort((matrix.indices, -sizes, rows))
    best = order[np.arange(len(order)) - matrix.indptr[rows] < most]
    pairs = np.sort(np.column_stack([rows[best], matrix.indices[best]]).astype(np.int64), axis=1)
    return np.unique(pairs, axis=0)


def eliminate(
    normal: NormalEquations | Bits, pairs: Pairs, n_jobs: int | None = None
) -> Elimination:
    """Backward elimination of each spin's candidates by the extended Bayesian criterion."""
    graph = neighbours(pairs, normal.n_spins)
    order = np.zeros(len(graph.indices), dtype=np.int64)
    cost = np.log(max(normal.n_effective, 2.0)) + np.log(max(normal.n_spins, 2))
    arguments = (normal.source, graph.indptr, graph.indices, normal.n_effective, cost, order)
    with one_blas_thread():
        parallel_map(kernels.eliminate, normal.n_spins, *arguments, chunk=16, n_jobs=n_jobs)
    rows = np.repeat(np.arange(normal.n_spins), np.diff(graph.indptr))
    directed = np.column_stack([rows, graph.indices])
    left = np.sort(directed[order == kernels.KEPT], axis=1)
    return Elimination(np.unique(left, axis=0).reshape(-1, 2), directed, order)


def neighbours(pairs: Pairs, n_spins: int) -> Any:
    """Neighbours of each spin, CSR with sorted indices."""
    graph = _both_ways(pairs, np.ones(len(pairs)), n_spins)
    graph.indptr, graph.indices = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    return graph
