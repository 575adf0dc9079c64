"""Threads for kernels that release the interpreter lock.

Python threads over nogil kernels instead of numba's parallel loops: safe to call from many threads and after a fork, whichever
threading layer numba finds, and quicker to compile.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import joblib
import numba
from threadpoolctl import threadpool_limits

from isingkit.exceptions import require_number


def n_threads(n_jobs: int | None = None) -> int:
    """Threads that n_jobs stands for, as joblib has it; None is all. Never more than NUMBA_NUM_THREADS or the machine allows."""
    allowed = int(numba.config.NUMBA_NUM_THREADS)
    if n_jobs is None:
        return allowed
    require_number("n_jobs", n_jobs, whole=True)
    return max(1, min(joblib.effective_n_jobs(int(n_jobs) or 1), allowed))


def spread(kernel: Callable[..., Any], n_items: int, *args: Any, chunk: int = 1, n_jobs: int | None = None) -> list[Any]:
    """Results of kernel(start, stop, *args) over consecutive chunks of range(n_items), in order, on several threads."""
    spans = [(start, min(start + chunk, n_items)) for start in range(0, n_items, chunk)]
    if n_threads(n_jobs) == 1 or len(spans) <= 1:
        return [kernel(start, stop, *args) for start, stop in spans]
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        return list(pool.map(lambda span: kernel(*span, *args), spans))


_LOCK = threading.Lock()
_WITHIN: list[Any] = []  # who is within, first the limits that the first has set


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS keeps to one thread, for kernels that are spread over several; whoever leaves last gives the others back."""
    with _LOCK:
        _WITHIN.append(None if _WITHIN else threadpool_limits(1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            if len(_WITHIN) > 1:
                _WITHIN.pop()
            else:
                _WITHIN.pop().restore_original_limits()
