"""Text in columns, read in chunks: a kernel walks over the bytes and asks about each cell that it
has not met.
"""

import csv
import gzip
import math
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from isingkit._kernels import tables as kernels
from isingkit.arrays import IntArray
from isingkit.exceptions import InfiniteValueError, TableFileError
from isingkit.formats import COMPRESSED, STANDARD_INPUT
from isingkit.spins import (
    MISSING_TEXTS,
    Coding,
    Names,
    Table,
    check_missing,
    codings_of,
    column_of,
    folded,
    surveyed,
    threshold_of,
)
from isingkit.tables.layout import (
    Layout,
    as_utf8,
    cells_of,
    decoded,
    head_of,
    layout_of,
    number_of,
    without_padding,
)
from isingkit.tables.rows import (
    NOT_TICKED,
    Labels,
    Reading,
    ReadOptions,
    RowPacker,
    no_numbers,
    progress_bar,
)

_CHUNK = 1 << 22  # bytes of text, and codes of spins, in memory at a time
# bytes of a cell, as for the csv module: what is longer is a quote that was never closed
_LONGEST = 1 << 17
_MOST_VALUES = 20  # of a column that turns out to be no spin: enough for the message
_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError, csv.Error)


def read_text(options: ReadOptions, separators: str, is_aligned: bool = False) -> Reading:
    """Text with one row a sample; `is_aligned`: several blanks may stand between two cells."""
    try:
        with _opened(options) as read_bytes:
            read = as_utf8(read_bytes)
            if is_aligned:
                read = without_padding(read)
            head, is_all = head_of(read, options.path)
            layout = layout_of(head, is_all, separators, options.path)
            cells = _Cells(layout, options)
            for fresh in _chunks(head[layout.start :], read):
                cells.read(fresh)
    except _BROKEN as error:
        problem = f"it cannot be read as text in columns ({error})"
        raise TableFileError(path=options.path, problem=problem) from None
    return cells.reading()


@contextmanager
def _opened(options: ReadOptions) -> Iterator[Callable[[int], bytes]]:
    """A way to the next bytes of a text, which moves the progress bar on."""
    with ExitStack() as stack:
        is_piped = str(options.path) == STANDARD_INPUT
        if is_piped and sys.stdin is None:
            raise TableFileError(path=options.path, problem="standard input is closed")
        raw: IO[bytes]
        raw = sys.stdin.buffer if is_piped else stack.enter_context(open(options.path, "rb"))
        is_gzip = options.path.suffix.lower() == COMPRESSED
        stream: Any = stack.enter_context(gzip.GzipFile(fileobj=raw)) if is_gzip else raw
        size = None if is_piped else options.path.stat().st_size or None
        bar = stack.enter_context(progress_bar(options, total=size, unit="B"))

        def read(n_bytes: int) -> bytes:
            fresh: bytes = stream.read(n_bytes)
            bar.update(raw.tell() - bar.n if is_gzip else len(fresh))
            return fresh

        yield read


def _chunks(head: bytes, read: Callable[[int], bytes]) -> Iterator[bytes]:
    """All bytes, a chunk at a time, and an end of the last line."""
    for start in range(0, len(head), _CHUNK):
        yield head[start : start + _CHUNK]
    while fresh := read(_CHUNK):
        yield fresh
    yield b"\n"


def _with_numbers(table: Table, decimal_comma: bool, labels: Names) -> Table:
    """The same table of texts, with columns of numbers where all texts of a column are some, but
    for labels.
    """
    columns = []
    for name, column in zip(table.names, table.array.T, strict=True):
        if name in labels:
            columns.append(column)
            continue
        there = [text for text in column if text is not None]
        numbers = {text: number_of(text, decimal_comma) for text in there}
        is_number = None not in numbers.values()
        columns.append([numbers.get(text) for text in column] if is_number else column)
    return Table(table.names, np.array(columns, dtype=object).T)


class _Values:
    """The values of one column as they turn up, and the codes they get: -1 the first and +1 the
    second, or by a threshold.
    """

    def __init__(self, threshold: float | None, has_codes: bool) -> None:
        self.threshold = threshold
        self.has_codes = has_codes  # numbers that stand for missing values, to be asked about
        self.texts: dict[str, int] = {}
        self.numbers: dict[float, int] = {}
        self.is_infinite = False
        self.is_text = False  # as soon as one is no number: then "1" and "1.0" are two
        self.spellings: dict[str, int] = {}
        self.repeats = False  # whether values came again before there were too many of them

    def code(self, text: str, number: float | None) -> int:
        """The code of a text, perhaps of a number, which may be new."""
        self.is_text |= number is None
        code = self.texts.get(text) or self.spellings.get(folded(text))
        if code is None and number is not None:
            code = self.numbers.get(number)
        if code is None:
            code = self._new_code(number)
        self.texts[text] = code
        self.spellings[folded(text)] = code
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
        if by_threshold and self.has_codes:
            return kernels.SPIN
        if by_threshold and len(self.texts) > 1:  # a text that turns up later would be a third
            return kernels.NUMBER
        return kernels.CROWDED if len(self.distinct) >= _MOST_VALUES else kernels.SPIN

    @property
    def has_infinity(self) -> bool:
        """Whether one of the numbers is infinite; what is crowded is refused for that, and may hold
        texts not looked at.
        """
        return self.is_infinite and not self.is_text and self.kind != kernels.CROWDED

    def has_come_again(self, n_rows: int) -> bool:
        """Whether values came again, of a column that has been read."""
        return self.repeats or len(self.distinct) < min(_MOST_VALUES, n_rows)

    def is_flipped(self, coding: Coding) -> bool:
        """Whether codes are the opposite of what the coding says."""
        low, high = coding
        return self.distinct.get(low) == 1 or self.distinct.get(high) == -1


@dataclass(slots=True)
class _Tokens:
    """Cells of more than one byte that were explained: a hash table for the kernel."""

    slots: IntArray = field(default_factory=lambda: np.zeros(64, dtype=np.int64))
    entries: IntArray = field(default_factory=lambda: np.zeros((32, 4), dtype=np.int64))
    arena: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1024, dtype=np.uint8))
    n_entries: int = 0
    n_bytes: int = 0

    def add(self, column: int, token: bytes, code: int) -> None:
        """Remember what a token means in a column."""
        if self.n_bytes + len(token) > len(self.arena):
            more = np.zeros(len(self.arena) + len(token), dtype=np.uint8)
            self.arena = np.concatenate([self.arena, more])
        if self.n_entries == len(self.entries):
            self.entries = np.concatenate([self.entries, np.zeros_like(self.entries)])
            self.slots = np.zeros(2 * len(self.slots), dtype=np.int64)
            for entry in range(self.n_entries):
                kernels.insert(self.slots, self.entries, self.arena, entry)
        end = self.n_bytes + len(token)
        self.arena[self.n_bytes : end] = np.frombuffer(token, dtype=np.uint8)
        self.entries[self.n_entries] = column, self.n_bytes, len(token), code
        kernels.insert(self.slots, self.entries, self.arena, self.n_entries)
        self.n_entries += 1
        self.n_bytes += len(token)


class _Cells:
    """Rows of a text as they come. The kernel asks about each token that it has not met in a
    column.
    """

    def __init__(self, layout: Layout, options: ReadOptions) -> None:
        chosen = options.chosen(layout.names)
        self.gaps = {code.casefold() for code in options.missing_codes}
        numbers = [number_of(code, layout.decimal_comma) for code in options.missing_codes]
        self.gap_numbers = {number for number in numbers if number is not None}
        self.layout = layout
        self.options = options
        self.chosen = chosen
        self.rows = RowPacker([layout.names[place] for place in chosen], options.missing)
        self.values = {
            place: _Values(threshold_of(options.binarize, layout.names[place]), bool(self.gaps))
            for place in chosen
        }
        self.kinds = np.full(len(layout.names), kernels.SKIPPED)
        self.kinds[chosen] = kernels.SPIN
        for place in chosen:
            if layout.names[place] in options.ticked:
                self.kinds[place] = kernels.TICKED
                self.values[place].code(NOT_TICKED, None)
        self.has_crowded = False  # kept: a look at all columns for each question takes long
        cuts = [threshold_of(options.binarize, name) for name in layout.names]
        self.thresholds = np.array(cuts, dtype=np.float64)  # NaN where there is none
        self.places = np.zeros(len(layout.names), dtype=np.int64)
        self.places[chosen] = np.arange(len(chosen))
        for k, (name, has_labels) in enumerate(
            zip(options.beside, options.has_labels, strict=True)
        ):
            column = layout.names.index(name)
            self.kinds[column] = kernels.LABEL if has_labels else kernels.WEIGHT
            self.places[column] = k
        self.labels = Labels(kernels.FIRST_LABEL)
        self.known = np.full((len(layout.names), 256), kernels.UNKNOWN, dtype=np.int8)
        self.tokens = _Tokens()
        self.state = np.zeros(6, dtype=np.int64)
        self.state[kernels.LINE] = layout.n_lines
        self.answer = np.zeros(2)
        n_rows = 64 * max(1, _CHUNK // len(chosen) // 64)  # that are packed in one go
        self.codes = np.zeros((n_rows, len(chosen)), dtype=np.int8)
        self.numbers = np.zeros((len(self.codes), len(options.beside)))
        self.rest = b""  # a cell that has not ended

    def read(self, fresh: bytes) -> None:
        """The next bytes of the text."""
        text = self.rest + fresh
        view = np.frombuffer(text, dtype=np.uint8)
        state = self.state
        state[kernels.POSITION] = 0
        while (status := self._read_cells(view)) != kernels.MORE:
            if status == kernels.ASK:
                self._explain(text[state[kernels.POSITION] : state[kernels.END]])
            elif status == kernels.FULL:
                self._flush()
            else:
                problem = (
                    f"line {state[kernels.LINE]} has {state[kernels.COLUMN]} cells where the first "
                    f"has {len(self.kinds)}"
                )
                raise TableFileError(path=self.options.path, problem=problem)
        self.rest = text[state[kernels.POSITION] :]
        if len(self.rest) > _LONGEST:
            self._refuse_open_cell()

    def _read_cells(self, view: NDArray[np.uint8]) -> int:
        """Let the kernel go on until it is through, has a question or no more room."""
        # None for what this text does not have, so that it is not compiled
        binarize = self.options.binarize
        thresholds = None if binarize is None else self.thresholds
        numbers = self.numbers if self.options.beside else None
        crowded = True if self.has_crowded else None
        separator = ord(self.layout.separator)
        tokens = (self.tokens.slots, self.tokens.entries, self.tokens.arena)
        status: int = kernels.read_cells(
            view,
            separator,
            self.state,
            self.kinds,
            self.places,
            self.known,
            tokens,
            thresholds,
            crowded,
            self.answer,
            self.codes,
            numbers,
        )
        return status

    def reading(self) -> Reading:
        """What all the text held."""
        if self.rest:
            self._refuse_open_cell()
        self._flush()
        rows = self.rows
        if rows.n_rows == 0:
            problem = "it has names of columns but no rows"
            raise TableFileError(path=self.options.path, problem=problem)
        values = [self.values[place] for place in self.chosen]
        infinite = [name for name, one in zip(rows.names, values, strict=True) if one.has_infinity]
        if infinite:
            raise InfiniteValueError(columns=infinite)
        columns = [
            replace(
                column_of(name, one.distinct, n_missing), repeats=one.has_come_again(rows.n_rows)
            )
            for name, one, n_missing in zip(
                rows.names, values, rows.n_missing.tolist(), strict=True
            )
        ]
        n_complete = rows.n_complete
        with surveyed(columns, rows.n_rows):
            check_missing(
                columns,
                self.options.missing,
                rows.n_rows,
                True,
                lambda: n_complete,
                self.options.binarize,
            )
            codings = codings_of(columns, self.options.binarize)
        flipped = [one.is_flipped(coding) for one, coding in zip(values, codings, strict=True)]
        packed = rows.packed(codings, flipped)
        reading = rows.reading(packed, self.options, self.labels)
        reading = replace(reading, columns=tuple(columns))
        if reading.covariates is None:
            return reading
        covariates = _with_numbers(
            reading.covariates, self.layout.decimal_comma, self.options.labels
        )
        return replace(reading, covariates=covariates)

    def _flush(self) -> None:
        n_rows = self.state[kernels.ROW]
        self.rows.add(self.codes[:n_rows], self.numbers[:n_rows])
        self.state[kernels.ROW] = 0

    def _explain(self, token: bytes) -> None:
        """Tell the kernel what a cell means, once (numbers) or for good (all else)."""
        column = int(self.state[kernels.COLUMN])
        text = self._text(token)
        if self.kinds[column] == kernels.WEIGHT:
            self.answer[:] = 1, self._weight(text, column)
            return
        if self.kinds[column] == kernels.LABEL:
            self._explain_label(text, token, column)
            return
        values = self.values[column]
        number = self._number(text)
        if self.kinds[column] == kernels.TICKED and not text:
            code = -1
        elif self._is_missing(text, number):
            code = kernels.MISSING
        elif self.kinds[column] == kernels.NUMBER and number is not None:
            self.answer[:] = 1, values.number_code(number)
            return
        else:
            code = values.code(text, number)
            if values.kind == kernels.CROWDED:
                values.repeats = self._n_read() > len(values.distinct)
                self._know_missing_texts()
                self.has_crowded = True
            is_ticked = self.kinds[column] == kernels.TICKED and values.kind == kernels.SPIN
            self.kinds[column] = kernels.TICKED if is_ticked else values.kind
        if len(token) == 1:
            self.known[column, token[0]] = code
        else:
            self.tokens.add(column, token, code)

    def _n_read(self) -> int:
        """Rows up to the one at hand."""
        return self.rows.n_rows + int(self.state[kernels.ROW]) + 1

    def _know_missing_texts(self) -> None:
        """Let the kernel count what is missing of columns that it no longer asks about."""
        if self.has_crowded:  # it has been told
            return
        for text in MISSING_TEXTS | self.gaps:
            self.tokens.add(kernels.EVERYWHERE, text.encode(), kernels.MISSING)

    def _weight(self, text: str, column: int) -> float:
        number = np.nan if text.casefold() in MISSING_TEXTS else self._number(text)
        if number is None:
            raise no_numbers(self.layout.names[column], text)
        return number

    def _number(self, text: str) -> float | None:
        return number_of(text, self.layout.decimal_comma)

    def _is_missing(self, text: str, number: float | None) -> bool:
        word = text.casefold()
        return word in MISSING_TEXTS or word in self.gaps or number in self.gap_numbers

    def _explain_label(self, text: str, token: bytes, column: int) -> None:
        is_covariate = self.layout.names[column] in self.options.covariates
        has_gap = is_covariate and self._is_missing(text, self._number(text))
        if has_gap or text.casefold() in MISSING_TEXTS:
            self.answer[:] = 1, np.nan
        else:
            self.tokens.add(column, token, self.labels.number(text))

    def _text(self, token: bytes) -> str:
        text = decoded(token).strip(" ")
        if text.startswith('"'):
            text = next(cells_of([text], self.layout.separator))[0]
        return text.strip()

    def _refuse_open_cell(self) -> None:
        problem = (
            f"a cell that starts in line {self.state[kernels.LINE] + 1} does not end: "
            "is a quote never closed?"
        )
        raise TableFileError(path=self.options.path, problem=problem)
