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


def cayley_tree(degree, depth, coupling, rng):
    """Couplings of a regular tree of some generations around spin 0, with random signs, and each spin's generation."""
    parents, generations = [-1], [0]
    last = [0]
    for generation in range(1, depth + 1):
        fresh = []
        for parent in last:
            for _ in range(degree - (generation > 1)):
                fresh.append(len(parents))
                parents.append(parent)
                generations.append(generation)
        last = fresh
    return tree_couplings(parents, coupling * rng.choice([-1, 1], len(parents))), np.array(generations)


def tree_couplings(parents, strengths):
    """Matrix of couplings of a tree: spin i > 0 hangs on parents[i] < i by strengths[i]."""
    couplings = np.zeros((len(parents), len(parents)))
    for i in range(1, len(parents)):
        couplings[i, parents[i]] = couplings[parents[i], i] = strengths[i]
    return couplings


def tree_correlations(parents, strengths):
    """<s_i s_j> on a tree: the product of tanh J along the path, built spin by spin."""
    n = len(parents)
    correlations = np.eye(n)
    for i in range(1, n):
        correlations[i, :i] = correlations[:i, i] = np.tanh(strengths[i]) * correlations[parents[i], :i]
    return correlations


def mean_estimates(correlations, effective_ridge):
    """(C + k) J = b for spin 0 on all others, by the definition; J, and 1 - 2 b J + J C J."""
    b, rest = correlations[1:, 0], correlations[1:, 1:]
    means = np.linalg.solve(rest + effective_ridge * np.eye(len(b)), b)
    return means, 1 - 2 * b @ means + means @ rest @ means


def least_squares_scatter(couplings, i, j):
    """M times the variance of J_ij and the covariance of J_ij and J_ji, by least squares on the true neighbours; enumerated."""
    n = len(couplings)
    states = np.array(list(itertools.product([-1, 1], repeat=n)), dtype=float)
    weights = np.exp(np.einsum("ai,ij,aj->a", states, couplings, states) / 2)
    weights /= weights.sum()

    def influence(a, b):
        near = np.flatnonzero(couplings[a])
        matrix = states[:, near].T @ (weights[:, None] * states[:, near])
        means = np.linalg.solve(matrix, states[:, near].T @ (weights * states[:, a]))
        residual = states[:, a] - states[:, near] @ means
        return residual * (np.linalg.inv(matrix) @ states[:, near].T)[list(near).index(b)]

    first, second = influence(i, j), influence(j, i)
    return weights @ first**2, weights @ (first * second)
