"""Traces over ensembles of infinite trees, with any law of degrees and of couplings."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from isingkit.arrays import FloatArray, IntArray
from isingkit.exceptions import OrderedPhaseError, SettingError, require_number
from isingkit.theory.spectrum import (
    STRONGEST,
    Spectrum,
    Traces,
    numbers,
    scalar_weights,
    traces_one_by_one,
)

LEFT_OF_START = 1e-6  # what the first generation may still matter in the last
FEWEST_GENERATIONS = 5
MOST_GENERATIONS = 5000


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Spins of an ensemble, each with the branches around it."""

    g: FloatArray  # (n,): [(p + q H)^-1]_00
    t2: FloatArray  # (n,): [(p + q H)^-2]_00
    p: FloatArray  # (n,): [H (p + q H)^-1]_00
    p2: FloatArray  # (n,): [H (p + q H)^-2]_00
    edge_of: IntArray  # (n_edges,): the spin that each edge belongs to
    couplings: FloatArray  # (n_edges,)
    branch: FloatArray  # (n_edges,): g of the branch at the edge's other end


@dataclass(frozen=True, slots=True, eq=False)
class Branches:
    """One generation of branches, each hanging on a bond of strength J."""

    bond: FloatArray  # s = sinh^2 J
    message: FloatArray  # m
    by_one: FloatArray  # dm/dp
    by_ridge: FloatArray  # dm/dq


@dataclass(frozen=True, slots=True, eq=False)
class Denominators:
    """a - sum of the children's messages, where a = p + q H_00, and its slopes by p and by q."""

    value: FloatArray
    by_one: FloatArray
    by_ridge: FloatArray
    centre: FloatArray  # H_00
    messages: FloatArray  # sum over the children


@dataclass(frozen=True, slots=True, eq=False)
class Children:
    """Who hangs on whom: branches of the generation before, drawn with replacement."""

    parent: IntArray  # (n_children,)
    branch: IntArray  # (n_children,)


class EnsembleSpectrum(Spectrum):
    """Traces over an ensemble of infinite trees, by population dynamics.

    A population of branches is renewed, generation after generation, from random members of the one
    before. Random choices are fixed by the seed, the same at every effective ridge, so that traces
    are smooth functions; their error is about 1 / sqrt(size) of the standard deviation among spins.

    Parameters
    ----------
    degrees
        Probability of each degree 0, 1, 2, ..., or what is proportional to it.
    coupling
        The strength of all couplings, or an array of strengths that are equally likely.
    size
        Members of the population.
    generations
        How often it is renewed; by default until what it started from has shrunk to a millionth.
    random_state
        Seed.

    Examples
    --------
    >>> from isingkit import theory
    >>> regular = theory.EnsembleSpectrum([0, 0, 0, 1], coupling=0.4, size=100)
    >>> exact = theory.RegularSpectrum(degree=3, coupling=0.4)
    >>> abs(float(regular.traces(0.5).t - exact.traces(0.5).t)) < 1e-12
    True
    """

    def __init__(
        self,
        degrees: ArrayLike,
        coupling: ArrayLike,
        *,
        size: int = 50_000,
        generations: int | None = None,
        random_state: int = 0,
    ) -> None:
        require_number("size", size, at_least=1, whole=True)
        if generations is not None:
            require_number("generations", generations, at_least=1, whole=True)
        self.law = _law_of(degrees)
        self.size = size
        self.random_state = random_state
        self.strengths = _strengths_of(coupling)
        self.excess = _excess_law(self.law)
        mean_children = self.excess @ np.arange(len(self.excess))
        growth = float(mean_children * np.mean(np.tanh(self.strengths) ** 2))
        if growth >= 1:
            raise OrderedPhaseError(growth=growth)
        self.generations = generations or _generations_to_forget(growth)

    def population(self, effective_ridge: float) -> Population:
        """Spins with their branches, after all generations."""
        one, k = scalar_weights(effective_ridge)
        rng = np.random.default_rng(self.random_state)
        branches = self._last_generation(one, k, rng)
        children = self._drawn(self.law, rng)
        no_bond = np.zeros(self.size)  # these spins hang on nothing
        left = self._denominators(one, k, no_bond, children, branches)
        g = 1 / left.value
        received = left.messages / k if k > 0 else np.zeros(self.size)
        bond = branches.bond[children.branch]
        message = branches.message[children.branch]
        return Population(
            g=g,
            t2=g**2 * left.by_one,
            p=g * (left.centre - received),
            p2=g**2 * left.by_ridge,
            edge_of=children.parent,
            couplings=np.arcsinh(np.sqrt(bond)),
            branch=_branch_inverse(k, bond, message),
        )

    def traces(self, effective_ridge: ArrayLike) -> Traces:
        return traces_one_by_one(effective_ridge, self._traces_at)

    def log_trace(self, effective_ridge: float) -> float:
        r"""\int_0^k dk' (1/N) Tr H (1 + k' H)^{-1}, by Gauss's rule in log(1 + k')."""
        nodes, weights = np.polynomial.legendre.leggauss(24)
        top = np.log1p(effective_ridge)
        ridges = np.expm1(top * (nodes + 1) / 2)
        integrand = self.traces(ridges).p * (1 + ridges)
        return float(top / 2 * weights @ integrand)

    def _traces_at(self, effective_ridge: float) -> Traces:
        spins = self.population(effective_ridge)
        return Traces(spins.g.mean(), spins.t2.mean(), spins.p.mean(), spins.p2.mean())

    def _last_generation(self, one: float, k: float, rng: Generator) -> Branches:
        nothing = np.zeros(self.size)
        branches = Branches(nothing, nothing, nothing, nothing)
        for generation in range(self.generations):
            strengths = rng.choice(self.strengths, self.size)
            bond = np.sinh(strengths) ** 2
            children = self._drawn(self.excess, rng)
            if generation == 0:
                children = Children(children.parent[:0], children.branch[:0])
            left = self._denominators(one, k, bond, children, branches)
            square = bond * (1 + bond)  # (sinh(2 J) / 2)^2
            message = k**2 * square / left.value
            steepness = message / left.value  # -dm/dleft
            own_by_ridge = 2 * k * square / left.value
            branches = Branches(
                bond,
                message,
                by_one=-steepness * left.by_one,
                by_ridge=own_by_ridge - steepness * left.by_ridge,
            )
        return branches

    def _drawn(self, law: FloatArray, rng: Generator) -> Children:
        """Children of a new generation; their numbers are placed evenly over the law of degrees."""
        places = (np.arange(self.size) + rng.random()) / self.size
        degrees = np.searchsorted(np.cumsum(law), places, side="right")
        degrees = np.minimum(degrees, len(law) - 1)
        parent = np.repeat(np.arange(self.size), rng.permutation(degrees))
        return Children(parent, rng.integers(self.size, size=len(parent)))

    def _denominators(
        self, one: float, k: float, bond: FloatArray, children: Children, branches: Branches
    ) -> Denominators:
        def summed(values: FloatArray) -> FloatArray:
            of_children = values[children.branch]
            total = np.bincount(children.parent, weights=of_children, minlength=self.size)
            return total.astype(np.float64)

        centre = 1 + bond + summed(branches.bond)
        messages = summed(branches.message)
        value = one + k * centre - messages
        if np.any(value <= 0):
            raise OrderedPhaseError(growth=None)
        by_one = 1 - summed(branches.by_one)
        by_ridge = centre - summed(branches.by_ridge)
        return Denominators(value, by_one, by_ridge, centre, messages)


def _law_of(degrees: ArrayLike) -> FloatArray:
    """Probabilities of the degrees 0, 1, 2, ..."""
    law = numbers("degrees", degrees)
    if law.ndim != 1 or not np.isfinite(law).all() or (law < 0).any() or law.sum() <= 0:
        expected = "probabilities of the degrees 0, 1, 2, ..."
        raise SettingError(setting="degrees", value=degrees, expected=expected)
    return np.asarray(law / law.sum())


def _strengths_of(coupling: ArrayLike) -> FloatArray:
    strengths = np.atleast_1d(np.abs(numbers("coupling", coupling)))
    if len(strengths) == 0 or not np.all(strengths <= STRONGEST):
        expected = f"finite numbers, at most {STRONGEST:g} in size"
        raise SettingError(setting="coupling", value=coupling, expected=expected)
    return strengths


def _excess_law(law: FloatArray) -> FloatArray:
    """Probabilities of the degree, less one, of the spin at the end of an edge."""
    by_degree = law * np.arange(len(law))
    mean_degree = by_degree.sum()
    return np.asarray(by_degree[1:] / mean_degree) if mean_degree > 0 else np.ones(1)


def _generations_to_forget(growth: float) -> int:
    needed = np.log(LEFT_OF_START) / np.log(max(growth, 1e-3))
    return int(np.clip(needed, FEWEST_GENERATIONS, MOST_GENERATIONS))


def _branch_inverse(k: float, bond: FloatArray, message: FloatArray) -> FloatArray:
    """g of a branch from its message m = u^2 g; where k is 0, g is 1."""
    inverse = np.full(len(message), 1.0 if k == 0 else 0.0)
    square = k**2 * bond * (1 + bond)
    np.divide(message, square, out=inverse, where=(k > 0) & (bond > 0))
    return inverse
