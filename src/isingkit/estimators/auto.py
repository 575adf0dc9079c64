"""AutoIsing: structure without knobs. Screen, eliminate, refit, judge."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isingkit._kernels.threads import one_blas_thread
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.diagnostics import Evidence, diagnose
from isingkit.estimators.judge import Judged, deviate_of_an_edge, deviate_to_look_at, settle
from isingkit.estimators.mean_field import bethe_couplings, mean_field_fields
from isingkit.estimators.network import Network
from isingkit.estimators.normal import Matrix, NormalEquations, constant_fields, normal_equations, warn_of_constants
from isingkit.estimators.screen import Pairs, candidates, eliminate, screen
from isingkit.estimators.stability import Stability, stability_of
from isingkit.estimators.two_stage import restricted_estimates
from isingkit.exceptions import NoMeanFieldWarning, SettingError, require_number, warn
from isingkit.gram import gram
from isingkit.memory import require_memory
from isingkit.packing import PackedSpins
from isingkit.spins import require_network
from isingkit.worlds.graphs import Seed, generator

_PAIRS, _VALUES = 9, 4  # numbers held for each pair of spins and each value of the table, as measured


class AutoIsing(IsingEstimator):
    """The network, without knobs: every step tunes itself, and every edge comes with how sure it is.

    *Screen*: ridge regressions of all spins at once, the ridge chosen by leave-one-out error, estimates in units of their noise.
    *Eliminate*: of each spin's best candidates the weakest are dropped, by an extended Bayesian criterion.
    *Refit*: logistic regression of each spin on what is left (the pseudolikelihood: consistent, loops or not).
    *Judge*: each edge is tested in the network without it, each pair outside in the network as it is, both directions together,
    with tails that hold where spins hardly ever change; what fails goes, what passes comes in, until nothing moves. Levels count
    all pairs of spins as tested, so that choosing among them costs nothing more.

    Whole numbers as `sample_weight` are counts of samples; others say how much rows matter, and stand for (sum w)^2 / sum w^2 rows.

    Parameters
    ----------
    level
        Share of false edges among those found ("fdr"), or probability of any false edge ("fwer"), that you accept.
    control
        "fdr" or "fwer".
    refit
        How couplings of the network found are estimated: "pseudolikelihood"; "bethe", in closed form from regressions on
        neighbours, exact on trees; or "linear", those regressions as they are. Only the first has standard errors.
    fit_fields
        Whether to fit fields; without, spins are taken to be symmetric.
    binarize
        Threshold that turns real-valued columns into spins.
    missing
        "error", "drop" or "pairwise": each spin is looked at in the rows where it and its neighbours are present.
    n_jobs
        Threads to use; None or -1 is all.

    Attributes
    ----------
    edges_
        Structured array, surest first: source, target, coupling, std_error, z, p_value, q_value.
    rejected_
        The same of the candidates that are no edges, and of other pairs that came near it, with the coupling they would have had,
        to first order.
    diagnostics_
        What was looked at to tell whether the result can be trusted, each with `check`, `value`, `limit`, `serious` and `words`.
        Serious ones also come as warnings.
    screen_
        What the first step found: scores, ridge, error.
    candidates_
        (n, 2) array: pairs that the screen let through.
    elimination_
        What elimination left (`survivors`), and in which order each spin dropped its candidates.
    n_rounds_
        Rounds of refit and judge.
    estimates_
        (n_spins, n_spins) array; row i is the directed refit of J_i.
    intercepts_
        (n_spins,) array of fields; those of the pseudolikelihood are refitted to the couplings of `model_`.
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
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(threshold=0.0, rule="average", fit_fields=fit_fields, binarize=binarize, missing=missing)
        self.level = level
        self.control = control
        self.refit = refit
        self.n_jobs = n_jobs

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number("level", self.level, above=0)
        if self.level >= 1:
            raise SettingError(setting="level", value=self.level, expected="a number below 1")
        if self.control not in ("fdr", "fwer"):
            raise SettingError(setting="control", value=self.control, expected="'fdr' or 'fwer'")
        if self.refit not in ("pseudolikelihood", "bethe", "linear"):
            raise SettingError(setting="refit", value=self.refit, expected="'pseudolikelihood', 'bethe' or 'linear'")

    def _learn(self, packed: PackedSpins, weights: Matrix | None, warned: bool) -> Self:
        weights = counts(weights)
        n_bytes = 8 * packed.n_spins * (_PAIRS * packed.n_spins + _VALUES * packed.n_samples)
        require_memory(n_bytes, n_spins=packed.n_spins, n_samples=packed.n_samples)
        normal = normal_equations(gram(packed, sample_weight=weights), self.fit_fields)
        if not warned:
            warn_of_constants(normal)
        network, judged = self._find(packed, weights, normal)
        self.n_rounds_ = judged.n_rounds
        couplings, errors = network.undirected()
        estimates = network.directed()
        intercepts = network.fields_given((estimates + estimates.T) / 2) if self.fit_fields else np.zeros(normal.n_spins)
        by_bethe, square = tree_couplings(normal, network.pairs)
        by_bethe = np.where(square < 0, 0.0, by_bethe)
        if self.refit != "pseudolikelihood":
            estimates, intercepts = closed_form(network, self.refit)
        self._report(network, judged, estimates, errors if self.refit == "pseudolikelihood" else np.full(len(errors), np.nan))
        needed = deviate_of_an_edge(normal.n_spins, len(network.pairs), self.level, self.control)
        seen = Evidence(network, couplings, errors, by_bethe, self.edges_["z"], needed, self.elimination_.survivors)
        self.diagnostics_ = diagnose(seen)
        if self.fit_fields:
            intercepts[~normal.changes] = constant_fields(normal.means[~normal.changes], normal.n_samples)
        else:
            intercepts[:] = 0.0
        return self._finish(packed, normal.n_samples, estimates, intercepts, normal.means)

    def _find(self, packed: PackedSpins, weights: Matrix | None, normal: NormalEquations) -> tuple[Network, Judged]:
        self.screen_ = screen(normal)
        self.candidates_ = candidates(self.screen_, normal)
        with one_blas_thread():  # once for all steps, which spread over threads themselves
            self.elimination_ = eliminate(normal, self.candidates_, self.n_jobs)
            n_edges = len(self.elimination_.survivors)
            look = deviate_to_look_at(normal.n_spins, n_edges, self.level, self.control)
            network = Network(packed, weights, normal, self.fit_fields, look, self.n_jobs)
            network.connect(self.elimination_.survivors)
            return network, settle(network, self.candidates_, self.level, self.control)

    def stability(
        self, X: Any, *, n_resamples: int = 50, sample_weight: Any = None, random_state: Seed = None, progress: bool = False
    ) -> Stability:
        """How often each edge is found in random halves of the rows, and 95 percent intervals of couplings from their spread.

        Nothing of it is kept: the estimator stays as it is, fitted or not. Couplings are those of the pseudolikelihood, whatever
        `refit` is. Halves in which a column has no value left, or all weight is lost, find nothing.

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
        plain, fit_fields = clone(self).set_params(n_jobs=1), self.fit_fields  # what a worker is sent: nothing fitted

        def find(some: PackedSpins, shares: Matrix | None) -> Network:
            normal = normal_equations(gram(some, sample_weight=shares), fit_fields)
            return clone(plain)._find(some, shares, normal)[0]  # type: ignore[no-any-return]

        return stability_of(packed, weights, find, n_resamples, generator(random_state), self.n_jobs, progress)

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
                raise SettingError(setting="name of a spin", value=name, expected="one of " + ", ".join(names[:20]))
        if first == second:
            raise SettingError(setting="pair", value=(first, second), expected="two different spins")
        i, j = sorted((names.index(first), names.index(second)))
        is_candidate = bool((self.candidates_ == (i, j)).all(axis=1).any())
        score = float(self.screen_.scores[i, j])
        ranks = [int((np.abs(self.screen_.scores[a]) > abs(score)).sum()) + 1 for a in (i, j)]
        lines = [
            f"screen     {score:+.1f} standard errors at ridge {self.screen_.ridge:g}: "
            f"number {ranks[0]} of '{names[i]}', number {ranks[1]} of '{names[j]}'",
            f"candidate  {'yes' if is_candidate else 'no'}",
        ]
        if is_candidate:
            lines.append("eliminate  " + ", ".join(self._eliminated(a, b) for a, b in ((i, j), (j, i))))
        n_lines = len(lines)
        tables = [(self.edges_, "an edge"), (self.rejected_, "not an edge")]
        for table, verdict in tables:
            here = table[(table["source"] == names[i]) & (table["target"] == names[j])]
            for row in here:
                error = "" if np.isnan(row["std_error"]) else f" +- {row['std_error']:.3f}"
                lines.append(f"refit      coupling {row['coupling']:+.3f}{error}")
                lines.append(f"judge      z = {row['z']:+.2f}, p = {row['p_value']:.2g}, q = {row['q_value']:.2g}")
                lines.append(f"verdict    {verdict}, by {self.control} at level {self.level:g}")
        if len(lines) == n_lines:
            lines.append("verdict    not an edge: nothing in the screen nor in the network found hints at one")
        return "\n".join(lines)

    def _eliminated(self, spin: int, candidate: int) -> str:
        own = self.elimination_.directed[:, 0] == spin
        order = int(self.elimination_.order[own & (self.elimination_.directed[:, 1] == candidate)][0])
        return f"'{self.model_.names[spin]}' " + (
            f"dropped it, number {order} of {own.sum()}" if order else f"kept it of {own.sum()}"
        )

    def _fields(self, couplings: Any, means: Matrix) -> Matrix:
        return super()._fields(couplings, means) if self.refit == "linear" and self.fit_fields else np.asarray(self.intercepts_)

    def _report(self, network: Network, judged: Judged, estimates: Matrix, errors: Matrix) -> None:
        labels = np.array(network.normal.names, dtype=np.str_)
        columns: list[tuple[str, Any]] = [(name, labels.dtype) for name in ("source", "target")]
        columns += [(name, np.float64) for name in ("coupling", "std_error", "z", "p_value", "q_value")]
        for inside in (True, False):
            chosen = np.flatnonzero(judged.inside == inside)
            chosen = chosen[np.argsort(-np.abs(judged.deviates[chosen]), kind="stable")]
            table = np.empty(len(chosen), dtype=columns)
            pairs = judged.pairs[chosen]
            table["source"], table["target"] = labels[pairs[:, 0]], labels[pairs[:, 1]]
            for name in ("z", "p_value", "q_value"):
                table[name] = getattr(judged, {"z": "deviates", "p_value": "chances", "q_value": "shares"}[name])[chosen]
            if inside:
                table["coupling"] = (estimates[tuple(pairs.T)] + estimates[tuple(pairs.T[::-1])]) / 2
                table["std_error"] = errors[np.searchsorted(network.keys(network.pairs), network.keys(pairs))]
                self.edges_ = table
            else:
                scale = np.sqrt(network.curvatures.sum(axis=1))
                table["std_error"] = 2 / (scale[pairs[:, 0]] + scale[pairs[:, 1]])
                table["coupling"] = table["z"] * table["std_error"]
                self.rejected_ = table


def counts(weights: Matrix | None) -> Matrix | None:
    """Weights as numbers of samples: whole numbers are; others are scaled to a total of (sum w)^2 / sum w^2."""
    if weights is None or (weights == np.round(weights)).all():
        return weights
    return np.asarray(weights * weights.sum() / (weights**2).sum())


def closed_form(network: Network, how: str) -> tuple[Matrix, Matrix]:
    """Estimates and fields from linear regressions of each spin on its neighbours, as they are or by Bethe's inversion."""
    normal, pairs = network.normal, network.pairs
    estimates = _on_neighbours(normal, pairs)
    if how == "linear":
        return estimates, normal.means - estimates @ normal.means
    by_bethe, square = tree_couplings(normal, pairs)
    if (square < 0).any():
        none = [(normal.names[i], normal.names[j]) for i, j in pairs[square < 0]]
        warn(NoMeanFieldWarning(method="bethe", pairs=none, instead="by pseudolikelihood"))
        by_bethe = np.where(square < 0, network.undirected()[0], by_bethe)
    couplings = np.zeros_like(estimates)
    couplings[tuple(pairs.T)] = couplings[tuple(pairs.T[::-1])] = by_bethe
    means = np.where(normal.changes, normal.means, 0.0)
    return couplings, mean_field_fields("bethe", means, normal.matrix / normal.n_samples, couplings, normal.n_samples)


def tree_couplings(normal: NormalEquations, pairs: Pairs) -> tuple[Matrix, Matrix]:
    """Couplings of the pairs by Bethe's inversion, exact where they form a tree; and a square, below 0 where there are none.

    The inverse covariances are those of neighbours only: q_ij = -x_ij / (what is left of the variance of spin i).
    """
    estimates, (first, second) = _on_neighbours(normal, pairs), pairs.T
    left = np.maximum(np.diagonal(normal.matrix) - (estimates * normal.matrix).sum(axis=1), 1e-9) / normal.n_samples
    inverse = -(estimates[first, second] / left[first] + estimates[second, first] / left[second]) / 2
    return bethe_couplings(inverse, normal.means[first], normal.means[second])


def _on_neighbours(normal: NormalEquations, pairs: Pairs) -> Matrix:
    """Least squares of each spin on its neighbours; a trifle of a ridge, for these may be the same."""
    chosen = np.zeros_like(normal.matrix)
    chosen[tuple(pairs.T)] = chosen[tuple(pairs.T[::-1])] = 1.0
    matrix = normal.matrix + np.diag(1e-6 * np.diagonal(normal.matrix))
    return restricted_estimates(replace(normal, matrix=matrix), chosen, 0.5, normal.n_spins)[0]
