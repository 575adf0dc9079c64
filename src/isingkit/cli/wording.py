"""What people are told: warnings in their order, and options instead of Python's arguments."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from warnings import WarningMessage

from isingkit.exceptions import IsingkitWarning, ReliabilityWarning

if TYPE_CHECKING:
    from isingkit.fit_check import FitCheck
    from isingkit.fit_folder import Fit

MOST_SHOWN = 3  # warnings; of more, where to find them

# In this order: what is a phrase comes before the arguments in it.
_OPTIONS = (
    (r"the estimator or as_spins ", ""),
    (r"Read all parts alike: as_spins.* of every column\.", "Write its values alike in all files."),
    (r"pass it as covariates=", "name its columns with --covariates"),
    (r"pass what you know of rows as covariates=", "name columns of what you know with"
     " --covariates"),
    (r"by groups=", "with --row-groups COLUMN"),
    (r"\bgroups=", "--row-groups COLUMN"),
    (r"pass them as counts", "name the column with --counts instead"),
    (r"\bsample_weight holds", "the column of --weights holds"),
    (r"hidden_ has who follows", "hidden_loadings.csv has who follows"),
    (r"\bmerge_alike=[\w.]+,(?: or)? --merge-alike", "--merge-alike"),
    (r"\bmerge_alike=True\b", "--merge-alike"),
    (r"\bmerge_alike=", "--merge-alike "),
    (r"\bat_least=", "--at-least "),
    (r"\bleave (it|them) out to silence this", r"--min-count 1 leaves \1 out"),
    (r"\bby find\b", "with --find"),
    (r"\bby at_least\b", "with --at-least"),
    (r"\braise max_rows\b", "raise --max-rows"),
    (r"\b(missing|binarize|rows|hidden)=(['\"]?)([\w.]+)\2", r"--\1 \3"),
    (r"\b(refit|l1|l2)=(['\"]?)([\w.]+)\2", r"--set \1=\3"),
)  # fmt: skip
_ESTIMATORS = {
    "AutoIsing": "auto",
    "LinearIsing": "linear",
    "RidgeIsing": "ridge",
    "TwoStageIsing": "two-stage",
    "PseudolikelihoodIsing": "pseudolikelihood",
    "MaximumLikelihoodIsing": "maximum-likelihood",
}


def as_options(text: str) -> str:
    """Advice for Python as advice for the command line."""
    for pattern, option in _OPTIONS:
        text = re.sub(pattern, option, text)
    estimator = rf"\b({'|'.join(_ESTIMATORS)})\b(?:\(([^()]*)\))?"
    return re.sub(estimator, _method_option, text)


def _method_option(found: re.Match[str]) -> str:
    settings = [f" --set {one.strip()}" for one in (found[2] or "").split(",") if one.strip()]
    return f"--method {_ESTIMATORS[found[1]]}{''.join(settings)}"


def ranked_warnings(
    caught: Sequence[WarningMessage], fit: "Fit", check: "FitCheck | None"
) -> list[str]:
    """What is to be said of a fit, the most serious first: that the table is misread, that the
    model is far from the data, that levels do not hold, what else was warned of, and last what
    hardly matters.
    """
    messages = [one.message for one in caught if not isinstance(one.message, ReliabilityWarning)]
    minor = [one for one in messages if isinstance(one, IsingkitWarning) and one.is_minor]
    first = [one for one in messages if isinstance(one, IsingkitWarning) and one.is_first]
    others = [one for one in messages if one not in minor and one not in first]
    doubt = None if check is None else check.doubt()
    found = [
        *map(str, first),
        *([doubt] if doubt else []),
        *_warning_checks(fit, levels_hold=False),
        *map(str, others),
        *_warning_checks(fit, levels_hold=True),
        *map(str, minor),
    ]
    return list(dict.fromkeys(as_options(text) for text in found))


def worded_checks(diagnostics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Checks whose words and advice name options."""
    return [
        {**one, "words": as_options(one["words"]), "advice": as_options(one["advice"])}
        for one in diagnostics
    ]


def _warning_checks(fit: "Fit", *, levels_hold: bool) -> list[str]:
    """Checks that ask for something, as a warning says it."""
    return [
        f"{one['check']}: {one['words']}; {one['advice']}."
        for one in fit.diagnostics
        if one["serious"] and one["advice"] and one["levels_hold"] == levels_hold
    ]
