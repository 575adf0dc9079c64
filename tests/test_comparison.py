"""Methods side by side, in Python and on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.cli import main
from isingkit.comparison import known_methods
from isingkit.methods import METHODS, command_name, method_named, suggested_settings


@pytest.fixture(scope="module")
def world():
    truth = ik.random_regular(n_spins=16, degree=3, coupling=0.4, random_state=0)
    return truth, ik.exact(truth).sample(n_samples=1200, random_state=1)


def test_every_method_finds_most_of_a_planted_network(world):
    """All but the one without couplings: precision and recall above 0.7 where most reach 1."""
    truth, samples = world
    found = ik.compare(samples, truth)
    methods = {one.method for one in found.outcomes}
    assert methods >= set(known_methods(16, 1200)) - {"boltzmann"}
    for one in found.outcomes:
        assert one.problem is None
        assert one.seconds > 0
        if one.method != "independent":
            assert min(one.precision, one.recall) > 0.7, one
            assert one.held_out > found.outcomes[0].held_out + 1
    assert found.agreement.shape == (len(methods), len(methods))
    assert found.models["eLasso"].names == samples.names
    np.testing.assert_array_equal(found.agreement, found.agreement.T)
    assert found.best() != "independent"
    assert len(found.plot().axes) == 6


def test_agreement_is_the_share_of_edges_in_common(world):
    found = ik.compare(
        world[1], methods={"few": ik.LinearIsing(threshold=0.25), "all": ik.PseudolikelihoodIsing()}
    )
    few, many = found.models["few"].n_edges, found.models["all"].n_edges
    assert many == 120 > few > 0
    assert found.agreement[0, 1] == few / many
    assert found.outcomes[0].precision is None


def test_the_held_out_score_is_that_of_rows_not_learnt_from(world):
    samples = world[1]
    found = ik.compare(samples, methods=["ridge"], held_out=0.25, random_state=7)
    order = np.random.default_rng(7).permutation(1200)
    fit = ik.RidgeIsing().fit(samples[np.sort(order[300:])])
    assert found.outcomes[0].held_out == pytest.approx(fit.score(samples[np.sort(order[:300])]))


def test_a_method_that_cannot_says_why_and_the_others_go_on(rng):
    found = ik.compare(rng.choice([-1, 1], (30, 40)), methods=["linear", "ridge"])
    linear, ridge = found.outcomes
    assert "underdetermined" in linear.problem
    assert linear.n_edges is None
    assert ridge.problem is None
    assert "linear: n_samples=24 rows" in str(found)
    assert found.best() == "ridge"
    assert np.isnan(found.agreement[0]).all()
    found.plot()
    nothing = ik.compare(rng.choice([-1, 1], (30, 40)), methods=["linear"])
    for ask in (nothing.best, nothing.plot):
        with pytest.raises(ex.SettingError, match="at least one that works"):
            ask()


def test_methods_that_merge_columns_are_compared_with_those_that_do_not(world):
    """Merged columns have no edges of their own; scores are those of `score`."""
    truth, samples = world
    rows = np.asarray(samples)[:, :6]
    table = np.column_stack([rows, rows[:, 0], -rows[:, 1]])
    both = {"merged": ik.RidgeIsing(merge_alike=True), "all": ik.RidgeIsing()}
    of_columns = ik.IsingModel(np.pad(truth.couplings.toarray()[:6, :6], ((0, 2), (0, 2))))
    found = ik.compare(table, of_columns, both, random_state=7)
    merged, _ = found.outcomes
    assert merged.problem is None
    assert found.models["merged"].n_spins == 6
    edges = {name: set(map(tuple, model.edges()[["source", "target"]].tolist()))
             for name, model in found.models.items()}  # fmt: skip
    shared = len(edges["merged"] & edges["all"]) / len(edges["merged"] | edges["all"])
    assert found.agreement[0, 1] == found.agreement[1, 0] == shared
    of_spins = ik.score(ik.RidgeIsing().fit(rows).model_, ik.IsingModel(
        truth.couplings.toarray()[:6, :6]))  # fmt: skip
    assert (merged.precision, merged.recall) == (of_spins.precision, of_spins.recall)
    order = np.random.default_rng(7).permutation(1200)
    fit = ik.RidgeIsing(merge_alike=True).fit(table[np.sort(order[240:])])
    assert merged.held_out == pytest.approx(fit.score(table[np.sort(order[:240])]))


def test_methods_are_known_however_they_are_spelt_and_tried_once(world):
    spelt = ["Log-Screening", "log_screening", " log  screening", "ELASSO", "mean-field", "RIDGE"]
    with pytest.raises(ex.SettingError, match=r"but got \['mean-field'\]"):
        ik.compare(world[1], methods=spelt)
    del spelt[4]
    found = ik.compare(world[1], methods=spelt)
    assert [one.method for one in found.outcomes] == ["log screening", "eLasso", "ridge"]


def test_mistakes_in_a_comparison_are_refused(world):
    samples = world[1]
    with pytest.raises(ex.SettingError, match="methods must be a list of 'independent', 'auto'"):
        ik.compare(samples, methods=["magic"])
    with pytest.raises(ex.SettingError, match="methods must be a list of"):
        ik.compare(samples, methods="ridge")
    for odd in (3, []):
        with pytest.raises(ex.SettingError, match="methods must be a list of"):
            ik.compare(samples, methods=odd)
    with pytest.raises(ex.SettingError, match="estimators by name"):
        ik.compare(samples, methods={"mine": 3})
    with pytest.raises(ex.SettingError, match="truth must be an IsingModel"):
        ik.compare(samples, truth=np.eye(3))
    with pytest.raises(ex.SettingError, match="held_out must be"):
        ik.compare(samples, held_out=1.0)
    with pytest.raises(ex.SettingError, match="missing must be 'error' or 'drop'"):
        ik.compare(samples, missing="pairwise")
    with pytest.raises(ex.SettingError, match="leaves at least 2 of 2 rows"):
        ik.compare([[0, 1], [1, 0]])
    with pytest.raises(ex.SettingError, match="random_state must be"):
        ik.compare(samples, methods=["ridge"], random_state=-1)
    with pytest.raises(ex.ModelMismatchError):
        ik.compare(samples, ik.random_tree(n_spins=5, coupling=0.4))


def test_counted_rows_are_compared_as_the_samples_they_stand_for(world):
    """1200 samples of 6 spins, as they are and as at most 64 states with counts: the same edges,
    and nearly the same scores.
    """
    values = np.asarray(world[1])[:, :6]
    states, counts = np.unique(values, axis=0, return_counts=True)
    methods = ["linear", "Bethe", "eLasso", "two-stage"]
    rows, counted = (
        ik.compare(values, methods=methods),
        ik.compare(states, methods=methods, counts=counts),
    )
    assert counted.n_samples == 1200
    for one, other in zip(rows.outcomes, counted.outcomes, strict=True):
        assert one.n_edges == other.n_edges
        assert one.held_out == pytest.approx(other.held_out, abs=0.15)


def test_foreign_estimators_may_fail_and_ours_are_left_as_they_were(world):
    from sklearn.linear_model import Ridge

    mine = ik.RidgeIsing()
    found = ik.compare(world[1], methods={"mine": mine, "theirs": Ridge()})
    assert found.outcomes[0].problem is None
    assert found.outcomes[1].problem
    assert not hasattr(mine, "model_")


def test_weights_count_in_a_comparison(world):
    values = np.asarray(world[1])
    methods = {"Bethe": ik.MeanFieldIsing(deflate=False)}
    found = ik.compare(values, methods=methods, sample_weight=np.full(1200, 0.5)).outcomes[0]
    assert found.held_out == pytest.approx(ik.compare(values, methods=methods).outcomes[0].held_out)


def test_outside_methods_get_counts_as_weights(world):
    class Outside:
        def fit(self, X, sample_weight=None):
            self.model_ = ik.LinearIsing().fit(X, counts=sample_weight).model_
            return self

    states, counts = np.unique(np.asarray(world[1])[:, :5], axis=0, return_counts=True)
    methods = {"theirs": Outside(), "ours": ik.LinearIsing()}
    theirs, ours = ik.compare(states, methods=methods, counts=counts).outcomes
    assert theirs.problem is None
    assert (theirs.n_edges, theirs.held_out) == (ours.n_edges, pytest.approx(ours.held_out))
    with pytest.raises(ex.CountsError):
        ik.compare(states, methods=methods, counts=counts / 2 + 0.1)


def test_abess_is_an_outside_method_where_it_is_installed(world):
    pytest.importorskip("abess")
    truth, samples = world
    one = ik.compare(samples, truth, ["abess"]).outcomes[0]
    assert min(one.precision, one.recall) > 0.7


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    return stopped.value.code, *capsys.readouterr()


def test_the_command_prints_a_table_and_draws(world, tmp_path, capsys):
    truth, samples = world
    pd.DataFrame(np.asarray(samples), columns=[f"q{k}" for k in range(16)]).to_csv(
        tmp_path / "data.csv", index=False
    )
    truth.save(tmp_path / "truth.npz")
    arguments = [
        "compare",
        tmp_path / "data.csv",
        "--truth",
        tmp_path / "truth.npz",
        "--methods",
        "ridge, eLasso",
    ]
    code, out, err = run(capsys, *arguments, "--plot", tmp_path / "picture.png")
    assert code == 0
    assert out.startswith("1200 rows of 16 columns")
    assert "best on held-out samples: " in out
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "methods" in err
    facts = json.loads(run(capsys, *arguments, "--json")[1])
    assert [one["method"] for one in facts["methods"]] == ["ridge", "eLasso"]
    assert facts["methods"][1]["recall"] == 1.0
    assert facts["agreement"][0][0] == 1.0


def test_the_command_takes_columns_weights_and_leaves_columns_out(tmp_path, capsys, rng):
    table = pd.DataFrame(rng.integers(0, 2, (60, 4)), columns=["a", "b", "c", "age"])
    table["age"] = rng.integers(20, 90, 60)
    table["times"] = rng.integers(1, 5, 60)
    table.to_csv(tmp_path / "data.tsv.gz", sep="\t", index=False)
    code, out, _ = run(
        capsys,
        "compare",
        tmp_path / "data.tsv.gz",
        "--drop",
        "age",
        "--counts",
        "times",
        "--methods",
        "ridge",
    )
    assert code == 0
    assert out.startswith(f"{table['times'].sum()} rows of 3 columns")
    arguments = ("--drop", "age", "--weights", "times", "--methods", "ridge")
    code, out, _ = run(capsys, "compare", tmp_path / "data.tsv.gz", *arguments)
    assert out.startswith("60 rows of 3 columns")
    code, out, _ = run(
        capsys, "compare", tmp_path / "data.tsv.gz", "--columns", "a,b", "--methods", "ridge"
    )
    assert out.startswith("60 rows of 2 columns")
    for arguments, says in (
        (["--methods", "ridge"], "'age': 20 or more values"),
        (["--columns", "a,nobody"], "there is no column 'nobody'; there are a, b, c, age, times"),
        (["--methods", "magic", "--drop", "age,times"], "methods must be a list of"),
        (["--plot", tmp_path / "picture.doc"], "pictures are .png, .svg or .pdf"),
    ):
        code, out, err = run(capsys, "compare", tmp_path / "data.tsv.gz", *arguments)
        assert (code, out) == (2, "")
        assert says in err


def test_methods_have_different_names_and_are_found_by_them():
    assert len({method.name for method in METHODS}) == len(METHODS)
    for method in METHODS:
        assert method_named(method.name) is method
        assert command_name(method.label) == method.name
    assert method_named("nothing") is None


def test_a_threshold_is_passed_by_the_largest_of_all_absent_couplings_one_time_in_twenty(rng):
    """20000 draws: catches a level of 0.07 or 0.03 instead of 0.05."""
    n_spins, n_samples = 8, 500
    noise = rng.normal(scale=1 / np.sqrt(n_samples - n_spins), size=(20000, 28))
    passes = (np.abs(noise).max(axis=1) > suggested_settings(n_spins, n_samples).threshold).mean()
    assert 0.042 < passes < 0.057


def test_settings_add_to_the_description_of_a_method():
    auto = method_named("auto")
    assert auto.described({"refit": "pseudolikelihood"}) == auto.described({}) == auto.description
    assert auto.described({"refit": "bethe"}).startswith(auto.description + " Values of couplings")
