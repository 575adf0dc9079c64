"""Couplings of a known graph in closed form, from least squares of each spin on its neighbours."""

import numpy as np

from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.graph import keys_of
from isingkit.estimators.mean_field import bethe_couplings, bethe_pulls
from isingkit.estimators.moments import SecondMoments
from isingkit.exceptions import NoMeanFieldWarning, warn

_TRIFLE = 1e-6  # of a ridge, for neighbours that are the same
_ENTRIES = 1 << 20  # of covariances among neighbours, held at a time


def linear_form(moments: SecondMoments, fitted: FittedGraph) -> tuple[FloatArray, FloatArray]:
    """Directed couplings and fields of the regressions as they are."""
    estimates = _on_neighbours(moments, fitted)
    means = moments.means
    return estimates, means - fitted.graph.matrix(estimates) @ means


def bethe_form(moments: SecondMoments, fitted: FittedGraph) -> tuple[FloatArray, FloatArray]:
    """Directed couplings and fields by Bethe's inversion, exact on trees.

    Where that has no solution, couplings are those of the pseudolikelihood, with a warning.
    """
    graph = fitted.graph
    by_bethe, square = tree_couplings(moments, fitted)
    if (square < 0).any():
        none = [(moments.names[i], moments.names[j]) for i, j in graph.pairs[square < 0]]
        warn(NoMeanFieldWarning(method="bethe", pairs=none, instead="by pseudolikelihood"))
        instead = graph.mean_of_directions(fitted.couplings)
        by_bethe = np.where(square < 0, instead, by_bethe)
    undirected = keys_of(np.sort(graph.directed_pairs, axis=1), graph.n_spins)
    both = by_bethe[np.searchsorted(graph.keys, undirected)]
    own, other = graph.directed_pairs.T
    means = np.where(moments.changes, moments.means, 0.0)
    pulls = bethe_pulls(both, means[own], means[other])
    alone = np.arctanh(np.clip(means, -1 + 1e-12, 1 - 1e-12))
    return both, alone - np.bincount(own, pulls, minlength=graph.n_spins)


def tree_couplings(moments: SecondMoments, fitted: FittedGraph) -> tuple[FloatArray, FloatArray]:
    """Couplings of the pairs by Bethe's inversion; and a square, below 0 where there are none.

    The inverse covariances are those of neighbours only: q_ij = -x_ij / (what is left of the
    variance of spin i).
    """
    graph = fitted.graph
    estimates = _on_neighbours(moments, fitted)
    products = estimates * moments.covariances(graph.directed_pairs)
    explained = np.bincount(graph.owners, products, minlength=graph.n_spins)
    left = np.maximum(moments.variances - explained, 1e-9) / moments.n_samples
    inverse = graph.mean_of_directions(-estimates / left[graph.owners])
    first, second = graph.pairs.T
    return bethe_couplings(inverse, moments.means[first], moments.means[second])


def _on_neighbours(moments: SecondMoments, fitted: FittedGraph) -> FloatArray:
    """Least squares of each spin on its neighbours, directed.

    0 where covariances of neighbours contradict each other, as those over different rows may: as if
    these neighbours explained nothing.
    """
    graph = fitted.graph
    estimates = np.zeros(len(graph.indices))
    for degree in np.unique(graph.degrees[graph.degrees > 0]):
        spins = np.flatnonzero(graph.degrees == degree)
        n_parts = -(-len(spins) * degree**2 // _ENTRIES)
        for some in np.array_split(spins, n_parts):
            places = graph.indptr[some, None] + np.arange(degree)
            estimates[places] = _least_squares(moments, some, graph.indices[places])
    return estimates


def _least_squares(moments: SecondMoments, spins: IntArray, neighbours: IntArray) -> FloatArray:
    """(n, degree): of spins, (n,), on neighbours, (n, degree)."""
    first, second = np.broadcast_arrays(neighbours[:, :, None], neighbours[:, None, :])
    among = _covariances(moments, first, second)
    diagonal = np.arange(neighbours.shape[1])
    among[:, diagonal, diagonal] *= 1 + _TRIFLE
    own, other = np.broadcast_arrays(spins[:, None], neighbours)
    right = _covariances(moments, own, other)
    sound = np.linalg.eigvalsh(among)[:, 0] > 0
    estimates = np.zeros(neighbours.shape)
    solved = np.linalg.solve(among[sound], right[sound, :, None])
    estimates[sound] = solved[:, :, 0]
    return estimates


def _covariances(moments: SecondMoments, first: IntArray, second: IntArray) -> FloatArray:
    """Of spins that stand in the same places of two arrays."""
    pairs = np.column_stack([first.ravel(), second.ravel()])
    return moments.covariances(pairs).reshape(first.shape)
