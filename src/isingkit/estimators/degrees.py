"""Degrees: what the other neighbours of two spins say of whether these are neighbours."""

import numpy as np
from numpy.typing import NDArray

from isingkit.estimators.normal import Matrix
from isingkit.estimators.screen import Pairs

_UNLEARNED = 0.2  # of all weight is shared alike, whatever degrees seem to say
_MOST = 100.0  # a weight
_DOUBT = 2.0  # standard errors by which the spread of degrees must differ from that of chance


def degree_weights(pairs: Pairs, network: Pairs, changes: NDArray[np.bool_]) -> Matrix:
    """Weights of pairs, by how many other neighbours their spins have in a network; over all pairs their mean is at most 1.

    Where all spins have about as many neighbours, an edge is likelier between two that lack one; where some have many, at these.
    Degrees with mean c and variance f c are taken to be binomial, Poisson or negative binomial, by f: then a spin with d
    neighbours, of n - 1 there could be, has any other one with odds proportional to (c - (1 - f) d) / (n - 1 - d). Where pairs are
    joined by chance, f = 1 - c / (n - 1) and all weigh the same; so they do while f is not clearly different.
    A pair itself does not count among its spins' neighbours, so that chance in its own test does not move its weight.

    changes: (n_spins,), whether a spin does; others have no part in it
    """
    degrees, n_spins = np.bincount(network.ravel(), minlength=len(changes)).astype(np.float64), int(changes.sum())
    mean, most = degrees.sum() / max(n_spins, 1), n_spins - 1
    by_chance = 1 - mean / max(most, 1)
    if mean == 0 or by_chance <= 0:
        return np.ones(len(pairs))
    ratio, doubt = degrees[changes].var(ddof=1) / (mean * by_chance), 1 + _DOUBT * np.sqrt(2 / n_spins)
    f = by_chance * (min(ratio * doubt, 1.0) if ratio < 1 else max(ratio / doubt, 1.0))

    def odds(others: Matrix) -> Matrix:
        return np.asarray(np.maximum(mean - (1 - f) * others, 0.0) / np.maximum(most - others, 1.0))

    apart, joined = odds(degrees) * changes, odds(degrees[network] - 1).prod(axis=1)
    total = (apart.sum() ** 2 - (apart**2).sum()) / 2 + (joined - apart[network].prod(axis=1)).sum()
    inside = np.isin(pairs @ (len(changes), 1), network @ (len(changes), 1))
    own = odds(degrees[pairs] - inside[:, None]).prod(axis=1)
    learned = own * (n_spins * most / 2 / total) if total > 0 else np.ones(len(pairs))
    return np.asarray(np.minimum(_UNLEARNED + (1 - _UNLEARNED) * learned, _MOST))
