"""Tests of single couplings: the likelihood's score given the neighbours of both spins, with tails
that hold for rare events.
"""

import numpy as np
from numba import njit

from isingkit._kernels.auto import rows_seen
from isingkit._kernels.cells import into_cells, weights_and_sums
from isingkit._kernels.elementary import exp, log
from isingkit._kernels.estimators import substitute
from isingkit._kernels.logistic import logistic, predict, project
from isingkit._kernels.sources import spin_row

_STEPS = 60  # of Newton's method, or halvings
_ATOM = 0.4  # what v is at least, where all of a tail is one outcome
SMALL = 2.0  # a score so many standard errors away or less needs no better tail


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _tilted(first, second, lever, other, weights, t):
    """First two derivatives at t of the cumulant function of the sum of w g, g as in `tail`."""
    slope, bend, equal, unequal = 0.0, 0.0, np.exp(t), np.exp(-t)
    for k in range(len(weights)):
        m, n, u, v = first[k], second[k], lever[k], other[k]
        up, right = (
            exp(t * (u - n)),
            exp(t * (v - m)),
        )  # exp(t g) is a product of these and a factor that all four share
        down, left = 1 / up, 1 / right
        total, mean, square = 0.0, 0.0, 0.0
        for spin in (-1.0, 1.0):
            for neighbour in (-1.0, 1.0):
                g = (spin - m) * (neighbour - n) + (spin - m) * u + (neighbour - n) * v
                tilt = (
                    (equal if spin == neighbour else unequal)
                    * (up if spin > 0 else down)
                    * (right if neighbour > 0 else left)
                )
                chance = (1 + spin * m) * (1 + neighbour * n) * tilt
                total += chance
                mean += chance * g
                square += chance * g * g
        mean /= total
        slope += weights[k] * mean
        bend += weights[k] * (square / total - mean * mean)
    return slope, bend


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _cumulant(first, second, lever, other, weights, t):
    """The cumulant function itself."""
    result, equal, unequal = 0.0, np.exp(t), np.exp(-t)
    for k in range(len(weights)):
        m, n, u, v = first[k], second[k], lever[k], other[k]
        up, right = exp(t * (u - n)), exp(t * (v - m))
        down, left = 1 / up, 1 / right
        plus, minus = (1 + m) * up, (1 - m) * down
        total = equal * (plus * (1 + n) * right + minus * (1 - n) * left) + unequal * (
            plus * (1 - n) * left + minus * (1 + n) * right
        )
        result += weights[k] * (log(0.25 * total) + t * (m * n - m * u - n * v))
    return result


@njit(cache=True, nogil=True, fastmath=False)
def tail(first, second, lever, other, weights, score, variance):
    """Signed normal deviate of a score: the sum of w g, g = (s - m) (s' - n) + (s - m) u + (s' - n)
    v, over independent s and s'.

    first, second: their means m and n     lever, other: u and v     all (n_samples,)
    Barndorff-Nielsen's r*: with K the cumulant function and K'(t) = score, r = sign(t) sqrt(2 (t
    score - K)) and v = t sqrt(K''), r + log(v / r) / r has nearly normal tails, even where spins
    hardly ever change.
    """
    plain, size = score / np.sqrt(variance), abs(score)
    if abs(plain) < SMALL:
        return plain
    sign = 1.0 if score > 0 else -1.0
    largest, widest = 0.0, 0.0
    for k in range(len(lever)):
        largest, widest = max(largest, abs(lever[k])), max(widest, abs(other[k]))
    reach = 40.0 / (2 + largest + widest)
    low, high = 0.0, min(size / variance, reach)
    slope, bend = _tilted(first, second, lever, other, weights, sign * high)
    while sign * slope < size and high < reach:
        low, high = high, min(2 * high, reach)
        slope, bend = _tilted(first, second, lever, other, weights, sign * high)
    t = high
    for _ in range(
        _STEPS
    ):  # K' rises: Newton's steps, or halves of what is left where they lead out of it
        off = size - sign * slope
        if abs(off) < 1e-7 * size or high - low < 1e-9 * high:
            break
        if off > 0:
            low = t
        else:
            high = t
        t = t + off / bend if bend > 0 else -1.0
        if not low < t < high:
            t = (low + high) / 2
        slope, bend = _tilted(first, second, lever, other, weights, sign * t)
    square = 2 * (t * size - _cumulant(first, second, lever, other, weights, sign * t))
    r = np.sqrt(max(square, 0.0))
    if r < 0.5:
        return sign * r
    return sign * (r + np.log(max(t * np.sqrt(max(bend, 0.0)), _ATOM) / r) / r)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _score(r, q, first, second, lever, other, weights):
    """The sum of w g, g as in `tail` with r = s - m and q = s' - n, and its variance."""
    score, variance = 0.0, 0.0
    for k in range(len(weights)):
        m, n, u, v = first[k], second[k], lever[k], other[k]
        score += weights[k] * (r[k] * q[k] + r[k] * u + q[k] * v)
        variance += weights[k] * (
            (1 - m * m) * (1 - n * n) + (1 - m * m) * u * u + (1 - n * n) * v * v
        )
    return score, variance


@njit(cache=True, nogil=True, fastmath=False)
def _given(
    i,
    j,
    rival,
    spins,
    weights,
    indptr,
    indices,
    ridges,
    fields,
    couplings,
    means,
    residual,
    seen,
    cell,
):
    """The regression of spin i on its neighbours but j, and on a rival of j (or none: -1): design
    of cells, Cholesky factor of the Hessian, 1 - m^2 in each cell, and information.

    means, residual: (n_samples,), overwritten with m and s - m; 1 and 0 in rows that lack s_i or
    one of its neighbours
    seen, cell: (n_samples,), overwritten with the weights of the other rows, and their cells
    """
    n_samples, size = len(weights), 1
    for k in range(indptr[i], indptr[i + 1]):
        size += indices[k] != j
    size += rival >= 0
    design, x, own = np.ones((size, n_samples)), np.zeros(size), np.empty(n_samples)
    x[0], place = fields[i], 1
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] != j:
            spin_row(spins, indices[k], design[place])
            x[place] = couplings[k]
            place += 1
    if rival >= 0:
        spin_row(spins, rival, design[place])
    spin_row(spins, i, own)
    rows_seen(own, design, weights, seen)
    cells = into_cells(design, cell)
    totals, sums = weights_and_sums(own, seen, cell, cells.shape[1])
    field, left, slack = np.empty_like(sums), np.empty_like(sums), np.empty_like(sums)
    factor, _ = logistic(sums, cells, totals, ridges, 0.0, x, field, left, slack)
    information = 0.0
    for c in range(len(sums)):
        information += slack[c]
        field[c] = np.tanh(field[c])
        slack[c] = 1 - field[c] * field[c]
    for k in range(n_samples):
        means[k] = field[cell[k]] if seen[k] > 0 else 1.0
        residual[k] = own[k] - means[k] if seen[k] > 0 else 0.0
    return cells, factor, slack, information


@njit(cache=True, nogil=True, fastmath=False)
def likeness(start, stop, pairs, spins, weights, found):
    """found[p] = |correlation| of the spins of pairs[p], 0 where one never changes."""
    first, second = np.empty(len(weights)), np.empty(len(weights))
    for p in range(start, stop):
        spin_row(spins, pairs[p, 0], first)
        spin_row(spins, pairs[p, 1], second)
        total, mean, other, product = 0.0, 0.0, 0.0, 0.0
        for k in range(len(weights)):
            total += weights[k]
            mean += weights[k] * first[k]
            other += weights[k] * second[k]
            product += weights[k] * first[k] * second[k]
        mean, other = mean / total, other / total
        variances = (1 - mean * mean) * (1 - other * other)
        found[p] = (
            abs(product / total - mean * other) / np.sqrt(variances) if variances > 0 else 0.0
        )


@njit(cache=True, nogil=True, fastmath=False)
def _clear(wanted, both, seen, cell, cells, factor, slack, lever):
    """lever: (n_samples,), overwritten with `wanted`, 0 in rows not seen by both, less what a
    regression could have made of it.
    """
    made, x = np.zeros(cells.shape[1]), np.empty(len(cells))
    for k in range(len(cell)):
        lever[k] = wanted[k] if both[k] else 0.0
        made[cell[k]] += seen[k] * lever[k]
    for c in range(len(made)):
        made[c] *= slack[c]
    project(cells, made, x)
    substitute(factor, x, len(x))
    predict(x, cells, made)
    for k in range(len(cell)):
        lever[k] -= made[cell[k]]


@njit(cache=True, nogil=True, fastmath=False)
def score_test_couplings(
    start,
    stop,
    pairs,
    rivals,
    spins,
    weights,
    indptr,
    indices,
    ridges,
    fields,
    couplings,
    deviates,
    residuals,
    information,
):
    """deviates[p] = signed normal deviate of the coupling of pairs[p] in the network without it,
    given rivals[p] or none (-1).

    Without a coupling, s_i and s_j are independent given the neighbours of both, with means m_i and
    m_j from their regressions. The score is the sum of s_i s_j - m_i m_j = r_i r_j + r_i m_j + r_j
    m_i, r = s - m, where m_j is cleared of what the regression of i could have made of it, and m_i
    likewise: the likelihood's own score, given the neighbours.
    deviates: (n_pairs,)     residuals: (n_pairs, 2, n_samples), w (s - m) of both
    information: (n_pairs, 2), sums of
    w (1 - m^2)     overwritten
    """
    n_samples = len(weights)
    means, left, seen, levers = (
        np.empty((2, n_samples)),
        np.empty((2, n_samples)),
        np.empty((2, n_samples)),
        np.empty((2, n_samples)),
    )
    cell, both, totals = (
        np.empty((2, n_samples), np.int64),
        np.empty(n_samples, np.bool_),
        np.empty(2),
    )
    fit = (spins, weights, indptr, indices, ridges, fields, couplings)
    for p in range(start, stop):
        i, j = pairs[p, 0], pairs[p, 1]
        mine, factor, slack, information[p, 0] = _given(
            i, j, rivals[p, 0], *fit, means[0], left[0], seen[0], cell[0]
        )
        others, other_factor, other_slack, information[p, 1] = _given(
            j, i, rivals[p, 1], *fit, means[1], left[1], seen[1], cell[1]
        )
        totals[0], totals[1], deviates[p] = 0.0, 0.0, 0.0
        for k in range(n_samples):
            both[k] = seen[0, k] > 0 and seen[1, k] > 0
            for side in range(2):
                totals[side] += seen[side, k]
                residuals[p, side, k] = weights[k] * left[side, k]
        _clear(means[1], both, seen[0], cell[0], mine, factor, slack, levers[0])
        _clear(means[0], both, seen[1], cell[1], others, other_factor, other_slack, levers[1])
        score, variance = _score(
            left[0], left[1], means[0], means[1], levers[0], levers[1], weights
        )
        if variance > 1e-6:
            spent = (len(mine) + 1) / max(totals[0], 1.0) + (len(others) + 1) / max(totals[1], 1.0)
            deviate = tail(means[0], means[1], levers[0], levers[1], weights, score, variance)
            deviates[p] = np.sqrt(max(1 - spent / 2, 0.1)) * deviate
