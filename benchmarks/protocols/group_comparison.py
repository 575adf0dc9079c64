"""compare_groups: how often it is wrong, and what it finds.

Random regular worlds of degree 3, 20 spins, couplings of +-0.4, 2 x 300 rows unless said otherwise.
Sections, each of independent worlds with fixed seeds:

- `null`: both groups have one network. Fields are the same; differ (standard deviation 0.5 in each
  group); sizes are 540 and 60; columns are rare; rows are of persons, five each, with a common
  cause of each person's own; every other row, at random, weighs five times as much. Shares
  rejected at 0.05: any pair, global strength, any centrality;
- `power`: one coupling has the other sign in one group. Shares of worlds in which its pair is
  found, and in which another one is (family-wise);
- `nct`: the same worlds beside the Network Comparison Test with eLasso, 99 permutations.

Each row of a table is written as soon as it is known, and stands in for the row that was there: a
run that was stopped goes on with `--only null --kinds "sizes 9:1"` and the like.
"""

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from results import Row, markdown, write_settings, write_table
from tqdm import tqdm

import isingkit as ik

NAME = "group_comparison"
SECTIONS = ("null", "power", "nct")
SEED = 31_007  # of all worlds
N_SPINS = 20
COUPLING = 0.4
LEVEL = 0.05
KINDS = (
    "equal fields", "differing fields", "sizes 9:1", "rare columns", "repeated measures",
    "weights 5:1",
)  # fmt: skip
POWER = {  # kind, rows of each group
    "equal fields, 2 x 300": ("equal fields", 300),
    "differing fields, 2 x 300": ("differing fields", 300),
    "equal fields, 2 x 150": ("equal fields", 150),
    "equal fields, 2 x 100": ("equal fields", 100),
}
NCT_SETTINGS = ("equal fields, 2 x 100", "equal fields, 2 x 300")
NCT_PERMUTATIONS = 99
ROWS_OF_A_PERSON = 5


@dataclass(frozen=True)
class World:
    """Rows of two groups, and the pair that differs, if any."""

    spins: NDArray[np.int8]
    groups: NDArray[np.int64]
    persons: NDArray[np.int64] | None
    pair: tuple[str, str]
    weights: NDArray[np.float64] | None = None


def world(kind: str, n_rows: int, is_flipped: bool, rng: Generator) -> World:
    """A world of one of KINDS."""
    truth = ik.random_regular(n_spins=N_SPINS, degree=3, coupling=COUPLING, random_state=rng)
    couplings = truth.couplings.toarray()
    other = couplings.copy()
    edges = np.argwhere(np.triu(couplings))
    i, j = edges[rng.integers(len(edges))]
    if is_flipped:
        other[i, j] = other[j, i] = -couplings[i, j]
    sizes = (540, 60) if kind == "sizes 9:1" else (n_rows, n_rows)
    fields = _fields(kind, rng)
    groups = np.repeat([0, 1], sizes)
    pair = (f"x{i}", f"x{j}")
    if kind == "repeated measures":
        loadings = COUPLING * rng.standard_normal(N_SPINS)
        parts = [
            _persons(matrix, fields[0], loadings, n_rows, rng) for matrix in (couplings, other)
        ]
        persons = np.arange(len(groups)) // ROWS_OF_A_PERSON
        return World(np.concatenate(parts), groups, persons, pair)
    models = [ik.IsingModel(couplings, fields[0]), ik.IsingModel(other, fields[1])]
    parts = [
        np.asarray(ik.sample(model, n_samples=size, random_state=rng))
        for model, size in zip(models, sizes, strict=True)
    ]
    weights = rng.choice([1.0, 5.0], len(groups)) if kind == "weights 5:1" else None
    return World(np.concatenate(parts), groups, None, pair, weights)


def _fields(kind: str, rng: Generator) -> list[NDArray[np.float64]]:
    """Of both groups."""
    if kind == "differing fields":
        return [0.5 * rng.standard_normal(N_SPINS) for _ in range(2)]
    if kind == "rare columns":
        fields = -np.abs(rng.normal(0.8, 0.4, N_SPINS))
    else:
        fields = 0.3 * rng.standard_normal(N_SPINS)
    return [fields, fields]


def _persons(
    couplings: NDArray[np.float64],
    fields: NDArray[np.float64],
    loadings: NDArray[np.float64],
    n_rows: int,
    rng: Generator,
) -> NDArray[np.int8]:
    """Rows of persons whose fields are shifted by a cause of their own, by Gibbs sampling."""
    causes = rng.standard_normal(n_rows // ROWS_OF_A_PERSON)
    shifts = np.repeat(np.outer(causes, loadings), ROWS_OF_A_PERSON, axis=0)
    spins = 2.0 * rng.integers(0, 2, (n_rows, N_SPINS)) - 1
    for _ in range(60):
        for spin in range(N_SPINS):
            local = spins @ couplings[spin] + fields[spin] + shifts[:, spin]
            is_up = rng.random(n_rows) < 1 / (1 + np.exp(-2 * local))
            spins[:, spin] = np.where(is_up, 1, -1)
    return spins.astype(np.int8)


def compared(made: World, seed: int, **settings: Any) -> ik.GroupComparison:
    known = {"row_groups": made.persons, "sample_weight": made.weights}
    return ik.compare_groups(made.spins, made.groups, random_state=seed, **known, **settings)


def null(n_worlds: int, n_permutations: int, kinds: Sequence[str]) -> Iterator[Row]:
    for kind in kinds:
        rejected = []
        for seed in tqdm(range(n_worlds), desc=kind):
            made = world(kind, 300, False, np.random.default_rng([SEED, seed]))
            found = compared(made, seed, permutations=n_permutations)
            strength = found.overall[0]["p_value"] <= LEVEL
            central = found.centralities["q_value"].min(initial=1.0) <= LEVEL
            rejected.append((found.p_value <= LEVEL, bool(strength), bool(central)))
        yield _shares({"worlds of": kind}, ("any pair", "strength", "centrality"), rejected)


def power(n_worlds: int, n_permutations: int) -> Iterator[Row]:
    for setting, (kind, n_rows) in POWER.items():
        outcomes = []
        for seed in tqdm(range(n_worlds), desc=setting):
            made = world(kind, n_rows, True, np.random.default_rng([SEED, 1, seed]))
            found = compared(made, seed, permutations=n_permutations)
            outcomes.append((found.p_value <= LEVEL, *_found(found, made)))
        yield _shares({"setting": setting}, ("differs", "pair found", "others"), outcomes)


def nct(n_worlds: int, n_permutations: int) -> Iterator[Row]:
    """Both methods on the same worlds."""
    methods = {"score": n_permutations, "nct": NCT_PERMUTATIONS}
    for setting in NCT_SETTINGS:
        for method, n_drawn in methods.items():
            yield beside_nct(setting, method, n_worlds, n_drawn)


def beside_nct(setting: str, method: str, n_worlds: int, n_drawn: int) -> Row:
    """What one method finds, and CPU milliseconds of a permutation, all else included."""
    kind, n_rows = POWER[setting]
    outcomes = []
    start = time.process_time()
    for seed in tqdm(range(n_worlds), desc=f"{method}, {setting}"):
        made = world(kind, n_rows, True, np.random.default_rng([SEED, 2, seed]))
        found = compared(made, seed, permutations=n_drawn, method=method)
        outcomes.append((found.p_value <= LEVEL, *_found(found, made)))
    seconds = (time.process_time() - start) / (n_worlds * n_drawn)
    names = ("differs", "pair found", "others")
    row = _shares({"setting": setting, "method": method}, names, outcomes)
    return row | {"ms of a permutation": f"{1000 * seconds:.3g}"}


def _found(found: ik.GroupComparison, made: World) -> tuple[bool, bool]:
    """Whether the pair that differs was found, and whether another one was."""
    pairs = {(str(row["source"]), str(row["target"])) for row in found.differing}
    return made.pair in pairs, bool(pairs - {made.pair})


def _shares(row: Row, names: Sequence[str], outcomes: Sequence[tuple[bool, ...]]) -> Row:
    """Shares of worlds with their standard errors."""
    counts = np.array(outcomes, dtype=float)
    row = row | {"worlds": len(counts)}
    for name, share in zip(names, counts.mean(axis=0), strict=True):
        error = np.sqrt(share * (1 - share) / len(counts))
        row[name] = f"{share:.3f} ± {error:.3f}"
    return row


def _written(path: Path, rows: Iterator[Row]) -> list[Row]:
    """Rows of a table, each in the place of the one that said the same of an earlier run."""
    table: list[Row] = []
    if path.exists():
        with open(path, newline="", encoding="utf-8") as file:
            table = list(csv.DictReader(file))
    for row in rows:
        known = [_heads(one) for one in table]
        if _heads(row) in known:
            table[known.index(_heads(row))] = row
        else:
            table.append(row)
        write_table(path, table)
    return table


def _heads(row: Row) -> list[str]:
    """What a row is of."""
    return [row.get(name, "") for name in ("worlds of", "setting", "method")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the worlds")
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="of null worlds")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    start = time.perf_counter()
    parts = 10 if options.quick else 1
    sections: dict[str, Callable[[], Iterator[Row]]] = {
        "null": lambda: null(400 // parts, 999, options.kinds),
        "power": lambda: power(120 // parts, 999),
        "nct": lambda: nct(40 // parts, 1000),
    }
    chosen = [options.only] if options.only else list(SECTIONS)
    for section in chosen:
        table = _written(options.output / f"{NAME}_{section}.csv", sections[section]())
        head = list(table[0])
        print(markdown([head, *[[str(row[name]) for name in head] for row in table]]), flush=True)
    settings = vars(options) | {"seed": SEED, "worlds of null": 400 // parts}
    write_settings(options.output / f"{NAME}.json", settings, time.perf_counter() - start)


if __name__ == "__main__":
    main()
