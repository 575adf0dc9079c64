"""Landscape: minima, basins and passes, and what rows do in them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isingkit.arrays import FloatArray, IntArray, SpinArray
from isingkit.landscape.passes import Passes
from isingkit.landscape.visits import Visits
from isingkit.notebook import Summary
from isingkit.result_table import ResultTable, frozen, on_one_line
from isingkit.spins import Names

_MOST_SHOWN = 12  # minima in a printed table
_WIDTH = 60  # of the names in it
_MIN_COLUMNS = [
    ("energy", np.float64),
    ("depth", np.float64),
    ("depth_error", np.float64),
    ("basin_states", np.int64),
    ("probability", np.float64),
    ("share", np.float64),
    ("stability", np.float64),
]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Landscape(Summary):
    """Local minima of the energy, lowest first, their basins, and the passes between them.

    The energy of a state is -sum_{i<j} J_ij s_i s_j - sum_i H_i s_i: states are as likely as
    exp(-energy). A minimum is a state that no flip of one spin leads down from; a state lies in
    the basin that steepest descent takes it to. Prints as a table; `plot_disconnectivity` draws it.
    """

    names: Names
    states: SpinArray  # (n_minima, n_spins): -1/+1
    energies: FloatArray  # (n_minima,)
    # (n_minima,): from each up to the lowest pass to another; infinite where there is none
    depths: FloatArray
    depth_errors: FloatArray  # (n_minima,): standard errors of depths; NaN without data
    basin_states: IntArray | None  # (n_minima,): how many; None beyond 24 spins
    probabilities: FloatArray  # (n_minima,): of the basins, in the model
    stability: FloatArray  # (n_minima,): share of resamples; NaN without data
    passes: Passes  # the disconnectivity graph
    # (2**n_spins,) int32: the basin of the state whose bit i is 1 where spin i is +1
    basins: NDArray[np.int32] | None
    visits: Visits | None  # of the data
    # of what makes the data differ from independent columns, the share that the model has; NaN
    # without data and beyond 24 spins
    accuracy: float
    n_merged: int  # minima that joined another because the data cannot tell them apart
    is_exact: bool  # all states were looked at; else minima are those found, passes upper bounds
    notes: tuple[str, ...]

    @property
    def n_minima(self) -> int:
        return len(self.energies)

    def barriers(self) -> FloatArray:
        """(n_minima, n_minima): how far one must climb from the minimum of the row to that of the
        column, on the lowest path; 0 on the diagonal.
        """
        climbs = self.passes.saddles() - self.energies[:, None]
        np.fill_diagonal(climbs, 0.0)
        return climbs

    def table(self) -> ResultTable:
        """One row a minimum: energy, depth, depth_error, basin_states (-1
        beyond 24 spins), probability, share of the rows, stability.
        """
        found = np.zeros(self.n_minima, dtype=_MIN_COLUMNS)
        found["energy"] = self.energies
        found["depth"] = self.depths
        found["depth_error"] = self.depth_errors
        found["basin_states"] = -1 if self.basin_states is None else self.basin_states
        found["probability"] = self.probabilities
        found["share"] = np.nan if self.visits is None else self.visits.shares
        found["stability"] = self.stability
        return frozen(found)

    def __str__(self) -> str:
        what = "all states looked at" if self.is_exact else "found by descents"
        minima = "1 minimum" if self.n_minima == 1 else f"{self.n_minima} minima"
        head = f"{minima} of {len(self.names)} columns, {what}"
        if self.visits is not None and np.isfinite(self.accuracy):
            head += f"; accuracy {self.accuracy:.4f}"
        lines = [head, *self.notes, "", _HEAD]
        lines += [self._line(place) for place in range(min(self.n_minima, _MOST_SHOWN))]
        if self.n_minima > _MOST_SHOWN:
            lines.append(f"and {self.n_minima - _MOST_SHOWN} more")
        return "\n".join(line.rstrip() for line in lines)

    def _line(self, place: int) -> str:
        """A minimum, with the names of the spins that are +1 in it."""
        row = self.table()[place]
        up = [name for name, spin in zip(self.names, self.states[place], strict=True) if spin > 0]
        text = on_one_line(", ".join(up)) or "none"
        if len(text) > _WIDTH:
            text = f"{text[: _WIDTH - 3]}..."
        size = "-" if row["basin_states"] < 0 else str(row["basin_states"])
        shown = [_shown(row["depth"], ".3f"), _shown(row["depth_error"], ".3f"), size]
        shown += [_shown(row[name], ".3f") for name in ("probability", "share", "stability")]
        cells = "".join(f"{cell:>12}" for cell in shown)
        return f"{place + 1:>3}{row['energy']:>10.3f}{cells}  {text}"


_HEAD = (
    f"{'':>3}{'energy':>10}"
    + "".join(
        f"{name:>12}" for name in ("depth", "error", "states", "probability", "rows", "stability")
    )
    + "  +1"
)


def _shown(value: float, how: str) -> str:
    return format(value, how) if np.isfinite(value) else "-"
