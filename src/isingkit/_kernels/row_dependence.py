"""Distances of rows, and changes from row to row, counted on bits."""

import numpy as np
from numba import njit

from isingkit._kernels.flags import KERNEL, PART
from isingkit._kernels.gram import popcount
from isingkit._kernels.workspace import fill, whole_numbers


@njit(**KERNEL)
def bits_by_row(start, stop, words, places, rows):
    """Bit places[k] of rows[a] is bit a of words[k], for words start to stop of every column.

    words: (n_columns, n_words) uint64     places: (n_columns,) int64
    rows: (n_rows, n_row_words) uint64, zero before
    """
    n_rows = len(rows)
    for w in range(start, stop):
        n_bits = min(64, n_rows - 64 * w)
        for k in range(len(words)):
            word = words[k, w]
            place = places[k] >> 6
            shift = np.uint64(places[k] & 63)
            for bit in range(n_bits):
                one = (word >> np.uint64(bit)) & np.uint64(1)
                rows[64 * w + bit, place] |= one << shift


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
def lagged_changes(start, stop, words, present, within, lag, counts):
    """counts[0, i]: rows a of column i with another value in row a + lag; counts[1, i]: of how many
    rows, for columns start to stop.

    words, present: (n_columns, n_words) uint64, values and which of them are not missing
    within: (n_words,) uint64, bits of the rows a that are looked at
    counts: (2, n_columns) int64, overwritten
    """
    n_words = words.shape[1]
    skip = lag >> 6
    shift = np.uint64(lag & 63)
    back = np.uint64(63) - shift
    for i in range(start, stop):
        changes = np.uint64(0)
        seen = np.uint64(0)
        for w in range(n_words - skip):
            low = words[i, w + skip] >> shift
            there = present[i, w + skip] >> shift
            if w + skip + 1 < n_words:
                # in two steps, for a shift by 64 is none
                low |= (words[i, w + skip + 1] << np.uint64(1)) << back
                there |= (present[i, w + skip + 1] << np.uint64(1)) << back
            both = within[w] & present[i, w] & there
            changes += popcount((words[i, w] ^ low) & both)
            seen += popcount(both)
        counts[0, i] = np.int64(changes)
        counts[1, i] = np.int64(seen)
