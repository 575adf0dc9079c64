"""Passes over N x N matrices that numpy would make several of, and regressions on few spins."""

import numpy as np
from numba import njit

from isingkit._kernels.flags import KERNEL, PART
from isingkit._kernels.sources import covariance

MATRIX_TILE = 64


@njit(**KERNEL)
def regressions(start, stop, inverse, diagonal, keep):
    """inverse[i, j] -> -P_ij / P_ii in place, 0 on the diagonal, where P stands in the lower
    triangle, for tiles start to stop.

    inverse: (n_spins, n_spins) float64     diagonal: (n_spins,) = P_ii
    keep: (n_spins,) bool, rows and columns not zeroed
    """
    n_spins = len(inverse)
    n_tiles = (n_spins + MATRIX_TILE - 1) // MATRIX_TILE
    for tile in range(start, stop):
        for other in range(tile, n_tiles):
            for i in range(other * MATRIX_TILE, min(n_spins, (other + 1) * MATRIX_TILE)):
                for j in range(tile * MATRIX_TILE, min(i, (tile + 1) * MATRIX_TILE)):
                    p = inverse[i, j] if keep[i] and keep[j] else 0.0
                    inverse[i, j] = -p / diagonal[i]
                    inverse[j, i] = -p / diagonal[j]
        for i in range(tile * MATRIX_TILE, min(n_spins, (tile + 1) * MATRIX_TILE)):
            inverse[i, i] = 0.0


@njit(**PART)
def factorize(factor, size):
    """Cholesky factor of G, in place: at least (size, size), G in the lower triangle on entry, L on
    exit, L L' = G.

    False where G is as good as singular.
    """
    for a in range(size):
        row = factor[a]
        whole = row[a]
        for b in range(a):
            other = factor[b]
            dot = row[b]
            for k in range(b):
                dot -= row[k] * other[k]
            row[b] = dot / other[b]
        left = whole
        for k in range(a):
            left -= row[k] * row[k]
        if not left > 1e-10 * whole:  # what the earlier unknowns leave unexplained of this one
            return False
        row[a] = np.sqrt(left)
    return True


@njit(**PART)
def substitute(factor, x, size):
    """Solve L L' x = b in place: x is b on entry."""
    for a in range(size):
        dot = x[a]
        for k in range(a):
            dot -= factor[a, k] * x[k]
        x[a] = dot / factor[a, a]
    for a in range(size - 1, -1, -1):
        dot = x[a]
        for k in range(a + 1, size):
            dot -= factor[k, a] * x[k]
        x[a] = dot / factor[a, a]


@njit(**PART)
def solve(factor, x, size):
    """Solve G x = b by Cholesky factors, in place: x is b on entry, `factor` as in `factorize`.
    False if as good as singular.
    """
    if not factorize(factor, size):
        return False
    substitute(factor, x, size)
    return True


@njit(**KERNEL)
def restricted_regressions(start, stop, normal, candidates, prune, most, sizes, estimates):
    """Least squares of spin i on the spins j with |candidates[i, j]| > prune, for spins start to
    stop.

    normal: (n_spins, n_spins) float64, S'S     candidates: (n_spins, n_spins) float64
    sizes: (n_spins,) int64, candidates of each spin
    estimates: (n_spins, n_spins) float64, zero on entry
    Gives the first spin whose system has more than `most` unknowns or is singular, or -1. The
    system: G[a, a] x = G[a, i].
    """
    n_spins = len(normal)
    chosen = np.empty(n_spins, np.int64)
    factor = np.empty((0, 0))
    x = np.empty(n_spins)
    for i in range(start, stop):
        size = 0
        for j in range(n_spins):
            if j != i and abs(candidates[i, j]) > prune:
                chosen[size] = j
                size += 1
        sizes[i] = size
        if size > most:
            return i
        if size > len(factor):
            factor = np.empty((size + 8, size + 8))
        for a in range(size):
            row = factor[a]
            mine = normal[chosen[a]]
            for b in range(a + 1):
                row[b] = mine[chosen[b]]
            x[a] = mine[i]
        if not solve(factor, x, size):
            return i
        for a in range(size):
            estimates[i, chosen[a]] = x[a]
    return -1


@njit(**KERNEL)
def regressions_on_candidates(start, stop, source, indptr, indices, most, trifle, estimates):
    """Least squares of spin i on its candidates, for spins start to stop.

    The twin of `restricted_regressions` without a matrix of all candidates: the same numbers to the
    last bit.
    source: as `covariance` takes it     indptr, indices: candidates, CSR
    estimates: (n_candidates,) float64, overwritten
    trifle: a ridge, in units of each candidate's variance
    Gives the first spin whose system has more than `most` unknowns or is singular, or -1.
    """
    factor = np.empty((8, 8))
    x = np.empty(8)
    for i in range(start, stop):
        chosen = indices[indptr[i] : indptr[i + 1]]
        size = len(chosen)
        if size > most:
            return i
        if size > len(x):
            factor = np.empty((size + 8, size + 8))
            x = np.empty(size + 8)
        for a in range(size):
            for b in range(a + 1):
                factor[a, b] = covariance(source, chosen[a], chosen[b])
            factor[a, a] *= 1 + trifle
            x[a] = covariance(source, chosen[a], i)
        if not solve(factor, x, size):
            return i
        for a in range(size):
            estimates[indptr[i] + a] = x[a]
    return -1


@njit(**KERNEL)
def noises_on_candidates(start, stop, source, indptr, indices, estimates, n_samples, noises):
    """Standard deviations of the estimates of `regressions_on_candidates`, for spins start to stop.

    Of n candidates with covariances G that leave a sum of squares e_i of spin i: sqrt(e_i
    (G^{-1})_jj / (M - n)).
    noises: (n_candidates,), overwritten
    """
    for i in range(start, stop):
        first = indptr[i]
        size = indptr[i + 1] - indptr[i]
        if size == 0:
            continue
        block = np.empty((size, size))
        whole = covariance(source, i, i)
        left = whole
        for a in range(size):
            for b in range(a + 1):
                block[a, b] = block[b, a] = covariance(
                    source, indices[first + a], indices[first + b]
                )
            left -= estimates[first + a] * covariance(source, indices[first + a], i)
        factorize(block, size)
        for a in range(size):
            column = np.zeros(size)
            column[a] = 1.0
            substitute(block, column, size)
            noises[first + a] = np.sqrt(
                max(left, 1e-6 * whole) / max(n_samples - size - 1, 1.0) * column[a]
            )


@njit(**KERNEL)
def covariances_of(start, stop, source, pairs, out):
    """out[p] = covariance of pairs[p], for pairs start to stop."""
    for p in range(start, stop):
        out[p] = covariance(source, pairs[p, 0], pairs[p, 1])
