"""Centrality: how much each column of a network matters to the others."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.covariates import covariates_for
from isingkit.exceptions import SettingError, require_instance
from isingkit.fit_check import matched
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins, pack
from isingkit.result_table import ResultTable, as_table
from isingkit.spins import Spins, as_spins, row_weights

MEASURES = ("strength", "expected_influence", "betweenness", "closeness")
_SMALLEST = 1e-200  # of couplings; what is less is as long
_TIE = 1e-9  # of local fields, and between lengths of paths: what is less is rounding
_CHUNK = 4096  # rows at a time


def centrality(
    model: IsingModel,
    X: Any = None,
    *,
    sample_weight: Any = None,
    counts: Any = None,
    covariates: Any = None,
    communities: Any = None,
) -> ResultTable:
    r"""A table of the centralities of each column, in the order of the model.

    The definitions are those of R's qgraph, which bootnet takes; edges weigh |J|, and are 1 / |J|
    long. `strength` is the sum of |J| over a column's edges, `expected_influence` that of J
    (Robinaugh and others 2016), `betweenness` the number of shortest paths between two others
    that pass it, each pair counted in both directions, equal paths sharing (Freeman 1978, Opsahl
    and others 2010), and `closeness` 1 / sum of its distances to all others, 0 where one cannot be
    reached. IsingFit's weights are 4 J: with them, all but betweenness are four times as large.

    Given data there is `predictability`, too: of a column predicted from its neighbours,
    (accuracy - share of its commoner value) / (1 - that share), mgm's normalised accuracy (Haslbeck
    and Waldorp 2018). 0 is no better than always the commoner value, 1 is never wrong.

    Given the communities of columns there are those of bridges between them, too, as R's
    networktools has them (Jones, Ma and McNally 2021): `bridge_strength`, the sum of |J| over a
    column's edges to other communities, and `bridge_expected_influence`, that of J.

    Parameters
    ----------
    model
        Such as `model_` of a fitted estimator.
    X
        The data: anything that `fit` takes; values may be missing.
    sample_weight
        How much each row of X matters.
    counts
        How many equal samples each row of X stands for.
    covariates
        Of a model that was learnt with covariates: the same columns, of the rows of X.
    communities
        Which columns belong together (a scale, a region): one label for each, in the order of the
        model, or a dictionary of them by name.

    Examples
    --------
    >>> import isingkit as ik
    >>> chain = ik.IsingModel([[0, 0.5, 0], [0.5, 0, -0.2], [0, -0.2, 0]], names=["a", "b", "c"])
    >>> ik.centrality(chain)
    name  strength  expected_influence  betweenness  closeness
    a          0.5                 0.5            0     0.1111
    b          0.7                 0.3            2     0.1429
    c          0.2                -0.2            0    0.08333
    """
    require_instance(
        "model", model, IsingModel, "an IsingModel, such as model_ of a fitted estimator"
    )
    names = np.array(model.names, dtype=np.str_)
    columns: dict[str, Any] = {"name": names, **measures_of(model)}
    if communities is not None:
        columns |= _bridges(model, _labels(communities, model))
    if X is not None:
        is_read = isinstance(X, PackedSpins | Spins)
        spins = X if is_read else as_spins(X, missing="pairwise")  # without rows that are empty
        rows = None if is_read else spins.rows
        packed = matched(pack(spins), model)
        n_rows = packed.n_samples if rows is None else len(rows)
        weights = row_weights(sample_weight, counts, packed.n_samples, rows=rows)
        totals = np.ones(packed.n_samples) if weights is None else weights.totals
        values = covariates_for(model.effects, covariates, n_rows, rows, totals)
        shifts = np.zeros((packed.n_samples, 1))
        if values is not None and model.effects is not None:
            shifts = values @ model.effects.values.T
        columns["predictability"] = _predictability(model, packed, totals, shifts)
    return as_table(columns)


def measures_of(model: IsingModel) -> dict[str, FloatArray]:
    """By the name of a measure, (n_spins,): what it says of each spin."""
    strength = abs(model.couplings).sum(axis=0)
    expected_influence = model.couplings.sum(axis=0)
    return {
        "strength": np.asarray(strength),
        "expected_influence": np.asarray(expected_influence),
        "betweenness": betweenness(model),
        "closeness": _closeness(model),
    }


def _labels(communities: Any, model: IsingModel) -> list[Any]:
    """Of each spin of the model."""
    expected = f"a label for each of the {model.n_spins} columns"
    if isinstance(communities, Mapping):
        unknown = [name for name in model.names if name not in communities]
        if unknown:
            raise SettingError(
                setting="communities", value=f"none of '{unknown[0]}'", expected=expected
            )
        return [communities[name] for name in model.names]
    labels = list(communities)
    if len(labels) != model.n_spins:
        raise SettingError(setting="communities", value=f"{len(labels)} labels", expected=expected)
    return labels


def _bridges(model: IsingModel, labels: list[Any]) -> dict[str, FloatArray]:
    """By the name of a measure, (n_spins,): sums over edges to other communities."""
    codes = np.unique([str(label) for label in labels], return_inverse=True)[1]
    couplings = model.couplings.tocoo()
    is_bridge = codes[couplings.row] != codes[couplings.col]
    own, values = couplings.row[is_bridge], couplings.data[is_bridge]
    return {
        "bridge_strength": _sums(own, np.abs(values), model.n_spins),
        "bridge_expected_influence": _sums(own, values, model.n_spins),
    }


def _sums(places: IntArray, values: FloatArray, size: int) -> FloatArray:
    """(size,): sums of values by place."""
    return np.asarray(np.bincount(places, values, size), dtype=np.float64)


def betweenness(model: IsingModel) -> FloatArray:
    r"""(n_spins,): shortest paths between two others that pass a spin, in both directions.

    With \sigma_st shortest paths from s to t, of length d_st, it is the sum of
    \sigma_sv \sigma_vt / \sigma_st over s and t with d_sv + d_vt = d_st. That is to 9 digits:
    networkx compares all digits, the last of which rounding decides.
    """
    distances = _distances(model)
    n_paths = _n_shortest_paths(model, distances)
    is_pair = np.isfinite(distances) & ~np.eye(model.n_spins, dtype=bool)
    per_path = np.divide(1.0, n_paths, out=np.zeros_like(n_paths), where=is_pair)
    passing = np.zeros(model.n_spins)
    for v in range(model.n_spins):
        there = distances[:, v]
        is_on_path = _are_equal(there[:, None] + there, distances) & is_pair
        is_on_path[v] = False
        is_on_path[:, v] = False
        passing[v] = n_paths[v] @ (is_on_path * per_path) @ n_paths[v]
    return passing


def _n_shortest_paths(model: IsingModel, distances: FloatArray) -> FloatArray:
    """(n_spins, n_spins): how many paths are as short as the shortest."""
    n_paths = np.eye(model.n_spins)
    lengths = _lengths(model)
    starts = lengths.indptr
    for source, to in enumerate(distances):
        for v in np.argsort(to, kind="stable")[1:]:
            edges = slice(starts[v], starts[v + 1])
            before = lengths.indices[edges]
            is_shortest = _are_equal(to[before] + lengths.data[edges], to[v])
            n_paths[source, v] = n_paths[source, before[is_shortest]].sum()
    return n_paths


def _are_equal(lengths: FloatArray, shortest: FloatArray) -> BoolArray:
    return np.asarray(lengths <= shortest * (1 + _TIE))


def _lengths(model: IsingModel) -> csr_array:
    """(n_spins, n_spins): of edges."""
    lengths = model.couplings.copy()
    lengths.data = 1 / np.maximum(np.abs(lengths.data), _SMALLEST)
    return lengths


def _distances(model: IsingModel) -> FloatArray:
    """(n_spins, n_spins): lengths of shortest paths; infinite where there is none."""
    return np.asarray(dijkstra(_lengths(model), directed=False))


def _closeness(model: IsingModel) -> FloatArray:
    """(n_spins,): 1 / sum of the distances to all others."""
    sums = _distances(model).sum(axis=1)
    is_joined = (sums > 0) & np.isfinite(sums)
    return np.divide(1.0, sums, out=np.zeros_like(sums), where=is_joined)


def _predictability(
    model: IsingModel, packed: PackedSpins, totals: FloatArray, shifts: FloatArray
) -> FloatArray:
    """(n_spins,): normalised accuracy of each spin given the others; NaN where it never changes.

    Where neighbours say nothing, the commoner value is predicted.
    """
    weight_of = np.zeros((2, model.n_spins))  # of samples by the spin, -1 and +1
    right = np.zeros((2, model.n_spins))  # of these, where neighbours are for it
    undecided = np.zeros((2, model.n_spins))
    for start in range(0, packed.n_samples, _CHUNK):
        here = slice(start, start + _CHUNK)
        spins = np.asarray(packed[here], dtype=np.float64)
        local = spins @ model.couplings + model.fields + shifts[here]
        is_tie = np.abs(local) < _TIE
        for k, value in enumerate((-1, 1)):
            is_value = spins == value
            weight_of[k] += totals[here] @ is_value
            right[k] += totals[here] @ (is_value & ~is_tie & (value * local > 0))
            undecided[k] += totals[here] @ (is_value & is_tie)
    commoner = weight_of.argmax(axis=0)
    total = weight_of.sum(axis=0)
    known = right.sum(axis=0) + undecided[commoner, np.arange(model.n_spins)]
    rarer_weight = total - weight_of.max(axis=0)
    gain = known - weight_of.max(axis=0)
    return np.divide(gain, rarer_weight, out=np.full_like(gain, np.nan), where=rarer_weight > 0)
