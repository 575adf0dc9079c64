"""Kills with resume: a command is killed at a random moment of its processor time, so that moments
lie where work is, goes on, and must give the bytes that it gives undisturbed.

python -m soak.kills, with `benchmarks` on the path.
"""

import argparse
import contextlib
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import isingkit as ik
from isingkit import cli
from isingkit.estimators import sizes
from isingkit.report import figures
from soak.actions import many_columns, small_tiles
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
    work: Work, folder: Path, after: float, prepare: Callable[[], Any]
) -> tuple[bool, list[bytes]]:
    """Whether it was killed, and not done before; and the bytes in the end."""
    folder.mkdir()
    child = command(folder / "said", work.arguments(folder), prepare)
    child.send_at(signal.SIGKILL, after)
    was_killed = child.ended().status == -signal.SIGKILL
    last = command(folder / "said", [*work.arguments(folder), *work.again], prepare).ended()
    problems = ends_well(last)
    if problems or last.status != 0:
        return was_killed, [str(problems or last.err).encode()]
    return was_killed, read(folder, work)


def undisturbed(work: Work, folder: Path, prepare: Callable[[], Any]) -> tuple[list[bytes], float]:
    """The bytes, and the processor time: of a second run, for the first one may compile."""
    for _ in range(2):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        child = command(folder / "said", work.arguments(folder), prepare)
        ended = child.ended()
        if ended.status != 0:
            sys.exit(f"{work.name}: {ended.err}")
    return read(folder, work), child.cpu_seconds


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="soak.kills", description=__doc__)
    parser.add_argument("--spins", type=int, default=8000)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--kills", type=int, default=50, help="of each command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=["two-stage", "auto", "reproduce", "sample"])
    return parser.parse_args()


def warm_up(folder: Path) -> None:
    """Load everything here, so that children need not."""
    dense = sizes.MOST_DENSE, sizes.BAND, sizes.WIDE
    small_tiles()
    samples = folder / "warm.spins"
    many_columns(np.random.default_rng(1)).save(samples)
    for name in ("two-stage", "auto"):
        arguments = ["fit", str(samples), "--method", name, "-o", str(folder / f"warm-{name}")]
        with contextlib.suppress(SystemExit):
            cli.main(arguments)
    sizes.MOST_DENSE, sizes.BAND, sizes.WIDE = dense


def main() -> None:
    asked = arguments()
    figures._svg = lambda *_, **__: "<svg></svg>"  # pages are not compared, and take long to draw
    home = Path(tempfile.mkdtemp(prefix="kills-"))
    warm_up(home)
    data, model = home / "d.spins", home / "m.npz"
    truth = ik.random_regular(n_spins=asked.spins, degree=3, coupling=0.5, random_state=0)
    truth.save(model)
    ik.sample(truth, n_samples=asked.rows, random_state=1, check=False).save(data)
    prepare = small_tiles if asked.spins <= 5000 else lambda: None
    for place, work in enumerate(works(data, model)):
        if asked.only not in (None, work.name):
            continue
        rng = np.random.default_rng([asked.seed, place])
        expected, seconds = undisturbed(work, home / work.name, prepare)
        print(f"N={asked.spins} {work.name}: {seconds:.1f} CPU seconds undisturbed", flush=True)
        counts: Counter[str] = Counter()
        while counts["killed"] < asked.kills:
            after = float(rng.uniform(0, seconds))
            was_killed, found = killed_and_resumed(work, home / "again", after, prepare)
            shutil.rmtree(home / "again")
            counts["killed" if was_killed else "done before"] += 1
            counts["other bytes"] += found != expected
            said = "" if found == expected else f", OTHER BYTES: {found[0][:200]!r}"
            print(f"{work.name} {counts['killed']}: at {after:.2f} s{said}", flush=True)
        print(f"N={asked.spins} {work.name}: {dict(counts)}", flush=True)
    shutil.rmtree(home)


if __name__ == "__main__":
    main()
