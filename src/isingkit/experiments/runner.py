"""Runs figures of the paper: independent units of work, each an atomic record on disk, so that
nothing finished is ever lost.

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
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

from isingkit import __version__
from isingkit.atomic import replacing
from isingkit.exceptions import SettingError

Row = dict[str, Any]
Table = list[Row]

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


def figure(name: str) -> ModuleType:
    """The module of a figure."""
    if name not in FIGURES:
        raise SettingError(setting="figure", value=name, expected=f"one of {', '.join(FIGURES)}")
    return import_module(f"isingkit.experiments.{FIGURES[name]}")


def seed_of(*parts: object) -> int:
    """A seed that depends on all parts and on nothing else."""
    return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:8], "big")


def fingerprint(name: str, config: Any) -> str:
    """Names the records that belong together: one figure, one configuration, one version."""
    return f"{name}-{seed_of(name, dataclasses.asdict(config), __version__):016x}"


def run(
    name: str,
    config: Any,
    folder: Path,
    *,
    workers: int = 1,
    executor: Any = None,
    done: Callable[[int, int], None] | None = None,
) -> Table:
    """The figure's table, measured where records are missing; written with its picture and its
    settings into the folder.

    workers: processes; 1 works in this one
    executor: anything with submit() instead, whose workers need not see the folder
    done: called with (finished, all) units
    """
    module = figure(name)
    records = folder / "records" / fingerprint(name, config)
    records.mkdir(parents=True, exist_ok=True)
    points = module.points(config)
    paths = {point_name(point): records / f"{point_name(point)}.json" for point in points}
    todo = [point for point in points if not paths[point_name(point)].is_file()]
    finished = len(points) - len(todo)
    if done:
        done(finished, len(points))

    def report() -> None:
        nonlocal finished
        finished += 1
        if done:
            done(finished, len(points))

    tasks = [(name, config, point, paths[point_name(point)]) for point in todo]
    if executor is not None:
        for place, record in _finished([executor.submit(measured, *task[:3]) for task in tasks]):
            write_record(record, tasks[place][3])
            report()
    elif workers == 1 or len(tasks) <= 1:
        for task in tasks:
            work(*task)
            report()
    else:
        with ProcessPoolExecutor(
            workers, mp_context=get_context("spawn"), initializer=_one_thread
        ) as pool:
            for _ in _finished([pool.submit(work, *task) for task in tasks]):
                report()
    found = [json.loads(path.read_text()) for path in paths.values()]
    table: Table = [
        {"figure": name, "version": __version__, "seed": config.seed} | row
        for row in module.tabulate(config, found)
    ]
    write(name, table, config, folder)
    return table


def work(name: str, config: Any, point: Row, path: Path) -> None:
    """Measure one unit and record it; what a process of this machine does."""
    write_record(measured(name, config, point), path)


def measured(name: str, config: Any, point: Row) -> Row:
    """The record of one unit; what a worker elsewhere does."""
    return {"point": point, "result": figure(name).measure(config, point)}


def write_record(record: Row, path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(record))


def point_name(point: Row) -> str:
    return (
        "_".join(f"{key}={value}" for key, value in point.items())
        .replace("/", "-")
        .replace(" ", "-")
    )


def write(name: str, table: Table, config: Any, folder: Path) -> None:
    """Table (CSV, and Parquet where pandas can), pictures (PNG, SVG), and a JSON file with
    settings, date and agreement.
    """
    module = figure(name)
    columns = list(dict.fromkeys(key for row in table for key in row))
    with (
        replacing(folder / f"{name}.csv") as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(table)
    try:
        import pandas

        with replacing(folder / f"{name}.parquet") as temporary:
            pandas.DataFrame(table, columns=columns).to_parquet(temporary)
    except ImportError:
        pass
    draw(name, folder)
    facts = {
        "figure": name, "title": module.TITLE, "claim": module.CLAIM, "agreement": module.agreement(read(name, folder)),
        "version": __version__, "seed": config.seed, "configuration": dataclasses.asdict(config),
        "date": datetime.date.today().isoformat(),
    }  # fmt: skip
    with replacing(folder / f"{name}.json") as temporary:
        temporary.write_text(json.dumps(facts, indent=1))


def draw(name: str, folder: Path) -> None:
    """The pictures anew, from the table alone."""
    picture = figure(name).plot(read(name, folder))
    for kind in ("png", "svg"):
        with replacing(folder / f"{name}.{kind}") as temporary:
            picture.savefig(temporary, format=kind, dpi=100)


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


def _finished(futures: list[Future[Any]]) -> Iterator[tuple[int, Any]]:
    """Place and result as they are done, whoever's futures they are; the first failure is
    raised.
    """
    pending = dict(enumerate(futures))
    while pending:
        ready = [place for place, future in pending.items() if future.done()]
        for place in ready:
            yield place, pending.pop(place).result()
        if not ready:
            time.sleep(0.05)


def _one_thread() -> None:
    """Workers share the processors: one thread each, for kernels and for BLAS."""
    for variable in (
        "NUMBA_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
    ):
        os.environ[variable] = "1"
