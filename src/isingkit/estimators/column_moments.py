"""ColumnMoments: how much columns vary, and how rare one of their two values is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isingkit._kernels.threads import one_blas_thread
from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.estimators import sizes

_NOTHING = 1e-9  # a variance that is rounding
# share of a column's variance that causes leave, at least: a score may be one column, or nearly
_LEAST_LEFT = 0.02
_SMALL = 1e-4  # a z-score times a skewness, below which the normal tail is good enough


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMoments:
    """What scores of pairs need to know of columns by themselves."""

    # (n_columns,): mean squares over all weight, about means where fields are fitted, and of what
    # causes leave; 0 where not observed
    variances: FloatArray
    skewness: FloatArray  # (n_columns,): 0 where fields are not fitted
    changes: BoolArray  # (n_columns,): whether both values occur
    n_samples: float

    def as_normal(self, z_scores: FloatArray, pairs: Pairs) -> FloatArray:
        r"""(n_pairs,): z-scores of sums of products of two columns, less where tails are long.

        Two rare values that meet once make a large z-score by chance. A sum of skewness g has about
        the tails of a Poisson number, whose signed root of the likelihood ratio is
        \sqrt{2 ((1 + z g) \log(1 + z g) - z g)} / g. Short tails stay as they are.
        """
        first, second = pairs.T
        skewness = self.skewness[first] * self.skewness[second] / np.sqrt(self.n_samples)
        along = z_scores * skewness
        found = z_scores.copy()
        is_long = along > _SMALL
        x = along[is_long]
        root = np.sqrt(2 * ((1 + x) * np.log1p(x) - x))
        found[is_long] = root / skewness[is_long]
        return found


def column_moments(
    values_of: Callable[[IntArray], FloatArray],
    n_columns: int,
    weights: FloatArray,
    causes: FloatArray,
    fit_fields: bool,
) -> ColumnMoments:
    """Of columns of -1, +1 and, where missing, 0.

    values_of: (n_some, n_rows) of some columns     causes: (n_causes, n_rows)
    """
    n_samples = float(weights.sum())
    shares = weights / n_samples
    roots = np.sqrt(shares)
    known = np.concatenate([np.ones((int(fit_fields), len(weights))), causes])
    with one_blas_thread():
        basis = _orthonormal(roots * known)
        variances = np.empty(n_columns)
        skewness = np.zeros(n_columns)
        changes = np.empty(n_columns, dtype=bool)
        portion = max(16, min(sizes.PORTION, sizes.RESIDUALS // max(len(weights), 1)))
        for start in range(0, n_columns, portion):
            some = np.arange(start, min(start + portion, n_columns))
            values = values_of(some)
            there = np.maximum(np.abs(values) @ shares, _NOTHING)
            sums = values @ shares
            changes[some] = there - np.abs(sums) > _NOTHING * there
            explained = ((values * roots) @ basis.T) ** 2
            left = there - explained.sum(axis=1) / there
            variances[some] = np.maximum(left, _LEAST_LEFT * (there - sums**2 / there))
            if fit_fields:
                means = sums / there
                skewness[some] = -2 * means / np.sqrt(np.maximum(1 - means**2, _NOTHING))
    return ColumnMoments(np.maximum(variances, _NOTHING), skewness, changes, n_samples)


def parts_along(
    values: FloatArray, weights: FloatArray, known: FloatArray, causes: FloatArray
) -> FloatArray:
    """(n_columns, n): correlations of columns with an orthonormal basis of causes, of what is left
    of both given what is known.

    values: (n_columns, n_rows)     known, causes: (n, n_rows) each
    """
    roots = np.sqrt(weights / weights.sum())
    with one_blas_thread():
        of_known = _orthonormal(roots * known)
        left_of_causes = roots * causes
        left_of_causes -= (left_of_causes @ of_known.T) @ of_known
        basis = _orthonormal(left_of_causes)
        rooted = values * roots
        there = np.maximum((rooted**2).sum(axis=1), _NOTHING)
        left = there - ((rooted @ of_known.T) ** 2).sum(axis=1) / there
        parts = rooted @ basis.T / np.sqrt(there * np.maximum(left, _NOTHING))[:, None]
        size = np.sqrt((parts**2).sum(axis=1, keepdims=True))
    return np.asarray(parts * np.minimum(1.0, np.sqrt(1 - _LEAST_LEFT) / np.maximum(size, 1e-300)))


def _orthonormal(rows: FloatArray) -> FloatArray:
    """(n, n_columns): a basis of what rows span."""
    if len(rows) == 0:
        return rows
    _, sizes_of, basis = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(basis[sizes_of > 1e-9 * sizes_of[0]])
