"""Covariates: what else is known of rows, in models, samplers, estimators, files and pages."""

import numpy as np
import pytest

from isingkit import exceptions as ex
from isingkit.covariates import as_covariates
from isingkit.estimators.covariate_table import covariate_table
from isingkit.estimators.normal import normal_equations, without_covariates
from isingkit.gram import gram_of
from isingkit.packing import pack
from isingkit.spins import RowWeights, as_spins


def rows_with_covariates(packed, table, totals):
    values = as_covariates(table, packed.n_samples, None, totals).values
    return RowWeights(totals, totals, None, values)


def least_squares_left(spins, covariates, totals):
    """Sums of products of what a weighted regression on covariates leaves of spins."""
    root = np.sqrt(totals)[:, None]
    design = root * np.column_stack([np.ones(len(spins)), covariates])
    left = root * spins - design @ np.linalg.lstsq(design, root * spins, rcond=None)[0]
    return left.T @ left


# The table of effects


def test_table_of_effects_has_two_sided_p_values_and_q_values_surest_first():
    effects = np.array([[0.1, 0.2], [0.3, -0.4], [0.0, 0.0]])
    errors = np.array([[0.1, 0.1], [0.1, 0.1], [np.nan, np.nan]])
    table = covariate_table(("a", "b", "c"), ("age", "sex=f"), effects, errors)
    assert table["spin"].tolist() == ["b", "b", "a", "a", "c", "c"]
    assert table["covariate"].tolist() == ["sex=f", "age", "sex=f", "age", "age", "sex=f"]
    np.testing.assert_allclose(table["z"][:4], [-4, 3, 2, 1])
    p_values = np.array([6.334248366623988e-05, 0.0026997960632601913, 0.045500263896, 0.317310507])
    np.testing.assert_allclose(table["p_value"][:4], p_values, rtol=1e-8)
    np.testing.assert_allclose(table["q_value"][:4], p_values * 4 / [1, 2, 3, 4], rtol=1e-8)
    assert np.isnan(table["q_value"][4:]).all()


def test_table_of_effects_without_errors_has_the_strongest_first():
    effects = np.array([[0.1, -0.2], [0.3, 0.0]])
    table = covariate_table(("a", "b"), ("x", "y"), effects, np.full((2, 2), np.nan))
    assert table["effect"].tolist() == [0.3, -0.2, 0.1, 0.0]
    assert np.isnan(table["p_value"]).all()


# What covariates leave


@pytest.mark.parametrize("is_weighted", [False, True])
def test_normal_equations_without_covariates_are_those_of_what_a_regression_leaves(
    spins, rng, is_weighted
):
    table = rng.normal(size=(300, 3)) + spins[:, :3]
    totals = rng.integers(0, 3, 300).astype(float) if is_weighted else np.ones(300)
    packed = pack(as_spins(spins))
    weights = rows_with_covariates(packed, table, totals)
    normal = normal_equations(gram_of(packed, weights), True)
    left = without_covariates(normal, packed, weights).matrix
    np.testing.assert_allclose(left, least_squares_left(spins, table, totals), atol=1e-9)
    assert (left == left.T).all()


def test_with_missing_values_covariates_are_taken_out_of_all_rows_pairs(rng):
    """A world of 40,000 rows in which only a covariate makes spins agree, with a fifth of cells
    missing: catches an agreement of 0.02 left (0.09 is left where sums are not scaled).
    """
    n_rows = 40_000
    age = rng.normal(size=n_rows)
    spins = np.sign(rng.normal(size=(n_rows, 4)) + 0.8 * age[:, None])
    spins[:, 1:][rng.random((n_rows, 3)) < 0.2] = np.nan
    packed = pack(as_spins(spins, missing="pairwise"))
    weights = rows_with_covariates(packed, age[:, None], np.ones(n_rows))
    normal = normal_equations(gram_of(packed, weights), True)
    left = without_covariates(normal, packed, weights).matrix / n_rows
    assert np.abs(left - np.diag(np.diagonal(left))).max() < 0.02


def test_a_spin_that_a_covariate_determines_is_refused(spins):
    packed = pack(as_spins(spins))
    weights = rows_with_covariates(packed, spins[:, [4]], np.ones(300))
    normal = normal_equations(gram_of(packed, weights), True)
    with pytest.raises(ex.CovariatesError, match="they determine 'x4'.*leave that column"):
        without_covariates(normal, packed, weights)
