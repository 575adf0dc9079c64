"""Reading: a file of two-valued columns as packed spins, read in chunks, so that only the bits are
ever in memory as a whole.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from isingkit.exceptions import TableFileError
from isingkit.packing import PackedSpins, apply_missing_policy
from isingkit.spins import require_settings
from isingkit.tables.parts import read_array, read_parquet
from isingkit.tables.rows import Asked, Reading
from isingkit.tables.text import read_text

SEPARATORS = {".csv": ",", ".tsv": "\t"}


def read_spins(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    weights: str | None = None,
    binarize: float | None = None,
    missing: str = "error",
    progress: bool = False,
) -> Reading:
    """Packed spins, and weights of rows, of a file: CSV or TSV (also .gz, or "-" for standard
    input), Parquet, NPY, NPZ or .spins.

    Spins are those that `as_spins` makes of the same table. Cells of columns that are not used are
    not looked at.

    Parameters
    ----------
    path
        The file; "-" is text in columns from standard input.
    columns
        Columns to use, in this order; by default all.
    drop
        Columns to leave out.
    weights
        The column that says how often a row was seen; it is no spin.
    binarize
        As for `as_spins`.
    missing
        As for `as_spins`.
    progress
        Whether to show a progress bar, on standard error, when reading takes long.
    """
    require_settings(binarize, missing)
    asked = Asked(Path(path), tuple(columns), tuple(drop), weights, binarize, missing, progress)
    kinds = [suffix.lower() for suffix in asked.path.suffixes]
    kind = kinds[-2] if len(kinds) > 1 and kinds[-1] == ".gz" else kinds[-1] if kinds else ""
    if str(path) == "-":
        return read_text(asked, ",")
    if kind in SEPARATORS:
        return read_text(asked, SEPARATORS[kind])
    if kind == ".spins":
        return _read_packed(asked)
    if kind in (".npy", ".npz"):
        return read_array(asked)
    if kind == ".parquet":
        return read_parquet(asked)
    raise TableFileError(
        path=asked.path,
        problem="its name ends in none of .csv, .tsv (also .gz), .parquet, .npy, .npz and .spins",
    )


def listed(names: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def _read_packed(asked: Asked) -> Reading:
    packed = PackedSpins.load(asked.path)
    chosen = asked.chosen(packed.names)
    if asked.weights is not None:
        raise TableFileError(path=None, problem="packed spins have no column of numbers")
    if chosen != list(range(packed.n_spins)):
        packed = packed[:, chosen]
    return Reading(apply_missing_policy(packed, asked.missing)[0], None)
