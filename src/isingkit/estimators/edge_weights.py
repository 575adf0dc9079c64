"""Weights of pairs: how much likelier than elsewhere the rest of a graph makes an edge there.

p-values are divided by them. Why that keeps the level, and how well: docs/design/auto.md.
"""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, Pairs
from isingkit.estimators.common_neighbours import closure_odds
from isingkit.estimators.degrees import degree_odds
from isingkit.estimators.graph import Graph


@dataclass(frozen=True, slots=True)
class WeightSettings:
    """How far weights may go. Why these numbers: docs/design/auto.md."""

    shared_alike: float = 0.2  # of all weight, whatever the graph seems to say
    largest: float = 100.0
    prior_edges: float = 3.0  # of either sign, that signs make no difference


SETTINGS = WeightSettings()


def edge_weights(
    pairs: Pairs, graph: Graph, couplings: FloatArray, changes: BoolArray
) -> FloatArray:
    """(n_pairs, 2): weights of pairs, should their coupling be negative, or positive.

    By numbers of neighbours, common neighbours, and signs of other edges. Over both signs of all
    pairs outside the graph their mean is about 1. Those of a pair of the graph are what they were
    without it: whether it is an edge does not move its own weight.

    couplings: (n_edges,), of the graph's pairs; only signs matter
    changes: (n_spins,), whether a spin does; others have no part in it
    """
    by_degree = degree_odds(pairs, graph.pairs, changes)
    by_closure = closure_odds(pairs, graph, changes)
    by_sign = sign_odds(pairs, graph, couplings)
    learned = (by_degree * by_closure)[:, None] * by_sign
    weights = SETTINGS.shared_alike + (1 - SETTINGS.shared_alike) * learned
    return np.asarray(np.minimum(weights, SETTINGS.largest))


def sign_odds(pairs: Pairs, graph: Graph, couplings: FloatArray) -> FloatArray:
    """(n_pairs, 2): how much likelier than one half negative and positive couplings are."""
    is_positive = couplings > 0
    n_edges, n_positive = len(couplings), int(is_positive.sum())
    counts = np.array([n_edges - n_positive, n_positive], dtype=np.float64)
    each = np.tile(counts, (len(pairs), 1))
    inside, place = graph.find(pairs)
    each[inside, is_positive[place].astype(np.int64)] -= 1
    each += SETTINGS.prior_edges
    return np.asarray(2 * each / each.sum(axis=1, keepdims=True))


def by_sign(table: FloatArray, z_scores: FloatArray) -> FloatArray:
    """Of each row of (n_pairs, 2) the number for the sign of its z-score."""
    side = (z_scores > 0).astype(np.int64)
    return np.asarray(table[np.arange(len(table)), side])
