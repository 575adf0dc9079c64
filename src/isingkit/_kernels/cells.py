"""Cells: samples in which all regressors of a spin are the same, taken together.

With n neighbours there are at most 2^n different rows, however many samples: regressions then cost
by the cell. A graph tuple is (indptr, indices); a sample tuple is (spins, weights, outcomes,
squares, groups, bounds, causes): outcomes are spins where they were observed, and 0 where a
regression must not explain them.

Causes are regressors that belong to rows, after the neighbours in a design: a tuple (values,
loadings, bends, means, codes, firsts), of which values are (n_causes, n_samples). Of a cause that
was made of the spins themselves, the sum of loadings times (spin - mean), the spins in question are
taken out: loadings are (n_causes, n_spins), or (n_causes, 0) where no cause was. A bend above 0
makes tanh(bend x value) of it. Codes number the different rows of values, firsts are a sample of
each; both are empty where hardly any two are the same. Coefficients are a tuple (fields, couplings,
effects of causes, (n_spins, n_causes)).
"""

import numpy as np
from numba import njit

from isingkit._kernels.elementary import take_tanh
from isingkit._kernels.flags import PART, VECTOR_PART
from isingkit._kernels.sources import spin_row
from isingkit._kernels.workspace import fill, matrix, numbers, whole_numbers

# possible patterns of regressors, for each sample, beyond which hardly any two samples share one
_PATTERNS_PER_SAMPLE = 4
_MOST_REGRESSORS = 40
NONE = np.int64(-1)  # no spin: a plain -1 would be a type of its own, and compiled for that


@njit(**PART)
def regressors_of(i, without, also, graph):
    """Neighbours of spin i but one, and another spin; -1 for none of these."""
    indptr, indices = graph
    chosen = whole_numbers(indptr[i + 1] - indptr[i] + 1)
    size = 0
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] != without:
            chosen[size] = indices[k]
            size += 1
    if also >= 0:
        chosen[size] = also
        size += 1
    return chosen[:size]


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
def are_shared(n_regressors, samples):
    """Whether patterns are few enough for samples to share cells."""
    values, firsts = samples[6][0], samples[6][5]
    if n_regressors >= _MOST_REGRESSORS or (len(values) > 0 and len(firsts) == 0):
        return False
    n_codes = max(len(firsts), 1)
    return n_codes << n_regressors <= _PATTERNS_PER_SAMPLE * len(samples[1])


@njit(**PART)
def number_patterns(cell, n_patterns):
    """The patterns that occur, in the order of samples; cell: from pattern to its number."""
    place = whole_numbers(n_patterns)
    patterns = whole_numbers(min(n_patterns, len(cell)))
    n_cells = 0
    fill(place, -1)
    for k in range(len(cell)):
        if place[cell[k]] < 0:
            place[cell[k]] = n_cells
            patterns[n_cells] = cell[k]
            n_cells += 1
        cell[k] = place[cell[k]]
    return patterns[:n_cells]


@njit(**PART)
def _shared_cells(regressors, samples, seen, cell):
    """Design of cells that samples share."""
    spins, weights = samples[0], samples[1]
    values, codes, firsts = samples[6][0], samples[6][4], samples[6][5]
    value = numbers(len(weights))
    n = len(regressors)
    fill(cell, 0)
    for k in range(len(codes)):
        cell[k] = codes[k] << n
    for a in range(n):
        spin_row(spins, regressors[a], value)
        for k in range(len(cell)):
            cell[k] += (1 << a) if value[k] > 0 else 0
            seen[k] *= value[k] * value[k]
    patterns = number_patterns(cell, max(len(firsts), 1) << n)
    design = matrix(1 + n + len(values), len(patterns))
    fill(design[0], 1.0)
    for a in range(len(values)):
        for c in range(len(patterns)):
            design[1 + n + a, c] = values[a, firsts[patterns[c] >> n]]
    for a in range(n):
        for c in range(len(patterns)):
            design[a + 1, c] = 1.0 if patterns[c] >> a & 1 else -1.0
    return design


@njit(**PART)
def add_causes(i, other, samples, own, design):
    """Last rows of the design: causes, without what two spins have put into them.

    own: (n_samples,), the first of these spins; -1 for no other
    """
    spins = samples[0]
    values, loadings, bends, means = samples[6][0], samples[6][1], samples[6][2], samples[6][3]
    first = len(design) - len(values)
    value = numbers(len(own))
    if other >= 0:
        spin_row(spins, other, value)
    for a in range(len(values)):
        out = design[first + a]
        for k in range(len(own)):
            out[k] = values[a, k]
        if loadings.shape[1] > 0:
            _take_out(own, loadings[a, i], means[i], out)
            if other >= 0:
                _take_out(value, loadings[a, other], means[other], out)
        if bends[a] > 0:
            take_tanh(out, bends[a])


@njit(**VECTOR_PART)
def _take_out(spin, loading, mean, score):
    """score: (n_samples,), overwritten with itself less what a spin has put into it."""
    for k in range(len(score)):
        score[k] -= loading * (spin[k] - mean) * spin[k] * spin[k]  # nothing where it is missing


@njit(**PART)
def _own_cells(i, other, regressors, samples, own, seen, cell):
    """Design of samples, each a cell of its own."""
    spins, weights = samples[0], samples[1]
    n_causes = len(samples[6][0])
    design = matrix(1 + len(regressors) + n_causes, len(weights))
    fill(design[0], 1.0)
    if n_causes > 0:
        add_causes(i, other, samples, own, design)
    for k in range(len(cell)):
        cell[k] = k
    for a in range(len(regressors)):
        spin_row(spins, regressors[a], design[a + 1])
        for k in range(len(cell)):
            seen[k] *= design[a + 1, k] * design[a + 1, k]
    return design


@njit(**PART)
def into_cells(i, other, regressors, samples, own, seen, cell):
    """A regression of spin i in cells: sums of w, of w s, both (n_cells,), and the design.

    Of the rows where i and another spin were observed; -1 for no other.

    The design, (1 + n_regressors + n_causes, n_cells), has a row of ones for the field.
    own, seen, cell: (n_samples,), overwritten: the spin, the weights of rows in which nothing is
    missing (0 for others), and the cell of each row
    """
    weights, outcomes = samples[1], samples[2]
    for k in range(len(own)):
        seen[k] = weights[k]
    if other >= 0:
        spin_row(outcomes, other, own)
        for k in range(len(own)):
            seen[k] *= own[k] * own[k]  # 1, or 0 where missing
    spin_row(outcomes, i, own)
    for k in range(len(own)):
        seen[k] *= own[k] * own[k]
    if are_shared(len(regressors), samples):
        design = _shared_cells(regressors, samples, seen, cell)
    else:
        design = _own_cells(i, other, regressors, samples, own, seen, cell)
    totals = numbers(design.shape[1])
    sums = numbers(design.shape[1])
    fill(totals, 0.0)
    fill(sums, 0.0)
    for k in range(len(cell)):
        totals[cell[k]] += seen[k]
        sums[cell[k]] += seen[k] * own[k]
    return totals, sums, design
