"""Designs of rows that belong together, by groups declared or found: docs/design/rows.md."""

from dataclasses import dataclass, replace

import numpy as np

from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.row_dependence import RowDependence
from isingkit.estimators.row_design import RowDesign
from isingkit.estimators.sizes import CELLS
from isingkit.exceptions import FewGroupsError
from isingkit.packing import PackedSpins
from isingkit.spins import RowWeights

_PROBED = 64  # columns whose pairs tell the design effect
_SCORED = 256  # the same where nothing is known of groups
_WIDE = 500  # columns
_LEAST_HELD = 0.02  # design effect less 1 that groups hold, at least
_MOST_FREEDOM = 1.0  # degrees of freedom of all pairs, for each group
_NOTHING = 1e-300
FEWEST_GROUPS = 8  # below, nobody could tell how much groups vary


def require_groups(groups: IntArray) -> None:
    """Refuse groups of which nobody could tell how much they vary."""
    n_groups = len(np.unique(groups))
    if n_groups < FEWEST_GROUPS:
        raise FewGroupsError(n_groups=n_groups, least=FEWEST_GROUPS)


def grouped(
    packed: PackedSpins, design: RowDesign, groups: IntArray, fitted: FittedGraph
) -> RowDesign:
    """The same rows, of which those of one group belong together.

    fitted: a network of these rows
    """
    codes = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    effects = grouped_effects(residuals(packed, fitted), design.weights, codes)
    effect = max(effects.mean, 1.0)
    return replace(design, groups=codes, design_effect=effect, prior_freedom=effects.prior_freedom)


def dependent(
    packed: PackedSpins, design: RowDesign, found: RowDependence, fitted: FittedGraph
) -> RowDesign:
    """The same rows, with what was found of them: groups, blocks of a series, or fewer samples."""
    if found.kind == "ordered":
        return _blocked(packed, design, found.block_length, fitted)
    if found.groups is None:
        return replace(design, design_effect=found.design_effect)
    designed = grouped(packed, design, found.groups, fitted)
    spins = np.asarray(packed[:, _probed(packed.n_spins)], dtype=np.float64)
    held = grouped_effects(spins, design.weights, found.groups).mean
    missed = max((found.design_effect - 1) / max(held - 1, _LEAST_HELD), 1.0)
    return _with_effect(designed, 1 + (designed.design_effect - 1) * missed)


def _blocked(packed: PackedSpins, design: RowDesign, length: int, fitted: FittedGraph) -> RowDesign:
    """Neighbouring rows in blocks.

    What blocks miss falls as one over their length: as much as blocks of twice the length hold
    more, those hold less than all.
    """
    rows = np.arange(packed.n_samples)
    designed = grouped(packed, design, rows // length, fitted)
    longer = grouped_effects(residuals(packed, fitted), design.weights, rows // (2 * length)).mean
    return _with_effect(designed, max(2 * longer - designed.design_effect, designed.design_effect))


def _with_effect(design: RowDesign, effect: float) -> RowDesign:
    """A design whose groups hold less than its design effect."""
    return replace(design, block_factor=effect / design.design_effect, design_effect=effect)


def _probed(n_spins: int, most: int = _PROBED) -> IntArray:
    """Columns whose pairs tell the design effect."""
    return np.arange(0, n_spins, -(-n_spins // most))


def residuals(packed: PackedSpins, fitted: FittedGraph, most: int = _PROBED) -> FloatArray:
    """(n_rows, n_some): spins less what neighbours and causes explain, 0 where missing.

    most: columns that are looked at
    """
    some = _probed(packed.n_spins, most)
    couplings = fitted.graph.matrix(fitted.couplings)[some]
    shifts = fitted.shifts(packed)[some]
    if shifts.shape[1] == 0:
        shifts = np.zeros((len(some), packed.n_samples))
    left = np.empty((packed.n_samples, len(some)))
    step = max(1, CELLS // packed.n_spins)
    for start in range(0, packed.n_samples, step):
        values = np.asarray(packed[start : start + step], dtype=np.float64)
        from_causes = shifts[:, start : start + step].T
        means = np.tanh((couplings @ values.T).T + fitted.fields[some] + from_causes)
        here = values[:, some]
        left[start : start + step] = np.where(here != 0, here - means, 0.0)
    return left


def is_wide(packed: PackedSpins) -> bool:
    """Whether columns are so many that what nearly all pairs show is no matter of edges."""
    return packed.n_spins >= _WIDE and packed.n_spins >= packed.n_samples


def inflation(packed: PackedSpins, weights: RowWeights | None, fitted: FittedGraph) -> float:
    """The design effect of rows that belong together nobody knows how: mean squared z-score of
    pairs outside a network.

    It is 1 where rows are independent and the network misses few edges. Where columns are many,
    they are nearly all pairs, and no edges make them larger, but what all columns share: lineages.
    """
    left = residuals(packed, fitted, _SCORED)
    some = _probed(packed.n_spins, _SCORED)
    ones = np.ones(len(left))
    totals = ones if weights is None else weights.totals
    squares = ones if weights is None else weights.squares
    scores = left.T @ (totals[:, None] * left)
    square = left**2
    variances = square.T @ (squares[:, None] * square)
    outside = np.triu(variances > _NOTHING, 1)
    first, second = fitted.graph.matrix(fitted.couplings)[some][:, some].nonzero()
    outside[first, second] = False
    if not outside.any():
        return 1.0
    return float(np.mean(scores[outside] ** 2 / variances[outside]))


@dataclass(frozen=True, slots=True)
class GroupedEffects:
    """Design effects of pairs of columns, where groups of rows are independent."""

    mean: float
    prior_freedom: float  # by how much they vary more than chance would make them


def grouped_effects(
    values: FloatArray, weights: RowWeights | None, groups: IntArray
) -> GroupedEffects:
    r"""Variances of sums of x_i x_j where groups are independent, over those of independent rows.

    With x_{ij} the product of two centred columns, less its mean, that is the sum over groups of
    (\sum_{m \in g} w_m x_{ij}^m)^2 over that of w_m^2 (x_{ij}^m)^2. Where all pairs have the same,
    they vary by 2 over their degrees of freedom; 2 over what they vary more is how many degrees of
    freedom the mean has as that of a single pair.

    values: (n_rows, n_columns), 0 where missing
    """
    ones = np.ones(len(values))
    totals = (ones if weights is None else weights.totals)[:, None]
    squares = (ones if weights is None else weights.squares)[:, None]
    present = (values != 0).astype(np.float64)
    weight_present = (totals * present).sum(axis=0)
    means = (totals * values).sum(axis=0) / np.maximum(weight_present, _NOTHING)
    values = present * (values - means)
    products = values.T @ (totals * values)
    means_of_products = products / np.maximum(present.T @ (totals * present), _NOTHING)
    second = np.zeros_like(products)
    fourth = np.zeros_like(products)
    parts = _rows_of_groups(groups)
    for rows in parts:
        summed = values[rows].T @ (totals[rows] * values[rows])
        expected = means_of_products * (present[rows].T @ (totals[rows] * present[rows]))
        square = (summed - expected) ** 2
        second += square
        fourth += square**2
    apart = (values**2).T @ (squares * values**2)
    apart -= 2 * means_of_products * (values.T @ (squares * values))
    apart += means_of_products**2 * (present.T @ (squares * present))
    pairs = np.triu_indices(values.shape[1], 1)
    usable = apart[pairs] > _NOTHING
    ratios = second[pairs][usable] / apart[pairs][usable]
    if len(ratios) == 0 or ratios.mean() <= 0:
        return GroupedEffects(1.0, 0.0)
    squared = second[pairs][usable] ** 2
    spreads = fourth[pairs][usable] / np.maximum(squared, _NOTHING)
    by_chance = float(np.mean(spreads)) - 1 / len(parts)
    more = float(np.var(ratios)) / float(ratios.mean()) ** 2 - by_chance
    most = _MOST_FREEDOM * len(parts)
    prior = 2 / more if more > 2 / most else most
    return GroupedEffects(float(ratios.mean()), prior)


def _rows_of_groups(groups: IntArray) -> list[IntArray]:
    """Rows of each group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order]))
    return np.split(order, starts + 1)
