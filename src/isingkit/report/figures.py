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
from isingkit.drawing import NEGATIVE, NODE, POSITIVE, Look, draw_network, group_order
from isingkit.fit_check import FitCheck
from isingkit.plots import (
    FIT_CHARTS,
    EdgeWeights,
    FitChart,
    draw_branches,
    draw_edge_weights,
    draw_ranked,
    write_names,
)
from isingkit.report.contents import Contents, by_strength, colours_of
from isingkit.report.minima import branches_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK = "#010203"  # nothing else has this colour; the page puts its own in its place
# the page has them light and dark
_OF_PAGE = {
    _INK: "currentColor",
    NODE: "currentColor",
    POSITIVE: "var(--alike)",
    NEGATIVE: "var(--opposite)",
}
_MOST_RANKED = 40
_MOST_SQUARES = 1000  # edges of a heat map that stays sharp at any size
_SQUARE = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
_MEASURES = {
    "strength": "strength: sum without signs",
    "influence": "influence: sum with signs",
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
    """Couplings of all pairs shown, spins in the order of their groups or communities, then of the
    table.
    """
    colours = colours_of(contents.spins)
    place_of_group: dict[str | None, int] = {one: k for k, one in enumerate(group_order(colours))}
    keys = [place_of_group.get(colour, len(place_of_group)) for colour in colours]
    order = np.argsort(keys, kind="stable")
    place = np.argsort(order)
    names = [_short(contents.spins[k]["name"]) for k in order]
    ends = np.array([[edge["source"], edge["target"]] for edge in contents.edges], dtype=np.intp)
    cells = place[ends.reshape(-1, 2)]
    values = np.array([edge["coupling"] for edge in contents.edges], dtype=np.float64)
    side = 6.0 if len(names) <= 30 else 8.5
    draw = partial(_draw_cells, cells=cells, values=values, names=names)
    return _svg(draw, (side + 1.5, side))


def _draw_cells(axes: "Axes", cells: Any, values: FloatArray, names: Sequence[str]) -> None:
    """Squares for edges alone, so that where there is none the page is seen; of very many edges an
    image.
    """
    from matplotlib.collections import PolyCollection

    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    look: dict[str, Any] = {"cmap": _faint_to_full(), "clim": (-largest, largest)}
    n_names = len(names)
    if len(values) <= _MOST_SQUARES:
        both = np.concatenate([cells, cells[:, ::-1]])
        corners = both[:, None, ::-1] + _SQUARE
        image: Any = PolyCollection(corners, array=np.tile(values, 2), **look)
        axes.add_collection(image)
    else:
        matrix = np.full((n_names, n_names), np.nan)
        matrix[cells[:, 0], cells[:, 1]] = values
        matrix[cells[:, 1], cells[:, 0]] = values
        image = axes.imshow(matrix, interpolation="none", **look)
    axes.set(xlim=(-0.5, n_names - 0.5), ylim=(n_names - 0.5, -0.5), aspect="equal")
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)
    bar = axes.figure.colorbar(image, ax=axes, label="coupling", shrink=0.8)
    bar.outline.set_visible(False)
    bar.ax.patch.set_alpha(0)
    write_names(axes, names)


def _faint_to_full() -> Any:
    """Two colours that get fainter towards 0, on a page of any colour."""
    from matplotlib.colors import ListedColormap, to_rgb

    opacities = np.linspace(0.12, 1.0, 24)  # matplotlib makes an image of more than 50 colours
    below = [(*to_rgb(NEGATIVE), opacity) for opacity in opacities[::-1]]
    return ListedColormap([*below, *((*to_rgb(POSITIVE), opacity) for opacity in opacities)])


def centrality(contents: Contents) -> str:
    """The most connected spins: strength, influence and betweenness."""
    measures = [
        name for name in _MEASURES if all(spin[name] is not None for spin in contents.spins)
    ]
    ranked = by_strength(contents.spins)[:_MOST_RANKED]
    labels = [_short(spin["name"]) for spin in ranked]
    panels = {_MEASURES[name]: [spin[name] for spin in ranked] for name in measures}
    draw = partial(draw_ranked, labels=labels, panels=panels)
    return _svg(draw, (9.0, 1.2 + 0.2 * len(ranked)), len(measures))


def edge_weights(contents: Contents) -> str:
    """Couplings of the strongest edges with their intervals; "" where there are no edges."""
    edges = contents.edges[:_MOST_RANKED]
    if not edges:
        return ""
    names = [_short(spin["name"]) for spin in contents.spins]
    ends = {
        end: np.array([edge.get(end) for edge in edges], dtype=np.float64)
        for end in ("low", "high")
    }
    weights = EdgeWeights(
        labels=[f"{names[edge['source']]} - {names[edge['target']]}" for edge in edges],
        couplings=np.array([edge["coupling"] for edge in edges]),
        **ends,
    )
    draw = partial(draw_edge_weights, weights=weights, size=8)
    return _svg(draw, (9.0, 1.0 + 0.2 * len(edges)))


def loadings(contents: Contents) -> str:
    """Who follows hidden causes, with 95 percent intervals: a panel a cause, the strongest of
    any first.
    """
    shares = contents.facts["hidden_variance_shares"]
    strongest: dict[str, float] = {}
    for row in contents.loadings:
        strongest[row["variable"]] = max(abs(row["loading"]), strongest.get(row["variable"], 0.0))
    ranked = sorted(strongest, key=lambda name: -strongest[name])[:_MOST_RANKED]
    place = {name: len(ranked) - 1 - k for k, name in enumerate(ranked)}

    def draw(axes: Any) -> None:
        for k, one in enumerate(np.atleast_1d(axes), start=1):
            rows = [
                row for row in contents.loadings if row["cause"] == k and row["variable"] in place
            ]
            heights = [place[row["variable"]] for row in rows]
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


def disconnectivity(contents: Contents) -> str:
    """How minima hang together; "" where there is no landscape, or of very many minima."""
    branches = None if contents.landscape is None else branches_of(contents.landscape)
    if branches is None:
        return ""
    n_minima = len(branches.energies)
    width = float(np.clip(3 + 0.3 * n_minima, 4.5, 9.0))
    return _svg(partial(draw_branches, branches=branches), (width, 3.8))


def networks(panels: Sequence[tuple[str, Any]], names: Sequence[str], places: FloatArray) -> str:
    """Networks side by side, in one layout and on one scale; panels: titles and couplings."""
    short = tuple(_short(name) for name in names)
    strongest = max(float(abs(couplings).max()) for _, couplings in panels)

    look = Look(places=places, strongest=strongest)

    def draw(axes: Any) -> None:
        for one, (title, couplings) in zip(np.atleast_1d(axes), panels, strict=True):
            draw_network(one, couplings, short, look)
            one.set_title(_short(title))
        first = np.atleast_1d(axes)[0]
        first.figure.get_layout_engine().set(h_pad=0.15)  # else the tops of titles are cut off

    return _svg(draw, (4.6 * len(panels), 4.2), len(panels))


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
    svg = svg[svg.index("<svg") :]
    for colour, of_page in _OF_PAGE.items():
        svg = svg.replace(colour, of_page)
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
