"""Reading: a file of two-valued columns as packed spins, read in chunks, so that only the bits are
ever in memory as a whole.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from isingkit.exceptions import TableFileError, require_number
from isingkit.formats import STANDARD_INPUT, FilePath, format_of, unknown_format
from isingkit.packing import PackedSpins, apply_missing_policy
from isingkit.spins import Binarize, missing_policy, require_binarize
from isingkit.tables.filters import without_rare
from isingkit.tables.matrices import (
    is_sparse_archive,
    read_any_text,
    read_dense,
    read_h5ad,
    read_matrix_market,
    read_sparse,
    read_transposed_text,
)
from isingkit.tables.parts import read_array, read_parquet
from isingkit.tables.rows import Reading, ReadOptions
from isingkit.tables.text import read_text


def read_spins(
    path: FilePath,
    *,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    weights: str | None = None,
    counts: str | None = None,
    groups: str | None = None,
    covariates: Sequence[str] = (),
    labels: Sequence[str] = (),
    binarize: Binarize = None,
    missing: str = "error",
    missing_codes: Sequence[str] = (),
    ticked: Sequence[str] = (),
    transpose: bool = False,
    min_count: int = 0,
    max_share: float = 1.0,
    progress: bool = False,
) -> Reading:
    """Packed spins, and what rows count for, of a file: CSV, TSV or other text in columns (also
    .gz, or "-" for standard input), Rtab, Matrix Market, Parquet, NPY, NPZ (also of scipy.sparse),
    .h5ad or .spins.

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
    labels
        Covariates that name something: in text they stay texts, so that 007 and 7 are two.
    binarize
        As for `as_spins`.
    missing
        As for `as_spins`.
    missing_codes
        Of text in columns: what stands for missing values of variables and covariates, beside empty
        cells and NA: numbers such as "-999", or texts, in any case.
    ticked
        Of text in columns: columns that hold a mark, such as x or 1, and empty cells that mean
        "no".
    transpose
        Whether the file has variables in rows and samples in columns; Rtab files always have.
    min_count
        Columns either value of which occurs in fewer rows, each as often as `counts` says, are
        left out, with a warning. Their missing values cost no rows.
    max_share
        The same of columns one value of which has a larger share of all rows.
    progress
        Whether to show a progress bar, on standard error, when reading takes long.
    """
    policy = missing_policy(missing)
    require_binarize(binarize)
    require_number("min_count", min_count, at_least=0, whole=True)
    require_number("max_share", max_share, above=0)
    options = ReadOptions(
        path=Path(path),
        columns=tuple(columns),
        drop=tuple(drop),
        weights=weights,
        counts=counts,
        groups=groups,
        covariates=tuple(dict.fromkeys(covariates)),
        labels=tuple(labels),
        binarize=binarize,
        missing=policy,
        missing_codes=tuple(code.strip() for code in missing_codes),
        ticked=tuple(ticked),
        transpose=transpose,
        progress=progress,
    )
    ending = format_of(options.path)
    if ending not in READERS:
        raise TableFileError(path=options.path, problem=unknown_format(options.path))
    read = (TRANSPOSED if transpose else READERS).get(ending)
    if read is None:
        problem = f"files that end in {ending} are not read with variables in rows"
        raise TableFileError(path=options.path, problem=problem)
    if (options.missing_codes or options.ticked) and (transpose or ending not in TEXTS):
        problem = "codes of missing values and ticks are for text in columns, one row a sample"
        raise TableFileError(path=options.path, problem=problem)
    return without_rare(read, options, min_count, max_share)


def listed(names: str | None) -> list[str]:
    """Names separated by commas; one that holds a comma stands in double quotes, as in CSV."""
    cells = next(csv.reader([names or ""], skipinitialspace=True), [])
    return [name.strip() for name in cells if name.strip()]


def thresholds_in(text: str) -> float | dict[str, float]:
    """A threshold, or thresholds by column, written NAME=NUMBER and listed as names are."""
    try:
        return float(text)
    except ValueError:
        pairs = [one.rpartition("=") for one in listed(text)]
    if not pairs or not all(name and sign for name, sign, _ in pairs):
        raise ValueError(f"expected a number, or NAME=NUMBER for each column, but got '{text}'")
    return {name.strip(): float(number) for name, _, number in pairs}


def thresholds_as_text(binarize: Binarize) -> str:
    """The text of which `thresholds_in` makes this."""
    if isinstance(binarize, Mapping):
        return as_list([f"{name}={number:.17g}" for name, number in binarize.items()])
    return f"{binarize:.17g}"


def as_list(names: Sequence[str]) -> str:
    """The text of which `listed` makes these names."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def _read_packed(options: ReadOptions) -> Reading:
    packed = PackedSpins.load(options.path)
    chosen = options.chosen(packed.names)
    if options.beside:
        raise TableFileError(path=None, problem="packed spins have no columns but spins")
    if chosen != list(range(packed.n_spins)):
        packed = packed[:, chosen]
    return Reading(apply_missing_policy(packed, options.missing)[0])


def _read_archive(options: ReadOptions) -> Reading:
    """An .npz file: of numpy, or of scipy.sparse."""
    if is_sparse_archive(options.path):
        return read_sparse(options)
    return read_dense(options) if options.transpose else read_array(options)


# of text with one row a sample: by which separators, the likeliest first
TEXTS: dict[str, Callable[[ReadOptions], Reading]] = {
    STANDARD_INPUT: partial(read_text, separators=",;\t"),
    ".csv": partial(read_text, separators=",;\t"),
    ".tsv": partial(read_text, separators="\t"),
    ".txt": read_any_text,
    ".dat": read_any_text,
}
READERS: dict[str, Callable[[ReadOptions], Reading]] = {
    **TEXTS,
    ".parquet": read_parquet,
    ".npy": read_array,
    ".rtab": partial(read_transposed_text, separator="\t"),
    ".npz": _read_archive,
    ".mtx": read_matrix_market,
    ".h5ad": read_h5ad,
    ".spins": _read_packed,
}
# by files with variables in rows
TRANSPOSED: dict[str, Callable[[ReadOptions], Reading]] = {
    ".csv": partial(read_transposed_text, separator=","),
    ".tsv": partial(read_transposed_text, separator="\t"),
    ".txt": read_any_text,
    ".dat": read_any_text,
    ".rtab": partial(read_transposed_text, separator="\t"),
    ".npy": read_dense,
    ".npz": _read_archive,
    ".mtx": read_matrix_market,
    ".h5ad": read_h5ad,
}
