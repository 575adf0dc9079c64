"""Precision and recall against thresholds: figures 3, 6 and 8."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.estimators.linear import LinearIsing
from isingkit.estimators.two_stage import TwoStageIsing
from isingkit.experiments.pictures import legend_below
from isingkit.experiments.runner import Row, Table, chosen, column, seed_of
from isingkit.experiments.snapshots import snapshots
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins
from isingkit.theory.recovery import Recovery
from isingkit.theory.recovery_model import recovery_of_model
from isingkit.theory.recovery_regular import recovery
from isingkit.worlds.graphs import erdos_renyi, random_regular

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("directed", "averaged")  # estimates by themselves, and means of both directions
LARGEST_THRESHOLD = 0.4
MOST_CANDIDATES = 0.2  # over samples, up to which stage two is predicted
PREDICTED_SPINS = 4000  # of all graphs that theory looks at


@dataclass(frozen=True, slots=True)
class Setting:
    """One ensemble of worlds and one estimator."""

    graph: str  # "random regular" or "Erdos-Renyi"
    degree: int  # or mean degree
    coupling: float
    n_spins: tuple[int, ...]
    samples_per_spin: float
    ridge: float  # 0: least squares, one stage
    prune: float | None
    n_graphs: int
    n_samplings: int
    step: float  # between thresholds
    seed: int
    every: int = 1  # one in so many thresholds is tabulated, beside all around the best

    @property
    def thresholds(self) -> list[float]:
        n_steps = round(LARGEST_THRESHOLD / self.step)
        return [round(self.step * k, 6) for k in range(n_steps + 1)]


class Config(Protocol):
    """What a figure's configuration has to know."""

    @property
    def sampling(self) -> str: ...
    def settings(self) -> list[Setting]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Edges found and invented above each threshold, over all worlds of a size."""

    found: IntArray  # (n_thresholds,)
    false: IntArray  # (n_thresholds,)
    n_edges: int

    @property
    def precision(self) -> FloatArray:
        """Not a number where nothing is claimed."""
        claimed = self.found + self.false
        precision = np.full(len(claimed), np.nan)
        return np.divide(self.found, claimed, out=precision, where=claimed > 0)

    @property
    def recall(self) -> FloatArray:
        return self.found / self.n_edges


def points(config: Config) -> list[Row]:
    """One sampling of one graph."""
    return [
        {
            "graph": setting.graph,
            "ridge": setting.ridge,
            "n_spins": n,
            "world": world,
            "sampling": sampling,
        }
        for setting in config.settings()
        for n in setting.n_spins
        for world in range(setting.n_graphs)
        for sampling in range(setting.n_samplings)
    ]


def teacher(setting: Setting, n_spins: int, world: int) -> IsingModel:
    """The graph of a world; the same for every estimator and sampling."""
    coupling = setting.coupling
    seed = seed_of(setting.seed, setting.graph, setting.degree, coupling, n_spins, world)
    if setting.graph == "random regular":
        degree = setting.degree
        return random_regular(n_spins=n_spins, degree=degree, coupling=coupling, random_state=seed)
    return erdos_renyi(
        n_spins=n_spins, mean_degree=setting.degree, coupling=coupling, random_state=seed
    )


def measure(config: Config, point: Row) -> Row:
    """Couplings found and invented above each threshold, by stage and kind of estimate."""
    setting = _setting_of(config, point)
    n_spins = point["n_spins"]
    model = teacher(setting, n_spins, point["world"])
    seed = seed_of(setting.seed, n_spins, point["world"], point["sampling"])
    n_samples = round(setting.samples_per_spin * n_spins)
    samples = snapshots(model, n_samples, seed, config.sampling)
    truth = model.couplings.toarray() != 0
    result: Row = {}
    for stage, estimates in _estimates(setting, samples).items():
        averaged = (estimates + estimates.T) / 2
        result[stage] = {
            "directed": _counts(estimates, truth, setting.thresholds),
            "averaged": _counts(averaged, truth, setting.thresholds),
        }
    result["edges"] = int(truth.sum())
    return result


def _estimates(setting: Setting, samples: PackedSpins) -> dict[str, FloatArray]:
    """Of stage one and, where there is one, stage two."""
    if setting.prune is None:
        return {"one": LinearIsing(fit_fields=False).fit(samples).estimates_}
    estimator = TwoStageIsing(ridge=setting.ridge, prune=setting.prune, fit_fields=False)
    fit = estimator.fit(samples)
    return {"one": fit.stage_one_estimates_, "two": fit.estimates_}


def _counts(estimates: FloatArray, truth: BoolArray, thresholds: list[float]) -> list[list[int]]:
    """Edges found, and others claimed, above each threshold."""
    sizes = np.abs(estimates)
    no_edge = ~truth & ~np.eye(len(truth), dtype=bool)
    counts = []
    for group in (truth, no_edge):
        sorted_sizes = np.sort(sizes[group])
        below = np.searchsorted(sorted_sizes, thresholds, side="right")
        counts.append((len(sorted_sizes) - below).tolist())
    return counts


def predict(config: Config, point: Row, stage: str = "one") -> Recovery | None:
    """Directed estimates: by formula on random regular graphs, else by Bethe matrices of worlds.

    None for stage two where candidates are more than a fifth of the samples, which the theory of
    recovery does not reach.
    """
    setting = _setting_of(config, point)
    n_spins = point["n_spins"]
    if stage == "one":
        return _predicted(setting, n_spins, None)
    theory = _predicted(setting, n_spins, setting.prune)
    most = MOST_CANDIDATES * setting.samples_per_spin * n_spins
    return theory if theory.n_candidates() <= most else None


@lru_cache(maxsize=64)
def _predicted(setting: Setting, n_spins: int, prune: float | None) -> Recovery:
    n_samples = round(setting.samples_per_spin * n_spins)
    if setting.graph == "random regular":
        return recovery(
            n_spins,
            setting.degree,
            setting.coupling,
            n_samples,
            ridge=setting.ridge,
            prune=prune,
            rule="directed",
        )
    n_graphs = max(1, min(setting.n_graphs, PREDICTED_SPINS // n_spins))
    graphs = [teacher(setting, n_spins, world) for world in range(n_graphs)]
    return _mean_recovery(
        [recovery_of_model(graph, n_samples, ridge=setting.ridge, prune=prune) for graph in graphs]
    )


def _mean_recovery(recoveries: list[Recovery]) -> Recovery:
    """Of a graph that is the mean of several: pairs of all, each counted in part."""
    parts: list[Any] = [one.pairs for one in recoveries]  # all of one kind
    return replace(recoveries[0], pairs=type(parts[0]).mean_of(parts))


def tabulate(config: Config, records: list[Row]) -> Table:
    """Precision and recall over all worlds of a size, measured and predicted, by threshold."""
    rows = []
    for setting in config.settings():
        for n_spins in setting.n_spins:
            place = {"graph": setting.graph, "ridge": setting.ridge, "n_spins": n_spins}
            results = [record["result"] for record in records if chosen([record["point"]], **place)]
            for stage in ("one", "two"):
                if stage in results[0]:
                    theory = predict(config, place, stage)
                    rows += _rows(setting, place | {"stage": stage}, results, theory)
    return rows


def _rows(setting: Setting, place: Row, results: list[Row], theory: Recovery | None) -> Table:
    """Rows of one stage, at the thresholds to show."""
    counts = {kind: _summed(results, place["stage"], kind) for kind in KINDS}
    shown_of = [_shown(one, setting.every) for one in counts.values()]
    shown = sorted(set().union(*shown_of))
    every = setting.thresholds
    thresholds = [every[at] for at in shown]
    rows = []
    for kind, count in counts.items():
        facts = place | {"kind": kind}
        rows_of_kind = [
            facts | _row(count, at, threshold, len(results))
            for at, threshold in zip(shown, thresholds, strict=True)
        ]
        if kind == "directed" and theory:
            _add_predictions(rows_of_kind, theory, thresholds)
        rows += rows_of_kind
    return rows


def _row(count: Counts, at: int, threshold: float, n_worlds: int) -> Row:
    found = int(count.found[at])
    return {
        "threshold": threshold,
        "n_worlds": n_worlds,
        "found": found,
        "false": int(count.false[at]),
        "missed": count.n_edges - found,
        "precision": float(count.precision[at]),
        "recall": float(count.recall[at]),
    }


def _add_predictions(rows: Table, theory: Recovery, thresholds: list[float]) -> None:
    predictions = zip(theory.precision(thresholds), theory.recall(thresholds), strict=True)
    for row, (precision, recall) in zip(rows, predictions, strict=True):
        row["predicted_precision"] = float(precision)
        row["predicted_recall"] = float(recall)


def _summed(results: list[Row], stage: str, kind: str) -> Counts:
    found, false = np.sum([result[stage][kind] for result in results], axis=0)
    return Counts(found, false, n_edges=sum(result["edges"] for result in results))


def _shown(count: Counts, every: int) -> set[int]:
    """Places of the thresholds to tabulate: some of all, and all around the best."""
    n_thresholds = len(count.found)
    both = np.minimum(np.nan_to_num(count.precision), count.recall)
    best = int(np.argmax(both))
    around = range(max(best - every, 0), min(best + every + 1, n_thresholds))
    return {*range(0, n_thresholds, every), *around}


def agreement(table: Table) -> list[str]:
    """Intervals of perfect recovery, or the best precision and recall, and the error of theory."""
    lines = []
    for graph, ridge, stage in _panels(table):
        rows = chosen(table, graph=graph, ridge=ridge, stage=stage)
        for n_spins in dict.fromkeys(row["n_spins"] for row in rows):
            directed = chosen(rows, n_spins=n_spins, kind="directed")
            averaged = chosen(rows, n_spins=n_spins, kind="averaged")
            where = f"{graph}, ridge {ridge:.3g}, stage {stage}, N={n_spins}"
            best = f"directed {_best_in_words(directed)}; averaged {_best_in_words(averaged)}"
            lines.append(f"{where}: {best}; {_error_in_words(directed)}")
    return lines


def _best_in_words(rows: Table) -> str:
    perfect = [row["threshold"] for row in rows if row["false"] == row["missed"] == 0]
    if perfect:
        return f"perfect from {perfect[0]:g} to {perfect[-1]:g}"
    both = np.minimum(column(rows, "precision"), column(rows, "recall"))
    return f"at best {100 * np.nanmax(both):.3f} percent"


def _error_in_words(rows: Table) -> str:
    seen = [row for row in rows if row["recall"] > 0.05 and "predicted_recall" in row]
    if not seen:
        return "too many candidates for the theory of recovery"
    precision = max(abs(row["precision"] - row["predicted_precision"]) for row in seen)
    recall = max(abs(row["recall"] - row["predicted_recall"]) for row in seen)
    return f"theory is off by at most {precision:.3f} in precision and {recall:.3f} in recall"


def plot(table: Table, title: str) -> "Figure":
    """A panel for each estimator and stage: recall dotted, precision solid, theory dashed.

    Precision of averages is thin.
    """
    from matplotlib.figure import Figure

    panels = _panels(table)
    n_lines = (len(panels) + 1) // 2
    figure = Figure(figsize=(11, 0.6 + 3.1 * n_lines), layout="constrained")
    figure.suptitle(title)
    all_axes = figure.subplots(n_lines, 2, squeeze=False).ravel()
    for axes, (graph, ridge, stage) in zip(all_axes, panels, strict=False):
        rows = chosen(table, graph=graph, ridge=ridge, stage=stage)
        for number, n_spins in enumerate(dict.fromkeys(row["n_spins"] for row in rows)):
            _draw_curves(axes, chosen(rows, n_spins=n_spins), number)
        title = f"{graph}, ridge {ridge:.3g}, stage {stage}"
        axes.set(xlabel="threshold", ylim=(0, 1.03), title=title)
    legend_below(figure, all_axes[0])
    for axes in all_axes[len(panels) :]:
        axes.remove()
    return figure


def _draw_curves(axes: Any, rows: Table, number: int) -> None:
    """Of one size of graphs; the first size explains the styles of lines."""
    directed = chosen(rows, kind="directed")
    averaged = chosen(rows, kind="averaged")
    first = number == 0
    colour = f"C{number}"
    x = column(directed, "threshold")
    precision = column(directed, "precision")
    recall = column(directed, "recall")
    of_averages = column(averaged, "precision")
    name = f"N = {rows[0]['n_spins']}: precision"
    axes.plot(x, precision, "-", color=colour, label=name)
    label = "recall (dotted)" if first else None
    axes.plot(x, recall, ":", lw=2, color=colour, label=label)
    axes.plot(x, of_averages, "-", lw=0.8, alpha=0.5, color=colour)
    axes.plot(x, column(directed, "predicted_precision"), "--", lw=0.8, color="black")
    label = "theory (dashed)" if first else None
    axes.plot(x, column(directed, "predicted_recall"), "--", lw=0.8, color="black", label=label)


def _panels(table: Table) -> list[tuple[str, float, str]]:
    """Graph, ridge and stage, in the order of the table."""
    curves = [(row["graph"], row["ridge"], row["stage"]) for row in table]
    return list(dict.fromkeys(curves))


def _setting_of(config: Config, point: Row) -> Setting:
    wanted = (point["graph"], point["ridge"])
    return next(s for s in config.settings() if (s.graph, s.ridge) == wanted)
