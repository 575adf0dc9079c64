r"""From error to recovery: how much of a network, of how many spins, is found from how many
samples.

Estimates scatter like Gaussian numbers around their means. With k the effective ridge, P = H (1 + k
H)^{-1} and v_i = [H (1 + k H)^{-2}]_ii / P_ii^2, spin i's estimate X for spin j in stage one has

    mean -P_ij / P_ii      variance v_i [H (1 + k H)^{-2}]_jj / (N (\alpha - t2))

(for a neighbour j the matrix is the one without spin i). In stage two, spins that are no neighbours
scatter around 0 with variance u_i / M, u_i = 1 / H_ii, but one that has passed stage one by chance
has a head start: the covariance of both stages is u_i g_j / M with g = diagonal of (1 + k H)^{-1}.
False candidates also resemble each other and the neighbours, because all of them resemble the spin.
Where there are many, they change each other's estimates and take from the neighbours' share.
Neighbours scatter around Theorem 1's means as least squares with non-Gaussian residuals does. All
of this is for candidates that are few beside the samples: up to a tenth of them, curves agree with
measured ones to about 0.01, up to a fifth to a few percent. The regression has N - 1 unknowns, so
that \alpha = M / (N - 1), and N \lambda / (N - 1) takes the place of \lambda.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isingkit.arrays import FloatArray
from isingkit.exceptions import SettingError, UnderdeterminedError, require_instance, require_number
from isingkit.model import IsingModel
from isingkit.theory.pairs import Pairs, grouped
from isingkit.theory.phase import require_paramagnetic
from isingkit.theory.ridge import random_regular
from isingkit.theory.scatter import (
    candidate_interference,
    edge_scatter,
    means_of_survivors,
    neighbour_correlations,
    neighbour_scatter,
    neighbour_variance,
    pair_gain,
)
from isingkit.theory.spectrum import (
    ModelSpectrum,
    RegularSpectrum,
    Traces,
    bethe_matrix,
    effective_ridge,
    margins,
    weights_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Recovery:
    """What thresholded estimates of a whole network get right, as a function of the threshold.
    [eq:Precision-Recall]

    `prune` is None for one stage: then the threshold is on the ridge estimates themselves (or,
    where ridge is infinite, on sample correlations).
    """

    n_spins: int
    n_samples: int
    ridge: float
    prune: float | None
    pairs: Pairs
    directions: int  # 2 where pairs are unordered

    def precision(self, threshold: ArrayLike) -> Any:
        """Expected edges found over expected couplings claimed; not a number where none is
        expected.
        """
        found, false = self._counts(threshold)
        return np.divide(
            found, found + false, out=np.full_like(found, np.nan), where=found + false > 1e-6
        )[()]

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
        """Expected number of spins, for each spin, that pass stage one; of a two-stage
        estimator.
        """
        if self.prune is None:
            raise SettingError(
                setting="prune", value=None, expected="a number: one stage has no candidates"
            )
        return (
            float(self.pairs.passing(np.array([self.prune]), None)[0] @ self.pairs.count)
            / self.n_spins
            * self.directions
        )

    def interval(self, probability: float = 0.5) -> tuple[float, float] | None:
        """Thresholds between which the network is found exactly with at least this probability;
        None where there are none.
        """
        best = self.best_threshold()
        if self.probability(best) < probability:
            return None
        ends = []
        for bad in (0.0, self._largest_mean()):  # where half of the strongest edges are missed
            good = best
            for _ in range(24):
                middle = (good + bad) / 2
                good, bad = (
                    (middle, bad) if self.probability(middle) >= probability else (good, middle)
                )
            ends.append(good)
        return ends[0], ends[1]

    def _largest_mean(self) -> float:
        return float(np.max(self.pairs.mean if self.prune is None else self.pairs.second_mean))

    def _errors(self, threshold: ArrayLike) -> FloatArray:
        """Expected number of edges missed or invented: tells thresholds apart even where an exact
        network is beyond hope.
        """
        passing = self._passing(threshold)
        return np.asarray(np.where(self.pairs.is_edge, 1 - passing, passing) @ self.pairs.count)

    def _counts(self, threshold: ArrayLike) -> tuple[FloatArray, FloatArray]:
        expected = self._passing(threshold) * self.pairs.count
        shape = np.shape(threshold)
        edge = self.pairs.is_edge
        return expected[:, edge].sum(axis=1).reshape(shape), expected[:, ~edge].sum(axis=1).reshape(
            shape
        )

    def _passing(self, threshold: ArrayLike) -> FloatArray:
        return np.clip(
            self.pairs.passing(np.ravel(np.asarray(threshold, dtype=np.float64)), self.prune),
            0.0,
            1.0,
        )


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
    """Precision, recall and the chance of the exact network on random regular graphs, for one stage
    or two.

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
        "average": edges by the mean of both directed estimates, as estimators do; "directed": each
        estimate by itself, as the paper does.

    Examples
    --------
    >>> from isingkit import theory
    >>> two_stage = theory.recovery(800, 3, 0.4, n_samples=640, ridge=0.1, prune=0.1,
    rule="directed")
    >>> round(float(two_stage.precision(0.15)), 3), round(float(two_stage.recall(0.15)), 3)
    (1.0, 0.999)
    """
    require_sizes(n_spins, n_samples, ridge, prune)
    require_degree(n_spins, degree, coupling)
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
    std = np.sqrt(
        np.where(is_edge, neighbour_variance(spectrum, p.effective_ridge, alpha) / n_samples, bulk)
    )
    first = Pairs(counts, is_edge, means, std, flat, flat, flat)
    residual, strength = 1 / float(spectrum.centre), abs(coupling)
    seen = float(spectrum.traces(p.effective_ridge).t)
    edge_variance, agreement = edge_scatter(degree, strength)
    noise, agree = (
        np.where(is_edge, edge_variance, residual),
        np.where(is_edge, agreement, residual),
    )
    slope, shift, left = residual * seen / (n_samples * bulk), 0.0, float(n_samples)
    if prune is not None:
        passing, squares = first.candidates(prune)
        left = n_samples - float(passing @ counts)
        _check_candidates(prune, left, n_samples)
        # a candidate of the second generation and its parent are correlated, which costs both
        further = np.sinh(strength) ** 2
        noise[0] += residual * (degree - 1) * further * (passing[1] if len(passing) > 1 else 0.0)
        noise[1:2] += residual * further * (degree > 1)
        # neighbours' correlations: theta^2 off the diagonal, so that C^-1 times equal numbers
        # divides by 1 + (c - 1) theta^2
        slope_alone = slope
        solved = np.full(degree, means[0] / (1 + (degree - 1) * np.tanh(strength) ** 2))
        kept = float(spectrum.traces(p.effective_ridge).p)
        slope, taken = candidate_interference(
            p.effective_ridge,
            seen,
            kept,
            n_samples * bulk,
            slope,
            left / n_samples,
            squares,
            np.full(degree, means[0]),
            solved,
        )
        shift = float(taken[0])
        if len(counts) > 1:  # children that pass do so by an excess in their parent's direction
            shift += (
                (degree - 1) * float(spectrum.weight) * slope_alone * float(first.excess(prune)[1])
            )
    if rule == "average":
        noise, counts = noise * (1 + agree) / 2, counts / 2
    # of the noise in stage two, stage one knows slope^2 std^2; what is left of it grows with the
    # number of candidates
    known = (residual * seen / (n_samples * bulk)) ** 2 * std**2
    second = np.maximum(noise / n_samples - known, 1e-3 * noise / n_samples) * n_samples / left
    survive = 1.0 if prune is None else float(passing[0])
    mean, variance = (
        float(numbers[0])
        for numbers in means_of_survivors(np.full(degree, strength), np.full(degree, survive))
    )
    second = second + np.where(is_edge, variance / (2 if rule == "average" else 1), 0.0)
    second_mean = np.where(is_edge, mean - shift, 0.0)
    pairs = Pairs(
        counts * n_spins,
        is_edge,
        means,
        std,
        second_mean,
        np.full(len(counts), slope),
        np.sqrt(second),
    )
    return Recovery(n_spins, n_samples, ridge, prune, pairs, 2 if rule == "average" else 1)


def recovery_of_model(
    model: IsingModel, n_samples: int, *, ridge: float = 0.0, prune: float | None = None
) -> Recovery:
    """Precision and recall of all directed estimates on any tree-like model of a few thousand
    spins, for one stage or two.

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
    require_sizes(model.n_spins, n_samples, ridge, prune)
    if model.n_edges == 0:
        raise SettingError(
            setting="model",
            value="one without edges",
            expected="a model with edges: there would be nothing to find",
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
    noise, local = (
        squares @ (eigenvalues * inverse**2),
        squares @ inverse,
    )  # [H (..)^-2]_jj and [(..)^-1]_jj
    diagonal = np.diagonal(kept)
    unexplained = noise / diagonal**2
    traces = Traces(inverse.mean(), (inverse**2).mean(), diagonal.mean(), noise.mean())
    margin = float(margins(alpha, k, traces)[1]) if np.isfinite(k) else alpha
    means = (
        -kept / diagonal[:, None] if np.isfinite(k) else (vectors * inverse) @ vectors.T
    )  # at infinity: correlations
    truth = model.couplings.toarray()
    variance = unexplained[:, None] * noise / ((n - 1) * margin)
    if np.isfinite(k):
        twice = (vectors * (eigenvalues * inverse) ** 2) @ vectors.T  # P^2
        own = (
            noise - 2 * k * means * twice - means**2 * (diagonal + k * np.diagonal(twice))[:, None]
        )
        variance = np.where(truth != 0, unexplained[:, None] * own / ((n - 1) * margin), variance)
    else:
        variance = np.where(truth != 0, (1 - means**2) / n_samples, variance)
    std = np.sqrt(variance)
    residual, further = 1 / matrix.diagonal(), np.sinh(truth) ** 2
    full_noise, full_local = (
        (vectors * (eigenvalues * inverse**2)) @ vectors.T,
        (vectors * inverse) @ vectors.T,
    )
    own_gain, other_gain = pair_gain(truth, full_noise, full_local)
    rows = []
    for i in range(n):
        near, others = truth[i] != 0, np.arange(n) != i
        flip = np.where(means[i] < 0, -1.0, 1.0)  # only the relative sign of both stages matters
        second_mean, second, left = np.zeros(n), np.full(n, residual[i]), float(n_samples)
        back = residual[i] * local / (n_samples * variance[i])
        if near.any():
            second_mean[near], lost = means_of_survivors(truth[i, near], np.ones(near.sum()))
            second[near] = np.diagonal(neighbour_scatter(truth[i, near]))
        if prune is not None:
            here = Pairs(others.astype(float), near, np.abs(means[i]), std[i], *(np.zeros(n),) * 3)
            passing, chance_squares = here.candidates(prune)
            passing[i] = 0.0
            left = n_samples - float(passing.sum())
            _check_candidates(prune, left, n_samples)
            if near.any():
                second_mean[near], lost = means_of_survivors(truth[i, near], passing[near])
            second += residual[i] * (
                further @ np.where(near, 0.0, passing) * near + further @ passing * ~near
            )
            chosen = np.where(near, 0.0, passing)
            spread = chance_squares / max(
                float(chosen @ variance[i]), 1e-300
            )  # mean z^2 of those that pass
            back = back * (
                1 + np.where(near, 0.0, own_gain @ chosen + spread * (other_gain @ chosen))
            )
            known = back**2 * variance[i]
            typical = (
                k,
                float(local.mean()),
                float(diagonal.mean()),
                n_samples * float(variance[i].mean()),
            )
            solved = (
                np.linalg.solve(neighbour_correlations(truth[i, near]), means[i, near])
                if near.any()
                else np.zeros(0)
            )
            # children that pass do so by an excess in their parent's direction, of which stage two
            # gives part to them, not to it
            excess = flip * here.excess(prune) * np.where(near, 0.0, back)
            second_mean[near] -= (np.sinh(2 * truth[near]) / 2) @ excess
            back, taken = candidate_interference(
                *typical, back, left / n_samples, chance_squares, means[i, near], solved
            )
            second_mean[near] -= taken
        else:
            known = back**2 * variance[i]
        second = (
            np.maximum(second / n_samples - known, 1e-3 * second / n_samples) * n_samples / left
        )
        if near.any():
            second[near] += lost
        rows.append(
            np.column_stack(
                [near, means[i] * flip, std[i], second_mean * flip, back, np.sqrt(second)]
            )[others]
        )
    return Recovery(n, n_samples, ridge, prune, grouped(np.concatenate(rows)), 1)


def require_sizes(
    n_spins: int, n_samples: int, ridge: float = 1.0, prune: float | None = None
) -> None:
    """Refuse sizes and knobs that no estimator can do with."""
    require_number("n_spins", n_spins, at_least=3, whole=True)
    require_number("n_samples", n_samples, at_least=1, whole=True)
    require_number("ridge", ridge, at_least=0, finite=False)
    if prune is not None:
        require_number("prune", prune, at_least=0)
    if ridge == 0 and n_samples < n_spins:
        raise UnderdeterminedError(n_samples=n_samples, n_spins=n_spins)


def require_degree(n_spins: int, degree: int, coupling: float) -> None:
    """Refuse what is no random regular graph of so many spins, and one without couplings."""
    require_number("degree", degree, at_least=1, whole=True)
    require_number("coupling", coupling)
    if degree >= n_spins:
        raise SettingError(setting="degree", value=degree, expected=f"below n_spins={n_spins}")
    if coupling == 0:
        raise SettingError(
            setting="coupling", value=coupling, expected="not 0: there would be nothing to find"
        )


def _check_candidates(prune: float, left: float, n_samples: int) -> None:
    if left < 0.1 * n_samples:
        came = f"{prune:g}, which leaves about {n_samples - left:.0f} candidates for {n_samples} samples"
        raise SettingError(
            setting="prune", value=came, expected="large enough for fewer candidates than samples"
        )


def _sizes(n_spins: int, degree: int) -> FloatArray:
    """Spins in each generation around one, while there are any left; the last takes what
    remains.
    """
    sizes: list[float] = []
    left = n_spins - 1
    while left > 0 and len(sizes) < 64:
        size = min(left, degree * (degree - 1) ** len(sizes))
        if size == 0:
            break
        sizes.append(size)
        left -= size
    return np.array([*sizes, left] if left > 0 else sizes, dtype=np.float64)
