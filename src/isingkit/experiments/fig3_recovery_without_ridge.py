"""Figure 3: precision and recall of thresholded least squares; an interval of thresholds finds the network exactly.

[fig:RRvsER_noL2]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isingkit.experiments import recovery_curves as curves
from isingkit.experiments.runner import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Least squares: precision and recall against the threshold (10 samples per spin, K = 0.4)"
CLAIM = "There is an interval of thresholds in which both are 1, and it widens with N."


@dataclass(frozen=True, slots=True)
class Config:
    """K = 0.4, 10 samples per spin; random regular, c = 3, and Erdos-Renyi, mean degree 4; 10 graphs, 2 samplings each."""

    coupling: float = 0.4
    samples_per_spin: float = 10.0
    n_spins: tuple[int, ...] = (200, 400, 800, 1600)
    n_graphs: int = 10
    n_samplings: int = 2
    step: float = 0.002
    seed: int = 1

    @staticmethod
    def quick() -> "Config":
        return Config(n_spins=(100, 200), n_graphs=3, n_samplings=1)


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
    shared = (config.n_spins, config.samples_per_spin, 0.0, None, config.n_graphs, config.n_samplings, config.step, config.seed)
    return [
        curves.Setting(graph, degree, config.coupling, *shared) for graph, degree in (("random regular", 3), ("Erdos-Renyi", 4))
    ]
