"""A cluster gives the answers of one machine, to the last bit, whatever happens to its workers. All
of it on 127.0.0.1.
"""

import contextlib
import functools
import itertools
import json
import operator
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip(
    "distributed", reason="distributed is not installed: pip install 'isingkit[dask]'"
)

import dask
import dask.array as da
import distributed

import isingkit as ik
import isingkit.dask
from isingkit import exceptions as ex
from isingkit._kernels.threads import one_blas_thread
from isingkit.cli import main
from isingkit.estimators import sizes
from isingkit.experiments import runner
from isingkit.experiments.fig7_candidates import Config

HERE = {
    "dashboard_address": "127.0.0.1:0",
    "worker_dashboard_address": "127.0.0.1:0",
    "host": "127.0.0.1",
}
LONG = 120  # seconds that a test waits for what must come


@pytest.fixture(scope="module")
def cluster():
    """Two processes, one thread each; a nanny starts anew what is killed."""
    options = {"processes": True, "n_workers": 2, "threads_per_worker": 1}
    quick = {
        "distributed.comm.timeouts.connect": "3s"
    }  # how long a killed worker is called before it is given up
    with (
        dask.config.set(quick),
        distributed.LocalCluster(**options, **HERE, silence_logs="CRITICAL") as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster, timeout=LONG) as client:
        client.wait_for_workers(2, timeout=LONG)
        yield client


@pytest.fixture(scope="module")
def samples():
    truth = ik.random_regular(n_spins=6000, degree=3, coupling=0.4, random_state=0)
    return ik.sample(truth, n_samples=300, random_state=1)


@pytest.fixture
def tiled(monkeypatch):
    """Three bands of columns, where few are as many: what bands are does not hang on how many."""
    monkeypatch.setattr(sizes, "MOST_DENSE", 10)
    truth = ik.random_regular(n_spins=2200, degree=3, coupling=0.4, random_state=0)
    return ik.sample(truth, n_samples=300, random_state=1)


def same_gram(left, right):
    np.testing.assert_array_equal(left.sums, right.sums)
    np.testing.assert_array_equal(left.spin_sums, right.spin_sums)
    assert left.sums.dtype == right.sums.dtype
    assert (left.n_samples, left.n_rows, left.names, left.mapping) == (
        right.n_samples,
        right.n_rows,
        right.names,
        right.mapping,
    )
    assert (left.joint is None) == (right.joint is None)
    if left.joint is not None:
        np.testing.assert_array_equal(left.joint.counts, right.joint.counts)
        np.testing.assert_array_equal(left.joint.spin_sums, right.joint.spin_sums)


def same_fit(left, right):
    for name in ("stage_one_estimates_", "estimates_", "model_.couplings"):
        one, other = operator.attrgetter(name)(left), operator.attrgetter(name)(right)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    np.testing.assert_array_equal(left.model_.fields, right.model_.fields)


def pids(client):
    return list(client.run(os.getpid).values())


def killer(wanted, which):
    """A thread that kills processes as soon as `wanted` says so."""

    def wait_and_kill():
        deadline = time.monotonic() + LONG
        while not wanted() and time.monotonic() < deadline:
            time.sleep(0.005)
        for pid in which:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    return thread


# Grams


@pytest.mark.parametrize("codes", [(-1, 1), (0, 1), (1, 2), (False, True)])
@pytest.mark.parametrize("chunks", [(70, 5), (1, 12), (1000, 12)])
def test_gram_of_a_dask_array_is_that_of_the_array(client, spins, codes, chunks):
    table = np.where(spins > 0, codes[1], codes[0])[: 20 if chunks[0] == 1 else None]
    same_gram(isingkit.dask.gram(da.from_array(table, chunks=chunks), client), ik.gram(table))


def test_the_current_client_is_the_default(client, spins):
    same_gram(isingkit.dask.gram(da.from_array(spins, chunks=100)), ik.gram(spins))


@pytest.mark.parametrize("missing", ["drop", "pairwise"])
def test_missing_values_are_those_of_the_whole(client, spins, rng, missing):
    """Also where a chunk has no complete row, or a column no value in a chunk."""
    table = np.where(rng.random(spins.shape) < 0.02, np.nan, spins)
    table[:50, 3] = np.nan
    found = isingkit.dask.gram(da.from_array(table, chunks=(50, 12)), client, missing=missing)
    same_gram(found, ik.gram(ik.as_spins(table, missing=missing)))
    with pytest.raises(ex.MissingValuesError) as caught:
        isingkit.dask.gram(da.from_array(table, chunks=(50, 12)), client)
    assert caught.value.counts["x3"] == np.isnan(table[:, 3]).sum()


def test_a_chunk_in_which_a_column_never_changes_is_read_like_the_rest(client, spins):
    """Columns of 0 and 1, and of 1 and 2: those of a chunk with 1 only would by itself be read as
    0/1.
    """
    table = (spins > 0) + np.arange(12) % 2
    table[:100, 1], table[100:200, 2] = 1, 1
    same_gram(isingkit.dask.gram(da.from_array(table, chunks=100), client), ik.gram(table))
    table[:, 0] = 1
    with pytest.warns(ex.ConstantColumnWarning, match="'x0'"):
        found = isingkit.dask.gram(da.from_array(table, chunks=100), client)
    with pytest.warns(ex.ConstantColumnWarning):
        same_gram(found, ik.gram(table))


def test_real_values_are_binarised_and_three_values_refused(client, spins, rng):
    table = spins + 0.1 * rng.normal(size=spins.shape)
    found = isingkit.dask.gram(da.from_array(table, chunks=64), client, binarize=0.2)
    same_gram(found, ik.gram(ik.as_spins(table, binarize=0.2)))
    with pytest.raises(ex.SpinValueError, match="x0"):
        isingkit.dask.gram(da.from_array(table, chunks=64), client)


def test_a_dask_data_frame_keeps_its_names(client, spins):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(np.where(spins > 0, "yes", "no"), columns=list("abcdefghijkl"))
    same_gram(isingkit.dask.gram(frames.from_pandas(table, npartitions=3), client), ik.gram(table))


def test_what_is_no_data_is_refused(client, spins):
    for wrong in (spins, [], [spins], 3):
        with pytest.raises(
            ex.SettingError, match="a dask array, a dask DataFrame or a list of files"
        ):
            isingkit.dask.gram(wrong, client)
    with pytest.raises(ex.TableShapeError):
        isingkit.dask.gram(da.zeros(10), client)
    with pytest.raises(ex.EmptyTableError):
        isingkit.dask.gram(da.zeros((0, 4)), client)
    with pytest.raises(ex.EmptyTableError):
        isingkit.dask.gram(da.zeros((4, 0)), client)
    with pytest.raises(ex.SettingError, match="drop must be left out"):
        isingkit.dask.gram(da.from_array(spins), client, drop=["x0"])


def test_without_any_client_one_is_asked_for(spins):
    with pytest.raises(ex.SettingError, match="client must be a distributed.Client"):
        isingkit.dask.gram(da.from_array(spins))


# Files


def write_csv(path, table, names="abcdefghijkl"):
    lines = [
        ",".join(names[: table.shape[1]]),
        *(",".join(str(value) for value in row) for row in table),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_gram_and_bits_of_many_files_are_those_of_one(client, spins, tmp_path):
    table = np.where(spins > 0, "yes", "no")
    table[:100, 2], table[100:, 2] = "no", "yes"  # in each file constant
    paths = [
        write_csv(tmp_path / f"{start}.csv", table[start : start + 100]) for start in (0, 100, 200)
    ]
    whole = write_csv(tmp_path / "whole.csv", table)
    packed = ik.as_spins(table)
    same_gram(
        isingkit.dask.gram(paths, client, drop=["l"]),
        isingkit.dask.gram([whole], client, drop=["l"]),
    )
    found = isingkit.dask.pack(paths, client)
    np.testing.assert_array_equal(found.words, ik.pack(packed).words)
    assert found.mapping == packed.mapping
    given = isingkit.dask.gram(paths, client, mapping=[("yes", "no")] * 12)
    np.testing.assert_array_equal(given.spin_sums, -ik.gram(packed).spin_sums)


def test_counts_of_files_count_rows(client, spins, rng, tmp_path):
    counts = rng.integers(1, 5, len(spins))
    table = np.column_stack([spins, counts])
    paths = [
        write_csv(tmp_path / f"{start}.csv", table[start : start + 150], "abcdefghijklm")
        for start in (0, 150)
    ]
    found = isingkit.dask.gram(paths, client, counts="m")
    np.testing.assert_array_equal(found.sums, ik.gram(spins, counts=counts).sums)
    assert found.n_samples == counts.sum()


def test_constant_columns_of_files_are_told_whatever_the_weights(client, spins, rng, tmp_path):
    """Sums of weights are rounded, and no constant column has exactly all of them."""
    for _ in range(5):
        table = np.column_stack([spins[:, :2], np.ones(len(spins), int), rng.random(len(spins))])
        path = write_csv(tmp_path / "weighted.csv", table, ["a", "b", "same", "weight"])
        with pytest.warns(ex.ConstantColumnWarning, match="'same'"):
            isingkit.dask.gram([path], client, weights="weight")


def test_files_of_bare_and_of_binarised_spins(client, spins, rng, tmp_path):
    real = spins + 0.1 * rng.normal(size=spins.shape)
    real[:150, 4] = 5.0
    for start in (0, 150):
        ik.PackedSpins(ik.pack(spins).words, 300, tuple("abcdefghijkl"))[start : start + 150].save(
            tmp_path / f"{start}.spins"
        )
        np.save(tmp_path / f"{start}.npy", real[start : start + 150])
    bare = isingkit.dask.gram(sorted(tmp_path.glob("*.spins")), client)
    np.testing.assert_array_equal(bare.sums, ik.gram(spins).sums)
    found = isingkit.dask.gram(sorted(tmp_path.glob("*.npy")), client, binarize=0.0)
    same_gram(found, ik.gram(ik.as_spins(real, binarize=0.0)))


def test_files_that_cannot_be_one_table_are_refused(client, spins, tmp_path):
    low = write_csv(tmp_path / "low.csv", np.where(spins > 0, 1, 0))
    high = write_csv(tmp_path / "high.csv", np.where(spins > 0, 2, 1))
    with pytest.raises(ex.CodingMismatchError, match="column 'a' was read as") as caught:
        isingkit.dask.gram([low, high], client)
    assert {caught.value.left, caught.value.right} == {(0, 1), (1, 2)}
    with pytest.raises(ex.CodingMismatchError):
        isingkit.dask.gram([low, high], client, mapping=[(0, 1)] * 12)
    with pytest.raises(ex.CodingMismatchError):
        isingkit.dask.gram(
            [low, write_csv(tmp_path / "words.csv", np.where(spins > 0, "yes", "no"))], client
        )
    with pytest.raises(ex.SettingError, match="12 pairs of values"):
        isingkit.dask.gram([low], client, mapping=[(0, 1)])
    with pytest.raises(ex.ModelMismatchError, match="all files"):
        isingkit.dask.gram(
            [low, write_csv(tmp_path / "other.csv", np.where(spins > 0, 1, 0), "abcdefghijkz")],
            client,
        )
    with pytest.raises(FileNotFoundError):
        isingkit.dask.gram([tmp_path / "nothing.csv"], client)


# The screen


@pytest.mark.parametrize(("ridge", "prune"), [(np.inf, 0.25), (1.0, 0.008)])
@pytest.mark.parametrize("fit_fields", [True, False])
def test_a_screen_on_workers_finds_what_one_machine_finds(
    client, samples, ridge, prune, fit_fields
):
    """Six bands. Cholesky factors have other last bits with other numbers of BLAS threads, unless
    they are kept to one.
    """
    estimator = ik.TwoStageIsing(ridge=ridge, prune=prune, fit_fields=fit_fields)
    with isingkit.dask.using(client):
        there = ik.TwoStageIsing(**estimator.get_params()).fit(samples)
    same_fit(there, estimator.fit(samples))
    assert there.model_.n_edges > 5000


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")
def test_structure_without_knobs_is_the_same_with_workers(client, tiled):
    """Both of its screens are tasks: of scores, and of correlations."""
    here = ik.AutoIsing().fit(tiled)
    with isingkit.dask.using(client):
        there = ik.AutoIsing().fit(tiled)
    np.testing.assert_array_equal(there.candidates_, here.candidates_)
    np.testing.assert_array_equal(there.edges_, here.edges_)
    assert there.model_.n_edges > 2500


def test_what_bands_share_is_made_once_a_process(client, samples):
    """The screen that a worker holds is the one its tasks work on: no task leaves it as it was
    sent.
    """
    from isingkit.estimators import tiles
    from isingkit.estimators.bits import bits_of

    def made(screen, number):
        tiles._one_band(screen, number)
        assert screen._left is not None
        return os.getpid(), id(screen._left)

    screen = tiles.RidgeScreen(bits_of(samples, True), 1.0, 0.008)
    found = {
        result
        for _, result in isingkit.dask._distributed(client, made, screen, [0, 1, 2, 3, 4, 5, 5, 5])
    }
    assert len(found) == len({pid for pid, _ in found})
    assert screen._left is None  # nothing was made here


@pytest.fixture(scope="module")
def many(samples):
    """20,000 spins in 20 bands, which take a worker long enough to be killed among them."""
    truth = ik.random_regular(n_spins=20_000, degree=3, coupling=0.4, random_state=0)
    packed = ik.sample(truth, n_samples=1500, random_state=1, warm_up=20, check=False)
    estimator = ik.TwoStageIsing(ridge=np.inf, prune=0.15)
    return packed, estimator.fit(packed)


def test_a_worker_killed_in_the_middle_of_a_screen_is_made_up_for(client, many, tmp_path):
    packed, whole = many
    counted = []

    def some_done():
        counted[:] = [len(list(tmp_path.glob("band-*.npz")))]
        return counted[0] >= 2

    thread = killer(some_done, pids(client)[:1])
    with isingkit.dask.using(client):
        there = ik.TwoStageIsing(ridge=np.inf, prune=0.15, checkpoint=tmp_path).fit(packed)
    thread.join(LONG)
    assert 2 <= counted[0] < 20
    same_fit(there, whole)


def test_all_workers_lost_is_told_and_the_fit_goes_on_without_them(client, many, tmp_path):
    packed, whole = many
    thread = killer(lambda: len(list(tmp_path.glob("band-*.npz"))) >= 2, pids(client))
    estimator = ik.TwoStageIsing(ridge=np.inf, prune=0.15, checkpoint=tmp_path)
    with (
        pytest.raises(ex.WorkersLostError, match="start again; with a checkpoint") as caught,
        isingkit.dask.using(client),
    ):
        estimator.fit(packed)
    thread.join(LONG)
    assert str(caught.value).count(". ") == 0
    recorded = {path: path.stat().st_mtime_ns for path in tmp_path.glob("band-*.npz")}
    assert 2 <= len(recorded) < 20
    same_fit(estimator.fit(packed), whole)
    assert all(path.stat().st_mtime_ns == when for path, when in recorded.items())  # not done again


def test_a_worker_killed_in_the_middle_of_a_gram_is_made_up_for(client, spins, tmp_path):
    folder = str(tmp_path)

    def slow(block, block_info=None):
        number = block_info[0]["chunk-location"][0]
        (Path(folder) / f"{number}-{time.monotonic_ns()}").touch()
        time.sleep(0.1)
        return block

    table = da.from_array(spins, chunks=(10, 12)).map_blocks(
        slow, dtype=spins.dtype, meta=np.empty((0, 0), spins.dtype)
    )
    thread = killer(lambda: len(list(tmp_path.iterdir())) >= 4, pids(client)[:1])
    found = isingkit.dask.gram(table, client, mapping=[(-1, 1)] * 12)
    thread.join(LONG)
    same_gram(found, ik.gram(spins))
    assert len(list(tmp_path.iterdir())) > 30  # something was done again


@pytest.mark.parametrize(
    "error",
    [
        distributed.comm.CommClosedError("Stream is closed"),
        KeyError("tcp://127.0.0.1:1"),
        OSError("Timed out trying to connect"),
    ],
)
def test_a_worker_lost_while_data_are_sent_to_it_is_made_up_for(client, tiled, monkeypatch, error):
    """By whatever Dask's scheduler stumbles over then. Seen to fail: a scheduler that was there was
    said to be lost, or the error of Dask was raised.
    """
    scatter = distributed.Client.scatter
    n_sent = 0

    def stumbling(self, *data, **options):
        nonlocal n_sent
        n_sent += 1
        if n_sent == 1:
            raise error
        return scatter(self, *data, **options)

    estimator = ik.TwoStageIsing(ridge=np.inf, prune=0.25)
    with isingkit.dask.using(client):
        monkeypatch.setattr(distributed.Client, "scatter", stumbling)
        there = estimator.fit(tiled)
    assert n_sent == 2
    same_fit(there, estimator.fit(tiled))


def test_every_worker_has_the_data_before_a_few_tasks_are_given_to_them(client, samples):
    """Dask gives few tasks to those that hold what they need: to one worker otherwise."""

    def who(_shared, _item):
        time.sleep(0.3)
        return os.getpid()

    found = dict(isingkit.dask._distributed(client, who, samples, [0, 1]))
    assert found[0] != found[1]


def test_data_are_not_broadcast_by_dask(client, samples, monkeypatch):
    """Whose scheduler asks a worker that is lost meanwhile for them without end."""
    scatter = distributed.Client.scatter

    def checked(self, *data, **options):
        assert not options.get("broadcast")
        return scatter(self, *data, **options)

    monkeypatch.setattr(distributed.Client, "scatter", checked)
    found = dict(isingkit.dask._distributed(client, lambda _, item: -item, samples, [1, 2, 3]))
    assert found == {0: -1, 1: -2, 2: -3}


def test_an_error_of_a_task_comes_as_it_is(client, samples):
    twice = ik.PackedSpins.concatenate([samples[:50], samples[:50]])
    with (
        isingkit.dask.using(client),
        pytest.raises(ex.SettingError, match="ridge must be large enough"),
    ):
        ik.TwoStageIsing(ridge=1e-30, prune=0.1, fit_fields=False).fit(twice)


# Stability, samples, figures


def test_stability_on_a_cluster_is_that_of_one_machine(client, spins):
    here = ik.AutoIsing().stability(spins, n_resamples=10, random_state=3)
    with isingkit.dask.using(client):
        there = ik.AutoIsing().stability(spins, n_resamples=10, random_state=3)
    for name in here.edges.dtype.names:
        np.testing.assert_array_equal(here.edges[name], there.edges[name])


def test_resamples_on_a_cluster_are_those_of_one_machine(client, spins):
    def resampled():
        dropping = ik.case_dropping(ik.RidgeIsing(), spins, n_resamples=2, random_state=3)
        boot = ik.bootstrap(ik.RidgeIsing(), spins, n_resamples=4, random_state=3)
        return dropping.correlations["strength"], boot.couplings

    here = resampled()
    with isingkit.dask.using(client):
        there = resampled()
    for mine, its in zip(here, there, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_samples_depend_on_the_seed_and_not_on_the_workers(client, cluster):
    model = ik.random_regular(n_spins=50, degree=3, coupling=0.3, random_state=0)
    found = isingkit.dask.sample(model, 1300, client, chunk=512, random_state=7)
    assert found.shape == (1300, 50)
    here = [
        ik.sample(model, n, random_state=rng)
        for n, rng in zip((512, 512, 276), np.random.default_rng(7).spawn(3), strict=True)
    ]
    np.testing.assert_array_equal(found.words, ik.PackedSpins.concatenate(here).words)
    with pytest.raises(ex.SettingError, match="chunk"):
        isingkit.dask.sample(model, 10, client, chunk=0)


def test_figures_are_measured_on_a_cluster_and_recorded_here(client, tmp_path):
    config = Config.quick()
    there = runner.run("fig7", config, tmp_path / "there", executor=isingkit.dask.executor(client))
    assert there == runner.run("fig7", config, tmp_path / "here")
    assert len(list((tmp_path / "there" / "records").glob("*/*.json"))) > 0


# Comparisons


@pytest.fixture(scope="module")
def world():
    truth = ik.random_regular(n_spins=16, degree=3, coupling=0.4, random_state=0)
    return truth, ik.exact(truth).sample(n_samples=800, random_state=1)


def same_comparison(left, right):
    """To the last bit, but for the time it took."""
    assert [replace(one, seconds=None) for one in left.outcomes] == [
        replace(one, seconds=None) for one in right.outcomes
    ]
    assert [one.seconds is None for one in left.outcomes] == [
        one.seconds is None for one in right.outcomes
    ]
    np.testing.assert_array_equal(left.agreement, right.agreement)
    assert list(left.models) == list(right.models)
    for name, model in left.models.items():
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(
                getattr(model.couplings, part), getattr(right.models[name].couplings, part)
            )
        np.testing.assert_array_equal(model.fields, right.models[name].fields)
    assert (left.n_samples, left.n_spins, left.n_held_out) == (
        right.n_samples,
        right.n_spins,
        right.n_held_out,
    )


def outside(folder, say="", pause=0.0):
    """A method that workers cannot import: ridge, which warns and pauses, and notes its process and
    how long it took.
    """

    class Outside:
        def fit(self, X, sample_weight=None):
            (Path(folder) / f"{os.getpid()}-{time.monotonic_ns()}").touch()
            start = time.perf_counter()
            time.sleep(pause)
            if say:
                warnings.warn(say, RuntimeWarning, stacklevel=1)
            self.model_ = ik.RidgeIsing().fit(X, sample_weight=sample_weight).model_
            with open(Path(folder) / "times", "a") as file:
                file.write(f"{X.n_samples} {start} {time.perf_counter()}\n")
            return self

    return Outside()


def times(folder):
    """Samples, start and stop of each fit that was finished."""
    return [
        tuple(float(word) for word in line.split())
        for line in (folder / "times").read_text().splitlines()
    ]


def there_and_here(client, *arguments, **options):
    """Two comparisons. Dask's workers have one thread for BLAS, whose last bits depend on that."""
    with isingkit.dask.using(client):
        there = ik.compare(*arguments, **options)
    with one_blas_thread():
        return there, ik.compare(*arguments, **options)


def test_a_comparison_on_a_cluster_is_that_of_one_machine(client, world, capsys):
    truth, samples = world
    there, here = there_and_here(client, samples, truth, progress=True, random_state=3)
    same_comparison(there, here)
    assert len(there.models) > 15
    assert (
        capsys.readouterr().err.count(f"{len(there.outcomes)}/{len(there.outcomes)}") >= 2
    )  # both bars
    states, counts = np.unique(np.asarray(samples)[:, :6], axis=0, return_counts=True)
    same_comparison(*there_and_here(client, states, methods=["eLasso", "two-stage"], counts=counts))


def test_seconds_are_those_of_the_fit_to_all_samples_in_the_worker(client, world, tmp_path):
    """Not those of the other fit, of the way there, or of the wait for a worker that is busy."""
    methods = {str(k): outside(tmp_path, pause=0.5) for k in range(4)}
    with isingkit.dask.using(client):
        found = ik.compare(world[1], methods=methods)
    noted = sorted(stop - start for n_samples, start, stop in times(tmp_path) if n_samples == 800)
    for one, inner in zip(sorted(one.seconds for one in found.outcomes), noted, strict=True):
        assert inner <= one < inner + 0.5  # the pause of the other fit
    assert len({path.name.split("-")[0] for path in tmp_path.glob("*-*")} - {str(os.getpid())}) == 2


def test_a_method_that_fails_on_a_worker_says_what_it_says_here(client, rng):
    class Unsendable(Exception):
        def __init__(self, code, lock):
            super().__init__(f"code {code}")

    class Fails:
        def fit(self, X, sample_weight=None):
            raise Unsendable(3, threading.Lock())

    table = rng.choice([-1, 1], (30, 40))
    methods = {"linear": ik.LinearIsing(), "fails": Fails(), "ridge": ik.RidgeIsing()}
    there, here = there_and_here(client, table, methods=methods)
    same_comparison(there, here)
    assert "underdetermined" in there.outcomes[0].problem
    assert there.outcomes[1].problem == "code 3"
    assert list(there.models) == ["ridge"]


def test_a_bug_of_ours_on_a_worker_is_raised_here(client, world):
    class Broken(ik.RidgeIsing):
        def fit(self, X, y=None, *, sample_weight=None):
            raise ZeroDivisionError("a bug")

    with isingkit.dask.using(client), pytest.raises(ZeroDivisionError, match="a bug"):
        ik.compare(world[1], methods={"broken": Broken(), "ridge": ik.RidgeIsing()})


def test_warnings_of_workers_are_those_of_one_machine(client, world):
    """Ours at the caller's line, others where they arose; shown or not as the caller's filters have
    it.
    """

    class Warns:
        def fit(self, X, sample_weight=None):
            warnings.warn("theirs", RuntimeWarning, stacklevel=1)
            self.model_ = ik.IsingModel(np.zeros((16, 16)), names=X.names)
            return self

    table = np.asarray(world[1]).copy()
    table[:, 3] = 1

    def told(filters):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(filters)
            ik.compare(ik.as_spins(table), methods={"mine": ik.RidgeIsing(), "theirs": Warns()})
        return {
            (one.category, str(one.message), one.filename, one.lineno) for one in caught[1:]
        }  # the first is of as_spins

    for filters, kinds in (
        ("always", {ex.ConstantColumnWarning, RuntimeWarning}),
        ("ignore", set()),
    ):
        with isingkit.dask.using(client):
            there = told(filters)
        assert there == told(filters)
        assert {kind for kind, *_ in there} == kinds


def test_methods_have_a_worker_for_themselves(world, tmp_path):
    """Four threads of one process: fits do not overlap, and no warning is lost or shown of
    another.
    """
    options = {"processes": True, "n_workers": 1, "threads_per_worker": 4}
    methods = {str(k): outside(tmp_path, say=f"of {k}", pause=0.05) for k in range(4)}
    with (
        distributed.LocalCluster(**options, **HERE) as threads,
        distributed.Client(threads) as client,
        isingkit.dask.using(client),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("default")
        ik.compare(world[1], methods=methods)
    assert [str(one.message) for one in caught if one.category is RuntimeWarning] == [
        f"of {k}" for k in range(4)
    ]
    noted = sorted((start, stop) for _, start, stop in times(tmp_path))
    assert len(noted) == 8
    assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(noted))


def test_a_worker_killed_in_the_middle_of_a_comparison_is_made_up_for(client, world, tmp_path):
    """Killed is the process that was first to learn."""
    truth, samples = world
    victims = []

    def one_learns():
        victims[:] = [int(path.name.split("-")[0]) for path in tmp_path.glob("*-*")][:1]
        return bool(victims)

    methods = {str(k): outside(tmp_path, pause=0.3) for k in range(4)} | {
        "eLasso": ik.ELassoIsing()
    }
    thread = killer(one_learns, victims)
    with isingkit.dask.using(client):
        there = ik.compare(samples, truth, methods)
    thread.join(LONG)
    assert len(list(tmp_path.glob("*-*"))) > 8  # something was done again
    with one_blas_thread():
        same_comparison(there, ik.compare(samples, truth, methods))


# The command line, and how a cluster is reached


@pytest.fixture
def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as caught, warnings.catch_warnings():
        main([str(argument) for argument in arguments])
    return caught.value.code, capsys.readouterr()


def test_a_scheduler_that_does_not_answer_is_told_in_one_sentence(
    capsys, monkeypatch, closed_port, spins, tmp_path
):
    address = f"tcp://127.0.0.1:{closed_port}"
    for wrong in (address, "nonsense://"):
        with (
            pytest.raises(ex.SchedulerUnreachableError, match="look whether 'dask scheduler'"),
            isingkit.dask.connected(wrong, timeout=1),
        ):
            pass
    write_csv(tmp_path / "data.csv", spins)
    fit = ("fit", tmp_path / "data.csv", "-o", tmp_path / "fit", "--method", "two-stage")
    others = [
        ("compare", tmp_path / "data.csv"),
        ("reproduce", "fig7", "--quick", "-o", tmp_path / "figures"),
    ]
    for command, seconds in ((fit, 10), *((other, 1) for other in others)):
        if seconds == 1:  # one long wait is enough
            monkeypatch.setattr(
                isingkit.dask, "connected", functools.partial(isingkit.dask.connected, timeout=1)
            )
        status, said = run(capsys, *command, "--scheduler", address)
        assert status == 2
        assert said.out == ""
        assert said.err.startswith(
            f"isingkit: no Dask scheduler with workers answered at '{address}' "
            f"within {seconds} seconds"
        )
        assert said.err.count("\n") == 1
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-OpenSSH\r\n"])
def test_whoever_accepts_and_is_no_scheduler_is_told_in_time(greeting):
    """Seen to fail: one that accepts and is silent was waited for without end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted = []

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    accepted.append(server.accept()[0])
                    accepted[-1].sendall(greeting)

        threading.Thread(target=accept, daemon=True).start()
        start = time.monotonic()
        with (
            pytest.raises(ex.SchedulerUnreachableError),
            isingkit.dask.connected(f"127.0.0.1:{server.getsockname()[1]}", timeout=0.5),
        ):
            pass
        assert time.monotonic() - start < 5
        for one in accepted:
            one.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the keys")
@pytest.mark.parametrize("shakes_hands", [False, True])
def test_whoever_accepts_by_tls_and_is_silent_is_told_in_time(tmp_path, shakes_hands):
    """Before or after the handshake. Seen to fail: who shook hands was waited for without end."""
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command = ["openssl", "req", *made, "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    where = "distributed.comm.tls"
    keys = {
        f"{where}.ca-file": certificate,
        f"{where}.client.cert": certificate,
        f"{where}.client.key": key,
    }
    its_own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    its_own.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted = []

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    accepted.append(server.accept()[0])
                    with contextlib.suppress(OSError):
                        if shakes_hands:
                            accepted[-1] = its_own.wrap_socket(accepted[-1], server_side=True)

        threading.Thread(target=accept, daemon=True).start()
        address = f"tls://127.0.0.1:{server.getsockname()[1]}"
        start = time.monotonic()
        with (
            dask.config.set(keys),
            pytest.raises(ex.SchedulerUnreachableError),
            isingkit.dask.connected(address, timeout=0.5),
        ):
            pass
        assert time.monotonic() - start < 5
        for one in accepted:
            one.close()


def test_a_scheduler_that_is_lost_on_the_way_is_told(samples):
    """By what Dask raises once it gave up, and by a client that it has closed. Seen to fail: both
    were told in Dask's words.
    """
    with (
        pytest.raises(ex.WorkersLostError, match="so is the scheduler"),
        isingkit.dask.translate_worker_errors(),
    ):
        raise distributed.comm.CommClosedError("ConnectionPool closing.")
    with distributed.LocalCluster(n_workers=0, **HERE) as empty:
        client = distributed.Client(empty)
        client.close()
        with isingkit.dask.using(client), pytest.raises(ex.WorkersLostError):
            ik.TwoStageIsing(ridge=np.inf, prune=0.25).fit(samples)


def test_a_scheduler_without_workers_is_told_as_well():
    with (
        distributed.LocalCluster(n_workers=0, **HERE) as empty,
        pytest.raises(ex.SchedulerUnreachableError),
        isingkit.dask.connected(empty.scheduler_address, timeout=0.5),
    ):
        pass


def test_a_fit_on_a_cluster_without_workers_is_told(monkeypatch, samples):
    monkeypatch.setattr(isingkit.dask, "_WAIT", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, **HERE) as empty,
        distributed.Client(empty) as client,
        isingkit.dask.using(client),
        pytest.raises(ex.WorkersLostError, match="there is none left"),
    ):
        ik.TwoStageIsing(ridge=np.inf, prune=0.25).fit(samples)


def test_only_one_way_to_a_cluster_is_taken(capsys, spins, tmp_path):
    for wrong in ({}, {"scheduler": "tcp://127.0.0.1:1", "workers": 2}):
        with (
            pytest.raises(ex.SettingError, match="scheduler must be an address"),
            isingkit.dask.connected(**wrong),
        ):
            pass
    path = write_csv(tmp_path / "data.csv", spins)
    assert run(capsys, "fit", path, "--method", "ridge", "--workers", 2)[0] == 2
    for command in (("fit", path, "--method", "two-stage"), ("compare", path)):
        status, said = run(capsys, *command, "--workers", 2, "--scheduler", "tcp://127.0.0.1:1")
        assert (status, "not both" in said.err) == (2, True)


@pytest.mark.parametrize("way", ["--scheduler", "--workers"])
def test_fit_on_a_cluster_writes_the_model_of_one_machine(
    capsys, monkeypatch, client, cluster, samples, tmp_path, way
):
    samples.save(tmp_path / "data.spins")
    knobs = ("--method", "two-stage", "--set", "ridge=inf", "--set", "prune=0.25")
    asked, spread = [], isingkit.dask._distributed

    def counted(client, work, shared, items):
        asked.append(len(items))
        return spread(client, work, shared, items)

    monkeypatch.setattr(isingkit.dask, "_distributed", counted)
    where = cluster.scheduler_address if way == "--scheduler" else 2
    for folder, extra in (("there", (way, where)), ("here", ())):
        status, said = run(
            capsys, "fit", tmp_path / "data.spins", "-o", tmp_path / folder, *knobs, *extra
        )
        assert status == 0, said.err
    assert asked == [6]  # bands, once
    with (
        np.load(tmp_path / "there" / "model.npz") as there,
        np.load(tmp_path / "here" / "model.npz") as here,
    ):
        for name in here.files:
            np.testing.assert_array_equal(there[name], here[name])


def test_a_fit_without_knobs_that_loses_workers_writes_the_files_of_one_machine(
    capsys, monkeypatch, client, cluster, tiled, tmp_path
):
    """From a file to the report. A worker is lost in the middle of each of its screens: that of
    scores, and that of correlations.
    """
    tiled.save(tmp_path / "data.spins")
    lost, spread = [], isingkit.dask._distributed

    def losing(client, work, shared, items):
        client.wait_for_workers(2, timeout=LONG)  # the one lost before is there again
        for number, found in enumerate(spread(client, work, shared, items)):
            if number == 0:
                lost.append(pids(client)[0])
                os.kill(lost[-1], signal.SIGKILL)
            yield found

    with monkeypatch.context() as patch:
        patch.setattr(isingkit.dask, "_distributed", losing)
        where = ("--scheduler", cluster.scheduler_address)
        status, said = run(capsys, "fit", tmp_path / "data.spins", "-o", tmp_path / "there", *where)
    assert status == 0, said.err
    assert len(lost) >= 2
    assert run(capsys, "fit", tmp_path / "data.spins", "-o", tmp_path / "here")[0] == 0
    assert (tmp_path / "there" / "report.html").is_file()
    for name in ("edges.csv", "model.npz"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.IsingkitWarning")
@pytest.mark.parametrize("n_samples", [200, 400])
def test_weights_covariates_and_more_rows_than_columns_are_the_same_with_workers(
    client, monkeypatch, rng, n_samples
):
    """Digits and all: a worker makes the matrix of all pairs of samples, or of spins, itself."""
    monkeypatch.setattr(sizes, "MOST_DENSE", 10)
    truth = ik.random_regular(n_spins=300, degree=3, coupling=0.4, random_state=0)
    rows = ik.sample(truth, n_samples=n_samples, random_state=1)
    beside = {
        "sample_weight": rng.uniform(0.3, 2, n_samples),
        "covariates": rng.normal(size=n_samples),
    }
    here = ik.AutoIsing().fit(rows, **beside)
    with isingkit.dask.using(client):
        there = ik.AutoIsing().fit(rows, **beside)
    np.testing.assert_array_equal(there.edges_, here.edges_)
    assert (there.screen_.scores != here.screen_.scores).nnz == 0
    assert there.model_.n_edges > 200


@pytest.mark.parametrize("way", ["--scheduler", "--workers"])
def test_compare_on_a_cluster_prints_what_one_machine_prints(
    capsys, monkeypatch, client, cluster, spins, tmp_path, way
):
    path = write_csv(tmp_path / "data.csv", spins)
    asked, spread = [], isingkit.dask._distributed

    def counted(client, work, shared, items):
        asked.append(len(items))
        return spread(client, work, shared, items)

    monkeypatch.setattr(isingkit.dask, "_distributed", counted)
    facts = []
    for extra in ((way, cluster.scheduler_address if way == "--scheduler" else 2), ()):
        with one_blas_thread():
            status, said = run(
                capsys,
                "compare",
                path,
                "--methods",
                "auto,ridge,eLasso",
                "--seed",
                5,
                "--json",
                *extra,
            )
        assert status == 0, said.err
        assert "3/3" in said.err
        facts.append(json.loads(said.out))
        assert all(one.pop("seconds") > 0 for one in facts[-1]["methods"])
    assert asked == [3]  # methods, once
    assert facts[0] == facts[1]


def test_reproduce_on_a_cluster_writes_the_table_of_one_machine(capsys, client, cluster, tmp_path):
    for folder, extra in (("there", ("--scheduler", cluster.scheduler_address)), ("here", ())):
        status, said = run(capsys, "reproduce", "fig7", "--quick", "-o", tmp_path / folder, *extra)
        assert status == 0, said.err
    assert (tmp_path / "there" / "fig7.csv").read_text() == (
        tmp_path / "here" / "fig7.csv"
    ).read_text()
