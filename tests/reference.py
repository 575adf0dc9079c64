"""Slow, plain twins of what the package computes. Imports nothing of it."""

import itertools

import numpy as np
from sklearn.linear_model import LinearRegression, Ridge


def pair_sums(values):
    """Sums over samples of products of two columns, by the definition."""
    n_spins = values.shape[1]
    return np.array([[int((values[:, i].astype(int) * values[:, j]).sum()) for j in range(n_spins)] for i in range(n_spins)])


def regressions(values, penalty, fit_fields, weights=None):
    """Rows of coefficients and intercepts of each column on all others, one scikit-learn regression each."""
    n_spins = values.shape[1]
    rows, intercepts = np.zeros((n_spins, n_spins)), np.zeros(n_spins)
    for i in range(n_spins):
        others = [j for j in range(n_spins) if j != i]
        if penalty:
            model = Ridge(alpha=penalty, fit_intercept=fit_fields, solver="svd")
        else:
            model = LinearRegression(fit_intercept=fit_fields)
        model.fit(values[:, others], values[:, i], sample_weight=weights)
        rows[i, others], intercepts[i] = model.coef_, model.intercept_
    return rows, intercepts


def two_stage(values, ridge, prune, fit_fields):
    """The paper's two stages for each column: ridge on all others, prune, least squares on the rest."""
    n_spins = values.shape[1]
    stage_one, _ = regressions(values, ridge * n_spins, fit_fields)
    stage_two = np.zeros_like(stage_one)
    for i in range(n_spins):
        kept = np.flatnonzero(np.abs(stage_one[i]) > prune)
        if len(kept):
            stage_two[i, kept] = LinearRegression(fit_intercept=fit_fields).fit(values[:, kept], values[:, i]).coef_
    return stage_one, stage_two


def probabilities(couplings, fields):
    """All states of a small Ising model and their probabilities, by enumeration."""
    states = np.array(list(itertools.product((-1, 1), repeat=len(fields))))
    energy = 0.5 * np.einsum("si,ij,sj->s", states, couplings, states) + states @ fields
    weight = np.exp(energy - energy.max())
    return states, weight / weight.sum()


def completed_inverse(matrix, unknown):
    """Inverse of the completion of a matrix whose inverse is zero at the unknown pairs, by Newton steps on their entries."""
    matrix = matrix.copy()
    for _ in range(200):
        inverse = np.linalg.inv(matrix)
        gradient = np.array([inverse[i, j] for i, j in unknown])
        if np.abs(gradient).max() < 1e-15:
            break
        hessian = np.array(
            [[inverse[i, k] * inverse[j, m] + inverse[i, m] * inverse[j, k] for k, m in unknown] for i, j in unknown]
        )
        step = np.linalg.solve(hessian, gradient)
        for (i, j), change in zip(unknown, step, strict=True):
            matrix[i, j] += change
            matrix[j, i] += change
    return np.linalg.inv(matrix)
