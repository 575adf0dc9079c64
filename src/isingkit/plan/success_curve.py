"""SuccessCurve: how probable it is that a study finds enough, against how many rows it has."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from isingkit.arrays import FloatArray

Z_95 = 1.959964  # of a 95 percent interval
_STEPS = 60  # of Newton's method at the most
_LONGEST_STEP = 2.0  # in logits
_CLOSE = 1e-9
_REACH = 2.0  # how far an interval is looked for, in logarithms of rows
_FLATTEST = 0.1  # slope that still says where the curve passes a probability


@dataclass(frozen=True, slots=True, eq=False)
class SuccessCurve:
    """logit P(success) = intercept + slope (log rows - centre)."""

    centre: float
    coefficients: FloatArray  # (2,): intercept and slope
    covariance: FloatArray  # (2, 2)

    @property
    def slope(self) -> float:
        return float(self.coefficients[1])

    @property
    def slope_z(self) -> float:
        """The slope in units of its standard error; 0 where all studies have as many rows."""
        error = float(np.sqrt(self.covariance[1, 1]))
        return self.slope / error if error > 0 else 0.0

    @property
    def rises(self) -> bool:
        """Whether more rows are seen to help."""
        return self.slope > _FLATTEST

    def probability(self, log_rows: FloatArray | float) -> FloatArray:
        """Of success."""
        return np.asarray(expit(self._logits(log_rows)))

    def error(self, log_rows: float) -> float:
        """Standard error of the probability."""
        probability = float(self.probability(log_rows)[0])
        return probability * (1 - probability) * float(self._logit_errors(log_rows)[0])

    def band(self, log_rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Between which probabilities are, 95 percent."""
        logits = self._logits(log_rows)
        off = Z_95 * self._logit_errors(log_rows)
        return expit(logits - off), expit(logits + off)

    def log_rows(self, probability: float) -> float:
        """Where success has this probability."""
        return self.centre + float(logit(probability) - self.coefficients[0]) / self.slope

    def interval(self, probability: float) -> tuple[float, float]:
        """Logarithms of rows, 95 percent: where the band holds the probability."""
        at = self.log_rows(probability)
        near = at + np.linspace(-_REACH, _REACH, 2001)
        low, high = self.band(near)
        inside = near[(low <= probability) & (high >= probability)]
        return float(inside.min(initial=at)), float(inside.max(initial=at))

    def _logits(self, log_rows: FloatArray | float) -> FloatArray:
        return np.asarray(self._design(log_rows) @ self.coefficients)

    def _logit_errors(self, log_rows: FloatArray | float) -> FloatArray:
        design = self._design(log_rows)
        return np.sqrt(np.einsum("ij,jk,ik->i", design, self.covariance, design))

    def _design(self, log_rows: FloatArray | float) -> FloatArray:
        off = np.atleast_1d(log_rows) - self.centre
        return np.column_stack([np.ones(len(off)), off])


def success_curve(log_rows: FloatArray, successes: FloatArray) -> SuccessCurve:
    """Logistic regression by Firth's penalised likelihood, which is finite even where all studies
    with more rows succeed and all others fail.

    log_rows, successes: (n_studies,)
    """
    centre = float(log_rows.mean())
    design = np.column_stack([np.ones(len(log_rows)), log_rows - centre])
    coefficients = np.zeros(2)
    for _ in range(_STEPS):
        probabilities = expit(design @ coefficients)
        weights = probabilities * (1 - probabilities)
        covariance = np.linalg.pinv((design * weights[:, None]).T @ design, hermitian=True)
        leverages = weights * np.einsum("ij,jk,ik->i", design, covariance, design)
        residuals = successes - probabilities + leverages * (0.5 - probabilities)
        step = covariance @ (design.T @ residuals)
        longest = np.abs(design @ step).max()
        step *= min(1.0, _LONGEST_STEP / max(longest, _CLOSE))
        coefficients = coefficients + step
        if longest < _CLOSE:
            break
    return SuccessCurve(centre, coefficients, covariance)
