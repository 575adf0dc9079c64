"""Groups of spins, read from a small table: parties of senators, regions of neurons, scales of a
questionnaire.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from isingkit.exceptions import TableFileError
from isingkit.tables.layout import as_utf8, cells_of, decoded, require_text

_MOST_GROUPS = 12


def read_groups(path: Path, names: Sequence[str], column: str | None = None) -> dict[str, str]:
    """The group of each spin. Spins are looked up in the column that has most of their names;
    groups are in `column`, or in the first other column that has 2 to 12 different values."""
    columns = _columns(path)
    known = set(names)
    key = max(columns, key=lambda title: len(known & set(columns[title])))
    if not known & set(columns[key]):
        problem = f"none of its columns holds names of variables, such as '{names[0]}'"
        raise TableFileError(path=path, problem=problem)
    if column is None:
        column = _column_of_groups(path, columns, key)
    elif column not in columns:
        problem = f"there is no column '{column}'; there are {', '.join(columns)}"
        raise TableFileError(path=path, problem=problem)
    return {
        name: group
        for name, group in zip(columns[key], columns[column], strict=True)
        if name in known and group
    }


def _columns(path: Path) -> dict[str, list[str]]:
    """Columns of text by title; rows of another length than the first are left out."""
    try:
        with open(path, "rb") as file:
            read = as_utf8(file.read)(-1)
        require_text(read, path)
        text = decoded(read).removeprefix("\ufeff")
        lines = list(io.StringIO(text, newline=""))
        first = lines[0] if lines else ""
        separator = next((mark for mark in ",;\t" if mark in first), ",")
        rows = cells_of(lines, separator)
        table = [[cell.strip() for cell in row] for row in rows if row]
    except (UnicodeDecodeError, csv.Error) as error:
        problem = f"it cannot be read as text in columns ({error})"
        raise TableFileError(path=path, problem=problem) from None
    if len(table) < 2:
        problem = "a table of groups needs names of columns and a row for each variable"
        raise TableFileError(path=path, problem=problem)
    titles, *body = table
    whole = [row for row in body if len(row) == len(titles)]
    return {title: [row[k] for row in whole] for k, title in enumerate(titles)}


def _column_of_groups(path: Path, columns: dict[str, list[str]], key: str) -> str:
    """The first column but `key` that looks like groups."""
    most = min(_MOST_GROUPS, len(columns[key]) - 1)  # a column in which all differ names rows
    for title, values in columns.items():
        if title != key and 2 <= len(set(values)) <= most:
            return title
    problem = (
        f"beside '{key}' it has no column with 2 to {_MOST_GROUPS} groups; name one with --group-by"
    )
    raise TableFileError(path=path, problem=problem)
