"""isingkit theory"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from isingkit import __version__
from isingkit.cli.usage import force_option, require_new

SWEPT = ("samples_per_spin", "ridge", "coupling")
LOSSES = {
    "squares": "LassoIsing",
    "pseudolikelihood": "PseudolikelihoodIsing",
    "screening": "InteractionScreeningIsing",
}
PICTURES = (".png", ".svg", ".pdf")
ABOUT_ERRORS = {"samples_per_spin", "ridge", "depth", "sweep"}  # options --spins does not need
COLUMNS = ("rss", "bias", "R", "Q", "test_error")  # of a sweep's table
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sweep:
    """A parameter and the values it takes in turn."""

    parameter: str
    values: tuple[float, ...]


class SweepType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic by version
    """NAME=START:STOP:COUNT."""

    name = "sweep"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Sweep:
        try:
            return _sweep_of(str(value))
        except ValueError:
            self.fail(
                "expected NAME=START:STOP:COUNT with 0 < START < STOP and NAME ridge, "
                f"samples-per-spin or coupling, e.g. ridge=0.01:100:50, but got '{value}'"
            )


def _sweep_of(text: str) -> Sweep:
    name, span = text.split("=")
    start, stop, count = span.split(":")
    parameter = name.replace("-", "_")
    low = float(start)
    high = float(stop)
    n_values = int(count)
    evenly = parameter == "coupling"
    if parameter not in SWEPT or n_values < 2:
        raise ValueError
    if not evenly and not 0 < low < high < math.inf:
        raise ValueError
    steps = [k / (n_values - 1) for k in range(n_values)]
    if evenly:
        return Sweep(parameter, tuple(low + (high - low) * step for step in steps))
    return Sweep(parameter, tuple(low * (high / low) ** step for step in steps))


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for, by click's names of the parameters."""

    degree: int | None
    mean_degree: float | None
    model: Path | None
    spin: int
    coupling: float | None
    samples_per_spin: float
    ridge: float
    depth: int | None
    sweep: Sweep | None
    plot: Path | None
    force: bool
    loss: str
    spins: int | None
    probability: float
    l1: float | None
    samples: int | None
    as_json: bool

    @property
    def swept(self) -> str | None:
        return self.sweep.parameter if self.sweep else None

    @property
    def teacher(self) -> str:
        """What is predicted for, in words."""
        if self.degree:
            return f"degree {self.degree}"
        if self.mean_degree:
            return f"mean degree {self.mean_degree:g}"
        return f"spin {self.spin} of {self.model}"


@click.command("theory")
@click.option(
    "--degree", type=click.IntRange(min=1), help="Random regular graph with this many neighbours."
)
@click.option(
    "--mean-degree",
    type=click.FloatRange(min=0, min_open=True),
    help="Erdos-Renyi graph of this mean degree.",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A saved model, .npz, instead.",
)
@click.option(
    "--spin",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Which spin of the model.",
)
@click.option("--coupling", type=float, help="Strength of all couplings, for graphs.")
@click.option(
    "--samples-per-spin",
    type=float,
    default=1.0,
    show_default=True,
    help="alpha: number of samples over number of spins.",
)
@click.option(
    "--ridge",
    type=float,
    default=1.0,
    show_default=True,
    help="lambda; 0 is least squares, inf correlation screening.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    help="Generations whose estimates have a mean; by default all.",
)
@click.option(
    "--sweep",
    type=SweepType(),
    help="Vary a parameter: NAME=START:STOP:COUNT, log-spaced for ridge and samples-per-spin.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the sweep's curves: .png, .svg or .pdf.",
)
@force_option
@click.option(
    "--loss",
    type=click.Choice(list(LOSSES)),
    default="squares",
    show_default=True,
    help="What estimates minimise; others than squares with --degree.",
)
@click.option(
    "--spins",
    type=click.IntRange(min=3),
    help="With --degree: how many samples a network of so many spins needs.",
)
@click.option(
    "--probability",
    type=float,
    default=0.99,
    show_default=True,
    help="Of finding it exactly, for --spins.",
)
@click.option(
    "--l1",
    type=click.FloatRange(min=0, min_open=True),
    help="With --degree, --spins and --samples: what estimates with this penalty find.",
)
@click.option("--samples", type=click.IntRange(min=1), help="Number of samples, for --l1.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(**asked: Any) -> None:
    """Predict the error of estimates, without data.

    For instance: isingkit theory --degree 3 --coupling 0.4 --samples-per-spin 0.8 --ridge 0.1

    How many samples for a network of 1000 spins: isingkit theory --degree 3 --coupling 0.4 --spins
    1000. For any other network, and any method: isingkit plan

    What LassoIsing finds: isingkit theory --degree 3 --coupling 0.4 --spins 200 --samples 300
    --l1 0.2
    """
    context = click.get_current_context()
    options = Options(**asked)
    if options.coupling is None and options.model is None and options.swept == "coupling":
        assert options.sweep is not None
        options = replace(options, coupling=options.sweep.values[0])
    typed = {name for name in asked if _was_typed(context, name)}
    for problem in _problems(options, typed):
        raise click.UsageError(problem, context)
    if options.plot is not None:
        require_new(options.plot, options.force, options.model)

    only_samples = options.spins is not None and not typed & ABOUT_ERRORS
    rows = [] if only_samples else _predicted(options)
    needed = _samples_needed(options) if options.l1 is None else None
    found = _found_by_l1(options)
    facts: dict[str, object] = {"version": __version__, "depth": options.depth, "rows": rows}
    if needed:
        facts["samples_needed"] = needed
    if found:
        facts["l1"] = found
    if options.plot is not None:
        _draw(rows, options)
        facts["plot"] = str(options.plot)
    if options.as_json:
        click.echo(json.dumps(_without_nan(facts)))
    else:
        _print(options, rows, needed)
        if found:
            _print_found(found)


def _was_typed(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _problems(options: Options, typed: set[str]) -> Iterator[str]:
    """What contradicts itself, or cannot be done."""
    yield from _problems_of_teacher(options, typed)
    yield from _problems_of_question(options, typed)
    if options.plot is not None:
        yield from _problems_of_plot(options, options.plot)


def _problems_of_teacher(options: Options, typed: set[str]) -> Iterator[str]:
    teachers = (options.degree, options.mean_degree, options.model)
    if sum(teacher is not None for teacher in teachers) != 1:
        yield "give one of --degree, --mean-degree and --model"
    if options.model is None:
        if options.coupling is None:
            yield "a graph needs --coupling"
        if "spin" in typed:
            yield "--spin is for --model"
    else:
        if options.coupling is not None:
            yield "a model has couplings of its own: leave --coupling out"
        if options.swept == "coupling":
            yield "a model's couplings cannot be swept"


def _problems_of_question(options: Options, typed: set[str]) -> Iterator[str]:
    if options.spins is None and "probability" in typed:
        yield "--probability is for --spins"
    if options.mean_degree is not None and options.depth is not None:
        yield "--depth is for --degree and --model"
    if options.spins is not None and options.degree is None:
        yield (
            "--spins is for --degree, networks of one degree and one strength: for any other "
            "network ask 'isingkit plan'"
        )
    yield from _problems_of_losses(options)


def _problems_of_losses(options: Options) -> Iterator[str]:
    if options.loss != "squares" and (options.degree is None or options.depth is not None):
        yield "--loss other than squares is for --degree, without --depth"
    if (options.l1 is None) != (options.samples is None):
        yield "--l1 and --samples go together"
    if options.l1 is not None and options.spins is None:
        yield "--l1 needs --spins"
    if options.loss != "squares" and options.spins is not None and options.l1 is None:
        yield "--spins without --l1 is about two stages of least squares: leave --loss out"


def _problems_of_plot(options: Options, plot: Path) -> Iterator[str]:
    if options.sweep is None:
        yield "--plot needs --sweep"
    if plot.suffix not in PICTURES:
        yield "--plot takes a .png, .svg or .pdf file"
    if not plot.parent.is_dir():
        yield f"no such folder: {plot.parent}"


def _predicted(options: Options) -> list[Row]:
    from isingkit.experiments import theory_curves as curves
    from isingkit.model import IsingModel

    config = curves.Config(
        samples_per_spin=options.samples_per_spin,
        ridge=options.ridge,
        coupling=options.coupling,
        degree=options.degree,
        mean_degree=options.mean_degree,
        model=IsingModel.load(options.model) if options.model is not None else None,
        spin=options.spin,
        depth=options.depth,
        loss=options.loss,
    )
    if options.sweep is None:
        return curves.predict(config)
    return curves.predict(config, options.sweep.parameter, options.sweep.values)


def _samples_needed(options: Options) -> Row | None:
    """For --spins: the samples a network needs, and TwoStageIsing's knobs that go with them."""
    if options.spins is None or options.degree is None or options.coupling is None:
        return None
    from isingkit import theory

    graph = (options.spins, options.degree, options.coupling)
    n_samples = theory.samples_needed(*graph, options.probability)
    best = theory.best_two_stage(*graph, n_samples)
    return {
        "n_spins": options.spins,
        "probability": options.probability,
        "n_samples": n_samples,
        "ridge": best.ridge,
        "prune": best.prune,
        "threshold": best.best_threshold(),
        "pair_limit": theory.pair_limit(*graph, options.probability),
        "fano_limit": theory.fano_limit(*graph, options.probability),
    }


def _found_by_l1(options: Options) -> Row | None:
    """For --l1: what estimates with this penalty get right."""
    if options.l1 is None or options.samples is None or options.spins is None:
        return None
    if options.degree is None or options.coupling is None:
        return None
    from isingkit import theory

    size = (options.spins, options.degree, options.coupling, options.samples)
    found = theory.sparse_recovery(*size, options.l1, loss=options.loss)
    limit = theory.lasso_limit(options.degree, options.coupling, options.l1, options.loss)
    names = ("n_spins", "n_samples", "loss", "l1", "precision", "recall", "found", "false")
    facts = {name: getattr(found, name) for name in names}
    return facts | {"probability": found.probability, "samples_per_log_spins": limit}


def _print_found(found: Row) -> None:
    click.echo(
        f"{LOSSES[found['loss']]}(l1={found['l1']:g}) from {found['n_samples']} samples of "
        f"{found['n_spins']} spins: precision {found['precision']:.3f}, recall "
        f"{found['recall']:.3f} ({found['found']:.1f} edges found, {found['false']:.1f} invented)"
    )
    click.echo(
        f"a spin of N gets no edge too many from more than "
        f"{found['samples_per_log_spins']:.3g} log N samples"
    )


def _draw(rows: list[Row], options: Options) -> None:
    from isingkit.drawing import save_figure
    from isingkit.experiments import theory_curves as curves

    assert options.plot is not None
    assert options.swept is not None
    save_figure(curves.plot(rows, options.swept), options.plot)


def _print(options: Options, rows: list[Row], needed: Row | None) -> None:
    if rows:
        click.echo(_heading(options))
        if options.ridge == math.inf and options.swept != "ridge":
            click.echo("infinite ridge: estimates are sample correlations")
        if options.swept is None:
            _print_quantities(rows[0])
        else:
            _print_table(rows, (options.swept, *(name for name in COLUMNS if name in rows[0])))
    if needed:
        _print_needed(needed)
    if options.plot is not None:
        click.echo(f"drawn to {options.plot}")


def _heading(options: Options) -> str:
    """The teacher and all that is not swept."""
    settings = {
        "coupling": options.coupling,
        "samples_per_spin": options.samples_per_spin,
        "ridge": options.ridge,
        "depth": options.depth or "infinite",
        "loss": options.loss,
    }
    parts = [options.teacher]
    for name, value in settings.items():
        if value is not None and name != options.swept:
            parts.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(parts)


def _print_quantities(row: Row) -> None:
    from isingkit.experiments.theory_curves import QUANTITIES

    for name, meaning in QUANTITIES.items():
        if name not in row:
            continue
        click.echo(f"{name:>16} {row[name]:12.6g}   {meaning}")
    means = "  ".join(f"{mean:.4g}" for mean in row["means"][:4])
    click.echo(f"{'means':>16} {means}   |mean estimate| of generation 1, 2, ...")


def _print_table(rows: list[Row], columns: tuple[str, ...]) -> None:
    click.echo("  ".join(f"{name:>16}" for name in columns))
    for row in rows:
        click.echo("  ".join(f"{row[name]:16.6g}" for name in columns))


def _print_needed(needed: Row) -> None:
    knobs = ", ".join(f"{name}={needed[name]:.3g}" for name in ("ridge", "prune", "threshold"))
    click.echo(
        f"{needed['n_spins']} spins are found exactly with probability "
        f"{needed['probability']:g} from {needed['n_samples']} samples, by TwoStageIsing({knobs})"
    )
    click.echo(
        f"tests of single pairs need {needed['pair_limit']} samples even where all else is known; "
        f"no method finds it from fewer than {needed['fano_limit']}"
    )


def _without_nan(value: object) -> object:
    """null in place of numbers that JSON has no word for."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
