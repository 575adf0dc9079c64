"""Layout: what the first rows of a text tell: its letters, its separator, names of columns."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isingkit.exceptions import RepeatedNamesWarning, TableFileError, warn
from isingkit.spins import MISSING_TEXTS, Names

_HEAD = 1 << 16  # bytes looked at to tell names of columns from values
_LONGEST_HEAD = 1 << 26  # bytes of the first rows: what is longer is no table
_FEW = 4  # rows that tell nothing of whether the first is different
_NARROWEST = 3  # columns of a table that may have a title above it
_SEEN = 100  # rows that tell how many columns there are
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OF_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # as Excel writes "Unicode text"
_OF_ZIP = b"PK\x03\x04"
_LIKELIEST = ";\t, "  # separators of rows that several would cut: a comma may be one of numbers
_EIGHT_BITS = ("cp1252", "latin-1")  # what is no UTF-8: Windows in the west; then whatever
_BLANKS = re.compile(rb"[ \t]+")
_AROUND_END = re.compile(b" ?([\r\n]) ?")  # an end of a line, and a blank beside it


@dataclass(frozen=True, slots=True)
class Layout:
    """What the first rows of a text tell."""

    separator: str
    names: Names
    start: int  # bytes before the first row of values
    n_lines: int  # lines before it

    @property
    def decimal_comma(self) -> bool:
        """Whether a comma may be part of a number."""
        return self.separator != ","


@dataclass(frozen=True, slots=True)
class _Row:
    cells: list[str]
    n_lines: int  # from the start of the text to the end of this row

    @property
    def n_filled(self) -> int:
        return sum(bool(cell.strip()) for cell in self.cells)

    @property
    def is_title(self) -> bool:
        """Whether it is one text alone, as a title above a table is."""
        return self.n_filled == 1 and _is_text("".join(self.cells).strip())


def as_utf8(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """The same bytes; those of a text in UTF-16, in UTF-8."""
    start = [read(2)]
    if start[0] not in _OF_UTF_16:
        return lambda n_bytes: start.pop() + read(n_bytes) if start else read(n_bytes)
    decoder = codecs.getincrementaldecoder("utf-16")()
    decoder.decode(start[0])

    def read_letters(n_bytes: int) -> bytes:
        while True:
            fresh = read(n_bytes)
            letters = decoder.decode(fresh, final=not fresh)
            if letters or not fresh:
                return letters.encode()

    return read_letters


def without_padding(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """The same bytes, with one blank where there are several, and none where a line begins or ends:
    cells of a text whose columns are aligned with blanks.
    """
    begins_line = True
    held = b""  # a blank, which counts where a cell comes next

    def read_cells(n_bytes: int) -> bytes:
        nonlocal begins_line, held
        while True:
            fresh = read(n_bytes)
            text = _AROUND_END.sub(rb"\1", _BLANKS.sub(b" ", held + fresh))
            text = text.lstrip(b" ") if begins_line else text
            held = text[-1:] if fresh and text.endswith(b" ") else b""
            ready = text.rstrip(b" ")
            begins_line = ready[-1:] in (b"\r", b"\n") if ready else begins_line
            if ready or not fresh:
                return ready

    return read_cells


def decoded(text: bytes) -> str:
    """Letters of UTF-8, or of what else is likeliest."""
    return _decoded(text)[0]


def head_of(read: Callable[[int], bytes], path: Path) -> tuple[bytes, bool]:
    """The first bytes of a text, a few rows at least, and whether they are all. A small archive may
    hold a line without end.
    """
    pieces: list[bytes] = []
    n_bytes = 0
    n_ends = 0
    while n_bytes < _HEAD or n_ends < 3:
        fresh = read(_HEAD)
        if not fresh:
            return b"".join(pieces), True
        pieces.append(fresh)
        n_bytes += len(fresh)
        n_ends += fresh.count(b"\n") + fresh.count(b"\r")
        if n_bytes > _LONGEST_HEAD and n_ends < 3:
            problem = f"its first rows take more than {_LONGEST_HEAD >> 20} MiB"
            raise TableFileError(path=path, problem=problem)
    return b"".join(pieces), False


def layout_of(head: bytes, is_all: bool, separators: str, path: Path) -> Layout:
    """Separator (one of those given, or the first of them), names and start of the values, from the
    first bytes of a text.
    """
    require_text(head, path)
    mark = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    whole = len(head) if is_all else max(head.rfind(b"\n"), head.rfind(b"\r")) + 1
    text, encoding = _decoded(head[mark:whole])
    lines = list(io.StringIO(text, newline=""))
    separator, rows, n_above = _rows_below_titles(lines, is_all, separators)
    if not rows:
        raise TableFileError(path=path, problem="it is empty")
    if len(rows) > 2 and not is_all:  # the last may go on
        rows.pop()
    first = _first_row(rows)
    below = [row.cells for row in rows[1:] if len(row.cells) == len(first)]
    columns = list(zip(first, *below, strict=True))
    has_titles = _has_titles(columns)
    n_lines = rows[0].n_lines if has_titles else n_above
    start = mark + len("".join(lines[:n_lines]).encode(encoding))
    names = _titles(first) if has_titles else tuple(f"x{k}" for k in range(len(first)))
    return Layout(separator, names, start, n_lines)


def require_text(head: bytes, path: Path) -> None:
    """Refuse bytes that are no letters."""
    if head.startswith(_OF_ZIP):
        problem = "it is no text, but perhaps a file of Excel: save it there as CSV, and take that"
        raise TableFileError(path=path, problem=problem)
    if b"\0" in head:
        problem = "it cannot be read as text in columns: it holds bytes that are no letters"
        raise TableFileError(path=path, problem=problem)


def _decoded(text: bytes) -> tuple[str, str]:
    """Letters, and their encoding."""
    try:
        return text.decode(), "utf-8"
    except UnicodeDecodeError:
        pass
    usual, any_byte = _EIGHT_BITS
    try:
        return text.decode(usual), usual
    except UnicodeDecodeError:
        return text.decode(any_byte), any_byte


def _rows_below_titles(
    lines: Sequence[str], is_all: bool, separators: str
) -> tuple[str, list[_Row], int]:
    """The separator, rows from that of names on, and how many lines are above them: titles, and
    what Excel may say of separators.
    """
    first = _first_record(lines)
    cut = {one: _rows(lines, one) for one in _LIKELIEST if one in separators and one in first}
    even = [one for one, rows in cut.items() if _are_even(_without_titles(rows)[0], is_all)]
    others = [one for one in separators if one not in cut]
    if not even:  # perhaps only a title is there to see
        tables = {one: _rows(lines, one) for one in others if any(one in line for line in lines)}
        cut |= tables
        even = [one for one, rows in tables.items() if _has_table_below(rows, is_all)]
    natural = [one for one in separators if one in first]
    separator = next(iter([*even, *natural, *separators]))
    rows = cut[separator] if separator in cut else _rows(lines, separator)
    return separator, *_without_titles(rows)


def _first_record(lines: Sequence[str]) -> str:
    """The first lines that hold something, up to where no quote is open."""
    record: list[str] = []
    n_quotes = 0
    for line in lines:
        if record or line.strip():
            record.append(line)
            n_quotes += line.count('"')
            if n_quotes % 2 == 0:
                break
    return "".join(record)


def cells_of(lines: Iterable[str], separator: str) -> Any:
    """A reader of rows of cells; blanks may stand before a quote, as after it."""
    return csv.reader(lines, delimiter=separator, skipinitialspace=separator != " ")


def _rows(lines: Sequence[str], separator: str) -> list[_Row]:
    """Rows that are not empty."""
    reader = cells_of(lines, separator)
    return [_Row(cells, reader.line_num) for cells in reader if cells]


def _without_titles(rows: list[_Row]) -> tuple[list[_Row], int]:
    """Rows but those above a table, and how many lines these take."""
    below = rows[:]
    n_lines = 0
    while below[0:1] and below[0].is_title and _is_wide(below[1:]):
        n_lines = below.pop(0).n_lines
    return below, n_lines


def _is_wide(rows: Sequence[_Row]) -> bool:
    """Whether rows are those of a table that may have a title above it."""
    widths = Counter(len(row.cells) for row in rows[:_SEEN])
    return len(rows) > 1 and widths.most_common(1)[0][0] >= _NARROWEST


def _are_even(rows: Sequence[_Row], is_all: bool) -> bool:
    """Whether all rows have as many cells, or one more than names; the last may go on."""
    whole = rows if is_all else rows[:-1]
    widths = {len(row.cells) for row in whole[1:]}
    if not whole or max(widths, default=2) < 2:
        return False
    return len(widths) <= 1 and widths <= {len(whole[0].cells), len(whole[0].cells) + 1}


def _has_table_below(rows: list[_Row], is_all: bool) -> bool:
    """Whether what begins with titles goes on as a table."""
    below, n_above = _without_titles(rows)
    return n_above > 0 and _are_even(below, is_all)


def _first_row(rows: Sequence[_Row]) -> list[str]:
    """The first row; where names of rows stand below, which have no name, as R writes them, or
    where all others end with a separator, with one more cell.
    """
    first = rows[0].cells
    below = [row.cells for row in rows[1:]]
    if not below or any(len(cells) != len(first) + 1 for cells in below):
        return first
    if not any(cells[-1].strip() for cells in below):
        return [*first, ""]
    labels = {cells[0] for cells in below}
    return ["", *first] if len(labels) == len(below) else first


def _titles(cells: Sequence[str]) -> Names:
    """Names of columns, each another: what comes again is numbered, as pandas and R do it."""
    wanted = [cell.strip() or f"column {k + 1}" for k, cell in enumerate(cells)]
    names: list[str] = []
    taken: set[str] = set()
    n_again: Counter[str] = Counter()
    for name in wanted:
        new = name
        while new in taken:
            n_again[name] += 1
            new = f"{name}.{n_again[name]}"
        taken.add(new)
        names.append(new)
    if n_again:
        warn(RepeatedNamesWarning(columns=list(n_again)))
    return tuple(names)


def _has_titles(columns: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names of columns.

    It does where some column has a text above numbers; where all cells are texts, or whatever, not
    found below them; and where all are different numbers above columns of two others, as years are,
    or the numbers of the columns.
    """
    first = [column[0].strip() for column in columns]
    below = [{text.strip() for text in column[1:]} for column in columns]
    if _are_places(first):
        return True
    if not any(first):
        return False
    n_numbers = sum(number_of(text) is not None for text in first)
    if not any(below):
        return n_numbers == 0
    if any(map(_is_text_above_numbers, first, below)):
        return True
    if any(text in rest for text, rest in zip(first, below, strict=True) if text):
        return False
    if n_numbers == len(first):
        return len(columns[0]) > _FEW and _are_titles(first, below)
    return n_numbers == 0


def _is_text_above_numbers(text: str, below: set[str]) -> bool:
    return _is_text(text) and not any(map(_is_text, below))


def _are_titles(numbers: Sequence[str], below: Sequence[set[str]]) -> bool:
    """Whether numbers are different, and above columns of two values: those that are to be
    binarised are all new, too.
    """
    are_different = len(set(numbers)) == len(numbers) > 1
    return are_different and all(len(values) <= 2 for values in below)


def _are_places(texts: Sequence[str]) -> bool:
    """Whether texts are the numbers of their columns, from 0 or from 1."""
    counted = [[str(k + start) for k in range(len(texts))] for start in (0, 1)]
    return len(texts) > 2 and list(texts) in counted


def _is_text(text: str) -> bool:
    return bool(text) and text.casefold() not in MISSING_TEXTS and number_of(text) is None


def number_of(text: str, decimal_comma: bool = False) -> float | None:
    """The number that a text is, if it is one."""
    if "_" in text:  # Python reads 1_0 as 10
        return None
    if decimal_comma and text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None
