"""Gram: the pair sums that every linear estimator needs, exact and mergeable."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isingkit._kernels import gram as kernels
from isingkit._kernels import lookup_popcount
from isingkit._kernels.threads import blas_threads_for, parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.exceptions import ModelMismatchError
from isingkit.memory import require_memory
from isingkit.packing import PackedSpins, Words, pack, require_same_coding, unpacked
from isingkit.spins import Coding, Names, RowWeights, row_weights

_MATRICES = 3  # of all pairs that a linear estimator holds at a time, at least
_LEAST_ROWS = 16  # of a task: a thread costs as much as a few
_ROUNDING = 1e-12  # by which factors may be off
_FEW = 1 << 23  # products that numpy adds in milliseconds: nothing to compile for them
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
    n_rows: int  # samples of positive weight, each as often as it was counted
    names: Names
    joint: Joint | None = None  # None where no value is missing
    # values of the table that became -1 and +1, where it was one
    mapping: tuple[Coding, ...] | None = None
    # sum of squares of weights; None where samples have none, so that it is their number
    squares: float | None = None

    def __repr__(self) -> str:
        return f"Gram({self.n_samples:g} samples of {self.n_spins} spins)"

    @property
    def n_spins(self) -> int:
        return len(self.spin_sums)

    @property
    def n_effective(self) -> float:
        """Samples of equal weight that would tell as much: (sum w)^2 / sum w^2."""
        if self.squares is None:
            return float(self.n_samples)
        return float(self.n_samples**2 / self.squares) if self.squares > 0 else 0.0

    @property
    def changes(self) -> BoolArray:
        """(n_spins,): spins that are not constant, whatever rounding weights have made."""
        totals = self.n_samples if self.joint is None else np.diagonal(self.joint.counts)
        return np.asarray(np.abs(self.spin_sums) < totals * (1 - _ROUNDING))

    def in_samples(self) -> "Gram":
        """The sums that penalties are weighed against.

        Weights are multiplied so that they add up to `n_effective`, whole numbers or not; counts
        are samples, and stay.
        """
        if self.squares is None or self.squares == 0:
            return self
        factor = float(self.n_samples / self.squares)
        if abs(factor - 1) < _ROUNDING:  # they do already
            return self
        joint = None
        if self.joint is not None:
            joint = Joint(self.joint.counts * factor, self.joint.spin_sums * factor)
        return replace(
            self,
            sums=self.sums * factor,
            spin_sums=self.spin_sums * factor,
            n_samples=self.n_samples * factor,
            squares=self.squares * factor**2,
            joint=joint,
        )

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
            _squares(self, other),
        )


def _squares(left: Gram, right: Gram) -> float | None:
    if left.squares is None and right.squares is None:
        return None
    own = [stat.n_samples if stat.squares is None else stat.squares for stat in (left, right)]
    return float(sum(own))


def _joint(stat: Gram) -> Joint:
    if stat.joint is not None:
        return stat.joint
    shape = (stat.n_spins, stat.n_spins)
    return Joint(np.full(shape, stat.n_samples), np.broadcast_to(stat.spin_sums[:, None], shape))


def gram(
    spins: Any, *, sample_weight: Any = None, counts: Any = None, n_jobs: int | None = None
) -> Gram:
    """Gram of PackedSpins, or of anything `pack` takes: exact integers, the same for any number of
    threads.

    Parameters
    ----------
    spins
        The samples.
    sample_weight
        How much each row matters: one number >= 0 for each; whole numbers keep the sums integers.
    counts
        How many equal samples each row stands for: whole numbers >= 0.
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
    return gram_of(packed, row_weights(sample_weight, counts, packed.n_samples), n_jobs)


def gram_of(packed: PackedSpins, weights: RowWeights | None, n_jobs: int | None = None) -> Gram:
    """Gram of samples, and of what their rows count for."""
    if weights is not None and not weights.are_plain:
        with blas_threads_for(packed.n_spins):
            return _weighted(packed, weights)
    n_spins = packed.n_spins
    require_memory(_MATRICES * 8 * n_spins**2, n_spins=n_spins, n_samples=packed.n_samples)
    shape = (n_spins, n_spins)
    rows_a_task = max(_LEAST_ROWS, n_spins // 64)
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
    elif n_spins**2 * packed.n_samples <= _FEW:
        values = unpacked(packed.words, packed.n_samples, np.float64)
        sums[:] = values @ values.T  # whole numbers, and small: exact
        ones[:] = values.sum(axis=1)
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
    sums: IntArray,
    spin_sums: IntArray,
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


def _weighted(packed: PackedSpins, weights: RowWeights) -> Gram:
    """Weighted sums by matrix products, a chunk of samples at a time."""
    n_spins = packed.n_spins
    sums, counts, joint_sums = (np.zeros((n_spins, n_spins)) for _ in range(3))
    ones = np.zeros(n_spins)
    step = max(64, (1 << 24) // n_spins // 64 * 64)
    for start in range(0, packed.n_samples, step):
        values = np.asarray(packed[start : start + step], dtype=np.float64)
        weighted = weights.totals[start : start + step, None] * values
        sums += values.T @ weighted
        ones += weighted.sum(axis=0)
        if packed.present is not None:
            counts += np.abs(weighted).T @ np.abs(values)
            joint_sums += weighted.T @ np.abs(values)
    total = float(weights.totals.sum())
    exact = weights.are_whole  # then products and sums were, too

    def kept(array: FloatArray) -> NDArray[Any]:
        return array.astype(np.int64) if exact else array

    joint = None if packed.present is None else Joint(kept(counts), kept(joint_sums))
    squares = None if weights.are_counts else float(weights.squares.sum())
    return Gram(
        sums=kept((sums + sums.T) / 2),
        spin_sums=kept(ones),
        n_samples=int(total) if exact else total,
        n_rows=weights.n_samples,
        names=packed.names,
        joint=joint,
        mapping=packed.mapping,
        squares=squares,
    )
