"""Exact maximum likelihood of 15 spins against coniii's Enumerate, which sums over all states, too.

coniii wants old numpy and scipy, so it gets an environment of its own in `.peers`. The first run
also has coniii write its equations and compiles them: some five minutes and 8 GB of memory, none of
it timed. Its default settings look at the moments ten times as often as those used here, the
fastest found that agree with ours.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

import isingkit as ik
from peers.worker import Worker
from side_by_side import Claim, faster, seconds

N_SPINS = 15
N_SAMPLES = 5000
ROUNDS = 3
HERE = Path(__file__).resolve().parent
HOME = HERE / ".peers" / "coniii"
NEEDS = [
    "numpy==1.26.*",
    "scipy==1.10.*",
    "setuptools<80",
    "wheel",
    "multiprocess",
    "matplotlib",
    "numba",
    "mpmath",
    "dill",
]


def measure() -> list[Claim]:
    """Fields and couplings of 15 spins from 5000 samples; nothing where coniii cannot be had."""
    try:
        python = environment()
        script = HERE / "peers" / "coniii_worker.py"
        with Worker([str(python), str(script), str(N_SPINS)], most_seconds=900) as worker:
            return [against_coniii(worker)]
    except (OSError, subprocess.SubprocessError) as error:
        print(f"exact_likelihood skips coniii: {error}")
        return []


def against_coniii(worker: Worker) -> Claim:
    """Both solve for the same moments; ours counts them first."""
    truth = ik.random_regular(n_spins=N_SPINS, degree=4, coupling=0.3, fields=0.1, random_state=0)
    samples = ik.exact(truth).sample(n_samples=N_SAMPLES, random_state=1)
    values = np.asarray(samples, dtype=np.float64)
    i, j = np.triu_indices(N_SPINS, 1)
    means = values.mean(axis=0)
    products = (values[:, i] * values[:, j]).mean(axis=0)
    moments = np.concatenate([means, products])
    estimator = ik.MaximumLikelihoodIsing(method="exact")
    fit = estimator.fit(samples)
    expected = np.concatenate([fit.intercepts_, fit.estimates_[i, j]])
    ours = []
    theirs = []
    for _ in range(ROUNDS):
        taken = seconds({"ours": lambda: estimator.fit(samples)}, rounds=15)
        ours.append(statistics.median(taken["ours"]))
        answer = worker.ask(moments.tolist())
        np.testing.assert_allclose(answer["found"], expected, atol=1e-3)
        theirs.append(answer["seconds"])
    version = worker.greeting["peer"]
    peer = f"Enumerate, {version}, by df-sane to 1e-4, its equations written beforehand"
    return faster("exact maximum likelihood, N=15", peer, ours, theirs, at_least=20)


def environment() -> Path:
    """The Python of an environment with coniii, made if there is none."""
    python = HOME / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = HOME / "installed"
    if not done.exists():
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([sys.executable, "-m", "venv", "--clear", str(HOME)])
        run([*pip, *NEEDS])
        # its setup imports itself, and so all that it needs
        run([*pip, "--no-build-isolation", "coniii==3.0.1"])
        done.touch()
    return python


def run(command: list[str]) -> None:
    """Run a command; where it fails, say how it ended."""
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "CONDA_PREFIX": str(HOME)},
    )
    if done.returncode:
        raise ChildProcessError(
            f"{' '.join(command[1:5])} failed: {' '.join(done.stderr.splitlines()[-1:])}"
        )
