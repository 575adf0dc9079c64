"""SizeMixture: how large couplings are, and so how likely a pair of some z-score has none.

Tests control the false share of all edges. Where most of these are beyond doubt, that leaves room
for some that chance explains better than a coupling does. Why they go: docs/design/auto.md.
"""

from dataclasses import dataclass, replace

import numpy as np

from isingkit.arrays import FloatArray
from isingkit.estimators.edge_tests import EdgeTester, precisions
from isingkit.estimators.edge_weights import edge_weights
from isingkit.estimators.score_cache import least_plausible_z
from isingkit.estimators.selection import Selection

_SIGNS = np.array([-1.0, 1.0])
_LARGEST_LOG = 50.0  # of a likelihood ratio: beyond any doubt


@dataclass(frozen=True, slots=True)
class LocalFdrSettings:
    """Why these numbers: docs/design/auto.md."""

    largest: float = 0.8  # local false discovery rate of an edge, or the level if that is more
    least_z: float = 2.0  # pairs outside of less are taken for no edges
    step: float = 1.2  # from one size of couplings to the next
    least_size: float = 1e-3  # of couplings, in units of the largest: an edge's may be 0
    most_dense: float = 0.9  # share of pairs that are edges
    n_steps: int = 100  # of expectation and maximisation


SETTINGS = LocalFdrSettings()


@dataclass(frozen=True, slots=True, eq=False)
class SizeMixture:
    """Odds of couplings of some sizes against none, where the rest of the network is silent."""

    sizes: FloatArray  # (n_sizes,): |J|
    odds: FloatArray  # (n_sizes,): for both signs together

    def edge_odds(self, evidence: "Evidence") -> FloatArray:
        """(n_pairs,): of an edge against none."""
        return np.asarray(self.odds @ evidence.likelihood_ratios(self.sizes))


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What is known of pairs."""

    z_scores: FloatArray  # (n_pairs,)
    precisions: FloatArray  # (n_pairs,): z-scores that a coupling of 1 would have
    weights: FloatArray  # (n_pairs, 2): of negative and positive couplings, by the rest

    def likelihood_ratios(self, sizes: FloatArray) -> FloatArray:
        """(n_sizes, n_pairs): of a coupling of this size against none, weighted over signs."""
        expected = sizes[:, None] * self.precisions
        found = np.zeros(expected.shape)
        for sign, weights in zip(_SIGNS, self.weights.T, strict=True):
            gain = sign * self.z_scores * expected - expected**2 / 2
            found += weights / 2 * np.exp(np.minimum(gain, _LARGEST_LOG))
        return found


def size_mixture(evidence: Evidence, sizes: FloatArray, n_pairs: float) -> SizeMixture:
    """The odds that make z-scores likeliest, by expectation and maximisation.

    n_pairs: of all; those of which nothing is known have no coupling
    """
    ratios = evidence.likelihood_ratios(sizes)
    shares = np.full(len(sizes), 0.5 / len(sizes))  # of all pairs
    for _ in range(SETTINGS.n_steps):
        odds = shares / (1 - shares.sum())
        shares = odds * (ratios @ (1 / (1 + odds @ ratios))) / n_pairs
        shares *= min(1.0, SETTINGS.most_dense / max(shares.sum(), 1e-300))
    return SizeMixture(sizes, shares / (1 - shares.sum()))


def likelier_than_chance(
    tester: EdgeTester, found: Selection, level: float
) -> tuple[EdgeTester, Selection]:
    """The network without edges whose z-scores chance explains better than a coupling does.

    Their q-value, the least level at which they would be edges, is then their local one.
    """
    fitted, tests = found.fitted, found.tests
    inside = tests.inside
    n_inside = len(fitted.graph.pairs)
    if n_inside == 0:
        return tester, found
    couplings = fitted.graph.mean_of_directions(fitted.couplings)
    least = least_plausible_z(SETTINGS.least_z, fitted.n_spins)
    outside, z_outside = tester.scores.plausible(fitted, least)
    pairs = np.concatenate([tests.pairs[inside], outside])
    z_scores = np.concatenate([tests.z_scores[inside], z_outside])
    weights = edge_weights(pairs, fitted.graph, couplings, tester.changes)
    evidence = Evidence(z_scores, precisions(fitted, pairs), weights)
    n_spins = int(tester.changes.sum())
    of_edges = np.abs(z_scores[:n_inside]) / evidence.precisions[:n_inside]
    mixture = size_mixture(evidence, _grid(of_edges), n_spins * (n_spins - 1) / 2)
    local_fdr = 1 / (1 + mixture.edge_odds(evidence)[:n_inside])
    believed = local_fdr <= max(SETTINGS.largest, level)
    if believed.all():
        return tester, found
    smaller, changed = fitted.refit(fitted.graph.pairs[believed])
    kept = inside.copy()
    kept[inside] = believed
    gone = inside & ~kept
    q_values = tests.q_values.copy()
    q_values[gone] = np.maximum(q_values[gone], local_fdr[~believed])
    again = replace(tests, inside=kept, q_values=q_values, passes=tests.passes & ~gone)
    return tester.rescored(smaller, changed), Selection(smaller, again, found.n_rounds)


def _grid(sizes: FloatArray) -> FloatArray:
    """From the smallest to the largest, in equal ratios."""
    most = float(sizes.max())
    least = max(float(sizes.min()), SETTINGS.least_size * most)
    n_sizes = 2 + int(np.log(most / least) / np.log(SETTINGS.step))
    return np.geomspace(least, most, n_sizes)
