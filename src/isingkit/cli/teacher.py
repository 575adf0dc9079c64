"""isingkit teacher"""

import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit import __version__
from isingkit.cli.usage import force_option, require_new, usage_error

if TYPE_CHECKING:
    from isingkit.model import IsingModel

NEEDED = {
    "random-regular": ("spins", "degree"),
    "erdos-renyi": ("spins", "mean_degree"),
    "square-lattice": ("side",),
    "random-tree": ("spins",),
}


@dataclass(frozen=True, slots=True)
class TeacherOptions:
    """What was typed after `isingkit teacher`."""

    kind: str
    output: Path
    force: bool
    spins: int | None
    degree: int | None
    mean_degree: float | None
    side: int | None
    is_open: bool
    coupling: float
    signs: str
    field: float
    seed: int
    as_json: bool


@click.command("teacher")
@click.argument("kind", type=click.Choice(list(NEEDED)))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="File for the model, .npz.",
)
@force_option
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
def command(**arguments: Any) -> None:
    """Make a model whose truth is known and save it.

    For instance: isingkit teacher random-regular --spins 200 --degree 3 --coupling 0.4 -o
    teacher.npz
    """
    options = TeacherOptions(**arguments)
    _require_shape(options)
    if options.output.suffix != ".npz":
        raise usage_error(f"a model is saved as .npz, not as '{options.output.name}'")
    require_new(options.output, options.force)

    import isingkit as ik

    model = _model(options)
    model.save(options.output)
    phase = ik.paramagnetic(model)
    if options.as_json:
        facts = {
            "version": __version__,
            "kind": options.kind,
            "seed": options.seed,
            "n_spins": model.n_spins,
            "n_edges": model.n_edges,
            "coupling": options.coupling,
            "signs": options.signs,
            "field": options.field,
            "phase": asdict(phase) | {"holds": phase.holds},
            "file": str(options.output),
        }
        click.echo(json.dumps(facts))
        return
    size = f"{model.n_spins} spins, {model.n_edges} edges"
    couplings = f"coupling {options.coupling:g} with {options.signs} signs"
    growth = f"disturbances grow {max(phase.glass, phase.order):.3f}-fold a step"
    example = f"isingkit sample {shlex.quote(str(options.output))} --samples 1000 -o samples.spins"
    click.echo(f"{options.kind}: {size}, {couplings}, seed {options.seed}")
    click.echo(f"{growth}: {'' if phase.holds else 'not '}paramagnetic")
    click.echo(f"saved to {options.output}; draw samples with: {example}")


def _require_shape(options: TeacherOptions) -> None:
    """Refuse options that the kind of graph has not, and ask for those it needs."""
    needed = NEEDED[options.kind]
    for name in ("spins", "degree", "mean_degree", "side"):
        option = "--" + name.replace("_", "-")
        is_given = getattr(options, name) is not None
        if name in needed and not is_given:
            raise usage_error(f"{options.kind} needs {option}")
        if is_given and name not in needed:
            raise usage_error(f"{options.kind} takes no {option}")
    if options.is_open and options.kind != "square-lattice":
        raise usage_error(f"{options.kind} takes no --open")


def _model(options: TeacherOptions) -> "IsingModel":
    import isingkit as ik

    shape = {name: getattr(options, name) for name in NEEDED[options.kind]}
    if "spins" in shape:
        shape["n_spins"] = shape.pop("spins")
    if options.kind == "square-lattice":
        shape["periodic"] = not options.is_open
    make = getattr(ik, options.kind.replace("-", "_"))
    model: IsingModel = make(
        **shape,
        coupling=options.coupling,
        signs=options.signs,
        fields=options.field,
        random_state=options.seed,
    )
    return model
