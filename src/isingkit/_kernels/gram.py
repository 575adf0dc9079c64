"""Pair sums by XOR and popcount: the plain twin of `lookup_popcount`.

The only one that knows missing values.
"""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

from isingkit._kernels.flags import KERNEL


@intrinsic
def popcount(typing, word):
    """Number of set bits. Inside a loop over words LLVM turns it into the processor's vector
    popcount, where there is one.
    """

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@njit(**KERNEL)
def pair_sums(start, stop, words, n_samples, sums):
    """sums[i, j] = sums[j, i] = n_samples - 2 * (samples in which spins i and j differ), for rows
    start to stop and j >= i.

    words: (n_spins, n_words) uint64     sums: (n_spins, n_spins) int64, overwritten
    One writer per entry and integer sums: the result does not depend on the number of threads.
    """
    n_spins, n_words = words.shape
    for i in range(start, stop):
        mine = words[i]
        for j in range(i, n_spins):
            other = words[j]
            differ = np.uint64(0)
            for w in range(n_words):
                differ += popcount(mine[w] ^ other[w])
            sums[i, j] = sums[j, i] = n_samples - 2 * np.int64(differ)


@njit(**KERNEL)
def masked_pair_sums(start, stop, words, present, sums, counts, joint_sums):
    """Pair sums over the samples in which both spins are present, their number, and spin i's own
    sum over them (joint_sums[i, j]).

    For rows start to stop and j >= i; the entries [j, i] come along.
    words, present: (n_spins, n_words) uint64
    sums, counts, joint_sums: (n_spins, n_spins) int64, overwritten
    """
    n_spins, n_words = words.shape
    for i in range(start, stop):
        for j in range(i, n_spins):
            both = np.uint64(0)
            differ = np.uint64(0)
            up_i = np.uint64(0)
            up_j = np.uint64(0)
            for w in range(n_words):
                seen = present[i, w] & present[j, w]
                both += popcount(seen)
                differ += popcount((words[i, w] ^ words[j, w]) & seen)
                up_i += popcount(words[i, w] & seen)
                up_j += popcount(words[j, w] & seen)
            counts[i, j] = counts[j, i] = np.int64(both)
            sums[i, j] = sums[j, i] = np.int64(both) - 2 * np.int64(differ)
            joint_sums[i, j] = 2 * np.int64(up_i) - np.int64(both)
            joint_sums[j, i] = 2 * np.int64(up_j) - np.int64(both)


@njit(**KERNEL)
def spin_sums(start, stop, words, n_samples, sums):
    """sums[j] = sum of spin j over all samples, for rows start to stop.

    words: (n_spins, n_words) uint64     sums: (n_spins,) int64, overwritten
    """
    for j in range(start, stop):
        mine = words[j]
        up = np.uint64(0)
        for w in range(len(mine)):
            up += popcount(mine[w])
        sums[j] = 2 * np.int64(up) - n_samples


@njit(**KERNEL)
def mirror(start, stop, matrix):
    """matrix[j, i] = matrix[i, j] for rows i from start to stop and j > i, in square tiles that
    stay in cache.
    """
    for first in range(start, len(matrix), 64):
        for i in range(start, stop):
            for j in range(max(i + 1, first), min(first + 64, len(matrix))):
                matrix[j, i] = matrix[i, j]
