"""isingkit bench"""

import json
from dataclasses import asdict
from typing import Any

import click

from isingkit import __version__


@click.command("bench")
@click.argument("what", type=click.Choice(["scale"]))
@click.option(
    "--spins",
    type=click.IntRange(min=100),
    multiple=True,
    help="Sizes, repeatable; by default 10000, 20000 and 40000.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=64),
    default=2048,
    show_default=True,
    help="Samples of each.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the planted worlds.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(what: str, spins: tuple[int, ...], samples: int, seed: int, as_json: bool) -> None:
    """Measure this machine: large planted networks, found again.

    For instance: isingkit bench scale --spins 100000
    """
    rates, rows = _measured(spins or (10_000, 20_000, 40_000), samples, seed)
    if as_json:
        facts = {
            "version": __version__,
            "seed": seed,
            "rates": asdict(rates),
            "rows": [asdict(row) for row in rows],
        }
        click.echo(json.dumps(facts))
        return
    click.echo(
        "   spins  samples  plant, s  sample, s    fit, s  G multiply-adds/s  peak, GiB"
        "  wrong edges  precision    recall"
    )
    for row in rows:
        click.echo(
            f"{row.n_spins:>8}{row.n_samples:>9}{row.plant_seconds:>10.2f}"
            f"{row.sample_seconds:>11.2f}{row.fit_seconds:>10.2f}{row.rate / 1e9:>19.0f}"
            f"{row.peak_bytes / 2**30:>11.2f}{row.wrong_edges:>13}{row.precision:>11.6f}"
            f"{row.recall:>10.6f}"
        )
    click.echo(
        f"\nscreen of {rates.n_spins} spins: {rates.screen / 1e9:.0f} G multiply-adds a second on "
        f"correlations, {rates.dual / 1e9:.0f} with a ridge; float32 matrix product: "
        f"{rates.product / 1e9:.0f}; "
        f"ratios {rates.screen / rates.product:.1f} and {rates.screen / rates.dual:.1f}"
    )


def _measured(sizes: tuple[int, ...], samples: int, seed: int) -> tuple[Any, list[Any]]:
    """Rates of the kernels, and one row for each size."""
    from tqdm import tqdm

    from isingkit.experiments import scale

    with tqdm(total=2 + len(sizes), desc="getting ready", leave=False) as bar:
        scale.measure_scale(6000, 64 * 16, seed=seed)  # compiles
        bar.update()
        bar.set_description("rates")
        rates = scale.measure_rates(20_000, samples)
        bar.update()
        rows = []
        for n_spins in sizes:
            bar.set_description(f"{n_spins} spins")
            rows.append(scale.measure_scale(n_spins, samples, seed=seed))
            bar.update()
    return rates, rows
