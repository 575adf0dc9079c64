"""All ridge regressions at once, against one Cholesky inverse and one regression a spin."""

import numpy as np
import sklearn
from scipy.linalg import lapack
from sklearn.linear_model import Ridge

import isingkit as ik
from side_by_side import Claim, faster, seconds, within

N_SPINS = 1600
N_SAMPLES = 1440
RIDGE = 0.1


def measure() -> list[Claim]:
    """The Erdos-Renyi world of the paper's last figure: N = 1600, M = 1440."""
    truth = ik.erdos_renyi(n_spins=N_SPINS, mean_degree=4, coupling=0.4, random_state=0)
    samples = ik.sample(truth, n_samples=N_SAMPLES, random_state=1)
    values = np.asarray(samples, dtype=np.float64)
    others = np.arange(1, N_SPINS)
    matrix = np.asfortranarray(values.T @ values + RIDGE * N_SPINS * np.eye(N_SPINS))

    def one_inverse_and_one_gram() -> None:
        factor, _ = lapack.dpotrf(matrix, clean=0)
        lapack.dpotri(factor, overwrite_c=1)
        ik.gram(samples)

    def one_scikit_learn_fit() -> Ridge:
        return Ridge(alpha=RIDGE * N_SPINS, fit_intercept=False).fit(
            values[:, others], values[:, 0]
        )

    fit = ik.RidgeIsing(ridge=RIDGE, fit_fields=False).fit(samples)
    np.testing.assert_allclose(
        fit.estimates_[0, others], one_scikit_learn_fit().coef_, rtol=1e-8, atol=1e-12
    )
    two = ik.TwoStageIsing(ridge=RIDGE, prune=0.05, fit_fields=False).fit(samples)
    assert ik.score(two.model_, truth).f1 > 0.99
    ridge = ik.RidgeIsing(ridge=RIDGE, fit_fields=False)
    two_stages = ik.TwoStageIsing(ridge=RIDGE, prune=0.05, fit_fields=False)
    taken = seconds(
        {
            "floor": one_inverse_and_one_gram,
            "ridge": lambda: ridge.fit(samples),
            "two stages": lambda: two_stages.fit(samples),
            "scikit-learn": one_scikit_learn_fit,
        },
        rounds=15,
    )
    every_spin = [N_SPINS * time for time in taken["scikit-learn"]]
    what = f"RidgeIsing, N={N_SPINS}, M={N_SAMPLES}"
    floor = "dpotrf + dpotri + one Gram"
    many_fits = f"N fits of Ridge, scikit-learn {sklearn.__version__} (one timed, times N)"
    return [
        within(what, floor, taken["ridge"], taken["floor"], at_most=1.5),
        faster("RidgeIsing, same", many_fits, taken["ridge"], every_spin, at_least=500),
        within("TwoStageIsing, same", "RidgeIsing", taken["two stages"], taken["ridge"], at_most=3),
    ]
