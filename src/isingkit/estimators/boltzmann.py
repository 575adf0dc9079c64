"""Boltzmann learning: couplings changed until Monte Carlo chains have the moments of the data."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from isingkit.arrays import FloatArray
from isingkit.exceptions import NotConvergedWarning, warn
from isingkit.gram import gram
from isingkit.model import IsingModel
from isingkit.worlds.graphs import Seed, generator
from isingkit.worlds.sampling import Chains, number_chains

_SWEEPS = 10  # between two changes of the couplings
# root mean square mismatch, in standard errors of the chains, at which steps follow little but
# noise
_SETTLED = 1.8
_AVERAGED = 20  # steps averaged before a check
_RIDGE = 0.02  # added to covariances before they are inverted
_LONGEST = 0.5  # change of a coupling in one step
_MOST_LOOKS = 256  # at the chains, to compare couplings by
_PATIENCE = 20  # steps without a smaller mismatch, after which it is taken for as small as it gets


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What a model of largest likelihood has to match."""

    means: FloatArray  # (n_spins,); 0 where fields are not fitted
    pair_means: FloatArray  # (n_spins, n_spins)
    n_samples: float
    fit_fields: bool

    def flat(self) -> FloatArray:
        """Means, then pair means above the diagonal."""
        upper = np.triu_indices(len(self.means), 1)
        return np.concatenate([self.means, self.pair_means[upper]])

    def mismatch(self, moments: FloatArray) -> float:
        """Largest difference from other such moments, in standard errors of these."""
        own = self.flat()
        variances = np.maximum(1 - own**2, 1e-12)
        errors = np.sqrt(variances / max(self.n_samples, 1.0))
        off = np.abs(moments - own) / errors
        first = 0 if self.fit_fields else len(self.means)
        return float(off[first:].max(initial=0.0))


def boltzmann(
    target: Moments,
    l2: float,
    *,
    tolerance: float,
    n_chains: int,
    max_steps: int,
    random_state: Seed,
    n_jobs: int | None,
    progress: bool,
) -> tuple[FloatArray, FloatArray, float, int]:
    """Couplings, fields, largest mismatch in standard errors of the data, and steps taken.

    A step moves couplings by the difference between what a mean-field inversion makes of the data's
    moments and what it makes of the chains': a Newton step in all but name, for that is nearly how
    couplings respond to moments. Steps that raise the mismatch are taken back and shortened. Once
    the mismatch is down to the noise of the chains, couplings are averaged over steps, and
    averages compared by chains that run long enough to tell.
    """
    rng = generator(random_state)
    here = _Guess(np.zeros_like(target.pair_means), np.arctanh(target.means))
    chains = number_chains(IsingModel(here.couplings, here.fields), n_chains, True, rng)
    covariance = target.pair_means - np.outer(target.means, target.means)
    ridge = _RIDGE * np.eye(len(covariance))
    inverse = np.asarray(np.linalg.inv(covariance + ridge), dtype=np.float64)
    mean = here
    best = (np.inf, here)
    n_averaged = 0
    n_steps = 0
    rate = 0.5
    looks = 1
    before = here
    last = np.inf
    lowest = np.inf
    since = 0
    with tqdm(total=max_steps, desc="Boltzmann learning", unit="step", disable=not progress) as bar:
        while n_steps < max_steps:
            n_steps += 1
            bar.update()
            seen = _moments(chains, here, target.fit_fields, looks, n_jobs)
            wanted = _penalised(target, l2, here)
            own = seen.flat()
            noise = np.sqrt(np.maximum(1 - own**2, 1e-6) / (looks * chains.n_chains))
            in_errors = (wanted.flat() - own) / noise
            off = float(np.sqrt(np.mean(in_errors**2)))
            if n_averaged == 0 and off > max(1.1 * last, 2 * _SETTLED):
                here = before
                rate = max(rate / 2, 0.01)
                last = 1.05 * last
                continue
            before = here
            last = off
            step = _newton(wanted, seen, inverse)
            couplings = here.couplings + rate * step.couplings
            of_fields = rate * step.fields if target.fit_fields else 0.0
            here = _Guess(couplings, here.fields + of_fields)
            lowest, since = (off, 0) if off < 0.95 * lowest else (lowest, since + 1)
            if n_averaged == 0 and off > _SETTLED and since < _PATIENCE:
                rate = min(1.0, 1.3 * rate)
                continue
            rate = min(rate, 0.3)
            n_averaged = n_averaged + 1
            mean = _moved(mean, here, 1 / n_averaged)
            if n_averaged < _AVERAGED:
                continue
            enough = _looks_to_tell(tolerance, target.n_samples / chains.n_chains)
            there = _moments(chains, mean, target.fit_fields, enough, n_jobs)
            found = _penalised(target, l2, mean).mismatch(there.flat())
            bar.set_postfix(mismatch=f"{found:.2f}")
            best = min(best, (found, mean), key=lambda one: one[0])
            if found <= tolerance:
                break
            here = mean
            n_averaged = 0
            looks = min(2 * looks, 16)
            last = np.inf
    if not np.isfinite(best[0]):
        there = _moments(chains, here, target.fit_fields, 4, n_jobs)
        best = (_penalised(target, l2, here).mismatch(there.flat()), here)
    mismatch, guess = best
    _warn_if_off(mismatch, tolerance)
    return guess.couplings, guess.fields, mismatch, n_steps


class _Guess(NamedTuple):
    couplings: FloatArray
    fields: FloatArray


def _moved(old: _Guess, new: _Guess, by: float) -> _Guess:
    """A fraction of the way from one guess to another."""
    couplings = (1 - by) * old.couplings + by * new.couplings
    return _Guess(couplings, (1 - by) * old.fields + by * new.fields)


def _looks_to_tell(tolerance: float, samples_per_chain: float) -> int:
    """Looks at the chains after which their own noise is a quarter of the tolerance."""
    looks = 16 / min(tolerance, 2.0) ** 2 * samples_per_chain
    return int(np.clip(looks, 4, _MOST_LOOKS))


def _warn_if_off(mismatch: float, tolerance: float) -> None:
    if mismatch > tolerance:
        what = "Boltzmann learning"
        advice = "raise n_chains or max_steps, or give an l2"
        warn(NotConvergedWarning(what=what, residual=mismatch, allowed=tolerance, advice=advice))


def _penalised(target: Moments, l2: float, guess: _Guess) -> Moments:
    """The moments at which the likelihood's slope is that of the penalty."""
    return replace(target, pair_means=target.pair_means - 2 * l2 * guess.couplings)


def _moments(
    chains: Chains, guess: _Guess, fit_fields: bool, n_looks: int, n_jobs: int | None
) -> Moments:
    """Moments of the chains after they have run on with these couplings."""
    graph = IsingModel(guess.couplings, guess.fields).couplings
    structure = (graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data)
    chains = replace(chains, fixed=(structure, guess.fields))
    model = IsingModel(np.zeros_like(guess.couplings))
    looks = []
    for _ in range(n_looks):
        chains.sweep(_SWEEPS, n_jobs=n_jobs)
        looks.append(gram(chains.packed(model, chains.n_chains), n_jobs=n_jobs))
    total = n_looks * chains.n_chains
    means = np.zeros(len(guess.fields))
    if fit_fields:
        means = np.sum([look.spin_sums for look in looks], axis=0) / total
    pair_means = np.sum([look.sums for look in looks], axis=0) / total
    return Moments(means, pair_means, float(total), fit_fields)


def _newton(wanted: Moments, seen: Moments, inverse: FloatArray) -> _Guess:
    """Changes of couplings and fields by the response of mean field, at the data's inverse
    covariances, to differences of moments.

    Those do not depend on the chains, so that the noise of the chains averages out. J = -asinh(2q)
    / 2 is exact on trees without fields. Fields answer the change of couplings and the difference
    of the means.
    """
    off = wanted.means - seen.means
    covariance = (
        wanted.pair_means - seen.pair_means - np.outer(off, seen.means) - np.outer(seen.means, off)
    )
    change = inverse @ covariance @ inverse / np.sqrt(1 + 4 * inverse**2)
    change = np.clip((change + change.T) / 2, -_LONGEST, _LONGEST)
    np.fill_diagonal(change, 0.0)
    of_fields = inverse @ off - change @ seen.means
    return _Guess(change, np.clip(of_fields, -_LONGEST, _LONGEST))
