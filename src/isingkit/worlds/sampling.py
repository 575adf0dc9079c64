"""Samples of an Ising model by Monte Carlo: many chains at once, one sample a chain."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from isingkit._kernels import sampling as kernels
from isingkit._kernels.packing import pack_words
from isingkit._kernels.threads import spread
from isingkit.exceptions import SettingError, require_instance, require_number
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins
from isingkit.worlds.graphs import Seed


def sample(
    model: IsingModel,
    *,
    n_samples: int,
    warm_up: int = 200,
    update: str = "metropolis",
    order: str = "sequential",
    random_state: Seed = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> PackedSpins:
    """Independent samples: as many chains, each started at random and seen once, after `warm_up` sweeps.

    Chains are bits where all couplings have one strength and there is no field, so that a word operation moves 64 of them; else
    they are numbers. The same seed gives the same samples on any number of threads.

    Parameters
    ----------
    model
        The Ising model to sample.
    n_samples
        How many.
    warm_up
        Sweeps before the snapshot; one sweep is n_spins updates. Near or below a transition more are needed.
    update
        "metropolis" or "heat-bath".
    order
        "sequential" updates spins in turn, "random" picks each at random, as the paper does.
    random_state
        Seed or numpy Generator.
    n_jobs
        Threads to use; None or -1 is all.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import isingkit as ik
    >>> ik.sample(ik.random_regular(n_spins=20, degree=3, coupling=0.4), n_samples=1000)
    PackedSpins(1000 samples of 20 spins)
    """
    require_instance("model", model, IsingModel, "an IsingModel, such as model_ of a fitted estimator")
    require_number("n_samples", n_samples, at_least=1, whole=True)
    require_number("warm_up", warm_up, at_least=0, whole=True)
    if update not in ("metropolis", "heat-bath"):
        raise SettingError(setting="update", value=update, expected="'metropolis' or 'heat-bath'")
    if order not in ("sequential", "random"):
        raise SettingError(setting="order", value=order, expected="'sequential' or 'random'")
    rng = np.random.default_rng(random_state)
    chains = (_bit_chains if _has_one_strength(model) else _number_chains)(model, n_samples, update == "heat-bath", rng)
    step = max(1, min(warm_up, 5_000_000 // max(1, model.n_spins * len(chains.streams) // 8)))  # a bar that moves
    with tqdm(total=warm_up, desc="sweeps", unit="sweep", disable=not progress) as bar:
        for done in range(0, warm_up, step):
            n_sweeps = min(step, warm_up - done)
            arguments = (*chains.fixed, order == "random", chains.streams, chains.states, n_sweeps)
            spread(chains.kernel, len(chains.streams), *arguments, n_jobs=n_jobs)
            bar.update(n_sweeps)
    return PackedSpins(chains.words(), chains.n_chains, model.names)[:n_samples]


@dataclass(frozen=True, slots=True)
class _Chains:
    """Blocks of chains and the kernel that moves them."""

    kernel: Any
    fixed: tuple[Any, ...]  # what the kernel needs of the model
    streams: NDArray[np.uint64]  # (n_blocks, 4, lanes): a random number generator a lane
    states: NDArray[Any]  # (n_blocks, n_spins, words or lanes)

    @property
    def n_chains(self) -> int:
        lanes = self.states.shape[2]
        return len(self.states) * (lanes if self.states.dtype == np.int8 else 64 * lanes)

    def words(self) -> NDArray[np.uint64]:
        """(n_spins, n_words), 64 chains a word."""
        n_blocks, n_spins, lanes = self.states.shape
        if self.states.dtype == np.uint64:
            return np.ascontiguousarray(self.states.transpose(1, 0, 2)).reshape(n_spins, n_blocks * lanes)
        values = self.states.transpose(0, 2, 1).reshape(n_blocks * lanes, n_spins)
        words = np.empty((n_spins, n_blocks), dtype=np.uint64)
        spread(pack_words, n_blocks, np.ascontiguousarray(values), words)
        return words


def _has_one_strength(model: IsingModel) -> bool:
    strengths, degrees = np.abs(model.couplings.data), np.diff(model.couplings.indptr)
    same = len(strengths) == 0 or (strengths == strengths[0]).all()
    return bool(same and not model.fields.any() and degrees.max(initial=0) <= kernels.LARGEST_DEGREE)


def _bit_chains(model: IsingModel, n_samples: int, heat_bath: bool, rng: np.random.Generator) -> _Chains:
    graph = model.couplings
    strength = float(abs(graph.data[0])) if graph.nnz else 0.0
    n_blocks = -(-n_samples // kernels.CHAINS)
    chances, chance_of_degree = _chances(strength, np.diff(graph.indptr), heat_bath)
    signs = np.where(graph.data < 0, -1, 0).astype(np.int64)
    fixed = (graph.indptr.astype(np.int64), graph.indices.astype(np.int64), signs, chances, chance_of_degree, heat_bath)
    streams = rng.integers(2**64, size=(n_blocks, 4, kernels.WORDS), dtype=np.uint64)
    states = rng.integers(2**64, size=(n_blocks, model.n_spins, kernels.WORDS), dtype=np.uint64)
    return _Chains(kernels.bit_sweeps, fixed, streams, states)


def _number_chains(model: IsingModel, n_samples: int, heat_bath: bool, rng: np.random.Generator) -> _Chains:
    graph = model.couplings
    n_blocks = -(-n_samples // kernels.LANES)
    fixed = (graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data, model.fields, heat_bath)
    streams = rng.integers(2**64, size=(n_blocks, 4, kernels.LANES), dtype=np.uint64)
    states = 2 * rng.integers(2, size=(n_blocks, model.n_spins, kernels.LANES), dtype=np.int8) - 1
    return _Chains(kernels.general_sweeps, fixed, streams, states)


def _chances(strength: float, degrees: NDArray[Any], heat_bath: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Binary digits, 0 or -1, of the chances that updates leave to chance, and where those of each degree start.

    Heat bath: up with probability 1 / (1 + exp(-2 K (2 n - d))) where n of d couplings pull up, n = 0 ... d.
    Metropolis: flips with probability exp(-2 K (2 n - d)) where n > d / 2 couplings are satisfied, and else surely.
    """
    rows: list[list[int]] = []
    starts = np.zeros(kernels.LARGEST_DEGREE + 1, dtype=np.int64)
    for degree in np.unique(degrees).tolist():
        starts[degree] = len(rows)
        for count in range(0 if heat_bath else degree // 2 + 1, degree + 1):
            energy = 2 * strength * (2 * count - degree)
            chance = 1 / (1 + np.exp(-energy)) if heat_bath else np.exp(-energy)
            fixed_point = min(int(chance * 2.0**64), 2**64 - 1)
            rows.append([-(fixed_point >> (63 - digit) & 1) for digit in range(64)])
    padding = [[0] * 64] * (kernels.LARGEST_DEGREE + 1)  # counts past the degree are looked up, too, but never occur
    return np.array(rows + padding, dtype=np.int64), starts
