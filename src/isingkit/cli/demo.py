"""isingkit demo"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from isingkit import __version__
from isingkit.atomic import replacing
from isingkit.cli.usage import usage_error


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("isingkit-demo"),
    show_default=True,
    help="Folder for the report, the picture and the two networks.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Seed of the planted world.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def command(output: Path, seed: int, as_json: bool) -> None:
    """Find a planted network from fewer rows than columns, and the network of pixels in
    handwritten digits.
    """
    _require_room(output)
    output.mkdir(parents=True, exist_ok=True)
    found = _measured(output, seed)
    if as_json:
        click.echo(json.dumps(_facts(found)))
    else:
        click.echo(_text(found))


@dataclass(frozen=True, slots=True, eq=False)
class _Demo:
    """What was found, and where it was drawn."""

    config: Any
    worlds: list[Any]
    digits: Any
    picture: Path
    report: Path


def _require_room(output: Path) -> None:
    """Refuse a folder with another report, of a fit say."""
    from isingkit.experiments.demo import TITLE

    report = output / "report.html"
    if report.exists() and f"<title>{TITLE}" not in report.read_text("utf-8", errors="replace"):
        raise usage_error(f"'{report}' is something else: name another folder with -o")


def _measured(output: Path, seed: int) -> _Demo:
    from tqdm import tqdm

    with tqdm(total=6, desc="getting ready (slow only the first time)", leave=False) as progress:
        from isingkit.cli.wording import ranked_warnings
        from isingkit.drawing import save_figure
        from isingkit.experiments import demo

        demo.compile_kernels()
        progress.update()
        progress.set_description("planting and finding networks")
        config = demo.Config(seed=seed)
        worlds = []
        for n_spins, n_samples in config.sizes:
            worlds.append(demo.measure_planted(config, n_spins, n_samples))
            progress.update()
        progress.set_description("reading handwritten digits")
        digits = demo.measure_digits()
        progress.update()
        progress.set_description("writing a report")
        report = output / "report.html"
        with replacing(report) as temporary:
            temporary.write_text(demo.digits_report(ranked_warnings), encoding="utf-8")
        progress.update()
        progress.set_description("drawing")
        picture = output / "networks.png"
        save_figure(demo.plot(worlds[0], digits), picture, dpi=120)
        worlds[0].found.to_csv(output / "planted-edges.csv")
        digits.found.to_csv(output / "digits-edges.csv")
        progress.update()
    return _Demo(config, worlds, digits, picture, report)


def _facts(found: _Demo) -> dict[str, Any]:
    planted = [
        {
            "n_spins": world.truth.n_spins,
            "n_samples": world.n_samples,
            "edges_planted": world.truth.n_edges,
            "edges_found": world.found.n_edges,
            "seconds": world.seconds,
            **asdict(world.scores),
        }
        for world in found.worlds
    ]
    digits = {
        "n_spins": found.digits.found.n_spins,
        "n_samples": found.digits.n_samples,
        "edges_found": found.digits.found.n_edges,
        "touching_share": found.digits.touching_share,
        "touching_by_chance": found.digits.touching_by_chance,
        "seconds": found.digits.seconds,
    }
    return {
        "version": __version__,
        "settings": asdict(found.config),
        "planted": planted,
        "digits": digits,
        "picture": str(found.picture),
        "report": str(found.report),
    }


def _text(found: _Demo) -> str:
    rows = [
        f"{world.truth.n_spins:>8}{world.n_samples:>9}{world.truth.n_edges:>10}"
        f"{world.found.n_edges:>10}{world.scores.precision:>11.3f}{world.scores.recall:>10.3f}"
        f"{world.seconds:>9.2f}"
        for world in found.worlds
    ]
    digits = found.digits
    lines = [
        "Planted networks (random regular, 3 neighbours), "
        "found from fewer samples than variables by the two-stage estimator:",
        "",
        " columns     rows   planted     found  precision    recall  seconds",
        *rows,
        "",
        f"Real data: {digits.n_samples} handwritten digits; "
        "a variable is a pixel, with or without ink.",
        f"{digits.found.n_edges} edges among {digits.found.n_spins} pixels "
        f"in {digits.seconds:.2f} seconds.",
        f"{digits.touching_share:.0%} of them join touching pixels "
        f"({digits.touching_by_chance:.0%} of all pairs touch).",
        "The estimator never knew where the pixels are: it found the image's grid.",
        "",
        f"Both networks are drawn in {found.picture}; their edges are in the .csv files beside it.",
        "What 'isingkit fit' would tell you of the digits, with nothing tuned, "
        "is in a page to click through. Open it in a browser:",
        "",
        f"    {found.report.resolve().as_uri()}",
    ]
    return "\n".join(lines)
