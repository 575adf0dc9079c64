"""MaximumLikelihoodIsing: the couplings and fields whose model has the moments of the data."""

import itertools

import numpy as np
import scipy.linalg

from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.base import GramEstimator
from isingkit.estimators.boltzmann import Moments, boltzmann
from isingkit.estimators.normal import NormalEquations, constant_fields
from isingkit.exceptions import (
    LARGEST_PENALTY,
    NotConvergedError,
    SeparationError,
    SettingError,
    require_instance,
    require_number,
)
from isingkit.gram import Gram
from isingkit.missing import COMPLETE_ROWS, WHY_COMPLETE_ROWS
from isingkit.packing import PackedSpins
from isingkit.spins import Binarize, Names, RowWeights, missing_policy
from isingkit.worlds.exact import MOST_SPINS, statistics_of, walsh_hadamard
from isingkit.worlds.graphs import Seed

_STEPS = 100
_TOLERANCE = 1e-10  # of moments
# of a coupling, in units of one sample; more only where the likelihood has no maximum
_LARGEST_VARIANCE = 900.0
# coupling or field; the moments of larger ones cannot be told from those of no exception at all
_LARGEST = 25.0


class MaximumLikelihoodIsing(GramEstimator):
    r"""Couplings and fields of the largest likelihood: those whose model has the means and pair
    means of the data. [eq:ML-def]

    "exact" sums over all states, by Newton steps; every moment and every second derivative comes
    out of one Walsh-Hadamard transform, so that 15 spins take milliseconds and 22 a second or two.
    "boltzmann" takes the moments from Monte Carlo chains that run on while couplings change, for
    any number of spins; it stops where moments agree within the data's own standard errors.

    Parameters
    ----------
    method
        "exact" for up to 24 spins, "boltzmann" for any number.
    l2
        Weight of the squares of couplings, taken off the mean log likelihood.
    tolerance
        Of "boltzmann": largest difference between moments of model and data, in standard errors of
        the data's.
    n_chains
        Of "boltzmann": chains to run.
    max_steps
        Of "boltzmann": most changes of the couplings.
    threshold
        Couplings below it count as absent.
    rule
        How two directed estimates become one coupling: "average" thresholds their mean; "and" asks
        both to pass; "or" asks one to.
    fit_fields
        Whether to fit fields; without, spins are taken to be symmetric.
    binarize
        Threshold that turns real-valued columns into spins, or thresholds by names of columns.
    missing
        "error" or "drop".
    merge_alike
        Whether columns that are equal, or opposite, in all rows become one spin, with the name of
        the first of them: True, False, or a number, the correlation from which on they do. "auto"
        is True beyond 1000 columns.
    random_state
        Seed or numpy Generator, of "boltzmann".
    n_jobs
        Threads to use; None or -1 is all.
    progress
        Whether to show a progress bar, of "boltzmann".

    Attributes
    ----------
    mismatch_
        Largest difference between moments of model and data (with an l2: from where it pulls them),
        in standard errors of the data's.
    n_steps_
        Changes of the couplings that it took.
    estimates_
        (n_spins, n_spins) array; row i is the directed estimate of J_i before the threshold.
    intercepts_
        (n_spins,) array of the estimated fields.
    model_
        The IsingModel after threshold and rule.
    alike_
        Table of columns that became part of another's spin: column, spin, correlation. Empty where
        none did; else `model_` and all that is said of spins has one for all of them.
    n_samples_
        Samples used: rows, or their counts; of weights w (sum w)^2 / sum w^2.
    mapping_
        For each spin the values of the table that became -1 and +1.

    Examples
    --------
    >>> import isingkit as ik
    >>> truth = ik.IsingModel([[0, 0.5, 0], [0.5, 0, -0.3], [0, -0.3, 0]], fields=[0.2, 0, -0.4])
    >>> samples = ik.exact(truth).sample(n_samples=20_000, random_state=0)
    >>> fit = ik.MaximumLikelihoodIsing().fit(samples)
    >>> round(fit.log_likelihood(ik.exact(truth).sample(n_samples=20_000, random_state=1)), 2)
    -1.81
    """

    _policies = COMPLETE_ROWS
    _why_no_more = WHY_COMPLETE_ROWS

    def __init__(
        self,
        *,
        method: str = "exact",
        l2: float = 0.0,
        tolerance: float = 2.0,
        n_chains: int = 8192,
        max_steps: int = 500,
        threshold: float = 0.0,
        rule: str = "average",
        fit_fields: bool = True,
        binarize: Binarize = None,
        missing: str = "error",
        merge_alike: bool | float | str = "auto",
        random_state: Seed = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__(
            threshold=threshold,
            rule=rule,
            fit_fields=fit_fields,
            binarize=binarize,
            missing=missing,
            merge_alike=merge_alike,
        )
        self.method = method
        self.l2 = l2
        self.tolerance = tolerance
        self.n_chains = n_chains
        self.max_steps = max_steps
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number("l2", self.l2, at_least=0, at_most=LARGEST_PENALTY)
        require_number("tolerance", self.tolerance, above=0)
        require_number("n_chains", self.n_chains, at_least=64, whole=True)
        require_number("max_steps", self.max_steps, at_least=1, whole=True)
        require_instance("progress", self.progress, bool, "True or False")
        if self.method not in ("exact", "boltzmann"):
            raise SettingError(
                setting="method", value=self.method, expected="'exact' or 'boltzmann'"
            )

    def _estimate(
        self,
        stat: Gram,
        normal: NormalEquations,
        packed: PackedSpins | None,
        weights: RowWeights | None,
    ) -> tuple[FloatArray, FloatArray]:
        if stat.joint is not None:
            missing_policy("pairwise", self._policies, self._why_no_more)
        keep = normal.changes
        names = tuple(name for name, kept in zip(stat.names, keep, strict=True) if kept)
        pair_means = stat.sums[np.ix_(keep, keep)] / stat.n_samples
        target = Moments(normal.means[keep], pair_means, stat.n_effective, self.fit_fields)
        if self.l2 == 0:
            refuse_missing_cells(target, names)
        couplings = np.zeros((len(names), len(names)))
        fields = np.zeros(len(names))
        self.mismatch_ = 0.0
        self.n_steps_ = 0
        if len(names) == 0:
            pass
        elif self.method == "exact":
            if len(names) > MOST_SPINS:
                expected = (
                    f"'boltzmann' for {len(names)} spins: 'exact' sums over all states of up to "
                    f"{MOST_SPINS}"
                )
                raise SettingError(setting="method", value="exact", expected=expected)
            couplings, fields, self.mismatch_, self.n_steps_ = exact_likelihood(
                target, self.l2, names
            )
        else:
            couplings, fields, self.mismatch_, self.n_steps_ = boltzmann(
                target,
                self.l2,
                tolerance=self.tolerance,
                n_chains=self.n_chains,
                max_steps=self.max_steps,
                random_state=self.random_state,
                n_jobs=self.n_jobs,
                progress=self.progress,
            )
        estimates = np.zeros((stat.n_spins, stat.n_spins))
        intercepts = np.zeros(stat.n_spins)
        estimates[np.ix_(keep, keep)] = couplings
        intercepts[keep] = fields
        if self.fit_fields:
            intercepts[~keep] = constant_fields(normal.means[~keep], stat.n_effective)
        return estimates, intercepts


def refuse_missing_cells(target: Moments, names: Names) -> None:
    """Name a pair of spins that never take two of their values together: their coupling would be
    infinite.
    """
    means = target.means
    for a, b in itertools.product((-1, 1), repeat=2):
        shares = 1 + a * means[:, None] + b * means + a * b * target.pair_means
        np.fill_diagonal(shares, 1.0)
        if len(means) and shares.min() < 1e-12:
            i, j = np.unravel_index(int(shares.argmin()), shares.shape)
            pair = (names[i], names[j])
            raise SeparationError(pair=pair, coupling=a * b * -np.inf, never=(a, b))


def exact_likelihood(
    target: Moments, l2: float, names: Names
) -> tuple[FloatArray, FloatArray, float, int]:
    """Couplings, fields, largest mismatch in standard errors, and Newton steps taken."""
    n_spins = len(target.means)
    masks, i, j = statistics_of(n_spins)
    wanted = np.concatenate([target.means, target.pair_means[i, j]])
    is_pair = np.arange(len(masks)) >= n_spins
    free = is_pair | target.fit_fields
    x = np.zeros(len(masks))
    if target.fit_fields:
        x[:n_spins] = np.arctanh(target.means)
    value, moments = _likelihood(x, masks, wanted, n_spins)
    penalty = np.where(is_pair, 2 * l2, 0.0)
    n_steps = 0
    while n_steps < _STEPS:
        gradient = np.where(free, wanted - moments[masks] - penalty * x, 0.0)
        if np.abs(gradient).max(initial=0.0) <= _TOLERANCE:
            break
        hessian = moments[masks[:, None] ^ masks] - np.outer(moments[masks], moments[masks])
        hessian[np.diag_indices_from(hessian)] += penalty + 1e-13
        change = np.zeros(len(x))
        change[free] = scipy.linalg.solve(
            hessian[np.ix_(free, free)], gradient[free], assume_a="sym"
        )
        here = value - penalty @ x**2 / 2
        length = 1.0
        while length > 1e-9:
            tried = x + length * change
            value, moments = _likelihood(tried, masks, wanted, n_spins)
            reached = value - penalty @ tried**2 / 2
            enough = here + 1e-4 * length * gradient @ change - 1e-13 * abs(here)
            if reached >= enough:
                break
            length /= 2
        x = tried
        n_steps = n_steps + 1
        if np.abs(x).max() > _LARGEST:
            break
    couplings = np.zeros((n_spins, n_spins))
    couplings[i, j] = couplings[j, i] = x[n_spins:]
    off = np.where(free, wanted - moments[masks] - penalty * x, 0.0)
    hessian = moments[masks[:, None] ^ masks] - np.outer(moments[masks], moments[masks])
    variances = np.diagonal(
        np.linalg.pinv(hessian[np.ix_(free, free)], rcond=1e-14, hermitian=True)
    )
    if (
        l2 == 0
        and n_spins > 1
        and (np.abs(x).max() > _LARGEST or variances.max() > _LARGEST_VARIANCE * target.n_samples)
    ):
        a, b = np.unravel_index(int(np.abs(couplings).argmax()), couplings.shape)
        raise SeparationError(pair=(names[a], names[b]), coupling=float(couplings[a, b]))
    if np.abs(off).max(initial=0.0) > 1e-7:
        raise NotConvergedError(
            what="the exact likelihood",
            residual=float(np.abs(off).max()),
            advice="give an l2, e.g. l2=0.001",
        )
    return couplings, x[:n_spins], target.mismatch(moments[masks] + penalty * x), n_steps


def _likelihood(
    x: FloatArray, masks: IntArray, wanted: FloatArray, n_spins: int
) -> tuple[float, FloatArray]:
    """The mean log likelihood and the means of all products of spins."""
    table = np.zeros(2**n_spins)
    table[masks] = x
    walsh_hadamard(table)
    largest = float(table.max())
    np.exp(table - largest, out=table)
    total = float(table.sum())
    table /= total
    walsh_hadamard(table)
    return float(x @ wanted) - largest - np.log(total), table
