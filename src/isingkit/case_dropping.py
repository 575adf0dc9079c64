"""CaseDropping: how well centralities keep their order when rows are dropped."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from isingkit.arrays import FloatArray
from isingkit.centrality import measures_of
from isingkit.estimators.base import IsingEstimator
from isingkit.estimators.resampling import Refits, over_resamples, refits, subsample
from isingkit.exceptions import IsingkitError, SettingError, require_number
from isingkit.model import IsingModel
from isingkit.result_table import ResultTable, as_table
from isingkit.worlds.graphs import Seed, generator

_SHARES = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75)
_DIGITS = 9  # of correlations: rounding does not reach them
_NO_SPREAD = 1e-12  # of the largest value
_BAND = (0.025, 0.975)


@dataclass(frozen=True, slots=True, eq=False)
class CaseDropping:
    """Correlations of centralities learnt from part of the rows with those learnt from all.

    By measure: "edge" (couplings of all pairs), "strength", "expected_influence", "betweenness" and
    "closeness". Where a part gives no network, or all columns the same centrality, it says nothing
    of their order, and the correlation is 0. Where all rows do so, it is NaN.
    """

    dropped: FloatArray  # (n_shares,): share of the rows that was dropped
    correlations: dict[str, FloatArray]  # (n_shares, n_resamples) of each measure

    @property
    def n_resamples(self) -> int:
        """Of each share."""
        return self.correlations["edge"].shape[1]

    def table(self) -> ResultTable:
        """Mean correlations, and the interval that holds 95 percent of them, by measure and share
        dropped.
        """
        n_shares = len(self.dropped)
        values = np.concatenate(list(self.correlations.values()))
        low, high = np.quantile(values, _BAND, axis=1)
        measures = list(self.correlations)
        columns = {
            "measure": np.repeat(measures, n_shares),
            "dropped": np.tile(self.dropped, len(measures)),
            "correlation": values.mean(axis=1),
            "low": low,
            "high": high,
        }
        return as_table(columns)

    def cs_coefficients(
        self, *, correlation: float = 0.7, probability: float = 0.95
    ) -> dict[str, float]:
        """By measure the largest share of rows that can be dropped so that, with a probability,
        the correlation is at least so large; 0 where none of the shares looked at can.

        Epskamp, Borsboom and Fried (2018) ask for 0.25 at least, and rather 0.5, before the order
        of columns is interpreted.

        Parameters
        ----------
        correlation
            The smallest that will do.
        probability
            Share of the parts that must reach it.
        """
        require_number("correlation", correlation)
        require_number("probability", probability)
        coefficients = {}
        for measure, values in self.correlations.items():
            is_reached = np.round(values, _DIGITS) >= correlation
            will_do = np.round(is_reached.mean(axis=1), _DIGITS) >= probability
            largest = float(self.dropped[will_do].max(initial=0.0))
            coefficients[measure] = float("nan") if np.isnan(values).any() else largest
        return coefficients

    def __repr__(self) -> str:
        coefficients = self.cs_coefficients()
        found = ", ".join(f"{name} {value:.2g}" for name, value in coefficients.items())
        return f"CaseDropping(CS-coefficients: {found})"

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>{self.table()._repr_html_()}"


def case_dropping(
    estimator: IsingEstimator,
    X: Any,
    *,
    dropped: Sequence[float] = _SHARES,
    n_resamples: int = 100,
    sample_weight: Any = None,
    counts: Any = None,
    groups: Any = None,
    covariates: Any = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> CaseDropping:
    """How well centralities, and couplings, learnt from part of the rows agree with those learnt
    from all: R's bootnet with type = "case".

    The same for any number of threads. The estimator itself stays as it is.

    Parameters
    ----------
    estimator
        Any of isingkit, such as `ELassoIsing()`, fitted or not.
    X
        Samples, as for its `fit`.
    dropped
        Shares of the rows to drop, each above 0 and below 1.
    n_resamples
        How many random parts of the rows, for each share.
    sample_weight
        How much each row matters.
    counts
        How many equal samples each row stands for; these are dropped one by one.
    groups
        Which rows belong together; these are dropped together.
    covariates
        What else is known of each row, as for the estimator's `fit`: it stays with the row.
    random_state
        Seed, or a numpy Generator.
    n_jobs
        Threads to use; None or -1 is all.
    progress
        Whether to show a progress bar.

    Examples
    --------
    >>> import isingkit as ik
    >>> chain = ik.IsingModel([[0, 0.5, 0], [0.5, 0, 0.2], [0, 0.2, 0]], names=["a", "b", "c"])
    >>> rows = ik.exact(chain).sample(n_samples=1000, random_state=1)
    >>> ik.case_dropping(ik.ELassoIsing(), rows, random_state=2).cs_coefficients()["strength"]
    0.75
    """
    shares = _checked_shares(dropped)
    require_number("n_resamples", n_resamples, at_least=2, whole=True)
    rows = refits(estimator, X, sample_weight, counts, groups, covariates)
    own, *seeds = generator(random_state).spawn(1 + len(shares) * n_resamples)
    whole = rows.network((rows.packed, rows.weights), own)
    shared = _Shared(rows, _values_of(whole))
    tasks = list(zip(np.repeat(shares, n_resamples).tolist(), seeds, strict=True))
    found = over_resamples(_correlations, shared, tasks, "part", n_jobs, progress)
    by_measure = np.array(found).T.reshape(-1, len(shares), n_resamples)
    return CaseDropping(shares, dict(zip(shared.values, by_measure, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class _Shared:
    """What every part is drawn from and compared with."""

    rows: Refits
    values: dict[str, FloatArray]  # of the network of all rows


def _correlations(shared: _Shared, task: tuple[float, Generator]) -> list[float]:
    """Of each measure, learnt from part of the rows and from all."""
    share, rng = task
    rows = shared.rows
    part = {name: np.zeros_like(whole) for name, whole in shared.values.items()}
    try:
        kept = subsample(rows.packed, rows.weights, 1 - share, rng)
        part = _values_of(rows.network(kept, rng))
    except IsingkitError:
        pass  # without edges, as nothing can be learnt from so few rows
    return [_correlation(part[name], whole) for name, whole in shared.values.items()]


def _values_of(model: IsingModel) -> dict[str, FloatArray]:
    pairs = np.triu_indices(model.n_spins, 1)
    return {"edge": model.couplings.toarray()[pairs], **measures_of(model)}


def _correlation(part: FloatArray, whole: FloatArray) -> float:
    """Pearson's; 0 where the part does not vary, NaN where the whole does not."""
    of_part = _spread(part)
    of_whole = _spread(whole)
    if not of_whole.any():
        return float("nan")
    if not of_part.any():
        return 0.0
    return float(of_part @ of_whole / np.sqrt((of_part @ of_part) * (of_whole @ of_whole)))


def _spread(values: FloatArray) -> FloatArray:
    """(n,): how far values are from their mean; exactly 0 where they are all the same."""
    off = values - values.mean()
    is_spread = np.abs(off).max() > _NO_SPREAD * np.abs(values).max()
    return np.asarray(off * is_spread)


def _checked_shares(dropped: Sequence[float]) -> FloatArray:
    """(n_shares,): different ones, sorted."""
    shares = np.unique(np.asarray(dropped, dtype=np.float64))
    if len(shares) == 0 or not (shares > 0).all() or not (shares < 1).all():
        expected = "numbers above 0 and below 1"
        raise SettingError(setting="dropped", value=dropped, expected=expected)
    return shares
