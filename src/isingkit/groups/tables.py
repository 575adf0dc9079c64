"""Tables of a comparison of groups."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from isingkit.arrays import BoolArray, FloatArray, Pairs
from isingkit.estimators.q_values import benjamini_hochberg
from isingkit.groups.grouped_rows import GroupedRows
from isingkit.groups.nct import NetworkComparisonTest
from isingkit.groups.networks import Estimate, GroupNetworks, ends_of
from isingkit.groups.relabelling import PairTests
from isingkit.result_table import ResultTable, as_table

_CRITICAL = float(ndtri(0.975))  # z of an edge that counts in the density of a group
_DIGITS = 9  # of statistics that tables are ordered by: rounding does not reach them
_MEASURES = ["global strength", "density"]


def _surest_first(table: ResultTable, statistics: FloatArray) -> ResultTable:
    """Rows in the order of falling size of statistics; equal ones stay in order."""
    sizes = np.round(np.abs(statistics), _DIGITS)
    order = np.argsort(-sizes, kind="stable")
    return table[order]  # type: ignore[no-any-return]


def signs_of(networks: GroupNetworks, pooled: FloatArray, differs: BoolArray) -> FloatArray:
    """(n_groups, n_pairs): what couplings count with in a strength.

    |J| of a coupling near 0 is its noise, which is larger in smaller groups: so signs are those of
    all rows together, but where a pair differs.
    """
    own = np.sign(networks.couplings)
    return np.where(differs | (pooled == 0), own, np.sign(pooled))


# Global strength and density


def overall_of(networks: GroupNetworks, signs: FloatArray) -> ResultTable:
    """Global strength and density of each group, and how they differ."""
    (strength,) = networks.estimates(signs[:, :, None])
    estimates = [strength, _density(networks)]
    p_values = [one.p_value for one in estimates]
    return _overall(networks.rows, estimates, p_values)


def overall_by_nct(rows: GroupedRows, found: NetworkComparisonTest) -> ResultTable:
    """The same of eLasso's networks; only strength is tested."""
    unknown = np.full(2, np.nan)
    strengths = np.abs(found.couplings).sum(axis=1)
    densities = (found.couplings != 0).mean(axis=1)
    estimates = [
        Estimate(values, unknown, float(values[1] - values[0]), np.nan)
        for values in (strengths, densities)
    ]
    return _overall(rows, estimates, [found.strength_p_value, np.nan])


def _overall(
    rows: GroupedRows, estimates: Sequence[Estimate], p_values: Sequence[float]
) -> ResultTable:
    columns: dict[str, Any] = {"measure": _MEASURES}
    columns |= _values(rows, estimates)
    for place, label in enumerate(rows.labels):
        columns[f"error_{label}"] = [one.std_errors[place] for one in estimates]
    columns |= _differences(estimates)
    columns["p_value"] = p_values
    return as_table(columns)


def _values(rows: GroupedRows, estimates: Sequence[Estimate]) -> dict[str, Any]:
    """The columns value_<label>."""
    return {
        f"value_{label}": [one.values[place] for one in estimates]
        for place, label in enumerate(rows.labels)
    }


def _differences(estimates: Sequence[Estimate]) -> dict[str, Any]:
    """The columns of differences and their intervals."""
    names = ("difference", "std_error", "low", "high")
    return {name: [getattr(one, name) for one in estimates] for name in names}


def _density(networks: GroupNetworks) -> Estimate:
    """Share of all pairs whose coupling is told from 0 in as many rows as the smallest group has.

    Where a group has more rows, z is as expected of fewer. Errors are those of repeating it: an
    edge with z near the critical value is found in one of two repetitions.
    """
    n_spins = networks.rows.packed.n_spins
    n_pairs = n_spins * (n_spins - 1) / 2
    sizes = networks.rows.effective_sizes
    scales = np.sqrt(sizes.min() / sizes)[:, None]
    z = scales * np.abs(networks.z_scores())
    spread = np.sqrt(np.maximum(1 - scales**2, 1e-12))
    found = _told_from_zero(z, spread)
    again = _told_from_zero(z, 1.0)
    shares = found.sum(axis=1) / n_pairs
    variances = (again * (1 - again)).sum(axis=1)
    std_errors = np.sqrt(variances) / n_pairs
    low, high = ends_of(shares)
    std_error = float(np.hypot(std_errors[low], std_errors[high]))
    return Estimate(shares, std_errors, float(shares[high] - shares[low]), std_error)


def _told_from_zero(z: FloatArray, spread: Any) -> FloatArray:
    """Probability that z and noise of this spread exceed the critical value."""
    above = ndtr((z - _CRITICAL) / spread)
    below = ndtr((-z - _CRITICAL) / spread)
    return np.asarray(above + below)


# Columns, and pairs of them


def centralities_of(networks: GroupNetworks, signs: FloatArray) -> ResultTable:
    """Strength and expected influence of each column, surest difference first."""
    names = networks.rows.packed.names
    spins = np.arange(len(names))
    first, second = networks.pairs.T
    touches = (first[:, None] == spins) | (second[:, None] == spins)
    strengths = networks.estimates(signs[:, :, None] * touches)
    influences = networks.estimates(touches.astype(np.float64))
    measures = np.repeat(["strength", "expected influence"], len(names))
    return _centralities(networks.rows, names * 2, measures, [*strengths, *influences])


def no_centralities(rows: GroupedRows) -> ResultTable:
    """A table of centralities without rows."""
    return _centralities(rows, (), np.empty(0, dtype=np.str_), [])


def _centralities(
    rows: GroupedRows, names: Sequence[str], measures: Any, estimates: Sequence[Estimate]
) -> ResultTable:
    columns: dict[str, Any] = {"name": np.array(names, dtype=np.str_), "measure": measures}
    columns |= _values(rows, estimates)
    columns |= _differences(estimates)
    z = np.array([one.z for one in estimates])
    p_values = np.array([one.p_value for one in estimates])
    columns |= {"z": z, "p_value": p_values, "q_value": benjamini_hochberg(p_values)}
    return _surest_first(as_table(columns), z)


def edges_of(
    networks: GroupNetworks, tests: PairTests, q_values: FloatArray, shown: BoolArray
) -> ResultTable:
    """The pairs of these networks, surest difference first."""
    columns = _pairs(networks.rows, networks.pairs, networks.couplings)
    estimates = networks.of_pairs()
    columns |= _differences(estimates)
    columns["z"] = tests.statistics[shown]
    columns["p_value"] = tests.family_p_values[shown]
    columns["q_value"] = q_values[shown]
    return _surest_first(as_table(columns), columns["z"])


def edges_by_nct(rows: GroupedRows, found: NetworkComparisonTest) -> ResultTable:
    """Pairs that are edges of a group's network; eLasso has no errors."""
    shown = (found.couplings != 0).any(axis=0)
    couplings = found.couplings[:, shown]
    unknown = np.full(couplings.shape[1], np.nan)
    columns = _pairs(rows, found.pairs[shown], couplings)
    columns["difference"] = couplings[1] - couplings[0]
    columns |= {"std_error": unknown, "low": unknown, "high": unknown, "z": unknown}
    columns["p_value"] = found.family_p_values[shown]
    columns["q_value"] = benjamini_hochberg(found.p_values)[shown]
    return _surest_first(as_table(columns), columns["difference"])


def _pairs(rows: GroupedRows, pairs: Pairs, couplings: FloatArray) -> dict[str, Any]:
    """The columns source, target and coupling_<label>."""
    names = np.array(rows.packed.names, dtype=np.str_)
    source, target = pairs.T
    columns: dict[str, Any] = {"source": names[source], "target": names[target]}
    for label, of_group in zip(rows.labels, couplings, strict=True):
        columns[f"coupling_{label}"] = of_group
    return columns
