"""PseudolikelihoodIsing: logistic regression of each spin on all others."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isingkit._kernels import nodewise as kernels
from isingkit.arrays import FloatArray
from isingkit.estimators.nodewise import (
    NodewiseEstimator,
    PenaltyPath,
    distinct_rows,
    node_paths,
    warn_if_not_converged,
)
from isingkit.exceptions import SettingError, require_number
from isingkit.spins import Binarize


class PseudolikelihoodIsing(NodewiseEstimator):
    r"""Couplings and fields that make each spin likeliest given all others. [eq:PL-estimator-df]

    Row i minimises the mean over samples of log(1 + exp(-2 s_i (H_i + \sum_j J_ij s_j))) + l1
    \sum_j |J_ij| + l2 \sum_j J_ij^2. Without penalties it is consistent: with enough samples the
    true couplings come out, loops or not. scikit-learn's LogisticRegression gives the same,
    coefficients halved, with C = 2 / (l1 n_samples) or C = 2 / (l2 n_samples).

    Parameters
    ----------
    l1
        Weight of the absolute values of couplings; sets weak ones to exactly zero.
    l2
        Weight of their squares.
    joint
        Whether to maximise the sum over all spins with J_ij = J_ji, instead of spin by spin.
    threshold
        Couplings below it count as absent.
    rule
        How two directed estimates become one coupling: "average" thresholds their mean; "and" asks
        both to pass; "or" asks one to.
    fit_fields
        Whether to fit fields, which are not penalised; without, spins are taken to be symmetric.
    binarize
        Threshold that turns real-valued columns into spins, or thresholds by names of columns.
    missing
        "error" or "drop".
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
        (n_spins,) array of the estimated fields.
    model_
        The IsingModel after threshold and rule.
    alike_
        Table of columns that became part of another's spin: column, spin, correlation. Empty where
        none did; else `model_` and all that is said of spins has one for all of them.
    covariate_effects_
        Where `fit` was given covariates: structured array of the columns variable, covariate,
        effect, low, high, std_error, z, p_value and q_value, surest first; without penalties it
        has errors.
    n_samples_
        Samples used: rows, or their counts; of weights w (sum w)^2 / sum w^2.
    mapping_
        For each spin the values of the table that became -1 and +1.

    Examples
    --------
    >>> import isingkit as ik
    >>> truth = ik.square_lattice(side=4, coupling=0.5, random_state=0)
    >>> samples = ik.exact(truth).sample(n_samples=4000, random_state=1)
    >>> fit = ik.PseudolikelihoodIsing(threshold=0.25).fit(samples)
    >>> ik.score(fit.model_, truth).exact
    True
    """

    def __init__(
        self,
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        joint: bool = False,
        threshold: float = 0.0,
        rule: str = "average",
        fit_fields: bool = True,
        binarize: Binarize = None,
        missing: str = "error",
        merge_alike: bool | float | str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            l1=l1,
            l2=l2,
            joint=joint,
            threshold=threshold,
            rule=rule,
            fit_fields=fit_fields,
            binarize=binarize,
            missing=missing,
            merge_alike=merge_alike,
            n_jobs=n_jobs,
        )

    @property
    def _loss(self) -> int | None:
        return kernels.LOGISTIC

    def path(
        self,
        X: Any,
        penalties: ArrayLike | None = None,
        *,
        n_penalties: int = 100,
        sample_weight: Any = None,
        counts: Any = None,
    ) -> PenaltyPath:
        """Estimates of single spins for many l1, each started from the one before. Does not change
        the estimator.

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
        rows = distinct_rows(packed, weights)
        if penalties is None:
            penalties = default_penalties(
                covariances(rows.spins, rows.weights, self.fit_fields), n_penalties
            )
        falling = as_penalties(penalties)
        each = np.tile(falling, (rows.n_spins, 1))
        path, residuals = node_paths(
            rows, self._loss, each, l2=self.l2, fit_fields=self.fit_fields, n_jobs=self.n_jobs
        )
        warn_if_not_converged("the path", float(residuals.max()))
        return PenaltyPath(falling, path.estimates, path.intercepts, path.losses)


def covariances(spins: FloatArray, weights: FloatArray, fit_fields: bool) -> FloatArray:
    """Slopes of the loss by each coupling where there are none: covariances, or, without fields,
    mean products.
    """
    means = spins @ weights if fit_fields else np.zeros(len(spins))
    return np.asarray((spins * weights) @ spins.T - np.outer(means, means))


def default_penalties(slopes: FloatArray, n_penalties: int) -> FloatArray:
    """Falling values of l1 from where the first coupling appears down to a thousandth of it."""
    require_number("n_penalties", n_penalties, at_least=1, whole=True)
    between_spins = slopes - np.diag(np.diagonal(slopes))
    largest = float(np.abs(between_spins).max(initial=0.0)) or 1.0
    return largest * np.logspace(0, -3, n_penalties)


def as_penalties(penalties: ArrayLike) -> FloatArray:
    """Penalties as falling numbers; refuses what are none."""
    try:
        values = np.atleast_1d(np.asarray(penalties, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all() or (values <= 0).any():
        raise SettingError(setting="penalties", value=penalties, expected="finite numbers > 0")
    return np.sort(values)[::-1].copy()
