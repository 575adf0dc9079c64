"""Exact sums: over all states, by Walsh-Hadamard transforms, and over trees."""

import numpy as np
from numba import njit

from isingkit._kernels.flags import KERNEL, PART


@njit(**KERNEL)
def spanning_order(indptr, indices, order, parent):
    """Every spin after its parent, roots first in their trees. Gives False where the graph has a
    cycle.

    indptr, indices: CSR     order, parent: (n_spins,) int64, overwritten; parent is a spin, or -1
    for roots
    """
    n_spins = len(order)
    seen = np.zeros(n_spins, np.bool_)
    filled = 0
    for root in range(n_spins):
        if seen[root]:
            continue
        seen[root] = True
        parent[root] = -1
        order[filled] = root
        head = filled
        filled += 1
        while head < filled:
            spin = order[head]
            head += 1
            for k in range(indptr[spin], indptr[spin + 1]):
                other = indices[k]
                if other == parent[spin]:
                    continue
                if seen[other]:
                    return False
                seen[other] = True
                parent[other] = spin
                order[filled] = other
                filled += 1
    return True


@njit(**KERNEL)
def sum_upwards(order, parent, couplings, fields, cavity):
    """cavity[i] = field on spin i of its own and of all spins below it; gives log Z.

    couplings: (n_spins,) float64, with the parent; 0 for roots
    cavity: (n_spins,) float64, overwritten
    Summing over a spin with field h under a coupling J leaves the field u = atanh(tanh J tanh h) on
    its parent, and the factor 2 sqrt(cosh(h + J) cosh(h - J)).
    """
    cavity[:] = fields
    log_z = 0.0
    for k in range(len(order) - 1, -1, -1):
        i = order[k]
        h = cavity[i]
        j = couplings[i]
        plus = _log_two_cosh(h + j)
        minus = _log_two_cosh(h - j)
        if parent[i] < 0:
            log_z += plus
        else:
            log_z += (plus + minus) / 2
            cavity[parent[i]] += (plus - minus) / 2
    return log_z


@njit(**PART)
def _log_two_cosh(x):
    return abs(x) + np.log1p(np.exp(-2 * abs(x)))


@njit(**KERNEL)
def sum_downwards(order, parent, couplings, cavity, means, pair_means):
    """means[i] = <s_i>, pair_means[i] = <s_i s_parent(i)>, from the roots down: <s_i | s_p> =
    tanh(cavity_i + J s_p).

    means, pair_means: (n_spins,) float64, overwritten
    """
    for i in order:
        up = np.tanh(cavity[i] + couplings[i])
        down = np.tanh(cavity[i] - couplings[i])
        above = means[parent[i]] if parent[i] >= 0 else 1.0
        means[i] = up * (1 + above) / 2 + down * (1 - above) / 2
        pair_means[i] = up * (1 + above) / 2 - down * (1 - above) / 2


@njit(**KERNEL)
def transform_rows(start, stop, values):
    """Walsh-Hadamard transforms, in place, of rows start to stop; values: (n_rows, 2^k) float64."""
    for row in range(start, stop):
        line = values[row]
        half = 1
        while half < len(line):
            for first in range(0, len(line), 2 * half):
                for k in range(first, first + half):
                    a = line[k]
                    b = line[k + half]
                    line[k] = a + b
                    line[k + half] = a - b
            half *= 2


@njit(**KERNEL)
def transform_columns(start, stop, values):
    """Walsh-Hadamard transforms, in place, of columns start to stop; values: (2^k, n_columns)
    float64.
    """
    half = 1
    while half < len(values):
        for first in range(0, len(values), 2 * half):
            for row in range(first, first + half):
                upper = values[row]
                lower = values[row + half]
                for k in range(start, stop):
                    a = upper[k]
                    b = lower[k]
                    upper[k] = a + b
                    lower[k] = a - b
        half *= 2
