"""isingkit report"""

import json
from dataclasses import replace
from pathlib import Path

import click

from isingkit import __version__
from isingkit.cli.groups import group_options, require_table


@click.command("report")
@click.argument("source", type=click.Path(path_type=Path, exists=True))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
              help="The page to write, - prints it; by default report.html in the folder, or beside the model.")  # fmt: skip
@click.option("--title", help="Title of the page.")
@group_options
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    source: Path,
    output: Path | None,
    title: str | None,
    groups: Path | None,
    group_by: str | None,
    is_opened: bool,
    as_json: bool,
) -> None:
    """Write the report of a fit anew, with a title or colours of groups, or the report of any saved
    model.

    SOURCE is a folder that 'isingkit fit' has written, or a model, .npz.
    """
    from isingkit.atomic import replacing
    from isingkit.model import IsingModel
    from isingkit.report.contents import contents_in, contents_of_model, with_groups
    from isingkit.report.groups import read_groups
    from isingkit.report.page import html_page

    require_table(groups, group_by)
    if source.is_dir():
        if not (source / "report.html").is_file():
            raise click.UsageError(
                f"'{source}' holds no fit: there is no report.html in it",
                click.get_current_context(),
            )
        contents, page = contents_in(source / "report.html"), output or source / "report.html"
    else:
        contents, page = (
            contents_of_model(IsingModel.load(source), source.stem),
            output or source.with_suffix(".html"),
        )
    if groups is not None:
        contents = with_groups(
            contents, read_groups(groups, [spin["name"] for spin in contents.spins], group_by)
        )
    if title is not None:
        contents = replace(contents, title=title)
    if page == Path("-"):
        if as_json or is_opened:
            raise click.UsageError(
                "-o - goes with neither --json nor --open", click.get_current_context()
            )
        click.echo(html_page(contents), nl=False)
        return
    with replacing(page) as temporary:
        temporary.write_text(html_page(contents), encoding="utf-8")
    if as_json:
        click.echo(json.dumps({"version": __version__, "file": str(page), "title": contents.title, **{
            name: contents.facts[name] for name in ("n_spins", "n_edges")}}))  # fmt: skip
    else:
        click.echo(f"written: {page}")
    if is_opened:
        click.launch(page.resolve().as_uri())
