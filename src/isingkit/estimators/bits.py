"""Bits: the spins of a large network, and what is computed from their bits when it is needed
instead of being stored.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from isingkit._kernels import estimators as estimator_kernels
from isingkit._kernels import gram as gram_kernels
from isingkit._kernels import weighted_sums as kernels
from isingkit._kernels.packing import pack_words
from isingkit._kernels.sources import weights_by_nibble
from isingkit._kernels.threads import one_blas_thread, parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.estimators import sizes
from isingkit.estimators.approximate_sums import approximate_sums, product_of
from isingkit.estimators.dual import Dual
from isingkit.estimators.normal import require_undetermined
from isingkit.estimators.primal import Primal
from isingkit.exceptions import NoValuesError
from isingkit.gram import gram, gram_of
from isingkit.memory import require_memory
from isingkit.packing import PackedSpins, Words, repeated, unpacked
from isingkit.packing import bits as pack_bits
from isingkit.spins import Names, RowWeights

# error of a look-up, in units of what must be passed, from which on a product is quicker
_ROUGH = 0.45
_ROUNDING = 1e-12  # relatively, of sums that weights make


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """The bits of all spins, and the two numbers of each that everything needs."""

    packed: PackedSpins
    sums: FloatArray  # (n_spins,): of spins; zero where fields are not fitted
    scales: FloatArray  # (n_spins,): sqrt(M - s^2 / M); infinite where a spin never changes
    design_effect: float = 1.0  # rows that belong together count as fewer, by this factor
    # (n_covariates, n_rows): covariates, orthonormal, whose part of spins is taken off; and
    # (n_covariates, n_spins): sums of spins times these. With weights, both in rows times their
    # roots
    covariates: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    explained: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    weights: RowWeights | None = None  # None: each row counts 1
    _tables: FloatArray = field(default_factory=lambda: np.empty((0, 0, 0)))  # of weights
    # (n_spins,): share of all weight where a spin is not missing; empty where none is
    seen: FloatArray = field(default_factory=lambda: np.empty(0))
    are_centred: bool = True  # whether fields are fitted

    @property
    def n_spins(self) -> int:
        return self.packed.n_spins

    @property
    def n_rows(self) -> int:
        return self.packed.n_samples

    @property
    def n_samples(self) -> float:
        """Rows, or their total weight."""
        return self.n_rows if self.weights is None else float(self.weights.totals.sum())

    @property
    def n_counted(self) -> int:
        """Samples of positive weight, each as often as it was counted."""
        return self.n_rows if self.weights is None else self.weights.n_samples

    @property
    def are_plain(self) -> bool:
        """Whether correlations follow from counts: no weights, no covariates, nothing missing."""
        return self.weights is None and len(self.covariates) == 0 and self.is_complete

    @property
    def is_complete(self) -> bool:
        """Whether no value is missing."""
        return self.packed.present is None

    @property
    def roots(self) -> FloatArray:
        """(n_rows,): of weights."""
        return np.ones(self.n_rows) if self.weights is None else np.sqrt(self.weights.totals)

    @property
    def means(self) -> FloatArray:
        return self.sums / self.n_samples

    @property
    def changes(self) -> BoolArray:
        return np.isfinite(self.scales)

    @property
    def names(self) -> Names:
        return self.packed.names

    @property
    def n_effective(self) -> float:
        """As that of NormalEquations."""
        n_samples = float(self.n_samples)
        if self.weights is not None and not self.weights.are_counts:
            n_samples = self.weights.n_effective
        return n_samples / self.design_effect

    @property
    def variances(self) -> FloatArray:
        """(n_spins,): sums of squares of centred spins."""
        left = self.n_samples - self.sums / self.n_samples * self.sums
        if len(self.covariates):
            left = left - (self.explained**2).sum(axis=0)
        return np.asarray(left)

    @property
    def source(self) -> tuple[Any, ...]:
        """Where kernels count covariances."""
        words = self.packed.words
        if not self.is_complete:
            are_centred = np.array([float(self.are_centred)])
            facts = (are_centred, float(self.n_samples), self.explained, self._tables)
            return words, *facts, self.packed.present
        plain = (words, self.sums, float(self.n_samples), self.explained)
        return plain if self.weights is None else (*plain, self._tables)

    def covariances(self, pairs: IntArray) -> FloatArray:
        """(n_pairs,): sums of products of two centred spins."""
        out = np.empty(len(pairs))
        parallel_map(
            estimator_kernels.covariances_of, len(pairs), self.source, pairs, out, chunk=4096
        )
        return out

    def seen_together(self, pairs: IntArray) -> BoolArray:
        """(n_pairs,): whether both spins are present in some row that counts."""
        there = self.packed.present
        found = np.ones(len(pairs), dtype=bool)
        if there is None:
            return found
        counts = np.ones(self.n_rows) if self.weights is None else self.weights.totals
        counting = pack_bits((counts > 0).astype(np.int8)[:, None])
        for start in range(0, len(pairs), sizes.PORTION):
            some = slice(start, start + sizes.PORTION)
            first, second = pairs[some].T
            found[some] = (there[first] & there[second] & counting).any(axis=1)
        return found

    def block(self, some: IntArray) -> FloatArray:
        """(n_some, n_some): covariances of some spins."""
        sums = self.sums[some]
        if len(some) == 0:
            return np.empty((0, 0))
        stat = gram_of(self.packed[:, some], self.weights)
        if stat.joint is None:
            found = stat.sums - np.outer(sums, sums) / self.n_samples
        else:
            counts = np.maximum(stat.joint.counts, 1e-300)
            means = stat.joint.spin_sums / counts * float(self.are_centred)
            found = (stat.sums / counts - means * means.T) * self.n_samples
        if len(self.covariates):
            explained = self.explained[:, some]
            found -= explained.T @ explained
        return np.asarray(found)

    def pairwise_correlations(self, rows: IntArray, spins: slice) -> FloatArray:
        """(n_rows, n_spins): of spins with missing values, over the rows where both are there."""
        totals = self.roots**2
        mine = self._numbers(rows, np.float64, is_centred=False)
        other = self._numbers(spins, np.float64, is_centred=False)
        weighted = mine * totals
        with one_blas_thread():
            counts = np.maximum(np.abs(weighted) @ np.abs(other).T, 1e-300)
            found = weighted @ other.T / counts
            if self.are_centred:
                of_rows = weighted @ np.abs(other).T
                of_spins = np.abs(weighted) @ other.T
                found -= of_rows / counts * (of_spins / counts)
        found *= self.n_samples
        if len(self.covariates):
            found -= self.explained[:, rows].T @ self.explained[:, spins]
        return np.asarray(found / self.scales[rows][:, None] / self.scales[spins])

    def require_memory(self, n_bytes: float) -> None:
        """Refuse what needs more memory than there is, before it starts."""
        require_memory(n_bytes, n_spins=self.n_spins, n_samples=self.n_rows)

    def resolvents(self) -> Callable[[float], Any]:
        """By ridge; what all ridges share is computed once."""
        if self.n_rows >= self.n_spins:
            return self.resolvent
        products = self.products_of_samples()
        return lambda ridge: Dual(self, ridge, products)

    def resolvent(self, ridge: float) -> Any:
        """A `Dual`, or a `Primal`, whichever is smaller: two ways to the same numbers."""
        return Primal(self, ridge) if self.n_rows >= self.n_spins else Dual(self, ridge)

    def as_estimates(self, matrix: Any) -> Any:
        """Directed estimates as users get them: sparse."""
        return matrix

    def centred(self, some: Any) -> FloatArray:
        """Centred spins, (n_some, n_rows), times roots of weights; those that never change are
        zero.

        Where values are missing, they are taken for their spin's mean, and the others are made so
        much larger that the variance stays.
        """
        values = self._numbers(some, np.float64, is_centred=True)
        if self.weights is not None:
            values *= self.roots
        if len(self.covariates):
            scale = 1.0 if self.is_complete else np.sqrt(self.seen[some])[:, None]
            values -= scale * (self.explained[:, some].T @ self.covariates)
        values[~self.changes[some]] = 0.0
        return values

    def _numbers(self, some: Any, dtype: Any, is_centred: bool) -> NDArray[Any]:
        """(n_some, n_rows): spins, 0 where missing."""
        words = np.ascontiguousarray(self.packed.words[some])
        values = unpacked(words, self.n_rows, dtype)
        if is_centred:
            values -= self.means[some][:, None].astype(dtype)
        if self.packed.present is not None:
            there = np.ascontiguousarray(self.packed.present[some])
            values *= unpacked(there, self.n_rows, np.int8) > 0
            if is_centred:
                values /= np.sqrt(self.seen[some])[:, None].astype(dtype)
        return values

    def for_signs(self, rows: FloatArray) -> FloatArray:
        """What to multiply signs of spins by, where `rows`, (n, n_rows), are for centred ones.

        For rows that are orthogonal to what centring takes off, as sums of centred spins are.
        """
        return rows if self.weights is None else rows * self.roots

    def slopes_on(self, covariates: FloatArray) -> FloatArray:
        """(n_spins, n): least squares of each spin on the covariates that were taken off, alone.

        covariates: (n_rows, n)
        """
        factor = np.linalg.qr(self.roots[:, None] * covariates, mode="r")
        return np.asarray(solve_triangular(factor, self.explained).T)

    def products_of_samples(self) -> FloatArray:
        """(n_rows, n_rows): sums over spins of products of two samples, spins centred as `centred`
        has them; by counting, where no value is missing.
        """
        if not self.is_complete:
            return self._products_of_numbers()
        words = np.zeros((self.n_rows, -(-self.n_spins // 64)), np.uint64)
        shift = np.zeros(self.n_rows)
        means = np.where(self.changes, self.means, 0.0)
        for first in range(0, self.n_spins, sizes.TILE):
            some = slice(first, first + sizes.TILE)
            of_spins = np.ascontiguousarray(self.packed.words[some])
            values = unpacked(of_spins, self.n_rows, np.int8)
            values[~self.changes[some]] = -1  # the same in all samples: no bit, and taken off below
            n_words = -(-len(values) // 64)
            tile = words[:, first // 64 : (first + sizes.TILE) // 64]
            parallel_map(pack_words, n_words, values, tile)
            shift += means[some] @ values
        n_constant = int((~self.changes).sum())
        transposed = PackedSpins(words, self.n_spins, tuple(map(str, range(self.n_rows))))
        products: FloatArray = gram(transposed).sums - float(n_constant)
        products -= shift
        products -= shift[:, None]
        products += means @ means
        if self.weights is not None:
            products *= self.roots
            products *= self.roots[:, None]
        for covariate in self.covariates:  # P K P with P = 1 - z z'
            part = products @ covariate
            part -= covariate * (covariate @ part) / 2
            products -= np.outer(covariate, part)
            products -= np.outer(part, covariate)
        return products

    def _products_of_numbers(self) -> FloatArray:
        products = np.zeros((self.n_rows, self.n_rows))
        with one_blas_thread():
            for first in range(0, self.n_spins, sizes.TILE):
                values = self.centred(slice(first, first + sizes.TILE))
                products += values.T @ values
        return products

    def large_sums(
        self,
        rows: FloatArray,
        threshold: float,
        of_rows: FloatArray,
        of_spins: FloatArray,
        *,
        after: IntArray | None = None,
        is_centred: bool = False,
        n_jobs: int | None = None,
    ) -> tuple[IntArray, FloatArray]:
        """(n, 2): rows r and spins j, sorted, with |x| (of_rows[:, r] . of_spins[:, j]) above the
        threshold; and x = sum_m rows[r, m] s_jm.

        Sums are approximate, with an error that is known; those that may pass are computed again in
        double precision.
        of_rows: (2, n_rows)     of_spins: (2, n_spins)     all not negative
        after: only spins j > after[r] count
        is_centred: where values are missing, spins are as `centred` has them; else 0 there, and as
        they are
        """
        after = np.full(len(rows), -1) if after is None else after
        largest = of_spins.max(axis=1, initial=0.0) @ of_rows  # factors of rows
        allowed = _ROUGH * threshold / np.maximum(largest, 1e-300)
        looks: Any = None
        if self.is_complete:
            looks = approximate_sums(rows, of_rows, allowed, n_jobs)
        else:
            most = 2 / np.sqrt(self.seen.min()) if is_centred else 1.0
            looks = [product_of(rows, np.arange(len(rows)), of_rows, float(most), n_jobs)]
        pairs = [np.empty((0, 2), np.int64)]
        sums = [np.empty(0)]
        least = max(int(after.min(initial=self.n_spins)) + 1, 0)
        start = least // sizes.WIDE * sizes.WIDE
        for first in range(start, self.n_spins, sizes.WIDE):
            some = slice(first, first + sizes.WIDE)
            factors = of_spins[:, some]
            if self.is_complete:
                words = np.ascontiguousarray(self.packed.words[some])
                near = [one.among(words, factors, after - first, threshold) for one in looks]
            else:
                values = self._numbers(some, np.float32, is_centred)
                near = [
                    one.among_values(values, factors, after - first, threshold) for one in looks
                ]
            # no look, where there are no rows
            found = np.concatenate([np.empty((0, 2), np.int64), *near])
            found[:, 1] += first
            exact = self.sums_of(rows, found, n_jobs, is_centred=is_centred)
            row, spin = found.T
            of_pairs = (of_rows[:, row] * of_spins[:, spin]).sum(axis=0)
            passes = np.abs(exact) * of_pairs > threshold
            pairs.append(found[passes])
            sums.append(exact[passes])
        all_pairs = np.concatenate(pairs)
        all_sums = np.concatenate(sums)
        order = np.lexsort((all_pairs[:, 1], all_pairs[:, 0]))
        return all_pairs[order], all_sums[order]

    def sums_of(
        self,
        rows: FloatArray,
        pairs: IntArray,
        n_jobs: int | None = None,
        *,
        is_centred: bool = False,
    ) -> FloatArray:
        """sum_m rows[r, m] s_jm of pairs (r, j); centred, or 0, where values are missing."""
        signs = _sums_of_signs(rows, self.packed.words, pairs, n_jobs)
        if self.packed.present is None:
            return signs
        # sums over all rows, those where it is there, and those where it is high
        whole = rows.sum(axis=1)[pairs[:, 0]]
        there = (_sums_of_signs(rows, self.packed.present, pairs, n_jobs) + whole) / 2
        sums = signs + whole - there
        if is_centred:
            spins = pairs[:, 1]
            sums = (sums - self.means[spins] * there) / np.sqrt(self.seen[spins])
        return np.asarray(sums)


def _sums_of_signs(
    rows: FloatArray, words: Words, pairs: IntArray, n_jobs: int | None
) -> FloatArray:
    """sum_m rows[r, m] (+1 where a bit of word j is set, else -1), of pairs (r, j)."""
    sums = np.empty(len(pairs))
    fixed = (rows, words, pairs, sums)
    parallel_map(kernels.sums_of_pairs, len(pairs), *fixed, chunk=4096, n_jobs=n_jobs)
    return sums


def repeated_if_few(
    packed: PackedSpins, weights: RowWeights | None
) -> tuple[PackedSpins, RowWeights | None]:
    """Rows of many spins as often as they were counted, where they are fewer than spins even so:
    the same digits for a count as for so many rows; all else as it is.
    """
    if weights is None or not goes_by_bits(packed) or packed.present is not None:
        return packed, weights
    if not weights.are_counts or weights.groups is not None or weights.covariates is not None:
        return packed, weights
    if weights.n_samples >= packed.n_spins:
        return packed, weights
    return repeated(packed, weights), None


def goes_by_bits(packed: PackedSpins) -> bool:
    """Whether there are so many spins that next to nothing of the size of all pairs is stored."""
    return packed.n_spins > sizes.MOST_DENSE


def without_covariates(bits: Bits, covariates: FloatArray) -> Bits:
    """What covariates, (n_covariates, n_rows) and centred, leave of spins."""
    orthonormal = np.ascontiguousarray(np.linalg.qr((bits.roots * covariates).T)[0].T)
    explained = np.empty((len(orthonormal), bits.n_spins))
    for first in range(0, bits.n_spins, sizes.TILE):
        some = slice(first, first + sizes.TILE)
        explained[:, some] = orthonormal @ bits.centred(some).T
    if not bits.is_complete:  # over the rows that have a value, scaled to all
        explained /= np.sqrt(bits.seen)
    new = replace(bits, covariates=orthonormal, explained=explained)
    require_undetermined(bits, new.variances)
    scales = np.where(bits.changes, np.sqrt(np.maximum(new.variances, 1e-300)), np.inf)
    return replace(new, scales=scales)


def bits_of(packed: PackedSpins, fit_fields: bool, weights: RowWeights | None = None) -> Bits:
    """Sums and scales of all spins, one pass over the bits."""
    if weights is not None and weights.are_plain:
        weights = None
    n_samples = packed.n_samples if weights is None else float(weights.totals.sum())
    totals = np.ones(packed.n_samples) if weights is None else weights.totals
    counted: FloatArray = _sums_over_rows(packed, packed.words, weights)
    seen = np.empty(0)
    if packed.present is not None:
        there = (_sums_over_rows(packed, packed.present, weights) + n_samples) / 2
        if not (there > 0).all():
            raise NoValuesError(columns=[packed.names[j] for j in np.flatnonzero(there <= 0)])
        seen = there / n_samples
        counted = (counted + n_samples - there) / seen  # scaled to all rows
    # rounded as in `normal_equations`
    sums = counted / n_samples * n_samples if fit_fields else np.zeros(packed.n_spins)
    # weights make rounding errors of variances that are 0
    scales = np.sqrt(np.maximum(n_samples - sums / n_samples * sums, 0.0))
    scales[np.abs(counted) >= n_samples * (1 - _ROUNDING)] = np.inf
    is_plain = weights is None and packed.present is None
    tables = np.empty((0, 0, 0)) if is_plain else weights_by_nibble(totals)  # type: ignore[no-untyped-call]
    facts = {"weights": weights, "seen": seen, "are_centred": fit_fields}
    return Bits(packed, sums, scales, _tables=tables, **facts)  # type: ignore[arg-type]


def _sums_over_rows(packed: PackedSpins, words: Words, weights: RowWeights | None) -> Any:
    """(n_spins,): of +1 where a bit is set, else -1."""
    if weights is None:
        return _spin_sums(words, packed.n_samples)
    return _weighted_sums(words, packed.n_samples, weights)


def _spin_sums(words: Words, n_samples: int) -> IntArray:
    sums = np.empty(len(words), np.int64)
    chunk = max(1, len(words) // 64)
    parallel_map(gram_kernels.spin_sums, len(words), words, n_samples, sums, chunk=chunk)
    return sums


def _weighted_sums(words: Words, n_samples: int, weights: RowWeights) -> FloatArray:
    sums = np.empty(len(words))
    step = max(1, sizes.CELLS // n_samples)
    with one_blas_thread():
        for first in range(0, len(words), step):
            some = slice(first, first + step)
            values = unpacked(np.ascontiguousarray(words[some]), n_samples, np.float64)
            sums[some] = values @ weights.totals
    return sums
