"""How many hidden causes there are, and the network given these.

A cause is believed where a network with it explains rows better than one without, edges and
loadings counted. Why so, and how well: docs/design/causes.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isingkit.arrays import FloatArray, Pairs
from isingkit.estimators.edge_tests import EdgeTester
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.graph import keys_of, pairs_of
from isingkit.estimators.hidden_causes import (
    HiddenCauses,
    eigenvectors,
    first_loadings,
    hidden_of,
    iterated,
)
from isingkit.estimators.score_cache import ScoreCache
from isingkit.estimators.selection import Selection, TooManySuspects


@dataclass(frozen=True, slots=True)
class CauseSettings:
    """When a cause is looked for, and when it is believed. Why: docs/design/causes.md."""

    most: int = 5  # causes
    few_spins: int = 10  # in which a cause cannot be told from edges
    leftover: float = 1.05  # eigenvalue of z-scores outside, in units of noise's: look closer
    clipped: float = 6.0  # z-scores, so that one missed edge is no cause
    # of twice the log pseudolikelihood, for each spin, less what edges and loadings cost: so much,
    # and so much more where spins are few
    least_gain: float = 2.0
    more_if_few: float = 1000.0  # over the number of spins squared
    clear_gain: float = 10.0  # beyond it nothing else is asked for
    least_calm: float = 0.05  # log of the factor by which z-scores outside the network shrink
    least_spins: float = 2.5  # that a cause acts on: fewer are a hub, or a pair
    n_refinements: int = 2  # of loadings, with the strict network given them


SETTINGS = CauseSettings()


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network found, given causes, and what tested its edges."""

    tester: EdgeTester
    selection: Selection
    hidden: HiddenCauses | None = None

    @property
    def fitted(self) -> FittedGraph:
        return self.selection.fitted

    @property
    def pairs(self) -> Pairs:
        return self.fitted.graph.pairs


class Select(Protocol):
    """Finds a network."""

    def __call__(
        self, hidden: HiddenCauses | None, start: Pairs, is_strict: bool, is_bounded: bool = False
    ) -> Network:
        """Given causes, from pairs to start from; bounded: or `TooManySuspects`."""


@dataclass(frozen=True, slots=True)
class CauseEvidence:
    """What speaks for hidden causes."""

    leftover: float  # largest eigenvalue of z-scores outside the strict network, in units of noise
    was_looked_for: bool = True  # else only what is left outside the network was
    gain: float = 0.0  # of the first cause, by `CauseSettings.least_gain`
    n_found: int = 0  # causes that are believed


def search(
    select: Select,
    start: Pairs,
    hidden: int | str,
    level: float,
    in_some: Callable[[], Select] | None = None,
) -> tuple[Network, CauseEvidence]:
    """The network, given as many causes as asked for, or as are believed ("auto").

    With none asked for, what speaks for them is looked at all the same.
    level: of strict networks     in_some: finds networks of fewer rows, by which causes are told
    """
    if hidden not in (0, "auto"):
        causes, pairs = _causes(select, _strict_graph(select, start), int(hidden))
        network = select(causes, pairs, False)
        left = leftover(network.fitted, network.tester.scores)
        return network, CauseEvidence(left, gain=np.nan, n_found=int(hidden))
    try:
        plain = select(None, start, False, is_bounded=hidden == "auto")
    except TooManySuspects as crowd:
        found = _given_crowd(select, crowd.fitted)
        if found is not None:
            return found
        plain = select(None, start, False)
    left = _leftover_of_strict(plain, level)
    is_small = plain.tester.changes.sum() < SETTINGS.few_spins
    if is_small or left < SETTINGS.leftover:
        return plain, CauseEvidence(left)
    if in_some is not None:
        found_in_some = search(in_some(), start, hidden, level)
        return _as_in_some(select, plain, *found_in_some)
    return _with_causes(select, plain, select(None, start, True), hidden == "auto")


def _as_in_some(
    select: Select, plain: Network, some: Network, evidence: CauseEvidence
) -> tuple[Network, CauseEvidence]:
    """The network given the causes that some of the rows have told."""
    if some.hidden is None:
        return plain, evidence
    causes = hidden_of(plain.fitted.samples, some.hidden.loadings)
    return select(causes, some.pairs, False), evidence


def _strict_graph(select: Select, start: Pairs) -> FittedGraph:
    """A strict network, or as far as its search came before pairs were too many."""
    try:
        return select(None, start, True, is_bounded=True).fitted
    except TooManySuspects as crowd:
        return crowd.fitted


def _given_crowd(select: Select, fitted: FittedGraph) -> tuple[Network, CauseEvidence] | None:
    """A network with causes, where edges alone would have to be very many; None if that is no
    better.
    """
    found = None
    for n_hidden in range(1, SETTINGS.most + 1):
        causes, pairs = _causes(select, fitted, n_hidden)
        network = select(causes, pairs, False)
        gain = _gain_over(fitted, 0, network) if found is None else _gain(found[0], network)
        least = SETTINGS.clear_gain if found is None else least_gain(fitted.n_spins)
        if gain < least or causes.n_spins < SETTINGS.least_spins:
            break
        left = leftover(network.fitted, network.tester.scores)
        first_gain = gain if found is None else found[1].gain
        found = (network, CauseEvidence(left, gain=first_gain, n_found=n_hidden))
        if left < SETTINGS.leftover:
            break
    return found


def _with_causes(
    select: Select, plain: Network, strict: Network, is_wanted: bool
) -> tuple[Network, CauseEvidence]:
    """One cause after the other, while each is worth its cost."""
    left = leftover(strict.fitted, strict.tester.scores)
    best = plain
    first_gain = 0.0
    for n_hidden in range(1, SETTINGS.most + 1):
        causes, pairs = _causes(select, strict.fitted, n_hidden)
        if causes.n_spins < SETTINGS.least_spins:
            break
        found = select(causes, pairs, False)
        gain = _gain(best, found)
        first_gain = gain if n_hidden == 1 else first_gain
        if not _is_believed(gain, best, found):
            break
        best = found
        if not is_wanted or leftover(found.fitted, found.tester.scores) < SETTINGS.leftover:
            break
    n_found = 0 if best.hidden is None else best.hidden.n_hidden
    evidence = CauseEvidence(left, gain=first_gain, n_found=n_found)
    return (best if is_wanted else plain), evidence


def search_given(
    select: Select, fitted: FittedGraph, loadings: FloatArray
) -> tuple[Network, CauseEvidence]:
    """The network given causes that are plain to see, of about these loadings.

    fitted: the pairs that stick out beside them
    """
    causes = iterated(fitted, loadings, fitted.graph.pairs)
    pairs = select(causes, fitted.graph.pairs, True).pairs
    network = select(*_refined(select, fitted, causes, pairs), False)
    gain = _gain_over(fitted, 0, network)
    left = leftover(network.fitted, network.tester.scores)
    return network, CauseEvidence(left, gain=gain, n_found=len(loadings))


def _causes(select: Select, strict: FittedGraph, n_hidden: int) -> tuple[HiddenCauses, Pairs]:
    """Causes that a strict network leaves, and what is left of it given these."""
    causes = iterated(strict, first_loadings(strict, n_hidden), strict.graph.pairs)
    return _refined(select, strict, causes, select(causes, strict.graph.pairs, True).pairs)


def _refined(
    select: Select, fitted: FittedGraph, causes: HiddenCauses, pairs: Pairs
) -> tuple[HiddenCauses, Pairs]:
    """Causes and the strict network given these, each found anew given the other."""
    for _ in range(SETTINGS.n_refinements - 1):
        causes = iterated(fitted, causes.loadings, pairs)
        pairs = select(causes, pairs, True).pairs
    return iterated(fitted, causes.loadings, pairs), pairs


def _gain(before: Network, after: Network) -> float:
    return _gain_over(before.fitted, _n_hidden(before), after)


def _gain_over(before: FittedGraph, n_before: int, after: Network) -> float:
    """Of twice the log pseudolikelihood, for each spin, less costs.

    An edge costs 2 (log M + log N), as both regressions pay for it, a loading log M.
    n_before: causes
    """
    n_spins = before.n_spins
    n_samples = float(before.samples.sample_weights.sum())
    more_edges = len(after.pairs) - len(before.graph.pairs)
    cost = more_edges * 2 * (np.log(n_samples) + np.log(n_spins))
    cost += (_n_hidden(after) - n_before) * n_spins * np.log(n_samples)
    gain = 2 * (after.fitted.log_likelihood() - before.log_likelihood())
    return float((gain - cost) / n_spins)


def least_gain(n_spins: int) -> float:
    """That a cause must bring, for each spin."""
    return SETTINGS.least_gain + SETTINGS.more_if_few / n_spins**2


def _is_believed(gain: float, before: Network, after: Network) -> bool:
    """Whether a network with a cause is better than one without.

    Edges that were missed for lack of rows make a cause seem to gain something, too, but z-scores
    outside the network hardly shrink by it.
    """
    if gain < least_gain(before.fitted.n_spins):
        return False
    calm = float(np.log(_spread(before) / _spread(after)))
    return gain > SETTINGS.clear_gain or calm > SETTINGS.least_calm


def _spread(network: Network) -> float:
    """Root mean square of z-scores outside a network."""
    left = _outside(network.fitted, network.tester.scores)
    return float(np.sqrt(np.mean(left[left != 0] ** 2))) if left.any() else 1.0


def _n_hidden(network: Network) -> int:
    return 0 if network.hidden is None else network.hidden.n_hidden


def _leftover_of_strict(network: Network, level: float) -> float:
    """The same of those edges of a network that are beyond doubt: what a strict search would keep,
    but for edges that come back.
    """
    tests = network.selection.tests
    n_spins = int(network.tester.changes.sum())
    expected = tests.p_values / tests.weights * n_spins * (n_spins - 1) / 2
    beyond_doubt = tests.pairs[tests.inside & (expected <= level)]
    keys = np.sort(keys_of(beyond_doubt, network.fitted.n_spins))
    fitted, changed = network.fitted.refit(pairs_of(keys, network.fitted.n_spins))
    scores = network.tester.scores.copied()
    scores.update(fitted, changed, fitted.residuals_of(changed))
    return leftover(fitted, scores)


def leftover(fitted: FittedGraph, scores: ScoreCache) -> float:
    """Largest eigenvalue of z-scores outside a network, in units of noise's.

    That of noise is 2 sqrt(N) (1 + sqrt(N / M) / 2).
    """
    left = _outside(fitted, scores)
    np.clip(left, -SETTINGS.clipped, SETTINGS.clipped, out=left)
    n_samples = float(fitted.samples.sample_weights.sum())
    noise = 2 * np.sqrt(len(left)) * (1 + np.sqrt(len(left) / n_samples) / 2)
    return float(eigenvectors(left, 1)[0][0] / noise)


def _outside(fitted: FittedGraph, scores: ScoreCache) -> FloatArray:
    """(n, n): z-scores of pairs outside a network, 0 for others."""
    some = scores.probe()
    left = np.asarray(scores.leftover(fitted, some), dtype=np.float64)
    left[fitted.graph.matrix(fitted.couplings)[some][:, some].nonzero()] = 0.0
    np.fill_diagonal(left, 0.0)
    return left
