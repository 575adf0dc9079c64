"""Stage two on random regular graphs, given stage one: edges and false candidates."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import comb

from isingkit.arrays import FloatArray
from isingkit.theory.joint import Joint, Tail, tail_above, tail_below
from isingkit.theory.linear import linear_means
from isingkit.theory.local_scatter import LocalScatter, edge_fields, of_two, regular_scatter
from isingkit.theory.pairs import Pairs, pairs_of, rows
from isingkit.theory.recovery import samples_left
from isingkit.theory.regular_stage_one import FirstStage, RegularGraph
from isingkit.theory.scatter import edge_scatter
from isingkit.theory.stage_two import StageOneFit, StageTwo, solvable, stage_two

DEEPEST = 5  # generation whose candidates still take from the neighbours
FURTHEST = 4  # steps between two candidates that still matter to each other


def second_stage(graph: RegularGraph, first: FirstStage, prune: float, directions: int) -> Pairs:
    """Pairs of both stages; where `directions` is 2, of averages of both directed estimates."""
    around = _Neighbourhood.of(graph, first)
    candidates = _Candidates.of(first, prune)
    n_candidates = float(candidates.passing @ first.count)
    samples_left(prune, n_candidates, graph.n_samples)
    far = tail_above(0.0, first.std[-1], prune)
    sums = _sums_over_candidates(graph, first, around, candidates)
    sums = sums + _sums_of_pairs(graph, around, far, prune)
    of_edges = stage_two(around.fit, sums, n_candidates)
    # a false candidate is one more beside the others
    passing = float(candidates.passing[-1])
    mean_square = float(candidates.squares[-1]) / max(passing, 1e-300)
    itself = around.sums(mean_square, 1.0)
    of_false = stage_two(around.fit, sums + itself, n_candidates + 1)
    false = _FalseCandidates(graph, first, around, of_false, candidates, mean_square)
    edges = _edge_rows(graph, first, around, of_edges, false, prune)
    others = false.rows(prune)
    if directions == 2:
        _, agreement = edge_scatter(graph.degree, graph.strength)
        edges = _averaged(_merged(edges), agreement)
        others = _averaged(others, graph.residual)
    table = np.concatenate([edges, others])
    table[:, 0] *= graph.n_spins / directions
    return pairs_of(table)


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """What passes stage one, by generation."""

    up: Tail
    down: Tail  # of -X
    mean: FloatArray

    @staticmethod
    def of(first: FirstStage, prune: float) -> "_Candidates":
        up = tail_above(first.mean, first.std, prune)
        return _Candidates(up, tail_above(-first.mean, first.std, prune), first.mean)

    @property
    def passing(self) -> FloatArray:
        return self.up.probability + self.down.probability

    @property
    def excess(self) -> FloatArray:
        """Mean of X - mean, times the probability to pass."""
        upwards = self.up.probability * (self.up.mean - self.mean)
        return np.asarray(upwards - self.down.probability * (self.down.mean + self.mean))

    @property
    def squares(self) -> FloatArray:
        """Mean square of X - mean, times the probability to pass."""
        upwards = (self.up.mean - self.mean) ** 2 + self.up.variance
        downwards = (self.down.mean + self.mean) ** 2 + self.down.variance
        return np.asarray(self.up.probability * upwards + self.down.probability * downwards)


@dataclass(frozen=True, slots=True, eq=False)
class _Neighbourhood:
    """How estimates scatter locally, and what stage one did; all in the units of estimates."""

    fit: StageOneFit
    mean: float  # of a neighbour's estimate X
    field: float  # of a neighbour's C X
    own: LocalScatter
    apart: tuple[LocalScatter, ...]  # of two spins one step apart, two, ...
    scale: float  # variance of estimates over own.estimates

    @staticmethod
    @lru_cache(maxsize=64)
    def of(graph: RegularGraph, first: FirstStage) -> "_Neighbourhood":
        ridge, unit = solvable(first.ridge, graph.n_samples / (graph.n_spins - 1))
        prediction = graph.predicted(ridge)
        ratio = prediction.means[1] / prediction.means[0] if graph.degree > 1 else 0.0
        squares = graph.degree * prediction.means[0] ** 2 / (1 - (graph.degree - 1) * ratio**2)
        fit = StageOneFit.of(prediction, squares, graph.n_samples, unit)
        k = fit.effective_ridge
        own = regular_scatter(graph.spectrum, k, 0)
        steps = range(1, _furthest(graph) + 1)
        apart = tuple(regular_scatter(graph.spectrum, k, distance) for distance in steps)
        mean = prediction.means[0]
        field = graph.theta - k * mean  # C X = b - k X
        scale = first.std[-1] ** 2 / own.estimates
        return _Neighbourhood(fit, mean / unit, field / unit, own, apart, scale)

    def pair(self, distance: int) -> Joint:
        """(X_j, X_m, [C X]_j, [C X]_m) of two spins so far apart."""
        return of_two(self.own, self.own, self.apart[distance - 1], self.scale)

    @property
    def spread(self) -> float:
        """Variance of C X where X is known."""
        return float(self.scale * self.own.unexplained)

    def sums(self, squares: float, number: float) -> FloatArray:
        """T' T over so many spins without correlations, with this sum of squares of X."""
        slope = float(self.own.slope)
        fields = slope**2 * squares + number * self.spread
        return np.array([[squares, slope * squares, 0], [slope * squares, fields, 0], [0, 0, 0]])

    def mean_weights(self, second: StageTwo) -> tuple[float, float]:
        """Of b and of X in the mean of y, for C X is b - k X on average."""
        w_x, w_h, w_b = second.weights
        fit = self.fit
        return float(w_h / fit.unit + w_b), float(w_x - fit.effective_ridge * w_h)


@dataclass(frozen=True, slots=True, eq=False)
class _FalseCandidates:
    """Both stages of pairs that are no edges."""

    graph: RegularGraph
    first: FirstStage
    around: _Neighbourhood
    second: StageTwo
    candidates: _Candidates
    mean_square: float  # of X of a far candidate

    @property
    def noise(self) -> float:
        """Of a candidate by itself: part of its own variance is taken by C X."""
        fields = self.around.own.slope**2 * self.mean_square + self.around.spread
        power = self.around.fit.power - self.around.fit.explained**2
        taken = fields * self.around.fit.unit**2 / power
        return float(self.second.noise / (1 - min(taken, 0.5)))

    def joint(self, distance: int, *, paired: bool) -> Joint:
        """(X_j, X_m, y_j) of two spins so far apart; `paired` where m is a candidate, too."""
        correlation = np.asarray(self.graph.theta**distance)
        coefficients = self.second.coefficients(correlation, paired)
        return self.around.pair(distance).combined(coefficients)

    @property
    def slope(self) -> float:
        """Of stage two on stage one, for a candidate by itself."""
        w_x, w_h, _ = self.second.weights
        return float(w_x + w_h * self.around.own.slope)

    def child(self, with_parent: bool) -> Joint:
        """(X_j, X_n, y_j) of a spin j and its parent n, a neighbour of the spin in question."""
        theta = self.graph.theta
        mean = np.array([self.first.mean[1], self.first.mean[0]])
        by_correlation, by_estimate = self.around.mean_weights(self.second)
        if with_parent:
            second_mean = by_estimate * (mean[0] - theta * mean[1]) / (1 - theta**2)
        else:
            strengths = np.full(self.graph.degree, self.graph.strength)
            strengths[-1] = np.arctanh(theta**2)
            second_mean = by_correlation * linear_means(strengths)[-1] + by_estimate * mean[0]
        joint = self.joint(1, paired=with_parent)
        return Joint(np.append(mean, second_mean), joint.covariance)

    def taken(self) -> tuple[float, float]:
        """What descendants that pass take from a neighbour's estimate: mean and variance."""
        graph = self.graph
        if graph.degree == 1 or len(self.first.count) < 2:
            return 0.0, 0.0
        children = rows(1.0, self.child(True), self.noise / (1 - graph.theta**2))[0]
        _, _, _, _, second_mean, slope, std = children
        excess = self.candidates.excess
        passing = self.candidates.passing[1]
        mean = (graph.degree - 1) * graph.theta * (slope * excess[1] + second_mean * passing)
        for generation in range(2, min(DEEPEST, len(excess) - 1)):
            weight = ((graph.degree - 1) * graph.theta) ** generation
            mean += weight * self.slope * excess[generation]
        square = slope**2 * self.candidates.squares[1] + std**2 * passing
        return float(mean), float((graph.degree - 1) * graph.theta**2 * square)

    def rows(self, prune: float) -> FloatArray:
        """A table of all generations but the first."""
        counts = self.first.count
        if len(counts) == 1:
            return np.empty((0, 7))
        found = self._children(counts[1], prune)
        if len(counts) > 2:
            n_later = len(counts) - 2
            means = np.zeros((n_later, 3))
            means[:, 0] = self.first.mean[2:]
            covariance = self.joint(1, paired=False).covariance
            joint = Joint(means, np.broadcast_to(covariance, (n_later, 3, 3)))
            found.append(rows(counts[2:], joint, self.noise))
        far = tail_above(0.0, self.first.std[-1], prune)
        for distance in range(1, len(self.around.apart) + 1):
            found += self._beside_candidates(distance, far)
        return np.concatenate(found)

    def _children(self, count: float, prune: float) -> list[FloatArray]:
        """Of parents that stage one keeps, but for those that it loses."""
        theta = self.graph.theta
        kept = self.child(with_parent=True)
        lost = tail_below(self.first.mean[0], self.first.std[0], prune)
        widened = lost.variance * (self.first.std[-1] / self.first.std[0]) ** 2
        n_lost = count * float(lost.probability)
        alone = self.child(with_parent=False).given(1, lost.mean, widened)
        noise = self.noise / (1 - theta**2)
        return [
            rows(count, kept, noise),
            rows(-n_lost, kept.given(1, lost.mean, widened), noise),
            rows(n_lost, alone, self.noise),
        ]

    def _beside_candidates(self, distance: int, far: Tail) -> list[FloatArray]:
        """Of two spins that both pass: as such, and no longer each by itself."""
        n_beside = (self.graph.degree - 1) ** (distance - 1) * self.graph.degree
        n_children = (self.graph.degree - 1) ** distance
        counts = self.first.count[1:]
        n_pairs = n_children * counts[0] + n_beside * counts[1:].sum()
        count = 2 * float(far.probability) * n_pairs
        alone = self.joint(distance, paired=False).given(1, -far.mean, far.variance)
        beside = self.joint(distance, paired=True).given(1, -far.mean, far.variance)
        noise = self.noise / (1 - self.graph.theta ** (2 * distance))
        return [rows(-count, alone, self.noise), rows(count, beside, noise)]


def _furthest(graph: RegularGraph) -> int:
    """Steps at which to look for other candidates: while most spins are further away."""
    distance = 1
    while distance < FURTHEST and (graph.degree - 1) ** distance * graph.degree < graph.n_spins / 2:
        distance += 1
    return distance


def _sums_of_pairs(
    graph: RegularGraph, around: _Neighbourhood, far: Tail, prune: float
) -> FloatArray:
    """What T' C_AA^-1 T has beside T' T, by two candidates that are correlated."""
    total = np.zeros((3, 3))
    for distance in range(1, len(around.apart) + 1):
        correlation = graph.theta**distance
        given_one = around.pair(distance).given(1, -far.mean, far.variance)
        std = np.sqrt(given_one.covariance[0, 0])
        n_pairs = graph.n_spins * graph.degree * (graph.degree - 1) ** (distance - 1) / 2
        for sign in (1.0, -1.0):
            other = tail_above(sign * given_one.mean[0], std, prune)
            both = given_one.given(0, sign * other.mean, other.variance)
            squares = np.outer(both.mean, both.mean) + both.covariance
            weight = n_pairs * 2 * float(far.probability) * float(other.probability)
            total[:2, :2] += weight * _beside_diagonal(squares, correlation)
    return total


def _beside_diagonal(squares: FloatArray, correlation: float) -> FloatArray:
    """(2, 2): T' (C^-1 - 1) T of two spins, from mean products of (X_j, X_m, [C X]_j, [C X]_m)."""
    inverse = np.array([[1, -correlation], [-correlation, 1]]) / (1 - correlation**2)
    blocks = squares.reshape(2, 2, 2, 2)  # which of X and C X, which spin, twice
    return np.einsum("ajbm,jm->ab", blocks, inverse - np.eye(2))


def _sums_over_candidates(
    graph: RegularGraph, first: FirstStage, around: _Neighbourhood, candidates: _Candidates
) -> FloatArray:
    """T' C_AA^-1 T over the expected candidates: neighbours, and false ones."""
    false = ~first.is_edge
    squares = float((candidates.squares * first.count)[false].sum())
    number = float((candidates.passing * first.count)[false].sum())
    kept = float(candidates.passing[0])
    theta = graph.theta
    means = np.array([around.mean, around.field, theta])
    among = 1 + (graph.degree * kept - 1) * theta**2
    own = (1 - theta**2 / among) / (1 - theta**2)  # diagonal of C^-1 among neighbours that are kept
    of_means = graph.degree * kept * np.outer(means, means) / among
    noise = around.sums(first.std[0] ** 2, 1.0)
    return around.sums(squares, number) + of_means + graph.degree * kept * own * noise


def _edge_rows(
    graph: RegularGraph,
    first: FirstStage,
    around: _Neighbourhood,
    second: StageTwo,
    false: _FalseCandidates,
    prune: float,
) -> FloatArray:
    """A row for each number of neighbours, from 1 to all, that stage one keeps."""
    up = tail_above(first.mean[0], first.std[0], prune)
    down = tail_below(first.mean[0], first.std[0], prune)
    mean = first.mean[0]
    variance = first.std[0] ** 2
    among, fields = edge_fields(graph.spectrum, around.fit.effective_ridge)
    slope = graph.residual * among[0] / (graph.n_samples * variance * around.fit.unit)
    lost, spread = false.taken()
    found = []
    for n_kept in range(1, graph.degree + 1):
        inverse = _Inverse.of(n_kept, graph.theta)
        n_lost = graph.degree - n_kept
        moved = _Moved(up.mean - mean, down.mean - mean, n_kept, n_lost)
        chosen = moved.through(second, fields, inverse)
        second_mean = _mean_among(graph, around, second, n_kept) + chosen - lost
        scatter, _ = edge_scatter(n_kept, graph.strength)
        total = scatter / graph.n_samples
        own_slope = slope * inverse.diagonal
        unknown = np.maximum(total - own_slope**2 * variance, 1e-3 * total)
        std = np.sqrt(unknown / second.left + spread)
        count = graph.degree * _binomial(n_kept - 1, graph.degree - 1, float(up.probability))
        found.append([count, 1.0, mean, first.std[0], second_mean, own_slope, float(std)])
    return np.array(found)


@dataclass(frozen=True, slots=True)
class _Inverse:
    """C^-1 among neighbours, whose correlations are theta^2."""

    diagonal: float
    beside: float

    @staticmethod
    def of(n_neighbours: int, theta: float) -> "_Inverse":
        common = -(theta**2) / ((1 - theta**2) * (1 + (n_neighbours - 1) * theta**2))
        return _Inverse(1 / (1 - theta**2) + common, common)


@dataclass(frozen=True, slots=True)
class _Moved:
    """How far estimates of other neighbours are from their mean, by being kept or lost."""

    kept: float
    lost: float
    n_kept: int  # the neighbour itself included
    n_lost: int

    def through(self, second: StageTwo, fields: FloatArray, inverse: _Inverse) -> float:
        """What it does to the neighbour's own estimate in stage two."""
        w_x, w_h, _ = second.weights
        others = (self.n_kept - 1) * self.kept + self.n_lost * self.lost
        through_field = w_h * fields[1]
        own = through_field * others
        slope = w_x + w_h * fields[0]
        of_other = slope * self.kept + through_field * (others - self.kept)
        of_others = (self.n_kept - 1) * of_other
        return float(inverse.diagonal * own + inverse.beside * of_others)


def _mean_among(
    graph: RegularGraph, around: _Neighbourhood, second: StageTwo, n_kept: int
) -> float:
    """Mean estimate of a neighbour in stage two where so many are candidates."""
    by_correlation, by_estimate = around.mean_weights(second)
    alone = linear_means(np.full(n_kept, graph.strength))[0]
    shared = around.mean / (1 + (n_kept - 1) * graph.theta**2)
    return float(by_correlation * alone + by_estimate * shared)


def _merged(edges: FloatArray) -> FloatArray:
    """Rows of edges as one: both ends of an edge have their own number of neighbours kept."""
    count = edges[:, 0].sum()
    merged = edges[:, 0] @ edges / count
    spread = edges[:, 0] @ (edges[:, 4] - merged[4]) ** 2 / count
    variance = edges[:, 0] @ edges[:, 6] ** 2 / count
    merged[0] = count
    merged[6] = np.sqrt(variance + spread / 2)
    return merged[None]


def _averaged(table: FloatArray, agreement: float) -> FloatArray:
    """Rows of averages of two directed estimates whose correlation is `agreement`.

    What stage one knows is the same for both.
    """
    known = (table[:, 5] * table[:, 3]) ** 2
    total = (table[:, 6] ** 2 + known) * (1 + agreement) / 2
    found = table.copy()
    found[:, 6] = np.sqrt(np.maximum(total - known, 1e-3 * total))
    return found


def _binomial(successes: int, trials: int, probability: float) -> float:
    ways = float(comb(trials, successes))
    return ways * probability**successes * (1 - probability) ** (trials - successes)
