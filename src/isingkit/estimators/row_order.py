"""RowOrder: are neighbouring rows alike, beyond what sorting them would do?"""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.estimators.row_distances import RowBits, bit_sums, lagged_distances
from isingkit.estimators.sizes import CELLS
from isingkit.packing import PackedSpins, Words, as_bits

_LARGE = 5.0  # standard errors of a correlation that is no chance
_SMALL = 2.0  # standard errors of one that may be
_FIRST_LAGS = 4  # looked at in any case
_DENSE = 16  # lags, up to which each is looked at
_GAP = 5  # lags without a correlation, after which none are expected
# fraction of a variance that blocks of neighbouring rows may miss, and is added to it: of longer
# blocks there would be too few to tell how much they vary
_LOST = 0.15
_LONGEST_LAG = 20  # of the table: what lasts longer is a trend
_FEWEST_BLOCKS = 60  # of fewer, nobody could tell how much they vary
_FIRST_ROWS = 256  # tell most tables from sorted ones
_FEWEST_COLUMNS = 16


@dataclass(frozen=True, slots=True, eq=False)
class RowOrder:
    """Correlations of rows with later ones, averaged over rows and columns."""

    correlations: FloatArray  # of rows 1, 2, ... rows apart, the first few
    error: float  # standard error of one of them, were rows independent
    # (n_lags,): correlations of products of two spins; from some lag on taken to be 0
    squares: FloatArray
    n_rows: int

    @property
    def is_seen(self) -> bool:
        """Whether rows are more alike than chance would have it."""
        return bool((self.correlations > _LARGE * self.error).any())

    @property
    def design_effect(self) -> float:
        r"""1 + 2 \sum_k (1 - k/M) c_k^2, where products of two spins have correlations c_k^2."""
        lags = np.arange(1, len(self.squares) + 1)
        weighted = self.squares * (1 - lags / self.n_rows)
        return 1 + 2 * float(weighted.sum())

    @property
    def block_length(self) -> int:
        r"""Rows of a block: blocks of B rows miss 2 \sum_k k c_k^2 / B of the variance."""
        lags = np.arange(1, len(self.squares) + 1)
        missed = 2 * float((lags * self.squares).sum()) / self.design_effect
        longest = max(1, self.n_rows // _FEWEST_BLOCKS)
        return int(np.clip(np.ceil(missed / _LOST), 1, longest))


def row_order(packed: PackedSpins, rows: RowBits, variance: float) -> RowOrder:
    """Correlations of rows with those some rows later.

    Rows that were sorted by columns or by their sum are compared only where those are the same, and
    in the columns that they were not sorted by. What lasts over a twentieth of the table is a trend
    or another way of sorting, no repetition, and is taken off.
    variance: of the distance of two independent rows, in units of its mean squared
    """
    n_rows = packed.n_samples
    error = float(np.sqrt(variance / n_rows))
    level, keys = _sorting(packed)
    series = _series(rows, level, keys)
    longest = max(_FIRST_LAGS, n_rows // _LONGEST_LAG)
    far_lags = range(1 + longest, 1 + longest + _FIRST_LAGS)
    far_alike = []
    for lag in far_lags:
        far_alike.append(series.alike(lag))
    far = max(float(np.mean(far_alike)), 0.0)
    correlations: list[float] = []
    n_small = 0
    lags = _lags(longest)
    for lag in lags:
        correlations.append(series.alike(lag) - far)
        n_small = 0 if correlations[-1] > _SMALL * error else n_small + 1
        if lag >= _FIRST_LAGS and n_small >= _GAP:
            break
    lags = lags[: max(1, len(correlations) - n_small)]
    squares = np.zeros(1)
    if max(correlations[:_FIRST_LAGS]) > _LARGE * error:
        columns = rows.columns[~np.isin(rows.columns, keys)]
        some = _score_correlations(packed, columns, level, lags, far_lags)
        every_lag = np.arange(1, lags[-1] + 1)
        squares = np.interp(every_lag, lags, some)
    return RowOrder(np.array(correlations[:_FIRST_LAGS]), error, squares, n_rows)


def _lags(longest: int) -> list[int]:
    """Every lag at first, then fewer and fewer."""
    lags = [1]
    while lags[-1] < longest:
        last = lags[-1]
        lags.append(min(last + 1 + last // _DENSE, longest))
    return lags


def _score_correlations(
    packed: PackedSpins, columns: IntArray, level: IntArray, lags: list[int], far_lags: range
) -> FloatArray:
    r"""(n_lags,): correlation of products x_i x_j with those some rows later, mean of all pairs.

    The sum over i != j of x_{ai} x_{aj} x_{bi} x_{bj} is (x_a . x_b)^2 - \sum_i x_{ai}^2 x_{bi}^2.
    """
    n_columns = min(len(columns), max(_FEWEST_COLUMNS, CELLS // packed.n_samples))
    some = columns[:: -(-len(columns) // n_columns)]
    values = np.asarray(packed[:, some], dtype=np.float32)
    present = values != 0
    starts = np.flatnonzero(np.diff(level, prepend=-1))
    sizes = np.diff(np.append(starts, len(level)))
    totals = np.add.reduceat(values, starts, axis=0)
    seen = np.add.reduceat(present, starts, axis=0, dtype=np.int64)
    means = np.repeat(totals / np.maximum(seen, 1), sizes, axis=0)
    centred = np.where(present, values - means, 0.0)
    n_present = np.maximum(present.sum(axis=0), 1)
    spread = np.sqrt((centred**2).sum(axis=0) / n_present)
    centred /= np.maximum(spread, 1e-9)

    def at(lag: int) -> float:
        same = level[lag:] == level[: len(level) - lag]
        products = (centred[lag:] * centred[: len(level) - lag])[same]
        sums = products.sum(axis=1, dtype=np.float64) ** 2 - (products**2).sum(axis=1)
        return float(sums.mean()) if len(sums) else 0.0

    far = float(np.mean([at(lag) for lag in far_lags]))
    at_once = at(0) - far
    if at_once <= 0:
        return np.zeros(len(lags))
    return np.array([max((at(lag) - far) / at_once, 0.0) for lag in lags])


@dataclass(frozen=True, slots=True, eq=False)
class _Series:
    """Rows in their order, and how far apart they would be in any other."""

    rows: Words  # (n_rows, n_row_words)
    level: IntArray  # (n_rows,), ascending: rows may be compared where it is the same
    expected: FloatArray  # (n_levels,): distance of two rows of a level in any order

    def alike(self, lag: int) -> float:
        """Mean correlation of rows of a level with those so many rows later: 1 - D / E D."""
        distances = lagged_distances(self.rows, lag)
        level = self.level[: len(distances)]
        expected = self.expected[level]
        usable = (self.level[lag:] == level) & (expected > 0)
        if not usable.any():
            return 0.0
        return float(1 - (distances[usable] / expected[usable]).mean())


def _series(rows: RowBits, level: IntArray, keys: IntArray) -> _Series:
    """With n_1 and n_0 rows of either value in a level, two of them differ with probability
    2 n_1 n_0 / (n (n - 1)): exact for rows in any order, however few.
    """
    places = rows.places[~np.isin(rows.columns, keys)]
    n_words = rows.rows.shape[1]
    is_looked_at = np.zeros(64 * n_words, dtype=np.uint8)
    is_looked_at[places] = 1
    looked_at = np.packbits(is_looked_at, bitorder="little").view("<u8").astype(np.uint64)
    starts = np.flatnonzero(np.diff(level, prepend=-1))
    ends = np.append(starts, len(level))
    sizes = np.diff(ends)[:, np.newaxis]
    values = as_bits(rows.rows, 64 * n_words)[:, places]
    ones = np.add.reduceat(values, starts, axis=0, dtype=np.int64)
    n_pairs = np.maximum(sizes * (sizes - 1.0), 1.0)
    rates = 2.0 * ones * (sizes - ones) / n_pairs
    return _Series(rows.rows & looked_at, level, rates.sum(axis=1))


# Sorted rows


def _sorting(packed: PackedSpins) -> tuple[IntArray, IntArray]:
    """(n_rows,), a number for rows that are the same in all that rows were sorted by, ascending;
    and the columns among that.
    """
    borders = _sum_borders(packed)
    words = np.asarray(packed.words)
    following = words >> np.uint64(1)
    following[:, :-1] |= words[:, 1:] << np.uint64(63)
    n_changes = bit_sums(words ^ following)  # and one from a last row of 1 to the bits after it
    is_key = np.zeros(packed.n_spins, dtype=bool)
    # a missing value, whose bit is 0, may have a run of its own
    n_runs = 2 if packed.present is None else 3
    if (n_changes <= n_runs * (borders.sum() + 1)).any():
        borders, is_key = _key_columns(np.asarray(packed), borders)
    level = np.concatenate([[0], np.cumsum(borders)])
    return level, np.flatnonzero(is_key)


def _sum_borders(packed: PackedSpins) -> BoolArray:
    """(n_rows - 1,): where the sum of a row differs from the next one's, if rows are sorted by it;
    else nowhere.
    """
    nowhere = np.zeros(max(packed.n_samples - 1, 0), dtype=bool)
    for part in (packed[:_FIRST_ROWS], packed):
        sums = 2 * as_bits(part.words, len(part)).sum(axis=0, dtype=np.int64)
        if part.present is not None:
            sums -= as_bits(part.present, len(part)).sum(axis=0, dtype=np.int64)
        steps = np.diff(sums)
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
