"""Covariates: what else is known of rows, in models, samplers, estimators, files and pages."""

import csv
import gzip
import io
import json
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.optimize
import statsmodels.api

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.cli import main
from isingkit.covariates import CovariateEffects, as_covariates
from isingkit.estimators import sizes
from isingkit.estimators.covariate_table import covariate_table
from isingkit.estimators.normal import normal_equations, without_covariates
from isingkit.gram import gram_of
from isingkit.packing import pack
from isingkit.report.contents import contents_in, contents_of_model
from isingkit.report.page import html_page
from isingkit.spins import RowWeights, as_spins
from isingkit.tables import read_spins
from isingkit.tables.columns import read_covariates


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
    assert table["variable"].tolist() == ["b", "b", "a", "a", "c", "c"]
    assert table["covariate"].tolist() == ["sex=f", "age", "sex=f", "age", "age", "sex=f"]
    np.testing.assert_allclose(table["z"][:4], [-4, 3, 2, 1])
    p_values = np.array([6.334248366623988e-05, 0.0026997960632601913, 0.045500263896, 0.317310507])
    np.testing.assert_allclose(table["p_value"][:4], p_values, rtol=1e-8)
    np.testing.assert_allclose(table["q_value"][:4], p_values * 4 / [1, 2, 3, 4], rtol=1e-8)
    assert np.isnan(table["q_value"][4:]).all()
    np.testing.assert_allclose(table["low"][:2], [-0.4 - 0.1959964, 0.3 - 0.1959964], rtol=1e-6)
    np.testing.assert_allclose(table["high"][:2], [-0.4 + 0.1959964, 0.3 + 0.1959964], rtol=1e-6)
    assert np.isnan(table["low"][4:]).all()


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
    missing: catches an agreement of 0.02 left (0.10 is left where sums are not scaled).
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
    assert repr(again) == "IsingModel(5 variables, 6 edges, 3 covariates)"


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


# Regressions with covariates


@pytest.fixture
def world(rng):
    """600 rows of 5 spins and two covariates, and the model that they were drawn from."""
    table = people(600, rng)
    model, _ = small_model(table, rng)
    return model, np.asarray(ik.sample(model, covariates=table, random_state=1)), table


@pytest.mark.parametrize("is_counted", [False, True])
def test_pseudolikelihood_with_covariates_is_statsmodels_logit(world, rng, is_counted):
    _, spins, table = world
    counts = rng.integers(1, 4, len(spins)) if is_counted else np.ones(len(spins), dtype=int)
    fit = ik.PseudolikelihoodIsing().fit(spins, counts=counts, covariates=table)
    covariates = as_covariates(table, len(spins), None, counts.astype(float))
    times = np.repeat(np.arange(len(spins)), counts)
    effects = {(row["variable"], row["covariate"]): row for row in fit.covariate_effects_}
    for i in range(5):
        others = [j for j in range(5) if j != i]
        design = np.column_stack([np.ones(len(spins)), covariates.values, spins[:, others]])
        other = statsmodels.api.Logit(spins[times, i] > 0, design[times])
        found = other.fit(disp=False, method="newton", tol=1e-12)
        np.testing.assert_allclose(found.params[0] / 2, fit.intercepts_[i], atol=1e-6)
        np.testing.assert_allclose(found.params[4:] / 2, fit.estimates_[i, others], atol=1e-6)
        for k, name in enumerate(covariates.names):
            row = effects[f"x{i}", name]
            np.testing.assert_allclose(found.params[1 + k] / 2, row["effect"], atol=1e-6)
            np.testing.assert_allclose(found.bse[1 + k] / 2, row["std_error"], rtol=1e-5)
            np.testing.assert_allclose(found.pvalues[1 + k], row["p_value"], rtol=1e-4)


def test_effects_without_knobs_are_statsmodels_logit_wherever_that_is_finite(rng):
    """Two covariates say nearly the same (r = 0.99), and in one kind of rows the first spin is
    never up: that effect has no maximum of the likelihood, and stays below 2.
    """
    height = rng.normal(size=600)
    warmth = height + 0.14 * rng.normal(size=600)
    is_bog = (rng.random(600) < 0.05).astype(float)
    table = pd.DataFrame({"height": height, "warmth": warmth, "bog": is_bog})
    coded = as_covariates(table, 600)
    effects = CovariateEffects(rng.normal(size=(5, 3)) * [0.4, 0.4, 0.0], coded.coding)
    couplings = np.diag(np.full(4, 0.4), 1)
    model = ik.IsingModel(couplings + couplings.T, np.full(5, -0.4), effects=effects)
    spins = np.asarray(ik.sample(model, covariates=table, random_state=1)).copy()
    spins[is_bog > 0, 0] = -1
    fit = ik.AutoIsing(hidden=0, rows="independent").fit(spins, covariates=table)
    rows = {(row["variable"], row["covariate"]): row for row in fit.covariate_effects_}
    graph = fit.model_.couplings.toarray() != 0
    for i in range(5):
        # other effects are those of the rows that say something of them
        kept = is_bog == 0 if i == 0 else np.ones(600, dtype=bool)
        known = [0, 1] if i == 0 else [0, 1, 2]
        design = np.column_stack([np.ones(600), coded.values[:, known], spins[:, graph[i]]])[kept]
        found = statsmodels.api.Logit(spins[kept, i] > 0, design).fit(disp=False, tol=1e-10)
        for k in known:
            row = rows[f"x{i}", coded.names[k]]
            np.testing.assert_allclose(found.params[1 + k] / 2, row["effect"], atol=1e-6)
            np.testing.assert_allclose(found.bse[1 + k] / 2, row["std_error"], rtol=1e-3)
    assert -2 < rows["x0", "bog"]["effect"] < 0
    assert rows["x0", "bog"]["std_error"] < 2


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")  # few columns
def test_effects_beside_hidden_causes_are_those_of_covariates(world):
    _, spins, table = world
    fit = ik.AutoIsing(hidden=1).fit(spins, covariates=table)
    names = as_covariates(table, 600).names
    assert fit.hidden_.n_hidden == 1
    assert len(fit.covariate_effects_) == 5 * len(names)
    effects = {(row["variable"], row["covariate"]): row["effect"] for row in fit.covariate_effects_}
    assert effects["x3", names[1]] == fit.model_.effects.values[3, 1]


def test_intervals_of_effects_cover_the_truth_in_95_percent(rng):
    """1,200 effects in 40 worlds of 10 spins and 1000 rows: between 93 and 97 percent, which errors
    wrong by a fifth leave (88 and 98 percent).
    """
    covered = []
    for seed in range(40):
        table = people(1000, rng)
        coding = as_covariates(table, 1000).coding
        truth = ik.random_regular(n_spins=10, degree=3, coupling=0.3, random_state=seed)
        effects = CovariateEffects(0.3 * rng.normal(size=(10, 3)), coding)
        model = replace(truth, effects=effects)
        samples = ik.sample(model, covariates=table, random_state=seed)
        fit = ik.PseudolikelihoodIsing().fit(samples, covariates=table)
        found = {(row["variable"], row["covariate"]): row for row in fit.covariate_effects_}
        for i, spin in enumerate(truth.names):
            for k, name in enumerate(coding.names):
                row = found[spin, name]
                covered.append(abs(row["effect"] - effects.values[i, k]) < 1.96 * row["std_error"])
    assert 0.93 < np.mean(covered) < 0.97


@pytest.mark.parametrize("l2", [0.0, 0.05])
@pytest.mark.parametrize("loss", ["logistic", "screening", "log screening"])
def test_all_losses_with_covariates_are_where_a_general_minimiser_ends(world, loss, l2):
    _, spins, table = world
    if loss == "logistic":
        fit = ik.PseudolikelihoodIsing(l2=l2).fit(spins, covariates=table)
    else:
        fit = ik.InteractionScreeningIsing(l2=l2, log=loss == "log screening")
        fit.fit(spins, covariates=table)
    covariates = as_covariates(table, len(spins)).values
    design = np.column_stack([np.ones(len(spins)), covariates, spins[:, 1:]])

    def objective(x):
        margins = spins[:, 0] * (design @ x)
        penalty = l2 * (x[4:] ** 2).sum()
        if loss == "logistic":
            return np.logaddexp(0, -2 * margins).mean() + penalty
        mean = np.exp(-margins).mean()
        return (np.log(mean) if loss == "log screening" else mean) + penalty

    there = np.concatenate(
        [fit.intercepts_[:1], fit.model_.effects.values[0], fit.estimates_[0, 1:]]
    )
    found = scipy.optimize.minimize(objective, np.zeros(8), tol=1e-12, options={"gtol": 1e-8})
    np.testing.assert_allclose(there, found.x, atol=2e-5)
    assert objective(there) <= found.fun + 1e-12
    has_errors = loss == "logistic" and l2 == 0
    assert np.isfinite(fit.covariate_effects_["std_error"]).all() == has_errors


def test_an_absolute_value_penalty_leaves_effects_free(world):
    """With a penalty that leaves no coupling, effects are those of a regression on covariates."""
    _, spins, table = world
    fit = ik.PseudolikelihoodIsing(l1=1.0).fit(spins, covariates=table)
    assert fit.model_.n_edges == 0
    design = np.column_stack([np.ones(600), as_covariates(table, 600).values])
    for i in range(5):
        other = statsmodels.api.Logit(spins[:, i] > 0, design).fit(disp=False, tol=1e-12)
        np.testing.assert_allclose(other.params[1:] / 2, fit.model_.effects.values[i], atol=1e-6)


def test_equal_rows_are_one_only_where_covariates_agree(spins, rng):
    table = pd.DataFrame({"half": np.repeat(["a", "b"], 300)})
    twice = np.vstack([spins, spins])
    plain = ik.PseudolikelihoodIsing().fit(spins)
    fit = ik.PseudolikelihoodIsing().fit(twice, covariates=table)
    np.testing.assert_allclose(fit.estimates_, plain.estimates_, atol=1e-8)
    np.testing.assert_allclose(fit.model_.effects.values, 0, atol=1e-8)


def test_elasso_with_covariates_finds_a_network_that_covariates_would_hide(rng):
    """A chain of 10 spins that a covariate shifts by 0.8: all 9 edges and no other, where without
    covariates more than 10 others are found.
    """
    table = pd.DataFrame({"age": rng.normal(size=2000)})
    coded = as_covariates(table, 2000)
    chain = np.diag(np.full(9, 0.5), 1)
    effects = CovariateEffects(np.full((10, 1), 0.8), coded.coding)
    model = ik.IsingModel(chain + chain.T, effects=effects)
    samples = ik.sample(model, covariates=table, random_state=1)
    fit = ik.ELassoIsing().fit(samples, covariates=table)
    assert ik.score(fit.model_, model).exact
    assert ik.score(ik.ELassoIsing().fit(samples).model_, model).precision < 9 / 19
    np.testing.assert_allclose(fit.model_.effects.values, 0.8, atol=0.25)
    assert np.isnan(fit.covariate_effects_["q_value"]).all()


def test_pseudolikelihood_of_a_tree_is_consistent_given_covariates(rng):
    """20,000 rows of a chain: effects within 0.12 of theirs, 5 times the largest standard error,
    couplings and fields within 0.06, and a larger exact conditional likelihood than models that are
    off by 0.05.
    """
    table = people(20_000, rng)
    coded = as_covariates(table, 20_000)
    chain = np.diag([0.4, -0.5, 0.3, 0.6, -0.3], 1)
    effects = CovariateEffects(0.4 * rng.normal(size=(6, 3)), coded.coding)
    model = ik.IsingModel(chain + chain.T, 0.2 * rng.normal(size=6), effects=effects)
    samples = ik.sample(model, covariates=table, random_state=1)
    fit = ik.PseudolikelihoodIsing(threshold=0.15).fit(samples, covariates=table)
    np.testing.assert_allclose(fit.model_.couplings.toarray(), chain + chain.T, atol=0.06)
    np.testing.assert_allclose(fit.model_.fields, model.fields, atol=0.06)
    np.testing.assert_allclose(fit.model_.effects.values, effects.values, atol=0.12)
    best = fit.log_likelihood(samples, covariates=table)
    spins = np.asarray(samples, dtype=np.int64)
    chosen = probabilities_given(fit.model_, coded.values)
    states = ((spins + 1) // 2) @ (1 << np.arange(6))
    np.testing.assert_allclose(best, np.log(chosen[np.arange(20_000), states]).mean(), rtol=1e-12)
    kept = fit.model_
    for k in range(3):
        fit.model_ = replace(
            kept,
            effects=replace(kept.effects, values=kept.effects.values + 0.05 * (np.arange(3) == k)),
        )
        assert fit.log_likelihood(samples, covariates=table) < best
    fit.model_ = replace(kept, fields=kept.fields + 0.05)
    assert fit.log_likelihood(samples, covariates=table) < best


@pytest.mark.parametrize("estimator", [ik.PseudolikelihoodIsing(), ik.ELassoIsing()])
def test_scores_given_covariates_are_those_of_the_definition(world, estimator, rng):
    _, spins, table = world
    counts = rng.integers(1, 3, len(spins))
    fit = estimator.fit(spins, covariates=table)
    values = fit.model_.effects.coding.values(table)
    fields = fit.model_.fields + values @ fit.model_.effects.values.T
    fields += spins @ fit.model_.couplings
    each = -np.logaddexp(0, -2 * spins * fields).sum(axis=1)
    np.testing.assert_allclose(fit.score(spins, covariates=table), each.mean(), rtol=1e-12)
    counted = fit.score(spins, counts=counts, covariates=table)
    np.testing.assert_allclose(counted, counts @ each / counts.sum(), rtol=1e-12)
    given = probabilities_given(fit.model_, values)
    states = ((spins.astype(int) + 1) // 2) @ (1 << np.arange(5))
    logs = np.log(given[np.arange(600), states])
    found = fit.log_likelihood(spins, counts=counts, covariates=table)
    np.testing.assert_allclose(found, counts @ logs / counts.sum(), rtol=1e-12)


def test_a_likelihood_over_too_many_states_is_refused(rng):
    n_spins = 23
    table = pd.DataFrame({"age": rng.normal(size=300)})
    spins = rng.choice([-1, 1], (300, n_spins))
    fit = ik.PseudolikelihoodIsing(l2=0.1).fit(spins, covariates=table)
    with pytest.raises(ex.SettingError, match="covariates must be those of a tree, or so few"):
        fit.log_likelihood(spins, covariates=table)


def test_scoring_needs_covariates_where_fitting_had_them_and_only_there(world):
    _, spins, table = world
    fit = ik.PseudolikelihoodIsing().fit(spins, covariates=table)
    with pytest.raises(ex.SettingError, match="covariates must be a table of age, site, with"):
        fit.score(spins)
    with pytest.raises(ex.CovariatesError, match="there is no column 'site'"):
        fit.score(spins, covariates=table[["age"]])
    with pytest.raises(ex.CovariatesError, match="holds 'south', which it did not"):
        fit.score(spins, covariates=table.replace("west", "south"))
    fit.fit(spins)
    assert fit.model_.effects is None
    assert not hasattr(fit, "covariate_effects_")
    with pytest.raises(ex.SettingError, match="must be None, for the model was learnt without"):
        fit.score(spins, covariates=table)
    fit.score(spins)


def test_constant_spins_have_no_effects(world):
    _, spins, table = world
    spins = spins.copy()
    spins[:, 2] = 1
    with pytest.warns(ex.ConstantColumnWarning):
        fit = ik.PseudolikelihoodIsing().fit(spins, covariates=table)
    rows = fit.covariate_effects_[fit.covariate_effects_["variable"] == "x2"]
    assert (rows["effect"] == 0).all()
    assert np.isnan(rows["std_error"]).all()
    assert (fit.model_.effects.values[2] == 0).all()


def test_covariates_follow_the_rows_that_are_kept(world, rng):
    _, spins, table = world
    holes = spins.astype(float)
    holes[rng.random(600) < 0.2, 3] = np.nan
    kept = ~np.isnan(holes).any(axis=1)
    lacking = table.copy()
    lacking.loc[~kept, "age"] = np.nan  # of rows that are dropped, nothing need be known
    whole = ik.PseudolikelihoodIsing().fit(spins[kept], covariates=table[kept])
    fit = ik.PseudolikelihoodIsing(missing="drop").fit(holes, covariates=lacking)
    assert (fit.model_.effects.values == whole.model_.effects.values).all()
    scores = [
        fit.score(holes, covariates=lacking),
        whole.score(spins[kept], covariates=table[kept]),
    ]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    "estimator",
    [ik.PseudolikelihoodIsing(), ik.PseudolikelihoodIsing(l1=0.01), ik.ELassoIsing()],
)
def test_a_covariate_that_separates_a_spin_is_named(world, estimator):
    _, spins, table = world
    spins = spins.copy()
    spins[(table["site"] == "north").to_numpy(), 1] = 1
    with pytest.raises(ex.CovariatesError, match="'site=north' all but determines 'x1'.*join"):
        estimator.fit(spins, covariates=table)
    joined = table.replace("north", "west")  # its advice
    estimator.fit(spins, covariates=joined)


def test_what_covariates_cannot_go_with_is_said_in_a_sentence(world):
    _, spins, table = world
    with pytest.raises(ex.SettingError, match="joint must be False with covariates"):
        ik.PseudolikelihoodIsing(joint=True).fit(spins, covariates=table)
    with pytest.raises(ex.SettingError, match="None for MeanFieldIsing; AutoIsing, Pseudo"):
        ik.MeanFieldIsing().fit(spins, covariates=table)


# Linear regressions of what covariates leave


def linear_estimates(spins, table, totals, ridge=0.0):
    """Couplings and effects of each spin by weighted least squares on all at once, of which only
    couplings are penalised.
    """
    covariates = as_covariates(table, len(spins), None, totals).values
    n_spins = spins.shape[1]
    couplings = np.zeros((n_spins, n_spins))
    effects = np.zeros((n_spins, covariates.shape[1]))
    for i in range(n_spins):
        others = [j for j in range(n_spins) if j != i]
        design = np.column_stack([np.ones(len(spins)), covariates, spins[:, others]])
        penalty = np.zeros(design.shape[1])
        penalty[-len(others) :] = ridge * n_spins
        products = (design.T * totals) @ design + np.diag(penalty)
        found = np.linalg.solve(products, (design.T * totals) @ spins[:, i])
        couplings[i, others] = found[-len(others) :]
        effects[i] = found[1 : -len(others)]
    return couplings, effects


def effects_of(fit):
    """(n_spins, n): of the table."""
    rows = {(row["variable"], row["covariate"]): row["effect"] for row in fit.covariate_effects_}
    names = fit.model_.effects.names
    return np.array([[rows[spin, name] for name in names] for spin in fit.model_.names])


@pytest.mark.parametrize("is_counted", [False, True])
def test_linear_estimators_are_regressions_on_spins_and_covariates(world, rng, is_counted):
    _, spins, table = world
    totals = rng.integers(0, 3, 600).astype(float) if is_counted else np.ones(600)
    couplings, effects = linear_estimates(spins, table, totals)
    for estimator in (ik.LinearIsing(threshold=0.0), ik.LassoIsing(l1=1e-10)):
        fit = estimator.fit(spins, counts=totals, covariates=table)
        np.testing.assert_allclose(fit.estimates_, couplings, atol=1e-7)
        np.testing.assert_allclose(effects_of(fit), effects, atol=1e-7)
        assert np.isnan(fit.covariate_effects_["std_error"]).all()
    couplings, effects = linear_estimates(spins, table, totals, ridge=2.0)
    fit = ik.RidgeIsing(ridge=2.0).fit(spins, counts=totals, covariates=table)
    np.testing.assert_allclose(fit.estimates_, couplings, atol=1e-9)
    np.testing.assert_allclose(effects_of(fit), effects, atol=1e-9)
    fit = ik.TwoStageIsing(ridge=2.0, prune=0.0, threshold=0.0)
    fit.fit(spins, counts=totals, covariates=table)
    couplings, effects = linear_estimates(spins, table, totals)
    np.testing.assert_allclose(fit.estimates_, couplings, atol=1e-9)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_ridge_with_fewer_rows_than_spins_works_on_what_covariates_leave_too(rng, is_weighted):
    spins = rng.choice([-1, 1], (30, 70))
    table = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    totals = rng.integers(1, 4, 30).astype(float) if is_weighted else np.ones(30)
    fit = ik.RidgeIsing(ridge=0.3).fit(spins, counts=totals, covariates=table)
    couplings, effects = linear_estimates(spins, table, totals, ridge=0.3)
    np.testing.assert_allclose(fit.estimates_, couplings, atol=1e-9)
    np.testing.assert_allclose(effects_of(fit), effects, atol=1e-9)


def test_two_stages_of_many_spins_take_covariates_by_tiles(world, monkeypatch):
    _, spins, table = world
    counts = np.tile([1, 2], 300)
    found = []
    for most in (sizes.MOST_DENSE, 3):
        monkeypatch.setattr(sizes, "MOST_DENSE", most)
        fit = ik.TwoStageIsing(ridge=float("inf"), prune=0.05)
        fit.fit(spins, counts=counts, covariates=table)
        found.append((fit.model_.couplings.toarray(), fit.model_.effects.values))
    assert scipy.sparse.issparse(fit.estimates_)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_effects_of_linear_models_take_up_what_dropped_couplings_explained(world):
    _, spins, table = world
    fit = ik.LinearIsing(threshold=0.2).fit(spins, covariates=table)
    assert 0 < fit.model_.n_edges < 10
    left = spins - spins @ fit.model_.couplings
    values = as_covariates(table, 600).values
    design = np.column_stack([np.ones(600), values])
    found = np.linalg.lstsq(design, left, rcond=None)[0]
    np.testing.assert_allclose(fit.model_.fields, found[0], atol=1e-9)
    np.testing.assert_allclose(fit.model_.effects.values, found[1:].T, atol=1e-9)


def test_sums_of_pairs_forget_covariates(world):
    _, spins, table = world
    fit = ik.LinearIsing().fit(spins, covariates=table)
    fit.fit_gram(ik.gram(ik.pack(spins)))
    assert fit.model_.effects is None
    fit.fit(spins, covariates=table).partial_fit(spins)
    assert fit.model_.effects is None
    assert not hasattr(fit, "covariate_effects_")


def test_a_regression_counts_covariates_among_its_unknowns(rng):
    spins = rng.choice([-1, 1], (20, 17))
    table = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b", "c"])
    ik.LinearIsing().fit(spins)
    with pytest.raises(ex.UnderdeterminedError):
        ik.LinearIsing().fit(spins, covariates=table)


# Files, the command line and pages


@pytest.fixture
def run(capsys):
    """What a command exits with, prints and complains of."""

    def called(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(one) for one in arguments])
        return stopped.value.code, *capsys.readouterr()

    return called


@pytest.fixture
def data(world, tmp_path):
    """A file of spins with covariates between them."""
    _, spins, table = world
    frame = pd.DataFrame(spins, columns=list("abcde"))
    frame.insert(2, "age", table["age"].round(6))
    frame["site"] = table["site"]
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path, frame


@pytest.fixture
def fit_by_command(run):
    """The folder that the command writes, and what it prints."""

    def called(path, *options):
        folder = path.parent / "fit"
        plain = [part for name in ("l2", "threshold") for part in ("--set", f"{name}=0")]
        chosen = ("--method", "pseudolikelihood", *plain, "-o", folder)
        code, out, err = run("fit", path, *chosen, *options)
        assert code == 0, err
        return folder, out

    return called


DAYS = pd.to_datetime(["2020-01-01", "2020-01-03", "2020-01-02"] * 4)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(DAYS.date),
        pl.Series(DAYS.date),
        pa.array(DAYS.date),
        pd.Series(pd.array(DAYS.date, dtype=pd.ArrowDtype(pa.date32()))),
        DAYS.to_numpy().astype("M8[D]"),
    ],
    ids=["pandas", "polars", "pyarrow", "pandas of pyarrow", "numpy"],
)
def test_dates_are_categories_whoever_holds_them(column):
    """Seen to be refused, as no columns of two values."""
    assert as_covariates(column, 12).names == ("z0=2020-01-02", "z0=2020-01-03")


@pytest.mark.parametrize(
    "column",
    [pd.Series(DAYS), pl.Series(DAYS), pa.array(DAYS), DAYS.to_numpy().astype("M8[ns]"), DAYS],
    ids=["pandas", "polars", "pyarrow", "numpy", "index"],
)
def test_times_are_categories_whoever_holds_them(column):
    names = as_covariates(column, 12).names
    assert names == ("z0=2020-01-02 00:00:00", "z0=2020-01-03 00:00:00")


def test_spans_of_time_are_categories_and_decimals_numbers(tmp_path):
    spans = pd.Series(DAYS - DAYS[0], name="since")
    assert as_covariates(spans, 12).names == ("since=1 day, 0:00:00", "since=2 days, 0:00:00")
    amounts = [Decimal("1.50"), Decimal("2.25"), Decimal("4.00")] * 4
    expected = as_covariates(np.array(amounts, dtype=float), 12)
    for column in (pd.Series(amounts), pl.Series(amounts), pa.array(amounts)):
        assert (as_covariates(column, 12).values == expected.values).all()
    table = pd.DataFrame(
        {"a": [0, 1, 1] * 4, "amount": amounts, "up": list(map(Decimal, "010" * 4))}
    )
    table.to_parquet(tmp_path / "data.parquet")
    reading = read_spins(tmp_path / "data.parquet", covariates=["amount"])
    assert (as_covariates(reading.covariates, 12).values == expected.values).all()
    assert np.asarray(reading.packed)[:3].tolist() == [[-1, -1], [1, 1], [1, -1]]


def test_what_is_neither_number_nor_text_is_no_covariate():
    periods = pd.DataFrame({"month": pd.Series(DAYS).dt.to_period("M")})
    with pytest.raises(ex.CovariatesError, match="'month' holds values of type Period: make numb"):
        as_covariates(periods, 12)
    with pytest.raises(ex.CovariatesError, match="'z0' holds complex numbers"):
        as_covariates(np.arange(12) * 1j, 12)


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.EmptyRowsWarning")
@pytest.mark.parametrize("with_gaps", [False, True])
def test_rows_without_weight_are_judged_whatever_is_said_of_them(world, with_gaps):
    """Of a category that no other row is of. Seen to be refused, by `fit` of the command line
    too, which looks how well the model fits.
    """
    _, spins, table = world
    spins = spins.astype(float)
    weights = np.tile([1.0, 2.0, 0.0], 200)
    there = weights > 0
    odd = table.copy()
    odd["site"] = np.where(there, odd["site"], "nowhere")
    if with_gaps:  # rows without any value, which are left out before weights are
        spins[[3, 5]] = np.nan
        there[[3, 5]] = False
    fit = ik.PseudolikelihoodIsing(missing="drop").fit(spins, sample_weight=weights, covariates=odd)
    every = {"sample_weight": weights, "covariates": odd}
    some = {"sample_weight": weights[there], "covariates": table[there]}
    assert fit.score(spins, **every) == pytest.approx(fit.score(spins[there], **some))
    checks = [
        ik.fit_check(fit.model_, rows, **about, random_state=0)
        for rows, about in ((spins, every), (spins[there], some))
    ]
    np.testing.assert_allclose(checks[0].data_means, checks[1].data_means)
    assert np.abs(checks[0].model_means - checks[1].model_means).max() < 0.1
    measures = [
        ik.centrality(fit.model_, rows, **about)["predictability"]
        for rows, about in ((spins, every), (spins[there], some))
    ]
    np.testing.assert_allclose(*measures)


@pytest.fixture
def dose_model(tmp_path, rng):
    """A file of a model whose fields depend on a dose."""
    model, _ = small_model(pd.DataFrame({"dose": rng.normal(size=50)}), rng, size=1.0)
    model.save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def test_sample_reads_covariates_from_standard_input(run, dose_model, monkeypatch):
    rows = dose_model.with_name("rows.csv")
    rows.write_text("id;dose\nx;1,5\ny;-2\n")
    drawn = []
    for name in (rows, "-"):
        stream = SimpleNamespace(buffer=io.BytesIO(rows.read_bytes()))
        monkeypatch.setattr("sys.stdin", stream)
        output = dose_model.with_name(f"{len(drawn)}.csv")
        code, _, err = run("sample", dose_model, "--covariates", name, "-o", output, "--no-check")
        assert code == 0, err
        drawn.append(output.read_text())
    assert drawn[0] == drawn[1]
    monkeypatch.setattr("sys.stdin", None)
    code, _, err = run("sample", dose_model, "--covariates", "-", "-o", rows.with_suffix(".npy"))
    assert (code, "standard input is closed" in err) == (2, True)


def test_damaged_archives_of_covariates_are_told_in_one_line(run, dose_model):
    """Seen to end in a traceback of zlib."""
    whole = gzip.compress(b"id,dose\n" + b"x,1.5\n" * 3000)
    for name, damaged in (("short", whole[:40]), ("wrong", whole[:30] + b"\xff" * 9 + whole[39:])):
        rows = dose_model.with_name(f"{name}.csv.gz")
        rows.write_bytes(damaged)
        output = dose_model.with_name("samples.csv")
        code, _, err = run("sample", dose_model, "--covariates", rows, "-o", output)
        assert (code, err.count("\n")) == (2, 1)
        assert "cannot be read as text in columns" in err


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_columns_of_a_file_are_read_as_covariates(data, ending):
    path, frame = data
    path = path.with_suffix(f".{ending}")
    if ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="," if ending == "csv" else "\t")
    reading = read_spins(path, covariates=["age", "site"])
    assert reading.packed.names == tuple("abcde")
    assert (np.asarray(reading.packed) == frame[list("abcde")].to_numpy()).all()
    read = as_covariates(reading.covariates, 600)
    expected = as_covariates(frame[["age", "site"]], 600)
    assert read.coding == expected.coding
    assert (read.values == expected.values).all()


def test_numbers_in_a_parquet_column_of_texts_and_truth_values_are_categories(data):
    path, frame = data
    frame["age"] = np.where(frame["age"] > 50, "1", "2")
    frame["site"] = frame["site"] == "west"
    frame.to_parquet(path.with_suffix(".parquet"))
    reading = read_spins(path.with_suffix(".parquet"), covariates=["age", "site"])
    assert as_covariates(reading.covariates, 600).names == ("age=2", "site=True")


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([10, 20, 30] * 200).astype("category"),
        pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"] * 200)),
        pd.Series(np.array(["2020-01-01T10", "2020-01-02", "2020-01-03"] * 200, dtype="M8[ns]")),
        pd.Series([True, False, True] * 200),
        pd.Series(["a", "7", "8"] * 200),
    ],
    ids=["categories of numbers", "days", "nanoseconds", "truth", "texts"],
)
def test_a_column_of_a_parquet_file_that_holds_no_numbers_holds_categories(data, column):
    path, frame = data
    path = path.with_suffix(".parquet")
    frame.assign(site=column).to_parquet(path)
    coded = as_covariates(read_spins(path, covariates=["age", "site"]).covariates, 600)
    assert len(coded.names) == 1 + column.nunique() - 1
    assert all(name.startswith("site=") for name in coded.names[1:])
    sampled = read_covariates(path, coded.coding)
    assert (coded.coding.values(sampled) == coded.values).all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "series"])
def test_categories_of_numbers_and_truth_values_beside_gaps_are_categories(kind):
    frame = pd.DataFrame(
        {
            "site": pd.Series([10, 20, 30] * 20).astype("category"),
            "sick": pd.Series([True, False] * 30, dtype=object),
        }
    )
    table = {
        "pandas": lambda: frame,
        "polars": lambda: pl.DataFrame({"site": frame["site"].astype(str), "sick": frame["sick"]}),
        "pyarrow": lambda: pa.Table.from_pandas(frame),
        "series": lambda: frame["site"],
    }[kind]()
    names = as_covariates(table, 60).names
    assert names == ("site=20", "site=30", "sick=True")[: 2 if kind == "series" else 3]
    assert ik.as_spins(frame[["sick"]]).values[:2, 0].tolist() == [1, -1]


@pytest.mark.parametrize("make", [list, np.array, pa.array, pl.Series, pd.Series])
def test_one_column_of_covariates_may_be_of_any_kind(make):
    numbers = [1.5, 2.5, 4.0]
    assert as_covariates(make(numbers), 3).names == ("z0",)
    assert as_covariates(make(["a", "b", "b"]), 3).names == ("z0=b",)


def test_rows_without_weight_may_be_of_a_category_that_no_other_is(world):
    _, spins, table = world
    weights = np.ones(len(spins))
    weights[:3] = 0
    table = table.copy()
    table.loc[:2, "site"] = "elsewhere"
    fits = [
        ik.PseudolikelihoodIsing().fit(spins[k:], sample_weight=weights[k:], covariates=table[k:])
        for k in (0, 3)
    ]
    np.testing.assert_allclose(fits[0].model_.fields, fits[1].model_.fields, atol=1e-9)
    assert fits[0].model_.effects.names == fits[1].model_.effects.names


def test_columns_of_an_array_can_be_covariates(world, tmp_path):
    _, spins, table = world
    np.save(tmp_path / "data.npy", np.column_stack([spins, table["age"]]))
    reading = read_spins(tmp_path / "data.npy", covariates=["x5"])
    assert reading.packed.n_spins == 5
    assert (as_covariates(reading.covariates, 600).values[:, 0] != 0).any()


def test_the_command_learns_with_covariates_what_python_does(data, fit_by_command):
    path, frame = data
    folder, out = fit_by_command(path, "--covariates", "age, site")
    covariates = frame[["age", "site"]]
    fit = ik.PseudolikelihoodIsing().fit(frame[list("abcde")], covariates=covariates)
    model = ik.IsingModel.load(folder / "model.npz")
    assert (model.effects.values == fit.model_.effects.values).all()
    assert model.effects.coding == fit.model_.effects.coding
    with open(folder / "covariate_effects.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(fit.covariate_effects_.dtype.names)
    assert [row["variable"] for row in rows] == fit.covariate_effects_["variable"].tolist()
    assert [float(row["q_value"]) for row in rows] == fit.covariate_effects_["q_value"].tolist()
    facts = json.loads((folder / "fit.json").read_text())
    assert facts["covariates"] == ["age", "site"]
    assert facts["n_spins"] == 5
    assert "600 rows of 5 columns and 2 covariates, method pseudolikelihood" in out
    assert "edges.csv, covariate_effects.csv, model.npz" in out


def test_rows_that_are_left_out_take_their_covariates_along(data, fit_by_command):
    path, frame = data
    frame["b"] = frame["b"].astype(object)
    frame.loc[::7, "b"] = None
    frame.loc[::7, "age"] = np.nan
    frame.to_csv(path, index=False)
    folder, _ = fit_by_command(path, "--covariates", "age,site", "--missing", "drop")
    kept = frame.dropna().reset_index(drop=True)
    fit = ik.PseudolikelihoodIsing().fit(
        kept[list("abcde")].astype(int), covariates=kept[["age", "site"]]
    )
    model = ik.IsingModel.load(folder / "model.npz")
    np.testing.assert_allclose(model.effects.values, fit.model_.effects.values, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--covariates", "age,gone"), "there is no column 'gone'"),
        (("--covariates", "age", "--weights", "age"), "'age' can be only one of weights, counts"),
        (
            ("--covariates", "age", "--method", "naive-mean-field"),
            "--covariates goes with --method",
        ),
        (("--covariates", "age", "--method", "probability-flow"), "not with probability-flow"),
    ],
)
def test_mistakes_about_covariates_are_one_line(data, options, sentence, run):
    path, _ = data
    before = () if "--method" in options else ("--method", "ridge")
    code, _, err = run("fit", path, "-o", path.parent / "fit", *before, *options)
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("gap", ["", "NA"])
def test_a_missing_covariate_is_one_line(data, gap, run):
    path, frame = data
    frame["site"] = frame["site"].where(np.arange(600) % 100 != 3, gap)
    frame.to_csv(path, index=False)
    code, _, err = run("fit", path, "--method", "ridge", "--covariates", "age,site")
    assert code == 2
    assert "'site' lacks 6 of 600 values: fill them in, or leave these rows out." in err


def test_the_report_has_a_table_of_effects_surest_first(data, fit_by_command):
    path, _ = data
    folder, _ = fit_by_command(path, "--covariates", "age,site")
    page = (folder / "report.html").read_text()
    assert 'id="covariates-part"' in page
    assert "once age, site are known" in page
    contents = contents_in(folder / "report.html")
    assert len(contents.effects) == 15
    q_values = [row["q_value"] for row in contents.effects]
    assert q_values == sorted(q_values)
    assert 'id="covariates-part"' in html_page(contents)
    again, _ = fit_by_command(path, "--drop", "age,site", "--force")
    assert not (again / "covariate_effects.csv").exists()
    assert 'id="covariates-part"' not in (again / "report.html").read_text()


def test_pages_of_earlier_versions_have_no_effects(data, fit_by_command):
    path, _ = data
    folder, _ = fit_by_command(path, "--drop", "age,site")
    page = folder / "report.html"
    text = page.read_text().replace(', "effects": []', "").replace('"effects": [], ', "")
    page.write_text(text[: text.index("<!-- sha256")])  # they had no checksum
    assert '"effects"' not in page.read_text()
    assert contents_in(page).effects == []


def test_the_report_of_a_model_shows_its_effects(rng):
    model, _ = small_model(people(100, rng), rng)
    page = html_page(contents_of_model(model, "a model"))
    assert 'id="covariates-part"' in page
    assert "This method gives no errors." in page


def test_a_fit_goes_into_an_empty_folder_with_its_effects(data, fit_by_command):
    path, _ = data
    (path.parent / "fit").mkdir()
    folder, _ = fit_by_command(path, "--covariates", "site", "--drop", "age")
    assert (folder / "covariate_effects.csv").exists()
    assert (folder / "fit.json").exists()


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet"])
def test_the_command_samples_given_covariates(data, fit_by_command, run, ending):
    path, frame = data
    folder, _ = fit_by_command(path, "--covariates", "age,site")
    file = path.with_name(f"more.{ending}")
    some = frame.loc[10:30, ["site", "age"]]
    if ending == "parquet":
        some.to_parquet(file)
    else:
        some.to_csv(file, index=False, sep="\t" if ending == "tsv" else ",")
    model = folder / "model.npz"
    output = path.with_name("drawn.npy")
    code, out, err = run("sample", model, "--covariates", file, "-o", output, "--seed", 5)
    assert code == 0, err
    assert "21 samples of 5 spins" in out
    direct = ik.sample(ik.IsingModel.load(model), covariates=some, random_state=5)
    assert (np.load(output) == np.asarray(direct)).all()


def test_covariates_of_samples_are_read_as_those_of_a_fit(world, tmp_path):
    """A title, semicolons, decimal commas, letters of Windows, and a name that comes again."""
    _, _, table = world
    coding = as_covariates(table.assign(site=table["site"].replace("east", "Köln")), 600).coding
    path = tmp_path / "some.csv"
    path.write_bytes("People;;;\nage;q;site;q\n50,5;0;Köln;1\n40;1;west;0\n".encode("cp1252"))
    with pytest.warns(ex.RepeatedNamesWarning):
        read = read_covariates(path, coding)
    assert read.array.tolist() == [[50.5, "Köln"], [40.0, "west"]]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--samples", 5), "was learnt with covariates: name a file that has age, site with"),
        ((), "--samples says how many samples to draw"),
        (("--covariates", "ages.csv"), "there is no column 'site'; there are age"),
        (
            ("--covariates", "texts.csv"),
            "column 'age' should hold numbers, but holds texts such as 'old'",
        ),
        (("--covariates", "uneven.csv"), "its rows have different numbers of cells"),
        (("--covariates", "broken.csv.gz"), "it cannot be read as text in columns"),
        (("--covariates", "broken.parquet"), "it cannot be read as Parquet"),
        (("--covariates", "table.npy"), "covariates are read from .csv, .tsv (also .gz) and"),
        (("--covariates", "gap.csv"), "'age' lacks 1 of 2 values: fill them in"),
        (("--covariates", "endless.csv"), "'age' holds infinity: leave these rows out"),
        (("--covariates", "good.csv", "--samples", 7), "n_samples must be None or 1, one sample"),
    ],
)
def test_mistakes_about_samples_given_covariates_are_one_line(
    world, tmp_path, monkeypatch, run, options, sentence
):
    model, _, _ = world
    monkeypatch.chdir(tmp_path)
    model.save("model.npz")
    files = {
        "ages.csv": "age\n50\n",
        "texts.csv": "age,site\nold,west\n",
        "uneven.csv": "age,site\n50\n",
        "broken.csv.gz": "nothing",
        "broken.parquet": "nothing",
        "table.npy": "nothing",
        "gap.csv": "age,site\n,west\n50,east\n",
        "endless.csv": "age,site\ninf,west\n50,east\n",
        "good.csv": "age,site\n50,east\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    code, _, err = run("sample", "model.npz", "-o", "x.npy", *options)
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1


def test_the_command_takes_no_covariates_for_a_model_without(world, tmp_path, run):
    model, _, table = world
    replace(model, effects=None).save(tmp_path / "model.npz")
    table.to_csv(tmp_path / "table.csv")
    arguments = ("--covariates", tmp_path / "table.csv", "-o", tmp_path / "x.npy")
    code, _, err = run("sample", tmp_path / "model.npz", *arguments)
    assert code == 2
    assert "was learnt without covariates: leave --covariates out" in err
