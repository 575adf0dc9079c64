"""Where to write the names of nodes, so that none covers another."""

import numpy as np

from isingkit.arrays import FloatArray
from isingkit.modularity import IntArray

_GAP = 2.0  # between a node and its name, in points
_FARTHER = (0.0, 10.0, 22.0, 36.0)  # where there is no room beside the node: with a line to it
# above, below, right, left, then between them
_SIDES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0], [1, 1], [-1, 1], [1, -1], [-1, -1]])


def label_offsets(
    places: FloatArray, radii: FloatArray, widths: FloatArray, height: float, order: IntArray
) -> FloatArray:
    """(n_nodes, 2): from each node to the middle of its name, all in points.

    radii, widths: of nodes and of names; order: whose names choose first
    """
    n_nodes = len(places)
    offsets = np.zeros((n_nodes, 2))
    corners = np.empty((0, 4))  # left, bottom, right, top of names that have been placed
    nodes = np.concatenate([places - radii[:, None], places + radii[:, None]], axis=1)
    for node in order.tolist():
        half = np.array([widths[node], height]) / 2
        tried = _candidates(radii[node], half)
        middles = places[node] + tried
        boxes = np.concatenate([middles - half, middles + half], axis=1)
        covered = _overlaps(boxes, corners) + 0.7 * _overlaps(boxes, nodes)
        far = np.hypot(*tried.T) - np.hypot(*tried.T).min()
        best = int((covered + 1e-2 * height * far).round(6).argmin())
        offsets[node] = tried[best]
        corners = np.concatenate([corners, boxes[best : best + 1]])
    return offsets


def _candidates(radius: float, half: FloatArray) -> FloatArray:
    """(n, 2) offsets of the middle of a name with these half sides, nearest first."""
    found = []
    for farther in _FARTHER:
        reach = radius + _GAP + farther
        is_corner = np.abs(_SIDES).sum(axis=1) == 2
        lengths = np.where(is_corner, 0.7 * reach, reach)
        found.append(_SIDES * (lengths[:, None] + half))
    return np.concatenate(found)


def _overlaps(boxes: FloatArray, others: FloatArray) -> FloatArray:
    """(n_boxes,): area that others cover of each."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.maximum(high - low, 0.0).prod(axis=2).sum(axis=1))
