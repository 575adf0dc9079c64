"""isingkit check"""

import json
import shlex
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
    id_option,
    missing_option,
    shape_options,
    ticked_option,
    weights_option,
)
from isingkit.exceptions import IsingkitError
from isingkit.missing import EVERY_POLICY

if TYPE_CHECKING:
    from isingkit.tables.decisions import Decision
    from isingkit.tables.rows import Reading
    from isingkit.tables.surveys import Survey


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
    from isingkit.tables.decisions import decisions, suggested_options
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
    suggested = suggested_options(found)
    if as_json:
        columns = survey.facts(options["binarize"])
        click.echo(json.dumps(_facts(reading, found, suggested) | columns))
    else:
        click.echo("\n".join(_lines(data, reading, survey, found, suggested)))
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


def _facts(reading: "Reading | None", found: "list[Decision]", suggested: str) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "decisions": [
            {"column": one.column, "seen": one.seen, "options": list(one.options)} for one in found
        ],
        "suggested": suggested,
    }
    if reading is not None:
        packed = reading.packed
        facts |= {
            "n_samples": reading.n_samples,
            "n_spins": packed.n_spins,
            "outcomes": _outcomes(reading),
        }
    return facts


def _outcomes(reading: "Reading") -> list[str]:
    from isingkit.tables.decisions import looks_like_outcome

    return [name for name in reading.packed.names if looks_like_outcome(name)]


def _lines(
    data: Path,
    reading: "Reading | None",
    survey: "Survey",
    found: "list[Decision]",
    suggested: str,
) -> list[str]:
    """What is told to people."""
    if reading is None:
        heading = f"{len(found)} thing{'s' * (len(found) > 1)} to decide in {data}:"
        command_line = f"isingkit fit {shlex.quote(str(data))} {suggested}"
        asked = [f"  {one.line()}" for one in found]
        return [heading, *asked, *_hints(survey, found), "", f"perhaps: {command_line}"]
    lines = [f"{reading.n_samples} rows of {reading.packed.n_spins} columns: nothing to decide"]
    for name in _outcomes(reading):
        lines.append(
            f"'{name}' looks like an outcome or a group of rows: if it is, use --covariates {name} "
            f"or --drop {name}"
        )
    return lines


def _hints(survey: "Survey", found: "list[Decision]") -> list[str]:
    """What options mean, and what they may leave out."""
    from isingkit.tables.decisions import among_covariates, has_totals

    hints = []
    if has_totals(survey.columns):
        hints.append("Is one row the totals of the others? Then delete it in the file.")
    if any(option.startswith("--binarize") for one in found for option in one.options):
        hints.append("--binarize X: numbers above X are one value, X and less the other.")
    if any(option.startswith("--ticked") for one in found for option in one.options):
        hints.append("--ticked: an empty cell of such a column means no.")
    names = among_covariates(survey.columns, found)
    if names:
        listed_names = ", ".join(f"'{name}'" for name in names)
        hints.append(
            f"{listed_names} {'stands' if len(names) == 1 else 'stand'} between these covariates: "
            "what tells what rows are, rather than what happened in them, belongs to --covariates, "
            "too."
        )
    return ["", *hints] if hints else []
