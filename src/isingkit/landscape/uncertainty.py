"""Uncertainty: how far the rows leave couplings and fields, and so energies, open."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.random import Generator

from isingkit.arrays import FloatArray, IntArray, SpinArray
from isingkit.landscape.rows import DataRows
from isingkit.model import IsingModel
from isingkit.worlds.exact import MOST_SPINS, log_weights, walsh_hadamard

MOST_PARAMETERS = 1000  # of models whose second moments come from samples
_SMALLEST = 1e-10  # of the largest eigenvalue: what is less is rounding
_TIE = 1e-12  # of a local field: what is less is rounding
_CHUNK = 1 << 22  # numbers at a time


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """What goes with the parameters of a model: spins, where it has any fields, and products over
    edges.
    """

    n_fields: int  # n_spins, or 0
    pairs: IntArray  # (n_edges, 2)

    @property
    def n_parameters(self) -> int:
        return self.n_fields + len(self.pairs)

    def of(self, states: SpinArray) -> FloatArray:
        """(n, n_parameters), of (n, n_spins) states."""
        spins = states.astype(np.float64)
        i, j = self.pairs.T
        products = spins[:, i] * spins[:, j]
        return np.concatenate([spins[:, : self.n_fields], products], axis=1)

    def masks(self, n_spins: int) -> IntArray:
        """(n_parameters,): each as a set of spins, written as bits."""
        bits = np.int64(1) << np.arange(n_spins)
        i, j = self.pairs.T
        return np.concatenate([bits[: self.n_fields], bits[i] | bits[j]])

    def moved(self, model: IsingModel, change: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Couplings, dense, and fields of the model, with parameters changed."""
        i, j = self.pairs.T
        couplings = model.couplings.toarray()
        couplings[i, j] += change[self.n_fields :]
        couplings[j, i] += change[self.n_fields :]
        fields = model.fields.copy()
        fields[: self.n_fields] += change[: self.n_fields]
        return couplings, fields


def statistics_of_model(model: IsingModel) -> Statistics:
    """The statistics of a model; without any field, it has none to be learnt."""
    upper = scipy.sparse.triu(model.couplings, k=1).tocoo()
    pairs = np.stack([upper.row, upper.col], axis=1).astype(np.int64)
    return Statistics(model.n_spins if model.fields.any() else 0, pairs)


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    r"""Errors of energies that follow from the rows.

    With statistics \phi(s) = (s_i, and s_i s_j of edges), energies are -\theta \phi(s). Were rows
    drawn anew, the mean of \phi would move by some \delta, and the likeliest \theta by F^{-1}
    \delta to first order, F the covariance of \phi in the model.
    """

    statistics: Statistics
    response: FloatArray  # (n_parameters, n_parameters): F^-1
    covariance: FloatArray  # (n_parameters, n_parameters): of theta

    def of_differences(self, one: SpinArray, other: SpinArray) -> FloatArray:
        """(n,): standard errors of E(one) - E(other), (n, n_spins) each."""
        apart = self.statistics.of(one) - self.statistics.of(other)
        variances = (apart @ self.covariance * apart).sum(axis=1)
        return np.sqrt(np.maximum(variances, 0.0))


def uncertainty_of(
    model: IsingModel, rows: DataRows, samples: SpinArray | None
) -> Uncertainty | None:
    """Uncertainty of a model's energies; None where it has more parameters than can be said
    anything of.

    samples: of the model, (n_samples, n_spins), where it has too many spins to sum over all states
    """
    statistics = statistics_of_model(model)
    n_parameters = statistics.n_parameters
    if model.n_spins <= MOST_SPINS:
        fisher = _exact_covariance(model, statistics)
        correction = 1.0
    elif samples is None or n_parameters > MOST_PARAMETERS:
        return None
    else:
        fisher = np.atleast_2d(np.cov(statistics.of(samples), rowvar=False))
        # the mean of the inverse of a covariance of samples is too large (inverse Wishart)
        correction = (len(samples) - n_parameters - 2) / (len(samples) - 1)
    response = correction * np.asarray(scipy.linalg.pinvh(fisher, rtol=_SMALLEST))
    spread = response @ _covariance_of_mean(rows, statistics) @ response
    return Uncertainty(statistics, response, spread)


def share_stable(
    model: IsingModel,
    minima: SpinArray,
    uncertainty: Uncertainty,
    rows: DataRows,
    n_resamples: int,
    rng: Generator,
) -> FloatArray:
    """(n_minima,): of models learnt from rows drawn anew, the share that each state is a minimum
    of.

    Rows, or whole groups of them, are drawn with replacement; couplings and fields follow by one
    step of Newton's, with the same edges.
    """
    statistics = uncertainty.statistics
    shifts = _resampled_shifts(rows, statistics, n_resamples, rng)
    spins = minima.astype(np.float64)
    n_stable = np.zeros(len(minima))
    for change in shifts @ uncertainty.response:
        couplings, fields = statistics.moved(model, change)
        n_stable += (spins * (spins @ couplings + fields) >= -_TIE).all(axis=1)
    return n_stable / n_resamples


def _exact_covariance(model: IsingModel, statistics: Statistics) -> FloatArray:
    """Covariance of the statistics in the model: every moment comes out of one transform."""
    moments = log_weights(model)
    moments -= moments.max()
    np.exp(moments, out=moments)
    moments /= moments.sum()
    walsh_hadamard(moments)
    masks = statistics.masks(model.n_spins)
    means = moments[masks]
    both = moments[masks[:, None] ^ masks]
    return np.asarray(both - np.outer(means, means))


def _covariance_of_mean(rows: DataRows, statistics: Statistics) -> FloatArray:
    """Of the weighted mean of the statistics: rows, or groups of them, vary independently."""
    total = rows.weights.totals.sum()
    mean = _weighted_sums(rows, statistics, rows.weights.totals[None])[0] / total
    groups = rows.weights.groups
    n_units = 0 if groups is None else int(groups.max()) + 1
    sums = np.zeros((n_units, len(mean)))
    spread = np.zeros((len(mean), len(mean)))
    for here in _slices(len(rows.states), len(mean)):
        off = statistics.of(rows.states[here]) - mean
        if groups is None:
            spread += off.T @ (rows.weights.squares[here, None] * off)
        else:
            np.add.at(sums, groups[here], rows.weights.totals[here, None] * off)
    if groups is not None:
        spread = sums.T @ sums
    return np.asarray(spread / total**2)


def _resampled_shifts(
    rows: DataRows, statistics: Statistics, n_resamples: int, rng: Generator
) -> FloatArray:
    """(n_resamples, n_parameters): by how much the means of the statistics move."""
    weights = rows.weights
    mean = _weighted_sums(rows, statistics, weights.totals[None])[0] / weights.totals.sum()
    counts = weights.counts if weights.groups is None else np.ones(int(weights.groups.max()) + 1)
    n_draws = int(counts.sum())
    each = weights.totals / np.maximum(counts, 1) if weights.groups is None else weights.totals
    shifts = []
    for some in _slices(n_resamples, len(counts)):
        n_here = len(range(n_resamples)[some])
        drawn = rng.multinomial(n_draws, counts / counts.sum(), size=n_here)
        times = drawn if weights.groups is None else drawn[:, weights.groups]
        totals = times * each
        sums = _weighted_sums(rows, statistics, totals)
        shifts.append(sums / np.maximum(totals.sum(axis=1), 1e-300)[:, None] - mean)
    return np.concatenate(shifts)


def _weighted_sums(rows: DataRows, statistics: Statistics, weights: FloatArray) -> FloatArray:
    """(n, n_parameters): sums of the statistics over rows, for each of (n, n_rows) weights."""
    sums = np.zeros((len(weights), statistics.n_parameters))
    for here in _slices(len(rows.states), statistics.n_parameters):
        sums += weights[:, here] @ statistics.of(rows.states[here])
    return sums


def _slices(n_items: int, size: int) -> list[slice]:
    """Spans of items of this size that a few million numbers hold."""
    step = max(1, _CHUNK // max(1, size))
    return [slice(start, start + step) for start in range(0, n_items, step)]
