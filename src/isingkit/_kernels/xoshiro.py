"""Random words, one at a time (xoshiro256++); `vectors.py` has the same for many generators."""

import numpy as np
from numba import njit

from isingkit._kernels.flags import PART


@njit(**PART)
def next_word(stream, stride):
    """A random uint64, by the first of the generators that lie `stride` apart.

    stream: (4 * stride,) uint64, moved on
    """
    s0, s1, s2, s3 = stream[0], stream[stride], stream[2 * stride], stream[3 * stride]
    total = s0 + s3
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    stream[2 * stride] = s2 ^ s0 ^ (s1 << np.uint64(17))
    stream[stride] = s1 ^ s2 ^ s0
    stream[0] = s0 ^ s3 ^ s1
    turned = s3 ^ s1
    stream[3 * stride] = (turned << np.uint64(45)) | (turned >> np.uint64(19))
    return word


@njit(**PART)
def next_uniform(stream, stride):
    """A random number in [0, 1), of 53 bits."""
    return np.float64(next_word(stream, stride) >> np.uint64(11)) * 2.0**-53
