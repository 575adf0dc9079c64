"""Arrays and Parquet files: two passes over their parts, the first to learn what columns hold."""

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from isingkit.exceptions import TableFileError
from isingkit.spins import (
    Column,
    Table,
    arrow_values,
    check_missing,
    codings_of,
    encoded,
    merged,
    require_matrix,
    require_table,
    survey,
)
from isingkit.tables.rows import Asked, Reading, Rows, progress_bar

_PART = 1 << 19  # numbers of an array or a Parquet file in memory at a time
_NO_ARRAY = (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A table that is read part by part, as often as one likes."""

    names: tuple[str, ...]
    n_rows: int
    parts: Callable[[], Iterable[Any]]
    select: Callable[[Any, list[int]], Any]  # some columns of a part, as `survey` takes them
    column: Callable[[Any, int], NDArray[Any]]  # one column of a part


def _read_parts(source: _Parts, asked: Asked) -> Reading:
    chosen = asked.chosen(source.names)
    names = [source.names[place] for place in chosen]
    require_table(names, source.n_rows)
    place = None if asked.weights is None else source.names.index(asked.weights)
    known: list[Column] | None = None
    with progress_bar(asked, total=2 * source.n_rows, unit=" rows") as bar:
        for part in source.parts():
            found = survey(source.select(part, chosen), asked.binarize)
            known = found if known is None else merged(known, found)
            bar.update(len(part))
        check_missing(known or [], asked.missing, source.n_rows, to_learn=True)
        codings = codings_of(known or [], asked.binarize)
        rows = Rows(names, asked.missing)
        for part in source.parts():
            weights = (
                None if place is None else _numbers(source.column(part, place), source.names[place])
            )
            rows.add(encoded(source.select(part, chosen), codings, asked.binarize), weights)
            bar.update(len(part))
    return Reading(rows.packed(codings), rows.weights())


def _numbers(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.dtype.kind not in "biuf":
        raise TableFileError(
            path=None,
            problem=f"column '{name}' should hold numbers, but holds texts such as '{values[0]}'",
        )
    return values


def read_parquet(asked: Asked) -> Reading:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise TableFileError(
            path=asked.path, problem="reading Parquet needs pyarrow: pip install 'isingkit[io]'"
        ) from None
    try:
        file = parquet.ParquetFile(asked.path)
    except Exception as error:  # pyarrow's own kinds, which we do not name
        raise _no_parquet(asked, error) from None
    with file:
        names = tuple(
            name
            for name in file.schema_arrow.names
            if name not in _index_columns(file.schema_arrow)
        )
        used = [names[place] for place in asked.chosen(names)] + (
            [asked.weights] if asked.weights is not None else []
        )

        def parts() -> Iterator[Any]:
            try:
                for batch in file.iter_batches(
                    batch_size=max(64, _PART // len(used)), columns=used
                ):
                    yield pyarrow.Table.from_batches([batch])
            except Exception as error:
                raise _no_parquet(asked, error) from None

        source = _Parts(
            names, file.metadata.num_rows, parts,
            lambda part, places: part.select([names[place] for place in places]),
            lambda part, place: arrow_values(part.column(names[place])),
        )  # fmt: skip
        return _read_parts(source, asked)


def _index_columns(schema: Any) -> set[str]:
    """Columns that pandas keeps its row labels in."""
    about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    return {
        name
        for name in about.get("index_columns", [])
        if isinstance(name, str) and re.fullmatch(r"__index_level_\d+__", name)
    }


def _no_parquet(asked: Asked, error: Exception) -> TableFileError:
    return TableFileError(path=asked.path, problem=f"it cannot be read as Parquet ({error})")


def read_array(asked: Asked) -> Reading:
    try:
        member = _member(asked.path) if zipfile.is_zipfile(asked.path) else None
        with _stored(asked.path, member) as stream:
            shape, _, _ = _array_header(stream)
    except TableFileError:
        raise
    except _NO_ARRAY:
        raise _no_array(asked) from None
    require_matrix(shape, "array")

    def parts() -> Iterator[NDArray[Any]]:
        try:
            yield from _array_parts(asked.path, member)
        except _NO_ARRAY:
            raise _no_array(asked) from None

    names = tuple(f"x{k}" for k in range(shape[1]))
    source = _Parts(
        names, shape[0], parts,
        lambda part, places: Table(tuple(names[place] for place in places), part if len(places) == shape[1] else part[:, places]),
        lambda part, place: part[:, place],
    )  # fmt: skip
    return _read_parts(source, asked)


def _no_array(asked: Asked) -> TableFileError:
    return TableFileError(path=asked.path, problem="it cannot be read as numbers")


def _member(path: Path) -> str:
    """The one table of an archive."""
    with zipfile.ZipFile(path) as archive:
        members = []
        for name in archive.namelist():
            with archive.open(name) as stream:
                members += [name] if len(_array_header(stream)[0]) == 2 else []
    if len(members) != 1:
        raise TableFileError(
            path=path, problem=f"it holds {len(members)} tables where one was expected"
        )
    return members[0]


@contextmanager
def _stored(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    """The bytes of an array in a file of its own, or in an archive."""
    if member is None:
        with open(path, "rb") as stream:
            yield stream
    else:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            yield stream


def _array_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns rather than rows lie in one piece, and kind of numbers."""
    form = np.lib.format
    read = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}[
        form.read_magic(stream)
    ]
    shape, is_by_column, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("objects are not read")
    return shape, is_by_column, dtype


def _array_parts(path: Path, member: str | None) -> Iterator[NDArray[Any]]:
    with _stored(path, member) as stream:
        (n_rows, n_columns), is_by_column, dtype = _array_header(stream)
        step = max(64, _PART // max(1, n_columns))
        starts = range(0, n_rows, step)
        if is_by_column:
            loaded = np.load(path, mmap_mode="r")
            array = loaded if member is None else loaded[member.removesuffix(".npy")]
            yield from (np.ascontiguousarray(array[start : start + step]) for start in starts)
            return
        for start in starts:
            n_here = min(step, n_rows - start)
            data = stream.read(n_here * n_columns * dtype.itemsize)
            yield np.frombuffer(data, dtype=dtype).reshape(n_here, n_columns)
