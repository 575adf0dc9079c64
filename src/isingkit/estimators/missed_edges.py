"""MissedEdges: what pairs outside a network may hold, and what that does to couplings inside it.

Where rows are few, neighbours are missed, and what they do goes to those that were found. How that
is allowed for, and how well: docs/design/auto.md.
"""

from dataclasses import dataclass, replace

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.estimators.edge_tests import EdgeTester, precisions, test_edges
from isingkit.estimators.edge_weights import edge_weights
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.graph import ranges
from isingkit.estimators.score_cache import least_plausible_z
from isingkit.estimators.selection import Selection

_SIGNS = np.array([-1.0, 1.0])


@dataclass(frozen=True, slots=True)
class MissedEdgeSettings:
    """Why these numbers: docs/design/auto.md."""

    least_z: float = 1.0  # pairs of less are no edges, where rows are no fewer than spins
    least_probability: float = 0.005  # of an edge, from which on a pair counts
    # of |couplings| found, which stand for all sizes
    quantiles: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    most_dense: float = 0.9  # share of pairs that are edges
    n_steps: int = 30  # of expectation and maximisation
    # shift of an estimate, in standard errors: to first order in couplings no more can be known
    largest_shift: float = 2.0
    ridge: float = 0.5  # on squares of couplings, as in regressions


SETTINGS = MissedEdgeSettings()


@dataclass(frozen=True, slots=True)
class Allowance:
    """What tests allow for neighbours that were missed."""

    few: float  # share of edges missed, below which a network is as good as whole
    taken_off: float  # how much of what they may have added


# a strict network must not have one false edge, whatever that costs; docs/design/auto.md
_ALLOWANCES = {"fwer": Allowance(0.1, 1.0), "fdr": Allowance(0.3, 0.8)}


@dataclass(frozen=True, slots=True, eq=False)
class MissedEdges:
    """Pairs outside a network that may be edges, and their couplings, should they be or not."""

    pairs: Pairs
    means: FloatArray  # (n_pairs,): of couplings, given the data
    variances: FloatArray  # (n_pairs,): the same
    n_expected: float  # edges among them


def missed_edges(tester: EdgeTester, fitted: FittedGraph, couplings: FloatArray) -> MissedEdges:
    """By approximate z-scores of pairs outside, and the odds that the network gives them.

    A pair has no coupling, or one of the sizes that were found, with odds by `edge_weights`, times
    those of an edge anywhere, which are what makes the z-scores likeliest. Given its coupling a
    z-score is normal about that over its standard error.

    couplings: (n_edges,), of the network's pairs
    """
    if len(couplings) == 0:
        no_pairs = np.empty((0, 2), np.int64)
        nothing = np.empty(0)
        return MissedEdges(no_pairs, nothing, nothing, 0.0)
    least = tester.scores.screening_z
    if not _is_short(fitted):
        least = least_plausible_z(SETTINGS.least_z, fitted.n_spins)
    pairs, z_scores = tester.scores.plausible(fitted, least)
    sizes = np.quantile(np.abs(couplings), SETTINGS.quantiles)
    signed = _SIGNS[:, None] * sizes  # (2, n_sizes)
    expected = precisions(fitted, pairs)[:, None, None] * signed
    gain = z_scores[:, None, None] * expected - expected**2 / 2
    likelihood = np.exp(np.clip(gain, -50.0, 50.0)) / signed.size  # over that of no coupling
    odds = edge_weights(pairs, fitted.graph, couplings, tester.changes)
    posterior = _posterior(odds[:, :, None] * likelihood, len(couplings), tester.changes)
    is_plausible = posterior.sum(axis=(1, 2)) > SETTINGS.least_probability
    posterior = posterior[is_plausible]
    means = (posterior * signed).sum(axis=(1, 2))
    squares = (posterior * signed**2).sum(axis=(1, 2))
    n_expected = float(posterior.sum())
    return MissedEdges(pairs[is_plausible], means, squares - means**2, n_expected)


def _is_short(fitted: FittedGraph) -> bool:
    """Whether rows are fewer than spins: small z-scores are noise, and by tiles not known."""
    return bool(fitted.samples.sample_weights.sum() < fitted.n_spins)


def _posterior(odds: FloatArray, n_edges: int, changes: BoolArray) -> FloatArray:
    """(n_pairs, 2, n_sizes): probabilities of couplings, where pairs are as dense as is likeliest.

    odds: the same, if half of all pairs were edges
    """
    n_spins = int(changes.sum())
    n_pairs = max(n_spins * (n_spins - 1) / 2, 1.0)
    density = n_edges / n_pairs
    of_edges = odds.sum(axis=(1, 2))
    for _ in range(SETTINGS.n_steps):
        density = min(density, SETTINGS.most_dense)
        prior = density / (1 - density)
        n_missed = float((prior * of_edges / (1 + prior * of_edges)).sum())
        density = (n_edges + n_missed) / n_pairs
    return np.asarray(prior * odds / (1 + prior * of_edges)[:, None, None])


def without_missed(
    fitted: FittedGraph, couplings: FloatArray, errors: FloatArray, missed: MissedEdges
) -> tuple[FloatArray, FloatArray]:
    """(n_edges,) both: couplings without what missed neighbours may have added, and errors.

    As they are where rows are fewer than spins: there what was found is mostly luck, which
    intervals allow for by themselves.
    """
    if _is_short(fitted):
        return couplings, errors
    shifts, variances = effect_on_couplings(fitted, missed)
    most = SETTINGS.largest_shift * errors
    variances = np.minimum(variances, most**2)
    shifted = couplings - np.clip(shifts, -most, most)
    return shifted, np.sqrt(errors**2 + variances)


def beyond_missed(
    tester: EdgeTester, found: Selection, level: float, control: str
) -> tuple[EdgeTester, Selection]:
    """Of a network that lacks many edges, those that pass without what missed ones may have added.

    What missed neighbours do goes to pairs beside them, too. Those that fail are no longer edges.
    """
    fitted, tests = found.fitted, found.tests
    n_inside = len(fitted.graph.pairs)
    if n_inside == 0:
        return tester, found
    missed = missed_edges(tester, fitted, fitted.graph.mean_of_directions(fitted.couplings))
    allowance = _ALLOWANCES[control]
    if missed.n_expected < allowance.few * (n_inside + missed.n_expected):
        return tester, found
    couplings, errors = fitted.couplings_and_errors()
    shifts, _ = effect_on_couplings(fitted, missed)
    added = allowance.taken_off * shifts * np.sign(couplings) / errors
    added = np.clip(added, 0.0, SETTINGS.largest_shift)
    z_scores = tests.z_scores.copy()
    size = np.maximum(np.abs(z_scores[:n_inside]) - added, 0.0)
    z_scores[:n_inside] = np.sign(z_scores[:n_inside]) * size
    n_spins = int(tester.changes.sum())
    again = test_edges(tests.pairs, z_scores, tests.weights, n_inside, n_spins, level, control)
    kept = again.passes & again.inside
    if kept.sum() == n_inside:
        return tester, replace(found, tests=again)
    smaller, changed = fitted.refit(tests.pairs[kept])
    selection = Selection(smaller, replace(again, inside=kept), found.n_rounds)
    return tester.rescored(smaller, changed), selection


def effect_on_couplings(fitted: FittedGraph, missed: MissedEdges) -> tuple[FloatArray, FloatArray]:
    """(n_edges,) both: how much of couplings is missed neighbours', and the variance of that.

    With X the regressors of spin i, v = w (1 - m^2) and s_k a missed neighbour of coupling d, the
    couplings of i take up (X' v X)^-1 X' v s_k d, to first order.
    """
    graph = fitted.graph
    shifts = np.zeros(len(graph.indices))
    variances = np.zeros(len(graph.indices))
    both = np.concatenate([missed.pairs, missed.pairs[:, ::-1]])
    order = np.argsort(both[:, 0], kind="stable")
    own, starts = np.unique(both[order, 0], return_index=True)
    for i, here in zip(own.tolist(), np.split(order, starts[1:]), strict=False):
        place = slice(graph.indptr[i], graph.indptr[i + 1])
        taken = _taken_up(fitted, i, both[here, 1])
        which = here % len(missed.pairs)
        shifts[place] = taken @ missed.means[which]
        variances[place] = taken**2 @ missed.variances[which]
    return graph.mean_of_directions(shifts), graph.mean_of_directions(variances) / 2


def _taken_up(fitted: FittedGraph, i: int, missed: IntArray) -> FloatArray:
    """(n_neighbours, n_missed): parts of missed couplings that neighbours of spin i take up."""
    neighbours = fitted.graph.indices[ranges(fitted.graph.indptr[[i]], fitted.graph.degrees[[i]])]
    if len(neighbours) == 0:
        return np.zeros((0, len(missed)))
    samples = fitted.samples
    weights = np.maximum(samples.sample_weights, 1e-300)
    means = samples.values_of(np.array([i])) - fitted.residuals_of(np.array([i])) / weights
    curvature = samples.sample_weights * np.maximum(1 - means**2, 0.0)
    design = np.vstack([np.ones(samples.n_rows), samples.values_of(neighbours)])
    weighted = design * curvature
    hessian = weighted @ design.T + SETTINGS.ridge * np.eye(len(design))
    taken = np.linalg.solve(hessian, weighted @ samples.values_of(missed).T)
    return np.asarray(taken[1:])
