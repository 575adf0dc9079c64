"""Study: rows drawn from a planted network, the network learnt from them, and what it got right."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.base import clone

from isingkit.arrays import FloatArray, IntArray
from isingkit.exceptions import IsingkitError, NotEquilibratedError, SettingError
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins
from isingkit.worlds.description import Description
from isingkit.worlds.exact import Enumeration, Tree, exact
from isingkit.worlds.sampling import sample

MakeEstimator = Callable[[int, int], Any]  # of the numbers of spins and rows
_MOST_LISTED = 20  # spins up to which all states are listed, of one network for all studies
_WARM_UP = 1000  # sweeps at first; where the check refuses them, as many as `sample` thinks right
_MOST_DRAWS = 1000  # of networks, until one has an edge that counts
# settings of one fit of many
_ALONE = {"n_jobs": 1, "checkpoint": None, "progress": False}


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """A planted network, and its states where they can be listed."""

    model: IsingModel
    listed: Enumeration | Tree | None

    def rows(self, n_rows: int, rng: Generator) -> PackedSpins:
        """Independent samples."""
        if self.listed is not None:
            return self.listed.sample(n_samples=n_rows, random_state=rng)
        try:
            return sample(self.model, n_rows, warm_up=_WARM_UP, random_state=rng, n_jobs=1)
        except NotEquilibratedError:
            return sample(self.model, n_rows, random_state=rng, n_jobs=1)


def truth_of(model: IsingModel) -> Truth:
    """A given model without covariates, ready to be sampled often."""
    alone = IsingModel(model.couplings, model.fields, model.names)
    return Truth(alone, exact(alone) if alone.n_spins <= _MOST_LISTED else None)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is planned: which networks, how they are learnt, which edges count."""

    planted: Truth | Description
    make_estimator: MakeEstimator
    at_least: float  # edges with weaker couplings need not be found, nor are they false

    @property
    def n_spins(self) -> int:
        planted = self.planted
        return planted.n_spins if isinstance(planted, Description) else planted.model.n_spins

    def truth(self, rng: Generator) -> Truth:
        """The network of a study: always the same, or one of those described."""
        if not isinstance(self.planted, Description):
            return self.planted
        for _ in range(_MOST_DRAWS):
            model = self.planted.draw(rng)
            if (np.abs(model.couplings.data) >= self.at_least).any():
                return Truth(model, None)
        expected = f"such that networks have edges (none in {_MOST_DRAWS} draws)"
        raise SettingError(setting="mean_degree", value=self.planted.mean_degree, expected=expected)


@dataclass(frozen=True, slots=True)
class Study:
    """What one study finds."""

    n_rows: int
    found: float  # share of the edges that count
    false: float  # share of what is found that is no edge; 0 where nothing is


def study(question: Question, task: tuple[int, Generator]) -> Study | NotEquilibratedError:
    """One study of so many rows, or why none can be drawn."""
    n_rows, rng = task
    truth = question.truth(rng)
    try:
        rows = truth.rows(n_rows, rng)
    except NotEquilibratedError as error:
        return error
    made = question.make_estimator(question.n_spins, n_rows)
    alone = {name: value for name, value in _ALONE.items() if name in made.get_params()}
    estimator = clone(made).set_params(**alone)
    if estimator.get_params().get("random_state", 0) is None:
        estimator.set_params(random_state=rng)
    try:
        learnt = estimator.fit(rows).model_
    except IsingkitError:  # so few rows that nothing can be learnt from them
        return Study(n_rows, 0.0, 0.0)
    return _scored(n_rows, learnt, truth.model, question.at_least)


def _scored(n_rows: int, learnt: IsingModel, truth: IsingModel, at_least: float) -> Study:
    """Edges count once."""
    counts = abs(truth.couplings) >= max(at_least, np.finfo(float).tiny)
    n_right = learnt.couplings.astype(bool).multiply(counts).nnz // 2
    n_true = learnt.couplings.astype(bool).multiply(truth.couplings.astype(bool)).nnz // 2
    n_claimed = learnt.n_edges
    false = (n_claimed - n_true) / n_claimed if n_claimed else 0.0
    return Study(n_rows, n_right / max(counts.nnz // 2, 1), false)


@dataclass(frozen=True, slots=True, eq=False)
class Studies:
    """Many of them."""

    n_rows: IntArray  # (n_studies,)
    found: FloatArray  # (n_studies,)
    false: FloatArray  # (n_studies,)

    def __len__(self) -> int:
        return len(self.n_rows)

    def near(self, log_rows: float, reach: float) -> "Studies":
        """Those with about so many rows."""
        is_near = np.abs(np.log(self.n_rows) - log_rows) <= reach
        return Studies(self.n_rows[is_near], self.found[is_near], self.false[is_near])


def studies_of(every: list[Study]) -> Studies:
    """As arrays."""
    n_rows = np.array([one.n_rows for one in every], dtype=np.int64)
    found = np.array([one.found for one in every], dtype=np.float64)
    return Studies(n_rows, found, np.array([one.false for one in every], dtype=np.float64))
