"""Measures of one answer: of a network against the truth, with what its intervals hold."""

from typing import Any

import numpy as np

import isingkit as ik
from isingkit.model import log_pseudolikelihood
from league.methods import Answer
from league.worlds import Draw

Row = dict[str, Any]


def measured(answer: Answer, drawn: Draw) -> Row:
    """How well a network was found: one row of a world's table."""
    scores = ik.score(answer.model, drawn.truth)
    n_spins = drawn.truth.n_spins
    row = {
        "edges": scores.true_positives + scores.false_positives,
        "f1": scores.f1,
        "precision": scores.precision,
        "recall": scores.recall,
        "exact": int(scores.exact),
        "false_share": 1 - scores.precision,
        "any_false": int(scores.false_positives > 0),
        "rms_error": np.sqrt(scores.rss / (n_spins - 1)),  # over all pairs
        "held_out": answer.held_out(drawn.held_out),
        "held_out_truth": log_pseudolikelihood(drawn.truth, drawn.held_out, None),
        "cpu_seconds": answer.cpu_seconds,
    }
    if hasattr(answer.fit, "intervals_"):
        row |= _of_intervals(answer.fit, drawn.truth)
    return {name: _rounded(value) for name, value in row.items()}


def _of_intervals(fit: Any, truth: ik.IsingModel) -> Row:
    """Of the edges found that are true: how many there are, how many 95 percent intervals hold
    the coupling, and the mean of (estimate - truth) in the direction of the truth, in standard
    errors.
    """
    place = {name: i for i, name in enumerate(truth.names)}
    edges = fit.edges_
    sources = [place[name] for name in edges["source"]]
    targets = [place[name] for name in edges["target"]]
    couplings = np.asarray(truth.couplings[sources, targets]).ravel() if len(edges) else np.empty(0)
    is_true = couplings != 0
    low, high = np.reshape(fit.intervals_, (-1, 2)).T
    holds = (low <= couplings) & (couplings <= high)
    deviations = (edges["coupling"] - couplings) * np.sign(couplings) / edges["std_error"]
    n_true = int(is_true.sum())
    return {
        "intervals": n_true,
        "holding": int(holds[is_true].sum()),
        "bias_per_error": float(deviations[is_true].mean()) if n_true else None,
    }


def _rounded(value: Any) -> Any:
    """Seven digits are more than any measure has."""
    return float(f"{value:.7g}") if isinstance(value, float) else value
