"""What a protocol leaves behind: a table (CSV), a picture (PNG) and the settings (JSON)."""

import csv
import datetime
import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import isingkit
from isingkit.atomic import replacing

Row = dict[str, Any]


def write_table(path: Path, table: Sequence[Row]) -> None:
    """A table as CSV; a row's missing values become empty cells."""
    columns = list(dict.fromkeys(key for row in table for key in row))
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(table)


def write_picture(path: Path, picture: Figure) -> None:
    with replacing(path) as temporary:
        picture.savefig(temporary, format="png", dpi=100)


def write_settings(path: Path, settings: Row, seconds: float) -> None:
    """How a table came about: settings, versions, date, and how long it took."""
    facts = dict(settings)
    facts.pop("output")  # a place on one machine
    facts |= {
        "seconds": round(seconds),
        "isingkit": isingkit.__version__,
        "date": datetime.date.today().isoformat(),
    }
    try:
        facts["abess"] = version("abess")
    except PackageNotFoundError:
        facts["abess"] = None
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(facts, indent=1, default=str) + "\n")


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table of texts, the first row its head."""
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])
