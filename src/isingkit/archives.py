"""Archives of arrays (.npz) as they come from anywhere: nothing is unpickled, and what headers say
is compared with what is there before memory is asked for.
"""

import math
import zipfile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from isingkit.memory import memory_there

ArrayHeader = tuple[tuple[int, ...], bool, np.dtype[Any]]
_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def array_header(stream: IO[bytes], n_bytes: int) -> ArrayHeader:
    """Shape, whether columns rather than rows lie in one piece, and kind of numbers, of an array
    that takes so many bytes with its header; ValueError where that cannot be.
    """
    version = np.lib.format.read_magic(stream)
    if version not in _READERS:
        raise ValueError("an unknown version of the format")
    try:
        shape, is_by_column, dtype = _READERS[version](stream)
    except Exception as error:  # of what reads Python's literals, and of what makes dtypes of them
        raise ValueError("a header that cannot be read") from error
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError("objects are not read")
    if stream.tell() + math.prod(shape) * dtype.itemsize != n_bytes:
        raise ValueError("another number of bytes than its header says")
    return shape, is_by_column, dtype


def arrays_in(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    """All arrays of an archive, by name; ValueError, or an error of zipfile or zlib, where it is
    damaged.
    """
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        there = memory_there()
        if there is not None and sum(member.file_size for member in members) > there:
            raise ValueError("it would take more memory than there is")
        return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(member) as stream:
        shape, is_by_column, dtype = array_header(stream, member.file_size)
        data = stream.read()  # to the end, where zipfile compares checksums
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise ValueError("it ends too early")
    return np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if is_by_column else "C")
