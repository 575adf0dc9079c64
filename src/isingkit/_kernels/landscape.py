"""Landscapes: steepest descents, basins and passes between them, of all states or of some.

A state is lower than another if its energy is, or if energies are equal and its number is: the
number whose bit i is 1 where spin i is +1.
"""

import numpy as np
from numba import njit

from isingkit._kernels.flags import KERNEL, PART

NOWHERE = 255  # in place of a spin to flip, where no flip leads lower


@njit(**KERNEL)
def steepest_flips(start, stop, energies, flips):
    """flips[s] = the spin whose flip takes state s to its lowest neighbour, where that is lower.

    energies: (2^n,) float64     flips: (2^n,) uint8, overwritten; NOWHERE where none is lower
    """
    n_states = len(energies)
    for state in range(start, stop):
        lowest = state
        energy = energies[state]
        flip = NOWHERE
        spin = 0
        bit = 1
        while bit < n_states:
            other = state ^ bit
            its = energies[other]
            if its < energy or (its == energy and other < lowest):
                lowest = other
                energy = its
                flip = spin
            spin += 1
            bit *= 2
        flips[state] = flip


@njit(**KERNEL)
def flood(order, energies, flips, basins, bottoms, leads_to, sizes, masses, passes):
    """The basin of each state, and where basins meet as energy rises; gives the number of passes.

    order: (2^n,) states from the lowest up     flips: (2^n,) uint8, of `steepest_flips`
    basins: (2^n,) int32, -1 before, the place in `bottoms` that steepest descent ends in after
    bottoms: (n_bottoms,) int64, overwritten with states that no flip leads down from, lowest first
    leads_to: (n_bottoms,) int64, overwritten: itself, or, of a plateau that is no minimum, where
    descent goes on
    sizes: (n_bottoms,) int64, masses: (n_bottoms,) float64, zeros before; states of the basins and
    their sums of exp(lowest energy - energy)
    passes: (n_bottoms, 3) int64, overwritten: the lower and the higher minimum of two parts that
    first meet, and the state where they do
    """
    parents = np.empty(len(bottoms), np.int64)
    lowest = energies[order[0]]
    n_bottoms = 0
    n_passes = 0
    n_apart = len(bottoms)  # parts, those to come included; few of the states join any
    for state in order:
        energy = energies[state]
        if flips[state] == NOWHERE:
            own = n_bottoms
            bottoms[own] = state
            leads_to[own] = own
            parents[own] = own
            n_bottoms += 1
        else:
            own = np.int64(basins[state ^ (1 << np.int64(flips[state]))])
        basins[state] = own
        sizes[own] += 1
        masses[own] += np.exp(lowest - energy)
        bit = 1
        while bit < len(basins) and n_apart > 1:
            other = np.int64(basins[state ^ bit])
            bit *= 2
            if other < 0 or other == own:
                continue
            here = _root(parents, own)
            there = _root(parents, other)
            if here == there:
                continue
            low = min(here, there)
            high = max(here, there)
            parents[high] = low
            n_apart -= 1
            if energies[bottoms[high]] == energy:  # a plateau, and here is its way out
                leads_to[high] = other if here == high else own
            else:
                passes[n_passes, 0] = low
                passes[n_passes, 1] = high
                passes[n_passes, 2] = state
                n_passes += 1
    return n_passes


@njit(**PART)
def _root(parents, place):
    """The lowest minimum of a part; the way to it gets shorter."""
    while parents[place] != place:
        parents[place] = parents[parents[place]]
        place = parents[place]
    return place


@njit(**KERNEL)
def descend(start, stop, graph, fields, spins):
    """Steepest descents of rows start to stop, in place.

    graph: (indptr, indices, couplings), CSR     spins: (n_rows, n_spins) int8
    """
    n_spins = len(fields)
    local = np.empty(n_spins)
    for row in range(start, stop):
        state = spins[row]
        _local_fields(graph, fields, state, local)
        spin = _steepest(state, local)
        while spin >= 0:
            _flip(graph, state, local, spin)
            spin = _steepest(state, local)


@njit(**PART)
def _local_fields(graph, fields, state, local):
    """local[i] = H_i + sum_j J_ij s_j, overwritten."""
    indptr, indices, couplings = graph
    for i in range(len(fields)):
        total = fields[i]
        for k in range(indptr[i], indptr[i + 1]):
            total += couplings[k] * state[indices[k]]
        local[i] = total


@njit(**PART)
def _flip(graph, state, local, spin):
    """Flip a spin; its neighbours' local fields follow."""
    indptr, indices, couplings = graph
    state[spin] = -state[spin]
    for k in range(indptr[spin], indptr[spin + 1]):
        local[indices[k]] += 2 * couplings[k] * state[spin]


@njit(**PART)
def _steepest(state, local):
    """The spin whose flip leads lowest, -1 where none leads lower. Flipping i costs 2 s_i local_i.

    Of equal ones the one whose number is lowest: the last of those that go down to -1, else the
    first of those that go up.
    """
    best = -1
    least = 0.0
    for i in range(len(state)):
        cost = 2 * state[i] * local[i]
        if cost > least:
            continue
        if cost < least:
            best = i
            least = cost
        elif state[i] > 0:
            best = i
    return best


@njit(**KERNEL)
def climb(start, stop, graph, fields, spins, pairs, heights, saddles):
    """heights[k] = how far above the first state of pair k a path to the second rises.

    Among the spins that differ, the path flips the one that costs least next.
    spins: (n_states, n_spins) int8     pairs: (n_pairs, 2) int64, places in spins
    heights: (n_pairs,) float64, saddles: (n_pairs, n_spins) int8, the highest state; overwritten
    """
    n_spins = len(fields)
    local = np.empty(n_spins)
    state = np.empty(n_spins, np.int8)
    for k in range(start, stop):
        goal = spins[pairs[k, 1]]
        for i in range(n_spins):
            state[i] = spins[pairs[k, 0], i]
            saddles[k, i] = state[i]
        _local_fields(graph, fields, state, local)
        height = 0.0
        highest = 0.0
        spin = _cheapest(state, goal, local)
        while spin >= 0:
            height += 2 * state[spin] * local[spin]
            _flip(graph, state, local, spin)
            if height > highest:
                highest = height
                for i in range(n_spins):
                    saddles[k, i] = state[i]
            spin = _cheapest(state, goal, local)
        heights[k] = highest


@njit(**PART)
def _cheapest(state, goal, local):
    """Of the spins that differ from the goal the first whose flip costs least; -1 at the goal."""
    best = -1
    least = np.inf
    for i in range(len(state)):
        cost = 2 * state[i] * local[i]
        if state[i] != goal[i] and cost < least:
            best = i
            least = cost
    return best
