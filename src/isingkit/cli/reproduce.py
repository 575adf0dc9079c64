"""isingkit reproduce"""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from isingkit import __version__
from isingkit.cli.cluster import cluster, scheduler_option

NAMES = tuple(f"fig{number}" for number in range(1, 9))


@click.command("reproduce")
@click.argument("figures", nargs=-1, required=True, type=click.Choice([*NAMES, "all"]))
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("isingkit-figures"),
              show_default=True, help="Folder for tables, pictures, the page and the records of finished work.")  # fmt: skip
@click.option(
    "--quick", is_flag=True, help="A small version of each figure: minutes instead of an hour."
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
    workers: int | None,
    scheduler: str | None,
    redraw: bool,
    as_json: bool,
) -> None:
    """Measure, predict and draw figures of the paper.

    Stop it whenever you like: started again, it goes on where it was. For instance: isingkit
    reproduce all --quick
    """
    from isingkit.atomic import replacing
    from isingkit.experiments import reproduction_page as page
    from isingkit.experiments import runner

    output.mkdir(parents=True, exist_ok=True)
    names = NAMES if "all" in figures else tuple(dict.fromkeys(figures))
    if redraw:
        for name in names:
            if not (output / f"{name}.csv").is_file():
                raise click.UsageError(
                    f"no table of {name} in {output}: run without --redraw first",
                    click.get_current_context(),
                )
            runner.draw(name, output)
    else:
        with cluster(scheduler, workers) if scheduler else nullcontext() as client:
            for name in names:
                config = (
                    runner.figure(name).Config.quick() if quick else runner.figure(name).Config()
                )
                _measure(name, config, output, workers or 1, client)
    found = [figure for figure in page.facts(output) if figure["figure"] in names]
    with replacing(output / "reproduction.html") as temporary:
        temporary.write_text(page.html_page(page.facts(output)))
    with replacing(output / "README.md") as temporary:
        temporary.write_text(page.markdown_page(page.facts(output)))
    if as_json:
        click.echo(json.dumps({"version": __version__, "folder": str(output), "figures": found}))
        return
    for figure in found:
        click.echo(f"{figure['figure']}: {figure['title']}")
        for line in figure["agreement"]:
            click.echo(f"  - {line}")
    click.echo(f"all of it in {output / 'reproduction.html'}")


def _measure(name: str, config: Any, output: Path, workers: int, client: Any) -> None:
    from tqdm import tqdm

    from isingkit.experiments import runner

    with tqdm(desc=name, unit="unit", leave=False) as bar:

        def done(finished: int, total: int) -> None:
            if bar.total is None:
                bar.total, bar.initial = total, finished  # time left is told by what this run does
            bar.n = finished
            bar.refresh()

        if client is None:
            runner.run(name, config, output, workers=workers, done=done)
        else:
            from isingkit import dask

            with dask.translate_worker_errors():
                runner.run(name, config, output, executor=dask.executor(client), done=done)
