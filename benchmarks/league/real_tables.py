"""Real tables: rows of -1/+1 from files that are not part of the project, and folds of them.

Nobody knows their networks; methods are compared by the log pseudolikelihood of rows that they have
not seen. Tables whose file is absent are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import isingkit as ik
from isingkit.experiments.runner import seed_of

FOLDER = Path(__file__).parents[3] / "shared" / "data"
N_FOLDS = 5
MOST_MISSING = 0.02  # of a senator's votes
KEPT_BINS = 8  # one bin in so many: neighbouring bins of 25 ms are alike


@dataclass(frozen=True, slots=True)
class RealTable:
    """One table of two-valued columns."""

    name: str
    file: str
    about: str  # for people
    columns: Callable[[pd.DataFrame], pd.DataFrame]  # of the file, those that are spins; no gaps

    @property
    def path(self) -> Path:
        return FOLDER / self.file

    def read(self) -> ik.PackedSpins:
        return ik.pack(ik.as_spins(self.columns(pd.read_csv(self.path))))


def _as_it_is(table: pd.DataFrame) -> pd.DataFrame:
    return table


def _symptoms(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="group")


def _senators(table: pd.DataFrame) -> pd.DataFrame:
    votes = table.drop(columns="rollcall")
    present = votes.loc[:, votes.isna().mean() <= MOST_MISSING]
    return present.dropna().astype(int)


def _thinned(table: pd.DataFrame) -> pd.DataFrame:
    return table.iloc[::KEPT_BINS]


def _before(covariate: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Columns before the first covariate."""
    return lambda table: table.iloc[:, : table.columns.get_loc(covariate)]


TABLES = {
    table.name: table
    for table in (
        RealTable("court", "scotus_rehnquist2_895x9.csv", "votes of nine justices", _as_it_is),
        RealTable("symptoms", "adhd_symptoms_355x19.csv", "18 ADHD symptoms", _symptoms),
        RealTable(
            "senate",
            "senate109_645x102.csv",
            "senators who missed at most 2 percent of the votes, roll calls that all of them "
            "voted on",
            _senators,
        ),
        RealTable(
            "spikes",
            "hd_spikes_25ms_21174x15.csv.gz",
            f"15 neurons, one bin of 25 ms in {KEPT_BINS}",
            _thinned,
        ),
        RealTable(
            "eucalypts",
            "eucalypts_458x12_9covariates.csv",
            "12 species, without covariates",
            _before("Rockiness"),
        ),
        RealTable(
            "fungi",
            "fungi_800x11_12covariates.csv",
            "11 species, without covariates",
            _before("diam"),
        ),
    )
}


def present_tables() -> dict[str, RealTable]:
    """Tables whose file is there."""
    return {name: table for name, table in TABLES.items() if table.path.is_file()}


def fold(packed: ik.PackedSpins, name: str, number: int) -> tuple[Any, Any]:
    """Rows to learn from and rows to score on, the latter a fifth that no other fold has."""
    rng = np.random.default_rng(seed_of("league", name))
    fold_of_row = rng.permutation(packed.n_samples) % N_FOLDS
    learnt = np.flatnonzero(fold_of_row != number)
    held_out = np.flatnonzero(fold_of_row == number)
    return packed[learnt], packed[held_out]
