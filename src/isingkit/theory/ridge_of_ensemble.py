"""What ridge regression finds for the average spin of an ensemble of trees."""

import numpy as np

from isingkit.arrays import FloatArray
from isingkit.exceptions import SettingError, require_instance, require_number
from isingkit.theory.population import EnsembleSpectrum, Population
from isingkit.theory.prediction import MeanEstimates, Prediction, checked, predicted, solved

SMALL = 1e-6  # effective ridge below which means beyond the neighbours do not count
MOST_NEIGHBOURS = 200_000  # of all members of a population together


def erdos_renyi(
    mean_degree: float, coupling: float, samples_per_spin: float, ridge: float = 0.0
) -> Prediction:
    """Prediction for the average spin of an Erdos-Renyi graph, at infinite depth. [eq:EOS-sparse]

    Couplings are of one strength. By population dynamics; three to four digits. `means` holds the
    mean of the first generation only.

    Parameters
    ----------
    mean_degree
        Mean number of neighbours; degrees are Poissonian.
    coupling
        K, the strength of all couplings.
    samples_per_spin
        alpha.
    ridge
        lambda.

    Examples
    --------
    >>> from isingkit import theory
    >>> p = theory.erdos_renyi(mean_degree=4, coupling=0.4, samples_per_spin=0.9, ridge=0.1)
    >>> round(p.rss, 2)
    0.96
    """
    return of_ensemble(poisson_spectrum(mean_degree, coupling), samples_per_spin, ridge)


def of_ensemble(
    spectrum: EnsembleSpectrum, samples_per_spin: float, ridge: float = 0.0
) -> Prediction:
    """Prediction for the average spin of any ensemble of trees, at infinite depth. [eq:EOS-sparse]

    Degrees and couplings may be unequal. `bias` and `means` are averages over couplings, not over
    spins; `means` holds the first generation only.

    Parameters
    ----------
    spectrum
        The ensemble, e.g. EnsembleSpectrum(degrees=[0.2, 0.3, 0.5], coupling=[0.2, 0.6]).
    samples_per_spin
        alpha.
    ridge
        lambda.

    Examples
    --------
    >>> from isingkit import theory
    >>> ensemble = theory.EnsembleSpectrum(degrees=[0, 0, 0.5, 0.5], coupling=[0.2, 0.6])
    >>> round(theory.of_ensemble(ensemble, samples_per_spin=2).kappa, 6)
    2.0
    """
    require_instance("spectrum", spectrum, EnsembleSpectrum, "an EnsembleSpectrum")
    require_number("samples_per_spin", samples_per_spin, above=0)
    require_number("ridge", ridge, at_least=0, finite=False)
    alpha, penalty = checked(samples_per_spin, ridge)
    state = solved(spectrum, alpha, penalty)
    k = float(state.effective_ridge)
    return predicted(state, _mean_estimates(spectrum.population(k), k), depth=None)


def poisson_spectrum(mean_degree: float, coupling: float) -> EnsembleSpectrum:
    """Spectrum of Erdos-Renyi graphs with couplings of one strength."""
    require_number("mean_degree", mean_degree, above=0)
    require_number("coupling", coupling)
    if mean_degree > 1000:
        expected = "at most 1000: the theory is about sparse graphs"
        raise SettingError(setting="mean_degree", value=mean_degree, expected=expected)
    largest = int(mean_degree + 12 * np.sqrt(mean_degree) + 20)
    degrees = np.arange(largest)
    log_factorials = np.cumsum(np.log(np.maximum(degrees, 1)))
    log_law = degrees * np.log(mean_degree) - mean_degree - log_factorials
    size = int(np.clip(MOST_NEIGHBOURS / mean_degree, 1000, 50_000))
    return EnsembleSpectrum(np.exp(log_law), coupling, size=size)


def _mean_estimates(spins: Population, k: float) -> MeanEstimates:
    owner = spins.edge_of
    couplings = spins.couplings
    # estimate of a neighbour: w g_i g_j / P_ii, where g_j is that of its branch
    weights = np.sinh(2 * couplings) / 2
    means = weights * spins.g[owner] * spins.branch / spins.p[owner]
    squares = _sums_of_squares(spins, k, means)
    # the neighbours' part of the squares is replaced by their squared errors
    replaced = couplings**2 - 2 * couplings * means
    error = squares + np.bincount(owner, weights=replaced, minlength=len(spins.g))
    coupled = couplings > 0
    mean = np.mean(means) if len(means) else 0.0
    ratios = means[coupled] / couplings[coupled]
    bias = np.mean(ratios) if len(ratios) else np.nan
    unexplained = spins.p2 / spins.p**2
    return MeanEstimates(
        by_generation=np.array([mean]),
        squares=np.mean(squares),
        error=np.mean(error),
        bias=bias,
        unexplained=np.mean(unexplained),
    )


def _sums_of_squares(spins: Population, k: float, means: FloatArray) -> FloatArray:
    """(n,): sum of squares of all mean estimates of each spin; `means` are of neighbours."""
    if np.isinf(k):
        return spins.t2 - 1  # [C^2]_ii - 1
    if k > SMALL:
        squared = (spins.p - spins.p2) / k  # [P^2]_ii with P = (C + k)^-1
        return np.asarray(squared / spins.p**2 - 1)
    # least squares has no further means
    total = np.bincount(spins.edge_of, weights=means**2, minlength=len(spins.g))
    return total.astype(np.float64)
