"""Decisions: what a table asks of its reader, column by column, with the options that answer."""

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from isingkit.exceptions import short
from isingkit.missing import MissingPolicy
from isingkit.spins import NUMERIC_CODINGS, Column, is_codable
from isingkit.tables import as_list

_MANY = 20  # values: more are not listed of a column
_FEW = 10  # values that may be answers on a scale
_SHOWN = 4  # values in a message
_NAMES_OF_ROWS = re.compile(
    r"(.*[_ .-])?(id|no|nr|index|subject|participant|person|patient|respondent|case|name|unit)s?"
    r"|unnamed.*|column 1|rollcall",
    re.IGNORECASE,
)
_WEIGHTS = re.compile(r"(.*[_ .-])?(weight|wt|wgt)s?", re.IGNORECASE)
_COUNTS = re.compile(r"(.*[_ .-])?(count|freq|frequency)s?", re.IGNORECASE)
_OUTCOMES = re.compile(
    r"(.*[_ .-])?(class|target|outcome|label|diagnosis|dx|group|arm|treatment|treated|condition"
    r"|status|response|survived|died|sex|gender|y)",
    re.IGNORECASE,
)
_CUT = "--binarize"
_CODES = {-999.0, -99.0, -9.0, -8.0, -7.0, 7.0, 8.0, 9.0, 77.0, 88.0, 99.0, 999.0}  # of no answer


@dataclass(frozen=True, slots=True)
class Decision:
    """Something that a table leaves open."""

    column: str  # or several, as words
    seen: str  # what it holds
    options: tuple[str, ...]  # of the command line; the likeliest first
    name: str | None = None  # of the column, whole; None where there are several

    def line(self) -> str:
        """What is to be decided, for people."""
        return f"{self.column}: {self.seen}: {' or '.join(self.options)}"


def decisions(
    columns: Sequence[Column],
    n_rows: int,
    policies: Sequence[MissingPolicy],
    *,
    binarize: float | None = None,
    missing: str = "error",
) -> list[Decision]:
    """All that must be decided before a table can be used; policies: what the method can do about
    missing values; binarize and missing: what has been decided.
    """
    empty = [one for one in columns if one.n_missing == n_rows]
    others = [one for one in columns if one.n_missing < n_rows]
    wrong = [one for one in others if not is_codable(one, binarize)]
    threshold = _shared_threshold(others)
    found = [_decision(one, threshold, n_rows) for one in wrong]
    to_cut = {one.name for one in found if one.options[0].startswith(_CUT)}
    found += [Decision(_quoted(one), "no value at all", (_drop(one),), one.name) for one in empty]
    usable = [one for one in others if is_codable(one, binarize) or one.name in to_cut]
    n_missing = sum(one.n_missing for one in usable)
    if n_missing and missing == MissingPolicy.ERROR:
        n_columns = sum(one.n_missing > 0 for one in usable)
        what = f"{n_columns} column{'s' * (n_columns > 1)}"
        found.append(Decision(what, f"{n_missing} values are missing", _remedies(policies)))
    return found


def looks_like_outcome(name: str) -> bool:
    """Whether a column seems to say what rows are, and to be no variable among others."""
    return _OUTCOMES.fullmatch(name.strip()) is not None


def suggested_options(found: Sequence[Decision]) -> str:
    """Options that answer every decision as it is likeliest meant."""
    values: dict[str, list[str]] = {}
    for one in found:
        name, value = one.options[0].split(" ", 1)
        if name == "--id-column" and name in values:  # there can be one only
            name = "--drop"
        values.setdefault(name, []).append(value)
    return " ".join(f"{name} {','.join(dict.fromkeys(them))}" for name, them in values.items())


def _decision(column: Column, threshold: float | None, n_rows: int) -> Decision:
    """What to do about a column that does not hold two values."""
    seen = _listed(column)
    code = _code_of_no_answer(column)
    options = _remedies_of(column, threshold, n_rows)
    if code is not None and options[0] == _drop(column):
        seen = f"{seen} (if {code:g} stands for no answer, empty those cells)"
    return Decision(_quoted(column), seen, options, column.name)


def _remedies_of(column: Column, threshold: float | None, n_rows: int) -> tuple[str, ...]:
    """Options that settle a column, the likeliest first."""
    name = shlex.quote(column.name)
    drop = _drop(column)
    is_id = f"--id-column {name}"
    known = (drop,) if column.n_missing else (f"--covariates {_typed(column)}", drop)
    if column.is_text:
        is_many = len(column.distinct or ()) >= min(_MANY, n_rows)
        return (is_id, drop) if is_many or _is_name_of_rows(column) else known
    if _WEIGHTS.fullmatch(column.name):
        return f"--weights {name}", drop
    if _COUNTS.fullmatch(column.name):
        return f"--counts {name}", drop
    if _is_name_of_rows(column):
        return is_id, drop
    if threshold is not None and 1 < len(column.distinct or (0, 0)) <= _FEW:
        return f"{_CUT} {threshold:g}", drop
    if _code_of_no_answer(column) is not None:
        return (drop,)
    return (*known, f"--counts {name}") if _may_count(column) else known


def _code_of_no_answer(column: Column) -> float | None:
    """A third value beside two that are a known coding, of those that surveys use."""
    values = column.distinct or ()
    codes = [one for one in values if one in _CODES]
    others = tuple(one for one in values if one not in _CODES)
    return codes[0] if len(codes) == 1 and others in NUMERIC_CODINGS else None


def _may_count(column: Column) -> bool:
    """Whether its numbers may say how many equal rows a row stands for."""
    values = (*(column.distinct or ()), column.low, column.high)
    are_whole = all(float(one).is_integer() and one >= 0 for one in values)
    return are_whole and not column.n_missing


def _is_name_of_rows(column: Column) -> bool:
    """Whether it has such a name, or numbers rows from 0 or 1 on."""
    distinct = column.distinct or ()
    if len(distinct) < _MANY:
        return False
    is_numbered = [*distinct] in ([*range(_MANY)], [*range(1, _MANY + 1)])
    return is_numbered or _NAMES_OF_ROWS.fullmatch(column.name.strip()) is not None


def _shared_threshold(columns: Sequence[Column]) -> float | None:
    """A threshold that cuts every column of few numbers, where most columns are answers on a
    scale.
    """
    numbers = [one for one in columns if not one.is_text]
    scales = [one for one in numbers if 2 < len(one.distinct or ()) <= _FEW]
    if not scales or len(scales) < len(columns) / 2:
        return None
    lowest = max(one.low for one in scales)
    highest = min(one.high for one in scales)
    middle = math.floor((lowest + highest) / 2)
    return float(middle) if lowest <= middle < highest else None


def _remedies(policies: Sequence[MissingPolicy]) -> tuple[str, ...]:
    """Options about missing values, the best first."""
    best_first = sorted(policies, key=lambda one: one is not MissingPolicy.IMPUTE)
    return tuple(f"--missing {one}" for one in best_first if one.remedy)


def _listed(column: Column) -> str:
    values = column.distinct or (column.low, column.high)
    texts = [value if isinstance(value, str) else f"{value:g}" for value in values[:_SHOWN]]
    some = ", ".join(map(short, texts))
    more = ", ..." if len(values) > _SHOWN else ""
    if len(values) < 3 and column.distinct is not None:  # of which only the ends were kept
        return f"more than two values ({column.low:g} to {column.high:g})"
    number = f"{len(values)}{' or more' if len(values) >= _MANY else ''}"
    return f"{number} values ({some}{more})"


def _quoted(column: Column) -> str:
    return f"'{short(column.name)}'"


def _drop(column: Column) -> str:
    return f"--drop {_typed(column)}"


def _typed(column: Column) -> str:
    """In a list of names."""
    return shlex.quote(as_list([column.name]))
