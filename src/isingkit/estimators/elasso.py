"""ELassoIsing: l1-penalised logistic regressions whose penalties an information criterion
chooses.
"""

from dataclasses import replace
from typing import Self

import numpy as np

from isingkit._kernels import nodewise as kernels
from isingkit.arrays import BoolArray, FloatArray
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.nodewise import (
    PathEnd,
    Rows,
    distinct_rows,
    node_paths,
    refuse_separation_by_covariates,
    regressed_effects,
    warn_if_not_converged,
)
from isingkit.estimators.pseudolikelihood import covariances
from isingkit.estimators.symmetric import symmetric_couplings
from isingkit.exceptions import LARGEST_PENALTY, require_number
from isingkit.gram import gram_of
from isingkit.missing import COMPLETE_ROWS, WHY_COMPLETE_ROWS
from isingkit.packing import PackedSpins
from isingkit.spins import Binarize, RowWeights, warn_of_constants

# of the deviance explained; a path that gains less from one penalty to the next has come to its end
_LEAST_GAIN = 1e-5
_FEWEST_OF_A_VALUE = 2  # samples, for a spin to have neighbours
_WITHOUT_COUPLINGS = 1e6  # a penalty that leaves none: slopes are at most 2


class ELassoIsing(IsingEstimator):
    r"""Couplings by the method of R's IsingFit: nothing to tune but how sparse the network should
    be.

    Each spin is regressed on all others along a path of penalties, spins standardised. Of k
    neighbours found, the extended Bayesian criterion -2 log L + k log M + 2 gamma k log(N - 1)
    picks the penalty, and a rule joins the two directions. Paths end as glmnet's do, once a penalty
    explains at most 1e-5 of the deviance more than the one before, or 0.999 is explained. A spin
    one value of which occurs but once has no neighbours, as in IsingFit. Results are kept in both
    codings: `model_` for -1/+1, `weights_` and `thresholds_` for 0/1, where W_ij = 4 J_ij.

    Parameters
    ----------
    gamma
        Weight of the number of possible neighbours in the criterion; larger finds fewer edges. 0 is
        the plain Bayesian criterion.
    n_penalties
        Penalties on the path of each spin.
    threshold
        Couplings below it count as absent.
    rule
        How two directed estimates become one coupling: "average" thresholds their mean; "and" asks
        both to pass; "or" asks one to.
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
    weights_
        (n_spins, n_spins) array: symmetric couplings in 0/1 coding, IsingFit's weiadj.
    thresholds_
        (n_spins,) array: the regressions' intercepts in 0/1 coding, IsingFit's thresholds.
    penalties_
        (n_spins,) array: the penalty chosen for each spin, in units of the mean log likelihood,
        spins standardised in 0/1 coding.
    criteria_
        (n_spins,) array: the criterion there.
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
        effect, low, high, std_error, z, p_value and q_value, strongest first; it has no errors.
    n_samples_
        Samples used: rows, or their counts; of weights w (sum w)^2 / sum w^2.
    mapping_
        For each spin the values of the table that became -1 and +1.

    Examples
    --------
    >>> import isingkit as ik
    >>> truth = ik.random_regular(n_spins=20, degree=3, coupling=0.4, random_state=0)
    >>> fit = ik.ELassoIsing().fit(ik.sample(truth, n_samples=1000, random_state=1))
    >>> ik.score(fit.model_, truth).recall
    1.0
    """

    _takes_covariates = True
    _policies = COMPLETE_ROWS
    _why_no_more = WHY_COMPLETE_ROWS

    def __init__(
        self,
        *,
        gamma: float = 0.25,
        n_penalties: int = 100,
        threshold: float = 0.0,
        rule: str = "and",
        binarize: Binarize = None,
        missing: str = "error",
        merge_alike: bool | float | str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            threshold=threshold,
            rule=rule,
            fit_fields=True,
            binarize=binarize,
            missing=missing,
            merge_alike=merge_alike,
        )
        self.gamma = gamma
        self.n_penalties = n_penalties
        self.n_jobs = n_jobs

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number("gamma", self.gamma, at_least=0, at_most=LARGEST_PENALTY)
        require_number("n_penalties", self.n_penalties, at_least=2, whole=True)

    def _learn(self, packed: PackedSpins, weights: RowWeights | None, warned: bool) -> Self:
        stat = gram_of(packed, weights)
        if not warned:
            warn_of_constants(stat.names, ~stat.changes)
        rows = distinct_rows(packed, weights)
        is_single = rows.changes & _occur_once(rows)
        rows = replace(rows, changes=rows.changes & ~is_single)
        slopes = covariances(rows.spins, rows.weights, True)
        scales = np.sqrt(np.maximum(np.diagonal(slopes), 0.0))
        scales[~rows.changes] = 1.0
        if len(rows.covariates):
            slopes = _slopes_given_covariates(rows, self.n_jobs)
        np.fill_diagonal(slopes, 0.0)
        largest = np.abs(slopes / scales).max(
            axis=1
        )  # of each spin: where its first neighbour appears
        ratio = 1e-4 if stat.n_effective >= rows.n_spins - 1 else 1e-2
        first = np.where(largest > 0, largest, 1.0)
        steps = np.linspace(0, 1, self.n_penalties)
        penalties = first[:, None] * ratio**steps
        n_others = max(int(rows.changes.sum()) - 1, 1)
        cost = np.log(stat.n_effective) + 2 * self.gamma * np.log(n_others)
        end = PathEnd(_LEAST_GAIN, cost / (2 * stat.n_effective))
        path, residuals = node_paths(
            rows,
            kernels.LOGISTIC,
            penalties,
            l2=0.0,
            fit_fields=True,
            n_jobs=self.n_jobs,
            scales=scales,
            end=end,
        )
        neighbours = np.count_nonzero(path.estimates, axis=2)
        criteria = 2 * stat.n_effective * path.losses + neighbours * cost
        criteria[:, ~rows.changes] = 0.0
        best = criteria.argmin(axis=0)
        spins = np.arange(rows.n_spins)
        if self._coding is not None:
            refuse_separation_by_covariates(rows, kernels.LOGISTIC, path, best, self._coding)
            self._regressed = regressed_effects(rows, path, best, has_errors=False)
        warn_if_not_converged("ELassoIsing", float(residuals[best, spins].max()))
        self.penalties_ = penalties[spins, best] / 2
        self.criteria_ = criteria[best, spins]
        estimates = path.estimates[best, spins]
        intercepts = path.intercepts[best, spins]
        intercepts[is_single] = np.arctanh(rows.means[is_single])
        self.weights_ = (
            4 * symmetric_couplings(estimates, self._least_coupling(), self.rule).toarray()
        )
        self.thresholds_ = 2 * intercepts - 2 * estimates.sum(axis=1)
        return self._finish(packed, stat.n_samples, estimates, intercepts, rows.means)


def _occur_once(rows: Rows) -> BoolArray:
    """(n_spins,): spins one value of which is that of a single sample, or of none."""
    n_rarer = rows.n_effective * (1 - np.abs(rows.means)) / 2
    return np.asarray(n_rarer < _FEWEST_OF_A_VALUE - 1e-6)


def _slopes_given_covariates(rows: Rows, n_jobs: int | None) -> FloatArray:
    """(n_spins, n_spins): slopes of the loss by each coupling where there are none, but covariates
    have their effects: covariances of one spin and of what covariates leave of the other.
    """
    alone = np.full((rows.n_spins, 1), _WITHOUT_COUPLINGS)
    path, _ = node_paths(rows, kernels.LOGISTIC, alone, l2=0.0, fit_fields=True, n_jobs=n_jobs)
    fields = path.intercepts[0][:, None] + path.effects[0] @ rows.covariates
    left = rows.weights * (rows.spins - np.tanh(fields))
    left[~rows.changes] = 0.0
    return np.asarray(left @ rows.spins.T)
