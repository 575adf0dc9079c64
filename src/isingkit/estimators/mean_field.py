"""MeanFieldIsing: couplings in closed form from means and covariances."""

import numpy as np

from isingkit.arrays import BoolArray, FloatArray
from isingkit.estimators.base import GramEstimator
from isingkit.estimators.normal import (
    NormalEquations,
    constant_fields,
    factor_of,
    inverse_of,
    refuse_duplicates,
)
from isingkit.exceptions import (
    EmptyCellWarning,
    NoMeanFieldWarning,
    SettingError,
    UnderdeterminedError,
    require_instance,
    warn,
)
from isingkit.gram import Gram
from isingkit.packing import PackedSpins
from isingkit.spins import Binarize, RowWeights

METHODS = ("naive", "tap", "bethe", "sessak-monasson", "independent-pair", "independent")
_LARGEST_RATIO = 1 - 1e-12  # of which there is an inverse hyperbolic tangent


class MeanFieldIsing(GramEstimator):
    r"""Couplings and fields by an approximate inversion of the model, in closed form from means and
    covariances.

    With m the means, C the covariances and q_ij = (C^{-1})_ij, exact up to the power of couplings
    in brackets (one more without fields, except for pairs):

    - "naive": J = -q [first];
    - "tap": J + 2 m_i m_j J^2 = -q [second; no more without fields];
    - "bethe": exact on trees; without fields J = -asinh(2 q) / 2 [second];
    - "sessak-monasson": the naive and the independent-pair couplings added, and what both count
      taken off once [third];
    - "independent-pair": each pair as if it were alone: the log odds ratio over 4 [first];
    - "independent": no couplings at all, for comparison.

    Parameters
    ----------
    method
        One of the above.
    deflate
        Whether to multiply the inverse covariances by 1 - n_spins / n_samples, the factor by which
        few samples inflate them.
    threshold
        Couplings below it count as absent.
    rule
        How two directed estimates become one coupling: "average" thresholds their mean; "and" asks
        both to pass; "or" asks one to.
    fit_fields
        Whether to fit fields; without, spins are taken to be symmetric.
    binarize
        Threshold that turns real-valued columns into spins, or thresholds by names of columns.
    missing
        "error", "drop" or "pairwise".
    merge_alike
        Whether columns that are equal, or opposite, in all rows become one spin, with the name of
        the first of them: True, False, or a number, the correlation from which on they do. "auto"
        is True beyond 1000 columns.

    Attributes
    ----------
    estimates_
        (n_spins, n_spins) array; row i is the directed estimate of J_i before the threshold.
    intercepts_
        (n_spins,) array of the estimated fields.
    model_
        The IsingModel after threshold and rule.
    alike_
        Table of columns that became part of another's spin: column, spin, correlation. Empty where
        none did; else `model_` and all that is said of spins has one for all of them.
    n_samples_
        Samples used: rows, or their counts; of weights w (sum w)^2 / sum w^2.
    mapping_
        For each spin the values of the table that became -1 and +1.

    Examples
    --------
    >>> import isingkit as ik
    >>> truth = ik.random_tree(n_spins=50, coupling=0.6, random_state=0)
    >>> samples = ik.sample(truth, n_samples=4000, random_state=1)
    >>> fit = ik.MeanFieldIsing(method="bethe", threshold=0.3).fit(samples)
    >>> ik.score(fit.model_, truth).exact
    True
    """

    def __init__(
        self,
        *,
        method: str = "bethe",
        deflate: bool = True,
        threshold: float = 0.0,
        rule: str = "average",
        fit_fields: bool = True,
        binarize: Binarize = None,
        missing: str = "error",
        merge_alike: bool | float | str = "auto",
    ) -> None:
        super().__init__(
            threshold=threshold,
            rule=rule,
            fit_fields=fit_fields,
            binarize=binarize,
            missing=missing,
            merge_alike=merge_alike,
        )
        self.method = method
        self.deflate = deflate

    def _check_settings(self) -> None:
        super()._check_settings()
        require_instance("deflate", self.deflate, bool, "True or False")
        if self.method not in METHODS:
            *others, last = METHODS
            listed = ", ".join(f"'{method}'" for method in others)
            expected = f"{listed} or '{last}'"
            raise SettingError(setting="method", value=self.method, expected=expected)

    def _estimate(
        self,
        stat: Gram,
        normal: NormalEquations,
        packed: PackedSpins | None,
        weights: RowWeights | None,
    ) -> tuple[FloatArray, FloatArray]:
        keep = normal.changes
        means = normal.means[keep]
        covariance = normal.matrix[np.ix_(keep, keep)] / normal.n_samples
        inverse = np.zeros_like(covariance)
        if self.method in ("naive", "tap", "bethe", "sessak-monasson") and keep.any():
            n_known = min(stat.n_rows, stat.n_effective) if self.deflate else stat.n_rows
            if n_known <= keep.sum():
                raise UnderdeterminedError(
                    n_samples=n_known,
                    n_spins=stat.n_spins,
                    what="the inverse of the covariances",
                )
            refuse_duplicates(stat, normal)
            lower = np.tril(inverse_of(normal, factor_of(normal, ridge=0.0)))
            lower = lower[np.ix_(keep, keep)] * normal.n_samples
            inverse = lower + np.tril(lower, -1).T
            if self.deflate:
                inverse *= 1 - keep.sum() / stat.n_effective
        names = [name for name, kept in zip(normal.names, keep, strict=True) if kept]
        couplings = mean_field_couplings(
            self.method, means, covariance, inverse, stat.n_effective, names
        )
        estimates = np.zeros_like(normal.matrix)
        intercepts = np.zeros(normal.n_spins)
        estimates[np.ix_(keep, keep)] = couplings
        for i, j in normal.unobserved:
            estimates[i, j] = estimates[j, i] = 0.0
        if self.fit_fields:
            couplings = estimates[np.ix_(keep, keep)]
            intercepts[keep] = mean_field_fields(
                self.method, means, covariance, couplings, stat.n_effective
            )
            intercepts[~keep] = constant_fields(normal.means[~keep], stat.n_effective)
        return estimates, intercepts


def mean_field_couplings(
    method: str,
    means: FloatArray,
    covariance: FloatArray,
    inverse: FloatArray,
    n_samples: float,
    names: list[str],
) -> FloatArray:
    """Couplings by one of METHODS, zero on the diagonal."""
    if method == "independent":
        return np.zeros_like(covariance)
    if method == "naive":
        couplings = -inverse
    elif method == "independent-pair":
        couplings = _pair_couplings(means, covariance, n_samples, names)
    elif method == "sessak-monasson":
        covariance = covariance.copy()
        np.fill_diagonal(covariance, 0.0)
        pairs = _pair_couplings(means, covariance, n_samples, names)
        variances = 1 - means**2
        left = np.outer(variances, variances) - covariance**2
        couplings = pairs - inverse - covariance / np.maximum(left, 1e-12)
    else:
        inverted = _tap_couplings if method == "tap" else bethe_couplings
        couplings, square = inverted(inverse, means[:, None], means)
        none = (square < 0) & ~np.eye(len(means), dtype=bool)
        if none.any():
            warn(NoMeanFieldWarning(method=method, pairs=_named_pairs(none, names)))
            instead = _pair_couplings(means, covariance, n_samples, names, none)
            couplings = np.where(none, instead, couplings)
    couplings = np.array(couplings)
    np.fill_diagonal(couplings, 0.0)
    return couplings


def _named_pairs(chosen: BoolArray, names: list[str]) -> list[tuple[str, str]]:
    """Names of the pairs i < j that are chosen, (n_spins, n_spins)."""
    pairs = np.argwhere(np.triu(chosen))
    return [(names[i], names[j]) for i, j in pairs]


def _tap_couplings(
    inverse: FloatArray, first: FloatArray, second: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same as `bethe_couplings`, by TAP."""
    square = 1 - 8 * first * second * inverse
    root = np.sqrt(np.maximum(square, 0.0))
    return -2 * inverse / (1 + root), square


def bethe_couplings(
    inverse: FloatArray, first: FloatArray, second: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Couplings from entries q of the inverse covariances and the means of both spins; and a
    square, below 0 where there is none.

    tanh J = -2q / (a + sqrt(a^2 - 4 q^2)), a form in which nothing is divided by a small q.
    """
    variances = (1 - first**2) * (1 - second**2)
    of_variances = np.sqrt(1 + 4 * variances * inverse**2)
    a = of_variances - 2 * first * second * inverse
    square = a**2 - 4 * inverse**2
    root = np.sqrt(np.maximum(square, 0.0))
    return _arctanh(-2 * inverse / (a + root)), square


def _arctanh(ratio: FloatArray) -> FloatArray:
    """Finite where a ratio is 1 or more, which rounding or few samples make."""
    return np.asarray(np.arctanh(np.clip(ratio, -_LARGEST_RATIO, _LARGEST_RATIO)))


def bethe_pulls(couplings: FloatArray, own: FloatArray, other: FloatArray) -> FloatArray:
    """What a neighbour adds to the field of a spin, from their coupling and the means of both; 0
    where there is no coupling.
    """
    ratio = np.tanh(couplings)
    pull = other - own * ratio  # of the neighbour once what it gets from the spin is taken off
    back = own - other * ratio
    left = 1 - ratio**2
    square = left**2 - 4 * ratio * pull * back
    root = np.sqrt(np.maximum(square, 0.0))
    return _arctanh(ratio * (2 * pull / (left + root)))


def _cells(
    means: FloatArray, covariance: FloatArray, n_samples: float
) -> tuple[FloatArray, BoolArray]:
    """(2, 2, n, n): probabilities of the values (-, +) of two spins; half a sample is added to each
    where one has none.
    """
    products = covariance + np.outer(means, means)
    values = np.array([-1.0, 1.0])
    own = values[:, None, None, None]
    other = values[None, :, None, None]
    cells = (1 + own * means[:, None] + other * means + own * other * products) / 4
    same_spin = np.eye(len(means), dtype=bool)
    empty = np.any(cells < 1e-9, axis=(0, 1)) & ~same_spin
    n_samples = max(n_samples, 1.0)
    filled = (np.maximum(cells, 0.0) * n_samples + 0.5) / (n_samples + 2)
    cells = np.where(empty, filled, cells)
    return np.where(same_spin, 0.25, cells), empty


def _pair_couplings(
    means: FloatArray,
    covariance: FloatArray,
    n_samples: float,
    names: list[str],
    wanted: BoolArray | None = None,
) -> FloatArray:
    cells, empty = _cells(means, covariance, n_samples)
    if wanted is not None:
        empty = empty & wanted
    if empty.any():
        warn(EmptyCellWarning(pairs=_named_pairs(empty, names)))
    equal = cells[1, 1] * cells[0, 0]
    unequal = cells[1, 0] * cells[0, 1]
    return np.asarray(np.log(equal / unequal) / 4)


def mean_field_fields(
    method: str, means: FloatArray, covariance: FloatArray, couplings: FloatArray, n_samples: float
) -> FloatArray:
    """Fields that go with the couplings: by the same approximation, and by that of TAP for
    Sessak-Monasson.
    """
    alone = _arctanh(means)
    if method in ("independent", "naive"):
        return alone - couplings @ means
    if method == "independent-pair":
        cells, _ = _cells(means, covariance, n_samples)
        up = cells[1, 1] * cells[1, 0]
        down = cells[0, 1] * cells[0, 0]
        each = np.log(up / down) / 4 - alone[:, None]
        np.fill_diagonal(each, 0.0)
        return np.asarray(alone + each.sum(axis=1))
    if method == "bethe":
        pulls = bethe_pulls(couplings, means[:, None], means)
        return np.asarray(alone - pulls.sum(axis=1))
    reaction = couplings**2 @ (1 - means**2)  # Onsager's term
    return np.asarray(alone - couplings @ means + means * reaction)
