"""What must be true after anything that was done: each returns what is wrong, or nothing."""

import csv
import json
import math
import resource
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import isingkit as ik
from isingkit._kernels.compilation import NOTICE
from isingkit.exceptions import IsingkitError
from isingkit.fit_folder import require_whole

ALWAYS = ("model.npz", "edges.csv", "report.html", "fit.json")  # in the folder of a fit
# beginnings of lines that may stand before a sentence
WARNINGS = ("isingkit: warning: ", "isingkit: and ", NOTICE)
LISTS = "things to decide:"  # ends a line that others follow, each of a column


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it said."""

    status: int  # below 0: the signal that ended it
    out: str
    err: str


def ends_well(ended: Ended, *, killed: bool = False) -> list[str]:
    """Exit code 0, or 2 and one sentence; of what was killed, also that it was."""
    if "Traceback" in ended.err or "Traceback" in ended.out:
        return [f"a traceback: {ended.err.strip()[-300:]}"]
    if ended.status == 0 or (killed and ended.status in (-9, -15, -2, 130)):
        return []
    if ended.status != 2:
        return [f"exit code {ended.status}: {ended.err.strip()[-300:]}"]
    told = [line for line in ended.err.splitlines() if line.startswith("isingkit: ")]
    before = [line for line in told if line.startswith(WARNINGS) or line.endswith(LISTS)]
    sentences = [line for line in told if line not in before]
    if len(sentences) != 1 or len(sentences[0]) > 2100:
        return [f"exit code 2 with {len(sentences)} sentences: {ended.err.strip()[-300:]}"]
    return []


def is_whole(folder: Path) -> list[str]:
    """A fit's folder: all files of one fit, or none."""
    there = [name for name in ALWAYS if (folder / name).exists()]
    if not there:
        return []
    if len(there) < len(ALWAYS):
        return [f"{folder.name} holds {there} only"]
    try:
        require_whole(folder)
    except IsingkitError as error:
        return [f"{folder.name}: {error}"]
    return []


def has_no_nan(folder: Path) -> list[str]:
    """Neither model nor tables nor JSON of a fit hold NaN or infinity."""
    if not (folder / "fit.json").exists():
        return []
    wrong = []
    model = ik.IsingModel.load(folder / "model.npz")
    if not (np.isfinite(model.couplings.data).all() and np.isfinite(model.fields).all()):
        wrong.append("the model is not finite")
    with (folder / "edges.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            numbers = [cell for name, cell in row.items() if name not in ("source", "target")]
            if any(cell and math.isnan(float(cell)) for cell in numbers):
                wrong.append(f"edges.csv: {row}")
    try:
        json.loads((folder / "fit.json").read_text(encoding="utf-8"), parse_constant=_refused)
    except ValueError as error:
        wrong.append(f"fit.json: {error}")
    return wrong[:3]


def _refused(constant: str) -> float:
    raise ValueError(f"it holds {constant}")


def same_bytes(left: Path, right: Path, names: Iterable[str]) -> list[str]:
    """These files of two folders are the same."""
    return [
        f"{name} differs"
        for name in names
        if (left / name).read_bytes() != (right / name).read_bytes()
    ]


def same_models(models: Sequence[ik.IsingModel]) -> list[str]:
    """Models of equal seeds, to the last bit."""
    first = models[0]
    for number, other in enumerate(models[1:], start=1):
        is_same = np.array_equal(first.couplings.toarray(), other.couplings.toarray())
        if not is_same or not np.array_equal(first.fields, other.fields):
            return [f"run {number} differs from the first"]
    return []


def nothing_left(folder: Path, expected: Iterable[str]) -> list[str]:
    """Nothing but what was expected is in a folder."""
    left = sorted({path.name for path in folder.iterdir()} - set(expected))
    return [f"left behind: {left}"] if left else []


def no_growth(before: "Resources", after: "Resources") -> list[str]:
    """Neither memory, by more than a tenth and 20 MiB, nor open files."""
    wrong = []
    if after.mebibytes > 1.1 * before.mebibytes + 20:
        wrong.append(f"memory grew from {before.mebibytes:.0f} to {after.mebibytes:.0f} MiB")
    if after.files > before.files:
        wrong.append(f"open files grew from {before.files} to {after.files}")
    return wrong


@dataclass(frozen=True, slots=True)
class Resources:
    """What this process has."""

    mebibytes: float
    files: int


def resources() -> Resources:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Resources(
        pages * resource.getpagesize() / 2**20, len(list(Path("/proc/self/fd").iterdir()))
    )
