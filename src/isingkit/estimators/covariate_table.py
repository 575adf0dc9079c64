"""The table of covariate effects: one row a variable and a covariate, surest first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from isingkit.arrays import FloatArray
from isingkit.estimators.q_values import benjamini_hochberg
from isingkit.result_table import ResultTable, as_table

_DIGITS = 9  # of z-scores and effects that rows are ordered by: rounding does not reach them
_TWO_SIDED_95 = 1.959963984540054
COVARIATE_COLUMNS = (
    "variable", "covariate", "effect", "low", "high", "std_error", "z", "p_value", "q_value"
)  # fmt: skip


def covariate_table(
    names: Sequence[str], covariate_names: Sequence[str], effects: FloatArray, errors: FloatArray
) -> ResultTable:
    """Table of COVARIATE_COLUMNS, surest first.

    effects, errors: (n_spins, n_covariates); an error is NaN where it is not known, and so are then
    low and high, the ends of 95 percent intervals, z, p and q. p-values are two-sided; q-values are
    Benjamini and Hochberg's over all that were tested. Where nothing was tested, the strongest is
    first.
    """
    flat = effects.ravel()
    std_errors = errors.ravel()
    known = std_errors > 0
    z_scores = np.full(len(flat), np.nan)
    z_scores[known] = flat[known] / std_errors[known]
    p_values = 2 * ndtr(-np.abs(z_scores))
    spins = np.array(names, dtype=np.str_)
    covariates = np.array(covariate_names, dtype=np.str_)
    columns = {
        "variable": np.repeat(spins, len(covariates)),
        "covariate": np.tile(covariates, len(spins)),
        "effect": flat,
        "low": flat - _TWO_SIDED_95 * std_errors,
        "high": flat + _TWO_SIDED_95 * std_errors,
        "std_error": std_errors,
        "z": z_scores,
        "p_value": p_values,
        "q_value": benjamini_hochberg(p_values),
    }
    order = _surest_first(z_scores, flat)
    return as_table({name: columns[name][order] for name in COVARIATE_COLUMNS})


def _surest_first(z_scores: FloatArray, effects: FloatArray) -> Any:
    """The order of rows: by |z|, those without a test last, then by |effect|."""
    sizes = np.round(np.abs(z_scores), _DIGITS)
    sizes[np.isnan(z_scores)] = -1.0
    return np.lexsort((-np.round(np.abs(effects), _DIGITS), -sizes))
