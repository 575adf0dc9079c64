"""DataTable: rows of data, in the order of a model's spins."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isingkit.arrays import BoolArray, SpinArray
from isingkit.fit_check import matched
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins, pack
from isingkit.spins import RowWeights, Spins, as_spins, row_weights


@dataclass(frozen=True, slots=True, eq=False)
class DataRows:
    """Complete rows, and what each counts for."""

    states: SpinArray  # (n_rows, n_spins)
    weights: RowWeights


@dataclass(frozen=True, slots=True, eq=False)
class DataTable:
    """Rows of data, in the model's order of spins."""

    states: SpinArray  # (n_rows, n_spins): 0 where missing
    weights: RowWeights
    has_order: bool

    @property
    def is_complete(self) -> BoolArray:
        return np.asarray(self.states.all(axis=1) & (self.weights.totals > 0))

    def complete(self) -> DataRows:
        """The rows that say something, and nothing else."""
        kept = np.flatnonzero(self.is_complete)
        weights = self.weights[kept]
        if weights.groups is not None:
            weights = replace(weights, groups=np.unique(weights.groups, return_inverse=True)[1])
        return DataRows(self.states[kept], weights)

    def is_next(self) -> BoolArray | None:
        """(n_rows - 1,): whether a row and the one after it belong together."""
        if not self.has_order:
            return None
        codes = self.weights.groups
        if codes is None:
            return np.ones(max(0, len(self.states) - 1), dtype=bool)
        return np.asarray(codes[1:] == codes[:-1])


def read_table(
    model: IsingModel, data: Any, sample_weight: Any, counts: Any, groups: Any
) -> DataTable:
    """Rows of data with spins in the model's order; values may be missing, all of a row, too."""
    is_read = isinstance(data, PackedSpins | Spins)
    spins = data if is_read else as_spins(data, missing="pairwise")  # without rows that are empty
    states = np.asarray(matched(pack(spins), model))
    kept = None if is_read else spins.rows
    weights = row_weights(sample_weight, counts, len(states), groups=groups, rows=kept)
    if weights is None:
        weights = RowWeights(np.ones(len(states)), np.ones(len(states)))
    table = DataTable(states, weights, counts is None)
    return table if kept is None else _with_empty_rows(table, kept)


def _with_empty_rows(table: DataTable, kept: BoolArray) -> DataTable:
    """All rows of a table: those that were not kept hold zeros, weigh nothing, and are of no
    group, whatever stood beside them.
    """
    states: SpinArray = np.zeros((len(kept), table.states.shape[1]), dtype=np.int8)
    states[kept] = table.states
    totals = np.zeros(len(kept))
    totals[kept] = table.weights.totals
    squares = np.zeros(len(kept))
    squares[kept] = table.weights.squares
    groups = None
    if table.weights.groups is not None:
        groups = np.full(len(kept), -1)
        groups[kept] = table.weights.groups
    return replace(table, states=states, weights=RowWeights(totals, squares, groups))
