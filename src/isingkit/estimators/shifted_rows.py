"""Rows that are shifted by one column: where one is empty, others hold their neighbours' values."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.estimators.row_stories import (
    FEWEST_ROWS,
    LEAST_GAIN,
    LEVEL,
    Finding,
    Numbers,
    RowTable,
    judge,
    largest_gains,
    tells_the_last,
)
from isingkit.spins import Names

_SUSPECT_CELLS = 4  # that a shift must do without
_SUSPECT_GAIN = 0.2  # log likelihood a row, by the margin of one cell


@dataclass(frozen=True, slots=True)
class _Shift:
    """Cells first + 1 to last hold the values of columns first to last - 1; that of `last` is lost.

    Of mirrored columns, where `is_mirrored`.
    """

    first: int  # the empty one
    last: int
    is_mirrored: bool

    def sources(self, n_columns: int) -> IntArray:
        """(n_columns,): the cell that holds each column's value; n_columns where none does."""
        cells = np.arange(n_columns)
        cells[self.first : self.last] += 1
        cells[self.last] = n_columns
        return cells


def shifted_rows(
    table: RowTable, names: Names, explained: BoolArray
) -> tuple[list[Finding], BoolArray]:
    """Rows that are shifted by one column, from an empty one to an end of the table, or from an
    empty one at an end up to any other; and which rows these are.
    """
    suspects = [one for is_mirrored in (False, True) for one in _suspects(table, is_mirrored)]
    gains = [one.gains(explained) for one in suspects]
    n_looked_at = 4 * table.n_columns
    findings = []
    rows = explained.copy()
    while max(gain.max() for gain in gains) > LEAST_GAIN:
        family = int(np.argmax([gain.max() for gain in gains]))
        place = int(gains[family].argmax())
        shift = suspects[family].shift(place)
        here = table.mirrored() if shift.is_mirrored else table
        p_value, shifted = _judge_shift(here, shift, rows)
        if p_value * n_looked_at < LEVEL:
            findings.append(_words_of_shift(shift, names, shifted, p_value * n_looked_at))
            rows |= shifted
            gains = [
                np.where(np.isneginf(old), old, one.gains(rows))
                for old, one in zip(gains, suspects, strict=True)
            ]
        gains[family][place] = -np.inf  # it had its turn
    return findings, rows


@dataclass(frozen=True, slots=True, eq=False)
class _Suspects:
    """Shifts from an empty column to the last one; or from the first one, empty, up to any."""

    n_columns: int
    is_mirrored: bool
    is_to_the_end: bool
    ratios: Numbers  # (n,): log likelihood ratios of rows
    places: IntArray  # (n,): of which shift
    rows: IntArray  # (n,)

    def gains(self, explained: BoolArray) -> Numbers:
        """(n_columns,): of each shift, by rows that are not explained."""
        left = ~explained[self.rows]
        return largest_gains(self.ratios[left], self.places[left], self.n_columns)

    def shift(self, place: int) -> _Shift:
        if self.is_to_the_end:
            return _Shift(place, self.n_columns - 1, self.is_mirrored)
        return _Shift(0, place, self.is_mirrored)


def _suspects(table: RowTable, is_mirrored: bool) -> list[_Suspects]:
    here = table.mirrored() if is_mirrored else table
    n = table.n_columns
    columns, rows = np.nonzero(here.is_missing)
    to_the_end = _ratios_of_shifts_to_the_end(here)[columns, rows]
    group = np.flatnonzero(here.is_missing[0])
    from_the_start = _ratios_of_shifts_from_the_start(here.some_rows(group))
    from_the_start[[0, n - 1]] = 0  # nothing moves, or everything, which is among the others
    everywhere = np.repeat(np.arange(n), len(group))
    every_row = np.tile(group, n)
    return [
        _Suspects(n, is_mirrored, True, to_the_end, columns, rows),
        _Suspects(n, is_mirrored, False, from_the_start.ravel(), everywhere, every_row),
    ]


def _ratios_of_shifts_to_the_end(table: RowTable) -> Numbers:
    """(n_columns, n_rows): log likelihood ratios of rows shifted from each column to the last one.

    Pairs left of the empty column stay, pairs right of it move, pairs astride move at one side: a
    pair's part, as a function of the empty column, changes behind its two columns only.
    """
    left, right = table.pairs.T
    ratios = np.empty_like(table.values)
    for rows in table.portions():
        cells = _cells_of(table, rows)
        both_stay = table.log_factors(cells.stay[left], cells.stay[right])
        both_move = table.log_factors(cells.move[left], cells.move[right])
        astride = table.log_factors(cells.stay[left], cells.move[right])
        steps = [
            (0 * left, both_move),
            (left + 1, astride - both_move),
            (right + 1, both_stay - astride),
        ]
        by_pairs = _from_places_on(steps, table.n_columns)
        behind = np.cumsum(cells.log_stay[::-1], axis=0)[::-1]
        moved_behind = np.cumsum(cells.log_move[::-1], axis=0)[::-1]
        by_margins = moved_behind - behind
        ratios[:, rows] = by_pairs + by_margins - both_stay.sum(axis=0)
    return ratios


def _ratios_of_shifts_from_the_start(table: RowTable) -> Numbers:
    """(n_columns, n_rows): of rows whose first column is empty, shifted up to each column.

    Now pairs left of that column move, and those that it belongs to are lost.
    """
    left, right = table.pairs.T
    ratios = np.empty_like(table.values)
    for rows in table.portions():
        cells = _cells_of(table, rows)
        both_stay = table.log_factors(cells.stay[left], cells.stay[right])
        both_move = table.log_factors(cells.move[left], cells.move[right])
        astride = table.log_factors(cells.move[left], cells.stay[right])
        changes = [(0 * left, both_stay), (left, -both_stay), (left + 1, astride)]
        changes += [(right, -astride), (right + 1, both_move)]
        by_pairs = _from_places_on(changes, table.n_columns)
        before = np.cumsum(cells.log_move, axis=0) - cells.log_move
        by_margins = before - np.cumsum(cells.log_stay, axis=0)
        ratios[:, rows] = by_pairs + by_margins - both_stay.sum(axis=0)
    return ratios


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """What columns would be by their own cells, and by the next ones: (n_columns, n_rows) all."""

    stay: Numbers  # standardised
    move: Numbers
    log_stay: Numbers  # log p
    log_move: Numbers


def _cells_of(table: RowTable, rows: slice) -> _Cells:
    own = table.values[:, rows]
    nothing = np.zeros_like(own[:1])
    following = np.vstack([own[1:], nothing])
    every = slice(None)
    return _Cells(
        stay=table.standardised(own, every),
        move=table.standardised(following, every),
        log_stay=table.log_margins(own, every),
        log_move=table.log_margins(following, every),
    )


def _from_places_on(changes: list[tuple[IntArray, Numbers]], n_places: int) -> Numbers:
    """(n_places, n_rows): sums of terms, (n_terms, n_rows), that count from their places on."""
    total = np.zeros((n_places + 1, changes[0][1].shape[1]), np.float32)
    for places, terms in changes:
        ones = (np.ones(len(places), np.float32), (places, np.arange(len(places))))
        total += csr_array(ones, shape=(n_places + 1, len(places))) @ terms
    return np.asarray(np.cumsum(total, axis=0)[:n_places])


def _judge_shift(table: RowTable, shift: _Shift, explained: BoolArray) -> tuple[float, BoolArray]:
    """Its p-value, and which rows are shifted."""
    shifted = np.zeros(table.n_rows, dtype=bool)
    is_empty = table.is_missing[shift.first] & ~explained
    group = table.some_rows(is_empty)
    tells = tells_the_last(_stories_of_shift(group, shift))
    if tells.sum() < FEWEST_ROWS:
        return 1.0, shifted
    rest = table.some_rows(~explained)
    rest.values[shift.first] = 0  # so that the group is compared with its like
    rest.values[_suspect_cells(group.some_rows(tells), shift)] = 0
    stories = _stories_of_shift(rest, shift)
    is_group = is_empty[~explained]
    is_odd = stories[2] > stories[0] + 1
    verdict = judge(stories[:, is_group], is_odd, is_group)
    shifted[is_empty] = verdict.tells
    return verdict.p_value, shifted


def _stories_of_shift(table: RowTable, shift: _Shift) -> FloatArray:
    """(3, n_rows): log likelihoods of values as they stand, of values that have nothing to do with
    each other, and of shifted ones.
    """
    as_is, by_margins = _log_likelihoods(table, np.arange(table.n_columns))
    moved, _ = _log_likelihoods(table, shift.sources(table.n_columns))
    return np.stack([as_is, by_margins, moved]).astype(np.float64)


def _log_likelihoods(table: RowTable, sources: IntArray) -> tuple[Numbers, Numbers]:
    """(n_rows,) both: of rows whose cells `sources` hold the values of the columns in turn, and
    the part of it that is due to margins.
    """
    left, right = table.pairs.T
    nothing = np.zeros_like(table.values[:1])
    values = np.vstack([table.values, nothing])[sources]
    by_margins = table.log_margins(values, slice(None)).sum(axis=0)
    z = table.standardised(values, slice(None))
    by_pairs = table.log_factors(z[left], z[right]).sum(axis=0)
    return by_margins + by_pairs, by_margins


def _suspect_cells(shifted: RowTable, shift: _Shift) -> IntArray:
    """Cells whose margins speak most for a shift of these rows, and which it must do without: that
    their values decide on whether the other column is missing would explain them as well.
    """
    cells = np.arange(shift.first + 1, shift.last + 1)
    values = shifted.values[cells]
    gains = shifted.log_margins(values, cells - 1) - shifted.log_margins(values, cells)
    by_cell = gains.mean(axis=1)
    n_cells = min(_SUSPECT_CELLS, (len(cells) + 1) // 2)
    foremost = np.argsort(-by_cell, kind="stable")[:n_cells]
    return cells[foremost[by_cell[foremost] > _SUSPECT_GAIN]]


def _words_of_shift(shift: _Shift, names: Names, shifted: BoolArray, p_value: float) -> Finding:
    in_order = names[::-1] if shift.is_mirrored else names
    n_rows = int(shifted.sum())
    cells = range(shift.first + 1, shift.last + 1)
    alike = [f"'{in_order[cell]}' behaves like '{in_order[cell - 1]}' elsewhere" for cell in cells]
    listed = "".join(f", '{in_order[cell]}' like '{in_order[cell - 1]}'" for cell in cells[1:2])
    more = f", and so on up to '{in_order[shift.last]}'" if len(cells) > 2 else ""
    words = (
        f"in {n_rows} rows where '{in_order[shift.first]}' is empty the values look shifted by one "
        f"column: {alike[0]}{listed}{more}"
    )
    advice = "move them back, or leave these rows out"
    columns = tuple(in_order[place] for place in range(shift.first, shift.last + 1))
    return Finding("shifted", columns, n_rows, p_value, words, advice)
