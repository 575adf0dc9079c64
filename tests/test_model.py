import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.edge_table import CSV_COLUMNS
from isingkit.tables import read_spins

COUPLINGS = np.array([[0, 0.5, 0, -1.25], [0.5, 0, 0.125, 0], [0, 0.125, 0, 0], [-1.25, 0, 0, 0]])
FIELDS = [0.1, 0, -0.2, 0]
NAMES = ("Ann", "Bob", "Zoë", "x,y")


@pytest.fixture
def model():
    return ik.IsingModel(COUPLINGS, FIELDS, NAMES)


def test_dense_and_sparse_couplings_make_the_same_model(model):
    other = ik.IsingModel(scipy.sparse.coo_array(COUPLINGS), fields=FIELDS, names=list(NAMES))
    np.testing.assert_array_equal(other.couplings.toarray(), COUPLINGS)
    assert (model.n_spins, model.n_edges, other.names) == (4, 3, NAMES)
    assert repr(model) == "IsingModel(4 variables, 3 edges)"
    assert ik.IsingModel(COUPLINGS).names == ("x0", "x1", "x2", "x3")


@pytest.mark.parametrize(
    ("couplings", "says"),
    [
        ([[0, 1], [2, 0]], r"entry \(0, 1\) is 1 and entry \(1, 0\) is 2"),
        ([[3, 1], [1, 0]], r"entry \(0, 0\) is 3"),
        ([[0, np.nan], [np.nan, 0]], "NaN or infinity"),
        ([[0, 1, 0], [1, 0, 0]], r"shape is \(2, 3\)"),
        ([0, 1], r"shape is \(2,\)"),
        ("abc", "couplings are no numbers: 'abc'"),
        ({}, "couplings are no numbers: {}"),
    ],
)
def test_what_is_no_model_is_refused(couplings, says):
    with pytest.raises(ex.ModelError, match=says):
        ik.IsingModel(couplings)
    if np.ndim(couplings) == 2:
        with pytest.raises(ex.ModelError, match=says):
            ik.IsingModel(scipy.sparse.csr_array(np.array(couplings)))


def test_fields_and_names_must_fit():
    with pytest.raises(ex.ModelError, match="fields of shape"):
        ik.IsingModel(COUPLINGS, fields=[1, 2])
    with pytest.raises(ex.ModelError, match="fields are no numbers: 'up'"):
        ik.IsingModel(COUPLINGS, fields="up")
    for names in ("abc", 3):
        with pytest.raises(ex.SettingError, match="names must be a list of 4 texts"):
            ik.IsingModel(COUPLINGS, names=names)
    with pytest.raises(ex.ColumnNamesError, match="'a' repeated"):
        ik.IsingModel(COUPLINGS, names=["a", "a", "b", "c"])
    with pytest.raises(ex.ColumnNamesError, match="3 names"):
        ik.IsingModel(COUPLINGS, names=["a", "b", "c"])


def test_rounding_is_no_asymmetry_and_a_table_of_couplings_knows_its_names():
    assert ik.IsingModel([[0, 0.1 + 0.2], [0.3, 0]]).n_edges == 1
    assert ik.IsingModel(pd.DataFrame(COUPLINGS, columns=NAMES)).names == NAMES


def test_the_model_is_its_own_copy():
    couplings = COUPLINGS.copy()
    model = ik.IsingModel(couplings)
    couplings[0, 1] = 7
    assert model.couplings[0, 1] == 0.5


def test_the_last_digits_of_couplings_do_not_decide_on_the_order_of_edges(tmp_path):
    """They differ between processors; catches couplings compared to more than 9 decimals."""
    couplings = np.zeros((4, 4))
    couplings[2, 3] = -0.3
    couplings[0, 1] = 0.3 - 1e-12
    couplings[1, 3] = 0.3 + 1e-12
    couplings[0, 2] = 0.3 + 1e-8
    model = ik.IsingModel(couplings + couplings.T)
    pairs = [(str(edge["source"]), str(edge["target"])) for edge in model.edges()]
    assert pairs == [("x0", "x2"), ("x0", "x1"), ("x1", "x3"), ("x2", "x3")]
    np.testing.assert_array_equal(
        model.edges()["coupling"], [0.3 + 1e-8, 0.3 - 1e-12, 0.3 + 1e-12, -0.3]
    )
    model.to_csv(tmp_path / "edges.csv")
    lines = (tmp_path / "edges.csv").read_text().splitlines()[1:]
    assert [tuple(line.split(",")[:2]) for line in lines] == pairs


def test_edges_are_a_table_with_names_strongest_first(model):
    table = model.edges()
    assert table.dtype.names == ("source", "target", "coupling")
    assert table.tolist() == [("Ann", "x,y", -1.25), ("Ann", "Bob", 0.5), ("Bob", "Zoë", 0.125)]
    assert list(pd.DataFrame(table)["coupling"]) == [-1.25, 0.5, 0.125]
    assert len(ik.IsingModel(np.zeros((3, 3))).edges()) == 0


def test_networkx_gets_plain_python_types(model):
    graph = model.to_networkx()
    assert list(graph.nodes(data=True)) == [
        (name, {"field": field}) for name, field in zip(NAMES, FIELDS, strict=True)
    ]
    assert graph["Ann"]["Bob"] == {"coupling": 0.5}
    assert {
        type(x)
        for x in (*graph.nodes, graph["Ann"]["Bob"]["coupling"], graph.nodes["Ann"]["field"])
    } == {str, float}


def test_notebooks_show_the_picture_and_the_edges(model):
    shown = model._repr_html_()
    assert shown.startswith(f"<p>{model.n_spins} variables, {model.n_edges} edges</p><img alt=")
    assert "data:image/png;base64," in shown
    assert f"<p>{model.n_edges} rows</p>" in shown
    nothing = ik.IsingModel(np.zeros((3, 3)))._repr_html_()
    assert "<img" not in nothing
    scores = ik.score(model, model)
    assert "<tr><th>f1</th><td>1</td></tr>" in scores._repr_html_()


def test_a_fit_shows_its_network_below_its_settings(spins):
    estimator = ik.RidgeIsing(threshold=0.1)
    before = estimator._repr_html_()
    assert "<img" not in before
    estimator.fit(spins)
    assert "<img" in estimator._repr_html_()
    assert "<img" in estimator._repr_mimebundle_()["text/html"]
    assert "RidgeIsing" in estimator._repr_html_()


def test_graphml_and_csv_are_read_back(model, tmp_path):
    model.to_graphml(tmp_path / "model.graphml")
    graph = networkx.read_graphml(tmp_path / "model.graphml")
    assert graph["Bob"]["Zoë"] == {"coupling": 0.125, "weight": 0.125}
    for *_, edge in graph.edges(data=True):
        assert edge["weight"] == abs(edge["coupling"])
    model.to_csv(tmp_path / "edges.csv")
    with open(tmp_path / "edges.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(CSV_COLUMNS)
    assert [
        (row["source"], row["target"], float(row["coupling"])) for row in rows
    ] == model.edges().tolist()
    assert rows[0]["q_value"] == ""


def test_a_file_gives_back_the_model(model, tmp_path):
    model.save(tmp_path / "model.npz")
    back = ik.IsingModel.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(back.couplings.toarray(), COUPLINGS)
    np.testing.assert_array_equal(back.fields, FIELDS)
    assert back.names == NAMES


def test_files_of_others_are_refused_with_a_sentence_and_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "sprung"),)

    np.savez(tmp_path / "trap.npz", format=np.array([Trap()], dtype=object))
    np.save(tmp_path / "array.npy", np.eye(3))
    np.savez(tmp_path / "other.npz", data=np.eye(3))
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "empty.npz").write_bytes(b"")
    for path in tmp_path.glob("*.np*"):
        with pytest.raises(
            ex.FileFormatError,
            match="is not an isingkit model.*Give a file that isingkit has saved",
        ):
            ik.IsingModel.load(path)
    assert not (tmp_path / "sprung").exists()
    with pytest.raises(FileNotFoundError):
        ik.IsingModel.load(tmp_path / "nowhere.npz")


def test_damaged_files_are_refused_however_they_are_damaged(model, tmp_path, rng):
    """Or harmless, where the bit is one of a date, say: then what is read is what was saved."""
    model.save(tmp_path / "model.npz")
    whole = (tmp_path / "model.npz").read_bytes()
    refused = 0
    for k in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        (tmp_path / "damaged.npz").write_bytes(
            damaged if k % 10 else damaged[: rng.integers(len(whole))]
        )
        try:
            read = ik.IsingModel.load(tmp_path / "damaged.npz")
        except ex.FileFormatError:
            refused += 1
        else:
            assert (read.couplings != model.couplings).nnz == 0
            assert (read.names, read.fields.tolist()) == (model.names, model.fields.tolist())
    assert refused > 150


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"fields": np.ones(4)}, "its checksum differs"),
        ({"indices": np.array([10**6] * 6, dtype=np.int32)}, "its checksum differs"),
        ({"format": np.str_("isingkit model 9")}, "a newer isingkit has written it"),
        ({"format": np.str_("isingkit model 1"), "indptr": np.arange(5)}, "cannot be read as one"),
        ({"names": np.empty(0, "U1")}, "its checksum differs"),
    ],
)
def test_files_that_somebody_has_changed_are_refused(model, tmp_path, changed, problem):
    model.save(tmp_path / "model.npz")
    arrays = dict(np.load(tmp_path / "model.npz")) | changed
    np.savez(tmp_path / "changed.npz", **arrays)
    with pytest.raises(ex.FileFormatError, match=problem):
        ik.IsingModel.load(tmp_path / "changed.npz")


def test_a_file_of_the_first_version_is_read(model, tmp_path):
    model.save(tmp_path / "model.npz")
    arrays = dict(np.load(tmp_path / "model.npz")) | {"format": np.str_("isingkit model 1")}
    del arrays["checksum"]
    np.savez_compressed(tmp_path / "first.npz", **arrays)
    read = ik.IsingModel.load(tmp_path / "first.npz")
    assert (read.couplings != model.couplings).nnz == 0
    assert read.names == model.names


def test_a_file_that_claims_more_than_it_holds_is_refused_at_once(model, tmp_path):
    """A header of 4 x 2^40 numbers over nothing."""
    header = io.BytesIO()
    shape = {"descr": "|i1", "fortran_order": False, "shape": (4, 1 << 40)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive:
        archive.writestr("data.npy", header.getvalue() + bytes(100))
    tracemalloc.start()
    with pytest.raises(ex.FileFormatError):
        ik.IsingModel.load(tmp_path / "bomb.npz")
    with pytest.raises(ex.TableFileError, match="cannot be read as numbers"):
        read_spins(tmp_path / "bomb.npz")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 24


def test_a_killed_process_never_leaves_half_a_file(tmp_path):
    """Saving over and over, killed at some moment: the file is always whole."""
    program = (
        "import numpy as np, isingkit as ik\n"
        "j = np.random.default_rng(0).normal(size=(300, 300))\n"
        "model = ik.IsingModel((j + j.T) * (1 - np.eye(300)))\n"
        "while True: model.save('model.npz'); print(flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE
    ) as process:
        for _ in range(3):
            process.stdout.readline()
        time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert ik.IsingModel.load(tmp_path / "model.npz").n_spins == 300


ODD = ("a,b", 'ß <&> "q"', "x y", "日本")


@pytest.mark.parametrize("kind", ["csv", "graphml", "gexf", "json", "networkx"])
def test_names_signs_and_fields_survive_a_round_trip_through_networkx(tmp_path, kind):
    model = ik.IsingModel(
        [[0, 0.1 + 0.2, 0, -1e-7], [0.1 + 0.2, 0, -0.5, 0], [0, -0.5, 0, 0], [-1e-7, 0, 0, 0]],
        [0.25, -1.5, 0, 1 / 3],
        ODD,
    )
    path = tmp_path / f"model.{kind}"
    if kind == "networkx":
        graph = model.to_networkx()
    else:
        getattr(model, f"to_{kind}")(path)
    if kind == "csv":
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        graph = networkx.Graph()
        graph.add_nodes_from(
            (name, {"field": field}) for name, field in zip(ODD, model.fields, strict=True)
        )
        graph.add_edges_from(
            (row["source"], row["target"], {"coupling": float(row["coupling"])}) for row in rows
        )
    elif kind == "graphml":
        graph = networkx.read_graphml(path)
    elif kind == "gexf":
        graph = networkx.read_gexf(path)
        assert {edge["weight"] for *_, edge in graph.edges(data=True)} == {0.1 + 0.2, 0.5, 1e-7}
    elif kind == "json":
        graph = networkx.node_link_graph(
            json.loads(path.read_text(encoding="utf-8")), edges="edges"
        )
    back = ik.IsingModel(
        networkx.to_numpy_array(graph, ODD, weight="coupling", nonedge=0.0),
        [graph.nodes[name]["field"] for name in ODD],
        ODD,
    )
    np.testing.assert_array_equal(back.couplings.toarray(), model.couplings.toarray())
    np.testing.assert_array_equal(back.fields, model.fields)


def test_the_matrix_of_couplings_is_written_as_csv_and_npz(tmp_path):
    model = ik.IsingModel([[0, -0.3, 0], [-0.3, 0, 1 / 3], [0, 1 / 3, 0]], names=ODD[:3])
    model.to_adjacency(tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert tuple(head[1:]) == tuple(row[0] for row in rows) == ODD[:3]
    np.testing.assert_array_equal(
        np.array([row[1:] for row in rows], dtype=float), model.couplings.toarray()
    )
    model.to_adjacency(tmp_path / "a.npz")
    np.testing.assert_array_equal(
        scipy.sparse.load_npz(tmp_path / "a.npz").toarray(), model.couplings.toarray()
    )
    with pytest.raises(ex.SettingError, match=".csv or .npz"):
        model.to_adjacency(tmp_path / "a.txt")


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_names_that_xml_cannot_hold_are_refused(tmp_path, kind):
    with pytest.raises(ex.SettingError, match="without control characters"):
        getattr(ik.IsingModel(np.zeros((2, 2)), names=["a\x0bb", "c"]), f"to_{kind}")(
            tmp_path / "x"
        )
    assert not list(tmp_path.iterdir())


def test_odd_models_get_an_answer_or_a_sentence(tmp_path):
    """Seen to fail: the first was two spins of one name, the second no XML, the third an overflow
    in the report, and the fourth a division by zero.
    """
    couplings = np.array([[0, 0.5], [0.5, 0]])
    with pytest.raises(ex.SettingError, match="without the character NUL"):
        ik.IsingModel(couplings, names=["a", "a\0"])
    with pytest.raises(ex.SettingError, match="without the character NUL"):
        ik.as_spins(pd.DataFrame([[0, 1], [1, 0]], columns=["a", "a\0"]))
    for name in ("b\uffff", "b\ud800", "b\x01"):
        with pytest.raises(ex.SettingError, match="XML cannot hold"):
            ik.IsingModel(couplings, names=["a", name]).to_graphml(tmp_path / "x.graphml")
    with pytest.raises(ex.ModelError, match="it holds a number beyond 1e\\+100"):
        ik.IsingModel(couplings * 1e308)
    nothing = ik.IsingModel(np.zeros((0, 0)))
    assert ik.score(nothing, nothing).exact
