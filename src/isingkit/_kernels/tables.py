"""Cells of a text table, from bytes straight to codes of spins.

What is called for every cell is inlined: a call would count references to its arrays, which takes
longer than the cell.
"""

import numpy as np
from numba import njit

from isingkit._kernels.flags import CACHE, KERNEL, PART

# kinds of columns; NUMBER: spins by a threshold, CROWDED: has no spins after all, WEIGHT: a number
# that is no spin, LABEL: any text, of which a number stands for each, TICKED: a spin whose empty
# cells are -1
SKIPPED, SPIN, NUMBER, WEIGHT, CROWDED, LABEL, TICKED = range(7)
MISSING, UNKNOWN = 0, 2  # codes beside -1 and +1: those of spins are odd
FIRST_LABEL = 3  # from which on labels are numbered
MORE, ASK, FULL, UNEVEN = range(4)  # why reading stopped
POSITION, ROW, COLUMN, END, LINE, AFTER_RETURN = range(6)  # places in `state`
EVERYWHERE = -1  # the column of words that are missing values in all columns
_QUOTE, _BLANK, _RETURN, _NEWLINE = 34, 32, 13, 10
_POWERS = 10.0 ** np.arange(23)  # those of ten that double precision holds exactly


@njit(**KERNEL, error_model="numpy")
def read_cells(
    text,
    separator,
    state,
    kinds,
    places,
    known,
    tokens,
    thresholds,
    crowded,
    answer,
    codes,
    numbers,
):
    """Codes of cells from state on, until the text ends (MORE), a cell must be explained (ASK),
    codes are FULL or a row is UNEVEN.

    text: (n_bytes,) uint8
    state: (6,) int64, position, row, column and end of the cell at hand, lines that ended, whether
    the last was a carriage return; all moved on
    kinds, places: (n_columns,) int64, what a column is and its column in codes or numbers
    known: (n_columns, 256) int8, cells of one byte
    tokens: slots, entries, arena: those of more bytes, see `insert`
    thresholds: (n_columns,) float64, of NUMBER columns; None where there are none
    crowded: None where no column is CROWDED
    answer: (2,) float64, whether the cell at hand was explained, and how
    codes: (n_rows, n_spins) int8, -1, +1 or MISSING
    numbers: (n_rows, n_numbers) float64; None where there is no WEIGHT or LABEL column
    codes and numbers are overwritten; what None excludes is not compiled
    A reader may go on with other text in the middle of a row: a cell that does not end is left to
    start the next.
    """
    slots, entries, arena = tokens
    n_columns, n_rows, stop = len(kinds), len(codes), len(text)
    position, row, column, end = state[POSITION], state[ROW], state[COLUMN], state[END]
    status = MORE
    while position < stop:
        n_quick = _quick_cells(text, position, separator, column, known, places, row, codes)
        position += 2 * n_quick
        column += n_quick
        if position >= stop:
            break
        end = _cell_end(text, position, separator)
        if end < 0:
            break
        is_last = text[end] != separator
        if is_last and column == 0 and end == position:  # an empty line, or the second byte of \r\n
            state[LINE] += 1 - (text[end] == _NEWLINE and state[AFTER_RETURN])
            state[AFTER_RETURN] = text[end] == _RETURN
            position += 1
            continue
        kind = kinds[column] if column < n_columns else SKIPPED
        if kind == WEIGHT or kind == LABEL:  # noqa: SIM109  # numba is slow with tuples
            if numbers is not None:
                if kind == WEIGHT:
                    sure, number = number_in(text, position, end)
                else:
                    label = _found(text, position, end, column, slots, entries, arena)
                    sure, number = label != UNKNOWN, float(label)
                if answer[0]:
                    sure, number, answer[0] = True, answer[1], 0
                if not sure:
                    status = ASK
                    break
                numbers[row, places[column]] = number
        elif kind != SKIPPED:
            empty = -1 if kind == TICKED else MISSING
            code = np.int64(UNKNOWN if end > position else empty)
            if end == position + 1:
                code = np.int64(known[column, text[position]])
            if thresholds is not None:  # noqa: SIM102  # what is None is not compiled
                if code == UNKNOWN and kind == NUMBER:
                    sure, number = number_in(text, position, end)
                    if sure:
                        code = np.int64(1 if number > thresholds[column] else -1)
            if code == UNKNOWN and end > position + 1:
                code = _found(text, position, end, column, slots, entries, arena)
            if crowded is not None:  # noqa: SIM102
                # nothing will come of this column but the count of what is missing
                if code == UNKNOWN and kind == CROWDED:
                    gap = _is_gap(text, position, end, slots, entries, arena)
                    code = np.int64(MISSING if gap else 1)
            if code == UNKNOWN and answer[0]:
                code, answer[0] = np.int64(answer[1]), 0
            if code == UNKNOWN:
                status = ASK
                break
            codes[row, places[column]] = code
        if text[position] == _QUOTE or text[position] == _BLANK:
            state[LINE] += _line_ends(text, position, end)
        position = end + 1
        column += 1
        if is_last:
            state[LINE] += 1
            state[AFTER_RETURN] = text[end] == _RETURN
            if column != n_columns:
                status = UNEVEN
                break
            column = 0
            row += 1
            if row == n_rows:
                status = FULL
                break
    state[POSITION], state[ROW], state[COLUMN], state[END] = position, row, column, end
    return status


@njit(cache=CACHE, nogil=True, fastmath=False, error_model="numpy", inline="always")
def _quick_cells(text, position, separator, column, known, places, row, codes):
    """How many cells of one known byte and a separator there are from position on, but the last of
    a row; codes get theirs.
    """
    n_cells = 0
    for k in range(min(len(known) - 1 - column, (len(text) - position) // 2)):
        code = known[
            np.uint64(column + k), text[np.uint64(position + 2 * k)]
        ]  # an unsigned index is not looked at for its sign
        if not code & 1 or text[np.uint64(position + 2 * k + 1)] != separator:
            break
        codes[np.uint64(row), places[np.uint64(column + k)]] = code
        n_cells += 1
    return n_cells


@njit(**PART, error_model="numpy")
def _line_ends(text, start, end):
    n_ends = 0
    for k in range(start, end):
        n_ends += text[k] == _RETURN or (text[k] == _NEWLINE and text[k - 1] != _RETURN)
    return n_ends


@njit(cache=CACHE, nogil=True, fastmath=False, error_model="numpy", inline="always")
def _cell_end(text, start, separator):
    """Place of the separator or line end after the cell at start; -1 where the text ends first.
    Blanks may stand before a quote.
    """
    place, stop = start, len(text)
    while place < stop and text[place] == _BLANK and separator != _BLANK:
        place += 1
    if place < stop and text[place] == _QUOTE:
        place += 1
        while True:
            while place < stop and text[place] != _QUOTE:
                place += 1
            if (
                place + 1 >= stop
            ):  # a quote at the very end may be the first of two, which stand for one
                return -1
            place += 1
            if text[place] != _QUOTE:
                break
            place += 1
    while place < stop:
        byte = text[place]
        if byte == separator or byte == _NEWLINE or byte == _RETURN:  # noqa: SIM109  # numba is slow with tuples
            return place
        place += 1
    return -1


@njit(**KERNEL, error_model="numpy")
def insert(slots, entries, arena, entry):
    """Puts an entry into the hash table: slots[k] - 1 is an entry, 0 is none.

    slots: (power of two,) int64     arena: (n_bytes,) uint8
    entries: (n_entries, 4) int64, column, start and length in arena, code
    """
    column, start, length = entries[entry, 0], entries[entry, 1], entries[entry, 2]
    slot = _hash(arena, start, start + length, column) & (len(slots) - 1)
    while slots[slot]:
        slot = (slot + 1) & (len(slots) - 1)
    slots[slot] = entry + 1


@njit(**PART, error_model="numpy")
def _is_gap(text, start, end, slots, entries, arena):
    """Whether a cell holds a word for a missing value, in whatever case, between blanks or
    quotes.
    """
    while start < end and (text[start] == 32 or text[start] == 9 or text[start] == _QUOTE):
        start += 1
    while start < end and (text[end - 1] == 32 or text[end - 1] == 9 or text[end - 1] == _QUOTE):
        end -= 1
    if end - start > 4:
        return False
    word = np.empty(4, np.uint8)
    for k in range(end - start):
        byte = text[start + k]
        word[k] = byte + 32 if 65 <= byte <= 90 else byte
    return (
        end == start or _found(word, 0, end - start, EVERYWHERE, slots, entries, arena) == MISSING
    )


@njit(cache=CACHE, nogil=True, fastmath=False, error_model="numpy", inline="always")
def _found(text, start, end, column, slots, entries, arena):
    slot = _hash(text, start, end, column) & (len(slots) - 1)
    while slots[slot]:
        entry = slots[slot] - 1
        if entries[entry, 0] == column and entries[entry, 2] == end - start:
            first, k = entries[entry, 1], 0
            while k < end - start and text[start + k] == arena[first + k]:
                k += 1
            if k == end - start:
                return entries[entry, 3]
        slot = (slot + 1) & (len(slots) - 1)
    return np.int64(UNKNOWN)


@njit(cache=CACHE, nogil=True, fastmath=False, error_model="numpy", inline="always")
def _hash(text, start, end, column):
    """FNV-1a, whose bits are mixed once more, for columns differ in the lowest and tokens are
    short.
    """
    mixed = np.uint64(14695981039346656037) ^ np.uint64(column + 1)
    for k in range(start, end):
        mixed = (mixed ^ np.uint64(text[k])) * np.uint64(1099511628211)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(11400714819323198485)
    return np.int64(mixed >> np.uint64(32))


@njit(**KERNEL, error_model="numpy")
def number_in(text, start, end):
    """Whether a cell is a decimal number that is rounded for sure here as Python rounds it, and the
    number.
    """
    while start < end and (text[start] == 32 or text[start] == 9):
        start += 1
    while start < end and (text[end - 1] == 32 or text[end - 1] == 9):
        end -= 1
    negative = start < end and text[start] == 45
    if start < end and (text[start] == 45 or text[start] == 43):
        start += 1
    mantissa, n_digits, n_significant, exponent, after_point = np.uint64(0), 0, 0, 0, False
    while start < end:
        byte = text[start]
        if byte == 46 and not after_point:
            after_point = True
        elif 48 <= byte <= 57:
            mantissa = mantissa * np.uint64(10) + np.uint64(byte - 48)
            n_digits += 1
            n_significant += mantissa > 0
            exponent -= after_point
            if n_significant > 19:
                return False, 0.0
        else:
            break
        start += 1
    if n_digits == 0:
        return False, 0.0
    if start < end:
        if text[start] | 32 != 101 or start + 1 == end:
            return False, 0.0
        start += 1
        falls = text[start] == 45
        if falls or text[start] == 43:
            start += 1
        if start == end or end - start > 4:
            return False, 0.0
        power = 0
        for k in range(start, end):
            if text[k] < 48 or text[k] > 57:
                return False, 0.0
            power = 10 * power + (text[k] - 48)
        exponent += -power if falls else power
    sure, size = _scaled(mantissa, exponent)
    return sure, -size if negative else size


@njit(**PART, error_model="numpy")
def _scaled(mantissa, exponent):
    """mantissa 10^exponent to the nearest double, and whether that is sure.

    In pairs of doubles, high + low, good to 100 bits: sure unless the sum falls so near the middle
    of two doubles that the error of `low` could decide.
    """
    high = np.float64(mantissa)
    if mantissa == 0 or exponent == 0:
        return True, high
    if abs(exponent) > 22:
        return False, 0.0
    back = np.uint64(high)
    low = np.float64(mantissa - back) if mantissa >= back else -np.float64(back - mantissa)
    power = _POWERS[abs(exponent)]
    if exponent > 0:
        high, rest = _product(high, power)
        low = low * power + rest
    else:
        quotient = high / power
        product, rest = _product(quotient, power)
        high, low = quotient, (((high - product) - rest) + low) / power
    return high + low * (1 + 1e-12) == high + low * (1 - 1e-12), high + low


@njit(**PART, error_model="numpy")
def _product(a, b):
    """a b as a double and its error (Dekker)."""
    product = a * b
    split = 134217729.0 * a
    a_high = split - (split - a)
    split = 134217729.0 * b
    b_high = split - (split - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
