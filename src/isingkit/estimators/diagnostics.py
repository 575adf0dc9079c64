"""Diagnostics: when not to trust a network, in plain words."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.stats import norm

from isingkit.arrays import FloatArray
from isingkit.estimators.bits import Bits, bits_of
from isingkit.estimators.network import Network
from isingkit.estimators.normal import NormalEquations
from isingkit.estimators.outlook import AllPairs, OutstandingPairs
from isingkit.estimators.screen import Pairs
from isingkit.exceptions import ReliabilityWarning, warn
from isingkit.packing import PackedSpins

_LEAST_LEFT = 0.4  # of the variance of spins, once their neighbours are known
_MOST_OFF = 0.1  # of couplings, between Bethe's inversion and the refit
_MOST_ORDER = 0.3  # of all variance in one mode
_MOST_LEFTOVER = (
    2.5  # largest eigenvalue of deviates outside the network, in units of that of noise
)
_LEAST_POWER = 0.95  # chance to find an edge like the median of those found
_TYPICAL = 0.3  # coupling, where none was found
_MOST_MEMORY = 0.05  # autocorrelation of rows
_ALIKE = 0.95  # correlation
_MOST_LATE = 0.1  # share of edges that the screen had dropped
_LARGE = 5.0  # standard errors
_SPINS = 256  # enough to tell whether rows are alike
# spins, where all are too many, to tell whether these move together or have a common cause
_ENOUGH = 4096


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was looked at."""

    check: str
    value: float
    limit: float  # beyond it, the check is serious
    serious: bool
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What the checks look at: a network found, and on the way to it."""

    network: Network
    couplings: FloatArray  # (n_edges,): of the refit
    errors: FloatArray  # (n_edges,): their standard errors
    tree_couplings: FloatArray  # (n_edges,): couplings by Bethe's inversion, 0 where that has none
    deviates: FloatArray  # of the edges
    needed: float  # deviate that makes an edge
    candidates: Pairs
    survivors: Pairs


def diagnose(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """Every check, serious or not; serious ones warn."""
    checks = (_samples, _memory, _alike, _strength, _loops, _screen, _order, _hidden)
    found = tuple(check(evidence) for check in checks)
    for one in found:
        if one.serious:
            warn(ReliabilityWarning(check=one.check, words=one.words))
    return found


def _samples(e: Evidence) -> Diagnosis:
    """Would an edge like the median one be found again?"""
    network, changes = e.network, e.network.normal.changes
    information = (
        np.sqrt(max(float(np.median(network.information[changes])), 1.0)) if changes.any() else 1.0
    )
    typical = float(np.median(np.abs(e.deviates))) if len(e.deviates) else _TYPICAL * information
    power, smallest = (
        float(norm.cdf(typical - e.needed)),
        float((e.needed + norm.ppf(0.9)) / information),
    )
    words = f"with {network.shares.sum():.0f} rows a coupling must be about {smallest:.2f} to be found in nine of ten cases"
    if power < _LEAST_POWER:
        words += "; weaker ones are probably there and were missed: more rows would find more edges"
    return Diagnosis("few samples", power, _LEAST_POWER, power < _LEAST_POWER, words)


def _memory(e: Evidence) -> Diagnosis:
    """Are neighbouring rows alike? Pooled autocorrelation of all spins; its error counts that spins
    are correlated.
    """
    packed, normal = e.network.packed, e.network.normal
    if e.network.weights is not None or packed.n_samples < 20:
        return Diagnosis(
            "rows alike",
            0.0,
            _MOST_MEMORY,
            False,
            "rows have weights or are few: whether neighbouring ones are alike was not looked at",
        )
    value, error = autocorrelation(packed, normal)
    left = packed.n_samples * (1 - value) / (1 + value)
    serious = value > max(_MOST_MEMORY, _LARGE * error)
    words = f"neighbouring rows have a correlation of {value:.2f}"
    if serious:
        words += (
            f", as if there were only some {left:.0f} independent rows: errors are too small by a factor of about "
            f"{np.sqrt((1 + value) / (1 - value)):.1f}, and weak edges may be chance; use rows further apart"
        )
    return Diagnosis("rows alike", value, _MOST_MEMORY, serious, words)


def autocorrelation(packed: PackedSpins, normal: NormalEquations | Bits) -> tuple[float, float]:
    """Correlation of up to 256 spins with themselves one row later, all together, and its standard
    error were rows independent.
    """
    some = np.arange(0, packed.n_spins, -(-packed.n_spins // _SPINS))
    values = np.asarray(packed[:, some], dtype=np.float32)
    present = values != 0
    centred = np.where(
        present, values - values.sum(axis=0) / np.maximum(present.sum(axis=0), 1), 0.0
    )
    both = present[1:] & present[:-1]
    total = float(((centred[1:] ** 2 + centred[:-1] ** 2) * both).sum(dtype=np.float64)) / 2
    covariance = normal.block(some) / normal.n_samples
    if total <= 0 or np.trace(covariance) <= 0:
        return 0.0, np.inf
    value = float((centred[1:] * centred[:-1] * both).sum(dtype=np.float64)) / total
    rows = max(len(values) * both.mean(), 1.0)
    return float(np.clip(value, -0.99, 0.99)), float(
        np.linalg.norm(covariance) / np.trace(covariance) / np.sqrt(rows)
    )


def _alike(e: Evidence) -> Diagnosis:
    """Are there columns that say nearly the same?"""
    largest, pairs = _most_alike(e)
    words = f"the largest correlation of two columns is {largest:.2f}"
    if largest > _ALIKE:
        names = e.network.normal.names
        some = ", ".join(f"'{names[i]}' and '{names[j]}'" for i, j in pairs[:3])
        words = f"{some}{' and others' if len(pairs) > 3 else ''} are nearly the same: which of them has an edge is chance; keep one"
    return Diagnosis("columns alike", largest, _ALIKE, largest > _ALIKE, words)


def _strength(e: Evidence) -> Diagnosis:
    """How much of spins is left open once their neighbours are known?"""
    network, connected = e.network, np.diff(e.network.indptr) > 0
    variances = (
        network.normal.variances[connected] / network.normal.n_samples * network.seen[connected]
    )
    left = (
        float((network.information[connected] / np.maximum(variances, 1e-9)).mean())
        if connected.any()
        else 1.0
    )
    words = f"neighbours leave {left:.0%} of a spin's variance open"
    if left < _LEAST_LEFT:
        words += ": couplings are strong, so linear estimates are far off and some edges hide behind others; trust the refit only"
    return Diagnosis("strong coupling", left, _LEAST_LEFT, left < _LEAST_LEFT, words)


def _loops(e: Evidence) -> Diagnosis:
    """Do couplings that would be exact on a tree differ from the refit's?"""
    couplings, errors = e.couplings, e.errors
    if len(couplings) == 0:
        return Diagnosis("loops", 0.0, _MOST_OFF, False, "there are no edges, so no loops")
    off = e.tree_couplings - couplings
    share = float(np.abs(off).mean() / np.abs(couplings).mean())
    beyond_noise = np.sqrt(np.mean((off / np.maximum(errors, 1e-9)) ** 2)) > 2
    words = f"a formula that is exact without loops changes couplings by {share:.0%}"
    if share > _MOST_OFF and beyond_noise:
        words += ": loops or unmodelled dependence matter, so refit='bethe' and linear estimates are not to be trusted here"
    return Diagnosis("loops", share, _MOST_OFF, bool(share > _MOST_OFF and beyond_noise), words)


def _screen(e: Evidence) -> Diagnosis:
    """Did the linear steps miss edges that later tests brought in?"""
    network = e.network
    missed = len(np.setdiff1d(network.keys(network.pairs), network.keys(e.survivors)))
    share = missed / max(len(network.pairs), 1)
    words = f"{missed} of {len(network.pairs)} edges were not among those that the linear steps had left, and were found by later tests"
    return Diagnosis("linear screen", share, _MOST_LATE, share > _MOST_LATE, words)


def _order(e: Evidence) -> Diagnosis:
    """Does one mode carry much of the variance?"""
    correlation = _correlations(e.network, _some(e.network))
    share = _largest_eigenvalue(correlation) / max(len(correlation), 1)
    noise = (1 + np.sqrt(len(correlation) / max(e.network.normal.n_samples, 1.0))) ** 2 / max(
        len(correlation), 1
    )
    serious = share > max(_MOST_ORDER, 2 * noise) and len(correlation) > 2
    words = f"one mode carries {share:.0%} of the variance"
    if serious:
        words += ": the spins move together, as in a magnet that has ordered, so that samples tell couplings apart only poorly"
    return Diagnosis("order", share, _MOST_ORDER, bool(serious), words)


def _hidden(e: Evidence) -> Diagnosis:
    """Is there a dense part of low rank in what the network leaves? Noise has eigenvalues up to 2
    sqrt(N).
    """
    network, some = e.network, _some(e.network)
    left = network.outlook.leftover(network, some)
    left[network.directed()[some][:, some].nonzero()] = 0.0
    np.fill_diagonal(left, 0.0)
    np.clip(left, -6, 6, out=left)
    value = _largest_eigenvalue(left) / float(2 * np.sqrt(max(len(some), 1)))
    serious = value > _MOST_LEFTOVER and network.n_spins > 10
    words = f"outside the network, deviates have an eigenvalue {value:.1f} times that of noise"
    if serious:
        words += (
            ": many pairs are a little more alike than the edges explain, which one thing that acts on all spins and is no column "
            "would do (a common cause, a trend, a group of respondents); edges may stand for it"
        )
    return Diagnosis("hidden cause", value, _MOST_LEFTOVER, serious, words)


def _some(network: Network) -> NDArray[np.int64]:
    """All spins, or enough of them to tell."""
    return np.arange(
        0,
        network.n_spins,
        -(-network.n_spins // _ENOUGH) if isinstance(network.normal, Bits) else 1,
    )


def _correlations(network: Network, some: NDArray[np.int64]) -> FloatArray:
    """Of those that change of some spins."""
    normal, outlook = network.normal, network.outlook
    some = some[normal.changes[some]]
    if network.fit_fields and isinstance(outlook, AllPairs):  # known
        return (
            outlook.correlations
            if len(some) == network.n_spins
            else outlook.correlations[np.ix_(some, some)]
        )
    part = normal.block(some) / normal.n_samples
    if not network.fit_fields:  # means of products as they are
        values = (
            np.asarray(network.packed[:, some], dtype=np.float64).T
            if isinstance(normal, Bits)
            else network.spins[some]
        )
        means = values @ network.shares / network.shares.sum()
        part -= np.outer(means, means)
    deviations = np.sqrt(np.maximum(np.diagonal(part), 1e-12))
    part /= np.outer(deviations, deviations)
    if isinstance(normal, NormalEquations) and len(normal.unobserved):
        place = np.cumsum(normal.changes) - 1
        never = place[normal.unobserved[normal.changes[normal.unobserved].all(axis=1)]]
        part[tuple(never.T)] = part[tuple(never.T[::-1])] = 0.0
    return np.asarray(part)


def _most_alike(e: Evidence) -> tuple[float, Pairs]:
    """The largest correlation of two spins, and the pairs that are alike. On bits, of spins that
    are near or were candidates.
    """
    network = e.network
    if isinstance(network.outlook, OutstandingPairs):
        near = np.column_stack(scipy.sparse.triu(network.outlook.near).nonzero()).astype(np.int64)
        pairs, centred = np.concatenate([near, e.candidates]), bits_of(network.packed, True)
        sizes = np.abs(
            centred.covariances(pairs) / (centred.scales[pairs[:, 0]] * centred.scales[pairs[:, 1]])
        )
        return float(sizes.max(initial=0.0)), np.unique(pairs[sizes > _ALIKE], axis=0)
    changing = np.flatnonzero(network.normal.changes)
    sizes = np.abs(_correlations(network, np.arange(network.n_spins)))
    np.fill_diagonal(sizes, 0.0)
    return float(sizes.max(initial=0.0)), changing[np.argwhere(np.triu(sizes > _ALIKE))]


def _largest_eigenvalue(matrix: NDArray[np.floating]) -> float:
    if not matrix.any():
        return 0.0
    if len(matrix) < 30:
        return float(np.linalg.eigvalsh(matrix)[-1]) if len(matrix) else 0.0
    operator = LinearOperator(
        matrix.shape, matvec=lambda x: matrix @ x.astype(matrix.dtype), dtype=np.float64
    )
    start = np.random.default_rng(0).normal(
        size=len(matrix)
    )  # a fixed one, for the same answer every time
    return float(eigsh(operator, k=1, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)[0])
