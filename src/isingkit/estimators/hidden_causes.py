"""Hidden causes: scores of rows that many spins follow, told by what a strict network leaves.

Why so, and what was no better: docs/design/causes.md.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import eigsh

from isingkit.arrays import FloatArray, Pairs
from isingkit.estimators.causes import with_hidden
from isingkit.estimators.edge_tests import SharedCauses, precisions
from isingkit.estimators.fitted_graph import FittedGraph, Samples, fit_graph
from isingkit.estimators.graph import keys_of, pairs_of
from isingkit.packing import PackedSpins
from isingkit.spins import RowWeights

MOST_BENT = 5  # causes
_ITERATIONS = 2  # of loadings
# pairs that tell what scores leave open of causes: some at random, and all of a few spins
_AT_RANDOM, _STRONGEST = 200, 21
_ROBUST_Z = 2.5  # z-scores beyond it count as that: they may be those of edges
_ROBUST_STEPS = 5
_SMALL_MATRIX = 200  # rows, below which all eigenvectors are quicker than some


@dataclass(frozen=True, slots=True, eq=False)
class HiddenReport:
    """What was found of causes that are no columns.

    A score is a weighted sum of all spins of a row, less what covariates explain of it, and has
    spread 1; its sign means nothing.
    """

    scores: FloatArray  # (n_rows, n_hidden)
    # (n_spins, n_hidden): what a score of 1 adds to the field of a spin, given its neighbours
    loadings: FloatArray
    std_errors: FloatArray  # (n_spins, n_hidden): of loadings, scores taken as known
    # (n_hidden,): mean over spins of the squared correlation with the score of the others
    variance_shares: FloatArray
    _weights: FloatArray  # (n_hidden, n_spins): of spins in scores
    _means: FloatArray  # (n_spins,)
    _bends: FloatArray  # (n_terms,): as those of `Causes`, of all scores for each bend
    _effects: FloatArray  # (n_spins, n_terms)
    _slopes: FloatArray  # (n_hidden, n_covariates): as those of `HiddenCauses`

    @property
    def n_hidden(self) -> int:
        return self.scores.shape[1]

    def __repr__(self) -> str:
        n_rows, n_hidden = self.scores.shape
        return f"HiddenReport({n_hidden} hidden causes of {n_rows} rows)"

    def shifts(self, spins: FloatArray, covariates: FloatArray | None = None) -> FloatArray:
        """(n_rows, n_spins): what causes add to fields, by the other spins of a row.

        spins: (n_rows, n_spins), 0 where missing
        covariates: (n_rows, n_covariates); at their means where not given
        """
        apart = np.where(spins != 0, spins - self._means, 0.0)
        scores = apart @ self._weights.T
        if covariates is not None:
            scores -= covariates @ self._slopes.T
        shifts = np.zeros(spins.shape)
        for term, bend in enumerate(self._bends):
            k = term % self.n_hidden
            others = scores[:, [k]] - apart * self._weights[k]
            shifts += self._effects[:, term] * (np.tanh(bend * others) if bend > 0 else others)
        return shifts


@dataclass(frozen=True, slots=True, eq=False)
class HiddenCauses:
    """Scores of rows, and what spins put into them."""

    scores: FloatArray  # (n_hidden, n_rows): of spread 1
    loadings: FloatArray  # (n_hidden, n_spins)
    means: FloatArray  # (n_spins,)
    # (n_hidden, n_covariates): what covariates explain of sums over spins, which is no part of
    # scores; else it would be taken off the effects of covariates
    slopes: FloatArray

    @property
    def n_hidden(self) -> int:
        return len(self.scores)

    @property
    def n_spins(self) -> float:
        """How many spins a cause acts on, the fewest of all: (sum b^2)^2 / sum b^4."""
        squares = self.loadings**2
        each = squares.sum(axis=1) ** 2 / np.maximum((squares**2).sum(axis=1), 1e-300)
        return float(each.min())

    def beside(self, samples: Samples, bent: bool) -> Samples:
        """The same samples, of which regressions know these causes, too.

        bent: and bent functions of few; many are lineages or the like, between which several are
        steps already
        """
        bent = bent and self.n_hidden <= MOST_BENT
        made_of = (self.loadings, self.means, self.slopes)
        return replace(samples, causes=with_hidden(samples.causes, self.scores, *made_of, bent))


def hidden_of(samples: Samples, loadings: FloatArray) -> HiddenCauses:
    """Causes of these loadings, scaled so that scores have spread 1; what is missing adds 0.

    The sign means nothing, and is chosen so that loadings add up to more than 0, on any processor.
    """
    loadings = np.where(loadings.sum(axis=1) < 0, -1.0, 1.0)[:, None] * loadings
    weights = samples.sample_weights / samples.sample_weights.sum()
    means = np.empty(loadings.shape[1])
    scores = np.zeros((len(loadings), samples.n_rows))
    for some in samples.portions():
        spins = samples.values_of(some)
        there = np.abs(spins)
        means[some] = spins @ weights / np.maximum(there @ weights, 1e-300)
        scores += loadings[:, some] @ spins - (loadings[:, some] * means[some]) @ there
    covariates = samples.causes.covariates
    roots = np.sqrt(weights)
    slopes = np.linalg.lstsq((roots * covariates).T, (roots * scores).T, rcond=None)[0].T
    scores -= slopes @ covariates
    spread = np.maximum(np.sqrt(scores**2 @ weights), 1e-300)[:, None]
    return HiddenCauses(scores / spread, loadings / spread, means, slopes / spread)


def eigenvectors(matrix: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """The n largest eigenvalues, falling, and their vectors, (n, n_rows)."""
    if len(matrix) < _SMALL_MATRIX or not matrix.any():
        values, vectors = np.linalg.eigh(matrix)
    else:
        start = np.random.default_rng(0).normal(size=len(matrix))
        values, vectors = eigsh(matrix, k=n, which="LA", v0=start, tol=1e-6)
    order = np.argsort(-values)[:n]
    return values[order], np.ascontiguousarray(vectors[:, order].T)


def iterated(fitted: FittedGraph, loadings: FloatArray) -> tuple[HiddenCauses, FittedGraph]:
    """Loadings as the regressions of spins on neighbours and scores have them, and the latter.

    fitted: the same regressions without scores
    """
    samples = fitted.samples
    of_hidden = slice(samples.causes.n_covariates, None)
    given = fitted
    for _ in range(_ITERATIONS):
        causes = hidden_of(samples, loadings)
        given = given.given(causes.beside(samples, bent=False))
        loadings = np.ascontiguousarray(given.effects[:, of_hidden].T)
        if len(loadings) > 1:
            loadings = np.ascontiguousarray(np.linalg.qr(loadings.T)[0].T)
    return hidden_of(samples, loadings), given


def shared_causes(fitted: FittedGraph, hidden: HiddenCauses) -> SharedCauses:
    """What scores leave open of causes, told by pairs outside a graph.

    Least squares of z-scores on products of loadings, those that stick out clipped. Of many causes,
    each is taken to leave something open by itself: their products are more than those pairs tell.
    """
    pairs = _telling_pairs(fitted, hidden.loadings)
    z_scores = fitted.score_tests(pairs).z_scores
    rows, columns = np.triu_indices(hidden.n_hidden)
    if hidden.n_hidden > MOST_BENT:
        rows = columns = np.arange(hidden.n_hidden)
    first, second = hidden.loadings[:, pairs[:, 0]], hidden.loadings[:, pairs[:, 1]]
    products = first[rows] * second[columns] + first[columns] * second[rows]
    products[rows == columns] /= 2
    design = (products * precisions(fitted, pairs)).T
    strength = np.zeros(len(rows))
    for _ in range(_ROBUST_STEPS):
        off = np.clip(z_scores - design @ strength, -_ROBUST_Z, _ROBUST_Z)
        strength += np.linalg.lstsq(design, off, rcond=1e-8)[0]
    matrix = np.zeros((hidden.n_hidden, hidden.n_hidden))
    matrix[rows, columns] = matrix[columns, rows] = strength
    return SharedCauses(hidden.loadings, matrix)


def _telling_pairs(fitted: FittedGraph, loadings: FloatArray) -> Pairs:
    """Pairs outside a graph: those of the spins with the largest loadings, and some at random."""
    n_spins = fitted.n_spins
    changing = np.flatnonzero(fitted.columns.changes)
    size = np.sqrt((loadings**2).sum(axis=0))[changing]
    strongest = changing[np.argsort(-size, kind="stable")[:_STRONGEST]]
    rng = np.random.default_rng(0)
    anywhere = rng.choice(changing, size=(_AT_RANDOM, 2))
    among = np.stack(np.meshgrid(strongest, strongest), axis=-1).reshape(-1, 2)
    pairs = np.sort(np.concatenate([among, anywhere]), axis=1)
    keys = np.unique(keys_of(pairs[pairs[:, 0] < pairs[:, 1]], n_spins))
    return pairs_of(np.setdiff1d(keys, fitted.graph.keys), n_spins)


def hidden_report(
    hidden: HiddenCauses,
    fitted: FittedGraph,
    effects: FloatArray,
    packed: PackedSpins,
    weights: RowWeights | None,
) -> HiddenReport:
    """What to tell of causes, given the network that was found with them.

    effects: (n_spins, n_causes), of all causes of the network
    weights: of all rows
    """
    covariates = None if weights is None else weights.covariates
    totals = np.ones(packed.n_samples) if weights is None else weights.totals
    causes = fitted.samples.causes
    of_hidden = slice(causes.n_covariates, None)
    linear = fit_graph(
        hidden.beside(fitted.samples, bent=False),
        fitted.graph.pairs,
        fit_fields=fitted.fit_fields,
        n_jobs=fitted.n_jobs,
    )
    loadings, errors = linear.effects_and_errors()
    spins = np.asarray(packed, dtype=np.float64)
    apart = np.where(spins != 0, spins - hidden.means, 0.0)
    sums = apart @ hidden.loadings.T
    return HiddenReport(
        scores=sums if covariates is None else sums - covariates @ hidden.slopes.T,
        loadings=loadings[:, of_hidden],
        std_errors=errors[:, of_hidden],
        variance_shares=_variance_shares(spins, hidden, sums, totals / totals.sum()),
        _weights=hidden.loadings,
        _means=hidden.means,
        _bends=causes.bends[of_hidden],
        _effects=effects[:, of_hidden],
        _slopes=hidden.slopes,
    )


def errors_beside_scores(
    errors: FloatArray,
    effects: FloatArray,
    report: HiddenReport,
    samples: Samples,
    shared: SharedCauses,
) -> FloatArray:
    """(n_spins, n_covariates): errors of covariates' effects where there are hidden causes, too.

    Scores are cleared of covariates, and with that of how these go with the causes by chance: a
    slope of variance (Z'WZ)^-1, which times the loading is part of the effect. What scores leave
    open of the causes, of variance v in the field of a spin, belongs to the square of its loading,
    and makes its effects smaller by a factor of 1 - v, to first order: so much counts as an error.
    effects: (n_spins, n_covariates)
    """
    covariates = samples.causes.covariates
    inverse = np.linalg.pinv((covariates * samples.sample_weights) @ covariates.T, hermitian=True)
    everyone = np.arange(len(errors))
    left_open = np.maximum(shared.couplings(np.column_stack([everyone, everyone])), 0.0)
    squares = (report.loadings**2).sum(axis=1) + left_open
    by_chance = np.outer(squares, np.diagonal(inverse))
    shrunk = effects * left_open[:, None]
    return np.asarray(np.sqrt(errors**2 + by_chance + shrunk**2))


def _variance_shares(
    spins: FloatArray, hidden: HiddenCauses, scores: FloatArray, of_rows: FloatArray
) -> FloatArray:
    """(n_hidden,): mean squared correlation of spins with scores of the others.

    spins: (n_rows, n_spins), 0 where missing     of_rows: (n_rows,), shares of all weight
    """
    is_there = spins != 0
    apart = np.where(is_there, spins - hidden.means, 0.0)
    seen = np.maximum(of_rows @ is_there, 1e-300)
    variances = of_rows @ apart**2 / seen
    changing = variances > 0
    shares = np.zeros(hidden.n_hidden)
    for k, loading in enumerate(hidden.loadings):
        along = apart.T @ (of_rows * scores[:, k]) / seen
        products = along - loading * variances
        squares = of_rows @ scores[:, k] ** 2 - 2 * loading * along + loading**2 * variances
        explained = products[changing] ** 2 / (variances * np.maximum(squares, 1e-300))[changing]
        shares[k] = explained.mean() if changing.any() else 0.0
    return shares
