"""Logistic regression on few coefficients.

Written in loops: array expressions take numba many times as long to compile. A regression is the
tuple (sums of w, sums of w s, design) that `cells.into_cells` makes.
"""

from math import inf

from numba import njit

from isingkit._kernels.elementary import tanh
from isingkit._kernels.estimators import factorize, substitute
from isingkit._kernels.flags import PART, VECTOR_PART
from isingkit._kernels.workspace import fill, matrix, numbers

_STEPS = 30
SHORT = 1e-4  # step of Newton's method after which the next would be about its square
# ridge of steps, in units of the Hessian's diagonal, for so many samples that the ridge is nothing
_LEAST = 1e-9


@njit(**VECTOR_PART)
def predict(x, design, field):
    """field: (n_cells,), overwritten with design' x."""
    fill(field, 0.0)
    for a in range(len(x)):
        for k in range(len(field)):
            field[k] += x[a] * design[a, k]


@njit(**VECTOR_PART)
def responses(totals, sums, field, residual, curvature):
    """residual, curvature: overwritten with sums - w tanh f and w (1 - tanh^2 f)."""
    for k in range(len(field)):
        mean = tanh(field[k])
        residual[k] = sums[k] - totals[k] * mean
        curvature[k] = totals[k] * (1 - mean * mean)


@njit(**VECTOR_PART)
def project(design, values, out):
    """out: (n,), overwritten with the design times values, (n_cells,)."""
    for a in range(len(out)):
        total = 0.0
        for k in range(len(values)):
            total += design[a, k] * values[k]
        out[a] = total


@njit(**VECTOR_PART)
def _hessian(design, curvature, weighted, hessian):
    """hessian: the lower triangle overwritten with that of sum_k curvature_k d_k d_k'.

    weighted: (n_cells,), overwritten
    """
    for a in range(len(design)):
        for k in range(len(curvature)):
            weighted[k] = design[a, k] * curvature[k]
        for b in range(a + 1):
            total = 0.0
            for k in range(len(curvature)):
                total += weighted[k] * design[b, k]
            hessian[a, b] = total


@njit(**PART)
def _whiten(design, factor, whitened, leverage):
    """whitened, leverage: overwritten with L^-1 d and |L^-1 d|^2 of each column d of the design.

    factor: L, L L' the Hessian
    """
    fill(leverage, 0.0)
    for a in range(len(design)):
        for k in range(len(leverage)):
            whitened[a, k] = design[a, k]
        for b in range(a):
            for k in range(len(leverage)):
                whitened[a, k] -= factor[a, b] * whitened[b, k]
        for k in range(len(leverage)):
            whitened[a, k] /= factor[a, a]
            leverage[k] += whitened[a, k] * whitened[a, k]


@njit(**PART)
def ridges_of(penalties, n_regressors, size):
    """(size,): penalties of the field, of couplings to regressors, and of each cause."""
    ridges = numbers(size)
    for a in range(size):
        ridges[a] = penalties[min(a, 1) if a <= n_regressors else a - n_regressors + 1]
    return ridges


@njit(**PART)
def logistic(regression, ridges, firth, x, state):
    """Fit P(s) ~ exp(s (design' x)) in place, by Newton steps.

    Gives the last Hessian's Cholesky factor and the length of the last step.
    state: (field, residual, curvature), each (n_cells,), overwritten: f, sums - w tanh f,
    w (1 - tanh^2 f)
    ridges: (n,), penalties on the squares of coefficients
    firth: 0.0; or 1.0 to maximise the likelihood times the square root of the Hessian's
    determinant, which removes the bias of few samples, some x / n_samples for each coefficient, to
    first order (a number: of True and False numba would compile one version each)
    """
    totals, sums, design = regression
    field, residual, curvature = state
    size, n_cells = design.shape
    factor = matrix(size, size)
    change = numbers(size)
    scratch = numbers(n_cells)
    whitened = matrix(size if firth > 0 else 0, n_cells)
    longest = inf
    for _ in range(_STEPS):
        predict(x, design, field)
        responses(totals, sums, field, residual, curvature)
        _hessian(design, curvature, scratch, factor)
        for a in range(size):
            factor[a, a] += max(ridges[a], _LEAST * factor[a, a])
        factorize(factor, size)
        if firth > 0:
            _whiten(design, factor, whitened, scratch)
            for k in range(n_cells):
                residual[k] -= curvature[k] * scratch[k] * tanh(field[k])
        project(design, residual, change)
        for a in range(size):
            change[a] -= ridges[a] * x[a]
        substitute(factor, change, size)
        longest = 0.0
        for a in range(size):
            longest = max(longest, abs(change[a]))
        for a in range(size):
            x[a] += change[a] / max(longest, 1.0)
        if longest < SHORT:
            break
    predict(x, design, field)
    responses(totals, sums, field, residual, curvature)
    return factor, longest


@njit(**PART)
def inverse_of_factor(factor, inverse):
    """inverse: (n, n), overwritten with that of L L'."""
    size = len(factor)
    for a in range(size):
        fill(inverse[a], 0.0)
        inverse[a, a] = 1.0
        substitute(factor, inverse[a], size)
