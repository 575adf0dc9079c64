"""What ridge regression finds on random regular graphs, and how far off it is.

| paper | code |
|---|---|
| alpha, lambda, d | samples_per_spin, ridge, depth |
| 2 lambda / kappa | effective_ridge |
| Psi_d | the ball of radius depth |
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from isingkit.arrays import FloatArray
from isingkit.exceptions import SettingError, require_number
from isingkit.theory.prediction import (
    MeanEstimates,
    Prediction,
    check_depth,
    checked,
    plain,
    predicted,
    solved,
)
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.spectrum import Spectrum, numbers, weights_of

GENERATIONS = 8  # of which `means` speaks at infinite depth


def random_regular(
    degree: ArrayLike,
    coupling: ArrayLike,
    samples_per_spin: ArrayLike,
    ridge: ArrayLike = 0.0,
    depth: int | None = None,
) -> Prediction:
    """Prediction for a spin of a random regular graph: couplings of one strength, of any signs.

    [eq:EOS-sparse] [eq:J-bar-condition] [eq:J-mean-linear-equation] [eq:R-def-resuls]
    [eq:RSS-def-2] [eq:bias-def]

    Estimates of a spin's generation g have one mean, x_g, so that depth d is a d x d system, and
    infinite depth a geometric series. Arrays broadcast: ten thousand points of a phase diagram are
    one call.

    Parameters
    ----------
    degree
        c, neighbours of each spin.
    coupling
        K, with (c - 1) tanh^2 K < 1.
    samples_per_spin
        alpha.
    ridge
        lambda, exactly the paper's; 0 is least squares, infinity is correlation screening.
    depth
        Generations around the spin whose estimates may have a mean; None is all of them.

    Examples
    --------
    >>> from isingkit import theory
    >>> p = theory.random_regular(degree=3, coupling=0.4, samples_per_spin=10, ridge=10, depth=2)
    >>> round(p.kappa, 6), round(p.Q, 6), round(p.rss, 6), round(p.bias, 6)
    (19.132136, 0.015667, 0.20967, 0.374158)
    """
    check_depth(depth)
    alpha, penalty = checked(samples_per_spin, ridge)
    coupling = numbers("coupling", coupling)
    try:
        degree, coupling, alpha, penalty = np.broadcast_arrays(degree, coupling, alpha, penalty)
    except ValueError:
        shapes = tuple(np.shape(value) for value in (degree, coupling, alpha, penalty))
        expected = "alike, or to broadcast"
        setting = "shapes of all arguments"
        raise SettingError(setting=setting, value=shapes, expected=expected) from None
    spectrum = RegularSpectrum(degree, coupling)
    state = solved(spectrum, alpha, penalty)
    k = state.effective_ridge
    strength = np.abs(coupling)
    if depth is None:
        means, squares = series(spectrum, k)
        unexplained = state.traces.p2 / state.traces.p**2
    else:
        means, squares, unexplained = _finite_depth(degree, strength, k, depth)
    # the neighbours' part of the squares is replaced by their squared errors
    first = means[0]
    error = degree * ((strength - first) ** 2 - first**2) + squares
    bias = np.full(k.shape, np.nan)
    np.divide(first, strength, out=bias, where=strength > 0)
    estimates = MeanEstimates(means, squares, error, bias, unexplained)
    return predicted(state, estimates, depth)


def decay_bound(coupling: ArrayLike, effective_ridge: ArrayLike) -> Any:
    r"""Theorem 2: mean estimates fall, from one generation to the next, at least by this factor.
    [eq:decay-ratio-generalnode]

    [eq:decay-ratio-Leaf] at leaves.

    \delta = \theta (D - 1) / (D - \theta^2) with \theta = \tanh K, D = 1 + 2 \lambda / \kappa;
    equality holds at leaves. (The text below the theorem prints D - \theta.)

    Parameters
    ----------
    coupling
        K.
    effective_ridge
        2 lambda / kappa, as Predictions have it.

    Examples
    --------
    >>> from isingkit import theory
    >>> p = theory.random_regular(degree=3, coupling=0.4, samples_per_spin=0.8, ridge=0.1)
    >>> round(theory.decay_bound(0.4, p.effective_ridge), 4)
    0.1402
    >>> round(float(p.means[1] / p.means[0]), 4)
    0.1311
    """
    theta = np.tanh(np.abs(numbers("coupling", coupling)))
    one, k = weights_of(effective_ridge)
    if np.any(k < 0):
        expected = "a number >= 0"
        raise SettingError(setting="effective_ridge", value=effective_ridge, expected=expected)
    return plain(theta * k / (one * (1 - theta**2) + k))


def generation_bound(
    degree: ArrayLike, coupling: ArrayLike, first_mean: ArrayLike, generation: ArrayLike
) -> Any:
    r"""What a generation's mean estimates add to the RSS at the most, on random regular graphs.
    [eq:RSS_NN]

    c (c - 1)^{g - 1} \tanh^{2 (g - 1)} K x_1^2: by Theorem 2 means fall from one generation to the
    next at least as fast as correlations, while spins of a generation are c - 1 times as many. It
    goes to zero below (c - 1) \tanh^2 K = 1, so that few generations are enough.

    Parameters
    ----------
    degree
        c.
    coupling
        K.
    first_mean
        x_1, |mean estimate| of neighbours, as `means[0]` of a Prediction has it.
    generation
        g, from 1 on; the bound holds from 2 on, and at 1 it is the sum itself.

    Examples
    --------
    >>> from isingkit import theory
    >>> p = theory.random_regular(degree=3, coupling=0.4, samples_per_spin=0.8, ridge=10)
    >>> bound = theory.generation_bound(3, 0.4, p.means[0], 2)
    >>> bool(6 * p.means[1] ** 2 < bound)
    True
    """
    branches = numbers("degree", degree) - 1
    theta = np.tanh(np.abs(numbers("coupling", coupling)))
    first = numbers("first_mean", first_mean)
    steps = numbers("generation", generation) - 1
    if np.any(steps < 0):
        raise SettingError(setting="generation", value=generation, expected="1 or more")
    return plain((branches + 1) * (branches * theta**2) ** steps * first**2)


def best_ridge(degree: int, coupling: float, samples_per_spin: float) -> float:
    """The ridge with the smallest RSS on random regular graphs, at infinite depth. [eq:RSS-def-2]

    0 or infinity at the ends.

    Parameters
    ----------
    degree
        c.
    coupling
        K.
    samples_per_spin
        alpha.

    Examples
    --------
    >>> from isingkit import theory
    >>> round(theory.best_ridge(degree=3, coupling=0.4, samples_per_spin=0.8), 1)
    1.4
    """
    require_number("samples_per_spin", samples_per_spin, above=0)

    def rss(log_ridge: Any) -> Any:
        return random_regular(degree, coupling, samples_per_spin, np.exp(log_ridge)).rss

    grid = np.linspace(-30.0, 30.0, 241)
    best = int(np.argmin(rss(grid)))
    if best == 0:
        return 0.0
    if best == len(grid) - 1:
        return np.inf
    bounds = (grid[best - 1], grid[best + 1])
    found = minimize_scalar(rss, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return float(np.exp(found.x))


def free_energy(
    spectrum: Spectrum,
    *,
    samples_per_spin: float,
    ridge: float,
    kappa: float,
    Q: float,
    squares: float,
    overlap: float,
    power: float,
) -> float:
    r"""Free energy at zero temperature of given order parameters, stationary at the solution.
    [eq:limit-free-energy-sparse]

    f = \lambda |\bar J|^2 - Q \kappa / 2
    + \alpha (Q + \bar J C \bar J - 2 b \bar J + 1) / (1 + 2 G_1(\kappa)).

    Parameters
    ----------
    spectrum
        Of the teacher.
    samples_per_spin
        alpha.
    ridge
        lambda.
    kappa
        An order parameter.
    Q
        An order parameter.
    squares
        |J|^2 of the mean estimates.
    overlap
        b J: correlations with the spin times mean estimates.
    power
        J C J: variance of the field that mean estimates make.
    """
    residual = Q + power - 2 * overlap + 1
    cost = samples_per_spin * residual / (1 + 2 * spectrum.g1(kappa, ridge))
    return float(ridge * squares - Q * kappa / 2 + cost)


def series(spectrum: RegularSpectrum, k: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means of the first generations at infinite depth, and the sum of squares of all.

    The means are x_1, x_1 r, x_1 r^2, ...
    """
    _, scale = weights_of(k)
    c = np.asarray(spectrum.degree)
    w = spectrum.weight
    g = spectrum.branch(k)
    first = w * g / (spectrum.centre - c * scale * w**2 * g)
    ratio = scale * w * g
    exponents = np.arange(GENERATIONS).reshape(-1, *np.ones(np.ndim(ratio), int))
    powers = ratio**exponents
    powers[1:] *= c > 1  # neighbours of a pair's spins are each other
    squares = c * first**2 / (1 - (c - 1) * ratio**2)
    return first * powers, squares


@dataclass(frozen=True, slots=True, eq=False)
class _Generations:
    """Whole generations around a spin as variables: their correlations and sizes."""

    eigenvalues: FloatArray  # (depth,): of their correlations
    vectors: FloatArray  # (depth, depth)
    with_spin: FloatArray  # (depth,): correlations with the spin
    sizes: FloatArray  # (depth,)


def _finite_depth(
    degree: Any, strength: Any, k: FloatArray, depth: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means by generation, their sum of squares, and the unexplained part v."""
    means = np.zeros((depth, *k.shape))
    squares = np.zeros(k.shape)
    unexplained = np.zeros(k.shape)
    one, scale = weights_of(k)
    kinds = set(zip(degree.ravel().tolist(), strength.ravel().tolist(), strict=True))
    for c, K in kinds:
        here = (degree == c) & (strength == K)
        around = _generations(c, K, depth)
        rotated = around.vectors.T @ around.with_spin
        shifted = one[here] * around.eigenvalues[:, None] + scale[here]
        solution = rotated[:, None] / shifted
        scaled = np.abs(around.vectors @ solution)
        means[: len(scaled), here] = scaled / np.sqrt(around.sizes)[:, None]
        squares[here] = np.sum(solution**2, axis=0)
        explained = rotated @ solution + scale[here] * squares[here]
        unexplained[here] = 1 - np.where(one[here] > 0, explained, 0.0)
    return means, squares, unexplained


@lru_cache(maxsize=4096)
def _generations(degree: int, strength: float, depth: int) -> _Generations:
    r"""Correlations of whole generations with each other and with the spin.

    Per spin of generation g, sum the correlations with all of generation g' and scale both by the
    root of their sizes. With \rho = \sqrt{c - 1} \tanh K and a the generation of the last common
    ancestor, 0 being the spin itself,
    S_{gg'} = \rho^{|g - g'|} + \frac{c - 2}{c - 1} \sum_{0 < a < \min(g, g')} \rho^{g + g' - 2 a}
    + \rho^{g + g'}.
    """
    theta = np.tanh(strength)
    if degree == 1:
        return _Generations(np.ones(1), np.ones((1, 1)), np.array([theta]), np.ones(1))
    rho = np.sqrt(degree - 1) * theta
    g = np.arange(1.0, depth + 1)
    apart = np.abs(g[:, None] - g)
    both = g[:, None] + g
    n_inner = np.minimum(g[:, None], g) - 1
    # sum over a of rho^(both - 2 a): from rho^(apart + 2) to rho^(both - 2), in steps of rho^2
    inner = rho ** (apart + 2) * (1 - rho ** (2 * n_inner)) / (1 - rho**2)
    matrix = rho**apart + (degree - 2) / (degree - 1) * inner + rho**both
    eigenvalues, vectors = np.linalg.eigh(matrix)
    with_spin = np.sqrt(degree / (degree - 1)) * rho**g
    with np.errstate(over="ignore"):  # generations beyond number have means of zero
        sizes = degree * float(degree - 1) ** (g - 1)
    return _Generations(eigenvalues, vectors, with_spin, sizes)
