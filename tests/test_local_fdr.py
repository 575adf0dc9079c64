"""Local false discovery rates: which edges chance explains better than a coupling does."""

import networkx
import numpy as np
import pytest

import isingkit as ik
from isingkit.estimators.local_fdr import Evidence, SizeMixture, _grid, size_mixture

N_PAIRS = 1225  # of 50 spins
N_EDGES = 50


def evidence_of(z_scores):
    n_pairs = len(z_scores)
    return Evidence(np.asarray(z_scores), np.full(n_pairs, 30.0), np.ones((n_pairs, 2)))


def log_likelihood(evidence, mixture, n_pairs):
    """Of z-scores, less that of no coupling anywhere."""
    none = 1 / (1 + mixture.odds.sum())
    edge_odds = mixture.edge_odds(evidence)
    silent = n_pairs - len(evidence.z_scores)
    return np.log(none * (1 + edge_odds)).sum() + silent * np.log(none)


def test_odds_of_an_edge_are_bayes_rule_over_sizes_and_signs(rng):
    z_scores, precisions = rng.normal(size=7), rng.uniform(5, 20, 7)
    weights = rng.uniform(0.5, 2, (7, 2))
    mixture = SizeMixture(np.array([0.1, 0.4]), np.array([0.03, 0.01]))
    found = mixture.edge_odds(Evidence(z_scores, precisions, weights))
    for k in range(7):
        total = 0.0
        for size, odds in zip(mixture.sizes, mixture.odds, strict=True):
            for side, sign in enumerate((-1, 1)):
                mean = sign * size * precisions[k]
                ratio = np.exp((z_scores[k] ** 2 - (z_scores[k] - mean) ** 2) / 2)
                total += odds * weights[k, side] / 2 * ratio
        assert found[k] == pytest.approx(total, rel=1e-12)


def test_no_other_odds_make_z_scores_likelier(rng):
    """Odds of one size 3 percent larger or smaller lose; catches an error of that size."""
    sizes = np.array([0.1, 0.2, 0.3])
    means = np.concatenate([np.zeros(1000), np.full(120, 3.0), np.full(100, 9.0)])
    evidence = evidence_of(rng.normal(size=len(means)) + means)
    best = size_mixture(evidence, sizes, len(means))
    at_best = log_likelihood(evidence, best, len(means))
    for k in (0, 2):
        for factor in (0.97, 1.03):
            odds = best.odds.copy()
            odds[k] *= factor
            assert log_likelihood(evidence, SizeMixture(sizes, odds), len(means)) < at_best


def test_a_weak_pair_among_strong_edges_is_chance_unless_there_are_many(rng):
    """z = 3.3 is what noise reaches once in 1225 pairs; beside 20 more about 3.5 it is no noise."""
    strong = rng.normal(10, 1, N_EDGES)
    grid = np.geomspace(0.1, 0.4, 9)
    alone = np.append(strong, 3.3)
    odds = size_mixture(evidence_of(alone), grid, N_PAIRS).edge_odds(evidence_of(alone))
    assert 1 / (1 + odds[-1]) > 0.8
    several = np.concatenate([strong, rng.normal(3.5, 1, 20), [3.3]])
    odds = size_mixture(evidence_of(several), grid, N_PAIRS).edge_odds(evidence_of(several))
    assert 1 / (1 + odds[-1]) < 0.6
    clear = np.append(strong, 5.0)
    odds = size_mixture(evidence_of(clear), grid, N_PAIRS).edge_odds(evidence_of(clear))
    assert 1 / (1 + odds[-1]) < 0.05


def test_where_all_edges_are_clear_hardly_any_is_false():
    """Eight networks of 50 edges beyond doubt: at most 3 false edges, where the level leaves room
    for 21; without the rule there are 15, with it 1.
    """
    n_false = n_missed = 0
    for seed in range(8):
        graph = networkx.gnm_random_graph(50, N_EDGES, seed=seed)
        truth = ik.from_graph(graph, coupling=0.35, random_state=seed)
        fit = ik.AutoIsing().fit(ik.sample(truth, n_samples=1000, random_state=seed))
        scores = ik.score(fit.model_, truth)
        n_false += scores.false_positives
        n_missed += scores.false_negatives
        assert (fit.rejected_["q_value"] > 0.05).all()
    assert n_false <= 3
    assert n_missed == 0


def test_sizes_that_are_tried_go_from_the_least_to_the_largest_even_where_one_is_zero():
    """Seen to overflow."""
    for sizes, least in ((np.array([0.2, 0.5]), 0.2), (np.array([0.0, 0.5]), 0.0005)):
        found = _grid(sizes)
        np.testing.assert_allclose(found[[0, -1]], [least, 0.5])
        assert (np.diff(found) > 0).all()
