"""A comparison of groups in words, for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isingkit.result_table import Record, on_one_line

if TYPE_CHECKING:
    from isingkit.groups.comparison import GroupComparison

_MOST_SHOWN = 10  # rows of a table


def summary(found: "GroupComparison") -> list[str]:
    """Lines: what was compared, whether networks differ, and where."""
    return [
        heading(found),
        "",
        verdict(found),
        "",
        *_aligned(overall_cells(found)),
        "",
        *_differences(found),
    ]


def heading(found: "GroupComparison") -> str:
    """What was compared, and how."""
    groups = ", ".join(
        f"{on_one_line(label)} ({size} rows)"
        for label, size in zip(found.labels, found.sizes, strict=True)
    )
    how = "likelihood ratios" if found.fields == "free" else "score tests"
    if found.method == "nct":
        how = "Network Comparison Test with eLasso"
    what = f"{len(found.names)} columns, {found.n_pairs} pairs"
    return f"{groups}; {what}; {how}, {found.n_permutations} permutations"


def verdict(found: "GroupComparison") -> str:
    """Whether the networks differ."""
    p_value = found.p_value
    answer = "the networks differ" if p_value <= 0.05 else "no difference of the networks shown"
    text = f"{answer} (p = {p_value:.2g}, the largest difference of all pairs)"
    if found.n_untestable:
        text += (
            f"; {found.n_untestable} pairs could not be compared, for a group tells nothing of them"
        )
    return text


def overall_cells(found: "GroupComparison") -> list[list[str]]:
    """Texts of the table of global strength and density, its head first."""
    rows = [["", *found.labels, "difference", "95 % interval", "p"]]
    for row in found.overall:
        values = [f"{row[f'value_{label}']:.3f}" for label in found.labels]
        difference = f"{row['difference']:+.3f}"
        ends = interval(row["low"], row["high"])
        rows.append([str(row["measure"]), *values, difference, ends, number(row["p_value"])])
    return rows


def edge_cells(found: "GroupComparison", n_most: int | None = None) -> list[list[str]]:
    """Texts of the table of edges, its head first."""
    rows = [["column", "column", *found.labels, "difference", "error", "z", "p", "q"]]
    for row in found.edges[:n_most]:
        couplings = [f"{row[f'coupling_{label}']:+.3f}" for label in found.labels]
        ends = [str(row["source"]), str(row["target"])]
        difference = f"{row['difference']:+.3f}"
        error = number(row["std_error"], ".3f")
        sure = [number(row["z"], "+.2f"), number(row["p_value"]), number(row["q_value"])]
        rows.append([*ends, *couplings, difference, error, *sure])
    return rows


def centrality_cells(found: "GroupComparison") -> list[list[str]]:
    """Texts of the table of centralities, its head first."""
    rows = [["column", "measure", *found.labels, "difference", "95 % interval", "p", "q"]]
    for row in found.centralities:
        values = [f"{row[f'value_{label}']:.3f}" for label in found.labels]
        texts = [str(row["name"]), str(row["measure"])]
        difference = f"{row['difference']:+.3f}"
        ends = interval(row["low"], row["high"])
        sure = [number(row["p_value"]), number(row["q_value"])]
        rows.append([*texts, *values, difference, ends, *sure])
    return rows


def as_rows(table: NDArray[Any]) -> list[Record]:
    """Rows of a structured array as JSON has them, None where a number is not known."""
    rows = []
    for row in table.tolist():
        values = [None if value != value else value for value in row]
        rows.append(dict(zip(table.dtype.names or (), values, strict=True)))
    return rows


def number(value: float, layout: str = ".2g") -> str:
    """A number for people; a dash where it is not known."""
    return "-" if np.isnan(value) else format(float(value), layout)


def interval(low: float, high: float) -> str:
    """An interval for people; a dash where it is not known."""
    return "-" if np.isnan(low) else f"{low:+.3f} to {high:+.3f}"


def _differences(found: "GroupComparison") -> list[str]:
    """The pairs that differ, and those next to it."""
    n_differing = len(found.differing)
    kind = "family-wise p" if found.control == "fwer" else "q"
    pairs = "1 pair differs" if n_differing == 1 else f"{n_differing} pairs differ"
    if len(found.edges) == 0:
        return ["no pair is an edge of all rows together, and none differs"]
    n_shown = min(max(n_differing, 3), _MOST_SHOWN)
    lines = _aligned(edge_cells(found, n_shown))
    more = len(found.edges) - n_shown
    tail = [f"and {more} more pairs"] if more > 0 else []
    return [f"{pairs} ({kind} at most 0.05); the surest:", "", *lines, *tail]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: texts to the left, numbers to the right."""
    rows = [[on_one_line(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if _is_text(rows, place) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def _is_text(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Whether a column is headed as texts are."""
    return rows[0][place] in ("", "column")
