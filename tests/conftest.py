import gc
from pathlib import Path

import numpy as np
import pytest

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def rng():
    return np.random.default_rng(20260101)


@pytest.fixture
def shared_data():
    if not SHARED_DATA.is_dir():
        pytest.skip("the real data sets are not beside the checkout")
    return SHARED_DATA


@pytest.fixture
def spins(rng):
    """300 samples of 12 spins with real couplings between neighbours, -1/+1."""
    values = rng.choice([-1, 1], (300, 12))
    for j in range(1, 12):
        copied = rng.random(300) < 0.4
        values[copied, j] = values[copied, j - 1]
    return values


def pytest_configure():
    """Imports make objects that stay: looking for garbage among them took a third of collecting
    the tests, and a tenth of running those that are quick.
    """
    gc.disable()


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.enable()
