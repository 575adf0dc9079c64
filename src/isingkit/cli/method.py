"""--method and --set: the estimator that a fit uses."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isingkit.cli.foreign import FOREIGN_METHODS
from isingkit.cli.usage import usage_error
from isingkit.methods import FIT_METHODS, Method, command_name, suggested_settings
from isingkit.missing import MissingPolicy

METHODS = {method.name: method for method in FIT_METHODS}
ON_CLUSTER = tuple(method.name for method in FIT_METHODS if method.on_cluster)
_OPTIONS = {
    "missing": "--missing",
    "binarize": "--binarize",
    "n_jobs": "--threads",
    "random_state": "--seed",
    "checkpoint": "--resume",
}
_NOT_BY_SET = {
    name: f"{name} is set by {option}, not by --set" for name, option in _OPTIONS.items()
} | {"progress": "progress is always shown: leave out --set progress"}


@dataclass(frozen=True, slots=True)
class ChosenMethod:
    """A method, and the settings that the user has given."""

    method: Method
    settings: dict[str, Any]  # of this method: refused where it has none of this name
    shared: dict[str, Any]  # for all methods: passed over where it has none, or where None

    @property
    def name(self) -> str:
        return self.method.name

    def estimator(self, n_spins: int, n_samples: int) -> Any:
        """The estimator, with the settings that theory suggests for data of this size, then the
        user's.
        """
        estimator = self.method.build(suggested_settings(n_spins, n_samples))
        known = estimator.get_params()
        for name in self.settings:
            if name not in known:
                listed = ", ".join(sorted(set(known) - set(_NOT_BY_SET)))
                raise usage_error(f"method '{self.name}' has no setting '{name}'; it has {listed}")
        shared = {
            name: value
            for name, value in self.shared.items()
            if name in known and value is not None
        }
        return estimator.set_params(**self.settings, **shared)

    def check(self) -> None:
        """Refuse settings that the estimator would refuse, before any data are read."""
        self.estimator(2, 100)._check_settings()

    def missing_policies(self) -> Sequence[MissingPolicy]:
        """What it can do about missing values."""
        policies: Sequence[MissingPolicy] = self.estimator(2, 100)._policies
        return policies


def chosen_method(
    name: str, settings: Sequence[str], shortcuts: dict[str, Any], shared: dict[str, Any]
) -> ChosenMethod:
    """The method of --method, with settings by --set NAME=VALUE, or by `shortcuts`, options that do
    the same; checked.
    """
    method = METHODS.get(command_name(name))
    if method is None:
        known = FOREIGN_METHODS.get(name.lower())
        if known is not None:
            raise usage_error(f"there is no method '{name}': {known}")
        raise usage_error(f"there is no method '{name}'; there are {', '.join(METHODS)}")
    by_set = dict(_setting(text) for text in settings)
    by_option = {name: value for name, value in shortcuts.items() if value is not None}
    chosen = ChosenMethod(method, by_set | by_option, shared)
    chosen.check()
    return chosen


def require_cluster_use(chosen: ChosenMethod) -> None:
    """Refuse a cluster for a method that could not use it."""
    if chosen.name not in ON_CLUSTER:
        methods = " or ".join(ON_CLUSTER)
        raise usage_error(
            f"--scheduler and --workers go with --method {methods}, "
            f"not with {chosen.name}: leave them out"
        )


def require_row_groups(chosen: ChosenMethod) -> None:
    """Refuse groups of rows for a method that takes them for independent."""
    if "groups" not in inspect.signature(chosen.estimator(2, 100).fit).parameters:
        raise usage_error(
            f"--row-groups goes with --method auto, not with {chosen.name}: leave it out"
        )


def require_covariates(chosen: ChosenMethod) -> None:
    """Refuse covariates for a method that knows none."""
    if not _takes_covariates(chosen.estimator(2, 100)):
        theory = suggested_settings(2, 100)
        takers = [one.name for one in FIT_METHODS if _takes_covariates(one.build(theory))]
        raise usage_error(
            f"--covariates goes with --method {', '.join(takers)}, not with {chosen.name}: leave "
            "it out, or take another method"
        )


def _takes_covariates(estimator: Any) -> bool:
    """Whether it does; losses of all spins added up do not."""
    return estimator._takes_covariates and not getattr(estimator, "joint", False)


def n_hidden(text: str | None) -> int | str | None:
    """What --hidden says: a number of causes, "auto", or nothing."""
    if text is None or text == "auto":
        return text
    if not text.isdecimal():
        raise usage_error(f"--hidden wants auto, 0 or a number of causes, not '{text}'")
    return int(text)


def merging(text: str | None) -> bool | float | None:
    """What --merge-alike says: yes, no, a correlation, or nothing."""
    if text is None:
        return None
    if text in ("yes", "no"):
        return text == "yes"
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not 0 < limit <= 1:
        raise usage_error(
            f"--merge-alike wants yes, no or a correlation such as 0.98, not '{text}'; write it "
            "after the file if you want it without any"
        )
    return limit


def methods_that_start(start: str) -> list[str]:
    """For the Tab key."""
    return [name for name in METHODS if name.startswith(start.lower())]


def _setting(text: str) -> tuple[str, Any]:
    """Name and value of NAME=VALUE: a number, true, false, none, or a word."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise usage_error(f"--set wants NAME=VALUE, not '{text}'")
    if name in _NOT_BY_SET:
        raise usage_error(_NOT_BY_SET[name])
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, {"true": True, "false": False, "none": None}.get(value.lower(), value)
