"""Arrays and Parquet files: two passes over their parts, the first to learn what columns hold."""

import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from isingkit.archives import array_header
from isingkit.arrays import FloatArray
from isingkit.exceptions import IsingkitError, TableFileError
from isingkit.memory import require_memory
from isingkit.spins import (
    Column,
    Names,
    Table,
    arrow_values,
    as_texts,
    check_missing,
    codings_of,
    encoded,
    merged,
    n_complete_rows,
    require_matrix,
    require_table,
    survey,
    surveyed,
)
from isingkit.tables.rows import Labels, Reading, ReadOptions, RowPacker, no_numbers, progress_bar

PART = 1 << 19  # numbers of an array or a Parquet file in memory at a time
NAME = 60  # bytes of the name of a column


@dataclass(frozen=True, slots=True)
class Parts:
    """A table that is read part by part, as often as one likes."""

    names: Names
    n_rows: int
    parts: Callable[[], Iterable[Any]]
    select: Callable[[Any, list[int]], Any]  # some columns of a part, as `survey` takes them
    column: Callable[[Any, int], NDArray[Any]]  # one column of a part


def read_parts(source: Parts, options: ReadOptions) -> Reading:
    chosen = options.chosen(source.names)
    names = [source.names[place] for place in chosen]
    require_table(names, source.n_rows)
    with progress_bar(options, total=2 * source.n_rows, unit=" rows") as bar:
        columns: list[Column] = []
        for part in source.parts():
            found = survey(source.select(part, chosen), options.binarize)
            columns = merged(columns, found) if columns else found
            bar.update(len(part))

        def n_complete() -> int:
            return sum(n_complete_rows(source.select(part, chosen)) for part in source.parts())

        with surveyed(columns, source.n_rows):
            check_missing(
                columns, options.missing, source.n_rows, True, n_complete, options.binarize
            )
            codings = codings_of(columns, options.binarize)
        rows = RowPacker(names, options.missing)
        labels = Labels()
        for part in source.parts():
            values = encoded(source.select(part, chosen), codings, options.binarize)
            rows.add(values, _numbers_beside(source, part, options, labels))
            bar.update(len(part))
    reading = rows.reading(rows.packed(codings), options, labels)
    return replace(reading, columns=tuple(columns))


def _numbers_beside(source: Parts, part: Any, options: ReadOptions, labels: Labels) -> FloatArray:
    """Columns of a part that are no spins: (n_rows, n_columns)."""
    numbers = np.empty((len(part), len(options.beside)))
    for k, (name, has_labels) in enumerate(zip(options.beside, options.has_labels, strict=True)):
        values = source.column(part, source.names.index(name))
        if name in options.covariates and values.dtype.kind not in "iuf":
            values = _texts(values)
        numbers[:, k] = labels.numbers(values) if has_labels else _numbers(values, name)
    return numbers


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    """Values of any kind but numbers as texts, None where missing; numbers in between stay."""
    texts = as_texts(values)
    if values.dtype.kind != "O":
        return texts
    found = values.tolist()
    are_numbers = [isinstance(one, int | float) and not isinstance(one, bool) for one in found]
    return np.where(are_numbers & (texts != np.array(None)), values, texts)


def _numbers(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.dtype.kind not in "biuf":
        raise no_numbers(name, values[0])
    return values


def read_parquet(options: ReadOptions) -> Reading:
    try:
        from pyarrow import parquet
    except ImportError:
        problem = "reading Parquet needs pyarrow: pip install 'isingkit[io]'"
        raise TableFileError(path=options.path, problem=problem) from None
    try:
        file = parquet.ParquetFile(options.path, page_checksum_verification=True)
        about = json.loads((file.schema_arrow.metadata or {}).get(b"pandas", b"{}"))
        labels = _index_columns(about)
        categories = _categories(about)
        names = tuple(name for name in file.schema_arrow.names if name not in labels)
    except Exception as error:  # pyarrow's own kinds, which we do not name
        raise _no_parquet(options, error) from None
    with file:
        used = [names[place] for place in options.chosen(names)]
        used += options.beside
        source = Parts(
            names=names,
            n_rows=file.metadata.num_rows,
            parts=lambda: _parquet_parts(file, used, options),
            select=lambda part, places: part.select([names[place] for place in places]),
            column=lambda part, place: _parquet_values(
                part.column(names[place]),
                is_category=names[place] in categories & {*options.covariates},
            ),
        )
        return read_parts(source, options)


def _parquet_values(column: Any, is_category: bool) -> NDArray[Any]:
    """A column as numpy has it, with texts for categories, whatever these are."""
    values = arrow_values(column)
    return as_texts(values) if is_category else values


def _parquet_parts(file: Any, columns: list[str], options: ReadOptions) -> Iterator[Any]:
    import pyarrow

    try:
        for batch in file.iter_batches(max(64, PART // len(columns)), columns=columns):
            yield pyarrow.Table.from_batches([batch])
    except Exception as error:  # as above
        raise _no_parquet(options, error) from None


def _categories(about: dict[str, Any]) -> set[str]:
    """Columns that pandas has written as categories; of numbers Parquet itself forgets that."""
    columns = about.get("columns", [])
    return {one["name"] for one in columns if one.get("pandas_type") == "categorical"}


def _index_columns(about: dict[str, Any]) -> set[str]:
    """Columns that pandas keeps its row labels in."""
    return {
        name
        for name in about.get("index_columns", [])
        if isinstance(name, str) and re.fullmatch(r"__index_level_\d+__", name)
    }


def _no_parquet(options: ReadOptions, error: Exception) -> TableFileError:
    return TableFileError(path=options.path, problem=f"it cannot be read as Parquet ({error})")


def read_array(options: ReadOptions) -> Reading:
    with _as_array(options):
        member = _member(options.path) if zipfile.is_zipfile(options.path) else None
        with _stored(options.path, member) as (stream, n_bytes):
            shape, _, _ = array_header(stream, n_bytes)
    require_matrix(shape, "array")

    def parts() -> Iterator[NDArray[Any]]:
        with _as_array(options):
            yield from _array_parts(options.path, member)

    n_rows, n_columns = shape
    require_memory(NAME * n_columns, n_spins=n_columns, n_samples=n_rows)
    names = tuple(f"x{k}" for k in range(n_columns))

    def select(part: NDArray[Any], places: list[int]) -> Table:
        is_all = len(places) == n_columns
        return Table(tuple(names[place] for place in places), part if is_all else part[:, places])

    source = Parts(names, n_rows, parts, select, column=lambda part, place: part[:, place])
    return read_parts(source, options)


@contextmanager
def _as_array(options: ReadOptions) -> Iterator[None]:
    """Within, damage is told in one sentence; zipfile, zlib and numpy have many errors for it."""
    try:
        yield
    except (IsingkitError, PermissionError, MemoryError):
        raise
    except Exception:
        raise TableFileError(path=options.path, problem="it cannot be read as numbers") from None


def _member(path: Path) -> str:
    """The one table of an archive."""
    with zipfile.ZipFile(path) as archive:
        members = []
        for member in archive.infolist():
            with archive.open(member) as stream:
                shape, _, _ = array_header(stream, member.file_size)
                members += [member.filename] if len(shape) == 2 else []
    if len(members) != 1:
        raise TableFileError(
            path=path, problem=f"it holds {len(members)} tables where one was expected"
        )
    return members[0]


@contextmanager
def _stored(path: Path, member: str | None) -> Iterator[tuple[IO[bytes], int]]:
    """The bytes of an array in a file of its own, or in an archive, and how many there are."""
    if member is None:
        with open(path, "rb") as stream:
            yield stream, path.stat().st_size
    else:
        with zipfile.ZipFile(path) as archive, archive.open(member) as packed:
            yield packed, archive.getinfo(member).file_size


def _array_parts(path: Path, member: str | None) -> Iterator[NDArray[Any]]:
    with _stored(path, member) as (stream, n_bytes):
        (n_rows, n_columns), is_by_column, dtype = array_header(stream, n_bytes)
        step = max(64, PART // max(1, n_columns))
        starts = range(0, n_rows, step)
        if is_by_column:
            if member is not None:
                require_memory(n_bytes, n_spins=n_columns, n_samples=n_rows)
            loaded = np.load(path, mmap_mode="r", allow_pickle=False)
            array = loaded if member is None else loaded[member.removesuffix(".npy")]
            yield from (np.ascontiguousarray(array[start : start + step]) for start in starts)
            return
        for start in starts:
            n_here = min(step, n_rows - start)
            data = stream.read(n_here * n_columns * dtype.itemsize)
            yield np.frombuffer(data, dtype=dtype).reshape(n_here, n_columns)
        stream.read(1)  # the end, where zipfile compares checksums
