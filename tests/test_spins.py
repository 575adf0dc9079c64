import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.missing import COMPLETE_ROWS, MissingPolicy
from isingkit.spins import missing_policy

PLUS_MINUS = np.array([[-1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, -1, 1]])
NAMES = ["a", "b", "c"]

CODINGS = {
    "-1/+1": PLUS_MINUS,
    "0/1": (PLUS_MINUS + 1) // 2,
    "1/2": (PLUS_MINUS + 3) // 2,
    "bool": PLUS_MINUS > 0,
    "float": PLUS_MINUS.astype(float),
    "float32": PLUS_MINUS.astype(np.float32),
    "int8": PLUS_MINUS.astype(np.int8),
    "uint8": ((PLUS_MINUS + 1) // 2).astype(np.uint8),
    "no/yes": np.where(PLUS_MINUS > 0, "yes", "no"),
    "Absent/Present": np.where(PLUS_MINUS > 0, "Present", "Absent").astype(object),
    "nay/aye": np.where(PLUS_MINUS > 0, "aye", "nay"),
    "object numbers": ((PLUS_MINUS + 1) // 2).astype(object),
    "lists": PLUS_MINUS.tolist(),
}


@pytest.mark.parametrize("coding", CODINGS)
def test_every_coding_gives_the_same_spins(coding):
    spins = ik.as_spins(CODINGS[coding])
    assert spins.values.dtype == np.int8
    np.testing.assert_array_equal(spins.values, PLUS_MINUS)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(
    "make",
    [
        lambda frame: frame,
        pl.from_pandas,
        lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
        lambda frame: frame.convert_dtypes(),
        lambda frame: frame.astype("category"),
    ],
    ids=["pandas", "polars", "pyarrow", "pandas nullable", "pandas categorical"],
)
def test_every_kind_of_table_gives_the_same_spins_and_names(coding, make):
    spins = ik.as_spins(make(pd.DataFrame(CODINGS[coding], columns=NAMES)))
    np.testing.assert_array_equal(spins.values, PLUS_MINUS)
    assert spins.names == tuple(NAMES)


@pytest.mark.parametrize(
    "make", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array]
)
def test_sparse_zeros_and_ones_are_read(make):
    np.testing.assert_array_equal(ik.as_spins(make(CODINGS["0/1"])).values, PLUS_MINUS)


def test_memory_mapped_input_is_read(tmp_path):
    np.save(tmp_path / "x.npy", CODINGS["float"])
    np.testing.assert_array_equal(
        ik.as_spins(np.load(tmp_path / "x.npy", mmap_mode="r")).values, PLUS_MINUS
    )


def test_masked_texts_are_missing():
    table = np.ma.array(
        [["no", "yes"], ["yes", "yes"], ["no", "no"]], mask=[[1, 0], [0, 0], [0, 0]]
    )
    spins = ik.as_spins(table, missing="pairwise")
    assert spins.values.tolist() == [[0, 1], [1, 1], [-1, -1]]


def test_the_mapping_that_was_used_is_reported():
    frame = pd.DataFrame(
        {"smokes": ["no", "yes", "no"], "sex": ["m", "f", "f"], "ill": [0, 1, 1], "item": [1, 2, 2]}
    )
    assert ik.as_spins(frame).mapping == (("no", "yes"), ("f", "m"), (0, 1), (1, 2))


def test_a_given_mapping_is_followed_and_values_outside_it_are_refused():
    np.testing.assert_array_equal(
        ik.as_spins([["x", "y"], ["y", "y"]], mapping=[("y", "x"), ("x", "y")]).values,
        [[1, 1], [-1, 1]],
    )
    with pytest.raises(ex.SpinValueError, match=r"holds 2, but 0 or 1 was expected") as caught:
        ik.as_spins([[1, 2], [1, 1]], mapping=[(0, 1), (0, 1)])
    assert caught.value.column == "x1"
    with pytest.raises(ex.SettingError, match="2 pairs of values"):
        ik.as_spins([[0, 1], [1, 0]], mapping=[(0, 1)])


def test_a_constant_column_follows_the_coding_of_the_others_and_is_named_in_a_warning():
    with pytest.warns(ex.ConstantColumnWarning, match="'x1'") as caught:
        spins = ik.as_spins([[1, 1], [2, 1], [1, 1]])
    assert caught[0].message.columns == ("x1",)
    np.testing.assert_array_equal(spins.values[:, 1], [-1, -1, -1])
    with pytest.warns(ex.ConstantColumnWarning):
        np.testing.assert_array_equal(ik.as_spins([[0, 1], [1, 1]]).values[:, 1], [1, 1])
    with pytest.warns(ex.ConstantColumnWarning):
        np.testing.assert_array_equal(ik.as_spins([[0, 7], [1, 7]]).values[:, 1], [1, 1])
    with pytest.warns(ex.ConstantColumnWarning):
        np.testing.assert_array_equal(
            ik.as_spins([["no", "no"], ["yes", "no"]]).values[:, 1], [-1, -1]
        )


def test_binarize_turns_real_values_into_spins():
    np.testing.assert_array_equal(
        ik.as_spins([[0.3, 2.0], [7.0, 0.5]], binarize=0.5).values, [[-1, 1], [1, -1]]
    )
    with pytest.warns(ex.ConstantColumnWarning, match="x1"):
        ik.as_spins([[0.3, -2.0], [7.0, 0.0]], binarize=0.5)


@pytest.mark.parametrize(
    ("table", "error", "says"),
    [
        (
            [[0, 0], [1, 1], [2, 0]],
            ex.SpinValueError,
            r"'x0' holds 3 values \(0, 1, 2\).*X\['x0'\] >= 1",
        ),
        ([[0.0, 0], [0.5, 1], [1, 0]], ex.SpinValueError, "0, 0.5, 1"),
        ([[3, 0], [7, 1]], ex.SpinValueError, r"3, 7.*binarize=threshold"),
        (
            [["a", "x"], ["b", "y"], ["c", "x"]],
            ex.SpinValueError,
            r"Leave it out if it is no yes-or-no variable.*X\['x0'\] == 'a'",
        ),
        ([[0, np.inf], [1, 1]], ex.InfiniteValueError, "'x1'"),
        ([[0, -np.inf], [1, 1]], ex.InfiniteValueError, "'x1'"),
        (
            [[0, np.nan], [1, 1]],
            ex.MissingValuesError,
            r"'x1': 1.*missing='drop'.*missing='pairwise'",
        ),
        ([["no", None], ["yes", "no"]], ex.MissingValuesError, "'x1': 1"),
        (
            [["y", "a"], ["Y ", "b"], ["n", "a"]],
            ex.SpinValueError,
            "differ only in case or spaces",
        ),
        ("survey.csv", ex.NotATableError, "got a str: read the file first"),
        ({"a": [0, 1]}, ex.NotATableError, "pandas.DataFrame"),
        (None, ex.NotATableError, "NoneType"),
        (np.empty((0, 3)), ex.EmptyTableError, r"0 sample\(s\)"),
        (np.empty((3, 0)), ex.EmptyTableError, r"0 feature\(s\)"),
        (pd.DataFrame(), ex.EmptyTableError, "minimum of 1"),
        ([0, 1, 1], ex.TableShapeError, "Reshape your data"),
        ([[0, 1], [1]], ex.NotATableError, "rows of different lengths: give every row a value"),
        (np.zeros((2, 2, 2)), ex.TableShapeError, "3D"),
        (np.array([[1j, 0], [0, 1j]]), ex.ColumnTypeError, "Complex data not supported"),
        (
            np.array([[0, "no"], [1, 1]], dtype=object),
            ex.ColumnTypeError,
            "int and values of type str",
        ),
        (np.array([[{}, 0], [{}, 1]], dtype=object), ex.ColumnTypeError, "dict"),
        (
            pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"])}),
            ex.ColumnTypeError,
            "'day'.*datetime",
        ),
        (pd.DataFrame([[0, 1], [1, 0]], columns=["q", "q"]), ex.ColumnNamesError, "'q' repeated"),
    ],
)  # fmt: skip
def test_bad_input_gets_its_own_error_that_says_what_to_do(table, error, says):
    with pytest.raises(error, match=says) as caught:
        ik.as_spins(table)
    assert isinstance(caught.value, ValueError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert vars(copy).keys() == vars(caught.value).keys()


def test_the_advice_for_three_values_works():
    frame = pd.DataFrame({"q17": [0, 1, 2, 0], "q18": [0, 1, 0, 1]})
    with pytest.raises(ex.SpinValueError) as caught:
        ik.as_spins(frame)
    assert caught.value.column == "q17"
    assert caught.value.values == (0, 1, 2)
    frame["q17"] = frame["q17"] >= 1
    ik.as_spins(frame)


def test_all_columns_that_are_wrong_are_named_at_once():
    texts = {"one": ["no", "yes", "no"], "three": ["a", "b", "c"], "more": ["d", "e", "f"]}
    table = pd.DataFrame(texts | {"gaps": [0, 1, None], "nothing": [None, None, None]})
    with pytest.raises(ex.NoValuesError, match=r"'nothing'.*Besides, 'three', 'more' hold"):
        ik.as_spins(table)
    table = table.drop(columns="nothing")
    with pytest.raises(ex.MissingValuesError, match=r"'gaps': 1.*Besides, 'three', 'more' hold"):
        ik.as_spins(table)
    table = table.drop(columns="gaps")
    with pytest.raises(ex.SpinValueError, match=r"column 'three'.*1 more such column: 'more'"):
        ik.as_spins(table)
    with pytest.raises(ex.MissingValuesError) as caught:  # a threshold settles numbers
        ik.as_spins([[0, np.nan], [1, 0], [2, 1]], binarize=0.5)
    assert "Besides" not in str(caught.value)


def test_missing_values_are_counted_by_column_dropped_or_marked():
    table = np.array([[0, 1, np.nan], [1, 0, 1], [0, np.nan, np.nan], [0, 1, 0]])
    with pytest.raises(ex.MissingValuesError) as caught:
        ik.as_spins(table)
    assert caught.value.counts == {"x1": 1, "x2": 2}
    dropped = ik.as_spins(table, missing="drop")
    np.testing.assert_array_equal(dropped.rows, [False, True, False, True])
    assert not dropped.has_missing
    marked = ik.as_spins(table, missing="pairwise")
    np.testing.assert_array_equal(marked.values == 0, np.isnan(table))
    assert marked.has_missing


@pytest.mark.parametrize(
    "make",
    [
        pl.from_pandas,
        lambda frame: pa.Table.from_pandas(frame),
        lambda frame: frame.convert_dtypes(),
    ],
)
def test_missing_values_of_every_kind_of_table_are_seen(make):
    frame = pd.DataFrame(
        {"n": [0.0, 1, np.nan, 1], "t": ["no", None, "yes", "no"], "b": [True, False, None, True]}
    )
    expected = [[-1, -1, 1], [1, 0, -1], [0, 1, 0], [1, -1, 1]]
    np.testing.assert_array_equal(ik.as_spins(make(frame), missing="pairwise").values, expected)


def test_texts_that_mean_missing_are_missing():
    table = pd.DataFrame(
        {"a": ["no", "", "yes", "NA"], "b": ["yes", "no", "no", "no"]}, dtype=object
    )
    np.testing.assert_array_equal(
        ik.as_spins(table, missing="pairwise").values, [[-1, 1], [0, -1], [1, -1], [0, -1]]
    )


def test_missing_values_of_arrow_dictionaries_and_batches_and_masked_arrays_are_seen():
    column = pa.array(["no", "yes", None, "no"])
    for table in (
        pa.table({"a": column.dictionary_encode(), "b": pa.array([True, None, False, True])}),
        pa.RecordBatch.from_pydict({"a": column, "b": pa.array([True, None, False, True])}),
    ):
        np.testing.assert_array_equal(
            ik.as_spins(table, missing="pairwise").values, [[-1, 1], [1, 0], [0, -1], [-1, 1]]
        )
    masked = np.ma.array([[0, 1], [1, 0], [0, 1]], mask=[[1, 0], [0, 0], [0, 0]])
    np.testing.assert_array_equal(
        ik.as_spins(masked, missing="pairwise").values, [[0, 1], [1, -1], [-1, 1]]
    )


def test_numbers_that_a_mapping_of_texts_does_not_know_are_refused():
    with pytest.raises(ex.SpinValueError, match="no or yes was expected"):
        ik.as_spins([[0, 1]], mapping=[("no", "yes")] * 2)
    with pytest.raises(ex.SpinValueError, match="0.5 or 1 was expected"):
        ik.as_spins(np.array([[0, 1]]), mapping=[(0.5, 1)] * 2)
    with pytest.raises(ex.SpinValueError, match="-1 or 1 was expected"):
        ik.as_spins(np.array([[0, 5], [7, -1]], np.int8), mapping=[(-1, 1)] * 2)


def test_a_text_never_seen_is_learnt_from_the_next_table():
    with pytest.warns(ex.ConstantColumnWarning):
        first = ik.as_spins([["smoker", "a"], ["smoker", "b"]])
    np.testing.assert_array_equal(
        ik.as_spins([["nonsmoker", "a"]], mapping=first.mapping).values, [[-1, -1]]
    )


def test_thresholds_by_column_leave_the_other_columns_as_they_are():
    table = [[1, 5, 0], [3, 2, 1], [4, 1, 1]]
    named = pd.DataFrame(table, columns=["a", "b", "c"]).assign(d=[1, 2, 1], e=["no", "yes", "no"])
    spins = ik.as_spins(named, binarize={"a": 3, "b": 1.5})
    assert spins.mapping == (("<= 3", "> 3"), ("<= 1.5", "> 1.5"), (0, 1), (1, 2), ("no", "yes"))
    expected = [[-1, 1, -1, -1, -1], [-1, 1, 1, 1, 1], [1, -1, 1, -1, -1]]
    np.testing.assert_array_equal(spins.values, expected)
    array = np.array(table)  # one block of numbers
    cut = ik.as_spins(array, binarize={"x0": 3, "x1": 1.5})
    np.testing.assert_array_equal(cut.values, np.array(expected)[:, :3])
    with pytest.raises(ex.SpinValueError, match="'x1'"):
        ik.as_spins(array, binarize={"x0": 3})
    with pytest.raises(ex.SettingError, match="thresholds of columns that are there .*x0"):
        ik.as_spins(array, binarize={"a": 3})
    with pytest.raises(ex.SettingError, match="binarize must be a finite number"):
        ik.as_spins(array, binarize={"x0": np.nan})
    assert ik.RidgeIsing(binarize={"x0": 3, "x1": 1}).fit(array).mapping_[1] == ("<= 1", "> 1")


def test_texts_stay_texts_when_numbers_are_binarized():
    frame = pd.DataFrame({"t": ["a", "a", "a"], "x": [0.3, 0.7, np.nan]})
    with pytest.warns(ex.ConstantColumnWarning, match="'t'"):
        np.testing.assert_array_equal(
            ik.as_spins(frame, binarize=0.5, missing="pairwise").values, [[1, -1], [1, 1], [1, 0]]
        )
    with pytest.raises(ex.SpinValueError, match="3 values"):
        ik.as_spins(pd.DataFrame({"t": ["a", "b", "c"], "x": [0.3, 0.7, 0.1]}), binarize=0.5)
    with pytest.raises(ex.SettingError, match="binarize must be a finite number"):
        ik.as_spins([[0.3, 1.0]], binarize="x")


def test_warnings_point_at_the_caller_and_cross_process_borders():
    with pytest.warns(ex.ConstantColumnWarning) as caught:
        ik.RidgeIsing().fit([[0, 1, 0], [1, 1, 1], [1, 1, 0]])
    assert caught[0].filename == __file__
    assert pickle.loads(pickle.dumps(caught[0].message)).columns == ("x1",)


def test_nothing_left_after_dropping_says_so():
    with pytest.raises(ex.EmptyTableError, match="removed all 2 rows"):
        ik.as_spins([[0, np.nan], [np.nan, 1]], missing="drop")


def test_a_column_without_any_value_is_refused():
    with pytest.raises(ex.NoValuesError, match="'x1'"):
        ik.as_spins([[0, np.nan], [1, np.nan]], missing="pairwise")


def test_an_unknown_way_with_missing_values_is_refused():
    with pytest.raises(ex.SettingError, match="'error', 'drop', 'pairwise' or 'impute'"):
        ik.as_spins([[0, 1]], missing="ignore")


def test_int8_spins_are_not_copied():
    values = PLUS_MINUS.astype(np.int8)
    assert ik.as_spins(values).values is values
    assert repr(ik.as_spins(values)) == "Spins(4 samples of 3 spins)"


def test_large_tables_are_read_in_chunks_with_the_same_result(monkeypatch, rng):
    import isingkit.spins as module

    table = rng.choice([0.0, 1.0, np.nan], (50, 7), p=[0.4, 0.4, 0.2])
    whole = ik.as_spins(table, missing="pairwise")
    monkeypatch.setattr(module, "_CHUNK", 21)
    np.testing.assert_array_equal(ik.as_spins(table, missing="pairwise").values, whole.values)
    table[40, 3] = 5
    with pytest.raises(ex.SpinValueError, match="'x3'"):
        ik.as_spins(table, missing="pairwise")


def test_clean_input_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ik.as_spins(PLUS_MINUS)


@pytest.mark.parametrize(
    "values",
    [
        (-1, 1),
        (0, 1),
        (1, 2),
        (-1, 0, 1),
        (0, 1, 2),
        (3, 7),
        (-128, 127),
        (7,),
        (1,),
        (0,),
        (-1,),
        (2,),
        (-1, 0),
    ],
)
def test_the_quick_look_at_int8_tells_what_the_long_one_does(values, rng):
    """Columns of small integers as int8, by a kernel, and as int64, by numpy: the same spins or the
    same error.
    """
    table = np.c_[rng.choice([0, 1], 40), rng.choice(values, 40)]

    def outcome(table):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                spins = ik.as_spins(table)
            except ValueError as error:
                return str(error)
        return spins.values.tolist(), spins.mapping, [str(warning.message) for warning in caught]

    assert outcome(table.astype(np.int8)) == outcome(table)


def test_missing_policies_are_the_strings_of_the_public_api():
    assert list(MissingPolicy) == ["error", "drop", "pairwise", "impute"]
    assert missing_policy("drop") is MissingPolicy.DROP
    with pytest.raises(ex.SettingError, match="'drop', 'pairwise' or 'impute', but got 'x'"):
        missing_policy("x")
    with pytest.raises(ex.SettingError, match="'error' or 'drop': whole rows are needed, but got"):
        missing_policy("pairwise", COMPLETE_ROWS, "whole rows are needed")


def test_the_error_of_missing_values_offers_only_what_a_method_takes():
    with pytest.raises(ex.MissingValuesError) as caught:
        ik.as_spins([[0, np.nan], [1, 1]])
    assert "missing='pairwise' to use for each pair" in str(caught.value)
    narrowed = caught.value.offering(COMPLETE_ROWS)
    assert str(narrowed).endswith("missing='drop' to use complete rows only (keeps 1 of 2 rows).")
    assert narrowed.counts == {"x1": 1}
    with pytest.raises(ex.MissingValuesError, match="'drop'"):  # and its advice works
        ik.as_spins([[0, np.nan], [1, 1]], missing="error")
    assert ik.as_spins([[0, np.nan], [1, 1], [0, 0]], missing="drop").n_samples == 2


def test_texts_that_differ_in_case_alone_are_one_value_but_single_letters_are_not():
    frame = pd.DataFrame({"q": ["Yes", "no ", "NO", "yes", "No"], "allele": list("AaAaa")})
    spins = ik.as_spins(frame)
    assert spins.mapping == (("NO", "Yes"), ("A", "a"))
    np.testing.assert_array_equal(spins.values[:, 0], [1, -1, -1, 1, -1])
    np.testing.assert_array_equal(spins.values[:, 1], [-1, 1, -1, 1, 1])
    later = ik.as_spins(
        pd.DataFrame({"q": ["YES", "nO"], "allele": ["a", "A"]}), mapping=spins.mapping
    )
    np.testing.assert_array_equal(later.values, [[1, 1], [-1, -1]])
    with pytest.raises(ex.SpinValueError, match="'aa'"):
        ik.as_spins(pd.DataFrame({"gene": ["AA", "Aa", "aa"]}), mapping=[("AA", "Aa")])


@pytest.mark.parametrize("mapping", [3, "ab", [1, 2], [(0, 1)], [(0, 1), (0, 1, 2)], object()])
def test_a_mapping_that_is_none_is_refused(mapping):
    with pytest.raises(ex.SettingError, match="mapping must be 2 pairs of values"):
        ik.as_spins([[0, 1], [1, 0]], mapping=mapping)
