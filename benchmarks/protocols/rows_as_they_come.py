"""AutoIsing on rows as people have them: weighted, repeated, in order, with gaps, shifted.

Random regular worlds of degree 3, 40 spins, couplings of +-0.3, 1000 rows. Sections, each of
independent trials with fixed seeds:

- `weights`: survey weights, as they are, as large whole numbers, and tiny;
- `dependent`: panels of 200 persons in five waves, tables pasted twice and slow series, in order
  and shuffled: declared (`groups=`, `rows="ordered"`), left to `rows="auto"`, or ignored;
- `unseen`: shuffled panels of few columns, of rare ones, or with gaps, where `rows="auto"` has
  little to go by;
- `clean`: independent rows that look dependent (sorted, few columns, rare columns): whether
  `rows="auto"` stays silent and costs nothing, and what `rows="ordered"` costs;
- `missing`: cells missing completely at random, by the value of another column, or by their own,
  imputed, beside what `missing="pairwise"` and `"drop"` find; imputed with groups and with weights,
  too;
- `shifted`: whether rows shifted by one column are named, and nothing is where none are;
- `null`: panels without a network: tables with any edge.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.random import Generator
from numpy.typing import NDArray
from results import Row, markdown, write_settings, write_table
from tqdm import tqdm

import isingkit as ik
from isingkit.estimators.diagnostics import Diagnosis
from isingkit.exceptions import EmptyTableError, IsingkitWarning, TableTooSmallError

NAME = "rows_as_they_come"
SECTIONS = ("weights", "dependent", "unseen", "clean", "missing", "shifted", "null")
SEED = 22_061  # of all worlds
N_SPINS = 40
N_ROWS = 1000
COUPLING = 0.3
SPREAD_OF_WEIGHTS = 0.7  # standard deviation of their logarithms
PANEL = (200, 5)  # persons, waves
UPDATED_BY_WAVE = 0.3  # fraction of spins
UPDATED_BY_ROW = 0.2  # of a series
RARE_FIELD = -1.5
FEW_SPINS = 8
MISSING = (0.1, 0.25, 0.4)  # fractions of cells
MISSING_BESIDES = 0.2  # where rows have groups or weights, too
MISSING_AROUND_SHIFTS = 0.1
SHIFTED = 0.05  # fraction of rows
NULL_PANELS = ((200, 5), (50, 20), (20, 20))
DEPENDENT = {  # tables, and what is said of them; without a word their order plays no part
    "panel, by wave": ("groups=", 'rows="auto"', 'rows="independent"'),
    "panel, by person": ('rows="auto"',),
    "panel, shuffled": ('rows="auto"',),
    "pasted twice": ('rows="auto"', 'rows="independent"'),
    "pasted twice, shuffled": ('rows="auto"',),
    "series": ('rows="ordered"', 'rows="auto"', 'rows="independent"'),
    "series, shuffled": ('rows="auto"',),
}
FEW_COLUMNS = f"{FEW_SPINS} columns"
CLEAN = ("as drawn", "sorted by three columns", FEW_COLUMNS, "rare columns")
UNSEEN = {  # columns, field, fraction of cells missing
    "10 columns": (10, 0.0, 0.0),
    "20 columns": (20, 0.0, 0.0),
    "rare columns": (N_SPINS, RARE_FIELD, 0.0),
    "25% missing": (N_SPINS, 0.0, 0.25),
}
WORLDS = {  # of each setting
    "weights": 40,
    "dependent": 40,
    "unseen": 20,
    "clean": 100,
    "missing": 20,
    "null": 200,
}
SHIFTS = {"none": 40, "right": 20, "left": 20}  # tables
MEASURES = {  # of the tables for people: name, digits
    "f1": ("F1", 3),
    "f1_gain": ("F1, less that of independent", 4),
    "false_share": ("false edges", 3),
    "coverage": ("coverage", 3),
    "coverage_true": ("of true edges", 3),
    "same_edges": ("same edges", 2),
    "off_z": ("z differs by", 4),
    "flagged": ("flagged", 3),
    "design_effect": ("design effect", 2),
    "bias": ("bias / error", 2),
    "cost": ("complete fits", 1),
    "named": ("shift named", 3),
    "alarm": ("anything said", 3),
    "any_edge": ("any edge", 3),
}
RATIOS = {  # of sums over worlds
    "coverage": ("held", "edges"),
    "coverage_true": ("held_true", "edges_true"),
    "cost": ("seconds", "seconds_complete"),
}
Spins = NDArray[np.int8]  # (n_rows, n_spins)
Floats = NDArray[np.float64]  # (n_rows, n_spins), nan where missing
Trial = tuple[Callable[..., list[Row]], tuple[Any, ...]]


# Worlds


def generator_of(seed: int) -> Generator:
    return np.random.default_rng([SEED, seed])


def world(rng: Generator, n_spins: int = N_SPINS, field: float = 0.0) -> ik.IsingModel:
    graph = ik.random_regular(n_spins=n_spins, degree=3, coupling=COUPLING, random_state=rng)
    return ik.IsingModel(graph.couplings, np.full(n_spins, field))


def independent_rows(truth: ik.IsingModel, n_rows: int, rng: Generator) -> Spins:
    drawn = ik.sample(truth, n_rows, random_state=rng, check=False, n_jobs=1)
    return np.asarray(drawn, dtype=np.int8)


def updated(values: Spins, truth: ik.IsingModel, share: float, rng: Generator) -> Spins:
    """Rows after one more wave: heat bath of a random share of each row's spins, in turn."""
    couplings = truth.couplings.toarray()
    values = values.copy()
    for spin in rng.permutation(values.shape[1]):
        is_drawn = rng.random(len(values)) < share
        fields = values @ couplings[spin] + truth.fields[spin]
        probabilities = 1 / (1 + np.exp(-2 * fields))
        new = np.where(rng.random(len(values)) < probabilities, 1, -1)
        values[is_drawn, spin] = new[is_drawn]
    return values


def waves(start: Spins, truth: ik.IsingModel, n_waves: int, share: float, rng: Generator) -> Spins:
    """(n_waves, n_rows, n_spins): the rows at each wave, `start` first."""
    found = [start]
    for _ in range(n_waves - 1):
        found.append(updated(found[-1], truth, share, rng))
    return np.array(found)


def panel(
    truth: ik.IsingModel, n_persons: int, n_waves: int, rng: Generator
) -> tuple[Spins, NDArray[np.int64]]:
    """Rows, wave by wave, and the person of each."""
    start = independent_rows(truth, n_persons, rng)
    values = waves(start, truth, n_waves, UPDATED_BY_WAVE, rng)
    persons = np.tile(np.arange(n_persons), n_waves)
    return values.reshape(-1, values.shape[2]), persons


def series(truth: ik.IsingModel, rng: Generator) -> Spins:
    start = independent_rows(truth, 1, rng)
    return waves(start, truth, N_ROWS, UPDATED_BY_ROW, rng)[:, 0]


def survey_weights(rng: Generator) -> NDArray[np.float64]:
    return rng.lognormal(0, SPREAD_OF_WEIGHTS, N_ROWS)


# Gaps and shifts


def missing_completely_at_random(values: Spins, share: float, rng: Generator) -> Floats:
    return np.where(rng.random(values.shape) < share, np.nan, values)


def missing_at_random(values: Spins, share: float, rng: Generator) -> Floats:
    """Every other column has gaps, more of them where the column before it is +1."""
    probabilities = np.zeros(values.shape)
    probabilities[:, 1::2] = np.where(values[:, 0::2] > 0, 1.6 * share, 0.4 * share)
    return np.where(rng.random(values.shape) < probabilities, np.nan, values)


def missing_by_own_value(values: Spins, share: float, rng: Generator) -> Floats:
    """Cells are missing for what they would have been, which nobody can see."""
    probabilities = np.where(values > 0, 1.6 * share, 0.4 * share)
    return np.where(rng.random(values.shape) < probabilities, np.nan, values)


def shifted(values: Spins, direction: str, rng: Generator) -> Floats:
    """The table with some rows moved by one column, whose first cell (or last) becomes empty."""
    table = values.astype(np.float64)
    rows = rng.choice(len(values), round(SHIFTED * len(values)), replace=False)
    if direction == "right":
        table[rows, 1:] = values[rows, :-1]
        table[rows, 0] = np.nan
    elif direction == "left":
        table[rows, :-1] = values[rows, 1:]
        table[rows, -1] = np.nan
    return table


GAPS = {
    "completely at random": missing_completely_at_random,
    "at random": missing_at_random,
    "by own value": missing_by_own_value,
}


# What a fit tells


def auto(**settings: Any) -> ik.AutoIsing:
    return ik.AutoIsing(n_jobs=1, **settings)


def check_of(fit: ik.AutoIsing, name: str) -> Diagnosis:
    return next(one for one in fit.diagnostics_ if one.check == name)


def true_couplings(fit: ik.AutoIsing, truth: ik.IsingModel) -> NDArray[np.float64]:
    """(n_edges,): those of the edges found."""
    place = {name: i for i, name in enumerate(fit.model_.names)}
    sources = [place[name] for name in fit.edges_["source"]]
    targets = [place[name] for name in fit.edges_["target"]]
    return np.asarray(truth.couplings.toarray()[sources, targets])


def measured(fit: ik.AutoIsing, truth: ik.IsingModel) -> Row:
    """How much of the network was found, and whether its errors are right."""
    scores = ik.score(fit.model_, truth)
    true = true_couplings(fit, truth)
    is_edge = true != 0
    low, high = fit.intervals_.T
    held = (low <= true) & (true <= high)
    off = (fit.edges_["coupling"] - true) * np.sign(true) / fit.edges_["std_error"]
    found = {
        "f1": scores.f1,
        "recall": scores.recall,
        "false_share": scores.false_positives / max(len(true), 1),
        "edges": len(true),
        "held": int(held.sum()),
        "edges_true": int(is_edge.sum()),
        "held_true": int(held[is_edge].sum()),
    }
    if is_edge.any():
        found["bias"] = float(off[is_edge].mean())  # positive: too strong
    return found


def dependence(fit: ik.AutoIsing) -> Row:
    rows = check_of(fit, "rows alike")
    return {"design_effect": rows.value, "flagged": int(rows.serious)}


def row(section: str, setting: str, method: str, seed: int, found: Row) -> Row:
    return {"section": section, "setting": setting, "method": method, "seed": seed} | found


# Trials: each gives rows of one world


def weights(seed: int) -> list[Row]:
    rng = generator_of(seed)
    truth = world(rng)
    values = independent_rows(truth, N_ROWS, rng)
    raw = survey_weights(rng)
    scales = {"raw": raw, "times 1000, rounded": np.round(1000 * raw), "times 1e-6": 1e-6 * raw}
    fits = {scale: auto().fit(values, sample_weight=scaled) for scale, scaled in scales.items()}
    rows = []
    for scale, fit in fits.items():
        found = measured(fit, truth) | compared(fit, fits["raw"])
        rows.append(row("weights", "lognormal", scale, seed, found))
    return rows


def compared(fit: ik.AutoIsing, other: ik.AutoIsing) -> Row:
    """Whether the edges are the same, and how far z-scores of those that are differ at most."""
    ours, theirs = z_scores(fit), z_scores(other)
    off = [abs(ours[pair] - theirs[pair]) for pair in ours.keys() & theirs.keys()]
    return {"same_edges": int(ours.keys() == theirs.keys()), "off_z": max(off, default=0.0)}


def z_scores(fit: ik.AutoIsing) -> dict[frozenset[str], float]:
    return {frozenset((one["source"], one["target"])): float(one["z"]) for one in fit.edges_}


def dependent(setting: str, seed: int) -> list[Row]:
    rng = generator_of(seed)
    truth = world(rng)
    values, groups = dependent_table(setting.removesuffix(", shuffled"), truth, rng)
    if setting.endswith("shuffled"):
        order = rng.permutation(len(values))
        values, groups = values[order], groups[order]
    found = []
    for method in DEPENDENT[setting]:
        if method == "groups=":
            fit = auto().fit(values, groups=groups)
        else:
            fit = auto(rows=method.split('"')[1]).fit(values)
        told = measured(fit, truth) | dependence(fit)
        if method != 'rows="auto"':
            del told["flagged"]  # nothing to find out
        found.append(row("dependent", setting, method, seed, told))
    return found


def dependent_table(
    kind: str, truth: ik.IsingModel, rng: Generator
) -> tuple[Spins, NDArray[np.int64]]:
    """Rows in their order, and which of them belong together."""
    if kind == "series":
        return series(truth, rng), np.zeros(N_ROWS, dtype=np.int64)
    if kind == "pasted twice":
        half = independent_rows(truth, N_ROWS // 2, rng)
        return np.concatenate([half, half]), np.tile(np.arange(len(half)), 2)
    values, persons = panel(truth, *PANEL, rng)
    if kind == "panel, by person":
        order = np.argsort(persons, kind="stable")
        return values[order], persons[order]
    return values, persons


def unseen(setting: str, seed: int) -> list[Row]:
    n_spins, field, share = UNSEEN[setting]
    rng = generator_of(seed)
    truth = world(rng, n_spins, field)
    values, _ = panel(truth, *PANEL, rng)
    table = rng.permutation(missing_completely_at_random(values, share, rng))
    fit = auto(missing="impute").fit(table)
    found = measured(fit, truth) | dependence(fit)
    return [row("unseen", f"shuffled panel, {setting}", 'rows="auto"', seed, found)]


def clean(setting: str, seed: int) -> list[Row]:
    rng = generator_of(seed)
    n_spins = FEW_SPINS if setting == FEW_COLUMNS else N_SPINS
    field = RARE_FIELD if setting == "rare columns" else 0.0
    truth = world(rng, n_spins, field)
    values = independent_rows(truth, N_ROWS, rng)
    if setting == "sorted by three columns":
        values = values[np.lexsort(values[:, 2::-1].T)]
    found = {}
    for method in ("independent", "auto", "ordered"):
        fit = auto(rows=method).fit(values)
        found[method] = measured(fit, truth)
        found[method]["f1_gain"] = found[method]["f1"] - found["independent"]["f1"]
        if method == "auto":
            found[method] |= dependence(fit)
    return [row("clean", setting, f'rows="{name}"', seed, one) for name, one in found.items()]


def missing(kind: str, share: float, seed: int) -> list[Row]:
    rng = generator_of(seed)
    truth = world(rng)
    values = independent_rows(truth, N_ROWS, rng)
    table = GAPS[kind](values, share, rng)
    complete, seconds_complete = timed(auto(), values)
    imputed, seconds = timed(auto(missing="impute"), table)
    cost = {"seconds": seconds, "seconds_complete": seconds_complete}
    found = {
        "complete": measured(complete, truth),
        "impute": measured(imputed, truth) | cost,
        "pairwise": measured(auto(missing="pairwise").fit(table), truth),
        "drop": found_in_complete_rows(table, truth),
    }
    setting = f"{kind}, {share:.0%}"
    return [row("missing", setting, method, seed, one) for method, one in found.items()]


def found_in_complete_rows(table: Floats, truth: ik.IsingModel) -> Row:
    try:
        return measured(auto(missing="drop").fit(table), truth)
    except (EmptyTableError, TableTooSmallError):  # one complete row or none: no network
        return {"f1": 0.0, "recall": 0.0, "false_share": 0.0, "edges": 0, "held": 0}


def timed(estimator: ik.AutoIsing, table: Spins | Floats) -> tuple[ik.AutoIsing, float]:
    """The fit, and its seconds on the processor: the faster of two, the first of which may load
    what is compiled.
    """
    seconds = []
    for _ in range(2):
        start = time.process_time()
        estimator.fit(table)
        seconds.append(time.process_time() - start)
    return estimator, min(seconds)


def missing_in_panel(seed: int) -> list[Row]:
    rng = generator_of(seed)
    truth = world(rng)
    values, persons = panel(truth, *PANEL, rng)
    table = missing_completely_at_random(values, MISSING_BESIDES, rng)
    found = {
        "complete": auto().fit(values, groups=persons),
        "impute": auto(missing="impute").fit(table, groups=persons),
    }
    setting = f"panel with groups=, {MISSING_BESIDES:.0%}"
    return [
        row("missing", setting, method, seed, measured(fit, truth)) for method, fit in found.items()
    ]


def missing_with_weights(seed: int) -> list[Row]:
    rng = generator_of(seed)
    truth = world(rng)
    values = independent_rows(truth, N_ROWS, rng)
    table = missing_completely_at_random(values, MISSING_BESIDES, rng)
    matter = survey_weights(rng)
    found = {
        "complete": auto().fit(values, sample_weight=matter),
        "impute": auto(missing="impute").fit(table, sample_weight=matter),
    }
    setting = f"survey weights, {MISSING_BESIDES:.0%}"
    return [
        row("missing", setting, method, seed, measured(fit, truth)) for method, fit in found.items()
    ]


def shifts(direction: str, seed: int) -> list[Row]:
    rng = generator_of(seed)
    truth = world(rng)
    values = independent_rows(truth, N_ROWS, rng)
    table = shifted(values, direction, rng)
    table[rng.random(table.shape) < MISSING_AROUND_SHIFTS] = np.nan
    seen = check_of(auto(missing="impute").fit(table), "incomplete rows")
    found = {"named": int(seen.serious and "shift" in seen.words), "alarm": int(seen.serious)}
    return [row("shifted", direction, "impute", seed, found)]


def null(n_persons: int, n_waves: int, seed: int) -> list[Row]:
    rng = generator_of(seed)
    truth = ik.IsingModel(np.zeros((N_SPINS, N_SPINS)))
    values, persons = panel(truth, n_persons, n_waves, rng)
    fits = {
        "groups=": auto(control="fwer").fit(values, groups=persons),
        'rows="auto"': auto(control="fwer").fit(values),
    }
    setting = f"{n_persons} persons, {n_waves} waves"
    return [
        row("null", setting, method, seed, {"any_edge": int(len(fit.edges_) > 0)})
        for method, fit in fits.items()
    ]


def trials(section: str, fraction: float) -> Iterator[Trial]:
    """All trials of a section; `fraction` of each number of worlds."""

    def seeds(number: int) -> range:
        return range(max(2, round(number * fraction)))

    if section == "shifted":
        for direction, number in SHIFTS.items():
            yield from ((shifts, (direction, seed)) for seed in seeds(number))
        return
    worlds = seeds(WORLDS[section])
    if section == "weights":
        yield from ((weights, (seed,)) for seed in worlds)
    elif section == "dependent":
        yield from ((dependent, each) for each in itertools.product(DEPENDENT, worlds))
    elif section == "unseen":
        yield from ((unseen, each) for each in itertools.product(UNSEEN, worlds))
    elif section == "clean":
        yield from ((clean, each) for each in itertools.product(CLEAN, worlds))
    elif section == "missing":
        yield from ((missing, each) for each in itertools.product(GAPS, MISSING, worlds))
        yield from ((missing_in_panel, (seed,)) for seed in worlds)
        yield from ((missing_with_weights, (seed,)) for seed in worlds)
    else:
        for size, seed in itertools.product(NULL_PANELS, worlds):
            yield null, (*size, seed)


def run(trial: Trial) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsingkitWarning)
        return trial[0](*trial[1])


# Results


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(np.mean(values)), float(error)


def ratio_and_error(parts: Sequence[float], wholes: Sequence[float]) -> tuple[float, float]:
    """Sum of parts over sum of wholes, worlds being what varies, and its standard error."""
    ratio = np.sum(parts) / np.sum(wholes)
    left = np.subtract(parts, np.multiply(ratio, wholes))
    _, error = mean_and_error(list(left))
    return float(ratio), error / float(np.mean(wholes))


def summary(group: Sequence[Row]) -> Row:
    """Means over worlds with standard errors, of everything that was measured."""
    found: Row = {"worlds": len(group)}
    for measure in ("recall", *MEASURES):
        part, whole = RATIOS.get(measure, (measure, None))
        known = [one for one in group if part in one and (whole is None or one.get(whole))]
        if not known:
            continue
        parts = [one[part] for one in known]
        if whole is None:
            mean, error = mean_and_error(parts)
        else:
            mean, error = ratio_and_error(parts, [one[whole] for one in known])
        found[measure] = mean
        found[f"{measure}_error"] = error
    return found


def means(table: Sequence[Row]) -> list[Row]:
    """One row for each setting and method."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for one in table:
        groups.setdefault((one["section"], one["setting"], one["method"]), []).append(one)
    names = ("section", "setting", "method")
    return [dict(zip(names, key, strict=True)) | summary(group) for key, group in groups.items()]


def report(rows: Sequence[Row]) -> str:
    """For people: what was measured in this section, with standard errors."""
    measures = [one for one in MEASURES if any(one in each for each in rows)]
    head = ["setting", "method", "worlds", *(MEASURES[one][0] for one in measures)]
    shown = [head]
    for each in rows:
        numbers = [number(each, one) for one in measures]
        shown.append([each["setting"], each["method"], str(each["worlds"]), *numbers])
    return markdown(shown)


def number(each: Row, measure: str) -> str:
    if measure not in each:
        return ""
    digits = MEASURES[measure][1]
    return f"{each[measure]:.{digits}f} ± {each[f'{measure}_error']:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "sections", nargs="*", default=SECTIONS, metavar="section", help=", ".join(SECTIONS)
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the worlds")
    parser.add_argument("--workers", type=int, default=-1, help="processes (default: one a core)")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(
            f"no such section: {', '.join(sorted(unknown))}; choose from {', '.join(SECTIONS)}"
        )
    options.output.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    for section in options.sections:
        todo = list(trials(section, 0.1 if options.quick else 1.0))
        with Parallel(n_jobs=options.workers, return_as="generator") as parallel:
            done = tqdm(
                parallel(delayed(run)(trial) for trial in todo),
                total=len(todo),
                desc=section,
                unit="world",
            )
            rows = means([one for found in done for one in found])
        write_table(options.output / f"{NAME}_{section}.csv", rows)
        print(report(rows), flush=True)
    write_settings(options.output / f"{NAME}.json", vars(options), time.perf_counter() - start)


if __name__ == "__main__":
    main()
