"""Logistic regressions of the spins of a graph on their neighbours.

Tuples: samples as in `cells`, graph (indptr, indices), coefficients (fields, couplings, effects of
causes, (n_spins, n_causes)) and inverses (values, places): inverse Hessians spin after spin, that
of spin i from places[i] on. Penalties are on squares of a field, of a coupling and of each effect.
"""

from math import sqrt, tanh

from numba import njit

from isingkit._kernels.cells import NONE, add_causes, into_cells, regressors_of
from isingkit._kernels.flags import KERNEL, PART
from isingkit._kernels.logistic import (
    SHORT,
    inverse_of_factor,
    logistic,
    predict,
    responses,
    ridges_of,
)
from isingkit._kernels.robust import grouped_variance
from isingkit._kernels.sources import spin_row
from isingkit._kernels.workspace import fill, matrix, numbers, whole_numbers

# variance of the mean of two directed couplings, at least, in units of that of either
_LEAST_SHARED = 0.64
_MOST_STEPS = 100  # of Newton's method for a field, each at most 1
_FIRTH_RIDGE = 1e-3  # on couplings that Firth's term keeps finite by itself
# factor of the largest coupling, and variance of any, beyond which Firth's fit is not sound
_MOST_GROWN, _LARGEST_VARIANCE = 1.1, 0.25


@njit(**PART)
def coefficients_of(i, regressors, graph, coefficients, x):
    """x: overwritten with the field of spin i, its couplings to regressors, and effects.

    Of regressors that are no neighbours, 0.
    """
    indptr, indices = graph
    fields, couplings, effects = coefficients
    fill(x, 0.0)
    x[0] = fields[i]
    for a in range(effects.shape[1]):
        x[1 + len(regressors) + a] = effects[i, a]
    place = 0
    for k in range(indptr[i], indptr[i + 1]):
        if place < len(regressors) and indices[k] == regressors[place]:
            x[place + 1] = couplings[k]
            place += 1


@njit(**PART)
def _is_sound(before, after, n_couplings, inverse, last_step):
    """Whether Firth's fit is. Where spins are separated it may have several optima, some absurd."""
    if last_step >= SHORT or len(after) == 1:
        return False
    largest, was = 0.0, 0.0
    for a in range(1, n_couplings + 1):
        if before[a] * after[a] < 0 or inverse[a, a] >= _LARGEST_VARIANCE:
            return False
        largest = max(largest, abs(after[a]))
        was = max(was, abs(before[a]))
    return largest <= _MOST_GROWN * was or n_couplings == 0


@njit(**KERNEL)
def refit(start, stop, chosen, samples, graph, penalties, firth, coefficients, inverses, sums):
    """Logistic regressions of spins chosen[start:stop] on their neighbours.

    firth: 1.0 to remove the bias of few samples, with next to no penalty on couplings, else 0.0;
    where that is not sound, a spin's numbers stay what they were
    coefficients, inverses: overwritten     sums: (2, n_spins), overwritten with information, sums
    of w (1 - m^2), and the weight of the rows in which nothing is missing
    """
    fields, couplings, effects = coefficients
    values, places = inverses
    n_samples = len(samples[1])
    own, seen, cell = numbers(n_samples), numbers(n_samples), whole_numbers(n_samples)
    for number in range(start, stop):
        i = chosen[number]
        regressors = regressors_of(i, NONE, NONE, graph)
        regression = into_cells(i, NONE, regressors, samples, own, seen, cell)
        size, n_cells = regression[2].shape
        state = (numbers(n_cells), numbers(n_cells), numbers(n_cells))
        before, x, inverse = numbers(size), numbers(size), matrix(size, size)
        coefficients_of(i, regressors, graph, coefficients, before)
        for a in range(size):
            x[a] = before[a] if firth > 0 or effects.shape[1] > 0 else 0.0
        ridges = ridges_of(penalties, len(regressors), size)
        if firth > 0:
            fill(ridges[1 : len(regressors) + 1], _FIRTH_RIDGE)
        factor, last_step = logistic(regression, ridges, firth, x, state)
        inverse_of_factor(factor, inverse)
        if firth > 0 and not _is_sound(before, x, len(regressors), inverse, last_step):
            continue
        sums[0, i] = 0.0
        sums[1, i] = 0.0
        for c in range(n_cells):
            sums[0, i] += state[2][c]
            sums[1, i] += regression[0][c]
        fields[i] = x[0]
        for a in range(len(regressors)):
            couplings[graph[0][i] + a] = x[a + 1]
        for a in range(effects.shape[1]):
            effects[i, a] = x[1 + len(regressors) + a]
        for a in range(size):
            for b in range(size):
                values[places[i] + a * size + b] = inverse[a, b]


@njit(**KERNEL)
def residuals_of(start, stop, chosen, samples, graph, coefficients, residuals):
    """residuals[number] = w (s - m) of spin chosen[number], 0 in rows that lack something."""
    n_samples = len(samples[1])
    own, seen, cell = numbers(n_samples), numbers(n_samples), whole_numbers(n_samples)
    for number in range(start, stop):
        i = chosen[number]
        regressors = regressors_of(i, NONE, NONE, graph)
        _, means, design = into_cells(i, NONE, regressors, samples, own, seen, cell)
        x = numbers(len(design))
        coefficients_of(i, regressors, graph, coefficients, x)
        predict(x, design, means)
        for c in range(len(means)):
            means[c] = tanh(means[c])
        for k in range(n_samples):
            residuals[number, k] = seen[k] * (own[k] - means[cell[k]])


@njit(**KERNEL)
def shifts_of(start, stop, samples, effects, shifts):
    """shifts[i] = what causes add to the field of spin i, row by row, for spins start to stop."""
    n_samples = len(samples[1])
    own, design = numbers(n_samples), matrix(effects.shape[1], n_samples)
    for i in range(start, stop):
        spin_row(samples[0], i, own)
        add_causes(i, NONE, samples, own, design)
        predict(effects[i], design, shifts[i])


@njit(**KERNEL)
def fields_given(start, stop, samples, graph, coefficients, ridge):
    """Fields of spins start to stop where couplings and effects are given.

    Newton's method for sum_m w_m (s_m - tanh(H + sum_j J_j s_jm)) = ridge H, from those of
    `coefficients`, which are overwritten.
    """
    fields = coefficients[0]
    n_samples = len(samples[1])
    own, seen, cell = numbers(n_samples), numbers(n_samples), whole_numbers(n_samples)
    for i in range(start, stop):
        regressors = regressors_of(i, NONE, NONE, graph)
        totals, sums, design = into_cells(i, NONE, regressors, samples, own, seen, cell)
        n_cells = len(totals)
        local, residual, curvature = numbers(n_cells), numbers(n_cells), numbers(n_cells)
        x = numbers(len(design))
        coefficients_of(i, regressors, graph, coefficients, x)
        predict(x, design, local)
        for _ in range(_MOST_STEPS):
            responses(totals, sums, local, residual, curvature)
            slope, total_curvature = -ridge * fields[i], ridge
            for k in range(n_cells):
                slope += residual[k]
                total_curvature += curvature[k]
            step = min(max(slope / total_curvature, -1.0), 1.0)
            fields[i] += step
            for k in range(n_cells):
                local[k] += step
            if abs(step) < 1e-9:
                break


@njit(**PART)
def _add_influence(i, part, samples, graph, coefficients, row, work, influence):
    """Adds a part of the influence of each sample on a coefficient of spin i.

    row: of the inverse Hessian, the coefficient's     work: (own, seen, cell)
    influence: (n_samples,)
    """
    own, seen, cell = work
    regressors = regressors_of(i, NONE, NONE, graph)
    _, means, design = into_cells(i, NONE, regressors, samples, own, seen, cell)
    x, influence_of_cell = numbers(len(design)), numbers(len(means))
    coefficients_of(i, regressors, graph, coefficients, x)
    predict(x, design, means)
    predict(row, design, influence_of_cell)
    for c in range(len(means)):
        means[c] = tanh(means[c])
    for k in range(len(own)):
        if seen[k] > 0:
            influence[k] += part * influence_of_cell[cell[k]] * (own[k] - means[cell[k]])


@njit(**PART)
def _variance(influence, samples):
    """Variance of the sum of w times influence; influence: (n_samples,), overwritten."""
    weights, squares, groups, bounds = samples[1], samples[3], samples[4], samples[5]
    if len(groups) > 0:
        for k in range(len(weights)):
            influence[k] *= weights[k]
        return bounds[1] * grouped_variance(influence, weights, groups)[0]
    total = 0.0
    for k in range(len(weights)):
        square = squares[k] if len(squares) > 0 else weights[k]  # a count of w is w samples
        total += square * influence[k] * influence[k]
    return total


@njit(**KERNEL)
def edge_errors(start, stop, pairs, sides, samples, graph, coefficients, inverses, errors):
    """errors[e] = standard error of the mean of both directed couplings of pairs start to stop.

    sides: (n_pairs, 2), places of both in the graph's indices
    A sample's influence on the couplings of spin i is the inverse Hessian times its residual times
    (1, its neighbours). Where no sample contradicts a coupling residuals vanish, but the inverse
    Hessians do not: they bound the error from below.
    """
    indptr = graph[0]
    values, places = inverses
    weights = samples[1]
    n_samples = len(weights)
    work = (numbers(n_samples), numbers(n_samples), whole_numbers(n_samples))
    influence = numbers(n_samples)
    for e in range(start, stop):
        fill(influence, 0.0)
        bound = 0.0
        for side in range(2):
            i = pairs[e, side]
            which = sides[e, side] - indptr[i] + 1
            size = indptr[i + 1] - indptr[i] + 1 + coefficients[2].shape[1]
            first = places[i] + which * size
            row = values[first : first + size]
            _add_influence(i, 0.5, samples, graph, coefficients, row, work, influence)
            bound += 0.5 * row[which]
        total = _variance(influence, samples)
        errors[e] = sqrt(max(total, _LEAST_SHARED * bound * samples[5][0]))


@njit(**KERNEL)
def effect_errors(start, stop, samples, graph, coefficients, inverses, errors):
    """errors[i, a] = standard error of the effect of cause a on spins start to stop.

    As those of couplings, by the influence of samples that matter differently or belong together;
    of equal, independent ones, by the inverse Hessian.
    """
    indptr = graph[0]
    values, places = inverses
    n_samples = len(samples[1])
    work = (numbers(n_samples), numbers(n_samples), whole_numbers(n_samples))
    influence = numbers(n_samples)
    for i in range(start, stop):
        degree = indptr[i + 1] - indptr[i]
        size = degree + 1 + errors.shape[1]
        for a in range(errors.shape[1]):
            which = degree + 1 + a
            first = places[i] + which * size
            row = values[first : first + size]
            variance = row[which]
            if len(samples[3]) > 0 or len(samples[4]) > 0:
                fill(influence, 0.0)
                _add_influence(i, 1.0, samples, graph, coefficients, row, work, influence)
                variance = _variance(influence, samples)
            errors[i, a] = sqrt(variance)


@njit(**PART)
def _observed_pair(i, j, samples, graph, penalties, work, influence):
    """Coupling of spin i to its neighbour j from rows where both were observed; and a variance.

    That is of the inverse Hessian. Half of each row's influence is added; Firth's fit where sound.
    work: (own, seen, cell)     influence: (n_samples,)
    """
    own, seen, cell = work
    regressors = regressors_of(i, NONE, NONE, graph)
    regression = into_cells(i, j, regressors, samples, own, seen, cell)
    design = regression[2]
    size, n_cells = design.shape
    state = (numbers(n_cells), numbers(n_cells), numbers(n_cells))
    x, inverse = numbers(size), matrix(size, size)
    other, of_other = numbers(size), matrix(size, size)
    fill(x, 0.0)
    ridges = ridges_of(penalties, len(regressors), size)
    factor, _ = logistic(regression, ridges, 0.0, x, state)
    inverse_of_factor(factor, inverse)
    fill(ridges[1 : len(regressors) + 1], _FIRTH_RIDGE)
    for a in range(size):
        other[a] = x[a]
    factor, last_step = logistic(regression, ridges, 1.0, other, state)
    inverse_of_factor(factor, of_other)
    if _is_sound(x, other, len(regressors), of_other, last_step):
        x, inverse = other, of_other
    which = 1
    while regressors[which - 1] != j:
        which += 1
    predict(x, design, state[0])
    predict(inverse[which], design, state[1])
    for k in range(len(own)):
        if seen[k] > 0:
            residual = own[k] - tanh(state[0][cell[k]])
            influence[k] += 0.5 * state[1][cell[k]] * residual
    return x[which], inverse[which, which]


@njit(**KERNEL)
def observed_pairs(start, stop, pairs, samples, graph, penalties, couplings, errors):
    """Directed couplings of pairs from rows where both were observed, and errors of their means.

    pairs: of the graph     couplings: (n_pairs, 2)     errors: (n_pairs,)     both overwritten
    """
    n_samples = len(samples[1])
    work = (numbers(n_samples), numbers(n_samples), whole_numbers(n_samples))
    influence = numbers(n_samples)
    for e in range(start, stop):
        i, j = pairs[e, 0], pairs[e, 1]
        fill(influence, 0.0)
        couplings[e, 0], first = _observed_pair(i, j, samples, graph, penalties, work, influence)
        couplings[e, 1], second = _observed_pair(j, i, samples, graph, penalties, work, influence)
        least = _LEAST_SHARED * (first + second) / 2 * samples[5][0]
        errors[e] = sqrt(max(_variance(influence, samples), least))
