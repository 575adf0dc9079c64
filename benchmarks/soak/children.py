"""Commands in forked children of a warm process: what was compiled is there, and nothing that
happens to a child happens to its parent.
"""

import math
import os
import resource
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

LONGEST = 600  # seconds, after which a child hangs, on however loaded a machine


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
        ticks = cpu_seconds * os.sysconf("SC_CLK_TCK")
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            if int(fields[11]) + int(fields[12]) >= ticks:  # of user and of system
                os.kill(self.pid, number)
                return
            time.sleep(0.001)

    def ended(self) -> Ended:
        """Wait for its end; one that hangs is killed, and its status is -SIGALRM."""
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
        signal.alarm(LONGEST)
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
