"""A first guess of the rows needed, from theory: the power of tests of single edges."""

import warnings

import numpy as np
from numpy.random import Generator

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotEquilibratedError
from isingkit.model import IsingModel
from isingkit.plan.study import Question
from isingkit.theory.edge_power import edge_power, standardized_couplings
from isingkit.worlds.description import Description

_NETWORKS = 6  # of those described
_ROWS = 2000  # of each, for the Fisher information
_FIRST_BEYOND_THEORY = 200.0  # rows, where nothing can be drawn: the simulation will say why


def first_guess(
    question: Question, find: float, level: float, max_rows: int, rng: Generator
) -> float:
    """Rows with which tests at this level find this share of the edges, expected over edges."""
    n_networks = _NETWORKS if isinstance(question.planted, Description) else 1
    sizes = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(n_networks):
            truth = question.truth(rng)
            try:
                spins = np.asarray(truth.rows(_ROWS, rng), dtype=np.float64)
            except NotEquilibratedError:
                return _FIRST_BEYOND_THEORY
            sizes.append(_sizes(truth.model, spins, question.at_least))
    n_spins = question.n_spins
    n_pairs = n_networks * n_spins * (n_spins - 1) // 2
    power = edge_power(np.concatenate(sizes), n_pairs, find, level)
    return power.samples_for(find, max_rows)


def _sizes(model: IsingModel, spins: FloatArray, at_least: float) -> FloatArray:
    """(n_edges that count,): couplings in units of their standard errors from one row, each from
    both of its ends and averaged.
    """
    graph = model.couplings
    fields = spins @ graph + model.fields
    sizes = graph.copy()
    for spin in range(model.n_spins):
        entries = slice(graph.indptr[spin], graph.indptr[spin + 1])
        neighbours = graph.indices[entries]
        sizes.data[entries] = standardized_couplings(
            graph.data[entries], spins[:, neighbours], fields[:, spin]
        )
    both = (sizes + sizes.T) / 2
    upper = np.triu(np.abs(graph.toarray()) >= max(at_least, np.finfo(float).tiny), 1)
    return np.asarray(both.toarray()[upper])
