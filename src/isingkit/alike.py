"""AlikeColumns: columns of a table that are equal or opposite, and the spin they become."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.exceptions import SettingError
from isingkit.gram import Gram, gram_of
from isingkit.packing import PackedSpins, Words, bits, presence
from isingkit.result_table import ResultTable, as_table
from isingkit.spins import Names, RowWeights

MANY_COLUMNS = 1000  # beyond it, equal and opposite columns are merged unless somebody says no
ALIKE_COLUMNS = ("column", "variable", "correlation")  # of the table of what was merged
_BLOCK = 2048  # columns whose correlations with as many others are held at a time
_DIGEST = 16  # bytes by which a column is known: two different ones never share them


@dataclass(frozen=True, slots=True, eq=False)
class AlikeColumns:
    """Which columns became one spin: one with the name and the values of the first of them."""

    columns: Names  # of the table
    # (n_columns,): the spin that each became; spins are in the order of their first columns
    spins: IntArray
    correlations: FloatArray  # (n_columns,): with the first column of the spin

    @property
    def firsts(self) -> IntArray:
        """(n_spins,): the column that gave a spin its name and values."""
        return np.unique(self.spins, return_index=True)[1]

    @property
    def names(self) -> Names:
        """Of spins."""
        return tuple(self.columns[j] for j in self.firsts)

    @property
    def n_merged(self) -> int:
        """Columns that became part of another's spin."""
        return len(self.columns) - len(self.firsts)

    def merged(self, packed: PackedSpins) -> PackedSpins:
        """Samples of all columns as samples of the spins."""
        return packed[:, self.firsts]

    def table(self) -> ResultTable:
        """Columns that became part of another's spin: column, spin, correlation."""
        return alike_table(self)

    def members(self) -> dict[str, str]:
        """By spin, what its further columns are, as text: "b; c; not d", where d is opposite."""
        found: dict[str, list[str]] = {}
        for row in self.table():
            word = "" if row["correlation"] > 0 else "not "
            found.setdefault(str(row["variable"]), []).append(f"{word}{row['column']}")
        return {spin: "; ".join(texts) for spin, texts in found.items()}


def alike_table(alike: AlikeColumns | None) -> ResultTable:
    """Columns that became part of another's spin, in the order of the table; None has none."""
    if alike is None:
        texts = np.empty(0, dtype="U1")
        return as_table(dict(zip(ALIKE_COLUMNS, (texts, texts, np.empty(0)), strict=True)))
    columns = np.array(alike.columns, dtype=np.str_)
    firsts = alike.firsts[alike.spins]
    others = np.flatnonzero(firsts != np.arange(len(columns)))
    found = (columns[others], columns[firsts[others]], alike.correlations[others])
    return as_table(dict(zip(ALIKE_COLUMNS, found, strict=True)))


def merging_limit(merge_alike: Any, n_columns: int) -> float | None:
    """The correlation from which on columns become one spin; None where none do.

    merge_alike: True, False, a number, or "auto"
    """
    if merge_alike == "auto":
        return 1.0 if n_columns > MANY_COLUMNS else None
    if isinstance(merge_alike, bool | np.bool_):
        return 1.0 if merge_alike else None
    return float(merge_alike)


def require_merging(merge_alike: Any) -> None:
    """Refuse what `merge_alike` cannot be."""
    if isinstance(merge_alike, bool | np.bool_) or merge_alike == "auto":
        return
    is_number = isinstance(merge_alike, int | float | np.number)
    if not (is_number and 0 < merge_alike <= 1):
        raise SettingError(
            setting="merge_alike",
            value=merge_alike,
            expected="True, False, 'auto' or a correlation above 0 and at most 1, such as 0.98",
        )


def alike_columns(
    packed: PackedSpins, limit: float, weights: RowWeights | None = None
) -> AlikeColumns | None:
    """Columns whose correlation is at least `limit`, either way; None where there are none.

    A column joins the first that is alike and has joined no other, so that all members of a spin
    are as alike to its first column as was asked for. Columns that never change stay alone. Those
    that are equal or opposite are found by a digest of their bits, others by all pair sums, some
    columns at a time.
    """
    found = _equal_columns(packed, weights)
    if limit < 1:
        found = _joined(found, _correlated_columns(found.merged(packed), limit, weights))
    return found if found.n_merged else None


def _equal_columns(packed: PackedSpins, weights: RowWeights | None) -> AlikeColumns:
    """Columns that are equal or opposite in all rows of positive weight, missing cells included."""
    counted = _counted_rows(packed, weights)
    spins: list[int] = []
    signs: list[float] = []
    seen: dict[bytes, tuple[int, bool]] = {}  # by digest: the spin, and whether it starts high
    for words, known in _column_blocks(packed, counted):
        starts_high = _starts_high(words, known)
        changes = words.any(axis=1) & (words != known).any(axis=1)
        upright = np.where(starts_high[:, None], words ^ known, words)
        for one, mask, is_high, does_change in zip(
            upright, known, starts_high, changes, strict=True
        ):
            key = blake2b(one.tobytes() + mask.tobytes(), digest_size=_DIGEST).digest()
            if not does_change:  # alone: a key that no other has
                key = len(spins).to_bytes(8)
            spin, of_first = seen.setdefault(key, (len(seen), bool(is_high)))
            spins.append(spin)
            signs.append(1.0 if of_first == is_high else -1.0)
    return AlikeColumns(packed.names, np.array(spins), np.array(signs))


def _counted_rows(packed: PackedSpins, weights: RowWeights | None) -> Words:
    """(n_words,): bits of rows whose weight is positive."""
    totals = np.ones(packed.n_samples) if weights is None else weights.totals
    return bits((totals > 0).astype(np.int8)[:, None])[0]


def _column_blocks(packed: PackedSpins, counted: Words) -> Iterator[tuple[Words, Words]]:
    """Bits of some columns at a time, and which of these are known and count."""
    for start in range(0, packed.n_spins, _BLOCK):
        some = packed[:, start : start + _BLOCK]
        known = presence(some) & counted
        yield some.words & known, known


def _starts_high(words: Words, known: Words) -> BoolArray:
    """(n_columns,): whether the first known value is +1; opposite columns differ in that."""
    first = (known != 0).argmax(axis=1)
    rows = np.arange(len(words))
    mask = known[rows, first]
    lowest = mask & (~mask + np.uint64(1))
    return np.asarray((words[rows, first] & lowest) != 0)


def _correlated_columns(
    packed: PackedSpins, limit: float, weights: RowWeights | None
) -> AlikeColumns:
    """Columns that join the first whose correlation with them is large enough."""
    n_columns = packed.n_spins
    firsts = np.arange(n_columns)
    correlations = np.ones(n_columns)
    starts = range(0, n_columns, _BLOCK)
    # rows of blocks in order, so that whether a column leads is known before others may join it
    for start in starts:
        own = np.arange(start, min(start + _BLOCK, n_columns))
        later = [np.arange(at, min(at + _BLOCK, n_columns)) for at in starts if at > start]
        for others in [own, *later]:
            both = np.union1d(own, others)
            found = _correlations(gram_of(packed[:, both], weights))
            rows = np.searchsorted(both, own)
            of_others = found[np.ix_(rows, np.searchsorted(both, others))]
            for i, j in np.argwhere(np.abs(of_others) >= limit):
                leader, column = own[i], others[j]
                is_free = firsts[leader] == leader and firsts[column] == column
                if column > leader and is_free:
                    firsts[column] = leader
                    correlations[column] = of_others[i, j]
    spins = np.unique(firsts, return_inverse=True)[1]
    return AlikeColumns(packed.names, spins, correlations)


def _correlations(stat: Gram) -> FloatArray:
    """(n_columns, n_columns): over rows where both are known; 0 where one never changes."""
    totals: Any = stat.n_samples
    sums = stat.spin_sums[:, None] + np.zeros(stat.sums.shape)
    if stat.joint is not None:
        totals = np.maximum(stat.joint.counts, 1)
        sums = stat.joint.spin_sums
    means = sums / totals
    covariances = stat.sums / totals - means * means.T
    variances = (1 - means**2) * (1 - means.T**2)
    changes = variances > 0
    scales = np.sqrt(np.where(changes, variances, 1.0))
    return np.where(changes, covariances / scales, 0.0)


def _joined(equal: AlikeColumns, near: AlikeColumns) -> AlikeColumns:
    """Spins of spins: first the equal columns, then of what these left the correlated ones."""
    correlations = equal.correlations * near.correlations[equal.spins]
    return AlikeColumns(equal.columns, near.spins[equal.spins], correlations)
