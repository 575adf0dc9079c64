"""Figure 2: RSS, Q and bias of least squares; both errors diverge at one sample per spin.

[fig:Plots-N200-RSSQbias-lambda0]
"""

from dataclasses import dataclass
from functools import partial

from isingkit.experiments import error_curves as curves
from isingkit.experiments.error_curves import measure, points, predict, tabulate
from isingkit.experiments.snapshots import DEFAULT

__all__ = ["Config", "agreement", "measure", "plot", "points", "predict", "tabulate"]

TITLE = "Least squares: error against samples per spin (random regular, c = 3)"
CLAIM = "Theory and experiment agree fairly well; RSS and Q diverge as samples per spin go to 1."
agreement = partial(curves.agreement, smallest=1.5)
plot = partial(curves.plot, title=TITLE, with_depths=False)


@dataclass(frozen=True, slots=True)
class Config:
    """N = 200, K = 0.2 and 0.4, 100 worlds; twice the spins show what finite size does."""

    degree: int = 3
    couplings: tuple[float, ...] = (0.2, 0.4)
    n_spins: int = 200
    samples_per_spin: tuple[float, ...] = (1.2, 1.5, 2, 3, 4, 6, 8, 10)
    larger: int = 400
    larger_samples_per_spin: tuple[float, ...] = (1.5, 2, 3, 4, 6, 8, 10)
    n_worlds: int = 100
    block: int = 10
    seed: int = 1
    sampling: str = DEFAULT

    @staticmethod
    def quick() -> "Config":
        return Config(
            couplings=(0.4,),
            n_spins=100,
            samples_per_spin=(1.5, 3, 8),
            larger=200,
            larger_samples_per_spin=(3,),
            n_worlds=10,
        )

    def settings(self) -> list[curves.Setting]:
        sizes = (
            (self.n_spins, self.samples_per_spin),
            (self.larger, self.larger_samples_per_spin),
        )
        return [
            curves.Setting(n_spins, coupling, 0.0, samples_per_spin)
            for n_spins, samples_per_spin in sizes
            for coupling in self.couplings
        ]
