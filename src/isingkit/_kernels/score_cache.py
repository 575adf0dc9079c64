"""How much of a spin's variance the neighbours of another leave unexplained."""

from math import sqrt

import numpy as np
from numba import njit

from isingkit._kernels.estimators import factorize
from isingkit._kernels.flags import KERNEL, PART
from isingkit._kernels.sources import covariance
from isingkit._kernels.workspace import matrix, numbers

_TRIFLE = 1e-6  # on the diagonal of correlations, for neighbours that are the same


@njit(**PART)
def _among_neighbours(i, source, graph):
    """Correlations of the neighbours of spin i among each other, and roots of their variances."""
    indptr, indices = graph
    chosen = indices[indptr[i] : indptr[i + 1]]
    size = len(chosen)
    near = matrix(size, size)
    scales = numbers(size)
    for a in range(size):
        scales[a] = sqrt(max(covariance(source, chosen[a], chosen[a]), 1e-300))
    for a in range(size):
        for b in range(a):
            value = covariance(source, chosen[a], chosen[b]) / (scales[a] * scales[b])
            near[a, b] = value
            near[b, a] = value
        near[a, a] = 1.0 + _TRIFLE
    return near, scales


@njit(**KERNEL)
def least_eigenvalues(start, stop, source, chosen, graph, least):
    """least[number] = least eigenvalue of the correlations of the neighbours of chosen[number].

    1 where there are none.
    """
    indptr = graph[0]
    for number in range(start, stop):
        i = chosen[number]
        least[number] = 1.0
        if indptr[i + 1] > indptr[i]:
            least[number] = np.linalg.eigvalsh(_among_neighbours(i, source, graph)[0])[0]


@njit(**KERNEL)
def unexplained_of_pairs(start, stop, source, pairs, graph, left):
    """left[p] = share of the variance of spin j that the neighbours of spin i do not explain.

    In least squares, (i, j) = pairs[p].
    source: as `covariance` takes it
    pairs: sorted by i, so that what its neighbours say of each other is found once
    """
    indptr, indices = graph
    last = -1
    size = 0
    scales = numbers(size)
    factor = matrix(size, size)
    for p in range(start, stop):
        i, j = pairs[p]
        if i != last:
            last = i
            size = indptr[i + 1] - indptr[i]
            factor, scales = _among_neighbours(i, source, graph)
            factorize(factor, size)
        part = numbers(size)
        own = sqrt(max(covariance(source, j, j), 1e-300))
        left[p] = 1.0
        for a in range(size):  # rows of L^-1 times correlations
            part[a] = covariance(source, indices[indptr[i] + a], j) / (scales[a] * own)
            for b in range(a):
                part[a] -= factor[a, b] * part[b]
            part[a] /= factor[a, a]
            left[p] -= part[a] * part[a]


@njit(**KERNEL)
def unexplained(chosen, moments, scales, graph, left):
    """left[a, j] = share of the variance of spin j that the neighbours of chosen[a] leave.

    Correlations are moments[i, j] / scales[i] / scales[j].
    moments: (n_spins, n_spins)     scales: (n_spins,)     left: overwritten
    """
    indptr, indices = graph
    n_spins = len(moments)
    for row in range(len(chosen)):
        first = indptr[chosen[row]]
        size = indptr[chosen[row] + 1] - first
        factor = matrix(size, size)
        part = matrix(size, n_spins)
        for j in range(n_spins):
            left[row, j] = 1.0
        for a in range(size):
            i = indices[first + a]
            for b in range(a):
                k = indices[first + b]
                factor[a, b] = moments[i, k] / scales[i] / scales[k]
            factor[a, a] = 1.0 + _TRIFLE
        # correlations over different rows may contradict: as if nothing were explained
        if not factorize(factor, size):
            continue
        for a in range(size):  # rows of L^-1 times correlations
            i = indices[first + a]
            for j in range(n_spins):
                part[a, j] = moments[i, j] / scales[i] / scales[j]
            for b in range(a):
                for j in range(n_spins):
                    part[a, j] -= factor[a, b] * part[b, j]
            for j in range(n_spins):
                part[a, j] /= factor[a, a]
                left[row, j] -= part[a, j] * part[a, j]
