"""File formats: kinds of files that hold data, by suffix; `tables.READERS` reads them."""

import os
import re
from pathlib import Path

FilePath = str | os.PathLike[str]
SUFFIXES = (
    ".csv", ".tsv", ".txt", ".dat", ".rtab", ".parquet", ".npy", ".npz", ".mtx", ".h5ad", ".spins",
)  # fmt: skip
COMPRESSED = ".gz"  # text only
# for help, and for errors
NAMES = (
    "CSV, TSV, text in .txt or .dat, Rtab, Matrix Market .mtx (these also .gz), Parquet, NPY, NPZ, "
    ".h5ad or .spins"
)
LISTED = (
    ".csv, .tsv, .txt, .dat, .rtab, .mtx (these also .gz), .parquet, .npy, .npz, .h5ad and .spins"
)
# of other programs, by suffix
FOREIGN = {
    ".xlsx": "Excel", ".xls": "Excel", ".xlsm": "Excel", ".ods": "LibreOffice",
    ".numbers": "Numbers", ".sav": "SPSS", ".zsav": "SPSS", ".por": "SPSS", ".dta": "Stata",
    ".sas7bdat": "SAS", ".rds": "R", ".rdata": "R", ".rda": "R", ".jasp": "JASP", ".omv": "jamovi",
    ".mat": "MATLAB",
}  # fmt: skip
STANDARD_INPUT = "-"  # text in columns


def format_of(path: Path) -> str:
    """What the name says of the format: its suffix, without that of compression; or "-"."""
    if str(path) == STANDARD_INPUT:
        return STANDARD_INPUT
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] == COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def unknown_format(path: Path) -> str:
    """What is wrong with a file that no reader knows, and what to do."""
    program = FOREIGN.get(format_of(path))
    if program is not None:
        return f"it is a file of {program}: save it there as CSV, and take that"
    return f"its name ends in none of {LISTED}"


def bare_name(path: Path) -> str:
    """The name of a file without what says its format."""
    known = "|".join(re.escape(suffix) for suffix in SUFFIXES)
    ending = rf"({known})?({re.escape(COMPRESSED)})?$"
    return re.sub(ending, "", path.name, flags=re.IGNORECASE).lstrip(".-")
