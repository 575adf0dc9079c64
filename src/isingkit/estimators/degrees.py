"""Degrees: what the other neighbours of two spins say of whether these are neighbours."""

import numpy as np
from numpy.typing import NDArray

from isingkit.estimators.normal import Matrix
from isingkit.estimators.screen import Pairs

_UNLEARNED = 0.2  # of all weight is shared alike, whatever degrees seem to say
_MOST = 100.0  # a weight
_NOTHING = 1e-12
_DOUBT = 2.0  # standard errors by which the spread of degrees must differ from that of chance


def degree_weights(pairs: Pairs, network: Pairs, changes: NDArray[np.bool_]) -> Matrix:
    """Weights of pairs, by how many other neighbours their spins have in a network; over pairs outside it their mean is at most 1.

    Where all spins have about as many neighbours, an edge is likelier between two that lack one; where some have many, at these.
    Degrees with mean c and variance f c are taken to be binomial, Poisson or negative binomial, by f: then a spin with d
    neighbours, of n - 1 there could be, has any other one with odds proportional to (c - (1 - f) d) / (n - 1 - d). Where pairs are
    joined by chance, f = 1 - c / (n - 1) and all weigh the same; so they do while f is not clearly different.
    The weight of a pair of the network is that in the network without it: whether it is an edge does not move its weight.

    changes: (n_spins,), whether a spin does; others have no part in it
    """
    n_spins = int(changes.sum())
    degrees = np.bincount(network.ravel(), minlength=len(changes))
    inside = np.isin(pairs @ (len(changes), 1), network @ (len(changes), 1))
    weights = np.ones(len(pairs))
    table = _odds(degrees.sum(), (degrees**2).sum(), n_spins, int(degrees.max(initial=0)))
    if table is not None:
        apart = table[degrees] * changes
        total = (apart.sum() ** 2 - (apart**2).sum()) / 2 + _gain(table, degrees[network]).sum()
        weights[~inside] = _weight(table[degrees[pairs[~inside]]].prod(axis=1), total, n_spins)
    own = np.sort(degrees[pairs[inside]], axis=1)  # pairs with the same degrees share what follows
    kinds, kind = np.unique(own, axis=0, return_inverse=True)
    found = np.ones(len(own))
    for number, (u, v) in enumerate(kinds.tolist()):
        here = np.flatnonzero(kind.ravel() == number)
        found[here] = _without(pairs[inside][here], (u, v), network, degrees, changes)
    weights[inside] = found
    return weights


def _odds(total: float, squares: float, n_spins: int, largest: int) -> Matrix | None:
    """Odds of another neighbour for spins of 0, 1, ... neighbours, from sums of degrees and of their squares; None: all alike."""
    mean, most = total / max(n_spins, 1), n_spins - 1
    by_chance = 1 - mean / max(most, 1)
    if mean == 0 or by_chance <= 0:
        return None
    variance = max(squares - n_spins * mean**2, 0.0) / most
    ratio, doubt = variance / (mean * by_chance), 1 + _DOUBT * np.sqrt(2 / n_spins)
    f = by_chance * (min(ratio * doubt, 1.0) if ratio < 1 else max(ratio / doubt, 1.0))
    others = np.arange(largest + 1)
    return np.asarray(np.maximum(mean - (1 - f) * others, 0.0) / np.maximum(most - others, 1.0))


def _gain(table: Matrix, ends: NDArray[np.int64]) -> Matrix:
    """By how much more the pairs of a network weigh than if their edges counted; ends: (n, 2), degrees of their spins."""
    return np.asarray(table[ends - 1].prod(axis=1) - table[ends].prod(axis=1))


def _weight(odds: Matrix, total: Matrix | float, n_spins: int) -> Matrix:
    """Weights from odds and their sum over all pairs; where that is nothing, all are 1."""
    learned = np.where(total > _NOTHING, odds * (n_spins * (n_spins - 1) / 2) / np.maximum(total, _NOTHING), 1.0)
    return np.asarray(np.minimum(_UNLEARNED + (1 - _UNLEARNED) * learned, _MOST))


def _without(pairs: Pairs, ends: tuple[int, int], network: Pairs, degrees: NDArray[np.int64], changes: NDArray[np.bool_]) -> Matrix:
    """Weights of edges whose spins have `ends` neighbours, each in the network without it."""
    n_spins, (u, v) = int(changes.sum()), ends
    table = _odds(degrees.sum() - 2, (degrees**2).sum() - 2 * (u + v - 1), n_spins, int(degrees.max()))
    if table is None:
        return np.ones(len(pairs))
    apart = table[degrees] * changes
    sums = [(apart**k).sum() + sum(table[d - 1] ** k - table[d] ** k for d in ends) for k in (1, 2)]
    total = (sums[0] ** 2 - sums[1]) / 2 + _gain(table, degrees[network]).sum() - _gain(table, np.array([ends]))[0]
    totals = np.full(len(pairs), total)  # of this, edges between a spin of the pair and others gain differently now
    around = np.zeros((2, len(degrees)))
    for row, values in enumerate((table[degrees - 1], table[degrees])):
        np.add.at(around[row], network[:, 0], values[network[:, 1]])
        np.add.at(around[row], network[:, 1], values[network[:, 0]])
    for side in (0, 1):
        own, other = pairs[:, side], pairs[:, 1 - side]
        d = degrees[own]
        one_less, as_now = around[0, own] - table[degrees[other] - 1], around[1, own] - table[degrees[other]]
        totals += (table[d - 2] - table[d - 1]) * one_less - (table[d - 1] - table[d]) * as_now
    return _weight(np.full(len(pairs), table[u - 1] * table[v - 1]), totals, n_spins)
