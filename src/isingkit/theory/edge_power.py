"""EdgePower: how many edges tests find from so many samples, by the normal approximation."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from isingkit.arrays import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class EdgePower:
    r"""Of each edge the coupling in units of its standard error, from one sample.

    A coupling J whose estimate has the standard error \sigma / \sqrt M passes a two-sided test at
    the critical value z with probability \Phi(J \sqrt M / \sigma - z).
    """

    sizes: FloatArray  # (n_edges,): |J| / sigma
    critical_z: float

    def share(self, n_samples: float) -> float:
        """Expected share of the edges that is found."""
        z_scores = self.sizes * math.sqrt(n_samples)
        return float(ndtr(z_scores - self.critical_z).mean())

    def samples_for(self, share: float, most: float) -> float:
        """How many samples find this share of the edges, at most so many."""
        low = 0.0
        high = math.log(most)
        while high - low > 1e-3:
            middle = (low + high) / 2
            if self.share(math.exp(middle)) < share:
                low = middle
            else:
                high = middle
        return math.exp(high)


def edge_power(sizes: FloatArray, n_pairs: int, share: float, level: float) -> EdgePower:
    """The power of tests of all pairs, their level chosen so that, when a share of the edges is
    found, a share `level` of what is found is false (Benjamini and Hochberg).
    """
    p_value = level * max(share * len(sizes), 1.0) / n_pairs
    return EdgePower(sizes, float(-ndtri(min(p_value, 0.5) / 2)))


def standardized_couplings(
    couplings: FloatArray, spins: FloatArray, fields: FloatArray
) -> FloatArray:
    r"""(n_neighbours,): |J_ij| / \sigma_ij of a spin's neighbours.

    Given its neighbours the spin follows a logistic regression, whose Fisher information of a
    sample is E[(1 - \tanh^2 h) x x'], x the neighbours and a constant, h its local field.

    couplings: (n_neighbours,)   spins: (n_samples, n_neighbours)   fields: (n_samples,), h
    """
    regressors = np.column_stack([np.ones(len(spins)), spins])
    weights = 1 - np.tanh(fields) ** 2
    information = (regressors * weights[:, None]).T @ regressors / len(spins)
    variances = np.diag(np.linalg.pinv(information, hermitian=True))[1:]
    return np.asarray(np.abs(couplings) / np.sqrt(variances))
