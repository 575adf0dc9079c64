"""Files of the field: variables in rows, sparse matrices, and columns that hardly ever change."""

import gzip
import io
import sys
import types

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from isingkit import exceptions as ex
from isingkit import memory
from isingkit.cli import main
from isingkit.tables import layout, matrices, read_spins
from isingkit.tables import text as tables_of_text
from isingkit.tables.layout import without_padding

GENES = ("geneA", "geneB", "geneC", "geneD", "geneE")


@pytest.fixture
def table(rng):
    """(70, 5) of 0 and 1."""
    return rng.integers(0, 2, (70, 5))


def text_of(table, separator, names=GENES):
    titles = separator.join(["Gene", *(f"genome{k}" for k in range(len(table)))])
    lines = [
        separator.join([name, *map(str, row)]) for name, row in zip(names, table.T, strict=True)
    ]
    return "\n".join([titles, *lines]) + "\n"


@pytest.mark.parametrize(
    ("name", "separator", "transpose"),
    [
        ("a.Rtab", "\t", False),
        ("a.rtab.gz", "\t", False),
        ("a.Rtab", "\t", True),
        ("a.tsv", "\t", True),
        ("a.csv", ",", True),
        ("a.csv.gz", ",", True),
    ],
)
def test_variables_in_rows_are_read_as_columns(table, tmp_path, name, separator, transpose):
    data = text_of(table, separator).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    packed = read_spins(tmp_path / name, transpose=transpose).packed
    assert packed.names == GENES
    np.testing.assert_array_equal(np.asarray(packed), 2 * table - 1)


@pytest.mark.parametrize("name", ["a.dat", "a.txt", "a.tsv", "a.dat.gz"])
@pytest.mark.parametrize("cell", ["%d", "%.1f", "  %.7e"])
@pytest.mark.parametrize("low", [-1, 0])
def test_signals_without_names_are_read_as_energy_landscape_analysis_has_them(
    tmp_path, name, cell, low
):
    """A line a signal: tabs, blanks as MATLAB writes them, and a separator at the end of lines."""
    values = np.random.default_rng(0).integers(0, 2, (7, 40))
    coded = values if low == 0 else 2 * values - 1
    separators = ["\t"] if "tsv" in name else ["\t", " "]
    for separator in separators:
        for end in ("", separator):
            lines = [separator.join(cell % value for value in row) + end for row in coded]
            data = "\n".join(lines).encode() + b"\r\n\n"
            (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
            packed = read_spins(tmp_path / name, transpose=True).packed
            assert packed.names == tuple(f"x{k}" for k in range(7))
            np.testing.assert_array_equal(np.asarray(packed), 2 * values.T - 1)


@pytest.mark.parametrize("separator", ["\t", ",", ";", " ", "   "])
@pytest.mark.parametrize("is_titled", [True, False])
def test_text_with_any_separator_is_read(tmp_path, separator, is_titled):
    values = np.random.default_rng(0).integers(0, 2, (40, 5))
    titles = [separator.join("abcde")] if is_titled else []
    lines = titles + [separator.join(map(str, row)) for row in values]
    for name in ("a.txt", "a.dat"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        packed = read_spins(tmp_path / name).packed
        names = tuple("abcde") if is_titled else tuple(f"x{k}" for k in range(5))
        assert packed.names == names
        np.testing.assert_array_equal(np.asarray(packed), 2 * values - 1)


@pytest.mark.parametrize("names", [["101", "102", "103"], ["0", "1", "2"], ["a", "1", "0"]])
@pytest.mark.parametrize("times", [None, range(1, 41), range(40), "abcd" * 10])
def test_numbers_that_name_signals_or_times_are_no_values(tmp_path, names, times):
    values = np.random.default_rng(0).integers(0, 2, (3, 40))
    lines = [] if times is None else [",".join(["roi", *map(str, times)])]
    lines += [",".join([name, *map(str, row)]) for name, row in zip(names, values, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    packed = read_spins(tmp_path / "a.csv", transpose=True).packed
    assert packed.names == tuple(names)
    np.testing.assert_array_equal(np.asarray(packed), 2 * values.T - 1)


def test_signals_that_are_still_numbers_have_no_names_either(tmp_path):
    signals = np.random.default_rng(0).normal(size=(3, 40))
    np.savetxt(tmp_path / "a.dat", signals)
    packed = read_spins(tmp_path / "a.dat", transpose=True, binarize=0).packed
    np.testing.assert_array_equal(np.asarray(packed), np.where(signals.T > 0, 1, -1))


def test_blanks_between_cells_are_no_reason_for_lines_of_different_lengths(tmp_path):
    (tmp_path / "a.txt").write_text("1 0  1\n0  1\n")
    for transpose, told in [(True, "different numbers of cells"), (False, "line 2 has 2 cells")]:
        with pytest.raises(ex.TableFileError, match=told):
            read_spins(tmp_path / "a.txt", transpose=transpose)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("yes no\nno yes\nyes yes\nno no\n", {}),
        ("a b\n0 1\n1 0\n9 1\n0 1\n", {"missing_codes": ["9"], "missing": "drop"}),
        ('a b\nx 0\n"" 1\nx 1\n', {"ticked": ["a"]}),
        ("a b w\n0 1 2\n1 0 1\n0 1 1\n", {"weights": "w"}),
    ],
)
def test_columns_aligned_with_blanks_are_those_between_single_blanks(tmp_path, text, options):
    (tmp_path / "single.txt").write_text(text)
    (tmp_path / "aligned.txt").write_text("  " + text.replace(" ", "  ").replace("\n", "  \r\n"))
    single = read_spins(tmp_path / "single.txt", **options)
    aligned = read_spins(tmp_path / "aligned.txt", **options)
    assert aligned.packed.names == single.packed.names
    assert aligned.packed.mapping == single.packed.mapping
    np.testing.assert_array_equal(np.asarray(aligned.packed), np.asarray(single.packed))
    np.testing.assert_array_equal(aligned.weights, single.weights)


@pytest.mark.parametrize("n_bytes", range(1, 9))
def test_blanks_go_wherever_bytes_are_cut(n_bytes):
    stream = io.BytesIO(b"   a  b \t c  \r\n \n  0   1 2\n\t1 0  0   ")
    read = without_padding(lambda _: stream.read(n_bytes))
    assert b"".join(iter(lambda: read(0), b"")) == b"a b c\r\n\n0 1 2\n1 0 0"


def test_lines_of_numbers_texts_and_gaps_are_read_as_the_table_the_other_way_round(tmp_path):
    """The same cells, once with variables in columns."""
    lines = [
        ["name", "s1", "s2", "s3", "s4"],
        ['"a,b"', "yes", "no", "yes", "NA"],
        ["c", "1", "2", "2", ""],
        ["d", "0", "1", "1", "0"],
    ]
    (tmp_path / "rows.csv").write_text("\n".join(map(",".join, lines)))
    columns = list(zip(*lines, strict=True))[1:]
    titles = [line[0] for line in lines[1:]]
    text = [titles, *[column[1:] for column in columns]]
    (tmp_path / "columns.csv").write_text("\n".join(map(",".join, text)))
    one = read_spins(tmp_path / "rows.csv", transpose=True, missing="pairwise").packed
    other = read_spins(tmp_path / "columns.csv", missing="pairwise").packed
    assert one.names == other.names == ("a,b", "c", "d")
    assert one.mapping == other.mapping
    np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_without_names_of_samples_every_line_is_a_variable(tmp_path):
    (tmp_path / "a.tsv").write_text("x\t0\t1\t1\ny\t1\t0\t1\n")
    packed = read_spins(tmp_path / "a.tsv", transpose=True).packed
    assert packed.names == ("x", "y")
    assert packed.n_samples == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        ("Gene\ta\tb\nx\t0\t1\ny\t0\n", "different numbers of cells"),
        ("Gene\ta\tb\nx\t0\t\udcff\n", "cannot be read as text"),
    ],
)
def test_broken_lines_are_told(tmp_path, text, problem):
    (tmp_path / "a.Rtab").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ex.TableFileError, match=problem):
        read_spins(tmp_path / "a.Rtab")


def test_more_than_two_values_are_named(tmp_path):
    (tmp_path / "a.Rtab").write_text("Gene\ta\tb\tc\nx\t0\t1\t2\ny\t0\t1\t1\n")
    with pytest.raises(ex.SpinValueError, match="x"):
        read_spins(tmp_path / "a.Rtab")


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("name", ["a.npz", "a.mtx", "a.mtx.gz", "dense.npz", "dense.npy"])
def test_matrices_sparse_or_dense_are_the_table(table, tmp_path, name, transpose):
    matrix = table.T if transpose else table
    path = tmp_path / name
    if name == "a.npz":
        scipy.sparse.save_npz(path, scipy.sparse.csc_array(matrix))
    elif name.startswith("a.mtx"):
        scipy.io.mmwrite(tmp_path / "a.mtx", scipy.sparse.coo_array(matrix))
        if name.endswith("gz"):
            path.write_bytes(gzip.compress((tmp_path / "a.mtx").read_bytes()))
    elif name == "dense.npz":
        np.savez(path, X=matrix)
    else:
        np.save(path, matrix)
    packed = read_spins(path, transpose=transpose).packed
    np.testing.assert_array_equal(np.asarray(packed), 2 * table - 1)
    assert packed.names == tuple(f"x{k}" for k in range(5))
    some = read_spins(path, transpose=transpose, columns=["x3", "x1"]).packed
    np.testing.assert_array_equal(np.asarray(some), 2 * table[:, [3, 1]] - 1)


def test_counts_in_a_matrix_are_binarized(table, tmp_path):
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.csr_array(7 * table))
    packed = read_spins(tmp_path / "a.npz", binarize=0).packed
    np.testing.assert_array_equal(np.asarray(packed), 2 * table - 1)


@pytest.mark.parametrize("name", ["a.mtx", "a.npz"])
def test_damaged_matrices_are_told(table, tmp_path, name):
    if name == "a.npz":
        scipy.sparse.save_npz(tmp_path / name, scipy.sparse.csr_array(table), compressed=False)
        whole = bytearray((tmp_path / name).read_bytes())
        place = whole.index(b"\x93NUMPY")
        whole[place : place + 6] = b"nonsen"
        (tmp_path / name).write_bytes(whole)
    else:
        (tmp_path / name).write_text("%%MatrixMarket matrix coordinate integer general\n3 3 1\n9 9")
    with pytest.raises(ex.TableFileError, match="cannot be read as"):
        read_spins(tmp_path / name)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: {"indices": a["indices"] + 10**8},
        lambda a: {"indices": -1 - a["indices"]},
        lambda a: {"indices": np.full_like(a["indices"], 5)},
        lambda a: {"indptr": np.where(np.arange(71) == 30, 10**9, a["indptr"])},
        lambda a: {"indptr": np.where(np.arange(71) == 30, -5, a["indptr"])},
        lambda a: {"shape": np.array([70, 10**12])},
        lambda a: {"shape": np.array([10**12, 5])},
        lambda a: {"shape": np.array([-70, 5])},
        lambda a: {"data": np.full(len(a["data"]), "x")},
        lambda a: {"data": a["data"][:3]},
        lambda a: {"format": np.array("any")},
    ],
    ids=[
        "over",
        "below",
        "next",
        "end",
        "end below",
        "wide",
        "long",
        "minus",
        "text",
        "few",
        "any",
    ],
)
def test_sparse_archives_that_lie_are_told(table, tmp_path, change):
    """Seen to fail: places outside the matrix ended the process (SIGSEGV), or were read as other
    cells.
    """
    matrix = scipy.sparse.csr_array(table)
    arrays = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    arrays |= {"format": np.array("csr"), "shape": np.array(matrix.shape)}
    np.savez(tmp_path / "a.npz", **arrays | change(arrays))
    with pytest.raises(ex.IsingkitError):
        read_spins(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "sizes",
    [
        "coordinate integer general\n1000000000 1000000000 0",
        "coordinate integer general\n5 3000000000 1\n1 1 1",
        "coordinate integer general\n5 5 100000000000\n1 1 1",
        "array real general\n10000000 10000000\n0",
    ],
)
def test_sizes_of_a_matrix_market_file_must_fit_memory(tmp_path, sizes):
    """Before anything is asked for: these took all there was."""
    (tmp_path / "a.mtx").write_text(f"%%MatrixMarket matrix {sizes}\n")
    with pytest.raises(ex.NotEnoughMemoryError):
        read_spins(tmp_path / "a.mtx")


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ("1 1 1\n2 2 1%%Matrix", "'%%Matrix' where numbers"),
        ("1 1 1x\n2 2 1\n", "where numbers"),
        ("1 1 1\n2 2 1n", None),  # of nan: passed over, but no end of a line is looked for beyond
        ("1 1 1\n", "Truncated"),
        ("1 1 1\n9 9 1\n", "out of bounds"),
    ],
)
def test_a_damaged_matrix_market_file_is_a_sentence(tmp_path, entries, problem):
    header = "%%MatrixMarket matrix coordinate integer general\n% a comment\n3 2 2\n"
    path = tmp_path / "a.mtx"
    path.write_text(header + entries)
    if problem is None:
        assert read_spins(path).packed.n_samples == 3
    else:
        with pytest.raises(ex.TableFileError, match=problem):
            read_spins(path)


@pytest.mark.parametrize("name", ["a.rtab.gz", "a.mtx.gz"])
def test_a_line_without_end_is_refused_as_it_is_inflated(tmp_path, monkeypatch, name):
    monkeypatch.setattr(matrices, "_LONGEST", 1 << 20)
    text = b"%%MatrixMarket matrix coordinate integer general\n%" + b"0\t" * (1 << 20)
    (tmp_path / name).write_bytes(gzip.compress(text))
    with pytest.raises(ex.TableFileError, match="a line takes more than 1 MiB"):
        read_spins(tmp_path / name)


def test_variables_in_rows_are_held_only_as_long_as_memory_lasts(table, tmp_path, monkeypatch):
    (tmp_path / "a.rtab").write_text(text_of(table, "\t"))
    monkeypatch.setattr(matrices, "memory_there", lambda: 500)
    monkeypatch.setattr(memory, "memory_there", lambda: 500)
    with pytest.raises(ex.NotEnoughMemoryError):
        read_spins(tmp_path / "a.rtab")


def test_damaged_gzip_of_variables_in_rows_is_told(table, tmp_path):
    """Wherever a bit is flipped: zlib has errors of its own. Seen to fail."""
    whole = gzip.compress(text_of(table, "\t").encode())
    for place in range(10, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 16
        (tmp_path / "a.rtab.gz").write_bytes(damaged)
        with pytest.raises(ex.IsingkitError):
            read_spins(tmp_path / "a.rtab.gz")


def test_genes_of_cells_are_read_through_anndata(table, tmp_path, monkeypatch):
    """A stand-in for the package, which may not be installed: its names as they are documented."""
    held = types.SimpleNamespace(
        X=scipy.sparse.csr_matrix(table),
        var_names=np.array(GENES),
        obs_names=np.array([f"cell{k}" for k in range(70)]),
    )
    stand_in = types.ModuleType("anndata")
    stand_in.read_h5ad = lambda path: held
    monkeypatch.setitem(sys.modules, "anndata", stand_in)
    packed = read_spins(tmp_path / "a.h5ad").packed
    assert packed.names == GENES
    np.testing.assert_array_equal(np.asarray(packed), 2 * table - 1)
    held.X = scipy.sparse.csr_matrix(table[:2] * 0 + [[0], [1]])
    held.obs_names = held.obs_names[:2]
    with pytest.warns(ex.ConstantColumnWarning):
        assert read_spins(tmp_path / "a.h5ad", transpose=True).packed.names == ("cell0", "cell1")


def test_places_outside_a_matrix_of_cells_are_told(table, tmp_path, monkeypatch):
    """Seen to end the process: of files of which a bit was flipped, anndata believes all places."""
    cells = scipy.sparse.csr_matrix(table)
    cells.indices[5] = 2**30
    stand_in = types.ModuleType("anndata")
    stand_in.read_h5ad = lambda path: types.SimpleNamespace(X=cells, var_names=GENES)
    monkeypatch.setitem(sys.modules, "anndata", stand_in)
    with pytest.raises(ex.TableFileError, match=r"cannot be read as \.h5ad"):
        read_spins(tmp_path / "a.h5ad")


def test_without_anndata_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ex.TableFileError, match="pip install anndata"):
        read_spins(tmp_path / "a.h5ad")


def test_formats_that_cannot_be_transposed_say_so(tmp_path):
    with pytest.raises(ex.TableFileError, match="not read with variables in rows"):
        read_spins(tmp_path / "a.parquet", transpose=True)


def test_columns_that_hardly_change_are_left_out_and_named(tmp_path):
    table = np.zeros((100, 4), dtype=int)
    for j, n_high in enumerate((50, 3, 98, 0)):
        table[:n_high, j] = 1
    np.savetxt(tmp_path / "a.csv", table, "%d", ",", header="a,b,c,d", comments="")
    with pytest.warns(
        ex.RareColumnsWarning, match=r"3 of 4 columns .* fewer than 5 rows.*'b'"
    ) as told:
        assert read_spins(tmp_path / "a.csv", min_count=5).packed.names == ("a",)
    assert told[0].message.columns == ("b", "c", "d")
    with pytest.warns(ex.RareColumnsWarning, match=r"more than 0\.97 of the rows"):
        assert read_spins(tmp_path / "a.csv", max_share=0.97).packed.names == ("a", "b")
    with pytest.raises(ex.TableFileError, match="none is left"):
        read_spins(tmp_path / "a.csv", min_count=60)


def test_missing_cells_count_for_neither_value(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n" + "0,0\n" * 6 + "1,1\n" * 3 + ",1\n" * 3)
    with pytest.warns(ex.RareColumnsWarning, match="'a'"):
        kept = read_spins(tmp_path / "a.csv", min_count=4, missing="pairwise").packed
    assert kept.names == ("b",)


def test_missing_cells_of_columns_that_are_left_out_cost_no_rows(tmp_path):
    """Of 12 rows 8 were dropped, for a column that was left out."""
    rows = ["0,1,0"] * 4 + ["1,0,"] * 4 + ["1,1,"] * 3 + [",0,1"]
    (tmp_path / "a.csv").write_text("a,b,c\n" + "\n".join(rows) + "\n")
    with pytest.warns(ex.RareColumnsWarning, match="'c'"):
        reading = read_spins(tmp_path / "a.csv", min_count=2, missing="drop")
    assert reading.packed.names == ("a", "b")
    assert [column.name for column in reading.columns] == ["a", "b"]
    assert reading.packed.n_samples == 11
    assert reading.left_out == (11,)
    assert np.asarray(reading.packed).tolist() == [[-1, 1]] * 4 + [[1, -1]] * 4 + [[1, 1]] * 3


def test_columns_that_complete_rows_make_rare_are_left_out_too(tmp_path):
    rows = ["0,1,0,5"] * 4 + ["1,0,0,6"] * 4 + ["1,,1,7"] * 3
    (tmp_path / "a.csv").write_text("a,b,c,n\n" + "\n".join(rows) + "\n")
    with pytest.warns(ex.RareColumnsWarning, match="1 of 3 .*'c'"):
        reading = read_spins(
            tmp_path / "a.csv", min_count=2, missing="drop", counts="n", covariates=[]
        )
    assert reading.packed.names == ("a", "b")
    assert reading.counts.tolist() == [5] * 4 + [6] * 4
    assert reading.left_out == (8, 9, 10)


@pytest.mark.parametrize("missing", ["pairwise", "impute"])
def test_rows_that_only_rare_columns_fill_are_empty(tmp_path, missing):
    rows = ["0,1,,x"] * 4 + ["1,0,,y"] * 4 + [",,1,z"] * 2
    (tmp_path / "a.csv").write_text("a,b,c,z\n" + "\n".join(rows) + "\n")
    with pytest.warns(ex.EmptyRowsWarning, match="2 of 10"), pytest.warns(ex.RareColumnsWarning):
        reading = read_spins(tmp_path / "a.csv", min_count=2, missing=missing, covariates=["z"])
    assert reading.packed.n_samples == 8
    assert reading.covariates.array[:, 0].tolist() == ["x"] * 4 + ["y"] * 4
    assert reading.left_out == (8, 9)


def test_rows_of_a_histogram_are_rare_by_their_counts(tmp_path):
    """Seen to leave out both columns, each high in one pattern only."""
    (tmp_path / "a.csv").write_text("a,b,c,n\n0,0,0,60\n1,0,1,20\n0,1,0,19\n0,0,1,1\n")
    with pytest.warns(ex.RareColumnsWarning, match="'b'"):
        reading = read_spins(tmp_path / "a.csv", min_count=20, counts="n")
    assert reading.packed.names == ("a", "c")
    with pytest.warns(ex.RareColumnsWarning, match=r"0\.8 of the rows.*'b'"):
        assert read_spins(tmp_path / "a.csv", max_share=0.8, counts="n").packed.names == ("a", "c")


def test_the_command_reads_a_table_of_genes_in_rows(tmp_path, capsys, rng):
    table = rng.integers(0, 2, (80, 6))
    table[:, 5] = 0
    table[:2, 5] = 1
    names = [f"gene{j}" for j in range(6)]
    (tmp_path / "genes.csv").write_text(text_of(table, ",", names))
    arguments = ["fit", str(tmp_path / "genes.csv"), "-o", str(tmp_path / "fit"), "--transpose"]
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--min-count", "3", "--method", "ridge"])
    told = capsys.readouterr()
    assert stopped.value.code == 0, told.err
    assert "80 rows of 5 columns" in told.out
    assert "1 of 6 columns have one value in fewer than 3 rows, and were left out: 'gene5'" in (
        told.err
    )


@pytest.mark.parametrize("ending", ["csv", "tsv", "transposed"])
def test_blanks_may_stand_before_quotes(tmp_path, ending):
    """Seen to keep the quotes as letters: '"alive"' was no word for yes, and a comma cut a cell."""
    separator = "\t" if ending == "tsv" else ","
    rows = [["name", "a", "b,2", "c"]]
    rows += [
        [f"r{k}", "dead" if k % 2 else "alive", "no" if k % 3 else "yes", "1,0"] for k in range(7)
    ]
    if ending == "transposed":
        rows = [list(column) for column in zip(*rows, strict=True)]
    lines = [f"{separator} ".join(f'"{cell}"' for cell in row) for row in rows]
    path = tmp_path / f"a.{'tsv' if ending == 'tsv' else 'csv'}"
    path.write_text("\n".join(lines) + "\n")
    packed = read_spins(
        path, drop=["c"] + ["name"] * (ending != "transposed"), transpose=ending == "transposed"
    ).packed
    assert packed.names == ("a", "b,2")
    assert packed.mapping == (("dead", "alive"), ("no", "yes"))
    expected = [[1 - 2 * (k % 2), -1 if k % 3 else 1] for k in range(7)]
    assert np.asarray(packed).tolist() == expected


def test_cells_that_end_in_several_lines_after_a_blank_are_counted_and_cut_anywhere(
    tmp_path, monkeypatch
):
    text = 'a, "b\n2"\n' + '0, "yes\n"\n1, "no"\n' * 20 + "1\n"
    (tmp_path / "a.csv").write_text(text)
    for n_bytes in (1, 2, 3, 7, 1000):
        monkeypatch.setattr(layout, "_HEAD", 8)
        monkeypatch.setattr(tables_of_text, "_CHUNK", n_bytes)
        with pytest.raises(ex.TableFileError, match="line 63 has 1 cells where the first has 2"):
            read_spins(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text(text[:-2])
    packed = read_spins(tmp_path / "b.csv").packed
    assert packed.names == ("a", "b\n2")
    assert np.asarray(packed).tolist() == [[-1, 1], [1, -1]] * 20


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("blank", ["", " "])
def test_the_first_name_may_hold_the_end_of_a_line(tmp_path, separator, blank):
    """Before the first separator. Seen to be read as one column, or not at all."""
    between = f"{separator}{blank}" if separator != "\t" else separator
    rows = [['"a\nb, c; d"', '"e"'], *([str(k % 2), f'"{k % 2}"'] for k in range(9))]
    (tmp_path / "a.csv").write_text("\n\n" + "".join(between.join(row) + "\n" for row in rows))
    packed = read_spins(tmp_path / "a.csv").packed
    assert packed.names == ("a\nb, c; d", "e")
    assert np.asarray(packed).tolist() == [[2 * (k % 2) - 1] * 2 for k in range(9)]


@pytest.mark.parametrize(
    ("head", "pad"),
    [("a b c", "   "), ("a b c", "  "), ("a b c ", "  "), ("a\u00a0x b c", " {}  ")],
    ids=["three", "two", "blank behind", "names of rows"],
)
def test_cells_may_be_padded_below_names_that_are_not(tmp_path, rng, head, pad):
    """Seen to be refused: line 2 had 10 cells where the first had 3."""
    table = rng.integers(0, 2, (70, 3))
    below = [pad.format(k) + "   ".join(map(str, row)) + "\n" for k, row in enumerate(table)]
    (tmp_path / "a.txt").write_text(head + "\n" + "".join(below))
    reading = read_spins(tmp_path / "a.txt", columns=[head.split(" ")[0], "b", "c"])
    assert (np.asarray(reading.packed) == 2 * table - 1).all()


def test_empty_cells_between_single_blanks_are_missing_values(tmp_path):
    """And no padding: every row has as many cells."""
    (tmp_path / "a.txt").write_text("a b c\n0 1 1\n1  0\n 0 1\n1 1 \n0 0 1\n")
    packed = read_spins(tmp_path / "a.txt", missing="pairwise").packed
    assert np.asarray(packed).tolist() == [
        [-1, 1, 1],
        [1, 0, -1],
        [0, -1, 1],
        [1, 1, 0],
        [-1, -1, 1],
    ]
