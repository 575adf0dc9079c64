"""FitCheck: does a model, once sampled, look like the data it was learnt from?"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from isingkit.arrays import FloatArray, IntArray
from isingkit.covariates import (
    CovariateCoding,
    CovariateEffects,
    covariates_for,
    of_plain_numbers,
)
from isingkit.estimators.hidden_causes import HiddenReport
from isingkit.exceptions import ModelMismatchError, NotEquilibratedError, require_instance
from isingkit.gram import Gram, gram, gram_of
from isingkit.model import IsingModel
from isingkit.notebook import Summary
from isingkit.packing import PackedSpins, pack
from isingkit.spins import Names, Spins, as_spins, row_weights
from isingkit.worlds.exact import exact
from isingkit.worlds.graphs import Seed, generator
from isingkit.worlds.sampling import default_warm_up, sample

_N_DRAWN = 10_000  # samples of the model, fewer of large ones
_MOST_EXACT = 16  # spins whose 2^N states are summed in no time
_MOST_SPINS = 2000  # beyond it chains take minutes
_MOST_PAIRS = 4000
_MOST_UPDATES = 3 * 10**9  # of spins in all chains: seconds
_MUCH_WEAKER = 0.8  # of the data's correlations
_FAR = 0.15  # root mean square of differences of means, or of correlations
_WEAKER = (
    " The model's correlations are weaker than the data's: small couplings that were set to zero "
    "or not found, shrunk couplings, or a cause that is no column would do that."
)
_OFF = (
    " The model as a whole is far from the data: take its edges as a ranking of pairs, and not the "
    "model for how data arise."
)
_DOUBT = (
    ", so that this network does not reproduce the table: take its edges as a ranking of pairs, "
    "and do not predict or simulate with it."
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FitCheck(Summary):
    """Means, correlations of pairs and the distribution of the sum of all spins, in the data and in
    the model.

    Where `problem` says why the model could not be sampled, the model's numbers are NaN.
    """

    names: Names
    data_means: FloatArray  # (n_spins,)
    model_means: FloatArray  # (n_spins,)
    pairs: IntArray  # (n_pairs, 2): all, or some thousand of them spread evenly
    data_correlations: FloatArray  # (n_pairs,): of the pairs; NaN where one never changes
    model_correlations: FloatArray  # (n_pairs,)
    sums: IntArray  # what the sum of all spins can be
    data_shares: NDArray[
        np.float64
    ]  # (n_sums,): of the samples without missing values that have this sum
    model_shares: FloatArray  # (n_sums,)
    n_drawn: int  # samples drawn of the model
    problem: str | None

    def __str__(self) -> str:
        return self.words()

    def words(self) -> str:
        """What it says, in a sentence or two."""
        if self.problem:
            return f"The model could not be compared with the data: {self.problem}."
        differ = f"Samples of the model differ from the data by {self._off:.3f} in the means"
        data, model = self._correlations
        if not len(data):
            return f"{differ}; no pair of columns changes in both."
        words = f"{differ} and by {self._wrong:.3f} in the correlations (root mean squares)"
        if self.data_shares.any():
            overlap = float(np.minimum(self.data_shares, self.model_shares).sum())
            words += f"; the distributions of the sum over all columns overlap by {overlap:.0%}"
        if self.is_far:
            return f"{words}.{_OFF}"
        is_weaker = _slope(data, model) < _MUCH_WEAKER
        return f"{words}.{_WEAKER if is_weaker else ''}"

    @property
    def is_far(self) -> bool:
        """Whether samples of the model look unlike the data."""
        return self.problem is None and (self._off >= _FAR or self._wrong >= _FAR)

    def doubt(self) -> str | None:
        """A warning, where the model is far from the data."""
        if not self.is_far:
            return None
        differ = f"samples of the model differ from the data by {self._off:.2f} in the means"
        return f"far from the data: {differ} and by {self._wrong:.2f} in the correlations{_DOUBT}"

    @property
    def _off(self) -> float:
        return float(np.sqrt(np.mean((self.data_means - self.model_means) ** 2)))

    @property
    def _wrong(self) -> float:
        data, model = self._correlations
        return float(np.sqrt(np.mean((data - model) ** 2))) if len(data) else 0.0

    @property
    def _correlations(self) -> tuple[FloatArray, FloatArray]:
        """Of pairs that change in both: in the data, and in the model."""
        both = np.isfinite(self.data_correlations) & np.isfinite(self.model_correlations)
        return self.data_correlations[both], self.model_correlations[both]


def fit_check(
    model: IsingModel,
    X: Any,
    *,
    sample_weight: Any = None,
    counts: Any = None,
    covariates: Any = None,
    hidden: HiddenReport | None = None,
    random_state: Seed = 0,
) -> FitCheck:
    """Numbers of the data beside those of samples of the model.

    Parameters
    ----------
    model
        A model of these spins, such as `model_` of a fitted estimator.
    X
        The data: anything that `fit` takes; values may be missing.
    sample_weight
        How much each row matters.
    counts
        How many equal samples each row stands for.
    covariates
        Of a model that was learnt with covariates: the same columns, of these rows. The model is
        then sampled given those of rows drawn from them.
    hidden
        Of a model that was learnt with hidden causes: `hidden_` of its estimator. The model is then
        sampled given what they add to the fields of rows drawn from X.
    random_state
        Seed or numpy Generator.
    """
    require_instance(
        "model", model, IsingModel, "an IsingModel, such as model_ of a fitted estimator"
    )
    is_read = isinstance(X, PackedSpins | Spins)
    spins = X if is_read else as_spins(X, missing="pairwise")  # without rows that are empty
    kept = None if is_read else spins.rows
    packed = matched(pack(spins), model)
    n_rows = packed.n_samples if kept is None else len(kept)
    weights = row_weights(sample_weight, counts, packed.n_samples, rows=kept)
    totals = None if weights is None else weights.totals
    values = covariates_for(model.effects, covariates, n_rows, kept, totals)
    if model.n_spins > _MOST_SPINS:
        return _nothing(
            model, f"it has more than {_MOST_SPINS} columns, whose sampling would take long"
        )
    pairs = _some_pairs(model)
    rows = _Rows(packed, totals, values, hidden)
    drawn, problem = _drawn(model, rows, generator(random_state))
    of_data = _moments(gram_of(packed, weights), pairs)
    of_model = (np.full(model.n_spins, np.nan), np.full(len(pairs), np.nan))
    if drawn is not None:
        of_model = _moments(gram(drawn), pairs)
    sums = np.arange(-model.n_spins, model.n_spins + 1, 2)
    model_shares = np.full(len(sums), np.nan) if drawn is None else _shares(drawn, None)
    n_drawn = 0 if drawn is None else drawn.n_samples
    data_shares = _shares(packed, totals)
    return FitCheck(
        model.names,
        of_data[0],
        of_model[0],
        pairs,
        of_data[1],
        of_model[1],
        sums,
        data_shares,
        model_shares,
        n_drawn,
        problem,
    )


def matched(packed: PackedSpins, model: IsingModel) -> PackedSpins:
    """The samples with spins in the model's order, by name; by position where one of the two has
    none but x0, x1, ... Where columns of the model's table were merged, samples of all of them will
    do.
    """
    if model.alike is not None and packed.n_spins == len(model.alike.columns):
        packed = model.alike.merged(_in_order(packed, model.alike.columns))
    return _in_order(packed, model.names)


def _in_order(packed: PackedSpins, names: Names) -> PackedSpins:
    """The samples with spins of these names, in this order."""
    unnamed = tuple(f"x{i}" for i in range(len(names)))
    same_names = set(packed.names) == set(names)
    is_matched = same_names or unnamed in (packed.names, names)
    if packed.n_spins != len(names) or not is_matched:
        raise ModelMismatchError(left=names, right=packed.names, what="the model and the samples")
    if packed.names == names or not same_names:
        return packed
    place = {name: j for j, name in enumerate(packed.names)}
    return packed[:, [place[name] for name in names]]


def _nothing(model: IsingModel, problem: str) -> FitCheck:
    none = np.empty(0)
    unknown = np.full(model.n_spins, np.nan)
    pairs = np.empty((0, 2), dtype=np.int64)
    sums = np.empty(0, dtype=np.int64)
    return FitCheck(model.names, unknown, unknown, pairs, none, none, sums, none, none, 0, problem)


def _slope(data: FloatArray, model: FloatArray) -> float:
    """How large the model's correlations are, in units of the data's."""
    return float(data @ model / max(float(data @ data), 1e-300))


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows of the data, and what fields of the model depend on there."""

    packed: PackedSpins
    weights: FloatArray | None  # (n_rows,)
    covariates: FloatArray | None  # (n_rows, n): those of the model's effects
    hidden: HiddenReport | None

    @property
    def are_alike(self) -> bool:
        """Whether the model is the same for all of them."""
        return self.covariates is None and self.hidden is None


def _drawn(model: IsingModel, rows: _Rows, rng: Generator) -> tuple[PackedSpins | None, str | None]:
    """Samples of the model, given causes of rows where there are any, or why there are none."""
    if model.n_spins <= _MOST_EXACT and rows.are_alike:
        return exact(model).sample(n_samples=_N_DRAWN, random_state=rng), None
    n_drawn = min(_N_DRAWN, max(2000, 2_000_000 // model.n_spins))
    given = None
    if not rows.are_alike:
        shares = None if rows.weights is None else rows.weights / rows.weights.sum()
        model, given = _given(model, rows, rng.choice(rows.packed.n_samples, n_drawn, p=shares))
    longest = _MOST_UPDATES // (n_drawn * model.n_spins)
    usual = min(default_warm_up(model), longest)
    try:
        return sample(model, n_drawn, covariates=given, warm_up=usual, random_state=rng), None
    except NotEquilibratedError:
        pass  # patience may help
    try:
        return sample(model, n_drawn, covariates=given, warm_up=longest, random_state=rng), None
    except NotEquilibratedError as error:
        problem = (
            f"after {error.warm_up} sweeps its chains still remember how they started, as they do "
            "where couplings are strong"
        )
        return None, problem


def _given(model: IsingModel, rows: _Rows, some: IntArray) -> tuple[IsingModel, FloatArray]:
    """The model, and covariates of some rows that shift its fields as causes do there.

    What hidden causes add differs from spin to spin: then each spin has a covariate of its own,
    with effect 1.
    """
    of_some = None if rows.covariates is None else rows.covariates[some]
    if rows.hidden is None:
        assert of_some is not None
        assert model.effects is not None
        return replace(model, effects=of_plain_numbers(model.effects)), of_some
    shifts = rows.hidden.shifts(np.asarray(rows.packed[some], dtype=np.float64), of_some)
    if of_some is not None and model.effects is not None:
        shifts += of_some @ model.effects.values.T
    own = CovariateEffects(np.eye(model.n_spins), CovariateCoding(()))
    return replace(model, effects=of_plain_numbers(own)), shifts


def _some_pairs(model: IsingModel) -> IntArray:
    """All pairs i < j, or some thousand of them: each spin with those a few fixed distances
    away.
    """
    n_spins = model.n_spins
    if n_spins * (n_spins - 1) // 2 <= _MOST_PAIRS:
        return np.argwhere(np.triu(np.ones((n_spins, n_spins), dtype=bool), 1))
    edges = np.argwhere(np.triu(model.couplings.toarray() != 0, 1))
    edges = edges[:: -(-len(edges) // (_MOST_PAIRS // 2))] if len(edges) else edges
    rng = np.random.default_rng(0)  # the same pairs every time
    others = np.sort(rng.integers(0, n_spins, (_MOST_PAIRS - len(edges), 2)), axis=1)
    others = others[others[:, 0] < others[:, 1]]
    return np.unique(np.concatenate([edges, others]), axis=0)


def _moments(stat: Gram, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Means, and correlations of pairs; with missing values over the rows where a spin, or both,
    are present.
    """
    i, j = pairs.T
    if stat.joint is None:
        means = stat.spin_sums / stat.n_samples
        mean_i = means[i]
        mean_j = means[j]
        product = stat.sums[i, j] / stat.n_samples
    else:
        own = np.maximum(np.diagonal(stat.joint.counts), 1e-300)
        means = np.diagonal(stat.joint.spin_sums) / own
        both = np.maximum(stat.joint.counts[i, j], 1e-300)
        mean_i = stat.joint.spin_sums[i, j] / both
        mean_j = stat.joint.spin_sums[j, i] / both
        product = stat.sums[i, j] / both
    variance = (1 - mean_i**2) * (1 - mean_j**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = product - mean_i * mean_j
        correlations = np.where(variance > 1e-12, covariance / np.sqrt(variance), np.nan)
    return np.asarray(means, dtype=np.float64), np.asarray(correlations)


def _shares(packed: PackedSpins, weights: FloatArray | None) -> FloatArray:
    """Share of complete samples by the number of spins that are +1; all zero where no sample is
    complete.
    """
    total = np.zeros(packed.n_spins + 1)
    for start in range(0, packed.n_samples, 65_536):
        values = np.asarray(packed[start : start + 65_536])
        here = np.ones(len(values)) if weights is None else weights[start : start + len(values)]
        complete = values.all(axis=1)
        up = (values[complete] > 0).sum(axis=1)
        total += np.bincount(up, weights=here[complete], minlength=len(total))
    return np.asarray(total / max(total.sum(), 1e-300))
