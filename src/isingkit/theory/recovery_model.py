"""Recovery of any tree-like model, spin by spin."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from isingkit.arrays import BoolArray, FloatArray
from isingkit.exceptions import SettingError, require_instance
from isingkit.model import IsingModel
from isingkit.theory.bethe import ModelSpectrum, bethe_matrix
from isingkit.theory.pairs import Pairs, grouped
from isingkit.theory.phase import require_paramagnetic
from isingkit.theory.recovery import Recovery, remaining_variance, require_sizes, samples_left
from isingkit.theory.scatter import (
    StageOne,
    candidate_interference,
    means_of_survivors,
    neighbour_correlations,
    neighbour_scatter,
    pair_gain,
)
from isingkit.theory.spectrum import effective_ridge, margins, scalar_weights


def recovery_of_model(
    model: IsingModel, n_samples: int, *, ridge: float = 0.0, prune: float | None = None
) -> Recovery:
    """Precision and recall of all directed estimates on any tree-like model, for one stage or two.

    For a few thousand spins.

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
        expected = "a model with edges: there would be nothing to find"
        raise SettingError(setting="model", value="one without edges", expected=expected)
    resolvent = _Resolvent.of(model, n_samples, ridge)
    first = _stage_one(resolvent, model.couplings.toarray(), n_samples)
    spins = range(model.n_spins)
    if prune is None:
        seconds = [_one_stage(first, i) for i in spins]
    else:
        both = _candidate_pairs(resolvent, first.truth)
        seconds = [_two_stages(first, both, i, prune) for i in spins]
    tables = [_table(first, second, i) for i, second in enumerate(seconds)]
    pairs = grouped(np.concatenate(tables))
    return Recovery(model.n_spins, n_samples, ridge, prune, pairs, directions=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Resolvent:
    """(1 + k H)^-1 by eigenvalues and eigenvectors of H."""

    effective_ridge: float  # k
    margin: float  # alpha - t2
    eigenvalues: FloatArray  # (n_spins,): of H
    vectors: FloatArray  # (n_spins, n_spins)
    inverse: FloatArray  # (n_spins,): eigenvalues of (1 + k H)^-1
    residual: FloatArray  # (n_spins,): u_i = 1 / H_ii

    @staticmethod
    def of(model: IsingModel, n_samples: int, ridge: float) -> "_Resolvent":
        n_regressors = model.n_spins - 1
        alpha = n_samples / n_regressors
        penalty = ridge * model.n_spins / n_regressors
        matrix = bethe_matrix(model)
        require_paramagnetic(model)
        eigenvalues, vectors = np.linalg.eigh(matrix.toarray())
        spectrum = ModelSpectrum(eigenvalues)
        k = float(effective_ridge(spectrum, alpha, penalty))
        one, scale = scalar_weights(k)
        inverse = 1 / (one + scale * eigenvalues)
        margin = float(margins(alpha, k, spectrum.traces(k))[1]) if np.isfinite(k) else alpha
        return _Resolvent(k, margin, eigenvalues, vectors, inverse, 1 / matrix.diagonal())

    @property
    def noise(self) -> FloatArray:
        """Eigenvalues of H (1 + k H)^-2."""
        return self.eigenvalues * self.inverse**2

    @property
    def kept(self) -> FloatArray:
        """Eigenvalues of P = H (1 + k H)^-1."""
        return self.eigenvalues * self.inverse

    def matrix(self, eigenvalues: FloatArray) -> FloatArray:
        """The matrix that has these eigenvalues, and H's eigenvectors."""
        return np.asarray((self.vectors * eigenvalues) @ self.vectors.T)

    def diagonal(self, eigenvalues: FloatArray) -> FloatArray:
        return np.asarray(self.vectors**2 @ eigenvalues)


@dataclass(frozen=True, slots=True, eq=False)
class _First:
    """Stage one: means and variances of all directed estimates [i, j], and what stage two needs."""

    truth: FloatArray  # (n_spins, n_spins): couplings
    means: FloatArray  # (n_spins, n_spins)
    variance: FloatArray  # (n_spins, n_spins)
    local: FloatArray  # (n_spins,): g, the diagonal of (1 + k H)^-1
    residual: FloatArray  # (n_spins,): u_i = 1 / H_ii
    kept: float  # mean diagonal of P
    effective_ridge: float
    n_samples: int

    def neighbours(self, i: int) -> BoolArray:
        return self.truth[i] != 0

    def slope(self, i: int) -> FloatArray:
        """Of stage two on stage one, for a candidate by itself."""
        return np.asarray(self.residual[i] * self.local / (self.n_samples * self.variance[i]))

    def typical(self, i: int) -> StageOne:
        local = float(self.local.mean())
        scatter = self.n_samples * float(self.variance[i].mean())
        return StageOne(self.effective_ridge, local=local, kept=self.kept, scatter=scatter)

    def pairs(self, i: int) -> Pairs:
        """Spin i with each other spin, itself counted not at all."""
        n = len(self.truth)
        count = (np.arange(n) != i).astype(float)
        std = np.sqrt(self.variance[i])
        nothing = np.zeros(n)
        mean = np.abs(self.means[i])
        return Pairs(count, self.neighbours(i), mean, std, nothing, nothing, nothing)


@dataclass(frozen=True, slots=True, eq=False)
class _Second:
    """Stage two of one spin with all others, given stage one."""

    mean: FloatArray  # (n_spins,)
    slope: FloatArray  # (n_spins,)
    variance: FloatArray  # (n_spins,): where stage one is known


@dataclass(frozen=True, slots=True, eq=False)
class _CandidatePairs:
    """What two neighbours that are both candidates of a spin do to each other; sparse."""

    gain_by_own: csr_array  # (n_spins, n_spins): as `pair_gain` has it
    gain_by_neighbour: csr_array  # (n_spins, n_spins)
    cost: csr_array  # (n_spins, n_spins): sinh^2 J, noise for being correlated


def _stage_one(resolvent: _Resolvent, truth: FloatArray, n_samples: int) -> _First:
    k = resolvent.effective_ridge
    noise = resolvent.diagonal(resolvent.noise)
    kept = resolvent.matrix(resolvent.kept)
    diagonal = np.diagonal(kept)
    unexplained = noise / diagonal**2  # v
    scale = (len(truth) - 1) * resolvent.margin
    if np.isfinite(k):
        means = -kept / diagonal[:, None]
        own_noise = _noise_without_spin(resolvent, means, noise, diagonal)
        edge_variance = unexplained[:, None] * own_noise / scale
    else:  # estimates are correlations
        means = resolvent.matrix(resolvent.inverse)
        edge_variance = (1 - means**2) / n_samples
    variance = unexplained[:, None] * noise / scale
    return _First(
        truth=truth,
        means=means,
        variance=np.where(truth != 0, edge_variance, variance),
        local=resolvent.diagonal(resolvent.inverse),
        residual=resolvent.residual,
        kept=float(diagonal.mean()),
        effective_ridge=k,
        n_samples=n_samples,
    )


def _noise_without_spin(
    resolvent: _Resolvent, means: FloatArray, noise: FloatArray, diagonal: FloatArray
) -> FloatArray:
    """[i, j]: [H (1 + k H)^-2]_jj of the model without spin i."""
    k = resolvent.effective_ridge
    squared = resolvent.matrix(resolvent.kept**2)  # P^2
    own = diagonal + k * np.diagonal(squared)
    without_paths = noise - 2 * k * means * squared
    return np.asarray(without_paths - means**2 * own[:, None])


def _candidate_pairs(resolvent: _Resolvent, truth: FloatArray) -> _CandidatePairs:
    noise = resolvent.matrix(resolvent.noise)
    local = resolvent.matrix(resolvent.inverse)
    by_own, by_neighbour = pair_gain(truth, noise, local)
    costs = np.sinh(truth) ** 2
    return _CandidatePairs(csr_array(by_own), csr_array(by_neighbour), csr_array(costs))


def _one_stage(first: _First, i: int) -> _Second:
    near = first.neighbours(i)
    slope = first.slope(i)
    mean, lost = _neighbour_means(first, i, np.ones(len(near)))
    known = slope**2 * first.variance[i]
    noise = _true_noise(first, i)
    variance = remaining_variance(noise, known, first.n_samples, first.n_samples)
    return _Second(mean, slope, variance + lost)


def _two_stages(first: _First, both: _CandidatePairs, i: int, prune: float) -> _Second:
    near = first.neighbours(i)
    pairs = first.pairs(i)
    passing, squares = pairs.candidates(prune)
    passing[i] = 0.0
    left = samples_left(prune, float(passing.sum()), first.n_samples)
    false = np.where(near, 0.0, passing)
    slope = first.slope(i) * (1 + _gain_of_pairs(first, both, i, false, squares))
    known = slope**2 * first.variance[i]
    mean, lost = _neighbour_means(first, i, passing)
    # children that pass do so by an excess in their parent's direction, of which stage two gives
    # part to them, not to it
    excess = _signs(first, i) * pairs.excess(prune) * np.where(near, 0.0, slope)
    weights = np.sinh(2 * first.truth[near]) / 2
    mean[near] -= weights @ excess
    neighbour_means = first.means[i, near]
    solved = np.linalg.solve(neighbour_correlations(first.truth[i, near]), neighbour_means)
    slope, loss = candidate_interference(
        first.typical(i), slope, left / first.n_samples, squares, neighbour_means, solved
    )
    mean[near] -= loss
    noise = _true_noise(first, i) + _correlation_noise(first, both, i, passing)
    variance = remaining_variance(noise, known, first.n_samples, left)
    return _Second(mean, slope, variance + lost)


def _gain_of_pairs(
    first: _First,
    both: _CandidatePairs,
    i: int,
    false: FloatArray,
    squares: float,
) -> FloatArray:
    """What candidates gain by neighbours of their own among the false candidates.

    false: probability that a spin is a false candidate     squares: sum of X^2 over those
    """
    expected = float(false @ first.variance[i])
    mean_square = squares / max(expected, 1e-300)  # of z
    gain = both.gain_by_own @ false + mean_square * (both.gain_by_neighbour @ false)
    return np.where(first.neighbours(i), 0.0, gain)


def _neighbour_means(first: _First, i: int, survival: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n_spins,) each: mean of stage two, and its variance for want of other neighbours."""
    near = first.neighbours(i)
    mean = np.zeros(len(near))
    lost = np.zeros(len(near))
    mean[near], lost[near] = means_of_survivors(first.truth[i, near], survival[near])
    return mean, lost


def _true_noise(first: _First, i: int) -> FloatArray:
    """M times the variance of stage two, were all candidates true."""
    near = first.neighbours(i)
    noise = np.full(len(near), first.residual[i])
    noise[near] = np.diagonal(neighbour_scatter(first.truth[i, near]))
    return noise


def _correlation_noise(
    first: _First, both: _CandidatePairs, i: int, passing: FloatArray
) -> FloatArray:
    """What it costs candidates to be correlated with neighbours of their own that pass as well."""
    near = first.neighbours(i)
    of_all = both.cost @ passing
    of_false = both.cost @ np.where(near, 0.0, passing)
    return np.asarray(first.residual[i] * np.where(near, of_false, of_all))


def _signs(first: _First, i: int) -> FloatArray:
    """Of the means in stage one: only the relative sign of both stages matters."""
    return np.where(first.means[i] < 0, -1.0, 1.0)


def _table(first: _First, second: _Second, i: int) -> FloatArray:
    """(n_spins - 1, 6): a row for each other spin, as `grouped` takes it."""
    signs = _signs(first, i)
    columns = [
        first.neighbours(i),
        first.means[i] * signs,
        np.sqrt(first.variance[i]),
        second.mean * signs,
        second.slope,
        np.sqrt(second.variance),
    ]
    return np.delete(np.column_stack(columns), i, axis=0)
