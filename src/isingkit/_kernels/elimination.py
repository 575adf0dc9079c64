"""Backward elimination of candidates, on covariances."""

from math import inf, log1p

from numba import njit

from isingkit._kernels.estimators import factorize, substitute
from isingkit._kernels.flags import KERNEL, PART
from isingkit._kernels.logistic import inverse_of_factor
from isingkit._kernels.sources import covariance
from isingkit._kernels.workspace import matrix, numbers

KEPT, DROPPED = 0, 1  # in the order of elimination; the first that was dropped is 1, the next 2
_SAME = 1e-6  # relative difference of costs that rounding may make
_TRIFLE = 1e-9  # on the diagonal, relatively, for candidates that are the same


@njit(**PART)
def _least_squares(i, source, chosen):
    """Of spin i on the chosen: the inverse of their covariances, coefficients, and RSS."""
    size = len(chosen)
    factor = matrix(size, size)
    right = numbers(size)
    x = numbers(size)
    for a in range(size):
        for b in range(a + 1):
            factor[a, b] = covariance(source, chosen[a], chosen[b])
        factor[a, a] *= 1 + _TRIFLE
        right[a] = covariance(source, chosen[a], i)
        x[a] = right[a]
    factorize(factor, size)
    inverse = matrix(size, size)
    inverse_of_factor(factor, inverse)
    substitute(factor, x, size)
    whole = covariance(source, i, i)
    left = whole
    for a in range(size):
        left -= x[a] * right[a]
    return inverse, x, max(left, 1e-9 * whole)


@njit(**PART)
def _weakest(inverse, x, order):
    """The candidate still there that costs least, and its cost x_j^2 / B_jj.

    Of candidates that cost the same, equal columns for one, the last.
    """
    weakest = -1
    least = inf
    for a in range(len(x) - 1, -1, -1):
        if order[a] == KEPT and x[a] * x[a] < least * inverse[a, a] * (1 - _SAME):
            weakest = a
            least = x[a] * x[a] / inverse[a, a]
    return weakest, least


@njit(**PART)
def _drop(inverse, x, which):
    """Coefficients and inverse covariances without one candidate, in place."""
    pivot = inverse[which, which]
    own = x[which]
    row = numbers(len(x))
    for a in range(len(x)):
        row[a] = inverse[which, a] / pivot
    for a in range(len(x)):
        x[a] -= own * row[a]
        factor = inverse[a, which]
        for b in range(len(x)):
            inverse[a, b] -= factor * row[b]


@njit(**KERNEL)
def eliminate(start, stop, source, graph, n_samples, cost, order):
    """Drop the weakest candidate of spin i in least squares, again and again, while that costs
    less than `cost`.

    source: as `covariance` takes it     graph: (indptr, indices) of candidates
    order: like indices, overwritten: KEPT, or DROPPED for the first that was dropped, and so on
    A candidate costs the rise of M log RSS. With B the inverse of G[a, a] and x = B G[a, i]:
    dropping j raises RSS by x_j^2 / B_jj.
    """
    indptr, indices = graph
    for i in range(start, stop):
        mine = order[indptr[i] : indptr[i + 1]]
        inverse, x, left = _least_squares(i, source, indices[indptr[i] : indptr[i + 1]])
        for a in range(len(mine)):
            mine[a] = KEPT
        for number in range(len(mine)):
            weakest, least = _weakest(inverse, x, mine)
            if n_samples * log1p(least / left) >= cost:
                break
            mine[weakest] = DROPPED + number
            left += least
            _drop(inverse, x, weakest)
