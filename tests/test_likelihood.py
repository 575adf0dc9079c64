"""Mean field and maximum likelihood: against enumeration, a plain minimiser, closed forms and
published numbers.
"""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

import isingkit as ik
import reference
from isingkit import exceptions as ex

METHODS = ["naive", "tap", "bethe", "sessak-monasson", "independent-pair"]


def fitted(estimator, couplings, fields):
    """A fit to the exact moments: all states, weighted by their probabilities."""
    states, shares = reference.probabilities(couplings, fields)
    return estimator.fit(states, sample_weight=shares)


@pytest.mark.parametrize("with_fields", [True, False])
def test_bethe_is_exact_on_trees(rng, with_fields):
    tree = ik.random_tree(n_spins=10, coupling=0.7, random_state=2)
    couplings = tree.couplings.toarray() * rng.uniform(0.5, 1.5, (10, 10))
    couplings = np.triu(couplings) + np.triu(couplings).T
    fields = rng.normal(0, 0.5, 10) * with_fields
    fit = fitted(
        ik.MeanFieldIsing(method="bethe", deflate=False, fit_fields=with_fields), couplings, fields
    )
    np.testing.assert_allclose(fit.estimates_, couplings, atol=1e-10)
    np.testing.assert_allclose(fit.intercepts_, fields, atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_mean_field_equals_the_plain_reference(method, rng):
    couplings = np.triu(rng.normal(0, 0.15, (7, 7)), 1)
    couplings, fields = couplings + couplings.T, rng.normal(0, 0.4, 7)
    states, shares = reference.probabilities(couplings, fields)
    means = shares @ states
    covariance = states.T @ (shares[:, None] * states) - np.outer(means, means)
    fit = fitted(ik.MeanFieldIsing(method=method, deflate=False), couplings, fields)
    np.testing.assert_allclose(
        fit.estimates_, reference.mean_field_couplings(method, means, covariance), atol=1e-9
    )


@pytest.mark.parametrize(
    ("method", "with_fields", "order"),
    [
        ("naive", True, 2),
        ("naive", False, 3),
        ("tap", True, 3),
        ("tap", False, 3),
        ("bethe", True, 3),
        ("bethe", False, 4),
        ("sessak-monasson", True, 4),
        ("sessak-monasson", False, 5),
        ("independent-pair", True, 2),
        ("independent-pair", False, 2),
    ],
)
def test_errors_of_mean_field_fall_by_their_order_when_couplings_are_halved(
    method, with_fields, order
):
    rng = np.random.default_rng(5)
    strengths, fields = np.triu(rng.normal(0, 1, (7, 7)), 1), rng.normal(0, 0.5, 7) * with_fields
    errors = []
    for scale in (0.02, 0.01):
        couplings = scale * (strengths + strengths.T)
        fit = fitted(
            ik.MeanFieldIsing(method=method, deflate=False, fit_fields=with_fields),
            couplings,
            fields,
        )
        errors.append(np.abs(fit.estimates_ - couplings).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.35)


def test_two_spins_are_their_own_pair():
    couplings, fields = np.array([[0, 0.8], [0.8, 0]]), np.array([0.3, -0.6])
    fit = fitted(ik.MeanFieldIsing(method="independent-pair"), couplings, fields)
    np.testing.assert_allclose(fit.estimates_, couplings, atol=1e-12)
    np.testing.assert_allclose(fit.intercepts_, fields, atol=1e-12)


def test_deflation_takes_off_what_few_samples_add():
    """N = 50, M = 200, 60 worlds: the mean strength of true couplings is right with it and a third
    too large without.
    """
    means = {True: [], False: []}
    for seed in range(60):
        truth = ik.random_regular(n_spins=50, degree=3, coupling=0.3, random_state=seed)
        samples = ik.sample(truth, n_samples=200, random_state=seed)
        for deflate in means:
            fit = ik.MeanFieldIsing(method="bethe", deflate=deflate).fit(samples)
            true = truth.couplings.toarray()
            means[deflate].append((fit.estimates_ * np.sign(true))[true != 0].mean())
    assert np.mean(means[True]) == pytest.approx(0.3, rel=0.05)
    assert np.mean(means[False]) > 1.2 * np.mean(means[True])


def test_pairs_without_a_mean_field_answer_are_named_and_stay_finite():
    """Five spins of which nearly always one is down, hardly ever two."""
    one_down = 1 - 2 * np.eye(5, dtype=int)
    two_down = [one_down[i] * one_down[j] for i in range(5) for j in range(i)]
    table = np.vstack([np.repeat(one_down, 18, axis=0), two_down, np.ones((10, 5), dtype=int)])
    with pytest.warns(ex.NoMeanFieldWarning, match="method 'tap' has no answer for 'x0' - 'x1'"):
        fit = ik.MeanFieldIsing(method="tap").fit(table)
    np.testing.assert_allclose(
        fit.estimates_, ik.MeanFieldIsing(method="independent-pair").fit(table).estimates_
    )
    assert fit.estimates_[0, 1] < -0.2
    assert np.isfinite(fit.model_.fields).all()


def test_an_empty_cell_is_named_and_stays_finite(rng):
    table = rng.choice([-1, 1], (100, 3))
    table[table[:, 0] < 0, 1] = -1
    with pytest.warns(ex.EmptyCellWarning, match="'x0' - 'x1'"):
        fit = ik.MeanFieldIsing(method="independent-pair").fit(table)
    assert 0.5 < fit.estimates_[0, 1] < 3
    assert np.isfinite(fit.model_.fields).all()


@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_exact_likelihood_equals_a_plain_minimiser(rng, l2):
    values = rng.choice([-1, 1], (400, 5), p=[0.4, 0.6])
    values[:, 1] = np.where(rng.random(400) < 0.5, values[:, 0], values[:, 1])
    fields, couplings = reference.likeliest(values, l2)
    fit = ik.MaximumLikelihoodIsing(l2=l2).fit(values)
    np.testing.assert_allclose(fit.estimates_, couplings, atol=1e-6)
    np.testing.assert_allclose(fit.intercepts_, fields, atol=1e-6)


def test_the_likeliest_model_has_the_moments_of_the_data(rng):
    """[eq:ML-def] Twelve spins; Newton steps to 1e-9."""
    truth = ik.IsingModel(
        ik.erdos_renyi(n_spins=12, mean_degree=3, coupling=0.4, random_state=0).couplings,
        rng.normal(0, 0.3, 12),
    )
    values = np.asarray(ik.exact(truth).sample(n_samples=1000, random_state=1)).astype(float)
    fit = ik.MaximumLikelihoodIsing().fit(values)
    solved = ik.exact(fit.model_)
    np.testing.assert_allclose(solved.means, values.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(solved.pair_means, values.T @ values / 1000, atol=1e-9)
    assert fit.mismatch_ < 1e-6
    for other in (ik.PseudolikelihoodIsing(), ik.MeanFieldIsing()):
        assert fit.log_likelihood(values) > other.fit(values).log_likelihood(values)


def test_court_votes_have_the_published_likelihoods(shared_data):
    """Lee, Broedersz and Bialek 2015: -log2 L is 7539, 4534 and 4233; couplings equal those
    computed elsewhere to 1e-4.
    """
    table = pd.read_csv(shared_data / "scotus_rehnquist2_895x9.csv")
    stored = json.loads((shared_data / "reference" / "exact_mle_scotus.json").read_text())

    def bits(fit):
        return -len(table) * fit.log_likelihood(table) / np.log(2)

    fit = ik.MaximumLikelihoodIsing().fit(table)
    assert bits(fit) == pytest.approx(4233.18, abs=0.05)
    assert bits(ik.MaximumLikelihoodIsing(fit_fields=False).fit(table)) == pytest.approx(
        4534.39, abs=0.05
    )
    assert bits(ik.MeanFieldIsing(method="independent").fit(table)) == pytest.approx(
        7538.77, abs=0.05
    )
    np.testing.assert_allclose(fit.estimates_, stored["J"], atol=1e-4)
    np.testing.assert_allclose(fit.model_.fields, stored["h"], atol=1e-4)


@pytest.mark.statistics
def test_boltzmann_learning_agrees_with_the_exact_likelihood(rng):
    """Twelve spins, 5000 samples: couplings within a third of their own standard errors (root mean
    square), seeds fixed.
    """
    truth = ik.IsingModel(
        ik.erdos_renyi(n_spins=12, mean_degree=3, coupling=0.4, random_state=3).couplings,
        rng.normal(0, 0.3, 12),
    )
    samples = ik.exact(truth).sample(n_samples=5000, random_state=1)
    exact = ik.MaximumLikelihoodIsing().fit(samples)
    learnt = ik.MaximumLikelihoodIsing(method="boltzmann", random_state=0).fit(samples)
    above = np.triu_indices(12, 1)
    off = (learnt.estimates_ - exact.estimates_)[above]
    error = (exact.estimates_ - truth.couplings.toarray())[above].std()
    assert np.sqrt(np.mean(off**2)) < error / 3
    assert learnt.mismatch_ < 2
    again = ik.MaximumLikelihoodIsing(method="boltzmann", random_state=0, n_jobs=1).fit(samples)
    np.testing.assert_array_equal(again.estimates_, learnt.estimates_)


@pytest.mark.statistics
def test_boltzmann_learning_matches_the_moments_of_fifty_spins(rng):
    """20,000 samples: moments of fresh, long chains within 4 standard errors of the data's own;
    couplings a tenth off miss by 8.
    """
    graph = ik.erdos_renyi(n_spins=50, mean_degree=4, coupling=0.35, random_state=3)
    truth = ik.IsingModel(graph.couplings, rng.normal(0, 0.3, 50))
    stat = ik.gram(ik.sample(truth, n_samples=20_000, random_state=1))
    fit = ik.MaximumLikelihoodIsing(method="boltzmann", random_state=0).fit_gram(stat)

    def mismatch(model):
        fresh = ik.gram(ik.sample(model, n_samples=160_000, random_state=2, check=False))
        wanted, seen = (
            np.concatenate([one.spin_sums, one.sums[np.triu_indices(50, 1)]]) / one.n_samples
            for one in (stat, fresh)
        )
        return np.abs((wanted - seen) / np.sqrt((1 - wanted**2) / 20_000)).max()

    assert mismatch(fit.model_) < 4
    assert mismatch(ik.IsingModel(0.9 * fit.model_.couplings, fit.model_.fields)) > 7


def test_boltzmann_learning_that_runs_out_of_steps_says_how_far_it_got(spins):
    with pytest.warns(
        ex.NotConvergedWarning, match="Boltzmann learning stopped with a residual of"
    ):
        fit = ik.MaximumLikelihoodIsing(
            method="boltzmann", max_steps=1, n_chains=512, random_state=0
        ).fit(spins)
    assert fit.mismatch_ > 2
    assert fit.n_steps_ == 1


def test_too_many_spins_for_enumeration_are_sent_to_boltzmann(rng):
    with pytest.raises(ex.SettingError, match="method must be 'boltzmann' for 30 spins"):
        ik.MaximumLikelihoodIsing().fit(rng.choice([-1, 1], (500, 30)))
    fit = ik.PseudolikelihoodIsing(l2=0.1).fit(rng.choice([-1, 1], (500, 30)))
    with pytest.raises(ex.SettingError, match="a tree, or have at most 24 spins"):
        fit.log_likelihood(rng.choice([-1, 1], (5, 30)))


def test_log_likelihood_is_that_of_the_probabilities(spins):
    fit = ik.RidgeIsing().fit(spins[:, :6])
    states, shares = reference.probabilities(fit.model_.couplings.toarray(), fit.model_.fields)
    chance = {tuple(state): share for state, share in zip(states.tolist(), shares, strict=True)}
    expected = np.mean([np.log(chance[tuple(row)]) for row in spins[:, :6].tolist()])
    assert fit.log_likelihood(spins[:, :6]) == pytest.approx(expected, rel=1e-12)


def test_a_likelihood_without_maximum_is_refused_beyond_pairs(rng):
    """c is the majority of a, b and d in nearly all combinations: no pair misses a cell, but
    moments are on the boundary.
    """
    table = np.array(list(itertools.product((-1, 1), repeat=3)) * 10)
    table = np.column_stack([table, np.sign(table.sum(axis=1))])
    with pytest.raises(ex.SeparationError, match="grows without bound"):
        ik.MaximumLikelihoodIsing().fit(table)
    assert np.abs(ik.MaximumLikelihoodIsing(l2=0.01).fit(table).estimates_).max() < 3


@pytest.mark.parametrize("make", [ik.MeanFieldIsing, ik.ELassoIsing])
def test_weights_that_are_mere_shares_do_not_make_data_small(make, spins):
    whole, shares = make().fit(spins), make().fit(spins, sample_weight=np.full(300, 1 / 300))
    np.testing.assert_allclose(shares.estimates_, whole.estimates_, atol=1e-8)


def test_only_constant_spins_leave_nothing_to_learn():
    with pytest.warns(ex.ConstantColumnWarning):
        fit = ik.MaximumLikelihoodIsing(method="boltzmann").fit(np.ones((5, 3), dtype=int))
    assert fit.model_.n_edges == 0
