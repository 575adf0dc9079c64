"""Workspace: the tables that pages have brought, each in a folder of its own, with what was made of
it. What a browser calls a file is shown to people, and never a path.
"""

import asyncio
import json
import secrets
import shutil
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from isingkit.app.choices import (
    ChoiceError,
    Choices,
    choices_of,
    described,
    is_on_one_side,
    open_questions,
    proposed,
)
from isingkit.app.guard import is_same
from isingkit.app.jobs import Job, JobState
from isingkit.app.repeat import command_line, write_archive
from isingkit.formats import COMPRESSED, SUFFIXES, bare_name, format_of, unknown_format
from isingkit.result_table import Record
from isingkit.tables.surveys import Survey

_STORED = "table"  # what files are called here; their suffix is one that we know
_FIT = "fit"
_ARCHIVE = "everything.zip"
_AT_ONCE = 2  # processes that run; others wait
_MOST_TABLES = 100
_FOLDS = 4  # all files together may be so many times as large as one
_LONGEST_NAME = 200
_MEGABYTE = 1_000_000


class RefusedError(ValueError):
    """What cannot be done, in one sentence, with the status that HTTP has for it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Fit:
    """A fit of a table that runs, or has run."""

    def __init__(self, choices: Choices, job: Job) -> None:
        self.choices = choices
        self.job = job
        self.secret = secrets.token_urlsafe(32)  # the address of its results
        self.facts: Record | None = None  # what fit.json says, when it is done


class Table:
    """A file that was brought, what it holds, and its latest fit."""

    def __init__(self, name: str, folder: Path) -> None:
        self.id = folder.name
        self.name = name
        self.folder = folder
        self.path = folder / f"{_STORED}{_suffix(name)}"
        self.check = Job(["check", "--json", self.path.name], folder, "looking through the file")
        self.survey: Survey | None = None
        self.fit: Fit | None = None

    @property
    def title(self) -> str:
        return bare_name(Path(self.name)) or "data"

    def in_words(self, message: str) -> str:
        """What a process has said of the file, by the name that people know."""
        return message.replace(self.path.name, self.name)

    def require_survey(self) -> Survey:
        if self.survey is None:
            raise RefusedError(409, "This file has not been looked through.")
        return self.survey

    def state(self) -> Record:
        """What a page is given."""
        state: Record = {"id": self.id, "name": self.name, "check": _progress(self.check)}
        state["check"]["message"] = self.in_words(self.check.message)
        if self.survey is not None and (self.fit is None or self.fit.job.is_over):
            state["n_rows"] = self.survey.n_rows
            state["columns"] = described(self.survey)
            state["proposed"] = proposed(self.survey).as_clicked()
        if self.fit is not None:
            state["fit"] = self._fit_state(self.fit)
        return state

    def plan(self, clicked: Record) -> Record:
        """What is still open with these choices, how columns are coded, and the command."""
        survey = self.require_survey()
        choices = _chosen(clicked, survey)
        known = survey.without_codes(choices.missing_codes).with_ticks(choices.ticked)
        variables = [one for one in known.columns if one.name not in choices.roles]
        cut = choices.binarize
        constant = [one.name for one in variables if is_on_one_side(one, cut)]
        return {
            "constant": constant,
            "questions": [asdict(one) for one in open_questions(choices, survey)],
            "codings": survey.codings(variables, cut),
            "n_variables": len(variables),
            "command": command_line(self.name, choices),
        }

    def _fit_state(self, fit: Fit) -> Record:
        state = _progress(fit.job)
        state["message"] = self.in_words(fit.job.message)
        state["choices"] = fit.choices.as_clicked()
        if fit.facts is not None:
            facts = ("n_edges", "n_spins", "n_samples", "method", "warnings")
            state |= {name: fit.facts[name] for name in facts}
            state["report"] = f"/results/{fit.secret}/report.html"
            state["archive"] = f"/results/{fit.secret}/{_ARCHIVE}"
            state["command"] = command_line(self.name, fit.choices)
        return state


class Workspace:
    """All tables of a running app, in a folder that nobody else can look into."""

    def __init__(self, folder: Path, largest: int) -> None:
        self.folder = folder
        self.largest = largest  # bytes of one file
        self.tables: dict[str, Table] = {}
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._running: set[asyncio.Task[None]] = set()

    def table(self, identity: str) -> Table:
        found = self.tables.get(identity)
        if found is None:
            raise RefusedError(404, "This file is no longer here: bring it again.")
        return found

    async def add(self, name: str, size: int | None, content: AsyncIterator[bytes]) -> Table:
        """A table of this content, which is then looked through."""
        _require_name(name)
        self._require_room(size)
        folder = self.folder / secrets.token_hex(16)
        folder.mkdir()
        table = Table(name, folder)
        try:
            await self._store(table.path, content)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self.tables[table.id] = table
        self._start(self._look_through(table))
        return table

    async def remove(self, table: Table) -> None:
        """Forget a table, and delete all that was made of it."""
        self.tables.pop(table.id, None)
        await table.check.cancel()
        if table.fit is not None:
            await table.fit.job.cancel()
        shutil.rmtree(table.folder, ignore_errors=True)

    async def start_fit(self, table: Table, clicked: Record) -> None:
        """Learn the network of a table."""
        survey = table.require_survey()
        choices = _chosen(clicked, survey)
        if open_questions(choices, survey):
            raise RefusedError(409, "Something is still open.")
        if table.fit is not None and not table.fit.job.is_over:
            raise RefusedError(409, "A network of this file is being learnt already.")
        shutil.rmtree(table.folder / _FIT, ignore_errors=True)
        arguments = [*choices.arguments(), "--title", table.title, "-o", _FIT]
        job = Job(["fit", table.path.name, *arguments], table.folder, "learning the network")
        table.fit = Fit(choices, job)
        self._start(self._learn(table, table.fit))

    async def cancel_fit(self, table: Table) -> None:
        """End the fit of a table that runs."""
        if table.fit is not None:
            await table.fit.job.cancel()

    def result(self, secret: str) -> tuple[Table, Path]:
        """The table whose results have this address, and the folder of them."""
        for table in self.tables.values():
            if table.fit is not None and is_same(secret, table.fit.secret) and table.fit.facts:
                return table, table.folder / _FIT
        raise RefusedError(404, "This result is no longer here.")

    async def close(self) -> None:
        """End all processes."""
        for table in list(self.tables.values()):
            await self.remove(table)
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _look_through(self, table: Table) -> None:
        job = table.check
        await job.run(self._turn)
        if job.state == JobState.DONE:
            table.survey = Survey.from_facts(json.loads(job.output))

    async def _learn(self, table: Table, fit: Fit) -> None:
        await fit.job.run(self._turn)
        folder = table.folder / _FIT
        if fit.job.state != JobState.DONE:
            for rest in table.folder.glob(f"{_FIT}*"):
                shutil.rmtree(rest, ignore_errors=True)
            return
        facts = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
        archive = table.folder / _ARCHIVE
        try:
            await asyncio.to_thread(write_archive, folder, table.name, fit.choices, facts, archive)
        except OSError as error:
            fit.job.fail(f"the result cannot be kept: {error.strerror}.")
        else:
            fit.facts = facts

    def _require_room(self, size: int | None) -> None:
        self._require_size(size or 0)
        if len(self.tables) >= _MOST_TABLES:
            raise RefusedError(507, "There are too many files here: stop the app and start anew.")

    def _require_size(self, size: int) -> None:
        if size > self.largest:
            most = f"{self.largest / _MEGABYTE:g} MB"
            raise RefusedError(
                413,
                f"The file is larger than {most}: start 'isingkit app --largest-file MEGABYTES', "
                "or use 'isingkit fit' in a terminal.",
            )
        others = sum(one.path.stat().st_size for one in self.tables.values() if one.path.exists())
        if others + size > _FOLDS * self.largest:
            raise RefusedError(507, "There are too many files here: stop the app and start anew.")

    async def _store(self, path: Path, content: AsyncIterator[bytes]) -> None:
        size = 0
        with open(path, "xb") as file:
            async for chunk in content:
                size += len(chunk)
                self._require_size(size)
                file.write(chunk)


def archive_of(table: Table) -> tuple[Path, str]:
    """The zip of a table's fit, and a name to keep it by."""
    return table.folder / _ARCHIVE, f"{table.title}-fit.zip"


def _progress(job: Job) -> Record:
    return {
        "state": job.state.value,
        "step": job.step,
        "fraction": job.fraction,
        "seconds": round(job.seconds, 1),
    }


def _chosen(clicked: Record, survey: Survey) -> Choices:
    try:
        return choices_of(clicked, survey)
    except ChoiceError as error:
        raise RefusedError(400, str(error)) from None


def _require_name(name: str) -> None:
    """Refuse what is no name of a file of a kind that can be read."""
    is_plain = name.isprintable() and not any(one in name for one in '/\\:\0"<>|')
    if not name or not is_plain or name.startswith("..") or len(name) > _LONGEST_NAME:
        raise RefusedError(400, "This is no name of a file: rename it, without / or \\ in it.")
    if format_of(Path(name)) not in SUFFIXES:
        raise RefusedError(415, f"'{name}' cannot be read: {unknown_format(Path(name))}.")


def _suffix(name: str) -> str:
    """What the name says of the format: one of a few known texts."""
    known = next(suffix for suffix in SUFFIXES if suffix == format_of(Path(name)))
    return known + COMPRESSED if name.lower().endswith(COMPRESSED) else known
