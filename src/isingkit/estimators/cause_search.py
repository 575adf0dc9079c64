"""How many hidden causes there are, and the network given these.

A cause is believed where a network with it explains rows better than one without, edges and
loadings counted. Why so, and how well: docs/design/causes.md.
"""

from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np

from isingkit.arrays import FloatArray, Pairs
from isingkit.estimators.cause_look import (
    EdgeRule,
    Leftover,
    Look,
    gain_over,
    leftover,
    leftover_of,
    look,
    more_explained,
    outside,
    without_weak,
)
from isingkit.estimators.edge_tests import EdgeTester
from isingkit.estimators.fitted_graph import FittedGraph, Samples
from isingkit.estimators.graph import keys_of, pairs_of
from isingkit.estimators.hidden_causes import HiddenCauses, hidden_of
from isingkit.estimators.screened_rows import ScreenedRows
from isingkit.estimators.selection import Selection, Stopped
from isingkit.exceptions import SettingError


@dataclass(frozen=True, slots=True)
class CauseSettings:
    """When a cause is looked for, and when it is believed. Why: docs/design/causes.md."""

    most: int = 5  # causes
    few_spins: int = 10  # in which a cause cannot be told from edges
    leftover: float = 1.1  # eigenvalue of clipped z-scores, in units of noise's: look closer
    least_gain: float = 1.5  # by `gain_over`
    if_few: float = 2800.0  # over the number of spins squared, plus 1: the least gain, where more
    at_a_look: float = 0.5  # so much less is enough for a search
    least_more: float = 4.0  # that networks explain with causes, by `_more_explained`, ...
    if_much_is_left: float = 8.0  # ... and where the eigenvalue left, in units of noise's, is above
    much_left: float = 1.3
    if_strong: float = -6.0  # the same of causes that gain this much, ...
    strong_gain: float = 22.0
    wide_gain: float = 12.0  # ... or this, and explain so much of the columns' variance
    wide_share: float = 0.4
    plain_gain: float = 10.0  # that needs no network without it for comparison
    least_spins: float = 2.0  # that a cause acts on: fewer are a hub, or a pair
    dense_gain: float = 35.0  # of causes that explain why every pair seemed coupled, ...
    dense_leftover: float = 0.95  # ... and what they leave at most, in units of noise


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

    @property
    def n_hidden(self) -> int:
        return 0 if self.hidden is None else self.hidden.n_hidden


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Where a search for a network starts."""

    rows: ScreenedRows
    pairs: Pairs
    hidden: HiddenCauses | None = None
    is_bounded: bool = False  # whether it stops where too many pairs stand out

    @property
    def samples(self) -> Samples:
        """Beside causes."""
        if self.hidden is None:
            return self.rows.samples
        return self.hidden.beside(self.rows.samples, bent=True)


Value = TypeVar("Value")
# what asks for networks, one after the other, and what it comes to
Asking = Generator[Start, Network | Stopped, Value]


@dataclass(frozen=True, slots=True)
class CauseEvidence:
    """What speaks for hidden causes."""

    leftover: float  # largest eigenvalue of z-scores outside a network, in units of noise
    was_looked_for: bool = True  # else only what is left outside the network was
    gain: float = 0.0  # of the first that were believed, by `CauseSettings.least_gain`
    n_found: int = 0  # causes that are believed


def network_from(start: Start) -> Asking[Network]:
    """Of a search that nothing stops."""
    found = yield start
    assert isinstance(found, Network)
    return found


def search(
    rows: ScreenedRows, start: Pairs, hidden: int | str, rule: EdgeRule, are_some: bool = False
) -> Asking[tuple[Network, CauseEvidence] | None]:
    """The network, given as many causes as asked for, or as are believed ("auto"); None where a
    search for it is futile.

    With none asked for, what speaks for them is looked at all the same. Of very many rows, causes
    are estimated from some (`are_some`: these).
    """
    plain = yield Start(rows, start, is_bounded=True)
    if hidden not in (0, "auto"):
        left = _left_by(plain, rule)
        return (yield from _with_causes_asked_for(rows, left, int(hidden), rule))
    if isinstance(plain, Stopped):
        if plain.is_futile:
            return None
        found, evidence = yield from _with_causes(rows, _left_by(plain, rule), None, rule)
        if found is not None and hidden == "auto":
            return found, evidence
        plain = yield Start(rows, start)
        if isinstance(plain, Stopped):
            return None
        if found is not None:
            return plain, evidence
    left = _left_by(plain, rule)
    largest = float(left.eigenvalues(1)[0])
    if rule.n_changing < SETTINGS.few_spins or largest < SETTINGS.leftover:
        return plain, CauseEvidence(largest)
    if rows.of_some is not None and not are_some:
        of_some = yield from search(rows.of_some(), start, hidden, rule, are_some=True)
        if of_some is None:
            return None
        return (yield from _as_in_some(rows, plain, *of_some))
    best, evidence = yield from _with_causes(rows, left, plain, rule)
    return (plain if hidden == 0 or best is None else best), evidence


def _as_in_some(
    rows: ScreenedRows, plain: Network, some: Network, evidence: CauseEvidence
) -> Asking[tuple[Network, CauseEvidence]]:
    """The network given the causes found in some of the rows."""
    if some.hidden is None:
        return plain, evidence
    causes = hidden_of(plain.fitted.samples, some.hidden.loadings)
    return (yield from network_from(Start(rows, some.pairs, causes))), evidence


def search_given(
    rows: ScreenedRows, fitted: FittedGraph, loadings: FloatArray, rule: EdgeRule
) -> Asking[tuple[Network, CauseEvidence]]:
    """The network given causes that are plain to see, of about these loadings.

    fitted: the pairs that stick out beside them
    """
    looked = look(fitted, fitted, loadings, rule)
    network = yield from network_from(Start(rows, looked.pairs, looked.causes))
    gain = gain_over(fitted, network.fitted, len(loadings))
    left = leftover(network.fitted, network.tester.scores)
    return network, CauseEvidence(left, gain=gain, n_found=len(loadings))


def explain_all(network: Network, evidence: CauseEvidence) -> bool:
    """Whether it is causes that seemed to couple nearly every pair.

    Where every pair is coupled, a search finds causes at times, too, but these gain less or leave
    something.
    """
    if network.hidden is None or evidence.gain < SETTINGS.dense_gain:
        return False
    return leftover(network.fitted, network.tester.scores) < SETTINGS.dense_leftover


def _left_by(found: Network | Stopped, rule: EdgeRule) -> Leftover:
    if isinstance(found, Stopped):
        return _left_by_stopped(found, rule)
    return _left_by_network(found, rule)


def _left_by_network(network: Network, rule: EdgeRule) -> Leftover:
    """What those edges leave that are beyond doubt: what a strict search would keep, but for edges
    that come back.
    """
    tests = network.selection.tests
    n_spins = rule.n_changing
    expected = tests.p_values / tests.weights * n_spins * (n_spins - 1) / 2
    beyond_doubt = tests.pairs[tests.inside & (expected <= rule.level)]
    keys = np.sort(keys_of(beyond_doubt, network.fitted.n_spins))
    pairs = pairs_of(keys, network.fitted.n_spins)
    return leftover_of(network.fitted, pairs, network.tester.scores)


def _left_by_stopped(stopped: Stopped, rule: EdgeRule) -> Leftover:
    """The same where the search for a network was not gone on with."""
    sure = without_weak(stopped.fitted, rule.strict)
    if not stopped.is_futile:
        return leftover_of(stopped.fitted, sure.graph.pairs, stopped.tester.scores)
    # scores of pairs are not known yet
    tester = stopped.tester.rescored(sure, np.arange(sure.n_spins))
    return Leftover(sure, sure, tester.scores)


def _with_causes_asked_for(
    rows: ScreenedRows, left: Leftover, n_hidden: int, rule: EdgeRule
) -> Asking[tuple[Network, CauseEvidence]]:
    most = max(left.n_probed - 1, 0)
    if n_hidden > most:
        expected = f"'auto' or a whole number from 0 to {most}, fewer than columns that vary"
        raise SettingError(setting="hidden", value=n_hidden, expected=expected)
    looked = _look(left, n_hidden, rule)
    network = yield from network_from(Start(rows, looked.pairs, looked.causes))
    left_then = leftover(network.fitted, network.tester.scores)
    return network, CauseEvidence(left_then, gain=np.nan, n_found=n_hidden)


def _with_causes(
    rows: ScreenedRows, left: Leftover, plain: Network | None, rule: EdgeRule
) -> Asking[tuple[Network | None, CauseEvidence]]:
    """One cause after the other, while each is worth its cost.

    plain: the network without any; None where edges alone would have to be very many
    """
    look_at = cache(lambda n_hidden: _look(left, n_hidden, rule))
    n_plain = int((left.eigenvalues(SETTINGS.most) > SETTINGS.leftover).sum())
    best, before = plain, left.fitted
    n_hidden, n_before = 1, 0
    gain = first_gain = gain_over(before, look_at(1).fitted, 1)
    while _is_worth_a_search(look_at(n_hidden), gain):
        looked = look_at(n_hidden)
        n_more = n_hidden - n_before
        if n_hidden < n_plain and _is_plain(look_at(n_hidden + 1), looked):
            n_hidden += 1
            gain = gain_over(before, look_at(n_hidden).fitted, n_more + 1)
            continue
        found = yield from network_from(Start(rows, looked.fitted.graph.pairs, looked.causes))
        gain = gain_over(before, found.fitted, n_more)
        first_gain = gain if best is plain else first_gain
        if not _is_believed(gain, best, found):
            if n_hidden == n_plain or n_more > 1 or not _is_much_left(found):
                break
            n_hidden += 1  # two may be worth it where one is not
            gain = gain_over(before, look_at(n_hidden).fitted, n_more + 1)
            continue
        best, before, n_before = found, found.fitted, n_hidden
        is_last = n_hidden == SETTINGS.most
        if is_last or leftover(found.fitted, found.tester.scores) < SETTINGS.leftover:
            break
        n_hidden += 1
        gain = gain_over(before, look_at(n_hidden).fitted, 1)
    return best, CauseEvidence(float(left.eigenvalues(1)[0]), gain=first_gain, n_found=n_before)


def _look(left: Leftover, n_hidden: int, rule: EdgeRule) -> Look:
    return look(left.fitted, left.strict, left.loadings(n_hidden), rule)


def _is_plain(following: Look, looked: Look) -> bool:
    """Whether a look with one cause more gains so much that none with fewer need be searched."""
    return gain_over(looked.fitted, following.fitted, 1) > SETTINGS.plain_gain


def _is_worth_a_search(looked: Look, gain: float) -> bool:
    """Whether a network with causes may turn out to be better, as a look at it gains."""
    if looked.causes.n_spins < SETTINGS.least_spins:
        return False
    return gain > least_gain(looked.fitted.n_spins) - SETTINGS.at_a_look


def least_gain(n_spins: int) -> float:
    """That a cause must bring, for each spin."""
    return max(SETTINGS.least_gain, 1 + SETTINGS.if_few / n_spins**2)


def _is_believed(gain: float, before: Network | None, after: Network) -> bool:
    """Whether a network with a cause is better than one without.

    Where a cluster moves as one a cause may stand for its edges, and saves their cost. Edges that
    were missed for lack of rows make it seem to gain something, too. But it then explains no more
    than those edges did, or leaves more to be explained of the pairs outside; or hardly more, and
    leaves clusters. A strong cause explains no more than as many edges as it asks for either, but
    gains what no cluster does.
    """
    if gain < least_gain(after.fitted.n_spins):
        return False
    if before is None:
        return gain > SETTINGS.plain_gain
    more = _more_explained(before, after)
    if more > SETTINGS.if_strong and _is_strong(gain, before, after):
        return True
    return more > (SETTINGS.if_much_is_left if _is_much_left(after) else SETTINGS.least_more)


def _is_strong(gain: float, before: Network, after: Network) -> bool:
    """Whether a cause gains more than clusters do: less is enough where it moves all columns."""
    left = np.mean(after.fitted.columns.variances / before.fitted.columns.variances)
    is_wide = 1 - float(left) > SETTINGS.wide_share
    return gain > (SETTINGS.wide_gain if is_wide else SETTINGS.strong_gain)


def _is_much_left(network: Network) -> bool:
    return leftover(network.fitted, network.tester.scores) > SETTINGS.much_left


def _more_explained(before: Network, after: Network) -> float:
    """Twice the log likelihood, for each spin, less 2 for each coupling of a regression (Akaike),
    and less what pairs outside the network still ask for: how much more of that there is.

    The square of a z-score is about twice the log likelihood that a coupling would add. Each spin
    has half of N - 1 pairs; the spread of z-scores is about 1, and the log of a ratio of squares
    their difference.
    """
    n_spins = after.fitted.n_spins
    fewer = 2 * (len(before.pairs) - len(after.pairs)) / n_spins
    calmer = float(np.log(spread_outside(before) / spread_outside(after)))
    inside = more_explained(before.fitted, after.fitted)
    return inside + 2 * fewer + (n_spins - 1) * calmer


def spread_outside(network: Network) -> float:
    """Root mean square of z-scores outside a network."""
    left = outside(network.fitted, network.tester.scores)
    return float(np.sqrt(np.mean(left[left != 0] ** 2))) if left.any() else 1.0
