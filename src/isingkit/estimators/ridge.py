"""RidgeIsing: least squares with a quadratic penalty."""

import numpy as np
from scipy.linalg import blas, lapack

from isingkit.arrays import FloatArray
from isingkit.estimators.base import LinearEstimator
from isingkit.estimators.normal import (
    NormalEquations,
    all_regressions,
    as_regressions,
    factor_of,
    inverse_of,
    through_means,
)
from isingkit.exceptions import LARGEST_PENALTY, SettingError, require_number
from isingkit.gram import Gram
from isingkit.packing import PackedSpins, repeated, unpacked
from isingkit.spins import Binarize, RowWeights


class RidgeIsing(LinearEstimator):
    r"""Couplings by ridge regression of each spin on all others, thresholded. [eq:PL-estimator-L2]

    Row i minimises \sum_\mu (s_i - \sum_j J_ij s_j - H_i)^2 + \lambda N \sum_j J_ij^2, for all i at
    once from one matrix inverse. Works with fewer samples than spins; the penalty biases absent
    couplings too (Theorem 2), which TwoStageIsing mends.

    Parameters
    ----------
    ridge
        lambda, exactly the paper's: the penalty is ridge * n_spins * sum J^2.
    threshold
        Couplings below it count as absent (the paper's K_th).
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
    >>> table = [["no", "no"], ["yes", "yes"], ["no", "no"], ["yes", "no"]]
    >>> fit = ik.RidgeIsing(ridge=0.1).fit(table)
    >>> fit.model_.edges()["coupling"].round(3)
    array([0.551])
    """

    def __init__(
        self,
        *,
        ridge: float = 1.0,
        threshold: float = 0.1,
        rule: str = "average",
        fit_fields: bool = True,
        binarize: Binarize = None,
        missing: str = "error",
        merge_alike: bool | float | str = "auto",
    ) -> None:
        super().__init__(
            threshold=threshold,
            rule=rule,
            fit_fields=fit_fields,
            binarize=binarize,
            missing=missing,
            merge_alike=merge_alike,
        )
        self.ridge = ridge

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number("ridge", self.ridge, above=0, at_most=LARGEST_PENALTY)

    def _estimate(
        self,
        stat: Gram,
        normal: NormalEquations,
        packed: PackedSpins | None,
        weights: RowWeights | None,
    ) -> tuple[FloatArray, FloatArray]:
        if packed is not None and dual_is_better(normal, self.ridge, packed):
            estimates = dual_regressions(normal, self.ridge, packed, weights)
        else:
            inverse = inverse_of(normal, factor_of(normal, self.ridge))
            estimates = all_regressions(normal, inverse)
        return through_means(estimates, normal)


def dual_is_better(normal: NormalEquations, ridge: float, packed: PackedSpins) -> bool:
    """Which of two equal ways to the ridge estimates is quicker and safer.

    The inverse costs N^3 / 2 multiply-adds; the dual, which needs the samples, M^3 / 6 + M^2 N +
    N^2 M / 2. The dual also keeps its digits when a tiny ridge leaves the N x N matrix almost
    singular.
    """
    if packed.present is not None or normal.n_rows >= packed.n_spins:
        return False
    tiny = ridge * packed.n_spins < 1e-6 * normal.n_samples
    return tiny or normal.n_rows < packed.n_spins / 2


def dual_regressions(
    normal: NormalEquations, ridge: float, packed: PackedSpins, weights: RowWeights | None
) -> FloatArray:
    r"""The same estimates from an M x M matrix: \lambda N P = I - S' (S S' + \lambda N I)^{-1} S =
    I - Z'Z, Z = L^{-1} S.
    """
    covariates = np.zeros((packed.n_samples, 0))
    if weights is not None:  # the same digits for a count as for so many rows
        packed, each = repeated(packed, weights), weights.of_each_sample()
        if weights.covariates is not None:
            counts = weights.counts.astype(np.int64)
            covariates = np.repeat(weights.covariates, counts, axis=0)
            covariates *= np.sqrt(each)[:, None]
    design: FloatArray = unpacked(packed.words, packed.n_samples, np.float64)
    design -= normal.means[:, None]
    design[~normal.changes] = 0.0
    if weights is not None and not weights.are_counts:
        design *= np.sqrt(each)
    if covariates.shape[1]:
        directions = np.linalg.qr(covariates)[0]
        design -= (design @ directions) @ directions.T
    samples = design.T  # Fortran order (n_samples, n_spins), as LAPACK wants it
    penalty = ridge * normal.n_spins
    small = blas.dsyrk(1.0, samples, lower=1)
    np.einsum("ii->i", small)[:] += penalty
    before = np.diagonal(small).copy()
    factor, trouble = lapack.dpotrf(small, lower=1, overwrite_a=1, clean=0)
    if trouble > 0 or (np.diagonal(factor) ** 2 / before).min() < 1e-13:
        raise SettingError(
            setting="ridge", value=ridge, expected="large enough for these data to be told from 0"
        )
    z = blas.dtrsm(1.0, factor, samples, lower=1, overwrite_b=1)
    inverse: FloatArray = blas.dsyrk(-1.0, z, trans=1).T  # C order: P in the lower triangle
    np.einsum("ii->i", inverse)[:] += 1.0
    return as_regressions(inverse, normal.changes)
