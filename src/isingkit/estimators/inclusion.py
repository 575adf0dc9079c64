"""Inclusion: how probable it is of each pair that it is an edge, by empirical Bayes.

The model, and how well its probabilities hold: docs/design/inclusion.md.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from isingkit._kernels.threads import one_blas_thread
from isingkit.arrays import FloatArray, IntArray, Pairs
from isingkit.estimators.edge_tests import BesideRivals
from isingkit.estimators.edge_weights import edge_weights
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.missed_edges import effect_on_couplings, missed_edges
from isingkit.estimators.network_search import Found
from isingkit.estimators.selection import DIGITS
from isingkit.result_table import ResultTable, as_table
from isingkit.spins import Names


@dataclass(frozen=True, slots=True)
class InclusionSettings:
    """Why these numbers: docs/design/inclusion.md."""

    n_sizes: int = 8  # that couplings of edges may have
    # the least of them, of the median found; and in standard errors, for what is less looks like 0
    least_of_median: float = 0.25
    least_in_errors: float = 1.75
    unseen_in_errors: float = 5.0  # the largest, where no edge was found
    least_range: float = 1.5  # the largest over the least, at least
    prior_edges: float = 2.0  # of all sizes together, that sizes are as frequent as each other
    prior_pairs: float = 1.0  # half of them edges: Jeffreys' prior of the density
    most_dense: float = 0.9
    n_steps: int = 20  # of expectation and maximisation, a round
    n_rounds: int = 3  # of these, and of odds of rivals
    # from this on, by approximate z-scores, a pair is tested by itself and beside its rivals
    least_probability: float = 0.01
    most_pairs: int = 1 << 18  # of which all are listed; of more, those of a z-score above ...
    least_z: float = 1.0
    most_added: float = 2.0  # by missed neighbours to a z-score; its deviation, too


SETTINGS = InclusionSettings()
_NOTHING = 1e-9  # information, at least
_MOST_LOG_ODDS = 50.0  # beyond which more are no different


@dataclass(frozen=True, slots=True, eq=False)
class Inclusion:
    """Of pairs, how probable it is that they are edges."""

    pairs: Pairs
    log_odds: FloatArray  # (n_pairs,): of an edge, given the data
    prior_log_odds: FloatArray  # (n_pairs,): the same before the pair's own data

    def table(self, names: Names) -> ResultTable:
        """source, target, probability, log10_bayes_factor, prior; the most probable first."""
        order = np.argsort(-np.round(self.log_odds, DIGITS), kind="stable")
        source, target = self.pairs[order].T
        labels = np.array(names, dtype=np.str_)
        log_odds, prior_log_odds = self.log_odds[order], self.prior_log_odds[order]
        columns = {
            "source": labels[source],
            "target": labels[target],
            "probability": expit(log_odds),
            "log10_bayes_factor": (log_odds - prior_log_odds) / np.log(10),
            "prior": expit(prior_log_odds),
        }
        return as_table(columns)


@dataclass(frozen=True, slots=True, eq=False)
class PairEvidence:
    """What is known of pairs."""

    pairs: Pairs
    z_scores: FloatArray  # (n_pairs,): in the network without the pair
    precisions: FloatArray  # (n_pairs,): of couplings, one over standard errors
    by_place: FloatArray  # (n_pairs,): how much likelier an edge is there than elsewhere
    by_sign: FloatArray  # (n_pairs, 2): how likely its coupling is negative, and positive

    def of(self, some: IntArray) -> "PairEvidence":
        """Some of the pairs."""
        return PairEvidence(
            self.pairs[some],
            self.z_scores[some],
            self.precisions[some],
            self.by_place[some],
            self.by_sign[some],
        )


@dataclass(frozen=True, slots=True, eq=False)
class EdgePrior:
    """What pairs are before their own data are looked at."""

    density: float  # share of pairs that are edges
    sizes: FloatArray  # (n_sizes,): that |couplings| of edges have
    shares: FloatArray  # (n_sizes,): of edges that have them

    def log_odds(self, evidence: PairEvidence) -> FloatArray:
        """(n_pairs,): of an edge, by the pair's place in the network."""
        return np.asarray(logit(self.density) + np.log(evidence.by_place))

    def log_bayes_factors(self, log_ratios: FloatArray) -> FloatArray:
        """(n_pairs,): of an edge against none, by those of its sizes."""
        largest = log_ratios.max(axis=1)
        of_sizes = np.exp(log_ratios - largest[:, None])
        return np.asarray(largest + np.log(of_sizes @ self.shares))


def inclusion_of(found: Found, couplings: FloatArray) -> Inclusion:
    """By z-scores of pairs in the network without them, and of their rivals.

    couplings: (n_edges,), of the network's pairs
    """
    rough = _rough_evidence(found, couplings)
    log_ratios = log_likelihood_ratios(rough, _sizes(couplings, rough.precisions))
    prior = _learned(_first_prior(found, couplings, rough), found, rough, log_ratios)
    log_odds = prior.log_odds(rough) + prior.log_bayes_factors(log_ratios)
    looked_at = np.flatnonzero(log_odds > logit(SETTINGS.least_probability))
    evidence, given, rivals = _evidence_of_tests(found, couplings, rough, looked_at)
    alone = log_likelihood_ratios(evidence, prior.sizes)
    of_given = log_likelihood_ratios(given, prior.sizes)
    of_rivals = log_likelihood_ratios(rivals.evidence, prior.sizes)
    log_ratios = alone.copy()
    for _ in range(SETTINGS.n_rounds):
        odds_of_rivals = prior.log_odds(rivals.evidence) + prior.log_bayes_factors(of_rivals)
        likelier = rivals.likelier(odds_of_rivals)
        log_ratios[looked_at] = averaged_over_rival(alone[looked_at], of_given, likelier)
        prior = _learned(prior, found, evidence, log_ratios)
    prior_log_odds = prior.log_odds(evidence)
    log_odds = prior_log_odds + prior.log_bayes_factors(log_ratios)
    return Inclusion(evidence.pairs, log_odds, prior_log_odds)


def _evidence_of_tests(
    found: Found, couplings: FloatArray, rough: PairEvidence, looked_at: IntArray
) -> tuple[PairEvidence, PairEvidence, "_Rivals"]:
    """All pairs, some of them tested by themselves; these given their rivals; and the rivals."""
    beside = found.tester.beside_rivals(found.fitted, rough.pairs[looked_at])
    z_scores = rough.z_scores.copy()
    z_scores[looked_at] = beside.alone
    added, spread = _by_missed_neighbours(found, couplings, rough)
    evidence = replace(
        rough, z_scores=(z_scores - added) / spread, precisions=rough.precisions / spread
    )
    z_given = (beside.given - added[looked_at]) / spread[looked_at]
    given = replace(evidence.of(looked_at), z_scores=z_given)
    return evidence, given, _rivals(found, couplings, given.pairs, beside)


def _rough_evidence(found: Found, couplings: FloatArray) -> PairEvidence:
    """Approximate z-scores outside the network; pairs of which no row tells anything are left out,
    and where pairs are very many, those of small z-scores.

    Scores of hidden causes contain both spins here, and leave nothing open that these share.
    """
    fitted, tester = found.fitted, found.tester
    are_few = _n_pairs(found) <= SETTINGS.most_pairs
    outside, scores = tester.scores.plausible(fitted, 0.0 if are_few else SETTINGS.least_z)
    change = tester.changes[outside].all(axis=1)
    outside, scores = outside[change], scores[change]
    tests = found.selection.tests
    pairs = np.concatenate([fitted.graph.pairs, outside])
    z_scores = np.concatenate([tests.z_scores[tests.inside], scores])
    return _evidence(found, couplings, pairs, z_scores)


def _evidence(
    found: Found, couplings: FloatArray, pairs: Pairs, z_scores: FloatArray
) -> PairEvidence:
    weights = edge_weights(pairs, found.fitted.graph, couplings, found.tester.changes)
    by_place = weights.mean(axis=1)
    by_sign = weights / weights.sum(axis=1, keepdims=True)
    return PairEvidence(pairs, z_scores, _precisions(found.fitted, pairs), by_place, by_sign)


def _by_missed_neighbours(
    found: Found, couplings: FloatArray, evidence: PairEvidence
) -> tuple[FloatArray, FloatArray]:
    """(n_pairs,) both: what neighbours that were probably missed add to z-scores of the network's
    pairs, which are the first, and the standard deviation of z-scores with what that leaves open.
    """
    added = np.zeros(len(evidence.pairs))
    spread = np.ones(len(evidence.pairs))
    missed = missed_edges(found.tester, found.fitted, couplings)
    shifts, variances = effect_on_couplings(found.fitted, missed)
    inside = slice(len(couplings))
    precisions = evidence.precisions[inside]
    most = SETTINGS.most_added
    added[inside] = np.clip(shifts * precisions, -most, most)
    spread[inside] = np.sqrt(1 + np.minimum(variances * precisions**2, most**2))
    return added, spread


def _precisions(fitted: FittedGraph, pairs: Pairs) -> FloatArray:
    r"""(n_pairs,): one over standard errors of couplings, for spins that are about independent.

    The information on J_ij is \sum_r w_r (1 - m_i^2) (1 - m_j^2), about the product of both spins'
    over the weight of all rows.
    """
    information = np.maximum(fitted.information[pairs].prod(axis=1), _NOTHING)
    return np.asarray(np.sqrt(information / fitted.samples.sample_weights.sum()))


def log_likelihood_ratios(evidence: PairEvidence, sizes: FloatArray) -> FloatArray:
    """(n_pairs, n_sizes): of couplings of these sizes, of either sign, against none.

    A z-score is normal about the coupling over its standard error.
    """
    expected = evidence.precisions[:, None] * sizes
    towards = evidence.z_scores[:, None] * expected
    negative, positive = np.log(evidence.by_sign).T
    of_signs = np.logaddexp(negative[:, None] - towards, positive[:, None] + towards)
    return np.asarray(of_signs - expected**2 / 2)


def _first_prior(found: Found, couplings: FloatArray, evidence: PairEvidence) -> EdgePrior:
    """As dense as the network found, all sizes alike."""
    sizes = _sizes(couplings, evidence.precisions)
    density = _density(len(couplings), found)
    return EdgePrior(density, sizes, np.full(len(sizes), 1 / len(sizes)))


def _learned(
    prior: EdgePrior, found: Found, evidence: PairEvidence, log_ratios: FloatArray
) -> EdgePrior:
    """The density, and the shares of sizes, that make z-scores likeliest: expectation and
    maximisation, from a prior on.

    log_ratios: (n_pairs, n_sizes), of likelihoods against that of no edge
    """
    weighted = log_ratios + np.log(evidence.by_place)[:, None]
    ratios = np.exp(np.clip(weighted, -_MOST_LOG_ODDS, _MOST_LOG_ODDS))
    density, shares = prior.density, prior.shares
    with one_blas_thread():
        for _ in range(SETTINGS.n_steps):
            prior_odds = density / (1 - density)
            of_nothing = 1 / (1 + prior_odds * (ratios @ shares))
            n_edges = prior_odds * shares * (of_nothing @ ratios)  # expected, of each size
            density = _density(float(n_edges.sum()), found)
            smoothed = n_edges + SETTINGS.prior_edges / len(shares)
            shares = smoothed / smoothed.sum()
    return EdgePrior(density, prior.sizes, shares)


def _density(n_edges: float, found: Found) -> float:
    """The share of pairs that are edges, where so many are expected."""
    density = (n_edges + SETTINGS.prior_pairs / 2) / (_n_pairs(found) + SETTINGS.prior_pairs)
    return min(density, SETTINGS.most_dense)


def _n_pairs(found: Found) -> float:
    """Of spins that change."""
    return max(found.n_changing * (found.n_changing - 1) / 2, 1.0)


def _sizes(couplings: FloatArray, precisions: FloatArray) -> FloatArray:
    """(n_sizes,): that |couplings| of edges may have."""
    error = 1 / np.median(precisions) if len(precisions) else 1.0
    least = SETTINGS.least_in_errors * error
    largest = SETTINGS.unseen_in_errors * error
    if len(couplings):
        found = np.abs(couplings)
        least = max(least, SETTINGS.least_of_median * np.median(found))
        largest = found.max()
    return np.geomspace(least, max(largest, SETTINGS.least_range * least), SETTINGS.n_sizes)


@dataclass(frozen=True, slots=True, eq=False)
class _Rivals:
    """Pairs that would serve nearly as well, of either end of others."""

    evidence: PairEvidence
    row: IntArray  # (n_rivals,): whose rival it is
    n_pairs: int

    def likelier(self, log_odds: FloatArray) -> FloatArray:
        """(n_pairs,): of the likelier rival of each; log odds of the rivals in, -inf for none."""
        largest = np.full(self.n_pairs, -np.inf)
        np.maximum.at(largest, self.row, log_odds)
        return largest


def _rivals(found: Found, couplings: FloatArray, pairs: Pairs, beside: BesideRivals) -> _Rivals:
    row, end = np.nonzero(beside.spins >= 0)
    rivals = np.column_stack([pairs[row, end], beside.spins[row, end]])
    evidence = _evidence(found, couplings, np.sort(rivals, axis=1), beside.z_scores[row, end])
    evidence = replace(evidence, by_sign=np.full(rivals.shape, 0.5))  # of |z-scores|
    return _Rivals(evidence, row, len(pairs))


def averaged_over_rival(alone: FloatArray, given: FloatArray, of_rival: FloatArray) -> FloatArray:
    r"""(n_pairs, n_sizes): log ratios of likelihoods, whether a rival is an edge or not.

    With a the ratio alone, g given the rival, and r the odds of the rival if the pair is no edge:
    the networks without the pair have 1 and r, those with it a and r g, so (a + r g) / (1 + r).
    """
    odds = of_rival[:, None]
    return np.asarray(np.logaddexp(alone, odds + given) - np.logaddexp(0.0, odds))
