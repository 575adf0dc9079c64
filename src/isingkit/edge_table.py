"""The table of edges: its columns, in structured arrays, edges.csv, summaries and reports.

Every such table follows from EDGE_TABLE and PAGE_TABLE. A new column is an entry here and a value
in the `edges_` of the estimators that know it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isingkit.result_table import ResultTable
from isingkit.spins import Names


@dataclass(frozen=True, slots=True)
class EdgeColumn:
    """A property of an edge."""

    name: str  # in arrays, edges.csv and the contents of reports
    kind: type  # str or float
    label: str  # above a column of text
    format: str = ""  # of one number, for people

    def text(self, value: Any) -> str:
        """A value for people; "" where it is not known."""
        return "" if value is None else format(value, self.format)


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A column of a report's table."""

    key: str  # of the element that heads it
    heading: str
    columns: Names  # of COLUMNS that it shows
    sort: str  # how viewer.js sorts by it: "name", "value", "magnitude" or "width"
    explanation: str = ""  # a sentence or two above the table

    @property
    def is_number(self) -> bool:
        return self.sort != "name"

    def is_known(self, edges: Sequence[Mapping[str, Any]]) -> bool:
        """Whether an edge has all it shows; pages of earlier versions have no intervals."""
        return any(all(edge.get(name) is not None for name in self.columns) for edge in edges)


EDGE_TABLE = (
    EdgeColumn("source", str, "source"),
    EdgeColumn("target", str, "target"),
    EdgeColumn("coupling", float, "coupling", "+.3f"),
    # ends of the 95 percent confidence interval
    EdgeColumn("low", float, "low", "+.3f"),
    EdgeColumn("high", float, "high", "+.3f"),
    EdgeColumn("std_error", float, "error", ".3f"),
    EdgeColumn("z", float, "z", "+.2f"),
    EdgeColumn("p_value", float, "p-value", ".2g"),
    EdgeColumn("q_value", float, "q-value", ".2g"),
)
# known only where it was asked for: edges.csv has the columns above, whatever was
_PROBABILITY = EdgeColumn("probability", float, "probability", ".3f")
PAGE_TABLE = (
    PageColumn("a", "Variable", ("source",), "name"),
    PageColumn("b", "Variable", ("target",), "name"),
    PageColumn(
        "coupling", "Coupling", ("coupling",), "value",
        "The coupling of two variables says how strongly they go together whatever the others "
        "do: above 0 they agree, below 0 they exclude each other.",
    ),
    PageColumn(
        "interval", "95 % interval", ("low", "high"), "width",
        "The interval holds the coupling with 95 percent confidence; where it reaches clearly "
        "further to 0 than away from it, the edge may have been found by luck, "
        "and be weaker than it looks. One that only says up to or down to what: there is a "
        "coupling, but these rows do not tell how weak it may be.",
    ),
    PageColumn(
        "z", "z", ("z",), "magnitude",
        "z says how far a pair is from chance, in standard errors.",
    ),
    PageColumn(
        "q_value", "q", ("q_value",), "value",
        "q is the share of false edges to expect among this one and all that are surer.",
    ),
    PageColumn(
        "probability", "P(edge)", ("probability",), "value",
        "P(edge) is the probability that there is an edge, given the data and what all pairs "
        "together say of how many edges there are and how strong.",
    ),
)  # fmt: skip
COLUMNS = {column.name: column for column in (*EDGE_TABLE, _PROBABILITY)}
CSV_COLUMNS = tuple(column.name for column in EDGE_TABLE)
CSV_ALIKE = ("source_alike", "target_alike")  # more of them where columns were merged
TESTED = tuple(column.name for column in EDGE_TABLE[3:])  # what only a test of an edge tells


def edge_array(n_edges: int, names: np.ndarray[Any, Any], columns: Sequence[str]) -> ResultTable:
    """An empty table of edges between spins of these names."""
    kinds = {str: names.dtype, float: np.dtype(np.float64)}
    dtype = [(name, kinds[COLUMNS[name].kind]) for name in columns]
    return np.empty(n_edges, dtype=dtype).view(ResultTable)


def interval_text(low: float | None, high: float | None) -> str:
    """An interval for people.

    One that ends at 0 says how strong a coupling is at most: that there is one, its test has shown.
    """
    if low is None or high is None:
        return ""
    if low == 0:
        return f"up to {COLUMNS['high'].text(high)}"
    if high == 0:
        return f"down to {COLUMNS['low'].text(low)}"
    return f"{COLUMNS['low'].text(low)} to {COLUMNS['high'].text(high)}"
