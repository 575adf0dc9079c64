"""Arrays that kernels work in: numba compiles np.empty anew for every way it is called."""

import numpy as np
from numba import njit

from isingkit._kernels.flags import PART


@njit(**PART)
def numbers(n):
    """(n,) float64, not set."""
    return np.empty(n)


@njit(**PART)
def whole_numbers(n):
    """(n,) int64, not set."""
    return np.empty(n, np.int64)


@njit(**PART)
def matrix(n_rows, n_columns):
    """(n_rows, n_columns) float64, not set."""
    return np.empty((n_rows, n_columns))


@njit(**PART)
def fill(values, value):
    """values: (n,), overwritten with one value."""
    for k in range(len(values)):
        values[k] = value
