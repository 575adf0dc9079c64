"""A thousand bootstraps and case-dropping of a table of symptoms' size, in CPU seconds."""

import time

import numpy as np

import isingkit as ik
from side_by_side import Claim, within

N_COLUMNS = 18
N_ROWS = 355
N_RESAMPLES = 1000
ROUNDS = 3
BUDGET = 60.0  # CPU seconds


def measure() -> list[Claim]:
    """Budgets of what R's bootnet does with IsingFit, on one thread."""
    truth = ik.random_regular(n_spins=N_COLUMNS, degree=3, coupling=0.4, random_state=0)
    rows = ik.exact(truth).sample(n_samples=N_ROWS, random_state=1)
    bootstrapped(truth, rows, 2)  # compiles
    what = f"eLasso of {N_ROWS} rows of {N_COLUMNS} columns, {N_RESAMPLES}"
    peer = f"{BUDGET:.0f} CPU seconds"
    budgets = [BUDGET] * ROUNDS
    drawn = [bootstrapped(truth, rows, N_RESAMPLES) for _ in range(ROUNDS)]
    parts = [dropped(rows) for _ in range(ROUNDS)]
    return [
        within(f"{what} bootstraps: CPU seconds", peer, drawn, budgets, at_most=1),
        within(f"{what} parts of the rows: CPU seconds", peer, parts, budgets, at_most=1),
    ]


def bootstrapped(truth: ik.IsingModel, rows: ik.PackedSpins, n_resamples: int) -> float:
    """CPU seconds; the planted edges are in most of the networks."""
    start = time.process_time()
    found = ik.bootstrap(
        ik.ELassoIsing(), rows, n_resamples=n_resamples, random_state=0, n_jobs=1
    ).edges
    spent = time.process_time() - start
    place = {name: k for k, name in enumerate(truth.names)}
    planted = [truth.couplings[place[edge["source"]], place[edge["target"]]] != 0 for edge in found]
    assert found["inclusion"][planted].mean() > 0.9
    return spent


def dropped(rows: ik.PackedSpins) -> float:
    """CPU seconds; fewer rows agree less with all."""
    start = time.process_time()
    shares = np.linspace(0.05, 0.75, 10)
    found = ik.case_dropping(
        ik.ELassoIsing(), rows, dropped=shares, n_resamples=100, random_state=0, n_jobs=1
    )
    spent = time.process_time() - start
    assert (np.diff(found.correlations["edge"].mean(axis=1)) < 0).all()
    return spent
