"""NormalEquations: the matrix and the means from which every linear estimator is solved."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from isingkit._kernels import estimators as kernels
from isingkit._kernels.threads import spread
from isingkit.exceptions import ConstantColumnWarning, DuplicateColumnsError, SingularSystemError, UnobservedPairWarning
from isingkit.gram import Gram

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class NormalEquations:
    """S'S of centred (or raw) spins, and what centring took away."""

    matrix: Matrix  # (n_spins, n_spins)
    means: Matrix  # (n_spins,): of the spins, or 0 where fields are not fitted
    changes: NDArray[np.bool_]  # (n_spins,): spins that are not constant
    unobserved: NDArray[np.intp]  # (n_pairs, 2): pairs never present together
    n_samples: float
    names: tuple[str, ...]
    pairwise: bool  # whether pair sums are over different rows

    @property
    def n_spins(self) -> int:
        return len(self.means)


def normal_equations(stat: Gram, fit_fields: bool) -> NormalEquations:
    """Normal equations of all N regressions at once, from the Gram alone.

    With missing values each pair sum is scaled from the rows where both are present to all rows.
    """
    n_spins = stat.n_spins
    matrix: Matrix = np.empty((n_spins, n_spins))
    spin_counts = stat.n_samples if stat.counts is None else np.diagonal(stat.counts)
    means = stat.spin_sums / spin_counts
    unobserved = np.empty((0, 2), dtype=np.intp)
    sums: Any = stat.sums
    if stat.counts is not None:
        sums = stat.sums * (stat.n_samples / np.maximum(stat.counts, np.finfo(float).tiny))
        unobserved = np.argwhere(np.triu(stat.counts == 0, k=1))
        np.copyto(sums, stat.n_samples * np.outer(means, means), where=stat.counts == 0)
    used = means if fit_fields else np.zeros(n_spins)
    spread(kernels.centred, n_spins, sums, used * stat.n_samples, float(stat.n_samples), matrix, chunk=256)
    changes = np.abs(stat.spin_sums) < spin_counts * (1 - 1e-12)
    return NormalEquations(matrix, used, changes, unobserved, stat.n_samples, stat.names, stat.counts is not None)


def warn_of_constants(normal: NormalEquations) -> None:
    """Warn of the spins that never change."""
    if not normal.changes.all():
        columns = [normal.names[j] for j in np.flatnonzero(~normal.changes)]
        warnings.warn(ConstantColumnWarning(columns=columns), stacklevel=3)


def refuse_duplicates(stat: Gram, normal: NormalEquations) -> None:
    """Refuse spins that are equal or opposite in every sample: their pair sum is plus or minus the number of samples."""
    total = stat.n_samples if stat.counts is None else np.maximum(stat.counts, 1)
    same = np.triu(np.abs(stat.sums) >= total * (1 - 1e-12), k=1) & np.outer(normal.changes, normal.changes)
    pairs = np.argwhere(same)
    if len(pairs):
        i, j = pairs[0]
        raise DuplicateColumnsError(
            pair=(stat.names[i], stat.names[j]), opposite=bool(stat.sums[i, j] < 0), n_pairs=len(pairs)
        )


def all_regressions(normal: NormalEquations, ridge: float) -> Matrix:
    r"""Ridge estimates of every row of J, from one matrix inverse. Row i: spin i on all others. [eq:PL-estimator-L2]

    With A = G + \lambda N I and P = A^{-1}, the block inverse gives \hat J_ij = -P_ij / P_ii: N regressions for one Cholesky inverse.
    """
    matrix = normal.matrix.copy()
    diagonal = np.einsum("ii->i", matrix)
    diagonal += ridge * normal.n_spins
    before = diagonal.copy()
    matrix[~normal.changes], matrix[:, ~normal.changes] = 0.0, 0.0  # isolated spins
    before[~normal.changes] = diagonal[~normal.changes] = 1.0
    factor, trouble = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    left = np.einsum("ii->i", factor) ** 2 / before  # what the spins before it leave unexplained of each spin
    if trouble > 0 or (ridge == 0 and left.min() < 1e-10):
        spin = normal.names[trouble - 1 if trouble > 0 else int(left.argmin())]
        raise SingularSystemError(spin=spin, pairwise=normal.pairwise, ridge=ridge)
    inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    estimates: Matrix = inverse.T  # C order: P in the lower triangle
    if len(normal.unobserved):
        _complete(estimates, normal)
    return as_regressions(estimates, normal.changes)


def as_regressions(inverse: Matrix, changes: NDArray[np.bool_]) -> Matrix:
    """-P_ij / P_ii of all rows, in place; P stands in the lower triangle."""
    diagonal = np.diagonal(inverse).copy()
    diagonal[~changes] = 1.0
    spread(kernels.regressions, -(-len(inverse) // kernels.TILE), inverse, diagonal, changes)
    return inverse


def _complete(inverse: Matrix, normal: NormalEquations) -> None:
    """Change P in place to what it is when unobserved pairs are given the pair sums that make their P_ij zero.

    That is the completion of largest determinant: the data say nothing of these pairs, so neither does the estimate. Choosing one pair
    sum after the other (each a change of P of rank two) converges, as iterative proportional fitting does.
    """
    pairs = [(names[0], names[1]) for names in (tuple(normal.names[k] for k in pair) for pair in normal.unobserved)]
    warnings.warn(UnobservedPairWarning(pairs=pairs), stacklevel=4)
    full = np.tril(inverse) + np.tril(inverse, -1).T
    for _ in range(100):
        largest = 0.0
        for i, j in normal.unobserved:
            block = full[np.ix_([i, j], [i, j])]
            correlation = abs(block[0, 1]) / np.sqrt(block[0, 0] * block[1, 1])
            largest = max(largest, correlation)
            change = block[0, 1] / np.linalg.det(block)
            columns = full[:, [i, j]]
            small = np.linalg.inv(np.array([[0.0, 1 / change], [1 / change, 0.0]]) + block) if change else np.zeros((2, 2))
            full -= columns @ small @ columns.T
        if largest < 1e-12:
            break
    inverse[:] = full
