"""TwoStageIsing: the paper's estimator for fewer samples than spins."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from isingkit._kernels import estimators as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.base import LinearEstimator
from isingkit.estimators.bits import (
    bits_of,
    goes_by_bits,
    repeated_if_few,
    without_covariates,
)
from isingkit.estimators.covariate_effects import n_covariates, regressed_effects
from isingkit.estimators.executor import current_executor
from isingkit.estimators.moments import SecondMoments, best_resolvent, noise_at
from isingkit.estimators.normal import (
    NormalEquations,
    all_regressions,
    correlations,
    factor_of,
    inverse_of,
    refuse_duplicates,
    through_means,
)
from isingkit.estimators.ridge import dual_is_better, dual_regressions
from isingkit.estimators.symmetric import TIE, just_above
from isingkit.estimators.tiles import (
    BandedScreen,
    CorrelationScreen,
    RidgeScreen,
    as_candidates,
    regressions_on_candidates,
    screened,
)
from isingkit.exceptions import LARGEST_PENALTY, StageTwoError, require_number
from isingkit.formats import FilePath
from isingkit.gram import Gram
from isingkit.packing import PackedSpins
from isingkit.spins import Binarize, RowWeights, warn_of_constants

_RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)
_ABSENT = 4.0  # couplings of each spin that are not there and pass stage one
_FALSE = 0.05  # share of edges


class TwoStageIsing(LinearEstimator):
    """Couplings by ridge regression, pruned, then least squares on what is left, thresholded.
    [eq:stage1-threshold]

    Beyond 5000 spins nothing of the size of all pairs is stored: pairs are looked at tile by tile,
    and `estimates_` and `stage_one_estimates_` are sparse (CSR), the latter with what passed only.
    The answers are the same. Where there are more rows than spins, and `ridge` is finite, one
    matrix of all pairs must fit into memory.

    Stage one, ridge regression of each spin on all others, keeps estimates above `prune`, small
    enough to lose no coupling. Stage two, least squares of each spin on its few candidates, has far
    more samples than unknowns and finds the network even where there are fewer samples than spins.
    The paper's own knobs are ridge=0.1, prune=0.1 (or 0.05); the defaults find more of a network of
    a few hundred spins.

    Parameters
    ----------
    ridge
        lambda of stage one, exactly the paper's. Infinity screens on sample correlations instead;
        "auto" takes the one that predicts left-out samples best.
    prune
        K_1: estimates of stage one below it are dropped. "auto" knows their noise from theory and
        lets about four absent couplings of each spin through.
    threshold
        K_2: couplings of stage two below it count as absent. "auto" takes the smallest at which
        noise, again known, would make at most one edge in twenty.
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
    checkpoint
        Of large networks: a folder where finished work is recorded. The same fit, started again,
        goes on from there.
    n_jobs
        Of large networks: threads to use; None or -1 is all.
    progress
        Of large networks: whether to show a progress bar.

    Attributes
    ----------
    stage_one_estimates_
        (n_spins, n_spins) array: the ridge estimates before pruning, or sample correlations where
        ridge is infinite.
    ridge_
        The ridge used.
    prune_
        The K_1 used.
    threshold_
        The K_2 used.
    support_sizes_
        (n_spins,) array: how many candidates of each spin survive stage one.
    estimates_
        (n_spins, n_spins) array: stage two before the threshold; row i is the directed estimate of
        J_i, 0 where pruned.
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
    Fewer samples than spins:

    >>> import isingkit as ik
    >>> truth = ik.random_regular(n_spins=200, degree=3, coupling=0.4, random_state=0)
    >>> fit = ik.TwoStageIsing().fit(ik.sample(truth, n_samples=180, random_state=1))
    >>> ik.score(fit.model_, truth).f1 > 0.9
    True
    """

    def __init__(
        self,
        *,
        ridge: float | str = 1.0,
        prune: float | str = 0.08,
        threshold: float | str = 0.15,
        rule: str = "average",
        fit_fields: bool = True,
        binarize: Binarize = None,
        missing: str = "error",
        merge_alike: bool | float | str = "auto",
        checkpoint: FilePath | None = None,
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
        self.ridge = ridge
        self.prune = prune
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.progress = progress

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number(
            "ridge", self.ridge, above=0, at_most=LARGEST_PENALTY, finite=False, auto=True
        )
        require_number("prune", self.prune, at_least=0, auto=True)

    def _check_threshold(self) -> None:
        require_number("threshold", self.threshold, at_least=0, auto=True)

    def _least_coupling(self) -> float:
        return self.threshold_

    def _learn(
        self,
        packed: PackedSpins | None,
        weights: RowWeights | None,
        warned: bool,
        stat: Gram | None = None,
    ) -> Self:
        if packed is None:
            return super()._learn(packed, weights, warned, stat)
        packed, weights = repeated_if_few(packed, weights)
        if goes_by_bits(packed):
            return self._learn_by_tiles(packed, weights, warned)
        return super()._learn(packed, weights, warned)

    def _learn_by_tiles(
        self, packed: PackedSpins, weights: RowWeights | None, warned: bool
    ) -> Self:
        self.__dict__.pop("gram_", None)  # of an earlier partial_fit
        bits = bits_of(packed, self.fit_fields, weights)
        if not warned:
            warn_of_constants(bits.names, ~bits.changes)
        slopes = None
        if weights is not None and weights.covariates is not None:
            bits = without_covariates(bits, np.ascontiguousarray(weights.covariates.T))
            slopes = bits.slopes_on(weights.covariates)
        self._choose_stage_one(bits)
        if np.isinf(self.ridge_):
            screen: BandedScreen = CorrelationScreen(bits, self.prune_)
        else:
            screen = RidgeScreen(bits, self.ridge_, self.prune_)
        checkpoint = None if self.checkpoint is None else Path(self.checkpoint)
        kept = screened(
            screen,
            packed,
            checkpoint=checkpoint,
            n_jobs=self.n_jobs,
            progress=self.progress,
            run=current_executor(),
        )
        del screen  # and what it has taken of memory
        self.stage_one_estimates_ = as_candidates(kept, packed.n_spins, self.prune_)
        self.support_sizes_ = np.diff(self.stage_one_estimates_.indptr).astype(np.int64)
        most = bits.n_counted - 1 - int(self.fit_fields) - len(bits.covariates)
        estimates = regressions_on_candidates(bits, self.stage_one_estimates_, most, self.n_jobs)
        self.threshold_ = (
            auto_threshold(bits, estimates) if self.threshold == "auto" else float(self.threshold)
        )
        if slopes is not None:
            self._regressed = regressed_effects(slopes, estimates)
        intercepts = bits.means - estimates @ bits.means
        return self._finish(packed, bits.n_samples, estimates, intercepts, bits.means)

    def _choose_stage_one(self, normal: SecondMoments) -> None:
        self.ridge_ = auto_ridge(normal) if self.ridge == "auto" else float(self.ridge)
        self.prune_ = auto_prune(normal, self.ridge_) if self.prune == "auto" else float(self.prune)

    def _estimate(
        self,
        stat: Gram,
        normal: NormalEquations,
        packed: PackedSpins | None,
        weights: RowWeights | None,
    ) -> tuple[FloatArray, FloatArray]:
        self._choose_stage_one(normal)
        if np.isinf(self.ridge_):
            found = correlations(normal)
        elif packed is not None and dual_is_better(normal, self.ridge_, packed):
            found = dual_regressions(normal, self.ridge_, packed, weights)
        else:
            inverse = inverse_of(normal, factor_of(normal, self.ridge_))
            found = all_regressions(normal, inverse)
        self.stage_one_estimates_ = found
        most = normal.n_rows - 1 - int(self.fit_fields) - n_covariates(weights)
        try:
            estimates, self.support_sizes_ = restricted_estimates(normal, found, self.prune_, most)
        except StageTwoError:
            refuse_duplicates(stat, normal)  # the likeliest cause, and a clearer message
            raise
        self.threshold_ = (
            auto_threshold(normal, estimates) if self.threshold == "auto" else float(self.threshold)
        )
        return through_means(estimates, normal)


def auto_ridge(normal: SecondMoments) -> float:
    """The ridge that predicts left-out samples best."""
    if normal.changes.sum() < 2:
        return _RIDGES[-1]
    return best_resolvent(normal, _RIDGES).ridge


def auto_prune(normal: SecondMoments, ridge: float) -> float:
    """K_1 that lets a few absent couplings of each spin through, and fewer where samples are
    few.
    """
    through = min(_ABSENT, normal.n_effective / 20)
    tail = min(through / max(normal.n_spins - 1, 1), 0.9) / 2
    return noise_at(normal, ridge) * -float(ndtri(tail))


def auto_threshold(normal: SecondMoments, estimates: Any) -> float:
    r"""K_2 at which noise would make at most one edge in twenty; neighbours that stage one has lost
    may add to that.

    Least squares of spin i on its n candidates has a noise of variance e_i (G^{-1})_jj / (M - n),
    where G are the pair sums of the candidates and e_i is the sum of squares that they leave of
    s_i. Pruned pairs count as if they had the others' noise.
    """
    n_spins = normal.n_spins
    directed = csr_array(estimates)
    sizes = abs(directed)
    pairs = np.column_stack(scipy.sparse.triu(sizes + sizes.T, 1).nonzero())
    if len(pairs) == 0:
        return 0.0
    forth, back = _both_directions(_noises(normal, directed), pairs)
    each = (forth + back) / ((forth > 0) * 1.0 + (back > 0))
    n_each = len(each)
    places = np.linspace(0, n_each - 1, min(n_each, 1000))
    sample = each[places.astype(int)]
    forth, back = _both_directions(directed, pairs)
    found = np.sort(np.abs(forth + back) / 2)[::-1]
    parts = np.array_split(found, -(-len(found) // 1000))
    tails = [ndtr(-part[:, None] / sample).mean(axis=1) for part in parts]
    absent = n_spins * (n_spins - 1) * np.concatenate(tails)
    ranks = np.arange(1, len(found) + 1)
    passes = np.flatnonzero(absent <= _FALSE * ranks)
    if len(passes):
        return float(found[passes[-1]] - 2 * TIE)
    return -float(sample.max() * ndtri(_FALSE / n_spins**2))


def _noises(normal: SecondMoments, directed: Any) -> Any:
    """Standard deviations of directed estimates, CSR like them."""
    indptr = directed.indptr.astype(np.int64)
    indices = directed.indices.astype(np.int64)
    noises = np.zeros(directed.nnz)
    fixed = (normal.source, indptr, indices, directed.data, normal.n_effective, noises)
    parallel_map(kernels.noises_on_candidates, normal.n_spins, *fixed, chunk=64)
    return csr_array((noises, indices, indptr), shape=directed.shape)


def _both_directions(matrix: Any, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Entries (i, j) and (j, i) of a sparse matrix."""
    first, second = pairs.T
    forth = np.asarray(matrix[first, second]).ravel()
    back = np.asarray(matrix[second, first]).ravel()
    return forth, back


def restricted_estimates(
    normal: NormalEquations, candidates: FloatArray, prune: float, most: int
) -> tuple[FloatArray, IntArray]:
    """Least squares of each spin on its candidates |candidates[i, j]| > prune, and how many these
    are. Needs only the Gram.

    A spin with more than `most` candidates is refused: its regression would be underdetermined.
    """
    n_spins = normal.n_spins
    estimates = np.zeros((n_spins, n_spins))
    sizes = np.zeros(n_spins, dtype=np.int64)
    fixed = (normal.matrix, candidates, just_above(prune, candidates), most, sizes, estimates)
    failed = parallel_map(kernels.restricted_regressions, n_spins, *fixed, chunk=16)
    for spin in failed:
        if spin >= 0:
            raise StageTwoError(spin=normal.names[spin], n_unknowns=int(sizes[spin]), most=most)
    return estimates, sizes
