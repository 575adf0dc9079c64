"""Tables of the league: a CSV file for each world, a row for each method and seed."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from isingkit.experiments.runner import read
from league.measures import Row
from league.methods import METHODS
from league.worlds import FIRST_RESERVED
from protocols.results import write_table


def keep(measured: Sequence[Row], folder: Path) -> None:
    """Write rows into the tables of their worlds. Old rows stay where nothing new was measured of
    the same world, method and run: those of one method are always of one source.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(row["name"] for row in measured):
        new = [row for row in measured if row["name"] == name]
        sources = {_group(row): row["source"] for row in new}
        kept = {_key(row): row for row in read_rows(folder, [name]) if _fits(row, sources)}
        kept |= {_key(row): row for row in new}
        write_table(folder / f"{name}.csv", [kept[key] for key in sorted(kept)])


def read_rows(folder: Path, names: Iterable[str]) -> list[Row]:
    """Rows of these worlds or tables, as far as there are any."""
    present = [name for name in names if (folder / f"{name}.csv").is_file()]
    return [row for name in present for row in read(name, folder)]


def _group(row: Row) -> tuple[str, bool]:
    return row["method"], row["seed"] >= FIRST_RESERVED


def _fits(row: Row, sources: dict[tuple[str, bool], str]) -> bool:
    return row["source"] == sources.get(_group(row), row["source"])


def _key(row: Row) -> tuple[Any, ...]:
    return list(METHODS).index(row["method"]), row["seed"]
