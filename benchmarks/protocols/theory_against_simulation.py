"""The theory against planted worlds, at points that a seeded draw chose and nothing was tuned to.

Parts:

- losses: error and bias of pseudolikelihood and interaction screening, with a ridge or without, on
  random regular graphs of several sizes. A point passes where the measured mean is within three
  standard errors plus ALLOWANCE / n_spins, relative, of the prediction.

- sparse: precision and recall of l1-penalised least squares, pseudolikelihood and interaction
  screening, an edge being where one of both directed estimates is not zero. A point passes where
  both are within 0.01 plus three standard errors.

- samples: exact networks at the answer of `samples_needed`, at the settings of SETTINGS and at as
  many as a seeded draw chooses. A setting passes where their number is within the binomial 95
  percent band of what was asked for.

- recovery: precision and recall of all directed estimates of two stages, at the threshold that the
  model's own prediction calls best; `recovery_of_model` of some of the graphs that were drawn, and
  `recovery` of such graphs. A point passes where both are within 0.01 plus three standard errors.

Points: degrees 2 to 6, couplings up to 0.9 of the critical one, 0.3 to 10 samples per spin.
Tables hold every point that was drawn, also where the prediction misses.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from results import Row, markdown, write_settings, write_table
from scipy.stats import binom
from tqdm import tqdm

import isingkit as ik
from isingkit import theory
from isingkit.exceptions import SettingError, StageTwoError
from isingkit.experiments.runner import seed_of

NAME = "theory_against_simulation"
ALLOWANCE = 4.0  # over the number of spins, of errors, relative
PARTS = ("losses", "sparse", "samples", "recovery")
PROBABILITY = 0.9  # asked of samples_needed
SETTINGS = (  # n_spins, degree, coupling, worlds, seed of the first: (c - 1) tanh^2 K 0.29 to 0.64
    (200, 4, 0.5, 100, 35_000),
    (200, 6, 0.35, 100, 37_000),
    (200, 3, 0.6, 80, 39_000),
    (200, 5, 0.4, 80, 31_000),
    (300, 4, 0.45, 80, 33_000),
    (200, 3, 0.4, 80, 41_000),
)
N_DRAWN = 30  # settings more, of sizes in SIZES
SIZES = (60, 100, 150, 200)
N_WORLDS_DRAWN = 60
CLOSE = 0.01  # precision and recall
N_WORLDS = 12  # of the recovery part
N_MODELS = 3  # of these, whose predictions are averaged
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "squares": ik.LassoIsing,
    "pseudolikelihood": ik.PseudolikelihoodIsing,
    "screening": ik.InteractionScreeningIsing,
}

PREDICTIONS: dict[str, Callable[..., theory.LossPrediction]] = {
    "pseudolikelihood": theory.pseudolikelihood,
    "screening": theory.interaction_screening,
}


@dataclass(frozen=True, slots=True)
class Point:
    """A random regular graph, and data of it."""

    place: int
    degree: int
    coupling: float
    samples_per_spin: float


def points(seed: int, n: int) -> Iterator[Point]:
    """By a seeded draw; more points go on where fewer ended."""
    rng = np.random.default_rng(seed)
    for place in range(n):
        degree = int(rng.integers(2, 7))
        critical = np.arctanh(1 / np.sqrt(degree - 1)) if degree > 2 else 1.2
        coupling = round(float(rng.uniform(0.15, 0.9) * critical), 3)
        alpha = round(float(np.exp(rng.uniform(np.log(0.3), np.log(10)))), 2)
        yield Point(place, degree, coupling, alpha)


def losses(options: argparse.Namespace) -> list[Row]:
    """Error and bias of local losses, by size."""
    table = []
    rng = np.random.default_rng(options.seed + 1)
    for point in tqdm(list(points(options.seed, options.points)), desc="losses"):
        ridge = round(float(np.exp(rng.uniform(np.log(0.03), np.log(3)))), 3)
        limit = theory.separation_limit(point.degree, point.coupling)
        if point.samples_per_spin > 1.3 * limit and rng.random() < 0.7:
            ridge = 0.0
        for loss in ("pseudolikelihood", "screening"):
            for n_spins, n_worlds in zip(options.sizes, options.worlds, strict=True):
                table.append(_loss_row(point, ridge, loss, n_spins, n_worlds))
    return table


def _loss_row(point: Point, ridge: float, loss: str, n_spins: int, n_worlds: int) -> Row:
    n_samples = round(point.samples_per_spin * n_spins)
    found = []
    for world in range(n_worlds):
        truth, samples = _planted(point, n_spins, n_samples, (loss, point.place, n_spins, world))
        penalty = ridge * n_spins / n_samples
        estimator = ESTIMATORS[loss](l2=penalty, fit_fields=False)
        found.append(_error_and_bias(estimator.fit(samples).estimates_, truth))
    finite = n_spins - 1
    predict = PREDICTIONS[loss]
    expected = predict(point.degree, point.coupling, n_samples / finite, ridge * n_spins / finite)
    row: Row = {
        "loss": loss,
        "degree": point.degree,
        "coupling": point.coupling,
        "samples_per_spin": point.samples_per_spin,
        "ridge": ridge,
        "n_spins": n_spins,
        "n_worlds": n_worlds,
    }
    for name, values in zip(("rss", "bias"), np.array(found).T, strict=True):
        row |= _compared(name, values, float(getattr(expected, name)), ALLOWANCE / n_spins)
    return row


def _planted(
    point: Point, n_spins: int, n_samples: int, labels: tuple[str | int, ...]
) -> tuple[ik.IsingModel, ik.PackedSpins]:
    seed = seed_of(NAME, *labels)
    truth = ik.random_regular(
        n_spins=n_spins, degree=point.degree, coupling=point.coupling, random_state=seed
    )
    return truth, ik.sample(truth, n_samples=n_samples, random_state=seed + 1)


def sparse(options: argparse.Namespace) -> list[Row]:
    """Precision and recall of l1-penalised estimates; least squares, which is quick, at each."""
    table = []
    rng = np.random.default_rng(options.seed + 2)
    n_points = 2 * options.points
    for point in tqdm(list(points(options.seed, n_points)), desc="sparse"):
        l1 = round(float(rng.uniform(0.3, 0.8) * np.tanh(point.coupling)), 3)
        table.append(_sparse_row(point, l1, "squares", options.sizes[-1], 12))
        if point.place % 4 == 0:
            table.append(_sparse_row(point, l1, "pseudolikelihood", options.sizes[0], 12))
            table.append(_sparse_row(point, l1, "screening", options.sizes[0], 12))
    return table


def _sparse_row(point: Point, l1: float, loss: str, n_spins: int, n_worlds: int) -> Row:
    n_samples = round(point.samples_per_spin * n_spins)
    row: Row = {
        "loss": loss,
        "degree": point.degree,
        "coupling": point.coupling,
        "n_samples": n_samples,
        "l1": l1,
        "n_spins": n_spins,
        "n_worlds": n_worlds,
    }
    try:
        expected = theory.sparse_recovery(
            n_spins, point.degree, point.coupling, n_samples, l1, loss=loss
        )
    except SettingError:
        return row | {"refused": True}
    counts = np.zeros((n_worlds, 3))
    for world in range(n_worlds):
        truth, samples = _planted(point, n_spins, n_samples, (point.place, n_spins, world, 1))
        found = ESTIMATORS[loss](l1=l1).fit(samples).model_.couplings.toarray() != 0
        true = truth.couplings.toarray() != 0
        counts[world] = (np.sum(found & true), np.sum(found & ~true), np.sum(true))
    row["candidates"] = round(expected.candidates, 2)
    row |= _compared_counts(counts, expected.precision, expected.recall)
    return row


def _compared_counts(counts: np.ndarray, precision: float, recall: float) -> Row:
    """counts: (n_worlds, 3), found, invented and all edges; errors by leaving out worlds."""
    row: Row = {}
    for name, columns, expected in (("precision", (0, 1), precision), ("recall", (2,), recall)):
        value = _ratio(counts, columns)
        without = [_ratio(np.delete(counts, k, axis=0), columns) for k in range(len(counts))]
        error = float(np.sqrt((len(counts) - 1) * np.var(without)))
        off = abs(value - expected)
        row |= {
            name: round(value, 4),
            f"{name}_error": round(error, 4),
            f"{name}_predicted": round(float(expected), 4),
            f"{name}_close": bool(off <= CLOSE),
            f"{name}_within": bool(off <= CLOSE + 3 * error),
        }
    return row


def recovery(options: argparse.Namespace) -> list[Row]:
    """Precision and recall of two stages."""
    table = []
    rng = np.random.default_rng(options.seed + 3)
    for point in tqdm(list(points(options.seed, options.points)), desc="recovery"):
        ridge = round(float(np.exp(rng.uniform(np.log(0.03), np.log(3)))), 3)
        depth = float(rng.uniform(0.3, 0.8))  # of prune, in the neighbours' mean estimate
        try:
            table.append(_recovery_row(point, ridge, depth, options.sizes[-1]))
        except StageTwoError as error:  # more candidates than rows, in one of the worlds
            table.append(
                {"degree": point.degree, "coupling": point.coupling, "refused": str(error)}
            )
    return table


def _recovery_row(point: Point, ridge: float, depth: float, n_spins: int) -> Row:
    n_samples = round(point.samples_per_spin * n_spins)
    alpha = n_samples / (n_spins - 1)
    expected = theory.random_regular(point.degree, point.coupling, alpha, ridge)
    prune = round(float(depth * expected.means[0]), 4)
    knobs = {"ridge": ridge, "prune": prune}
    row: Row = {"degree": point.degree, "coupling": point.coupling, "n_spins": n_spins}
    row |= {"n_samples": n_samples, "n_worlds": N_WORLDS} | knobs
    planted = [
        _planted(point, n_spins, n_samples, (point.place, world, 2)) for world in range(N_WORLDS)
    ]
    try:
        models = [
            theory.recovery_of_model(truth, n_samples, **knobs) for truth, _ in planted[:N_MODELS]
        ]
        size = (n_spins, point.degree, point.coupling, n_samples)
        regular = theory.recovery(*size, **knobs, rule="directed")
    except SettingError as error:
        return row | {"refused": str(error)}
    level = round(float(np.mean([one.best_threshold() for one in models])), 3)
    row |= {"candidates": round(models[0].n_candidates(), 2), "threshold": level}
    counts = np.zeros((N_WORLDS, 3))
    for world, (truth, samples) in enumerate(planted):
        fit = ik.TwoStageIsing(**knobs, threshold=level, fit_fields=False).fit(samples)
        found = np.abs(fit.estimates_) > level
        true = truth.couplings.toarray() != 0
        counts[world] = (np.sum(found & true), np.sum(found & ~true), np.sum(true))
    precision = float(np.mean([one.precision(level) for one in models]))
    recall = float(np.mean([one.recall(level) for one in models]))
    row |= _compared_counts(counts, precision, recall)
    of_regular = _compared_counts(counts, regular.precision(level), regular.recall(level))
    names = ("predicted", "close", "within")
    for name in ("precision", "recall"):
        row |= {f"regular_{name}_{what}": of_regular[f"{name}_{what}"] for what in names}
    return row


def _ratio(counts: np.ndarray, columns: tuple[int, ...]) -> float:
    total = counts[:, columns].sum()
    return float(counts[:, 0].sum() / total) if total else np.nan


def samples(options: argparse.Namespace) -> list[Row]:
    """Share of worlds found exactly by two stages with their best knobs."""
    table = []
    settings = [*SETTINGS, *_drawn_settings(options.seed + 4)]
    for n_spins, degree, coupling, n_worlds, seed in tqdm(settings, desc="samples"):
        size = (n_spins, degree, coupling)
        needed = theory.samples_needed(*size, PROBABILITY)
        best = theory.best_two_stage(*size, needed)
        knobs = {"ridge": best.ridge, "prune": best.prune, "threshold": best.best_threshold()}
        n_exact = 0
        for place in range(seed, seed + n_worlds):
            truth = ik.random_regular(
                n_spins=n_spins, degree=degree, coupling=coupling, random_state=place
            )
            rows = ik.sample(truth, n_samples=needed, random_state=place + 100)
            n_exact += ik.score(ik.TwoStageIsing(**knobs).fit(rows).model_, truth).exact
        table.append(_samples_row(size, needed, n_exact, n_worlds))
    return table


def _drawn_settings(seed: int) -> Iterator[tuple[int, int, float, int, int]]:
    rng = np.random.default_rng(seed)
    for place, point in enumerate(points(seed, N_DRAWN)):
        n_spins = int(rng.choice(SIZES))
        yield n_spins, point.degree, point.coupling, N_WORLDS_DRAWN, 100_000 + 1000 * place


def _samples_row(size: tuple[int, int, float], needed: int, n_exact: int, n_worlds: int) -> Row:
    n_spins, degree, coupling = size
    low, high = binom.interval(0.95, n_worlds, PROBABILITY)
    return {
        "n_spins": n_spins,
        "degree": degree,
        "coupling": coupling,
        "growth": round(float((degree - 1) * np.tanh(coupling) ** 2), 3),
        "n_samples": needed,
        "exact": n_exact,
        "n_worlds": n_worlds,
        "low": int(low),
        "high": int(high),
        "exact_within": bool(low <= n_exact <= high),
    }


def _error_and_bias(estimates: np.ndarray, truth: ik.IsingModel) -> tuple[float, float]:
    couplings = truth.couplings.toarray()
    near = couplings != 0
    rss = np.mean(np.sum((estimates - couplings) ** 2, axis=1))
    return float(rss), float(np.mean(estimates[near] / couplings[near]))


def _compared(name: str, values: np.ndarray, expected: float, allowance: float) -> Row:
    """Measured and predicted, and whether the difference is no more than it may be."""
    mean = float(np.mean(values))
    error = float(np.std(values, ddof=1) / np.sqrt(len(values)))
    within = abs(mean - expected) <= 3 * error + allowance * expected
    return {
        name: round(mean, 5),
        f"{name}_error": round(error, 5),
        f"{name}_predicted": round(expected, 5),
        f"{name}_within": within,
    }


def summary(table: list[Row]) -> str:
    """How many predictions are within their bands."""
    keys = dict.fromkeys(key for row in table for key in row)
    checks = [key for key in keys if key.endswith(("_within", "_close"))]
    rows = [["what", "passed", "of"]]
    for check in checks:
        answers = [row[check] for row in table if check in row]
        rows.append([check, str(sum(answers)), str(len(answers))])
    return markdown(rows)


MEASURES: dict[str, Callable[[argparse.Namespace], list[Row]]] = {
    "losses": losses,
    "sparse": sparse,
    "samples": samples,
    "recovery": recovery,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--points", type=int, default=16)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 200])
    parser.add_argument("--worlds", type=int, nargs="+", default=[12, 4])
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    start = time.process_time()
    for part in options.parts:
        table = MEASURES[part](options)
        write_table(options.output / f"{NAME}_{part}.csv", table)
        print(f"{part}\n{summary(table)}")
    seconds = time.process_time() - start
    write_settings(options.output / f"{NAME}.json", vars(options), seconds)


if __name__ == "__main__":
    main()
