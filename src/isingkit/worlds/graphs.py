"""Teachers: Ising models whose truth is known. No N x N anything: a million spins take seconds."""

import itertools
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_array

from isingkit._kernels.graphs import tree_edges
from isingkit.arrays import FloatArray, IntArray, Pairs, distinct
from isingkit.exceptions import OrderedTeacherWarning, SettingError, require_number, warn
from isingkit.model import IsingModel
from isingkit.spins import Names
from isingkit.theory.phase import paramagnetic

if TYPE_CHECKING:
    import networkx

Seed = int | Generator | None


def generator(random_state: Seed) -> Generator:
    """A numpy Generator of a seed, or the one given."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        expected = "a whole number >= 0, a Generator or None"
        raise SettingError(setting="random_state", value=random_state, expected=expected) from None


def random_regular(
    *,
    n_spins: int,
    degree: int,
    coupling: Any,
    signs: str | None = None,
    fields: Any = None,
    random_state: Seed = None,
) -> IsingModel:
    """A random regular graph: every spin has `degree` neighbours.

    Stubs are paired at random; pairs that would be loops or double edges are drawn anew together
    with as many sound ones.

    Parameters
    ----------
    n_spins
        N.
    degree
        c, neighbours of each spin.
    coupling
        K, one strength; or a distribution with `rvs`, such as scipy.stats.norm(0, 0.3); or an
        array, one for each edge.
    signs
        "random" makes each coupling positive or negative with probability 1/2, "fixed" leaves it as
        it is. By default one strength gets random signs, as in the paper, and everything else is
        left as it is.
    fields
        H: one number, an array, or a distribution with `rvs`; none by default.
    random_state
        Seed or numpy Generator.
    """
    require_number("n_spins", n_spins, at_least=1, whole=True)
    require_number("degree", degree, at_least=0, whole=True)
    if degree >= n_spins or n_spins * degree % 2:
        expected = f"from 0 to n_spins - 1 = {n_spins - 1}, with n_spins * degree even"
        raise SettingError(setting="degree", value=degree, expected=expected)
    rng = generator(random_state)
    pairs = paired_stubs(n_spins, degree, rng)
    return _teacher(pairs, n_spins, coupling, signs, fields, rng)


def erdos_renyi(
    *,
    n_spins: int,
    mean_degree: float,
    coupling: Any,
    signs: str | None = None,
    fields: Any = None,
    random_state: Seed = None,
) -> IsingModel:
    """An Erdos-Renyi graph: every pair is an edge with probability p = mean_degree / n_spins.

    Parameters
    ----------
    n_spins
        N.
    mean_degree
        c-bar.
    coupling
        As in random_regular.
    signs
        As in random_regular.
    fields
        As in random_regular.
    random_state
        Seed or numpy Generator.
    """
    require_number("n_spins", n_spins, at_least=1, whole=True)
    require_number("mean_degree", mean_degree, at_least=0)
    if mean_degree > n_spins:
        expected = f"from 0 to n_spins = {n_spins}"
        raise SettingError(setting="mean_degree", value=mean_degree, expected=expected)
    rng = generator(random_state)
    pairs = random_pairs(n_spins, mean_degree / n_spins, rng)
    return _teacher(pairs, n_spins, coupling, signs, fields, rng)


def square_lattice(
    *,
    side: int,
    coupling: Any,
    periodic: bool = True,
    signs: str | None = None,
    fields: Any = None,
    random_state: Seed = None,
) -> IsingModel:
    """A square lattice of side * side spins, row by row.

    Parameters
    ----------
    side
        Spins in a row and in a column.
    coupling
        As in random_regular.
    periodic
        Whether the last row and column touch the first (a torus) or end (an open square).
    signs
        As in random_regular.
    fields
        As in random_regular.
    random_state
        Seed or numpy Generator.
    """
    require_number("side", side, at_least=3 if periodic else 1, whole=True)
    grid = np.arange(side * side).reshape(side, side)
    right = np.roll(grid, -1, axis=1)
    below = np.roll(grid, -1, axis=0)
    if periodic:
        steps = [(grid, right), (grid, below)]
    else:
        steps = [(grid[:, :-1], right[:, :-1]), (grid[:-1], below[:-1])]
    both = [np.stack([a.ravel(), b.ravel()], axis=1) for a, b in steps]
    pairs = np.concatenate(both)
    return _teacher(pairs, side * side, coupling, signs, fields, generator(random_state))


def random_tree(
    *,
    n_spins: int,
    coupling: Any,
    signs: str | None = None,
    fields: Any = None,
    random_state: Seed = None,
) -> IsingModel:
    """A random tree, each labelled tree being as likely (by its Pruefer sequence).

    Parameters
    ----------
    n_spins
        N.
    coupling
        As in random_regular.
    signs
        As in random_regular.
    fields
        As in random_regular.
    random_state
        Seed or numpy Generator.
    """
    require_number("n_spins", n_spins, at_least=1, whole=True)
    rng = generator(random_state)
    pruefer = rng.integers(n_spins, size=max(0, n_spins - 2))
    pairs = tree_edges(pruefer, n_spins)
    return _teacher(pairs, n_spins, coupling, signs, fields, rng)


def from_graph(
    graph: "networkx.Graph",
    *,
    coupling: Any = None,
    signs: str | None = None,
    fields: Any = None,
    random_state: Seed = None,
) -> IsingModel:
    """A model on any networkx graph, its nodes as names.

    Parameters
    ----------
    graph
        An undirected graph without loops.
    coupling
        As in random_regular; by default the edges' attribute "coupling", or "weight".
    signs
        As in random_regular.
    fields
        As in random_regular; by default the nodes' attribute "field" where they have it.
    random_state
        Seed or numpy Generator.
    """
    _require_simple(graph)
    if coupling is None:
        coupling = _couplings_of(graph)
    if fields is None:
        fields = _fields_of(graph)
    place: dict[Hashable, int] = {node: k for k, node in enumerate(graph.nodes)}
    edges = [[place[a], place[b]] for a, b in graph.edges]
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    names = tuple(str(node) for node in graph.nodes)
    return _teacher(pairs, len(place), coupling, signs, fields, generator(random_state), names)


def _require_simple(graph: Any) -> None:
    """Refuse what is no undirected graph without loops and double edges."""
    if not hasattr(graph, "is_directed"):
        raise SettingError(setting="graph", value=type(graph), expected="a networkx graph")
    has_loop = any(a == b for a, b in graph.edges())
    if graph.is_directed() or graph.is_multigraph() or has_loop:
        expected = "an undirected graph without loops and double edges"
        raise SettingError(setting="graph", value=graph, expected=expected)


def _couplings_of(graph: "networkx.Graph") -> list[Any]:
    """The edges' own, in their order."""
    found = []
    for _, _, attributes in graph.edges(data=True):
        found.append(attributes.get("coupling", attributes.get("weight")))
    if None in found:
        expected = "given where edges have no 'coupling' or 'weight'"
        raise SettingError(setting="coupling", value=None, expected=expected)
    return found


def _fields_of(graph: "networkx.Graph") -> FloatArray | None:
    """The nodes' own, 0 where one has none; None where none has any."""
    found = dict(graph.nodes(data="field"))
    if all(field is None for field in found.values()):
        return None
    return np.array([0.0 if field is None else field for field in found.values()])


# Edges


def random_pairs(n_spins: int, probability: float, rng: Generator) -> Pairs:
    """Edges of a graph in which every pair is one with this probability."""
    n_pairs = n_spins * (n_spins - 1) // 2
    n_edges = int(rng.binomial(n_pairs, probability))
    return _unranked(_distinct(n_pairs, n_edges, rng))


def paired_stubs(n_spins: int, degree: int, rng: Generator) -> Pairs:
    """Edges of a random regular graph."""
    if 2 * degree >= n_spins:  # dense: the complement is regular, too, and easier to draw
        others = paired_stubs(n_spins, n_spins - 1 - degree, rng)
        chosen = np.triu(np.ones((n_spins, n_spins), dtype=bool), 1)
        chosen[others[:, 0], others[:, 1]] = False
        return np.argwhere(chosen)
    every = np.repeat(np.arange(n_spins), degree)
    stubs = rng.permutation(every).reshape(-1, 2)
    for attempt in itertools.count():
        stubs.sort(axis=1)
        bad = _loops_and_repeats(stubs, n_spins)
        if len(bad) == 0:
            break
        # every now and then half of the sound pairs are drawn anew as well: there is always a way
        # out
        extra = len(bad) + 2 if attempt % 20 else len(stubs) // 2
        again = distinct(bad, rng.integers(len(stubs), size=extra))
        stubs[again] = rng.permutation(stubs[again].ravel()).reshape(-1, 2)
    return stubs


def _loops_and_repeats(pairs: Pairs, n_spins: int) -> NDArray[np.intp]:
    """Places of the pairs that are no edge of a simple graph."""
    keys = pairs[:, 0] * n_spins + pairs[:, 1]
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    repeated = np.zeros(len(keys), dtype=bool)
    repeated[order[1:]] = sorted_keys[1:] == sorted_keys[:-1]
    return np.flatnonzero(repeated | (pairs[:, 0] == pairs[:, 1]))


def _distinct(n_values: int, count: int, rng: Generator) -> IntArray:
    """A random set of `count` of the numbers below n_values, without listing them all.

    Of most of them, it is the others that are drawn: the last few would be drawn over and over.
    """
    if 2 * count > n_values:
        others = _distinct(n_values, n_values - count, rng)
        return np.delete(np.arange(n_values), others)
    chosen = np.empty(0, np.int64)
    while len(chosen) < count:
        more = rng.integers(n_values, size=count - len(chosen))
        chosen = distinct(chosen, more)
    return chosen


def _unranked(ranks: IntArray) -> Pairs:
    """The pair (i, j), i < j, of each rank j (j - 1) / 2 + i."""
    root = np.sqrt(1 + 8 * ranks.astype(np.float64))
    column = ((1 + root) / 2).astype(np.int64)
    column -= column * (column - 1) // 2 > ranks  # where the square root was rounded up
    column += (column + 1) * column // 2 <= ranks
    row = ranks - column * (column - 1) // 2
    return np.stack([row, column], axis=1)


# Couplings and fields


def _teacher(
    pairs: Pairs,
    n_spins: int,
    coupling: Any,
    signs: str | None,
    fields: Any,
    rng: Generator,
    names: Names | None = None,
) -> IsingModel:
    """The model on these edges; an array of couplings follows their order.

    That is the order of a given graph, which has names, or else they are sorted.
    """
    pairs = np.sort(pairs, axis=1)
    if names is None:
        first, second = pairs.T
        pairs = pairs[np.lexsort((second, first))]
    strengths = _drawn("coupling", coupling, len(pairs), rng)
    if _has_random_signs(signs, coupling):
        strengths = strengths * rng.choice([-1.0, 1.0], size=len(pairs))
    rows, columns = pairs.T
    upper = csr_array((strengths, (rows, columns)), shape=(n_spins, n_spins))
    field_of_spins = _drawn("fields", 0.0 if fields is None else fields, n_spins, rng)
    model = IsingModel(upper + upper.T, field_of_spins, names)  # type: ignore[arg-type]
    phase = paramagnetic(model)
    if not phase.holds:
        warn(OrderedTeacherWarning(glass=phase.glass, order=phase.order))
    return model


def _has_random_signs(signs: str | None, coupling: Any) -> bool:
    """By default where all couplings are of one strength."""
    if signs not in (None, "random", "fixed"):
        raise SettingError(setting="signs", value=signs, expected="'random', 'fixed' or None")
    if signs is None:
        return np.ndim(coupling) == 0 and not hasattr(coupling, "rvs")
    return signs == "random"


def _drawn(setting: str, value: Any, count: int, rng: Generator) -> FloatArray:
    """One number for each edge or spin: the same, drawn, or as given."""
    if hasattr(value, "rvs"):
        return np.asarray(value.rvs(size=count, random_state=rng), dtype=np.float64)
    if np.ndim(value) == 0:
        require_number(setting, value)
        return np.full(count, float(value))
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (count,) or not np.isfinite(values).all():
        expected = f"a number, a distribution, or {count} finite numbers"
        raise SettingError(setting=setting, value=f"shape {values.shape}", expected=expected)
    return values
