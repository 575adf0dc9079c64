"""Run every benchmark here and write RESULTS.md."""

import datetime
import os
import platform
import sys
from importlib import import_module
from pathlib import Path

import numba
import numpy
import scipy
from llvmlite import binding

import isingkit
from isingkit._kernels import nibbles

HERE = Path(__file__).parent
BENCHMARKS = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in ("run", "side_by_side"))


def main() -> None:
    """One table for all claims."""
    claims = [claim for name in BENCHMARKS for claim in import_module(name).measure()]
    rows = [
        f"| {c.what} | {c.peer} | {c.ours_seconds:.4g} | {c.peer_seconds:.4g} "
        f"| {c.ratio:.3g} ({c.spread[0]:.3g} to {c.spread[1]:.3g}) | {c.promise} | {'yes' if c.holds else 'NO'} |"
        for c in claims
    ]
    kernel = "byte look-up (nibbles.py)" if nibbles.wins_here() else "vector popcount (gram.py)"
    versions = {"isingkit": isingkit, "numpy": numpy, "scipy": scipy, "numba": numba}
    text = "\n".join(
        [
            "# Benchmarks",
            "",
            "Written by `make bench`. Ratios are medians (quartiles) over rounds in which ours and the peer take turns;",
            "seconds depend on the machine and its neighbours and mean little.",
            "",
            "| what | peer | ours, s | peer, s | ratio | promise | holds |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            ", ".join(f"{name} {module.__version__}" for name, module in versions.items())
            + f", Python {platform.python_version()}; "
            f"{binding.get_host_cpu_name()}, {os.cpu_count()} cores; Gram kernel: {kernel}; {datetime.date.today().isoformat()}.",
            "",
        ]
    )
    (HERE / "RESULTS.md").write_text(text)
    print(text)
    sys.exit(0 if all(claim.holds for claim in claims) else 1)


if __name__ == "__main__":
    main()
