"""isingkit sample"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from isingkit import __version__


@click.command("sample")
@click.argument("model", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), required=True,
              help="File for the samples: .spins (bits, which estimators read), .npy or .csv; - prints CSV.")  # fmt: skip
@click.option("--samples", type=click.IntRange(min=1), required=True, help="Number of samples.")
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
    type=click.Choice(["heat-bath", "metropolis"]),
    default="heat-bath",
    show_default=True,
    help="Updates.",
)
@click.option(
    "--order",
    type=click.Choice(["sequential", "random"]),
    default="sequential",
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
def command(
    model: Path, output: Path, samples: int, warm_up: int | None, chains: int | None, thin: int, update: str, order: str,
    no_check: bool, seed: int, threads: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Draw samples of a saved model by Monte Carlo."""
    is_printed = output == Path("-")
    if is_printed and as_json:
        raise click.UsageError("--json and -o - would both print", click.get_current_context())
    if not is_printed and output.suffix not in (".spins", ".npy", ".csv"):
        raise click.UsageError(
            f"samples are saved as .spins, .npy or .csv, not as '{output.name}'",
            click.get_current_context(),
        )
    if not output.parent.is_dir():
        raise click.UsageError(f"no such folder: {output.parent}", click.get_current_context())

    import numpy as np

    import isingkit as ik
    from isingkit.atomic import replacing

    loaded = ik.IsingModel.load(model)
    start = time.perf_counter()
    drawn = ik.sample(
        loaded, n_samples=samples, warm_up=warm_up, n_chains=chains, thin=thin, update=update, order=order, check=not no_check,
        random_state=seed, n_jobs=threads, progress=True,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    if is_printed:
        _write_csv(sys.stdout.buffer, drawn)
        return
    if output.suffix == ".spins":
        drawn.save(output)
    else:
        with replacing(output) as temporary, open(temporary, "wb") as file:
            if output.suffix == ".npy":
                np.save(file, np.asarray(drawn))
            else:
                _write_csv(file, drawn)
    if as_json:
        facts = {"version": __version__, "n_samples": drawn.n_samples, "n_spins": drawn.n_spins, "seed": seed, "update": update,
                 "order": order, "seconds": seconds, "file": str(output)}  # fmt: skip
        click.echo(json.dumps(facts))
    else:
        click.echo(
            f"{drawn.n_samples} samples of {drawn.n_spins} spins in {seconds:.1f} seconds, seed {seed}: {output}"
        )


def _write_csv(file: Any, drawn: Any) -> None:
    """A header of names, then -1 and 1; some thousand rows at a time."""
    import numpy as np

    header = ",".join('"' + name.replace('"', '""') + '"' for name in drawn.names)
    file.write((header + "\n").encode())
    for start in range(0, drawn.n_samples, 4096):
        np.savetxt(file, np.asarray(drawn[start : start + 4096]), fmt="%d", delimiter=",")
