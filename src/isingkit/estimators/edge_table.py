"""The table of edges: one row a pair, from its tests."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.edge_tests import EdgeTests
from isingkit.estimators.selection import DIGITS


def surest_first(tests: EdgeTests, *, inside: bool) -> IntArray:
    """Which pairs, of the graph or outside it; of equal z-scores the first pair's."""
    chosen = np.flatnonzero(tests.inside == inside)
    sizes = np.round(np.abs(tests.z_scores[chosen]), DIGITS)
    return chosen[np.argsort(-sizes, kind="stable")]


def edge_table(
    names: tuple[str, ...],
    tests: EdgeTests,
    chosen: IntArray,
    couplings: FloatArray,
    errors: FloatArray,
) -> NDArray[Any]:
    """Structured array: source, target, coupling, std_error, z, p_value, q_value."""
    labels = np.array(names, dtype=np.str_)
    source, target = tests.pairs[chosen].T
    columns = {
        "source": labels[source],
        "target": labels[target],
        "coupling": couplings,
        "std_error": errors,
        "z": tests.z_scores[chosen],
        "p_value": tests.p_values[chosen],
        "q_value": tests.q_values[chosen],
    }
    kinds: list[tuple[str, Any]] = [(name, values.dtype) for name, values in columns.items()]
    table = np.empty(len(chosen), dtype=kinds)
    for name, values in columns.items():
        table[name] = values
    return table
