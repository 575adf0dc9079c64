"""Shrinkage: penalties under which a model of all pairs predicts rows that it has not seen.

A network names the couplings that data show; those too weak to be shown are real, too, and together
they often tell more of a row than the last edges do: docs/design/auto.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from tqdm.auto import tqdm

from isingkit._kernels import nodewise as kernels
from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.joint import joint_estimates
from isingkit.estimators.nodewise import Rows, distinct_rows
from isingkit.model import IsingModel, log_pseudolikelihood
from isingkit.packing import PackedSpins
from isingkit.spins import RowWeights


@dataclass(frozen=True, slots=True)
class PredictionSettings:
    """How penalties are chosen."""

    n_folds: int = 5
    # on squares of couplings, falling: a factor of some 3 between them costs little
    l2: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
    # how much of it edges get: 1 does not know of the network, a tenth nearly frees them
    of_edges: tuple[float, ...] = (1.0, 0.3, 0.1)
    most_falls: int = 2  # of scores one after the other, until smaller penalties are not tried
    tolerance: float = 1e-6  # of gradients while penalties are compared
    digits: int = 6  # of scores: more would depend on the processor
    most_spins: int = 2000  # beyond, all pairs are too many to fit over and over


SETTINGS = PredictionSettings()


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """Penalties on the squares of all couplings."""

    l2: float
    of_edges: float  # share of it that edges of the network get

    def model(
        self,
        rows: Rows,
        network: IsingModel,
        fit_fields: bool,
        *,
        start: IsingModel | None = None,
        tolerance: float | None = None,
    ) -> IsingModel:
        """The symmetric pseudolikelihood of all pairs under these penalties."""
        penalties = np.full((rows.n_spins, rows.n_spins), self.l2)
        penalties[network.couplings.nonzero()] *= self.of_edges
        first = None if start is None else (start.couplings.toarray(), start.fields)
        couplings, fields, _ = joint_estimates(
            rows, kernels.LOGISTIC, 0.0, penalties, fit_fields, start=first, tolerance=tolerance
        )
        return IsingModel(couplings, fields, rows.names)


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """A network, and how well it predicts."""

    network: IsingModel
    # mean log pseudolikelihood of other rows, hidden causes included
    score: Callable[[PackedSpins, RowWeights | None], float]


Learn = Callable[[PackedSpins, RowWeights | None], Learnt]


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """Some rows, what they teach, and the others."""

    rows: Rows
    learnt: Learnt
    others: PackedSpins
    weights: RowWeights | None  # of the others

    @property
    def totals(self) -> FloatArray:
        ones: FloatArray = np.ones(self.others.n_samples)
        return ones if self.weights is None else self.weights.totals

    def score_of_network(self) -> float:
        """Log pseudolikelihood of the others, summed."""
        return float(self.totals.sum()) * self.learnt.score(self.others, self.weights)

    def score(self, model: IsingModel) -> float:
        """The same under a model of all pairs."""
        totals = self.totals
        return float(totals.sum()) * log_pseudolikelihood(model, self.others, totals)


def best_shrinkage(
    packed: PackedSpins,
    weights: RowWeights | None,
    learn: Learn,
    *,
    fit_fields: bool,
    rng: Generator | None,
    progress: bool,
) -> Shrinkage | None:
    """What predicts rows that were left out best, the network looked for anew without them; None
    where that is the network by itself.

    rng: None for rows in order, of which parts are left out that lie together
    """
    splits = list(_splits(packed, weights, rng))
    folds = []
    for kept, left_out in tqdm(splits, desc="prediction", disable=not progress):
        some = packed[kept]
        some_weights = None if weights is None else weights[kept].scaled()
        rows = distinct_rows(some, some_weights)
        learnt = learn(some, some_weights)
        others_weights = None if weights is None else weights[left_out]
        folds.append(_Fold(rows, learnt, packed[left_out], others_weights))
    total = sum(float(fold.totals.sum()) for fold in folds)
    best = None
    best_score = round(sum(fold.score_of_network() for fold in folds) / total, SETTINGS.digits)
    for of_edges in SETTINGS.of_edges:
        for shrinkage, summed in _falling(folds, of_edges, fit_fields):
            score = round(summed / total, SETTINGS.digits)
            if score > best_score:
                best, best_score = shrinkage, score
    return best


def _falling(
    folds: list[_Fold], of_edges: float, fit_fields: bool
) -> Iterator[tuple[Shrinkage, float]]:
    """Falling penalties with their scores, each fit started from the one before, until scores
    fall.
    """
    models: list[IsingModel | None] = [None] * len(folds)
    before = -np.inf
    n_falls = 0
    for l2 in SETTINGS.l2:
        shrinkage = Shrinkage(l2, of_edges)
        score = 0.0
        for number, fold in enumerate(folds):
            model = shrinkage.model(
                fold.rows,
                fold.learnt.network,
                fit_fields,
                start=models[number],
                tolerance=SETTINGS.tolerance,
            )
            models[number] = model
            score += fold.score(model)
        yield shrinkage, score
        n_falls = n_falls + 1 if score < before else 0
        before = score
        if n_falls == SETTINGS.most_falls:
            return


def _splits(
    packed: PackedSpins, weights: RowWeights | None, rng: Generator | None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows kept and rows left out; rows that belong together stay together."""
    from sklearn.model_selection import KFold  # slow to load, and rarely needed

    groups = None if weights is None else weights.groups
    n_apart = packed.n_samples if groups is None else len(np.unique(groups))
    # of few groups as many are kept as can be: a network needs some
    n_folds = n_apart if groups is not None and n_apart < 2 * SETTINGS.n_folds else SETTINGS.n_folds
    n_folds = min(n_folds, n_apart)
    splitter = KFold(n_folds)
    if groups is not None:  # as many groups in each fold, however many rows they have
        codes = np.unique(groups, return_inverse=True)[1]
        for _, out in splitter.split(np.zeros((n_apart, 1))):
            is_out = np.isin(codes, out)
            yield np.flatnonzero(~is_out), np.flatnonzero(is_out)
        return
    if rng is not None:
        seed = int(rng.integers(1 << 31))
        splitter = KFold(n_folds, shuffle=True, random_state=seed)
    yield from splitter.split(np.zeros((packed.n_samples, 1)))
