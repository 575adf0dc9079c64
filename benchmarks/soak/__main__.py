"""Soak: for a stated time whatever may happen to isingkit does, drawn at random.

python -m soak, with `benchmarks` on the path, or `make soak`. The same seed draws the same actions;
each failure is written as a command that repeats it. A number of an action is drawn by a generator
of its own, so that it can be done alone.
"""

import argparse
import contextlib
import csv
import io
import math
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "4")  # so that four threads are four

import numpy as np

import isingkit as ik
from isingkit import cli
from isingkit.estimators import sizes
from isingkit.report import figures
from soak.actions import (
    ACTIONS,
    QUICK,
    drawn,
    fit_on_threads,
    many_columns,
    small_tiles,
)
from soak.actions import done as done_in
from soak.files import table, write_csv
from soak.oracles import no_growth, nothing_left, resources

HERE = Path(__file__).parent
CHARTS = 5  # every so many actions pages have all their charts


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="by the clock")
    parser.add_argument("--actions", type=float, default=math.inf, help="at most")
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
        ["compare", data, "--methods", "ridge"],
        ["compare-groups", data, "--by", "q0", "--permutations", "9", "-o", warm / "c.html"],
        ["landscape", fit, "--data", data, "--resamples", "2", "-o", warm / "l"],
        ["plan", fit, "--method", "ridge", "--precision", "0.45", "--max-rows", "40"],
        ["theory", "--degree", "3", "--coupling", "0.1", "--samples-per-spin", "2"],
        ["teacher", "random-regular", "--spins", "9", "--coupling", "0.1", "-o", warm / "t.npz"],
        *(["fit", data, "-o", warm / name, "--method", name] for name in QUICK),
    ):
        with (
            contextlib.suppress(SystemExit),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            cli.main([str(part) for part in one])
    dense = sizes.MOST_DENSE, sizes.BAND, sizes.WIDE
    small_tiles()
    samples = many_columns(np.random.default_rng(1))
    for estimator in (ik.TwoStageIsing(), ik.AutoIsing()):
        estimator.fit(samples)
    sizes.MOST_DENSE, sizes.BAND, sizes.WIDE = dense
    shutil.rmtree(warm)


@contextlib.contextmanager
def charts(are_drawn: bool) -> Iterator[None]:
    """Nine tenths of a small fit's time are the charts of its page: most have a blank instead."""
    draw = figures._svg
    if not are_drawn:
        figures._svg = lambda *_, **__: "<svg></svg>"
    try:
        yield
    finally:
        figures._svg = draw


def leaks(seed: int) -> list[str]:
    """Whether 300 fits leave this process as it was."""
    before = resources()
    for number in range(100):  # of three fits each
        fit_on_threads(np.random.default_rng([seed, 2, number]), Path())
    return no_growth(before, resources())


def generator(asked: argparse.Namespace, number: int) -> np.random.Generator:
    """Of an action alone: its kind is drawn first."""
    return np.random.default_rng([asked.seed, 0, number])


def act(asked: argparse.Namespace, number: int, folder: Path, name: str) -> list[str]:
    """An action by its number, and what is wrong."""
    rng = generator(asked, number)
    drawn(rng)
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    tempfile.tempdir = str(temporary)
    os.environ["TMPDIR"] = str(temporary)
    try:
        with charts(are_drawn=number % CHARTS == 0):
            problems = done_in(name, rng, folder / str(number))
    except Exception as error:
        problems = [f"the action itself: {error!r}"]
    if name != "lose a worker":
        problems += nothing_left(temporary, [])
    shutil.rmtree(temporary)
    return problems


@dataclass(slots=True)
class Tally:
    """What was done, and what it took; it is written as it grows, so that it outlives a kill."""

    path: Path
    counts: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)  # of processor time

    @contextlib.contextmanager
    def of(self, name: str) -> Iterator[list[str]]:
        """Count an action with the problems that are put into a list."""
        problems: list[str] = []
        before = processor_time()
        yield problems
        self.counts[name] += 1
        self.violations[name] += bool(problems)
        self.seconds[name] += processor_time() - before

    def rows(self) -> list[list[object]]:
        return [
            [name, number, self.violations[name], round(self.seconds[name], 1)]
            for name, number in self.counts.most_common()
        ]

    def write(self) -> None:
        with self.path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["action", "done", "violations", "cpu_seconds"])
            writer.writerows(self.rows())

    def __str__(self) -> str:
        lines = [f"{row[0]:42s} {row[1]:6d} {row[2]:4d} {row[3]:8.1f}" for row in self.rows()]
        totals = f"{self.counts.total()} actions, {self.violations.total()} violations"
        return "\n".join([*lines, f"{totals}, {self.seconds.total() / 60:.1f} CPU minutes"])


def processor_time() -> float:
    """Of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


def main() -> None:
    asked = arguments()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    folder.chmod(0o755)
    is_one = asked.only is not None
    tally = Tally(folder / "soak.csv" if is_one else asked.output / "soak.csv")
    warm_up(folder)
    start = time.monotonic()
    number = asked.only if is_one else asked.first
    while time.monotonic() - start < 60 * asked.minutes and tally.counts.total() < asked.actions:
        name = asked.action or drawn(generator(asked, number))
        with tally.of(name) as problems:
            problems += act(asked, number, folder, name)
        if problems:
            repeat = f"python -m soak --seed {asked.seed} --only {number}"
            repeat += f" --action '{asked.action}'" if asked.action else ""
            print(f"{repeat}  # {name}: {'; '.join(problems)}", flush=True)
        tally.write()
        if is_one:
            break
        number += 1
    if not is_one:
        with tally.of("300 fits in one process") as problems:
            problems += leaks(asked.seed)
            print(*problems, sep="\n")
        tally.write()
    shutil.rmtree(folder, ignore_errors=True)
    minutes = (time.monotonic() - start) / 60
    print(f"{tally}, {minutes:.1f} by the clock; seed {asked.seed}, from {asked.first}")
    sys.exit(1 if tally.violations.total() else 0)


if __name__ == "__main__":
    main()
