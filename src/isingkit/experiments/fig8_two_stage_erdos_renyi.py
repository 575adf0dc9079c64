"""Figure 8: the two-stage estimator on Erdos-Renyi graphs, with fewer samples than spins.

[fig:ERtwo-stage-recall-precision]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isingkit.experiments import recovery_curves as curves
from isingkit.experiments.runner import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Two stages: precision and recall on Erdos-Renyi graphs (0.9 samples per spin, mean degree 4, K = 0.4)"
CLAIM = "At N = 1600 precision and recall reach 99.90 percent simultaneously; both improve with N."


@dataclass(frozen=True, slots=True)
class Config:
    """K = 0.4, ridge 0.1, 0.9 samples per spin, prune 0.05; 40 graphs (the paper: 10), 2 samplings each."""

    mean_degree: int = 4
    coupling: float = 0.4
    samples_per_spin: float = 0.9
    ridge: float = 0.1
    prune: float = 0.05
    n_spins: tuple[int, ...] = (200, 400, 800, 1600)
    n_graphs: int = 40
    n_samplings: int = 2
    step: float = 0.001
    seed: int = 1

    @staticmethod
    def quick() -> "Config":
        return Config(n_spins=(200, 400), n_graphs=3, n_samplings=1)


def points(config: Config) -> list[Row]:
    return [point for setting in _settings(config) for point in curves.points(setting)]


def measure(config: Config, point: Row) -> Any:
    return curves.measure(_setting_of(config, point), point)


def predict(config: Config, point: Row) -> Any:
    return curves.predict(_setting_of(config, point), point["n_spins"], point.get("stage", "one"))


def tabulate(config: Config, records: list[Row]) -> Table:
    return [
        row
        for setting in _settings(config)
        for row in curves.tabulate(setting, [record for record in records if _setting_of(config, record["point"]) == setting])
    ]


def agreement(table: Table) -> list[str]:
    return curves.agreement(table)


def plot(table: Table) -> "Figure":
    return curves.plot(table, TITLE)


def _setting_of(config: Config, point: Row) -> curves.Setting:
    return next(s for s in _settings(config) if (s.graph, s.ridge) == (point["graph"], point["ridge"]))


def _settings(config: Config) -> list[curves.Setting]:
    return [
        curves.Setting(
            "Erdos-Renyi", config.mean_degree, config.coupling, config.n_spins, config.samples_per_spin, config.ridge, config.prune,
            config.n_graphs, config.n_samplings, config.step, config.seed,
        )
    ]  # fmt: skip
