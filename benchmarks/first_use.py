"""What a newcomer waits for: processor seconds of the first fits of a fresh installation.

Each command is a process of its own with an empty cache of compiled code; the second finds what the
first has compiled. Processor seconds, of the process and of those it starts: they depend less on
the machine's neighbours than seconds of a clock. The peers are promises.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import isingkit as ik
from side_by_side import Claim, within

N_SPINS, N_SAMPLES, ROUNDS = 20, 500, 3
ELASSO = """
import sys
import numpy as np
import isingkit as ik
print(ik.ELassoIsing().fit(np.loadtxt(sys.argv[1], delimiter=",", skiprows=1)).model_.n_edges)
"""
_WITHOUT_BYTECODE = "PYTHONDONTWRITEBYTECODE"
FIRST_FIT, SECOND_FIT, FIRST_ELASSO, FIRST_DEMO = 14.0, 3.0, 8.0, 25.0  # promised seconds


def measure() -> list[Claim]:
    """First and second fit of a table, the first by ELassoIsing, and the demonstration."""
    taken: dict[str, list[float]] = {"first": [], "second": [], "elasso": [], "demo": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = write_table(folder / "data.csv")
        fit = ["-m", "isingkit", "fit", str(table), "-o", str(folder / "fit"), "--force", "--json"]
        demo = ["-m", "isingkit", "demo", "-o", str(folder / "demo"), "--json"]
        for number in range(ROUNDS):
            for what, arguments, cache in (
                ("first", fit, "fit"),
                ("second", fit, "fit"),
                ("elasso", ["-c", ELASSO, str(table)], "elasso"),
                ("demo", demo, "demo"),
            ):
                taken[what].append(processor_seconds(arguments, folder / f"{cache}{number}"))
    size = f"{N_SAMPLES} rows x {N_SPINS} columns"
    return [
        claim(f"first `isingkit fit`, {size}, processor seconds", taken["first"], FIRST_FIT),
        claim("the second, with what the first compiled", taken["second"], SECOND_FIT),
        claim("first fit by ELassoIsing, of the same table", taken["elasso"], FIRST_ELASSO),
        claim("first `isingkit demo`", taken["demo"], FIRST_DEMO),
    ]


def write_table(path: Path) -> Path:
    """A planted network's samples as a table of 0 and 1."""
    truth = ik.random_regular(n_spins=N_SPINS, degree=3, coupling=0.4, random_state=1)
    values = np.asarray(ik.sample(truth, n_samples=N_SAMPLES, random_state=2)) > 0
    names = ",".join(f"q{i}" for i in range(N_SPINS))
    np.savetxt(path, values, fmt="%d", delimiter=",", header=names, comments="")
    return path


def processor_seconds(arguments: list[str], cache: Path) -> float:
    """User and system time of Python with these arguments and this cache of compiled code."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, *arguments],
        env=_environment(cache),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = os.times()
    assert done.stdout.strip(), "it printed nothing"
    used = after.children_user - before.children_user
    return used + after.children_system - before.children_system


def _environment(cache: Path) -> dict[str, str]:
    """With Python's bytecode, which is part of an installation; none of the compiled code."""
    inherited = {name: value for name, value in os.environ.items() if name != _WITHOUT_BYTECODE}
    return inherited | {"NUMBA_CACHE_DIR": str(cache)}


def claim(what: str, seconds: list[float], promised: float) -> Claim:
    """That seconds stay below a promise."""
    return within(what, f"{promised:g} seconds", seconds, [promised] * len(seconds), at_most=1)


if __name__ == "__main__":
    for one in measure():
        print(one)
