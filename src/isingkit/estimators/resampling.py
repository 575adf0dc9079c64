"""Resampling: some of the rows, or rows drawn anew, and what is learnt from each."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.base import clone
from tqdm import tqdm

from isingkit._kernels.threads import one_blas_thread, parallel_map
from isingkit.arrays import IntArray
from isingkit.covariates import CovariateCoding
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.executor import Work, current_executor
from isingkit.exceptions import require_instance
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins
from isingkit.spins import RowWeights, require_network

_WHOLE = 1e-9  # a share of rows that is so near to a whole number of them is that
# settings of one refit of many
_ALONE = {"n_jobs": 1, "checkpoint": None, "progress": False, "predictive": False}

Rows = tuple[PackedSpins, RowWeights | None]


def subsample(
    packed: PackedSpins, weights: RowWeights | None, share: float, rng: Generator
) -> Rows:
    """A share of the rows; of rows that belong together, of the groups; of rows that stand for
    several samples, of those.
    """
    if weights is not None and weights.groups is not None:
        labels = np.unique(weights.groups)
        n_kept = int(share * len(labels) + _WHOLE)
        some = rng.permutation(labels)[:n_kept]
        rows = np.flatnonzero(np.isin(weights.groups, some))
        return packed[rows], weights[rows]
    if weights is not None and weights.counts.max() > 1:
        counts = weights.counts.astype(np.int64)
        return packed, _counted(weights, rng.binomial(counts, share))
    n_kept = int(share * packed.n_samples + _WHOLE)
    rows = np.sort(rng.permutation(packed.n_samples)[:n_kept])
    return packed[rows], None if weights is None else weights[rows]


def redrawn(packed: PackedSpins, weights: RowWeights | None, rng: Generator) -> Rows:
    """As many rows, drawn with replacement; of rows that belong together, as many groups, each
    drawn one by itself; of rows that stand for several samples, as many of those.
    """
    if weights is not None and weights.groups is not None:
        members = [np.flatnonzero(weights.groups == one) for one in np.unique(weights.groups)]
        drawn = [members[k] for k in rng.integers(len(members), size=len(members))]
        rows = np.concatenate(drawn)
        sizes = [len(group) for group in drawn]
        groups = np.repeat(np.arange(len(drawn)), sizes)
        return packed[rows], replace(weights[rows], groups=groups)
    if weights is not None and weights.counts.max() > 1:
        n_samples = weights.n_samples
        return packed, _counted(weights, rng.multinomial(n_samples, weights.counts / n_samples))
    rows = np.sort(rng.integers(packed.n_samples, size=packed.n_samples))
    return packed[rows], None if weights is None else weights[rows]


def _counted(weights: RowWeights, counts: IntArray) -> RowWeights:
    """The same weights, of rows that stand for other numbers of samples."""
    ratio = counts / np.maximum(weights.counts, 1)
    totals = weights.totals * ratio
    return replace(weights, totals=totals, squares=weights.squares * ratio)


def over_resamples(
    work: Work, shared: Any, seeds: Sequence[Any], unit: str, n_jobs: int | None, progress: bool
) -> list[Any]:
    """work(shared, seed) of each seed, in order, without warnings: the same for any number of
    threads, and on a cluster.
    """
    n_resamples = len(seeds)
    found: list[Any] = [None] * n_resamples
    run = current_executor()
    with (
        warnings.catch_warnings(),
        tqdm(total=n_resamples, unit=unit, disable=not progress) as bar,
        one_blas_thread(),
    ):
        warnings.simplefilter("ignore")  # parts may lack what all rows have; the fit itself warns

        def work_through(start: int, stop: int) -> None:
            for number in range(start, stop):
                found[number] = work(shared, seeds[number])
                bar.update()

        if run is None:
            parallel_map(work_through, n_resamples, n_jobs=n_jobs)
        else:
            for number, result in run(_quietly, (work, shared), seeds):
                found[number] = result
                bar.update()
    return found


def _quietly(work_and_shared: tuple[Work, Any], seed: Any) -> Any:
    work, shared = work_and_shared
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(shared, seed)


@dataclass(frozen=True, slots=True, eq=False)
class Refits:
    """An estimator, and all rows that it could learn from."""

    estimator: IsingEstimator  # unfitted
    packed: PackedSpins
    weights: RowWeights | None
    coding: CovariateCoding | None  # of the covariates in `weights`

    def network(self, rows: Rows, rng: Generator) -> IsingModel:
        """What is learnt from these rows."""
        estimator = clone(self.estimator)
        if estimator.get_params().get("random_state", 0) is None:
            estimator.set_params(random_state=rng)
        estimator._coding = self.coding
        packed, weights = rows
        n_samples = packed.n_samples if weights is None else weights.n_samples
        require_network(n_samples, packed.n_spins)
        if weights is not None:
            weights = weights.with_centred_covariates()
        in_samples = estimator._in_samples(packed, weights)
        model: IsingModel = estimator._learn(packed, in_samples, warned=True).model_
        return model


def refits(
    estimator: IsingEstimator,
    X: Any,
    sample_weight: Any,
    counts: Any,
    groups: Any,
    covariates: Any,
) -> Refits:
    """What refits need, of what a user has given for a fit."""
    expected = "an estimator of isingkit, such as ELassoIsing()"
    require_instance("estimator", estimator, IsingEstimator, expected)
    settings = estimator.get_params()
    alone = {name: value for name, value in _ALONE.items() if name in settings}
    reader = clone(estimator)
    _, packed, weights = reader._to_learn_from(X, sample_weight, counts, groups, covariates)
    return Refits(clone(estimator).set_params(**alone), packed, weights, reader._coding)
