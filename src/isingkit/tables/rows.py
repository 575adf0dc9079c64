"""Rows of spins as a file yields them, packed into bits as they come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from isingkit.arrays import BoolArray, FloatArray, IntArray, SpinArray
from isingkit.exceptions import TableFileError, short
from isingkit.missing import MissingPolicy
from isingkit.packing import PackedSpins, Words, bits, pack
from isingkit.spins import (
    Binarize,
    Coding,
    Column,
    Names,
    Spins,
    Table,
    as_counts,
    as_groups,
    as_weights,
    missing_labels,
    require_rows,
    require_table,
    row_weights,
    warn_of_constants,
    warn_of_empty_rows,
)

NOT_TICKED = "no"  # what an empty cell means in a column of marks


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a file held."""

    packed: PackedSpins  # with the mapping of its columns
    # (n_samples,) each, where a column of them was named:
    weights: FloatArray | None = None  # how much rows matter
    counts: FloatArray | None = None  # how many samples they stand for
    groups: IntArray | None = None  # which belong together
    covariates: Table | None = None  # what else is known of rows: numbers or texts, None if missing
    columns: tuple[Column, ...] = ()  # what those held that became spins; none of packed ones
    left_out: tuple[int, ...] = ()  # places of rows that the policy for missing values left out

    def in_full(self) -> "Reading":
        """The same with an empty row, of weight 0, in place of each that was left out."""
        if not self.left_out:
            return self
        places = np.array(self.left_out) - np.arange(len(self.left_out))
        packed = self.packed
        values = np.insert(np.asarray(packed), places, 0, axis=0)
        spins = Spins(values, packed.names, packed.mapping or (), None, has_missing=True)
        covariates = self.covariates
        if covariates is not None:
            gap: Any = None
            padded = np.insert(covariates.array, places, gap, axis=0)
            covariates = Table(covariates.names, padded)
        return replace(
            self,
            packed=pack(spins),
            weights=_padded(self.weights, places, 0),
            counts=_padded(self.counts, places, 0),
            groups=_padded(self.groups, places, -1),
            covariates=covariates,
            left_out=(),
        )

    def of_rows(self, packed: PackedSpins, kept: BoolArray) -> "Reading":
        """The same of some rows, which `packed` holds."""
        n_rows = len(kept) + len(self.left_out)
        places = np.setdiff1d(np.arange(n_rows), self.left_out)
        n_kept = packed.n_samples
        covariates = self.covariates
        if covariates is not None:
            covariates = Table(covariates.names, covariates.array[kept])
        return replace(
            self,
            packed=packed,
            weights=None if self.weights is None else as_weights(self.weights, n_kept, kept),
            counts=None if self.counts is None else as_counts(self.counts, n_kept, kept),
            groups=None if self.groups is None else as_groups(self.groups, n_kept, kept),
            covariates=covariates,
            left_out=tuple(sorted([*self.left_out, *places[~kept].tolist()])),
        )

    @property
    def n_samples(self) -> int:
        """Rows, as often as they were counted."""
        return self.packed.n_samples if self.counts is None else int(self.counts.sum())

    @property
    def n_effective(self) -> int:
        """Samples of equal weight that would tell as much."""
        weights = row_weights(self.weights, self.counts, self.packed.n_samples)
        return self.packed.n_samples if weights is None else round(weights.n_effective)


def _padded(values: Any, places: IntArray, gap: int) -> Any:
    return None if values is None else np.insert(values, places, gap)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Which columns of a file to read, and how."""

    path: Path
    columns: Names
    drop: Names
    weights: str | None
    counts: str | None
    groups: str | None
    covariates: Names
    labels: Names  # of covariates: those whose texts are never numbers
    binarize: Binarize
    missing: MissingPolicy
    missing_codes: Names  # what stands for missing values, beside empty cells and NA
    ticked: Names  # columns of one mark: an empty cell means no
    transpose: bool  # whether variables are in rows
    progress: bool

    @property
    def beside(self) -> list[str]:
        """Columns that are no spins but say what rows are, in the order of `Reading`."""
        named = (self.weights, self.counts, self.groups, *self.covariates)
        return [name for name in named if name is not None]

    @property
    def has_labels(self) -> list[bool]:
        """Of each of `beside`, whether it holds labels; else numbers."""
        return [name == self.groups or name in self.covariates for name in self.beside]

    def chosen(self, names: Sequence[str]) -> list[int]:
        """Places of the columns that become spins."""
        backwards = reversed(list(enumerate(names)))
        places = {name: place for place, name in backwards}  # the first of equal names
        twice = [name for name in self.beside if self.beside.count(name) > 1]
        if twice:
            roles = "weights, counts, groups and covariates of rows"
            problem = f"column '{twice[0]}' can be only one of {roles}"
            raise TableFileError(path=None, problem=problem)
        cut = self.binarize if isinstance(self.binarize, Mapping) else ()
        named = [*self.beside, *self.columns, *self.drop, *self.ticked, *cut]
        unknown = [name for name in named if name not in places]
        if unknown:
            there_are = ", ".join(names[:20]) or "no names"
            problem = f"there is no column '{unknown[0]}'; there are {there_are}"
            raise TableFileError(path=None, problem=problem)
        left_out = {*self.drop, *self.beside}
        if self.columns:
            chosen = [places[name] for name in dict.fromkeys(self.columns) if name not in left_out]
        else:
            chosen = [place for place, name in enumerate(names) if name not in left_out]
        if names and not chosen:
            raise TableFileError(path=None, problem="no column is left of it")
        require_table([names[place] for place in chosen], len(chosen))
        return chosen


class RowPacker:
    """Rows of spins as they come, packed 64 at a time; the policy says whether incomplete ones, or
    only empty ones, are left out.
    """

    def __init__(self, names: Sequence[str], missing: MissingPolicy) -> None:
        self.names = tuple(names)
        self.missing = missing
        self.n_rows = 0
        self.n_kept = 0
        self.n_complete = 0
        self.n_missing = np.zeros(len(names), dtype=np.int64)
        self._words: list[Words] = []
        self._present: list[Words | None] = []  # beside _words; None where nothing is missing
        self._numbers: list[FloatArray] = []
        self._left_out: list[int] = []
        # rows that fill no word yet
        self._rest: SpinArray = np.empty((0, len(names)), dtype=np.int8)

    def add(self, codes: SpinArray, numbers: FloatArray) -> None:
        """More rows: -1, +1 and 0 where missing, (n_rows, n_spins); and what stands beside them,
        (n_rows, n_columns).
        """
        self.n_rows += len(codes)
        is_missing = codes == 0
        n_complete = len(codes)
        if is_missing.any():
            self.n_missing += is_missing.sum(axis=0)
            is_complete = ~is_missing.any(axis=1)
            n_complete = int(is_complete.sum())
            kept = ~is_missing.all(axis=1) if self.missing.keeps_all_rows else is_complete
            if self.missing is not MissingPolicy.ERROR and not kept.all():
                first = self.n_rows - len(codes)
                self._left_out += (first + np.flatnonzero(~kept)).tolist()
                codes = codes[kept]
                numbers = numbers[kept]
        self.n_complete += n_complete
        self.n_kept += len(codes)
        self._numbers.append(np.array(numbers))
        if len(self._rest):
            codes = np.concatenate([self._rest, codes])
        n_whole = len(codes) // 64 * 64
        self._pack(codes[:n_whole])
        self._rest = codes[n_whole:].copy()

    def packed(self, codings: Sequence[Coding], flipped: Sequence[bool] = ()) -> PackedSpins:
        """All rows; codes of flipped columns stand for the opposite spin."""
        require_rows(self.n_kept, (self.n_rows, len(self.names)), self.missing)
        if self.missing.keeps_all_rows:
            warn_of_empty_rows(self.n_rows - self.n_kept, self.n_rows)
        self._pack(self._rest)
        every_row: Words = np.full(-(-self.n_kept // 64), 2**64 - 1, dtype=np.uint64)
        every_row[-1] >>= np.uint64(-self.n_kept % 64)
        widths = [piece.shape[1] for piece in self._words]
        present = None
        if any(piece is not None for piece in self._present):
            present = _side_by_side(self._present, widths, len(self.names)) & every_row
        words = _side_by_side(self._words, widths, len(self.names))
        for j in np.flatnonzero(flipped):
            words[j] ^= every_row if present is None else present[j]
        all_high = every_row if present is None else present
        is_constant = ~words.any(axis=1) | (words == all_high).all(axis=1)
        warn_of_constants(self.names, is_constant)
        return PackedSpins(words, self.n_kept, self.names, present, tuple(codings))

    def reading(self, packed: PackedSpins, options: ReadOptions, labels: "Labels") -> Reading:
        """The rows that were kept, with what stands beside them."""
        columns = dict(zip(options.beside, np.concatenate(self._numbers).T, strict=True))
        weights = None
        counts = None
        groups = None
        if options.weights is not None:
            weights = as_weights(columns[options.weights], self.n_kept)
        if options.counts is not None:
            counts = as_counts(columns[options.counts], self.n_kept)
        if options.groups is not None:
            groups = as_groups(columns[options.groups], self.n_kept)
        covariates = None
        if options.covariates:
            read = [labels.decoded(columns[name]) for name in options.covariates]
            covariates = Table(options.covariates, np.column_stack(read))
        left_out = tuple(self._left_out)
        return Reading(packed, weights, counts, groups, covariates, left_out=left_out)

    def _pack(self, codes: SpinArray) -> None:
        if not len(codes):
            return
        self._words.append(bits(codes))
        has_gaps = self.missing.keeps_all_rows and not codes.all()
        self._present.append(bits((codes != 0).view(np.int8)) if has_gaps else None)


class Labels:
    """Numbers for labels as they turn up."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self._numbers: dict[Any, int] = {}

    def number(self, label: Any) -> int:
        """That of one label, which may be new."""
        return self._numbers.setdefault(label, self.first + len(self._numbers))

    def numbers(self, labels: NDArray[Any]) -> FloatArray:
        """Those of a column, NaN where a label is missing."""
        numbers = np.full(len(labels), np.nan)
        there = ~missing_labels(labels)
        numbers[there] = [self.number(label) for label in labels[there].tolist()]
        return numbers

    def decoded(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        """The labels that numbers stand for, None for NaN."""
        found = dict(enumerate(self._numbers, start=self.first))
        labels = np.full(len(numbers), None, dtype=object)
        there = np.flatnonzero(~np.isnan(numbers))
        labels[there] = [found[int(number)] for number in numbers[there]]
        return labels


def _side_by_side(pieces: list[Any], widths: Sequence[int], n_spins: int) -> Words:
    """One array of pieces of words, which are let go one by one as it fills: (n_spins, sum of
    widths); None is all ones.
    """
    words: Words = np.empty((n_spins, sum(widths)), dtype=np.uint64)
    start = 0
    for width in widths:
        piece = pieces.pop(0)
        words[:, start : start + width] = 2**64 - 1 if piece is None else piece
        start += width
    return words


def progress_bar(reading: ReadOptions, **options: Any) -> Any:
    return tqdm(
        desc="reading",
        unit_scale=True,
        leave=False,
        delay=1,
        disable=not reading.progress,
        **options,
    )


def no_numbers(column: str, value: object) -> TableFileError:
    """The error of a column of weights that holds texts."""
    problem = f"column '{column}' should hold numbers, but holds texts such as '{short(value)}'"
    return TableFileError(path=None, problem=problem)
