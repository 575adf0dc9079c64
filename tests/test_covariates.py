"""Covariates: what else is known of rows, in models, samplers, estimators, files and pages."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.covariates import CovariateEffects, as_covariates
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


def people(n_rows, rng):
    """A table of covariates: a number, and a category of three."""
    return pd.DataFrame(
        {
            "age": 50 + 12 * rng.normal(size=n_rows),
            "site": rng.choice(["east", "north", "west"], n_rows),
        }
    )


def small_model(table, rng, n_spins=5, size=0.5):
    """A loop of spins with a chord, and effects of the covariates of a table."""
    couplings = np.zeros((n_spins, n_spins))
    for i in range(n_spins):
        couplings[i, (i + 1) % n_spins] = 0.3 * (-1) ** i
    couplings[0, 2] = 0.4
    coded = as_covariates(table, len(table))
    effects = CovariateEffects(size * rng.normal(size=(n_spins, len(coded.names))), coded.coding)
    fields = 0.3 * rng.normal(size=n_spins)
    return ik.IsingModel(couplings + couplings.T, fields, effects=effects), coded.values


def states_of(n_spins):
    return 2.0 * (np.arange(2**n_spins)[:, None] >> np.arange(n_spins) & 1) - 1


def probabilities_given(model, covariates):
    """(n_rows, 2^n_spins): of all states, by the definition."""
    states = states_of(model.n_spins)
    pairs = (states @ model.couplings * states).sum(axis=1) / 2
    fields = model.fields + covariates @ model.effects.values.T
    weights = np.exp(pairs + fields @ states.T)
    return weights / weights.sum(axis=1, keepdims=True)


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


# Models with effects


def test_a_model_keeps_its_effects_in_a_file(rng, tmp_path):
    model, _ = small_model(people(100, rng), rng)
    model.save(tmp_path / "model.npz")
    again = ik.IsingModel.load(tmp_path / "model.npz")
    assert (again.effects.values == model.effects.values).all()
    assert again.effects.coding == model.effects.coding
    assert repr(again) == "IsingModel(5 spins, 6 edges, 3 covariates)"


def test_a_file_without_effects_is_a_model_without_effects(rng, tmp_path):
    model, _ = small_model(people(100, rng), rng)
    replace(model, effects=None).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        assert "effects" not in file.files
    assert ik.IsingModel.load(tmp_path / "model.npz").effects is None


def test_scores_do_not_look_at_effects(rng):
    model, _ = small_model(people(100, rng), rng)
    assert ik.score(model, replace(model, effects=None)).exact


# Samples given covariates


def test_samples_given_covariates_match_enumeration_within_five_standard_errors(rng):
    """2^16 chains in 4 kinds of rows, 60 means and pair means in all: catches an effect wrong by
    0.06 (seen to, in the last line).
    """
    table = pd.DataFrame(
        {"dose": np.tile([0.0, 1.0, 2.0, 4.0], 2**14), "sex": np.tile(list("fmmf"), 2**14)}
    )
    model, covariates = small_model(table, rng)
    drawn = np.asarray(ik.sample(model, covariates=table, warm_up=60, random_state=1), dtype=float)
    assert largest_deviation(model, covariates, drawn) < 5
    values = model.effects.values.copy()
    values[3, 0] += 0.06
    wrong = replace(model, effects=replace(model.effects, values=values))
    assert largest_deviation(wrong, covariates, drawn) > 5


def largest_deviation(model, covariates, drawn):
    """Of means and pair means in each of four kinds of rows, in standard errors."""
    states = states_of(model.n_spins)
    i, j = np.triu_indices(model.n_spins, 1)
    products = np.hstack([states, states[:, i] * states[:, j]])
    worst = 0.0
    for kind in range(4):
        expected = probabilities_given(model, covariates[[kind]])[0] @ products
        seen = drawn[kind::4]
        means = np.hstack([seen, seen[:, i] * seen[:, j]]).mean(axis=0)
        errors = np.sqrt((1 - expected**2) / len(seen))
        worst = max(worst, float(np.abs((means - expected) / errors).max()))
    return worst


def test_random_order_and_threads_give_samples_given_covariates_too(rng):
    table = pd.DataFrame({"dose": rng.normal(size=1000)})
    model, covariates = small_model(table, rng, size=1.0)
    drawn = [
        ik.sample(model, 1000, covariates=table, order="random", n_jobs=n, random_state=2).words
        for n in (1, 2)
    ]
    assert (drawn[0] == drawn[1]).all()
    samples = ik.sample(model, covariates=table, order="random", random_state=2)
    spins = np.asarray(samples, dtype=float)
    expected = probabilities_given(model, covariates) @ states_of(5)
    spread = np.sqrt((1 - expected**2).sum(axis=0))
    assert np.abs((spins - expected).sum(axis=0) / spread).max() < 5


def test_samples_are_the_same_with_and_without_the_check(rng):
    table = people(100, rng)
    model, _ = small_model(table, rng)
    checked, unchecked = (
        ik.sample(model, covariates=table, check=check, random_state=3) for check in (True, False)
    )
    assert (checked.words == unchecked.words).all()


def test_chains_that_remember_their_start_are_refused_given_covariates(rng):
    table = pd.DataFrame({"dose": rng.normal(size=200)})
    coded = as_covariates(table, 200)
    lattice = ik.square_lattice(side=8, coupling=0.3, random_state=0)
    effects = CovariateEffects(np.full((64, 1), 0.01), coded.coding)
    model = ik.IsingModel(2 * abs(lattice.couplings), effects=effects)
    with pytest.raises(ex.NotEquilibratedError):
        ik.sample(model, covariates=table, warm_up=200, random_state=1)
    ik.sample(model, covariates=table, warm_up=200, check=False, random_state=1)


def test_covariates_of_very_different_rows_do_not_look_like_chains_that_remember(rng):
    """200 seeds of fields that differ by 3 from row to row: none is refused."""
    table = pd.DataFrame({"dose": rng.normal(size=64)})
    model, _ = small_model(table, rng, size=3.0)
    for seed in range(200):
        ik.sample(model, covariates=table, warm_up=64, random_state=seed)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "covariates must be a table of age, site, with which fields of the model change"),
        ({"n_samples": 7, "covariates": True}, "n_samples must be None or 100, one sample for"),
        ({"n_chains": 7, "covariates": True}, "n_chains must be None with covariates, of which"),
        ({"update": "metropolis", "covariates": True}, "update must be 'heat-bath' with cov"),
    ],
)
def test_what_sampling_given_covariates_cannot_do_is_said_in_a_sentence(options, sentence, rng):
    table = people(100, rng)
    model, _ = small_model(table, rng)
    given = {**options, "covariates": table} if "covariates" in options else options
    with pytest.raises(ex.SettingError, match=sentence):
        ik.sample(model, **given)
    ik.sample(replace(model, effects=None), 10)  # the advice
    with pytest.raises(ex.SettingError, match="must be None, for the model was learnt without"):
        ik.sample(replace(model, effects=None), 10, covariates=table)


def test_fit_check_samples_the_model_given_the_covariates_of_rows(rng):
    """A model with strong effects reproduces means and correlations of its own samples within 0.05,
    which it does not at the covariates' means.
    """
    table = people(3000, rng)
    model, _ = small_model(table, rng, size=1.0)
    samples = ik.sample(model, covariates=table, random_state=1)
    check = ik.fit_check(model, samples, covariates=table)
    assert np.abs(check.data_means - check.model_means).max() < 0.05
    assert np.abs(check.data_correlations - check.model_correlations).max() < 0.08
    at_means = ik.fit_check(replace(model, effects=None), samples)
    assert np.abs(check.data_correlations - at_means.model_correlations).max() > 0.1
    weights = (np.arange(3000) < 1500).astype(float)
    half = ik.fit_check(model, samples, sample_weight=weights, covariates=table)
    assert np.abs(half.data_means - half.model_means).max() < 0.06
    with pytest.raises(ex.SettingError, match="covariates must be a table of age, site"):
        ik.fit_check(model, samples)
