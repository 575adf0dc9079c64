"""Tests of single couplings: the likelihood's score given the neighbours of both spins, with tails that hold for rare events."""

import numpy as np
from numba import njit

from isingkit._kernels.auto import logistic, rows_seen
from isingkit._kernels.cells import into_cells, weights_and_sums
from isingkit._kernels.elementary import exp, log
from isingkit._kernels.sources import spin_row

_STEPS = 60  # of Newton's method, or halvings
_ALIKE = 0.9  # correlation of spins that no data can tell apart
_ATOM = 0.4  # what v is at least, where all of a tail is one outcome
SMALL = 2.0  # a score so many standard errors away or less needs no better tail


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _tilted(first, second, lever, other, weights, t):
    """First two derivatives at t of the cumulant function of the sum of w g, g as in `tail`."""
    slope, bend, equal, unequal = 0.0, 0.0, np.exp(t), np.exp(-t)
    for k in range(len(weights)):
        m, n, u, v = first[k], second[k], lever[k], other[k]
        up, right = exp(t * (u - n)), exp(t * (v - m))  # exp(t g) is a product of these and a factor that all four share
        down, left = 1 / up, 1 / right
        total, mean, square = 0.0, 0.0, 0.0
        for spin in (-1.0, 1.0):
            for neighbour in (-1.0, 1.0):
                g = (spin - m) * (neighbour - n) + (spin - m) * u + (neighbour - n) * v
                tilt = (equal if spin == neighbour else unequal) * (up if spin > 0 else down) * (right if neighbour > 0 else left)
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
    """Signed normal deviate of a score: the sum of w g, g = (s - m) (s' - n) + (s - m) u + (s' - n) v, over independent s and s'.

    first, second: their means m and n     lever, other: u and v     all (n_samples,)
    Barndorff-Nielsen's r*: with K the cumulant function and K'(t) = score, r = sign(t) sqrt(2 (t score - K)) and v = t sqrt(K''),
    r + log(v / r) / r has nearly normal tails, even where spins hardly ever change.
    """
    plain, size = score / np.sqrt(variance), abs(score)
    if abs(plain) < SMALL:
        return plain
    sign = 1.0 if score > 0 else -1.0
    reach = 40.0 / (2 + np.abs(lever).max() + np.abs(other).max())
    low, high = 0.0, min(size / variance, reach)
    slope, bend = _tilted(first, second, lever, other, weights, sign * high)
    while sign * slope < size and high < reach:
        low, high = high, min(2 * high, reach)
        slope, bend = _tilted(first, second, lever, other, weights, sign * high)
    t = high
    for _ in range(_STEPS):  # K' rises: Newton's steps, or halves of what is left where they lead out of it
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
        variance += weights[k] * ((1 - m * m) * (1 - n * n) + (1 - m * m) * u * u + (1 - n * n) * v * v)
    return score, variance


@njit(cache=True, nogil=True, fastmath=False)
def _given(i, j, rival, spins, weights, indptr, indices, ridges, fields, couplings, means, residual, seen, cell):
    """The regression of spin i on its neighbours but j, and on a rival of j (or none: -1): design of cells, inverse Hessian,
    1 - m^2 in each cell, and information.

    means, residual: (n_samples,), overwritten with m and s - m; 1 and 0 in rows that lack s_i or one of its neighbours
    seen, cell: (n_samples,), overwritten with the weights of the other rows, and their cells
    """
    n_samples, size = len(weights), 1
    most = indptr[i + 1] - indptr[i] + 2
    design, x = np.empty((most, n_samples)), np.zeros(most)
    design[0], x[0] = 1.0, fields[i]
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] != j:
            spin_row(spins, indices[k], design[size])
            x[size] = couplings[k]
            size += 1
    if rival >= 0:
        spin_row(spins, rival, design[size])
        size += 1
    own = np.empty(n_samples)
    spin_row(spins, i, own)
    rows_seen(own, design[:size], weights, seen)
    cells = into_cells(design[:size], cell)
    totals, sums = weights_and_sums(own, seen, cell, cells.shape[1])
    field, left, curvature = np.empty_like(sums), np.empty_like(sums), np.empty_like(sums)
    hessian, _ = logistic(sums, cells, totals, ridges, False, x[:size], field, left, curvature)
    of_cells = np.tanh(field)
    for k in range(n_samples):
        means[k] = of_cells[cell[k]] if seen[k] > 0 else 1.0
        residual[k] = own[k] - means[k] if seen[k] > 0 else 0.0
    return cells, np.linalg.inv(hessian), 1 - of_cells**2, curvature.sum()


@njit(cache=True, nogil=True, fastmath=False)
def alike(start, stop, pairs, spins, weights, found):
    """found[p] = whether the spins of pairs[p] are so strongly correlated that no data can tell them apart."""
    total, first, second = weights.sum(), np.empty(len(weights)), np.empty(len(weights))
    for p in range(start, stop):
        spin_row(spins, pairs[p, 0], first)
        spin_row(spins, pairs[p, 1], second)
        mean, other = np.dot(weights, first) / total, np.dot(weights, second) / total
        covariance = np.dot(weights, first * second) / total - mean * other
        found[p] = covariance**2 > _ALIKE**2 * (1 - mean**2) * (1 - other**2)


@njit(cache=True, nogil=True, fastmath=False)
def _cleared(wanted, seen, cell, cells, inverse, slack):
    """`wanted`, (n_samples,), without what a regression could have made of it; slack: (n_cells,), 1 - m^2."""
    sums = np.zeros(cells.shape[1])
    for k in range(len(cell)):
        sums[cell[k]] += seen[k] * wanted[k]
    made, left = np.dot(np.dot(inverse, np.dot(cells, slack * sums)), cells), np.empty(len(cell))
    for k in range(len(cell)):
        left[k] = wanted[k] - made[cell[k]]
    return left


@njit(cache=True, nogil=True, fastmath=False)
def _deviate(i, j, first, second, spins, weights, indptr, indices, ridges, fields, couplings, means, residuals):
    """Signed normal deviate of one coupling given neighbours and rivals of both spins; and the information of both regressions."""
    n_samples = len(weights)
    fit = (spins, weights, indptr, indices, ridges, fields, couplings)
    seen, cell = np.empty((2, n_samples)), np.empty((2, n_samples), np.int64)
    one = _given(i, j, first, *fit, means[0], residuals[0], seen[0], cell[0])
    two = _given(j, i, second, *fit, means[1], residuals[1], seen[1], cell[1])
    both = (seen[0] > 0) & (seen[1] > 0)
    lever = _cleared(np.where(both, means[1], 0.0), seen[0], cell[0], one[0], one[1], one[2])
    other = _cleared(np.where(both, means[0], 0.0), seen[1], cell[1], two[0], two[1], two[2])
    spent = (len(one[0]) + 1) / max(seen[0].sum(), 1.0) + (len(two[0]) + 1) / max(seen[1].sum(), 1.0)
    score, variance = _score(residuals[0], residuals[1], means[0], means[1], lever, other, weights)
    deviate = 0.0
    if variance > 1e-6:
        deviate = np.sqrt(max(1 - spent / 2, 0.1)) * tail(means[0], means[1], lever, other, weights, score, variance)
    return deviate, one[3], two[3]


@njit(cache=True, nogil=True, fastmath=False)
def test_couplings(
    start, stop, pairs, rivals, spins, weights, indptr, indices, ridges, fields, couplings, deviates, residuals, information
):
    """deviates[p] = signed normal deviate of the coupling of pairs[p] in the network without it, given rivals[p] or none (-1).

    Without a coupling, s_i and s_j are independent given the neighbours of both, with means m_i and m_j from their regressions. The
    score is the sum of s_i s_j - m_i m_j = r_i r_j + r_i m_j + r_j m_i, r = s - m, where m_j is cleared of what the regression of i
    could have made of it, and m_i likewise: the likelihood's own score, given the neighbours.
    deviates: (n_pairs,)     residuals: (n_pairs, 2, n_samples), w (s - m) of both     information: (n_pairs, 2), sums of
    w (1 - m^2)     overwritten
    """
    means, left = np.empty((2, len(weights))), np.empty((2, len(weights)))
    fit = (spins, weights, indptr, indices, ridges, fields, couplings)
    for p in range(start, stop):
        ends = (pairs[p, 0], pairs[p, 1], rivals[p, 0], rivals[p, 1])
        deviates[p], information[p, 0], information[p, 1] = _deviate(*ends, *fit, means, left)
        for side in range(2):
            residuals[p, side] = weights * left[side]
