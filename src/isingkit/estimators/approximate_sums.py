"""ApproximateSums: where sums of rows of numbers with the signs of spins may be large.

With an error that is known.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isingkit._kernels import lookup_popcount
from isingkit._kernels import weighted_sums as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import FloatArray, IntArray
from isingkit.packing import Words, unpacked

_SINGLE = 2.0**-24  # rounding of single precision


class ApproximateSums(Protocol):
    """Some of the rows, made ready to be looked at against one tile of spins after the other."""

    def among(self, words: Words, of_spins: FloatArray, after: IntArray, level: float) -> IntArray:
        """(n, 2): rows r and spins j > after[r] with |x| (of_rows[:, r] . of_spins[:, j]) > level,
        and others that come near.
        """


def approximate_sums(
    rows: FloatArray, of_rows: FloatArray, most: FloatArray, n_jobs: int | None
) -> list[ApproximateSums]:
    """By look-up where the processor can and its error is at most `most`, (n_rows,); else by a
    product.

    Bytes are too few for rows of some large numbers among many small ones, as spins have that
    hardly ever change.
    """
    coarse = np.ones(len(rows), dtype=bool)
    looks: list[ApproximateSums] = []
    if lookup_popcount.has_shuffle():
        tables = _tables(rows, n_jobs)
        every = np.arange(len(rows))
        by_lookup = _LookUp(every, of_rows.astype(np.float32), *tables, n_jobs)
        coarse = by_lookup.errors > most
        looks.append(by_lookup if not coarse.any() else by_lookup.of(np.flatnonzero(~coarse)))
    if coarse.any():
        looks.append(product_of(rows, np.flatnonzero(coarse), of_rows, 1.0, n_jobs))
    return looks


def product_of(
    rows: FloatArray, numbers: IntArray, of_rows: FloatArray, largest: float, n_jobs: int | None
) -> "Product":
    """Some rows, to be multiplied by spins that are numbers, up to a largest one."""
    some = rows[numbers]
    n_samples = rows.shape[1]
    squares = np.einsum("ij,ij->i", some, some)
    errors = largest * (n_samples + 4) * _SINGLE * np.sqrt(squares * n_samples)
    factors = of_rows[:, numbers].astype(np.float32)
    return Product(numbers, factors, some.astype(np.float32), errors, n_jobs)


def _tables(
    rows: FloatArray, n_jobs: int | None
) -> tuple[NDArray[np.uint8], FloatArray, FloatArray, FloatArray]:
    n_steps = 16 * -(-rows.shape[1] // 64)
    tables = np.empty((len(rows), n_steps, 16), np.uint8)
    units = np.empty(len(rows))
    offsets = np.empty(len(rows))
    errors = np.empty(len(rows))
    parallel_map(
        kernels.tables_of,
        len(rows),
        rows,
        tables,
        units,
        offsets,
        errors,
        chunk=kernels.ROWS,
        n_jobs=n_jobs,
    )
    return tables, units, offsets, errors


@dataclass(frozen=True, slots=True, eq=False)
class _LookUp:
    """By bytes of sums of four numbers."""

    numbers: IntArray  # of the rows
    of_rows: NDArray[np.float32]
    tables: NDArray[np.uint8]
    units: FloatArray
    offsets: FloatArray
    errors: FloatArray
    n_jobs: int | None

    def of(self, some: IntArray) -> "_LookUp":
        """Some of the rows only."""
        parts = (self.tables[some], self.units[some], self.offsets[some], self.errors[some])
        of_rows = np.ascontiguousarray(self.of_rows[:, some])
        return _LookUp(self.numbers[some], of_rows, *parts, self.n_jobs)

    def among(self, words: Words, of_spins: FloatArray, after: IntArray, level: float) -> IntArray:
        n_blocks = -(-len(words) // lookup_popcount.COLUMNS)
        unused = np.zeros(len(words), np.int64)
        split = lookup_popcount.strips(n_blocks, words.shape[1])
        fixed: tuple[Any, ...] = (words, 0, words.shape[1], split.shape[1], split, unused)
        parallel_map(lookup_popcount.split, n_blocks, *fixed, chunk=4, n_jobs=self.n_jobs)
        others = np.zeros((2, n_blocks * lookup_popcount.COLUMNS), np.float32)
        others[:, : len(words)] = of_spins
        fixed = (
            self.tables,
            self.units,
            self.offsets,
            self.errors,
            split,
            after[self.numbers],
            self.of_rows,
            others,
            level,
        )
        found = parallel_map(
            kernels.large_sums_by_lookup,
            len(self.numbers),
            *fixed,
            chunk=kernels.ROWS,
            n_jobs=self.n_jobs,
        )
        return _numbered(found, self.numbers)


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """By a product of matrices in single precision."""

    numbers: IntArray
    of_rows: NDArray[np.float32]
    single: NDArray[np.float32]
    errors: FloatArray
    n_jobs: int | None

    def among(self, words: Words, of_spins: FloatArray, after: IntArray, level: float) -> IntArray:
        values = unpacked(words, self.single.shape[1], np.float32)
        return self.among_values(values, of_spins, after, level)

    def among_values(
        self, values: NDArray[np.float32], of_spins: FloatArray, after: IntArray, level: float
    ) -> IntArray:
        """The same of spins that are numbers, (n_spins, n_samples)."""
        sums = self.single @ values.T
        fixed = (
            sums,
            self.errors,
            after[self.numbers],
            self.of_rows,
            of_spins.astype(np.float32),
            level,
        )
        found = parallel_map(
            kernels.large_products,
            len(self.numbers),
            *fixed,
            chunk=kernels.ROWS,
            n_jobs=self.n_jobs,
        )
        return _numbered(found, self.numbers)


def _numbered(found: list[IntArray], numbers: IntArray) -> IntArray:
    pairs = np.concatenate([np.empty((0, 2), np.int64), *found])
    pairs[:, 0] = numbers[pairs[:, 0]]
    return pairs
