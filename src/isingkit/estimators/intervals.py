"""Intervals of couplings that are looked at only because their edges were found."""

from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, ndtri, ndtri_exp

from isingkit.arrays import FloatArray

_CONFIDENCE = 0.95
_HALVINGS = 60


def intervals_of_found(
    couplings: FloatArray, errors: FloatArray, margins: FloatArray
) -> FloatArray:
    """(n_edges, 2): 95 percent intervals of couplings, given that their edges were found.

    margins: (n_edges,), by how many standard errors less they would not have been found

    Say x, a coupling over its error, is normal about mu and seen only above a cut. The interval has
    those mu for which x lies in the shortest region with 95 percent of the probability of all that
    is seen (as Zhong and Prentice, 2008, but with a cut on one side). Far above the cut this is
    x +- 1.96; near it x may be luck, and the interval reaches down, at most to 0, where we end it:
    the sign is for the test to say.
    """
    sizes = np.abs(couplings) / errors
    cuts = sizes - np.maximum(margins, 0.0)

    def beyond(mu: FloatArray) -> FloatArray:
        """Logarithm of the probability to each side of the shortest region, above the cut."""
        seen = np.exp(log_ndtr(mu - cuts))
        return np.asarray(np.log1p(-_CONFIDENCE * seen) - np.log(2))

    def lower_end(mu: FloatArray) -> FloatArray:
        return np.asarray(mu + ndtri_exp(beyond(mu)))

    def upper_end(mu: FloatArray) -> FloatArray:
        all_above = np.log(1 - _CONFIDENCE) + log_ndtr(mu - cuts)
        return np.asarray(mu - ndtri_exp(np.minimum(beyond(mu), all_above)))

    least = _rising_to(sizes, upper_end, np.zeros_like(sizes), sizes)
    most = _rising_to(sizes, lower_end, sizes, sizes + ndtri((1 + _CONFIDENCE) / 2))
    ends = np.column_stack([least, most]) * errors[:, None]
    return np.where(couplings[:, None] < 0, 0.0 - ends[:, ::-1], ends)


def _rising_to(
    values: FloatArray,
    function: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Where a rising function reaches values, between low and high; low where it is above them
    already there.
    """
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = function(middle) < values
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    return low
