"""Rows as they come: weights, groups, series and missing cells in AutoIsing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, t

import isingkit as ik
import reference
from isingkit import exceptions as ex
from isingkit._kernels import robust
from isingkit.estimators.causes import no_causes
from isingkit.estimators.fitted_graph import Samples, fit_graph, samples_of
from isingkit.estimators.grouped_rows import grouped
from isingkit.estimators.row_design import INDEPENDENT, RowDesign, row_design
from isingkit.spins import RowWeights
from parts import kernel_of

N_SPINS, N_ROWS = 40, 1000
doubts_allowed = pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")


def world(seed):
    return ik.random_regular(n_spins=N_SPINS, degree=3, coupling=0.3, random_state=seed)


def draw(truth, n_rows, seed):
    return np.asarray(ik.sample(truth, n_samples=n_rows, random_state=seed, check=False))


def updated(values, truth, share, rng):
    """Some spins of each row drawn anew, given the others of the row."""
    values = values.copy()
    couplings = truth.couplings.toarray()
    for i in rng.permutation(truth.n_spins):
        up = 1 / (1 + np.exp(-2 * values @ couplings[i]))
        new = np.where(rng.random(len(values)) < up, 1, -1)
        values[:, i] = np.where(rng.random(len(values)) < share, new, values[:, i])
    return values


def panel(truth, seed, n_persons=200, n_waves=5):
    """Waves of the same persons, one wave after the other, and which person a row is."""
    rng = np.random.default_rng(seed)
    waves = [draw(truth, n_persons, seed)]
    for _ in range(n_waves - 1):
        waves.append(updated(waves[-1], truth, 0.3, rng))
    return np.concatenate(waves), np.tile(np.arange(n_persons), n_waves)


def series(truth, seed):
    """One chain, of which a fifth of the spins are drawn anew from row to row."""
    rng = np.random.default_rng(seed)
    rows = [draw(truth, 1, seed)]
    for _ in range(N_ROWS - 1):
        rows.append(updated(rows[-1], truth, 0.2, rng))
    return np.concatenate(rows)


def against(fits, truths):
    """Share of false edges, and of intervals that hold, over several fits."""
    false, held = [], []
    for fit, truth in zip(fits, truths, strict=True):
        place = {name: i for i, name in enumerate(fit.model_.names)}
        ends = [[place[name] for name in fit.edges_[end]] for end in ("source", "target")]
        planted = truth.couplings.toarray()[tuple(ends)]
        false.append(planted == 0)
        low, high = fit.intervals_.T
        held.append((low <= planted) & (planted <= high))
    return np.concatenate(false).mean(), np.concatenate(held).mean()


def check_of(fit, name):
    return next(one for one in fit.diagnostics_ if one.check == name)


def same(one, other):
    assert_array_equal(one.edges_[["source", "target"]], other.edges_[["source", "target"]])
    for name in ("coupling", "std_error", "z", "q_value"):
        assert_allclose(one.edges_[name], other.edges_[name], rtol=1e-7)
    assert_allclose(one.intervals_, other.intervals_, rtol=1e-6, atol=1e-9)


# Variances of groups


def test_variances_between_groups_are_those_of_their_sums(rng):
    values, weights = rng.normal(size=300), rng.uniform(0.5, 2, 300)
    groups = rng.integers(0, 25, 300)
    found, freedom = kernel_of(robust.grouped_variance)(values, weights, groups)
    expected, most = reference.grouped_variance(values, weights, groups)
    assert found == pytest.approx(expected, rel=1e-12)
    assert 1 <= freedom <= most
    spins = np.ones((1, 300))
    samples = Samples(spins, weights, spins, no_causes(300), groups=groups, bounds=(1.0, 2.0, 0.0))
    influences = np.stack([values, -3 * values]) / weights
    assert_allclose(samples.variances_of(influences), [2 * expected, 18 * expected], rtol=1e-12)


@pytest.mark.parametrize("freedom", [5, 20, 100])
def test_t_becomes_the_normal_score_of_the_same_tail(freedom):
    """Wallace's formula: within 0.05 of the exact score, up to ten standard errors."""
    for value in (-10.0, -4.0, -1.0, 0.5, 3.0, 8.0):
        exact = -np.sign(value) * norm.ppf(t.sf(abs(value), freedom))
        assert robust.as_normal.py_func(value, freedom) == pytest.approx(exact, abs=0.05)
    assert robust.as_normal.py_func(3.0, 0.0) == 3.0


def test_score_tests_by_groups_of_one_row_are_nearly_those_of_independent_rows():
    packed = ik.pack(draw(world(0), 3000, 1))
    pairs = np.argwhere(np.triu(world(0).couplings.toarray() != 0))
    others = np.array([[0, j] for j in range(1, 30)])
    single = RowDesign(groups=np.arange(3000))
    tests = [
        fit_graph(samples_of(packed, design), pairs).score_tests(others).z_scores
        for design in (INDEPENDENT, single)
    ]
    assert_allclose(tests[0], tests[1], rtol=0.08, atol=0.05)


def test_rows_written_twice_as_groups_count_once():
    """Pairs of equal rows: errors, z-scores and edges of one of each (but for what is uncertain of
    a variance).
    """
    once = draw(world(1), N_ROWS, 2)
    fits = [
        ik.AutoIsing(rows="independent").fit(once),
        ik.AutoIsing().fit(np.concatenate([once, once]), groups=np.tile(np.arange(N_ROWS), 2)),
    ]
    pairs = [{(e["source"], e["target"]): e for e in fit.edges_} for fit in fits]
    assert pairs[0].keys() == pairs[1].keys()
    for key, edge in pairs[0].items():
        assert pairs[1][key]["std_error"] == pytest.approx(edge["std_error"], rel=0.1)
        assert pairs[1][key]["coupling"] == pytest.approx(edge["coupling"], rel=0.02)


def test_a_design_effect_is_that_of_equal_rows():
    values = draw(world(2), 400, 3)
    packed = ik.pack(np.repeat(values, 3, axis=0))
    fitted = fit_graph(samples_of(packed), np.empty((0, 2), np.int64))
    design = grouped(packed, INDEPENDENT, np.repeat(np.arange(400), 3), fitted)
    assert design.design_effect == pytest.approx(3, rel=0.02)
    assert design.n_groups == 400


def test_labels_and_order_of_groups_do_not_matter():
    values, persons = panel(world(3), 4, n_persons=100)
    order = np.random.default_rng(0).permutation(len(values))
    names = np.array([f"person {k}" for k in persons])
    same(
        ik.AutoIsing().fit(values, groups=persons),
        ik.AutoIsing().fit(values[order], groups=names[order]),
    )


@doubts_allowed
def test_few_groups_warn_and_fewer_are_refused():
    values, _ = panel(world(3), 4)
    fit = ik.AutoIsing().fit(values, groups=np.arange(N_ROWS) % 12)
    assert check_of(fit, "few groups").serious
    assert "12 groups" in check_of(fit, "few groups").words
    with pytest.raises(ex.FewGroupsError, match="7 different labels.*at least 8"):
        ik.AutoIsing().fit(values, groups=np.arange(N_ROWS) % 7)


@pytest.mark.statistics
def test_waves_of_the_same_persons_as_groups_give_few_false_edges_and_intervals_that_hold():
    """Six worlds, 360 edges: without groups a third of the edges is false, and intervals hold 77
    percent; 91 percent would fail.
    """
    truths = [world(seed) for seed in range(6)]
    tables = [panel(truth, seed + 10) for seed, truth in enumerate(truths)]
    fits = [ik.AutoIsing().fit(values, groups=persons) for values, persons in tables]
    false, held = against(fits, truths)
    assert false < 0.06
    assert 0.92 < held < 0.98


@doubts_allowed
@pytest.mark.statistics
def test_dependent_rows_without_edges_have_one_in_one_table_of_twenty():
    """100 tables of 60 persons and 8 waves, "fwer" 0.05: at most 10 with an edge (one in 2000 runs
    has more); as independent rows nearly all would have one.
    """
    n_false = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        waves = [rng.choice([-1, 1], (60, 20))]
        for _ in range(7):
            fresh = rng.random((60, 20)) < 0.3
            waves.append(np.where(fresh, rng.choice([-1, 1], (60, 20)), waves[-1]))
        fit = ik.AutoIsing(control="fwer").fit(
            np.concatenate(waves), groups=np.tile(np.arange(60), 8)
        )
        n_false += len(fit.edges_) > 0
    assert n_false <= 10


# What nobody declared


@doubts_allowed
@pytest.mark.parametrize("how", ["by wave", "shuffled"])
def test_waves_that_nobody_declared_are_seen_and_allowed_for(how):
    truth = world(5)
    values, _ = panel(truth, 6)
    if how == "shuffled":
        values = np.random.default_rng(0).permutation(values)
    with pytest.warns(ex.ReliabilityWarning, match="rows alike.*errors allow for it.*groups="):
        fit = ik.AutoIsing().fit(values)
    found = check_of(fit, "rows alike")
    assert found.levels_hold
    assert 1.5 < found.value < 3
    assert fit.diagnostics_[0].serious
    assert against([fit], [truth])[0] < 0.1
    with pytest.warns(ex.ReliabilityWarning, match="as asked.*too small"):
        trusting = ik.AutoIsing(rows="independent").fit(values)
    assert not check_of(trusting, "rows alike").levels_hold
    assert len(trusting.edges_) > 1.2 * len(fit.edges_)


def test_a_slow_series_is_allowed_for_and_raises_no_doubt_where_it_is_known_to_be_one():
    truth = world(6)
    values = series(truth, 7)
    fit = ik.AutoIsing(rows="ordered").fit(values)
    found = check_of(fit, "rows alike")
    assert not found.serious
    assert found.value > 2
    false, held = against([fit], [truth])
    assert false < 0.15
    assert held > 0.85
    with pytest.warns(ex.ReliabilityWarning, match='rows alike.*rows="ordered"'):
        ik.AutoIsing().fit(values)


def test_independent_rows_get_the_same_answer_whatever_is_said_of_their_order():
    values = draw(world(7), N_ROWS, 8)
    values = values[np.lexsort(values[:, :3].T)]
    fits = [ik.AutoIsing(rows=rows).fit(values) for rows in ("auto", "independent", "ordered")]
    same(fits[0], fits[1])
    same(fits[0], fits[2])
    assert not check_of(fits[0], "rows alike").serious


def test_a_histogram_is_not_said_to_hold_equal_rows():
    """Nine columns: equal rows are natural, and stand together."""
    truth = ik.random_regular(n_spins=10, degree=3, coupling=0.3, random_state=0)
    rows, counts = np.unique(draw(truth, 3000, 1), axis=0, return_counts=True)
    order = np.argsort(-counts)
    fit = ik.AutoIsing().fit(rows[order], counts=counts[order])
    assert not check_of(fit, "rows alike").serious
    assert ik.score(fit.model_, truth).recall == 1
    with pytest.warns(ex.ReliabilityWarning, match="pasted 3 times"):
        ik.AutoIsing().fit(rows[order], counts=3 * counts[order])


def test_counts_that_no_independent_rows_would_have_come_with_advice_on_counts(rng):
    """240 different rows of 20 columns, each said to be one to three: they tell as much as some
    206 rows, (sum c)^2 / sum c^2, and both ways out of the warning work.
    """
    truth = ik.random_regular(n_spins=20, degree=3, coupling=0.35, random_state=1)
    rows, counts = draw(truth, 240, 2), rng.integers(1, 4, 240)
    with pytest.warns(ex.ReliabilityWarning, match="pass them as sample_weight.*independent"):
        counted = ik.AutoIsing().fit(rows, counts=counts)
    assert check_of(counted, "rows alike").value > 2
    weighted = ik.AutoIsing().fit(rows, sample_weight=counts)
    assert not check_of(weighted, "rows alike").serious
    assert weighted.n_samples_ == pytest.approx(counts.sum() ** 2 / (counts**2).sum())
    with pytest.warns(ex.ReliabilityWarning, match="rows alike"):
        taken = ik.AutoIsing(rows="independent").fit(rows, counts=counts)
    assert taken.n_samples_ == counts.sum()


# Weights


def test_errors_by_weights_are_those_of_squared_weights():
    """Half of the rows count nine times as much: errors as theory has them, not as of the total."""
    packed = ik.pack(draw(world(8), 4000, 9))
    weights = np.where(np.arange(4000) < 2000, 9.0, 1.0)
    pairs = np.argwhere(np.triu(world(8).couplings.toarray() != 0))
    errors = []
    for totals in (np.ones(4000), weights):
        design = row_design(RowWeights(totals, totals**2).scaled())
        refitted = fit_graph(samples_of(packed, design), pairs).firth_refit()
        errors.append(refitted.couplings_and_errors()[1])
    n_effective = weights.sum() ** 2 / (weights**2).sum()
    assert (errors[1] / errors[0]).mean() == pytest.approx(np.sqrt(4000 / n_effective), rel=0.03)


# Missing cells


def holed(values, share, seed):
    gaps = np.random.default_rng(seed).random(values.shape) < share
    return np.where(gaps, np.nan, values.astype(float))


def test_a_table_that_lacks_nothing_is_not_imputed():
    values = draw(world(9), 400, 10)
    same(ik.AutoIsing().fit(values), ik.AutoIsing(missing="impute").fit(values))


def test_imputation_is_reproducible_on_any_number_of_threads():
    table = holed(draw(world(9), 400, 10), 0.2, 0)
    one = ik.AutoIsing(missing="impute", n_jobs=1).fit(table)
    two = ik.AutoIsing(missing="impute", n_jobs=2).fit(table)
    assert_array_equal(one.edges_, two.edges_)
    assert_array_equal(one.intervals_, two.intervals_)
    other = ik.AutoIsing(missing="impute", random_state=1).fit(table)
    assert not np.array_equal(one.model_.couplings.toarray(), other.model_.couplings.toarray())


@pytest.mark.statistics
def test_networks_with_missing_cells_are_found_by_imputation_and_intervals_hold():
    """Four worlds with a quarter missing: F1 above 0.97 (pairwise: 0.82), and of 240 intervals
    more than 91 percent hold.
    """
    truths = [world(seed) for seed in range(4)]
    tables = [holed(draw(truth, N_ROWS, 20), 0.25, 1) for truth in truths]
    fits = [ik.AutoIsing(missing="impute").fit(table) for table in tables]
    for fit, truth in zip(fits, truths, strict=True):
        assert ik.score(fit.model_, truth).f1 > 0.97
    false, held = against(fits, truths)
    assert false < 0.06
    assert 0.91 < held < 0.985


@pytest.mark.statistics
@doubts_allowed
def test_cells_that_are_missing_by_the_value_of_another_column_bias_nothing():
    """Skewed columns, of which every other one is missing eight times as often where the one before
    it is up: couplings within 2.5 standard errors of the mean; complete rows are off by more.
    """
    truth = world(11)
    model = ik.IsingModel(truth.couplings, np.full(N_SPINS, 0.4))
    rng = np.random.default_rng(0)
    off = []
    for seed in range(3):
        values = draw(model, 2000, seed).astype(float)
        for j in range(1, N_SPINS, 2):
            share = np.where(values[:, j - 1] > 0, 0.4, 0.05)
            values[rng.random(2000) < share, j] = np.nan
        fit = ik.AutoIsing(missing="impute").fit(values)
        place = [int(name[1:]) for name in fit.edges_["source"]]
        other = [int(name[1:]) for name in fit.edges_["target"]]
        planted = truth.couplings.toarray()[place, other]
        off.append(
            (fit.edges_["coupling"] - planted)[planted != 0] / fit.edges_["std_error"][planted != 0]
        )
    deviations = np.concatenate(off)
    assert abs(deviations.mean()) < 2.5 * deviations.std() / np.sqrt(len(deviations)) + 0.05
    assert 0.85 < deviations.std() < 1.15


@doubts_allowed
@pytest.mark.parametrize("what", ["sample_weight", "counts", "groups", "rare"])
def test_imputation_goes_with_weights_counts_groups_and_rare_columns(what, rng):
    truth = world(12)
    values, persons = panel(truth, 13, n_persons=100)
    table = holed(values if what == "groups" else draw(truth, 500, 13), 0.1, 2)
    extra = {
        "sample_weight": rng.lognormal(0, 0.5, len(table)),
        "counts": np.where(np.arange(len(table)) % 50 == 0, 2, 1),
        "groups": persons,
    }
    rows = {what: extra[what]} if what in extra else {}
    if what == "rare":
        table[:, 0] = np.where(np.isnan(table[:, 0]), np.nan, -1.0)
        table[:4, 0] = 1.0
    fit = ik.AutoIsing(missing="impute").fit(table, **rows)
    assert np.isfinite(fit.intervals_).all()
    assert ik.score(fit.model_, truth).recall > 0.7


@doubts_allowed
def test_pairs_never_observed_together_are_warned_of_and_get_no_edge():
    table = draw(world(9), 600, 10).astype(float)
    table[:300, 0] = np.nan
    table[300:, 1] = np.nan
    with pytest.warns(ex.UnobservedPairWarning):
        fit = ik.AutoIsing(missing="impute").fit(table)
    assert fit.model_.couplings.toarray()[0, 1] == 0


def test_rows_shifted_by_one_column_are_named():
    values = draw(world(14), N_ROWS, 15)
    table = holed(values, 0.05, 3)
    rows = np.arange(0, N_ROWS, 20)
    table[rows, 1:] = table[rows, :-1]
    table[rows, 0] = np.nan
    with pytest.warns(ex.ReliabilityWarning, match="incomplete rows.*shifted"):
        fit = ik.AutoIsing(missing="impute").fit(table)
    assert fit.diagnostics_[0].check == "incomplete rows"
    assert not fit.diagnostics_[0].levels_hold
