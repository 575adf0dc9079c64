"""Threads for kernels that release the interpreter lock.

Python threads over nogil kernels instead of numba's parallel loops: safe to call from many threads
and after a fork, whichever threading layer numba finds, and quicker to compile.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import joblib
import numba
import numpy.linalg  # noqa: F401  # its BLAS, and scipy's, must be there to be held to one thread
import scipy.linalg.lapack  # noqa: F401
from numba.core.compiler_lock import global_compiler_lock
from threadpoolctl import ThreadpoolController

from isingkit.exceptions import require_number


def hold_at_fork(lock: Any) -> None:
    """Let forks wait until no other thread has the lock, which would stay locked in the child."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )


def n_threads(n_jobs: int | None = None) -> int:
    """Threads that n_jobs stands for, as joblib has it; None is all. Never more than
    NUMBA_NUM_THREADS or the machine allows.
    """
    allowed = int(numba.config.NUMBA_NUM_THREADS)
    if n_jobs is None:
        return allowed
    require_number("n_jobs", n_jobs, whole=True)
    return max(1, min(joblib.effective_n_jobs(int(n_jobs) or 1), allowed))


def parallel_map(
    kernel: Callable[..., Any], n_items: int, *args: Any, chunk: int = 1, n_jobs: int | None = None
) -> list[Any]:
    """Results of kernel(start, stop, *args) over consecutive chunks of range(n_items), in order, on
    several threads.
    """
    spans = [(start, min(start + chunk, n_items)) for start in range(0, n_items, chunk)]
    if n_threads(n_jobs) == 1 or len(spans) <= 1:
        results = []
        for start, stop in spans:  # no comprehension: a traceback shows the kernel's caller
            results.append(kernel(start, stop, *args))
        return results
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        return list(pool.map(lambda span: kernel(*span, *args), spans))


# spins of a system that BLAS solves about as quickly on one thread as on several
MOST_ON_ONE_THREAD = 256
_LOCK = threading.Lock()
hold_at_fork(_LOCK)
hold_at_fork(global_compiler_lock)
_WITHIN: list[Any] = []  # who is within, first the limits that the first has set


@cache
def _blas() -> ThreadpoolController:
    """Found once: to look for libraries takes a millisecond, to hold them to one thread 10
    microseconds.
    """
    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set limits: since 3.8 threadpoolctl otherwise lets only the one do so that
    did first, and no other.
    """
    for library in _blas().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def blas_threads_for(n_spins: int) -> AbstractContextManager[None]:
    """One BLAS thread for small systems, whose last digits then do not depend on how many there
    are; all for large ones.
    """
    return one_blas_thread() if n_spins <= MOST_ON_ONE_THREAD else nullcontext()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS keeps to one thread, for kernels that are spread over several; whoever leaves last gives
    the others back.
    """
    with _LOCK:
        if not _WITHIN:
            _take_control()
        _WITHIN.append(None if _WITHIN else _blas().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            if len(_WITHIN) > 1:
                _WITHIN.pop()
            else:
                _take_control()
                _WITHIN.pop().restore_original_limits()
                _take_control()  # and give it up
