"""Scale: plant, sample, fit and score large networks, and say how close the screen comes to what
the machine could do.
"""

import resource
import sys
import time
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from isingkit._kernels.threads import n_threads
from isingkit.estimators.bits import bits_of
from isingkit.estimators import sizes
from isingkit.estimators.tiles import BandedScreen, CorrelationScreen, DualScreen
from isingkit.estimators.two_stage import TwoStageIsing
from isingkit.metrics import score
from isingkit.packing import PackedSpins
from isingkit.worlds.graphs import random_regular
from isingkit.worlds.sampling import sample

DEGREE, COUPLING = 3, 0.4
PRUNE, THRESHOLD = 0.15, 0.15


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
    """Multiply-adds a second of the screens and of a matrix product in single precision, taken in
    turn.
    """

    n_spins: int
    n_samples: int
    screen: float
    dual: float
    product: float


def measure_scale(n_spins: int, n_samples: int, *, seed: int = 0, progress: bool = False) -> Scaled:
    """Plant a random regular network, sample it, find it by TwoStageIsing(ridge=inf), and
    compare.
    """
    times = [time.perf_counter()]
    truth = random_regular(n_spins=n_spins, degree=DEGREE, coupling=COUPLING, random_state=seed)
    times.append(time.perf_counter())
    samples = sample(truth, n_samples=n_samples, random_state=seed + 1)
    times.append(time.perf_counter())
    estimator = TwoStageIsing(
        ridge=np.inf, prune=PRUNE, threshold=THRESHOLD, fit_fields=False, progress=progress
    )
    found = estimator.fit(samples).model_
    times.append(time.perf_counter())
    scores, (plant, draw, fit) = score(found, truth), np.diff(times)
    rate = n_spins * (n_spins - 1) / 2 * n_samples / fit
    return Scaled(
        n_spins, n_samples, float(plant), float(draw), float(fit), float(rate), peak_bytes(), scores.precision, scores.recall,
        scores.false_positives + scores.false_negatives,
    )  # fmt: skip


def measure_rates(n_spins: int, n_samples: int, rounds: int = 5) -> Rates:
    """Medians over rounds in which screens and product take turns; the product is of 4096 columns
    with as many others.
    """
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**64, (n_spins, n_samples // 64), dtype=np.uint64)
    packed = PackedSpins(words, 64 * words.shape[1], tuple(f"x{k}" for k in range(n_spins)))
    bits = bits_of(packed, False)
    rivals: list[BandedScreen] = [CorrelationScreen(bits, 0.5), DualScreen(bits, 1.0, 0.5)]
    columns, others = (
        rng.standard_normal((4096, packed.n_samples), dtype=np.float32) for _ in range(2)
    )
    taken: list[list[float]] = [[], [], []]
    for counted in [False] + [True] * rounds:
        for place, rival in enumerate([*rivals, None]):
            start = time.perf_counter()
            if rival is None:
                with threadpool_limits(n_threads(), user_api="blas"):
                    columns @ others.T
            else:
                rival.band(0)
            if counted:
                taken[place].append(time.perf_counter() - start)
    screen, dual, product = (float(np.median(one)) for one in taken)
    n_rows = min(n_spins, sizes.BAND)
    pairs = n_rows * n_spins - n_rows**2 / 2
    return Rates(n_spins, packed.n_samples, pairs * packed.n_samples / screen, pairs * packed.n_samples / dual,
                 4096**2 * packed.n_samples / product)  # fmt: skip


def peak_bytes() -> int:
    """The most memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
