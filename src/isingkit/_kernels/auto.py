"""Choosing a network: elimination on pair sums, and logistic refits on few neighbours."""

import numpy as np
from numba import njit

from isingkit._kernels.cells import into_cells, weights_and_sums
from isingkit._kernels.elementary import tanh
from isingkit._kernels.sources import covariance, spin_row

_LEAST_SHARED = 0.64  # variance of the mean of two directed couplings, at least, in units of that of either
KEPT = 0  # in the order of elimination
_STEPS = 30
_MOST_STEPS = 100  # of Newton's method for a field, each at most 1
_SHORT = 1e-4  # step of Newton's method after which the next would be about its square
_BY_HAND = 24  # rows of a design, below which half a matrix is quicker than a whole one by BLAS
_TRIFLE = 1e-3  # ridge on couplings that are cleared of bias
_MOST_GROWN, _MOST_OPEN = 1.1, 0.25  # factor of the largest coupling, and variance of any, beyond which the clearing has failed


@njit(cache=True, nogil=True, fastmath=False)
def eliminate(start, stop, source, indptr, indices, n_samples, cost, order):
    """Drop the weakest candidate of spin i in least squares, again and again, while that costs less than `cost`.

    source: as `covariance` takes it     indptr, indices: candidates, CSR     order: like indices, overwritten:
    1 for the first that was dropped, and so on; KEPT for those that were not
    A candidate costs the rise of M log RSS. With B the inverse of G[a, a], x = B G[a, i]: dropping j raises RSS by x_j^2 / B_jj.
    """
    for i in range(start, stop):
        first, size = indptr[i], indptr[i + 1] - indptr[i]
        if size == 0:
            continue
        block, right = np.empty((size, size)), np.empty(size)
        for a in range(size):
            for b in range(a + 1):
                block[a, b] = block[b, a] = covariance(source, indices[first + a], indices[first + b])
            block[a, a] *= 1 + 1e-9
            right[a] = covariance(source, indices[first + a], i)
        inverse = np.linalg.inv(block)
        x = np.dot(inverse, right)
        whole = covariance(source, i, i)
        left = max(whole - np.dot(x, right), 1e-9 * whole)
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
def _responses(sums, field, weights, residual, curvature):
    """residual, curvature: overwritten with sums - w tanh f and w (1 - tanh^2 f)."""
    for k in range(len(field)):
        mean = tanh(field[k])
        residual[k] = sums[k] - weights[k] * mean
        curvature[k] = weights[k] * (1 - mean * mean)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _weigh(design, curvature, room, hessian):
    """room, hessian: overwritten with the design times curvatures, and that times the design."""
    for a in range(len(design)):
        for k in range(len(curvature)):
            room[a, k] = design[a, k] * curvature[k]
    if len(design) > _BY_HAND:
        hessian[:] = np.dot(room, design.T)
        return
    for a in range(len(design)):
        for b in range(a + 1):
            total = 0.0
            for k in range(len(curvature)):
                total += room[a, k] * design[b, k]
            hessian[a, b] = hessian[b, a] = total


@njit(cache=True, nogil=True, fastmath=False)
def logistic(sums, design, weights, ridges, unbiased, x, field, residual, curvature):
    """Fit P(s) ~ exp(s (design' x)) in place by Newton steps; gives the last Hessian and the length of the last step.

    sums, weights: (n_cells,), of w s and w, cells of samples or single ones     design: (n, n_cells)
    field, residual, curvature: (n_cells,), overwritten: f, sums - w tanh f, w (1 - tanh^2 f)
    ridges: the penalties on the square of the field, the first coefficient, and of couplings, the others
    unbiased: maximize the likelihood times the square root of the Hessian's determinant (Firth), which clears x of the bias of few
    samples, some x / n_samples for each coefficient, to first order
    """
    size, n_cells = design.shape
    hessian, longest = np.empty((size, size)), np.inf
    room = np.empty((size, n_cells))
    for _ in range(_STEPS):
        field[:] = np.dot(x, design)
        _responses(sums, field, weights, residual, curvature)
        _weigh(design, curvature, room, hessian)
        for a in range(size):
            hessian[a, a] += ridges[min(a, 1)]
        if unbiased:
            _clear_of_bias(design, room, hessian, field, residual)
        gradient = np.dot(design, residual)
        for a in range(size):
            gradient[a] -= ridges[min(a, 1)] * x[a]
        change = np.linalg.solve(hessian, gradient)
        longest = np.abs(change).max()
        x += change / max(longest, 1.0)
        if longest < _SHORT:
            break
    field[:] = np.dot(x, design)
    _responses(sums, field, weights, residual, curvature)
    return hessian, longest


@njit(cache=True, nogil=True, fastmath=False)
def _is_cleared(before, after, variances, last_step):
    """Whether a fit without bias, from `before`, is sound. Where spins are separated it may have several optima, some absurd."""
    largest, was = np.abs(after[1:]).max(), np.abs(before[1:]).max()
    return (
        last_step < _SHORT
        and largest <= _MOST_GROWN * was
        and variances[1:].max() < _MOST_OPEN
        and (before[1:] * after[1:] >= 0).all()
    )


@njit(cache=True, nogil=True, fastmath=False)
def _clear_of_bias(design, room, hessian, field, residual):
    """residual: less h tanh f, where h = w (1 - tanh^2 f) d' H^-1 d is a cell's part in the fit; d its column of the design."""
    parts, h = np.dot(np.linalg.inv(hessian), room), np.zeros(len(field))
    for a in range(len(design)):
        for k in range(len(field)):
            h[k] += design[a, k] * parts[a, k]
    _lessen(residual, h, field)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _lessen(residual, h, field):
    """residual: less h tanh f."""
    for k in range(len(field)):
        residual[k] -= h[k] * tanh(field[k])


@njit(cache=True, nogil=True, fastmath=False)
def rows_seen(own, design, weights, seen):
    """seen: overwritten with the weights of the rows in which neither the spin nor any of its neighbours is missing, else 0."""
    for k in range(len(own)):
        seen[k] = weights[k] * own[k] * own[k]
    for a in range(1, len(design)):
        for k in range(len(own)):
            seen[k] *= design[a, k] * design[a, k]  # 1, or 0 where missing


@njit(cache=True, nogil=True, fastmath=False)
def _design(i, spins, n_samples, indptr, indices):
    """Ones and the neighbours of spin i, (1 + n_neighbours, n_samples)."""
    first, size = indptr[i], indptr[i + 1] - indptr[i] + 1
    design = np.empty((size, n_samples))
    design[0] = 1.0
    for a in range(1, size):
        spin_row(spins, indices[first + a - 1], design[a])
    return design


@njit(cache=True, nogil=True, fastmath=False)
def _cells(i, spins, weights, indptr, indices, own, rows, cell):
    """Design of the regression of spin i on its neighbours, by cells; own, rows, cell: as in `_in_cells`."""
    design = _design(i, spins, len(weights), indptr, indices)
    spin_row(spins, i, own)
    rows_seen(own, design, weights, rows)
    return into_cells(design, cell)


@njit(cache=True, nogil=True, fastmath=False)
def _in_cells(i, spins, weights, indptr, indices, own, rows, cell):
    """The regression of spin i on its neighbours, in cells: sums of w, sums of w s, (n_cells,), and design, (1 + n, n_cells).

    own, rows, cell: (n_samples,), overwritten: the spin, weights of the rows with nothing missing, and the cell of each row
    """
    cells = _cells(i, spins, weights, indptr, indices, own, rows, cell)
    totals, sums = weights_and_sums(own, rows, cell, cells.shape[1])
    return totals, sums, cells


@njit(cache=True, nogil=True, fastmath=False)
def refit(
    start, stop, chosen, spins, weights, indptr, indices, ridges, unbiased, fields, couplings, inverses, places, information, seen
):
    """Logistic regressions of the chosen spins, from the one at `start` to that at `stop`, on their neighbours.

    spins: as `spin_row` takes them     indptr, indices: neighbours, CSR     fields: (n_spins,)     couplings: like indices
    ridges, unbiased: as `logistic` takes them; without bias couplings have next to no ridge
    inverses: inverse Hessians, spin after spin, from `places` on     information: (n_spins,), sums of w (1 - m^2)
    seen: (n_spins,), weight of the rows with nothing missing
    All but what describes the problem is overwritten; where a fit without bias is not sound, with what it was on entry.
    """
    own, rows, cell = np.empty(len(weights)), np.empty(len(weights)), np.empty(len(weights), np.int64)
    for number in range(start, stop):
        i = chosen[number]
        totals, sums, cells = _in_cells(i, spins, weights, indptr, indices, own, rows, cell)
        state, residual, curvature = np.empty_like(sums), np.empty_like(sums), np.empty_like(sums)
        x = np.zeros(len(cells))
        if unbiased:
            x[0], x[1:] = fields[i], couplings[indptr[i] : indptr[i + 1]]
            before, free = x.copy(), np.array([ridges[0], _TRIFLE])
            hessian, last_step = logistic(sums, cells, totals, free, True, x, state, residual, curvature)
            inverse = np.linalg.inv(hessian)
            if len(x) == 1 or not _is_cleared(before, x, np.diag(inverse), last_step):
                continue
        else:
            hessian, _ = logistic(sums, cells, totals, ridges, False, x, state, residual, curvature)
            inverse = np.linalg.inv(hessian)
        inverses[places[i] : places[i + 1]] = inverse.ravel()
        fields[i], information[i], seen[i] = x[0], curvature.sum(), totals.sum()
        couplings[indptr[i] : indptr[i + 1]] = x[1:]


@njit(cache=True, nogil=True, fastmath=False)
def residuals_of(start, stop, chosen, spins, weights, indptr, indices, fields, couplings, residuals):
    """residuals[number] = w (s - m) of spin chosen[number], in the network as it is."""
    n_samples = len(weights)
    own, rows, curvature = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples)
    for number in range(start, stop):
        i = chosen[number]
        design = _design(i, spins, n_samples, indptr, indices)
        spin_row(spins, i, own)
        rows_seen(own, design, weights, rows)
        x = np.empty(len(design))
        x[0], x[1:] = fields[i], couplings[indptr[i] : indptr[i + 1]]
        _responses(rows * own, np.dot(x, design), rows, residuals[number], curvature)


@njit(cache=True, nogil=True, fastmath=False)
def fields_given(start, stop, spins, weights, indptr, indices, couplings, ridge, fields):
    """Fields of spins start to stop where couplings are given: Newton's method for sum_m w_m (s_m - tanh(H + sum_j J_j s_jm)) = 0.

    fields: (n_spins,), a start on entry     ridge: on the squares of fields
    """
    own, rows, cell = np.empty(len(weights)), np.empty(len(weights)), np.empty(len(weights), np.int64)
    for i in range(start, stop):
        totals, sums, cells = _in_cells(i, spins, weights, indptr, indices, own, rows, cell)
        local, residual, curvature = np.zeros_like(sums), np.empty_like(sums), np.empty_like(sums)
        for a in range(1, len(cells)):
            local += couplings[indptr[i] + a - 1] * cells[a]
        for _ in range(_MOST_STEPS):
            _responses(sums, local + fields[i], totals, residual, curvature)
            step = (residual.sum() - ridge * fields[i]) / (curvature.sum() + ridge)
            step = min(max(step, -1.0), 1.0)
            fields[i] += step
            if abs(step) < 1e-9:
                break


@njit(cache=True, nogil=True, fastmath=False)
def _among_neighbours(i, source, indptr, indices):
    """Correlations of the neighbours of spin i with each other, and the square roots of their variances."""
    chosen = indices[indptr[i] : indptr[i + 1]]
    size = len(chosen)
    near, scales = np.empty((size, size)), np.empty(size)
    for a in range(size):
        scales[a] = np.sqrt(max(covariance(source, chosen[a], chosen[a]), 1e-300))
    for a in range(size):
        for b in range(a):
            near[a, b] = near[b, a] = covariance(source, chosen[a], chosen[b]) / (scales[a] * scales[b])
        near[a, a] = 1.0 + 1e-6
    return near, scales


@njit(cache=True, nogil=True, fastmath=False)
def least_eigenvalues(start, stop, source, chosen, indptr, indices, least):
    """least[number] = least eigenvalue of the correlations of the neighbours of spin chosen[number]; 1 where there are none."""
    for number in range(start, stop):
        i = chosen[number]
        least[number] = 1.0
        if indptr[i + 1] > indptr[i]:
            least[number] = np.linalg.eigvalsh(_among_neighbours(i, source, indptr, indices)[0])[0]


@njit(cache=True, nogil=True, fastmath=False)
def unexplained_of_pairs(start, stop, source, pairs, indptr, indices, left):
    """left[p] = share of the variance of spin j that the neighbours of spin i do not explain, in least squares; (i, j) = pairs[p].

    source: as `covariance` takes it     pairs: sorted by i, so that what its neighbours say of each other is found once
    """
    last, size = -1, 0
    chosen, scales, inverse = np.empty(0, np.int64), np.empty(0), np.empty((0, 0))
    for p in range(start, stop):
        i, j = pairs[p]
        if i != last:
            last, chosen = i, indices[indptr[i] : indptr[i + 1]]
            size = len(chosen)
            near, scales = _among_neighbours(i, source, indptr, indices)
            inverse = np.ascontiguousarray(np.linalg.inv(near))
        part, own = np.empty(size), np.sqrt(max(covariance(source, j, j), 1e-300))
        for a in range(size):
            part[a] = covariance(source, chosen[a], j) / (scales[a] * own)
        left[p] = 1.0 - np.dot(part, np.dot(inverse, part))


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


@njit(cache=True, nogil=True, fastmath=False)
def edge_errors(start, stop, edges, spins, weights, indptr, indices, fields, couplings, inverses, places, errors):
    """errors[e] = standard error of the mean of both directed couplings of edges start to stop, from their influences by sample.

    edges: (n_edges, 2), places of the two directed couplings in `indices`; the spin of each is edges' row in `indptr`
    A sample's influence on the couplings of spin i is the inverse Hessian times its residual times (1, its neighbours). Where no
    sample contradicts a coupling residuals vanish, but the inverse Hessians do not: they bound the error from below.
    """
    own, rows, cell = np.empty(len(weights)), np.empty(len(weights)), np.empty(len(weights), np.int64)
    for e in range(start, stop):
        influence, bound = np.zeros(len(weights)), 0.0
        for side in range(2):
            k = edges[e, side]
            i = np.searchsorted(indptr, k, side="right") - 1
            first, size = indptr[i], indptr[i + 1] - indptr[i] + 1
            row = inverses[places[i] : places[i + 1]].reshape((size, size))[k - first + 1]
            cells = _cells(i, spins, weights, indptr, indices, own, rows, cell)
            field = fields[i] + np.dot(couplings[first : indptr[i + 1]], cells[1:])
            _add_influence(own, rows, cell, 0.5 * np.dot(row, cells), np.tanh(field), influence)
            bound += 0.5 * row[k - first + 1]
        total = np.dot(weights, influence**2)  # a row of weight w is w samples
        errors[e] = np.sqrt(max(total, _LEAST_SHARED * bound))


@njit(cache=True, nogil=True, fastmath=False)
def _add_influence(own, rows, cell, levers, means, influence):
    """influence: (n_samples,), grows by lever (s - m) in rows with nothing missing."""
    for k in range(len(own)):
        if rows[k] > 0:
            influence[k] += levers[cell[k]] * (own[k] - means[cell[k]])
