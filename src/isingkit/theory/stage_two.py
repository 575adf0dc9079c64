r"""Stage two of a two-stage estimator, given the estimates X of stage one.

The samples S of all other spins, given X and the residual r = s_i - S X of stage one, are Gaussian:
stage one says S' r = \lambda N X and S X = s_i - r, and nothing else. With b = <s_i s>, C = <s s'>,
\Sigma = C - b b' and V = X \Sigma X, a sample is, along r, \lambda N X / |r|, and across it

    mean s_i (b + \Sigma X (1 - b X) / V)      covariance \Sigma - \Sigma X X' \Sigma / V

so that all products of candidates A, and of candidates with s_i, lie in the space of X, C X and b,
beside C itself: least squares of s_i on the candidates is

    y_A = C_AA^{-1} (w_x X + w_h C X + w_b b)_A + noise

with three weights for each spin. They depend on the candidates by the 3 x 3 sums T' C_AA^{-1} T
over T = (X, C X, b)_A. Without false candidates w_x = k w_h and w_h + w_b = 1, and the mean of y is
Theorem 1's.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isingkit.arrays import FloatArray
from isingkit.theory.prediction import Prediction

SMALLEST = 1e-6  # ridge over samples per spin that stands for none
LARGEST = 1e4  # and for an infinite one


@dataclass(frozen=True, slots=True, eq=False)
class StageOneFit:
    """What stage one makes of a spin's samples; leading axes are spins.

    Estimates are in units of `unit`: 1, or 1 / LARGEST where they are sample correlations.
    """

    n_samples: int
    unit: float
    effective_ridge: float  # k
    penalty: float  # lambda / alpha
    residual: FloatArray  # |r|^2 / M
    overlap: FloatArray  # r s_i / M
    explained: FloatArray  # b X
    power: FloatArray  # X C X

    @staticmethod
    def of(
        prediction: Prediction, squares: FloatArray, n_samples: int, unit: float
    ) -> "StageOneFit":
        """From the predicted error; squares: sum of squared mean estimates."""
        alpha = float(np.mean(prediction.samples_per_spin))
        shrunk = prediction.kappa / (2 * alpha)  # training residual over that of new samples
        k = float(np.mean(prediction.effective_ridge))
        explained = 1 - prediction.unexplained - k * squares
        return StageOneFit(
            n_samples,
            unit,
            k,
            float(np.mean(prediction.ridge)) / alpha,
            residual=shrunk**2 * prediction.test_error,
            overlap=shrunk * (1 - explained),
            explained=explained,
            power=prediction.test_error - 1 + 2 * explained,
        )


@dataclass(frozen=True, slots=True, eq=False)
class StageTwo:
    """Weights and noise of stage two; leading axes are spins."""

    weights: FloatArray  # (..., 3): of X, C X and b
    noise: FloatArray  # (...,): variance of a candidate's estimate beside those
    left: FloatArray  # (...,): samples beyond the number of candidates, over samples

    def coefficients(self, correlation: FloatArray, paired: bool) -> FloatArray:
        """(..., 3, 4): from (X_j, X_m, [C X]_j, [C X]_m) to (X_j, X_m, y_j).

        Where m is a candidate, too, and correlated with j, y_j is (T_j - c T_m) w / (1 - c^2).
        """
        c = np.asarray(correlation)
        shape = np.broadcast_shapes(c.shape, self.weights.shape[:-1])
        found = np.zeros((*shape, 3, 4))
        found[..., 0, 0] = 1
        found[..., 1, 1] = 1
        scale = 1 / (1 - c**2) if paired else np.ones_like(c)
        found[..., 2, 0] = self.weights[..., 0] * scale
        found[..., 2, 2] = self.weights[..., 1] * scale
        if paired:
            found[..., 2, 1] = -c * found[..., 2, 0]
            found[..., 2, 3] = -c * found[..., 2, 2]
        return found


def solvable(ridge: float, samples_per_spin: float) -> tuple[float, float]:
    """A ridge that is neither 0 nor infinite, and the unit of estimates there."""
    ratio = float(np.clip(ridge / samples_per_spin, SMALLEST, LARGEST))
    unit = 1 / LARGEST if np.isinf(ridge) else 1.0
    return ratio * samples_per_spin, unit


def stage_two(first: StageOneFit, sums: FloatArray, n_candidates: ArrayLike) -> StageTwo:
    """Weights and noise from the sums T' C_AA^-1 T over the candidates, (..., 3, 3)."""
    left = 1 - np.asarray(n_candidates) / first.n_samples
    scale = np.array([first.unit, first.unit, 1.0])
    x, h, b = np.eye(3) * scale
    unexplained = np.asarray(1 - first.explained)[..., None]
    explained = np.asarray(first.explained)[..., None]
    field = h - explained * b  # Sigma X
    spread = np.asarray(first.power)[..., None] - explained**2  # V
    across = b + field * unexplained / spread
    outside = np.asarray(1 - first.overlap**2 / first.residual)  # of s_i, across r
    along = first.penalty / np.asarray(first.residual) / left
    matrix = (first.penalty * along)[..., None, None] * _square(x)
    matrix = matrix + outside[..., None, None] * _square(across)
    matrix = matrix - _square(b)
    matrix = matrix - _square(field) / spread[..., None]
    wanted = (along * first.overlap)[..., None] * x
    wanted = wanted + outside[..., None] * across
    identity = np.eye(3)
    weights = np.linalg.solve(identity + matrix @ sums, wanted[..., None])[..., 0]
    fitted = np.einsum("...ij,...j->...i", sums, weights)
    unfitted = outside * (1 - _dot(across, fitted)) ** 2
    power = _dot(weights, fitted)
    power = power - _dot(b, fitted) ** 2
    known = _dot(field, fitted) ** 2 / spread[..., 0]
    remaining = unfitted + power - known
    noise = remaining / (left * first.n_samples)
    return StageTwo(weights, noise, left)


def _square(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors[..., :, None] * vectors[..., None, :])


def _dot(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.sum(left * right, axis=-1))
