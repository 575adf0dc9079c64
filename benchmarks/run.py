"""Run every benchmark here, or those named as arguments, and write RESULTS.md; rows of the others
stay as they are.
"""

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
from isingkit._kernels import lookup_popcount

HERE = Path(__file__).parent
NOT_MEASURED = ("run", "side_by_side", "same_answers")
BENCHMARKS = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_MEASURED)


def main() -> None:
    """One table for all claims."""
    asked = sys.argv[1:] or BENCHMARKS
    unknown = sorted(set(asked) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"no benchmark is called {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    today = datetime.date.today().isoformat()
    rows, all_hold = [], True
    for name in BENCHMARKS:
        if name not in asked:
            rows += [row for row in old_rows() if row.startswith(f"| {name} |")]
            continue
        for c in import_module(name).measure():
            all_hold &= c.holds
            rows.append(
                f"| {name} | {c.what} | {c.peer} | {c.ours_seconds:.4g} | {c.peer_seconds:.4g} "
                f"| {c.ratio:.3g} ({c.spread[0]:.3g} to {c.spread[1]:.3g}) | {c.promise} "
                f"| {'yes' if c.holds else 'NO'} | {today} |"
            )
    kernel = (
        "byte look-up (lookup_popcount.py)"
        if lookup_popcount.is_fastest()
        else "vector popcount (gram.py)"
    )
    versions = {"isingkit": isingkit, "numpy": numpy, "scipy": scipy, "numba": numba}
    text = "\n".join(
        [
            "# Benchmarks",
            "",
            "Written by `make bench`. Ratios are medians (quartiles) over rounds in which ours and",
            "the peer take turns; seconds depend on the machine, and mean little.",
            "",
            "| benchmark | what | peer | ours, s | peer, s | ratio | promise | holds | measured |",
            "|---|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            ", ".join(f"{name} {module.__version__}" for name, module in versions.items())
            + f", Python {platform.python_version()}; "
            f"{binding.get_host_cpu_name()}, {os.cpu_count()} cores; Gram kernel: {kernel}.",
            "",
        ]
    )
    (HERE / "RESULTS.md").write_text(text)
    print(text)
    sys.exit(0 if all_hold else 1)


def old_rows() -> list[str]:
    """Rows of the table that is there."""
    return [
        line for line in (HERE / "RESULTS.md").read_text().splitlines() if line.startswith("| ")
    ][1:]


if __name__ == "__main__":
    main()
