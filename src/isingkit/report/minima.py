"""What a report shows of the states that a network rests in."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from isingkit.landscape import Landscape, landscape
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins
from isingkit.plots import Branches
from isingkit.result_table import Record

MOST_SPINS = 20  # half a second; 'isingkit landscape' takes more
MOST_MINIMA = 12  # in the table
_MOST_LEAVES = 200  # of the graph
_DIGITS = 6
_NUMBERS = ("energy", "depth", "depth_error", "probability", "share", "stability")


def quick_landscape(
    model: IsingModel,
    data: PackedSpins | None = None,
    *,
    sample_weight: Any = None,
    counts: Any = None,
    groups: Any = None,
) -> Landscape | None:
    """The landscape of a network of few columns, with its rows where they are known; None where
    there is nothing to see: no edges, or but one minimum.
    """
    if model.n_spins > MOST_SPINS or model.n_edges == 0:
        return None
    found = landscape(model, data, sample_weight=sample_weight, counts=counts, groups=groups)
    return found if found.n_minima > 1 else None


def minima_shown(found: Landscape | None) -> dict[str, Any] | None:
    """A landscape in a form that JSON can hold; None where there is none to show."""
    if found is None:
        return None
    has_graph = found.n_minima <= _MOST_LEAVES
    return {
        "n_minima": found.n_minima,
        "n_merged": found.n_merged,
        "accuracy": _number(found.accuracy),
        "minima": _rows(found, found.n_minima if has_graph else MOST_MINIMA),
        "passes": found.passes.minima.tolist() if has_graph else [],
        "pass_energies": _numbers(found.passes.energies) if has_graph else [],
    }


def branches_of(shown: dict[str, Any]) -> Branches | None:
    """The disconnectivity graph of what is shown; None where there are too many minima."""
    minima = shown["minima"]
    if len(minima) < shown["n_minima"]:
        return None
    return Branches(
        energies=np.array([one["energy"] for one in minima]),
        probabilities=np.array([one["probability"] for one in minima]),
        passes=np.array(shown["passes"], dtype=np.int64).reshape(-1, 2),
        pass_energies=np.array(shown["pass_energies"]),
    )


def _rows(found: Landscape, n_rows: int) -> list[Record]:
    """Of each minimum the columns that are +1, and its numbers."""
    table = found.table()
    names = np.array(found.names, dtype=object)
    rows = []
    for row, state in zip(table[:n_rows], found.states, strict=False):
        numbers = {name: _number(row[name]) for name in _NUMBERS}
        rows.append({"up": names[state > 0].tolist()} | numbers)
    return rows


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float) -> float | None:
    """To as many digits as anybody looks at; None for none."""
    return float(f"{float(value):.{_DIGITS}g}") if math.isfinite(value) else None
