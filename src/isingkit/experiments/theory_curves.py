"""Predictions along one parameter, as rows and as curves."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isingkit.model import IsingModel
from isingkit.theory.prediction import Prediction
from isingkit.theory.ridge import random_regular
from isingkit.theory.ridge_of_ensemble import of_ensemble, poisson_spectrum
from isingkit.theory.ridge_of_model import of_model, spectrum_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUANTITIES = {
    "rss": "sum of squared errors",
    "bias": "mean estimate / coupling",
    "R": "noise of all estimates, squared",
    "Q": "noise in the field, squared",
    "test_error": "squared residual on new samples",
    "kappa": "kappa",
    "effective_ridge": "2 ridge / kappa",
    "chi": "G1(kappa)",
    "unexplained": "squared residual without noise",
    "free_energy": "cost at the minimum / N",
}
PARAMETERS = ("samples_per_spin", "ridge", "coupling")


@dataclass(frozen=True, slots=True)
class Config:
    """One teacher: a random regular graph, an Erdos-Renyi graph, or a spin of a model."""

    samples_per_spin: float
    ridge: float
    coupling: float | None = None
    degree: int | None = None
    mean_degree: float | None = None
    model: IsingModel | None = None
    spin: int = 0
    depth: int | None = None


def predict(
    config: Config, parameter: str | None = None, values: tuple[float, ...] = ()
) -> list[dict[str, float | list[float]]]:
    """One row, or one for each value of a parameter."""
    spectrum = None
    if config.model is not None:
        spectrum = spectrum_of(config.model)
    elif config.mean_degree is not None and config.coupling is not None and parameter != "coupling":
        spectrum = poisson_spectrum(config.mean_degree, config.coupling)
    rows = []
    for value in values or (None,):
        at = {name: getattr(config, name) for name in PARAMETERS} | (
            {} if parameter is None else {parameter: value}
        )
        alpha, ridge = at["samples_per_spin"], at["ridge"]
        p: Prediction
        if config.model is not None:
            p = of_model(config.model, config.spin, alpha, ridge, config.depth, spectrum)
        elif config.mean_degree is not None:
            p = of_ensemble(
                spectrum or poisson_spectrum(config.mean_degree, at["coupling"]), alpha, ridge
            )  # type: ignore[arg-type]
        else:
            p = random_regular(config.degree, at["coupling"], alpha, ridge, config.depth)  # type: ignore[arg-type]
        row: dict[str, float | list[float]] = {
            name: float(number) for name, number in at.items() if number is not None
        }
        row |= {name: float(getattr(p, name)) for name in QUANTITIES}
        rows.append(row | {"means": [float(mean) for mean in p.means]})
    return rows


def plot(rows: list[dict[str, float | list[float]]], parameter: str) -> "Figure":
    """RSS, Q, R and bias along the parameter; the first generations' means beside them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    errors, means = figure.subplots(1, 2)
    x = [row[parameter] for row in rows]
    for name in ("rss", "Q", "R", "bias"):
        errors.plot(x, [row[name] for row in rows], label=f"{name}: {QUANTITIES[name]}")
    shortest = min(len(row["means"]) for row in rows)  # type: ignore[arg-type]
    for generation in range(min(3, shortest)):
        means.plot(
            x, [row["means"][generation] for row in rows], label=f"generation {generation + 1}"
        )  # type: ignore[index]
    for axes in (errors, means):
        axes.set(
            xlabel=parameter.replace("_", " "),
            xscale="linear" if parameter == "coupling" else "log",
        )
        axes.legend(frameon=False)
    errors.set(
        ylabel="per spin",
        yscale="log" if np.ptp([float(row["rss"]) for row in rows]) > 10 else "linear",
    )  # type: ignore[arg-type]
    means.set(ylabel="mean |estimate|")
    return figure
