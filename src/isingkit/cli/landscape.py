"""isingkit landscape"""

import csv
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit import __version__
from isingkit.atomic import replacing
from isingkit.cli.data import binarize_option, codes_option, counts_option, read, weights_option
from isingkit.cli.usage import force_option, require_new, usage_error
from isingkit.missing import EVERY_POLICY, MissingPolicy

if TYPE_CHECKING:
    from isingkit.landscape import Landscape
    from isingkit.spins import Binarize


_FILES = (
    "minima.csv",
    "passes.csv",
    "barriers.csv",
    "disconnectivity.svg",
    "rows.csv",
    "transitions.csv",
)
_MOST_IN_MATRIX = 1000  # minima; of more only the tree of passes is written


@dataclass(frozen=True, slots=True)
class LandscapeOptions:
    """What was typed after `isingkit landscape`."""

    model: Path
    data: Path | None
    weights: str | None
    counts: str | None
    row_groups: str | None
    binarize: "Binarize"
    missing_codes: str | None
    transpose: bool
    resolution: float
    resamples: int
    seed: int
    output: Path | None
    force: bool
    as_json: bool


@click.command("landscape")
@click.argument("model", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="The rows it was learnt from, or others: their columns of the model's names.",
)
@weights_option
@counts_option
@click.option(
    "--row-groups",
    help="Column of labels that rows of one person, recording or session share: errors are between "
    "these, transitions within.",
)
@binarize_option
@codes_option
@click.option(
    "--transpose", is_flag=True, help="FILE has variables in rows and samples in columns."
)
@click.option(
    "--resolution",
    type=click.FloatRange(min=0),
    default=2.0,
    show_default=True,
    help="With data: standard errors that a minimum must lie below its way out, or it is merged.",
)
@click.option(
    "--resamples",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="With data: resamples of the rows, for the stability of minima.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of these.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for minima.csv, passes.csv, barriers.csv, disconnectivity.svg and, with data, "
    "rows.csv and transitions.csv.",
)
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(**arguments: Any) -> None:
    """Find the states a network rests in: minima of the energy, their basins, and barriers between
    them.

    MODEL is a model, .npz, or a folder that 'isingkit fit' has written. Exact for up to 24
    variables; beyond, minima are those that descents find, and barriers are upper bounds.
    """
    options = LandscapeOptions(**arguments)
    _require_data(options)
    _require_room(options)
    found = _found(options)
    if options.output is not None:
        _write(found, options.output)
    if options.as_json:
        click.echo(json.dumps(_facts(found, options)))
        return
    click.echo(str(found))
    if options.output is not None:
        click.echo(f"\nwritten: {options.output}")


def _require_data(options: LandscapeOptions) -> None:
    """Refuse columns of a table that was not named."""
    for option in ("weights", "counts", "row_groups", "binarize", "missing_codes"):
        if getattr(options, option) is not None and options.data is None:
            name = option.replace("_", "-")
            raise usage_error(f"--{name} is about rows, but there is no --data FILE")
    if options.transpose and options.data is None:
        raise usage_error("--transpose is about rows, but there is no --data FILE")


def _require_room(options: LandscapeOptions) -> None:
    """Refuse to write over files, and ever over the rows that are read."""
    if options.output is None:
        return
    for name in _FILES:
        require_new(options.output / name, options.force, options.model, options.data)


def _found(options: LandscapeOptions) -> "Landscape":
    import isingkit as ik
    from isingkit.fit_folder import require_whole

    path = options.model
    of_fit = require_whole(path) if path.is_dir() else {}
    model = ik.IsingModel.load(path / "model.npz" if path.is_dir() else path)
    if options.data is None:
        return ik.landscape(model, random_state=options.seed)
    from isingkit.tables import listed
    from isingkit.tables.many import coded_as

    reading = read(
        options.data,
        EVERY_POLICY,
        columns=model.names,
        weights=options.weights,
        counts=options.counts,
        groups=options.row_groups,
        binarize=options.binarize,
        missing_codes=listed(options.missing_codes),
        missing=MissingPolicy.PAIRWISE.value,
        transpose=options.transpose,
    ).in_full()
    return ik.landscape(
        model,
        coded_as(reading.packed, of_fit.get("mapping", {})),
        sample_weight=reading.weights,
        counts=reading.counts,
        groups=reading.groups,
        resolution=options.resolution,
        n_resamples=options.resamples,
        random_state=options.seed,
    )


def _write(found: "Landscape", folder: Path) -> None:
    """Tables and the picture, each whole or not at all."""
    from matplotlib.figure import Figure

    from isingkit.drawing import save_figure
    from isingkit.plots import plot_disconnectivity

    folder.mkdir(parents=True, exist_ok=True)
    columns = found.table().dtype.names or ()
    rows = [
        [place + 1, *(_cell(value) for value in row), *states.tolist()]
        for place, (row, states) in enumerate(zip(found.table(), found.states, strict=True))
    ]
    _write_csv(folder / "minima.csv", ["minimum", *columns, *found.names], rows)
    passes = zip((found.passes.minima + 1).tolist(), found.passes.energies.tolist(), strict=True)
    rows = [[low, high, energy] for (low, high), energy in passes]
    _write_csv(folder / "passes.csv", ["lower", "higher", "energy"], rows)
    if found.n_minima <= _MOST_IN_MATRIX:
        _write_square(folder / "barriers.csv", found.barriers().tolist())
    visits = found.visits
    if visits is not None:
        pairs = zip(visits.basins.tolist(), visits.energies.tolist(), strict=True)
        rows = [
            [row, basin + 1 if basin >= 0 else "", _cell(energy)]
            for row, (basin, energy) in enumerate(pairs, start=1)
        ]
        _write_csv(folder / "rows.csv", ["row", "minimum", "energy"], rows)
        if visits.moves is not None:
            rows = [
                [before + 1, after + 1, times] for before, after, times in visits.moves.tolist()
            ]
            _write_csv(folder / "transitions.csv", ["from", "to", "times"], rows)
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    plot_disconnectivity(found, figure.subplots())
    save_figure(figure, folder / "disconnectivity.svg")
    for name in _without(found):
        (folder / name).unlink(missing_ok=True)  # of a landscape that is replaced


def _without(found: "Landscape") -> list[str]:
    """Names of the files that this one has not."""
    visits = found.visits
    are_there = {
        "barriers.csv": found.n_minima <= _MOST_IN_MATRIX,
        "rows.csv": visits is not None,
        "transitions.csv": visits is not None and visits.moves is not None,
    }
    return [name for name, is_there in are_there.items() if not is_there]


def _write_square(path: Path, values: list[list[float]]) -> None:
    """A matrix with the places of minima in its first row and column."""
    rows = [[place + 1, *row] for place, row in enumerate(values)]
    _write_csv(path, ["from", *range(1, len(values) + 1)], rows)


def _write_csv(path: Path, head: list[Any], rows: list[list[Any]]) -> None:
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def _cell(value: Any) -> Any:
    """A plain number, and nothing where there is none."""
    number = value.item() if hasattr(value, "item") else value
    return number if math.isfinite(number) else ""


def _facts(found: "Landscape", options: LandscapeOptions) -> dict[str, Any]:
    columns = found.table().dtype.names or ()
    minima = []
    for row, states in zip(found.table(), found.states, strict=True):
        values = {name: _cell(row[name]) for name in columns}
        plain = {name: None if value == "" else value for name, value in values.items()}
        minima.append({"state": states.tolist(), **plain})
    facts: dict[str, Any] = {
        "version": __version__,
        "file": str(options.model),
        "data": None if options.data is None else str(options.data),
        "seed": options.seed,
        "names": list(found.names),
        "exact": found.is_exact,
        "n_minima": found.n_minima,
        "n_merged": found.n_merged,
        "accuracy": found.accuracy if math.isfinite(found.accuracy) else None,
        "minima": minima,
        "passes": found.passes.minima.tolist(),
        "pass_energies": found.passes.energies.tolist(),
        "notes": list(found.notes),
    }
    if found.visits is not None and found.visits.moves is not None:
        facts["transitions"] = found.visits.moves.tolist()
    return facts
