"""Inclusion probabilities: of pairs said to be edges with a probability of 0.9, are 0.9 edges?

Planted worlds of many kinds, each fitted with `AutoIsing(inclusion=True)`. Settings were chosen on
other seeds of the kinds of `KNOWN`; nothing was chosen by those of `ASIDE`. Sections:

- `deciles`: all worlds together, by tenths of the probability: what was said, what is;
- `aside`: the same of the kinds of `ASIDE`;
- `kinds`: each kind by itself, by fifths; edges expected over edges there are; CPU seconds beside a
  fit without probabilities.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from results import Row, markdown, write_settings, write_table
from tqdm import tqdm

import isingkit as ik

NAME = "inclusion_probabilities"
SEED = 70_411  # of all worlds
TENTHS = np.r_[0.02, 0.05, np.arange(1, 10) / 10, 0.95, 0.99, 1.0]
FIFTHS = np.r_[0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0]
FEWEST = 30  # pairs, of which a share is worth showing
ROWS_OF_A_PERSON = 5
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """Rows, the network behind them, and what is known of rows."""

    truth: ik.IsingModel
    rows: Any
    known: dict[str, Any] = field(default_factory=dict)


def _drawn(truth: ik.IsingModel, n_rows: int, rng: Generator) -> World:
    return World(truth, ik.sample(truth, n_samples=n_rows, random_state=rng))


def _regular(n: int, coupling: float, n_rows: int, rng: Generator) -> World:
    truth = ik.random_regular(n_spins=n, degree=3, coupling=coupling, random_state=rng)
    return _drawn(truth, n_rows, rng)


def _erdos_renyi(n: int, coupling: float, n_rows: int, rng: Generator) -> World:
    truth = ik.erdos_renyi(n_spins=n, mean_degree=4, coupling=coupling, random_state=rng)
    return _drawn(truth, n_rows, rng)


def _unequal(rng: Generator) -> World:
    """Sizes of couplings are those of a normal distribution."""
    graph = ik.erdos_renyi(n_spins=40, mean_degree=4, coupling=1.0, random_state=rng)
    signs = graph.couplings.toarray()
    upper = np.triu(signs * np.abs(rng.normal(0, 0.3, signs.shape)), 1)
    return _drawn(ik.IsingModel(upper + upper.T), 300, rng)


def _clusters(n: int, n_groups: int, coupling: float, n_rows: int, rng: Generator) -> World:
    """Groups of columns, three in five pairs within a group coupled, all positive."""
    group = np.arange(n) % n_groups
    is_edge = (rng.random((n, n)) < 0.6) & (group[:, None] == group)
    upper = coupling * np.triu(is_edge, 1)
    return _drawn(ik.IsingModel(upper + upper.T), n_rows, rng)


def _with_fields(truth: ik.IsingModel, fields: Matrix, n_rows: int, rng: Generator) -> World:
    return _drawn(ik.IsingModel(truth.couplings, fields), n_rows, rng)


def _fields(rng: Generator) -> World:
    truth = ik.random_regular(n_spins=40, degree=3, coupling=0.3, random_state=rng)
    return _with_fields(truth, rng.normal(0, 0.6, 40), 200, rng)


def _rare(rng: Generator) -> World:
    truth = ik.erdos_renyi(n_spins=40, mean_degree=3, coupling=0.35, random_state=rng)
    return _with_fields(truth, rng.uniform(-1.5, -0.6, 40), 500, rng)


def _two_groups(is_told: bool, rng: Generator) -> World:
    """Half of the rows have other fields; whether that is told or not."""
    truth = ik.random_regular(n_spins=30, degree=3, coupling=0.25, random_state=rng)
    shift = rng.normal(0, 0.5, 30)
    halves = [
        ik.sample(ik.IsingModel(truth.couplings, sign * shift), n_samples=150, random_state=rng)
        for sign in (1, -1)
    ]
    rows = np.concatenate([np.asarray(half) for half in halves])
    known = {"covariates": np.repeat([0.0, 1.0], 150)[:, None]} if is_told else {}
    return World(truth, rows, known)


def _persons(rng: Generator) -> World:
    """Sixty persons, five rows each, of which half the columns are drawn anew from row to row."""
    truth = ik.erdos_renyi(n_spins=30, mean_degree=3, coupling=0.3, random_state=rng)
    couplings = truth.couplings.toarray()
    state = np.asarray(ik.sample(truth, n_samples=60, random_state=rng), dtype=float)
    waves = [state.copy()]
    for _ in range(ROWS_OF_A_PERSON - 1):
        for i in rng.permutation(30)[:15]:
            is_up = rng.random(60) < 1 / (1 + np.exp(-2 * state @ couplings[i]))
            state[:, i] = np.where(is_up, 1, -1)
        waves.append(state.copy())
    rows = np.concatenate(waves).astype(np.int8)
    return World(truth, rows, {"groups": np.tile(np.arange(60), ROWS_OF_A_PERSON)})


def _lattice(rng: Generator) -> World:
    return _drawn(ik.square_lattice(side=7, coupling=0.3, random_state=rng), 200, rng)


def _tree(rng: Generator) -> World:
    return _drawn(ik.random_tree(n_spins=80, coupling=0.4, random_state=rng), 100, rng)


def _uniform(rng: Generator) -> World:
    """Twenty columns, as questionnaires have; sizes and fields vary."""
    graph = ik.erdos_renyi(n_spins=20, mean_degree=5, coupling=1.0, random_state=rng)
    signs = np.where(rng.random((20, 20)) < 0.85, 1.0, -1.0)
    upper = np.triu(np.abs(graph.couplings.toarray()) * signs * rng.uniform(0.1, 0.4, (20, 20)), 1)
    return _with_fields(ik.IsingModel(upper + upper.T), rng.normal(-0.3, 0.4, 20), 400, rng)


def _dense(rng: Generator) -> World:
    upper = np.triu((rng.random((10, 10)) < 0.5) * rng.normal(0, 0.3, (10, 10)), 1)
    return _drawn(ik.IsingModel(upper + upper.T), 400, rng)


def _weighted(rng: Generator) -> World:
    """Rows of unequal weight, drawn by its inverse."""
    made = _erdos_renyi(40, 0.3, 400, rng)
    weights = rng.lognormal(0, 0.5, 400)
    return World(made.truth, made.rows, {"sample_weight": weights})


def _nothing(rng: Generator) -> World:
    return _drawn(ik.IsingModel(np.zeros((30, 30))), 200, rng)


KNOWN: dict[str, Callable[[Generator], World]] = {
    "regular, M = 2.4 N": lambda rng: _regular(50, 0.3, 120, rng),
    "regular, M = 0.8 N": lambda rng: _regular(100, 0.4, 80, rng),
    "Erdos-Renyi": lambda rng: _erdos_renyi(60, 0.3, 200, rng),
    "unequal couplings": _unequal,
    "ferromagnetic clusters": lambda rng: _clusters(60, 6, 0.2, 300, rng),
    "fields": _fields,
    "rare columns": _rare,
    "hidden cause": lambda rng: _two_groups(False, rng),
    "covariate": lambda rng: _two_groups(True, rng),
    "groups of rows": _persons,
    "lattice": _lattice,
    "many missed in clusters": lambda rng: _clusters(80, 4, 0.12, 500, rng),
    "no network": _nothing,
}
ASIDE: dict[str, Callable[[Generator], World]] = {
    "tree": _tree,
    "larger Erdos-Renyi": lambda rng: _erdos_renyi(150, 0.35, 150, rng),
    "larger clusters": lambda rng: _clusters(72, 6, 0.15, 400, rng),
    "twenty columns": _uniform,
    "weights": _weighted,
    "ten dense columns": _dense,
}
KINDS = KNOWN | ASIDE


@dataclass(frozen=True)
class Outcome:
    """What was said of the pairs of a world, and what is."""

    probabilities: Matrix
    are_edges: NDArray[np.bool_]
    seconds: tuple[float, float]  # of CPU: with probabilities, and without


def measured(kind: str, seed: int) -> Outcome:
    made = KINDS[kind](np.random.default_rng([SEED, list(KINDS).index(kind), seed]))
    seconds = []
    for inclusion in (False, True):
        start = time.process_time()
        fit = ik.AutoIsing(inclusion=inclusion).fit(made.rows, **made.known)
        seconds.append(time.process_time() - start)
    table = fit.inclusion_
    place = {name: k for k, name in enumerate(fit.model_.names)}
    ends = [[place[name] for name in table[end]] for end in ("source", "target")]
    couplings = made.truth.couplings.toarray()
    return Outcome(table["probability"], couplings[tuple(ends)] != 0, (seconds[1], seconds[0]))


def reliability(outcomes: list[Outcome], edges: Matrix) -> list[Row]:
    said = np.concatenate([one.probabilities for one in outcomes])
    are = np.concatenate([one.are_edges for one in outcomes])
    rows = []
    for k, (low, high) in enumerate(pairwise(edges)):
        is_last = k == len(edges) - 2
        here = (said >= low) & ((said < high) | is_last)
        row: Row = {"probability": f"{low:.2f} to {high:.2f}", "pairs": int(here.sum())}
        if here.sum() >= FEWEST:
            mean, share = said[here].mean(), are[here].mean()
            error = np.sqrt(share * (1 - share) / here.sum())
            row |= {"said": f"{mean:.3f}", "edges": f"{share:.3f} ± {error:.3f}"}
            row["difference"] = f"{share - mean:+.3f}"
        rows.append({"said": "", "edges": "", "difference": ""} | row)
    order = ("probability", "pairs", "said", "edges", "difference")
    return [{name: row[name] for name in order} for row in rows]


def by_kind(outcomes: dict[str, list[Outcome]]) -> list[Row]:
    rows = []
    for kind, some in outcomes.items():
        row: Row = {"worlds of": kind, "aside": "yes" if kind in ASIDE else ""}
        for one in reliability(some, FIFTHS):
            row[one["probability"]] = f"{one['said']} {one['edges']}".strip()
        n_expected = sum(one.probabilities.sum() for one in some)
        n_edges = sum(int(one.are_edges.sum()) for one in some)
        row["expected over there"] = f"{n_expected:.1f} / {n_edges}"
        with_it, without = np.sum([one.seconds for one in some], axis=0)
        row["time"] = f"{with_it / without:.2f}"
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the worlds")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    start = time.perf_counter()
    n_worlds = 4 if options.quick else 40
    outcomes: dict[str, list[Outcome]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            outcomes[kind] = [measured(kind, seed) for seed in tqdm(range(n_worlds), desc=kind)]
    everything = [one for some in outcomes.values() for one in some]
    aside = [one for kind, some in outcomes.items() if kind in ASIDE for one in some]
    tables = {
        "deciles": reliability(everything, TENTHS),
        "aside": reliability(aside, TENTHS),
        "kinds": by_kind(outcomes),
    }
    for section, table in tables.items():
        write_table(options.output / f"{NAME}_{section}.csv", table)
        head = list(table[0])
        print(markdown([head, *[[str(row[name]) for name in head] for row in table]]), flush=True)
    settings = vars(options) | {"seed": SEED, "worlds of a kind": n_worlds}
    write_settings(options.output / f"{NAME}.json", settings, time.perf_counter() - start)


if __name__ == "__main__":
    main()
