"""Compilation, which a newcomer waits for: a line that says so, and how much of it there was."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event
from tqdm import tqdm

_COMPILES = "numba:compile"  # numba's name; loading what was compiled before is no such event
NOTICE = "isingkit: compiling, once per installation"


class Compilation(event.Listener):
    """Counts kernels as numba compiles them, and says once that it does, on stderr."""

    def __init__(self, announce: bool) -> None:
        self.announce = announce
        self.n_kernels = 0
        self.seconds = 0.0  # of threads that compile, the kernels that a kernel calls included
        self._nested = threading.local()

    def on_start(self, event: Any) -> None:
        """Numba has begun with a kernel, or with one that it calls."""
        depth = getattr(self._nested, "depth", 0)
        self._nested.depth = depth + 1
        if depth == 0:
            self._nested.start = time.perf_counter()
        if self.announce:
            self.announce = False
            _say(NOTICE)

    def on_end(self, event: Any) -> None:
        """Numba has done with it."""
        self._nested.depth -= 1
        if self._nested.depth == 0:
            self.n_kernels += 1
            self.seconds += time.perf_counter() - self._nested.start


def _say(line: str) -> None:
    """A line of its own on stderr, where progress bars may stand: those that are seen are drawn
    again as they go on. `tqdm.write` would draw those as well that are to be seen only later, and
    these are never cleared.
    """
    with tqdm.get_lock():
        for bar in list(tqdm._instances):
            if bar.last_print_t >= bar.start_t + bar.delay:
                bar.clear(nolock=True)
        print(line, file=sys.stderr)


@contextmanager
def noticed_compilation(announce: bool = True) -> Iterator[Compilation]:
    """What is compiled in the meantime, announced by one line on stderr where there is any."""
    found = Compilation(announce)
    with event.install_listener(_COMPILES, found):
        yield found
