"""Heat-bath sweeps over the missing cells of rows, given those that are there."""

import math

from numba import njit

from isingkit._kernels.flags import KERNEL
from isingkit._kernels.workspace import numbers
from isingkit._kernels.xoshiro import next_uniform


@njit(**KERNEL)
def impute_rows(start, stop, rows, missing, network, n_sweeps, streams, spins):
    """Draw the missing cells of incomplete rows start to stop, n_sweeps times each in turn.

    rows: (n_incomplete,) int64: their places in spins
    missing: (ends: (n_incomplete + 1,), cells: the missing spins of one row after the other) int64
    network: (indptr, indices, couplings, fields, shifts), couplings alike in both directions;
    shifts: (n_spins, n_rows) of fields, or (n_spins, 0) where all rows have the same
    streams: (n_incomplete, 4) uint64, a generator a row
    spins: (n_spins, n_rows) float64, whose missing cells are overwritten
    """
    ends, cells = missing
    indptr, indices, couplings, fields, shifts = network
    n_spins = len(fields)
    row = numbers(n_spins)  # cells of a row lie far apart in spins
    for place in range(start, stop):
        r = rows[place]
        stream = streams[place]
        for i in range(n_spins):
            row[i] = spins[i, r]
        for _ in range(n_sweeps):
            for k in range(ends[place], ends[place + 1]):
                i = cells[k]
                field = fields[i]
                if shifts.shape[1] > 0:
                    field += shifts[i, r]
                for at in range(indptr[i], indptr[i + 1]):
                    field += couplings[at] * row[indices[at]]
                up = 1 / (1 + math.exp(-2 * field))
                row[i] = 1.0 if next_uniform(stream, 1) < up else -1.0
        for k in range(ends[place], ends[place + 1]):
            spins[cells[k], r] = row[cells[k]]
