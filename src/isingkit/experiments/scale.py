"""Scale: plant, sample, fit and score large networks, and the rate at which screens compute."""

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from isingkit._kernels.threads import n_threads
from isingkit.estimators import sizes
from isingkit.estimators.bits import bits_of
from isingkit.estimators.tiles import CorrelationScreen, RidgeScreen
from isingkit.estimators.two_stage import TwoStageIsing
from isingkit.metrics import score
from isingkit.packing import PackedSpins
from isingkit.worlds.graphs import random_regular
from isingkit.worlds.sampling import sample

DEGREE = 3
COUPLING = 0.4
PRUNE = 0.15
THRESHOLD = 0.15
N_COLUMNS = 4096  # of the matrices whose product screens are compared with


@dataclass(frozen=True, slots=True)
class Scaled:
    """One planted network, found again."""

    n_spins: int
    n_samples: int
    plant_seconds: float
    sample_seconds: float
    fit_seconds: float
    rate: float  # multiply-adds a second of the fit, each pair and sample counted once
    peak_bytes: int  # of the process
    precision: float
    recall: float
    wrong_edges: int  # false and missed


@dataclass(frozen=True, slots=True)
class Rates:
    """Multiply-adds a second of the screens and of a matrix product in single precision."""

    n_spins: int
    n_samples: int
    screen: float
    dual: float
    product: float


def measure_scale(n_spins: int, n_samples: int, *, seed: int = 0, progress: bool = False) -> Scaled:
    """Plant a random regular network, sample it, find it by correlations, and compare."""
    start = time.perf_counter()
    truth = random_regular(n_spins=n_spins, degree=DEGREE, coupling=COUPLING, random_state=seed)
    planted = time.perf_counter()
    samples = sample(truth, n_samples=n_samples, random_state=seed + 1)
    sampled = time.perf_counter()
    estimator = TwoStageIsing(
        ridge=np.inf, prune=PRUNE, threshold=THRESHOLD, fit_fields=False, progress=progress
    )
    found = estimator.fit(samples).model_
    fitted = time.perf_counter()
    scores = score(found, truth)
    n_pairs = n_spins * (n_spins - 1) / 2
    fit_seconds = fitted - sampled
    wrong_edges = scores.false_positives + scores.false_negatives
    return Scaled(
        n_spins=n_spins,
        n_samples=n_samples,
        plant_seconds=planted - start,
        sample_seconds=sampled - planted,
        fit_seconds=fit_seconds,
        rate=n_pairs * n_samples / fit_seconds,
        peak_bytes=peak_bytes(),
        precision=scores.precision,
        recall=scores.recall,
        wrong_edges=wrong_edges,
    )


def measure_rates(n_spins: int, n_samples: int, rounds: int = 5) -> Rates:
    """Medians over rounds in which both screens and a product of matrices take turns."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**64, (n_spins, n_samples // 64), dtype=np.uint64)
    names = tuple(f"x{k}" for k in range(n_spins))
    packed = PackedSpins(words, 64 * words.shape[1], names)
    bits = bits_of(packed, False)
    correlations = CorrelationScreen(bits, 0.5)
    dual = RidgeScreen(bits, 1.0, 0.5)
    columns = rng.standard_normal((N_COLUMNS, packed.n_samples), dtype=np.float32)
    others = rng.standard_normal((N_COLUMNS, packed.n_samples), dtype=np.float32)

    def product() -> None:
        with threadpool_limits(n_threads(), user_api="blas"):
            columns @ others.T

    seconds = _median_seconds([lambda: correlations.band(0), lambda: dual.band(0), product], rounds)
    n_rows = min(n_spins, sizes.BAND)
    n_pairs = n_rows * n_spins - n_rows**2 / 2
    n_products = n_pairs * packed.n_samples
    return Rates(
        n_spins=n_spins,
        n_samples=packed.n_samples,
        screen=n_products / seconds[0],
        dual=n_products / seconds[1],
        product=N_COLUMNS**2 * packed.n_samples / seconds[2],
    )


def _median_seconds(rivals: list[Callable[[], object]], rounds: int) -> list[float]:
    """Of each, called in turn; the first round, which compiles, does not count."""
    taken = np.empty((rounds + 1, len(rivals)))
    for row in taken:
        for place, rival in enumerate(rivals):
            start = time.perf_counter()
            rival()
            row[place] = time.perf_counter() - start
    return [float(seconds) for seconds in np.median(taken[1:], axis=0)]


def peak_bytes() -> int:
    """The most memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
