"""Worlds of the league: Ising models that are known, and samples of them.

`WORLDS` is the table, by name; `draw(world, seed)` gives the truth, samples to learn from and
samples to score on. Seeds below `FIRST_RESERVED` are for development. Those from there on, half as
many again, and the worlds marked `reserved` are for the final run: nothing is tuned on them.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from scipy.stats import norm, uniform

import isingkit as ik
from isingkit.exceptions import OrderedTeacherWarning
from isingkit.experiments.runner import seed_of

FIRST_RESERVED = 1000  # seeds from here on are of the final run
N_HELD_OUT = 1000
UNEQUAL = uniform(0.1, 0.5)  # strengths from 0.1 to 0.6
RARE = (0.01, 0.05)  # prevalence of rare columns


@dataclass(frozen=True, slots=True)
class World:
    """One kind of Ising model, and how many samples of it there are."""

    name: str
    n_spins: int
    n_samples: int
    about: str  # for people
    make: Callable[[int], ik.IsingModel]  # the truth, of a seed
    is_exact: bool = False  # samples by enumeration or along a tree, not by Monte Carlo
    reserved: bool = False  # for the final run alone
    n_seeds: int = 8  # of development; half as many are reserved


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One world as a method meets it."""

    truth: ik.IsingModel
    train: ik.PackedSpins  # (n_samples, n_spins)
    held_out: ik.PackedSpins  # (N_HELD_OUT, n_spins)


def draw(world: World, seed: int) -> Draw:
    """The truth of a seed, samples to learn from and samples to score on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrderedTeacherWarning)  # `sample` checks equilibration
        truth = world.make(seed_of("league", world.name, seed, "truth"))
    sample = ik.exact(truth).sample if world.is_exact else _sampler(truth)
    parts = {"train": world.n_samples, "held out": N_HELD_OUT}
    train, held_out = (
        sample(n_samples=number, random_state=seed_of("league", world.name, seed, part))
        for part, number in parts.items()
    )
    return Draw(truth, train, held_out)


def _sampler(truth: ik.IsingModel) -> Callable[..., ik.PackedSpins]:
    """Monte Carlo, one chain a sample, on one thread; refused where chains remember their start."""

    def sample(n_samples: int, random_state: int) -> ik.PackedSpins:
        return ik.sample(truth, n_samples, random_state=random_state, n_jobs=1)

    return sample


def development_seeds(world: World, number: int | None = None) -> range:
    """Seeds to work with: so many, or as many as the world has by default; none of a reserved
    world.
    """
    return range(0 if world.reserved else world.n_seeds if number is None else number)


def final_seeds(world: World, number: int | None = None) -> range:
    """Seeds of the final run: a third of all, and all of a reserved world."""
    number = world.n_seeds if number is None else number
    n_final = number + number // 2 if world.reserved else -(-number // 2)
    return range(FIRST_RESERVED, FIRST_RESERVED + n_final)


# Graphs


def on_graph(graph: nx.Graph, seed: int, coupling: Any, **settings: Any) -> ik.IsingModel:
    """A model on a graph, whatever its nodes are called."""
    numbered = nx.convert_node_labels_to_integers(graph)
    return ik.from_graph(numbered, coupling=coupling, random_state=seed, **settings)


def stars(n_stars: int, n_leaves: int) -> nx.Graph:
    """Hubs, each with leaves of its own."""
    return nx.disjoint_union_all([nx.star_graph(n_leaves) for _ in range(n_stars)])


def triangular(side: int) -> nx.Graph:
    """A periodic square lattice with one diagonal in each square: six neighbours."""
    graph = nx.grid_2d_graph(side, side, periodic=True)
    graph.add_edges_from(((a, b), ((a + 1) % side, (b + 1) % side)) for a, b in list(graph))
    return graph


def cubic(side: int) -> nx.Graph:
    """A periodic cubic lattice: six neighbours."""
    return nx.grid_graph((side, side, side), periodic=True)


def communities(n_groups: int, size: int, within: float, between: float, seed: int) -> nx.Graph:
    """A planted partition: edges within and between groups with two probabilities."""
    return nx.planted_partition_graph(n_groups, size, within, between, seed=seed)


def opposed_communities(seed: int) -> ik.IsingModel:
    """Six groups of 20: couplings 0.2 within and -0.2 between."""
    graph = communities(6, 20, 0.2, 0.01, seed)
    for one, other, attributes in graph.edges(data=True):
        is_within = one // 20 == other // 20
        attributes["coupling"] = 0.2 if is_within else -0.2
    return on_graph(graph, seed, None)


def geometric(n_spins: int, mean_degree: float, seed: int) -> nx.Graph:
    """Points of the unit square, joined where they are near."""
    radius = np.sqrt(mean_degree / (np.pi * (n_spins - 1)))
    return nx.random_geometric_graph(n_spins, radius, seed=seed)


# Rare columns


def with_prevalence(model: ik.IsingModel, low: float, high: float, seed: int) -> ik.IsingModel:
    """The same couplings with fields that make spins +1 with probabilities from low to high.

    Probabilities are drawn uniformly. Fields are those of Bethe's approximation, which is exact on
    a tree: H_i = atanh m_i + sum_j (h_ij - atanh m_i), h_ij the field on i that, with one on j and
    the coupling J_ij, gives the pair the means m_i and m_j.
    """
    wanted = np.random.default_rng(seed).uniform(low, high, model.n_spins)
    alone = np.arctanh(2 * wanted - 1)
    fields = alone.copy()
    edges = model.couplings.tocoo()
    for i, j, coupling in zip(edges.row, edges.col, edges.data, strict=True):
        fields[i] += _field_in_pair(wanted[i], wanted[j], coupling) - alone[i]
    return ik.IsingModel(model.couplings, fields)


def _field_in_pair(p: float, q: float, coupling: float) -> float:
    """The field on the first of two spins that are +1 with probabilities p and q."""
    odds_ratio = np.exp(4 * coupling)
    b = 1 + (p + q) * (odds_ratio - 1)
    c = odds_ratio * (odds_ratio - 1) * p * q
    both = (b - np.sqrt(b * b - 4 * c)) / (2 * (odds_ratio - 1))  # of Plackett's distribution
    first_only = p - both
    second_only = q - both
    neither = 1 - p - second_only
    return float(np.log(both * first_only / (second_only * neither)) / 4)


def rare_regular(seed: int) -> ik.IsingModel:
    model = ik.random_regular(n_spins=60, degree=3, coupling=0.5, signs="fixed", random_state=seed)
    return with_prevalence(model, *RARE, seed)


def rare_species(seed: int) -> ik.IsingModel:
    """|J| from 0.3 to 0.7, three couplings of four positive."""
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(50, 75, seed=seed)
    signs = rng.choice([-1.0, 1.0], p=[0.25, 0.75], size=graph.number_of_edges())
    model = on_graph(graph, seed, signs * rng.uniform(0.3, 0.7, len(signs)), signs="fixed")
    return with_prevalence(model, *RARE, seed)


def dense(n_spins: int, share: float, coupling: Any, seed: int, **settings: Any) -> ik.IsingModel:
    """Few spins, of whose pairs a large share are edges."""
    graph = nx.gnp_random_graph(n_spins, share, seed=seed)
    return on_graph(graph, seed, coupling, **settings)


def glass(coupling: float) -> Callable[[int], ik.IsingModel]:
    """A periodic 4x4 lattice with random signs, at low temperature."""
    return lambda seed: ik.square_lattice(side=4, coupling=coupling, random_state=seed)


# The table

_TABLE = (
    World(
        "regular-few",
        200,
        150,
        "random regular of degree 3, K = ±0.4",
        lambda seed: ik.random_regular(n_spins=200, degree=3, coupling=0.4, random_state=seed),
    ),
    World(
        "regular-large",
        800,
        640,
        "random regular of degree 3, K = ±0.4",
        lambda seed: ik.random_regular(n_spins=800, degree=3, coupling=0.4, random_state=seed),
        n_seeds=4,
    ),
    World(
        "regular-unequal-fields",
        100,
        500,
        "random regular of degree 3, |J| from 0.1 to 0.6, fields of standard deviation 0.3",
        lambda seed: ik.random_regular(
            n_spins=100,
            degree=3,
            coupling=UNEQUAL,
            signs="random",
            fields=norm(0, 0.3),
            random_state=seed,
        ),
    ),
    World(
        "regular-near-critical",
        200,
        400,
        "random regular ferromagnet of degree 3, K = 0.5 (critical: 0.549)",
        lambda seed: ik.random_regular(
            n_spins=200, degree=3, coupling=0.5, signs="fixed", random_state=seed
        ),
    ),
    World(
        "erdos-renyi",
        200,
        200,
        "Erdos-Renyi of mean degree 4, K = ±0.4",
        lambda seed: ik.erdos_renyi(n_spins=200, mean_degree=4, coupling=0.4, random_state=seed),
    ),
    World(
        "erdos-renyi-half",
        400,
        200,
        "Erdos-Renyi of mean degree 3, K = ±0.5, half as many samples as spins",
        lambda seed: ik.erdos_renyi(n_spins=400, mean_degree=3, coupling=0.5, random_state=seed),
        n_seeds=6,
    ),
    World(
        "erdos-renyi-ferromagnet",
        100,
        500,
        "Erdos-Renyi ferromagnet of mean degree 4, J = 0.2",
        lambda seed: ik.erdos_renyi(
            n_spins=100, mean_degree=4, coupling=0.2, signs="fixed", random_state=seed
        ),
    ),
    World(
        "barabasi-albert",
        100,
        100,
        "Barabasi-Albert, m = 2, J = ±0.25",
        lambda seed: on_graph(nx.barabasi_albert_graph(100, 2, seed=seed), seed, 0.25),
    ),
    World(
        "barabasi-albert-ferromagnet",
        100,
        1000,
        "Barabasi-Albert ferromagnet, m = 2, J = 0.15",
        lambda seed: on_graph(
            nx.barabasi_albert_graph(100, 2, seed=seed), seed, 0.15, signs="fixed"
        ),
    ),
    World(
        "barabasi-albert-large",
        800,
        800,
        "Barabasi-Albert, m = 2, J = ±0.25",
        lambda seed: on_graph(nx.barabasi_albert_graph(800, 2, seed=seed), seed, 0.25),
        n_seeds=4,
    ),
    World(
        "stars",
        100,
        150,
        "ten stars of nine leaves, J = ±0.4",
        lambda seed: on_graph(stars(10, 9), seed, 0.4),
        is_exact=True,
    ),
    World(
        "one-star",
        50,
        500,
        "one hub with 49 leaves, J = 0.2",
        lambda seed: on_graph(stars(1, 49), seed, 0.2, signs="fixed"),
        is_exact=True,
    ),
    World(
        "watts-strogatz-ferromagnet",
        100,
        600,
        "Watts-Strogatz ferromagnet, k = 6, rewiring 0.1, J = 0.15",
        lambda seed: on_graph(
            nx.watts_strogatz_graph(100, 6, 0.1, seed=seed), seed, 0.15, signs="fixed"
        ),
    ),
    World(
        "watts-strogatz-mixed",
        200,
        400,
        "Watts-Strogatz, k = 4, rewiring 0.1, J = ±0.3",
        lambda seed: on_graph(nx.watts_strogatz_graph(200, 4, 0.1, seed=seed), seed, 0.3),
    ),
    World(
        "communities",
        100,
        300,
        "five groups of 20, pairs joined with probability 0.3 within and 0.01 between, J = 0.15",
        lambda seed: on_graph(communities(5, 20, 0.3, 0.01, seed), seed, 0.15, signs="fixed"),
    ),
    World(
        "communities-opposed",
        120,
        600,
        "six groups of 20, pairs joined with probability 0.2 within, J = 0.2, "
        "and 0.01 between, J = -0.2",
        opposed_communities,
    ),
    World(
        "triangular-ferromagnet",
        100,
        500,
        "periodic 10x10 triangular ferromagnet, J = 0.15 (critical: 0.275)",
        lambda seed: on_graph(triangular(10), seed, 0.15, signs="fixed"),
    ),
    World(
        "square-near-critical",
        100,
        600,
        "periodic 10x10 ferromagnet, K = 0.42 (critical: 0.441)",
        lambda seed: ik.square_lattice(side=10, coupling=0.42, signs="fixed", random_state=seed),
    ),
    World(
        "square-mixed",
        256,
        384,
        "periodic 16x16, K = ±0.35",
        lambda seed: ik.square_lattice(side=16, coupling=0.35, random_state=seed),
    ),
    World(
        "cubic-ferromagnet",
        125,
        600,
        "periodic 5x5x5 ferromagnet, K = 0.18 (critical: 0.222)",
        lambda seed: on_graph(cubic(5), seed, 0.18, signs="fixed"),
    ),
    World(
        "cubic-mixed",
        216,
        648,
        "periodic 6x6x6, |J| from 0.1 to 0.6",
        lambda seed: on_graph(cubic(6), seed, UNEQUAL, signs="random"),
        n_seeds=6,
    ),
    World(
        "tree",
        200,
        100,
        "random tree, K = ±0.6, half as many samples as spins",
        lambda seed: ik.random_tree(n_spins=200, coupling=0.6, random_state=seed),
        is_exact=True,
    ),
    World(
        "tree-unequal-fields",
        150,
        1500,
        "random tree, |J| from 0.1 to 0.6, fields of standard deviation 0.3",
        lambda seed: ik.random_tree(
            n_spins=150,
            coupling=UNEQUAL,
            signs="random",
            fields=norm(0, 0.3),
            random_state=seed,
        ),
        is_exact=True,
    ),
    World("glass-0.8", 16, 320, "periodic 4x4, K = ±0.8", glass(0.8), is_exact=True),
    World("glass-1.0", 16, 2000, "periodic 4x4, K = ±1.0", glass(1.0), is_exact=True),
    World("glass-1.2", 16, 5000, "periodic 4x4, K = ±1.2", glass(1.2), is_exact=True),
    World(
        "dense-8",
        8,
        160,
        "8 spins, half of the pairs joined, J = ±0.3",
        lambda seed: dense(8, 0.5, 0.3, seed),
        is_exact=True,
        n_seeds=16,
    ),
    World(
        "dense-12",
        12,
        240,
        "12 spins, 0.6 of the pairs joined, |J| from 0.1 to 0.6, fields of standard deviation 0.3",
        lambda seed: dense(12, 0.6, UNEQUAL, seed, signs="random", fields=norm(0, 0.3)),
        is_exact=True,
        n_seeds=16,
    ),
    World(
        "rare-regular",
        60,
        1200,
        "random regular of degree 3, J = 0.5, columns +1 in 1 to 5 percent of rows",
        rare_regular,
    ),
    World(
        "rare-species",
        50,
        500,
        "random graph of 75 edges, |J| from 0.3 to 0.7, three of four positive, "
        "columns +1 in 1 to 5 percent of rows",
        rare_species,
    ),
    World(
        "geometric-ferromagnet",
        100,
        500,
        "random geometric ferromagnet of mean degree 5, J = 0.15",
        lambda seed: on_graph(geometric(100, 5, seed), seed, 0.15, signs="fixed"),
        reserved=True,
    ),
    World(
        "holme-kim-unequal",
        150,
        450,
        "Holme-Kim (scale-free, clustered), m = 2, triangles 0.5, |J| from 0.1 to 0.6",
        lambda seed: on_graph(
            nx.powerlaw_cluster_graph(150, 2, 0.5, seed=seed), seed, UNEQUAL, signs="random"
        ),
        reserved=True,
    ),
    World(
        "honeycomb-fields",
        120,
        300,
        "periodic honeycomb lattice, K = ±0.4, fields of standard deviation 0.3",
        lambda seed: on_graph(
            nx.hexagonal_lattice_graph(6, 10, periodic=True), seed, 0.4, fields=norm(0, 0.3)
        ),
        reserved=True,
    ),
)
WORLDS = {world.name: world for world in _TABLE}
