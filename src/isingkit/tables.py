"""Table: a file of two-valued columns, read as it is; `as_spins` makes spins of it."""

import csv
import gzip
import itertools
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isingkit.exceptions import TableFileError
from isingkit.packing import PackedSpins
from isingkit.spins import MISSING_WORDS, Table

SEPARATORS = {".csv": ",", ".tsv": "\t"}


def read_table(path: Path) -> Any:
    """What a file holds, in a form that `as_spins` or an estimator takes: CSV or TSV (also .gz), Parquet, NPY, NPZ or .spins."""
    kinds = [suffix.lower() for suffix in path.suffixes]
    kind = kinds[-2] if len(kinds) > 1 and kinds[-1] == ".gz" else kinds[-1] if kinds else ""
    if kind in SEPARATORS:
        return _read_texts(path, SEPARATORS[kind])
    if kind == ".spins":
        return PackedSpins.load(path)
    if kind in (".npy", ".npz"):
        return _read_arrays(path)
    if kind == ".parquet":
        try:
            from pyarrow import parquet
        except ImportError:
            raise TableFileError(path=path, problem="reading Parquet needs pyarrow: pip install 'isingkit[io]'") from None
        try:
            return parquet.read_table(path)
        except Exception as error:  # pyarrow's own kinds, which we do not import
            raise TableFileError(path=path, problem=f"it cannot be read as Parquet ({error})") from None
    raise TableFileError(path=path, problem="its name ends in none of .csv, .tsv (also .gz), .parquet, .npy, .npz and .spins")


def listed(names: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def selected(table: Any, columns: Sequence[str] | None, drop: Sequence[str]) -> Any:
    """The table with these columns only, and without those dropped."""
    if not columns and not drop:
        return table
    if isinstance(table, np.ndarray) and table.ndim == 2:
        table = Table(tuple(f"x{k}" for k in range(table.shape[1])), tuple(table.T))
    names = [str(name) for name in getattr(table, "column_names", getattr(table, "names", ()))]
    unknown = [name for name in [*(columns or ()), *drop] if name not in names]
    if unknown:
        raise TableFileError(
            path=None, problem=f"there is no column '{unknown[0]}'; there are {', '.join(names[:20]) or 'no names'}"
        )
    kept = [name for name in columns or names if name not in drop]
    if isinstance(table, Table):
        return Table(tuple(kept), tuple(table.columns[names.index(name)] for name in kept))
    return table[:, [names.index(name) for name in kept]] if isinstance(table, PackedSpins) else table.select(kept)


def column_of(table: Any, name: str) -> Any:
    """One column of a table, as numbers."""
    column = selected(table, [name], ())
    if isinstance(column, PackedSpins):
        raise TableFileError(path=None, problem="packed spins have no column of numbers")
    values = column.columns[0] if isinstance(column, Table) else np.asarray(column.column(name))
    if values.dtype.kind not in "biuf":
        raise TableFileError(path=None, problem=f"column '{name}' should hold numbers, but holds texts such as '{values[0]}'")
    return values


def _read_texts(path: Path, separator: str) -> Table:
    opened: Any = gzip.open if path.suffix == ".gz" else open
    rows, places = [], []
    try:
        with opened(path, "rt", newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            if separator == "," and "," not in first:
                separator = next((other for other in ";\t" if other in first), separator)
            reader = csv.reader(itertools.chain([first], file), delimiter=separator)
            for row in reader:
                if row:
                    rows.append(row)
                    places.append(reader.line_num)
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, EOFError) as error:
        raise TableFileError(path=path, problem=f"it cannot be read as text in columns ({error})") from None
    if not rows:
        raise TableFileError(path=path, problem="it is empty")
    uneven = next((number for number, row in enumerate(rows) if len(row) != len(rows[0])), None)
    if uneven is not None:
        problem = f"line {places[uneven]} has {len(rows[uneven])} cells where the first has {len(rows[0])}"
        raise TableFileError(path=path, problem=problem)
    texts = list(zip(*rows, strict=True))
    if not _has_titles(texts):
        return Table(tuple(f"x{k}" for k in range(len(texts))), tuple(_values(column) for column in texts))
    if len(rows) == 1:
        raise TableFileError(path=path, problem="it has names of columns but no rows")
    titles = [column[0].strip() or f"column {k + 1}" for k, column in enumerate(texts)]
    return Table(tuple(titles), tuple(_values(column[1:]) for column in texts))


def _has_titles(columns: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names: texts that are no values, or the numbers of the columns."""
    first = [column[0].strip() for column in columns]
    numbered = [[str(k + start) for k in range(len(first))] for start in (0, 1)]
    if len(first) > 2 and first in numbered:
        return True
    return any(first) and all(not text or _is_title(column) for text, column in zip(first, columns, strict=True))


def _is_title(column: Sequence[str]) -> bool:
    """Whether the first text is no number and is not found below: a name, then, and no value."""
    first = column[0].strip()
    return _number(first) is None and first.casefold() not in MISSING_WORDS and first not in {text.strip() for text in column[1:]}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _values(texts: Sequence[str]) -> Any:
    """A column as numbers, NaN where missing, or as it is where some text is no number."""
    numbers = [np.nan if text.strip().casefold() in MISSING_WORDS else _number(text) for text in texts]
    if any(number is None for number in numbers):
        return np.array([text.strip() for text in texts], dtype=object)
    return np.array(numbers, dtype=np.float64)


def _read_arrays(path: Path) -> Any:
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            return loaded
        with loaded:
            arrays = [name for name in loaded.files if loaded[name].ndim == 2]
            if len(arrays) == 1:
                return loaded[arrays[0]]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        raise TableFileError(path=path, problem="it cannot be read as numbers") from None
    raise TableFileError(path=path, problem=f"it holds {len(arrays)} tables where one was expected")
