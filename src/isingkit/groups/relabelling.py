"""PairTests: how large the difference of each pair is, and how large such differences get where
labels of groups mean nothing: docs/design/groups.md.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs, SpinArray
from isingkit.estimators.sizes import CELLS
from isingkit.groups.deviations import Deviations
from isingkit.groups.grouped_rows import GroupedRows

_BINS_PER_UNIT = 1024  # of statistics, for the p-value of a pair by itself
_MOST = 64.0  # larger statistics count as this
_N_BINS = int(_MOST * _BINS_PER_UNIT) + 1
_TIE = 1e-9  # rounding must not decide which of equal statistics is larger
_NOTHING = 1e-300
_ROUNDING = 1e-12  # of a variance
_WORTH_A_FIT = 1.0  # smaller statistics to first order are no difference beyond it either


@dataclass(frozen=True, slots=True, eq=False)
class PairTests:
    """Every pair's difference between groups, and how often labels that mean nothing reach it."""

    pairs: Pairs
    # (n_pairs,): z of the second group less the first, or of more groups the root of chi-square
    statistics: FloatArray
    is_testable: BoolArray  # (n_pairs,)
    p_values: FloatArray  # (n_pairs,): of a pair by itself, from all pairs' relabellings
    family_p_values: FloatArray  # (n_pairs,): of a pair as the largest of all
    p_value: float  # of the largest

    def stepped_down(self, later: "PairTests", known: BoolArray) -> "PairTests":
        """These tests of pairs that are known to differ, and the later ones, given those, of
        others; the p-value of the largest stays.

        known: (n_spins, n_spins)
        """
        keeps = known[tuple(self.pairs.T)]
        surest = self.family_p_values[keeps].max(initial=0.0)
        of_later = np.maximum(later.family_p_values, surest)
        family_p_values = np.where(keeps, self.family_p_values, of_later)
        return replace(
            self,
            statistics=np.where(keeps, self.statistics, later.statistics),
            p_values=np.where(keeps, self.p_values, later.p_values),
            family_p_values=family_p_values,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Units:
    """What is relabelled: rows, or all rows that belong together."""

    codes: IntArray  # (n_rows,): which unit a row is of
    groups: IntArray  # (n_units,)

    @property
    def sizes(self) -> IntArray:
        return np.bincount(self.groups)

    def sums(self, values: FloatArray) -> FloatArray:
        """(n_units, n): sums over the rows of units."""
        if np.array_equal(self.codes, np.arange(len(self.groups))):
            return values
        totals = np.zeros((len(self.groups), values.shape[1]))
        np.add.at(totals, self.codes, values)
        return totals

    def labels(self, n_times: int, rng: Generator, in_equal_parts: bool) -> NDArray[Any]:
        """(n_times, n_units): the groups of units, or groups of equal size, in random order."""
        n_groups = len(self.sizes)
        groups = np.arange(len(self.groups)) % n_groups if in_equal_parts else self.groups
        labels = groups.astype(np.min_scalar_type(n_groups - 1))
        every_time = np.broadcast_to(labels, (n_times, len(labels)))
        return rng.permuted(every_time, axis=1)

    def signs(self, n_times: int, rng: Generator) -> SpinArray:
        """(n_times, n_units): -1 or +1 at random."""
        shape = (n_times, len(self.groups))
        bits = rng.integers(0, 2, shape, dtype=np.int8)
        return np.asarray(2 * bits - 1)


def _units_of(rows: GroupedRows) -> _Units:
    if rows.units is None:
        return _Units(np.arange(len(rows.groups)), rows.groups)
    first = np.unique(rows.units, return_index=True)[1]
    return _Units(rows.units, rows.groups[first])


def tests_of_pairs(
    parts: Iterable[Deviations],
    ratios: Callable[[Pairs], FloatArray] | None,
    rows: GroupedRows,
    known: BoolArray,
    n_relabellings: int,
    rng: Generator,
) -> PairTests:
    """Statistics of all pairs, and those of units with other labels, the same for all pairs.

    ratios: roots of likelihood ratios, (n_pairs,), where fields are free; None where labels mean
    nothing at all     known: (n_spins, n_spins), pairs that differ and are not tested
    """
    units = _units_of(rows)
    fields_are_free = ratios is not None
    is_paired = rows.is_paired
    kind = _PairedUnits if is_paired else _SeparateUnits
    if is_paired:
        drawn = units.signs(n_relabellings, rng)
    else:
        drawn = units.labels(n_relabellings, rng, in_equal_parts=fields_are_free)
    largest = np.zeros(n_relabellings)
    counts = np.zeros(_N_BINS, dtype=np.int64)
    found = []
    for part in parts:
        differences = kind(part, rows, units, fields_are_free)
        is_tested = part.is_testable & ~known[tuple(part.pairs.T)]
        observed = np.where(is_tested, differences.observed(), 0.0)
        if ratios is not None:
            is_worth = np.abs(observed) >= _WORTH_A_FIT
            observed[is_worth] = ratios(part.pairs[is_worth])
        found.append((part.pairs, observed, part.is_testable))
        step = max(1, CELLS // len(part.pairs))
        for start in range(0, n_relabellings, step):
            statistics = differences.relabelled(drawn[start : start + step])
            statistics = statistics[:, is_tested]
            here = largest[start : start + step]
            np.maximum(here, statistics.max(axis=1, initial=0.0), out=here)
            counts += _counted(statistics)
    pairs, statistics, is_testable = (np.concatenate(one) for one in zip(*found, strict=True))
    return _tests(pairs, statistics, is_testable, largest, counts)


def _bins(statistics: FloatArray) -> IntArray:
    """Of statistics, rounded down."""
    limited = np.minimum(np.abs(statistics), _MOST)
    return np.asarray((limited + _TIE) * _BINS_PER_UNIT, dtype=np.int64)


def _counted(statistics: FloatArray) -> IntArray:
    """How many statistics are in each bin."""
    bins = _bins(statistics).ravel()
    return np.bincount(bins, minlength=_N_BINS)


def _tests(
    pairs: Pairs,
    observed: FloatArray,
    is_testable: BoolArray,
    largest: FloatArray,
    counts: IntArray,
) -> PairTests:
    """P-values count the labels as they are among the relabellings."""
    at_least = np.cumsum(counts[::-1])[::-1]
    n_larger = at_least[_bins(observed)]
    alone = (1 + n_larger) / (1 + counts.sum())
    below = np.searchsorted(np.sort(largest), np.abs(observed) - _TIE)
    n_drawn = len(largest)
    family = (1 + n_drawn - below) / (1 + n_drawn)
    alone[~is_testable] = family[~is_testable] = 1.0
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return PairTests(
        pairs[order],
        observed[order],
        is_testable[order],
        alone[order],
        family[order],
        float(family.min()),
    )


def _statistics(means: Sequence[FloatArray], variances: Sequence[FloatArray]) -> FloatArray:
    """Roots of chi-square of groups' means, each weighted by what it tells: of two groups, the size
    of Welch's t.
    """
    weights = [1 / np.maximum(one, _NOTHING) for one in variances]
    weighted = [weight * mean for weight, mean in zip(weights, means, strict=True)]
    centre = sum(weighted) / sum(weights)
    chi_square = np.zeros_like(means[0])
    for weight, mean in zip(weights, means, strict=True):
        chi_square += weight * (mean - centre) ** 2
    return np.sqrt(chi_square)


def _factor(part: Deviations, rows: GroupedRows, fields_are_free: bool) -> FloatArray:
    """(n_pairs,): by how much variances between units are too small, as regressions follow these
    units. Leverages of rows have it for rows.
    """
    if rows.units is None or not fields_are_free:
        return np.ones(len(part.pairs))
    n_units = len(np.unique(rows.units))
    return np.asarray(n_units / np.maximum(n_units - part.n_fitted, 1.0))


class _SeparateUnits:
    """Units of one group each: labels change places."""

    def __init__(
        self, part: Deviations, rows: GroupedRows, units: _Units, fields_are_free: bool
    ) -> None:
        self.part = part
        self.rows = rows
        self.fields_are_free = fields_are_free
        self.factor = _factor(part, rows, fields_are_free)
        self.sizes = units.sizes
        self.members = [np.flatnonzero(units.groups == k) for k in range(rows.n_groups)]
        # so that means over units are those over rows
        scales = (units.sizes / rows.sizes)[units.groups][:, None]
        self.values = units.sums(part.influences) * scales
        self.errors = units.sums(part.errors) * scales
        self._centre()
        self.squares = self.errors**2
        typical = self.squares.mean(axis=0)
        self.floors = [typical / size for size in self.sizes]

    def _centre(self) -> None:
        """Take off means of errors: each group's where fields are free."""
        if not self.fields_are_free:
            self.errors = self.values = self.errors - self.errors.mean(axis=0)
            return
        for members in self.members:
            self.errors[members] -= self.errors[members].mean(axis=0)

    def _expected(self, group: int) -> FloatArray:
        """(n_pairs,): the variance of a mean that the model expects, times what rows of a unit have
        in common.
        """
        if not self.fields_are_free:
            return self.floors[group]
        errors = self.part.errors[self.rows.members(group)]
        of_rows = (errors**2).mean(axis=0) / len(errors)
        of_units = self.squares[self.members[group]].mean(axis=0) / self.sizes[group]
        in_common = of_units / np.maximum(of_rows, _NOTHING)
        return np.asarray(self.part.expected[group] * in_common)

    def observed(self) -> FloatArray:
        """(n_pairs,): of the labels as they are; of two groups with a sign."""
        means = []
        variances = []
        for group, members in enumerate(self.members):
            size = len(members)
            means.append(self.values[members].mean(axis=0))
            seen = self.errors[members].var(axis=0) / size
            variances.append(self.factor * np.maximum(seen, self._expected(group)))
        statistics = _statistics(means, variances)
        if len(means) > 2:
            return statistics
        return np.asarray(statistics * np.sign(means[1] - means[0]))

    def relabelled(self, labels: NDArray[Any]) -> FloatArray:
        """(n_times, n_pairs): of other labels, (n_times, n_units)."""
        if self.fields_are_free:
            return self._in_units_of_spread(labels)
        means = []
        variances = []
        left = self.errors.sum(axis=0)  # for the first group
        left_of_squares = self.squares.sum(axis=0)
        for group in range(len(self.sizes) - 1, -1, -1):
            sums = left
            squares = left_of_squares
            if group > 0:
                is_member = (labels == group).astype(np.float64)
                sums = is_member @ self.errors
                squares = is_member @ self.squares
                left = left - sums
                left_of_squares = left_of_squares - squares
            size = self.sizes[group]
            mean = sums / size
            seen = (squares / size - mean**2) / size
            means.append(mean)
            variances.append(np.maximum(seen, self.floors[group]))
        return _statistics(means, variances)

    def _in_units_of_spread(self, labels: NDArray[Any]) -> FloatArray:
        """The same over the spread that relabelling gives, as likelihood ratios have one that is
        known. Groups are of equal size here: that ratios go by the normal distribution in small
        groups, too, sums over their few rows do not.
        """
        typical = np.maximum(self.squares.mean(axis=0), _NOTHING)
        scaled = self.errors / np.sqrt(typical)
        chi_square = np.zeros((len(labels), scaled.shape[1]))
        left = scaled.sum(axis=0)  # for the first group
        for group in range(len(self.sizes) - 1, -1, -1):
            sums = left
            if group > 0:
                sums = (labels == group).astype(np.float64) @ scaled
                left = left - sums
            chi_square += sums**2 / np.count_nonzero(labels[0] == group)
        return np.sqrt(chi_square)


class _PairedUnits:
    """Units with rows in both of two groups: the labels of a unit change places, and with them the
    sign of its difference.
    """

    def __init__(
        self, part: Deviations, rows: GroupedRows, units: _Units, fields_are_free: bool
    ) -> None:
        signs = np.where(rows.groups == 1, 1.0, -1.0) / rows.sizes[rows.groups]
        self.total = signs @ part.influences
        signed = part.errors * signs[:, None]
        of_rows = (signed**2).sum(axis=0)
        errors = units.sums(signed)
        self.errors = errors
        self.variance = np.maximum((errors**2).sum(axis=0), _NOTHING)
        in_common = self.variance / np.maximum(of_rows, _NOTHING)
        expected = part.expected.sum(axis=0) * in_common
        # where all units answer alike in both groups there is nothing but rounding
        self.varies = self.variance > _ROUNDING * of_rows
        self.factor = _factor(part, rows, fields_are_free)
        self.floor = expected if fields_are_free else self.variance

    def observed(self) -> FloatArray:
        """(n_pairs,): of the labels as they are."""
        variance = np.maximum(self.variance, self.floor) * self.factor
        return np.where(self.varies, self.total / np.sqrt(variance), 0.0)

    def relabelled(self, signs: NDArray[Any]) -> FloatArray:
        """(n_times, n_pairs): of other signs, (n_times, n_units)."""
        scaled = np.where(self.varies, self.errors / np.sqrt(self.variance), 0.0)
        return np.abs(signs.astype(np.float64) @ scaled)
