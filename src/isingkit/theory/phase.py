"""Is a teacher in its paramagnetic phase, as the paper's theory assumes?"""

from dataclasses import dataclass

import numpy as np

from isingkit.exceptions import OrderedPhaseError, require_instance
from isingkit.model import IsingModel


@dataclass(frozen=True, slots=True)
class Phase:
    """Growth a step of disturbances on the branching (non-backtracking) matrix; both below 1 in the
    paramagnetic phase.
    """

    # spectral radius with weights tanh^2 J: (c - 1) tanh^2 K on random regular graphs, whatever the
    # signs
    glass: float
    order: float  # spectral radius with weights tanh J: (c - 1) tanh K where all signs agree

    @property
    def holds(self) -> bool:
        return self.glass < 1 and self.order < 1


def paramagnetic(model: IsingModel) -> Phase:
    """The paper's condition (c - 1) tanh^2 K < 1, for any graph and couplings: the spectral radius
    of the branching matrix.

    A message from i to j is tanh J_ij times the sum of the messages into i from all but j. With
    random signs these add up like random numbers, so tanh^2 counts; where signs agree they add up
    in full, and tanh counts. Fields are left aside.

    Examples
    --------
    >>> import isingkit as ik
    >>> phase = ik.paramagnetic(ik.random_regular(n_spins=1000, degree=3, coupling=0.4,
    random_state=0))
    >>> round(phase.glass, 3), phase.holds
    (0.289, True)
    """
    require_instance("model", model, IsingModel, "an IsingModel")
    weights = np.tanh(model.couplings.data)
    return Phase(_spectral_radius(model, weights**2), _spectral_radius(model, weights))


def require_paramagnetic(model: IsingModel) -> None:
    """Refuse a model that the theory does not hold for."""
    phase = paramagnetic(model)
    if not phase.holds:
        raise OrderedPhaseError(growth=max(phase.glass, phase.order))


def _spectral_radius(model: IsingModel, weights: np.ndarray, n_steps: int = 24) -> float:  # type: ignore[type-arg]
    """Gelfand's formula: the growth of a vector's norm over many steps; 0 on trees shallower than
    that, where messages die out.
    """
    graph = model.couplings
    if graph.nnz == 0:
        return 0.0
    rows = np.repeat(np.arange(model.n_spins), np.diff(graph.indptr))
    back = graph.copy()
    back.data = np.arange(graph.nnz, dtype=np.float64)
    back = back.T.tocsr()
    back.sort_indices()
    reverse = back.data.astype(np.int64)  # entry [i, j] of the transpose: the place of [j, i]
    messages = np.random.default_rng(0).random(graph.nnz) + 0.5  # [i, j]: from i to j
    log_growth = []
    for _ in range(n_steps):
        incoming = np.bincount(
            graph.indices, weights=messages, minlength=model.n_spins
        )  # into each spin
        messages = weights * (incoming[rows] - messages[reverse])
        norm = float(np.linalg.norm(messages))
        if norm < 1e-200:
            return 0.0
        messages /= norm
        log_growth.append(np.log(norm))
    return float(np.exp(np.mean(log_growth[n_steps // 2 :])))
