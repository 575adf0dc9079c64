"""Tests of single couplings: the likelihood's score given the neighbours of both spins.

Tails hold for rare events. Throughout, of two spins s and s' that are independent given their
neighbours: means m and n, and g = (s - m)(s' - n) + (s - m) u + (s' - n) v, whose sum over samples
is the score. The tuple `terms` is (m, n, u, v), each (n_samples,).
"""

from math import exp as exp_of
from math import log as log_of
from math import sqrt

import numpy as np
from numba import njit

from isingkit._kernels.cells import (
    coefficients_of,
    into_cells,
    number_patterns,
    regressors_of,
)
from isingkit._kernels.elementary import exp, log, take_tanh
from isingkit._kernels.estimators import substitute
from isingkit._kernels.flags import PART, VECTOR_PART
from isingkit._kernels.logistic import logistic, predict, project, ridges_of
from isingkit._kernels.robust import as_normal, grouped_variance
from isingkit._kernels.workspace import fill, matrix, numbers, whole_numbers

_SIDES = np.int64(2)  # spins of a pair, in the type that room is made for
_STEPS = 60  # of Newton's method, or halvings
_ATOM = 0.4  # what v is at least, where all of a tail is one outcome
SMALL = 2.0  # a score so many standard errors away or less needs no better tail


@njit(**VECTOR_PART)
def _tilted(terms, weights, t):
    """First two derivatives at t of the cumulant function of the sum of w g."""
    first, second, influence, other = terms
    slope, curvature = 0.0, 0.0
    equal, unequal = exp_of(t), exp_of(-t)
    for k in range(len(weights)):
        m, n, u, v = first[k], second[k], influence[k], other[k]
        # exp(t g) is a product of these and a factor that all four outcomes share
        up, right = exp(t * (u - n)), exp(t * (v - m))
        down, left = 1 / up, 1 / right
        total, mean, square = 0.0, 0.0, 0.0
        for spin in (-1.0, 1.0):
            for neighbour in (-1.0, 1.0):
                g = (spin - m) * (neighbour - n) + (spin - m) * u + (neighbour - n) * v
                tilt = equal if spin == neighbour else unequal
                tilt = tilt * (up if spin > 0 else down) * (right if neighbour > 0 else left)
                probability = (1 + spin * m) * (1 + neighbour * n) * tilt
                total += probability
                mean += probability * g
                square += probability * g * g
        mean /= total
        slope += weights[k] * mean
        curvature += weights[k] * (square / total - mean * mean)
    return slope, curvature


@njit(**VECTOR_PART)
def _cumulant(terms, weights, t):
    """The cumulant function itself."""
    first, second, influence, other = terms
    result = 0.0
    equal, unequal = exp_of(t), exp_of(-t)
    for k in range(len(weights)):
        m, n, u, v = first[k], second[k], influence[k], other[k]
        up, right = exp(t * (u - n)), exp(t * (v - m))
        down, left = 1 / up, 1 / right
        plus, minus = (1 + m) * up, (1 - m) * down
        total = equal * (plus * (1 + n) * right + minus * (1 - n) * left)
        total += unequal * (plus * (1 - n) * left + minus * (1 + n) * right)
        result += weights[k] * (log(0.25 * total) + t * (m * n - m * u - n * v))
    return result


@njit(**PART)
def _largest(values):
    largest = 0.0
    for k in range(len(values)):
        largest = max(largest, abs(values[k]))
    return largest


@njit(**PART)
def tail(terms, weights, score, variance):
    """Signed z-score of a score, the sum of w g.

    Barndorff-Nielsen's r*: with K the cumulant function and K'(t) = score,
    r = sign(t) sqrt(2 (t score - K)) and v = t sqrt(K''), r + log(v / r) / r has nearly normal
    tails, even where spins hardly ever change.
    """
    plain, size = score / sqrt(variance), abs(score)
    if abs(plain) < SMALL:
        return plain
    sign = 1.0 if score > 0 else -1.0
    reach = 40.0 / (2 + _largest(terms[2]) + _largest(terms[3]))
    low, high = 0.0, min(size / variance, reach)
    slope, curvature = _tilted(terms, weights, sign * high)
    while sign * slope < size and high < reach:
        low, high = high, min(2 * high, reach)
        slope, curvature = _tilted(terms, weights, sign * high)
    t = high
    # K' rises: Newton's steps, or halves of what is left where they lead out of it
    for _ in range(_STEPS):
        off = size - sign * slope
        if abs(off) < 1e-7 * size or high - low < 1e-9 * high:
            break
        if off > 0:
            low = t
        else:
            high = t
        t = t + off / curvature if curvature > 0 else -1.0
        if not low < t < high:
            t = (low + high) / 2
        slope, curvature = _tilted(terms, weights, sign * t)
    square = 2 * (t * size - _cumulant(terms, weights, sign * t))
    r = sqrt(max(square, 0.0))
    if r < 0.5:
        return sign * r
    v = max(t * sqrt(max(curvature, 0.0)), _ATOM)
    return sign * (r + log_of(v / r) / r)


@njit(**VECTOR_PART)
def _score(r, q, terms, weights):
    """The sum of w g with r = s - m and q = s' - n, and its variance."""
    first, second, influence, other = terms
    score, variance = 0.0, 0.0
    for k in range(len(weights)):
        u, v = influence[k], other[k]
        mine, others = 1 - first[k] * first[k], 1 - second[k] * second[k]
        score += weights[k] * (r[k] * q[k] + r[k] * u + q[k] * v)
        variance += weights[k] * (mine * others + mine * u * u + others * v * v)
    return score, variance


@njit(**PART)
def _design_effect(r, q, terms, samples, variance, room):
    """By what factor the score's variance exceeds that of as many equal, independent samples.

    And the degrees of freedom of that number, 0 for no end of them. What a pair's own groups say
    is weighed against all pairs', by degrees of freedom.
    room: (n_samples,), overwritten
    """
    weights, squares, groups, bounds = samples[1], samples[3], samples[4], samples[5]
    if len(groups) > 0:
        for k in range(len(weights)):
            score = r[k] * q[k] + r[k] * terms[2][k] + q[k] * terms[3][k]
            room[k] = weights[k] * score
        found, freedom = grouped_variance(room, weights, groups)
        effect = freedom * bounds[1] * found / variance + bounds[2]  # of all pairs it is 1
        freedom += bounds[2]
        return max(effect / freedom, bounds[0]), freedom
    if len(squares) > 0:
        return _score(r, q, terms, squares)[1] / variance, 0.0
    return 1.0, 0.0


@njit(**PART)
def _regression(i, without, rival, problem, means, residual, seen, cell):
    """The regression of spin i on its neighbours but one, and on a rival of that (or none: -1).

    Gives the design of cells, the Cholesky factor of the Hessian, 1 - m^2 of each cell, and
    information.
    problem: (samples, graph, coefficients, penalties)
    means, residual: (n_samples,), overwritten with m and s - m; 1 and 0 in rows that lack something
    seen, cell: (n_samples,), overwritten with the weights of the other rows, and their cells
    """
    samples, graph, coefficients, penalties = problem
    regressors = regressors_of(i, without, rival, graph)
    regression = into_cells(i, without, regressors, samples, residual, seen, cell)
    design = regression[2]
    n_cells = design.shape[1]
    state = (numbers(n_cells), numbers(n_cells), numbers(n_cells))
    x = numbers(len(design))
    coefficients_of(i, regressors, graph, coefficients, x)
    ridges = ridges_of(penalties, len(regressors), len(design))
    factor, _ = logistic(regression, ridges, 0.0, x, state)
    mean, _, variance = state
    information = 0.0
    take_tanh(mean, 1.0)
    for c in range(n_cells):
        information += variance[c]
        variance[c] = 1 - mean[c] * mean[c]
    for k in range(len(cell)):
        means[k] = mean[cell[k]] if seen[k] > 0 else 1.0
        residual[k] = residual[k] - means[k] if seen[k] > 0 else 0.0
    return design, factor, variance, information


@njit(**PART)
def _orthogonalise(wanted, both, seen, cell, design, factor, variance, influence):
    """influence: (n_samples,), overwritten with `wanted` less its projection on the regressors.

    `wanted` is 0 in rows not seen by both. The projection is that of the regression: what its
    coefficients could have made of it.
    """
    made, x = numbers(design.shape[1]), numbers(len(design))
    fill(made, 0.0)
    for k in range(len(cell)):
        influence[k] = wanted[k] if both[k] > 0 else 0.0
        made[cell[k]] += seen[k] * influence[k]
    for c in range(len(made)):
        made[c] *= variance[c]
    project(design, made, x)
    substitute(factor, x, len(x))
    predict(x, design, made)
    for k in range(len(cell)):
        influence[k] -= made[cell[k]]


@njit(**PART)
def _into_joint_cells(joint, n_patterns, terms, weights, taken):
    """Samples of the same cells of both regressions taken together: their number.

    joint: (n_samples,), numbers of pairs of cells, overwritten
    terms, weights: (n_samples,) each, overwritten with those of joint cells
    taken: (n_samples,), overwritten
    """
    n_joint = len(number_patterns(joint, n_patterns))
    first, second, influence, other = terms
    for c in range(n_joint):
        taken[c] = 0.0
    # of a joint cell, the first sample comes no earlier than its number: what is overwritten has
    # been read
    for k in range(len(joint)):
        c, weight = joint[k], weights[k]
        first[c], second[c], influence[c], other[c] = first[k], second[k], influence[k], other[k]
        taken[c] += weight
    for c in range(n_joint):
        weights[c] = taken[c]
    return n_joint


@njit(**PART)
def score_test_couplings(start, stop, ends, rivals, problem, found, residuals):
    """found[0, p] = z-score of the coupling of pair p in the graph without it, given rivals.

    Its spins i, j are ends[2 p], ends[2 p + 1], its rivals stand in the same places, one for each
    end, or none (-1). Without a coupling, s_i and s_j are independent
    given the neighbours of both, with means m_i and m_j from their regressions. The score is the
    sum of s_i s_j - m_i m_j = r_i r_j + r_i m_j + r_j m_i, r = s - m, where m_j is made orthogonal
    to the regressors of i, and m_i likewise: the likelihood's own score, given the neighbours. Its
    z-score is multiplied by sqrt(1 - n / M), n the mean number of coefficients spent. Rows that
    matter differently or belong together count as fewer samples, by the variance that they give the
    score.
    problem: (samples, graph, coefficients, penalties)
    found: (3, n_pairs), z-scores, then information of both, sums of w (1 - m^2)
    residuals: (2 n_pairs, n_samples), w (s - m) of ends     both overwritten
    """
    weights = problem[0][1]
    n_samples = len(weights)
    means, left, seen = (
        matrix(_SIDES, n_samples),
        matrix(_SIDES, n_samples),
        matrix(_SIDES, n_samples),
    )
    influence, both = matrix(_SIDES, n_samples), whole_numbers(n_samples)
    room = numbers(n_samples)
    cell, other_cell = whole_numbers(n_samples), whole_numbers(n_samples)
    for p in range(start, stop):
        i, j = ends[2 * p], ends[2 * p + 1]
        design, factor, variances, found[1, p] = _regression(
            i, j, rivals[2 * p], problem, means[0], left[0], seen[0], cell
        )
        others, other_factor, other_variances, found[2, p] = _regression(
            j, i, rivals[2 * p + 1], problem, means[1], left[1], seen[1], other_cell
        )
        total, other_total = 0.0, 0.0
        for k in range(n_samples):
            both[k] = 1 if seen[0, k] > 0 and seen[1, k] > 0 else 0
            total += seen[0, k]
            other_total += seen[1, k]
            residuals[2 * p, k] = weights[k] * left[0, k]
            residuals[2 * p + 1, k] = weights[k] * left[1, k]
        _orthogonalise(means[1], both, seen[0], cell, design, factor, variances, influence[0])
        _orthogonalise(
            means[0], both, seen[1], other_cell, others, other_factor, other_variances, influence[1]
        )
        terms = (means[0], means[1], influence[0], influence[1])
        score, variance = _score(left[0], left[1], terms, weights)
        found[0, p] = 0.0
        if variance > 1e-6:
            spent = (len(design) + 1) / max(total, 1.0) + (len(others) + 1) / max(other_total, 1.0)
            effect, freedom = _design_effect(left[0], left[1], terms, problem[0], variance, room)
            for k in range(n_samples):
                room[k] = weights[k] / effect  # as if there were so many samples
            n_cells, n_patterns = n_samples, 4 * design.shape[1] * others.shape[1]
            if abs(score) > SMALL * sqrt(variance) and n_patterns <= n_samples:
                for k in range(n_samples):
                    # terms are those of the cells, and of what is missing
                    lacks = (2 if seen[0, k] > 0 else 0) + (1 if seen[1, k] > 0 else 0)
                    cell[k] = 4 * (cell[k] * others.shape[1] + other_cell[k]) + lacks
                n_cells = _into_joint_cells(cell, n_patterns, terms, room, left[0])
            few = (terms[0][:n_cells], terms[1][:n_cells], terms[2][:n_cells], terms[3][:n_cells])
            z_score = tail(few, room[:n_cells], score / effect, variance / effect)
            found[0, p] = as_normal(sqrt(max(1 - spent / 2, 0.1)) * z_score, freedom)
