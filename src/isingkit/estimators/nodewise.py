"""One convex problem a spin, solved on the samples: what pseudolikelihood and interaction screening
share.
"""

import itertools
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isingkit._kernels import nodewise as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import FloatArray
from isingkit.covariates import CovariateCoding
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.covariate_effects import (
    RegressedEffects,
    errors_of_effects,
    refuse_covariates_that_separate,
    slopes_on_covariates,
    unknown_errors,
)
from isingkit.estimators.normal import (
    constant_fields,
    factor_of,
    normal_equations,
    refuse_duplicates,
    without_covariates,
)
from isingkit.exceptions import (
    LARGEST_PENALTY,
    NotConvergedWarning,
    SeparationError,
    SettingError,
    UnderdeterminedError,
    require_instance,
    require_number,
    warn,
)
from isingkit.gram import gram_of
from isingkit.missing import COMPLETE_ROWS, WHY_COMPLETE_ROWS
from isingkit.packing import PackedSpins, distinct_samples, unpacked
from isingkit.spins import Binarize, Names, RowWeights, warn_of_constants

TOLERANCE = 1e-9  # of the gradient of the mean loss
_STEPS = 200
_MOST_KEYED = 62  # spins whose row fits a key of 64 bits
# a column of so many can be predicted by chance; coupled to three with 0.4 up to 2.7 rows a column
_MANY_COLUMNS = 10
_DEGREE = 3
_COUPLING = 0.4


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The different samples, each with its share of all."""

    spins: FloatArray  # (n_spins, n_rows): -1 or +1
    weights: FloatArray  # (n_rows,): positive, of sum 1
    n_effective: float  # samples of equal weight that would tell as much
    changes: NDArray[np.bool_]  # (n_spins,): spins that are not constant
    names: Names
    covariates: FloatArray  # (n, n_rows)

    @property
    def n_spins(self) -> int:
        return len(self.spins)

    @property
    def means(self) -> FloatArray:
        return self.spins @ self.weights


@dataclass(frozen=True, slots=True, eq=False)
class PenaltyPath:
    """Estimates along falling penalties, each started from the one before."""

    penalties: FloatArray  # (n,), or (n_spins, n) where every spin has its own
    estimates: FloatArray  # (n, n_spins, n_spins): row i is the directed estimate of J_i
    intercepts: FloatArray  # (n, n_spins)
    # (n, n_spins): mean loss of each spin without penalties; infinite where the path had already
    # ended
    losses: FloatArray
    # (n, n_spins, n_covariates): effects of covariates, which are not penalised
    effects: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    # (n_spins, n_covariates): of effects, times samples, where there is but one penalty: 0
    variances: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True, slots=True)
class PathEnd:
    """Where a path of penalties ends early; by itself nowhere."""

    least_gain: float = 0.0  # that a penalty must explain more than the one before
    cost: float = 0.0  # of a neighbour: with so many that no fit would be worth it, it is over


WHOLE = PathEnd()


def distinct_rows(packed: PackedSpins, weights: RowWeights | None) -> Rows:
    """Rows of samples, of which equal ones, with equal covariates, are one."""
    totals: FloatArray = np.ones(packed.n_samples) if weights is None else weights.totals
    kept = np.flatnonzero(totals)
    first, place = _distinct(packed, kept)
    covariates: FloatArray = np.zeros((packed.n_samples, 0))
    if weights is not None and weights.covariates is not None:
        covariates = weights.covariates
        first, place = _distinct_with(covariates[kept], place)
    shares = np.asarray(np.bincount(place, weights=totals[kept])) / totals.sum()
    spins: FloatArray = unpacked(packed.words, packed.n_samples, np.float64)
    if not np.array_equal(kept[first], np.arange(packed.n_samples)):
        spins = np.ascontiguousarray(spins[:, kept[first]])
    changes: NDArray[np.bool_] = np.abs(spins @ shares) < 1 - 1e-12
    n_effective = float(packed.n_samples) if weights is None else weights.n_effective
    of_rows = np.ascontiguousarray(covariates[kept[first]].T)
    return Rows(spins, shares, n_effective, changes, packed.names, of_rows)


def _distinct(
    packed: PackedSpins, kept: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Among some samples the first of equal ones, and which of these each equals."""
    if packed.n_spins > _MOST_KEYED:
        is_all = len(kept) == packed.n_samples
        return distinct_samples(packed if is_all else packed[kept])
    bits = unpacked(packed.words, packed.n_samples, np.int8)[:, kept] > 0
    keys: NDArray[np.int64] = np.zeros(len(kept), dtype=np.int64)
    for row in bits:
        keys = np.asarray(2 * keys + row, dtype=np.int64)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return first, place


def _distinct_with(
    covariates: FloatArray, place: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same where rows must agree in covariates, too; place: which of the different rows each
    equals.
    """
    kinds = np.unique(covariates, axis=0, return_inverse=True)[1].ravel()
    keys = place * (kinds.max(initial=0) + 1) + kinds
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return first, place


def node_paths(
    rows: Rows,
    loss: int | None,
    penalties: FloatArray,
    *,
    l2: float,
    fit_fields: bool,
    n_jobs: int | None,
    scales: FloatArray | None = None,
    end: PathEnd = WHOLE,
) -> tuple[PenaltyPath, FloatArray]:
    """Estimates of every spin for each of its penalties, (n_spins, n) and falling, and how far they
    are from optimal, (n, n_spins).

    `scales` weighs the penalty of each coupling by the spin at its other end. The same for any
    number of threads: no spin's numbers depend on another's.
    """
    n_spins, n_penalties = penalties.shape
    shape = (n_penalties, n_spins)
    intercepts = np.zeros(shape)
    losses = np.full(shape, np.inf)
    residuals = np.zeros(shape)
    estimates = np.zeros((n_penalties, n_spins, n_spins))
    scales = np.ones(n_spins) if scales is None else scales
    settings = kernels.Settings(
        loss=loss,
        l2=float(l2),
        fit_fields=fit_fields,
        tolerance=TOLERANCE,
        most_steps=_STEPS,
        least_gain=float(end.least_gain),
        cost=float(end.cost),
        largest_variance=_largest_variance(rows),
    )
    effects = np.zeros((*shape, len(rows.covariates)))
    variances = np.full(effects.shape[1:], np.nan)
    results = kernels.Results(intercepts, estimates, losses, residuals, effects, variances)
    samples = _samples(rows, fit_fields, scales)
    parallel_map(kernels.node_paths, n_spins, samples, penalties, settings, results, n_jobs=n_jobs)
    constant = ~rows.changes
    if fit_fields:
        intercepts[:, constant] = constant_fields(rows.means[constant], rows.n_effective)
    for i in np.flatnonzero(constant):
        alone = np.full(len(rows.weights), intercepts[0, i])
        losses[:, i] = kernels.loss_of(loss, rows.spins[i], alone, rows.weights)
    return PenaltyPath(penalties, estimates, intercepts, losses, effects, variances), residuals


def _samples(rows: Rows, fit_fields: bool, scales: FloatArray) -> kernels.Samples:
    """What the kernel looks at. Fields start where they would be without couplings."""
    first_fields = np.zeros(rows.n_spins)
    if fit_fields:
        first_fields[rows.changes] = np.arctanh(rows.means[rows.changes])
    return kernels.Samples(
        rows.spins, rows.weights, rows.changes, scales, first_fields, rows.covariates
    )


def _largest_variance(rows: Rows) -> float:
    """Of a coupling whose loss has a minimum."""
    lightest = max(float(rows.weights.min()), 0.01 / len(rows.weights))  # may be next to nothing
    return kernels.LARGEST_VARIANCE / lightest


def refuse_separation(rows: Rows, estimates: FloatArray, residuals: FloatArray) -> None:
    """Name a pair whose coupling diverges, where some spin's loss has no minimum: residuals,
    (n_spins,), is infinite there.
    """
    separated = np.flatnonzero(residuals == kernels.SEPARATED)
    if len(separated) == 0:
        return
    found = [(int(spin), int(np.abs(estimates[spin]).argmax())) for spin in separated]
    never = [never_together(rows.spins[a], rows.spins[b]) for a, b in found]
    best = next((k for k, cell in enumerate(never) if cell is not None), 0)
    i, j = found[best]
    pair = (rows.names[i], rows.names[j])
    raise SeparationError(
        pair=pair,
        coupling=float(estimates[i, j]),
        never=never[best],
        rows_needed=_rows_needed(rows),
    )


def _rows_needed(rows: Rows) -> int | None:
    """Different rows below which a loss has no minimum by chance, where there are fewer."""
    from isingkit.theory.separation import separation_limit  # slow to import, and rarely needed

    n_columns = int(rows.changes.sum())
    needed = int(np.ceil((n_columns - 1) * separation_limit(_DEGREE, _COUPLING)))
    n_rows = rows.spins.shape[1]
    return needed if n_columns >= _MANY_COLUMNS and n_rows < needed else None


def never_together(first: FloatArray, second: FloatArray) -> tuple[int, int] | None:
    """Values of two spins that no row has."""
    seen = {(int(a), int(b)) for a, b in zip(first, second, strict=True)}
    cells = itertools.product((-1, 1), (-1, 1))
    return next((cell for cell in cells if cell not in seen), None)


def refuse_separation_by_covariates(
    rows: Rows,
    loss: int | None,
    path: PenaltyPath,
    chosen: NDArray[np.int64],
    coding: CovariateCoding,
) -> None:
    """Name a covariate whose effect diverges; chosen: (n_spins,), which penalty of the path."""
    spins = np.arange(rows.n_spins)
    effects = path.effects[chosen, spins]
    estimates = path.estimates[chosen, spins]
    fields = path.intercepts[chosen, spins][:, None] + effects @ rows.covariates
    fields += estimates @ rows.spins
    refuse_covariates_that_separate(
        rows, loss, fields, effects, estimates, _largest_variance(rows), coding.names
    )


def regressed_effects(
    rows: Rows, path: PenaltyPath, chosen: NDArray[np.int64], has_errors: bool
) -> RegressedEffects:
    """Effects of covariates at one penalty of each spin's path, with errors where there were no
    penalties at all.
    """
    effects = path.effects[chosen, np.arange(rows.n_spins)]
    errors = errors_of_effects(rows, path.variances) if has_errors else unknown_errors(rows)
    return RegressedEffects(effects, errors, slopes_on_covariates(rows))


class NodewiseEstimator(IsingEstimator):
    """An estimator that looks at samples, spin by spin or at all spins jointly, with penalties on
    its couplings.
    """

    _takes_covariates = True
    _policies = COMPLETE_ROWS
    _why_no_more = WHY_COMPLETE_ROWS

    def __init__(
        self,
        *,
        l1: float,
        l2: float,
        joint: bool,
        threshold: float,
        rule: str,
        fit_fields: bool,
        binarize: Binarize,
        missing: str,
        merge_alike: bool | float | str,
        n_jobs: int | None,
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
        self.l2 = l2
        self.joint = joint
        self.n_jobs = n_jobs

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number("l1", self.l1, at_least=0)
        require_number("l2", self.l2, at_least=0, at_most=LARGEST_PENALTY)
        require_instance("joint", self.joint, bool, "True or False")

    @property
    @abstractmethod
    def _loss(self) -> int | None:
        """Which loss the kernels minimise."""

    def _learn(self, packed: PackedSpins, weights: RowWeights | None, warned: bool) -> Self:
        stat = gram_of(packed, weights)
        normal = normal_equations(stat, self.fit_fields)
        if not warned:
            warn_of_constants(normal.names, ~normal.changes)
        rows = distinct_rows(packed, weights)
        if self.l1 == self.l2 == 0 and rows.changes.any():
            if rows.spins.shape[1] <= rows.changes.sum() + len(rows.covariates):
                what = "a likelihood without penalty (that counts different rows only)"
                raise UnderdeterminedError(
                    n_samples=rows.spins.shape[1], n_spins=rows.n_spins, what=what
                )
            refuse_duplicates(stat, normal)
            if weights is not None and weights.covariates is not None:
                normal = without_covariates(normal, packed, weights)
            factor_of(normal, ridge=0.0)  # refuses spins that others determine
        minimise = self._minimise_jointly if self.joint else self._minimise_by_spin
        estimates, intercepts, residual = minimise(rows)
        warn_if_not_converged(type(self).__name__, residual)
        return self._finish(packed, stat.n_samples, estimates, intercepts, rows.means)

    def _minimise_jointly(self, rows: Rows) -> tuple[FloatArray, FloatArray, float]:
        """Estimates, intercepts and how far they are from optimal."""
        from isingkit.estimators.joint import joint_estimates

        if len(rows.covariates):
            raise SettingError(setting="joint", value=True, expected="False with covariates")
        return joint_estimates(rows, self._loss, self.l1, self.l2, self.fit_fields)

    def _minimise_by_spin(self, rows: Rows) -> tuple[FloatArray, FloatArray, float]:
        """The same spin by spin; effects of covariates are kept."""
        penalties = np.full((rows.n_spins, 1), float(self.l1))
        path, residuals = node_paths(
            rows,
            self._loss,
            penalties,
            l2=self.l2,
            fit_fields=self.fit_fields,
            n_jobs=self.n_jobs,
        )
        estimates = path.estimates[0]
        intercepts = path.intercepts[0]
        if self._coding is not None:
            first = np.zeros(rows.n_spins, dtype=np.int64)
            refuse_separation_by_covariates(rows, self._loss, path, first, self._coding)
            has_errors = self._loss is kernels.LOGISTIC and self.l1 == self.l2 == 0
            self._regressed = regressed_effects(rows, path, first, has_errors)
        refuse_separation(rows, estimates, residuals[0])
        return estimates, intercepts, float(residuals.max())

    def _taken_up(self, couplings: Any, of_spins: FloatArray) -> FloatArray:
        dropped = np.where(couplings.toarray() == 0, self.estimates_, 0.0)
        return np.asarray(dropped @ of_spins)

    def _fields(self, couplings: Any, means: FloatArray) -> FloatArray:
        """The regressions' own intercepts, plus the mean influence of couplings that threshold or
        rule have dropped.
        """
        if not self.fit_fields:
            return np.zeros(len(means))
        return np.asarray(self.intercepts_ + self._taken_up(couplings, means))


def warn_if_not_converged(what: str, residual: float) -> None:
    """Warn where a gradient is not as small as it should be."""
    if residual > 100 * TOLERANCE:
        advice = "raise l1 or l2, or look for columns that nearly follow from others"
        warn(
            NotConvergedWarning(
                what=what, residual=residual, allowed=100 * TOLERANCE, advice=advice
            )
        )
