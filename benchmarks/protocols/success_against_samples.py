"""How many samples each method needs to find a whole network without an error: the 45-of-45 rule.

The protocol of Lokhov, Vuffray, Misra and Chertkov, "Optimal structure and parameter learning of
Ising models", Science Advances 4 (2018): at each number n of samples on a geometric grid, 45
independent data sets of one world. A trial succeeds where the graph is exactly right. All 45 right
means a probability of success above 0.95 with 90 percent confidence, for 0.95^45 = 0.0995.

Two rules make a graph of a method's estimates:

- "own": the method's own knobs, which know n and the number of spins and nothing of the truth
  (`known_methods`);
- "oracle": |estimate| > K / 2, half the true strength of couplings, as in that paper. Nobody who
  has only data can do this. Estimates are taken with the method's own penalties, before its own
  threshold; what penalties set to zero stays zero.

Data sets are nested (the first n rows of one long data set), drawn exactly, and the same for all
methods.

Because n grows on one data set, and because a rule that is wrong one time in twenty passes 45 of 45
now and then, two answers are given: `first`, the first n with 45 of 45, and `from_then_on`, the n
from which on every n of the grid has them.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed
from matplotlib.figure import Figure
from numpy.typing import NDArray
from results import Row, markdown, write_picture, write_settings, write_table
from scipy.stats import binomtest
from tqdm import tqdm

from isingkit import IsingModel, PackedSpins, __version__, exact, random_regular, square_lattice
from isingkit.comparison import known_methods
from isingkit.exceptions import IsingkitError, IsingkitWarning
from isingkit.experiments.runner import chosen, read, seed_of

NAME = "success_against_samples"
RULES = ("own", "oracle")
WORLDS = ("regular", "lattice")
CONFIDENCE = 0.95  # of the bands: two-sided, Clopper and Pearson's
METHODS = (
    "auto",
    "linear",
    "two-stage",
    "lasso",
    "Bethe",
    "pseudolikelihood",
    "l1 pseudolikelihood",
    "eLasso",
    "screening",
    "log screening",
    "maximum likelihood",
    "abess",
)


# Worlds and data


def world(options: argparse.Namespace, kind: str) -> IsingModel:
    """A world whose couplings have one strength and both signs."""
    shared = {"coupling": options.coupling, "random_state": seed_of(options.seed, kind)}
    with warnings.catch_warnings():
        # low temperatures are fine: sampling is exact
        warnings.simplefilter("ignore", IsingkitWarning)
        if kind == "regular":
            return random_regular(n_spins=options.n_spins, degree=options.degree, **shared)
        return square_lattice(side=options.side, **shared)


def samples(options: argparse.Namespace, kind: str, truth: IsingModel, trial: int) -> PackedSpins:
    """The longest data set of a trial; its first n rows are the data of n."""
    return exact(truth).sample(
        n_samples=max(sizes(options)), random_state=seed_of(options.seed, kind, trial)
    )


def sizes(options: argparse.Namespace) -> list[int]:
    """A geometric grid of n, the last included."""
    steps = np.arange(0, np.log2(options.last / options.first) + 1e-9, 1 / options.per_doubling)
    return [round(options.first * 2**step) for step in steps]


# One trial


def graphs(method: str, data: PackedSpins, strength: float) -> dict[str, NDArray[np.bool_]] | None:
    """The graph by each rule; None where the method refuses the data."""
    estimator = known_methods(data.n_spins, data.n_samples)[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsingkitWarning)
        try:
            estimator.fit(data)
        except IsingkitError:
            return None
    own = estimator.model_.couplings.toarray()
    estimates = getattr(estimator, "estimates_", own)  # abess has its couplings only
    return {"own": own != 0, "oracle": np.abs(estimates + estimates.T) / 2 > strength / 2}


def mistakes(
    method: str, data: PackedSpins, truth: IsingModel
) -> dict[str, tuple[int, int]] | None:
    """By each rule: edges missed and edges invented."""
    edges, strength = truth.couplings.toarray() != 0, float(np.abs(truth.couplings.data).min())
    found = graphs(method, data, strength)
    if found is None:
        return None
    return {
        rule: (int((edges & ~graph).sum() // 2), int((graph & ~edges).sum() // 2))
        for rule, graph in found.items()
    }


# All trials at every n


def measure_trial(options: argparse.Namespace, kind: str, method: str, trial: int) -> list[Row]:
    """One data set, one method, every n and both rules."""
    truth, rows = world(options, kind), []
    data = samples(options, kind, truth, trial)
    for n in sizes(options):
        found = mistakes(method, data[:n], truth)
        for rule in RULES:
            missed, invented = (None, None) if found is None else found[rule]
            rows.append(
                {
                    "world": kind,
                    "method": method,
                    "rule": rule,
                    "n": n,
                    "missed": missed,
                    "invented": invented,
                }
            )
    return rows


def success_rates(options: argparse.Namespace, measured: list[Row]) -> list[Row]:
    """One row for each world, method, rule and n.

    The fraction of trials that succeed, its band, and the mistakes of an average trial.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in measured:
        groups.setdefault((row["world"], row["method"], row["rule"], row["n"]), []).append(row)
    table = []
    for key in (
        (k, m, r, n)
        for k in options.world
        for m in options.methods
        for r in RULES
        for n in sizes(options)
    ):
        done = [row for row in groups[key] if row["missed"] is not None]
        n_right = sum(row["missed"] + row["invented"] == 0 for row in done)
        band = binomtest(n_right, options.trials).proportion_ci(CONFIDENCE, method="exact")
        row = dict(zip(("world", "method", "rule", "n"), key, strict=True)) | {
            "trials": options.trials,
            "successes": n_right,
            "refused": options.trials - len(done),
            "share": n_right / options.trials,
            "low": float(band.low),
            "high": float(band.high),
        }
        for what in ("missed", "invented"):
            row[what] = float(np.mean([one[what] for one in done])) if done else None
        table.append(row | {"seed": options.seed, "version": __version__})
    return table


def answers(table: list[Row]) -> list[Row]:
    """One row for each world, method and rule: `first` and `from_then_on`, as said above; None
    where there is no such n.
    """
    rows = []
    for kind, method, rule in dict.fromkeys(
        (row["world"], row["method"], row["rule"]) for row in table
    ):
        curve = chosen(table, world=kind, method=method, rule=rule)
        passed = [row["n"] for row in curve if row["successes"] == row["trials"]]
        last_failure = max(
            (row["n"] for row in curve if row["successes"] < row["trials"]), default=0
        )
        lasting = [n for n in passed if n > last_failure]
        first, from_then_on = min(passed, default=None), min(lasting, default=None)
        rows.append(
            {
                "world": kind,
                "method": method,
                "rule": rule,
                "first": first,
                "from_then_on": from_then_on,
            }
        )
    return rows


# The first answer alone


def search_first(options: argparse.Namespace, kind: str, method: str) -> list[Row]:
    """The first n with all trials right, by each rule; an n is left at the first failure."""
    truth = world(options, kind)
    data = [samples(options, kind, truth, trial) for trial in range(options.trials)]
    first: dict[str, int | None] = dict.fromkeys(RULES)
    for n in sizes(options):
        in_play = [rule for rule in RULES if first[rule] is None]
        for each in data:
            found = mistakes(method, each[:n], truth) if in_play else None
            in_play = [rule for rule in in_play if found is not None and found[rule] == (0, 0)]
        first |= dict.fromkeys(in_play, n)
    return [{"world": kind, "method": method, "rule": rule, "first": first[rule]} for rule in RULES]


# What is shown


def plot(table: list[Row], found: list[Row]) -> Figure:
    """One panel for each method: success rates against n; a mark at the first 45 of 45."""
    methods, kinds = (list(dict.fromkeys(row[key] for row in table)) for key in ("method", "world"))
    n_columns = min(4, len(methods))
    n_rows = -(-len(methods) // n_columns)
    figure = Figure(figsize=(1 + 3 * n_columns, 0.8 + 2.2 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axis, method in zip(axes, methods, strict=False):
        for place, (kind, rule) in enumerate((kind, rule) for kind in kinds for rule in RULES):
            curve = chosen(table, world=kind, method=method, rule=rule)
            n, rate, low, high = (
                [row[key] for row in curve] for key in ("n", "share", "low", "high")
            )
            style = {"color": f"C{kinds.index(kind)}", "ls": "-" if rule == "own" else "--"}
            axis.fill_between(
                n, low, high, color=style["color"], alpha=0.12 if rule == "own" else 0.06, lw=0
            )
            axis.plot(n, rate, lw=1.3, label=f"{kind}, {rule} threshold", **style)
            first = chosen(found, world=kind, method=method, rule=rule)[0].get("first")
            if first is not None:
                filled = style["color"] if rule == "own" else "none"
                axis.plot(
                    first,
                    1.06 + 0.06 * (place // 2),
                    marker="v",
                    color=style["color"],
                    mfc=filled,
                    ms=5,
                    clip_on=False,
                )
        axis.set(title=method, ylim=(-0.03, 1.17), yticks=[0, 0.25, 0.5, 0.75, 1])
        axis.set_xscale("log", base=2)
        axis.grid(lw=0.3)
    for axis in axes[len(methods) :]:
        axis.set_visible(False)
    figure.supxlabel("samples n")
    figure.supylabel("fraction of trials without an error")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure


def report(found: list[Row]) -> str:
    """The answers side by side: first n with all trials right, and in brackets the n from which on
    it stays so.
    """
    kinds, methods = (list(dict.fromkeys(row[key] for row in found)) for key in ("world", "method"))
    rows = [["method", *(f"{kind}, {rule}" for kind in kinds for rule in RULES)]]
    for method in methods:
        each = [
            chosen(found, world=kind, method=method, rule=rule)[0]
            for kind in kinds
            for rule in RULES
        ]
        rows.append([method, *map(_cell, each)])
    return markdown(rows)


def _cell(answer: Row) -> str:
    first, lasting = (answer.get(key) or "none" for key in ("first", "from_then_on"))
    return (
        f"{first}" if "from_then_on" not in answer or first == lasting else f"{first} ({lasting})"
    )


# The command line


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Options, with every default filled in."""
    known = list(known_methods(16, 1000))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--world",
        nargs="+",
        choices=WORLDS,
        default=["regular"],
        help="random regular, or periodic square lattice",
    )
    parser.add_argument(
        "--n-spins",
        type=int,
        default=16,
        help="of the random regular graph, at most 24 (default 16)",
    )
    parser.add_argument(
        "--degree", type=int, default=3, help="of the random regular graph (default 3)"
    )
    parser.add_argument(
        "--side", type=int, choices=(3, 4), default=4, help="of the lattice (default 4)"
    )
    parser.add_argument(
        "--coupling",
        type=float,
        default=0.4,
        help="K, strength of all couplings; signs are random (default 0.4)",
    )
    parser.add_argument(
        "--methods", nargs="+", choices=known, metavar="METHOD", help=f"of {', '.join(known)}"
    )
    parser.add_argument("--trials", type=int, default=45, help="data sets at each n (default 45)")
    parser.add_argument("--first", type=int, default=64, help="smallest n (default 64)")
    parser.add_argument("--last", type=int, default=4096, help="largest n (default 4096)")
    parser.add_argument(
        "--per-doubling", type=int, default=2, help="steps of the grid from n to 2 n (default 2)"
    )
    parser.add_argument(
        "--answer-only",
        action="store_true",
        help="leave an n at its first failure: no success rates, no bands, no picture",
    )
    parser.add_argument(
        "--quick", action="store_true", help="four quick methods, 15 trials, a coarse grid"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--jobs", type=int, default=cpu_count(), help="processes (default: as many as processors)"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("results"),
        help="folder for results (default ./results)",
    )
    options = parser.parse_args(arguments)
    if (
        not 0 < options.first < options.last
        or options.per_doubling < 1
        or options.trials < 1
        or options.coupling <= 0
    ):
        parser.error("expected 0 < first < last, and a coupling, trials and steps above 0")
    if options.quick:
        options.trials, options.per_doubling = min(options.trials, 15), 1
        options.methods = options.methods or ["linear", "Bethe", "l1 pseudolikelihood", "screening"]
    options.methods = options.methods or [name for name in METHODS if name in known]
    return options


def results_of(options: argparse.Namespace) -> Iterator[list[Row]]:
    """Rows of one unit of work after another, in any order."""
    pool = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    pairs = [(kind, method) for kind in options.world for method in options.methods]
    if options.answer_only:
        units = [delayed(search_first)(options, *pair) for pair in pairs]
    else:
        units = [
            delayed(measure_trial)(options, *pair, trial)
            for trial in range(options.trials)
            for pair in pairs
        ]
    return iter(
        tqdm(pool(units), total=len(units), unit="search" if options.answer_only else "trial")
    )


def main() -> None:
    options = parsed()
    options.output.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    measured = [row for rows in results_of(options) for row in rows]
    if options.answer_only:
        order = [(kind, method) for kind in options.world for method in options.methods]
        found = sorted(measured, key=lambda row: order.index((row["world"], row["method"])))
    else:
        write_table(options.output / f"{NAME}.csv", success_rates(options, measured))
        table = read(NAME, options.output)
        found = answers(table)
        write_picture(options.output / f"{NAME}.png", plot(table, found))
    write_table(options.output / f"{NAME}_answers.csv", found)
    write_settings(options.output / f"{NAME}.json", vars(options), time.perf_counter() - start)
    print(report(found))


if __name__ == "__main__":
    main()
