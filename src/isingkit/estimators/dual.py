"""Dual: ridge regressions of more spins than samples, from a matrix of all pairs of samples."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import blas, lapack

from isingkit._kernels.threads import one_blas_thread, parallel_map
from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators import sizes
from isingkit.exceptions import SettingError

if TYPE_CHECKING:
    from isingkit.estimators.bits import Bits


def bytes_of_dual(n_spins: int, n_rows: int) -> int:
    """Memory of a `Dual` beside the bits."""
    of_bits = n_spins * (n_rows // 8 + 8)
    of_factors = 24 * n_rows**2
    of_tiles = (8 * sizes.TILE + 4 * min(sizes.WIDE, n_spins)) * n_rows
    return of_bits + of_factors + of_tiles


@dataclass(slots=True, eq=False)
class Dual:
    r"""With P = (S'S + \lambda N I)^{-1} of centred spins: \lambda N P = I - S'Y, Y = (S S' +
    \lambda N I)^{-1} S.

    BLAS keeps to one thread, in portions of one size, for how it rounds depends on how it splits;
    threads of our own take portions.
    """

    bits: "Bits"
    ridge: float
    products: Any = None  # (n_samples, n_samples): S S', where it is known
    _inverse: Any = field(
        init=False, default=None
    )  # (n_samples, n_samples): of L, where L L' = S S' + \lambda N I

    @property
    def n_bytes(self) -> int:
        """Memory beyond the bits themselves: these the other way round, the inverse of L, and
        portions.
        """
        return bytes_of_dual(self.bits.n_spins, self.bits.n_rows)

    def prepare(self) -> None:
        """Find the inverse of L, where it is not there yet."""
        if self._inverse is None:
            self.bits.require_memory(self.n_bytes)
            with one_blas_thread():
                self._inverse = self._inverse_factor()

    def diagonals(
        self, spins: IntArray, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """R_ii and (R^2)_ii of some spins, R the resolvent of sample correlations."""
        self.prepare()
        factor = self.bits.n_samples / (self.ridge * self.bits.n_spins)
        left, squares = self.left_and_squares(spins, n_jobs)
        return factor * left, factor**2 * squares

    def all_diagonals(self, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """R_ii and (R^2)_ii of all spins."""
        return self.diagonals(np.arange(self.bits.n_spins), n_jobs)

    def left(self, n_jobs: int | None = None) -> FloatArray:
        r"""(n_spins,): 1 - s_i . y_i = \lambda N P_ii of all spins."""
        left = np.empty(self.bits.n_spins)

        def fill(start: int, stop: int) -> None:
            z = self._reduced(slice(start, stop))
            left[start:stop] = 1 - np.einsum("ij,ij->j", z, z)

        with one_blas_thread():
            parallel_map(fill, self.bits.n_spins, chunk=sizes.DUAL_PORTION, n_jobs=n_jobs)
        return left

    def left_and_squares(
        self, some: IntArray, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        r"""\lambda N P_ii and (\lambda N)^2 (P^2)_ii of some spins."""
        left = np.empty(len(some))
        squares = np.empty(len(some))

        def fill(start: int, stop: int) -> None:
            z = self._reduced(some[start:stop])
            left[start:stop] = 1 - np.einsum("ij,ij->j", z, z)
            y = self._turned(z)
            squares[start:stop] = left[start:stop] - self.ridge * self.bits.n_spins * np.einsum(
                "ij,ij->j", y, y
            )

        with one_blas_thread():
            parallel_map(fill, len(some), chunk=sizes.DUAL_PORTION, n_jobs=n_jobs)
        return left, squares

    def responses(self, some: IntArray, n_jobs: int | None = None) -> FloatArray:
        """Columns of Y, as rows: (n_some, n_samples)."""
        y = np.empty((len(some), self.bits.n_rows))

        def fill(start: int, stop: int) -> None:
            reduced = self._reduced(some[start:stop])
            y[start:stop] = self._turned(reduced).T

        with one_blas_thread():
            parallel_map(fill, len(some), chunk=sizes.DUAL_PORTION, n_jobs=n_jobs)
        return y

    def _reduced(self, some: Any) -> FloatArray:
        """Columns of Z = L^{-1} S, (n_samples, n_some)."""
        centred = self.bits.centred(some).T
        return np.asarray(blas.dtrmm(1.0, self._inverse, centred, lower=1, overwrite_b=1))

    def _turned(self, z: FloatArray) -> FloatArray:
        """Columns of Y = L^{-T} Z, in place of Z."""
        return np.asarray(blas.dtrmm(1.0, self._inverse, z, lower=1, trans_a=1, overwrite_b=1))

    def _inverse_factor(self) -> FloatArray:
        small = self.bits.products_of_samples() if self.products is None else self.products.copy()
        np.einsum("ii->i", small)[:] += self.ridge * self.bits.n_spins
        before = np.diagonal(small).copy()
        factor, trouble = lapack.dpotrf(small.T, lower=1, overwrite_a=1)
        if trouble > 0 or (np.diagonal(factor) ** 2 / before).min() < 1e-13:
            raise SettingError(
                setting="ridge",
                value=self.ridge,
                expected="large enough for these data to be told from 0",
            )
        return np.asarray(lapack.dtrtri(factor, lower=1, overwrite_c=1)[0])
