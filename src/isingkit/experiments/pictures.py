"""What pictures of figures share."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def legend_below(figure: "Figure", axes: "Axes") -> None:
    """One legend for all panels, of what one of them shows, where it covers no data."""
    handles, labels = axes.get_legend_handles_labels()
    n_columns = min(len(labels), 6)
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=n_columns,
        frameon=False,
        fontsize=8,
    )
