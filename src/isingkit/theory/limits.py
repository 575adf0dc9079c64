"""How many samples any method needs at least: limits beside what a two-stage estimator needs."""

import math

import numpy as np
from scipy.special import betainc, gammaln

from isingkit.theory.recovery import require_question


def pair_limit(n_spins: int, degree: int, coupling: float, probability: float = 0.99) -> int:
    r"""Samples that any test of single pairs needs, were everything known but the pair in question.

    Then only the product of both spins says anything. Over M samples it is up a binomial number of
    times, with probability 1/2, or (1 \pm \tanh K) / 2 where there is a coupling of either sign.
    All pairs must be decided rightly, with the best of all thresholds.

    Parameters
    ----------
    n_spins
        N.
    degree
        c, of a random regular graph.
    coupling
        K.
    probability
        Of no edge missed and none invented, between 0 and 1.

    Examples
    --------
    >>> from isingkit import theory
    >>> theory.pair_limit(n_spins=1000, degree=3, coupling=0.4)
    687
    """
    require_question(n_spins, degree, coupling, probability)
    n_edges = n_spins * degree / 2
    n_others = n_spins * (n_spins - 1) / 2 - n_edges
    theta = float(np.tanh(abs(coupling)))

    def enough(n_samples: int) -> bool:
        found = _probability_of_all(n_samples, theta, n_edges, n_others)
        return found >= probability

    high = 8
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def fano_limit(n_spins: int, degree: int, coupling: float, probability: float = 0.99) -> int:
    r"""Samples that any method at all needs, by Fano's inequality.

    A sample of a sparse network with E = N c / 2 couplings of one strength says at most
    E (K \tanh K - \log\cosh K) about it, which is what couplings take from the entropy of N free
    spins. There are \binom{N (N - 1) / 2}{E} 2^E such networks, all alike before there are data.

    Parameters
    ----------
    n_spins
        N.
    degree
        c, the mean number of neighbours.
    coupling
        K.
    probability
        Of finding the network exactly, between 0 and 1.

    Examples
    --------
    >>> from isingkit import theory
    >>> theory.fano_limit(n_spins=1000, degree=3, coupling=0.4)
    101
    """
    require_question(n_spins, degree, coupling, probability)
    n_edges = n_spins * degree / 2
    n_pairs = n_spins * (n_spins - 1) / 2
    n_others = n_pairs - n_edges
    log_choices = gammaln(n_pairs + 1) - gammaln(n_edges + 1) - gammaln(n_others + 1)
    log_networks = log_choices + n_edges * np.log(2)
    needed = (probability * log_networks - np.log(2)) / (n_edges * _said_by_sample(abs(coupling)))
    return max(1, int(np.ceil(needed)))


def _said_by_sample(strength: float) -> float:
    r"""K \tanh K - \log\cosh K, without overflow or loss of digits."""
    if strength < 1:
        return strength * math.tanh(strength) - math.log1p(2 * math.sinh(strength / 2) ** 2)
    tail = math.exp(-2 * strength)
    return math.log(2) - 2 * strength * tail / (1 + tail) - math.log1p(tail)


def _probability_of_all(n_samples: int, theta: float, n_edges: float, n_others: float) -> float:
    """That all pairs are decided rightly, at the best threshold.

    Its logarithm is concave in the threshold: it rises, and from the best one on falls.
    """

    def log_probability(least: float) -> float:  # least: agreements from which a pair is an edge
        others = n_samples - least + 1
        invented = 2 * betainc(least, others, 0.5)  # either sign
        missed = betainc(others, least, (1 - theta) / 2)
        return n_others * _log_not(invented) + n_edges * _log_not(missed)

    low, high = n_samples // 2 + 1, n_samples
    while low < high:
        middle = (low + high) // 2
        if log_probability(middle) < log_probability(middle + 1):
            low = middle + 1
        else:
            high = middle
    return math.exp(log_probability(low))


def _log_not(probability: float) -> float:
    return math.log1p(-probability) if probability < 1 else -math.inf
