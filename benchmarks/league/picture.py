"""The picture of one world: F1 and false share of every method."""

from matplotlib.figure import Figure

from league.methods import METHODS
from league.summary import Standing

SIZE = (5.6, 1.9)  # inches


def picture(standing: Standing) -> Figure:
    """Means with one standard error to each side; oracles hollow."""
    methods = [name for name in METHODS if name in standing.rows]
    figure = Figure(figsize=SIZE, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, measure in ((left, "f1"), (right, "false_share")):
        for height, name in enumerate(reversed(methods)):
            estimate = standing.estimate(name, measure)
            axes.errorbar(
                estimate.mean,
                height,
                xerr=estimate.error,
                fmt="o",
                color="C0" if name.startswith("auto") else "0.3",
                markerfacecolor="none" if METHODS[name].has_oracle else None,
                markersize=4,
            )
        axes.grid(axis="x", alpha=0.3)
    labels = [f"{name}, oracle" if METHODS[name].has_oracle else name for name in methods]
    left.set_yticks(range(len(methods)), labels[::-1])
    left.set_xlabel("F1")
    level = METHODS["auto-fdr"].level
    assert level is not None
    right.axvline(level, color="C3", linewidth=0.8)
    right.set_xlabel("false share (line: AutoIsing's level)")
    return figure
