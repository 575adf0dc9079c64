"""Tables of results: structured arrays that print well and become data frames."""

import pickle
import re
import sys

import numpy as np
import pandas
import pytest

import isingkit as ik
from isingkit.result_table import ResultTable, as_table


@pytest.fixture(scope="module")
def fit():
    truth = ik.random_regular(n_spins=12, degree=3, coupling=0.5, random_state=0)
    return ik.AutoIsing().fit(ik.sample(truth, n_samples=400, random_state=1))


def test_edges_have_their_intervals_and_turn_into_data_frames(fit):
    names = ["source", "target", "coupling", "low", "high", "std_error", "z", "p_value", "q_value"]
    table = fit.edges_.to_pandas()
    assert list(table) == list(fit.edges_.dtype.names) == names
    assert type(table["source"].iloc[0]) is str
    np.testing.assert_array_equal(table[["low", "high"]].to_numpy(), fit.intervals_)
    assert (table["low"] <= table["coupling"]).all()
    polars = pytest.importorskip("polars")
    assert fit.edges_.to_polars().equals(polars.from_pandas(table))


def test_other_libraries_take_tables_by_arrow(fit):
    pyarrow = pytest.importorskip("pyarrow")
    edges = fit.edges_.sorted_by("z")[::2]  # not in one piece
    taken = pyarrow.table(edges).to_pandas()
    pandas.testing.assert_frame_equal(taken, edges.to_pandas())
    assert len(pyarrow.table(edges[:0])) == 0
    older = edges.__dataframe__()
    assert list(older.column_names()) == list(taken)
    assert older.num_rows() == len(edges)


def test_results_cannot_be_changed_and_copies_can(fit):
    """Seen to fail: a column was sorted by itself, and its names stayed."""
    with pytest.raises(ValueError, match="read-only"):
        fit.edges_["coupling"].sort()
    with pytest.raises(ValueError, match="read-only"):
        fit.edges_.sort(order="z")
    mine = fit.edges_.copy()
    mine["coupling"] = 0
    assert (fit.edges_["coupling"] != 0).all()


def test_what_data_frames_have_leads_to_what_tables_have(fit):
    for name, words in [("head", "[:5]"), ("sort_values", "sorted_by"), ("loc", "to_pandas()")]:
        with pytest.raises(AttributeError, match=re.escape(words)):
            getattr(fit.edges_, name)


def test_a_table_is_still_an_array(fit):
    edges = fit.edges_
    assert type(edges["z"]) is np.ndarray
    assert type(edges[:3]) is type(edges[["source", "z"]]) is ResultTable
    assert edges[0]["coupling"] == edges["coupling"][0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(edges)), edges)
    weakest = edges.sorted_by("coupling", descending=True)
    np.testing.assert_array_equal(weakest["coupling"], np.sort(edges["coupling"])[::-1])


def test_tables_print_in_columns_and_show_as_html_with_names_escaped():
    table = as_table({"name": ["<b>", "long name"], "z": [1.23456, -2.0], "p_value": [1e-9, 0.5]})
    assert str(table) == repr(table)
    assert str(table).splitlines() == [
        "name           z  p_value",
        "<b>        1.235    1e-09",
        "long name     -2      0.5",
    ]
    assert "<td>&lt;b&gt;</td>" in table._repr_html_()
    many = as_table({"n": np.arange(100)})
    assert str(many).split() == [
        "n",
        *map(str, range(10)),
        "...",
        *map(str, range(90, 100)),
        "(100",
        "rows)",
    ]


def test_a_package_that_is_not_there_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="install it with 'pip install pandas'"):
        as_table({"n": [1]}).to_pandas()


def test_empty_tables_keep_their_types_and_unknown_values_come_last():
    """Seen to fail: columns without a type, and NaN before the largest."""
    polars = pytest.importorskip("polars")
    empty = as_table({"name": np.empty(0, "<U3"), "z": np.empty(0)}).to_polars()
    assert list(empty.schema.values()) == [polars.String, polars.Float64]
    table = as_table({"name": ["a", "b", "c", "d"], "z": [1.0, np.nan, 2.0, 2.0]})
    assert table.sorted_by("z", descending=True)["name"].tolist() == ["c", "d", "a", "b"]
    assert table.sorted_by("name", descending=True)["name"].tolist() == ["d", "c", "b", "a"]
    assert "<pre>" in (table == table[0])._repr_html_()


def test_every_result_says_in_words_what_was_found_and_shows_it_in_a_notebook():
    """Seen to fail: a comparison at a prompt was its arrays."""
    truth = ik.random_tree(n_spins=5, coupling=0.6, random_state=0)
    rows = np.asarray(ik.sample(truth, n_samples=300, random_state=1))
    table = pandas.DataFrame(rows, columns=["a", "b", "<c>", "d", "e"])
    fit = ik.AutoIsing().fit(table)
    elasso = ik.ELassoIsing()
    results = {
        "random halves": ik.AutoIsing().stability(table, n_resamples=4),
        "networks": ik.bootstrap(elasso, table, n_resamples=4),
        "CS-coefficients": ik.case_dropping(elasso, table, n_resamples=4),
        "modularity": ik.communities(fit.model_),
        "held-out score": ik.compare(table, methods=["ridge"]),
        "permutations": ik.compare_groups(table, np.arange(300) % 2, permutations=20),
        "accuracy": ik.landscape(fit.model_, table, n_resamples=4),
        "differ from the data by": ik.fit_check(fit.model_, table),
    }
    for words, result in results.items():
        assert words in repr(result)[:400]
        assert "array(" not in repr(result)
        page = result._repr_html_()
        assert words in page
        assert "<c>" not in page
    pair = ik.IsingModel([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]], names=["a", "b", "c"])
    assert str(ik.communities(pair)).splitlines()[1:] == ["community 1: a, b", "in none: c"]


def test_names_with_ends_of_lines_stay_on_one_line():
    names = ["a\nb", "tab\there", "sm\u00f8r\u00a0\u200dbr\u00f8d", "plain", "line\u2028end"]
    table = as_table({"name": np.array(names), "value": np.arange(5.0)})
    lines = str(table).splitlines()
    assert len(lines) == 6
    assert len({len(line) for line in lines}) == 1
    assert [line.split("  ")[0].strip() for line in lines[1:]] == [
        r"a\nb",
        r"tab\there",
        "sm\u00f8r\u00a0\u200dbr\u00f8d",
        "plain",
        r"line\u2028end",
    ]


def test_summaries_hold_names_with_ends_of_lines(rng):
    names = ["a\nb", "c\td", "e"]
    rows = rng.choice([-1, 1], (200, 3))
    rows[:150, 1] = rows[:150, 0]
    table = pandas.DataFrame(rows, columns=names)
    model = ik.IsingModel([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]], names=names)
    for said in (
        str(ik.landscape(model)),
        str(ik.compare_groups(table, ["x\ny", "z"] * 100, permutations=9)),
    ):
        assert r"a\nb" in said
        assert "\t" not in said
    assert r"x\ny (100 rows)" in said
