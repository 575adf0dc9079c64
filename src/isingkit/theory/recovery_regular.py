"""Recovery of random regular graphs, for one stage or two."""

import numpy as np

from isingkit.exceptions import SettingError
from isingkit.theory.linear import linear_means
from isingkit.theory.pairs import Pairs
from isingkit.theory.recovery import Recovery, require_degree, require_sizes
from isingkit.theory.regular_stage_one import FirstStage, RegularGraph, first_stage
from isingkit.theory.regular_stage_two import second_stage


def recovery(
    n_spins: int,
    degree: int,
    coupling: float,
    n_samples: int,
    *,
    ridge: float = 0.0,
    prune: float | None = None,
    rule: str = "average",
) -> Recovery:
    """Precision, recall and the probability of the exact network on random regular graphs.

    For one stage or two.

    Parameters
    ----------
    n_spins
        N.
    degree
        c.
    coupling
        K.
    n_samples
        M.
    ridge
        lambda of stage one; 0 is least squares, which needs M > N.
    prune
        K_1 of a two-stage estimator; None is one stage.
    rule
        "average": edges by the mean of both directed estimates, as estimators do; "directed": each
        estimate by itself, as the paper does.

    Examples
    --------
    >>> from isingkit import theory
    >>> setting = dict(n_spins=800, degree=3, coupling=0.4, n_samples=640, ridge=0.1)
    >>> two_stage = theory.recovery(**setting, prune=0.1, rule="directed")
    >>> round(float(two_stage.precision(0.15)), 3), round(float(two_stage.recall(0.15)), 3)
    (1.0, 0.999)
    """
    require_sizes(n_spins, n_samples, ridge, prune)
    require_degree(n_spins, degree, coupling)
    if rule not in ("average", "directed"):
        raise SettingError(setting="rule", value=rule, expected='"average" or "directed"')
    directions = 2 if rule == "average" else 1
    graph = RegularGraph(degree, abs(coupling), n_spins, n_samples)
    first = first_stage(graph, ridge)
    if prune is None:
        pairs = _one_stage(graph, first, directions)
    else:
        pairs = second_stage(graph, first, prune, directions)
    return Recovery(n_spins, n_samples, ridge, prune, pairs, directions)


def _one_stage(graph: RegularGraph, first: FirstStage, directions: int) -> Pairs:
    """Its second stage is Theorem 1's, by which skewness is scaled."""
    count = len(first.count)
    second_mean = np.zeros(count)
    second_mean[0] = linear_means(np.full(graph.degree, graph.strength))[0]
    nothing = np.zeros(count)
    return Pairs(
        count=first.count / directions * graph.n_spins,
        is_edge=first.is_edge,
        mean=first.mean,
        std=first.std,
        second_mean=second_mean,
        slope=nothing,
        second_std=np.ones(count),
    )
