import subprocess
import sys

PROGRAM = """
import resource
import numpy as np
import isingkit as ik

n_spins, n_samples = 5000, 2500
values = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (n_samples, n_spins))
small = {estimator}.fit(values[:, :200])  # imports and compiles
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{estimator}.fit(values)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / (8 * n_spins**2))
"""


def peak(estimator):
    """Peak memory of a fit beyond what was there before, in N x N float64 matrices."""
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(estimator=estimator)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_fitting_five_thousand_spins_stays_under_eight_square_matrices():
    assert peak("ik.RidgeIsing()") < 8
    assert peak("ik.TwoStageIsing(ridge=0.1, prune=0.08)") < 8
