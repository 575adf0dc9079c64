"""Columns that hardly ever change are left out, where that is asked for."""

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from isingkit.exceptions import ConstantColumnWarning, RareColumnsWarning, TableFileError, warn
from isingkit.packing import PackedSpins, Words, presence
from isingkit.tables.rows import Reading, ReadOptions


def without_rare(
    read: Callable[[ReadOptions], Reading], options: ReadOptions, min_count: int, max_share: float
) -> Reading:
    """What is read of a file, without columns that hardly ever change; a warning says which.

    Of each column either value must occur in at least `min_count` rows, and none have a larger
    share of rows than `max_share`.
    """
    if min_count <= 0 and max_share >= 1:
        return read(options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantColumnWarning)  # for they go
        reading = read(options)
    packed = reading.packed
    n_high, n_known = _counts(packed)
    n_rarer = np.minimum(n_high, n_known - n_high)
    n_commoner = n_known - n_rarer
    stays = (n_rarer >= min_count) & (n_commoner <= max_share * n_known)
    if stays.all():
        return reading
    gone = [packed.names[j] for j in np.flatnonzero(~stays)]
    if not stays.any():
        problem = f"all {len(gone)} columns are rarer than was asked for: none is left"
        raise TableFileError(path=options.path, problem=problem)
    warn(
        RareColumnsWarning(
            columns=gone, n_columns=packed.n_spins, min_count=min_count, max_share=max_share
        )
    )
    return replace(reading, packed=packed[:, np.flatnonzero(stays)])


def _counts(packed: PackedSpins) -> tuple[np.ndarray, np.ndarray]:
    """(n_spins,) both: rows in which a column is high, and in which it is known."""
    return _n_bits(packed.words), _n_bits(presence(packed))


def _n_bits(words: Words) -> np.ndarray:
    return np.bitwise_count(words).sum(axis=1, dtype=np.int64)
