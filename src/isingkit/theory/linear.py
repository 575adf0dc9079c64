"""What ordinary least squares finds on a tree: Theorem 1 and its inverse."""

import numpy as np
from numpy.typing import ArrayLike

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotConvergedError, SettingError
from isingkit.theory.spectrum import MOST_STEPS, STRONGEST, numbers


def linear_means(couplings: ArrayLike) -> FloatArray:
    r"""Theorem 1: mean estimates of one spin's couplings by least squares, with samples enough.
    [eq:solution-Jbar-lamda=00003D0-1]

    [eq:solution-Jbar-lamda=00003D0] where all are of one strength.

    \bar J_j = (\sinh(2 J_j) / 2) / (1 + \sum_k \sinh^2 J_k): shrunk, but zero where J_j is zero.
    The other spins may be coupled in any way that makes a tree.

    Parameters
    ----------
    couplings
        The couplings of one spin; zeros are no neighbours.

    Examples
    --------
    >>> from isingkit import theory
    >>> theory.linear_means([0.4, -0.4, 0.4, 0]).round(4)
    array([ 0.2948, -0.2948,  0.2948,  0.    ])
    """
    couplings = numbers("couplings", couplings)
    if not np.all(np.abs(couplings) <= STRONGEST):
        expected = f"finite numbers, at most {STRONGEST:g} in size"
        raise SettingError(setting="couplings", value=couplings, expected=expected)
    diagonal = 1 + np.sum(np.sinh(couplings) ** 2)  # H_ii
    return np.sinh(2 * couplings) / 2 / diagonal


def couplings_from_linear(means: ArrayLike) -> FloatArray:
    r"""The inverse of Theorem 1: one spin's couplings from its mean estimates by least squares.
    [eq:solution-Jbar-lamda=00003D0-1]

    With H = 1 + \sum_k \sinh^2 J_k each \sinh^2 J_j is (\sqrt{1 + 4 \bar J_j^2 H^2} - 1) / 2, which
    leaves one equation for H. It is convex, and its smaller root is the paramagnetic one, where
    \sum \tanh^2 J / (1 + \tanh^2 J) < 1: on random regular graphs just (c - 1) \tanh^2 K < 1.
    Newton's steps from H = 1 never overshoot it.

    Parameters
    ----------
    means
        Estimates of one spin's couplings by least squares; zeros are no neighbours.

    Examples
    --------
    >>> from isingkit import theory
    >>> theory.couplings_from_linear(theory.linear_means([0.4, -0.1, 0.7])).round(6)
    array([ 0.4, -0.1,  0.7])
    """
    means = numbers("means", means)
    if not np.isfinite(means).all():
        raise SettingError(setting="means", value=means, expected="finite numbers")
    diagonal = 1.0  # H
    for _ in range(MOST_STEPS):
        roots = np.sqrt(1 + 4 * (means * diagonal) ** 2)
        excess = 1 + np.sum(roots - 1) / 2 - diagonal
        slope = 1 - np.sum(2 * means**2 * diagonal / roots)
        if excess <= 4e-16 * diagonal:
            return np.arcsinh(2 * means * diagonal) / 2
        if slope <= 0:
            raise _no_paramagnetic_tree(means)
        diagonal += excess / slope
    raise NotConvergedError(what="the inverse of Theorem 1", residual=float(excess))


def _no_paramagnetic_tree(means: FloatArray) -> SettingError:
    expected = (
        "least-squares estimates of one spin of a paramagnetic tree "
        "(shown: the sum of their absolute values)"
    )
    return SettingError(setting="means", value=float(np.sum(np.abs(means))), expected=expected)
