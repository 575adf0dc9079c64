"""Where to put the spins of a network on paper, and the drawing of it."""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from isingkit._kernels.threads import one_blas_thread
from isingkit.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# nearly all eyes distinguish blue and orange; negative edges are dashed besides
POSITIVE = "#2166ac"
NEGATIVE = "#c2410c"
_MOST_BY_DISTANCES = 150  # spins up to which a layout by distances is quick, and looks better
_MOST_LABELS = 60
_WIDTH = 1.5  # of the picture, its height being 1
_MARGIN = 0.7  # around a connected part, in lengths of an edge
_TINY = 1e-300  # in place of 0, to divide by


def positions(couplings: scipy.sparse.csr_array) -> FloatArray:
    """(n_spins, 2) places between 0 and 1; the same network always gets the same places.

    Connected parts are side by side, largest first, single spins in rows below.
    """
    n_spins = couplings.shape[0]
    _, part = connected_components(couplings, directed=False)
    sizes = np.bincount(part, minlength=1)
    boxes = []
    for label in np.argsort(-sizes, kind="stable"):
        if sizes[label] > 1:
            members = np.flatnonzero(part == label)
            strengths = abs(couplings[members][:, members])
            with one_blas_thread():  # several would wait for each other, of systems so small
                boxes.append((members, _laid_out(strengths)))
    single = np.flatnonzero(sizes[part] == 1) if n_spins else np.empty(0, dtype=np.intp)
    return _shelved(n_spins, boxes, single)


def draw_network(
    axes: "Axes",
    couplings: scipy.sparse.csr_array,
    names: tuple[str, ...],
    labels: bool | None = None,
    *,
    places: FloatArray | None = None,
    strongest: float | None = None,
) -> None:
    """Draw the network: blue edges for spins that agree, dashed orange for those that disagree.

    Edges are as wide as they are strong. places, strongest: of several networks in one layout and
    on one scale, between 0 and 1, and the strength of the widest edge
    """
    places = (positions(couplings) if places is None else places) * (_WIDTH, 1.0)
    _draw_edges(axes, couplings, places, strongest)
    _draw_spins(axes, couplings, places)
    if labels or (labels is None and len(names) <= _MOST_LABELS):
        _write_names(axes, names, places)
    axes.set_aspect("equal")
    axes.autoscale()
    axes.margins(0.08)
    axes.axis("off")
    if couplings.nnz:
        axes.legend(loc="best", frameon=False, fontsize=8)


def _draw_edges(
    axes: "Axes", couplings: scipy.sparse.csr_array, places: FloatArray, strongest: float | None
) -> None:
    from matplotlib.collections import LineCollection

    upper = scipy.sparse.triu(couplings, k=1).tocoo()
    strengths = np.abs(upper.data)
    widest = np.clip(35 / np.sqrt(max(upper.nnz, 1)), 0.8, 5.0)
    scale = strengths.max(initial=_TINY) if strongest is None else max(strongest, _TINY)
    widths = widest * (0.1 + 0.9 * strengths / scale)
    lines = np.stack([places[upper.row], places[upper.col]], axis=1)
    for sign, colour, style, label in (
        (1, POSITIVE, "-", "alike"),
        (-1, NEGATIVE, (0, (3, 1.5)), "opposite"),
    ):
        chosen = np.sign(upper.data) == sign
        if chosen.any():
            collection = LineCollection(
                lines[chosen],
                linewidths=widths[chosen],
                colors=colour,
                linestyles=[style],
                alpha=0.8,
                label=label,
            )
            axes.add_collection(collection)


def _draw_spins(axes: "Axes", couplings: scipy.sparse.csr_array, places: FloatArray) -> None:
    """Dots, of few spins as large as their couplings are strong."""
    sizes = 8
    if len(places) <= 200:
        strengths = abs(couplings).sum(axis=0)
        sizes = 20 + 130 * strengths / max(float(strengths.max(initial=0.0)), _TINY)
    axes.scatter(places[:, 0], places[:, 1], s=sizes, c="#444444", zorder=2)


def _write_names(axes: "Axes", names: tuple[str, ...], places: FloatArray) -> None:
    for place, name in zip(places, names, strict=True):
        axes.annotate(
            name.replace("$", r"\$"),
            place,
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
        )


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


def _laid_out(strengths: scipy.sparse.csr_array) -> FloatArray:
    """One connected part, long side across, shortest edges about 1."""
    import networkx

    graph = networkx.from_scipy_sparse_array(strengths)
    n_nodes = len(graph)
    if n_nodes <= _MOST_BY_DISTANCES:
        found = networkx.kamada_kawai_layout(graph, weight=None)
    else:
        n_iterations = 100 if n_nodes <= 500 else 30
        found = networkx.spring_layout(graph, seed=0, weight=None, iterations=n_iterations)
    places = np.array([found[k] for k in range(n_nodes)])
    places = _turned(places - places.mean(axis=0))
    across, down = np.ptp(places, axis=0)
    # fills the picture; distances mean nothing anyway
    places[:, 0] *= np.clip(_WIDTH * down / max(across, 1e-9), 1.0, _WIDTH)
    longest = max(np.ptp(places, axis=0).max(), 1e-9)
    return np.asarray(places * np.sqrt(n_nodes) / longest)


def _turned(places: FloatArray) -> FloatArray:
    """Centred places with their longest axis across."""
    axes = np.linalg.svd(places, full_matrices=False)[2]
    # singular vectors have no sign: make their largest entry positive
    largest = axes[np.arange(2), np.abs(axes).argmax(axis=1)]
    axes *= np.where(largest < 0, -1.0, 1.0)[:, None]
    return np.asarray(places @ axes.T)


def _shelved(
    n_spins: int,
    boxes: list[tuple[NDArray[np.intp], FloatArray]],
    single: NDArray[np.intp],
) -> FloatArray:
    """All parts in shelves under each other, then everything between 0 and 1.

    Shelves are as wide as makes the picture wider than high.
    """
    if n_spins < 2:
        return np.full((n_spins, 2), 0.5)
    places = np.zeros((n_spins, 2))
    sizes = [np.ptp(box, axis=0) + 2 * _MARGIN for _, box in boxes]
    widest = max([float(across) for across, _ in sizes], default=1.0)
    area = sum(np.prod(size) for size in sizes) + len(single)
    width = max(widest, np.sqrt(_WIDTH * area))
    x = 0.0
    y = 0.0  # of the shelf's upper edge
    height = 0.0
    for (members, box), (across, down) in zip(boxes, sizes, strict=True):
        if x > 0 and x + across > width:
            x = 0.0
            y -= height
            height = 0.0
        corner = [box[:, 0].min(), box[:, 1].max()]
        places[members] = box - corner + [x + _MARGIN, y - _MARGIN]
        x += across
        height = max(height, down)
    places[single] = _in_rows(len(single), width) + np.array([0.0, y - height])
    return _fitted(places)


def _in_rows(n_spins: int, width: float) -> FloatArray:
    per_row = max(1, int(width))
    row, column = np.divmod(np.arange(n_spins), per_row)
    x = (column + 0.5) * width / per_row
    return np.stack([x, -0.5 - row], axis=1)


def _fitted(places: FloatArray) -> FloatArray:
    """Into the picture, whose sides both go from 0 to 1."""
    low = places.min(axis=0)
    extent = np.ptp(places, axis=0)
    scale = max(extent[0] / _WIDTH, extent[1])
    centred = (places - low - extent / 2) / scale
    return np.asarray(centred / (_WIDTH, 1.0) + 0.5)
