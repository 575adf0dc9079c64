"""Teachers: Ising models whose truth is known."""

import networkx
import numpy as np
import scipy.sparse

from isingkit.exceptions import SettingError, require_number
from isingkit.model import IsingModel

Seed = int | np.random.Generator | None


def random_regular(*, n_spins: int, degree: int, coupling: float, random_state: Seed = None) -> IsingModel:
    """A random regular graph: every spin has `degree` neighbours, couplings are +coupling or -coupling with probability 1/2.

    Parameters
    ----------
    n_spins
        N.
    degree
        c, neighbours of each spin.
    coupling
        K, the strength of every coupling.
    random_state
        Seed or numpy Generator.
    """
    require_number("n_spins", n_spins, at_least=1, whole=True)
    require_number("degree", degree, at_least=0, whole=True)
    require_number("coupling", coupling)
    if degree >= n_spins or n_spins * degree % 2:
        expected = f"from 0 to n_spins - 1 = {n_spins - 1}, with n_spins * degree even"
        raise SettingError(setting="degree", value=degree, expected=expected)
    rng = np.random.default_rng(random_state)
    graph = networkx.random_regular_graph(degree, n_spins, seed=int(rng.integers(2**32)))
    return _with_random_signs(graph, coupling, rng)


def erdos_renyi(*, n_spins: int, mean_degree: float, coupling: float, random_state: Seed = None) -> IsingModel:
    """An Erdos-Renyi graph: every pair is an edge with probability mean_degree / n_spins, couplings are +-coupling as likely.

    Parameters
    ----------
    n_spins
        N.
    mean_degree
        c-bar.
    coupling
        K, the strength of every coupling.
    random_state
        Seed or numpy Generator.
    """
    require_number("n_spins", n_spins, at_least=1, whole=True)
    require_number("mean_degree", mean_degree, at_least=0)
    require_number("coupling", coupling)
    if mean_degree > n_spins:
        raise SettingError(setting="mean_degree", value=mean_degree, expected=f"from 0 to n_spins = {n_spins}")
    rng = np.random.default_rng(random_state)
    graph = networkx.fast_gnp_random_graph(n_spins, mean_degree / n_spins, seed=int(rng.integers(2**32)))
    return _with_random_signs(graph, coupling, rng)


def _with_random_signs(graph: networkx.Graph, coupling: float, rng: np.random.Generator) -> IsingModel:
    n_spins = graph.number_of_nodes()
    pairs = np.array(sorted(tuple(sorted(edge)) for edge in graph.edges), dtype=np.int64).reshape(-1, 2)
    signed = coupling * rng.choice([-1.0, 1.0], size=len(pairs))
    upper = scipy.sparse.csr_array((signed, (pairs[:, 0], pairs[:, 1])), shape=(n_spins, n_spins))
    return IsingModel(upper + upper.T)
