"""A network and the logistic regressions of its spins on their neighbours."""

from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from tqdm import tqdm

from isingkit._kernels import auto as kernels
from isingkit._kernels import coupling_tests
from isingkit._kernels.threads import one_blas_thread, parallel_map
from isingkit.arrays import FloatArray
from isingkit.estimators.bits import Bits
from isingkit.estimators.executor import current_executor
from isingkit.estimators.nodewise import distinct_rows
from isingkit.estimators.normal import NormalEquations
from isingkit.estimators.outlook import AllPairs, Outlook, OutstandingPairs, nearness
from isingkit.estimators.screen import Pairs, neighbours
from isingkit.estimators.tiles import CorrelationScreen, screened
from isingkit.estimators.two_stage import correlations
from isingkit.packing import PackedSpins

_CLEAR = 8.0  # deviate of an edge that needs no test of its own
_RIDGE = (
    0.5  # on squares of couplings in a refit, where samples count 1: keeps separated ones finite
)
_FREE, _NONE = (
    1e-3,
    1e15,
)  # the same on squares of fields: next to nothing, or so much that there are none
_NEARLY = 1.0  # by so much less may a rival serve
_ALIKE = 0.9  # correlation of spins that no data can tell apart
_PORTION = 1024  # spins refitted in one go
_MANY = 5000  # spins or pairs that take a while
_ROOM = 1 << 22  # numbers of residuals held at a time


@dataclass(slots=True, eq=False)
class Network:
    """A graph and the logistic regressions of its spins on their neighbours; only those that change
    are fitted anew.
    """

    packed: PackedSpins
    weights: FloatArray | None
    normal: NormalEquations | Bits
    fit_fields: bool
    look: float = 3.0  # deviate at which a pair outside the network is looked at closely
    n_jobs: int | None = None
    progress: bool = False
    spins: Any = field(
        init=False
    )  # (n_spins, n_samples): different rows only, where none are missing, 0 where missing; or words
    outlook: Outlook = field(init=False)
    shares: FloatArray = field(
        init=False
    )  # (n_samples,): weights; how many samples a row stands for
    pairs: Pairs = field(init=False)  # sorted
    suspects: NDArray[np.int64] = field(
        init=False
    )  # sorted keys of the pairs outside to look at closely
    indptr: NDArray[np.int64] = field(init=False)
    indices: NDArray[np.int64] = field(init=False)
    places: NDArray[np.int64] = field(
        init=False
    )  # (n_spins + 1,): of each spin's inverse Hessian in `inverses`
    inverses: FloatArray = field(init=False)
    fields: FloatArray = field(init=False)
    couplings: FloatArray = field(init=False)  # like indices
    unseen: NDArray[np.bool_] = field(
        init=False
    )  # (n_spins,): regressions that have changed since the last look around
    information: FloatArray = field(init=False)  # (n_spins,): sum of w (1 - m^2)
    seen: FloatArray = field(
        init=False
    )  # (n_spins,): weight of the rows where neither a spin nor a neighbour of it is missing

    def __post_init__(self) -> None:
        if isinstance(self.normal, Bits):
            self.spins, self.shares = (
                np.ascontiguousarray(self.packed.words),
                np.ones(self.packed.n_samples),
            )
            near = nearness(self.normal)
            kept = screened(
                CorrelationScreen(self.normal, near),
                self.packed,
                n_jobs=self.n_jobs,
                run=current_executor(),
            )
            self.outlook = OutstandingPairs(
                self.normal, neighbours(kept.pairs, self.normal.n_spins), near
            )
        else:
            self.spins, self.shares = self._rows()
            among = correlations(self.normal)
            np.fill_diagonal(among, 1.0)
            self.outlook = AllPairs(self.spins.astype(np.float32), among, self.normal.changes)
        n_spins = len(self.spins)
        self.pairs, self.suspects = np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int64)
        self.indptr, self.indices = (
            np.zeros(n_spins + 1, dtype=np.int64),
            np.empty(0, dtype=np.int64),
        )
        self.places, self.inverses = np.arange(n_spins + 1), np.zeros(n_spins)
        self.fields, self.couplings = np.zeros(n_spins), np.empty(0)
        self.information, self.seen, self.unseen = (
            np.zeros(n_spins),
            np.zeros(n_spins),
            np.ones(n_spins, dtype=bool),
        )

    def _rows(self) -> tuple[FloatArray, FloatArray]:
        """Spins as numbers, and how many samples each row stands for."""
        if self.packed.present is None:
            rows = distinct_rows(self.packed, self.weights)
            total = self.packed.n_samples if self.weights is None else self.weights.sum()
            return rows.spins, rows.weights * total
        shares = np.ones(self.packed.n_samples) if self.weights is None else self.weights
        return np.ascontiguousarray(np.asarray(self.packed, dtype=np.float64).T), shares

    @property
    def n_spins(self) -> int:
        return len(self.spins)

    @property
    def ridges(self) -> FloatArray:
        return np.array([_FREE if self.fit_fields else _NONE, _RIDGE])

    @property
    def rows(self) -> NDArray[np.int64]:
        """The spin of each directed coupling."""
        return np.repeat(np.arange(self.n_spins), np.diff(self.indptr))

    @property
    def directed_pairs(self) -> NDArray[np.int64]:
        """(n_couplings, 2): the spin of each directed coupling, and the neighbour."""
        return np.column_stack([self.rows, self.indices])

    def keys(self, pairs: Pairs) -> NDArray[np.int64]:
        """One number for each pair."""
        return np.asarray(pairs[:, 0] * self.n_spins + pairs[:, 1])

    def unkeyed(self, keys: NDArray[np.int64]) -> Pairs:
        """The pairs of these numbers."""
        return np.column_stack([keys // self.n_spins, keys % self.n_spins])

    def connect(self, pairs: Pairs) -> NDArray[np.intp]:
        """Take these pairs, sorted, for the graph, and fit anew; gives the spins whose neighbours
        have changed.
        """
        moved = np.setxor1d(self.keys(self.pairs), self.keys(pairs), assume_unique=True)
        changed = np.unique(np.concatenate([moved // self.n_spins, moved % self.n_spins])).astype(
            np.intp
        )
        if not self.information.any():
            changed = np.arange(self.n_spins)  # none has been fitted yet
        same = np.ones(self.n_spins, dtype=bool)
        same[changed] = False
        old_indptr, old_couplings, old_places, old_inverses = (
            self.indptr,
            self.couplings,
            self.places,
            self.inverses,
        )
        graph = neighbours(pairs, self.n_spins)
        self.pairs, self.indptr, self.indices = pairs, graph.indptr, graph.indices
        sizes = np.diff(self.indptr)
        self.places = np.concatenate([[0], np.cumsum((sizes + 1) ** 2)])
        self.inverses, self.couplings = np.zeros(self.places[-1]), np.zeros(len(self.indices))
        self.couplings[ranges(self.indptr[:-1][same], sizes[same])] = old_couplings[
            ranges(old_indptr[:-1][same], sizes[same])
        ]
        blocks = (sizes[same] + 1) ** 2
        self.inverses[ranges(self.places[:-1][same], blocks)] = old_inverses[
            ranges(old_places[:-1][same], blocks)
        ]
        self._refit(changed)
        return changed

    def cleared_of_bias(self) -> Self:
        """The same network with regressions that few samples do not make too large: for estimates,
        not for tests.
        """
        other = copy(self)
        for name in ("fields", "couplings", "inverses", "information", "seen", "unseen"):
            setattr(other, name, getattr(self, name).copy())
        other._refit(np.arange(self.n_spins), unbiased=True)
        return other

    def _refit(self, chosen: NDArray[np.intp], unbiased: bool = False) -> None:
        """Fit the regressions of the chosen spins anew."""
        fixed = (self.spins, self.shares, self.indptr, self.indices, self.ridges, unbiased)
        out = (self.fields, self.couplings, self.inverses, self.places, self.information, self.seen)
        with one_blas_thread():
            parallel_map(
                kernels.refit, len(chosen), chosen, *fixed, *out, chunk=16, n_jobs=self.n_jobs
            )
        self.unseen[chosen] = True

    def look_around(self) -> None:
        """See which pairs outside the network are suspects now, where regressions have changed."""
        chosen = np.flatnonzero(self.unseen)
        with self._bar(len(chosen), "looking around", " spins") as bar, one_blas_thread():
            for start in range(0, len(chosen), _PORTION):
                some = chosen[start : start + _PORTION]
                self.outlook.update(self, some, self.residuals_of(some))
                bar.update(len(some))
            old = self.suspects[
                ~self.unseen[self.suspects // self.n_spins]
                & ~self.unseen[self.suspects % self.n_spins]
            ]
            found = self.outlook.suspects(self, chosen)
        self.unseen[:] = False
        found = np.sort(
            found[(found[:, 0] != found[:, 1]) & self.normal.changes[found].all(axis=1)], axis=1
        )
        self.suspects = np.setdiff1d(np.union1d(old, self.keys(found)), self.keys(self.pairs))

    def _bar(self, total: int, what: str, unit: str) -> Any:
        """A progress bar, where one is wanted and there is much to do."""
        return tqdm(
            total=total,
            desc=what,
            unit=unit,
            disable=not (self.progress and total > _MANY),
            delay=1,
        )

    def residuals_of(self, some: NDArray[np.int64]) -> FloatArray:
        """(n_some, n_samples): w (s - m) of these spins."""
        residuals = np.empty((len(some), len(self.shares)))
        fixed = (self.spins, self.shares, self.indptr, self.indices, self.fields, self.couplings)
        with one_blas_thread():
            parallel_map(
                kernels.residuals_of,
                len(some),
                some,
                *fixed,
                residuals,
                chunk=16,
                n_jobs=self.n_jobs,
            )
        return residuals

    def deviates(self, pairs: Pairs, needed: FloatArray) -> FloatArray:
        """Deviates of single couplings; `needed` are the least that make edges.

        Clear edges need no test (couplings over their standard errors serve), nor do pairs outside
        that a first look acquits.
        """
        found, inside = self._clear(pairs), np.isin(self.keys(pairs), self.keys(self.pairs))
        found[~inside] = self.outlook.rough(self, pairs[~inside])
        unclear = np.where(
            inside, np.abs(found) < _CLEAR, np.abs(found) > np.minimum(self.look, needed)
        )
        found[unclear] = self._tested(pairs[unclear], needed[unclear])
        return found

    def _clear(self, pairs: Pairs) -> FloatArray:
        """Directed couplings over their standard errors, the weaker of both directions; 0 for pairs
        outside the network.
        """
        if len(pairs) == 0 or len(self.couplings) == 0:
            return np.zeros(len(pairs))
        inside = np.arange(len(self.indices)) - self.indptr[self.rows] + 1
        size = np.diff(self.indptr)[self.rows] + 1
        ratios = self.couplings / np.sqrt(
            self.inverses[self.places[self.rows] + inside * (size + 1)]
        )
        table = scipy.sparse.csr_array(
            (ratios, self.indices, self.indptr), shape=(self.n_spins, self.n_spins)
        )
        forth, back = (np.asarray(table[pairs[:, a], pairs[:, 1 - a]]).ravel() for a in (0, 1))
        return np.where(
            forth * back > 0, np.sign(forth) * np.minimum(np.abs(forth), np.abs(back)), 0.0
        )

    @property
    def _portion(self) -> int:
        """Pairs whose residuals are held at a time."""
        return max(16, min(_PORTION, _ROOM // max(len(self.shares), 1)))

    def _tested(self, pairs: Pairs, needed: FloatArray) -> FloatArray:
        """Deviates by a close look, a portion of pairs at a time. Those below `needed` do not
        matter.

        Where another spin would serve the regression of i nearly as well as j, it may be the true
        neighbour, and j may only be near it: the coupling must hold given that rival, too.
        """
        found, size = np.zeros(len(pairs)), self._portion
        with self._bar(len(pairs), "testing pairs", " pairs") as bar, one_blas_thread():
            for start in range(0, len(pairs), size):
                some, none = (
                    pairs[start : start + size],
                    np.full((min(size, len(pairs) - start), 2), -1),
                )
                alone, residuals, information = self._given(some, none)
                passing = np.flatnonzero(np.abs(alone) > needed[start : start + size])
                rivals = self._rivals(
                    some[passing], alone[passing], residuals[passing], information[passing]
                )[0]
                has = (rivals >= 0).any(axis=1)
                passing, rivals = passing[has], rivals[has]
                sign, given = np.sign(alone[passing]), self._given(some[passing], rivals)[0]
                alone[passing] = sign * np.minimum(
                    np.abs(alone[passing]), np.maximum(sign * given, 0.0)
                )
                found[start : start + size] = alone
                bar.update(len(some))
        return found

    def margins(self, pairs: Pairs, deviates: FloatArray, needed: FloatArray) -> FloatArray:
        """By how much deviates of edges could be less, and these be edges still.

        A rival that is too weak to count would count if the edge were weaker, which would then have
        to pass given that, too. As far as they are alike, the rival's strength is the edge's and
        goes with it. Where both spins may get a rival, both are given as soon as one counts: a
        little less is left so.
        """
        found, size = np.abs(deviates) - needed, self._portion
        unclear = np.flatnonzero(np.abs(deviates) < _CLEAR)
        with self._bar(len(unclear), "weighing edges", " edges") as bar, one_blas_thread():
            for start in range(0, len(unclear), size):
                here = unclear[start : start + size]
                alone, residuals, information = self._given(
                    pairs[here], np.full((len(here), 2), -1)
                )
                rivals, strengths, likeness = self._rivals(
                    pairs[here], needed[here], residuals, information
                )
                has = (rivals >= 0).any(axis=1)
                some, alone = here[has], alone[has]
                given = np.sign(alone) * self._given(pairs[some], rivals[has])[0]
                until_one_counts = (
                    (np.abs(alone)[:, None] - _NEARLY - strengths[has]) / (1 - likeness[has])
                ).min(axis=1)
                found[some] = np.minimum(
                    found[some], np.maximum(until_one_counts, given - needed[some])
                )
                bar.update(len(here))
        return np.maximum(found, 0.0)

    def _given(
        self, pairs: Pairs, rivals: NDArray[np.int64]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Deviates given rivals, residuals of both regressions without the coupling, and their
        information.
        """
        deviates, information = np.zeros(len(pairs)), np.zeros((len(pairs), 2))
        residuals = np.zeros((len(pairs), 2, len(self.shares)))
        fixed = (
            self.spins,
            self.shares,
            self.indptr,
            self.indices,
            self.ridges,
            self.fields,
            self.couplings,
        )
        out = (deviates, residuals, information)
        parallel_map(
            coupling_tests.score_test_couplings,
            len(pairs),
            pairs,
            rivals,
            *fixed,
            *out,
            chunk=16,
            n_jobs=self.n_jobs,
        )
        return deviates, residuals, information

    def _rivals(
        self, pairs: Pairs, deviates: FloatArray, residuals: FloatArray, information: FloatArray
    ) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        """(n_pairs, 2): for each spin of a pair the one that would serve it best instead of the
        other, nearly as well; or -1.

        With them their deviates, -inf where there is none, and how much they are like the other.
        Those nearly the same are none: the data cannot tell them apart.
        """
        sides, own = (
            np.repeat(np.arange(len(pairs)), 2),
            pairs.ravel(),
        )  # row 2p + a: spin a of pair p
        other = pairs[:, ::-1].ravel()
        degrees = np.diff(self.indptr)[own]
        rows = np.arange(len(own))
        barred = (
            np.concatenate([rows, rows, np.repeat(rows, degrees)]),
            np.concatenate([own, other, self.indices[ranges(self.indptr[:-1][own], degrees)]]),
        )
        least = np.maximum(np.abs(deviates) - _NEARLY, coupling_tests.SMALL)[sides]
        scale = np.sqrt(np.maximum(information.ravel(), 1e-9))
        best, sums = self.outlook.strongest(
            self, residuals.reshape(len(own), len(self.shares)), least * scale, barred
        )
        there = np.flatnonzero(best >= 0)
        both, correlated, likeness = (
            np.column_stack([best[there], other[there]]),
            np.zeros(len(there)),
            np.zeros(len(own)),
        )
        parallel_map(
            coupling_tests.likeness,
            len(there),
            both,
            self.spins,
            self.shares,
            correlated,
            chunk=64,
            n_jobs=self.n_jobs,
        )
        likeness[there] = correlated
        best[likeness > _ALIKE] = -1
        likeness[best < 0] = 0.0
        strengths = np.where(best < 0, -np.inf, sums / scale)
        return best.reshape(-1, 2), strengths.reshape(-1, 2), likeness.reshape(-1, 2)

    def undirected(self) -> tuple[FloatArray, FloatArray]:
        """Couplings of the pairs, means of both directions, and their standard errors."""
        sides = self._sides()
        errors = np.zeros(len(self.pairs))
        fixed = (
            self.spins,
            self.shares,
            self.indptr,
            self.indices,
            self.fields,
            self.couplings,
            self.inverses,
            self.places,
        )
        parallel_map(
            kernels.edge_errors, len(sides), sides, *fixed, errors, chunk=32, n_jobs=self.n_jobs
        )
        return self.undirected_of(self.couplings), errors

    def undirected_of(self, values: FloatArray) -> FloatArray:
        """Of the pairs, means of both directions of values in the order of couplings."""
        return np.asarray(values[self._sides()].mean(axis=1))

    def _sides(self) -> NDArray[np.int64]:
        """(n_pairs, 2): where the two directions of each pair are among the couplings."""
        keys = self.keys(self.directed_pairs)
        return np.column_stack(
            [np.searchsorted(keys, self.keys(pairs)) for pairs in (self.pairs, self.pairs[:, ::-1])]
        )

    def directed(self, values: FloatArray | None = None) -> scipy.sparse.csr_array:
        """(n_spins, n_spins): row i the couplings of the regression of spin i, or other values in
        their order.
        """
        shape = (self.n_spins, self.n_spins)
        return scipy.sparse.csr_array(
            (self.couplings if values is None else values, self.indices, self.indptr), shape=shape
        )

    def symmetric(self, values: FloatArray) -> FloatArray:
        """Means of both directions of values in the order of couplings, in that order."""
        sides, means = self._sides(), np.empty_like(values)
        means[sides] = values[sides].mean(axis=1)[:, None]
        return means

    def fields_given(self, couplings: FloatArray) -> FloatArray:
        """(n_spins,) fields of the regressions of spins on their neighbours, where couplings are
        these and no longer free.

        Means of both directions are not the couplings that the regressions' own fields go with:
        with those, samples of the model can miss the means of the data by far.
        """
        fields = self.fields.copy()
        fixed = (self.spins, self.shares, self.indptr, self.indices, couplings, _FREE, fields)
        parallel_map(kernels.fields_given, self.n_spins, *fixed, chunk=64, n_jobs=self.n_jobs)
        return fields


def ranges(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers from each start on, as many as its size, one after the other."""
    return np.asarray(
        np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    )
