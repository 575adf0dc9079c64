"""Comparison: many methods on the same data, side by side."""

import itertools
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_array
from sklearn.base import clone
from tqdm import tqdm

from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.executor import current_executor
from isingkit.exceptions import (
    IsingkitError,
    IsingkitWarning,
    ModelMismatchError,
    SettingError,
    require_instance,
    require_number,
    warn,
)
from isingkit.methods import METHODS, command_name
from isingkit.methods import known_methods as known_methods
from isingkit.metrics import score
from isingkit.missing import COMPLETE_ROWS
from isingkit.model import IsingModel, log_pseudolikelihood
from isingkit.notebook import Summary
from isingkit.packing import PackedSpins, apply_missing_policy, pack
from isingkit.result_table import Record
from isingkit.spins import (
    Binarize,
    RowWeights,
    Spins,
    as_counts,
    as_spins,
    as_weights,
    missing_policy,
    require_network,
    row_weights,
)
from isingkit.worlds.graphs import Seed, generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table that a comparison prints."""

    label: str
    format: str

    def text(self, value: float | None) -> str:
        return "-" if value is None else format(value, self.format)


_COLUMNS = {
    "seconds": _Column("seconds", ".3g"),
    "n_edges": _Column("edges", "d"),
    "held_out": _Column("held-out score", ".4f"),
    "precision": _Column("precision", ".3f"),
    "recall": _Column("recall", ".3f"),
    "rss": _Column("RSS", ".4g"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method did."""

    method: str
    seconds: float | None = None  # to learn from all samples
    n_edges: int | None = None
    # mean log pseudolikelihood of samples not learnt from; larger is better
    held_out: float | None = None
    precision: float | None = None  # these three where the truth is known
    recall: float | None = None
    rss: float | None = None
    problem: str | None = None  # why there is nothing, where there is nothing


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Summary):
    """Many methods on the same data. Prints as a table; `plot` draws it."""

    outcomes: tuple[Outcome, ...]
    # (n_methods, n_methods): edges that two methods share, of all that either has; NaN without any
    agreement: FloatArray
    models: dict[str, IsingModel]  # learnt from all samples
    n_samples: int
    n_spins: int
    n_held_out: int

    def __str__(self) -> str:
        head = (
            f"{self.n_samples} rows of {self.n_spins} columns; "
            f"score on {self.n_held_out} that were held out, larger is better"
        )
        problems = [f"{one.method}: {one.problem}" for one in self.outcomes if one.problem]
        notes = ["", *problems] if problems else []
        return "\n".join([head, "", *_text_table(self.outcomes), *notes])

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
        kept = [k for k, one in enumerate(self.outcomes) if one.problem is None]
        done = [self.outcomes[k] for k in kept]
        has_truth = any(one.precision is not None for one in done)
        n_panels = 3 + has_truth  # beside the matrix of agreement
        figure = Figure(figsize=(13, 2.5 + 0.25 * len(done)), layout="constrained")
        axes = figure.subplots(1, n_panels + 1, sharey=True, width_ratios=[*[1] * n_panels, 1.8])
        _draw_measures(axes, done)
        if has_truth:
            _draw_truth(axes[3], done)
        for panel in axes[:-1]:
            panel.grid(axis="y", lw=0.4)
        image = _draw_agreement(axes[-1], self.agreement[np.ix_(kept, kept)], done)
        figure.colorbar(image, ax=axes[-1], fraction=0.05)
        return figure


def _text_table(outcomes: Sequence[Outcome]) -> list[str]:
    """Lines of a table: a head, then a method a line, with the columns that any of them has."""
    shown = [name for name in _COLUMNS if any(getattr(one, name) is not None for one in outcomes)]
    rows = [["method", *(_COLUMNS[name].label for name in shown)]]
    for one in outcomes:
        texts = [_COLUMNS[name].text(getattr(one, name)) for name in shown]
        rows.append([one.method, *texts])
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for method, *cells in rows:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([method.ljust(widths[0]), *padded]))
    return lines


def _draw_measures(axes: Any, done: Sequence[Outcome]) -> None:
    """Seconds, edges and held-out scores, a method a row."""
    places = np.arange(len(done))
    names = [one.method for one in done]
    axes[0].plot([one.seconds for one in done], places, "o")
    axes[0].set(title="seconds", xscale="log", yticks=places, yticklabels=names)
    axes[1].plot([one.n_edges for one in done], places, "o")
    axes[1].set(title="edges", xlim=(0, None))
    axes[2].plot([one.held_out for one in done], places, "o")
    axes[2].set(title="held-out score", xlabel="larger is better")


def _draw_truth(axes: Any, done: Sequence[Outcome]) -> None:
    """Precision and recall."""
    places = np.arange(len(done))
    axes.plot([one.precision for one in done], places, "o", label="precision")
    axes.plot([one.recall for one in done], places, "s", mfc="none", label="recall")
    axes.set(title="against the truth", xlim=(-0.05, 1.05))
    axes.legend(frameon=False, fontsize=8)


def _draw_agreement(axes: Any, agreement: FloatArray, done: Sequence[Outcome]) -> Any:
    """The matrix of agreement; returns the image, for a colour bar."""
    image = axes.imshow(agreement, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    axes.set(title="edges shared by two methods, of all", xticks=np.arange(len(done)))
    axes.set_xticklabels([one.method for one in done], rotation=90)
    return image


def compare(
    X: Any,
    truth: IsingModel | None = None,
    methods: Sequence[str] | Mapping[str, Any] | None = None,
    *,
    sample_weight: Any = None,
    counts: Any = None,
    held_out: float = 0.2,
    binarize: Binarize = None,
    missing: str = "error",
    random_state: Seed = 0,
    progress: bool = False,
) -> Comparison:
    """Comparison of methods: seconds, edges, held-out score, agreement and, with a truth,
    precision, recall and error.

    Left to themselves, methods get the settings their theory suggests for data of this size:
    penalties that an absent coupling passes rarely, thresholds at its largest noise. Each learns
    from all samples, timed, and again from all but those held out. Within
    `isingkit.dask.using(client)` workers do this, a method to a task, and time it.

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
        How much each row matters.
    counts
        How many equal samples each row stands for; then single ones of these are held out.
    held_out
        Share of the samples that scores are measured on.
    binarize
        Threshold that turns real-valued columns into spins, or thresholds by names of columns.
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
    >>> samples = ik.sample(truth, n_samples=1000, random_state=1)
    >>> found = ik.compare(samples, truth, ["independent", "eLasso", "two-stage"])
    >>> found.best()
    'eLasso'
    """
    _require_fraction("held_out", held_out)
    data = _read(X, sample_weight, counts, binarize, missing)
    packed = data.packed
    if truth is not None:
        require_instance("truth", truth, IsingModel, "an IsingModel whose edges are known")
    if truth is not None and truth.n_spins != packed.n_spins:
        what = "the truth and the samples"
        raise ModelMismatchError(left=truth.names, right=packed.names, what=what)
    estimators = _estimators(methods, packed.n_spins, data.n_effective)
    parts = _split(data, held_out, generator(random_state))
    task = _Task(data, parts, truth)
    trials = _trials(task, list(estimators.items()), progress)
    outcomes = tuple(trial.outcome for trial in trials)
    models = {trial.outcome.method: trial.model for trial in trials if trial.model is not None}
    return Comparison(
        outcomes=outcomes,
        agreement=_agreement(outcomes, models),
        models=models,
        n_samples=data.n_samples,
        n_spins=packed.n_spins,
        n_held_out=parts.held.n_samples,
    )


def _require_fraction(setting: str, value: float) -> None:
    require_number(setting, value, above=0)
    if value >= 1:
        raise SettingError(setting=setting, value=value, expected="a share below 1")


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Samples, and what their rows count for."""

    packed: PackedSpins
    sample_weight: FloatArray | None
    counts: FloatArray | None

    @property
    def weights(self) -> RowWeights | None:
        return row_weights(self.sample_weight, self.counts, self.packed.n_samples)

    @property
    def n_samples(self) -> int:
        return self.packed.n_samples if self.counts is None else int(self.counts.sum())

    @property
    def n_effective(self) -> int:
        """Samples of equal weight that would tell as much."""
        weights = self.weights
        return self.packed.n_samples if weights is None else round(weights.n_effective)

    def __getitem__(self, some: IntArray) -> "_Rows":
        weights = None if self.sample_weight is None else self.sample_weight[some]
        counts = None if self.counts is None else self.counts[some]
        return _Rows(self.packed[some], weights, counts)


def _read(X: Any, sample_weight: Any, counts: Any, binarize: Binarize, missing: str) -> _Rows:
    """Samples, of at least two rows and two spins."""
    missing_policy(missing, COMPLETE_ROWS)
    if isinstance(X, PackedSpins | Spins):
        packed, rows = apply_missing_policy(pack(X), missing)
    else:
        spins = as_spins(X, binarize=binarize, missing=missing)
        packed = pack(spins)
        rows = spins.rows
    if sample_weight is not None:
        sample_weight = as_weights(sample_weight, packed.n_samples, rows)
    if counts is not None:
        counts = as_counts(counts, packed.n_samples, rows)
    data = _Rows(packed, sample_weight, counts)
    require_network(data.n_samples, packed.n_spins)
    return data


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """Samples to learn from and samples to score on."""

    learnt: _Rows
    held: _Rows


def _split(data: _Rows, fraction: float, rng: Generator) -> _Split:
    """Parts drawn at random: rows, or, where these are counted, single samples out of each
    row's.
    """
    packed = data.packed
    counts = data.counts
    if counts is not None:
        held = rng.binomial(counts.astype(np.int64), fraction).astype(np.float64)
        if held.any() and (counts - held).any():
            return _Split(replace(data, counts=counts - held), replace(data, counts=held))
    n_held_out = max(1, round(fraction * packed.n_samples))
    if packed.n_samples - n_held_out < 2:
        expected = f"a share that leaves at least 2 of {packed.n_samples} rows to learn from"
        raise SettingError(setting="held_out", value=fraction, expected=expected)
    order = rng.permutation(packed.n_samples)
    training = np.sort(order[n_held_out:])
    held_out = np.sort(order[:n_held_out])
    return _Split(data[training], data[held_out])


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """What every method learns from and is scored on."""

    data: _Rows
    parts: _Split
    truth: IsingModel | None


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """What one method did and found, and the warnings that only a worker has seen: each with its
    file and line.
    """

    outcome: Outcome
    model: IsingModel | None = None
    warnings: Sequence[tuple[Warning | str, str, int]] = ()


def _trials(task: _Task, methods: Sequence[tuple[str, Any]], progress: bool) -> list[_Trial]:
    """One trial for each method, here or by the current executor."""
    execute = current_executor()
    done: Iterator[tuple[int, _Trial]]
    if execute is None:
        done = ((place, _trial(task, method)) for place, method in enumerate(methods))
    else:
        done = execute(_trial_by_worker, task, methods)
    trials: dict[int, _Trial] = {}
    with tqdm(total=len(methods), desc="methods", unit="method", disable=not progress) as bar:
        for place, trial in done:
            trials[place] = trial
            bar.update()
    in_order = [trials[place] for place in range(len(methods))]
    _warn_again(in_order)
    return in_order


def _trial(task: _Task, method: tuple[str, Any]) -> _Trial:
    """What one method does with samples held out, and with all."""
    name, estimator = method
    try:
        held_out = _held_out_score(estimator, task.parts)
        start = time.perf_counter()
        fitted = _fitted(estimator, task.data)
        seconds = time.perf_counter() - start
        model = fitted.model_
        against_truth = {}
        if task.truth is not None:
            against_truth = _against_truth(_over_columns(model), task.truth)
    except Exception as error:  # whatever an outside method does, the others go on
        if isinstance(estimator, IsingEstimator) and not isinstance(error, IsingkitError):
            raise
        return _Trial(Outcome(name, problem=str(error)))
    return _Trial(Outcome(name, seconds, model.n_edges, held_out, **against_truth), model)


def _held_out_score(estimator: Any, parts: _Split) -> float:
    fitted = _fitted(estimator, parts.learnt)
    weights = parts.held.weights
    packed = parts.held.packed
    if isinstance(fitted, IsingEstimator):
        alike = fitted.model_.alike
        return fitted.mean_log_pseudolikelihood(alike.merged(packed) if alike else packed, weights)
    totals = None if weights is None else weights.totals
    return log_pseudolikelihood(fitted.model_, packed, totals)


def _fitted(estimator: Any, data: _Rows) -> Any:
    """The estimator, fitted; those of others know weights only, to which counts are as good."""
    fresh = clone(estimator, safe=False)
    if isinstance(fresh, IsingEstimator):
        # estimators of others may not take counts
        counts = {} if data.counts is None else {"counts": data.counts}
        return fresh.fit(data.packed, sample_weight=data.sample_weight, **counts)
    weights = data.weights
    return fresh.fit(data.packed, sample_weight=None if weights is None else weights.totals)


def _against_truth(model: IsingModel, truth: IsingModel) -> Record:
    scores = score(model, truth)
    return {"precision": scores.precision, "recall": scores.recall, "rss": scores.rss}


def _over_columns(model: IsingModel) -> IsingModel:
    """The model over all columns of the table: those that are part of another's spin have no
    edges.
    """
    alike = model.alike
    if alike is None:
        return model
    shape = (len(alike.columns), model.n_spins)
    is_first = csr_array((np.ones(model.n_spins), (alike.firsts, np.arange(model.n_spins))), shape)
    return IsingModel(is_first @ model.couplings @ is_first.T, names=alike.columns)


_ALONE = threading.Lock()


def _trial_by_worker(task: _Task, method: tuple[str, Any]) -> _Trial:
    """The trial, by a worker: alone in its process, so that seconds and warnings are the method's
    own.
    """
    with _ALONE, warnings.catch_warnings(record=True) as caught:
        trial = _trial(task, method)
    return replace(trial, warnings=[(one.message, one.filename, one.lineno) for one in caught])


def _warn_again(trials: Sequence[_Trial]) -> None:
    """Warnings of workers, at the lines where one machine warns."""
    registry: dict[Any, Any] = {}
    for message, file, line in (one for trial in trials for one in trial.warnings):
        if isinstance(message, IsingkitWarning):
            warn(message)
        else:
            warnings.warn_explicit(message, UserWarning, file, line, registry=registry)


def _estimators(
    methods: Sequence[str] | Mapping[str, Any] | None, n_spins: int, n_samples: int
) -> Record:
    """The estimators to compare, by name."""
    if isinstance(methods, Mapping):
        return _given(methods)
    known = known_methods(n_spins, n_samples)
    if methods is None:
        by_default = [one.label for one in METHODS if n_spins <= one.most_spins]
        return {label: known[label] for label in by_default if label in known}
    return {label: known[label] for label in _labels(methods, tuple(known))}


def _labels(methods: Sequence[str], known: Sequence[str]) -> list[str]:
    """Labels of these methods, each once, however their names are spelt."""
    labels = {command_name(label): label for label in known}
    expected = "a list of " + ", ".join(repr(label) for label in known)
    if isinstance(methods, str) or not isinstance(methods, Iterable):
        raise SettingError(setting="methods", value=methods, expected=expected)
    names = [str(name) for name in methods]
    unknown = [name for name in names if command_name(name) not in labels]
    if unknown or not names:
        raise SettingError(setting="methods", value=unknown, expected=expected)
    return list(dict.fromkeys(labels[command_name(name)] for name in names))


def _given(estimators: Mapping[str, Any]) -> Record:
    """Estimators by name, refused where one cannot fit."""
    wrong = [name for name, estimator in estimators.items() if not hasattr(estimator, "fit")]
    if wrong:
        expected = "names of methods, or estimators by name"
        raise SettingError(setting="methods", value=wrong, expected=expected)
    return dict(estimators)


def _agreement(outcomes: Sequence[Outcome], models: Mapping[str, IsingModel]) -> FloatArray:
    """Jaccard indices of the sets of edges."""
    agreement = np.full((len(outcomes), len(outcomes)), np.nan)
    graphs = {
        place: _over_columns(models[one.method]).couplings.astype(bool)
        for place, one in enumerate(outcomes)
        if one.method in models
    }
    for (a, left), (b, right) in itertools.product(graphs.items(), repeat=2):
        n_common = left.multiply(right).nnz
        n_either = left.nnz + right.nnz - n_common
        if n_either:
            agreement[a, b] = n_common / n_either
    return agreement
