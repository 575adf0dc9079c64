"""Logistic regression on few coefficients, in loops: array expressions take numba many times as
long to compile.
"""

import numpy as np
from numba import njit

from isingkit._kernels.elementary import tanh
from isingkit._kernels.estimators import factorize, substitute

_STEPS = 30
SHORT = 1e-4  # step of Newton's method after which the next would be about its square
# ridge of steps, in units of the Hessian's diagonal, where samples are so many that the ridge
# itself is nothing
_LEAST = 1e-9
_BY_HAND = 24  # rows of a design, below which half a matrix is quicker than a whole one by BLAS


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def predict(x, design, field):
    """field: (n_cells,), overwritten with design' x."""
    for k in range(len(field)):
        field[k] = 0.0
    for a in range(len(x)):
        for k in range(len(field)):
            field[k] += x[a] * design[a, k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def responses(sums, field, weights, residual, curvature):
    """residual, curvature: overwritten with sums - w tanh f and w (1 - tanh^2 f)."""
    for k in range(len(field)):
        mean = tanh(field[k])
        residual[k] = sums[k] - weights[k] * mean
        curvature[k] = weights[k] * (1 - mean * mean)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def project(design, values, out):
    """out: (n,), overwritten with the design times values, (n_cells,)."""
    for a in range(len(out)):
        total = 0.0
        for k in range(len(values)):
            total += design[a, k] * values[k]
        out[a] = total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _weigh(design, curvature, room):
    """room: overwritten with the design times curvatures."""
    for a in range(len(design)):
        for k in range(len(curvature)):
            room[a, k] = design[a, k] * curvature[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _multiply(room, design, hessian):
    """hessian: the lower triangle overwritten with that of room design'."""
    for a in range(len(design)):
        for b in range(a + 1):
            total = 0.0
            for k in range(design.shape[1]):
                total += room[a, k] * design[b, k]
            hessian[a, b] = total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _clear_of_bias(design, factor, field, curvature, residual, room, parts):
    """residual: less h tanh f, where h = w (1 - tanh^2 f) |L^-1 d|^2 is a cell's part in the fit; d
    its column of the design.

    factor: L, L L' the Hessian     room, parts: overwritten
    """
    for k in range(len(parts)):
        parts[k] = 0.0
    for a in range(len(design)):
        for k in range(len(parts)):
            room[a, k] = design[a, k]
        for b in range(a):
            for k in range(len(parts)):
                room[a, k] -= factor[a, b] * room[b, k]
        for k in range(len(parts)):
            room[a, k] /= factor[a, a]
            parts[k] += room[a, k] * room[a, k]
    for k in range(len(parts)):
        residual[k] -= curvature[k] * parts[k] * tanh(field[k])


@njit(cache=True, nogil=True, fastmath=False)
def logistic(sums, design, weights, ridges, clearing, x, field, residual, curvature):
    """Fit P(s) ~ exp(s (design' x)) in place by Newton steps; gives the last Hessian's Cholesky
    factor and the last step's length.

    sums, weights: (n_cells,), of w s and w, cells of samples or single ones
    design: (n, n_cells)
    field, residual, curvature: (n_cells,), overwritten: f, sums - w tanh f, w (1 - tanh^2 f)
    ridges: the penalties on the square of the field, the first coefficient, and of couplings, the
    others clearing: 0.0; or 1.0 to maximize the likelihood times the square root of the Hessian's
    determinant (Firth), which clears x of the bias of few samples, some x / n_samples for each
    coefficient, to first order
    """
    size, n_cells = design.shape
    factor, change, longest = np.empty((size, size)), np.empty(size), np.inf
    room, parts = np.empty((size, n_cells)), np.empty(n_cells)
    for _ in range(_STEPS):
        predict(x, design, field)
        responses(sums, field, weights, residual, curvature)
        _weigh(design, curvature, room)
        if size > _BY_HAND:
            factor = np.dot(room, design.T)
        else:
            _multiply(room, design, factor)
        for a in range(size):
            factor[a, a] += max(ridges[min(a, 1)], _LEAST * factor[a, a])
        factorize(factor, size)
        if clearing > 0:
            _clear_of_bias(design, factor, field, curvature, residual, room, parts)
        project(design, residual, change)
        for a in range(size):
            change[a] -= ridges[min(a, 1)] * x[a]
        substitute(factor, change, size)
        longest = 0.0
        for a in range(size):
            longest = max(longest, abs(change[a]))
        for a in range(size):
            x[a] += change[a] / max(longest, 1.0)
        if longest < SHORT:
            break
    predict(x, design, field)
    responses(sums, field, weights, residual, curvature)
    return factor, longest


@njit(cache=True, nogil=True, fastmath=False)
def inverse_of_factor(factor, inverse):
    """inverse: (n, n), overwritten with that of L L'."""
    size = len(factor)
    for a in range(size):
        for b in range(size):
            inverse[a, b] = 0.0
        inverse[a, a] = 1.0
        substitute(factor, inverse[a], size)
