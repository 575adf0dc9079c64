"""RowDesign: what rows count for, and which of them belong together."""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import FloatArray, IntArray
from isingkit.packing import PackedSpins

_PROBED = 64  # columns whose pairs tell the design effect


@dataclass(frozen=True, slots=True, eq=False)
class RowDesign:
    """How much each row counts, and which rows are not independent of each other."""

    totals: FloatArray | None = None  # (n_rows,): what a row adds to sums; None: each adds 1
    squares: FloatArray | None = None  # (n_rows,): and to variances; None: the same (counts)
    groups: IntArray | None = None  # (n_rows,): codes from 0 on; None: rows are independent
    # by what factor the variance of pair sums exceeds that of independent rows, over all pairs
    design_effect: float = 1.0
    # by what factor variances between groups are too small: blocks of a series are not independent
    block_factor: float = 1.0

    @property
    def n_groups(self) -> int:
        return 0 if self.groups is None else int(self.groups.max()) + 1


def grouped(packed: PackedSpins, design: RowDesign, groups: IntArray) -> RowDesign:
    """The same rows, of which those of one group belong together."""
    codes = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    effect = max(grouped_effect(packed, design.totals, codes), 1.0)
    return RowDesign(design.totals, design.squares, codes, effect)


def grouped_effect(packed: PackedSpins, totals: FloatArray | None, groups: IntArray) -> float:
    r"""Variance of pair sums where groups are independent, over that of independent rows.

    With x_{ij} the product of two centred spins, less its mean, the sum over pairs and groups of
    (\sum_{m \in g} w_m x_{ij}^m)^2 over that of \sum_m w_m^2 (x_{ij}^m)^2. Up to 64 columns.
    """
    some = np.arange(0, packed.n_spins, -(-packed.n_spins // _PROBED))
    values = np.asarray(packed[:, some], dtype=np.float64)
    weights = np.ones(len(values)) if totals is None else totals
    present = values != 0
    mass = np.maximum(weights @ present, 1e-300)
    values = np.where(present, values - weights @ values / mass, 0.0)
    both = (present * weights[:, None]).T @ present
    means = values.T @ (values * weights[:, None]) / np.maximum(both, 1e-300)
    off_diagonal = ~np.eye(len(some), dtype=bool)
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    together, apart = 0.0, 0.0
    for rows in np.split(order, starts[1:]):
        weighted = values[rows] * weights[rows, None]
        seen = (present[rows] * weights[rows, None]).T @ present[rows]
        together += float((((values[rows].T @ weighted) - means * seen) ** 2)[off_diagonal].sum())
    squares = values**2
    weighted_squares = squares * weights[:, None] ** 2
    cross = values.T @ (values * weights[:, None] ** 2)
    of_squares = (present * weights[:, None] ** 2).T @ present
    single = squares.T @ weighted_squares - 2 * means * cross + means**2 * of_squares
    apart = float(single[off_diagonal].sum())
    return together / apart if apart > 0 else 1.0
