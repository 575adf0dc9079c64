"""RegressedEffects: what the regressions of spins say of covariates, which they do not penalise."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isingkit._kernels import nodewise as kernels
from isingkit.arrays import FloatArray
from isingkit.exceptions import CovariatesError
from isingkit.spins import Names, RowWeights

if TYPE_CHECKING:
    from isingkit.estimators.nodewise import Rows


@dataclass(frozen=True, slots=True, eq=False)
class RegressedEffects:
    """Effects of covariates on spins given their neighbours."""

    values: FloatArray  # (n_spins, n)
    errors: FloatArray  # (n_spins, n): NaN where not known
    slopes: FloatArray  # (n_spins, n): least squares of each spin on covariates alone


def regressed_effects(slopes: FloatArray, estimates: Any) -> RegressedEffects:
    """Least squares on what couplings leave, from the slopes on covariates alone."""
    effects = slopes - estimates @ slopes
    return RegressedEffects(effects, np.full_like(effects, np.nan), slopes)


def n_covariates(weights: RowWeights | None) -> int:
    """How many covariates rows have."""
    if weights is None or weights.covariates is None:
        return 0
    return weights.covariates.shape[1]


def slopes_on_covariates(rows: "Rows") -> FloatArray:
    """(n_spins, n): least squares of each spin on covariates alone, which are centred."""
    roots = np.sqrt(rows.weights)
    design = roots[:, None] * rows.covariates.T
    outcomes = (roots * rows.spins).T
    slopes = np.linalg.lstsq(design, outcomes, rcond=None)[0].T
    return np.where(rows.changes[:, None], slopes, 0.0)


def errors_of_effects(rows: "Rows", variances: FloatArray) -> FloatArray:
    """(n_spins, n): standard errors, of the inverse of the mean Hessian of the likelihood."""
    errors: FloatArray = np.sqrt(variances / rows.n_effective)
    errors[~rows.changes] = np.nan
    return errors


def unknown_errors(rows: "Rows") -> FloatArray:
    """(n_spins, n): of a method that gives none."""
    return np.full((rows.n_spins, len(rows.covariates)), np.nan)


def refuse_covariates_that_separate(
    rows: "Rows",
    loss: int | None,
    fields: FloatArray,
    effects: FloatArray,
    estimates: FloatArray,
    largest_variance: float,
    names: Names,
) -> None:
    """Name a covariate whose effect diverges: with it, a spin never has one of its values.

    fields: (n_spins, n_rows), on each spin in each row, where the regressions have ended
    Effects are not penalised: without a minimum they end at fields where the loss hardly bends, and
    have variances that no effect with a minimum can have. Where couplings are larger, it is those
    that diverge.
    """
    design = np.vstack([np.ones(len(rows.weights)), rows.covariates])
    slope, curvature = np.empty((2, len(rows.weights)))
    for i in np.flatnonzero(rows.changes):
        size = np.abs(effects[i])
        if size.max() < np.abs(estimates[i]).max():
            continue
        kernels.slopes_of_loss(loss, rows.spins[i], fields[i], rows.weights, slope, curvature)
        if not _is_bounded((design * curvature) @ design.T, largest_variance):
            covariate = names[int(size.argmax())]
            raise CovariatesError(
                problem=f"'{covariate}' all but determines '{rows.names[i]}', so that its effect "
                "has no bound",
                advice="leave it out, join categories that are rare, or leave that column of "
                "spins out",
            )


def _is_bounded(hessian: FloatArray, largest_variance: float) -> bool:
    """Whether effects, after the field, have variances below the largest."""
    values, vectors = np.linalg.eigh(hessian)
    if values[0] <= 0:
        return False
    variances = (vectors**2 / values).sum(axis=1)
    return bool((variances[1:] < largest_variance).all())
