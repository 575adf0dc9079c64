"""Sums of the first generations around a spin that is up, all couplings made positive."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, xlogy

from isingkit.arrays import FloatArray

MOST_GENERATIONS = 64


@dataclass(frozen=True, slots=True, eq=False)
class GenerationSums:
    """The sums that neighbours and their other neighbours may have together."""

    first: FloatArray  # (n,)
    second: FloatArray  # (n,)
    probability: FloatArray  # (n,)
    sizes: tuple[int, int]


def neighbour_sums(degree: int, theta: float) -> tuple[FloatArray, FloatArray]:
    """Sums of a spin's neighbours, given that it is up, and their probabilities."""
    sums = np.linspace(-degree, degree, degree + 1)
    return sums, _binomial(degree, (1 + theta) / 2)


@lru_cache(maxsize=256)
def two_generations(degree: int, theta: float) -> GenerationSums:
    """Of c neighbours and the c (c - 1) spins behind them, which know only their parents."""
    up = (1 + theta) / 2
    sums, of_sums = neighbour_sums(degree, theta)
    firsts = []
    seconds = []
    probabilities = []
    n_children = degree * (degree - 1)
    for n_up in range(degree + 1):
        of_up = _binomial(n_up * (degree - 1), up)
        of_down = _binomial((degree - n_up) * (degree - 1), 1 - up)
        firsts.append(np.full(n_children + 1, sums[n_up]))
        seconds.append(2.0 * np.arange(n_children + 1) - n_children)
        probabilities.append(of_sums[n_up] * np.convolve(of_up, of_down))
    return GenerationSums(
        np.concatenate(firsts),
        np.concatenate(seconds),
        np.concatenate(probabilities),
        (degree, n_children),
    )


def generation_sizes(n_spins: int, degree: int) -> FloatArray:
    """Spins in each generation around one, while any are left; the last takes what remains."""
    sizes: list[float] = []
    left = n_spins - 1
    while left > 0 and len(sizes) < MOST_GENERATIONS:
        size = min(left, degree * (degree - 1) ** len(sizes))
        if size == 0:
            break
        sizes.append(size)
        left -= size
    if left > 0:
        sizes.append(left)
    return np.array(sizes, dtype=np.float64)


def _binomial(n: int, probability: float) -> FloatArray:
    k = np.arange(n + 1)
    log_choices = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    log_chance = xlogy(k, probability) + xlogy(n - k, 1 - probability)
    return np.asarray(np.exp(log_choices + log_chance))
