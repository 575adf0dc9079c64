"""Samples of an Ising model by Monte Carlo."""

import numpy as np

from isingkit._kernels.sampling import sweep_blocks
from isingkit._kernels.threads import spread
from isingkit.exceptions import SettingError
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins
from isingkit.worlds.graphs import Seed


def sample(model: IsingModel, *, n_samples: int, warm_up: int = 200, random_state: Seed = None) -> PackedSpins:
    """Independent samples: as many heat-bath chains, each started at random and seen once, after `warm_up` sweeps.

    The same seed gives the same samples on any number of threads.

    Parameters
    ----------
    model
        The Ising model to sample.
    n_samples
        How many.
    warm_up
        Sweeps before the snapshot; one sweep updates every spin once. Near or below a transition more are needed.
    random_state
        Seed or numpy Generator.
    """
    if n_samples < 1:
        raise SettingError(setting="n_samples", value=n_samples, expected="at least 1")
    if warm_up < 0:
        raise SettingError(setting="warm_up", value=warm_up, expected="at least 0")
    rng = np.random.default_rng(random_state)
    n_blocks = -(-n_samples // 64)
    seeds = rng.integers(2**64, size=(n_blocks, 64), dtype=np.uint64)
    words = np.empty((model.n_spins, n_blocks), dtype=np.uint64)
    graph = model.couplings
    spread(sweep_blocks, n_blocks, graph.indptr, graph.indices, graph.data, model.fields, seeds, warm_up, words)
    return PackedSpins(words, 64 * n_blocks, model.names)[:n_samples]
