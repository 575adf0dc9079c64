"""The landscape of 24 spins in CPU seconds and memory, and Onsager's temperature."""

import subprocess
import sys
import warnings

import numpy as np

import isingkit as ik
from isingkit.exceptions import OrderedTeacherWarning
from side_by_side import Claim, within

N_SPINS = 24
ROUNDS = 3
SIDE = 16
PROGRAM = f"""
import resource, time
import numpy as np
import isingkit as ik
rng = np.random.default_rng(0)
upper = np.triu(rng.normal(0, 1 / np.sqrt({N_SPINS}), ({N_SPINS}, {N_SPINS})), 1)
model = ik.IsingModel(upper + upper.T, fields=rng.normal(0, 0.1, {N_SPINS}))
start = time.process_time()
found = ik.landscape(model)
spent = time.process_time() - start
local = found.states @ model.couplings.toarray() + model.fields
assert (found.states * local > 0).all()
assert found.basin_states.sum() == 2**{N_SPINS}
print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def measure() -> list[Claim]:
    """Budgets of the largest landscape, and how far the peak of a lattice is off."""
    runs = [landscape_of_all_states() for _ in range(ROUNDS)]
    spent = [cpu for cpu, _ in runs]
    used = [megabytes for _, megabytes in runs]
    what = f"landscape of {N_SPINS} spins, 2^{N_SPINS} states"
    off = [100 * relative_error(seed) for seed in range(ROUNDS)]
    peak = f"peak of the heat capacity, lattice of side {SIDE}: percent off, size corrected"
    return [
        within(f"{what}: CPU seconds", "30 CPU seconds", spent, [30.0] * ROUNDS, at_most=1),
        within(f"{what}: peak memory, MiB", "2 GiB", used, [2048.0] * ROUNDS, at_most=1),
        within(peak, "3 percent of Onsager's temperature", off, [3.0] * ROUNDS, at_most=1),
    ]


def landscape_of_all_states() -> tuple[float, float]:
    """CPU seconds and MiB of a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    spent, megabytes = map(float, done.stdout.split())
    return spent, megabytes


def relative_error(seed: int) -> float:
    """Of the temperature of the peak; that of a torus is 0.36 / side too high (Ferdinand and
    Fisher 1969).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrderedTeacherWarning)
        model = ik.square_lattice(side=SIDE, coupling=1.0, signs="fixed")
    temperatures = np.linspace(2.1, 2.7, 61)
    found = ik.heat_capacity(model, temperatures, warm_up=1000, random_state=seed)
    peak = temperatures[found.heat_capacity.argmax()] / (1 + 0.36 / SIDE)
    onsager = 2 / np.log(1 + np.sqrt(2))
    return float(abs(peak / onsager - 1))
