"""Pairs on loops: what triangles and squares of random regular graphs do to estimates of both
stages.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import ive

from isingkit.arrays import FloatArray, IntArray
from isingkit.theory.linear import linear_means
from isingkit.theory.loops import SQUARE, TRIANGLE, cluster_estimates, loops_through_edge
from isingkit.theory.pairs import Pairs
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.ridge import series

_SIGNS = (1, -1)  # of a loop's last edge: the second is frustrated
_LONGEST = 5  # of loops: hexagons would add half of what pentagons do, and overlap with others


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
def _on_loops(graph: RegularGraph, k: float) -> _OnLoops:
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


def _changes(graph: RegularGraph, k: float, cluster: _Cluster) -> _Changes:
    means, _ = series(graph.spectrum, np.asarray(k))
    on_tree = 0.0
    if cluster.place == 0:
        on_tree = float(linear_means(np.full(graph.degree, graph.strength))[0])
    found = cluster_estimates(graph.spectrum, k, cluster.signs())
    first = found.first - float(means[cluster.place])
    return _Changes(first, found.second - on_tree, found.noise)


@lru_cache(maxsize=64)
def _scatter_of_means(graph: RegularGraph, k: float) -> float:
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


def with_loops(graph: RegularGraph, pairs: Pairs, k: float, directions: int) -> Pairs:
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
