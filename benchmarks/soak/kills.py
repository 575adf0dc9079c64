"""Kills with resume: a command is killed at a random moment, goes on, and must give the bytes that
it gives undisturbed. python -m soak.kills, with `benchmarks` on the path.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import isingkit as ik
from soak.actions import small_tiles
from soak.children import command
from soak.oracles import ends_well


@dataclass(frozen=True, slots=True)
class Work:
    """A command, and which of the files that it writes are compared."""

    name: str
    arguments: Callable[[Path], list[object]]  # of the folder it writes into
    again: list[object]  # what is added to go on
    results: tuple[str, ...]


def works(data: Path, model: Path) -> list[Work]:
    return [
        *(
            Work(
                name,
                lambda to, name=name: ["fit", data, "--method", name, "-o", to / "fit"],  # type: ignore[misc]
                ["--resume", "--force"],
                ("fit/model.npz", "fit/edges.csv"),
            )
            for name in ("two-stage", "auto")
        ),
        Work("reproduce", lambda to: ["reproduce", "fig7", "--quick", "-o", to], [], ("fig7.csv",)),
        Work(
            "sample",
            lambda to: ["sample", model, "--samples", 20_000, "--seed", 1, "-o", to / "s.spins"],
            ["--force"],
            ("s.spins",),
        ),
    ]


def read(folder: Path, work: Work) -> list[bytes]:
    return [(folder / name).read_bytes() for name in work.results]


def killed_and_resumed(
    work: Work, folder: Path, after: float, tiles: bool
) -> tuple[bool, list[bytes]]:
    """Whether it was killed, and not done before; and the bytes in the end."""
    prepare = small_tiles if tiles else lambda: None
    folder.mkdir()
    child = command(folder / "said", work.arguments(folder), prepare)
    child.send(signal.SIGKILL, after)
    was_killed = child.ended().status == -signal.SIGKILL
    last = command(folder / "said", [*work.arguments(folder), *work.again], prepare).ended()
    problems = ends_well(last)
    if problems or last.status != 0:
        return was_killed, [str(problems or last.err).encode()]
    return was_killed, read(folder, work)


def main() -> None:
    parser = argparse.ArgumentParser(prog="soak.kills", description=__doc__)
    parser.add_argument("--spins", type=int, default=8000)
    parser.add_argument("--kills", type=int, default=50, help="of each of four commands")
    parser.add_argument("--minutes", type=float, default=1e9, help="at most, by the clock")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    home = Path(tempfile.mkdtemp(prefix="kills-"))
    data, model = home / "d.spins", home / "m.npz"
    truth = ik.random_regular(n_spins=asked.spins, degree=3, coupling=0.5, random_state=0)
    truth.save(model)
    ik.sample(truth, n_samples=100, random_state=1, check=False).save(data)
    tiles = asked.spins <= 5000
    deadline = time.monotonic() + 60 * asked.minutes
    all_works = works(data, model)
    expected, seconds = {}, {}
    for work in all_works:
        for _ in range(2):  # once to compile, once to measure
            shutil.rmtree(home / work.name, ignore_errors=True)
            (home / work.name).mkdir()
            start = time.monotonic()
            prepare = small_tiles if tiles else lambda: None
            ended = command(home / "said", work.arguments(home / work.name), prepare).ended()
            seconds[work.name] = time.monotonic() - start
        if ended.status != 0:
            sys.exit(f"{work.name}: {ended.err}")
        expected[work.name] = read(home / work.name, work)
    counts: Counter[tuple[str, str]] = Counter()
    for number in range(4 * asked.kills):
        work = all_works[number % 4]
        if time.monotonic() > deadline:
            break
        after = float(rng.uniform(0, seconds[work.name]))
        was_killed, found = killed_and_resumed(work, home / "again", after, tiles)
        shutil.rmtree(home / "again")
        counts[work.name, "killed" if was_killed else "done before"] += 1
        if found != expected[work.name]:
            counts[work.name, "other bytes"] += 1
            print(f"{work.name}, killed after {after:.3f} s: {found[0][:200]!r}", flush=True)
    shutil.rmtree(home)
    for work in all_works:
        shown = [
            f"{counts[work.name, kind]} {kind}" for kind in ("killed", "done before", "other bytes")
        ]
        print(f"N={asked.spins} {work.name}: {', '.join(shown)}")


if __name__ == "__main__":
    main()
