"""Elimination: which candidates of each spin are worth their cost."""

from dataclasses import dataclass

import numpy as np

from isingkit._kernels import elimination as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import IntArray, Pairs
from isingkit.estimators.graph import graph_of
from isingkit.estimators.moments import SecondMoments


@dataclass(frozen=True, slots=True, eq=False)
class Elimination:
    """What elimination left, and in which order the rest went."""

    survivors: Pairs  # kept at either end
    directed: IntArray  # (2 n_candidates, 2): a spin, and a candidate of it
    # (2 n_candidates,): 1 for the candidate that the spin dropped first, and so on; 0 if it kept it
    order: IntArray


def eliminate(moments: SecondMoments, pairs: Pairs, n_jobs: int | None = None) -> Elimination:
    """Backward elimination of each spin's candidates by the extended Bayesian criterion."""
    graph = graph_of(pairs, moments.n_spins)
    order = np.zeros(len(graph.indices), dtype=np.int64)
    cost = np.log(max(moments.n_effective, 2.0)) + np.log(max(moments.n_spins, 2))
    fixed = (moments.source, graph.csr, moments.n_effective, cost, order)
    parallel_map(kernels.eliminate, moments.n_spins, *fixed, chunk=16, n_jobs=n_jobs)
    directed = graph.directed_pairs
    left = np.sort(directed[order == kernels.KEPT], axis=1)
    return Elimination(np.unique(left, axis=0).reshape(-1, 2), directed, order)
