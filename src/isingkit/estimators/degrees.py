"""Degrees: what the other neighbours of two spins say of whether these are neighbours."""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.estimators.graph import keys_of, places_of, ranges

_NOTHING = 1e-12
# standard errors by which the variance of degrees must differ from that of chance
_DOUBT = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class _Degrees:
    """Numbers of neighbours in a graph, and what is counted of them."""

    of_spins: IntArray  # (n_spins,)
    n_spins: int  # those that change
    numbers: IntArray  # (largest degree + 1,): of spins that change, by degree
    kinds: IntArray  # (n_kinds, 2): degrees of the ends of edges
    n_of_kind: IntArray  # (n_kinds,): edges

    @property
    def size(self) -> int:
        return len(self.numbers)

    @property
    def total(self) -> int:
        return int(self.of_spins.sum())

    @property
    def squares(self) -> int:
        return int((self.of_spins**2).sum())


def _degrees(graph: Pairs, changes: BoolArray) -> _Degrees:
    degrees = np.bincount(graph.ravel(), minlength=len(changes))
    numbers = np.bincount(degrees[changes], minlength=1)
    size = len(numbers)
    kinds, n_of_kind = np.unique(degrees[graph] @ (size, 1), return_counts=True)
    ends = np.column_stack([kinds // size, kinds % size])
    return _Degrees(degrees, int(changes.sum()), numbers, ends, n_of_kind)


def degree_odds(pairs: Pairs, graph: Pairs, changes: BoolArray) -> FloatArray:
    """How much likelier than on average pairs are edges, by how many other neighbours their spins
    have in a graph.

    Over pairs outside it the mean is at most 1. Where all spins have about as many neighbours, an
    edge is likelier between two that lack one; where some have many, at these. Degrees with mean c
    and variance f c are taken to be binomial, Poisson or negative binomial, by f: then a spin with
    d neighbours, of n - 1 there could be, has any other one with odds proportional to
    (c - (1 - f) d) / (n - 1 - d). Where pairs are joined by chance, f = 1 - c / (n - 1) and all
    weigh the same; so they do while f is not clearly different.
    Of a pair of the graph it is that in the graph without it: whether it is an edge does not move
    it.

    changes: (n_spins,), whether a spin does; others have no part in it
    """
    known = _degrees(graph, changes)
    n_spins = len(changes)
    inside, _ = places_of(keys_of(pairs, n_spins), keys_of(graph, n_spins))
    odds = np.empty(len(pairs))
    sums = np.empty(len(pairs))
    odds[~inside], sums[~inside] = _outside(known, pairs[~inside])
    odds[inside], sums[inside] = _inside(known, pairs[inside], graph)
    n_pairs = known.n_spins * (known.n_spins - 1) / 2
    relative = odds * n_pairs / np.maximum(sums, _NOTHING)
    return np.where(sums > _NOTHING, relative, 1.0)


def _outside(known: _Degrees, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
    """Odds of pairs outside the graph, and their sum over all such pairs."""
    table = _odds(known, np.array([known.total]), np.array([known.squares]))
    odds = table[0][known.of_spins[pairs]].prod(axis=1)
    of_kinds = _gain(table, known.kinds) @ known.n_of_kind
    total = _over_all_pairs(table, known.numbers) + of_kinds
    return odds, total


def _inside(known: _Degrees, pairs: Pairs, graph: Pairs) -> tuple[FloatArray, FloatArray]:
    """The same of pairs of the graph, each in the graph without it."""
    if len(pairs) == 0:
        return np.empty(0), np.empty(0)
    sorted_degrees = np.sort(known.of_spins[pairs], axis=1)
    kinds, kind = np.unique(sorted_degrees @ (known.size, 1), return_inverse=True)
    ends = np.column_stack([kinds // known.size, kinds % known.size])
    each = np.arange(len(kinds))
    total = np.full(len(kinds), known.total - 2)
    squares = known.squares - 2 * (ends.sum(axis=1) - 1)
    tables = _odds(known, total, squares)
    without = [tables[each, degree - 1] for degree in ends.T]
    with_it = [tables[each, degree] for degree in ends.T]
    sums = _over_all_pairs(tables, known.numbers, without, with_it)
    sums = sums + _gain(tables, known.kinds) @ known.n_of_kind
    sums = sums - np.prod(without, axis=0) + np.prod(with_it, axis=0)
    odds = np.prod(without, axis=0)
    at_ends = _at_their_ends(known, pairs, graph, tables, kind)
    return odds[kind], sums[kind] + at_ends


def _odds(known: _Degrees, total: IntArray, squares: IntArray) -> FloatArray:
    """(n, size): odds of another neighbour of spins with 0, 1, ... neighbours.

    total, squares: (n,), sums of degrees and of their squares
    """
    n_spins = known.n_spins
    most = max(n_spins - 1, 1)
    mean = total / max(n_spins, 1)
    by_chance = 1 - mean / most
    alike = (mean == 0) | (by_chance <= 0)
    mean = np.where(alike, 1.0, mean)
    by_chance = np.where(alike, 1.0, by_chance)
    variance = np.maximum(squares - n_spins * mean**2, 0.0) / most
    ratio = variance / (mean * by_chance)
    doubt = 1 + _DOUBT * np.sqrt(2 / max(n_spins, 1))
    fewer = np.minimum(ratio * doubt, 1.0)
    more = np.maximum(ratio / doubt, 1.0)
    f = by_chance * np.where(ratio < 1, fewer, more)
    others = np.arange(known.size)
    of_others = (1 - f)[:, None] * others
    expected = np.maximum(mean[:, None] - of_others, 0.0)
    odds = expected / np.maximum(n_spins - 1 - others, 1.0)
    return np.where(alike[:, None], 1.0, odds)


def _over_all_pairs(
    tables: FloatArray,
    numbers: IntArray,
    new: list[FloatArray] | None = None,
    old: list[FloatArray] | None = None,
) -> FloatArray:
    """Sums of products of odds over all pairs of spins, (n,), from numbers of spins by degree.

    Some odds are new instead of old.
    """
    sums = []
    for power in (1, 2):
        total = tables**power @ numbers
        for after, before in zip(new or [], old or [], strict=True):
            total = total + (after**power - before**power)
        sums.append(total)
    return np.asarray((sums[0] ** 2 - sums[1]) / 2)


def _gain(tables: FloatArray, ends: IntArray) -> FloatArray:
    """(n_tables, n_edges): by how much more edges weigh than if they counted themselves.

    ends: (n_edges, 2), degrees
    """
    one_less = tables[:, ends - 1].prod(axis=2)
    as_found = tables[:, ends].prod(axis=2)
    return np.asarray(one_less - as_found)


def _at_their_ends(
    known: _Degrees, pairs: Pairs, graph: Pairs, tables: FloatArray, kind: IntArray
) -> FloatArray:
    """Without an edge, those between its spins and their other neighbours gain differently.

    By how much in all, for each edge.
    """
    size = known.size
    degrees = known.of_spins
    other_ends = graph[:, ::-1].ravel()
    neighbours = graph.ravel() * size + degrees[other_ends]
    around, times = np.unique(neighbours, return_counts=True)
    starts = np.searchsorted(around, np.arange(len(degrees) + 1) * size)
    change = np.zeros(len(pairs))
    for side in (0, 1):
        own = degrees[pairs[:, side]]
        other = degrees[pairs[:, 1 - side]]
        n_here = np.diff(starts)[pairs[:, side]]
        edge = np.repeat(np.arange(len(pairs)), n_here)
        here = ranges(starts[pairs[:, side]], n_here)

        for less, sign in ((1, 1), (0, -1)):
            odds = tables[kind[edge], around[here] % size - less]
            of_neighbours = np.bincount(edge, times[here] * odds, len(pairs))
            of_others = of_neighbours - tables[kind, other - less]
            step = tables[kind, own - less - 1] - tables[kind, own - less]
            change += sign * step * of_others
    return change
