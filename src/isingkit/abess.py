"""AbessIsing: the IsingModel of the package abess (best subsets, no fields) behind our `fit`."""

from typing import Any

import numpy as np

from isingkit.model import IsingModel
from isingkit.packing import PackedSpins


class AbessIsing:
    """abess's own defaults; there is nothing to set."""

    def fit(self, X: PackedSpins, sample_weight: Any = None) -> "AbessIsing":
        from abess.graph import IsingModel as Abess

        theta = Abess().fit(np.asarray(X, dtype=np.float64), sample_weight=sample_weight).theta_
        self.model_ = IsingModel(theta, names=X.names)
        return self
