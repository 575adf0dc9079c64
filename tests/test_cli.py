import csv
import html
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import isingkit as ik
from isingkit import __version__
from isingkit import exceptions as ex
from isingkit._kernels import gram, row_dependence
from isingkit._kernels.compilation import NOTICE
from isingkit._kernels.packing import pack_words, unpack_rows
from isingkit.cli import main, root, warm_up
from isingkit.cli.foreign import FOREIGN_METHODS, FOREIGN_OPTIONS
from isingkit.cli.method import METHODS
from isingkit.cli.wording import as_options
from isingkit.experiments import demo, scale
from isingkit.fit_folder import write_fit
from isingkit.report import figures
from isingkit.report.contents import contents_in
from isingkit.tables import listed


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    return stopped.value.code, *capsys.readouterr()


def test_help_and_version_are_there(capsys):
    for arguments in (["--help"], ["-h"], []):
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert "demo" in out
    assert run(capsys, "--version")[1].strip() == f"isingkit, version {__version__}"
    assert "--output" in run(capsys, "demo", "--help")[1]


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--nonsense"], ["demo", "--nonsense"], ["demo", "--seed", "many"]]
)
def test_a_mistake_exits_2_with_one_line_that_says_what_to_do(capsys, arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("isingkit: ")
    assert err.count("\n") == 1
    assert "--help" in err


def test_a_folder_that_cannot_be_made_exits_2_with_one_line(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = run(capsys, "demo", "-o", str(tmp_path / "file" / "folder"))
    assert (code, out) == (2, "")
    assert err.startswith("isingkit: Not a directory: ")
    assert err.count("\n") == 1


def test_demo_finds_both_networks_and_draws_them(tmp_path):
    """Run as a user would, from another folder: one JSON object on stdout, progress on stderr."""
    command = [sys.executable, "-m", "isingkit", "demo", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    facts = json.loads(done.stdout)
    small, large = facts["planted"]
    assert (small["n_spins"], small["n_samples"]) == (200, 180)
    assert min(small["precision"], small["recall"]) > 0.85
    assert min(large["precision"], large["recall"]) > 0.97
    assert facts["digits"]["touching_share"] > 0.8 > 5 * facts["digits"]["touching_by_chance"]
    assert (tmp_path / "isingkit-demo" / "networks.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "isingkit-demo" / "digits-edges.csv").read_text().count("\n") == facts[
        "digits"
    ]["edges_found"] + 1
    page = (tmp_path / "isingkit-demo" / "report.html").read_text(encoding="utf-8")
    said = page.partition('class="warnings"')[2].partition("</section>")[0]
    assert ("--covariates" in said, "covariates=" in said) == (True, False)
    assert "drawing" in done.stderr


def test_demo_prints_a_table_for_people(capsys, tmp_path, monkeypatch):
    """Of one small world; the report of the digits is made by the test above."""
    monkeypatch.setattr(demo, "Config", partial(demo.Config, sizes=((40, 60),)))
    monkeypatch.setattr(demo, "digits_report", lambda rank: "<html></html>")
    code, out, _ = run(capsys, "demo", "-o", str(tmp_path))
    assert code == 0
    heading, row = out.splitlines()[2:4]
    assert "planted     found  precision    recall" in heading
    assert row.split()[:3] == ["40", "60", "60"]
    assert "join touching pixels" in out
    assert str(tmp_path / "networks.png") in out
    assert (tmp_path / "report.html").as_uri() in out


def test_demo_leaves_the_report_of_a_fit_alone(capsys, tmp_path):
    report = tmp_path / "report.html"
    report.write_text("<title>my study: network of 9 variables</title>")
    code, _, err = run(capsys, "demo", "-o", str(tmp_path))
    assert code == 2
    assert "is something else: name another folder with -o" in err
    assert report.read_text().startswith("<title>my study")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_teacher_is_made_sampled_and_found_again(capsys, tmp_path):
    """The samples' file goes to an estimator without being unpacked."""
    teacher, samples = str(tmp_path / "teacher.npz"), str(tmp_path / "samples.spins")
    arguments = [
        "--spins",
        "30",
        "--degree",
        "3",
        "--coupling",
        "0.4",
        "--seed",
        "3",
        "-o",
        teacher,
    ]
    code, out, _ = run(capsys, "teacher", "random-regular", *arguments, "--json")
    facts = json.loads(out)
    assert (code, facts["n_spins"], facts["n_edges"]) == (0, 30, 45)
    assert facts["phase"]["glass"] == pytest.approx(0.289, abs=0.001)
    assert facts["phase"]["holds"] is True
    code, out, err = run(
        capsys, "sample", teacher, "--samples", "3000", "--seed", "4", "-o", samples, "--json"
    )
    assert (code, json.loads(out)["n_samples"]) == (0, 3000)
    assert "sweep" in err
    truth, drawn = ik.IsingModel.load(teacher), ik.PackedSpins.map(samples)
    assert ik.score(ik.LinearIsing(threshold=0.15).fit(drawn).model_, truth).exact
    assert ik.sample(truth, n_samples=3000, random_state=4).words.tolist() == drawn.words.tolist()
    for suffix, read in (
        (".npy", np.load),
        (".csv", lambda path: np.loadtxt(path, delimiter=",", skiprows=1)),
    ):
        code, out, _ = run(
            capsys,
            "sample",
            teacher,
            "--samples",
            "3000",
            "--seed",
            "4",
            "-o",
            str(tmp_path / f"samples{suffix}"),
        )
        assert code == 0
        assert "3000 samples of 30 spins" in out
        np.testing.assert_array_equal(read(tmp_path / f"samples{suffix}"), np.asarray(drawn))


@pytest.mark.parametrize(
    ("kind", "options", "n_edges"),
    [
        ("erdos-renyi", ["--spins", "50", "--mean-degree", "0"], 0),
        ("square-lattice", ["--side", "4"], 32),
        ("square-lattice", ["--side", "4", "--open"], 24),
        ("random-tree", ["--spins", "50", "--signs", "fixed", "--field", "0.1"], 49),
    ],
)
def test_every_kind_of_teacher_is_made(capsys, tmp_path, kind, options, n_edges):
    code, out, _ = run(
        capsys, "teacher", kind, *options, "--coupling", "0.2", "-o", str(tmp_path / "teacher.npz")
    )
    assert code == 0
    assert f"{n_edges} edges" in out
    assert ik.IsingModel.load(tmp_path / "teacher.npz").n_edges == n_edges


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["teacher", "random-tree", "--coupling", "1", "-o", "x.npz"], "random-tree needs --spins"),
        (
            ["teacher", "random-tree", "--spins", "5", "--coupling", "1", "-o", "-"],
            "a model is saved as .npz, not as '-'",
        ),
        (
            [
                "teacher",
                "random-tree",
                "--spins",
                "5",
                "--degree",
                "3",
                "--coupling",
                "1",
                "-o",
                "x.npz",
            ],
            "takes no --degree",
        ),
        (
            ["teacher", "random-tree", "--spins", "5", "--open", "--coupling", "1", "-o", "x.npz"],
            "takes no --open",
        ),
        (
            [
                "teacher",
                "random-regular",
                "--spins",
                "5",
                "--degree",
                "3",
                "--coupling",
                "1",
                "-o",
                "x.npz",
            ],
            "n_spins * degree even",
        ),
        (
            ["teacher", "random-tree", "--spins", "5", "--coupling", "1", "-o", "nowhere/x.npz"],
            "no such folder: nowhere",
        ),
        (["sample", "nothing.npz", "--samples", "5", "-o", "x.spins"], "does not exist"),
        (["sample", __file__, "--samples", "5", "-o", "x.spins"], "is not an isingkit model"),
        (["sample", __file__, "--samples", "5", "-o", "x.txt"], ".spins, .npy or .csv"),
        (
            ["sample", __file__, "--samples", "5", "-o", "nowhere/x.spins"],
            "no such folder: nowhere",
        ),
    ],
)
def test_mistakes_with_teachers_and_samples_say_what_to_do(
    capsys, monkeypatch, tmp_path, arguments, says
):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert not list(tmp_path.iterdir())


def test_interrupted_sampling_leaves_no_file(tmp_path):
    """Ctrl-C in the middle of a long run: exit code 130 and an empty folder but for the teacher."""
    ik.random_regular(n_spins=2000, degree=3, coupling=0.4, random_state=0).save(
        tmp_path / "teacher.npz"
    )
    command = [
        sys.executable,
        "-m",
        "isingkit",
        "sample",
        "teacher.npz",
        "--samples",
        "4096",
        "--warm-up",
        "10000000",
        "-o",
        "x.spins",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        seen = ""
        while "sweep" not in seen:
            seen += process.stderr.read(1)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert process.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["teacher.npz"]


def test_theory_prints_the_prediction_and_what_a_network_needs(capsys):
    graph = ["theory", "--degree", "3", "--coupling", "0.4"]
    code, out, _ = run(
        capsys, *graph, "--samples-per-spin", "10", "--ridge", "10", "--depth", "2", "--json"
    )
    assert code == 0
    facts = json.loads(out)
    assert facts["rows"][0]["kappa"] == pytest.approx(19.132136, abs=1e-6)
    assert facts["rows"][0]["means"] == pytest.approx([0.149663, 0.031270], abs=1e-6)
    _, out, _ = run(capsys, *graph, "--spins", "100", "--probability", "0.9", "--json")
    needed = json.loads(out)["samples_needed"]
    assert needed["n_samples"] == ik.theory.samples_needed(100, 3, 0.4, 0.9)
    _, out, _ = run(capsys, *graph, "--spins", "100")
    assert "TwoStageIsing(ridge=" in out
    assert out.count("\n") == 2  # the answer and both limits alone
    assert f"need {ik.theory.pair_limit(100, 3, 0.4)} samples" in out
    assert f"fewer than {ik.theory.fano_limit(100, 3, 0.4)}" in out
    _, out, _ = run(capsys, *graph, "--ridge", "inf")
    assert "sum of squared errors" in out
    assert "sample correlations" in out
    facts = json.loads(
        run(capsys, *graph, "--ridge", "inf", "--json")[1], parse_constant=pytest.fail
    )
    assert facts["rows"][0]["effective_ridge"] is None


def test_theory_knows_other_losses_and_penalties(capsys):
    graph = ["theory", "--degree", "3", "--coupling", "0.4"]
    logistic = [*graph, "--loss", "pseudolikelihood", "--ridge", "0"]
    code, out, _ = run(capsys, *logistic, "--samples-per-spin", "10")
    assert code == 0
    assert "loss pseudolikelihood" in out
    assert f"{ik.theory.pseudolikelihood(3, 0.4, 10).rss:.6g}" in out
    _, out, _ = run(capsys, *logistic, "--sweep", "samples-per-spin=4:40:3", "--json")
    assert len(json.loads(out)["rows"]) == 3
    code, _, err = run(capsys, *logistic, "--samples-per-spin", "2")
    assert code == 2
    assert "more than 2.687" in err
    penalised = [*graph, "--spins", "200", "--samples", "300", "--l1", "0.2"]
    _, out, _ = run(capsys, *penalised)
    assert "LassoIsing(l1=0.2)" in out
    facts = json.loads(run(capsys, *penalised, "--loss", "screening", "--json")[1])["l1"]
    expected = ik.theory.sparse_recovery(200, 3, 0.4, 300, 0.2, loss="screening")
    assert facts["precision"] == expected.precision
    for wrong in (["--l1", "0.2"], ["--l1", "0.2", "--samples", "30"], ["--samples", "30"]):
        code, _, err = run(capsys, *graph, *wrong)
        assert code == 2
        assert "--l1" in err


def test_theory_sweeps_a_parameter_and_draws_it(capsys, tmp_path):
    model = ik.random_tree(n_spins=50, coupling=0.4, random_state=0)
    model.save(tmp_path / "tree.npz")
    for teacher in (
        ["--degree", "3", "--coupling", "0.4"],
        ["--model", str(tmp_path / "tree.npz"), "--spin", "3"],
        ["--mean-degree", "2", "--coupling", "0.3"],
    ):
        picture = tmp_path / f"{teacher[0]}.svg"
        code, out, err = run(
            capsys, "theory", *teacher, "--sweep", "ridge=0.1:10:3", "--plot", str(picture)
        )
        assert (code, err) == (0, "")
        assert (
            len(out.splitlines()) == 6
        )  # what was asked, a header, three rows, where it was drawn
        assert "generation 1" in picture.read_text() or "<svg" in picture.read_text()
    _, out, _ = run(capsys, "theory", "--degree", "3", "--sweep", "coupling=0.1:0.3:3", "--json")
    assert [row["coupling"] for row in json.loads(out)["rows"]] == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--coupling", "0.4"],
        ["--degree", "3"],
        ["--degree", "3", "--mean-degree", "4", "--coupling", "0.4"],
        ["--degree", "3", "--coupling", "0.4", "--plot", "x.png"],
        ["--degree", "3", "--coupling", "0.4", "--sweep", "ridge=1:2"],
        ["--degree", "3", "--coupling", "0.4", "--sweep", "seed=1:2:3"],
        ["--degree", "3", "--coupling", "0.4", "--sweep", "ridge=0:1:3"],
        ["--mean-degree", "4", "--coupling", "0.4", "--spins", "100"],
        ["--mean-degree", "4", "--coupling", "0.4", "--depth", "2"],
        ["--degree", "3", "--coupling", "2"],
        ["--degree", "3", "--coupling", "0.4", "--spin", "2"],
        ["--degree", "3", "--coupling", "0.4", "--probability", "0.9"],
        ["--degree", "3", "--coupling", "0.4", "--ridge", "0", "--samples-per-spin", "0.5"],
    ],
)
def test_theory_refuses_what_it_cannot_answer_in_one_line(capsys, arguments):
    code, out, err = run(capsys, "theory", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("isingkit: ")
    assert err.count("\n") == 1


@pytest.fixture
def plain_pages(monkeypatch):
    """Reports without charts, which take most of the time of a small fit."""
    monkeypatch.setattr(figures, "_svg", lambda *_: "<svg></svg>")


@pytest.fixture
def survey(tmp_path, spins):
    """A table of names, yes/no answers and how often each row was seen."""
    path = tmp_path / "survey.csv"
    rows = ["person,seen," + ",".join(f"q{k}" for k in range(12))]
    rows += [
        f"p{n},1," + ",".join("yes" if value > 0 else "no" for value in row)
        for n, row in enumerate(spins)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.usefixtures("plain_pages")
def test_counts_and_groups_of_rows_count_in_the_resting_states_of_the_report(capsys, tmp_path):
    """Two columns that agree: 1,1 is seen half as often again as 0,0, in as many lines."""
    table = pd.DataFrame({"a": [1, 0] * 30, "b": [1, 0] * 30, "seen": [9, 6] * 30})
    table = pd.concat([table, table.assign(b=1 - table["b"], seen=1)[:24]])
    table["site"] = np.arange(len(table)) // 2 % 10
    table.to_csv(tmp_path / "rows.csv", index=False)
    found = []
    for name, columns in (("plain", ["--drop", "site"]), ("sites", ["--row-groups", "site"])):
        files = [str(tmp_path / "rows.csv"), "-o", str(tmp_path / name)]
        code, _, _ = run(capsys, "fit", *files, "--counts", "seen", *columns)
        assert code == 0
        found.append(contents_in(tmp_path / name / "report.html").landscape["minima"][0])
    plain, sites = found
    assert plain["up"] == sites["up"] == ["a", "b"]
    assert (
        plain["share"] == sites["share"] == pytest.approx(98 / 158, abs=0.02)
    )  # half of the lines
    assert sites["depth_error"] < 0.7 * plain["depth_error"]  # sites are alike


def test_fit_writes_a_folder_that_says_all(capsys, survey, spins, monkeypatch):
    monkeypatch.chdir(survey.parent)
    code, out, _ = run(capsys, "fit", str(survey), "--id-column", "person", "--counts", "seen")
    assert code == 0
    folder = survey.parent / "survey-fit"
    facts = json.loads((folder / "fit.json").read_text())
    assert set(facts) == {
        "n_spins", "n_samples", "n_edges", "method", "settings", "seed", "version", "date",
        "mapping", "warnings", "fingerprint", "covariates", "hidden_variance_shares",
        "n_merged", "files", "checksum",
    }  # fmt: skip
    assert (facts["n_spins"], facts["n_samples"], facts["method"], facts["version"]) == (
        12,
        300,
        "auto",
        __version__,
    )
    assert facts["mapping"]["q3"] == ["no", "yes"]
    model = ik.IsingModel.load(folder / "model.npz")
    assert model.names == tuple(f"q{k}" for k in range(12))
    direct = ik.AutoIsing().fit(spins).model_
    np.testing.assert_allclose(model.couplings.toarray(), direct.couplings.toarray(), atol=1e-12)
    lines = (folder / "edges.csv").read_text().splitlines()
    assert lines[0] == "source,target,coupling,low,high,std_error,z,p_value,q_value"
    assert len(lines) == facts["n_edges"] + 1 == model.n_edges + 1
    strengths = [abs(float(line.split(",")[2])) for line in lines[1:]]
    assert strengths == sorted(strengths, reverse=True)
    assert "300 rows of 12 columns, method auto" in out
    assert "no is -1, yes is +1 (12 columns)" in out
    assert "how sure: some 5% of the edges, 1 or so, may be false" in out
    assert not list(survey.parent.glob(".*"))  # nothing half-written is left


@pytest.mark.usefixtures("plain_pages")
def test_fit_takes_methods_and_their_settings(capsys, survey):
    folder = survey.parent / "ridge"
    arguments = [
        "fit",
        str(survey),
        "--drop",
        "person,seen",
        "-o",
        str(folder),
        "--method",
        "ridge",
        "--set",
        "ridge=0.5",
        "--json",
    ]
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    facts = json.loads(out)
    assert facts == json.loads((folder / "fit.json").read_text())
    assert facts["settings"]["ridge"] == 0.5
    assert (folder / "edges.csv").read_text().splitlines()[1].endswith(",,,,")
    assert run(capsys, *arguments)[0] == 2  # it is there
    assert "--force" in run(capsys, *arguments)[2]
    assert run(capsys, *arguments, "--force")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "magic"], "there is no method 'magic'; there are"),
        (["--set", "ridge=1"], "method 'auto' has no setting 'ridge'; it has"),
        (["--set", "level"], "--set wants NAME=VALUE, not 'level'"),
        (["--columns", "nobody"], "there is no column 'nobody'; there are person, seen, q0"),
        ([], "person"),
        (["--level", "2"], "--level"),
    ],
)
def test_mistakes_of_fit_get_one_line(capsys, survey, arguments, words):
    code, out, err = run(capsys, "fit", str(survey), "-o", str(survey.parent / "x"), *arguments)
    assert (code, out) == (2, "")
    assert words in err
    said = [line for line in err.split("\n") if line and "compiling, once" not in line]
    assert len(said) == 1
    assert not (survey.parent / "x").exists()


def test_fit_leaves_folders_that_are_no_fits_alone(capsys, survey):
    (survey.parent / "mine").mkdir()
    (survey.parent / "mine" / "precious").write_text("")
    arguments = ["fit", str(survey), "--drop", "person,seen", "-o", str(survey.parent / "mine")]
    for more in ([], ["--force"]):
        code, _, err = run(capsys, *arguments, *more)
        assert code == 2
        assert "is no fit" in err
    assert (survey.parent / "mine" / "precious").exists()
    with pytest.raises(ex.FolderExistsError):
        write_fit(None, "", survey.parent / "mine", force=True)


@pytest.mark.usefixtures("plain_pages")
def test_fit_tells_how_numbers_became_spins(capsys, tmp_path, rng):
    np.save(tmp_path / "rates.npy", rng.random((200, 4)))
    code, out, _ = run(
        capsys,
        "fit",
        str(tmp_path / "rates.npy"),
        "-o",
        str(tmp_path / "x"),
        "--binarize",
        "0.5",
        "--json",
    )
    assert code == 0
    assert json.loads(out)["settings"]["binarize"] == 0.5


# The command line as a whole


def test_tab_completes_commands_options_and_methods(capsys, monkeypatch):
    def completed(*words):
        monkeypatch.setenv("_ISINGKIT_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["isingkit", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return {line.partition(",")[2] for line in run(capsys)[1].splitlines()}

    assert completed("co") == {"compare", "compare-groups", "completion"}
    assert "--missing" in completed("fit", "--mi")
    assert completed("fit", "--method", "two") == {"two-stage"}
    assert completed("fit", "--missing", "p") == {"pairwise"}
    monkeypatch.delenv("_ISINGKIT_COMPLETE")
    for shell in ("bash", "zsh", "fish"):
        code, out, _ = run(capsys, "completion", shell)
        assert code == 0
        assert "_ISINGKIT_COMPLETE" in out
    assert run(capsys, "completion", "dos")[0] == 2


def test_warming_up_takes_every_road_and_says_what_it_compiled(capsys, monkeypatch):
    """But the last with few columns, for its own kernels take half a minute."""
    monkeypatch.setattr(warm_up, "_MANY", 60)
    code, out, err = run(capsys, "warm-up", "--json")
    rows = {row["what"]: row for row in json.loads(out)["compiled"]}
    assert code == 0
    assert {f"method {name}" for name in METHODS} < set(rows)
    assert {"reading tables", "many rows", "sampling", "report", "many columns"} < set(rows)
    assert "compiling: sampling" in err
    roads = warm_up._roads()
    few = {name: roads[name] for name in ("reading tables", "method auto")}
    monkeypatch.setattr(warm_up, "_roads", lambda: few)
    assert run(capsys, "warm-up")[1].endswith("\nall of it was compiled before\n")


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")
def test_warming_up_compiles_what_only_large_tables_need(tmp_path):
    warm_up._pack_many(tmp_path)
    assert {str(values.dtype) for _, _, values, _ in pack_words.signatures} == {"int8"}
    assert {str(out.dtype) for _, _, _, out in unpack_rows.signatures} == {"int8", "float64"}
    assert row_dependence.distance_counts.signatures
    assert row_dependence.lagged_distances.signatures
    assert gram.pair_sums.signatures or gram.mirror.signatures  # by popcount or by look-up


def test_the_first_fit_of_an_installation_says_once_that_it_compiles(survey, tmp_path):
    """On stderr; the second has nothing to compile."""
    arguments = ["fit", survey, "--drop", "person,seen", "--method", "linear", "--force", "--json"]
    command = [sys.executable, "-m", "isingkit", *map(str, arguments)]
    settings = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    first, second = (
        subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
        for _ in range(2)
    )
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stderr.count(NOTICE) == 1
    assert NOTICE not in second.stderr
    assert NOTICE not in first.stdout


def test_samples_and_reports_are_printed_where_a_dash_says_so(capsys, tmp_path):
    teacher = str(tmp_path / "t.npz")
    assert (
        run(capsys, "teacher", "random-tree", "--spins", "5", "--coupling", "0.4", "-o", teacher)[0]
        == 0
    )
    code, out, _ = run(capsys, "sample", teacher, "--samples", "7", "-o", "-")
    assert code == 0
    rows = out.splitlines()
    assert (rows[0], len(rows)) == ('"x0","x1","x2","x3","x4"', 8)
    assert set(",".join(rows[1:]).split(",")) == {"-1", "1"}
    assert run(capsys, "report", teacher, "-o", "-")[1].startswith("<!DOCTYPE html>")
    for command in (["sample", teacher, "--samples", "7"], ["report", teacher]):
        assert run(capsys, *command, "-o", "-", "--json")[0] == 2


def test_a_model_has_a_report_and_a_score(capsys, tmp_path):
    teacher = tmp_path / "t.npz"
    run(capsys, "teacher", "random-tree", "--spins", "5", "--coupling", "0.4", "-o", str(teacher))
    code, out, _ = run(capsys, "report", str(teacher), "--title", "A tree", "--json")
    assert code == 0
    facts = json.loads(out)
    assert (facts["n_spins"], facts["n_edges"], facts["title"]) == (5, 4, "A tree")
    assert "<h1>A tree</h1>" in (tmp_path / "t.html").read_text(encoding="utf-8")
    model = ik.IsingModel.load(teacher)
    less = model.couplings.toarray()
    i, j = np.argwhere(less)[0]
    less[i, j] = less[j, i] = 0
    ik.IsingModel(less).save(tmp_path / "less.npz")
    scores = json.loads(run(capsys, "score", str(tmp_path / "less.npz"), str(teacher), "--json")[1])
    assert (scores["precision"], scores["recall"], scores["false_negatives"]) == (1, 0.75, 1)
    assert (
        "recall       0.7500  1 missed"
        in run(capsys, "score", str(tmp_path / "less.npz"), str(teacher))[1]
    )
    assert (
        "is not an isingkit model"
        in run(capsys, "score", str(tmp_path / "t.html"), str(teacher))[2]
    )


@pytest.mark.usefixtures("plain_pages")
def test_a_report_is_written_anew_with_groups(capsys, survey):
    folder = survey.parent / "found"
    assert run(capsys, "fit", str(survey), "--drop", "person,seen", "-o", str(folder))[0] == 0
    groups = survey.parent / "groups.csv"
    groups.write_text(
        "item,scale\n" + "".join(f"q{k},{'mood' if k < 6 else 'sleep'}\n" for k in range(12))
    )
    before = contents_in(folder / "report.html")
    assert before.spins[0]["group"] is None
    assert run(capsys, "report", str(folder), "--groups", str(groups))[0] == 0
    after = contents_in(folder / "report.html")
    assert [spin["group"] for spin in after.spins] == ["mood"] * 6 + ["sleep"] * 6
    assert after.check == before.check
    assert (
        run(
            capsys,
            "fit",
            str(survey),
            "--drop",
            "person,seen",
            "-o",
            str(folder),
            "--force",
            "--groups",
            str(groups),
        )[0]
        == 0
    )
    assert contents_in(folder / "report.html") == after
    code, _, err = run(
        capsys, "report", str(folder), "--groups", str(groups), "--group-by", "colour"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "there is no column 'colour'; there are item, scale" in err
    assert "there are no --groups" in run(capsys, "report", str(folder), "--group-by", "scale")[2]
    assert "holds no fit" in run(capsys, "report", str(survey.parent))[2]


def test_a_full_disk_is_told_in_one_line_and_leaves_nothing(survey):
    """No file of this process may exceed 4 kB, which stops writing as a full disk does."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "from isingkit.cli import main;"
        "import isingkit.cli.fit, isingkit.report.page, isingkit.comparison;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); main(sys.argv[1:])"
    )
    arguments = ["fit", str(survey), "--drop", "person,seen", "-o", str(survey.parent / "found")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 2
    assert last.endswith("; name another folder with -o.")
    assert "File too large" in last
    assert [path.name for path in survey.parent.iterdir()] == ["survey.csv"]


def test_an_interrupted_fit_leaves_nothing_behind(tmp_path):
    path = tmp_path / "big.npy"
    np.save(path, np.random.default_rng(0).integers(0, 2, (3000, 400), dtype=np.int8))
    command = [
        sys.executable,
        "-m",
        "isingkit",
        "fit",
        str(path),
        "-o",
        str(tmp_path / "found"),
        "--method",
        "boltzmann",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    seen = ""
    while "learning" not in seen:
        more = process.stderr.read(1)
        assert more, "it ended before it was interrupted"
        seen += more
    process.send_signal(signal.SIGINT)
    assert "isingkit: interrupted" in process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert [one.name for one in tmp_path.iterdir()] == ["big.npy"]


def mistaken(tmp_path):
    """Files with a mistake in each, the option that goes with them, and words of the line that is
    told.
    """
    good = "a,b,c\n" + "0,1,1\n1,0,1\n1,1,0\n0,0,0\n" * 20

    def file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    yield str(tmp_path / "nowhere.csv"), [], "does not exist"
    yield str(tmp_path), [], "is a directory"
    yield (
        file("table.xlsx", b"PK\x03\x04"),
        [],
        "a file of Excel: save it there as CSV, and take that",
    )
    yield file("table.doc", b"PK\x03\x04"), [], "its name ends in none of .csv, .tsv"
    yield (
        file("a.csv", good),
        ["--id-column", "person"],
        "there is no column 'person'; there are a, b, c",
    )
    yield file("b.csv", good), ["--columns", "a,d"], "there is no column 'd'"
    yield file("c.csv", good + "2,1,1\n"), [], "column 'a' holds 3 values (0, 1, 2)"
    yield (
        file("d.csv", good + ",1,\n"),
        [],
        "Give --missing impute to draw them from the network found",
    )
    yield file("e.csv", good + "1,1\n"), [], "line 82 has 2 cells where the first has 3"
    yield file("f.csv", ""), [], "it is empty"
    yield file("g.csv", "a,b,c\n"), [], "names of columns but no rows"
    yield (
        file("h.csv", np.random.default_rng(0).bytes(5000)),
        [],
        "cannot be read as text in columns",
    )
    yield file("i.csv.gz", b"no gzip"), [], "cannot be read as text in columns"
    yield file("j.parquet", b"PAR1 or not"), [], "cannot be read as Parquet"
    yield file("k.npy", b"\x93NUMPY"), [], "cannot be read as numbers"
    yield file("l.spins", b"ISINGPK1"), [], "is not"
    numbered = good.splitlines()
    people = "\n".join(
        [f"who are you,{numbered[0]}", *(f"p{k},{row}" for k, row in enumerate(numbered[1:]))]
    )
    yield (
        file("m.csv", people),
        [],
        "but two are needed: use --id-column 'who are you' or --drop 'who are you'",
    )
    yield file("n.csv", good), ["-o", str(tmp_path / "a.csv")], "a.csv"
    yield (
        file("o.csv", good),
        ["-o", "/proc/nowhere/found"],
        "no folder can be made there (No such file or directory); "
        "name another with -o: /proc/nowhere/found",
    )
    yield file("p.csv", "a,b\n0,1\n"), [], "at least 2"
    yield file("q.csv", good), ["--groups", str(tmp_path / "f.csv")], "a table of groups needs"
    yield file("r.csv", good), ["--weights", "nobody"], "there is no column 'nobody'"
    yield file("s.csv", good), ["--counts", "nobody"], "there is no column 'nobody'"
    yield (
        file("t.csv", good),
        ["--row-groups", "a", "--method", "ridge"],
        "--row-groups goes with --method auto, not with ridge",
    )
    yield (
        file("u.csv", good),
        ["--rows", "ordered", "--method", "ridge"],
        "method 'ridge' has no setting 'rows'",
    )


def test_every_mistake_on_the_way_gets_one_helpful_line(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for data, options, words in mistaken(tmp_path):
        code, out, err = run(capsys, "fit", data, *options)
        assert (code, out) == (2, ""), data
        assert err.startswith("isingkit: "), data
        assert err.count("\n") == 1, err
        assert words in err, (data, err)
    assert not list(tmp_path.glob("*-fit"))
    assert not list(tmp_path.glob(".*"))


OPEN_QUESTIONS = "\n".join(
    ["person,age,mood,sleep,worry,empty,Class"]
    + [
        f"p{k},{20.5 + k},{k % 2},{k // 2 % 2},{'' if k == 3 else k % 3 % 2},,{k % 2}"
        for k in range(40)
    ]
)


def test_check_and_a_failing_fit_list_every_column_that_needs_a_decision(capsys, tmp_path):
    path = tmp_path / "open.csv"
    path.write_text(OPEN_QUESTIONS)
    code, out, _ = run(capsys, "check", str(path))
    assert code == 1
    listed = [line.strip() for line in out.splitlines()[1:5]]
    assert [line.split(":")[0] for line in listed] == ["'person'", "'age'", "'empty'", "1 column"]
    assert listed[1].endswith(": --covariates age or --drop age")
    suggested = "--id-column person --covariates age --drop empty --missing impute"
    assert out.splitlines()[-1] == f"perhaps: isingkit fit {path} {suggested}"
    assert "'Class' looks like an outcome" in out
    code, _, err = run(capsys, "fit", str(path), "-o", str(tmp_path / "found"))
    assert code == 2
    assert [line.strip() for line in err.splitlines()[1:5]] == listed
    assert f"perhaps add: {suggested}" in err.splitlines()[-1]
    settled = [*suggested.split(), "--json"]
    code, out, _ = run(capsys, "check", str(path), *settled)
    facts = json.loads(out)
    assert (code, facts["decisions"], facts["outcomes"]) == (0, [], ["Class"])
    _, out, _ = run(capsys, "check", str(path), *suggested.split())
    assert "'Class' looks like an outcome" in out


@pytest.mark.parametrize(
    ("header", "values", "option"),
    [
        ("wave", "abc", "--covariates wave"),
        ("wt", (0.5, 1.25, 2.0), "--weights wt"),
        ("freq", (1, 5, 70), "--counts freq"),
        ("flag", (0, 1, 99), "--missing-codes 99 or --drop flag"),
        ("flag", (-999, 1, 2, 9), "--missing-codes -999,9 or --drop flag"),
        ("flag", ("yes", "no", "don't know"), '--missing-codes "don\'t know" or --drop flag'),
        ("flag", ("yes", "no", "refused", "never"), "--covariates flag"),
        ("flag", ("Yea", "Nay", "Not Voting", "Present"), "--missing-codes 'Not Voting,Present'"),
        ("flag", ("present", "absent", "unclear"), "--missing-codes unclear or --drop flag"),
        ("score", (0, 3, 9, 10), "--covariates score"),
        ("site", [f"s{k // 3}" for k in range(90)], "--row-groups site"),
        ("person", [k // 3 for k in range(90)], "--row-groups person or --covariates person"),
        ("row", range(1, 90), "--id-column row"),
        ("n", (7, 12, 70), "--covariates n or --drop n or --counts n"),
    ],
)
def test_the_likeliest_option_of_a_column_comes_first(capsys, tmp_path, header, values, option):
    path = tmp_path / "one.csv"
    rows = [f"{values[k % len(values)]},{k % 2},{k // 2 % 2}" for k in range(90)]
    path.write_text("\n".join([f"{header},a,b", *rows]))
    code, out, _ = run(capsys, "check", str(path))
    assert code == 1
    assert f": {option}" in out


def test_answers_on_a_scale_are_to_be_cut_in_two(capsys, tmp_path, rng):
    answers = rng.integers(1, 6, (50, 4))
    path = tmp_path / "scale.csv"
    pd.DataFrame(answers, columns=list("abcd")).to_csv(path, index=False)
    _, out, _ = run(capsys, "check", str(path))
    assert out.rstrip().endswith("scale.csv --binarize 3")
    assert run(capsys, "check", str(path), "--binarize", "3")[0] == 0
    path.write_text(path.read_text() + ",1,2,3\n")  # what is missing in them is asked at once
    _, out, _ = run(capsys, "check", str(path))
    assert out.rstrip().endswith("scale.csv --binarize 3 --missing impute")


def mixed_survey(path, rng, codes):
    """Questions on a scale and of two answers, with codes of no answer, and what rows are."""
    scales = rng.integers(1, 6, (80, 3)) * (rng.random((80, 3)) > 0.05)
    table = pd.DataFrame(np.where(scales, scales, 9) if codes else rng.integers(1, 6, (80, 3)))
    table.columns = ["sad", "tired, often", "worried"]
    for name in "abcde"[: 5 if codes else 2]:
        table[name] = rng.integers(1, 3, 80)
    table["extra"] = rng.integers(0, 2, 80)
    table.to_csv(path, index=False)


@pytest.mark.parametrize("codes", [True, False], ids=["codes", "mostly scales"])
def test_what_is_proposed_for_a_table_of_scales_and_codes_can_be_used_as_it_is(
    capsys, tmp_path, rng, codes
):
    """Answers of 1 and 2 keep both values, and what has gaps is not proposed as a covariate."""
    mixed_survey(tmp_path / "mixed.csv", rng, codes)
    _, out, _ = run(capsys, "check", str(tmp_path / "mixed.csv"))
    words = shlex.split(out.splitlines()[-1].removeprefix("perhaps: isingkit fit "))
    assert words[words.index("--binarize") + 1] == 'sad=3,"tired, often=3",worried=3'
    code, out, _ = run(capsys, "check", *words, "--json")
    facts = json.loads(out)
    assert (code, facts["decisions"]) == (0, [])
    coded = {one["name"]: one["coding"] for one in facts["columns"]}
    assert (coded["tired, often"], coded["a"]) == (["<= 3", "> 3"], [1, 2])


def test_what_is_proposed_repeats_what_was_given(capsys, tmp_path, rng):
    mixed_survey(tmp_path / "mixed.csv", rng, True)
    asked = ["check", str(tmp_path / "mixed.csv"), "--missing-codes", "9", "--drop", "extra"]
    _, out, _ = run(capsys, *asked, "--binarize", "worried=2")
    words = shlex.split(out.splitlines()[-1].removeprefix("perhaps: isingkit fit "))
    assert run(capsys, "check", *words)[0] == 0
    assert words[words.index("--missing-codes") + 1] == "9"
    assert words[words.index("--drop") + 1] == "extra"
    assert words[words.index("--binarize") + 1].startswith("worried=2,")
    refused = ["fit", *asked[1:], "--missing", "error", "--binarize", "worried=2"]
    _, _, err = run(capsys, *refused, "-o", str(tmp_path / "fit"))
    words = shlex.split(err.rpartition("perhaps add: ")[2].partition("; see")[0])
    assert run(capsys, "check", *refused[1:], *words)[0] == 0


def test_one_column_only_is_proposed_for_what_there_is_one_of(capsys, tmp_path, rng):
    table = pd.DataFrame(rng.integers(0, 2, (60, 3)), columns=list("abc"))
    table[["weight", "base_weight"]] = rng.gamma(3, size=(60, 2))
    table.to_csv(tmp_path / "data.csv", index=False)
    _, out, _ = run(capsys, "check", str(tmp_path / "data.csv"))
    assert out.rstrip().endswith("--weights weight --drop base_weight")


def test_numbers_beside_most_of_all_patterns_are_likeliest_counts(capsys, tmp_path):
    lines = [f"{1000 + 37 * k},{k & 1},{k >> 1 & 1},{k >> 2 & 1}" for k in range(8)]
    (tmp_path / "histogram.csv").write_text("\n".join(lines) + "\n")
    _, out, _ = run(capsys, "check", str(tmp_path / "histogram.csv"))
    assert out.rstrip().endswith("histogram.csv --counts x0")


def test_a_threshold_that_cannot_be_read_is_refused_in_a_sentence(capsys, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,0\n2,1\n")
    code, _, err = run(capsys, "check", str(tmp_path / "a.csv"), "--binarize", "a>1")
    assert code == 2
    assert "'a>1' is neither a number nor NAME=NUMBER,NAME=NUMBER" in err


@pytest.mark.usefixtures("plain_pages")
def test_a_table_that_perhaps_stands_the_other_way_is_told_first(capsys, tmp_path, rng):
    signals = rng.choice([-1, 1], (7, 120))
    np.savetxt(tmp_path / "signals.dat", signals, fmt="%d", delimiter="\t")
    folder = tmp_path / "fit"
    code, _, err = run(capsys, "fit", str(tmp_path / "signals.dat"), "-o", str(folder))
    told = [line for line in err.splitlines() if "warning: " in line]
    assert code == 0
    assert told[0].endswith(str(ex.WideTableWarning(n_rows=7, n_columns=120)))
    assert "--transpose" in told[0]
    asked = ("fit", str(tmp_path / "signals.dat"), "--transpose", "--force", "-o", str(folder))
    assert "--transpose" not in run(capsys, *asked)[2]


@pytest.mark.filterwarnings("ignore:.*one value only", "ignore:.*left out")
def test_names_in_advice_can_be_pasted(capsys, tmp_path, rng):
    table = pd.DataFrame(rng.integers(0, 2, (60, 3)), columns=["a", "b", "x, class"])
    table["flag"] = 1
    table.to_csv(tmp_path / "data.csv", index=False)
    said = str(ex.OutcomeColumnWarning(columns=["x, class"]))
    _, out, _ = run(capsys, "check", str(tmp_path / "data.csv"))
    for text in (said, out):
        (name,) = re.findall(r"--drop ('[^']*')", text)
        asked = ("check", str(tmp_path / "data.csv"), "--drop", *shlex.split(name), "--json")
        names = [one["name"] for one in json.loads(run(capsys, *asked)[1])["columns"]]
        assert names == ["a", "b", "flag"]
    constant = as_options(str(ex.ConstantColumnWarning(columns=["flag"])))
    assert constant.endswith(": --min-count 1 leaves it out.")
    asked = ("check", str(tmp_path / "data.csv"), "--min-count", "1", "--json")
    assert json.loads(run(capsys, *asked)[1])["n_spins"] == 3


def test_a_table_in_place_of_a_model_leads_to_its_fit(capsys, survey):
    code, _, err = run(capsys, "plan", str(survey))
    assert code == 2
    assert f"isingkit fit {survey}, then isingkit plan {survey.stem}-fit" in err
    _, _, err = run(capsys, "plan")
    words = shlex.split(re.search("'(isingkit plan .*?)'", err)[1])
    known = {name for one in root.get_command(None, "plan").params for name in one.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_columns_that_ask_the_same_are_told_together(capsys, tmp_path, rng):
    table = pd.DataFrame(rng.choice([0, 1, -999], (60, 4), p=[0.5, 0.4, 0.1]), columns=list("abcd"))
    table["age of head"] = rng.normal(size=60)
    path = tmp_path / "codes.csv"
    table.to_csv(path, index=False)
    _, out, _ = run(capsys, "check", str(path))
    assert out.splitlines()[:4] == [
        f"3 things to decide in {path}:",
        "  4 columns: 3 values (-999, 0, 1), of which -999 may stand for no answer: "
        "--missing-codes -999 or --drop NAME",
        "    a, b, c, d",
        out.splitlines()[3],
    ]
    assert out.splitlines()[3].startswith("  'age of head': ")
    _, _, err = run(capsys, "fit", str(path))
    assert err.splitlines()[1:4] == out.splitlines()[1:4]


def test_where_nothing_would_be_left_nothing_is_proposed(capsys, tmp_path, rng):
    """Seen to fail: every column of three answers as a covariate of the others."""
    path = tmp_path / "maybe.csv"
    answers = rng.choice(["no", "maybe", "yes"], (60, 4))
    pd.DataFrame(answers, columns=list("abcd")).to_csv(path, index=False)
    code, out, _ = run(capsys, "check", str(path))
    assert (code, "perhaps" in out) == (1, False)
    assert "--missing-codes VALUE" in out.splitlines()[-1]
    code, _, err = run(capsys, "fit", str(path))
    assert (code, "perhaps" in err, "--missing-codes VALUE" in err) == (2, False, True)
    assert run(capsys, "check", str(path), "--missing-codes", "maybe", "--missing", "drop")[0] == 0


def test_a_table_that_lies_on_its_side_is_noticed(capsys, tmp_path, rng):
    path = tmp_path / "signals.npy"
    signals = rng.integers(0, 2, (8, 300))
    signals[:2] = [[0], [1]]  # so that no column is constant
    np.save(path, signals)
    _, out, _ = run(capsys, "check", str(path))
    assert "more columns (300) than rows (8)" in out
    assert "--transpose" in out
    np.save(path, signals[2:])
    _, out, _ = run(capsys, "check", str(path), "--transpose")
    assert out == "300 rows of 6 columns: nothing to decide\n"


@pytest.mark.parametrize(
    "names", [["my class"], ["it's a class", "group, y", "class"], ["$HOME class", '"my" class']]
)
def test_advice_about_outcomes_can_be_pasted_into_a_shell(capsys, tmp_path, rng, names):
    """Of columns whose names have blanks, commas and quotes."""
    data = tmp_path / "votes.csv"
    table = rng.integers(0, 2, (100, 3 + len(names)))
    with open(data, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["a", "b", "c", *names], *table.tolist()])
    code, out, err = run(capsys, "fit", str(data), "-o", str(tmp_path / "fit"), "--json")
    assert code == 0
    assert ("taken as one more" in err) == (len(names) == 1)
    covariates = re.search("use (--covariates .*); to leave", err)[1]
    dropped = re.search("out, (--drop .*)[.]$", err, re.MULTILINE)[1]
    more = ("-o", str(tmp_path / "fit"), "--force", "--json")
    for advice in (covariates, dropped):
        code, out, err = run(capsys, "fit", str(data), *shlex.split(advice), *more)
        assert code == 0, err
        assert json.loads(out)["n_spins"] == 3
    hints = run(capsys, "check", str(data))[1]
    advised = re.findall("use (--covariates .*) or (--drop .*)", hints)
    typed = [[shlex.split(text) for text in pair] for pair in advised]
    assert [listed(covariate[1]) for covariate, _ in typed] == [[name] for name in names]
    assert [listed(dropped[1]) for _, dropped in typed] == [[name] for name in names]


def test_options_of_one_column_are_proposed_once(capsys, tmp_path, rng):
    """Seen to fail: --weights weight,wt, which is the name of no column."""
    rows = rng.integers(0, 2, (200, 3)).tolist()
    known = [[f"s{k // 8}", f"p{k // 5}", 1 + k % 3, 2 + k % 4, k % 5, k % 4] for k in range(200)]
    heads = ["my site", "person no", "weight", "wt", "count", "freq", "a", "b", "c"]
    data = tmp_path / "rows.csv"
    with open(data, "w", newline="") as file:
        csv.writer(file).writerows(
            [heads, *(one + row for one, row in zip(known, rows, strict=True))]
        )
    code, out, _ = run(capsys, "check", str(data))
    assert code == 1
    proposed = out.splitlines()[-1].partition("perhaps: isingkit fit ")[2]
    assert proposed == (
        f"{data} --row-groups 'my site' --drop 'person no',wt,freq --weights weight --counts count"
    )
    options = shlex.split(proposed)
    code, _, err = run(capsys, "fit", *options, "-o", str(tmp_path / "fit"), "--json")
    assert code == 0, err


def test_a_column_of_ticks_is_told_as_such(capsys, tmp_path, rng):
    """Its empty cells are no missing values: those were proposed to be imputed."""
    rows = rng.integers(0, 2, (60, 3)).tolist()
    lines = [",".join(map(str, [*row, "x" if row[0] else ""])) for row in rows]
    data = tmp_path / "ticks.csv"
    data.write_text("a,b,c,my tick\n" + "\n".join(lines) + "\n")
    code, _, err = run(capsys, "fit", str(data), "-o", str(tmp_path / "fit"))
    assert code == 2
    assert "column 'my tick' holds only 'x'" in err
    assert "use --ticked 'my tick' or --drop 'my tick'" in err
    assert "impute" not in err


def test_advice_on_columns_alike_names_the_option_alone(capsys, tmp_path, rng):
    column = rng.integers(0, 2, 60)
    table = np.column_stack([column, column, rng.integers(0, 2, 60)])
    data = tmp_path / "same.csv"
    np.savetxt(data, table, "%d", ",", header="a,b,c", comments="")
    for method in ("linear", "auto"):
        arguments = ("--method", method, "-o", str(tmp_path / "fit"))
        err = run(capsys, "fit", str(data), *arguments)[2]
        assert "(--merge-alike" in err
        assert "merge_alike" not in err


def test_advice_names_options_that_the_command_has(capsys, tmp_path, rng):
    """Seen to fail: --covariates for compare, which has none."""
    table = pd.DataFrame(rng.integers(0, 2, (60, 3)), columns=list("abc"))
    table["person"] = [f"p{k}" for k in range(60)]
    table["age"] = rng.normal(size=60)
    path = tmp_path / "data.csv"
    table.to_csv(path, index=False)
    code, _, err = run(capsys, "compare", str(path))
    assert (code, "perhaps add: --id-column person --drop age;" in err) == (2, True)
    code, _, err = run(capsys, "compare-groups", str(path), "--by", "c")
    assert (code, "perhaps add: --id-column person --covariates age;" in err) == (2, True)
    asked = ["--id-column", "person", "--drop", "age", "--methods", "ridge", "--json"]
    code, out, _ = run(capsys, "compare", str(path), *asked)
    assert (code, json.loads(out)["n_spins"]) == (0, 3)


def test_what_is_no_command_leads_to_one(capsys, survey):
    for typed, words in (
        ("fitt", "did you mean 'fit'?"),
        ("network", "'isingkit fit FILE' is the usual one"),
        (str(survey), f"to learn its network, type: isingkit fit {survey}"),
    ):
        code, _, err = run(capsys, typed)
        assert (code, err.count("\n"), words in err) == (2, 1, True)


def test_marks_beside_empty_cells_are_asked_about(capsys, tmp_path, rng):
    """As exports of surveys have them; what is suggested settles it."""
    marks = np.where(rng.random((60, 3)) < 0.5, "1", "")
    table = pd.DataFrame(marks, columns=list("abc")).assign(d=rng.integers(0, 2, 60))
    path = tmp_path / "ticks.csv"
    table.to_csv(path, index=False)
    code, out, _ = run(capsys, "check", str(path))
    assert (code, out.rstrip().endswith("ticks.csv --ticked a,b,c")) == (1, True)
    n_empty = (marks[:, 0] == "").sum()
    assert f"'a': only '1', and {n_empty} empty cells: --ticked a or --drop a" in out
    code, out, _ = run(capsys, "check", str(path), "--ticked", "a,b,c")
    assert (code, out) == (0, "60 rows of 4 columns: nothing to decide\n")


def test_amounts_are_to_be_cut_at_zero(capsys, tmp_path, rng):
    table = pd.DataFrame(
        rng.poisson(8, (90, 4)) * rng.integers(0, 2, (90, 4)), columns=list("abcd")
    )
    table["height"] = rng.normal(size=90)
    path = tmp_path / "abundance.csv"
    table.to_csv(path, index=False)
    _, out, _ = run(capsys, "check", str(path))
    assert out.rstrip().endswith("abundance.csv --binarize 0 --covariates height")
    assert "numbers above X are one value" in out


def test_codes_of_no_answer_are_found_and_what_is_missing_is_asked_at_once(capsys, tmp_path, rng):
    """On a scale, too: by what is suggested, the table can be used."""
    answers = np.where(rng.random((80, 4)) < 0.05, -999, rng.integers(1, 6, (80, 4)))
    path = tmp_path / "scale.csv"
    pd.DataFrame(answers, columns=list("abcd")).to_csv(path, index=False)
    code, out, _ = run(capsys, "check", str(path))
    options = "--missing-codes -999 --binarize 3 --missing impute"
    assert (code, out.rstrip().rpartition("scale.csv ")[2]) == (1, options)
    assert "6 values (-999, 1, 2, 3, ...), of which -999 may stand for no answer" in out
    code, out, _ = run(capsys, "check", str(path), *options.split(), "--json")
    facts = json.loads(out)
    assert (code, facts["decisions"]) == (0, [])
    assert sum(one["n_missing"] for one in facts["columns"]) == (answers == -999).sum()


def test_check_asks_about_what_stands_between_covariates_and_rows_of_totals(capsys, tmp_path, rng):
    table = pd.DataFrame(rng.integers(0, 2, (60, 5)), columns=["a", "b", "sand", "loam", "c"])
    table.insert(2, "rain", rng.normal(size=60))
    table["height"] = rng.normal(size=60)
    path = tmp_path / "sites.csv"
    table[["a", "b", "rain", "sand", "loam", "height", "c"]].to_csv(path, index=False)
    _, out, _ = run(capsys, "check", str(path))
    assert "'sand', 'loam' stand between these covariates" in out
    assert out.rstrip().endswith("--covariates rain,height,sand,loam")
    table[["rain", "a", "b", "sand", "loam", "c", "height"]].to_csv(path, index=False)
    _, out, _ = run(capsys, "check", str(path))  # the whole table stands there
    assert ("stand between" in out, out.rstrip().endswith("--covariates rain,height")) == (
        False,
        True,
    )
    columns = table[["a", "b", "sand", "loam"]]
    pd.concat([columns, columns.sum().to_frame().T]).to_csv(path, index=False)
    _, out, _ = run(capsys, "check", str(path))
    assert "Is one row the totals of the others?" in out


def test_check_tells_of_every_column_and_asks_only_what_is_open(capsys, tmp_path, rng):
    table = pd.DataFrame(rng.integers(1, 6, (50, 3)), columns=["a", "b, c", "d"])
    table["site"] = rng.choice(["x", "y", "z"], 50)
    path = tmp_path / "scale.csv"
    table.to_csv(path, index=False)
    code, out, _ = run(capsys, "check", str(path), "--binarize", "3", "--json")
    facts = json.loads(out)
    assert (code, facts["suggested"]) == (1, "--covariates site")  # a, b and d are settled
    assert facts["n_rows"] == 50
    assert [one["name"] for one in facts["columns"]] == list(table)
    assert facts["columns"][0]["coding"] == ["<= 3", "> 3"]
    assert facts["columns"][3]["distinct"] == ["x", "y", "z"]
    assert facts["columns"][3]["coding"] is None
    _, out, _ = run(
        capsys, "check", str(path), "--drop", '"b, c",site', "--binarize", "3", "--json"
    )
    assert [one["name"] for one in json.loads(out)["columns"]] == ["a", "d"]


def test_foreign_words_lead_to_what_they_mean_here(capsys, survey):
    for option, words in [
        (["--id", "person"], "--id-column"),
        (["--sep", ";"], "told apart by themselves"),
        (["--method", "IsingFit"], "--method elasso"),
    ]:
        code, _, err = run(capsys, "fit", str(survey), *option)
        assert (code, err.count("\n")) == (2, 1)
        assert words in err
    told = " ".join([*FOREIGN_OPTIONS.values(), *FOREIGN_METHODS.values()])
    fit = root.get_command(None, "fit")
    known = {name for one in fit.params for name in one.opts}
    assert not set(FOREIGN_OPTIONS) & known
    assert set(re.findall(r"--[a-z-]+", told)) <= known
    assert set(re.findall(r"--method ([\w-]+)", told)) <= set(METHODS)
    assert not set(FOREIGN_METHODS) & set(METHODS)


@pytest.mark.usefixtures("plain_pages")
def test_warnings_are_ranked_and_folded(capsys, tmp_path):
    """Far from the data comes first, then levels that do not hold; minor ones are last."""
    rng = np.random.default_rng(0)
    cause = rng.choice([-1, 1], (400, 1))
    table = (rng.random((400, 30)) < 1 / (1 + np.exp(-2.5 * cause))).astype(int)
    frame = pd.DataFrame(table, columns=[f"q{k}" for k in range(30)])
    frame = frame.assign(always=1, Class=table[:, 0] ^ (rng.random(400) < 0.2))
    frame.to_csv(tmp_path / "moved.csv", index=False)
    folder = tmp_path / "fit"
    options = ("-o", str(folder), "--hidden", "0")
    code, _, err = run(capsys, "fit", str(tmp_path / "moved.csv"), *options)
    assert code == 0
    lines = err.splitlines()
    facts = json.loads((folder / "fit.json").read_text())
    told = facts["warnings"]
    assert len(told) > 3
    assert lines[-4:-1] == [f"isingkit: warning: {one}" for one in told[:3]]
    assert lines[-1] == f"isingkit: and {len(told) - 3} more: see {folder / 'report.html'}"
    assert told[-1].startswith("column 'always' holds one value only")
    doubtful = [k for k, one in enumerate(told) if one.startswith("hidden cause: ")]
    assert doubtful == [int(told[0].startswith("far from the data"))]
    assert "--hidden auto" in told[doubtful[0]]
    assert str(ex.OutcomeColumnWarning(columns=["Class"])) in told
    assert "'Class' looks like an outcome" in str(ex.OutcomeColumnWarning(columns=["Class"]))
    page = (folder / "report.html").read_text(encoding="utf-8")
    before, folded = page.split(f"<summary>And {len(told) - 3} more</summary>")
    plain = re.sub("</?span[^>]*>", "", before)  # options are kept whole
    assert html.escape(told[2], quote=True).replace("&#x27;", "&#39;") in plain
    assert "&#39;always&#39; holds one value only" in folded.split("</details>")[0]
    assert "covariates=" not in folded.partition("<script")[0]  # checks, too, name options


@pytest.mark.usefixtures("plain_pages")
def test_a_file_without_names_of_columns_is_read_with_numbers(capsys, tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("0,1,1\n1,0,1\n1,1,0\n0,0,0\n" * 20)
    code, out, _ = run(capsys, "fit", str(path), "-o", str(tmp_path / "found"), "--json")
    assert code == 0
    facts = json.loads(out)
    assert (facts["n_spins"], facts["n_samples"]) == (3, 80)
    assert set(facts["mapping"]) == {"x0", "x1", "x2"}


def test_a_table_is_piped_in(capsys, survey):
    command = [
        sys.executable,
        "-m",
        "isingkit",
        "fit",
        "-",
        "--drop",
        "person,seen",
        "-o",
        "found",
        "--json",
    ]
    with open(survey, "rb") as file:
        done = subprocess.run(
            command, cwd=survey.parent, stdin=file, capture_output=True, text=True, check=True
        )
    assert json.loads(done.stdout)["n_samples"] == 300
    assert contents_in(survey.parent / "found" / "report.html").title == "data"


@pytest.mark.parametrize(
    ("name", "options", "n_spins", "within"),
    [
        ("scotus_rehnquist2_895x9.csv", [], 9, (10, 36)),
        ("adhd_symptoms_355x19.csv", ["--drop", "group", "--hidden", "0"], 18, (20, 100)),
        ("adhd_symptoms_355x19.csv", ["--covariates", "group"], 18, (10, 30)),
        (
            "senate109_645x102.csv",
            ["--id-column", "rollcall", "--missing", "pairwise"],
            102,
            (30, 100),
        ),
        ("hd_spikes_25ms_21174x15.csv.gz", [], 15, (12, 40)),
    ],
)
def test_real_tables_give_a_network_and_a_report(
    capsys, tmp_path, shared_data, name, options, n_spins, within
):
    code, out, err = run(
        capsys, "fit", str(shared_data / name), *options, "-o", str(tmp_path / "found")
    )
    assert code == 0, err
    assert "report.html" in out
    model, page = (
        ik.IsingModel.load(tmp_path / "found" / "model.npz"),
        tmp_path / "found" / "report.html",
    )
    assert model.n_spins == n_spins
    assert within[0] <= model.n_edges <= within[1]
    contents = contents_in(page)
    assert len(contents.edges) == model.n_edges
    assert contents.check is not None
    assert page.stat().st_size < 2_000_000


def test_a_fit_of_many_spins_is_resumed(capsys, tmp_path, monkeypatch):
    from isingkit.estimators import tiles

    samples = ik.sample(
        ik.random_regular(n_spins=5200, degree=3, coupling=0.4, random_state=0),
        n_samples=300,
        random_state=1,
    )
    samples.save(tmp_path / "many.spins")
    arguments = [
        "fit",
        str(tmp_path / "many.spins"),
        "-o",
        str(tmp_path / "found"),
        "--method",
        "two-stage",
    ]
    arguments += ["--set", "ridge=inf", "--set", "prune=0.25"]
    real, counted = tiles.CorrelationScreen.band, []

    def stopping(self, number, n_jobs=None):
        counted.append(number)
        if len(counted) == 3:
            raise KeyboardInterrupt
        return real(self, number, n_jobs)

    monkeypatch.setattr(tiles.CorrelationScreen, "band", stopping)
    assert run(capsys, *arguments)[0] == 130
    assert len(list((tmp_path / "found.partial").glob("band-*.npz"))) == 2
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "go on with --resume, or delete it" in err
    assert run(capsys, *arguments, "--resume")[0] == 0
    assert counted == [0, 1, 2, 2, 3, 4, 5]
    assert not (tmp_path / "found.partial").exists()
    whole = ik.TwoStageIsing(ridge=np.inf, prune=0.25).fit(samples).model_
    assert (
        ik.IsingModel.load(tmp_path / "found" / "model.npz").couplings != whole.couplings
    ).nnz == 0
    facts = json.loads((tmp_path / "found" / "fit.json").read_text())
    assert facts["settings"]["ridge"] == "inf"
    assert "checkpoint" not in facts["settings"]
    assert "more than 2000 columns" in (tmp_path / "found" / "report.html").read_text(
        encoding="utf-8"
    )


def test_what_does_not_fit_into_memory_is_refused_with_an_option_that_helps(
    capsys, tmp_path, monkeypatch
):
    ik.sample(
        ik.random_tree(n_spins=300, coupling=0.4, random_state=0), n_samples=100, random_state=1
    ).save(tmp_path / "many.spins")
    monkeypatch.setattr("isingkit.memory.memory_there", lambda: 1_000_000)
    code, _, err = run(capsys, "fit", str(tmp_path / "many.spins"), "-o", str(tmp_path / "found"))
    assert code == 2
    assert "--method two-stage --set ridge=inf needs least" in err


def test_bench_scale_plants_and_finds_networks(capsys, monkeypatch):
    monkeypatch.setattr(scale, "measure_rates", partial(scale.measure_rates, rounds=1))
    arguments = ["bench", "scale", "--spins", "6000", "--samples", "1024"]
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    facts = json.loads(out)
    assert facts["rows"][0]["n_spins"] == 6000
    assert facts["rows"][0]["wrong_edges"] <= 2
    assert min(facts["rates"][name] for name in ("screen", "dual", "product")) > 0
    monkeypatch.setattr(scale, "measure_rates", lambda *_: scale.Rates(**facts["rates"]))
    out = run(capsys, *arguments)[1]
    assert "wrong edges" in out
    assert f"float32 matrix product: {facts['rates']['product'] / 1e9:.0f};" in out


@pytest.mark.usefixtures("plain_pages")
def test_rows_of_a_file_may_belong_together_or_be_a_series(capsys, survey, monkeypatch):
    seen = {}

    def fit(self, X, y=None, sample_weight=None, *, counts=None, groups=None):
        seen.update(groups=groups, counts=counts, rows=self.rows)
        return original(self, X, sample_weight=sample_weight, counts=counts)

    original = ik.AutoIsing.fit
    monkeypatch.setattr(ik.AutoIsing, "fit", fit)
    folder = str(survey.parent / "found")
    options = ["--row-groups", "person", "--counts", "seen", "--rows", "ordered", "-o", folder]
    assert run(capsys, "fit", str(survey), *options)[0] == 0
    assert len(np.unique(seen["groups"])) == 300
    assert seen["counts"].tolist() == [1] * 300
    assert seen["rows"] == "ordered"


@pytest.mark.usefixtures("plain_pages")
def test_counts_are_samples_when_knobs_are_chosen(capsys, tmp_path, rng):
    """A histogram gives the edges that its rows, written out, give."""
    values = np.asarray(
        ik.exact(ik.IsingModel([[0, 0.3, 0], [0.3, 0, 0.2], [0, 0.2, 0]])).sample(
            n_samples=5000, random_state=0
        )
    )
    patterns, counts = np.unique(values, axis=0, return_counts=True)
    for name, rows in (
        ("full", values.tolist()),
        ("hist", [[*p, n] for p, n in zip(patterns.tolist(), counts, strict=True)]),
    ):
        head = "a,b,c" + (",n" if name == "hist" else "")
        (tmp_path / f"{name}.csv").write_text(
            "\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n"
        )
    for method in ("linear", "lasso", "pseudolikelihood", "bethe"):
        found = []
        for name, options in (("full", []), ("hist", ["--counts", "n"])):
            folder = tmp_path / f"{name}-{method}"
            assert (
                run(
                    capsys,
                    "fit",
                    str(tmp_path / f"{name}.csv"),
                    *options,
                    "--method",
                    method,
                    "-o",
                    str(folder),
                )[0]
                == 0
            )
            found.append(ik.IsingModel.load(folder / "model.npz").couplings.toarray())
        np.testing.assert_allclose(found[0], found[1], atol=1e-6)
        assert np.count_nonzero(found[0]) == 4, method


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "missing=drop"], "missing is set by --missing, not by --set"),
        (["--set", "binarize=0.5"], "binarize is set by --binarize"),
        (
            ["--method", "two-stage", "--set", "progress=true"],
            "progress is always shown: leave out --set progress",
        ),
        (
            ["--method", "ridge", "--workers", "2"],
            "go with --method auto or two-stage, not with ridge: leave them out",
        ),
        (["--method", "ridge", "--set", "ridge=abc"], "ridge must be"),
        (["--group-by", "party"], "there are no --groups"),
        (["--drop", "a,b,c"], "no column is left"),
        (["--columns", "a"], "at least 2"),
        (["--method", "elasso", "--missing", "pairwise"], "missing must be"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(capsys, tmp_path, options, words):
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n" + "0,1,1\n1,0,1\n1,1,0\n0,0,0\n" * 20)
    code, out, err = run(capsys, "fit", str(path), "-o", str(tmp_path / "found"), *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_pairwise_is_advised_only_where_it_helps(capsys, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n" + "0,1,1\n1,0,1\n1,1,0\n0,0,0\n" * 20 + ",1,1\n")
    for arguments, advised in (
        (["fit", str(path), "-o", str(tmp_path / "x")], True),
        (["fit", str(path), "-o", str(tmp_path / "x"), "--method", "elasso"], False),
        (["compare", str(path)], False),
    ):
        err = run(capsys, *arguments)[2]
        assert "--missing drop" in err
        assert ("pairwise" in err) == advised


@pytest.mark.parametrize("kind", ["here", "empty", "link"])
@pytest.mark.usefixtures("plain_pages")
def test_an_empty_folder_that_is_there_is_filled(capsys, survey, monkeypatch, kind):
    folder = survey.parent / "mine"
    folder.mkdir()
    asked = {"here": ".", "empty": str(folder), "link": str(survey.parent / "link")}[kind]
    if kind == "link":
        (survey.parent / "link").symlink_to(folder)
    monkeypatch.chdir(folder)
    assert run(capsys, "fit", str(survey), "--drop", "person,seen", "-o", asked)[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "edges.csv",
        "fit.json",
        "model.npz",
        "report.html",
    ]
    left = {path.name for path in survey.parent.iterdir()}
    assert left == {"survey.csv", "mine"} | ({"link"} if kind == "link" else set())


@pytest.mark.parametrize(
    ("name", "folder"),
    [(".hidden.csv", "hidden-fit"), ("a.v1.csv", "a.v1-fit"), ("b.CSV", "b-fit")],
)
@pytest.mark.usefixtures("plain_pages")
def test_folders_are_named_after_the_file(capsys, tmp_path, monkeypatch, name, folder):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("a,b,c\n" + "0,1,1\n1,0,1\n1,1,0\n0,0,0\n" * 20)
    assert run(capsys, "fit", name)[0] == 0
    assert (tmp_path / folder / "report.html").is_file()


@pytest.mark.usefixtures("plain_pages")
def test_fit_promises_no_level_where_rows_that_are_alike_were_taken_as_independent(
    capsys, tmp_path
):
    truth = ik.random_regular(n_spins=40, degree=3, coupling=0.3, random_state=0)
    once = np.asarray(ik.sample(truth, n_samples=300, random_state=1)) > 0
    names = [f"q{k}" for k in range(40)]
    table = pd.DataFrame(np.concatenate([once, once]).astype(int), columns=names)
    table.insert(0, "person", [f"p{k % 300}" for k in range(600)])
    table.to_csv(tmp_path / "twice.csv", index=False)
    fit = ("fit", str(tmp_path / "twice.csv"), "-o", str(tmp_path / "fit"), "--force")
    code, out, err = run(capsys, *fit, "--drop", "person", "--rows", "independent")
    assert code == 0
    assert "how sure: nobody can say: see the warning 'rows alike'" in out
    assert "pasted 2 times" in err
    page = (tmp_path / "fit" / "report.html").read_text(encoding="utf-8")
    assert "more edges may be false than that" in page
    code, out, _ = run(capsys, *fit, "--drop", "person")
    assert "may be false; those with a small q-value hardly; this allows for rows" in out
    code, out, _ = run(capsys, *fit, "--row-groups", "person")
    assert "600 rows in 300 groups of 40 columns" in out
    assert "allows for" not in out
    page = (tmp_path / "fit" / "report.html").read_text(encoding="utf-8")
    assert "600 rows in 300 groups" in page


@pytest.mark.usefixtures("plain_pages")
def test_closed_streams_and_a_name_that_is_not_utf_8_cost_no_result(capsys, survey, monkeypatch):
    """Seen to fail: tracebacks, and with the name only after the fit."""
    name = os.fsdecode(b"d\xff\xfe.csv")
    survey.rename(survey.with_name(name))
    arguments = ["fit", str(survey.with_name(name)), "--drop", "person,seen", "--method", "ridge"]
    monkeypatch.chdir(survey.parent)
    monkeypatch.setattr(sys, "stderr", None)
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "look at" in out
    folder = survey.with_name(os.fsdecode(b"d\xff\xfe-fit"))
    assert contents_in(folder / "report.html").title.startswith("d")
    sys.stderr.close()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "stdin", None)
    code, _, err = run(capsys, "fit", "-", "-o", str(survey.parent / "none"))
    assert (code, err) == (2, "isingkit: '-' cannot be used: standard input is closed.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full is one of Linux")
def test_a_log_that_cannot_be_written_ends_no_fit(survey, tmp_path):
    """Seen to fail: the first step of a progress bar ended it, or made it wait for ever."""
    arguments = ["fit", str(survey), "--drop", "person,seen", "--method", "ridge"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "isingkit", *arguments, "-o", str(tmp_path / "fit")],
            stdout=subprocess.PIPE, stderr=full, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0
    assert "look at" in done.stdout
    assert (tmp_path / "fit" / "fit.json").exists()


def test_a_library_for_which_there_is_no_memory_is_told_in_a_sentence(capsys, survey, monkeypatch):
    """Seen to fail: a traceback. What is missing for another reason is told by Python as before."""
    problem = "libjpeg.so.62: failed to map segment from shared object"

    def without_memory(*_, **__):
        raise ImportError(problem)

    monkeypatch.setattr("isingkit.cli.check._read", without_memory)
    code, _, err = run(capsys, "check", str(survey))
    assert code == 2
    assert err == f"isingkit: not enough memory: {problem}; ask for less.\n"
    problem = "no module named libjpeg"
    with pytest.raises(ImportError, match="no module"):
        main(["check", str(survey)])
