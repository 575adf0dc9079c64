"""Figure 5: ridge estimates of the first three generations; the second is not centred at zero.

[fig:Distr-N200-K400-lamda10]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from isingkit.arrays import FloatArray
from isingkit.estimators.ridge import RidgeIsing
from isingkit.experiments.pictures import legend_below
from isingkit.experiments.runner import Row, Table, chosen, column, seed_of
from isingkit.experiments.snapshots import DEFAULT, snapshots
from isingkit.theory.ridge import random_regular as random_regular_theory
from isingkit.worlds.graphs import random_regular

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = (
    "Ridge estimates in the first three generations "
    "(random regular, c = 3, K = 0.4, 10 samples per spin)"
)
CLAIM = (
    "At ridge 10 the estimates of the second generation are far from centred at zero; "
    "at ridge 0.1 they look as if they were."
)
SPREAD = (
    "the standard deviation of theory is that of all estimates, nearly all of which are far from "
    "the spin; those of the first generation spread more where the ridge is large, which the "
    "theory does not say"
)
GENERATIONS = 3
EDGES = np.linspace(-0.15, 0.45, 121)  # of the histogram's bins


@dataclass(frozen=True, slots=True)
class Config:
    """N = 200, K = 0.4 (the paper's caption has a misprint), ridge 0.1 and 10, 1000 worlds."""

    n_spins: int = 200
    degree: int = 3
    coupling: float = 0.4
    samples_per_spin: float = 10.0
    ridges: tuple[float, ...] = (0.1, 10.0)
    n_worlds: int = 1000
    block: int = 25
    seed: int = 1
    sampling: str = DEFAULT

    @staticmethod
    def quick() -> "Config":
        return Config(n_spins=200, n_worlds=6, block=3)


def points(config: Config) -> list[Row]:
    return [
        {"ridge": ridge, "first": first}
        for ridge in config.ridges
        for first in range(0, config.n_worlds, config.block)
    ]


def measure(config: Config, point: Row) -> Row:
    """By generation: histogram of estimates; their number, sum and sum of squares.

    Estimates are made positive by the sign of the path. Spins that two shortest paths lead to are
    left out: on a tree there is one.
    """
    counts = np.zeros((GENERATIONS, len(EDGES) - 1))
    sums = np.zeros((GENERATIONS, 3))
    last = min(point["first"] + config.block, config.n_worlds)
    for world in range(point["first"], last):
        by_generation = _estimates_by_generation(config, point["ridge"], world)
        for g, values in enumerate(by_generation):
            counts[g] += np.histogram(values, EDGES)[0]
            sums[g] += len(values), values.sum(), (values**2).sum()
    return {"counts": counts.tolist(), "sums": sums.tolist()}


def _estimates_by_generation(config: Config, ridge: float, world: int) -> list[FloatArray]:
    """Estimates of one world times the sign of the path that leads there."""
    seed = seed_of(config.seed, "histogram", world)
    model = random_regular(
        n_spins=config.n_spins, degree=config.degree, coupling=config.coupling, random_state=seed
    )
    n_samples = round(config.samples_per_spin * config.n_spins)
    samples = snapshots(model, n_samples, seed_of(seed, "samples"), config.sampling)
    estimates = RidgeIsing(ridge=ridge, fit_fields=False).fit(samples).estimates_
    signs = np.sign(model.couplings.toarray())
    distance = shortest_path(np.abs(signs), unweighted=True)
    path_signs = np.eye(config.n_spins)
    n_paths = np.eye(config.n_spins)
    found = []
    for generation in range(1, GENERATIONS + 1):
        path_signs = path_signs @ signs
        n_paths = n_paths @ np.abs(signs)
        here = (distance == generation) & (n_paths == 1)
        found.append(estimates[here] * path_signs[here])
    return found


def predict(config: Config, point: Row) -> tuple[list[float], float]:
    """Mean of each generation and the standard deviation of all."""
    n_regressors = config.n_spins - 1
    finite = config.n_spins / n_regressors
    alpha = config.samples_per_spin * finite
    p = random_regular_theory(config.degree, config.coupling, alpha, point["ridge"] * finite)
    means = [float(mean) for mean in p.means[:GENERATIONS]]
    return means, float(np.sqrt(p.R / n_regressors))


def tabulate(config: Config, records: list[Row]) -> Table:
    """A row for each bin; means and standard deviations of its generation beside predicted ones."""
    rows = []
    for ridge in config.ridges:
        results = [record["result"] for record in records if record["point"]["ridge"] == ridge]
        counts = np.sum([result["counts"] for result in results], axis=0)
        sums = np.sum([result["sums"] for result in results], axis=0)
        means, std = predict(config, {"ridge": ridge})
        for g in range(GENERATIONS):
            facts = {"ridge": ridge, "generation": g + 1, **_moments(*sums[g])}
            facts |= {"predicted_mean": means[g], "predicted_std": std}
            rows += [facts | place for place in _bins(counts[g], sums[g, 0])]
    return rows


def _moments(n: float, total: float, squares: float) -> Row:
    mean = total / n
    std = np.sqrt(squares / n - mean**2)
    return {"number": int(n), "mean": mean, "std": float(std)}


def _bins(counts: FloatArray, n: float) -> Table:
    width = EDGES[1] - EDGES[0]
    density = counts / n / width
    return [
        {"from": round(float(edge), 4), "density": float(value)}
        for edge, value in zip(EDGES[:-1], density, strict=True)
    ]


def agreement(table: Table) -> list[str]:
    lines = []
    for ridge, generation in dict.fromkeys((row["ridge"], row["generation"]) for row in table):
        row = chosen(table, ridge=ridge, generation=generation)[0]
        difference = row["mean"] - row["predicted_mean"]
        mean = f"mean {row['mean']:.5f}, theory {row['predicted_mean']:.5f}"
        std = f"standard deviation {row['std']:.5f}, far from the spin {row['predicted_std']:.5f}"
        lines.append(
            f"ridge {ridge:g}, generation {generation}: {mean} (off by {difference:+.5f}); {std}"
        )
    return [*lines, SPREAD]


def plot(table: Table) -> "Figure":
    from matplotlib.figure import Figure

    ridges = list(dict.fromkeys(column(table, "ridge")))
    figure = Figure(figsize=(11, 0.6 + 2.8 * len(ridges)), layout="constrained")
    figure.suptitle(TITLE)
    grid = figure.subplots(len(ridges), GENERATIONS, squeeze=False)
    for line, ridge in zip(grid, ridges, strict=True):
        for generation, axes in enumerate(line, start=1):
            _draw_histogram(axes, chosen(table, ridge=ridge, generation=generation))
            axes.set(title=f"ridge {ridge:g}, generation {generation}")
    legend_below(figure, grid[0][0])
    return figure


def _draw_histogram(axes: Any, rows: Table) -> None:
    edges = column(rows, "from")
    edges.append(2 * edges[-1] - edges[-2])
    axes.stairs(column(rows, "density"), edges, fill=True, alpha=0.5)
    axes.axvline(rows[0]["predicted_mean"], color="black", ls="--", label="predicted mean")
    axes.axvline(0, color="gray", lw=0.6)
    axes.set(xlabel="estimate times sign of the path")
