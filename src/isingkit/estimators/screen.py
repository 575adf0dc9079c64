"""Screen: which pairs deserve a closer look, from ridge regressions whose noise is calibrated on the data."""

from dataclasses import dataclass

import numpy as np

from isingkit.estimators.normal import Matrix, NormalEquations, inverse_of

RIDGES = (0.3, 1.0, 3.0)


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """Ridge estimates in units of their noise."""

    scores: Matrix  # (n_spins, n_spins): symmetric, 0 on the diagonal; about normal with standard deviation 1 for far pairs
    ridge: float  # the one of the smallest leave-one-out error
    error: float  # mean squared leave-one-out error of a spin


def screen(normal: NormalEquations) -> Screen:
    """The screen by the ridge among RIDGES that predicts left-out samples best."""
    if normal.changes.sum() < 2:
        return Screen(np.zeros_like(normal.matrix), RIDGES[-1], 1.0)
    return min((screen_at(normal, ridge) for ridge in RIDGES), key=lambda one: one.error)


def screen_at(normal: NormalEquations, ridge: float) -> Screen:
    r"""Scores of ridge estimates at one ridge.

    With C the sample correlations, z = \lambda / \alpha and R = (C + z)^{-1}: t = Tr C R / N is the share of unknowns in use, a
    residual left out is a residual over 1 - t / \alpha, and the noise of \hat J_ij is E_i [C' (C' + k)^{-2}]_jj / M, where the true
    C' with its effective ridge k is told from the sample's by t2: [C R^2]_jj (1 - t2 / \alpha).
    """
    n_spins, n_samples = normal.n_spins, normal.n_samples
    alpha, z = n_samples / n_spins, ridge * n_spins / n_samples
    lower = np.tril(inverse_of(normal, ridge))
    resolvent = n_samples * (lower + np.tril(lower, -1).T)
    diagonal, squares = np.diagonal(resolvent).copy(), np.einsum("ij,ij->i", resolvent, resolvent)
    in_use, turn = 1 - z * diagonal[normal.changes].mean(), -(diagonal - z * squares)[normal.changes].mean()
    effective = z / (1 - in_use / alpha)
    in_use_twice = (in_use + effective * turn) / (1 + effective * turn / alpha)
    left_out = (1 / diagonal - z * squares / diagonal**2) / (1 - in_use / alpha) ** 2
    noise = np.outer(left_out, (diagonal - z * squares) * (1 - in_use_twice / alpha)) / n_samples
    scores = -resolvent / diagonal[:, None] / np.sqrt(np.maximum(noise, 1e-300))
    scores = (scores + scores.T) / 2
    scores[~normal.changes], scores[:, ~normal.changes] = 0.0, 0.0
    scores[tuple(normal.unobserved.T)] = scores[tuple(normal.unobserved.T[::-1])] = 0.0
    np.fill_diagonal(scores, 0.0)
    return Screen(scores, ridge, float(left_out[normal.changes].mean()))
