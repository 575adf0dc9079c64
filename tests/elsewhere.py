"""The tests that compute, run as on other processors. Each environment has kernels of its own to
compile: a few minutes each. Statistics of many worlds are left out: the answers that they are of
are the same on any processor, which `test_any_processor.py` holds, also with four threads of BLAS.
"""

import os
import subprocess
import sys
from pathlib import Path

from llvmlite import binding

ESTIMATING = ["any_processor", "gram", "estimators", "tiles"]
COMPUTING = [
    *ESTIMATING, "packing", "nodewise", "likelihood", "auto", "causes", "exact", "worlds", "theory",
]  # fmt: skip


def without_avx512():
    """Features of this processor as numba wants them, with AVX-512 hidden: pairs are then counted
    by look-up, not by popcount.
    """
    features = dict(sorted(binding.get_host_cpu_features().items()))
    shown = {name: has and not name.startswith("avx512") for name, has in features.items()}
    return ",".join(f"{'+' if has else '-'}{name}" for name, has in shown.items())


def run(told, parts):
    print("as with " + " ".join(f"{name}={value[:40]}" for name, value in told.items()), flush=True)
    files = [str(Path(__file__).with_name(f"test_{part}.py")) for part in parts]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"]
    command += ["-m", "not statistics", *files]
    return subprocess.run(command, env=os.environ | told, check=False).returncode


if __name__ == "__main__":
    codes = [
        run(
            {
                "NUMBA_CPU_NAME": "generic",
                "OPENBLAS_CORETYPE": "Nehalem",
                "OPENBLAS_NUM_THREADS": "1",
            },
            COMPUTING,
        ),
        run(
            {
                "NUMBA_CPU_FEATURES": without_avx512(),
                "OPENBLAS_CORETYPE": "Haswell",
                "OPENBLAS_NUM_THREADS": "2",
            },
            ESTIMATING,
        ),
    ]
    sys.exit(max(codes))
