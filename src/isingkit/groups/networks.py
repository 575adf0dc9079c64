"""GroupNetworks: couplings of each group in one graph, from regressions of its own."""

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from isingkit.arrays import FloatArray, IntArray, Pairs
from isingkit.estimators.graph import graph_of, symmetric_matrix
from isingkit.groups.grouped_rows import GroupedRows
from isingkit.groups.regression import Regression, regress
from isingkit.model import IsingModel
from isingkit.spins import Names

_FIELD_RIDGE = 1e-3  # next to nothing: fields of columns that never change stay finite
_COUPLING_RIDGE = 0.05
_LEAST_LEFT = 0.2  # of a residual's variance, beside its leverage
_NOTHING = 1e-300
_MOST_FREEDOM = 1e9  # in place of infinity


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Of something that follows from couplings: in each group, and between the groups."""

    values: FloatArray  # (n_groups,)
    std_errors: FloatArray  # (n_groups,)
    difference: float  # second group less the first; of more groups, largest less smallest
    std_error: float  # of the difference
    freedom: float = np.inf  # degrees of freedom of the error: rows that it rests on

    @property
    def half_width(self) -> float:
        """Of the 95 percent interval of the difference."""
        quantile = float(stdtrit(min(self.freedom, _MOST_FREEDOM), 0.975))
        return quantile * self.std_error

    @property
    def low(self) -> float:
        """Lower end of that interval."""
        return self.difference - self.half_width

    @property
    def high(self) -> float:
        """Upper end of that interval."""
        return self.difference + self.half_width

    @property
    def z(self) -> float:
        """The difference over its standard error; 0 where both are 0."""
        return self.difference / self.std_error if self.std_error > 0 else 0.0

    @property
    def p_value(self) -> float:
        """Two-sided, of two groups; of more, of the two furthest apart as if there were no
        others.
        """
        return float(2 * stdtr(min(self.freedom, _MOST_FREEDOM), -abs(self.z)))


@dataclass(frozen=True, slots=True, eq=False)
class GroupNetworks:
    """Couplings of pairs in each group, and the influence of rows on them."""

    rows: GroupedRows
    pairs: Pairs
    couplings: FloatArray  # (n_groups, n_pairs)
    fields: FloatArray  # (n_groups, n_spins)
    influences: FloatArray  # (n_rows, n_pairs): of a row on the couplings of its group

    def estimates(self, weights: FloatArray) -> list[Estimate]:
        """Of sums of couplings with these weights, (n_pairs, n), or (n_groups, n_pairs, n) where
        groups weigh differently.
        """
        indicators = self.rows.indicators
        of_groups = np.broadcast_to(weights, (self.rows.n_groups, *weights.shape[-2:]))
        values = np.einsum("gp,gpn->gn", self.couplings, of_groups)
        effects = np.empty((len(indicators), weights.shape[-1]))
        for group, of_group in enumerate(of_groups):
            members = self.rows.members(group)
            effects[members] = self.influences[members] @ of_group
        errors = np.array([self._errors(effects, only)[0] for only in indicators.T])
        found = []
        for k, value in enumerate(values.T):
            low, high = ends_of(value)
            signs = indicators[:, high] - indicators[:, low]
            (error,), (freedom,) = self._errors(effects[:, [k]], signs)
            difference = float(value[high] - value[low])
            found.append(Estimate(value, errors[:, k], difference, error, freedom))
        return found

    def of_pairs(self) -> list[Estimate]:
        """Of the couplings themselves."""
        return self.estimates(np.eye(len(self.pairs)))

    def z_scores(self) -> FloatArray:
        """(n_groups, n_pairs): couplings over their standard errors."""
        errors = [one.std_errors for one in self.of_pairs()]
        by_group = np.reshape(errors, self.couplings.T.shape).T
        return np.asarray(self.couplings / np.maximum(by_group, _NOTHING))

    def _errors(self, effects: FloatArray, signs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n,) both: standard errors of sums of signed effects, (n_rows, n), of units that are
        independent, and their degrees of freedom, which are few where few units decide.
        """
        sums = effects * signs[:, None]
        factor = 1.0
        if self.rows.units is not None:
            units = self.rows.units
            signed = sums
            sums = np.zeros((int(units.max()) + 1, effects.shape[1]))
            np.add.at(sums, units, signed)
            n_units = len(np.unique(units[signs != 0]))
            factor = n_units / max(n_units - 1, 1)
        squares = (sums**2).sum(axis=0)
        fourths = (sums**4).sum(axis=0)
        freedom = squares**2 / np.maximum(fourths, _NOTHING)
        return np.sqrt(factor * squares), np.maximum(freedom, 1.0)

    def models(self) -> tuple[IsingModel, ...]:
        """The network of each group."""
        names = self.rows.packed.names
        return tuple(
            model_of_pairs(self.pairs, couplings, fields, names)
            for couplings, fields in zip(self.couplings, self.fields, strict=True)
        )


def model_of_pairs(
    pairs: Pairs, couplings: FloatArray, fields: FloatArray, names: Names
) -> IsingModel:
    """The model with these couplings of sorted pairs."""
    return IsingModel(symmetric_matrix(pairs, couplings, len(names)), fields, names)


def ends_of(values: FloatArray) -> tuple[int, int]:
    """Of two values the first and the second, of more the smallest and the largest."""
    if len(values) == 2:
        return 0, 1
    return int(values.argmin()), int(values.argmax())


def group_networks(rows: GroupedRows, pairs: Pairs) -> GroupNetworks:
    """Regressions of each group's spins on their neighbours among sorted pairs, without the bias of
    few rows. Couplings are means of both directions.
    """
    n_spins = rows.packed.n_spins
    graph = graph_of(pairs, n_spins)
    # of each directed coupling the place of its pair
    place = np.empty(len(graph.indices), dtype=np.int64)
    place[graph.sides] = np.arange(len(pairs))[:, None]
    couplings = np.zeros((rows.n_groups, len(pairs)))
    fields = np.zeros((rows.n_groups, n_spins))
    influences = np.zeros((len(rows.groups), len(pairs)))
    for group in range(rows.n_groups):
        members = rows.members(group)
        spins = rows.spins[members]
        directed = np.zeros(len(graph.indices))
        for spin in range(n_spins):
            here = slice(graph.indptr[spin], graph.indptr[spin + 1])
            near = graph.indices[here]
            found = _regressed(rows, members, spin, near)
            fields[group, spin] = found.coefficients[0]
            first = len(found.coefficients) - len(near)
            directed[here] = found.coefficients[first:]
            left = np.maximum(1 - found.leverages, _LEAST_LEFT)
            # residuals as if each row had been left out of its own regression
            effects = found.influences[:, first:] / left[:, None]
            influences[members[:, None], place[here]] += effects / 2
        couplings[group] = graph.mean_of_directions(directed)
        dropped = graph.matrix(directed - graph.symmetric(directed))
        fields[group] += dropped @ np.average(spins, axis=0, weights=rows.weights[members])
    return GroupNetworks(rows, pairs, couplings, fields, influences)


def _regressed(rows: GroupedRows, members: IntArray, spin: int, near: IntArray) -> Regression:
    """A spin on its neighbours, in one group."""
    spins, covariates = rows.spins[members], rows.covariates[members]
    ones = np.ones((len(spins), 1))
    varied = np.ptp(covariates, axis=0) > 0 if covariates.size else np.zeros(0, dtype=bool)
    design = np.concatenate([ones, covariates[:, varied], spins[:, near]], axis=1)
    sizes = (design.shape[1] - len(near), len(near))
    ridges = np.repeat([_FIELD_RIDGE, _COUPLING_RIDGE], sizes)
    return regress(spins[:, spin], design, ridges, rows.weights[members], firth=True)
