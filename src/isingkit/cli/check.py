"""isingkit check"""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit.cli.data import (
    binarize_option,
    codes_option,
    columns_option,
    counts_option,
    covariates_option,
    data_argument,
    drop_option,
    given_options,
    id_option,
    missing_option,
    shape_options,
    ticked_option,
    weights_option,
)
from isingkit.exceptions import IsingkitError, short, typed_list
from isingkit.missing import EVERY_POLICY

if TYPE_CHECKING:
    from isingkit.tables.decisions import Decision
    from isingkit.tables.rows import Reading
    from isingkit.tables.surveys import Survey

_WIDE = 10  # columns a row: perhaps the table stands the other way
_MOST_NAMED = 20  # columns in a hint


@click.command("check")
@data_argument
@columns_option
@drop_option
@id_option
@weights_option
@counts_option
@click.option("--row-groups", help="Column of labels, the same for rows that belong together.")
@covariates_option
@binarize_option
@missing_option()
@codes_option
@ticked_option
@shape_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def command(data: Path, as_json: bool, **options: Any) -> int:
    """Look through a file of data: which columns need a decision, and which option makes it. Takes
    the options of 'isingkit fit' that say how to read; exits with 1 while something is open.
    """
    from isingkit.tables.decisions import decisions, likeliest_meant, suggested_options
    from isingkit.tables.surveys import Survey

    reading: Reading | None = None
    found: list[Decision] = []
    decided = {"binarize": options["binarize"], "missing": options["missing"]}
    try:
        reading = _read(data, options)
        survey = Survey.of_reading(reading)
    except IsingkitError as error:
        refused = Survey.of_error(error)
        if refused is None:
            raise
        survey = refused
        found = decisions(survey.columns, survey.n_rows, EVERY_POLICY, **decided)
        if not found:
            raise
    given = {name: text for name, text in given_options().items() if name != "--json"}
    meant = likeliest_meant(survey.columns, found)
    if as_json:
        columns = survey.facts(options["binarize"])
        click.echo(
            json.dumps(_facts(reading, survey, found, suggested_options(meant, given)) | columns)
        )
    else:
        suggested = suggested_options(meant, given, repeats=True)
        lines = _lines(data, reading, found)
        hints = _hints(survey, found, options["transpose"])
        click.echo("\n".join([*lines, *hints, *_suggestion(data, survey, found, suggested)]))
    return 1 if found else 0


def _read(data: Path, options: dict[str, Any]) -> "Reading":
    from isingkit.tables import listed, read_spins

    id_column = options["id_column"]
    return read_spins(
        data,
        columns=listed(options["columns"]),
        drop=[*listed(options["drop"]), *([id_column] if id_column else [])],
        weights=options["weights"],
        counts=options["counts"],
        groups=options["row_groups"],
        covariates=listed(options["covariates"]),
        binarize=options["binarize"],
        missing=options["missing"],
        missing_codes=listed(options["missing_codes"]),
        ticked=listed(options["ticked"]),
        transpose=options["transpose"],
        min_count=options["min_count"],
        max_share=options["max_share"],
        progress=True,
    )


def _facts(
    reading: "Reading | None", survey: "Survey", found: "list[Decision]", suggested: str
) -> dict[str, Any]:
    from isingkit.tables.decisions import outcomes

    facts: dict[str, Any] = {
        "decisions": [
            {"column": one.column, "seen": one.seen, "options": list(one.options)} for one in found
        ],
        "suggested": suggested,
        "outcomes": outcomes(survey.columns, found),
    }
    if reading is not None:
        facts |= {"n_samples": reading.n_samples, "n_spins": reading.packed.n_spins}
    return facts


def _lines(data: Path, reading: "Reading | None", found: "list[Decision]") -> list[str]:
    """What is told to people."""
    from isingkit.tables.decision_lines import decision_lines

    if reading is not None:
        return [f"{reading.n_samples} rows of {reading.packed.n_spins} columns: nothing to decide"]
    asked = decision_lines(found)
    heading = f"{len(asked)} thing{'s' * (len(asked) > 1)} to decide in {data}:"
    return [heading, *(f"  {line}" for lines in asked for line in lines)]


def _suggestion(data: Path, survey: "Survey", found: "list[Decision]", suggested: str) -> list[str]:
    """A command that would do, where there is something to decide."""
    from isingkit.tables.decision_lines import NOTHING_LEFT
    from isingkit.tables.decisions import leaves_variables

    if not found:
        return []
    if not leaves_variables(survey.columns, found):
        return ["", NOTHING_LEFT]
    return ["", f"perhaps: isingkit fit {shlex.quote(str(data))} {suggested}"]


def _hints(survey: "Survey", found: "list[Decision]", transposed: bool) -> list[str]:
    """What options mean, and what they may leave out."""
    from isingkit.tables.decisions import among_covariates, has_totals, outcomes

    hints = []
    n_columns = len(survey.columns)
    if n_columns > _WIDE * survey.n_rows and not transposed:
        hints.append(
            f"There are far more columns ({n_columns}) than rows ({survey.n_rows}): if each line "
            "of the file is a variable (a gene, a signal), add --transpose."
        )
    if has_totals(survey.columns):
        hints.append("Is one row the totals of the others? Then delete it in the file.")
    if any(option.startswith("--binarize") for one in found for option in one.options):
        hints.append(
            "--binarize X: numbers above X are one value, X and less the other; NAME=X does so "
            "with one column."
        )
    if any(option.startswith("--ticked") for one in found for option in one.options):
        hints.append("--ticked: an empty cell of such a column means no.")
    names = among_covariates(survey.columns, found)
    if names:
        hints.append(
            f"{_quoted(names)} {'stands' if len(names) == 1 else 'stand'} between these covariates "
            "and may be such, too, as is proposed below: covariates tell what rows are, and not "
            "what happened in them."
        )
    if found:
        hints += _hints_on_others(survey, found)
    hints += [
        f"'{short(name)}' looks like an outcome or a group of rows: if it is, use "
        f"--covariates {typed_list([name])} or --drop {typed_list([name])}"
        for name in outcomes(survey.columns, found)
    ]
    return ["", *hints] if hints else []


def _hints_on_others(survey: "Survey", found: "list[Decision]") -> list[str]:
    """Of columns that ask for nothing, those of one value."""
    asked = {one.name for one in found}
    names = [one.name for one in survey.columns if one.low == one.high and one.name not in asked]
    if not names:
        return []
    verb, them = ("holds", "it") if len(names) == 1 else ("hold", "them")
    return [
        f"{_quoted(names)} {verb} one value only, and will be without edges: --min-count 1 leaves "
        f"{them} out."
    ]


def _quoted(names: Sequence[str]) -> str:
    more = f", and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(f"'{short(name)}'" for name in names[:_MOST_NAMED]) + more
