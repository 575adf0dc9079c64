"""RowDesign: what rows count for, and which of them belong together: docs/design/rows.md."""

from dataclasses import dataclass, replace

import numpy as np

from isingkit.arrays import FloatArray, IntArray
from isingkit.packing import PackedSpins, repeated
from isingkit.spins import RowWeights


@dataclass(frozen=True, slots=True, eq=False)
class RowDesign:
    """How much each row counts, and which rows are not independent of each other."""

    weights: RowWeights | None = None  # None: each row counts 1
    groups: IntArray | None = None  # (n_rows,): codes from 0 on; None: rows are independent
    # by what factor the variance of pair sums exceeds that of independent rows, over all pairs
    design_effect: float = 1.0
    # by what factor variances between groups are too small: blocks of a series are not independent
    block_factor: float = 1.0
    # degrees of freedom of the design effect as that of each single pair: many where all have it
    prior_freedom: float = 0.0
    least_effect: float = 1.0  # what groups count for at least, in units of independent rows
    outcomes: FloatArray | None = None  # (n_spins, n_rows): spins, 0 where they were imputed
    observed: float = 1.0  # fraction of rows in which two spins were both observed
    covariates: FloatArray | None = None  # (n_covariates, n_rows): centred

    @property
    def is_counted(self) -> bool:
        """Whether rows are independent samples, or stand for several."""
        if self.groups is not None or self.outcomes is not None or self.design_effect != 1:
            return False
        if self.covariates is not None:
            return False
        return self.weights is None or self.weights.are_counts

    @property
    def known(self) -> RowWeights:
        """What rows count for, with their covariates."""
        n_rows = 0 if self.covariates is None else self.covariates.shape[1]
        ones = np.ones(n_rows)
        weights = RowWeights(ones, ones) if self.weights is None else self.weights
        covariates = None if self.covariates is None else self.covariates.T
        return replace(weights, covariates=covariates)

    @property
    def n_groups(self) -> int:
        return 0 if self.groups is None else int(self.groups.max()) + 1


INDEPENDENT = RowDesign()  # rows that count 1 each


def row_design(weights: RowWeights | None) -> RowDesign:
    """Rows that count for their weights, and are independent of each other."""
    if weights is None:
        return INDEPENDENT
    covariates = None
    if weights.covariates is not None:
        covariates = np.ascontiguousarray(weights.covariates.T)
    return RowDesign(None if weights.are_plain else weights, covariates=covariates)


def each_sample(
    packed: PackedSpins, weights: RowWeights | None
) -> tuple[PackedSpins, RowWeights | None]:
    """Rows as often as they were counted, those of no weight left out; all else as it is."""
    if weights is None or (weights.counts == 1).all():
        return packed, weights
    each = weights.of_each_sample()
    times = weights.counts.astype(np.int64)
    groups = None if weights.groups is None else np.repeat(weights.groups, times)
    covariates = None
    if weights.covariates is not None:
        covariates = np.repeat(weights.covariates, times, axis=0)
    return repeated(packed, weights), RowWeights(each, each**2, groups, covariates)
