"""Bits of spins and back."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath=False)
def pack_words(start, stop, values, words, of):
    """Bit b of words[j, w] is set where values[64 w + b, j] == of (of = 1), or where it is not 0 (of = 0), for words start to stop.

    values: (n_samples, n_spins) int8     words: (n_spins, n_words) uint64, overwritten
    """
    n_samples, n_spins = values.shape
    block = np.empty((8, n_spins), np.uint8)  # eight samples of every spin make one byte each
    for w in range(start, stop):
        for byte in range(8):
            first = 64 * w + 8 * byte
            row = block[byte]
            row[:] = 0
            for bit in range(max(0, min(8, n_samples - first))):
                sample = values[first + bit]
                if of == 1:
                    for j in range(n_spins):
                        row[j] |= np.uint8(sample[j] > 0) << np.uint8(bit)
                else:
                    for j in range(n_spins):
                        row[j] |= np.uint8(sample[j] != 0) << np.uint8(bit)
        for j in range(n_spins):
            word = np.uint64(0)
            for byte in range(8):
                word |= np.uint64(block[byte, j]) << np.uint64(8 * byte)
            words[j, w] = word


@njit(cache=True, nogil=True, fastmath=False)
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
