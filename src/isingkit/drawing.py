"""The drawing of a network, and what pictures have in common."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from isingkit.arrays import FloatArray
from isingkit.atomic import replacing
from isingkit.label_places import label_offsets
from isingkit.network_layout import WIDTH, positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# nearly all eyes distinguish blue and orange; negative edges are dashed besides
POSITIVE = "#2166ac"
NEGATIVE = "#c2410c"
NODE = "#444444"
# of groups; those of the report's page
COLOURS = (
    "#0072b2", "#d55e00", "#008060", "#a0408f", "#8c6d00", "#2a9fd6",
    "#5a3d8a", "#6b7280", "#b3003c", "#4d7c0f", "#7a4a1e", "#00707a",
)  # fmt: skip
MOST_LABELS = 120
_FAINT = 0.14  # opacity of edges that do not stand out
_MOST_SIZED = 300  # nodes up to which they are as large as their couplings are strong
_LEADER = 12.0  # points from a node beyond which a line leads to its name
_MOST_IN_LEGEND = 12
_TINY = 1e-300  # in place of 0, to divide by


@dataclass(frozen=True, slots=True)
class Look:
    """How a network is drawn; what is None is found from the network."""

    labels: Sequence[str] | bool | None = None  # of nodes, or whether to write names
    places: FloatArray | None = None  # (n_nodes, 2), between 0 and 1
    strongest: float | None = None  # strength of the widest edge
    groups: Sequence[str | None] | None = None  # of nodes, for colours and a legend
    sizes: FloatArray | None = None  # (n_nodes,): areas of nodes are in proportion
    rings: FloatArray | None = None  # (n_nodes,): shares between 0 and 1; NaN for no ring
    max_edges: int | None = None  # the strongest are drawn


def draw_network(
    axes: "Axes", couplings: scipy.sparse.csr_array, names: Sequence[str], look: Look | None = None
) -> None:
    """Draw the network: blue edges for nodes that agree, dashed orange for those that disagree.

    Edges are as wide and as dark as they are strong.
    """
    look = Look() if look is None else look
    places = positions(couplings) if look.places is None else look.places
    places = places * (WIDTH, 1.0)
    _draw_edges(axes, couplings, places, look)
    radii = _radii(couplings, look)
    colours = _colours(look.groups, len(names))
    if look.rings is not None:
        _draw_rings(axes, places, radii + 2.5, look.rings)
    _draw_nodes(axes, places, radii, colours)
    axes.set_aspect("equal")
    axes.autoscale()
    axes.margins(0.08)
    axes.axis("off")
    labels = _labels(look.labels, names)
    if labels:
        strengths = abs(couplings).sum(axis=0)
        outer = radii if look.rings is None else radii + 4.5
        _write_labels(axes, labels, places, outer, strengths)
    _add_legend(axes, couplings, look)


def _labels(wish: Sequence[str] | bool | None, names: Sequence[str]) -> Sequence[str]:
    if wish is None:
        wish = len(names) <= MOST_LABELS
    if isinstance(wish, bool):
        return names if wish else ()
    return wish


def _draw_edges(
    axes: "Axes", couplings: scipy.sparse.csr_array, places: FloatArray, look: Look
) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb

    upper = scipy.sparse.triu(couplings, k=1).tocoo()
    strengths = np.abs(upper.data)
    order = np.argsort(strengths, kind="stable")  # the strongest on top
    if look.max_edges is not None:
        order = order[max(len(order) - look.max_edges, 0) :]
    largest = strengths.max(initial=0.0) if look.strongest is None else look.strongest
    shares = strengths / max(largest, _TINY)
    widths = widest_edge(len(order)) * (0.06 + 0.94 * shares)
    opacities = edge_opacities(shares, len(places))
    lines = np.stack([places[upper.row], places[upper.col]], axis=1)
    for sign, colour, style, label in (
        (1, POSITIVE, "-", "alike"),
        (-1, NEGATIVE, (0, (3, 1.5)), "opposite"),
    ):
        chosen = order[np.sign(upper.data[order]) == sign]
        if len(chosen):
            collection = LineCollection(
                lines[chosen],
                linewidths=widths[chosen],
                colors=[(*to_rgb(colour), opacity) for opacity in opacities[chosen]],
                linestyles=[style],
                label=label,
                zorder=1,
            )
            axes.add_collection(collection)


def widest_edge(n_edges: int) -> float:
    """Width of the strongest edge, in points."""
    return float(np.clip(70 / np.sqrt(max(n_edges, 1)), 2.5, 6.0))


def n_outstanding(n_nodes: int, n_edges: int) -> int:
    """How many edges an eye can follow in one picture: the others are drawn faintly."""
    most = max(20, int(1.5 * n_nodes))
    return n_edges if n_edges <= 1.3 * most else most


def edge_opacities(shares: FloatArray, n_nodes: int) -> FloatArray:
    """(n_edges,): the clearer the stronger; of too many for an eye, weak ones are faint.

    shares: strengths, as shares of the largest
    """
    outstanding = n_outstanding(n_nodes, len(shares))
    least = np.sort(shares)[len(shares) - outstanding] if outstanding else 0.0
    return np.where(shares >= least, clearness(shares), _FAINT)


def clearness(shares: FloatArray | float) -> FloatArray:
    """Opacity of edges that stand out, by strengths as shares of the largest."""
    return np.asarray(0.4 + 0.5 * shares)


def _radii(couplings: scipy.sparse.csr_array, look: Look) -> FloatArray:
    """(n_nodes,): in points."""
    n_nodes = couplings.shape[0]
    largest = float(np.clip(55 / np.sqrt(max(n_nodes, 1)), 2.0, 8.5))
    values = look.sizes
    if values is None:
        values = abs(couplings).sum(axis=0) if n_nodes <= _MOST_SIZED else np.ones(n_nodes)
    shares = values / max(float(values.max(initial=0.0)), _TINY)
    return np.asarray(largest * (0.35 + 0.65 * np.sqrt(shares)))


def group_order(groups: Sequence[str | None]) -> list[str]:
    """Groups in the order of their colours."""
    return sorted({group for group in groups if group is not None}, key=_by_numbers)


def _by_numbers(text: str) -> list[tuple[int, str]]:
    """A key that puts "scale 2" before "scale 10"."""
    parts = re.split(r"(\d+)", text)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _colours(groups: Sequence[str | None] | None, n_nodes: int) -> list[str]:
    """Of nodes; those without a group are grey."""
    if groups is None:
        return [NODE] * n_nodes
    place = {group: k for k, group in enumerate(group_order(groups))}
    return [NODE if one is None else COLOURS[place[one] % len(COLOURS)] for one in groups]


def _draw_nodes(axes: "Axes", places: FloatArray, radii: FloatArray, colours: list[str]) -> None:
    border = axes.figure.get_facecolor()
    axes.scatter(
        places[:, 0],
        places[:, 1],
        s=(2 * radii) ** 2,
        c=colours,
        edgecolors=[border],
        linewidths=0.8,
        zorder=2,
    )


def _draw_rings(axes: "Axes", places: FloatArray, radii: FloatArray, shares: FloatArray) -> None:
    """Around each node an arc from the top on, as long a part of the circle as its share."""
    from matplotlib.path import Path

    for place, radius, share in zip(places, radii, shares, strict=True):
        if np.isnan(share):
            continue
        for part, colour in ((1.0, "0.85"), (float(np.clip(share, 0.0, 1.0)), "0.2")):
            angles = np.pi / 2 - 2 * np.pi * np.linspace(0.0, part, 73)
            arc = Path(np.stack([np.cos(angles), np.sin(angles)], axis=1))
            look: dict[str, Any] = {"facecolors": "none", "edgecolors": colour, "linewidths": 2.2}
            if part > 0:
                axes.scatter(
                    [place[0]], [place[1]], (2 * radius) ** 2, marker=arc, zorder=1.8, **look
                )


def _write_labels(
    axes: "Axes",
    labels: Sequence[str],
    places: FloatArray,
    radii: FloatArray,
    strengths: FloatArray,
) -> None:
    """Names beside their nodes, or a little way off with a line that leads there."""
    from matplotlib.patheffects import withStroke

    size = float(np.clip(55 / np.sqrt(len(labels)), 5.0, 8.0))
    extent = np.ptp(places, axis=0) * 1.16 + 1e-9
    box = axes.get_window_extent()
    points = 72 / axes.figure.dpi * min(box.width / extent[0], box.height / extent[1])
    widths = np.array([0.58 * size * len(label) + 1 for label in labels])
    order = np.argsort(-strengths, kind="stable")
    offsets = label_offsets(places * points, radii, widths, 1.15 * size, order)
    background = axes.figure.get_facecolor()
    halo = [withStroke(linewidth=2, foreground=background)] if background[3] else []
    for label, place, offset, radius, width in zip(
        labels, places, offsets, radii, widths, strict=True
    ):
        gap = np.abs(offset) - np.array([width, 1.15 * size]) / 2 - radius
        is_far = max(gap) > _LEADER - 4
        axes.annotate(
            label.replace("$", r"\$"),
            place,
            xytext=tuple(offset),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
            path_effects=halo,
            arrowprops={"arrowstyle": "-", "color": "0.6", "lw": 0.6} if is_far else None,
            zorder=3,
        )


def _add_legend(axes: "Axes", couplings: scipy.sparse.csr_array, look: Look) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for is_there, colour, style, label in (
        ((couplings.data > 0).any(), POSITIVE, "-", "alike"),
        ((couplings.data < 0).any(), NEGATIVE, (0, (3, 1.5)), "opposite"),
    ):
        if is_there:
            handles.append(Line2D([], [], color=colour, ls=style, lw=2, label=label))
    groups = () if look.groups is None else group_order(look.groups)
    for k, group in enumerate(groups[:_MOST_IN_LEGEND]):
        colour = COLOURS[k % len(COLOURS)]
        label = group.replace("$", r"\$")
        handles.append(Line2D([], [], color=colour, ls="", marker="o", ms=6, label=label))
    if handles:
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
        axes.legend(handles=handles, ncols=min(len(handles), 6), frameon=False, fontsize=8, **below)


def save_figure(figure: Any, path: Path, dpi: float | str = "figure") -> None:
    """Write a picture as its name says: .png, .svg or .pdf; equal ones as equal bytes."""
    from matplotlib import rc_context

    kind = path.suffix[1:].lower()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with replacing(path) as temporary, rc_context({"svg.hashsalt": "isingkit"}):
        figure.savefig(temporary, format=kind, dpi=dpi, metadata=undated.get(kind))


def signed_colours() -> Any:
    """Colours from opposite over nothing to alike."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(
        "couplings", ["#7c2d12", NEGATIVE, "#ffffff", POSITIVE, "#0b2f5b"]
    )


def new_axes(size: tuple[float, float]) -> "Axes":
    """Axes of a new figure of pyplot's, so that it shows in notebooks and with plt.show()."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]
