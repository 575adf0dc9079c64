"""NormalEquations: the matrix and the means from which every linear estimator is solved."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from isingkit._kernels import estimators as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.estimators import sizes
from isingkit.estimators.moments import SecondMoments
from isingkit.exceptions import (
    ContradictoryPairsWarning,
    CovariatesError,
    DuplicateColumnsError,
    NotConvergedError,
    NoValuesError,
    SingularSystemError,
    UnobservedPairWarning,
    warn,
)
from isingkit.gram import Gram, Joint
from isingkit.packing import PackedSpins, unpacked
from isingkit.spins import Names, RowWeights

_SWEEPS = 300  # over the pairs never seen together
_DETERMINED = 1e-10  # of a spin's variance: less than this is nothing that covariates leave


@dataclass(frozen=True, slots=True, eq=False)
class NormalEquations:
    """S'S of centred (or raw) spins, and what centring took away."""

    matrix: FloatArray  # (n_spins, n_spins)
    means: FloatArray  # (n_spins,): of the spins, or 0 where fields are not fitted
    changes: BoolArray  # (n_spins,): spins that are not constant
    unobserved: NDArray[np.intp]  # (n_pairs, 2): pairs never present together
    n_samples: float  # rows, or their total weight
    n_effective: float  # samples of equal weight that would tell as much
    n_rows: int
    names: Names

    @property
    def n_spins(self) -> int:
        return len(self.means)

    @property
    def variances(self) -> FloatArray:
        """(n_spins,): sums of squares of centred spins."""
        return np.diagonal(self.matrix)

    @property
    def source(self) -> FloatArray:
        """Where kernels find covariances."""
        return self.matrix

    def covariances(self, pairs: IntArray) -> FloatArray:
        """(n_pairs,): sums of products of two centred spins."""
        return np.asarray(self.matrix[tuple(pairs.T)])

    def block(self, some: IntArray) -> FloatArray:
        """(n_some, n_some): covariances of some spins."""
        return np.asarray(self.matrix[np.ix_(some, some)])

    def resolvents(self) -> "Callable[[float], DenseResolvent]":
        """By ridge."""
        return lambda ridge: DenseResolvent(self, ridge, factor_of(self, ridge))

    def as_estimates(self, matrix: Any) -> Any:
        """Directed estimates as users get them: dense."""
        return matrix.toarray()


@dataclass(slots=True, eq=False)
class DenseResolvent:
    r"""R = (C + z)^{-1} of sample correlations C, z = \lambda / \alpha."""

    moments: NormalEquations
    ridge: float
    _factor: FloatArray | None  # Cholesky factor of the normal equations; None once it is used up

    def diagonals(self, spins: IntArray) -> tuple[FloatArray, FloatArray]:
        """R_ii and (R^2)_ii of some spins."""
        columns = np.zeros((self.moments.n_spins, len(spins)), order="F")
        columns[spins, np.arange(len(spins))] = self.moments.n_samples
        rows, _ = lapack.dpotrs(self._factor, columns, lower=0, overwrite_b=1)
        return rows[spins, np.arange(len(spins))], (rows**2).sum(axis=0)

    def all_diagonals(self, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """R_ii and (R^2)_ii of all spins."""
        _, diagonal, squares = self.whole()
        return diagonal, squares

    def whole(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """R, its diagonal, and that of its square; uses the factor up."""
        factor = self._factor
        if factor is None:
            factor = factor_of(self.moments, self.ridge)
        resolvent = inverse_of(self.moments, factor)
        self._factor = None
        mirror_lower(resolvent)
        resolvent *= self.moments.n_samples
        squares = np.einsum("ij,ij->i", resolvent, resolvent)
        return resolvent, np.diagonal(resolvent).copy(), squares


def mirror_lower(matrix: FloatArray) -> None:
    """Make a matrix symmetric in place: its lower triangle is what counts."""
    for start in range(0, len(matrix), sizes.MIRROR_TILE):
        stop = start + sizes.MIRROR_TILE
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T
        square = matrix[start:stop, start:stop]
        square[:] = np.tril(square) + np.tril(square, k=-1).T


def normal_equations(stat: Gram, fit_fields: bool) -> NormalEquations:
    """Normal equations of all N regressions at once, from the Gram alone.

    With missing values, covariances are over the rows where both are present (their means, too),
    scaled to all rows.
    """
    n_spins = stat.n_spins
    counts = np.broadcast_to(stat.n_samples, n_spins)
    if stat.joint is not None:
        counts = np.diagonal(stat.joint.counts)
    if not np.all(counts > 0):
        raise NoValuesError(columns=[stat.names[j] for j in np.flatnonzero(counts == 0)])
    means = stat.spin_sums / counts if fit_fields else np.zeros(n_spins)
    unobserved = np.empty((0, 2), dtype=np.int64)
    if stat.joint is None:
        sums = means * stat.n_samples
        matrix: FloatArray = np.multiply.outer(sums / stat.n_samples, sums)
        np.subtract(stat.sums, matrix, out=matrix)
    else:
        matrix, unobserved = _pairwise(stat, stat.joint, fit_fields)
    return NormalEquations(
        matrix=matrix,
        means=means,
        changes=stat.changes,
        unobserved=unobserved,
        n_samples=stat.n_samples,
        n_effective=stat.n_effective,
        n_rows=stat.n_rows,
        names=stat.names,
    )


def _pairwise(stat: Gram, joint: Joint, fit_fields: bool) -> tuple[FloatArray, IntArray]:
    """Covariances over the rows where both are present, and the pairs that never are."""
    never = joint.counts == 0
    counts = np.where(never, 1, joint.counts)
    matrix = stat.sums / counts
    if fit_fields:
        means = joint.spin_sums / counts
        matrix -= means * means.T
    matrix *= stat.n_samples
    unobserved = np.argwhere(np.triu(never, k=1))
    if len(unobserved):
        pairs = [(stat.names[i], stat.names[j]) for i, j in unobserved]
        warn(UnobservedPairWarning(pairs=pairs))
        _bridge(matrix, never)
    return _reconciled(matrix), unobserved


def _bridge(matrix: FloatArray, never: BoolArray) -> None:
    """Give pairs never seen together, in place, the covariance that the spins K seen with both
    imply: C_iK C_KK^{-1} C_Kj.

    Where K is all other spins, that is the completion of largest determinant; else a start for
    `_complete`.
    """
    known = np.where(never, 0.0, matrix)
    solved: dict[bytes, FloatArray] = {}
    for i, j in np.argwhere(np.triu(never, k=1)):
        both = ~(never[i] | never[j])
        both[[i, j]] = False
        inverse = solved.get(both.tobytes())
        if inverse is None:
            among = known[np.ix_(both, both)]
            inverse = np.linalg.pinv(among, rcond=1e-10, hermitian=True)
            solved[both.tobytes()] = inverse
        expected = known[i, both] @ inverse @ known[both, j]
        matrix[i, j] = matrix[j, i] = expected


def _reconciled(matrix: FloatArray) -> FloatArray:
    """The nearest positive semidefinite matrix, rescaled to the same diagonal, where pair sums over
    different rows contradict.

    Negative eigenvalues are the sign of that; they are set to zero, with a warning. A ridge large
    enough to hide them instead would leave the contradictions to dominate the estimates.
    """
    if lapack.dpotrf(matrix.T, clean=0)[1] == 0:
        return matrix
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= -1e-10 * values[-1]:  # singular, not contradictory
        return matrix
    warn(ContradictoryPairsWarning(smallest=float(values[0] / values.mean())))
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    least = np.finfo(float).tiny
    variances = np.maximum(np.diagonal(nearest), least)
    scale = np.sqrt(np.diagonal(matrix) / variances)
    return np.asarray(nearest * np.outer(scale, scale))


@dataclass(frozen=True, slots=True, eq=False)
class CovariateSums:
    """Pair sums of spins and covariates, and of covariates, over rows and their weights."""

    products: FloatArray  # (n_spins, n): S'Z of centred (or raw) spins; 0 of constant ones
    factor: FloatArray  # (n, n): upper triangular R, Z'Z = R'R

    @property
    def orthonormal(self) -> FloatArray:
        """(n_spins, n): pair sums of spins and covariates that were made orthonormal."""
        return np.asarray(solve_triangular(self.factor, self.products.T, trans="T").T)

    @property
    def slopes(self) -> FloatArray:
        """(n_spins, n): least squares of each spin on covariates alone."""
        return np.asarray(solve_triangular(self.factor, self.orthonormal.T).T)


def covariate_sums(
    normal: NormalEquations, packed: PackedSpins, weights: RowWeights
) -> CovariateSums:
    """Pair sums of spins and covariates, in one pass over the bits.

    Where values are missing, the sum over the rows that have one is scaled to all rows, as
    covariances of spins are.
    """
    covariates = weights.covariates
    assert covariates is not None
    totals = weights.totals * (normal.n_samples / weights.totals.sum())
    weighted = totals[:, None] * covariates
    products = np.zeros((normal.n_spins, covariates.shape[1]))
    step = max(1, sizes.CACHED_CELLS // packed.n_samples)
    for start in range(0, normal.n_spins, step):
        some = slice(start, start + step)
        spins: FloatArray = unpacked(packed.words[some], packed.n_samples, np.float64)
        scale: Any = 1.0
        if packed.present is not None:
            is_there = unpacked(packed.present[some], packed.n_samples, np.int8) > 0
            spins = np.where(is_there, spins - normal.means[some, None], 0.0)
            scale = normal.n_samples / (is_there @ totals)[:, None]
        products[some] = scale * (spins @ weighted)
    products[~normal.changes] = 0.0
    by_roots = np.sqrt(totals)[:, None] * covariates
    factor = np.asarray(np.linalg.qr(by_roots, mode="r"))
    return CovariateSums(products, factor)


def without_covariates(
    normal: NormalEquations, packed: PackedSpins, weights: RowWeights
) -> NormalEquations:
    """Normal equations of what covariates leave of spins: S'S - S'Z (Z'Z)^{-1} Z'S."""
    return left_by(covariate_sums(normal, packed, weights), normal, packed.present is not None)


def left_by(sums: CovariateSums, normal: NormalEquations, pairwise: bool) -> NormalEquations:
    """Normal equations of what covariates of these sums leave of spins.

    pairwise: whether pairs were counted over different rows, so that sums may contradict
    """
    explained = sums.orthonormal
    matrix: FloatArray = explained @ explained.T
    np.subtract(normal.matrix, matrix, out=matrix)
    require_undetermined(normal, np.diagonal(matrix))
    return replace(normal, matrix=_reconciled(matrix) if pairwise else matrix)


def require_undetermined(before: SecondMoments, left: FloatArray) -> None:
    """Refuse covariates that leave nothing of a spin's variance."""
    determined = before.changes & (left <= _DETERMINED * before.variances)
    if determined.any():
        name = before.names[int(determined.argmax())]
        raise CovariatesError(
            problem=f"they determine '{name}', of which nothing is left for a network",
            advice="leave that column of spins out, or the covariate",
        )


def correlations(normal: NormalEquations) -> FloatArray:
    """Sample correlations, the direction of the ridge estimates as ridge grows without bound.

    0 on the diagonal.
    """
    # weights make rounding errors of variances that are 0
    scale = np.sqrt(np.maximum(np.diagonal(normal.matrix), 0.0))
    scale[~normal.changes] = np.inf
    matrix = normal.matrix / scale[:, None]
    matrix /= scale
    np.fill_diagonal(matrix, 0.0)
    first, second = normal.unobserved.T
    matrix[first, second] = matrix[second, first] = 0.0
    return matrix


def constant_fields(values: FloatArray, n_samples: float) -> FloatArray:
    """Finite fields of spins that never change: log odds with half a sample added to either
    side.
    """
    return np.asarray(np.sign(values) * np.log1p(2 * max(n_samples, 1.0)) / 2)


def refuse_duplicates(stat: Gram, normal: NormalEquations) -> None:
    """Refuse spins that are equal or opposite in every sample: their pair sum is plus or minus the
    number of samples.
    """
    total = stat.n_samples if stat.joint is None else np.maximum(stat.joint.counts, 1)
    agree = np.abs(stat.sums) >= total * (1 - 1e-12)
    same = np.triu(agree, k=1) & np.outer(normal.changes, normal.changes)
    pairs = np.argwhere(same)
    if len(pairs):
        i, j = pairs[0]
        pair = (stat.names[i], stat.names[j])
        opposite = bool(stat.sums[i, j] < 0)
        raise DuplicateColumnsError(pair=pair, opposite=opposite, n_pairs=len(pairs))


def all_regressions(normal: NormalEquations, inverse: FloatArray) -> FloatArray:
    r"""Ridge estimates of every row of J, from one matrix inverse. Row i: spin i on all others.
    [eq:PL-estimator-L2]

    With A = G + \lambda N I and P = A^{-1}, in the lower triangle of `inverse`, the block inverse
    gives \hat J_ij = -P_ij / P_ii: N regressions for one inverse.
    """
    estimates = as_regressions(inverse, normal.changes)
    for i, j in normal.unobserved:
        estimates[i, j] = estimates[j, i] = 0.0
    return estimates


def through_means(estimates: FloatArray, normal: NormalEquations) -> tuple[FloatArray, FloatArray]:
    """Directed estimates, and intercepts with which the lines of regression pass through the
    means.
    """
    return estimates, normal.means - estimates @ normal.means


def inverse_of(normal: NormalEquations, factor: FloatArray) -> FloatArray:
    """(G + ridge N I)^{-1} in the lower triangle, in place of its Cholesky factor; constant spins
    stand alone.
    """
    inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    lower: FloatArray = inverse.T  # C order: P in the lower triangle
    if len(normal.unobserved):
        _complete(lower, normal)
    return lower


def factor_of(normal: NormalEquations, ridge: float) -> FloatArray:
    """Cholesky factor of G + ridge N I, in the upper triangle of an array in Fortran's order."""
    matrix = normal.matrix.copy()
    diagonal = np.einsum("ii->i", matrix)
    diagonal += ridge * normal.n_spins
    before = diagonal.copy()
    # isolated spins
    matrix[~normal.changes] = 0.0
    matrix[:, ~normal.changes] = 0.0
    before[~normal.changes] = diagonal[~normal.changes] = 1.0
    factor, trouble = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    # what the spins before it leave unexplained of each spin
    left = np.einsum("ii->i", factor) ** 2 / before
    if trouble > 0 or left.min() < 1e-10:
        spin = normal.names[trouble - 1 if trouble > 0 else int(left.argmin())]
        raise SingularSystemError(spin=spin, n_samples=normal.n_rows, n_spins=normal.n_spins)
    return np.asarray(factor)


def as_regressions(inverse: FloatArray, changes: BoolArray) -> FloatArray:
    """-P_ij / P_ii of all rows, in place; P stands in the lower triangle."""
    diagonal = np.diagonal(inverse).copy()
    diagonal[~changes] = 1.0
    n_tiles = -(-len(inverse) // kernels.MATRIX_TILE)
    parallel_map(kernels.regressions, n_tiles, inverse, diagonal, changes)
    return inverse


def _complete(inverse: FloatArray, normal: NormalEquations) -> None:
    """Change P in place to what it is when unobserved pairs are given the pair sums that make their
    P_ij zero.

    That is the completion of largest determinant: the data say nothing of these pairs, so neither
    does the estimate. Choosing one pair sum after the other (each a change of P of rank two)
    converges, as iterative proportional fitting does.
    """
    full = np.tril(inverse) + np.tril(inverse, -1).T
    largest = np.inf
    for _ in range(_SWEEPS):
        largest = 0.0
        for i, j in normal.unobserved:
            block = full[np.ix_([i, j], [i, j])]
            if block[0, 1] == 0:
                continue
            largest = max(largest, abs(block[0, 1]) / np.sqrt(block[0, 0] * block[1, 1]))
            turn = np.linalg.det(block) / block[0, 1]  # 1 / the change of the pair sum
            columns = full[:, [i, j]]
            full -= columns @ np.linalg.inv(block + turn * np.eye(2)[::-1]) @ columns.T
        if largest < 1e-12:
            break
    else:
        if largest > 1e-6:
            raise NotConvergedError(
                what="the completion of pairs never seen together", residual=largest,
                advice="use a larger ridge, or leave out the emptiest columns",
            )  # fmt: skip
    inverse[:] = full
