"""Description: networks of a kind, such as "20 symptoms, mean degree 4, couplings 0.1 to 0.5,
prevalence 0.3".
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_array

from isingkit.arrays import FloatArray
from isingkit.exceptions import SettingError, require_number
from isingkit.model import IsingModel
from isingkit.worlds.graphs import paired_stubs, random_pairs
from isingkit.worlds.sampling import Chains, number_chains

Range = tuple[float, float]  # from, to; the same where there is but one value
_CHAINS = 512  # that fields are found with: prevalences come out within a standard error of 0.02
_ROUNDS = 40
_SWEEPS = 10  # of a round
_GAIN = 0.4  # of the first rounds
_LARGEST_MEAN = 1 - 1e-12  # of which the field is asked: of 1 it is infinite


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of a network before there are data."""

    n_spins: int
    degree: int | None  # of every spin, or
    mean_degree: float | None  # of a graph in which all pairs are as likely an edge
    coupling: Range  # strengths, evenly between
    negative: float  # share of the couplings that are negative
    prevalence: Range  # how often spins are +1, evenly between

    def draw(self, rng: Generator) -> IsingModel:
        """One such network."""
        if self.degree is not None:
            pairs = paired_stubs(self.n_spins, self.degree, rng)
        else:
            assert self.mean_degree is not None
            pairs = random_pairs(self.n_spins, self.mean_degree / (self.n_spins - 1), rng)
        sizes = rng.uniform(*self.coupling, size=len(pairs))
        signs = np.where(rng.random(len(pairs)) < self.negative, -1.0, 1.0)
        shape = (self.n_spins, self.n_spins)
        upper = csr_array((signs * sizes, pairs.T), shape=shape)
        model = IsingModel(upper + upper.T)
        if self.prevalence == (0.5, 0.5):
            return model
        means = 2 * rng.uniform(*self.prevalence, size=self.n_spins) - 1
        return IsingModel(model.couplings, fields_of_means(model, means, rng))

    def __str__(self) -> str:
        degree = f"degree {self.degree}" if self.degree else f"mean degree {self.mean_degree:g}"
        signs = f", {self.negative:.0%} of them negative" if self.negative else ""
        return (
            f"networks of {self.n_spins} columns, {degree}, couplings {_words(self.coupling)}"
            f"{signs}, prevalence {_words(self.prevalence)}"
        )


def described(
    *,
    n_spins: Any,
    degree: Any,
    mean_degree: Any,
    coupling: Any,
    negative: float,
    prevalence: Any,
) -> Description:
    """The description, once it makes sense."""
    require_number("n_spins", n_spins, at_least=2, whole=True)
    if (degree is None) == (mean_degree is None):
        expected = "given, or degree: one of the two"
        raise SettingError(setting="mean_degree", value=mean_degree, expected=expected)
    if degree is not None:
        require_number("degree", degree, at_least=1, whole=True)
        if degree >= n_spins or n_spins * degree % 2:
            expected = f"below n_spins = {n_spins}, with n_spins * degree even"
            raise SettingError(setting="degree", value=degree, expected=expected)
    else:
        require_number("mean_degree", mean_degree, above=0)
        if mean_degree > n_spins - 1:
            expected = f"at most n_spins - 1 = {n_spins - 1}"
            raise SettingError(setting="mean_degree", value=mean_degree, expected=expected)
    if not 0 <= negative <= 1:
        expected = "a share from 0 to 1"
        raise SettingError(setting="negative", value=negative, expected=expected)
    strengths = _checked_range("coupling", coupling, 0, math.inf)
    shares = _checked_range("prevalence", prevalence, 0, 1)
    return Description(n_spins, degree, mean_degree, strengths, negative, shares)


def fields_of_means(model: IsingModel, means: FloatArray, rng: Generator) -> FloatArray:
    """(n_spins,): fields that give spins these means.

    Stochastic approximation: chains go on while fields follow what they show, by less and less; the
    fields of the second half of all rounds are averaged. A chain shows the mean of each spin given
    its neighbours, not only where the spin is: so rare ones are seen between their appearances.
    """
    wanted = np.arctanh(np.clip(means, -_LARGEST_MEAN, _LARGEST_MEAN))
    fields = wanted
    chains = number_chains(model, _CHAINS, heat_bath=True, rng=rng)
    structure = chains.fixed[0]
    later = []
    for number in range(_ROUNDS):
        Chains(chains.kernel, (structure, fields), chains.streams, chains.states).sweep(
            _SWEEPS, n_jobs=1
        )
        given = [np.tanh(model.couplings @ block + fields[:, None]) for block in chains.states]
        found = np.mean(given, axis=(0, 2))
        shown = np.arctanh(np.clip(found, -_LARGEST_MEAN, _LARGEST_MEAN))
        fields = fields + _GAIN / (1 + number / 10) * (wanted - shown)
        if number >= _ROUNDS // 2:
            later.append(fields)
    return np.asarray(np.mean(later, axis=0))


def _checked_range(setting: str, value: Any, above: float, below: float) -> Range:
    """One number, or two in order, as a range."""
    try:
        numbers = np.asarray(value, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    low, high = (numbers[0], numbers[-1]) if len(numbers) in (1, 2) else (math.nan, math.nan)
    if not above < low <= high < below:
        within = f"above {above:g}" + ("" if below == math.inf else f" and below {below:g}")
        expected = f"a number {within}, or two, the smaller first"
        raise SettingError(setting=setting, value=value, expected=expected)
    return float(low), float(high)


def _words(span: Range) -> str:
    low, high = span
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"
