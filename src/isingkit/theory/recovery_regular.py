"""Recovery of random regular graphs, generation by generation around a spin."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import ive

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.exceptions import SettingError
from isingkit.theory.generations import generation_sizes
from isingkit.theory.linear import linear_means
from isingkit.theory.loops import (
    SQUARE,
    TRIANGLE,
    cluster_estimates,
    loops_through_edge,
)
from isingkit.theory.pairs import Pairs
from isingkit.theory.recovery import (
    Recovery,
    remaining_variance,
    require_degree,
    require_sizes,
    samples_left,
)
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.ridge import random_regular, series
from isingkit.theory.scatter import (
    StageOne,
    candidate_interference,
    edge_scatter,
    means_of_survivors,
    neighbour_variance,
)

_LOST = 0.02  # standard deviations


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
    pairs = _with_loops(graph, pairs, first.typical.effective_ridge, directions)
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


@lru_cache(maxsize=64)  # searches ask for many values of prune
def _stage_one(graph: _Graph, ridge: float) -> _First:
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
    noise *= graph.n_samples / max(1, graph.n_samples - degree - 1)  # neighbours and field
    return _Second(slope, noise, shift, survival=float(passing[0]), left=left)


def _true_noise(graph: _Graph, is_edge: BoolArray) -> FloatArray:
    """M times the variance of stage two by generation, were all candidates true."""
    edge_variance, _ = edge_scatter(graph.degree, graph.strength)
    return np.where(is_edge, edge_variance, graph.residual)


def _correlation_noise(graph: _Graph, passing: FloatArray) -> FloatArray:
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


def _gain_behind_neighbours(graph: _Graph, first: _First, survival: float) -> FloatArray:
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


def _agreement(graph: _Graph, is_edge: BoolArray) -> FloatArray:
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


class _Cluster(NamedTuple):
    """Spins with loops among them: their couplings' signs, and which pair is looked at."""

    place: int  # of the pair: 0 for an edge, 1 for the second generation
    edges: tuple[tuple[int, int, int], ...]  # spins and sign; the pair is 0 and 1

    def signs(self) -> FloatArray:
        n_spins = 1 + max(max(a, b) for a, b, _ in self.edges)
        signs = np.zeros((n_spins, n_spins))
        for a, b, sign in self.edges:
            signs[a, b] = signs[b, a] = sign
        return signs


_SIGNS = (1, -1)  # of a loop's last edge: the second is frustrated
_FROM_STEPS = 4  # ways around that are counted together
_LONGEST = 5  # of loops: hexagons add a twentieth of what pentagons do


def _on_a_triangle(n_spins: int, degree: int) -> list[tuple[float, _Cluster]]:
    """Shares of the edges that are on one triangle.

    There are (c - 1)^m / (2 m) loops of length m, half of them frustrated, whatever the number of
    spins.
    """
    through = loops_through_edge(n_spins, degree, TRIANGLE)
    share = max(through * (1 - through), 0.0) / 2
    return [(share, _Cluster(0, _ring((1, 0, 2), sign))) for sign in _SIGNS]


def _on_two_triangles(n_spins: int, degree: int) -> list[tuple[float, _Cluster]]:
    """Shares of the edges that two triangles have in common."""
    share = loops_through_edge(n_spins, degree, TRIANGLE) ** 2 / 2
    found = []
    for one, other, of_these in ((1, 1, 0.25), (1, -1, 0.5), (-1, -1, 0.25)):
        edges = (*_ring((1, 0, 2), one), (0, 3, 1), (1, 3, other))
        found.append((share * of_these, _Cluster(0, edges)))
    return found


def _squares_in_balance(n_spins: int, degree: int) -> list[tuple[float, float]]:
    """How many more squares an edge is on that are frustrated (below 0), or not, and how often.

    Both are Poisson numbers; one size of the difference stands for all, with their mean square.
    """
    through = loops_through_edge(n_spins, degree, SQUARE)
    balanced = float(ive(0, through))
    size = math.sqrt(through / (1 - balanced))
    return [(0.0, balanced), (size, (1 - balanced) / 2), (-size, (1 - balanced) / 2)]


class _OnLoops(NamedTuple):
    """Undirected pairs on loops: of which generation, how many, and how they differ."""

    places: IntArray  # (n,): 0 for edges, 1 for the second generation
    counts: FloatArray  # (n,)
    changes: FloatArray  # (n, 3): of the means of both stages, and factors of stage two's variance


@lru_cache(maxsize=64)
def _on_loops(graph: _Graph, k: float) -> _OnLoops:
    n_edges = graph.n_spins * graph.degree / 2
    size = (graph.n_spins, graph.degree)
    on_square = {sign: _changes(graph, k, _Cluster(0, _ring(range(4), sign))) for sign in _SIGNS}
    once = [(share, _changes(graph, k, cluster)) for share, cluster in _on_a_triangle(*size)]
    twice = [(share, _changes(graph, k, cluster)) for share, cluster in _on_two_triangles(*size)]
    without = 1 - sum(share for share, _ in once + twice)
    kinds = []
    for share, on_triangle in [(without, _NO_CHANGE), *once]:
        for balance, how_often in _squares_in_balance(*size):
            squares = on_square[1 if balance > 0 else -1]
            changes = on_triangle.and_(squares, abs(balance))
            kinds.append((0, n_edges * share * how_often, *changes))
    kinds += [(0, n_edges * share, *on_triangles) for share, on_triangles in twice]
    kinds = kinds[1:]  # the first is that of edges on no loop
    n_across = n_edges * loops_through_edge(*size, SQUARE) / 4
    for sign in _SIGNS:
        across = _changes(graph, k, _Cluster(1, _ring((0, 2, 1, 3), sign)))
        kinds.append((1, n_across, *across))
    table = np.array(kinds)
    return _OnLoops(table[:, 0].astype(np.int64), table[:, 1], table[:, 2:])


class _Changes(NamedTuple):
    """What loops change: means of both stages, and a factor of stage two's variance."""

    first: float
    second: float
    noise: float

    def and_(self, other: "_Changes", times: float) -> "_Changes":
        """With so many other loops that have only the pair in common with these."""
        return _Changes(
            self.first + times * other.first,
            self.second + times * other.second,
            self.noise * other.noise**times,
        )


_NO_CHANGE = _Changes(0.0, 0.0, 1.0)


def _changes(graph: _Graph, k: float, cluster: _Cluster) -> _Changes:
    means, _ = series(graph.spectrum, np.asarray(k))
    on_tree = 0.0
    if cluster.place == 0:
        on_tree = float(linear_means(np.full(graph.degree, graph.strength))[0])
    found = cluster_estimates(graph.spectrum, k, cluster.signs())
    first = found.first - float(means[cluster.place])
    return _Changes(first, found.second - on_tree, found.noise)


@lru_cache(maxsize=64)
def _scatter_of_means(graph: _Graph, k: float) -> float:
    """Variance of an edge's mean estimate in stage one, by loops that many edges are on or beside.

    Loops through one of its ends change it by less than one through the edge, and are more. What
    they change in stage two goes with it as noise of both stages does.
    """
    variance = 0.0
    for length in range(TRIANGLE, _LONGEST + 1):
        through = loops_through_edge(graph.n_spins, graph.degree, length)
        beside = (graph.degree - 2) * through  # at either end
        for sign in _SIGNS:
            at_end = _changes(
                graph, k, _Cluster(0, ((0, 1, 1), *_ring((0, *range(2, length + 1)), sign)))
            )
            variance += beside / 2 * at_end.first**2
            if length > SQUARE:
                along = _changes(graph, k, _Cluster(0, _ring(range(length), sign)))
                variance += through / 2 * along.first**2
    return variance


def _ring(spins: Iterable[int], sign: int) -> tuple[tuple[int, int, int], ...]:
    """Spins one after the other, and from the last to the first with this sign."""
    order = tuple(spins)
    steps = [(a, b, 1) for a, b in pairwise(order)]
    return (*steps, (order[-1], order[0], sign))


def _with_loops(graph: _Graph, pairs: Pairs, k: float, directions: int) -> Pairs:
    """Pairs on triangles and squares apart from the others of their generation.

    They are few, but edges of frustrated ones are the hardest to find, and spins across a square
    the likeliest to be taken for neighbours. Other loops let edges scatter more.
    """
    if graph.degree < 3 or len(pairs.count) < 2:
        return pairs
    of_edges = np.where(pairs.is_edge, _scatter_of_means(graph, k), 0.0)
    pairs = replace(pairs, std=np.sqrt(pairs.std**2 + of_edges))
    loops = _on_loops(graph, k)
    counts = loops.counts * (2 / directions)
    left = pairs.count.copy()
    for place in (0, 1):
        here = loops.places == place
        # in small graphs of many neighbours loops overlap: half of all pairs is the most
        counts[here] *= min(1.0, left[place] / 2 / counts[here].sum())
        left[place] -= counts[here].sum()
    return pairs.split(loops.places, counts, loops.changes, left)
