"""Spectra of inverse correlation matrices: all that the theory needs to know of a tree-like teacher
as a whole.

H, the inverse correlation matrix, is sparse on a tree: the Bethe matrix. Every formula of the
theory is a trace of a function of 1 + k H, where k is the effective ridge [ERRATA of the paper: k =
2 lambda / kappa].
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from isingkit.arrays import FloatArray
from isingkit.exceptions import (
    NotConvergedError,
    OrderedPhaseError,
    SettingError,
    require_instance,
    require_number,
)
from isingkit.model import IsingModel
from isingkit.theory.phase import require_paramagnetic

STRONGEST = 10.0  # of couplings: 1 - tanh has no digits left beyond
MOST_STEPS = (
    500  # of Newton's method, which needs a dozen, or some fifty where two roots nearly meet
)


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces, over the number of spins, at an effective ridge k. Where k is infinite: the limits of
    t k, t2 k^2, p k, p2 k^2.
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
        raise SettingError(
            setting=setting, value=value, expected="a number, or an array of numbers"
        ) from None


def weights_of(effective_ridge: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """1 and k of 1 + k H, or 0 and 1 where k is infinite."""
    k = np.asarray(effective_ridge, dtype=np.float64)
    infinite = np.isinf(k)
    return np.where(infinite, 0.0, 1.0), np.where(infinite, 1.0, k)


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
        return -self.traces(2 * ridge / np.asarray(x)).t2 / np.asarray(x) ** 2

    def g2(self, x: float, ridge: float) -> float:
        r"""G_2(x) = \int d\eta \rho(\eta) \log(x + 2 \lambda \eta). Its slope is G_1.
        [eq:eNS/n-result-2]
        """
        return float(np.log(x) + self.log_trace(2 * ridge / x))

    def g3(self, x: ArrayLike, ridge: float) -> Any:
        r"""G_3(x) = \int d\eta \rho(\eta) \eta / (x + 2 \lambda \eta). [eq:G3-x]"""
        return self.traces(2 * ridge / np.asarray(x)).p / x

    def g3_slope(self, x: ArrayLike, ridge: float) -> Any:
        """G_3'(x)."""
        return -self.traces(2 * ridge / np.asarray(x)).p2 / np.asarray(x) ** 2

    def inverse_g1(self, y: float, ridge: float) -> float:
        r"""x > 0 with G_1(x) = y; on a tree there is one for 0 < y < 1 / (2 \lambda).
        [eq:fixed-point equation-1]

        In k = 2 lambda / x it reads k t(k) = 2 lambda y; the left is concave, so Newton's steps
        from the left never overshoot.
        """
        require_number("y", y, above=0)
        require_number("ridge", ridge, at_least=0)
        if ridge == 0:
            return 1 / y
        top = float(self.traces(np.inf).t)
        if 2 * ridge * y >= top:
            raise SettingError(
                setting="y",
                value=y,
                expected=f"below {top / (2 * ridge):g}, the limit of G1 for x to 0",
            )
        wanted = k = 2 * ridge * y
        for _ in range(MOST_STEPS):
            traces = self.traces(k)
            missing = wanted - k * traces.t
            if missing <= 4e-16 * wanted:
                return float(2 * ridge / k)
            k += missing / traces.t2
        raise NotConvergedError(what="the inverse of G1", residual=float(missing))


def effective_ridge(
    spectrum: Spectrum, samples_per_spin: ArrayLike, ridge: ArrayLike
) -> FloatArray:
    r"""k = 2 \lambda / \kappa, the one unknown of the equations of state. [eq:q and a equation]

    \kappa = 2 \alpha / (1 + 2 G_1(\kappa)) is k (\alpha - t(k)) = \lambda. The left is convex in k
    and grows beyond the root: Newton's steps from the right never overshoot. They start at k =
    (\lambda + 1) / \alpha, for k t <= 1.
    """
    alpha, penalty = np.broadcast_arrays(
        np.asarray(samples_per_spin, float), np.asarray(ridge, float)
    )
    known = (penalty == 0) | np.isinf(penalty)
    wanted = np.where(known, 1.0, penalty)
    k = (wanted + spectrum.traces(np.inf).t) / alpha  # the trace is 1 on a tree
    done = known
    for _ in range(MOST_STEPS):
        over, slope = margins(alpha, k, spectrum.traces(k))
        step = (k * over - wanted) / slope
        k = np.where(done, k, k - step)
        done = done | (step <= 1e-14 * k)  # the steps are positive until rounding has the last word
        if done.all():
            return np.where(known, penalty, k)
    raise NotConvergedError(
        what="the effective ridge", residual=float(np.max(np.abs(step / k)[~done]))
    )


def margins(alpha: Any, k: Any, traces: Traces) -> tuple[Any, Any]:
    """alpha - t and alpha - t2 at finite k; above alpha = 1, where both t may be close to 1,
    without loss of digits.
    """
    above, less = np.maximum(alpha - 1, 0.0), k * traces.p
    plenty = alpha >= 1
    return np.where(plenty, above + less, alpha - traces.t), np.where(
        plenty, above + less + k * traces.p2, alpha - traces.t2
    )


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
        degree, coupling = np.asarray(self.degree), numbers("coupling", self.coupling)
        if not (np.issubdtype(degree.dtype, np.integer) and np.all(degree >= 1)):
            raise SettingError(setting="degree", value=self.degree, expected="a whole number >= 1")
        if not np.all(np.abs(coupling) <= STRONGEST):
            raise SettingError(
                setting="coupling",
                value=self.coupling,
                expected=f"a finite number, at most {STRONGEST:g} in size",
            )
        growth = float(np.max((degree - 1) * np.tanh(coupling) ** 2))
        if growth >= 1:
            strongest = (
                float(np.arctanh(1 / np.sqrt(np.max(degree) - 1))) if np.max(degree) > 2 else None
            )
            raise OrderedPhaseError(growth=growth, strongest=strongest)
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
        root = np.sqrt(np.asarray(self.degree) - 1) * np.tanh(np.abs(self.coupling))
        scale = np.cosh(self.coupling) ** 2
        return (1 - root) ** 2 * scale, (1 + root) ** 2 * scale

    def density(self, eta: ArrayLike) -> FloatArray:
        """rho(eta); zero outside the support. [eq:EVD-nita-results] A degree of 1 has two atoms and
        no density.
        """
        self._require_one_law(above=1)
        eta = np.asarray(eta, dtype=np.float64)
        low, high = self.support
        inside = np.clip((eta - low) * (high - eta), 0.0, None)
        far = (self.weight * self.degree) ** 2 - (self.centre - eta) ** 2
        return np.where(
            inside > 0,
            self.degree * np.sqrt(inside) / (2 * np.pi * np.where(inside > 0, far, 1.0)),
            0.0,
        )

    def integrate(self, function: Callable[[FloatArray], FloatArray]) -> float:
        r"""\int d\eta \rho(\eta) f(\eta) to twelve digits, for f smooth on the support.

        With \eta = h - 2 w \sqrt{c - 1} \cos\phi the square roots at both edges are gone and the
        integrand is periodic: equal steps in \phi converge geometrically. Steps are doubled until
        nothing changes.
        """
        self._require_one_law(above=0)
        c, before = int(self.degree), np.nan
        if c == 1:
            return float(
                np.mean(function(np.array([self.centre - self.weight, self.centre + self.weight])))
            )
        n = 16
        while n <= 1 << 20:
            phi = np.pi * (np.arange(n) + 0.5) / n
            # both square roots make sin^2; for c = 2 it cancels
            ratio = 4 * (c - 1) * np.sin(phi) ** 2 / ((c - 2) ** 2 + 4 * (c - 1) * np.sin(phi) ** 2)
            eta = self.centre - 2 * self.weight * np.sqrt(c - 1) * np.cos(phi)
            value = float(np.mean(c / 2 * ratio * function(eta)))
            change, before, n = abs(value - before), value, 2 * n
            if change <= 1e-13 * abs(value):
                return value
        raise NotConvergedError(
            what="the integral over the spectrum", residual=change, advice="use weaker couplings"
        )

    def moment(self, order: int) -> float:
        """Mean of eta**order; order -1 is the mean of C's diagonal, which is 1."""
        return self.integrate(lambda eta: eta**order)

    def branch(self, effective_ridge: ArrayLike) -> Any:
        r"""g = [(1 + k H)^-1]_jj on the branch that hangs on one bond: g = 1 / (a - (c - 1) u^2 g),
        a = 1 + k h, u = k w.
        """
        a, _, root = self._resolved(effective_ridge)
        return 2 / (a + root)

    def traces(self, effective_ridge: ArrayLike) -> Traces:
        """Closed forms in which no digits cancel, from k = 0 to infinity."""
        one, _ = weights_of(effective_ridge)
        a, u, root = self._resolved(effective_ridge)
        c, h = self.degree, self.centre
        g = 2 / (a + root)
        steep = 2 * (1 + a / root) / (a + root) ** 2  # -dg/da
        t = 1 / (a - c * u**2 * g)
        kept = h - c * u * self.weight * g
        return Traces(
            t,
            t**2 * (1 + c * u**2 * steep),
            t * kept,
            t**2 * (kept - c * one * u * self.weight * steep),
        )

    def log_trace(self, effective_ridge: float) -> float:
        return self.integrate(lambda eta: np.log1p(effective_ridge * eta))

    def _resolved(self, effective_ridge: ArrayLike) -> tuple[Any, Any, Any]:
        one, k = weights_of(effective_ridge)
        low, high = self.support
        return one + k * self.centre, k * self.weight, np.sqrt((one + k * low) * (one + k * high))

    def _require_one_law(self, above: int) -> None:
        if np.ndim(self.degree) or np.ndim(self.coupling) or self.degree <= above:
            raise SettingError(
                setting="degree",
                value=self.degree,
                expected=f"one whole number > {above}, with one coupling",
            )


def bethe_matrix(model: IsingModel) -> scipy.sparse.csr_array:
    r"""H of a tree-like model: H_ii = 1 + \sum_k \sinh^2 J_ik, H_ij = -\sinh(2 J_ij) / 2.
    [eq:C0-inverse-matrix-1-v2]

    It is the inverse of the correlation matrix where the graph is a tree, and Bethe's approximation
    to it elsewhere.

    Parameters
    ----------
    model
        An IsingModel without fields.

    Examples
    --------
    >>> import numpy as np, isingkit as ik
    >>> chain = ik.IsingModel([[0, 0.5, 0], [0.5, 0, 0.3], [0, 0.3, 0]])
    >>> C = np.linalg.inv(ik.theory.bethe_matrix(chain).toarray())
    >>> bool(np.isclose(C[0, 2], np.tanh(0.5) * np.tanh(0.3)))
    True
    """
    require_instance("model", model, IsingModel, "an IsingModel")
    if model.fields.any():
        raise SettingError(
            setting="model",
            value="one with fields",
            expected="a model without fields: the theory assumes none",
        )
    graph = model.couplings
    off = graph.copy()
    off.data = np.sinh(graph.data) ** 2
    diagonal = 1 + off.sum(axis=1)
    off.data = -np.sinh(2 * graph.data) / 2
    return (off + scipy.sparse.diags_array(diagonal)).tocsr()


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpectrum(Spectrum):
    """The eigenvalues of one model's Bethe matrix, all of them: for a few thousand spins.

    Parameters
    ----------
    eigenvalues
        Of H; `ModelSpectrum.of(model)` computes them.
    """

    eigenvalues: FloatArray  # (n_spins,)

    def __post_init__(self) -> None:
        eigenvalues = numbers("eigenvalues", self.eigenvalues)
        if eigenvalues.ndim != 1 or len(eigenvalues) == 0 or not np.isfinite(eigenvalues).all():
            raise SettingError(
                setting="eigenvalues", value=self.eigenvalues, expected="a list of finite numbers"
            )
        if np.min(eigenvalues) <= 0:
            raise OrderedPhaseError(growth=None)
        object.__setattr__(self, "eigenvalues", eigenvalues)

    @staticmethod
    def of(model: IsingModel) -> "ModelSpectrum":
        """Eigenvalues of a model's Bethe matrix; refuses models that are not paramagnetic."""
        matrix = bethe_matrix(model)
        require_paramagnetic(model)
        return ModelSpectrum(np.linalg.eigvalsh(matrix.toarray()))

    def traces(self, effective_ridge: ArrayLike) -> Traces:
        one, k = weights_of(effective_ridge)
        found = np.empty((4, k.size))
        for number, (p, q) in enumerate(zip(one.ravel(), k.ravel(), strict=True)):
            inverse = 1 / (p + q * self.eigenvalues)
            kept = self.eigenvalues * inverse
            found[:, number] = (
                inverse.mean(),
                (inverse**2).mean(),
                kept.mean(),
                (kept * inverse).mean(),
            )
        return Traces(*(row.reshape(k.shape) for row in found))

    def log_trace(self, effective_ridge: float) -> float:
        return float(np.log1p(effective_ridge * self.eigenvalues).mean())
