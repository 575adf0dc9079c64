"""AutoIsing: structure without knobs. Screen, eliminate, refit, judge."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from isingkit._kernels import auto as kernels
from isingkit._kernels.threads import one_blas_thread, spread
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.mean_field import mean_field_couplings, mean_field_fields
from isingkit.estimators.nodewise import distinct_rows
from isingkit.estimators.normal import Matrix, NormalEquations, constant_fields, normal_equations, warn_of_constants
from isingkit.estimators.screen import Screen, screen
from isingkit.estimators.two_stage import restricted_estimates
from isingkit.exceptions import NotConvergedWarning, SettingError, require_number, warn
from isingkit.gram import gram
from isingkit.packing import PackedSpins

Pairs = NDArray[np.int64]  # (n, 2), first < second
_LEAST_SCORE = 1.5  # of the screen, to be a candidate
_LOOK = 3.0  # deviate at which a pair outside the network is looked at closely
_CLEAR = 8.0  # deviate of an edge that needs no test of its own
_MOST_ROUNDS = 60
_RIDGE = 0.5  # on squares of couplings in a refit, where samples count 1: keeps separated ones finite


class AutoIsing(IsingEstimator):
    """The network, without knobs: every step tunes itself, and every edge comes with how sure it is.

    *Screen*: ridge regressions of all spins at once, the ridge chosen by leave-one-out error, estimates in units of their noise.
    *Eliminate*: of each spin's best candidates the weakest are dropped, by an extended Bayesian criterion.
    *Refit*: logistic regression of each spin on what is left (the pseudolikelihood: consistent, loops or not).
    *Judge*: each edge is tested in the network without it, each pair outside in the network as it is, both directions together,
    with tails that hold where spins hardly ever change; what fails goes, what passes comes in, until nothing moves. Levels count
    all pairs of spins as tested, so that choosing among them costs nothing more.

    Parameters
    ----------
    level
        Share of false edges among those found ("fdr"), or probability of any false edge ("fwer"), that you accept.
    control
        "fdr" or "fwer".
    refit
        How couplings of the network found are estimated: "pseudolikelihood"; "bethe", in closed form from regressions on
        neighbours, exact on trees; or "linear", those regressions as they are. Only the first has standard errors.
    fit_fields
        Whether to fit fields; without, spins are taken to be symmetric.
    binarize
        Threshold that turns real-valued columns into spins.
    missing
        "error", "drop" or "pairwise": in a refit, a missing neighbour has no influence.
    n_jobs
        Threads to use; None or -1 is all.

    Attributes
    ----------
    edges_
        Structured array, surest first: source, target, coupling, std_error, z, p_value, q_value.
    rejected_
        The same of the pairs that were tested and are not edges, with the coupling they would have had, to first order.
    screen_
        What the first step found: scores, ridge, error.
    candidates_
        (n, 2) array: pairs that the screen let through.
    survivors_
        (n, 2) array: pairs that elimination left.
    n_rounds_
        Rounds of refit and judge.
    estimates_
        (n_spins, n_spins) array; row i is the directed refit of J_i.
    intercepts_
        (n_spins,) array of the fields of the refits.
    model_
        The IsingModel of the edges.
    n_samples_
        Rows used, or their total weight.
    mapping_
        For each spin the values of the table that became -1 and +1.

    Examples
    --------
    >>> import isingkit as ik
    >>> truth = ik.random_regular(n_spins=100, degree=3, coupling=0.4, random_state=0)
    >>> fit = ik.AutoIsing(control="fwer").fit(ik.sample(truth, n_samples=400, random_state=1))
    >>> ik.score(fit.model_, truth).precision
    1.0
    """

    def __init__(
        self,
        *,
        level: float = 0.05,
        control: str = "fdr",
        refit: str = "pseudolikelihood",
        fit_fields: bool = True,
        binarize: float | None = None,
        missing: str = "error",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(threshold=0.0, rule="average", fit_fields=fit_fields, binarize=binarize, missing=missing)
        self.level = level
        self.control = control
        self.refit = refit
        self.n_jobs = n_jobs

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number("level", self.level, above=0)
        if self.level >= 1:
            raise SettingError(setting="level", value=self.level, expected="a number below 1")
        if self.control not in ("fdr", "fwer"):
            raise SettingError(setting="control", value=self.control, expected="'fdr' or 'fwer'")
        if self.refit not in ("pseudolikelihood", "bethe", "linear"):
            raise SettingError(setting="refit", value=self.refit, expected="'pseudolikelihood', 'bethe' or 'linear'")

    def _learn(self, packed: PackedSpins, weights: Matrix | None, warned: bool) -> Self:
        stat = gram(packed, sample_weight=weights)
        normal = normal_equations(stat, self.fit_fields)
        if not warned:
            warn_of_constants(normal)
        self.screen_ = screen(normal)
        self.candidates_ = candidates(self.screen_, normal)
        self.survivors_ = eliminate(normal, self.candidates_, self.n_jobs)
        network = Network(packed, weights, self.fit_fields, self.n_jobs)
        network.connect(self.survivors_)
        self.n_rounds_, judged = settle(network, normal, self.level, self.control)
        self._report(network, judged, stat.names)
        if self.refit == "pseudolikelihood":
            estimates, intercepts = network.directed(), network.fields.copy()
        else:
            estimates, intercepts = closed_form(normal, network.pairs, self.refit == "bethe")
            table = {pair: (estimates[pair] + estimates[pair[::-1]]) / 2 for pair in map(tuple, network.pairs.tolist())}
            place = {name: i for i, name in enumerate(stat.names)}
            for row in self.edges_:
                row["coupling"], row["std_error"] = table[tuple(sorted((place[row["source"]], place[row["target"]])))], np.nan
        if self.fit_fields:
            intercepts[~normal.changes] = constant_fields(normal.means[~normal.changes], normal.n_samples)
        else:
            intercepts[:] = 0.0
        return self._finish(packed, stat.n_samples, estimates, intercepts, normal.means)

    def explain(self, first: str, second: str) -> str:
        """The way of one pair through the steps, for people to read.

        Parameters
        ----------
        first
            Name of a spin.
        second
            Name of another.
        """
        check_is_fitted(self)
        names = self.model_.names
        for name in (first, second):
            if name not in names:
                raise SettingError(setting="name of a spin", value=name, expected="one of " + ", ".join(names[:20]))
        i, j = sorted((names.index(first), names.index(second)))
        score = float(self.screen_.scores[i, j])
        ranks = [int((np.abs(self.screen_.scores[a]) > abs(score)).sum()) + 1 for a in (i, j)]
        lines = [
            f"screen     {score:+.1f} standard errors at ridge {self.screen_.ridge:g}: "
            f"number {ranks[0]} of '{names[i]}', number {ranks[1]} of '{names[j]}'",
            f"candidate  {_yes((i, j), self.candidates_)}",
            f"eliminate  {'kept' if _yes((i, j), self.survivors_) == 'yes' else 'not kept'}",
        ]
        tables = [(self.edges_, "an edge"), (self.rejected_, "not an edge")]
        for table, verdict in tables:
            here = table[(table["source"] == names[i]) & (table["target"] == names[j])]
            for row in here:
                error = "" if np.isnan(row["std_error"]) else f" +- {row['std_error']:.3f}"
                lines.append(f"refit      coupling {row['coupling']:+.3f}{error}")
                lines.append(f"judge      z = {row['z']:+.2f}, p = {row['p_value']:.2g}, q = {row['q_value']:.2g}")
                lines.append(f"verdict    {verdict}, by {self.control} at level {self.level:g}")
        if len(lines) == 3:
            lines.append(f"verdict    not an edge: less than {_LOOK:g} standard errors once the network is known")
        return "\n".join(lines)

    def _fields(self, couplings: Any, means: Matrix) -> Matrix:
        return np.asarray(self.intercepts_)

    def _report(self, network: "Network", judged: "Judged", names: tuple[str, ...]) -> None:
        labels = np.array(names, dtype=np.str_)
        columns: list[tuple[str, Any]] = [(name, labels.dtype) for name in ("source", "target")]
        columns += [(name, np.float64) for name in ("coupling", "std_error", "z", "p_value", "q_value")]
        couplings, errors = network.undirected()
        for inside in (True, False):
            chosen = np.flatnonzero(judged.inside == inside)
            chosen = chosen[np.argsort(-np.abs(judged.deviates[chosen]), kind="stable")]
            table = np.empty(len(chosen), dtype=columns)
            pairs = judged.pairs[chosen]
            table["source"], table["target"] = labels[pairs[:, 0]], labels[pairs[:, 1]]
            for name in ("z", "p_value", "q_value"):
                table[name] = getattr(judged, {"z": "deviates", "p_value": "chances", "q_value": "shares"}[name])[chosen]
            if inside:
                place = _places_of(network.pairs, pairs, len(names))
                table["coupling"], table["std_error"] = couplings[place], errors[place]
                self.edges_ = table
            else:
                scale = np.sqrt(network.curvatures.sum(axis=1))
                table["std_error"] = 2 / (scale[pairs[:, 0]] + scale[pairs[:, 1]])
                table["coupling"] = table["z"] * table["std_error"]
                self.rejected_ = table


def _yes(pair: tuple[int, int], pairs: Pairs) -> str:
    return "yes" if (pairs == pair).all(axis=1).any() else "no"


def closed_form(normal: NormalEquations, pairs: Pairs, bethe: bool) -> tuple[Matrix, Matrix]:
    """Estimates and fields from linear regressions of each spin on its neighbours, as they are or by Bethe's inversion.

    On a tree the inverse covariances are those of neighbours only: q_ij = -x_ij / (what is left of the variance of spin i).
    """
    chosen = np.zeros_like(normal.matrix)
    chosen[tuple(pairs.T)] = chosen[tuple(pairs.T[::-1])] = 1.0
    estimates, _ = restricted_estimates(normal, chosen, 0.5, normal.n_spins)
    if not bethe:
        return estimates, normal.means - estimates @ normal.means
    covariance = normal.matrix / normal.n_samples
    left = np.maximum(np.diagonal(covariance) - (estimates * covariance).sum(axis=1), 1e-12)
    inverse = -estimates / left[:, None]
    means = np.where(normal.changes, normal.means, 0.0)
    couplings = mean_field_couplings("bethe", means, covariance, (inverse + inverse.T) / 2, normal.n_samples, list(normal.names))
    return couplings, mean_field_fields("bethe", means, covariance, couplings, normal.n_samples)


def candidates(found: Screen, normal: NormalEquations) -> Pairs:
    """Pairs that are among the best of either spin and above the noise; few enough for the samples."""
    sizes = np.abs(found.scores)
    most = int(min(np.clip(normal.n_effective // 8, 2, 25), normal.n_spins - 1))
    level = np.partition(sizes, -most, axis=1)[:, -most]
    chosen = (sizes >= np.minimum(level[:, None], level)) & (sizes > _LEAST_SCORE)
    return np.argwhere(np.triu(chosen, 1))


def eliminate(normal: NormalEquations, pairs: Pairs, n_jobs: int | None = None) -> Pairs:
    """Pairs that backward elimination by the extended Bayesian criterion leaves at either end."""
    graph = _graph(pairs, normal.n_spins)
    kept = np.zeros(len(graph.indices), dtype=bool)
    cost = np.log(max(normal.n_effective, 2.0)) + np.log(max(normal.n_spins, 2))
    arguments = (normal.matrix, graph.indptr, graph.indices, normal.n_effective, cost, kept)
    with one_blas_thread():
        spread(kernels.eliminate, normal.n_spins, *arguments, chunk=16, n_jobs=n_jobs)
    rows = np.repeat(np.arange(normal.n_spins), np.diff(graph.indptr))
    left = np.column_stack([rows, graph.indices])[kept]
    return np.unique(np.sort(left, axis=1), axis=0).reshape(-1, 2)


@dataclass(slots=True, eq=False)
class Network:
    """A graph and the logistic regressions of its spins on their neighbours; only those that change are fitted anew."""

    packed: PackedSpins
    weights: Matrix | None
    fit_fields: bool
    n_jobs: int | None
    spins: Matrix = field(init=False)  # (n_spins, n_samples): different rows only, where none are missing; 0 where missing
    shares: Matrix = field(init=False)  # (n_samples,): weights; how many samples a row stands for
    pairs: Pairs = field(init=False)
    indptr: NDArray[np.int64] = field(init=False)
    indices: NDArray[np.int64] = field(init=False)
    places: NDArray[np.int64] = field(init=False)  # (n_spins + 1,): of each spin's inverse Hessian in `inverses`
    inverses: Matrix = field(init=False)
    fields: Matrix = field(init=False)
    couplings: Matrix = field(init=False)  # like indices
    states: Matrix = field(init=False)  # (n_spins, n_samples) each: fields, residuals and curvatures in every sample
    residuals: Matrix = field(init=False)
    curvatures: Matrix = field(init=False)
    scores: Matrix = field(init=False)  # (n_spins, n_spins): deviates of all pairs, not yet cleared of neighbours; directed

    def __post_init__(self) -> None:
        if self.packed.present is None:
            rows = distinct_rows(self.packed, self.weights)
            self.spins, self.shares = rows.spins, rows.weights * rows.n_samples
        else:
            self.spins = np.ascontiguousarray(np.asarray(self.packed, dtype=np.float64).T)
            self.shares = np.ones(self.packed.n_samples) if self.weights is None else self.weights
        n_spins, n_samples = self.spins.shape
        self.pairs = np.empty((0, 2), dtype=np.int64)
        self.indptr, self.indices = np.zeros(n_spins + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
        self.places, self.inverses = np.zeros(n_spins + 1, dtype=np.int64), np.empty(0)
        self.fields, self.couplings = np.zeros(n_spins), np.empty(0)
        self.states, self.residuals, self.curvatures = (np.zeros((n_spins, n_samples)) for _ in range(3))
        self.scores = np.zeros((n_spins, n_spins))

    @property
    def ridges(self) -> Matrix:
        return np.array([1e-3 if self.fit_fields else 1e15, _RIDGE])

    def connect(self, pairs: Pairs) -> NDArray[np.intp]:
        """Take these pairs for the graph; gives the spins whose neighbours have changed, all of them the first time."""
        n_spins = len(self.spins)
        graph, old = _graph(pairs, n_spins), (self.indptr, self.indices, self.couplings, self.places, self.inverses)
        fresh = len(old[3]) == 0 or not self.states.any()
        self.pairs, self.indptr, self.indices = pairs, graph.indptr, graph.indices
        sizes = (np.diff(self.indptr) + 1) ** 2
        self.places = np.concatenate([[0], np.cumsum(sizes)])
        self.inverses, self.couplings = np.zeros(self.places[-1]), np.zeros(len(self.indices))
        changed = []
        for i in range(n_spins):
            mine, before = slice(*self.indptr[i : i + 2]), slice(*old[0][i : i + 2])
            if fresh or not np.array_equal(self.indices[mine], old[1][before]):
                changed.append(i)
            else:
                self.couplings[mine] = old[2][before]
                self.inverses[slice(*self.places[i : i + 2])] = old[4][slice(*old[3][i : i + 2])]
        spins = np.array(changed, dtype=np.intp)
        self._refit(spins)
        return spins

    def _refit(self, spins: NDArray[np.intp]) -> None:
        fixed = (self.spins, self.shares, self.indptr, self.indices, self.ridges)
        out = (self.fields, self.couplings, self.inverses, self.places, self.states, self.residuals, self.curvatures)
        with one_blas_thread():
            spread(lambda start, stop: [kernels.refit(i, i + 1, *fixed, *out) for i in spins[start:stop]], len(spins), chunk=8,
                   n_jobs=self.n_jobs)  # fmt: skip
        scale = np.sqrt(np.maximum(self.curvatures[spins].sum(axis=1), 1e-9))
        self.scores[spins] = self.residuals[spins] @ self.spins.T / scale[:, None]

    def deviates(self, pairs: Pairs) -> Matrix:
        """Deviates of single couplings, the mean of both directions; of clear edges, couplings over their standard errors."""
        found = self._clear(pairs)
        unclear = np.abs(found) < _CLEAR
        found[unclear] = self._tested(pairs[unclear])
        return found

    def _clear(self, pairs: Pairs) -> Matrix:
        """Directed couplings over their standard errors, the weaker of both directions; 0 for pairs outside the network."""
        n_spins = len(self.spins)
        rows = np.repeat(np.arange(n_spins), np.diff(self.indptr))
        inside = np.arange(len(self.indices)) - self.indptr[rows] + 1
        size = np.diff(self.indptr)[rows] + 1
        ratios = self.couplings / np.sqrt(self.inverses[self.places[rows] + inside * (size + 1)])
        table = scipy.sparse.csr_array((ratios, self.indices, self.indptr), shape=(n_spins, n_spins))
        if len(pairs) == 0 or len(ratios) == 0:
            return np.zeros(len(pairs))
        forth, back = (np.asarray(table[pairs[:, a], pairs[:, 1 - a]]).ravel() for a in (0, 1))
        return np.where(forth * back > 0, np.sign(forth) * np.minimum(np.abs(forth), np.abs(back)), 0.0)

    def _tested(self, pairs: Pairs) -> Matrix:
        both = np.concatenate([pairs, pairs[:, ::-1]])
        found = np.zeros(len(both))
        fixed = (self.spins, self.shares, self.indptr, self.indices, self.ridges, self.fields, self.couplings, self.inverses)
        rest = (self.places, self.states, self.residuals, self.curvatures, found)
        with one_blas_thread():
            spread(kernels.test_couplings, len(both), both, *fixed, *rest, chunk=32, n_jobs=self.n_jobs)
        return np.asarray((found[: len(pairs)] + found[len(pairs) :]) / 2)

    def undirected(self) -> tuple[Matrix, Matrix]:
        """Couplings of the pairs, means of both directions, and their standard errors."""
        n_spins = len(self.spins)
        rows = np.repeat(np.arange(n_spins), np.diff(self.indptr))
        keys = rows * n_spins + self.indices
        sides = np.column_stack([np.searchsorted(keys, self.pairs[:, a] * n_spins + self.pairs[:, 1 - a]) for a in (0, 1)])
        errors = np.zeros(len(self.pairs))
        fixed = (self.spins, self.indptr, self.indices, self.inverses, self.places, self.residuals, self.shares)
        spread(kernels.edge_errors, len(sides), sides, *fixed, errors, chunk=32, n_jobs=self.n_jobs)
        return self.couplings[sides].mean(axis=1), errors

    def directed(self) -> Matrix:
        """(n_spins, n_spins): row i the couplings of the regression of spin i."""
        shape = (len(self.spins), len(self.spins))
        return np.asarray(scipy.sparse.csr_array((self.couplings, self.indices, self.indptr), shape=shape).toarray())


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Pairs tested, in the network or not, and how sure of each."""

    pairs: Pairs
    inside: NDArray[np.bool_]
    deviates: Matrix
    chances: Matrix  # two-sided p-values
    shares: Matrix  # q-values, by Benjamini and Hochberg over all pairs of spins
    passes: NDArray[np.bool_]


def judge(network: Network, known: dict[int, float], level: float, control: str) -> Judged:
    """Every pair of the network, and those outside that look as if they might belong to it. `known` keeps deviates for later."""
    n_spins = len(network.spins)
    inside = network.pairs
    outside = (np.abs(network.scores + network.scores.T) > 2 * _LOOK) & ~np.eye(n_spins, dtype=bool)
    outside[tuple(inside.T)] = False
    pairs = np.concatenate([inside, np.argwhere(np.triu(outside, 1))])
    keys = pairs[:, 0] * n_spins + pairs[:, 1]
    new = np.array([key not in known for key in keys.tolist()], dtype=bool)
    known.update(zip(keys[new].tolist(), network.deviates(pairs[new]).tolist(), strict=True))
    deviates = np.array([known[key] for key in keys.tolist()])
    chances = np.asarray(2 * norm.sf(np.abs(deviates)))
    n_pairs = n_spins * (n_spins - 1) / 2
    order = np.argsort(chances)
    shares = np.empty(len(pairs))
    stepped = chances[order] * n_pairs / np.arange(1, len(pairs) + 1)
    shares[order] = np.minimum(np.minimum.accumulate(stepped[::-1])[::-1], 1.0)
    passes = shares <= level if control == "fdr" else chances * n_pairs <= level
    return Judged(pairs, np.arange(len(pairs)) < len(inside), deviates, chances, shares, passes)


def settle(network: Network, normal: NormalEquations, level: float, control: str) -> tuple[int, Judged]:
    """Let in what passes and out what fails, the clearest cases of each neighbourhood first, until nothing moves."""
    n_spins = len(network.spins)
    known: dict[int, float] = {}
    moves: dict[int, int] = {}
    rounds = 0
    while True:
        rounds += 1
        judged = judge(network, known, level, control)
        comes, goes = judged.passes & ~judged.inside, ~judged.passes & judged.inside
        keys = judged.pairs[:, 0] * n_spins + judged.pairs[:, 1]
        comes &= np.array([moves.get(key, 0) < 2 for key in keys.tolist()], dtype=bool)  # no going round in circles
        comes[comes] = _leads(judged.pairs[comes], np.abs(judged.deviates[comes]), n_spins)
        goes[goes] = _leads(judged.pairs[goes], -np.abs(judged.deviates[goes]), n_spins)
        n_moves = int(comes.sum() + goes.sum())
        if n_moves == 0:
            return rounds, judged
        if rounds == _MOST_ROUNDS:
            advice = "the network may be too dense to be told apart with these rows; trust strong edges only"
            warn(NotConvergedWarning(what="judging edges", residual=n_moves, allowed=0, advice=advice))
            return rounds, judged
        for key in (judged.pairs[comes, 0] * n_spins + judged.pairs[comes, 1]).tolist():
            moves[key] = moves.get(key, 0) + 1
        pairs = judged.pairs[(judged.inside & ~goes) | comes]
        changed = network.connect(pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])
        touched = np.zeros(n_spins, dtype=bool)
        touched[changed] = True
        for key in [key for key in known if touched[key // n_spins] or touched[key % n_spins]]:
            del known[key]


def _leads(pairs: Pairs, sizes: Matrix, n_spins: int) -> NDArray[np.bool_]:
    """Whether no other of these pairs that shares a spin with it is larger."""
    largest = np.full(n_spins, -np.inf)
    for side in (0, 1):
        np.maximum.at(largest, pairs[:, side], sizes)
    return np.asarray((sizes >= largest[pairs[:, 0]]) & (sizes >= largest[pairs[:, 1]]))


def _graph(pairs: Pairs, n_spins: int) -> Any:
    """Neighbours of each spin, CSR with sorted indices."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    graph = scipy.sparse.csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(n_spins, n_spins))
    graph.sort_indices()
    graph.indptr, graph.indices = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    return graph


def _places_of(pairs: Pairs, wanted: Pairs, n_spins: int) -> NDArray[np.intp]:
    """Where the wanted pairs stand among pairs, which are sorted."""
    return np.searchsorted(pairs[:, 0] * n_spins + pairs[:, 1], wanted[:, 0] * n_spins + wanted[:, 1])
