"""Lineages: how many causes explain what nearly all pairs of a wide table share.

Rows of few lineages are mixtures of few profiles: the same number of principal components leaves
nothing of what pairs of columns have in common by these. docs/design/causes.md.
"""

import numpy as np
from scipy.linalg import eigh

from isingkit.arrays import FloatArray
from isingkit.packing import PackedSpins

MOST = 30  # causes
_ROWS, _COLUMNS = 2048, 2048  # that are looked at, spread over the table
_PROBED = 256  # of these columns, whose pairs tell what is left
_LEFT = 1.1  # mean squared z-score of pairs that is as good as that of independent rows
_CLIPPED = 9.0  # squared z-score
_ONE_MORE_IN = 4  # causes
_NOTHING = 1e-12


def n_lineages(packed: PackedSpins, fewest: int) -> int | None:
    """So many causes that they leave next to nothing, and a quarter more, for lineages have parts;
    at least `fewest`. None where even `MOST` leave more.
    """
    values = _standardised(packed)
    n_rows, n_columns = values.shape
    most = min(MOST, n_rows - 2)
    last = n_rows - 1
    among_rows = values @ values.T
    axes = eigh(among_rows, subset_by_index=(last - most + 1, last), driver="evr")[1][:, ::-1]
    probed = values[:, :: -(-n_columns // _PROBED)].astype(np.float64)
    if _left(probed, axes[:, :most]) > _LEFT:
        return None
    low, high = fewest - 1, most  # too few, perhaps; and enough
    while high - low > 1:
        middle = (low + high) // 2
        if _left(probed, axes[:, :middle]) > _LEFT:
            low = middle
        else:
            high = middle
    return min(high + high // _ONE_MORE_IN, most)


def _standardised(packed: PackedSpins) -> FloatArray:
    """(n_rows, n_columns): some rows and columns, of mean 0 and variance 1; in single precision."""
    rows = np.arange(0, packed.n_samples, -(-packed.n_samples // _ROWS))
    columns = np.arange(0, packed.n_spins, -(-packed.n_spins // _COLUMNS))
    values = np.asarray(packed[:, columns], dtype=np.float32)[rows]
    values -= values.mean(axis=0)
    spread = values.std(axis=0)
    return np.asarray(values[:, spread > 0] / spread[spread > 0])


def _left(values: FloatArray, axes: FloatArray) -> float:
    """Mean squared z-score of pairs of columns given some axes of rows.

    Clipped, for few pairs are coupled; n axes leave M - n of M degrees of freedom, which makes
    squares larger by M / (M - n).
    """
    left = values - axes @ (axes.T @ values)
    scores = left.T @ left
    squares = left**2
    variances = squares.T @ squares
    pairs = np.triu_indices(values.shape[1], 1)
    of_pairs = np.maximum(variances[pairs], _NOTHING)
    clipped = np.minimum(scores[pairs] ** 2 / of_pairs, _CLIPPED)
    return float(clipped.mean()) * (1 - axes.shape[1] / len(values))
