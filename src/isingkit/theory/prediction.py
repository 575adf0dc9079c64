"""What a prediction of the error holds, and how it follows from the effective ridge."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isingkit.arrays import FloatArray
from isingkit.exceptions import SettingError
from isingkit.theory.spectrum import Spectrum, Traces, effective_ridge, margins, numbers, weights_of


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The error of linear and ridge estimates of one spin's couplings, in the limit of many spins.
    [eq:RSS-def-1] [eq:Q-def]

    Where ridge is infinite all of it is about sample correlations, which is what estimates times
    ridge / samples_per_spin become. Fields are numbers, or arrays where arrays were asked for.

    Attributes
    ----------
    kappa, chi
        Order parameters; chi = G1(kappa).
    effective_ridge
        2 ridge / kappa: what the ridge amounts to once noise is accounted for.
    Q
        Variance of the noise in the field on the spin.
    R
        Sum of squares of the noise of all estimates: each has variance R / n_spins.
    rss
        Sum of squared errors of all estimates of the spin, bias and noise.
    bias
        Mean estimate over coupling, averaged over the spin's neighbours; 1 is unbiased.
    unexplained
        Mean squared residual on new samples, were there no noise; test_error is with it.
    means
        |mean estimate| of generation 1, 2, ...: neighbours, their neighbours, ...
    free_energy
        Minimum of squared residuals plus penalty, over the number of spins.
    """

    samples_per_spin: Any
    ridge: Any
    depth: int | None  # None: infinite
    kappa: Any
    effective_ridge: Any
    chi: Any
    Q: Any
    R: Any
    rss: Any
    bias: Any
    unexplained: Any  # v
    means: Any  # (generations, ...)
    free_energy: Any

    @property
    def test_error(self) -> Any:
        """Mean squared residual on new samples; at infinite ridge, of estimates that are all 0."""
        noise = np.where(np.isinf(self.ridge), 0.0, self.Q)
        return plain(self.unexplained + noise)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A solution of the equations of state."""

    samples_per_spin: Any  # alpha
    ridge: Any  # lambda
    effective_ridge: Any  # k
    traces: Traces  # at k


@dataclass(frozen=True, slots=True, eq=False)
class MeanEstimates:
    """What mean estimates of one spin's couplings amount to."""

    by_generation: Any  # (generations, ...): |mean estimate|
    squares: Any  # sum of squares
    error: Any  # sum of squared differences from the couplings
    bias: Any
    unexplained: Any  # v


def solved(spectrum: Spectrum, samples_per_spin: Any, ridge: Any) -> State:
    """The equations of state, solved for the effective ridge."""
    k = effective_ridge(spectrum, samples_per_spin, ridge)
    return State(samples_per_spin, ridge, k, spectrum.traces(k))


def predicted(state: State, means: MeanEstimates, depth: int | None) -> Prediction:
    """Everything else follows from the effective ridge, the traces there, and the means."""
    k = state.effective_ridge
    alpha = state.samples_per_spin
    finite, _ = weights_of(k)
    finite_k = np.where(finite > 0, k, 0.0)
    margin, slope = margins(alpha, finite_k, state.traces)
    half_kappa = np.array(margin, dtype=np.float64)  # its limit for k to 0
    np.divide(state.ridge, finite_k, out=half_kappa, where=finite_k > 0)
    kappa = 2 * np.where(finite == 0, alpha, half_kappa)
    noise = means.unexplained / np.where(finite > 0, slope, alpha)
    R = noise * state.traces.p2
    cost = means.unexplained + finite_k * means.squares  # 1 - b J
    chi = finite * state.traces.t / kappa
    Q = noise * state.traces.t2
    free_energy = kappa / 2 * cost
    return Prediction(
        samples_per_spin=plain(alpha),
        ridge=plain(state.ridge),
        depth=depth,
        kappa=plain(kappa),
        effective_ridge=plain(k),
        chi=plain(chi),
        Q=plain(Q),
        R=plain(R),
        rss=plain(means.error + R),
        bias=plain(means.bias),
        unexplained=plain(means.unexplained),
        means=means.by_generation,
        free_energy=plain(free_energy),
    )


def checked(samples_per_spin: ArrayLike, ridge: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """alpha and lambda as arrays of one shape, or a refusal of what the theory cannot do with."""
    alpha = numbers("samples_per_spin", samples_per_spin)
    penalty = numbers("ridge", ridge)
    try:
        alpha, penalty = np.broadcast_arrays(alpha, penalty)
    except ValueError:
        expected = f"an array that goes with samples_per_spin, whose shape is {alpha.shape}"
        raise SettingError(setting="ridge", value=ridge, expected=expected) from None
    setting = "samples_per_spin"
    if not np.all(np.isfinite(alpha) & (alpha > 0)):
        raise SettingError(setting=setting, value=samples_per_spin, expected="a finite number > 0")
    if not np.all(penalty >= 0):
        expected = "a number >= 0, infinity included"
        raise SettingError(setting="ridge", value=ridge, expected=expected)
    if np.any((penalty == 0) & (alpha <= 1)):
        expected = (
            "> 1 where ridge is 0, for least squares diverges below; "
            "give a ridge > 0, e.g. theory.best_ridge(...)"
        )
        raise SettingError(setting=setting, value=samples_per_spin, expected=expected)
    return alpha, penalty


def check_depth(depth: int | None) -> None:
    """Refuse what is no number of generations."""
    if depth is not None and not (isinstance(depth, (int, np.integer)) and depth >= 1):
        expected = "a whole number >= 1, or None for all generations"
        raise SettingError(setting="depth", value=depth, expected=expected)


def plain(value: Any) -> Any:
    """A float where there is one number."""
    value = np.asarray(value, dtype=np.float64)
    return float(value) if value.ndim == 0 else value
