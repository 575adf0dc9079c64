"""Mistakes in what was typed."""

from pathlib import Path

import click

force_option = click.option("--force", is_flag=True, help="Replace a file that is there.")


def usage_error(message: str) -> click.UsageError:
    """A mistake in options or arguments of the command that runs; one line says what to do."""
    return click.UsageError(message, click.get_current_context())


def require_new(path: Path, force: bool, *inputs: Path | None) -> None:
    """Refuse to write over a file, unless that was asked for, and ever over one that is read. What
    is no file, a pipe say, is not written over.
    """
    if not path.is_file() and not path.is_dir():
        return
    if any(one is not None and one.exists() and path.samefile(one) for one in inputs):
        raise usage_error(f"'{path}' is what is read: name another file to write")
    if not force:
        raise usage_error(f"'{path}' is there already: name another, or replace it with --force")
