"""--method and --set: the estimator that a fit uses."""

from dataclasses import dataclass, replace
from typing import Any

import click

from isingkit.exceptions import SettingError
from isingkit.report.methods import WORDS

METHODS = tuple(WORDS)
_OPTIONS = {
    "missing": "--missing", "binarize": "--binarize", "n_jobs": "--threads", "random_state": "--seed", "checkpoint": "--resume",
}  # fmt: skip
_NOT_BY_SET = {
    name: f"{name} is set by {option}, not by --set" for name, option in _OPTIONS.items()
} | {"progress": "progress is always shown: leave out --set progress"}


@dataclass(frozen=True, slots=True)
class Method:
    """A method that the user has chosen, and what the user has said about it."""

    name: str
    asked: dict[
        str, Any
    ]  # settings by --set and the like: refused where the method has none of this name
    given: dict[
        str, Any
    ]  # by options for all methods: passed over where the method has none, or where None

    def estimator(self, n_spins: int, n_samples: int) -> Any:
        """The estimator, with the knobs that theory suggests for data of this size, then what the
        user asked for.
        """
        from isingkit.comparison import known_methods

        methods = {_plain(name): one for name, one in known_methods(n_spins, n_samples).items()}
        estimator = methods[self.name]
        known = estimator.get_params()
        for name in self.asked:
            if name not in known:
                listed = ", ".join(sorted(set(known) - set(_NOT_BY_SET)))
                raise _mistake(f"method '{self.name}' has no setting '{name}'; it has {listed}")
        return estimator.set_params(
            **self.asked, **{k: v for k, v in self.given.items() if k in known and v is not None}
        )

    def check(self) -> None:
        """Refuse settings that the estimator would refuse, before any data are read."""
        self.estimator(2, 100)._check_settings()

    def takes_pairwise(self) -> bool:
        """Whether it can do with rows that lack some values."""
        try:
            replace(self, given=self.given | {"missing": "pairwise"}).check()
        except SettingError:
            return False
        return True


def chosen_method(
    name: str, settings: tuple[str, ...], shortcuts: dict[str, Any], given: dict[str, Any]
) -> Method:
    """The method of --method, with settings by --set NAME=VALUE, or by `shortcuts`, options that do
    the same; checked.
    """
    if _plain(name) not in METHODS:
        raise _mistake(f"there is no method '{name}'; there are {', '.join(METHODS)}")
    asked = dict(_setting(text) for text in settings) | {
        k: v for k, v in shortcuts.items() if v is not None
    }
    method = Method(_plain(name), asked, given)
    method.check()
    return method


def methods_that_start(start: str) -> list[str]:
    """For the Tab key."""
    return [name for name in METHODS if name.startswith(start.lower())]


def _plain(name: str) -> str:
    return name.lower().replace(" ", "-")


def _setting(text: str) -> tuple[str, Any]:
    """Name and value of NAME=VALUE: a number, true, false, none, or a word."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise _mistake(f"--set wants NAME=VALUE, not '{text}'")
    if name in _NOT_BY_SET:
        raise _mistake(_NOT_BY_SET[name])
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, {"true": True, "false": False, "none": None}.get(value.lower(), value)


def _mistake(told: str) -> click.UsageError:
    return click.UsageError(told, click.get_current_context())
