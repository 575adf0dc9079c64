"""Many files that are parts of one table: what each holds, and one coding for all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from isingkit.exceptions import CodingMismatchError, ModelMismatchError, SettingError
from isingkit.formats import FilePath
from isingkit.packing import PackedSpins, recoded, values_seen
from isingkit.spins import (
    Binarize,
    Coding,
    Column,
    Names,
    codings_of,
    column_of,
    folded,
    threshold_of,
)
from isingkit.tables import read_spins
from isingkit.tables.rows import Reading


@dataclass(frozen=True, slots=True)
class Seen:
    """What the columns of one file hold."""

    names: Names
    # that the file would be read with by itself; None where it holds bare spins
    mapping: tuple[Coding, ...] | None
    values: tuple[tuple[Any, ...], ...]  # of each column those that occur


def seen_in(path: FilePath, **options: Any) -> Seen:
    """What a file holds, read with the options of `read_spins`."""
    return seen_of(read_spins(path, **options).packed)


def seen_of(packed: PackedSpins) -> Seen:
    """What columns that were read hold."""
    values = [
        tuple(value for value, occurs in zip(coding, there, strict=True) if occurs)
        for coding, *there in zip(packed.mapping or (), *values_seen(packed), strict=False)
    ]
    return Seen(packed.names, packed.mapping, tuple(values))


def coded_as(packed: PackedSpins, known: Mapping[str, Sequence[Any]]) -> PackedSpins:
    """The same samples with the codings that columns of these names had in an earlier table, which
    a column of one value does not tell; those that know other values stay as they are.
    """
    if packed.mapping is None:
        return packed
    own = list(packed.mapping)
    wanted = list(packed.mapping)
    for j, values in enumerate(seen_of(packed).values):
        low, high = known.get(packed.names[j], own[j])
        spelt = {_folded(value): value for value in (low, high)}
        here = [spelt.get(_folded(value), value) for value in values]
        others = [value for value in here if value not in (low, high)]
        if "" in (low, high) and len(others) == 1:  # a value that the earlier table had not
            low, high = (others[0], high) if low == "" else (low, others[0])
            others = []
        if not others:
            first, second = (spelt.get(_folded(value), value) for value in own[j])
            own[j], wanted[j] = (first, second), (low, high)
    return recoded(replace(packed, mapping=tuple(own)), wanted)


def _folded(value: Any) -> Any:
    return folded(value) if isinstance(value, str) else value


def common_mapping(files: Sequence[Seen], binarize: Binarize) -> list[Coding] | None:
    """The coding that the whole table would be read with; None where all files hold bare spins."""
    names = files[0].names
    for file in files:
        if file.names != names:
            raise ModelMismatchError(left=names, right=file.names, what="all files")
    coded = [file for file in files if file.mapping is not None]
    if not coded:
        return None
    return codings_of([_column(coded, j, binarize) for j in range(len(names))], binarize)


def _column(files: Sequence[Seen], place: int, binarize: Binarize) -> Column:
    codings = [file.mapping[place] for file in files if file.mapping is not None]
    other = next((coding for coding in codings if coding != codings[0]), codings[0])
    threshold = threshold_of(binarize, files[0].names[place])
    of_threshold = None if threshold is None else (f"<= {threshold:g}", f"> {threshold:g}")
    if codings[0] == other == of_threshold:
        return Column(files[0].names[place], 0, 1, 0, None)  # numbers, whichever
    values = {value for file in files for value in file.values[place]}
    if len(values) > 2 or len({isinstance(value, str) for value in values}) > 1:
        raise CodingMismatchError(column=files[0].names[place], left=codings[0], right=other)
    return column_of(files[0].names[place], values, 0)


def read_coded(path: FilePath, mapping: Sequence[Coding] | None, **options: Any) -> Reading:
    """The file as `read_spins` reads it, but with a given coding."""
    reading = read_spins(path, **options)
    if mapping is None or reading.packed.mapping is None:
        return reading
    if len(mapping) != reading.packed.n_spins:
        expected = f"{reading.packed.n_spins} pairs of values, one for each column"
        raise SettingError(setting="mapping", value=mapping, expected=expected)
    return replace(reading, packed=recoded(reading.packed, mapping))
