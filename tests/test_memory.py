import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import isingkit as ik
from isingkit import memory
from isingkit.estimators import network_search
from isingkit.exceptions import NotEnoughMemoryError

PEAK = """
def peak():  # not getrusage: a new process inherits there what its parent had
    return 1024 * int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

"""
PROGRAM = """
import numpy as np
import isingkit as ik

n_spins, n_samples = 5000, 2500
values = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (n_samples, n_spins))
small = {estimator}.fit(values[:, :200])  # imports and compiles
before = peak()
{estimator}.fit(values)
print((peak() - before) / (8 * n_spins**2))
"""


def peak(estimator):
    """Peak memory of a fit beyond what was there before, in N x N float64 matrices."""
    program = PEAK + PROGRAM.format(estimator=estimator)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc"
)
def test_fitting_five_thousand_spins_stays_under_eight_square_matrices():
    assert peak("ik.RidgeIsing()") < 8
    assert peak("ik.TwoStageIsing(ridge=0.1, prune=0.08)") < 8


FITTING = """
import ctypes
import gc
import json
import warnings

import numpy as np
import isingkit as ik
from isingkit.estimators import predicted_memory, sizes

way, *shapes = json.loads(sys.argv[1])
sizes.MOST_DENSE = 10**9 if way == "matrices" else 10
warnings.simplefilter("ignore")


def resident():
    return 1024 * int(open("/proc/self/status").read().split("VmRSS:")[1].split()[0])


def world(n_spins, n_samples):
    truth = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=0)
    return ik.sample(truth, n_samples=n_samples, random_state=1, warm_up=30, check=False)


for n_samples in (80, 400):
    ik.AutoIsing(merge_alike=False).fit(world(300, n_samples))  # imports and compiles
found = []
for n_spins, n_samples in shapes:
    samples = world(n_spins, n_samples)
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
    before = resident()
    ik.AutoIsing(merge_alike=False).fit(samples)
    if way == "matrices":
        predicted = predicted_memory.bytes_by_matrices(n_spins, n_samples)
    else:
        predicted = predicted_memory.bytes_by_tiles(n_spins, n_samples, True)
    found.append((peak() - before) / predicted)
print(json.dumps(found))
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from Linux's /proc"
)
@pytest.mark.parametrize(
    ("way", "shapes"),
    [
        ("matrices", [(800, 3000), (1000, 600), (1200, 2000), (2000, 800)]),
        ("tiles", [(1200, 1500), (2500, 300), (2000, 1500), (3000, 500)]),
    ],
)
def test_memory_that_a_fit_takes_was_predicted(way, shapes):
    """To 20 percent, at four sizes."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys\n" + PEAK + FITTING, json.dumps([way, *shapes])],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == pytest.approx([1.0] * 4, abs=0.2)


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.IsingkitWarning")
def test_all_pairs_are_held_twice_once_they_are_screened(monkeypatch):
    """Moments in double, z-scores of the screen and of tests in single precision.

    Seen to fail with correlations of regressors in a matrix of their own, which made it three.
    """
    n_spins = 1000
    truth = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.5, random_state=0)
    samples = ik.sample(truth, n_samples=100, random_state=1)
    held = []
    select = network_search.select_edges

    def watched(*arguments, **named):
        held.append(tracemalloc.get_traced_memory()[0])
        return select(*arguments, **named)

    monkeypatch.setattr(network_search, "select_edges", watched)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    ik.AutoIsing(hidden=0).fit(samples)
    tracemalloc.stop()
    spins = (8 + 4) * n_spins * samples.n_samples  # as numbers
    assert (held[0] - before - spins) / (8 * n_spins**2) < 2.5


READING = """
import sys
from isingkit.tables import read_spins

read_spins(sys.argv[1])  # imports and compiles
before = peak()
packed = read_spins(sys.argv[2]).packed
print(packed.n_samples, peak() - before - packed.words.nbytes)
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc"
)
def test_reading_a_large_text_takes_a_few_chunks_beyond_its_bits(tmp_path):
    """60 MB of text: the bits and at most 20 MB; all bytes would be 60 MB and numbers 240 MB."""
    values = np.random.default_rng(0).integers(0, 2, (300_000, 100), dtype=np.uint8)
    text = np.full((300_000, 200), ord(","), dtype=np.uint8)
    text[:, ::2] = values + ord("0")
    text[:, -1] = ord("\n")
    text[:20].tofile(tmp_path / "small.csv")
    text.tofile(tmp_path / "large.csv")
    for name in ("small.csv", "large.csv"):  # first to compile, which takes memory too
        arguments = [sys.executable, "-c", PEAK + READING, tmp_path / "small.csv", tmp_path / name]
        n_samples, taken = subprocess.run(
            arguments, capture_output=True, text=True, check=True
        ).stdout.split()
    assert int(n_samples) == 300_000
    assert int(taken) < 20e6


@pytest.mark.parametrize(
    ("line", "folder", "limit_name", "used_name", "cached_name"),
    [
        ("0::/box", "box", "memory.max", "memory.current", "inactive_file"),
        ("0::/", "", "memory.max", "memory.current", "inactive_file"),
        ("0::/not/visible/here", "", "memory.max", "memory.current", "inactive_file"),
        (
            "4:memory:/box",
            "memory/box",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
        ),
    ],
)
def test_a_container_has_what_its_limit_leaves_and_files_it_could_drop(
    line, folder, limit_name, used_name, cached_name, tmp_path, monkeypatch
):
    group = tmp_path / folder
    group.mkdir(parents=True, exist_ok=True)
    (group / limit_name).write_text("50000000\n")
    (group / used_name).write_text("30000000\n")
    (group / "memory.stat").write_text(f"anon 10\n{cached_name} 5000000\n")
    _pretend(monkeypatch, tmp_path, line)
    assert memory.memory_there() == 25_000_000
    with pytest.raises(NotEnoughMemoryError):
        memory.require_memory(26e6, n_spins=10, n_samples=10)


@pytest.mark.parametrize(
    ("line", "folder", "name", "limit"),
    [
        ("0::/", "", "memory.max", "max\n"),
        ("4:memory:/", "memory", "memory.limit_in_bytes", f"{2**63 - 4096}\n"),
    ],
)
def test_a_container_without_limit_has_what_the_machine_has(
    line, folder, name, limit, tmp_path, monkeypatch
):
    folder = tmp_path / folder
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(limit)
    _pretend(monkeypatch, tmp_path, line)
    assert memory.memory_there() == 10**12


def _pretend(monkeypatch, groups, line):
    """A machine with a terabyte free, and one line of /proc/self/cgroup."""
    read = Path.read_text

    def read_text(path, *args, **kwargs):
        return f"{line}\n" if str(path) == "/proc/self/cgroup" else read(path, *args, **kwargs)

    monkeypatch.setattr(memory, "_GROUPS", groups)
    monkeypatch.setattr(memory, "_left_on_machine", lambda: 10**12)
    monkeypatch.setattr(Path, "read_text", read_text)
