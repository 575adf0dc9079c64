"""AutoIsing: structure without knobs. Screen, eliminate, refit, test: docs/design/auto.md."""

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isingkit._kernels.threads import blas_threads_for
from isingkit.arrays import FloatArray
from isingkit.covariates import CovariateCoding, CovariateEffects
from isingkit.estimators.base import IsingEstimator, warns_itself
from isingkit.estimators.bits import repeated_if_few
from isingkit.estimators.closed_forms import bethe_form, linear_form, tree_couplings
from isingkit.estimators.covariate_table import covariate_table
from isingkit.estimators.diagnostics import Evidence, diagnose
from isingkit.estimators.edge_tests import SharedCauses
from isingkit.estimators.explanation import way_of_pair
from isingkit.estimators.fitted_graph import FittedGraph, Samples
from isingkit.estimators.graph import keys_of
from isingkit.estimators.grouped_rows import FEWEST_GROUPS, require_groups
from isingkit.estimators.hidden_causes import errors_beside_scores, hidden_report
from isingkit.estimators.inclusion import inclusion_of
from isingkit.estimators.incomplete_rows import incomplete_rows
from isingkit.estimators.intervals import intervals_of_found
from isingkit.estimators.missed_edges import missed_edges, without_missed
from isingkit.estimators.moments import SecondMoments
from isingkit.estimators.network_estimates import NetworkEstimates
from isingkit.estimators.network_search import Found, Problem, find_network
from isingkit.estimators.nodewise import distinct_rows
from isingkit.estimators.normal import constant_fields
from isingkit.estimators.predictive import SETTINGS as PREDICTION
from isingkit.estimators.predictive import Learnt, best_shrinkage
from isingkit.estimators.questions import Questions
from isingkit.estimators.row_design import each_sample
from isingkit.estimators.row_search import (
    MOST_SAMPLES,
    RowSearch,
    Searched,
    SearchedRows,
    needs_no_search,
)
from isingkit.estimators.screened_rows import SearchSettings
from isingkit.estimators.sized_edges import SizedEdges, sized_edges
from isingkit.estimators.stability import FoundEdges, Stability, stability_of
from isingkit.estimators.tested_edges import strongest_first, surest_first, tested_edges
from isingkit.exceptions import (
    SettingError,
    require_choice,
    require_instance,
    require_number,
)
from isingkit.formats import FilePath
from isingkit.missing import EVERY_POLICY, MissingPolicy
from isingkit.model import IsingModel, log_pseudolikelihood
from isingkit.packing import PackedSpins
from isingkit.spins import Binarize, RowWeights, warn_of_constants
from isingkit.worlds.graphs import Seed, generator

_ROWS = ("auto", "independent", "ordered")


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
    that choosing among them costs nothing more; those count for more that the rest of the network
    makes likely, such as two spins with one neighbour fewer than all others have, or with common
    neighbours where neighbours of a spin are mostly neighbours of each other.

    `counts` say how many samples rows stand for. `sample_weight` says how much rows matter: only
    ratios count, and rows stand for (sum w)^2 / sum w^2 samples.

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
        are. Only the first has standard errors, and knows of hidden causes.
    fit_fields
        Whether to fit fields; without, spins are taken to be symmetric.
    binarize
        Threshold that turns real-valued columns into spins, or thresholds by names of columns.
    missing
        "error"; "drop"; "pairwise": each spin is looked at in the rows where it and its
        neighbours are present; or "impute": missing values are drawn from the network found, given
        what is there, several times, and what that leaves open is part of all errors.
    merge_alike
        Whether columns that are equal, or opposite, in all rows become one spin, with the name of
        the first of them: True, False, or a number, the correlation from which on they do. "auto"
        is True beyond 1000 columns.
    rows
        How rows hang together: "independent"; "ordered", a series whose neighbouring rows may be
        alike; or "auto", which looks.
    hidden
        How many causes that are no columns act on many spins (a state, a trend, groups of rows
        nobody knows of); or "auto", which looks. Edges are then those that such causes do not
        explain. "auto" does not look beyond 5000 columns, nor with `missing="impute"`.
    at_least
        Edges are pairs whose coupling is shown to exceed this in absolute value: where rows are
        very many, tiny couplings are significant too. Smaller ones stay part of the network that
        couplings are estimated in, and are listed in `rejected_`.
    predictive
        Whether to look for the model that predicts rows best, too: `predictive_model_`. Edges are
        the same; it takes ten to twenty times as long. For complete tables without covariates.
    inclusion
        Whether to say of each pair how probable an edge is, too: `inclusion_`. It takes up to twice
        as long.
    random_state
        Seed, or a numpy Generator, of what is imputed, and of rows that prediction leaves out.
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
        Table, strongest first: source, target, coupling, low, high (its interval), std_error, z,
        p_value, q_value. p-values are those of single tests; q-values count all pairs, by their
        weights. A structured array that prints well, with `to_pandas()` and `to_polars()`.
    intervals_
        (n_edges, 2) array: between what values each coupling of `edges_` is, with 95 percent
        confidence, given that the edge was found. An edge that hardly passed may have been lucky:
        its interval reaches further to 0 than away from it. Where neighbours were probably missed,
        what they may have added to the coupling is taken off. nan where there is no `std_error`.
    rejected_
        Like `edges_`, without intervals and surest first, the candidates that are no edges, and
        other pairs that came near it, with the coupling they would have had, to first order.
    diagnostics_
        What was looked at to tell whether the result can be trusted, each with `check`, `value`,
        `limit`, `serious`, `words` and `advice`, the most serious first; prints as a table, and has
        `to_pandas()`. Serious ones that ask for something also come as warnings, three at most.
    screen_
        What the first step found: scores, ridge, error.
    candidates_
        (n, 2) array: pairs that the screen let through.
    elimination_
        What elimination left (`survivors`), and in which order each spin dropped its candidates.
    hidden_
        Of hidden causes, where there are any, else None: `scores` of rows, `loadings` of spins with
        `std_errors`, and `variance_shares`. They are no part of `model_`, but of `score`.
    covariate_effects_
        Where covariates were given, structured array, surest first: variable, covariate, effect,
        low, high, std_error, z, p_value, q_value. By maximum likelihood given neighbours, of one
        standard deviation of a number, or of a category.
    n_rounds_
        Rounds of refit and test.
    n_groups_
        Groups of rows that were declared; 0 without.
    estimates_
        (n_spins, n_spins) array, or CSR of large networks; row i is the directed refit of J_i.
    intercepts_
        (n_spins,) array of fields; those of the pseudolikelihood are refitted to the couplings of
        `model_`.
    model_
        The IsingModel of the edges.
    alike_
        Table of columns that became part of another's spin: column, spin, correlation. Empty where
        none did; else `model_` and all that is said of spins has one for all of them.
    predictive_model_
        With `predictive`: the IsingModel that predicted best, of rows left out, each column from
        the others. Mostly one of all pairs, weak ones included, shrunk; `model_` itself where that
        does better. `score` is then its score.
    inclusion_
        With `inclusion`: table of all pairs, the most probable edge first: source, target,
        probability (of an edge, given the data), log10_bayes_factor (by how much the pair's own
        data have raised its odds) and prior (its probability before, by its place in the network).
        The prior is learnt from all pairs. Beyond 724 columns, pairs that show anything.
    n_samples_
        Samples used: rows, their counts, or, where they have weights, (sum w)^2 / sum w^2.
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

    _policies: ClassVar[Sequence[MissingPolicy]] = EVERY_POLICY
    _takes_covariates: ClassVar[bool] = True

    def __init__(
        self,
        *,
        level: float = 0.05,
        control: str = "fdr",
        refit: str = "pseudolikelihood",
        fit_fields: bool = True,
        binarize: Binarize = None,
        missing: str = "error",
        merge_alike: bool | float | str = "auto",
        rows: str = "auto",
        hidden: int | str = "auto",
        at_least: float = 0.0,
        predictive: bool = False,
        inclusion: bool = False,
        random_state: Seed = 0,
        checkpoint: FilePath | None = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        super().__init__(
            threshold=0.0,
            rule="average",
            fit_fields=fit_fields,
            binarize=binarize,
            missing=missing,
            merge_alike=merge_alike,
        )
        self.level = level
        self.control = control
        self.refit = refit
        self.rows = rows
        self.hidden = hidden
        self.at_least = at_least
        self.predictive = predictive
        self.inclusion = inclusion
        self.random_state = random_state
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

        require_choice("rows", self.rows, _ROWS)
        require_number("at_least", self.at_least, at_least=0)
        require_instance("predictive", self.predictive, bool, "True or False")
        require_instance("inclusion", self.inclusion, bool, "True or False")
        if self.hidden != "auto":
            require_number("hidden", self.hidden, at_least=0, whole=True)
        if self.missing == MissingPolicy.IMPUTE and self.hidden not in (0, "auto"):
            raise SettingError(
                setting="hidden",
                value=self.hidden,
                expected="0 or 'auto' with missing='impute', which draws cells from a network "
                "without hidden causes; 'pairwise' and 'drop' know of them",
            )

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        counts: Any = None,
        groups: Any = None,
        covariates: Any = None,
    ) -> Self:
        """Learn from a table of two-valued columns or from PackedSpins.

        Parameters
        ----------
        X
            One row a sample, one column a spin: PackedSpins, numpy, scipy.sparse, pandas, polars or
            pyarrow.
        y
            Ignored; present because scikit-learn's tools pass it.
        sample_weight
            How much each row matters, as in a survey: one number >= 0 for each, of which only
            ratios count. Rows stand for (sum w)^2 / sum w^2 samples.
        counts
            How many equal samples each row stands for, as in a histogram: one whole number >= 0
            for each. The same as repeating rows.
        groups
            Which rows belong together (a person, a recording, a site): one label for each, a number
            or a text.
        covariates
            What else is known of each row (age, habitat, day), a table of numbers or categories:
            they shift the fields of spins, and are no part of the network.
        """
        with self._as_before_if_stopped():
            given = (sample_weight, counts, groups, covariates)
            read, packed, weights = self._to_learn_from(X, *given)
            self.__dict__.pop("predictive_model_", None)
            if self.predictive:
                self._require_predictable(packed, weights)
            with blas_threads_for(packed.n_spins):
                searches = self._searches(packed, weights)
                for problem in searches:
                    searches.answer = find_network(problem)
                self._keep(searches.result, packed, weights, warned=warns_itself(X))
            if self.predictive:
                self.predictive_model_ = self._predictive_model(*each_sample(packed, weights))
            self._name_merged(read)
        return self

    def _name_merged(self, as_read: PackedSpins) -> None:
        is_network = getattr(self, "predictive_model_", None) is self.model_
        super()._name_merged(as_read)
        if self._alike is None or not self.predictive:
            return
        named = replace(self.predictive_model_, alike=self._alike)
        self.predictive_model_ = self.model_ if is_network else named

    def _require_predictable(self, packed: PackedSpins, weights: RowWeights | None) -> None:
        """Refuse what no model of all pairs is made of."""
        problem = None
        groups = None if weights is None else weights.groups
        n_samples = packed.n_samples if weights is None else weights.counts.sum()
        if packed.present is not None:
            problem = "where cells are missing; missing='drop' predicts from complete rows"
        elif self._coding is not None:
            problem = "with covariates"
        elif packed.n_spins > PREDICTION.most_spins:
            problem = f"beyond {PREDICTION.most_spins} columns"
        elif n_samples > MOST_SAMPLES:
            problem = f"beyond {MOST_SAMPLES} samples, which show weak couplings by themselves"
        elif groups is not None and len(np.unique(groups)) <= FEWEST_GROUPS:
            problem = f"with {FEWEST_GROUPS} groups or fewer, of which some must be left out"
        if problem is not None:
            raise SettingError(setting="predictive", value=True, expected=f"False {problem}")

    def _predictive_model(self, packed: PackedSpins, weights: RowWeights | None) -> IsingModel:
        """The network, or all pairs under penalties: what predicts rows left out best."""
        plain = clone(self).set_params(
            predictive=False, inclusion=False, checkpoint=None, progress=False
        )

        def learn(some: PackedSpins, some_weights: RowWeights | None) -> Learnt:
            part = clone(plain)._learn(some, some_weights, warned=True)
            return Learnt(part.model_, part.mean_log_pseudolikelihood)

        rng = None if self.rows == "ordered" else generator(self.random_state)
        with blas_threads_for(packed.n_spins), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parts of rows may lack what all have
            shrinkage = best_shrinkage(
                packed, weights, learn, fit_fields=self.fit_fields, rng=rng, progress=self.progress
            )
            if shrinkage is None:
                return self.model_
            return shrinkage.model(distinct_rows(packed, weights), self.model_, self.fit_fields)

    def _learn(self, packed: PackedSpins, weights: RowWeights | None, warned: bool) -> Self:
        """As `fit`, which has this loop itself: one layer less above all that takes time."""
        searches = self._searches(packed, weights)
        for problem in searches:
            searches.answer = find_network(problem)
        return self._keep(searches.result, packed, weights, warned)

    def _searches(
        self, packed: PackedSpins, weights: RowWeights | None
    ) -> Questions[Problem, Found | None, Searched]:
        """For the network of these rows, one after the other."""
        packed, weights = self._written_out(packed, weights)
        if weights is not None and weights.groups is not None:
            require_groups(weights.groups)
        return Questions(self._row_search(packed, weights).searches())

    def _written_out(
        self, packed: PackedSpins, weights: RowWeights | None
    ) -> tuple[PackedSpins, RowWeights | None]:
        """Counted rows as so many, where they are few or each is looked at by itself."""
        packed, weights = repeated_if_few(packed, weights)
        has_covariates = weights is not None and weights.covariates is not None
        if self.missing == MissingPolicy.IMPUTE or has_covariates:
            return each_sample(packed, weights)
        return packed, weights

    def _keep(
        self, searched: Searched, packed: PackedSpins, weights: RowWeights | None, warned: bool
    ) -> Self:
        """All attributes that say what was learnt from these rows."""
        found, estimates, rows = searched.found, searched.estimates, searched.rows
        moments = found.moments
        if not warned:
            warn_of_constants(moments.names, ~moments.changes)
        self.screen_ = found.screen
        self.candidates_ = found.candidates
        self.elimination_ = found.elimination
        self.n_rounds_ = found.selection.n_rounds
        is_grouped = weights is not None and weights.groups is not None
        self.n_groups_ = rows.design.n_groups if is_grouped else 0
        self._effect_values, errors = estimates.fitted.effects_and_errors()
        self.hidden_ = None
        if found.network.hidden is not None:
            learnt = (found.network.hidden, estimates.fitted, self._effect_values)
            self.hidden_ = hidden_report(*learnt, packed, weights)
        self._tabulate_effects(found.tester.shared, estimates.fitted.samples, errors, moments.names)
        sized = sized_edges(found, estimates, self.at_least, self.control)
        directed, intercepts = self._directed(moments, estimates.fitted, sized)
        self._tabulate(sized, estimates, directed, sized.margins())
        self.__dict__.pop("inclusion_", None)
        if self.inclusion:
            self.inclusion_ = inclusion_of(found, estimates.couplings).table(moments.names)
        self.diagnostics_ = diagnose(self._evidence(rows, sized, estimates))
        matrix = moments.as_estimates(found.fitted.graph.matrix(sized.directed(directed)))
        return self._finish(packed, moments.n_samples, matrix, intercepts, moments.means)

    def _row_search(self, packed: PackedSpins, weights: RowWeights | None) -> RowSearch:
        settings = self._search_settings()
        if self.hidden not in (0, "auto"):
            settings = replace(settings, is_futile=needs_no_search)
        imputes = self.missing == MissingPolicy.IMPUTE
        return RowSearch(packed, weights, settings, self.rows, imputes, self.random_state)

    def _search_settings(self) -> SearchSettings:
        checkpoint = None if self.checkpoint is None else Path(self.checkpoint)
        # small couplings that a network lacks bias the others: it is for the size to be strict
        control = self.control if self.at_least == 0 else "fdr"
        return SearchSettings(
            level=self.level,
            control=control,
            fit_fields=self.fit_fields,
            hidden=self.hidden,
            checkpoint=checkpoint,
            n_jobs=self.n_jobs,
            progress=self.progress,
        )

    def _directed(
        self, moments: SecondMoments, refitted: FittedGraph, sized: SizedEdges
    ) -> tuple[FloatArray, FloatArray]:
        """Directed couplings of the network, as `refit` wants them, and fields given the edges."""
        estimates = refitted.couplings
        if self.refit != "pseudolikelihood":
            form = linear_form if self.refit == "linear" else bethe_form
            estimates, intercepts = form(moments, refitted)
            others = estimates - sized.directed(estimates)
            intercepts = intercepts + refitted.graph.matrix(others) @ moments.means
        elif self.fit_fields:
            symmetric = refitted.graph.symmetric(sized.directed(estimates))
            intercepts = refitted.fields_given(symmetric, self._effect_values)
        if not self.fit_fields:
            return estimates, np.zeros(moments.n_spins)
        constant = ~moments.changes
        intercepts[constant] = constant_fields(moments.means[constant], moments.n_samples)
        return estimates, intercepts

    def _evidence(
        self,
        rows: SearchedRows,
        sized: SizedEdges,
        estimates: NetworkEstimates,
    ) -> Evidence:
        found = sized.found
        fitted = found.fitted
        by_bethe, square = tree_couplings(found.moments, fitted)
        return Evidence(
            packed=rows.packed,
            design=rows.design,
            dependence=rows.dependence,
            refit=self.refit,
            rows=self.rows,
            missing=self.missing,
            n_groups=self.n_groups_,
            incomplete=incomplete_rows(rows.packed),
            moments=found.moments,
            fitted=fitted,
            scores=found.tester.scores,
            hidden=self.hidden,
            causes=found.causes,
            sparsity=found.sparsity,
            couplings=estimates.couplings,
            errors=estimates.errors,
            sizes=np.abs(estimates.couplings[sized.is_edge]),
            tree_couplings=np.where(square < 0, 0.0, by_bethe),
            z_scores=self.edges_["z"],
            critical_z=sized.median_critical_z(),
            at_least=self.at_least,
            candidates=self.candidates_,
            survivors=self.elimination_.survivors,
        )

    def stability(
        self,
        X: Any,
        *,
        n_resamples: int = 50,
        sample_weight: Any = None,
        counts: Any = None,
        groups: Any = None,
        covariates: Any = None,
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
            How much each row matters.
        counts
            How many equal samples each row stands for; then halves are of these.
        groups
            Which rows belong together; then halves are of groups.
        covariates
            What else is known of each row.
        random_state
            Seed, or a numpy Generator.
        progress
            Whether to show a progress bar.
        """
        self._check_settings()
        require_number("n_resamples", n_resamples, at_least=2, whole=True)
        packed, weights = self._read_only(X, sample_weight, counts, groups, covariates)
        packed, weights = self._written_out(packed, weights)
        if weights is not None and weights.groups is not None:
            require_groups(weights.groups)
        # what a worker is sent: nothing fitted, and no generator that all would draw from
        plain = clone(self).set_params(n_jobs=1, checkpoint=None, progress=False)
        if isinstance(self.random_state, np.random.Generator):
            plain.random_state = int(self.random_state.integers(1 << 31))

        def find(some: PackedSpins, some_weights: RowWeights | None) -> FoundEdges:
            searches = Questions(plain._row_search(some, some_weights).as_declared())
            for problem in searches:
                searches.answer = find_network(problem)
            found, estimates = searches.result
            sized = sized_edges(found, estimates, plain.at_least, plain.control)
            return FoundEdges(found.fitted, sized.is_edge)

        return stability_of(
            packed, weights, find, n_resamples, generator(random_state), self.n_jobs, progress
        )

    def explain(self, first: str, second: str) -> str:
        """The way of one pair through the steps, for people to read.

        Parameters
        ----------
        first
            Name of a column.
        second
            Name of another.
        """
        check_is_fitted(self)
        names = self.model_.names
        first, second = str(first), str(second)  # as tables have them, whose names may be numbers
        for name in (first, second):
            if name not in names:
                near = difflib.get_close_matches(name, names) or names[:20]
                expected = f"one of those of the fit, such as {', '.join(near)}"
                raise SettingError(setting="name of a column", value=name, expected=expected)
        if first == second:
            raise SettingError(
                setting="pair", value=(first, second), expected="two different columns"
            )
        i, j = sorted((names.index(first), names.index(second)))
        return way_of_pair(self, i, j)

    def _fields(self, couplings: Any, means: FloatArray) -> FloatArray:
        if self.refit == "linear" and self.fit_fields:
            return super()._fields(couplings, means)
        return np.asarray(self.intercepts_)

    def _tabulate_effects(
        self,
        shared: SharedCauses | None,
        samples: Samples,
        errors: FloatArray,
        names: Sequence[str],
    ) -> None:
        """The table of what covariates do."""
        if self._coding is None:
            self.__dict__.pop("covariate_effects_", None)
            return
        known = slice(len(self._coding.names))  # hidden causes come after covariates
        effects, errors = self._effect_values[:, known], errors[:, known]
        if self.hidden_ is not None and shared is not None:
            errors = errors_beside_scores(errors, effects, self.hidden_, samples, shared)
        self.covariate_effects_ = covariate_table(names, self._coding.names, effects, errors)

    def mean_log_pseudolikelihood(self, packed: PackedSpins, weights: RowWeights | None) -> float:
        model = getattr(self, "predictive_model_", self.model_)
        if model is self.model_:
            return super().mean_log_pseudolikelihood(packed, weights)
        totals = None if weights is None else weights.totals
        with blas_threads_for(packed.n_spins):
            return log_pseudolikelihood(model, packed, totals)

    def _shifts(self, packed: PackedSpins, weights: RowWeights | None) -> FloatArray | None:
        """What covariates and hidden causes add to fields."""
        of_covariates = super()._shifts(packed, weights)
        if self.hidden_ is None:
            return of_covariates
        covariates = None if weights is None else weights.covariates
        of_hidden = self.hidden_.shifts(np.asarray(packed, dtype=np.float64), covariates)
        return of_hidden if of_covariates is None else of_hidden + of_covariates

    def _effects(self, coding: CovariateCoding) -> CovariateEffects:
        return CovariateEffects(self._effect_values[:, : len(coding.names)], coding)

    def _tabulate(
        self,
        sized: SizedEdges,
        estimates: NetworkEstimates,
        directed: FloatArray,
        margins: FloatArray,
    ) -> None:
        """Tables of edges and of what was rejected, and intervals.

        margins: (n_pairs,), of the network: by how much less z-scores of edges could be
        """
        tests, fitted = sized.tests, sized.found.fitted
        names = sized.found.moments.names
        couplings = fitted.graph.mean_of_directions(directed)
        errors, half_widths = estimates.errors, estimates.half_widths
        if self.refit != "pseudolikelihood":
            errors = half_widths = np.full(len(errors), np.nan)
        others = surest_first(tests)
        edges = np.flatnonzero(tests.inside)
        place = np.searchsorted(fitted.graph.keys, keys_of(tests.pairs[edges], fitted.n_spins))
        order = strongest_first(tests.pairs[edges], couplings[place])
        edges, place = edges[order], place[order]
        missed = missed_edges(sized.found.tester, fitted, estimates.couplings)
        centres, half_widths = without_missed(estimates.fitted, couplings, half_widths, missed)
        found = (centres[place], half_widths[place], margins[place])
        self.intervals_ = intervals_of_found(*found)
        self.edges_ = tested_edges(
            names, tests, edges, couplings[place], errors[place], self.intervals_
        )
        self.rejected_ = tested_edges(
            names, tests, others, sized.couplings[others], sized.errors[others], None
        )
        self._weights = [tests.weights[edges], tests.weights[others]]
