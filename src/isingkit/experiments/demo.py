"""The first minute with isingkit: a planted network found again, and one in real images."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isingkit.arrays import BoolArray, FloatArray, IntArray
from isingkit.estimators.auto import AutoIsing
from isingkit.estimators.two_stage import TwoStageIsing
from isingkit.fit_check import FitCheck, fit_check
from isingkit.fit_folder import Fit, fit_of
from isingkit.metrics import Scores, score
from isingkit.model import IsingModel
from isingkit.packing import pack
from isingkit.report.contents import contents_of, with_groups
from isingkit.report.page import html_page
from isingkit.worlds.graphs import random_regular
from isingkit.worlds.sampling import sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Pixels of handwritten digits"
FOUND = ALIKE = "#4c72b0"
MISSED = "#dd8452"
WRONG = "#c44e52"
OPPOSITE = "#8172b3"


@dataclass(frozen=True, slots=True)
class Config:
    """Planted worlds as in [fig:two-stage-recall-precision]: fewer samples than spins."""

    sizes: tuple[tuple[int, int], ...] = ((200, 180), (800, 640))  # spins and samples
    degree: int = 3
    coupling: float = 0.4
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted network and what was found of it."""

    truth: IsingModel
    found: IsingModel
    n_samples: int
    scores: Scores
    seconds: float


@dataclass(frozen=True, slots=True)
class Digits:
    """The network of the pixels of handwritten digits."""

    found: IsingModel
    n_samples: int
    touching_share: float  # fraction of edges between touching pixels, corners included
    touching_by_chance: float  # the same fraction of all pairs of pixels
    seconds: float


def compile_kernels() -> None:
    """Fit something small, so that the seconds of what follows are not those of compiling."""
    truth = random_regular(n_spins=10, degree=3, coupling=0.4, random_state=0)
    TwoStageIsing().fit(np.asarray(sample(truth, n_samples=100, random_state=0)))


def measure_planted(config: Config, n_spins: int, n_samples: int) -> Planted:
    """Plant, sample, find, compare."""
    truth = random_regular(
        n_spins=n_spins, degree=config.degree, coupling=config.coupling, random_state=config.seed
    )
    samples = sample(truth, n_samples=n_samples, random_state=config.seed + 1)
    start = time.perf_counter()
    found = TwoStageIsing(fit_fields=False).fit(samples).model_
    seconds = time.perf_counter() - start
    return Planted(truth, found, n_samples, score(found, truth), seconds)


def pixels() -> tuple[BoolArray, IntArray, IntArray]:
    """Ink or no ink in scikit-learn's digits (8 x 8 pixels), and the pixels' rows and columns.

    Only of the pixels that change at all.
    """
    from sklearn.datasets import load_digits

    ink = load_digits().data > 0
    changing = np.flatnonzero(ink.any(axis=0) & ~ink.all(axis=0))
    rows, columns = np.divmod(changing, 8)
    return ink[:, changing], rows, columns


def measure_digits() -> Digits:
    """Find the network of the pixels."""
    used, rows, columns = pixels()
    start = time.perf_counter()
    fit = TwoStageIsing(rule="and").fit(used)
    seconds = time.perf_counter() - start
    names = tuple(f"{row},{column}" for row, column in zip(rows, columns, strict=True))
    found = IsingModel(fit.model_.couplings, fit.model_.fields, names)
    down = abs(rows[:, None] - rows)
    across = abs(columns[:, None] - columns)
    touching = np.maximum(down, across) == 1
    edges = found.couplings.nonzero()
    n_pairs = len(rows) * (len(rows) - 1)
    return Digits(
        found=found,
        n_samples=len(used),
        touching_share=float(touching[edges].mean()),
        touching_by_chance=float(touching.sum() / n_pairs),
        seconds=seconds,
    )


def digits_report(
    warnings_of: Callable[[Sequence[warnings.WarningMessage], Fit, FitCheck], list[str]],
) -> str:
    """The report of the pixels' network, learnt without knobs; colours are rows of the image.

    warnings_of: what is said of what was warned of, of the fit and of its check
    """
    used, rows, columns = pixels()
    names = tuple(f"row {row} column {column}" for row, column in zip(rows, columns, strict=True))
    packed = replace(pack(used), names=names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = AutoIsing().fit(packed)
    fit = fit_of(estimator, packed, "auto", None, [])
    check = fit_check(fit.model, packed)
    fit = replace(fit, facts=replace(fit.facts, warnings=warnings_of(caught, fit, check)))
    contents = contents_of(fit, check, TITLE)
    return html_page(with_groups(contents, {name: name[:5] for name in names}))


def _arc(start: tuple[int, int], stop: tuple[int, int]) -> FloatArray:
    """A line between touching pixels, an arc between others, which shows beside those between."""
    a = np.array(start, dtype=float)
    b = np.array(stop, dtype=float)
    if np.abs(b - a).max() <= 1:
        return np.array([a, b])
    t = np.linspace(0, 1, 20)[:, None]
    along = b - a
    sideways = 0.15 * np.array([along[1], -along[0]])
    return np.asarray(a + t * along + 4 * t * (1 - t) * sideways)


def plot(planted: Planted, digits: Digits) -> "Figure":
    """Both networks side by side: errors are marked; pixels are where they lie in the image."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_planted(left, planted)
    _draw_digits(right, digits)
    for axes in (left, right):
        axes.set_aspect("equal")
        axes.autoscale()
        axes.axis("off")
    return figure


def _draw_planted(axes: "Axes", planted: Planted) -> None:
    import networkx
    from matplotlib.collections import LineCollection

    graph = planted.truth.to_networkx()
    places = networkx.spring_layout(graph, seed=1, iterations=200)
    true = {frozenset(edge) for edge in graph.edges}
    claimed = {frozenset(edge) for edge in planted.found.to_networkx().edges}
    kinds = (
        (true & claimed, FOUND, "found"),
        (true - claimed, MISSED, "missed"),
        (claimed - true, WRONG, "wrong"),
    )
    for edges, colour, label in kinds:
        lines = [[places[a], places[b]] for a, b in sorted(map(sorted, edges))]
        axes.add_collection(LineCollection(lines, colors=colour, label=f"{label}: {len(lines)}"))
    x, y = np.transpose(list(places.values()))
    axes.scatter(x, y, s=12, color="black", zorder=2)
    size = f"Planted network of {planted.truth.n_spins} spins"
    axes.set_title(f"{size}, learnt from {planted.n_samples} samples")
    axes.legend(loc="lower right")


def _draw_digits(axes: "Axes", digits: Digits) -> None:
    from matplotlib.collections import LineCollection

    places = {}
    for name in digits.found.names:
        row, column = name.split(",")
        places[name] = (int(column), -int(row))
    edges = digits.found.edges()
    pairs = zip(edges["source"], edges["target"], strict=True)
    strength = np.abs(edges["coupling"])
    colours = np.where(edges["coupling"] > 0, ALIKE, OPPOSITE)
    arcs = [_arc(places[str(a)], places[str(b)]) for a, b in pairs]
    widths = 0.5 + 6 * strength / strength.max()
    lines = LineCollection(arcs, linewidths=widths, colors=colours.tolist(), alpha=0.7)
    axes.add_collection(lines)
    x, y = np.transpose(list(places.values()))
    axes.scatter(x, y, s=40, color="black", zorder=2)
    axes.set_title(
        f"Pixels of {digits.n_samples} handwritten digits: "
        f"{digits.touching_share:.0%} of edges join touching pixels\n"
        "blue: alike, violet: opposite; arcs join pixels that do not touch"
    )
