"""Resolvents of Bethe matrices by messages along edges: exact on trees, for one large model or for
an ensemble of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotConvergedError, OrderedPhaseError, SettingError, require_number
from isingkit.model import IsingModel
from isingkit.theory.phase import require_paramagnetic
from isingkit.theory.spectrum import STRONGEST, Spectrum, Traces, bethe_matrix, numbers, weights_of


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """What spins know of (p + q H)^-1 when their neighbours have told them, and how it changes with
    p and q.
    """

    diagonal: FloatArray  # (n_spins,): g_i = [(p + q H)^-1]_ii
    by_one: FloatArray  # (n_spins,): -dg_i/dp = [(p + q H)^-2]_ii
    by_ridge: FloatArray  # (n_spins,): -dg_i/dq = [H (p + q H)^-2]_ii
    told: FloatArray  # (n_entries,): u_ij^2 g_{j without i} for each entry (i, j) of the couplings


class CavitySpectrum(Spectrum):
    r"""Traces of one model's Bethe matrix by belief propagation, in time proportional to its edges:
    for any number of spins.

    The branch that hangs on i through j answers m_ij = u_ij^2 / (a_j - \sum_{k \ne i} m_jk) with
    a_j = 1 + k H_jj, u_ij = k H_ij. Exact on trees; on sparse random graphs exact up to loops,
    whose length grows like the logarithm of the number of spins.

    Parameters
    ----------
    model
        An IsingModel without fields.
    """

    def __init__(self, model: IsingModel) -> None:
        matrix = bethe_matrix(model)
        require_paramagnetic(model)
        self.diagonal = matrix.diagonal()
        graph = model.couplings.tocoo()
        self.rows, self.columns = graph.row, graph.col
        self.squares = (np.sinh(2 * graph.data) / 2) ** 2  # w_ij^2
        order = np.lexsort(
            (self.rows, self.columns)
        )  # entries sorted by (column, row): the transposed order
        self.reverse = np.empty(len(order), dtype=np.int64)
        self.reverse[np.lexsort((self.columns, self.rows))] = order

    def messages(self, effective_ridge: float) -> Messages:
        """The fixed point of all messages and of their derivatives."""
        one, k = (float(value) for value in weights_of(effective_ridge))
        n, rows, columns, reverse = len(self.diagonal), self.rows, self.columns, self.reverse
        a, squares = one + k * self.diagonal, k**2 * self.squares
        told, by_one, by_ridge = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))

        def into(message: FloatArray) -> FloatArray:
            return np.bincount(rows, weights=message, minlength=n).astype(np.float64)

        for _ in range(10_000):
            left = (a - into(told))[columns] + told[reverse]
            if np.any(left <= 0):
                raise OrderedPhaseError(growth=None)
            fresh = squares / left
            grown = fresh / left
            # derivatives of u^2 / left by p and by q: left grows by 1 and by H_jj, less what the
            # other branches answer
            fresh_one = -grown * ((1 - into(by_one))[columns] + by_one[reverse])
            fresh_ridge = 2 * fresh / k if k > 0 else 0 * fresh
            fresh_ridge = fresh_ridge - grown * (
                (self.diagonal - into(by_ridge))[columns] + by_ridge[reverse]
            )
            change = max(
                float(
                    np.max(np.abs(new - old), initial=0.0)
                    / max(float(np.max(np.abs(new), initial=0.0)), 1e-300)
                )
                for new, old in ((fresh, told), (fresh_one, by_one), (fresh_ridge, by_ridge))
            )
            told, by_one, by_ridge = fresh, fresh_one, fresh_ridge
            if change <= 1e-14:
                g = 1 / (a - into(told))
                return Messages(
                    g, g**2 * (1 - into(by_one)), g**2 * (self.diagonal - into(by_ridge)), told
                )
        raise NotConvergedError(what="belief propagation", residual=change)

    def traces(self, effective_ridge: ArrayLike) -> Traces:
        ridges = np.asarray(effective_ridge, dtype=np.float64)
        found = np.empty((4, ridges.size))
        for number, ridge in enumerate(ridges.ravel()):
            one, k = (float(value) for value in weights_of(ridge))
            got = self.messages(float(ridge))
            # p = (1 - one * t) / k loses digits for small k; so does p2 + k * tr H^2(..)^-2. Both t
            # and p follow from p2 and t2:
            found[:, number] = (
                got.diagonal.mean(),
                got.by_one.mean(),
                self._kept(one, k, got).mean(),
                got.by_ridge.mean(),
            )
        return Traces(*(row.reshape(ridges.shape) for row in found))

    def _kept(self, one: float, k: float, got: Messages) -> FloatArray:
        """[H (p + q H)^-1]_ii = g_i (H_ii - sum_j m_ij / q)."""
        answered = np.bincount(self.rows, weights=got.told, minlength=len(self.diagonal))
        return got.diagonal * (self.diagonal - (answered / k if k > 0 else 0.0))

    def log_trace(self, effective_ridge: float) -> float:
        """Bethe's formula for the determinant: what spins say, less what both ends of each edge say
        twice.
        """
        got = self.messages(effective_ridge)
        squares = effective_ridge**2 * self.squares
        both = np.divide(
            got.told * got.told[self.reverse],
            squares,
            out=np.zeros_like(squares),
            where=squares > 0,
        )
        return float((-np.log(got.diagonal).sum() - np.log1p(-both).sum() / 2) / len(self.diagonal))


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Spins of an ensemble, each with the branches around it."""

    g: FloatArray  # (n,): [(p + q H)^-1]_00
    t2: FloatArray
    p: FloatArray
    p2: FloatArray
    edge_of: NDArray[np.int64]  # (n_edges,): the spin that each edge belongs to
    couplings: FloatArray  # (n_edges,)
    branch: FloatArray  # (n_edges,): g of the branch at the edge's other end


class EnsembleSpectrum(Spectrum):
    """Traces over an ensemble of infinite trees, by population dynamics: any law of degrees and of
    couplings.

    A population of branches is renewed, generation after generation, from random members of the one
    before. Random choices are fixed by the seed, the same at every effective ridge, so that traces
    are smooth functions; their error is about 1 / sqrt(size) of the spread among spins.

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
        law = numbers("degrees", degrees)
        if law.ndim != 1 or not np.isfinite(law).all() or (law < 0).any() or law.sum() <= 0:
            raise SettingError(
                setting="degrees",
                value=degrees,
                expected="probabilities of the degrees 0, 1, 2, ...",
            )
        self.law, self.size, self.random_state = law / law.sum(), size, random_state
        self.strengths = np.atleast_1d(np.abs(numbers("coupling", coupling)))
        if len(self.strengths) == 0 or not np.all(self.strengths <= STRONGEST):
            raise SettingError(
                setting="coupling",
                value=coupling,
                expected=f"finite numbers, at most {STRONGEST:g} in size",
            )
        excess = self.law * np.arange(len(law))
        self.excess = (
            excess[1:] / excess.sum() if excess.sum() > 0 else np.ones(1)
        )  # degrees, less one, at the end of an edge
        growth = float(
            self.excess @ np.arange(len(self.excess)) * np.mean(np.tanh(self.strengths) ** 2)
        )
        if growth >= 1:
            raise OrderedPhaseError(growth=growth)
        self.generations = generations or int(
            np.clip(np.log(1e-6) / np.log(max(growth, 1e-3)), 5, 5000)
        )

    def population(self, effective_ridge: float) -> Population:
        """Spins with their branches, after all generations."""
        one, k = (float(value) for value in weights_of(effective_ridge))
        rng = np.random.default_rng(self.random_state)
        # branch members: s = sinh^2 J of the bond it hangs on, its answer m and dm by p and q
        members: tuple[FloatArray, ...] = (np.zeros(self.size),) * 4
        for generation in range(self.generations):
            strengths = rng.choice(self.strengths, self.size)
            owner, children = self._drawn(self.excess, rng)
            s = np.sinh(strengths) ** 2
            if generation == 0:
                owner, children = owner[:0], children[:0]
            left, left_one, left_ridge = self._left(one, k, s, owner, children, members)
            square = s * (1 + s)  # (sinh(2 J) / 2)^2
            m = k**2 * square / left
            members = (s, m, -m / left * left_one, 2 * k * square / left - m / left * left_ridge)
        owner, children = self._drawn(self.law, rng)
        left, left_one, left_ridge = self._left(
            one, k, np.zeros(self.size), owner, children, members
        )
        s, m = members[0][children], members[1][children]
        branch = np.divide(
            m,
            k**2 * s * (1 + s),
            out=np.full(len(m), 1.0 if k == 0 else 0.0),
            where=(k > 0) & (s > 0),
        )
        answered = (
            np.bincount(owner, weights=m, minlength=self.size) / k if k > 0 else np.zeros(self.size)
        )
        centre = 1 + np.bincount(owner, weights=s, minlength=self.size)
        g = 1 / left
        return Population(
            g,
            g**2 * left_one,
            g * (centre - answered),
            g**2 * left_ridge,
            owner,
            np.arcsinh(np.sqrt(s)),
            branch,
        )

    def traces(self, effective_ridge: ArrayLike) -> Traces:
        ridges = np.asarray(effective_ridge, dtype=np.float64)
        found = np.empty((4, ridges.size))
        for number, ridge in enumerate(ridges.ravel()):
            spins = self.population(float(ridge))
            found[:, number] = [array.mean() for array in (spins.g, spins.t2, spins.p, spins.p2)]
        return Traces(*(row.reshape(ridges.shape) for row in found))

    def log_trace(self, effective_ridge: float) -> float:
        r"""\int_0^k dk' (1/N) Tr H (1 + k' H)^{-1}, by Gauss's rule in log(1 + k')."""
        nodes, weights = np.polynomial.legendre.leggauss(24)
        top = np.log1p(effective_ridge)
        at = np.expm1(top * (nodes + 1) / 2)
        return float(top / 2 * weights @ (self.traces(at).p * (1 + at)))

    def _drawn(
        self, law: FloatArray, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each child of a new generation: its parent and the member that it is. Degrees are
        spread evenly over their law.
        """
        places = (np.arange(self.size) + rng.random()) / self.size
        numbers = np.minimum(np.searchsorted(np.cumsum(law), places, side="right"), len(law) - 1)
        owner = np.repeat(np.arange(self.size), rng.permutation(numbers))
        return owner, rng.integers(self.size, size=len(owner))

    def _left(
        self,
        one: float,
        k: float,
        s: FloatArray,
        owner: Any,
        children: Any,
        members: tuple[FloatArray, ...],
    ) -> tuple[FloatArray, ...]:
        """a - sum m over the children, and its derivatives by p and by q."""
        below: list[FloatArray] = [
            np.bincount(owner, weights=values[children], minlength=self.size).astype(np.float64)
            for values in members
        ]
        centre = 1 + s + below[0]
        left = one + k * centre - below[1]
        if np.any(left <= 0):
            raise OrderedPhaseError(growth=None)
        return left, 1 - below[2], centre - below[3]
