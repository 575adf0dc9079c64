r"""How an edge's estimates of both stages scatter together, spins being no Gaussian numbers.

An estimate's deviation is the mean over samples of a residual times an influence: in stage one
e = s_i - \bar J s times y_j = [(C + k)^{-1} s]_j, in stage two \epsilon, the residual of least
squares on the true neighbours, times z_j = [C_nn^{-1} s_n]_j. Beyond the neighbours s_i and all
others are independent given these, so that the cumulants of four are those of projections on the
spin and its neighbours, which in the spin's gauge are independent. What is Gaussian is kept apart:
stage two given all of stage one has it already.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from isingkit.arrays import FloatArray


class JointScatter(NamedTuple):
    """Covariances of both stages, of each neighbour of a spin, times the number of samples."""

    first: FloatArray  # (n,): variance of stage one beyond its Gaussian part
    crossed: FloatArray  # (n,): covariance of both stages beyond its Gaussian part
    second: FloatArray  # (n,): variance of stage two beyond its Gaussian part


def joint_scatter(
    theta: FloatArray, with_residual: FloatArray, influence: FloatArray, along: FloatArray
) -> JointScatter:
    """Of all neighbours of one spin.

    theta: (n,) tanh of its couplings
    with_residual: (n + 1,) covariances of e with the spin and its neighbours
    influence: (n, n + 1) covariances of the neighbours' y with the spin and its neighbours
    along: (n,) mean products of e and y
    """
    n = len(theta)
    star = np.eye(n + 1)
    star[0, 1:] = theta
    star[1:, 0] = theta
    among = np.outer(theta, theta)
    np.fill_diagonal(among, 1.0)
    star[1:, 1:] = among
    inverse = np.linalg.inv(star)
    shape = influence.shape
    e = np.broadcast_to(inverse @ with_residual, shape)
    y = influence @ inverse
    inverse_among = np.linalg.inv(among)
    residual = np.concatenate([[1.0], -inverse_among @ theta])
    epsilon = np.broadcast_to(residual, shape)
    z = np.concatenate([np.zeros((n, 1)), inverse_among], axis=1)

    def mean(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.asarray(np.sum((left @ star) * right, axis=1))

    first = _mean_of_four((e, e, y, y), theta)
    first -= mean(e, e) * mean(y, y) + 2 * mean(e, y) ** 2
    crossed = _mean_of_four((e, epsilon, y, z), theta)
    second = _mean_of_four((epsilon, epsilon, z, z), theta)
    return JointScatter(
        first=first + along**2,
        crossed=crossed - mean(e, epsilon) * mean(y, z),
        second=second - mean(epsilon, epsilon) * mean(z, z),
    )


def _mean_of_four(forms: tuple[FloatArray, ...], theta: FloatArray) -> FloatArray:
    """Mean product of four linear forms in a spin that is up and in independent spins.

    forms: (n, n_spins + 1) each, the first column the spin that is up     theta: means
    """
    variance = 1 - theta**2
    third = -2 * theta * variance
    fourth = variance * (1 + 3 * theta**2) - 3 * variance**2
    means = [form[:, 0] + form[:, 1:] @ theta for form in forms]
    slopes = [form[:, 1:] for form in forms]

    def of_pair(a: int, b: int) -> FloatArray:
        return np.asarray((slopes[a] * slopes[b]) @ variance)

    total = means[0] * means[1] * means[2] * means[3]
    for a, b in combinations(range(4), 2):
        c, d = (place for place in range(4) if place not in (a, b))
        total = total + of_pair(a, b) * means[c] * means[d]
        total = total + of_pair(a, b) * of_pair(c, d) / 2
    for a in range(4):
        b, c, d = (place for place in range(4) if place != a)
        total = total + means[a] * ((slopes[b] * slopes[c] * slopes[d]) @ third)
    product = slopes[0] * slopes[1] * slopes[2] * slopes[3]
    return np.asarray(total + product @ fourth)
