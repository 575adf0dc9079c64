"""Intervals of couplings that are looked at only because their edges were found."""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri

from isingkit.estimators.normal import Matrix

_CONFIDENCE = 0.95
_HALVINGS = 60


def intervals_of_found(couplings: Matrix, errors: Matrix, margins: Matrix) -> Matrix:
    """(n_edges, 2): 95 percent intervals of couplings, given that their edges were found.

    margins: (n_edges,), by how many standard errors less they would not have been found

    Say x, a coupling over its error, is normal about mu and seen only above a cut. The interval has those mu for which x lies in
    the shortest region with 95 percent of the chance of all that is seen (Zhong and Prentice, 2008). Far above the cut this is
    x +- 1.96; near it x may be luck, and the interval reaches down, at most to 0: the sign is for the test to say.
    """
    sizes = np.abs(couplings) / errors
    cuts = sizes - np.maximum(margins, 0.0)

    def beyond(mu: Matrix) -> Matrix:
        """Chance to each side of the shortest region, where that does not reach down to the cut."""
        return np.asarray((1 - _CONFIDENCE * ndtr(mu - cuts)) / 2)

    def upper_end(mu: Matrix) -> Matrix:
        return np.asarray(mu - ndtri(np.minimum(beyond(mu), (1 - _CONFIDENCE) * ndtr(mu - cuts))))

    least = _rising_to(sizes, upper_end, np.zeros_like(sizes), sizes)
    most = _rising_to(sizes, lambda mu: mu + ndtri(beyond(mu)), sizes, sizes + ndtri((1 + _CONFIDENCE) / 2))
    ends = np.column_stack([least, most]) * errors[:, None]
    return np.where(couplings[:, None] < 0, 0.0 - ends[:, ::-1], ends)


def _rising_to(values: Matrix, function: Callable[[Matrix], Matrix], low: Matrix, high: Matrix) -> Matrix:
    """Where a rising function reaches values, between low and high; low where it is above them already there."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = function(middle) < values
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low
