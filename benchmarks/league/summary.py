"""Means over seeds with standard errors, and the ranking that follows from them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from league.measures import Row
from league.methods import METHODS
from league.worlds import FIRST_RESERVED

MEANS = (
    "edges",
    "f1",
    "precision",
    "recall",
    "exact",
    "false_share",
    "any_false",
    "rms_error",
    "held_out",
    "held_out_truth",
    "bias_per_error",
    "cpu_seconds",
)
BEHIND = 0.01  # of F1
COVERAGE = (0.93, 0.97)
ENOUGH_INTERVALS = 200  # to judge coverage by


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its standard error, NaN where one seed says nothing of it."""

    mean: float
    error: float

    def __str__(self) -> str:
        digits = 2 if abs(self.mean) >= 10 else 3
        if math.isnan(self.mean):
            return ""
        error = "" if math.isnan(self.error) else f" ± {self.error:.{digits}f}"
        return f"{self.mean:.{digits}f}{error}"


NOTHING = Estimate(math.nan, math.nan)


def mean(values: Iterable[float]) -> Estimate:
    """Over seeds."""
    found = np.array(list(values), dtype=np.float64)
    if len(found) == 0:
        return NOTHING
    error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else math.nan
    return Estimate(float(found.mean()), float(error))


def coverage(rows: Sequence[Row]) -> Estimate:
    """Share of intervals that hold the truth; its error takes edges of one seed together."""
    pairs = [(row["holding"], row["intervals"]) for row in rows if "intervals" in row]
    if not pairs:
        return NOTHING
    holding, intervals = np.array(pairs, dtype=np.float64).T
    total = intervals.sum()
    if not total:
        return NOTHING
    share = holding.sum() / total
    n_seeds = len(pairs)
    residuals = holding - share * intervals
    scale = math.sqrt(n_seeds / (n_seeds - 1)) if n_seeds > 1 else math.nan
    return Estimate(float(share), float(scale * np.sqrt((residuals**2).sum()) / total))


@dataclass(frozen=True, slots=True)
class Standing:
    """All methods in one world, in development or in the final run."""

    name: str
    rows: dict[str, list[Row]]  # by method, those without a problem

    def estimate(self, method: str, measure: str) -> Estimate:
        return mean(row[measure] for row in self.rows.get(method, []) if measure in row)

    def coverage(self, method: str) -> Estimate:
        return coverage(self.rows.get(method, []))

    def n_intervals(self, method: str) -> int:
        return sum(row.get("intervals", 0) for row in self.rows.get(method, []))

    def n_seeds(self, method: str) -> int:
        return len(self.rows.get(method, []))

    def best_of(self, methods: Iterable[str]) -> str | None:
        """The method of the largest mean F1."""
        tried = [method for method in methods if self.rows.get(method)]
        return max(tried, key=lambda one: self.estimate(one, "f1").mean, default=None)

    def rival(self) -> str | None:
        """The best method that is not AutoIsing and has no oracle."""
        return self.best_of(name for name, method in METHODS.items() if method.is_rival)

    def ahead(self, method: str, other: str) -> Estimate:
        """By how much F1 of the method is larger, over seeds that both have."""
        theirs = {row["seed"]: row["f1"] for row in self.rows.get(other, [])}
        ours = self.rows.get(method, [])
        return mean(row["f1"] - theirs[row["seed"]] for row in ours if row["seed"] in theirs)

    def is_behind(self) -> bool:
        """Whether a rival finds more than AutoIsing, by more than what is allowed."""
        rival = self.rival()
        return rival is not None and self.ahead("auto-fdr", rival).mean < -BEHIND

    def has_many_false(self) -> bool:
        """Whether AutoIsing's false share is above its level by more than two standard errors."""
        share = self.estimate("auto-fdr", "false_share")
        level = METHODS["auto-fdr"].level
        assert level is not None
        return share.mean > level + 2 * np.nan_to_num(share.error)

    def covers_badly(self) -> bool:
        """Whether enough of AutoIsing's intervals hold the truth too rarely or too often."""
        low, high = COVERAGE
        share = self.coverage("auto-fdr").mean
        return self.n_intervals("auto-fdr") >= ENOUGH_INTERVALS and not low <= share <= high


def standings(table: Sequence[Row], *, final: bool) -> list[Standing]:
    """One of each world of which there are rows, in their order."""
    found: dict[str, Standing] = {}
    for row in table:
        if (row["seed"] >= FIRST_RESERVED) == final and "problem" not in row:
            standing = found.setdefault(row["name"], Standing(row["name"], {}))
            standing.rows.setdefault(row["method"], []).append(row)
    return list(found.values())


def summary_rows(standing: Standing, *, final: bool) -> list[Row]:
    """For people with a spreadsheet: a row a method, each measure with its standard error."""
    rows = []
    for method in standing.rows:
        row: Row = {"run": "final" if final else "development", "world": standing.name}
        row |= {"method": method, "seeds": standing.n_seeds(method)}
        estimates = {measure: standing.estimate(method, measure) for measure in MEANS}
        estimates["coverage"] = standing.coverage(method)
        for measure, estimate in estimates.items():
            row |= {measure: _cell(estimate.mean), f"{measure}_se": _cell(estimate.error)}
        rows.append(row | {"intervals": standing.n_intervals(method)})
    return rows


def _cell(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.5g}")
