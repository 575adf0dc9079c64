"""Look: what a network found without causes says of these, before any other is searched for.

Edges that causes explain are dropped, none come in. Why that tells whether a search is worth it:
docs/design/causes.md.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from isingkit.arrays import FloatArray, Pairs
from isingkit.estimators.edge_tests import critical_z, weaker_direction
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.hidden_causes import (
    MOST_BENT,
    HiddenCauses,
    eigenvectors,
    hidden_of,
    iterated,
)
from isingkit.estimators.score_cache import ScoreCache

_CLIPPED = 2.5  # z-scores: a missed edge is no cause, and an edge may stand for one
_MISSED_EDGE = 6.0  # the same where edges are left out
_REFINEMENTS = 2  # of loadings, with the strict network given them
_ROUNDS = 3  # of dropping edges, at most


@dataclass(frozen=True, slots=True)
class EdgeRule:
    """When a pair is an edge, by the user's settings."""

    level: float
    control: str  # "fdr" or "fwer"
    n_changing: int  # spins that are not constant, whose pairs all count as tested

    @property
    def strict(self) -> "EdgeRule":
        return replace(self, control="fwer")

    def critical_z(self, n_edges: int) -> float:
        """That an edge must reach in a network of so many."""
        return float(critical_z(self.n_changing, n_edges, self.level, self.control))


@dataclass(frozen=True, eq=False)
class Leftover:
    """What those edges of a network that are beyond doubt leave over."""

    fitted: FittedGraph  # the network
    strict: FittedGraph  # edges beyond doubt
    scores: ScoreCache  # of pairs outside these

    @cached_property
    def z_scores(self) -> FloatArray:
        """(n, n), of the spins that are probed, clipped: an edge counts no more than what is
        outside.

        Some edges stand for a cause. Left out, they take with them what tells of it.
        """
        left = outside(self.strict, self.scores)
        some = self.scores.probe()
        places = np.full(self.strict.n_spins, -1)
        places[some] = np.arange(len(some))
        pairs = self.strict.graph.pairs
        pairs = pairs[(places[pairs] >= 0).all(axis=1)]
        first, second = places[pairs].T
        left[first, second] = left[second, first] = weaker_direction(self.strict, pairs)
        return np.clip(left, -_CLIPPED, _CLIPPED, out=left)

    @property
    def n_probed(self) -> int:
        """Spins that are probed and tell anything: no more causes can be told apart."""
        return int((self.fitted.information[self.scores.probe()] > _NOTHING).sum())

    def eigenvalues(self, n: int) -> FloatArray:
        """(n,): the largest of z-scores, falling, in units of noise's."""
        return _in_units_of_noise(self.z_scores, self.strict, n)

    def loadings(self, n_hidden: int) -> FloatArray:
        """(n_hidden, n_spins): the foremost eigenvectors of z-scores; 0 where not probed.

        Of correlations, where many are asked for: then it is not few edges that stand for causes,
        and clipped z-scores of pairs that all stick out would not tell one from another.
        """
        if n_hidden > MOST_BENT:
            return self._principal_components(n_hidden)
        found = np.zeros((n_hidden, self.strict.n_spins))
        found[:, self.scores.probe()] = eigenvectors(self.z_scores, n_hidden)[1]
        return found

    def _principal_components(self, n: int) -> FloatArray:
        probed = self.scores.probe()
        changing = probed[self.fitted.columns.changes[probed]]
        correlations = self.scores.correlations(changing)
        loadings = np.zeros((n, self.fitted.n_spins))
        loadings[:, changing] = eigenvectors(correlations, n)[1]
        return loadings


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Causes, and what is left of a network given these."""

    causes: HiddenCauses
    pairs: Pairs  # beyond doubt
    fitted: FittedGraph  # all edges that still stand


def leftover_of(fitted: FittedGraph, pairs: Pairs, scores: ScoreCache) -> Leftover:
    """What the sorted pairs of a network that are beyond doubt leave.

    scores: of the whole network; they stay as they are
    """
    strict, changed = fitted.refit(pairs)
    of_strict = scores.copied()
    of_strict.update(strict, changed, strict.residuals_of(changed))
    return Leftover(fitted, strict, of_strict)


def look(fitted: FittedGraph, strict: FittedGraph, loadings: FloatArray, rule: EdgeRule) -> Look:
    """Causes of about these loadings, found anew given the strict network, and that given these.

    fitted: the network without causes
    """
    if len(loadings) > MOST_BENT:
        return _look_at_many(fitted, loadings, rule)
    causes, given = iterated(strict, loadings)
    for _ in range(_REFINEMENTS):
        pairs = without_weak(given, rule.strict).graph.pairs
        causes, given = iterated(strict.refit(pairs)[0], causes.loadings)
    all_edges = fitted.given(causes.beside(fitted.samples, bent=True))
    return Look(causes, given.graph.pairs, without_weak(all_edges, rule))


def _look_at_many(fitted: FittedGraph, loadings: FloatArray, rule: EdgeRule) -> Look:
    """Causes of these loadings as they are: principal components tell lineages as well as any."""
    causes = hidden_of(fitted.samples, loadings)
    all_edges = without_weak(fitted.given(causes.beside(fitted.samples, bent=True)), rule)
    return Look(causes, without_weak(all_edges, rule.strict).graph.pairs, all_edges)


def without_weak(fitted: FittedGraph, rule: EdgeRule) -> FittedGraph:
    """A network without edges whose couplings are not significant."""
    for _ in range(_ROUNDS):
        pairs = fitted.graph.pairs
        least = rule.critical_z(len(pairs))
        stands = np.abs(weaker_direction(fitted, pairs)) > least
        if stands.all():
            break
        fitted = fitted.refit(pairs[stands])[0]
    return fitted


def gain_over(before: FittedGraph, after: FittedGraph, n_more: int) -> float:
    """What causes gain: twice the log pseudolikelihood, for each spin, less costs.

    An edge costs 2 (log M + log N), as both regressions pay for it. A loading costs log M, and all
    of them 2 log of the ways to choose the spins that load: those count whose loadings gain most.
    n_more: causes that only the latter has
    """
    n_spins = before.n_spins
    log_samples = np.log(before.samples.sample_weights.sum())
    more_edges = len(after.graph.pairs) - len(before.graph.pairs)
    by_edges = -more_edges * 2 * (log_samples + np.log(n_spins))
    without_causes = before.refit(after.graph.pairs)[0].log_likelihoods()
    by_edges += 2 * (without_causes - before.log_likelihoods()).sum()
    of_loadings = 2 * (after.log_likelihoods() - without_causes) - n_more * log_samples
    return float((by_edges + _gain_of_some(of_loadings)) / n_spins)


def more_explained(before: FittedGraph, after: FittedGraph) -> float:
    """By how much twice the log pseudolikelihood rises, for each spin, whatever that costs."""
    more = after.log_likelihoods() - before.log_likelihoods()
    return float(2 * more.mean())


def _gain_of_some(gains: FloatArray) -> float:
    """The sum of the largest gains, less 2 log of the ways to choose as many, at its best."""
    n = len(gains)
    k = np.arange(n + 1)
    largest_first = np.sort(gains)[::-1]
    sums = np.concatenate([[0.0], np.cumsum(largest_first)])
    log_ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return float((sums - 2 * log_ways).max())


def leftover(fitted: FittedGraph, scores: ScoreCache) -> float:
    """Largest eigenvalue of z-scores outside a network, in units of noise's."""
    left = outside(fitted, scores)
    np.clip(left, -_MISSED_EDGE, _MISSED_EDGE, out=left)
    return float(_in_units_of_noise(left, fitted, 1)[0])


def outside(fitted: FittedGraph, scores: ScoreCache) -> FloatArray:
    """(n, n): z-scores of pairs outside a network, 0 for others."""
    some = scores.probe()
    left = scores.leftover(fitted, some)
    left[fitted.graph.matrix(fitted.couplings)[some][:, some].nonzero()] = 0.0
    np.fill_diagonal(left, 0.0)
    return left


def _in_units_of_noise(z_scores: FloatArray, fitted: FittedGraph, n: int) -> FloatArray:
    """(n,): the largest eigenvalues over that of noise, 2 sqrt(N) (1 + sqrt(N / M) / 2)."""
    n_spins = len(z_scores)
    n_samples = float(fitted.samples.sample_weights.sum())
    of_noise = 2 * np.sqrt(n_spins) * (1 + np.sqrt(n_spins / n_samples) / 2)
    return np.asarray(eigenvectors(z_scores, n)[0] / of_noise)
