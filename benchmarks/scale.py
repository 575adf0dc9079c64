"""Large networks: the screen against a matrix product, its growth, and logistic regressions."""

import time
import warnings

import numpy as np
import sklearn
from numba import njit
from sklearn.linear_model import LogisticRegression

import isingkit as ik
from isingkit._kernels.gram import popcount
from isingkit._kernels.threads import n_threads, parallel_map
from isingkit.estimators.bits import bits_of
from isingkit.estimators.tiles import CorrelationScreen, RidgeScreen, n_bands
from side_by_side import Claim, faster, seconds, within

SAMPLES = 2048
ROUNDS = 7
FEW_NODES = 12


def noise(n_spins: int, n_samples: int) -> ik.PackedSpins:
    words = np.random.default_rng(0).integers(0, 2**64, (n_spins, n_samples // 64), dtype=np.uint64)
    return ik.PackedSpins(words, n_samples, tuple(f"x{k}" for k in range(n_spins)))


def whole_screen(n_spins: int, n_samples: int) -> object:
    """Run all bands, kernels and nibbles ready."""
    screen = CorrelationScreen(bits_of(noise(n_spins, n_samples), False), 0.5)
    last = n_bands(screen.bits) - 1
    screen.band(last)
    return lambda: [screen.band(number) for number in range(last + 1)]


def against_products() -> list[Claim]:
    """Bands of 1024 spins with 50,000 others, and a float32 product of as many multiply-adds."""
    n_spins = 50_000
    rows = 1024
    packed = noise(n_spins, SAMPLES)
    bits = bits_of(packed, False)
    by_bits = CorrelationScreen(bits, 0.5)
    by_ridge = RidgeScreen(bits, 1.0, 0.5)
    floats = np.random.default_rng(0).standard_normal((8192, SAMPLES), dtype=np.float32)
    left = floats[:rows]
    repeats = n_spins // 8192
    assert len(by_bits.band(0).pairs) == 0  # noise of 2048 samples has no correlation of 0.5
    taken = seconds(
        {
            "product": lambda: [left @ floats.T for _ in range(repeats)],
            "bits": lambda: by_bits.band(0),
            "ridge": lambda: by_ridge.band(0),
        },
        ROUNDS,
    )
    fraction = (rows * n_spins - rows**2 / 2) / (repeats * rows * 8192)  # of its multiply-adds
    product = [fraction * one for one in taken["product"]]
    peer = f"float32 X @ Y.T, numpy {np.__version__}"
    return [
        faster(f"screen on correlations, M={SAMPLES}", peer, taken["bits"], product, at_least=10),
        within(
            f"screen with a ridge (dual), N={n_spins}, M={SAMPLES}",
            "screen on correlations",
            taken["ridge"],
            taken["bits"],
            at_most=8,
        ),
    ]


def whole_fits() -> Claim:
    """Whole fits of 100,000 spins, by ridge estimates and by correlations."""
    n_spins = 100_000
    truth = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=0)
    samples = ik.sample(truth, n_samples=SAMPLES, random_state=1)
    # with more spins than samples, ridge estimates are that much smaller
    prune = 0.08 * SAMPLES / n_spins
    estimators = {
        "bits": ik.TwoStageIsing(ridge=np.inf, prune=0.15, threshold=0.15, fit_fields=False),
        "ridge": ik.TwoStageIsing(ridge=1.0, prune=prune, threshold=0.15, fit_fields=False),
    }
    taken = seconds({name: lambda one=one: one.fit(samples) for name, one in estimators.items()}, 2)
    for one in estimators.values():
        assert ik.score(one.model_, truth).exact
    peer = "the same by correlations"
    return within(
        f"fit with a ridge (dual), N={n_spins}, M={SAMPLES}",
        peer,
        taken["ridge"],
        taken["bits"],
        at_most=8,
    )


@njit(nogil=True)
def popcounts(words, n_rounds):
    """Bits that differ from a few words in registers: loads, popcounts and hardly anything else."""
    total = np.uint64(0)
    for r in range(n_rounds):
        mine = np.uint64(r)
        for w in range(len(words)):
            total += popcount(words[w] ^ mine)
    return total


def against_instructions() -> Claim:
    """A band on correlations, and as many popcounts of words that stay in the first cache."""
    n_spins = 50_000
    rows = 1024
    screen = CorrelationScreen(bits_of(noise(n_spins, SAMPLES), False), 0.5)
    words = np.random.default_rng(0).integers(0, 2**64, 1024, dtype=np.uint64)
    n_rounds = 10_000
    taken = seconds(
        {
            "screen": lambda: screen.band(0),
            "instructions": lambda: parallel_map(
                lambda start, stop: popcounts(words, n_rounds), n_threads()
            ),
        },
        ROUNDS,
    )
    counted = n_threads() * n_rounds * len(words) * 64
    fraction = (rows * n_spins - rows**2 / 2) * SAMPLES / counted
    bound = [fraction * one for one in taken["instructions"]]
    return within(
        f"screen on correlations, M={SAMPLES}",
        "its popcounts and loads alone",
        taken["screen"],
        bound,
        at_most=2,
    )


def growth() -> list[Claim]:
    """Twice the spins and twice the samples, from N = 10,000."""
    runs = {
        "once": whole_screen(10_000, SAMPLES),
        "spins": whole_screen(20_000, SAMPLES),
        "samples": whole_screen(10_000, 2 * SAMPLES),
    }
    taken = seconds(runs, ROUNDS)  # type: ignore[arg-type]
    return [
        within(
            "screen of 20,000 spins",
            "screen of 10,000 spins",
            taken["spins"],
            taken["once"],
            at_most=4 * 1.15,
        ),
        within(
            f"screen of {2 * SAMPLES} samples",
            f"screen of {SAMPLES} samples",
            taken["samples"],
            taken["once"],
            at_most=2 * 1.15,
        ),
    ]


def against_logistic_regressions() -> Claim:
    """N = 2000, M = 1024: some nodes by scikit-learn, scaled to all; it finds no more than ours."""
    n_spins = 2000
    n_samples = 1024
    truth = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=0)
    samples = ik.sample(truth, n_samples=n_samples, random_state=1)
    values = np.asarray(samples, dtype=np.float64)
    estimator = ik.TwoStageIsing(ridge=np.inf, prune=0.15, threshold=0.15, fit_fields=False)
    penalty = 0.2 * np.sqrt(np.log(n_spins**2 / 0.05) / n_samples)
    model = LogisticRegression(l1_ratio=1, solver="liblinear", C=1 / (2 * n_samples * penalty))
    true = truth.couplings.toarray() != 0
    ours = []
    theirs = []
    wrong = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for node in range(FEW_NODES + 1):
            start = time.perf_counter()
            fit = estimator.fit(samples)
            middle = time.perf_counter()
            others = np.delete(np.arange(n_spins), node)
            found = np.abs(model.fit(values[:, others], values[:, node]).coef_[0]) / 2 > 0.2
            if node:  # the first compiles
                ours.append(middle - start)
                theirs.append((time.perf_counter() - middle) * n_spins)
            wrong += int((found != true[node, others]).sum())
    assert ik.score(fit.model_, truth).exact
    some = f"{FEW_NODES} spins times {n_spins / FEW_NODES:.0f}, {wrong} wrong"
    peer = f"l1 logistic regressions, scikit-learn {sklearn.__version__}, {some}"
    return faster(
        f"exact network of {n_spins} spins, M={n_samples}", peer, ours, theirs, at_least=1000
    )


def measure() -> list[Claim]:
    """All of it."""
    return [
        *against_products(),
        against_instructions(),
        whole_fits(),
        *growth(),
        against_logistic_regressions(),
    ]


if __name__ == "__main__":
    for claim in measure():
        print(claim)
