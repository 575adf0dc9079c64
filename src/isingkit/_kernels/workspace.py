"""Arrays that kernels work in: numba compiles np.empty anew for every way it is called."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath=False)
def numbers(n):
    """(n,) float64, not set."""
    return np.empty(n)


@njit(cache=True, nogil=True, fastmath=False)
def whole_numbers(n):
    """(n,) int64, not set."""
    return np.empty(n, np.int64)


@njit(cache=True, nogil=True, fastmath=False)
def matrix(n_rows, n_columns):
    """(n_rows, n_columns) float64, not set."""
    return np.empty((n_rows, n_columns))


@njit(cache=True, nogil=True, fastmath=False)
def fill(values, value):
    """values: (n,), overwritten with one value."""
    for k in range(len(values)):
        values[k] = value
