"""Pair sums of packed bits against a float32 matrix product."""

import numpy as np

import isingkit as ik
from side_by_side import Claim, faster, seconds


def measure() -> list[Claim]:
    """N = 1000, M = 100,000."""
    values = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (100_000, 1000))
    floats = values.astype(np.float32)
    packed = ik.pack(values)
    np.testing.assert_array_equal(ik.gram(packed).sums, floats.T @ floats)  # exact below 2**24
    taken = seconds(
        {
            "product": lambda: floats.T @ floats,
            "gram": lambda: ik.gram(packed),
            "pack and gram": lambda: ik.gram(ik.pack(values)),
        },
        rounds=15,
    )
    peer = f"float32 X.T @ X, numpy {np.__version__}"
    return [
        faster(
            "gram of packed bits, N=1000, M=100,000",
            peer,
            taken["gram"],
            taken["product"],
            at_least=10,
        ),
        faster(
            "as_spins, pack and gram of int8, same",
            peer,
            taken["pack and gram"],
            taken["product"],
            at_least=5,
        ),
    ]
