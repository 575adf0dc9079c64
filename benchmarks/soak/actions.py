"""What may happen to isingkit: each action is drawn by a generator of its own, is done in a folder
of its own, and returns what is wrong.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from sklearn.base import clone

import isingkit as ik
from isingkit.estimators import sizes
from isingkit.exceptions import IsingkitError
from isingkit.methods import FIT_METHODS, suggested_settings
from soak.children import Problems, command, forked, limited, without_patience
from soak.files import spoil, table, write, write_csv
from soak.oracles import (
    ends_well,
    has_no_nan,
    is_whole,
    nothing_left,
    same_bytes,
    same_models,
)
from soak.other_commands import SIGNALS, ask_any_command, kill_while_writing

Action = Callable[[Generator, Path], Problems]
METHODS = [one for one in FIT_METHODS if one.name != "boltzmann"]  # which takes minutes
QUICK = ("ridge", "two-stage", "linear", "elasso", "auto", "pseudolikelihood")
RESULTS = ("model.npz", "edges.csv")  # of a fit, without its date


def fit_a_table(rng: Generator, folder: Path) -> Problems:
    """A random table by a random method with random options."""
    values = table(rng)
    options: list[object] = ["--method", METHODS[rng.integers(len(METHODS))].name]
    if rng.random() < 0.3:
        values = np.column_stack([values, rng.integers(0, 4, len(values))])
        options += [str(rng.choice(["--counts", "--weights"])), f"q{values.shape[1] - 1}"]
    if rng.random() < 0.2:
        options += ["--drop", "q0"]
    if rng.random() < 0.3:
        options += ["--json"]
    data = write_csv(folder / "d.csv", values)
    ended = command(folder / "said", ["fit", data, "-o", folder / "fit", *options]).ended()
    return (
        ends_well(ended)
        + is_whole(folder / "fit")
        + has_no_nan(folder / "fit")
        + nothing_left(folder, ["d.csv", "fit", "said"])
    )


def fit_on_threads(rng: Generator, folder: Path) -> Problems:
    """A random table in this process, on one, two and four threads: the same bits."""
    values = table(rng)
    method = METHODS[rng.integers(len(METHODS))]
    estimator = method.build(suggested_settings(values.shape[1], len(values)))
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ik.exceptions.IsingkitWarning)
        for n_jobs in (1, 2, 4):
            if "n_jobs" in estimator.get_params():
                estimator.set_params(n_jobs=n_jobs)
            try:
                models.append(clone(estimator).fit(values).model_)
            except IsingkitError:
                models.append(ik.IsingModel(np.zeros((2, 2))))
    if not all(np.isfinite(model.fields).all() for model in models):
        return [f"{method.name}: not finite"]
    return [f"{method.name}: {problem}" for problem in same_models(models)]


def read_a_malformed_file(rng: Generator, folder: Path) -> Problems:
    """A good file of any format, with bytes, cells, encoding, header or compression spoilt."""
    return _malformed(rng, folder, ("csv", "tsv", "csv.gz", "npy", "npz", "parquet", "spins"))


def read_a_malformed_file_of_the_field(rng: Generator, folder: Path) -> Problems:
    """The same of sparse matrices, and of variables in rows."""
    return _malformed(rng, folder, ("sparse.npz", "mtx", "mtx.gz", "rtab", "rtab.gz"))


def _malformed(rng: Generator, folder: Path, kinds: Sequence[str]) -> Problems:
    values = table(rng, 60, 6)
    kind = str(rng.choice(kinds))
    data = folder / f"d.{kind}"
    write(data, kind, values)
    spoil(rng, data)
    verb = ["check"] if rng.random() < 0.4 else ["fit", "--method", "ridge", "-o", folder / "fit"]
    ended = command(folder / "said", [*verb, data]).ended()
    if verb == ["check"] and ended.status == 1 and "to decide in" in ended.out:
        ended = replace(ended, status=0)  # it found what it is there to find
    return (
        ends_well(ended)
        + is_whole(folder / "fit")
        + nothing_left(folder, [data.name, "fit", "said"])
    )


def kill_while_replacing(rng: Generator, folder: Path) -> Problems:
    """A fit is there, another is to replace it and is ended at a random moment: one of both is
    there whole, and the next writer clears up.
    """
    data = write_csv(folder / "d.csv", table(rng, 200, 10))
    method = str(rng.choice(QUICK))
    again = ["fit", data, "-o", folder / "fit", "--method", method, "--force"]
    first = command(folder / "said", again[:-1]).ended()
    if first.status != 0:
        return ends_well(first)
    expected = {name: (folder / "fit" / name).read_bytes() for name in RESULTS}
    child = command(folder / "said", again)
    child.send(int(rng.choice(SIGNALS)), float(rng.uniform(0, 0.25)))
    problems = ends_well(child.ended(), killed=True) + is_whole(folder / "fit")
    last = command(folder / "said", again, without_patience).ended()
    problems += ends_well(last) + is_whole(folder / "fit")
    found = {name: (folder / "fit" / name).read_bytes() for name in RESULTS}
    problems += [f"{name} differs" for name in RESULTS if found[name] != expected[name]]
    return problems + nothing_left(folder, ["d.csv", "fit", "said"])


def small_tiles() -> None:
    """Few columns count as many, so that bands are recorded."""
    sizes.MOST_DENSE = 10
    sizes.BAND = 64
    sizes.WIDE = 128


def many_columns(rng: Generator) -> ik.PackedSpins:
    truth = ik.random_regular(n_spins=200, degree=3, coupling=0.5, random_state=rng)
    return ik.sample(truth, n_samples=80, random_state=rng, check=False)


def kill_and_resume(rng: Generator, folder: Path) -> Problems:
    """A fit of many columns is ended once or twice, goes on, and gives the same bytes; at times its
    records are damaged meanwhile.
    """
    data = folder / "d.spins"
    many_columns(rng).save(data)
    how = ["--method", str(rng.choice(["two-stage", "auto"])), "--resume"]
    whole = command(folder / "said", ["fit", data, "-o", folder / "whole", *how], small_tiles)
    problems = ends_well(whole.ended())
    arguments = ["fit", data, "-o", folder / "fit", *how]
    for _ in range(int(rng.integers(1, 3))):
        child = command(folder / "said", arguments, small_tiles)
        child.send(int(rng.choice(SIGNALS)), float(rng.uniform(0, 0.4)))
        problems += ends_well(child.ended(), killed=True) + is_whole(folder / "fit")
        records = sorted((folder / "fit.partial").glob("band-*.npz"))
        if records and rng.random() < 0.5:
            spoil(rng, records[rng.integers(len(records))])
        if (folder / "fit" / "fit.json").exists():
            break
    last = command(folder / "said", [*arguments, "--force"], lambda: without_patience(small_tiles))
    problems += ends_well(last.ended())
    if problems:
        return problems
    problems = same_bytes(folder / "fit", folder / "whole", RESULTS)
    return problems + nothing_left(folder, ["d.spins", "fit", "whole", "said"])


def run_out(rng: Generator, folder: Path) -> Problems:
    """No room on the disk, files of a few kilobytes only, no right to write, little memory, few
    open files.
    """
    data = write_csv(folder / "d.csv", table(rng))
    place = folder / "place"
    place.mkdir()
    arguments = ["fit", data, "-o", place / "fit", "--method", str(rng.choice(QUICK))]
    kind = str(rng.choice(["disk", "file size", "read-only", "memory", "open files"]))
    prepare: Callable[[], Any] = lambda: None  # noqa: E731
    is_mounted = False
    match kind:
        case "disk":
            size = int(rng.integers(4, 200))
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(place)]
            is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        case "file size":
            prepare = limited(resource.RLIMIT_FSIZE, int(rng.integers(4000, 60_000)))
        case "read-only":
            place.chmod(0o555)
            prepare = _unprivileged
        case "memory":
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            prepare = limited(resource.RLIMIT_AS, used + int(rng.integers(1, 300) * 2**20))
        case "open files":
            prepare = limited(resource.RLIMIT_NOFILE, int(rng.integers(4, 40)))
    try:
        (folder / "said").mkdir(mode=0o777)
        ended = command(folder / "said", arguments, prepare).ended()
        problems = ends_well(ended) + is_whole(place / "fit") + has_no_nan(place / "fit")
        problems += nothing_left(place, ["fit"])
    finally:
        if is_mounted:
            subprocess.run(["umount", str(place)], check=True)
        place.chmod(0o755)
    return [f"{kind}: {problem}" for problem in problems]


def _unprivileged() -> None:
    if os.getuid() == 0:  # to whom nothing is read-only
        os.setgid(65534)
        os.setuid(65534)


def write_twice_at_once(rng: Generator, folder: Path) -> Problems:
    """Two processes fit into one folder: one of both fits is there in the end."""
    problems, expected = [], []
    children = []
    for number in range(2):
        data = write_csv(folder / f"d{number}.csv", table(rng, 100, 8))
        alone = ["fit", data, "-o", folder / f"alone{number}", "--method", "ridge"]
        ended = command(folder / f"said{number}", alone).ended()
        problems += ends_well(ended)
        if ended.status == 0:
            expected.append((folder / f"alone{number}" / "model.npz").read_bytes())
    for number in range(2):
        both = [
            "fit",
            folder / f"d{number}.csv",
            "-o",
            folder / "fit",
            "--method",
            "ridge",
            "--force",
        ]
        children.append(command(folder / f"said{number}", both))
    for child in children:
        problems += ends_well(child.ended())
    problems += is_whole(folder / "fit")
    if len(expected) == 2 and (folder / "fit" / "model.npz").read_bytes() not in expected:
        problems.append("the fit is neither of the two")
    names = ["fit", *(f"{name}{k}" for k in range(2) for name in ("d", "said", "alone"))]
    return problems + nothing_left(folder, [*names, "d0.csv", "d1.csv"])


def read_damaged(rng: Generator, folder: Path) -> Problems:
    """A model, or a fit, with a bit flipped, cut short, or grown: refused, or what it was."""
    estimator = ik.RidgeIsing(threshold=0.0)
    values = table(rng, 60, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ik.exceptions.IsingkitWarning)
        model = estimator.fit(values).model_
    model.save(folder / "m.npz")
    spoil(rng, folder / "m.npz")
    try:
        found = ik.IsingModel.load(folder / "m.npz")
    except IsingkitError:
        found = model
    problems = [f"read silently: {one}" for one in same_models([model, found])]
    verbs = [
        ["score", folder / "m.npz", folder / "m.npz"],
        ["report", folder / "m.npz", "-o", folder / "r.html"],
        ["sample", folder / "m.npz", "--samples", 9, "-o", folder / "s.csv"],
    ]
    verb = verbs[rng.integers(3)]
    problems += ends_well(command(folder / "said", verb).ended())
    return problems + nothing_left(folder, ["m.npz", "r.html", "s.csv", "said"])


def fork_beside_threads(rng: Generator, folder: Path) -> Problems:
    """Threads fit, and children that are forked meanwhile fit as well."""
    values = table(rng, 100, 8)

    def work() -> None:
        warnings.simplefilter("ignore")
        stop = threading.Event()

        def fit_on() -> None:
            while not stop.is_set():
                ik.RidgeIsing().fit(values)

        threads = [threading.Thread(target=fit_on) for _ in range(2)]
        for thread in threads:
            thread.start()
        statuses = []
        for number in range(3):
            inner = forked(folder / f"inner{number}", lambda: ik.TwoStageIsing().fit(values))
            ended = inner.ended()
            is_told = "isingkit.exceptions" in ended.err  # these data cannot be learnt from
            statuses.append(0 if is_told else ended.status)
        stop.set()
        for thread in threads:
            thread.join()
        os._exit(max(abs(status) for status in statuses))

    return ends_well(forked(folder / "said", work).ended())


def lose_a_worker(rng: Generator, folder: Path) -> Problems:
    """A cluster of processes of its own, of which one is killed at a random moment."""
    script = Path(__file__).with_name("cluster.py")  # which ends itself if it hangs
    how = [str(int(rng.integers(2**31))), str(float(rng.uniform(0, 1.5))), str(folder)]
    ended = subprocess.run(
        [sys.executable, str(script), *how],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    if ended.returncode != 0:
        return [f"exit code {ended.returncode}: {ended.stderr.strip()[-2000:]}"]
    return list(json.loads(ended.stdout.splitlines()[-1]))


ACTIONS: dict[str, tuple[float, Action]] = {  # how often, in the mean
    "fit a table": (20, fit_a_table),
    "fit on 1, 2 and 4 threads": (30, fit_on_threads),
    "read a malformed file": (30, read_a_malformed_file),
    "read a malformed file of the field": (10, read_a_malformed_file_of_the_field),
    "kill while replacing": (5, kill_while_replacing),
    "kill and resume": (2, kill_and_resume),
    "run out of disk, memory, files, rights": (6, run_out),
    "two writers of one folder": (3, write_twice_at_once),
    "read a damaged model": (20, read_damaged),
    "fork beside threads": (2, fork_beside_threads),
    "any command, odd names": (20, ask_any_command),
    "kill while writing a file": (4, kill_while_writing),
    "lose a worker": (0.2, lose_a_worker),
}


def drawn(rng: Generator) -> str:
    """The name of one action."""
    names = list(ACTIONS)
    shares = np.array([share for share, _ in ACTIONS.values()])
    return names[rng.choice(len(names), p=shares / shares.sum())]


def done(name: str, rng: Generator, folder: Path) -> Problems:
    """What is wrong after an action; its folder is gone afterwards."""
    folder.mkdir(parents=True)
    try:
        return ACTIONS[name][1](rng, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
