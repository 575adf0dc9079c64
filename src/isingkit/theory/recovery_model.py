"""Recovery of any model with few short loops, spin by spin."""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.exceptions import SettingError, require_instance
from isingkit.model import IsingModel
from isingkit.theory.bethe import ModelSpectrum
from isingkit.theory.drawn_pairs import DrawnPairs
from isingkit.theory.drawn_stages import SpinStages, StageOneLaw
from isingkit.theory.linear import linear_means
from isingkit.theory.pairs import grouped
from isingkit.theory.recovery import Recovery, remaining_variance, require_sizes, samples_left
from isingkit.theory.regions import inverse_correlations
from isingkit.theory.scatter import means_of_survivors, neighbour_scatter
from isingkit.theory.spectrum import effective_ridge, margins, scalar_weights

SPINS_DRAWN = 1200
SEED = 0  # of the draws: the same question has the same answer
STEP = 0.02  # of mean estimates of edges of one kind


def recovery_of_model(
    model: IsingModel, n_samples: int, *, ridge: float = 0.0, prune: float | None = None
) -> Recovery:
    """Precision and recall of all directed estimates on any model with few short loops.

    For a few thousand spins, and one stage or two. For two, stage one is drawn (from one seed), and
    stage two is what it is on average given that.

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
    0.97
    """
    require_instance("model", model, IsingModel, "an IsingModel")
    require_sizes(model.n_spins, n_samples, ridge, prune)
    if model.n_edges == 0:
        expected = "a model with edges: there would be nothing to find"
        raise SettingError(setting="model", value="one without edges", expected=expected)
    resolvent = _Resolvent.of(model, n_samples, ridge)
    truth = model.couplings.toarray()
    if prune is not None:
        drawn = _drawn_pairs(resolvent, truth, n_samples, prune)
        return Recovery(model.n_spins, n_samples, ridge, prune, drawn, directions=1)
    first = _stage_one(resolvent, truth, n_samples)
    seconds = [_one_stage(first, i) for i in range(model.n_spins)]
    tables = [_table(first, second, i) for i, second in enumerate(seconds)]
    pairs = grouped(np.concatenate(tables))
    return Recovery(model.n_spins, n_samples, ridge, prune, pairs, directions=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Resolvent:
    """(1 + k H)^-1 by eigenvalues and eigenvectors of H."""

    effective_ridge: float  # k
    alpha: float
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
        matrix = inverse_correlations(model)
        eigenvalues, vectors = np.linalg.eigh(matrix.toarray())
        spectrum = ModelSpectrum(eigenvalues)
        k = float(effective_ridge(spectrum, alpha, penalty))
        one, scale = scalar_weights(k)
        inverse = 1 / (one + scale * eigenvalues)
        margin = float(margins(alpha, k, spectrum.traces(k))[1]) if np.isfinite(k) else alpha
        residual = 1 / matrix.diagonal()
        return _Resolvent(k, alpha, margin, eigenvalues, vectors, inverse, residual)

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


@dataclass(frozen=True, slots=True, eq=False)
class _Second:
    """Stage two of one spin with all others, given stage one."""

    mean: FloatArray  # (n_spins,)
    slope: FloatArray  # (n_spins,)
    variance: FloatArray  # (n_spins,): where stage one is known


def _drawn_pairs(
    resolvent: _Resolvent, truth: FloatArray, n_samples: int, prune: float
) -> DrawnPairs:
    n_spins = len(truth)
    inverse = resolvent.matrix(resolvent.eigenvalues)
    k = resolvent.effective_ridge
    law = StageOneLaw.of(truth, inverse, k, resolvent.alpha, n_samples)
    level = prune * (k / law.k if np.isfinite(k) else 1 / law.k)  # at infinity of correlations
    stages = [SpinStages(law, i) for i in range(n_spins)]
    kinds, typical = _kinds(truth)
    rng = np.random.default_rng(SEED)
    n_draws = -(-SPINS_DRAWN // n_spins)
    found = []
    for _ in range(n_draws):
        noise = rng.standard_normal(truth.shape) @ law.root
        for i, one in enumerate(stages):
            candidates = one.candidates(noise[i], level)
            columns = (kinds[i, candidates.spins], candidates.centre, candidates.variance)
            found.append(np.column_stack(columns))
    table = np.concatenate(found)
    samples_left(prune, len(table) / n_draws / n_spins, n_samples)
    count = np.bincount(kinds[~np.eye(n_spins, dtype=bool)], minlength=len(typical))
    return DrawnPairs(
        count=count.astype(float),
        is_edge=typical > 0,
        mean=typical,
        second_mean=typical,
        n_drawn=np.maximum(count * float(n_draws), 1.0),
        kind=table[:, 0].astype(np.int64),
        centre=table[:, 1],
        std=np.sqrt(table[:, 2]),
    )


def _kinds(truth: FloatArray) -> tuple[IntArray, FloatArray]:
    """(n_spins, n_spins) kinds of pairs, and their mean estimate in stage two, 0 for no edge.

    Edges whose means are about the same are one kind.
    """
    means = np.zeros_like(truth)
    for i, row in enumerate(truth):
        near = row != 0
        means[i, near] = np.abs(linear_means(row[near]))
    steps = np.ceil(means / STEP).astype(np.int64)
    found, kinds = np.unique(steps, return_inverse=True)
    return kinds.reshape(truth.shape), (found - 0.5 * (found > 0)) * STEP


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


def _one_stage(first: _First, i: int) -> _Second:
    near = first.neighbours(i)
    slope = first.slope(i)
    mean, lost = _neighbour_means(first, i, np.ones(len(near)))
    known = slope**2 * first.variance[i]
    noise = _true_noise(first, i)
    variance = remaining_variance(noise, known, first.n_samples, first.n_samples)
    return _Second(mean, slope, variance + lost)


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
