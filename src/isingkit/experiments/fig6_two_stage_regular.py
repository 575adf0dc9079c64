"""Figure 6: the two-stage estimator on random regular graphs, with fewer samples than spins.

[fig:two-stage-recall-precision]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isingkit.experiments import recovery_curves as curves
from isingkit.experiments.runner import Row, Table
from isingkit.theory.ridge import best_ridge, random_regular

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Two stages: precision and recall on random regular graphs (0.8 samples per spin, c = 3, K = 0.4)"
CLAIM = "Perfect recovery with a proper threshold as N grows, e.g. at N = 800, from fewer samples than spins."


@dataclass(frozen=True, slots=True)
class Config:
    """K = 0.4, ridge 0.1, 0.8 samples per spin, prune 0.1; beyond the paper: the ridge with the smallest predicted RSS.

    prune is 0.1 for ridge 0.1, where neighbours' estimates are 0.2 on average; for the best ridge it is half their mean, too.
    """

    degree: int = 3
    coupling: float = 0.4
    samples_per_spin: float = 0.8
    ridge: float = 0.1
    prune: float = 0.1
    n_spins: tuple[int, ...] = (200, 400, 800)
    n_graphs: int = 20
    n_samplings: int = 1
    step: float = 0.002
    seed: int = 1

    @staticmethod
    def quick() -> "Config":
        return Config(n_spins=(100, 200, 400), n_graphs=4)


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
    best = best_ridge(config.degree, config.coupling, config.samples_per_spin)
    first = float(random_regular(config.degree, config.coupling, config.samples_per_spin, best).means[0])
    return [
        curves.Setting(
            "random regular", config.degree, config.coupling, config.n_spins, config.samples_per_spin, ridge, prune,
            config.n_graphs, config.n_samplings, config.step, config.seed,
        )
        for ridge, prune in ((config.ridge, config.prune), (round(best, 3), round(first / 2, 3)))
    ]  # fmt: skip
