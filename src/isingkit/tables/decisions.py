"""Decisions: what a table asks of its reader, column by column, with the options that answer."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from isingkit.exceptions import short, typed_list
from isingkit.missing import MissingPolicy
from isingkit.spins import Binarize, Column, is_codable, says_no
from isingkit.tables import listed

_MANY = 20  # values: more are not listed of a column
_FEWEST_VARIABLES = 2
_FEW = 10  # values that may be answers on a scale
_MOST_BITS = 60
_ITEMS = 3  # columns of one scale: questions, and no facts about rows
_SHOWN = 4  # values in a message
_NAMES_OF_ROWS = re.compile(
    r"(.*[_ .-])?(id|no|nr|index|subject|participant|person|patient|respondent|case|name|unit)s?"
    r"|unnamed.*|column 1|rollcall",
    re.IGNORECASE,
)
_GROUPS_OF_ROWS = re.compile(
    r"(.*[_ .-])?(site|plot|transect|quadrat|block|location|station|school|classroom|family|couple"
    r"|household|clinic|hospital|country|session|day|animal|mouse|rat|recording|trial|observer)s?",
    re.IGNORECASE,
)
_WEIGHTS = re.compile(r"(.*[_ .-])?(weight|wt|wgt)s?", re.IGNORECASE)
_COUNTS = re.compile(r"(.*[_ .-])?(count|freq|frequency)s?", re.IGNORECASE)
_PERHAPS_COUNTS = re.compile(r"(.*[_ .-])?(n|num|number|times|total|obs|cases)", re.IGNORECASE)
_UNNAMED = re.compile(r"x\d+")  # columns of a file without names
_OUTCOMES = re.compile(
    r"(.*[_ .-])?(class|target|outcome|label|diagnosis|dx|group|arm|treatment|treated|condition"
    r"|status|response|survived|died|sex|gender|y)",
    re.IGNORECASE,
)
CUT_OPTION = "--binarize"
CODES_OPTION = "--missing-codes"
TICKED_OPTION = "--ticked"
_OF_ONE_COLUMN = ("--id-column", "--weights", "--counts", "--row-groups")
_LISTS = ("--columns", "--drop", "--covariates", CUT_OPTION, CODES_OPTION, TICKED_OPTION)
# of no answer: numbers far from those of answers, and words
_CODES_BELOW = {-7.0, -8.0, -9.0, -66.0, -77.0, -88.0, -99.0, -888.0, -999.0, -9999.0}
_CODES_ABOVE = {7.0, 8.0, 9.0, 77.0, 88.0, 99.0, 777.0, 888.0, 999.0, 9999.0}
_GAP = 2  # beyond the largest answer
_NO_ANSWERS = re.compile(
    r"[-–.?*]|--|-?(7|8|9|77|88|99|777|888|999|9999)(\.0)?|don'?t know|dk|unknown|unsure|not sure"
    r"|no answer|refused|missing|not applicable|prefer not to (say|answer)|k\.? ?a\.?"
    r"|keine angabe|wei(ß|ss) nicht|ne sait pas|no sabe|unclear|undetermined|nr|nd|not tested",
    re.IGNORECASE,
)
# beside votes only: elsewhere, being present or absent is the answer
_VOTES = re.compile(r"y|yea|aye|yes|for|in favou?r|n|nay|no|against", re.IGNORECASE)
_NO_VOTES = re.compile(
    r"(did )?not? vot(e|ing)|didn'?t vote|(not )?present|absent|abstain(ed|s|ing)?|abstentions?"
    r"|excused|paired.*|vacant|recused",
    re.IGNORECASE,
)


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

    def asked(self) -> tuple[str, ...]:
        """What other columns may ask as well: options with NAME in place of its own, and, where the
        likeliest is of that kind, what it holds.
        """
        options = tuple(_with_any_name(option, self.name or "") for option in self.options)
        return (*options, self.seen) if options[0] != self.options[0] else options


def decisions(
    columns: Sequence[Column],
    n_rows: int,
    policies: Sequence[MissingPolicy],
    *,
    binarize: Binarize = None,
    missing: str = "error",
    has_gaps: bool = False,
) -> list[Decision]:
    """All that must be decided before a table can be used; policies: what the method can do about
    missing values; binarize and missing: what has been decided; has_gaps: whether more values are
    missing than columns say.
    """
    empty = [one for one in columns if one.n_missing == n_rows]
    others = [one for one in columns if one.n_missing < n_rows]
    together = _together([_answers_of(one, binarize) for one in others], n_rows)
    found: list[Decision] = []
    for one in others:
        found += _decisions_on(one, together, n_rows, binarize)
    found += [Decision(_quoted(one), "no value at all", (_drop(one),), one.name) for one in empty]
    if missing == MissingPolicy.ERROR:
        found += [_decision_on_ticks(one) for one in others if _is_ticked(one)]
        found += _decision_on_missing(others, found, policies, has_gaps)
    return found


def _answers_of(column: Column, binarize: Binarize) -> Column:
    return column if is_codable(column, binarize) else _without_codes(column)


def _decisions_on(
    column: Column, together: "_Together", n_rows: int, binarize: Binarize
) -> list[Decision]:
    """What to do about values that stand for no answer, and about what is left, where that is more
    than two.
    """
    answers = _answers_of(column, binarize)
    found = [] if answers is column else [_decision_on_codes(column, answers)]
    if not is_codable(answers, binarize):
        lacks = answers is not column or column.n_missing > 0
        found.append(_decision(answers, together, n_rows, lacks))
    return found


def _decision_on_missing(
    columns: Sequence[Column],
    found: Sequence[Decision],
    policies: Sequence[MissingPolicy],
    has_gaps: bool,
) -> list[Decision]:
    """What to do about missing values of columns that become variables by what is likeliest."""
    stay = (CUT_OPTION, CODES_OPTION)
    left_out = {one.name for one in found if not one.options[0].startswith(stay)}
    lacks = [one for one in columns if one.n_missing and one.name not in left_out]
    n_missing = sum(one.n_missing for one in lacks)
    if has_gaps or any(one.options[0].startswith(CODES_OPTION) for one in found):
        seen = "they become missing values, about which something must be done"
        if n_missing:
            seen = f"they become missing values, beside {n_missing} that are already"
        return [Decision("codes of no answer", seen, _remedies(policies))]
    if not n_missing:
        return []
    what = f"{len(lacks)} column{'s' * (len(lacks) > 1)}"
    return [Decision(what, f"{n_missing} values are missing", _remedies(policies))]


def among_covariates(columns: Sequence[Column], found: Sequence[Decision]) -> list[str]:
    """Columns of two values between those that are taken for covariates, which may be some, too."""
    likeliest = {one.name: one.options[0] for one in found}
    names = [one.name for one in columns]
    places = [k for k, name in enumerate(names) if _is_covariate(likeliest.get(name, ""))]
    if len(places) < 2:
        return []
    others = [name for name in names if name not in likeliest]
    between = [name for name in names[places[0] : places[-1]] if name not in likeliest]
    return between if 2 * len(between) <= len(others) else []


def _is_covariate(option: str) -> bool:
    return option.startswith("--covariates ")


def likeliest_meant(columns: Sequence[Column], found: Sequence[Decision]) -> list[Decision]:
    """The decisions, and that what stands between covariates is one, too."""
    between = [
        Decision(f"'{short(name)}'", "", (f"--covariates {typed_list([name])}",), name)
        for name in among_covariates(columns, found)
    ]
    return [*found, *between]


def leaves_variables(columns: Sequence[Column], found: Sequence[Decision]) -> bool:
    """Whether what is likeliest leaves two columns at least to find edges between."""
    stay = (CUT_OPTION, CODES_OPTION, TICKED_OPTION)
    gone = {
        one.name
        for one in likeliest_meant(columns, found)
        if one.name is not None and not one.options[0].startswith(stay)
    }
    return len(columns) - len(gone) >= _FEWEST_VARIABLES


def has_totals(columns: Sequence[Column]) -> bool:
    """Whether most columns hold 0, 1 and another large number each, as with a row of totals."""
    others = [
        one.high
        for one in columns
        if not one.is_text and one.distinct is not None and one.distinct[:-1] == (0, 1)
    ]
    most = len(columns) / 2
    return len(others) > most and min(others) > _FEW and len(set(others)) > 1


def outcomes(columns: Sequence[Column], found: Sequence[Decision]) -> list[str]:
    """Columns that seem to be outcomes, of those about which nothing else is open."""
    asked = {one.name for one in found}
    return [one.name for one in columns if one.name not in asked and looks_like_outcome(one.name)]


def looks_like_outcome(name: str) -> bool:
    """Whether a column seems to say what rows are, and to be no variable among others."""
    return _OUTCOMES.fullmatch(name.strip()) is not None


def suggested_options(
    found: Sequence[Decision], given: Mapping[str, str] | None = None, *, repeats: bool = False
) -> str:
    """Options that answer every decision as it is likeliest meant; with what has been given of the
    same options, or, where it `repeats`, of all.
    """
    given = given or {}
    changed = set()
    values = {name: [shlex.quote(text)] if text else [] for name, text in given.items()}
    for one in found:
        name, value = one.options[0].split(" ", 1)
        if name in _OF_ONE_COLUMN and name in values:
            name, value = one.options[-1].split(" ", 1)  # leaves it out
        if name not in _LISTS:
            values.pop(name, None)
        values.setdefault(name, []).append(value)
        changed.add(name)
    if not repeats:
        values = {name: them for name, them in values.items() if name in changed}
    codes = values.pop(CODES_OPTION, None)
    words = [f"{name} {','.join(dict.fromkeys(them))}".rstrip() for name, them in values.items()]
    if codes is not None:
        words.insert(0, f"{CODES_OPTION} {typed_list(listed_codes(codes))}")
    return " ".join(words)


def listed_codes(values: Sequence[str]) -> list[str]:
    """Each code once, of values as they are typed."""
    codes = [code for value in values for code in listed(shlex.split(value)[0])]
    return list(dict.fromkeys(codes))


def _decision(column: Column, together: "_Together", n_rows: int, lacks: bool) -> Decision:
    """What to do about a column that does not hold two values; lacks: whether some are missing."""
    options = _remedies_of(column, together, n_rows, lacks)
    return Decision(_quoted(column), _listed(column), options, column.name)


def _decision_on_codes(column: Column, answers: Column) -> Decision:
    """What to do about values that seem to stand for no answer."""
    codes = _codes_of(column, answers)
    texts = [_as_text(one) for one in codes]
    seen = f"{_listed(column)}, of which {' and '.join(texts)} may stand for no answer"
    remedy = f"{CODES_OPTION} {typed_list(texts)}"
    return Decision(_quoted(column), seen, (remedy, _drop(column)), column.name)


def _is_ticked(column: Column) -> bool:
    """Whether one mark and empty cells are all it holds, of which the mark says that it is so."""
    is_alone = column.low is not None and column.low == column.high and column.n_missing > 0
    if not is_alone or _without_codes(column) is not column:
        return False
    return not says_no(column.low) if column.is_text else column.low > 0


def _decision_on_ticks(column: Column) -> Decision:
    """What empty cells mean in a column of one mark."""
    seen = f"only '{short(_as_text(column.low))}', and {column.n_missing} empty cells"
    remedy = f"{TICKED_OPTION} {typed_list([column.name])}"
    return Decision(_quoted(column), seen, (remedy, _drop(column)), column.name)


def _remedies_of(
    column: Column, together: "_Together", n_rows: int, lacks: bool
) -> tuple[str, ...]:
    """Options that settle a column, the likeliest first."""
    drop = _drop(column)
    known = (drop,) if lacks else (f"--covariates {typed_list([column.name])}", drop)
    if _groups_rows(column):
        return (f"--row-groups {shlex.quote(column.name)}", *known)
    if column.is_text:
        return _remedies_of_text(column, known, n_rows)
    return _named_remedy(column) or _remedies_of_numbers(column, known, together, lacks)


def _remedies_of_text(column: Column, known: tuple[str, ...], n_rows: int) -> tuple[str, ...]:
    name = shlex.quote(column.name)
    is_many = len(column.distinct or ()) >= min(_MANY, n_rows)
    if is_many and column.repeats and not column.n_missing:
        return f"--row-groups {name}", _drop(column)
    if is_many or _is_name_of_rows(column):
        return f"--id-column {name}", _drop(column)
    return known


def _named_remedy(column: Column) -> tuple[str, ...]:
    """What the name of a column of numbers says that it is, if it does."""
    roles = {
        "--weights": _WEIGHTS.fullmatch(column.name) is not None,
        "--counts": _COUNTS.fullmatch(column.name) is not None,
        "--id-column": _is_name_of_rows(column),
    }
    named = [option for option, is_so in roles.items() if is_so]
    return (f"{named[0]} {shlex.quote(column.name)}", _drop(column)) if named else ()


def _remedies_of_numbers(
    column: Column, known: tuple[str, ...], together: "_Together", lacks: bool
) -> tuple[str, ...]:
    threshold = together.threshold
    if threshold is not None and _is_cut(column, threshold):
        also = (f"{CUT_OPTION} 0",) if threshold and column.low == 0 else ()
        return f"{CUT_OPTION} {threshold:g}", *also, _drop(column)
    if column.name in together.thresholds:
        return _cut_at(column, together.thresholds[column.name]), *known
    may_count = _is_whole(column) and _PERHAPS_COUNTS.fullmatch(column.name)
    counts = f"--counts {shlex.quote(column.name)}"
    if not lacks and may_count:
        return (*known, counts)
    if not lacks and _is_whole(column) and _UNNAMED.fullmatch(column.name):
        return (counts, *known) if together.is_histogram else (*known, counts)
    if _is_answered_on_scale(column):
        return *known[:-1], _cut_at(column, _middle(column)), _drop(column)
    return known


def _cut_at(column: Column, threshold: float) -> str:
    return f"{CUT_OPTION} {typed_list([f'{column.name}={threshold:g}'])}"


def _with_any_name(option: str, name: str) -> str:
    """An option with NAME in place of this name of a column."""
    kind, value = option.split(" ", 1)
    if value == typed_list([name]):
        return f"{kind} NAME"
    words = listed(shlex.split(value)[0]) if kind == CUT_OPTION else []
    if len(words) == 1 and words[0].startswith(f"{name}="):
        return f"{kind} NAME={words[0].rpartition('=')[2]}"
    return option


def _without_codes(column: Column) -> Column:
    """The column as it is without values that seem to stand for no answer; the same, where none
    does.
    """
    values = column.distinct or (() if column.low is None else (column.low, column.high))
    answers: list[Any]
    if column.is_text:
        answers = _votes([one for one in values if not _NO_ANSWERS.fullmatch(one.strip())])
        is_clear = 0 < len(answers) <= 2
    else:
        answers = _without_codes_above(_without_codes_below(values))
        is_clear = len(answers) > 1 or (len(answers) == 1 and column.n_missing == 0)
    if not is_clear or len(answers) == len(values) or len(values) >= _MANY:
        return column
    distinct = tuple(answers) if len(answers) > 2 else None
    return replace(column, low=answers[0], high=answers[-1], distinct=distinct)


def _votes(answers: list[str]) -> list[str]:
    """Answers without those that say that there was no vote, where the others are two votes."""
    votes = [one for one in answers if not _NO_VOTES.fullmatch(one.strip())]
    is_vote = len(votes) == 2 and all(_VOTES.fullmatch(one.strip()) for one in votes)
    return votes if is_vote else answers


def _codes_of(column: Column, answers: Column) -> list[Any]:
    """Values of a column that are none of its answers."""
    kept = answers.distinct or (answers.low, answers.high)
    return [one for one in column.distinct or (column.low, column.high) if one not in kept]


def _without_codes_below(values: Sequence[float]) -> list[float]:
    """Numbers without codes, where the others are -1 or more."""
    codes = {one for one in values if one in _CODES_BELOW}
    others = [one for one in values if one not in codes]
    return others if others and min(others) >= -1 else list(values)


def _without_codes_above(values: Sequence[float]) -> list[float]:
    """Numbers without codes that are far above all others."""
    answers = [one for one in values if one not in _CODES_ABOVE]
    if not answers or len(answers) == len(values):
        return list(values)
    codes = [one for one in values if one in _CODES_ABOVE]
    return answers if min(codes) > max(answers) + _GAP else list(values)


def _groups_rows(column: Column) -> bool:
    """Whether it has the name of something that several rows have in common, and they do."""
    is_named = any(one.fullmatch(column.name.strip()) for one in (_GROUPS_OF_ROWS, _NAMES_OF_ROWS))
    if not is_named or not column.repeats or column.n_missing:
        return False
    return not column.is_text or len(column.distinct or ()) > _FEW


def _is_on_scale(column: Column) -> bool:
    """Whether its numbers may be answers on a scale."""
    return 2 < len(column.distinct or ()) <= _FEW


def _is_amount(column: Column) -> bool:
    """Whether its numbers may say how many, or how much, of something there was."""
    return _is_whole(column) and column.low == 0 and len(column.distinct or ()) > 2


def _is_whole(column: Column) -> bool:
    values = (*(column.distinct or ()), column.low, column.high)
    return all(float(one).is_integer() and one >= 0 for one in values)


def _is_name_of_rows(column: Column) -> bool:
    """Whether it has such a name, or numbers rows from 0 or 1 on."""
    distinct = column.distinct or ()
    if len(distinct) < _MANY:
        return False
    is_numbered = [*distinct] in ([*range(_MANY)], [*range(1, _MANY + 1)])
    return is_numbered or _NAMES_OF_ROWS.fullmatch(column.name.strip()) is not None


@dataclass(frozen=True, slots=True)
class _Together:
    """What is known of all columns together: thresholds that make two values of numbers."""

    threshold: float | None = None  # one for all columns of numbers
    thresholds: Mapping[str, float] = field(default_factory=dict)  # where there is none, of some
    is_histogram: bool = False  # whether rows are most of the patterns that there can be


def _together(columns: Sequence[Column], n_rows: int) -> _Together:
    """One threshold, where it leaves both values of columns of two; else that of each column that
    it is for, or of answers to several questions on one scale.
    """
    shared = _shared_threshold(columns)
    if shared is None:
        thresholds = _thresholds_of_scales(columns)
        return _Together(None, thresholds, _is_histogram(columns, n_rows))
    if not any(_is_cut_away(one, shared) for one in columns):
        return _Together(shared)
    return _Together(None, {one.name: shared for one in columns if _is_cut(one, shared)})


def _is_histogram(columns: Sequence[Column], n_rows: int) -> bool:
    """Whether there are as many rows as most of the patterns of columns of two values."""
    n_patterns = 2.0 ** min(sum(one.distinct is None for one in columns), _MOST_BITS)
    return n_patterns / 4 <= n_rows <= n_patterns


def _is_cut(column: Column, threshold: float) -> bool:
    """Whether a threshold for many columns is for this one."""
    return _is_on_scale(column) or (threshold == 0 and _is_amount(column))


def _is_cut_away(column: Column, threshold: float) -> bool:
    """Whether both values of a column are on one side of a threshold."""
    if column.is_text or column.low is None or column.low == column.high:
        return False
    has_two = column.distinct is None
    return has_two and not column.low <= threshold < column.high


def _thresholds_of_scales(columns: Sequence[Column]) -> dict[str, float]:
    """Of columns that several share a scale with, its middle."""
    scales = [one for one in columns if _is_answered_on_scale(one)]
    ends = [(one.low, one.high) for one in scales]
    return {one.name: _middle(one) for one in scales if ends.count((one.low, one.high)) >= _ITEMS}


def _is_answered_on_scale(column: Column) -> bool:
    """Whether it holds whole numbers from 0 or 1 on, hardly one of which was never the answer."""
    if column.is_text or not _is_on_scale(column) or not _is_whole(column):
        return False
    n_steps = column.high - column.low + 1
    return column.low <= 1 and len(column.distinct or ()) >= n_steps - 1


def _middle(column: Column) -> float:
    return float(math.floor((column.low + column.high) / 2))


def _shared_threshold(columns: Sequence[Column]) -> float | None:
    """A threshold for every column of answers on a scale, in the middle, or of amounts, which are
    there where they are not 0; where most columns are of that kind.
    """
    numbers = [one for one in columns if not one.is_text and one.low is not None]
    scales = [one for one in numbers if _is_on_scale(one)]
    amounts = [one for one in numbers if _is_amount(one)]
    most = len(columns) / 2
    if amounts and len(amounts) >= most and max(one.high for one in amounts) > _FEW:
        return 0.0
    if not scales or len(scales) < most:
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
    some = ", ".join(short(_as_text(value)) for value in values[:_SHOWN])
    more = ", ..." if len(values) > _SHOWN else ""
    if len(values) < 3 and column.distinct is not None:  # of which only the ends were kept
        return f"more than two values ({column.low:g} to {column.high:g})"
    number = f"{len(values)}{' or more' if len(values) >= _MANY else ''}"
    return f"{number} values ({some}{more})"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _quoted(column: Column) -> str:
    return f"'{short(column.name)}'"


def _drop(column: Column) -> str:
    return f"--drop {typed_list([column.name])}"
