"""Findings: what incomplete rows tell that the others do not, such as values in wrong columns.

Rows in which a column is empty are compared with all others by a likelihood of rows,

    P(s) = prod_i p_i(s_i) prod_(ij) (1 + r_ij z_i(s_i) z_j(s_j)),

with p_i the margins of columns, z_i their standardised values, and r_ij partial correlations that
stand out: normalised on trees, and good enough to tell stories apart elsewhere
(docs/design/auto.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special
from numpy.typing import NDArray
from scipy.stats import chi2, hypergeom, norm

from isingkit._kernels.threads import blas_threads_for
from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.packing import PackedSpins

Numbers = NDArray[np.float32]  # precise enough for log likelihoods, and twice as quick
LEVEL = 0.01  # of each kind of finding, over all that was looked at
# values in memory at a time; of larger tables rows in regular distances are looked at
_MOST_VALUES = 1 << 24
_MOST_COLUMNS = 2000  # of which all pairs are looked at
_FEWEST_ROWS = 5  # of which anything is said
_LEAST_SHARE = 0.05  # of the rows in which a column is empty
_LEAST_Z = 3.0  # partial correlations below are taken as none
_NEGATIVE_Z = -2.5  # of correlations that count as reversed, once they are not those of elsewhere
_FOREMOST = 3  # neighbours by which a column is predicted
_MOST_NEIGHBOURS = 10  # on average
_LEAST_FACTOR = 0.05  # of the likelihood, where a pair of values hardly ever occurs
_SHARES = (0.05, 0.2, 0.5, 1.0)  # of rows that tell another story, as first tried
_LEAST_GAIN = 4.0  # log likelihood of other stories that are looked at more closely
_SUSPECT_CELLS = 4  # that a shift must do without
_SUSPECT_GAIN = 0.2  # log likelihood a row, by the margin of one cell
_TERMS = 1 << 21  # numbers of pairs and rows computed in one go


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that incomplete rows tell."""

    kind: str  # "empty", "shifted", "reversed", "unrelated" or "depends"
    columns: tuple[str, ...]  # the one that is empty first
    n_rows: int  # that it is about
    p_value: float  # by Bonferroni's rule, over all columns looked at; 0 for what is merely counted
    words: str


def incomplete_rows(packed: PackedSpins) -> tuple[Finding, ...]:
    """What rows with missing values tell, serious things first.

    "empty": rows with nothing in them. "shifted": where a column is empty, others hold values of
    their neighbours. "reversed": there another column has its values exchanged. "unrelated": there
    columns have less to do with each other than elsewhere. "depends": a column is missing more
    often for one value of another.
    """
    if packed.present is None:
        return ()
    with blas_threads_for(packed.n_spins):
        return _findings(packed)


def _findings(packed: PackedSpins) -> tuple[Finding, ...]:
    step = -(-packed.n_samples * packed.n_spins // _MOST_VALUES)
    values = np.asarray(packed[::step] if step > 1 else packed, dtype=np.float32).T
    holds_any = values.any(axis=0)
    table = _table_of(np.ascontiguousarray(values[:, holds_any]))
    explained = np.zeros(table.n_rows, dtype=bool)
    findings = _empty_rows(packed)
    if len(table.pairs):
        shifted, explained = _shifted(table, packed.names, explained)
        reversed_, explained = _reversed(table, packed.names, explained)
        findings += shifted + reversed_
    depending = _depending(table, packed, explained)
    if len(table.pairs):
        # rows chosen by their values may seem unrelated without being so
        chosen = {one.columns[0] for one in depending}
        unrelated = _unrelated(table, packed.names, explained)
        findings += [one for one in unrelated if one.columns[0] not in chosen]
    return (*findings, *depending)


def _empty_rows(packed: PackedSpins) -> list[Finding]:
    holds_any = np.bitwise_or.reduce(packed.present, axis=0)  # type: ignore[arg-type]
    n_empty = packed.n_samples - int(np.unpackbits(holds_any.view(np.uint8)).sum())
    if not n_empty:
        return []
    words = f"{n_empty} of {packed.n_samples} rows hold no value at all and are not counted"
    return [Finding("empty", (), n_empty, 0.0, words)]


# The likelihood of rows


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Values, and what is known of columns and pairs of them."""

    values: Numbers  # (n_columns, n_rows): -1 and +1, 0 where missing
    share_up: Numbers  # (n_columns,)
    pairs: Pairs  # that have to do with each other
    correlations: Numbers  # (n_pairs,): partial ones

    @property
    def n_columns(self) -> int:
        return len(self.values)

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[1])

    @property
    def is_missing(self) -> BoolArray:
        """(n_columns, n_rows)."""
        return np.asarray(self.values == 0)

    def mirrored(self) -> "_Table":
        """The same with columns in the opposite order."""
        pairs = self.n_columns - 1 - self.pairs[:, ::-1]
        return replace(self, values=self.values[::-1], share_up=self.share_up[::-1], pairs=pairs)

    def standardised(self, values: Numbers, columns: Any) -> Numbers:
        """Values of n cells, (n, n_rows), taken as those of n columns; 0 where missing."""
        up = self.share_up[columns][:, None]
        odds = np.sqrt((1 - up) / up)
        return _by_value(values, odds, -1 / odds)

    def log_margins(self, values: Numbers, columns: Any) -> Numbers:
        """log p of n cells taken as n columns, (n, n_rows); 0 where missing."""
        up = self.share_up[columns][:, None]
        return _by_value(values, np.log(up), np.log1p(-up))

    def log_factors(self, left: Numbers, right: Numbers) -> Numbers:
        """(n_pairs, n_rows): log(1 + r z z) of standardised values of both sides."""
        factors = 1 + self.correlations[:, None] * left * right
        return np.asarray(np.log(np.maximum(factors, _LEAST_FACTOR)))

    def some_rows(self, rows: Any) -> "_Table":
        return replace(self, values=np.ascontiguousarray(self.values[:, rows]))

    def portions(self) -> Iterator[slice]:
        """Ranges of rows that are looked at in one go."""
        step = max(64, _TERMS // (len(self.pairs) + 1))
        for start in range(0, self.n_rows, step):
            yield slice(start, start + step)


def _by_value(values: Numbers, up: Numbers, down: Numbers) -> Numbers:
    """`up` where a value is 1, `down` where it is -1, 0 where it is 0."""
    return np.asarray(values * ((up - down) / 2) + np.abs(values) * ((up + down) / 2))


def _table_of(values: Numbers) -> _Table:
    """Margins and partial correlations of all rows, each pair seen where both are present."""
    present = np.abs(values)
    n_seen = present.sum(axis=1)
    share_up = ((values > 0).sum(axis=1) + 0.5) / (n_seen + 1)
    no_pairs = np.empty((0, 2), dtype=np.int64)
    table = _Table(values, share_up.astype(np.float32), no_pairs, np.empty(0, np.float32))
    if len(values) < 2 or len(values) > _MOST_COLUMNS:
        return table
    z = table.standardised(values, slice(None))
    n_both = np.maximum(present @ present.T, 1)
    correlations = (z @ z.T / n_both).astype(np.float64)
    partial = _partial_correlations(correlations, table.n_rows).astype(np.float32)
    pairs = np.column_stack(np.triu_indices(len(values), 1))
    z_scores = np.abs(partial) * np.sqrt(n_both)
    strength = z_scores[pairs[:, 0], pairs[:, 1]]
    most = min(len(pairs), _MOST_NEIGHBOURS * len(values) // 2 + 1)
    least = max(_LEAST_Z, np.partition(strength, -most)[-most])
    pairs = pairs[strength >= least]
    return replace(table, pairs=pairs, correlations=partial[pairs[:, 0], pairs[:, 1]])


def _partial_correlations(correlations: FloatArray, n_rows: int) -> FloatArray:
    """Of correlations made weaker until they are consistent."""
    n_columns = len(correlations)
    weaker = 1 - n_columns / (n_columns + n_rows)
    while True:
        consistent = weaker * correlations
        np.fill_diagonal(consistent, 1.0)
        try:
            np.linalg.cholesky(consistent)
            break
        except np.linalg.LinAlgError:
            weaker *= 0.8
    inverse = np.linalg.inv(consistent)
    scale = np.sqrt(np.diagonal(inverse))
    return np.asarray(-inverse / np.outer(scale, scale))


# Two stories about a group of rows


@dataclass(frozen=True, slots=True, eq=False)
class _Verdict:
    """Whether some rows of a group tell another story than the rest of the table."""

    p_value: float  # before Bonferroni's rule
    tells: BoolArray  # (n_group,): which rows do, more likely than not


def _judge(stories: FloatArray, is_odd: BoolArray, is_group: BoolArray) -> _Verdict:
    """Whether the last story is needed, beside the others, to explain a group of rows.

    Two tests must agree. One is the gain in likelihood of a mixture of all stories, which trusts
    the model of rows. The other counts rows that look odd, in the group and elsewhere
    (hypergeometric), which does not.

    Parameters
    ----------
    stories
        (n_stories, n_group): log likelihoods.
    is_odd
        (n_rows,): which rows look more like the last story than like the first.
    is_group
        (n_rows,).
    """
    with_it, _ = _mixture(stories)
    without, _ = _mixture(stories[:-1])
    by_likelihood = chi2.sf(2 * max(0.0, with_it - without), 1) / 2
    n_odd = int(is_odd[is_group].sum())
    by_count = hypergeom.sf(n_odd - 1, len(is_odd), int(is_odd.sum()), int(is_group.sum()))
    tells = _tells_the_last(stories)
    if tells.sum() < max(_FEWEST_ROWS, _LEAST_SHARE * len(tells)):
        return _Verdict(1.0, tells)
    return _Verdict(float(max(by_likelihood, by_count)), tells)


def _tells_the_last(stories: FloatArray) -> BoolArray:
    """(n_group,): which rows tell the last story, more likely than not."""
    _, weights = _mixture(stories)
    shares = scipy.special.softmax(stories + np.log(weights)[:, None], axis=0)
    return np.asarray(shares[-1] > 0.5)


def _mixture(stories: FloatArray) -> tuple[float, FloatArray]:
    """The largest log likelihood of a mixture of stories, and their weights (EM)."""
    n_stories = len(stories)
    weights = np.full(n_stories, 1 / n_stories)
    highest = stories.max(axis=0)
    relative = np.exp(stories - highest)
    for _ in range(100):
        joint = weights[:, None] * relative
        weights = np.maximum((joint / joint.sum(axis=0)).mean(axis=1), 1e-12)
    return float(np.sum(np.log(weights @ relative) + highest)), weights


def _largest_gains(ratios: Numbers, columns: IntArray, n_columns: int) -> Numbers:
    """(n_columns,): log likelihood that a share of the rows in which each column is empty gains by
    another story; `ratios` are those of single rows, `columns` says which is empty.
    """
    likelihoods = np.expm1(np.minimum(ratios, 50.0))
    gains = [
        np.bincount(columns, np.log1p(share * likelihoods), minlength=n_columns)
        for share in np.minimum(_SHARES, 1 - 1e-9)
    ]
    return np.asarray(np.max(gains, axis=0))


# Values in wrong columns


@dataclass(frozen=True, slots=True)
class _Shift:
    """Cells first + 1 to last hold the values of columns first to last - 1; that of `last` is lost.

    Of mirrored columns, where `is_mirrored`.
    """

    first: int  # the empty one
    last: int
    is_mirrored: bool

    def sources(self, n_columns: int) -> IntArray:
        """(n_columns,): the cell that holds each column's value; n_columns where none does."""
        cells = np.arange(n_columns)
        cells[self.first : self.last] += 1
        cells[self.last] = n_columns
        return cells


def _shifted(
    table: _Table, names: tuple[str, ...], explained: BoolArray
) -> tuple[list[Finding], BoolArray]:
    """Rows that are shifted by one column, from an empty one to an end of the table, or from an
    empty one at an end up to any other; and which rows these are.
    """
    suspects = [one for is_mirrored in (False, True) for one in _suspects(table, is_mirrored)]
    gains = [one.gains(explained) for one in suspects]
    n_looked_at = 4 * table.n_columns
    findings = []
    rows = explained.copy()
    while max(gain.max() for gain in gains) > _LEAST_GAIN:
        family = int(np.argmax([gain.max() for gain in gains]))
        place = int(gains[family].argmax())
        shift = suspects[family].shift(place)
        here = table.mirrored() if shift.is_mirrored else table
        p_value, shifted = _judge_shift(here, shift, rows)
        if p_value * n_looked_at < LEVEL:
            findings.append(_words_of_shift(shift, names, shifted, p_value * n_looked_at))
            rows |= shifted
            gains = [
                np.where(np.isneginf(old), old, one.gains(rows))
                for old, one in zip(gains, suspects, strict=True)
            ]
        gains[family][place] = -np.inf  # it had its turn
    return findings, rows


@dataclass(frozen=True, slots=True, eq=False)
class _Suspects:
    """Shifts from an empty column to the last one; or from the first one, empty, up to any."""

    n_columns: int
    is_mirrored: bool
    is_to_the_end: bool
    ratios: Numbers  # (n,): log likelihood ratios of rows
    places: IntArray  # (n,): of which shift
    rows: IntArray  # (n,)

    def gains(self, explained: BoolArray) -> Numbers:
        """(n_columns,): of each shift, by rows that are not explained."""
        left = ~explained[self.rows]
        return _largest_gains(self.ratios[left], self.places[left], self.n_columns)

    def shift(self, place: int) -> _Shift:
        if self.is_to_the_end:
            return _Shift(place, self.n_columns - 1, self.is_mirrored)
        return _Shift(0, place, self.is_mirrored)


def _suspects(table: _Table, is_mirrored: bool) -> list[_Suspects]:
    here = table.mirrored() if is_mirrored else table
    n = table.n_columns
    columns, rows = np.nonzero(here.is_missing)
    to_the_end = _ratios_of_shifts_to_the_end(here)[columns, rows]
    group = np.flatnonzero(here.is_missing[0])
    from_the_start = _ratios_of_shifts_from_the_start(here.some_rows(group))
    from_the_start[[0, n - 1]] = 0  # nothing moves, or everything, which is among the others
    everywhere = np.repeat(np.arange(n), len(group))
    return [
        _Suspects(n, is_mirrored, True, to_the_end, columns, rows),
        _Suspects(n, is_mirrored, False, from_the_start.ravel(), everywhere, np.tile(group, n)),
    ]


def _ratios_of_shifts_to_the_end(table: _Table) -> Numbers:
    """(n_columns, n_rows): log likelihood ratios of rows shifted from each column to the last one.

    Pairs left of the empty column stay, pairs right of it move, pairs astride move at one side: a
    pair's part, as a function of the empty column, changes behind its two columns only.
    """
    left, right = table.pairs.T
    ratios = np.empty_like(table.values)
    for rows in table.portions():
        cells = _cells_of(table, rows)
        both_stay = table.log_factors(cells.stay[left], cells.stay[right])
        both_move = table.log_factors(cells.move[left], cells.move[right])
        astride = table.log_factors(cells.stay[left], cells.move[right])
        by_pairs = _from_places_on(
            [
                (0 * left, both_move),
                (left + 1, astride - both_move),
                (right + 1, both_stay - astride),
            ],
            table.n_columns,
        )
        behind = np.cumsum(cells.log_stay[::-1], axis=0)[::-1]
        by_margins = np.cumsum(cells.log_move[::-1], axis=0)[::-1] - behind
        ratios[:, rows] = by_pairs + by_margins - both_stay.sum(axis=0)
    return ratios


def _ratios_of_shifts_from_the_start(table: _Table) -> Numbers:
    """(n_columns, n_rows): of rows whose first column is empty, shifted up to each column.

    Now pairs left of that column move, and those that it belongs to are lost.
    """
    left, right = table.pairs.T
    ratios = np.empty_like(table.values)
    for rows in table.portions():
        cells = _cells_of(table, rows)
        both_stay = table.log_factors(cells.stay[left], cells.stay[right])
        both_move = table.log_factors(cells.move[left], cells.move[right])
        astride = table.log_factors(cells.move[left], cells.stay[right])
        changes = [(0 * left, both_stay), (left, -both_stay), (left + 1, astride)]
        changes += [(right, -astride), (right + 1, both_move)]
        by_pairs = _from_places_on(changes, table.n_columns)
        before = np.cumsum(cells.log_move, axis=0) - cells.log_move
        by_margins = before - np.cumsum(cells.log_stay, axis=0)
        ratios[:, rows] = by_pairs + by_margins - both_stay.sum(axis=0)
    return ratios


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """What columns would be by their own cells, and by the next ones: (n_columns, n_rows) all."""

    stay: Numbers  # standardised
    move: Numbers
    log_stay: Numbers  # log p
    log_move: Numbers


def _cells_of(table: _Table, rows: slice) -> _Cells:
    own = table.values[:, rows]
    following = np.vstack([own[1:], np.zeros_like(own[:1])])
    every = slice(None)
    return _Cells(
        stay=table.standardised(own, every),
        move=table.standardised(following, every),
        log_stay=table.log_margins(own, every),
        log_move=table.log_margins(following, every),
    )


def _from_places_on(changes: list[tuple[IntArray, Numbers]], n_places: int) -> Numbers:
    """(n_places, n_rows): sums of terms, (n_terms, n_rows), that count from their places on."""
    total = np.zeros((n_places + 1, changes[0][1].shape[1]), np.float32)
    for places, terms in changes:
        ones = (np.ones(len(places), np.float32), (places, np.arange(len(places))))
        total += scipy.sparse.csr_array(ones, shape=(n_places + 1, len(places))) @ terms
    return np.asarray(np.cumsum(total, axis=0)[:n_places])


def _judge_shift(table: _Table, shift: _Shift, explained: BoolArray) -> tuple[float, BoolArray]:
    """Its p-value, and which rows are shifted."""
    shifted = np.zeros(table.n_rows, dtype=bool)
    is_empty = table.is_missing[shift.first] & ~explained
    group = table.some_rows(is_empty)
    tells = _tells_the_last(_stories_of_shift(group, shift))
    if tells.sum() < _FEWEST_ROWS:
        return 1.0, shifted
    rest = table.some_rows(~explained)
    rest.values[shift.first] = 0  # so that the group is compared with its like
    rest.values[_suspect_cells(group.some_rows(tells), shift)] = 0
    stories = _stories_of_shift(rest, shift)
    is_group = is_empty[~explained]
    verdict = _judge(stories[:, is_group], stories[2] > stories[0] + 1, is_group)
    shifted[is_empty] = verdict.tells
    return verdict.p_value, shifted


def _stories_of_shift(table: _Table, shift: _Shift) -> FloatArray:
    """(3, n_rows): log likelihoods of values as they stand, of values that have nothing to do with
    each other, and of shifted ones.
    """
    as_is, by_margins = _log_likelihoods(table, np.arange(table.n_columns))
    moved, _ = _log_likelihoods(table, shift.sources(table.n_columns))
    return np.stack([as_is, by_margins, moved]).astype(np.float64)


def _log_likelihoods(table: _Table, sources: IntArray) -> tuple[Numbers, Numbers]:
    """(n_rows,) both: of rows whose cells `sources` hold the values of the columns in turn, and
    the part of it that is due to margins.
    """
    left, right = table.pairs.T
    values = np.vstack([table.values, np.zeros_like(table.values[:1])])[sources]
    by_margins = table.log_margins(values, slice(None)).sum(axis=0)
    z = table.standardised(values, slice(None))
    return by_margins + table.log_factors(z[left], z[right]).sum(axis=0), by_margins


def _suspect_cells(shifted: _Table, shift: _Shift) -> IntArray:
    """Cells whose margins speak most for a shift of these rows, and which it must do without: that
    their values decide on whether the other column is missing would explain them as well.
    """
    cells = np.arange(shift.first + 1, shift.last + 1)
    values = shifted.values[cells]
    gains = shifted.log_margins(values, cells - 1) - shifted.log_margins(values, cells)
    by_cell = gains.mean(axis=1)
    n_cells = min(_SUSPECT_CELLS, (len(cells) + 1) // 2)
    foremost = np.argsort(-by_cell, kind="stable")[:n_cells]
    return cells[foremost[by_cell[foremost] > _SUSPECT_GAIN]]


def _words_of_shift(
    shift: _Shift, names: tuple[str, ...], shifted: BoolArray, p_value: float
) -> Finding:
    in_order = names[::-1] if shift.is_mirrored else names
    n_rows = int(shifted.sum())
    cells = range(shift.first + 1, shift.last + 1)
    alike = [f"'{in_order[cell]}' behaves like '{in_order[cell - 1]}' elsewhere" for cell in cells]
    listed = "".join(f", '{in_order[cell]}' like '{in_order[cell - 1]}'" for cell in cells[1:2])
    more = f", and so on up to '{in_order[shift.last]}'" if len(cells) > 2 else ""
    words = (
        f"in {n_rows} rows where '{in_order[shift.first]}' is empty the values look shifted by one "
        f"column: {alike[0]}{listed}{more}; move them back, or leave these rows out"
    )
    columns = tuple(in_order[place] for place in range(shift.first, shift.last + 1))
    return Finding("shifted", columns, n_rows, p_value, words)


# Columns whose values are exchanged


def _reversed(
    table: _Table, names: tuple[str, ...], explained: BoolArray
) -> tuple[list[Finding], BoolArray]:
    """Columns that are reversed in most of the rows in which another is empty; and these rows.

    There a column's correlation with what its neighbours predict is another than elsewhere, and
    negative. Means of these rows do not count, for values of either column may decide on whether
    the other one is missing.
    """
    rows = explained.copy()
    predictions = _predictions(table)
    here, elsewhere = _correlations_within(table, predictions, explained)
    error = np.sqrt(1 / here.n_rows + 1 / elsewhere.n_rows)
    differences = (here.correlations - elsewhere.correlations) / error
    is_negative = here.correlations * np.sqrt(here.n_rows) < _NEGATIVE_Z
    is_negative &= here.correlations < -elsewhere.correlations / 2  # nearer to reversed than to 0
    n_looked_at = table.n_columns**2
    suspects = np.argwhere(is_negative & (differences < -norm.isf(LEVEL / n_looked_at)))
    findings = []
    for empty, column in suspects[np.argsort(differences[tuple(suspects.T)], kind="stable")]:
        is_group = (table.values[empty] == 0) & (table.values[column] != 0) & ~rows
        is_seen = is_group & predictions.is_seen[column]
        p_value = float(norm.cdf(differences[empty, column])) * n_looked_at
        if _too_few_agree(table.values[column, is_seen], predictions.predicted[column, is_seen]):
            n_rows = int(is_group.sum())
            findings.append(_words_of_reversal(names[empty], names[column], n_rows, p_value))
            rows |= is_group
    return findings, rows


@dataclass(frozen=True, slots=True, eq=False)
class _Predictions:
    """What its neighbours predict of each column, up to a constant: (n_columns, n_rows) both."""

    predicted: Numbers
    is_seen: BoolArray  # neither the column nor one of these neighbours is missing


def _predictions(table: _Table) -> _Predictions:
    """By the foremost neighbours of each column, so that rows in which all are present are many:
    where a neighbour is missing may hang on the column's own value.
    """
    strength = np.zeros((table.n_columns, table.n_columns), np.float32)
    left, right = table.pairs.T
    strength[left, right] = strength[right, left] = table.correlations
    weakest_first = np.argsort(np.abs(strength), axis=1, kind="stable")
    np.put_along_axis(strength, weakest_first[:, :-_FOREMOST], 0.0, axis=1)
    network = scipy.sparse.csr_array(strength)
    predicted = network @ table.standardised(table.values, slice(None))
    n_missing = (network != 0).astype(np.float32) @ table.is_missing.astype(np.float32)
    return _Predictions(np.asarray(predicted), (table.values != 0) & (n_missing == 0))


@dataclass(frozen=True, slots=True, eq=False)
class _Correlations:
    """Of each column with its prediction in rows chosen by another, (n_columns, n_columns) both."""

    correlations: FloatArray  # 0 where too few rows have either value
    n_rows: FloatArray  # at least 1


def _correlations_within(
    table: _Table, predictions: _Predictions, explained: BoolArray
) -> tuple[_Correlations, _Correlations]:
    """Of the second column in rows where the first is empty, and where it is not."""
    left = ~explained
    is_missing = table.is_missing[:, left].astype(np.float32)
    present = predictions.is_seen[:, left].astype(np.float32)
    values = table.values[:, left] * present
    guess = predictions.predicted[:, left] * present
    here = []
    elsewhere = []
    for numbers in (present, values, guess, guess**2, values * guess):
        sums = (is_missing @ numbers.T).astype(np.float64)
        here.append(sums)
        elsewhere.append(numbers.sum(axis=1, dtype=np.float64) - sums)
    return _correlated(*here), _correlated(*elsewhere)


def _correlated(
    n_rows: FloatArray, values: FloatArray, guess: FloatArray, squares: FloatArray, both: FloatArray
) -> _Correlations:
    """By sums over rows; the squares of values are 1."""
    n_rows = np.maximum(n_rows, 1)
    n_rarer = (n_rows - np.abs(values)) / 2
    variances = (n_rows - values**2 / n_rows) * (squares - guess**2 / n_rows)
    is_enough = (n_rarer >= _FEWEST_ROWS) & (variances > 1e-6)
    covariances = np.where(is_enough, both - values * guess / n_rows, 0.0)
    return _Correlations(covariances / np.sqrt(np.where(is_enough, variances, 1.0)), n_rows)


def _too_few_agree(values: Numbers, predicted: Numbers) -> bool:
    """Whether values agree less often with predictions above and below their median than by
    chance, at five percent: no few extreme predictions made their correlation negative.
    """
    if len(values) < _FEWEST_ROWS:
        return False
    is_up = values > 0
    is_above = predicted > np.median(predicted)
    n_agreeing = int((is_up & is_above).sum())
    p_value = hypergeom.cdf(n_agreeing, len(values), int(is_up.sum()), int(is_above.sum()))
    return bool(p_value < 0.05)


def _words_of_reversal(empty: str, column: str, n_rows: int, p_value: float) -> Finding:
    words = (
        f"in {n_rows} rows where '{empty}' is empty '{column}' looks reversed: its correlations "
        "have the opposite sign elsewhere; exchange its two values there, or leave these rows out"
    )
    return Finding("reversed", (empty, column), n_rows, p_value, words)


# Rows whose columns have little to do with each other


def _unrelated(table: _Table, names: tuple[str, ...], explained: BoolArray) -> list[Finding]:
    """Empty columns in whose rows the others hang together less than elsewhere."""
    is_missing = table.is_missing & ~explained
    by_column = _log_factors_by_column(table)
    total = by_column.sum(axis=0) / 2  # each pair counts at both its columns
    columns, empty_rows = np.nonzero(is_missing)
    gains = _largest_gains(-total[empty_rows], columns, table.n_columns)
    findings = []
    for empty in np.flatnonzero(gains > _LEAST_GAIN):
        is_group = is_missing[empty, ~explained]
        others = (total - by_column[empty])[~explained]
        if is_group.sum() < _FEWEST_ROWS:
            continue
        stories = np.stack([others, np.zeros_like(others)])[:, is_group].astype(np.float64)
        verdict = _judge(stories, others < 0, is_group)
        p_value = verdict.p_value * table.n_columns
        n_rows = int(verdict.tells.sum())
        if p_value < LEVEL:
            words = (
                f"in {n_rows} rows where '{names[empty]}' is empty the other columns have less to "
                "do with each other than elsewhere, as if answered at random; look at these rows"
            )
            findings.append(Finding("unrelated", (names[empty],), n_rows, p_value, words))
    return findings


def _log_factors_by_column(table: _Table) -> Numbers:
    """(n_columns, n_rows): of the pairs that each column belongs to."""
    places = table.pairs.T.ravel()
    pairs = np.tile(np.arange(len(table.pairs)), 2)
    ones = (np.ones(len(places), np.float32), (places, pairs))
    of_pairs = scipy.sparse.csr_array(ones, shape=(table.n_columns, len(table.pairs)))
    left, right = table.pairs.T
    total = np.empty_like(table.values)
    for rows in table.portions():
        z = table.standardised(table.values[:, rows], slice(None))
        total[:, rows] = of_pairs @ table.log_factors(z[left], z[right])
    return total


# Missing values that depend on others


def _depending(table: _Table, packed: PackedSpins, explained: BoolArray) -> list[Finding]:
    """Columns that are missing more often for one value of another; of these the clearest one."""
    rest = table.some_rows(~explained)
    is_missing = rest.is_missing.astype(np.float32)  # as precise as counts of rows need it
    is_up = (rest.values > 0).astype(np.float32)
    is_down = (rest.values < 0).astype(np.float32)
    n_up = is_up.sum(axis=1, dtype=np.float64)
    n_down = is_down.sum(axis=1, dtype=np.float64)
    missing_up = (is_missing @ is_up.T).astype(np.float64)
    missing_down = (is_missing @ is_down.T).astype(np.float64)
    squares = _chi_squares(missing_up, missing_down, n_up, n_down)
    n_looked_at = table.n_columns**2
    findings = []
    for column in np.flatnonzero(squares.max(axis=1) > chi2.isf(LEVEL / n_looked_at, 1)):
        other = int(squares[column].argmax())
        p_value = float(chi2.sf(squares[column, other], 1)) * n_looked_at
        counts = (missing_up[column, other], missing_down[column, other])
        shares = (counts[0] / n_up[other], counts[1] / n_down[other])
        is_for_up = shares[0] > shares[1]
        value: object = "+1" if is_for_up else "-1"
        if packed.mapping is not None:
            value = packed.mapping[other][int(is_for_up)]
        names = (packed.names[column], packed.names[other])
        words = (
            f"'{names[0]}' is missing more often where '{names[1]}' is {value} "
            f"({100 * max(shares):.0f} against {100 * min(shares):.0f} percent of rows); "
            "missing='impute' allows for that, missing='drop' does not"
        )
        n_rows = int(is_missing[column].sum())
        findings.append(Finding("depends", names, n_rows, p_value, words))
    return sorted(findings, key=lambda one: one.p_value)


def _chi_squares(
    first: FloatArray, second: FloatArray, n_first: FloatArray, n_second: FloatArray
) -> FloatArray:
    """(n, n) squares, of one degree of freedom, of shares first / n_first against second /
    n_second, corrected for counts being whole (Yates); 0 where fewer than five are expected.
    """
    total = np.maximum(n_first + n_second, 1)
    hits = first + second
    expected = hits * n_first / total
    rarest = np.minimum(hits, total - hits) * np.minimum(n_first, n_second) / total
    variance = expected * n_second * (total - hits) / total**2
    excess = np.maximum(np.abs(first - expected) - 0.5, 0.0)
    return np.where(rarest >= 5, excess**2 / np.where(rarest >= 5, variance, 1.0), 0.0)
