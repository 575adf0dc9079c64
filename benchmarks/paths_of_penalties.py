"""Paths of logistic regressions of all spins against scikit-learn's, eLasso against R's IsingFit.

Of scikit-learn's solvers for absolute values, liblinear, which has no warm starts, is the fastest
by far: saga, warm-started, takes five times as long to come as close. The tolerance is the loosest
with which coefficients agree with ours to about 0.001. Threads serve it better than processes.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression

import isingkit as ik
from isingkit.arrays import FloatArray
from peers.worker import Worker
from side_by_side import Claim, faster, seconds

N_SPINS = 100
N_SAMPLES = 2000
CORES = 2
TIMED = (0, 25, 50, 75)  # spins of which scikit-learn's paths are timed
HERE = Path(__file__).resolve().parent


def measure() -> list[Claim]:
    """100 penalties for each of N = 100 spins, M = 2000, random regular of degree 3."""
    truth = ik.random_regular(n_spins=N_SPINS, degree=3, coupling=0.4, random_state=0)
    samples = ik.sample(truth, n_samples=N_SAMPLES, random_state=1)
    claims = [against_scikit_learn(samples)]
    try:
        claims.append(against_isingfit(samples))
    except OSError as error:
        print(f"paths_of_penalties skips IsingFit: {error}")
    return claims


def against_scikit_learn(samples: Any) -> Claim:
    """The same penalties, spin by spin on two cores; a few spins timed for all."""
    values = np.asarray(samples, dtype=np.float64)
    path = ik.PseudolikelihoodIsing(n_jobs=CORES).path(samples)
    with Parallel(n_jobs=CORES, backend="threading") as parallel:

        def a_few_spins() -> list[FloatArray]:
            return list(
                parallel(delayed(scikit_learn_path)(values, spin, path.penalties) for spin in TIMED)
            )

        for spin, theirs in zip(TIMED, a_few_spins(), strict=True):
            np.testing.assert_allclose(
                np.delete(path.estimates[:, spin], spin, axis=1), theirs, atol=2e-3
            )
        rivals = {
            "ours": lambda: ik.PseudolikelihoodIsing(n_jobs=CORES).path(samples),
            "scikit-learn": a_few_spins,
        }
        taken = seconds(rivals, rounds=11)
    every_spin = [N_SPINS / len(TIMED) * time for time in taken["scikit-learn"]]
    timed = f"{len(TIMED)} spins timed, times N / {len(TIMED)}"
    peer = f"liblinear of scikit-learn {sklearn.__version__}, two threads ({timed})"
    return faster(
        "l1 pseudolikelihood, 100 penalties, N=100, M=2000, two threads",
        peer,
        taken["ours"],
        every_spin,
        at_least=20,
    )


def scikit_learn_path(values: FloatArray, spin: int, penalties: FloatArray) -> FloatArray:
    """(n_penalties, n_spins - 1) estimates of the couplings of one spin."""
    others = np.delete(values, spin, axis=1)
    # liblinear penalises the intercept, too, the less the larger its scaling
    model = LogisticRegression(
        solver="liblinear",
        l1_ratio=1.0,
        tol=1e-3,
        intercept_scaling=10,
        max_iter=1000,
        random_state=0,
    )
    fits = (
        model.set_params(C=2 / (l1 * len(values))).fit(others, values[:, spin]) for l1 in penalties
    )
    return np.array([fit.coef_[0] / 2 for fit in fits])


def against_isingfit(samples: Any) -> Claim:
    """The same network from the same data, where R is installed; on one core, ours on all."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        raise FileNotFoundError("there is no Rscript here")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        np.savetxt(table, np.asarray(samples) > 0, fmt="%d", delimiter=",")
        with Worker(
            [rscript, "--vanilla", str(HERE / "peers" / "isingfit.R"), str(table)], most_seconds=120
        ) as worker:
            fit = ik.ELassoIsing().fit(samples)
            theirs = []

            def isingfit() -> None:
                answer = worker.ask("fit")
                found = [fit.model_.n_edges, np.abs(fit.weights_).sum() / 2]
                np.testing.assert_allclose([answer["edges"], answer["total"]], found, rtol=0.01)
                theirs.append(answer["seconds"])

            taken = seconds(
                {"ours": lambda: ik.ELassoIsing().fit(samples), "IsingFit": isingfit}, rounds=5
            )
            peer = f"{worker.greeting['peer']}, one core"
    return faster("ELassoIsing, same data, all cores", peer, taken["ours"], theirs[1:], at_least=5)
