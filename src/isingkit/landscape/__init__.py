"""Landscapes: the states a network rests in, and what lies between them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from isingkit.arrays import BoolArray, FloatArray, IntArray, SpinArray
from isingkit.exceptions import NotEquilibratedError, require_instance, require_number
from isingkit.landscape.descents import minima_below
from isingkit.landscape.energies import energies_of
from isingkit.landscape.entropies import share_explained
from isingkit.landscape.minima import Minima, all_minima, numbers_of
from isingkit.landscape.result import Landscape as Landscape
from isingkit.landscape.rows import DataTable, read_table
from isingkit.landscape.uncertainty import (
    MOST_PARAMETERS,
    Uncertainty,
    share_stable,
    statistics_of_model,
    uncertainty_of,
)
from isingkit.landscape.visits import Visits, visits_of
from isingkit.model import IsingModel
from isingkit.worlds.exact import MOST_SPINS
from isingkit.worlds.graphs import Seed, generator
from isingkit.worlds.sampling import default_warm_up, sample

_N_SAMPLES = 4096  # of the model, where it has many spins
_MOST_UPDATES = 5 * 10**8  # of spins in all chains: seconds


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
        The rows it was learnt from, or others like them. Rows that lack values are left out. Of a
        few rows, whose columns may hold one value each, pass `as_spins(rows, mapping=...)` with
        `mapping_` of the estimator, which says what that value means.
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
    table = None if data is None else read_table(model, data, sample_weight, counts, groups)
    model = IsingModel(model.couplings, model.fields, model.names)
    rng = generator(random_state)
    if model.n_spins <= MOST_SPINS:
        found = _Found(all_minima(model), None, None, ())
    else:
        found = _descended(model, table, rng)
    if table is None:
        return _landscape(model, found)
    return _with_data(model, found, table, resolution, n_resamples, rng)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Minima, and what was needed to find them."""

    minima: Minima
    ends: IntArray | None  # (n_complete_rows,): minima that descents from rows end in
    samples: SpinArray | None  # of the model, where chains have forgotten their start
    notes: tuple[str, ...]


def _descended(model: IsingModel, table: DataTable | None, rng: Generator) -> _Found:
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
    table: DataTable,
    resolution: float,
    n_resamples: int,
    rng: Generator,
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
    basins = place[_basins_of_rows(found, rows.states)]
    visits = _visits(model, table, basins, known.n_minima)
    return replace(
        known,
        visits=visits,
        depth_errors=_depth_errors(minima, uncertainty),
        stability=stability,
        n_merged=int(is_merged.sum()),
        accuracy=accuracy,
    )


def _not_told_apart(
    minima: Minima, uncertainty: Uncertainty | None, resolution: float
) -> BoolArray:
    """(n_passes,): whether the higher minimum lies below the pass by less than its error allows."""
    passes = minima.passes
    if uncertainty is None:
        return np.zeros(len(passes.energies), dtype=bool)
    high = passes.minima[:, 1]
    errors = uncertainty.of_differences(passes.states, minima.states[high])
    return np.asarray(passes.energies - minima.energies[high] < resolution * errors)


def _notes(model: IsingModel, found: _Found, table: DataTable, is_merged: BoolArray) -> list[str]:
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


def _visits(model: IsingModel, table: DataTable, of_complete: IntArray, n_minima: int) -> Visits:
    """What rows do, those that lack values included."""
    n_rows = len(table.states)
    basins = np.full(n_rows, -1)
    basins[table.is_complete] = of_complete
    energies = np.full(n_rows, np.nan)
    energies[table.is_complete] = energies_of(model, table.states[table.is_complete])
    return visits_of(energies, basins, table.weights.totals, n_minima, table.is_next())


def _basins_of_rows(found: _Found, states: SpinArray) -> IntArray:
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
