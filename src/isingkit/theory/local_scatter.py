"""How estimates X of stage one and the fields C X that they make scatter together, locally."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from isingkit.arrays import FloatArray
from isingkit.theory.joint import Joint
from isingkit.theory.regular import RegularSpectrum


@dataclass(frozen=True, slots=True, eq=False)
class LocalScatter:
    r"""Covariances of (X, C X) in units of v / (N (\alpha - t2)): of spins, or of pairs of spins.

    X has the covariance H (1 + k H)^{-2}, X with C X has (1 + k H)^{-2}, and C X has
    C (1 + k H)^{-2} = C - k (1 + k H)^{-1} - k (1 + k H)^{-2}.
    """

    estimates: Any
    crossed: Any
    fields: Any

    @staticmethod
    def of(k: float, inverse: Any, squared: Any, correlation: Any) -> "LocalScatter":
        """From entries of (1 + k H)^-1, (1 + k H)^-2 and C."""
        estimates = (inverse - squared) / k
        fields = correlation - k * inverse
        fields = fields - k * squared
        return LocalScatter(estimates, squared, fields)

    @property
    def slope(self) -> Any:
        """Of C X on X."""
        return self.crossed / self.estimates

    @property
    def unexplained(self) -> Any:
        """Variance of C X where X is known."""
        return self.fields - self.crossed**2 / self.estimates


def regular_scatter(spectrum: RegularSpectrum, k: float, distance: int) -> LocalScatter:
    """Of two spins of a random regular graph, so many steps apart; 0 is a spin with itself."""
    traces = spectrum.traces(k)
    step = k * float(spectrum.weight)
    ratio = step * float(spectrum.branch(k))  # of (1 + k H)^-1, from a spin to the next
    inverse = float(traces.t) * ratio**distance
    squared = float(traces.t2) * ratio**distance
    if distance > 0:
        slope = distance * ratio ** (distance - 1) * step * _steepness(spectrum, k)
        squared += float(traces.t) * slope
    theta = float(np.tanh(abs(spectrum.coupling)))
    return LocalScatter.of(k, inverse, squared, theta**distance)


def of_two(first: LocalScatter, second: LocalScatter, both: LocalScatter, scale: Any) -> Joint:
    """(X_j, X_m, [C X]_j, [C X]_m) of two spins, around their means; scale: the unit."""
    shape = np.broadcast_shapes(np.shape(scale), np.shape(both.estimates))
    covariance = np.empty((*shape, 4, 4))
    blocks = ((0, 0, "estimates"), (0, 2, "crossed"), (2, 0, "crossed"), (2, 2, "fields"))
    for row, column, name in blocks:
        covariance[..., row, column] = getattr(first, name)
        covariance[..., row + 1, column + 1] = getattr(second, name)
        covariance[..., row, column + 1] = getattr(both, name)
        covariance[..., row + 1, column] = getattr(both, name)
    return Joint(np.zeros((*shape, 4)), covariance * np.asarray(scale)[..., None, None])


def edge_fields(spectrum: RegularSpectrum, k: float) -> tuple[FloatArray, FloatArray]:
    """1 - k A and the slope of C X on X among neighbours of a spin: (own, other) each.

    A = (C + k)^-1 without the spin itself is P - P_ii J J', where J are the mean estimates; its
    square is minus its slope by k.
    """
    step = 1e-4 * k
    inverse = _without_spin(spectrum, k)
    before = _without_spin(spectrum, k - step)
    after = _without_spin(spectrum, k + step)
    square = (before - after) / (2 * step)
    kept = np.array([1.0, 0.0]) - k * inverse  # C A
    estimates = inverse - k * square  # A C A
    fields = kept - k * estimates  # C A C A
    return kept, _divided(fields, estimates, int(spectrum.degree))


def _without_spin(spectrum: RegularSpectrum, k: float) -> FloatArray:
    traces = spectrum.traces(k)
    kept = float(traces.p)
    step = float(spectrum.weight) * float(spectrum.branch(k))
    path = float(traces.t) * k * step
    among = path * step
    taken = (path / k) ** 2 / kept
    return np.array([kept - taken, -among - taken])


def _divided(left: FloatArray, right: FloatArray, size: int) -> FloatArray:
    """left right^-1 of matrices that are one number on the diagonal and one beside it."""
    matrices = []
    for own, other in (left, right):
        matrix = np.full((size, size), other)
        np.fill_diagonal(matrix, own)
        matrices.append(matrix)
    inverse = np.linalg.inv(matrices[1])
    quotient = matrices[0] @ inverse
    other = quotient[0, -1] if size > 1 else 0.0
    return np.array([quotient[0, 0], other])


def _steepness(spectrum: RegularSpectrum, k: float) -> float:
    """-dg/da of the branch g = 2 / (a + root), root^2 = a^2 - 4 (c - 1) u^2."""
    g = float(spectrum.branch(k))
    a = 1 + k * float(spectrum.centre)
    root = 2 / g - a
    return 2 * (1 + a / root) / (a + root) ** 2
