"""Entropies of data and models: how much of what ties columns together a model has."""

import numpy as np
from scipy.special import logsumexp, xlogy

from isingkit.landscape.minima import numbers_of
from isingkit.landscape.rows import DataRows
from isingkit.model import IsingModel
from isingkit.worlds.exact import MOST_SPINS, log_weights
from isingkit.worlds.heat_capacity import spin_entropies

_MUCH = 0.1  # of the multi-information, by which few rows make it too large


def share_explained(model: IsingModel, rows: DataRows) -> tuple[float, bool]:
    """Accuracy of a fit: (S_1 - S_2) / (S_1 - S_N), the share of the data's multi-information that
    the model has; and whether rows are too few to say.

    S_1 is the entropy of independent columns, S_2 that of the model, S_N that of the rows as they
    are. That of few rows is too small, by (different rows - 1) / (2 rows) or more, so that the
    share is, too. NaN beyond 24 spins, and where rows have no multi-information.
    """
    if model.n_spins > MOST_SPINS or len(rows.states) == 0:
        return float("nan"), False
    weights = rows.weights.totals
    ups = weights @ (rows.states > 0) / weights.sum()
    independent = spin_entropies(2 * ups - 1).sum()
    _, place = np.unique(numbers_of(rows.states), return_inverse=True)
    shares = np.bincount(place, weights) / weights.sum()
    of_rows = -xlogy(shares, shares).sum()
    logs = log_weights(model)
    log_z = float(logsumexp(logs))
    of_model = log_z - float(np.exp(logs - log_z) @ logs)
    multi_information = independent - of_rows
    too_small = (len(shares) - 1) / (2 * rows.weights.n_effective)
    share = (independent - of_model) / multi_information if multi_information > 0 else np.nan
    return float(share), bool(too_small > _MUCH * multi_information)
