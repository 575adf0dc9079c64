"""AutoIsing, which has no knobs, on planted worlds: beside methods whose knobs an oracle sets.

Sections, each of independent trials with fixed seeds:

- `hard`: exact graphs where samples are few: Erdos-Renyi N=1600, M=1440, and random regular N=800
  ("fwer", 0.05);
- `few`: random regular N=200, M=150 ("fdr", 0.1) beside abess's IsingModel and eLasso;
- `field`: small worlds with one weak coupling a among others b, success (the exact graph) against
  n, beside l1 pseudolikelihood whose threshold a / 2 an oracle sets, at one penalty and at the best
  of twenty;
- `lattices`: glasses at low temperature, where no threshold on linear estimates works;
- `calibration`: edges between independent spins, false discoveries in planted worlds, coverage of
  95 percent intervals: of the edges found, and of all edges where the graph is known, which
  separates the refit's errors from what choosing edges does to them;
- `unequal`: couplings of all strengths and random fields, beside eLasso.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from abess.graph import IsingModel as Abess
from joblib import Parallel, delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray
from results import Row, markdown, write_picture, write_settings, write_table
from scipy.stats import binomtest
from tqdm import tqdm

import isingkit as ik
from isingkit.estimators.fitted_graph import fit_graph, samples_of
from isingkit.exceptions import IsingkitWarning

NAME = "structure_without_knobs"
CELLS = {  # of the section `field`: kind of graph, a, b, n
    "regular, a = b = 0.4": ("regular", 0.4, 0.4, 600),
    "regular, a = 0.3, b = 0.6": ("regular", 0.3, 0.6, 1900),
    "lattice, a = 0.3, b = 0.4": ("lattice", 0.3, 0.4, 2100),
}
HARD = (  # kind of graph, spins, samples, worlds
    ("Erdos-Renyi", 1600, 1440, 20),
    ("regular", 800, 960, 50),
    ("regular", 800, 640, 20),
    ("regular", 800, 320, 20),
)
LATTICES = ((4, 0.8, 20_000), (8, 0.9, 4096))  # side, coupling, samples
FRACTIONS_OF_N = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
Trial = tuple[Callable[..., list[Row]], tuple[Any, ...]]


# Worlds


def regular(n_spins: int, seed: int) -> ik.IsingModel:
    return ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=seed)


def erdos_renyi(n_spins: int, seed: int) -> ik.IsingModel:
    return ik.erdos_renyi(n_spins=n_spins, mean_degree=4, coupling=0.4, random_state=seed)


def small(kind: str, weak: float, strong: float, seed: int) -> ik.IsingModel:
    """16 spins, couplings of strength `strong` and random signs but one, which is `weak`."""
    if kind == "regular":
        couplings = ik.random_regular(
            n_spins=16, degree=3, coupling=strong, random_state=seed
        ).couplings.toarray()
    else:
        couplings = ik.square_lattice(
            side=4, coupling=strong, random_state=seed
        ).couplings.toarray()
    edges = np.argwhere(np.triu(couplings))
    i, j = edges[seed % len(edges)]
    couplings[i, j] = couplings[j, i] = np.sign(couplings[i, j]) * weak
    return ik.IsingModel(couplings)


def unequal(seed: int) -> ik.IsingModel:
    """Couplings uniform in 0.1 to 0.6 with random signs, fields of standard deviation 0.3."""
    rng = np.random.default_rng(seed)
    graph = regular(100, seed).couplings.toarray()
    strengths = np.triu(rng.uniform(0.1, 0.6, graph.shape), 1)
    return ik.IsingModel(np.sign(graph) * (strengths + strengths.T), rng.normal(0, 0.3, 100))


# Trials: each gives rows of one data set


def row(
    section: str, setting: str, seed: int, method: str, found: Any, truth: ik.IsingModel
) -> Row:
    s = ik.score(found, truth)
    return {
        "section": section,
        "setting": setting,
        "seed": seed,
        "method": method,
        "exact": int(s.exact),
        "precision": s.precision,
        "recall": s.recall,
        "f1": s.f1,
        "invented": s.false_positives,
        "missed": s.false_negatives,
    }


def auto(**settings: Any) -> ik.AutoIsing:
    return ik.AutoIsing(n_jobs=1, **settings)


def hard(kind: str, n_spins: int, n_samples: int, seed: int) -> list[Row]:
    truth = erdos_renyi(n_spins, seed) if kind == "Erdos-Renyi" else regular(n_spins, seed)
    samples = ik.sample(truth, n_samples, random_state=1000 + seed, n_jobs=1)
    setting = f"{kind}, N={n_spins}, M={n_samples}"
    rows = [
        row(
            "hard",
            setting,
            seed,
            "auto, fwer 0.05",
            auto(control="fwer").fit(samples).model_,
            truth,
        )
    ]
    if n_samples < 0.5 * n_spins:
        rows.append(
            row(
                "hard", setting, seed, "auto, fdr 0.01", auto(level=0.01).fit(samples).model_, truth
            )
        )
    return rows


def few(seed: int) -> list[Row]:
    truth = regular(200, seed)
    samples = ik.sample(truth, 150, random_state=1000 + seed, n_jobs=1)
    theirs = Abess(tune_type="ebic", max_support_size=8).fit(np.asarray(samples, dtype=np.float64))
    found = {
        "auto, fdr 0.1": auto(level=0.1).fit(samples).model_,
        "abess": ik.IsingModel(theirs.theta_),
        "eLasso": ik.ELassoIsing(n_jobs=1).fit(samples).model_,
    }
    return [
        row("few", "regular, N=200, M=150", seed, method, model, truth)
        for method, model in found.items()
    ]


def field(cell: str, fraction: float, seed: int) -> list[Row]:
    kind, weak, strong, full = CELLS[cell]
    truth = small(kind, weak, strong, seed)
    n = round(fraction * full)
    samples = ik.exact(truth).sample(n_samples=n, random_state=1000 + seed)
    setting, level = f"{cell}, n={n}", np.sqrt(np.log(16**2 / 0.05) / n)
    rows = [
        row(
            "field",
            setting,
            seed,
            "auto, fwer 0.05",
            auto(control="fwer").fit(samples).model_,
            truth,
        )
    ]
    for number, constant in enumerate([0.2, *np.geomspace(0.01, 1.0, 20)]):
        estimates = ik.PseudolikelihoodIsing(l1=constant * level, n_jobs=1).fit(samples).estimates_
        couplings = (estimates + estimates.T) / 2
        found = ik.IsingModel(np.where(np.abs(couplings) > weak / 2, couplings, 0.0))
        method = (
            "l1, oracle threshold" if number == 0 else f"l1, oracle threshold, penalty {number:02d}"
        )
        rows.append(row("field", setting, seed, method, found, truth))
    return rows


def lattices(side: int, coupling: float, n_samples: int, seed: int) -> list[Row]:
    truth = ik.square_lattice(side=side, coupling=coupling, random_state=seed)
    if side == 4:
        samples = ik.exact(truth).sample(n_samples=n_samples, random_state=seed)
    else:
        samples = ik.sample(
            truth, n_samples, random_state=seed, warm_up=20_000, check=False, n_jobs=1
        )
    setting = f"{side}x{side}, K={coupling}, M={n_samples}"
    return [
        row(
            "lattices",
            setting,
            seed,
            "auto, fwer 0.05",
            auto(control="fwer").fit(samples).model_,
            truth,
        )
    ]


def null(n_samples: int, seed: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((n_samples, 100)) < rng.uniform(0.05, 0.95, 100), 1, -1)
    n_edges = len(auto(control="fwer").fit(values).edges_)
    return [
        {
            "section": "calibration",
            "setting": f"independent, N=100, M={n_samples}",
            "seed": seed,
            "method": "auto, fwer 0.05",
            "exact": int(n_edges == 0),
            "invented": n_edges,
        }
    ]


def planted(kind: str, ratio: float, seed: int) -> list[Row]:
    truth = erdos_renyi(200, seed) if kind == "Erdos-Renyi" else regular(200, seed)
    samples = ik.sample(truth, round(200 * ratio), random_state=1000 + seed, n_jobs=1)
    fit = auto(level=0.1).fit(samples)
    couplings, place = truth.couplings.toarray(), {name: i for i, name in enumerate(truth.names)}
    true = [couplings[place[one["source"]], place[one["target"]]] for one in fit.edges_]
    held = [
        low <= value <= high
        for (low, high), value in zip(fit.intervals_, true, strict=True)
        if value
    ]
    found = row(
        "calibration", f"{kind}, N=200, M/N={ratio:g}", seed, "auto, fdr 0.1", fit.model_, truth
    )
    known = intervals_of_refit(samples, couplings)
    return [
        found
        | {
            "intervals": len(held),
            "held": int(sum(held)),
            "all": len(known),
            "held_of_all": int(sum(known)),
        }
    ]


def intervals_of_refit(
    samples: ik.PackedSpins, couplings: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether the intervals of a refit on the true graph hold the couplings."""
    pairs = np.argwhere(np.triu(couplings))
    refitted = fit_graph(samples_of(samples), pairs, n_jobs=1).firth_refit()
    values, errors = refitted.couplings_and_errors()
    return np.asarray(np.abs(values - couplings[tuple(pairs.T)]) < 1.96 * errors)


def clean(kind: str, ratio: float, seed: int) -> list[Row]:
    truth = erdos_renyi(200, seed) if kind == "Erdos-Renyi" else regular(200, seed)
    model = (
        auto(control="fwer")
        .fit(ik.sample(truth, round(200 * ratio), random_state=1000 + seed, n_jobs=1))
        .model_
    )
    found = row(
        "calibration", f"{kind}, N=200, M/N={ratio:g}", seed, "auto, fwer 0.05", model, truth
    )
    return [found | {"clean": int(found["invented"] == 0)}]


def strengths(n_samples: int, seed: int) -> list[Row]:
    truth = unequal(seed)
    samples = ik.sample(truth, n_samples, random_state=1000 + seed, n_jobs=1)
    found = {
        "auto, fdr 0.05": auto().fit(samples).model_,
        "eLasso": ik.ELassoIsing(n_jobs=1).fit(samples).model_,
    }
    return [
        row("unequal", f"N=100, M={n_samples}", seed, method, model, truth)
        for method, model in found.items()
    ]


def trials(section: str, fraction: float) -> Iterator[Trial]:
    """All trials of a section; `fraction` of each number of worlds."""

    def worlds(number: int) -> range:
        return range(max(2, round(number * fraction)))

    if section == "hard":
        for kind, n_spins, n_samples, number in HARD:
            yield from ((hard, (kind, n_spins, n_samples, seed)) for seed in worlds(number))
    elif section == "few":
        yield from ((few, (seed,)) for seed in worlds(20))
    elif section == "field":
        for cell, n in itertools.product(CELLS, FRACTIONS_OF_N):
            number = 300 if n == 1.0 else 60
            yield from ((field, (cell, n, seed)) for seed in worlds(number))
    elif section == "lattices":
        for setting, seed in itertools.product(LATTICES, worlds(10)):
            yield lattices, (*setting, seed)
    elif section == "calibration":
        kinds = ("regular", "Erdos-Renyi")
        each = itertools.product((60, 200, 2000), worlds(200))
        yield from ((null, arguments) for arguments in each)
        each = itertools.product(kinds, (0.5, 0.75, 1, 2, 5), worlds(200))
        yield from ((planted, arguments) for arguments in each)
        each = itertools.product(kinds, (0.75, 1.25, 2, 5), worlds(100))
        yield from ((clean, arguments) for arguments in each)
    else:
        each = itertools.product((200, 500, 2000), worlds(10))
        yield from ((strengths, arguments) for arguments in each)


def run(trial: Trial) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsingkitWarning)
        return trial[0](*trial[1])


# Results


def means(table: list[Row]) -> list[Row]:
    """One row for each setting and method: means over trials, and the band of exact graphs."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for one in table:
        groups.setdefault((one["section"], one["setting"], one["method"]), []).append(one)
    rows = []
    for key, group in groups.items():
        n_exact = sum(one["exact"] for one in group)
        band = binomtest(n_exact, len(group)).proportion_ci(0.95, method="exact")
        found = dict(zip(("section", "setting", "method"), key, strict=True)) | {
            "worlds": len(group),
            "exact": n_exact,
        }
        found |= {"low": float(band.low), "high": float(band.high)}
        for what in ("precision", "recall", "f1", "invented", "clean"):
            if what in group[0]:
                found[what] = float(np.mean([one[what] for one in group]))
        if "held" in group[0]:
            found["coverage"] = sum(one["held"] for one in group) / max(
                sum(one["intervals"] for one in group), 1
            )
            found["coverage_known"] = sum(one["held_of_all"] for one in group) / sum(
                one["all"] for one in group
            )
        rows.append(found)
    return rows


def report(rows: list[Row]) -> str:
    """For people: every setting; of the twenty penalties only the best."""
    columns = {
        "precision": "precision",
        "recall": "recall",
        "f1": "F1",
        "coverage": "coverage",
        "coverage_known": "graph known",
        "clean": "none false",
    }
    shown, best = [["section", "setting", "method", "worlds", "exact", *columns.values()]], {}
    for one in rows:
        if "penalty" in one["method"]:
            best[one["setting"]] = max(
                best.get(one["setting"], one), one, key=lambda candidate: candidate["exact"]
            )
    for one in [one for one in rows if "penalty" not in one["method"]] + list(best.values()):
        method = (
            "l1, oracle threshold, best of 20 penalties"
            if "penalty" in one["method"]
            else one["method"]
        )
        numbers = [f"{one[what]:.3f}" if what in one else "" for what in columns]
        shown.append(
            [
                one["section"],
                one["setting"],
                method,
                str(one["worlds"]),
                str(one["exact"]),
                *numbers,
            ]
        )
    return markdown([shown[0], *sorted(shown[1:])])


def picture(rows: list[Row]) -> Figure:
    """Success against n in the small worlds."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    for axes, cell in zip(figure.subplots(1, len(CELLS), sharey=True), CELLS, strict=True):
        curves: dict[str, NDArray[np.float64]] = {}
        for fraction in FRACTIONS_OF_N:
            n = round(fraction * CELLS[cell][3])
            here = [one for one in rows if one["setting"] == f"{cell}, n={n}"]
            best = max(
                (one for one in here if "penalty" in one["method"]), key=lambda one: one["exact"]
            )
            for one in [
                *(one for one in here if "penalty" not in one["method"]),
                best | {"method": "l1, oracle threshold and penalty"},
            ]:
                point = np.array([[n, one["exact"] / one["worlds"], one["low"], one["high"]]])
                curves[one["method"]] = np.concatenate(
                    [curves.get(one["method"], np.empty((0, 4))), point]
                )
        for (method, curve), marker in zip(curves.items(), "os^", strict=True):
            errors = np.abs(curve[:, 2:].T - curve[:, 1])
            axes.errorbar(
                curve[:, 0], curve[:, 1], errors, marker=marker, capsize=2, label=method, alpha=0.8
            )
        axes.set(title=cell, xlabel="samples", xscale="log", ylim=(-0.02, 1.02))
        shown = [round(fraction * CELLS[cell][3]) for fraction in FRACTIONS_OF_N[::2]]
        axes.set_xticks(shown, [str(n) for n in shown])
        axes.minorticks_off()
        axes.axvline(CELLS[cell][3], color="grey", linewidth=0.7, linestyle=":")
    figure.axes[0].set_ylabel("fraction of exact graphs")
    figure.axes[0].legend(fontsize=8)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sections = ["hard", "few", "field", "lattices", "calibration", "unequal"]
    parser.add_argument(
        "sections", nargs="*", default=sections, metavar="section", help=", ".join(sections)
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the worlds")
    parser.add_argument("--workers", type=int, default=-1, help="processes (default: one a core)")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    if unknown := set(options.sections) - set(sections):
        parser.error(
            f"no such section: {', '.join(sorted(unknown))}; choose from {', '.join(sections)}"
        )
    options.output.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    for section in options.sections:
        todo = list(trials(section, 0.1 if options.quick else 1.0))
        with Parallel(n_jobs=options.workers, return_as="generator") as parallel:
            done = tqdm(
                parallel(delayed(run)(trial) for trial in todo),
                total=len(todo),
                desc=section,
                unit="world",
            )
            rows = means([one for found in done for one in found])
        write_table(options.output / f"{NAME}_{section}.csv", rows)
        if section == "field":
            write_picture(options.output / f"{NAME}.png", picture(rows))
        print(report(rows), flush=True)
    write_settings(options.output / f"{NAME}.json", vars(options), time.perf_counter() - start)


if __name__ == "__main__":
    main()
