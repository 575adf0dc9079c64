"""Tests of single couplings: the likelihood's score given the neighbours of both spins, with tails that hold for rare events."""

import numpy as np
from numba import njit

from isingkit._kernels.auto import logistic, rows_seen
from isingkit._kernels.elementary import exp
from isingkit._kernels.sources import spin_row

_STEPS = 60  # of Newton's method, or halvings
_ALIKE = 0.9  # correlation of spins that no data can tell apart
_ATOM = 0.4  # what v is at least, where all of a tail is one outcome
SMALL = 2.0  # a score so many standard errors away or less needs no better tail


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _tilted(first, second, lever, other, weights, t):
    """First two derivatives at t of the cumulant function of the sum of w g, g as in `tail`."""
    slope, bend = 0.0, 0.0
    for k in range(len(weights)):
        m, n, u, v = first[k], second[k], lever[k], other[k]
        total, mean, square = 0.0, 0.0, 0.0
        for spin in (-1.0, 1.0):
            for neighbour in (-1.0, 1.0):
                g = (spin - m) * (neighbour - n) + (spin - m) * u + (neighbour - n) * v
                chance = (1 + spin * m) * (1 + neighbour * n) * exp(t * g)
                total += chance
                mean += chance * g
                square += chance * g * g
        mean /= total
        slope += weights[k] * mean
        bend += weights[k] * (square / total - mean * mean)
    return slope, bend


@njit(cache=True, nogil=True, fastmath=False)
def _cumulant(first, second, lever, other, weights, t):
    """The cumulant function itself."""
    result = 0.0
    for k in range(len(weights)):
        m, n, u, v = first[k], second[k], lever[k], other[k]
        total = 0.0
        for spin in (-1.0, 1.0):
            for neighbour in (-1.0, 1.0):
                g = (spin - m) * (neighbour - n) + (spin - m) * u + (neighbour - n) * v
                total += 0.25 * (1 + spin * m) * (1 + neighbour * n) * np.exp(t * g)
        result += weights[k] * np.log(total)
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
def _given(i, j, rival, spins, weights, indptr, indices, ridges, fields, couplings, means, residual):
    """The regression of spin i on its neighbours but j, and on a rival of j (or none: -1): design, inverse Hessian and curvatures.

    means, residual: (n_samples,), overwritten with m and s - m; 1 and 0 in rows that lack s_i or one of its neighbours
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
    own, seen, field, curvature = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    spin_row(spins, i, own)
    rows_seen(own, design[:size], weights, seen)
    hessian, _ = logistic(own, design[:size], seen, ridges, False, x[:size], field, residual, curvature)
    for k in range(n_samples):
        residual[k] = residual[k] / seen[k] if seen[k] > 0 else 0.0
        means[k] = own[k] - residual[k] if seen[k] > 0 else 1.0
    return design[:size], np.linalg.inv(hessian), curvature


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
def _deviate(i, j, first, second, spins, weights, indptr, indices, ridges, fields, couplings, means, residuals):
    """Signed normal deviate of one coupling given neighbours and rivals of both spins; and the curvatures of both regressions."""
    n_samples = len(weights)
    fit = (spins, weights, indptr, indices, ridges, fields, couplings)
    regressions = (_given(i, j, first, *fit, means[0], residuals[0]), _given(j, i, second, *fit, means[1], residuals[1]))
    levers, wanted = np.empty((2, n_samples)), np.empty(n_samples)
    spent = 1.0
    for side in range(2):
        design, inverse, curvature = regressions[side]
        for k in range(n_samples):
            wanted[k] = means[1 - side, k] if means[0, k] < 1 and means[1, k] < 1 else 0.0
        levers[side] = wanted - np.dot(np.dot(inverse, np.dot(design, curvature * wanted)), design)
        spent -= (len(design) + 1) / (2 * max((weights * (means[side] < 1)).sum(), 1.0))
    score, variance = _score(residuals[0], residuals[1], means[0], means[1], levers[0], levers[1], weights)
    deviate = 0.0
    if variance > 1e-6:
        deviate = np.sqrt(max(spent, 0.1)) * tail(means[0], means[1], levers[0], levers[1], weights, score, variance)
    return deviate, regressions[0][2], regressions[1][2]


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
        deviates[p], own, other = _deviate(pairs[p, 0], pairs[p, 1], rivals[p, 0], rivals[p, 1], *fit, means, left)
        information[p, 0], information[p, 1] = own.sum(), other.sum()
        for side in range(2):
            residuals[p, side] = weights * left[side]
