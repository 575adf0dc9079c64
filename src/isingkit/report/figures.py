"""Figures of a report: inline SVG whose texts and lines take the colour of the page, light or
dark.
"""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from isingkit.arrays import FloatArray
from isingkit.drawing import NEGATIVE, POSITIVE, draw_network
from isingkit.fit_check import FitCheck
from isingkit.plots import FIT_CHARTS, FitChart, draw_couplings
from isingkit.report.contents import Contents, by_strength

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK = "#010203"  # nothing else has this colour; the page puts its own in its place
_MOST_RANKED = 40
_MEASURES = {
    "strength": "strength: sum of |J|",
    "influence": "influence: sum of J",
    "betweenness": "betweenness",
}
_INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "isingkit",
    "font.family": "sans-serif",
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(_INKED, _INK),
}


def heat_map(contents: Contents) -> str:
    """Couplings of all pairs shown, spins in the order of their groups, then of the table."""
    by_group = sorted(contents.spins, key=lambda spin: str(spin["group"] or ""))
    place = {spin["name"]: k for k, spin in enumerate(by_group)}
    matrix = np.zeros((len(by_group), len(by_group)))
    for edge in contents.edges:
        i = place[contents.spins[edge["source"]]["name"]]
        j = place[contents.spins[edge["target"]]["name"]]
        matrix[i, j] = matrix[j, i] = edge["coupling"]
    names = [_short(spin["name"]) for spin in by_group]
    side = 6.0 if len(names) <= 30 else 8.5
    return _svg(partial(draw_couplings, couplings=matrix, names=names), (side + 1.5, side))


def centrality(contents: Contents) -> str:
    """The most connected spins: strength, influence and betweenness."""
    measures = [
        name for name in _MEASURES if all(spin[name] is not None for spin in contents.spins)
    ]
    ranked = by_strength(contents.spins)[:_MOST_RANKED]
    rows = np.arange(len(ranked))[::-1]

    def draw(axes: list["Axes"]) -> None:
        for one, name in zip(axes, measures, strict=True):
            values = [spin[name] for spin in ranked]
            one.hlines(rows, 0, values, color="#88888888", lw=1)
            one.plot(values, rows, "o", ms=5, color=POSITIVE)
            one.axvline(0, color="#88888888", lw=1)
            one.set_xlabel(_MEASURES[name])
        axes[0].set_yticks(rows, [_short(spin["name"]) for spin in ranked], fontsize=8)
        axes[0].set_ylim(-0.7, len(ranked) - 0.3)

    return _svg(draw, (9.0, 1.2 + 0.2 * len(ranked)), len(measures))


def loadings(contents: Contents) -> str:
    """Who follows hidden causes, with 95 percent intervals: a panel a cause, the strongest of
    any first.
    """
    shares = contents.facts["hidden_variance_shares"]
    strongest: dict[str, float] = {}
    for row in contents.loadings:
        strongest[row["spin"]] = max(abs(row["loading"]), strongest.get(row["spin"], 0.0))
    ranked = sorted(strongest, key=lambda name: -strongest[name])[:_MOST_RANKED]
    place = {name: len(ranked) - 1 - k for k, name in enumerate(ranked)}

    def draw(axes: Any) -> None:
        for k, one in enumerate(np.atleast_1d(axes), start=1):
            rows = [row for row in contents.loadings if row["cause"] == k and row["spin"] in place]
            heights = [place[row["spin"]] for row in rows]
            values = [row["loading"] for row in rows]
            half_widths = [1.96 * (row["std_error"] or 0.0) for row in rows]
            colours = [POSITIVE if value > 0 else NEGATIVE for value in values]
            one.barh(heights, values, color=colours, height=0.6)
            one.errorbar(values, heights, xerr=half_widths, fmt="none", ecolor=_INK, elinewidth=1)
            one.axvline(0, color="#88888888", lw=1)
            one.set_xlabel(f"cause {k}: loading")
        first = np.atleast_1d(axes)[0]
        first.set_yticks(list(place.values()), [_short(name) for name in place], fontsize=8)
        first.set_ylim(-0.7, len(ranked) - 0.3)

    return _svg(draw, (9.0, 1.2 + 0.2 * len(ranked)), len(shares))


def networks(panels: Sequence[tuple[str, Any]], names: Sequence[str], places: FloatArray) -> str:
    """Networks side by side, in one layout and on one scale; panels: titles and couplings."""
    short = tuple(_short(name) for name in names)
    strongest = max(float(abs(couplings).max()) for _, couplings in panels)

    def draw(axes: Any) -> None:
        for one, (title, couplings) in zip(np.atleast_1d(axes), panels, strict=True):
            draw_network(one, couplings, short, places=places, strongest=strongest)
            one.set_title(_short(title))

    return _svg(draw, (4.6 * len(panels), 4.2), len(panels)).replace("#444444", "currentColor")


def data_and_model(contents: Contents) -> list[tuple[FitChart, str]]:
    """Means, correlations and sums, in the data and in samples of the model."""
    check = contents.fit_check()
    if check is None or check.problem is not None:
        return []
    return [(chart, _fit_chart(chart, check)) for chart in FIT_CHARTS.values()]


def _fit_chart(chart: FitChart, check: FitCheck) -> str:
    return _svg(lambda axes: chart.draw(axes, check), (4.2, 3.8))


def _short(name: str) -> str:
    return name if len(name) <= 30 else name[:29] + "…"


def _svg(draw: Callable[[Any], None], size: tuple[float, float], n_axes: int = 1) -> str:
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # the page's own fonts have it
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=size, layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.subplots(1, n_axes, sharey=n_axes > 1)
        for one in np.atleast_1d(axes):
            one.patch.set_alpha(0)
        draw(axes)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
