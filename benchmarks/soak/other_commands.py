"""Commands beside `fit`: of tables and models whose columns have odd names, at times malformed, and
killed while they write.
"""

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

import isingkit as ik
from soak.children import Problems, command, without_patience
from soak.files import spoil, table, write_csv
from soak.oracles import ends_well, nothing_left

# texts that others would run, cut in two, or take for something else
ODD_NAMES = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "=1+1",
    "@SUM(A1)",
    'says "no"',
    "a,b",
    "a\nb",
    "{{7*7}}",
    "%s",
    "--force",
    "../a",
    "nan",
    "-1",
    "é\u0301",
    "a\u202eb",
    "$\\frac$",
    "x" * 3000,
    "&lt;b&gt;",
    "\x7f",
)
MARKUP = ("<script>alert", "<img src=x")  # of names, if a page has them as they are
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def odd_table(rng: Generator, folder: Path) -> tuple[Path, Path, list[str]]:
    """A table, a model of its columns, and their names."""
    values = table(rng, 120, 7)
    names = rng.permutation(np.array(ODD_NAMES, dtype=object))[: values.shape[1]].tolist()
    data = write_csv(folder / "d.csv", values, names=names)
    upper = np.triu(rng.normal(0, 0.4, (len(names), len(names))), 1)
    upper[rng.random(upper.shape) < 0.4] = 0.0
    scale = float(rng.choice([1.0, 1.0, 1.0, 1e-310, 1e90]))
    ik.IsingModel(scale * (upper + upper.T), names=names).save(folder / "m.npz")
    return data, folder / "m.npz", names


def asked(rng: Generator, data: Path, model: Path, names: Sequence[str]) -> list[object]:
    """A command line, drawn; what it writes has names that begin with "out"."""
    folder = data.parent
    verbs: list[list[object]] = [
        ["check", data],
        ["compare", data, "--methods", "ridge,linear"],
        ["compare-groups", data, "--by", names[-1], "--permutations", 20],
        ["compare-groups", data, "--by", names[-1], "--permutations", 20, "-o", _page(folder)],
        ["landscape", model],
        ["landscape", model, "--data", data, "--resamples", 2, "-o", folder / "out"],
        ["plan", model, "--method", "ridge", "--precision", 0.45, "--max-rows", 40],
        ["sample", model, "--samples", 9, "--no-check", "-o", folder / "out.csv"],
        ["score", model, model],
        ["report", model, "-o", _page(folder)],
        ["theory", "--model", model, "--samples-per-spin", 2],
        ["fit", data, "--method", "ridge", "-o", folder / "out"],
    ]
    verb = verbs[rng.integers(len(verbs))]
    return [*verb, "--json"] if rng.random() < 0.4 else verb


def _page(folder: Path) -> Path:
    return folder / "out.html"


def ask_any_command(rng: Generator, folder: Path) -> Problems:
    """Any command, of odd names; of a table or a model that is malformed, at times."""
    data, model, names = odd_table(rng, folder)
    if rng.random() < 0.3:
        spoil(rng, data if rng.random() < 0.5 else model)
    arguments = asked(rng, data, model, names)
    ended = command(folder / "said", arguments).ended()
    is_check = arguments[0] == "check" and ended.status == 1  # it found what it is there to find
    problems = [] if is_check else ends_well(ended)
    if "--json" in arguments and ended.status == 0:
        problems += is_json(ended.out)
    for page in [*folder.glob("out.html"), *folder.glob("out/report.html")]:
        text = page.read_text(encoding="utf-8")
        problems += [f"{page.name} has a name as markup" for part in MARKUP if part in text]
    written = [path.name for path in folder.glob("out*")]
    problems += nothing_left(folder, ["d.csv", "m.npz", "said", *written])
    return [f"{arguments[0]}: {problem}" for problem in problems]


def is_json(text: str) -> Problems:
    """One object without NaN and infinity."""
    try:
        json.loads(text, parse_constant=_refused)
    except ValueError as error:
        return [f"its JSON: {error}"]
    return []


def _refused(constant: str) -> Any:
    raise ValueError(f"it holds {constant}")


def writing(model: Path, out: Path) -> list[list[object]]:
    """Command lines that write files into a folder."""
    return [
        ["sample", model, "--samples", 400, "-o", out / "s.csv"],
        ["sample", model, "--samples", 400, "-o", out / "s.spins"],
        ["teacher", "erdos-renyi", "--spins", 300, "--mean-degree", 3, "--coupling", 0.3, "-o",
         out / "t.npz"],
        ["landscape", model, "-o", out],
        ["report", model, "--title", "a page", "-o", out / "r.html"],
    ]  # fmt: skip


def kill_while_writing(rng: Generator, folder: Path) -> Problems:
    """What is there is to be replaced, and the command is ended at a random moment: the old or the
    new file is there whole, and the next writer clears up.
    """
    _, model, _ = odd_table(rng, folder)
    ik.random_regular(n_spins=60, degree=3, coupling=0.3, random_state=rng).save(model)
    out = folder / "out"
    out.mkdir()
    verbs = writing(model, out)
    again = [*verbs[rng.integers(len(verbs))], "--force"]
    whole = command(folder / "said", again).ended()
    if whole.status != 0:
        return ends_well(whole)
    new = _contents(out)
    old = dict.fromkeys(new, b"old")
    for name in old:
        (out / name).write_bytes(b"old")
    child = command(folder / "said", again)
    child.send(int(rng.choice(SIGNALS)), float(rng.uniform(0, 0.2)))
    problems = ends_well(child.ended(), killed=True)
    found = _contents(out)
    problems += [f"{n} is half" for n in new if found.get(n) not in (old[n], new[n])]
    problems += ends_well(command(folder / "said", again, without_patience).ended())
    last = _contents(out)
    problems += [f"{name} differs" for name in new if last.get(name) != new[name]]
    return problems + nothing_left(out, new)


def _contents(folder: Path) -> dict[str, bytes]:
    """Of what is there under its own name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name[0] != "."}
