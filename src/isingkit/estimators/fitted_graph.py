"""FittedGraph: a graph and the logistic regressions of its spins on their neighbours."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from isingkit._kernels import fitted_graph as kernels
from isingkit._kernels.threads import one_blas_thread, parallel_map
from isingkit.arrays import FloatArray, IntArray, Pairs, distinct
from isingkit.estimators import sizes
from isingkit.estimators.causes import Causes, known_causes, no_causes
from isingkit.estimators.column_moments import ColumnMoments, column_moments
from isingkit.estimators.graph import Graph, graph_of, ranges
from isingkit.estimators.nodewise import distinct_rows
from isingkit.estimators.row_design import INDEPENDENT, RowDesign
from isingkit.packing import PackedSpins, distinct_samples, unpacked

# on squares of couplings, where samples count 1: keeps separated ones finite
_RIDGE = 0.5
# the same on squares of fields: next to nothing, or so much that there are none
_FREE, _NONE = 1e-3, 1e15
# the same of effects that are reported, which no penalty should shrink
_PLAIN = 1e-9
_AT_A_TIME = 256  # spins whose residuals are held
_TOGETHER = 16  # pairs or spins, on a thread, whose influences are held
# arguments of tasks that do without
_NO_SPINS = np.empty(0, np.int64)
_NO_ROWS = np.empty((0, 0))
# variance of the mean of two directed couplings, at least, in units of that of either
_LEAST_SHARED = 0.64
# variance of an effect beyond which likelihood alone does not keep it finite: then it is about 1e7,
# of covariates that are nearly the same about 10
_SEPARATED = 1e4


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """What regressions look at: different rows only, where nothing is missing."""

    spins: Any  # (n_spins, n_rows) float64, 0 where missing; or (n_spins, n_words) uint64
    sample_weights: FloatArray  # (n_rows,): how many samples a row stands for
    outcomes: Any  # as spins: 0 where a value was imputed, which explains but is not explained
    causes: Causes
    # (n_rows,): of weights; empty where these are counts
    squares: FloatArray = field(default_factory=lambda: np.empty(0))
    # (n_rows,): which rows belong together; empty where none do
    groups: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    # what grouped variances are at least, in units of those of independent samples; a factor; and
    # degrees of freedom of what is known of all pairs
    bounds: tuple[float, float, float] = (1.0, 1.0, 0.0)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take it."""
        bounds = np.array(self.bounds)
        return (
            self.spins,
            self.sample_weights,
            self.outcomes,
            self.squares,
            self.groups,
            bounds,
            self.causes.arrays,
        )

    def __getitem__(self, rows: slice) -> "Samples":
        """Some of the rows."""
        return replace(
            self,
            spins=np.ascontiguousarray(self.spins[:, rows]),
            sample_weights=self.sample_weights[rows],
            outcomes=np.ascontiguousarray(self.outcomes[:, rows]),
            causes=self.causes[rows],
            squares=self.squares[rows],
            groups=self.groups[rows],
        )

    def portions(self) -> list[slice]:
        """Spins that are numbers at a time: all, where they are numbers already."""
        n_spins = len(self.spins)
        step = n_spins
        if self.spins.dtype == np.uint64:
            step = max(1, sizes.CELLS // self.n_rows)
        return [slice(first, first + step) for first in range(0, n_spins, step)]

    @property
    def are_grouped(self) -> bool:
        return len(self.groups) > 0

    @property
    def n_rows(self) -> int:
        return len(self.sample_weights)

    def values_of(self, some: Any) -> FloatArray:
        """(n_some, n_rows): spins, 0 where missing."""
        if self.spins.dtype == np.uint64:
            words = np.ascontiguousarray(self.spins[some])
            return unpacked(words, self.n_rows, np.float64)
        return np.asarray(self.spins[some])

    def column_moments(self, fit_fields: bool) -> ColumnMoments:
        """Of what is explained, less what causes explain of it."""
        outcomes = replace(self, spins=self.outcomes)
        known = (self.sample_weights, self.causes.regressors, fit_fields)
        return column_moments(outcomes.values_of, len(self.spins), *known)

    def variances_of(self, influences: FloatArray) -> FloatArray:
        """(n,): variances of sums over samples of w times influences, (n, n_rows)."""
        if self.are_grouped:
            return self.bounds[1] * self._grouped_variances(influences * self.sample_weights)
        # a count of w is w samples
        squares = self.squares if len(self.squares) else self.sample_weights
        return np.einsum("pk,pk,k->p", influences, influences, squares)

    def _grouped_variances(self, values: FloatArray) -> FloatArray:
        """The same of values whose groups are independent, about what their weight makes expected:
        the plain twin of the kernel `grouped_variance`.
        """
        masses = np.bincount(self.groups, self.sample_weights)
        sums = np.array([np.bincount(self.groups, row) for row in values])
        sums -= values.sum(axis=1, keepdims=True) * (masses / masses.sum())
        n_groups = len(masses)
        return np.asarray((sums**2).sum(axis=1) * (n_groups / max(n_groups - 1, 1)))


def samples_of(packed: PackedSpins, design: RowDesign = INDEPENDENT) -> Samples:
    """Spins as numbers."""
    weights = design.weights
    totals = np.ones(packed.n_samples) if weights is None else weights.totals
    if not design.is_counted:
        spins = np.ascontiguousarray(np.asarray(packed, dtype=np.float64).T)
        return _designed(spins, packed.n_samples, design)
    if packed.present is None:
        rows = distinct_rows(packed, weights)
        counts = rows.weights * totals.sum()
        is_whole = weights is None or weights.are_whole
        whole = np.rint(counts) if is_whole else counts
        return Samples(rows.spins, whole, rows.spins, no_causes(len(whole)))
    kept = np.flatnonzero(totals)
    first, place = distinct_samples(packed[kept])
    spins = np.ascontiguousarray(np.asarray(packed[kept[first]], dtype=np.float64).T)
    counts = np.asarray(np.bincount(place, weights=totals[kept]), np.float64)
    return Samples(spins, counts, spins, no_causes(len(counts)))


def _designed(spins: Any, n_rows: int, design: RowDesign) -> Samples:
    """Samples that count for what a design says, all divided by its design effect."""
    effect = design.design_effect
    weights = np.ones(n_rows) if design.weights is None else design.weights.totals
    squares = np.empty(0) if design.weights is None else design.weights.squares / effect**2
    groups = np.empty(0, np.int64) if design.groups is None else design.groups
    bounds = (design.least_effect / effect, design.block_factor, design.prior_freedom)
    outcomes = spins if design.outcomes is None else design.outcomes
    causes = no_causes(n_rows) if design.covariates is None else known_causes(design.covariates)
    return Samples(spins, weights / effect, outcomes, causes, squares, groups, bounds)


def samples_of_bits(packed: PackedSpins, design: RowDesign) -> Samples:
    """Spins as the bits they are; as numbers, where some are missing."""
    words: Any = np.ascontiguousarray(packed.words)
    if packed.present is not None:
        words = np.ascontiguousarray(np.asarray(packed, dtype=np.float64).T)
    if design.is_counted and design.weights is not None:
        totals = design.weights.totals
        return Samples(words, totals, words, no_causes(len(totals)))
    return _designed(words, packed.n_samples, design)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTests:
    """Score tests of pairs, and the regressions without these couplings."""

    pairs: Pairs
    z_scores: FloatArray  # (n_pairs,)
    residuals: FloatArray  # (n_pairs, 2, n_rows)
    information: FloatArray  # (n_pairs, 2)

    def of(self, some: IntArray) -> "ScoreTests":
        """Some of the pairs."""
        return ScoreTests(
            self.pairs[some], self.z_scores[some], self.residuals[some], self.information[some]
        )


@dataclass(frozen=True, slots=True, eq=False)
class FittedGraph:
    """Regressions of the spins of a graph on their neighbours; `refit` gives a new one."""

    samples: Samples
    graph: Graph
    fit_fields: bool
    n_jobs: int | None
    fields: FloatArray  # (n_spins,)
    couplings: FloatArray  # (2 n_pairs,): directed
    effects: FloatArray  # (n_spins, n_causes)
    inverses: FloatArray  # inverse Hessians, spin after spin
    places: IntArray  # (n_spins + 1,): of each spin's in `inverses`
    information: FloatArray  # (n_spins,): sum of w (1 - m^2)
    seen: FloatArray  # (n_spins,): weight of rows in which neither it nor a neighbour is missing
    columns: ColumnMoments

    @property
    def n_spins(self) -> int:
        return self.graph.n_spins

    @property
    def penalties(self) -> FloatArray:
        """On the squares of a field, of couplings and of each effect."""
        return np.array([_FREE if self.fit_fields else _NONE, _RIDGE, *self.samples.causes.ridges])

    @property
    def coefficients(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """As kernels take them."""
        return self.fields, self.couplings, self.effects

    def refit(self, pairs: Pairs) -> tuple[Self, IntArray]:
        """The graph of these sorted pairs, and the spins whose neighbours have changed.

        Only these are fitted anew.
        """
        graph = graph_of(pairs, self.n_spins)
        moved = np.setxor1d(self.graph.keys, graph.keys, assume_unique=True)
        changed = distinct(moved // self.n_spins, moved % self.n_spins)
        new = _unfitted(self.samples, graph, self.fit_fields, self.n_jobs, self.columns, self)
        same = np.ones(self.n_spins, dtype=bool)
        same[changed] = False
        degrees = graph.degrees[same]
        blocks = _block_sizes(degrees, self.samples)
        ours = graph.indptr[:-1][same]
        theirs = self.graph.indptr[:-1][same]
        new.couplings[ranges(ours, degrees)] = self.couplings[ranges(theirs, degrees)]
        ours = new.places[:-1][same]
        theirs = self.places[:-1][same]
        new.inverses[ranges(ours, blocks)] = self.inverses[ranges(theirs, blocks)]
        new._fit(changed, new.penalties)
        return new, changed  # type: ignore[return-value]

    def given(self, samples: Samples) -> Self:
        """The same graph where the same rows have other causes; it starts with what it has."""
        columns = samples.column_moments(self.fit_fields)
        new = _unfitted(samples, self.graph, self.fit_fields, self.n_jobs, columns, None)
        new.fields[:] = self.fields
        new.couplings[:] = self.couplings
        if new.effects.shape == self.effects.shape:
            new.effects[:] = self.effects
        new._fit(np.arange(self.n_spins), new.penalties)
        return new  # type: ignore[return-value]

    def firth_refit(self) -> Self:
        """The same graph without the bias of few samples: for estimates, not for tests."""
        new = self._copied()
        new._fit(np.arange(self.n_spins), self.penalties, kernels.FIRTH_REFIT)
        return new

    def _copied(self) -> Self:
        copied = ("fields", "couplings", "effects", "inverses", "information", "seen")
        return replace(self, **{name: getattr(self, name).copy() for name in copied})

    def effects_and_errors(self) -> tuple[FloatArray, FloatArray]:
        """(n_spins, n_causes) both, by maximum likelihood given neighbours.

        Effects that likelihood alone does not keep finite are those of this fit.
        """
        if self.samples.causes.n_causes == 0:  # nothing to compile or to fit for it
            return self.effects, np.zeros(self.effects.shape)
        plain = self._copied()
        n_covariates = self.samples.causes.n_covariates
        penalties = self.penalties
        penalties[0] = _PLAIN if self.fit_fields else _NONE
        penalties[1 : 2 + n_covariates] = _PLAIN
        plain._fit(np.arange(self.n_spins), penalties)
        failed = ~np.isfinite(plain.effects).all(axis=1, keepdims=True)
        separated = failed | (plain._effect_variances() > _SEPARATED)
        effects = np.where(separated, self.effects, plain.effects)
        # rows that leave an effect open have no influence on it that would tell its error
        open_errors = np.maximum(self._effect_errors(), np.sqrt(self._effect_variances()))
        return effects, np.where(separated, open_errors, plain._effect_errors())

    def _effect_variances(self) -> FloatArray:
        """(n_spins, n_causes): by the inverse Hessian, however samples belong together."""
        n_causes = self.effects.shape[1]
        first = self.graph.degrees[:, None] + 1  # after the field and couplings
        diagonal = (first + np.arange(n_causes)) * (first + n_causes + 1)
        return self.inverses[self.places[:-1, None] + diagonal]

    def _effect_errors(self) -> FloatArray:
        """As those of couplings, by the influence of samples that matter differently or belong
        together; of equal, independent ones, by the inverse Hessian.
        """
        samples = self.samples
        variances = self._effect_variances()
        if not samples.are_grouped and len(samples.squares) == 0:
            return np.sqrt(variances)
        n_causes = variances.shape[1]

        def fill(start: int, stop: int) -> None:
            some = np.arange(start, stop)
            which = self.graph.degrees[some, None] + 1 + np.arange(n_causes)
            influences = self._influences(np.repeat(some, n_causes), which.ravel())
            variances[some] = samples.variances_of(influences).reshape(which.shape)

        parallel_map(fill, self.n_spins, chunk=_TOGETHER, n_jobs=self.n_jobs)
        return np.sqrt(variances)

    def residuals_of(self, some: IntArray) -> FloatArray:
        """(n_some, n_rows): w (s - m) of these spins."""
        residuals = np.empty((len(some), self.samples.n_rows))
        plain = np.full(len(some), -1)
        fixed = self._task(kernels.ROWS, some, plain, self.penalties, self.coefficients, residuals)
        parallel_map(kernels.regress, len(some), *fixed, chunk=16, n_jobs=self.n_jobs)
        residuals *= self.samples.sample_weights
        return residuals

    def score_tests(self, pairs: Pairs, rivals: IntArray | None = None) -> ScoreTests:
        """Of pairs given rivals, (n_pairs, 2): -1 is none."""
        given = np.full((len(pairs), 2), -1) if rivals is None else rivals
        residuals = np.empty((pairs.size, self.samples.n_rows))
        found = np.empty((3, len(pairs)))  # z-scores, and information of both regressions
        spins = (kernels.SCORE_TESTS, pairs.ravel(), given.ravel())
        fixed = self._task(*spins, self.penalties, self.coefficients, residuals, found)
        parallel_map(kernels.regress, len(pairs), *fixed, chunk=16, n_jobs=self.n_jobs)
        of_ends = residuals.reshape(len(pairs), 2, self.samples.n_rows)
        return ScoreTests(pairs, found[0], of_ends, found[1:].T)

    def _influences(self, some: IntArray, which: IntArray) -> FloatArray:
        """(n_some, n_rows): of samples, on a coefficient of each of these spins; on one thread.

        A sample's influence on the coefficients of spin i is the inverse Hessian times its residual
        times (1, its neighbours).
        """
        rows = np.empty((len(some), self.samples.n_rows))
        fixed = self._task(kernels.ROWS, some, which, self.penalties, self.coefficients, rows)
        kernels.regress(0, len(some), *fixed)
        return rows

    def _fit(self, chosen: IntArray, penalties: FloatArray, task: int = kernels.REFIT) -> None:
        """Fill in the regressions of the chosen spins. Only for one that nobody else has seen."""
        fixed = self._task(task, chosen, _NO_SPINS, penalties, self.coefficients, _NO_ROWS)
        with one_blas_thread():
            parallel_map(kernels.regress, len(chosen), *fixed, chunk=16, n_jobs=self.n_jobs)
        self.information[:], self.seen[:] = fixed[-2]

    def _task(
        self,
        task: int,
        chosen: IntArray,
        which: IntArray,
        penalties: FloatArray,
        coefficients: tuple[FloatArray, ...],
        rows: FloatArray,
        sums: FloatArray | None = None,
    ) -> tuple[Any, ...]:
        """Arguments of the kernel; the last two are sums, copied, and rows."""
        if sums is None:
            sums = np.stack([self.information, self.seen])
        of_graph = (self.samples.arrays, self.graph.csr, penalties, coefficients)
        return task, chosen, which, *of_graph, (self.inverses, self.places), sums, rows

    def log_likelihoods(self) -> FloatArray:
        """(n_spins,): sum over rows of w log P(s | neighbours and causes).

        Rows in which something is missing count as the mean of others.
        """
        found = np.zeros(self.n_spins)
        weights = self.samples.sample_weights
        parts = weights.sum() / np.maximum(self.seen, 1e-300)
        for some in np.array_split(np.arange(self.n_spins), -(-self.n_spins // _AT_A_TIME)):
            off = np.abs(self.residuals_of(some)) / np.maximum(
                weights, 1e-300
            )  # |s - m|: P(s) is 1 - |s - m| / 2
            found[some] = np.log(np.maximum(1 - off / 2, 1e-300)) @ weights
        return found * parts

    def shifts(self, packed: PackedSpins | None = None) -> FloatArray:
        """(n_spins, n_rows): what causes add to fields; (n_spins, 0) where there are none.

        packed: all rows of the table, where regressions may look at different ones only, or in
        another order, as numbers do without covariates
        """
        samples = self.samples
        if samples.causes.n_causes == 0:
            return np.empty((self.n_spins, 0))
        are_others = samples.causes.are_hidden and samples.spins.dtype != np.uint64
        if packed is not None and (are_others or packed.n_samples != samples.n_rows):
            spins = np.ascontiguousarray(np.asarray(packed, dtype=np.float64).T)
            ones = np.ones(packed.n_samples)
            samples = Samples(spins, ones, spins, samples.causes.in_rows(spins))
        shifts = np.empty((self.n_spins, samples.n_rows))
        fixed = (samples.arrays, self.effects, shifts)
        parallel_map(kernels.shifts_of, self.n_spins, *fixed, chunk=16, n_jobs=self.n_jobs)
        return shifts

    def z_scores_of_couplings(self) -> FloatArray:
        """(2 n_pairs,): directed couplings over their standard errors."""
        own = self.graph.owners
        inside = np.arange(len(own)) - self.graph.indptr[own] + 1
        size = self.graph.degrees[own] + 1 + self.samples.causes.n_causes
        variances = self.inverses[self.places[own] + inside * (size + 1)]
        return np.asarray(self.couplings / np.sqrt(variances))

    def couplings_and_errors(self) -> tuple[FloatArray, FloatArray]:
        """(n_pairs,) both: means of both directions, and their standard errors."""
        graph = self.graph
        widths = graph.degrees + 1 + self.samples.causes.n_causes
        places = graph.sides - graph.indptr[graph.pairs] + 1  # of both couplings, among its spin's
        errors = np.zeros(len(graph.pairs))

        def fill(start: int, stop: int) -> None:
            own = graph.pairs[start:stop]
            which = places[start:stop]
            influences = self._influences(own.ravel(), which.ravel()).reshape(*own.shape, -1)
            bounds = self.inverses[self.places[own] + which * (widths[own] + 1)]
            errors[start:stop] = self._errors_of(influences.mean(axis=1), bounds)

        parallel_map(fill, len(errors), chunk=_TOGETHER, n_jobs=self.n_jobs)
        return graph.mean_of_directions(self.couplings), errors

    def _errors_of(self, influences: FloatArray, variances: FloatArray) -> FloatArray:
        """(n,): standard errors of means of both directions, from influences, (n, n_rows).

        Where no sample contradicts a coupling residuals vanish, but the inverse Hessians do not:
        their variances of either, (n, 2), bound the error from below.
        """
        least = _LEAST_SHARED * self.samples.bounds[0] * variances.mean(axis=1)
        return np.sqrt(np.maximum(self.samples.variances_of(influences), least))

    def observed_couplings_and_errors(self) -> tuple[FloatArray, FloatArray]:
        """(n_pairs, 2) directed couplings and (n_pairs,) errors of their means, where some values
        were imputed: of each pair from the rows in which both spins were observed.
        """
        n_pairs = len(self.graph.pairs)
        couplings, errors = np.zeros((n_pairs, 2)), np.zeros(n_pairs)
        problem = (self.samples.arrays, self.graph.csr, self.penalties)

        def fill(start: int, stop: int) -> None:
            here = slice(start, stop)
            variances = np.empty((stop - start, 2))
            influences = np.empty((stop - start, self.samples.n_rows))
            found = (couplings[here], variances, influences)
            kernels.observed_pairs(0, stop - start, self.graph.pairs[here], *problem, *found)
            errors[here] = self._errors_of(influences, variances)

        parallel_map(fill, n_pairs, chunk=_TOGETHER, n_jobs=self.n_jobs)
        return couplings, errors

    def fields_given(self, couplings: FloatArray, effects: FloatArray | None = None) -> FloatArray:
        """(n_spins,) fields of the regressions where couplings are these and no longer free, nor
        effects, which are by default those of the regressions.

        Means of both directions are not the couplings that the regressions' own fields go with:
        with those, samples of the model can miss the means of the data by far.
        """
        fields = self.fields.copy()
        coefficients = (fields, couplings, self.effects if effects is None else effects)
        everyone = np.arange(self.n_spins)
        penalties = np.array([_FREE])
        task = (kernels.FIELDS, everyone, _NO_SPINS, penalties, coefficients, _NO_ROWS)
        fixed = self._task(*task)
        parallel_map(kernels.regress, self.n_spins, *fixed, chunk=64, n_jobs=self.n_jobs)
        return fields


def fit_graph(
    samples: Samples, pairs: Pairs, *, fit_fields: bool = True, n_jobs: int | None = None
) -> FittedGraph:
    """Regressions of all spins on their neighbours in a graph of sorted pairs."""
    n_spins = len(samples.spins)
    columns = samples.column_moments(fit_fields)
    fitted = _unfitted(samples, graph_of(pairs, n_spins), fit_fields, n_jobs, columns, None)
    fitted._fit(np.arange(n_spins), fitted.penalties)
    return fitted


def _unfitted(
    samples: Samples,
    graph: Graph,
    fit_fields: bool,
    n_jobs: int | None,
    columns: ColumnMoments,
    start: FittedGraph | None,
) -> FittedGraph:
    """Room for the regressions of a graph; what belongs to spins is that of `start`."""
    places = np.concatenate([[0], np.cumsum(_block_sizes(graph.degrees, samples))])
    of_spins = {name: np.zeros(graph.n_spins) for name in ("fields", "information", "seen")}
    of_spins["effects"] = np.zeros((graph.n_spins, samples.causes.n_causes))
    if start is not None:
        of_spins = {name: getattr(start, name).copy() for name in of_spins}
    return FittedGraph(
        samples,
        graph,
        fit_fields,
        n_jobs,
        couplings=np.zeros(len(graph.indices)),
        inverses=np.zeros(places[-1]),
        places=places,
        columns=columns,
        **of_spins,
    )


def _block_sizes(degrees: IntArray, samples: Samples) -> IntArray:
    """Numbers of each inverse Hessian: of a field, couplings and effects."""
    return np.asarray((degrees + 1 + samples.causes.n_causes) ** 2)
