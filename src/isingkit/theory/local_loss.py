r"""Error of estimates by any local loss on random regular graphs: the paper's equations of state
beyond least squares.

In the gauge where the spin and all couplings are positive, a sample's field on the spin is
y = \sqrt Q z + \sum_g x_g S_g: noise, and mean estimates x_g of generation g times its spins' sum.
Fitting moves it to \hat y, the proximal operator of \chi l. With \chi = G_1(\kappa),

    \kappa = \alpha E[d l'(\hat y) / d y]      Q = -\alpha G_1'(\kappa) E[l'(\hat y)^2]
    2 \lambda x_g + \alpha E[l'(\hat y) s_g] = 0      R = Q G_3'(\kappa) / G_1'(\kappa)

Two generations are summed over exactly. What hangs on the second is a sum of many small terms,
taken for Gaussian given the second; then its means are a geometric series, as those of least
squares are, for which nothing of this is an approximation.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotConvergedError, SettingError, require_number
from isingkit.theory.generations import two_generations
from isingkit.theory.losses import Exponential, Logistic, Loss
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.ridge import GENERATIONS, random_regular
from isingkit.theory.separation import separation_limit

_REACH = 9.0  # standard deviations of noise that are integrated over
_LONGEST_STEP = 0.1  # of the grid of fields: losses change over 1
_EASY = 30.0  # ridge, over samples per spin, at which any loss is all but quadratic
_AS_GOOD_AS_NONE = 1e-9  # ridge, over samples per spin
_FIRST_RATIO = 1 / 16  # of ridges, on the way to smaller ones
_LAST_RATIO = 0.97
_MOST_STEPS = 60  # of Newton's method
_DIFFERENCE = 1e-7  # by which its slopes are taken
_SOLVED = 1e-11  # residual at which only rounding is left to improve


@dataclass(frozen=True, slots=True, eq=False)
class LossPrediction:
    """The error of one spin's estimates by a local loss, in the limit of many spins.

    Attributes
    ----------
    loss
        "pseudolikelihood" or "screening".
    kappa, chi, effective_ridge
        Order parameters: chi = G1(kappa), and 2 ridge / kappa.
    Q
        Variance of the noise in the field on the spin.
    R
        Sum of squares of the noise of all estimates: each has variance R / n_spins.
    rss
        Sum of squared errors of all estimates of the spin, bias and noise.
    bias
        Mean estimate of a neighbour over the coupling; 1 is unbiased.
    means
        |mean estimate| of generation 1, 2, ...: neighbours, their neighbours, ...
    """

    loss: str
    samples_per_spin: float
    ridge: float
    kappa: float
    chi: float
    effective_ridge: float
    Q: float
    R: float
    rss: float
    bias: float
    means: FloatArray  # (generations,)


def pseudolikelihood(
    degree: int, coupling: float, samples_per_spin: float, ridge: float = 0.0
) -> LossPrediction:
    """Error of pseudolikelihood on random regular graphs, with a ridge or without.

    The estimator is `PseudolikelihoodIsing(l2=ridge / samples_per_spin, fit_fields=False)`.

    Parameters
    ----------
    degree
        c, neighbours of each spin.
    coupling
        K, with (c - 1) tanh^2 K < 1.
    samples_per_spin
        alpha; without a ridge more than `separation_limit`.
    ridge
        lambda, as of least squares: the penalty is ridge * n_spins * sum J^2, beside the sum of
        log(1 + exp(-2 y)) over samples.

    Examples
    --------
    >>> from isingkit import theory
    >>> p = theory.pseudolikelihood(degree=3, coupling=0.4, samples_per_spin=10)
    >>> round(p.rss, 4), round(p.bias, 4)
    (0.3502, 1.1468)
    """
    return local_loss(Logistic(), degree, coupling, samples_per_spin, ridge)


def interaction_screening(
    degree: int, coupling: float, samples_per_spin: float, ridge: float = 0.0
) -> LossPrediction:
    """Error of interaction screening on random regular graphs, with a ridge or without.

    The estimator is `InteractionScreeningIsing(l2=ridge / samples_per_spin, fit_fields=False)`.

    Parameters
    ----------
    degree
        c, neighbours of each spin.
    coupling
        K, with (c - 1) tanh^2 K < 1.
    samples_per_spin
        alpha; without a ridge more than `separation_limit`.
    ridge
        lambda, as of least squares: the penalty is ridge * n_spins * sum J^2, beside the sum of
        exp(-y) over samples.

    Examples
    --------
    >>> from isingkit import theory
    >>> p = theory.interaction_screening(degree=3, coupling=0.4, samples_per_spin=10)
    >>> round(p.rss, 4), round(p.bias, 4)
    (0.4187, 1.1982)
    """
    return local_loss(Exponential(), degree, coupling, samples_per_spin, ridge)


def local_loss(
    loss: Loss, degree: int, coupling: float, samples_per_spin: float, ridge: float
) -> LossPrediction:
    """The equations of state of any loss, solved."""
    require_number("coupling", coupling)
    require_number("samples_per_spin", samples_per_spin, above=0)
    require_number("ridge", ridge, at_least=0)
    if coupling == 0:
        expected = "not 0: there would be nothing to find"
        raise SettingError(setting="coupling", value=coupling, expected=expected)
    spectrum = RegularSpectrum(degree, coupling)
    if ridge == 0:
        _require_minimum(loss, degree, coupling, samples_per_spin)
    equations = _Equations(loss, spectrum, float(samples_per_spin))
    try:
        state = _newton(equations, _as_least_squares(equations, float(ridge)), float(ridge))
    except (NotConvergedError, SettingError):
        state = _by_smaller_ridges(equations, float(ridge))
    return _predicted(equations, state, float(ridge))


class _State(NamedTuple):
    """Order parameters."""

    kappa: float
    Q: float
    first: float  # x_1
    ratio: float  # x_2 / x_1

    @staticmethod
    def of(unknowns: FloatArray) -> "_State":
        """All but the ratio, which may be 0, are positive: their logarithms are solved for."""
        kappa, Q, first = np.exp(unknowns[:3]).tolist()
        return _State(kappa, Q, first, float(unknowns[3]))

    def unknowns(self) -> FloatArray:
        return np.array([*np.log(self[:3]), self.ratio])


@dataclass(frozen=True, slots=True, eq=False)
class _Fields:
    """Fields y on the spin, on a grid."""

    y: FloatArray  # (n,)
    weights: FloatArray  # (n,): of sum 1
    with_first: FloatArray  # (n,): weights times the mean of neighbours there
    with_second: FloatArray  # (n,): weights times the mean of the second generation


@dataclass(frozen=True, slots=True, eq=False)
class _Equations:
    """What must vanish where the equations of state are solved."""

    loss: Loss
    spectrum: RegularSpectrum
    alpha: float

    def decay(self, effective_ridge: float) -> float:
        """x_(g+1) / x_g from the second generation on."""
        return effective_ridge * float(self.spectrum.weight * self.spectrum.branch(effective_ridge))

    def chi(self, kappa: float, ridge: float) -> float:
        return float(self.spectrum.traces(2 * ridge / kappa).t) / kappa

    def fields(self, state: _State, ridge: float) -> _Fields:
        """Their distribution: a Gaussian number around each sum of two generations.

        What hangs on the second generation adds a multiple of its sum, and scatters around that.
        """
        degree = int(self.spectrum.degree)
        theta = float(np.tanh(abs(self.spectrum.coupling)))
        sums = two_generations(degree, theta)
        r = self.decay(2 * ridge / state.kappa)
        second = state.first * state.ratio
        gain = 1 / (1 - (degree - 1) * theta * r)
        scatter = (degree - 1) * r**2 * (1 - theta**2) * gain**2 / (1 - (degree - 1) * r**2)
        std = np.sqrt(state.Q + sums.sizes[1] * second**2 * scatter)
        centres = state.first * sums.first + second * gain * sums.second
        step = min(std / 3, _LONGEST_STEP)
        stop = centres.max() + _REACH * std + step
        y = np.arange(centres.min() - _REACH * std, stop, step)
        z = (y - centres[:, None]) / std
        norm = step / std / np.sqrt(2 * np.pi)
        density = norm * sums.probability[:, None] * np.exp(-(z**2) / 2)
        return _Fields(
            y=y,
            weights=density.sum(axis=0),
            with_first=sums.first @ density / sums.sizes[0],
            with_second=sums.second @ density / max(1, sums.sizes[1]),
        )

    def residuals(self, unknowns: FloatArray, ridge: float) -> FloatArray:
        """Of kappa, Q, x_1 and x_2, relative."""
        state = _State.of(unknowns)
        fields = self.fields(state, ridge)
        slope, curvature = self.loss.fitted_slope(fields.y, self.chi(state.kappa, ridge))
        traces = self.spectrum.traces(2 * ridge / state.kappa)
        kappa = self.alpha * float(curvature @ fields.weights)
        noise = self.alpha * float(slope**2 @ fields.weights)
        Q = float(traces.t2) * noise / state.kappa**2
        scale = state.kappa + 2 * ridge
        first = 2 * ridge * state.first + self.alpha * float(slope @ fields.with_first)
        pulled = self.alpha * float(slope @ fields.with_second)
        second = 2 * ridge * state.first * state.ratio + pulled
        if self.spectrum.degree == 1:  # there is no second generation
            second = scale * state.ratio
        differences = (np.log(kappa / state.kappa), np.log(Q / state.Q))
        return np.array([*differences, first / scale, second / scale])

    def jacobian(self, unknowns: FloatArray, residuals: FloatArray, ridge: float) -> FloatArray:
        columns = []
        for place in range(len(unknowns)):
            moved = unknowns.copy()
            moved[place] += _DIFFERENCE
            columns.append((self.residuals(moved, ridge) - residuals) / _DIFFERENCE)
        return np.array(columns).T


def _as_least_squares(equations: _Equations, ridge: float) -> _State:
    """Where estimates are small any loss is quadratic: half of the square, up to a constant."""
    spectrum = equations.spectrum
    p = random_regular(int(spectrum.degree), abs(spectrum.coupling), equations.alpha, 2 * ridge)
    return _State(p.kappa / 2, p.Q, float(p.means[0]), float(p.means[1] / p.means[0]))


def _by_smaller_ridges(equations: _Equations, ridge: float) -> _State:
    """From a ridge at which least squares is close, step by step to the one asked for."""
    last = max(ridge, _AS_GOOD_AS_NONE * equations.alpha)
    here = max(ridge, _EASY * equations.alpha)
    state = _newton(equations, _as_least_squares(equations, here), here)
    ratio = _FIRST_RATIO
    while here > ridge:
        there = max(here * ratio, last) if here > last else ridge
        try:
            state = _newton(equations, state, there)
        except NotConvergedError:
            ratio = np.sqrt(ratio)
            if ratio > _LAST_RATIO:
                raise
        else:
            here = there
    return state


def _newton(equations: _Equations, start: _State, ridge: float) -> _State:
    """Newton's method, with steps of at most 1 (in logarithms) that do not lead uphill."""
    unknowns = start.unknowns()
    residuals = equations.residuals(unknowns, ridge)
    size = float(np.abs(residuals).max())
    for _ in range(_MOST_STEPS):
        jacobian = equations.jacobian(unknowns, residuals, ridge)
        if not np.isfinite(jacobian).all():
            break
        step = np.asarray(np.linalg.lstsq(jacobian, -residuals, rcond=None)[0], dtype=np.float64)
        step = step / max(1.0, float(np.abs(step).max()))
        tried, residuals, size_there = _downhill(equations, unknowns, step, ridge, size)
        if size < _SOLVED and size_there >= size / 2:
            return _State.of(unknowns if size <= size_there else tried)
        unknowns = tried
        size = size_there
    raise NotConvergedError(what="the equations of state", residual=size)


def _downhill(
    equations: _Equations, unknowns: FloatArray, step: FloatArray, ridge: float, size: float
) -> tuple[FloatArray, FloatArray, float]:
    """The step, or as much of it as does not make residuals twice as large."""
    for _ in range(20):
        tried = unknowns + step
        residuals = equations.residuals(tried, ridge)
        size_there = float(np.abs(residuals).max())
        if size_there < 2 * size + _SOLVED:
            break
        step = step / 2
    return tried, residuals, size_there


def _predicted(equations: _Equations, state: _State, ridge: float) -> LossPrediction:
    spectrum = equations.spectrum
    degree = int(spectrum.degree)
    strength = float(abs(spectrum.coupling))
    k = 2 * ridge / state.kappa
    traces = spectrum.traces(k)
    decay = equations.decay(k)
    second = state.first * state.ratio if ridge > 0 else 0.0
    later = second * decay ** np.arange(GENERATIONS - 1)
    squares_later = degree * (degree - 1) * second**2 / (1 - (degree - 1) * decay**2)
    R = state.Q * float(traces.p2 / traces.t2)
    return LossPrediction(
        loss=equations.loss.name,
        samples_per_spin=equations.alpha,
        ridge=ridge,
        kappa=state.kappa,
        chi=equations.chi(state.kappa, ridge),
        effective_ridge=k,
        Q=state.Q,
        R=R,
        rss=degree * (strength - state.first) ** 2 + squares_later + R,
        bias=state.first / strength,
        means=np.concatenate([[state.first], later]),
    )


def _require_minimum(loss: Loss, degree: int, coupling: float, samples_per_spin: float) -> None:
    """Refuse samples so few that without a penalty there is no minimum, or more than one."""
    least = separation_limit(degree, coupling) if loss.falls_for_ever else 1.0
    if samples_per_spin <= least:
        expected = f"more than {least:.4g} where ridge is 0, for there is no minimum below"
        setting = "samples_per_spin"
        raise SettingError(setting=setting, value=samples_per_spin, expected=expected)
