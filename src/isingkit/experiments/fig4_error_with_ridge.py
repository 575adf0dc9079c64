"""Figure 4: RSS, Q and bias of ridge regression; a large ridge biases more than the neighbours.

[fig:Plots-N200-RSSQbias]
"""

from dataclasses import dataclass
from functools import partial

from isingkit.experiments import error_curves as curves
from isingkit.experiments.error_curves import measure, points, predict, tabulate
from isingkit.experiments.runner import Table, chosen
from isingkit.experiments.snapshots import DEFAULT

__all__ = ["Config", "agreement", "measure", "plot", "points", "predict", "tabulate"]

TITLE = "Ridge regression: error against samples per spin (random regular, c = 3, K = 0.4)"
CLAIM = (
    "No divergence at one sample per spin; at ridge 10 a theory that knows only the neighbours' "
    "biases (depth 1) is visibly off, and depth 2 agrees fairly well."
)
plot = partial(curves.plot, title=TITLE, with_depths=True)


@dataclass(frozen=True, slots=True)
class Config:
    """N = 200, ridge 0.1 and 10, 100 worlds; beyond the paper: the ridge of smallest RSS."""

    degree: int = 3
    coupling: float = 0.4
    ridges: tuple[float | str, ...] = (0.1, 10.0, "best")
    n_spins: int = 200
    samples_per_spin: tuple[float, ...] = (0.3, 0.5, 0.8, 1, 1.5, 2, 4, 7, 10)
    larger: int = 400
    larger_samples_per_spin: tuple[float, ...] = (0.3, 0.5, 0.8, 1, 1.5, 2, 4, 7, 10)
    n_worlds: int = 100
    block: int = 10
    seed: int = 1
    sampling: str = DEFAULT

    @staticmethod
    def quick() -> "Config":
        return Config(
            n_spins=100,
            samples_per_spin=(0.5, 2, 8),
            larger=200,
            larger_samples_per_spin=(2,),
            n_worlds=10,
        )

    def settings(self) -> list[curves.Setting]:
        sizes = (
            (self.n_spins, self.samples_per_spin),
            (self.larger, self.larger_samples_per_spin),
        )
        return [
            curves.Setting(n_spins, self.coupling, ridge, samples_per_spin)
            for n_spins, samples_per_spin in sizes
            for ridge in self.ridges
        ]


def agreement(table: Table) -> list[str]:
    rows = chosen(table, quantity="rss", ridge=10)
    gains = _gains_of_best_ridge(table)
    first = _largest_deviation(rows, "depth_1")
    second = _largest_deviation(rows, "depth_2")
    infinite = _largest_deviation(rows, "depth_infinite")
    by_depth = (
        f"depth 1 {first:.1f} percent, depth 2 {second:.1f} percent, "
        f"infinite depth {infinite:.1f} percent"
    )
    return [
        *curves.agreement(table),
        f"RSS at ridge 10, largest deviation from theory: {by_depth}",
        f"the best ridge divides the RSS of ridge 0.1 by {min(gains):.2f} to {max(gains):.2f}",
    ]


def _largest_deviation(rows: Table, depth: str) -> float:
    """In percent."""
    ratios = [row["mean"] / row[depth] for row in rows]
    return max(100 * abs(ratio - 1) for ratio in ratios)


def _gains_of_best_ridge(table: Table) -> list[float]:
    """RSS of ridge 0.1 over that of the best, for each number of samples that has both."""
    best = _rss_by_samples(chosen(table, quantity="rss", rule="best"))
    usual = _rss_by_samples(chosen(table, quantity="rss", ridge=0.1))
    return [usual[alpha] / best[alpha] for alpha in best if alpha in usual]


def _rss_by_samples(rows: Table) -> dict[float, float]:
    return {row["samples_per_spin"]: row["mean"] for row in rows}
