"""One symmetric IsingModel out of N directed regressions."""

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from isingkit._kernels import estimators as kernels
from isingkit._kernels.threads import spread

RULES = {"average": kernels.AVERAGE, "and": kernels.AND, "or": kernels.OR}


def symmetric_couplings(estimates: NDArray[np.float64], threshold: float, rule: str) -> scipy.sparse.csr_array:
    """Couplings (J_ij + J_ji) / 2 of the pairs that count as edges.

    rule "average": |J_ij + J_ji| / 2 > threshold; "and": both |J_ij| and |J_ji| > threshold; "or": one of them.
    """
    n_spins = len(estimates)
    parts = spread(kernels.edges, -(-n_spins // kernels.TILE), estimates, threshold, RULES[rule])
    rows, columns, couplings = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    upper = scipy.sparse.csr_array((couplings, (rows, columns)), shape=(n_spins, n_spins))
    return (upper + upper.T).tocsr()
