"""Figure 5: ridge estimates of the first three generations; the second is not centred at zero.

[fig:Distr-N200-K400-lamda10]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from isingkit.estimators.ridge import RidgeIsing
from isingkit.experiments.runner import Row, Table, chosen, column, seed_of
from isingkit.theory.ridge import random_regular as random_regular_theory
from isingkit.worlds.graphs import random_regular
from isingkit.worlds.sampling import sample

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Ridge estimates in the first three generations (random regular, c = 3, K = 0.4, 10 samples per spin)"
CLAIM = "At ridge 10 the estimates of the second generation are far from centred at zero; at ridge 0.1 they look as if they were."
EDGES = np.linspace(-0.15, 0.45, 121)


@dataclass(frozen=True, slots=True)
class Config:
    """N = 200, K = 0.4 (the paper's caption has a misprint), ridge 0.1 and 10, all spins of 1000
    worlds.
    """

    n_spins: int = 200
    degree: int = 3
    coupling: float = 0.4
    samples_per_spin: float = 10.0
    ridges: tuple[float, ...] = (0.1, 10.0)
    n_worlds: int = 1000
    block: int = 25
    seed: int = 1

    @staticmethod
    def quick() -> "Config":
        return Config(n_spins=200, n_worlds=6, block=3)


def points(config: Config) -> list[Row]:
    return [
        {"ridge": ridge, "first": first}
        for ridge in config.ridges
        for first in range(0, config.n_worlds, config.block)
    ]


def measure(config: Config, point: Row) -> Any:
    """By generation: histogram of estimates, made positive by the sign of the path; their number,
    sum and sum of squares.

    Spins that two shortest paths lead to are left out: on a tree there is one.
    """
    counts, sums = np.zeros((3, len(EDGES) - 1)), np.zeros((3, 3))
    for world in range(point["first"], min(point["first"] + config.block, config.n_worlds)):
        seed = seed_of(config.seed, "histogram", world)
        model = random_regular(
            n_spins=config.n_spins,
            degree=config.degree,
            coupling=config.coupling,
            random_state=seed,
        )
        samples = sample(
            model,
            round(config.samples_per_spin * config.n_spins),
            random_state=seed_of(seed, "samples"),
        )
        estimates = RidgeIsing(ridge=point["ridge"], fit_fields=False).fit(samples).estimates_
        signs = np.sign(model.couplings.toarray())
        distance = shortest_path(np.abs(signs), unweighted=True)
        walk, paths = np.eye(config.n_spins), np.eye(config.n_spins)
        for g in range(3):
            walk, paths = walk @ signs, paths @ np.abs(signs)
            here = (distance == g + 1) & (paths == 1)
            values = estimates[here] * walk[here]
            counts[g] += np.histogram(values, EDGES)[0]
            sums[g] += len(values), values.sum(), (values**2).sum()
    return {"counts": counts.tolist(), "sums": sums.tolist()}


def predict(config: Config, point: Row) -> Any:
    """Mean of each generation and the standard deviation of all."""
    finite = config.n_spins / (config.n_spins - 1)
    p = random_regular_theory(
        config.degree, config.coupling, config.samples_per_spin * finite, point["ridge"] * finite
    )
    return [float(mean) for mean in p.means[:3]], float(np.sqrt(p.R / (config.n_spins - 1)))


def tabulate(config: Config, records: list[Row]) -> Table:
    """A row for each bin, with the mean and spread of its generation, measured and predicted."""
    rows = []
    for ridge in config.ridges:
        results = [record["result"] for record in records if record["point"]["ridge"] == ridge]
        counts, sums = (
            np.sum([result[name] for result in results], axis=0) for name in ("counts", "sums")
        )
        means, std = predict(config, {"ridge": ridge})
        for g in range(3):
            n, total, squares = sums[g]
            facts = {
                "ridge": ridge, "generation": g + 1, "number": int(n), "mean": total / n,
                "std": float(np.sqrt(squares / n - (total / n) ** 2)), "predicted_mean": means[g], "predicted_std": std,
            }  # fmt: skip
            width = EDGES[1] - EDGES[0]
            rows += [
                facts
                | {"from": round(float(EDGES[b]), 4), "density": float(counts[g, b] / n / width)}
                for b in range(len(EDGES) - 1)
            ]
    return rows


def agreement(table: Table) -> list[str]:
    lines = []
    for ridge, g in dict.fromkeys((row["ridge"], row["generation"]) for row in table):
        row = chosen(table, ridge=ridge, generation=g)[0]
        lines.append(
            f"ridge {ridge:g}, generation {g}: mean {row['mean']:.5f}, theory {row['predicted_mean']:.5f} "
            f"(off by {row['mean'] - row['predicted_mean']:+.5f}); standard deviation {row['std']:.5f}, "
            f"theory {row['predicted_std']:.5f}"
        )
    return lines


def plot(table: Table) -> "Figure":
    from matplotlib.figure import Figure

    ridges = list(dict.fromkeys(row["ridge"] for row in table))
    figure = Figure(figsize=(11, 0.6 + 2.8 * len(ridges)), layout="constrained")
    figure.suptitle(TITLE)
    for line, ridge in zip(figure.subplots(len(ridges), 3, squeeze=False), ridges, strict=True):
        for g, axes in enumerate(line, start=1):
            rows = chosen(table, ridge=ridge, generation=g)
            axes.stairs(
                column(rows, "density"),
                [*column(rows, "from"), 2 * rows[-1]["from"] - rows[-2]["from"]],
                fill=True,
                alpha=0.5,
            )
            axes.axvline(rows[0]["predicted_mean"], color="black", ls="--", label="predicted mean")
            axes.axvline(0, color="gray", lw=0.6)
            axes.set(
                title=f"ridge {ridge:g}, generation {g}", xlabel="estimate times sign of the path"
            )
        line[0].legend(frameon=False)
    return figure
