"""isingkit report"""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit import __version__
from isingkit.atomic import replacing
from isingkit.cli.groups import group_options, require_table
from isingkit.cli.usage import force_option, require_new, usage_error

if TYPE_CHECKING:
    from isingkit.report.contents import Contents


@click.command("report")
@click.argument("source", type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="The page to write, - prints it; "
    "by default report.html in the folder, or beside the model.",
)
@force_option
@click.option("--title", help="Title of the page.")
@group_options
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    source: Path,
    output: Path | None,
    force: bool,
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
    from isingkit.report.contents import with_groups
    from isingkit.report.groups import read_groups
    from isingkit.report.page import html_page

    require_table(groups, group_by)
    contents, page = _source(source)
    page = output or page
    if groups is not None:
        names = [spin["name"] for spin in contents.spins]
        contents = with_groups(contents, read_groups(groups, names, group_by))
    if title is not None:
        contents = replace(contents, title=title)
    if page == Path("-"):
        if as_json or is_opened:
            raise usage_error("-o - goes with neither --json nor --open")
        click.echo(html_page(contents), nl=False)
        return
    if not _is_own_page(source, page):
        require_new(page, force, source, groups)
    with replacing(page) as temporary:
        temporary.write_text(html_page(contents), encoding="utf-8")
    click.echo(json.dumps(_facts(contents, page)) if as_json else f"written: {page}")
    if is_opened:
        click.launch(page.resolve().as_uri())


def _source(source: Path) -> "tuple[Contents, Path]":
    """The contents of a fit or a model, and where its page is by default."""
    from isingkit.fit_folder import require_whole
    from isingkit.model import IsingModel
    from isingkit.report.contents import contents_in, contents_of_model, require_same_fit

    if not source.is_dir():
        model = IsingModel.load(source)
        return contents_of_model(model, source.stem), source.with_suffix(".html")
    page = source / "report.html"
    if not page.is_file():
        raise usage_error(f"'{source}' holds no fit: there is no report.html in it")
    contents = contents_in(page)
    require_same_fit(contents, require_whole(source), page)
    return contents, page


def _is_own_page(source: Path, page: Path) -> bool:
    """Whether it is the page of the fit itself, which is there to be written anew."""
    own = source / "report.html"
    return source.is_dir() and page.exists() and page.samefile(own)


def _facts(contents: "Contents", page: Path) -> dict[str, Any]:
    return {
        "version": __version__,
        "file": str(page),
        "title": contents.title,
        "n_spins": contents.facts["n_spins"],
        "n_edges": contents.facts["n_edges"],
    }
