"""Dask: Grams of data in many parts, and work in many tasks, on the workers of a cluster. The only
file that imports dask.

Retries, scheduling, spilling and dashboards are Dask's. Workers need this package, in the same
version.
"""

import gc
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

try:
    import dask
    from distributed import (
        Client,
        Future,
        KilledWorker,
        LocalCluster,
        as_completed,
        default_client,
        wait,
    )
    from distributed.comm import CommClosedError, get_address_host_port, parse_address
    from distributed.scheduler import NoWorkerError
    from distributed.security import Security
except ImportError as error:
    raise ImportError(
        "isingkit.dask needs dask and distributed: pip install 'isingkit[dask]'"
    ) from error

from isingkit.estimators.executor import Work, use_executor
from isingkit.exceptions import (
    ConstantColumnWarning,
    EmptyRowsWarning,
    EmptyTableError,
    SchedulerUnreachableError,
    SettingError,
    WorkersLostError,
    require_number,
)
from isingkit.gram import Gram
from isingkit.gram import gram as _gram
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins, values_seen
from isingkit.packing import pack as _pack
from isingkit.spins import (
    Binarize,
    Coding,
    Column,
    as_spins,
    check_missing,
    codings_of,
    merged,
    missing_policy,
    require_matrix,
    survey,
    warn_of_constants,
)
from isingkit.tables.many import Seen, common_mapping, read_coded, seen_in
from isingkit.tables.rows import Reading
from isingkit.worlds.graphs import Seed, generator
from isingkit.worlds.sampling import default_warm_up
from isingkit.worlds.sampling import sample as _sample

__all__ = ["connected", "executor", "gram", "pack", "sample", "using"]

_FAN = 4  # results that one task of a reduction combines
_LOSSES = 3  # of all workers that held data, after which it is sent again to those that are there
_WAIT = 10.0  # seconds for a scheduler to answer, and for a first worker to be there
_NOTICE = 0.2  # seconds, in which a scheduler notices that a worker is gone


# A cluster


@contextmanager
def connected(
    scheduler: str | None = None, *, workers: int | None = None, timeout: float = _WAIT
) -> Iterator[Client]:
    """A Client of the scheduler at an address, or of as many processes of this machine as `workers`
    says, one thread each.

    Processes that were started are ended on leaving; whoever else's scheduler and workers stay.

    Parameters
    ----------
    scheduler
        Its address, as in "tcp://10.0.0.1:8786".
    workers
        Processes to start on this machine, where no scheduler is named.
    timeout
        Seconds to wait for the scheduler and its first worker.
    """
    if (scheduler is None) == (workers is None):
        expected = "an address, or None where workers is a number"
        raise SettingError(setting="scheduler", value=scheduler, expected=expected)
    if scheduler is not None:
        with _client_of(scheduler, timeout) as client:
            yield client
        return
    require_number("workers", workers, at_least=1, whole=True)
    local = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1",
        # any port that is free
        dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0",
        env={"NUMBA_NUM_THREADS": "1"},  # as Dask has it for BLAS: processes share the processors
    )  # fmt: skip
    with local, Client(local) as client:
        yield client


@contextmanager
def _client_of(address: str, timeout: float) -> Iterator[Client]:
    client = _opened(address, timeout)
    if client is None:
        # a Client that failed is closed here, and not within the start of another, where both would
        # wait forever
        gc.collect()
        raise SchedulerUnreachableError(address=address, seconds=timeout)
    with client:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError:
            raise SchedulerUnreachableError(address=address, seconds=timeout) from None
        yield client


def _opened(address: str, timeout: float) -> Client | None:
    """A Client, or None where nobody answers; a plain connection is tried first, for it fails
    without leaving anything behind.
    """
    try:
        if not _is_answered(address, timeout):
            return None
        return Client(address, timeout=timeout)
    # refused, no such host; no address; no keys for TLS; somebody else, who speaks of huge things
    except (OSError, ValueError, TypeError, MemoryError):
        return None


def _is_answered(address: str, timeout: float) -> bool:
    """Whether somebody is there and says something in time: a scheduler is the first to speak. A
    Client would wait forever for one that accepts and is silent.
    """
    host, port = get_address_host_port(address)
    protocol = parse_address(address)[0]
    with socket.create_connection((host, port), timeout=timeout) as connection:
        if protocol == "tls":
            keys = Security().get_connection_args("client")["ssl_context"]
            if keys is None:
                raise TypeError("no keys for TLS in Dask's configuration")
            with keys.wrap_socket(connection) as encrypted:
                return bool(encrypted.recv(1))
        return protocol != "tcp" or bool(connection.recv(1))


@contextmanager
def using(client: Client) -> Iterator[None]:
    """Within, screens of more than 5000 spins (TwoStageIsing, AutoIsing), AutoIsing.stability,
    case_dropping, bootstrap and compare are done by the cluster.

    Results are those of one machine. Bits of the data go to every worker once, then one small task
    for each band of spins, each part of the rows, or each method. Finished bands are recorded here,
    in `checkpoint`, where one is given.

    Parameters
    ----------
    client
        The cluster's Client.
    """

    def run(work: Work, shared: Any, items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        with translate_worker_errors():
            yield from _distributed(client, work, shared, items)

    with use_executor(run):
        yield


def executor(client: Client) -> Any:
    """An executor as concurrent.futures has it, for `isingkit.experiments.runner.run`, whose work
    is done by the cluster.

    Parameters
    ----------
    client
        The cluster's Client.
    """
    return client.get_executor(pure=False)


def _distributed(
    client: Client, work: Work, shared: Any, items: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Place in items and work(shared, item), as they are done; `shared` stays on the workers
    meanwhile.
    """
    if not items:
        return
    if client.status == "closed":  # by Dask, where a scheduler is gone
        raise CommClosedError
    left = dict(enumerate(items))
    for is_last in (False,) * _LOSSES + (True,):
        try:
            for place, found in _spread(client, work, shared, left):
                del left[place]
                yield place, found
        except CancelledError:  # all that held `shared` are gone; others may be there
            if is_last or client.status != "running" or not client.nthreads():
                raise
            time.sleep(_NOTICE)
        else:
            return


def _spread(
    client: Client, work: Work, shared: Any, items: dict[int, Any]
) -> Iterator[tuple[int, Any]]:
    there = _sent(client, shared)
    places = {client.submit(work, there, item, pure=False): place for place, item in items.items()}
    try:
        for future in as_completed(list(places)):
            yield places[future], future.result()
    finally:
        _cancel(client, places)


def _sent(client: Client, shared: Any) -> Future:
    """`shared`, on every worker before tasks are given to those that hold it.

    Each gets it from another by a task that any may do if it is lost. Dask's own broadcast asks a
    worker that is lost meanwhile for it without end.
    """
    there = _scattered(client, shared)
    held = [
        client.submit(_held, there, workers=[one], allow_other_workers=True, pure=False)
        for one in client.nthreads()
    ]
    try:
        with suppress(TimeoutError):  # one may be busy for others: the rest can begin
            wait(held, timeout=_WAIT)
    finally:
        _cancel(client, held)
    return there


def _held(shared: Any) -> None:
    """A task that needs `shared`, and so brings it to its worker."""


def _scattered(client: Client, shared: Any) -> Future:
    """`shared` on one worker; lost with it, if it is killed meanwhile, of which Dask raises what
    its scheduler stumbled over.
    """
    try:
        return client.scatter(shared, hash=False, timeout=_WAIT)
    except (CommClosedError, TimeoutError):
        if client.status != "running" or not client.nthreads():
            raise  # the scheduler is gone, or there is no worker
        raise CancelledError from None
    except (OSError, KeyError) as error:
        raise CancelledError from error


def _cancel(client: Client, futures: Iterable[Future]) -> None:
    """What nobody waits for any more."""
    client.cancel([future for future in futures if not future.done()])


@contextmanager
def translate_worker_errors() -> Iterator[None]:
    """What Dask raises where workers are gone for good, as one sentence."""
    try:
        yield
    except KilledWorker as error:
        raise WorkersLostError(
            problem=f"a task of theirs was tried {error.allowed_failures + 1} times"
        ) from error
    except (NoWorkerError, TimeoutError) as error:
        raise WorkersLostError(problem="there is none left") from error
    except CancelledError as error:
        raise WorkersLostError(problem="and with them the data they held") from error
    except CommClosedError as error:  # Dask gave up reaching it again
        raise WorkersLostError(problem="and so is the scheduler") from error


# Data in many parts


def gram(
    source: Any,
    client: Client | None = None,
    *,
    mapping: Sequence[Coding] | None = None,
    binarize: Binarize = None,
    missing: str = "error",
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    weights: str | None = None,
    counts: str | None = None,
) -> Gram:
    """Gram of data in many parts, each counted where a worker reads it, then added up: to the last
    bit that of the whole.

    Without `mapping` parts are looked at first to learn what columns hold, and read again to be
    counted.

    Parameters
    ----------
    source
        A dask array, one row a sample; a dask DataFrame; or a list of files as `isingkit fit` reads
        them, which workers must see under these paths.
    client
        The cluster's Client; by default the current one.
    mapping
        For each column the pair of values that become -1 and +1; by default it is found from all
        parts.
    binarize
        As for `as_spins`.
    missing
        As for `as_spins`.
    columns
        Of files: columns to use; by default all.
    drop
        Of files: columns to leave out.
    weights
        Of files: the column that says how much a row matters.
    counts
        Of files: the column that says how many equal samples a row stands for.
    """
    options = {"columns": columns, "drop": drop, "weights": weights, "counts": counts}
    parts = _readings(source, _given(client), mapping, binarize, missing, options)
    total: Gram
    grams = [dask.delayed(_gram_of)(part) for part in parts]
    (total,) = _computed([_folded(grams, _sum)], _given(client))
    if total.n_rows == 0:
        raise EmptyTableError(n_samples=0, n_spins=total.n_spins)
    if mapping is None:  # else the data are not there to learn from
        warn_of_constants(total.names, ~total.changes)
    return total


def pack(
    source: Any,
    client: Client | None = None,
    *,
    mapping: Sequence[Coding] | None = None,
    binarize: Binarize = None,
    missing: str = "error",
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> PackedSpins:
    """PackedSpins of data in many parts, read by workers; the bits come here. For estimators that
    look at samples.

    Parameters
    ----------
    source
        As for `gram`.
    client
        As for `gram`.
    mapping
        As for `gram`.
    binarize
        As for `as_spins`.
    missing
        As for `as_spins`.
    columns
        Of files: columns to use; by default all.
    drop
        Of files: columns to leave out.
    """
    options = {"columns": columns, "drop": drop}
    parts = _readings(source, _given(client), mapping, binarize, missing, options)
    readings = _computed(parts, _given(client))
    packed = PackedSpins.concatenate([reading.packed for reading in readings])
    if packed.n_samples == 0:
        raise EmptyTableError(n_samples=0, n_spins=packed.n_spins)
    if mapping is None:
        is_low, is_high = values_seen(packed)
        warn_of_constants(packed.names, ~(is_low & is_high))
    return packed


def _readings(
    source: Any,
    client: Client,
    mapping: Sequence[Coding] | None,
    binarize: Binarize,
    missing: str,
    options: dict[str, Any],
) -> list[Any]:
    """A delayed Reading of each part, all with one mapping."""
    if not hasattr(source, "to_delayed"):
        how = options | {"binarize": binarize, "missing": missing}
        return _file_readings(_paths(source), client, mapping, how)
    for name, value in options.items():
        if value:
            expected = "left out, for the source is no list of files"
            raise SettingError(setting=name, value=value, expected=expected)
    chunks = _chunks(source)
    if mapping is None:
        surveys = [dask.delayed(_surveyed)(one, binarize) for one in chunks]
        ((known, n_rows),) = _computed([_folded(surveys, _merged)], client)
        if known is None:
            raise EmptyTableError(n_samples=0, n_spins=int(source.shape[1]))
        check_missing(known, missing_policy(missing), n_rows, to_learn=True, binarize=binarize)
        mapping = codings_of(known, binarize)
    coding = _constant(mapping)
    return [dask.delayed(_read_chunk)(one, coding, binarize, missing) for one in chunks]


def _file_readings(
    paths: Sequence[Path],
    client: Client,
    mapping: Sequence[Coding] | None,
    options: dict[str, Any],
) -> list[Any]:
    """A delayed Reading of each file, with these options of `read_spins`."""
    how = _constant(options)
    if mapping is None:
        seen = _computed([dask.delayed(_seen_in)(path, how) for path in paths], client)
        mapping = common_mapping(seen, options["binarize"])
    coding = _constant(mapping)
    return [dask.delayed(_read_file)(path, coding, how) for path in paths]


def _constant(value: Any) -> Any:
    """A value that is sent as it is, once, however many tasks take it."""
    return dask.delayed(value, traverse=False)


def _paths(source: Any) -> list[Path]:
    if isinstance(source, str | os.PathLike):
        source = [source]
    is_list = isinstance(source, Sequence) and len(source) > 0
    if not is_list or not all(isinstance(path, str | os.PathLike) for path in source):
        expected = "a dask array, a dask DataFrame or a list of files"
        raise SettingError(setting="source", value=type(source), expected=expected)
    return [Path(path).absolute() for path in source]


def _chunks(source: Any) -> list[Any]:
    """Ranges of rows, delayed; the columns of an array are brought together."""
    require_matrix((0,) * source.ndim, "dask array")
    if source.shape[1] == 0:
        raise EmptyTableError(n_samples=1, n_spins=0)
    whole_rows = source.rechunk({1: -1}) if hasattr(source, "rechunk") else source
    return list(np.ravel(whole_rows.to_delayed()))


def _given(client: Client | None) -> Client:
    try:
        return default_client(client)
    except ValueError:
        expected = "a distributed.Client, for none is there"
        raise SettingError(setting="client", value=None, expected=expected) from None


def _computed(parts: Sequence[Any], client: Client) -> list[Any]:
    """Results of delayed parts, in order."""
    with translate_worker_errors():
        return list(client.gather(client.compute(list(parts))))


def _folded(parts: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """A tree of tasks that combine a few results each."""
    while len(parts) > 1:
        starts = range(0, len(parts), _FAN)
        some = [list(parts[start : start + _FAN]) for start in starts]
        parts = [dask.delayed(combine)(few) for few in some]
    return parts[0]


# Samples


def sample(
    model: IsingModel,
    n_samples: int,
    client: Client | None = None,
    *,
    chunk: int = 8192,
    warm_up: int | None = None,
    update: str = "heat-bath",
    order: str = "sequential",
    check: bool = True,
    random_state: Seed = None,
) -> PackedSpins:
    """Independent samples, one a chain, as `isingkit.sample` draws them, `chunk` of them to a task
    with a seed of its own.

    The same seed and chunk give the same samples on any cluster; another chunk gives others.

    Parameters
    ----------
    model
        The Ising model to sample.
    n_samples
        How many.
    client
        The cluster's Client; by default the current one.
    chunk
        Chains in one task; multiples of 512 are quickest.
    warm_up
        As for `isingkit.sample`.
    update
        As for `isingkit.sample`.
    order
        As for `isingkit.sample`.
    check
        Whether to refuse samples of chains that have not forgotten their start; each task looks at
        its own.
    random_state
        Seed or numpy Generator.
    """
    require_number("n_samples", n_samples, at_least=1, whole=True)
    require_number("chunk", chunk, at_least=1, whole=True)
    sizes = [min(chunk, n_samples - start) for start in range(0, n_samples, chunk)]
    warm_up = default_warm_up(model) if warm_up is None else warm_up
    options = {"warm_up": warm_up, "update": update, "order": order, "check": check}
    tasks = list(zip(sizes, generator(random_state).spawn(len(sizes)), strict=True))
    with translate_worker_errors():
        parts = dict(_distributed(_given(client), _sampled, (model, options), tasks))
    return PackedSpins.concatenate([parts[place] for place in range(len(sizes))])


# What workers do


def _sampled(shared: tuple[IsingModel, dict[str, Any]], task: tuple[int, Generator]) -> PackedSpins:
    model, options = shared
    n_samples, rng = task
    return _sample(model, n_samples, random_state=rng, n_jobs=1, **options)


def _gram_of(reading: Reading) -> Gram:
    return _gram(reading.packed, sample_weight=reading.weights, counts=reading.counts, n_jobs=1)


def _sum(grams: list[Gram]) -> Gram:
    total = grams[0]
    for one in grams[1:]:
        total = total + one
    return total


def _surveyed(part: Any, binarize: Binarize) -> tuple[list[Column] | None, int]:
    """What the columns of a part hold, None where it is empty, and its number of rows."""
    return (survey(part, binarize), len(part)) if len(part) else (None, 0)


def _merged(surveys: list[tuple[list[Column] | None, int]]) -> tuple[list[Column] | None, int]:
    known: list[Column] | None = None
    for found, _ in surveys:
        known = found if known is None else known if found is None else merged(known, found)
    return known, sum(n_rows for _, n_rows in surveys)


def _read_chunk(part: Any, mapping: Sequence[Coding], binarize: Binarize, missing: str) -> Reading:
    try:
        packed = _pack(as_spins(part, mapping=mapping, binarize=binarize, missing=missing))
    except EmptyTableError:  # no row, or no complete one, which is no mistake of the whole
        unnamed = [f"x{j}" for j in range(len(mapping))]
        names = tuple(str(name) for name in getattr(part, "columns", unnamed))
        no_words = np.empty((len(mapping), 0), np.uint64)
        packed = PackedSpins(no_words, 0, names, None, tuple(mapping))
    return Reading(packed)


def _seen_in(path: Path, options: dict[str, Any]) -> Seen:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantColumnWarning)  # the whole is what counts
        warnings.simplefilter("ignore", EmptyRowsWarning)  # of which the second reading warns
        return seen_in(path, **options)


def _read_file(path: Path, mapping: Sequence[Coding] | None, options: dict[str, Any]) -> Reading:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantColumnWarning)
        return read_coded(path, mapping, **options)
