"""Reading: a file of two-valued columns as packed spins, read in chunks, so that only the bits are
ever in memory as a whole.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from isingkit.exceptions import TableFileError
from isingkit.formats import LISTED, STANDARD_INPUT, format_of
from isingkit.packing import PackedSpins, apply_missing_policy
from isingkit.spins import missing_policy, require_binarize
from isingkit.tables.parts import read_array, read_parquet
from isingkit.tables.rows import Reading, ReadOptions
from isingkit.tables.text import read_text


def read_spins(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    weights: str | None = None,
    counts: str | None = None,
    groups: str | None = None,
    covariates: Sequence[str] = (),
    binarize: float | None = None,
    missing: str = "error",
    progress: bool = False,
) -> Reading:
    """Packed spins, and what rows count for, of a file: CSV or TSV (also .gz, or "-" for standard
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
        The column that says how much a row matters; it is no spin.
    counts
        The column that says how many equal samples a row stands for; it is no spin.
    groups
        The column of labels that are the same for rows which belong together; it is no spin.
    covariates
        Columns of what else is known of rows, which are no spins: of numbers where all their values
        are, else of categories.
    binarize
        As for `as_spins`.
    missing
        As for `as_spins`.
    progress
        Whether to show a progress bar, on standard error, when reading takes long.
    """
    policy = missing_policy(missing)
    require_binarize(binarize)
    options = ReadOptions(
        path=Path(path),
        columns=tuple(columns),
        drop=tuple(drop),
        weights=weights,
        counts=counts,
        groups=groups,
        covariates=tuple(dict.fromkeys(covariates)),
        binarize=binarize,
        missing=policy,
        progress=progress,
    )
    read = READERS.get(format_of(options.path))
    if read is None:
        raise TableFileError(path=options.path, problem=f"its name ends in none of {LISTED}")
    return read(options)


def listed(names: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def _read_packed(options: ReadOptions) -> Reading:
    packed = PackedSpins.load(options.path)
    chosen = options.chosen(packed.names)
    if options.beside:
        raise TableFileError(path=None, problem="packed spins have no columns but spins")
    if chosen != list(range(packed.n_spins)):
        packed = packed[:, chosen]
    return Reading(apply_missing_policy(packed, options.missing)[0])


READERS: dict[str, Callable[[ReadOptions], Reading]] = {
    STANDARD_INPUT: partial(read_text, separator=","),
    ".csv": partial(read_text, separator=","),
    ".tsv": partial(read_text, separator="\t"),
    ".parquet": read_parquet,
    ".npy": read_array,
    ".npz": read_array,
    ".spins": _read_packed,
}
