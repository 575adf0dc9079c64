"""Tables of tested edges: one row a pair."""

import numpy as np

from isingkit.arrays import FloatArray, IntArray
from isingkit.edge_table import edge_array
from isingkit.estimators.edge_tests import EdgeTests
from isingkit.estimators.selection import DIGITS
from isingkit.result_table import ResultTable


def surest_first(tests: EdgeTests, *, inside: bool) -> IntArray:
    """Which pairs, of the graph or outside it; of equal z-scores the first pair's."""
    chosen = np.flatnonzero(tests.inside == inside)
    sizes = np.round(np.abs(tests.z_scores[chosen]), DIGITS)
    return chosen[np.argsort(-sizes, kind="stable")]


def tested_edges(
    names: tuple[str, ...],
    tests: EdgeTests,
    chosen: IntArray,
    couplings: FloatArray,
    errors: FloatArray,
    intervals: FloatArray | None,
) -> ResultTable:
    """Columns of `edge_table`; low and high, of intervals, where there are any."""
    labels = np.array(names, dtype=np.str_)
    source, target = tests.pairs[chosen].T
    values = {
        "source": labels[source],
        "target": labels[target],
        "coupling": couplings,
        **({} if intervals is None else {"low": intervals[:, 0], "high": intervals[:, 1]}),
        "std_error": errors,
        "z": tests.z_scores[chosen],
        "p_value": tests.p_values[chosen],
        "q_value": tests.q_values[chosen],
    }
    table = edge_array(len(chosen), labels, tuple(values))
    for name, column in values.items():
        table[name] = column
    return table
