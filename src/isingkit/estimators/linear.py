"""LinearIsing: ordinary least squares."""

from isingkit.arrays import FloatArray
from isingkit.estimators.base import LinearEstimator
from isingkit.estimators.covariate_effects import n_covariates
from isingkit.estimators.normal import (
    NormalEquations,
    all_regressions,
    factor_of,
    inverse_of,
    refuse_duplicates,
    through_means,
)
from isingkit.exceptions import UnderdeterminedError
from isingkit.gram import Gram
from isingkit.packing import PackedSpins
from isingkit.spins import Binarize, RowWeights


class LinearIsing(LinearEstimator):
    """Couplings by ordinary least squares of each spin on all others, thresholded.
    [eq:PL-estimator-L2] with lambda = 0.

    Needs more samples than spins. On tree-like networks absent couplings are estimated without bias
    (Theorem 1), so a threshold finds the network; present ones come out as tanh K / (1 + (c - 1)
    tanh^2 K), smaller than K.

    Parameters
    ----------
    threshold
        Couplings below it count as absent (the paper's K_th).
    rule
        How two directed estimates become one coupling: "average" thresholds their mean; "and" asks
        both to pass; "or" asks one to.
    fit_fields
        Whether to fit fields (intercepts); without, spins are taken to be symmetric.
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
    >>> truth = ik.random_regular(n_spins=30, degree=3, coupling=0.4, random_state=0)
    >>> fit = ik.LinearIsing(threshold=0.15).fit(ik.sample(truth, n_samples=3000, random_state=1))
    >>> ik.score(fit.model_, truth).exact
    True
    """

    def __init__(
        self,
        *,
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

    def _estimate(
        self,
        stat: Gram,
        normal: NormalEquations,
        packed: PackedSpins | None,
        weights: RowWeights | None,
    ) -> tuple[FloatArray, FloatArray]:
        if stat.n_rows <= normal.changes.sum() + n_covariates(weights):
            raise UnderdeterminedError(n_samples=stat.n_rows, n_spins=stat.n_spins)
        refuse_duplicates(stat, normal)
        inverse = inverse_of(normal, factor_of(normal, ridge=0.0))
        estimates = all_regressions(normal, inverse)
        return through_means(estimates, normal)
