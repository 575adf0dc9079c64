"""Where to put the nodes of a network on paper: strong edges short, communities together."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components, shortest_path

from isingkit._kernels.threads import one_blas_thread
from isingkit.arrays import FloatArray
from isingkit.modularity import IntArray

WIDTH = 1.5  # of the picture, its height being 1
_MOST_BY_DISTANCES = 1000  # nodes of a part up to which all distances between them are looked at
_LONGEST = 3.0  # edge in lengths of the strongest: weak ones must not push a node far away
# paths between communities count as longer by this, of few nodes and of many, whose paths are short
_BETWEEN = (1.6, 2.6)
_FEW_AND_MANY = (60, 200)
_SWEEPS = 150
_STILL = 1e-4  # change of stress, as a share of it, that ends the sweeps
_ROOM = 0.45  # that a node has to itself, in mean distances to the next
_MARGIN = 0.5  # around a connected part, in lengths of an edge
_SINGLE = 0.8  # side of the square around a single node
_TINY = 1e-300  # in place of 0, to divide by


def positions(couplings: scipy.sparse.csr_array, parts: IntArray | None = None) -> FloatArray:
    """(n_nodes, 2) places between 0 and 1; the same network always gets the same places.

    Connected parts are side by side, largest first, single nodes in rows below. parts: (n_nodes,),
    communities that should stay together
    """
    n_nodes = couplings.shape[0]
    parts = np.zeros(n_nodes, dtype=np.intp) if parts is None else parts
    _, component = connected_components(couplings, directed=False)
    sizes = np.bincount(component, minlength=1)
    boxes = []
    for label in np.argsort(-sizes, kind="stable"):
        if sizes[label] > 1:
            members = np.flatnonzero(component == label)
            strengths = abs(couplings[members][:, members])
            with one_blas_thread():  # several would wait for each other, of systems so small
                boxes.append((members, _laid_out(strengths, parts[members])))
    single = np.flatnonzero(sizes[component] == 1) if n_nodes else np.empty(0, dtype=np.intp)
    return _shelved(n_nodes, boxes, single)


def around_a_circle(parts: IntArray) -> FloatArray:
    """(n_nodes, 2) places between 0 and 1 on a circle, parts next to each other."""
    order = np.argsort(parts, kind="stable")
    angles = np.empty(len(parts))
    angles[order] = 2 * np.pi * np.arange(len(parts)) / max(len(parts), 1)
    circle = np.stack([np.sin(angles) / WIDTH, np.cos(angles)], axis=1)
    return np.asarray(0.5 + 0.5 * circle)


def _laid_out(strengths: scipy.sparse.csr_array, parts: IntArray) -> FloatArray:
    """One connected part, long side across, shortest edges about 1."""
    n_nodes = strengths.shape[0]
    if n_nodes <= _MOST_BY_DISTANCES:
        places = _by_distances(_distances(strengths, parts))
    else:
        places = _by_springs(strengths)
    places = _turned(places - places.mean(axis=0))
    across, down = np.ptp(places, axis=0)
    # fills the picture; distances mean little anyway
    places[:, 0] *= np.clip(WIDTH * down / max(across, 1e-9), 1.0, WIDTH)
    places = _with_room(places)
    longest = max(np.ptp(places, axis=0).max(), 1e-9)
    return np.asarray(places * (1.3 * np.sqrt(n_nodes) - 0.8) / longest)


def _distances(strengths: scipy.sparse.csr_array, parts: IntArray) -> FloatArray:
    """(n_nodes, n_nodes): lengths of shortest paths, along edges that are long where weak."""
    edges = strengths.tocoo()
    lengths = np.sqrt(edges.data.max() / np.maximum(edges.data, _TINY))
    lengths = np.minimum(lengths, _LONGEST)
    ends = (edges.row, edges.col)
    found = shortest_path(scipy.sparse.csr_array((lengths, ends), shape=edges.shape))
    longer = np.interp(len(parts), _FEW_AND_MANY, _BETWEEN)
    return np.where(parts[:, None] == parts, found, longer * found)


def _by_distances(distances: FloatArray) -> FloatArray:
    """(n_nodes, 2) places whose distances are as near to these as can be, short ones before all.

    Stress majorisation (Gansner, Koren and North 2004) from classical scaling.
    """
    n_nodes = len(distances)
    weights = 1 / (distances + np.eye(n_nodes)) ** 2 - np.eye(n_nodes)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    solver = cho_factor(laplacian + 1 / n_nodes)
    places = _scaled(distances)
    stress = np.inf
    for _ in range(_SWEEPS):
        apart = _apart(places)
        before = stress
        stress = float((weights * (apart - distances) ** 2).sum())
        if before - stress <= _STILL * stress:
            break
        pulls = np.divide(weights * distances, apart, out=np.zeros_like(apart), where=apart > 1e-9)
        pulls = np.diag(pulls.sum(axis=1)) - pulls
        places = cho_solve(solver, pulls @ places)
    return places


def _scaled(distances: FloatArray) -> FloatArray:
    """Classical scaling, with a little of a spiral, so that no two nodes start in one place."""
    n_nodes = len(distances)
    squares = distances**2
    means = squares.mean(axis=0)
    products = -(squares - means - means[:, None] + squares.mean()) / 2
    values, vectors = np.linalg.eigh(products)
    turns = 2.4 * np.arange(n_nodes)
    spiral = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    spread = 1e-2 * distances.mean() * np.sqrt(np.arange(n_nodes) / n_nodes)
    largest = np.sqrt(np.maximum(values[-2:], 0.0))
    if n_nodes == 2:
        return np.array([[-0.5, 0.0], [0.5, 0.0]]) * distances.max()
    return np.asarray(vectors[:, -2:] * largest + spread[:, None] * spiral)


def _apart(places: FloatArray) -> FloatArray:
    """(n_nodes, n_nodes) distances."""
    steps = places[:, None] - places
    return np.sqrt((steps**2).sum(axis=2))


def _by_springs(strengths: scipy.sparse.csr_array) -> FloatArray:
    import networkx

    graph = networkx.from_scipy_sparse_array(strengths / strengths.max())
    found = networkx.spring_layout(graph, seed=0, iterations=30)
    return np.array([found[k] for k in range(len(found))])


def _with_room(places: FloatArray) -> FloatArray:
    """The same, with nodes that are on top of each other pushed apart."""
    n_nodes = len(places)
    if not 2 < n_nodes <= _MOST_BY_DISTANCES:
        return places
    places = places.copy()
    area = np.prod(np.ptp(places, axis=0) + 1e-9)
    room = _ROOM * np.sqrt(area / n_nodes)
    for _ in range(30):
        steps = places[:, None] - places
        apart = np.sqrt((steps**2).sum(axis=2)) + np.eye(n_nodes)
        lacking = np.maximum(room - apart, 0.0) * (1 - np.eye(n_nodes))
        if not lacking.any():
            break
        places += 0.5 * (steps * (lacking / np.maximum(apart, 1e-9))[:, :, None]).sum(axis=1)
    return places


def _turned(places: FloatArray) -> FloatArray:
    """Centred places with their longest axis across."""
    axes = np.linalg.svd(places, full_matrices=False)[2]
    # singular vectors have no sign: make their largest entry positive
    largest = axes[np.arange(2), np.abs(axes).argmax(axis=1)]
    axes *= np.where(largest < 0, -1.0, 1.0)[:, None]
    return np.asarray(places @ axes.T)


def _shelved(
    n_nodes: int,
    boxes: list[tuple[NDArray[np.intp], FloatArray]],
    single: NDArray[np.intp],
) -> FloatArray:
    """All parts in shelves under each other, then everything between 0 and 1.

    Shelves are as wide as lets everything be drawn largest.
    """
    if n_nodes < 2:
        return np.full((n_nodes, 2), 0.5)
    places = np.zeros((n_nodes, 2))
    sizes = [np.ptp(box, axis=0) + 2 * _MARGIN for _, box in boxes]
    widest = max([float(across) for across, _ in sizes], default=1.0)
    widths = [widest * (1 + 0.1 * k) for k in range(16)]
    width = min(widths, key=lambda one: _extent(sizes, len(single), one))
    corners, bottom = _packed(sizes, width)
    for (members, box), corner in zip(boxes, corners, strict=True):
        own_corner = np.array([box[:, 0].min(), box[:, 1].max()])
        places[members] = box - own_corner + corner + [_MARGIN, -_MARGIN]
    places[single] = _in_rows(len(single), width) + np.array([0.0, bottom])
    return _fitted(places)


def _extent(sizes: Sequence[FloatArray], n_single: int, width: float) -> float:
    """How small everything gets in a picture with shelves of this width."""
    corners, bottom = _packed(sizes, width)
    ends = [corner[0] + size[0] for corner, size in zip(corners, sizes, strict=True)]
    n_rows = -(-n_single // max(1, int(width / _SINGLE)))
    across = width if n_rows else max(ends)
    return round(max(across / WIDTH, n_rows * _SINGLE - bottom), 6)


def _packed(sizes: Sequence[FloatArray], width: float) -> tuple[FloatArray, float]:
    """(n_boxes, 2) upper left corners, and where the lowest box ends.

    The first box of a shelf is its highest; beside it others hang under each other in columns.
    """
    corners = np.zeros((len(sizes), 2))
    shelf = np.zeros(2)  # its left end and upper edge
    height = 0.0
    column = 0.0  # its left end
    column_width = 0.0
    used = np.inf  # of the column's height
    for k, (across, down) in enumerate(sizes):
        if used + down > height:  # a column is full
            column += column_width
            column_width = 0.0
            used = 0.0
            if k == 0 or column + across > width:  # and a shelf, too
                shelf = shelf - np.array([0.0, height])
                height = down
                column = 0.0
        corners[k] = shelf + np.array([column, -used])
        used += down
        column_width = max(column_width, across)
    return corners, float(shelf[1] - height)


def _in_rows(n_nodes: int, width: float) -> FloatArray:
    per_row = max(1, int(width / _SINGLE))
    row, column = np.divmod(np.arange(n_nodes), per_row)
    x = (column + 0.5) * width / per_row
    return np.stack([x, -_SINGLE * (0.5 + row)], axis=1)


def _fitted(places: FloatArray) -> FloatArray:
    """Into the picture, whose sides both go from 0 to 1."""
    low = places.min(axis=0)
    extent = np.ptp(places, axis=0)
    scale = max(extent[0] / WIDTH, extent[1])
    centred = (places - low - extent / 2) / scale
    return np.asarray(centred / (WIDTH, 1.0) + 0.5)
