"""Columns that are equal, opposite or nearly so become one spin."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

import isingkit as ik
from isingkit.alike import alike_columns
from isingkit.cli import main
from isingkit.exceptions import DuplicateColumnsError, ModelError, ModelMismatchError, SettingError
from isingkit.spins import row_weights

METHODS = [
    ik.AutoIsing,
    ik.ELassoIsing,
    ik.InteractionScreeningIsing,
    ik.LassoIsing,
    ik.LinearIsing,
    ik.MaximumLikelihoodIsing,
    ik.MeanFieldIsing,
    ik.PseudolikelihoodIsing,
    ik.RidgeIsing,
    ik.TwoStageIsing,
]


@pytest.fixture(scope="module")
def six():
    """(300, 6) of 0 and 1: a chain."""
    chain = np.diag(np.full(5, 0.4), 1)
    model = ik.IsingModel(chain + chain.T)
    return (np.asarray(ik.sample(model, n_samples=300, random_state=1)) + 1) // 2


def with_copies(table):
    """Columns 6 and 7 are equal to columns 0 and 2, 8 is opposite to 0."""
    return np.column_stack([table, table[:, [0, 2]], 1 - table[:, 0]])


def rows_in(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main(list(map(str, arguments)))
    return stopped.value.code, *capsys.readouterr()


def names_of(alike):
    return [(str(row["column"]), str(row["variable"]), row["correlation"]) for row in alike]


def test_equal_and_opposite_columns_are_named(six):
    found = alike_columns(ik.pack(with_copies(six)), 1.0)
    assert names_of(found.table()) == [("x6", "x0", 1), ("x7", "x2", 1), ("x8", "x0", -1)]
    assert found.members() == {"x0": "x6; not x8", "x2": "x7"}


def test_a_table_without_equal_columns_has_none(six):
    assert alike_columns(ik.pack(six), 1.0) is None


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ConstantColumnWarning")
def test_constant_columns_stay_alone(six):
    table = six.copy()
    table[:, [1, 3]] = 0
    table[:, 4] = 1
    assert alike_columns(ik.pack(ik.as_spins(table)), 1.0) is None


def test_columns_are_the_same_only_where_the_same_cells_are_missing(six):
    table = with_copies(six).astype(float)
    table[5, [0, 6]] = np.nan
    table[9, 7] = np.nan
    found = alike_columns(ik.pack(ik.as_spins(table, missing="pairwise")), 1.0)
    assert names_of(found.table()) == [("x6", "x0", 1)]


def test_rows_of_no_weight_do_not_count(six):
    table = with_copies(six)
    table[7, 6] = 1 - table[7, 6]
    weights = np.ones(300)
    weights[7] = 0
    packed = ik.pack(table)
    counted = row_weights(weights, None, 300)
    assert "x6" in alike_columns(packed, 1.0, counted).table()["column"]
    assert "x6" not in alike_columns(packed, 1.0).table()["column"]


@pytest.mark.parametrize("block", [2, 3, 2048])
def test_nearly_equal_columns_join_the_first_that_leads(six, block, monkeypatch):
    """Against all correlations at once, one column after the other."""
    monkeypatch.setattr("isingkit.alike._BLOCK", block)
    rng = np.random.default_rng(0)
    copies = [np.where(rng.random(300) < noise, 1 - six[:, 0], six[:, 0]) for noise in (0.02, 0.04)]
    table = np.column_stack([six, *copies, 1 - copies[0], six[:, 3]])
    correlations = np.corrcoef(table.T)
    leaders, expected = [], []
    for j in range(table.shape[1]):
        near = [i for i in leaders if abs(correlations[i, j]) >= 0.9]
        if near:
            expected.append((f"x{j}", f"x{near[0]}", correlations[near[0], j]))
        else:
            leaders.append(j)
    found = names_of(alike_columns(ik.pack(table), 0.9).table())
    assert len(expected) == 4
    assert [one[:2] for one in found] == [one[:2] for one in expected]
    np.testing.assert_allclose([one[2] for one in found], [one[2] for one in expected])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_from_merged_columns_what_it_learns_without_copies(method, six):
    fit = method(merge_alike=True).fit(with_copies(six))
    plain = method().fit(six)
    assert fit.n_features_in_ == 9
    assert fit.model_.names == plain.model_.names
    np.testing.assert_array_equal(fit.model_.couplings.toarray(), plain.model_.couplings.toarray())
    assert len(fit.alike_) == 3
    assert len(plain.alike_) == 0
    assert fit.score(with_copies(six)) == plain.score(six)
    assert len(fit.mapping_) == 9


def test_packed_samples_are_scored_by_all_columns(six):
    fit = ik.RidgeIsing(merge_alike=True).fit(ik.pack(with_copies(six)))
    assert np.isfinite(fit.score(ik.pack(with_copies(six))))
    with pytest.raises(ModelMismatchError, match="the fit and the samples"):
        fit.score(ik.pack(six))


def test_merging_is_on_beyond_1000_columns_and_off_below(six):
    rng = np.random.default_rng(2)
    wide = rng.integers(0, 2, (60, 1001))
    wide[:, 1000] = 1 - wide[:, 3]
    assert names_of(ik.RidgeIsing().fit(wide).alike_) == [("x1000", "x3", -1)]
    assert len(ik.RidgeIsing().fit(wide[:, 1:]).alike_) == 0
    assert len(ik.RidgeIsing(merge_alike=False).fit(wide).alike_) == 0


def test_where_merging_is_off_the_message_says_how(six):
    with pytest.raises(DuplicateColumnsError, match="merge_alike=True, or --merge-alike"):
        ik.LinearIsing().fit(with_copies(six))


@pytest.mark.parametrize("wrong", [0, 1.5, -1, "yes", None])
def test_what_merging_cannot_be_is_refused(wrong, six):
    with pytest.raises(SettingError, match=r"True, False, 'auto' or a correlation"):
        ik.RidgeIsing(merge_alike=wrong).fit(six)


def test_pair_sums_alone_cannot_be_merged(six):
    with pytest.raises(SettingError, match="only fit, which sees rows"):
        ik.RidgeIsing(merge_alike=True).partial_fit(six)
    with pytest.raises(SettingError, match="only fit, which sees rows"):
        ik.RidgeIsing(merge_alike=0.9).fit_gram(ik.gram(six))


def test_a_model_keeps_its_members_in_files_and_graphs(six, tmp_path):
    model = ik.TwoStageIsing(merge_alike=True, threshold=0.1).fit(with_copies(six)).model_
    model.save(tmp_path / "model.npz")
    back = ik.IsingModel.load(tmp_path / "model.npz")
    assert back.alike.members() == model.alike.members()
    graph = model.to_networkx()
    assert graph.nodes["x0"]["alike"] == "x6; not x8"
    assert graph.nodes["x1"]["alike"] == ""
    model.to_csv(tmp_path / "edges.csv")
    rows = rows_in(tmp_path / "edges.csv")
    of_first = next(row for row in rows if row["source"] == "x0")
    assert of_first["source_alike"] == "x6; not x8"
    with pytest.raises(ModelError, match="merged columns"):
        replace(model, names=tuple("abcdef"))


def test_a_model_of_merged_columns_is_checked_against_all_columns(six):
    table = with_copies(six)
    model = ik.RidgeIsing(merge_alike=True).fit(table).model_
    whole = ik.fit_check(model, table)
    alone = ik.fit_check(model, six)
    np.testing.assert_array_equal(whole.data_means, alone.data_means)
    # by name, in whatever order
    shuffled = ik.fit_check(model, ik.pack(table)[:, [8, 2, 1, 0, 3, 4, 5, 6, 7]])
    np.testing.assert_array_equal(shuffled.data_means, alone.data_means)


def test_the_command_names_members_everywhere(six, tmp_path, capsys):
    table = with_copies(six)
    data = tmp_path / "table.csv"
    header = ",".join(f"gene{j}" for j in range(9))
    np.savetxt(data, table, fmt="%d", delimiter=",", header=header, comments="")
    folder = tmp_path / "fit"
    code, told, errors = run(capsys, "fit", data, "-o", folder, "--merge-alike")
    assert code == 0, errors
    assert "columns alike: 3 of 9 became one with another; see alike.csv" in told
    assert "300 rows of 9 columns" in told
    facts = json.loads((folder / "fit.json").read_text())
    assert facts["n_merged"] == 3
    assert len(facts["mapping"]) == 9
    assert rows_in(folder / "alike.csv")[0] == {
        "column": "gene6",
        "variable": "gene0",
        "correlation": "1.0",
    }
    assert {"source_alike", "target_alike"} <= set(rows_in(folder / "edges.csv")[0])
    page = (folder / "report.html").read_text()
    assert "gene6; not gene8" in page
    assert 'id="alike-part"' in page
    # a fit without merged columns takes its place, and none of its files stays
    code, _, errors = run(capsys, "fit", data, "-o", folder, "--merge-alike", "no", "--force")
    assert code == 0, errors
    assert not (folder / "alike.csv").exists()


def test_the_command_merges_by_correlation(six, tmp_path, capsys):
    table = with_copies(six)
    table[:3, 6] = 1 - table[:3, 6]
    data = tmp_path / "table.csv"
    np.savetxt(data, table, fmt="%d", delimiter=",", header="a,b,c,d,e,f,g,h,i", comments="")
    folder = tmp_path / "fit"
    code, _, errors = run(
        capsys, "fit", data, "-o", folder, "--merge-alike", "0.95", "--method", "ridge"
    )
    assert code == 0, errors
    assert {row["column"] for row in rows_in(folder / "alike.csv")} == {"g", "h", "i"}
    code, _, errors = run(capsys, "fit", "--merge-alike", data)
    assert code == 2
    assert "wants yes, no or a correlation such as 0.98" in errors
