"""Predictions along one parameter, as rows and as curves."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from isingkit.model import IsingModel
from isingkit.theory.local_loss import LossPrediction, interaction_screening, pseudolikelihood
from isingkit.theory.prediction import Prediction
from isingkit.theory.ridge import random_regular
from isingkit.theory.ridge_of_ensemble import of_ensemble, poisson_spectrum
from isingkit.theory.ridge_of_model import of_model, spectrum_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]  # numbers by name, and "means", a list of them
Predictor = Callable[["Config"], Prediction | LossPrediction]
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
    loss: str = "squares"  # of random regular graphs


def predict(
    config: Config, parameter: str | None = None, values: tuple[float, ...] = ()
) -> list[Row]:
    """One row, or one for each value of a parameter."""
    predictor = _predictor(config, parameter)
    points = [config] if parameter is None else _swept(config, parameter, values)
    return [_row(point, predictor(point)) for point in points]


def _swept(config: Config, parameter: str, values: tuple[float, ...]) -> list[Config]:
    changes: list[dict[str, Any]] = [{parameter: value} for value in values]
    return [replace(config, **change) for change in changes]


def _predictor(config: Config, parameter: str | None) -> Predictor:
    """A function of the point; it computes the spectrum once, unless couplings are swept."""
    if config.model is not None:
        return _predictor_of_model(config.model)
    if config.mean_degree is None:
        return LOSSES.get(config.loss, _of_regular)
    if parameter == "coupling":
        return lambda at: _predictor_of_poisson(at)(at)
    return _predictor_of_poisson(config)


def _predictor_of_model(model: IsingModel) -> Callable[[Config], Prediction]:
    spectrum = spectrum_of(model)
    return lambda at: of_model(model, at.spin, at.samples_per_spin, at.ridge, at.depth, spectrum)


def _predictor_of_poisson(config: Config) -> Callable[[Config], Prediction]:
    assert config.mean_degree is not None
    assert config.coupling is not None
    spectrum = poisson_spectrum(config.mean_degree, config.coupling)
    return lambda at: of_ensemble(spectrum, at.samples_per_spin, at.ridge)


def _of_regular(at: Config) -> Prediction:
    assert at.degree is not None
    assert at.coupling is not None
    return random_regular(at.degree, at.coupling, at.samples_per_spin, at.ridge, at.depth)


def _of_loss(predict: Callable[..., LossPrediction]) -> Callable[[Config], LossPrediction]:
    return lambda at: predict(at.degree, at.coupling, at.samples_per_spin, at.ridge)


# losses other than squares
LOSSES = {
    "pseudolikelihood": _of_loss(pseudolikelihood),
    "screening": _of_loss(interaction_screening),
}


def _row(at: Config, prediction: Prediction | LossPrediction) -> Row:
    row: Row = {}
    for name in PARAMETERS:
        value = getattr(at, name)
        if value is not None:
            row[name] = float(value)
    for name in QUANTITIES:
        if hasattr(prediction, name):
            row[name] = float(getattr(prediction, name))
    row["means"] = [float(mean) for mean in prediction.means]
    return row


def plot(rows: list[Row], parameter: str) -> "Figure":
    """RSS, Q, R and bias along the parameter; the first generations' means beside them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    errors, means = figure.subplots(1, 2)
    x = [row[parameter] for row in rows]
    for name in ("rss", "Q", "R", "bias"):
        errors.plot(x, [row[name] for row in rows], label=f"{name}: {QUANTITIES[name]}")
    n_generations = min(len(row["means"]) for row in rows)
    for generation in range(min(3, n_generations)):
        y = [row["means"][generation] for row in rows]
        means.plot(x, y, label=f"generation {generation + 1}")
    scale = "linear" if parameter == "coupling" else "log"
    for axes in (errors, means):
        axes.set(xlabel=parameter.replace("_", " "), xscale=scale)
        axes.legend(frameon=False)
    range_of_rss = np.ptp([row["rss"] for row in rows])
    errors.set(ylabel="per spin", yscale="log" if range_of_rss > 10 else "linear")
    means.set(ylabel="mean |estimate|")
    return figure
