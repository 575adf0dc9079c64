"""Short loops of random regular graphs: how many there are, and what they do to correlations."""

import itertools
from typing import NamedTuple

import numpy as np

from isingkit.arrays import BoolArray, FloatArray
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.spectrum import scalar_weights

TRIANGLE = 3
SQUARE = 4
_AS_GOOD_AS_NONE = 1e-8  # effective ridge


def loops_through_edge(n_spins: int, degree: int, length: int) -> float:
    """Expected number of loops of some length through an edge.

    There are (c - 1)^m / (2 m) loops of length m, whatever the number of spins, and N c / 2 edges.
    """
    return float((degree - 1) ** length / (n_spins * degree))


def longest_loop(n_spins: int, degree: int) -> int:
    """Beyond this length an edge is on a loop for certain, and loops are no longer short."""
    if degree <= 2:
        return TRIANGLE - 1
    return int(np.log(n_spins * degree) / np.log(degree - 1))


class Triangle(NamedTuple):
    """Correlations in a triangle of one strength, signs of the spin's two edges made positive."""

    sign: int  # of the third edge: -1 is frustrated
    with_spin: float
    between: float  # the other two


def triangle(theta: float, sign: int) -> Triangle:
    r"""C = (\theta \pm \theta^2) / (1 \pm \theta^3): by an edge, and around."""
    correlation = (theta + sign * theta**2) / (1 + sign * theta**3)
    return Triangle(sign, correlation, sign * correlation)


def square_resemblance(theta: float) -> float:
    """What two neighbours of a spin, on a square that is not frustrated, say of the spin opposite.

    The weight of each in its regression on both.
    """
    across = 2 * theta**2 / (1 + theta**4)
    along = (theta + theta**3) / (1 + theta**4)
    return along / (1 + across)


def lasso_shift(around: Triangle, n_others: int, theta: float, l1: float) -> float:
    """Gradient of a neighbour in a triangle, less that of one in a tree, while so many others are
    fitted by least squares with an l1 penalty: the third spin of the triangle is the first of them.
    """
    n = n_others
    if n == 0:
        return around.with_spin - theta
    with_spin = np.full(n, theta)
    with_spin[0] = around.with_spin
    to_neighbour = np.full(n, theta * around.with_spin)
    to_neighbour[0] = around.between
    in_triangle = around.with_spin - to_neighbour @ _penalised(with_spin, l1)
    in_tree = theta - theta**2 * np.sum(_penalised(np.full(n, theta), l1))
    return float(in_triangle - in_tree)


def _penalised(with_spin: FloatArray, l1: float) -> FloatArray:
    """Estimates of neighbours that resemble each other only through the spin."""
    correlations = np.outer(with_spin, with_spin)
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(np.linalg.solve(correlations, np.maximum(with_spin - l1, 0.0)))


class ClusterEstimates(NamedTuple):
    """Mean estimates of the coupling of the first two spins of a cluster, or of none such."""

    first: float  # in stage one, by ridge regression on all spins
    second: float  # in stage two, by least squares on the first spin's neighbours
    noise: float  # variance of the latter, over that on a tree


def cluster_estimates(
    spectrum: RegularSpectrum, effective_ridge: float, signs: FloatArray
) -> ClusterEstimates:
    r"""Of few spins with loops among them, and a tree on each where it has other neighbours.

    Where graphs meet in a single spin, inverse correlation matrices add up less one: H of the
    cluster's spins is the inverse of their own correlations, by all states, plus \sinh^2 K for each
    other neighbour, whose branches are then eliminated from 1 + k H as on a tree.

    signs: (n, n) of the couplings among them, 0 for none
    """
    one, k = scalar_weights(effective_ridge)
    degree = int(spectrum.degree)
    strength = float(abs(spectrum.coupling))
    correlations = correlations_by_states(strength * signs)
    n_branches = degree - np.count_nonzero(signs, axis=1)
    own = n_branches * np.sinh(strength) ** 2
    second, noise = _on_neighbours(correlations, signs[0] != 0, degree, np.tanh(strength))
    if k < _AS_GOOD_AS_NONE:  # 1 - inverse has no digits left
        inverse = np.linalg.inv(correlations) + np.diag(own)
        estimate = -2 * inverse[0, 1] / (inverse[0, 0] + inverse[1, 1])
        return ClusterEstimates(float(estimate), second, noise)
    branch = (k * float(spectrum.weight)) ** 2 * float(spectrum.branch(effective_ridge))
    shifted = k * np.linalg.inv(correlations) + np.diag(one + k * own - branch * n_branches)
    inverse = np.linalg.inv(shifted)
    left = 1 - (inverse[0, 0] + inverse[1, 1]) / 2 if one > 0 else 1.0
    return ClusterEstimates(float(inverse[0, 1] / left), second, noise)


def correlations_by_states(couplings: FloatArray) -> FloatArray:
    """Of few spins, by all their states."""
    n = len(couplings)
    states = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    energies = np.einsum("si,ij,sj->s", states, couplings, states) / 2
    weights = np.exp(energies - energies.max())
    return np.asarray((states * weights[:, None]).T @ states / weights.sum())


def _on_neighbours(
    correlations: FloatArray, near: BoolArray, degree: int, theta: float
) -> tuple[float, float]:
    """Least squares of the first spin on all its neighbours: the second's estimate, and its noise.

    The estimate is 0 where the second spin is no neighbour.
    """
    if not near[1]:
        return 0.0, 1.0
    inside = np.flatnonzero(near)  # begins with the second spin
    to_spin = np.full(degree, theta)
    to_spin[: len(inside)] = correlations[0, inside]
    among = np.outer(to_spin, to_spin)
    among[: len(inside), : len(inside)] = correlations[np.ix_(inside, inside)]
    np.fill_diagonal(among, 1.0)
    on_tree = np.full(degree, theta)
    among_tree = np.outer(on_tree, on_tree)
    np.fill_diagonal(among_tree, 1.0)
    noise = _noise(among, to_spin) / _noise(among_tree, on_tree)
    return float(np.linalg.solve(among, to_spin)[0]), noise


def _noise(among: FloatArray, to_spin: FloatArray) -> float:
    """Residual times the first regressor's entry of the inverse: its variance, but for M."""
    inverse = np.linalg.inv(among)
    return float((1 - to_spin @ inverse @ to_spin) * inverse[0, 0])
