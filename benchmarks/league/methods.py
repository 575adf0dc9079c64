"""Methods of the league: what each learns from samples, and what it took.

`METHODS` is the table, by name. Methods with an oracle are given the threshold that finds the truth
best: nobody has it, but it shows what a method's ranking of pairs could give.
"""

import functools
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from abess.graph import IsingModel as Abess
from numpy.typing import NDArray

import isingkit as ik
from isingkit.exceptions import IsingkitWarning
from isingkit.methods import Suggested, suggested_settings
from isingkit.model import log_pseudolikelihood
from league.worlds import WORLDS, draw

LARGEST_SUPPORT = 16  # neighbours that abess tries; its own default takes 4 to 20 times as long
WARMING = ("dense-12", "stars")  # worlds that every kernel is loaded on before anything is timed


class AbessIsing:
    """abess's IsingModel, which has no fields, with its extended Bayesian criterion."""

    def fit(self, packed: ik.PackedSpins) -> "AbessIsing":
        support = min(LARGEST_SUPPORT, packed.n_spins - 2)
        peer = Abess(tune_type="ebic", max_support_size=support, thread=1)
        theta = peer.fit(np.asarray(packed, dtype=np.float64)).theta_
        self.model_ = ik.IsingModel(theta, names=packed.names)
        return self


@dataclass(frozen=True, slots=True)
class Method:
    """One way to learn a network."""

    name: str
    about: str  # for people
    build: Callable[[Suggested], Any]  # the estimator, with settings for data of this size
    level: float | None = None  # of false edges, where it promises one
    has_oracle: bool = False  # its threshold is chosen with the truth, where there is one
    is_rival: bool = False  # AutoIsing is compared with the best of these
    only_predicts: bool = False  # edges are another's: for real tables only


METHODS = {
    method.name: method
    for method in (
        Method(
            "auto-fdr",
            "`AutoIsing()`: false discovery rate of 0.05",
            lambda theory: ik.AutoIsing(n_jobs=1),
            level=0.05,
        ),
        Method(
            "auto-fwer",
            '`AutoIsing(control="fwer")`: probability 0.05 of any false edge',
            lambda theory: ik.AutoIsing(control="fwer", n_jobs=1),
            level=0.05,
        ),
        Method(
            "auto-predictive",
            "`AutoIsing(predictive=True)`: the same edges, another model for prediction",
            lambda theory: ik.AutoIsing(predictive=True, n_jobs=1),
            only_predicts=True,
        ),
        Method(
            "two-stage",
            "`TwoStageIsing()`: ridge, prune and threshold chosen by theory",
            lambda theory: ik.TwoStageIsing(n_jobs=1),
            is_rival=True,
        ),
        Method(
            "elasso",
            "`ELassoIsing(gamma=0.25)`, as R's IsingFit",
            lambda theory: ik.ELassoIsing(gamma=0.25, n_jobs=1),
            is_rival=True,
        ),
        Method(
            "abess",
            f"IsingModel of abess, ebic, up to {LARGEST_SUPPORT} neighbours; it has no fields",
            lambda theory: AbessIsing(),
            is_rival=True,
        ),
        Method(
            "l1",
            "l1 pseudolikelihood at the penalty of `isingkit compare`, threshold by an oracle",
            lambda theory: ik.PseudolikelihoodIsing(l1=0.2 * theory.penalty, n_jobs=1),
            has_oracle=True,
        ),
        Method(
            "logrise",
            "logRISE at the penalty of `isingkit compare`, threshold by an oracle",
            lambda theory: ik.InteractionScreeningIsing(
                l1=0.8 * theory.penalty, log=True, n_jobs=1
            ),
            has_oracle=True,
        ),
    )
}

FINDERS = {name: method for name, method in METHODS.items() if not method.only_predicts}


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a method learnt."""

    model: ik.IsingModel
    cpu_seconds: float
    fit: Any  # the fitted estimator

    def held_out(self, packed: ik.PackedSpins) -> float:
        """Mean log pseudolikelihood of rows that were not learnt from."""
        if isinstance(self.fit, AbessIsing) or self.model is not self.fit.model_:
            return log_pseudolikelihood(self.model, packed, None)
        return float(self.fit.score(packed))


def learn(method: Method, train: ik.PackedSpins, truth: ik.IsingModel | None = None) -> Answer:
    """The answer of a method; one with an oracle takes its threshold from the truth, or, where
    there is none, from the noise that theory expects.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsingkitWarning)
        _load_kernels(method.name)
        return _learn(method, train, truth)


def _learn(method: Method, train: ik.PackedSpins, truth: ik.IsingModel | None) -> Answer:
    suggested = suggested_settings(train.n_spins, train.n_samples)
    estimator = method.build(suggested)
    start = time.process_time()
    fit = estimator.fit(train)
    seconds = time.process_time() - start
    model = fit.model_
    if method.has_oracle:
        noise = suggested.threshold / 2
        model = thresholded(model, noise if truth is None else oracle_threshold(model, truth))
    return Answer(model, seconds, fit)


@functools.cache
def _load_kernels(name: str) -> None:
    """Fit small worlds once a process, so that compilation is not timed."""
    for world in WARMING:
        drawn = draw(WORLDS[world], 0)
        _learn(METHODS[name], drawn.train, drawn.truth)


def thresholded(model: ik.IsingModel, threshold: float) -> ik.IsingModel:
    """The model without couplings of at most the threshold."""
    couplings = model.couplings.copy()
    couplings.data = np.where(np.abs(couplings.data) > threshold, couplings.data, 0.0)
    return ik.IsingModel(couplings, model.fields, model.names)


def oracle_threshold(model: ik.IsingModel, truth: ik.IsingModel) -> float:
    """The threshold on |J| with which the model's edges agree best with the truth's, by F1; of
    several the largest.
    """
    strengths = np.abs(model.couplings.data)
    rows, columns = model.couplings.nonzero()
    is_true = np.asarray(truth.couplings[rows, columns] != 0).ravel()
    thresholds = np.unique(np.append(strengths, 0.0))[::-1]
    n_found = _count_above(strengths, thresholds)
    n_right = _count_above(strengths[is_true], thresholds)
    f1 = 2 * n_right / np.maximum(n_found + truth.couplings.nnz, 1)
    return float(thresholds[np.argmax(f1)])


def _count_above(values: NDArray[np.float64], thresholds: NDArray[np.float64]) -> NDArray[np.intp]:
    return len(values) - np.searchsorted(np.sort(values), thresholds, side="right")
