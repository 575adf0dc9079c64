"""What ridge regression finds, and how far off it is: the equations of state, solved.

| paper | code |
|---|---|
| alpha, lambda, d | samples_per_spin, ridge, depth |
| 2 lambda / kappa | effective_ridge |
| Psi_d | the ball of radius depth |
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import cg

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotConvergedError, SettingError, require_instance, require_number
from isingkit.model import IsingModel
from isingkit.theory.cavity import CavitySpectrum, EnsembleSpectrum
from isingkit.theory.spectrum import (
    ModelSpectrum,
    RegularSpectrum,
    Spectrum,
    Traces,
    bethe_matrix,
    effective_ridge,
    margins,
    numbers,
    weights_of,
)  # fmt: skip

FEW_SPINS = 3000  # up to which a model's spectrum is taken from its eigenvalues
GENERATIONS = 8  # of which `means` speaks at infinite depth


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
    effective_ridge: Any  # 2 ridge / kappa
    chi: Any  # G1(kappa)
    Q: Any  # variance of the noise in the field on the spin
    R: Any  # sum of squares of the noise of all estimates: each has variance R / n_spins
    rss: Any  # sum of squared errors of all estimates, bias and noise
    bias: Any  # mean estimate over coupling, averaged over the spin's neighbours
    unexplained: Any  # v: squared residual on new samples, were there no noise
    means: Any  # (generations, ...): |mean estimate| of generation 1, 2, ...
    free_energy: Any  # minimum of squared residuals + penalty, over n_spins

    @property
    def test_error(self) -> Any:
        """Mean squared residual on new samples; where ridge is infinite, of estimates that are all
        zero.
        """
        return _plain(self.unexplained + np.where(np.isinf(self.ridge), 0.0, self.Q))


def random_regular(
    degree: ArrayLike,
    coupling: ArrayLike,
    samples_per_spin: ArrayLike,
    ridge: ArrayLike = 0.0,
    depth: int | None = None,
) -> Prediction:
    """Prediction for a spin of a random regular graph with couplings of one strength, whatever
    their signs.

    [eq:EOS-sparse] [eq:y-hat-result] [eq:J-bar-condition] [eq:J-mean-linear-equation]
    [eq:R-def-resuls] [eq:RSS-def-2] [eq:bias-def]

    Estimates of a spin's generation g have one mean, x_g, so that depth d is a d x d system, and
    infinite depth a geometric series. Arrays broadcast: ten thousand points of a phase diagram are
    one call.

    Parameters
    ----------
    degree
        c, neighbours of each spin.
    coupling
        K, with (c - 1) tanh^2 K < 1.
    samples_per_spin
        alpha.
    ridge
        lambda, exactly the paper's; 0 is least squares, infinity is correlation screening.
    depth
        Generations around the spin whose estimates may have a mean; None is all of them.

    Examples
    --------
    >>> from isingkit import theory
    >>> p = theory.random_regular(degree=3, coupling=0.4, samples_per_spin=10, ridge=10, depth=2)
    >>> round(p.kappa, 6), round(p.Q, 6), round(p.rss, 6), round(p.bias, 6)
    (19.132136, 0.015667, 0.20967, 0.374158)
    """
    _check_depth(depth)
    alpha, penalty = _checked(samples_per_spin, ridge)
    try:
        degree, coupling, alpha, penalty = np.broadcast_arrays(
            degree, numbers("coupling", coupling), alpha, penalty
        )
    except ValueError:
        shapes = tuple(np.shape(value) for value in (degree, coupling, alpha, penalty))
        raise SettingError(
            setting="shapes of all arguments", value=shapes, expected="alike, or to broadcast"
        ) from None
    spectrum = RegularSpectrum(degree, coupling)
    k = effective_ridge(spectrum, alpha, penalty)
    traces = spectrum.traces(k)
    strength = np.abs(coupling)
    if depth is None:
        means, squares = series(spectrum, k)
        unexplained = traces.p2 / traces.p**2
    else:
        means, squares, unexplained = _finite_depth(degree, strength, k, depth)
    off = degree * ((strength - means[0]) ** 2 - means[0] ** 2) + squares
    bias = np.divide(means[0], strength, out=np.full(k.shape, np.nan), where=strength > 0)
    return _prediction(alpha, penalty, depth, k, traces, unexplained, off, bias, means, squares)


def of_model(
    model: IsingModel, spin: int, samples_per_spin: ArrayLike, ridge: ArrayLike = 0.0, depth: int | None = None,
    spectrum: Spectrum | None = None,
) -> Prediction:  # fmt: skip
    """Prediction for one spin of any tree-like model: its own degrees and couplings, its own
    neighbourhood.

    [eq:J-mean-linear-equation-1] [eq:C0-inverse-matrix-1-v2] [eq:Linear-equation-regularize]

    Mean estimates solve a sparse linear system on the ball of radius `depth` around the spin, whose
    Bethe matrix is known.

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
    _check_depth(depth)
    alpha, penalty = _checked(samples_per_spin, ridge)
    require_instance("model", model, IsingModel, "an IsingModel")
    spectrum = spectrum or spectrum_of(model)
    require_number("spin", spin, at_least=0, whole=True)
    if spin >= model.n_spins:
        raise SettingError(setting="spin", value=spin, expected=f"below n_spins={model.n_spins}")
    k = effective_ridge(spectrum, alpha, penalty)
    order, generations = _ball(model, spin, depth)
    ball = IsingModel(model.couplings[order][:, order])
    truth = ball.couplings[[0]].toarray().ravel()
    found = [_one_spin(ball, generations, truth, float(value)) for value in k.ravel()]
    unexplained, off, squares, bias = (
        np.reshape([item[i] for item in found], k.shape) for i in range(4)
    )
    means = np.reshape(np.transpose([item[4] for item in found]), (-1, *k.shape))
    return _prediction(
        alpha, penalty, depth, k, spectrum.traces(k), unexplained, off, bias, means, squares
    )


def erdos_renyi(
    mean_degree: float, coupling: float, samples_per_spin: float, ridge: float = 0.0
) -> Prediction:
    """Prediction for the average spin of an Erdos-Renyi graph with couplings of one strength, at
    infinite depth. [eq:EOS-sparse]

    By population dynamics; three to four digits. `means` holds the mean of the first generation
    only.

    Parameters
    ----------
    mean_degree
        Mean number of neighbours; degrees are Poissonian.
    coupling
        K, the strength of all couplings.
    samples_per_spin
        alpha.
    ridge
        lambda.

    Examples
    --------
    >>> from isingkit import theory
    >>> round(theory.erdos_renyi(mean_degree=4, coupling=0.4, samples_per_spin=0.9, ridge=0.1).rss,
    2)
    0.96
    """
    return of_ensemble(poisson_spectrum(mean_degree, coupling), samples_per_spin, ridge)


def of_ensemble(
    spectrum: EnsembleSpectrum, samples_per_spin: float, ridge: float = 0.0
) -> Prediction:
    """Prediction for the average spin of any ensemble of trees, degrees and couplings unequal, at
    infinite depth. [eq:EOS-sparse]

    `bias` and `means` are averages over couplings, not over spins; `means` holds the first
    generation only.

    Parameters
    ----------
    spectrum
        The ensemble, e.g. EnsembleSpectrum(degrees=[0.2, 0.3, 0.5], coupling=[0.2, 0.6]).
    samples_per_spin
        alpha.
    ridge
        lambda.

    Examples
    --------
    >>> from isingkit import theory
    >>> ensemble = theory.EnsembleSpectrum(degrees=[0, 0, 0.5, 0.5], coupling=[0.2, 0.6])
    >>> round(theory.of_ensemble(ensemble, samples_per_spin=2).kappa, 6)
    2.0
    """
    require_instance("spectrum", spectrum, EnsembleSpectrum, "an EnsembleSpectrum")
    require_number("samples_per_spin", samples_per_spin, above=0)
    require_number("ridge", ridge, at_least=0, finite=False)
    alpha, penalty = _checked(samples_per_spin, ridge)
    k = effective_ridge(spectrum, alpha, penalty)
    spins = spectrum.population(float(k))
    n, owner = len(spins.g), spins.edge_of
    # estimate of a neighbour: w g_i g_j / P_ii, where g_j is that of its branch
    means = np.sinh(2 * spins.couplings) / 2 * spins.g[owner] * spins.branch / spins.p[owner]
    if np.isinf(k):
        squares = spins.t2 - 1  # [C^2]_ii - 1
    elif k > 1e-6:
        squares = (spins.p - spins.p2) / float(
            k
        ) / spins.p**2 - 1  # [P^2]_ii / P_ii^2 - 1 with P = (C + k)^-1
    else:
        squares = np.bincount(owner, weights=means**2, minlength=n).astype(
            float
        )  # least squares has no further means
    linear = np.bincount(
        owner, weights=spins.couplings**2 - 2 * spins.couplings * means, minlength=n
    )
    some = spins.couplings > 0
    bias = np.mean(means[some] / spins.couplings[some]) if some.any() else np.nan
    traces = spectrum.traces(k)
    unexplained = np.mean(spins.p2 / spins.p**2)
    first = np.array([np.mean(means)]) if len(means) else np.zeros(1)
    error = np.mean(linear + squares)
    return _prediction(
        alpha, penalty, None, k, traces, unexplained, error, bias, first, np.mean(squares)
    )


def poisson_spectrum(mean_degree: float, coupling: float) -> EnsembleSpectrum:
    """Spectrum of Erdos-Renyi graphs with couplings of one strength."""
    require_number("mean_degree", mean_degree, above=0)
    require_number("coupling", coupling)
    if mean_degree > 1000:
        raise SettingError(
            setting="mean_degree",
            value=mean_degree,
            expected="at most 1000: the theory is about sparse graphs",
        )
    degrees = np.arange(int(mean_degree + 12 * np.sqrt(mean_degree) + 20))
    logs = degrees * np.log(mean_degree) - mean_degree - np.cumsum(np.log(np.maximum(degrees, 1)))
    return EnsembleSpectrum(
        np.exp(logs), coupling, size=int(np.clip(200_000 / mean_degree, 1000, 50_000))
    )


def spectrum_of(model: IsingModel) -> Spectrum:
    """A model's spectrum: eigenvalues while that is quick, belief propagation beyond."""
    return ModelSpectrum.of(model) if model.n_spins <= FEW_SPINS else CavitySpectrum(model)


def decay_bound(coupling: ArrayLike, effective_ridge: ArrayLike) -> Any:
    r"""Theorem 2: mean estimates fall, from one generation to the next, at least by this factor.
    [eq:decay-ratio-generalnode]

    [eq:decay-ratio-Leaf] at leaves.

    \delta = \theta (D - 1) / (D - \theta^2) with \theta = \tanh K, D = 1 + 2 \lambda / \kappa;
    equality holds at leaves. (The text below the theorem prints D - \theta.)

    Parameters
    ----------
    coupling
        K.
    effective_ridge
        2 lambda / kappa, as Predictions have it.

    Examples
    --------
    >>> from isingkit import theory
    >>> p = theory.random_regular(degree=3, coupling=0.4, samples_per_spin=0.8, ridge=0.1)
    >>> round(theory.decay_bound(0.4, p.effective_ridge), 4), round(float(p.means[1] / p.means[0]),
    4) (0.1402, 0.1311)
    """
    theta = np.tanh(np.abs(numbers("coupling", coupling)))
    one, k = weights_of(effective_ridge)
    if np.any(k < 0):
        raise SettingError(
            setting="effective_ridge", value=effective_ridge, expected="a number >= 0"
        )
    return _plain(theta * k / (one * (1 - theta**2) + k))


def best_ridge(degree: int, coupling: float, samples_per_spin: float) -> float:
    """The ridge with the smallest RSS on random regular graphs, at infinite depth; 0 or infinity at
    the ends. [eq:RSS-def-2]

    Parameters
    ----------
    degree
        c.
    coupling
        K.
    samples_per_spin
        alpha.

    Examples
    --------
    >>> from isingkit import theory
    >>> round(theory.best_ridge(degree=3, coupling=0.4, samples_per_spin=0.8), 1)
    1.4
    """
    require_number("samples_per_spin", samples_per_spin, above=0)
    grid = np.linspace(-30.0, 30.0, 241)
    best = int(np.argmin(random_regular(degree, coupling, samples_per_spin, np.exp(grid)).rss))
    if best in (0, 240):
        return 0.0 if best == 0 else np.inf
    low, high = grid[best - 1], grid[best + 1]
    found = minimize_scalar(
        lambda log: random_regular(degree, coupling, samples_per_spin, np.exp(log)).rss, bounds=(low, high), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    return float(np.exp(found.x))


def free_energy(
    spectrum: Spectrum,
    *,
    samples_per_spin: float,
    ridge: float,
    kappa: float,
    Q: float,
    squares: float,
    overlap: float,
    power: float,
) -> float:
    r"""Free energy at zero temperature of given order parameters, stationary at the solution.
    [eq:limit-free-energy-sparse]

    f = \lambda |\bar J|^2 - Q \kappa / 2 + \alpha (Q + \bar J C \bar J - 2 b \bar J + 1) / (1 + 2
    G_1(\kappa)).

    Parameters
    ----------
    spectrum
        Of the teacher.
    samples_per_spin
        alpha.
    ridge
        lambda.
    kappa
        An order parameter.
    Q
        An order parameter.
    squares
        |J|^2 of the mean estimates.
    overlap
        b J: correlations with the spin times mean estimates.
    power
        J C J: variance of the field that mean estimates make.
    """
    signal = Q + power - 2 * overlap + 1
    return float(
        ridge * squares
        - Q * kappa / 2
        + samples_per_spin * signal / (1 + 2 * spectrum.g1(kappa, ridge))
    )


def _prediction(
    alpha: Any,
    penalty: Any,
    depth: int | None,
    k: Any,
    traces: Traces,
    unexplained: Any,
    off: Any,
    bias: Any,
    means: Any,
    squares: Any,
) -> Prediction:
    """Everything else follows from the effective ridge, the traces there, and the means.

    off: squared error of the mean estimates     squares: their sum of squares
    """
    finite, _ = weights_of(k)
    at = np.where(finite > 0, k, 0.0)
    over, slope = margins(alpha, at, traces)
    kappa = 2 * np.where(
        finite == 0, alpha, np.divide(penalty, at, out=np.array(over, dtype=float), where=at > 0)
    )
    noise = unexplained / np.where(finite > 0, slope, alpha)
    R = noise * traces.p2
    cost = unexplained + at * squares  # 1 - b J
    return Prediction(
        samples_per_spin=_plain(alpha), ridge=_plain(penalty), depth=depth, kappa=_plain(kappa), effective_ridge=_plain(k),
        chi=_plain(finite * traces.t / kappa), Q=_plain(noise * traces.t2), R=_plain(R), rss=_plain(off + R), bias=_plain(bias),
        unexplained=_plain(unexplained), means=means, free_energy=_plain(kappa / 2 * cost),
    )  # fmt: skip


def series(spectrum: RegularSpectrum, k: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means of the first generations at infinite depth, and the sum of squares of all: x_1, x_1 r,
    x_1 r^2, ...
    """
    _, scale = weights_of(k)
    c, w = np.asarray(spectrum.degree), spectrum.weight
    g = spectrum.branch(k)
    first = w * g / (spectrum.centre - c * scale * w**2 * g)
    ratio = scale * w * g
    powers = ratio ** np.arange(GENERATIONS).reshape(-1, *np.ones(np.ndim(ratio), int))
    powers[1:] *= c > 1  # neighbours of a pair's spins are each other
    return first * powers, c * first**2 / (1 - (c - 1) * ratio**2)


def _finite_depth(
    degree: Any, strength: Any, k: FloatArray, depth: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means by generation, their sum of squares, and the unexplained part v."""
    means, squares, unexplained = np.zeros((depth, *k.shape)), np.zeros(k.shape), np.zeros(k.shape)
    one, scale = weights_of(k)
    for c, strong in {
        (int(a), float(b)) for a, b in zip(degree.ravel(), strength.ravel(), strict=True)
    }:
        here = (degree == c) & (strength == strong)
        eigenvalues, vectors, b, sizes = _generations(c, strong, depth)
        turned = vectors.T @ b
        solved = turned[:, None] / (one[here] * eigenvalues[:, None] + scale[here])
        scaled = vectors @ solved
        means[: len(b), here] = np.abs(scaled) / np.sqrt(sizes)[:, None]
        squares[here] = np.sum(solved**2, axis=0)
        finite = one[here] > 0
        unexplained[here] = 1 - np.where(finite, turned @ solved + scale[here] * squares[here], 0.0)
    return means, squares, unexplained


@lru_cache(maxsize=4096)
def _generations(
    degree: int, strength: float, depth: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    r"""Correlations of whole generations, their eigenvectors, their correlation with the spin, and
    their sizes.

    Per spin of generation g, sum the correlations with all of generation g' and scale both by the
    root of their sizes. With \rho = \sqrt{c - 1} \tanh K and a the generation of the last common
    ancestor, 0 being the spin itself, S_{gg'} = \rho^{|g - g'|} + \frac{c - 2}{c - 1} \sum_{0 < a <
    \min(g, g')} \rho^{g + g' - 2 a} + \rho^{g + g'}.
    """
    if degree == 1:
        return np.ones(1), np.ones((1, 1)), np.array([np.tanh(strength)]), np.ones(1)
    rho = np.sqrt(degree - 1) * np.tanh(strength)
    g = np.arange(1, depth + 1)
    apart, both, least = np.abs(g[:, None] - g), g[:, None] + g, np.minimum(g[:, None], g)
    # sum over a of rho^(both - 2 a): from rho^(apart + 2) to rho^(both - 2), in steps of rho^2
    inner = rho ** (apart + 2.0) * (1 - rho ** (2.0 * (least - 1))) / (1 - rho**2)
    matrix = (
        rho ** apart.astype(float) + (degree - 2) / (degree - 1) * inner + rho ** both.astype(float)
    )
    eigenvalues, vectors = np.linalg.eigh(matrix)
    with np.errstate(over="ignore"):  # generations beyond number have means of zero
        sizes = (degree * float(degree - 1) ** (g - 1)).astype(np.float64)
    return eigenvalues, vectors, np.sqrt(degree / (degree - 1)) * rho ** g.astype(float), sizes


def _ball(model: IsingModel, spin: int, depth: int | None) -> tuple[Any, Any]:
    """Spins within a distance, the spin first, and their distances; without a depth, all spins."""
    order, before = breadth_first_order(model.couplings, spin, directed=False)
    distance = np.zeros(model.n_spins, dtype=np.int64)
    for i in order[1:]:
        distance[i] = distance[before[i]] + 1
    if depth is not None:
        order = order[distance[order] <= depth]
    return order, distance[order]


def _one_spin(ball: IsingModel, generations: Any, truth: FloatArray, k: float) -> tuple[Any, ...]:
    """v, squared error of the means, their sum of squares, bias, and mean |estimate| by generation,
    for the first spin.
    """
    one, scale = (float(value) for value in weights_of(k))
    matrix = bethe_matrix(ball)
    start = np.zeros(ball.n_spins)
    start[0] = 1.0
    column, failed = cg(
        one * scipy.sparse.eye_array(ball.n_spins) + scale * matrix,
        start,
        rtol=1e-14,
        maxiter=100_000,
    )
    if failed:
        raise NotConvergedError(
            what="the linear system of the mean estimates", residual=float(failed)
        )
    kept = matrix @ column  # [H (p + q H)^-1]_{. 0}
    estimates = -kept / kept[0] if one > 0 else column.copy()  # at infinity: correlations
    estimates[0] = 0.0
    unexplained = column @ kept / kept[0] ** 2
    neighbours = truth != 0
    bias = np.mean(estimates[neighbours] / truth[neighbours]) if neighbours.any() else np.nan
    last = max(1, min(GENERATIONS, int(generations.max())))
    means = [
        np.abs(estimates[generations == g]).mean() if (generations == g).any() else 0.0
        for g in range(1, last + 1)
    ]
    return unexplained, np.sum((truth - estimates) ** 2), float(estimates @ estimates), bias, means


def _check_depth(depth: int | None) -> None:
    if depth is not None and not (isinstance(depth, (int, np.integer)) and depth >= 1):
        raise SettingError(
            setting="depth",
            value=depth,
            expected="a whole number >= 1, or None for all generations",
        )


def _checked(samples_per_spin: ArrayLike, ridge: ArrayLike) -> tuple[FloatArray, FloatArray]:
    alpha, penalty = numbers("samples_per_spin", samples_per_spin), numbers("ridge", ridge)
    try:
        alpha, penalty = np.broadcast_arrays(alpha, penalty)
    except ValueError:
        expected = f"an array that goes with samples_per_spin, whose shape is {alpha.shape}"
        raise SettingError(setting="ridge", value=ridge, expected=expected) from None
    if not np.all(np.isfinite(alpha) & (alpha > 0)):
        raise SettingError(
            setting="samples_per_spin", value=samples_per_spin, expected="a finite number > 0"
        )
    if not np.all(penalty >= 0):
        raise SettingError(
            setting="ridge", value=ridge, expected="a number >= 0, infinity included"
        )
    if np.any((penalty == 0) & (alpha <= 1)):
        raise SettingError(
            setting="samples_per_spin", value=samples_per_spin,
            expected="> 1 where ridge is 0, for least squares diverges below; give a ridge > 0, e.g. theory.best_ridge(...)",
        )  # fmt: skip
    return alpha, penalty


def _plain(value: Any) -> Any:
    """A float where there is one number."""
    value = np.asarray(value, dtype=np.float64)
    return float(value) if value.ndim == 0 else value
