"""RSS, Q and bias of linear estimates against samples per spin: figures 2 and 4."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.sparse.csgraph import shortest_path

from isingkit.arrays import FloatArray
from isingkit.estimators.linear import LinearIsing
from isingkit.estimators.ridge import RidgeIsing
from isingkit.experiments.pictures import legend_below
from isingkit.experiments.runner import Row, Table, chosen, column, seed_of
from isingkit.experiments.snapshots import snapshots
from isingkit.model import IsingModel
from isingkit.theory.bethe import bethe_matrix
from isingkit.theory.prediction import Prediction
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.ridge import best_ridge
from isingkit.theory.ridge import random_regular as random_regular_theory
from isingkit.theory.spectrum import effective_ridge
from isingkit.worlds.graphs import random_regular

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Q1, Q2: beyond one or two generations; Q: around the predicted means
MEASURED = ("rss", "bias", "Q1", "Q2", "Q")
DEPTHS = {"depth_1": 1, "depth_2": 2, "depth_infinite": None}
STYLES = {"depth_1": ":", "depth_2": "--", "depth_infinite": "-"}
SETTINGS = ("n_spins", "coupling", "ridge", "samples_per_spin")  # that a point of a curve has
PLACE = ("coupling", "ridge", "rule", "samples_per_spin")  # of a point, whatever the size of graphs
ABOUT_Q = (
    "Q is measured around the predicted mean estimates, not around means of the runs: it tests the "
    "spread, and the bias factor tests the means"
)
LABELS = {"rss": "RSS", "Q": "Q", "bias": "bias factor"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One curve: an estimator on random regular graphs of one size."""

    n_spins: int
    coupling: float
    ridge: float | str  # "best": the one with the smallest predicted RSS
    samples_per_spin: tuple[float, ...]


class Config(Protocol):
    """What a figure's configuration has to know."""

    @property
    def degree(self) -> int: ...
    @property
    def n_worlds(self) -> int: ...
    @property
    def block(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def sampling(self) -> str: ...
    def settings(self) -> list[Setting]: ...


def points(config: Config) -> list[Row]:
    """Blocks of worlds, for every point of every curve."""
    return [
        {
            "n_spins": setting.n_spins,
            "coupling": setting.coupling,
            "ridge": setting.ridge,
            "samples_per_spin": alpha,
            "first": first,
        }
        for setting in config.settings()
        for alpha in setting.samples_per_spin
        for first in range(0, config.n_worlds, config.block)
    ]


def measure(config: Config, point: Row) -> list[list[float]]:
    """For each world the mean, over all its spins, of what is MEASURED."""
    n_spins = point["n_spins"]
    coupling = point["coupling"]
    alpha = point["samples_per_spin"]
    n_samples = round(alpha * n_spins)
    ridge = _ridge(point["ridge"], config.degree, coupling, alpha)
    estimator = LinearIsing(fit_fields=False)
    if ridge > 0:
        estimator = RidgeIsing(ridge=ridge, fit_fields=False)
    rows = []
    last = min(point["first"] + config.block, config.n_worlds)
    for world in range(point["first"], last):
        key = (config.seed, "errors", n_spins, coupling, world)
        graph_seed = seed_of(*key, "graph")
        model = random_regular(
            n_spins=n_spins, degree=config.degree, coupling=coupling, random_state=graph_seed
        )
        seed = seed_of(*key, n_samples)
        samples = snapshots(model, n_samples, seed, config.sampling)
        estimates = estimator.fit(samples).estimates_
        rows.append(errors(model, estimates, n_samples, ridge, config.degree))
    return rows


def errors(
    model: IsingModel, estimates: FloatArray, n_samples: int, ridge: float, degree: int
) -> list[float]:
    """RSS, bias, and Q beyond generation 1, beyond 2, and around the predicted means. [eq:Q-def]

    Each is averaged over spins.
    """
    truth = model.couplings.toarray()
    correlations = np.linalg.inv(bethe_matrix(model).toarray())
    means = _predicted_means(correlations, truth, n_samples, ridge, degree)
    distance = shortest_path((truth != 0).astype(float), unweighted=True)
    noises = (
        np.where(distance > 1, estimates, 0.0),
        np.where(distance > 2, estimates, 0.0),
        estimates - means,
    )
    rss = np.sum((estimates - truth) ** 2, axis=1).mean()
    edges = truth != 0
    ratios = estimates[edges] / truth[edges]
    bias = ratios.mean()
    of_spins = [noise_in_fields(noise, correlations, truth) for noise in noises]
    Q = np.column_stack(of_spins).mean(axis=0)
    return [float(rss), float(bias), *Q.tolist()]


def _predicted_means(
    correlations: FloatArray, truth: FloatArray, n_samples: int, ridge: float, degree: int
) -> FloatArray:
    """Mean estimates by the model's own correlations: -P_ij / P_ii with P = (C + k)^-1."""
    n = len(truth)
    spectrum = RegularSpectrum(degree, float(np.abs(truth).max()))
    alpha = n_samples / (n - 1)
    k = float(effective_ridge(spectrum, alpha, ridge * (n / (n - 1))))
    kept = np.linalg.inv(correlations + k * np.eye(n))
    means = -kept / np.diagonal(kept)[:, None]
    np.fill_diagonal(means, 0.0)
    return np.asarray(means)


def noise_in_fields(noise: FloatArray, correlations: FloatArray, truth: FloatArray) -> FloatArray:
    """(n_spins,): Q, the variance of the field that the noise of a spin's estimates makes.

    It is in the system without the spin, whose Bethe matrix is the model's without the spin's row,
    and less sinh^2 J of the spin's couplings on its neighbours' diagonal: a correction of the whole
    inverse by few rows.
    """
    fields = noise @ correlations
    found = np.zeros(len(truth))
    for i in range(len(truth)):
        near = np.flatnonzero(truth[i])
        # the inverse of H without row i is C less its projection on spin i
        own = correlations[i] / correlations[i, i]
        field = fields[i] - fields[i, i] * own
        projected = np.outer(correlations[near, i], own[near])
        block = correlations[np.ix_(near, near)] - projected
        couplings = np.diag(1 / np.sinh(truth[i, near]) ** 2)
        correction = np.linalg.inv(couplings - block)
        at_neighbours = field[near]
        found[i] = noise[i] @ field + at_neighbours @ correction @ at_neighbours
    return found


def predict(config: Config, point: Row) -> dict[int | None, Prediction]:
    """Predictions of depth 1, 2 and infinity; a spin has N - 1 regressors."""
    n = point["n_spins"]
    coupling = point["coupling"]
    ridge = _ridge(point["ridge"], config.degree, coupling, point["samples_per_spin"])
    alpha = round(point["samples_per_spin"] * n) / (n - 1)
    return _of_all_depths(config.degree, coupling, alpha, ridge * n / (n - 1))


def _of_all_depths(
    degree: int, coupling: float, alpha: float, ridge: float
) -> dict[int | None, Prediction]:
    return {
        depth: random_regular_theory(degree, coupling, alpha, ridge, depth)
        for depth in DEPTHS.values()
    }


def tabulate(config: Config, records: list[Row]) -> Table:
    """Mean and standard error over worlds beside the predictions of depth 1, 2 and infinity."""
    groups: dict[tuple[Any, ...], list[list[float]]] = {}
    for record in records:
        key = tuple(record["point"][name] for name in SETTINGS)
        groups.setdefault(key, []).extend(record["result"])
    rows = []
    for key, worlds in groups.items():
        point = dict(zip(SETTINGS, key, strict=True))
        theory = predict(config, point)
        for name, values in zip(MEASURED, np.transpose(worlds), strict=True):
            rows.append(_row(config, point, name, values, theory))
    return rows + _smooth(list(groups), config.degree)


def _row(
    config: Config,
    point: Row,
    name: str,
    values: FloatArray,
    theory: dict[int | None, Prediction],
) -> Row:
    """One quantity at one point: measured in each world, and predicted."""
    quantity = "Q" if name.startswith("Q") else name
    depth = {"Q1": 1, "Q2": 2}.get(name)
    ridge = _ridge(point["ridge"], config.degree, point["coupling"], point["samples_per_spin"])
    n_worlds = len(values)
    error = values.std(ddof=1) / np.sqrt(n_worlds)
    return {
        **point,
        "ridge": ridge,
        "rule": _rule(point["ridge"]),
        "quantity": name,
        "mean": float(values.mean()),
        "error": float(error),
        "n_worlds": n_worlds,
        **_by_depth(theory, quantity),
        "predicted": float(getattr(theory[depth], quantity)),
    }


def _by_depth(theory: dict[int | None, Prediction], quantity: str) -> Row:
    return {name: float(getattr(theory[depth], quantity)) for name, depth in DEPTHS.items()}


def _smooth(settings: list[tuple[Any, ...]], degree: int) -> Table:
    """Predictions between the points, of the smallest graphs, for drawing.

    Their quantities are "rss curve", "Q curve" and "bias curve".
    """
    small = min(n_spins for n_spins, *_ in settings)
    curves: dict[tuple[float, float | str], list[float]] = {}
    for n_spins, coupling, ridge, alpha in settings:
        if n_spins == small:
            curves.setdefault((coupling, ridge), []).append(alpha)
    rows = []
    for (coupling, ridge), measured in curves.items():
        start = 1.03 if ridge == 0 else min(measured)
        for alpha in np.geomspace(start, max(measured), 60):
            strength = _ridge(ridge, degree, coupling, alpha)
            theory = _of_all_depths(degree, coupling, alpha, strength)
            point = {
                "n_spins": small,
                "coupling": coupling,
                "ridge": strength,
                "samples_per_spin": float(alpha),
                "rule": _rule(ridge),
            }
            for name in LABELS:
                rows.append(point | {"quantity": f"{name} curve"} | _by_depth(theory, name))
    return rows


def agreement(table: Table, smallest: float = 0.0) -> list[str]:
    """How far measurement is from theory, in standard errors and percent.

    Points beyond 3 standard errors come with what twice the spins give.
    """
    small, *larger = sorted({row["n_spins"] for row in table})
    lines = []
    for name in LABELS:
        measured = chosen(table, quantity=name, n_spins=small)
        rows = [row for row in measured if row["samples_per_spin"] >= smallest]
        lines.append(_deviations(rows))
        for n_spins in larger:
            others = chosen(table, quantity=name, n_spins=n_spins)
            lines += _deviations_of_larger(rows, others)
    return [*lines, ABOUT_Q]


def _deviations(rows: Table) -> str:
    """Of the points of one quantity."""
    errors = [_standard_errors(row) for row in rows]
    n_close = sum(error <= 3 for error in errors)
    largest = max(abs(_percent(row)) for row in rows)
    first = rows[0]
    label = LABELS[first["quantity"]]
    return (
        f"{label}, N={first['n_spins']}: "
        f"{n_close} of {len(rows)} points within 3 standard errors of infinite depth; "
        f"deviations up to {largest:.2f} percent, {max(errors):.1f} standard errors"
    )


def _deviations_of_larger(rows: Table, others: Table) -> list[str]:
    """Points of one quantity beside those of larger graphs, on average and one by one."""
    pairs = []
    for row in rows:
        place = {key: row[key] for key in PLACE}
        pairs += [(row, other) for other in chosen(others, **place)[:1]]
    label = LABELS[rows[0]["quantity"]]
    small = f"at N={rows[0]['n_spins']}"
    large = f"at N={others[0]['n_spins']}"
    mean_small = np.mean([abs(_percent(row)) for row, _ in pairs])
    mean_large = np.mean([abs(_percent(other)) for _, other in pairs])
    means = f"{mean_small:.3f} percent {small}, {mean_large:.3f} percent {large}"
    lines = [f"{label}: mean deviation {means}"]
    for row, other in pairs:
        error = _standard_errors(row)
        if error > 3:
            deviation = f"{_percent(row):+.2f} percent {small} ({error:.1f} standard errors)"
            in_large = f"{_percent(other):+.2f} percent {large}"
            lines.append(f"{label} at {_where(row)}: {deviation}, {in_large}")
    return lines


def _percent(row: Row) -> float:
    return float(100 * (row["mean"] / row["predicted"] - 1))


def _standard_errors(row: Row) -> float:
    return float(abs(row["mean"] - row["predicted"]) / row["error"])


def _where(row: Row) -> str:
    parts = [f"{key.replace('_', ' ')} {row[key]:.3g}" for key in PLACE if key != "rule"]
    return ", ".join(parts)


def plot(table: Table, title: str, with_depths: bool) -> "Figure":
    """A column of panels for each quantity.

    And a row for each ridge, where depths are shown, or one row for all couplings.
    """
    from matplotlib.figure import Figure

    smallest = min(row["n_spins"] for row in table)
    table = sorted(chosen(table, n_spins=smallest), key=lambda row: row["samples_per_spin"])
    curves = _curves(table)
    panels = [[curve] for curve in curves] if with_depths else [curves]
    figure = Figure(figsize=(11, 0.6 + 2.9 * len(panels)), layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(len(panels), len(LABELS), squeeze=False)
    for line, shown in zip(grid, panels, strict=True):
        for axes, name in zip(line, LABELS, strict=True):
            for number, rows in enumerate(shown):
                _draw_theory(axes, rows, name, number, with_depths)
                _draw_measured(axes, rows, name, number, with_depths)
            axes.set(xlabel="samples per spin", ylabel=LABELS[name])
            if name != "bias":
                axes.set_yscale("log")
            if with_depths:
                axes.set_title(f"ridge = {_ridge_in_words(shown[0][0])}", fontsize=10)
    legend_below(figure, grid[0][1])  # Q has all of the markers
    return figure


def _curves(table: Table) -> list[Table]:
    """Rows of one ridge, or rule for it, and one coupling."""
    curves: dict[tuple[Any, float], Table] = {}
    for row in table:
        curves.setdefault((_ridge_in_words(row), row["coupling"]), []).append(row)
    return list(curves.values())


def _ridge_in_words(row: Row) -> Any:
    return "the best" if row["rule"] == "best" else row["ridge"]


def _draw_theory(axes: Any, rows: Table, name: str, number: int, with_depths: bool) -> None:
    smooth = chosen(rows, quantity=f"{name} curve")
    x = column(smooth, "samples_per_spin")
    for depth, style in STYLES.items():
        if not with_depths and depth != "depth_infinite":
            continue
        name_of_depth = f", {depth.replace('_', ' ')}" if with_depths else ""
        label = f"theory{name_of_depth}" if number == 0 else None
        axes.plot(x, column(smooth, depth), style, color=f"C{number}", label=label)


def _draw_measured(axes: Any, rows: Table, name: str, number: int, with_depths: bool) -> None:
    points = chosen(rows, quantity=name)
    x = column(points, "samples_per_spin")
    y = column(points, "mean")
    error = column(points, "error")
    label = "measured" if with_depths else f"measured, K = {points[0]['coupling']}"
    axes.errorbar(x, y, error, fmt="o", ms=4, color=f"C{number}", label=label)
    if with_depths and name == "Q":
        for depth, marker in (("1", "^"), ("2", "s")):
            beyond = column(chosen(rows, quantity=f"Q{depth}"), "mean")
            label = f"measured beyond depth {depth}"
            axes.plot(x, beyond, marker, mfc="none", color="C3", label=label)


def _ridge(ridge: float | str, degree: int, coupling: float, alpha: float) -> float:
    return best_ridge(degree, coupling, alpha) if ridge == "best" else float(ridge)


def _rule(ridge: float | str) -> str:
    return "best" if ridge == "best" else "fixed"
