"""Estimates of both stages as jointly Gaussian numbers, and what is left of them once some are
known to pass a level.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from isingkit.arrays import FloatArray

ROOT_TWO_PI = np.sqrt(2 * np.pi)
_LEAST = 1e-300  # probability by which may be divided


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """A Gaussian number beyond a level: how likely, and its mean and variance there."""

    probability: FloatArray
    mean: FloatArray
    variance: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """Gaussian numbers, by mean and covariance; leading axes are different cases."""

    mean: FloatArray  # (..., n)
    covariance: FloatArray  # (..., n, n)

    def given(self, place: int, mean: FloatArray, variance: FloatArray) -> "Joint":
        """The same numbers where one of them is known to have another mean and variance."""
        own = self.covariance[..., place, place]
        slopes = self.covariance[..., place] / own[..., None]
        moved = np.asarray(mean) - self.mean[..., place]
        lost = own - variance
        products = slopes[..., :, None] * slopes[..., None, :]
        mean_now = self.mean + slopes * moved[..., None]
        covariance = self.covariance - products * lost[..., None, None]
        return Joint(mean_now, covariance)

    def combined(self, coefficients: FloatArray) -> "Joint":
        """Linear combinations: coefficients are (..., n_out, n)."""
        mean = np.einsum("...ij,...j->...i", coefficients, self.mean)
        transposed = np.swapaxes(coefficients, -1, -2)
        return Joint(mean, coefficients @ self.covariance @ transposed)


def tail_above(mean: ArrayLike, std: ArrayLike, level: float) -> Tail:
    """Of a Gaussian number above a level."""
    width = np.asarray(std)
    start = (level - np.asarray(mean)) / width
    probability = ndtr(-start)
    density = np.exp(-(start**2) / 2) / ROOT_TWO_PI
    # far out the ratio tends to start + 1 / start
    ratio = density / np.maximum(probability, _LEAST)
    hazard = np.where(probability > _LEAST, ratio, start)
    variance = 1 + start * hazard - hazard**2
    variance = np.maximum(variance, 0.0)
    return Tail(probability, mean + width * hazard, width**2 * variance)


def tail_below(mean: ArrayLike, std: ArrayLike, level: float) -> Tail:
    """Of a Gaussian number below a level."""
    mirrored = tail_above(-np.asarray(mean), std, -level)
    return Tail(mirrored.probability, -mirrored.mean, mirrored.variance)
