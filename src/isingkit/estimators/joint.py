"""The losses of all spins added up and minimised over symmetric couplings."""

from dataclasses import dataclass

import numpy as np

from isingkit._kernels import nodewise as kernels
from isingkit.arrays import FloatArray
from isingkit.estimators.nodewise import TOLERANCE, Rows, never_together
from isingkit.estimators.normal import constant_fields
from isingkit.exceptions import SeparationError

_STEPS = 500
_PRODUCTS = 400  # with the Hessian, in one step


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Unknowns are couplings above the diagonal, then fields, of the spins that change."""

    spins: FloatArray  # (n_spins, n_rows)
    weights: FloatArray
    loss: int | None
    fit_fields: bool

    def unfolded(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Couplings and fields of the unknowns."""
        n_spins = len(self.spins)
        upper = np.triu_indices(n_spins, 1)
        couplings = np.zeros((n_spins, n_spins))
        couplings[upper] = x[: len(upper[0])]
        fields = x[len(upper[0]) :] if self.fit_fields else np.zeros(n_spins)
        return couplings + couplings.T, fields

    def folded(self, pulls: FloatArray) -> FloatArray:
        """Derivatives by the unknowns, from those by the field of each spin in each row."""
        products = pulls @ self.spins.T
        pairs = (products + products.T)[np.triu_indices(len(products), 1)]
        return np.concatenate([pairs, pulls.sum(axis=1)]) if self.fit_fields else pairs

    def fields(self, x: FloatArray) -> FloatArray:
        """The field on each spin in each row."""
        couplings, fields = self.unfolded(x)
        return np.asarray(couplings @ self.spins + fields[:, None])

    def at(self, x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The summed loss, its gradient, and its second derivative by each field."""
        local = self.fields(x)
        slopes = np.empty_like(local)
        curvatures = np.empty_like(local)
        total = 0.0
        for own, field, slope, curvature in zip(self.spins, local, slopes, curvatures, strict=True):
            kernels.slopes_of_loss(self.loss, own, field, self.weights, slope, curvature)
            total += kernels.loss_of(self.loss, own, field, self.weights)
        return total, self.folded(slopes), curvatures

    def hessian_times(self, direction: FloatArray, curvatures: FloatArray) -> FloatArray:
        """The Hessian times a direction, never made itself."""
        bent = curvatures * self.fields(direction)
        if (
            self.loss == kernels.LOG_SCREENING
        ):  # its curvatures are shares of each row that add up to 1
            pulls = curvatures * self.spins
            bent -= pulls * (self.spins * bent).sum(axis=1, keepdims=True)
        return self.folded(bent)

    def diagonal(self, curvatures: FloatArray) -> FloatArray:
        """The diagonal of the Hessian, nearly: spins squared are 1."""
        each = curvatures.sum(axis=1)
        pairs = (each[:, None] + each)[np.triu_indices(len(each), 1)]
        return np.concatenate([pairs, each]) if self.fit_fields else pairs


def joint_estimates(
    rows: Rows,
    loss: int | None,
    l1: float,
    l2: float | FloatArray,
    fit_fields: bool,
    *,
    start: tuple[FloatArray, FloatArray] | None = None,
    tolerance: float | None = None,
) -> tuple[FloatArray, FloatArray, float]:
    """Symmetric couplings, fields, and how far they are from optimal.

    Minimises sum_i loss_i + l1 |J_ij| + l2 J_ij^2 over all ordered pairs: what the regressions of
    single spins minimise, with J_ij = J_ji; l2 may be (n_spins, n_spins). Newton steps within the
    orthant in which the gradient points, by conjugate gradients; from the couplings and fields of
    `start` on, until the gradient is within the tolerance.
    """
    keep = rows.changes
    problem = _Problem(np.ascontiguousarray(rows.spins[keep]), rows.weights, loss, fit_fields)
    n_spins = int(keep.sum())
    n_pairs = n_spins * (n_spins - 1) // 2
    is_pair = np.arange(n_pairs + (n_spins if fit_fields else 0)) < n_pairs
    penalty = np.where(is_pair, 2 * l1, 0.0)
    square = np.zeros(len(is_pair))
    every_l2 = np.broadcast_to(l2, (rows.n_spins, rows.n_spins))
    square[:n_pairs] = 2 * every_l2[np.ix_(keep, keep)][np.triu_indices(n_spins, 1)]
    x = np.zeros(len(is_pair))
    if start is not None:
        x[:n_pairs] = start[0][np.ix_(keep, keep)][np.triu_indices(n_spins, 1)]
        x[n_pairs:] = start[1][keep][: len(x) - n_pairs]
    elif fit_fields:
        x[n_pairs:] = np.arctanh(problem.spins @ rows.weights)
    enough = TOLERANCE if tolerance is None else tolerance
    value, gradient, curvatures = problem.at(x)
    residual = np.inf
    for _ in range(_STEPS):
        total = value + penalty @ np.abs(x) + square @ x**2
        pull = _pseudogradient(x, gradient + 2 * square * x, penalty)
        residual = float(np.abs(pull).max(initial=0.0))
        if residual <= enough:
            break
        free = (x != 0) | (pull != 0)
        orthant = np.where(x != 0, np.sign(x), -np.sign(pull))
        step = _newton_step(problem, curvatures, 2 * square, pull, free, min(0.1, residual**0.5))
        length = 1.0
        while length > 1e-9:
            tried = x + length * step
            tried[(penalty > 0) & (tried * orthant <= 0)] = 0.0
            value, gradient, curvatures = problem.at(tried)
            reached = value + penalty @ np.abs(tried) + square @ tried**2
            allowed = total + 1e-4 * pull @ (tried - x) + 1e-14 * abs(total)
            if reached <= allowed:
                break
            length /= 2
        else:
            value, gradient, curvatures = problem.at(x)
            break
        x = tried
        if np.abs(x).max() > kernels.FAR:
            break
    if n_pairs and ((l1 == 0 and not square.any()) or np.abs(x).max() > kernels.FAR):
        _refuse_separation(problem, curvatures, x, rows)
    couplings, fields = problem.unfolded(x)
    estimates = np.zeros((rows.n_spins, rows.n_spins))
    intercepts = np.zeros(rows.n_spins)
    estimates[np.ix_(keep, keep)] = couplings
    if fit_fields:
        intercepts[keep] = fields
        intercepts[~keep] = constant_fields(rows.means[~keep], rows.n_effective)
    return estimates, intercepts, residual


def _pseudogradient(x: FloatArray, gradient: FloatArray, penalty: FloatArray) -> FloatArray:
    """The one-sided slope of steepest descent; 0 where staying at 0 is best."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - penalty, 0.0)
    return np.where(x != 0, gradient + penalty * np.sign(x), at_zero)


def _newton_step(
    problem: _Problem,
    curvatures: FloatArray,
    square: FloatArray,
    pull: FloatArray,
    free: FloatArray,
    tolerance: float,
) -> FloatArray:
    """Minus the inverse Hessian of the free unknowns times their gradient, by conjugate
    gradients.
    """
    scale = 1 / np.maximum(problem.diagonal(curvatures) + square, 1e-300)
    step = np.zeros(len(pull))
    left = np.where(free, -pull, 0.0)
    ahead = scale * left
    along = float(left @ ahead)
    enough = tolerance**2 * float(left @ (scale * left))
    for _ in range(_PRODUCTS):
        bent = np.where(free, problem.hessian_times(ahead, curvatures) + square * ahead, 0.0)
        curvature = float(ahead @ bent)
        if curvature <= 0:  # nothing bends: downhill is all there is to know
            return step if step.any() else ahead
        step += along / curvature * ahead
        left -= along / curvature * bent
        scaled = scale * left
        before = along
        along = float(left @ scaled)
        if along <= enough:
            break
        ahead = scaled + along / before * ahead
    return step


def _refuse_separation(
    problem: _Problem, curvatures: FloatArray, x: FloatArray, rows: Rows
) -> None:
    """Refuse a largest coupling that the loss hardly holds: its variance is the inverse Hessian's
    diagonal entry.
    """
    upper = np.triu_indices(len(problem.spins), 1)
    worst = int(np.abs(x[: len(upper[0])]).argmax())
    unit = np.zeros(len(x))
    unit[worst] = -1.0
    free = np.ones(len(x), dtype=bool)
    variance = _newton_step(problem, curvatures, np.zeros(len(x)), unit, free, 1e-6)[worst]
    least_weight = max(rows.weights.min(), 0.01 / len(rows.weights))
    largest = kernels.LARGEST_VARIANCE / least_weight
    if abs(x[worst]) > kernels.FAR or not 0 < variance < largest:
        names = [name for name, changes in zip(rows.names, rows.changes, strict=True) if changes]
        i, j = (int(ends[worst]) for ends in upper)
        never = never_together(problem.spins[i], problem.spins[j])
        raise SeparationError(pair=(names[i], names[j]), coupling=float(x[worst]), never=never)
