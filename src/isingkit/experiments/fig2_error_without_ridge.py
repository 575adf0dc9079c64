"""Figure 2: RSS, Q and bias of least squares on random regular graphs; both errors diverge at one sample per spin.

[fig:Plots-N200-RSSQbias-lambda0]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isingkit.experiments import error_curves as curves
from isingkit.experiments.runner import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Least squares: error against samples per spin (random regular, c = 3)"
CLAIM = "Theory and experiment agree fairly well; RSS and Q diverge as samples per spin go to 1."


@dataclass(frozen=True, slots=True)
class Config:
    """N = 200, K = 0.2 and 0.4, 100 worlds; the same with twice the spins shows what finite size does."""

    degree: int = 3
    couplings: tuple[float, ...] = (0.2, 0.4)
    n_spins: int = 200
    samples_per_spin: tuple[float, ...] = (1.2, 1.5, 2, 3, 4, 6, 8, 10)
    larger: int = 400
    larger_samples_per_spin: tuple[float, ...] = (1.5, 2, 3, 4, 6, 8, 10)
    n_worlds: int = 100
    block: int = 10
    seed: int = 1

    @staticmethod
    def quick() -> "Config":
        return Config(
            couplings=(0.4,), n_spins=100, samples_per_spin=(1.5, 3, 8), larger=200, larger_samples_per_spin=(3,), n_worlds=10
        )


def points(config: Config) -> list[Row]:
    settings = [curves.Setting(config.n_spins, k, 0.0, config.samples_per_spin) for k in config.couplings]
    settings += [curves.Setting(config.larger, k, 0.0, config.larger_samples_per_spin) for k in config.couplings]
    return curves.points(tuple(settings), config.n_worlds, config.block)


def measure(config: Config, point: Row) -> Any:
    return curves.measure(point, config.degree, config.n_worlds, config.block, config.seed)


def predict(config: Config, point: Row) -> Any:
    return curves.predict(point, config.degree)


def tabulate(config: Config, records: list[Row]) -> Table:
    return curves.tabulate(records, config.degree)


def agreement(table: Table) -> list[str]:
    return curves.agreement(table, smallest=1.5)


def plot(table: Table) -> "Figure":
    return curves.plot(table, TITLE, with_depths=False)
