"""HeatCapacity: how energy, its fluctuations and entropy change with temperature."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp, xlogy

from isingkit.arrays import BoolArray, FloatArray, SpinArray
from isingkit.exceptions import (
    NotEquilibratedError,
    SettingError,
    require_instance,
    require_number,
)
from isingkit.model import IsingModel
from isingkit.worlds.equilibrium import disagrees
from isingkit.worlds.exact import MOST_SPINS, log_weights
from isingkit.worlds.graphs import Seed, generator
from isingkit.worlds.histograms import Histograms, histograms_of
from isingkit.worlds.sampling import sample

_QUANTITIES = ("energy", "heat_capacity", "entropy", "multi_information")
_N_BLOCKS = 10  # of samples, each left out once for errors
_STEP = 1.0  # between inverse temperatures of samples, in inverse standard deviations of energy


@dataclass(frozen=True, slots=True, eq=False)
class HeatCapacity:
    """Thermodynamics of a model at some temperatures, in nats and without Boltzmann's constant.

    P(s) ~ exp(-E(s) / T), so that the model itself is at T = 1. Each quantity is (n_temperatures,),
    and has a standard error beside it: 0 where all states were summed.
    """

    temperatures: FloatArray
    energy: FloatArray  # <E>
    heat_capacity: FloatArray  # (<E^2> - <E>^2) / T^2
    entropy: FloatArray
    # of single spins, summed, less the entropy: what ties spins together, 0 where nothing does
    multi_information: FloatArray
    energy_error: FloatArray
    heat_capacity_error: FloatArray
    entropy_error: FloatArray
    multi_information_error: FloatArray
    is_exact: bool


def heat_capacity(
    model: IsingModel,
    temperatures: Any,
    *,
    n_samples: int = 4096,
    warm_up: int | None = None,
    random_state: Seed = 0,
    n_jobs: int | None = None,
) -> HeatCapacity:
    """Energy, heat capacity, entropy and multi-information of a model at any temperatures.

    Exact for up to 24 spins. Beyond, samples at temperatures from infinity down to the lowest, so
    close that their energies overlap, are reweighted together (the multiple histograms of
    Ferrenberg and Swendsen); infinite temperature, where the entropy is n_spins log 2, makes
    entropies absolute. Errors leave one block of samples after the other out. Where chains of a
    model without fields disagree about the sign of all spins alone, they count as equilibrated, for
    energies do not depend on it. A model learnt with covariates is taken at their means.

    Parameters
    ----------
    model
        Such as `model_` of a fitted estimator.
    temperatures
        One or more, above 0; the model itself is at 1.
    n_samples
        Beyond 24 spins: samples at each of the temperatures that it chooses.
    warm_up
        Beyond 24 spins: sweeps before a sample, as for `sample`.
    random_state
        Seed or numpy Generator.
    n_jobs
        Threads to use; None or -1 is all.

    Examples
    --------
    >>> import isingkit as ik
    >>> pair = ik.IsingModel([[0, 1], [1, 0]])
    >>> ik.heat_capacity(pair, [1.0]).heat_capacity.round(6)  # 1 / cosh(1)^2
    array([0.419974])
    """
    require_instance(
        "model", model, IsingModel, "an IsingModel, such as model_ of a fitted estimator"
    )
    require_number("n_samples", n_samples, at_least=2 * _N_BLOCKS, whole=True)
    at = _checked(temperatures)
    model = IsingModel(model.couplings, model.fields, model.names)
    if model.n_spins <= MOST_SPINS:
        values = _summed(model, at)
        return HeatCapacity(at, **_named(values, np.zeros_like(values)), is_exact=True)
    chains = _Sampling(model, n_samples, warm_up, generator(random_state), n_jobs)
    values, errors = _reweighted(_cooled(chains, 1 / at.min()), at)
    return HeatCapacity(at, **_named(values, errors), is_exact=False)


def _named(values: FloatArray, errors: FloatArray) -> dict[str, Any]:
    """Quantities, (4, n_temperatures), and their errors by name."""
    of_values = dict(zip(_QUANTITIES, values, strict=True))
    of_errors = {f"{name}_error": row for name, row in zip(_QUANTITIES, errors, strict=True)}
    return of_values | of_errors


def spin_entropies(means: FloatArray) -> FloatArray:
    """Entropies, in nats, of single spins of these means."""
    up = np.clip((1 + means) / 2, 0.0, 1.0)
    return np.asarray(-xlogy(up, up) - xlogy(1 - up, 1 - up))


def _checked(temperatures: Any) -> FloatArray:
    found = np.atleast_1d(np.asarray(temperatures, dtype=np.float64))
    if found.ndim != 1 or len(found) == 0 or not (np.isfinite(found) & (found > 0)).all():
        expected = "one or more finite numbers > 0"
        raise SettingError(setting="temperatures", value=temperatures, expected=expected)
    return found


def _summed(model: IsingModel, temperatures: FloatArray) -> FloatArray:
    """(4, n_temperatures): energy, heat capacity, entropy, multi-information, by sums over all
    states.
    """
    logs = log_weights(model)
    found = np.empty((4, len(temperatures)))
    for k, temperature in enumerate(temperatures):
        weights = logs / temperature
        largest = float(weights.max())
        weights -= largest
        np.exp(weights, out=weights)
        total = float(weights.sum())
        weights /= total
        mean = float(weights @ logs)
        variance = float(weights @ (logs - mean) ** 2)
        entropy = largest + np.log(total) - mean / temperature
        single = spin_entropies(_spin_means(weights)).sum()
        found[:, k] = -mean, variance / temperature**2, entropy, single - entropy
    return found


def _spin_means(probabilities: FloatArray) -> FloatArray:
    """(n_spins,): up to sign. The highest spin's halves are summed, and so on."""
    means = []
    while len(probabilities) > 1:
        first, second = probabilities.reshape(2, -1)
        means.append(first.sum() - second.sum())
        probabilities = first + second
    return np.array(means)


@dataclass(frozen=True, slots=True, eq=False)
class _Sampling:
    """What is sampled at any temperature, and how."""

    model: IsingModel
    n_samples: int
    warm_up: int | None
    rng: Generator
    n_jobs: int | None

    @property
    def has_fields(self) -> bool:
        return bool(self.model.fields.any())

    def at(self, beta: float) -> SpinArray:
        """(n_samples, n_spins) at an inverse temperature."""
        shape = (self.n_samples, self.model.n_spins)
        if beta == 0:
            return 2 * self.rng.integers(2, size=shape, dtype=np.int8) - 1
        scaled = IsingModel(beta * self.model.couplings, beta * self.model.fields)
        settings: dict[str, Any] = {"warm_up": self.warm_up, "n_jobs": self.n_jobs}
        settings["random_state"] = self.rng
        try:
            return np.asarray(sample(scaled, self.n_samples, **settings))
        except NotEquilibratedError as error:
            energies = [error.diagnostics[name] for name in ("energy", "pair sum")]
            if self.has_fields or any(disagrees(one) for one in energies):
                raise
        return np.asarray(sample(scaled, self.n_samples, check=False, **settings))


@dataclass(frozen=True, slots=True, eq=False)
class _Cooled:
    """Samples at several temperatures, from the highest down."""

    betas: FloatArray  # (n,)
    energies: FloatArray  # (n, n_samples)
    # (n, n_samples, n_spins); None without fields, where all means are 0
    spins: SpinArray | None
    n_spins: int


def _cooled(chains: _Sampling, coldest: float) -> _Cooled:
    """Samples from infinite temperature down to 1 / coldest, whose energies overlap."""
    betas = [0.0]
    energies = []
    spins = []
    while True:
        states = chains.at(betas[-1])
        energies.append(_energies(chains.model, states))
        if chains.has_fields:
            spins.append(states)
        if betas[-1] >= coldest:
            break
        spread = float(energies[-1].std())
        step = _STEP / spread if spread > 0 else np.inf
        betas.append(min(coldest, betas[-1] + step))
    kept = np.array(spins) if spins else None
    return _Cooled(np.array(betas), np.array(energies), kept, chains.model.n_spins)


def _energies(model: IsingModel, states: SpinArray) -> FloatArray:
    spins = states.astype(np.float64)
    local = spins @ model.couplings / 2 + model.fields
    return np.asarray(-(spins * local).sum(axis=1))


def _reweighted(cooled: _Cooled, temperatures: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(4, n_temperatures) values and their standard errors, by leaving blocks of samples out."""
    all_samples = np.ones(cooled.energies.shape[1], dtype=bool)
    values, whole = _quantities(cooled, all_samples, temperatures, None)
    block = np.arange(len(all_samples)) % _N_BLOCKS
    without = [
        _quantities(cooled, block != number, temperatures, whole)[0] for number in range(_N_BLOCKS)
    ]
    spread = np.var(without, axis=0) * (_N_BLOCKS - 1)
    return values, np.sqrt(spread)


def _quantities(
    cooled: _Cooled, kept: BoolArray, temperatures: FloatArray, start: Histograms | None
) -> tuple[FloatArray, Histograms]:
    """(4, n_temperatures), of some samples, and the histograms they are reweighted by."""
    some = cooled.energies[:, kept]
    found = histograms_of(cooled.betas, some, start, together=cooled.spins is None)
    values = np.empty((4, len(temperatures)))
    energies = found.energies
    for k, temperature in enumerate(temperatures):
        logs = found.log_weights(1 / temperature)
        log_ratio = float(logsumexp(logs))  # of Z to that at infinite temperature
        weights = np.exp(logs - log_ratio)
        mean = float(weights @ energies)
        variance = float(weights @ (energies - mean) ** 2)
        entropy = cooled.n_spins * np.log(2) + log_ratio + mean / temperature
        single = cooled.n_spins * np.log(2)
        if cooled.spins is not None:
            states = cooled.spins[:, kept].reshape(len(weights), -1)
            single = spin_entropies(_weighted_means(weights, states)).sum()
        values[:, k] = mean, variance / temperature**2, entropy, single - entropy
    return values, found


def _weighted_means(weights: FloatArray, states: SpinArray) -> FloatArray:
    """(n_spins,), a part of the samples at a time."""
    means = np.zeros(states.shape[1])
    for start in range(0, len(states), 16_384):
        here = slice(start, start + 16_384)
        means += weights[here] @ states[here].astype(np.float64)
    return means
