"""Whether files notice damage: one bit of a file, drawn at random, is flipped, and it is read.

The file is refused, or harmless (what is read is what was written: the bit was one of a date in an
archive, say), or silent (something else is read), or it ends in an error that is none of ours. A
record of finished work is refused where it is not used.
"""

import argparse
import json
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from results import Row, markdown, write_settings, write_table

import isingkit as ik
from isingkit.estimators.checkpoint import Checkpoint
from isingkit.exceptions import FileFormatError, IsingkitError, IsingkitWarning
from isingkit.experiments import runner
from isingkit.fit_check import fit_check
from isingkit.fit_folder import FILES, Fit, fit_of, require_whole, write_fit
from isingkit.report.contents import contents_in, contents_of
from isingkit.report.page import html_page


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: which one to damage, and what is read of it, as something to compare."""

    name: str
    path: Path
    read: Callable[[], Any]


def model_in(path: Path) -> Any:
    model = ik.IsingModel.load(path)
    return model.couplings.toarray().tolist(), model.fields.tolist(), model.names


def spins_in(packed: ik.PackedSpins) -> Any:
    return np.asarray(packed).tolist(), packed.names, packed.mapping


def recorded(checkpoint: Checkpoint) -> Any:
    arrays = checkpoint._arrays(0, checkpoint.folder / "band-00000.npz")
    if arrays is None:
        raise FileFormatError(path=checkpoint.folder, kind="a record", problem="it is not used")
    return {name: array.tolist() for name, array in arrays.items()}


def measured(unit: runner.Unit) -> Any:
    if not runner.is_sound(unit):
        raise FileFormatError(path=unit.path, kind="a record", problem="it is not used")
    return json.loads(unit.path.read_text(encoding="utf-8"))


def kinds(folder: Path) -> list[Kind]:
    """Small files of each kind, written anew."""
    truth = ik.random_regular(n_spins=12, degree=3, coupling=0.4, random_state=0)
    samples = ik.sample(truth, n_samples=200, random_state=1)
    samples.save(folder / "data.spins")
    truth.save(folder / "truth.npz")
    fit = fit_of(ik.RidgeIsing().fit(samples), samples, "ridge", None, [])
    contents = contents_of(fit, fit_check(fit.model, samples), "data")
    found = folder / "fit"
    write_fit(fit, html_page(contents), found)
    checkpoint = Checkpoint(folder, "of these data")
    checkpoint.write(0, pairs=np.arange(40).reshape(-1, 2), values=np.linspace(0, 1, 40))
    config = replace(runner.figure("fig7").Config.quick(), n_spins=(30,), n_worlds=1)
    (point,) = runner.figure("fig7").points(config)
    unit = runner.Unit("fig7", config, point, folder / "record.json")
    runner.work(unit)
    spins = folder / "data.spins"
    page = found / "report.html"
    full = folder / "full"
    write_fit(full_fit(), html_page(contents), full)
    parts = [name for name in FILES if name != "report.html"]
    assert all((full / name).exists() for name in parts)
    return [
        Kind("model, .npz", folder / "truth.npz", lambda: model_in(folder / "truth.npz")),
        Kind(".spins, load", spins, lambda: spins_in(ik.PackedSpins.load(spins))),
        Kind(".spins, map", spins, lambda: spins_in(ik.PackedSpins.map(spins))),
        Kind("checkpoint", folder / "band-00000.npz", lambda: recorded(checkpoint)),
        Kind("record of reproduce", unit.path, lambda: measured(unit)),
        Kind("fit: report.html", page, lambda: asdict(contents_in(page))),
        *(Kind(f"fit: {name}", full / name, lambda: require_whole(full)) for name in parts),
    ]


def full_fit() -> Fit:
    """One that writes all files there are: columns merged, a covariate, a hidden cause, and
    probabilities of edges.
    """
    truth = ik.random_regular(n_spins=10, degree=3, coupling=0.3, random_state=0)
    rows = np.asarray(ik.sample(truth, n_samples=300, random_state=1))
    table = np.column_stack([rows, rows[:, 0]])
    ages = np.random.default_rng(2).normal(size=300)
    learner = ik.AutoIsing(hidden=1, inclusion=True, merge_alike=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IsingkitWarning)
        fitted = learner.fit(table, covariates=ages[:, None])
    return fit_of(fitted, ik.pack(ik.as_spins(table)), "auto", None, [])


def outcome(kind: Kind, whole: bytes, good: Any, rng: np.random.Generator) -> str:
    """What becomes of one flipped bit."""
    damaged = bytearray(whole)
    damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
    kind.path.write_bytes(damaged)
    try:
        return "harmless" if kind.read() == good else "silent"
    except IsingkitError:
        return "refused"
    except Exception as error:
        print(f"{kind.name}: {error!r}")
        return "traceback"


def measure(n_flips: int, seed: int) -> list[Row]:
    """A row for each kind of file."""
    rng = np.random.default_rng(seed)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds(Path(folder)):
            whole = kind.path.read_bytes()
            good = kind.read()
            counts = Counter(outcome(kind, whole, good, rng) for _ in range(n_flips))
            kind.path.write_bytes(whole)
            outcomes = ("refused", "harmless", "silent", "traceback")
            rows.append({"file": kind.name, "bytes": len(whole), "flips": n_flips}
                        | {name: counts[name] for name in outcomes})  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=250, help="of each kind of file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    start = time.process_time()
    rows = measure(options.flips, options.seed)
    write_table(options.output / "flipped_bits.csv", rows)
    seconds = time.process_time() - start
    write_settings(options.output / "flipped_bits.json", vars(options), seconds)
    print(markdown([list(rows[0]), *([str(value) for value in row.values()] for row in rows)]))
    print(f"{sum(row['flips'] for row in rows)} flips in {seconds:.0f} seconds")


if __name__ == "__main__":
    main()
