"""Names for the types of arrays; their shapes stand beside the fields and in docstrings."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
SpinArray = NDArray[np.int8]  # -1, +1; 0 where a cell is missing
Pairs = NDArray[np.int64]  # (n, 2): spins, first < second
