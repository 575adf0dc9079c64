"""AutoIsing: structure without knobs. Screen, eliminate, refit, test: docs/design/auto.md."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isingkit._kernels.threads import one_blas_thread
from isingkit.arrays import FloatArray
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.bits import bits_of, goes_by_bits
from isingkit.estimators.closed_forms import bethe_form, linear_form, tree_couplings
from isingkit.estimators.diagnostics import Evidence, diagnose
from isingkit.estimators.edge_tests import EdgeTester, critical_z, screening_z
from isingkit.estimators.elimination import eliminate
from isingkit.estimators.fitted_graph import (
    FittedGraph,
    Samples,
    fit_graph,
    samples_of,
    samples_of_bits,
)
from isingkit.estimators.graph import keys_of
from isingkit.estimators.intervals import intervals_of_found
from isingkit.estimators.moments import SecondMoments
from isingkit.estimators.normal import constant_fields, normal_equations
from isingkit.estimators.score_cache import ScoreCache, dense_scores, sparse_scores
from isingkit.estimators.screen import candidates, screen
from isingkit.estimators.selection import Selection, select_edges
from isingkit.estimators.stability import Stability, stability_of
from isingkit.estimators.tested_edges import surest_first, tested_edges
from isingkit.estimators.tiled_screen import screen_by_tiles
from isingkit.exceptions import SettingError, require_number
from isingkit.gram import gram
from isingkit.memory import require_memory
from isingkit.packing import PackedSpins
from isingkit.spins import require_network, warn_of_constants
from isingkit.worlds.graphs import Seed, generator

# numbers held for each pair of spins and each value of the table, as measured
_PAIRS, _VALUES = 9, 3


class AutoIsing(IsingEstimator):
    """The network, without knobs: every step tunes itself, and every edge comes with how sure it
    is.

    *Screen*: ridge regressions of all spins at once, the ridge chosen by leave-one-out error,
    estimates in units of their noise. *Eliminate*: of each spin's best candidates the weakest are
    dropped, by an extended Bayesian criterion. *Refit*: logistic regression of each spin on what is
    left (the pseudolikelihood: consistent, loops or not), cleared of the bias that few samples give
    it. *Judge*: each edge is tested in the network without it, each pair outside in the network as
    it is, both directions together, with tails that hold where spins hardly ever change; what fails
    goes, what passes comes in, until nothing moves. Levels count all pairs of spins as tested, so
    that choosing among them costs nothing more; those count for more whose other neighbours make an
    edge likely, such as two spins with one neighbour fewer than all others have.

    Whole numbers as `sample_weight` are counts of samples; others say how much rows matter, and
    stand for (sum w)^2 / sum w^2 rows.

    Parameters
    ----------
    level
        Share of false edges among those found ("fdr"), or probability of any false edge ("fwer"),
        that you accept.
    control
        "fdr" or "fwer".
    refit
        How couplings of the network found are estimated: "pseudolikelihood"; "bethe", in closed
        form from regressions on neighbours, exact on trees; or "linear", those regressions as they
        are. Only the first has standard errors.
    fit_fields
        Whether to fit fields; without, spins are taken to be symmetric.
    binarize
        Threshold that turns real-valued columns into spins.
    missing
        "error", "drop" or "pairwise": each spin is looked at in the rows where it and its
        neighbours are present.
    checkpoint
        Of large networks: a folder where parts of the screen are recorded. The same fit, started
        again, goes on from there.
    n_jobs
        Threads to use; None or -1 is all.
    progress
        Of large networks: whether to show progress bars.

    Attributes
    ----------
    edges_
        Structured array, surest first: source, target, coupling, std_error, z, p_value, q_value.
        p-values are those of single tests; q-values count all pairs, by their weights.
    intervals_
        (n_edges, 2) array: between what values each coupling of `edges_` is, with 95 percent
        confidence, given that the edge was found. An edge that hardly passed may have been lucky:
        its interval reaches further to 0 than away from it. nan where there is no `std_error`.
    rejected_
        Like `edges_`, the candidates that are no edges, and other pairs that came near it, with the
        coupling they would have had, to first order.
    diagnostics_
        What was looked at to tell whether the result can be trusted, each with `check`, `value`,
        `limit`, `serious` and `words`. Serious ones also come as warnings.
    screen_
        What the first step found: scores, ridge, error.
    candidates_
        (n, 2) array: pairs that the screen let through.
    elimination_
        What elimination left (`survivors`), and in which order each spin dropped its candidates.
    n_rounds_
        Rounds of refit and test.
    estimates_
        (n_spins, n_spins) array, or CSR of large networks; row i is the directed refit of J_i.
    intercepts_
        (n_spins,) array of fields; those of the pseudolikelihood are refitted to the couplings of
        `model_`.
    model_
        The IsingModel of the edges.
    n_samples_
        Rows used, or their total weight.
    mapping_
        For each spin the values of the table that became -1 and +1.

    Examples
    --------
    >>> import isingkit as ik
    >>> truth = ik.random_regular(n_spins=100, degree=3, coupling=0.4, random_state=0)
    >>> fit = ik.AutoIsing(control="fwer").fit(ik.sample(truth, n_samples=400, random_state=1))
    >>> ik.score(fit.model_, truth).precision
    1.0
    """

    def __init__(
        self,
        *,
        level: float = 0.05,
        control: str = "fdr",
        refit: str = "pseudolikelihood",
        fit_fields: bool = True,
        binarize: float | None = None,
        missing: str = "error",
        checkpoint: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__(
            threshold=0.0, rule="average", fit_fields=fit_fields, binarize=binarize, missing=missing
        )
        self.level = level
        self.control = control
        self.refit = refit
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.progress = progress

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number("level", self.level, above=0)
        if self.level >= 1:
            raise SettingError(setting="level", value=self.level, expected="a number below 1")
        if self.control not in ("fdr", "fwer"):
            raise SettingError(setting="control", value=self.control, expected="'fdr' or 'fwer'")
        if self.refit not in ("pseudolikelihood", "bethe", "linear"):
            raise SettingError(
                setting="refit",
                value=self.refit,
                expected="'pseudolikelihood', 'bethe' or 'linear'",
            )

    def _learn(self, packed: PackedSpins, weights: FloatArray | None, warned: bool) -> Self:
        weights = counts(weights)
        found = self._find(packed, weights, warned)
        self.n_rounds_ = found.selection.n_rounds
        refitted = found.selection.fitted.firth_refit()
        couplings, errors = refitted.couplings_and_errors()
        estimates, intercepts = self._estimates(found.moments, refitted)
        self._tabulate(found, refitted.graph.mean_of_directions(estimates), errors)
        self.diagnostics_ = diagnose(self._evidence(packed, weights, found, couplings, errors))
        directed = found.moments.as_estimates(refitted.graph.matrix(estimates))
        moments = found.moments
        return self._finish(packed, moments.n_samples, directed, intercepts, moments.means)

    def _estimates(
        self, moments: SecondMoments, refitted: FittedGraph
    ) -> tuple[FloatArray, FloatArray]:
        """Directed couplings and fields, as `refit` wants them."""
        estimates = refitted.couplings
        if self.refit != "pseudolikelihood":
            form = linear_form if self.refit == "linear" else bethe_form
            estimates, intercepts = form(moments, refitted)
        elif self.fit_fields:
            intercepts = refitted.fields_given(refitted.graph.symmetric(estimates))
        if not self.fit_fields:
            return estimates, np.zeros(moments.n_spins)
        constant = ~moments.changes
        intercepts[constant] = constant_fields(moments.means[constant], moments.n_samples)
        return estimates, intercepts

    def _find(self, packed: PackedSpins, weights: FloatArray | None, warned: bool) -> "_Found":
        """The network found; `warned`: constant columns were already warned of."""
        is_large = goes_by_bits(packed, weights) and packed.n_samples < packed.n_spins
        road = self._by_bits(packed) if is_large else self._by_matrices(packed, weights)
        moments = road.moments
        if not warned:
            warn_of_constants(moments.names, ~moments.changes)
        with one_blas_thread():  # once for all steps, which use threads themselves
            self.elimination_ = eliminate(moments, self.candidates_, self.n_jobs)
            survivors = self.elimination_.survivors
            n_spins = int(moments.changes.sum())
            least = screening_z(n_spins, len(survivors), self.level, self.control)
            tester = EdgeTester(road.scores(least), moments.changes, self.progress)
            fitted = fit_graph(
                road.samples, survivors, fit_fields=self.fit_fields, n_jobs=self.n_jobs
            )
            selection = select_edges(fitted, tester, self.candidates_, self.level, self.control)
        return _Found(moments, tester, selection)

    def _by_bits(self, packed: PackedSpins) -> "_Road":
        """Nothing of the size of all pairs is stored; sets the screen and its candidates."""
        bits = bits_of(packed, self.fit_fields)
        checkpoint = None if self.checkpoint is None else Path(self.checkpoint)
        self.screen_, self.candidates_ = screen_by_tiles(
            bits, checkpoint, self.n_jobs, self.progress
        )
        samples = samples_of_bits(packed)
        return _Road(bits, samples, lambda least: sparse_scores(bits, least, self.n_jobs))

    def _by_matrices(self, packed: PackedSpins, weights: FloatArray | None) -> "_Road":
        """All pairs in memory; sets the screen and its candidates."""
        n_numbers = _PAIRS * packed.n_spins + _VALUES * packed.n_samples
        n_bytes = 8 * packed.n_spins * n_numbers
        require_memory(n_bytes, n_spins=packed.n_spins, n_samples=packed.n_samples)
        moments = normal_equations(gram(packed, sample_weight=weights), self.fit_fields)
        self.screen_ = screen(moments)
        self.candidates_ = candidates(self.screen_, moments)
        samples = samples_of(packed, weights)
        fit_fields = self.fit_fields
        return _Road(
            moments, samples, lambda least: dense_scores(moments, samples, fit_fields, least)
        )

    def _evidence(
        self,
        packed: PackedSpins,
        weights: FloatArray | None,
        found: "_Found",
        couplings: FloatArray,
        errors: FloatArray,
    ) -> Evidence:
        fitted = found.selection.fitted
        by_bethe, square = tree_couplings(found.moments, fitted)
        return Evidence(
            packed=packed,
            weights=weights,
            moments=found.moments,
            fitted=fitted,
            scores=found.tester.scores,
            couplings=couplings,
            errors=errors,
            tree_couplings=np.where(square < 0, 0.0, by_bethe),
            z_scores=self.edges_["z"],
            critical_z=found.median_critical_z(self.level, self.control),
            candidates=self.candidates_,
            survivors=self.elimination_.survivors,
        )

    def stability(
        self,
        X: Any,
        *,
        n_resamples: int = 50,
        sample_weight: Any = None,
        random_state: Seed = None,
        progress: bool = False,
    ) -> Stability:
        """How often each edge is found in random halves of the rows, and 95 percent intervals of
        couplings from their spread.

        Nothing of it is kept: the estimator stays as it is, fitted or not. Couplings are those of
        the pseudolikelihood, whatever `refit` is. Halves in which a column has no value left, or
        all weight is lost, find nothing.

        Parameters
        ----------
        X
            Samples, as for `fit`.
        n_resamples
            How many halves.
        sample_weight
            One weight for each row.
        random_state
            Seed, or a numpy Generator.
        progress
            Whether to show a progress bar.
        """
        self._check_settings()
        require_number("n_resamples", n_resamples, at_least=2, whole=True)
        packed, weights = self._read_only(X, sample_weight)
        require_network(packed.n_samples, packed.n_spins)
        weights = counts(weights)
        # what a worker is sent: nothing fitted
        plain = clone(self).set_params(n_jobs=1, checkpoint=None, progress=False)

        def find(some: PackedSpins, some_weights: FloatArray | None) -> FittedGraph:
            found: _Found = clone(plain)._find(some, some_weights, warned=False)
            return found.selection.fitted

        return stability_of(
            packed, weights, find, n_resamples, generator(random_state), self.n_jobs, progress
        )

    def explain(self, first: str, second: str) -> str:
        """The way of one pair through the steps, for people to read.

        Parameters
        ----------
        first
            Name of a spin.
        second
            Name of another.
        """
        check_is_fitted(self)
        names = self.model_.names
        for name in (first, second):
            if name not in names:
                raise SettingError(
                    setting="name of a spin", value=name, expected="one of " + ", ".join(names[:20])
                )
        if first == second:
            raise SettingError(
                setting="pair", value=(first, second), expected="two different spins"
            )
        i, j = sorted((names.index(first), names.index(second)))
        lines = [f"screen     {self._screened(i, j)}", *self._candidacy(i, j)]
        return "\n".join([*lines, *self._verdict(names[i], names[j])])

    def _candidacy(self, i: int, j: int) -> list[str]:
        if not (self.candidates_ == (i, j)).all(axis=1).any():
            return ["candidate  no"]
        both = f"{self._eliminated(i, j)}, {self._eliminated(j, i)}"
        return ["candidate  yes", f"eliminate  {both}"]

    def _verdict(self, source: str, target: str) -> list[str]:
        """What the tests say of a pair."""
        tables = [(self.edges_, "an edge"), (self.rejected_, "not an edge")]
        for (table, verdict), weights in zip(tables, self._weights, strict=True):
            is_pair = (table["source"] == source) & (table["target"] == target)
            for k in np.flatnonzero(is_pair):
                row = table[k]
                error = "" if np.isnan(row["std_error"]) else f" +- {row['std_error']:.3f}"
                if error and table is self.edges_:
                    low, high = self.intervals_[k]
                    error += f"; 95 percent interval {low:+.3f} to {high:+.3f}"
                numbers = f"p = {row['p_value']:.2g}, q = {row['q_value']:.2g}"
                weight = f"a weight of {weights[k]:.2g}; 1 is usual"
                return [
                    f"refit      coupling {row['coupling']:+.3f}{error}",
                    f"test       z = {row['z']:+.2f}, {numbers}",
                    f"degrees    other neighbours of both give it {weight}",
                    f"verdict    {verdict}, by {self.control} at level {self.level:g}",
                ]
        nothing = "nothing in the screen nor in the network found hints at one"
        return [f"verdict    not an edge: {nothing}"]

    def _screened(self, i: int, j: int) -> str:
        scores, least = self.screen_.scores, self.screen_.least
        score, at = float(scores[i, j]), f"standard errors at ridge {self.screen_.ridge:g}"
        if abs(score) < least:  # others as small were not all looked at
            return f"less than {least:.1f} {at}"
        names = self.model_.names
        ranks = [int((np.abs(scores[[a]]) > abs(score)).sum()) + 1 for a in (i, j)]
        of_both = f"number {ranks[0]} of '{names[i]}', number {ranks[1]} of '{names[j]}'"
        return f"{score:+.1f} {at}: {of_both}"

    def _eliminated(self, spin: int, candidate: int) -> str:
        directed = self.elimination_.directed
        own = directed[:, 0] == spin
        order = int(self.elimination_.order[own & (directed[:, 1] == candidate)][0])
        done = f"dropped it, number {order} of" if order else "kept it of"
        return f"'{self.model_.names[spin]}' {done} {own.sum()}"

    def _fields(self, couplings: Any, means: FloatArray) -> FloatArray:
        if self.refit == "linear" and self.fit_fields:
            return super()._fields(couplings, means)
        return np.asarray(self.intercepts_)

    def _tabulate(self, found: "_Found", couplings: FloatArray, errors: FloatArray) -> None:
        """Tables of edges and of what was rejected, and intervals."""
        tests, fitted = found.selection.tests, found.selection.fitted
        names = found.moments.names
        errors = errors if self.refit == "pseudolikelihood" else np.full(len(errors), np.nan)
        edges = surest_first(tests, inside=True)
        others = surest_first(tests, inside=False)
        place = np.searchsorted(fitted.graph.keys, keys_of(tests.pairs[edges], fitted.n_spins))
        self.edges_ = tested_edges(names, tests, edges, couplings[place], errors[place])
        margins = found.margins(self.level, self.control)[place]
        self.intervals_ = intervals_of_found(couplings[place], errors[place], margins)
        scale = np.sqrt(fitted.information)[tests.pairs[others]]
        to_first_order = 2 / scale.sum(axis=1)
        z_scores = tests.z_scores[others]
        self.rejected_ = tested_edges(
            names, tests, others, z_scores * to_first_order, to_first_order
        )
        self._weights = [tests.weights[edges], tests.weights[others]]


@dataclass(frozen=True, slots=True, eq=False)
class _Road:
    """What the steps after the screen work with: matrices, or bits."""

    moments: SecondMoments
    samples: Samples
    scores: Callable[[float], ScoreCache]  # by the least z-score that is looked at


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The network found, and what it was found with."""

    moments: SecondMoments
    tester: EdgeTester
    selection: Selection

    def _critical_z(self, level: float, control: str, weights: FloatArray) -> FloatArray:
        n_spins, n_edges = int(self.moments.changes.sum()), len(self.weights)
        return critical_z(n_spins, n_edges, level, control, weights)

    @property
    def weights(self) -> FloatArray:
        """(n_edges,): by the degrees of their spins."""
        tests = self.selection.tests
        return tests.weights[tests.inside]

    def median_critical_z(self, level: float, control: str) -> float:
        """Of an edge of the median weight."""
        median_weight = np.median(self.weights) if len(self.weights) else 1.0
        return float(self._critical_z(level, control, np.array(median_weight)))

    def margins(self, level: float, control: str) -> FloatArray:
        """(n_edges,): by how much less their z-scores could be."""
        tests, fitted = self.selection.tests, self.selection.fitted
        critical = self._critical_z(level, control, self.weights)
        z_scores = tests.z_scores[tests.inside]
        return self.tester.margins(fitted, fitted.graph.pairs, z_scores, critical)


def counts(weights: FloatArray | None) -> FloatArray | None:
    """Weights as numbers of samples: whole numbers are; others are scaled to a total of (sum w)^2 /
    sum w^2.
    """
    if weights is None or (weights == np.round(weights)).all():
        return weights
    return np.asarray(weights * weights.sum() / (weights**2).sum())
