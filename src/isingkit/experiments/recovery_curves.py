"""Precision and recall against thresholds: what figures 3, 6 and 8 measure, predict and draw."""

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from isingkit.estimators.linear import LinearIsing
from isingkit.estimators.two_stage import TwoStageIsing
from isingkit.experiments.runner import Row, Table, chosen, column, seed_of
from isingkit.model import IsingModel
from isingkit.theory.pairs import Pairs
from isingkit.theory.recovery import Recovery
from isingkit.theory.recovery_model import recovery_of_model
from isingkit.theory.recovery_regular import recovery
from isingkit.worlds.graphs import erdos_renyi, random_regular
from isingkit.worlds.sampling import sample

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = 0.2  # candidates over samples
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
    every: int = (
        1  # of the thresholds, which one in so many is tabulated, beside all around the best
    )

    @property
    def thresholds(self) -> list[float]:
        return [round(self.step * k, 6) for k in range(round(0.4 / self.step) + 1)]


class Config(Protocol):
    """What a figure's configuration has to know."""

    def settings(self) -> list[Setting]: ...


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
    seed = seed_of(setting.seed, setting.graph, setting.degree, setting.coupling, n_spins, world)
    if setting.graph == "random regular":
        return random_regular(
            n_spins=n_spins, degree=setting.degree, coupling=setting.coupling, random_state=seed
        )
    return erdos_renyi(
        n_spins=n_spins, mean_degree=setting.degree, coupling=setting.coupling, random_state=seed
    )


def measure(config: Config, point: Row) -> Any:
    """Couplings found and invented above each threshold, by stage, for directed estimates and for
    averages of two.
    """
    setting = _setting_of(config, point)
    model = teacher(setting, point["n_spins"], point["world"])
    n_samples = round(setting.samples_per_spin * point["n_spins"])
    samples = sample(
        model,
        n_samples,
        random_state=seed_of(setting.seed, point["n_spins"], point["world"], point["sampling"]),
    )
    if setting.prune is None:
        stages = {"one": LinearIsing(fit_fields=False).fit(samples).estimates_}
    else:
        fit = TwoStageIsing(ridge=setting.ridge, prune=setting.prune, fit_fields=False).fit(samples)
        stages = {"one": fit.stage_one_estimates_, "two": fit.estimates_}
    truth = model.couplings.toarray() != 0
    return {
        stage: {
            "directed": _counts(estimates, truth, setting),
            "averaged": _counts((estimates + estimates.T) / 2, truth, setting),
        }
        for stage, estimates in stages.items()
    } | {"edges": int(truth.sum())}


def predict(config: Config, point: Row, stage: str = "one") -> Recovery | None:
    """Directed estimates: by formula on random regular graphs, by Bethe matrices of the first
    worlds on others.

    None for stage two where candidates are more than a fifth of the samples, which the theory of
    recovery does not reach.
    """
    setting, n_spins = _setting_of(config, point), point["n_spins"]
    theory = _predicted(setting, n_spins, setting.prune if stage == "two" else None)
    return (
        None
        if stage == "two" and theory.n_candidates() > MANY * setting.samples_per_spin * n_spins
        else theory
    )


def tabulate(config: Config, records: list[Row]) -> Table:
    """Precision and recall over all worlds of a size, measured and predicted, at every
    threshold.
    """
    rows = []
    for setting, n_spins in [(s, n) for s in config.settings() for n in s.n_spins]:
        place = {"graph": setting.graph, "ridge": setting.ridge, "n_spins": n_spins}
        results = [record["result"] for record in records if chosen([record["point"]], **place)]
        edges = sum(result["edges"] for result in results)
        for stage in [name for name in ("one", "two") if name in results[0]]:
            theory = predict(config, place, stage)
            counts = {
                kind: [
                    np.sum([result[stage][kind][k] for result in results], axis=0) for k in (0, 1)
                ]
                for kind in ("directed", "averaged")
            }
            shown = sorted(
                set().union(
                    *(
                        _shown(found, false, edges, setting.every)
                        for found, false in counts.values()
                    )
                )
            )
            at_shown = [setting.thresholds[at] for at in shown]
            precision, recall = (
                (theory.precision(at_shown), theory.recall(at_shown)) if theory else ((), ())
            )
            for kind, (found, false) in counts.items():
                for number, (at, threshold) in enumerate(zip(shown, at_shown, strict=True)):
                    total = int(found[at] + false[at])
                    row = {
                        **place, "stage": stage, "kind": kind,
                        "threshold": threshold, "n_worlds": len(results), "found": int(found[at]), "false": int(false[at]),
                        "missed": edges - int(found[at]), "precision": found[at] / total if total else float("nan"),
                        "recall": found[at] / edges,
                    }  # fmt: skip
                    if kind == "directed" and theory:
                        row |= {
                            "predicted_precision": float(precision[number]),
                            "predicted_recall": float(recall[number]),
                        }
                    rows.append(row)
    return rows


def _shown(found: Any, false: Any, edges: int, every: int) -> set[int]:
    """Places of the thresholds to tabulate: some of them, and all around the best in precision and
    recall.
    """
    best = int(np.argmax(np.minimum(found / np.maximum(found + false, 1), found / edges)))
    return set(range(0, len(found), every)) | set(
        range(max(best - every, 0), min(best + every + 1, len(found)))
    )


def agreement(table: Table) -> list[str]:
    """Intervals of perfect recovery, the best simultaneous precision and recall, and the distance
    from theory.
    """
    lines = []
    for graph, ridge, stage in dict.fromkeys(
        (row["graph"], row["ridge"], row["stage"]) for row in table
    ):
        rows = chosen(table, graph=graph, ridge=ridge, stage=stage)
        for n_spins in dict.fromkeys(row["n_spins"] for row in rows):
            said = []
            for kind in ("directed", "averaged"):
                here = chosen(rows, n_spins=n_spins, kind=kind)
                perfect = [row["threshold"] for row in here if row["false"] == row["missed"] == 0]
                best = max(
                    min(row["precision"], row["recall"])
                    for row in here
                    if row["precision"] == row["precision"]
                )
                where = (
                    f"perfect from {perfect[0]:g} to {perfect[-1]:g}"
                    if perfect
                    else f"at best {100 * best:.3f} percent"
                )
                said.append(f"{kind} {where}")
            seen = [
                row
                for row in chosen(rows, n_spins=n_spins, kind="directed")
                if row["recall"] > 0.05
            ]
            seen = [row for row in seen if "predicted_recall" in row]
            off = [
                max((abs(row[name] - row[f"predicted_{name}"]) for row in seen), default=None)
                for name in ("precision", "recall")
            ]
            theory = (
                "too many candidates for the theory of recovery" if off[0] is None
                else f"theory is off by at most {off[0]:.3f} in precision and {off[1]:.3f} in recall"
            )  # fmt: skip
            lines.append(
                f"{graph}, ridge {ridge:.3g}, stage {stage}, N={n_spins}: {'; '.join(said)}; {theory}"
            )
    return lines


def plot(table: Table, title: str) -> "Figure":
    """A panel for each estimator and stage: recall dotted, precision solid, theory thin and black;
    averages beside.
    """
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys((row["graph"], row["ridge"], row["stage"]) for row in table))
    figure = Figure(figsize=(11, 0.6 + 3.1 * ((len(panels) + 1) // 2)), layout="constrained")
    figure.suptitle(title)
    all_axes = figure.subplots((len(panels) + 1) // 2, 2, squeeze=False).ravel()
    for axes, (graph, ridge, stage) in zip(all_axes, panels, strict=False):
        rows = chosen(table, graph=graph, ridge=ridge, stage=stage)
        for number, n_spins in enumerate(dict.fromkeys(row["n_spins"] for row in rows)):
            directed, averaged = (
                chosen(rows, n_spins=n_spins, kind=kind) for kind in ("directed", "averaged")
            )
            x = column(directed, "threshold")
            axes.plot(
                x,
                column(directed, "precision"),
                "-",
                color=f"C{number}",
                label=f"N = {n_spins}: precision",
            )
            axes.plot(
                x,
                column(directed, "recall"),
                ":",
                lw=2,
                color=f"C{number}",
                label="recall (dotted)" if number == 0 else None,
            )
            axes.plot(x, column(averaged, "precision"), "-", lw=0.8, alpha=0.5, color=f"C{number}")
            for name in ("precision", "recall"):
                axes.plot(x, column(directed, f"predicted_{name}"), "--", lw=0.8, color="black",
                          label="theory (dashed)" if number == 0 and name == "recall" else None)  # fmt: skip
        axes.set(
            xlabel="threshold", ylim=(0, 1.03), title=f"{graph}, ridge {ridge:.3g}, stage {stage}"
        )
        axes.legend(frameon=False, fontsize=7)
    for axes in all_axes[len(panels) :]:
        axes.remove()
    return figure


def _setting_of(config: Config, point: Row) -> Setting:
    return next(
        s for s in config.settings() if (s.graph, s.ridge) == (point["graph"], point["ridge"])
    )


def _counts(estimates: Any, truth: Any, setting: Setting) -> list[list[int]]:
    sizes = np.abs(estimates)
    edges, others = np.sort(sizes[truth]), np.sort(sizes[~truth & ~np.eye(len(truth), dtype=bool)])
    places = [np.searchsorted(group, setting.thresholds, side="right") for group in (edges, others)]
    return [
        (len(group) - place).tolist() for group, place in zip((edges, others), places, strict=True)
    ]


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
    each = [
        recovery_of_model(graph, n_samples, ridge=setting.ridge, prune=prune) for graph in graphs
    ]
    tables = ([getattr(one.pairs, field.name) for one in each] for field in fields(Pairs))
    pairs = Pairs(*(np.concatenate(table) for table in tables))
    return replace(
        each[0], pairs=replace(pairs, count=pairs.count / n_graphs)
    )  # a graph of the mean kind
