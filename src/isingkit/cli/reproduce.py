"""isingkit reproduce"""

import json
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

from isingkit import __version__
from isingkit.atomic import replacing
from isingkit.cli.cluster import cluster, scheduler_option
from isingkit.cli.usage import usage_error

NAMES = tuple(f"fig{number}" for number in range(1, 9))


@click.command("reproduce")
@click.argument("figures", nargs=-1, required=True, type=click.Choice([*NAMES, "all"]))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("isingkit-figures"),
    show_default=True,
    help="Folder for tables, pictures, the page and the records of finished work.",
)
@click.option(
    "--quick", is_flag=True, help="A small version of each figure: minutes instead of an hour."
)
@click.option(
    "--sampling",
    type=click.Choice(["isingkit", "paper"]),
    default="isingkit",
    show_default=True,
    help="How worlds are sampled: until chains forget their start, or, as in the paper, by "
    "Metropolis updates in random order for 100,000 sweeps, which takes far longer.",
)
@click.option("--workers", type=click.IntRange(min=1), help="Processes; by default one.")
@scheduler_option("Measure")
@click.option(
    "--redraw", is_flag=True, help="Draw from the tables that are there; measure nothing."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    figures: tuple[str, ...],
    output: Path,
    quick: bool,
    sampling: str,
    workers: int | None,
    scheduler: str | None,
    redraw: bool,
    as_json: bool,
) -> None:
    """Measure, predict and draw figures of the paper.

    Stop it whenever you like: started again, it goes on where it was. For instance: isingkit
    reproduce all --quick
    """
    from isingkit.experiments import reproduction_page as page

    names = NAMES if "all" in figures else tuple(dict.fromkeys(figures))
    _require_room(names, output, redraw)
    output.mkdir(parents=True, exist_ok=True)
    if redraw:
        _redraw(names, output)
    else:
        with cluster(scheduler, workers) if scheduler else nullcontext() as client:
            for name in names:
                _measure(_configured(name, quick, sampling), name, output, workers or 1, client)
    facts = page.facts(output)
    with replacing(output / "reproduction.html") as temporary:
        temporary.write_text(page.html_page(facts))
    with replacing(output / "README.md") as temporary:
        temporary.write_text(page.markdown_page(facts))
    found = [figure for figure in facts if figure["figure"] in names]
    if as_json:
        click.echo(json.dumps({"version": __version__, "folder": str(output), "figures": found}))
        return
    for figure in found:
        click.echo(f"{figure['figure']}: {figure['title']}")
        for line in figure["agreement"]:
            click.echo(f"  - {line}")
    click.echo(f"all of it in {output / 'reproduction.html'}")


def _require_room(names: tuple[str, ...], output: Path, redraw: bool) -> None:
    """Refuse to write over what was not written here; tables are drawn from, whosever they are."""
    from isingkit.experiments.reproduction_page import others_files

    others = others_files(() if redraw else names, output)
    if others:
        raise usage_error(f"'{others[0]}' is something else: name another folder with -o")


def _redraw(names: tuple[str, ...], output: Path) -> None:
    from isingkit.experiments import runner

    for name in names:
        if not (output / f"{name}.csv").is_file():
            raise usage_error(f"no table of {name} in {output}: run without --redraw first")
        runner.draw(name, output)


def _configured(name: str, quick: bool, sampling: str) -> Any:
    """The figure's configuration; figures without samples have no way to draw them."""
    from isingkit.experiments import runner

    settings = runner.figure(name).Config
    config = settings.quick() if quick else settings()
    has_samples = "sampling" in {field.name for field in fields(config)}
    return replace(config, sampling=sampling) if has_samples else config


def _measure(config: Any, name: str, output: Path, workers: int, client: Any) -> None:
    from tqdm import tqdm

    from isingkit.experiments import runner

    with tqdm(desc=name, unit="unit", leave=False) as bar:

        def done(finished: int, total: int) -> None:
            if bar.total is None:
                bar.total = total
                bar.initial = finished  # time left is by what this run does
            bar.n = finished
            bar.refresh()

        if client is None:
            runner.run(name, config, output, workers=workers, done=done)
        else:
            from isingkit import dask

            with dask.translate_worker_errors():
                runner.run(name, config, output, executor=dask.executor(client), done=done)
