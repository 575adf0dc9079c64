"""Logistic regression of a spin, by Newton's method."""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import FloatArray

_MOST_STEPS = 60
_LONGEST_STEP = 2.0
_CONVERGED = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """P(s = +1) = 1 / (1 + exp(-2 eta)), eta = Z b."""

    design: FloatArray  # Z: (n_rows, n)
    coefficients: FloatArray  # b: (n,)
    inverse: FloatArray  # (n, n): of the Hessian
    fields: FloatArray  # eta: (n_rows,)
    residuals: FloatArray  # (n_rows,): s - tanh(eta), times the weight of the row
    variances: FloatArray  # (n_rows,): 1 - tanh(eta)^2, the same
    leverages: FloatArray  # (n_rows,)

    @property
    def influences(self) -> FloatArray:
        """(n_rows, n): of each row on each coefficient."""
        return np.asarray((self.residuals[:, None] * self.design) @ self.inverse)


def regress(
    spin: FloatArray,
    design: FloatArray,
    ridges: FloatArray,
    weights: FloatArray,
    firth: bool = False,
) -> Regression:
    """Coefficients that maximise sum of w log P(s) - sum of ridges b^2.

    weights: w, (n_rows,)
    firth: without the bias of few rows, by the log determinant of the Hessian over 2
    """
    coefficients = np.zeros(design.shape[1])
    penalty = 2 * np.diag(ridges)
    for _ in range(_MOST_STEPS):
        means = np.tanh(design @ coefficients)
        weighted = design * (weights * (1 - means**2))[:, None]
        inverse = np.linalg.inv(weighted.T @ design + penalty)
        residuals = weights * (spin - means)
        if firth:
            residuals = residuals - means * _leverages(weighted, design, inverse)
        step = inverse @ (design.T @ residuals - penalty @ coefficients)
        coefficients = coefficients + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < _CONVERGED:
            break
    return _regression(spin, design, coefficients, penalty, weights)


def _regression(
    spin: FloatArray,
    design: FloatArray,
    coefficients: FloatArray,
    penalty: FloatArray,
    weights: FloatArray,
) -> Regression:
    fields = design @ coefficients
    means = np.tanh(fields)
    variances = weights * (1 - means**2)
    weighted = design * variances[:, None]
    inverse = np.linalg.inv(weighted.T @ design + penalty)
    leverages = _leverages(weighted, design, inverse)
    residuals = weights * (spin - means)
    return Regression(design, coefficients, inverse, fields, residuals, variances, leverages)


def _leverages(weighted: FloatArray, design: FloatArray, inverse: FloatArray) -> FloatArray:
    """(n_rows,): diagonal of the hat matrix."""
    return np.asarray(np.einsum("ra,ra->r", weighted @ inverse, design))
