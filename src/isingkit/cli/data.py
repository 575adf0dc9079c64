"""DATA and the options that say how to read it, for commands that learn from a file."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from isingkit.cli.usage import usage_error
from isingkit.exceptions import IsingkitError, MissingValuesError, SpinValueError
from isingkit.formats import NAMES
from isingkit.missing import EVERY_POLICY, MissingPolicy

if TYPE_CHECKING:
    from isingkit.spins import Binarize
    from isingkit.tables.decisions import Decision
    from isingkit.tables.rows import Reading

columns_option = click.option(
    "--columns", help="Columns to use, separated by commas; by default all."
)
id_option = click.option("--id-column", help="Column that names the rows; left out.")
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
    "categories that shift how often the variables are +1, and are no part of the network.",
)


class _Thresholds(click.ParamType):  # type: ignore[type-arg]  # plain in earlier versions
    """A number, or numbers by column."""

    name = "thresholds"

    def convert(self, value: Any, param: Any, ctx: Any) -> "Binarize":
        from isingkit.tables import thresholds_in

        try:
            return value if value is None else thresholds_in(str(value))
        except ValueError:
            self.fail(f"'{value}' is neither a number nor NAME=NUMBER,NAME=NUMBER.", param, ctx)


binarize_option = click.option(
    "--binarize",
    type=_Thresholds(),
    metavar="NUMBER or NAME=NUMBER,NAME=NUMBER",
    help="Threshold that turns numbers into two values: of all columns of numbers, or of those "
    "that are named.",
)

codes_option = click.option(
    "--missing-codes",
    metavar="CODE,CODE",
    help="What stands for missing values of variables and covariates in text, beside empty cells "
    "and NA: numbers or texts, e.g. -999,refused.",
)

ticked_option = click.option(
    "--ticked",
    metavar="COLUMN,COLUMN",
    help="Columns of text with a mark, such as x or 1, where an empty cell means no; other empty "
    "cells are missing values.",
)


def shape_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with options for tables of very many columns."""
    transpose = click.option(
        "--transpose",
        is_flag=True,
        help="The file has variables in rows and samples in columns; .Rtab files always have.",
    )
    min_count = click.option(
        "--min-count",
        type=click.IntRange(min=0),
        default=0,
        help="Leave out columns either value of which occurs in fewer rows.",
    )
    max_share = click.option(
        "--max-share",
        type=click.FloatRange(0, 1, min_open=True),
        default=1.0,
        help="Leave out columns one value of which has a larger share of all rows.",
    )
    return transpose(min_count(max_share(command)))


def data_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the argument DATA, which its help explains at the end."""
    command.__doc__ = f"""{command.__doc__ or ""}

    DATA is a {NAMES} file, one row a sample (a person, a site, a time) and one column a variable of
    two values; - reads CSV from standard input.
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
    except IsingkitError as error:
        _tell_all_decisions(error, policies, options)
        if isinstance(error, MissingValuesError):
            raise error.offering(policies) from None
        raise


def given_options() -> dict[str, str]:
    """What was typed of this command's options, by their names."""
    from isingkit.tables import thresholds_as_text

    context = click.get_current_context(silent=True)
    if context is None:
        return {}
    found = {}
    for one in context.command.params:
        source = context.get_parameter_source(one.name or "")
        if not isinstance(one, click.Option) or source is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[one.name]
        is_threshold = isinstance(one.type, _Thresholds)
        text = thresholds_as_text(value) if is_threshold else str(value)
        found[one.opts[0]] = "" if one.is_flag else text
    return found


def _as_this_command_has_it(decision: "Decision") -> "Decision":
    """With those of its options that the command at hand has, or all, where it has none."""
    context = click.get_current_context(silent=True)
    if context is None:
        return decision
    known = {option for one in context.command.params for option in one.opts}
    options = [one for one in decision.options if one.split(" ", 1)[0] in known]
    return replace(decision, options=tuple(options) or decision.options)


def _tell_all_decisions(
    error: IsingkitError, policies: Sequence[MissingPolicy], options: dict[str, Any]
) -> None:
    """Where a table leaves things open, all of them, and options that settle them."""
    from isingkit.tables.decision_lines import NOTHING_LEFT, decision_lines
    from isingkit.tables.decisions import (
        TICKED_OPTION,
        decisions,
        leaves_variables,
        likeliest_meant,
        suggested_options,
    )

    if error.survey is None:
        return
    columns, n_rows = error.survey
    decided = {name: options[name] for name in ("binarize", "missing") if name in options}
    found = list(map(_as_this_command_has_it, decisions(columns, n_rows, policies, **decided)))
    if len(found) == 1:
        (one,) = found
        remedies = " or ".join(one.options)
        if isinstance(error, SpinValueError):
            raise usage_error(
                f"column {one.column} holds {one.seen}, but two are needed: use {remedies}"
            ) from None
        if one.options[0].startswith(TICKED_OPTION):  # what is empty is not missing
            raise usage_error(f"column {one.column} holds {one.seen}: use {remedies}") from None
    if len(found) < 2:
        return
    asked = decision_lines(found)
    things = f"{len(asked)} thing{'s' * (len(asked) > 1)}"
    click.echo(f"isingkit: {things} to decide:", err=True)
    for line in itertools.chain.from_iterable(asked):
        click.echo(f"  {line}", err=True)
    if not leaves_variables(columns, found):
        raise usage_error(NOTHING_LEFT) from None
    remedies = suggested_options(likeliest_meant(columns, found), given_options())
    raise usage_error(f"this table cannot be used as it is; perhaps add: {remedies}") from None
