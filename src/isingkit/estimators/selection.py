"""Selection: which pairs are edges."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np
from tqdm import tqdm

from isingkit._kernels.threads import one_blas_thread
from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs, distinct
from isingkit.estimators import sizes
from isingkit.estimators.edge_tests import (
    SETTINGS,
    EdgeTester,
    EdgeTests,
    critical_z,
    test_edges,
    weaker_direction,
)
from isingkit.estimators.edge_weights import by_sign, edge_weights
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.graph import keys_of, pairs_of, places_of
from isingkit.exceptions import NotConvergedWarning, warn

_MOST_ROUNDS = 200
# from so many rounds on, a pair comes in but once; and from twice so many on, none does
_SETTLING, _SETTLING_IF_MANY = 40, 20
_MANY_TO_SETTLE = 500  # spins
_NEIGHBOURS_PER_MOVE = 16  # a spin may have one more edge moved at a time for each so many
DIGITS = 6  # of z-scores that tell one from another: rounding does not reach them
_UNKNOWN = (np.inf, np.inf)
# a search of many spins that tests so many pairs of each takes long: is there a better way?
_MANY_SPINS, _MANY_TESTS = 200, 5


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The graph found, the tests of its pairs and of others, and how many rounds it took."""

    fitted: FittedGraph
    tests: EdgeTests
    n_rounds: int


@dataclass(frozen=True, slots=True, eq=False)
class Stopped:
    """A search that was given up, and where it stood.

    It takes long and is not needed ("futile"), or so many pairs outside the graph stand out that
    edges alone will not explain them.
    """

    fitted: FittedGraph
    tester: EdgeTester
    is_futile: bool


def select_edges(
    fitted: FittedGraph,
    tester: EdgeTester,
    also: Pairs,
    level: float,
    control: str,
    most_suspects: float = np.inf,
    is_futile: Callable[[FittedGraph], bool] | None = None,
) -> Selection | Stopped:
    """Let in what passes and out what fails, the clearest of each neighbourhood first, until
    nothing moves.

    At first edges only go: to score all pairs outside costs most, and is of little use before.
    Pairs `also` are tested at the end, whether they were ever in question or not. It stops where
    more than `most_suspects` stand out. A search that takes long asks once whether it `is_futile`.
    """
    state = _Search(fitted, tester, level, control)
    while True:
        if state.stage != _Stage.LAST_LOOK:
            state.rounds += 1
            if state.stage == _Stage.BOTH_WAYS:
                state.find_suspects()
            if len(state.suspects) > most_suspects:
                return Stopped(state.fitted, tester, is_futile=False)
            if is_futile is not None and state.takes_long:
                if is_futile(state.fitted):
                    return Stopped(state.fitted, tester, is_futile=True)
                is_futile = None
        asked = state.asked(also)
        new = asked.new
        found = tester.z_scores(state.fitted, asked.pairs[new], asked.critical[new])
        tests = state.answered(asked, found)
        if state.stage != _Stage.LAST_LOOK:
            moved = state.moved(tests)
            if moved is not None:
                state.take(*state.fitted.refit(moved))
        elif state.is_over(tests):
            if state.is_closed:
                _warn_not_converged(int((tests.passes != tests.inside).sum()))
            return Selection(state.fitted, tests, state.rounds)


def keep_significant(
    fitted: FittedGraph, tester: EdgeTester, level: float, control: str
) -> Selection:
    """Without a search: of the pairs of a graph, those whose couplings are significant in it.

    Where nearly every pair is coupled, there is nothing to search for.
    """
    n_spins = int(tester.changes.sum())
    while True:
        pairs = fitted.graph.pairs
        z_scores = weaker_direction(fitted, pairs)
        weights = np.ones(len(pairs))
        tests = test_edges(pairs, z_scores, weights, len(pairs), n_spins, level, control)
        if tests.passes.all():
            return Selection(fitted, tests, n_rounds=1)
        fitted = fitted.refit(pairs[tests.passes])[0]


class _Stage(Enum):
    """What a search does with pairs that pass, or fail."""

    REMOVING = auto()
    BOTH_WAYS = auto()
    LAST_LOOK = auto()  # nothing moves any more: is anything else left that would?


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Pairs of the graph, then others, and what is asked of them."""

    pairs: Pairs
    keys: list[int]
    weights: FloatArray  # (n_pairs, 2): for negative and for positive z-scores
    critical: FloatArray  # (n_pairs, 2): the same
    new: IntArray  # places of those whose z-scores are not known, or not well enough


@dataclass(slots=True, eq=False)
class _Search:
    """Where the search stands: a graph, what is known of pairs, and what has moved before."""

    fitted: FittedGraph
    tester: EdgeTester
    level: float
    control: str
    rounds: int = 0
    n_tested: int = 0  # pairs, in all rounds
    stage: _Stage = _Stage.REMOVING
    suspects: IntArray = field(default_factory=lambda: np.empty(0, np.int64))  # keys, sorted
    # by key: a pair's z-score, and the critical one when it was tested against rivals
    known: dict[int, tuple[float, float]] = field(default_factory=dict)
    n_entries: dict[int, int] = field(default_factory=dict)  # by key: how often a pair came in
    # by key: a pair's z-score and its weight, in the graph that it left
    when_left: dict[int, tuple[float, float]] = field(default_factory=dict)
    stale: BoolArray = field(init=False)  # (n_spins,): regressions that scores do not know yet

    def __post_init__(self) -> None:
        self.stale = np.ones(self.fitted.n_spins, dtype=bool)

    @property
    def n_changing(self) -> int:
        """Spins that are not constant."""
        return int(self.tester.changes.sum())

    @property
    def takes_long(self) -> bool:
        """Whether many pairs of many spins were tested already, or are about to be."""
        n_spins = self.fitted.n_spins
        n_tests = self.n_tested + len(self.fitted.graph.pairs)
        return n_spins >= _MANY_SPINS and n_tests > _MANY_TESTS * n_spins

    @property
    def is_closed(self) -> bool:
        """Whether so many rounds have passed that pairs only leave: every search ends."""
        return self.rounds > 2 * self.settling

    @property
    def settling(self) -> int:
        """Rounds after which a pair comes in but once: fewer where each round takes long."""
        return _SETTLING_IF_MANY if self.fitted.n_spins >= _MANY_TO_SETTLE else _SETTLING

    @property
    def circling(self) -> IntArray:
        """Keys of pairs that came in more than once, sorted."""
        keys = [key for key, times in self.n_entries.items() if times > 1]
        return np.array(sorted(keys), dtype=np.int64)

    def find_suspects(self) -> None:
        """Score pairs outside the graph anew, where regressions have changed."""
        n_spins = self.fitted.n_spins
        scores = self.tester.scores
        chosen = np.flatnonzero(self.stale)
        is_quiet = not (self.tester.progress and len(chosen) > SETTINGS.slow)
        bar = tqdm(total=len(chosen), desc="scoring", unit=" spins", disable=is_quiet, delay=1)
        with bar, one_blas_thread():
            for start in range(0, len(chosen), sizes.PORTION):
                some = chosen[start : start + sizes.PORTION]
                scores.update(self.fitted, some, self.fitted.residuals_of(some))
                bar.update(len(some))
            found = scores.suspects(self.fitted, chosen)
        touched = self.stale[pairs_of(self.suspects, n_spins)].any(axis=1)
        changes = self.tester.changes[found].all(axis=1)
        possible = (found[:, 0] != found[:, 1]) & changes
        new = keys_of(np.sort(found[possible], axis=1), n_spins)
        old = self.suspects[~touched]
        self.suspects = _without(distinct(old, new), self.fitted.graph.keys)
        self.stale[:] = False

    def asked(self, also: Pairs) -> _Asked:
        """Of the graph's pairs and of suspects; at the end of pairs `also`, too.

        Known z-scores are taken as they are unless less is needed now than when tested.
        """
        outside = self.suspects if self.stage != _Stage.LAST_LOOK else self._at_last(also)
        graph = self.fitted.graph
        pairs = np.concatenate([graph.pairs, pairs_of(outside, graph.n_spins)])
        keys = keys_of(pairs, graph.n_spins).tolist()
        couplings = graph.mean_of_directions(self.fitted.couplings)
        weights = edge_weights(pairs, graph, couplings, self.tester.changes)
        critical = critical_z(self.n_changing, len(pairs), self.level, self.control, weights)
        known = [self.known.get(key, _UNKNOWN) for key in keys]
        before = np.array(known).reshape(-1, 2)
        now = by_sign(critical, before[:, 0])
        z_before, critical_before = before.T
        new = np.flatnonzero(_needs_test(z_before, critical_before, now))
        self.n_tested += len(new)
        return _Asked(pairs, keys, weights, critical, new)

    def _at_last(self, also: Pairs) -> IntArray:
        """Keys of suspects and of pairs `also`; those that circle are taken as when they left."""
        graph = self.fitted.graph
        wanted = _without(distinct(keys_of(also, graph.n_spins)), graph.keys)
        outside = distinct(wanted, self.suspects)
        for key in self.circling[places_of(self.circling, outside)[0]].tolist():
            # outside it would be an edge, inside it is none
            self.known[key] = (self.when_left[key][0], 0.0)
        return outside

    def answered(self, asked: _Asked, found: FloatArray) -> EdgeTests:
        """Tests of all pairs asked of, by z-scores found for those that are new."""
        for k, z_score in zip(asked.new.tolist(), found.tolist(), strict=True):
            limit = asked.critical[k, int(z_score > 0)]
            self.known[asked.keys[k]] = (z_score, float(limit))
        z_scores = np.array([self.known[key][0] for key in asked.keys])
        weights = by_sign(asked.weights, z_scores)
        if self.stage == _Stage.LAST_LOOK:
            self._weigh_as_when_left(weights, asked.keys)
        n_inside = len(self.fitted.graph.pairs)
        fixed = (n_inside, self.n_changing, self.level, self.control)
        return test_edges(asked.pairs, z_scores, weights, *fixed)

    def _weigh_as_when_left(self, weights: FloatArray, keys: list[int]) -> None:
        """Pairs that circle have, in place, the weights they had inside, as z-scores are."""
        n_inside = len(self.fitted.graph.pairs)
        circling = np.isin(keys[n_inside:], self.circling)
        for place in (n_inside + np.flatnonzero(circling)).tolist():
            weights[place] = self.when_left[keys[place]][1]

    def moved(self, tests: EdgeTests) -> Pairs | None:
        """The pairs of the next graph; where none moves, it is the next stage that has come."""
        comes, goes = self.moves(tests)
        is_moving = bool(comes.any() or goes.any())
        if is_moving and self.rounds < _MOST_ROUNDS:
            return self.after(tests, comes, goes)
        is_removing = self.stage == _Stage.REMOVING
        self.stage = _Stage.BOTH_WAYS if is_removing else _Stage.LAST_LOOK
        return None

    def moves(self, tests: EdgeTests) -> tuple[BoolArray, BoolArray]:
        """Pairs that come in, the strongest of both spins, and that go, the weakest of either."""
        keys = keys_of(tests.pairs, self.fitted.n_spins)
        # at a hub one move more or less makes little difference
        room = 1 + self.fitted.graph.degrees // _NEIGHBOURS_PER_MOVE
        may_enter = ~np.isin(keys, self.circling)
        if self.rounds > self.settling:
            may_enter &= ~np.isin(keys, np.array(list(self.n_entries), dtype=np.int64))
        may_enter &= not self.is_closed
        enter = tests.passes & ~tests.inside & may_enter
        leave = ~tests.passes & tests.inside
        size = np.asarray(np.round(np.abs(tests.z_scores), DIGITS), dtype=np.float64)
        strongest = _among_first(tests.pairs, enter, -size, room)
        weakest = _among_first(tests.pairs, leave, size, room)
        return strongest[0] & strongest[1], weakest[0] | weakest[1]

    def after(self, tests: EdgeTests, comes: BoolArray, goes: BoolArray) -> Pairs:
        """The graph's pairs once these have moved, of which it is noted how they did."""
        n_spins = self.fitted.n_spins
        keys = keys_of(tests.pairs, n_spins)
        left = np.column_stack([tests.z_scores[goes], tests.weights[goes]]).tolist()
        self.when_left.update(zip(keys[goes].tolist(), map(tuple, left), strict=True))
        for key in keys[comes].tolist():
            self.n_entries[key] = self.n_entries.get(key, 0) + 1
        kept = np.sort(keys[(tests.inside & ~goes) | comes])
        return pairs_of(kept, n_spins)

    def take(self, fitted: FittedGraph, changed: IntArray) -> None:
        """Go on with another graph; forget what was known where it no longer holds."""
        n_spins = fitted.n_spins
        self.fitted = fitted
        self.stale[changed] = True
        touched = np.zeros(n_spins, dtype=bool)
        touched[changed] = True
        outdated = [k for k in self.known if touched[k // n_spins] or touched[k % n_spins]]
        for key in outdated:
            del self.known[key]

    def is_over(self, tests: EdgeTests) -> bool:
        """Whether no pair passes at the last look that was not in question; else it is now."""
        n_spins = self.fitted.n_spins
        outside = keys_of(tests.pairs[~tests.inside], n_spins)
        passing = keys_of(tests.pairs[tests.passes & ~tests.inside], n_spins)
        late = _without(distinct(passing), self.circling)
        back = self.circling[places_of(self.circling, distinct(outside))[0]]
        suspects = distinct(self.suspects, late, back)
        nothing_new = len(late) == 0 or len(suspects) == len(self.suspects)
        if nothing_new or self.rounds >= _MOST_ROUNDS:
            return True
        self.suspects = suspects
        self.stage = _Stage.BOTH_WAYS
        return False


def _without(keys: IntArray, others: IntArray) -> IntArray:
    """Sorted keys that are not among others, which are sorted, too."""
    return keys[~places_of(keys, others)[0]]


def _needs_test(
    z_scores: FloatArray, critical_then: FloatArray, critical_now: FloatArray
) -> BoolArray:
    """Whether a pair is unknown, or failed by itself before and would pass now.

    Those that did not pass were not tested against rivals.
    """
    size = np.abs(z_scores)
    return np.asarray((critical_then >= size) & (size > critical_now))


def _among_first(pairs: Pairs, among: BoolArray, order_by: FloatArray, room: IntArray) -> BoolArray:
    """(2, n_pairs): whether a pair is one of the first of its first spin's, and of its second's.

    room: (n_spins,), how many of a spin's pairs may be; of equal ones, the earlier pair is
    """
    chosen = np.flatnonzero(among)
    spins = pairs[chosen].T.ravel()  # first spins, then second ones
    order = np.lexsort((np.tile(chosen, 2), np.tile(order_by[chosen], 2), spins))
    _, starts, counts = np.unique(spins[order], return_index=True, return_counts=True)
    ranks = np.empty(len(spins), dtype=np.int64)
    ranks[order] = np.arange(len(spins)) - np.repeat(starts, counts)
    first = np.zeros((2, len(pairs)), dtype=np.bool_)
    first[:, chosen] = (ranks < room[spins]).reshape(2, -1)
    return first


def _warn_not_converged(n_undecided: int) -> None:
    if n_undecided == 0:
        return
    advice = (
        f"{n_undecided} pairs are undecided: each would be an edge in place of others that are "
        "nearly the same; they are in rejected_. Trust strong edges only, and make one of columns "
        "that are alike (merge_alike=0.95)"
    )
    warn(
        NotConvergedWarning(what="selecting edges", residual=n_undecided, allowed=0, advice=advice)
    )
