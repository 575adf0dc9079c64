"""Common neighbours: what those that two spins share say of whether these are neighbours."""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.estimators.graph import Graph, keys_of, places_of, ranges

_MOST = 3  # common neighbours: more are as good as so many
_N_KINDS = _MOST + 1
# edges, observed and expected, of the belief that common neighbours make no difference
_PRIOR = 6.0
_HUB = 1000  # neighbours of a spin that is not counted as a common one: its pairs are too many


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """Of graphs, one a row: how many pairs, and how many edges, have 0, 1, ... common neighbours.

    What a pair has is its kind; beyond `_MOST` all are of one.
    """

    n_pairs: FloatArray  # (n_graphs, _N_KINDS)
    n_edges: FloatArray  # (n_graphs, _N_KINDS)

    def odds(self) -> FloatArray:
        """(n_graphs, _N_KINDS): of an edge, by kind; over pairs outside the mean is 1.

        Edges over those expected if they came by chance, both with a few more that make it 1.
        """
        n_edges = self.n_edges.sum(axis=1, keepdims=True)
        n_pairs = np.maximum(self.n_pairs.sum(axis=1, keepdims=True), 1.0)
        expected = n_edges / n_pairs * self.n_pairs
        ratios = (self.n_edges + _PRIOR) / (expected + _PRIOR)
        outside = self.n_pairs - self.n_edges
        n_outside = outside.sum(axis=1, keepdims=True)
        mean = (ratios * outside).sum(axis=1, keepdims=True) / np.maximum(n_outside, 1.0)
        return np.asarray(np.where(n_outside > 0, ratios / np.maximum(mean, 1e-12), 1.0))


def closure_odds(pairs: Pairs, graph: Graph, changes: BoolArray) -> FloatArray:
    """(n_pairs,): how much likelier than on average pairs are edges, by their common neighbours.

    Of a pair of the graph it is that in the graph without it: whether it is an edge does not move
    it. Where edges come by chance, all are 1; where neighbours of a spin are neighbours of each
    other, as in lattices and communities, pairs with common neighbours are likelier, and on trees
    those without.

    changes: (n_spins,), whether a spin does; others have no part in it
    """
    if len(graph.pairs) == 0 or len(pairs) == 0:
        return np.ones(len(pairs))
    paths = _paths(graph)
    counts = _counts(graph, paths, int(changes.sum()))
    kinds = paths.kinds(pairs)
    odds = counts.odds()[0, kinds]
    inside, place = graph.find(pairs)
    without = _without_each(counts, graph, paths).odds()
    odds[inside] = without[place, kinds[inside]]
    return odds


@dataclass(frozen=True, slots=True, eq=False)
class _Paths:
    """Numbers of common neighbours of pairs that have any, hubs not counted."""

    n_spins: int
    keys: IntArray  # of pairs, sorted
    numbers: IntArray

    def of(self, pairs: Pairs) -> IntArray:
        """(n_pairs,): common neighbours of these pairs."""
        wanted = keys_of(pairs, self.n_spins)
        there, places = places_of(wanted, self.keys)
        found = np.zeros(len(wanted), np.int64)
        found[there] = self.numbers[places]
        return found

    def kinds(self, pairs: Pairs) -> IntArray:
        """(n_pairs,)."""
        return np.minimum(self.of(pairs), _MOST)


def _paths(graph: Graph) -> _Paths:
    edge, third = _beyond(graph, graph.owners, graph.indices)
    first = graph.owners[edge]
    is_sorted = first < third  # each path is gone both ways
    ends = np.column_stack([first[is_sorted], third[is_sorted]])
    keys, numbers = np.unique(keys_of(ends, graph.n_spins), return_counts=True)
    return _Paths(graph.n_spins, keys, numbers)


def _counts(graph: Graph, paths: _Paths, n_spins: int) -> _Counts:
    """Of one graph."""
    of_pairs = np.minimum(paths.numbers, _MOST)
    n_pairs = np.bincount(of_pairs, minlength=_N_KINDS).astype(np.float64)
    n_pairs[0] = n_spins * (n_spins - 1) / 2 - n_pairs[1:].sum()
    n_edges = np.bincount(paths.kinds(graph.pairs), minlength=_N_KINDS).astype(np.float64)
    return _Counts(n_pairs[None], n_edges[None])


def _without_each(counts: _Counts, graph: Graph, paths: _Paths) -> _Counts:
    """Of the graph without each of its edges.

    Without (i, j), spin i shares one neighbour less with each other neighbour of j, and j with
    those of i.
    """
    n_edges = len(graph.pairs)
    of_pairs = np.tile(counts.n_pairs, (n_edges, 1))
    of_edges = np.tile(counts.n_edges, (n_edges, 1))
    of_edges[np.arange(n_edges), paths.kinds(graph.pairs)] -= 1
    for own, other in (graph.pairs.T, graph.pairs.T[::-1]):
        edge, third = _beyond(graph, own, other)
        first = own[edge]
        ends = np.column_stack([np.minimum(first, third), np.maximum(first, third)])
        common = paths.of(ends)
        is_edge, _ = graph.find(ends)
        for change, lost in ((-1, 0), (1, 1)):
            kinds = np.minimum(common - lost, _MOST)
            of_pairs += change * _by_kind(edge, kinds, n_edges)
            of_edges += change * _by_kind(edge[is_edge], kinds[is_edge], n_edges)
    return _Counts(of_pairs, of_edges)


def _by_kind(edge: IntArray, kinds: IntArray, n_edges: int) -> IntArray:
    """(n_edges, _N_KINDS): how often each kind comes with each edge."""
    numbers = np.bincount(edge * _N_KINDS + kinds, minlength=n_edges * _N_KINDS)
    return np.asarray(numbers.reshape(n_edges, _N_KINDS))


def _beyond(graph: Graph, own: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    """Edges, by number, and the neighbours of their other spin besides their own, unless a hub."""
    degrees = np.where(graph.degrees[other] <= _HUB, graph.degrees[other], 0)
    edge = np.repeat(np.arange(len(own)), degrees)
    third = graph.indices[ranges(graph.indptr[:-1][other], degrees)]
    beyond = third != own[edge]
    return edge[beyond], third[beyond]
