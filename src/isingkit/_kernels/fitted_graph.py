"""Logistic regressions of the spins of a graph on their neighbours.

Tuples: samples as in `cells`, graph (indptr, indices), coefficients (fields, couplings, effects of
causes, (n_spins, n_causes)) and inverses (values, places): inverse Hessians spin after spin, that
of spin i from places[i] on. Penalties are on squares of a field, of a coupling and of each effect.
"""

from numba import njit

from isingkit._kernels.cells import NONE, add_causes, coefficients_of, into_cells, regressors_of
from isingkit._kernels.edge_tests import score_test_couplings
from isingkit._kernels.elementary import take_tanh
from isingkit._kernels.flags import KERNEL, PART
from isingkit._kernels.logistic import (
    SHORT,
    inverse_of_factor,
    logistic,
    predict,
    responses,
    ridges_of,
)
from isingkit._kernels.sources import spin_row
from isingkit._kernels.workspace import fill, matrix, numbers, whole_numbers

REFIT, FIRTH_REFIT, FIELDS, ROWS, SCORE_TESTS = range(5)  # tasks of `regress`
_MOST_STEPS = 100  # of Newton's method for a field, each at most 1
_FIRTH_RIDGE = 1e-3  # on couplings that Firth's term keeps finite by itself
# factor of the largest coupling, and variance of any, beyond which Firth's fit is not sound
_MOST_GROWN, _LARGEST_VARIANCE = 1.1, 0.25


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


@njit(**PART)
def _refit(i, firth, regressors, regression, graph, penalties, coefficients, inverses, sums):
    """Coefficients of spin i, its inverse Hessian and sums, overwritten, as `regress` says."""
    fields, couplings, effects = coefficients
    values, places = inverses
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
        return
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


@njit(**PART)
def _field_given(i, regression, local, ridge, fields):
    """The field of spin i, overwritten, where couplings and effects are given.

    Newton's method for sum_m w_m (s_m - tanh(H + sum_j J_j s_jm)) = ridge H, from the field there
    is; local: (n_cells,), H + sum_j J_j s_j, overwritten
    """
    totals, sums, _ = regression
    n_cells = len(local)
    residual, curvature = numbers(n_cells), numbers(n_cells)
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


@njit(**KERNEL)
def regress(
    start, stop, task, chosen, which, samples, graph, penalties, coefficients, inverses, sums, rows
):
    """A task for the regressions of spins chosen[start:stop] on their neighbours.

    One kernel for all tasks: each would compile anew how samples are taken together in cells, and
    logistic regression.

    REFIT: logistic regressions. coefficients, inverses: overwritten     sums: (2, n_spins),
    overwritten with information, sums of w (1 - m^2), and the weight of rows in which nothing is
    missing
    FIRTH_REFIT: the same without the bias of few samples, with next to no penalty on couplings;
    where that is not sound, a spin's numbers stay what they were
    FIELDS: of coefficients, fields are overwritten with those that go with the others, as given
    ROWS: rows[number] = s - m of spin chosen[number], 0 in rows that lack something; times what a
    coefficient's row of the inverse Hessian makes of (1, neighbours): the influence of a sample on
    coefficient which[number], where that is not -1
    SCORE_TESTS: of pairs start to stop, whose spins are chosen, one pair after the other, and
    their rivals `which`; sums, rows: as `score_test_couplings` has them
    """
    if task == SCORE_TESTS:
        problem = (samples, graph, coefficients, penalties)
        score_test_couplings(start, stop, chosen, which, problem, sums, rows)
        return
    n_samples = len(samples[1])
    own, seen, cell = numbers(n_samples), numbers(n_samples), whole_numbers(n_samples)
    for number in range(start, stop):
        i = chosen[number]
        regressors = regressors_of(i, NONE, NONE, graph)
        regression = into_cells(i, NONE, regressors, samples, own, seen, cell)
        if task <= FIRTH_REFIT:
            firth = 1.0 if task == FIRTH_REFIT else 0.0
            _refit(i, firth, regressors, regression, graph, penalties, coefficients, inverses, sums)
            continue
        design = regression[2]
        size, n_cells = design.shape
        x, local, factor = numbers(size), numbers(n_cells), numbers(n_cells)
        coefficients_of(i, regressors, graph, coefficients, x)
        predict(x, design, local)
        if task == FIELDS:
            _field_given(i, regression, local, penalties[0], coefficients[0])
            continue
        fill(factor, 1.0)
        if which[number] >= 0:
            first = inverses[1][i] + which[number] * size
            predict(inverses[0][first : first + size], design, factor)
        take_tanh(local, 1.0)
        for k in range(n_samples):
            residual = own[k] - local[cell[k]] if seen[k] > 0 else 0.0
            rows[number, k] = factor[cell[k]] * residual


@njit(**KERNEL)
def shifts_of(start, stop, samples, effects, shifts):
    """shifts[i] = what causes add to the field of spin i, row by row, for spins start to stop."""
    n_samples = len(samples[1])
    own, design = numbers(n_samples), matrix(effects.shape[1], n_samples)
    for i in range(start, stop):
        spin_row(samples[0], i, own)
        add_causes(i, NONE, samples, own, design)
        predict(effects[i], design, shifts[i])


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
    take_tanh(state[0], 1.0)
    for k in range(len(own)):
        if seen[k] > 0:
            residual = own[k] - state[0][cell[k]]
            influence[k] += 0.5 * state[1][cell[k]] * residual
    return x[which], inverse[which, which]


@njit(**KERNEL)
def observed_pairs(start, stop, pairs, samples, graph, penalties, couplings, variances, influences):
    """Directed couplings of pairs from rows where both were observed.

    pairs: of the graph     couplings, variances by inverse Hessians: (n_pairs, 2), overwritten
    influences: (n_pairs, n_samples), overwritten with those of samples on the means of both
    """
    n_samples = len(samples[1])
    work = (numbers(n_samples), numbers(n_samples), whole_numbers(n_samples))
    for e in range(start, stop):
        influence = influences[e]
        fill(influence, 0.0)
        for side in range(2):
            i, j = pairs[e, side], pairs[e, 1 - side]
            found = _observed_pair(i, j, samples, graph, penalties, work, influence)
            couplings[e, side], variances[e, side] = found
