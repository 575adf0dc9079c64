"""Tables that are held in memory while they are read: sparse ones, and those with variables in
rows, of which zeros and ones are bits.
"""

import csv
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from numpy.typing import NDArray

from isingkit.archives import array_header, arrays_in
from isingkit.exceptions import IsingkitError, TableFileError
from isingkit.formats import COMPRESSED
from isingkit.memory import memory_there, require_memory
from isingkit.spins import MISSING_TEXTS, Table, require_matrix
from isingkit.tables.layout import cells_of
from isingkit.tables.parts import NAME, PART, Parts, read_parts
from isingkit.tables.rows import Reading, ReadOptions
from isingkit.tables.text import read_text

_ANY = "\t;, "  # what may stand between cells, the likeliest first
_LINE = 300  # bytes that hold what is read of a line, beside its values
_LONGEST = 1 << 26  # bytes of a line: what is longer is no table
_CHUNK = 1 << 16  # bytes
_BODY = re.compile(rb"\n[^%\s]")  # where the first line after the header begins
_OF_NUMBERS = b"0123456789+-.eE \t\r\nnaifNAIF"  # and of nan and inf
# bytes of memory, at most
_PLACE = 16  # of a row or a column of a sparse matrix
_VALUE = 16  # of a value of a Matrix Market file, and of where it is
_SPARSE_MEMBERS = {"format.npy", "shape.npy", "data.npy"}  # of what scipy.sparse.save_npz writes


def read_matrix(options: ReadOptions, matrix: Any, names: Sequence[str] | None = None) -> Reading:
    """A matrix, dense or scipy.sparse, one row a sample; some rows at a time are dense."""
    require_matrix(matrix.shape, "matrix")
    n_rows, n_columns = matrix.shape
    needed = NAME * n_columns + _PLACE * n_rows + n_rows * n_columns / 8
    require_memory(needed, n_spins=n_columns, n_samples=n_rows)
    titles = tuple(f"x{k}" for k in range(n_columns)) if names is None else tuple(map(str, names))
    if scipy.sparse.issparse(matrix):
        matrix = matrix.tocsr()
    step = max(64, PART // max(1, n_columns))

    def parts() -> Iterator[NDArray[Any]]:
        for start in range(0, n_rows, step):
            some = matrix[start : start + step]
            yield np.ascontiguousarray(some.toarray() if scipy.sparse.issparse(some) else some)

    def select(part: NDArray[Any], places: list[int]) -> Table:
        is_all = len(places) == n_columns
        return Table(tuple(titles[place] for place in places), part if is_all else part[:, places])

    source = Parts(titles, n_rows, parts, select, column=lambda part, place: part[:, place])
    return read_parts(source, options)


def is_sparse_archive(path: Path) -> bool:
    """Whether an .npz file is one that scipy.sparse.save_npz has written."""
    try:
        with zipfile.ZipFile(path) as archive:
            return set(archive.namelist()) >= _SPARSE_MEMBERS
    except Exception:  # no archive, or a damaged one: for the other reader to tell
        return False


def read_sparse(options: ReadOptions) -> Reading:
    """What scipy.sparse.save_npz has written."""
    return _read_as(options, _sparse, "a sparse matrix")


def read_dense(options: ReadOptions) -> Reading:
    """An .npy file, or the one table of an .npz file, with variables in rows."""
    return _read_as(options, _loaded, "numbers")


def read_matrix_market(options: ReadOptions) -> Reading:
    """A Matrix Market file, also compressed."""
    return _read_as(options, _matrix_market, "a Matrix Market file")


def _read_as(options: ReadOptions, load: Callable[[Path], Any], kind: str) -> Reading:
    try:
        matrix = load(options.path)
    except (IsingkitError, PermissionError, MemoryError):
        raise
    except Exception as error:  # readers have many kinds of errors for damage
        problem = f"it cannot be read as {kind} ({error})"
        raise TableFileError(path=options.path, problem=problem) from None
    return read_matrix(options, matrix.T if options.transpose else matrix)


def _sparse(path: Path) -> Any:
    """scipy.sparse.load_npz, but that no place outside the matrix is believed: scipy does, and
    reads and writes there.
    """
    with open(path, "rb") as file:
        arrays = arrays_in(file)
    kind = arrays["format"].item()
    kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
    n_rows, n_columns = (int(length) for length in arrays["shape"])
    shape = (n_rows, n_columns)
    require_memory(_PLACE * (n_rows + n_columns), n_spins=n_columns, n_samples=n_rows)
    data = arrays["data"]
    if data.dtype.kind not in "biuf":
        raise ValueError("its values are no numbers")
    match kind:
        case "csr" | "csc" | "bsr":
            make = getattr(scipy.sparse, f"{kind}_matrix")
            matrix = make((data, arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
        case "coo":
            matrix = scipy.sparse.coo_matrix((data, (arrays["row"], arrays["col"])), shape=shape)
        case "dia":
            matrix = scipy.sparse.dia_matrix((data, arrays["offsets"]), shape=shape)
        case _:
            raise ValueError(f"the format '{kind}' is unknown")
    return matrix


class _Lines(io.RawIOBase):
    """The text of a Matrix Market file, as scipy's reader can bear it. No line is without end: a
    small archive may hold one. The last one ends, too: scipy looks for its end beyond the text.
    And nothing but numbers comes after the header: what follows a number is passed over.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._length = 0  # of the line that is being read
        self._has_begun = False  # whether the header, lines that begin with %, is over

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        fresh: bytes = self._stream.read(_CHUNK if size < 0 else size)
        if not fresh and self._length:
            fresh = b"\n"
        self._require_numbers(fresh)
        _, end, after = fresh.rpartition(b"\n")
        self._length = len(after) if end else self._length + len(fresh)
        if self._length > _LONGEST:
            raise ValueError(f"a line takes more than {_LONGEST >> 20} MiB")
        return fresh

    def _require_numbers(self, fresh: bytes) -> None:
        """Refuse a table that holds anything else."""
        body = fresh
        if not self._has_begun:
            first = _BODY.search(fresh if self._length else b"\n" + fresh)
            self._has_begun = first is not None
            body = b"" if first is None else first.string[first.start() :]
        if others := body.translate(None, _OF_NUMBERS):
            shown = body[body.index(others[:1]) :][:20].decode("ascii", "replace")
            raise ValueError(f"it holds {shown!r} where numbers were expected")


def _matrix_market(path: Path) -> Any:
    """What the header says is there must have room before it is read."""
    with _opened(path) as stream:
        n_rows, n_columns, n_values, kind, _, _ = scipy.io.mminfo(_Lines(stream))
    if min(n_rows, n_columns, n_values) < 0:
        raise ValueError("a size below 0")
    places = _PLACE * (n_rows + n_columns) if kind == "coordinate" else 0
    require_memory(places + _VALUE * n_values, n_spins=n_columns, n_samples=n_rows)
    with _opened(path) as stream:
        return scipy.io.mmread(_Lines(stream))


def _opened(path: Path) -> Any:
    """Its bytes, inflated where they were compressed."""
    is_gzip = path.suffix.lower() == COMPRESSED
    return gzip.open(path, "rb") if is_gzip else open(path, "rb")


def _loaded(path: Path) -> NDArray[Any]:
    """The one table of a file."""
    with open(path, "rb") as file:
        if file.read(2) == b"PK":  # of archives
            tables = list(arrays_in(file).values())
        else:
            file.seek(0)
            array_header(file, path.stat().st_size)  # which must be true
            tables = [np.load(path, allow_pickle=False)]
    found = [table for table in tables if table.ndim == 2]
    if len(found) != 1:
        problem = f"it holds {len(found)} tables where one was expected"
        raise TableFileError(path=path, problem=problem)
    return found[0]


def read_h5ad(options: ReadOptions) -> Reading:
    """Cells and genes as anndata keeps them: `X`, with genes (`var`) for columns."""
    try:
        import anndata
    except ImportError:
        problem = "reading .h5ad needs anndata: pip install anndata"
        raise TableFileError(path=options.path, problem=problem) from None
    try:
        data = anndata.read_h5ad(options.path)
        if scipy.sparse.issparse(data.X):
            data.X.check_format(full_check=True)  # places outside would crash
    except Exception as error:  # of h5py and of anndata
        problem = f"it cannot be read as .h5ad ({error})"
        raise TableFileError(path=options.path, problem=problem) from None
    if data.X is None:
        raise TableFileError(path=options.path, problem="it has no matrix X")
    if options.transpose:
        return read_matrix(options, data.X.T, list(data.obs_names))
    return read_matrix(options, data.X, list(data.var_names))


# Texts with variables in rows, or with blanks between cells


@dataclass(frozen=True, slots=True)
class _Digits:
    """Values 0 and 1 of one variable, as bits, and where there are any."""

    bits: NDArray[np.uint8]
    present: NDArray[np.uint8] | None  # None: nothing is missing
    n_samples: int


@dataclass(frozen=True, slots=True)
class _Variable:
    """One line of a text: a name, and the values of all samples."""

    name: str
    values: Any  # _Digits; else an array of float64, NaN where missing; or of texts, or None

    @property
    def n_samples(self) -> int:
        values = self.values
        return values.n_samples if isinstance(values, _Digits) else len(values)

    @property
    def n_bytes(self) -> int:
        values = self.values
        if not isinstance(values, _Digits):
            return int(values.nbytes)
        return values.bits.nbytes + (0 if values.present is None else values.present.nbytes)

    def some(self, start: int, stop: int) -> NDArray[Any]:
        """Values of some samples: int8, or float64 where some are missing; or as they are."""
        values = self.values
        if not isinstance(values, _Digits):
            return np.asarray(values[start:stop])
        bits = _cut(values.bits, start, stop)
        if values.present is None:
            return bits
        return np.where(_cut(values.present, start, stop), bits.astype(np.float64), np.nan)


@dataclass(frozen=True, slots=True)
class _Variables:
    """What `read_matrix` asks of a matrix, (n_samples, n_variables), in bits where it can be."""

    variables: Sequence[_Variable]

    @property
    def shape(self) -> tuple[int, int]:
        return self.variables[0].n_samples, len(self.variables)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(self.shape[0])
        return np.stack([one.some(start, stop) for one in self.variables], axis=1)


def read_any_text(options: ReadOptions) -> Reading:
    """Text whose cells stand between tabs, commas, semicolons or blanks."""
    with _broken_texts(options.path):
        lines = _first_lines(options)
    first = lines[0].strip() if lines else b""
    separator = next((one for one in "\t,;" if one.encode() in first), " ")
    if options.transpose:
        return read_transposed_text(options, separator)
    if separator != " ":
        return read_text(options, separators=_ANY)
    is_aligned = first.split() != first.split(b" ") or _are_padded(lines)
    return read_text(options, separators=" " if is_aligned else _ANY, is_aligned=is_aligned)


def _first_lines(options: ReadOptions) -> list[bytes]:
    """A few lines that hold something."""
    lines = []
    n_bytes = 0
    for line in _lines(options):
        lines.append(line)
        n_bytes += len(line)
        if n_bytes > _CHUNK and len(lines) > 1:
            break
    return lines


def _are_padded(lines: Sequence[bytes]) -> bool:
    """Whether lines have as many cells each only where several blanks count as one."""
    return not _are_even([line.split(b" ") for line in lines]) and _are_even(
        [line.split() for line in lines]
    )


def _are_even(rows: Sequence[list[bytes]]) -> bool:
    """Whether all rows have as many cells as the first, or all one more: names of rows."""
    widths = {len(row) for row in rows[1:]}
    return len(widths) == 1 and widths <= {len(rows[0]), len(rows[0]) + 1}


def read_transposed_text(options: ReadOptions, separator: str) -> Reading:
    """Text with one line a variable, whose name comes first, if it has one, and one column a
    sample.

    A line above that names samples is passed over. Of values 0 and 1 only bits are kept.
    """
    variables: list[_Variable] = []
    there = memory_there()
    n_bytes = 0
    with _broken_texts(options.path):
        are_named = _are_named(_variable_lines(options, separator), separator)
        for place, line in enumerate(_variable_lines(options, separator)):
            name = b"" if are_named else f"x{place}{separator}".encode()
            variables.append(_variable(name + line, separator))
            n_bytes += variables[-1].n_bytes + _LINE
            if there is not None and n_bytes > there:
                shape = {"n_spins": len(variables), "n_samples": variables[-1].n_samples}
                require_memory(2 * n_bytes, **shape)
    if not variables:
        raise TableFileError(path=options.path, problem="it is empty")
    return _read_variables(options, variables)


def _read_variables(options: ReadOptions, variables: Sequence[_Variable]) -> Reading:
    _require_even(options.path, {one.n_samples for one in variables})
    names = tuple(one.name for one in variables)
    return read_matrix(options, _Variables(variables), names)


def _variable_lines(options: ReadOptions, separator: str) -> Iterator[bytes]:
    """Lines of variables, without a separator that stands at the end of every line."""
    end = separator.encode()
    ends_with_it = all(line.endswith(end) for line in _lines(options))
    for number, line in enumerate(_lines(options)):
        cells = b" ".join(line.split()) if separator == " " else line
        cells = cells.removesuffix(end) if ends_with_it else cells
        if number > 0 or not _are_titles(_cells(cells, separator)):
            yield cells


def _cut(bits: NDArray[np.uint8], start: int, stop: int) -> NDArray[np.int8]:
    """Bits start to stop, as 0 and 1."""
    first = start // 8
    some = np.unpackbits(bits[first : -(-stop // 8)], bitorder="little")
    return some[start - 8 * first : stop - 8 * first].view(np.int8)


def _require_even(path: Path, sizes: set[int]) -> None:
    """Refuse lines of different lengths."""
    if len(sizes) != 1:
        raise TableFileError(path=path, problem="its lines have different numbers of cells")


@contextmanager
def _broken_texts(path: Path) -> Iterator[None]:
    """Say in one sentence what damage readers of text come upon."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        problem = f"it cannot be read as text in columns ({error})"
        raise TableFileError(path=path, problem=problem) from None


def _are_named(lines: Iterator[bytes], separator: str) -> bool:
    """Whether variables have names, or go by their places.

    They have none where all lines begin with numbers, of which one is not whole or all are values
    of other cells of the first line: numbers that name variables are whole, and other ones.
    """
    numbers = set()
    values: set[float | None] = set()
    for line in lines:
        first, _, others = line.decode("utf-8").partition(separator)
        number = _number(first.strip())
        if number is None:
            return True
        values = values or {_number(cell) for cell in _cells(others.encode(), separator)}
        numbers.add(number)
    numbers = {number for number in numbers if number == number}
    are_whole = all(number.is_integer() for number in numbers)
    return are_whole and not numbers <= values


def _lines(options: ReadOptions) -> Iterator[bytes]:
    """Lines that hold something."""
    with _opened(options.path) as file:
        while line := file.readline(_LONGEST):
            if len(line) == _LONGEST:
                problem = f"a line takes more than {_LONGEST >> 20} MiB"
                raise TableFileError(path=options.path, problem=problem)
            kept = line.rstrip(b"\r\n").removeprefix(b"\xef\xbb\xbf")
            if kept.strip():
                yield kept


def _cells(line: bytes, separator: str) -> list[str]:
    (cells,) = cells_of([line.decode("utf-8")], separator)
    return [cell.strip() for cell in cells]


def _are_titles(cells: list[str]) -> bool:
    """Whether a first line names samples: what comes after its first cell is no value, or counts
    them.
    """
    names = cells[1:]
    counted = ([str(place + first) for place in range(len(names))] for first in (0, 1))
    is_counted = len(names) > 2 and names in counted
    return is_counted or any(_number(name) is None for name in names)


def _number(text: str) -> float | None:
    """None for what is neither a number nor missing."""
    if text.casefold() in MISSING_TEXTS:
        return np.nan
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _variable(line: bytes, separator: str) -> _Variable:
    name, _, rest = line.partition(separator.encode())
    digits = np.frombuffer(rest, dtype=np.uint8)
    values = digits[::2] - np.uint8(ord("0"))
    is_plain = b'"' not in name and len(digits) % 2 == 1
    if is_plain and (values <= 1).all() and (digits[1::2] == ord(separator)).all():
        bits = np.packbits(values, bitorder="little")
        return _Variable(name.decode("utf-8").strip(), _Digits(bits, None, len(values)))
    title, *cells = _cells(line, separator)
    return _of_cells(title, cells)


def _of_cells(title: str, cells: Sequence[str]) -> _Variable:
    numbers = [_number(cell) for cell in cells]
    if all(number is not None for number in numbers):
        return _Variable(title, _of_numbers(np.array(numbers, dtype=np.float64)))
    texts = [None if cell.casefold() in MISSING_TEXTS else cell for cell in cells]
    return _Variable(title, np.array(texts, dtype=object))


def _of_numbers(values: NDArray[np.float64]) -> Any:
    """Bits of zeros, ones and gaps; else the numbers."""
    there = ~np.isnan(values)
    if not np.isin(values[there], (0.0, 1.0)).all():
        return values
    bits = np.packbits(values == 1, bitorder="little")
    return _Digits(bits, np.packbits(there, bitorder="little"), len(values))
