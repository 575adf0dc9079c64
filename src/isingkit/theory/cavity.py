"""Resolvents of one model's Bethe matrix by messages along edges: exact on trees, of any size."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotConvergedError, OrderedPhaseError
from isingkit.model import IsingModel
from isingkit.theory.bethe import bethe_matrix
from isingkit.theory.phase import require_paramagnetic
from isingkit.theory.spectrum import Spectrum, Traces, scalar_weights, traces_one_by_one

MOST_SWEEPS = 10_000
TOLERANCE = 1e-14  # relative change of messages and slopes in the last sweep


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """m_ij of each entry (i, j) of the couplings: the branch that hangs on i through j."""

    value: FloatArray  # (n_entries,): u_ij^2 g_{j without i}
    by_one: FloatArray  # (n_entries,): dm_ij/dp
    by_ridge: FloatArray  # (n_entries,): dm_ij/dq


@dataclass(frozen=True, slots=True, eq=False)
class Diagonals:
    """Diagonals of functions of p + q H, and the messages they come from."""

    inverse: FloatArray  # (n_spins,): g_i = [(p + q H)^-1]_ii
    inverse_squared: FloatArray  # (n_spins,): -dg_i/dp = [(p + q H)^-2]_ii
    kept: FloatArray  # (n_spins,): [H (p + q H)^-1]_ii
    noise: FloatArray  # (n_spins,): -dg_i/dq = [H (p + q H)^-2]_ii
    messages: FloatArray  # (n_entries,)


class CavitySpectrum(Spectrum):
    r"""Traces of one model's Bethe matrix by belief propagation, in time proportional to its edges.

    The branch that hangs on i through j sends m_ij = u_ij^2 / (a_j - \sum_{k \ne i} m_jk) with
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
        self.rows = graph.row
        self.columns = graph.col
        self.squares = (np.sinh(2 * graph.data) / 2) ** 2  # w_ij^2
        # reverse[e] is the entry (j, i) where e is (i, j): sorting by column, then row, transposes
        by_row = np.lexsort((self.columns, self.rows))
        by_column = np.lexsort((self.rows, self.columns))
        self.reverse = np.empty(len(by_row), dtype=np.int64)
        self.reverse[by_row] = by_column

    def diagonals(self, effective_ridge: float) -> Diagonals:
        """What spins know of 1 + k H from the fixed point of all messages and of their slopes."""
        one, k = scalar_weights(effective_ridge)
        messages = self._fixed_point(one, k)
        received = self._received(messages.value)
        g = 1 / (one + k * self.diagonal - received)
        # H_ii - sum_j m_ij / q: exact where (1 - p g) / q would lose digits for small q
        remaining = self.diagonal - (received / k if k > 0 else 0.0)
        by_one = 1 - self._received(messages.by_one)
        by_ridge = self.diagonal - self._received(messages.by_ridge)
        return Diagonals(
            inverse=g,
            inverse_squared=g**2 * by_one,
            kept=g * remaining,
            noise=g**2 * by_ridge,
            messages=messages.value,
        )

    def traces(self, effective_ridge: ArrayLike) -> Traces:
        return traces_one_by_one(effective_ridge, self._traces_at)

    def log_trace(self, effective_ridge: float) -> float:
        """Bethe's formula for log det: a term for each spin, less one for each edge."""
        found = self.diagonals(effective_ridge)
        squares = effective_ridge**2 * self.squares
        both_ways = found.messages * found.messages[self.reverse]
        products = np.zeros_like(squares)
        np.divide(both_ways, squares, out=products, where=squares > 0)
        of_spins = -np.log(found.inverse).sum()
        of_edges = np.log1p(-products).sum() / 2
        return float((of_spins - of_edges) / len(self.diagonal))

    def _traces_at(self, effective_ridge: float) -> Traces:
        found = self.diagonals(effective_ridge)
        return Traces(
            t=found.inverse.mean(),
            t2=found.inverse_squared.mean(),
            p=found.kept.mean(),
            p2=found.noise.mean(),
        )

    def _fixed_point(self, one: float, k: float) -> Messages:
        zeros = np.zeros(len(self.rows))
        messages = Messages(zeros, zeros, zeros)
        change = np.inf
        for _ in range(MOST_SWEEPS):
            before = messages
            messages = self._updated(before, one, k)
            of_value = _relative_change(messages.value, before.value)
            of_slope = _relative_change(messages.by_one, before.by_one)
            of_ridge = _relative_change(messages.by_ridge, before.by_ridge)
            change = max(of_value, of_slope, of_ridge)
            if change <= TOLERANCE:
                return messages
        raise NotConvergedError(what="belief propagation", residual=change)

    def _updated(self, messages: Messages, one: float, k: float) -> Messages:
        """m = u^2 / left and its slopes; left is a_j less the messages from other branches."""
        left = self._without_receiver(one + k * self.diagonal, messages.value)
        if np.any(left <= 0):
            raise OrderedPhaseError(growth=None)
        left_by_one = self._without_receiver(1.0, messages.by_one)
        left_by_ridge = self._without_receiver(self.diagonal, messages.by_ridge)
        value = k**2 * self.squares / left
        steepness = value / left  # -dm/dleft
        own_by_ridge = 2 * k * self.squares / left  # of u^2 = q^2 w^2
        return Messages(
            value,
            by_one=-steepness * left_by_one,
            by_ridge=own_by_ridge - steepness * left_by_ridge,
        )

    def _received(self, messages: FloatArray) -> FloatArray:
        """Sum of the messages to each spin."""
        total = np.bincount(self.rows, weights=messages, minlength=len(self.diagonal))
        return total.astype(np.float64)

    def _without_receiver(self, own: FloatArray | float, messages: FloatArray) -> FloatArray:
        """For each entry (i, j): own_j less the messages to j from all but i."""
        from_all = own - self._received(messages)
        return np.asarray(from_all[self.columns] + messages[self.reverse])


def _relative_change(new: FloatArray, old: FloatArray) -> float:
    largest = float(np.max(np.abs(new), initial=0.0))
    difference = float(np.max(np.abs(new - old), initial=0.0))
    return difference / max(largest, 1e-300)
