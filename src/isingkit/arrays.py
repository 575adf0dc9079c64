"""Names for the types of arrays, whose shapes stand beside the fields and in docstrings; and their
numbers, each once.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
SpinArray = NDArray[np.int8]  # -1, +1; 0 where a cell is missing
Pairs = NDArray[np.int64]  # (n, 2): spins, first < second


def distinct(*numbers: IntArray) -> IntArray:
    """Each number of one or more arrays once, in order, as np.unique and np.union1d have it.

    By sorting: NumPy 2.4 puts them into a table of hashes, which takes a hundred times as long for
    a million keys of pairs.
    """
    every = np.sort(np.concatenate(numbers, axis=None))
    is_first = np.ones(len(every), dtype=np.bool_)
    is_first[1:] = every[1:] != every[:-1]
    return np.asarray(every[is_first])
