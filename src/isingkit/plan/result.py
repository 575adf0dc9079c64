"""Plan: how many rows will be needed, and what studies of about so many rows find."""

import html
from dataclasses import dataclass
from textwrap import fill

import numpy as np

from isingkit.arrays import FloatArray
from isingkit.plan.study import Studies
from isingkit.plan.success_curve import SuccessCurve
from isingkit.result_table import ResultTable, as_table

_DIGITS = 9  # of shares that are compared: rounding does not reach them
_WIDTH = 88  # of lines of text
_NEAR = 0.3  # in logarithms of rows: studies that say what is found with about so many
_ALIKE = 1e-9  # logarithms of the same number of rows
_FEWEST = 32  # studies for that


@dataclass(frozen=True, slots=True)
class Success:
    """What makes a study one that found enough."""

    find: float  # share of the edges, at least
    most_false: float | None  # share of what is found, at most

    def of(self, studies: Studies) -> FloatArray:
        """(n_studies,): 1 for each that did."""
        enough = np.round(studies.found - self.find, _DIGITS) >= 0
        if self.most_false is not None:
            enough &= np.round(studies.false - self.most_false, _DIGITS) <= 0
        return np.asarray(enough, dtype=np.float64)

    def __str__(self) -> str:
        false = "" if self.most_false is None else f" with at most {self.most_false:.0%} false"
        return f"at least {self.find:.0%} of the edges{false}"


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How many rows will be needed.

    A study succeeds when it finds as large a share of the edges as `goal` says; with `n_rows` it
    does so with the probability asked for.
    """

    n_rows: int
    low: int  # of the 95 percent interval of n_rows that simulation leaves open
    high: int
    goal: Success
    probability: float  # of finding so many
    precision: float  # half-width of the 95 percent interval of that probability, as reached
    found: float  # share of the edges that studies of n_rows find on average
    found_error: float  # its standard error
    false_share: float  # share of what they find that is no edge
    false_error: float
    first_guess: int  # rows, by theory, before anything was simulated
    network: str  # which network, in words
    method: str  # how it is learnt, in words
    studies: Studies
    success: SuccessCurve

    @property
    def n_studies(self) -> int:
        """Simulated in all."""
        return len(self.studies)

    def table(self) -> ResultTable:
        """A row for each number of rows that was simulated: n_rows, studies, success (share of the
        studies that find enough), found (mean share of the edges), found_error, false_share and
        false_error.
        """
        studies = self.studies
        sizes = np.unique(studies.n_rows)
        parts = [studies.n_rows == size for size in sizes]
        success = self.goal.of(studies)
        columns = {
            "n_rows": sizes,
            "studies": np.array([part.sum() for part in parts]),
            "success": np.array([success[part].mean() for part in parts]),
            "found": np.array([studies.found[part].mean() for part in parts]),
            "found_error": np.array([_error(studies.found[part]) for part in parts]),
            "false_share": np.array([studies.false[part].mean() for part in parts]),
            "false_error": np.array([_error(studies.false[part]) for part in parts]),
        }
        return as_table(columns)

    def sentence(self) -> str:
        """The answer in words."""
        return (
            f"With {self.n_rows} rows ({self.low} to {self.high}) a study finds {self.goal} with "
            f"probability {self.probability:g}."
        )

    def details(self) -> str:
        """What else is known, and from what."""
        return (
            f"Such studies find {self.found:.1%} of the edges on average (standard error "
            f"{self.found_error:.1%}), and {self.false_share:.1%} of what they find is false "
            f"({self.false_error:.1%}). By {self.n_studies} simulated studies, "
            f"{self.low} to {self.high} rows are needed with 95 percent confidence, and the "
            f"probability is known to within {self.precision:.2f}. A formula, without simulation, "
            f"gave {self.first_guess} rows. Method: {self.method}, for {self.network}."
        )

    def __str__(self) -> str:
        return f"{self.sentence()}\n\n{fill(self.details(), _WIDTH)}\n\n{self.table()}"

    def __repr__(self) -> str:
        return (
            f"Plan(n_rows={self.n_rows}, low={self.low}, high={self.high}, "
            f"probability={self.probability:g})"
        )

    def _repr_html_(self) -> str:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        from isingkit.notebook import picture_html
        from isingkit.plan.picture import draw_plan

        figure = Figure(figsize=(6, 4))
        FigureCanvasAgg(figure)
        draw_plan(self, figure.add_subplot())
        picture = picture_html(figure, f"Share of edges found against rows. {self.sentence()}")
        table = self.table()._repr_html_()
        words = html.escape(self.details())
        return f"<p><b>{self.sentence()}</b> {words}</p>{picture}{table}"


def value_at(log_rows: float, at: FloatArray, values: FloatArray) -> tuple[float, float]:
    """The mean of values with so many rows, and its standard error: a line through studies of about
    as many.

    at, values: (n_studies,), logarithms of rows and what was found with them
    """
    distances = np.abs(at - log_rows)
    farthest = np.sort(distances)[: min(_FEWEST, len(at))].max()
    is_near = distances <= max(farthest, _NEAR)
    at = at[is_near]
    values = values[is_near]
    centre = at.mean()
    off = at - centre
    has_slope = bool(np.ptp(at) > _ALIKE)
    spread = float(off @ off) if has_slope else np.inf
    slope = float(off @ values) / spread
    ahead = log_rows - centre
    residuals = values - values.mean() - slope * off
    variance = float(residuals @ residuals) / max(len(values) - 1 - has_slope, 1)
    leverage = 1 / len(values) + ahead**2 / spread
    value = float(values.mean() + slope * ahead)
    return min(max(value, 0.0), 1.0), float(np.sqrt(variance * leverage))


def _error(values: FloatArray) -> float:
    """Standard error of the mean; NaN of a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
