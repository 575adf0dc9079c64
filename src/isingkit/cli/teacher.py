"""isingkit teacher"""

import json
from dataclasses import asdict
from pathlib import Path

import click

from isingkit import __version__

NEEDED = {
    "random-regular": ("spins", "degree"),
    "erdos-renyi": ("spins", "mean_degree"),
    "square-lattice": ("side",),
    "random-tree": ("spins",),
}


@click.command("teacher")
@click.argument("kind", type=click.Choice(list(NEEDED)))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="File for the model, .npz.",
)
@click.option("--spins", type=click.IntRange(min=1), help="Number of spins.")
@click.option(
    "--degree", type=click.IntRange(min=0), help="Neighbours of each spin, for random-regular."
)
@click.option(
    "--mean-degree",
    type=click.FloatRange(min=0),
    help="Mean number of neighbours, for erdos-renyi.",
)
@click.option("--side", type=click.IntRange(min=1), help="Spins in a row, for square-lattice.")
@click.option("--open", "is_open", is_flag=True, help="An open square-lattice instead of a torus.")
@click.option("--coupling", type=float, required=True, help="Strength of every coupling.")
@click.option(
    "--signs",
    type=click.Choice(["random", "fixed"]),
    default="random",
    show_default=True,
    help="Signs of couplings.",
)
@click.option("--field", type=float, default=0.0, show_default=True, help="Field on every spin.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of graph and signs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(
    kind: str, output: Path, spins: int | None, degree: int | None, mean_degree: float | None, side: int | None, is_open: bool,
    coupling: float, signs: str, field: float, seed: int, as_json: bool,
) -> None:  # fmt: skip
    """Make a model whose truth is known and save it.

    For instance: isingkit teacher random-regular --spins 200 --degree 3 --coupling 0.4 -o
    teacher.npz
    """
    given = {"spins": spins, "degree": degree, "mean_degree": mean_degree, "side": side}
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if value is None and name in NEEDED[kind]:
            raise click.UsageError(f"{kind} needs {option}", click.get_current_context())
        if value is not None and name not in NEEDED[kind]:
            raise click.UsageError(f"{kind} takes no {option}", click.get_current_context())
    if is_open and kind != "square-lattice":
        raise click.UsageError(f"{kind} takes no --open", click.get_current_context())

    import isingkit as ik

    shape = {("n_spins" if name == "spins" else name): given[name] for name in NEEDED[kind]}
    if kind == "square-lattice":
        shape["periodic"] = not is_open
    make = getattr(ik, kind.replace("-", "_"))
    model = make(**shape, coupling=coupling, signs=signs, fields=field, random_state=seed)
    model.save(output)
    phase = ik.paramagnetic(model)
    if as_json:
        facts = {"version": __version__, "kind": kind, "seed": seed, "n_spins": model.n_spins, "n_edges": model.n_edges,
                 "coupling": coupling, "signs": signs, "field": field, "phase": asdict(phase), "file": str(output)}  # fmt: skip
        click.echo(json.dumps(facts))
    else:
        click.echo(
            f"{kind}: {model.n_spins} spins, {model.n_edges} edges, coupling {coupling:g} with {signs} signs, seed {seed}"
        )
        click.echo(
            f"disturbances grow {max(phase.glass, phase.order):.3f}-fold a step: {'' if phase.holds else 'not '}paramagnetic"
        )
        click.echo(
            f"saved to {output}; draw samples with: isingkit sample {output} --samples 1000 -o samples.spins"
        )
