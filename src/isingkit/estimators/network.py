"""A network and the logistic regressions of its spins on their neighbours."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from isingkit._kernels import auto as kernels
from isingkit._kernels.threads import one_blas_thread, spread
from isingkit.estimators.nodewise import distinct_rows
from isingkit.estimators.normal import Matrix, NormalEquations
from isingkit.estimators.screen import Pairs, neighbours
from isingkit.estimators.two_stage import correlations
from isingkit.packing import PackedSpins

_CLEAR = 8.0  # deviate of an edge that needs no test of its own
_RIDGE = 0.5  # on squares of couplings in a refit, where samples count 1: keeps separated ones finite
_FREE, _NONE = 1e-3, 1e15  # the same on squares of fields: next to nothing, or so much that there are none
_MOST_STEPS = 100  # of Newton's method, each at most 1
_LEAST_LEFT = 0.02  # of a spin's variance by the neighbours of another


@dataclass(slots=True, eq=False)
class Network:
    """A graph and the logistic regressions of its spins on their neighbours; only those that change are fitted anew."""

    packed: PackedSpins
    weights: Matrix | None
    normal: NormalEquations
    fit_fields: bool
    look: float  # deviate at which a pair outside the network is looked at closely
    n_jobs: int | None
    spins: Matrix = field(init=False)  # (n_spins, n_samples): different rows only, where none are missing; 0 where missing
    single: NDArray[np.float32] = field(init=False)  # the same in single precision
    correlations: Matrix = field(init=False)  # (n_spins, n_spins)
    shares: Matrix = field(init=False)  # (n_samples,): weights; how many samples a row stands for
    pairs: Pairs = field(init=False)  # sorted
    suspects: NDArray[np.int64] = field(init=False)  # sorted keys of the pairs outside to look at closely
    indptr: NDArray[np.int64] = field(init=False)
    indices: NDArray[np.int64] = field(init=False)
    places: NDArray[np.int64] = field(init=False)  # (n_spins + 1,): of each spin's inverse Hessian in `inverses`
    inverses: Matrix = field(init=False)
    fields: Matrix = field(init=False)
    couplings: Matrix = field(init=False)  # like indices
    residuals: Matrix = field(init=False)  # (n_spins, n_samples): w (s - m)
    curvatures: Matrix = field(init=False)  # (n_spins, n_samples): w (1 - m^2)
    scores: NDArray[np.float32] = field(init=False)  # (n_spins, n_spins): deviates of all pairs, quick and rough; directed

    def __post_init__(self) -> None:
        if self.packed.present is None:
            rows = distinct_rows(self.packed, self.weights)
            total = self.packed.n_samples if self.weights is None else self.weights.sum()
            self.spins, self.shares = rows.spins, rows.weights * total
        else:
            self.spins = np.ascontiguousarray(np.asarray(self.packed, dtype=np.float64).T)
            self.shares = np.ones(self.packed.n_samples) if self.weights is None else self.weights
        self.single = self.spins.astype(np.float32)
        self.correlations = correlations(self.normal)
        np.fill_diagonal(self.correlations, 1.0)
        n_spins = len(self.spins)
        self.pairs, self.suspects = np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int64)
        self.indptr, self.indices = np.zeros(n_spins + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.places, self.inverses = np.arange(n_spins + 1), np.zeros(n_spins)
        self.fields, self.couplings = np.zeros(n_spins), np.empty(0)
        self.residuals, self.curvatures = np.zeros_like(self.spins), np.zeros_like(self.spins)
        self.scores = np.zeros((n_spins, n_spins), dtype=np.float32)

    @property
    def n_spins(self) -> int:
        return len(self.spins)

    @property
    def ridges(self) -> Matrix:
        return np.array([_FREE if self.fit_fields else _NONE, _RIDGE])

    @property
    def rows(self) -> NDArray[np.int64]:
        """The spin of each directed coupling."""
        return np.repeat(np.arange(self.n_spins), np.diff(self.indptr))

    def keys(self, pairs: Pairs) -> NDArray[np.int64]:
        """One number for each pair."""
        return np.asarray(pairs[:, 0] * self.n_spins + pairs[:, 1])

    def unkeyed(self, keys: NDArray[np.int64]) -> Pairs:
        """The pairs of these numbers."""
        return np.column_stack([keys // self.n_spins, keys % self.n_spins])

    def connect(self, pairs: Pairs) -> NDArray[np.intp]:
        """Take these pairs, sorted, for the graph; gives the spins whose neighbours have changed."""
        moved = np.setxor1d(self.keys(self.pairs), self.keys(pairs), assume_unique=True)
        changed = np.unique(np.concatenate([moved // self.n_spins, moved % self.n_spins])).astype(np.intp)
        if not self.curvatures.any():
            changed = np.arange(self.n_spins)  # none has been fitted yet
        same = np.ones(self.n_spins, dtype=bool)
        same[changed] = False
        old_indptr, old_couplings, old_places, old_inverses = self.indptr, self.couplings, self.places, self.inverses
        graph = neighbours(pairs, self.n_spins)
        self.pairs, self.indptr, self.indices = pairs, graph.indptr, graph.indices
        sizes = np.diff(self.indptr)
        self.places = np.concatenate([[0], np.cumsum((sizes + 1) ** 2)])
        self.inverses, self.couplings = np.zeros(self.places[-1]), np.zeros(len(self.indices))
        self.couplings[_ranges(self.indptr[:-1][same], sizes[same])] = old_couplings[_ranges(old_indptr[:-1][same], sizes[same])]
        blocks = (sizes[same] + 1) ** 2
        self.inverses[_ranges(self.places[:-1][same], blocks)] = old_inverses[_ranges(old_places[:-1][same], blocks)]
        self._refit(changed)
        return changed

    def _refit(self, chosen: NDArray[np.intp]) -> None:
        fixed = (chosen, self.spins, self.shares, self.indptr, self.indices, self.ridges)
        out = (self.fields, self.couplings, self.inverses, self.places, self.residuals, self.curvatures)
        with one_blas_thread():
            spread(kernels.refit, len(chosen), *fixed, *out, chunk=16, n_jobs=self.n_jobs)
            self._look_around(chosen)

    def _look_around(self, chosen: NDArray[np.intp]) -> None:
        """Scores of all spins in the regressions of the chosen, cleared of neighbours by linear regression; whom to suspect."""

        def rough(start: int, stop: int) -> None:
            some = chosen[start:stop]
            left = np.empty((len(some), self.n_spins))
            kernels.unexplained(some, self.correlations, self.indptr, self.indices, left)
            scale = np.sqrt(np.maximum(self.curvatures[some].sum(axis=1)[:, None] * np.maximum(left, _LEAST_LEFT), 1e-9))
            self.scores[some] = (self.residuals[some].astype(np.float32) @ self.single.T) / scale * self.normal.changes

        spread(rough, len(chosen), chunk=64, n_jobs=self.n_jobs)
        touched = np.zeros(self.n_spins, dtype=bool)
        touched[chosen] = True
        old = self.suspects[~touched[self.suspects // self.n_spins] & ~touched[self.suspects % self.n_spins]]
        found = np.argwhere(np.abs(self.scores[chosen] + self.scores[:, chosen].T) > 2 * self.look)
        found[:, 0] = chosen[found[:, 0]]
        found = np.sort(found[found[:, 0] != found[:, 1]], axis=1)
        self.suspects = np.setdiff1d(np.union1d(old, self.keys(found)), self.keys(self.pairs))

    def deviates(self, pairs: Pairs, needed: float) -> Matrix:
        """Deviates of single couplings; `needed` is the least that makes an edge.

        Clear edges need no test (couplings over their standard errors serve), nor do pairs outside that a first look acquits.
        """
        found = self._clear(pairs)
        rough = (self.scores[tuple(pairs.T)] + self.scores[tuple(pairs.T[::-1])]) / 2
        dull = (np.abs(rough) <= self.look) & ~np.isin(self.keys(pairs), self.keys(self.pairs))
        found[dull] = rough[dull]
        unclear = (np.abs(found) < _CLEAR) & ~dull
        found[unclear] = self._tested(pairs[unclear], needed)
        return found

    def _clear(self, pairs: Pairs) -> Matrix:
        """Directed couplings over their standard errors, the weaker of both directions; 0 for pairs outside the network."""
        if len(pairs) == 0 or len(self.couplings) == 0:
            return np.zeros(len(pairs))
        inside = np.arange(len(self.indices)) - self.indptr[self.rows] + 1
        size = np.diff(self.indptr)[self.rows] + 1
        ratios = self.couplings / np.sqrt(self.inverses[self.places[self.rows] + inside * (size + 1)])
        table = scipy.sparse.csr_array((ratios, self.indices, self.indptr), shape=(self.n_spins, self.n_spins))
        forth, back = (np.asarray(table[pairs[:, a], pairs[:, 1 - a]]).ravel() for a in (0, 1))
        return np.where(forth * back > 0, np.sign(forth) * np.minimum(np.abs(forth), np.abs(back)), 0.0)

    def _tested(self, pairs: Pairs, needed: float) -> Matrix:
        found = np.zeros(len(pairs))
        fixed = (self.spins, self.shares, self.indptr, self.indices, self.ridges, self.fields, self.couplings)
        with one_blas_thread():
            spread(kernels.test_couplings, len(pairs), pairs, needed, self.single, *fixed, found, chunk=32, n_jobs=self.n_jobs)
        return found

    def undirected(self) -> tuple[Matrix, Matrix]:
        """Couplings of the pairs, means of both directions, and their standard errors."""
        keys = self.rows * self.n_spins + self.indices
        sides = np.column_stack([np.searchsorted(keys, self.keys(pairs)) for pairs in (self.pairs, self.pairs[:, ::-1])])
        errors = np.zeros(len(self.pairs))
        fixed = (self.spins, self.indptr, self.indices, self.inverses, self.places, self.residuals, self.shares)
        spread(kernels.edge_errors, len(sides), sides, *fixed, errors, chunk=32, n_jobs=self.n_jobs)
        return self.couplings[sides].mean(axis=1), errors

    def directed(self) -> Matrix:
        """(n_spins, n_spins): row i the couplings of the regression of spin i."""
        shape = (self.n_spins, self.n_spins)
        return np.asarray(scipy.sparse.csr_array((self.couplings, self.indices, self.indptr), shape=shape).toarray())

    def fields_given(self, couplings: Matrix) -> Matrix:
        """(n_spins,) fields of the regressions of spins on their neighbours, where couplings are these and no longer free.

        Newton's method for sum_m w_m (s_im - tanh(H_i + sum_j J_ij s_jm)) = 0. Means of both directions are not the couplings that
        the regressions' own fields go with: with those, samples of the model can miss the means of the data by far.
        """
        fields, holes = self.fields.copy(), self.packed.present is not None
        matrix = scipy.sparse.csr_array(couplings)

        def solve(start: int, stop: int) -> None:
            some, spins = matrix[start:stop], self.spins[start:stop]
            local = some @ self.spins
            shares = self.shares * (spins != 0)
            if holes:
                shares = shares * (abs(some).sign() @ (self.spins == 0) == 0)
            for _ in range(_MOST_STEPS):
                means = np.tanh(fields[start:stop, None] + local)
                slope = (shares * (spins - means)).sum(axis=1) - _FREE * fields[start:stop]
                steps = np.clip(slope / ((shares * (1 - means**2)).sum(axis=1) + _FREE), -1, 1)
                fields[start:stop] += steps
                if np.abs(steps).max(initial=0.0) < 1e-9:
                    return

        spread(solve, self.n_spins, chunk=64, n_jobs=self.n_jobs)
        return fields


def _ranges(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers from each start on, as many as its size, one after the other."""
    return np.asarray(np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum()))
