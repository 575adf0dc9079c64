"""ResultTable: a structured array that prints as a table and turns into pandas or polars."""

import html
import importlib
from collections.abc import Sequence
from typing import Any
from unicodedata import category

import numpy as np

Record = dict[str, Any]  # a row of a table, or an object of JSON
_SHOWN = 20  # rows; of more, the first and the last half of so many
_FORMATS = {"p_value": ".2g", "q_value": ".2g"}
_OTHER_FORMAT = ".4g"
_TEARING = ("Cc", "Zl", "Zp")  # kinds of letters: control, and ends of lines and paragraphs
# what data frames have, and what a table has instead
_INSTEAD = {
    "columns": "dtype.names has the names of columns",
    "head": "table[:5] is the first rows",
    "iloc": "table[...] takes places of rows",
    "sort_values": "table.sorted_by(column) sorts",
    "to_csv": "table.to_pandas().to_csv(...) writes it",
}


class ResultTable(np.ndarray[Any, Any]):
    """Rows of named columns.

    A numpy structured array: `table["z"]` is a column, `table[:10]` some rows, `table[0]` one, and
    everything that numpy does with such arrays holds, but that results cannot be changed: take a
    copy(). It prints as a table, shows as one in a notebook, and `to_pandas()` or `to_polars()`
    makes a data frame of it.
    """

    def __getattr__(self, name: str) -> Any:
        instead = _INSTEAD.get(name, "to_pandas() makes a data frame of it")
        raise AttributeError(f"a ResultTable has no '{name}': {instead}")

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        is_column = isinstance(found, ResultTable) and found.dtype.names is None
        return found.view(np.ndarray) if is_column else found

    def sorted_by(self, column: str, *, descending: bool = False) -> "ResultTable":
        """The same rows in the order of a column."""
        values = self[column]
        order = np.argsort(values, kind="stable")
        if descending:
            ranks = np.unique(values, return_inverse=True)[1]  # those of NaN are equal, and last
            order = np.argsort(-ranks, kind="stable")
            if values.dtype.kind == "f":
                is_known = ~np.isnan(values[order])
                order = np.concatenate([order[is_known], order[~is_known]])
        return self[order]  # type: ignore[no-any-return]

    def to_pandas(self) -> Any:
        """A pandas.DataFrame."""
        pandas = _package("pandas")
        return pandas.DataFrame({name: _plain(self[name]) for name in self._names})

    def to_polars(self) -> Any:
        """A polars.DataFrame."""
        polars = _package("polars")
        return polars.DataFrame(
            {name: polars.Series(name, self[name].copy()) for name in self._names}
        )

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """By which others (polars, pandas, duckdb, narwhals) take tables; needs pyarrow."""
        return self._to_arrow().__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """The same for older libraries: the interchange that Arrow's has followed."""
        return self._to_arrow().__dataframe__(nan_as_null, allow_copy)

    def _to_arrow(self) -> Any:
        pyarrow = _package("pyarrow")
        return pyarrow.table({name: _plain(np.array(self[name])) for name in self._names})

    @property
    def _names(self) -> Sequence[str]:
        return self.dtype.names or ()

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if self.ndim != 1 or not self._names:
            return str(self.view(np.ndarray))
        columns = [[name, *cells] for name, cells in self._cells().items()]
        is_text = [self.dtype[name].kind in "UO" for name in self._names]
        padded = [_padded(column, left) for column, left in zip(columns, is_text, strict=True)]
        lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
        if len(self) > _SHOWN:
            lines.append(f"({len(self)} rows)")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if self.ndim != 1 or not self._names:
            return f"<pre>{html.escape(str(self))}</pre>"
        cells = self._cells()
        heads = "".join(f"<th>{html.escape(name)}</th>" for name in cells)
        rows = [_html_row(row) for row in zip(*cells.values(), strict=True)]
        body = "".join(rows)
        count = f"<p>{len(self)} rows</p>"
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{count}"

    def _cells(self) -> dict[str, list[str]]:
        """By column, what is shown of each row."""
        half = _SHOWN // 2
        is_long = len(self) > _SHOWN
        n_rows = len(self)
        shown = np.r_[:half, n_rows - half : n_rows] if is_long else np.arange(n_rows)
        cells = {}
        for name in self._names:
            texts = [_text(value, name) for value in self[name][shown]]
            cells[name] = [*texts[:half], "...", *texts[half:]] if is_long else texts
        return cells


def _html_row(texts: Sequence[str]) -> str:
    cells = "".join(f"<td>{html.escape(text)}</td>" for text in texts)
    return f"<tr>{cells}</tr>"


def as_table(columns: dict[str, Any]) -> ResultTable:
    """Columns of equal length, by name."""
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    size = len(next(iter(arrays.values())))
    table = np.empty(size, dtype=[(name, column.dtype) for name, column in arrays.items()])
    for name, column in arrays.items():
        table[name] = column
    return frozen(table)


def frozen(table: np.ndarray[Any, Any]) -> ResultTable:
    """A structured array as a result, which nobody changes by mistake."""
    result = table.view(ResultTable)
    result.flags.writeable = False
    return result


def on_one_line(text: str) -> str:
    r"""A name for people, with \n for the end of a line and the like, which would tear a table."""
    if text.isprintable():
        return text
    return "".join(ascii(one)[1:-1] if category(one) in _TEARING else one for one in text)


def _text(value: Any, name: str) -> str:
    if isinstance(value, float | np.floating):
        return format(float(value), _FORMATS.get(name, _OTHER_FORMAT))
    return on_one_line(str(value))


def _padded(cells: list[str], left: bool) -> list[str]:
    width = max(len(cell) for cell in cells)
    return [cell.ljust(width) if left else cell.rjust(width) for cell in cells]


def _plain(column: Any) -> Any:
    """Text as Python's strings: data frames know no fixed widths."""
    return column.astype(object) if column.dtype.kind == "U" else column


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"this needs {name}: install it with 'pip install {name}'.") from None
