"""Choosing a network: elimination on pair sums, logistic refits on few neighbours, and tests of single couplings."""

import numpy as np
from numba import njit

from isingkit._kernels.elementary import exp, tanh

_LEAST_SHARED = 0.64  # variance of the mean of two directed couplings, at least, in units of that of either
KEPT = 0  # in the order of elimination
_STEPS = 30
_SHORT = 1e-4  # step of Newton's method after which the next would be about its square
_ALIKE = 0.9  # correlation of spins that no data can tell apart
_ATOM = 0.4  # what v is at least, where all of a tail is one outcome
_NEARLY = 1.0  # by so much less may a rival serve
_SMALL = 2.0  # a score so many standard errors away or less needs no better tail, nor does a spin make a rival by it


@njit(cache=True, nogil=True, fastmath=False)
def eliminate(start, stop, normal, indptr, indices, n_samples, cost, order):
    """Drop the weakest candidate of spin i in least squares, again and again, while that costs less than `cost`.

    normal: (n_spins, n_spins), S'S     indptr, indices: candidates, CSR     order: like indices,
    overwritten: 1 for the first that was dropped, and so on; KEPT for those that were not
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
        order[first : first + size] = KEPT
        for number in range(size):
            weakest, least = -1, np.inf
            for a in range(size):
                if alive[a] and x[a] * x[a] < least * inverse[a, a]:
                    weakest, least = a, x[a] * x[a] / inverse[a, a]
            if n_samples * np.log1p(least / left) >= cost:
                break
            alive[weakest] = False
            order[first + weakest] = number + 1
            left += least
            row = inverse[weakest] / inverse[weakest, weakest]
            own = x[weakest]
            for a in range(size):
                x[a] -= own * row[a]
                pivot = inverse[a, weakest]
                for b in range(size):
                    inverse[a, b] -= pivot * row[b]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _responses(own, field, weights, residual, curvature):
    """residual, curvature: overwritten with w (s - tanh f) and w (1 - tanh^2 f)."""
    for k in range(len(field)):
        mean = tanh(field[k])
        residual[k] = weights[k] * (own[k] - mean)
        curvature[k] = weights[k] * (1 - mean * mean)


@njit(cache=True, nogil=True, fastmath=False)
def _logistic(own, design, weights, ridges, x, field, residual, curvature):
    """Fit P(s) ~ exp(s (design' x)) in place by Newton steps; gives the last Hessian.

    design: (n, n_samples)     field, residual, curvature: (n_samples,), overwritten: f, w (s - tanh f), w (1 - tanh^2 f)
    ridges: the penalties on the square of the field, the first coefficient, and of couplings, the others
    """
    size, n_samples = design.shape
    hessian = np.empty((size, size))
    room = np.empty((size, n_samples))
    for _ in range(_STEPS):
        field[:] = np.dot(x, design)
        _responses(own, field, weights, residual, curvature)
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
        x += change / max(longest, 1.0)
        if longest < _SHORT:
            break
    field[:] = np.dot(x, design)
    _responses(own, field, weights, residual, curvature)
    return hessian


@njit(cache=True, nogil=True, fastmath=False)
def _rows_seen(own, design, weights, seen):
    """seen: overwritten with the weights of the rows in which neither the spin nor any of its neighbours is missing, else 0."""
    for k in range(len(own)):
        seen[k] = weights[k] * own[k] * own[k]
    for a in range(1, len(design)):
        for k in range(len(own)):
            seen[k] *= design[a, k] * design[a, k]  # 1, or 0 where missing


@njit(cache=True, nogil=True, fastmath=False)
def refit(start, stop, chosen, spins, weights, indptr, indices, ridges, fields, couplings, inverses, places, residuals, curvatures):
    """Logistic regressions of the chosen spins, from the one at `start` to that at `stop`, on their neighbours.

    spins: (n_spins, n_samples), 0 where missing     indptr, indices: neighbours, CSR
    fields: (n_spins,)     couplings: like indices
    inverses: inverse Hessians, spin after spin, from `places` on     residuals, curvatures: (n_spins, n_samples)
    All but what describes the problem is overwritten.
    """
    n_samples = spins.shape[1]
    seen, state = np.empty(n_samples), np.empty(n_samples)
    for number in range(start, stop):
        i = chosen[number]
        first, size = indptr[i], indptr[i + 1] - indptr[i] + 1
        design, x = np.empty((size, n_samples)), np.zeros(size)
        design[0] = 1.0
        for a in range(1, size):
            design[a] = spins[indices[first + a - 1]]
        _rows_seen(spins[i], design, weights, seen)
        hessian = _logistic(spins[i], design, seen, ridges, x, state, residuals[i], curvatures[i])
        inverses[places[i] : places[i + 1]] = np.linalg.inv(hessian).ravel()
        fields[i] = x[0]
        couplings[first : first + size - 1] = x[1:]


@njit(cache=True, nogil=True, fastmath=False)
def unexplained(chosen, correlations, indptr, indices, left):
    """left[a, j] = share of the variance of spin j that the neighbours of spin chosen[a] do not explain, in least squares.

    correlations: (n_spins, n_spins)     left: overwritten
    """
    for row in range(len(chosen)):
        first, size = indptr[chosen[row]], indptr[chosen[row] + 1] - indptr[chosen[row]]
        left[row] = 1.0
        if size == 0:
            continue
        near, part = np.empty((size, size)), np.empty((size, len(correlations)))
        for a in range(size):
            one = indices[first + a]
            part[a] = correlations[one]
            for b in range(size):
                near[a, b] = correlations[one, indices[first + b]]
            near[a, a] = 1.0 + 1e-6
        explained = np.dot(np.linalg.inv(near), part)
        for a in range(size):
            for j in range(len(correlations)):
                left[row, j] -= explained[a, j] * part[a, j]


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
    if abs(plain) < _SMALL:
        return plain
    sign = 1.0 if score > 0 else -1.0
    reach = 40.0 / (2 + np.abs(lever).max() + np.abs(other).max())
    low, high = 0.0, min(size / variance, reach)
    slope, bend = _tilted(first, second, lever, other, weights, sign * high)
    while sign * slope < size and high < reach:
        low, high = high, min(2 * high, reach)
        slope, bend = _tilted(first, second, lever, other, weights, sign * high)
    t = high
    for _ in range(2 * _STEPS):  # K' rises: Newton's steps, or halves of what is left where they lead out of it
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
    n_samples, size = spins.shape[1], 1
    most = indptr[i + 1] - indptr[i] + 2
    design, x = np.empty((most, n_samples)), np.zeros(most)
    design[0], x[0] = 1.0, fields[i]
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] != j:
            design[size], x[size] = spins[indices[k]], couplings[k]
            size += 1
    if rival >= 0:
        design[size] = spins[rival]
        size += 1
    seen, field, curvature = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    _rows_seen(spins[i], design[:size], weights, seen)
    hessian = _logistic(spins[i], design[:size], seen, ridges, x[:size], field, residual, curvature)
    for k in range(n_samples):
        residual[k] = residual[k] / seen[k] if seen[k] > 0 else 0.0
        means[k] = spins[i, k] - residual[k] if seen[k] > 0 else 1.0
    return design[:size], np.linalg.inv(hessian), curvature


@njit(cache=True, nogil=True, fastmath=False)
def _rival(i, j, least, spins, single, weights, indptr, indices, residual, curvature):
    """The spin, no neighbour of i, that would serve its regression without j best, with a deviate of at least `least`; or -1.

    Spins that are nearly the same as j are none: the data cannot tell them apart.
    """
    sizes = np.abs(np.dot(single, (weights * residual).astype(np.float32))) / np.sqrt(max(curvature.sum(), 1e-9))
    sizes[i], sizes[j] = 0.0, 0.0
    for k in range(indptr[i], indptr[i + 1]):
        sizes[indices[k]] = 0.0
    best = sizes.argmax()
    if sizes[best] <= least:
        return -1
    total = weights.sum()
    mean, other = np.dot(weights, spins[best]) / total, np.dot(weights, spins[j]) / total
    covariance = np.dot(weights, spins[best] * spins[j]) / total - mean * other
    return -1 if covariance**2 > _ALIKE**2 * (1 - mean**2) * (1 - other**2) else best


@njit(cache=True, nogil=True, fastmath=False)
def _deviate(i, j, first, second, spins, weights, indptr, indices, ridges, fields, couplings, means, residuals):
    """Signed normal deviate of one coupling given neighbours and rivals of both spins; and the curvatures of both regressions."""
    n_samples = spins.shape[1]
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
def test_couplings(start, stop, pairs, needed, single, spins, weights, indptr, indices, ridges, fields, couplings, deviates):
    """deviates[p] = signed normal deviate of the coupling of pairs[p] in the network without it.

    Without a coupling, s_i and s_j are independent given the neighbours of both, with means m_i and m_j from their regressions. The
    score is the sum of s_i s_j - m_i m_j = r_i r_j + r_i m_j + r_j m_i, r = s - m, where m_j is cleared of what the regression of i
    could have made of it, and m_i likewise: the likelihood's own score, given the neighbours. Where another spin would serve the
    regression of i nearly as well as j, it may be the true neighbour, and j may only be near it: the coupling must hold given that
    rival, too. Deviates below `needed` do not matter. single: spins in single precision     deviates: (n_pairs,), overwritten
    """
    n_samples = spins.shape[1]
    fit = (spins, weights, indptr, indices, ridges, fields, couplings)
    means, residuals = np.empty((2, n_samples)), np.empty((2, n_samples))
    for p in range(start, stop):
        i, j = pairs[p]
        found, own, other = _deviate(i, j, -1, -1, *fit, means, residuals)
        if abs(found) > needed:
            least = max(abs(found) - _NEARLY, _SMALL)
            first = _rival(i, j, least, spins, single, weights, indptr, indices, residuals[0], own)
            second = _rival(j, i, least, spins, single, weights, indptr, indices, residuals[1], other)
            if first >= 0 or second >= 0:
                given, own, other = _deviate(i, j, first, second, *fit, means, residuals)
                found = np.sign(found) * min(abs(found), max(np.sign(found) * given, 0.0))
        deviates[p] = found


@njit(cache=True, nogil=True, fastmath=False)
def edge_errors(start, stop, edges, spins, indptr, indices, inverses, places, residuals, weights, errors):
    """errors[e] = standard error of the mean of both directed couplings of edges start to stop, from their influences by sample.

    edges: (n_edges, 2), places of the two directed couplings in `indices`; the spin of each is edges' row in `indptr`
    A sample's influence on the couplings of spin i is the inverse Hessian times its residual times (1, its neighbours). Where no
    sample contradicts a coupling residuals vanish, but the inverse Hessians do not: they bound the error from below.
    """
    n_samples = spins.shape[1]
    for e in range(start, stop):
        influence, bound = np.zeros(n_samples), 0.0
        for side in range(2):
            k = edges[e, side]
            i = np.searchsorted(indptr, k, side="right") - 1
            first, size = indptr[i], indptr[i + 1] - indptr[i] + 1
            row = inverses[places[i] : places[i + 1]].reshape((size, size))[k - first + 1]
            lever = np.full(n_samples, row[0])
            for a in range(1, size):
                lever += row[a] * spins[indices[first + a - 1]]
            influence += 0.5 * lever * residuals[i]
            bound += 0.5 * row[k - first + 1]
        total = 0.0
        for k in range(n_samples):
            if weights[k] > 0:
                total += influence[k] ** 2 / weights[k]  # a row of weight w is w samples
        errors[e] = np.sqrt(max(total, _LEAST_SHARED * bound))
