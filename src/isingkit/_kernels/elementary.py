"""Exponentials and what comes of them, written so that LLVM makes vectors of loops over them;
numba's own are calls, one by one.

Callers need error_model="numpy" (a division that may raise is no vector) and fastmath={"contract"},
with "reassoc" where they sum.
"""

import numpy as np
from numba import njit

from isingkit._kernels.flags import CACHE, VECTOR_PART

# added to a number and taken off again, it rounds; in between, the last bits hold the whole number
_ROUND = 1.5 * 2.0**52
_LOG2_HIGH = 0.693147180369123816490  # has zeros at its end
_LOG2_LOW = 1.90821492927058770002e-10
_MOST = 708.0  # exponents beyond count as this
_FRACTION = (1 << 52) - 1  # bits of a float's fraction
_OF_ONE = 1023 << 52  # and of the numbers 1 and 2^52
_OF_2_TO_52 = 1075 << 52


@njit(cache=CACHE, nogil=True, inline="always", error_model="numpy", fastmath={"contract"})
def exp(x):
    """e^x to 2 units in the last place: 2^n times the Taylor series of the rest, which is within
    log(2) / 2 of 0.
    """
    x = x if x > -_MOST else -_MOST
    x = x if x < _MOST else _MOST
    shifted = np.float64(x * 1.4426950408889634 + _ROUND)
    n = shifted - _ROUND
    rest = (x - n * _LOG2_HIGH) - n * _LOG2_LOW
    series = 1 / 6227020800.0
    series = series * rest + 1 / 479001600.0
    series = series * rest + 1 / 39916800.0
    series = series * rest + 1 / 3628800.0
    series = series * rest + 1 / 362880.0
    series = series * rest + 1 / 40320.0
    series = series * rest + 1 / 5040.0
    series = series * rest + 1 / 720.0
    series = series * rest + 1 / 120.0
    series = series * rest + 1 / 24.0
    series = series * rest + 1 / 6.0
    series = series * rest + 0.5
    series = series * rest + 1.0
    series = series * rest + 1.0
    return series * np.int64((shifted.view(np.int64) + 1023) << 52).view(np.float64)


@njit(cache=CACHE, nogil=True, inline="always", error_model="numpy", fastmath={"contract"})
def log1p_of_share(u):
    """log(1 + u) for u from 0 to 1, to 2 units in the last place: 2 artanh(y), y = u / (2 + u) at
    most a third.
    """
    y = u / (2 + u)
    square = y * y
    series = 1 / 33.0
    series = series * square + 1 / 31.0
    series = series * square + 1 / 29.0
    series = series * square + 1 / 27.0
    series = series * square + 1 / 25.0
    series = series * square + 1 / 23.0
    series = series * square + 1 / 21.0
    series = series * square + 1 / 19.0
    series = series * square + 1 / 17.0
    series = series * square + 1 / 15.0
    series = series * square + 1 / 13.0
    series = series * square + 1 / 11.0
    series = series * square + 1 / 9.0
    series = series * square + 1 / 7.0
    series = series * square + 1 / 5.0
    series = series * square + 1 / 3.0
    return 2 * (y + y * square * series)


@njit(cache=CACHE, nogil=True, inline="always", error_model="numpy", fastmath={"contract"})
def log(x):
    """log(x) of a positive number, within 2e-16 or two units in the last place: x = 2^n (1 + u)."""
    bits = np.float64(x).view(np.int64)
    n = np.int64((bits >> 52) | _OF_2_TO_52).view(np.float64) - (2.0**52 + 1023)
    u = np.int64((bits & _FRACTION) | _OF_ONE).view(np.float64) - 1
    return n * _LOG2_HIGH + (log1p_of_share(u) + n * _LOG2_LOW)


@njit(cache=CACHE, nogil=True, inline="always", error_model="numpy", fastmath={"contract"})
def tanh(x):
    """tanh(x), within 2e-16 of it."""
    small = exp(-2 * abs(x))
    size = (1 - small) / (1 + small)
    return size if x > 0 else -size


@njit(**VECTOR_PART)
def take_tanh(values, factor):
    """values: (n,), overwritten with tanh(factor x values)."""
    for k in range(len(values)):
        values[k] = tanh(factor * values[k])
