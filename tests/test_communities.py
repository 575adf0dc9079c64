"""Communities: against enumeration of all partitions, and against networkx."""

import itertools

import networkx
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.modularity import best_partition


def summed(couplings):
    """What modularity sums over pairs in one community, by the formula of the docstring."""
    parts = [np.maximum(couplings, 0), np.maximum(-couplings, 0)]
    null = 0
    for part, sign in zip(parts, (1, -1), strict=True):
        sums = part.sum(axis=0)
        null = null + sign * np.outer(sums, sums) / max(sums.sum(), 1e-300)
    return (couplings - null) / np.abs(couplings).sum()


def partitions(n_nodes):
    """(n_partitions, n_nodes) labels of all of them."""
    found = [[0]]
    for _ in range(n_nodes - 1):
        found = [[*one, label] for one in found for label in range(max(one) + 2)]
    return np.array(found)


def random_couplings(rng, n_nodes, share):
    upper = np.triu(
        rng.normal(0.2, 1, (n_nodes, n_nodes)) * (rng.random((n_nodes, n_nodes)) < share), 1
    )
    return upper + upper.T


def test_the_best_of_all_partitions_is_found_in_small_networks(rng):
    """All 877 partitions of 7 columns, those held together by couplings above 0. Of 20 networks
    one may be missed, by 0.02; seen to fail with moves in one order only.
    """
    labels = partitions(7)
    is_same = labels[:, :, None] == labels[:, None]
    n_missed = 0
    for share in itertools.islice(itertools.cycle([0.3, 0.6, 1.0]), 20):
        couplings = random_couplings(rng, 7, share)
        values = is_same.reshape(len(labels), -1) @ summed(couplings).ravel()
        for best in np.argsort(-values):
            n_pieces = connected_components((couplings > 0) & is_same[best])[0]
            if n_pieces == labels[best].max() + 1:
                break
        found = ik.communities(ik.IsingModel(couplings)).modularity
        assert found <= values[best] + 1e-9
        assert found > values[best] - 0.02
        n_missed += found < values[best] - 1e-9
    assert n_missed <= 1


def test_modularity_is_that_of_networkx_without_negative_couplings(rng):
    couplings = np.abs(random_couplings(rng, 30, 0.15))
    found = ik.communities(ik.IsingModel(couplings))
    labels, modularity = best_partition(ik.IsingModel(couplings).couplings, rng)
    graph = networkx.from_numpy_array(couplings)
    parts = [set(np.flatnonzero(labels == k).tolist()) for k in range(labels.max() + 1)]
    assert networkx.community.modularity(graph, parts) == pytest.approx(modularity)
    louvain = networkx.community.louvain_communities(graph, seed=0)
    assert found.modularity > networkx.community.modularity(graph, louvain) - 1e-9


def test_louvain_of_networkx_on_all_pairs_finds_no_more(rng):
    """With a resolution of 0 networkx sums weights alone: those of all pairs, as modularity does.
    A loop of a node of its own makes them add up to 1, by which it divides. Its parts are taken
    apart where no coupling above 0 holds them together.
    """
    couplings = random_couplings(rng, 40, 0.1)
    values = summed(couplings)
    pairs = np.triu_indices(40, 1)
    graph = networkx.Graph()
    graph.add_weighted_edges_from(
        zip(*(one.tolist() for one in (*pairs, values[pairs])), strict=True)
    )
    graph.add_edge(-1, -1, weight=1 - values[pairs].sum())
    found = ik.communities(ik.IsingModel(couplings)).modularity
    for seed in range(3):
        parts = networkx.community.louvain_communities(graph, resolution=0, seed=seed)
        labels = np.empty(40, dtype=int)
        for k, part in enumerate(parts):
            labels[list(part - {-1})] = k
        is_held = (couplings > 0) & (labels[:, None] == labels)
        pieces = connected_components(is_held)[1]
        assert values[pieces[:, None] == pieces].sum() < found + 1e-9


def test_blocks_that_exclude_each_other_are_communities():
    block = np.repeat([0, 1, 2], [6, 5, 4])
    couplings = np.where(block[:, None] == block, 0.3, -0.1) * (1 - np.eye(15))
    model = ik.IsingModel(np.pad(couplings, (0, 1)))
    found = ik.communities(model)
    np.testing.assert_array_equal(found.numbers, [*(block + 1), 0])
    assert found.n_communities == 3
    assert found.table()["community"].tolist() == found.numbers.tolist()
    assert found.table()["name"].tolist() == list(model.names)
    assert isinstance(found, ik.Communities)


def test_the_same_seed_gives_the_same_communities(rng):
    model = ik.IsingModel(random_couplings(rng, 60, 0.1))
    once = ik.communities(model, random_state=3)
    again = ik.communities(model, random_state=3)
    np.testing.assert_array_equal(once.numbers, again.numbers)
    assert once.modularity == again.modularity


@pytest.mark.parametrize("scale", [1e-309, 1e100])
def test_the_scale_of_couplings_does_not_matter(rng, scale):
    """Seen never to end: the sum of the couplings was so small that shares of it were infinite."""
    signs = np.sign(random_couplings(rng, 12, 0.3))
    expected = ik.communities(ik.IsingModel(signs))
    found = ik.communities(ik.IsingModel(scale * signs))
    np.testing.assert_array_equal(found.numbers, expected.numbers)
    assert found.modularity == pytest.approx(expected.modularity)


def test_networks_without_edges_and_wrong_wishes():
    found = ik.communities(ik.IsingModel(np.zeros((3, 3))))
    assert found.numbers.tolist() == [0, 0, 0]
    assert found.modularity == 0
    assert ik.communities(ik.IsingModel([[0, -1], [-1, 0]])).n_communities == 0
    with pytest.raises(ex.SettingError, match="an IsingModel"):
        ik.communities([[0, 1], [1, 0]])
