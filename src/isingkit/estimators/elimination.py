"""Elimination: which candidates of each spin are worth their cost."""

from dataclasses import dataclass

import numpy as np

from isingkit._kernels import elimination as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import IntArray, Pairs, distinct
from isingkit.estimators.graph import Graph, graph_of, keys_of, pairs_of
from isingkit.estimators.moments import SecondMoments
from isingkit.estimators.screen import DIGITS

_MOST = 128  # candidates of a spin that are looked at from its side
_ROWS_PER_SURVIVOR = 4  # of a spin, that elimination leaves at the most, ...
_FEWEST = 8  # ... but so many always
_NOTHING = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Elimination:
    """What elimination left, and in which order the rest went."""

    survivors: Pairs  # kept at either end
    directed: IntArray  # (2 n_candidates, 2): a spin, and a candidate of it
    # (2 n_candidates,): 1 for the candidate that the spin dropped first, and so on; 0 if it kept it
    order: IntArray


def eliminate(moments: SecondMoments, pairs: Pairs, n_jobs: int | None = None) -> Elimination:
    """Backward elimination of each spin's candidates by the extended Bayesian criterion.

    Of a hub, which is among the best candidates of very many, only those that correlate most are
    looked at, for the cost grows with their cube; the others are left to decide from their side.
    """
    graph = graph_of(pairs, moments.n_spins)
    order = _left_to_others(moments, graph)
    looked_at = np.flatnonzero(order == kernels.KEPT)
    counts = np.bincount(graph.owners[looked_at], minlength=moments.n_spins)
    csr = (np.concatenate([[0], np.cumsum(counts)]), graph.indices[looked_at])
    found = np.zeros(len(looked_at), dtype=np.int64)
    cost = np.log(max(moments.n_effective, 2.0)) + np.log(max(moments.n_spins, 2))
    fixed = (moments.source, csr, moments.n_effective, cost, found)
    parallel_map(kernels.eliminate, moments.n_spins, *fixed, chunk=16, n_jobs=n_jobs)
    before = (graph.degrees - counts)[graph.owners[looked_at]]
    order[looked_at] = np.where(found == kernels.KEPT, kernels.KEPT, found + before)
    directed = graph.directed_pairs
    left = np.sort(directed[order == kernels.KEPT], axis=1)
    survivors = pairs_of(distinct(keys_of(left, moments.n_spins)), moments.n_spins)
    return Elimination(_as_rows_allow(moments, survivors), directed, order)


def _as_rows_allow(moments: SecondMoments, pairs: Pairs) -> Pairs:
    """Without the weakest pairs of spins that have more than a regression of so many rows bears."""
    most = max(int(moments.n_effective / _ROWS_PER_SURVIVOR), _FEWEST)
    graph = graph_of(pairs, moments.n_spins)
    kept = np.ones(len(pairs), dtype=np.bool_)
    for hub in np.flatnonzero(graph.degrees > most):
        here = slice(graph.indptr[hub], graph.indptr[hub + 1])
        weakest_first = _by_correlation(moments, int(hub), graph.indices[here])
        others = graph.indices[here][weakest_first[:-most]]
        of_hub = np.sort(np.column_stack([np.full(len(others), hub), others]), axis=1)
        kept[graph.find(of_hub)[1]] = False
    return pairs[kept]


def _by_correlation(moments: SecondMoments, spin: int, others: IntArray) -> IntArray:
    """Places of the others by |correlation| with a spin, the smallest first."""
    pairs = np.column_stack([np.full(len(others), spin), others])
    scales = np.sqrt(np.maximum(moments.variances[others], _NOTHING))
    size = np.abs(moments.covariances(pairs)) / scales
    digits = np.round(size / max(float(size.max()), _NOTHING), DIGITS)
    return np.argsort(digits, kind="stable")


def _left_to_others(moments: SecondMoments, graph: Graph) -> IntArray:
    """(2 n_pairs,): in which order spins of too many candidates drop those that correlate least;
    0 for all that are looked at.
    """
    order = np.zeros(len(graph.indices), dtype=np.int64)
    for hub in np.flatnonzero(graph.degrees > _MOST):
        here = slice(graph.indptr[hub], graph.indptr[hub + 1])
        others = graph.indices[here]
        weakest_first = _by_correlation(moments, int(hub), others)
        left = np.zeros(len(others), dtype=np.int64)
        left[weakest_first[:-_MOST]] = np.arange(len(others) - _MOST) + kernels.DROPPED
        order[here] = left
    return order
