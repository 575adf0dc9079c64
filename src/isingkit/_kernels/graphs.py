"""Trees from their Pruefer sequences."""

import numpy as np
from numba import njit

from isingkit._kernels.flags import KERNEL


@njit(**KERNEL)
def tree_edges(sequence, n_nodes):
    """Edges (n_nodes - 1, 2) of the labelled tree with this Pruefer sequence, in linear time.

    sequence: (n_nodes - 2,) int64, each entry < n_nodes
    """
    edges = np.empty((max(0, n_nodes - 1), 2), np.int64)
    if n_nodes < 2:
        return edges
    degree = np.ones(n_nodes, np.int64)
    for node in sequence:
        degree[node] += 1
    # the smallest leaf not used yet, but for one that has just become a leaf and is smaller
    pointer = 0
    while degree[pointer] != 1:
        pointer += 1
    leaf = pointer
    for k in range(len(sequence)):
        node = sequence[k]
        edges[k, 0] = leaf
        edges[k, 1] = node
        degree[node] -= 1
        if degree[node] == 1 and node < pointer:
            leaf = node
        else:
            pointer += 1
            while degree[pointer] != 1:
                pointer += 1
            leaf = pointer
    edges[n_nodes - 2, 0] = leaf
    edges[n_nodes - 2, 1] = n_nodes - 1
    return edges
