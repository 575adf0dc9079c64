"""What ridge regression finds for one spin of any tree-like model."""

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import cg

from isingkit.arrays import FloatArray, IntArray
from isingkit.exceptions import NotConvergedError, SettingError, require_instance, require_number
from isingkit.model import IsingModel
from isingkit.theory.bethe import ModelSpectrum, bethe_matrix
from isingkit.theory.cavity import CavitySpectrum
from isingkit.theory.prediction import (
    MeanEstimates,
    Prediction,
    check_depth,
    checked,
    predicted,
    solved,
)
from isingkit.theory.regions import inverse_correlations
from isingkit.theory.ridge import GENERATIONS
from isingkit.theory.spectrum import Spectrum, scalar_weights

FEW_SPINS = 3000  # up to which a model's spectrum is taken from its eigenvalues


def of_model(
    model: IsingModel,
    spin: int,
    samples_per_spin: ArrayLike,
    ridge: ArrayLike = 0.0,
    depth: int | None = None,
    spectrum: Spectrum | None = None,
) -> Prediction:
    """Prediction for one spin of any model with few short loops, from its own neighbourhood.

    [eq:J-mean-linear-equation-1] [eq:C0-inverse-matrix-1-v2] [eq:Linear-equation-regularize]

    Mean estimates solve a sparse linear system on the ball of radius `depth` around the spin, whose
    inverse correlations are known: by the Bethe matrix on trees, and up to 3000 spins by the
    cluster variation method where there are triangles or squares, as on lattices. A model is
    refused where these are too much for it.

    Parameters
    ----------
    model
        An IsingModel without fields.
    spin
        Which spin.
    samples_per_spin
        alpha.
    ridge
        lambda.
    depth
        Radius of the ball; None is the whole model.
    spectrum
        The model's spectrum, where it is at hand; else eigenvalues up to 3000 spins, belief
        propagation beyond.

    Examples
    --------
    >>> import isingkit as ik
    >>> model = ik.random_tree(n_spins=100, coupling=0.4, random_state=0)
    >>> p = ik.theory.of_model(model, spin=0, samples_per_spin=2)
    >>> p.kappa, round(p.Q + p.unexplained - 2 * p.Q, 9)  # at alpha = 2 noise doubles the residual
    (2.0, 0.0)
    """
    check_depth(depth)
    alpha, penalty = checked(samples_per_spin, ridge)
    require_instance("model", model, IsingModel, "an IsingModel")
    spectrum = spectrum or spectrum_of(model)
    require_number("spin", spin, at_least=0, whole=True)
    if spin >= model.n_spins:
        raise SettingError(setting="spin", value=spin, expected=f"below n_spins={model.n_spins}")
    state = solved(spectrum, alpha, penalty)
    order, distances = _ball(model, spin, depth)
    ball = IsingModel(model.couplings[order][:, order])
    matrix = _of_whole(model)[order][:, order] if depth is None else _inverse_correlations(ball)
    ridges = state.effective_ridge
    found = [_mean_estimates(ball, matrix, distances, float(k)) for k in ridges.ravel()]
    return predicted(state, _stacked(found, ridges.shape), depth)


def spectrum_of(model: IsingModel) -> Spectrum:
    """A model's spectrum: eigenvalues while that is quick, belief propagation beyond."""
    if model.n_spins > FEW_SPINS:
        return CavitySpectrum(model)
    return ModelSpectrum(np.linalg.eigvalsh(_of_whole(model).toarray()))


def _inverse_correlations(model: IsingModel) -> csr_array:
    """Of models whose inverse is affordable, with loops; of others as on trees."""
    return inverse_correlations(model) if model.n_spins <= FEW_SPINS else bethe_matrix(model)


@lru_cache(maxsize=1)  # spins of a model are asked for one after the other, balls of it in between
def _of_whole(model: IsingModel) -> csr_array:
    return _inverse_correlations(model)


def _ball(model: IsingModel, spin: int, depth: int | None) -> tuple[IntArray, IntArray]:
    """Spins within a distance, the spin first, and their distances; without a depth, all spins."""
    order, before = breadth_first_order(model.couplings, spin, directed=False)
    distance = np.zeros(model.n_spins, dtype=np.int64)
    for i in order[1:]:
        distance[i] = distance[before[i]] + 1
    if depth is not None:
        order = order[distance[order] <= depth]
    return order, distance[order]


def _mean_estimates(
    ball: IsingModel, matrix: csr_array, distances: IntArray, k: float
) -> MeanEstimates:
    """Mean estimates of the couplings of the ball's first spin."""
    one, scale = scalar_weights(k)
    shifted = one * scipy.sparse.eye_array(ball.n_spins) + scale * matrix
    column = _first_column_of_inverse(shifted)
    kept = matrix @ column  # [H (p + q H)^-1]_{. 0}
    estimates = -kept / kept[0] if one > 0 else column.copy()  # at infinity: correlations
    estimates[0] = 0.0
    truth = ball.couplings[[0]].toarray().ravel()
    near = truth != 0
    ratios = estimates[near] / truth[near]
    bias = np.mean(ratios) if len(ratios) else np.nan
    error = np.sum((truth - estimates) ** 2)
    unexplained = column @ kept / kept[0] ** 2
    return MeanEstimates(
        by_generation=_by_generation(estimates, distances),
        squares=float(estimates @ estimates),
        error=error,
        bias=bias,
        unexplained=unexplained,
    )


def _first_column_of_inverse(matrix: csr_array) -> FloatArray:
    start = np.zeros(matrix.shape[0])
    start[0] = 1.0
    column, failed = cg(matrix, start, rtol=1e-14, maxiter=100_000)
    if failed:
        what = "the linear system of the mean estimates"
        raise NotConvergedError(what=what, residual=float(failed))
    return np.asarray(column)


def _by_generation(estimates: FloatArray, distances: IntArray) -> list[float]:
    """Mean |estimate| at distance 1, 2, ..."""
    last = max(1, min(GENERATIONS, int(distances.max())))
    means = []
    for distance in range(1, last + 1):
        there = np.abs(estimates[distances == distance])
        means.append(float(there.mean()) if len(there) else 0.0)
    return means


def _stacked(found: list[MeanEstimates], shape: tuple[int, ...]) -> MeanEstimates:
    def stacked(name: str) -> Any:
        return np.reshape([getattr(one, name) for one in found], shape)

    by_generation = np.transpose([one.by_generation for one in found])
    return MeanEstimates(
        by_generation=np.reshape(by_generation, (-1, *shape)),
        squares=stacked("squares"),
        error=stacked("error"),
        bias=stacked("bias"),
        unexplained=stacked("unexplained"),
    )
