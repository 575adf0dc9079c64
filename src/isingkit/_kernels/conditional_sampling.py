"""Heat-bath sweeps of many chains at once, each with fields of its own."""

import numpy as np
from numba import njit

from isingkit._kernels.elementary import exp
from isingkit._kernels.flags import KERNEL, PART, VECTOR_PART
from isingkit._kernels.xoshiro import next_word

LANES = 64  # chains of one block; their states of one spin are one cache line
_OF_ONE = np.uint64(1023 << 52)  # bits of the number 1


@njit(**KERNEL)
def sweeps_given(
    start, stop, graph, fields, effects, covariates, random_order, streams, states, n_sweeps
):
    """Sweeps of 64 chains a block, for blocks start to stop; chains have covariates of their own.

    graph: indptr, indices: int64, couplings: float64, CSR of J     fields: (n_spins,)
    effects: (n_spins, n)     covariates: (n_blocks, LANES, n)
    streams: (n_blocks, 4 * LANES) uint64
    states: (n_blocks, n_spins * LANES) int8; both are left where the next call goes on
    """
    indptr, indices, couplings = graph
    n_spins = len(fields)
    shifted = np.empty((n_spins, LANES))
    total = np.empty(LANES)
    stream = np.empty(4 * LANES, np.uint64)  # of its own: threads must not share cache lines
    for block in range(start, stop):
        state = states[block].reshape(n_spins, LANES)
        _copy(streams[block], stream)
        _shift(fields, effects, covariates[block], shifted)
        for _ in range(n_sweeps):
            for step in range(n_spins):
                i = _random_spin(stream, n_spins) if random_order else step
                _copy(shifted[i], total)
                for k in range(indptr[i], indptr[i + 1]):
                    _pull(couplings[k], state[indices[k]], total)
                _draw(
                    total,
                    stream[:LANES],
                    stream[LANES : 2 * LANES],
                    stream[2 * LANES : 3 * LANES],
                    stream[3 * LANES :],
                    state[i],
                )
        _copy(stream, streams[block])


@njit(**VECTOR_PART)
def _copy(source, target):
    for k in range(len(target)):
        target[k] = source[k]


@njit(**VECTOR_PART)
def _shift(fields, effects, covariates, shifted):
    """shifted: (n_spins, LANES), overwritten with the fields of each chain."""
    for i in range(len(fields)):
        for lane in range(LANES):
            field = fields[i]
            for k in range(effects.shape[1]):
                field += effects[i, k] * covariates[lane, k]
            shifted[i, lane] = field


@njit(**VECTOR_PART)
def _pull(coupling, other, total):
    """Add to the field of each chain what a neighbour in its state does to it."""
    for lane in range(LANES):
        total[lane] += coupling * other[lane]


@njit(**VECTOR_PART)
def _draw(total, first, second, third, fourth, own):
    """own: (LANES,) int8, overwritten with a spin's states given its fields.

    first to fourth: (LANES,) uint64, a generator a chain (xoshiro256++), moved on
    """
    for lane in range(LANES):
        s0 = first[lane]
        s1 = second[lane]
        s2 = third[lane]
        s3 = fourth[lane]
        added = s0 + s3
        word = ((added << np.uint64(23)) | (added >> np.uint64(41))) + s0
        turned = s3 ^ s1
        first[lane] = s0 ^ turned
        second[lane] = s1 ^ s2 ^ s0
        third[lane] = s2 ^ s0 ^ (s1 << np.uint64(17))
        fourth[lane] = (turned << np.uint64(45)) | (turned >> np.uint64(19))
        # 52 bits after the point of a number from 1 to 2
        uniform = np.uint64((word >> np.uint64(12)) | _OF_ONE).view(np.float64) - 1.0
        own[lane] = 1 if uniform * (1.0 + exp(-2 * total[lane])) < 1.0 else -1


@njit(**PART)
def _random_spin(stream, n_spins):
    """A random spin, the same of all chains, by the first chain's generator; the high half of a
    product, for n_spins < 2**32.
    """
    word = next_word(stream, LANES)
    return np.int64(((word >> np.uint64(32)) * np.uint64(n_spins)) >> np.uint64(32))
