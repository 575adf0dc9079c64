"""Scatter of estimates around their means: of neighbours in both stages, and by candidates."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from isingkit.arrays import FloatArray
from isingkit.theory.linear import linear_means
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.ridge import series
from isingkit.theory.spectrum import scalar_weights

DEPTH = 12  # generations whose moments are collected


@dataclass(frozen=True, slots=True)
class StageOne:
    """What spins have in common in stage one, on average over them."""

    effective_ridge: float  # k
    local: float  # g: diagonal of (1 + k H)^-1
    kept: float  # P: diagonal of H (1 + k H)^-1
    scatter: float  # M sigma^2: M times the variance of estimates


def neighbour_variance(spectrum: RegularSpectrum, k: float, alpha: float) -> float:
    r"""M times the variance of a neighbour's estimate in stage one.

    With e = s_0 - \bar J s the residual and y = [(C + k)^{-1} s]_n, C without spin 0:
    <e^2><y^2> / (1 - t2 / \alpha), plus what is not Gaussian around the spin:
    <e^2 y^2> - <e^2><y^2> - <e y>^2. Both are sums over the tree; moments of sums are collected
    from the leaves of its twelfth generation, given the sign of the spin they hang on.
    """
    finite, _ = scalar_weights(k)
    traces = spectrum.traces(k)
    degree = int(spectrum.degree)
    theta = float(np.tanh(abs(spectrum.coupling)))
    x = _means_by_generation(spectrum, k)
    # coefficients of e and y by generation, in the branch of the neighbour itself and in the others
    before = x[:DEPTH]
    own = x[1 : DEPTH + 1]
    after = x[2 : DEPTH + 2]
    kept = float(traces.p)
    here = _branch_moments(-own, -kept * (before + x[1] * own), degree, theta)
    there = _branch_moments(-own, -kept * (after + x[1] * own), degree, theta)
    total = _product(_spin_moments(1.0, 0.0), here)
    for _ in range(degree - 1):
        total = _product(total, there)
    mean_e2 = 2 * total[2, 0]
    mean_y2 = 2 * total[0, 2]
    mean_ey = total[1, 1]
    mean_e2y2 = 4 * total[2, 2]
    shrunk = finite * float(traces.t2) / alpha
    gaussian = mean_e2 * mean_y2 * shrunk / (1 - shrunk)
    return float(gaussian + mean_e2y2 - mean_ey**2)


def _means_by_generation(spectrum: RegularSpectrum, k: float) -> FloatArray:
    """-1 for the spin itself, then x_1, x_1 r, x_1 r^2, ...; zeros where k is infinite."""
    finite, _ = scalar_weights(k)
    means, _ = series(spectrum, np.asarray(k))
    first, second = np.ravel(means)[:2] * finite
    ratio = second / first if first > 0 else 0.0
    return np.concatenate([[-1.0], first * ratio ** np.arange(DEPTH + 1)])


# Moments of (e, y) are arrays m[a, b] = <e^a y^b> / (a! b!) up to second order in each: those of a
# sum of independent terms are the product of theirs, as polynomials.


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    found = np.empty((3, 3))
    for a in range(3):
        for b in range(3):
            reversed_right = right[a::-1, b::-1]
            found[a, b] = np.sum(left[: a + 1, : b + 1] * reversed_right)
    return found


def _spin_moments(e: float, y: float) -> FloatArray:
    """Of a spin that is up, with coefficients e and y."""
    return np.outer([1, e, e**2 / 2], [1, y, y**2 / 2])


def _seen_from_parent(moments: FloatArray, theta: float) -> FloatArray:
    """Odd moments change sign with the spin, whose mean, given its parent up, is theta."""
    order = np.add.outer(np.arange(3), np.arange(3))
    return np.asarray(moments * theta ** (order % 2))


def _branch_moments(e: FloatArray, y: FloatArray, degree: int, theta: float) -> FloatArray:
    """Of a whole branch, from its leaves upwards; e and y are by generation."""
    moments = _spin_moments(e[-1], y[-1])
    for generation in range(len(e) - 2, -1, -1):
        child = _seen_from_parent(moments, theta)
        moments = _spin_moments(e[generation], y[generation])
        for _ in range(degree - 1):
            moments = _product(moments, child)
    return _seen_from_parent(moments, theta)


@lru_cache(maxsize=4096)
def edge_scatter(degree: int, strength: float) -> tuple[float, float]:
    r"""M times the variance of an edge's estimate by least squares on the true neighbours.

    And the correlation of both directed estimates of the edge. The residual's size depends on the
    neighbours (it is not Gaussian noise), so that the variance is the sandwich
    C^{-1} <e^2 s s'> C^{-1}. Around an edge ij, all signs made positive, the rest of both
    neighbourhoods enters by its sums, which are binomial given s_i and s_j: 4 c^2 terms.
    """
    from scipy.stats import binom  # slow to import, and no fit needs it

    theta = np.tanh(strength)
    mean = theta / (1 + (degree - 1) * theta**2)
    # C^-1 = own on the diagonal + common everywhere
    own = 1 / (1 - theta**2)
    square = theta**2
    determinant = (1 - square) * (1 - square + degree * square)
    common = -(theta**2) / determinant
    n_up = np.arange(degree)
    sums = 2 * n_up - (degree - 1)  # of the other neighbours

    def influence(spin: int, neighbour: int) -> FloatArray:
        """Residual of the spin times the neighbour's entry of C^-1 s, for each sum."""
        total = neighbour + sums
        residual = spin - mean * total
        return np.asarray(residual * (own * neighbour + common * total))

    variance = 0.0
    product = 0.0
    for si in (1, -1):
        of_i = binom.pmf(n_up, degree - 1, (1 + theta * si) / 2)
        for sj in (1, -1):
            of_j = binom.pmf(n_up, degree - 1, (1 + theta * sj) / 2)
            weight = (1 + theta * si * sj) / 4
            into_i = influence(si, sj)
            into_j = influence(sj, si)
            variance += weight * float(of_i @ into_i**2)
            mean_i = float(of_i @ into_i)
            mean_j = float(of_j @ into_j)
            product += weight * mean_i * mean_j
    return variance, product / variance


def neighbour_scatter(couplings: FloatArray) -> FloatArray:
    """M times the covariance of least squares on one spin's true neighbours: C^-1 <e^2 s s'> C^-1.

    In closed form: in the spin's own gauge neighbours are independent with means tanh J, and the
    residual is 1 - sum a_j s_j.
    """
    theta = np.tanh(couplings)
    a = linear_means(couplings)
    means = a * theta
    variances = a**2 * (1 - theta**2)
    # for each pair: mean and variance of 1 - sum a s over the others
    rest = 1 - (means.sum() - means[:, None] - means)
    noise = variances.sum() - variances[:, None] - variances
    crossed = np.outer(a, theta) + np.outer(theta, a)
    both = a[:, None] ** 2 + a**2
    middle = (rest**2 + both + noise) * np.outer(theta, theta)  # <e^2 s s'>
    middle += 2 * np.outer(a, a) - 2 * rest * crossed
    mean_square = (1 - means.sum()) ** 2 + variances.sum()
    np.fill_diagonal(middle, mean_square)
    inverse = np.linalg.inv(neighbour_correlations(couplings))
    return np.asarray(inverse @ middle @ inverse)


def neighbour_correlations(couplings: FloatArray) -> FloatArray:
    """C of the neighbours of one spin, coupled through it alone: tanh J_j tanh J_l."""
    theta = np.tanh(couplings)
    correlations = np.outer(theta, theta)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def means_of_survivors(couplings: FloatArray, kept: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of Theorem 1's estimates where other neighbours may be no candidates.

    They are with the probabilities `kept`. Estimates of fewer neighbours are larger: w_j / D with
    D = 1 + the sum of sinh^2 J over those there are; to second order in D.
    """
    squares = np.sinh(couplings) ** 2
    expected = kept * squares
    mean = 1 + squares + expected.sum() - expected
    variance = kept * (1 - kept) * squares**2
    variance = variance.sum() - variance  # of the others' part of D
    numerators = np.sinh(2 * couplings) / 2
    means = numerators / mean * (1 + variance / mean**2)
    variances = numerators**2 * variance / mean**4
    return means, variances


def candidate_interference(
    first: StageOne,
    slope: Any,
    left: float,
    squares: float,
    means: FloatArray,
    solved: FloatArray,
) -> tuple[Any, FloatArray]:
    r"""The multiple of X that a false candidate gets in stage two, and what neighbours lose by it.

    Given their estimates X in stage one, candidate j and a neighbour of mean m have the mean
    product \omega X_j m, because both resemble the spin, \omega = g k / (M \sigma^2). Candidates j
    and l have (g / P) (1 - 1 / k) \omega X_j X_l: less, because stage one divides what two that
    resemble each other explain. Least squares of s_i - sum a s on both then has two unknowns, the
    multiple and the loss.

    slope: the multiple of a candidate by itself
    left: samples beyond the number of candidates, over samples
    squares: sum of X^2 over false candidates     means: m of all neighbours     solved: C^-1 m
    """
    one, k = scalar_weights(first.effective_ridge)
    with_neighbours = first.local * k / first.scatter  # omega
    among = first.local * first.local / first.kept * (k - one) / first.scatter
    explained = with_neighbours**2 * squares * float(means @ solved)
    whole = max(1 + among * squares - explained, 0.2) * left
    mean_slope = float(np.mean(slope))
    loss = with_neighbours * mean_slope / whole * squares * solved / left
    return slope / whole, loss
