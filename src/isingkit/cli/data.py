"""DATA and the options that say how to read it, for commands that learn from a file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit.exceptions import MissingValuesError
from isingkit.formats import NAMES
from isingkit.missing import EVERY_POLICY, MissingPolicy

if TYPE_CHECKING:
    from isingkit.tables.rows import Reading

columns_option = click.option(
    "--columns", help="Columns to use, separated by commas; by default all."
)
drop_option = click.option("--drop", default="", help="Columns to leave out, separated by commas.")
weights_option = click.option(
    "--weights", help="Column that says how much a row matters, as in a survey."
)
counts_option = click.option(
    "--counts", help="Column that says how many equal samples a row stands for: whole numbers."
)
covariates_option = click.option(
    "--covariates",
    help="Columns of what else is known of rows (age, site, day), separated by commas: numbers or "
    "categories that shift how often spins are up, and are no spins.",
)
binarize_option = click.option(
    "--binarize", type=float, help="Threshold that turns real-valued columns into spins."
)


def data_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the argument DATA, which its help explains at the end."""
    command.__doc__ = f"""{command.__doc__ or ""}

    DATA is a {NAMES} file, one row a sample and one column a spin; - reads CSV from standard input.
    """
    existing = click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)
    return click.argument("data", type=existing)(command)


def missing_option(
    policies: Sequence[MissingPolicy] = EVERY_POLICY,
) -> Callable[[Any], Any]:
    """The option that says what to do about missing values."""
    explained = "; ".join(f"{policy} {policy.explanation}" for policy in policies)
    return click.option(
        "--missing",
        type=click.Choice([policy.value for policy in policies]),
        default=MissingPolicy.ERROR.value,
        show_default=True,
        help=f"About missing values: {explained}.",
    )


def read(data: Path, policies: Sequence[MissingPolicy], **options: Any) -> "Reading":
    """What the file holds; where values are missing, advice that these policies follow."""
    from isingkit.tables import read_spins

    try:
        return read_spins(data, **options, progress=True)
    except MissingValuesError as error:
        raise error.offering(policies) from None
