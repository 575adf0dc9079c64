"""Coordinate descent on quadratic functions with an absolute-value penalty."""

import numpy as np
from numba import njit

from isingkit._kernels.cholesky import factorize_some, solve
from isingkit._kernels.flags import CACHE, KERNEL, PART

_FEW_SWEEPS = 20  # after which coordinates that hang together are better moved together
_SWEEPS_BETWEEN = 3


@njit(cache=CACHE, nogil=True, fastmath=False, inline="always")
def shrunk(value, by):
    """The soft threshold: value moved towards 0 by `by`, and 0 where that passes it."""
    if value > by:
        return value - by
    if value < -by:
        return value + by
    return 0.0


@njit(cache=CACHE, nogil=True, fastmath=False, inline="always")
def violation(gradient, x, penalty):
    """How far a coordinate is from its optimality condition: 0 in gradient + penalty * subgradient
    of |x|.
    """
    if x > 0:
        return abs(gradient + penalty)
    if x < 0:
        return abs(gradient - penalty)
    return max(abs(gradient) - penalty, 0.0)


@njit(**PART)
def descend(hessian, x, gradient, penalties, n, tolerance, most_sweeps):
    """Minimise g'd + d'Hd / 2 + sum of penalties * |x + d| over d, by sweeps over coordinates; x
    and gradient in place.

    hessian: (n, n) or more     x, gradient, penalties: (n,) or more; on return gradient is that of
    the quadratic part at the new x
    Gives the largest change of a slope in the last sweep.
    """
    worst = np.inf
    for _ in range(most_sweeps):
        worst = 0.0
        for j in range(n):
            curvature = hessian[j, j]
            if curvature <= 0.0:
                continue
            moved = shrunk(x[j] - gradient[j] / curvature, penalties[j] / curvature)
            change = moved - x[j]
            if change != 0.0:
                x[j] = moved
                row = hessian[j]
                for k in range(n):
                    gradient[k] += change * row[k]
                worst = max(worst, abs(change) * curvature)
        if worst <= tolerance:
            break
    return worst


@njit(**PART)
def minimise_quadratic(hessian, factor, unknowns, active, n, tolerance, most_rounds):
    """As `descend`, where that is slow: all coordinates that are not 0 then move at once, to where
    the function without kinks has its minimum, or until the first of them is 0.

    unknowns: (4, n) or more, of which x, gradient and penalties come first, then room
    factor: (n, n) or more, active: (n,) or more, overwritten
    """
    x, gradient, penalties = unknowns[0], unknowns[1], unknowns[2]
    worst = descend(hessian, x, gradient, penalties, n, tolerance, _FEW_SWEEPS)
    for _ in range(most_rounds):
        if worst <= tolerance:
            return
        n_active = _find_active(hessian, unknowns, active, n)
        factorize_some(hessian, active, factor, n_active)
        solve(factor, unknowns[3], n_active)
        _move_together(hessian, unknowns, active, n_active, n)
        worst = descend(hessian, x, gradient, penalties, n, tolerance, _SWEEPS_BETWEEN)


@njit(**PART)
def _find_active(hessian, unknowns, active, n):
    """Coordinates that are not 0 or have no penalty: their number.

    active: overwritten with them     unknowns[3]: with how steeply the function falls along each
    """
    x, gradient, penalties, step = unknowns[0], unknowns[1], unknowns[2], unknowns[3]
    n_active = 0
    for a in range(n):
        if hessian[a, a] > 0.0 and (penalties[a] == 0.0 or x[a] != 0.0):
            sign = 1.0 if x[a] > 0 else -1.0 if x[a] < 0 else 0.0
            active[n_active] = a
            step[n_active] = -gradient[a] - penalties[a] * sign
            n_active += 1
    return n_active


@njit(**PART)
def _move_together(hessian, unknowns, active, n_active, n):
    """Take the step unknowns[3] of the active coordinates, as far as none of them changes sign."""
    x, gradient, penalties, step = unknowns[0], unknowns[1], unknowns[2], unknowns[3]
    length, first = 1.0, -1
    for b in range(n_active):
        a = active[b]
        if penalties[a] > 0.0 and step[b] != 0.0 and 0.0 < -x[a] / step[b] < length:
            length, first = -x[a] / step[b], a
    for b in range(n_active):
        a = active[b]
        change = -x[a] if a == first else length * step[b]
        x[a] = 0.0 if a == first else x[a] + change
        row = hessian[a]
        for k in range(n):
            gradient[k] += change * row[k]


@njit(**PART)
def _sweep(covariance, penalty, active, n_active, x, gradient):
    """Largest change of a slope by one pass over the couplings active[:n_active], one at a time.

    x, gradient: (n_spins,), moved along
    """
    worst = 0.0
    for a in range(n_active):
        j = active[a]
        curvature = covariance[j, j]
        moved = shrunk(x[j] - gradient[j] / curvature, penalty / curvature)
        change = moved - x[j]
        if change != 0.0:
            x[j] = moved
            for k in range(len(x)):
                gradient[k] += change * covariance[j, k]
            worst = max(worst, abs(change) * curvature)
    return worst


@njit(**KERNEL)
def lasso_paths(
    start, stop, covariance, keep, penalties, tolerance, most_sweeps, estimates, residuals
):
    """Minimise x'Cx / 2 - C_i'x + penalty * sum |x_j|, x_i = 0, for spins start to stop and each
    penalty, the largest first.

    covariance: (n_spins, n_spins)     keep: (n_spins,) bool, spins that change
    penalties: (n,), falling
    estimates: (n, n_spins, n_spins), zero on entry
    residuals: (n, n_spins), largest violation of optimality
    Sweeps over the couplings that are not 0 alternate with looks at all of them.
    """
    n_spins = len(covariance)
    active = np.empty(n_spins, np.int64)
    is_active = np.empty(n_spins, np.bool_)
    for i in range(start, stop):
        if not keep[i]:
            continue
        x = np.zeros(n_spins)
        gradient = -covariance[i]
        n_active = 0
        is_active[:] = False
        for number in range(len(penalties)):
            penalty = penalties[number]
            residual = np.inf
            for _ in range(most_sweeps):
                residual = 0.0
                for j in range(n_spins):
                    if j != i and keep[j]:
                        off = violation(gradient[j], x[j], penalty)
                        residual = max(residual, off)
                        if off > tolerance and not is_active[j]:
                            is_active[j] = True
                            active[n_active] = j
                            n_active += 1
                if residual <= tolerance:
                    break
                for _ in range(most_sweeps):
                    worst = _sweep(covariance, penalty, active, n_active, x, gradient)
                    if worst <= 0.1 * tolerance:
                        break
            estimates[number, i] = x
            residuals[number, i] = residual
