"""Groups of spins, read from a small table: parties of senators, regions of neurons, scales of a
questionnaire.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

from isingkit.exceptions import TableFileError

_MOST_GROUPS = 12


def read_groups(path: Path, names: Sequence[str], column: str | None = None) -> dict[str, str]:
    """The group of each spin. Spins are looked up in the column that has most of their names;
    groups are in `column`, or in the first other column that has 2 to 12 different values."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            text = file.read()
        separator = next((mark for mark in ",;\t" if mark in text.partition("\n")[0]), ",")
        table = [
            row for row in csv.reader(text.splitlines(keepends=True), delimiter=separator) if row
        ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise TableFileError(
            path=path, problem=f"it cannot be read as text in columns ({error})"
        ) from None
    if len(table) < 2:
        raise TableFileError(
            path=path, problem="a table of groups needs names of columns and a row for each spin"
        )
    head, rows = (
        [title.strip() for title in table[0]],
        [row for row in table[1:] if len(row) == len(table[0])],
    )
    columns = {title: [row[k].strip() for row in rows] for k, title in enumerate(head)}
    known = set(names)
    key = max(columns, key=lambda title: len(known & set(columns[title])))
    if not known & set(columns[key]):
        raise TableFileError(
            path=path, problem=f"none of its columns holds names of spins, such as '{names[0]}'"
        )
    if column is None:
        most = min(_MOST_GROUPS, len(rows) - 1)  # a column in which all differ names rows
        column = next(
            (title for title in head if title != key and 2 <= len(set(columns[title])) <= most),
            None,
        )
        if column is None:
            raise TableFileError(
                path=path,
                problem=f"beside '{key}' it has no column with 2 to {_MOST_GROUPS} groups; name one with --group-by",
            )
    elif column not in columns:
        raise TableFileError(
            path=path, problem=f"there is no column '{column}'; there are {', '.join(head)}"
        )
    return {
        name: group
        for name, group in zip(columns[key], columns[column], strict=True)
        if name in known and group
    }
