"""Columns whose values are exchanged in the rows in which another column is empty."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from isingkit.arrays import BoolArray, FloatArray
from isingkit.estimators.row_stories import FEWEST_ROWS, LEVEL, Finding, Numbers, RowTable
from isingkit.spins import Names

_NEGATIVE_Z = -2.5  # of correlations that count as reversed, once they are not those of elsewhere
_FOREMOST = 3  # neighbours by which a column is predicted


def reversed_columns(
    table: RowTable, names: Names, explained: BoolArray
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
    suspects = np.argwhere(is_negative & (differences < ndtri(LEVEL / n_looked_at)))
    findings = []
    order = np.argsort(differences[tuple(suspects.T)], kind="stable")
    for empty, column in suspects[order]:
        is_group = (table.values[empty] == 0) & (table.values[column] != 0) & ~rows
        is_seen = is_group & predictions.is_seen[column]
        p_value = float(ndtr(differences[empty, column])) * n_looked_at
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


def _predictions(table: RowTable) -> _Predictions:
    """By the foremost neighbours of each column, so that rows in which all are present are many:
    where a neighbour is missing may hang on the column's own value.
    """
    strength = np.zeros((table.n_columns, table.n_columns), np.float32)
    left, right = table.pairs.T
    strength[left, right] = strength[right, left] = table.correlations
    weakest_first = np.argsort(np.abs(strength), axis=1, kind="stable")
    np.put_along_axis(strength, weakest_first[:, :-_FOREMOST], 0.0, axis=1)
    network = csr_array(strength)
    predicted = network @ table.standardised(table.values, slice(None))
    n_missing = (network != 0).astype(np.float32) @ table.is_missing.astype(np.float32)
    return _Predictions(np.asarray(predicted), (table.values != 0) & (n_missing == 0))


@dataclass(frozen=True, slots=True, eq=False)
class _Correlations:
    """Of each column with its prediction in rows chosen by another, (n_columns, n_columns) both."""

    correlations: FloatArray  # 0 where too few rows have either value
    n_rows: FloatArray  # at least 1


def _correlations_within(
    table: RowTable, predictions: _Predictions, explained: BoolArray
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
    is_enough = (n_rarer >= FEWEST_ROWS) & (variances > 1e-6)
    covariances = np.where(is_enough, both - values * guess / n_rows, 0.0)
    return _Correlations(covariances / np.sqrt(np.where(is_enough, variances, 1.0)), n_rows)


def _too_few_agree(values: Numbers, predicted: Numbers) -> bool:
    """Whether values agree less often with predictions above and below their median than by
    chance, at five percent: no few extreme predictions made their correlation negative.
    """
    from scipy.stats import hypergeom  # slow to import, and few tables need it

    if len(values) < FEWEST_ROWS:
        return False
    is_up = values > 0
    is_above = predicted > np.median(predicted)
    n_agreeing = int((is_up & is_above).sum())
    n_up, n_above = int(is_up.sum()), int(is_above.sum())
    p_value = hypergeom.cdf(n_agreeing, len(values), n_up, n_above)
    return bool(p_value < 0.05)


def _words_of_reversal(empty: str, column: str, n_rows: int, p_value: float) -> Finding:
    words = (
        f"in {n_rows} rows where '{empty}' is empty '{column}' looks reversed: its correlations "
        "have the opposite sign elsewhere"
    )
    advice = "exchange its two values there, or leave these rows out"
    return Finding("reversed", (empty, column), n_rows, p_value, words, advice)
