"""Bits of spins and back."""

import numpy as np
from numba import njit

from isingkit._kernels.flags import KERNEL, PART


@njit(**KERNEL)
def pack_words(start, stop, values, words):
    """Bit b of words[j, w] is set where values[64 w + b, j] > 0, for words start to stop.

    values: (n_samples, n_spins) int8     words: (n_spins, n_words) uint64, overwritten
    """
    n_samples, n_spins = values.shape
    block = np.empty((8, n_spins), np.uint8)  # eight samples of every spin make one byte each
    # rows of words lie pages apart: gather several before visiting each
    piece = np.empty((stop - start, n_spins), np.uint64)
    for w in range(start, stop):
        for byte in range(8):
            first = 64 * w + 8 * byte
            if first + 8 <= n_samples:
                _pack_eight(values[first : first + 8], block[byte])
            else:
                _pack_fewer(values[min(first, n_samples) :], block[byte])
        _join_bytes(block, piece[w - start])
    for j in range(n_spins):
        for w in range(start, stop):
            words[j, w] = piece[w - start, j]


@njit(**PART)
def _pack_eight(rows, out):
    a, b, c, d, e, f, g, h = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7]
    for j in range(len(out)):
        low = (a[j] > 0) | ((b[j] > 0) << 1) | ((c[j] > 0) << 2) | ((d[j] > 0) << 3)
        high = (e[j] > 0) | ((f[j] > 0) << 1) | ((g[j] > 0) << 2) | ((h[j] > 0) << 3)
        out[j] = low | (high << 4)


@njit(**PART)
def _join_bytes(block, out):
    for j in range(len(out)):
        word = np.uint64(0)
        for byte in range(8):
            word |= np.uint64(block[byte, j]) << np.uint64(8 * byte)
        out[j] = word


@njit(**PART)
def _pack_fewer(rows, out):
    for j in range(len(out)):
        out[j] = 0
    for bit in range(len(rows)):
        for j in range(len(out)):
            out[j] |= (rows[bit, j] > 0) << bit


@njit(**KERNEL)
def unpack_rows(start, stop, words, out):
    """out[j, m] = +1 or -1 as bit m of words[j] is set or not, for spins start to stop.

    words: (n_spins, n_words) uint64     out: (n_spins, n_samples) int8 or float64, overwritten
    """
    n_samples = out.shape[1]
    for j in range(start, stop):
        for w in range((n_samples + 63) // 64):
            word = words[j, w]
            row = out[j, 64 * w : min(64 * w + 64, n_samples)]
            for bit in range(len(row)):
                row[bit] = 2 * np.int64((word >> np.uint64(bit)) & np.uint64(1)) - 1
