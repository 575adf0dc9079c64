"""isingkit compare"""

import json
from dataclasses import asdict
from pathlib import Path

import click

from isingkit import __version__
from isingkit.cli.cluster import learning_on, scheduler_option


@click.command("compare")
@click.argument(
    "data", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)
)
@click.option(
    "--truth",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A saved model, .npz, to score against.",
)
@click.option(
    "--methods", help="Which ones, separated by commas; by default all that fit the data."
)
@click.option("--held-out", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.2, show_default=True,
              help="Share of the samples to score on.")  # fmt: skip
@click.option("--columns", help="Columns to use, separated by commas; by default all.")
@click.option("--drop", default="", help="Columns to leave out, separated by commas.")
@click.option("--weights", help="Column that says how often a row was seen.")
@click.option("--binarize", type=float, help="Threshold that turns real-valued columns into spins.")
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="About missing values.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw it: .png, .svg or .pdf."
)
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
def command(
    data: Path, truth: Path | None, methods: str | None, held_out: float, columns: str | None, drop: str, weights: str | None,
    binarize: float | None, missing: str, plot: Path | None, seed: int, scheduler: str | None, workers: int | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Compare methods on a file of data: time, edges, held-out score, agreement, and precision and
    recall with a truth.

    DATA is a CSV, TSV (also .gz), Parquet, NPY, NPZ or .spins file, one row a sample and one column
    a spin; - reads CSV from standard input.
    """
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise click.UsageError(
            f"pictures are .png, .svg or .pdf, not '{plot.name}'", click.get_current_context()
        )

    import isingkit as ik
    from isingkit.atomic import replacing
    from isingkit.exceptions import MissingValuesError
    from isingkit.tables import listed, read_spins

    with learning_on(scheduler, workers):
        try:
            reading = read_spins(
                data,
                columns=listed(columns),
                drop=listed(drop),
                weights=weights,
                binarize=binarize,
                missing=missing,
                progress=True,
            )
        except MissingValuesError as error:
            raise error.without_pairwise() from None
        model = ik.IsingModel.load(truth) if truth else None
        found = ik.compare(
            reading.packed, model, listed(methods) or None, sample_weight=reading.weights, held_out=held_out, random_state=seed,
            progress=True,
        )  # fmt: skip
    best = found.best()
    if plot is not None:
        with replacing(plot) as temporary:
            found.plot().savefig(temporary, format=plot.suffix[1:].lower(), dpi=150)
    if as_json:
        agreement = [
            [None if value != value else value for value in row] for row in found.agreement.tolist()
        ]
        facts = {
            "version": __version__, "file": str(data), "n_samples": found.n_samples, "n_spins": found.n_spins, "seed": seed,
            "n_held_out": found.n_held_out, "methods": [asdict(one) for one in found.outcomes], "agreement": agreement,
        }  # fmt: skip
        click.echo(json.dumps(facts))
    else:
        click.echo(str(found))
        click.echo(f"\nbest on held-out samples: {best}" + (f"\npicture: {plot}" if plot else ""))
