"""Excess: rows that differ in fewer columns than independent ones would."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.random import Generator
from scipy.optimize import nnls
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.special import ndtr

from isingkit._kernels import row_dependence as kernels
from isingkit._kernels.sampling import LANES
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import FloatArray, IntArray, SpinArray
from isingkit.estimators.imputation import impute, network_of
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins, Words, as_bits, bits
from isingkit.worlds.sampling import number_chains

_COLUMNS = 512  # more than enough to tell whether two rows are alike
_PAIRS = 5_000_000  # of rows, beyond which only some rows are compared with all others
_FEWEST_QUERIES = 50
_CHUNK = 64  # rows
_LAGGED_CHUNK = 1 << 13
_FEW = 512  # rows whose bits numpy compares in milliseconds: nothing to compile for them
_PARTS = 16  # that rows compared with all others are shared out in
_WORDS = 128  # of 64 rows each, turned into bits by row in one go
_SWEEPS = 50  # of the fitted network, after which a chain has forgotten the row it started from
_SNAPSHOTS = 4
_MOST_CHAINS = 2048
_RATIO = 2.0  # close pairs, to those of independent rows, before they mean anything
_SURE = 5.0  # standard errors of a number of pairs
_SHAPE = 0.03  # error of the distances that independent rows would have, relative
_UNSURE = 1.0  # design effect that such an error may pretend
_GRID = np.linspace(0.1, 1.0, 37)  # correlations of rows
_LEAST_SPREAD = 0.2  # columns
_SIXTH = 0.16  # of pairs are a standard deviation below the mean
_LEAST = 1e-10  # probability, in logarithms
_FALSE = 0.05  # links by chance, of all links between rows
_LARGEST_GROUP = 0.1  # of all rows
_FEWEST_GROUPS = 20


@dataclass(frozen=True, slots=True, eq=False)
class RowBits:
    """Rows as bits, the columns in two halves with few couplings between them."""

    rows: Words  # (n_rows, n_row_words)
    columns: IntArray  # (n_columns,): those that rows are compared in
    n_first: int  # words of the first half
    places: IntArray  # (n_columns,): where the bit of each column is

    @property
    def step(self) -> int:
        """Every so many rows one is compared with all others."""
        n_rows = len(self.rows)
        if n_rows**2 <= 2 * _PAIRS:
            return 1
        return min(-(-(n_rows**2) // _PAIRS), n_rows // _FEWEST_QUERIES)

    def like(self, words: Words, n_rows: int) -> "RowBits":
        """Bits of other rows, in the same places."""
        rows = np.zeros((n_rows, self.rows.shape[1]), dtype=np.uint64)
        values = np.zeros((64 * _WORDS, 64 * self.rows.shape[1]), dtype=np.uint8)
        for first in range(0, words.shape[1], _WORDS):
            here = words[self.columns, first : first + _WORDS]
            part = rows[64 * first : 64 * (first + _WORDS)]
            values[: len(part), self.places] = as_bits(here, len(part)).T
            packed = np.packbits(values[: len(part)], axis=1, bitorder="little")
            part[:] = packed.view("<u8")
        return RowBits(rows, self.columns, self.n_first, self.places)

    def distances(self) -> IntArray:
        """(3, n_columns + 1): pairs of rows that differ in so many columns, of the first half, of
        the second, of both.
        """
        n_places = len(self.columns) + 1
        if len(self.rows) <= _FEW:
            first = _distances(self.rows[:, : self.n_first])
            second = _distances(self.rows[:, self.n_first :])
            both = (first, second, first + second)
            return np.stack([np.bincount(one, minlength=n_places) for one in both])
        n_queries = -(-len(self.rows) // self.step)
        arguments = (self.rows, self.step, self.n_first, n_places)
        chunk = -(-n_queries // _PARTS)
        parts = parallel_map(kernels.distance_counts, n_queries, *arguments, chunk=chunk)
        return np.asarray(np.sum(parts, axis=0).reshape(3, n_places))

    def neighbours_apart(self, groups: IntArray) -> IntArray:
        """Distances of neighbouring rows that are in different groups."""
        is_border = groups[1:] != groups[:-1]
        return np.asarray(lagged_distances(self.rows, 1)[is_border])

    def close_pairs(self, largest: int) -> IntArray:
        """(3, n): pairs of rows that differ in at most so many columns, and in how many."""
        parts = parallel_map(kernels.close_pairs, len(self.rows), self.rows, largest, chunk=_CHUNK)
        return np.hstack([part.reshape(3, -1) for part in parts])


def _distances(rows: Words) -> IntArray:
    """(n_pairs,): columns in which two rows differ, of all pairs."""
    values = as_bits(rows, 64 * rows.shape[1]).astype(np.float32)
    ones = values.sum(axis=1)
    differ = ones[:, None] + ones - 2 * (values @ values.T)  # whole numbers, and small: exact
    return np.asarray(differ[np.triu_indices(len(rows), 1)].astype(np.int64))


def lagged_distances(rows: Words, lag: int) -> IntArray:
    """(n_rows - lag,): columns in which rows differ from those so many rows later."""
    n_pairs = len(rows) - lag
    if n_pairs <= _FEW:
        return bit_sums(rows[:n_pairs] ^ rows[lag:])
    distances = np.empty(n_pairs, dtype=np.int64)
    fixed = (rows, lag, distances)
    parallel_map(kernels.lagged_distances, n_pairs, *fixed, chunk=_LAGGED_CHUNK)
    return distances


def row_bits(packed: PackedSpins, model: IsingModel, rng: Generator) -> RowBits:
    """Rows of bits of up to 512 columns that change; missing values are drawn from the margins."""
    n_rows = packed.n_samples
    ones = bit_sums(packed.words)
    n_seen = np.full(packed.n_spins, n_rows)
    if packed.present is not None:
        n_seen = bit_sums(packed.present)
    # neighbours in the network come next to each other, so that few couplings cross the middle
    order = reverse_cuthill_mckee(scipy.sparse.csr_matrix(model.couplings), symmetric_mode=True)
    n_up = ones[order]
    changes = (n_up > 0) & (n_up < n_seen[order])
    order = order[changes].astype(np.int64)
    order = order[:: max(1, -(-len(order) // _COLUMNS))]
    words = np.asarray(packed.words)
    if packed.present is not None:
        words = _filled(words, packed.present, n_rows, order, rng)
    half = len(order) // 2
    n_first = -(-half // 64)
    places = np.arange(len(order))
    places[half:] += 64 * n_first - half
    n_words = n_first + -(-(len(order) - half) // 64)
    empty = RowBits(np.zeros((0, n_words), dtype=np.uint64), order, n_first, places)
    return empty.like(words, n_rows)


def _filled(words: Words, present: Words, n_rows: int, columns: IntArray, rng: Generator) -> Words:
    filled = words.copy()
    for j in columns:
        is_up = bit_sums(words[[j]]) / bit_sums(present[[j]])
        drawn = rng.random((n_rows, 1), dtype=np.float32) < is_up
        filled[j] |= bits(drawn.view(np.int8))[0] & ~present[j]
    return filled


def fraction_present(packed: PackedSpins) -> float:
    """Of all values, those that are not missing."""
    if packed.present is None:
        return 1.0
    n_values = packed.n_samples * packed.n_spins
    return max(float(bit_sums(packed.present).sum()) / n_values, 0.1)


def bit_sums(words: Words) -> IntArray:
    """Bits of each row of words that are set."""
    return np.asarray(as_bits(words, 64 * words.shape[1]).sum(axis=1, dtype=np.int64))


# How many close pairs there would be


def null_of_halves(counts: IntArray) -> FloatArray:
    """Expected pairs at each distance, if distances in the two halves had nothing to do with each
    other: what independent rows show but for couplings between the halves.
    """
    n_pairs = counts[2].sum()
    both = np.convolve(counts[0], counts[1].astype(np.float64))
    return np.asarray(both[: counts.shape[1]] / max(n_pairs, 1))


def null_of_model(
    rows: RowBits,
    packed: PackedSpins,
    model: IsingModel,
    shifts: FloatArray | None,
    rng: Generator,
) -> FloatArray:
    """Expected pairs at each distance of as many independent rows of the fitted network.

    Chains start at rows of the table, so that a network with several modes stays where the data
    are, and run until they have forgotten which; each has the fields of its row.
    """
    n_chains = min(-(-packed.n_samples // LANES) * LANES, _MOST_CHAINS)
    if shifts is not None:
        return _null_of_rows(rows, packed, model, shifts, rng)
    start = _some_rows(packed, n_chains)[rng.permutation(n_chains)]
    any_spin = rng.choice(np.array([-1, 1], np.int8), start.shape)
    start = np.where(start == 0, any_spin, start)
    chains = number_chains(model, n_chains, True, rng)
    by_block = start.reshape(len(chains.states), LANES, packed.n_spins)
    chains.states[:] = by_block.transpose(0, 2, 1)
    chains.sweep(_SWEEPS)
    total = np.zeros(len(rows.columns) + 1)
    for _ in range(_SNAPSHOTS):
        chains.sweep(_SWEEPS // 2)
        total += rows.like(chains.words(), n_chains).distances()[2]
    return total / total.sum()


def _null_of_rows(
    rows: RowBits,
    packed: PackedSpins,
    model: IsingModel,
    shifts: FloatArray,
    rng: Generator,
) -> FloatArray:
    """The same where each row has fields of its own.

    Of many columns only those are drawn that are compared, and what these hang together with.
    """
    if packed.n_spins > _COLUMNS:
        drawn_too = _hanging_together(model, rows.columns)
        places = np.searchsorted(drawn_too, rows.columns)
        rows = RowBits(rows.rows, places, rows.n_first, rows.places)
        packed, shifts = packed[:, drawn_too], shifts[drawn_too]
        couplings = model.couplings[drawn_too][:, drawn_too]
        model = IsingModel(couplings, model.fields[drawn_too], packed.names)
    step = -(-packed.n_samples // _MOST_CHAINS)
    some = np.arange(0, packed.n_samples, step)
    network = network_of(model, np.ascontiguousarray(shifts[:, some]))
    spins = np.asarray(packed[some], dtype=np.float64).T
    any_spin = rng.choice([-1.0, 1.0], spins.shape)
    spins = np.where(spins == 0, any_spin, spins)
    nothing = np.zeros(spins.shape, dtype=np.bool_)
    total = np.zeros(len(rows.columns) + 1)
    for n_sweeps in (_SWEEPS, *[_SWEEPS // 2] * _SNAPSHOTS):
        spins = impute(spins, nothing, network, n_sweeps, rng)
        drawn = bits(spins.T.astype(np.int8))
        total += rows.like(drawn, len(some)).distances()[2]
    return total / total.sum()


def _hanging_together(model: IsingModel, columns: IntArray) -> IntArray:
    """Columns that are coupled to some, directly or by others, and these."""
    part = connected_components(scipy.sparse.csr_matrix(model.couplings), directed=False)[1]
    return np.flatnonzero(np.isin(part, part[columns]))


def stretched(null: FloatArray, counts: IntArray) -> FloatArray:
    """Expected pairs, moved and widened to what most pairs of the table show.

    A network that misses couplings makes independent rows less alike, and so less unlike, than they
    are. Rows that belong together are too few to change the median or the sixth of pairs below.
    """
    edges = np.arange(len(null)) + 0.5
    below = np.cumsum(null) / null.sum()
    seen = np.cumsum(counts) / counts.sum()
    median, lower = np.interp((0.5, _SIXTH), below, edges)
    median_seen, lower_seen = np.interp((0.5, _SIXTH), seen, edges)
    ratio = min((median - lower) / max(median_seen - lower_seen, 1e-9), 1.0)
    places = median + (edges - median_seen) * ratio
    log_below = np.log(np.maximum(below, _LEAST))
    moved = np.exp(np.interp(places, edges, log_below))
    moved[-1] = 1.0
    return np.asarray(counts.sum() * np.diff(moved, prepend=0.0))


def _some_rows(packed: PackedSpins, n_rows: int) -> SpinArray:
    """All rows, some twice to make up the number, or pieces from all over a long table."""
    if packed.n_samples <= n_rows:
        return np.asarray(packed)[np.resize(np.arange(packed.n_samples), n_rows)]
    last = packed.n_samples - LANES
    starts = np.linspace(0, last, n_rows // LANES).astype(np.int64)
    portions = [packed[first : first + LANES] for first in starts.tolist()]
    return np.vstack([np.asarray(portion) for portion in portions])


@dataclass(frozen=True, slots=True, eq=False)
class Excess:
    """Close pairs beyond those of independent rows."""

    counts: IntArray  # (n_columns + 1,): pairs of rows at each distance
    null: FloatArray  # (n_columns + 1,): of independent rows
    n_rows: int  # that were compared with all others
    present: float = 1.0  # fraction of values that are not missing

    @property
    def mean(self) -> float:
        """Distance of two independent rows."""
        distances = np.arange(len(self.null))
        return float(self.null @ distances / self.null.sum())

    @property
    def variance(self) -> float:
        """Of that distance, in units of its mean squared."""
        distances = np.arange(len(self.null))
        square = float(self.null @ distances**2 / self.null.sum())
        return (square - self.mean**2) / self.mean**2

    @property
    def squares(self) -> FloatArray:
        """(n_columns + 1,): estimates of the squared correlation of two rows at each distance."""
        alike = 1 - np.arange(len(self.null)) / self.mean
        return np.asarray((alike**2 - self.variance) / (1 - min(self.variance, 0.99)))

    def tail_effect(self) -> float:
        """Design effect, less 1, of pairs beyond what independent rows can show, at the least."""
        observed = np.cumsum(self.counts)
        expected = np.cumsum(self.null)
        largest = expected * _RATIO + _SURE * np.sqrt(expected) + _SURE
        is_much = np.flatnonzero(observed > largest)
        if len(is_much) == 0:
            return 0.0
        here = slice(0, is_much[-1] + 1)
        beyond = np.maximum(self.counts[here] - self.null[here], 0.0)
        return self.effect_of(float(beyond @ self.squares[here]), self.n_rows)

    def effect_of(self, squares: float, n_rows: int) -> float:
        """Design effect, less 1, of pairs of rows whose squared correlations add up to so much.

        With a fraction f of values present those of two rows are f^4 times too small, and scores
        have f^2 times as many pairs of present values in common as rows.
        """
        return 2 * squares / n_rows / self.present**2

    def mixture_effect(self) -> float:
        """Design effect, less 1, of pairs of rows with correlations up to 1 whose distances, with
        those of independent rows, add up to what is seen.

        Left out are correlations so weak that an error of the distances of independent rows could
        be taken for them.
        """
        edges = np.arange(len(self.null) + 1) - 0.5
        shapes = []
        correlations = []
        for c in _GRID:
            spread = self.mean * np.sqrt(self.variance * (1 - c**2)) + _LEAST_SPREAD
            below = ndtr((edges - (1 - c) * self.mean) / spread)
            below[0] = 0.0
            shape = np.diff(below)
            nearby = float(shape @ self.null) / shape.max()
            if self.effect_of(_SHAPE * nearby * c**2, self.n_rows) <= _UNSURE:
                shapes.append(shape)
                correlations.append(c)
        if not shapes:
            return 0.0
        errors = np.sqrt(self.counts + 1.0) + _SHAPE * self.null
        design = np.array(shapes).T / errors[:, np.newaxis]
        weights, _ = nnls(design, (self.counts - self.null) / errors)
        return self.effect_of(float(weights @ np.array(correlations) ** 2), self.n_rows)

    @property
    def design_effect(self) -> float:
        """The larger of both: tails see strong correlations, mixtures weaker ones too."""
        return 1 + max(self.tail_effect(), self.mixture_effect())


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """Rows linked by being alike."""

    groups: IntArray  # (n_rows,)
    n_alike: int  # rows with a link
    distance: int  # columns in which linked rows differ at the most
    design_effect: float


def linked_rows(rows: RowBits, excess: Excess) -> RowGroups | None:
    """Groups of rows that are chained by closeness, at the largest distance at which they stay
    small; None where there is none.
    """
    observed = np.cumsum(excess.counts)
    expected = np.cumsum(excess.null)
    good = np.flatnonzero((expected <= _FALSE * observed) & (observed > 0))
    if len(good) == 0:
        return None
    pairs = rows.close_pairs(int(good[-1]))
    for distance in good[::-1]:
        linked = pairs[:, pairs[2] <= distance]
        groups = _components(linked, len(rows.rows))
        sizes = np.bincount(groups)
        squares = sizes.astype(np.float64) ** 2
        n_effective = len(groups) ** 2 / float(squares.sum())
        if sizes.max() <= _LARGEST_GROUP * len(groups) and n_effective >= _FEWEST_GROUPS:
            n_alike = len(np.unique(linked[:2]))
            effect = _effect_within(rows, groups, excess)
            return RowGroups(groups, n_alike, int(distance), effect)
    return None


def _components(linked: IntArray, n_rows: int) -> IntArray:
    ones = np.ones(linked.shape[1], dtype=np.int8)
    first, second = linked[:2]
    graph = scipy.sparse.coo_array((ones, (first, second)), shape=(n_rows, n_rows))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _effect_within(rows: RowBits, groups: IntArray, excess: Excess) -> float:
    """1 + mean over rows of the squared correlations with others of their group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    total = 0.0
    squares = excess.squares
    for members in np.split(order, starts[1:]):
        if len(members) > 1:
            some = RowBits(rows.rows[members], rows.columns, rows.n_first, rows.places)
            total += float(some.distances()[2] @ squares)
    return 1 + excess.effect_of(total, len(groups))


def repeated(packed: PackedSpins, rows: RowBits) -> tuple[IntArray, IntArray]:
    """A number for each row, the same for equal rows, and how many rows have it."""
    keys = rows.rows
    if packed.present is not None:
        values = rows.like(packed.words, len(keys))
        presence = rows.like(packed.present, len(keys))
        keys = np.hstack([values.rows, presence.rows])
    digests = _digests(keys)
    _, which, counts = np.unique(digests, return_inverse=True, return_counts=True)
    return which.astype(np.int64), counts


def _digests(rows: Words) -> Words:
    """A number for each row; different rows have different ones but for a chance of 2^-60 or so."""
    factors = np.random.default_rng(0).integers(2**63, size=rows.shape[1], dtype=np.uint64)
    mixed = rows ^ (rows >> np.uint64(31))
    mixed = mixed * (2 * factors + 1)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    return np.asarray(mixed.sum(axis=1))
