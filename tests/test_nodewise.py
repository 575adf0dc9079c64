"""Pseudolikelihood, interaction screening, eLasso and lasso: against scikit-learn, other programs,
and plain minimisers.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import Lasso, LogisticRegression

import isingkit as ik
import reference
from isingkit import exceptions as ex
from isingkit._kernels import elementary
from isingkit._kernels.lasso import descend, minimise_quadratic
from isingkit.estimators import elasso
from isingkit.estimators.nodewise import node_paths
from parts import kernel_of


@pytest.fixture
def world(rng):
    """800 samples of 12 spins with fields, and weights with zeros."""
    graph = ik.erdos_renyi(n_spins=12, mean_degree=3, coupling=0.5, random_state=0)
    truth = ik.IsingModel(graph.couplings, rng.normal(0, 0.3, 12))
    return np.asarray(ik.exact(truth).sample(n_samples=800, random_state=1)).astype(
        float
    ), rng.integers(0, 4, 800)


def one_by_one(make, values, weights, per):
    """Coefficients over `per` and intercepts of scikit-learn's regressions of each column on all
    others.
    """
    n = values.shape[1]
    rows, intercepts = np.zeros((n, n)), np.zeros(n)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        model = make().fit(values[:, others], values[:, i], sample_weight=weights)
        rows[i, others] = np.ravel(model.coef_) / per
        intercepts[i] = np.ravel(model.intercept_)[0] / per
    return rows, intercepts


@pytest.mark.parametrize("fit_fields", [True, False])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.0, 0.02), (0.05, 0.0), (0.01, 0.0)])
def test_pseudolikelihood_equals_scikit_learn_spin_by_spin(world, l1, l2, fit_fields):
    """[eq:PL-estimator-df] LogisticRegression's coefficients are 2 J; to 1e-6, as far as its own
    convergence reaches.
    """
    values, weights = world
    settings = {"fit_intercept": fit_fields, "tol": 1e-12, "max_iter": 100_000}
    if l1:
        settings |= {"l1_ratio": 1.0, "C": 2 / (weights.sum() * l1), "solver": "saga"}
    else:
        settings |= {"C": 2 / (weights.sum() * l2) if l2 else np.inf, "solver": "newton-cholesky"}
    rows, intercepts = one_by_one(lambda: LogisticRegression(**settings), values, weights, per=2)
    fit = ik.PseudolikelihoodIsing(l1=l1, l2=l2, fit_fields=fit_fields).fit(
        values, sample_weight=weights
    )
    np.testing.assert_allclose(fit.estimates_, rows, atol=1e-6)
    np.testing.assert_allclose(fit.intercepts_, intercepts * fit_fields, atol=1e-6)
    assert not l1 or (rows == 0).any()
    np.testing.assert_array_equal(fit.estimates_ == 0, np.abs(rows) < 1e-9)


@pytest.mark.parametrize("fit_fields", [True, False])
@pytest.mark.parametrize("l1", [0.1, 0.02, 0.001])
def test_lasso_equals_scikit_learn_spin_by_spin(world, l1, fit_fields):
    values, weights = world
    rows, intercepts = one_by_one(
        lambda: Lasso(alpha=l1, fit_intercept=fit_fields, tol=1e-14, max_iter=100_000),
        values,
        weights,
        per=1,
    )
    fit = ik.LassoIsing(l1=l1, fit_fields=fit_fields).fit(values, sample_weight=weights)
    np.testing.assert_allclose(fit.estimates_, rows, atol=1e-6)
    np.testing.assert_allclose(fit.intercepts_, intercepts, atol=1e-6)


@pytest.mark.parametrize("joint", [False, True], ids=["spin by spin", "joint"])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.05, 0.0), (0.02, 0.01)])
@pytest.mark.parametrize("kind", ["logistic", "screening", "log screening"])
def test_losses_are_minimised_as_a_plain_minimiser_does(world, kind, l1, l2, joint):
    """Five spins; L-BFGS without derivatives reaches 1e-4."""
    values, weights = world[0][:, :5], world[1]
    fields, couplings = reference.penalised(kind, values, weights / weights.sum(), l1, l2, joint)
    make = ik.PseudolikelihoodIsing if kind == "logistic" else ik.InteractionScreeningIsing
    fit = make(
        l1=l1,
        l2=l2,
        joint=joint,
        **({} if kind == "logistic" else {"log": kind == "log screening"}),
    )
    fit.fit(values, sample_weight=weights)
    np.testing.assert_allclose(fit.estimates_, couplings, atol=2e-4)
    np.testing.assert_allclose(fit.intercepts_, fields, atol=2e-4)
    if joint:
        np.testing.assert_array_equal(fit.estimates_, fit.estimates_.T)


@pytest.mark.parametrize(
    "loss", ["pseudolikelihood", "screening", "log screening", "probability flow"]
)
def test_all_losses_are_consistent(loss):
    """Learnt from all states of a glassy lattice, weighted by their probabilities, the couplings
    come out, loops or not.
    """
    graph = ik.square_lattice(side=3, coupling=0.5, random_state=1)
    truth = ik.IsingModel(graph.couplings, np.linspace(-0.4, 0.4, 9))
    states, shares = reference.probabilities(truth.couplings.toarray(), truth.fields)
    estimator = {
        "pseudolikelihood": ik.PseudolikelihoodIsing(),
        "screening": ik.InteractionScreeningIsing(),
        "log screening": ik.InteractionScreeningIsing(log=True),
        "probability flow": ik.InteractionScreeningIsing(joint=True),
    }[loss].fit(states, sample_weight=shares)
    np.testing.assert_allclose(estimator.estimates_, truth.couplings.toarray(), atol=1e-6)
    np.testing.assert_allclose(estimator.model_.fields, truth.fields, atol=1e-6)


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize(("kind", "c"), [("RISE", 0.4), ("logRISE", 0.8), ("RPLE", 0.2)])
def test_a_million_samples_give_what_another_program_learnt(shared_data, name, kind, c):
    folder = shared_data / "interaction_screening"
    table = pd.read_csv(folder / f"{name}_samples.csv", header=None).to_numpy()
    learnt = pd.read_csv(folder / f"{name}_{kind}_learned.csv", header=None).to_numpy()
    l1 = c * np.sqrt(np.log(3**2 / 0.05) / table[:, 0].sum())
    fit = (
        ik.PseudolikelihoodIsing(l1=l1)
        if kind == "RPLE"
        else ik.InteractionScreeningIsing(l1=l1, log=kind == "logRISE")
    )
    model = fit.fit(table[:, 1:], counts=table[:, 0]).model_
    np.testing.assert_allclose(model.couplings.toarray() + np.diag(model.fields), learnt, atol=1e-6)


@pytest.mark.parametrize(
    ("data", "stored", "settings", "within"),
    [
        ("adhd_symptoms_355x19.csv", "adhd_all_g0.25_AND", {}, 0.01),
        ("adhd_symptoms_355x19.csv", "adhd_all_g0.25_OR", {"rule": "or"}, 0.01),
        ("adhd_symptoms_355x19.csv", "adhd_all_g0.5_AND", {"gamma": 0.5}, 0.01),
        ("scotus_rehnquist2_895x9.csv", "scotus_g0.25_AND", {}, 0.01),
        ("hd_spikes_25ms_21174x15.csv.gz", "hdspikes_g0.25_AND", {}, 0.05),
    ],
)
def test_elasso_finds_the_edges_and_weights_of_isingfit(
    shared_data, data, stored, settings, within
):
    """Exactly its edges, in all five; weights and thresholds, in 0/1 coding, as near as its own
    convergence allows.
    """
    theirs = json.loads((shared_data / "reference" / f"isingfit_{stored}.json").read_text())
    table = pd.read_csv(shared_data / data)[theirs["nodes"]]
    fit = ik.ELassoIsing(**settings).fit(table)
    weights = np.array(theirs["weights"])
    np.testing.assert_array_equal(fit.weights_ != 0, weights != 0)
    assert fit.model_.n_edges == theirs["n_edges"]
    np.testing.assert_allclose(fit.weights_, weights, atol=within)
    np.testing.assert_allclose(fit.thresholds_, np.ravel(theirs["thresholds"]), atol=within)
    np.testing.assert_allclose(4 * fit.model_.couplings.toarray(), fit.weights_)


@pytest.fixture(scope="module")
def rare_species():
    """302 sites of 51 species, some seen once or never, and glmnet's answers."""
    stored = json.loads((Path(__file__).parent / "glmnet" / "rare_species.json").read_text())
    stored["table"] = np.array([list(row) for row in stored["rows"]]).astype(int)
    return stored


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ConstantColumnWarning")
def test_elasso_finds_the_edges_and_weights_of_glmnet_on_rare_species(rare_species):
    """Regressions that small penalties nearly separate: the same neighbours, penalties to 1e-6,
    criteria to 0.01. With the species that was seen once among them, there is an edge more.
    """
    fit = ik.ELassoIsing().fit(rare_species["table"])
    rows, columns, weights = np.array(rare_species["edges"]).T
    theirs = np.zeros((51, 51))
    theirs[rows.astype(int), columns.astype(int)] = weights
    np.testing.assert_array_equal(fit.estimates_ != 0, theirs != 0)
    np.testing.assert_allclose(4 * fit.estimates_, theirs, atol=1e-3)
    kept, penalties, criteria, _, _ = np.array(rare_species["nodes"]).T
    kept = kept.astype(int)
    np.testing.assert_allclose(fit.penalties_[kept], penalties, rtol=1e-6)
    np.testing.assert_allclose(fit.criteria_[kept], criteria, atol=0.01)
    seen_once = rare_species["table"].sum(axis=0) == 1
    assert seen_once.any()
    assert fit.model_.fields[seen_once] == pytest.approx(np.arctanh(2 / 302 - 1))


def test_coordinates_that_hang_together_move_together(rng):
    """A quadratic function whose minimum 500 sweeps over coordinates miss by 1."""
    n = 30
    hidden = rng.normal(size=(n, 40)) + 3 * rng.normal(size=40)
    hessian = hidden @ hidden.T / 40
    slopes, penalties = rng.normal(size=n), np.r_[0.0, np.full(n - 1, 0.3)]
    unknowns = np.stack([np.zeros(n), slopes, penalties, np.zeros(n)])
    room, active = np.zeros((n, n)), np.zeros(n, dtype=np.int64)
    kernel_of(minimise_quadratic)(hessian, room, unknowns, active, n, 1e-9, 100)
    x, gradient = unknowns[:2]
    np.testing.assert_allclose(gradient, slopes + hessian @ x, atol=1e-9)
    off = np.where(x == 0, np.abs(gradient) - penalties, np.abs(gradient + penalties * np.sign(x)))
    assert off.max() < 1e-8
    assert 3 < np.count_nonzero(x) < n
    swept, moved = np.zeros(n), slopes.copy()
    kernel_of(descend)(hessian, swept, moved, penalties, n, 1e-9, 500)
    assert np.abs(swept - x).max() > 0.5


def n_penalties_used(monkeypatch, table):
    """Of each path, where these end for what they explain only."""
    paths = []

    def watched(*arguments, **settings):
        settings["end"] = replace(settings["end"], cost=0.0)
        paths.append(node_paths(*arguments, **settings))
        return paths[-1]

    monkeypatch.setattr(elasso, "node_paths", watched)
    ik.ELassoIsing().fit(table)
    return np.isfinite(paths[0][0].losses).sum(axis=0)


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ConstantColumnWarning")
def test_paths_end_where_those_of_glmnet_do(monkeypatch, rare_species):
    """By the deviance explained: 1e-5 more, 0.999 of all, or 100 penalties. With its own tolerance
    it stops up to 23 penalties earlier, where regressions are nearly separated.
    """
    kept, _, _, _, theirs = np.array(rare_species["nodes"]).T
    ours = n_penalties_used(monkeypatch, rare_species["table"])[kept.astype(int)]
    np.testing.assert_array_equal(ours, theirs)


def test_paths_have_five_penalties_at_least(monkeypatch, rng):
    """As glmnet's, however little they explain: 200,000 rows of independent columns."""
    values = rng.choice([0, 1], (200_000, 3))
    assert n_penalties_used(monkeypatch, values).tolist() == [5, 5, 5]


def test_both_codings_are_the_same_model(world):
    """exp(sum W x x + theta x) over 0/1 with the directed estimates has the log odds of exp(sum J s
    s + H s) over -1/+1.
    """
    values, _ = world
    fit = ik.ELassoIsing(rule="or").fit(values)
    zero_one = (values + 1) / 2
    i = 3
    odds = 2 * (fit.intercepts_[i] + values @ fit.estimates_[i])
    np.testing.assert_allclose(
        fit.thresholds_[i] + zero_one @ (4 * fit.estimates_[i]), odds, atol=1e-9
    )


@pytest.mark.parametrize(
    ("n_spins", "n_samples", "gamma"), [(30, 40, 0.0), (50, 80, 0.25), (50, 80, 0.5)]
)
def test_elasso_ends_paths_that_can_no_longer_be_best(monkeypatch, n_spins, n_samples, gamma):
    """The choice is that of whole paths, two worlds each; the first has fits that drop neighbours
    again, and stays whole.
    """
    whole, used = elasso.node_paths, []

    def counted(*args, **settings):
        path, residuals = whole(*args, **settings)
        used.append(np.isfinite(path.losses).sum())
        return path, residuals

    for seed in range(2):
        truth = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=seed)
        samples = ik.sample(truth, n_samples=n_samples, random_state=seed)
        monkeypatch.setattr(elasso, "node_paths", counted)
        early = ik.ELassoIsing(gamma=gamma).fit(samples)
        monkeypatch.setattr(
            elasso,
            "node_paths",
            lambda *args, **settings: counted(
                *args, **settings | {"end": replace(settings["end"], cost=0.0)}
            ),
        )
        late = ik.ELassoIsing(gamma=gamma).fit(samples)
        np.testing.assert_array_equal(early.estimates_, late.estimates_)
        np.testing.assert_array_equal(early.criteria_, late.criteria_)
    assert (sum(used[::2]) < sum(used[1::2])) == (n_spins == 50)


def test_a_larger_gamma_finds_fewer_edges(world):
    edges = [ik.ELassoIsing(gamma=gamma).fit(world[0]).model_.n_edges for gamma in (0.0, 0.5, 5.0)]
    assert edges[0] >= edges[1] > edges[2]


@pytest.mark.parametrize("make", [ik.PseudolikelihoodIsing, ik.LassoIsing])
def test_a_path_has_the_single_fits_along_it(world, make):
    values, weights = world
    path = make().path(values, n_penalties=30, sample_weight=weights)
    assert (np.diff(path.penalties) < 0).all()
    assert not path.estimates[0].any()
    for k in (5, 15, 29):
        fit = make(l1=path.penalties[k]).fit(values, sample_weight=weights)
        np.testing.assert_allclose(path.estimates[k], fit.estimates_, atol=1e-6)
        np.testing.assert_allclose(path.intercepts[k], fit.intercepts_, atol=1e-6)
    assert (np.diff(path.losses, axis=0) <= 1e-12).all()
    np.testing.assert_array_equal(make().path(values, [0.01, 0.1]).penalties, [0.1, 0.01])
    with pytest.raises(ex.SettingError, match="penalties must be finite numbers > 0"):
        make().path(values, [0.1, 0.0])
    fit = make(l1=0.05).fit(values)
    fit.path(np.where(values > 0, "yes", "no"))
    assert fit.mapping_[0] == (-1, 1)


def test_separation_is_explained_and_a_penalty_mends_it(rng):
    """Nobody has symptom b without symptom a."""
    table = pd.DataFrame(rng.integers(0, 2, (200, 4)), columns=["a", "b", "c", "d"])
    table.loc[table["a"] == 0, "b"] = 0
    for estimator in (
        ik.PseudolikelihoodIsing(),
        ik.PseudolikelihoodIsing(joint=True),
        ik.InteractionScreeningIsing(),
        ik.InteractionScreeningIsing(log=True),
        ik.MaximumLikelihoodIsing(),
    ):
        with pytest.raises(
            ex.SeparationError, match="'[ab]' and '[ab]' grows without bound"
        ) as caught:
            estimator.fit(table)
        assert set(caught.value.pair) == {"a", "b"}
        if not getattr(estimator, "joint", False):
            assert "no row has" in str(caught.value)
    assert np.isfinite(ik.PseudolikelihoodIsing(l2=0.01).fit(table).estimates_).all()
    assert np.isfinite(ik.MaximumLikelihoodIsing(l2=0.01).fit(table).estimates_).all()


def test_separation_by_several_spins_at_once_is_found(rng):
    """c is the majority of a, b and d: no pair is separated, but the three together predict it. No
    l1 mends log screening.
    """
    table = rng.choice([-1, 1], (300, 4))
    table[:, 2] = np.sign(table[:, 0] + table[:, 1] + table[:, 3])
    losses = [
        ik.PseudolikelihoodIsing(),
        ik.InteractionScreeningIsing(),
        ik.InteractionScreeningIsing(l1=0.02, log=True),
    ]
    for estimator in losses + [clone(estimator).set_params(joint=True) for estimator in losses]:
        with pytest.raises(ex.SeparationError, match="without exception"):
            estimator.fit(table)


def test_separation_by_too_few_rows_says_how_many_it_takes():
    """Ninety rows of 40 columns coupled to three others each: below 2.69 rows for each of the
    other columns some combination of them predicts a column by chance.
    """
    truth = ik.random_regular(n_spins=40, degree=3, coupling=0.4, random_state=0)
    few = ik.sample(truth, n_samples=90, random_state=1)
    needed = int(np.ceil(39 * ik.theory.separation_limit(3, 0.4)))
    for estimator in (ik.PseudolikelihoodIsing(), ik.InteractionScreeningIsing()):
        with pytest.raises(ex.SeparationError, match=f"fewer than {needed}") as caught:
            estimator.fit(few)
        assert caught.value.rows_needed == needed
    assert ik.PseudolikelihoodIsing(l2=0.01).fit(few).n_samples_ == 90
    enough = ik.sample(truth, n_samples=2 * needed, random_state=1)
    assert ik.PseudolikelihoodIsing().fit(enough).n_samples_ == 2 * needed


def test_strong_but_honest_couplings_are_not_taken_for_separation(rng):
    """One exception of each kind among 4000 rows is enough, the other three spins being
    anything.
    """
    table = rng.choice([-1, 1], (4000, 5))
    table[:, 1] = table[:, 0]
    table[:16] = [
        [a, -a, b, c, d] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1) for d in (-1, 1)
    ]
    for estimator in (
        ik.PseudolikelihoodIsing(),
        ik.PseudolikelihoodIsing(joint=True),
        ik.MaximumLikelihoodIsing(),
    ):
        assert estimator.fit(table).estimates_[0, 1] == pytest.approx(
            np.log(3984 / 16) / 2, rel=1e-3
        )


def test_a_fit_that_does_not_come_to_rest_says_how_far_it_got(world, monkeypatch):
    from isingkit.estimators import lasso, nodewise

    monkeypatch.setattr(nodewise, "_STEPS", 2)
    with pytest.warns(
        ex.NotConvergedWarning, match="PseudolikelihoodIsing stopped with a residual of"
    ) as caught:
        ik.PseudolikelihoodIsing(l1=0.001).fit(world[0])
    assert caught[0].message.residual > caught[0].message.allowed
    monkeypatch.setattr(lasso, "_SWEEPS", 1)
    with pytest.warns(ex.NotConvergedWarning, match="LassoIsing stopped"):
        ik.LassoIsing(l1=0.001).fit(world[0])


def test_fields_take_up_what_a_threshold_drops(world):
    """The mean influence of a dropped coupling goes into the field: means of the spins are still
    met, nearly.
    """
    values, _ = world
    fit = ik.PseudolikelihoodIsing(threshold=0.2).fit(values)
    kept = ik.PseudolikelihoodIsing().fit(values)
    np.testing.assert_array_equal(kept.model_.fields, kept.intercepts_)
    dropped = np.where(fit.model_.couplings.toarray() == 0, fit.estimates_, 0.0)
    np.testing.assert_allclose(
        fit.model_.fields, fit.intercepts_ + dropped @ values.mean(axis=0), atol=1e-12
    )


def test_whole_rows_are_needed(world):
    for estimator in (
        ik.PseudolikelihoodIsing(missing="pairwise"),
        ik.ELassoIsing(missing="pairwise"),
        ik.MaximumLikelihoodIsing(missing="pairwise"),
    ):
        with pytest.raises(ex.SettingError, match="missing must be 'error' or 'drop'"):
            estimator.fit(world[0])
    table = world[0].copy()
    table[::7, 3] = np.nan
    complete = table[~np.isnan(table).any(axis=1)]
    for make in (ik.PseudolikelihoodIsing, ik.ELassoIsing, ik.MaximumLikelihoodIsing):
        assert make(missing="drop").fit(table).score(complete) == make().fit(complete).score(
            complete
        )


def test_lasso_of_pairwise_sums_leaves_unobserved_pairs_alone(spins):
    table = spins.astype(float)
    table[:150, 0], table[150:, 1] = np.nan, np.nan
    with pytest.warns(ex.UnobservedPairWarning):
        fit = ik.LassoIsing(l1=0.05, missing="pairwise").fit(table)
    assert fit.estimates_[0, 1] == fit.estimates_[1, 0] == 0
    assert fit.estimates_.any()


def test_a_row_of_next_to_no_weight_does_not_hide_separation(rng):
    table = rng.choice([-1, 1], (120, 4))
    table[table[:, 0] < 0, 1] = -1
    weights = np.ones(120)
    weights[0] = 1e-9
    for estimator in (
        ik.PseudolikelihoodIsing(),
        ik.PseudolikelihoodIsing(joint=True),
        ik.InteractionScreeningIsing(),
    ):
        with pytest.raises(ex.SeparationError, match="no row has"):
            estimator.fit(table, sample_weight=weights)


def test_constant_spins_have_a_finite_loss_along_a_path(spins):
    with pytest.warns(ex.ConstantColumnWarning):
        path = ik.PseudolikelihoodIsing().path(np.insert(spins, 0, 1, axis=1), n_penalties=3)
    assert (path.losses[:, 0] < 0.01).all()


def test_log_screening_of_strong_couplings_does_not_step_too_far():
    """A 4x4 glass at K = 1.6: no spin's objective ends above where it started, with its field
    alone.
    """
    with pytest.warns(ex.OrderedTeacherWarning):
        truth = ik.square_lattice(side=4, coupling=1.6, random_state=0)
    values = np.asarray(ik.exact(truth).sample(n_samples=5000, random_state=1)).astype(float)
    shares, l1 = np.full(5000, 1 / 5000), 0.033
    try:
        fit = ik.InteractionScreeningIsing(l1=l1, log=True).fit(values)
    except ex.SeparationError:
        return
    for i in range(16):
        found = reference.node_loss(
            "log screening", values, shares, i, fit.intercepts_[i], fit.estimates_[i]
        )
        assert found + l1 * np.abs(fit.estimates_[i]).sum() < 1e-6


def test_functions_that_use_the_package_cross_process_borders():
    """joblib sends a function made on the spot by value, and the modules it uses with it."""
    assert Parallel(n_jobs=2)(delayed(lambda: ik.__name__)() for _ in range(2)) == [
        "isingkit",
        "isingkit",
    ]


@pytest.mark.parametrize(
    ("ours", "numpys", "largest"), [(elementary.exp, np.exp, 700), (elementary.tanh, np.tanh, 30)]
)
def test_vectors_of_exponentials_are_numpys(ours, numpys, largest):
    """To three units in the last place: two are ours, one is numpy's, which has other functions on
    other processors.
    """
    numbers = np.concatenate([[0.0], np.geomspace(1e-18, largest, 20_000)])
    numbers = np.concatenate([-numbers, numbers])
    np.testing.assert_allclose([ours(x) for x in numbers], numpys(numbers), rtol=7e-16, atol=3e-16)


def test_take_tanh_overwrites_numbers_with_tanh_of_a_multiple():
    numbers = np.linspace(-9, 9, 1001)
    expected = np.tanh(4 * numbers)
    kernel_of(elementary.take_tanh)(numbers, 4.0)
    np.testing.assert_allclose(numbers, expected, rtol=7e-16, atol=3e-16)


def test_vectors_of_logarithms_are_numpys():
    shares = np.concatenate([[0.0, 1.0], np.geomspace(1e-18, 1, 20_000)])
    np.testing.assert_allclose(
        [elementary.log1p_of_share(u) for u in shares], np.log1p(shares), rtol=7e-16
    )
    numbers = np.concatenate(
        [[1.0], np.geomspace(1e-300, 1e300, 20_000), 1 + np.geomspace(1e-15, 1, 2000)]
    )
    np.testing.assert_allclose(
        [elementary.log(x) for x in numbers], np.log(numbers), rtol=7e-16, atol=3e-16
    )


def test_exponents_out_of_range_stay_finite():
    assert elementary.exp(-1e300) < 1e-300
    assert np.isfinite(elementary.exp(1e300))


def test_log_screening_that_is_next_to_nothing_looks_for_couplings():
    """Given covariates that explain next to nothing the loss is about 0, where rounding could end
    the search: a spin lost all its couplings, and no warning came (in 1 of these 40 tables).
    """
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = rng.choice([-1.0, 1.0], (200, 4))
        rows[:, 1] = np.where(rng.random(200) < 0.8, rows[:, 0], rows[:, 1])
        covariate = rng.normal(size=(200, 1))
        covariate -= covariate.mean()
        covariate -= (1 - 1e-4) * rows @ np.linalg.lstsq(rows, covariate, rcond=None)[0]
        screening = ik.InteractionScreeningIsing(log=True, l1=0.1, fit_fields=False)
        estimates = screening.fit(rows, covariates=covariate).estimates_
        assert min(estimates[0, 1], estimates[1, 0]) > 0.5


def test_elasso_warns_of_constant_columns_whatever_the_weights(rng):
    """Sums of weights are rounded, and no constant column has exactly all of them."""
    rows = np.column_stack([rng.choice([-1, 1], (300, 3)), np.ones(300, int)])
    with pytest.warns(ex.ConstantColumnWarning):
        packed = ik.pack(rows)
    for _ in range(5):
        with pytest.warns(ex.ConstantColumnWarning, match="x3"):
            ik.ELassoIsing().fit(packed, sample_weight=rng.random(300))
