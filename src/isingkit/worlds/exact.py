"""Exact worlds: every sum done, for up to 24 spins by enumeration and for trees of any size."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from isingkit._kernels import exact as kernels
from isingkit._kernels import sampling
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import FloatArray, IntArray
from isingkit.exceptions import SettingError, require_instance, require_number
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins, pack
from isingkit.spins import Spins
from isingkit.worlds.graphs import Seed, generator
from isingkit.worlds.sampling import Chains

MOST_SPINS = 24
_MOST_STATES = 2**30  # of all rows of covariates: a minute


@dataclass(frozen=True, slots=True, eq=False)
class Enumeration:
    """All 2^N states of a small model."""

    model: IsingModel
    log_z: float
    # (2**n_spins,): of the state whose bit i, counted from the lowest, is 1 where spin i is +1
    probabilities: FloatArray
    means: FloatArray  # (n_spins,): <s_i>
    pair_means: FloatArray  # (n_spins, n_spins): <s_i s_j>

    def sample(self, *, n_samples: int, random_state: Seed = None) -> PackedSpins:
        """Independent samples, exactly.

        Parameters
        ----------
        n_samples
            How many.
        random_state
            Seed or numpy Generator.
        """
        require_number("n_samples", n_samples, at_least=1, whole=True)
        rng = generator(random_state)
        cumulative = np.cumsum(self.probabilities)
        drawn = np.searchsorted(cumulative / cumulative[-1], rng.random(n_samples), side="right")
        return _packed_states(drawn, self.model)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Sums over a tree, or over several."""

    model: IsingModel
    log_z: float
    means: FloatArray  # (n_spins,): <s_i>
    order: IntArray  # (n_spins,): every spin after its parent
    parent: IntArray  # (n_spins,): -1 for roots
    parent_means: FloatArray  # (n_spins,): <s_i s_parent(i)>, and <s_i> for roots
    parent_couplings: FloatArray  # (n_spins,): J with the parent, and 0 for roots
    cavity: FloatArray  # (n_spins,): field on a spin of its own and of all below it

    def sample(self, *, n_samples: int, random_state: Seed = None) -> PackedSpins:
        """Independent samples, exactly: from the roots down, each spin given its parent.

        Parameters
        ----------
        n_samples
            How many.
        random_state
            Seed or numpy Generator.
        """
        require_number("n_samples", n_samples, at_least=1, whole=True)
        rng = generator(random_state)
        n_spins = len(self.order)
        n_blocks = -(-n_samples // sampling.LANES)
        # One heat-bath sweep in this order, on a graph in which a spin's only neighbour is its
        # parent, is ancestral sampling
        place = np.empty(n_spins, np.int64)
        place[self.order] = np.arange(n_spins)
        has_parent = self.parent[self.order] >= 0
        indptr = np.concatenate([[0], np.cumsum(has_parent)])
        indices = place[self.parent[self.order][has_parent]]
        couplings = self.parent_couplings[self.order][has_parent]
        streams = rng.integers(2**64, size=(n_blocks, 4, sampling.GENERATORS), dtype=np.uint64)
        states = np.ones((n_blocks, n_spins, sampling.LANES), dtype=np.int8)
        fixed = ((indptr, indices, couplings), self.cavity[self.order])
        chains = Chains(sampling.heat_bath_sweeps, fixed, streams, states)
        chains.sweep(1)
        return PackedSpins(chains.words()[place], chains.n_chains, self.model.names)[:n_samples]

    def pair_mean(self, i: int, j: int) -> float:
        """<s_i s_j> of any two spins of one tree; without fields the product of tanh J along the
        path between them.

        Parameters
        ----------
        i
            A spin.
        j
            Another, or the same.
        """
        i, j = (
            range(len(self.means))[spin] for spin in (i, j)
        )  # negative places count from the end
        above_i = self._ancestors(i)
        above_j = self._ancestors(j)
        meeting = next((spin for spin in above_i if spin in above_j), None)
        if meeting is None:  # two trees are independent
            return float(self.means[i] * self.means[j])
        (a, b), (c, d) = above_i[meeting], above_j[meeting]
        return float(a * c + b * d + (a * d + b * c) * self.means[meeting])

    def _ancestors(self, spin: int) -> dict[int, tuple[float, float]]:
        """For the spin and each above it the numbers with <s_spin | s_above> = a + b s_above,
        nearest first.
        """
        a = 0.0
        b = 1.0
        found = {spin: (0.0, 1.0)}
        while self.parent[spin] >= 0:
            own = self.cavity[spin]
            coupling = self.parent_couplings[spin]
            up, down = (np.tanh(own + sign * coupling) for sign in (1, -1))
            a = a + b * (up + down) / 2
            b = b * (up - down) / 2
            spin = int(self.parent[spin])
            found[spin] = (a, b)
        return found


def exact(model: IsingModel) -> Enumeration | Tree:
    """log Z, magnetisations, correlations and exact samples: of trees by summing from the leaves
    up, else by enumeration.

    Examples
    --------
    >>> import isingkit as ik
    >>> pair = ik.IsingModel([[0, 0.5], [0.5, 0]])
    >>> round(ik.exact(pair).log_z, 6)  # log(4 cosh(1/2))
    1.506409
    """
    require_instance("model", model, IsingModel, "an IsingModel")
    tree = _tree(model)
    if tree is not None:
        return tree
    if model.n_spins > MOST_SPINS:
        raise SettingError(
            setting="model",
            value=model,
            expected=f"a tree, or have at most {MOST_SPINS} spins (isingkit.sample takes any)",
        )
    return enumeration(model)


def log_partitions(model: IsingModel, fields: FloatArray) -> FloatArray:
    """(n,): log Z of the model with other fields, (n, n_spins), row by row."""
    tree = _tree(model)
    if tree is not None:
        fixed = (tree.order, tree.parent, tree.parent_couplings)
        return np.array(
            [kernels.sum_upwards(*fixed, row, np.empty(model.n_spins)) for row in fields]
        )
    if model.n_spins > MOST_SPINS or len(fields) * 2**model.n_spins > _MOST_STATES:
        raise SettingError(
            setting="covariates",
            value=f"{len(fields)} different rows of them for {model.n_spins} spins",
            expected="those of a tree, or so few that 2^n_spins states of each can be summed",
        )
    masks, i, j = statistics_of(model.n_spins)
    energy: FloatArray = np.zeros(2**model.n_spins)
    energy[masks[model.n_spins :]] = model.couplings.toarray()[i, j]
    walsh_hadamard(energy)
    return np.array([logsumexp(energy + _field_energies(row)) for row in fields])


def _field_energies(fields: FloatArray) -> FloatArray:
    """(2**n_spins,): sum_i H_i s_i of all states; bit i is set where spin i is -1."""
    energies = np.zeros(1)
    for field in fields:
        energies = np.concatenate([energies + field, energies - field])
    return energies


def enumeration(model: IsingModel) -> Enumeration:
    """Enumeration of all states of a model of at most 24 spins, trees included."""
    require_number("n_spins of the model", model.n_spins, at_least=1, whole=True)
    if model.n_spins > MOST_SPINS:
        raise SettingError(setting="model", value=model, expected=f"of at most {MOST_SPINS} spins")
    masks, i, j = statistics_of(model.n_spins)
    energy = log_weights(model)
    largest = energy.max()
    weights = np.exp(energy - largest)
    total = weights.sum()
    moments = weights / total
    probabilities = moments[::-1].copy()
    walsh_hadamard(moments)
    pair_means = np.eye(model.n_spins)
    pair_means[i, j] = pair_means[j, i] = moments[masks[model.n_spins :]]
    log_z = float(largest + np.log(total))
    means = moments[masks[: model.n_spins]]
    return Enumeration(model, log_z, probabilities, means, pair_means)


def log_weights(model: IsingModel) -> FloatArray:
    """(2**n_spins,): sum_{i<j} J_ij s_i s_j + sum_i H_i s_i of all states; bit i is set where spin
    i is -1.
    """
    masks, i, j = statistics_of(model.n_spins)
    energy: FloatArray = np.zeros(2**model.n_spins)
    energy[masks] = np.concatenate([model.fields, model.couplings.toarray()[i, j]])
    walsh_hadamard(energy)
    return energy


def statistics_of(n_spins: int) -> tuple[IntArray, NDArray[np.intp], NDArray[np.intp]]:
    """Which products of spins a model's fields and couplings go with, as sets of bits; then first
    and second spin of each pair.
    """
    i, j = np.triu_indices(n_spins, 1)
    bits = 1 << np.arange(n_spins, dtype=np.int64)
    return np.concatenate([bits, bits[i] | bits[j]]), i, j


def walsh_hadamard(values: FloatArray) -> None:
    """Replace values[a], in place, by the sum over b of values[b] (-1)^(number of bits that a and b
    share), 2^N numbers.

    With bit i of a state set where spin i is -1, and a set of spins written as bits: takes the
    coefficients of all products of spins to the energies of all states, and probabilities of states
    to the means of all products.
    """
    rows = 1 << max(0, (len(values).bit_length() - 1) // 2 - 3)
    table = values.reshape(rows, -1)
    parallel_map(kernels.transform_rows, rows, table, chunk=max(1, rows // 8))
    n_columns = table.shape[1]
    chunk = max(64, n_columns // 16)
    parallel_map(kernels.transform_columns, n_columns, table, chunk=chunk)


def _tree(model: IsingModel) -> Tree | None:
    graph = model.couplings
    n_spins = model.n_spins
    if model.n_edges >= n_spins:
        return None
    order = np.empty(n_spins, np.int64)
    parent = np.empty(n_spins, np.int64)
    if not kernels.spanning_order(graph.indptr, graph.indices, order, parent):
        return None
    couplings = np.zeros(n_spins)
    below = np.flatnonzero(parent >= 0)
    if len(below):
        couplings[below] = np.asarray(graph[below, parent[below]]).ravel()
    cavity, means, parent_means = (np.empty(n_spins) for _ in range(3))
    log_z = kernels.sum_upwards(order, parent, couplings, model.fields, cavity)
    kernels.sum_downwards(order, parent, couplings, cavity, means, parent_means)
    return Tree(model, float(log_z), means, order, parent, parent_means, couplings, cavity)


def _packed_states(states: NDArray[Any], model: IsingModel) -> PackedSpins:
    is_up = states[:, None] >> np.arange(model.n_spins) & 1
    values = (2 * is_up - 1).astype(np.int8)
    return pack(Spins(values, model.names, ((-1, 1),) * model.n_spins, None, False))
