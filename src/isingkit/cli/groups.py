"""--groups and --group-by: the groups of spins, for colours in a report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from isingkit.cli.usage import usage_error


def group_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with both options."""
    by = click.option(
        "--group-by", help="Its column of groups; by default the first that looks like one."
    )
    table = click.option(
        "--groups",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Table with the group of each variable, for colours in the report.",
    )
    return table(by(command))


def require_table(groups: Path | None, group_by: str | None) -> None:
    """Refuse a column of groups without the table it is in."""
    if group_by is not None and groups is None:
        raise usage_error(
            f"--group-by takes the column '{group_by}' of a table, but there are no --groups: "
            "name the table with --groups FILE"
        )
