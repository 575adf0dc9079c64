"""Commands in forked children of a warm process: what was compiled is there, and nothing that
happens to a child happens to its parent.
"""

import math
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isingkit import atomic
from soak.oracles import Ended

Problems = list[str]

LONGEST = 120.0  # seconds, of which a child that does not hang works a hundredth at least
MOST_WORK = 1200.0  # seconds of processor time, beyond which it works without end


@dataclass(slots=True)
class Child:
    """A process that was started, and where it writes."""

    pid: int
    folder: Path
    cpu_seconds: float = math.nan  # once it has ended

    def send(self, number: int, after: float) -> None:
        """A signal, so many seconds later, if it still runs."""
        time.sleep(after)
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            os.kill(self.pid, number)

    def send_at(self, number: int, cpu_seconds: float) -> None:
        """A signal, as soon as it has worked for so long by the clock of its processors."""
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if self.worked() >= cpu_seconds:
                os.kill(self.pid, number)
                return
            time.sleep(0.001)

    def worked(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])  # of user and of system
        return ticks / os.sysconf("SC_CLK_TCK")

    def _stop_if_it_hangs(self) -> None:
        """Watch it until its end. One that waits for a processor that others use works a little
        now and then: by the clock it may take as long as it likes.
        """
        before = 0.0
        watched = os.pidfd_open(self.pid)
        try:
            while not select.select([watched], [], [], LONGEST)[0]:
                worked = self.worked()
                if worked - before < LONGEST / 100 or worked > MOST_WORK:
                    os.kill(self.pid, signal.SIGALRM)
                    return
                before = worked
        finally:
            os.close(watched)

    def ended(self) -> Ended:
        """Wait for its end; one that hangs is killed, and its status is -SIGALRM."""
        self._stop_if_it_hangs()
        _, status, used = os.wait4(self.pid, 0)
        self.cpu_seconds = used.ru_utime + used.ru_stime
        out, err = (
            (self.folder / name).read_text(encoding="utf-8", errors="replace")
            for name in ("out", "err")
        )
        return Ended(os.waitstatus_to_exitcode(status), out, err)


def forked(folder: Path, work: Callable[[], Any]) -> Child:
    """A child that does some work; `folder` gets what it says."""
    folder.mkdir(exist_ok=True)
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return Child(pid, folder)
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        work()
        status = 0
    except SystemExit as stopped:
        status = stopped.code if isinstance(stopped.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def command(
    folder: Path, arguments: Sequence[object], prepare: Callable[[], Any] = lambda: None
) -> Child:
    """isingkit with these arguments; `prepare` is called in the child before."""

    def work() -> None:
        from isingkit.cli import main

        prepare()
        main([str(one) for one in arguments])

    return forked(folder, work)


def without_patience(prepare: Callable[[], Any] = lambda: None) -> None:
    """What was left behind is cleared away however young it is: nobody else writes."""
    prepare()
    atomic._YOUNG = 0.0


def limited(kind: int, amount: int) -> Callable[[], None]:
    """What sets a limit of the system in a child."""
    return lambda: resource.setrlimit(kind, (amount, amount))
