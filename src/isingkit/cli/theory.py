"""isingkit theory"""

import json
import math
from pathlib import Path

import click

from isingkit import __version__


class Sweep(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic in some versions of click
    """NAME=START:STOP:COUNT."""

    name = "sweep"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[float, ...]]:
        try:
            parameter, span = str(value).split("=")
            start, stop, count = span.split(":")
            low, high, n = float(start), float(stop), int(count)
            parameter = parameter.replace("-", "_")
            even = parameter == "coupling"
            if (
                parameter not in ("samples_per_spin", "ridge", "coupling")
                or n < 2
                or (not even and not 0 < low < high < math.inf)
            ):
                raise ValueError
        except ValueError:
            self.fail(
                "expected NAME=START:STOP:COUNT with 0 < START < STOP and NAME ridge, samples-per-spin or coupling, "
                f"e.g. ridge=0.01:100:50, but got '{value}'"
            )
        steps = [k / (n - 1) for k in range(n)]
        return parameter, tuple(
            low + (high - low) * k if even else low * (high / low) ** k for k in steps
        )


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
    type=Sweep(),
    help="Vary a parameter: NAME=START:STOP:COUNT, log-spaced for ridge and samples-per-spin.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the sweep's curves: .png, .svg or .pdf.",
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(
    degree: int | None, mean_degree: float | None, model: Path | None, spin: int, coupling: float | None, samples_per_spin: float,
    ridge: float, depth: int | None, sweep: tuple[str, tuple[float, ...]] | None, plot: Path | None, spins: int | None,
    probability: float, as_json: bool,
) -> None:  # fmt: skip
    """Predict the error of linear and ridge estimates, without data.

    For instance: isingkit theory --degree 3 --coupling 0.4 --samples-per-spin 0.8 --ridge 0.1

    How many samples for a network of 1000 spins: isingkit theory --degree 3 --coupling 0.4 --spins
    1000
    """
    context = click.get_current_context()
    if sum(teacher is not None for teacher in (degree, mean_degree, model)) != 1:
        raise click.UsageError("give one of --degree, --mean-degree and --model", context)
    if coupling is None and model is None and sweep is not None and sweep[0] == "coupling":
        coupling = sweep[1][0]

    def given(option: str) -> bool:
        return context.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE

    for wrong, problem in (
        (coupling is None and model is None, "a graph needs --coupling"),
        (
            coupling is not None and model is not None,
            "a model has couplings of its own: leave --coupling out",
        ),
        (model is None and given("spin"), "--spin is for --model"),
        (spins is None and given("probability"), "--probability is for --spins"),
        (mean_degree is not None and depth is not None, "--depth is for --degree and --model"),
        (spins is not None and degree is None, "--spins needs --degree"),
        (plot is not None and sweep is None, "--plot needs --sweep"),
        (
            sweep is not None and model is not None and sweep[0] == "coupling",
            "a model's couplings cannot be swept",
        ),
        (
            plot is not None and plot.suffix not in (".png", ".svg", ".pdf"),
            "--plot takes a .png, .svg or .pdf file",
        ),
        (
            plot is not None and not plot.parent.is_dir(),
            f"no such folder: {plot.parent if plot else ''}",
        ),
    ):
        if wrong:
            raise click.UsageError(problem, context)

    import isingkit as ik
    from isingkit.experiments import theory_curves as curves

    teacher = ik.IsingModel.load(model) if model is not None else None
    config = curves.Config(
        samples_per_spin, ridge, coupling, degree, mean_degree, teacher, spin, depth
    )
    only_samples = (
        spins is not None
        and sweep is None
        and not any(given(name) for name in ("samples_per_spin", "ridge", "depth"))
    )
    rows = [] if only_samples else curves.predict(config, *(sweep or ()))
    facts: dict[str, object] = {"version": __version__, "depth": depth, "rows": rows}
    if spins is not None and degree is not None and coupling is not None:
        needed = ik.theory.samples_needed(spins, degree, coupling, probability)
        best = ik.theory.best_two_stage(spins, degree, coupling, needed)
        knobs = {"ridge": best.ridge, "prune": best.prune, "threshold": best.best_threshold()}
        facts["samples_needed"] = {
            "n_spins": spins,
            "probability": probability,
            "n_samples": needed,
            **knobs,
        }
    if plot is not None and sweep is not None:
        from isingkit.atomic import replacing

        with replacing(plot) as temporary:
            curves.plot(rows, sweep[0]).savefig(temporary, format=plot.suffix[1:])
        facts["plot"] = str(plot)
    if as_json:
        click.echo(json.dumps(_without_nan(facts)))
        return
    if rows:
        which = (
            f"degree {degree}"
            if degree
            else f"mean degree {mean_degree:g}"
            if mean_degree
            else f"spin {spin} of {model}"
        )
        fixed = {
            "coupling": coupling,
            "samples per spin": samples_per_spin,
            "ridge": ridge,
            "depth": depth or "infinite",
        }
        swept = sweep[0].replace("_", " ") if sweep else ""
        click.echo(
            ", ".join(
                [
                    which,
                    *(
                        f"{name} {value}"
                        for name, value in fixed.items()
                        if value is not None and name != swept
                    ),
                ]
            )
        )
    if ridge == math.inf and rows and not (sweep and sweep[0] == "ridge"):
        click.echo("infinite ridge: estimates are sample correlations")
    if rows and sweep is None:
        for name, meaning in curves.QUANTITIES.items():
            click.echo(f"{name:>16} {rows[0][name]:12.6g}   {meaning}")
        listed = "  ".join(f"{mean:.4g}" for mean in rows[0]["means"][:4])  # type: ignore[index]
        click.echo(f"{'means':>16} {listed}   |mean estimate| of generation 1, 2, ...")
    elif rows and sweep is not None:
        columns = ("rss", "bias", "R", "Q", "test_error")
        click.echo("  ".join(f"{name:>16}" for name in (sweep[0], *columns)))
        for row in rows:
            click.echo("  ".join(f"{row[name]:16.6g}" for name in (sweep[0], *columns)))
    if "samples_needed" in facts:
        found = ", ".join(f"{name}={value:.3g}" for name, value in knobs.items())
        click.echo(
            f"{spins} spins are found exactly with probability {probability:g} from {needed} samples, by TwoStageIsing({found})"
        )
    if plot is not None:
        click.echo(f"drawn to {plot}")


def _without_nan(value: object) -> object:
    """null in place of numbers that JSON has no word for."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
