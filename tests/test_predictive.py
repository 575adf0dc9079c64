"""The model that predicts best: `AutoIsing(predictive=True)`."""

import numpy as np
import pytest
from scipy.optimize import minimize

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.estimators import auto
from isingkit.estimators.nodewise import distinct_rows
from isingkit.estimators.predictive import Shrinkage, _splits
from isingkit.spins import RowWeights

pytestmark = pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")


def many_weak():
    """Couplings of which 300 rows show but some."""
    return ik.erdos_renyi(n_spins=14, mean_degree=7, coupling=0.15, random_state=0)


def couplings_of(model):
    return model.couplings.toarray()


@pytest.fixture(scope="module")
def weak_rows():
    return ik.sample(many_weak(), n_samples=300, random_state=1)


@pytest.fixture(scope="module")
def predictive(weak_rows):
    return ik.AutoIsing(predictive=True).fit(weak_rows)


def test_weak_couplings_predict_rows_that_a_network_does_not_and_edges_stay(weak_rows, predictive):
    """Of new rows, 0.1 better: a hundred standard errors of the mean."""
    plain = ik.AutoIsing().fit(weak_rows)
    new = ik.sample(many_weak(), n_samples=20_000, random_state=2)
    np.testing.assert_array_equal(predictive.edges_, plain.edges_)
    np.testing.assert_array_equal(couplings_of(predictive.model_), couplings_of(plain.model_))
    assert predictive.predictive_model_.n_edges == 91
    assert predictive.score(new) > plain.score(new) + 0.1


def test_where_the_network_is_all_there_is_it_is_the_model_that_predicts():
    truth = ik.random_regular(n_spins=30, degree=3, coupling=0.4, random_state=0)
    rows = ik.sample(truth, n_samples=300, random_state=1)
    fit = ik.AutoIsing(predictive=True).fit(rows)
    assert fit.predictive_model_ is fit.model_
    assert fit.score(rows) == ik.AutoIsing().fit(rows).score(rows)
    assert not hasattr(fit.set_params(predictive=False).fit(rows), "predictive_model_")


def test_penalised_models_of_all_pairs_are_what_a_general_minimiser_finds(weak_rows):
    rows = distinct_rows(weak_rows, None)
    network = many_weak()
    shrinkage = Shrinkage(l2=0.05, of_edges=0.1)
    upper = np.triu_indices(14, 1)
    is_edge = network.couplings.toarray()[upper] != 0

    def loss(x):
        couplings = np.zeros((14, 14))
        couplings[upper] = x[:91]
        local = (couplings + couplings.T) @ rows.spins + x[91:, None]
        each = np.logaddexp(0, -2 * rows.spins * local).sum(axis=0)
        penalties = 2 * 0.05 * np.where(is_edge, 0.1, 1.0)
        return each @ rows.weights + penalties @ x[:91] ** 2

    slow = minimize(loss, np.zeros(105), method="BFGS", options={"gtol": 1e-6}).x
    model = shrinkage.model(rows, network, fit_fields=True)
    np.testing.assert_allclose(model.couplings.toarray()[upper], slow[:91], atol=1e-5)
    np.testing.assert_allclose(model.fields, slow[91:], atol=1e-5)


def test_counts_are_repeated_rows_and_scales_of_weights_do_not_matter(weak_rows, predictive):
    spins, times = np.unique(np.asarray(weak_rows)[:, :6], axis=0, return_counts=True)
    counted = ik.AutoIsing(predictive=True).fit(spins, counts=times)
    repeated = ik.AutoIsing(predictive=True).fit(np.repeat(spins, times, axis=0))
    np.testing.assert_array_equal(
        couplings_of(counted.predictive_model_), couplings_of(repeated.predictive_model_)
    )
    weighted = ik.AutoIsing(predictive=True).fit(weak_rows, sample_weight=np.full(300, 1e-3))
    np.testing.assert_allclose(
        couplings_of(weighted.predictive_model_),
        couplings_of(predictive.predictive_model_),
        atol=1e-6,
    )


def test_rows_that_belong_together_are_left_out_together_and_series_in_parts(weak_rows):
    labels = np.arange(300) % 7
    weights = RowWeights(np.ones(300), np.ones(300), groups=labels)
    for kept, left_out in _splits(weak_rows, weights, np.random.default_rng(0)):
        assert not set(labels[kept]) & set(labels[left_out])
    for _, left_out in _splits(weak_rows, None, None):
        assert (np.diff(left_out) == 1).all()


@pytest.mark.parametrize(
    ("settings", "given", "problem"),
    [
        ({"predictive": 1}, {}, "predictive must be True or False"),
        ({"missing": "pairwise"}, {}, "missing='drop' predicts from complete rows"),
        ({}, {"covariates": np.arange(40.0)[:, None]}, "False with covariates"),
    ],
)
def test_what_cannot_be_predicted_from_is_refused_at_once(settings, given, problem):
    table = np.random.default_rng(0).integers(0, 2, (40, 4)).astype(float)
    if "missing" in settings:
        table[0, 0] = np.nan
    with pytest.raises(ex.SettingError, match=problem):
        ik.AutoIsing(**{"predictive": True} | settings).fit(table, **given)


def test_few_groups_and_huge_counts_are_refused_before_any_work():
    """Seen to fail: 8 and 9 groups after the fit, and counts of 10^9 for lack of memory."""
    table = np.random.default_rng(0).integers(0, 2, (90, 3))
    with pytest.raises(ex.SettingError, match="with 8 groups or fewer"):
        ik.AutoIsing(predictive=True).fit(table, groups=np.arange(90) % 8)
    assert hasattr(ik.AutoIsing(predictive=True).fit(table, groups=np.arange(90) % 9), "model_")
    with pytest.raises(ex.SettingError, match="samples, which show weak couplings"):
        ik.AutoIsing(predictive=True).fit(table[:8], counts=np.full(8, 10**9))


def test_folds_leave_out_as_many_groups_each_whatever_their_size():
    """Seen to fail where rows were balanced: all small groups were left out at once."""
    groups = np.concatenate([np.repeat(np.arange(4), 50), np.repeat(np.arange(4, 12), 2)])
    packed = ik.pack(np.resize([1, -1, -1], (len(groups), 2)))
    ones = np.ones(len(groups))
    splits = list(_splits(packed, RowWeights(ones, ones, groups), None))
    left_out = np.concatenate([out for _, out in splits])
    np.testing.assert_array_equal(np.sort(left_out), np.arange(len(groups)))
    for kept, out in splits:
        assert not set(groups[kept]) & set(groups[out])
        assert len(set(groups[kept])) >= 8


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.IsingkitWarning")
def test_where_the_network_predicts_best_merged_columns_leave_its_hidden_causes(monkeypatch):
    """Seen to score 3 less a row, as if there were none."""
    monkeypatch.setattr(auto, "best_shrinkage", lambda *_, **__: None)
    rng = np.random.default_rng(0)
    cause = rng.normal(size=(200, 1))
    values = np.where(rng.random((200, 12)) < 1 / (1 + np.exp(-2.4 * cause)), 1, -1)
    values = np.column_stack([values, values[:, 0]])
    plain = ik.AutoIsing(hidden=1, rows="independent", merge_alike=True)
    expected = plain.fit(values).score(values)
    found = ik.AutoIsing(hidden=1, rows="independent", merge_alike=True, predictive=True)
    assert found.fit(values).score(values) == pytest.approx(expected)
