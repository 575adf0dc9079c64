"""Kernels as plain Python: what numba compiles is what is written."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.compiler import Flags
from numba.core.registry import cpu_target

from isingkit import exceptions as ex
from isingkit._kernels import flags

SCRIPT = Path(__file__).with_name("uncompiled.py")


def found(path, **environment):
    """What the script finds in a process of its own."""
    subprocess.run([sys.executable, SCRIPT, path], env=os.environ | environment, check=True)
    return pickle.loads(path.read_bytes())


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    plain = found(folder / "plain.pickle", NUMBA_DISABLE_JIT="1")
    return plain, found(folder / "compiled.pickle", NUMBA_DISABLE_JIT="0")


def test_quick_flags_are_those_of_the_compiler():
    """Numba looks up what it has typed by its flags: equal ones must have the same hash."""
    if "pipeline_class" not in flags.KERNEL:
        pytest.skip("this version of numba compiles as it always does")
    plain = Flags()
    plain.error_model = "numpy"
    compiler = flags.KERNEL["pipeline_class"]
    context = (cpu_target.typing_context, cpu_target.target_context)
    quick = compiler(*context, None, (), None, plain, {}).state.flags
    assert type(quick) is not Flags
    assert quick == plain
    assert plain == quick
    assert hash(quick) == hash(plain)
    assert quick.values() == plain.values()
    assert quick != Flags()


def test_kernels_say_the_same_without_compilation(both):
    """The same edges, bits and counts, and values to 1e-9: vectors sum in another order, and
    iterations stop elsewhere. Seen to fail with a sign changed in the plain twin of covariances.
    """
    plain, compiled = both
    assert plain.keys() == compiled.keys()
    for name, values in plain.items():
        np.testing.assert_array_equal(values[0] != 0, compiled[name][0] != 0, err_msg=name)
        for ours, theirs in zip(values, compiled[name], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=name)


def test_where_compiled_code_cannot_be_kept_everything_runs_and_says_so_once():
    """As in an installation that is read-only, without a home. Seen to fail: nothing ran."""
    code = (
        "import numba.core.caching as caching; caching.CacheImpl._locator_classes = [];"
        "import numpy as np, isingkit as ik;"
        "spins = np.random.default_rng(0).choice([-1, 1], (90, 5));"
        "print(ik.RidgeIsing().fit(spins).model_.n_spins)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "5\n", done.stderr
    assert done.stderr.count("compiled code cannot be kept") == 1
    assert issubclass(ex.UncachedKernelsWarning, UserWarning)
