"""Common neighbours: what those that two spins share say of whether these are neighbours."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.estimators.graph import Graph, ranges

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
    kinds = _kinds(paths, pairs)
    odds = counts.odds()[0, kinds]
    inside, place = graph.find(pairs)
    without = _without_each(counts, graph, paths).odds()
    odds[inside] = without[place, kinds[inside]]
    return odds


def _paths(graph: Graph) -> scipy.sparse.csr_array:
    """(n_spins, n_spins): numbers of common neighbours, hubs not counted."""
    adjacency = graph.matrix(np.ones(len(graph.indices)))
    through = adjacency[:, np.flatnonzero(graph.degrees <= _HUB)]
    paths = scipy.sparse.csr_array(through @ through.T)
    paths.setdiag(0)
    paths.eliminate_zeros()
    return paths


def _kinds(paths: scipy.sparse.csr_array, pairs: IntArray) -> IntArray:
    """(n_pairs,)."""
    if len(pairs) == 0:
        return np.empty(0, np.int64)
    common = np.asarray(paths[pairs[:, 0], pairs[:, 1]]).ravel()
    return np.minimum(common, _MOST).astype(np.int64)


def _counts(graph: Graph, paths: scipy.sparse.csr_array, n_spins: int) -> _Counts:
    """Of one graph."""
    of_pairs = np.minimum(paths.data, _MOST).astype(np.int64)
    n_pairs = np.bincount(of_pairs, minlength=_N_KINDS) / 2
    n_pairs[0] = n_spins * (n_spins - 1) / 2 - n_pairs[1:].sum()
    n_edges = np.bincount(_kinds(paths, graph.pairs), minlength=_N_KINDS).astype(np.float64)
    return _Counts(n_pairs[None], n_edges[None])


def _without_each(counts: _Counts, graph: Graph, paths: scipy.sparse.csr_array) -> _Counts:
    """Of the graph without each of its edges.

    Without (i, j), spin i shares one neighbour less with each other neighbour of j, and j with
    those of i.
    """
    n_edges = len(graph.pairs)
    of_pairs = np.tile(counts.n_pairs, (n_edges, 1))
    of_edges = np.tile(counts.n_edges, (n_edges, 1))
    np.add.at(of_edges, (np.arange(n_edges), _kinds(paths, graph.pairs)), -1)
    for own, other in (graph.pairs.T, graph.pairs.T[::-1]):
        edge, third = _beyond(graph, own, other)
        ends = np.sort(np.column_stack([own[edge], third]), axis=1)
        common = np.asarray(paths[ends[:, 0], ends[:, 1]]).ravel() if len(ends) else np.empty(0)
        is_edge, _ = graph.find(ends)
        for change, lost in ((-1, 0), (1, 1)):
            kinds = np.minimum(common - lost, _MOST).astype(np.int64)
            np.add.at(of_pairs, (edge, kinds), change)
            np.add.at(of_edges, (edge[is_edge], kinds[is_edge]), change)
    return _Counts(of_pairs, of_edges)


def _beyond(graph: Graph, own: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    """Edges, by number, and the neighbours of their other spin besides their own, unless a hub."""
    degrees = np.where(graph.degrees[other] <= _HUB, graph.degrees[other], 0)
    edge = np.repeat(np.arange(len(own)), degrees)
    third = graph.indices[ranges(graph.indptr[:-1][other], degrees)]
    beyond = third != own[edge]
    return edge[beyond], third[beyond]
