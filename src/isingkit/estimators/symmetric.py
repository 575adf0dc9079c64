"""One symmetric IsingModel out of N directed regressions."""

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array

from isingkit._kernels.threads import parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray

# an estimate that exceeds a threshold by no more counts as equal to it, on whatever processor it
# was computed
TIE = 1e-10
RULES = ("average", "and", "or")
_ROWS = 64  # of estimates that are compared with columns at a time


def just_above(threshold: float, estimates: Any) -> float:
    """What an estimate must exceed; above a threshold of 0, relative to the largest of them."""
    if threshold > 0:
        return threshold + TIE
    largest = abs(estimates).max() if scipy.sparse.issparse(estimates) else 0.0
    if not scipy.sparse.issparse(estimates) and estimates.size:
        largest = max(float(estimates.max()), -float(estimates.min()))
    return TIE * min(1.0, float(largest))


def symmetric_couplings(estimates: Any, threshold: float, rule: str) -> csr_array:
    """Couplings (J_ij + J_ji) / 2 of the pairs that count as edges.

    rule "average": |J_ij + J_ji| / 2 > threshold; "and": both |J_ij| and |J_ji| > threshold; "or":
    one of them. Equal is not above: by TIE, so that the last digits of an estimate, which depend on
    the processor, do not decide.
    """
    threshold = just_above(threshold, estimates)
    if scipy.sparse.issparse(estimates):
        return _sparse_couplings(estimates, threshold, rule)
    n_spins = len(estimates)
    parts = parallel_map(_edges, n_spins, estimates, threshold, rule, chunk=_ROWS)
    rows, columns, couplings = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    upper = csr_array((couplings, (rows, columns)), shape=(n_spins, n_spins))
    return (upper + upper.T).tocsr()


def _edges(
    start: int, stop: int, estimates: FloatArray, threshold: float, rule: str
) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows start to stop, columns and couplings of the edges, row < column."""
    forth = estimates[start:stop, start:]
    back = estimates[start:, start:stop].T
    total = forth + back
    are_edges = np.triu(_pass(forth, back, total, threshold, rule), k=1)
    rows, columns = np.nonzero(are_edges)
    return rows + start, columns + start, total[rows, columns] / 2


def _pass(
    forth: FloatArray, back: FloatArray, total: FloatArray, threshold: float, rule: str
) -> BoolArray:
    if rule == "average":
        return np.abs(total) > 2 * threshold
    pass_forth = np.abs(forth) > threshold
    pass_back = np.abs(back) > threshold
    return pass_forth & pass_back if rule == "and" else pass_forth | pass_back


def _sparse_couplings(estimates: csr_array, threshold: float, rule: str) -> csr_array:
    back = estimates.T.tocsr()
    total = (estimates + back).tocsr()
    if rule == "average":
        total.data[np.abs(total.data) <= 2 * threshold] = 0.0
    else:
        pass_forth, pass_back = (abs(one) > threshold for one in (estimates, back))
        passes = pass_forth.multiply(pass_back) if rule == "and" else pass_forth + pass_back
        total = total.multiply(passes).tocsr()
    total.eliminate_zeros()
    return (total / 2).tocsr()
