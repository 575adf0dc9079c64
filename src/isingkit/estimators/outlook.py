"""Outlook: what the regressions of a network say of pairs outside it, quick and rough; of all
pairs, or of those that stand out.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.stats import norm

from isingkit._kernels import auto as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.bits import Bits

_NEAR = 0.2  # correlation from which on a neighbour may hide much of what another spin has to say
_NEAR_BY_CHANCE = 50.0  # spins that seem near to each, at most, before more is asked for
_LEAST_LEFT = 0.02  # of a spin's variance by the neighbours of another
_AS_LARGE = 1 - 1e-4  # of equal sums, which rounding may tell apart, the first spin's is taken
_PORTION = 1024  # spins looked at in one go


class Regressions(Protocol):
    """What an outlook needs to know of a network."""

    look: float
    n_jobs: int | None
    indptr: IntArray
    indices: IntArray
    information: FloatArray

    @property
    def n_spins(self) -> int: ...
    def residuals_of(self, some: IntArray) -> FloatArray: ...


class Outlook(Protocol):
    """Rough deviates of pairs: scores in the regressions of both spins, cleared of neighbours by
    linear regression.
    """

    def update(self, network: Regressions, chosen: IntArray, residuals: FloatArray) -> None: ...
    def suspects(self, network: Regressions, chosen: IntArray) -> IntArray: ...
    def rough(self, network: Regressions, pairs: IntArray) -> FloatArray: ...
    def strongest(
        self,
        network: Regressions,
        rows: FloatArray,
        least: FloatArray,
        barred: tuple[IntArray, IntArray],
    ) -> tuple[IntArray, FloatArray]: ...
    def leftover(self, network: Regressions, some: IntArray) -> NDArray[np.floating]: ...


@dataclass(slots=True, eq=False)
class AllPairs:
    """Deviates of all pairs, in a matrix."""

    single: NDArray[np.float32]  # (n_spins, n_samples): spins
    correlations: FloatArray  # (n_spins, n_spins)
    changes: NDArray[np.bool_]
    scores: NDArray[np.float32] = field(
        init=False
    )  # (n_spins, n_spins): row i of the regression of spin i

    def __post_init__(self) -> None:
        self.scores = np.zeros(self.correlations.shape, dtype=np.float32)

    def update(self, network: Regressions, chosen: IntArray, residuals: FloatArray) -> None:
        """The regressions of these spins have changed."""

        def rough(start: int, stop: int) -> None:
            some = chosen[start:stop]
            left = np.empty((len(some), len(self.scores)))
            kernels.unexplained(some, self.correlations, network.indptr, network.indices, left)
            scale = _scale(network.information[some][:, None], left)
            self.scores[some] = (
                (residuals[start:stop].astype(np.float32) @ self.single.T) / scale * self.changes
            )

        parallel_map(rough, len(chosen), chunk=64, n_jobs=network.n_jobs)

    def suspects(self, network: Regressions, chosen: IntArray) -> IntArray:
        """Pairs with one of these spins that are to be looked at closely."""
        found = [np.empty((0, 2), np.int64)]
        for start in range(0, len(chosen), _PORTION):
            some = chosen[start : start + _PORTION]
            here = np.argwhere(
                np.abs(self.scores[some] + self.scores[:, some].T) > 2 * network.look
            )
            found.append(np.column_stack([some[here[:, 0]], here[:, 1]]))
        return np.concatenate(found)

    def rough(self, network: Regressions, pairs: IntArray) -> FloatArray:
        """Means of both directions."""
        return np.asarray(
            (self.scores[tuple(pairs.T)] + self.scores[tuple(pairs.T[::-1])]) / 2, dtype=np.float64
        )

    def strongest(
        self,
        network: Regressions,
        rows: FloatArray,
        least: FloatArray,
        barred: tuple[IntArray, IntArray],
    ) -> tuple[IntArray, FloatArray]:
        """For each row the spin not barred of the largest |sum of row times spin|, if above
        `least`, else -1; and that sum.
        """
        sizes = np.abs(rows.astype(np.float32) @ self.single.T)
        sizes[barred] = 0.0
        largest = sizes.max(axis=1, initial=0.0)
        best = np.argmax(sizes >= _AS_LARGE * largest[:, None], axis=1)
        sums = np.abs(
            np.einsum("ij,ij->i", rows, self.single[best])
        )  # single precision must not decide
        return np.where((sums > least) & (largest > 0), best, -1), sums

    def leftover(self, network: Regressions, some: IntArray) -> NDArray[np.floating]:
        """Deviates of all pairs of some spins."""
        part = self.scores if len(some) == len(self.scores) else self.scores[np.ix_(some, some)]
        return np.asarray((part + part.T) / 2)


@dataclass(slots=True, eq=False)
class OutstandingPairs:
    """Deviates of the pairs that stand out; others are computed from bits when they are asked
    for.
    """

    bits: Bits
    near: Any  # (n_spins, n_spins) CSR: ones where the correlation is above `nearness`
    nearness: float
    keys: IntArray = field(
        init=False, default_factory=lambda: np.empty(0, np.int64)
    )  # row * n_spins + column of large deviates

    def update(self, network: Regressions, chosen: IntArray, residuals: FloatArray) -> None:
        """The regressions of these spins have changed."""
        n_spins, least = self.bits.n_spins, np.empty(len(chosen))
        graph = (network.indptr, network.indices)
        parallel_map(
            kernels.least_eigenvalues,
            len(chosen),
            self.bits.source,
            chosen,
            *graph,
            least,
            chunk=64,
            n_jobs=network.n_jobs,
        )
        explained = (
            np.diff(network.indptr)[chosen] * self.nearness**2 / np.maximum(least, 1e-6)
        )  # of spins not near, at most
        of_rows = np.stack(
            [1 / _scale(network.information[chosen], 1 - explained), np.zeros(len(chosen))]
        )
        of_spins = np.stack([self.bits.changes.astype(np.float64), np.zeros(n_spins)])
        found, _ = self.bits.large_sums(
            residuals, network.look, of_rows, of_spins, n_jobs=network.n_jobs
        )
        shape = (n_spins, n_spins)
        around = scipy.sparse.csr_array(
            (np.ones(len(network.indices)), network.indices, network.indptr), shape=shape
        )
        hidden = np.column_stack((around[chosen] @ self.near).nonzero()).astype(np.int64)
        keys = np.union1d(
            found[:, 0] * n_spins + found[:, 1], hidden[:, 0] * n_spins + hidden[:, 1]
        )
        places = np.column_stack([keys // n_spins, keys % n_spins])
        places = places[chosen[places[:, 0]] != places[:, 1]]
        scores = self._scores(network, chosen, residuals, places)
        large = places[np.abs(scores) > network.look]
        touched = np.zeros(n_spins, dtype=bool)
        touched[chosen] = True
        old = self.keys[~touched[self.keys // n_spins]]
        self.keys = np.concatenate([old, chosen[large[:, 0]] * n_spins + large[:, 1]])

    def suspects(self, network: Regressions, chosen: IntArray) -> IntArray:
        """Pairs with one of these spins that are to be looked at closely."""
        n_spins = self.bits.n_spins
        touched = np.zeros(n_spins, dtype=bool)
        touched[chosen] = True
        pairs = np.column_stack([self.keys // n_spins, self.keys % n_spins])
        pairs = np.unique(np.sort(pairs[touched[pairs].any(axis=1)], axis=1), axis=0)
        return pairs[
            np.abs(self.rough(network, pairs)) > network.look
        ]  # of both, the larger is above it, too

    def rough(self, network: Regressions, pairs: IntArray) -> FloatArray:
        """Means of both directions."""
        directed = np.concatenate([pairs, pairs[:, ::-1]])
        scores, order = np.empty(len(directed)), np.argsort(directed[:, 0], kind="stable")
        rows, starts = np.unique(directed[order, 0], return_index=True)
        starts = np.append(starts, len(directed))
        for first in range(0, len(rows), _PORTION):
            some = rows[first : first + _PORTION]
            here = order[starts[first] : starts[first + len(some)]]
            places = np.column_stack([np.searchsorted(some, directed[here, 0]), directed[here, 1]])
            scores[here] = self._scores(network, some, network.residuals_of(some), places)
        return np.asarray((scores[: len(pairs)] + scores[len(pairs) :]) / 2)

    def strongest(
        self,
        network: Regressions,
        rows: FloatArray,
        least: FloatArray,
        barred: tuple[IntArray, IntArray],
    ) -> tuple[IntArray, FloatArray]:
        """For each row the spin not barred of the largest |sum of row times spin|, if above
        `least`, else -1; and that sum.
        """
        n_spins = self.bits.n_spins
        of_rows, of_spins = np.stack([1 / least, np.zeros(len(rows))]), np.ones((2, n_spins))
        found, sums = self.bits.large_sums(rows, 1 - 1e-6, of_rows, of_spins, n_jobs=network.n_jobs)
        free = ~np.isin(found[:, 0] * n_spins + found[:, 1], barred[0] * n_spins + barred[1])
        found, sizes = found[free], np.abs(sums[free])
        largest, best = np.zeros(len(rows)), np.full(len(rows), n_spins)
        np.maximum.at(largest, found[:, 0], sizes)
        row, spin = found[sizes >= _AS_LARGE * largest[found[:, 0]]].T
        np.minimum.at(best, row, spin)
        return np.where(largest > least, best, -1), largest

    def leftover(self, network: Regressions, some: IntArray) -> NDArray[np.floating]:
        """Deviates of all pairs of some spins, not cleared of neighbours."""
        residuals = network.residuals_of(some).astype(np.float32)
        part = residuals @ (
            np.asarray(self.bits.packed[:, some], dtype=np.float32) * self.bits.changes[some]
        )
        part /= np.sqrt(np.maximum(network.information[some], 1e-9))[:, None]
        return np.asarray(part + part.T, dtype=np.float64) / 2

    def _scores(
        self, network: Regressions, chosen: IntArray, residuals: FloatArray, places: IntArray
    ) -> FloatArray:
        """Deviates of spins places[:, 1] in the regressions of chosen[places[:, 0]], sorted by
        these.
        """
        pairs, left = np.column_stack([chosen[places[:, 0]], places[:, 1]]), np.empty(len(places))
        graph = (network.indptr, network.indices)
        parallel_map(
            kernels.unexplained_of_pairs,
            len(pairs),
            self.bits.source,
            pairs,
            *graph,
            left,
            chunk=4096,
            n_jobs=network.n_jobs,
        )
        sums = self.bits.sums_of(residuals, places, network.n_jobs)
        return np.asarray(
            sums / _scale(network.information[pairs[:, 0]], left) * self.bits.changes[pairs[:, 1]]
        )


def nearness(bits: Bits) -> float:
    """The correlation above which spins count as near."""
    return max(
        _NEAR,
        float(norm.isf(min(_NEAR_BY_CHANCE / (2 * bits.n_spins), 0.5))) / np.sqrt(bits.n_samples),
    )


def _scale(information: FloatArray, left: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(information * np.maximum(left, _LEAST_LEFT), 1e-9)))
