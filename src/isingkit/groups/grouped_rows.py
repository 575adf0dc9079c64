"""GroupedRows: spins of rows that belong to groups, and what else is known of the rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.covariates import as_covariates
from isingkit.exceptions import GroupsError, GroupSizeError, MissingValuesError, SettingError
from isingkit.missing import COMPLETE_ROWS
from isingkit.packing import PackedSpins, apply_missing_policy, pack
from isingkit.spins import (
    Names,
    RowWeights,
    Spins,
    as_groups,
    as_spins,
    missing_policy,
    require_network,
    row_weights,
)

_FEWEST_ROWS = 10  # of a group
_FEWEST_UNITS = 8  # persons, sites; fewer cannot be relabelled in enough ways


@dataclass(frozen=True, slots=True, eq=False)
class GroupedRows:
    """Complete rows of spins, each in one of k groups."""

    packed: PackedSpins
    spins: FloatArray  # (n_rows, n_spins): -1 or +1
    labels: Names  # of the groups
    groups: IntArray  # (n_rows,): places in `labels`
    covariates: FloatArray  # (n_rows, n): centred; n is 0 where there are none
    covariate_names: Names
    units: IntArray | None  # (n_rows,): codes of rows that belong together
    weights: FloatArray  # (n_rows,): how much rows matter, of mean 1 in each group

    @property
    def n_groups(self) -> int:
        return len(self.labels)

    @property
    def sizes(self) -> IntArray:
        """(n_groups,): rows of each."""
        return np.bincount(self.groups, minlength=self.n_groups)

    @property
    def effective_sizes(self) -> FloatArray:
        """(n_groups,): rows of equal weight that would tell as much, (sum w)^2 / sum w^2."""
        squares = np.bincount(self.groups, self.weights**2, minlength=self.n_groups)
        return np.asarray(self.sizes**2 / squares)

    @property
    def are_weighted(self) -> bool:
        return bool((self.weights != 1).any())

    @property
    def indicators(self) -> FloatArray:
        """(n_rows, n_groups): 1 where a row is in a group, else 0."""
        is_in_group = self.groups[:, None] == np.arange(self.n_groups)
        return np.asarray(is_in_group, dtype=np.float64)

    @property
    def is_paired(self) -> bool:
        """Whether some rows that belong together are in different groups."""
        if self.units is None:
            return False
        cells = np.unique(np.column_stack([self.units, self.groups]), axis=0)
        return len(cells) > len(np.unique(self.units))

    @property
    def varying_within(self) -> PackedSpins:
        """The spins; what groups determine, each of which has one value of it, never changes."""
        by_group = [self.spins[self.groups == group] for group in range(self.n_groups)]
        varies = np.any([(part != part[0]).any(axis=0) for part in by_group], axis=0)
        words = np.where(varies[:, None], self.packed.words, np.uint64(0))
        return replace(self.packed, words=words)

    def members(self, group: int) -> IntArray:
        """Rows of a group."""
        return np.flatnonzero(self.groups == group)


def grouped_rows(
    X: Any,
    groups: Any,
    covariates: Any,
    row_groups: Any,
    sample_weight: Any,
    counts: Any,
    missing: str,
) -> GroupedRows:
    """Rows as `compare_groups` is given them, refused where they cannot be compared."""
    packed, kept = _packed(X, missing)
    codes, labels = _coded(groups, packed.n_samples, kept)
    given = row_weights(sample_weight, counts, packed.n_samples, rows=kept)
    n_samples = packed.n_samples if given is None else given.n_samples
    require_network(n_samples, packed.n_spins)
    if given is not None:
        some = _of_weight(given, codes, labels)
        kept = _among(kept, packed.n_samples, some)
        packed, codes, given = packed[some], codes[some], given[some]
    values: FloatArray = np.empty((packed.n_samples, 0))
    names: Names = ()
    if covariates is not None:
        counted = None if given is None else given.counts
        coded = as_covariates(covariates, packed.n_samples, kept, counted)
        values = coded.values
        names = coded.names
    units = None if row_groups is None else as_groups(row_groups, packed.n_samples, kept)
    if units is not None:
        units = np.unique(units, return_inverse=True)[1].astype(np.int64)
    spins = np.asarray(packed, dtype=np.float64)
    weights = np.ones(packed.n_samples)
    rows = GroupedRows(packed, spins, labels, codes, values, names, units, weights)
    if given is not None:
        rows = _each_sample(rows, given)
    _require_sizes(rows)
    return rows


def _of_weight(given: RowWeights, codes: IntArray, labels: Names) -> IntArray:
    """Rows of positive weight, which every group must have."""
    some = np.flatnonzero(given.counts)
    for group, label in enumerate(labels):
        if group not in codes[some]:
            raise GroupSizeError(problem=f"all rows of group '{label}' have a weight of 0")
    return some


def _among(kept: BoolArray | None, n_samples: int, some: IntArray) -> BoolArray:
    """Which rows of the table are some of the `n_samples` that were kept."""
    rows = np.arange(n_samples) if kept is None else np.flatnonzero(kept)
    is_there = np.zeros(n_samples if kept is None else len(kept), dtype=np.bool_)
    is_there[rows[some]] = True
    return is_there


def _each_sample(rows: GroupedRows, given: RowWeights) -> GroupedRows:
    """A row for each sample, as labels of samples are changed, of weights whose mean is 1 in each
    group.
    """
    each = np.repeat(np.arange(len(rows.spins)), given.counts.astype(np.int64))
    weights = given.of_each_sample()
    groups = rows.groups[each]
    means = np.bincount(groups, weights) / np.bincount(groups)
    return replace(
        rows,
        packed=rows.packed[each],
        spins=rows.spins[each],
        groups=groups,
        covariates=rows.covariates[each],
        units=None if rows.units is None else rows.units[each],
        weights=weights / means[groups],
    )


def _packed(X: Any, missing: str) -> tuple[PackedSpins, Any]:
    """Spins of complete rows, and which rows these are; None for all."""
    missing_policy(missing, COMPLETE_ROWS)
    try:
        if isinstance(X, PackedSpins | Spins):
            return apply_missing_policy(pack(X), missing)
        spins = as_spins(X, missing=missing)
    except MissingValuesError as error:
        raise error.offering(COMPLETE_ROWS) from None
    return pack(spins), spins.rows


def _coded(groups: Any, n_samples: int, kept: Any) -> tuple[IntArray, Names]:
    """Places of rows' labels among all labels, which are sorted."""
    first_codes = as_groups(groups, n_samples, kept)
    given = np.asarray(groups) if kept is None else np.asarray(groups)[kept]
    _, first = np.unique(first_codes, return_index=True)
    texts = [_text(given[place]) for place in first]
    if len(set(texts)) < len(texts):
        raise GroupsError(problem="two different labels read the same, such as 1 and '1'")
    order = _sorted_places(given[first].tolist())
    place_of = np.empty(len(order), dtype=np.int64)
    place_of[order] = np.arange(len(order))
    return place_of[first_codes], tuple(texts[k] for k in order)


def _text(label: Any) -> str:
    """A label as text, whole numbers without a point."""
    is_whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if is_whole else str(label)


def _sorted_places(labels: Sequence[Any]) -> list[int]:
    """Places of labels in ascending order; as they came, where they cannot be sorted."""
    try:
        return sorted(range(len(labels)), key=lambda k: labels[k])
    except TypeError:
        return list(range(len(labels)))


def _require_sizes(rows: GroupedRows) -> None:
    """Refuse one group only, groups of hardly any rows, and too few rows that belong together."""
    if rows.n_groups < 2:
        raise GroupSizeError(problem=f"all rows are in one group, '{rows.labels[0]}'")
    if rows.n_groups > rows.packed.n_samples // _FEWEST_ROWS:
        problem = f"there are {rows.n_groups} groups for {rows.packed.n_samples} rows"
        raise GroupSizeError(problem=problem)
    smallest = int(rows.sizes.argmin())
    if rows.sizes[smallest] < _FEWEST_ROWS:
        few = f"group '{rows.labels[smallest]}' has {rows.sizes[smallest]} rows"
        raise GroupSizeError(problem=f"{few}, of at least {_FEWEST_ROWS} that are needed")
    if rows.units is None:
        return
    if rows.is_paired and rows.n_groups > 2:
        expected = "labels of rows in one group each, where there are more than two groups"
        raise SettingError(setting="row_groups", value="labels across groups", expected=expected)
    for group, label in enumerate(rows.labels):
        n_units = len(np.unique(rows.units[rows.members(group)]))
        if n_units < _FEWEST_UNITS:
            few = f"the rows of group '{label}' are of {n_units} row_groups"
            raise GroupSizeError(problem=f"{few}, of at least {_FEWEST_UNITS} that are needed")
