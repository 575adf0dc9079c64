"""Choices: what somebody has clicked about a table, as options of the command line."""

import inspect
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from isingkit.exceptions import short
from isingkit.methods import FIT_METHODS, Method, method_named, suggested_settings
from isingkit.missing import EVERY_POLICY, MissingPolicy
from isingkit.result_table import Record
from isingkit.spins import Binarize, Column, threshold_of
from isingkit.tables import as_list, thresholds_as_text, thresholds_in
from isingkit.tables.decisions import (
    CODES_OPTION,
    CUT_OPTION,
    TICKED_OPTION,
    Decision,
    decisions,
    leaves_variables,
    likeliest_meant,
    listed_codes,
    looks_like_outcome,
)
from isingkit.tables.surveys import Survey

VARIABLE = "variable"
DROP = "drop"
COVARIATES = "covariates"
# What a column can be, and the option of `isingkit fit` that says so; in the order of its options.
OPTIONS = {
    "id": "--id-column",
    DROP: "--drop",
    "weights": "--weights",
    "counts": "--counts",
    "row_groups": "--row-groups",
    COVARIATES: "--covariates",
}
ROLES = (VARIABLE, *OPTIONS)
_SEVERAL = (VARIABLE, DROP, COVARIATES)  # roles that several columns can have
_NUMBERS = ("weights", "counts")  # roles of columns of numbers
_WORDS = {
    "id": "the name of rows",
    "weights": "the weights of rows",
    "counts": "the counts of rows",
    "row_groups": "groups of rows",
    COVARIATES: "a covariate",
}
ROWS = ("auto", "independent", "ordered")
_MOST_HIDDEN = 20
_LEAST_VARIABLES = 2
_MOST_CODES = 50  # of missing values
_LONGEST_CODE = 100
_LONGEST_CUT = 1_000_000  # characters


class ChoiceError(ValueError):
    """Choices that the page does not offer."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What is to be done with a table."""

    roles: Mapping[str, str]  # by name of column; others are variables
    missing: str = "error"
    binarize: Binarize = None
    method: str = "auto"
    hidden: str = "auto"
    rows: str = "auto"
    missing_codes: tuple[str, ...] = ()  # what stands for missing values
    ticked: tuple[str, ...] = ()  # columns of one mark, where an empty cell means no

    def columns_of(self, role: str) -> list[str]:
        """Names of the columns that have this role."""
        return [name for name, one in self.roles.items() if one == role]

    def as_clicked(self) -> Record:
        """What a page shows, and sends."""
        text = None if self.binarize is None else thresholds_as_text(self.binarize)
        return asdict(self) | {"binarize": text}

    def arguments(self) -> list[str]:
        """Options of `isingkit fit`; what is as by default is left out."""
        found = [text for role in OPTIONS for text in self._named(role)]
        if self.binarize is not None:
            found += ["--binarize", thresholds_as_text(self.binarize)]
        if self.missing_codes:
            found += ["--missing-codes", as_list(self.missing_codes)]
        ticked = [name for name in self.ticked if name not in self.roles]
        if ticked:
            found += ["--ticked", as_list(ticked)]
        defaults = {"missing": "error", "method": "auto", "hidden": "auto", "rows": "auto"}
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                found += [f"--{name}", value]
        return found

    def _named(self, role: str) -> list[str]:
        names = self.columns_of(role)
        if not names:
            return []
        return [OPTIONS[role], as_list(names) if role in _SEVERAL else names[0]]


def choices_of(clicked: Record, survey: Survey) -> Choices:
    """What a page has sent, where the page could have sent it."""
    roles = clicked.get("roles", {})
    names = [column.name for column in survey.columns]
    _require(isinstance(roles, dict), "roles")
    _require(set(roles) <= set(names), "roles of columns that are there")
    _require(set(roles.values()) <= set(ROLES), "roles")
    taken = [role for role in roles.values() if role not in _SEVERAL]
    _require(len(taken) == len(set(taken)), "two columns for a role of one")
    method = clicked.get("method", "auto")
    _require(method in [one.name for one in FIT_METHODS], "method")
    missing = clicked.get("missing", "error")
    _require(missing in list(EVERY_POLICY), "missing")
    ticked = clicked.get("ticked", [])
    _require(isinstance(ticked, list) and set(ticked) <= set(names), "columns that are there")
    rows = clicked.get("rows", "auto")
    _require(rows in ROWS, "rows")
    hidden = str(clicked.get("hidden", "auto"))
    _require(hidden in ("auto", *map(str, range(_MOST_HIDDEN + 1))), "hidden")
    known = known_method(method)
    return Choices(
        roles={name: roles[name] for name in names if roles.get(name, VARIABLE) != VARIABLE},
        missing=missing,
        missing_codes=_codes_in(clicked),
        ticked=tuple(ticked),
        binarize=_thresholds_in(clicked),
        method=method,
        hidden=hidden if known.looks_for_causes else "auto",
        rows=rows if known.looks_at_rows else "auto",
    )


def _thresholds_in(clicked: Mapping[str, Any]) -> Binarize:
    """The threshold, or those of columns."""
    text = clicked.get("binarize")
    if text is None:
        return None
    _require(isinstance(text, str) and len(text) <= _LONGEST_CUT, "thresholds")
    try:
        found = thresholds_in(text)
    except ValueError:
        found = math.nan
    numbers = found.values() if isinstance(found, dict) else [found]
    _require(all(map(math.isfinite, numbers)), "thresholds")
    return found


def _codes_in(clicked: Mapping[str, Any]) -> tuple[str, ...]:
    """What is to stand for missing values."""
    codes = clicked.get("missing_codes", [])
    _require(isinstance(codes, list) and len(codes) <= _MOST_CODES, "codes of missing values")
    is_plain = all(isinstance(one, str) and 0 < len(one) <= _LONGEST_CODE for one in codes)
    _require(is_plain and "".join(codes).isprintable(), "codes of missing values")
    return tuple(codes)


def _require(is_so: bool, what: str) -> None:
    if not is_so:
        raise ChoiceError(f"the page has sent {what} that it does not offer: reload it.")


@dataclass(frozen=True, slots=True)
class KnownMethod:
    """What a method can do."""

    name: str
    description: str
    policies: tuple[str, ...]  # about missing values
    takes_groups: bool
    takes_covariates: bool
    looks_for_causes: bool
    looks_at_rows: bool


@cache
def known_method(name: str) -> KnownMethod:
    """The method of this name."""
    method = method_named(name)
    assert method is not None
    estimator = estimator_of(method)
    settings = estimator.get_params()
    return KnownMethod(
        name=name,
        description=method.description,
        policies=tuple(policy.value for policy in estimator._policies),
        takes_groups="groups" in inspect.signature(estimator.fit).parameters,
        takes_covariates=estimator._takes_covariates and not getattr(estimator, "joint", False),
        looks_for_causes="hidden" in settings,
        looks_at_rows="rows" in settings,
    )


def estimator_of(method: Method) -> Any:
    return method.build(suggested_settings(2, 100))


def proposed(survey: Survey) -> Choices:
    """What is likeliest meant."""
    roles: dict[str, str] = {}
    others: dict[str, str] = {}
    codes: list[str] = []
    ticked: list[str] = []
    cuts: list[str] = []
    by_option = {option: role for role, option in OPTIONS.items()}
    found = decisions(survey.columns, survey.n_rows, EVERY_POLICY)
    is_possible = leaves_variables(survey.columns, found)
    for decision in likeliest_meant(survey.columns, found):
        option, value = decision.options[0].split(" ", 1)
        if option == CODES_OPTION:
            codes.append(value)
            continue
        if option == TICKED_OPTION and decision.name is not None:
            ticked.append(decision.name)
            continue
        if option == CUT_OPTION:
            cuts.append(value)
            continue
        if decision.name is None or option not in by_option:
            others[option.removeprefix("--")] = value
            continue
        role = by_option[option]
        if role == COVARIATES and not is_possible:
            continue  # as a variable, it is asked about
        is_taken = role not in _SEVERAL and role in roles.values()
        roles[decision.name] = DROP if is_taken else role
    return Choices(
        roles=roles,
        missing=others.get("missing", "error"),
        missing_codes=tuple(listed_codes(codes)),
        ticked=tuple(ticked),
        binarize=_listed_cuts(cuts),
    )


def _listed_cuts(values: Sequence[str]) -> Binarize:
    """Thresholds of the command line together."""
    if not values:
        return None
    return thresholds_in(",".join(dict.fromkeys(shlex.split(value)[0] for value in values)))


@dataclass(frozen=True, slots=True)
class Question:
    """Something that is still open."""

    column: str | None  # None where it is about several, or about none
    about: str  # the control that answers it: "role", "missing", "binarize" or "method"
    text: str


@dataclass(slots=True)
class _Questions:
    choices: Choices
    survey: Survey
    method: KnownMethod
    found: list[Question] = field(default_factory=list)

    def ask(self, column: str | None, about: str, text: str) -> None:
        self.found.append(Question(column, about, text))

    def of_variables(self, variables: Sequence[Column]) -> None:
        policies = [MissingPolicy(policy) for policy in self.method.policies]
        found = decisions(
            variables,
            self.survey.n_rows,
            policies,
            binarize=self.choices.binarize,
            missing=self.choices.missing,
            has_gaps=any(one.name in self.survey.with_codes for one in variables),
        )
        for one in found:
            self.ask(one.name, "missing" if one.name is None else "role", _question(one))
        if len(variables) < _LEAST_VARIABLES:
            self.ask(None, "role", "A network needs two variables at least.")

    def of_thresholds(self) -> None:
        cut = self.choices.binarize
        names = {one.name for one in self.survey.columns}
        for name in cut if isinstance(cut, Mapping) else ():
            if name not in names:
                self.ask(None, "binarize", f"There is no column '{short(name)}'.")

    def of_row_facts(self, columns: Sequence[Column]) -> None:
        for one in columns:
            role = self.choices.roles[one.name]
            words = _WORDS[role]
            has_codes = one.name in self.survey.with_codes and role == COVARIATES
            if has_codes or (one.n_missing and role != "id"):
                lacks = f"{one.n_missing or 'some'} of its values are missing"
                self.ask(one.name, "role", f"It cannot be {words}: {lacks}.")
            if role in _NUMBERS and one.is_text:
                self.ask(one.name, "role", f"It cannot be {words}: it holds texts.")

    def of_method(self) -> None:
        method = self.method
        choices = self.choices
        if choices.missing not in method.policies:
            text = f"Method {method.name} has no such way with missing values."
            self.ask(None, "missing", text)
        if choices.columns_of("row_groups") and not method.takes_groups:
            text = f"Method {method.name} does not know groups of rows: take auto."
            self.ask(None, "method", text)
        if choices.columns_of(COVARIATES) and not method.takes_covariates:
            text = f"Method {method.name} knows no covariates: take auto."
            self.ask(None, "method", text)


def _question(decision: Decision) -> str:
    if decision.name is None:
        return f"{decision.column[0].upper()}{decision.column[1:]}: {decision.seen}."
    return f"It holds {decision.seen}, but a variable has two: what is it?"


def open_questions(choices: Choices, survey: Survey) -> list[Question]:
    """What must still be decided before a network can be learnt."""
    survey = survey.without_codes(choices.missing_codes).with_ticks(choices.ticked)
    questions = _Questions(choices, survey, known_method(choices.method))
    names = set(choices.roles)
    questions.of_variables([one for one in survey.columns if one.name not in names])
    used = [one for one in survey.columns if one.name in names]
    questions.of_row_facts([one for one in used if choices.roles[one.name] != DROP])
    questions.of_thresholds()
    questions.of_method()
    return questions.found


def described(survey: Survey) -> list[Record]:
    """Of each column what a page shows."""
    asked = {one.name: one for one in decisions(survey.columns, survey.n_rows, EVERY_POLICY)}
    return [
        {
            "name": one.name,
            "seen": asked[one.name].seen if one.name in asked else _values(one),
            "n_missing": one.n_missing,
            "is_number": not one.is_text and one.n_missing < survey.n_rows,
            "is_asked": one.name in asked,
            "is_constant": one.name not in asked and one.low == one.high,
            "is_outcome": one.name not in asked and looks_like_outcome(one.name),
        }
        for one in survey.columns
    ]


def is_on_one_side(column: Column, binarize: Binarize) -> bool:
    """Whether all of a column becomes one value by a cut through numbers."""
    cut = threshold_of(binarize, column.name)
    if cut is None or column.is_text or column.low is None:
        return False
    return bool(column.high <= cut or column.low > cut)


def _values(column: Column) -> str:
    values = [column.low] if column.low == column.high else [column.low, column.high]
    texts = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return " and ".join(map(short, texts))
