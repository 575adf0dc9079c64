"""isingkit plan"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit import __version__
from isingkit.cli.method import METHODS, chosen_method, methods_that_start
from isingkit.cli.usage import force_option, require_new, usage_error
from isingkit.formats import bare_name, format_of

if TYPE_CHECKING:
    from isingkit.plan.result import Plan

PICTURES = (".png", ".svg", ".pdf")
_EXAMPLE = "isingkit plan --variables 20 --mean-degree 4 --coupling 0.1:0.5"
_DESCRIBED = {"variables": "--variables", "coupling": "--coupling"}  # needed without a model
_DEGREES = {"mean_degree": "--mean-degree", "degree": "--degree"}
_SHARE = click.FloatRange(0, 1, min_open=True)


class RangeType(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic by version
    """A number, or two with a colon between them."""

    name = "number or from:to"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(part) for part in str(value).split(":"))
        except ValueError:
            numbers = ()
        if len(numbers) not in (1, 2):
            self.fail(f"expected a number or FROM:TO, e.g. 0.1:0.5, but got '{value}'")
        return numbers


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What was typed after `isingkit plan`."""

    model: Path | None
    variables: int | None
    mean_degree: float | None
    degree: int | None
    coupling: tuple[float, ...] | None
    negative: float
    prevalence: tuple[float, ...]
    method: str
    settings: tuple[str, ...]
    level: float | None
    find: float
    most_false: float | None
    probability: float
    at_least: float
    precision: float
    max_rows: int
    plot: Path | None
    force: bool
    seed: int
    threads: int | None
    as_json: bool


@click.command("plan")
@click.argument("model", type=click.Path(path_type=Path, exists=True), required=False)
@click.option(
    "--variables", "--spins", "variables", type=click.IntRange(min=2), help="How many columns."
)
@click.option(
    "--mean-degree",
    type=click.FloatRange(min=0, min_open=True),
    help="How many neighbours a column has on average.",
)
@click.option(
    "--degree", type=click.IntRange(min=1), help="Instead: how many neighbours each column has."
)
@click.option(
    "--coupling",
    type=RangeType(),
    help="How strong couplings are, e.g. 0.3, or 0.1:0.5 for all between (odds ratios of 1.5 to "
    "7.4).",
)
@click.option(
    "--negative",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="Share of the couplings that are negative.",
)
@click.option(
    "--prevalence",
    type=RangeType(),
    default="0.5",
    show_default=True,
    help="How often columns are yes, e.g. 0.3, or 0.1:0.4.",
)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    shell_complete=lambda ctx, param, start: methods_that_start(start),
    help="How the network will be learnt: " + ", ".join(METHODS) + ".",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the method, e.g. gamma=0.5; repeatable.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Of method auto: false edges you accept.",
)
@click.option(
    "--find", type=_SHARE, default=0.8, show_default=True, help="Share of the edges to find."
)
@click.option(
    "--most-false",
    type=click.FloatRange(0, 1),
    help="Share of what is found that may be false; by default not asked for.",
)
@click.option(
    "--probability",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="With which a study finds so many (its power).",
)
@click.option(
    "--at-least",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Edges with weaker couplings need not be found.",
)
@click.option(
    "--precision",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    default=0.1,
    show_default=True,
    help="How well the probability is known: half of its 95 percent interval.",
)
@click.option(
    "--max-rows",
    type=click.IntRange(min=20),
    default=100_000,
    show_default=True,
    help="Give up beyond.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the curves: .png, .svg or .pdf.",
)
@force_option
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), help="By default all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(**arguments: Any) -> None:
    """How many rows will be needed to find a share of a network's edges.

    MODEL is a model, .npz, or a folder that 'isingkit fit' has written, such as of a pilot study.
    Without one, describe the networks you expect:

    isingkit plan --variables 20 --mean-degree 4 --coupling 0.1:0.5 --prevalence 0.3
    """
    options = PlanOptions(**arguments)
    _require_network(options)
    _require_picture(options)
    found = _planned(options)
    if options.plot is not None:
        _draw(found, options.plot)
    if options.as_json:
        click.echo(json.dumps(_facts(found, options)))
        return
    click.echo(str(found))
    if options.plot is not None:
        click.echo(f"\ndrawn to {options.plot}")


def _require_network(options: PlanOptions) -> None:
    """Refuse a network that is given twice, or not at all, and a table."""
    _require_no_table(options.model)
    every = _DESCRIBED | _DEGREES
    given = [option for name, option in every.items() if getattr(options, name) is not None]
    if options.model is not None:
        if given:
            raise usage_error(f"a model has its own network: leave {given[0]} out")
        return
    for option in _DESCRIBED.values():
        if option not in given:
            raise usage_error(
                f"name a model, or describe the network: {option} is missing, as in '{_EXAMPLE}'"
            )
    if (options.mean_degree is None) == (options.degree is None):
        raise usage_error("give one of --mean-degree and --degree")


def _require_no_table(model: Path | None) -> None:
    """Refuse data, of which a network must be learnt first."""
    from isingkit.tables import READERS

    if model is not None and model.is_file() and format_of(model) in {*READERS} - {".npz"}:
        folder = shlex.quote(f"{bare_name(model)}-fit")
        raise usage_error(
            f"'{model}' is a table, whose network must be learnt first: isingkit fit "
            f"{shlex.quote(str(model))}, then isingkit plan {folder}"
        )


def _require_picture(options: PlanOptions) -> None:
    plot = options.plot
    if plot is None:
        return
    if plot.suffix not in PICTURES:
        raise usage_error("--plot takes a .png, .svg or .pdf file")
    if not plot.parent.is_dir():
        raise usage_error(f"no such folder: {plot.parent}")
    require_new(plot, options.force, options.model)


def _planned(options: PlanOptions) -> "Plan":
    import isingkit as ik
    from isingkit._kernels.compilation import noticed_compilation

    chosen = chosen_method(options.method, options.settings, {"level": options.level}, {})
    has_settings = bool(options.settings)
    with noticed_compilation():
        return ik.plan(
            options.model,
            n_spins=options.variables,
            mean_degree=options.mean_degree,
            degree=options.degree,
            coupling=options.coupling,
            negative=options.negative,
            prevalence=options.prevalence,
            method=chosen.estimator if has_settings else chosen.name,
            level=None if has_settings else options.level,
            find=options.find,
            most_false=options.most_false,
            probability=options.probability,
            at_least=options.at_least,
            precision=options.precision,
            max_rows=options.max_rows,
            random_state=options.seed,
            n_jobs=options.threads,
            progress=True,
        )


def _draw(found: "Plan", path: Path) -> None:
    from matplotlib.figure import Figure

    from isingkit.drawing import save_figure
    from isingkit.plots import plot_plan

    figure = Figure(figsize=(6, 4.5), layout="constrained")
    plot_plan(found, figure.subplots())
    save_figure(figure, path)


def _facts(found: "Plan", options: PlanOptions) -> dict[str, Any]:
    table = found.table()
    names = table.dtype.names or ()
    numbers = ("n_rows", "low", "high", "probability", "precision", "found", "found_error")
    more = ("false_share", "false_error", "first_guess", "n_studies", "network", "method")
    facts: dict[str, Any] = {"version": __version__, "seed": options.seed}
    facts |= {name: getattr(found, name) for name in numbers + more}
    facts["find"] = found.goal.find
    facts["most_false"] = found.goal.most_false
    facts["answer"] = found.sentence()
    facts["curve"] = [{name: row[name].item() for name in names} for row in table]
    if options.plot is not None:
        facts["plot"] = str(options.plot)
    return facts
