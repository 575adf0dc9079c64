"""Histograms: energies sampled at several temperatures, reweighted together to any other."""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotConvergedError

_STEPS = 50
_TOLERANCE = 1e-6  # of the relative probability of a temperature's samples
_DIGITS = 9  # of energies that are equal but for rounding


@dataclass(frozen=True, slots=True, eq=False)
class Histograms:
    """Energies of samples, and how probable each is under the mixture of all temperatures."""

    betas: FloatArray  # (n_betas,): inverse temperatures, the first 0
    free: FloatArray  # (n_betas,): -log Z_k / Z_0
    energies: FloatArray  # (n,): of all samples
    counts: FloatArray  # (n,): samples of this energy
    log_mixture: FloatArray  # (n,): log sum_k n_k exp(free_k - beta_k E)

    def log_weights(self, beta: float) -> FloatArray:
        """(n,): of energies at an inverse temperature; their exponentials sum to Z / Z_0."""
        return np.log(self.counts) - beta * self.energies - self.log_mixture


def histograms_of(
    betas: FloatArray, energies: FloatArray, start: Histograms | None, *, together: bool
) -> Histograms:
    r"""Histograms of (n_betas, n_each) energies: the free energies at which they agree.

    f_k = -log sum_E exp(-\beta_k E) / sum_l n_l exp(f_l - \beta_l E), Ferrenberg and Swendsen 1989;
    solved by Newton steps, for these are where a convex function is smallest.
    together: whether samples of equal energy are counted, not listed
    """
    n_each = energies.shape[1]
    values = energies.ravel()
    counts = np.ones(len(values))
    if together:
        values, numbers = np.unique(np.round(values, _DIGITS), return_counts=True)
        counts = numbers.astype(np.float64)
    free = _integrated(betas, energies.mean(axis=1)) if start is None else start.free.copy()
    for _ in range(_STEPS):
        weights = free[:, None] - betas[:, None] * values
        largest = weights.max(axis=0)
        np.exp(weights - largest, out=weights)
        sums = n_each * weights.sum(axis=0)
        weights /= sums
        totals = weights @ counts
        off = totals - 1
        if np.abs(off).max() < _TOLERANCE:
            log_mixture = largest + np.log(sums)
            return Histograms(betas, free, values, counts, log_mixture)
        # of sum_E log_mixture / n_each - sum_k f_k, with f_0 held at 0
        hessian = np.diag(totals) - n_each * (weights * counts) @ weights.T
        step = np.linalg.solve(hessian[1:, 1:], off[1:])
        longest = float(np.abs(step).max())
        free[1:] -= step / max(1.0, longest)
    raise NotConvergedError(
        what="the free energies",
        residual=float(np.abs(off).max()),
        advice="take more samples, so that energies at neighbouring temperatures overlap",
    )


def _integrated(betas: FloatArray, means: FloatArray) -> FloatArray:
    """(n_betas,): integrals of mean energies over inverse temperature, a good start."""
    steps = np.diff(betas) * (means[:-1] + means[1:]) / 2
    return np.concatenate([[0.0], np.cumsum(steps)])
