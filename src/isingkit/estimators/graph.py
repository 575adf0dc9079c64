"""Graph: the neighbours of each spin."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs


@dataclass(frozen=True, eq=False)
class Graph:
    """Neighbours of each spin in CSR form, indices sorted, and the same as pairs.

    What belongs to directed couplings (row i: spin i on its neighbours) is in the order of
    `indices`.
    """

    pairs: Pairs  # sorted
    indptr: IntArray  # (n_spins + 1,)
    indices: IntArray  # (2 n_pairs,)

    @property
    def n_spins(self) -> int:
        return len(self.indptr) - 1

    @property
    def csr(self) -> tuple[IntArray, IntArray]:
        """As kernels take it."""
        return self.indptr, self.indices

    @property
    def degrees(self) -> IntArray:
        return np.diff(self.indptr)

    @property
    def keys(self) -> IntArray:
        """One number for each pair, sorted."""
        return keys_of(self.pairs, self.n_spins)

    @property
    def owners(self) -> IntArray:
        """(2 n_pairs,): the spin of each directed coupling."""
        return np.repeat(np.arange(self.n_spins), self.degrees)

    @property
    def directed_pairs(self) -> IntArray:
        """(2 n_pairs, 2): the spin of each directed coupling, and the neighbour."""
        return np.column_stack([self.owners, self.indices])

    @cached_property
    def sides(self) -> IntArray:
        """(n_pairs, 2): places of the two directions of each pair."""
        keys = keys_of(self.directed_pairs, self.n_spins)
        forth = np.searchsorted(keys, self.keys)
        back = np.searchsorted(keys, keys_of(self.pairs[:, ::-1], self.n_spins))
        return np.column_stack([forth, back])

    def find(self, pairs: Pairs) -> tuple[BoolArray, IntArray]:
        """(n,) which of these pairs are in the graph, and the places there of those that are."""
        return places_of(keys_of(pairs, self.n_spins), self.keys)

    def mean_of_directions(self, values: FloatArray) -> FloatArray:
        """(n_pairs,), of values of directed couplings."""
        return np.asarray(values[self.sides].mean(axis=1))

    def symmetric(self, values: FloatArray) -> FloatArray:
        """Both directions' mean in place of each."""
        means = np.empty_like(values)
        means[self.sides] = self.mean_of_directions(values)[:, None]
        return means

    def matrix(self, values: FloatArray) -> csr_array:
        """(n_spins, n_spins): row i the values of the directed couplings of spin i."""
        shape = (self.n_spins, self.n_spins)
        return csr_array((values, self.indices, self.indptr), shape=shape)


def graph_of(pairs: Pairs, n_spins: int) -> Graph:
    """The graph of sorted pairs."""
    matrix = symmetric_matrix(pairs, np.ones(len(pairs)), n_spins)
    return Graph(pairs, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))


def symmetric_matrix(pairs: Pairs, values: FloatArray, n_spins: int) -> Any:
    """(n_spins, n_spins) CSR, indices sorted, with values at both places of each pair."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    twice = np.concatenate([values, values])
    row, column = both.T
    matrix = csr_array((twice, (row, column)), shape=(n_spins, n_spins))
    matrix.sort_indices()
    return matrix


def keys_of(pairs: Pairs, n_spins: int) -> IntArray:
    """One number for each pair, in the order of pairs."""
    return np.asarray(pairs[:, 0] * n_spins + pairs[:, 1])


def places_of(wanted: IntArray, keys: IntArray) -> tuple[BoolArray, IntArray]:
    """Which of the wanted are among sorted keys, and the places there of those that are."""
    places = np.searchsorted(keys, wanted)
    there = places < len(keys)
    there[there] = keys[places[there]] == wanted[there]
    return there, places[there]


def pairs_of(keys: IntArray, n_spins: int) -> Pairs:
    """The pairs of these numbers."""
    return np.column_stack([keys // n_spins, keys % n_spins])


def ranges(starts: IntArray, sizes: IntArray) -> IntArray:
    """The numbers from each start on, as many as its size, one after the other."""
    before = np.cumsum(sizes) - sizes
    return np.asarray(np.repeat(starts - before, sizes) + np.arange(sizes.sum()))
