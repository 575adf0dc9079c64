"""Centralities and their stability: against definitions written out, and exact counts."""

import itertools

import numpy as np
import pytest

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.report.contents import contents_of_model


def chains(couplings, i, j):
    """All simple paths from i to j with their lengths, shortest first."""
    n_spins = len(couplings)
    others = [k for k in range(n_spins) if k not in (i, j)]
    found = []
    for size in range(n_spins - 1):
        for between in itertools.permutations(others, size):
            steps = list(itertools.pairwise([i, *between, j]))
            if all(couplings[step] for step in steps):
                found.append((sum(1 / abs(couplings[step]) for step in steps), between))
    return sorted(found)


def plain_paths(couplings):
    """Betweenness and closeness by listing every path."""
    n_spins = len(couplings)
    passing = np.zeros(n_spins)
    distances = np.zeros((n_spins, n_spins))
    for i, j in itertools.permutations(range(n_spins), 2):
        paths = chains(couplings, i, j)
        distances[i, j] = paths[0][0] if paths else np.inf
        shortest = [between for length, between in paths if length < distances[i, j] * (1 + 1e-9)]
        for between in shortest:
            passing[list(between)] += 1 / len(shortest)
    return passing, 1 / distances.sum(axis=1)


@pytest.mark.parametrize("seed", range(6))
def test_centralities_are_those_of_all_paths_listed(seed):
    """Couplings of few sizes, so that shortest paths tie: seen to fail where the last digit of 1 /
    0.3 + 1 / 0.3 and of 1 / 0.15 decides.
    """
    rng = np.random.default_rng(seed)
    couplings = np.triu(rng.choice([0, 0, 0.3, -0.3, 0.7, 0.15], size=(6, 6)), 1)
    couplings += couplings.T
    table = ik.centrality(ik.IsingModel(couplings))
    betweenness, closeness = plain_paths(couplings)
    np.testing.assert_allclose(table["strength"], np.abs(couplings).sum(axis=0))
    np.testing.assert_allclose(table["expected_influence"], couplings.sum(axis=0), atol=1e-15)
    np.testing.assert_allclose(table["betweenness"], betweenness)
    np.testing.assert_allclose(table["closeness"], closeness)


def test_the_report_has_betweenness_as_a_share_of_pairs():
    model = ik.random_regular(n_spins=12, degree=3, coupling=0.3, random_state=0)
    shares = [spin["betweenness"] for spin in contents_of_model(model, "a model").spins]
    np.testing.assert_allclose(ik.centrality(model)["betweenness"], np.array(shares) * 11 * 10)


def test_predictability_is_the_accuracy_beyond_that_of_the_commoner_value():
    """a and b agree in 8 of 10 rows, where a is +1 in 6; c is alone, d never changes. Repeated
    rows, counts and missing values give the same.
    """
    model = ik.IsingModel(
        [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], names=["a", "b", "c", "d"]
    )
    rows = np.array([[1, 1, 1, 1], [1, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]])
    counts = np.array([5, 1, 3, 1])
    spins = ik.as_spins(rows, mapping=[(0, 1)] * 4)
    expected = [(0.8 - 0.6) / 0.4, (0.8 - 0.6) / 0.4, 0, np.nan]
    found = ik.centrality(model, spins, counts=counts)["predictability"]
    np.testing.assert_allclose(found, expected)
    repeated = ik.as_spins(np.repeat(rows, counts, axis=0), mapping=[(0, 1)] * 4)
    np.testing.assert_allclose(ik.centrality(model, repeated)["predictability"], expected)
    with_gap = np.vstack([np.repeat(rows, counts, axis=0), [np.nan, np.nan, 1, 1]])
    gaps = ik.as_spins(with_gap, mapping=[(0, 1)] * 4, missing="pairwise")
    np.testing.assert_allclose(ik.centrality(model, gaps)["predictability"], expected)


def test_centrality_asks_for_a_model():
    with pytest.raises(ex.SettingError, match="model_ of a fitted estimator"):
        ik.centrality(ik.RidgeIsing())
