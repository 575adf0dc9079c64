"""How well each method finds the couplings of four kinds of worlds, from high to low temperatures.

The protocol of the mean-field literature, e.g. Ricci-Tersenghi, "The Bethe approximation for
solving the inverse Ising problem", J. Stat. Mech. P08015 (2012). The reconstruction error is

    Delta = sqrt( sum_{i<j} (J^_ij - J_ij)^2 / sum_{i<j} J_ij^2 ),        J = beta J0,

so that 0 is perfect and 1 is what no couplings at all would have. Without fields; J0 is

- "random regular": three neighbours each, J0 = -1 or +1;
- "Erdos-Renyi": three neighbours on average, J0 = -1 or +1;
- "2D lattice": periodic, J0 = -1 or +1;
- "SK": all pairs, J0 Gaussian of variance 1 / N.

Samples are drawn exactly, from all 2^N states, so that low temperatures are sampled right. All
methods see the same data, and all temperatures share worlds and random numbers. Methods estimate
parameters here, not structure: thresholds are 0; l1 penalties are those that theory suggests
(`known_methods`), and methods without l1 get --l2. The two-stage estimator is left out, for it is
the linear one where it prunes nothing. A fit that ends in an error or a warning of isingkit counts
as missing, and the table says how many do; means are over the others.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import networkx
import numpy as np
from joblib import Parallel, cpu_count, delayed
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from results import Row, markdown, write_picture, write_settings, write_table
from tqdm import tqdm

from isingkit import IsingModel, __version__, erdos_renyi, from_graph, random_regular
from isingkit.comparison import known_methods
from isingkit.exceptions import IsingkitError, IsingkitWarning
from isingkit.experiments.runner import chosen, read, seed_of
from isingkit.worlds.exact import enumeration

NAME = "error_against_temperature"
WORLDS = ("random regular", "Erdos-Renyi", "2D lattice", "SK")
BETAS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0)
SIDES = {12: (3, 4), 16: (4, 4), 18: (3, 6), 20: (4, 5), 24: (4, 6)}  # lattices with as many spins
LOOKS = {
    "linear": ("C0", "-", "o"),
    "ridge": ("C0", "--", "s"),
    "lasso": ("C0", ":", "v"),
    "naive mean field": ("C2", "-", "o"),
    "TAP": ("C2", "--", "s"),
    "Bethe": ("C2", "-.", "^"),
    "Sessak-Monasson": ("C2", ":", "v"),
    "pseudolikelihood": ("C3", "-", "o"),
    "l1 pseudolikelihood": ("C3", "--", "s"),
    "eLasso": ("C3", "-.", "^"),
    "screening": ("C4", "-", "o"),
    "log screening": ("C4", "--", "s"),
    "probability flow": ("C4", "-.", "^"),
    "maximum likelihood": ("k", "-", "o"),
    "boltzmann": ("k", "--", "s"),
    "abess": ("C1", "-", "D"),
    "auto": ("C6", "-", "*"),
}


def couplings_at_one(kind: str, n_spins: int, seed: int) -> NDArray[np.float64]:
    """J0, the couplings at beta = 1."""
    with warnings.catch_warnings():
        # low temperatures are fine: sampling is exact
        warnings.simplefilter("ignore", IsingkitWarning)
        if kind == "random regular":
            model = random_regular(n_spins=n_spins, degree=3, coupling=1.0, random_state=seed)
        elif kind == "Erdos-Renyi":
            model = erdos_renyi(n_spins=n_spins, mean_degree=3, coupling=1.0, random_state=seed)
        elif kind == "2D lattice":
            graph = networkx.grid_2d_graph(*SIDES[n_spins], periodic=True)
            model = from_graph(graph, coupling=1.0, random_state=seed)
        else:
            rng = np.random.default_rng(seed)
            upper = np.triu(rng.normal(scale=n_spins**-0.5, size=(n_spins, n_spins)), 1)
            model = IsingModel(upper + upper.T)
    return np.asarray(model.couplings.toarray())


def estimator_of(method: str, n_spins: int, n_samples: int, l2: float) -> Any:
    """The method as an estimator of parameters."""
    estimator = known_methods(n_spins, n_samples)[method]
    if method == "abess":  # has no knobs here: it chooses its edges by itself
        return estimator
    wanted = {"threshold": 0.0, "ridge": 0.1}  # the ridge is the paper's own
    if getattr(estimator, "l1", 0.0) == 0:
        wanted["l2"] = l2
    return estimator.set_params(
        **{name: value for name, value in wanted.items() if name in estimator.get_params()}
    )


def measure(options: argparse.Namespace, kind: str, repeat: int, beta: float) -> list[Row]:
    """One data set, every method: Delta, or why there is none."""
    couplings = beta * couplings_at_one(kind, options.n_spins, seed_of(options.seed, kind, repeat))
    data = enumeration(IsingModel(couplings)).sample(
        n_samples=options.n_samples, random_state=seed_of(options.seed, kind, repeat, "samples")
    )
    rows = []
    for method in options.methods:
        row: Row = {
            "world": kind,
            "beta": beta,
            "repeat": repeat,
            "method": method,
            "delta": None,
            "problem": None,
        }
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", IsingkitWarning)
                fit = estimator_of(method, options.n_spins, options.n_samples, options.l2).fit(data)
            off = fit.model_.couplings.toarray() - couplings
            row["delta"] = float(np.sqrt((off**2).sum() / (couplings**2).sum()))
        except (IsingkitError, IsingkitWarning) as problem:
            row["problem"] = type(problem).__name__
        rows.append(row | {"seconds": time.perf_counter() - start})
    return rows


def averages(options: argparse.Namespace, measured: list[Row]) -> list[Row]:
    """One row for each world, temperature and method: mean Delta, its standard error, and how many
    fits failed.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in measured:
        groups.setdefault((row["world"], row["beta"], row["method"]), []).append(row)
    table = []
    for key in (
        (kind, beta, method)
        for kind in options.world
        for beta in options.betas
        for method in options.methods
    ):
        values = np.array([row["delta"] for row in groups[key] if row["delta"] is not None])
        problems = sorted({row["problem"] for row in groups[key] if row["problem"]})
        row: Row = dict(zip(("world", "beta", "method"), key, strict=True))
        row |= {
            "fits": len(groups[key]),
            "failed": len(groups[key]) - len(values),
            "why": " ".join(problems),
        }
        row["delta"] = float(values.mean()) if len(values) else None
        row["standard_error"] = (
            float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
        )
        row["seconds"] = float(np.mean([one["seconds"] for one in groups[key]]))
        table.append(row | {"seed": options.seed, "version": __version__})
    return table


def plot(table: list[Row]) -> Figure:
    """A panel for each world: Delta against beta.

    Hollow where some fits failed, nothing where all did.
    """
    kinds = list(dict.fromkeys(row["world"] for row in table))
    methods = list(dict.fromkeys(row["method"] for row in table))
    betas = sorted({row["beta"] for row in table})
    figure = Figure(figsize=(12, 9), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for axis, kind in zip(axes, kinds, strict=False):
        for method in methods:
            _draw_curve(axis, chosen(table, world=kind, method=method), method)
        axis.axhline(1, color="0.6", lw=0.8, zorder=0)
        axis.set(title=kind, xscale="log", yscale="log", ylim=(0.02, 5))
        axis.set_xticks(betas, [f"{beta:g}" for beta in betas])
        axis.minorticks_off()
        axis.grid(lw=0.3)
    for axis in axes[len(kinds) :]:
        axis.set_visible(False)
    figure.supxlabel("inverse temperature beta")
    figure.supylabel("reconstruction error Delta (1: no couplings at all)")
    looks = [dict(zip(("color", "ls", "marker"), LOOKS[method], strict=True)) for method in methods]
    lines = [Line2D([], [], lw=1, ms=4, **look) for look in looks]
    figure.legend(lines, methods, loc="outside right upper", frameon=False)
    return figure


def _draw_curve(axis: Any, rows: list[Row], method: str) -> None:
    curve = [row for row in rows if "delta" in row]
    colour, line, marker = LOOKS[method]
    beta = [row["beta"] for row in curve]
    delta = [row["delta"] for row in curve]
    error = [row.get("standard_error", np.nan) for row in curve]
    axis.errorbar(beta, delta, error, color=colour, ls=line, lw=1, elinewidth=0.8)
    for some_failed in (False, True):
        shown = [row for row in curve if (row["failed"] > 0) == some_failed]
        x = [row["beta"] for row in shown]
        y = [row["delta"] for row in shown]
        inside = "white" if some_failed else colour
        axis.plot(x, y, ls="", marker=marker, ms=4, color=colour, mfc=inside)


def report(table: list[Row], kind: str) -> str:
    """Delta of every method and temperature of one kind of worlds, and how many fits failed."""
    here = chosen(table, world=kind)
    methods = list(dict.fromkeys(row["method"] for row in here))
    betas = list(dict.fromkeys(row["beta"] for row in here))
    rows = [[kind, *(f"beta {beta:g}" for beta in betas)]]
    for method in methods:
        cells = [chosen(here, method=method, beta=beta)[0] for beta in betas]
        rows.append([method, *map(_cell, cells)])
    return markdown(rows)


def _cell(row: Row) -> str:
    value = f"{row['delta']:.3g}" if "delta" in row else "-"
    return value + (f" ({row['failed']} failed)" if row["failed"] else "")


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Options, with every default filled in."""
    known = [name for name in known_methods(16, 1000) if name in LOOKS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--world", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--n-spins", type=int, choices=SIDES, default=16, help="(default 16)")
    parser.add_argument("--n-samples", type=int, default=5000, help="(default 5000)")
    parser.add_argument(
        "--betas",
        nargs="+",
        type=float,
        default=list(BETAS),
        help=f"(default {' '.join(map(str, BETAS))})",
    )
    parser.add_argument("--repeats", type=int, default=5, help="worlds of each kind (default 5)")
    parser.add_argument(
        "--l2",
        type=float,
        default=1e-4,
        help="penalty of likelihoods and probability flow (default 1e-4)",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=known,
        metavar="METHOD",
        help=f"of {', '.join(known)}; all but boltzmann",
    )
    parser.add_argument(
        "--quick", action="store_true", help="two worlds of each kind, four temperatures, no abess"
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
    if min(options.betas) <= 0 or options.repeats < 1 or options.n_samples < 1:
        parser.error("expected betas, repeats and samples above 0")
    left_out = {"boltzmann"}
    if options.quick:
        options.repeats, options.betas = (
            min(options.repeats, 2),
            options.betas[1::2] or options.betas,
        )
        left_out |= {"abess"}
    options.betas = sorted(set(options.betas))
    options.methods = options.methods or [name for name in known if name not in left_out]
    return options


def main() -> None:
    options = parsed()
    options.output.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    points = [
        (kind, repeat, beta)
        for repeat in range(options.repeats)
        for kind in options.world
        for beta in options.betas
    ]
    pool = Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    work = pool(delayed(measure)(options, *point) for point in points)
    measured = [row for rows in tqdm(work, total=len(points), unit="data set") for row in rows]
    measured.sort(key=lambda row: row["repeat"])  # sums must not depend on who was quicker
    write_table(options.output / f"{NAME}.csv", averages(options, measured))
    table = read(NAME, options.output)
    write_picture(options.output / f"{NAME}.png", plot(table))
    write_settings(options.output / f"{NAME}.json", vars(options), time.perf_counter() - start)
    print("\n\n".join(report(table, kind) for kind in options.world))


if __name__ == "__main__":
    main()
