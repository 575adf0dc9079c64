"""GroupFile: rows of groups as files have them, in one file by a column, or in a file each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isingkit.exceptions import ModelMismatchError, TableFileError
from isingkit.formats import bare_name
from isingkit.packing import PackedSpins, recoded
from isingkit.spins import Table
from isingkit.tables import listed
from isingkit.tables.layout import number_of
from isingkit.tables.many import common_mapping, seen_of
from isingkit.tables.rows import Reading


@dataclass(frozen=True, slots=True, eq=False)
class GroupFile:
    """What `compare_groups` takes."""

    spins: PackedSpins
    labels: NDArray[Any]  # (n_rows,): the group of each
    covariates: Table | None
    row_groups: NDArray[Any] | None  # (n_rows,)
    weights: NDArray[Any] | None  # (n_rows,): how much each matters
    counts: NDArray[Any] | None  # (n_rows,): how many samples each stands for


def read_groups(
    files: Sequence[Path],
    by: str | None,
    read: Callable[..., Reading],
    *,
    columns: str | None,
    drop: str,
    covariates: str | None,
    of_rows: Mapping[str, str | None],
    missing: str,
) -> GroupFile:
    """The rows of one file, grouped by a column, or of several, a group each.

    read: a reader of files as `read_spins` is; names of columns are separated by commas
    of_rows: columns that say what rows are, by what it calls them: "groups", "weights", "counts"
    """
    beside = tuple(dict.fromkeys(listed(covariates)))
    known = beside if by is None else [by, *beside]
    if by in beside:
        problem = f"column '{by}' can be only one of the column of groups and covariates"
        raise TableFileError(path=files[0], problem=problem)
    also = {name: column for name, column in of_rows.items() if column is not None}
    options = {"columns": listed(columns), "drop": listed(drop), "missing": missing, **also}
    named = [] if by is None else [by]
    readings = [read(path, covariates=known, labels=named, **options) for path in files]
    tables = [one.covariates for one in readings if one.covariates is not None]
    values = np.concatenate([table.array for table in tables]) if tables else None
    if by is None:
        labels = np.repeat(_names(files), [one.packed.n_samples for one in readings])
    else:
        assert values is not None
        labels = _in_order(values[:, 0])
        values = values[:, 1:]
    table = None if values is None or not beside else Table(tuple(beside), values)
    weights = _concatenated([one.weights for one in readings])
    counts = _concatenated([one.counts for one in readings])
    return GroupFile(_joined(files, readings), labels, table, _units(readings), weights, counts)


def _concatenated(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Of all files, which have it all or none."""
    there = [one for one in parts if one is not None]
    return np.concatenate(there) if there else None


def _names(files: Sequence[Path]) -> list[str]:
    """Names of groups: those of their files."""
    names = [bare_name(path) or str(path) for path in files]
    if len(set(names)) < len(names):
        problem = "two files of groups have the same name"
        raise TableFileError(path=files[-1], problem=problem)
    return names


def _in_order(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels that are numbers, each written in one way, as numbers, which have an order."""
    numbers = {label: _number_written(label) for label in labels.tolist()}
    if None in numbers.values():
        return labels
    return np.array([numbers[label] for label in labels.tolist()])


def _number_written(label: Any) -> float | None:
    """The number that a text is, as Python writes it; None where it is anything else."""
    number = number_of(label) if isinstance(label, str) else None
    return number if number is not None and f"{number:.15g}" == label else None


def _joined(files: Sequence[Path], readings: Sequence[Reading]) -> PackedSpins:
    """All rows, files after each other, with the codings that one table of all would have: a column
    that never changes in one group may do so in another.
    """
    first = readings[0].packed
    for path, reading in zip(files[1:], readings[1:], strict=True):
        if reading.packed.names != first.names:
            what = f"'{files[0].name}' and '{path.name}'"
            raise ModelMismatchError(left=first.names, right=reading.packed.names, what=what)
    parts = [reading.packed for reading in readings]
    if len({part.mapping for part in parts} - {None}) > 1:
        mapping = common_mapping([seen_of(part) for part in parts], None) or ()
        parts = [part if part.mapping is None else recoded(part, mapping) for part in parts]
    return PackedSpins.concatenate(parts)


def _units(readings: Sequence[Reading]) -> NDArray[Any] | None:
    """Labels of rows that belong together; files do not share any."""
    units = []
    first = 0
    for reading in readings:
        if reading.groups is None:
            return None
        units.append(first + reading.groups)
        first += int(reading.groups.max()) + 1
    return np.concatenate(units)
