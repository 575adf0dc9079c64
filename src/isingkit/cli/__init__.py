"""The command line: parse, call, print. Commands are imported when they are called, so that --help
is instant.
"""

import difflib
import errno
import gc
import io
import os
import shlex
import sys
import warnings
from importlib import import_module
from typing import Any

import click

from isingkit import __version__
from isingkit.cli.deferred_imports import defer_imports
from isingkit.cli.foreign import FOREIGN_OPTIONS
from isingkit.cli.wording import as_options
from isingkit.exceptions import IsingkitError

COMMANDS = {
    "fit": "Learn the network behind a file of data.",
    "check": "Look through a file of data before it is used: what must be decided?",
    "app": "Do it in a page of this machine: drop a file, click, look.",
    "demo": "A planted network and a real one, found and drawn in a minute.",
    "teacher": "Make a model whose truth is known.",
    "sample": "Draw samples of a model.",
    "report": "Write the report of a fit anew, or of any model.",
    "score": "Compare a network found with the true one.",
    "compare": "Compare methods on a file of data.",
    "compare-groups": "Compare the networks of groups of rows.",
    "landscape": "Find the states a network rests in, and barriers between them.",
    "plan": "How many rows will be needed to find a network's edges.",
    "reproduce": "Measure, predict and draw the paper's figures.",
    "theory": "Predict errors and the samples needed, without data.",
    "bench": "Measure this machine with large networks.",
    "warm-up": "Compile everything now, so that nobody waits for it later.",
    "completion": "Make Tab complete commands and options.",
}


ADVICE = {
    errno.ENOSPC: "free some space, or name another folder with -o",
    errno.EFBIG: "name another folder with -o",
    errno.EDQUOT: "free some space, or name another folder with -o",
    errno.EACCES: "name a place where you may read and write",
    errno.EROFS: "name a place where you may write",
}


_LONGEST = 2000  # characters of what is told of an error
# what the system says of a library for which there is no memory
_NO_ROOM = ("failed to map segment", "annot allocate memory", "cannot create shared object")


class LazyGroup(click.Group):
    """A group whose commands live in modules of this package, named alike, each with a
    `command`.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"isingkit.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        typed = args[0]
        if typed in COMMANDS or typed.startswith("-"):
            return super().resolve_command(ctx, args)
        if os.path.isfile(typed):  # noqa: PTH113
            advice = f"to learn its network, type: isingkit fit {shlex.quote(typed)}"
        else:
            close = difflib.get_close_matches(typed, COMMANDS, n=1)
            advice = (
                f"did you mean '{close[0]}'?" if close else "'isingkit fit FILE' is the usual one"
            )
        raise click.UsageError(f"there is no command '{typed}': {advice}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="isingkit")
def root() -> None:
    """Learn the network of couplings behind binary data.

    Tables for people; with --json, one JSON object on stdout for programs. Progress and warnings go
    to stderr.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a mistake by the user exits 2 with one line that says what to do."""
    _replace_closed_streams()
    warnings.showwarning = lambda message, *_, **__: print(
        f"isingkit: warning: {as_options(str(message))}", file=sys.stderr
    )
    defer_imports()
    gc.set_threshold(100_000, 50)  # imports make objects that stay: looking for garbage is waiting
    try:
        status = root.main(arguments, prog_name="isingkit", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        sys.exit(0)
    except BrokenPipeError:  # whoever read our output has enough of it
        sys.stderr.close()
        sys.exit(1)
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__cause__, EOFError):  # click takes it for the end of what is typed
            _tell("a file ends too early: it is damaged.")
            sys.exit(2)
        print("isingkit: interrupted", file=sys.stderr)
        sys.exit(130)
    except (click.ClickException, IsingkitError, MemoryError, OSError) as error:
        _tell(_message(error))
        sys.exit(2)
    except ImportError as error:
        if not any(problem in str(error) for problem in _NO_ROOM):
            raise
        _tell(_message(MemoryError(error)))
        sys.exit(2)
    sys.exit(status or 0)


def _tell(message: str) -> None:
    """One line for people."""
    line = " ".join(message.split())
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    print(f"isingkit: {line}", file=sys.stderr)


def _replace_closed_streams() -> None:
    """What is written to a stream that was closed before the start goes nowhere, and no file that
    is opened later takes its number. Names of files that are no UTF-8 are printed as stderr does.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper) and sys.stderr is sys.__stderr__:
        raw = _Unfailing(sys.stderr.fileno(), "w", closefd=False)
        how = {"encoding": sys.stderr.encoding, "errors": "backslashreplace"}
        sys.stderr = io.TextIOWrapper(raw, write_through=True, **how)  # type: ignore[arg-type]


class _Unfailing(io.FileIO):
    """A file for what may be lost, where it cannot be written: a log of progress on a full disk
    ends no fit.
    """

    def write(self, text: Any) -> int:
        try:
            return super().write(text)
        except OSError:
            return memoryview(text).nbytes


def _message(error: Exception) -> str:
    """What went wrong, and what to do about it."""
    if isinstance(error, click.NoSuchOption) and error.option_name in FOREIGN_OPTIONS:
        return f"there is no {error.option_name}: {FOREIGN_OPTIONS[error.option_name]}."
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "isingkit"
        return f"{error.format_message().rstrip('.')}; see '{command} --help'."
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, IsingkitError):
        return _as_options(error)
    if isinstance(error, OSError):
        problem = f"{error.strerror or error}: {error.filename or 'while writing'}"
        advice = ADVICE.get(error.errno or 0)
        return f"{problem}; {advice}." if advice else f"{problem}."
    told = f": {error}" if str(error) else ""
    return f"not enough memory{told}; ask for less."


def _as_options(error: IsingkitError) -> str:
    """The advice of an error in options of the command line instead of Python's arguments."""
    text = as_options(str(error))
    column = getattr(error, "column", None)
    if column is None:
        return text
    return text.replace("Leave it out if", f"Leave it out with --drop {shlex.quote(column)} if")
