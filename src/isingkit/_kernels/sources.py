"""Spins and covariances from matrices or from bits: kernels need not know which."""

import numpy as np
from numba import types
from numba.extending import overload

from isingkit._kernels.gram import popcount

# arrays and numbers of a source with weights, and of one with missing values
_WEIGHTED, _INCOMPLETE = 5, 6
_NIBBLES = 16  # of a word


def spin_row(spins, i, out):
    """out: overwritten with the values of spin i, -1 or +1, or 0 where missing.

    spins: (n_spins, n_samples) float64, or (n_spins, n_words) uint64
    """
    raise NotImplementedError


@overload(spin_row)
def _spin_row(spins, i, out):
    if spins.dtype != types.uint64:

        def from_matrix(spins, i, out):
            for m in range(len(out)):
                out[m] = spins[i, m]

        return from_matrix

    def from_bits(spins, i, out):
        for m in range(len(out)):
            out[m] = 1.0 if (spins[i, m >> 6] >> np.uint64(m & 63)) & np.uint64(1) else -1.0

    return from_bits


def weights_by_nibble(weights):
    """(n_words, 16, 16): the total weight of the rows that the bits of a nibble stand for.

    weights: (n_rows,)     [w, k, x]: of nibble x in place k of word w
    """
    n_words = -(-len(weights) // 64)
    padded = np.zeros((n_words, _NIBBLES, 1, 4))
    padded.ravel()[: len(weights)] = weights
    is_set = (np.arange(16)[:, None] >> np.arange(4)) & 1
    return np.ascontiguousarray((padded * is_set).sum(axis=3))


def covariance(source, i, j):
    """Sum over samples of the product of centred spins i and j.

    source: (n_spins, n_spins) float64, or words, sums of spins (0 where these are not centred), the
    number of samples, a float, and (n_covariates, n_spins) sums of spins times covariates, which
    are orthonormal: what these explain is taken off. Where rows have weights, their total is the
    number of samples, and after these come sums of weights, as `weights_by_nibble` has them. Where
    values are missing, words that say which are present come last: covariances are over the rows
    where both are, scaled to all, and sums say only whether spins are centred
    """
    raise NotImplementedError


def _weighted_covariance(source, i, j):
    words, sums, total, explained, tables = source
    mine = words[i]
    other = words[j]
    differ = 0.0
    for w in range(words.shape[1]):
        word = mine[w] ^ other[w]
        for k in range(_NIBBLES):
            differ += tables[w, k, (word >> np.uint64(4 * k)) & np.uint64(15)]
    found = total - 2 * differ - sums[i] / total * sums[j]
    for k in range(len(explained)):
        found -= explained[k, i] * explained[k, j]
    return found


def _pairwise_covariance(source, i, j):
    words, are_centred, total, explained, tables, present = source
    both = 0.0
    differ = 0.0
    high_i = 0.0
    high_j = 0.0
    for w in range(words.shape[1]):
        seen = present[i, w] & present[j, w]
        apart = (words[i, w] ^ words[j, w]) & seen
        up_i = words[i, w] & seen
        up_j = words[j, w] & seen
        for k in range(_NIBBLES):
            table = tables[w, k]
            shift = np.uint64(4 * k)
            both += table[(seen >> shift) & np.uint64(15)]
            differ += table[(apart >> shift) & np.uint64(15)]
            high_i += table[(up_i >> shift) & np.uint64(15)]
            high_j += table[(up_j >> shift) & np.uint64(15)]
    found = 0.0
    if both > 0:
        means = (2 * high_i - both) / both * ((2 * high_j - both) / both)
        found = total * ((both - 2 * differ) / both - are_centred[0] * means)
    for k in range(len(explained)):
        found -= explained[k, i] * explained[k, j]
    return found


@overload(covariance)
def _covariance(source, i, j):
    if isinstance(source, types.Array):
        return lambda source, i, j: source[i, j]
    if len(source) == _WEIGHTED:
        return _weighted_covariance
    if len(source) == _INCOMPLETE:
        return _pairwise_covariance

    def from_bits(source, i, j):
        words, sums, n_samples, explained = source
        mine = words[i]
        other = words[j]
        differ = np.uint64(0)
        for w in range(words.shape[1]):
            differ += popcount(mine[w] ^ other[w])
        agreement = n_samples - 2 * np.int64(differ)
        found = agreement - sums[i] / n_samples * sums[j]  # rounded as in `Bits.centred`
        for k in range(len(explained)):
            found -= explained[k, i] * explained[k, j]
        return found

    return from_bits
