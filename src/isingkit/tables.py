"""Reading: a file of two-valued columns as packed spins, read in chunks, so that only the bits are ever in memory as a whole."""

import csv
import gzip
import io
import math
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from isingkit._kernels import tables as kernels
from isingkit.exceptions import EmptyTableError, InfiniteValueError, TableFileError
from isingkit.packing import PackedSpins, Words, as_asked, bits
from isingkit.spins import (
    MISSING_WORDS,
    Coding,
    Column,
    Table,
    arrow_values,
    as_weights,
    check_missing,
    codings_of,
    column_of,
    encoded,
    merged,
    require_matrix,
    require_settings,
    require_table,
    survey,
    warn_of_constants,
)

SEPARATORS = {".csv": ",", ".tsv": "\t"}
_CHUNK = 1 << 22  # bytes of text, and codes of spins, in memory at a time
_HEAD = 1 << 16  # bytes looked at to tell names of columns from values
_PART = 1 << 19  # numbers of an array or a Parquet file in memory at a time
_LONGEST = 1 << 17  # bytes of a cell, as for the csv module: what is longer is a quote that was never closed
_MOST_VALUES = 20  # of a column that turns out to be no spin: enough for the message
_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError, csv.Error)
_NO_ARRAY = (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a file held."""

    packed: PackedSpins  # with the mapping of its columns
    weights: NDArray[np.float64] | None  # (n_samples,), where a column of weights was asked for


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
    """Packed spins, and weights of rows, of a file: CSV or TSV (also .gz, or "-" for standard input), Parquet, NPY, NPZ or .spins.

    Spins are those that `as_spins` makes of the same table. Cells of columns that are not used are not looked at.

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
    asked = _Asked(Path(path), tuple(columns), tuple(drop), weights, binarize, missing, progress)
    kinds = [suffix.lower() for suffix in asked.path.suffixes]
    kind = kinds[-2] if len(kinds) > 1 and kinds[-1] == ".gz" else kinds[-1] if kinds else ""
    if str(path) == "-":
        return _read_text(asked, ",")
    if kind in SEPARATORS:
        return _read_text(asked, SEPARATORS[kind])
    if kind == ".spins":
        return _read_packed(asked)
    if kind in (".npy", ".npz"):
        return _read_array(asked)
    if kind == ".parquet":
        return _read_parquet(asked)
    raise TableFileError(path=asked.path, problem="its name ends in none of .csv, .tsv (also .gz), .parquet, .npy, .npz and .spins")


def listed(names: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (names or "").split(",") if name.strip()]


# What all kinds of file share


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the caller wants of a file."""

    path: Path
    columns: tuple[str, ...]
    drop: tuple[str, ...]
    weights: str | None
    binarize: float | None
    missing: str
    progress: bool

    def chosen(self, names: Sequence[str]) -> list[int]:
        """Places of the columns that become spins."""
        places = {name: place for place, name in reversed(list(enumerate(names)))}  # the first of equal names
        unknown = [name for name in (self.weights, *self.columns, *self.drop) if name is not None and name not in places]
        if unknown:
            there_are = ", ".join(names[:20]) or "no names"
            raise TableFileError(path=None, problem=f"there is no column '{unknown[0]}'; there are {there_are}")
        left_out = {*self.drop, self.weights}
        if self.columns:
            chosen = [places[name] for name in self.columns if name not in left_out]
        else:
            chosen = [place for place, name in enumerate(names) if name not in left_out]
        require_table([names[place] for place in chosen], len(chosen))
        return chosen


class _Rows:
    """Rows of spins as they come, packed 64 at a time; incomplete ones are left out where that is asked for."""

    def __init__(self, names: Sequence[str], missing: str) -> None:
        self.names, self.missing = tuple(names), missing
        self.n_rows = self.n_kept = 0
        self.n_missing = np.zeros(len(names), dtype=np.int64)
        self._words: list[Words] = []
        self._present: list[Words | None] = []  # beside _words; None where nothing is missing
        self._weights: list[NDArray[np.float64]] = []
        self._rest: NDArray[np.int8] = np.empty((0, len(names)), dtype=np.int8)  # rows that fill no word yet

    def add(self, codes: NDArray[np.int8], weights: NDArray[Any] | None) -> None:
        """More rows: -1, +1 and 0 where missing, (n_rows, n_spins)."""
        self.n_rows += len(codes)
        is_missing = codes == 0
        if is_missing.any():
            self.n_missing += is_missing.sum(axis=0)
            if self.missing == "drop":
                kept = ~is_missing.any(axis=1)
                codes, weights = codes[kept], None if weights is None else weights[kept]
        self.n_kept += len(codes)
        if weights is not None:
            self._weights.append(np.array(weights, dtype=np.float64))
        if len(self._rest):
            codes = np.concatenate([self._rest, codes])
        n_whole = len(codes) // 64 * 64
        self._pack(codes[:n_whole])
        self._rest = codes[n_whole:].copy()

    def packed(self, codings: Sequence[Coding], flipped: Sequence[bool] = ()) -> PackedSpins:
        """All rows; codes of flipped columns stand for the opposite spin."""
        if self.n_kept == 0:
            raise EmptyTableError(n_samples=0, n_spins=len(self.names), dropped=self.n_rows)
        self._pack(self._rest)
        every_row: Words = np.full(-(-self.n_kept // 64), 2**64 - 1, dtype=np.uint64)
        every_row[-1] >>= np.uint64(-self.n_kept % 64)
        present = None
        if any(piece is not None for piece in self._present):
            present = _side_by_side(self._present, [piece.shape[1] for piece in self._words], len(self.names)) & every_row
        words = _side_by_side(self._words, [piece.shape[1] for piece in self._words], len(self.names))
        for j in np.flatnonzero(flipped):
            words[j] ^= every_row if present is None else present[j]
        is_constant = ~words.any(axis=1) | (words == (every_row if present is None else present)).all(axis=1)
        warn_of_constants(self.names, is_constant)
        return PackedSpins(words, self.n_kept, self.names, present, tuple(codings))

    def weights(self) -> NDArray[np.float64] | None:
        """Weights of the rows that were kept, where there are any."""
        return as_weights(np.concatenate(self._weights), self.n_kept) if self._weights else None

    def _pack(self, codes: NDArray[np.int8]) -> None:
        if not len(codes):
            return
        self._words.append(bits(codes))
        has_gaps = self.missing == "pairwise" and not codes.all()
        self._present.append(bits((codes != 0).view(np.int8)) if has_gaps else None)


def _side_by_side(pieces: list[Any], widths: Sequence[int], n_spins: int) -> Words:
    """One array of pieces of words, which are let go one by one as it fills: (n_spins, sum of widths); None is all ones."""
    words: Words = np.empty((n_spins, sum(widths)), dtype=np.uint64)
    start = 0
    for width in widths:
        piece = pieces.pop(0)
        words[:, start : start + width] = 2**64 - 1 if piece is None else piece
        start += width
    return words


def _bar(asked: _Asked, **options: Any) -> Any:
    return tqdm(desc="reading", unit_scale=True, leave=False, delay=1, disable=not asked.progress, **options)


# Text in columns


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the first rows of a text tell."""

    separator: str
    names: tuple[str, ...]
    has_titles: bool
    start: int  # bytes before the first row of values
    n_lines: int  # lines before it


def _read_text(asked: _Asked, separator: str) -> Reading:
    try:
        with _opened(asked) as read:
            head, is_all = _head(read)
            layout = _layout(head, is_all, separator, asked.path)
            cells = _Cells(layout, asked)
            for fresh in _chunks(head[layout.start :], read):
                cells.read(fresh)
    except _BROKEN as error:
        raise TableFileError(path=asked.path, problem=f"it cannot be read as text in columns ({error})") from None
    return cells.reading()


@contextmanager
def _opened(asked: _Asked) -> Iterator[Callable[[int], bytes]]:
    """A way to the next bytes of a text, which moves the progress bar on."""
    with ExitStack() as stack:
        is_piped = str(asked.path) == "-"
        raw: IO[bytes] = sys.stdin.buffer if is_piped else stack.enter_context(open(asked.path, "rb"))
        is_gzip = asked.path.suffix.lower() == ".gz"
        stream: Any = stack.enter_context(gzip.GzipFile(fileobj=raw)) if is_gzip else raw
        size = None if is_piped else asked.path.stat().st_size or None
        bar = stack.enter_context(_bar(asked, total=size, unit="B"))

        def read(n_bytes: int) -> bytes:
            fresh: bytes = stream.read(n_bytes)
            bar.update(raw.tell() - bar.n if is_gzip else len(fresh))
            return fresh

        yield read


def _head(read: Callable[[int], bytes]) -> tuple[bytes, bool]:
    """The first bytes of a text, a few rows at least, and whether they are all."""
    head = b""
    while len(head) < _HEAD or head.count(b"\n") + head.count(b"\r") < 3:
        fresh = read(_HEAD)
        if not fresh:
            return head, True
        head += fresh
    return head, False


def _chunks(head: bytes, read: Callable[[int], bytes]) -> Iterator[bytes]:
    """All bytes, a chunk at a time, and an end of the last line."""
    for start in range(0, len(head), _CHUNK):
        yield head[start : start + _CHUNK]
    while fresh := read(_CHUNK):
        yield fresh
    yield b"\n"


def _layout(head: bytes, is_all: bool, separator: str, path: Path) -> _Layout:
    mark = b"\xef\xbb\xbf" if head.startswith(b"\xef\xbb\xbf") else b""
    whole = len(head) if is_all else max(head.rfind(b"\n"), head.rfind(b"\r")) + 1
    lines = list(io.StringIO(head[len(mark) : whole].decode(), newline=""))
    if separator == "," and lines and "," not in lines[0]:
        separator = next((other for other in ";\t" if other in lines[0]), separator)
    rows, n_lines = [], 0
    reader = csv.reader(lines, delimiter=separator)
    for row in reader:
        if row:
            n_lines = n_lines or reader.line_num
            rows.append(row)
    if not rows:
        raise TableFileError(path=path, problem="it is empty")
    if len(rows) > 2 and not is_all:  # the last may go on
        rows.pop()
    n_columns = len(rows[0])
    texts = list(zip(*(row for row in rows if len(row) == n_columns), strict=True))
    if not _has_titles(texts):
        return _Layout(separator, tuple(f"x{k}" for k in range(n_columns)), False, len(mark), 0)
    names = tuple(column[0].strip() or f"column {k + 1}" for k, column in enumerate(texts))
    return _Layout(separator, names, True, len(mark) + len("".join(lines[:n_lines]).encode()), n_lines)


def _has_titles(columns: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names: texts that are no values, or the numbers of the columns."""
    first = [column[0].strip() for column in columns]
    numbered = [[str(k + start) for k in range(len(first))] for start in (0, 1)]
    if len(first) > 2 and first in numbered:
        return True
    return any(first) and all(not text or _is_title(column) for text, column in zip(first, columns, strict=True))


def _is_title(column: Sequence[str]) -> bool:
    """Whether the first text is no number and is not found below: a name, then, and no value."""
    first = column[0].strip()
    return _number(first) is None and first.casefold() not in MISSING_WORDS and first not in {text.strip() for text in column[1:]}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


class _Values:
    """The values of one column as they turn up, and the codes they get: -1 the first and +1 the second, or by a threshold."""

    def __init__(self, threshold: float | None) -> None:
        self.threshold = threshold
        self.texts: dict[str, int] = {}
        self.numbers: dict[float, int] = {}
        self.is_infinite = False
        self.is_text = False  # as soon as one is no number: then "1" and "1.0" are two

    def code(self, text: str) -> int:
        """The code of a text, which may be new."""
        number = _number(text)
        self.is_text |= number is None
        code = self.texts.get(text) or (None if number is None else self.numbers.get(number))
        if code is None:
            code = self._new_code(number)
        self.texts[text] = code
        if number is not None:
            self.numbers[number] = code
        return code

    def number_code(self, number: float) -> int:
        """The code of a number among many."""
        self.is_infinite |= math.isinf(number)
        return 1 if number > self.threshold else -1  # type: ignore[operator]

    def _new_code(self, number: float | None) -> int:
        if self.threshold is not None and number is not None and not self.is_text:
            return self.number_code(number)
        self.is_infinite |= number is not None and math.isinf(number)
        return -next(iter(self.texts.values()), 1)

    @property
    def distinct(self) -> dict[Any, int]:
        """Codes by value."""
        return self.texts if self.is_text else self.numbers

    @property
    def kind(self) -> int:
        """What cells of this column are to the kernel from now on."""
        by_threshold = self.threshold is not None and not self.is_text
        if by_threshold and len(self.texts) > 1:  # a text that turns up later would be a third
            return kernels.NUMBER
        return kernels.CROWDED if len(self.distinct) >= _MOST_VALUES else kernels.SPIN

    @property
    def has_infinity(self) -> bool:
        """Whether one of the numbers is infinite; what is crowded is refused for that, and may hold texts not looked at."""
        return self.is_infinite and not self.is_text and self.kind != kernels.CROWDED

    def is_flipped(self, coding: Coding) -> bool:
        """Whether codes are the opposite of what the coding says."""
        low, high = coding
        return self.distinct.get(low) == 1 or self.distinct.get(high) == -1


@dataclass(slots=True)
class _Tokens:
    """Cells of more than one byte that were explained: a hash table for the kernel."""

    slots: NDArray[np.int64] = field(default_factory=lambda: np.zeros(64, dtype=np.int64))
    entries: NDArray[np.int64] = field(default_factory=lambda: np.zeros((32, 4), dtype=np.int64))
    arena: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1024, dtype=np.uint8))
    n_entries: int = 0
    n_bytes: int = 0

    def add(self, column: int, token: bytes, code: int) -> None:
        """Remember what a token means in a column."""
        if self.n_bytes + len(token) > len(self.arena):
            self.arena = np.concatenate([self.arena, np.zeros(len(self.arena) + len(token), dtype=np.uint8)])
        if self.n_entries == len(self.entries):
            self.entries = np.concatenate([self.entries, np.zeros_like(self.entries)])
            self.slots = np.zeros(2 * len(self.slots), dtype=np.int64)
            for entry in range(self.n_entries):
                kernels.insert(self.slots, self.entries, self.arena, entry)
        self.arena[self.n_bytes : self.n_bytes + len(token)] = np.frombuffer(token, dtype=np.uint8)
        self.entries[self.n_entries] = column, self.n_bytes, len(token), code
        kernels.insert(self.slots, self.entries, self.arena, self.n_entries)
        self.n_entries, self.n_bytes = self.n_entries + 1, self.n_bytes + len(token)


class _Cells:
    """Rows of a text as they come. The kernel asks about each token that it has not met in a column."""

    def __init__(self, layout: _Layout, asked: _Asked) -> None:
        chosen = asked.chosen(layout.names)
        self.layout, self.asked, self.chosen = layout, asked, chosen
        self.rows = _Rows([layout.names[place] for place in chosen], asked.missing)
        self.values = {place: _Values(asked.binarize) for place in chosen}
        self.kinds = np.full(len(layout.names), kernels.SKIPPED)
        self.kinds[chosen] = kernels.SPIN
        if asked.weights is not None:
            self.kinds[layout.names.index(asked.weights)] = kernels.WEIGHT
        self.places = np.zeros(len(layout.names), dtype=np.int64)
        self.places[chosen] = np.arange(len(chosen))
        self.known = np.full((len(layout.names), 256), kernels.UNKNOWN, dtype=np.int8)
        self.tokens = _Tokens()
        for word in MISSING_WORDS:
            self.tokens.add(kernels.EVERYWHERE, word.encode(), kernels.MISSING)
        self.state = np.zeros(6, dtype=np.int64)
        self.state[kernels.LINE] = layout.n_lines
        self.answer = np.zeros(2)
        self.codes = np.zeros((max(1, _CHUNK // len(chosen) // 64) * 64, len(chosen)), dtype=np.int8)
        self.weights = np.zeros(len(self.codes))
        self.rest = b""  # a cell that has not ended

    def read(self, fresh: bytes) -> None:
        """The next bytes of the text."""
        text = self.rest + fresh
        separator, state = ord(self.layout.separator), self.state
        threshold = np.nan if self.asked.binarize is None else float(self.asked.binarize)
        state[kernels.POSITION] = 0
        view = np.frombuffer(text, dtype=np.uint8)
        while True:
            tokens = self.tokens
            status = kernels.read_cells(
                view, separator, state, self.kinds, self.places, self.known, tokens.slots, tokens.entries, tokens.arena, threshold,
                self.answer, self.codes, self.weights,
            )  # fmt: skip
            if status == kernels.MORE:
                break
            if status == kernels.ASK:
                self._explain(text[state[kernels.POSITION] : state[kernels.END]])
            elif status == kernels.FULL:
                self._flush()
            else:
                problem = f"line {state[kernels.LINE]} has {state[kernels.COLUMN]} cells where the first has {len(self.kinds)}"
                raise TableFileError(path=self.asked.path, problem=problem)
        self.rest = text[state[kernels.POSITION] :]
        if len(self.rest) > _LONGEST:
            self._refuse_open_cell()

    def reading(self) -> Reading:
        """What all the text held."""
        if self.rest:
            self._refuse_open_cell()
        self._flush()
        rows, binarize = self.rows, self.asked.binarize
        if rows.n_rows == 0:
            raise TableFileError(path=self.asked.path, problem="it has names of columns but no rows")
        values = [self.values[place] for place in self.chosen]
        infinite = [name for name, one in zip(rows.names, values, strict=True) if one.has_infinity]
        if infinite:
            raise InfiniteValueError(columns=infinite)
        counts = rows.n_missing.tolist()
        columns = [column_of(name, one.distinct, count) for name, one, count in zip(rows.names, values, counts, strict=True)]
        check_missing(columns, self.asked.missing, rows.n_rows, to_learn=True)
        codings = codings_of(columns, binarize)
        packed = rows.packed(codings, [one.is_flipped(coding) for one, coding in zip(values, codings, strict=True)])
        return Reading(packed, rows.weights())

    def _flush(self) -> None:
        n_rows = self.state[kernels.ROW]
        self.rows.add(self.codes[:n_rows], None if self.asked.weights is None else self.weights[:n_rows])
        self.state[kernels.ROW] = 0

    def _explain(self, token: bytes) -> None:
        """Tell the kernel what a cell means, once (numbers) or for good (all else)."""
        column = int(self.state[kernels.COLUMN])
        text = self._text(token)
        if self.kinds[column] == kernels.WEIGHT:
            self.answer[:] = 1, self._weight(text)
            return
        values, number = self.values[column], _number(text)
        if text.casefold() in MISSING_WORDS:
            code = kernels.MISSING
        elif self.kinds[column] == kernels.NUMBER and number is not None:
            self.answer[:] = 1, values.number_code(number)
            return
        else:
            code = values.code(text)
            self.kinds[column] = values.kind
        if len(token) == 1:
            self.known[column, token[0]] = code
        else:
            self.tokens.add(column, token, code)

    def _weight(self, text: str) -> float:
        number = np.nan if text.casefold() in MISSING_WORDS else _number(text)
        if number is None:
            raise TableFileError(
                path=None, problem=f"column '{self.asked.weights}' should hold numbers, but holds texts such as '{text}'"
            )
        return number

    def _text(self, token: bytes) -> str:
        text = token.decode()
        if text.startswith('"'):
            text = next(csv.reader([text], delimiter=self.layout.separator))[0]
        return text.strip()

    def _refuse_open_cell(self) -> None:
        problem = f"a cell that starts in line {self.state[kernels.LINE] + 1} does not end: is a quote never closed?"
        raise TableFileError(path=self.asked.path, problem=problem)


# Arrays and Parquet: two passes over their parts


@dataclass(frozen=True, slots=True)
class _Parts:
    """A table that is read part by part, as often as one likes."""

    names: tuple[str, ...]
    n_rows: int
    parts: Callable[[], Iterable[Any]]
    select: Callable[[Any, list[int]], Any]  # some columns of a part, as `survey` takes them
    column: Callable[[Any, int], NDArray[Any]]  # one column of a part


def _read_parts(source: _Parts, asked: _Asked) -> Reading:
    chosen = asked.chosen(source.names)
    names = [source.names[place] for place in chosen]
    require_table(names, source.n_rows)
    place = None if asked.weights is None else source.names.index(asked.weights)
    known: list[Column] | None = None
    with _bar(asked, total=2 * source.n_rows, unit=" rows") as bar:
        for part in source.parts():
            found = survey(source.select(part, chosen), asked.binarize)
            known = found if known is None else merged(known, found)
            bar.update(len(part))
        check_missing(known or [], asked.missing, source.n_rows, to_learn=True)
        codings = codings_of(known or [], asked.binarize)
        rows = _Rows(names, asked.missing)
        for part in source.parts():
            weights = None if place is None else _numbers(source.column(part, place), source.names[place])
            rows.add(encoded(source.select(part, chosen), codings, asked.binarize), weights)
            bar.update(len(part))
    return Reading(rows.packed(codings), rows.weights())


def _numbers(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.dtype.kind not in "biuf":
        raise TableFileError(path=None, problem=f"column '{name}' should hold numbers, but holds texts such as '{values[0]}'")
    return values


def _read_parquet(asked: _Asked) -> Reading:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise TableFileError(path=asked.path, problem="reading Parquet needs pyarrow: pip install 'isingkit[io]'") from None
    try:
        file = parquet.ParquetFile(asked.path)
    except Exception as error:  # pyarrow's own kinds, which we do not name
        raise _no_parquet(asked, error) from None
    with file:
        names = tuple(file.schema_arrow.names)
        used = [names[place] for place in asked.chosen(names)] + ([asked.weights] if asked.weights is not None else [])

        def parts() -> Iterator[Any]:
            try:
                for batch in file.iter_batches(batch_size=max(64, _PART // len(used)), columns=used):
                    yield pyarrow.Table.from_batches([batch])
            except Exception as error:
                raise _no_parquet(asked, error) from None

        source = _Parts(
            names, file.metadata.num_rows, parts,
            lambda part, places: part.select([names[place] for place in places]),
            lambda part, place: arrow_values(part.column(names[place])),
        )  # fmt: skip
        return _read_parts(source, asked)


def _no_parquet(asked: _Asked, error: Exception) -> TableFileError:
    return TableFileError(path=asked.path, problem=f"it cannot be read as Parquet ({error})")


def _read_array(asked: _Asked) -> Reading:
    try:
        member = _member(asked.path) if zipfile.is_zipfile(asked.path) else None
        with _stored(asked.path, member) as stream:
            shape, _, _ = _array_header(stream)
    except TableFileError:
        raise
    except _NO_ARRAY:
        raise _no_array(asked) from None
    require_matrix(shape, "array")

    def parts() -> Iterator[NDArray[Any]]:
        try:
            yield from _array_parts(asked.path, member)
        except _NO_ARRAY:
            raise _no_array(asked) from None

    names = tuple(f"x{k}" for k in range(shape[1]))
    source = _Parts(
        names, shape[0], parts,
        lambda part, places: Table(tuple(names[place] for place in places), part if len(places) == shape[1] else part[:, places]),
        lambda part, place: part[:, place],
    )  # fmt: skip
    return _read_parts(source, asked)


def _no_array(asked: _Asked) -> TableFileError:
    return TableFileError(path=asked.path, problem="it cannot be read as numbers")


def _member(path: Path) -> str:
    """The one table of an archive."""
    with zipfile.ZipFile(path) as archive:
        members = []
        for name in archive.namelist():
            with archive.open(name) as stream:
                members += [name] if len(_array_header(stream)[0]) == 2 else []
    if len(members) != 1:
        raise TableFileError(path=path, problem=f"it holds {len(members)} tables where one was expected")
    return members[0]


@contextmanager
def _stored(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    """The bytes of an array in a file of its own, or in an archive."""
    if member is None:
        with open(path, "rb") as stream:
            yield stream
    else:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            yield stream


def _array_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns rather than rows lie in one piece, and kind of numbers."""
    form = np.lib.format
    read = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}[form.read_magic(stream)]
    shape, is_by_column, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("objects are not read")
    return shape, is_by_column, dtype


def _array_parts(path: Path, member: str | None) -> Iterator[NDArray[Any]]:
    with _stored(path, member) as stream:
        (n_rows, n_columns), is_by_column, dtype = _array_header(stream)
        step = max(64, _PART // max(1, n_columns))
        starts = range(0, n_rows, step)
        if is_by_column:
            loaded = np.load(path, mmap_mode="r")
            array = loaded if member is None else loaded[member.removesuffix(".npy")]
            yield from (np.ascontiguousarray(array[start : start + step]) for start in starts)
            return
        for start in starts:
            n_here = min(step, n_rows - start)
            data = stream.read(n_here * n_columns * dtype.itemsize)
            yield np.frombuffer(data, dtype=dtype).reshape(n_here, n_columns)


def _read_packed(asked: _Asked) -> Reading:
    packed = PackedSpins.load(asked.path)
    chosen = asked.chosen(packed.names)
    if asked.weights is not None:
        raise TableFileError(path=None, problem="packed spins have no column of numbers")
    if chosen != list(range(packed.n_spins)):
        packed = packed[:, chosen]
    return Reading(as_asked(packed, asked.missing)[0], None)
