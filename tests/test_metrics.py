import numpy as np
import pytest
import scipy.sparse

import isingkit as ik
from isingkit import exceptions as ex


def model_of(n_spins, edges, names=None):
    couplings = np.zeros((n_spins, n_spins))
    for (i, j), coupling in edges.items():
        couplings[i, j] = couplings[j, i] = coupling
    return ik.IsingModel(couplings, names=names)


def test_scores_count_edges_and_errors():
    truth = model_of(5, {(0, 1): 1.0, (1, 2): -1.0, (2, 3): 1.0, (3, 4): 1.0})
    found = model_of(5, {(0, 1): 0.5, (1, 2): 1.0, (0, 4): 0.5})
    scores = ik.score(found, truth)
    assert isinstance(scores, ik.Scores)
    assert (scores.true_positives, scores.false_positives, scores.false_negatives) == (2, 1, 2)
    assert scores.precision == pytest.approx(2 / 3)
    assert scores.recall == 0.5
    assert scores.f1 == pytest.approx(4 / 7)
    assert scores.sign_accuracy == 0.5
    assert not scores.exact
    assert scores.rss == pytest.approx(2 * (0.25 + 4 + 1 + 1 + 0.25) / 5)


def test_a_model_scores_perfectly_against_itself_and_an_empty_one_claims_nothing_false():
    truth, nothing = model_of(3, {(0, 1): 1.0}), model_of(3, {})
    assert ik.score(truth, truth).exact
    assert ik.score(truth, truth).rss == 0
    assert (
        ik.score(nothing, truth).precision,
        ik.score(nothing, truth).recall,
        ik.score(nothing, truth).f1,
    ) == (1, 0, 0)
    assert ik.score(nothing, nothing).f1 == 1
    tiny = model_of(3, {(0, 1): 1e-200, (1, 2): -1e-310})
    assert ik.score(tiny, tiny).exact


def test_spins_are_matched_by_name():
    truth = model_of(3, {(0, 1): 1.0}, names=["a", "b", "c"])
    assert ik.score(model_of(3, {(1, 2): 1.0}, names=["c", "a", "b"]), truth).exact
    assert ik.score(model_of(3, {(0, 1): 1.0}), truth).exact


def test_models_of_other_sizes_are_refused():
    with pytest.raises(ex.ModelMismatchError, match="one has 2 columns and the other 3"):
        ik.score(model_of(2, {}), model_of(3, {}))
    with pytest.raises(ex.ModelMismatchError, match="'a' in one and 'c' in the other"):
        ik.score(model_of(2, {}, names=["a", "b"]), model_of(2, {}, names=["c", "d"]))
    with pytest.raises(ex.SettingError, match=r"shape \(3, 3\)"):
        ik.precision_recall(np.zeros((2, 2)), model_of(3, {}))
    with pytest.raises(ex.SettingError, match="model must be an IsingModel, such as model_"):
        ik.score(ik.RidgeIsing(), model_of(3, {}))


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_curves_count_directed_couplings_above_each_threshold(rng, make):
    """[eq:Precision-Recall]"""
    truth = model_of(6, {(0, 1): 1.0, (2, 3): -1.0, (3, 4): 1.0})
    estimates = rng.normal(size=(6, 6)) * (1 - np.eye(6))
    np.testing.assert_array_equal(
        ik.precision_recall(make(estimates + np.eye(6)), truth, [0.5]).precision,
        ik.precision_recall(make(estimates), truth, [0.5]).precision,
    )
    curve = ik.precision_recall(make(estimates), truth, thresholds=[0.0, 0.5, 1.0, 99.0])
    assert isinstance(curve, ik.PrecisionRecall)
    there = truth.couplings.toarray() != 0
    for k, threshold in enumerate([0.0, 0.5, 1.0]):
        claimed = np.abs(estimates) > threshold
        assert curve.precision[k] == (claimed & there).sum() / claimed.sum()
        assert curve.recall[k] == (claimed & there).sum() / there.sum()
    assert (curve.precision[3], curve.recall[3]) == (1, 0)


def test_the_default_thresholds_are_where_the_curve_changes():
    truth = model_of(3, {(0, 1): 1.0})
    estimates = np.array([[0, 0.9, 0.2], [0.8, 0, 0.1], [0.3, 0.1, 0]])
    curve = ik.precision_recall(estimates, truth)
    np.testing.assert_array_equal(curve.thresholds, [0, 0.1, 0.2, 0.3, 0.8, 0.9])
    np.testing.assert_array_equal(curve.recall, [1, 1, 1, 1, 0.5, 0])
    np.testing.assert_allclose(curve.precision, [1 / 3, 1 / 2, 2 / 3, 1, 1, 1])
