"""The league: every method on every world, tables and pictures of it, and the page.

python -m league, with `benchmarks` on the path, or `make league`. A run that was killed goes on;
rows of methods, worlds and seeds that were not asked for stay as they are. What is reserved is
touched with --final only.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from league.measures import Row
from league.methods import METHODS
from league.page import write_page
from league.real_tables import TABLES, present_tables
from league.results import keep, read_rows
from league.tasks import Task, run, table_tasks, world_tasks
from league.worlds import WORLDS, development_seeds, final_seeds

HERE = Path(__file__).parent


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="league", description=__doc__)
    parser.add_argument("--worlds", nargs="+", choices=[*WORLDS, *TABLES], metavar="WORLD")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, help="development seeds of each world")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--final", action="store_true", help="run what is reserved, and that only")
    parser.add_argument("--page", action="store_true", help="of records only; measure nothing")
    parser.add_argument("-o", "--output", type=Path, default=HERE, help="a folder")
    return parser.parse_args(given)


def planned(asked: argparse.Namespace) -> Iterator[Task]:
    """All tasks, done or not: first seeds of all worlds first."""
    records = asked.output / "records"
    seeds_of = final_seeds if asked.final else development_seeds
    tasks: list[tuple[int, Task]] = []
    for name in asked.worlds or WORLDS:
        if name in WORLDS:
            seeds = seeds_of(WORLDS[name], asked.seeds)
            tasks += enumerate(world_tasks(name, seeds, asked.methods, records))
    yield from (task for _, task in sorted(tasks, key=lambda one: one[0]))
    if not asked.final:  # nothing is reserved of tables
        for name in present_tables():
            if not asked.worlds or name in asked.worlds:
                yield from table_tasks(name, asked.methods, records)


def main(given: Sequence[str] | None = None) -> None:
    asked = arguments(given)
    tasks = list(planned(asked))
    if not asked.page:
        n_tasks = sum(1 for task in tasks if task.missing().methods)
        for _ in tqdm(run(tasks, asked.workers), total=n_tasks, desc="draws"):
            pass
    measured: list[Row] = [row for task in tasks for row in task.rows()]
    tables = asked.output / "results"
    keep(measured, tables)
    write_page(read_rows(tables, [*WORLDS, *TABLES]), asked.output)


if __name__ == "__main__":
    main()
