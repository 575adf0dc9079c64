"""Figure 7: how many couplings survive stage one; fewer, and nearly all of them true, as N grows.

[fig:two-stage-beyond-threshold]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isingkit.estimators.ridge import RidgeIsing
from isingkit.experiments.pictures import legend_below
from isingkit.experiments.runner import Row, Table, chosen, column, seed_of
from isingkit.experiments.snapshots import DEFAULT, snapshots
from isingkit.theory.recovery_regular import recovery
from isingkit.worlds.graphs import random_regular

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = (
    "Candidates that survive stage one "
    "(random regular, c = 3, K = 0.4, 0.8 samples per spin, ridge 0.1, prune 0.1)"
)
CLAIM = "For a fixed threshold the number of survivors falls as N grows, because the noise shrinks."


@dataclass(frozen=True, slots=True)
class Config:
    """The setting of figure 6, N = 100 to 800, all spins."""

    degree: int = 3
    coupling: float = 0.4
    samples_per_spin: float = 0.8
    ridge: float = 0.1
    prune: float = 0.1
    n_spins: tuple[int, ...] = (100, 200, 400, 800)
    n_worlds: int = 20
    seed: int = 1
    sampling: str = DEFAULT

    @staticmethod
    def quick() -> "Config":
        return Config(n_spins=(100, 200, 400), n_worlds=4)


def points(config: Config) -> list[Row]:
    return [
        {"n_spins": n, "world": world} for n in config.n_spins for world in range(config.n_worlds)
    ]


def measure(config: Config, point: Row) -> list[int]:
    """Number of spins with 0, 1, 2, ... candidates."""
    n_spins = point["n_spins"]
    seed = seed_of(config.seed, "candidates", n_spins, point["world"])
    model = random_regular(
        n_spins=n_spins, degree=config.degree, coupling=config.coupling, random_state=seed
    )
    n_samples = round(config.samples_per_spin * n_spins)
    samples = snapshots(model, n_samples, seed_of(seed, "samples"), config.sampling)
    estimates = RidgeIsing(ridge=config.ridge, fit_fields=False).fit(samples).estimates_
    n_candidates = (np.abs(estimates) > config.prune).sum(axis=1)
    return np.bincount(n_candidates).tolist()


def predict(config: Config, point: Row) -> float:
    """Expected number of candidates of a spin."""
    n_spins = point["n_spins"]
    theory = recovery(
        n_spins,
        config.degree,
        config.coupling,
        n_samples=round(config.samples_per_spin * n_spins),
        ridge=config.ridge,
        prune=config.prune,
        rule="directed",
    )
    return theory.n_candidates()


def tabulate(config: Config, records: list[Row]) -> Table:
    """A row for each number of candidates; means measured and predicted."""
    rows = []
    for n_spins in config.n_spins:
        results = [record["result"] for record in records if record["point"]["n_spins"] == n_spins]
        counts = np.zeros(max(map(len, results)))
        for result in results:
            counts[: len(result)] += result
        fractions = counts / counts.sum()  # of spins, by number of candidates
        mean = fractions @ np.arange(len(fractions))
        predicted = predict(config, {"n_spins": n_spins})
        facts = {"n_spins": n_spins, "mean": float(mean), "predicted_mean": predicted}
        for k, fraction in enumerate(fractions.tolist()):
            rows.append(facts | {"candidates": k, "share": fraction})
    return rows


def agreement(table: Table) -> list[str]:
    lines = []
    for n_spins in dict.fromkeys(column(table, "n_spins")):
        row = chosen(table, n_spins=n_spins)[0]
        measured = f"{row['mean']:.2f} candidates a spin"
        lines.append(f"N={n_spins}: {measured}, theory {row['predicted_mean']:.2f}")
    return lines


def plot(table: Table) -> "Figure":
    from matplotlib.figure import Figure

    sizes = list(dict.fromkeys(column(table, "n_spins")))
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    figure.suptitle(TITLE, fontsize=10)
    panels = figure.subplots(1, len(sizes), squeeze=False)[0]
    for axes, n_spins in zip(panels, sizes, strict=True):
        rows = chosen(table, n_spins=n_spins)
        axes.bar(column(rows, "candidates"), column(rows, "share"), width=1.0)
        axes.axvline(rows[0]["predicted_mean"], color="black", ls="--", label="predicted mean")
        axes.set(title=f"N = {n_spins}", xlabel="candidates of a spin")
    legend_below(figure, axes)
    return figure
