"""Some columns of a file as they are: covariates of rows that samples are wanted for."""

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isingkit.covariates import CovariateCoding
from isingkit.exceptions import TableFileError
from isingkit.formats import COMPRESSED, STANDARD_INPUT, format_of
from isingkit.spins import MISSING_TEXTS, Table, arrow_values, as_texts
from isingkit.tables.layout import Layout, as_utf8, cells_of, decoded, head_of, layout_of, number_of
from isingkit.tables.rows import no_numbers

_CHUNK = 1 << 22  # bytes of text
_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError, csv.Error)


def read_covariates(path: Path, coding: CovariateCoding) -> Table:
    """The columns of a file (CSV or TSV, also .gz, or "-" for standard input, or Parquet) that this
    coding is of.
    """
    names = tuple(column.name for column in coding.columns)
    ending = format_of(path)
    if ending == ".parquet":
        return Table(names, np.column_stack(_parquet_columns(path, coding)))
    if ending not in (".csv", ".tsv", STANDARD_INPUT):
        raise TableFileError(
            path=path, problem="covariates are read from .csv, .tsv (also .gz) and .parquet"
        )
    layout, texts = _text_columns(path, names, "\t" if ending == ".tsv" else ",;\t")
    columns = [
        one if column.categories else _numbers(one, column.name, layout.decimal_comma)
        for one, column in zip(texts, coding.columns, strict=True)
    ]
    return Table(names, np.column_stack(columns))


def _text_columns(
    path: Path, names: Sequence[str], separators: str
) -> tuple[Layout, list[NDArray[Any]]]:
    """How a text is laid out, and cells below these names, None where missing."""
    try:
        with _opened(path) as file:
            read = as_utf8(file.read)
            head, is_all = head_of(read, path)
            layout = layout_of(head, is_all, separators, path)
            below = [head[layout.start :], *iter(lambda: read(_CHUNK), b"")]
        lines = io.StringIO(decoded(b"".join(below)), newline="")
        rows = [row for row in cells_of(lines, layout.separator) if row]
    except _BROKEN as error:
        problem = f"it cannot be read as text in columns ({error})"
        raise TableFileError(path=path, problem=problem) from None
    _require(path, names, layout.names)
    if any(len(row) != len(layout.names) for row in rows):
        raise TableFileError(path=path, problem="its rows have different numbers of cells")
    places = [layout.names.index(name) for name in names]
    return layout, [_column(row[place].strip() for row in rows) for place in places]


def _opened(path: Path) -> Any:
    """Bytes of a text, inflated where they were compressed."""
    if str(path) == STANDARD_INPUT:
        if sys.stdin is None:
            raise TableFileError(path=path, problem="standard input is closed")
        return nullcontext(sys.stdin.buffer)
    return gzip.open(path, "rb") if path.suffix.lower() == COMPRESSED else open(path, "rb")


def _column(texts: Any) -> NDArray[Any]:
    known = [None if text.casefold() in MISSING_TEXTS else text for text in texts]
    return np.array(known, dtype=object)


def _numbers(texts: NDArray[Any], name: str, decimal_comma: bool) -> NDArray[Any]:
    """The same as numbers."""
    numbers = [None if text is None else number_of(text, decimal_comma) for text in texts]
    pairs = zip(texts, numbers, strict=True)
    others = [text for text, number in pairs if text is not None and number is None]
    if others:
        raise no_numbers(name, others[0])
    return np.array(numbers, dtype=object)


def _parquet_columns(path: Path, coding: CovariateCoding) -> list[NDArray[Any]]:
    try:
        from pyarrow import parquet
    except ImportError:
        problem = "reading Parquet needs pyarrow: pip install 'isingkit[io]'"
        raise TableFileError(path=path, problem=problem) from None
    try:
        table = parquet.read_table(path)
    except Exception as error:  # pyarrow's own kinds, which we do not name
        problem = f"it cannot be read as Parquet ({error})"
        raise TableFileError(path=path, problem=problem) from None
    _require(path, [column.name for column in coding.columns], table.column_names)
    values = [arrow_values(table.column(column.name)) for column in coding.columns]
    return [
        as_texts(one) if column.categories else one.astype(object)
        for one, column in zip(values, coding.columns, strict=True)
    ]


def _require(path: Path, names: Sequence[str], there: Sequence[str]) -> None:
    """Refuse a file without one of these columns."""
    lacking = [name for name in names if name not in there]
    if lacking:
        listed = ", ".join(there[:20]) or "no names"
        problem = f"there is no column '{lacking[0]}'; there are {listed}"
        raise TableFileError(path=path, problem=problem)
