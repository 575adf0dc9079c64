r"""From error to recovery: how much of a network of N spins is found from M samples.

Estimates scatter like Gaussian numbers around their means. With k the effective ridge,
P = H (1 + k H)^{-1} and v_i = [H (1 + k H)^{-2}]_ii / P_ii^2, spin i's estimate X for spin j in
stage one has

    mean -P_ij / P_ii      variance v_i [H (1 + k H)^{-2}]_jj / (N (\alpha - t2))

(for a neighbour j the matrix is the one without spin i). In stage two, spins that are no neighbours
scatter around 0 with variance u_i / M, u_i = 1 / H_ii, but one that has passed stage one by chance
has a head start: the covariance of both stages is u_i g_j / M with g = diagonal of (1 + k H)^{-1}.
False candidates also resemble each other and the neighbours, because all of them resemble the spin.
Where there are many, they change each other's estimates and explain part of what the neighbours
would. Neighbours scatter around Theorem 1's means as least squares with non-Gaussian residuals
does.

All of this is for candidates that are few beside the samples: up to a tenth of them. Two stages of
given models are drawn instead, and need no such thing: see `drawn_stages.py`. The regression has
N - 1 unknowns, so that \alpha = M / (N - 1), and N \lambda / (N - 1) takes the place of \lambda.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isingkit.arrays import FloatArray
from isingkit.exceptions import SettingError, UnderdeterminedError, require_number
from isingkit.theory.drawn_pairs import DrawnPairs
from isingkit.theory.pairs import Pairs
from isingkit.theory.regular import RegularSpectrum

GRID = 17  # thresholds that each round of a search looks at
LEAST_LEFT = 0.1  # samples beyond the number of candidates, over samples


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
    pairs: Pairs | DrawnPairs
    directions: int  # 2 where pairs are unordered

    def precision(self, threshold: ArrayLike) -> Any:
        """Expected edges found over expected edges claimed; not a number where none is expected."""
        found, false = self._counts(threshold)
        claimed = found + false
        precision = np.full_like(found, np.nan)
        np.divide(found, claimed, out=precision, where=claimed > 1e-6)
        return precision[()]

    def recall(self, threshold: ArrayLike) -> Any:
        """Expected edges found over edges."""
        found, _ = self._counts(threshold)
        n_edges = self.pairs.count[self.pairs.is_edge].sum()
        return (found / n_edges)[()]

    def probability(self, threshold: ArrayLike) -> Any:
        """Probability that the network is found exactly: no edge missed, none invented."""
        wrong = np.clip(self._wrong(threshold), 0.0, 1 - 1e-15)
        log_probability = np.log1p(-wrong) @ self.pairs.count
        return np.exp(log_probability).reshape(np.shape(threshold))[()]

    def best_threshold(self) -> float:
        """The threshold at which the exact network is likeliest."""
        low = 0.0
        high = self._largest_mean()
        for _ in range(4):
            grid = np.linspace(low, high, GRID)
            best = int(np.argmin(self.expected_errors(grid)))
            low = grid[max(0, best - 1)]
            high = grid[min(GRID - 1, best + 1)]
        return float(grid[best])

    def n_candidates(self) -> float:
        """Expected number of candidates of a spin: those that pass stage one of two."""
        if self.prune is None:
            expected = "a number: one stage has no candidates"
            raise SettingError(setting="prune", value=None, expected=expected)
        passing = self.pairs.passing(np.array([self.prune]), None)[0]
        n_pairs = float(passing @ self.pairs.count)
        return n_pairs / self.n_spins * self.directions

    def interval(self, probability: float = 0.5) -> tuple[float, float] | None:
        """Thresholds between which the network is found exactly with at least this probability.

        None where there are none.
        """
        best = self.best_threshold()
        if self.probability(best) < probability:
            return None
        low = self._last_good(best, 0.0, probability)
        # at the largest mean, half of the strongest edges are missed
        high = self._last_good(best, self._largest_mean(), probability)
        return low, high

    def expected_errors(self, threshold: ArrayLike) -> FloatArray:
        """Expected number of edges missed or invented.

        It orders thresholds even where an exact network is beyond hope.
        """
        return np.asarray(self._wrong(threshold) @ self.pairs.count)

    def _last_good(self, good: float, bad: float, probability: float) -> float:
        """By bisection, the threshold furthest towards `bad` at which recovery is likely enough."""
        for _ in range(24):
            middle = (good + bad) / 2
            if self.probability(middle) >= probability:
                good = middle
            else:
                bad = middle
        return good

    def _largest_mean(self) -> float:
        means = self.pairs.mean if self.prune is None else self.pairs.second_mean
        return float(np.max(means))

    def _counts(self, threshold: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Expected edges found and invented."""
        shape = np.shape(threshold)
        expected = self._passing(threshold) * self.pairs.count
        found = expected[:, self.pairs.is_edge].sum(axis=1)
        false = expected[:, ~self.pairs.is_edge].sum(axis=1)
        return found.reshape(shape), false.reshape(shape)

    def _wrong(self, threshold: ArrayLike) -> FloatArray:
        """(n_thresholds, n): probability that a pair is decided wrongly."""
        passing = self._passing(threshold)
        return np.where(self.pairs.is_edge, 1 - passing, passing)

    def _passing(self, threshold: ArrayLike) -> FloatArray:
        levels = np.ravel(np.asarray(threshold, dtype=np.float64))
        return np.clip(self.pairs.passing(levels, self.prune), 0.0, 1.0)


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
        expected = "not 0: there would be nothing to find"
        raise SettingError(setting="coupling", value=coupling, expected=expected)


def require_question(n_spins: int, degree: int, coupling: float, probability: float) -> None:
    """Refuse what nobody can answer how many samples it takes."""
    require_number("probability", probability, above=0)
    if probability > 1 - 1e-9:
        expected = "below 1: nothing is certain"
        raise SettingError(setting="probability", value=probability, expected=expected)
    require_number("n_spins", n_spins, at_least=3, whole=True)
    require_degree(n_spins, degree, coupling)
    RegularSpectrum(degree, coupling)


def samples_left(prune: float, n_candidates: float, n_samples: int) -> float:
    """Samples beyond the number of candidates, which must be many."""
    left = n_samples - n_candidates
    if left < LEAST_LEFT * n_samples:
        candidates = f"about {n_samples - left:.0f} candidates for {n_samples} samples"
        raise SettingError(
            setting="prune",
            value=f"{prune:g}, which leaves {candidates}",
            expected="large enough for fewer candidates than samples",
        )
    return left


def remaining_variance(
    noise: FloatArray, known: FloatArray, n_samples: int, left: float
) -> FloatArray:
    """Variance of stage two where stage one is known.

    Of the noise, stage one knows a part; what is left of it grows with the number of candidates.

    noise: M times the variance of stage two     known: the part of the variance that is known
    """
    variance = noise / n_samples
    unknown = np.maximum(variance - known, 1e-3 * variance)
    return np.asarray(unknown * n_samples / left)
