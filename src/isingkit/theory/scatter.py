"""Scatter of estimates around their means: of neighbours in stage one and in stage two, and what
candidates add to it.
"""

from typing import Any

import numpy as np
from scipy.stats import binom

from isingkit.arrays import FloatArray
from isingkit.theory.linear import linear_means
from isingkit.theory.ridge import series
from isingkit.theory.spectrum import RegularSpectrum, weights_of


def neighbour_variance(spectrum: RegularSpectrum, k: float, alpha: float) -> float:
    r"""M times the variance of a neighbour's estimate in stage one.

    With e = s_0 - \bar J s the residual and y = [(C + k)^{-1} s]_n, C without spin 0: <e^2><y^2> /
    (1 - t2 / \alpha), plus what is not Gaussian around the spin: <e^2 y^2> - <e^2><y^2> - <e y>^2.
    Both are sums over the tree; moments of sums are collected from the leaves of its twelfth
    generation, given the sign of the spin they hang on.
    """
    depth, c = 12, int(spectrum.degree)
    finite, _ = (float(value) for value in weights_of(k))
    p, theta = float(spectrum.traces(k).p), float(np.tanh(abs(spectrum.coupling)))
    first = np.ravel(series(spectrum, np.asarray(k))[0])[:2] * finite
    x = np.concatenate(
        [[-1.0], first[0] * (first[1] / first[0] if first[0] > 0 else 0.0) ** np.arange(depth + 1)]
    )
    # coefficients of e and y by generation: in the branch of the neighbour itself (from 1), and in
    # the others
    here = [(-x[g], p * ((g == 1) - (g > 1) * x[g - 1] - x[1] * x[g])) for g in range(1, depth + 1)]
    there = [(-x[g], -p * (x[g + 1] + x[1] * x[g])) for g in range(1, depth + 1)]

    def times(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.array(
            [
                [np.sum(left[: i + 1, : j + 1] * right[i::-1, j::-1]) for j in range(3)]
                for i in range(3)
            ]
        )

    def spin(own: tuple[float, float]) -> FloatArray:
        return np.outer([1, own[0], own[0] ** 2 / 2], [1, own[1], own[1] ** 2 / 2])

    def seen_from_parent(moments: FloatArray) -> FloatArray:
        return moments * theta ** (
            np.add.outer(np.arange(3), np.arange(3)) % 2
        )  # odd moments change sign with the spin

    def branch(coefficients: list[tuple[float, float]]) -> FloatArray:
        moments = spin(coefficients[-1])
        for own in coefficients[-2::-1]:
            child, moments = seen_from_parent(moments), spin(own)
            for _ in range(c - 1):
                moments = times(moments, child)
        return seen_from_parent(moments)

    total = times(spin((1.0, 0.0)), branch(here))
    other = branch(there)
    for _ in range(c - 1):
        total = times(total, other)
    e2, y2, ey, e2y2 = 2 * total[2, 0], 2 * total[0, 2], total[1, 1], 4 * total[2, 2]
    shrunk = finite * float(spectrum.traces(k).t2) / alpha
    return float(e2 * y2 * shrunk / (1 - shrunk) + e2y2 - ey**2)


def edge_scatter(degree: int, strength: float) -> tuple[float, float]:
    r"""M times the variance of least squares on the true neighbours, and the correlation of both
    directed estimates of an edge.

    The residual's size depends on the neighbours (it is not Gaussian noise), so that the variance
    is the sandwich C^{-1} <e^2 s s'> C^{-1}. Around an edge ij, all signs made positive, the rest
    of both neighbourhoods enters by its sums, which are binomial given s_i and s_j: 4 c^2 terms.
    """
    theta = np.tanh(strength)
    mean = theta / (1 + (degree - 1) * theta**2)
    own = 1 / (1 - theta**2)
    common = -(theta**2) / ((1 - theta**2) * (1 - theta**2 + degree * theta**2))
    ups = np.arange(degree)
    variance = product = 0.0
    for si in (1, -1):
        for sj in (1, -1):
            chance = (1 + theta * si * sj) / 4
            sums = 2 * ups - (degree - 1)
            p_i, p_j = (binom.pmf(ups, degree - 1, (1 + theta * s) / 2) for s in (si, sj))
            into_i = (si - mean * (sj + sums)) * (own * sj + common * (sj + sums))
            into_j = (sj - mean * (si + sums)) * (own * si + common * (si + sums))
            variance += chance * float(p_i @ into_i**2)
            product += chance * float(p_i @ into_i) * float(p_j @ into_j)
    return variance, product / variance


def neighbour_scatter(couplings: FloatArray) -> FloatArray:
    """M times the covariance of least squares on the true neighbours of one spin: C^-1 <e^2 s s'>
    C^-1, in closed form.

    In the spin's own gauge neighbours are independent with means tanh J, and the residual is 1 -
    sum a_j s_j.
    """
    theta, a = np.tanh(couplings), linear_means(couplings)
    rest = 1 - (
        a @ theta - a[:, None] * theta[:, None] - a * theta
    )  # 1 - mean of the others, for each pair
    scatter = a**2 @ (1 - theta**2) - (a**2 * (1 - theta**2))[:, None] - a**2 * (1 - theta**2)
    middle = (rest**2 + a[:, None] ** 2 + a**2 + scatter) * np.outer(theta, theta)
    middle += 2 * np.outer(a, a) - 2 * rest * (np.outer(a, theta) + np.outer(theta, a))
    np.fill_diagonal(middle, (1 - a @ theta) ** 2 + a**2 @ (1 - theta**2))
    inverse = np.linalg.inv(neighbour_correlations(couplings))
    return np.asarray(inverse @ middle @ inverse)


def neighbour_correlations(couplings: FloatArray) -> FloatArray:
    """C of the neighbours of one spin, coupled through it alone: tanh J_j tanh J_l."""
    theta = np.tanh(couplings)
    correlations = np.outer(theta, theta)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def means_of_survivors(couplings: FloatArray, kept: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of Theorem 1's estimates where the other neighbours are candidates with the
    probabilities `kept`.

    Estimates of fewer neighbours are larger: w_j / D with D = 1 + the sum of sinh^2 J over those
    there are; to second order in D.
    """
    squares = np.sinh(couplings) ** 2
    other = kept * squares
    mean = 1 + squares + other.sum() - other
    spread = kept * (1 - kept) * squares**2
    spread = spread.sum() - spread
    numerators = np.sinh(2 * couplings) / 2
    return numerators / mean * (1 + spread / mean**2), numerators**2 * spread / mean**4


def pair_gain(
    truth: FloatArray, noise: FloatArray, local: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What a candidate's head start gains when a neighbour of its own is a candidate, too: by its
    own X, and by the neighbour's.

    With F both of them, stage two given stage one is C_FF^-1 G_FF N_FF^-1 X, where G = (1 + k H)^-1
    and N = H (1 + k H)^-2.
    """
    own, other = np.zeros_like(truth), np.zeros_like(truth)
    for j, m in np.argwhere(truth != 0):
        pair = np.ix_([j, m], [j, m])
        theta = np.tanh(truth[j, m])
        share = np.linalg.solve([[1, theta], [theta, 1]], local[pair]) @ np.linalg.inv(noise[pair])
        alone = local[j, j] / noise[j, j]
        own[j, m] = share[0, 0] / alone - 1
        other[j, m] = share[0, 1] * noise[j, m] / noise[j, j] / alone
    return own, other


def candidate_interference(
    k: float,
    local: float,
    kept: float,
    scale: float,
    slope: Any,
    left: float,
    squares: float,
    means: FloatArray,
    solved: FloatArray,
) -> tuple[Any, FloatArray]:
    r"""The multiple of X that a false candidate gets in stage two, and what all of them take from
    each neighbour.

    Given their estimates X in stage one, candidate j and a neighbour of mean m have the mean
    product \omega X_j m, because both resemble the spin, \omega = g k / (M \sigma^2). Candidates j
    and l have (g / P) (1 - 1 / k) \omega X_j X_l: less, because of two that resemble each other
    stage one gives each its share. Least squares of s_i - sum a s on both then has two unknowns,
    the multiple and the loss.

    local, kept: g and P     scale: M sigma^2
    left: share of the samples beyond the number of candidates
    squares: sum of X^2 over false candidates     means: m of all neighbours     solved: C^-1 m
    """
    one, q = (float(value) for value in weights_of(k))
    among, aside = local * local / kept * (q - one) / scale, local * q / scale
    whole = max(1 + among * squares - aside**2 * squares * float(means @ solved), 0.2) * left
    return slope / whole, aside * float(np.mean(slope)) / whole * squares * solved / left
