"""Minima of many spins: those that descents from rows of data and from samples end in."""

import numpy as np

from isingkit._kernels import landscape as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray, SpinArray
from isingkit.landscape.energies import energies_of, rounded
from isingkit.landscape.minima import Minima
from isingkit.landscape.passes import Passes, places_after
from isingkit.model import IsingModel

_NEAREST = 20  # minima that paths are looked for to, from each
_CHUNK = 64  # rows at a time
_MOST_DISTANCES = 1 << 24  # at a time


def minima_below(
    model: IsingModel, starts: SpinArray, is_sample: BoolArray
) -> tuple[Minima, IntArray]:
    """Minima that steepest descents from some states end in, and (n_starts,) which one each does.

    Passes are upper bounds: the best of paths that flip, of the spins in which two minima differ,
    the one that costs least next. Basins are as probable as samples of the model end in them.
    """
    model_rounded = rounded(model)
    ends = np.array(starts, dtype=np.int8, order="C")
    parallel_map(kernels.descend, len(ends), *_parts(model_rounded), ends, chunk=_CHUNK)
    bottoms, place = np.unique(ends, axis=0, return_inverse=True)
    place = place.reshape(-1)
    energies = energies_of(model_rounded, bottoms)
    order = np.lexsort((*bottoms.T, energies))  # lowest first; equal ones by number
    bottoms = bottoms[order]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    passes, merged = _passes(model, model_rounded, bottoms)
    kept = np.unique(merged, return_index=True)[1]
    minima = bottoms[kept]
    ends_in = merged[rank[place]]
    n_ended = np.bincount(ends_in[is_sample], minlength=len(minima))
    shares = n_ended / max(1, n_ended.sum())
    return Minima(minima, energies_of(model, minima), shares, passes, None, None), ends_in


def _parts(model: IsingModel) -> tuple[tuple[IntArray, IntArray, FloatArray], FloatArray]:
    """What kernels take of a model."""
    graph = model.couplings
    structure = (graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data)
    return structure, model.fields


def _passes(
    model: IsingModel, model_rounded: IsingModel, bottoms: SpinArray
) -> tuple[Passes, IntArray]:
    """The lowest passes that paths find, and the place of each bottom among those that have one:
    others are of plateaus.
    """
    pairs = _neighbours(bottoms)
    heights = np.empty(len(pairs))
    tops = np.empty((len(pairs), model.n_spins), np.int8)
    arguments = (*_parts(model_rounded), bottoms, pairs, heights, tops)
    parallel_map(kernels.climb, len(pairs), *arguments, chunk=_CHUNK)
    energies = energies_of(model_rounded, bottoms)
    reached = energies[pairs[:, 0]] + heights
    parents = np.arange(len(bottoms))
    leads_to = np.arange(len(bottoms))
    found = []
    for path in np.argsort(reached, kind="stable").tolist():
        low, high = sorted(_root(parents, place) for place in pairs[path].tolist())
        if low == high:
            continue
        parents[high] = low
        if reached[path] == energies[high]:
            leads_to[high] = low
        else:
            found.append((low, high, path))
    place = places_after(leads_to)
    table = np.array(found, dtype=np.int64).reshape(-1, 3)
    saddles = tops[table[:, 2]]
    return Passes(place[table[:, :2]], energies_of(model, saddles), saddles), place


def _root(parents: IntArray, place: int) -> int:
    """The lowest minimum of a part; the way to it gets shorter."""
    while parents[place] != place:
        parents[place] = parents[parents[place]]
        place = int(parents[place])
    return place


def _neighbours(bottoms: SpinArray) -> IntArray:
    """(n_pairs, 2): each minimum with the few that differ in the fewest spins, and with the
    lowest, both ways.
    """
    n_bottoms = len(bottoms)
    n_near = min(_NEAREST, n_bottoms - 1)
    spins = bottoms.astype(np.float32)
    pairs = []
    step = max(1, _MOST_DISTANCES // n_bottoms)
    for start in range(0, n_bottoms, step):
        overlaps = spins[start : start + step] @ spins.T
        here = np.arange(start, start + len(overlaps))
        overlaps[np.arange(len(here)), here] = -np.inf
        near = np.argsort(-overlaps, axis=1, kind="stable")[:, :n_near]
        pairs.append(np.stack([np.repeat(here, n_near), near.ravel()], axis=1))
    others = np.arange(1, n_bottoms)
    pairs.append(np.stack([others, np.zeros_like(others)], axis=1))
    one_way = np.concatenate(pairs)
    return np.unique(np.concatenate([one_way, one_way[:, ::-1]]), axis=0)
