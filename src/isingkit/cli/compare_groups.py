"""isingkit compare-groups"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit import __version__
from isingkit.cli.data import (
    binarize_option,
    codes_option,
    columns_option,
    counts_option,
    covariates_option,
    drop_option,
    id_option,
    missing_option,
    read,
    ticked_option,
    weights_option,
)
from isingkit.cli.usage import force_option, require_new, usage_error
from isingkit.formats import bare_name
from isingkit.missing import COMPLETE_ROWS

if TYPE_CHECKING:
    from isingkit.groups.comparison import GroupComparison
    from isingkit.spins import Binarize


@dataclass(frozen=True, slots=True)
class CompareGroupsOptions:
    """What was typed after `isingkit compare-groups`."""

    files: tuple[Path, ...]
    by: str | None
    fields: str
    permutations: int
    control: str
    method: str
    columns: str | None
    drop: str
    id_column: str | None
    covariates: str | None
    row_groups: str | None
    weights: str | None
    counts: str | None
    binarize: "Binarize"
    missing: str
    missing_codes: str | None
    ticked: str | None
    output: Path | None
    force: bool
    seed: int
    as_json: bool


@click.command("compare-groups")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
)
@click.option("--by", help="Column that says which group a row is of.")
@click.option(
    "--fields",
    type=click.Choice(["free", "equal"]),
    default="free",
    show_default=True,
    help="Whether groups may differ in how often columns are +1.",
)
@click.option(
    "--permutations",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="How often rows are relabelled.",
)
@click.option(
    "--control",
    type=click.Choice(["fwer", "fdr"]),
    default="fwer",
    show_default=True,
    help="Which pairs differ: none of them falsely, or a share of 5 percent.",
)
@click.option(
    "--method",
    type=click.Choice(["score", "nct"]),
    default="score",
    show_default=True,
    help="nct is the Network Comparison Test with eLasso, which learns both networks for each "
    "permutation.",
)
@columns_option
@drop_option
@id_option
@covariates_option
@click.option(
    "--row-groups", help="Column of labels, the same for rows that belong together (a person)."
)
@weights_option
@counts_option
@binarize_option
@missing_option(COMPLETE_ROWS)
@codes_option
@ticked_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page, .html: the networks side by side, what differs, and tables.",
)
@force_option
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def command(**arguments: Any) -> None:
    """Compare the networks of groups: whether they differ, where, and by how much.

    FILES is one file of data with a column of groups, named with --by, or a file for each group,
    all with the same columns; - reads CSV from standard input.
    """
    options = CompareGroupsOptions(**arguments)
    _require_groups(options)
    found = _compared(options)
    if options.output is not None:
        _write_page(found, options)
    if options.as_json:
        click.echo(json.dumps(_facts(found, options)))
        return
    click.echo(str(found))
    if options.output is not None:
        click.echo(f"\nlook at {options.output}")


def _require_groups(options: CompareGroupsOptions) -> None:
    """Refuse groups that are said twice, or not at all, and a page that is none."""
    if len(options.files) == 1 and options.by is None:
        raise usage_error("name the column of groups with --by, or a file for each group")
    if len(options.files) > 1 and options.by is not None:
        raise usage_error("with a file for each group there is no --by")
    if options.output is not None and options.output.suffix.lower() not in (".html", ".htm"):
        raise usage_error(f"a page ends in .html, not '{options.output.name}'")
    if options.output is not None:
        require_new(options.output, options.force, *options.files)


def _compared(options: CompareGroupsOptions) -> "GroupComparison":
    import isingkit as ik
    from isingkit.groups.group_files import read_groups
    from isingkit.tables import as_list, listed

    also = {
        "binarize": options.binarize,
        "missing_codes": listed(options.missing_codes),
        "ticked": listed(options.ticked),
    }
    grouped = read_groups(
        options.files,
        options.by,
        lambda path, **more: read(path, COMPLETE_ROWS, **also, **more),
        columns=options.columns,
        drop=as_list([*listed(options.drop), *([options.id_column] if options.id_column else [])]),
        covariates=options.covariates,
        of_rows={
            "groups": options.row_groups,
            "weights": options.weights,
            "counts": options.counts,
        },
        missing=options.missing,
    )
    return ik.compare_groups(
        grouped.spins,
        grouped.labels,
        fields=options.fields,
        permutations=options.permutations,
        covariates=grouped.covariates,
        row_groups=grouped.row_groups,
        sample_weight=grouped.weights,
        counts=grouped.counts,
        control=options.control,
        method=options.method,
        random_state=options.seed,
    )


def _title(options: CompareGroupsOptions) -> str:
    names = [bare_name(path) or "data" for path in options.files]
    return " and ".join(names) + (f" by {options.by}" if options.by else "")


def _write_page(found: "GroupComparison", options: CompareGroupsOptions) -> None:
    from isingkit.atomic import replacing
    from isingkit.report.group_page import group_page

    assert options.output is not None
    page = group_page(found, _title(options))
    with replacing(options.output) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _facts(found: "GroupComparison", options: CompareGroupsOptions) -> dict[str, Any]:
    from isingkit.groups.summary import as_rows

    return {
        "version": __version__,
        "files": [str(path) for path in options.files],
        "seed": options.seed,
        "method": found.method,
        "fields": found.fields,
        "control": found.control,
        "n_permutations": found.n_permutations,
        "groups": dict(zip(found.labels, found.sizes, strict=True)),
        "n_spins": len(found.names),
        "n_pairs": found.n_pairs,
        "n_untestable": found.n_untestable,
        "p_value": found.p_value,
        "n_differing": len(found.differing),
        "overall": as_rows(found.overall),
        "edges": as_rows(found.edges),
        "centralities": as_rows(found.centralities),
    }
