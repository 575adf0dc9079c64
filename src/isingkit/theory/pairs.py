"""Pairs of spins: how their estimates scatter in both stages, and how likely they are to pass."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from isingkit.arrays import FloatArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of spins, alike ones together: how many there are and how their estimates scatter."""

    count: FloatArray  # (n,)
    is_edge: Any  # (n,) bool
    mean: FloatArray  # of stage one
    std: FloatArray
    second_mean: FloatArray  # of stage two
    slope: FloatArray  # how much of an excess in stage one comes back in stage two
    second_std: FloatArray  # of stage two where stage one is known

    def passing(self, threshold: FloatArray, prune: float | None) -> FloatArray:
        """(n_thresholds, n): probability that an estimate passes; with two stages, that it passes
        both.
        """
        if prune is None:
            level = self.bent_first(threshold[:, None])
            return ndtr((self.mean - level) / self.std) + ndtr(
                (-self.mean - threshold[:, None]) / self.std
            )
        total = np.zeros((len(threshold), len(self.count)))
        for sign in (1.0, -1.0):  # stage one passed upwards, downwards
            first = self.bent_first(np.asarray(prune)) if sign > 0 else prune
            start = np.maximum((first - sign * self.mean) / self.std, -8.5)
            stop = np.sqrt(np.maximum(start, 0.0) ** 2 + 72.0)
            z = start + (stop - start) * (_NODES[:, None] + 1) / 2  # (nodes, n)
            weight = (
                _WEIGHTS[:, None] * (stop - start) / 2 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
            )
            centre = self.second_mean + sign * self.slope * self.std * z
            together = max(1, 500_000 // z.size)
            for row in range(0, len(threshold), together):
                rows = slice(row, row + together)
                above, below = (
                    _fisher_transformed(threshold[rows, None, None], mean)
                    for mean in (self.second_mean, -self.second_mean)
                )
                passed = ndtr((centre - above) / self.second_std) + ndtr(
                    (-centre - below) / self.second_std
                )
                total[rows] += np.sum(weight * passed, axis=1)
        return total

    def bent_first(self, level: FloatArray) -> FloatArray:
        """A level of stage one, seen by Fisher's transformation of the estimate scaled to its size
        in stage two.
        """
        scale = np.divide(
            self.second_mean,
            self.mean,
            out=np.zeros_like(self.mean),
            where=self.is_edge & (self.mean != 0),
        )
        bent = _fisher_transformed(level * scale, self.second_mean)
        return np.divide(bent, scale, out=level + np.zeros_like(bent), where=scale > 0)

    def excess(self, prune: float) -> FloatArray:
        """Mean of X - mean where stage one is passed, times the probability that it is; 0 for pairs
        of mean 0.
        """
        up, down = (
            np.exp(-(((prune - sign * self.mean) / self.std) ** 2) / 2) / np.sqrt(2 * np.pi)
            for sign in (1.0, -1.0)
        )
        return self.std * (up - down)

    def candidates(self, prune: float) -> tuple[FloatArray, float]:
        """Probability to pass stage one, and the expected sum, over pairs that do and are no edges,
        of (X - mean)^2.
        """
        squares = np.zeros(len(self.count))
        for sign in (1.0, -1.0):
            start = (prune - sign * self.mean) / self.std
            squares += self.std**2 * (
                ndtr(-start) + start * np.exp(-(start**2) / 2) / np.sqrt(2 * np.pi)
            )
        return self.passing(np.array([prune]), None)[0], float(
            (squares * self.count)[~self.is_edge].sum()
        )


def grouped(table: FloatArray) -> Pairs:
    """Pairs whose numbers hardly differ, counted together: means by 0.02 standard deviations,
    spreads by 1 percent.
    """
    is_edge, mean, std, second_mean, slope, second_std = table.T
    steps = (
        is_edge, 50 * mean / std, 100 * np.log(std), 50 * second_mean / second_std, 50 * slope * std / second_std,
        100 * np.log(second_std),
    )  # fmt: skip
    key = np.zeros(
        len(table), dtype=np.int64
    )  # all steps in one number: sorting rows would take many times longer
    for step in steps:
        whole = np.rint(np.clip(step, -1e5, 1e5)).astype(np.int64)
        _, key = np.unique(key * (np.ptp(whole) + 1) + whole - whole.min(), return_inverse=True)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    return Pairs(
        count.astype(np.float64),
        is_edge[first].astype(bool),
        *(table[first, column] for column in range(1, 6)),
    )


def _fisher_transformed(level: ArrayLike, mean: FloatArray) -> FloatArray:
    r"""The level at which a Gaussian number passes as often as an estimate does.

    Estimates are skewed as correlations are, and like these Gaussian after Fisher's transformation:
    it is atanh(estimate) that scatters evenly. Three standard deviations out, that doubles the
    edges missed.
    """
    level, mean = (np.clip(value, -1 + 1e-9, 1 - 1e-9) for value in (level, mean))
    return mean + (1 - mean**2) * (np.arctanh(level) - np.arctanh(mean))
