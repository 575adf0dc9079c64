"""NetworkEstimates: couplings of the network found, and how far they may be off."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from isingkit.arrays import FloatArray
from isingkit.estimators.fitted_graph import FittedGraph

_UPPER = 0.975  # quantile


@dataclass(frozen=True, slots=True, eq=False)
class NetworkEstimates:
    """A graph with the couplings and fields to report."""

    fitted: FittedGraph
    errors: FloatArray  # (n_pairs,): standard errors of the means of both directions
    freedom: FloatArray  # (n_pairs,): degrees of freedom of errors; infinite where they are known

    @property
    def couplings(self) -> FloatArray:
        """(n_pairs,): means of both directions."""
        return self.fitted.graph.mean_of_directions(self.fitted.couplings)

    @property
    def half_widths(self) -> FloatArray:
        """(n_pairs,): errors that normal intervals must have to hold, if these are uncertain."""
        known = np.isinf(self.freedom)
        quantiles = stdtrit(np.where(known, 1e9, self.freedom), _UPPER)
        return np.where(known, self.errors, self.errors * quantiles / ndtri(_UPPER))


def estimates_of(fitted: FittedGraph, n_groups: int) -> NetworkEstimates:
    """Without the bias of few samples; errors by groups of rows, where there are any."""
    refitted = fitted.firth_refit()
    _, errors = refitted.couplings_and_errors()
    freedom = n_groups - 1.0 if n_groups > 1 else np.inf
    return NetworkEstimates(refitted, errors, np.full(len(errors), freedom))
