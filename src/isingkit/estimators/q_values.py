"""q-values: the share of false ones to expect among a test and all that are surer."""

import numpy as np

from isingkit.arrays import FloatArray


def step_up(expected: FloatArray) -> FloatArray:
    """From how many tests would do as well by chance (Benjamini and Hochberg, 1995)."""
    order = np.argsort(expected, kind="stable")
    stepped = expected[order] / np.arange(1, len(expected) + 1)
    q_values = np.empty(len(expected))
    least_above = np.minimum.accumulate(stepped[::-1])[::-1]
    q_values[order] = np.minimum(least_above, 1.0)
    return q_values


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """From p-values; NaN where these are, which are no tests."""
    q_values = np.full(len(p_values), np.nan)
    is_tested = ~np.isnan(p_values)
    q_values[is_tested] = step_up(p_values[is_tested] * is_tested.sum())
    return q_values
