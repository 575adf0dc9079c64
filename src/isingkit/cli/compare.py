"""isingkit compare"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit import __version__
from isingkit.cli.cluster import learning_on, scheduler_option
from isingkit.cli.data import (
    binarize_option,
    codes_option,
    columns_option,
    counts_option,
    data_argument,
    drop_option,
    id_option,
    missing_option,
    read,
    ticked_option,
    weights_option,
)
from isingkit.cli.usage import force_option, require_new, usage_error
from isingkit.missing import COMPLETE_ROWS

if TYPE_CHECKING:
    from isingkit.comparison import Comparison
    from isingkit.spins import Binarize

_PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What was typed after `isingkit compare`."""

    data: Path
    truth: Path | None
    methods: str | None
    held_out: float
    columns: str | None
    drop: str
    id_column: str | None
    weights: str | None
    counts: str | None
    binarize: "Binarize"
    missing_codes: str | None
    ticked: str | None
    missing: str
    plot: Path | None
    force: bool
    seed: int
    scheduler: str | None
    workers: int | None
    as_json: bool


@click.command("compare")
@data_argument
@click.option(
    "--truth",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A saved model, .npz, to score against.",
)
@click.option(
    "--methods", help="Which ones, separated by commas; by default all that fit the data."
)
@click.option(
    "--held-out",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.2,
    show_default=True,
    help="Share of the samples to score on.",
)
@columns_option
@drop_option
@id_option
@weights_option
@counts_option
@binarize_option
@codes_option
@ticked_option
@missing_option(COMPLETE_ROWS)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw it: .png, .svg or .pdf."
)
@force_option
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Which samples are held out.",
)
@scheduler_option("Try methods")
@click.option(
    "--workers", type=click.IntRange(min=1), help="The same, by as many processes of this machine."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(**arguments: Any) -> None:
    """Compare methods on a file of data: time, edges, held-out score, agreement, and precision and
    recall with a truth.
    """
    options = CompareOptions(**arguments)
    if options.plot is not None and options.plot.suffix.lower() not in _PICTURES:
        raise usage_error(f"pictures are .png, .svg or .pdf, not '{options.plot.name}'")
    if options.plot is not None:
        require_new(options.plot, options.force, options.data, options.truth)
    with learning_on(options.scheduler, options.workers):
        found = _compared(options)
    best = found.best()
    if options.plot is not None:
        _draw(found, options.plot)
    if options.as_json:
        click.echo(json.dumps(_facts(found, options)))
        return
    click.echo(str(found))
    click.echo(f"\nbest on held-out samples: {best}")
    if options.plot is not None:
        click.echo(f"picture: {options.plot}")


def _compared(options: CompareOptions) -> "Comparison":
    import isingkit as ik
    from isingkit.tables import listed

    reading = read(
        options.data,
        COMPLETE_ROWS,
        columns=listed(options.columns),
        drop=[*listed(options.drop), *([options.id_column] if options.id_column else [])],
        weights=options.weights,
        counts=options.counts,
        binarize=options.binarize,
        missing=options.missing,
        missing_codes=listed(options.missing_codes),
        ticked=listed(options.ticked),
    )
    return ik.compare(
        reading.packed,
        truth=ik.IsingModel.load(options.truth) if options.truth else None,
        methods=listed(options.methods) or None,
        sample_weight=reading.weights,
        counts=reading.counts,
        held_out=options.held_out,
        random_state=options.seed,
        progress=True,
    )


def _draw(found: "Comparison", picture: Path) -> None:
    from isingkit.drawing import save_figure

    save_figure(found.plot(), picture, dpi=150)


def _facts(found: "Comparison", options: CompareOptions) -> dict[str, Any]:
    agreement = [
        [None if math.isnan(value) else value for value in row] for row in found.agreement.tolist()
    ]
    return {
        "version": __version__,
        "file": str(options.data),
        "n_samples": found.n_samples,
        "n_spins": found.n_spins,
        "seed": options.seed,
        "n_held_out": found.n_held_out,
        "methods": [asdict(one) for one in found.outcomes],
        "agreement": agreement,
    }
