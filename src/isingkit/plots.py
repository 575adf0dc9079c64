"""Pictures for notebooks and papers: matplotlib, drawn into `ax` where one is given; the Axes come
back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isingkit.arrays import FloatArray, IntArray
from isingkit.case_dropping import CaseDropping
from isingkit.drawing import NEGATIVE, POSITIVE, new_axes, signed_colours
from isingkit.estimators.hidden_causes import HiddenReport
from isingkit.exceptions import SettingError, require_choice, require_instance, require_number
from isingkit.fit_check import FitCheck, fit_check
from isingkit.landscape import Landscape
from isingkit.metrics import precision_recall
from isingkit.model import IsingModel
from isingkit.plan.picture import draw_plan
from isingkit.plan.result import Plan
from isingkit.result_table import ResultTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMES = 60
_ASIDE = 0.08  # of the distance of two shares: measures stand side by side
_MOST_VECTORS = 3000  # points of a picture; of more, vectors would be slow to show
_ON_ANY_PAGE = "#3f8fd9"  # blue, on white and on black
_DIGITS = 9  # of strengths that are ranked: rounding does not reach them


def plot_couplings(model: IsingModel, ax: "Axes | None" = None) -> "Axes":
    """Heat map of the couplings: blue where spins are alike, orange where they are opposite.

    Parameters
    ----------
    model
        Such as `model_` of a fitted estimator.
    ax
        Axes to draw into; by default new ones.
    """
    require_instance(
        "model", model, IsingModel, "an IsingModel, such as model_ of a fitted estimator"
    )
    axes = new_axes((6.5, 5.5)) if ax is None else ax
    names = [name.replace("$", r"\$") for name in model.names]
    draw_couplings(axes, model.couplings.toarray(), names, size=8 if model.n_spins <= 30 else 6)
    return axes


def plot_precision_recall(estimates: Any, truth: IsingModel, ax: "Axes | None" = None) -> "Axes":
    """Precision and recall of directed estimates against the threshold; only where the truth is
    known.

    Parameters
    ----------
    estimates
        (n_spins, n_spins): row i the estimate of J_i, such as `estimates_` of an estimator.
    truth
        The planted model.
    ax
        Axes to draw into; by default new ones.
    """
    curve = precision_recall(estimates, truth)
    axes = new_axes((6, 4)) if ax is None else ax
    axes.step(curve.thresholds, curve.precision, where="post", color=POSITIVE, label="precision")
    axes.step(curve.thresholds, curve.recall, where="post", color=NEGATIVE, ls="--", label="recall")
    perfect = np.flatnonzero((curve.precision == 1) & (curve.recall == 1))
    if len(perfect) and perfect[-1] + 1 < len(curve.thresholds):
        low = curve.thresholds[perfect[0]]
        high = curve.thresholds[perfect[-1] + 1]
        axes.axvspan(low, high, color="0.85", label=f"both perfect: {low:.3g} to {high:.3g}")
    axes.set(xlabel="threshold", ylabel="share of directed couplings", ylim=(-0.02, 1.04))
    axes.legend(frameon=False)
    return axes


def plot_fit_check(
    model: IsingModel,
    X: Any,
    show: str = "correlations",
    ax: "Axes | None" = None,
    *,
    sample_weight: Any = None,
    counts: Any = None,
    covariates: Any = None,
    hidden: HiddenReport | None = None,
    random_state: Any = 0,
) -> "Axes":
    """What the data have beside what samples of the model have; a good model's points lie on the
    diagonal.

    Parameters
    ----------
    model
        Such as `model_` of a fitted estimator.
    X
        The data it was learnt from, or others like them.
    show
        "correlations" of pairs, "means" of spins, or the distribution of "sums" over all spins.
    ax
        Axes to draw into; by default new ones.
    sample_weight
        How much each row matters.
    counts
        How many equal samples each row stands for.
    covariates
        Of a model that was learnt with covariates: the same columns, of these rows.
    hidden
        Of a model that was learnt with hidden causes: `hidden_` of its estimator.
    random_state
        Seed or numpy Generator of the model's samples.
    """
    require_choice("show", show, sorted(FIT_CHARTS))
    check = fit_check(
        model,
        X,
        sample_weight=sample_weight,
        counts=counts,
        covariates=covariates,
        hidden=hidden,
        random_state=random_state,
    )
    axes = new_axes((5, 4.5)) if ax is None else ax
    FIT_CHARTS[show].draw(axes, check)
    return axes


def plot_edges(edges: Any, ax: "Axes | None" = None, *, max_edges: int = 50) -> "Axes":
    """Couplings of edges with their intervals, the strongest on top: how far each can be believed.

    Parameters
    ----------
    edges
        A table of edges: `edges_` of a fitted estimator, `edges` of what `isingkit.bootstrap`
        returns, or `IsingModel.edges()`, which has no intervals.
    ax
        Axes to draw into; by default new ones.
    max_edges
        Only so many are drawn, the strongest.
    """
    names = getattr(getattr(edges, "dtype", None), "names", None) or ()
    if not {"source", "target", "coupling"} <= set(names):
        expected = "a table of edges, such as edges_ of a fitted estimator"
        raise SettingError(setting="edges", value=type(edges), expected=expected)
    require_number("max_edges", max_edges, at_least=1, whole=True)
    strengths = np.round(np.abs(edges["coupling"]), _DIGITS)
    table = edges[np.argsort(-strengths, kind="stable")[:max_edges]]
    has_intervals = {"low", "high"} <= set(names)
    pairs = [f"{row['source']} - {row['target']}" for row in table]
    weights = EdgeWeights(
        labels=[pair.replace("$", r"\$") for pair in pairs],
        couplings=table["coupling"],
        low=table["low"] if has_intervals else None,
        high=table["high"] if has_intervals else None,
    )
    axes = new_axes((6.5, 1.0 + 0.19 * max(len(table), 4))) if ax is None else ax
    draw_edge_weights(axes, weights)
    return axes


def plot_centrality(
    result: ResultTable, axes: Any = None, *, measures: Sequence[str] | None = None
) -> Any:
    """Centralities of columns side by side, a panel a measure, the strongest column on top; returns
    the Axes.

    Parameters
    ----------
    result
        What `isingkit.centrality` returns.
    axes
        Axes to draw into, one for each measure; by default new ones.
    measures
        Which, by their names in the table; by default all.
    """
    from matplotlib import pyplot

    names = getattr(getattr(result, "dtype", None), "names", None) or ()
    known = [name for name in names if name != "name"]
    if "strength" not in known:
        expected = "what isingkit.centrality returns"
        raise SettingError(setting="result", value=type(result), expected=expected)
    chosen = known if measures is None else list(measures)
    for measure in chosen:
        require_choice("measures", measure, known)
    if axes is None:
        size = (1.5 + 2.1 * len(chosen), 1.0 + 0.19 * max(len(result), 4))
        shape: dict[str, Any] = {"sharey": True, "squeeze": False, "layout": "constrained"}
        axes = pyplot.subplots(1, len(chosen), figsize=size, **shape)[1][0]
    order = np.argsort(-np.round(result["strength"], _DIGITS), kind="stable")
    ranked = result[order]
    labels = [name.replace("$", r"\$") for name in ranked["name"].tolist()]
    panels = {measure.replace("_", " "): ranked[measure] for measure in chosen}
    draw_ranked(axes, labels, panels)
    return axes


def plot_disconnectivity(landscape: Landscape, ax: "Axes | None" = None) -> "Axes":
    """The disconnectivity graph: minima hang at their energies, and branches join at the lowest
    pass between them. Dots are as large as basins are probable.

    Parameters
    ----------
    landscape
        What `isingkit.landscape` returns.
    ax
        Axes to draw into; by default new ones.
    """
    require_instance("landscape", landscape, Landscape, "what isingkit.landscape returns")
    axes = new_axes((6, 4.5)) if ax is None else ax
    passes = landscape.passes
    branches = Branches(landscape.energies, landscape.probabilities, passes.minima, passes.energies)
    draw_branches(axes, branches)
    if not landscape.is_exact:
        axes.set_title("passes are upper bounds", fontsize=9)
    return axes


def plot_plan(plan: Plan, ax: "Axes | None" = None) -> "Axes":
    """Against the number of rows: the probability to find enough edges, the share found, and the
    share of these that is false. The rows needed are dotted, their interval is shaded.

    Parameters
    ----------
    plan
        What `isingkit.plan` returns.
    ax
        Axes to draw into; by default new ones.
    """
    require_instance("plan", plan, Plan, "what isingkit.plan returns")
    axes = new_axes((6, 4.5)) if ax is None else ax
    draw_plan(plan, axes)
    return axes


def plot_stability(result: CaseDropping, ax: "Axes | None" = None) -> "Axes":
    """Mean correlation with the centralities of all rows against the share of rows kept, a line a
    measure, with bars that hold 95 percent of the correlations; 0.7 is dotted.

    Parameters
    ----------
    result
        What `isingkit.case_dropping` returns.
    ax
        Axes to draw into; by default new ones.
    """
    require_instance("result", result, CaseDropping, "what isingkit.case_dropping returns")
    axes = new_axes((7, 4)) if ax is None else ax
    table = result.table()
    shares = np.unique(np.round(1 - table["dropped"], _DIGITS))
    step = _ASIDE * (np.diff(shares).min() if len(shares) > 1 else 0.1)
    for k, measure in enumerate(result.correlations):
        rows = table[table["measure"] == measure]
        kept = 1 - rows["dropped"]
        aside = kept - (k - (len(result.correlations) - 1) / 2) * step  # intervals would overlap
        label = measure.replace("_", " ")
        (line,) = axes.plot(aside, rows["correlation"], "o-", ms=5, lw=1.2, label=label)
        colour = line.get_color()
        axes.vlines(aside, rows["low"], rows["high"], color=colour, alpha=0.45, lw=2.5)
    axes.axhline(0.7, color="0.6", ls=":", lw=1)
    axes.set(xlabel="share of rows kept", ylabel="correlation with all rows", ylim=(None, 1.02))
    axes.set_xticks(shares, [f"{share:.0%}" for share in shares])
    axes.invert_xaxis()  # as bootnet draws it: fewer rows to the right
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes


@dataclass(frozen=True, slots=True)
class Branches:
    """A disconnectivity graph: minima, lowest first, and the passes where parts of them join."""

    energies: FloatArray  # (n_minima,)
    probabilities: FloatArray  # (n_minima,): of the basins
    passes: IntArray  # (n_minima - 1, 2): lowest minima of the parts, from the lowest pass up
    pass_energies: FloatArray  # (n_minima - 1,)

    def leaves(self) -> list[int]:
        """Minima from left to right, so that no branches cross."""
        members = [[place] for place in range(len(self.energies))]
        for low, high in self.passes.tolist():
            members[low] = members[low] + members[high]
        return members[0]


def draw_branches(axes: "Axes", branches: Branches) -> None:
    """A disconnectivity graph: dots, with the numbers of minima, and lines up to the passes."""
    from matplotlib.collections import LineCollection

    energies = branches.energies
    n_minima = len(energies)
    x = np.empty(n_minima)
    x[branches.leaves()] = np.arange(n_minima)
    axes.add_collection(LineCollection(_lines(branches, x), colors="#777777", linewidths=1.2))
    sizes = 12 + 200 * branches.probabilities
    axes.scatter(x, energies, s=sizes, color=POSITIVE, zorder=2)
    if n_minima <= _MOST_NAMES:
        below: dict[str, Any] = {"xytext": (0, -9), "textcoords": "offset points", "va": "top"}
        for place, at in enumerate(zip(x, energies, strict=True)):
            axes.annotate(str(place + 1), at, ha="center", fontsize=8, **below)
    axes.set(xticks=[], ylabel="energy")
    axes.margins(0.1, 0.12)


def _lines(branches: Branches, x: FloatArray) -> list[list[tuple[float, float]]]:
    """From each minimum up to the pass where its part joins another, and so on."""
    across = x.copy()  # of each part, by its lowest minimum
    bottom = branches.energies.copy()
    lines = []
    ends = zip(branches.passes.tolist(), branches.pass_energies.tolist(), strict=True)
    for (low, high), energy in ends:
        for part in (low, high):
            lines.append([(across[part], bottom[part]), (across[part], energy)])
        lines.append([(across[low], energy), (across[high], energy)])
        across[low] = (across[low] + across[high]) / 2
        bottom[low] = energy
    return lines


def draw_couplings(
    axes: "Axes", couplings: FloatArray, names: Sequence[str], size: float = 8
) -> None:
    """Heat map of (n_spins, n_spins) couplings, with the spins' names in letters of this size where
    there are not too many.
    """
    largest = float(np.abs(couplings).max(initial=0.0)) or 1.0
    image = axes.imshow(
        couplings, cmap=signed_colours(), vmin=-largest, vmax=largest, interpolation="nearest"
    )
    axes.figure.colorbar(image, ax=axes, label="coupling", shrink=0.8)
    write_names(axes, names, size)


def write_names(axes: "Axes", names: Sequence[str], size: float = 8) -> None:
    """Names of rows and columns, where there are not too many."""
    if len(names) <= _MOST_NAMES:
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
        axes.set_yticks(range(len(names)), names, fontsize=size)


@dataclass(frozen=True, slots=True)
class EdgeWeights:
    """Couplings of edges, the strongest first, and the ends of their intervals."""

    labels: Sequence[str]
    couplings: FloatArray  # (n_edges,)
    low: FloatArray | None  # (n_edges,), as is high; NaN where there is none
    high: FloatArray | None


def draw_edge_weights(axes: "Axes", weights: EdgeWeights, size: float = 7) -> None:
    """Dots with intervals, one below the other, in letters of this size."""
    n_edges = len(weights.labels)
    heights = np.arange(n_edges)[::-1]
    colours = np.where(weights.couplings > 0, POSITIVE, NEGATIVE)
    if weights.low is not None and weights.high is not None:
        axes.hlines(heights, weights.low, weights.high, color=colours, lw=1.6, alpha=0.55)
    axes.scatter(weights.couplings, heights, s=16, c=colours, zorder=2)
    axes.axvline(0, color="#88888888", lw=1)
    axes.set_yticks(heights, weights.labels, fontsize=size)
    axes.set_ylim(-0.7, max(n_edges, 1) - 0.3)
    axes.set_xlabel("coupling")


def draw_ranked(axes: Any, labels: Sequence[str], panels: Mapping[str, Any]) -> None:
    """Values of columns, a panel a measure, from the first label down."""
    heights = np.arange(len(labels))[::-1]
    for one, (measure, values) in zip(axes, panels.items(), strict=True):
        one.hlines(heights, 0, values, color="#88888888", lw=1)
        one.plot(values, heights, "o", ms=4.5, color=POSITIVE)
        one.axvline(0, color="#88888888", lw=1)
        one.locator_params(axis="x", nbins=4)
        one.set_xlabel(measure)
    axes[0].set_yticks(heights, labels, fontsize=8)
    axes[0].set_ylim(-0.7, max(len(labels), 1) - 0.3)


def draw_means(axes: "Axes", check: FitCheck) -> None:
    """Means of spins, data against model."""
    _scatter(axes, check.data_means, check.model_means, check)
    axes.set(xlabel="mean of a variable in the data", ylabel="mean in the model")


def draw_correlations(axes: "Axes", check: FitCheck) -> None:
    """Correlations of pairs, data against model."""
    _scatter(axes, check.data_correlations, check.model_correlations, check)
    axes.set(xlabel="correlation of a pair in the data", ylabel="correlation in the model")


def draw_sums(axes: "Axes", check: FitCheck) -> None:
    """Distribution of the number of spins that are +1, data and model."""
    n_up = (check.sums + len(check.names)) // 2
    axes.step(n_up, check.data_shares, where="mid", color=POSITIVE, label="data")
    if check.problem is None:
        axes.step(n_up, check.model_shares, where="mid", color=NEGATIVE, ls="--", label="model")
    seen = np.flatnonzero((check.data_shares > 0) | (np.nan_to_num(check.model_shares) > 0))
    if len(seen):
        axes.set_xlim(n_up[seen[0]] - 1, n_up[seen[-1]] + 1)
    axes.set(xlabel="variables that are +1 in a row", ylabel="share of rows", ylim=(0, None))
    axes.legend(frameon=False)


@dataclass(frozen=True, slots=True)
class FitChart:
    """A chart of data and model, and what a report says of it."""

    draw: Callable[["Axes", FitCheck], None]
    caption: str
    description: str  # for those who do not see it


FIT_CHARTS = {  # in the order that reports show
    "means": FitChart(draw_means, "Means of variables", "Means of variables, data against model."),
    "correlations": FitChart(
        draw_correlations, "Correlations of pairs", "Correlations of pairs, data against model."
    ),
    "sums": FitChart(
        draw_sums,
        "How many variables are +1",
        "Distribution of the number of variables that are plus one, data and model.",
    ),
}


def _scatter(axes: "Axes", data: Any, model: Any, check: FitCheck) -> None:
    if check.problem is not None:
        centred: dict[str, Any] = {"ha": "center", "va": "center", "transform": axes.transAxes}
        axes.text(0.5, 0.5, "the model could not be sampled", **centred)
        return
    known = np.isfinite(data) & np.isfinite(model)
    x = data[known]
    y = model[known]
    ends = [
        min(x.min(initial=0), y.min(initial=0)),
        max(x.max(initial=0), y.max(initial=0)),
    ]
    axes.plot(ends, ends, color="0.6", lw=1, zorder=0)
    size = 3 if len(x) > 200 else 4.5
    is_picture = len(x) > _MOST_VECTORS  # whose colour does not follow that of a page
    colour = _ON_ANY_PAGE if is_picture else POSITIVE
    axes.plot(x, y, "o", ms=size, alpha=0.6, mew=0, color=colour, rasterized=is_picture)
