"""--scheduler and --workers: where a command does its work."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import click

from isingkit.cli.usage import usage_error


def scheduler_option(use: str) -> Callable[[Any], Any]:
    """The option that names a Dask scheduler."""
    return click.option(
        "--scheduler",
        metavar="tcp://HOST:PORT",
        help=f"{use} on the workers of this Dask scheduler.",
    )


def cluster(scheduler: str | None, workers: int | None) -> AbstractContextManager[Any]:
    """A context that gives a Dask client: of a scheduler, or of processes started here."""
    if scheduler is not None and workers is not None:
        raise usage_error("give --scheduler or --workers, not both")
    try:
        from isingkit import dask
    except ImportError as error:
        raise click.ClickException(f"{error}.") from None
    return dask.connected(scheduler, workers=workers)


@contextmanager
def learning_on(scheduler: str | None, workers: int | None) -> Iterator[None]:
    """Within, what can use the cluster does, where one is named."""
    if scheduler is None and workers is None:
        yield
        return
    with cluster(scheduler, workers) as client:
        from isingkit import dask

        with dask.using(client):
            yield
