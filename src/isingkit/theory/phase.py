"""Is a teacher in its paramagnetic phase, as the paper's theory assumes?"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from isingkit.arrays import FloatArray, IntArray
from isingkit.exceptions import OrderedPhaseError, require_instance
from isingkit.model import IsingModel

N_STEPS = 24  # of the power iteration, the second half of which counts


@dataclass(frozen=True, slots=True)
class Phase:
    """Growth a step of disturbances on the non-backtracking matrix; below 1 if paramagnetic."""

    glass: float  # spectral radius with weights tanh^2 J: (c - 1) tanh^2 K on random regular graphs
    order: float  # spectral radius with weights tanh J: (c - 1) tanh K where all signs agree

    @property
    def holds(self) -> bool:
        return self.glass < 1 and self.order < 1


def paramagnetic(model: IsingModel) -> Phase:
    """The paper's condition (c - 1) tanh^2 K < 1, for any graph and any couplings.

    It is the spectral radius of the non-backtracking matrix. A message from i to j is tanh J_ij
    times the sum of the messages into i from all but j. With random signs these add up like random
    numbers, so tanh^2 counts; where signs agree they add up in full, and tanh counts. Fields are
    left aside.

    Examples
    --------
    >>> import isingkit as ik
    >>> model = ik.random_regular(n_spins=1000, degree=3, coupling=0.4, random_state=0)
    >>> phase = ik.paramagnetic(model)
    >>> round(phase.glass, 3), phase.holds
    (0.289, True)
    """
    require_instance("model", model, IsingModel, "an IsingModel")
    weights = np.tanh(model.couplings.data)
    return Phase(
        glass=_spectral_radius(model, weights**2),
        order=_spectral_radius(model, weights),
    )


def require_paramagnetic(model: IsingModel) -> None:
    """Refuse a model that the theory does not hold for."""
    phase = paramagnetic(model)
    if not phase.holds:
        raise OrderedPhaseError(growth=max(phase.glass, phase.order))


def _spectral_radius(model: IsingModel, weights: FloatArray) -> float:
    """Gelfand's formula: the growth of a vector's norm over many steps.

    It is 0 on trees shallower than that, where messages die out.
    """
    graph = model.couplings
    if graph.nnz == 0:
        return 0.0
    rows = np.repeat(np.arange(model.n_spins), np.diff(graph.indptr))
    reverse = _reverse_entries(graph)
    messages = np.random.default_rng(0).random(graph.nnz) + 0.5  # [i, j]: from i to j
    log_growth = []
    for _ in range(N_STEPS):
        received = np.bincount(graph.indices, weights=messages, minlength=model.n_spins)
        messages = weights * (received[rows] - messages[reverse])
        norm = float(np.linalg.norm(messages))
        if norm < 1e-200:
            return 0.0
        messages /= norm
        log_growth.append(np.log(norm))
    return float(np.exp(np.mean(log_growth[N_STEPS // 2 :])))


def _reverse_entries(graph: csr_array) -> IntArray:
    """For each stored entry [i, j], the place of [j, i]."""
    places = graph.copy()
    places.data = np.arange(graph.nnz, dtype=np.float64)
    transposed = places.T.tocsr()
    transposed.sort_indices()
    return np.asarray(transposed.data, dtype=np.int64)
