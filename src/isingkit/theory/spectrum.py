"""Spectra of inverse correlation matrices: what the theory needs to know of a tree-like teacher.

H, the inverse correlation matrix, is sparse on a tree: the Bethe matrix. Every formula of the
theory is a trace of a function of 1 + k H, where k = 2 lambda / kappa is the effective ridge.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotConvergedError, SettingError, require_number

STRONGEST = 10.0  # of couplings: 1 - tanh has no digits left beyond
MOST_STEPS = 500  # of Newton's method: a dozen are usual, some fifty where two roots nearly meet


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces, over the number of spins, at an effective ridge k.

    Where k is infinite: the limits of t k, t2 k^2, p k, p2 k^2.
    """

    t: Any  # of (1 + k H)^-1
    t2: Any  # of (1 + k H)^-2
    p: Any  # of H (1 + k H)^-1
    p2: Any  # of H (1 + k H)^-2


def numbers(setting: str, value: object) -> FloatArray:
    """An array of numbers, or a refusal of what is none."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        expected = "a number, or an array of numbers"
        raise SettingError(setting=setting, value=value, expected=expected) from None


def weights_of(effective_ridge: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """1 and k of 1 + k H, or 0 and 1 where k is infinite."""
    k = np.asarray(effective_ridge, dtype=np.float64)
    infinite = np.isinf(k)
    return np.where(infinite, 0.0, 1.0), np.where(infinite, 1.0, k)


def scalar_weights(effective_ridge: float) -> tuple[float, float]:
    """weights_of one effective ridge, as plain numbers."""
    return (0.0, 1.0) if np.isinf(effective_ridge) else (1.0, float(effective_ridge))


class Spectrum(ABC):
    """The eigenvalue distribution rho(eta) of H, known by its traces."""

    @abstractmethod
    def traces(self, effective_ridge: ArrayLike) -> Traces:
        """Traces at one or many effective ridges."""

    @abstractmethod
    def log_trace(self, effective_ridge: float) -> float:
        """(1/N) Tr log(1 + k H)."""

    def g1(self, x: ArrayLike, ridge: float) -> Any:
        r"""G_1(x) = \int d\eta \rho(\eta) / (x + 2 \lambda \eta). [eq:G1-x-def-1]"""
        return self.traces(2 * ridge / np.asarray(x)).t / x

    def g1_slope(self, x: ArrayLike, ridge: float) -> Any:
        """G_1'(x)."""
        points = np.asarray(x)
        return -self.traces(2 * ridge / points).t2 / points**2

    def g2(self, x: float, ridge: float) -> float:
        r"""G_2(x) = \int d\eta \rho(\eta) \log(x + 2 \lambda \eta), whose slope is G_1."""
        return float(np.log(x) + self.log_trace(2 * ridge / x))

    def g3(self, x: ArrayLike, ridge: float) -> Any:
        r"""G_3(x) = \int d\eta \rho(\eta) \eta / (x + 2 \lambda \eta). [eq:G3-x]"""
        return self.traces(2 * ridge / np.asarray(x)).p / x

    def g3_slope(self, x: ArrayLike, ridge: float) -> Any:
        """G_3'(x)."""
        points = np.asarray(x)
        return -self.traces(2 * ridge / points).p2 / points**2

    def inverse_g1(self, y: float, ridge: float) -> float:
        r"""x > 0 with G_1(x) = y; on a tree there is one for 0 < y < 1 / (2 \lambda).

        In k = 2 lambda / x it reads k t(k) = 2 lambda y; the left is concave, so Newton's steps
        from the left never overshoot.
        """
        require_number("y", y, above=0)
        require_number("ridge", ridge, at_least=0)
        if ridge == 0:
            return 1 / y
        wanted = 2 * ridge * y
        top = float(self.traces(np.inf).t)
        if wanted >= top:
            expected = f"below {top / (2 * ridge):g}, the limit of G1 for x to 0"
            raise SettingError(setting="y", value=y, expected=expected)
        k = wanted
        for _ in range(MOST_STEPS):
            traces = self.traces(k)
            missing = wanted - k * traces.t
            if missing <= 4e-16 * wanted:
                return float(2 * ridge / k)
            k += missing / traces.t2
        raise NotConvergedError(what="the inverse of G1", residual=float(missing))


def traces_one_by_one(effective_ridge: ArrayLike, traces_at: Callable[[float], Traces]) -> Traces:
    """Traces at each of an array of effective ridges, from a function of one of them."""
    ridges = np.asarray(effective_ridge, dtype=np.float64)
    found = np.empty((4, ridges.size))
    for place, ridge in enumerate(ridges.ravel()):
        traces = traces_at(float(ridge))
        found[:, place] = (traces.t, traces.t2, traces.p, traces.p2)
    t, t2, p, p2 = found.reshape(4, *ridges.shape)
    return Traces(t, t2, p, p2)


def effective_ridge(
    spectrum: Spectrum, samples_per_spin: ArrayLike, ridge: ArrayLike
) -> FloatArray:
    r"""k = 2 \lambda / \kappa, the one unknown of the equations of state. [eq:q and a equation]

    \kappa = 2 \alpha / (1 + 2 G_1(\kappa)) is k (\alpha - t(k)) = \lambda. The left is convex in k
    and grows beyond the root: Newton's steps from the right never overshoot. They start at
    k = (\lambda + 1) / \alpha, for k t <= 1.
    """
    alpha = np.asarray(samples_per_spin, dtype=np.float64)
    penalty = np.asarray(ridge, dtype=np.float64)
    alpha, penalty = np.broadcast_arrays(alpha, penalty)
    known = (penalty == 0) | np.isinf(penalty)
    wanted = np.where(known, 1.0, penalty)
    top = spectrum.traces(np.inf).t  # of k t: 1 on a tree
    k = (wanted + top) / alpha
    done = known
    for _ in range(MOST_STEPS):
        margin, slope = margins(alpha, k, spectrum.traces(k))
        step = (k * margin - wanted) / slope
        k = np.where(done, k, k - step)
        done = done | (step <= 1e-14 * k)  # steps are positive until only rounding is left of them
        if done.all():
            return np.where(known, penalty, k)
    residual = np.max(np.abs(step / k)[~done])
    raise NotConvergedError(what="the effective ridge", residual=float(residual))


def margins(alpha: Any, k: Any, traces: Traces) -> tuple[Any, Any]:
    """alpha - t and alpha - t2 at finite k, without loss of digits above alpha = 1.

    There both t may be close to 1: t = 1 - k p and t2 = t - k p2.
    """
    at_least_one = alpha >= 1
    above_one = np.maximum(alpha - 1, 0.0) + k * traces.p
    first = np.where(at_least_one, above_one, alpha - traces.t)
    second = np.where(at_least_one, above_one + k * traces.p2, alpha - traces.t2)
    return first, second
