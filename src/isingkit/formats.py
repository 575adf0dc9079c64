"""File formats: kinds of files that hold data, by suffix; `tables.READERS` reads them."""

import re
from pathlib import Path

SUFFIXES = (".csv", ".tsv", ".parquet", ".npy", ".npz", ".spins")
COMPRESSED = ".gz"  # text only
NAMES = "CSV, TSV (also .gz), Parquet, NPY, NPZ or .spins"  # for help
LISTED = ".csv, .tsv (also .gz), .parquet, .npy, .npz and .spins"  # for errors
STANDARD_INPUT = "-"  # text in columns


def format_of(path: Path) -> str:
    """What the name says of the format: its suffix, without that of compression; or "-"."""
    if str(path) == STANDARD_INPUT:
        return STANDARD_INPUT
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] == COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def bare_name(path: Path) -> str:
    """The name of a file without what says its format."""
    known = "|".join(re.escape(suffix) for suffix in SUFFIXES)
    ending = rf"({known})?({re.escape(COMPRESSED)})?$"
    return re.sub(ending, "", path.name, flags=re.IGNORECASE).lstrip(".-")
