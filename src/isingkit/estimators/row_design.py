"""RowDesign: what rows count for, and which of them belong together."""

from dataclasses import dataclass, replace

import numpy as np

from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.row_dependence import RowDependence
from isingkit.exceptions import FewGroupsError
from isingkit.packing import PackedSpins
from isingkit.spins import RowWeights

_PROBED = 64  # columns whose pairs tell the design effect
_FEWEST_GROUPS = 8  # below, nobody could tell how much groups vary
_NOTHING = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class RowDesign:
    """How much each row counts, and which rows are not independent of each other."""

    weights: RowWeights | None = None  # None: each row counts 1
    groups: IntArray | None = None  # (n_rows,): codes from 0 on; None: rows are independent
    # by what factor the variance of pair sums exceeds that of independent rows, over all pairs
    design_effect: float = 1.0
    # by what factor variances between groups are too small: blocks of a series are not independent
    block_factor: float = 1.0
    least_effect: float = 1.0  # what groups count for at least, in units of independent rows
    outcomes: FloatArray | None = None  # (n_spins, n_rows): spins, 0 where they were imputed
    observed: float = 1.0  # fraction of rows in which two spins were both observed

    @property
    def is_counted(self) -> bool:
        """Whether rows are independent samples, or stand for several."""
        if self.groups is not None or self.outcomes is not None or self.design_effect != 1:
            return False
        return self.weights is None or self.weights.are_counts

    @property
    def n_groups(self) -> int:
        return 0 if self.groups is None else int(self.groups.max()) + 1


INDEPENDENT = RowDesign()  # rows that count 1 each


def row_design(packed: PackedSpins, weights: RowWeights | None) -> RowDesign:
    """What was said of rows: weights, and groups."""
    if weights is None:
        return INDEPENDENT
    is_plain = bool((weights.totals == 1).all() and (weights.squares == 1).all())
    plain = None if is_plain else weights
    if weights.groups is None:
        return RowDesign(plain)
    design = grouped(packed, RowDesign(plain), weights.groups)
    if design.n_groups < _FEWEST_GROUPS:
        raise FewGroupsError(n_groups=design.n_groups, least=_FEWEST_GROUPS)
    return design


def each_sample(
    packed: PackedSpins, weights: RowWeights | None
) -> tuple[PackedSpins, RowWeights | None]:
    """Rows as often as they were counted, those of no weight left out; all else as it is."""
    if weights is None or (weights.counts == 1).all():
        return packed, weights
    counts = weights.counts.astype(np.int64)
    rows: IntArray = np.repeat(np.arange(packed.n_samples), counts)
    each = weights.of_each_sample()
    groups = None if weights.groups is None else weights.groups[rows]
    return packed[rows], RowWeights(each, each**2, groups)


def grouped(packed: PackedSpins, design: RowDesign, groups: IntArray) -> RowDesign:
    """The same rows, of which those of one group belong together."""
    codes = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    effect = max(grouped_effect(packed, design.weights, codes), 1.0)
    return RowDesign(design.weights, codes, effect)


def dependent(packed: PackedSpins, design: RowDesign, found: RowDependence) -> RowDesign:
    """The same rows, with what was found of them: groups, blocks of a series, or fewer samples."""
    groups = found.groups
    if found.kind == "ordered" and found.block_length > 1:
        groups = np.arange(packed.n_samples) // found.block_length
    if groups is None:
        return replace(design, design_effect=found.design_effect)
    told = grouped(packed, design, groups)
    missed = max(found.design_effect / told.design_effect, 1.0)
    return replace(told, block_factor=missed, design_effect=told.design_effect * missed)


def grouped_effect(packed: PackedSpins, weights: RowWeights | None, groups: IntArray) -> float:
    r"""Variance of pair sums where groups are independent, over that of independent rows.

    With x_{ij} the product of two centred spins, less its mean, the sum over pairs and groups of
    (\sum_{m \in g} w_m x_{ij}^m)^2 over that of \sum_m w_m^2 (x_{ij}^m)^2. Of up to 64 columns.
    """
    some = np.arange(0, packed.n_spins, -(-packed.n_spins // _PROBED))
    values = np.asarray(packed[:, some], dtype=np.float64)
    ones = np.ones(len(values))
    totals = (ones if weights is None else weights.totals)[:, None]
    squares = (ones if weights is None else weights.squares)[:, None]
    present = (values != 0).astype(np.float64)
    means = (totals * values).sum(axis=0) / np.maximum((totals * present).sum(axis=0), _NOTHING)
    values = present * (values - means)
    products = values.T @ (totals * values)
    means_of_products = products / np.maximum(present.T @ (totals * present), _NOTHING)
    together = np.zeros_like(products)
    for rows in _rows_of_groups(groups):
        summed = values[rows].T @ (totals[rows] * values[rows])
        expected = means_of_products * (present[rows].T @ (totals[rows] * present[rows]))
        together += (summed - expected) ** 2
    apart = (values**2).T @ (squares * values**2)
    apart -= 2 * means_of_products * (values.T @ (squares * values))
    apart += means_of_products**2 * (present.T @ (squares * present))
    pairs = np.triu_indices(len(some), 1)
    return float(together[pairs].sum() / max(float(apart[pairs].sum()), _NOTHING))


def _rows_of_groups(groups: IntArray) -> list[IntArray]:
    """Rows of each group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order]))
    return np.split(order, starts + 1)
