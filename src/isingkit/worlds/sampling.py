"""Samples of an Ising model by Monte Carlo: many chains at once, one sample a chain.

Why chains are bits, and when they have forgotten their start: docs/design/sampler.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit
from tqdm import tqdm

from isingkit._kernels import conditional_sampling as conditional
from isingkit._kernels import sampling as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import FloatArray, SpinArray
from isingkit.covariates import covariates_for
from isingkit.exceptions import (
    NotEquilibratedError,
    SettingError,
    require_choice,
    require_instance,
    require_number,
)
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins, bits, unpacked
from isingkit.theory.phase import paramagnetic
from isingkit.worlds import ORDERS, UPDATES
from isingkit.worlds.equilibrium import EquilibrationMonitor
from isingkit.worlds.graphs import Seed, generator

# chains looked at by the check where they are numbers; twice as many where they are bits
WATCHED = 64
LONGEST_WARM_UP = 10_000  # sweeps, where nobody said how many


def sample(
    model: IsingModel,
    n_samples: int | None = None,
    *,
    covariates: Any = None,
    warm_up: int | None = None,
    n_chains: int | None = None,
    thin: int = 10,
    update: str = "heat-bath",
    order: str = "sequential",
    check: bool = True,
    random_state: Seed = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> PackedSpins:
    """Independent samples: as many chains, each seen once after `warm_up` sweeps, or fewer chains
    seen repeatedly.

    Chains are bits where all couplings have one strength and there is no field, so that a word
    operation moves 64 of them; else they are numbers. Half of them start at random and half
    aligned, and a check asks whether it still shows. The same seed gives the same samples on any
    number of threads and any processor.

    Parameters
    ----------
    model
        The Ising model to sample.
    n_samples
        How many.
    covariates
        Of a model that was learnt with covariates: a table of the same columns. There is one sample
        for each row, and n_samples may be left out.
    warm_up
        Sweeps before the first snapshot; one sweep is n_spins updates. By default 50 / (1 - the
        growth that `paramagnetic` finds), from 100 to 10,000, and twice as many as before while
        the check refuses them, up to 10,000. The paper's own experiments take 100,000.
    n_chains
        Chains to run; by default one for each sample. With fewer, each is seen again every `thin`
        sweeps.
    thin
        Sweeps between two snapshots of a chain, where it is seen more than once.
    update
        "heat-bath" or "metropolis", the paper's. Metropolis is a little quicker, but where
        couplings are weak it flips nearly every spin every time, so that chains forget their start
        slowly.
    order
        "sequential" updates spins in turn, "random" picks each at random, as the paper does.
    check
        Whether to refuse samples of chains that have not forgotten their start.
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
    require_instance(
        "model", model, IsingModel, "an IsingModel, such as model_ of a fitted estimator"
    )
    values = covariates_for(model.effects, covariates)
    _check_settings(thin, n_chains, warm_up, update, order)
    if values is not None:
        _check_conditional(len(values), n_samples, n_chains, update)
        n_samples = len(values)
    require_number("n_samples", n_samples, at_least=1, whole=True)
    assert n_samples is not None
    n_chains = n_samples if n_chains is None else min(n_chains, n_samples)
    longest = LONGEST_WARM_UP if warm_up is None else warm_up
    warm_up = default_warm_up(model) if warm_up is None else warm_up
    rng = generator(random_state)
    chains, watched = _chains(model, n_chains, values, update == "heat-bath", rng)
    n_snapshots = -(-n_samples // n_chains)
    watching = check and warm_up > 0
    moved = [chains, watched] if watching and watched is not chains else [chains]
    with tqdm(
        total=warm_up + thin * (n_snapshots - 1), desc="sweeps", unit="sweep", disable=not progress
    ) as bar:

        def run(n_sweeps: int) -> None:
            for step in _steps(n_sweeps, model.n_spins * chains.n_chains):
                for some in moved:
                    some.sweep(step, random_order=order == "random", n_jobs=n_jobs)
                bar.update(step)

        if not watching:
            run(warm_up)
        else:
            _run_until_forgotten(model, watched, run, warm_up, longest)
        snapshots = [chains.packed(model, n_chains)]
        for _ in range(n_snapshots - 1):
            run(thin)
            snapshots.append(chains.packed(model, n_chains))
    return (snapshots[0] if n_snapshots == 1 else PackedSpins.concatenate(snapshots))[:n_samples]


def _check_settings(
    thin: int, n_chains: int | None, warm_up: int | None, update: str, order: str
) -> None:
    """Refuse settings that nothing is sampled with."""
    require_number("thin", thin, at_least=1, whole=True)
    if n_chains is not None:
        require_number("n_chains", n_chains, at_least=1, whole=True)
    if warm_up is not None:
        require_number("warm_up", warm_up, at_least=0, whole=True)
    require_choice("update", update, UPDATES)
    require_choice("order", order, ORDERS)


def _check_conditional(
    n_rows: int, n_samples: int | None, n_chains: int | None, update: str
) -> None:
    """Refuse what sampling given covariates cannot do."""
    if n_samples not in (None, n_rows):
        expected = f"None or {n_rows}, one sample for each row of covariates"
        raise SettingError(setting="n_samples", value=n_samples, expected=expected)
    if n_chains not in (None, n_rows):
        expected = f"None with covariates, of which each of the {n_rows} rows has its own chain"
        raise SettingError(setting="n_chains", value=n_chains, expected=expected)
    if update != "heat-bath":
        raise SettingError(setting="update", value=update, expected="'heat-bath' with covariates")


def default_warm_up(model: IsingModel) -> int:
    """Sweeps that let a paramagnet forget its start: disturbances shrink by the growth of the
    branching matrix a step.
    """
    phase = paramagnetic(model)
    growth = max(phase.glass, phase.order)
    return int(np.clip(50 / (1 - growth), 100, LONGEST_WARM_UP)) if growth < 1 else LONGEST_WARM_UP


def _run_until_forgotten(
    model: IsingModel, watched: "Chains", run: Callable[[int], None], warm_up: int, longest: int
) -> None:
    """Warm chains up, twice as long as before while the check refuses them, up to `longest`."""
    done = 0
    more = warm_up
    while True:
        watch = _monitor(model, watched)
        for n_sweeps in watch.intervals(more):
            run(n_sweeps)
            watch.look(watched.watched())
        done += more
        if 2 * done > longest:
            watch.check(done)
            return
        try:
            watch.check(done)
            return
        except NotEquilibratedError:
            more = done


def _steps(n_sweeps: int, n_spins_and_chains: int) -> list[int]:
    """Sweeps in portions of a few seconds at the most, so that a progress bar moves and Ctrl-C is
    heard.
    """
    portion = max(1, 10**10 // max(1, n_spins_and_chains))
    return [min(portion, n_sweeps - done) for done in range(0, n_sweeps, portion)]


@dataclass(frozen=True, slots=True)
class Chains:
    """Blocks of chains and the kernel that moves them."""

    kernel: Any
    fixed: tuple[Any, ...]  # what the kernel needs of the model
    streams: NDArray[np.uint64]  # (n_blocks, 4, lanes): a random number generator a lane
    states: NDArray[Any]  # (n_blocks, n_spins, words or lanes)

    @property
    def n_chains(self) -> int:
        lanes = self.states.shape[2]
        return len(self.states) * (lanes if self.states.dtype == np.int8 else 64 * lanes)

    def sweep(
        self, n_sweeps: int, *, random_order: bool = False, n_jobs: int | None = None
    ) -> None:
        """Move every chain on."""
        n_blocks = len(self.states)
        streams = self.streams.reshape(n_blocks, -1)  # views: the kernels write into both
        states = self.states.reshape(n_blocks, -1)
        arguments = (*self.fixed, random_order, streams, states, n_sweeps)
        parallel_map(self.kernel, n_blocks, *arguments, n_jobs=n_jobs)

    def watched(self) -> tuple[SpinArray, SpinArray]:
        """Some chains that started at random and as many that started aligned, -1/+1, (n_chains,
        n_spins) each.
        """
        if self.states.dtype == np.int8:
            chains = self.states[0]
            return chains[:, : WATCHED // 2].T, chains[:, -WATCHED // 2 :].T
        words = [np.ascontiguousarray(self.states[0, :, [word]].T) for word in (0, -1)]
        first, last = (unpacked(word, 64, np.int8).T for word in words)
        return first, last

    def packed(self, model: IsingModel, n_chains: int) -> PackedSpins:
        """The states of the first n_chains chains."""
        return PackedSpins(self.words(), self.n_chains, model.names)[:n_chains]

    def words(self) -> NDArray[np.uint64]:
        """(n_spins, n_words), 64 chains a word."""
        n_blocks, n_spins, lanes = self.states.shape
        if self.states.dtype == np.uint64:
            return np.ascontiguousarray(self.states.transpose(1, 0, 2)).reshape(
                n_spins, n_blocks * lanes
            )
        return bits(self.states.transpose(0, 2, 1).reshape(n_blocks * lanes, n_spins))


def _chains(
    model: IsingModel,
    n_chains: int,
    covariates: FloatArray | None,
    heat_bath: bool,
    rng: Generator,
) -> tuple[Chains, Chains]:
    """The chains, and those that the check looks at: some of the same, or, where all have fields of
    their own, others of which two at a time have the same.
    """
    if covariates is None:
        make_chains = _bit_chains if _has_one_strength(model) else number_chains
        chains = make_chains(model, n_chains, heat_bath, rng)
        return chains, chains
    chains = chains_given(model, covariates, rng)
    some = np.linspace(0, len(covariates) - 1, WATCHED // 2).astype(np.int64)
    return chains, chains_given(model, np.tile(covariates[some], (2, 1)), rng)


def chains_given(model: IsingModel, covariates: FloatArray, rng: Generator) -> Chains:
    """One chain for each row of covariates; those that fill the last block up repeat the last
    row.
    """
    assert model.effects is not None
    graph = model.couplings
    lanes = conditional.LANES
    n_blocks = -(-len(covariates) // lanes)
    filled = np.minimum(np.arange(n_blocks * lanes), len(covariates) - 1)
    by_block = covariates[filled].reshape(n_blocks, lanes, -1)
    structure = (graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data)
    fixed = (structure, model.fields, np.ascontiguousarray(model.effects.values), by_block)
    streams = rng.integers(2**64, size=(n_blocks, 4, lanes), dtype=np.uint64)
    states = 2 * rng.integers(2, size=(n_blocks, model.n_spins, lanes), dtype=np.int8) - 1
    states[:, :, lanes // 2 :] = 1  # the other half starts aligned
    return Chains(conditional.sweeps_given, fixed, streams, states)


def _monitor(model: IsingModel, watched: Chains) -> EquilibrationMonitor:
    """What looks at these chains."""
    if model.effects is None:
        return EquilibrationMonitor(model)
    covariates = watched.fixed[-1].reshape(WATCHED, -1)[: WATCHED // 2]
    return EquilibrationMonitor(model, model.fields + covariates @ model.effects.values.T)


def _has_one_strength(model: IsingModel) -> bool:
    strengths = np.abs(model.couplings.data)
    degrees = np.diff(model.couplings.indptr)
    same = len(strengths) == 0 or (strengths == strengths[0]).all()
    return bool(
        same and not model.fields.any() and degrees.max(initial=0) <= kernels.LARGEST_DEGREE
    )


def _bit_chains(model: IsingModel, n_samples: int, heat_bath: bool, rng: Generator) -> Chains:
    graph = model.couplings
    strength = float(abs(graph.data[0])) if graph.nnz else 0.0
    n_blocks = -(-n_samples // kernels.CHAINS)
    probabilities, row_of_degree = _probabilities(strength, np.diff(graph.indptr), heat_bath)
    signs = np.where(graph.data < 0, -1, 0).astype(np.int64)
    structure = (graph.indptr.astype(np.int64), graph.indices.astype(np.int64), signs)
    largest = int(np.diff(graph.indptr).max(initial=0))
    wide = (True if largest > limit else None for limit in (3, 7, 15))  # None is not compiled
    fixed = (structure, probabilities.ravel(), row_of_degree, *wide)
    streams = rng.integers(2**64, size=(n_blocks, 4, kernels.WORDS), dtype=np.uint64)
    states = rng.integers(2**64, size=(n_blocks, model.n_spins, kernels.WORDS), dtype=np.uint64)
    states[:, :, kernels.WORDS // 2 :] = 2**64 - 1  # the other half starts aligned
    kernel = kernels.heat_bath_bit_sweeps if heat_bath else kernels.metropolis_bit_sweeps
    return Chains(kernel, fixed, streams, states)


def number_chains(model: IsingModel, n_samples: int, heat_bath: bool, rng: Generator) -> Chains:
    graph = model.couplings
    n_blocks = -(-n_samples // kernels.LANES)
    structure = (graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data)
    streams = rng.integers(2**64, size=(n_blocks, 4, kernels.GENERATORS), dtype=np.uint64)
    shape = (n_blocks, model.n_spins, kernels.LANES)
    states = 2 * rng.integers(2, size=shape, dtype=np.int8) - 1
    states[:, :, kernels.LANES // 2 :] = 1  # the other half starts aligned
    kernel = kernels.heat_bath_sweeps if heat_bath else kernels.metropolis_sweeps
    return Chains(kernel, (structure, model.fields), streams, states)


def _probabilities(
    strength: float, degrees: NDArray[Any], heat_bath: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Binary digits, 0 or -1, of the probabilities that updates leave to chance, and where those of
    each degree start.

    Heat bath: up with probability 1 / (1 + exp(-2 K (2 n - d))) where n of d couplings pull up, n =
    0 ... d. Metropolis: flips with probability exp(-2 K (2 n - d)) where n > d / 2 couplings are
    satisfied, and surely where n < d / 2. Where a flip costs nothing, n = d / 2, it is tossed for:
    were it always accepted, spins in turn could go round in circles.
    """
    rows: list[list[int]] = []
    starts = np.zeros(kernels.LARGEST_DEGREE + 1, dtype=np.int64)
    for degree in np.unique(degrees).tolist():
        starts[degree] = len(rows)
        for count in range(0 if heat_bath else (degree + 1) // 2, degree + 1):
            energy = 2 * strength * (2 * count - degree)
            chance = expit(energy) if heat_bath else np.exp(-energy) if energy > 0 else 0.5
            fixed_point = min(int(chance * 2.0**64), 2**64 - 1)
            rows.append([-(fixed_point >> (63 - digit) & 1) for digit in range(64)])
    padding = [[0] * 64] * (
        kernels.LARGEST_DEGREE + 1
    )  # counts past the degree are looked up, too, but never occur
    return np.array(rows + padding, dtype=np.int64), starts
