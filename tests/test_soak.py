"""The oracles of the soak, each seen to catch what it is there for."""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tqdm import tqdm

import isingkit as ik
from isingkit._kernels.compilation import NOTICE, noticed_compilation
from isingkit.fit_folder import fit_of, write_fit

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
if not BENCHMARKS.is_dir():
    pytest.skip("benchmarks are not part of this archive", allow_module_level=True)
if not hasattr(os, "fork") or not Path("/proc/self/statm").exists():
    pytest.skip("the soak is for Linux", allow_module_level=True)
sys.path.insert(0, str(BENCHMARKS))

from soak import actions, children, oracles, other_commands  # noqa: E402
from soak.oracles import Ended  # noqa: E402

GOOD = "isingkit: no such file: x; name another.\n"


@pytest.fixture
def fit(tmp_path, spins):
    estimator = ik.RidgeIsing().fit(spins)
    write_fit(fit_of(estimator, ik.pack(spins), "ridge", None, []), "<html></html>", tmp_path / "f")
    return tmp_path / "f"


@pytest.mark.parametrize(
    ("ended", "killed", "is_well"),
    [
        (Ended(0, "", ""), False, True),
        (Ended(2, "", GOOD), False, True),
        (Ended(2, "", "isingkit: warning: few rows\n" + GOOD), False, True),
        (Ended(2, "", "isingkit: compiling, once per installation\n" + GOOD), False, True),
        (Ended(-9, "", ""), True, True),
        (Ended(130, "", "isingkit: interrupted\n"), True, True),
        (Ended(1, "", GOOD), False, False),
        (Ended(2, "", ""), False, False),
        (Ended(2, "", GOOD + GOOD), False, False),
        (Ended(2, "", "isingkit: " + "x" * 3000), False, False),
        (Ended(0, "", "Traceback (most recent call last):"), False, False),
        (Ended(-9, "", ""), False, False),
        (Ended(-signal.SIGALRM, "", ""), True, False),
        (Ended(-signal.SIGSEGV, "", ""), True, False),
    ],
)
def test_ends(ended, killed, is_well):
    assert (not oracles.ends_well(ended, killed=killed)) == is_well


def test_half_a_folder_and_a_folder_of_two_halves_are_seen(fit, spins):
    assert not oracles.is_whole(fit)
    assert not oracles.is_whole(fit.parent / "nothing")
    model = (fit / "model.npz").read_bytes()
    (fit / "model.npz").unlink()
    assert oracles.is_whole(fit)
    ik.RidgeIsing(ridge=7.0).fit(spins).model_.save(fit / "model.npz")
    assert oracles.is_whole(fit)
    (fit / "model.npz").write_bytes(model)
    assert not oracles.is_whole(fit)


@pytest.mark.parametrize("where", ["edges.csv", "fit.json"])
def test_nan_is_seen(fit, where):
    assert not oracles.has_no_nan(fit)
    if where == "edges.csv":
        lines = (fit / where).read_text().splitlines()
        lines[1] = lines[1].replace(lines[1].split(",")[2], "nan")
        (fit / where).write_text("\n".join(lines))
    else:
        facts = json.loads((fit / where).read_text())
        (fit / where).write_text(json.dumps(facts | {"n_samples": float("nan")}))
    assert oracles.has_no_nan(fit)


def test_other_bytes_other_models_and_strays_are_seen(fit, tmp_path):
    assert not oracles.same_bytes(fit, fit, ["edges.csv"])
    other = tmp_path / "other"
    other.mkdir()
    (other / "edges.csv").write_bytes((fit / "edges.csv").read_bytes() + b" ")
    assert oracles.same_bytes(fit, other, ["edges.csv"])
    one = ik.IsingModel([[0, 0.5], [0.5, 0]])
    next_to_it = ik.IsingModel([[0, np.nextafter(0.5, 1)], [np.nextafter(0.5, 1), 0]])
    assert not oracles.same_models([one, one])
    assert oracles.same_models([one, next_to_it])
    assert not oracles.nothing_left(other, ["edges.csv"])
    (other / ".edges.csv.isingkit-x").touch()
    assert oracles.nothing_left(other, ["edges.csv"])


def test_growth_of_memory_and_open_files_is_seen(tmp_path):
    before = oracles.resources()
    assert not oracles.no_growth(before, oracles.resources())
    held = np.ones(int((0.2 * before.mebibytes + 40) * 2**17))
    assert any("memory" in one for one in oracles.no_growth(before, oracles.resources()))
    del held
    with (tmp_path / "x").open("w"):
        assert any("files" in one for one in oracles.no_growth(before, oracles.resources()))


def test_json_that_is_none_is_seen():
    assert not other_commands.is_json('{"a": 1.5, "b": null}')
    for text in ('{"a": NaN}', '{"a": -Infinity}', "", '{"a": 1} {}', "Traceback"):
        assert other_commands.is_json(text)


def test_a_name_that_a_page_has_as_markup_is_seen(tmp_path, monkeypatch):
    from isingkit.report import page

    def trusting(contents):
        return "".join(spin["name"] for spin in contents.spins)

    monkeypatch.setattr(other_commands, "ODD_NAMES", [f"<script>alert({k})" for k in range(9)])
    monkeypatch.setattr(
        other_commands,
        "asked",
        lambda rng, data, model, names: ["report", model, "-o", tmp_path / "x" / "out.html"],
    )
    monkeypatch.setattr(page, "html_page", trusting)
    rng = np.random.default_rng(5)
    found = actions.done("any command, odd names", rng, tmp_path / "x")
    assert any("as markup" in one for one in found)


def test_a_file_that_is_written_in_place_is_seen(tmp_path, monkeypatch):
    """Half a file under its name, when the process is killed."""

    def in_place(path):
        @contextlib.contextmanager
        def here():
            path.write_bytes(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
            yield path

        return here()

    monkeypatch.setattr(children.Child, "send", lambda *_: None)
    command = other_commands.command

    def broken(folder, arguments, prepare=lambda: None):
        broken.times += 1
        with monkeypatch.context() as patched:
            if broken.times == 2:
                patched.setattr("isingkit.cli.report.replacing", in_place)
            return command(folder, arguments, prepare)

    broken.times = 0
    monkeypatch.setattr(other_commands, "command", broken)
    page = tmp_path / "x" / "out" / "r.html"
    monkeypatch.setattr(
        other_commands, "writing", lambda model, out: [["report", model, "-o", page]]
    )
    found = actions.done("kill while writing a file", np.random.default_rng(0), tmp_path / "x")
    assert found == ["r.html is half"]


def test_a_child_that_hangs_or_dies_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(children, "LONGEST", 1)
    hangs = children.forked(tmp_path / "a", lambda: time.sleep(30)).ended()
    assert oracles.ends_well(hangs)
    raises = children.forked(tmp_path / "b", lambda: 1 / 0).ended()
    assert "ZeroDivisionError" in raises.err
    assert oracles.ends_well(raises)
    killed = children.forked(tmp_path / "c", lambda: time.sleep(30))
    killed.send(signal.SIGKILL, 0.1)
    assert killed.ended().status == -9


def test_a_child_that_works_is_waited_for_by_the_clock_of_its_processor(tmp_path, monkeypatch):
    """Seen to fail: on a machine that is busy with others a child that works was said to hang."""
    monkeypatch.setattr(children, "LONGEST", 1)

    def work():
        start = time.process_time()
        while time.process_time() < start + 3:
            pass

    assert children.forked(tmp_path / "a", work).ended().status == 0
    monkeypatch.setattr(children, "MOST_WORK", 0.5)
    assert oracles.ends_well(children.forked(tmp_path / "b", work).ended())


def test_a_bar_that_is_not_seen_yet_is_not_drawn_by_a_notice(capsys):
    """Seen to fail: nothing cleared it from the line of the sentence that came next."""
    with noticed_compilation() as compiled, tqdm(total=9, delay=1, leave=False) as bar:
        compiled.on_start(None)
        compiled.on_end(None)
        bar.update()
    assert capsys.readouterr().err == NOTICE + "\n"


@pytest.mark.parametrize("name", ["fit on 1, 2 and 4 threads", "read a damaged model"])
def test_an_action_is_the_same_whenever_it_is_done(tmp_path, name):
    for number in range(3):
        assert actions.done(name, np.random.default_rng([0, number]), tmp_path / "x") == []
    names = [actions.drawn(np.random.default_rng([0, 0, number])) for number in range(9)]
    assert names == [actions.drawn(np.random.default_rng([0, 0, number])) for number in range(9)]


def test_a_result_that_hangs_on_threads_is_seen(tmp_path, monkeypatch):
    learn = ik.RidgeIsing._learn
    rng = np.random.default_rng()

    def noisy(self, *given, **settings):
        fit = learn(self, *given, **settings)
        fit.model_ = ik.IsingModel(fit.model_.couplings, fit.model_.fields + rng.random())
        return fit

    monkeypatch.setattr(ik.RidgeIsing, "_learn", noisy)
    monkeypatch.setattr(actions, "METHODS", [one for one in actions.METHODS if one.name == "ridge"])
    assert actions.done("fit on 1, 2 and 4 threads", np.random.default_rng(0), tmp_path / "x")


def test_a_damaged_model_that_is_read_is_seen(tmp_path, monkeypatch):
    def trusting(path):
        return ik.IsingModel(np.zeros((2, 2)))

    monkeypatch.setattr(ik.IsingModel, "load", staticmethod(trusting))
    rng = np.random.default_rng(1)
    assert any("silently" in one for one in actions.read_damaged(rng, tmp_path))
