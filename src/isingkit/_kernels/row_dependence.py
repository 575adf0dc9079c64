"""Distances of rows, counted on bits."""

import numpy as np
from numba import njit

from isingkit._kernels.flags import KERNEL, PART
from isingkit._kernels.gram import popcount
from isingkit._kernels.workspace import fill, whole_numbers


@njit(**KERNEL)
def distance_counts(start, stop, rows, step, n_first, n_places):
    """(3 * n_places,): how many pairs of rows differ in 0, 1, ... columns of the first n_first
    words of rows, then in those of the other words, then in all.

    Pairs are those of rows 0, step, 2 step, ... with all rows, each pair once; start and stop count
    the former.
    rows: (n_rows, n_row_words) uint64
    """
    n_rows, n_row_words = rows.shape
    counts = whole_numbers(3 * n_places)
    fill(counts, 0)
    for query in range(start, stop):
        a = query * step
        mine = rows[a]
        for b in range(n_rows):
            if b <= a and b % step == 0:
                continue
            other = rows[b]
            first = np.uint64(0)
            second = np.uint64(0)
            for w in range(n_first):
                first += popcount(mine[w] ^ other[w])
            for w in range(n_first, n_row_words):
                second += popcount(mine[w] ^ other[w])
            counts[np.int64(first)] += 1
            counts[n_places + np.int64(second)] += 1
            counts[2 * n_places + np.int64(first + second)] += 1
    return counts


@njit(**PART)
def _distance(mine, other):
    differ = np.uint64(0)
    for w in range(len(mine)):
        differ += popcount(mine[w] ^ other[w])
    return np.int64(differ)


@njit(**KERNEL)
def close_pairs(start, stop, rows, largest):
    """Flat (3, n): the pairs a < b of rows that differ in at most `largest` columns, and in how
    many, for a from start to stop.

    rows: (n_rows, n_row_words) uint64
    """
    n_pairs = 0
    for a in range(start, stop):
        for b in range(a + 1, len(rows)):
            n_pairs += _distance(rows[a], rows[b]) <= largest
    found = whole_numbers(3 * n_pairs)
    k = 0
    for a in range(start, stop):
        for b in range(a + 1, len(rows)):
            distance = _distance(rows[a], rows[b])
            if distance <= largest:
                found[k] = a
                found[n_pairs + k] = b
                found[2 * n_pairs + k] = distance
                k += 1
    return found


@njit(**KERNEL)
def lagged_distances(start, stop, rows, lag, distances):
    """distances[a]: columns in which rows a and a + lag differ, for a from start to stop.

    rows: (n_rows, n_row_words) uint64     distances: (n_rows - lag,) int64, overwritten
    """
    n_row_words = rows.shape[1]
    for a in range(start, stop):
        differ = np.uint64(0)
        for w in range(n_row_words):
            differ += popcount(rows[a, w] ^ rows[a + lag, w])
        distances[a] = np.int64(differ)
