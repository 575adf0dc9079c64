"""SizedEdges: which pairs of a network have couplings that are shown to exceed a size."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr, ndtri_exp, stdtr

from isingkit.arrays import BoolArray, FloatArray
from isingkit.estimators.edge_tests import PLAIN_FDR, EdgeTests, critical_z, precisions, test_edges
from isingkit.estimators.network_estimates import NetworkEstimates
from isingkit.estimators.network_search import Found

_LEAST_TAIL = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class SizedEdges:
    """Edges among the pairs of a network found: all of them, where any size will do."""

    found: Found
    control: str  # "fdr", PLAIN_FDR or "fwer"
    tests: EdgeTests  # of the pairs that were tested; those `inside` are edges
    couplings: FloatArray  # (n_tests,): of pairs that the network lacks, to first order
    errors: FloatArray  # (n_tests,): their standard errors

    @property
    def is_edge(self) -> BoolArray:
        """(n_pairs,): of the pairs of the network."""
        return self.tests.inside[self.found.selection.tests.inside]

    def directed(self, values: FloatArray) -> FloatArray:
        """Values of directed couplings, 0 where the pair is no edge."""
        graph = self.found.fitted.graph
        kept = np.zeros(len(values), dtype=np.bool_)
        kept[graph.sides] = self.is_edge[:, None]
        return np.where(kept, values, 0.0)

    def median_critical_z(self) -> float:
        """Of an edge of the median weight."""
        weights = self.tests.weights[self.tests.inside]
        median_weight = np.median(weights) if len(weights) else 1.0
        return float(self._critical_z(np.array(median_weight)))

    def margins(self) -> FloatArray:
        """(n_pairs,), of the network: by how much less z-scores of edges could be.

        An edge must be one of the network, and large enough.
        """
        found = self.found
        tests, settings = found.selection.tests, found.settings
        in_network = tests.inside
        weights, z_scores = tests.weights[in_network], tests.z_scores[in_network]
        rule = (settings.level, settings.control)
        in_search = critical_z(found.n_changing, len(weights), *rule, weights)
        pairs = found.fitted.graph.pairs
        of_network = found.tester.margins(found.fitted, pairs, z_scores, in_search)
        critical = self._critical_z(self.tests.weights[in_network])
        by_size = np.abs(self.tests.z_scores[in_network]) - critical
        return np.minimum(of_network, by_size)

    def _critical_z(self, weights: FloatArray) -> FloatArray:
        n_edges = int(self.tests.inside.sum())
        level, n_spins = self.found.settings.level, self.found.n_changing
        return critical_z(n_spins, n_edges, level, self.control, weights)


def sized_edges(
    found: Found, estimates: NetworkEstimates, at_least: float, control: str
) -> SizedEdges:
    """Pairs of the network whose |coupling| is shown to exceed `at_least`.

    All pairs of spins count as tested, as in the search. A pair must pass both that test and this
    one, so its p-value is the larger. Weights above 1 favour pairs of spins that have neighbours,
    and so do couplings too small to count: no pair has more than 1 here, nor is any pair left out
    of those that count as tested.
    """
    tests = found.selection.tests
    in_network = tests.inside
    errors = 1 / precisions(found.fitted, tests.pairs)
    couplings = tests.z_scores * errors
    couplings[in_network] = estimates.couplings
    errors[in_network] = estimates.errors
    if at_least == 0:
        return SizedEdges(found, control, tests, couplings, errors)
    control = PLAIN_FDR if control == "fdr" else control
    freedom = np.full(len(errors), np.inf)
    freedom[in_network] = estimates.freedom
    of_sizes = size_z_scores(couplings, errors, freedom, at_least)
    size = np.minimum(np.abs(tests.z_scores), of_sizes)
    beyond = np.sign(tests.z_scores) * size
    weights = np.minimum(tests.weights, 1.0)
    sized = test_edges(
        tests.pairs,
        beyond,
        weights,
        int(in_network.sum()),
        found.n_changing,
        found.settings.level,
        control,
    )
    sized = replace(sized, inside=in_network & sized.passes)
    return SizedEdges(found, control, sized, couplings, errors)


def size_z_scores(
    couplings: FloatArray, errors: FloatArray, freedom: FloatArray, at_least: float
) -> FloatArray:
    r"""z-scores whose two-sided p-values are those of the null |J| <= at_least.

    The largest probability under it of an estimate as far from 0 as the one seen, reached at
    |J| = a: P(T > (|\hat J| - a) / error) + P(T > (|\hat J| + a) / error). For a = 0 the usual
    two-sided test.
    """
    sizes, allowed = np.abs(couplings) / errors, at_least / errors
    near = _log_tail(sizes - allowed, freedom)
    far = _log_tail(sizes + allowed, freedom)
    log_p = np.logaddexp(near, far)
    return np.abs(ndtri_exp(np.minimum(log_p, 0.0) - np.log(2)))


def _log_tail(values: FloatArray, freedom: FloatArray) -> FloatArray:
    """log P(T > value) of Student's t, normal where degrees of freedom are infinite."""
    known = np.isinf(freedom)
    degrees = np.where(known, 1.0, freedom)
    by_student = np.maximum(stdtr(degrees, -values), _LEAST_TAIL)
    return np.where(known, log_ndtr(-values), np.log(by_student))
