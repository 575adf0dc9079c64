"""RowTable: values that may be missing, a likelihood of rows, and stories that rows may tell.

    P(s) = prod_i p_i(s_i) prod_(ij) (1 + r_ij z_i(s_i) z_j(s_j)),

with p_i the margins of columns, z_i their standardised values, and r_ij partial correlations that
stand out: normalised on trees, and good enough to tell stories apart elsewhere
(docs/design/missing.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.special
from numpy.typing import NDArray

from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.spins import Names

Numbers = NDArray[np.float32]  # precise enough for log likelihoods, and twice as quick
LEVEL = 0.01  # of each kind of finding, over all that was looked at
FEWEST_ROWS = 5  # of which anything is said
LEAST_GAIN = 4.0  # log likelihood of other stories that are looked at more closely
_MOST_COLUMNS = 2000  # of which all pairs are looked at
_LEAST_SHARE = 0.05  # of the rows in which a column is empty
_LEAST_Z = 3.0  # partial correlations below are taken as none
_MOST_NEIGHBOURS = 10  # on average
_LEAST_FACTOR = 0.05  # of the likelihood, where a pair of values hardly ever occurs
_SHARES = (0.05, 0.2, 0.5, 1.0)  # of rows that tell another story, as first tried
_TERMS = 1 << 21  # numbers of pairs and rows computed in one go


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that incomplete rows tell."""

    kind: str  # "empty", "shifted", "reversed", "unrelated" or "depends"
    columns: Names  # the one that is empty first
    n_rows: int  # that it is about
    p_value: float  # by Bonferroni's rule, over all columns looked at; 0 for what is merely counted
    words: str  # what was seen, and what it means
    advice: str = ""  # one thing to do


@dataclass(frozen=True, slots=True, eq=False)
class RowTable:
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

    def mirrored(self) -> "RowTable":
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

    def some_rows(self, rows: Any) -> "RowTable":
        return replace(self, values=np.ascontiguousarray(self.values[:, rows]))

    def portions(self) -> Iterator[slice]:
        """Ranges of rows that are looked at in one go."""
        step = max(64, _TERMS // (len(self.pairs) + 1))
        for start in range(0, self.n_rows, step):
            yield slice(start, start + step)


def _by_value(values: Numbers, up: Numbers, down: Numbers) -> Numbers:
    """`up` where a value is 1, `down` where it is -1, 0 where it is 0."""
    odd = (up - down) / 2
    even = (up + down) / 2
    return np.asarray(values * odd + np.abs(values) * even)


def row_table(values: Numbers) -> RowTable:
    """Margins and partial correlations of all rows, each pair seen where both are present."""
    present = np.abs(values)
    n_seen = present.sum(axis=1)
    share_up = ((values > 0).sum(axis=1) + 0.5) / (n_seen + 1)
    no_pairs = np.empty((0, 2), dtype=np.int64)
    table = RowTable(values, share_up.astype(np.float32), no_pairs, np.empty(0, np.float32))
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
    left, right = pairs.T
    return replace(table, pairs=pairs, correlations=partial[left, right])


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


def judge(stories: FloatArray, is_odd: BoolArray, is_group: BoolArray) -> _Verdict:
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
    from scipy.stats import hypergeom  # slow to import, and few tables need it

    with_it, _ = _mixture(stories)
    without, _ = _mixture(stories[:-1])
    gain = max(0.0, with_it - without)
    by_likelihood = scipy.special.chdtrc(1, 2 * gain) / 2
    n_odd = int(is_odd[is_group].sum())
    n_all_odd = int(is_odd.sum())
    by_count = hypergeom.sf(n_odd - 1, len(is_odd), n_all_odd, int(is_group.sum()))
    tells = tells_the_last(stories)
    if tells.sum() < max(FEWEST_ROWS, _LEAST_SHARE * len(tells)):
        return _Verdict(1.0, tells)
    return _Verdict(float(max(by_likelihood, by_count)), tells)


def tells_the_last(stories: FloatArray) -> BoolArray:
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


def largest_gains(ratios: Numbers, columns: IntArray, n_columns: int) -> Numbers:
    """(n_columns,): log likelihood that a share of the rows in which each column is empty gains by
    another story; `ratios` are those of single rows, `columns` says which is empty.
    """
    likelihoods = np.expm1(np.minimum(ratios, 50.0))
    shares = np.minimum(_SHARES, 1 - 1e-9)
    gains = [
        np.bincount(columns, np.log1p(share * likelihoods), minlength=n_columns) for share in shares
    ]
    return np.asarray(np.max(gains, axis=0))
