"""Files as spins: whatever the chunks, what is read is what the csv module and as_spins make of the
same bytes.
"""

import csv
import gzip
import io
import itertools
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from tqdm import tqdm

import isingkit as ik
from isingkit import exceptions as ex
from isingkit._kernels import tables as kernels
from isingkit.formats import LISTED, NAMES, STANDARD_INPUT, SUFFIXES, bare_name, format_of
from isingkit.tables import READERS, layout, listed, read_spins, thresholds_as_text, thresholds_in

MISSING = {"", "na", "#n/a", "<na>", "n/a", "nan", "-nan", "+nan", "null", "none"}


def number(text):
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def frame_of(rows):
    """A pandas table of rows of texts, columns of numbers where all are."""
    columns = {}
    for name, texts in zip(rows[0], zip(*rows[1:], strict=True), strict=True):
        numbers = [np.nan if text.strip().casefold() in MISSING else number(text) for text in texts]
        is_text = any(one is None for one in numbers)
        columns[name] = (
            np.array([text.strip() for text in texts], dtype=object)
            if is_text
            else np.array(numbers)
        )
    return pd.DataFrame(columns)


def slow(data, columns=(), drop=(), weights=None, binarize=None, missing="error", separator=","):
    """What a text with names above its columns holds, by the csv module, pandas and as_spins."""
    rows = [
        row
        for row in csv.reader(
            io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=separator
        )
        if row
    ]
    frame = frame_of(rows)
    chosen = [name for name in columns or frame.columns if name not in (*drop, weights)]
    spins = ik.as_spins(frame[chosen], binarize=binarize, missing=missing)
    kept = slice(None) if spins.rows is None else spins.rows
    return ik.pack(spins), None if weights is None else frame[weights].to_numpy()[kept]


def outcome(work):
    """What came out, or the error's kind and words, and the warnings on the way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = work()
        except ex.IsingkitError as error:
            found = error
    return found, sorted(str(one.message) for one in caught)


def assert_same(ours, theirs, binarize=None):
    (found, said), (expected, should_say) = ours, theirs
    if isinstance(expected, ex.SpinValueError) and (
        len(expected.values) == 20 or binarize is not None
    ):
        # which of many values are shown is left open, and numbers that met a threshold are not
        # remembered
        assert (type(found), found.column, found.others) == (
            ex.SpinValueError,
            expected.column,
            expected.others,
        )
        return
    if isinstance(
        expected, ex.InfiniteValueError
    ):  # we name all columns, unless they are no spins anyway
        is_named = isinstance(found, ex.InfiniteValueError) and set(found.columns) >= set(
            expected.columns
        )
        assert is_named or isinstance(found, ex.SpinValueError | ex.MissingValuesError)
        return
    if isinstance(expected, Exception):
        assert (type(found), str(found)) == (type(expected), str(expected))
        return
    assert not isinstance(found, Exception), found
    packed, weights = found.packed, found.weights
    np.testing.assert_array_equal(packed.words, expected[0].words)
    assert (packed.present is None) == (expected[0].present is None)
    if packed.present is not None:
        np.testing.assert_array_equal(packed.present, expected[0].present)
    assert (packed.names, packed.n_samples, packed.mapping) == (
        expected[0].names,
        expected[0].n_samples,
        expected[0].mapping,
    )
    if expected[1] is None:
        assert weights is None
    else:
        np.testing.assert_array_equal(weights, expected[1])
    assert said == should_say


# Random tables in all dresses

PAIRS = [
    ("0", "1"), ("-1", "1"), ("1", "2"), ("1.0", "0.0"), ("yes", "no"),
    ("présent", "absent"), ("Absent", "PRESENT"),
    ("No", "yes"), ("A", "a"), ("a,b", 'c"d'), ("two\nlines", "1"),
]  # fmt: skip
DRESSES = ["{}", "{}", " {}", "{}\t", "{}.0"]
CASES = [str, str.upper, str.title]
GAPS = ["", " ", "NA", "#N/A", "<NA>", "n/a", "NaN", "-nan", "None", "nULL"]
ODD = ["3", "x", "inf", "1e400", "0.30000000000000004", "1_0", "+1", "1e0", "0x1"]


@st.composite
def texts(draw):
    """Bytes of a table with names, and its separator."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_columns, n_rows = draw(st.integers(1, 5)), draw(st.integers(1, 150))
    separator = draw(
        st.sampled_from(",;\t" if n_columns > 1 else ",\t")
    )  # one name does not show a semicolon
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    gaps, odd, quotes = (
        draw(st.sampled_from([0, 0, 0.05, 0.5])),
        draw(st.sampled_from([0, 0, 0, 0.01])),
        draw(st.booleans()),
    )
    numbers = draw(st.booleans())
    cases = draw(st.booleans())
    lines = [[f"name {k}" for k in range(n_columns)]]
    pairs = [PAIRS[rng.integers(len(PAIRS))] for _ in range(n_columns)]
    for _ in range(n_rows):
        line = []
        for pair in pairs:
            text = f"{rng.normal():.{rng.integers(1, 20)}f}" if numbers else pair[rng.integers(2)]
            text = CASES[rng.integers(3)](text) if cases and len(text) > 1 else text
            dress = DRESSES[rng.integers(len(DRESSES))]
            text = text if dress == "{}.0" and text not in ("0", "1", "-1") else dress.format(text)
            line.append(
                GAPS[rng.integers(len(GAPS))]
                if rng.random() < gaps
                else rng.choice(ODD)
                if rng.random() < odd
                else text
            )
        lines.append(line)
    text = draw(st.sampled_from(["", "\ufeff"]))
    for k, line in enumerate(lines):
        cells = []
        for cell in line:
            must = any(mark in cell for mark in ('"', "\n", "\r", separator)) or (
                len(line) == 1 and not cell
            )
            cells.append(
                '"' + cell.replace('"', '""') + '"'
                if must or (quotes and rng.random() < 0.3)
                else cell
            )
        is_last = k == len(lines) - 1
        text += separator.join(cells) + (
            "" if is_last and rng.random() < 0.3 else end * (1 + (rng.random() < 0.05))
        )
    return text.encode(), separator


@settings(max_examples=400, deadline=None)
@given(
    texts(),
    st.sampled_from([1, 2, 7, 64, 1000, 1 << 22]),
    st.sampled_from(["error", "drop", "pairwise"]),
    st.sampled_from([None, None, 0.5, 0]),
)
def test_any_chunks_give_what_the_csv_module_and_as_spins_give(
    tmp_path_factory, table, chunk, missing, binarize
):
    data, separator = table
    path = tmp_path_factory.mktemp("texts") / ("data.tsv" if separator == "\t" else "data.csv")
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isingkit.tables.text._CHUNK", chunk)
        ours = outcome(lambda: read_spins(path, binarize=binarize, missing=missing))
    theirs = outcome(lambda: slow(data, binarize=binarize, missing=missing, separator=separator))
    assert_same(ours, theirs, binarize)


@pytest.mark.parametrize("chunk", [1, 5, 64, 1 << 22])
@pytest.mark.parametrize("missing", ["error", "drop", "pairwise"])
def test_columns_weights_and_what_is_left_out(tmp_path, rng, monkeypatch, chunk, missing):
    """600 rows: many words, and incomplete rows in all of them."""
    values = rng.choice(
        ["0", "1", "" if missing != "error" else "1"], (600, 4), p=[0.5, 0.45, 0.05]
    )
    numbers = [repr(float(one)) for one in rng.gamma(2, 2, 600)]
    lines = ["id,a,b,c,d,times"] + [
        f"person {k},{','.join(row)},{numbers[k]}" for k, row in enumerate(values)
    ]
    data = "\n".join(lines).encode()
    (tmp_path / "data.csv").write_bytes(data)
    monkeypatch.setattr("isingkit.tables.text._CHUNK", chunk)
    for asked in (
        {"drop": ["id"]},
        {"columns": ["d", "a"]},
        {"columns": ["d", "a", "b"], "drop": ["a"]},
    ):
        ours = outcome(
            lambda asked=asked: read_spins(
                tmp_path / "data.csv", weights="times", missing=missing, **asked
            )
        )
        assert_same(
            ours, outcome(lambda asked=asked: slow(data, weights="times", missing=missing, **asked))
        )


def test_the_kernel_rounds_numbers_as_python_does(rng):
    """Twenty thousand decimals of up to 19 digits, some halfway between two doubles: sure means
    equal.
    """
    halfway = [f"{(2**53 + 2 * k + 1) * 5**e}e-{e}" for k in range(50) for e in (0, 1, 2)]
    exact = [repr(float(x)) for x in rng.normal(size=5000) * 10.0 ** rng.integers(-8, 9, 5000)]
    digits = [f"{rng.integers(10**18, 9 * 10**18)}e{rng.integers(-30, 31)}" for _ in range(15000)]
    plain = [
        "0",
        "-0.0",
        "1.",
        ".5",
        "+3",
        " 2 ",
        "1e5",
        "1E-5",
        "0.1",
        "123456789012345678",
        "0e99",
    ]
    n_sure = 0
    for text in [*halfway, *exact, *digits, *plain]:
        sure, found = kernels.number_in(np.frombuffer(text.encode(), dtype=np.uint8), 0, len(text))
        n_sure += sure
        assert not sure or (
            found == float(text) and np.signbit(found) == np.signbit(float(text))
        ), text
    assert n_sure > 15000
    for text in (
        "",
        "-",
        ".",
        "e5",
        "1e",
        "1e+",
        "1.2.3",
        "1x",
        "nan",
        "inf",
        "1 2",
        "--1",
        "1e5.0",
        "12345678901234567890",
    ):
        assert not kernels.number_in(np.frombuffer(text.encode(), dtype=np.uint8), 0, len(text))[
            0
        ], text


def test_ten_thousand_tokens_are_told_apart(tmp_path, rng, monkeypatch):
    """2000 columns of two texts of their own each: the table of tokens grows many times."""
    monkeypatch.setattr("isingkit.tables.text._CHUNK", 5000)
    words = [(f"no{k}", f"wort{k}") for k in range(2000)]
    values = rng.integers(0, 2, (9, 2000))
    values[:2] = [[0], [1]]
    frame = pd.DataFrame({f"q{k}": [words[k][v] for v in values[:, k]] for k in range(2000)})
    frame.to_csv(tmp_path / "data.csv", index=False)
    packed = read_spins(tmp_path / "data.csv").packed
    np.testing.assert_array_equal(np.asarray(packed), 2 * values - 1)
    assert packed.mapping[17] == ("no17", "wort17")


def test_a_column_with_many_values_is_named_with_some_of_them(tmp_path, rng):
    """All rows are read: missing values are counted to the end, and further columns with three
    values.
    """
    lines = (
        ["a,b,c"] + [f"{k},{k % 2},{k % 3}" for k in range(5000)] + ["NA,1,0", "NaN,0,0", ",0,0"]
    )
    (tmp_path / "data.csv").write_text("\n".join(lines))
    with pytest.raises(ex.MissingValuesError) as caught:
        read_spins(tmp_path / "data.csv")
    assert caught.value.counts == {"a": 3}
    with pytest.raises(ex.SpinValueError) as crowd:
        read_spins(tmp_path / "data.csv", missing="drop")
    assert (crowd.value.column, crowd.value.others, crowd.value.values) == (
        "a",
        ("c",),
        tuple(range(20)),
    )


def test_numbers_and_a_text_in_one_column_are_texts(tmp_path):
    """As as_spins has it: "1" and "x" are two texts, also with a threshold, but "1", "1.0" and "x"
    are three.
    """
    for body, mapping in (("1,0\nx,1\n1,0\n", ("1", "x")), ("x,0\n-1,1\n", ("-1", "x"))):
        (tmp_path / "data.csv").write_text("a,b\n" + body)
        for threshold in (None, 0.5):
            assert (
                read_spins(tmp_path / "data.csv", binarize=threshold).packed.mapping[0] == mapping
            )
    (tmp_path / "data.csv").write_text("a,b\n1,0\n1.0,1\nx,1\n")
    for threshold in (None, 0.5):
        with pytest.raises(ex.SpinValueError) as caught:
            read_spins(tmp_path / "data.csv", binarize=threshold)
        assert caught.value.values == ("1", "1.0", "x")


def test_thresholds_by_column_are_those_of_as_spins_in_any_file(tmp_path, rng):
    table = pd.DataFrame(rng.integers(1, 6, (300, 2)), columns=["a", "b, c"])
    table["amount"] = rng.normal(size=300)
    table["code"] = rng.integers(1, 3, 300)
    table["d"] = rng.integers(0, 2, 300)
    thresholds = {"a": 3, "b, c": 2, "amount": 0.5}
    expected = ik.as_spins(table, binarize=thresholds)
    table.to_csv(tmp_path / "data.csv", index=False)
    table.to_parquet(tmp_path / "data.parquet")
    for name in ("data.csv", "data.parquet"):
        for codes in ([], ["-9"]) if name.endswith("csv") else ([],):
            asked = {"binarize": thresholds, "missing_codes": codes}
            packed = read_spins(tmp_path / name, **asked).packed
            np.testing.assert_array_equal(np.asarray(packed), expected.values)
            assert packed.mapping == expected.mapping
    np.save(tmp_path / "data.npy", table.to_numpy())
    places = {"x1": 2, "x2": 0.5}
    packed = read_spins(tmp_path / "data.npy", drop=["x0"], binarize=places).packed
    np.testing.assert_array_equal(np.asarray(packed), expected.values[:, 1:])
    with pytest.raises(ex.TableFileError, match="there is no column 'e'"):
        read_spins(tmp_path / "data.csv", binarize={"e": 3})
    assert thresholds_in(thresholds_as_text(thresholds)) == thresholds
    assert thresholds_in(thresholds_as_text(2.5)) == 2.5
    for wrong in ("", "a", "a=", "=3", "a=3,b"):
        with pytest.raises(ValueError, match="a"):
            thresholds_in(wrong)


def test_an_infinite_number_is_refused_unless_all_are_texts(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,0\ninf,1\n1,1\n")
    for threshold in (None, 0.5):
        with pytest.raises(ex.InfiniteValueError):
            read_spins(tmp_path / "data.csv", binarize=threshold)
    (tmp_path / "data.csv").write_text("a,b\n1,0\n2,0\n3,1\n1e400,1\n")
    with pytest.raises(ex.InfiniteValueError):
        read_spins(tmp_path / "data.csv", binarize=2)
    (tmp_path / "data.csv").write_text("a,b\nx,0\ninf,1\n")
    assert read_spins(tmp_path / "data.csv").packed.mapping[0] == ("inf", "x")


# Names of columns, places, kinds of file


def test_titles_are_told_from_values(tmp_path):
    cases = {
        "0,1,2\n1,0,1\n0,0,1\n1,1,0\n": (("0", "1", "2"), 3),
        "yes,no,no\nno,no,no\nno,yes,yes\n": (("x0", "x1", "x2"), 3),
        "id;a;b\n1;0;1\n2;1;0\n": (("id", "a", "b"), 2),
        ",a,b\n1,0,1\n2,1,0\n": (("column 1", "a", "b"), 2),
        "\n\n a ,b\n1,0\n0,1\n": (("a", "b"), 2),
        '"first\nname","b, c"\n1,0\n0,1\n': (("first\nname", "b, c"), 2),
    }
    for text, (names, n_rows) in cases.items():
        (tmp_path / "data.csv").write_text(text)
        packed = read_spins(tmp_path / "data.csv").packed
        assert (packed.names, len(packed)) == (names, n_rows)


DRESSED = [
    ("data.csv", "größe;müde\n", "cp1252"),
    ("data.csv", "größe;müde\n", "utf-8-sig"),
    ("data.txt", "größe\tmüde\n", "utf-16"),
    ("data.txt", '"größe" "müde"\n', "utf-8"),
    ("data.dat", "größe,müde\n", "utf-8"),
    ("data.csv", "sep=;\ngröße;müde;\n", "utf-8"),
]


@pytest.mark.parametrize("chunk", [3, 1 << 22])
@pytest.mark.parametrize(("name", "head", "encoding"), DRESSED)
def test_letters_and_separators_are_found_out(tmp_path, monkeypatch, name, head, encoding, chunk):
    """As Excel and R write them."""
    monkeypatch.setattr("isingkit.tables.text._CHUNK", chunk)
    separator = next(one for one in ";\t, " if one in head.splitlines()[-1])
    rows = [("ja", "schön"), ("nö", "übel"), ("ja", "übel")]
    rest = separator * head.endswith(";\n")  # a third column, which is empty
    text = head + "".join(f"{separator.join(row)}{rest}\n" for row in rows)
    (tmp_path / name).write_bytes(text.encode(encoding))
    packed = read_spins(tmp_path / name, columns=["größe", "müde"]).packed
    assert packed.mapping == (("ja", "nö"), ("schön", "übel"))
    np.testing.assert_array_equal(np.asarray(packed), [[-1, -1], [1, 1], [-1, 1]])


@pytest.mark.parametrize(
    "title", ["A study, 2021\n", "A study, 2021;;\n", "A study; raw\n\nbut;;\n", ""]
)
def test_titles_above_a_table_are_passed_over(tmp_path, title):
    (tmp_path / "data.csv").write_text(title + "a;b;c\n1,0;0,0;1,0\n0,0;1,0;0,0\n1,0;1,0;0,0\n")
    if "raw" in title:  # two cells may be anything
        with pytest.raises(ex.TableFileError):
            read_spins(tmp_path / "data.csv")
        return
    packed = read_spins(tmp_path / "data.csv").packed
    assert (packed.names, packed.n_samples) == (("a", "b", "c"), 3)
    assert packed.mapping == ((0, 1),) * 3  # numbers, with a decimal comma


def test_names_of_rows_that_have_no_name_are_a_column_of_their_own(tmp_path):
    """As write.table of R leaves them; and where each row ends with a separator."""
    (tmp_path / "data.csv").write_text("a,b\nr1,1,0\nr2,0,1\nr3,1,1\n")
    packed = read_spins(tmp_path / "data.csv", drop=["column 1"]).packed
    assert packed.names == ("a", "b")
    np.testing.assert_array_equal(np.asarray(packed), [[1, -1], [-1, 1], [1, 1]])
    (tmp_path / "data.csv").write_text("a,b\n1,0,\n0,1,\n1,1,\n")
    packed = read_spins(tmp_path / "data.csv", drop=["column 3"]).packed
    assert packed.names == ("a", "b")
    np.testing.assert_array_equal(np.asarray(packed), [[1, -1], [-1, 1], [1, 1]])
    (tmp_path / "data.csv").write_text("a,b\n1,1,0\n0,0,1\n1,1,1\n")  # these name no rows
    with pytest.raises(ex.TableFileError, match="has 3 cells where the first has 2"):
        read_spins(tmp_path / "data.csv")


@pytest.mark.parametrize("chunk", [3, 1 << 22])
def test_codes_of_missing_values_are_missing(tmp_path, monkeypatch, chunk):
    """In variables and covariates; not in counts and groups, of which they may be values."""
    monkeypatch.setattr("isingkit.tables.text._CHUNK", chunk)
    rows = ["0,ja,0,9,9", "1,keine,5,9,9", "-999.0,nein,4,1,8", "9,ja,1,2,8", "1,ja,-999,1,8"]
    (tmp_path / "data.csv").write_text("a,b,scale,n,site\n" + "\n".join(rows) + "\n")
    asked = {"missing": "pairwise", "missing_codes": ["-999", "9", "KEINE"], "drop": ["scale"]}
    reading = read_spins(tmp_path / "data.csv", counts="n", groups="site", **asked)
    expected = [[-1, 1], [1, 0], [0, -1], [0, 1], [1, 1]]
    np.testing.assert_array_equal(np.asarray(reading.packed), expected)
    assert reading.packed.mapping == ((0, 1), ("nein", "ja"))
    assert [one.n_missing for one in reading.columns] == [2, 1]
    assert (reading.counts.tolist(), reading.groups.tolist()) == ([9, 9, 1, 2, 1], [0, 0, 1, 1, 1])
    asked |= {"drop": ["b", "site", "n"], "binarize": 0.5}
    reading = read_spins(tmp_path / "data.csv", **asked)
    expected = [[-1, -1], [1, 1], [0, 1], [0, 1], [1, 0]]
    np.testing.assert_array_equal(np.asarray(reading.packed), expected)
    asked = {"missing_codes": ["-999", "keine"], "missing": "pairwise", "columns": ["a", "b"]}
    reading = read_spins(tmp_path / "data.csv", binarize=5, **asked, covariates=["scale"])
    assert reading.covariates.array[-1, 0] is None
    np.save(tmp_path / "data.npy", np.eye(3))
    with pytest.raises(ex.TableFileError, match="for text in columns"):
        read_spins(tmp_path / "data.npy", missing_codes=["1"])


@pytest.mark.parametrize("chunk", [3, 1 << 22])
def test_an_empty_cell_of_a_ticked_column_means_no(tmp_path, monkeypatch, chunk):
    """And elsewhere it is missing, as NA is everywhere."""
    monkeypatch.setattr("isingkit.tables.text._CHUNK", chunk)
    rows = ["x,1,0,yes", ",,,", 'X, ,1,""', ",1,1,NA", "x,1,0,yes", ",,1,"]
    (tmp_path / "data.csv").write_text("a,b,c,d\n" + "\n".join(rows))
    asked = {"ticked": ["a", "b", "d"], "missing": "pairwise"}
    packed = read_spins(tmp_path / "data.csv", **asked).packed
    assert packed.mapping == (("no", "X"), ("no", "1"), (0, 1), ("no", "yes"))
    expected = [[1, 1, -1, 1], [-1, -1, 0, -1], [1, -1, 1, -1], [-1, 1, 1, 0], [1, 1, -1, 1]]
    np.testing.assert_array_equal(np.asarray(packed), [*expected, [-1, -1, 1, -1]])
    with pytest.raises(ex.TableFileError, match="there is no column 'z'"):
        read_spins(tmp_path / "data.csv", ticked=["z"])


def test_names_are_found_in_the_first_bytes_of_a_long_file(tmp_path, monkeypatch):
    """A head of a few bytes is lengthened until it holds rows, and what it ends within is no
    row.
    """
    monkeypatch.setattr("isingkit.tables.layout._HEAD", 4)
    body = "1,0\n0,1\n" * 50
    (tmp_path / "data.csv").write_text("größe,b\n" + body)
    assert read_spins(tmp_path / "data.csv").packed.names == ("größe", "b")
    (tmp_path / "data.csv").write_text(body)
    assert read_spins(tmp_path / "data.csv").packed.shape == (100, 2)


def test_names_that_come_again_are_numbered_with_a_warning(tmp_path):
    (tmp_path / "data.csv").write_text("a,a,a.1,a\n1,0,1,0\n0,1,0,0\n1,1,0,1\n")
    with pytest.warns(ex.RepeatedNamesWarning, match=r"'a'.* named 'a\.1' and so on"):
        packed = read_spins(tmp_path / "data.csv").packed
    assert packed.names == ("a", "a.1", "a.1.1", "a.2")
    np.testing.assert_array_equal(np.asarray(packed)[0], [1, -1, 1, -1])


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.RepeatedNamesWarning")
def test_an_unknown_name_is_refused(tmp_path):
    (tmp_path / "data.csv").write_text("a,a,b\n1,0,1\n0,1,0\n")
    assert read_spins(tmp_path / "data.csv", drop=["a", "a.1"]).packed.names == ("b",)
    for asked in ({"columns": ["b", "z"]}, {"drop": ["z"]}, {"weights": "z"}):
        with pytest.raises(
            ex.TableFileError, match=r"there is no column 'z'; there are a, a\.1, b"
        ):
            read_spins(tmp_path / "data.csv", **asked)
    with pytest.raises(ex.TableFileError, match="no column is left"):
        read_spins(tmp_path / "data.csv", drop=["a", "a.1", "b"])
    for asked, setting in (({"missing": "maybe"}, "missing"), ({"binarize": "x"}, "binarize")):
        with pytest.raises(ex.SettingError, match=f"{setting} must be"):
            read_spins(tmp_path / "data.csv", **asked)
    assert listed(" a, b,,") == ["a", "b"]


@pytest.mark.parametrize("part", [64, 1 << 19])
def test_tables_are_read_from_every_kind_of_file(tmp_path, rng, monkeypatch, part):
    values = rng.integers(0, 2, (500, 3))
    values[:64] = 0  # the first parts do not show all values
    frame = pd.DataFrame(values, columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "with.csv", index=False)
    frame.to_csv(tmp_path / "without.csv", index=False, header=False)
    frame.replace({0: "no", 1: "yes"}).to_csv(tmp_path / "words.csv", index=False, header=False)
    frame.to_parquet(tmp_path / "table.parquet")
    frame.replace({0: "no", 1: "yes"}).to_parquet(tmp_path / "words.parquet")
    np.save(tmp_path / "array.npy", values)
    np.save(tmp_path / "columns.npy", np.asfortranarray(values))
    np.save(tmp_path / "words.npy", np.where(values, "ja", "nein"))
    np.savez(tmp_path / "array.npz", X=values, other=values[0])
    np.savez_compressed(tmp_path / "columns.npz", X=np.asfortranarray(values).astype(np.int8))
    ik.pack(frame).save(tmp_path / "bits.spins")
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress((tmp_path / "with.csv").read_bytes()))
    monkeypatch.setattr("isingkit.tables.parts.PART", part)
    nameless = (
        "without.csv",
        "words.csv",
        "array.npy",
        "columns.npy",
        "words.npy",
        "array.npz",
        "columns.npz",
    )
    for name in (
        *nameless,
        "with.csv",
        "packed.csv.gz",
        "table.parquet",
        "words.parquet",
        "bits.spins",
    ):
        names = ("x0", "x1", "x2") if name in nameless else ("a", "b", "c")
        packed = read_spins(tmp_path / name).packed
        np.testing.assert_array_equal(np.asarray(packed), 2 * values - 1, err_msg=name)
        assert packed.names == names
        chosen = read_spins(tmp_path / name, columns=[names[2], names[0]]).packed
        np.testing.assert_array_equal(np.asarray(chosen), 2 * values[:, [2, 0]] - 1, err_msg=name)
        assert (chosen.names, chosen.mapping) == (
            (names[2], names[0]),
            (packed.mapping[2], packed.mapping[0]),
        )
        if "words" not in name and name != "bits.spins":
            frame["b"] = values[:, 1]
            reading = read_spins(tmp_path / name, weights=names[1])
            np.testing.assert_array_equal(reading.weights, values[:, 1])
            assert reading.packed.names == (names[0], names[2])
    for role in ("weights", "counts", "groups"):
        with pytest.raises(ex.TableFileError, match="packed spins have no columns but spins"):
            read_spins(tmp_path / "bits.spins", **{role: "b"})
    with pytest.raises(
        ex.TableFileError, match="column 'a' should hold numbers, but holds texts such as 'no'"
    ):
        read_spins(tmp_path / "words.parquet", weights="a")


@pytest.mark.parametrize("missing", ["error", "drop", "pairwise"])
def test_parts_of_tables_with_gaps_give_what_the_whole_gives(tmp_path, rng, monkeypatch, missing):
    """Texts, truths and numbers, missing in whole parts too, in Parquet, NPY and .spins."""
    frame = pd.DataFrame(
        {
            "t": rng.choice(["no", "yes"], 400),
            "b": rng.integers(0, 2, 400) > 0,
            "n": rng.integers(1, 3, 400),
        }
    )
    frame = frame.astype(object).mask(rng.random((400, 3)) < 0.1)
    frame.loc[64:127, "t"] = None
    frame.loc[256:, "n"] = 1
    columns = {
        "t": pyarrow.array(frame["t"], from_pandas=True),
        "b": pyarrow.array(frame["b"], from_pandas=True),
        "n": pyarrow.array(frame["n"], pyarrow.int64(), from_pandas=True),
    }
    table = pyarrow.table(columns)
    parquet.write_table(table, tmp_path / "table.parquet")
    numbers = frame[["b", "n"]].astype(np.float64).to_numpy()
    np.save(tmp_path / "array.npy", numbers)
    whole = ik.pack(ik.as_spins(table, missing="pairwise"))
    whole.save(tmp_path / "bits.spins")
    monkeypatch.setattr("isingkit.tables.parts.PART", 64)
    monkeypatch.setattr("isingkit.packing._CHUNK", 64 * 3)

    def expected(data):
        spins = ik.as_spins(data, missing=missing)
        return ik.pack(spins), None

    for name, data in (("table.parquet", table), ("array.npy", numbers), ("bits.spins", table)):
        ours = outcome(lambda name=name: read_spins(tmp_path / name, missing=missing))
        assert_same(ours, outcome(lambda data=data: expected(data)))


@pytest.mark.parametrize(
    "values",
    [[0.2, 0.4, 0.9], [0, 1, 2], [-1, 0, 1], [3, 5, 5], [1, 1, 1], [1, np.inf, 1], [np.nan] * 3],
)
def test_values_that_only_all_parts_together_show(tmp_path, monkeypatch, values):
    array = np.repeat(np.array([values, [0, 0, 1]]).T, 64, axis=0)
    np.save(tmp_path / "array.npy", array)
    monkeypatch.setattr("isingkit.tables.parts.PART", 64)
    for threshold, missing in itertools.product((None, 0.5), ("error", "pairwise")):
        asked = {"binarize": threshold, "missing": missing}
        expected = outcome(lambda asked=asked: (ik.pack(ik.as_spins(array, **asked)), None))
        assert_same(
            outcome(lambda asked=asked: read_spins(tmp_path / "array.npy", **asked)), expected
        )


def test_a_table_comes_through_standard_input(monkeypatch):
    for separator in ",;\t":
        text = "a,b\n1,0\n0,1\n1,1\n".replace(",", separator).encode()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
        assert np.asarray(read_spins("-").packed).tolist() == [[1, -1], [-1, 1], [1, 1]]


def test_progress_is_shown_when_reading_takes_long(tmp_path, monkeypatch, capsys):
    (tmp_path / "data.csv").write_text("a,b\n" + "1,0\n0,1\n" * 1000)
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress((tmp_path / "data.csv").read_bytes()))
    np.save(tmp_path / "data.npy", np.eye(2))
    read_spins(tmp_path / "data.csv", progress=True)
    assert capsys.readouterr().err == ""  # it did not
    monkeypatch.setattr(
        "isingkit.tables.rows.tqdm", lambda *a, **o: tqdm(*a, **{**o, "delay": 0, "mininterval": 0})
    )
    for name, words in (
        ("data.csv", "8.00k/8.00k"),
        ("data.csv.gz", "100%"),
        ("data.npy", "4.00/4.00"),
    ):
        read_spins(tmp_path / name, progress=True)
        out, err = capsys.readouterr()
        assert out == ""
        assert words in err
        assert "reading" in err


# What cannot be read


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("data.doc", b"", "its name ends in none of .csv"),
        ("data.xlsx", b"", "it is a file of Excel: save it there as CSV"),
        ("data.csv", b"a,b\n\n0,1\n1\n", "line 4 has 1 cells where the first has 2"),
        (
            "data.csv",
            b'a,b\r\n\r\n"0",1\r\n\r\n1,0,"2\n\r\n\r3",4\r\n',
            "line 8 has 4 cells where the first has 2",
        ),
        ("data.csv", b"a,b\r0,1\r1", "line 3 has 1 cells where the first has 2"),
        ("data.csv", b'a,b\n0,1\n\n1,"0\n', "a cell that starts in line 4 does not end"),
        (
            "data.csv",
            b'a,b\n0,1\n1,"0' + b"\n1,0" * 20000,
            "a cell that starts in line 3 does not end",
        ),
        ("data.csv", b"a,b\n0,1\n1,\x00\n", "cannot be read as text in columns"),
        ("data.csv", b"PK\x03\x04\x14\x00", "perhaps a file of Excel: save it there as CSV"),
        ("data.parquet", b"nothing", "cannot be read as Parquet"),
        ("data.csv.gz", b"nothing packed", "cannot be read as text in columns"),
        (
            "data.csv.gz",
            gzip.compress(b"a,b\n" + b"0,1\n" * 9000, mtime=0)[:-20],
            "cannot be read as text in columns",
        ),
        ("data.csv", b"\xff\xfe\x00", "cannot be read as text in columns"),
        ("data.csv", b"", "it is empty"),
        ("data.csv", b"\n\r\n", "it is empty"),
        ("data.csv", b"a,b\n", "it has names of columns but no rows"),
        ("data.npy", b"nothing", "cannot be read as numbers"),
        ("data.npz", b"nothing", "cannot be read as numbers"),
    ],
)
@pytest.mark.parametrize("chunk", [3, 1 << 22])
def test_files_that_cannot_be_read_say_why(tmp_path, monkeypatch, name, content, says, chunk):
    monkeypatch.setattr("isingkit.tables.text._CHUNK", chunk)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ex.TableFileError, match=says):
        read_spins(tmp_path / name)


def test_arrays_that_are_no_tables_say_so(tmp_path):
    np.savez(tmp_path / "two.npz", a=np.zeros((2, 2)), b=np.zeros((2, 2)))
    with pytest.raises(ex.TableFileError, match="it holds 2 tables where one was expected"):
        read_spins(tmp_path / "two.npz")
    np.save(tmp_path / "row.npy", np.zeros(3))
    with pytest.raises(ex.TableShapeError):
        read_spins(tmp_path / "row.npy")
    np.save(tmp_path / "none.npy", np.zeros((0, 3)))
    with pytest.raises(ex.EmptyTableError):
        read_spins(tmp_path / "none.npy")
    np.save(tmp_path / "objects.npy", np.array([[None, 1]]))
    np.save(tmp_path / "cut.npy", np.zeros((100, 3)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:-8])
    for name in ("objects.npy", "cut.npy"):
        with pytest.raises(ex.TableFileError, match="cannot be read as numbers"):
            read_spins(tmp_path / name)


def test_weights_must_be_numbers(tmp_path):
    (tmp_path / "data.csv").write_text("a,b,w\n1,0,x\n0,1,1\n")
    with pytest.raises(
        ex.TableFileError, match="column 'w' should hold numbers, but holds texts such as 'x'"
    ):
        read_spins(tmp_path / "data.csv", weights="w")
    (tmp_path / "data.csv").write_text("a,b,w\n1,0,2\n0,1,\n1,1,1e-5\n")
    with pytest.raises(ex.SampleWeightError, match="NaN"):
        read_spins(tmp_path / "data.csv", weights="w")
    (tmp_path / "data.csv").write_text('a,b,w\n1,0,"2"\n0,,\n1,1,12345678901234567890\n0,0,1e1\n')
    assert read_spins(tmp_path / "data.csv", weights="w", missing="drop").weights.tolist() == [
        2,
        float(12345678901234567890),
        10,
    ]


def rows_of_persons(rng):
    """A table with weights, counts and names of persons, as texts and as numbers."""
    frame = pd.DataFrame(rng.integers(0, 2, (400, 4)).astype(float), columns=list("abcd"))
    frame["weight"] = rng.lognormal(size=400)
    frame["seen"] = rng.integers(0, 5, 400)
    frame["person"] = rng.integers(0, 40, 400)
    frame["name"] = [f'"{k}", person' if k % 7 == 0 else f"person {k}" for k in frame["person"]]
    frame.loc[rng.random(400) < 0.1, "a"] = np.nan
    return frame


def same_groups(one, other):
    """Whether two labellings put the same rows together."""
    pairs = len(set(zip(one, other, strict=True)))
    return pairs == len(set(one)) == len(set(other))


@pytest.mark.parametrize("chunk", [64, 1 << 22])
@pytest.mark.parametrize("missing", ["drop", "pairwise"])
def test_counts_weights_and_groups_are_read_from_every_kind_of_file(
    tmp_path, rng, monkeypatch, chunk, missing
):
    monkeypatch.setattr("isingkit.tables.text._CHUNK", chunk)
    monkeypatch.setattr("isingkit.tables.parts.PART", chunk)
    frame = rows_of_persons(rng)
    kept = frame[frame["a"].notna()] if missing == "drop" else frame
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_csv(tmp_path / "data.tsv.gz", index=False, sep="\t")
    frame.to_parquet(tmp_path / "data.parquet")
    np.save(tmp_path / "data.npy", frame.drop(columns="name").to_numpy())
    places = {name: f"x{k}" for k, name in enumerate(frame.columns)}
    for file in ("data.csv", "data.tsv.gz", "data.parquet", "data.npy"):
        for label in ("person", "name"):
            if (file, label) == ("data.npy", "name"):
                continue
            named = (lambda name: places[name]) if file == "data.npy" else (lambda name: name)
            columns = [named(name) for name in "abcd"]
            roles = {"weights": named("weight"), "counts": named("seen"), "groups": named(label)}
            found = read_spins(tmp_path / file, columns=columns, missing=missing, **roles)
            assert found.packed.names == tuple(columns)
            np.testing.assert_array_equal(found.weights, kept["weight"])
            np.testing.assert_array_equal(found.counts, kept["seen"])
            assert same_groups(found.groups, kept[label])


def test_columns_beside_spins_that_are_none_are_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b,n,who\n1,0,2,x\n0,1,1.5,\n1,1,1,y\n")
    with pytest.raises(ex.CountsError, match="but it holds 1.5"):
        read_spins(path, counts="n", drop=["who"])
    with pytest.raises(ex.GroupsError, match="1 row has none"):
        read_spins(path, groups="who", drop=["n"])
    with pytest.raises(ex.TableFileError, match="'n' can be only one of weights, counts"):
        read_spins(path, counts="n", weights="n")
    with pytest.raises(ex.TableFileError, match="column 'who' should hold numbers"):
        read_spins(path, counts="who")
    with pytest.raises(ex.TableFileError, match="there is no column 'nobody'"):
        read_spins(path, groups="nobody")


def test_what_is_not_used_is_not_looked_at(tmp_path):
    """Names in another encoding, say, after the first rows."""
    (tmp_path / "data.csv").write_bytes(
        b"name,a,b\n" + b"x,0,1\ny,1,0\n" * 10000 + b"M\xfcller,1,1\n"
    )
    assert read_spins(tmp_path / "data.csv", drop=["name"]).packed.shape == (20001, 2)


@pytest.mark.parametrize(
    ("head", "names"),
    [
        ("none,some", ("none", "some")),
        ("NA,b", ("NA", "b")),
        ("1,b", ("1", "b")),
        ("1990,1991", ("1990", "1991")),
        ("a,", ("a", "column 2")),
    ],
)
def test_odd_names_of_columns_are_names(tmp_path, head, names):
    (tmp_path / "data.csv").write_text(head + "\n" + "0,1\n1,0\n1,1\n" * 5)
    reading = read_spins(tmp_path / "data.csv")
    assert reading.packed.names == names
    assert reading.packed.n_samples == 15


@pytest.mark.parametrize(
    "rows", ["p1,0,1\np2,1,0\np3,1,1\n", "0,1,1\n1,0,0\n", "yes,no,no\nno,yes,yes\nyes,yes,no\n"]
)
def test_rows_of_values_are_no_names(tmp_path, rows):
    (tmp_path / "data.csv").write_text(rows)
    assert read_spins(tmp_path / "data.csv", columns=["x1", "x2"]).packed.n_samples == rows.count(
        "\n"
    )


def test_labels_of_rows_that_pandas_keeps_in_parquet_are_no_column(tmp_path, rng):
    frame = pd.DataFrame(rng.integers(0, 2, (50, 3)), columns=list("abc")).sample(
        frac=0.5, random_state=0
    )
    frame.to_parquet(tmp_path / "data.parquet")
    reading = read_spins(tmp_path / "data.parquet")
    assert reading.packed.names == ("a", "b", "c")
    np.testing.assert_array_equal(np.asarray(reading.packed), 2 * frame.to_numpy() - 1)


def test_an_underscore_makes_no_number(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n0,1\n1_0,0\n0,0\n1_0,1\n")
    assert read_spins(tmp_path / "data.csv").packed.mapping[0] == ("0", "1_0")


def test_every_known_suffix_has_a_reader_and_is_named_where_formats_are():
    assert {STANDARD_INPUT, *SUFFIXES} == set(READERS)
    for suffix in SUFFIXES:
        assert suffix in LISTED
        assert suffix[1:] in NAMES.lower()


@pytest.mark.parametrize(
    ("name", "kind", "bare"),
    [
        ("a.CSV", ".csv", "a"),
        ("a.b.tsv.gz", ".tsv", "a.b"),
        (".hidden.npy", ".npy", "hidden"),
        ("a.gz", ".gz", "a"),
        ("-", "-", ""),
        ("plain", "", "plain"),
    ],
)
def test_the_format_follows_from_the_name(name, kind, bare):
    assert format_of(Path(name)) == kind
    assert bare_name(Path(name)) == bare


@pytest.mark.parametrize("name", ["rows.npy", "columns.npz", "table.parquet"])
def test_damaged_tables_are_told_or_read_and_never_end_in_a_traceback(tmp_path, rng, name):
    """Seen to fail, each kind of file."""
    values = rng.choice([-1, 1], (60, 5)).astype(np.int8)
    np.save(tmp_path / "rows.npy", values)
    np.savez_compressed(tmp_path / "columns.npz", X=np.asfortranarray(values))
    pd.DataFrame(values, columns=list("abcde")).to_parquet(tmp_path / "table.parquet")
    whole = (tmp_path / name).read_bytes()
    n_told = 0
    for k in range(100):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=[1, 4, 30][k % 3]):
            damaged[place] ^= 1 << int(rng.integers(8))
        (tmp_path / name).write_bytes(damaged if k % 9 else damaged[: rng.integers(len(whole))])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ex.ConstantColumnWarning)
                read_spins(tmp_path / name)
        except ex.IsingkitError:
            n_told += 1
    assert n_told > 50


def test_a_long_first_line_takes_time_in_proportion(monkeypatch):
    """Bytes that are copied, not seconds. Seen to fail: each read copied all that was before."""

    class Counted(bytes):
        n_copied = 0

        def __radd__(self, other):
            Counted.n_copied += len(other)
            return other + bytes(self)

        def __add__(self, other):
            Counted.n_copied += len(self)
            return Counted(bytes(self) + bytes(other))

    left = [b"a," * 8] * 1000 + [b"\n\n\n"]
    monkeypatch.setattr(layout, "_HEAD", 16)
    head, is_all = layout.head_of(lambda n_bytes: Counted(left.pop(0)), Path("d.csv"))
    assert (len(head), is_all) == (16003, False)
    assert Counted.n_copied < 10 * len(head)


def test_messages_stay_short_however_long_a_cell_is(tmp_path):
    """Seen to fail: a cell of 120 kB gave an error of 120 kB."""
    cell = "x" * 120_000
    (tmp_path / "data.csv").write_text(f"a,b,w\n1,0,1\n0,1,2\n{cell},1,{cell}\n")
    for options in ({}, {"weights": "w"}, {"columns": ["a"]}):
        with pytest.raises(ex.IsingkitError) as told:
            read_spins(tmp_path / "data.csv", **options)
        assert len(str(told.value)) < 2000
