"""Stage one on random regular graphs: estimates by generation around a spin."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isingkit.arrays import BoolArray, FloatArray
from isingkit.theory.prediction import Prediction
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.ridge import random_regular
from isingkit.theory.scatter import neighbour_variance

MOST_GENERATIONS = 64


@dataclass(frozen=True, slots=True)
class RegularGraph:
    degree: int
    strength: float
    n_spins: int
    n_samples: int

    @property
    def spectrum(self) -> RegularSpectrum:
        return RegularSpectrum(self.degree, self.strength)

    @property
    def residual(self) -> float:
        """u = 1 / H_ii: mean squared residual given the true neighbours."""
        return 1 / float(self.spectrum.centre)

    @property
    def theta(self) -> float:
        return float(np.tanh(self.strength))

    def predicted(self, ridge: float) -> Prediction:
        """With one regressor less than there are spins."""
        n_regressors = self.n_spins - 1
        penalty = ridge * self.n_spins / n_regressors
        return random_regular(self.degree, self.strength, self.n_samples / n_regressors, penalty)


@dataclass(frozen=True, slots=True, eq=False)
class FirstStage:
    """Stage one, by generation."""

    ridge: float
    count: FloatArray  # (generations,): spins around one
    mean: FloatArray  # (generations,)
    std: FloatArray  # (generations,)

    @property
    def is_edge(self) -> BoolArray:
        return np.arange(len(self.count)) == 0


@lru_cache(maxsize=64)
def first_stage(graph: RegularGraph, ridge: float) -> FirstStage:
    n_regressors = graph.n_spins - 1
    prediction = graph.predicted(ridge)
    counts = _generation_sizes(graph.n_spins, graph.degree)
    means = np.zeros(len(counts))
    by_generation = np.ravel(prediction.means)[: len(counts)]
    means[: len(by_generation)] = by_generation
    k = prediction.effective_ridge
    alpha = graph.n_samples / n_regressors
    variance = np.full(len(counts), prediction.R / n_regressors)
    variance[0] = neighbour_variance(graph.spectrum, k, alpha) / graph.n_samples
    return FirstStage(ridge, counts, means, np.sqrt(variance))


def _generation_sizes(n_spins: int, degree: int) -> FloatArray:
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
