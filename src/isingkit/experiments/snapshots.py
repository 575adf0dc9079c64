"""Snapshots of a figure's worlds: as isingkit samples, or as the paper did."""

from isingkit.exceptions import require_choice
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins
from isingkit.worlds.sampling import sample

DEFAULT = "isingkit"
PAPER = "paper"
CHOICES = (DEFAULT, PAPER)
_SWEEPS = 100_000  # of the paper, each of as many updates as there are spins


def snapshots(model: IsingModel, n_samples: int, seed: int, sampling: str) -> PackedSpins:
    """Samples of a world; those of the paper by Metropolis updates of spins picked at random, after
    10^5 sweeps, each sample of a chain of its own.
    """
    require_choice("sampling", sampling, CHOICES)
    if sampling == DEFAULT:
        return sample(model, n_samples, random_state=seed)
    return sample(
        model,
        n_samples,
        update="metropolis",
        order="random",
        warm_up=_SWEEPS,
        random_state=seed,
    )
