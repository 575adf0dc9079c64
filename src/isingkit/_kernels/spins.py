"""One quick look at a large table of small integers."""

import numpy as np
from numba import njit

from isingkit._kernels.flags import KERNEL

MINUS = 1
ZERO = 2
PLUS = 4
OTHER = 8


@njit(**KERNEL)
def values_seen(start, stop, values):
    """For each column which of -1, 0, +1 and other values occur in rows start to stop, as bits
    MINUS, ZERO, PLUS, OTHER.

    values: (n_samples, n_spins) int8
    """
    seen = np.zeros(values.shape[1], np.uint8)
    for m in range(start, stop):
        row = values[m]
        for j in range(len(row)):
            v = row[j]
            seen[j] |= (
                np.uint8(MINUS)
                if v == -1
                else np.uint8(ZERO)
                if v == 0
                else np.uint8(PLUS)
                if v == 1
                else np.uint8(OTHER)
            )
    return seen
