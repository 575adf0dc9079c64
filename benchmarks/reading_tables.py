"""A large text table as packed spins: against pandas and pyarrow, and the memory it takes.

Both peers read the table, then as_spins and pack make spins of it. pyarrow reads on all cores and
is told that numbers are small, which is fastest.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.csv

import isingkit as ik
from isingkit.tables import read_spins
from side_by_side import Claim, faster, seconds

N_ROWS = 1_000_000
N_COLUMNS = 100
NAMES = [f"q{k}" for k in range(N_COLUMNS)]
BYTES = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(NAMES, pyarrow.int8()))
MOST_MEGABYTES = 300
PROGRAM = """
import sys
from isingkit.tables import read_spins
read_spins(sys.argv[1])
status = open("/proc/self/status").read()  # getrusage has the parent's peak, too
print(int(status.split("VmHWM:")[1].split()[0]) / 1024)
"""


def measure() -> list[Claim]:
    """1,000,000 rows of 100 columns of 0/1, with names: 200 MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(path)
        taken = seconds_of_readers(path)
        megabytes = peak_megabytes(path)
    what = f"a CSV of {N_ROWS:,} rows of {N_COLUMNS} columns as packed spins"
    by_pandas = f"read_csv of pandas {pd.__version__}, as_spins and pack"
    by_pyarrow = f"csv.read_csv of pyarrow {pyarrow.__version__} (int8), as_spins and pack"
    ratio = megabytes / MOST_MEGABYTES
    memory = Claim(
        what=f"{what}: peak memory of the process, MB, imports included",
        peer=f"{MOST_MEGABYTES} MB",
        ours_seconds=megabytes,
        peer_seconds=MOST_MEGABYTES,
        ratio=ratio,
        spread=(ratio, ratio),
        promise="at most 1",
        holds=megabytes <= MOST_MEGABYTES,
    )
    return [
        faster(what, by_pandas, taken["ours"], taken["pandas"], at_least=3),
        faster(what, by_pyarrow, taken["ours"], taken["pyarrow"], at_least=3),
        memory,
    ]


def seconds_of_readers(path: Path) -> dict[str, list[float]]:
    def ours() -> ik.PackedSpins:
        return read_spins(path).packed

    def by_pandas() -> ik.PackedSpins:
        return ik.pack(ik.as_spins(pd.read_csv(path)))

    def by_pyarrow() -> ik.PackedSpins:
        table = pyarrow.csv.read_csv(path, convert_options=BYTES)
        matrix = np.column_stack([column.to_numpy() for column in table.columns])
        return ik.pack(ik.as_spins(matrix))

    expected = ours().words
    np.testing.assert_array_equal(by_pandas().words, expected)
    np.testing.assert_array_equal(by_pyarrow().words, expected)
    return seconds({"ours": ours, "pandas": by_pandas, "pyarrow": by_pyarrow}, rounds=5)


def write_table(path: Path) -> None:
    """Coins, a tenth of the rows at a time."""
    rng = np.random.default_rng(0)
    text = np.full((N_ROWS // 10, 2 * N_COLUMNS), ord(","), dtype=np.uint8)
    text[:, -1] = ord("\n")
    with open(path, "wb") as file:
        file.write(",".join(NAMES).encode() + b"\n")
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
