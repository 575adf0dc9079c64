r"""The inverse correlation matrix of a model with short loops, by the cluster variation method.

On a tree inverse correlation matrices of edges add up to that of the whole, less one for each spin
that several share: the Bethe matrix. Here triangles and squares are regions, too, besides edges.
With c_R the counting numbers (1 less those of all regions around R),

    H = \sum_R c_R C_R^{-1},

C_R from all states of a region by itself. What loops that are longer do shows in the diagonal of
the inverse, which ought to be 1: H is scaled until it is.
"""

from collections import defaultdict
from functools import lru_cache
from itertools import combinations

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array

from isingkit.arrays import FloatArray
from isingkit.exceptions import SettingError
from isingkit.model import IsingModel
from isingkit.theory.bethe import bethe_matrix
from isingkit.theory.loops import correlations_by_states
from isingkit.theory.phase import require_paramagnetic

Region = tuple[int, ...]
MOST_OFF = 0.5  # by which variances may be off 1 before they are scaled
LEAST_OWN = 1e-10  # eigenvalue of a region's correlations: less is mostly rounding


def short_loops(model: IsingModel) -> list[Region]:
    """Triangles, and squares without a diagonal, each as its spins in order of their numbers."""
    graph = model.couplings
    near = [set(row.tolist()) for row in np.split(graph.indices, graph.indptr[1:-1])]
    loops = set()
    for i, neighbours in enumerate(near):
        for j, k in combinations(sorted(neighbours), 2):
            if k in near[j]:
                loops.add(tuple(sorted((i, j, k))))
                continue
            for opposite in near[j] & near[k]:
                if opposite != i and opposite not in neighbours:
                    loops.add(tuple(sorted((i, j, k, opposite))))
    return sorted(loops)


def counting_numbers(model: IsingModel, loops: list[Region]) -> dict[Region, int]:
    """Of loops, of what they share, and of edges; without the spins by themselves."""
    graph = model.couplings.tocoo()
    upper = graph.row < graph.col
    edges = zip(graph.row[upper].tolist(), graph.col[upper].tolist(), strict=True)
    holders = _holders(loops)
    regions = set(loops) | set(edges)
    regions |= _shared(loops, holders)
    numbers: dict[Region, int] = {}
    for region in sorted(regions, key=len, reverse=True):
        around = _around(region, holders, numbers)
        numbers[region] = 1 - around
        for spin in region:
            if len(region) > 2:
                holders[spin].add(region)
    return numbers


def inverse_correlations(model: IsingModel) -> csr_array:
    """H of a paramagnetic model of at most a few thousand spins: for the scale takes the inverse.

    The Bethe matrix where there are no triangles or squares. A model whose loops are too much for
    regions is refused.
    """
    matrix = bethe_matrix(model)
    require_paramagnetic(model)
    loops = short_loops(model)
    if not loops:
        return matrix
    return _scaled(_unscaled(model, loops))


def _unscaled(model: IsingModel, loops: list[Region]) -> csr_array:
    n = model.n_spins
    couplings = model.couplings.todok()
    left = np.ones(n)  # counting numbers of spins by themselves
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for region, number in counting_numbers(model, loops).items():
        left[list(region)] -= number
        inverse = number * _inverse_correlations(_couplings_among(couplings, region))
        for a, b in np.ndindex(inverse.shape):
            rows.append(region[a])
            columns.append(region[b])
            values.append(float(inverse[a, b]))
    regions = csr_array((values, (rows, columns)), shape=(n, n))
    return (regions + scipy.sparse.diags_array(left)).tocsr()


def _scaled(matrix: csr_array) -> csr_array:
    try:
        factor = np.linalg.cholesky(matrix.toarray())
    except np.linalg.LinAlgError:
        raise _too_many_loops("have no correlation matrix") from None
    root = np.linalg.inv(factor)
    variances = np.sum(root**2, axis=0)
    off = float(np.max(np.abs(variances - 1)))
    if off > MOST_OFF:
        raise _too_many_loops(f"leave variances up to {off:.2g} off 1")
    scale = scipy.sparse.diags_array(np.sqrt(variances))
    return (scale @ matrix @ scale).tocsr()


def _too_many_loops(what: str) -> SettingError:
    expected = "weaker couplings, or fewer loops: the theory corrects for few and short ones"
    value = f"one whose triangles and squares {what}"
    return SettingError(setting="model", value=value, expected=expected)


def _holders(loops: list[Region]) -> dict[int, set[Region]]:
    holders: dict[int, set[Region]] = defaultdict(set)
    for loop in loops:
        for spin in loop:
            holders[spin].add(loop)
    return holders


def _shared(loops: list[Region], holders: dict[int, set[Region]]) -> set[Region]:
    """What two loops have in common, where that is more than a spin."""
    shared = set()
    for loop in loops:
        for other in set().union(*(holders[spin] for spin in loop)):
            both = tuple(sorted(set(loop) & set(other)))
            if 1 < len(both) < len(loop):
                shared.add(both)
    return shared


def _around(region: Region, holders: dict[int, set[Region]], numbers: dict[Region, int]) -> int:
    """Counting numbers, together, of the regions that hold all of one and more."""
    holding = set.intersection(*(holders[spin] for spin in region))
    return sum(numbers[larger] for larger in holding if len(larger) > len(region))


def _couplings_among(couplings: scipy.sparse.dok_array, region: Region) -> tuple[float, ...]:
    return tuple(float(couplings[a, b]) for a, b in combinations(region, 2))


@lru_cache(maxsize=4096)
def _inverse_correlations(couplings: tuple[float, ...]) -> FloatArray:
    """couplings: of all pairs of a region, in order"""
    n = round((1 + np.sqrt(1 + 8 * len(couplings))) / 2)
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = couplings
    correlations = correlations_by_states(matrix + matrix.T)
    if np.linalg.eigvalsh(correlations)[0] < LEAST_OWN:
        raise _too_many_loops("hold spins that are always the same")
    return np.asarray(np.linalg.inv(correlations))
