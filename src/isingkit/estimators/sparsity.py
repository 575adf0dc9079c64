"""Sparsity: whether most pairs of spins are uncoupled, as a network of edges takes for granted.

If not, either common causes couple them, which show as a part of low rank, or nothing simpler than
all couplings will do. Why so: docs/design/causes.md.
"""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import FloatArray, IntArray, Pairs
from isingkit.estimators.fitted_graph import Samples, fit_graph
from isingkit.estimators.graph import graph_of
from isingkit.estimators.moments import SecondMoments
from isingkit.estimators.normal import NormalEquations, correlations

_LEAST_ROWS = 10.0  # for each spin: with fewer, couplings of all pairs at once say little
_FEWEST_SPINS = 20  # with fewer, edges of a network are no small part of all pairs
_MOST_SPINS = 200  # all of whose pairs are fitted at once
_MOST_ROWS = 10_000  # that are enough to tell
_MOST_CAUSES = 5  # whose part is taken off
_STEPS = 12
_CLIPPED = 3.0  # spreads
_NORMAL = 0.6745  # median of |z|
_EDGE = 5.0  # spreads that an edge sticks out
_PLAIN = 2.0  # spread, beyond which causes need no other proof
_FEW_SPINS = 40  # fewer: a part of low rank is told poorly, and a search with causes is quick
LIMIT = 1.5  # spread of z-scores of most pairs, beyond which they are coupled


@dataclass(frozen=True, slots=True, eq=False)
class Sparsity:
    """The spread of z-scores of most pairs, 1 where these are noise."""

    spread: float
    is_dense: bool = False
    may_be_causes: bool = False  # though dense: only a search with causes can tell
    causes: "PlainCauses | None" = None  # where most pairs are coupled by these


@dataclass(frozen=True, slots=True, eq=False)
class PlainCauses:
    """Common causes that are plain to see in couplings of all pairs."""

    loadings: FloatArray  # (n_causes, n_spins), about
    pairs: Pairs  # that are coupled beyond that


def sparsity_of(moments: SecondMoments, samples: Samples, n_jobs: int | None) -> Sparsity:
    """Told by couplings of all pairs at once, where partial correlations look suspicious.

    Edges are few, so that the median tells of pairs which are none. Partial correlations are quick,
    but only nearly zero where there is no coupling, which many rows show.
    """
    changing = np.flatnonzero(moments.changes)
    n_spins = len(changing)
    has_rows = moments.n_effective > _LEAST_ROWS * n_spins
    if not isinstance(moments, NormalEquations) or not has_rows:
        return Sparsity(1.0)
    if not _FEWEST_SPINS <= n_spins <= _MOST_SPINS:
        return Sparsity(1.0)
    spread = _spread(_partial_z_scores(moments, changing))
    if spread <= LIMIT:
        return Sparsity(spread)
    return _decomposed(_coupling_z_scores(_some_rows(samples), changing, n_jobs), changing, moments)


def _decomposed(z_scores: FloatArray, changing: IntArray, moments: SecondMoments) -> Sparsity:
    """What is left once as few causes as possible are taken off."""
    n_spins = len(changing)
    left = z_scores
    spread = _spread(z_scores)
    n_causes = 0
    while spread > LIMIT and n_causes < _MOST_CAUSES:
        n_causes += 1
        left = _without_directions(z_scores, n_causes)
        freedom = max(1 - 2 * n_causes / n_spins, 0.1)
        spread = min(spread, _spread(left) / np.sqrt(freedom))
    are_few = n_spins < _FEW_SPINS
    if spread > LIMIT:
        return Sparsity(spread, is_dense=True, may_be_causes=are_few and spread < _PLAIN)
    if n_causes == 0 or are_few or _spread(z_scores) < _PLAIN:
        return Sparsity(spread)
    part = z_scores - left
    values, vectors = np.linalg.eigh(part)
    loadings = np.zeros((n_causes, moments.n_spins))
    strengths = np.sqrt(np.maximum(values[-n_causes:], 0))
    loadings[:, changing] = (vectors[:, -n_causes:] * strengths).T
    is_large = np.abs(left) > _EDGE * max(spread, 1.0)
    found = np.argwhere(np.triu(is_large, 1))
    return Sparsity(spread, causes=PlainCauses(loadings, changing[found]))


def _partial_z_scores(moments: NormalEquations, changing: IntArray) -> FloatArray:
    """(n, n): of partial correlations, 0 on the diagonal."""
    part = correlations(moments)[np.ix_(changing, changing)]
    np.fill_diagonal(part, 1.0 + 1e-6)
    inverse = np.linalg.pinv(part, hermitian=True)
    scale = np.sqrt(np.maximum(np.diagonal(inverse), 1e-300))
    partial = -inverse / np.outer(scale, scale)
    np.fill_diagonal(partial, 0.0)
    precision = np.sqrt(moments.n_effective - len(changing) - 1)
    clipped = np.clip(partial, -0.999, 0.999)
    return np.asarray(np.arctanh(clipped) * precision)


def _some_rows(samples: Samples) -> Samples:
    """No more of them than it takes."""
    step = -(-samples.n_rows // _MOST_ROWS)
    return samples if step == 1 else samples[::step]


def _coupling_z_scores(samples: Samples, changing: IntArray, n_jobs: int | None) -> FloatArray:
    """(n, n): couplings over standard errors where all pairs are coupled, both directions' mean."""
    first, second = np.triu_indices(len(changing), 1)
    pairs = np.column_stack([changing[first], changing[second]])
    fitted = fit_graph(samples, pairs, n_jobs=n_jobs)
    directed = fitted.z_scores_of_couplings()
    both = graph_of(pairs, fitted.n_spins).mean_of_directions(directed)
    z_scores = np.zeros((len(changing), len(changing)))
    z_scores[first, second] = z_scores[second, first] = both
    return z_scores


def _spread(z_scores: FloatArray) -> float:
    """Of pairs that do not stick out, as edges do."""
    size = np.abs(z_scores[np.triu_indices(len(z_scores), 1)])
    spread = float(np.median(size)) / _NORMAL
    for _ in range(_STEPS):
        inside = size[size <= _CLIPPED * spread]
        spread = float(np.median(inside)) / _NORMAL if len(inside) else spread
    return spread


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
