"""The picture of a Plan."""

from typing import TYPE_CHECKING, Any

import numpy as np

from isingkit.arrays import IntArray
from isingkit.drawing import NEGATIVE, POSITIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isingkit.plan.result import Plan

_FALSE = "0.45"


def draw_plan(plan: "Plan", axes: "Axes") -> None:
    """Against the number of rows: how probable success is, with the band of the simulation, what
    share of the edges is found, and what share of these is false. The rows that are needed are
    dotted, their interval is shaded.
    """
    table = plan.table()
    rows = table["n_rows"]
    log_rows = np.linspace(np.log(rows.min()), np.log(rows.max()), 200)
    low, high = plan.success.band(log_rows)
    smooth = np.exp(log_rows)
    axes.axvspan(plan.low, plan.high, color="0.9", lw=0)
    axes.axvline(plan.n_rows, color="0.5", ls=":", lw=1)
    axes.fill_between(smooth, low, high, color=POSITIVE, alpha=0.15, lw=0)
    label = f"probability to find {plan.goal}"
    axes.plot(smooth, plan.success.probability(log_rows), color=POSITIVE, label=label)
    areas = 10 + 3 * table["studies"]
    axes.scatter(rows, table["success"], s=areas, color=POSITIVE, alpha=0.6, lw=0)
    errors: dict[str, Any] = {"lw": 1.2, "ms": 4, "capsize": 2}
    found = {"color": NEGATIVE, "fmt": "s--", "label": "share of the edges found", **errors}
    axes.errorbar(rows, table["found"], table["found_error"], **found)
    false = {"color": _FALSE, "fmt": "^:", "label": "false share of what is found", **errors}
    axes.errorbar(rows, table["false_share"], table["false_error"], **false)
    axes.set_xscale("log")
    _write_ticks(axes, rows, plan.n_rows)
    axes.set(xlabel="rows", ylabel="share or probability", ylim=(-0.03, 1.05))
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1)


def _write_ticks(axes: "Axes", rows: IntArray, needed: int) -> None:
    """Numbers of rows as people write them: the ends and the answer."""
    ends = [int(rows.min()), needed, int(rows.max())]
    apart = np.log(rows.max() / rows.min()) / 12
    kept = [tick for tick in ends if tick == needed or abs(np.log(tick / needed)) > apart]
    axes.set_xticks(kept, [str(tick) for tick in kept])
    axes.minorticks_off()
