"""Recovery of random regular graphs, generation by generation around a spin."""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import BoolArray, FloatArray
from isingkit.exceptions import SettingError
from isingkit.theory.pairs import Pairs
from isingkit.theory.recovery import (
    Recovery,
    remaining_variance,
    require_degree,
    require_sizes,
    samples_left,
)
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.ridge import random_regular
from isingkit.theory.scatter import (
    StageOne,
    candidate_interference,
    edge_scatter,
    means_of_survivors,
    neighbour_variance,
)

MOST_GENERATIONS = 64


def recovery(
    n_spins: int,
    degree: int,
    coupling: float,
    n_samples: int,
    *,
    ridge: float = 0.0,
    prune: float | None = None,
    rule: str = "average",
) -> Recovery:
    """Precision, recall and the probability of the exact network on random regular graphs.

    For one stage or two.

    Parameters
    ----------
    n_spins
        N.
    degree
        c.
    coupling
        K.
    n_samples
        M.
    ridge
        lambda of stage one; 0 is least squares, which needs M > N.
    prune
        K_1 of a two-stage estimator; None is one stage.
    rule
        "average": edges by the mean of both directed estimates, as estimators do; "directed": each
        estimate by itself, as the paper does.

    Examples
    --------
    >>> from isingkit import theory
    >>> setting = dict(n_spins=800, degree=3, coupling=0.4, n_samples=640, ridge=0.1)
    >>> two_stage = theory.recovery(**setting, prune=0.1, rule="directed")
    >>> round(float(two_stage.precision(0.15)), 3), round(float(two_stage.recall(0.15)), 3)
    (1.0, 0.999)
    """
    require_sizes(n_spins, n_samples, ridge, prune)
    require_degree(n_spins, degree, coupling)
    if rule not in ("average", "directed"):
        raise SettingError(setting="rule", value=rule, expected='"average" or "directed"')
    directions = 2 if rule == "average" else 1
    graph = _Graph(degree, abs(coupling), n_spins, n_samples)
    first = _stage_one(graph, ridge)
    second = _one_stage(graph, first) if prune is None else _two_stages(graph, first, prune)
    noise = second.noise
    if directions == 2:
        noise = noise * (1 + _agreement(graph, first.is_edge)) / 2
    known = first.slope**2 * first.pairs.std**2
    variance = remaining_variance(noise, known, n_samples, second.left)
    mean, lost = means_of_survivors(
        np.full(degree, graph.strength), np.full(degree, second.survival)
    )
    variance = variance + np.where(first.is_edge, lost[0] / directions, 0.0)
    pairs = Pairs(
        count=first.pairs.count / directions * n_spins,
        is_edge=first.is_edge,
        mean=first.pairs.mean,
        std=first.pairs.std,
        second_mean=np.where(first.is_edge, mean[0] - second.shift, 0.0),
        slope=np.full(len(variance), second.slope),
        second_std=np.sqrt(variance),
    )
    return Recovery(n_spins, n_samples, ridge, prune, pairs, directions)


@dataclass(frozen=True, slots=True)
class _Graph:
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


@dataclass(frozen=True, slots=True, eq=False)
class _First:
    """Stage one, a generation a pair; its pairs know nothing of stage two."""

    pairs: Pairs
    typical: StageOne
    slope: float  # of stage two on stage one, for a candidate by itself

    @property
    def is_edge(self) -> BoolArray:
        return self.pairs.is_edge


@dataclass(frozen=True, slots=True, eq=False)
class _Second:
    """Stage two, given stage one."""

    slope: float
    noise: FloatArray  # M times the variance
    shift: float  # what candidates take from the neighbours' means
    survival: float  # probability that a neighbour is a candidate
    left: float  # samples beyond the number of candidates


def _stage_one(graph: _Graph, ridge: float) -> _First:
    n_regressors = graph.n_spins - 1
    alpha = graph.n_samples / n_regressors
    penalty = ridge * graph.n_spins / n_regressors
    prediction = random_regular(graph.degree, graph.strength, alpha, penalty)
    k = prediction.effective_ridge
    counts = _generation_sizes(graph.n_spins, graph.degree)
    is_edge = np.arange(len(counts)) == 0
    means = np.zeros(len(counts))
    by_generation = np.ravel(prediction.means)[: len(counts)]
    means[: len(by_generation)] = by_generation
    variance = prediction.R / n_regressors
    edge_variance = neighbour_variance(graph.spectrum, k, alpha) / graph.n_samples
    std = np.sqrt(np.where(is_edge, edge_variance, variance))
    traces = graph.spectrum.traces(k)
    typical = StageOne(k, float(traces.t), float(traces.p), graph.n_samples * variance)
    slope = graph.residual * typical.local / typical.scatter
    nothing = np.zeros(len(counts))
    pairs = Pairs(counts, is_edge, means, std, nothing, nothing, nothing)
    return _First(pairs, typical, slope)


def _one_stage(graph: _Graph, first: _First) -> _Second:
    return _Second(
        slope=first.slope,
        noise=_true_noise(graph, first.is_edge),
        shift=0.0,
        survival=1.0,
        left=float(graph.n_samples),
    )


def _two_stages(graph: _Graph, first: _First, prune: float) -> _Second:
    degree = graph.degree
    passing, squares = first.pairs.candidates(prune)
    left = samples_left(prune, float(passing @ first.pairs.count), graph.n_samples)
    # neighbours' correlations: theta^2 off the diagonal, so that C^-1 times equal numbers divides
    # by 1 + (c - 1) theta^2
    means = np.full(degree, first.pairs.mean[0])
    solved = means / (1 + (degree - 1) * np.tanh(graph.strength) ** 2)
    slope, loss = candidate_interference(
        first.typical, first.slope, left / graph.n_samples, squares, means, solved
    )
    shift = float(loss[0])
    if len(passing) > 1:  # children that pass do so by an excess in their parent's direction
        excess = float(first.pairs.excess(prune)[1])
        shift += (degree - 1) * float(graph.spectrum.weight) * first.slope * excess
    noise = _true_noise(graph, first.is_edge) + _correlation_noise(graph, passing)
    return _Second(slope, noise, shift, survival=float(passing[0]), left=left)


def _true_noise(graph: _Graph, is_edge: BoolArray) -> FloatArray:
    """M times the variance of stage two by generation, were all candidates true."""
    edge_variance, _ = edge_scatter(graph.degree, graph.strength)
    return np.where(is_edge, edge_variance, graph.residual)


def _correlation_noise(graph: _Graph, passing: FloatArray) -> FloatArray:
    """What it costs a candidate of the second generation and its parent to be correlated."""
    added = np.zeros(len(passing))
    if len(passing) > 1:
        cost = graph.residual * np.sinh(graph.strength) ** 2
        added[0] = cost * (graph.degree - 1) * passing[1]
        added[1] = cost * (graph.degree > 1)
    return added


def _agreement(graph: _Graph, is_edge: BoolArray) -> FloatArray:
    """Correlation of both directed estimates of a pair, by generation."""
    _, correlation = edge_scatter(graph.degree, graph.strength)
    return np.where(is_edge, correlation, graph.residual)


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
