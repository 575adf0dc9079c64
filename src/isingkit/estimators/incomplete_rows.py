"""Findings: what incomplete rows tell that the others do not, such as values in wrong columns."""

import numpy as np
from scipy.sparse import csr_array
from scipy.special import chdtrc, chdtri

from isingkit._kernels.threads import blas_threads_for
from isingkit.arrays import BoolArray, FloatArray
from isingkit.estimators.reversed_columns import reversed_columns
from isingkit.estimators.row_stories import (
    FEWEST_ROWS,
    LEAST_GAIN,
    LEVEL,
    Finding,
    Numbers,
    RowTable,
    judge,
    largest_gains,
    row_table,
)
from isingkit.estimators.shifted_rows import shifted_rows
from isingkit.packing import PackedSpins
from isingkit.spins import Names

# values in memory at a time; of larger tables rows in regular distances are looked at
_MOST_VALUES = 1 << 24
_COLUMNS = 1024  # whose gaps are compared with values of all columns at a time


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
    table = row_table(np.ascontiguousarray(values[:, holds_any]))
    explained = np.zeros(table.n_rows, dtype=bool)
    findings = _empty_rows(packed)
    if len(table.pairs):
        shifted, explained = shifted_rows(table, packed.names, explained)
        reversed_, explained = reversed_columns(table, packed.names, explained)
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


# Rows whose columns have little to do with each other


def _unrelated(table: RowTable, names: Names, explained: BoolArray) -> list[Finding]:
    """Empty columns in whose rows the others hang together less than elsewhere."""
    is_missing = table.is_missing & ~explained
    by_column = _log_factors_by_column(table)
    total = by_column.sum(axis=0) / 2  # each pair counts at both its columns
    columns, empty_rows = np.nonzero(is_missing)
    gains = largest_gains(-total[empty_rows], columns, table.n_columns)
    findings = []
    for empty in np.flatnonzero(gains > LEAST_GAIN):
        is_group = is_missing[empty, ~explained]
        others = (total - by_column[empty])[~explained]
        if is_group.sum() < FEWEST_ROWS:
            continue
        stories = np.stack([others, np.zeros_like(others)])[:, is_group].astype(np.float64)
        verdict = judge(stories, others < 0, is_group)
        p_value = verdict.p_value * table.n_columns
        n_rows = int(verdict.tells.sum())
        if p_value < LEVEL:
            words = (
                f"in {n_rows} rows where '{names[empty]}' is empty the other columns have less to "
                "do with each other than elsewhere, as if answered at random"
            )
            advice = "look at these rows, and leave them out if they are"
            empty_column = (names[empty],)
            findings.append(Finding("unrelated", empty_column, n_rows, p_value, words, advice))
    return findings


def _log_factors_by_column(table: RowTable) -> Numbers:
    """(n_columns, n_rows): of the pairs that each column belongs to."""
    places = table.pairs.T.ravel()
    pairs = np.tile(np.arange(len(table.pairs)), 2)
    ones = (np.ones(len(places), np.float32), (places, pairs))
    of_pairs = csr_array(ones, shape=(table.n_columns, len(table.pairs)))
    left, right = table.pairs.T
    total = np.empty_like(table.values)
    for rows in table.portions():
        z = table.standardised(table.values[:, rows], slice(None))
        total[:, rows] = of_pairs @ table.log_factors(z[left], z[right])
    return total


# Missing values that depend on others


def _depending(table: RowTable, packed: PackedSpins, explained: BoolArray) -> list[Finding]:
    """Columns that are missing more often for one value of another; of these the clearest one."""
    rest = table.some_rows(~explained)
    is_up = (rest.values > 0).astype(np.float32)  # as precise as counts of rows need it
    is_down = (rest.values < 0).astype(np.float32)
    n_up = is_up.sum(axis=1, dtype=np.float64)
    n_down = is_down.sum(axis=1, dtype=np.float64)
    n_looked_at = table.n_columns**2
    least = chdtri(1, LEVEL / n_looked_at)
    clearest = []
    for first in range(0, table.n_columns, _COLUMNS):  # never all pairs at a time
        is_missing = rest.is_missing[first : first + _COLUMNS].astype(np.float32)
        missing_up = (is_missing @ is_up.T).astype(np.float64)
        missing_down = (is_missing @ is_down.T).astype(np.float64)
        squares = _chi_squares(missing_up, missing_down, n_up, n_down)
        for row in np.flatnonzero(squares.max(axis=1) > least):
            other = int(squares[row].argmax())
            counts = (missing_up[row, other], missing_down[row, other])
            clearest.append((first + int(row), other, counts, float(squares[row, other])))
    findings = []
    for column, other, counts, square in clearest:
        p_value = float(chdtrc(1, square)) * n_looked_at
        shares = (counts[0] / n_up[other], counts[1] / n_down[other])
        is_for_up = shares[0] > shares[1]
        value: object = "+1" if is_for_up else "-1"
        if packed.mapping is not None:
            value = packed.mapping[other][int(is_for_up)]
        names = (packed.names[column], packed.names[other])
        words = (
            f"'{names[0]}' is missing more often where '{names[1]}' is {value} "
            f"({100 * max(shares):.0f} against {100 * min(shares):.0f} percent of rows), so that "
            "complete rows are not like all"
        )
        advice = "use missing='impute', which allows for that; missing='drop' does not"
        n_rows = int(rest.is_missing[column].sum())
        findings.append(Finding("depends", names, n_rows, p_value, words, advice))
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
    is_usable = rarest >= 5
    ratio = excess**2 / np.where(is_usable, variance, 1.0)
    return np.where(is_usable, ratio, 0.0)
