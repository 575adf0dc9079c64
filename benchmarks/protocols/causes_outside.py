"""AutoIsing where something outside the network acts on the spins: known, or known to nobody.

Random regular worlds of degree 3, 50 spins, couplings of +-0.35, unless said otherwise. Sections,
each of independent trials with fixed seeds:

- `groups`: rows of two groups with shifted fields (standard deviation 0.5): the group as a
  covariate, nothing said (`hidden="auto"`), ignored (`hidden=0`), and the same rows as one group;
- `causes`: the same for other causes: on 30 percent of the spins, continuous, two at once, three
  groups, weak, a hidden spin coupled to all, and fewer or more columns;
- `gradients`: two Gaussian gradients, known, 50 edges: false edges and effects of covariates;
- `clean`: worlds without a cause: whether one is found all the same, and what looking costs;
- `effects`: covariates' effects: coverage, and covariates without any effect;
- `unrecorded`: a tenth of the spins missing from the table; groups with different couplings;
- `dense`: every pair coupled: what is said of it, and how long it takes.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import networkx
import numpy as np
from joblib import Parallel, delayed
from numpy.random import Generator
from numpy.typing import NDArray
from results import Row, markdown, write_settings, write_table
from tqdm import tqdm

import isingkit as ik
from isingkit.covariates import CovariateEffects, of_plain_numbers
from isingkit.estimators import network_search
from isingkit.estimators.cause_search import CauseEvidence, Start

NAME = "causes_outside"
SECTIONS = ("groups", "causes", "gradients", "clean", "effects", "unrecorded", "dense")
SEED = 23_117  # of all worlds
N_SPINS = 50
COUPLING = 0.35
SHIFT = 0.5  # standard deviation of what a cause adds to fields
ROWS = (300, 1000, 5000)
CAUSES = {  # kind, rows, columns
    "30% of spins, M=300": ("part", 300, 50),
    "30% of spins, M=1000": ("part", 1000, 50),
    "30% of spins, M=5000": ("part", 5000, 50),
    "continuous, M=300": ("continuous", 300, 50),
    "continuous, M=1000": ("continuous", 1000, 50),
    "two continuous, M=1000": ("two", 1000, 50),
    "three groups, M=1000": ("three", 1000, 50),
    "weak (0.25), M=1000": ("weak", 1000, 50),
    "hidden spin, M=5000": ("spin", 5000, 50),
    "N=20, M=1000": ("groups", 1000, 20),
    "N=100, M=500": ("groups", 500, 100),
    "N=200, M=1000": ("groups", 1000, 200),
}
CLEAN = {  # graph, spins, rows
    "regular, N=100, M=100": ("regular", 100, 100),
    "regular, N=100, M=500": ("regular", 100, 500),
    "Erdos-Renyi, N=100, M=200": ("er", 100, 200),
    "Erdos-Renyi, N=100, M=1000": ("er", 100, 1000),
    "square, N=100, M=200": ("square", 100, 200),
    "square ferromagnet 0.4, N=100, M=200": ("ferro", 100, 200),
    "square ferromagnet 0.4, N=100, M=1000": ("ferro", 100, 1000),
    "Watts-Strogatz ferromagnet, N=100, M=200": ("ws", 100, 200),
    "Watts-Strogatz ferromagnet, N=100, M=600": ("ws", 100, 600),
    "triangular ferromagnet, N=100, M=500": ("triangular", 100, 500),
    "Barabasi-Albert, N=100, M=100": ("ba", 100, 100),
    "Barabasi-Albert, N=100, M=500": ("ba", 100, 500),
    "communities, N=100, M=300": ("communities", 100, 300),
    "communities, N=50, M=1000": ("communities", 50, 1000),
    "star, N=60, M=300": ("star", 60, 300),
    "glass 0.8, N=64, M=300": ("glass", 64, 300),
    "glass 0.8, N=64, M=2000": ("glass", 64, 2000),
    "regular, N=20, M=300": ("regular", 20, 300),
    "Erdos-Renyi, N=20, M=300": ("er", 20, 300),
    "no network, N=50, M=500": ("null", 50, 500),
}
UNRECORDED = ("a tenth of spins", "groups with other couplings")
DENSE = {  # couplings, spins, rows
    "Sherrington-Kirkpatrick 0.5, N=40, M=10,000": ("sk", 40, 10_000),
    "Sherrington-Kirkpatrick 0.5, N=40, M=1000": ("sk", 40, 1000),
    "Curie-Weiss 0.7, N=40, M=10,000": ("cw", 40, 10_000),
    "Curie-Weiss 0.7, N=40, M=2000": ("cw", 40, 2000),
}
WORLDS = {
    "groups": 20,
    "causes": 8,
    "gradients": 50,
    "clean": 10,
    "effects": 40,
    "unrecorded": 10,
    "dense": 5,
}
MEASURES = {  # of the tables for people: name, digits
    "f1": ("F1", 3),
    "recall": ("recall", 3),
    "false_share": ("false edges", 3),
    "most_false": ("most false edges", 0),
    "coverage": ("coverage", 3),
    "n_hidden": ("causes", 2),
    "said": ("cause said", 3),
    "not_sparse": ("not sparse said", 2),
    "follows": ("score follows cause", 2),
    "f1_gain": ("F1, less that of hidden=0", 4),
    "cost": ("times a fit that does not look", 2),
    "seconds": ("seconds", 2),
    "effects_held": ("effects held", 3),
    "null_found": ("null effects found", 4),
}
RATIOS = {"coverage": ("held", "edges"), "cost": ("seconds", "seconds_plain")}
Spins = NDArray[np.int8]
Floats = NDArray[np.float64]
Trial = tuple[Callable[..., list[Row]], tuple[Any, ...]]


# Worlds


def generator_of(seed: int) -> Generator:
    return np.random.default_rng([SEED, seed])


def regular(rng: Generator, n_spins: int = N_SPINS, coupling: float = COUPLING) -> ik.IsingModel:
    return ik.random_regular(n_spins=n_spins, degree=3, coupling=coupling, random_state=rng)


def rows_given(truth: ik.IsingModel, shifts: Floats, rng: Generator) -> Spins:
    """One row for each row of shifts of fields."""
    effects = CovariateEffects(np.eye(truth.n_spins), of_plain_numbers_of(truth.n_spins))
    model = ik.IsingModel(truth.couplings, truth.fields, truth.names, effects)
    drawn = ik.sample(model, covariates=shifts, random_state=rng, check=False, n_jobs=1)
    return np.asarray(drawn, dtype=np.int8)


def of_plain_numbers_of(n: int) -> Any:
    plain = CovariateEffects(np.eye(n), None)  # type: ignore[arg-type]
    return of_plain_numbers(plain).coding


def with_cause(
    kind: str, n_rows: int, n_spins: int, rng: Generator
) -> tuple[ik.IsingModel, Spins, Floats | NDArray[np.str_]]:
    """The network, rows, and the cause as a covariate."""
    truth = regular(rng, n_spins)
    if kind == "spin":
        return (truth, *_with_hidden_spin(truth, n_rows, rng))
    if kind in ("continuous", "two"):
        causes = rng.normal(size=(n_rows, 2 if kind == "two" else 1))
        shifts = causes @ rng.normal(0, SHIFT, (causes.shape[1], n_spins))
        return truth, rows_given(truth, shifts, rng), causes
    n_groups = 3 if kind == "three" else 2
    labels = rng.permutation(np.arange(n_rows) % n_groups)
    size = SHIFT / 2 if kind == "weak" else SHIFT
    fields = rng.normal(0, size, (n_groups, n_spins))
    if n_groups == 2:
        fields[1] = -fields[0]
    if kind == "part":
        fields *= rng.permutation(n_spins) < 0.3 * n_spins
    return truth, rows_given(truth, fields[labels], rng), labels.astype(str)


def _with_hidden_spin(truth: ik.IsingModel, n_rows: int, rng: Generator) -> tuple[Spins, Floats]:
    """Rows of the other spins, and the spin that is coupled to all of them."""
    n_spins = truth.n_spins
    couplings = np.zeros((n_spins + 1, n_spins + 1))
    couplings[:n_spins, :n_spins] = truth.couplings.toarray()
    couplings[n_spins, :n_spins] = couplings[:n_spins, n_spins] = 0.15
    drawn = ik.sample(ik.IsingModel(couplings), n_rows, random_state=rng, check=False, n_jobs=1)
    values = np.asarray(drawn, dtype=np.int8)
    return values[:, :n_spins], values[:, n_spins:].astype(np.float64)


def clean_world(kind: str, n_spins: int, rng: Generator) -> ik.IsingModel:
    side = round(n_spins**0.5)
    seed = int(rng.integers(2**31))
    if kind == "regular":
        return regular(rng, n_spins, 0.4)
    if kind == "er":
        return ik.erdos_renyi(n_spins=n_spins, mean_degree=4, coupling=0.4, random_state=rng)
    if kind == "square":
        return ik.square_lattice(side=side, coupling=0.3, random_state=rng)
    if kind == "glass":
        return ik.square_lattice(side=side, coupling=0.8, random_state=rng)
    if kind == "null":
        return ik.IsingModel(np.zeros((n_spins, n_spins)))
    graphs = {
        "ferro": (lambda: networkx.grid_2d_graph(side, side, periodic=True), 0.4),
        "ws": (lambda: networkx.watts_strogatz_graph(n_spins, 6, 0.1, seed=seed), 0.15),
        "triangular": (
            lambda: networkx.triangular_lattice_graph(side, 2 * side - 2, periodic=True),
            0.15,
        ),
        "ba": (lambda: networkx.barabasi_albert_graph(n_spins, 2, seed=seed), 0.25),
        "communities": (
            lambda: networkx.planted_partition_graph(5, n_spins // 5, 0.25, 0.01, seed=seed),
            0.15,
        ),
        "star": (lambda: networkx.star_graph(n_spins - 1), 0.25),
    }
    make, strength = graphs[kind]
    adjacency = networkx.to_numpy_array(make(), weight=None) * strength
    if kind == "ba":
        signs = np.triu(rng.choice([-1, 1], adjacency.shape), 1)
        adjacency = adjacency * (signs + signs.T)
    return ik.IsingModel(adjacency)


def independent_rows(truth: ik.IsingModel, n_rows: int, rng: Generator) -> Spins:
    warm_up = 3000 if np.abs(truth.couplings.data).max(initial=0) >= 0.4 else None
    drawn = ik.sample(truth, n_rows, random_state=rng, check=False, n_jobs=1, warm_up=warm_up)
    return np.asarray(drawn, dtype=np.int8)


# What a fit tells


def auto(**settings: Any) -> ik.AutoIsing:
    return ik.AutoIsing(n_jobs=1, **settings)


def measured(fit: ik.AutoIsing, truth: ik.IsingModel) -> Row:
    """How much of the network was found, whether intervals hold, and what was said."""
    scores = ik.score(fit.model_, truth)
    place = {name: i for i, name in enumerate(fit.model_.names)}
    sources = [place[name] for name in fit.edges_["source"]]
    targets = [place[name] for name in fit.edges_["target"]]
    true = np.asarray(truth.couplings.toarray()[sources, targets])
    low, high = fit.intervals_.reshape(-1, 2).T
    checks = {one.check: one.serious for one in fit.diagnostics_}
    return {
        "f1": scores.f1,
        "recall": scores.recall,
        "false_share": scores.false_positives / max(len(true), 1),
        "most_false": scores.false_positives,
        "edges": len(true),
        "held": int(((low <= true) & (true <= high)).sum()),
        "n_hidden": 0 if fit.hidden_ is None else fit.hidden_.n_hidden,
        "said": int(checks["hidden cause"]),
        "not_sparse": int(checks["not sparse"]),
    }


def timed(estimator: ik.AutoIsing, *data: Any, **known: Any) -> tuple[ik.AutoIsing, float]:
    """The fit, and its seconds on the processor."""
    start = time.process_time()
    estimator.fit(*data, **known)
    return estimator, time.process_time() - start


def seconds_without_looking(values: Spins) -> float:
    """Of a fit that leaves out all that is done about hidden causes."""

    def search(rows: Any, start: Any, *_: Any) -> Any:
        network = yield Start(rows, start)
        return network, CauseEvidence(0.0)

    with patch.object(network_search, "search", search):
        return timed(auto(hidden=0), values)[1]


def row(section: str, setting: str, method: str, seed: int, found: Row) -> Row:
    return {"section": section, "setting": setting, "method": method, "seed": seed} | found


def follows(fit: ik.AutoIsing, cause: Any) -> float:
    """How much of the cause the scores explain: multiple correlation, the mean over its columns."""
    if fit.hidden_ is None:
        return float("nan")
    columns = np.asarray(cause)
    if columns.dtype.kind == "U":
        columns = columns[:, None] == np.unique(columns)[1:]
    columns = np.asarray(columns, dtype=np.float64).reshape(len(columns), -1)
    columns = columns - columns.mean(axis=0)
    design = fit.hidden_.scores - fit.hidden_.scores.mean(axis=0)
    explained = design @ np.linalg.lstsq(design, columns, rcond=None)[0]
    return float(np.sqrt((explained**2).sum(axis=0) / (columns**2).sum(axis=0)).mean())


# Trials: each gives rows of one world


def groups(n_rows: int, seed: int) -> list[Row]:
    rng = generator_of(seed)
    truth, values, labels = with_cause("groups", n_rows, N_SPINS, rng)
    found = _ways(values, labels, truth)
    # fields of both groups are opposite: with all signs turned, rows of one are rows of the other
    one_group = np.where((labels == "0")[:, None], values, -values)
    found["one group only"] = measured(auto().fit(one_group), truth)
    return [row("groups", f"M={n_rows}", way, seed, each) for way, each in found.items()]


def causes(setting: str, seed: int) -> list[Row]:
    rng = generator_of(seed)
    kind, n_rows, n_spins = CAUSES[setting]
    truth, values, cause = with_cause(kind, n_rows, n_spins, rng)
    found = _ways(values, cause, truth)
    return [row("causes", setting, way, seed, each) for way, each in found.items()]


def _ways(values: Spins, cause: Any, truth: ik.IsingModel) -> dict[str, Row]:
    plain = auto(hidden=0).fit(values)
    seconds_plain = seconds_without_looking(values)
    hidden, seconds = timed(auto(), values)
    known = auto().fit(values, covariates=cause)
    cost = {"seconds": seconds, "seconds_plain": seconds_plain, "follows": follows(hidden, cause)}
    return {
        "hidden=0": measured(plain, truth),
        'hidden="auto"': measured(hidden, truth) | cost,
        "covariates=": measured(known, truth),
    }


def gradients(seed: int) -> list[Row]:
    rng = generator_of(seed)
    graph = networkx.gnm_random_graph(N_SPINS, 50, seed=int(rng.integers(2**31)))
    signs = np.triu(rng.choice([-1, 1], (N_SPINS, N_SPINS)), 1)
    couplings = networkx.to_numpy_array(graph, weight=None) * (signs + signs.T) * COUPLING
    truth = ik.IsingModel(couplings)
    causes = rng.normal(size=(1000, 2))
    shifts = causes @ rng.normal(0, SHIFT, (2, N_SPINS))
    values = rows_given(truth, shifts, rng)
    known, seconds = timed(auto(), values, covariates=causes)
    found = measured(known, truth) | {"seconds": seconds}
    return [row("gradients", "two, M=1000, 50 edges", "covariates=", seed, found)]


def clean(setting: str, seed: int) -> list[Row]:
    rng = generator_of(seed)
    kind, n_spins, n_rows = CLEAN[setting]
    truth = clean_world(kind, n_spins, rng)
    values = independent_rows(truth, n_rows, rng)
    plain = auto(hidden=0).fit(values)
    seconds_plain = seconds_without_looking(values)
    looked, seconds = timed(auto(), values)
    found = measured(looked, truth)
    found["f1_gain"] = found["f1"] - ik.score(plain.model_, truth).f1
    found |= {"seconds": seconds, "seconds_plain": seconds_plain}
    return [row("clean", setting, 'hidden="auto"', seed, found)]


def effects(seed: int) -> list[Row]:
    rng = generator_of(seed)
    truth = regular(rng)
    causes = rng.normal(size=(1000, 4))
    planted = rng.normal(0, 0.3, (4, N_SPINS))
    planted[2:] = 0.0  # two without any effect
    values = rows_given(truth, causes @ planted, rng)
    fit = auto().fit(values, covariates=causes)
    table = fit.covariate_effects_
    place = {name: i for i, name in enumerate(fit.model_.names)}
    spins = [place[name] for name in table["spin"]]
    columns = [int(name[1:]) for name in table["covariate"]]
    true = planted[columns, spins] * causes.std(axis=0)[columns]
    held = np.abs(table["effect"] - true) <= 1.96 * table["std_error"]
    is_null = np.array(columns) >= 2
    found = {
        "effects_held": float(held.mean()),
        "null_found": float((table["q_value"][is_null] <= 0.05).mean()),
    }
    return [row("effects", "4 covariates, 2 without effect", "covariates=", seed, found)]


def unrecorded(setting: str, seed: int) -> list[Row]:
    rng = generator_of(seed)
    if setting == UNRECORDED[0]:
        truth = regular(rng, 56)
        values = independent_rows(truth, 1000, rng)[:, :N_SPINS]
        seen = ik.IsingModel(truth.couplings.toarray()[:N_SPINS, :N_SPINS])
    else:
        first, second = regular(rng), regular(rng)
        parts = [independent_rows(one, 500, rng) for one in (first, second)]
        values = rng.permutation(np.concatenate(parts))
        seen = ik.IsingModel((first.couplings + second.couplings) / 2)
    found = {"hidden=0": auto(hidden=0).fit(values), 'hidden="auto"': auto().fit(values)}
    return [
        row("unrecorded", setting, way, seed, measured(fit, seen)) for way, fit in found.items()
    ]


def dense(setting: str, seed: int) -> list[Row]:
    rng = generator_of(seed)
    kind, n_spins, n_rows = DENSE[setting]
    couplings = np.full((n_spins, n_spins), 0.7 / n_spins)
    if kind == "sk":
        couplings = rng.normal(0, 0.5 / np.sqrt(n_spins), (n_spins, n_spins))
    couplings = np.triu(couplings, 1)
    truth = ik.IsingModel(couplings + couplings.T)
    values = independent_rows(truth, n_rows, rng)
    fit, seconds = timed(auto(), values)
    found = measured(fit, truth) | {"seconds": seconds}
    return [row("dense", setting, 'hidden="auto"', seed, found)]


# Running, and tables


def trials(section: str, n_worlds: int) -> list[Trial]:
    seeds = range(n_worlds)
    settings: dict[str, tuple[Callable[..., list[Row]], Sequence[Any]]] = {
        "groups": (groups, ROWS),
        "causes": (causes, tuple(CAUSES)),
        "clean": (clean, tuple(CLEAN)),
        "unrecorded": (unrecorded, UNRECORDED),
        "dense": (dense, tuple(DENSE)),
    }
    if section in settings:
        work, options = settings[section]
        return [(work, pair) for pair in itertools.product(options, seeds)]
    alone = {"gradients": gradients, "effects": effects}[section]
    return [(alone, (seed,)) for seed in seeds]


def done(trial: Trial) -> list[Row]:
    work, arguments = trial
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(*arguments)


def summary(table: Sequence[Row]) -> list[Row]:
    """Means over worlds with their standard errors, one row for each setting and method."""
    found = []
    keys = dict.fromkeys((one["section"], one["setting"], one["method"]) for one in table)
    for key in keys:
        rows = [one for one in table if (one["section"], one["setting"], one["method"]) == key]
        section, setting, method = key
        line: Row = {"section": section, "setting": setting, "method": method, "worlds": len(rows)}
        for name in MEASURES:
            line |= _mean(name, rows)
        found.append(line)
    return found


def _mean(name: str, rows: Sequence[Row]) -> Row:
    if name in RATIOS:
        above, below = RATIOS[name]
        if not all(above in one and below in one for one in rows):
            return {}
        total = sum(one[below] for one in rows)
        return {name: sum(one[above] for one in rows) / total} if total else {}
    values = np.array([one[name] for one in rows if name in one and np.isfinite(one[name])])
    if len(values) == 0:
        return {}
    if name == "most_false":
        return {name: float(values.max())}
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return {name: float(values.mean()), f"{name}_error": error}


def for_people(lines: Sequence[Row]) -> str:
    shown = [name for name in MEASURES if any(name in line for line in lines)]
    head = ["setting", "said", "worlds", *[MEASURES[name][0] for name in shown]]
    body = []
    for line in lines:
        cells = [line["setting"], line["method"], str(line["worlds"])]
        for name in shown:
            digits = MEASURES[name][1]
            cells.append(f"{line[name]:.{digits}f}" if name in line else "")
        body.append(cells)
    return markdown([head, *body])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sections", nargs="*", default=[], help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="a tenth of the worlds")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    start = time.perf_counter()
    for section in arguments.sections or SECTIONS:
        n_worlds = max(2, WORLDS[section] // 10) if arguments.quick else WORLDS[section]
        work = trials(section, n_worlds)
        run = Parallel(n_jobs=arguments.workers, return_as="generator")
        bar = tqdm(run(delayed(done)(one) for one in work), total=len(work), desc=section)
        table = [one for rows in bar for one in rows]
        lines = summary(table)
        write_table(arguments.output / f"{NAME}_{section}.csv", lines)
        print(f"\n## {section}\n\n{for_people(lines)}\n", flush=True)
    settings = vars(arguments) | {"seed": SEED, "worlds": WORLDS}
    write_settings(arguments.output / f"{NAME}.json", settings, time.perf_counter() - start)


if __name__ == "__main__":
    main()
