"""PackedSpins: 64 samples a word, one row of words a spin.

The file format (`save`, `load`, `map`), version 2, little-endian:

    8 bytes     ISINGPK2
    8 bytes     length of the header
    header      JSON in UTF-8, padded with spaces so that the data starts at a multiple of 64 bytes:
                n_samples, n_spins, names, mapping, has_missing, crc32 (of the data);
                its last 8 bytes are the crc32 of all before them, in hexadecimal digits
    data        n_spins rows of ceil(n_samples / 64) uint64 words; bit b of word w is sample 64 w +
    b, 1 for +1
    data        only if has_missing: as many words, whose bits say which values are present

Version 1, which is read as well, has no crc32 of the header.
"""

import hashlib
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from isingkit._kernels.packing import pack_words, unpack_rows
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import BoolArray, IntArray, SpinArray
from isingkit.atomic import replacing
from isingkit.exceptions import (
    CodingMismatchError,
    ColumnNamesError,
    FileFormatError,
    MissingValuesError,
    ModelMismatchError,
)
from isingkit.formats import FilePath
from isingkit.missing import MissingPolicy
from isingkit.result_table import Record
from isingkit.spins import (
    Coding,
    Names,
    RowWeights,
    Spins,
    as_spins,
    missing_policy,
    require_rows,
    warn_of_empty_rows,
)

MAGIC = b"ISINGPK2"
_FIRST_MAGIC = b"ISINGPK1"
_CHECK = 8  # digits of the header's checksum
_BLOCK = 1 << 24  # bytes that a checksum takes at a time
Words = NDArray[np.uint64]
_CHUNK = 1 << 22  # values unpacked in one go
_FEW = 1 << 20  # values that numpy packs in a millisecond or two: nothing to compile for them


@dataclass(frozen=True, slots=True, eq=False)
class PackedSpins:
    """Spins as bits: an eighth of int8, a sixty-fourth of float64. `np.asarray` gives int8
    (n_samples, n_spins) back.

    Samples are sliced as in an array, `packed[:100]`, `packed[rows]`, and so are spins, `packed[:,
    columns]`.
    """

    # (n_spins, n_words): bit b of word w is sample 64 w + b; bits past n_samples are 0
    words: Words
    n_samples: int
    names: Names
    present: Words | None = None  # like words: which values are not missing; None when none are
    # values of the table that became -1 and +1, where it was one
    mapping: tuple[Coding, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.names) != len(self.words):
            raise ColumnNamesError(names=self.names, n_spins=len(self.words))

    @property
    def n_spins(self) -> int:
        return len(self.words)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_spins

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        return f"PackedSpins({self.n_samples} samples of {self.n_spins} spins)"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = unpacked(self.words, self.n_samples, np.int8).T
        if self.present is not None:
            values = values * (unpacked(self.present, self.n_samples, np.int8).T > 0)
        return np.ascontiguousarray(values, dtype=dtype)

    def __getitem__(self, key: Any) -> "PackedSpins":
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        chosen = np.atleast_1d(np.arange(self.n_spins)[columns])
        names = tuple(self.names[j] for j in chosen)
        mapping = None if self.mapping is None else tuple(self.mapping[j] for j in chosen)
        words = self.words[columns] if isinstance(columns, slice) else self.words[chosen]
        present = None if self.present is None else self.present[chosen]
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(self.n_samples)
            count = max(0, stop - start)
            present = None if present is None else _cut(present, start, count)
            return PackedSpins(_cut(words, start, count), count, names, present, mapping)
        values = np.atleast_2d(np.asarray(PackedSpins(words, self.n_samples, names, present))[rows])
        return _packed(values, names, mapping, has_missing=present is not None)

    @staticmethod
    def concatenate(parts: Sequence["PackedSpins"]) -> "PackedSpins":
        """The samples of all parts, one after the other."""
        first = parts[0]
        for part in parts:
            if part.names != first.names:
                raise ModelMismatchError(left=first.names, right=part.names, what="all parts")
            require_same_coding(first.names, first.mapping, part.mapping)
        lengths = [part.n_samples for part in parts]
        present = None
        if any(part.present is not None for part in parts):
            present = _joined([presence(part) for part in parts], lengths)
        words = _joined([part.words for part in parts], lengths)
        return PackedSpins(words, sum(lengths), first.names, present, first.mapping)

    def save(self, path: FilePath) -> None:
        """Write the file whole or not at all."""
        arrays = [np.ascontiguousarray(self.words, dtype="<u8")]
        if self.present is not None:
            arrays.append(np.ascontiguousarray(self.present, dtype="<u8"))
        checksum = 0
        for array in arrays:
            checksum = zlib.crc32(array.data, checksum)
        start = _header(self, checksum)
        with replacing(path) as temporary, open(temporary, "wb") as file:
            file.write(start)
            for array in arrays:
                array.tofile(file)

    @staticmethod
    def map(path: FilePath, *, verify: bool = True) -> "PackedSpins":
        """Spins that stay on disk and are read as they are needed.

        Parameters
        ----------
        path
            The file.
        verify
            Whether to read the whole file once, for its checksum: 0.3 seconds for a GiB, and what
            the disk takes. Damage is not noticed otherwise.
        """
        mapped, checksum = _from_file(Path(path))
        if verify:
            _require_checksum(mapped, checksum, Path(path))
        return mapped

    @staticmethod
    def load(path: FilePath) -> "PackedSpins":
        """Spins read into memory, with their checksum verified."""
        mapped, checksum = _from_file(Path(path))
        words = np.array(mapped.words)
        present = None if mapped.present is None else np.array(mapped.present)
        loaded = PackedSpins(words, mapped.n_samples, mapped.names, present, mapped.mapping)
        _require_checksum(loaded, checksum, Path(path))
        return loaded


def pack(spins: Any) -> PackedSpins:
    """PackedSpins of a Spins, or of any table that `as_spins` takes without options.

    Examples
    --------
    >>> from isingkit import pack
    >>> pack([[0, 1], [1, 1], [1, 0]]).words
    array([[6],
           [3]], dtype=uint64)
    """
    if isinstance(spins, PackedSpins):
        return spins
    if not isinstance(spins, Spins):
        spins = as_spins(spins)
    return _packed(spins.values, spins.names, spins.mapping, spins.has_missing)


def fingerprint(packed: PackedSpins) -> str:
    """The same for the same samples in the same order."""
    digest = hashlib.sha256(np.ascontiguousarray(packed.words).data)
    if packed.present is not None:
        digest.update(np.ascontiguousarray(packed.present).data)
    digest.update(json.dumps([packed.n_samples, *packed.names]).encode())
    return digest.hexdigest()[:16]


def repeated(packed: PackedSpins, weights: RowWeights) -> PackedSpins:
    """Each row as often as it was counted; none of weight zero."""
    rows = np.repeat(np.arange(packed.n_samples), weights.counts.astype(np.int64))
    step = max(1, _CHUNK // packed.n_spins)
    starts = range(0, len(rows), step)
    parts = [packed[rows[start : start + step]] for start in starts]
    return PackedSpins.concatenate(parts)


def distinct_samples(packed: PackedSpins) -> tuple[IntArray, IntArray]:
    """(n_distinct,): the first of equal samples, missing values included, in the order of the
    table; and (n_samples,): which of these each sample equals.
    """
    parts = [_row_bytes(packed.words, packed.n_samples, here) for here in _spans(packed)]
    keys = np.concatenate(parts)
    if packed.present is not None:
        parts = [_row_bytes(packed.present, packed.n_samples, here) for here in _spans(packed)]
        keys = np.concatenate([keys, np.concatenate(parts)], axis=1)
    whole_row = np.dtype((np.void, keys.shape[1]))
    as_one = np.ascontiguousarray(keys).view(whole_row)[:, 0]
    _, first, place = np.unique(as_one, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[place]


def _row_bytes(words: Words, n_samples: int, here: slice) -> NDArray[np.uint8]:
    """Bits of some samples, a row of bytes for each."""
    n_here = min(64 * here.stop, n_samples) - 64 * here.start
    values = unpacked(np.ascontiguousarray(words[:, here]), n_here, np.int8)
    return np.packbits(values.T > 0, axis=1)


def require_same_coding(
    names: Sequence[str], left: tuple[Coding, ...] | None, right: tuple[Coding, ...] | None
) -> None:
    """Refuse parts of one table that were read with different codings."""
    for name, mine, its in zip(names, left or (), right or (), strict=False):
        if mine != its:
            raise CodingMismatchError(column=name, left=mine, right=its)


def values_seen(packed: PackedSpins) -> tuple[BoolArray, BoolArray]:
    """Which spins are -1 in some sample, and which are +1."""
    is_low = (presence(packed) & ~packed.words).any(axis=1)
    is_high = packed.words.any(axis=1)
    return np.asarray(is_low), np.asarray(is_high)


def recoded(packed: PackedSpins, mapping: Sequence[Coding]) -> PackedSpins:
    """The same samples read with another coding; refused where that lacks a value that occurs."""
    own = packed.mapping or mapping
    flipped = np.zeros(packed.n_spins, dtype=bool)
    for j, (is_low, is_high) in enumerate(zip(*values_seen(packed), strict=True)):
        becomes = {mapping[j][0]: -1, mapping[j][1]: 1}
        signs = set()  # by which spins of this column are multiplied; 0 where a value has no place
        if is_low:
            signs.add(-becomes.get(own[j][0], 0))
        if is_high:
            signs.add(becomes.get(own[j][1], 0))
        if not signs <= {1} and signs != {-1}:
            raise CodingMismatchError(column=packed.names[j], left=tuple(mapping[j]), right=own[j])
        flipped[j] = signs == {-1}
    words = np.array(packed.words)
    words[flipped] ^= presence(packed)[flipped]
    return PackedSpins(words, packed.n_samples, packed.names, packed.present, tuple(mapping))


def apply_missing_policy(packed: PackedSpins, missing: str) -> tuple[PackedSpins, BoolArray | None]:
    """What `missing` asks of spins that lack some values, and which samples are left; None when all
    are.
    """
    policy = missing_policy(missing)
    if packed.present is None:
        return packed, None
    combine = np.bitwise_or if policy.keeps_all_rows else np.bitwise_and
    is_kept = combine.reduce(packed.present, axis=0)
    rows = unpacked(is_kept[np.newaxis], packed.n_samples, np.int8)[0] > 0
    n_kept = int(rows.sum())
    if policy is MissingPolicy.ERROR:
        raise MissingValuesError(
            counts=_missing_counts(packed),
            n_samples=packed.n_samples,
            n_spins=packed.n_spins,
            n_complete=n_kept,
        )
    require_rows(n_kept, packed.shape, policy)
    if policy.keeps_all_rows:
        warn_of_empty_rows(packed.n_samples - n_kept, packed.n_samples)
        if n_kept == packed.n_samples:
            return packed, None
    return PackedSpins.concatenate(_parts_of(packed, rows, policy.keeps_all_rows)), rows


def _parts_of(packed: PackedSpins, rows: BoolArray, has_missing: bool) -> list[PackedSpins]:
    """Some of the samples, part by part."""
    parts = []
    for here in _spans(packed):
        kept = rows[64 * here.start : 64 * here.stop]
        part = packed[64 * here.start : 64 * here.start + len(kept)]
        values = np.asarray(part)[kept]
        parts.append(_packed(values, packed.names, packed.mapping, has_missing))
    return parts


def _missing_counts(packed: PackedSpins) -> dict[str, int]:
    counts = np.full(packed.n_spins, packed.n_samples)
    for here in _spans(packed):
        present = np.ascontiguousarray(packed.present[:, here])  # type: ignore[index]
        counts -= np.unpackbits(present.view(np.uint8), axis=1).sum(axis=1, dtype=np.int64)
    return {name: int(count) for name, count in zip(packed.names, counts, strict=True) if count}


def _spans(packed: PackedSpins) -> Iterator[slice]:
    """Ranges of words with a few million values each, so that no unpacked copy of all is made."""
    step = max(1, _CHUNK // (64 * packed.n_spins))
    for start in range(0, packed.words.shape[1], step):
        yield slice(start, start + step)


def unpacked(words: Words, n_samples: int, dtype: Any) -> NDArray[Any]:
    """-1 and +1, one row a spin: (n_spins, n_samples)."""
    if len(words) * n_samples <= _FEW:
        values = as_bits(words, n_samples).astype(dtype)
        values *= 2
        values -= 1
        return values
    values = np.empty((len(words), n_samples), dtype=dtype)
    chunk = max(1, (1 << 20) // max(1, n_samples))
    parallel_map(unpack_rows, len(words), words, values, chunk=chunk)
    return values


def _packed(
    values: SpinArray,
    names: Names,
    mapping: tuple[Coding, ...] | None,
    has_missing: bool,
) -> PackedSpins:
    words = bits(values)
    present = bits((values != 0).view(np.int8)) if has_missing else None
    return PackedSpins(words, len(values), names, present, mapping)


def bits(values: SpinArray) -> Words:
    """Words of values (n_samples, n_spins), a bit 1 where one is positive: (n_spins, n_words)."""
    n_samples, n_spins = values.shape
    n_words = -(-n_samples // 64)
    if values.size <= _FEW:
        little = np.zeros((n_spins, 8 * n_words), dtype=np.uint8)
        n_bytes = -(-n_samples // 8)
        little[:, :n_bytes] = np.packbits(values.T > 0, axis=1, bitorder="little")
        return little.view("<u8").astype(np.uint64, copy=False)
    words: Words = np.empty((n_spins, n_words), dtype=np.uint64)
    chunk = max(1, (1 << 14) // max(1, n_spins))
    parallel_map(pack_words, words.shape[1], np.ascontiguousarray(values), words, chunk=chunk)
    return words


def as_bits(words: Words, n_bits: int) -> NDArray[np.uint8]:
    """(n, n_bits) of 0 and 1, the lowest bit of a word first."""
    little = np.ascontiguousarray(words, dtype="<u8").view(np.uint8)
    return np.unpackbits(little, axis=1, count=n_bits, bitorder="little")


# Bits that do not start at a word's edge


def _cut(words: Words, start: int, count: int) -> Words:
    """Bits start to start + count of every row."""
    first, shift = divmod(start, 64)
    n_words = -(-count // 64)
    low = words[:, first : first + n_words]
    if shift:
        low = low >> np.uint64(shift)
        high = words[:, first + 1 : first + 1 + n_words]
        low[:, : high.shape[1]] |= high << np.uint64(64 - shift)
    if count % 64:
        low = low.copy()
        low[:, -1] &= np.uint64((1 << count % 64) - 1)
    return np.ascontiguousarray(low)  # kernels are compiled for whole rows


def _joined(pieces: Sequence[Words], lengths: Sequence[int]) -> Words:
    shape = (len(pieces[0]), -(-sum(lengths) // 64))
    words: Words = np.zeros(shape, dtype=np.uint64)
    start = 0
    for piece, length in zip(pieces, lengths, strict=True):
        first, shift = divmod(start, 64)
        n_words = piece.shape[1]
        words[:, first : first + n_words] |= piece << np.uint64(shift)
        if shift:
            carried = piece[:, : words.shape[1] - first - 1] >> np.uint64(64 - shift)
            words[:, first + 1 : first + 1 + carried.shape[1]] |= carried
        start += length
    return words


def presence(part: PackedSpins) -> Words:
    """Which values are not missing, also where none are."""
    if part.present is not None:
        return part.present
    everything: Words = np.full_like(np.asarray(part.words), 2**64 - 1)
    return _cut(everything, 0, part.n_samples)


# Files


def _header(packed: PackedSpins, checksum: int) -> bytes:
    """All that stands before the data."""
    mapping = None
    if packed.mapping is not None:
        mapping = [[_jsonable(value) for value in pair] for pair in packed.mapping]
    facts = {
        "n_samples": packed.n_samples,
        "n_spins": packed.n_spins,
        "names": packed.names,
        "mapping": mapping,
        "has_missing": packed.present is not None,
        "crc32": checksum,
    }
    header = json.dumps(facts).encode()
    header += b" " * (-(16 + len(header) + _CHECK) % 64)
    start = MAGIC + (len(header) + _CHECK).to_bytes(8, "little") + header
    return start + _digits(start)


def _digits(start: bytes) -> bytes:
    return f"{zlib.crc32(start):0{_CHECK}x}".encode()


def _require_checksum(packed: PackedSpins, checksum: int, path: Path) -> None:
    """Refuse data that are not those that were written."""
    found = 0
    for words in (packed.words, packed.present):
        flat = np.empty(0, np.uint64) if words is None else words.reshape(-1)
        for start in range(0, len(flat), _BLOCK // 8):
            block = np.ascontiguousarray(flat[start : start + _BLOCK // 8], dtype="<u8")
            found = zlib.crc32(block.data, found)
    if found != checksum:
        raise _damaged(path)


def _damaged(path: Path) -> FileFormatError:
    kind = "a sound file of packed spins"
    return FileFormatError(path=path, kind=kind, problem="its checksum differs")


def _jsonable(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, slots=True)
class _Header:
    """What a file says of its data."""

    n_samples: int
    n_spins: int
    names: Names
    mapping: tuple[Coding, ...] | None
    has_missing: bool
    checksum: int
    offset: int  # bytes before the data

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the data: words, and which values are present, where some are not."""
        return 1 + bool(self.has_missing), self.n_spins, -(-self.n_samples // 64)

    @property
    def has_numbers(self) -> bool:
        """Whether numbers are some, and the flag is one."""
        numbers = (self.n_samples, self.n_spins, self.checksum)
        are_whole = all(type(one) is int and one >= 0 for one in numbers)
        return are_whole and isinstance(self.has_missing, bool)

    @property
    def has_names(self) -> bool:
        """Whether each spin has a name."""
        are_texts = all(isinstance(name, str) for name in self.names)
        return are_texts and len(self.names) == self.n_spins

    @property
    def has_values(self) -> bool:
        """Whether each spin has two values, where there is a mapping."""
        if self.mapping is None:
            return True
        values = [value for pair in self.mapping for value in pair]
        are_plain = all(value is None or isinstance(value, str | int | float) for value in values)
        return are_plain and len(self.mapping) == self.n_spins


def _from_file(path: Path) -> tuple[PackedSpins, int]:
    """Spins that stay on disk, and the checksum they should have."""
    with open(path, "rb") as file:
        header = _read_header(file, path)
    expected = header.offset + 8 * math.prod(header.shape)
    size = path.stat().st_size
    if size != expected:
        raise _no_packed_spins(path, f"it has {size} bytes of {expected}")
    if 0 in header.shape:  # nothing to map
        data: Words = np.zeros(header.shape, dtype=np.uint64)
    else:
        data = np.memmap(path, dtype="<u8", mode="r", offset=header.offset, shape=header.shape)
    present = data[1] if header.has_missing else None
    packed = PackedSpins(data[0], header.n_samples, header.names, present, header.mapping)
    return packed, header.checksum


def _read_header(file: IO[bytes], path: Path) -> _Header:
    start = file.read(16)
    version = start[7:8]
    if start[:7] == MAGIC[:7] and version.isdigit() and version > MAGIC[7:]:
        problem = (
            f"it is of version {version.decode()} of the format, which a newer isingkit has "
            "written; update isingkit"
        )
        raise FileFormatError(path=path, kind="a file for this isingkit", problem=problem)
    if len(start) < 16 or start[:8] not in (MAGIC, _FIRST_MAGIC):
        raise _no_packed_spins(path, f"it does not start with {MAGIC.decode()}")
    length = int.from_bytes(start[8:], "little")
    if length > path.stat().st_size:
        raise _no_packed_spins(path, "its header is longer than the file")
    text = file.read(length)
    if start[:8] == MAGIC:
        text, check = text[:-_CHECK], text[-_CHECK:]
        if check != _digits(start + text):
            raise _damaged(path)
    try:
        return _header_of(json.loads(text), 16 + length)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _no_packed_spins(path, "its header cannot be read") from error


def _header_of(facts: Record, offset: int) -> _Header:
    """What a header says; ValueError or TypeError where that makes no sense."""
    pairs = facts["mapping"]
    mapping = None if pairs is None else tuple((low, high) for low, high in pairs)
    header = _Header(
        n_samples=facts["n_samples"],
        n_spins=facts["n_spins"],
        names=tuple(facts["names"]),
        mapping=mapping,
        has_missing=facts["has_missing"],
        checksum=facts["crc32"],
        offset=offset,
    )
    if not (header.has_numbers and header.has_names and header.has_values):
        raise ValueError("no header of packed spins")
    return header


def _no_packed_spins(path: Path, problem: str) -> FileFormatError:
    return FileFormatError(path=path, kind="a file of packed spins", problem=problem)
