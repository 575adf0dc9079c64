"""Coordinate descent on quadratic functions with an absolute-value penalty."""

import numpy as np
from numba import njit

from isingkit._kernels.flags import KERNEL, PART


@njit(cache=True, nogil=True, fastmath=False, inline="always")
def shrunk(value, by):
    """The soft threshold: value moved towards 0 by `by`, and 0 where that passes it."""
    if value > by:
        return value - by
    if value < -by:
        return value + by
    return 0.0


@njit(cache=True, nogil=True, fastmath=False, inline="always")
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
    """
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
            return


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
