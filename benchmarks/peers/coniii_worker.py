"""Solve with coniii's Enumerate, once for each line of moments read; where coniii is installed."""

import contextlib
import importlib.util
import json
import py_compile
import sys
import tempfile
import time
from pathlib import Path

import coniii
import coniii.enumerate
import coniii.ising_eqn
import numpy as np


def write_equations(n_spins: int) -> None:
    """Have coniii write down the sum over all states as Python code, and compile it: once for each
    number of spins.

    Only what the solver calls is kept, the means; the probabilities of all states would triple the
    8 GB that compiling takes.
    """
    name = f"ising_eqn_{n_spins}_sym.py"
    home = Path(coniii.ising_eqn.__file__).parent / name
    if Path(importlib.util.cache_from_source(str(home))).exists():
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # it writes where it is
        coniii.enumerate.pairwise(n_spins, sym=1)
        text = (Path("ising_eqn") / name).read_text()
    home.write_text(text[: text.index("def p(params)")] + "p = None\n")
    py_compile.compile(str(home), doraise=True)


def main() -> None:
    """Answer every line with the seconds that the solver took and the fields and couplings it
    found.
    """
    n_spins = int(sys.argv[1])
    with contextlib.redirect_stdout(sys.stderr):
        write_equations(n_spins)
        solver = coniii.Enumerate(n_spins, iprint=False)
    print(json.dumps({"peer": f"coniii {coniii.__version__}"}), flush=True)
    for line in sys.stdin:
        solver.constraints = np.array(json.loads(line))
        start = time.perf_counter()
        found = solver.solve(scipy_solver_kwargs={"method": "df-sane", "options": {"fatol": 1e-4}})
        print(
            json.dumps({"seconds": time.perf_counter() - start, "found": found.tolist()}),
            flush=True,
        )


main()
