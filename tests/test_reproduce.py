"""The paper's figures in their quick version: they agree with theory, and nothing done is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.cli import main
from isingkit.experiments import reproduction_page as page
from isingkit.experiments import runner
from isingkit.experiments import snapshots as snapshots_of_worlds
from isingkit.experiments.runner import chosen


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All quick figures, made once."""
    folder = tmp_path_factory.mktemp("figures")
    for name in runner.FIGURES:
        runner.run(name, runner.figure(name).Config.quick(), folder, workers=1)
    return folder


def test_generations_of_a_real_teacher_have_the_sizes_of_a_tree(folder):
    table = runner.read("fig1", folder)
    assert [len(chosen(table, generation=g)) for g in range(4)] == [1, 3, 6, 12]


@pytest.mark.parametrize("name", ["fig2", "fig4"])
def test_measured_errors_are_the_predicted_ones(folder, name):
    """RSS, Q and bias of 10 worlds within 4 standard errors plus 1 / N of infinite depth."""
    table = runner.read(name, folder)
    for row in table:
        if row["quantity"] in ("rss", "Q", "bias"):
            assert (
                abs(row["mean"] - row["predicted"])
                < 4 * row["error"] + row["predicted"] / row["n_spins"]
            ), row
    if name == "fig4":
        for row in chosen(table, quantity="rss", ridge=10, samples_per_spin=8):
            assert abs(row["mean"] / row["depth_1"] - 1) > 0.08  # depth 1 is off by a tenth
            assert abs(row["mean"] / row["depth_2"] - 1) < 0.02
        best, usual = (
            chosen(table, quantity="rss", samples_per_spin=0.5, **which)
            for which in ({"rule": "best"}, {"ridge": 0.1})
        )
        assert best[0]["mean"] < 0.7 * usual[0]["mean"]


def interval(rows):
    perfect = [row["threshold"] for row in rows if row["false"] == row["missed"] == 0]
    return max(perfect) - min(perfect) if perfect else -1


def best(rows):
    return max(
        min(row["precision"], row["recall"]) for row in rows if row["precision"] == row["precision"]
    )


def off(rows, name):
    return max(abs(row[name] - row[f"predicted_{name}"]) for row in rows if row["recall"] > 0.05)


def test_the_interval_of_perfect_recovery_widens_with_the_network(folder):
    table = chosen(runner.read("fig3", folder), kind="directed")
    small, large = (chosen(table, graph="random regular", n_spins=n) for n in (100, 200))
    assert 0 < interval(small) < interval(large)
    for graph in ("random regular", "Erdos-Renyi"):
        rows = chosen(table, graph=graph, n_spins=200)
        assert off(rows, "precision") < 0.03
        assert off(rows, "recall") < 0.05  # 900 edges and less


def test_estimates_have_the_predicted_means_by_generation(folder):
    table = runner.read("fig5", folder)
    for ridge in (0.1, 10):
        for generation in (1, 2, 3):
            row = chosen(table, ridge=ridge, generation=generation)[0]
            assert abs(row["mean"] - row["predicted_mean"]) < max(
                0.02 * row["predicted_mean"], 0.001
            ), row
    assert chosen(table, ridge=10, generation=2)[0]["mean"] > 0.02


def test_two_stages_recover_more_as_networks_grow_and_as_predicted(folder):
    for name, sizes in (("fig6", (100, 200, 400)), ("fig8", (200, 400))):
        table = chosen(runner.read(name, folder), kind="directed", ridge=0.1)
        reached = [best(chosen(table, n_spins=n, stage="two")) for n in sizes]
        assert reached == sorted(reached)
        largest = chosen(table, n_spins=sizes[-1])
        assert off(chosen(largest, stage="one"), "precision") < 0.03
        if name == "fig6":
            assert off(chosen(largest, stage="two"), "precision") < 0.03
            assert off(chosen(largest, stage="two"), "recall") < 0.05
        else:  # a third as many candidates as samples: no prediction
            assert not [row for row in chosen(largest, stage="two") if "predicted_recall" in row]
    thresholds = [row["threshold"] for row in chosen(largest, stage="two")]
    steps = np.diff(thresholds).round(6)  # fine around the best, coarse elsewhere
    assert (steps.min(), steps.max()) == (0.0001, 0.001)
    averaged = chosen(runner.read("fig8", folder), n_spins=400, stage="two", kind="averaged")
    assert best(averaged) > best(chosen(largest, stage="two"))


def test_fewer_candidates_survive_as_networks_grow(folder):
    rows = [chosen(runner.read("fig7", folder), n_spins=n)[0] for n in (100, 200, 400)]
    means = [row["mean"] for row in rows]
    assert means == sorted(means, reverse=True)
    for row in rows:
        assert row["mean"] == pytest.approx(row["predicted_mean"], rel=0.05)


def test_every_figure_comes_with_table_pictures_settings_and_a_page(folder):
    for name in runner.FIGURES:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text()
        assert (folder / f"{name}.parquet").is_file()
        facts = json.loads((folder / f"{name}.json").read_text())
        assert facts["agreement"]
        assert facts["configuration"]["seed"] == 1
    written = page.html_page(page.facts(folder))
    assert written.count("<section") == written.count('alt="') == 8
    assert "http" not in written
    assert page.markdown_page(page.facts(folder)).count("](fig") == 8


def test_pages_say_which_figures_are_quick_versions(folder):
    facts = page.facts(folder)
    assert all(figure["quick"] for figure in facts if figure["figure"] != "fig1")
    assert page.markdown_page(facts).count(page.QUICK) == sum(one["quick"] for one in facts)
    full = [figure | {"quick": False} for figure in facts]
    assert page.QUICK not in page.html_page(full)
    config = runner.figure("fig7").Config()
    assert not runner.is_quick(config)
    assert runner.is_quick(replace(type(config).quick(), sampling="paper"))


def test_worlds_can_be_sampled_as_the_paper_did(monkeypatch):
    """Metropolis updates in random order, 10^5 sweeps; the same seed gives other snapshots."""
    asked = []

    def counted(model, n_samples, **settings):
        asked.append(settings)
        return ik.sample(model, n_samples, **(settings | {"warm_up": 200}))

    monkeypatch.setattr(snapshots_of_worlds, "sample", counted)
    config = replace(runner.figure("fig7").Config.quick(), n_spins=(40,), n_worlds=1)
    point = {"n_spins": 40, "world": 0}
    own = runner.figure("fig7").measure(config, point)
    paper = runner.figure("fig7").measure(replace(config, sampling="paper"), point)
    assert own != paper
    assert asked[0] == {"random_state": asked[1]["random_state"]}
    assert asked[1]["update"] == "metropolis"
    assert asked[1]["order"] == "random"
    assert asked[1]["warm_up"] == 100_000
    with pytest.raises(ex.SettingError, match="sampling must be 'isingkit' or 'paper'"):
        runner.figure("fig7").measure(replace(config, sampling="other"), point)


@pytest.mark.parametrize("name", runner.FIGURES)
def test_pictures_are_drawn_from_the_table_alone_and_no_legend_covers_data(
    folder, tmp_path, monkeypatch, name
):
    """Legends are of the figure, below all panels."""
    plotted = []
    plot = runner.figure(name).plot

    def kept(table):
        plotted.append(plot(table))
        return plotted[0]

    monkeypatch.setattr(runner.figure(name), "plot", kept)
    (tmp_path / f"{name}.csv").write_bytes((folder / f"{name}.csv").read_bytes())
    runner.draw(name, tmp_path)
    assert (tmp_path / f"{name}.png").read_bytes() == (folder / f"{name}.png").read_bytes()
    if name == "fig1":  # a graph, without a legend
        return
    panels = plotted[0].get_axes()
    assert all(axes.get_legend() is None for axes in panels)
    top = plotted[0].legends[0].get_window_extent().y1
    assert top <= min(axes.get_tightbbox().y0 for axes in panels)


def test_records_of_another_configuration_are_not_mixed_in(tmp_path):
    config = replace(runner.figure("fig7").Config.quick(), n_spins=(100,), n_worlds=2)
    first = runner.run("fig7", config, tmp_path)
    other = runner.run("fig7", replace(config, prune=0.2), tmp_path)
    assert first[0]["mean"] > other[0]["mean"]
    assert len(list((tmp_path / "records").iterdir())) == 2
    counted = []
    again = runner.run(
        "fig7", config, tmp_path, done=lambda finished, total: counted.append((finished, total))
    )
    assert again == first
    assert counted == [(2, 2)]  # nothing was left to do


def test_damaged_records_are_measured_again(tmp_path):
    """Empty, changed, and of another unit."""
    config = replace(runner.figure("fig7").Config.quick(), n_spins=(100,), n_worlds=4)
    before = runner.run("fig7", config, tmp_path)
    records = sorted(tmp_path.glob("records/*/*.json"))
    records[0].write_text("")
    changed = json.loads(records[1].read_text())
    changed["result"] = None
    records[1].write_text(json.dumps(changed))
    records[2].write_bytes(records[3].read_bytes())
    with pytest.warns(ex.DamagedRecordsWarning, match="record.* computed again"):
        again = runner.run("fig7", config, tmp_path)
    assert again == before
    assert runner.run("fig7", config, tmp_path) == before


def test_any_executor_with_submit_will_do(tmp_path):
    config = replace(runner.figure("fig7").Config.quick(), n_spins=(100,), n_worlds=3)
    alone = runner.run("fig7", config, tmp_path / "alone")
    with ThreadPoolExecutor(2) as pool:
        assert runner.run("fig7", config, tmp_path / "pool", executor=pool) == alone


def test_a_killed_run_goes_on_where_it_was(folder, tmp_path):
    """SIGKILL to the run and its workers, before the first record, after it, and after three more
    of twelve: the table has the bytes of a run in peace.
    """
    command = [sys.executable, "-m", "isingkit", "reproduce", "fig7", "--quick"]
    command += ["--workers", "2", "-o", str(tmp_path)]

    def records():
        found = (tmp_path / "records").rglob("*.json")
        return [path for path in found if not path.name.startswith(".")]

    wanted = 0
    for more in (0, 1, 3):
        process = subprocess.Popen(
            command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(0.3)
        while process.poll() is None and len(records()) < wanted + more:
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        left = records()
        assert len(left) >= wanted + more  # none is lost
        wanted = len(left)
        for path in left:
            json.loads(path.read_text())  # whole, whenever it is there
    assert 4 <= wanted < 12
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "fig7.csv").read_bytes() == (folder / "fig7.csv").read_bytes()


def test_unknown_figures_and_missing_tables_are_refused(tmp_path, capsys):
    with pytest.raises(ex.SettingError, match="one of fig1"):
        runner.figure("fig9")
    for arguments in (
        ["reproduce"],
        ["reproduce", "fig9"],
        ["reproduce", "fig7", "--redraw", "-o", str(tmp_path)],
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", ["README.md", "reproduction.html", "fig7.csv", "fig7.json"])
def test_reproducing_writes_over_nothing_but_its_own_files(tmp_path, capsys, name):
    """Seen to replace a project's README.md."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "fig7", "--quick", "-o", str(tmp_path)])
    assert stopped.value.code == 2
    assert "is something else: name another folder with -o" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_reproduce_prints_what_was_found(folder, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "fig1", "fig7", "--quick", "-o", str(folder), "--json"])
    assert stopped.value.code == 0
    facts = json.loads(capsys.readouterr().out)
    assert [figure["figure"] for figure in facts["figures"]] == ["fig1", "fig7"]
    assert (folder / "reproduction.html").is_file()
