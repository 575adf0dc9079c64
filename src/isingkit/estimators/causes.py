"""Causes: what acts on spins from outside the network, row by row, beside their neighbours.

Covariates are known. A hidden cause is not: its score is a sum over spins, of which a regression
must not see the spins that it is about, nor bent functions of the score. docs/design/causes.md.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from isingkit.arrays import FloatArray, IntArray

_ROWS_PER_CODE = 4  # of the same covariates, on average, for samples to share cells


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """Regressors that belong to rows."""

    values: FloatArray  # (n_causes, n_rows)
    # (n_causes, n_spins): what a spin adds to a score, for each it is above its mean; (n_causes, 0)
    # where no cause is made of spins
    loadings: FloatArray
    bends: FloatArray  # (n_causes,): above 0, tanh(bend x value) counts instead
    means: FloatArray  # (n_spins,): of spins; empty where loadings are
    codes: IntArray  # (n_rows,): which of the different rows of values; empty where they are many
    firsts: IntArray  # (n_codes,): a row of each

    @property
    def n_causes(self) -> int:
        return len(self.values)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take them."""
        return (self.values, self.loadings, self.bends, self.means, self.codes, self.firsts)


def no_causes(n_rows: int) -> Causes:
    """Nothing but neighbours."""
    return known_causes(np.empty((0, n_rows)))


def known_causes(covariates: FloatArray) -> Causes:
    """Covariates, (n_covariates, n_rows), as they are."""
    n_causes, n_rows = covariates.shape
    codes = firsts = np.empty(0, np.int64)
    if n_causes:
        _, first, code = np.unique(covariates, axis=1, return_index=True, return_inverse=True)
        if _ROWS_PER_CODE * len(first) <= n_rows:
            codes = code.ravel().astype(np.int64)
            firsts = first.astype(np.int64)
    loadings = np.empty((n_causes, 0))
    values = np.ascontiguousarray(covariates)
    return Causes(values, loadings, np.zeros(n_causes), np.empty(0), codes, firsts)
