"""Figure 3: precision and recall of thresholded least squares; an interval of thresholds finds the
network exactly.

[fig:RRvsER_noL2]
"""

from dataclasses import dataclass
from functools import partial

from isingkit.experiments import recovery_curves as curves
from isingkit.experiments.recovery_curves import agreement, measure, points, predict, tabulate

__all__ = ["Config", "agreement", "measure", "plot", "points", "predict", "tabulate"]

TITLE = "Least squares: precision and recall against the threshold (10 samples per spin, K = 0.4)"
CLAIM = "There is an interval of thresholds in which both are 1, and it widens with N."
plot = partial(curves.plot, title=TITLE)


@dataclass(frozen=True, slots=True)
class Config:
    """K = 0.4, 10 samples per spin; random regular, c = 3, and Erdos-Renyi, mean degree 4; 10
    graphs, 2 samplings each.
    """

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

    def settings(self) -> list[curves.Setting]:
        shared = (
            self.n_spins,
            self.samples_per_spin,
            0.0,
            None,
            self.n_graphs,
            self.n_samplings,
            self.step,
            self.seed,
        )
        return [
            curves.Setting(graph, degree, self.coupling, *shared)
            for graph, degree in (("random regular", 3), ("Erdos-Renyi", 4))
        ]
