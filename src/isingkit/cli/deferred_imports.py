"""Modules that scikit-learn imports for what no command asks of it: loaded where one is used.

More than half of what importing scikit-learn takes, and a sixth of what a fit does whose kernels
are compiled. Python's own LazyLoader does not help: it loads a module when another imports it
again.
"""

import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType
from typing import Any

DEFERRED = ("pandas", "scipy.stats")


class _Deferred(ModuleType):
    """Stands for a module until something is asked of it; then that one takes its place."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":  # which scikit-learn 1.6 compares with that of old pandas
            return version(self.__name__)
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)  # whoever looks through all modules uses none of them
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def defer_imports() -> None:
    """Let the modules that are there, and were not imported yet, wait until they are used."""
    for name in DEFERRED:
        if name not in sys.modules and find_spec(name.partition(".")[0]) is not None:
            sys.modules[name] = _Deferred(name)
