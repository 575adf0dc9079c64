"""isingkit sample"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit import __version__
from isingkit.cli.usage import force_option, require_new, usage_error
from isingkit.worlds import ORDERS, UPDATES

if TYPE_CHECKING:
    from isingkit.model import IsingModel


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """What was typed after `isingkit sample`."""

    model: Path
    output: Path
    samples: int | None
    covariates: Path | None
    warm_up: int | None
    chains: int | None
    thin: int
    update: str
    order: str
    no_check: bool
    force: bool
    seed: int
    threads: int | None
    as_json: bool

    @property
    def is_printed(self) -> bool:
        return self.output == Path("-")


@click.command("sample")
@click.argument("model", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    required=True,
    help="File for the samples: .spins (bits, which estimators read), .npy or .csv; - prints CSV.",
)
@force_option
@click.option("--samples", type=click.IntRange(min=1), help="Number of samples.")
@click.option(
    "--covariates",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="Of a model that was learnt with covariates: a file with these columns; - reads CSV from "
    "standard input. There is one sample for each row, and --samples may be left out.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(min=0),
    help="Sweeps before the first snapshot; by default chosen from the model.",
)
@click.option(
    "--chains", type=click.IntRange(min=1), help="Chains; by default one for each sample."
)
@click.option(
    "--thin",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Sweeps between snapshots of a chain.",
)
@click.option(
    "--update",
    type=click.Choice(UPDATES),
    default=UPDATES[0],
    show_default=True,
    help="Updates.",
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default=ORDERS[0],
    show_default=True,
    help="Of spins.",
)
@click.option(
    "--no-check",
    is_flag=True,
    help="Take the samples even if chains have not forgotten their start.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the chains."
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads; by default all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(**arguments: Any) -> None:
    """Draw samples of a saved model by Monte Carlo."""
    options = SampleOptions(**arguments)
    _require_output(options)
    start = time.perf_counter()
    drawn = _drawn(options)
    seconds = time.perf_counter() - start
    if options.is_printed:
        _write_csv(sys.stdout.buffer, drawn)
        return
    _write(drawn, options.output)
    if options.as_json:
        facts = {
            "version": __version__,
            "n_samples": drawn.n_samples,
            "n_spins": drawn.n_spins,
            "seed": options.seed,
            "update": options.update,
            "order": options.order,
            "seconds": seconds,
            "file": str(options.output),
        }
        click.echo(json.dumps(facts))
        return
    what = f"{drawn.n_samples} samples of {drawn.n_spins} spins"
    click.echo(f"{what} in {seconds:.1f} seconds, seed {options.seed}: {options.output}")


def _require_output(options: SampleOptions) -> None:
    """Refuse what could not be written, before samples are drawn."""
    if options.samples is None and options.covariates is None:
        raise usage_error("--samples says how many samples to draw: it is missing")
    if options.is_printed and options.as_json:
        raise usage_error("--json and -o - would both print")
    if not options.is_printed and options.output.suffix not in (".spins", ".npy", ".csv"):
        raise usage_error(
            f"samples are saved as .spins, .npy or .csv, not as '{options.output.name}'"
        )
    if not options.is_printed:
        require_new(options.output, options.force, options.model, options.covariates)
    if not options.output.parent.is_dir():
        raise usage_error(f"no such folder: {options.output.parent}")


def _drawn(options: SampleOptions) -> Any:
    import isingkit as ik

    model = ik.IsingModel.load(options.model)
    return ik.sample(
        model,
        n_samples=options.samples,
        covariates=_covariates(options, model),
        warm_up=options.warm_up,
        n_chains=options.chains,
        thin=options.thin,
        update=options.update,
        order=options.order,
        check=not options.no_check,
        random_state=options.seed,
        n_jobs=options.threads,
        progress=True,
    )


def _covariates(options: SampleOptions, model: "IsingModel") -> Any:
    """The columns that fields of the model depend on, where it has any and a file is named."""
    from isingkit.tables.columns import read_covariates

    if model.effects is None and options.covariates is not None:
        raise usage_error(
            f"'{options.model}' was learnt without covariates: leave --covariates out, and say "
            "--samples"
        )
    if model.effects is None:
        return None
    if options.covariates is None:
        names = ", ".join(column.name for column in model.effects.coding.columns)
        raise usage_error(
            f"'{options.model}' was learnt with covariates: name a file that has {names} with "
            "--covariates"
        )
    return read_covariates(options.covariates, model.effects.coding)


def _write(drawn: Any, output: Path) -> None:
    import numpy as np

    from isingkit.atomic import replacing

    if output.suffix == ".spins":
        drawn.save(output)
        return
    with replacing(output) as temporary, open(temporary, "wb") as file:
        if output.suffix == ".npy":
            np.save(file, np.asarray(drawn))
        else:
            _write_csv(file, drawn)


def _write_csv(file: Any, drawn: Any) -> None:
    """A header of names, then -1 and 1; some thousand rows at a time."""
    import numpy as np

    header = ",".join('"' + name.replace('"', '""') + '"' for name in drawn.names)
    file.write((header + "\n").encode())
    for start in range(0, drawn.n_samples, 4096):
        np.savetxt(file, np.asarray(drawn[start : start + 4096]), fmt="%d", delimiter=",")
