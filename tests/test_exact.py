import numpy as np
import pytest
from scipy import stats

import isingkit as ik
import reference
from isingkit import exceptions as ex


def a_tree(seed, n_spins=9):
    return ik.random_tree(
        n_spins=n_spins, coupling=stats.norm(0, 0.8), fields=stats.norm(0, 0.5), random_state=seed
    )


def a_forest(seed):
    couplings = a_tree(seed).couplings.toarray()
    row, column = np.argwhere(np.triu(couplings))[0]
    couplings[row, column] = couplings[column, row] = 0
    return ik.IsingModel(couplings, a_tree(seed).fields)


def a_graph(seed):
    return ik.erdos_renyi(
        n_spins=9,
        mean_degree=4,
        coupling=stats.norm(0, 0.3),
        fields=stats.norm(0, 0.5),
        random_state=seed,
    )


@pytest.mark.parametrize("make", [a_tree, a_forest, a_graph])
@pytest.mark.parametrize("seed", range(4))
def test_exact_sums_equal_the_definition(make, seed):
    """[eq:BotzmanDistr-def]"""
    model = make(seed)
    states, probability = reference.probabilities(model.couplings.toarray(), model.fields)
    energy = (
        0.5 * np.einsum("si,ij,sj->s", states, model.couplings.toarray(), states)
        + states @ model.fields
    )
    found = ik.exact(model)
    assert type(found).__name__ == ("Enumeration" if make is a_graph else "Tree")
    assert found.log_z == pytest.approx(np.log(np.exp(energy).sum()), rel=1e-13)
    np.testing.assert_allclose(found.means, probability @ states, atol=1e-14)
    pairs = states.T @ (probability[:, None] * states)
    if make is a_graph:
        np.testing.assert_allclose(found.pair_means, pairs, atol=1e-13)
        place = (states > 0) @ 2 ** np.arange(9)
        np.testing.assert_allclose(found.probabilities[place], probability, atol=1e-15)
    else:
        np.testing.assert_allclose(
            [[found.pair_mean(i, j) for j in range(9)] for i in range(9)], pairs, atol=1e-13
        )
        assert found.pair_mean(-1, 8) == pytest.approx(1)


@pytest.mark.parametrize("make", [a_tree, a_forest, a_graph])
def test_exact_samples_match_enumeration(make):
    """2**17 samples: means and pair correlations within five standard errors.

    Catches a coupling of 0.4 wrong by 4 percent.
    """
    model = make(0)
    states, probability = reference.probabilities(model.couplings.toarray(), model.fields)
    samples = np.asarray(ik.exact(model).sample(n_samples=2**17, random_state=1)).astype(int)
    means = probability @ states
    pairs = states.T @ (probability[:, None] * states)
    assert (np.abs(samples.mean(axis=0) - means) < 5 * np.sqrt((1 - means**2) / 2**17)).all()
    above = np.triu_indices(9, 1)
    error = np.sqrt((1 - pairs[above] ** 2) / 2**17)
    assert (np.abs(samples.T @ samples / 2**17 - pairs)[above] < 5 * error).all()


def test_without_fields_correlations_on_a_large_tree_are_products_of_tanh():
    """10,000 spins: the formula for the exact sums, and Monte Carlo against it for 200 pairs within
    five standard errors.
    """
    model = ik.random_tree(n_spins=10_000, coupling=0.6, random_state=0)
    tree = ik.exact(model)
    assert tree.log_z == pytest.approx(10_000 * np.log(2) + 9_999 * np.log(np.cosh(0.6)), rel=1e-12)
    np.testing.assert_allclose(tree.means, 0, atol=1e-15)
    samples = np.asarray(ik.sample(model, n_samples=4096, random_state=1))
    rng = np.random.default_rng(0)
    for _ in range(200):
        spin = int(rng.integers(10_000))
        n_steps = int(rng.integers(1, 5))
        product = 1.0
        other = spin
        for _ in range(n_steps):
            if tree.parent[other] < 0:
                break
            product *= np.tanh(tree.parent_couplings[other])
            other = int(tree.parent[other])
        assert tree.pair_mean(spin, other) == pytest.approx(product, abs=1e-13)
        measured = (samples[:, spin].astype(int) * samples[:, other]).mean()
        assert abs(measured - product) <= 5 * np.sqrt((1 - product**2) / 4096) + 1e-12


def test_what_cannot_be_summed_is_refused():
    model = ik.random_regular(n_spins=30, degree=3, coupling=0.2, random_state=0)
    with pytest.raises(ex.SettingError, match="a tree, or have at most 24 spins"):
        ik.exact(model)
    with pytest.raises(ex.SettingError, match="an IsingModel"):
        ik.exact("model")
    with pytest.raises(ex.SettingError, match="n_samples"):
        ik.exact(a_tree(0)).sample(n_samples=0)


def test_same_seed_same_samples():
    for make in (a_tree, a_graph):
        one, two = (ik.exact(make(0)).sample(n_samples=100, random_state=3) for _ in range(2))
        np.testing.assert_array_equal(one.words, two.words)
