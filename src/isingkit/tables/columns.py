"""Some columns of a file as they are: covariates of rows that samples are wanted for."""

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isingkit.covariates import CovariateCoding
from isingkit.exceptions import TableFileError
from isingkit.formats import COMPRESSED, format_of
from isingkit.spins import MISSING_TEXTS, Table, arrow_values

_BROKEN = (gzip.BadGzipFile, EOFError, UnicodeDecodeError, csv.Error)


def read_covariates(path: Path, coding: CovariateCoding) -> Table:
    """The columns of a file (CSV or TSV, also .gz, or Parquet) that this coding is of."""
    names = tuple(column.name for column in coding.columns)
    ending = format_of(path)
    if ending == ".parquet":
        return Table(names, np.column_stack(_parquet_columns(path, names)))
    if ending not in (".csv", ".tsv"):
        raise TableFileError(
            path=path, problem="covariates are read from .csv, .tsv (also .gz) and .parquet"
        )
    texts = _text_columns(path, names, "," if ending == ".csv" else "\t")
    columns = [
        one if column.categories else _numbers(one, column.name)
        for one, column in zip(texts, coding.columns, strict=True)
    ]
    return Table(names, np.column_stack(columns))


def _text_columns(path: Path, names: Sequence[str], separator: str) -> list[NDArray[Any]]:
    """Cells below these names, None where missing."""
    opened = gzip.open if path.suffix.lower() == COMPRESSED else open
    try:
        with opened(path, "rt", newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file, delimiter=separator) if row]
    except _BROKEN as error:
        problem = f"it cannot be read as text in columns ({error})"
        raise TableFileError(path=path, problem=problem) from None
    titles = [title.strip() for title in rows[0]] if rows else []
    _require(path, names, titles)
    if any(len(row) != len(titles) for row in rows):
        raise TableFileError(path=path, problem="its rows have different numbers of cells")
    places = [titles.index(name) for name in names]
    return [_column(row[place].strip() for row in rows[1:]) for place in places]


def _column(texts: Any) -> NDArray[Any]:
    known = [None if text.casefold() in MISSING_TEXTS else text for text in texts]
    return np.array(known, dtype=object)


def _numbers(texts: NDArray[Any], name: str) -> NDArray[Any]:
    """The same as numbers."""
    try:
        numbers = [None if text is None else float(text) for text in texts]
    except ValueError as error:
        problem = f"column '{name}' should hold numbers, but {error}"
        raise TableFileError(path=None, problem=problem) from None
    return np.array(numbers, dtype=object)


def _parquet_columns(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
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
    _require(path, names, table.column_names)
    return [arrow_values(table.column(name)).astype(object) for name in names]


def _require(path: Path, names: Sequence[str], there: Sequence[str]) -> None:
    """Refuse a file without one of these columns."""
    lacking = [name for name in names if name not in there]
    if lacking:
        listed = ", ".join(there[:20]) or "no names"
        problem = f"there is no column '{lacking[0]}'; there are {listed}"
        raise TableFileError(path=path, problem=problem)
