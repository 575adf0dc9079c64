"""RSS, Q and bias of linear estimates against samples per spin: what figures 2 and 4 measure,
predict and draw.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from isingkit.estimators.linear import LinearIsing
from isingkit.estimators.ridge import RidgeIsing
from isingkit.experiments.runner import Row, Table, chosen, column, seed_of
from isingkit.model import IsingModel
from isingkit.theory.bethe import bethe_matrix
from isingkit.theory.prediction import Prediction
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.ridge import best_ridge
from isingkit.theory.ridge import random_regular as random_regular_theory
from isingkit.theory.spectrum import effective_ridge
from isingkit.worlds.graphs import random_regular
from isingkit.worlds.sampling import sample

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED = (
    "rss",
    "bias",
    "Q1",
    "Q2",
    "Q",
)  # Q1, Q2: beyond one or two generations; Q: around the predicted means
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
    def settings(self) -> list[Setting]: ...


def points(config: Config) -> list[Row]:
    """Blocks of worlds, for every point of every curve."""
    return [
        {
            "n_spins": s.n_spins,
            "coupling": s.coupling,
            "ridge": s.ridge,
            "samples_per_spin": alpha,
            "first": first,
        }
        for s in config.settings()
        for alpha in s.samples_per_spin
        for first in range(0, config.n_worlds, config.block)
    ]


def measure(config: Config, point: Row) -> Any:
    """For each world the mean, over all its spins, of what is MEASURED."""
    rows, degree = [], config.degree
    for world in range(point["first"], min(point["first"] + config.block, config.n_worlds)):
        key = (config.seed, "errors", point["n_spins"], point["coupling"], world)
        model = random_regular(
            n_spins=point["n_spins"],
            degree=degree,
            coupling=point["coupling"],
            random_state=seed_of(*key, "graph"),
        )
        n_samples = round(point["samples_per_spin"] * point["n_spins"])
        samples = sample(model, n_samples, random_state=seed_of(*key, n_samples))
        ridge = _ridge(point["ridge"], degree, point["coupling"], point["samples_per_spin"])
        estimator = (
            LinearIsing(fit_fields=False)
            if ridge == 0
            else RidgeIsing(ridge=ridge, fit_fields=False)
        )
        rows.append(errors(model, estimator.fit(samples).estimates_, n_samples, ridge, degree))
    return rows


def errors(
    model: IsingModel, estimates: NDArray[np.float64], n_samples: int, ridge: float, degree: int
) -> list[float]:
    """RSS, bias, and Q beyond generation 1, beyond 2, and around the predicted means, each averaged
    over spins. [eq:Q-def]

    Q is the variance of the field that the noise makes in the system without the spin, whose Bethe
    matrix is the model's without the spin's row and without the spin's share of its neighbours'
    diagonal: a correction of the whole inverse by few rows.
    """
    n = model.n_spins
    truth = model.couplings.toarray()
    matrix = bethe_matrix(model).toarray()
    correlations = np.linalg.inv(matrix)
    finite = n / (n - 1)
    k = float(
        effective_ridge(
            RegularSpectrum(degree, float(np.abs(truth).max())), n_samples / (n - 1), ridge * finite
        )
    )
    kept = np.linalg.inv(correlations + k * np.eye(n))
    means = -kept / np.diagonal(kept)[:, None]
    np.fill_diagonal(means, 0.0)
    distance = shortest_path((truth != 0).astype(float), unweighted=True)
    noises = [np.where(distance > d, estimates, 0.0) for d in (1, 2)] + [estimates - means]
    found = np.zeros((n, len(noises)))
    for column_, noise in enumerate(noises):
        fields = noise @ correlations
        for i in range(n):
            near = np.flatnonzero(truth[i])
            # A = inverse of H without row i;  H without spin i = H without row i, less sinh^2 J on
            # the neighbours' diagonal
            own = correlations[i] / correlations[i, i]
            field = fields[i] - fields[i, i] * own
            blocks = correlations[np.ix_(near, near)] - np.outer(correlations[near, i], own[near])
            less = np.linalg.inv(np.diag(1 / np.sinh(truth[i, near]) ** 2) - blocks)
            found[i, column_] = noise[i] @ field + field[near] @ less @ field[near]
    rss = np.sum((estimates - truth) ** 2, axis=1).mean()
    bias = (estimates[truth != 0] / truth[truth != 0]).mean()
    return [float(rss), float(bias), *(float(q) for q in found.mean(axis=0))]


def predict(config: Config, point: Row) -> dict[int | None, Prediction]:
    """Predictions of depth 1, 2 and infinity; a spin has N - 1 regressors."""
    degree = config.degree
    n, ridge = (
        point["n_spins"],
        _ridge(point["ridge"], degree, point["coupling"], point["samples_per_spin"]),
    )
    alpha = round(point["samples_per_spin"] * n) / (n - 1)
    return {
        depth: random_regular_theory(degree, point["coupling"], alpha, ridge * n / (n - 1), depth)
        for depth in (1, 2, None)
    }


def tabulate(config: Config, records: list[Row]) -> Table:
    """Mean and standard error over worlds beside the predictions of depth 1, 2 and infinity."""
    degree = config.degree
    groups: dict[tuple[Any, ...], list[list[float]]] = {}
    settings = ("n_spins", "coupling", "ridge", "samples_per_spin")
    for record in records:
        groups.setdefault(tuple(record["point"][name] for name in settings), []).extend(
            record["result"]
        )
    rows = []
    for key, worlds in groups.items():
        point = dict(zip(settings, key, strict=True))
        values, theory = np.array(worlds), predict(config, point)
        for place, name in enumerate(MEASURED):
            depths = {"Q1": 1, "Q2": 2}.get(name)
            quantity = "Q" if name.startswith("Q") else name
            rows.append(
                {
                    **point, "ridge": _ridge(point["ridge"], degree, point["coupling"], point["samples_per_spin"]),
                    "rule": "best" if point["ridge"] == "best" else "fixed",
                    "quantity": name, "mean": float(values[:, place].mean()),
                    "error": float(values[:, place].std(ddof=1) / np.sqrt(len(values))), "n_worlds": len(values),
                    "depth_1": float(getattr(theory[1], quantity)), "depth_2": float(getattr(theory[2], quantity)),
                    "depth_infinite": float(getattr(theory[None], quantity)), "predicted": float(getattr(theory[depths], quantity)),
                }
            )  # fmt: skip
    return rows + _smooth(list(groups), degree)


def _smooth(settings: list[tuple[Any, ...]], degree: int) -> Table:
    """Predictions between the points, of the smallest graphs, for drawing: quantities "rss curve",
    "Q curve" and "bias curve".
    """
    rows = []
    small = min(n_spins for n_spins, *_ in settings)
    for coupling, ridge in dict.fromkeys(
        (coupling, ridge) for n_spins, coupling, ridge, _ in settings if n_spins == small
    ):
        measured = [alpha for n, k, r, alpha in settings if (n, k, r) == (small, coupling, ridge)]
        for alpha in np.geomspace(1.03 if ridge == 0 else min(measured), max(measured), 60):
            strength = _ridge(ridge, degree, coupling, alpha)
            theory = {
                depth: random_regular_theory(degree, coupling, alpha, strength, depth)
                for depth in (1, 2, None)
            }
            for name in LABELS:
                rows.append(
                    {
                        "n_spins": small, "coupling": coupling, "ridge": strength, "samples_per_spin": float(alpha),
                        "rule": "best" if ridge == "best" else "fixed", "quantity": f"{name} curve",
                        "depth_1": float(getattr(theory[1], name)), "depth_2": float(getattr(theory[2], name)),
                        "depth_infinite": float(getattr(theory[None], name)),
                    }
                )  # fmt: skip
    return rows


def agreement(table: Table, smallest: float = 0.0) -> list[str]:
    """How far measurement is from theory, in standard errors and percent; points beyond 3 errors
    with what twice the spins give.
    """
    lines = []
    small, *larger = sorted({row["n_spins"] for row in table})

    def percent(row: Row) -> float:
        return float(100 * (row["mean"] / row["predicted"] - 1))

    for name in ("rss", "Q", "bias"):
        rows = [
            row
            for row in chosen(table, quantity=name, n_spins=small)
            if row["samples_per_spin"] >= smallest
        ]
        off = [abs(row["mean"] - row["predicted"]) / row["error"] for row in rows]
        lines.append(
            f"{LABELS[name]}, N={small}: {sum(value <= 3 for value in off)} of {len(rows)} points within 3 standard errors of "
            f"infinite depth; deviations up to {max(abs(percent(row)) for row in rows):.2f} percent, {max(off):.1f} standard errors"
        )
        for n_spins in larger:
            twins = [chosen(table, quantity=name, n_spins=n_spins, **_place(row)) for row in rows]
            pairs = [
                (abs(percent(row)), abs(percent(twin[0])))
                for row, twin in zip(rows, twins, strict=True)
                if twin
            ]
            lines.append(
                f"{LABELS[name]}: mean deviation {np.mean([a for a, _ in pairs]):.3f} percent at N={small}, "
                f"{np.mean([b for _, b in pairs]):.3f} percent at N={n_spins}"
            )
            for row, twin, far in zip(rows, twins, off, strict=True):
                if far > 3 and twin:
                    where = ", ".join(
                        f"{key.replace('_', ' ')} {value:.3g}"
                        for key, value in _place(row).items()
                        if key != "rule"
                    )
                    lines.append(
                        f"{LABELS[name]} at {where}: {percent(row):+.2f} percent at N={small} ({far:.1f} standard errors), "
                        f"{percent(twin[0]):+.2f} percent at N={n_spins}"
                    )
    return lines


def _place(row: Row) -> Row:
    return {key: row[key] for key in ("coupling", "ridge", "rule", "samples_per_spin")}


def plot(table: Table, title: str, with_depths: bool) -> "Figure":
    """One column for each quantity, one row for each ridge (where depths are shown) or one row for
    all couplings.
    """
    from matplotlib.figure import Figure

    smallest = min(row["n_spins"] for row in table)
    table = chosen(table, n_spins=smallest)
    curves = list(
        dict.fromkeys(
            ("the best" if row["rule"] == "best" else row["ridge"], row["coupling"])
            for row in table
        )
    )
    panels = [[curve] for curve in curves] if with_depths else [curves]
    figure = Figure(figsize=(11, 0.6 + 2.9 * len(panels)), layout="constrained")
    figure.suptitle(title)
    for line, shown in zip(
        np.atleast_2d(figure.subplots(len(panels), 3, squeeze=False)), panels, strict=True
    ):
        for axes, name in zip(line, ("rss", "Q", "bias"), strict=True):
            for number, (ridge, coupling) in enumerate(shown):
                which = (
                    {"rule": "best"} if ridge == "the best" else {"rule": "fixed", "ridge": ridge}
                )
                curve = chosen(
                    sorted(table, key=lambda row: row["samples_per_spin"]),
                    coupling=coupling,
                    **which,
                )
                rows = chosen(curve, quantity=name)
                x, smooth = (
                    column(rows, "samples_per_spin"),
                    chosen(curve, quantity=f"{name} curve"),
                )
                styles = (
                    (("depth_1", ":"), ("depth_2", "--"), ("depth_infinite", "-"))
                    if with_depths
                    else (("depth_infinite", "-"),)
                )
                for key, style in styles:
                    label = f"theory, {key.replace('_', ' ')}" if with_depths else "theory"
                    line_x, line_y = column(smooth, "samples_per_spin"), column(smooth, key)
                    axes.plot(
                        line_x,
                        line_y,
                        style,
                        color=f"C{number}",
                        label=label if number == 0 else None,
                    )
                axes.errorbar(
                    x, column(rows, "mean"), column(rows, "error"), fmt="o", ms=4, color=f"C{number}",
                    label="measured" if with_depths else f"measured, K = {coupling}",
                )  # fmt: skip
                if with_depths and name == "Q":
                    for marker, key in (("^", "Q1"), ("s", "Q2")):
                        beyond = column(chosen(curve, quantity=key), "mean")
                        axes.plot(
                            x,
                            beyond,
                            marker,
                            mfc="none",
                            color="C3",
                            label=f"measured beyond depth {key[1]}",
                        )
            axes.set(xlabel="samples per spin", ylabel=LABELS[name])
            if name != "bias":
                axes.set_yscale("log")
            if with_depths:
                axes.set_title(f"ridge = {shown[0][0]}", fontsize=10)
        line[1].legend(frameon=False, fontsize=8)
    return figure


def _ridge(ridge: float | str, degree: int, coupling: float, alpha: float) -> float:
    return best_ridge(degree, coupling, alpha) if ridge == "best" else float(ridge)
