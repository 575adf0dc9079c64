import functools
import operator
import os
import pickle
import signal
import threading
import traceback
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import isingkit as ik
import reference
from isingkit import exceptions as ex
from isingkit._kernels import threads
from isingkit.estimators import normal, ridge
from isingkit.estimators.mean_field import METHODS

ESTIMATORS = [ik.LinearIsing(), ik.RidgeIsing(), ik.TwoStageIsing()]
OF_SAMPLES = [
    ik.PseudolikelihoodIsing(),
    ik.PseudolikelihoodIsing(l1=0.02),
    ik.PseudolikelihoodIsing(l2=0.01, joint=True),
    ik.ELassoIsing(),
    ik.InteractionScreeningIsing(),
    ik.InteractionScreeningIsing(l1=0.02, log=True),
    ik.AutoIsing(),
    ik.AutoIsing(refit="bethe"),
]
OF_MOMENTS = [
    ik.LassoIsing(),
    *(ik.MeanFieldIsing(method=method) for method in METHODS),
    ik.MaximumLikelihoodIsing(),
]
ALL = ESTIMATORS + OF_SAMPLES + OF_MOMENTS


def worlds(n_spins, n_samples):
    truth = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=n_samples)
    return ik.sample(truth, n_samples=n_samples, random_state=n_samples + 1)


@pytest.mark.parametrize("fit_fields", [True, False])
@pytest.mark.parametrize("ridge", [1e-9, 0.1, 10.0])
@pytest.mark.parametrize("n_samples", [12, 20, 30, 39, 40, 41, 80])
def test_ridge_equals_scikit_learn_spin_by_spin(n_samples, ridge, fit_fields):
    """[eq:PL-estimator-L2] M > N, M = N, M < N by the inverse and by the dual."""
    samples = worlds(40, n_samples)
    fit = ik.RidgeIsing(ridge=ridge, fit_fields=fit_fields).fit(samples)
    rows, intercepts = reference.regressions(
        np.asarray(samples, dtype=float), ridge * 40, fit_fields
    )
    np.testing.assert_allclose(fit.estimates_, rows, rtol=1e-8, atol=1e-8 * np.abs(rows).max())
    np.testing.assert_allclose(fit.intercepts_, intercepts, atol=1e-8)


@pytest.mark.parametrize("n_samples", [12, 80])
def test_from_fit_to_lapack_it_is_four_calls(n_samples, monkeypatch):
    """By the inverse and by the dual; eleven before steps came one after the other."""
    depths = []
    package = str(Path(ik.__file__).parent)

    def spied(routine):
        def spy(*arguments, **options):
            frames = [one for one in traceback.extract_stack() if one.filename.startswith(package)]
            depths.append(len(frames))
            return routine(*arguments, **options)

        return spy

    routines = {name: spied(getattr(normal.lapack, name)) for name in ("dpotrf", "dpotri")}
    lapack = types.SimpleNamespace(**routines)
    monkeypatch.setattr(normal, "lapack", lapack)
    monkeypatch.setattr(ridge, "lapack", lapack)
    ik.RidgeIsing().fit(worlds(40, n_samples))
    assert set(depths) == {4}


@pytest.mark.parametrize("fit_fields", [True, False])
@pytest.mark.parametrize("n_samples", [41, 60, 400])
def test_linear_equals_scikit_learn_spin_by_spin(n_samples, fit_fields):
    samples = worlds(40, n_samples)
    fit = ik.LinearIsing(fit_fields=fit_fields).fit(samples)
    rows, intercepts = reference.regressions(np.asarray(samples, dtype=float), 0, fit_fields)
    np.testing.assert_allclose(fit.estimates_, rows, rtol=1e-8, atol=1e-8 * np.abs(rows).max())
    np.testing.assert_allclose(fit.intercepts_, intercepts, atol=1e-8)


@pytest.mark.parametrize("fit_fields", [True, False])
@pytest.mark.parametrize(
    ("n_samples", "ridge", "prune"),
    [(30, 0.1, 0.2), (40, 0.1, 0.15), (200, 1.0, 0.05), (200, 1.0, 9.0)],
)
def test_two_stage_equals_the_plain_reference(n_samples, ridge, prune, fit_fields):
    """[eq:stage1-threshold]"""
    samples = worlds(40, n_samples)
    fit = ik.TwoStageIsing(ridge=ridge, prune=prune, fit_fields=fit_fields).fit(samples)
    one, two = reference.two_stage(np.asarray(samples, dtype=float), ridge, prune, fit_fields)
    np.testing.assert_allclose(fit.stage_one_estimates_, one, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(fit.estimates_, two, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(fit.support_sizes_, (two != 0).sum(axis=1))


def test_an_infinite_ridge_screens_on_sample_correlations(spins):
    fit = ik.TwoStageIsing(ridge=np.inf, prune=0.15).fit(spins)
    correlations = np.corrcoef(spins.T) - np.eye(12)
    np.testing.assert_allclose(fit.stage_one_estimates_, correlations, atol=1e-14)
    np.testing.assert_array_equal(fit.support_sizes_, (np.abs(correlations) > 0.15).sum(axis=1))


def test_a_large_ridge_ranks_candidates_as_an_infinite_one_does(spins):
    """Without fields: estimates -> (alpha / lambda) times the correlations."""
    finite = (
        ik.TwoStageIsing(ridge=1e9, prune=0.0, fit_fields=False).fit(spins).stage_one_estimates_
    )
    infinite = ik.TwoStageIsing(ridge=np.inf, fit_fields=False).fit(spins).stage_one_estimates_
    np.testing.assert_allclose(finite * 1e9 * 12 / 300, infinite, atol=1e-6)


@pytest.mark.parametrize("estimator", ALL)
def test_every_coding_gives_the_same_network_to_the_bit(estimator, spins):
    fits = [
        clone(estimator).fit(table)
        for table in (
            spins,
            (spins + 1) // 2,
            (spins + 3) // 2,
            spins > 0,
            np.where(spins > 0, "yes", "no"),
            spins.astype(np.float32),
            pd.DataFrame(spins),
            ik.pack(spins),
        )
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.estimates_, fits[0].estimates_)
        np.testing.assert_array_equal(
            fit.model_.couplings.toarray(), fits[0].model_.couplings.toarray()
        )
        np.testing.assert_array_equal(fit.model_.fields, fits[0].model_.fields)


@pytest.mark.parametrize("estimator", ESTIMATORS + OF_MOMENTS)
def test_fitting_a_gram_of_chunks_equals_fitting_the_data_to_the_bit(estimator, spins):
    stat = functools.reduce(operator.add, [ik.gram(spins[a : a + 70]) for a in range(0, 300, 70)])
    np.testing.assert_array_equal(
        clone(estimator).fit_gram(stat).estimates_, clone(estimator).fit(spins).estimates_
    )


@pytest.mark.parametrize("estimator", ALL)
def test_one_and_two_threads_give_the_same_answer_to_the_bit(estimator, monkeypatch):
    from numba import config

    samples = worlds(150, 400) if estimator in ESTIMATORS else worlds(16, 900)
    fits = []
    for n_threads in (1, 2):
        monkeypatch.setattr(config, "NUMBA_NUM_THREADS", n_threads)
        fits.append(clone(estimator).fit(samples))
    np.testing.assert_array_equal(fits[0].estimates_, fits[1].estimates_)


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")
@pytest.mark.parametrize("estimator", ALL)
def test_counts_equal_repeated_rows_to_the_bit(estimator, spins, rng):
    counts = rng.integers(0, 4, 300)
    repeated = np.repeat(spins, counts, axis=0)
    same_to_the_bit(clone(estimator).fit(spins, counts=counts), clone(estimator).fit(repeated))


def same_to_the_bit(one, other):
    np.testing.assert_array_equal(one.estimates_, other.estimates_)
    np.testing.assert_array_equal(one.intercepts_, other.intercepts_)
    np.testing.assert_array_equal(one.model_.couplings.toarray(), other.model_.couplings.toarray())
    np.testing.assert_array_equal(one.model_.fields, other.model_.fields)
    assert one.n_samples_ == other.n_samples_
    for name in ("edges_", "rejected_", "intervals_", "candidates_", "criteria_", "threshold_"):
        if hasattr(other, name):
            ours, theirs = getattr(one, name), getattr(other, name)
            for column in getattr(theirs, "dtype", np.dtype(float)).names or [...]:
                np.testing.assert_array_equal(np.asarray(ours)[column], np.asarray(theirs)[column])


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        ik.LinearIsing(),
        ik.RidgeIsing(),
        ik.TwoStageIsing(ridge="auto", prune="auto", threshold="auto"),
        ik.LassoIsing(),
        ik.MeanFieldIsing(),
        ik.AutoIsing(),
    ],
)
def test_counts_equal_repeated_rows_that_lack_values(estimator, spins, rng):
    table = spins.astype(float)
    table[rng.random(table.shape) < 0.1] = np.nan
    counts = rng.integers(0, 4, 300)
    estimator = clone(estimator).set_params(missing="pairwise")
    same_to_the_bit(
        clone(estimator).fit(table, counts=counts),
        clone(estimator).fit(np.repeat(table, counts, axis=0)),
    )


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")
@pytest.mark.parametrize("n_rows", [20, 60, 200])
@pytest.mark.parametrize(
    "estimator",
    [
        ik.RidgeIsing(),
        ik.RidgeIsing(ridge=1e-9),
        ik.TwoStageIsing(ridge="auto", prune=0.2, threshold="auto"),
        ik.PseudolikelihoodIsing(l1=0.05),
        ik.ELassoIsing(),
        ik.AutoIsing(),
    ],
)
def test_counts_equal_repeated_rows_of_many_spins(estimator, n_rows, rng):
    """More spins than fit a key of 64 bits: by the inverse, and by the dual where rows are few."""
    values = np.asarray(worlds(70, n_rows))
    counts = rng.integers(1, 4, n_rows)
    same_to_the_bit(
        clone(estimator).fit(values, counts=counts),
        clone(estimator).fit(np.repeat(values, counts, axis=0)),
    )


@pytest.mark.parametrize("estimator", [ik.TwoStageIsing(), ik.AutoIsing()])
def test_counts_equal_repeated_rows_of_so_many_spins_that_only_bits_are_kept(
    estimator, rng, monkeypatch
):
    from isingkit.estimators import sizes

    monkeypatch.setattr(sizes, "MOST_DENSE", 50)
    values = np.asarray(worlds(150, 60))
    counts = rng.integers(0, 4, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.ReliabilityWarning)
        counted = clone(estimator).fit(values, counts=counts)
        repeated = clone(estimator).fit(np.repeat(values, counts, axis=0))
    assert (counted.estimates_ != repeated.estimates_).nnz == 0
    np.testing.assert_array_equal(counted.model_.fields, repeated.model_.fields)


@pytest.mark.parametrize("estimator", ALL)
def test_scores_of_counted_rows_are_those_of_repeated_rows(estimator, spins, rng):
    fit = clone(estimator).fit(spins)
    counts = rng.integers(0, 4, 300)
    repeated = np.repeat(spins, counts, axis=0)
    assert fit.score(spins, counts=counts) == pytest.approx(fit.score(repeated), rel=1e-12)
    assert fit.log_likelihood(spins, counts=counts) == pytest.approx(
        fit.log_likelihood(repeated), rel=1e-12
    )


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")
@pytest.mark.parametrize(
    "estimator", [*ALL, ik.TwoStageIsing(ridge="auto", prune="auto", threshold="auto")]
)
def test_a_factor_of_weights_that_are_no_whole_numbers_changes_nothing(estimator, spins, rng):
    weights = rng.lognormal(sigma=0.7, size=300)
    fits = [
        clone(estimator).fit(spins, sample_weight=factor * weights)
        for factor in (1.0, 1 / weights.sum(), 1e-6, 1000.5)
    ]
    n_effective = weights.sum() ** 2 / (weights**2).sum()
    for fit in fits:
        assert fit.n_samples_ == pytest.approx(n_effective, rel=1e-9)
        np.testing.assert_allclose(fit.estimates_, fits[0].estimates_, atol=1e-7)
        np.testing.assert_allclose(fit.model_.fields, fits[0].model_.fields, atol=1e-7)
        assert fit.model_.n_edges == fits[0].model_.n_edges


@pytest.mark.parametrize(
    "estimator",
    [ik.TwoStageIsing(ridge="auto", prune="auto", threshold="auto"), ik.ELassoIsing()],
)
def test_what_chooses_itself_does_not_take_whole_weights_for_samples(estimator, spins):
    """All weights 50: neither a criterion nor a threshold believes in 15,000 rows."""
    plain = clone(estimator).fit(spins)
    heavy = clone(estimator).fit(spins, sample_weight=np.full(300, 50))
    many = clone(estimator).fit(spins, counts=np.full(300, 50))
    assert heavy.model_.n_edges == pytest.approx(plain.model_.n_edges, abs=1)
    assert many.model_.n_edges > plain.model_.n_edges + 5


def test_weights_that_sum_to_one_do_not_empty_the_ridge_network(spins, rng):
    weights = rng.lognormal(size=300)
    shares = ik.RidgeIsing().fit(spins, sample_weight=weights / weights.sum())
    large = ik.RidgeIsing().fit(spins, sample_weight=1000.5 * weights)
    np.testing.assert_allclose(shares.estimates_, large.estimates_, rtol=1e-10)
    assert shares.model_.n_edges > 5


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")
@pytest.mark.filterwarnings("ignore::isingkit.exceptions.CountsAsWeightsWarning")
@pytest.mark.parametrize("estimator", ALL)
def test_whole_weights_are_weights_and_not_rows(estimator, spins, rng):
    """Seen to fail with whole numbers taken for so many rows against a ridge."""
    weights = rng.integers(0, 4, 300)
    whole, halves, many = (
        clone(estimator).fit(spins, sample_weight=factor * weights) for factor in (1, 0.5, 1000)
    )
    for other in (halves, many):
        np.testing.assert_allclose(other.estimates_, whole.estimates_, atol=1e-7)
        assert other.n_samples_ == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


@pytest.mark.parametrize("weight", [1, 3, 50, 1 / 3, 0.1])
def test_equal_weights_are_none(spins, weight):
    """To the last bit, in sums, fits and parts. Seen to fail with 50 taken for 50 rows."""
    plain = ik.RidgeIsing(ridge=5.0).fit(spins)
    equal = ik.RidgeIsing(ridge=5.0).fit(spins, sample_weight=np.full(300, weight))
    np.testing.assert_array_equal(equal.estimates_, plain.estimates_)
    parts = ik.RidgeIsing(ridge=5.0)
    for some in (slice(0, 100), slice(100, 300)):
        rows = spins[some]
        parts.partial_fit(rows, sample_weight=np.full(len(rows), weight))
    np.testing.assert_allclose(parts.estimates_, plain.estimates_, atol=1e-12)


def test_a_row_counts_as_often_as_it_was_seen_times_what_it_matters(spins, rng):
    counts, weights = rng.integers(0, 4, 300), rng.lognormal(size=300)
    both = ik.RidgeIsing().fit(spins, sample_weight=weights, counts=counts)
    rows = np.repeat(np.arange(300), counts)
    repeated = ik.RidgeIsing().fit(spins[rows], sample_weight=weights[rows])
    np.testing.assert_allclose(both.estimates_, repeated.estimates_, atol=1e-12)
    assert both.n_samples_ == pytest.approx(repeated.n_samples_)
    values = spins[:9]  # fewer than spins: the dual
    few = [1, 0, 1, 1, 1, 0, 1, 0, 0]
    both = ik.RidgeIsing().fit(values, sample_weight=weights[:9], counts=few)
    rows = [0, 2, 3, 4, 6]
    repeated = ik.RidgeIsing().fit(values[rows], sample_weight=weights[rows])
    np.testing.assert_allclose(both.estimates_, repeated.estimates_, atol=1e-12)


@pytest.mark.parametrize("sample_weight", [False, True])
def test_counts_of_parts_are_those_of_the_whole(spins, rng, sample_weight):
    counts, weights = rng.integers(0, 4, 300), rng.lognormal(size=300)
    given = {"counts": counts} | ({"sample_weight": weights} if sample_weight else {})
    whole = ik.RidgeIsing().fit(spins, **given)
    parts = ik.RidgeIsing()
    for some in (slice(0, 100), slice(100, 300)):
        parts.partial_fit(spins[some], **{name: value[some] for name, value in given.items()})
    np.testing.assert_allclose(parts.estimates_, whole.estimates_, atol=1e-12)
    assert parts.n_samples_ == pytest.approx(whole.n_samples_)


def test_rows_that_are_dropped_take_their_counts_with_them(spins, rng):
    table = spins.astype(float)
    table[5:20, 3] = np.nan
    complete = ~np.isnan(table).any(axis=1)
    counts, weights = rng.integers(0, 4, 300), rng.lognormal(size=300)
    for data in (table, ik.as_spins(table, missing="pairwise")):
        dropped = ik.RidgeIsing(missing="drop").fit(data, sample_weight=weights, counts=counts)
        kept = ik.RidgeIsing().fit(
            spins[complete], sample_weight=weights[complete], counts=counts[complete]
        )
        np.testing.assert_allclose(dropped.estimates_, kept.estimates_, atol=1e-13)


@pytest.mark.parametrize(
    "counts", [[1, 2], [1, -1, 1], [1, np.nan, 1], [1, 0.5, 1], [0, 0, 0], [[1, 1, 1]], "n", 1e300]
)
def test_bad_counts_are_refused(counts):
    table = [[0, 1], [1, 0], [1, 1]]
    for use in (ik.RidgeIsing().fit, ik.RidgeIsing().partial_fit, ik.gram):
        with pytest.raises(ex.CountsError, match="counts must hold one whole number >= 0"):
            use(table, counts=counts)
    with pytest.raises(ex.SampleWeightError, match="wherever counts are not"):
        ik.gram(table, counts=[0, 1, 1], sample_weight=[1, 0, 0])


@pytest.mark.parametrize("rule", ["average", "and", "or"])
def test_the_model_follows_from_the_estimates_by_threshold_and_rule(rule, spins):
    fit = ik.RidgeIsing(threshold=0.07, rule=rule).fit(spins)
    forth, back = fit.estimates_, fit.estimates_.T
    passes = {
        "average": np.abs(forth + back) / 2 > 0.07,
        "and": (np.abs(forth) > 0.07) & (np.abs(back) > 0.07),
        "or": (np.abs(forth) > 0.07) | (np.abs(back) > 0.07),
    }[rule]
    expected = np.where(passes, (forth + back) / 2, 0)
    np.testing.assert_array_equal(fit.model_.couplings.toarray(), expected)
    means = spins.mean(axis=0)
    np.testing.assert_allclose(fit.model_.fields, means - expected @ means, atol=1e-14)
    assert 0 < passes.sum() < 12 * 11


def test_without_fields_the_model_has_none(spins):
    assert not ik.RidgeIsing(fit_fields=False).fit(spins).model_.fields.any()


@pytest.mark.parametrize("names", [[1, 2, 3], [1, "a", "b"]])
def test_columns_whose_names_are_numbers_are_compared_with_those_of_the_fit(spins, names):
    table = pd.DataFrame(spins[:, :3], columns=names)
    fit = ik.LinearIsing().fit(table)
    assert fit.model_.names == tuple(map(str, names))
    assert np.isfinite(fit.score(table))
    if names[1] == 2:  # of texts scikit-learn warns
        assert fit.score(table) == fit.score(spins[:, :3])
    with pytest.raises(ValueError, match="same order"):
        fit.score(table[[names[2], *names[:2]]])


def test_names_travel_from_the_table_to_the_edges(spins):
    names = [f"item {j}" for j in range(12)]
    fit = ik.RidgeIsing().fit(pd.DataFrame(spins, columns=names))
    assert fit.model_.names == tuple(names)
    assert list(fit.feature_names_in_) == names
    assert fit.mapping_ == ((-1, 1),) * 12
    strongest = fit.model_.edges()[0]
    assert abs(names.index(strongest["source"]) - names.index(strongest["target"])) == 1


def test_score_is_the_mean_log_pseudolikelihood(spins):
    """[eq:PL-def] by its definition."""
    fit = ik.RidgeIsing().fit(spins)
    couplings, fields = fit.model_.couplings.toarray(), fit.model_.fields
    expected = np.mean(
        [
            sum(
                np.log(1 / (1 + np.exp(-2 * s[i] * (couplings[i] @ s + fields[i]))))
                for i in range(12)
            )
            for s in spins[:50]
        ]
    )
    assert fit.score(spins[:50]) == pytest.approx(expected, rel=1e-12)
    assert fit.score(ik.pack(spins[:50])) == pytest.approx(expected, rel=1e-12)


def test_scoring_reads_a_table_as_the_fit_did(spins):
    fit = ik.RidgeIsing().fit(np.where(spins > 0, "up", "down"))
    assert fit.mapping_[0] == ("down", "up")
    assert fit.score(np.full((3, 12), "up")) == pytest.approx(
        ik.RidgeIsing().fit(spins).score(np.ones((3, 12)))
    )
    with pytest.raises(ex.SpinValueError, match="down or up was expected"):
        fit.score(np.full((3, 12), "sideways"))
    with pytest.raises(ex.CodingMismatchError, match="'x0' was read as"):
        fit.score(
            ik.pack(ik.as_spins(np.where(spins > 0, "up", "down"), mapping=[("up", "down")] * 12))
        )


def test_least_squares_refuses_too_few_samples_and_offers_ridge(rng):
    values = rng.choice([-1, 1], (12, 12))
    with pytest.raises(
        ex.UnderdeterminedError, match=r"underdetermined.*RidgeIsing\(ridge=0.1\)"
    ) as caught:
        ik.LinearIsing().fit(values)
    assert (caught.value.n_samples, caught.value.n_spins) == (12, 12)
    ik.RidgeIsing(ridge=0.1).fit(values)  # its advice


@pytest.mark.parametrize("sign", [1, -1])
def test_least_squares_names_identical_and_opposite_columns(spins, sign):
    table = pd.DataFrame(spins, columns=list("abcdefghijkl"))
    table["h"] = sign * table["c"]
    with pytest.raises(
        ex.DuplicateColumnsError,
        match="'c' and 'h' are " + ("identical" if sign > 0 else "opposite"),
    ) as caught:
        ik.LinearIsing().fit(table)
    assert caught.value.pair == ("c", "h")
    ik.RidgeIsing(ridge=0.1).fit(table)  # its advice


def test_least_squares_names_a_column_that_depends_on_others(rng):
    """Of one-hot columns the last follows from the others, given the intercept."""
    kind = rng.integers(0, 3, 200)
    values = 2 * np.eye(3, dtype=int)[kind] - 1
    with pytest.raises(
        ex.SingularSystemError,
        match="200 rows of 3 columns 'x2' is a linear combination.*RidgeIsing",
    ):
        ik.LinearIsing().fit(values)
    ik.RidgeIsing(ridge=0.1).fit(values)


def test_stage_two_with_more_unknowns_than_samples_says_so(rng):
    values = rng.choice([-1, 1], (20, 60))
    with pytest.raises(
        ex.StageTwoError, match="59 candidates, but the rows allow 18 at the most.*Raise prune"
    ) as caught:
        ik.TwoStageIsing(prune=0.0).fit(values)
    assert (caught.value.n_unknowns, caught.value.most) == (59, 18)
    values = rng.choice([-1, 1], (20, 20))
    with pytest.raises(ex.StageTwoError, match="19 candidates, but the rows allow 18"):
        ik.TwoStageIsing(prune=0.0).fit(values)
    ik.TwoStageIsing(prune=0.0, fit_fields=False).fit(values)
    values = rng.choice([-1, 1], (20, 60))
    ik.TwoStageIsing(prune=0.3).fit(values)  # its advice


def test_stage_two_names_identical_columns(spins):
    table = spins.copy()
    table[:, 7] = table[:, 2]
    with pytest.raises(ex.DuplicateColumnsError, match="'x2' and 'x7' are identical"):
        ik.TwoStageIsing(prune=0.0).fit(table)


def test_stage_two_that_is_singular_says_so(rng):
    """One-hot columns depend on each other without any two being equal."""
    values = np.c_[2 * np.eye(3, dtype=int)[rng.integers(0, 3, 200)] - 1, rng.choice([-1, 1], 200)]
    with pytest.raises(ex.StageTwoError, match="some follow from others.*leave out columns"):
        ik.TwoStageIsing(prune=0.0).fit(values)


@pytest.mark.parametrize("fit_fields", [True, False])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_constant_column_is_an_isolated_spin_and_changes_nothing_else(
    estimator, spins, fit_fields
):
    """But for the penalty, which counts it among the n_spins."""
    table = np.insert(spins, 4, 1, axis=1)
    estimator = clone(estimator).set_params(fit_fields=fit_fields)
    with pytest.warns(ex.ConstantColumnWarning, match="'x4'"):
        fit = clone(estimator).fit(table)
    with pytest.warns(ex.ConstantColumnWarning, match="'x4'"):
        np.testing.assert_array_equal(
            clone(estimator)
            .fit_gram(ik.gram(ik.as_spins(table, mapping=[(-1, 1)] * 13)))
            .estimates_,
            fit.estimates_,
        )
    assert not fit.estimates_[4].any()
    assert not fit.estimates_[:, 4].any()
    if "ridge" in estimator.get_params():
        estimator.set_params(ridge=estimator.ridge * 13 / 12)
    rest = estimator.fit(spins).estimates_
    np.testing.assert_allclose(np.delete(np.delete(fit.estimates_, 4, 0), 4, 1), rest, atol=1e-12)


@pytest.mark.parametrize("estimator", OF_SAMPLES + OF_MOMENTS)
def test_a_constant_column_is_isolated_finite_and_changes_nothing_else(estimator, spins):
    with pytest.warns(ex.ConstantColumnWarning, match="'x4'"):
        fit = clone(estimator).fit(np.insert(spins, 4, -1, axis=1))
    assert not fit.estimates_[4].any()
    assert not fit.estimates_[:, 4].any()
    assert fit.model_.fields[4] < -0.9
    assert np.isfinite(fit.model_.fields).all()
    np.testing.assert_allclose(
        np.delete(np.delete(fit.estimates_, 4, 0), 4, 1),
        clone(estimator).fit(spins).estimates_,
        atol=1e-8,
    )


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize(
    ("table", "weights"),
    [
        ([[0, 1, 1], [0, 1, 1], [0, 1, 1]], None),
        ([[0, 1, 1], [1, 0, 1]], None),
        ([[0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 1]], [0, 0, 5, 0]),
        ([[0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 1]], [0, 2, 0.5, 0]),
        ([[0, 0, 1], [1, 1, 0]] * 20, None),
    ],
    ids=["all rows equal", "two rows", "weight in one row", "weight in two rows", "equal columns"],
)
def test_hopeless_data_give_a_sentence_or_a_finite_model(estimator, table, weights):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy's own warnings would be tracebacks in waiting
        warnings.simplefilter("ignore", ex.IsingkitWarning)
        try:
            model = clone(estimator).fit(np.array(table), sample_weight=weights).model_
        except ex.IsingkitError as error:
            assert 40 < len(str(error)) < 400  # noqa: PT017
        else:
            assert np.isfinite(model.couplings.toarray()).all()
            assert np.isfinite(model.fields).all()


@pytest.mark.parametrize(
    ("estimator", "says"),
    [
        (ik.RidgeIsing(ridge=-1), "ridge must be a finite number > 0"),
        (ik.RidgeIsing(ridge=np.inf), "ridge must be a finite number > 0"),
        (ik.RidgeIsing(ridge="0.1"), "ridge must be a finite number > 0 and .*, but got '0.1'"),
        (ik.RidgeIsing(fit_fields="no"), "fit_fields must be True or False"),
        (ik.TwoStageIsing(ridge=0), "ridge must be"),
        (ik.TwoStageIsing(prune=-0.1), "prune must be"),
        (ik.LinearIsing(threshold=-1), "threshold must be"),
        (ik.LinearIsing(threshold=np.nan), "threshold must be"),
        (ik.LinearIsing(rule="both"), "'average', 'and' or 'or'"),
        (ik.LinearIsing(missing="ignore"), "'error', 'drop' or 'pairwise'"),
        (ik.PseudolikelihoodIsing(l1=-1), "l1 must be a finite number >= 0"),
        (ik.PseudolikelihoodIsing(l2=np.nan), "l2 must be"),
        (ik.PseudolikelihoodIsing(joint="yes"), "joint must be True or False"),
        (ik.PseudolikelihoodIsing(n_jobs="all"), "n_jobs must be a whole number"),
        (ik.InteractionScreeningIsing(log=1), "log must be True or False"),
        (ik.ELassoIsing(gamma=-0.1), "gamma must be"),
        (ik.ELassoIsing(n_penalties=1), "n_penalties must be a whole number >= 2"),
        (ik.LassoIsing(l1=0), "l1 must be a finite number > 0"),
        (ik.MeanFieldIsing(method="magic"), "method must be 'naive', 'tap'"),
        (ik.MeanFieldIsing(deflate=2), "deflate must be"),
        (ik.MaximumLikelihoodIsing(method="magic"), "'exact' or 'boltzmann'"),
        (ik.MaximumLikelihoodIsing(n_chains=1), "n_chains must be"),
        (ik.MaximumLikelihoodIsing(tolerance=0), "tolerance must be"),
        (ik.MaximumLikelihoodIsing(max_steps=0), "max_steps must be"),
        (ik.MaximumLikelihoodIsing(progress=None), "progress must be"),
        (ik.MaximumLikelihoodIsing(l2=-1), "l2 must be"),
        (ik.AutoIsing(level=0), "level must be"),
        (ik.AutoIsing(level=1), "level must be a number below 1"),
        (ik.AutoIsing(control="none"), "'fdr' or 'fwer'"),
        (ik.AutoIsing(refit="none"), "'pseudolikelihood', 'bethe' or 'linear'"),
    ],
)
def test_settings_out_of_range_are_refused(estimator, says, spins):
    with pytest.raises(ex.SettingError, match=says):
        estimator.fit(spins)


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("table", [[[0, 1, 1]], [[0], [1], [1]]], ids=["one row", "one column"])
def test_one_row_or_one_column_is_refused(estimator, table):
    with pytest.raises(ex.TableTooSmallError, match="at least 2 rows of at least 2 columns"):
        clone(estimator).fit(ik.pack(ik.as_spins(table, mapping=[(0, 1)] * len(table[0]))))


def test_packed_spins_with_missing_values_obey_missing(spins, rng):
    table = spins.astype(float)
    table[rng.random(table.shape) < 0.03] = np.nan
    packed = ik.pack(ik.as_spins(table, missing="pairwise"))
    with pytest.raises(ex.MissingValuesError, match="missing='drop'"):
        ik.RidgeIsing().fit(packed)
    for missing in ("drop", "pairwise"):
        weights = rng.random(300)
        one, other = (
            ik.RidgeIsing(missing=missing).fit(data, sample_weight=weights)
            for data in (table, packed)
        )
        np.testing.assert_array_equal(one.estimates_, other.estimates_)
        assert one.score(table) == other.score(packed)
    with pytest.raises(ex.SampleWeightError, match="for 300 rows"):
        ik.RidgeIsing(missing="drop").fit(table, sample_weight=np.ones(5000))


def test_score_leaves_missing_values_out(spins):
    fit = ik.RidgeIsing(missing="pairwise", fit_fields=False).fit(spins)
    table = spins[:1].astype(float)
    table[0, 0] = np.nan
    couplings = fit.model_.couplings.toarray()
    known = np.where(np.isnan(table[0]), 0, table[0])
    expected = sum(-np.log1p(np.exp(-2 * known[i] * (couplings[i] @ known))) for i in range(1, 12))
    assert fit.score(table) == pytest.approx(expected, rel=1e-12)


def test_weights_that_add_up_to_one_are_as_good_as_any(spins):
    for estimator in (ik.LinearIsing(), ik.TwoStageIsing(ridge=np.inf)):
        one = clone(estimator).fit(spins)
        other = clone(estimator).fit(spins, sample_weight=np.full(300, 1 / 300))
        np.testing.assert_allclose(one.estimates_, other.estimates_, atol=1e-12)
        assert (one.n_samples_, other.n_samples_) == (300, pytest.approx(300))


def test_spins_are_told_apart_by_their_names(spins):
    names = [f"item {j}" for j in range(12)]
    table = pd.DataFrame(spins, columns=names)
    packed = ik.pack(table)
    for fit in (
        ik.RidgeIsing().fit(packed),
        ik.RidgeIsing().fit_gram(ik.gram(packed)),
        ik.RidgeIsing().fit(ik.as_spins(table)),
    ):
        assert list(fit.feature_names_in_) == names
        assert fit.score(table) == fit.score(packed)
        with pytest.raises(
            ex.ModelMismatchError, match="'item 0' in one and 'item 11' in the other"
        ):
            fit.score(packed[:, ::-1])
        with pytest.raises(ValueError, match="feature names"):
            fit.score(table[names[::-1]])
    again = fit.fit(spins)
    assert not hasattr(again, "feature_names_in_")
    with pytest.raises(ex.EmptyTableError):
        again.score(ik.pack(spins)[:0])
    with pytest.raises(ex.SettingError, match="stat must be a Gram"):
        again.fit_gram(table)


def test_an_infinite_ridge_leaves_constant_and_unobserved_pairs_out(spins):
    table = np.insert(spins, 4, 1, axis=1).astype(float)
    table[:150, 0], table[150:, 1] = np.nan, np.nan
    with pytest.warns(ex.ConstantColumnWarning), pytest.warns(ex.UnobservedPairWarning):
        fit = ik.TwoStageIsing(
            ridge=np.inf, prune=0.0, threshold=0.0, missing="pairwise", fit_fields=False
        ).fit(table)
    assert not fit.stage_one_estimates_[4].any()
    assert fit.estimates_[0, 1] == fit.estimates_[1, 0] == 0
    assert np.isfinite(fit.estimates_).all()


def test_constant_spins_that_come_packed_are_named(spins):
    packed = ik.pack(ik.as_spins(np.insert(spins, 4, 1, axis=1), mapping=[(-1, 1)] * 13))
    with pytest.warns(ex.ConstantColumnWarning, match="'x4'"):
        ik.RidgeIsing().fit(packed)


def test_a_column_without_values_in_the_rows_at_hand_is_named(spins):
    table = spins.astype(float)
    table[:150, 3] = np.nan
    packed = ik.pack(ik.as_spins(table, missing="pairwise"))
    with pytest.raises(ex.NoValuesError, match="'x3'"):
        ik.RidgeIsing(missing="pairwise").fit(packed[:150])


@pytest.mark.parametrize("shape", [(20, 60), (100, 10)])
def test_a_ridge_too_small_to_matter_is_refused(rng, shape):
    values = rng.choice([-1, 1], shape)
    values[:, 1] = values[:, 0]
    with pytest.raises(
        ValueError, match="ridge must be large enough|is a linear combination of others"
    ):
        ik.RidgeIsing(ridge=1e-18).fit(values)


def test_missing_values_dropped_equal_the_complete_rows(spins, rng):
    table = spins.astype(float)
    table[rng.random(table.shape) < 0.03] = np.nan
    complete = ~np.isnan(table).any(axis=1)
    weights = rng.random(300)
    dropped = ik.RidgeIsing(missing="drop").fit(table, sample_weight=weights)
    kept = ik.RidgeIsing().fit(table[complete], sample_weight=weights[complete])
    np.testing.assert_array_equal(dropped.estimates_, kept.estimates_)


def test_pairwise_missing_equals_regression_on_pairwise_covariances(spins, rng):
    table = spins.astype(float)
    table[rng.random(table.shape) < 0.1] = np.nan
    fit = ik.RidgeIsing(ridge=0.1, missing="pairwise").fit(table)
    seen, values = (~np.isnan(table)).astype(float), np.nan_to_num(table)
    counts = seen.T @ seen
    covariance = values.T @ values / counts - (values.T @ seen / counts) * (
        seen.T @ values / counts
    )
    inverse = np.linalg.inv(300 * covariance + 0.1 * 12 * np.eye(12))
    expected = -inverse / np.diagonal(inverse)[:, None] * (1 - np.eye(12))
    np.testing.assert_allclose(fit.estimates_, expected, atol=1e-12)


def test_identical_columns_are_named_where_values_are_missing(spins):
    table = spins.astype(float)
    table[:, 7] = table[:, 2]
    table[:20, 7], table[30:50, 3] = np.nan, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.ContradictoryPairsWarning)
        with pytest.raises(ex.DuplicateColumnsError, match="'x2' and 'x7'"):
            ik.LinearIsing(missing="pairwise").fit(table)


def test_pairwise_without_fields_uses_raw_sums(spins, rng):
    table = spins.astype(float)
    table[rng.random(table.shape) < 0.1] = np.nan
    fit = ik.RidgeIsing(ridge=0.1, missing="pairwise", fit_fields=False).fit(table)
    seen, values = (~np.isnan(table)).astype(float), np.nan_to_num(table)
    inverse = np.linalg.inv(300 * (values.T @ values) / (seen.T @ seen) + 0.1 * 12 * np.eye(12))
    expected = -inverse / np.diagonal(inverse)[:, None] * (1 - np.eye(12))
    np.testing.assert_allclose(fit.estimates_, expected, atol=1e-12)


def test_two_booklets_that_share_items_are_completed_without_contradiction(rng):
    """One factor behind 30 items; of 20 items each half of the people see ten: the couplings are
    those of the complete table.
    """
    factor = rng.random((6000, 1)) < 0.5
    values = np.where(rng.random((6000, 30)) < 0.85, factor, ~factor) * 2.0 - 1
    booklets = values.copy()
    booklets[:3000, 10:20], booklets[3000:, 20:] = np.nan, np.nan
    with pytest.warns(ex.UnobservedPairWarning) as caught:
        fit = ik.RidgeIsing(ridge=1.0, missing="pairwise").fit(booklets)
    assert len(caught) == 1
    complete = ik.RidgeIsing(ridge=1.0).fit(values)
    np.testing.assert_allclose(fit.estimates_[:10, :10], complete.estimates_[:10, :10], atol=0.06)
    assert not fit.estimates_[10:20, 20:].any()


def test_pairs_never_seen_together_get_no_coupling_and_do_not_disturb_the_others(spins):
    table = spins.astype(float)
    table[:150, 3], table[150:, 4], table[150:, 9] = np.nan, np.nan, np.nan
    with pytest.warns(ex.UnobservedPairWarning, match="'x3' - 'x4', 'x3' - 'x9'") as caught:
        fit = ik.RidgeIsing(ridge=1.0, missing="pairwise").fit(table)
    assert caught[0].message.pairs == (("x3", "x4"), ("x3", "x9"))
    seen, values = (~np.isnan(table)).astype(float), np.nan_to_num(table)
    counts = np.maximum(seen.T @ seen, 1)
    covariance = values.T @ values / counts - (values.T @ seen / counts) * (
        seen.T @ values / counts
    )
    inverse = reference.completed_inverse(300 * covariance + 12 * np.eye(12), [(3, 4), (3, 9)])
    expected = -inverse / np.diagonal(inverse)[:, None] * (1 - np.eye(12))
    np.testing.assert_allclose(fit.estimates_, expected, atol=1e-9)
    assert fit.estimates_[3, 4] == 0


def test_a_completion_that_does_not_come_to_rest_says_so(spins, monkeypatch):
    monkeypatch.setattr("isingkit.estimators.normal._SWEEPS", 0)
    table = spins.astype(float)
    table[:150, 3], table[150:, 4] = np.nan, np.nan
    with (
        pytest.warns(ex.UnobservedPairWarning),
        pytest.raises(ex.NotConvergedError, match="did not converge.*larger ridge"),
    ):
        ik.RidgeIsing(missing="pairwise").fit(table)


def test_contradictory_pair_sums_are_reconciled_with_a_warning():
    """Three columns, each pair seen apart: a = b, b = c, a = -c. No table has these pair sums; in
    the nearest, all are alike.
    """
    a, nan = np.tile([0.0, 1.0], 20), np.full(40, np.nan)
    table = np.concatenate([np.c_[a, a, nan], np.c_[nan, a, a], np.c_[a, nan, 1 - a]])
    with pytest.warns(ex.ContradictoryPairsWarning, match="contradict each other") as caught:
        estimates = ik.RidgeIsing(missing="pairwise").fit(table).estimates_
    assert caught[0].message.smallest == pytest.approx(-1)  # eigenvalues 2, 2, -1 of a mean of 1
    sizes = np.abs(estimates[~np.eye(3, dtype=bool)])
    np.testing.assert_allclose(sizes, sizes[0])
    assert np.sign(estimates[0]).tolist() == [0, 1, -1]


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")
@pytest.mark.parametrize("estimator", ALL)
def test_clone_pickle_threads_processes_and_grid_search_work(estimator, spins):
    fit = clone(estimator).fit(spins)
    copy = pickle.loads(pickle.dumps(fit))
    assert copy.score(spins) == fit.score(spins)
    with ThreadPoolExecutor(4) as pool:
        for other in pool.map(lambda _: clone(estimator).fit(spins), range(8)):
            np.testing.assert_array_equal(other.estimates_, fit.estimates_)
    for other in Parallel(n_jobs=2)(delayed(clone(estimator).fit)(spins) for _ in range(2)):
        np.testing.assert_array_equal(other.estimates_, fit.estimates_)
    grid = (
        {"threshold": [0.05, 0.1, 5.0]}
        if "threshold" in estimator.get_params()
        else {"level": [0.05, 0.1, 1e-9]}
    )
    for data in (spins, ik.pack(spins)):
        search = GridSearchCV(clone(estimator), grid, cv=3, error_score="raise").fit(data)
        assert 1e-9 < next(iter(search.best_params_.values())) < 5


def test_errors_cross_process_borders(rng):
    with pytest.raises(ex.UnderdeterminedError, match="underdetermined"):
        Parallel(n_jobs=2)(
            delayed(ik.LinearIsing().fit)(rng.choice([-1, 1], (5, 8))) for _ in range(2)
        )


@pytest.mark.parametrize(
    "estimator",
    [ik.LinearIsing(), ik.RidgeIsing(), ik.TwoStageIsing(), ik.MeanFieldIsing()],
    ids=lambda e: type(e).__name__,
)
def test_parts_one_after_the_other_are_the_whole(spins, estimator):
    whole = clone(estimator).fit(spins)
    parts = clone(estimator)
    for start in range(0, 300, 100):
        parts.partial_fit(spins[start : start + 100])
    np.testing.assert_allclose(parts.estimates_, whole.estimates_, atol=1e-12)
    np.testing.assert_allclose(
        parts.model_.couplings.toarray(), whole.model_.couplings.toarray(), atol=1e-12
    )
    assert parts.n_samples_ == 300
    np.testing.assert_allclose(
        parts.fit(spins[:200]).estimates_, clone(estimator).fit(spins[:200]).estimates_
    )  # fit forgets parts
    fresh = parts.partial_fit(spins[:150])
    assert fresh.n_samples_ == 150


def test_parts_must_have_the_same_columns_and_coding(spins):
    import pandas as pd

    table = pd.DataFrame(np.where(spins > 0, "yes", "no"), columns=[f"q{k}" for k in range(12)])
    fit = ik.RidgeIsing().partial_fit(table[:100])
    with pytest.raises(ValueError, match="feature names"):
        fit.partial_fit(table[100:200].rename(columns={"q0": "z"}))
    with pytest.raises(ex.SpinValueError, match="no or yes was expected"):
        fit.partial_fit(table[100:200].replace("yes", "maybe"))
    assert fit.partial_fit(table[100:], sample_weight=np.ones(200)).n_samples_ == 300


@pytest.mark.parametrize("way", ["fit", "partial_fit", "fit_gram"])
def test_an_interrupted_refit_leaves_the_old_fit_whole(spins, monkeypatch, way):
    """Seen to fail: names and sizes were of the new table, and estimates of the old."""
    estimator = ik.RidgeIsing().fit(pd.DataFrame(spins, columns=[f"q{k}" for k in range(12)]))
    before = dict(vars(estimator))

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(ik.RidgeIsing, "_estimate", interrupted)
    given = ik.gram(spins[:, :5]) if way == "fit_gram" else spins[:, :5]
    with pytest.raises(KeyboardInterrupt):
        getattr(estimator, way)(given)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is before[name] for name in before)


def test_a_fork_beside_threads_that_fit_hangs_no_child(spins):
    """A lock that another thread has stays locked in a child. Seen to fail, the first child."""
    ik.RidgeIsing().fit(spins)
    stop = threading.Event()
    inside = threading.Event()

    def held():
        with threads._LOCK:
            inside.set()
            stop.wait(0.3)

    holder = threading.Thread(target=held)
    holder.start()
    inside.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        ik.RidgeIsing().fit(spins)
        os._exit(7)
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_children_forked_while_other_threads_fit_can_fit(spins):
    """23 of them, at any moment of three fits. Seen to fail with the lock of BLAS' threads left
    alone at forks.
    """
    stop = threading.Event()
    estimators = (ik.RidgeIsing(), ik.PseudolikelihoodIsing(l2=0.1), ik.TwoStageIsing())

    def fit_on(estimator):
        while not stop.is_set():
            clone(estimator).fit(spins)

    busy = [threading.Thread(target=fit_on, args=(one,)) for one in estimators]
    for thread in busy:
        thread.start()
    try:
        for number in range(23):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                clone(estimators[number % 3]).fit(spins)
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    finally:
        stop.set()
        for thread in busy:
            thread.join()
