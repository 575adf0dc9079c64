"""Passes: where parts of a landscape first meet as energy rises, the disconnectivity graph."""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray, SpinArray


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """A tree of minima, from the lowest pass up: one pass less than there are minima.

    Below a pass its two parts are apart; a part goes by its lowest minimum.
    """

    minima: IntArray  # (n_minima - 1, 2): of the lower part, and of the higher
    energies: FloatArray  # (n_minima - 1,)
    states: SpinArray  # (n_minima - 1, n_spins): the highest on the way

    def saddles(self) -> FloatArray:
        """(n_minima, n_minima): the highest energy on the lowest path between two minima; NaN on
        the diagonal.
        """
        n_minima = len(self.energies) + 1
        members = [[place] for place in range(n_minima)]
        found = np.full((n_minima, n_minima), np.nan)
        for (low, high), energy in zip(self.minima.tolist(), self.energies, strict=True):
            found[np.ix_(members[low], members[high])] = energy
            found[np.ix_(members[high], members[low])] = energy
            members[low] += members[high]
        return found

    def lowest_of_each(self) -> IntArray:
        """(n_minima,): the lowest pass from each minimum to any other; -1 where there is but one
        minimum.
        """
        n_passes = len(self.energies)
        found = np.full(n_passes + 1, n_passes)
        np.minimum.at(found, self.minima.ravel(), np.repeat(np.arange(n_passes), 2))
        return np.where(found < n_passes, found, -1)

    def without(self, is_merged: BoolArray) -> tuple["Passes", IntArray]:
        """Passes that are left where the higher part's minimum joins the lower part's, and the
        place of each old minimum among the new ones.

        is_merged: (n_minima - 1,)
        """
        n_minima = len(self.energies) + 1
        joins = np.arange(n_minima)
        low, high = self.minima.T
        joins[high[is_merged]] = low[is_merged]
        place = places_after(joins)
        is_kept = ~is_merged
        minima = place[self.minima[is_kept]]
        kept = Passes(minima, self.energies[is_kept], self.states[is_kept])
        return kept, place


def places_after(joins: IntArray) -> IntArray:
    """(n,): places among those that join none but themselves, where each joins another, and so
    on.
    """
    ends = joins
    while not np.array_equal(ends, ends[ends]):
        ends = ends[ends]
    is_kept = ends == np.arange(len(ends))
    places = np.cumsum(is_kept) - 1
    return np.asarray(places[ends])
