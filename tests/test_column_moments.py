"""Scores of columns one value of which is rare."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm, poisson

import isingkit as ik
from isingkit.estimators.bits import bits_of
from isingkit.estimators.causes import known_causes, no_causes
from isingkit.estimators.column_moments import ColumnMoments
from isingkit.estimators.edge_tests import EdgeTester, precisions
from isingkit.estimators.fitted_graph import Samples, fit_graph, samples_of, samples_of_bits
from isingkit.estimators.normal import normal_equations
from isingkit.estimators.row_design import INDEPENDENT
from isingkit.estimators.score_cache import dense_scores, sparse_scores
from isingkit.estimators.selection import select_edges

N_SPINS, N_ROWS = 30, 1500
EVERYONE = np.arange(N_SPINS)


@pytest.fixture(scope="module")
def rare():
    """A 3-regular network whose columns are +1 in 3 to 50 percent of the rows, and samples."""
    truth = ik.random_regular(n_spins=N_SPINS, degree=3, coupling=0.5, random_state=3)
    fields = np.random.default_rng(0).uniform(-1.6, 0.0, N_SPINS)
    with_fields = ik.IsingModel(truth.couplings, fields)
    return with_fields, ik.sample(with_fields, N_ROWS, random_state=4, check=False)


def outside(fitted):
    pairs = np.column_stack(np.triu_indices(N_SPINS, 1))
    return pairs[~fitted.graph.find(pairs)[0]]


def updated(scores, fitted):
    scores.update(fitted, EVERYONE, fitted.residuals_of(EVERYONE))
    return scores


@pytest.mark.parametrize("how", ["matrices", "bits"])
def test_approximate_z_scores_of_rare_columns_are_those_of_tests(how, rare):
    """Within 0.5 where a test says 2 to 5, and 0.8 to 1 times that; scores that take every column
    for one of variance 1 are 0.6 times that, and fewer of them are tested.
    """
    _, samples = rare
    normal = normal_equations(ik.gram(samples), True)
    if how == "matrices":
        rows = samples_of(samples)
        scores = dense_scores(normal, rows, True, 1.0)
    else:
        rows = samples_of_bits(samples, INDEPENDENT)
        scores = sparse_scores(bits_of(samples, True), 1.0, None)
    clearest = np.argwhere(np.triu(np.abs(np.corrcoef(np.asarray(samples).T)) > 0.15, 1))
    fitted = fit_graph(rows, clearest)
    pairs = outside(fitted)
    found = updated(scores, fitted).approximate(fitted, pairs)
    tested = fitted.score_tests(pairs).z_scores
    some = (np.abs(tested) > 2) & (np.abs(tested) < 5)
    assert some.sum() > 15
    assert np.median(np.abs(found - tested)[some]) < 0.5
    assert 0.8 < np.median((found / tested)[some]) < 1


def test_edges_of_rare_columns_come_in_from_nothing(rare):
    """A search that starts without any edge finds what one that starts with the true ones does."""
    truth, samples = rare
    rows = samples_of(samples)
    normal = normal_equations(ik.gram(samples), True)
    true = np.argwhere(np.triu(truth.couplings.toarray(), 1))
    found = []
    for start in (true, np.empty((0, 2), np.int64)):
        tester = EdgeTester(dense_scores(normal, rows, True, 3.0), normal.changes)
        found.append(select_edges(fit_graph(rows, start), tester, start, 0.05, "fdr"))
    keys = [set(one.fitted.graph.keys.tolist()) for one in found]
    assert len(keys[0]) > 30
    assert len(keys[0] ^ keys[1]) <= 1


def test_z_scores_of_long_tails_are_less_as_those_of_rare_events_are():
    """Two values that are both rare: a Poisson number of rows has both."""
    n_rows, share = 1000, 0.03
    mean = -1 + 2 * share
    skewness = np.full(3, -2 * mean / np.sqrt(1 - mean**2))
    skewness[2] *= -1
    columns = ColumnMoments(np.full(3, 1 - mean**2), skewness, np.ones(3, bool), n_rows)
    expected = n_rows * share**2
    both = np.arange(3, 9)
    plain = (both - expected) / np.sqrt(expected)
    pairs = np.tile([0, 1], (len(both), 1))
    found = columns.as_normal(plain, pairs)
    # half of the number itself counts as beyond it
    tails = poisson.sf(both, expected) + poisson.pmf(both, expected) / 2
    assert_allclose(found, -norm.ppf(tails), atol=0.3)
    assert (plain - found)[-1] > 2.5
    assert_allclose(columns.as_normal(-plain, pairs), -plain)
    assert_allclose(columns.as_normal(plain, np.tile([0, 2], (len(both), 1))), plain)
    assert_allclose(columns.as_normal(-plain, np.tile([0, 2], (len(both), 1))), -found)


def test_moments_are_of_what_is_there_and_what_covariates_leave(rng):
    """Weights, missing cells and two covariates, against least squares written out."""
    n_rows = 200
    covariates = rng.normal(size=(2, n_rows))
    shares = np.array([0.1, 0.5, 0.8])[:, None]
    spins = np.where(rng.random((3, n_rows)) < shares, 1.0, -1.0)
    spins[1] = np.where(covariates[0] > 0, 1.0, -1.0)
    weights = rng.uniform(0.5, 2, n_rows)
    plain = Samples(spins, weights, spins, known_causes(covariates))
    columns = plain.column_moments(fit_fields=True)
    roots = np.sqrt(weights)
    design = (np.vstack([np.ones(n_rows), covariates]) * roots).T
    for j, spin in enumerate(spins):
        left = roots * spin - design @ np.linalg.lstsq(design, roots * spin, rcond=None)[0]
        assert columns.variances[j] == pytest.approx(left @ left / weights.sum())
        off = spin - spin @ weights / weights.sum()
        third = (weights @ off**3) / weights.sum()
        second = (weights @ off**2) / weights.sum()
        assert columns.skewness[j] == pytest.approx(third / second**1.5)
    holes = spins * (rng.random(spins.shape) < 0.7)
    missing = Samples(holes, weights, holes, no_causes(n_rows)).column_moments(fit_fields=True)
    for j, spin in enumerate(holes):
        own = weights * (spin != 0)
        mean = spin @ own / own.sum()
        seen = (spin != 0) * (spin - mean)
        assert missing.variances[j] == pytest.approx(weights @ seen**2 / weights.sum())
    without = plain.column_moments(fit_fields=False)
    assert (without.skewness == 0).all()
    assert without.variances[0] > columns.variances[0]


def test_precisions_of_couplings_of_rare_columns_are_one_over_their_errors(rare):
    truth, samples = rare
    pairs = np.argwhere(np.triu(truth.couplings.toarray(), 1))
    fitted = fit_graph(samples_of(samples), pairs)
    _, errors = fitted.couplings_and_errors()
    ratio = precisions(fitted, pairs) * errors
    assert 0.8 < np.median(ratio) < 1.25
    assert np.quantile(ratio, 0.9) / np.quantile(ratio, 0.1) < 2.5
