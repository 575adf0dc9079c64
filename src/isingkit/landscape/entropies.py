"""Entropies of data and models: how much of what ties columns together a model has."""

import numpy as np
from scipy.special import logsumexp, xlogy

from isingkit.arrays import FloatArray
from isingkit.landscape.minima import numbers_of
from isingkit.landscape.uncertainty import DataRows
from isingkit.model import IsingModel
from isingkit.worlds.exact import MOST_SPINS, log_weights


def share_explained(model: IsingModel, rows: DataRows) -> float:
    """Accuracy of a fit: (S_1 - S_2) / (S_1 - S_N), the share of the data's multi-information that
    the model has.

    S_1 is the entropy of independent columns, S_2 that of the model, S_N that of the rows as they
    are. Entropies of few rows are too small, so that the share is, too. NaN beyond 24 spins, and
    where rows have no multi-information.
    """
    if model.n_spins > MOST_SPINS or len(rows.states) == 0:
        return float("nan")
    weights = rows.weights.totals
    ups = weights @ (rows.states > 0) / weights.sum()
    independent = spin_entropies(2 * ups - 1).sum()
    _, place = np.unique(numbers_of(rows.states), return_inverse=True)
    shares = np.bincount(place, weights) / weights.sum()
    of_rows = -xlogy(shares, shares).sum()
    logs = log_weights(model)
    log_z = float(logsumexp(logs))
    of_model = log_z - float(np.exp(logs - log_z) @ logs)
    return float((independent - of_model) / (independent - of_rows))


def spin_entropies(means: FloatArray) -> FloatArray:
    """Entropies, in nats, of single spins of these means."""
    up = np.clip((1 + means) / 2, 0.0, 1.0)
    return np.asarray(-xlogy(up, up) - xlogy(1 - up, 1 - up))
