"""SecondMoments: covariances of spins, stored or counted from bits."""

from typing import Any, Protocol

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.spins import Names


class Resolvent(Protocol):
    r"""R = (C + z)^{-1} of sample correlations C at one ridge, z = \lambda / \alpha."""

    @property
    def ridge(self) -> float: ...
    def diagonals(self, spins: IntArray) -> tuple[FloatArray, FloatArray]: ...
    def all_diagonals(self, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]: ...


class SecondMoments(Protocol):
    """What screens, elimination and closed forms need of the data.

    `NormalEquations` stores all pairs; `Bits` counts the few that are asked for.
    """

    @property
    def n_spins(self) -> int: ...
    @property
    def n_samples(self) -> float: ...
    @property
    def n_effective(self) -> float: ...
    @property
    def names(self) -> Names: ...
    @property
    def means(self) -> FloatArray: ...
    @property
    def changes(self) -> BoolArray: ...
    @property
    def variances(self) -> FloatArray: ...
    @property
    def source(self) -> Any: ...
    def covariances(self, pairs: Pairs) -> FloatArray: ...
    def block(self, some: IntArray) -> FloatArray: ...
    def resolvents(self) -> Any: ...
    def as_estimates(self, matrix: Any) -> Any: ...


_LOOKED_AT = 64  # spins whose error decides on the ridge


def best_resolvent(moments: SecondMoments, ridges: tuple[float, ...]) -> Resolvent:
    """The one of the smallest leave-one-out error, by up to 64 spins.

    Downwards while that helps: errors fall, then rise.
    """
    make = moments.resolvents()
    changing = np.flatnonzero(moments.changes)
    n_spins = min(_LOOKED_AT, len(changing))
    spins = changing[np.linspace(0, len(changing) - 1, n_spins).astype(int)]
    best: Resolvent = make(ridges[-1])
    least = np.inf
    for ridge in ridges[::-1]:
        other = best if ridge == ridges[-1] else make(ridge)
        errors, _ = leave_one_out(moments, ridge, *other.diagonals(spins))
        if errors.mean() >= least:
            break
        best = other
        least = float(errors.mean())
    return best


def leave_one_out(
    moments: SecondMoments, ridge: float, diagonal: FloatArray, squares: FloatArray
) -> tuple[FloatArray, float]:
    r"""Mean squared leave-one-out errors of spins, and t2, from R_ii and (R^2)_ii of those spins.

    t = Tr C R / N is the share of unknowns in use, and a residual left out is a residual over
    1 - t / \alpha.
    """
    alpha = moments.n_effective / moments.n_spins
    z = ridge * moments.n_spins / moments.n_samples
    # what rows of equal weight never pass; of others more may seem to be in use
    in_use = min(1 - z * diagonal.mean(), alpha / (1 + ridge))
    slope = -(diagonal - z * squares).mean()
    effective = z / (1 - in_use / alpha)
    still_free = 1 + effective * slope / alpha
    in_use_twice = 0.0
    if still_free > 0:
        in_use_twice = float(np.clip((in_use + effective * slope) / still_free, 0.0, in_use))
    residuals = np.maximum(1 / diagonal - z * squares / diagonal**2, 1e-12)
    return residuals / (1 - in_use / alpha) ** 2, in_use_twice


def noise_factors(
    moments: SecondMoments, ridge: float, diagonal: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""E and n, (n_spins,): the noise of the ridge estimate of J_ij has variance E_i n_j.

    E_i is the leave-one-out error and n_j = [C' (C' + k)^{-2}]_jj / M, where the true correlations
    C' with their effective ridge k follow from the sample's by t2: [C R^2]_jj (1 - t2 / \alpha).
    """
    changes = moments.changes
    alpha = moments.n_effective / moments.n_spins
    z = ridge * moments.n_spins / moments.n_samples
    errors, in_use_twice = leave_one_out(moments, ridge, diagonal[changes], squares[changes])
    left_out = np.ones(moments.n_spins)
    left_out[changes] = errors
    noise = (diagonal - z * squares) * (1 - in_use_twice / alpha) / moments.n_effective
    return left_out, np.maximum(noise, 1e-300)


def noise_at(moments: SecondMoments, ridge: float) -> float:
    """Standard deviation of the ridge estimate of an absent coupling, about that of all pairs."""
    if np.isinf(ridge) or moments.changes.sum() < 2:
        return float(1 / np.sqrt(moments.n_effective))
    diagonal, squares = moments.resolvents()(ridge).all_diagonals()
    left_out, noise = noise_factors(moments, ridge, diagonal, squares)
    changes = moments.changes
    return float(np.sqrt(left_out[changes].mean() * noise[changes].mean()))
