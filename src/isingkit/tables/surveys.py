"""Survey: what all columns of a table hold, as `isingkit check --json` tells it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from isingkit.exceptions import IsingkitError
from isingkit.result_table import Record
from isingkit.spins import Binarize, Coding, Column, codings_of, column_of, is_codable
from isingkit.tables.layout import number_of
from isingkit.tables.rows import NOT_TICKED, Reading


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of a table before anything is decided."""

    columns: tuple[Column, ...]
    n_rows: int
    with_codes: frozenset[str] = frozenset()  # columns more of which is missing than they say

    @classmethod
    def of_reading(cls, reading: Reading) -> "Survey":
        """Of a table that could be read."""
        packed = reading.packed
        mapping = packed.mapping or [(-1, 1)] * packed.n_spins
        pairs = zip(packed.names, mapping, strict=True)
        columns = reading.columns or tuple(column_of(name, values, 0) for name, values in pairs)
        return cls(columns, packed.n_samples)

    @classmethod
    def of_error(cls, error: IsingkitError) -> "Survey | None":
        """Of a table that was refused, where all of it had been looked at."""
        return None if error.survey is None else cls(*error.survey)

    @classmethod
    def from_facts(cls, facts: Record) -> "Survey":
        """Of what `facts` had told."""
        return cls(tuple(_column(one) for one in facts["columns"]), facts["n_rows"])

    def facts(self, binarize: Binarize = None) -> Record:
        """For JSON: `n_rows`, and of each column `name`, `low`, `high`, `distinct` (where there are
        more than two values, the first), `n_missing`, `repeats` (whether values came again before
        there were too many of them) and `coding`, null where there is none.
        """
        codings = self.codings(self.columns, binarize)
        columns = [
            {
                "name": one.name,
                "low": _plain(one.low),
                "high": _plain(one.high),
                "distinct": None if one.distinct is None else list(map(_plain, one.distinct)),
                "n_missing": int(one.n_missing),
                "repeats": one.repeats,
                "coding": codings.get(one.name),
            }
            for one in self.columns
        ]
        return {"n_rows": self.n_rows, "columns": columns}

    def without_codes(self, codes: Sequence[str]) -> "Survey":
        """What columns hold beside values that stand for missing ones."""
        words = {code.strip().casefold() for code in codes}
        numbers = {number_of(word) for word in words} - {None}
        columns = [_without(one, words, numbers) for one in self.columns]
        pairs = zip(self.columns, columns, strict=True)
        changed = frozenset(one.name for one, other in pairs if one is not other)
        return replace(self, columns=tuple(columns), with_codes=changed)

    def with_ticks(self, names: Sequence[str]) -> "Survey":
        """What columns hold where an empty cell of these means no."""
        ticked = {one.name: _with_ticks(one) for one in self.columns if one.name in names}
        return replace(self, columns=tuple(ticked.get(one.name, one) for one in self.columns))

    def codings(self, columns: Sequence[Column], binarize: Binarize) -> dict[str, tuple[Any, Any]]:
        """Which values become -1 and +1, of those columns that can."""
        codable = [
            one for one in columns if one.n_missing < self.n_rows and is_codable(one, binarize)
        ]
        codings: list[Coding] = codings_of(codable, binarize)
        return {
            one.name: (_plain(low), _plain(high))
            for one, (low, high) in zip(codable, codings, strict=True)
        }


def _without(column: Column, words: set[str], numbers: set[Any]) -> Column:
    """A column without these values; the same where it has none of them."""
    values = column.distinct or (() if column.low is None else (column.low, column.high))
    gone = {one for one in values if one in numbers or str(one).strip().casefold() in words}
    if not gone:
        return column
    kept = [one for one in values if one not in gone]
    found = column_of(column.name, kept, column.n_missing)
    return replace(found, repeats=column.repeats)


def _with_ticks(column: Column) -> Column:
    """A column of marks, which are texts beside "no"."""
    seen = () if column.low is None else column.distinct or (column.low, column.high)
    texts = {one if isinstance(one, str) else f"{one:g}" for one in seen}
    return column_of(column.name, {NOT_TICKED, *texts}, 0)


def _column(facts: Record) -> Column:
    distinct = facts["distinct"]
    return Column(
        facts["name"],
        facts["low"],
        facts["high"],
        facts["n_missing"],
        None if distinct is None else tuple(distinct),
        facts["repeats"],
    )


def _plain(value: Any) -> Any:
    """What JSON can hold; None in place of a value that was not there."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
