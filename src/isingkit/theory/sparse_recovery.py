r"""Precision and recall of l1-penalised estimates on random regular graphs, from their optimality
conditions.

Spin i minimises the mean of l(s_i \sum_j J_j s_j) plus l1 \sum_j |J_j|. At the minimum every
neighbour's gradient is h = -<l' s_i s_n> = l1. A spin j behind it, in generation g, resembles it by
\theta^{g - 1}, so that its gradient has the mean \theta^{g - 1} l1 and the variance
<l'^2> (1 - \theta^{2 (g - 1)}) / M: it gets an edge where |h_j| > l1. A neighbour is missed where
its gradient, the others fitted, stays below l1. With a estimates that are not zero the loss is
felt through its proximal operator, \chi = a / (M \kappa), \kappa = <d l'(\hat y) / d y>, and false
estimates add their squares, Q, to the variance of the field. Correlations among false estimates are
neglected: the theory is for networks that come out sparse.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotConvergedError, SettingError, require_number
from isingkit.theory.generations import generation_sizes, neighbour_sums
from isingkit.theory.loops import (
    SQUARE,
    TRIANGLE,
    lasso_shift,
    longest_loop,
    loops_through_edge,
    square_resemblance,
    triangle,
)
from isingkit.theory.losses import Exponential, Logistic, Loss, Squares
from isingkit.theory.recovery import require_degree, require_sizes
from isingkit.theory.regular import RegularSpectrum

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Squares(), Logistic(), Exponential())}
RULES = ("average", "or", "and", "directed")
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
_NODE_WEIGHTS = _NODE_WEIGHTS / np.sqrt(2 * np.pi)
_FEW_NODES, _FEW_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_FEW_WEIGHTS = _FEW_WEIGHTS / np.sqrt(2 * np.pi)
_MOST_ROUNDS = 500
_TOLERANCE = 1e-10  # of order parameters, relative
_DAMPING = 0.5
_LARGEST = 0.9  # of estimates that are not zero, over samples


@dataclass(frozen=True, slots=True)
class SparseRecovery:
    """What l1-penalised estimates of a whole network get right.

    Attributes
    ----------
    precision, recall
        Expected edges found over edges claimed, and over edges.
    found, false
        Expected numbers of edges found and invented.
    probability
        That the network is found exactly, pairs taken for independent.
    mean
        Mean estimate of a neighbour where all neighbours are found.
    candidates
        Expected number of estimates of a spin that are not zero.
    """

    loss: str
    n_spins: int
    n_samples: int
    l1: float
    rule: str
    precision: float
    recall: float
    found: float
    false: float
    probability: float
    mean: float
    candidates: float


def lasso_limit(degree: int, coupling: float, l1: float, loss: str = "squares") -> float:
    r"""k of M > k \log N: samples with which l1-penalised estimates of a spin invent nothing.

    k = 2 <l'^2> / l1^2 at the mean estimates, for the largest of N Gaussian gradients of variance
    <l'^2> / M is \sqrt{2 <l'^2> \log N / M}, and must stay below l1. For least squares
    <l'^2> = (1 - \theta^2 + c l1^2) / (1 + (c - 1) \theta^2). Neighbours are found where l1 is
    below \theta = \tanh K, and samples are many enough.

    Parameters
    ----------
    degree
        c.
    coupling
        K, with (c - 1) tanh^2 K < 1.
    l1
        Of `LassoIsing`, or of the estimator that goes with the loss.
    loss
        "squares" (`LassoIsing`), "pseudolikelihood" or "screening".

    Examples
    --------
    >>> from isingkit import theory
    >>> round(theory.lasso_limit(degree=3, coupling=0.4, l1=0.3), 2)
    19.41
    """
    penalised = _penalised(degree, coupling, l1, loss)
    mean = penalised.mean_estimate(degree, _NOTHING)
    return 2 * penalised.moments(degree, mean, _NOTHING).squares / penalised.level**2


def sparse_recovery(
    n_spins: int,
    degree: int,
    coupling: float,
    n_samples: int,
    l1: float,
    *,
    loss: str = "squares",
    rule: str = "average",
    fit_fields: bool = True,
) -> SparseRecovery:
    """Precision and recall of l1-penalised estimates on random regular graphs.

    Of `LassoIsing(l1=...)`, or with another loss of `PseudolikelihoodIsing(l1=...)` and
    `InteractionScreeningIsing(l1=...)`.

    Parameters
    ----------
    n_spins
        N.
    degree
        c.
    coupling
        K, with (c - 1) tanh^2 K < 1.
    n_samples
        M.
    l1
        The estimator's.
    loss
        "squares" (`LassoIsing`), "pseudolikelihood" or "screening".
    rule
        "average" or "or": an edge where one of both directed estimates is not zero, as estimators
        with threshold 0 have it; "and": where both are; "directed": each by itself.
    fit_fields
        Whether fields are fitted, which costs a sample.

    Examples
    --------
    >>> from isingkit import theory
    >>> found = theory.sparse_recovery(200, 3, 0.4, n_samples=300, l1=0.2)
    >>> round(found.precision, 2), round(found.recall, 2)
    (0.98, 1.0)
    """
    require_sizes(n_spins, n_samples)
    require_degree(n_spins, degree, coupling)
    if rule not in RULES:
        expected = ", ".join(f'"{name}"' for name in RULES)
        raise SettingError(setting="rule", value=rule, expected=f"one of {expected}")
    if fit_fields:
        require_number("n_samples", n_samples, at_least=2, whole=True)  # one is all field
    # fitted means shrink correlations by 1 - 1 / M
    penalised = _penalised(degree, coupling, l1 / (1 - fit_fields / n_samples), loss)
    sizes = generation_sizes(n_spins, degree)[1:]
    state = _solved(penalised, sizes, n_samples)
    if state.candidates > _LARGEST * n_samples:
        value = f"{l1:g}, which leaves {state.candidates:.0f} estimates that are not zero"
        raise SettingError(setting="l1", value=value, expected="large enough for a sparse network")
    found = penalised.edges(state, n_spins, n_samples).decided(rule)
    kinds = [penalised.pairs(state, g, n_samples) for g in range(2, len(sizes) + 2)]
    directions = 1 if rule == "directed" else 2
    n_edges = n_spins * degree / directions
    n_found = n_edges * found
    n_others = n_spins * sizes / directions
    if len(sizes) > 0 and degree > 2:
        # spins opposite each other on a square that is not frustrated, taken from generation 2
        n_opposite = 2 * (degree - 1) ** SQUARE / (2 * SQUARE) / directions
        kinds.append(penalised.opposite(state, n_samples))
        n_others = np.append(n_others, n_opposite)
        n_others[0] = max(n_others[0] - n_opposite, 0.0)
    invented = np.array([kind.decided(rule) for kind in kinds])
    n_false = float(n_others @ invented)
    log_probability = n_edges * np.log(max(found, 1e-300)) + float(n_others @ np.log1p(-invented))
    claimed = n_found + n_false
    return SparseRecovery(
        loss=loss,
        n_spins=n_spins,
        n_samples=n_samples,
        l1=l1,
        rule=rule,
        precision=n_found / claimed if claimed > 1e-6 else np.nan,
        recall=found,
        found=n_found,
        false=n_false,
        probability=float(np.exp(log_probability)),
        mean=penalised.mean_estimate(degree, state),
        candidates=float(state.candidates),
    )


class _State(NamedTuple):
    """What estimates that are not zero amount to."""

    Q: float  # variance of the field by false estimates
    chi: float
    survival: float  # probability that a neighbour's directed estimate is not zero
    candidates: float  # estimates that are not zero, of one spin
    squares: float  # <l'^2>
    mean: float  # estimate of a neighbour, on average over how many there are


_NOTHING = _State(0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


class _Moments(NamedTuple):
    """Of a fitted sample."""

    squares: float  # <l'^2>
    gradient: float  # -<l' s_n> of a fitted neighbour
    curvature: float  # <d l' / d y>


@dataclass(frozen=True, slots=True)
class _Directed:
    """Both directed gradients of pairs alike: Gaussian, of one mean and variance, correlated."""

    mean: float
    std: float
    correlation: float
    level: float  # l1
    skewness: float = 0.0

    def ends(self) -> tuple[float, float]:
        """-l1 and l1 in standard deviations, after Cornish's and Fisher's transformation."""
        low, high = (
            z - self.skewness / 6 * (min(z**2, 9.0) - 1)
            for z in ((-self.level - self.mean) / self.std, (self.level - self.mean) / self.std)
        )
        return low, max(low, high)

    def alone(self) -> float:
        """Probability that one directed estimate is not zero."""
        low, high = self.ends()
        return float(ndtr(low) + ndtr(-high))

    def both_zero(self) -> float:
        """By conditioning on one of them: Gauss-Legendre between the levels."""
        rho = float(np.clip(self.correlation, -0.999, 0.999))
        nodes, weights = _legendre()
        low, high = self.ends()
        from_low = max(low, -9.0)
        length = min(high, 9.0) - from_low
        if length <= 0:
            return 0.0
        z = from_low + length * (nodes + 1) / 2
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * weights * length / 2
        root = np.sqrt(1 - rho**2)
        inside = ndtr((high - rho * z) / root) - ndtr((low - rho * z) / root)
        return float(density @ inside)

    def decided(self, rule: str) -> float:
        """Probability that the pair gets an edge."""
        if rule == "directed":
            return self.alone()
        neither = self.both_zero()
        decided = 1 - neither if rule != "and" else 2 * self.alone() - 1 + neither
        return min(max(decided, 0.0), 1.0)


@lru_cache(maxsize=1)
def _legendre() -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(64)


@dataclass(frozen=True, slots=True, eq=False)
class _Penalised:
    """A loss with an l1 penalty, on random regular graphs."""

    loss: Loss
    degree: int
    theta: float
    l1: float
    level: float  # l1, of the loss as `losses.py` has it

    def slopes(self, centres: FloatArray, state: _State) -> tuple[FloatArray, FloatArray]:
        """-l' and its derivative at fitted fields, averaged over noise as moments need them:
        (n_centres, n_nodes).
        """
        y = centres[:, None] + np.sqrt(state.Q) * _NODES
        if state.chi == 0:
            return -self.loss.slope(y), self.loss.curvature(y)
        slope, curvature = self.loss.fitted_slope(y, state.chi)
        return -slope, curvature

    def moments(self, n_fitted: int, mean: float, state: _State) -> _Moments:
        """With so many neighbours fitted, each with the same estimate."""
        sums, probability = neighbour_sums(n_fitted, self.theta)
        pull, curvature = self.slopes(mean * sums, state)
        gradient = probability @ (sums / max(n_fitted, 1) * (pull @ _NODE_WEIGHTS))
        return _Moments(
            squares=float(probability @ (pull**2 @ _NODE_WEIGHTS)),
            gradient=float(gradient),
            curvature=float(probability @ (curvature @ _NODE_WEIGHTS)),
        )

    def mean_estimate(self, n_fitted: int, state: _State) -> float:
        """J at which neighbours' gradients are l1; 0 where even those at 0 are below."""
        if n_fitted == 0:
            return 0.0

        def missing(mean: float) -> float:
            return self.moments(n_fitted, mean, state).gradient - self.level

        if missing(0.0) <= 0:
            return 0.0
        high = 1.0
        while missing(high) > 0:
            high *= 2
        return float(brentq(missing, 0.0, high, xtol=1e-13))

    def neighbour(self, n_others: int, state: _State, n_samples: int) -> _Directed:
        """The gradient of a neighbour that is not fitted, while so many others are."""
        theta = self.theta
        mean = self.mean_estimate(n_others, state)
        sums, probability = neighbour_sums(n_others, theta)
        pull, _ = self.slopes(mean * sums, state)
        pull_mean = pull @ _NODE_WEIGHTS
        pull_square = pull**2 @ _NODE_WEIGHTS
        # the neighbour less what the others say of it: s_n - shared * sum of the others
        shared = theta**2 / (1 + (n_others - 1) * theta**2) if n_others else 0.0
        at_up = float(probability @ ((1 - shared * sums) * pull_mean))
        at_down = float(probability @ ((-1 - shared * sums) * pull_mean))
        up = (1 + theta) / 2
        own = up * at_up + (1 - up) * at_down
        square_up = probability @ ((1 - shared * sums) ** 2 * pull_square)
        square_down = probability @ ((-1 - shared * sums) ** 2 * pull_square)
        square = float(up * square_up + (1 - up) * square_down)
        variance = square - own**2
        pull_cube = pull**3 @ _NODE_WEIGHTS
        cube_up = probability @ ((1 - shared * sums) ** 3 * pull_cube)
        cube_down = probability @ ((-1 - shared * sums) ** 3 * pull_cube)
        cube = float(up * cube_up + (1 - up) * cube_down)
        skewness = (cube - 3 * own * square + 2 * own**3) / variance**1.5
        # seen from the other end the same function of both spins, whose signs agree or not
        product = up * at_up**2 + (1 - up) * at_down**2
        fitted = self.level if mean > 0 else 0.0
        return _Directed(
            mean=own + shared * n_others * fitted,
            std=float(np.sqrt(variance / n_samples)),
            correlation=float((product - own**2) / variance),
            level=self.level,
            skewness=skewness / np.sqrt(n_samples),
        )

    def edges(self, state: _State, n_spins: int, n_samples: int) -> "_Mixture":
        """Neighbours, on average over how many of the others are fitted, and over loops."""
        _, weights = neighbour_sums(self.degree - 1, 2 * state.survival - 1)
        kinds = []
        of_kinds = []
        for others, weight in enumerate(weights):
            in_tree = self.neighbour(others, state, n_samples)
            for shift, share in self._by_loops(others, state, n_spins):
                kinds.append(replace(in_tree, mean=in_tree.mean + shift))
                of_kinds.append(weight * share)
        return _Mixture(tuple(kinds), np.array(of_kinds))

    def _by_loops(self, n_others: int, state: _State, n_spins: int) -> list[tuple[float, float]]:
        """What loops add to a neighbour's gradient, and how often: triangles of both signs, and a
        Gaussian number for all longer ones.
        """
        if self.degree <= 2:
            return [(0.0, 1.0)]
        unit = self.level / self.l1
        shifts = [
            unit * lasso_shift(triangle(self.theta, sign), n_others, self.theta, self.l1)
            for sign in (1, -1)
        ]
        in_triangle = min(loops_through_edge(n_spins, self.degree, TRIANGLE), 1.0)
        mean = self.mean_estimate(n_others, state)
        variance = 0.0
        for length in range(SQUARE, longest_loop(n_spins, self.degree) + 1):
            around = self.theta ** (length - 2) * (self.theta - mean) * (1 - self.theta**2)
            n_loops = loops_through_edge(n_spins, self.degree, length)
            variance += n_loops * (unit * around) ** 2
        found = []
        for node, weight in zip(_FEW_NODES, _FEW_WEIGHTS, strict=True):
            longer = float(np.sqrt(variance) * node)
            found.append((longer, float(weight * (1 - in_triangle))))
            found.extend((longer + shift, float(weight * in_triangle / 2)) for shift in shifts)
        return found

    def opposite(self, state: _State, n_samples: int) -> _Directed:
        """A spin behind two neighbours at once, on a square that is not frustrated."""
        across = self.pairs(state, 2, n_samples)
        return replace(across, mean=2 * square_resemblance(self.theta) * self.level)

    def pairs(self, state: _State, generation: int, n_samples: int) -> _Directed:
        """Spins of a later generation, of which the neighbour before them is fitted."""
        resemblance = self.theta ** (generation - 1)
        left = 1 - resemblance**2
        variance = state.squares * left
        covariance = _covariance(self.theta, generation, self._pull_by_spins(state))
        return _Directed(
            mean=resemblance * self.level,
            std=float(np.sqrt(variance / n_samples)),
            correlation=covariance / variance,
            level=self.level,
        )

    def _pull_by_spins(self, state: _State) -> tuple[float, float]:
        """-<l'> given that one neighbour is up, or down."""
        others = self.degree - 1
        sums, probability = neighbour_sums(others, self.theta)
        mean = state.mean
        up, _ = self.slopes(mean * (sums + 1), state)
        down, _ = self.slopes(mean * (sums - 1), state)
        return (
            float(probability @ (up @ _NODE_WEIGHTS)),
            float(probability @ (down @ _NODE_WEIGHTS)),
        )


@dataclass(frozen=True, slots=True)
class _Mixture:
    kinds: tuple[_Directed, ...]
    weights: FloatArray

    def alone(self) -> float:
        return float(self.weights @ [kind.alone() for kind in self.kinds])

    def decided(self, rule: str) -> float:
        return float(self.weights @ [kind.decided(rule) for kind in self.kinds])


def _covariance(theta: float, generation: int, pulls: tuple[float, float]) -> float:
    """Of both directed gradients of a pair: by all states of i, its neighbour n, j's neighbour m,
    and j, on the path between.
    """
    pull_up, pull_down = pulls
    resemblance = theta ** (generation - 1)
    between = theta ** (generation - 2)
    total = 0.0
    for n in (1, -1):  # i is up
        of_n = (1 + theta * n) / 2
        for m in (1, -1):
            of_m = (1 + between * n * m) / 2
            for j in (1, -1):
                weight = of_n * of_m * (1 + theta * m * j) / 2
                of_i = pull_up if n > 0 else pull_down
                of_j = j * (pull_up if m * j > 0 else pull_down)
                total += weight * of_i * (j - resemblance * n) * of_j * (1 - resemblance * m)
    return total


def _penalised(degree: int, coupling: float, l1: float, loss: str) -> _Penalised:
    require_number("coupling", coupling)
    RegularSpectrum(degree, coupling)
    require_number("l1", l1, above=0)
    if loss not in LOSSES:
        expected = ", ".join(f'"{name}"' for name in LOSSES)
        raise SettingError(setting="loss", value=loss, expected=f"one of {expected}")
    # LassoIsing halves the squares, so that its l1 is half of that beside whole squares
    level = 2 * l1 if loss == "squares" else l1
    return _Penalised(LOSSES[loss], degree, float(np.tanh(abs(coupling))), l1, level)


def _solved(penalised: _Penalised, sizes: FloatArray, n_samples: int) -> _State:
    """Order parameters by repeated substitution, half of each step taken.

    It ends as soon as estimates that are not zero are too many.
    """
    state = _State(0.0, 0.0, 1.0, float(penalised.degree), 0.0, 0.0)
    for _ in range(_MOST_ROUNDS):
        new = _substituted(penalised, state, sizes, n_samples)
        if new.candidates > _LARGEST * n_samples:
            return new
        change = np.abs(np.subtract(new, state))
        if np.all(change <= _TOLERANCE * (1e-6 + np.abs(new))):
            return new
        state = _State(*(np.asarray(state) + _DAMPING * np.subtract(new, state)).tolist())
    raise NotConvergedError(
        what="the number of estimates that are not zero",
        residual=float(change.max()),
        advice="use a larger l1",
    )


def _substituted(penalised: _Penalised, state: _State, sizes: FloatArray, n_samples: int) -> _State:
    degree = penalised.degree
    n_spins = 1 + degree + int(sizes.sum())
    _, weights = neighbour_sums(degree, 2 * state.survival - 1)  # of how many are fitted
    means = [penalised.mean_estimate(n, state) for n in range(degree + 1)]
    fitted = [penalised.moments(n, mean, state) for n, mean in enumerate(means)]
    squares = float(weights @ [moments.squares for moments in fitted])
    curvature = float(weights @ [moments.curvature for moments in fitted])
    state = state._replace(squares=squares, mean=float(weights @ means))
    survival = penalised.edges(state, n_spins, n_samples).alone()
    candidates = degree * survival
    Q = 0.0
    for place, size in enumerate(sizes):
        pair = penalised.pairs(state, place + 2, n_samples)
        candidates += size * pair.alone()
        Q += size * _excess_square(pair) / curvature**2
    chi = candidates / (n_samples * curvature)
    return _State(Q, chi, survival, candidates, squares, state.mean)


def _excess_square(pair: _Directed) -> float:
    """Mean of (|h| - l1)^2 where it is positive."""
    total = 0.0
    for mean in (pair.mean, -pair.mean):
        a = (pair.level - mean) / pair.std
        density = np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi)
        total += max(0.0, (1 + a**2) * ndtr(-a) - a * density)
    return float(total * pair.std**2)
