r"""Losses of y = s_i \sum_j J_ij s_j, by which a spin's couplings are fitted to all others.

The equations of state know a loss by its proximal operator: \hat y minimises
l(\hat y) + (\hat y - y)^2 / (2 \chi), which is what fitting does to the field y of one sample.
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit, wrightomega

from isingkit.arrays import FloatArray

_MOST_STEPS = 100  # of Newton's method: a dozen are usual
_SMALL_STEP = 1e-13  # relative


class Loss(ABC):
    """A convex loss l(y)."""

    name: str
    falls_for_ever: bool  # so that without a penalty it may have no minimum

    @abstractmethod
    def slope(self, y: FloatArray) -> FloatArray:
        """l'(y)."""

    @abstractmethod
    def curvature(self, y: FloatArray) -> FloatArray:
        """l''(y)."""

    @abstractmethod
    def fitted_slope(self, y: FloatArray, chi: float) -> tuple[FloatArray, FloatArray]:
        r"""l'(\hat y), and its derivative by y, which is l'' / (1 + \chi l'') at \hat y."""


class Squares(Loss):
    """(1 - y)^2: least squares."""

    name = "squares"
    falls_for_ever = False

    def slope(self, y: FloatArray) -> FloatArray:
        return 2 * (y - 1)

    def curvature(self, y: FloatArray) -> FloatArray:
        return np.full_like(y, 2.0)

    def fitted_slope(self, y: FloatArray, chi: float) -> tuple[FloatArray, FloatArray]:
        shrunk = 2 / (1 + 2 * chi)
        return shrunk * (y - 1), np.full_like(y, shrunk)


class Logistic(Loss):
    """log(1 + exp(-2 y)): pseudolikelihood."""

    name = "pseudolikelihood"
    falls_for_ever = True

    def slope(self, y: FloatArray) -> FloatArray:
        return np.asarray(-2 * expit(-2 * y))

    def curvature(self, y: FloatArray) -> FloatArray:
        return np.asarray(4 * expit(-2 * y) * expit(2 * y))

    def fitted_slope(self, y: FloatArray, chi: float) -> tuple[FloatArray, FloatArray]:
        # the excess x - y - 2 chi expit(-2 x) grows with x, is concave above 0 and convex below:
        # started at 0, or closer on the same side, Newton's steps never overshoot
        x = np.where(y > -chi, np.maximum(y, 0.0), np.minimum(y + 2 * chi, 0.0))
        for _ in range(_MOST_STEPS):
            excess = x - y + chi * self.slope(x)
            step = excess / (1 + chi * self.curvature(x))
            x = x - step
            if np.all(np.abs(step) <= _SMALL_STEP * (1 + np.abs(x))):
                break
        curvature = self.curvature(x)
        return self.slope(x), curvature / (1 + chi * curvature)


class Exponential(Loss):
    """exp(-y): interaction screening."""

    name = "screening"
    falls_for_ever = True

    def slope(self, y: FloatArray) -> FloatArray:
        return -np.exp(-y)

    def curvature(self, y: FloatArray) -> FloatArray:
        return np.exp(-y)

    def fitted_slope(self, y: FloatArray, chi: float) -> tuple[FloatArray, FloatArray]:
        # \hat y - y = \chi exp(-\hat y) is Lambert's W of \chi exp(-y)
        moved = np.real(wrightomega(np.log(chi) - y))
        return -moved / chi, moved / (1 + moved) / chi
