"""Pairs of spins: how their estimates scatter in both stages, and how likely they are to pass."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from isingkit.arrays import BoolArray, FloatArray, IntArray

ROOT_TWO_PI = np.sqrt(2 * np.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_LOWEST = -8.5  # standard deviations: what is further out does not count
_LARGEST = 1 - 1e-9  # estimate whose Fisher transform is finite
_AT_ONCE = 500_000  # numbers that are integrated over together


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of spins, alike ones together: how many there are and how their estimates scatter."""

    count: FloatArray  # (n,)
    is_edge: BoolArray  # (n,)
    mean: FloatArray  # (n,): of stage one
    std: FloatArray  # (n,)
    second_mean: FloatArray  # (n,): of stage two
    slope: FloatArray  # (n,): how much of an excess in stage one comes back in stage two
    second_std: FloatArray  # (n,): of stage two where stage one is known

    @classmethod
    def mean_of(cls, parts: Sequence[Self]) -> Self:
        """Pairs of several models, each counted in part."""
        joined = {
            one.name: np.concatenate([getattr(part, one.name) for part in parts])
            for one in fields(cls)
        }
        joined["count"] = joined["count"] / len(parts)
        return cls(**joined)

    def passing(self, threshold: FloatArray, prune: float | None) -> FloatArray:
        """(n_thresholds, n): probability that an estimate passes; of two stages, both."""
        if prune is None:
            return self._passing_first(threshold)
        return self._passing_both(threshold, prune)

    def split(
        self, places: IntArray, counts: FloatArray, changes: FloatArray, left: FloatArray
    ) -> "Pairs":
        """More pairs, like those at `places` but for their means and stage two's variance.

        places, counts: (n_new,)
        changes: (n_new, 3), of the means of both stages, and factors of stage two's variance
        left: (n,), what is left of the pairs there were
        """
        of_first, of_second, noise = changes.T

        def longer(values: FloatArray) -> FloatArray:
            return np.concatenate([values, values[places]])

        n = len(self.count)
        mean = longer(self.mean)
        second_mean = longer(self.second_mean)
        mean[n:] += of_first
        second_mean[n:] += of_second
        known = (longer(self.slope) * longer(self.std))[n:] ** 2
        second_std = longer(self.second_std)
        total = known + second_std[n:] ** 2
        second_std[n:] = np.sqrt(np.maximum(noise * total - known, 0.1 * total))
        return Pairs(
            count=np.concatenate([left, counts]),
            is_edge=np.concatenate([self.is_edge, self.is_edge[places]]),
            mean=mean,
            std=longer(self.std),
            second_mean=second_mean,
            slope=longer(self.slope),
            second_std=second_std,
        )

    def first_level(self, level: FloatArray | float) -> FloatArray:
        """A level of stage one after Fisher's transformation of estimates, scaled to stage two."""
        scale = np.zeros_like(self.mean)
        skewed = self.is_edge & (self.mean != 0)
        np.divide(self.second_mean, self.mean, out=scale, where=skewed)
        transformed = fisher_transformed(level * scale, self.second_mean)
        unchanged = level + np.zeros_like(transformed)
        return np.asarray(np.divide(transformed, scale, out=unchanged, where=scale > 0))

    def excess(self, prune: float) -> FloatArray:
        """Mean of X - mean where stage one is passed, times the probability that it is.

        It is 0 for pairs of mean 0.
        """
        upwards = _normal_density((prune - self.mean) / self.std)
        downwards = _normal_density((prune + self.mean) / self.std)
        return self.std * (upwards - downwards)

    def candidates(self, prune: float) -> tuple[FloatArray, float]:
        """Probability to pass stage one, and the sum of squares of those that are no edges.

        The sum is the expected one of (X - mean)^2 over pairs that pass.
        """
        squares = np.zeros(len(self.count))
        for sign in (1.0, -1.0):
            start = (prune - sign * self.mean) / self.std
            density = np.exp(-(start**2) / 2)
            squares += self.std**2 * (ndtr(-start) + start * density / ROOT_TWO_PI)
        passing = self._passing_first(np.array([prune]))[0]
        of_pairs = (squares * self.count)[~self.is_edge]
        return passing, float(of_pairs.sum())

    def _passing_first(self, threshold: FloatArray) -> FloatArray:
        level = threshold[:, None]
        upwards = ndtr((self.mean - self.first_level(level)) / self.std)
        downwards = ndtr((-self.mean - level) / self.std)
        return np.asarray(upwards + downwards)

    def _passing_both(self, threshold: FloatArray, prune: float) -> FloatArray:
        """Stage two's probability given stage one, integrated over what passes stage one."""
        total = np.zeros((len(threshold), len(self.count)))
        for sign in (1.0, -1.0):  # stage one passed upwards, downwards
            level = self.first_level(prune) if sign > 0 else prune
            from_z = (level - sign * self.mean) / self.std
            some = np.flatnonzero(from_z < -_LOWEST)
            z, weights = _tail_nodes(from_z[some])
            centre = self.second_mean[some] + sign * (self.slope * self.std)[some] * z
            step = max(1, _AT_ONCE // max(1, z.size))
            for start in range(0, len(threshold), step):
                rows = slice(start, start + step)
                passing = self._passing_second(threshold[rows, None, None], centre, some)
                total[rows, some] += np.sum(weights * passing, axis=1)
        return total

    def _passing_second(
        self, threshold: FloatArray, centre: FloatArray, some: IntArray
    ) -> FloatArray:
        """Of some of the pairs, with stage two's mean where stage one is known."""
        second_mean = self.second_mean[some]
        second_std = self.second_std[some]
        above = fisher_transformed(threshold, second_mean)
        below = fisher_transformed(threshold, -second_mean)
        upwards = ndtr((centre - above) / second_std)
        downwards = ndtr((-centre - below) / second_std)
        return np.asarray(upwards + downwards)


def grouped(table: FloatArray) -> Pairs:
    """Pairs whose numbers hardly differ, counted together.

    Their means differ by 0.02 standard deviations, their standard deviations by 1 percent.

    table: (n, 6), the fields of Pairs but for the count
    """
    is_edge, mean, std, second_mean, slope, second_std = table.T
    of_first = (50 * mean / std, 100 * np.log(std))
    of_second = (50 * second_mean / second_std, 50 * slope * std / second_std)
    steps = (is_edge, *of_first, *of_second, 100 * np.log(second_std))
    # all steps in one number: sorting rows would take many times longer
    key = np.zeros(len(table), dtype=np.int64)
    for step in steps:
        whole = np.rint(np.clip(step, -1e5, 1e5)).astype(np.int64)
        combined = key * (np.ptp(whole) + 1) + whole - whole.min()
        _, key = np.unique(combined, return_inverse=True)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    return Pairs(
        count=count.astype(np.float64),
        is_edge=is_edge[first].astype(bool),
        mean=mean[first],
        std=std[first],
        second_mean=second_mean[first],
        slope=slope[first],
        second_std=second_std[first],
    )


def _tail_nodes(start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(nodes, n): places z above `start`, and weights that integrate a Gaussian density there."""
    start = np.maximum(start, _LOWEST)
    stop = np.sqrt(np.maximum(start, 0.0) ** 2 + 72.0)
    length = stop - start
    z = start + length * (_NODES[:, None] + 1) / 2
    weights = _WEIGHTS[:, None] * length / 2
    return z, weights * np.exp(-(z**2) / 2) / ROOT_TWO_PI


def _normal_density(z: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-(z**2) / 2) / ROOT_TWO_PI)


def fisher_transformed(level: ArrayLike, mean: FloatArray) -> FloatArray:
    r"""The level at which a Gaussian number passes as often as an estimate does.

    Estimates are skewed as correlations are, and like these Gaussian after Fisher's transformation:
    it is atanh(estimate) whose variance does not depend on the mean. Three standard deviations out,
    that doubles the edges missed.
    """
    level = np.clip(level, -_LARGEST, _LARGEST)
    mean = np.clip(mean, -_LARGEST, _LARGEST)
    difference = np.arctanh(level) - np.arctanh(mean)
    return mean + (1 - mean**2) * difference
