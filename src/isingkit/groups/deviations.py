"""Deviations: by how much the coupling of each pair in each group differs from that of all rows,
to first order, as a sum over rows: docs/design/groups.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray, Pairs
from isingkit.estimators.sizes import CELLS
from isingkit.groups.grouped_rows import GroupedRows
from isingkit.groups.regression import Regression, regress

_FIELD_RIDGE = 1e-3  # keeps fields of columns finite that are constant in a group
_COUPLING_RIDGE = 0.25
_SINGULAR = 1e-3  # added to sums of squares over rows
_LEAST_INFORMATION = 1.0  # of a group on a coupling: less would be an error above 1
_LEAST_LEFT = 0.2  # of a residual's variance, beside its leverage


@dataclass(frozen=True, slots=True, eq=False)
class Deviations:
    """Of some pairs. The mean of `influences` over the rows of a group is the coupling there less
    that of all rows, given fields and all other couplings of the group.
    """

    pairs: Pairs
    influences: FloatArray  # (n_rows, n_pairs)
    # the same with residuals as large as errors are, and mean 0 in each group
    errors: FloatArray  # (n_rows, n_pairs)
    # (n_groups, n_pairs): variances of the means that the model expects of independent rows
    expected: FloatArray
    is_testable: BoolArray  # (n_pairs,): whether every group tells something of the pair
    n_fitted: FloatArray  # (n_pairs,): coefficients of a regression, mean of both spins


@dataclass(frozen=True, slots=True, eq=False)
class PooledFit:
    """Regressions of all spins on their neighbours in one graph, couplings the same in all groups;
    with free fields, these are each group's own.
    """

    rows: GroupedRows
    neighbours: tuple[IntArray, ...]  # of each spin
    regressions: tuple[Regression, ...]  # of each spin
    couplings: FloatArray  # (n_spins, n_spins): row i those of spin i; 0 of pairs that differ
    # rows within which spins are cleared of others: of each group, or of all
    parts: tuple[IntArray, ...]

    def cleared(self, spin: int, others: IntArray) -> FloatArray:
        """(n_rows, n_others): other spins, cleared of all else that explains this one.

        That is, of the field, covariates and neighbours, by least squares with the weights of the
        regression, so that errors in their effects do not matter to first order.
        """
        spins = self.rows.spins
        near = self.neighbours[spin]
        variances = self.regressions[spin].variances
        ones = np.ones((len(spins), 1))
        design = np.concatenate([ones, self.rows.covariates, spins[:, near]], axis=1)
        ridge = _SINGULAR * np.eye(design.shape[1])
        _, columns, places = np.intersect1d(others, near, return_indices=True)
        places += design.shape[1] - len(near)
        cleared = spins[:, others]
        for part in self.parts:
            here = design[part]
            weighted = here * variances[part, None]
            inverse = np.linalg.inv(weighted.T @ here + ridge)
            explained = inverse @ (weighted.T @ cleared[part])
            cleared[part] -= here @ explained
            # neighbours are cleared of all others, but not of themselves
            own = inverse[:, places] / inverse[places, places]
            cleared[part[:, None], columns] = here @ own
        return cleared


def pooled_fit(
    rows: GroupedRows, graph: BoolArray, fields_are_free: bool, differs: BoolArray
) -> PooledFit:
    """Regressions in a graph, (n_spins, n_spins) symmetric.

    differs: the same of pairs that have a coupling of their own in each group
    """
    base = rows.indicators if fields_are_free else np.ones((len(rows.spins), 1))
    base = np.concatenate([base, rows.covariates], axis=1)
    neighbours = tuple(np.flatnonzero(near) for near in graph | differs)
    couplings = np.zeros(graph.shape)
    regressions = []
    for spin in range(len(graph)):
        shared = np.flatnonzero(graph[spin] & ~differs[spin])
        different = np.flatnonzero(differs[spin])
        in_groups = [rows.indicators * rows.spins[:, [k]] for k in different]
        design = np.concatenate([base, rows.spins[:, shared], *in_groups], axis=1)
        first = base.shape[1]
        ridges = np.full(design.shape[1], _COUPLING_RIDGE)
        ridges[:first] = _FIELD_RIDGE
        found = regress(rows.spins[:, spin], design, ridges, rows.weights)
        couplings[spin, shared] = found.coefficients[first : first + len(shared)]
        regressions.append(found)
    parts = [np.arange(len(rows.spins))]
    if fields_are_free:
        parts = [rows.members(group) for group in range(rows.n_groups)]
    return PooledFit(rows, neighbours, tuple(regressions), couplings, tuple(parts))


def deviations(fit: PooledFit) -> Iterator[Deviations]:
    """Those of all pairs, some at a time."""
    spins = np.arange(fit.rows.packed.n_spins)
    width = max(1, int(np.sqrt(CELLS / len(fit.rows.spins))))
    n_blocks = -(-len(spins) // width)
    blocks = np.array_split(spins, n_blocks)
    for left, right in combinations_with_replacement(blocks, 2):
        if left[0] < right[-1]:
            yield _deviations_between(fit, left, right)


def _deviations_between(fit: PooledFit, left: IntArray, right: IntArray) -> Deviations:
    """Those of pairs of a spin on the left and a later one on the right."""
    is_later = left[:, None] < right
    pairs = np.argwhere(is_later) + np.array([left[0], right[0]])
    forth = _Side(fit, pairs, _cleared(fit, left, right)[is_later])
    cleared = _cleared(fit, right, left).swapaxes(0, 1)
    back = _Side(fit, pairs[:, ::-1], cleared[is_later])
    groups = fit.rows.indicators.T
    sizes = fit.rows.sizes[:, None]
    information = _sums_in_parts(forth.information + back.information, fit, groups)
    is_testable = np.asarray((information >= _LEAST_INFORMATION).all(axis=0))
    # rows that say nothing would say it with infinite weight
    scales = np.where(is_testable, sizes / np.maximum(information, _LEAST_INFORMATION), 0.0)
    of_rows = scales[fit.rows.groups]
    scores = forth.scores + back.scores
    errors = (forth.errors + back.errors).T * of_rows
    squares = (groups * fit.rows.weights**2) @ _expected_squares(forth, back).T
    n_fitted = np.array([len(one.coefficients) for one in fit.regressions])
    centred = errors - _means_of_parts(errors, fit)
    expected = squares * (scales / sizes) ** 2
    return Deviations(
        pairs,
        influences=scores.T * of_rows,
        errors=centred,
        expected=expected,
        is_testable=is_testable,
        n_fitted=n_fitted[pairs].mean(axis=1),
    )


def _cleared(fit: PooledFit, some: IntArray, others: IntArray) -> FloatArray:
    """(n_some, n_others, n_rows): others, cleared of what explains each of some."""
    return np.array([fit.cleared(spin, others).T for spin in some.tolist()])


def _sums_in_parts(values: FloatArray, fit: PooledFit, groups: FloatArray) -> FloatArray:
    """(n_groups, n_pairs): sums over groups of values, (n_pairs, n_rows); where all rows are one
    part, each group's share of their sum.
    """
    if len(fit.parts) > 1:
        return np.asarray(groups @ values.T)
    shares = fit.rows.sizes / fit.rows.sizes.sum()
    return np.asarray(shares[:, None] * values.sum(axis=1))


def _means_of_parts(values: FloatArray, fit: PooledFit) -> FloatArray:
    """(n_rows, n_pairs): of each row, the mean of values over its part."""
    means = np.empty_like(values)
    for part in fit.parts:
        means[part] = values[part].mean(axis=0)
    return means


class _Side:
    """One direction of pairs, first spins explained by second ones: (n_pairs, n_rows) arrays."""

    def __init__(self, fit: PooledFit, pairs: Pairs, cleared: FloatArray) -> None:
        own, other = pairs.T
        regressions = [fit.regressions[spin] for spin in own.tolist()]
        self.cleared = cleared
        self.others = fit.rows.spins.T[other]
        self.couplings = fit.couplings[own, other][:, None]
        variances = np.array([one.variances for one in regressions])
        self.information = variances * cleared**2
        fields = np.array([one.fields for one in regressions])
        self.fields = fields - self.couplings * self.others  # without the other spin
        residuals = np.array([one.residuals for one in regressions])
        leverages = np.array([one.leverages for one in regressions])
        self.scores = residuals * cleared
        left = np.maximum(1 - leverages, _LEAST_LEFT)
        self.errors = self.scores / np.sqrt(left)

    def score_at(self, own: int, other: int) -> FloatArray:
        """The score where the two spins had these values."""
        residuals = own - np.tanh(self.fields + other * self.couplings)
        return np.asarray(residuals * (self.cleared + other - self.others))


def _expected_squares(forth: _Side, back: _Side) -> FloatArray:
    """(n_pairs, n_rows): of the scores of both sides, given all spins but the two."""
    coupling = (forth.couplings + back.couplings) / 2
    total = np.zeros_like(forth.fields)
    squares = np.zeros_like(forth.fields)
    for a, b in product((-1, 1), repeat=2):
        energy = a * forth.fields + b * back.fields + a * b * coupling
        weight = np.exp(energy)
        score = forth.score_at(a, b) + back.score_at(b, a)
        total += weight
        squares += weight * score**2
    return np.asarray(squares / total)
