r"""Candidates of large networks: stage one tile by tile, keeping only pairs that pass, and stage
two from bits.

Nothing of the size of all pairs is ever in memory. A *band* is a stripe of spins against all later
ones; it is the unit that is recorded on disk, resumed, and sent to a worker of a cluster.
Why so, and what it costs: docs/design/tiles.md.
"""

import hashlib
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array
from tqdm import tqdm

from isingkit import __version__
from isingkit._kernels import estimators as regressions
from isingkit._kernels import lookup_popcount
from isingkit._kernels import tiles as kernels
from isingkit._kernels.threads import n_threads, parallel_map
from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators import sizes
from isingkit.estimators.bits import Bits
from isingkit.estimators.checkpoint import Checkpoint, checkpoint_in
from isingkit.estimators.executor import Run
from isingkit.estimators.primal import Primal
from isingkit.estimators.symmetric import TIE
from isingkit.exceptions import StageTwoError, UnobservedPairWarning, warn
from isingkit.packing import PackedSpins, fingerprint
from isingkit.result_table import Record

_JOINING = 200  # bytes for each pair kept, when bands are put together
# by which the approximate test is more generous than the exact one, relatively: single precision
# errs by less
MARGIN = 1e-4
_PREPARING = threading.Lock()


def n_bands(bits: Bits) -> int:
    """Bands of all spins."""
    return -(-bits.n_spins // sizes.BAND)


def spins_of_band(bits: Bits, number: int) -> IntArray:
    """The spins whose pairs with later ones are one band."""
    end = min((number + 1) * sizes.BAND, bits.n_spins)
    return np.arange(number * sizes.BAND, end)


def bytes_of_responses(bits: Bits) -> int:
    """Memory beyond the bits of a screen on ridge regressions: that of the dual, and a band of
    responses with its tables; or that of all pairs, and a band of these.
    """
    resolvent = bits.resolvent(1.0)
    if isinstance(resolvent, Primal):
        return resolvent.n_bytes + 32 * sizes.BAND * bits.n_spins
    return int(resolvent.n_bytes + bytes_of_sums(bits))


def bytes_of_sums(bits: Bits) -> int:
    """Memory of a band of numbers for each row, with its tables."""
    return 13 * sizes.BAND * bits.n_rows


def settings_of(bits: Bits) -> Record:
    """What all screens of these spins depend on, beside the bits."""
    found: Record = {"centred": bool(bits.sums.any())}
    if not bits.is_complete:
        found["missing"] = "pairwise"
    if bits.weights is not None:
        found["weights"] = _digest(bits.weights.totals)
    if len(bits.covariates):
        found["covariates"] = _digest(bits.covariates)
    return found


def _digest(array: FloatArray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()[:16]


class BandedScreen(Protocol):
    """A way to find the pairs of a band that pass."""

    bits: Bits

    @property
    def n_bytes(self) -> int: ...
    def settings(self) -> Record: ...
    def prepare(self, n_jobs: int | None = None) -> None: ...
    def band(self, number: int, n_jobs: int | None = None) -> "Kept": ...


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Pairs i < j that passed in at least one direction, sorted, with the estimates of both."""

    pairs: IntArray  # (n_kept, 2)
    values: FloatArray  # (n_kept, 2): of j in the regression of i, and of i in that of j


@dataclass(slots=True, eq=False)
class CorrelationScreen:
    """Pairs of large sample correlation: ridge without bound. M / 4 bytes a spin, where look-up
    tables count; else the bits.
    """

    bits: Bits
    prune: float
    _nibbles: Any = field(init=False, default=None)  # made when the first band needs them

    @property
    def n_bytes(self) -> int:
        """Memory beyond the bits themselves."""
        if not self.bits.are_plain:
            return bytes_of_sums(self.bits)
        return self._n_nibbles() if self._by_lookup() else 0

    def settings(self) -> Record:
        """What the result depends on, beside the data."""
        return {"screen": "correlations", "prune": self.prune} | settings_of(self.bits)

    def prepare(self, n_jobs: int | None = None) -> None:
        """Make what all bands need, where it is not there yet."""
        if self._by_lookup():
            self._split(n_jobs)

    def band(self, number: int, n_jobs: int | None = None) -> Kept:
        """Pairs of the spins of one band with all later ones."""
        if self.bits.are_plain:
            return self._counted(number, n_jobs)
        rows = spins_of_band(self.bits, number)
        if not self.bits.is_complete:
            return self._pairwise(rows)
        scales = self.bits.scales
        changing = np.where(np.isfinite(scales), scales, 1.0)
        of_rows = np.stack([1 / changing[rows], np.zeros(len(rows))])
        of_spins = np.stack([1 / scales, np.zeros(len(scales))])
        centred = self.bits.for_signs(self.bits.centred(rows))
        level = self.prune * (1 - MARGIN)
        pairs, sums = self.bits.large_sums(
            centred, level, of_rows, of_spins, after=rows, n_jobs=n_jobs
        )
        i = rows[pairs[:, 0]]
        j = pairs[:, 1]
        values = sums / scales[i] / scales[j]
        return passing(np.column_stack([i, j]), np.column_stack([values, values]), self.prune)

    def _pairwise(self, rows: IntArray) -> Kept:
        """The same where values are missing."""
        found = [Kept(np.empty((0, 2), np.int64), np.empty((0, 2)))]
        for first in range(int(rows[0]), self.bits.n_spins, sizes.BAND):
            values = self.bits.pairwise_correlations(rows, slice(first, first + sizes.BAND))
            i, j = np.nonzero(np.abs(values) > self.prune)
            i, j = (part[rows[i] < first + j] for part in (i, j))
            both = np.column_stack([values[i, j], values[i, j]])
            found.append(passing(np.column_stack([rows[i], first + j]), both, self.prune))
        pairs = np.concatenate([one.pairs for one in found])
        values = np.concatenate([one.values for one in found])
        in_order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        return Kept(pairs[in_order], values[in_order])

    def _counted(self, number: int, n_jobs: int | None) -> Kept:
        """The same where rows count 1, on bits."""
        packed = self.bits.packed
        level = self.prune * (1 - MARGIN)
        n_spins = packed.n_spins
        n_samples = packed.n_samples
        n_blocks = -(-n_spins // lookup_popcount.COLUMNS)
        sums = np.zeros(n_blocks * lookup_popcount.COLUMNS, np.float32)
        scales = np.full(n_blocks * lookup_popcount.COLUMNS, np.inf, np.float32)
        sums[:n_spins] = self.bits.sums
        scales[:n_spins] = self.bits.scales
        ends = [min(k * sizes.BAND, n_spins) for k in (number, number + 1)]
        first, last = (-(-end // lookup_popcount.STRIP) for end in ends)
        if self._by_lookup():
            fixed = (*self._split(n_jobs), lookup_popcount.TABLES, n_samples, sums, scales, level)

            def strips(start: int, stop: int) -> Any:
                return kernels.correlated_by_lookup(first + start, first + stop, *fixed)
        else:

            def strips(start: int, stop: int) -> Any:
                return kernels.correlated_by_popcount(
                    first + start, first + stop, packed.words, n_samples, sums, scales, level
                )

        parts = parallel_map(strips, last - first, n_jobs=n_jobs)
        found = np.concatenate([np.empty((0, 3), np.int64), *parts])
        in_order = np.lexsort((found[:, 1], found[:, 0]))
        return self._checked(found[in_order])

    def _checked(self, found: IntArray) -> Kept:
        """The same numbers as `normal.correlations` has, to the last bit, and the exact test."""
        i, j, differ = found.T
        n_samples = self.bits.packed.n_samples
        sums = self.bits.sums
        scales = self.bits.scales
        products = n_samples - 2 * differ
        forth = (products - sums[i] / n_samples * sums[j]) / scales[i] / scales[j]
        back = (products - sums[j] / n_samples * sums[i]) / scales[j] / scales[i]
        return passing(np.column_stack([i, j]), np.column_stack([forth, back]), self.prune)

    def _by_lookup(self) -> bool:
        if not self.bits.are_plain:
            return False
        return lookup_popcount.is_fastest() and self._n_nibbles() <= sizes.LOOKUP_BYTES

    def _n_nibbles(self) -> int:
        packed = self.bits.packed
        n_blocks = -(-packed.n_spins // lookup_popcount.COLUMNS)
        n_steps = lookup_popcount.steps_of(packed.words.shape[1])
        return n_blocks * lookup_popcount.COLUMNS * n_steps

    def _split(self, n_jobs: int | None) -> tuple[Any, int]:
        n_words = self.bits.packed.words.shape[1]
        n_steps = lookup_popcount.steps_of(n_words)
        if self._nibbles is None:
            self.bits.require_memory(self.n_bytes)
            n_blocks = -(-self.bits.packed.n_spins // lookup_popcount.COLUMNS)
            room = lookup_popcount.strips(n_blocks, n_words)
            words = np.ascontiguousarray(self.bits.packed.words)
            unused = np.zeros(self.bits.packed.n_spins, np.int64)
            parallel_map(
                lookup_popcount.split,
                n_blocks,
                words,
                0,
                n_words,
                n_steps,
                room,
                unused,
                chunk=16,
                n_jobs=n_jobs,
            )
            self._nibbles = room
        return self._nibbles, n_steps


@dataclass(slots=True, eq=False)
class RidgeScreen:
    """Pairs of large ridge estimate. Sums of all pairs are approximate; what could pass is
    computed again in double precision.
    """

    bits: Bits
    ridge: float
    prune: float
    _resolvent: Any = field(init=False, default=None)
    _left: Any = field(init=False, default=None)

    @property
    def n_bytes(self) -> int:
        """Memory beyond the bits themselves."""
        return bytes_of_responses(self.bits)

    def settings(self) -> Record:
        """What the result depends on, beside the data."""
        found = {"screen": "ridge", "ridge": self.ridge, "prune": self.prune}
        return found | settings_of(self.bits)

    def prepare(self, n_jobs: int | None = None) -> None:
        """Make what all bands need, where it is not there yet."""
        if self._left is None:
            self.bits.require_memory(self.n_bytes)
            self._resolvent = self.bits.resolvent(self.ridge)
            self._resolvent.prepare()
            self._left = self._resolvent.left(n_jobs)

    def band(self, number: int, n_jobs: int | None = None) -> Kept:
        """Pairs of the spins of one band with all later ones."""
        self.prepare(n_jobs)
        rows = spins_of_band(self.bits, number)
        share = 1 / self._left
        if isinstance(self._resolvent, Primal):
            return self._of_matrix(rows, share)
        y = self.bits.for_signs(self._resolvent.responses(rows, n_jobs))
        least = share.min()
        ones = np.ones(
            len(share)
        )  # the larger of two shares is at most their sum less the smallest of all
        of_rows = np.stack([share[rows], ones[rows]])
        of_spins = np.stack([ones, share - least])
        level = self.prune * (1 - MARGIN)
        pairs, products = self.bits.large_sums(
            y, level, of_rows, of_spins, after=rows, is_centred=True, n_jobs=n_jobs
        )
        pairs[:, 0] = rows[pairs[:, 0]]
        return passing(pairs, products[:, None] * share[pairs], self.prune)

    def _of_matrix(self, rows: IntArray, share: FloatArray) -> Kept:
        """The same where estimates of all pairs are at hand."""
        changes = self.bits.changes
        penalty = self.ridge * self.bits.n_spins
        products = -penalty * self._resolvent.rows(rows)
        least = self.prune * (1 - MARGIN) / np.maximum(share[rows, None], share)
        is_large = (np.abs(products) > least) & changes[rows, None] & changes
        i, j = np.nonzero(is_large)
        later = j > rows[i]
        pairs = np.column_stack([rows[i], j])[later]
        return passing(pairs, products[i, j][later, None] * share[pairs], self.prune)


def passing(pairs: IntArray, values: FloatArray, prune: float) -> Kept:
    passes = (np.abs(values) > prune + TIE).any(axis=1)
    return Kept(pairs[passes], values[passes])


def screened(
    screen: BandedScreen,
    packed: PackedSpins,
    *,
    checkpoint: Path | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
    run: Run | None = None,
) -> Kept:
    """All pairs that pass. With a checkpoint, finished bands are recorded there, and those recorded
    earlier are not done again.

    `run` does bands elsewhere, in any order; by default they are done one after the other, here.
    """
    bands: dict[int, Kept] = {}
    records = None
    if checkpoint is not None:
        records = _checkpoint(checkpoint, screen, packed)
        recorded = records.read(range(n_bands(screen.bits)))
        bands = {number: Kept(**arrays) for number, arrays in recorded.items()}
    n_kept = sum(len(kept.pairs) for kept in bands.values())
    left = [number for number in range(n_bands(screen.bits)) if number not in bands]
    if run is None:
        done = enumerate(screen.band(number, n_jobs) for number in left)
    else:
        done = run(_one_band, screen, left)  # type: ignore[assignment]
    work = [packed.n_spins - number * sizes.BAND for number in range(n_bands(screen.bits))]
    with _bar(screen, packed, sum(work), progress) as bar:
        bar.initial = bar.n = sum(work[number] for number in bands)
        for place, kept in done:
            number = left[place]
            bands[number] = kept
            n_kept += len(kept.pairs)
            screen.bits.require_memory(_JOINING * n_kept)
            bar.update(work[number])
            if records is not None:
                records.write(number, pairs=kept.pairs, values=kept.values)
    ordered = [bands[number] for number in range(n_bands(screen.bits))]
    pairs = np.concatenate([kept.pairs for kept in ordered])
    kept = Kept(pairs, np.concatenate([kept.values for kept in ordered]))
    return _told_apart(kept, screen.bits)


def _told_apart(kept: Kept, bits: Bits) -> Kept:
    """Without pairs never present together, of which a warning names those that passed."""
    together = bits.seen_together(kept.pairs)
    if together.all():
        return kept
    unobserved = kept.pairs[~together]
    warn(UnobservedPairWarning(pairs=[(bits.names[i], bits.names[j]) for i, j in unobserved]))
    return Kept(kept.pairs[together], kept.values[together])


def _bar(screen: BandedScreen, packed: PackedSpins, total: int, progress: bool) -> Any:
    held = packed.words.nbytes + screen.n_bytes
    label = f"screening pairs, {held / 1e9:.1f} GB and what passes"
    hidden = not progress
    return tqdm(total=total, desc=label, unit=" spins", unit_scale=True, disable=hidden, delay=1)


def _one_band(screen: BandedScreen, number: int) -> Kept:
    """What a thread of a worker does. One thread makes what all bands need, while those beside it
    wait.
    """
    with _PREPARING:
        screen.prepare(1)
    return screen.band(number, 1)


def _checkpoint(folder: Path, screen: BandedScreen, packed: PackedSpins) -> Checkpoint:
    """Where bands of the same data with the same settings are recorded."""
    facts = {"data": fingerprint(packed), "band": sizes.BAND, "version": __version__}
    return checkpoint_in(folder, screen.settings() | facts)


def as_candidates(kept: Kept, n_spins: int, prune: float) -> csr_array:
    """(n_spins, n_spins): row i the estimates of stage one that pass in the regression of
    spin i.
    """
    i, j = kept.pairs.T
    rows = np.concatenate([i, j])
    columns = np.concatenate([j, i])
    values = np.concatenate([*kept.values.T])
    passes = np.abs(values) > prune + TIE
    places = (rows[passes], columns[passes])
    matrix = csr_array((values[passes], places), shape=(n_spins, n_spins))
    matrix.sort_indices()
    return matrix


def regressions_on_candidates(
    bits: Bits, candidates: csr_array, most: int, n_jobs: int | None
) -> Any:
    """Least squares of each spin on its candidates, CSR like them; pair sums are counted where they
    are needed.
    """
    estimates = np.zeros(candidates.nnz)
    indptr = candidates.indptr.astype(np.int64)
    indices = candidates.indices.astype(np.int64)
    n_chunks = 8 * n_threads(n_jobs)
    chunk = max(1, min(1024, bits.n_spins // n_chunks))
    fixed = (bits.source, indptr, indices, most, 0.0, estimates)
    failed = parallel_map(
        regressions.regressions_on_candidates, bits.n_spins, *fixed, chunk=chunk, n_jobs=n_jobs
    )
    for spin in failed:
        if spin >= 0:
            n_unknowns = int(indptr[spin + 1] - indptr[spin])
            raise StageTwoError(spin=bits.packed.names[spin], n_unknowns=n_unknowns, most=most)
    return csr_array((estimates, indices, indptr), shape=candidates.shape)
