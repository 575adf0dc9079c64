"""Choosing a network: elimination on pair sums, and logistic refits on few neighbours."""

import numpy as np
from numba import njit

from isingkit._kernels.cells import into_cells, weights_and_sums
from isingkit._kernels.estimators import factorize, substitute
from isingkit._kernels.logistic import SHORT, inverse_of_factor, logistic, predict, responses
from isingkit._kernels.sources import covariance, spin_row

_LEAST_SHARED = (
    0.64  # variance of the mean of two directed couplings, at least, in units of that of either
)
KEPT = 0  # in the order of elimination
_MOST_STEPS = 100  # of Newton's method for a field, each at most 1
_SAME = 1e-6  # relative difference of costs that rounding may make
_TRIFLE = 1e-3  # ridge on couplings that are cleared of bias
_MOST_GROWN, _MOST_OPEN = (
    1.1,
    0.25,
)  # factor of the largest coupling, and variance of any, beyond which the clearing has failed


@njit(cache=True, nogil=True, fastmath=False)
def eliminate(start, stop, source, indptr, indices, n_samples, cost, order):
    """Drop the weakest candidate of spin i in least squares, again and again, while that costs less
    than `cost`.

    source: as `covariance` takes it     indptr, indices: candidates, CSR
    order: like indices, overwritten:
    1 for the first that was dropped, and so on; KEPT for those that were not
    A candidate costs the rise of M log RSS. With B the inverse of G[a, a], x = B G[a, i]: dropping
    j raises RSS by x_j^2 / B_jj.
    """
    for i in range(start, stop):
        first, size = indptr[i], indptr[i + 1] - indptr[i]
        if size == 0:
            continue
        block, right = np.empty((size, size)), np.empty(size)
        for a in range(size):
            for b in range(a + 1):
                block[a, b] = block[b, a] = covariance(
                    source, indices[first + a], indices[first + b]
                )
            block[a, a] *= 1 + 1e-9
            right[a] = covariance(source, indices[first + a], i)
        factorize(block, size)
        inverse, x = np.empty((size, size)), right.copy()
        inverse_of_factor(block, inverse)
        substitute(block, x, size)
        whole = covariance(source, i, i)
        left = whole
        for a in range(size):
            left -= x[a] * right[a]
        left = max(left, 1e-9 * whole)
        alive = np.ones(size, np.bool_)
        order[first : first + size] = KEPT
        for number in range(size):
            weakest, least = -1, np.inf
            for a in range(
                size - 1, -1, -1
            ):  # of candidates that cost the same, equal columns for one, the last goes
                if alive[a] and x[a] * x[a] < least * inverse[a, a] * (1 - _SAME):
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


@njit(cache=True, nogil=True, fastmath=False)
def _is_cleared(before, after, inverse, last_step):
    """Whether a fit without bias, from `before`, is sound. Where spins are separated it may have
    several optima, some absurd.
    """
    if last_step >= SHORT or len(after) == 1:
        return False
    largest, was = 0.0, 0.0
    for a in range(1, len(after)):
        if before[a] * after[a] < 0 or inverse[a, a] >= _MOST_OPEN:
            return False
        largest, was = max(largest, abs(after[a])), max(was, abs(before[a]))
    return largest <= _MOST_GROWN * was


@njit(cache=True, nogil=True, fastmath=False)
def rows_seen(own, design, weights, seen):
    """seen: overwritten with the weights of the rows in which neither the spin nor any of its
    neighbours is missing, else 0.
    """
    for k in range(len(own)):
        seen[k] = weights[k] * own[k] * own[k]
    for a in range(1, len(design)):
        for k in range(len(own)):
            seen[k] *= design[a, k] * design[a, k]  # 1, or 0 where missing


@njit(cache=True, nogil=True, fastmath=False)
def _design(i, spins, n_samples, indptr, indices):
    """Ones and the neighbours of spin i, (1 + n_neighbours, n_samples)."""
    first, size = indptr[i], indptr[i + 1] - indptr[i] + 1
    design = np.ones((size, n_samples))
    for a in range(1, size):
        spin_row(spins, indices[first + a - 1], design[a])
    return design


@njit(cache=True, nogil=True, fastmath=False)
def _coefficients_of(i, indptr, fields, couplings, x):
    """x: (1 + n_neighbours,), overwritten with the field and the couplings of spin i."""
    x[0] = fields[i]
    for a in range(1, len(x)):
        x[a] = couplings[indptr[i] + a - 1]


@njit(cache=True, nogil=True, fastmath=False)
def _in_cells(i, spins, weights, indptr, indices, own, rows, cell):
    """The regression of spin i on its neighbours, in cells: sums of w, sums of w s, (n_cells,), and
    design, (1 + n, n_cells).

    own, rows, cell: (n_samples,), overwritten: the spin, weights of the rows with nothing missing,
    and the cell of each row
    """
    design = _design(i, spins, len(weights), indptr, indices)
    spin_row(spins, i, own)
    rows_seen(own, design, weights, rows)
    cells = into_cells(design, cell)
    totals, sums = weights_and_sums(own, rows, cell, cells.shape[1])
    return totals, sums, cells


@njit(cache=True, nogil=True, fastmath=False)
def refit(
    start,
    stop,
    chosen,
    spins,
    weights,
    indptr,
    indices,
    ridges,
    unbiased,
    fields,
    couplings,
    inverses,
    places,
    information,
    seen,
):
    """Logistic regressions of the chosen spins, from the one at `start` to that at `stop`, on their
    neighbours.

    spins: as `spin_row` takes them     indptr, indices: neighbours, CSR     fields: (n_spins,)
    couplings: like indices
    ridges: as `logistic` takes them
    unbiased: whether to clear couplings of bias, with next to no ridge
    inverses: inverse Hessians, spin after spin, from `places` on
    information: (n_spins,), sums of w (1 - m^2)
    seen: (n_spins,), weight of the rows with nothing missing
    All but what describes the problem is overwritten; where a fit without bias is not sound, with
    what it was on entry.
    """
    own, rows, cell = (
        np.empty(len(weights)),
        np.empty(len(weights)),
        np.empty(len(weights), np.int64),
    )
    for number in range(start, stop):
        i = chosen[number]
        totals, sums, cells = _in_cells(i, spins, weights, indptr, indices, own, rows, cell)
        state, residual, curvature = np.empty_like(sums), np.empty_like(sums), np.empty_like(sums)
        size, penalties, clearing = len(cells), np.empty(2), 1.0 if unbiased else 0.0
        x, inverse = np.zeros(size), np.empty((size, size))
        penalties[0], penalties[1] = ridges[0], _TRIFLE if unbiased else ridges[1]
        if unbiased:
            _coefficients_of(i, indptr, fields, couplings, x)
        before = x.copy()
        factor, last_step = logistic(
            sums, cells, totals, penalties, clearing, x, state, residual, curvature
        )
        inverse_of_factor(factor, inverse)
        if unbiased and not _is_cleared(before, x, inverse, last_step):
            continue
        information[i], seen[i], fields[i] = 0.0, 0.0, x[0]
        for k in range(len(sums)):
            information[i] += curvature[k]
            seen[i] += totals[k]
        for a in range(size):
            for b in range(size):
                inverses[places[i] + a * size + b] = inverse[a, b]
        for a in range(1, size):
            couplings[indptr[i] + a - 1] = x[a]


@njit(cache=True, nogil=True, fastmath=False)
def residuals_of(
    start, stop, chosen, spins, weights, indptr, indices, fields, couplings, residuals
):
    """residuals[number] = w (s - m) of spin chosen[number], in the network as it is."""
    n_samples = len(weights)
    own, rows, field, curvature = (
        np.empty(n_samples),
        np.empty(n_samples),
        np.empty(n_samples),
        np.empty(n_samples),
    )
    for number in range(start, stop):
        i = chosen[number]
        design = _design(i, spins, n_samples, indptr, indices)
        spin_row(spins, i, own)
        rows_seen(own, design, weights, rows)
        x = np.empty(len(design))
        _coefficients_of(i, indptr, fields, couplings, x)
        predict(x, design, field)
        for k in range(n_samples):
            own[k] *= rows[k]
        responses(own, field, rows, residuals[number], curvature)


@njit(cache=True, nogil=True, fastmath=False)
def fields_given(start, stop, spins, weights, indptr, indices, couplings, ridge, fields):
    """Fields of spins start to stop where couplings are given: Newton's method for sum_m w_m (s_m -
    tanh(H + sum_j J_j s_jm)) = 0.

    fields: (n_spins,), a start on entry     ridge: on the squares of fields
    """
    own, rows, cell = (
        np.empty(len(weights)),
        np.empty(len(weights)),
        np.empty(len(weights), np.int64),
    )
    for i in range(start, stop):
        totals, sums, cells = _in_cells(i, spins, weights, indptr, indices, own, rows, cell)
        local, residual, curvature, x = (
            np.empty_like(sums),
            np.empty_like(sums),
            np.empty_like(sums),
            np.empty(len(cells)),
        )
        _coefficients_of(i, indptr, fields, couplings, x)
        predict(x, cells, local)
        for _ in range(_MOST_STEPS):
            responses(sums, local, totals, residual, curvature)
            slope, bend = -ridge * fields[i], ridge
            for k in range(len(sums)):
                slope += residual[k]
                bend += curvature[k]
            step = min(max(slope / bend, -1.0), 1.0)
            fields[i] += step
            for k in range(len(sums)):
                local[k] += step
            if abs(step) < 1e-9:
                break


@njit(cache=True, nogil=True, fastmath=False)
def _among_neighbours(i, source, indptr, indices):
    """Correlations of the neighbours of spin i with each other, and the square roots of their
    variances.
    """
    chosen = indices[indptr[i] : indptr[i + 1]]
    size = len(chosen)
    near, scales = np.empty((size, size)), np.empty(size)
    for a in range(size):
        scales[a] = np.sqrt(max(covariance(source, chosen[a], chosen[a]), 1e-300))
    for a in range(size):
        for b in range(a):
            near[a, b] = near[b, a] = covariance(source, chosen[a], chosen[b]) / (
                scales[a] * scales[b]
            )
        near[a, a] = 1.0 + 1e-6
    return near, scales


@njit(cache=True, nogil=True, fastmath=False)
def least_eigenvalues(start, stop, source, chosen, indptr, indices, least):
    """least[number] = least eigenvalue of the correlations of the neighbours of spin
    chosen[number]; 1 where there are none.
    """
    for number in range(start, stop):
        i = chosen[number]
        least[number] = 1.0
        if indptr[i + 1] > indptr[i]:
            least[number] = np.linalg.eigvalsh(_among_neighbours(i, source, indptr, indices)[0])[0]


@njit(cache=True, nogil=True, fastmath=False)
def unexplained_of_pairs(start, stop, source, pairs, indptr, indices, left):
    """left[p] = share of the variance of spin j that the neighbours of spin i do not explain, in
    least squares; (i, j) = pairs[p].

    source: as `covariance` takes it
    pairs: sorted by i, so that what its neighbours say of each other is found once
    """
    last, size = -1, 0
    chosen, scales, factor = np.empty(0, np.int64), np.empty(0), np.empty((0, 0))
    for p in range(start, stop):
        i, j = pairs[p]
        if i != last:
            last, chosen = i, indices[indptr[i] : indptr[i + 1]]
            size = len(chosen)
            factor, scales = _among_neighbours(i, source, indptr, indices)
            factorize(factor, size)
        part, own = np.empty(size), np.sqrt(max(covariance(source, j, j), 1e-300))
        for a in range(size):
            part[a] = covariance(source, chosen[a], j) / (scales[a] * own)
        left[p] = 1.0
        for a in range(size):  # rows of L^-1 times correlations
            for b in range(a):
                part[a] -= factor[a, b] * part[b]
            part[a] /= factor[a, a]
            left[p] -= part[a] * part[a]


@njit(cache=True, nogil=True, fastmath=False)
def unexplained(chosen, correlations, indptr, indices, left):
    """left[a, j] = share of the variance of spin j that the neighbours of spin chosen[a] do not
    explain, in least squares.

    correlations: (n_spins, n_spins)     left: overwritten
    """
    for row in range(len(chosen)):
        first, size = indptr[chosen[row]], indptr[chosen[row] + 1] - indptr[chosen[row]]
        factor, part = np.empty((size, size)), np.empty((size, len(correlations)))
        for j in range(len(correlations)):
            left[row, j] = 1.0
        for a in range(size):
            for b in range(a):
                factor[a, b] = correlations[indices[first + a], indices[first + b]]
            factor[a, a] = 1.0 + 1e-6
        if not factorize(
            factor, size
        ):  # correlations over different rows may contradict: as if nothing were explained
            continue
        for a in range(size):  # rows of L^-1 times correlations
            for j in range(len(correlations)):
                part[a, j] = correlations[indices[first + a], j]
            for b in range(a):
                for j in range(len(correlations)):
                    part[a, j] -= factor[a, b] * part[b, j]
            for j in range(len(correlations)):
                part[a, j] /= factor[a, a]
                left[row, j] -= part[a, j] * part[a, j]


@njit(cache=True, nogil=True, fastmath=False)
def edge_errors(
    start, stop, edges, spins, weights, indptr, indices, fields, couplings, inverses, places, errors
):
    """errors[e] = standard error of the mean of both directed couplings of edges start to stop,
    from their influences by sample.

    edges: (n_edges, 2), places of the two directed couplings in `indices`; the spin of each is
    edges' row in `indptr` A sample's influence on the couplings of spin i is the inverse Hessian
    times its residual times (1, its neighbours). Where no sample contradicts a coupling residuals
    vanish, but the inverse Hessians do not: they bound the error from below.
    """
    own, rows, cell = (
        np.empty(len(weights)),
        np.empty(len(weights)),
        np.empty(len(weights), np.int64),
    )
    for e in range(start, stop):
        influence, bound, total = np.zeros(len(weights)), 0.0, 0.0
        for side in range(2):
            k = edges[e, side]
            i = np.searchsorted(indptr, k, side="right") - 1
            first, size = indptr[i], indptr[i + 1] - indptr[i] + 1
            start_of_row = places[i] + (k - first + 1) * size
            _, _, cells = _in_cells(i, spins, weights, indptr, indices, own, rows, cell)
            x = np.empty(size)
            field, levers = np.empty(cells.shape[1]), np.empty(cells.shape[1])
            _coefficients_of(i, indptr, fields, couplings, x)
            predict(x, cells, field)
            predict(inverses[start_of_row : start_of_row + size], cells, levers)
            _add_influence(own, rows, cell, levers, field, influence)
            bound += 0.5 * inverses[start_of_row + k - first + 1]
        for k in range(len(weights)):
            total += weights[k] * influence[k] * influence[k]  # a row of weight w is w samples
        errors[e] = np.sqrt(max(total, _LEAST_SHARED * bound))


@njit(cache=True, nogil=True, fastmath=False)
def _add_influence(own, rows, cell, levers, field, influence):
    """influence: (n_samples,), grows by lever (s - tanh f) / 2 in rows with nothing missing;
    levers, field: (n_cells,).
    """
    for c in range(len(field)):
        field[c] = np.tanh(field[c])
    for k in range(len(own)):
        if rows[k] > 0:
            influence[k] += 0.5 * levers[cell[k]] * (own[k] - field[cell[k]])
