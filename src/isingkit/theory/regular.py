"""The spectrum of random regular graphs, in closed form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotConvergedError, OrderedPhaseError, SettingError
from isingkit.theory.spectrum import STRONGEST, Spectrum, Traces, numbers, weights_of

FEWEST_NODES = 16
MOST_NODES = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class RegularSpectrum(Spectrum):
    r"""Spectrum of random regular graphs: Kesten's and McKay's law, shifted and scaled.
    [eq:EVD-nita-results]

    H = h - w A with h = c / (1 - \tanh^2 K) - c + 1, w = \tanh K / (1 - \tanh^2 K) and A the signed
    adjacency matrix. Traces are in closed form and broadcast over arrays of degrees and couplings.

    Parameters
    ----------
    degree
        c, at least 1.
    coupling
        K, of either sign, with (c - 1) tanh^2 K < 1.

    Examples
    --------
    >>> from isingkit import theory
    >>> spectrum = theory.RegularSpectrum(degree=3, coupling=0.4)
    >>> [round(float(edge), 4) for edge in spectrum.support]
    [0.2502, 2.7621]
    >>> round(spectrum.integrate(lambda eta: 1 / eta), 12)
    1.0
    """

    degree: Any
    coupling: Any

    def __post_init__(self) -> None:
        degree = np.asarray(self.degree)
        coupling = numbers("coupling", self.coupling)
        if not (np.issubdtype(degree.dtype, np.integer) and np.all(degree >= 1)):
            raise SettingError(setting="degree", value=self.degree, expected="a whole number >= 1")
        if not np.all(np.abs(coupling) <= STRONGEST):
            expected = f"a finite number, at most {STRONGEST:g} in size"
            raise SettingError(setting="coupling", value=self.coupling, expected=expected)
        growth = float(np.max((degree - 1) * np.tanh(coupling) ** 2))
        if growth >= 1:
            raise OrderedPhaseError(growth=growth, strongest=_strongest(int(np.max(degree))))
        object.__setattr__(self, "degree", degree.astype(np.int64)[()])
        object.__setattr__(self, "coupling", coupling[()])

    @property
    def centre(self) -> Any:
        """h: every diagonal entry of H, and the mean of rho. [eq:ivnerse-correlation-mat-result]"""
        return 1 + self.degree * np.sinh(self.coupling) ** 2

    @property
    def weight(self) -> Any:
        """w: minus the off-diagonal entries of H; the paper's K_1 of the spectrum."""
        return np.sinh(2 * np.abs(self.coupling)) / 2

    @property
    def support(self) -> tuple[Any, Any]:
        """The edges of rho, without loss of digits near the critical point."""
        theta = np.tanh(np.abs(self.coupling))
        root = np.sqrt(np.asarray(self.degree) - 1) * theta
        scale = np.cosh(self.coupling) ** 2
        low = (1 - root) ** 2 * scale
        high = (1 + root) ** 2 * scale
        return low, high

    def density(self, eta: ArrayLike) -> FloatArray:
        """rho(eta); zero outside the support. [eq:EVD-nita-results]

        A degree of 1 has two atoms and no density.
        """
        self._require_one_law(above=1)
        eta = np.asarray(eta, dtype=np.float64)
        low, high = self.support
        inside = np.clip((eta - low) * (high - eta), 0.0, None)
        far = (self.weight * self.degree) ** 2 - (self.centre - eta) ** 2
        far = np.where(inside > 0, far, 1.0)
        density = self.degree * np.sqrt(inside) / (2 * np.pi * far)
        return np.asarray(density)

    def integrate(self, function: Callable[[FloatArray], FloatArray]) -> float:
        r"""\int d\eta \rho(\eta) f(\eta) to twelve digits, for f smooth on the support.

        With \eta = h - 2 w \sqrt{c - 1} \cos\phi the square roots at both edges are gone and the
        integrand is periodic: equal steps in \phi converge geometrically. Steps are doubled until
        nothing changes.
        """
        self._require_one_law(above=0)
        if self.degree == 1:
            atoms = np.array([self.centre - self.weight, self.centre + self.weight])
            return float(np.mean(function(atoms)))
        before = np.nan
        n_nodes = FEWEST_NODES
        while n_nodes <= MOST_NODES:
            value = self._midpoint_rule(function, n_nodes)
            change = abs(value - before)
            if change <= 1e-13 * abs(value):
                return value
            before = value
            n_nodes *= 2
        what = "the integral over the spectrum"
        raise NotConvergedError(what=what, residual=change, advice="use weaker couplings")

    def moment(self, order: int) -> float:
        """Mean of eta**order; order -1 is the mean of C's diagonal, which is 1."""
        return self.integrate(lambda eta: eta**order)

    def branch(self, effective_ridge: ArrayLike) -> Any:
        r"""g = [(1 + k H)^-1]_jj on the branch that hangs on one bond.

        g = 1 / (a - (c - 1) u^2 g) with a = 1 + k h, u = k w.
        """
        a, _, root = self._resolved(effective_ridge)
        return 2 / (a + root)

    def traces(self, effective_ridge: ArrayLike) -> Traces:
        """Closed forms in which no digits cancel, from k = 0 to infinity."""
        one, _ = weights_of(effective_ridge)
        a, u, root = self._resolved(effective_ridge)
        c = self.degree
        w = self.weight
        g = 2 / (a + root)
        steepness = 2 * (1 + a / root) / (a + root) ** 2  # -dg/da
        t = 1 / (a - c * u**2 * g)
        t2 = t**2 * (1 + c * u**2 * steepness)
        kept = self.centre - c * u * w * g
        kept_slope = c * one * u * w * steepness
        p2 = t**2 * (kept - kept_slope)
        return Traces(t, t2, t * kept, p2)

    def log_trace(self, effective_ridge: float) -> float:
        return self.integrate(lambda eta: np.log1p(effective_ridge * eta))

    def _midpoint_rule(self, function: Callable[[FloatArray], FloatArray], n_nodes: int) -> float:
        c = int(self.degree)
        phi = np.pi * (np.arange(n_nodes) + 0.5) / n_nodes
        eta = self.centre - 2 * self.weight * np.sqrt(c - 1) * np.cos(phi)
        # both square roots make sin^2; for c = 2 it cancels
        roots = 4 * (c - 1) * np.sin(phi) ** 2
        ratio = roots / ((c - 2) ** 2 + roots)
        return float(np.mean(c / 2 * ratio * function(eta)))

    def _resolved(self, effective_ridge: ArrayLike) -> tuple[Any, Any, Any]:
        """a, u and sqrt(a^2 - 4 (c - 1) u^2), the last from the edges of the support."""
        one, k = weights_of(effective_ridge)
        low, high = self.support
        a = one + k * self.centre
        root = np.sqrt((one + k * low) * (one + k * high))
        return a, k * self.weight, root

    def _require_one_law(self, above: int) -> None:
        if np.ndim(self.degree) or np.ndim(self.coupling) or self.degree <= above:
            expected = f"one whole number > {above}, with one coupling"
            raise SettingError(setting="degree", value=self.degree, expected=expected)


def _strongest(degree: int) -> float | None:
    """The coupling at which the paramagnetic phase ends; None where it never does."""
    return float(np.arctanh(1 / np.sqrt(degree - 1))) if degree > 2 else None
