"""RowOrder: are neighbouring rows alike, beyond what sorting them would do?"""

from dataclasses import dataclass

import numpy as np

from isingkit._kernels.row_dependence import lagged_changes
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.packing import PackedSpins, Words, bits

_LARGE = 5.0  # standard errors of a correlation that is no chance
_SMALL = 2.0  # standard errors of one that may be
_FIRST_LAGS = 4  # looked at in any case
_GAP = 5  # lags without a correlation, after which none are expected
_LOST = 0.05  # fraction of a variance that blocks of neighbouring rows may miss
_FEWEST_BLOCKS = 20
_FIRST_ROWS = 256  # tell most tables from sorted ones
_COLUMNS = 16  # of a chunk


@dataclass(frozen=True, slots=True, eq=False)
class RowOrder:
    """Correlations of rows with later ones, each spin for itself, averaged over spins."""

    correlations: FloatArray  # (n_lags,): of rows 1, 2, ... rows apart
    error: float  # standard error of one of them, were rows independent
    products: FloatArray  # (n_lags,): mean of the products of two spins' correlations
    n_rows: int

    @property
    def is_seen(self) -> bool:
        """Whether rows are more alike than chance would have it."""
        return bool((self.correlations[:_FIRST_LAGS] > _LARGE * self.error).any())

    @property
    def design_effect(self) -> float:
        r"""1 + 2 \sum_k (1 - k/M) c_k^2, for products of two spins are alike as c_k^2."""
        lags = np.arange(1, len(self.products) + 1)
        return 1 + 2 * float((self.products * (1 - lags / self.n_rows)).sum())

    @property
    def block_length(self) -> int:
        r"""Rows of a block: blocks of B rows miss 2 \sum_k k c_k^2 / B of the variance."""
        lags = np.arange(1, len(self.products) + 1)
        missed = 2 * float((lags * self.products).sum()) / self.design_effect
        return int(np.clip(np.ceil(missed / _LOST), 1, max(1, self.n_rows // _FEWEST_BLOCKS)))


def row_order(packed: PackedSpins, columns: IntArray, deviation: float) -> RowOrder:
    """Correlations of some columns with themselves some rows later.

    Rows that were sorted by columns or by their sum are compared only where those are the same, and
    columns they were sorted by are left out.
    deviation: standard deviation of the distance of two rows, in units of its mean
    """
    n_rows = packed.n_samples
    error = deviation / np.sqrt(n_rows)
    level, keys = _sorting(packed)
    columns = np.setdiff1d(columns, keys)
    series = _Series(packed, columns, level)
    correlations: list[float] = []
    products: list[float] = []
    n_small = 0
    for lag in range(1, max(2, n_rows // 4)):
        mean, product = series.at(lag)
        correlations.append(mean)
        products.append(product)
        n_small = 0 if mean > _SMALL * error else n_small + 1
        if lag >= _FIRST_LAGS and n_small >= _GAP or len(columns) == 0:
            break
    n_lags = max(1, len(products) - n_small)
    return RowOrder(np.array(correlations), float(error), np.array(products[:n_lags]), n_rows)


class _Series:
    """Changes of columns from row to row, against those of rows in any order."""

    def __init__(self, packed: PackedSpins, columns: IntArray, level: IntArray) -> None:
        """level: (n_rows,), ascending: rows may be compared where it is the same."""
        self.words = np.ascontiguousarray(packed.words[columns])
        self.level = level
        self.present = _presence(packed, columns)
        self.rates, self.sizes = self._rates_of_change()

    def _rates_of_change(self) -> tuple[FloatArray, IntArray]:
        """(n_levels, n_columns): how likely two rows of a level differ; and rows of each level.

        With n_1 and n_0 rows of either value that is 2 n_1 n_0 / (n (n - 1)): exact for rows in any
        order, however few.
        """
        starts = np.flatnonzero(np.diff(self.level, prepend=-1))
        n_rows = len(self.level)
        ones = np.add.reduceat(_as_bits(self.words & self.present, n_rows), starts, axis=0)
        seen = np.add.reduceat(_as_bits(self.present, n_rows), starts, axis=0)
        rates = 2.0 * ones * (seen - ones) / np.maximum(seen * (seen - 1.0), 1.0)
        return rates, np.diff(np.append(starts, n_rows))

    def at(self, lag: int) -> tuple[float, float]:
        """Mean correlation of columns with themselves, and mean product of two columns' ones."""
        n_rows = len(self.level)
        same = np.zeros((n_rows, 1), dtype=np.int8)
        same[: n_rows - lag, 0] = self.level[lag:] == self.level[: n_rows - lag]
        within = bits(same)[0]
        counts = np.zeros((2, len(self.words)), dtype=np.int64)
        arguments = (self.words, self.present, within, lag, counts)
        parallel_map(lagged_changes, len(self.words), *arguments, chunk=max(_COLUMNS, 1 << 10))
        # of rows of each level: as many pairs of this lag as there are
        shares = np.maximum(self.sizes - lag, 0) / max(1, np.maximum(self.sizes - lag, 0).sum())
        expected = (shares @ self.rates) * counts[1]
        usable = expected > 0
        if not usable.any():
            return 0.0, 0.0
        each = 1 - counts[0, usable] / expected[usable]
        weights = expected[usable] / expected[usable].sum()
        n_pairs = len(each) * (len(each) - 1)
        product = (each.sum() ** 2 - (each**2).sum()) / max(n_pairs, 1)
        return float(weights @ each), float(max(product, 0.0))


def _presence(packed: PackedSpins, columns: IntArray) -> Words:
    if packed.present is not None:
        return np.ascontiguousarray(packed.present[columns])
    everything = np.full((1, packed.words.shape[1]), 2**64 - 1, dtype=np.uint64)
    if packed.n_samples % 64:
        everything[0, -1] = (1 << packed.n_samples % 64) - 1
    return np.repeat(everything, len(columns), axis=0)


def _as_bits(words: Words, n_rows: int) -> IntArray:
    """(n_rows, n_columns) of 0 and 1."""
    little = words.astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(little, axis=1, count=n_rows, bitorder="little").T.astype(np.int64)


# Sorted rows


def _sorting(packed: PackedSpins) -> tuple[IntArray, IntArray]:
    """(n_rows,), a number for rows that are the same in all that rows were sorted by, ascending;
    and the columns among that.
    """
    n_rows = packed.n_samples
    borders = _sum_borders(packed)
    all_columns = np.arange(packed.n_spins)
    counts = np.zeros((2, packed.n_spins), dtype=np.int64)
    everywhere = _presence(packed, all_columns[:1])[0]
    if packed.present is not None:
        everywhere = np.full_like(everywhere, 2**64 - 1)
    present = _presence(packed, all_columns)
    words = np.ascontiguousarray(packed.words)
    parallel_map(
        lagged_changes, packed.n_spins, words, present, everywhere, 1, counts, chunk=1 << 10
    )
    few = counts[0] <= (borders.sum() + 1)
    is_key = np.zeros(packed.n_spins, dtype=bool)
    if few.any():
        borders, is_key = _key_columns(np.asarray(packed), borders)
    level = np.concatenate([[0], np.cumsum(borders)])
    return level[:n_rows], np.flatnonzero(is_key)


def _sum_borders(packed: PackedSpins) -> BoolArray:
    """(n_rows - 1,): where the sum of a row differs from the next one's, if rows are sorted by it;
    else nowhere.
    """
    nowhere = np.zeros(max(packed.n_samples - 1, 0), dtype=bool)
    for part in (packed[:_FIRST_ROWS], packed):
        steps = np.diff(np.asarray(part).sum(axis=1, dtype=np.int64))
        if not ((steps >= 0).all() or (steps <= 0).all()):
            return nowhere
    return np.asarray(steps != 0)


def _key_columns(values: FloatArray, borders: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Borders between rows that differ in what they were sorted by, and which columns these are.

    The first key has one run of each value; a later one has that wherever all earlier are the same.
    A missing value is a value of its own here.
    """
    changes = values[1:] != values[:-1]
    most = 1 + (values == 0).any(axis=0)  # borders of a level's runs
    is_key = np.zeros(values.shape[1], dtype=bool)
    while True:
        inside = changes & ~borders[:, np.newaxis]
        starts = np.concatenate([[0], np.flatnonzero(borders) + 1])
        padded = np.vstack([np.zeros_like(inside[:1]), inside])  # row a: from row a - 1 to row a
        n_changes = np.add.reduceat(padded.astype(np.int64), starts, axis=0)
        new = (n_changes <= most).all(axis=0) & inside.any(axis=0) & ~is_key
        if not new.any():
            return borders, is_key
        is_key |= new
        borders = borders | inside[:, new].any(axis=1)
