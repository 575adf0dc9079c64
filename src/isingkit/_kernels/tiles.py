"""Pairs of spins that pass a test, found tile by tile: nothing of the size of all pairs is stored.
Caller: estimators/tiles.py.
"""

import numpy as np
from numba import njit

from isingkit._kernels.flags import KERNEL, PART
from isingkit._kernels.gram import popcount
from isingkit._kernels.lookup_popcount import COLUMNS, SLAB, STEPS, STRIP, TRIPLE, count_4
from isingkit._kernels.weighted_sums import room_for


@njit(**KERNEL)
def correlated_by_lookup(
    start, stop, nibbles, n_steps, tables, n_samples, spin_sums, scales, level
):
    """Pairs i < j of large |correlation|, i in strips start to stop: rows, columns, and in how many
    samples they differ.

    A pair passes where |S_ij - s_i s_j / M| > level scales_i scales_j, in single precision: make
    `level` a trifle too small.
    nibbles: as from `lookup_popcount.split`
    spin_sums, scales: (n_blocks * COLUMNS,) float32; scales infinite past the last spin
    One writer and integer counts: the result does not depend on the number of threads.
    """
    n_blocks, room, _ = nibbles.shape
    flat_nibbles = nibbles.ravel()
    tile = np.empty((STRIP, COLUMNS), np.uint16)
    counts = np.empty((STRIP, COLUMNS), np.int32)
    flat_tile = tile.ravel()
    flat_counts = counts.ravel()
    found = np.empty((1024, 3), np.int64)
    n_found = 0
    for strip in range(start, stop):
        block, offset = divmod(strip * STRIP, COLUMNS)
        for other in range(block, n_blocks):
            counts[:] = 0
            for slab in range(0, n_steps, SLAB):
                tile[:] = 0
                for k in range(slab, min(slab + SLAB, n_steps), STEPS):
                    n_triples = min(STEPS, n_steps - k) // TRIPLE
                    pair = (block * room + k) * COLUMNS + offset
                    column = (other * room + k) * COLUMNS
                    for row in range(0, STRIP, 2):
                        count_4(
                            tables,
                            flat_nibbles,
                            pair + row,
                            column,
                            n_triples,
                            flat_tile,
                            row * COLUMNS,
                        )
                for t in range(STRIP * COLUMNS):
                    flat_counts[t] += flat_tile[t]
            found, n_found = _passing(
                counts,
                strip * STRIP,
                other * COLUMNS,
                COLUMNS,
                n_samples,
                spin_sums,
                scales,
                level,
                found,
                n_found,
            )
    return found[:n_found]


@njit(**KERNEL)
def correlated_by_popcount(start, stop, words, n_samples, spin_sums, scales, level):
    """The same by XOR and popcount, for processors with a vector popcount.

    words: (n_spins, n_words) uint64     spin_sums, scales: at least (n_spins,), as above
    """
    n_spins, n_words = words.shape
    counts = np.empty((STRIP, COLUMNS), np.int32)
    found = np.empty((1024, 3), np.int64)
    n_found = 0
    for strip in range(start, stop):
        first_row = strip * STRIP
        for first in range(first_row // COLUMNS * COLUMNS, n_spins, COLUMNS):
            width = min(COLUMNS, n_spins - first)
            for r in range(min(STRIP, n_spins - first_row)):
                mine = words[first_row + r]
                for c in range(width):
                    other = words[first + c]
                    differ = np.uint64(0)
                    for w in range(n_words):
                        differ += popcount(mine[w] ^ other[w])
                    counts[r, c] = np.int32(differ)
            found, n_found = _passing(
                counts, first_row, first, width, n_samples, spin_sums, scales, level, found, n_found
            )
    return found[:n_found]


@njit(**PART)
def _passing(
    counts, first_row, first_column, width, n_samples, spin_sums, scales, level, found, n_found
):
    """Append (row, column, count) of the pairs of a tile that pass; `found` grows as it must."""
    m = np.float32(n_samples)
    sums = spin_sums[first_column : first_column + width]
    limits = scales[first_column : first_column + width]
    for r in range(min(len(counts), len(scales) - first_row)):
        i = first_row + r
        row = counts[r, :width]
        factor = spin_sums[i] / m
        limit = np.float32(level) * scales[i]
        n_here = 0
        for c in range(width):
            n_here += (
                abs(m - np.float32(2) * np.float32(row[c]) - factor * sums[c]) > limit * limits[c]
            )
        if n_here == 0:
            continue
        found = room_for(found, n_found, n_here)
        for c in range(max(0, i + 1 - first_column), width):
            if abs(m - np.float32(2) * np.float32(row[c]) - factor * sums[c]) > limit * limits[c]:
                found[n_found, 0] = i
                found[n_found, 1] = first_column + c
                found[n_found, 2] = row[c]
                n_found += 1
    return found, n_found
