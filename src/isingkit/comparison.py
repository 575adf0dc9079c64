"""Comparison: many methods on the same data, side by side."""

import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import clone
from tqdm import tqdm

from isingkit.estimators.auto import AutoIsing
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.elasso import ELassoIsing
from isingkit.estimators.executor import current_executor
from isingkit.estimators.interaction_screening import InteractionScreeningIsing
from isingkit.estimators.lasso import LassoIsing
from isingkit.estimators.linear import LinearIsing
from isingkit.estimators.maximum_likelihood import MaximumLikelihoodIsing
from isingkit.estimators.mean_field import MeanFieldIsing
from isingkit.estimators.pseudolikelihood import PseudolikelihoodIsing
from isingkit.estimators.ridge import RidgeIsing
from isingkit.estimators.two_stage import TwoStageIsing
from isingkit.exceptions import (
    IsingkitError,
    IsingkitWarning,
    ModelMismatchError,
    SettingError,
    require_number,
    warn,
)
from isingkit.metrics import score
from isingkit.model import IsingModel, log_pseudolikelihood
from isingkit.packing import PackedSpins, apply_missing_policy, pack
from isingkit.spins import Spins, as_spins, as_weights, require_network
from isingkit.worlds.graphs import Seed, generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_EXACT = 20  # spins for which an exact likelihood takes less than a second
_COLUMNS = {
    "seconds": ("seconds", ".3g"), "n_edges": ("edges", "d"), "held_out": ("held-out score", ".4f"),
    "precision": ("precision", ".3f"), "recall": ("recall", ".3f"), "rss": ("RSS", ".4g"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method did."""

    method: str
    seconds: float | None = None  # to learn from all samples
    n_edges: int | None = None
    held_out: float | None = (
        None  # mean log pseudolikelihood of samples not learnt from; larger is better
    )
    precision: float | None = None  # these three where the truth is known
    recall: float | None = None
    rss: float | None = None
    problem: str | None = None  # why there is nothing, where there is nothing


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Many methods on the same data. Prints as a table; `plot` draws it."""

    outcomes: tuple[Outcome, ...]
    agreement: NDArray[
        np.float64
    ]  # (n_methods, n_methods): edges that two methods share, of all that either has; NaN without any
    models: dict[str, IsingModel]  # learnt from all samples
    n_samples: int
    n_spins: int
    n_held_out: int

    def __str__(self) -> str:
        shown = [
            name
            for name in _COLUMNS
            if any(getattr(one, name) is not None for one in self.outcomes)
        ]
        rows = [["method", *(_COLUMNS[name][0] for name in shown)]]
        for one in self.outcomes:
            values = {name: getattr(one, name) for name in shown}
            rows.append(
                [
                    one.method,
                    *(
                        "-" if v is None else format(v, _COLUMNS[name][1])
                        for name, v in values.items()
                    ),
                ]
            )
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        lines = []
        for name, *cells in rows:
            padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *padded]))
        notes = [f"{one.method}: {one.problem}" for one in self.outcomes if one.problem]
        head = f"{self.n_samples} samples of {self.n_spins} spins; score on {self.n_held_out} that were held out, larger is better"
        return "\n".join([head, "", *lines, *([""] if notes else []), *notes])

    def best(self) -> str:
        """The method that predicts held-out samples best."""
        scored = [one for one in self.outcomes if one.held_out is not None]
        if not scored:
            raise SettingError(
                setting="methods",
                value=[one.method for one in self.outcomes],
                expected="at least one that works",
            )
        return max(scored, key=lambda one: -np.inf if one.held_out is None else one.held_out).method

    def plot(self) -> "Figure":
        """A picture: seconds, edges, held-out scores, agreement, and precision and recall where the
        truth is known.
        """
        from matplotlib.figure import Figure

        self.best()  # refuses to draw nothing
        done = [one for one in self.outcomes if one.problem is None]
        kept = [k for k, one in enumerate(self.outcomes) if one.problem is None]
        names = [one.method for one in done]
        has_truth = any(one.precision is not None for one in done)
        figure = Figure(figsize=(13, 2.5 + 0.25 * len(names)), layout="constrained")
        axes = figure.subplots(
            1, 4 + has_truth, sharey=True, width_ratios=[1, 1, 1, *([1] if has_truth else []), 1.8]
        )
        places = np.arange(len(names))
        axes[0].plot([one.seconds for one in done], places, "o")
        axes[0].set(title="seconds", xscale="log", yticks=places, yticklabels=names)
        axes[1].plot([one.n_edges for one in done], places, "o")
        axes[1].set(title="edges", xlim=(0, None))
        axes[2].plot([one.held_out for one in done], places, "o")
        axes[2].set(title="held-out score", xlabel="larger is better")
        if has_truth:
            axes[3].plot([one.precision for one in done], places, "o", label="precision")
            axes[3].plot([one.recall for one in done], places, "s", mfc="none", label="recall")
            axes[3].set(title="against the truth", xlim=(-0.05, 1.05))
            axes[3].legend(frameon=False, fontsize=8)
        picture = axes[-1].imshow(
            self.agreement[np.ix_(kept, kept)], vmin=0, vmax=1, cmap="Blues", aspect="auto"
        )
        axes[-1].set(title="edges shared by two methods, of all", xticks=places)
        axes[-1].set_xticklabels(names, rotation=90)
        figure.colorbar(picture, ax=axes[-1], fraction=0.05)
        for each in axes[:-1]:
            each.grid(axis="y", lw=0.4)
        return figure


def compare(
    X: Any,
    truth: IsingModel | None = None,
    methods: Sequence[str] | Mapping[str, Any] | None = None,
    *,
    sample_weight: Any = None,
    held_out: float = 0.2,
    binarize: float | None = None,
    missing: str = "error",
    random_state: Seed = 0,
    progress: bool = False,
) -> Comparison:
    """Comparison of methods: seconds, edges, held-out score, agreement and, with a truth,
    precision, recall and error.

    Left to themselves, methods get the knobs their theory suggests for data of this size: penalties
    that an absent coupling passes rarely, thresholds at its largest noise. Each learns from all
    samples, timed, and again from all but those held out. Within `isingkit.dask.using(client)`
    workers do this, a method to a task, and time it.

    Parameters
    ----------
    X
        One row a sample, one column a spin.
    truth
        The planted model, where there is one.
    methods
        Names among those of the default table ("boltzmann" too), or estimators by name of your
        choice.
    sample_weight
        One weight for each row.
    held_out
        Share of the samples that scores are measured on.
    binarize
        Threshold that turns real-valued columns into spins.
    missing
        "error" or "drop".
    random_state
        Seed or numpy Generator: which samples are held out.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import isingkit as ik
    >>> truth = ik.random_regular(n_spins=16, degree=3, coupling=0.4, random_state=0)
    >>> found = ik.compare(ik.sample(truth, n_samples=1000, random_state=1), truth, ["independent",
    "eLasso", "two-stage"])
    >>> found.best()
    'eLasso'
    """
    require_number("held_out", held_out, above=0)
    if held_out >= 1:
        raise SettingError(setting="held_out", value=held_out, expected="a share below 1")
    if missing not in ("error", "drop"):
        raise SettingError(setting="missing", value=missing, expected="'error' or 'drop'")
    if isinstance(X, PackedSpins | Spins):
        packed, rows = apply_missing_policy(pack(X), missing)
    else:
        spins = as_spins(X, binarize=binarize, missing=missing)
        packed, rows = pack(spins), spins.rows
    weights = None if sample_weight is None else as_weights(sample_weight, packed.n_samples, rows)
    require_network(packed.n_samples, packed.n_spins)
    if truth is not None and truth.n_spins != packed.n_spins:
        raise ModelMismatchError(
            left=truth.names, right=packed.names, what="the truth and the samples"
        )
    total = (
        packed.n_samples if weights is None else max(round(float(weights.sum())), packed.n_samples)
    )
    chosen = _chosen(methods, packed, total)
    shared = _Shared(
        packed, weights, _split(packed, weights, held_out, generator(random_state)), truth
    )
    trials = _trials(shared, list(chosen.items()), progress)
    outcomes = tuple(trial.outcome for trial in trials)
    models = {trial.outcome.method: trial.model for trial in trials if trial.model is not None}
    return Comparison(
        outcomes,
        _agreement(outcomes, models),
        models,
        total,
        packed.n_spins,
        shared.parts.n_held_out,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Samples to learn from and samples to score on."""

    learnt: PackedSpins
    learnt_weights: NDArray[np.float64] | None
    held: PackedSpins
    held_weights: NDArray[np.float64] | None
    n_held_out: int


def _split(
    packed: PackedSpins, weights: NDArray[np.float64] | None, share: float, rng: np.random.Generator
) -> _Parts:
    """Parts drawn at random: rows, or, where weights are counts of more samples than rows, single
    samples out of each row's.
    """
    if (
        weights is not None
        and weights.sum() > packed.n_samples
        and (weights == np.rint(weights)).all()
    ):
        held = rng.binomial(weights.astype(np.int64), share).astype(np.float64)
        if held.any() and (weights - held).any():
            return _Parts(packed, weights - held, packed, held, int(held.sum()))
    n_held_out = max(1, round(share * packed.n_samples))
    if packed.n_samples - n_held_out < 2:
        expected = f"a share that leaves at least 2 of {packed.n_samples} rows to learn from"
        raise SettingError(setting="held_out", value=share, expected=expected)
    order = rng.permutation(packed.n_samples)
    kept, held_rows = np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
    of_kept, of_held = (
        None if weights is None else weights[chosen] for chosen in (kept, held_rows)
    )
    return _Parts(packed[kept], of_kept, packed[held_rows], of_held, n_held_out)


@dataclass(frozen=True, slots=True, eq=False)
class _Shared:
    """What every method learns from and is scored on."""

    packed: PackedSpins
    weights: NDArray[np.float64] | None
    parts: _Parts
    truth: IsingModel | None


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """What one method did and found, and the warnings that only a worker has seen: each with its
    file and line.
    """

    outcome: Outcome
    model: IsingModel | None = None
    warnings: Sequence[tuple[Warning | str, str, int]] = ()


def _trials(shared: _Shared, methods: Sequence[tuple[str, Any]], progress: bool) -> list[_Trial]:
    """One trial for each method, here or by whoever was asked."""
    run = current_executor()
    here = ((place, _tried(shared, method)) for place, method in enumerate(methods))
    done = here if run is None else run(_tried_there, shared, methods)
    found = {}
    with tqdm(total=len(methods), desc="methods", unit="method", disable=not progress) as bar:
        for place, trial in done:
            found[place] = trial
            bar.update()
    trials = [found[place] for place in range(len(methods))]
    _warn_again(trials)
    return trials


def _tried(shared: _Shared, method: tuple[str, Any]) -> _Trial:
    (name, estimator), parts, truth = method, shared.parts, shared.truth
    try:
        part = (
            clone(estimator, safe=False)
            .fit(parts.learnt, sample_weight=parts.learnt_weights)
            .model_
        )
        held_score = log_pseudolikelihood(part, parts.held, parts.held_weights)
        start = time.perf_counter()
        model = clone(estimator, safe=False).fit(shared.packed, sample_weight=shared.weights).model_
        seconds = time.perf_counter() - start
        found = (
            {}
            if truth is None
            else {k: getattr(score(model, truth), k) for k in ("precision", "recall", "rss")}
        )
    except Exception as error:  # whatever an outside method does, the others go on
        if isinstance(estimator, IsingEstimator) and not isinstance(error, IsingkitError):
            raise
        return _Trial(Outcome(name, problem=str(error)))
    return _Trial(Outcome(name, seconds, model.n_edges, held_score, **found), model)


_ALONE = threading.Lock()


def _tried_there(shared: _Shared, method: tuple[str, Any]) -> _Trial:
    """The trial, by a worker: alone in its process, so that seconds and warnings are the method's
    own.
    """
    with _ALONE, warnings.catch_warnings(record=True) as told:
        trial = _tried(shared, method)
    return replace(trial, warnings=[(one.message, one.filename, one.lineno) for one in told])


def _warn_again(trials: Sequence[_Trial]) -> None:
    """Warnings of workers, at the lines where one machine warns."""
    seen: dict[Any, Any] = {}
    for message, file, line in (one for trial in trials for one in trial.warnings):
        if isinstance(message, IsingkitWarning):
            warn(message)
        else:
            warnings.warn_explicit(message, UserWarning, file, line, registry=seen)


def known_methods(n_spins: int, n_samples: int) -> dict[str, Any]:
    """Estimators by name, with the knobs that theory suggests for so many spins and samples.

    An absent coupling is estimated with a noise of about 1 / sqrt(M - N) by estimators without
    penalty; thresholds are where the largest of all N (N - 1) / 2 passes one time in twenty.
    Penalties are c sqrt(log(N^2 / 0.05) / M), with the c that the authors of interaction screening
    found best: 0.2 for the pseudolikelihood, 0.4 and 0.8 for screening and its logarithm.
    """
    level = float(norm.isf(0.025 / (n_spins * (n_spins - 1) / 2))) / np.sqrt(
        max(n_samples - n_spins, 1)
    )
    penalty = float(np.sqrt(np.log(n_spins**2 / 0.05) / n_samples))
    methods: dict[str, Any] = {
        "independent": MeanFieldIsing(method="independent"),
        "auto": AutoIsing(),
        "linear": LinearIsing(threshold=level),
        "ridge": RidgeIsing(),
        "two-stage": TwoStageIsing(),
        "lasso": LassoIsing(l1=penalty),
        "naive mean field": MeanFieldIsing(method="naive", threshold=level),
        "TAP": MeanFieldIsing(method="tap", threshold=level),
        "Bethe": MeanFieldIsing(method="bethe", threshold=level),
        "Sessak-Monasson": MeanFieldIsing(method="sessak-monasson", threshold=level),
        "pseudolikelihood": PseudolikelihoodIsing(l2=1e-4, threshold=level),
        "l1 pseudolikelihood": PseudolikelihoodIsing(l1=0.2 * penalty, threshold=level / 2),
        "eLasso": ELassoIsing(),
        "screening": InteractionScreeningIsing(l1=0.4 * penalty, threshold=level / 2),
        "log screening": InteractionScreeningIsing(l1=0.8 * penalty, log=True, threshold=level / 2),
        "probability flow": InteractionScreeningIsing(l2=1e-4, joint=True, threshold=level),
        "maximum likelihood": MaximumLikelihoodIsing(l2=1e-4, threshold=level),
        "boltzmann": MaximumLikelihoodIsing(
            method="boltzmann", l2=1e-4, threshold=level, random_state=0
        ),
    }
    if find_spec("abess") is not None:
        methods["abess"] = _Abess()
    return methods


def _chosen(
    methods: Sequence[str] | Mapping[str, Any] | None, packed: PackedSpins, n_samples: int
) -> dict[str, Any]:
    if isinstance(methods, Mapping):
        wrong = [name for name, estimator in methods.items() if not hasattr(estimator, "fit")]
        if wrong:
            raise SettingError(
                setting="methods", value=wrong, expected="names of methods, or estimators by name"
            )
        return dict(methods)
    known = known_methods(packed.n_spins, n_samples)
    if methods is None:
        left_out = {"boltzmann"} | (
            set() if packed.n_spins <= _MOST_EXACT else {"maximum likelihood"}
        )
        return {name: estimator for name, estimator in known.items() if name not in left_out}
    names = {name.casefold(): name for name in known}
    wrong = (
        [name for name in methods if str(name).casefold() not in names]
        if not isinstance(methods, str)
        else [methods]
    )
    if wrong:
        raise SettingError(
            setting="methods",
            value=wrong,
            expected="a list of " + ", ".join(repr(name) for name in known),
        )
    return {names[name.casefold()]: known[names[name.casefold()]] for name in methods}


def _agreement(
    outcomes: Sequence[Outcome], models: Mapping[str, IsingModel]
) -> NDArray[np.float64]:
    """Jaccard indices of the sets of edges."""
    table = np.full((len(outcomes), len(outcomes)), np.nan)
    graphs = [
        models[one.method].couplings.astype(bool) if one.method in models else None
        for one in outcomes
    ]
    for a, left in enumerate(graphs):
        for b, right in enumerate(graphs):
            if left is not None and right is not None and left.nnz + right.nnz:
                shared = left.multiply(right).nnz
                table[a, b] = shared / (left.nnz + right.nnz - shared)
    return table


class _Abess:
    """abess's IsingModel (best subsets, no fields) behind our `fit`."""

    def fit(self, X: PackedSpins, sample_weight: Any = None) -> "_Abess":
        from abess.graph import IsingModel as Abess

        theta = Abess().fit(np.asarray(X, dtype=np.float64), sample_weight=sample_weight).theta_
        self.model_ = IsingModel(theta, names=X.names)
        return self
