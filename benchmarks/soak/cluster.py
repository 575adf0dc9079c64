"""A fit on two processes, one of which is killed after so many seconds: seed, seconds, folder. The
last line says what is wrong, as JSON.
"""

import faulthandler
import json
import os
import signal
import sys
import threading
import time
import warnings

import numpy as np

import isingkit as ik
import isingkit.dask
from isingkit.estimators import sizes

LONGEST = 900  # seconds, after which it hangs, and says where: it takes some five


def main(seed: int, seconds: float) -> list[str]:
    sizes.MOST_DENSE = 10
    sizes.BAND = 64
    truth = ik.random_regular(n_spins=600, degree=3, coupling=0.5, random_state=seed)
    samples = ik.sample(truth, n_samples=100, random_state=seed, check=False)
    estimator = ik.TwoStageIsing(ridge=1.0, prune=0.05)
    expected = estimator.fit(samples).model_.couplings.toarray()
    with isingkit.dask.connected(workers=2) as client, isingkit.dask.using(client):
        pid = next(iter(client.run(os.getpid).values()))

        def kill() -> None:
            time.sleep(seconds)
            os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        problems = []
        while killer.is_alive():
            found = estimator.fit(samples).model_.couplings.toarray()
            if not np.array_equal(found, expected):
                problems.append("the cluster's fit differs")
        found = estimator.fit(samples).model_.couplings.toarray()
        if not np.array_equal(found, expected):
            problems.append("the fit after the loss differs")
    return problems


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    print(json.dumps(main(int(sys.argv[1]), float(sys.argv[2]))))
