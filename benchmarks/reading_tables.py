"""A large text table as packed spins: against pandas, then as_spins and pack; and the memory it
takes.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import isingkit as ik
from isingkit.tables import read_spins
from side_by_side import Claim, faster, seconds

N_ROWS, N_COLUMNS = 1_000_000, 100
MOST_MEGABYTES = 300
PROGRAM = """
import sys
from isingkit.tables import read_spins
read_spins(sys.argv[1])
print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024)  # getrusage has the parent's peak, too
"""


def measure() -> list[Claim]:
    """1,000,000 rows of 100 columns of 0/1, with names: 200 MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(path)

        def ours() -> ik.PackedSpins:
            return read_spins(path).packed

        def theirs() -> ik.PackedSpins:
            return ik.pack(ik.as_spins(pd.read_csv(path)))

        np.testing.assert_array_equal(ours().words, theirs().words)
        taken = seconds({"ours": ours, "pandas": theirs}, rounds=5)
        megabytes = peak_megabytes(path)
    what = f"a CSV of {N_ROWS:,} rows of {N_COLUMNS} columns as packed spins"
    return [
        faster(what, f"read_csv of pandas {pd.__version__}, as_spins and pack", taken["ours"], taken["pandas"], at_least=3),
        Claim(
            f"{what}: peak memory of the process, MB, imports included", f"{MOST_MEGABYTES} MB", megabytes, MOST_MEGABYTES,
            megabytes / MOST_MEGABYTES, (megabytes / MOST_MEGABYTES,) * 2, "at most 1", megabytes <= MOST_MEGABYTES,
        ),
    ]  # fmt: skip


def write_table(path: Path) -> None:
    """Coins, a tenth of the rows at a time."""
    rng = np.random.default_rng(0)
    text = np.full((N_ROWS // 10, 2 * N_COLUMNS), ord(","), dtype=np.uint8)
    text[:, -1] = ord("\n")
    with open(path, "wb") as file:
        file.write(",".join(f"q{k}" for k in range(N_COLUMNS)).encode() + b"\n")
        for _ in range(10):
            text[:, ::2] = rng.integers(ord("0"), ord("1") + 1, (len(text), N_COLUMNS))
            file.write(text.data)


def peak_megabytes(path: Path) -> float:
    """Largest memory of a fresh process that reads the table."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    return float(done.stdout)
