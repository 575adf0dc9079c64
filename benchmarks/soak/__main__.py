"""Soak: for a stated time whatever may happen to isingkit does, drawn at random.

python -m soak, with `benchmarks` on the path, or `make soak`. The same seed draws the same actions;
each failure is written as a command that repeats it. A number of an action is drawn by a generator
of its own, so that it can be done alone.
"""

import argparse
import contextlib
import csv
import io
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "4")  # so that four threads are four

import numpy as np

from isingkit import cli
from soak.actions import ACTIONS, QUICK, drawn, fit_on_threads, table, write_csv
from soak.actions import done as done_in
from soak.oracles import no_growth, nothing_left, resources

HERE = Path(__file__).parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="by the clock")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first action")
    parser.add_argument("--only", type=int, help="one action, by its number")
    parser.add_argument("--action", choices=list(ACTIONS), help="of this kind only")
    parser.add_argument("-o", "--output", type=Path, default=HERE, help="a folder for the table")
    return parser.parse_args()


def warm_up(folder: Path) -> None:
    """Compile and load everything here, so that children need not, and what is done is watched
    from then on.
    """
    warm = folder / "warm"
    for number in range(40):
        fit_on_threads(np.random.default_rng([1, number]), warm)
    warm.mkdir()
    data = write_csv(warm / "d.csv", table(np.random.default_rng(1)))
    fit = warm / "fit"
    for one in (
        ["fit", data, "-o", fit],
        ["check", data],
        ["score", fit, fit],
        ["report", fit, "--force"],
        ["sample", fit / "model.npz", "--samples", "9", "-o", warm / "s.csv"],
        *(["fit", data, "-o", warm / name, "--method", name] for name in QUICK),
    ):
        with (
            contextlib.suppress(SystemExit),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            cli.main([str(part) for part in one])
    shutil.rmtree(warm)


def leaks(seed: int) -> list[str]:
    """Whether 300 fits leave this process as it was."""
    before = resources()
    for number in range(100):  # of three fits each
        fit_on_threads(np.random.default_rng([seed, 2, number]), Path())
    return no_growth(before, resources())


def act(asked: argparse.Namespace, number: int, folder: Path) -> tuple[str, list[str]]:
    """An action by its number, and what is wrong."""
    rng = np.random.default_rng([asked.seed, 0, number])
    name = drawn(rng)
    if asked.action is not None:
        name = asked.action
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    tempfile.tempdir = str(temporary)
    os.environ["TMPDIR"] = str(temporary)
    try:
        problems = done_in(name, rng, folder / str(number))
    except Exception as error:
        problems = [f"the action itself: {error!r}"]
    if name != "lose a worker":
        problems += nothing_left(temporary, [])
    shutil.rmtree(temporary)
    return name, problems


def main() -> None:
    asked = arguments()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    folder.chmod(0o755)
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    warm_up(folder)
    start = time.monotonic()
    cpu = sum(os.times()[:4])
    number = asked.first if asked.only is None else asked.only
    while time.monotonic() - start < 60 * asked.minutes:
        name, problems = act(asked, number, folder)
        counts[name] += 1
        if problems:
            failures[name] += 1
            repeat = f"python -m soak --seed {asked.seed} --only {number}"
            repeat += f" --action '{asked.action}'" if asked.action else ""
            print(f"{repeat}  # {name}: {'; '.join(problems)}", flush=True)
        if asked.only is not None:
            break
        number += 1
    if asked.only is None:
        growth = leaks(asked.seed)
        counts["300 fits in one process"] += 1
        failures["300 fits in one process"] += bool(growth)
        print(*growth, sep="\n")
    seconds = sum(os.times()[:4]) - cpu
    shutil.rmtree(folder, ignore_errors=True)
    report(asked, counts, failures, seconds, time.monotonic() - start)
    sys.exit(1 if failures.total() else 0)


def report(
    asked: argparse.Namespace,
    counts: Counter[str],
    failures: Counter[str],
    cpu: float,
    clock: float,
) -> None:
    """The table, to the screen and to a file."""
    rows = [[name, counts[name], failures[name]] for name in counts]
    for row in sorted(rows, key=lambda row: -int(row[1])):
        print(f"{row[0]:42s} {row[1]:6d} {row[2]:4d}")
    print(f"{counts.total()} actions, {failures.total()} violations; seed {asked.seed}, from "
          f"{asked.first}; {cpu / 60:.1f} CPU minutes, {clock / 60:.1f} by the clock")  # fmt: skip
    if asked.only is None:
        with (asked.output / "soak.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["action", "done", "violations"])
            writer.writerows(rows)


if __name__ == "__main__":
    main()
