"""Figure 3: precision and recall of least squares; some thresholds find the network exactly.

[fig:RRvsER_noL2]
"""

from dataclasses import dataclass
from functools import partial

from isingkit.experiments import recovery_curves as curves
from isingkit.experiments.recovery_curves import agreement, measure, points, predict, tabulate
from isingkit.experiments.snapshots import DEFAULT

__all__ = ["Config", "agreement", "measure", "plot", "points", "predict", "tabulate"]

TITLE = "Least squares: precision and recall against the threshold (10 samples per spin, K = 0.4)"
CLAIM = "There is an interval of thresholds in which both are 1, and it widens with N."
plot = partial(curves.plot, title=TITLE)


@dataclass(frozen=True, slots=True)
class Config:
    """K = 0.4, 10 samples per spin, 10 graphs, 2 samplings each.

    Random regular, c = 3, and Erdos-Renyi, mean degree 4.
    """

    coupling: float = 0.4
    samples_per_spin: float = 10.0
    n_spins: tuple[int, ...] = (200, 400, 800, 1600)
    n_graphs: int = 10
    n_samplings: int = 2
    step: float = 0.002
    seed: int = 1
    sampling: str = DEFAULT

    @staticmethod
    def quick() -> "Config":
        return Config(n_spins=(100, 200), n_graphs=3, n_samplings=1)

    def settings(self) -> list[curves.Setting]:
        return [self._setting("random regular", 3), self._setting("Erdos-Renyi", 4)]

    def _setting(self, graph: str, degree: int) -> curves.Setting:
        return curves.Setting(
            graph=graph,
            degree=degree,
            coupling=self.coupling,
            n_spins=self.n_spins,
            samples_per_spin=self.samples_per_spin,
            ridge=0.0,
            prune=None,
            n_graphs=self.n_graphs,
            n_samplings=self.n_samplings,
            step=self.step,
            seed=self.seed,
        )
