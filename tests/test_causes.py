"""Causes outside the network: covariates of AutoIsing, and causes that nobody measured."""

import itertools
from math import comb

import networkx
import numpy as np
import pytest
import scipy.optimize

import isingkit as ik
from isingkit._kernels.cells import into_cells
from isingkit.covariates import CovariateCoding, CovariateColumn, CovariateEffects
from isingkit.estimators import cause_search, network_search, screened_rows, sizes
from isingkit.estimators.cause_look import gain_over
from isingkit.estimators.causes import known_causes, with_hidden
from isingkit.estimators.edge_tests import SharedCauses
from isingkit.estimators.fitted_graph import Samples, fit_graph, samples_of
from isingkit.estimators.hidden_causes import (
    HiddenCauses,
    HiddenReport,
    _variance_shares,
    errors_beside_scores,
    hidden_of,
    iterated,
    shared_causes,
)
from isingkit.estimators.inclusion import _rough_evidence
from isingkit.estimators.network_search import Problem, find_network
from isingkit.estimators.row_design import INDEPENDENT
from isingkit.estimators.screened_rows import SearchSettings
from isingkit.exceptions import (
    CovariatesError,
    ReliabilityWarning,
    SettingError,
)
from isingkit.model import log_pseudolikelihood
from parts import kernel_of

pytestmark = pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")


def rows_given(truth, shifts, seed):
    """One row for each row of shifts of fields."""
    columns = tuple(CovariateColumn(f"z{k}", (), (0.0,), 1.0) for k in range(truth.n_spins))
    effects = CovariateEffects(np.eye(truth.n_spins), CovariateCoding(columns))
    model = ik.IsingModel(truth.couplings, truth.fields, truth.names, effects)
    return np.asarray(ik.sample(model, covariates=shifts, random_state=seed, check=False))


def two_groups(n_rows, seed=0, n_spins=50, share=1.0):
    """A network, rows of two groups with shifted fields, and their labels."""
    rng = np.random.default_rng(seed)
    truth = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.35, random_state=seed)
    labels = rng.permutation(np.arange(n_rows) % 2)
    fields = rng.normal(0, 0.5, n_spins) * (rng.permutation(n_spins) < share * n_spins)
    values = rows_given(truth, np.outer(2 * labels - 1, fields), seed + 1)
    return truth, values, np.where(labels > 0, "treated", "control")


def false_share(fit, truth):
    scores = ik.score(fit.model_, truth)
    return scores.false_positives / max(len(fit.edges_), 1)


def check_of(fit, name):
    return next(one for one in fit.diagnostics_ if one.check == name)


@pytest.fixture(scope="module")
def groups():
    return two_groups(1000)


# Covariates


def test_a_group_that_is_told_costs_no_edge_and_makes_none(groups):
    """20 worlds had 0.42 false edges without, 0.01 with it: more than 0.06 here is a fault."""
    truth, values, labels = groups
    without = ik.AutoIsing(hidden=0).fit(values)
    told = ik.AutoIsing().fit(values, covariates=labels)
    assert false_share(without, truth) > 0.3
    assert false_share(told, truth) <= 0.06
    assert ik.score(told.model_, truth).recall > 0.95
    assert told.hidden_ is None


@pytest.mark.parametrize("n_covariates", [1, 3])
def test_effects_are_those_of_logistic_regression_on_the_same_neighbours(n_covariates, rng):
    """Against a general minimiser of the likelihood, which shares no code."""
    truth, values, _ = two_groups(600, n_spins=12)
    table = rng.normal(size=(600, n_covariates))
    fit = ik.AutoIsing(hidden=0).fit(values, covariates=table)
    standardised = (table - table.mean(axis=0)) / table.std(axis=0)
    couplings = fit.model_.couplings.toarray()
    found = {(one["variable"], one["covariate"]): one for one in fit.covariate_effects_}
    for i in range(truth.n_spins):
        neighbours = values[:, couplings[i] != 0]
        design = np.column_stack([np.ones(600), neighbours, standardised])

        def loss(x, design=design, spin=values[:, i]):
            return np.logaddexp(0, -2 * spin * (design @ x)).sum()

        def slope(x, design=design, spin=values[:, i]):
            return -2 * design.T @ (spin / (1 + np.exp(2 * spin * (design @ x))))

        best = scipy.optimize.minimize(
            loss, np.zeros(design.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-7}
        ).x
        means = np.tanh(design @ best)
        hessian = (design.T * (1 - means**2)) @ design
        errors = np.sqrt(np.diagonal(np.linalg.inv(hessian)))
        for k in range(n_covariates):
            one = found[fit.model_.names[i], f"z{k}"]
            np.testing.assert_allclose(one["effect"], best[-n_covariates + k], atol=1e-6)
            np.testing.assert_allclose(one["std_error"], errors[-n_covariates + k], rtol=1e-4)


def test_covariates_by_tiles_are_those_by_matrices(monkeypatch, rng):
    truth = ik.random_regular(n_spins=300, degree=3, coupling=0.4, random_state=1)
    table = rng.normal(size=(250, 2))
    shifts = table @ rng.normal(0, 0.4, (2, 300))
    values = rows_given(truth, shifts, 3)
    dense = ik.AutoIsing(rows="independent", hidden=0).fit(values, covariates=table)
    monkeypatch.setattr(sizes, "MOST_DENSE", 100)
    tiled = ik.AutoIsing(rows="independent", hidden=0).fit(values, covariates=table)
    np.testing.assert_array_equal(
        tiled.edges_[["source", "target"]], dense.edges_[["source", "target"]]
    )
    np.testing.assert_allclose(tiled.edges_["z"], dense.edges_["z"], rtol=1e-9)
    np.testing.assert_allclose(
        tiled.model_.effects.values, dense.model_.effects.values, rtol=1e-9, atol=1e-12
    )


def test_counts_with_covariates_are_repeated_rows(groups):
    _, values, labels = groups
    counts = np.random.default_rng(0).integers(0, 3, 200)
    often = np.repeat(np.arange(200), counts)
    once = ik.AutoIsing(rows="independent", hidden=0).fit(
        values[:200], counts=counts, covariates=labels[:200]
    )
    again = ik.AutoIsing(rows="independent", hidden=0).fit(values[often], covariates=labels[often])
    np.testing.assert_array_equal(once.edges_["source"], again.edges_["source"])
    np.testing.assert_allclose(once.edges_["z"], again.edges_["z"], rtol=1e-9)
    np.testing.assert_allclose(
        once.covariate_effects_["effect"], again.covariate_effects_["effect"], rtol=1e-6
    )


def test_covariates_go_with_missing_cells_groups_and_weights(groups, rng):
    """Each way that rows come finds most of the network, and not what the group makes of it."""
    truth, values, labels = groups
    holes = np.where(rng.random(values.shape) < 0.05, np.nan, values.astype(float))
    persons = np.arange(len(values)) % 200
    fits = [
        ik.AutoIsing(missing="impute").fit(holes, covariates=labels),
        ik.AutoIsing(missing="pairwise").fit(holes, covariates=labels),
        ik.AutoIsing().fit(values, groups=persons, covariates=labels),
        ik.AutoIsing().fit(values, sample_weight=rng.gamma(4.0, size=1000), covariates=labels),
    ]
    for fit in fits:
        assert false_share(fit, truth) <= 0.1
        assert ik.score(fit.model_, truth).recall > 0.9


def test_rows_that_covariates_make_alike_are_not_called_alike(groups):
    _, values, labels = groups
    in_order = np.argsort(labels, kind="stable")
    fit = ik.AutoIsing().fit(values[in_order], covariates=labels[in_order])
    assert not check_of(fit, "rows alike").serious


def test_a_network_knows_its_covariates_when_it_scores_and_is_saved(groups, tmp_path):
    _, values, labels = groups
    fit = ik.AutoIsing().fit(values, covariates=labels)
    assert fit.score(values, covariates=labels) > fit.score(values, covariates=labels[::-1])
    with pytest.raises(SettingError, match="covariates must be"):
        fit.score(values)
    fit.model_.save(tmp_path / "model.npz")
    again = ik.IsingModel.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.effects.values, fit.model_.effects.values)


def test_stability_takes_halves_of_covariates_along(groups):
    _, values, labels = groups
    found = ik.AutoIsing(hidden=0).stability(
        values, covariates=labels, n_resamples=4, random_state=0
    )
    assert len(found.edges) < 100  # 129 or so without covariates


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.r_[np.nan, np.ones(999)], "lacks 1 of 1000 values"),
        (np.ones(1000), "the same in all rows"),
        (np.ones(7), "7 rows of them for 1000"),
        (np.column_stack([np.arange(1000.0), 2 * np.arange(1000.0)]), "follows from the others"),
    ],
)
def test_covariates_that_say_nothing_are_refused_in_one_sentence(groups, wrong, words):
    with pytest.raises(CovariatesError, match=words):
        ik.AutoIsing().fit(groups[1], covariates=wrong)


# Hidden causes


@pytest.fixture(scope="module")
def found(groups):
    return ik.AutoIsing().fit(groups[1])


def test_a_cause_that_nobody_measured_is_found_and_allowed_for(groups, found):
    """20 worlds had 0.42 false edges without looking, 0.01 with it: above 0.07 is a fault."""
    truth, _, labels = groups
    assert found.hidden_.n_hidden == 1
    assert false_share(found, truth) <= 0.07
    assert ik.score(found.model_, truth).recall > 0.95
    score = found.hidden_.scores[:, 0]
    assert abs(np.corrcoef(score, labels == "treated")[0, 1]) > 0.9


def test_who_asks_for_no_causes_is_told_of_them(groups):
    with pytest.warns(ReliabilityWarning, match="hidden='auto'"):
        fit = ik.AutoIsing(hidden=0).fit(groups[1])
    check = check_of(fit, "hidden cause")
    assert check.serious
    assert not check.levels_hold
    assert fit.hidden_ is None


def clear_edges(fit):
    return {(row["source"], row["target"]) for row in fit.edges_ if abs(row["z"]) > 5}


@pytest.mark.parametrize("hidden", ["auto", 0])
def test_causes_of_many_rows_are_told_by_some_of_them(monkeypatch, hidden):
    """3000 rows of which 1000 tell: as by all, and counts are repeated rows. All rows are then
    looked at: their number is that of the scores, and errors are those of all.
    """
    truth, values, _ = two_groups(3000)
    whole = ik.AutoIsing(hidden=hidden).fit(values)
    monkeypatch.setattr(screened_rows, "_MOST_ROWS", 1000)
    some = ik.AutoIsing(hidden=hidden).fit(values)
    assert check_of(some, "hidden cause").serious
    assert (some.hidden_ is None) == (hidden == 0)
    if hidden == 0:
        # of so many rows the search starts at what is not weak, and where a cause has made hundreds
        # of edges, some of these depend on the start: 3 clear ones of 98 do
        clear, of_whole = (clear_edges(fit) for fit in (some, whole))
        assert len(of_whole) > 90
        assert len(clear ^ of_whole) < 0.05 * len(of_whole)
        return
    assert ik.score(some.model_, truth).f1 > 0.97
    assert some.hidden_.scores.shape == (3000, 1)
    assert abs(np.corrcoef(some.hidden_.scores[:, 0], whole.hidden_.scores[:, 0])[0, 1]) > 0.99
    assert np.median(some.edges_["std_error"]) < 1.05 * np.median(whole.edges_["std_error"])
    twice = ik.AutoIsing(rows="independent").fit(np.repeat(values[:1500], 2, axis=0))
    counted = ik.AutoIsing(rows="independent").fit(values[:1500], counts=np.full(1500, 2))
    np.testing.assert_array_equal(twice.edges_, counted.edges_)


def test_two_causes_at_once_are_two(rng):
    truth = ik.random_regular(n_spins=50, degree=3, coupling=0.35, random_state=5)
    shifts = rng.normal(size=(2000, 2)) @ rng.normal(0, 0.5, (2, 50))
    fit = ik.AutoIsing().fit(rows_given(truth, shifts, 1))
    assert fit.hidden_.n_hidden == 2
    assert false_share(fit, truth) <= 0.07


def test_a_cause_of_some_spins_loads_on_these():
    truth, values, _ = two_groups(3000, seed=3, share=0.3)
    fit = ik.AutoIsing().fit(values)
    rng = np.random.default_rng(3)
    rng.permutation(3000)
    rng.normal(0, 0.5, 50)
    acts_on = rng.permutation(50) < 15
    z_scores = np.abs(fit.hidden_.loadings / fit.hidden_.std_errors)[:, 0]
    assert np.median(z_scores[acts_on]) > 5
    assert np.median(z_scores[~acts_on]) < 2
    assert false_share(fit, truth) <= 0.1


@pytest.mark.parametrize("kind", ["regular", "star", "ferromagnet", "few rows"])
def test_without_a_cause_none_is_found_and_nothing_changes(kind):
    truth = ik.random_regular(n_spins=60, degree=3, coupling=0.4, random_state=2)
    if kind == "star":
        couplings = np.zeros((60, 60))
        couplings[0, 1:] = couplings[1:, 0] = 0.25
        truth = ik.IsingModel(couplings)
    elif kind == "ferromagnet":
        truth = ik.IsingModel(abs(truth.couplings))
    values = ik.sample(truth, 80 if kind == "few rows" else 400, random_state=1, check=False)
    looked = ik.AutoIsing().fit(values)
    plain = ik.AutoIsing(hidden=0).fit(values)
    assert looked.hidden_ is None
    np.testing.assert_array_equal(looked.edges_, plain.edges_)


@pytest.mark.parametrize("seed", [3, 4])
def test_a_cluster_that_moves_as_one_is_no_cause(seed):
    """Fifteen spins, a third of whose pairs have couplings of 0.25: a cause would save the cost of
    edges, and explain less than they do. It was believed, and F1 was 0.1 less.
    """
    rng = np.random.default_rng([55, seed, 60, 500, 25])
    blocks = networkx.planted_partition_graph(4, 15, 0.35, 0.01, seed=int(rng.integers(2**31)))
    truth = ik.IsingModel(0.25 * networkx.to_numpy_array(blocks, weight=None))
    values = ik.sample(truth, 500, random_state=rng, check=False)
    fit = ik.AutoIsing().fit(values)
    assert fit.hidden_ is None
    assert not check_of(fit, "hidden cause").serious


@pytest.mark.parametrize(
    ("size", "coupling", "n_rows", "seeds"),
    [
        (15, 0.25, 900, (609, 2)),
        (15, 0.25, 900, (609, 4)),
        (25, 0.15, 300, (606, 11)),
        (25, 0.15, 500, (606, 0)),
    ],
)
def test_a_cause_that_leaves_clusters_or_more_outside_is_not_believed(
    size, coupling, n_rows, seeds
):
    """The first two were believed while z-scores beside a cause came out too small, with a loss of
    F1 of 0.13 and 0.10; the others if no more is asked for where clusters are left, with 0.36 and
    0.44.
    """
    rng = np.random.default_rng(seeds)
    blocks = networkx.planted_partition_graph(4, size, 0.35, 0.01, seed=int(rng.integers(2**31)))
    truth = ik.IsingModel(coupling * networkx.to_numpy_array(blocks, weight=None))
    fit = ik.AutoIsing().fit(ik.sample(truth, n_rows, random_state=rng, check=False))
    assert fit.hidden_ is None


def test_two_weak_causes_are_found_where_one_alone_explains_too_little():
    """300 rows: with one cause tried by itself none was believed, and 45 percent of edges were
    false.
    """
    rng = np.random.default_rng([608, 7])
    truth = ik.random_regular(n_spins=50, degree=3, coupling=0.35, random_state=rng)
    shifts = rng.normal(size=(300, 2)) @ rng.normal(0, 0.5, (2, 50))
    fit = ik.AutoIsing().fit(rows_given(truth, shifts, 7))
    assert fit.hidden_.n_hidden == 2
    assert false_share(fit, truth) <= 0.1


def test_looking_where_rows_are_few_searches_for_no_other_network(monkeypatch):
    """What missed edges leave looks like a cause at first; a look is enough to give that up."""
    n_searches = 0
    selected = network_search.select_edges

    def counted(*arguments, **named):
        nonlocal n_searches
        n_searches += 1
        return selected(*arguments, **named)

    monkeypatch.setattr(network_search, "select_edges", counted)
    truth = ik.erdos_renyi(n_spins=100, mean_degree=4, coupling=0.4, random_state=1)
    fit = ik.AutoIsing().fit(ik.sample(truth, 200, random_state=1, check=False))
    assert fit.hidden_ is None
    assert n_searches == 1
    ik.AutoIsing().fit(two_groups(300)[1])
    assert n_searches > 2


def test_a_second_cause_is_looked_at_only_where_something_is_left_for_it(monkeypatch, rng):
    """A look costs several regressions of each spin, and what is left of one cause is noise."""
    looks = []
    look = cause_search.look

    def noted(fitted, strict, loadings, rule):
        looks.append(len(loadings))
        return look(fitted, strict, loadings, rule)

    monkeypatch.setattr(cause_search, "look", noted)
    assert ik.AutoIsing().fit(two_groups(300)[1]).hidden_.n_hidden == 1
    assert looks == [1]
    truth = ik.random_regular(n_spins=50, degree=3, coupling=0.35, random_state=5)
    shifts = rng.normal(size=(500, 2)) @ rng.normal(0, 0.5, (2, 50))
    assert ik.AutoIsing().fit(rows_given(truth, shifts, 1)).hidden_.n_hidden == 2
    assert looks == [1, 1, 2]


def test_a_cause_is_seen_that_edges_beyond_doubt_have_taken_up():
    """Of 5000 rows, on 30 percent of the spins: edges for it are as clear as others. Where these
    are left out of what tells of a cause, none is seen, and 26 percent of edges are false.
    """
    truth, values, _ = two_groups(5000, seed=6, share=0.3)
    fit = ik.AutoIsing().fit(values)
    assert fit.hidden_.n_hidden == 1
    assert false_share(fit, truth) <= 0.15


def test_scores_leave_what_covariates_do_to_these():
    """Three worlds whose cause acts as a covariate does, in part: by scores that are not cleared of
    covariates, intervals held 65 percent of effects.
    """
    held = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = ik.random_regular(n_spins=30, degree=3, coupling=0.35, random_state=seed)
        causes = rng.normal(size=(1000, 3))
        planted = rng.normal(0, 0.5, (3, 30))
        planted[0] += 0.5 * planted[2]
        fit = ik.AutoIsing().fit(
            rows_given(truth, causes @ planted, seed), covariates=causes[:, :2]
        )
        assert fit.hidden_.n_hidden == 1
        together = np.corrcoef(fit.hidden_.scores[:, 0], causes[:, :2], rowvar=False)
        assert np.abs(together[0, 1:]).max() < 1e-6
        table = fit.covariate_effects_
        column = np.array([int(name[1:]) for name in table["covariate"]])
        spin = np.array([int(name[1:]) for name in table["variable"]])
        true = planted[column, spin] * causes.std(axis=0)[column]
        held.append(np.abs(table["effect"] - true) <= 1.96 * table["std_error"])
        assert "intervals hold 92 to 93 percent" in check_of(fit, "hidden cause").words
    assert np.mean(held) > 0.9


def test_errors_of_effects_count_what_scores_leave_open(rng):
    """Spins whose loadings are large, of few columns, have errors that allow for a shrunken effect:
    sqrt(error^2 + (loading^2 + v) / M + (effect v)^2), by hand.
    """
    n_rows = 50
    covariates = rng.normal(size=(1, n_rows))
    covariates *= np.sqrt(n_rows / (covariates**2).sum())
    spins = rng.choice([-1.0, 1.0], (3, n_rows))
    samples = Samples(spins, np.ones(n_rows), spins, known_causes(covariates))
    loadings = np.array([[0.5], [0.2], [0.0]])
    nothing = np.empty(0)
    rest = (nothing, nothing, loadings.T, np.zeros(3), nothing, nothing, nothing)
    report = HiddenReport(nothing, loadings, *rest)
    shared = SharedCauses(loadings.T, np.array([[0.8]]))
    effects = np.array([[1.0], [-2.0], [0.5]])
    found = errors_beside_scores(np.full((3, 1), 0.1), effects, report, samples, shared)
    left_open = 0.8 * loadings**2
    by_hand = 0.1**2 + (loadings**2 + left_open) / n_rows + (effects * left_open) ** 2
    np.testing.assert_allclose(found, np.sqrt(by_hand), rtol=1e-12)


def test_scores_of_new_rows_know_of_hidden_causes(groups):
    """Of rows that were not learnt from: more than the network alone, or one that ignores causes,
    says of them.
    """
    _, values, _ = groups
    learnt, new = values[:700], values[700:]
    fit = ik.AutoIsing().fit(learnt)
    assert fit.hidden_.n_hidden == 1
    without = log_pseudolikelihood(fit.model_, ik.pack(new), None)
    assert fit.score(new) > without
    assert fit.score(new) > ik.AutoIsing(hidden=0).fit(learnt).score(new)


def test_hidden_causes_come_with_histograms_and_weights(groups, rng):
    truth, values, _ = groups
    counts = rng.integers(1, 3, len(values))
    fit = ik.AutoIsing(rows="independent").fit(values, sample_weight=rng.gamma(6.0, size=1000))
    assert fit.hidden_.n_hidden == 1
    assert false_share(fit, truth) <= 0.1
    counted = ik.AutoIsing(rows="independent").fit(values, counts=counts)
    assert len(counted.hidden_.scores) == len(values)


def test_asking_for_what_is_no_number_of_causes_is_refused(groups):
    for wrong in (-1, 1.5, "many"):
        with pytest.raises(SettingError, match="hidden"):
            ik.AutoIsing(hidden=wrong).fit(groups[1])


def test_causes_that_cannot_be_had_are_refused_and_not_forgotten(groups):
    with pytest.raises(SettingError, match="with missing='impute'"):
        ik.AutoIsing(hidden=1, missing="impute").fit(groups[1])


def test_where_a_cause_makes_thousands_of_pairs_stand_out_it_is_looked_for_first(monkeypatch):
    """And the network is the one that is found with all these pairs tested."""
    truth, values, _ = two_groups(600, n_spins=80)
    slow = ik.AutoIsing().fit(values)
    monkeypatch.setattr(network_search, "_CROWD", 100)
    monkeypatch.setattr(network_search, "_CROWD_PER_SPIN", 1)
    quick = ik.AutoIsing().fit(values)
    assert quick.hidden_.n_hidden == slow.hidden_.n_hidden == 1
    ours, theirs = (
        {frozenset(pair) for pair in zip(fit.edges_["source"], fit.edges_["target"], strict=True)}
        for fit in (quick, slow)
    )
    assert len(ours ^ theirs) <= 0.05 * len(theirs)
    assert false_share(quick, truth) <= 0.07


# What kernels and steps do


def test_causes_in_a_design_leave_out_the_spins_in_question(rng):
    spins = rng.choice([-1.0, 1.0], size=(6, 300))
    loadings = rng.normal(size=(1, 6))
    plain = Samples(spins, np.ones(300), spins, known_causes(rng.normal(size=(2, 300))))
    hidden = hidden_of(plain, loadings)
    samples = hidden.beside(plain, bent=True)
    own, seen, cell = np.empty(300), np.empty(300), np.empty(300, np.int64)
    _, _, design = kernel_of(into_cells)(0, 1, np.array([2, 3]), samples.arrays, own, seen, cell)
    others = hidden.loadings[0, 2:] @ (spins[2:] - hidden.means[2:, None])
    others -= hidden.slopes[0] @ plain.causes.values
    np.testing.assert_array_equal(design[:3], [np.ones(300), spins[2], spins[3]])
    np.testing.assert_array_equal(design[3:5], plain.causes.values)
    expected = [others, np.tanh(2 * others), np.tanh(4 * others)]
    np.testing.assert_allclose(design[5:], expected, atol=1e-12)


def test_rows_with_the_same_covariates_share_cells(rng):
    spins = rng.choice([-1.0, 1.0], size=(3, 400))
    label = rng.integers(2, size=400).astype(float)
    samples = Samples(spins, np.ones(400), spins, known_causes(label[None]))
    own, seen, cell = np.empty(400), np.empty(400), np.empty(400, np.int64)
    totals, _, design = kernel_of(into_cells)(
        0, -1, np.array([1, 2]), samples.arrays, own, seen, cell
    )
    assert design.shape == (4, 8)
    assert totals.sum() == 400
    np.testing.assert_array_equal(design[:, cell], [np.ones(400), spins[1], spins[2], label])


def test_what_scores_leave_open_is_taken_off_z_scores():
    """Given a continuous cause, z-scores of absent pairs spread 1.25 without, 1.01 with it."""
    rng = np.random.default_rng(4)
    truth = ik.random_regular(n_spins=50, degree=3, coupling=0.35, random_state=4)
    shifts = np.outer(rng.normal(size=2000), rng.normal(0, 0.5, 50))
    spins = np.ascontiguousarray(rows_given(truth, shifts, 1).T.astype(np.float64))
    samples = Samples(spins, np.ones(2000), spins, known_causes(np.empty((0, 2000))))
    pairs = np.argwhere(np.triu(truth.couplings.toarray()))
    fitted = fit_graph(samples, pairs)
    hidden, _ = iterated(fitted, np.linalg.eigh(np.corrcoef(spins))[1][:, -1:].T)
    given = fit_graph(hidden.beside(samples, bent=True), pairs)
    absent = np.argwhere(np.triu(truth.couplings.toarray() == 0, 1))
    z_scores = given.score_tests(absent).z_scores
    left = z_scores - shared_causes(given, hidden).z_scores(given, absent)
    assert z_scores.std() > 1.12
    assert 0.9 < left.std() < 1.08


def test_approximate_scores_beside_a_cause_spread_as_those_without_one():
    """Of absent pairs, 4 worlds: 0.94 as without a cause (0.86 while what the cause explains of
    columns was not known). They contain both spins, unlike those of tests: what these leave open of
    causes is no part of them, and inclusion takes nothing off.
    """
    spread, slopes = [], []
    for seed in range(4):
        truth, values, _ = two_groups(1000, seed=seed)
        problem = Problem(ik.pack(values), INDEPENDENT, SearchSettings(0.05, "fdr", True, "auto"))
        found = find_network(problem)
        absent = np.argwhere(np.triu(truth.couplings.toarray() == 0, 1))
        absent = absent[~found.fitted.graph.find(absent)[0]]
        z_scores = found.tester.scores.approximate(found.fitted, absent)
        spread.append(z_scores.std())
        rough = _rough_evidence(
            found, found.fitted.graph.mean_of_directions(found.fitted.couplings)
        )
        outside, place = rough.pairs[len(found.fitted.graph.pairs) :], len(found.fitted.graph.pairs)
        shared = found.tester.shared.z_scores(found.fitted, outside)
        slopes.append((rough.z_scores[place:] @ shared) / (shared @ shared))
    assert 0.9 < np.mean(spread) < 0.98
    assert abs(np.mean(slopes)) < 0.4  # -1 while it was taken off there


def test_loadings_add_up_to_more_than_nothing_whatever_the_sign_they_started_with(rng):
    spins = rng.choice([-1.0, 1.0], size=(6, 50))
    samples = Samples(spins, np.ones(50), spins, known_causes(np.empty((0, 50))))
    loadings = rng.normal(size=(2, 6))
    one, other = hidden_of(samples, loadings), hidden_of(samples, -loadings)
    np.testing.assert_array_equal(one.scores, other.scores)
    assert (one.loadings.sum(axis=1) > 0).all()


def test_with_hidden_keeps_what_is_known_first(rng):
    known = known_causes(rng.normal(size=(2, 10)))
    causes = with_hidden(
        known, np.ones((1, 10)), np.ones((1, 4)), np.zeros(4), np.ones((1, 2)), bent=True
    )
    np.testing.assert_array_equal(causes.covariates, known.values)
    assert causes.n_causes == 5
    assert list(causes.bends) == [0, 0, 0, 2, 4]
    assert (causes.ridges[:2] < causes.ridges[2:].min()).all()


def test_scores_are_made_anew_as_they_were_made(rng):
    """From all rows of a table: sums over spins, less what covariates explain of these."""
    spins = rng.choice([-1.0, 1.0], size=(6, 80))
    samples = Samples(spins, np.ones(80), spins, known_causes(rng.normal(size=(2, 80)) + spins[:2]))
    hidden = hidden_of(samples, rng.normal(size=(1, 6)))
    np.testing.assert_allclose(hidden.scores @ samples.causes.covariates.T, 0, atol=1e-10)
    causes = hidden.beside(samples, bent=True).causes
    np.testing.assert_allclose(causes.in_rows(spins).values, causes.values, atol=1e-12)


@pytest.mark.parametrize("n_more", [1, 2])
def test_loadings_are_paid_for_where_they_gain(n_more, rng):
    """Against all ways to choose the spins that load."""
    spins = rng.choice([-1.0, 1.0], size=(6, 60))
    spins[1:4] = np.where(rng.random((3, 60)) < 0.8, spins[0], spins[1:4])
    samples = Samples(spins, np.ones(60), spins, known_causes(np.empty((0, 60))))
    before = fit_graph(samples, np.array([[0, 1]]))
    hidden = hidden_of(samples, rng.normal(size=(n_more, 6)))
    after = fit_graph(hidden.beside(samples, bent=False), np.array([[0, 1], [4, 5]]))
    same_edges = fit_graph(samples, np.array([[0, 1], [4, 5]]))
    best = -np.inf
    for loads in itertools.product([False, True], repeat=6):
        likelihoods = np.where(loads, after.log_likelihoods(), same_edges.log_likelihoods())
        gain = 2 * (likelihoods - before.log_likelihoods()).sum()
        gain -= 2 * (np.log(60) + np.log(6)) + n_more * sum(loads) * np.log(60)
        best = max(best, gain - 2 * np.log(comb(6, sum(loads))))
    assert gain_over(before, after, n_more) == pytest.approx(best / 6, abs=1e-9)


def test_shifts_of_hidden_causes_are_in_the_order_of_the_rows():
    """Though regressions look at different rows in an order of their own; seen to fail without."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=80)
    values = np.where(rng.random((80, 40)) < 1 / (1 + np.exp(-cause[:, None])), 1, -1)
    packed = ik.pack(values)
    assert len(np.unique(values, axis=0)) == 80
    samples = samples_of(packed)
    causes = hidden_of(samples, np.ones((1, 40)))
    nothing = np.empty((0, 2), np.int64)
    fitted = fit_graph(causes.beside(samples, bent=True), nothing, fit_fields=True, n_jobs=1)
    found = fitted.shifts(packed)
    order = rng.permutation(80)
    np.testing.assert_allclose(fitted.shifts(packed[order]), found[:, order])
    assert abs(np.corrcoef(found[0], cause)[0, 1]) > 0.7


def test_variance_shares_of_counted_rows_are_those_of_repeated_ones():
    rng = np.random.default_rng(0)
    spins = rng.choice([-1.0, 1.0], (40, 6))
    spins[rng.random(spins.shape) < 0.1] = 0.0
    counts = rng.integers(1, 5, 40)
    scores = rng.normal(size=(40, 1))
    hidden = HiddenCauses(scores.T, np.full((1, 6), 0.1), spins.mean(axis=0), np.empty((1, 0)))
    of_rows = _variance_shares(spins, hidden, scores, counts / counts.sum())
    repeated = np.repeat(spins, counts, axis=0)
    of_each = np.full(len(repeated), 1 / len(repeated))
    expected = _variance_shares(repeated, hidden, np.repeat(scores, counts, axis=0), of_each)
    np.testing.assert_allclose(of_rows, expected, rtol=1e-12)


def test_as_many_causes_as_columns_that_change_are_refused():
    values = np.random.default_rng(0).choice([-1, 1], (60, 5))
    values[:, 0] = 1
    spins = ik.as_spins(values, mapping=[(-1, 1)] * 5)
    with pytest.raises(SettingError, match="from 0 to 3, fewer than columns that vary"):
        ik.AutoIsing(hidden=4).fit(spins)


# Not sparse


def test_a_world_where_every_pair_is_coupled_is_called_by_name():
    rng = np.random.default_rng(0)
    couplings = np.triu(rng.normal(0, 0.5 / np.sqrt(40), (40, 40)), 1)
    truth = ik.IsingModel(couplings + couplings.T)
    with pytest.warns(ReliabilityWarning, match="PseudolikelihoodIsing"):
        fit = ik.AutoIsing().fit(ik.sample(truth, 3000, random_state=1))
    check = check_of(fit, "not sparse")
    assert check.serious
    assert not check.levels_hold


def test_two_strong_causes_of_few_spins_are_causes_and_not_couplings_of_every_pair():
    """By couplings of all pairs alone, each of these tables looks as if every pair were coupled:
    more than half of 64 and 70 edges are then false.
    """
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        truth = ik.random_regular(n_spins=20, degree=3, coupling=0.35, random_state=seed)
        shifts = rng.normal(size=(1200, 2)) @ rng.normal(0, 0.7, (2, 20))
        fit = ik.AutoIsing().fit(rows_given(truth, shifts, seed))
        assert not check_of(fit, "not sparse").serious
        assert fit.hidden_.n_hidden == 2
        assert false_share(fit, truth) <= 0.07


def test_couplings_of_one_strength_between_all_are_a_cause():
    truth = ik.IsingModel(0.7 / 30 * (1 - np.eye(30)))
    fit = ik.AutoIsing().fit(ik.sample(truth, 3000, random_state=1))
    assert fit.hidden_.n_hidden == 1
    assert len(fit.edges_) <= 1


def test_a_small_strong_lattice_is_sparse():
    """With 27 percent of all pairs coupled, and rows enough to see that linear estimates err."""
    truth = ik.square_lattice(side=4, coupling=0.6, random_state=3)
    fit = ik.AutoIsing().fit(ik.sample(truth, 5000, random_state=1, check=False, warm_up=2000))
    assert not check_of(fit, "not sparse").serious
    assert ik.score(fit.model_, truth).f1 > 0.95


@pytest.mark.parametrize("strength", [2.0, 3.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_strong_cause_is_believed_though_edges_would_explain_as_much(strength, seed):
    """Nothing but two groups of rows that all 30 columns follow: correlations of 0.6 and 0.8. By
    what is explained alone two of the four were refused, and all edges that were found are false.
    """
    rng = np.random.default_rng([71, seed])
    group = rng.choice([-1, 1], (300, 1))
    values = (rng.random((300, 30)) < 1 / (1 + np.exp(-strength * group))).astype(int)
    fit = ik.AutoIsing().fit(values)
    assert fit.hidden_ is not None
    assert len(fit.edges_) <= 1
