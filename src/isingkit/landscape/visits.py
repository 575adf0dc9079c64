"""Visits: in which basins rows of data lie, and how they go from one to the next."""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """Rows of data in a landscape."""

    energies: FloatArray  # (n_rows,): NaN where values are missing
    basins: IntArray  # (n_rows,): the place of the minimum; -1 where values are missing
    shares: FloatArray  # (n_minima,): of the weight of complete rows
    # (n, 3): a basin, that of the next row, and how often; None where rows are counts of patterns
    # and have no order
    moves: IntArray | None
    stays: FloatArray | None  # (n_minima,): mean number of rows until a basin is left

    @property
    def transitions(self) -> IntArray | None:
        """(n_minima, n_minima): how often the next row lies in the basin of the column."""
        if self.moves is None:
            return None
        found = np.zeros((len(self.shares), len(self.shares)), dtype=np.int64)
        before, after, times = self.moves.T
        found[before, after] = times
        return found


def visits_of(
    energies: FloatArray,
    basins: IntArray,
    weights: FloatArray,
    n_minima: int,
    is_next: BoolArray | None,
) -> Visits:
    """Visits of rows.

    weights: (n_rows,)     is_next: (n_rows - 1,): whether a row and the one after it belong
    together; None where rows have no order
    """
    inside = basins >= 0
    totals = np.bincount(basins[inside], weights[inside], minlength=n_minima)
    shares = totals / max(float(totals.sum()), 1e-300)
    if is_next is None:
        return Visits(energies, basins, shares, None, None)
    follows = is_next & inside[:-1] & inside[1:]
    pairs = np.stack([basins[:-1][follows], basins[1:][follows]], axis=1)
    found, times = np.unique(pairs, axis=0, return_counts=True)
    moves = np.column_stack([found, times]).astype(np.int64)
    n_rows = np.bincount(basins[inside], minlength=n_minima)
    stayed = moves[:, 0] == moves[:, 1]
    n_visits = n_rows.copy()
    n_visits[moves[stayed, 0]] -= moves[stayed, 2]
    with np.errstate(invalid="ignore"):
        stays = n_rows / n_visits  # NaN where no row is
    return Visits(energies, basins, shares, moves, stays)
