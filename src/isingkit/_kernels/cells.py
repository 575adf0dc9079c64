"""Cells: samples in which the neighbours of a spin are all alike, taken together: regressions then
cost by the cell.
"""

import numpy as np
from numba import njit

# patterns of neighbours there could be, for each sample, beyond which hardly any two samples share
# one
_ROOM = 4


@njit(cache=True, nogil=True, fastmath=False)
def into_cells(design, cell):
    """The design by cells, (1 + n_neighbours, n_cells), from that by samples: ones, and neighbours.

    cell: (n_samples,), overwritten with the cell of each sample; where there are many neighbours,
    each sample is its own
    """
    n, n_samples = len(design) - 1, len(cell)
    if n >= 40 or 1 << n > _ROOM * n_samples:
        for k in range(n_samples):
            cell[k] = k
        return design
    for k in range(n_samples):
        cell[k] = 0
    for a in range(n):
        for k in range(n_samples):
            cell[k] += np.int64(design[a + 1, k] > 0) << a
    place, n_cells = np.full(1 << n, -1), 0
    for k in range(n_samples):
        if place[cell[k]] < 0:
            place[cell[k]] = n_cells
            n_cells += 1
    cells = np.ones((n + 1, n_cells))
    for pattern in range(1 << n):
        if place[pattern] >= 0:
            for a in range(n):
                cells[a + 1, place[pattern]] = 1.0 if pattern >> a & 1 else -1.0
    for k in range(n_samples):
        cell[k] = place[cell[k]]
    return cells


@njit(cache=True, nogil=True, fastmath=False)
def weights_and_sums(own, weights, cell, n_cells):
    """(n_cells,) both: sums of w and of w s over the samples of a cell."""
    totals, sums = np.zeros(n_cells), np.zeros(n_cells)
    for k in range(len(cell)):
        totals[cell[k]] += weights[k]
        sums[cell[k]] += weights[k] * own[k]
    return totals, sums
