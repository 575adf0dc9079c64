"""Found: the network of a table, and what it was found with."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from isingkit._kernels.threads import one_blas_thread
from isingkit.arrays import Pairs
from isingkit.estimators.bits import goes_by_bits
from isingkit.estimators.cause_look import EdgeRule, leftover, without_weak
from isingkit.estimators.cause_search import (
    Asking,
    CauseEvidence,
    Network,
    Start,
    explain_all,
    search,
    search_given,
    spread_outside,
)
from isingkit.estimators.edge_tests import EdgeTester, screening_z
from isingkit.estimators.elimination import Elimination, eliminate
from isingkit.estimators.fitted_graph import FittedGraph, fit_graph
from isingkit.estimators.hidden_causes import shared_causes
from isingkit.estimators.local_fdr import likelier_than_chance
from isingkit.estimators.missed_edges import beyond_missed
from isingkit.estimators.moments import SecondMoments
from isingkit.estimators.questions import Questions
from isingkit.estimators.row_design import RowDesign
from isingkit.estimators.screen import Screen
from isingkit.estimators.screened_rows import (
    ScreenedRows,
    SearchSettings,
    screened_bits,
    screened_matrices,
)
from isingkit.estimators.selection import Selection, Stopped, keep_significant, select_edges
from isingkit.estimators.sparsity import Sparsity, sparsity_of
from isingkit.packing import PackedSpins

# pairs outside a network that stand out, beyond which causes are looked for first; noise makes some
# 3 for each spin
_CROWD, _CROWD_PER_SPIN = 2000, 10
# networks that are searched for, one after the other, and what comes of it: None is futile
Searches = Generator[Start, Network | Stopped, tuple[Network, CauseEvidence, Sparsity] | None]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The network found, and what each step on the way to it left."""

    settings: SearchSettings
    moments: SecondMoments
    screen: Screen
    candidates: Pairs
    elimination: Elimination
    network: Network
    causes: CauseEvidence
    sparsity: Sparsity

    @property
    def tester(self) -> EdgeTester:
        return self.network.tester

    @property
    def selection(self) -> Selection:
        return self.network.selection

    @property
    def fitted(self) -> FittedGraph:
        return self.selection.fitted

    @property
    def n_changing(self) -> int:
        """Spins that are not constant."""
        return int(self.moments.changes.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Rows whose network is asked for."""

    packed: PackedSpins
    design: RowDesign  # what rows count for
    settings: SearchSettings


Value = TypeVar("Value")
# what asks for networks, one after the other, and what it comes to; None is a futile search
Strategy = Generator[Problem, Found | None, Value]


def find_network(problem: Problem) -> Found | None:
    """The network of rows: screen, eliminate, refit and test, with causes that act on many spins
    where there are any; then less what missed neighbours explain, and, with "fdr", chance.

    None where `settings.is_futile` says so.
    """
    settings = problem.settings
    # what was imputed explains but is not explained, which bits cannot tell
    is_large = goes_by_bits(problem.packed) and problem.design.outcomes is None
    screened = screened_bits if is_large else screened_matrices
    rows = screened(problem.packed, problem.design, settings)
    with one_blas_thread():  # once for all steps, which use threads themselves
        elimination = eliminate(rows.moments, rows.candidates, settings.n_jobs)
        sparsity = sparsity_of(rows.moments, rows.samples, settings.n_jobs)
        searches = Questions(_searches(rows, elimination.survivors, sparsity, settings))
        for start in searches:
            fitted, tester = _start(start, settings)
            found = select_edges(fitted, tester, **_limits(start, settings))
            if isinstance(found, Stopped):
                searches.answer = found
            else:
                searches.answer = Network(tester, found, start.hidden)
        if searches.result is None:
            return None
        network, evidence, sparsity = searches.result
        # where a cause is seen and ignored, or nothing is sparse, it is not edges that are missed
        lacks_causes = network.hidden is None and evidence.n_found > 0
        tester, selection = network.tester, network.selection
        if settings.control == "fwer" or not (lacks_causes or sparsity.is_dense):
            level, control = settings.level, settings.control
            tester, selection = beyond_missed(tester, selection, level, control)
            if control == "fdr":
                tester, selection = likelier_than_chance(tester, selection, level)
        network = replace(network, tester=tester, selection=selection)
    steps = (rows.moments, rows.screen, rows.candidates, elimination)
    return Found(settings, *steps, network, evidence, sparsity)


def _searches(
    rows: ScreenedRows, start: Pairs, sparsity: Sparsity, settings: SearchSettings
) -> Searches:
    """For the network with the causes that are asked for or believed; whether it is sparse."""
    if not sparsity.is_dense:
        found = yield from _sparse(rows, start, sparsity, settings)
        return None if found is None else (*found, sparsity)
    if rows.looks_for_causes and settings.hidden == "auto" and sparsity.may_be_causes:
        found = yield from _sparse(rows, start, sparsity, settings)
        if found is None:
            return None
        if explain_all(*found):
            return *found, Sparsity(spread_outside(found[0]))
    return *_without_search(rows, start, settings), sparsity


def _sparse(
    rows: ScreenedRows, start: Pairs, sparsity: Sparsity, settings: SearchSettings
) -> Asking[tuple[Network, CauseEvidence] | None]:
    """As if few pairs were coupled."""
    rule = _rule(rows, settings)
    plain = sparsity.causes
    if rows.looks_for_causes and settings.hidden == "auto" and plain is not None:
        fields, n_jobs = settings.fit_fields, settings.n_jobs
        fitted = fit_graph(rows.samples, plain.pairs, fit_fields=fields, n_jobs=n_jobs)
        return (yield from search_given(rows, fitted, plain.loadings, rule))
    if rows.looks_for_causes:
        return (yield from search(rows, start, settings.hidden, rule))
    network = yield Start(rows, start)
    if isinstance(network, Stopped):
        return None
    left = leftover(network.fitted, network.tester.scores)
    return network, CauseEvidence(left, was_looked_for=False)


def _without_search(
    rows: ScreenedRows, pairs: Pairs, settings: SearchSettings
) -> tuple[Network, CauseEvidence]:
    """Significant couplings where nearly all pairs have one: no edges to tell from others."""
    samples, changes = rows.samples, rows.moments.changes
    fitted = fit_graph(samples, pairs, fit_fields=settings.fit_fields, n_jobs=settings.n_jobs)
    tester = EdgeTester(rows.scores(np.inf, samples), changes, settings.progress, clear_z=0.0)
    selection = keep_significant(fitted, tester, settings.level, settings.control)
    return Network(tester, selection), CauseEvidence(0.0)


def _rule(rows: ScreenedRows, settings: SearchSettings) -> EdgeRule:
    return EdgeRule(settings.level, settings.control, int(rows.moments.changes.sum()))


def _start(start: Start, settings: SearchSettings) -> tuple[FittedGraph, EdgeTester]:
    """Regressions on the pairs that a search starts with, and what tests pairs given its causes."""
    rows = start.rows
    rule = _rule(rows, settings)
    n_jobs = settings.n_jobs
    fitted = fit_graph(start.samples, start.pairs, fit_fields=settings.fit_fields, n_jobs=n_jobs)
    if rows.of_some is not None:  # tests of so many rows take long: what goes need not be tested
        fitted = without_weak(fitted, rule)
    shared = None if start.hidden is None else shared_causes(fitted, start.hidden)
    least = screening_z(rule.n_changing, len(start.pairs), rule.level, rule.control)
    fixed = (rows.scores(least, start.samples), rows.moments.changes, settings.progress, shared)
    return fitted, EdgeTester(*fixed, is_strict=rule.control == "fwer")


def _limits(start: Start, settings: SearchSettings) -> dict[str, Any]:
    """Of a search: the pairs to look at last, levels, and when it stops."""
    rows = start.rows
    most = max(_CROWD, _CROWD_PER_SPIN * rows.moments.n_spins) if start.is_bounded else np.inf
    return {
        "also": rows.candidates,
        "level": settings.level,
        "control": settings.control,
        "most_suspects": most,
        "is_futile": settings.is_futile if start.hidden is None else None,
    }
