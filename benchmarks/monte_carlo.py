"""Spin updates a second: chains as bits and as numbers, an annealer in C++, a plain numba loop."""

from importlib.metadata import version

import numba
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler

import isingkit as ik
from side_by_side import Claim, faster, seconds

N_SPINS = 1000
N_CHAINS = 512
N_SWEEPS = 100
DWAVE_READS = 40
PLAIN_CHAINS = 20  # as many sweeps of one chain


@numba.njit
def plain_metropolis(indptr, indices, couplings, n_sweeps, state):
    """One chain, spins in order, as one would write it at first."""
    for _ in range(n_sweeps):
        for i in range(len(state)):
            local = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                local += couplings[k] * state[indices[k]]
            if np.random.random() < np.exp(-2 * state[i] * local):  # noqa: NPY002  (numba's own generator)
                state[i] = -state[i]


def rivals(model, update):
    """Work of N_CHAINS * N_SWEEPS sweeps, or a fraction of it for the slow ones, by name."""
    upper = model.couplings.tocoo()
    interactions = {
        (int(i), int(j)): -float(c)
        for i, j, c in zip(upper.row, upper.col, upper.data, strict=True)
        if i < j
    }
    annealer = SimulatedAnnealingSampler()
    graph = model.couplings
    state = np.ones(N_SPINS, np.int8)

    def ours(n_jobs, longer=1):
        settings = {
            "n_samples": longer * N_CHAINS,
            "warm_up": longer * N_SWEEPS,
            "update": update,
            "n_jobs": n_jobs,
        }
        return ik.sample(model, check=False, random_state=0, **settings)

    def dwave():
        schedule = {
            "beta_range": [1.0, 1.0],
            "beta_schedule_type": "linear",
            "num_sweeps": N_SWEEPS,
        }
        return annealer.sample_ising(
            dict.fromkeys(range(N_SPINS), 0.0),
            interactions,
            num_reads=DWAVE_READS,
            seed=1,
            **schedule,
        )

    edges = np.array([[i, j] for i, j in interactions])
    strengths = np.array(list(interactions.values()))
    for states in (np.asarray(ours(1)), dwave().record.sample):  # the same mean energy
        products = states[:, edges[:, 0]].astype(float) * states[:, edges[:, 1]]
        energy = (products @ strengths).mean()
        on_a_tree = -(strengths * np.tanh(strengths)).sum()
        assert abs(energy / on_a_tree - 1) < 0.1
    return {
        "ours": lambda: ours(1),
        "one thread": lambda: ours(1, 8),
        "two threads": lambda: ours(2, 8),
        "dwave": dwave,
        "numba": lambda: plain_metropolis(
            graph.indptr, graph.indices, graph.data, PLAIN_CHAINS * N_SWEEPS, state
        ),
    }


def measure() -> list[Claim]:
    """Per update: the slow rivals do fewer, and their seconds are scaled up."""
    regular = ik.random_regular(n_spins=N_SPINS, degree=3, coupling=0.4, random_state=0)
    poisson = ik.erdos_renyi(n_spins=N_SPINS, mean_degree=4, coupling=0.4, random_state=0)
    jitter = np.random.default_rng(0).uniform(0.999, 1.001, regular.couplings.nnz // 2)
    signs = np.sign(np.array([coupling for *_, coupling in sorted(regular.edges().tolist())]))
    unequal = ik.from_graph(regular.to_networkx(), coupling=0.4 * jitter * signs)
    annealer = f"SimulatedAnnealingSampler, dwave-samplers {version('dwave-samplers')}"
    loop = f"a plain loop over one chain, numba {numba.__version__}"
    claims = []
    for what, model, at_least in (
        ("chains as bits, random regular, c=3", regular, 100),
        ("chains as bits, Erdos-Renyi, mean degree 4", poisson, 60),
        ("chains as numbers, random regular, c=3", unequal, 15),
    ):
        taken = seconds(rivals(model, "metropolis"), rounds=7)
        dwave = [time * N_CHAINS / DWAVE_READS for time in taken["dwave"]]
        plain = [time * N_CHAINS / PLAIN_CHAINS for time in taken["numba"]]
        threads = f"{what}, two threads"
        claims += [
            faster(what, annealer, taken["ours"], dwave, at_least),
            faster(what, loop, taken["ours"], plain, at_least),
            faster(threads, "one thread", taken["two threads"], taken["one thread"], 1.7),
        ]
        per_update = min(taken["ours"]) / (N_SPINS * N_CHAINS * N_SWEEPS)
        print(f"{what}: {1e9 * per_update:.3f} ns an update")
    return claims
