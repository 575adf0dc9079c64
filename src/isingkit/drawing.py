"""Where to put the spins of a network on paper, and the drawing of it."""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSITIVE, NEGATIVE = (
    "#2166ac",
    "#c2410c",
)  # blue and orange are told apart by nearly all eyes; negative edges are dashed besides
_MOST_BY_DISTANCES = (
    150  # spins up to which a layout by distances along the graph is quick, and looks better
)
_MOST_LABELS = 60
_WIDTH = 1.5  # of the picture, its height being 1


def positions(couplings: scipy.sparse.csr_array) -> NDArray[np.float64]:
    """(n_spins, 2) places between 0 and 1: connected parts side by side, largest first, single
    spins in rows below.

    The same network always gets the same places.
    """
    n_spins = couplings.shape[0]
    _, part = connected_components(couplings, directed=False)
    sizes = np.bincount(part, minlength=1)
    boxes = []
    for label in np.argsort(-sizes, kind="stable"):
        if sizes[label] > 1:
            members = np.flatnonzero(part == label)
            boxes.append((members, _laid_out(abs(couplings[members][:, members]))))
    single = np.flatnonzero(sizes[part] == 1) if n_spins else np.empty(0, dtype=np.intp)
    return _shelved(n_spins, boxes, single)


def draw_network(
    axes: "Axes",
    couplings: scipy.sparse.csr_array,
    names: tuple[str, ...],
    labels: bool | None = None,
) -> None:
    """Draw the network: blue edges for spins that agree, dashed orange ones for those that
    disagree, as wide as they are strong.
    """
    from matplotlib.collections import LineCollection

    places = positions(couplings) * (_WIDTH, 1.0)
    upper = scipy.sparse.triu(couplings, k=1).tocoo()
    widest = np.clip(35 / np.sqrt(max(upper.nnz, 1)), 0.8, 5.0)
    widths = widest * (0.1 + 0.9 * np.abs(upper.data) / np.abs(upper.data).max(initial=1e-300))
    lines = np.stack([places[upper.row], places[upper.col]], axis=1)
    for sign, colour, style, label in (
        (1, POSITIVE, "-", "alike"),
        (-1, NEGATIVE, (0, (3, 1.5)), "opposite"),
    ):
        chosen = np.sign(upper.data) == sign
        if chosen.any():
            axes.add_collection(
                LineCollection(
                    lines[chosen],
                    linewidths=widths[chosen],
                    colors=colour,
                    linestyles=[style],
                    alpha=0.8,
                    label=label,
                )
            )
    strengths = abs(couplings).sum(axis=0)
    sizes = (
        20 + 130 * strengths / max(float(strengths.max(initial=0.0)), 1e-300)
        if len(names) <= 200
        else 8
    )
    axes.scatter(places[:, 0], places[:, 1], s=sizes, c="#444444", zorder=2)
    if labels or (labels is None and len(names) <= _MOST_LABELS):
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
    axes.set_aspect("equal")
    axes.autoscale()
    axes.margins(0.08)
    axes.axis("off")
    if upper.nnz:
        axes.legend(loc="best", frameon=False, fontsize=8)


def signed_colours() -> Any:
    """Colours from opposite over nothing to alike."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(
        "couplings", ["#7c2d12", NEGATIVE, "#ffffff", POSITIVE, "#0b2f5b"]
    )


def new_axes(size: tuple[float, float]) -> "Axes":
    """Axes of a new figure that belongs to pyplot, so that it shows in notebooks and with
    plt.show().
    """
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _laid_out(strengths: scipy.sparse.csr_array) -> NDArray[np.float64]:
    """One connected part, long side across, shortest edges about 1."""
    import networkx

    graph = networkx.from_scipy_sparse_array(strengths)
    n_nodes = len(graph)
    if n_nodes <= _MOST_BY_DISTANCES:
        found = networkx.kamada_kawai_layout(graph, weight=None)
    else:
        found = networkx.spring_layout(
            graph, seed=0, weight=None, iterations=100 if n_nodes <= 500 else 30
        )
    places = np.array([found[k] for k in range(n_nodes)])
    places -= places.mean(axis=0)
    axes = np.linalg.svd(places, full_matrices=False)[2]
    axes *= np.where(axes[np.arange(2), np.abs(axes).argmax(axis=1)] < 0, -1.0, 1.0)[
        :, None
    ]  # singular vectors have no sign
    places = places @ axes.T
    across, down = np.ptp(places, axis=0)
    places[:, 0] *= np.clip(
        _WIDTH * down / max(across, 1e-9), 1.0, _WIDTH
    )  # fills the picture; distances mean nothing anyway
    return np.asarray(places * np.sqrt(n_nodes) / max(np.ptp(places, axis=0).max(), 1e-9))


def _shelved(
    n_spins: int,
    boxes: list[tuple[NDArray[np.intp], NDArray[np.float64]]],
    single: NDArray[np.intp],
) -> NDArray[np.float64]:
    """All parts in shelves under each other, as wide as makes the picture wider than high; then
    everything between 0 and 1.
    """
    places = np.zeros((n_spins, 2))
    margin = 0.7
    areas = [np.prod(np.ptp(box, axis=0) + 2 * margin) for _, box in boxes]
    widest = max([float(np.ptp(box[:, 0])) + 2 * margin for _, box in boxes], default=1.0)
    width = max(widest, np.sqrt(_WIDTH * (sum(areas) + len(single))))
    x = y = height = 0.0
    for members, box in boxes:
        across, down = np.ptp(box, axis=0) + 2 * margin
        if x > 0 and x + across > width:
            x, y, height = 0.0, y - height, 0.0
        places[members] = box - [box[:, 0].min(), box[:, 1].max()] + [x + margin, y - margin]
        x, height = x + across, max(height, down)
    y -= height
    per_row = max(1, int(width))
    places[single, 0] = (np.arange(len(single)) % per_row + 0.5) * width / per_row
    places[single, 1] = y - 0.5 - np.arange(len(single)) // per_row
    if n_spins < 2:
        return np.full((n_spins, 2), 0.5)
    low, extent = places.min(axis=0), np.ptp(places, axis=0)
    scale = max(extent[0] / _WIDTH, extent[1])
    centred = (places - low - extent / 2) / scale
    return np.asarray(centred / (_WIDTH, 1.0) + 0.5)
