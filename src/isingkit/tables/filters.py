"""Columns that hardly ever change are left out, where that is asked for."""

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from isingkit.arrays import BoolArray, FloatArray
from isingkit.exceptions import (
    ConstantColumnWarning,
    EmptyRowsWarning,
    RareColumnsWarning,
    TableFileError,
    warn,
)
from isingkit.missing import MissingPolicy
from isingkit.packing import PackedSpins, Words, apply_missing_policy, presence
from isingkit.spins import warn_of_empty_rows
from isingkit.tables.rows import Reading, ReadOptions

_CHUNK = 1 << 22  # spins looked at in one go


def without_rare(
    read: Callable[[ReadOptions], Reading], options: ReadOptions, min_count: int, max_share: float
) -> Reading:
    """What is read of a file, without columns that hardly ever change; a warning says which.

    Of each column either value must occur in at least `min_count` rows, and none have a larger
    share of rows than `max_share`. Values that are missing in columns which are left out cost no
    row: these go first, and those that complete rows make rare afterwards.
    """
    if min_count <= 0 and max_share >= 1:
        return read(options)
    policy = options.missing
    drops = policy is MissingPolicy.DROP
    first = replace(options, missing=MissingPolicy.PAIRWISE) if drops else options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantColumnWarning)  # for they go
        warnings.simplefilter("ignore", EmptyRowsWarning)  # for there may be more
        every = read(first)
        reading = _common(every, options, min_count, max_share)
        packed, rows = apply_missing_policy(reading.packed, policy)
        if rows is not None and not rows.all():
            reading = _common(reading.of_rows(packed, rows), options, min_count, max_share)
    if policy.keeps_all_rows:
        n_empty = len(reading.left_out)
        warn_of_empty_rows(n_empty, reading.packed.n_samples + n_empty)
    kept = set(reading.packed.names)
    gone = [name for name in every.packed.names if name not in kept]
    if gone:
        n_columns = every.packed.n_spins
        warn(
            RareColumnsWarning(
                columns=gone, n_columns=n_columns, min_count=min_count, max_share=max_share
            )
        )
    return reading


def _common(reading: Reading, options: ReadOptions, min_count: int, max_share: float) -> Reading:
    """The same without rare columns; at least one must stay."""
    n_high, n_known = _counts(reading.packed, reading.counts)
    n_rarer = np.minimum(n_high, n_known - n_high)
    n_commoner = n_known - n_rarer
    stays: BoolArray = (n_rarer >= min_count) & (n_commoner <= max_share * n_known)
    if stays.all():
        return reading
    if not stays.any():
        problem = f"all {len(stays)} columns are rarer than was asked for: none is left"
        raise TableFileError(path=options.path, problem=problem)
    places = np.flatnonzero(stays)
    columns = tuple(reading.columns[j] for j in places) if reading.columns else ()
    return replace(reading, packed=reading.packed[:, places], columns=columns)


def _counts(packed: PackedSpins, counts: FloatArray | None) -> tuple[np.ndarray, np.ndarray]:
    """(n_spins,) both: rows in which a column is high, and in which it is known, each as often as
    it was counted.
    """
    if counts is None:
        return _n_bits(packed.words), _n_bits(presence(packed))
    n_high = np.zeros(packed.n_spins)
    n_known = np.zeros(packed.n_spins)
    step = max(1, _CHUNK // packed.n_spins)
    for start in range(0, packed.n_samples, step):
        spins = np.asarray(packed[start : start + step])
        here = counts[start : start + step]
        n_high += here @ (spins > 0)
        n_known += here @ (spins != 0)
    return n_high, n_known


def _n_bits(words: Words) -> np.ndarray:
    return np.bitwise_count(words).sum(axis=1, dtype=np.int64)
