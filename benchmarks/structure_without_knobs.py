"""AutoIsing, whole fits: against abess, scikit-learn's paths, and one ridge regression."""

import importlib.metadata
import warnings
from typing import Any

import numpy as np
import sklearn
from abess.graph import IsingModel as Abess
from joblib import Parallel, delayed

import isingkit as ik
from isingkit.exceptions import ReliabilityWarning
from paths_of_penalties import scikit_learn_path
from side_by_side import Claim, faster, seconds, within

CORES = 2
TIMED = (0, 100)  # spins of which scikit-learn's paths are timed


def measure() -> list[Claim]:
    """Random regular, N = 200, M = 1000; and the paper's hardest world, N = 1600, M = 1440."""
    truth = ik.random_regular(n_spins=200, degree=3, coupling=0.4, random_state=0)
    samples = ik.sample(truth, n_samples=1000, random_state=1)
    return [*against_others(truth, samples), against_ridge()]


def against_others(truth: ik.IsingModel, samples: Any) -> list[Claim]:
    """The same data; scikit-learn's paths of 100 penalties, a few spins timed for all."""
    values = np.asarray(samples, dtype=np.float64)
    penalties = ik.PseudolikelihoodIsing().path(samples).penalties
    with Parallel(n_jobs=CORES, backend="threading") as parallel:

        def auto() -> None:
            assert ik.score(ik.AutoIsing().fit(samples).model_, truth).f1 > 0.95

        def abess() -> None:
            theta = Abess(tune_type="ebic", max_support_size=8).fit(values).theta_
            assert ik.score(ik.IsingModel(theta), truth).f1 > 0.95

        def scikit_learn() -> None:
            paths = parallel(delayed(scikit_learn_path)(values, spin, penalties) for spin in TIMED)
            assert all(
                np.count_nonzero(path[0]) <= 1 < np.count_nonzero(path[-1]) for path in paths
            )

        taken = seconds({"auto": auto, "abess": abess, "scikit-learn": scikit_learn}, rounds=5)
    every_spin = [truth.n_spins / len(TIMED) * time for time in taken["scikit-learn"]]
    what = "AutoIsing, N=200, M=1000, default"
    abess_version = importlib.metadata.version("abess")
    subsets = f"IsingModel of abess {abess_version}, ebic, support up to 8"
    paths = (
        f"l1 paths (100 penalties) of liblinear of scikit-learn {sklearn.__version__}, "
        f"two threads ({len(TIMED)} spins timed)"
    )
    return [
        faster(what, subsets, taken["auto"], taken["abess"], at_least=50),
        faster(what, paths, taken["auto"], every_spin, at_least=100),
    ]


def against_ridge() -> Claim:
    """A whole fit in units of one inverse."""
    truth = ik.erdos_renyi(n_spins=1600, mean_degree=4, coupling=0.4, random_state=1)
    samples = ik.sample(truth, n_samples=1440, random_state=101)

    def auto() -> None:
        assert ik.score(ik.AutoIsing(control="fwer").fit(samples).model_, truth).exact

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReliabilityWarning)
        taken = seconds({"auto": auto, "ridge": lambda: ik.RidgeIsing().fit(samples)}, rounds=9)
    what = "AutoIsing, Erdos-Renyi, N=1600, M=1440, fwer, with refit and tests"
    return within(what, "one RidgeIsing fit", taken["auto"], taken["ridge"], at_most=10)
