"""Tables of tested edges: one row a pair."""

import numpy as np

from isingkit.arrays import FloatArray, IntArray, Pairs
from isingkit.edge_table import edge_array
from isingkit.estimators.edge_tests import EdgeTests
from isingkit.estimators.selection import DIGITS
from isingkit.result_table import ResultTable, frozen
from isingkit.spins import Names


def surest_first(tests: EdgeTests) -> IntArray:
    """Pairs that are no edges, by |z|; of equal z-scores the first pair's."""
    chosen = np.flatnonzero(~tests.inside)
    sizes = np.round(np.abs(tests.z_scores[chosen]), DIGITS)
    return chosen[np.argsort(-sizes, kind="stable")]


def strongest_first(pairs: Pairs, couplings: FloatArray) -> IntArray:
    """The order of edges by |coupling|, as `IsingModel.edges` has it; of equal ones by pair."""
    sizes = np.round(np.abs(couplings), DIGITS)
    return np.lexsort((pairs[:, 1], pairs[:, 0], -sizes))


def tested_edges(
    names: Names,
    tests: EdgeTests,
    chosen: IntArray,
    couplings: FloatArray,
    errors: FloatArray,
    intervals: FloatArray | None,
) -> ResultTable:
    """Columns of `edge_table`; low and high, of intervals, where there are any."""
    labels = np.array(names, dtype=np.str_)
    source, target = tests.pairs[chosen].T
    ends = {} if intervals is None else {"low": intervals[:, 0], "high": intervals[:, 1]}
    values = {
        "source": labels[source],
        "target": labels[target],
        "coupling": couplings,
        **ends,
        "std_error": errors,
        "z": tests.z_scores[chosen],
        "p_value": tests.p_values[chosen],
        "q_value": tests.q_values[chosen],
    }
    table = edge_array(len(chosen), labels, tuple(values))
    for name, column in values.items():
        table[name] = column
    return frozen(table)
