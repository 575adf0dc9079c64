"""Where pseudolikelihood without a penalty has no maximum, for there are too few samples."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from isingkit.exceptions import require_number
from isingkit.theory.generations import neighbour_sums
from isingkit.theory.regular import RegularSpectrum

_LARGEST = 50.0  # multiple of the neighbours' sum, in units of the noise


def separation_limit(degree: int, coupling: float) -> float:
    r"""Samples per spin below which pseudolikelihood without a penalty has no maximum.

    Nor has interaction screening a minimum: with fewer samples some combination of the other spins
    predicts the spin without exception, and grows for ever. On random regular graphs of many spins

        1 / \alpha^* = \min_t E[(Z - t \sum_j s_0 s_j)_+^2],

    Z a Gaussian number for all spins that are no neighbours. It is 2 without couplings, and grows
    with them, for neighbours help to predict. Among a few hundred spins the change is not
    sharp: between 0.85 and 1.15 times the limit some spins have a maximum and some have none.

    Parameters
    ----------
    degree
        c.
    coupling
        K, with (c - 1) tanh^2 K < 1.

    Examples
    --------
    >>> from isingkit import theory
    >>> round(theory.separation_limit(degree=3, coupling=0.4), 3)
    2.687
    >>> round(theory.separation_limit(degree=3, coupling=0), 3)
    2.0
    """
    require_number("coupling", coupling)
    RegularSpectrum(degree, coupling)
    sums, probability = neighbour_sums(degree, float(np.tanh(abs(coupling))))

    def left(t: float) -> float:
        mean = -t * sums
        density = np.exp(-(mean**2) / 2) / np.sqrt(2 * np.pi)
        squares = (1 + mean**2) * ndtr(mean) + mean * density  # E[(Z + mean)_+^2]
        return float(probability @ squares)

    options = {"xatol": 1e-9}
    found = minimize_scalar(left, bounds=(0.0, _LARGEST), method="bounded", options=options)
    return float(1 / min(found.fun, left(0.0)))
