"""Runs figures of the paper: units of work, each a record on disk, so that nothing done is lost.

A figure is a module with TITLE, CLAIM, `Config` (and `Config.quick()`) and six functions.
`points(config)` lists units of work, `measure(config, point)` does one, `predict(config, point)`
asks the theory, `tabulate(config, records)` makes one tidy table of both; `plot(table)` and
`agreement(table)` only read that.
"""

import csv
import dataclasses
import datetime
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from isingkit import __version__
from isingkit.atomic import replacing
from isingkit.checksums import checksum_of_facts
from isingkit.drawing import save_figure
from isingkit.exceptions import DamagedRecordsWarning, SettingError, warn

Row = dict[str, Any]
Table = list[Row]
Task = TypeVar("Task")

FIGURES = {
    "fig1": "fig1_generations",
    "fig2": "fig2_error_without_ridge",
    "fig3": "fig3_recovery_without_ridge",
    "fig4": "fig4_error_with_ridge",
    "fig5": "fig5_estimates_by_generation",
    "fig6": "fig6_two_stage_regular",
    "fig7": "fig7_candidates",
    "fig8": "fig8_two_stage_erdos_renyi",
}


KINDS = ("csv", "parquet", "json", "png", "svg")  # of files that a figure has


def figure(name: str) -> ModuleType:
    """The module of a figure."""
    if name not in FIGURES:
        raise SettingError(setting="figure", value=name, expected=f"one of {', '.join(FIGURES)}")
    return import_module(f"isingkit.experiments.{FIGURES[name]}")


def seed_of(*parts: object) -> int:
    """A seed that depends on all parts and on nothing else."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def fingerprint(name: str, config: Any) -> str:
    """Names the records that belong together: one figure, one configuration, one version."""
    seed = seed_of(name, dataclasses.asdict(config), __version__)
    return f"{name}-{seed:016x}"


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of work and where its record goes."""

    name: str  # of the figure
    config: Any
    point: Row
    path: Path


def run(
    name: str,
    config: Any,
    folder: Path,
    *,
    workers: int = 1,
    executor: Executor | None = None,
    done: Callable[[int, int], None] | None = None,
) -> Table:
    """The figure's table, measured where records are missing.

    It is written with its picture and its settings into the folder.

    workers: processes; 1 works in this one
    executor: does the work instead; its workers need not see the folder
    done: called with (finished, all) units
    """
    module = figure(name)
    records = folder / "records" / fingerprint(name, config)
    records.mkdir(parents=True, exist_ok=True)
    units = [
        Unit(name, config, point, records / f"{point_name(point)}.json")
        for point in module.points(config)
    ]
    missing = _without_record(units, records)
    n_finished = len(units) - len(missing)
    if done:
        done(n_finished, len(units))
    for _ in _recorded(missing, workers, executor):
        n_finished += 1
        if done:
            done(n_finished, len(units))
    found = [json.loads(unit.path.read_text()) for unit in units]
    facts = {"figure": name, "version": __version__, "seed": config.seed}
    table: Table = [facts | row for row in module.tabulate(config, found)]
    write(name, table, config, folder)
    return table


def has_written(name: str, folder: Path) -> bool:
    """Whether the files of a figure in this folder are ours: records or settings are beside
    them.
    """
    if any((folder / "records").glob(f"{name}-*")):
        return True
    try:
        facts = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        return bool(facts["figure"] == name)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _without_record(units: list[Unit], folder: Path) -> list[Unit]:
    """Units that are to be measured; a warning counts records that cannot be used."""
    missing = [unit for unit in units if not unit.path.is_file()]
    damaged = [unit for unit in units if unit.path.is_file() and not is_sound(unit)]
    if damaged:
        warn(DamagedRecordsWarning(folder=folder, n_damaged=len(damaged)))
    return missing + damaged


def is_sound(unit: Unit) -> bool:
    """Whether the record of a unit is whole, and of this unit; earlier ones have no checksum."""
    try:
        record = dict(json.loads(unit.path.read_text(encoding="utf-8")))
        checksum = record.pop("checksum", None)
        is_own = record["point"] == json.loads(json.dumps(unit.point))
        is_own &= set(record) == {"point", "result"}
        return is_own and checksum in (None, checksum_of_facts(record))
    except (ValueError, TypeError, KeyError):
        return False


def _recorded(units: list[Unit], workers: int, executor: Executor | None) -> Iterator[Unit]:
    """Each unit, as soon as its record is on disk; the first failure is raised."""
    if executor is None:
        return finished(work, units, workers)
    return _recorded_from(executor, units)


def finished(work: Callable[[Task], None], tasks: list[Task], workers: int) -> Iterator[Task]:
    """Each task, as soon as `work` has done it, in this process or in several; the first failure
    is raised.
    """
    if workers == 1 or len(tasks) <= 1:
        for task in tasks:
            work(task)
            yield task
        return
    spawn = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_one_thread) as pool:
        futures = {pool.submit(work, task): task for task in tasks}
        for future in as_completed(futures):
            future.result()
            yield futures[future]


def _recorded_from(executor: Executor, units: list[Unit]) -> Iterator[Unit]:
    futures = {executor.submit(measured, u.name, u.config, u.point): u for u in units}
    for future in as_completed(futures):
        unit = futures[future]
        write_record(future.result(), unit.path)
        yield unit


def work(unit: Unit) -> None:
    """Measure one unit and record it; what a process of this machine does."""
    write_record(measured(unit.name, unit.config, unit.point), unit.path)


def measured(name: str, config: Any, point: Row) -> Row:
    """The record of one unit; what a worker elsewhere does."""
    return {"point": point, "result": figure(name).measure(config, point)}


def write_record(record: Row, path: Path) -> None:
    plain = json.loads(json.dumps(record))
    sealed = plain | {"checksum": checksum_of_facts(plain)}
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(sealed), encoding="utf-8")


def point_name(point: Row) -> str:
    name = "_".join(f"{key}={value}" for key, value in point.items())
    return name.replace("/", "-").replace(" ", "-")


def write(name: str, table: Table, config: Any, folder: Path) -> None:
    """Table, pictures (PNG, SVG), and a JSON file with settings, date and agreement."""
    module = figure(name)
    _write_table(table, folder / name)
    draw(name, folder)
    today = datetime.date.today()
    agreement = module.agreement(read(name, folder))
    facts = {
        "figure": name,
        "title": module.TITLE,
        "claim": module.CLAIM,
        "agreement": agreement,
        "version": __version__,
        "seed": config.seed,
        "configuration": dataclasses.asdict(config),
        "quick": is_quick(config),
        "date": today.isoformat(),
    }
    with replacing(folder / f"{name}.json") as temporary:
        temporary.write_text(json.dumps(facts, indent=1))


def is_quick(config: Any) -> bool:
    """Whether it is the small version of a figure, however its worlds are sampled."""
    settings = dataclasses.asdict(config)
    small = dataclasses.asdict(type(config).quick())
    full = dataclasses.asdict(type(config)())
    for one in (settings, small, full):
        one.pop("sampling", None)
    return settings == small != full


def _write_table(table: Table, path: Path) -> None:
    """CSV, and Parquet where pandas can."""
    columns = list(dict.fromkeys(key for row in table for key in row))
    with (
        replacing(path.with_suffix(".csv")) as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(table)
    try:
        import pandas

        with replacing(path.with_suffix(".parquet")) as temporary:
            pandas.DataFrame(table, columns=columns).to_parquet(temporary)
    except ImportError:
        pass


def draw(name: str, folder: Path) -> None:
    """The pictures anew, from the table alone."""
    picture = figure(name).plot(read(name, folder))
    for kind in ("png", "svg"):
        save_figure(picture, folder / f"{name}.{kind}", dpi=100)


def read(name: str, folder: Path) -> Table:
    """A figure's table, numbers as numbers, empty cells left out."""
    with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
        return [
            {key: _number(value) for key, value in row.items() if value != ""}
            for row in csv.DictReader(file)
        ]


def chosen(table: Iterable[Row], **wanted: object) -> Table:
    """Rows with these values."""
    return [row for row in table if all(row.get(key) == value for key, value in wanted.items())]


def column(table: Iterable[Row], name: str) -> list[Any]:
    return [row.get(name, float("nan")) for row in table]


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _one_thread() -> None:
    """Workers share the processors: one thread each, for kernels and for BLAS."""
    for library in ("NUMBA", "OPENBLAS", "OMP", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
