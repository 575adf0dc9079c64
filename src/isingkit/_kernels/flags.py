"""How kernels are compiled: as little as a fit needs, for a newcomer waits for it.

What other kernels call, and Python never, needs no wrappers and no machine code of its own. And
nothing of what numba makes on the way is garbage before it is done: no use to look for it.
How to write kernels: docs/design/kernels.md.
"""

import gc
import threading
from typing import Any

import numba
from numba.core import event

from isingkit.exceptions import UncachedKernelsWarning, warn


class _WithoutCollection(event.Listener):
    """Python's collector of cyclic garbage rests while numba compiles: a tenth of its time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_compiling = 0
        self._was_enabled = False

    def on_start(self, event: Any) -> None:
        """Numba has begun with a kernel, or with one that it calls."""
        with self._lock:
            if self._n_compiling == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._n_compiling += 1

    def on_end(self, event: Any) -> None:
        """Numba has done with it."""
        with self._lock:
            self._n_compiling -= 1
            if self._n_compiling == 0 and self._was_enabled:
                gc.enable()


event.register("numba:compile", _WithoutCollection())


def can_cache() -> bool:
    """Whether there is a folder for compiled kernels, beside the source or in the user's own; a
    warning says where there is none.
    """
    try:
        numba.njit(cache=True)(_nothing)
    except RuntimeError:  # "cannot cache function": nothing that could be written into
        warn(UncachedKernelsWarning())
        return False
    return True


def _nothing() -> None:
    pass


CACHE = can_cache()
KERNEL: dict[str, Any] = {
    "cache": CACHE,
    "nogil": True,
    "fastmath": False,
    "no_cfunc_wrapper": True,
}
PART: dict[str, Any] = KERNEL | {"no_cpython_wrapper": True}
if numba.__version__.startswith("0.68."):
    from isingkit._kernels.part_compiler import KernelCompiler, PartCompiler

    KERNEL |= {"pipeline_class": KernelCompiler}
    PART |= {"cache": False, "pipeline_class": PartCompiler}
# loops that become vectors: a division that may raise is none; sums may be taken in any order
VECTOR_PART = PART | {"error_model": "numpy", "fastmath": {"contract", "reassoc"}}
