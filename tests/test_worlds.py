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
        (lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=0), "a whole number >= 1"),
        (lambda: ik.sample(ik.RidgeIsing(), n_samples=3), "model must be an IsingModel"),
        (lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=1e3), "n_samples must be a whole number"),
        (lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=3, update="gibbs"), "'metropolis' or 'heat-bath'"),
        (lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=3, order="any"), "'sequential' or 'random'"),
        (lambda: ik.random_regular(n_spins="5", degree=3, coupling=1), "n_spins must be a whole number"),
        (lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=3, warm_up=-1), "a whole number >= 0"),
    ],
)
def test_impossible_worlds_are_refused(make, says):
    with pytest.raises(ex.SettingError, match=says):
        make()


def deviations(model, samples):
    """Of means, pair correlations, energy and a chi-square test of the states the largest deviation from enumeration, in standard
    errors."""
    samples = np.asarray(samples).astype(int)
    n_samples, n_spins = samples.shape
    states, probability = reference.probabilities(model.couplings.toarray(), model.fields)
    means, pairs = probability @ states, states.T @ (probability[:, None] * states)
    of_means = np.abs(samples.mean(axis=0) - means) / np.sqrt((1 - means**2) / n_samples)
    above = np.triu_indices(n_spins, 1)
    of_pairs = np.abs(samples.T @ samples / n_samples - pairs)[above] / np.sqrt((1 - pairs[above] ** 2) / n_samples)
    counts = np.bincount((samples > 0) @ 2 ** np.arange(n_spins - 1, -1, -1), minlength=2**n_spins)
    expected = n_samples * probability
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = 2**n_spins - 1
    energy = np.einsum("si,ij,sj->s", states, model.couplings.toarray() / 2, states) + states @ model.fields
    mean = probability @ energy
    of_energy = abs(counts @ energy / n_samples - mean) / np.sqrt(probability @ (energy - mean) ** 2 / n_samples)
    return max(of_means), max(of_pairs), of_energy, (chi_square - freedom) / np.sqrt(2 * freedom)


def small_world(kind, rng, factor=1.0):
    """Nine spins: one of degree 8, so that all widths of counters occur, the others random."""
    couplings = np.triu(rng.random((9, 9)) < 0.4, 1).astype(float)
    couplings[0, 1:] = 1
    couplings *= np.triu(rng.choice([-1, 1], (9, 9)), 1)
    fields = np.zeros(9)
    if kind == "unequal":
        couplings, fields = couplings * rng.uniform(0.5, 1.5, (9, 9)), rng.normal(0, 0.3, 9)
    couplings = 0.3 * factor * (couplings + couplings.T)
    return ik.IsingModel(couplings, fields * factor)


@pytest.mark.parametrize("order", ["sequential", "random"])
@pytest.mark.parametrize("update", ["metropolis", "heat-bath"])
@pytest.mark.parametrize("kind", ["one strength", "unequal"])
def test_samples_match_enumeration(kind, update, order):
    """2**17 chains as bits and as numbers, within five standard errors of enumeration.

    Seen to catch couplings wrong by 2 percent (below), and a threshold of acceptance off by one level.
    """
    model = small_world(kind, np.random.default_rng(2))
    samples = ik.sample(model, n_samples=2**17, warm_up=100, update=update, order=order, random_state=5)
    assert max(deviations(model, samples)) < 5


@pytest.mark.parametrize("kind", ["one strength", "unequal"])
def test_that_test_catches_couplings_wrong_by_two_percent(kind):
    model, wrong = (small_world(kind, np.random.default_rng(2), factor) for factor in (1.0, 1.02))
    assert max(deviations(model, ik.sample(wrong, n_samples=2**17, warm_up=100, random_state=5))) > 5


def test_spins_of_every_degree_up_to_63_are_sampled_by_bits():
    """A hub with d leaves: pair correlations are tanh K with it and tanh^2 K without, within five standard errors."""
    from isingkit.worlds.sampling import _has_one_strength

    for degree in (1, 2, 3, 4, 7, 8, 15, 16, 31, 63):
        couplings = np.zeros((degree + 1, degree + 1))
        couplings[0, 1:] = couplings[1:, 0] = 0.15 * np.where(np.arange(degree) % 2, -1, 1)
        model = ik.IsingModel(couplings)
        assert _has_one_strength(model)
        samples = np.asarray(ik.sample(model, n_samples=2**16, warm_up=60, random_state=degree)).astype(int)
        aligned = samples[:, 1:] * np.sign(couplings[0, 1:])
        assert np.abs((samples[:, :1] * aligned).mean(axis=0) - np.tanh(0.15)).max() < 5 / 2**8
        total = aligned.sum(axis=1)
        expected = degree + degree * (degree - 1) * np.tanh(0.15) ** 2
        assert abs((total**2).mean() - expected) <= 5 * (total**2).std() / 2**8 + 1e-9
    assert not _has_one_strength(ik.IsingModel(np.ones((66, 66)) - np.eye(66)))


def test_chains_are_independent_of_each_other():
    """Neighbouring chains agree as often as chance says: catches a shared random number, and correlations above 1 percent."""
    for field in (0.0, 1e-9):
        model = ik.IsingModel(0.1 * (np.eye(200, k=1) + np.eye(200, k=-1)), np.full(200, field))
        samples = np.asarray(ik.sample(model, n_samples=2048, warm_up=20, random_state=0)).astype(int)
        for distance in (1, 2, 63, 64, 65, 512):
            assert abs((samples[distance:] * samples[:-distance]).mean()) < 5 / np.sqrt(200 * 1536)


@pytest.mark.parametrize("fields", [0.0, 0.1])
def test_the_same_seed_gives_the_same_samples_on_any_number_of_threads(monkeypatch, fields):
    from numba import config

    model = ik.random_regular(n_spins=50, degree=3, coupling=0.4, random_state=0)
    model = ik.IsingModel(model.couplings, np.full(50, fields))
    drawn = []
    for n_threads in (1, 2):
        monkeypatch.setattr(config, "NUMBA_NUM_THREADS", n_threads)
        drawn.append(ik.sample(model, n_samples=1300, warm_up=5, random_state=9).words)
    np.testing.assert_array_equal(*drawn)
