"""Choosing a network: elimination on pair sums, logistic refits on few neighbours, and tests of single couplings."""

import numpy as np
from numba import njit

_STEPS = 30
_CLEAR = 9.0  # a score so many standard errors away needs no better tail
_SMALL = 0.3  # and one so near 0 has none


@njit(cache=True, nogil=True, fastmath=False)
def eliminate(start, stop, normal, indptr, indices, n_samples, cost, kept):
    """Drop the weakest candidate of spin i in least squares, again and again, while that costs less than `cost`.

    normal: (n_spins, n_spins), S'S     indptr, indices: candidates, CSR     kept: like indices, bool, overwritten
    A candidate costs the rise of M log RSS. With B the inverse of G[a, a], x = B G[a, i]: dropping j raises RSS by x_j^2 / B_jj.
    """
    for i in range(start, stop):
        first, size = indptr[i], indptr[i + 1] - indptr[i]
        if size == 0:
            continue
        block, right = np.empty((size, size)), np.empty(size)
        for a in range(size):
            row = normal[indices[first + a]]
            for b in range(size):
                block[a, b] = row[indices[first + b]]
            block[a, a] *= 1 + 1e-9
            right[a] = row[i]
        inverse = np.linalg.inv(block)
        x = np.dot(inverse, right)
        left = max(normal[i, i] - np.dot(x, right), 1e-9 * normal[i, i])
        alive = np.ones(size, np.bool_)
        for _ in range(size):
            weakest, least = -1, np.inf
            for a in range(size):
                if alive[a] and x[a] * x[a] < least * inverse[a, a]:
                    weakest, least = a, x[a] * x[a] / inverse[a, a]
            if n_samples * np.log1p(least / left) >= cost:
                break
            alive[weakest] = False
            left += least
            row = inverse[weakest] / inverse[weakest, weakest]
            own = x[weakest]
            for a in range(size):
                x[a] -= own * row[a]
                pivot = inverse[a, weakest]
                for b in range(size):
                    inverse[a, b] -= pivot * row[b]
        kept[first : first + size] = alive


@njit(cache=True, nogil=True, fastmath=False)
def _logistic(own, design, weights, ridges, x, field, residual, curvature):
    """Fit P(s) ~ exp(s (design' x)) in place by Newton steps; gives the Hessian at the end.

    design: (n, n_samples)     field, residual, curvature: (n_samples,), overwritten: f, w (s - tanh f), w (1 - tanh^2 f)
    ridges: the penalties on the square of the field, the first coefficient, and of couplings, the others
    """
    size, n_samples = design.shape
    hessian = np.empty((size, size))
    room = np.empty((size, n_samples))
    for _ in range(_STEPS):
        field[:] = np.dot(x, design)
        for k in range(n_samples):
            mean = np.tanh(field[k])
            residual[k] = weights[k] * (own[k] - mean)
            curvature[k] = weights[k] * (1 - mean * mean)
        gradient = np.dot(design, residual)
        for a in range(size):
            for k in range(n_samples):
                room[a, k] = design[a, k] * curvature[k]
        hessian = np.dot(room, design.T)
        for a in range(size):
            penalty = ridges[min(a, 1)]
            gradient[a] -= penalty * x[a]
            hessian[a, a] += penalty
        change = np.linalg.solve(hessian, gradient)
        longest = np.abs(change).max()
        if longest < 1e-7:
            break
        x += change * min(1.0, 1.0 / longest)
    return hessian


@njit(cache=True, nogil=True, fastmath=False)
def refit(start, stop, spins, weights, indptr, indices, ridges, fields, couplings, inverses, places, states, residuals, curvatures):
    """Logistic regression of spins start to stop on their neighbours.

    spins: (n_spins, n_samples), 0 where missing     indptr, indices: neighbours, CSR
    fields: (n_spins,)     couplings: like indices
    inverses: inverse Hessians, spin after spin, from `places` on     states, residuals, curvatures: (n_spins, n_samples)
    All but what describes the problem is overwritten.
    """
    n_samples = spins.shape[1]
    seen = np.empty(n_samples)
    for i in range(start, stop):
        first, size = indptr[i], indptr[i + 1] - indptr[i] + 1
        design, x = np.empty((size, n_samples)), np.zeros(size)
        design[0] = 1.0
        for a in range(1, size):
            design[a] = spins[indices[first + a - 1]]
        for k in range(n_samples):
            seen[k] = weights[k] if spins[i, k] != 0 else 0.0
        hessian = _logistic(spins[i], design, seen, ridges, x, states[i], residuals[i], curvatures[i])
        inverses[places[i] : places[i + 1]] = np.linalg.inv(hessian).ravel()
        fields[i] = x[0]
        couplings[first : first + size - 1] = x[1:]


@njit(cache=True, nogil=True, fastmath=False)
def tail(lever, field, weights, score, variance):
    """Signed normal deviate of a score: the sum of w lever (s - tanh(field)) over independent spins in their fields.

    Barndorff-Nielsen's r*: with K the cumulant function and K'(t) = score, r = sign(t) sqrt(2 (t score - K)) and v = t sqrt(K''),
    r + log(v / r) / r has nearly normal tails, even where spins hardly ever change.
    """
    plain = score / np.sqrt(variance)
    if abs(plain) < _SMALL or abs(plain) > _CLEAR:
        return plain
    t, bend = score / variance, variance
    reach = 40.0 / np.abs(lever).max()
    for _ in range(_STEPS):
        slope, bend = 0.0, 0.0
        for k in range(len(lever)):
            mean, tilted = np.tanh(field[k]), np.tanh(field[k] + t * lever[k])
            slope += weights[k] * lever[k] * (tilted - mean)
            bend += weights[k] * lever[k] ** 2 * (1 - tilted * tilted)
        off = score - slope
        if abs(off) < 1e-7 * abs(score) or bend <= 1e-12 * variance or abs(t) >= reach:
            break
        longest = 0.5 * abs(t) + 0.002 * reach
        t = max(-reach, min(reach, t + max(-longest, min(longest, off / bend))))
    cumulant = 0.0
    for k in range(len(lever)):
        here, there = abs(field[k]), abs(field[k] + t * lever[k])
        log_ratio = there - here + np.log1p(np.exp(-2 * there)) - np.log1p(np.exp(-2 * here))
        cumulant += weights[k] * (log_ratio - t * lever[k] * np.tanh(field[k]))
    square = 2 * (t * score - cumulant)
    if square < _SMALL**2:
        return plain
    r = np.sign(t) * np.sqrt(square)
    return r + np.log(t * np.sqrt(max(bend, 1e-12 * variance)) / r) / r


@njit(cache=True, nogil=True, fastmath=False)
def test_couplings(
    start, stop, pairs, spins, weights, indptr, indices, ridges, fields, couplings, inverses, places, states, residuals, curvatures,
    deviates,
):  # fmt: skip
    """deviates[p] = signed normal deviate of spin j = pairs[p, 1] in the regression of i = pairs[p, 0] on its other neighbours.

    The score of s_j, cleared of what the other neighbours explain of s_j, given the fit without j: the fit at hand where j is no
    neighbour, else one anew. deviates: (n_pairs,), overwritten
    """
    n_samples = spins.shape[1]
    seen, field, residual, curvature = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    for p in range(start, stop):
        i, j = pairs[p]
        first, last = indptr[i], indptr[i + 1]
        own_place = -1
        for k in range(first, last):
            if indices[k] == j:
                own_place = k
        size = last - first + (1 if own_place < 0 else 0)
        design, x = np.empty((size, n_samples)), np.empty(size)
        design[0], x[0] = 1.0, fields[i]
        at = 1
        for k in range(first, last):
            if k != own_place:
                design[at], x[at] = spins[indices[k]], couplings[k]
                at += 1
        for k in range(n_samples):
            seen[k] = weights[k] if spins[i, k] != 0 else 0.0
        inverse = np.empty((size, size))
        if own_place < 0:
            field[:], residual[:], curvature[:] = states[i], residuals[i], curvatures[i]
            inverse[:] = inverses[places[i] : places[i + 1]].reshape((size, size))
        else:
            inverse[:] = np.linalg.inv(_logistic(spins[i], design, seen, ridges, x, field, residual, curvature))
        explained = np.dot(inverse, np.dot(design, curvature * spins[j]))
        lever = spins[j] - np.dot(explained, design)
        variance = np.dot(curvature, lever * lever)
        if variance > 1e-6:
            spent = max(1 - (size + 1) / seen.sum(), 0.1)  # what a fit of so many coefficients leaves of the residuals
            deviates[p] = np.sqrt(spent) * tail(lever, field, seen, np.dot(residual, lever), variance)
        else:
            deviates[p] = 0.0


@njit(cache=True, nogil=True, fastmath=False)
def edge_errors(start, stop, edges, spins, indptr, indices, inverses, places, residuals, weights, errors):
    """errors[e] = standard error of the mean of both directed couplings of edges start to stop, from their influences by sample.

    edges: (n_edges, 2), places of the two directed couplings in `indices`; the spin of each is edges' row in `indptr`
    A sample's influence on the couplings of spin i is the inverse Hessian times its residual times (1, its neighbours).
    """
    n_samples = spins.shape[1]
    for e in range(start, stop):
        influence = np.zeros(n_samples)
        for side in range(2):
            k = edges[e, side]
            i = np.searchsorted(indptr, k, side="right") - 1
            first, size = indptr[i], indptr[i + 1] - indptr[i] + 1
            row = inverses[places[i] : places[i + 1]].reshape((size, size))[k - first + 1]
            lever = np.full(n_samples, row[0])
            for a in range(1, size):
                lever += row[a] * spins[indices[first + a - 1]]
            influence += 0.5 * lever * residuals[i]
        total = 0.0
        for k in range(n_samples):
            if weights[k] > 0:
                total += influence[k] ** 2 / weights[k]  # a row of weight w is w samples
        errors[e] = np.sqrt(total)
