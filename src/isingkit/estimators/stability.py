"""Stability: what random halves of the rows would have found."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.resampling import over_resamples, subsample
from isingkit.exceptions import IsingkitError
from isingkit.notebook import Summary
from isingkit.packing import PackedSpins
from isingkit.result_table import ResultTable, frozen
from isingkit.spins import Names, RowWeights


@dataclass(frozen=True, slots=True, eq=False)
class FoundEdges:
    """A network, and which of its pairs are edges."""

    fitted: FittedGraph
    is_edge: BoolArray  # (n_pairs,)

    @property
    def keys(self) -> IntArray:
        """Of the edges, sorted."""
        return self.fitted.graph.keys[self.is_edge]


Find = Callable[[PackedSpins, RowWeights | None], FoundEdges]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stability(Summary):
    """How often each edge is found in random halves of the rows, and intervals of couplings. Prints
    as a table.

    `edges` is a structured array, the most frequent first: source, target, frequency, coupling,
    low, high. Pairs that were found in some half but not in all rows have no coupling (nan). Half
    the rows vary about all of them as much as all vary about the truth, so that the spread of
    couplings over halves gives 95 percent intervals without any formula.
    """

    edges: ResultTable
    n_resamples: int

    def to_pandas(self) -> Any:
        """Of `edges` a pandas.DataFrame."""
        return self.edges.to_pandas()

    def to_polars(self) -> Any:
        """Of `edges` a polars.DataFrame."""
        return self.edges.to_polars()

    def __str__(self) -> str:
        return f"{self._words()}\n\n{self.edges}"

    def _repr_html_(self) -> str:
        return f"<p>{self._words()}</p>{self.edges._repr_html_()}"

    def _words(self) -> str:
        return f"edges found in {self.n_resamples} random halves of the rows"


def stability_of(
    packed: PackedSpins,
    weights: RowWeights | None,
    find: Find,
    n_resamples: int,
    rng: Generator,
    n_jobs: int | None,
    progress: bool,
) -> Stability:
    """`find` on all rows and on halves; the same for any number of threads, and on a cluster."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself warns
        whole = find(packed, weights)
    shared = _Shared(packed, weights, find, whole.fitted.graph.pairs)
    found = over_resamples(_refit, shared, rng.spawn(n_resamples), "half", n_jobs, progress)
    keys, couplings = zip(*found, strict=True)
    table = _table(whole, np.concatenate(keys), np.array(couplings), packed.names)
    return Stability(table, n_resamples)


@dataclass(frozen=True, slots=True, eq=False)
class _Shared:
    """What every half is drawn from and asked for."""

    packed: PackedSpins
    weights: RowWeights | None
    find: Find
    pairs: IntArray  # (n_pairs, 2): of the network of all rows


def _refit(shared: _Shared, rng: Generator) -> tuple[IntArray, FloatArray]:
    """Keys of the edges that one half finds, and its couplings in the network of all rows."""
    keys = np.empty(0, dtype=np.int64)
    try:
        half, weights = subsample(shared.packed, shared.weights, 0.5, rng)
        found = shared.find(half, None if weights is None else weights.scaled())
        keys = found.keys
        same, _ = found.fitted.refit(shared.pairs)
        return keys, same.firth_refit().couplings_and_errors()[0]
    except IsingkitError:  # nothing can be said from this half
        return keys, np.full(len(shared.pairs), np.nan)


def _table(whole: FoundEdges, keys: IntArray, couplings: FloatArray, names: Names) -> ResultTable:
    own = whole.keys
    n_spins = whole.fitted.n_spins
    found, times = np.unique(np.concatenate([keys, own]), return_counts=True)
    times -= np.isin(found, own)  # counted once too often
    labels = np.array(names, dtype=np.str_)
    columns: list[tuple[str, Any]] = [(name, labels.dtype) for name in ("source", "target")]
    numbers = [(name, np.float64) for name in ("frequency", "coupling", "low", "high")]
    table = np.empty(len(found), dtype=columns + numbers)
    table["source"] = labels[found // n_spins]
    table["target"] = labels[found % n_spins]
    table["frequency"] = times / len(couplings)
    for name in ("coupling", "low", "high"):
        table[name] = np.nan
    place = np.searchsorted(found, own)
    estimates = whole.fitted.firth_refit().couplings_and_errors()[0][whole.is_edge]
    is_complete = ~np.isnan(couplings).any(axis=1)
    complete = couplings[is_complete][:, whole.is_edge]
    if len(own) and len(complete):
        off = np.quantile(np.abs(complete - estimates), 0.95, axis=0)
        table["low"][place] = estimates - off
        table["high"][place] = estimates + off
    table["coupling"][place] = estimates
    order = np.lexsort((table["target"], table["source"], -table["frequency"]))
    return frozen(table[order])
