"""LassoIsing: least squares with an absolute-value penalty."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isingkit._kernels import lasso as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import FloatArray
from isingkit.estimators.base import LinearEstimator
from isingkit.estimators.nodewise import PenaltyPath
from isingkit.estimators.normal import NormalEquations, normal_equations, through_means
from isingkit.estimators.pseudolikelihood import as_penalties, default_penalties
from isingkit.exceptions import NotConvergedWarning, require_number, warn
from isingkit.gram import Gram, gram_of
from isingkit.packing import PackedSpins
from isingkit.spins import Binarize, RowWeights

_TOLERANCE = 1e-10  # of the gradient of half the mean squared error
_SWEEPS = 20_000


class LassoIsing(LinearEstimator):
    r"""Couplings by linear regression with an absolute-value penalty, each spin on all others;
    needs the pair sums only.

    Row i minimises half the mean over samples of (s_i - H_i - \sum_j J_ij s_j)^2, plus l1 \sum_j
    |J_ij|, as scikit-learn's Lasso does with alpha = l1. Works with fewer samples than spins and
    sets weak couplings to exactly zero.

    Parameters
    ----------
    l1
        Weight of the absolute values of couplings.
    threshold
        Couplings below it count as absent.
    rule
        How two directed estimates become one coupling: "average" thresholds their mean; "and" asks
        both to pass; "or" asks one to.
    fit_fields
        Whether to fit fields (intercepts, not penalised); without, spins are taken to be symmetric.
    binarize
        Threshold that turns real-valued columns into spins, or thresholds by names of columns.
    missing
        "error", "drop" or "pairwise".
    merge_alike
        Whether columns that are equal, or opposite, in all rows become one spin, with the name of
        the first of them: True, False, or a number, the correlation from which on they do. "auto"
        is True beyond 1000 columns.
    n_jobs
        Threads to use; None or -1 is all.

    Attributes
    ----------
    estimates_
        (n_spins, n_spins) array; row i is the directed estimate of J_i before the threshold.
    intercepts_
        (n_spins,) array of the regressions' intercepts.
    model_
        The IsingModel after threshold and rule.
    alike_
        Table of columns that became part of another's spin: column, spin, correlation. Empty where
        none did; else `model_` and all that is said of spins has one for all of them.
    covariate_effects_
        Where `fit` was given covariates: structured array of the columns variable, covariate,
        effect, low, high, std_error, z, p_value and q_value, strongest first; it has no errors.
    n_samples_
        Samples used: rows, or their counts; of weights w (sum w)^2 / sum w^2.
    mapping_
        For each spin the values of the table that became -1 and +1.

    Examples
    --------
    >>> import isingkit as ik
    >>> truth = ik.random_regular(n_spins=100, degree=3, coupling=0.4, random_state=0)
    >>> fit = ik.LassoIsing(l1=0.15).fit(ik.sample(truth, n_samples=400, random_state=1))
    >>> ik.score(fit.model_, truth).f1 > 0.95
    True
    """

    def __init__(
        self,
        *,
        l1: float = 0.1,
        threshold: float = 0.0,
        rule: str = "average",
        fit_fields: bool = True,
        binarize: Binarize = None,
        missing: str = "error",
        merge_alike: bool | float | str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            threshold=threshold,
            rule=rule,
            fit_fields=fit_fields,
            binarize=binarize,
            missing=missing,
            merge_alike=merge_alike,
        )
        self.l1 = l1
        self.n_jobs = n_jobs

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number("l1", self.l1, above=0)

    def _estimate(
        self,
        stat: Gram,
        normal: NormalEquations,
        packed: PackedSpins | None,
        weights: RowWeights | None,
    ) -> tuple[FloatArray, FloatArray]:
        penalties = np.array([float(self.l1)])
        estimates = lasso_estimates(normal, penalties, self.n_jobs)[0]
        return through_means(estimates, normal)

    def path(
        self,
        X: Any,
        penalties: ArrayLike | None = None,
        *,
        n_penalties: int = 100,
        sample_weight: Any = None,
        counts: Any = None,
    ) -> PenaltyPath:
        """Estimates for many l1, each started from the one before. Does not change the estimator.

        Parameters
        ----------
        X
            One row a sample, one column a spin.
        penalties
            Values of l1; by default n_penalties of them, from where the first coupling appears down
            to a thousandth of it.
        n_penalties
            How many, by default.
        sample_weight
            How much each row matters.
        counts
            How many equal samples each row stands for.
        """
        self._check_settings()
        packed, weights = self._read_only(X, sample_weight, counts)
        normal = normal_equations(gram_of(packed, weights), self.fit_fields)
        covariance = normal.matrix / normal.n_samples
        falling = as_penalties(
            default_penalties(covariance, n_penalties) if penalties is None else penalties
        )
        estimates = lasso_estimates(normal, falling, self.n_jobs)
        explained = (estimates * (2 * covariance - estimates @ covariance)).sum(axis=2)
        losses = (np.diagonal(covariance) - explained) / 2
        return PenaltyPath(falling, estimates, normal.means - estimates @ normal.means, losses)


def lasso_estimates(
    normal: NormalEquations, penalties: FloatArray, n_jobs: int | None
) -> FloatArray:
    """(n_penalties, n_spins, n_spins): directed estimates for falling penalties."""
    n_spins = normal.n_spins
    estimates = np.zeros((len(penalties), n_spins, n_spins))
    residuals = np.zeros((len(penalties), n_spins))
    fixed = (normal.matrix / normal.n_samples, normal.changes, penalties, _TOLERANCE, _SWEEPS)
    parallel_map(kernels.lasso_paths, n_spins, *fixed, estimates, residuals, n_jobs=n_jobs)
    for i, j in normal.unobserved:
        estimates[:, i, j] = estimates[:, j, i] = 0.0
    if residuals.max() > 100 * _TOLERANCE:
        advice = "raise l1, or look for columns that nearly follow from others"
        warn(
            NotConvergedWarning(
                what="LassoIsing",
                residual=float(residuals.max()),
                allowed=100 * _TOLERANCE,
                advice=advice,
            )
        )
    return estimates
