"""Primal: ridge regressions of no more spins than samples, from one matrix of all pairs of spins.

The only thing of that size on the way by bits. It is held once: pair sums become their Cholesky
factor, and that the inverse, in place.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import lapack

from isingkit._kernels.threads import one_blas_thread
from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators import sizes
from isingkit.estimators.normal import mirror_lower
from isingkit.exceptions import SingularSystemError
from isingkit.gram import gram

if TYPE_CHECKING:
    from isingkit.estimators.bits import Bits

_SINGULAR = 1e-10  # of a spin's variance, if no more is left beside the spins before it


def bytes_of_primal(n_spins: int, n_rows: int) -> int:
    """Memory of a `Primal` beside the bits."""
    return 8 * n_spins**2 + 16 * sizes.BAND * (n_rows + n_spins)


@dataclass(slots=True, eq=False)
class Primal:
    r"""P = (S'S + \lambda N I)^{-1} of centred spins; those that never change stand alone.

    BLAS keeps to one thread: workers of a cluster must have the last digits of one machine.
    """

    bits: "Bits"
    ridge: float
    _factor: Any = field(init=False, default=None)  # Cholesky factor, in the upper triangle
    _inverse: Any = field(init=False, default=None)  # in place of the factor

    @property
    def n_bytes(self) -> int:
        """Memory beyond the bits themselves: a matrix, and a band of spins as numbers."""
        return bytes_of_primal(self.bits.n_spins, self.bits.n_rows)

    def prepare(self) -> None:
        """Find the inverse, where it is not there yet."""
        if self._inverse is not None:
            return
        self._factorize()
        with one_blas_thread():
            lower, _ = lapack.dpotri(self._factor, lower=0, overwrite_c=1)
        self._factor = None
        self._inverse = lower.T  # C order: P in the lower triangle
        mirror_lower(self._inverse)

    def diagonals(
        self, spins: IntArray, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """R_ii and (R^2)_ii of some spins, R the resolvent of sample correlations."""
        if self._inverse is None:
            self._factorize()
            columns = np.zeros((self.bits.n_spins, len(spins)), order="F")
            columns[spins, np.arange(len(spins))] = self.bits.n_samples
            with one_blas_thread():
                rows, _ = lapack.dpotrs(self._factor, columns, lower=0, overwrite_b=1)
            return rows[spins, np.arange(len(spins))], (rows**2).sum(axis=0)
        rows = self.rows(spins) * self.bits.n_samples
        return rows[np.arange(len(spins)), spins], np.einsum("ij,ij->i", rows, rows)

    def all_diagonals(self, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """R_ii and (R^2)_ii of all spins."""
        self.prepare()
        n_samples = self.bits.n_samples
        squares = np.einsum("ij,ij->i", self._inverse, self._inverse)
        return n_samples * np.diagonal(self._inverse), n_samples**2 * squares

    def left(self, n_jobs: int | None = None) -> FloatArray:
        r"""(n_spins,): \lambda N P_ii of all spins, as that of `Dual`."""
        self.prepare()
        return self.ridge * self.bits.n_spins * np.diagonal(self._inverse)

    def rows(self, some: IntArray) -> FloatArray:
        """(n_some, n_spins): of P; 0 beside the diagonal for spins that never change."""
        self.prepare()
        return np.asarray(self._inverse[some])

    def _factorize(self) -> None:
        if self._factor is not None:
            return
        self.bits.require_memory(self.n_bytes)
        factor, worst = _factor_of(self._normal_matrix(self.bits.is_complete))
        if worst is not None and not self.bits.is_complete:  # pairs over different rows contradict
            factor, worst = _factor_of(self._normal_matrix(is_filled=True))
        if worst is not None:
            n_samples, n_spins = self.bits.n_counted, self.bits.n_spins
            spin = self.bits.names[worst]
            raise SingularSystemError(spin=spin, n_samples=n_samples, n_spins=n_spins)
        self._factor = factor

    def _normal_matrix(self, is_filled: bool) -> FloatArray:
        r"""(n_spins, n_spins): S'S + \lambda N I, rounded as in `normal_equations`.

        Where values are missing, over the rows where both are present; or, filled, with means of
        spins in their place, of which sums never contradict.
        """
        bits = self.bits
        n_spins = bits.n_spins
        are_counts = bits.weights is None and bits.is_complete
        if are_counts:
            counted = gram(bits.packed).sums
            matrix = counted.view(np.float64)  # numbers take the place of counts
        else:
            matrix = np.empty((n_spins, n_spins))
        for first in range(0, n_spins, sizes.BAND):
            some = np.arange(first, min(first + sizes.BAND, n_spins))
            if not are_counts:
                matrix[some] = self._products_with(some, is_filled)
                continue
            products = counted[some] - np.multiply.outer(
                bits.sums[some] / bits.n_samples, bits.sums
            )
            if len(bits.covariates):
                with one_blas_thread():
                    products -= bits.explained[:, some].T @ bits.explained
            matrix[some] = products
        diagonal = np.einsum("ii->i", matrix)
        diagonal += self.ridge * n_spins
        matrix[~bits.changes] = 0.0
        matrix[:, ~bits.changes] = 0.0
        diagonal[~bits.changes] = 1.0
        return matrix

    def _products_with(self, some: IntArray, is_filled: bool) -> FloatArray:
        """(n_some, n_spins): sums over rows and their weights of products with some spins."""
        bits = self.bits
        products = np.empty((len(some), bits.n_spins))
        scales = np.where(bits.changes, bits.scales, 0.0)
        rows = bits.centred(some) if is_filled else np.empty(0)
        for first in range(0, bits.n_spins, sizes.BAND):
            others = slice(first, first + sizes.BAND)
            if is_filled:
                with one_blas_thread():
                    products[:, others] = rows @ bits.centred(others).T
            else:
                found = bits.pairwise_correlations(some, others)
                products[:, others] = found * scales[some, None] * scales[others]
        return products


def _factor_of(matrix: FloatArray) -> tuple[FloatArray, int | None]:
    """Cholesky factor in the upper triangle, in place, and the spin of which others leave nothing,
    if there is one.
    """
    before = np.diagonal(matrix).copy()
    with one_blas_thread():
        factor, trouble = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    left = np.einsum("ii->i", factor) ** 2 / before
    if trouble > 0:
        return factor, trouble - 1
    return factor, int(left.argmin()) if left.min() < _SINGULAR else None
