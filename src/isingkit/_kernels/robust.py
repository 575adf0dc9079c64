"""Variances of sums over samples that belong together."""

from math import log, sqrt

from numba import njit

from isingkit._kernels.flags import PART
from isingkit._kernels.workspace import fill, numbers

_KNOWN = 0.7  # fourth powers are uncertain, too; measured: docs/design/rows.md


@njit(**PART)
def grouped_variance(values, weights, groups):
    """Variance of the sum of values whose groups are independent, and its degrees of freedom.

    Sums of groups are taken about what their weight makes expected, so that a mean that is not 0
    does not count. With few groups, or few that matter, the variance is itself uncertain: its
    degrees of freedom are 2 (sum of squares)^2 / its variance, from the fourth powers (as
    Satterthwaite's).

    groups: (n_samples,), from 0 on
    """
    n_groups = 0
    for k in range(len(groups)):
        n_groups = max(n_groups, groups[k] + 1)
    sums = numbers(n_groups)
    masses = numbers(n_groups)
    fill(sums, 0.0)
    fill(masses, 0.0)
    total = 0.0
    mass = 0.0
    for k in range(len(groups)):
        sums[groups[k]] += values[k]
        masses[groups[k]] += weights[k]
        total += values[k]
        mass += weights[k]
    second = 0.0
    fourth = 0.0
    for g in range(n_groups):
        square = (sums[g] - total * masses[g] / mass) ** 2
        second += square
        fourth += square * square
    most = max(n_groups - 1.0, 1.0)
    spread = fourth - second * second / n_groups
    freedom = most
    if spread > 0:
        freedom = min(2 * second * second / spread, most)
    return second * n_groups / most, max(_KNOWN * freedom, 1.0)


@njit(**PART)
def as_normal(t, freedom):
    """The normal z-score with the tail of t, by Wallace's formula; freedom 0: t is one already."""
    if freedom <= 0:
        return t
    size = sqrt(freedom * log(1 + t * t / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return size if t > 0 else -size
