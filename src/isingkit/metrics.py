"""Scores of one IsingModel against another, and curves of directed estimates against a truth."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse

from isingkit.arrays import FloatArray, IntArray
from isingkit.exceptions import ModelMismatchError, SettingError, require_instance
from isingkit.model import IsingModel
from isingkit.notebook import values_html


@dataclass(frozen=True, slots=True)
class Scores:
    """How well a network was found. Edges count once; where nothing is claimed, precision is 1."""

    precision: float  # fraction of the edges found that are true
    recall: float  # fraction of the true edges that were found
    f1: float  # harmonic mean of the two
    exact: bool  # whether exactly the true edges were found
    sign_accuracy: float  # fraction of the true edges found whose sign is right
    rss: float  # squared error of the couplings of one spin, mean over spins [eq:RSS-def-1]
    true_positives: int
    false_positives: int
    false_negatives: int

    def _repr_html_(self) -> str:
        return values_html(asdict(self))


@dataclass(frozen=True, slots=True, eq=False)
class PrecisionRecall:
    """Precision and recall of directed estimates at each threshold."""

    thresholds: FloatArray  # (n,)
    precision: FloatArray  # (n,): 1 where nothing passes
    recall: FloatArray  # (n,)


def score(model: IsingModel, truth: IsingModel) -> Scores:
    """Scores of `model` against `truth`. Spins are matched by name, or by position where one of the
    two has none but x0, x1, ...

    Examples
    --------
    >>> from isingkit import IsingModel, score
    >>> chain = IsingModel([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> found = IsingModel([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    >>> score(found, chain).recall
    0.5
    """
    for setting, value in (("model", model), ("truth", truth)):
        require_instance(
            setting, value, IsingModel, "an IsingModel, such as model_ of a fitted estimator"
        )
    found = _in_order_of(truth, model)
    both = found.sign().multiply(truth.couplings.sign())  # products of tiny couplings would be 0
    true_positives = int(both.nnz) // 2
    false_positives = model.n_edges - true_positives
    false_negatives = truth.n_edges - true_positives
    precision = true_positives / model.n_edges if model.n_edges else 1.0
    recall = true_positives / truth.n_edges if truth.n_edges else 1.0
    total = precision + recall
    squares = abs(found - truth.couplings) ** 2
    f1 = 2 * precision * recall / total if total else 0.0
    sign_accuracy = float((both.data > 0).mean()) if true_positives else 1.0
    return Scores(
        precision=precision,
        recall=recall,
        f1=f1,
        exact=false_positives == false_negatives == 0,
        sign_accuracy=sign_accuracy,
        rss=float(squares.sum()) / max(1, truth.n_spins),
        true_positives=true_positives,
        false_positives=false_positives,
        false_negatives=false_negatives,
    )


def _in_order_of(truth: IsingModel, model: IsingModel) -> Any:
    """The model's couplings, spins in the order of the truth."""
    have_same_names = set(model.names) == set(truth.names)
    unnamed = tuple(f"x{i}" for i in range(truth.n_spins))
    is_by_position = unnamed in (model.names, truth.names)
    if model.n_spins != truth.n_spins or not (have_same_names or is_by_position):
        what = "the model and the truth"
        raise ModelMismatchError(left=model.names, right=truth.names, what=what)
    if not have_same_names:
        return model.couplings
    place = {name: i for i, name in enumerate(model.names)}
    order = [place[name] for name in truth.names]
    return model.couplings[order][:, order]


def precision_recall(estimates: Any, truth: IsingModel, thresholds: Any = None) -> PrecisionRecall:
    """Precision and recall of the directed couplings |estimates[i, j]| > threshold, i != j.
    [eq:Precision-Recall]

    Parameters
    ----------
    estimates
        (n_spins, n_spins), dense or sparse: row i the estimate of J_i, such as `estimates_` of an
        estimator.
    truth
        The planted model.
    thresholds
        Where to look; by default 0 and every value at which something changes.
    """
    require_instance("truth", truth, IsingModel, "an IsingModel")
    if not scipy.sparse.issparse(estimates):
        estimates = np.asarray(estimates)
    if estimates.shape != truth.couplings.shape:
        shape = truth.couplings.shape
        expected = f"an array of shape {shape}, such as estimates_ of a fitted estimator"
        raise SettingError(setting="estimates", value=estimates.shape, expected=expected)
    edges = truth.couplings.astype(bool)
    sizes, true_sizes = _sizes(estimates, edges)
    if thresholds is None:
        thresholds = np.unique(np.concatenate([[0.0], sizes]))
    thresholds = np.asarray(thresholds, dtype=np.float64)
    n_found = _count_above(sizes, thresholds)
    n_true = _count_above(true_sizes, thresholds)
    precision = np.where(n_found > 0, n_true / np.maximum(n_found, 1), 1.0)
    recall = n_true / edges.nnz if edges.nnz else np.ones_like(precision)
    return PrecisionRecall(thresholds, precision, recall)


def _sizes(estimates: Any, edges: Any) -> tuple[FloatArray, FloatArray]:
    """|estimates| of all pairs, and of those with an edge; zeros may be left out."""
    if scipy.sparse.issparse(estimates):
        entries = estimates.tocoo()
        off_diagonal = entries.row != entries.col
        return np.abs(entries.data[off_diagonal]), np.abs(estimates.multiply(edges).data)
    off_diagonal = ~np.eye(len(estimates), dtype=bool)
    return np.abs(estimates[off_diagonal]), np.abs(estimates[edges.nonzero()])


def _count_above(sizes: FloatArray, thresholds: FloatArray) -> IntArray:
    """How many sizes are above each threshold."""
    return len(sizes) - np.searchsorted(np.sort(sizes), thresholds, side="right")
