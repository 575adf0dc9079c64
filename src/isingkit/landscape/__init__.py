"""Landscape: the states a network rests in, and what lies between them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isingkit.arrays import FloatArray, IntArray
from isingkit.exceptions import NotEquilibratedError, require_instance, require_number
from isingkit.fit_check import matched
from isingkit.landscape.descents import minima_below
from isingkit.landscape.energies import energies_of
from isingkit.landscape.entropies import share_explained
from isingkit.landscape.minima import Minima, all_minima, numbers_of
from isingkit.landscape.passes import Passes
from isingkit.landscape.uncertainty import (
    MOST_PARAMETERS,
    DataRows,
    Uncertainty,
    share_stable,
    statistics_of_model,
    uncertainty_of,
)
from isingkit.landscape.visits import Visits, visits_of
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins, pack
from isingkit.spins import RowWeights, Spins, as_spins, row_weights
from isingkit.worlds.exact import MOST_SPINS
from isingkit.worlds.graphs import Seed, generator
from isingkit.worlds.sampling import default_warm_up, sample

_N_SAMPLES = 4096  # of the model, where it has many spins
_MOST_UPDATES = 5 * 10**8  # of spins in all chains: seconds
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


@dataclass(frozen=True, slots=True, eq=False)
class Landscape:
    """Local minima of the energy, lowest first, their basins, and the passes between them.

    The energy of a state is -sum_{i<j} J_ij s_i s_j - sum_i H_i s_i: states are as likely as
    exp(-energy). A minimum is a state that no flip of one spin leads down from; a state lies in
    the basin that steepest descent takes it to. Prints as a table; `plot_disconnectivity` draws it.
    """

    names: tuple[str, ...]
    states: NDArray[np.int8]  # (n_minima, n_spins): -1/+1
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

    def table(self) -> NDArray[Any]:
        """A structured array, one row a minimum: energy, depth, depth_error, basin_states (-1
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
        return found

    def __str__(self) -> str:
        what = "all states looked at" if self.is_exact else "found by descents"
        minima = "1 minimum" if self.n_minima == 1 else f"{self.n_minima} minima"
        head = f"{minima} of {len(self.names)} spins, {what}"
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
        text = ", ".join(up) or "none"
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


def landscape(
    model: IsingModel,
    data: Any = None,
    *,
    sample_weight: Any = None,
    counts: Any = None,
    groups: Any = None,
    resolution: float = 2.0,
    n_resamples: int = 200,
    random_state: Seed = 0,
) -> Landscape:
    """The states a network rests in: local minima of the energy, basins, barriers, and what rows
    of data do in it.

    Up to 24 spins all states are looked at: they are sorted by energy, and each joins the parts of
    the landscape that it touches, so that minima, basins and barriers are exact. Beyond, minima
    are those that steepest descents from the rows and from 4096 samples of the model end in, and
    barriers are upper bounds. Couplings and fields are rounded to 2^-40 before states are compared,
    so that nothing hangs on a last digit. Neighbours of equal energy go by their number, whose bit
    i is 1 where spin i is +1: descents take the lowest. Equal states that flips lead through are
    one minimum if none of them has a lower neighbour, and none otherwise.

    With data, minima are merged that the data cannot tell apart: one joins the lower minimum
    beyond its lowest pass where it lies below that pass by less than `resolution` standard errors.
    Errors and `stability` follow from the rows to first order: were they drawn anew, couplings and
    fields would move by one step of Newton's. Edges are taken as given. A model learnt with
    covariates is taken at their means.

    Parameters
    ----------
    model
        Such as `model_` of a fitted estimator: MaximumLikelihoodIsing, as the field does, or
        AutoIsing.
    data
        The rows it was learnt from, or others like them. Rows that lack values are left out.
    sample_weight
        How much each row matters.
    counts
        How many equal samples each row stands for; then rows have no order, and no transitions.
    groups
        Which rows belong together, such as persons or sessions: errors are between groups, and
        transitions only within.
    resolution
        Standard errors that a minimum must lie below its way out; 0 merges none.
    n_resamples
        Resamples of the rows for `stability`; 0 for none.
    random_state
        Seed or numpy Generator.

    Examples
    --------
    >>> import isingkit as ik
    >>> pair = ik.IsingModel([[0, 0.5], [0.5, 0]], fields=[0.1, 0.1])
    >>> found = ik.landscape(pair)
    >>> found.states.tolist()
    [[1, 1], [-1, -1]]
    >>> found.barriers().round(3).tolist()
    [[0.0, 1.2], [0.8, 0.0]]
    """
    require_instance(
        "model", model, IsingModel, "an IsingModel, such as model_ of a fitted estimator"
    )
    require_number("resolution", resolution, at_least=0)
    require_number("n_resamples", n_resamples, at_least=0, whole=True)
    model = IsingModel(model.couplings, model.fields, model.names)
    table = None if data is None else _read(model, data, sample_weight, counts, groups)
    rng = generator(random_state)
    if model.n_spins <= MOST_SPINS:
        found = _Found(all_minima(model), None, None, ())
    else:
        found = _descended(model, table, rng)
    if table is None:
        return _landscape(model, found)
    return _with_data(model, found, table, resolution, n_resamples, rng)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Rows of data, in the model's order of spins."""

    states: NDArray[np.int8]  # (n_rows, n_spins): 0 where missing
    weights: RowWeights
    has_order: bool

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        return np.asarray(self.states.all(axis=1) & (self.weights.totals > 0))

    def complete(self) -> DataRows:
        """The rows that say something, and nothing else."""
        kept = np.flatnonzero(self.is_complete)
        weights = self.weights[kept]
        if weights.groups is not None:
            weights = replace(weights, groups=np.unique(weights.groups, return_inverse=True)[1])
        return DataRows(self.states[kept], weights)

    def is_next(self) -> NDArray[np.bool_] | None:
        """(n_rows - 1,): whether a row and the one after it belong together."""
        if not self.has_order:
            return None
        codes = self.weights.groups
        if codes is None:
            return np.ones(max(0, len(self.states) - 1), dtype=bool)
        return np.asarray(codes[1:] == codes[:-1])


def _read(model: IsingModel, data: Any, sample_weight: Any, counts: Any, groups: Any) -> _Table:
    is_read = isinstance(data, PackedSpins | Spins)
    packed = matched(pack(data if is_read else as_spins(data, missing="pairwise")), model)
    states = np.asarray(packed)
    weights = row_weights(sample_weight, counts, len(states), groups=groups)
    if weights is None:
        weights = RowWeights(np.ones(len(states)), np.ones(len(states)))
    return _Table(states, weights, counts is None)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Minima, and what was needed to find them."""

    minima: Minima
    ends: IntArray | None  # (n_complete_rows,): minima that descents from rows end in
    samples: NDArray[np.int8] | None  # of the model, where chains have forgotten their start
    notes: tuple[str, ...]


def _descended(model: IsingModel, table: _Table | None, rng: np.random.Generator) -> _Found:
    """Minima below rows and samples of the model."""
    longest = max(1, _MOST_UPDATES // (_N_SAMPLES * model.n_spins))
    warm_up = min(default_warm_up(model), longest)
    notes = ["barriers are upper bounds, and there may be minima that were not found"]
    drawn = None
    try:
        drawn = np.asarray(sample(model, _N_SAMPLES, warm_up=warm_up, random_state=rng))
        starts = drawn
    except NotEquilibratedError:
        notes.append(
            f"after {warm_up} sweeps chains still remember how they started: probabilities are "
            "rough, and errors unknown"
        )
        starts = np.asarray(
            sample(model, _N_SAMPLES, warm_up=warm_up, check=False, random_state=rng)
        )
    is_sample = np.ones(len(starts), dtype=bool)
    if table is not None:
        rows = table.complete().states
        is_sample = np.arange(len(rows) + len(starts)) >= len(rows)
        starts = np.concatenate([rows, starts])
    minima, ends = minima_below(model, starts, is_sample)
    return _Found(minima, ends[~is_sample], drawn, tuple(notes))


def _with_data(
    model: IsingModel,
    found: _Found,
    table: _Table,
    resolution: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> Landscape:
    """The landscape, with minima merged that rows cannot tell apart, and what rows do in it."""
    rows = table.complete()
    uncertainty = uncertainty_of(model, rows, found.samples) if len(rows.states) else None
    is_merged = _not_told_apart(found.minima, uncertainty, resolution)
    minima, place = found.minima.without(is_merged)
    accuracy, is_rough = share_explained(model, rows)
    notes = [*found.notes, *_notes(model, found, table, is_merged)]
    if is_rough:
        notes.append("rows are too few to know their entropy: the accuracy is too small")
    known = _landscape(model, replace(found, minima=minima, notes=tuple(notes)))
    stability = known.stability
    if uncertainty is not None and n_resamples > 0:
        stability = share_stable(model, minima.states, uncertainty, rows, n_resamples, rng)
    return replace(
        known,
        visits=_visits(model, table, place[_basins_of_rows(found, rows.states)], known.n_minima),
        depth_errors=_depth_errors(minima, uncertainty),
        stability=stability,
        n_merged=int(is_merged.sum()),
        accuracy=accuracy,
    )


def _not_told_apart(
    minima: Minima, uncertainty: Uncertainty | None, resolution: float
) -> NDArray[np.bool_]:
    """(n_passes,): whether the higher minimum lies below the pass by less than its error allows."""
    passes = minima.passes
    if uncertainty is None:
        return np.zeros(len(passes.energies), dtype=bool)
    high = passes.minima[:, 1]
    errors = uncertainty.of_differences(passes.states, minima.states[high])
    return np.asarray(passes.energies - minima.energies[high] < resolution * errors)


def _notes(
    model: IsingModel, found: _Found, table: _Table, is_merged: NDArray[np.bool_]
) -> list[str]:
    """What should be known of rows and minima."""
    notes = []
    n_left_out = int((~table.is_complete).sum())
    if n_left_out:
        lack = "1 row lacks" if n_left_out == 1 else f"{n_left_out} rows lack"
        notes.append(f"{lack} values or weight: left out")
    if is_merged.any():
        notes.append(f"minima merged that the data cannot tell apart: {is_merged.sum()}")
    n_parameters = statistics_of_model(model).n_parameters
    if found.samples is not None and n_parameters > MOST_PARAMETERS:
        notes.append(f"more than {MOST_PARAMETERS} couplings and fields: errors unknown")
    return notes


def _visits(model: IsingModel, table: _Table, of_complete: IntArray, n_minima: int) -> Visits:
    """What rows do, those that lack values included."""
    n_rows = len(table.states)
    basins = np.full(n_rows, -1)
    basins[table.is_complete] = of_complete
    energies = np.full(n_rows, np.nan)
    energies[table.is_complete] = energies_of(model, table.states[table.is_complete])
    return visits_of(energies, basins, table.weights.totals, n_minima, table.is_next())


def _basins_of_rows(found: _Found, states: NDArray[np.int8]) -> IntArray:
    """(n_rows,): places of minima."""
    if found.ends is not None:
        return found.ends
    assert found.minima.basins is not None
    return found.minima.basins[numbers_of(states)].astype(np.int64)


def _depth_errors(minima: Minima, uncertainty: Uncertainty | None) -> FloatArray:
    """(n_minima,): of the lowest way out of each; NaN where there is none, or nothing is known."""
    errors = np.full(len(minima.energies), np.nan)
    if uncertainty is None:
        return errors
    lowest = minima.passes.lowest_of_each()
    left = np.flatnonzero(lowest >= 0)
    saddles = minima.passes.states[lowest[left]]
    errors[left] = uncertainty.of_differences(saddles, minima.states[left])
    return errors


def _landscape(model: IsingModel, found: _Found) -> Landscape:
    """What is known without data."""
    minima = found.minima
    unknown = np.full(len(minima.energies), np.nan)
    return Landscape(
        names=model.names,
        states=minima.states,
        energies=minima.energies,
        depths=minima.depths,
        depth_errors=unknown,
        basin_states=minima.sizes,
        probabilities=minima.probabilities,
        stability=unknown,
        passes=minima.passes,
        basins=minima.basins,
        visits=None,
        accuracy=float("nan"),
        n_merged=0,
        is_exact=minima.basins is not None,
        notes=found.notes,
    )
