"""Completed samples: missing cells drawn from a network, given the cells that are there."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.random import Generator

from isingkit._kernels.imputation import impute_rows
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import BoolArray, FloatArray
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.graph import Graph, graph_of
from isingkit.model import IsingModel

_ROWS = 64  # incomplete rows that a thread draws at a time
# the largest standard error that a coefficient is drawn with: where it is larger (spins that
# hardly change), the likelihood is nothing like a normal one
_LARGEST_ERROR = 1.0


def start(spins: FloatArray, observed: BoolArray, rng: Generator) -> FloatArray:
    """(n_spins, n_rows) spins whose missing cells are drawn from what is seen of their column.

    Parameters
    ----------
    spins
        (n_spins, n_rows): -1 and +1; missing cells hold anything.
    observed
        (n_spins, n_rows): which cells are not missing.
    rng
        The source of chance.
    """
    n_observed = observed.sum(axis=1)
    n_up = (observed & (spins > 0)).sum(axis=1)
    share_up = np.where(n_observed > 0, n_up / np.maximum(n_observed, 1), 0.5)
    column, row = np.nonzero(~observed)
    completed = spins.copy()
    is_up = rng.random(len(column)) < share_up[column]
    completed[column, row] = np.where(is_up, 1.0, -1.0)
    return completed


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Couplings and fields that cells are drawn from."""

    graph: Graph
    couplings: FloatArray  # (2 n_pairs,): directed, in the order of `graph.indices`
    fields: FloatArray  # (n_spins,)
    shifts: FloatArray  # (n_spins, n_rows): of fields; (n_spins, 0) where all rows have the same

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take it."""
        symmetric = self.graph.symmetric(self.couplings)
        return (*self.graph.csr, symmetric, self.fields, self.shifts)


def network_of(model: IsingModel, shifts: FloatArray) -> Network:
    """The network of a model whose fields are shifted row by row."""
    upper = scipy.sparse.triu(model.couplings, k=1).tocsr()
    pairs = np.column_stack(upper.nonzero()).astype(np.int64)
    return Network(graph_of(pairs, model.n_spins), model.couplings.data, model.fields, shifts)


def impute(
    spins: FloatArray,
    observed: BoolArray,
    network: "Network",
    n_sweeps: int,
    rng: Generator,
    n_jobs: int | None = None,
) -> FloatArray:
    r"""(n_spins, n_rows) spins whose missing cells were drawn anew, given those of their row.

    Heat bath: P(s_i = 1 | the others) = 1 / (1 + e^{-2 (h_i + \sum_j J_ij s_j)}), one missing cell
    of a row after the other, where J is the mean of both directions. A row has a random stream of
    its own: the same `rng` gives the same cells on any number of threads.

    Parameters
    ----------
    spins
        (n_spins, n_rows): -1 and +1; missing cells hold where the chain starts.
    observed
        (n_spins, n_rows): which cells are not missing.
    network
        What cells are drawn from.
    n_sweeps
        How often each missing cell is drawn.
    rng
        The source of chance.
    n_jobs
        Threads to use; None or -1 is all.
    """
    by_row, cells = np.nonzero(~observed.T)
    rows, n_missing = np.unique(by_row, return_counts=True)
    ends = np.concatenate([[0], np.cumsum(n_missing)])
    streams = rng.integers(2**64, size=(len(rows), 4), dtype=np.uint64)
    completed = np.array(spins, order="C")
    fixed = (rows, (ends, cells), network.arrays, n_sweeps, streams, completed)
    parallel_map(impute_rows, len(rows), *fixed, chunk=_ROWS, n_jobs=n_jobs)
    return completed


def drawn_network(fitted: FittedGraph, rng: Generator) -> Network:
    """A network drawn around estimates, its couplings alike in both directions.

    Couplings are those of rows in which both spins were observed, normal with their standard
    errors; fields go with them, normal with those of the regressions. Completions by drawn
    coefficients differ by what the data leave open, too, as Rubin's rules need it.
    """
    graph = fitted.graph
    directed, errors = fitted.observed_couplings_and_errors()
    noise = rng.standard_normal(len(errors)) * np.minimum(errors, _LARGEST_ERROR)
    couplings = np.empty(len(graph.indices))
    couplings[graph.sides] = (directed.mean(axis=1) + noise)[:, None]
    fields = fitted.fields_given(couplings)
    if fitted.fit_fields:
        field_errors = np.sqrt(fitted.inverses[fitted.places[:-1]])
        allowed = np.minimum(field_errors, _LARGEST_ERROR)
        fields += rng.standard_normal(len(fields)) * allowed
    return Network(graph, couplings, fields, fitted.shifts())
