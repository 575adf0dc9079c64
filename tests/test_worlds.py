import numpy as np
import pytest

import isingkit as ik
import reference
from isingkit import exceptions as ex


def test_random_regular_graphs_have_their_degree_and_strength():
    model = ik.random_regular(n_spins=100, degree=3, coupling=0.4, random_state=0)
    np.testing.assert_array_equal((model.couplings != 0).sum(axis=1), 3)
    np.testing.assert_array_equal(np.unique(model.couplings.data), [-0.4, 0.4])


def test_erdos_renyi_graphs_have_their_mean_degree():
    """400 graphs of 100 spins: catches a mean degree wrong by 1 percent (five standard errors are 0.7 percent)."""
    degrees = [2 * ik.erdos_renyi(n_spins=100, mean_degree=4, coupling=1, random_state=s).n_edges / 100 for s in range(400)]
    assert np.mean(degrees) == pytest.approx(4 * 99 / 100, rel=0.007)


@pytest.mark.parametrize("make", [
    lambda seed: ik.random_regular(n_spins=50, degree=3, coupling=0.4, random_state=seed),
    lambda seed: ik.erdos_renyi(n_spins=50, mean_degree=3, coupling=0.4, random_state=seed),
])  # fmt: skip
def test_the_same_seed_gives_the_same_world(make):
    assert (make(3).couplings != make(3).couplings).nnz == 0
    assert (make(3).couplings != make(4).couplings).nnz > 0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ik.random_regular(n_spins=5, degree=3, coupling=1), "n_spins \\* degree even"),
        (lambda: ik.random_regular(n_spins=4, degree=4, coupling=1), "from 0 to n_spins - 1 = 3"),
        (lambda: ik.erdos_renyi(n_spins=4, mean_degree=5, coupling=1), "from 0 to n_spins = 4"),
        (lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=0), "at least 1"),
        (lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=3, warm_up=-1), "at least 0"),
    ],
)
def test_impossible_worlds_are_refused(make, says):
    with pytest.raises(ex.SettingError, match=says):
        make()


def test_samples_match_enumeration(rng):
    """2**17 chains of 8 spins with unequal couplings and fields: every mean and pair correlation within five standard errors,
    and a chi-square test of the 256 states. Seen to catch couplings wrong by 2 percent and fields wrong by 3 percent."""
    couplings = np.triu(rng.normal(0, 0.4, (8, 8)), 1)
    model = ik.IsingModel(couplings + couplings.T, fields=rng.normal(0, 0.3, 8))
    n_samples = 2**17
    samples = np.asarray(ik.sample(model, n_samples=n_samples, warm_up=60, random_state=5)).astype(int)
    states, probability = reference.probabilities(model.couplings.toarray(), model.fields)
    means, pairs = probability @ states, states.T @ (probability[:, None] * states)
    error = np.sqrt((1 - means**2) / n_samples)
    assert (np.abs(samples.mean(axis=0) - means) < 5 * error).all()
    error = np.sqrt((1 - pairs**2) / n_samples) + np.eye(8)
    assert (np.abs(samples.T @ samples / n_samples - pairs) < 5 * error).all()
    counts = np.bincount((samples > 0) @ 2 ** np.arange(7, -1, -1), minlength=256)
    expected = n_samples * probability
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < 255 + 5 * np.sqrt(2 * 255)


def test_chains_are_independent_of_each_other():
    """Neighbouring chains agree as often as chance says: catches a shared random number, and correlations above 1 percent."""
    model = ik.IsingModel(np.zeros((200, 200)))
    samples = np.asarray(ik.sample(model, n_samples=2048, warm_up=1, random_state=0)).astype(int)
    for distance in (1, 2, 63, 64, 65):
        assert abs((samples[distance:] * samples[:-distance]).mean()) < 5 / np.sqrt(200 * 2048)


def test_the_same_seed_gives_the_same_samples_on_any_number_of_threads(monkeypatch):
    from numba import config

    model = ik.random_regular(n_spins=50, degree=3, coupling=0.4, random_state=0)
    drawn = []
    for n_threads in (1, 2):
        monkeypatch.setattr(config, "NUMBA_NUM_THREADS", n_threads)
        drawn.append(ik.sample(model, n_samples=300, warm_up=5, random_state=9).words)
    np.testing.assert_array_equal(*drawn)
