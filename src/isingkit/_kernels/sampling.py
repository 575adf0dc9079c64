"""Heat-bath sweeps of many chains at once."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath=False)
def sweep_blocks(start, stop, indptr, indices, couplings, fields, seeds, n_sweeps, words):
    """Heat-bath sweeps, spins in order, of 64 chains a block, for blocks start to stop; each block leaves one word of each spin.

    indptr, indices, couplings: CSR of J     seeds: (n_blocks, 64) uint64, one stream a chain
    words: (n_spins, n_blocks) uint64, overwritten: bit b of words[i, w] is spin i of chain 64 w + b
    """
    n_spins = len(fields)
    state = np.empty((n_spins, 64), np.int8)
    local = np.empty(64)
    for block in range(start, stop):
        stream = seeds[block].copy()
        for i in range(n_spins):
            for lane in range(64):
                stream[lane] += np.uint64(0x9E3779B97F4A7C15)
                state[i, lane] = 1 if _mixed(stream[lane]) >> np.uint64(63) else -1
        for _ in range(n_sweeps):
            for i in range(n_spins):
                local[:] = 2 * fields[i]
                for k in range(indptr[i], indptr[i + 1]):
                    twice, other = 2 * couplings[k], state[indices[k]]
                    for lane in range(64):
                        local[lane] += twice * other[lane]
                for lane in range(64):
                    stream[lane] += np.uint64(0x9E3779B97F4A7C15)
                    uniform = (_mixed(stream[lane]) >> np.uint64(11)) * (1.0 / (1 << 53))
                    state[i, lane] = 1 if uniform * (1 + np.exp(-local[lane])) < 1 else -1
        for i in range(n_spins):
            word = np.uint64(0)
            for lane in range(64):
                word |= np.uint64(state[i, lane] > 0) << np.uint64(lane)
            words[i, block] = word


@njit(cache=True, nogil=True, fastmath=False, inline="always")
def _mixed(x):
    """splitmix64's finaliser: a counter becomes a random word."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
