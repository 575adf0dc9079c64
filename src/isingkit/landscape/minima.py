"""Minima: of all states, each with its basin and the passes to the others."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isingkit._kernels import landscape as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray, SpinArray
from isingkit.landscape.energies import energies_of, rounded
from isingkit.landscape.passes import Passes, places_after
from isingkit.memory import require_memory
from isingkit.model import IsingModel
from isingkit.worlds.exact import log_weights

_CHUNK = 1 << 16  # states at a time
_BYTES = 48  # a state


@dataclass(frozen=True, slots=True, eq=False)
class Minima:
    """Local minima, lowest first, and their basins."""

    states: SpinArray  # (n_minima, n_spins)
    energies: FloatArray  # (n_minima,)
    probabilities: FloatArray  # (n_minima,): of the basins, in the model
    passes: Passes
    sizes: IntArray | None  # (n_minima,): states of the basins, where all were looked at
    # (2**n_spins,) int32: the basin of the state whose bit i is 1 where spin i is +1
    basins: NDArray[np.int32] | None

    @property
    def depths(self) -> FloatArray:
        """(n_minima,): from each up to the lowest way out; infinite where there is none."""
        energies = np.append(self.passes.energies, np.inf)
        return np.asarray(energies[self.passes.lowest_of_each()] - self.energies)

    def without(self, is_merged: BoolArray) -> tuple["Minima", IntArray]:
        """The minima that are left where those above some passes join those below, and the place
        of each old minimum among them.
        """
        passes, place = self.passes.without(is_merged)
        kept = np.zeros(len(passes.energies) + 1, dtype=np.int64)
        kept[place[::-1]] = np.arange(len(place))[::-1]  # the first is the lowest
        probabilities = np.bincount(place, weights=self.probabilities).astype(np.float64)
        sizes = None if self.sizes is None else _whole_sums(place, self.sizes)
        basins = None if self.basins is None else place.astype(np.int32)[self.basins]
        merged = Minima(
            self.states[kept], self.energies[kept], probabilities, passes, sizes, basins
        )
        return merged, place


def all_minima(model: IsingModel) -> Minima:
    """Minima among all 2^n_spins states: sorted by energy, each state joins the parts of the
    landscape that it touches.

    A minimum is a state, or a plateau of states that flips lead through, without a lower
    neighbour; of a plateau the state of the lowest number stands for it. Of neighbours with equal
    energy, descents take the one of the lowest number; where they end on a plateau that is no
    minimum, they go on from the first of its states, by number, that touches anything lower.
    """
    require_memory(_BYTES * 2.0**model.n_spins, n_spins=model.n_spins, n_samples=0)
    energies = np.negative(log_weights(rounded(model))[::-1])
    n_states = len(energies)
    flips = np.empty(n_states, np.uint8)
    parallel_map(kernels.steepest_flips, n_states, energies, flips, chunk=_CHUNK)
    order = np.argsort(energies, kind="stable")  # equal ones by number
    basins = np.full(n_states, -1, np.int32)
    n_bottoms = int((flips == kernels.NOWHERE).sum())
    bottoms = np.empty(n_bottoms, np.int64)
    leads_to = np.empty(n_bottoms, np.int64)
    sizes = np.zeros(n_bottoms, np.int64)
    masses = np.zeros(n_bottoms)
    passes = np.empty((n_bottoms, 3), np.int64)
    found = (bottoms, leads_to, sizes, masses, passes)
    n_passes = kernels.flood(order, energies, flips, basins, *found)
    place = places_after(leads_to)
    low, high, top = passes[:n_passes].T
    tops = states_of(top, model.n_spins)
    minima = states_of(bottoms[leads_to == np.arange(n_bottoms)], model.n_spins)
    ends = place[np.stack([low, high], axis=1)]
    lowest_passes = Passes(ends, energies_of(model, tops), tops)
    probabilities = np.bincount(place, masses) / masses.sum()
    return Minima(
        minima,
        energies_of(model, minima),
        probabilities,
        lowest_passes,
        _whole_sums(place, sizes),
        place.astype(np.int32)[basins],
    )


def states_of(numbers: IntArray, n_spins: int) -> SpinArray:
    """(n, n_spins): -1/+1, spin i is +1 where bit i is 1."""
    is_up = numbers[:, None] >> np.arange(n_spins) & 1
    return (2 * is_up - 1).astype(np.int8)


def numbers_of(states: SpinArray) -> IntArray:
    """(n,): whose bit i is 1 where spin i is +1."""
    bits = np.int64(1) << np.arange(states.shape[1])
    return np.asarray((states > 0) @ bits)


def _whole_sums(places: IntArray, values: IntArray) -> IntArray:
    """Sums of whole numbers by place."""
    sums = np.zeros(places.max() + 1, dtype=np.int64)
    np.add.at(sums, places, values)
    return sums
