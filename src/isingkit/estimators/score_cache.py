"""ScoreCache: approximate z-scores of pairs outside a fitted graph.

Each is the mean over both directions of the score of spin j in the regression of spin i, made
orthogonal to the neighbours of i by linear regression. `DenseScores` keeps all pairs in a matrix;
`SparseScores` keeps those that stand out, and computes others from bits. Why it misses none:
docs/design/tiles.md.
"""

from copy import copy
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from isingkit._kernels import score_cache as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs, distinct
from isingkit.estimators import sizes
from isingkit.estimators.bits import Bits, bits_of
from isingkit.estimators.column_moments import parts_along
from isingkit.estimators.executor import current_executor
from isingkit.estimators.fitted_graph import FittedGraph, Samples
from isingkit.estimators.graph import keys_of, pairs_of, symmetric_matrix
from isingkit.estimators.normal import NormalEquations, correlations
from isingkit.estimators.tiles import CorrelationScreen, screened

# correlation from which on a neighbour may hide much of what another spin has to say
_NEAR = 0.2
# spins that seem near to each by noise, at most, before a larger correlation is asked for
_NEAR_BY_NOISE = 50.0
_LEAST_UNEXPLAINED = 0.02  # of a spin's variance by the neighbours of another
_SAME = 1 - 1e-4  # of sums that differ by less, which rounding may do, the first spin's is taken
_MOST_PLAUSIBLE = 1e6  # pairs that noise makes plausible: each takes some 300 bytes
_MOST_SPINS = 10_000  # beyond, those pairs are plausible that are suspects
_ROWS = 256  # of a matrix of all pairs, gone through at a time
_PROBED = 4096  # spins, where all are too many, that tell whether these have a common cause


def n_probed(n_spins: int) -> int:
    """Spins enough to see whether all move together, by tiles."""
    return -(-n_spins // -(-n_spins // _PROBED))


def least_plausible_z(least: float, n_spins: int) -> float:
    """A z-score that noise exceeds in no more than about a million pairs of all, if `least` is
    less.
    """
    share = min(_MOST_PLAUSIBLE / max(n_spins, 1) ** 2, 0.5)
    return max(least, -float(ndtri(share)))


def n_plausible_pairs(n_spins: int, are_rows_few: bool) -> float:
    """How many pairs noise makes plausible where z-scores count from 1 on, or 2 where rows are
    few.
    """
    if are_rows_few and n_spins > _MOST_SPINS:
        return 0.0
    tail = float(ndtr(-2.0 if are_rows_few else -1.0))
    return min(tail * n_spins**2, _MOST_PLAUSIBLE)


class ScoreCache(Protocol):
    """What selection and diagnostics ask of pairs outside the graph."""

    screening_z: float  # approximate z-score from which on a pair is tested

    def update(self, fitted: FittedGraph, chosen: IntArray, residuals: FloatArray) -> None:
        """Take in the regressions of these spins, which have changed."""

    def suspects(self, fitted: FittedGraph, chosen: IntArray) -> IntArray:
        """Pairs with one of these spins that are to be tested."""

    def approximate(self, fitted: FittedGraph, pairs: Pairs) -> FloatArray:
        """Approximate z-scores."""

    def plausible(self, fitted: FittedGraph, least: float) -> tuple[Pairs, FloatArray]:
        """Pairs outside with larger approximate z-scores than the least, as far as known; these."""

    def strongest(
        self,
        fitted: FittedGraph,
        rows: FloatArray,
        least: FloatArray,
        barred: tuple[IntArray, IntArray],
    ) -> tuple[IntArray, FloatArray]:
        """For each row the spin not barred of the largest |sum of row times spin|; and that sum.

        -1 where it is not above `least`.
        """

    def copied(self) -> "ScoreCache":
        """The same, to be updated on its own."""

    def probe(self) -> IntArray:
        """Spins enough to see whether all move together."""

    def leftover(self, fitted: FittedGraph, some: IntArray) -> FloatArray:
        """Approximate z-scores of all pairs of some spins; a new array."""

    def correlations(self, some: IntArray) -> FloatArray:
        """(n_some, n_some), of spins that change."""

    def most_alike(self, candidates: Pairs, limit: float) -> tuple[float, Pairs]:
        """The largest |correlation| of two spins, and the pairs above a limit."""


@dataclass(slots=True, eq=False)
class DenseScores:
    """Scores of all pairs, in a matrix."""

    single: NDArray[np.float32]  # (n_spins, n_rows): spins, 0 where not observed
    moments: NormalEquations
    # (n_spins, n_spins): over the scales of both spins correlations, about 0 without fields
    of_regressors: FloatArray
    scales: FloatArray  # (n_spins,)
    means: FloatArray  # (n_spins,): of spins that moments are not about
    screening_z: float
    scores: NDArray[np.float32] = field(init=False)  # row i: of the regression of spin i

    def __post_init__(self) -> None:
        self.scores = np.zeros(self.of_regressors.shape, dtype=np.float32)

    @property
    def changes(self) -> BoolArray:
        return self.moments.changes

    def update(self, fitted: FittedGraph, chosen: IntArray, residuals: FloatArray) -> None:
        def fill(start: int, stop: int) -> None:
            some = chosen[start:stop]
            sums = residuals[start:stop].astype(np.float32) @ self.single.T
            self.scores[some] = sums / self._scale_of(fitted, some) * self.changes

        parallel_map(fill, len(chosen), chunk=64, n_jobs=fitted.n_jobs)

    def _scale_of(self, fitted: FittedGraph, some: IntArray) -> FloatArray:
        """(n_some, n_spins): standard errors of scores in the regressions of these spins."""
        left = np.empty((len(some), len(self.scores)))
        kernels.unexplained(some, self.of_regressors, self.scales, fitted.graph.csr, left)
        return _scale(fitted.information[some][:, None] * fitted.columns.variances, left)

    def suspects(self, fitted: FittedGraph, chosen: IntArray) -> IntArray:
        found = [np.empty((0, 2), np.int64)]
        for start in range(0, len(chosen), _ROWS):
            some = chosen[start : start + _ROWS]
            both = self.scores[some] + self.scores[:, some].T
            here = np.argwhere(np.abs(both) > 2 * self.screening_z)
            pairs = np.column_stack([some[here[:, 0]], here[:, 1]])
            found.append(pairs[np.abs(self.approximate(fitted, pairs)) > self.screening_z])
        return np.concatenate(found)

    def plausible(self, fitted: FittedGraph, least: float) -> tuple[Pairs, FloatArray]:
        """In double precision: what follows from single would depend on the processor."""
        n_spins = len(self.scores)
        scores = np.empty(self.scores.shape)
        for start in range(0, n_spins, _ROWS):
            some = np.arange(start, min(start + _ROWS, n_spins))
            sums = fitted.residuals_of(some) @ fitted.samples.outcomes.T
            sums /= self._scale_of(fitted, some)
            scores[some] = sums * self.changes * self.changes[some, None]
        pairs = [np.empty((0, 2), np.int64)]
        for start in range(0, n_spins, _ROWS):
            rows = slice(start, start + _ROWS)
            both = scores[rows, start:]
            both += scores[start:, rows].T.copy()
            row, column = np.nonzero(np.triu(np.abs(both) > 2 * least, 1))
            pairs.append(np.column_stack([row, column]) + start)
        found = np.concatenate(pairs)
        outside = found[~fitted.graph.find(found)[0]]
        z_scores = fitted.columns.as_normal(scores[tuple(outside.T)] / 2, outside)
        is_large = np.abs(z_scores) > least
        return outside[is_large], z_scores[is_large]

    def approximate(self, fitted: FittedGraph, pairs: Pairs) -> FloatArray:
        first, second = pairs.T
        both = self.scores[first, second] + self.scores[second, first]
        return fitted.columns.as_normal(np.asarray(both / 2, dtype=np.float64), pairs)

    def strongest(
        self,
        fitted: FittedGraph,
        rows: FloatArray,
        least: FloatArray,
        barred: tuple[IntArray, IntArray],
    ) -> tuple[IntArray, FloatArray]:
        approximate = np.abs(rows.astype(np.float32) @ self.single.T)
        approximate[barred] = 0.0
        largest = approximate.max(axis=1, initial=0.0)
        best = np.argmax(approximate >= _SAME * largest[:, None], axis=1)
        sums = np.abs(np.einsum("ij,ij->i", rows, self.single[best]))  # in double precision
        return np.where((sums > least) & (largest > 0), best, -1), sums

    def copied(self) -> "DenseScores":
        new = copy(self)
        new.scores = self.scores.copy()
        return new

    def probe(self) -> IntArray:
        return np.arange(len(self.scores))

    def leftover(self, fitted: FittedGraph, some: IntArray) -> FloatArray:
        both = np.add(self.scores, self.scores.T, dtype=np.float64)  # `probe` has all spins
        both /= 2
        return both

    def correlations(self, some: IntArray) -> FloatArray:
        some = some[self.changes[some]]
        return self._correlations(some, some)

    def _correlations(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """(n_rows, n_columns), of spins that change; 0 for those never present together."""
        moments = self.moments
        variances = moments.variances / moments.n_samples - self.means**2
        deviations = np.sqrt(np.maximum(variances, 1e-12))
        part = moments.matrix[np.ix_(rows, columns)]
        part /= moments.n_samples
        if self.means.any():
            part -= np.outer(self.means[rows], self.means[columns])
        part /= deviations[rows, None]
        part /= deviations[columns]
        for first, second in (moments.unobserved.T, moments.unobserved[:, ::-1].T):
            here = np.isin(first, rows) & np.isin(second, columns)
            row = np.searchsorted(rows, first[here])
            part[row, np.searchsorted(columns, second[here])] = 0.0
        return part

    def most_alike(self, candidates: Pairs, limit: float) -> tuple[float, Pairs]:
        changing = np.flatnonzero(self.changes)
        largest = 0.0
        large = [np.empty((0, 2), np.int64)]
        for start in range(0, len(changing), _ROWS):
            rows = changing[start : start + _ROWS]
            columns = changing[start:]
            values = np.triu(np.abs(self._correlations(rows, columns)), 1)
            largest = max(largest, float(values.max(initial=0.0)))
            row, column = np.nonzero(values > limit)
            large.append(np.column_stack([rows[row], columns[column]]))
        return largest, np.concatenate(large)


def dense_scores(
    moments: NormalEquations, samples: Samples, fit_fields: bool, screening_z: float
) -> DenseScores:
    """Room for the scores of all pairs."""
    single = samples.outcomes.astype(np.float32)
    single[~moments.changes] = 0.0
    means = np.zeros(moments.n_spins)
    if not fit_fields:  # moments are those of spins as they are
        means = samples.spins @ samples.sample_weights / samples.sample_weights.sum()
    # weights make rounding errors of variances that are 0
    scales = np.sqrt(np.maximum(moments.variances, 0.0))
    scales[~moments.changes] = np.inf
    of_regressors = moments.matrix
    if len(moments.unobserved):
        of_regressors = correlations(moments)
        np.fill_diagonal(of_regressors, 1.0)
        scales = np.ones(moments.n_spins)
    if samples.causes.are_hidden:
        of_regressors, scales = _beside_causes(of_regressors, scales, samples, fit_fields)
    return DenseScores(single, moments, of_regressors, scales, means, screening_z)


def _beside_causes(
    of_regressors: FloatArray, scales: FloatArray, samples: Samples, fit_fields: bool
) -> tuple[FloatArray, FloatArray]:
    """What hidden causes leave of second moments and of their scales."""
    causes = samples.causes
    known = np.concatenate([np.ones((int(fit_fields), samples.n_rows)), causes.covariates])
    hidden = causes.regressors[causes.n_covariates :]
    parts = parts_along(samples.outcomes, samples.sample_weights, known, hidden)
    explained = parts * np.where(np.isfinite(scales), scales, 0.0)[:, None]
    left = explained @ explained.T
    np.subtract(of_regressors, left, out=left)
    return left, scales * np.sqrt(1 - (parts**2).sum(axis=1))


@dataclass(slots=True, eq=False)
class SparseScores:
    """Scores of the pairs that stand out; others are computed from bits when they are asked for."""

    bits: Bits
    centred: Bits  # the same with fields
    near: Any  # (n_spins, n_spins) CSR: ones where the correlation is above `nearness`
    nearness: float
    screening_z: float
    # row * n_spins + column of scores above screening_z
    keys: IntArray = field(init=False, default_factory=lambda: np.empty(0, np.int64))

    def update(self, fitted: FittedGraph, chosen: IntArray, residuals: FloatArray) -> None:
        n_spins = self.bits.n_spins
        large = self._beyond(fitted, chosen, residuals, self.screening_z)
        touched = np.zeros(n_spins, dtype=bool)
        touched[chosen] = True
        old = self.keys[~touched[self.keys // n_spins]]
        new = chosen[large[:, 0]] * n_spins + large[:, 1]
        self.keys = np.concatenate([old, new])

    def _beyond(
        self, fitted: FittedGraph, chosen: IntArray, residuals: FloatArray, threshold: float
    ) -> IntArray:
        """(n, 2): places in `chosen` and spins whose scores in these regressions are above the
        threshold.
        """
        n_spins = self.bits.n_spins
        found = self._large(fitted, chosen, residuals, threshold)
        around = fitted.graph.matrix(np.ones(len(fitted.graph.indices)))
        hidden = np.column_stack((around[chosen] @ self.near).nonzero()).astype(np.int64)
        keys = distinct(keys_of(found, n_spins), keys_of(hidden, n_spins))
        places = np.column_stack([keys // n_spins, keys % n_spins])
        places = places[chosen[places[:, 0]] != places[:, 1]]
        scores = self._scores(fitted, chosen, residuals, places)
        return np.asarray(places[np.abs(scores) > threshold])

    def _large(
        self, fitted: FittedGraph, chosen: IntArray, residuals: FloatArray, threshold: float
    ) -> IntArray:
        """Scores that may be large, of spins that are near to no neighbour."""
        least = np.empty(len(chosen))
        fixed = (self.bits.source, chosen, fitted.graph.csr, least)
        kernel = kernels.least_eigenvalues
        parallel_map(kernel, len(chosen), *fixed, chunk=64, n_jobs=fitted.n_jobs)
        degrees = fitted.graph.degrees[chosen]
        explained = degrees * self.nearness**2 / np.maximum(least, 1e-6)  # at most
        of_rows = np.zeros((2, len(chosen)))
        of_rows[0] = 1 / _scale(fitted.information[chosen], 1 - explained)
        of_spins = np.zeros((2, self.bits.n_spins))
        of_spins[0] = self.bits.changes / np.sqrt(fitted.columns.variances)
        n_jobs = fitted.n_jobs
        found, _ = self.bits.large_sums(residuals, threshold, of_rows, of_spins, n_jobs=n_jobs)
        return found

    def suspects(self, fitted: FittedGraph, chosen: IntArray) -> IntArray:
        n_spins = self.bits.n_spins
        touched = np.zeros(n_spins, dtype=bool)
        touched[chosen] = True
        pairs = np.column_stack([self.keys // n_spins, self.keys % n_spins])
        pairs = pairs[touched[pairs].any(axis=1)]
        pairs = pairs_of(distinct(keys_of(np.sort(pairs, axis=1), n_spins)), n_spins)
        # of both directions, the larger is above it, too
        return pairs[np.abs(self.approximate(fitted, pairs)) > self.screening_z]

    def plausible(self, fitted: FittedGraph, least: float) -> tuple[Pairs, FloatArray]:
        changing = np.flatnonzero(self.bits.changes)
        if least >= self.screening_z or self.bits.n_spins > _MOST_SPINS:
            pairs = self.suspects(fitted, changing)
        else:
            pairs = self._pairs_beyond(fitted, changing, least)
        outside = pairs[~fitted.graph.find(pairs)[0]]
        scores = self.approximate(fitted, outside)
        large = np.abs(scores) > least
        return outside[large], scores[large]

    def _pairs_beyond(self, fitted: FittedGraph, some: IntArray, threshold: float) -> Pairs:
        """Sorted pairs with a score above a threshold in either direction."""
        keys = [np.empty(0, np.int64)]
        for first in range(0, len(some), sizes.PORTION):
            chosen = some[first : first + sizes.PORTION]
            places = self._beyond(fitted, chosen, fitted.residuals_of(chosen), threshold)
            pairs = np.sort(np.column_stack([chosen[places[:, 0]], places[:, 1]]), axis=1)
            keys.append(keys_of(pairs, self.bits.n_spins))
        return pairs_of(distinct(*keys), self.bits.n_spins)

    def approximate(self, fitted: FittedGraph, pairs: Pairs) -> FloatArray:
        directed = np.concatenate([pairs, pairs[:, ::-1]])
        scores = np.empty(len(directed))
        order = np.argsort(directed[:, 0], kind="stable")
        rows, starts = np.unique(directed[order, 0], return_index=True)
        starts = np.append(starts, len(directed))
        for first in range(0, len(rows), sizes.PORTION):
            some = rows[first : first + sizes.PORTION]
            here = order[starts[first] : starts[first + len(some)]]
            own = np.searchsorted(some, directed[here, 0])
            places = np.column_stack([own, directed[here, 1]])
            scores[here] = self._scores(fitted, some, fitted.residuals_of(some), places)
        forth, back = np.split(scores, 2)
        return fitted.columns.as_normal((forth + back) / 2, pairs)

    def strongest(
        self,
        fitted: FittedGraph,
        rows: FloatArray,
        least: FloatArray,
        barred: tuple[IntArray, IntArray],
    ) -> tuple[IntArray, FloatArray]:
        n_spins = self.bits.n_spins
        of_rows = np.stack([1 / least, np.zeros(len(rows))])
        of_spins = np.tile(self.bits.changes * 1.0, (2, 1))
        n_jobs = fitted.n_jobs
        found, sums = self.bits.large_sums(rows, 1 - 1e-6, of_rows, of_spins, n_jobs=n_jobs)
        barred_keys = barred[0] * n_spins + barred[1]
        free = ~np.isin(keys_of(found, n_spins), barred_keys)
        found, size = found[free], np.abs(sums[free])
        largest = np.zeros(len(rows))
        np.maximum.at(largest, found[:, 0], size)
        best = np.full(len(rows), n_spins)
        row, spin = found[size >= _SAME * largest[found[:, 0]]].T
        np.minimum.at(best, row, spin)
        return np.where(largest > least, best, -1), largest

    def copied(self) -> "SparseScores":
        return copy(self)  # updates make new keys

    def probe(self) -> IntArray:
        return np.arange(0, self.bits.n_spins, -(-self.bits.n_spins // _PROBED))

    def leftover(self, fitted: FittedGraph, some: IntArray) -> FloatArray:
        """Not made orthogonal to neighbours."""
        residuals = fitted.residuals_of(some).astype(np.float32)
        spins = np.asarray(self.bits.packed[:, some], dtype=np.float32)
        deviations = np.sqrt(fitted.columns.variances[some])
        part = residuals @ (spins * (self.bits.changes[some] / deviations).astype(np.float32))
        information = np.maximum(fitted.information[some], 1e-9)
        part /= np.sqrt(information)[:, None]
        return np.asarray(part + part.T, dtype=np.float64) / 2

    def correlations(self, some: IntArray) -> FloatArray:
        some = some[self.bits.changes[some]]
        part = self.centred.block(some) / self.centred.n_samples
        deviations = np.sqrt(np.maximum(np.diagonal(part), 1e-12))
        return np.asarray(part / np.outer(deviations, deviations))

    def most_alike(self, candidates: Pairs, limit: float) -> tuple[float, Pairs]:
        """Of spins that are near or were candidates."""
        near = np.column_stack(scipy.sparse.triu(self.near).nonzero()).astype(np.int64)
        pairs = np.concatenate([near, candidates])
        of_ends = self.centred.scales[pairs]
        scales = of_ends[:, 0] * of_ends[:, 1]
        values = np.abs(self.centred.covariances(pairs) / scales)
        large = np.unique(pairs[values > limit], axis=0)
        return float(values.max(initial=0.0)), large

    def _scores(
        self, fitted: FittedGraph, chosen: IntArray, residuals: FloatArray, places: IntArray
    ) -> FloatArray:
        """Of spins places[:, 1] in the regressions of chosen[places[:, 0]], sorted by these."""
        row, spin = places.T
        pairs = np.column_stack([chosen[row], spin])
        left = np.empty(len(places))
        fixed = (self.bits.source, pairs, fitted.graph.csr, left)
        kernel = kernels.unexplained_of_pairs
        parallel_map(kernel, len(pairs), *fixed, chunk=4096, n_jobs=fitted.n_jobs)
        sums = self.bits.sums_of(residuals, places, fitted.n_jobs)
        variances = fitted.columns.variances[spin]
        scale = _scale(fitted.information[pairs[:, 0]] * variances, left)
        return np.asarray(sums / scale * self.bits.changes[pairs[:, 1]])


def sparse_scores(bits: Bits, screening_z: float, n_jobs: int | None) -> SparseScores:
    """With the pairs of spins that are near, whose neighbours may hide what they have to say."""
    near = _nearness(bits)
    centred = bits_of(bits.packed, True, bits.weights)
    # before covariates are taken off, spins are nearer to each other, if anything
    plain = centred if len(bits.covariates) else bits
    kept = screened(
        CorrelationScreen(plain, near), bits.packed, n_jobs=n_jobs, run=current_executor()
    )
    matrix = symmetric_matrix(kept.pairs, np.ones(len(kept.pairs)), bits.n_spins)
    return SparseScores(bits, centred, matrix, near, screening_z)


def _nearness(bits: Bits) -> float:
    """The correlation above which spins count as near."""
    tail = min(_NEAR_BY_NOISE / (2 * bits.n_spins), 0.5)
    return max(_NEAR, -float(ndtri(tail)) / np.sqrt(bits.n_samples))


def _scale(information: FloatArray, unexplained: FloatArray) -> FloatArray:
    """Standard errors of scores."""
    left = np.maximum(unexplained, _LEAST_UNEXPLAINED)
    return np.asarray(np.sqrt(np.maximum(information * left, 1e-9)))
