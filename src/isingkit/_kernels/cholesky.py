"""Products and Cholesky factors of the small systems of Newton steps.

Plain loops that LLVM makes vectors of: as quick as BLAS and LAPACK at these sizes, and numba takes
seconds to compile its calls of those.
"""

import numpy as np
from numba import njit

from isingkit._kernels.flags import VECTOR_PART

_LEAST_LEFT = 1e-16  # of a diagonal entry; less is rounding
_EXPLAINED = 1e-10  # the same, of a column that is all but explained by those before it
_ENDLESS = 1e100


@njit(**VECTOR_PART)
def products(vector, rows, n_rows, out):
    """out[a] = sum_k rows[a, k] vector[k], for the first n_rows; four at a time, so that the vector
    is read once for all of them.
    """
    size = len(vector)
    n_fours = n_rows // 4 * 4
    for a in range(0, n_fours, 4):
        row_0 = rows[a]
        row_1 = rows[a + 1]
        row_2 = rows[a + 2]
        row_3 = rows[a + 3]
        sum_0 = 0.0
        sum_1 = 0.0
        sum_2 = 0.0
        sum_3 = 0.0
        for k in range(size):
            factor = vector[k]
            sum_0 += factor * row_0[k]
            sum_1 += factor * row_1[k]
            sum_2 += factor * row_2[k]
            sum_3 += factor * row_3[k]
        out[a] = sum_0
        out[a + 1] = sum_1
        out[a + 2] = sum_2
        out[a + 3] = sum_3
    for a in range(n_fours, n_rows):
        row = rows[a]
        total = 0.0
        for k in range(size):
            total += vector[k] * row[k]
        out[a] = total


@njit(**VECTOR_PART)
def factorize(matrix, factor, size):
    """factor: L with L L' = matrix in its lower triangle, of the first `size` rows and columns.

    A pivot that is 0 or less but for rounding counts as tiny: what depends on it comes out huge,
    which callers look for.
    """
    for a in range(size):
        row = factor[a]
        for b in range(a):
            other = factor[b]
            dot = matrix[a, b]
            for k in range(b):
                dot -= row[k] * other[k]
            row[b] = dot / other[b]
        left = matrix[a, a]
        for k in range(a):
            left -= row[k] * row[k]
        row[a] = np.sqrt(max(left, _LEAST_LEFT * matrix[a, a]))


@njit(**VECTOR_PART)
def factorize_some(matrix, chosen, factor, size):
    """The same of the rows and columns chosen[:size] of a matrix.

    But a column that others explain counts as endless: `solve` then leaves it where it is. Of equal
    columns rounding would else say which one moves.
    """
    for a in range(size):
        row = factor[a]
        of_matrix = matrix[chosen[a]]
        for b in range(a):
            other = factor[b]
            dot = of_matrix[chosen[b]]
            for k in range(b):
                dot -= row[k] * other[k]
            row[b] = dot / other[b]
        left = of_matrix[chosen[a]]
        for k in range(a):
            left -= row[k] * row[k]
        is_explained = left <= _EXPLAINED * of_matrix[chosen[a]]
        row[a] = _ENDLESS if is_explained else np.sqrt(left)


@njit(**VECTOR_PART)
def solve(factor, x, size):
    """Solve L L' x = b in place: x is b on entry."""
    for a in range(size):
        row = factor[a]
        dot = x[a]
        for k in range(a):
            dot -= row[k] * x[k]
        x[a] = dot / row[a]
    for a in range(size - 1, -1, -1):
        row = factor[a]
        x[a] /= row[a]
        for k in range(a):
            x[k] -= row[k] * x[a]


@njit(**VECTOR_PART)
def variances_of(factor, room, variances, size):
    """variances: (size,), overwritten with the diagonal of the inverse of L L'; room: (size,).

    Entry a is the squared length of y, L y = the unit vector of a.
    """
    for a in range(size):
        total = 0.0
        for b in range(a, size):
            row = factor[b]
            dot = 1.0 if b == a else 0.0
            for k in range(a, b):
                dot -= row[k] * room[k]
            room[b] = dot / row[b]
            total += room[b] * room[b]
        variances[a] = total
