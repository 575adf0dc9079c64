"""Searched: the network of rows, and what these have to do with each other.

A network is found, rows are looked at given it, and where they are alike it is found again.
"""

from dataclasses import dataclass, replace

from isingkit.estimators.bits import goes_by_bits
from isingkit.estimators.cause_look import EdgeRule, without_weak
from isingkit.estimators.cause_search import SETTINGS as CAUSES
from isingkit.estimators.diagnostics import LIMITS
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.grouped_rows import dependent, grouped, inflation, is_wide
from isingkit.estimators.hidden_causes import MOST_BENT
from isingkit.estimators.imputed_search import imputed_search
from isingkit.estimators.lineages import n_lineages
from isingkit.estimators.network_estimates import NetworkEstimates, estimates_of
from isingkit.estimators.network_search import Found, Problem, Strategy
from isingkit.estimators.row_dependence import (
    RowDependence,
    harmless,
    independent_rows,
    inflated,
    row_dependence,
)
from isingkit.estimators.row_design import RowDesign, each_sample, row_design
from isingkit.estimators.screened_rows import SearchSettings
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins
from isingkit.spins import RowWeights
from isingkit.worlds.graphs import Seed, generator

_MOST_SEARCHES = 4  # of rows that belong together
_MUCH_ALIKE = 4.0  # design effect, from which on a network of independent rows is of no use
_INFLATED = 1.5  # the same of rows that have something in common nobody knows how
_GROWS = 1.05  # of a design effect: a better network would show another one
_COUNTED = (
    "if counts say how much rows matter, pass them as sample_weight; if each row was truly seen so "
    'often, pass rows="independent"'
)
MOST_SAMPLES = 1 << 22  # that are written out one by one to look whether they are alike


@dataclass(frozen=True, slots=True, eq=False)
class SearchedRows:
    """Rows, what they count for, and what they have to do with each other."""

    packed: PackedSpins
    design: RowDesign
    dependence: RowDependence
    were_searched: bool = False  # whether the network is one of this design already
    n_hidden: int | None = None  # causes that explain what they share, where these are lineages


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """A network found, its couplings, and what it leaves of rows."""

    found: Found
    estimates: NetworkEstimates
    rows: SearchedRows


@dataclass(frozen=True, slots=True, eq=False)
class RowSearch:
    """A table whose network is looked for, and how."""

    packed: PackedSpins
    weights: RowWeights | None
    settings: SearchSettings
    dependence: str = "independent"  # of rows, as `AutoIsing` is asked for: or "auto", "ordered"
    imputes: bool = False  # missing cells
    random_state: Seed = 0  # of what is imputed

    @property
    def is_grouped(self) -> bool:
        """Whether rows were said to belong together."""
        return self.weights is not None and self.weights.groups is not None

    def searches(self) -> Strategy[Searched]:
        """The network, found again while what it leaves of rows makes them fewer."""
        searched = yield from self._first()
        return (yield from self._again(searched))

    def _first(self) -> Strategy[Searched]:
        """The network as if rows were independent, and what that leaves of rows.

        Where rows are much alike, such a network has an edge for nearly everything, and the search
        for it takes long. One that does looks at rows given the edges that are beyond doubt; where
        they are, it is the network of as many rows as it seems there are, unless its causes explain
        what rows have in common.
        """
        looked: list[SearchedRows] = []

        def is_futile(fitted: FittedGraph) -> bool:
            n_changing = int(fitted.columns.changes.sum())
            sure = without_weak(fitted, EdgeRule(self.settings.level, "fwer", n_changing))
            looked.append(self._looked_at(sure))
            return looked[-1].dependence.design_effect >= _MUCH_ALIKE

        settings = self.settings
        if not self.is_grouped and self.dependence == "auto" and settings.hidden in (0, "auto"):
            settings = replace(settings, is_futile=is_futile)
        imputes = self.imputes and not self.is_grouped
        plain = row_design(self.weights)
        first = yield from self._search(self.packed, plain, settings, imputes)
        if first is None:
            of_alike = yield from self._given_alike(looked[-1])
            if of_alike is not None:
                return of_alike
            first = yield from self.find(self.packed, plain, self.settings, self.imputes)
        found, estimates = first
        rows = self._looked_at(estimates.fitted)
        if rows.design.design_effect > 1 or found.network.n_hidden == CAUSES.most:
            of_lineages = yield from self._given_lineages()
            if of_lineages is not None:
                return of_lineages
        return Searched(found, estimates, rows)

    def as_declared(self) -> Strategy[tuple[Found, NetworkEstimates]]:
        """The network of rows that belong together as they were said to, and its couplings."""
        packed, weights, settings = self.packed, self.weights, self.settings
        design = row_design(weights)
        found = yield from self.find(packed, design, settings, self.imputes)
        if weights is None or weights.groups is None:
            return found
        designed = grouped(packed, design, weights.groups, found[1].fitted)
        return (yield from self.find(packed, designed, settings, self.imputes))

    def _given_alike(self, looked: SearchedRows) -> Strategy[Searched | None]:
        """The network of rows that are much alike; None where its causes explain why they are."""
        of_lineages = yield from self._given_lineages()
        if of_lineages is not None:
            return of_lineages
        rows = _as_fewer(looked)
        found, estimates = yield from self._found_as(rows)
        given_causes = self._looked_at(estimates.fitted)
        if given_causes.dependence.design_effect >= _MUCH_ALIKE:
            return Searched(found, estimates, rows)
        if given_causes.design.design_effect > 1 and given_causes.design.groups is None:
            rows = _as_fewer(given_causes)
            found, estimates = yield from self._found_as(rows)
            return Searched(found, estimates, rows)
        return None

    def _again(self, searched: Searched) -> Strategy[Searched]:
        """The network found again, while what it leaves of rows makes them fewer."""
        found, estimates, rows = searched.found, searched.estimates, searched.rows
        for _ in range(_MOST_SEARCHES):
            if rows.design.design_effect == 1 and rows.design.groups is None:
                break
            if not rows.were_searched:
                found, estimates = yield from self._found_as(rows)
            # a network found as if rows were independent has edges that explain too much
            redesigned = _redesigned(rows, self.weights, estimates.fitted)
            if redesigned.design.design_effect < _GROWS * rows.design.design_effect:
                break
            rows = redesigned
        return Searched(found, estimates, rows)

    def _given_lineages(self) -> Strategy[Searched | None]:
        """The network given as many causes as explain what nearly all pairs share, if they do."""
        packed = self.packed
        is_plain = packed.present is None and self.weights is None
        may_be_found = self.settings.hidden == "auto" and is_plain
        if not may_be_found or not is_wide(packed) or goes_by_bits(packed):
            return None
        n_hidden = n_lineages(packed, MOST_BENT + 1)
        if n_hidden is None:
            return None
        settings = self._settings_given(n_hidden)
        search = self.find(packed, row_design(None), settings, self.imputes)
        found, estimates = yield from search
        rows = self._looked_at(estimates.fitted)
        if rows.design.design_effect >= _MUCH_ALIKE:
            return None
        return Searched(found, estimates, replace(rows, n_hidden=n_hidden))

    def _settings_given(self, n_hidden: int | None) -> SearchSettings:
        """Of a search for a network given so many causes; None: as many as were asked for."""
        if n_hidden is None:
            return self.settings
        return replace(self.settings, hidden=n_hidden, is_futile=needs_no_search)

    def _found_as(self, rows: SearchedRows) -> Strategy[tuple[Found, NetworkEstimates]]:
        """The network of rows that count for what was seen of them, and its couplings."""
        settings = self._settings_given(rows.n_hidden)
        return (yield from self.find(rows.packed, rows.design, settings, self.imputes))

    def find(
        self, packed: PackedSpins, design: RowDesign, settings: SearchSettings, imputes: bool
    ) -> Strategy[tuple[Found, NetworkEstimates]]:
        """The network, and its couplings."""
        found = yield from self._search(packed, design, settings, imputes)
        assert found is not None
        return found

    def _search(
        self, packed: PackedSpins, design: RowDesign, settings: SearchSettings, imputes: bool
    ) -> Strategy[tuple[Found, NetworkEstimates] | None]:
        """The same, or None where that is futile."""
        if packed.present is not None and imputes:
            rng = generator(self.random_state)
            return (yield from imputed_search(packed, design, settings, rng))
        found = yield Problem(packed, design, settings)
        return None if found is None else (found, estimates_of(found.fitted, design.n_groups))

    def _looked_at(self, fitted: FittedGraph) -> SearchedRows:
        """Rows, and what they have to do with each other: as declared, or as it looks."""
        packed, weights = self.packed, self.weights
        design = row_design(weights)
        if weights is not None and weights.groups is not None:
            designed = grouped(packed, design, weights.groups, fitted)
            declared = independent_rows("rows belong together, as their groups say")
            return SearchedRows(packed, designed, declared)
        if weights is not None and weights.counts.sum() > MOST_SAMPLES:
            unseen = independent_rows("samples are many: whether they are alike was not looked at")
            return SearchedRows(packed, design, unseen)
        return self._as_it_looks(fitted)

    def _as_it_looks(self, fitted: FittedGraph) -> SearchedRows:
        """Rows of which nothing was declared."""
        packed, weights = self.packed, self.weights
        samples, of_each = each_sample(packed, weights)
        model = _model_of(fitted, samples)
        shifts = fitted.shifts(samples) if fitted.samples.causes.n_causes else None
        found = row_dependence(samples, model, shifts, is_series=self.dependence == "ordered")
        if found.kind != "none" and weights is not None and weights.counts.max() > 1:
            found = replace(found, advice=_COUNTED)  # copies are no series, and have no labels
        if found.kind == "none" and is_wide(samples):
            effect = inflation(samples, of_each, fitted)
            if effect > _INFLATED:
                found = inflated(effect, samples.n_samples)
        if self.dependence == "independent" or found.kind == "none":
            return SearchedRows(packed, row_design(weights), found)
        designed = dependent(samples, row_design(of_each), found, fitted)
        if self.dependence == "auto" and designed.design_effect < LIMITS.design_effect:
            as_one = harmless(found, designed.design_effect)
            return SearchedRows(packed, row_design(weights), as_one)
        return SearchedRows(samples, designed, found)


def _model_of(fitted: FittedGraph, samples: PackedSpins) -> IsingModel:
    couplings = fitted.graph.matrix(fitted.graph.symmetric(fitted.couplings))
    return IsingModel(couplings, fitted.fields, samples.names)


def _as_fewer(rows: SearchedRows) -> SearchedRows:
    """The same rows, of which all count for less: none belong together."""
    dependence = replace(rows.dependence, groups=None)
    effect = rows.dependence.design_effect
    plain = replace(rows.design, groups=None, design_effect=effect, block_factor=1.0)
    return SearchedRows(rows.packed, plain, dependence, were_searched=True)


def _redesigned(
    rows: SearchedRows, weights: RowWeights | None, fitted: FittedGraph
) -> SearchedRows:
    """The same rows, by what a better network leaves unexplained."""
    design = replace(rows.design, groups=None, design_effect=1.0, block_factor=1.0)
    if weights is not None and weights.groups is not None:
        designed = grouped(rows.packed, design, weights.groups, fitted)
    else:
        designed = dependent(rows.packed, design, rows.dependence, fitted)
    return replace(rows, design=designed, were_searched=False)


def needs_no_search(fitted: FittedGraph) -> bool:
    """A network without causes, where these are asked for: its sure edges are enough to start."""
    return True
