"""Degrees: what the other neighbours of two spins say of whether these are neighbours."""

import numpy as np
from numpy.typing import NDArray

from isingkit.arrays import FloatArray, IntArray, Pairs
from isingkit.estimators.graph import ranges

_UNLEARNED = 0.2  # of all weight is shared alike, whatever degrees seem to say
_MOST = 100.0  # a weight
_NOTHING = 1e-12
_DOUBT = 2.0  # standard errors by which the spread of degrees must differ from that of chance


def degree_weights(pairs: Pairs, network: Pairs, changes: NDArray[np.bool_]) -> FloatArray:
    """Weights of pairs, by how many other neighbours their spins have in a network; over pairs
    outside it their mean is at most 1.

    Where all spins have about as many neighbours, an edge is likelier between two that lack one;
    where some have many, at these. Degrees with mean c and variance f c are taken to be binomial,
    Poisson or negative binomial, by f: then a spin with d neighbours, of n - 1 there could be, has
    any other one with odds proportional to (c - (1 - f) d) / (n - 1 - d). Where pairs are joined by
    chance, f = 1 - c / (n - 1) and all weigh the same; so they do while f is not clearly different.
    The weight of a pair of the network is that in the network without it: whether it is an edge
    does not move its weight.

    changes: (n_spins,), whether a spin does; others have no part in it
    """
    degrees, n_spins = np.bincount(network.ravel(), minlength=len(changes)), int(changes.sum())
    total, squares, numbers = (
        degrees.sum(),
        (degrees**2).sum(),
        np.bincount(degrees[changes], minlength=1),
    )
    size = len(numbers)
    types, times = np.unique(
        degrees[network] @ (size, 1), return_counts=True
    )  # of edges, by the degrees of their ends
    types = np.column_stack([types // size, types % size])
    inside = np.isin(pairs @ (len(changes), 1), network @ (len(changes), 1))
    odds, sums = np.empty(len(pairs)), np.empty(len(pairs))

    table = _odds(np.array([total]), np.array([squares]), n_spins, size)
    odds[~inside] = table[0][degrees[pairs[~inside]]].prod(axis=1)
    sums[~inside] = _over_all_pairs(table, numbers) + _gain(table, types) @ times

    own = pairs[inside]
    kinds, kind = np.unique(np.sort(degrees[own], axis=1) @ (size, 1), return_inverse=True)
    ends, each = np.column_stack([kinds // size, kinds % size]), np.arange(len(kinds))
    tables = _odds(
        np.full(len(ends), total - 2), squares - 2 * (ends.sum(axis=1) - 1), n_spins, size
    )
    less = [tables[each, d - 1] for d in ends.T], [tables[each, d] for d in ends.T]
    most = (
        _over_all_pairs(tables, numbers, *less)
        + _gain(tables, types) @ times
        - np.prod(less[0], axis=0)
        + np.prod(less[1], axis=0)
    )
    odds[inside], sums[inside] = np.prod(less[0], axis=0)[kind], most[kind]
    if len(own):
        sums[inside] += _at_their_ends(own, network, degrees, tables, kind)
    learned = np.where(
        sums > _NOTHING, odds * (n_spins * (n_spins - 1) / 2) / np.maximum(sums, _NOTHING), 1.0
    )
    return np.asarray(np.minimum(_UNLEARNED + (1 - _UNLEARNED) * learned, _MOST))


def _odds(total: IntArray, squares: IntArray, n_spins: int, size: int) -> FloatArray:
    """(n, size): odds of another neighbour of spins with 0, 1, ... neighbours, from sums of degrees
    and of their squares, (n,).
    """
    mean, most = total / max(n_spins, 1), max(n_spins - 1, 1)
    by_chance = 1 - mean / most
    alike = (mean == 0) | (by_chance <= 0)
    mean, by_chance = np.where(alike, 1.0, mean), np.where(alike, 1.0, by_chance)
    ratio = np.maximum(squares - n_spins * mean**2, 0.0) / most / (mean * by_chance)
    doubt = 1 + _DOUBT * np.sqrt(2 / max(n_spins, 1))
    f = by_chance * np.where(
        ratio < 1, np.minimum(ratio * doubt, 1.0), np.maximum(ratio / doubt, 1.0)
    )
    others = np.arange(size)
    odds = np.maximum(mean[:, None] - (1 - f)[:, None] * others, 0.0) / np.maximum(
        n_spins - 1 - others, 1.0
    )
    return np.where(alike[:, None], 1.0, odds)


def _over_all_pairs(
    tables: FloatArray,
    numbers: IntArray,
    new: list[FloatArray] | None = None,
    old: list[FloatArray] | None = None,
) -> FloatArray:
    """Sums of products of odds over all pairs of spins, (n,), from numbers of spins by degree; some
    odds are new instead of old.
    """
    sums = [
        tables**k @ numbers
        + sum((a**k - b**k for a, b in zip(new or [], old or [], strict=True)), 0.0)
        for k in (1, 2)
    ]
    return np.asarray((sums[0] ** 2 - sums[1]) / 2)


def _gain(tables: FloatArray, ends: IntArray) -> FloatArray:
    """(n_tables, n_edges): by how much more edges weigh than if they counted themselves; ends:
    (n_edges, 2), degrees.
    """
    return np.asarray(tables[:, ends - 1].prod(axis=2) - tables[:, ends].prod(axis=2))


def _at_their_ends(
    own: Pairs, network: Pairs, degrees: IntArray, tables: FloatArray, kind: IntArray
) -> FloatArray:
    """Without an edge, those between its spins and their other neighbours gain differently: by how
    much in all, for each edge.
    """
    size, change = tables.shape[1], np.zeros(len(own))
    around, times = np.unique(
        network.ravel() * size + degrees[network[:, ::-1].ravel()], return_counts=True
    )  # spins' neighbours
    starts = np.searchsorted(around, np.arange(len(degrees) + 1) * size)
    for side in (0, 1):
        d, other = degrees[own[:, side]], degrees[own[:, 1 - side]]
        first, n_here = starts[own[:, side]], np.diff(starts)[own[:, side]]
        edge, here = np.repeat(np.arange(len(own)), n_here), ranges(first, n_here)
        one_less, as_now = (
            np.bincount(
                edge, times[here] * tables[kind[edge], around[here] % size - less], len(own)
            )
            - tables[kind, other - less]
            for less in (1, 0)
        )
        steps = [tables[kind, d - less - 1] - tables[kind, d - less] for less in (1, 0)]
        change += steps[0] * one_less - steps[1] * as_now
    return change
