"""PackedSpins: 64 samples a word, one row of words a spin.

The file format (`save`, `load`, `map`), version 1, little-endian:

    8 bytes     ISINGPK1
    8 bytes     length of the header
    header      JSON in UTF-8, padded with spaces so that the data starts at a multiple of 64 bytes:
                n_samples, n_spins, names, mapping, has_missing, crc32 (of the data)
    data        n_spins rows of ceil(n_samples / 64) uint64 words; bit b of word w is sample 64 w +
    b, 1 for +1
    data        only if has_missing: as many words, whose bits say which values are present
"""

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isingkit._kernels.packing import pack_words, unpack_rows
from isingkit._kernels.threads import parallel_map
from isingkit.atomic import replacing
from isingkit.exceptions import (
    CodingMismatchError,
    ColumnNamesError,
    EmptyTableError,
    FileFormatError,
    MissingValuesError,
    ModelMismatchError,
)
from isingkit.spins import Coding, Spins, as_spins

MAGIC = b"ISINGPK1"
Words = NDArray[np.uint64]
_CHUNK = 1 << 22  # values unpacked in one go


@dataclass(frozen=True, slots=True, eq=False)
class PackedSpins:
    """Spins as bits: an eighth of int8, a sixty-fourth of float64. `np.asarray` gives int8
    (n_samples, n_spins) back.

    Samples are sliced as in an array, `packed[:100]`, `packed[rows]`, and so are spins, `packed[:,
    columns]`.
    """

    words: (
        Words  # (n_spins, n_words): bit b of word w is sample 64 w + b; bits past n_samples are 0
    )
    n_samples: int
    names: tuple[str, ...]
    present: Words | None = None  # like words: which values are not missing; None when none are
    mapping: tuple[Coding, ...] | None = (
        None  # values of the table that became -1 and +1, where it was one
    )

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
            present = _joined([_presence(part) for part in parts], lengths)
        words = _joined([part.words for part in parts], lengths)
        return PackedSpins(words, sum(lengths), first.names, present, first.mapping)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file whole or not at all."""
        arrays = [np.ascontiguousarray(self.words, dtype="<u8")]
        if self.present is not None:
            arrays.append(np.ascontiguousarray(self.present, dtype="<u8"))
        checksum = 0
        for array in arrays:
            checksum = zlib.crc32(array.data, checksum)
        header = json.dumps(
            {
                "n_samples": self.n_samples,
                "n_spins": self.n_spins,
                "names": self.names,
                "mapping": None
                if self.mapping is None
                else [[_jsonable(v) for v in pair] for pair in self.mapping],
                "has_missing": self.present is not None,
                "crc32": checksum,
            }
        ).encode()
        header += b" " * (-(16 + len(header)) % 64)
        with replacing(path) as temporary, open(temporary, "wb") as file:
            file.write(MAGIC + len(header).to_bytes(8, "little") + header)
            for array in arrays:
                array.tofile(file)

    @staticmethod
    def map(path: str | os.PathLike[str]) -> "PackedSpins":
        """Spins that stay on disk and are read as they are needed; the checksum is not looked
        at.
        """
        return _from_file(Path(path))[0]

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "PackedSpins":
        """Spins read into memory, with their checksum verified."""
        mapped, checksum = _from_file(Path(path))
        words = np.array(mapped.words)
        present = None if mapped.present is None else np.array(mapped.present)
        found = zlib.crc32(words.data)
        if present is not None:
            found = zlib.crc32(present.data, found)
        if found != checksum:
            raise FileFormatError(
                path=Path(path), kind="a sound file of packed spins", problem="its checksum differs"
            )
        return PackedSpins(words, mapped.n_samples, mapped.names, present, mapped.mapping)


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


def require_same_coding(
    names: Sequence[str], left: tuple[Coding, ...] | None, right: tuple[Coding, ...] | None
) -> None:
    """Refuse parts of one table that were read with different codings."""
    for name, mine, its in zip(names, left or (), right or (), strict=False):
        if mine != its:
            raise CodingMismatchError(column=name, left=mine, right=its)


def values_seen(packed: PackedSpins) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which spins are -1 in some sample, and which are +1."""
    return np.asarray((_presence(packed) & ~packed.words).any(axis=1)), np.asarray(
        packed.words.any(axis=1)
    )


def recoded(packed: PackedSpins, mapping: Sequence[Coding]) -> PackedSpins:
    """The same samples read with another coding; refused where that lacks a value that occurs."""
    flipped = np.zeros(packed.n_spins, dtype=bool)
    for j, (is_low, is_high) in enumerate(zip(*values_seen(packed), strict=True)):
        own, wanted = (packed.mapping or mapping)[j], mapping[j]
        seen = [
            (value, spin)
            for value, spin, there in ((own[0], -1, is_low), (own[1], 1, is_high))
            if there
        ]
        becomes = {wanted[0]: -1, wanted[1]: 1}
        signs = {becomes.get(value, 0) * spin for value, spin in seen}
        if not signs <= {1} and signs != {-1}:
            raise CodingMismatchError(column=packed.names[j], left=tuple(wanted), right=own)
        flipped[j] = signs == {-1}
    words = np.array(packed.words)
    words[flipped] ^= _presence(packed)[flipped]
    return PackedSpins(words, packed.n_samples, packed.names, packed.present, tuple(mapping))


def apply_missing_policy(
    packed: PackedSpins, missing: str
) -> tuple[PackedSpins, NDArray[np.bool_] | None]:
    """What `missing` asks of spins that lack some values, and which samples are left; None when all
    are.
    """
    if packed.present is None or missing == "pairwise":
        return packed, None
    if missing == "error":
        raise MissingValuesError(counts=_missing_counts(packed), n_samples=packed.n_samples)
    complete = np.bitwise_and.reduce(packed.present, axis=0)
    rows = unpacked(complete[np.newaxis], packed.n_samples, np.int8)[0] > 0
    if not rows.any():
        raise EmptyTableError(n_samples=0, n_spins=packed.n_spins, dropped=packed.n_samples)
    parts = []
    for here in _spans(packed):
        kept = rows[64 * here.start : 64 * here.stop]
        values = unpacked(np.ascontiguousarray(packed.words[:, here]), len(kept), np.int8).T
        parts.append(_packed(values[kept], packed.names, packed.mapping, has_missing=False))
    return PackedSpins.concatenate(parts), rows


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
    values = np.empty((len(words), n_samples), dtype=dtype)
    parallel_map(
        unpack_rows, len(words), words, values, chunk=max(1, (1 << 20) // max(1, n_samples))
    )
    return values


def _packed(
    values: NDArray[np.int8],
    names: tuple[str, ...],
    mapping: tuple[Coding, ...] | None,
    has_missing: bool,
) -> PackedSpins:
    words = bits(values)
    present = bits((values != 0).view(np.int8)) if has_missing else None
    return PackedSpins(words, len(values), names, present, mapping)


def bits(values: NDArray[np.int8]) -> Words:
    """Words of values (n_samples, n_spins), a bit 1 where one is positive: (n_spins, n_words)."""
    n_samples, n_spins = values.shape
    words: Words = np.empty((n_spins, -(-n_samples // 64)), dtype=np.uint64)
    parallel_map(
        pack_words,
        words.shape[1],
        np.ascontiguousarray(values),
        words,
        chunk=max(1, (1 << 14) // max(1, n_spins)),
    )
    return words


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
    words: Words = np.zeros((len(pieces[0]), -(-sum(lengths) // 64)), dtype=np.uint64)
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


def _presence(part: PackedSpins) -> Words:
    """Which values are not missing, also where none are."""
    if part.present is not None:
        return part.present
    everything: Words = np.full_like(np.asarray(part.words), 2**64 - 1)
    return _cut(everything, 0, part.n_samples)


# Files


def _jsonable(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _from_file(path: Path) -> tuple[PackedSpins, int]:
    kind = "a file of packed spins"
    with open(path, "rb") as file:
        start = file.read(16)
        if start[:7] == MAGIC[:7] and start[7:8].isdigit() and start[7:8] > MAGIC[7:]:
            problem = f"it is of version {start[7:8].decode()} of the format, which a newer isingkit has written; update isingkit"
            raise FileFormatError(path=path, kind="a file for this isingkit", problem=problem)
        if len(start) < 16 or start[:8] != MAGIC:
            raise FileFormatError(
                path=path, kind=kind, problem=f"it does not start with {MAGIC.decode()}"
            )
        length = int.from_bytes(start[8:], "little")
        try:
            header = json.loads(file.read(length))
            n_spins, n_samples = header["n_spins"], header["n_samples"]
            names, has_missing, checksum = (
                tuple(header["names"]),
                header["has_missing"],
                header["crc32"],
            )
            mapping = (
                None
                if header["mapping"] is None
                else tuple((low, high) for low, high in header["mapping"])
            )
        except (ValueError, KeyError, TypeError, MemoryError, OverflowError) as error:
            raise FileFormatError(
                path=path, kind=kind, problem="its header cannot be read"
            ) from error
    n_words = -(-n_samples // 64)
    expected = 16 + length + 8 * n_words * n_spins * (2 if has_missing else 1)
    if path.stat().st_size != expected:
        raise FileFormatError(
            path=path, kind=kind, problem=f"it has {path.stat().st_size} bytes of {expected}"
        )
    shape = (2 if has_missing else 1, n_spins, n_words)
    if 0 in shape:  # nothing to map
        data: Words = np.zeros(shape, dtype=np.uint64)
    else:
        data = np.memmap(path, dtype="<u8", mode="r", offset=16 + length, shape=shape)
    return PackedSpins(
        data[0], n_samples, names, data[1] if has_missing else None, mapping
    ), checksum
