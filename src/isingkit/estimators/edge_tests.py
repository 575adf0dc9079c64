"""EdgeTests: how sure it is of each pair that it is an edge."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from tqdm import tqdm

from isingkit._kernels.threads import one_blas_thread, parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.estimators import sizes
from isingkit.estimators.edge_weights import by_sign
from isingkit.estimators.fitted_graph import FittedGraph, ScoreTests
from isingkit.estimators.graph import ranges
from isingkit.estimators.q_values import step_up
from isingkit.estimators.score_cache import ScoreCache

_NOTHING = 1e-12  # a variance that is rounding


@dataclass(frozen=True, slots=True)
class EdgeTestSettings:
    """How pairs are tested. Why these numbers: docs/design/auto.md."""

    clear_z: float = 8.0  # that needs no test of its own
    rival_margin: float = 1.0  # a rival counts if its z-score is smaller by at most this, ...
    rival_log_odds: float = 2.5  # ... unless, with "fdr", the pair is so much likelier than it
    rival_z: float = 2.0  # and at least this
    # share of all pairs that are edges from which on, with "fdr", a rival's being one says nothing
    dense: float = 0.3
    same_spin: float = 0.9  # correlation of spins that no data can tell apart
    least_screening_z: float = 3.0  # pairs outside are tested from this approximate z-score on, ...
    false_per_spin: float = 6.0  # ... unless so many pairs of each spin would reach it by noise
    fwer_margin: float = 1.75  # below the critical z: approximate scores err, degrees may help
    fdr_margin: float = 0.8  # the same where the critical z depends on the graph
    slow: int = 5000  # spins or pairs that are worth a progress bar


SETTINGS = EdgeTestSettings()
PLAIN_FDR = "plain fdr"  # of Benjamini and Hochberg: all pairs count, also those that are edges


@dataclass(frozen=True, slots=True, eq=False)
class EdgeTests:
    """Pairs tested, in the graph or not."""

    pairs: Pairs
    inside: BoolArray  # whether they are in the graph
    z_scores: FloatArray
    p_values: FloatArray  # two-sided
    weights: FloatArray  # by the rest of the graph
    # over all pairs of spins, p-values over weights: Benjamini and Hochberg, with "fdr" by the
    # null share of Benjamini, Krieger and Yekutieli
    q_values: FloatArray
    passes: BoolArray


def critical_z(
    n_spins: int,
    n_edges: int,
    level: float,
    control: str,
    weights: FloatArray | float = 1.0,
) -> FloatArray:
    """The least |z-score| of an edge.

    n_edges: pairs that pass; all that are tested give a lower bound
    """
    n_pairs = max(n_spins * (n_spins - 1) / 2, 1.0)
    tail = level * weights / (2 * n_pairs)
    if control != "fwer":
        n_sure = n_edges if control == "fdr" else 0
        tail = tail * max(n_edges, 1) / null_share(n_pairs, n_sure, level)
    return np.asarray(-ndtri(np.clip(tail, 1e-300, 0.5)))


def null_share(n_pairs: float, n_edges: int, level: float) -> float:
    """How many of all pairs are no edges, at most, if so many are (Benjamini, Krieger and
    Yekutieli, 2006).
    """
    return float(min((1 + level) * max(1 - n_edges / n_pairs, 1 / n_pairs), 1.0))


def screening_z(n_spins: int, n_edges: int, level: float, control: str) -> float:
    """Pairs outside a graph with a lesser approximate z-score will hardly become edges."""
    needed = float(critical_z(n_spins, n_edges, level, control))
    if control == "fwer":
        return needed - SETTINGS.fwer_margin
    false_per_test = SETTINGS.false_per_spin / max(2 * n_spins, 1)
    by_noise = -float(ndtri(min(false_per_test, 0.5)))
    return min(max(SETTINGS.least_screening_z, by_noise), needed - SETTINGS.fdr_margin)


def test_edges(
    pairs: Pairs,
    z_scores: FloatArray,
    weights: FloatArray,
    n_inside: int,
    n_spins: int,
    level: float,
    control: str,
) -> EdgeTests:
    """p-values, q-values and what passes; the first `n_inside` pairs are those of the graph.

    n_spins: those that change, whose pairs all count as tested
    control: "fdr", "fwer" or PLAIN_FDR
    """
    p_values = np.asarray(2 * ndtr(-np.abs(z_scores)))
    n_pairs = max(n_spins * (n_spins - 1) / 2, 1.0)
    expected = p_values / weights * n_pairs
    q_values = step_up(expected)
    passes = expected <= level
    if control != "fwer":
        n_sure = int((q_values <= level / (1 + level)).sum()) if control == "fdr" else 0
        q_values = step_up(expected * null_share(n_pairs, n_sure, level))
        passes = q_values <= level
    inside = np.arange(len(pairs)) < n_inside
    return EdgeTests(pairs, inside, z_scores, p_values, weights, q_values, passes)


@dataclass(frozen=True, slots=True, eq=False)
class SharedCauses:
    """What two spins have in common by hidden causes beyond the scores of these.

    A pair is tested given scores that know nothing of it. What these leave open of the causes makes
    couplings of it, b_i' K b_j of loadings b.
    """

    loadings: FloatArray  # (n_hidden, n_spins)
    strength: FloatArray  # (n_hidden, n_hidden): K, symmetric

    def couplings(self, pairs: Pairs) -> FloatArray:
        """(n_pairs,): b_i' K b_j."""
        first, second = self.loadings[:, pairs[:, 0]], self.loadings[:, pairs[:, 1]]
        return np.asarray((first * (self.strength @ second)).sum(axis=0))

    def z_scores(self, fitted: FittedGraph, pairs: Pairs) -> FloatArray:
        """(n_pairs,): what such couplings add to z-scores, to first order."""
        return np.asarray(self.couplings(pairs) * precisions(fitted, pairs))


def precisions(fitted: FittedGraph, pairs: Pairs) -> FloatArray:
    """(n_pairs,): one over standard errors of couplings, to first order.

    The mean of both directions: spin j tells of a coupling to spin i as much as it varies.
    """
    information = np.sqrt(fitted.information)[pairs]
    deviations = np.sqrt(fitted.columns.variances)[pairs[:, ::-1]]
    return np.asarray((information * deviations).mean(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class EdgeTester:
    """Tests single couplings, in the graph without them."""

    scores: ScoreCache  # approximate z-scores of pairs outside
    changes: BoolArray  # (n_spins,): spins that are not constant
    progress: bool = False
    # what hidden causes make of pairs, of whose scores these pairs are no part
    shared: SharedCauses | None = None
    clear_z: float = SETTINGS.clear_z  # an edge of a larger z-score needs no test of its own
    is_strict: bool = False  # whether not one edge may be false ("fwer")

    def z_scores(self, fitted: FittedGraph, pairs: Pairs, critical: FloatArray) -> FloatArray:
        """z-scores of single couplings; those below the critical ones may be approximate.

        critical: (n_pairs, 2), of negative and of positive z-scores

        Clear edges need no test (couplings over their standard errors serve), nor do pairs outside
        of a small approximate z-score. What passes must hold given a rival, too: where another spin
        would serve the regression of i nearly as well as j, it may be the true neighbour, and j may
        only be near it.
        """
        inside, _ = fitted.graph.find(pairs)
        found = np.zeros(len(pairs))
        found[inside] = weaker_direction(fitted, pairs[inside])
        found[~inside] = self.scores.approximate(fitted, pairs[~inside])
        least = np.minimum(self.scores.screening_z, critical.min(axis=1))
        absolute = np.abs(found)
        is_unclear = np.where(inside, absolute < self._clear_z(fitted), absolute > least)
        unclear = np.flatnonzero(is_unclear)
        with self._bar(len(unclear), "testing pairs", " pairs") as bar, one_blas_thread():
            for portion in _portions(len(unclear), fitted):
                some = unclear[portion]
                alone = self._unshared(fitted, fitted.score_tests(pairs[some]))
                found[some] = alone.z_scores
                needed = by_sign(critical[some], alone.z_scores)
                passing = np.flatnonzero(np.abs(alone.z_scores) > needed)
                rivals = self._rivals(fitted, alone.of(passing), alone.z_scores[passing])
                there = some[passing[rivals.exist]]
                beside = fitted.score_tests(pairs[there], rivals.spins[rivals.exist])
                given = self._unshared(fitted, beside)
                sign = np.sign(found[there])
                weaker = np.maximum(sign * given.z_scores, 0.0)
                found[there] = sign * np.minimum(np.abs(found[there]), weaker)
                bar.update(len(some))
        return found

    def rescored(self, fitted: FittedGraph, changed: IntArray) -> "EdgeTester":
        """The same for another graph, in which these spins have other neighbours."""
        scores = self.scores.copied()
        for start in range(0, len(changed), sizes.PORTION):
            some = changed[start : start + sizes.PORTION]
            scores.update(fitted, some, fitted.residuals_of(some))
        return replace(self, scores=scores)

    def margins(
        self, fitted: FittedGraph, pairs: Pairs, z_scores: FloatArray, critical: FloatArray
    ) -> FloatArray:
        """By how much z-scores of edges could be less, and these be edges still.

        A rival that is too weak to count would count if the edge were weaker, which would then have
        to pass given that, too. As far as they are alike, the rival's strength is the edge's and
        goes with it. Where both spins may get a rival, both are given as soon as one counts: a
        little less is left so.
        """
        found = np.abs(z_scores) - critical
        unclear = np.flatnonzero(np.abs(z_scores) < self._clear_z(fitted))
        with self._bar(len(unclear), "margins of edges", " edges") as bar, one_blas_thread():
            for portion in _portions(len(unclear), fitted):
                here = unclear[portion]
                alone = self._unshared(fitted, fitted.score_tests(pairs[here]))
                rivals = self._rivals(fitted, alone, critical[here])
                some = here[rivals.exist]
                z_alone = alone.z_scores[rivals.exist]
                beside = fitted.score_tests(pairs[some], rivals.spins[rivals.exist])
                given = self._unshared(fitted, beside)
                left = np.sign(z_alone) * given.z_scores - critical[some]
                ahead = np.abs(z_alone) - self._rival_margin(critical[some])
                ahead = ahead[:, None] - rivals.z_scores[rivals.exist]
                until_one_counts = (ahead / (1 - rivals.alike[rivals.exist])).min(axis=1)
                found[some] = np.minimum(found[some], np.maximum(until_one_counts, left))
                bar.update(len(here))
        return np.maximum(found, 0.0)

    def beside_rivals(self, fitted: FittedGraph, pairs: Pairs) -> "BesideRivals":
        """z-scores of pairs alone, of the best rivals at both ends, and of pairs given these."""
        alone = np.empty(len(pairs))
        given = np.empty(len(pairs))
        spins = np.full((len(pairs), 2), -1)
        z_scores = np.zeros((len(pairs), 2))
        with self._bar(len(pairs), "rivals of pairs", " pairs") as bar, one_blas_thread():
            for some in _portions(len(pairs), fitted):
                tested = self._unshared(fitted, fitted.score_tests(pairs[some]))
                least = np.full(len(tested.pairs), SETTINGS.rival_z)
                rivals = self._best_rivals(fitted, tested, least)
                alone[some] = given[some] = tested.z_scores
                spins[some] = rivals.spins
                z_scores[some] = np.maximum(rivals.z_scores, 0.0)
                beside = np.arange(len(pairs))[some][rivals.exist]
                there = fitted.score_tests(pairs[beside], rivals.spins[rivals.exist])
                given[beside] = self._unshared(fitted, there).z_scores
                bar.update(len(tested.pairs))
        return BesideRivals(alone, given, spins, z_scores)

    def _unshared(self, fitted: FittedGraph, found: ScoreTests) -> ScoreTests:
        """Without what hidden causes explain."""
        if self.shared is None:
            return found
        explained = self.shared.z_scores(fitted, found.pairs)
        return replace(found, z_scores=found.z_scores - explained)

    def _rivals(self, fitted: FittedGraph, tested: ScoreTests, z_scores: FloatArray) -> "_Rivals":
        """The best rivals that count beside pairs of these z-scores: within `_rival_margin`."""
        if self._has_no_rivals(fitted):
            return _no_rivals(len(tested.pairs))
        size = np.abs(z_scores)
        least = np.maximum(size - self._rival_margin(size), SETTINGS.rival_z)
        return self._best_rivals(fitted, tested, least)

    def _best_rivals(self, fitted: FittedGraph, tested: ScoreTests, least: FloatArray) -> "_Rivals":
        """For each end of a pair, the best spin to stand for the other end.

        If its z-score is above `least`; spins that are nearly the same as the other end
        (`same_spin`) are excluded, for the data cannot tell them apart.
        """
        own = tested.pairs.ravel()  # row 2p + a: spin a of pair p
        other = tested.pairs[:, ::-1].ravel()
        scale = np.sqrt(np.maximum(tested.information.ravel(), 1e-9))
        residuals = tested.residuals.reshape(len(own), fitted.samples.n_rows)
        barred = _barred(fitted, own, other)
        best, sums = self.scores.strongest(fitted, residuals, np.repeat(least, 2) * scale, barred)
        there = np.flatnonzero(best >= 0)
        alike = np.zeros(len(own))
        alike[there] = _abs_correlations(fitted, np.column_stack([best[there], other[there]]))
        best[alike > SETTINGS.same_spin] = -1
        alike[best < 0] = 0.0
        of_rivals = np.where(best < 0, -np.inf, sums / scale)
        return _Rivals(best.reshape(-1, 2), of_rivals.reshape(-1, 2), alike.reshape(-1, 2))

    def _has_no_rivals(self, fitted: FittedGraph) -> bool:
        """Whether so many pairs are edges that both of two may well be."""
        n_spins = int(self.changes.sum())
        n_pairs = n_spins * (n_spins - 1) / 2
        return not self.is_strict and len(fitted.graph.pairs) >= SETTINGS.dense * n_pairs

    def _rival_margin(self, z_scores: FloatArray) -> FloatArray:
        """By how much less z-scores of rivals may be that count.

        If one of two is the edge, one of z-score z is likelier than one of z - d by z d, in
        logarithms of odds.
        """
        if self.is_strict:
            return np.full(len(z_scores), SETTINGS.rival_margin)
        ahead = SETTINGS.rival_log_odds / np.maximum(z_scores, _NOTHING)
        return np.minimum(ahead, SETTINGS.rival_margin)

    def _clear_z(self, fitted: FittedGraph) -> float:
        """Where rows belong together, what standard errors are is for the tests to say."""
        return np.inf if fitted.samples.are_grouped else self.clear_z

    def _bar(self, total: int, what: str, unit: str) -> Any:
        """A progress bar, where one is wanted and there is much to do."""
        is_quiet = not (self.progress and total > SETTINGS.slow)
        return tqdm(total=total, desc=what, unit=unit, disable=is_quiet, delay=1)


@dataclass(frozen=True, slots=True, eq=False)
class BesideRivals:
    """How pairs do alone, and beside the spins that would serve best in their place."""

    alone: FloatArray  # (n_pairs,): z-scores
    given: FloatArray  # (n_pairs,): the same given the rivals of both ends
    spins: IntArray  # (n_pairs, 2): the rival of each end, -1 where there is none
    z_scores: FloatArray  # (n_pairs, 2): of rivals, in absolute value, without the pair


@dataclass(frozen=True, slots=True, eq=False)
class _Rivals:
    """Rivals of both spins of pairs, (n_pairs, 2)."""

    spins: IntArray  # -1 where there is none
    z_scores: FloatArray  # -inf where there is none
    alike: FloatArray  # |correlation| with the spin they would stand for

    @property
    def exist(self) -> BoolArray:
        return np.asarray((self.spins >= 0).any(axis=1))


def _no_rivals(n_pairs: int) -> _Rivals:
    shape = (n_pairs, 2)
    return _Rivals(np.full(shape, -1), np.full(shape, -np.inf), np.zeros(shape))


def _abs_correlations(fitted: FittedGraph, pairs: IntArray) -> FloatArray:
    """(n_pairs,): |correlation| of two spins, 0 where one never changes."""
    found = np.zeros(len(pairs))

    def fill(start: int, stop: int) -> None:
        first, second = (fitted.samples.values_of(side) for side in pairs[start:stop].T)
        found[start:stop] = abs_correlations(first, second, fitted.samples.sample_weights)

    parallel_map(fill, len(pairs), chunk=16, n_jobs=fitted.n_jobs)
    return found


def abs_correlations(first: FloatArray, second: FloatArray, weights: FloatArray) -> FloatArray:
    """(n,): |correlation| of each two rows of -1, +1 and, where missing, 0; where both are there.

    0 where one never changes.
    """
    shares = np.abs(first * second) * weights
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    means = np.einsum("pk,pk->p", first, shares)
    others = np.einsum("pk,pk->p", second, shares)
    products = np.einsum("pk,pk,pk->p", first, second, shares)
    variances = (1 - means**2) * (1 - others**2)
    change = variances > _NOTHING
    covariances = np.abs(products - means * others)
    return np.where(change, covariances / np.sqrt(np.where(change, variances, 1.0)), 0.0)


def _barred(fitted: FittedGraph, own: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
    """Rows and spins that are no rivals: the pair itself, and neighbours of the row's own spin."""
    graph = fitted.graph
    degrees = graph.degrees[own]
    rows = np.arange(len(own))
    neighbours = graph.indices[ranges(graph.indptr[:-1][own], degrees)]
    barred_rows = np.concatenate([rows, rows, np.repeat(rows, degrees)])
    return barred_rows, np.concatenate([own, other, neighbours])


def _portions(n_pairs: int, fitted: FittedGraph) -> list[slice]:
    """Pairs whose residuals are held at a time."""
    size = max(16, min(sizes.PORTION, sizes.RESIDUALS // max(fitted.samples.n_rows, 1)))
    return [slice(start, start + size) for start in range(0, n_pairs, size)]


def weaker_direction(fitted: FittedGraph, pairs: Pairs) -> FloatArray:
    """Directed couplings over their standard errors, the weaker of both directions."""
    if len(pairs) == 0:
        return np.zeros(0)
    table = fitted.graph.matrix(fitted.z_scores_of_couplings())
    first, second = pairs.T
    forth = np.asarray(table[first, second]).ravel()
    back = np.asarray(table[second, first]).ravel()
    weaker = np.sign(forth) * np.minimum(np.abs(forth), np.abs(back))
    return np.where(forth * back > 0, weaker, 0.0)
