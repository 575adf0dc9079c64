"""Job: one command of the command line in a process of its own, with its progress."""

import asyncio
import codecs
import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

_LINES = re.compile(r"[\r\n]+")
_MOVES = re.compile(r"\x1b\[\w")  # of the cursor, from bar to bar
# what follows the name of a bar: percents, a count and a rate, or blocks and a time
_BAR = re.compile(r":?\s*(\d+%\|.*|[\d.]+\w* ?\S* \[.*\]|[█▉▊▋▌▍▎▏#]*\s+[\d:]+\s*)$")
_PERCENT = re.compile(r"(\d+)%\|")
_SAYS = "isingkit: "  # before what the command line says
_WARNS = "isingkit: warning: "
_KEPT = 1 << 16  # characters of what a process said; the last of them
_KILLED = -9  # by a signal that nobody here has sent
_OUT_OF_MEMORY = (
    "not enough memory: the system has ended the process; use fewer columns or rows, or close "
    "other programs."
)


class JobState(StrEnum):
    """What has become of a job."""

    WAITING = "waiting"  # for others to finish
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Job:
    """A command that runs, or has run, in a process of its own. Nothing it does can hurt whoever
    started it.
    """

    def __init__(self, arguments: Sequence[str], folder: Path, step: str) -> None:
        self.arguments = list(arguments)
        self.folder = folder  # that it runs in
        self.state = JobState.WAITING
        self.output = ""  # on standard output
        self.message = ""  # one sentence: why it failed
        self.step = step  # what it does now, as its progress bar says
        self.fraction: float | None = None  # of this step, where it is known
        self._said = ""  # on standard error
        self._started = time.monotonic()
        self._ended: float | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def is_over(self) -> bool:
        return self.state not in (JobState.WAITING, JobState.RUNNING)

    @property
    def seconds(self) -> float:
        """Since it began, to the end."""
        return (self._ended or time.monotonic()) - self._started

    async def run(self, turn: asyncio.Semaphore) -> None:
        """Run it when it is its turn, to the end; nothing is raised."""
        async with turn:
            if self.is_over:
                return
            self.state = JobState.RUNNING
            self._started = time.monotonic()
            try:
                await self._run()
            except OSError as error:
                self.fail(f"no process can be started: {error.strerror}.")

    async def cancel(self) -> None:
        """End it, with all processes that it has started, and wait until it has ended."""
        if self.is_over:
            return
        self._end(JobState.CANCELLED, "cancelled")
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
            await process.wait()

    def fail(self, message: str) -> None:
        """Take it as failed: what it has made cannot be used."""
        self._end(JobState.FAILED, message)

    async def _run(self) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "isingkit.app.child",
            *self.arguments,
            cwd=self.folder,
            env=os.environ | {"PYTHONIOENCODING": "utf-8:backslashreplace"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=os.name == "posix",
        )
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        output, _ = await asyncio.gather(process.stdout.read(), self._listen(process.stderr))
        status = await process.wait()
        if self.is_over:  # cancelled
            return
        self.output = output.decode("utf-8", "replace")
        is_check_with_questions = status == 1 and self.arguments[0] == "check" and self.output
        if status == 0 or is_check_with_questions:
            self._end(JobState.DONE)
        else:
            self._end(JobState.FAILED, _sentence(self._said, status))

    def _end(self, state: JobState, message: str = "") -> None:
        self.state = state
        self.message = message
        self.step = ""
        self.fraction = None
        self._ended = time.monotonic()

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        """Follow the progress bar."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while fresh := await stream.read(4096):
            text = _MOVES.sub("", decoder.decode(fresh))
            self._said = (self._said + text)[-_KEPT:]
            lines = [line for line in _LINES.split(text) if line.strip()]
            if lines and not lines[-1].startswith(_WARNS):
                self.step, self.fraction = progress_in(lines[-1])


def progress_in(line: str) -> tuple[str, float | None]:
    """What a line on standard error says is being done, and how much of it is, where it says."""
    percent = _PERCENT.search(line)
    step = _BAR.sub("", line).removeprefix(_SAYS).strip()
    return step, int(percent[1]) / 100 if percent else None


def _sentence(said: str, status: int) -> str:
    """Why a process has failed, in the words of the command line."""
    lines = [line.strip() for line in _LINES.split(said) if line.strip()]
    errors = [line for line in lines if line.startswith(_SAYS) and not line.startswith(_WARNS)]
    if status == 2 and errors:
        return errors[-1].removeprefix(_SAYS)
    if status == _KILLED:
        return _OUT_OF_MEMORY
    last = lines[-1] if lines else f"exit status {status}"
    return f"this was not foreseen: {last}; please report it, with the file if you can."
