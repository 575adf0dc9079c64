"""Tasks of a run: one draw of a world, or one fold of a table, and the methods that still lack a
record of it.

Each method's record is written as soon as it is there, so that a run that was killed goes on.
"""

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from isingkit.exceptions import IsingkitError
from isingkit.experiments.runner import finished, point_name, write_record
from league.measures import Row, measured
from league.methods import FINDERS, METHODS, learn
from league.real_tables import N_FOLDS, TABLES, fold
from league.source import source_of
from league.worlds import WORLDS, draw


@dataclass(frozen=True, slots=True)
class Task:
    """Data, and the methods to try on them."""

    name: str  # of a world or of a table
    seed: int  # or the number of a fold
    methods: tuple[str, ...]
    records: Path  # a folder

    @property
    def of_table(self) -> bool:
        return self.name in TABLES

    def path(self, method: str) -> Path:
        """The record of one method."""
        point = {"name": self.name, "method": method, "seed": self.seed}
        return self.records / source_of(method) / f"{point_name(point)}.json"

    def missing(self) -> "Task":
        """The same task with methods that have no record."""
        missing = tuple(method for method in self.methods if not self.path(method).is_file())
        return Task(self.name, self.seed, missing, self.records)

    def rows(self) -> Iterator[Row]:
        """What is on record."""
        for method in self.methods:
            if self.path(method).is_file():
                row = json.loads(self.path(method).read_text())
                row.pop("checksum", None)
                yield row


def world_tasks(
    name: str, seeds: Iterable[int], methods: Sequence[str], records: Path
) -> list[Task]:
    """One task a seed."""
    finders = tuple(method for method in methods if method in FINDERS)
    return [Task(name, seed, finders, records) for seed in seeds]


def table_tasks(name: str, methods: Sequence[str], records: Path) -> list[Task]:
    """One task a fold."""
    return [Task(name, number, tuple(methods), records) for number in range(N_FOLDS)]


def run(tasks: Sequence[Task], workers: int) -> Iterator[Task]:
    """Each task, as soon as all of it is on record; those that were need nothing."""
    missing = [task.missing() for task in tasks]
    return finished(work, [task for task in missing if task.methods], workers)


def work(task: Task) -> None:
    """Draw once, try every method, and record each as it is done."""
    measure = _fold_measure(task) if task.of_table else _world_measure(task)
    for method in task.methods:
        facts = {"name": task.name, "method": method, "seed": task.seed}
        try:
            found = measure(method)
        except (IsingkitError, ValueError) as error:  # a method that refuses has lost this one
            found = {"problem": str(error)}
        path = task.path(method)
        path.parent.mkdir(parents=True, exist_ok=True)
        today = datetime.date.today().isoformat()
        write_record(facts | found | {"source": source_of(method), "date": today}, path)


def _world_measure(task: Task) -> Callable[[str], Row]:
    drawn = draw(WORLDS[task.name], task.seed)
    return lambda method: measured(learn(METHODS[method], drawn.train, drawn.truth), drawn)


def _fold_measure(task: Task) -> Callable[[str], Row]:
    learnt, held_out = fold(TABLES[task.name].read(), task.name, task.seed)

    def measure(method: str) -> Row:
        answer = learn(METHODS[method], learnt)
        return {
            "edges": answer.model.n_edges,
            "held_out": answer.held_out(held_out),
            "cpu_seconds": answer.cpu_seconds,
        }

    return measure
