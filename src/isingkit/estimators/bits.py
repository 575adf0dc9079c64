"""Bits: the spins of a large network, and what is computed from their bits when it is needed
instead of being stored.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from isingkit._kernels import estimators as estimator_kernels
from isingkit._kernels import gram as gram_kernels
from isingkit._kernels import weighted_sums as kernels
from isingkit._kernels.packing import pack_words
from isingkit._kernels.sources import weights_by_nibble
from isingkit._kernels.threads import one_blas_thread, parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.estimators import sizes
from isingkit.estimators.approximate_sums import approximate_sums
from isingkit.estimators.dual import Dual
from isingkit.estimators.normal import require_undetermined
from isingkit.estimators.primal import Primal
from isingkit.gram import gram, gram_of
from isingkit.memory import require_memory
from isingkit.packing import PackedSpins, unpacked
from isingkit.spins import Names, RowWeights

# error of a look-up, in units of what must be passed, from which on a product is quicker
_ROUGH = 0.45
_CELLS = 1 << 22  # of spins in rows that are written out at once
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
        """Whether correlations follow from counts: no weights, no covariates."""
        return self.weights is None and len(self.covariates) == 0

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
        plain = (self.packed.words, self.sums, float(self.n_samples), self.explained)
        return plain if self.weights is None else (*plain, self._tables)

    def covariances(self, pairs: IntArray) -> FloatArray:
        """(n_pairs,): sums of products of two centred spins."""
        out = np.empty(len(pairs))
        parallel_map(
            estimator_kernels.covariances_of, len(pairs), self.source, pairs, out, chunk=4096
        )
        return out

    def block(self, some: IntArray) -> FloatArray:
        """(n_some, n_some): covariances of some spins."""
        sums = self.sums[some]
        if len(some) == 0:
            return np.empty((0, 0))
        products = gram_of(self.packed[:, some], self.weights).sums
        found = products - np.outer(sums, sums) / self.n_samples
        if len(self.covariates):
            explained = self.explained[:, some]
            found -= explained.T @ explained
        return np.asarray(found)

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
        """
        words = np.ascontiguousarray(self.packed.words[some])
        values: FloatArray = unpacked(words, self.n_rows, np.float64)
        values -= self.means[some][:, None]
        if self.weights is not None:
            values *= self.roots
        if len(self.covariates):
            values -= self.explained[:, some].T @ self.covariates
        values[~self.changes[some]] = 0.0
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
        has them; by counting.
        """
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

    def large_sums(
        self,
        rows: FloatArray,
        level: float,
        of_rows: FloatArray,
        of_spins: FloatArray,
        *,
        after: IntArray | None = None,
        n_jobs: int | None = None,
    ) -> tuple[IntArray, FloatArray]:
        """(n, 2): rows r and spins j, sorted, with |x| (of_rows[:, r] . of_spins[:, j]) > level;
        and x = sum_m rows[r, m] s_jm.

        Sums are approximate, with an error that is known; those that may pass are computed again in
        double precision.
        of_rows: (2, n_rows)     of_spins: (2, n_spins)     all not negative
        after: only spins j > after[r] count
        """
        after = np.full(len(rows), -1) if after is None else after
        largest = of_spins.max(axis=1, initial=0.0) @ of_rows  # factors of rows
        allowed = _ROUGH * level / np.maximum(largest, 1e-300)
        looks = approximate_sums(rows, of_rows, allowed, n_jobs)
        pairs = [np.empty((0, 2), np.int64)]
        sums = [np.empty(0)]
        least = max(int(after.min(initial=self.n_spins)) + 1, 0)
        start = least // sizes.WIDE * sizes.WIDE
        for first in range(start, self.n_spins, sizes.WIDE):
            words = np.ascontiguousarray(self.packed.words[first : first + sizes.WIDE])
            factors = of_spins[:, first : first + sizes.WIDE]
            near = [one.among(words, factors, after - first, level) for one in looks]
            # no look, where there are no rows
            found = np.concatenate([np.empty((0, 2), np.int64), *near])
            found[:, 1] += first
            exact = self.sums_of(rows, found, n_jobs)
            row, spin = found.T
            of_pairs = (of_rows[:, row] * of_spins[:, spin]).sum(axis=0)
            passes = np.abs(exact) * of_pairs > level
            pairs.append(found[passes])
            sums.append(exact[passes])
        all_pairs = np.concatenate(pairs)
        all_sums = np.concatenate(sums)
        order = np.lexsort((all_pairs[:, 1], all_pairs[:, 0]))
        return all_pairs[order], all_sums[order]

    def sums_of(self, rows: FloatArray, pairs: IntArray, n_jobs: int | None = None) -> FloatArray:
        """sum_m rows[r, m] s_jm of pairs (r, j)."""
        sums = np.empty(len(pairs))
        parallel_map(
            kernels.sums_of_pairs,
            len(pairs),
            rows,
            self.packed.words,
            pairs,
            sums,
            chunk=4096,
            n_jobs=n_jobs,
        )
        return sums


def goes_by_bits(packed: PackedSpins) -> bool:
    """Whether there are so many spins that nothing of the size of all pairs is stored; bits know no
    holes.
    """
    return packed.n_spins > sizes.MOST_DENSE and packed.present is None


def without_covariates(bits: Bits, covariates: FloatArray) -> Bits:
    """What covariates, (n_covariates, n_rows) and centred, leave of spins."""
    orthonormal = np.ascontiguousarray(np.linalg.qr((bits.roots * covariates).T)[0].T)
    explained = np.empty((len(orthonormal), bits.n_spins))
    for first in range(0, bits.n_spins, sizes.TILE):
        some = slice(first, first + sizes.TILE)
        explained[:, some] = orthonormal @ bits.centred(some).T
    new = replace(bits, covariates=orthonormal, explained=explained)
    require_undetermined(bits, new.variances)
    scales = np.where(bits.changes, np.sqrt(np.maximum(new.variances, 1e-300)), np.inf)
    return replace(new, scales=scales)


def bits_of(packed: PackedSpins, fit_fields: bool, weights: RowWeights | None = None) -> Bits:
    """Sums and scales of all spins, one pass over the bits."""
    if weights is not None and weights.are_plain:
        weights = None
    counted = _spin_sums(packed) if weights is None else _weighted_sums(packed, weights)
    n_samples = packed.n_samples if weights is None else float(weights.totals.sum())
    # rounded as in `normal_equations`
    sums = counted / n_samples * n_samples if fit_fields else np.zeros(packed.n_spins)
    # weights make rounding errors of variances that are 0
    scales = np.sqrt(np.maximum(n_samples - sums / n_samples * sums, 0.0))
    scales[np.abs(counted) >= n_samples * (1 - _ROUNDING)] = np.inf
    tables = np.empty((0, 0, 0)) if weights is None else weights_by_nibble(weights.totals)
    return Bits(packed, sums, scales, weights=weights, _tables=tables)


def _spin_sums(packed: PackedSpins) -> IntArray:
    sums = np.empty(packed.n_spins, np.int64)
    fixed = (packed.words, packed.n_samples, sums)
    chunk = max(1, packed.n_spins // 64)
    parallel_map(gram_kernels.spin_sums, packed.n_spins, *fixed, chunk=chunk)
    return sums


def _weighted_sums(packed: PackedSpins, weights: RowWeights) -> FloatArray:
    sums = np.empty(packed.n_spins)
    step = max(1, _CELLS // packed.n_samples)
    with one_blas_thread():
        for first in range(0, packed.n_spins, step):
            some = slice(first, first + step)
            words = np.ascontiguousarray(packed.words[some])
            sums[some] = unpacked(words, packed.n_samples, np.float64) @ weights.totals
    return sums
