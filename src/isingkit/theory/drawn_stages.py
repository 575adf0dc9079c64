r"""Both stages of any model's estimates, drawn: stage one at random, stage two given stage one.

Of a spin with the estimates X, samples S of the others, their correlations b with it and the
leave-one-out residuals e, stage one says S X = s_i - (1 - t / \alpha) e and S' e = M k X. Given X,
S is then Gaussian but for these directions, and least squares of s_i on the candidates A has the
mean C_AA^{-1} (w_1 b + w_2 C X + w_3 X)_A, with three weights of each spin and draw. Nothing is
assumed of how few candidates there are, nor of how they lie to each other.

Edges scatter otherwise than Gaussian numbers: see `joint_scatter.py`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isingkit.arrays import FloatArray, IntArray
from isingkit.theory.joint_scatter import JointScatter, joint_scatter

MOST_RIDGE = 1e8  # effective ridge: beyond it stage one is the limit, to eight digits
FEWEST_LEFT = 0.02  # samples beyond a spin's candidates, over samples
LEAST_VARIANCE = 0.1  # of what it is before corrections


@dataclass(frozen=True, slots=True, eq=False)
class StageOneLaw:
    """What all directed estimates of stage one are drawn from."""

    truth: FloatArray  # (n_spins, n_spins): couplings
    inverse: FloatArray  # H
    correlations: FloatArray  # C
    kept: FloatArray  # P = H (1 + k H)^-1
    noise: FloatArray  # N = H (1 + k H)^-2
    root: FloatArray  # its square root
    means: FloatArray  # [i, j]: of the estimate of spin j by spin i
    power: FloatArray  # (n_spins,): mean square of the estimates' sum
    error: FloatArray  # (n_spins,): mean square of e
    local: float  # trace of (1 + k H)^-1, over the number of spins: t
    local_squared: float  # t2
    k: float
    alpha: float
    n_samples: int

    @staticmethod
    def of(
        truth: FloatArray, inverse: FloatArray, k: float, alpha: float, n_samples: int
    ) -> "StageOneLaw":
        k = min(k, MOST_RIDGE)
        eigenvalues, vectors = np.linalg.eigh(inverse)
        shrunk = 1 / (1 + k * eigenvalues)

        def matrix(values: FloatArray) -> FloatArray:
            return np.asarray((vectors * values) @ vectors.T)

        kept = matrix(eigenvalues * shrunk)
        means = -kept / np.diagonal(kept)[:, None]
        np.fill_diagonal(means, 0.0)
        correlations = matrix(1 / eigenvalues)
        t2 = float(np.mean(shrunk**2))
        overlap = np.sum(correlations * means, axis=1)
        power = np.sum((means @ correlations) * means, axis=1)
        return StageOneLaw(
            truth=truth,
            inverse=inverse,
            correlations=correlations,
            kept=kept,
            noise=matrix(eigenvalues * shrunk**2),
            root=matrix(np.sqrt(eigenvalues) * shrunk),
            means=means,
            power=power,
            error=(1 - 2 * overlap + power) / (1 - t2 / alpha),
            local=float(np.mean(shrunk)),
            local_squared=t2,
            k=k,
            alpha=alpha,
            n_samples=n_samples,
        )

    def noise_among(self, i: int, near: IntArray) -> FloatArray:
        """(n_spins, n): covariances of spin i's estimates with those of `near`, but for E / M."""
        own = self.means[i]
        crossed = np.outer(own, self.noise[i, near]) + np.outer(self.noise[i], own[near])
        both = np.outer(own, own[near]) * self.noise[i, i]
        return np.asarray(self.noise[:, near] + crossed + both)


class Candidates(NamedTuple):
    """Candidates of one spin: what stage two finds for them, in the gauge of their signs."""

    spins: IntArray
    centre: FloatArray
    variance: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """The directions b, C X and X in the samples that stage one has fixed, for one spin.

    Coordinates are s_i and q = S X - s_i b X, in units of 1 / (1 + k), whatever k.
    """

    products: FloatArray  # (2, 2): mean products of s_i and q over samples
    residual: FloatArray  # (2,): e in these coordinates
    rows: FloatArray  # (3, 2): coordinates of b, C X and X
    step: FloatArray  # (3,): D X / X D X, D = C - b b'
    spread: float  # X D X
    scale: float

    @staticmethod
    def of(law: StageOneLaw, i: int) -> "_Weights":
        k, E = law.k, float(law.error[i])
        scale = 1 + k
        means = law.means[i]
        b = law.correlations[i]
        share = law.local / law.alpha
        left = 1 - share
        overlap = float(b @ means)
        power = float(law.power[i])
        excess = E * law.local_squared / law.alpha
        o = 1 - overlap
        spread = power - overlap**2 + excess
        gained = 2 * overlap - power - excess
        square = spread + share**2 - 2 * overlap * share * (1 + o)
        square += 2 * left * gained * share + gained * share**2
        crossed = scale * share * o
        products = np.array([[1.0, crossed], [crossed, scale**2 * square]])
        spread *= scale**2
        step = np.array([-scale * overlap, 1.0, 0.0]) / spread
        with_q = (o * crossed - scale * square) / left
        direction = np.array([-o, 0.0, k / scale]) - with_q * step
        direction /= E
        along = np.array([1.0, 0.0, 0.0]) + o / left * direction
        across = step - direction / (scale * left)
        residual = np.array([o, -1 / scale])
        rows = np.column_stack([along, across])
        return _Weights(products, residual, rows, step, spread, scale)

    def solved(self, law: StageOneLaw, i: int, chosen: IntArray, X: FloatArray) -> "_Solved":
        """Least squares on the candidates, given the estimates X of all spins."""
        n_samples = law.n_samples
        free = max((n_samples - len(chosen) - 2) / n_samples, FEWEST_LEFT)
        of_residual = self.products @ self.residual
        norm = float(self.residual @ of_residual)
        # candidates fit the samples but for e, which is orthogonal to what is left of them
        fixed = self.products + (1 / free - 1) * np.outer(of_residual, of_residual) / norm
        powers = self.rows @ fixed @ self.rows.T
        change = powers - self.spread * np.outer(self.step, self.step)
        change[0, 0] -= 1.0
        rows = law.correlations[chosen]
        fields = [rows[:, i], self.scale * (rows @ X), self.scale * X[chosen]]
        directions = np.column_stack(fields)
        among = rows[:, chosen]
        inverse = np.linalg.inv(among + directions @ change @ directions.T)
        pull = self.rows @ fixed[:, 0]
        centre = inverse @ (directions @ pull)
        fitted = directions.T @ centre
        missing = np.array([1.0, 0.0]) - self.rows.T @ fitted
        along_residual = float(missing @ of_residual) ** 2 / norm
        unfitted = float(missing @ self.products @ missing) - along_residual
        spread = fitted @ (pull - powers @ fitted)
        noise = unfitted + float(spread)
        solved = inverse @ directions
        known = np.sum((solved @ powers) * solved, axis=1)
        variance = noise * (np.diagonal(inverse) - known) / (n_samples * free)
        return _Solved(centre, variance, pull - change @ fitted, free)


class _Solved(NamedTuple):
    centre: FloatArray
    variance: FloatArray
    weights: FloatArray  # (3,): of b, C X and X
    free: float  # samples left, over samples


class SpinStages:
    """Both stages of the estimates of one spin."""

    def __init__(self, law: StageOneLaw, i: int) -> None:
        self.law = law
        self.i = i
        self.near = np.flatnonzero(law.truth[i])
        self.weights = _Weights.of(law, i)
        self.unit = float(law.error[i]) / law.n_samples
        if len(self.near):
            self.among = law.noise_among(i, self.near)
            self.excess = self._excess()
            self.gaussian = self.unit * np.diagonal(self.among[self.near])
            first = self.gaussian + self.excess.first / law.n_samples
            self.first = np.maximum(first, LEAST_VARIANCE * self.gaussian)

    def candidates(self, noise: FloatArray, prune: float) -> Candidates:
        """Those of a draw of stage one, and what stage two finds.

        noise: (n_spins,) one draw of covariance N
        """
        law, i, near = self.law, self.i, self.near
        means = law.means[i]
        drawn = np.sqrt(self.unit) * (noise + means * noise[i])
        drawn[i] = 0.0
        noise_alone = drawn.copy()
        if len(near):
            drawn[near] *= np.sqrt(self.first / self.gaussian)
        X = means + drawn
        passed = np.abs(X) > prune
        passed[i] = False
        chosen = np.flatnonzero(passed)
        solved = self.weights.solved(law, i, chosen, X)
        centre = solved.centre
        variance = np.maximum(solved.variance, LEAST_VARIANCE / law.n_samples)
        is_edge = law.truth[i, chosen] != 0
        signs = np.where(is_edge, np.sign(law.truth[i, chosen]), np.sign(X[chosen]))
        if is_edge.any():
            edges = chosen[is_edge]
            still = self._without(noise_alone, edges)
            quiet = self.weights.solved(law, i, chosen, means + still).centre
            slope, left = self._of_edges(chosen, is_edge, solved, X)
            centre[is_edge] = quiet[is_edge] + slope * drawn[edges]
            variance[is_edge] = left
        return Candidates(chosen, centre * signs, variance)

    def _without(self, noise: FloatArray, edges: IntArray) -> FloatArray:
        """What is left of the noise of stage one where that of the edges is known."""
        places = np.searchsorted(self.near, edges)
        among = self.among[:, places]
        left = noise - among @ np.linalg.solve(among[edges], noise[edges])
        left[self.i] = 0.0
        return np.asarray(left)

    def _of_edges(
        self, chosen: IntArray, is_edge: FloatArray, solved: _Solved, X: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Slope of stage two on stage one, and the variance of what is left; M is many."""
        law, i = self.law, self.i
        edges = chosen[is_edge]
        places = np.searchsorted(self.near, edges)
        inverse = np.linalg.inv(law.correlations[np.ix_(chosen, chosen)])[is_edge]
        residual = 1 / law.inverse[i, i]
        influence = -law.k * self._resolvent(edges, chosen)
        influence[np.arange(len(edges)), np.flatnonzero(is_edge)] += 1.0
        crossed = residual * np.sum(inverse * influence, axis=1) + self.excess.crossed[places]
        own = inverse[np.arange(len(edges)), np.flatnonzero(is_edge)]
        second = residual * own + self.excess.second[places]
        alone = self.weights.solved(law, i, edges, X).weights
        typical = law.local / float(np.mean(np.diagonal(law.noise))) - law.k
        changed = solved.weights[1] * typical + solved.weights[2]
        before = alone[1] * typical + alone[2]
        slope = changed / before * crossed / law.n_samples / self.first[places]
        total = second / law.n_samples / solved.free
        left = np.maximum(total - slope**2 * self.first[places], LEAST_VARIANCE * total)
        return slope, left

    def _resolvent(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Entries of (C + k)^-1, C being without the spin."""
        kept = self.law.kept
        paths = np.outer(kept[rows, self.i], kept[self.i, columns])
        return np.asarray(kept[np.ix_(rows, columns)] - paths / kept[self.i, self.i])

    def _excess(self) -> JointScatter:
        law, i, near = self.law, self.i, self.near
        means = law.means[i]
        with_spin = 1 - law.correlations[i] @ means
        with_residual = np.concatenate([[with_spin], law.k * means[near]])
        influence = -law.k * self._resolvent(near, near)
        influence[np.diag_indices(len(near))] += 1.0
        influence = np.column_stack([means[near], influence])
        everywhere = np.arange(len(means))
        along = law.k * self._resolvent(near, everywhere) @ means
        theta = np.tanh(law.truth[i, near])
        return joint_scatter(theta, with_residual, influence, along)
