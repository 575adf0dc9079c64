"""Tables of hidden causes: who follows which cause, and how far each row is on it."""

import math
from collections.abc import Sequence

import numpy as np

from isingkit.estimators.hidden_causes import HiddenReport
from isingkit.result_table import Record
from isingkit.spins import Names

_DIGITS = 9  # of loadings that rows are ordered by: rounding does not reach them
LOADING_COLUMNS = ("variable", "cause", "loading", "std_error", "z")


def loading_rows(names: Sequence[str], hidden: HiddenReport | None) -> list[Record]:
    """Rows by LOADING_COLUMNS: cause after cause, from 1, strongest first; None where unknown."""
    if hidden is None:
        return []
    rows = []
    for k in range(hidden.n_hidden):
        loadings = hidden.loadings[:, k]
        for i in np.argsort(-np.round(np.abs(loadings), _DIGITS), kind="stable"):
            error = float(hidden.std_errors[i, k])
            is_known = math.isfinite(error) and error > 0
            rows.append(
                {
                    "variable": names[i],
                    "cause": k + 1,
                    "loading": float(loadings[i]),
                    "std_error": error if is_known else None,
                    "z": float(loadings[i]) / error if is_known else None,
                }
            )
    return rows


def score_columns(hidden: HiddenReport) -> Names:
    """Names of the columns of `score_rows`."""
    return ("row", *(f"score_{k + 1}" for k in range(hidden.n_hidden)))


def score_rows(hidden: HiddenReport, left_out: Sequence[int] = ()) -> list[Record]:
    """Scores of rows, which are counted from 1 in a table of which those in some places, from 0,
    were left out.
    """
    columns = score_columns(hidden)
    n_rows = len(hidden.scores) + len(left_out)
    kept = np.setdiff1d(np.arange(n_rows), np.array(left_out, dtype=np.int64)) + 1
    return [
        dict(zip(columns, (row, *scores), strict=True))
        for row, scores in zip(kept.tolist(), hidden.scores.tolist(), strict=True)
    ]
