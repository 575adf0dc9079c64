import networkx
import numpy as np
import pytest
import scipy.sparse

import isingkit as ik
import reference
from isingkit import exceptions as ex
from isingkit.worlds import graphs
from isingkit.worlds.sampling import default_warm_up


def degrees(model):
    return np.diff(model.couplings.indptr)


@pytest.mark.parametrize(("n_spins", "degree"), [(100, 3), (10, 9), (20, 16), (7, 0), (4, 2)])
def test_random_regular_graphs_have_their_degree_and_strength(n_spins, degree):
    model = ik.random_regular(n_spins=n_spins, degree=degree, coupling=0.01, random_state=0)
    np.testing.assert_array_equal(degrees(model), degree)
    assert set(np.abs(model.couplings.data)) <= {0.01}


def frequencies(draw, times):
    """How often each set of edges was drawn."""
    rng = np.random.default_rng(0)
    keys = [np.sort(np.sort(draw(rng), axis=1) @ [1000, 1]).tobytes() for _ in range(times)]
    return np.unique(keys, return_counts=True)[1]


def test_random_regular_graphs_are_about_equally_likely():
    """70 graphs of 6 spins with two neighbours each: none is drawn twice or half as often."""
    counts = frequencies(lambda rng: graphs.paired_stubs(6, 2, rng), 7000)
    assert len(counts) == 70
    assert counts.min() > 50
    assert counts.max() < 200


def test_trees_are_equally_likely():
    """16 trees of 4 spins, 3200 draws: a chi-square test at five standard errors."""
    counts = frequencies(lambda rng: graphs.tree_edges(rng.integers(4, size=2), 4), 3200)
    assert len(counts) == 16
    assert ((counts - 200) ** 2 / 200).sum() < 15 + 5 * np.sqrt(30)


@pytest.mark.parametrize("n_spins", [1, 2, 3, 50, 5000])
def test_random_trees_are_trees(n_spins):
    graph = ik.random_tree(n_spins=n_spins, coupling=0.3, random_state=n_spins).to_networkx()
    assert networkx.is_tree(graph)


def test_square_lattices_are_open_or_closed():
    closed, opened = (
        ik.square_lattice(side=5, coupling=0.2, periodic=p, random_state=0) for p in (True, False)
    )
    np.testing.assert_array_equal(degrees(closed), 4)
    np.testing.assert_array_equal(
        np.sort(np.unique(degrees(opened), return_counts=True)[1]), [4, 9, 12]
    )
    expected = networkx.convert_node_labels_to_integers(
        networkx.grid_2d_graph(5, 5), ordering="sorted"
    )
    assert (
        opened.couplings.astype(bool) != networkx.to_scipy_sparse_array(expected).astype(bool)
    ).nnz == 0


def test_almost_every_pair_may_be_an_edge():
    """Of a complete graph, and of one that is all but complete, each pair is drawn once."""
    complete = ik.erdos_renyi(n_spins=300, mean_degree=300, coupling=0.001, random_state=0)
    assert complete.n_edges == 300 * 299 // 2
    left_out = np.zeros((12, 12))
    for seed in range(400):
        model = ik.erdos_renyi(n_spins=12, mean_degree=10.8, coupling=0.001, random_state=seed)
        left_out += model.couplings.toarray() == 0
    counts = left_out[np.triu_indices(12, 1)]
    assert ((counts - 40) ** 2 / (40 * 0.9)).sum() < 66 + 5 * np.sqrt(132)  # a chi-square test


def test_every_pair_of_an_erdos_renyi_graph_is_as_likely():
    """All 45 pairs of 10 spins, 1000 graphs: a chi-square test at five standard errors."""
    total = np.zeros((10, 10))
    for seed in range(1000):
        model = ik.erdos_renyi(n_spins=10, mean_degree=3, coupling=0.1, random_state=seed)
        total += model.couplings.toarray() != 0
    counts = total[np.triu_indices(10, 1)]
    assert ((counts - 300) ** 2 / (300 * 0.7)).sum() < 45 + 5 * np.sqrt(90)


def test_ranks_are_those_of_pairs():
    """All pairs of small graphs in order, and of ten million spins, where square roots round."""
    expected = [(i, j) for j in range(40) for i in range(j)]
    assert list(map(tuple, graphs._unranked(np.arange(780)).tolist())) == expected
    n_spins = 10_000_000
    last = n_spins * (n_spins - 1) // 2 - 1
    pairs = graphs._unranked(np.array([last, last - n_spins + 2, last - n_spins + 1]))
    assert pairs.tolist() == [
        [n_spins - 2, n_spins - 1],
        [0, n_spins - 1],
        [n_spins - 3, n_spins - 2],
    ]


def test_couplings_and_fields_come_in_every_form():
    from scipy import stats

    def make(**settings):
        return ik.random_regular(n_spins=2000, degree=3, random_state=0, **settings)

    assert (make(coupling=0.2, signs="fixed").couplings.data == 0.2).all()
    assert abs((make(coupling=0.2).couplings.data > 0).mean() - 0.5) < 5 * 0.5 / np.sqrt(3000)
    assert make(coupling=stats.norm(0.1, 0.05)).couplings.data.mean() == pytest.approx(
        0.1, abs=5 * 0.05 / np.sqrt(3000)
    )
    assert (
        np.abs(make(coupling=stats.uniform(0.1, 0.1), signs="random").couplings.data) >= 0.1
    ).all()
    given = np.linspace(0.1, 0.2, 3000)
    np.testing.assert_array_equal(
        np.sort(make(coupling=given).couplings.data), np.sort(np.repeat(given, 2))
    )
    assert (make(coupling=0.2, fields=0.3).fields == 0.3).all()
    assert make(coupling=0.2, fields=stats.norm(0, 1)).fields.std() == pytest.approx(1, abs=0.1)
    for wrong in (
        {"coupling": [0.1, 0.2]},
        {"coupling": "strong"},
        {"coupling": 0.2, "signs": "plus"},
        {"coupling": 0.2, "fields": [1]},
    ):
        with pytest.raises(ex.SettingError):
            make(**wrong)


def test_any_graph_becomes_a_model_and_back():
    graph = networkx.Graph()
    graph.add_edge("Ann", "Bob", coupling=0.5)
    graph.add_edge("Bob", "Cid", coupling=-0.25)
    graph.add_node("Dan", field=1.5)
    model = ik.from_graph(graph)
    assert model.names == ("Ann", "Bob", "Cid", "Dan")
    assert model.edges().tolist() == [("Ann", "Bob", 0.5), ("Bob", "Cid", -0.25)]
    assert model.fields.tolist() == [0, 0, 0, 1.5]
    assert (ik.from_graph(model.to_networkx()).couplings != model.couplings).nnz == 0
    assert set(
        np.abs(ik.from_graph(networkx.karate_club_graph(), coupling=0.1).couplings.data)
    ) == {0.1}
    for wrong in (networkx.DiGraph([(0, 1)]), networkx.Graph([(0, 0)]), networkx.Graph([(0, 1)])):
        with pytest.raises(ex.SettingError):
            ik.from_graph(wrong)


def test_the_phase_is_the_papers_condition_and_an_ordered_teacher_is_warned_of():
    phase = ik.paramagnetic(ik.random_regular(n_spins=3000, degree=4, coupling=0.3, random_state=0))
    assert phase.glass == pytest.approx(3 * np.tanh(0.3) ** 2, rel=1e-6)
    assert phase.holds
    with pytest.warns(ex.OrderedTeacherWarning, match="not paramagnetic") as caught:
        model = ik.random_regular(
            n_spins=3000, degree=4, coupling=0.4, signs="fixed", random_state=0
        )
    assert caught[0].filename == __file__
    assert ik.paramagnetic(model).order == pytest.approx(3 * np.tanh(0.4), rel=1e-6)
    assert caught[0].message.glass < 1 < caught[0].message.order
    chain = ik.IsingModel(np.eye(10, k=1) + np.eye(10, k=-1))
    assert ik.paramagnetic(chain).glass == ik.paramagnetic(chain).order == 0
    assert ik.paramagnetic(ik.IsingModel(np.zeros((3, 3)))).holds


def test_erdos_renyi_graphs_have_their_mean_degree():
    """400 graphs of 100 spins: catches a mean degree wrong by 1 percent (five standard errors are
    0.7 percent).
    """
    degrees = [
        2 * ik.erdos_renyi(n_spins=100, mean_degree=4, coupling=0.1, random_state=s).n_edges / 100
        for s in range(400)
    ]
    assert np.mean(degrees) == pytest.approx(4 * 99 / 100, rel=0.007)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: ik.random_regular(n_spins=50, degree=3, coupling=0.4, random_state=seed),
        lambda seed: ik.erdos_renyi(n_spins=50, mean_degree=3, coupling=0.4, random_state=seed),
    ],
)
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
        (
            lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=1e3),
            "n_samples must be a whole number",
        ),
        (
            lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=3, update="gibbs"),
            "'heat-bath' or 'metropolis'",
        ),
        (
            lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=3, order="any"),
            "'sequential' or 'random'",
        ),
        (
            lambda: ik.random_regular(n_spins="5", degree=3, coupling=1),
            "n_spins must be a whole number",
        ),
        (
            lambda: ik.sample(ik.IsingModel([[0, 1], [1, 0]]), n_samples=3, warm_up=-1),
            "a whole number >= 0",
        ),
    ],
)
def test_impossible_worlds_are_refused(make, says):
    with pytest.raises(ex.SettingError, match=says):
        make()


def deviations(model, samples):
    """Largest deviations from enumeration, in standard errors.

    Of means, of pair correlations, of the energy, and of a chi-square test of the states.
    """
    samples = np.asarray(samples).astype(int)
    n_samples, n_spins = samples.shape
    states, probability = reference.probabilities(model.couplings.toarray(), model.fields)
    means = probability @ states
    pairs = states.T @ (probability[:, None] * states)
    of_means = np.abs(samples.mean(axis=0) - means) / np.sqrt((1 - means**2) / n_samples)
    above = np.triu_indices(n_spins, 1)
    of_pairs = np.abs(samples.T @ samples / n_samples - pairs)[above] / np.sqrt(
        (1 - pairs[above] ** 2) / n_samples
    )
    counts = np.bincount((samples > 0) @ 2 ** np.arange(n_spins - 1, -1, -1), minlength=2**n_spins)
    expected = n_samples * probability
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = 2**n_spins - 1
    energy = (
        np.einsum("si,ij,sj->s", states, model.couplings.toarray() / 2, states)
        + states @ model.fields
    )
    mean = probability @ energy
    of_energy = abs(counts @ energy / n_samples - mean) / np.sqrt(
        probability @ (energy - mean) ** 2 / n_samples
    )
    return max(of_means), max(of_pairs), of_energy, (chi_square - freedom) / np.sqrt(2 * freedom)


def small_world(kind, rng, factor=1.0):
    """Nine spins: one of degree 8, so that all widths of counters occur, the others random."""
    couplings = np.triu(rng.random((9, 9)) < 0.4, 1).astype(float)
    couplings[0, 1:] = 1
    couplings *= np.triu(rng.choice([-1, 1], (9, 9)), 1)
    fields = np.zeros(9)
    if kind == "unequal":
        couplings *= rng.uniform(0.5, 1.5, (9, 9))
        fields = rng.normal(0, 0.3, 9)
    couplings = 0.3 * factor * (couplings + couplings.T)
    return ik.IsingModel(couplings, fields * factor)


@pytest.mark.parametrize("order", ["sequential", "random"])
@pytest.mark.parametrize("update", ["metropolis", "heat-bath"])
@pytest.mark.parametrize("kind", ["one strength", "unequal"])
def test_samples_match_enumeration(kind, update, order):
    """2**17 chains as bits and as numbers, within five standard errors of enumeration.

    Seen to catch couplings wrong by 2 percent (below), and a threshold of acceptance off by one
    level.
    """
    model = small_world(kind, np.random.default_rng(2))
    samples = ik.sample(
        model, n_samples=2**17, warm_up=100, update=update, order=order, random_state=5
    )
    assert max(deviations(model, samples)) < 5


@pytest.mark.parametrize("kind", ["one strength", "unequal"])
def test_that_test_catches_couplings_wrong_by_two_percent(kind):
    model, wrong = (small_world(kind, np.random.default_rng(2), factor) for factor in (1.0, 1.02))
    assert (
        max(deviations(model, ik.sample(wrong, n_samples=2**17, warm_up=100, random_state=5))) > 5
    )


def test_spins_of_every_degree_up_to_63_are_sampled_by_bits():
    """A hub with d leaves: pair correlations are tanh K with it and tanh^2 K without, within five
    standard errors.
    """
    from isingkit.worlds.sampling import _has_one_strength

    for degree in (1, 2, 3, 4, 7, 8, 15, 16, 31, 63):
        couplings = np.zeros((degree + 1, degree + 1))
        couplings[0, 1:] = couplings[1:, 0] = 0.15 * np.where(np.arange(degree) % 2, -1, 1)
        model = ik.IsingModel(couplings)
        assert _has_one_strength(model)
        update = ("metropolis", "heat-bath")[degree % 2]
        samples = np.asarray(
            ik.sample(model, n_samples=2**16, warm_up=300, update=update, random_state=degree)
        ).astype(int)
        aligned = samples[:, 1:] * np.sign(couplings[0, 1:])
        assert np.abs((samples[:, :1] * aligned).mean(axis=0) - np.tanh(0.15)).max() < 5 / 2**8
        total = aligned.sum(axis=1)
        expected = degree + degree * (degree - 1) * np.tanh(0.15) ** 2
        assert abs((total**2).mean() - expected) <= 5 * (total**2).std() / 2**8 + 1e-9
    assert not _has_one_strength(ik.IsingModel(np.ones((66, 66)) - np.eye(66)))


def test_chains_are_independent_of_each_other():
    """Neighbouring chains agree as often as chance says: catches a shared random number, and
    correlations above 1 percent.
    """
    for field in (0.0, 1e-9):
        model = ik.IsingModel(0.1 * (np.eye(200, k=1) + np.eye(200, k=-1)), np.full(200, field))
        drawn = ik.sample(model, n_samples=2048, warm_up=20, random_state=0)
        samples = np.asarray(drawn).astype(int)
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
        drawn.append(ik.sample(model, n_samples=1300, warm_up=5, check=False, random_state=9).words)
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("update", ["metropolis", "heat-bath"])
@pytest.mark.parametrize("field", [0.0, 1e-12])
def test_isolated_spins_are_coins(update, field):
    """Metropolis would flip them every time, so that chains that start aligned would stay so."""
    couplings = np.zeros((6, 6))
    couplings[0, 1] = couplings[1, 0] = 0.5
    model = ik.IsingModel(couplings, np.full(6, field))
    samples = np.asarray(
        ik.sample(
            model,
            n_samples=2**14,
            warm_up=30,
            n_chains=2**11,
            thin=5,
            update=update,
            random_state=0,
        )
    ).astype(int)
    assert np.abs(samples.mean(axis=0)).max() < 5 / 2**7
    snapshots = samples.reshape(8, 2**11, 6)[:, :, 2:]
    assert abs((snapshots[1:] * snapshots[:-1]).mean()) < 5 / np.sqrt(7 * 2**11 * 4)


def test_fewer_chains_are_seen_repeatedly():
    model = ik.random_regular(n_spins=20, degree=3, coupling=0.4, random_state=0)
    samples = ik.sample(model, n_samples=1000, n_chains=300, thin=3, random_state=1)
    assert samples.shape == (1000, 20)
    longer = ik.sample(
        model, n_samples=300, warm_up=ik_default(model) + 3, random_state=1, check=False
    )
    np.testing.assert_array_equal(np.asarray(samples[300:600]), np.asarray(longer))


def ik_default(model):
    from isingkit.worlds.sampling import default_warm_up

    return default_warm_up(model)


def test_warm_up_follows_the_phase():
    assert ik_default(ik.IsingModel(np.zeros((3, 3)))) == 100
    assert (
        ik_default(ik.erdos_renyi(n_spins=2000, mean_degree=4, coupling=0.4, random_state=0)) > 150
    )
    with pytest.warns(ex.OrderedTeacherWarning):
        assert ik_default(ik.square_lattice(side=5, coupling=1.0, signs="fixed")) == 10_000


def test_chains_that_have_not_forgotten_their_start_are_refused():
    with pytest.warns(ex.OrderedTeacherWarning):
        magnet = ik.square_lattice(side=16, coupling=0.6, signs="fixed")
    with pytest.raises(
        ex.NotEquilibratedError, match="of their spin sum R-hat is .*Raise warm_up"
    ) as caught:
        ik.sample(magnet, n_samples=100, warm_up=200, random_state=1)
    assert caught.value.diagnostics["spin sum"]["starts_apart"] > 5
    assert caught.value.diagnostics["energy"].keys() == {
        "r_hat",
        "effective_samples",
        "starts_apart",
    }
    ik.sample(magnet, n_samples=100, warm_up=200, check=False, random_state=1)  # its advice
    model = ik.random_regular(n_spins=1000, degree=3, coupling=0.4, random_state=0)
    with pytest.raises(ex.NotEquilibratedError):
        ik.sample(model, n_samples=100, warm_up=3, random_state=1)
    ik.sample(model, n_samples=100, warm_up=30, random_state=1)  # its advice


def test_sound_worlds_are_hardly_ever_refused():
    """200 small worlds, bits and numbers: none refused."""
    for seed in range(100):
        model = ik.random_regular(n_spins=30, degree=3, coupling=0.4, random_state=seed)
        ik.sample(model, n_samples=64, random_state=seed)
        ik.sample(ik.IsingModel(model.couplings, np.full(30, 0.1)), n_samples=64, random_state=seed)


def test_edge_correlations_of_large_random_regular_graphs_are_tanh():
    """N = 1600, c = 3, K = 0.4: the mean of sign * <s_i s_j> over edges, 2048 chains; three
    standard errors and loops of O(1/N).
    """
    model = ik.random_regular(n_spins=1600, degree=3, coupling=0.4, random_state=0)
    samples = np.asarray(ik.sample(model, n_samples=2048, random_state=1)).astype(np.float64)
    upper = scipy.sparse.triu(model.couplings).tocoo()
    by_chain = (samples[:, upper.row] * samples[:, upper.col] * np.sign(upper.data)).mean(axis=1)
    assert abs(by_chain.mean() - np.tanh(0.4)) < 3 * by_chain.std() / np.sqrt(2048) + 1 / 1600


@pytest.mark.parametrize("field", [0.0, 1e-13])
@pytest.mark.parametrize(("n_spins", "product"), [(3, -1), (4, 1), (5, 1), (6, -1)])
def test_metropolis_in_turn_does_not_go_round_in_circles(n_spins, product, field):
    """Rings, frustrated ones too: were flips that cost nothing always accepted, chains would never
    forget their start.
    """
    couplings = 0.5 * (np.eye(n_spins, k=1) + np.eye(n_spins, k=1 - n_spins))
    couplings[0, 1] *= product
    model = ik.IsingModel(couplings + couplings.T, np.full(n_spins, field))
    samples = ik.sample(model, n_samples=51_200, warm_up=300, update="metropolis", random_state=0)
    assert max(deviations(model, samples)) < 5


def test_large_numbers_that_cancel_do_not_lose_the_small_one():
    """-1e6 and 1e6 + 0.3 leave a field of 0.3, which single precision would not see: catches a mean
    wrong by 3 percent.
    """
    model = ik.IsingModel([[0, -1e6], [-1e6, 0]], [1e6 + 0.3, 4e6])
    for update in ("heat-bath", "metropolis"):
        samples = np.asarray(
            ik.sample(
                model, n_samples=2**18, warm_up=30, update=update, check=False, random_state=0
            )
        )
        assert samples[:, 0].mean() == pytest.approx(np.tanh(0.3), abs=5 / 2**9)


def test_frozen_spins_and_short_warm_ups_are_no_disagreement(rng):
    couplings = np.triu(0.1 * rng.normal(size=(50, 50)), 1) / 7
    ik.sample(
        ik.IsingModel(couplings + couplings.T, 10 + rng.normal(size=50)),
        n_samples=64,
        random_state=0,
    )
    weak = ik.random_regular(n_spins=100, degree=3, coupling=0.05, random_state=0)
    for warm_up in (1, 2, 3, 5, 10, 30):
        ik.sample(weak, n_samples=512, warm_up=warm_up, random_state=0)


def test_warm_up_goes_on_until_chains_have_forgotten_their_start():
    """Rings at K = 1.3 need more than the first warm-up: asked for by its length, most are refused;
    by default all are sampled.
    """
    refused = 0
    for seed in range(8):
        model = ik.random_regular(n_spins=200, degree=2, coupling=1.3, random_state=seed)
        assert ik.sample(model, 200, random_state=seed).n_samples == 200
        try:
            ik.sample(model, 200, warm_up=default_warm_up(model), random_state=seed)
        except ex.NotEquilibratedError:
            refused += 1
    assert refused >= 4
