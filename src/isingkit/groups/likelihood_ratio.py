"""LikelihoodRatios: one coupling of two spins in each group against one for all groups, given their
neighbours: docs/design/groups.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtr

from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.groups.grouped_rows import GroupedRows

_FIELD_RIDGE = 1e-3  # keeps fields of columns finite that are constant in a group
_COUPLING_RIDGE = 0.25
_MOST_STEPS = 60
_LONGEST_STEP = 2.0
_MOST_HALVINGS = 20
_CONVERGED = 1e-7
_ROUNDING = 1e-12  # of a log likelihood
_NOTHING = 1e-300
_MOST_FITTED = 0.5  # of the rows: coefficients that variances are corrected for
_SMALLEST_ROOT = 0.5  # below it, the correction would be rounding
_RAREST = 1e-300
_MOST_FREEDOM = 1e9  # in place of infinity


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Two spins s and t in the rows of a group, where P(s, t) ~ exp(s Y a + t Z b + s t J).

    The last coefficient of (a, b, J) is the coupling.
    """

    products: FloatArray  # (n_rows, 3): s, t, and s t
    first: FloatArray  # Y: (n_rows, n): one, covariates, neighbours of s
    second: FloatArray  # Z: (n_rows, m): the same of t
    ridges: FloatArray  # (n + m + 1,): what is taken off is the sum of ridges b^2
    weights: FloatArray  # (n_rows,)

    def at(self, coefficients: FloatArray) -> "_Point":
        """The likelihood, and what follows from it, with these coefficients."""
        n = self.first.shape[1]
        f = self.first @ coefficients[:n]
        g = self.second @ coefficients[n:-1]
        coupling = coefficients[-1]
        energies = np.stack(
            [f + g + coupling, f - g - coupling, g - f - coupling, coupling - f - g]
        )
        largest = energies.max(axis=0)
        shares = np.exp(energies - largest)
        total = shares.sum(axis=0)
        shares /= total
        means = _SIGNS @ shares
        x, y, xy = self.products.T
        log_likelihoods = x * f + y * g + xy * coupling - largest - np.log(total)
        penalty = self.ridges @ coefficients**2
        value = float(self.weights @ log_likelihoods - penalty)
        return _Point(self, coefficients, value, means)


_SIGNS = np.array([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """A pair with coefficients."""

    pair: _Pair
    coefficients: FloatArray
    value: float  # penalised log likelihood
    means: FloatArray  # (3, n_rows): of s, t, and s t

    @property
    def residuals(self) -> FloatArray:
        """(3, n_rows)."""
        return self.pair.products.T - self.means

    def gradient(self) -> FloatArray:
        """Of the value."""
        first, second, both = self.pair.weights * self.residuals
        parts = [first @ self.pair.first, second @ self.pair.second, [both.sum()]]
        shrinks = 2 * self.pair.ridges * self.coefficients
        return np.concatenate(parts) - shrinks

    def covariances(self) -> list[FloatArray]:
        """Of rows: var s, var t, var st, cov(s, t), cov(s, st), cov(t, st)."""
        x, y, xy = self.means
        return [1 - x**2, 1 - y**2, 1 - xy**2, xy - x * y, y - x * xy, x - y * xy]

    def hessian(self) -> FloatArray:
        """Less the second derivatives of the value."""
        first, second = self.pair.first, self.pair.second
        weighted = [self.pair.weights * one for one in self.covariances()]
        x, y, xy, x_y, x_xy, y_xy = weighted
        n = first.shape[1]
        size = n + second.shape[1] + 1
        found = np.empty((size, size))
        found[:n, :n] = (first.T * x) @ first
        found[n:-1, n:-1] = (second.T * y) @ second
        found[:n, n:-1] = (first.T * x_y) @ second
        found[:n, -1] = x_xy @ first
        found[n:-1, -1] = y_xy @ second
        found[-1, -1] = xy.sum()
        lower = np.tril_indices(size, -1)
        found[lower] = found.T[lower]
        return found + 2 * np.diag(self.pair.ridges)


def _likeliest(pairs: Sequence[_Pair], start: Sequence[FloatArray]) -> list[_Point]:
    """Of groups, each with coefficients of its own but for one coupling that all share, by Newton's
    method; steps that lead down are halved.
    """
    points = [pair.at(one) for pair, one in zip(pairs, start, strict=True)]
    for _ in range(_MOST_STEPS):
        steps = _steps(points)
        longest = max(float(np.abs(step).max()) for step in steps)
        if longest < _CONVERGED:
            break
        length = min(1.0, _LONGEST_STEP / longest)
        points = _moved(points, [length * step for step in steps])
    return points


def _moved(points: list[_Point], steps: Sequence[FloatArray]) -> list[_Point]:
    """As far along the steps as the value rises."""
    value = sum(point.value for point in points)
    for halvings in range(_MOST_HALVINGS):
        found = [
            point.pair.at(point.coefficients + step / 2**halvings)
            for point, step in zip(points, steps, strict=True)
        ]
        if sum(point.value for point in found) >= value - _ROUNDING * abs(value):
            return found
    return points


def _steps(points: Sequence[_Point]) -> list[FloatArray]:
    """One step of Newton's: the shared coupling first, then all else given it."""
    slope = curvature = 0.0
    own = []
    for point in points:
        gradient = point.gradient()
        hessian = point.hessian()
        right = np.column_stack([gradient[:-1], hessian[:-1, -1]])
        free, follows = np.linalg.solve(hessian[:-1, :-1], right).T
        slope += gradient[-1] - hessian[-1, :-1] @ free
        curvature += hessian[-1, -1] - hessian[-1, :-1] @ follows
        own.append((free, follows))
    step = slope / curvature
    return [np.append(free - step * follows, step) for free, follows in own]


@dataclass(frozen=True, slots=True, eq=False)
class _Effects:
    """Of the rows of a group on its coupling, and variances of their sum."""

    rows: FloatArray  # (n_rows,)
    equal: float  # what the model expects of independent rows, weights as counts
    expected: float  # the same with weights as they are
    n_fitted: float  # coefficients, mean of both spins


def _effects(point: _Point) -> _Effects:
    pair = point.pair
    response = np.linalg.inv(point.hessian())[-1]
    n = pair.first.shape[1]
    x = pair.first @ response[:n]
    y = pair.second @ response[n:-1]
    xy = response[-1]
    first, second, both = point.residuals
    of_rows = pair.weights * (x * first + y * second + xy * both)
    a, b, c, a_b, a_c, b_c = point.covariances()
    squares = x**2 * a + y**2 * b + xy**2 * c
    squares += 2 * (x * y * a_b + x * xy * a_c + y * xy * b_c)
    equal = float(pair.weights @ squares)
    expected = float(pair.weights**2 @ squares)
    return _Effects(of_rows, equal, expected, (len(response) + 1) / 2)


class LikelihoodRatios:
    """Of pairs: how much likelier the rows are with a coupling in each group than with one for all,
    given all else, which is each group's own.
    """

    def __init__(self, rows: GroupedRows) -> None:
        self._rows = rows
        self._members = [rows.members(group) for group in range(rows.n_groups)]
        self._is_paired = rows.is_paired
        self._known: dict[tuple[Any, ...], float] = {}

    def roots(self, graph: BoolArray, pairs: Pairs) -> FloatArray:
        """(n_pairs,): standard normal where groups do not differ, and of more than two the root of
        chi-square; those with the same neighbours are known the second time.
        """
        neighbours = [np.flatnonzero(near) for near in graph]
        found = np.empty(len(pairs))
        for place, (s, t) in enumerate(pairs.tolist()):
            key = (s, t, graph[s].tobytes(), graph[t].tobytes())
            if key not in self._known:
                self._known[key] = self._root(neighbours, (s, t))
            found[place] = self._known[key]
        return found

    def _root(self, neighbours: Sequence[IntArray], pair: tuple[int, int]) -> float:
        pairs = [_pair_in(self._rows, neighbours, pair, some) for some in self._members]
        shared = _likeliest(pairs, [np.zeros_like(one.ridges) for one in pairs])
        apart = [
            _likeliest([one], [point.coefficients])[0]
            for one, point in zip(pairs, shared, strict=True)
        ]
        gain = sum(point.value for point in apart) - sum(point.value for point in shared)
        root = float(np.sqrt(max(0.0, 2 * gain)))
        spread = self._spread([_effects(point) for point in apart])
        if len(apart) > 2:
            return self._normal(root / spread.size, spread.freedom)
        first, second = apart
        difference = float(second.coefficients[-1] - first.coefficients[-1])
        better = _corrected(root, abs(difference), apart, shared)
        return float(np.sign(difference)) * self._normal(better / spread.size, spread.freedom)

    def _normal(self, root: float, freedom: float) -> float:
        """What is as rare by the normal distribution as this by Student's; of rows that belong
        together spreads are known but roughly.
        """
        if self._rows.units is None:
            return root
        rarity = max(float(stdtr(freedom, -root)), _RAREST)
        return min(root, -float(ndtri(rarity)))

    def _spread(self, effects: Sequence["_Effects"]) -> "_Spread":
        """Beyond that of independent rows of equal weight, which likelihoods take for granted."""
        equal = np.array([one.equal for one in effects])
        if self._is_paired:
            first, second = effects
            both = [replace(first, rows=-first.rows), second]
            found = self._variance(both, np.concatenate(self._members))
            return _Spread(float(np.sqrt(found.size / equal.sum())), found.freedom)
        parts = [
            self._variance([one], some) for one, some in zip(effects, self._members, strict=True)
        ]
        # of groups that tell much of the coupling the common one is theirs already
        share = 1 - (1 / equal) / (1 / equal).sum()
        sizes = np.array([one.size for one in parts]) / equal * share / (len(parts) - 1)
        freedoms = np.array([one.freedom for one in parts])
        freedom = sizes.sum() ** 2 / (sizes**2 / freedoms).sum()
        return _Spread(float(np.sqrt(sizes.sum())), float(freedom))

    def _variance(self, effects: Sequence["_Effects"], members: IntArray) -> "_Spread":
        """Of a sum of effects: that of rows, no less than the model expects, times what rows that
        belong together have in common.
        """
        of_rows = np.concatenate([one.rows for one in effects])
        squares = of_rows**2
        seen = max(float(squares.sum()), _NOTHING)
        in_common = _InCommon(1.0, _MOST_FREEDOM, len(of_rows))
        if self._rows.units is not None:
            in_common = _in_common(of_rows, squares, self._rows.units[members])
        n_fitted = float(np.mean([one.n_fitted for one in effects]))
        fitted = n_fitted * _crowding(self._rows.weights[members]) / in_common.n_units
        left = 1 - min(fitted, _MOST_FITTED)
        expected = sum(one.expected for one in effects)
        variance = in_common.factor * max(seen / left, expected)
        return _Spread(variance, in_common.freedom)


def _crowding(weights: FloatArray) -> float:
    """By how much more a fit follows the rows that variances rest on than rows on average: both
    grow with weights.
    """
    squares = weights**2
    return float(len(weights) * (weights @ squares) / (weights.sum() * squares.sum()))


@dataclass(frozen=True, slots=True)
class _InCommon:
    """By which factor units of rows vary more than rows."""

    factor: float
    freedom: float  # degrees of freedom that it is known with
    n_units: int


def _in_common(of_rows: FloatArray, squares: FloatArray, units: IntArray) -> _InCommon:
    codes = np.unique(units, return_inverse=True)[1]
    of_units = np.bincount(codes, of_rows) ** 2
    row_squares = np.bincount(codes, squares)
    total = max(float(of_units.sum()), _NOTHING)
    factor = total / max(float(squares.sum()), _NOTHING)
    off = of_units - factor * row_squares  # by what a unit moves the factor
    freedom = 2 * total**2 / max(float(off @ off), total**2 / _MOST_FREEDOM)
    return _InCommon(factor, max(freedom, 1.0), len(of_units))


@dataclass(frozen=True, slots=True)
class _Spread:
    """How large, and how many degrees of freedom it is known with."""

    size: float
    freedom: float


def _corrected(
    root: float, difference: float, apart: Sequence[_Point], shared: Sequence[_Point]
) -> float:
    """Barndorff-Nielsen's modified root, nearer to the normal distribution: what coefficients are
    fitted beside the difference makes roots too large, and few rows make them skewed.
    """
    if root < _SMALLEST_ROOT:
        return root
    hessians = [point.hessian() for point in apart]
    with_own = sum(float(np.linalg.slogdet(one)[1]) for one in hessians)
    wald = difference * np.exp((with_own - _log_determinant(shared)) / 2)
    return max(0.0, root + float(np.log(max(wald, _NOTHING) / root)) / root)


def _log_determinant(shared: Sequence[_Point]) -> float:
    """Of the information on all coefficients, one coupling for all groups."""
    total = curvature = 0.0
    for point in shared:
        hessian = point.hessian()
        others = hessian[:-1, :-1]
        mixed = hessian[:-1, -1]
        total += float(np.linalg.slogdet(others)[1])
        curvature += hessian[-1, -1] - mixed @ np.linalg.solve(others, mixed)
    return total + float(np.log(curvature))


def _pair_in(
    rows: GroupedRows, neighbours: Sequence[IntArray], pair: tuple[int, int], members: IntArray
) -> _Pair:
    """A pair in the rows of a group."""
    spins = rows.spins[members]
    base = np.concatenate([np.ones((len(members), 1)), rows.covariates[members]], axis=1)
    designs: list[FloatArray] = []
    ridges: list[float] = []
    for spin, other in (pair, pair[::-1]):
        near = neighbours[spin]
        near = near[near != other]
        designs.append(np.concatenate([base, spins[:, near]], axis=1))
        ridges += [_FIELD_RIDGE] * base.shape[1]
        ridges += [_COUPLING_RIDGE] * len(near)
    first, second = designs
    s, t = spins[:, list(pair)].T
    products = np.column_stack([s, t, s * t])
    all_ridges = np.array([*ridges, _COUPLING_RIDGE])
    return _Pair(products, first, second, all_ridges, rows.weights[members])
