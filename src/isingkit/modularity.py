"""Modularity of networks whose edges have signs, and partitions that maximise it.

Libraries were looked at: networkx takes a weight below 0 into the same degrees as those above, so
that its null model is none; igraph and leidenalg know signs, and are under the GPL. networkx can be
led to the same maximum by a complete graph of what is summed (the tests do so), at the cost of
all pairs, and without letting a column leave its community: it is slower and misses more.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from isingkit.arrays import FloatArray

IntArray = NDArray[np.intp]
_DIGITS = 12  # of gains, which are shares of the weight of all edges: rounding stays below
_MANY = 300  # nodes beyond which fewer starts have to do
_STARTS = 20
_STARTS_OF_MANY = 2
_TINY = 1e-300  # in place of 0, to divide by


@dataclass(frozen=True, slots=True)
class _Network:
    """Edges as shares of the weight of all of them, and what chance would give them."""

    weights: csr_array  # (n, n), with those inside a node on the diagonal
    above: csr_array  # (n, n): those above 0
    positive: FloatArray  # (n,): sums over edges above 0
    negative: FloatArray

    @property
    def n_nodes(self) -> int:
        return len(self.positive)

    def joined(self, labels: IntArray) -> "_Network":
        """Each part becomes one node; labels go from 0 on without gaps."""
        return _Network(
            _between_parts(self.weights, labels),
            _between_parts(self.above, labels),
            np.bincount(labels, self.positive),
            np.bincount(labels, self.negative),
        )


def _between_parts(weights: csr_array, labels: IntArray) -> csr_array:
    """(n_parts, n_parts): sums over the ends of edges."""
    n_parts = int(labels.max()) + 1
    edges = weights.tocoo()
    ends = (labels[edges.row], labels[edges.col])
    return csr_array((edges.data, ends), shape=(n_parts, n_parts))


def best_partition(couplings: csr_array, rng: Generator) -> tuple[IntArray, float]:
    """(n,): the part of each node, without gaps, and the modularity of these parts.

    The best of several climbs, from single nodes in random orders and from random parts.
    """
    n_nodes = couplings.shape[0]
    best = np.arange(n_nodes)
    if couplings.nnz == 0:
        return best, 0.0
    network = _shares(couplings)
    largest = _modularity(network, best)
    for k in range(_STARTS if n_nodes <= _MANY else _STARTS_OF_MANY):
        start = np.arange(n_nodes)
        if k % 2:
            start = rng.integers(0, 1 + math.isqrt(n_nodes), n_nodes)
        labels = _climbed(network, start, rng)
        found = _modularity(network, labels)
        if round(found - largest, _DIGITS) > 0:
            best = labels
            largest = found
    return best, largest


def _shares(couplings: csr_array) -> _Network:
    weights = csr_array(couplings, copy=True)
    weights.data = couplings.data / abs(couplings.data).max()  # whose sum is no tiny number
    weights.data /= abs(weights.data).sum()
    above = csr_array(weights.maximum(0), copy=True)  # of old scipy it has the places of weights
    above.eliminate_zeros()
    return _Network(weights, above, above.sum(axis=0), (above - weights).sum(axis=0))


def _climbed(network: _Network, start: IntArray, rng: Generator) -> IntArray:
    """Louvain's steps: nodes change parts, parts become nodes, and again from single nodes until
    nothing is gained.
    """
    best = _taken_apart(network, start)
    while True:
        labels = _taken_apart(network, _moved(network, best, rng))
        n_parts = network.n_nodes + 1
        while labels.max() + 1 < n_parts:
            n_parts = int(labels.max()) + 1
            joined = _moved(network.joined(labels), np.arange(n_parts), rng)
            labels = _taken_apart(network, joined[labels])
        gain = _modularity(network, labels) - _modularity(network, best)
        if not round(gain, _DIGITS) > 0:
            return best
        best = labels


def _taken_apart(network: _Network, labels: IntArray) -> IntArray:
    """(n,): pieces of parts that edges above 0 hold together, without gaps."""
    edges = network.above.tocoo()
    is_within = labels[edges.row] == labels[edges.col]
    ends = (edges.row[is_within], edges.col[is_within])
    within = csr_array((edges.data[is_within], ends), shape=edges.shape)
    return np.asarray(connected_components(within, directed=False)[1], dtype=np.intp)


def _moved(network: _Network, labels: IntArray, rng: Generator) -> IntArray:
    """Parts after single nodes went where modularity gains most, until none gains anything.

    A node goes only where an edge above 0 leads, or to be by itself.
    """
    labels = labels.copy()
    n_nodes = network.n_nodes
    positive = np.bincount(labels, network.positive, n_nodes)  # of parts
    negative = np.bincount(labels, network.negative, n_nodes)
    sizes = np.bincount(labels, minlength=n_nodes)
    all_positive = max(network.positive.sum(), _TINY)
    all_negative = max(network.negative.sum(), _TINY)
    order = rng.permutation(n_nodes)
    has_moved = True
    while has_moved:
        has_moved = False
        for node in order:
            old = labels[node]
            own_positive = network.positive[node]
            own_negative = network.negative[node]
            positive[old] -= own_positive
            negative[old] -= own_negative
            sizes[old] -= 1
            gains = _links(network.weights, labels, node)
            gains -= own_positive / all_positive * positive
            gains += own_negative / all_negative * negative
            gains = np.round(gains, _DIGITS)
            is_led_to = _links(network.above, labels, node) > 0
            is_led_to[old] = True  # so that every move gains, and moves come to an end
            gains[~is_led_to & (sizes > 0)] = -np.inf
            new = int(gains.argmax())
            if gains[new] > gains[old]:
                labels[node] = new
                has_moved = True
            positive[labels[node]] += own_positive
            negative[labels[node]] += own_negative
            sizes[labels[node]] += 1
    return np.unique(labels, return_inverse=True)[1]


def _links(weights: csr_array, labels: IntArray, node: int) -> FloatArray:
    """(n,): weights of a node's edges to each part, those inside it left out."""
    edges = slice(weights.indptr[node], weights.indptr[node + 1])
    others = weights.indices[edges]
    is_other = others != node
    ends = labels[others[is_other]]
    sums = np.bincount(ends, weights.data[edges][is_other], len(labels))
    return sums.astype(np.float64)  # of nothing numpy makes whole numbers


def _modularity(network: _Network, labels: IntArray) -> float:
    edges = network.weights.tocoo()
    total = float(edges.data[labels[edges.row] == labels[edges.col]].sum())
    for strengths, sign in ((network.positive, -1), (network.negative, 1)):
        sums = np.bincount(labels, strengths)
        if sums.any():
            total += sign * float(sums @ sums / sums.sum())
    return total


def by_size(labels: IntArray) -> IntArray:
    """(n,): numbers of parts from 1 on, the largest first, equal ones as they come; 0 where a node
    is by itself.
    """
    parts, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    numbers = np.empty(len(parts), dtype=np.intp)
    numbers[order] = np.arange(1, len(parts) + 1)
    numbers[sizes == 1] = 0
    return numbers[np.searchsorted(parts, labels)]
