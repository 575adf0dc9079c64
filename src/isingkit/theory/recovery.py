r"""From error to recovery: how much of a network, of how many spins, is found from how many samples.

Estimates scatter like Gaussian numbers around their means. With k the effective ridge, P = H (1 + k H)^{-1} and
v_i = [H (1 + k H)^{-2}]_ii / P_ii^2, spin i's estimate X for spin j in stage one has

    mean -P_ij / P_ii      variance v_i [H (1 + k H)^{-2}]_jj / (N (\alpha - t2))

(for a neighbour j the matrix is the one without spin i). In stage two, spins that are no neighbours scatter around 0 with
variance u_i / M, u_i = 1 / H_ii, but one that has passed stage one by chance has a head start: the covariance of both stages is
u_i g_j / M with g = diagonal of (1 + k H)^{-1}. False candidates also resemble each other and the neighbours, because all of them
resemble the spin. Where there are many, they change each other's estimates and take from the neighbours' share. Neighbours scatter
around Theorem 1's means as least squares with non-Gaussian residuals does. All of this is for candidates that are few beside the
samples: up to a tenth of them, curves agree with measured ones to about 0.01, up to a fifth to a few percent. The regression has
N - 1 unknowns, so that \alpha = M / (N - 1), and N \lambda / (N - 1) takes the place of \lambda.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from scipy.stats import binom

from isingkit.exceptions import SettingError, UnderdeterminedError, require_instance, require_number
from isingkit.model import IsingModel
from isingkit.theory.linear import linear_means
from isingkit.theory.phase import require_paramagnetic
from isingkit.theory.ridge import random_regular, series
from isingkit.theory.spectrum import (
    Array,
    ModelSpectrum,
    RegularSpectrum,
    Traces,
    bethe_matrix,
    effective_ridge,
    margins,
    weights_of,
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of spins, alike ones together: how many there are and how their estimates scatter."""

    count: Array  # (n,)
    is_edge: Any  # (n,) bool
    mean: Array  # of stage one
    std: Array
    second_mean: Array  # of stage two
    slope: Array  # how much of an excess in stage one comes back in stage two
    second_std: Array  # of stage two where stage one is known

    def passing(self, threshold: Array, prune: float | None) -> Array:
        """(n_thresholds, n): probability that an estimate passes; with two stages, that it passes both."""
        if prune is None:
            level = self.bent_first(threshold[:, None])
            return ndtr((self.mean - level) / self.std) + ndtr((-self.mean - threshold[:, None]) / self.std)
        total = np.zeros((len(threshold), len(self.count)))
        for sign in (1.0, -1.0):  # stage one passed upwards, downwards
            first = self.bent_first(np.asarray(prune)) if sign > 0 else prune
            start = np.maximum((first - sign * self.mean) / self.std, -8.5)
            stop = np.sqrt(np.maximum(start, 0.0) ** 2 + 72.0)
            z = start + (stop - start) * (_NODES[:, None] + 1) / 2  # (nodes, n)
            weight = _WEIGHTS[:, None] * (stop - start) / 2 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
            centre = self.second_mean + sign * self.slope * self.std * z
            together = max(1, 500_000 // z.size)
            for row in range(0, len(threshold), together):
                rows = slice(row, row + together)
                above, below = (_bent(threshold[rows, None, None], mean) for mean in (self.second_mean, -self.second_mean))
                passed = ndtr((centre - above) / self.second_std) + ndtr((-centre - below) / self.second_std)
                total[rows] += np.sum(weight * passed, axis=1)
        return total

    def bent_first(self, level: Array) -> Array:
        """A level of stage one, seen by Fisher's transformation of the estimate scaled to its size in stage two."""
        scale = np.divide(self.second_mean, self.mean, out=np.zeros_like(self.mean), where=self.is_edge & (self.mean != 0))
        bent = _bent(level * scale, self.second_mean)
        return np.divide(bent, scale, out=level + np.zeros_like(bent), where=scale > 0)

    def excess(self, prune: float) -> Array:
        """Mean of X - mean where stage one is passed, times the probability that it is; 0 for pairs of mean 0."""
        up, down = (np.exp(-(((prune - sign * self.mean) / self.std) ** 2) / 2) / np.sqrt(2 * np.pi) for sign in (1.0, -1.0))
        return self.std * (up - down)

    def candidates(self, prune: float) -> tuple[Array, float]:
        """Probability to pass stage one, and the expected sum, over pairs that do and are no edges, of (X - mean)^2."""
        squares = np.zeros(len(self.count))
        for sign in (1.0, -1.0):
            start = (prune - sign * self.mean) / self.std
            squares += self.std**2 * (ndtr(-start) + start * np.exp(-(start**2) / 2) / np.sqrt(2 * np.pi))
        return self.passing(np.array([prune]), None)[0], float((squares * self.count)[~self.is_edge].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Recovery:
    """What thresholded estimates of a whole network get right, as a function of the threshold. [eq:Precision-Recall]

    `prune` is None for one stage: then the threshold is on the ridge estimates themselves (or, where ridge is infinite, on sample
    correlations).
    """

    n_spins: int
    n_samples: int
    ridge: float
    prune: float | None
    pairs: Pairs
    directions: int  # 2 where pairs are unordered

    def precision(self, threshold: ArrayLike) -> Any:
        """Expected edges found over expected couplings claimed; not a number where none is expected."""
        found, false = self._counts(threshold)
        return np.divide(found, found + false, out=np.full_like(found, np.nan), where=found + false > 1e-6)[()]

    def recall(self, threshold: ArrayLike) -> Any:
        """Expected edges found over edges."""
        found, _ = self._counts(threshold)
        return (found / self.pairs.count[self.pairs.is_edge].sum())[()]

    def probability(self, threshold: ArrayLike) -> Any:
        """Probability that the network is found exactly: no edge missed, none invented."""
        passing = self._passing(threshold)
        wrong = np.where(self.pairs.is_edge, 1 - passing, passing)
        logs = np.log1p(-np.clip(wrong, 0.0, 1 - 1e-15)) @ self.pairs.count
        return np.exp(logs).reshape(np.shape(threshold))[()]

    def best_threshold(self) -> float:
        """The threshold at which the exact network is likeliest."""
        low, high = 0.0, self._largest_mean()
        for _ in range(4):
            grid = np.linspace(low, high, 17)
            best = int(np.argmin(self._errors(grid)))
            low, high = grid[max(0, best - 1)], grid[min(16, best + 1)]
        return float(grid[best])

    def n_candidates(self) -> float:
        """Expected number of spins, for each spin, that pass stage one; of a two-stage estimator."""
        if self.prune is None:
            raise SettingError(setting="prune", value=None, expected="a number: one stage has no candidates")
        return float(self.pairs.passing(np.array([self.prune]), None)[0] @ self.pairs.count) / self.n_spins * self.directions

    def interval(self, probability: float = 0.5) -> tuple[float, float] | None:
        """Thresholds between which the network is found exactly with at least this probability; None where there are none."""
        best = self.best_threshold()
        if self.probability(best) < probability:
            return None
        ends = []
        for bad in (0.0, self._largest_mean()):  # where half of the strongest edges are missed
            good = best
            for _ in range(24):
                middle = (good + bad) / 2
                good, bad = (middle, bad) if self.probability(middle) >= probability else (good, middle)
            ends.append(good)
        return ends[0], ends[1]

    def _largest_mean(self) -> float:
        return float(np.max(self.pairs.mean if self.prune is None else self.pairs.second_mean))

    def _errors(self, threshold: ArrayLike) -> Array:
        """Expected number of edges missed or invented: tells thresholds apart even where an exact network is beyond hope."""
        passing = self._passing(threshold)
        return np.asarray(np.where(self.pairs.is_edge, 1 - passing, passing) @ self.pairs.count)

    def _counts(self, threshold: ArrayLike) -> tuple[Array, Array]:
        expected = self._passing(threshold) * self.pairs.count
        shape = np.shape(threshold)
        edge = self.pairs.is_edge
        return expected[:, edge].sum(axis=1).reshape(shape), expected[:, ~edge].sum(axis=1).reshape(shape)

    def _passing(self, threshold: ArrayLike) -> Array:
        return np.clip(self.pairs.passing(np.ravel(np.asarray(threshold, dtype=np.float64)), self.prune), 0.0, 1.0)


def recovery(
    n_spins: int,
    degree: int,
    coupling: float,
    n_samples: int,
    *,
    ridge: float = 0.0,
    prune: float | None = None,
    rule: str = "average",
) -> Recovery:
    """Precision, recall and the chance of the exact network on random regular graphs, for one stage or two.

    Parameters
    ----------
    n_spins
        N.
    degree
        c.
    coupling
        K.
    n_samples
        M.
    ridge
        lambda of stage one; 0 is least squares, which needs M > N.
    prune
        K_1 of a two-stage estimator; None is one stage.
    rule
        "average": edges by the mean of both directed estimates, as estimators do; "directed": each estimate by itself, as the
        paper does.

    Examples
    --------
    >>> from isingkit import theory
    >>> two_stage = theory.recovery(800, 3, 0.4, n_samples=640, ridge=0.1, prune=0.1, rule="directed")
    >>> round(float(two_stage.precision(0.15)), 3), round(float(two_stage.recall(0.15)), 3)
    (1.0, 0.999)
    """
    _check_sizes(n_spins, n_samples, ridge, prune)
    _check_degree(n_spins, degree, coupling)
    if rule not in ("average", "directed"):
        raise SettingError(setting="rule", value=rule, expected='"average" or "directed"')
    alpha, penalty = n_samples / (n_spins - 1), ridge * n_spins / (n_spins - 1)
    p = random_regular(degree, coupling, alpha, penalty)
    spectrum = RegularSpectrum(degree, coupling)
    counts = _sizes(n_spins, degree)
    is_edge = np.arange(len(counts)) == 0
    means, flat = np.zeros(len(counts)), np.zeros(len(counts))
    means[: min(len(counts), len(p.means))] = np.ravel(p.means)[: len(counts)]
    bulk = p.R / (n_spins - 1)
    std = np.sqrt(np.where(is_edge, _neighbour_variance(spectrum, p.effective_ridge, alpha) / n_samples, bulk))
    first = Pairs(counts, is_edge, means, std, flat, flat, flat)
    residual, strength = 1 / float(spectrum.centre), abs(coupling)
    seen = float(spectrum.traces(p.effective_ridge).t)
    edge_variance, agreement = _edge_scatter(degree, strength)
    noise, agree = np.where(is_edge, edge_variance, residual), np.where(is_edge, agreement, residual)
    slope, shift, left = residual * seen / (n_samples * bulk), 0.0, float(n_samples)
    if prune is not None:
        passing, squares = first.candidates(prune)
        left = n_samples - float(passing @ counts)
        _check_candidates(prune, left, n_samples)
        # a candidate of the second generation and its parent are correlated, which costs both
        further = np.sinh(strength) ** 2
        noise[0] += residual * (degree - 1) * further * (passing[1] if len(passing) > 1 else 0.0)
        noise[1:2] += residual * further * (degree > 1)
        # neighbours' correlations: theta^2 off the diagonal, so that C^-1 times equal numbers divides by 1 + (c - 1) theta^2
        slope_alone = slope
        solved = np.full(degree, means[0] / (1 + (degree - 1) * np.tanh(strength) ** 2))
        kept = float(spectrum.traces(p.effective_ridge).p)
        slope, taken = _crowded(
            p.effective_ridge, seen, kept, n_samples * bulk, slope, left / n_samples, squares, np.full(degree, means[0]), solved
        )
        shift = float(taken[0])
        if len(counts) > 1:  # children that pass do so by an excess in their parent's direction
            shift += (degree - 1) * float(spectrum.weight) * slope_alone * float(first.excess(prune)[1])
    if rule == "average":
        noise, counts = noise * (1 + agree) / 2, counts / 2
    # of the noise in stage two, stage one knows slope^2 std^2; what is left of it grows with the number of candidates
    known = (residual * seen / (n_samples * bulk)) ** 2 * std**2
    second = np.maximum(noise / n_samples - known, 1e-3 * noise / n_samples) * n_samples / left
    survive = 1.0 if prune is None else float(passing[0])
    mean, variance = (float(numbers[0]) for numbers in _means_of_survivors(np.full(degree, strength), np.full(degree, survive)))
    second = second + np.where(is_edge, variance / (2 if rule == "average" else 1), 0.0)
    second_mean = np.where(is_edge, mean - shift, 0.0)
    pairs = Pairs(counts * n_spins, is_edge, means, std, second_mean, np.full(len(counts), slope), np.sqrt(second))
    return Recovery(n_spins, n_samples, ridge, prune, pairs, 2 if rule == "average" else 1)


def recovery_of_model(model: IsingModel, n_samples: int, *, ridge: float = 0.0, prune: float | None = None) -> Recovery:
    """Precision and recall of all directed estimates on any tree-like model of a few thousand spins, for one stage or two.

    Parameters
    ----------
    model
        An IsingModel without fields.
    n_samples
        M.
    ridge
        lambda of stage one.
    prune
        K_1 of a two-stage estimator; None is one stage.

    Examples
    --------
    >>> import isingkit as ik
    >>> model = ik.erdos_renyi(n_spins=200, mean_degree=4, coupling=0.4, random_state=0)
    >>> round(float(ik.theory.recovery_of_model(model, n_samples=400).recall(0.1)), 2)
    0.96
    """
    require_instance("model", model, IsingModel, "an IsingModel")
    _check_sizes(model.n_spins, n_samples, ridge, prune)
    if model.n_edges == 0:
        raise SettingError(
            setting="model", value="one without edges", expected="a model with edges: there would be nothing to find"
        )
    n = model.n_spins
    alpha, penalty = n_samples / (n - 1), ridge * n / (n - 1)
    matrix = bethe_matrix(model)
    require_paramagnetic(model)
    eigenvalues, vectors = np.linalg.eigh(matrix.toarray())
    k = float(effective_ridge(ModelSpectrum(eigenvalues), alpha, penalty))
    one, scale = (float(value) for value in weights_of(k))
    inverse = 1 / (one + scale * eigenvalues)
    kept = (vectors * (eigenvalues * inverse)) @ vectors.T  # P
    squares = vectors**2
    noise, local = squares @ (eigenvalues * inverse**2), squares @ inverse  # [H (..)^-2]_jj and [(..)^-1]_jj
    diagonal = np.diagonal(kept)
    unexplained = noise / diagonal**2
    traces = Traces(inverse.mean(), (inverse**2).mean(), diagonal.mean(), noise.mean())
    margin = float(margins(alpha, k, traces)[1]) if np.isfinite(k) else alpha
    means = -kept / diagonal[:, None] if np.isfinite(k) else (vectors * inverse) @ vectors.T  # at infinity: correlations
    truth = model.couplings.toarray()
    variance = unexplained[:, None] * noise / ((n - 1) * margin)
    if np.isfinite(k):
        twice = (vectors * (eigenvalues * inverse) ** 2) @ vectors.T  # P^2
        own = noise - 2 * k * means * twice - means**2 * (diagonal + k * np.diagonal(twice))[:, None]
        variance = np.where(truth != 0, unexplained[:, None] * own / ((n - 1) * margin), variance)
    else:
        variance = np.where(truth != 0, (1 - means**2) / n_samples, variance)
    std = np.sqrt(variance)
    residual, further = 1 / matrix.diagonal(), np.sinh(truth) ** 2
    full_noise, full_local = (vectors * (eigenvalues * inverse**2)) @ vectors.T, (vectors * inverse) @ vectors.T
    own_gain, other_gain = _company(truth, full_noise, full_local)
    rows = []
    for i in range(n):
        near, others = truth[i] != 0, np.arange(n) != i
        flip = np.where(means[i] < 0, -1.0, 1.0)  # only the relative sign of both stages matters
        second_mean, second, left = np.zeros(n), np.full(n, residual[i]), float(n_samples)
        back = residual[i] * local / (n_samples * variance[i])
        if near.any():
            second_mean[near], lost = _means_of_survivors(truth[i, near], np.ones(near.sum()))
            second[near] = np.diagonal(_neighbour_scatter(truth[i, near]))
        if prune is not None:
            here = Pairs(others.astype(float), near, np.abs(means[i]), std[i], *(np.zeros(n),) * 3)
            passing, chance_squares = here.candidates(prune)
            passing[i] = 0.0
            left = n_samples - float(passing.sum())
            _check_candidates(prune, left, n_samples)
            if near.any():
                second_mean[near], lost = _means_of_survivors(truth[i, near], passing[near])
            second += residual[i] * (further @ np.where(near, 0.0, passing) * near + further @ passing * ~near)
            chosen = np.where(near, 0.0, passing)
            spread = chance_squares / max(float(chosen @ variance[i]), 1e-300)  # mean z^2 of those that pass
            back = back * (1 + np.where(near, 0.0, own_gain @ chosen + spread * (other_gain @ chosen)))
            known = back**2 * variance[i]
            typical = (k, float(local.mean()), float(diagonal.mean()), n_samples * float(variance[i].mean()))
            solved = np.linalg.solve(_neighbour_correlations(truth[i, near]), means[i, near]) if near.any() else np.zeros(0)
            # children that pass do so by an excess in their parent's direction, of which stage two gives part to them, not to it
            excess = flip * here.excess(prune) * np.where(near, 0.0, back)
            second_mean[near] -= (np.sinh(2 * truth[near]) / 2) @ excess
            back, taken = _crowded(*typical, back, left / n_samples, chance_squares, means[i, near], solved)
            second_mean[near] -= taken
        else:
            known = back**2 * variance[i]
        second = np.maximum(second / n_samples - known, 1e-3 * second / n_samples) * n_samples / left
        if near.any():
            second[near] += lost
        rows.append(np.column_stack([near, means[i] * flip, std[i], second_mean * flip, back, np.sqrt(second)])[others])
    return Recovery(n, n_samples, ridge, prune, _grouped(np.concatenate(rows)), 1)


def best_two_stage(n_spins: int, degree: int, coupling: float, n_samples: int) -> Recovery:
    """The two-stage estimator, on random regular graphs, with the ridge and prune that make the exact network likeliest.

    The ridge is the one at which neighbours stand out most from the second generation, in units of the noise; prune and threshold
    are searched for. `best_threshold()` of the result is the threshold that goes with them.

    Parameters
    ----------
    n_spins
        N.
    degree
        c.
    coupling
        K.
    n_samples
        M.

    Examples
    --------
    >>> from isingkit import theory
    >>> best = theory.best_two_stage(n_spins=800, degree=3, coupling=0.4, n_samples=640)
    >>> bool(best.probability(best.best_threshold()) > 0.9)
    True
    """
    _check_sizes(n_spins, n_samples)
    _check_degree(n_spins, degree, coupling)
    ridges = np.geomspace(1e-2, 1e2, 81)
    p = random_regular(degree, coupling, n_samples / (n_spins - 1), ridges * n_spins / (n_spins - 1))
    ridge = float(ridges[np.argmax((p.means[0] - p.means[1]) / np.sqrt(p.R))])
    first = float(random_regular(degree, coupling, n_samples / (n_spins - 1), ridge * n_spins / (n_spins - 1)).means[0])
    low, high = 0.2, 0.95
    for _ in range(2):
        grid = np.linspace(low, high, 9)
        tried = [_or_none(n_spins, degree, coupling, n_samples, ridge, float(share * first)) for share in grid]
        errors = [np.inf if one is None else float(one._errors(one.best_threshold())[0]) for one in tried]
        place = int(np.argmin(errors))
        best, low, high = tried[place], grid[max(0, place - 1)], grid[min(8, place + 1)]
    if best is None:
        raise SettingError(setting="n_samples", value=n_samples, expected="more: stage one leaves more candidates than that")
    return best


def _or_none(n_spins: int, degree: int, coupling: float, n_samples: int, ridge: float, prune: float) -> Recovery | None:
    try:
        return recovery(n_spins, degree, coupling, n_samples, ridge=ridge, prune=prune)
    except SettingError:  # too many candidates
        return None


def samples_needed(n_spins: int, degree: int, coupling: float, probability: float = 0.99) -> int:
    """Samples with which the two-stage estimator finds a random regular network exactly, with this probability.

    With its best knobs, which `best_two_stage` tells. Checked against planted worlds for (degree - 1) tanh^2 coupling up to 0.3;
    nearer to 1, where the phase ends, it promises too much (at 0.64: 37 of 40 networks instead of 99 percent).

    Parameters
    ----------
    n_spins
        N.
    degree
        c.
    coupling
        K.
    probability
        Of no edge missed and none invented, between 0 and 1.

    Examples
    --------
    >>> from isingkit import theory
    >>> theory.samples_needed(n_spins=200, degree=3, coupling=0.4) < theory.samples_needed(n_spins=200, degree=3, coupling=0.3)
    True
    """
    require_number("probability", probability, above=0)
    if probability > 1 - 1e-9:
        raise SettingError(setting="probability", value=probability, expected="below 1: nothing is certain")
    require_number("n_spins", n_spins, at_least=3, whole=True)
    _check_degree(n_spins, degree, coupling)
    RegularSpectrum(degree, coupling)

    def enough(n_samples: int) -> bool:
        try:
            best = best_two_stage(n_spins, degree, coupling, n_samples)
        except SettingError:  # too many candidates
            return False
        return bool(best.probability(best.best_threshold()) >= probability)

    high = 4 * (degree + 2)
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _bent(level: ArrayLike, mean: Array) -> Array:
    r"""The level at which a Gaussian number passes as often as an estimate does.

    Estimates are skewed as correlations are, and like these Gaussian after Fisher's transformation: it is atanh(estimate) that
    scatters evenly. Three standard deviations out, that doubles the edges missed.
    """
    level, mean = (np.clip(value, -1 + 1e-9, 1 - 1e-9) for value in (level, mean))
    return mean + (1 - mean**2) * (np.arctanh(level) - np.arctanh(mean))


def _check_sizes(n_spins: int, n_samples: int, ridge: float = 1.0, prune: float | None = None) -> None:
    require_number("n_spins", n_spins, at_least=3, whole=True)
    require_number("n_samples", n_samples, at_least=1, whole=True)
    require_number("ridge", ridge, at_least=0, finite=False)
    if prune is not None:
        require_number("prune", prune, at_least=0)
    if ridge == 0 and n_samples < n_spins:
        raise UnderdeterminedError(n_samples=n_samples, n_spins=n_spins)


def _check_candidates(prune: float, left: float, n_samples: int) -> None:
    if left < 0.1 * n_samples:
        came = f"{prune:g}, which leaves about {n_samples - left:.0f} candidates for {n_samples} samples"
        raise SettingError(setting="prune", value=came, expected="large enough for fewer candidates than samples")


def _check_degree(n_spins: int, degree: int, coupling: float) -> None:
    require_number("degree", degree, at_least=1, whole=True)
    require_number("coupling", coupling)
    if degree >= n_spins:
        raise SettingError(setting="degree", value=degree, expected=f"below n_spins={n_spins}")
    if coupling == 0:
        raise SettingError(setting="coupling", value=coupling, expected="not 0: there would be nothing to find")


def _sizes(n_spins: int, degree: int) -> Array:
    """Spins in each generation around one, while there are any left; the last takes what remains."""
    sizes: list[float] = []
    left = n_spins - 1
    while left > 0 and len(sizes) < 64:
        size = min(left, degree * (degree - 1) ** len(sizes))
        if size == 0:
            break
        sizes.append(size)
        left -= size
    return np.array([*sizes, left] if left > 0 else sizes, dtype=np.float64)


def _edge_scatter(degree: int, strength: float) -> tuple[float, float]:
    r"""M times the variance of least squares on the true neighbours, and the correlation of both directed estimates of an edge.

    The residual's size depends on the neighbours (it is not Gaussian noise), so that the variance is the sandwich
    C^{-1} <e^2 s s'> C^{-1}. Around an edge ij, all signs made positive, the rest of both neighbourhoods enters by its sums, which
    are binomial given s_i and s_j: 4 c^2 terms.
    """
    theta = np.tanh(strength)
    mean = theta / (1 + (degree - 1) * theta**2)
    own = 1 / (1 - theta**2)
    common = -(theta**2) / ((1 - theta**2) * (1 - theta**2 + degree * theta**2))
    ups = np.arange(degree)
    variance = product = 0.0
    for si in (1, -1):
        for sj in (1, -1):
            chance = (1 + theta * si * sj) / 4
            sums = 2 * ups - (degree - 1)
            p_i, p_j = (binom.pmf(ups, degree - 1, (1 + theta * s) / 2) for s in (si, sj))
            into_i = (si - mean * (sj + sums)) * (own * sj + common * (sj + sums))
            into_j = (sj - mean * (si + sums)) * (own * si + common * (si + sums))
            variance += chance * float(p_i @ into_i**2)
            product += chance * float(p_i @ into_i) * float(p_j @ into_j)
    return variance, product / variance


def _neighbour_scatter(couplings: Array) -> Array:
    """M times the covariance of least squares on the true neighbours of one spin: C^-1 <e^2 s s'> C^-1, in closed form.

    In the spin's own gauge neighbours are independent with means tanh J, and the residual is 1 - sum a_j s_j.
    """
    theta, a = np.tanh(couplings), linear_means(couplings)
    rest = 1 - (a @ theta - a[:, None] * theta[:, None] - a * theta)  # 1 - mean of the others, for each pair
    scatter = a**2 @ (1 - theta**2) - (a**2 * (1 - theta**2))[:, None] - a**2 * (1 - theta**2)
    middle = (rest**2 + a[:, None] ** 2 + a**2 + scatter) * np.outer(theta, theta)
    middle += 2 * np.outer(a, a) - 2 * rest * (np.outer(a, theta) + np.outer(theta, a))
    np.fill_diagonal(middle, (1 - a @ theta) ** 2 + a**2 @ (1 - theta**2))
    inverse = np.linalg.inv(_neighbour_correlations(couplings))
    return np.asarray(inverse @ middle @ inverse)


def _means_of_survivors(couplings: Array, kept: Array) -> tuple[Array, Array]:
    """Mean and variance of Theorem 1's estimates where the other neighbours are candidates with the probabilities `kept`.

    Estimates of fewer neighbours are larger: w_j / D with D = 1 + the sum of sinh^2 J over those there are; to second order in D.
    """
    squares = np.sinh(couplings) ** 2
    other = kept * squares
    mean = 1 + squares + other.sum() - other
    spread = kept * (1 - kept) * squares**2
    spread = spread.sum() - spread
    numerators = np.sinh(2 * couplings) / 2
    return numerators / mean * (1 + spread / mean**2), numerators**2 * spread / mean**4


def _company(truth: Array, noise: Array, local: Array) -> tuple[Array, Array]:
    """What a candidate's head start gains when a neighbour of its own is a candidate, too: by its own X, and by the neighbour's.

    With F both of them, stage two given stage one is C_FF^-1 G_FF N_FF^-1 X, where G = (1 + k H)^-1 and N = H (1 + k H)^-2.
    """
    own, other = np.zeros_like(truth), np.zeros_like(truth)
    for j, m in np.argwhere(truth != 0):
        pair = np.ix_([j, m], [j, m])
        theta = np.tanh(truth[j, m])
        share = np.linalg.solve([[1, theta], [theta, 1]], local[pair]) @ np.linalg.inv(noise[pair])
        alone = local[j, j] / noise[j, j]
        own[j, m] = share[0, 0] / alone - 1
        other[j, m] = share[0, 1] * noise[j, m] / noise[j, j] / alone
    return own, other


def _neighbour_correlations(couplings: Array) -> Array:
    theta = np.tanh(couplings)
    correlations = np.outer(theta, theta)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def _grouped(table: Array) -> Pairs:
    """Pairs whose numbers hardly differ, counted together: means by 0.02 standard deviations, spreads by 1 percent."""
    is_edge, mean, std, second_mean, slope, second_std = table.T
    steps = (
        is_edge, 50 * mean / std, 100 * np.log(std), 50 * second_mean / second_std, 50 * slope * std / second_std,
        100 * np.log(second_std),
    )  # fmt: skip
    key = np.zeros(len(table), dtype=np.int64)  # all steps in one number: sorting rows would take many times longer
    for step in steps:
        whole = np.rint(np.clip(step, -1e5, 1e5)).astype(np.int64)
        _, key = np.unique(key * (np.ptp(whole) + 1) + whole - whole.min(), return_inverse=True)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    return Pairs(count.astype(np.float64), is_edge[first].astype(bool), *(table[first, column] for column in range(1, 6)))


def _neighbour_variance(spectrum: RegularSpectrum, k: float, alpha: float) -> float:
    r"""M times the variance of a neighbour's estimate in stage one.

    With e = s_0 - \bar J s the residual and y = [(C + k)^{-1} s]_n, C without spin 0: <e^2><y^2> / (1 - t2 / \alpha), plus what
    is not Gaussian around the spin: <e^2 y^2> - <e^2><y^2> - <e y>^2. Both are sums over the tree; moments of sums are collected
    from the leaves of its twelfth generation, given the sign of the spin they hang on.
    """
    depth, c = 12, int(spectrum.degree)
    finite, _ = (float(value) for value in weights_of(k))
    p, theta = float(spectrum.traces(k).p), float(np.tanh(abs(spectrum.coupling)))
    first = np.ravel(series(spectrum, np.asarray(k))[0])[:2] * finite
    x = np.concatenate([[-1.0], first[0] * (first[1] / first[0] if first[0] > 0 else 0.0) ** np.arange(depth + 1)])
    # coefficients of e and y by generation: in the branch of the neighbour itself (from 1), and in the others
    here = [(-x[g], p * ((g == 1) - (g > 1) * x[g - 1] - x[1] * x[g])) for g in range(1, depth + 1)]
    there = [(-x[g], -p * (x[g + 1] + x[1] * x[g])) for g in range(1, depth + 1)]

    def times(left: Array, right: Array) -> Array:
        return np.array([[np.sum(left[: i + 1, : j + 1] * right[i::-1, j::-1]) for j in range(3)] for i in range(3)])

    def spin(own: tuple[float, float]) -> Array:
        return np.outer([1, own[0], own[0] ** 2 / 2], [1, own[1], own[1] ** 2 / 2])

    def seen_from_parent(moments: Array) -> Array:
        return moments * theta ** (np.add.outer(np.arange(3), np.arange(3)) % 2)  # odd moments change sign with the spin

    def branch(coefficients: list[tuple[float, float]]) -> Array:
        moments = spin(coefficients[-1])
        for own in coefficients[-2::-1]:
            child, moments = seen_from_parent(moments), spin(own)
            for _ in range(c - 1):
                moments = times(moments, child)
        return seen_from_parent(moments)

    total = times(spin((1.0, 0.0)), branch(here))
    other = branch(there)
    for _ in range(c - 1):
        total = times(total, other)
    e2, y2, ey, e2y2 = 2 * total[2, 0], 2 * total[0, 2], total[1, 1], 4 * total[2, 2]
    shrunk = finite * float(spectrum.traces(k).t2) / alpha
    return float(e2 * y2 * shrunk / (1 - shrunk) + e2y2 - ey**2)


def _crowded(
    k: float, local: float, kept: float, scale: float, slope: Any, left: float, squares: float, means: Array, solved: Array
) -> tuple[Any, Array]:
    r"""The multiple of X that a false candidate gets in stage two, and what all of them take from each neighbour.

    Given their estimates X in stage one, candidate j and a neighbour of mean m have the mean product \omega X_j m, because both
    resemble the spin, \omega = g k / (M \sigma^2). Candidates j and l have (g / P) (1 - 1 / k) \omega X_j X_l: less, because of two
    that resemble each other stage one gives each its share. Least squares of s_i - sum a s on both then has two unknowns, the
    multiple and the loss.

    local, kept: g and P     scale: M sigma^2     left: share of the samples beyond the number of candidates
    squares: sum of X^2 over false candidates     means: m of all neighbours     solved: C^-1 m
    """
    one, q = (float(value) for value in weights_of(k))
    among, aside = local * local / kept * (q - one) / scale, local * q / scale
    whole = max(1 + among * squares - aside**2 * squares * float(means @ solved), 0.2) * left
    return slope / whole, aside * float(np.mean(slope)) / whole * squares * solved / left
