"""Rows of spins as a file yields them, packed into bits as they come."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from isingkit.exceptions import TableFileError
from isingkit.missing import MissingPolicy
from isingkit.packing import PackedSpins, Words, bits
from isingkit.spins import (
    Coding,
    as_weights,
    require_rows,
    require_table,
    warn_of_constants,
    warn_of_empty_rows,
)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a file held."""

    packed: PackedSpins  # with the mapping of its columns
    weights: NDArray[np.float64] | None  # (n_samples,), where a column of weights was named


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Which columns of a file to read, and how."""

    path: Path
    columns: tuple[str, ...]
    drop: tuple[str, ...]
    weights: str | None
    binarize: float | None
    missing: MissingPolicy
    progress: bool

    def chosen(self, names: Sequence[str]) -> list[int]:
        """Places of the columns that become spins."""
        backwards = reversed(list(enumerate(names)))
        places = {name: place for place, name in backwards}  # the first of equal names
        named = [*([] if self.weights is None else [self.weights]), *self.columns, *self.drop]
        unknown = [name for name in named if name not in places]
        if unknown:
            there_are = ", ".join(names[:20]) or "no names"
            problem = f"there is no column '{unknown[0]}'; there are {there_are}"
            raise TableFileError(path=None, problem=problem)
        left_out = {*self.drop, self.weights}
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
        self._weights: list[NDArray[np.float64]] = []
        # rows that fill no word yet
        self._rest: NDArray[np.int8] = np.empty((0, len(names)), dtype=np.int8)

    def add(self, codes: NDArray[np.int8], weights: NDArray[Any] | None) -> None:
        """More rows: -1, +1 and 0 where missing, (n_rows, n_spins)."""
        self.n_rows += len(codes)
        is_missing = codes == 0
        n_complete = len(codes)
        if is_missing.any():
            self.n_missing += is_missing.sum(axis=0)
            is_complete = ~is_missing.any(axis=1)
            n_complete = int(is_complete.sum())
            kept = ~is_missing.all(axis=1) if self.missing.keeps_all_rows else is_complete
            if self.missing is not MissingPolicy.ERROR and not kept.all():
                codes = codes[kept]
                weights = None if weights is None else weights[kept]
        self.n_complete += n_complete
        self.n_kept += len(codes)
        if weights is not None:
            self._weights.append(np.array(weights, dtype=np.float64))
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

    def weights(self) -> NDArray[np.float64] | None:
        """Weights of the rows that were kept, where there are any."""
        return as_weights(np.concatenate(self._weights), self.n_kept) if self._weights else None

    def _pack(self, codes: NDArray[np.int8]) -> None:
        if not len(codes):
            return
        self._words.append(bits(codes))
        has_gaps = self.missing.keeps_all_rows and not codes.all()
        self._present.append(bits((codes != 0).view(np.int8)) if has_gaps else None)


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
    problem = f"column '{column}' should hold numbers, but holds texts such as '{value}'"
    return TableFileError(path=None, problem=problem)
