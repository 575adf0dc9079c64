import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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
