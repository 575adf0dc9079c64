"""Executor: independent work on one shared thing, done here, or by whoever was asked to:
`isingkit.dask` asks a cluster.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Work = Callable[[Any, Any], Any]
Run = Callable[[Work, Any, Sequence[Any]], Iterator[tuple[int, Any]]]
"""run(work, shared, items): place in items and work(shared, item), in any order, as they are
done.
"""

_RUN: ContextVar[Run | None] = ContextVar("run", default=None)


def current_executor() -> Run | None:
    """Who was asked to do tasks; None means do them here."""
    return _RUN.get()


@contextmanager
def use_executor(run: Run) -> Iterator[None]:
    """Within, tasks are done by `run`."""
    token = _RUN.set(run)
    try:
        yield
    finally:
        _RUN.reset(token)
