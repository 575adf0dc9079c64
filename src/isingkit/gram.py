"""Gram: the pair sums that every linear estimator needs, exact and mergeable."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isingkit._kernels import gram as kernels
from isingkit._kernels import lookup_popcount
from isingkit._kernels.threads import blas_threads_for, parallel_map
from isingkit.exceptions import ModelMismatchError
from isingkit.memory import require_memory
from isingkit.packing import PackedSpins, Words, pack, require_same_coding
from isingkit.spins import Coding, as_weights

_MATRICES = 3  # of all pairs that a linear estimator holds at a time, at least
_LEAST_ROWS = 16  # of a task: a thread costs as much as a few
_SLAB_BYTES = 1 << 25  # nibbles held at a time: each slab costs a pass over the sums


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """What pair sums need beside them where values are missing: over the rows in which spins i and
    j are both present ...
    """

    counts: NDArray[Any]  # (n_spins, n_spins): ... their number, or total weight
    spin_sums: NDArray[Any]  # (n_spins, n_spins): ... the sum of spin i

    def __add__(self, other: "Joint") -> "Joint":
        return Joint(self.counts + other.counts, self.spin_sums + other.spin_sums)


@dataclass(frozen=True, slots=True, eq=False)
class Gram:
    """Sums over samples of all products of two spins. Grams of chunks of the data add up to the
    Gram of the whole.
    """

    sums: NDArray[
        Any
    ]  # (n_spins, n_spins): S'S, int64, or float64 where weights are not whole numbers
    spin_sums: NDArray[Any]  # (n_spins,)
    n_samples: float  # rows, or their total weight
    n_rows: int  # rows of positive weight
    names: tuple[str, ...]
    joint: Joint | None = None  # None where no value is missing
    # values of the table that became -1 and +1, where it was one
    mapping: tuple[Coding, ...] | None = None

    def __repr__(self) -> str:
        return f"Gram({self.n_samples:g} samples of {self.n_spins} spins)"

    @property
    def n_spins(self) -> int:
        return len(self.spin_sums)

    @property
    def n_effective(self) -> float:
        """Samples that the data count as: their total weight, but each row at least as one, for
        weights may be mere shares.
        """
        return max(float(self.n_samples), float(self.n_rows))

    def __add__(self, other: "Gram") -> "Gram":
        if not isinstance(other, Gram):
            return NotImplemented
        if self.names != other.names:
            raise ModelMismatchError(left=self.names, right=other.names, what="both Grams")
        require_same_coding(self.names, self.mapping, other.mapping)
        joint = None
        if self.joint is not None or other.joint is not None:
            joint = _joint(self) + _joint(other)
        return Gram(
            self.sums + other.sums,
            self.spin_sums + other.spin_sums,
            self.n_samples + other.n_samples,
            self.n_rows + other.n_rows,
            self.names,
            joint,
            self.mapping or other.mapping,
        )


def _joint(stat: Gram) -> Joint:
    if stat.joint is not None:
        return stat.joint
    shape = (stat.n_spins, stat.n_spins)
    return Joint(np.full(shape, stat.n_samples), np.broadcast_to(stat.spin_sums[:, None], shape))


def gram(spins: Any, *, sample_weight: Any = None, n_jobs: int | None = None) -> Gram:
    """Gram of PackedSpins, or of anything `pack` takes: exact integers, the same for any number of
    threads.

    Parameters
    ----------
    spins
        The samples.
    sample_weight
        One weight >= 0 for each sample; whole numbers count repeated rows and keep the sums
        integers.
    n_jobs
        Threads to use; None or -1 is all.

    Examples
    --------
    >>> from isingkit import gram
    >>> gram([[0, 1], [1, 1], [1, 0]]).sums
    array([[ 3, -1],
           [-1,  3]])
    """
    packed = pack(spins)
    if sample_weight is not None:
        with blas_threads_for(packed.n_spins):
            return _weighted(packed, as_weights(sample_weight, packed.n_samples))
    n_spins = packed.n_spins
    require_memory(_MATRICES * 8 * n_spins**2, n_spins=n_spins, n_samples=packed.n_samples)
    shape, rows_a_task = (n_spins, n_spins), max(_LEAST_ROWS, n_spins // 64)
    sums = np.empty(shape, np.int64)
    if packed.present is not None:
        joint = Joint(np.empty(shape, np.int64), np.empty(shape, np.int64))
        arrays = (packed.words, packed.present, sums, joint.counts, joint.spin_sums)
        parallel_map(kernels.masked_pair_sums, n_spins, *arrays, chunk=rows_a_task, n_jobs=n_jobs)
        return Gram(
            sums,
            np.diagonal(joint.spin_sums).copy(),
            packed.n_samples,
            packed.n_samples,
            packed.names,
            joint,
            packed.mapping,
        )
    ones = np.empty(n_spins, np.int64)
    if packed.n_samples == 0:
        sums[:], ones[:] = 0, 0
    elif lookup_popcount.is_fastest():
        _sums_by_lookup(packed.words, packed.n_samples, sums, ones, n_jobs)
    else:
        parallel_map(
            kernels.pair_sums,
            n_spins,
            packed.words,
            packed.n_samples,
            sums,
            chunk=rows_a_task,
            n_jobs=n_jobs,
        )
        parallel_map(
            kernels.spin_sums,
            n_spins,
            packed.words,
            packed.n_samples,
            ones,
            chunk=rows_a_task,
            n_jobs=n_jobs,
        )
    return Gram(sums, ones, packed.n_samples, packed.n_samples, packed.names, None, packed.mapping)


def _sums_by_lookup(
    words: Words,
    n_samples: int,
    sums: NDArray[np.int64],
    spin_sums: NDArray[np.int64],
    n_jobs: int | None,
) -> None:
    """Pair and spin sums by table look-up, a slab of samples at a time so that its nibbles take
    little memory.
    """
    words = np.ascontiguousarray(words)
    n_spins, n_words = words.shape
    n_blocks, n_strips = (
        -(-n_spins // lookup_popcount.COLUMNS),
        -(-n_spins // lookup_popcount.STRIP),
    )
    slab = min(n_words, max(64, _SLAB_BYTES // (16 * lookup_popcount.COLUMNS * n_blocks)))
    room = lookup_popcount.strips(n_blocks, slab)
    spin_sums[:] = -n_samples
    for start in range(0, n_words, slab):
        stop = min(start + slab, n_words)
        n_steps = lookup_popcount.steps_of(stop - start)
        parallel_map(
            lookup_popcount.split,
            n_blocks,
            words,
            start,
            stop,
            n_steps,
            room,
            spin_sums,
            n_jobs=n_jobs,
        )
        counted = (room, n_steps, lookup_popcount.TABLES, n_samples if start == 0 else -1, sums)
        parallel_map(lookup_popcount.subtract_differences, n_strips, *counted, n_jobs=n_jobs)
    parallel_map(kernels.mirror, n_spins, sums, chunk=64, n_jobs=n_jobs)


def _weighted(packed: PackedSpins, weights: NDArray[np.float64]) -> Gram:
    """Weighted sums by matrix products, a chunk of samples at a time."""
    n_spins = packed.n_spins
    sums, counts, joint_sums = (np.zeros((n_spins, n_spins)) for _ in range(3))
    ones = np.zeros(n_spins)
    step = max(64, (1 << 24) // n_spins // 64 * 64)
    for start in range(0, packed.n_samples, step):
        values = np.asarray(packed[start : start + step], dtype=np.float64)
        weighted = weights[start : start + step, None] * values
        sums += values.T @ weighted
        ones += weighted.sum(axis=0)
        if packed.present is not None:
            counts += np.abs(weighted).T @ np.abs(values)
            joint_sums += weighted.T @ np.abs(values)
    total = float(weights.sum())
    # then products and sums were, too
    exact = bool((weights == np.rint(weights)).all()) and total < 2**53

    def kept(array: NDArray[np.float64]) -> NDArray[Any]:
        return array.astype(np.int64) if exact else array

    joint = None if packed.present is None else Joint(kept(counts), kept(joint_sums))
    n_samples, n_rows = int(total) if exact else total, int(np.count_nonzero(weights))
    return Gram(
        kept((sums + sums.T) / 2),
        kept(ones),
        n_samples,
        n_rows,
        packed.names,
        joint,
        packed.mapping,
    )
