"""AutoIsing: structure without knobs. Screen, eliminate, refit, judge."""

import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from isingkit._kernels.estimators import regressions_on_candidates
from isingkit._kernels.threads import one_blas_thread, parallel_map
from isingkit.arrays import FloatArray
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.bits import Bits, bits_of, goes_by_bits
from isingkit.estimators.diagnostics import Evidence, diagnose
from isingkit.estimators.intervals import intervals_of_found
from isingkit.estimators.judge import DIGITS, Judged, deviate_of_an_edge, deviate_to_look_at, settle
from isingkit.estimators.mean_field import bethe_couplings, bethe_pulls
from isingkit.estimators.network import Network
from isingkit.estimators.normal import NormalEquations, constant_fields, normal_equations
from isingkit.estimators.screen import candidates, eliminate, screen, screen_by_tiles
from isingkit.estimators.stability import Stability, stability_of
from isingkit.exceptions import NoMeanFieldWarning, SettingError, require_number, warn
from isingkit.gram import gram
from isingkit.memory import require_memory
from isingkit.packing import PackedSpins
from isingkit.spins import require_network, warn_of_constants
from isingkit.worlds.graphs import Seed, generator

_A_TRIFLE = 1e-6
_PAIRS, _VALUES = (
    9,
    3,
)  # numbers held for each pair of spins and each value of the table, as measured


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
        Rounds of refit and judge.
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
        network, judged = self._find(packed, weights, warned)
        refitted = network.cleared_of_bias()
        normal, values = network.normal, refitted.couplings
        self.n_rounds_ = judged.n_rounds
        couplings, errors = refitted.undirected()
        intercepts = (
            refitted.fields_given(network.symmetric(values))
            if self.fit_fields
            else np.zeros(normal.n_spins)
        )
        by_bethe, square = tree_couplings(network)
        if self.refit != "pseudolikelihood":
            values, intercepts = closed_form(refitted, self.refit)
        estimates = network.directed(values)
        told = errors if self.refit == "pseudolikelihood" else np.full(len(errors), np.nan)
        inside = judged.weights[judged.inside]  # of network.pairs
        usual = np.median(inside) if len(inside) else 1.0
        n_changing = int(normal.changes.sum())
        needed = deviate_of_an_edge(
            n_changing, len(inside), self.level, self.control, np.append(inside, usual)
        )
        margins = network.margins(network.pairs, judged.deviates[judged.inside], needed[:-1])
        self._report(network, judged, network.undirected_of(values), told, margins)
        by_bethe = np.where(square < 0, 0.0, by_bethe)
        seen = Evidence(
            network,
            couplings,
            errors,
            by_bethe,
            self.edges_["z"],
            float(needed[-1]),
            self.candidates_,
            self.elimination_.survivors,
        )
        self.diagnostics_ = diagnose(seen)
        if self.fit_fields:
            intercepts[~normal.changes] = constant_fields(
                normal.means[~normal.changes], normal.n_samples
            )
        else:
            intercepts[:] = 0.0
        if not isinstance(normal, Bits):
            estimates = estimates.toarray()
        return self._finish(packed, normal.n_samples, estimates, intercepts, normal.means)

    def _find(
        self, packed: PackedSpins, weights: FloatArray | None, warned: bool
    ) -> tuple[Network, Judged]:
        """The network found; `warned`: constant columns were already warned of."""
        if goes_by_bits(packed, weights) and packed.n_samples < packed.n_spins:
            checkpoint = None if self.checkpoint is None else Path(self.checkpoint)
            bits = bits_of(packed, self.fit_fields)
            self.screen_, self.candidates_ = screen_by_tiles(
                bits, checkpoint, self.n_jobs, self.progress
            )
            normal: NormalEquations | Bits = bits
        else:
            n_bytes = 8 * packed.n_spins * (_PAIRS * packed.n_spins + _VALUES * packed.n_samples)
            require_memory(n_bytes, n_spins=packed.n_spins, n_samples=packed.n_samples)
            normal = normal_equations(gram(packed, sample_weight=weights), self.fit_fields)
            self.screen_ = screen(normal)
            self.candidates_ = candidates(self.screen_, normal)
        if not warned:
            warn_of_constants(normal.names, ~normal.changes)
        with one_blas_thread():  # once for all steps, which spread over threads themselves
            self.elimination_ = eliminate(normal, self.candidates_, self.n_jobs)
            n_edges = len(self.elimination_.survivors)
            look = deviate_to_look_at(int(normal.changes.sum()), n_edges, self.level, self.control)
            network = Network(
                packed, weights, normal, self.fit_fields, look, self.n_jobs, self.progress
            )
            network.connect(self.elimination_.survivors)
            return network, settle(network, self.candidates_, self.level, self.control)

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
        plain = clone(self).set_params(
            n_jobs=1, checkpoint=None, progress=False
        )  # what a worker is sent: nothing fitted

        def find(some: PackedSpins, shares: FloatArray | None) -> Network:
            return clone(plain)._find(some, shares, warned=False)[0]  # type: ignore[no-any-return]

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
        is_candidate = bool((self.candidates_ == (i, j)).all(axis=1).any())
        lines = [
            f"screen     {self._screened(i, j)}",
            f"candidate  {'yes' if is_candidate else 'no'}",
        ]
        if is_candidate:
            lines.append(
                "eliminate  " + ", ".join(self._eliminated(a, b) for a, b in ((i, j), (j, i)))
            )
        n_lines = len(lines)
        tables = [(self.edges_, "an edge"), (self.rejected_, "not an edge")]
        for (table, verdict), weights in zip(tables, self._weights, strict=True):
            for k in np.flatnonzero((table["source"] == names[i]) & (table["target"] == names[j])):
                row = table[k]
                error = "" if np.isnan(row["std_error"]) else f" +- {row['std_error']:.3f}"
                if error and table is self.edges_:
                    error += "; 95 percent interval {:+.3f} to {:+.3f}".format(*self.intervals_[k])
                lines.append(f"refit      coupling {row['coupling']:+.3f}{error}")
                lines.append(
                    f"judge      z = {row['z']:+.2f}, p = {row['p_value']:.2g}, q = {row['q_value']:.2g}"
                )
                lines.append(
                    f"degrees    other neighbours of both give it a weight of {weights[k]:.2g}; 1 is usual"
                )
                lines.append(f"verdict    {verdict}, by {self.control} at level {self.level:g}")
        if len(lines) == n_lines:
            lines.append(
                "verdict    not an edge: nothing in the screen nor in the network found hints at one"
            )
        return "\n".join(lines)

    def _screened(self, i: int, j: int) -> str:
        scores, ridge = self.screen_.scores, self.screen_.ridge
        score, least, names = float(scores[i, j]), self.screen_.least, self.model_.names
        if abs(score) < least:  # others as small were not all looked at
            return f"less than {least:.1f} standard errors at ridge {ridge:g}"
        ranks = [int((np.abs(scores[[a]]) > abs(score)).sum()) + 1 for a in (i, j)]
        return f"{score:+.1f} standard errors at ridge {ridge:g}: number {ranks[0]} of '{names[i]}', number {ranks[1]} of '{names[j]}'"

    def _eliminated(self, spin: int, candidate: int) -> str:
        own = self.elimination_.directed[:, 0] == spin
        order = int(
            self.elimination_.order[own & (self.elimination_.directed[:, 1] == candidate)][0]
        )
        return f"'{self.model_.names[spin]}' " + (
            f"dropped it, number {order} of {own.sum()}" if order else f"kept it of {own.sum()}"
        )

    def _fields(self, couplings: Any, means: FloatArray) -> FloatArray:
        return (
            super()._fields(couplings, means)
            if self.refit == "linear" and self.fit_fields
            else np.asarray(self.intercepts_)
        )

    def _report(
        self,
        network: Network,
        judged: Judged,
        couplings: FloatArray,
        errors: FloatArray,
        margins: FloatArray,
    ) -> None:
        labels = np.array(network.normal.names, dtype=np.str_)
        columns: list[tuple[str, Any]] = [(name, labels.dtype) for name in ("source", "target")]
        columns += [
            (name, np.float64) for name in ("coupling", "std_error", "z", "p_value", "q_value")
        ]
        self._weights: list[FloatArray] = []
        for inside in (True, False):
            chosen = np.flatnonzero(judged.inside == inside)
            chosen = chosen[
                np.argsort(-np.round(np.abs(judged.deviates[chosen]), DIGITS), kind="stable")
            ]
            self._weights.append(judged.weights[chosen])
            table = np.empty(len(chosen), dtype=columns)
            pairs = judged.pairs[chosen]
            table["source"], table["target"] = labels[pairs[:, 0]], labels[pairs[:, 1]]
            for name in ("z", "p_value", "q_value"):
                table[name] = getattr(
                    judged, {"z": "deviates", "p_value": "chances", "q_value": "shares"}[name]
                )[chosen]
            if inside:
                place = np.searchsorted(network.keys(network.pairs), network.keys(pairs))
                table["coupling"], table["std_error"] = couplings[place], errors[place]
                self.edges_ = table
                self.intervals_ = intervals_of_found(
                    table["coupling"], table["std_error"], margins[place]
                )
            else:
                scale = np.sqrt(network.information)
                table["std_error"] = 2 / (scale[pairs[:, 0]] + scale[pairs[:, 1]])
                table["coupling"] = table["z"] * table["std_error"]
                self.rejected_ = table


def counts(weights: FloatArray | None) -> FloatArray | None:
    """Weights as numbers of samples: whole numbers are; others are scaled to a total of (sum w)^2 /
    sum w^2.
    """
    if weights is None or (weights == np.round(weights)).all():
        return weights
    return np.asarray(weights * weights.sum() / (weights**2).sum())


def closed_form(network: Network, how: str) -> tuple[FloatArray, FloatArray]:
    """Directed couplings and fields from linear regressions of each spin on its neighbours, as they
    are or by Bethe's inversion.
    """
    normal, pairs = network.normal, network.pairs
    means = np.where(normal.changes, normal.means, 0.0)
    if how == "linear":
        estimates = _on_neighbours(network)
        return estimates, normal.means - network.directed(estimates) @ normal.means
    by_bethe, square = tree_couplings(network)
    if (square < 0).any():
        none = [(normal.names[i], normal.names[j]) for i, j in pairs[square < 0]]
        warn(NoMeanFieldWarning(method="bethe", pairs=none, instead="by pseudolikelihood"))
        by_bethe = np.where(square < 0, network.undirected()[0], by_bethe)
    both = by_bethe[
        np.searchsorted(network.keys(pairs), network.keys(np.sort(network.directed_pairs, axis=1)))
    ]
    own, other = network.directed_pairs.T
    pulls = np.bincount(own, bethe_pulls(both, means[own], means[other]), minlength=network.n_spins)
    return both, np.arctanh(np.clip(means, -1 + 1e-12, 1 - 1e-12)) - pulls


def tree_couplings(network: Network) -> tuple[FloatArray, FloatArray]:
    """Couplings of the pairs by Bethe's inversion, exact where they form a tree; and a square,
    below 0 where there are none.

    The inverse covariances are those of neighbours only: q_ij = -x_ij / (what is left of the
    variance of spin i).
    """
    normal, estimates, own = network.normal, _on_neighbours(network), network.directed_pairs[:, 0]
    explained = np.bincount(
        own, estimates * normal.covariances(network.directed_pairs), minlength=network.n_spins
    )
    left = np.maximum(normal.variances - explained, 1e-9) / normal.n_samples
    first, second = network.pairs.T
    return bethe_couplings(
        network.undirected_of(-estimates / left[own]), normal.means[first], normal.means[second]
    )


def _on_neighbours(network: Network) -> FloatArray:
    """Least squares of each spin on its neighbours, like couplings; a trifle of a ridge, for these
    may be the same.
    """
    estimates = np.zeros(len(network.indices))
    fixed = (
        network.normal.source,
        network.indptr,
        network.indices,
        network.n_spins,
        _A_TRIFLE,
        estimates,
    )
    parallel_map(
        regressions_on_candidates, network.n_spins, *fixed, chunk=64, n_jobs=network.n_jobs
    )
    return estimates
