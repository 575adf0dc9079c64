"""Recovery of random regular graphs, generation by generation around a spin."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isingkit.arrays import BoolArray, FloatArray
from isingkit.exceptions import SettingError
from isingkit.theory.generations import generation_sizes
from isingkit.theory.linear import linear_means
from isingkit.theory.pairs import Pairs
from isingkit.theory.pairs_on_loops import RegularGraph, with_loops
from isingkit.theory.recovery import (
    Recovery,
    remaining_variance,
    require_degree,
    require_sizes,
    samples_left,
)
from isingkit.theory.ridge import random_regular
from isingkit.theory.scatter import (
    StageOne,
    candidate_interference,
    edge_scatter,
    means_of_survivors,
    neighbour_variance,
)

_LOST = 0.02  # standard deviations
_FROM_STEPS = 4  # ways around that are counted together


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
    graph = RegularGraph(degree, abs(coupling), n_spins, n_samples)
    first = _stage_one(graph, ridge)
    second = _one_stage(graph, first) if prune is None else _two_stages(graph, first, prune)
    noise = second.noise
    if directions == 2:
        noise = noise * (1 + _agreement(graph, first.is_edge)) / 2
    gain = _gain_behind_neighbours(graph, first, second.survival)
    known = (first.slope * gain * first.pairs.std) ** 2
    variance = remaining_variance(noise, known, n_samples, second.left)
    strengths = np.full(degree, graph.strength)
    survival = np.full(degree, second.survival)
    mean, lost = means_of_survivors(strengths, survival)
    variance = variance + np.where(first.is_edge, lost[0] / directions, 0.0)
    count = first.pairs.count / directions * n_spins
    second_mean = np.where(first.is_edge, mean[0] - second.shift, 0.0)
    slope = second.slope * gain
    pairs = Pairs(
        count=count,
        is_edge=first.is_edge,
        mean=first.pairs.mean,
        std=first.pairs.std,
        second_mean=second_mean,
        slope=slope,
        second_std=np.sqrt(variance),
    )
    pairs = with_loops(graph, pairs, first.typical.effective_ridge, directions)
    return Recovery(n_spins, n_samples, ridge, prune, pairs, directions)


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


@lru_cache(maxsize=64)  # searches ask for many values of prune
def _stage_one(graph: RegularGraph, ridge: float) -> _First:
    n_regressors = graph.n_spins - 1
    alpha = graph.n_samples / n_regressors
    penalty = ridge * graph.n_spins / n_regressors
    prediction = random_regular(graph.degree, graph.strength, alpha, penalty)
    k = prediction.effective_ridge
    counts = generation_sizes(graph.n_spins, graph.degree)
    is_edge = np.arange(len(counts)) == 0
    means = np.zeros(len(counts))
    by_generation = np.ravel(prediction.means)[: len(counts)]
    means[: len(by_generation)] = by_generation
    variance = prediction.R / n_regressors
    # generations whose means are lost in the noise count together
    n_apart = max(2, int(np.sum(means > _LOST * np.sqrt(variance))))
    if len(counts) > n_apart + 1:
        counts = np.append(counts[:n_apart], counts[n_apart:].sum())
        means = np.append(means[:n_apart], 0.0)
        is_edge = is_edge[: n_apart + 1]
    edge_variance = neighbour_variance(graph.spectrum, k, alpha) / graph.n_samples
    std = np.sqrt(np.where(is_edge, edge_variance, variance))
    traces = graph.spectrum.traces(k)
    typical = StageOne(k, float(traces.t), float(traces.p), graph.n_samples * variance)
    slope = graph.residual * typical.local / typical.scatter
    nothing = np.zeros(len(counts))
    pairs = Pairs(counts, is_edge, means, std, nothing, nothing, nothing)
    return _First(pairs, typical, slope)


def _one_stage(graph: RegularGraph, first: _First) -> _Second:
    return _Second(
        slope=first.slope,
        noise=_true_noise(graph, first.is_edge),
        shift=0.0,
        survival=1.0,
        left=float(graph.n_samples),
    )


def _two_stages(graph: RegularGraph, first: _First, prune: float) -> _Second:
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
    noise *= graph.n_samples / max(1, graph.n_samples - degree - 1)  # neighbours and field
    return _Second(slope, noise, shift, survival=float(passing[0]), left=left)


def _true_noise(graph: RegularGraph, is_edge: BoolArray) -> FloatArray:
    """M times the variance of stage two by generation, were all candidates true."""
    edge_variance, _ = edge_scatter(graph.degree, graph.strength)
    return np.where(is_edge, edge_variance, graph.residual)


def _correlation_noise(graph: RegularGraph, passing: FloatArray) -> FloatArray:
    r"""What it costs a candidate to resemble the spin's neighbours, and these to resemble it.

    A share \theta^{2 (g - 1)} of a spin of generation g is what its neighbour on the path says, and
    a little more what others say on longer ways around, of which a pair has so many on average.
    """
    added = np.zeros(len(passing))
    if len(passing) == 1 or graph.degree == 1:
        return added
    of_parent = np.tanh(graph.strength) ** 2
    shares = of_parent ** np.arange(1, len(passing))
    shares[2:] = 0.0  # the last generation holds all beyond
    around = _resemblance_around(graph.n_spins, graph.degree, of_parent)
    added[1:] = graph.residual * (shares / (1 - shares) + around)
    added[0] = graph.residual * np.sinh(graph.strength) ** 2 * (graph.degree - 1) * passing[1]
    return added


def _resemblance_around(n_spins: int, degree: int, of_parent: float) -> float:
    """Shares of any spin that a spin's neighbours say on paths of four steps and more."""
    growth = (degree - 1) * of_parent
    return degree * growth ** (_FROM_STEPS - 1) / (1 - growth) / n_spins


def _gain_behind_neighbours(graph: RegularGraph, first: _First, survival: float) -> FloatArray:
    r"""How much more of an excess in stage one comes back in stage two, by generation.

    A spin behind a neighbour that is a candidate, too, is regressed together with it:
    [C^{-1} G]_jj / G_jj with C and G = (1 + k H)^{-1} of both is
    (1 - \theta r) / (1 - \theta^2), r being the decay of means by a generation.
    """
    gain = np.ones(len(first.pairs.count))
    if len(gain) > 1 and graph.degree > 1:
        theta = np.tanh(graph.strength)
        decay = first.pairs.mean[1] / first.pairs.mean[0]
        together = (1 - theta * decay) / (1 - theta**2)
        gain[1] = 1 + survival * (together - 1)
    return gain


def _agreement(graph: RegularGraph, is_edge: BoolArray) -> FloatArray:
    """Correlation of both directed estimates of a pair, by generation.

    Of spins behind a common neighbour n it is that of e_i (s_j - theta s_n) and e_j (s_i - theta
    s_n), which are independent given n.
    """
    _, correlation = edge_scatter(graph.degree, graph.strength)
    agreement = np.where(is_edge, correlation, graph.residual)
    if len(agreement) > 1 and graph.degree > 1:
        theta = np.tanh(graph.strength)
        estimate = float(linear_means(np.full(graph.degree, graph.strength))[0])
        own = 1 - (graph.degree - 1) * theta * estimate
        agreement[1] = (1 - theta**2) * own**2 / graph.residual
    return agreement
