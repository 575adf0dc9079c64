"""Sparsity: whether most pairs of spins are uncoupled, as a network of edges takes for granted."""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.moments import SecondMoments
from isingkit.estimators.normal import NormalEquations, correlations

_LEAST_ROWS = 3.0  # for each spin: with fewer, partial correlations say little
_MOST_SPINS = 500  # beyond, so dense a network would need more rows than anybody has
_FEWEST_SPINS = 10
_MOST_CAUSES = 5  # whose part is taken off
_STEPS = 12
_CLIPPED = 3.0  # spreads
_NORMAL = 0.6745  # median of |z|
LIMIT = 1.5  # spread of z-scores of most pairs, beyond which they are coupled


@dataclass(frozen=True, slots=True)
class Sparsity:
    """The spread of z-scores of most pairs, 1 where these are noise."""

    spread: float
    is_dense: bool = False


def sparsity_of(moments: SecondMoments) -> Sparsity:
    """Told by partial correlations of all pairs, without what a few common causes make of them.

    Edges are few, so that the median tells of pairs which are none. Causes make it large, too, but
    only until their part, of low rank, is taken off.
    """
    changing = np.flatnonzero(moments.changes)
    n_spins = len(changing)
    has_rows = moments.n_effective > _LEAST_ROWS * n_spins
    if not isinstance(moments, NormalEquations) or not has_rows:
        return Sparsity(1.0)
    if not _FEWEST_SPINS <= n_spins <= _MOST_SPINS:
        return Sparsity(1.0)
    z_scores = _partial_z_scores(moments, changing)
    spread = _spread(z_scores)
    for n_causes in range(1, _MOST_CAUSES + 1):
        if spread <= LIMIT:
            return Sparsity(spread)
        freedom = max(1 - 2 * n_causes / n_spins, 0.1)
        left = _without_directions(z_scores, n_causes)
        spread = min(spread, _spread(left) / np.sqrt(freedom))
    return Sparsity(spread, is_dense=spread > LIMIT)


def _partial_z_scores(moments: NormalEquations, changing: IntArray) -> FloatArray:
    """(n, n): of partial correlations, 0 on the diagonal."""
    part = correlations(moments)[np.ix_(changing, changing)]
    np.fill_diagonal(part, 1.0 + 1e-6)
    inverse = np.linalg.pinv(part, hermitian=True)
    scale = np.sqrt(np.maximum(np.diagonal(inverse), 1e-300))
    partial = -inverse / np.outer(scale, scale)
    np.fill_diagonal(partial, 0.0)
    precision = np.sqrt(moments.n_effective - len(changing) - 1)
    return np.asarray(np.arctanh(np.clip(partial, -0.999, 0.999)) * precision)


def _spread(z_scores: FloatArray) -> float:
    """Of most pairs: edges are few."""
    pairs = np.triu_indices(len(z_scores), 1)
    return float(np.median(np.abs(z_scores[pairs])) / _NORMAL)


def _without_directions(z_scores: FloatArray, n: int) -> FloatArray:
    """z-scores less a part of rank n that agrees with most of them."""
    part = np.zeros_like(z_scores)
    for _ in range(_STEPS):
        limit = _CLIPPED * _spread(z_scores - part)
        clipped = part + np.clip(z_scores - part, -limit, limit)
        np.fill_diagonal(clipped, np.diagonal(part))
        values, vectors = np.linalg.eigh(clipped)
        kept = vectors[:, -n:]
        part = (kept * np.maximum(values[-n:], 0.0)) @ kept.T
    return z_scores - part
