"""What a two-stage estimator needs: the knobs that suit it best, and the samples with which it
finds everything.
"""

import numpy as np

from isingkit.exceptions import SettingError, require_number
from isingkit.theory.recovery import Recovery, recovery, require_degree, require_sizes
from isingkit.theory.ridge import random_regular
from isingkit.theory.spectrum import RegularSpectrum


def best_two_stage(n_spins: int, degree: int, coupling: float, n_samples: int) -> Recovery:
    """The two-stage estimator, on random regular graphs, with the ridge and prune that make the
    exact network likeliest.

    The ridge is the one at which neighbours stand out most from the second generation, in units of
    the noise; prune and threshold are searched for. `best_threshold()` of the result is the
    threshold that goes with them.

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

    Examples
    --------
    >>> from isingkit import theory
    >>> best = theory.best_two_stage(n_spins=800, degree=3, coupling=0.4, n_samples=640)
    >>> bool(best.probability(best.best_threshold()) > 0.9)
    True
    """
    require_sizes(n_spins, n_samples)
    require_degree(n_spins, degree, coupling)
    ridges = np.geomspace(1e-2, 1e2, 81)
    p = random_regular(
        degree, coupling, n_samples / (n_spins - 1), ridges * n_spins / (n_spins - 1)
    )
    ridge = float(ridges[np.argmax((p.means[0] - p.means[1]) / np.sqrt(p.R))])
    first = float(
        random_regular(
            degree, coupling, n_samples / (n_spins - 1), ridge * n_spins / (n_spins - 1)
        ).means[0]
    )
    low, high = 0.2, 0.95
    for _ in range(2):
        grid = np.linspace(low, high, 9)
        tried = [
            _or_none(n_spins, degree, coupling, n_samples, ridge, float(share * first))
            for share in grid
        ]
        errors = [
            np.inf if one is None else float(one._errors(one.best_threshold())[0]) for one in tried
        ]
        place = int(np.argmin(errors))
        best, low, high = tried[place], grid[max(0, place - 1)], grid[min(8, place + 1)]
    if best is None:
        raise SettingError(
            setting="n_samples",
            value=n_samples,
            expected="more: stage one leaves more candidates than that",
        )
    return best


def samples_needed(n_spins: int, degree: int, coupling: float, probability: float = 0.99) -> int:
    """Samples with which the two-stage estimator finds a random regular network exactly, with this
    probability.

    With its best knobs, which `best_two_stage` tells. Checked against planted worlds for (degree -
    1) tanh^2 coupling up to 0.3; nearer to 1, where the phase ends, it promises too much (at 0.64:
    37 of 40 networks instead of 99 percent).

    Parameters
    ----------
    n_spins
        N.
    degree
        c.
    coupling
        K.
    probability
        Of no edge missed and none invented, between 0 and 1.

    Examples
    --------
    >>> from isingkit import theory
    >>> theory.samples_needed(n_spins=200, degree=3, coupling=0.4) <
    theory.samples_needed(n_spins=200, degree=3, coupling=0.3) True
    """
    require_number("probability", probability, above=0)
    if probability > 1 - 1e-9:
        raise SettingError(
            setting="probability", value=probability, expected="below 1: nothing is certain"
        )
    require_number("n_spins", n_spins, at_least=3, whole=True)
    require_degree(n_spins, degree, coupling)
    RegularSpectrum(degree, coupling)

    def enough(n_samples: int) -> bool:
        try:
            best = best_two_stage(n_spins, degree, coupling, n_samples)
        except SettingError:  # too many candidates
            return False
        return bool(best.probability(best.best_threshold()) >= probability)

    high = 4 * (degree + 2)
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _or_none(
    n_spins: int, degree: int, coupling: float, n_samples: int, ridge: float, prune: float
) -> Recovery | None:
    try:
        return recovery(n_spins, degree, coupling, n_samples, ridge=ridge, prune=prune)
    except SettingError:  # too many candidates
        return None
