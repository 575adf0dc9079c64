"""Rows that depend on each other, and rows that only look as if they did."""

import warnings

import numpy as np
import pytest

import isingkit as ik
import reference
from isingkit import exceptions as ex
from isingkit._kernels import row_dependence as kernels
from isingkit.estimators import network_search, selection
from isingkit.estimators.row_dependence import row_dependence
from isingkit.estimators.row_distances import lagged_distances, row_bits

N_SPINS = 40
N_ROWS = 1000


def world(seed, n_spins=N_SPINS, coupling=0.3):
    return ik.random_regular(n_spins=n_spins, degree=3, coupling=coupling, random_state=seed)


def draw(model, n_rows, seed):
    return np.asarray(ik.sample(model, n_samples=n_rows, random_state=seed))


def updated(values, model, fraction, rng):
    """Rows in which some spins, chosen for each row, were drawn anew given the others."""
    values = values.copy()
    n_rows, n_spins = values.shape
    couplings = model.couplings.toarray()
    every = np.arange(n_rows)
    chosen = rng.permuted(np.tile(np.arange(n_spins), (n_rows, 1)), axis=1)
    for spin in chosen[:, : round(fraction * n_spins)].T:
        field = (couplings[spin] * values).sum(axis=1) + model.fields[spin]
        is_up = rng.random(n_rows) < 1 / (1 + np.exp(-2 * field))
        values[every, spin] = np.where(is_up, 1, -1)
    return values


def panel(model, n_persons, n_waves, seed):
    """(n_waves, n_persons, n_spins): 30 percent of spins are drawn anew from wave to wave."""
    rng = np.random.default_rng(seed)
    waves = [draw(model, n_persons, seed)]
    for _ in range(n_waves - 1):
        waves.append(updated(waves[-1], model, 0.3, rng))
    return np.array(waves)


def series(model, n_rows, seed):
    """One chain, 20 percent of whose spins are drawn anew from row to row."""
    rng = np.random.default_rng(seed)
    rows = [draw(model, 1, seed)]
    for _ in range(n_rows - 1):
        rows.append(updated(rows[-1], model, 0.2, rng))
    return np.vstack(rows)


def look(table, **settings):
    """What is said of a table, given the network fitted to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.IsingkitWarning)
        packed = ik.pack(ik.as_spins(table, **settings))
        fit = ik.AutoIsing(**settings).fit(table)
    return row_dependence(packed, fit.model_)


def holding(groups, truth):
    """Share of the pairs of rows that belong together which groups hold together."""
    together = truth[:, np.newaxis] == truth
    np.fill_diagonal(together, False)
    return (groups[:, np.newaxis] == groups)[together].mean()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", ["by person", "by wave", "shuffled"])
def test_waves_of_the_same_persons_are_seen_and_grouped_in_any_order(order, seed):
    """The design effect is 2.6: a quarter less would fail, as would groups that miss half."""
    waves = panel(world(seed), 200, 5, seed + 10)
    persons = np.tile(np.arange(200), 5)
    rows = {
        "by person": np.argsort(persons, kind="stable"),
        "by wave": np.arange(N_ROWS),
        "shuffled": np.random.default_rng(seed).permutation(N_ROWS),
    }[order]
    found = look(waves.reshape(N_ROWS, N_SPINS)[rows])
    assert found.kind == "repeats"
    assert 2.0 < found.design_effect < 3.2
    assert holding(found.groups, persons[rows]) > 0.5
    assert np.bincount(found.groups).max() <= 100
    assert found.n_alike > 800
    assert "groups=" in found.advice


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_table_pasted_twice_is_seen_and_copies_are_grouped(shuffled):
    values = draw(world(0), 500, 1)
    rows = np.tile(np.arange(500), 2)
    if shuffled:
        rows = np.random.default_rng(0).permutation(rows)
    found = look(values[rows])
    assert found.kind == "pasted"
    assert found.design_effect == 2.0
    assert (np.bincount(found.groups) == 2).all()
    for group in range(0, 500, 50):
        first, second = values[rows][found.groups == group]
        assert (first == second).all()
    assert "copies" in found.advice


def test_a_table_half_of_which_was_pasted_again_has_repeats():
    values = draw(world(1), 500, 1)
    rows = np.concatenate([np.arange(500), np.arange(250)])
    found = look(values[rows])
    assert found.kind == "repeats"
    assert found.design_effect == pytest.approx(1 + 2 * 250 / 750, abs=0.05)
    assert holding(found.groups, rows) > 0.95


@pytest.mark.parametrize("seed", range(2))
def test_a_slow_series_is_ordered_and_also_seen_when_shuffled(seed):
    """The design effect is 6.7, as 20,000 rows have it: 30 percent less would fail."""
    values = series(world(seed), N_ROWS, seed + 20)
    found = look(values)
    assert found.kind == "ordered"
    assert found.groups is None
    assert found.design_effect == pytest.approx(6.7, rel=0.2)
    assert 12 <= found.block_length <= 50  # there are at least 20 blocks
    assert 'rows="ordered"' in found.advice
    shuffled = look(np.random.default_rng(seed).permutation(values))
    assert shuffled.kind == "repeats"
    assert shuffled.design_effect > 4


def test_rows_of_a_site_are_seen_in_order_and_shuffled(rng):
    """50 sites with fields of their own (sd 1), 20 rows each: the design effect is about 4."""
    model = world(3)
    parts = []
    for _ in range(50):
        fields = rng.normal(size=N_SPINS)
        parts.append(draw(ik.IsingModel(model.couplings, fields=fields), 20, rng))
    values = np.vstack(parts)
    assert look(values).design_effect == pytest.approx(4.1, rel=0.2)
    shuffled = look(rng.permutation(values))
    assert shuffled.kind == "repeats"
    assert shuffled.design_effect == pytest.approx(4.1, rel=0.3)


def by_three_columns(values):
    return values[np.lexsort(values[:, :3].T)]


def by_all_columns(values):
    return values[np.lexsort(values.T)]


def by_sum(values):
    return values[np.argsort(values.sum(axis=1), kind="stable")]


def by_sum_of_some(values):
    return values[np.argsort(values[:, :20].sum(axis=1), kind="stable")]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("arrange", [by_three_columns, by_all_columns, by_sum, by_sum_of_some])
def test_sorted_independent_rows_are_no_alarm(arrange, seed):
    """Seen to fail without level sets, and for the sum of some without taking trends off."""
    found = look(arrange(draw(world(seed), N_ROWS, seed)))
    assert found.kind == "none"
    assert found.groups is None
    assert found.design_effect == 1.0


def ferromagnet(seed):
    model = world(seed, coupling=0.4)
    return ik.IsingModel(abs(model.couplings))


def rare(seed):
    return ik.IsingModel(world(seed).couplings, fields=np.full(N_SPINS, -1.5))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "make",
    [
        world,
        lambda seed: world(seed, n_spins=6),
        lambda seed: world(seed, coupling=0.6),
        ferromagnet,
        rare,
        lambda seed: ik.erdos_renyi(n_spins=60, mean_degree=4, coupling=0.4, random_state=seed),
    ],
    ids=["regular", "few columns", "strong", "ferromagnet", "rare", "erdos-renyi"],
)
@pytest.mark.parametrize("n_rows", [100, N_ROWS])
def test_independent_rows_are_no_alarm(make, n_rows, seed):
    assert look(draw(make(seed), n_rows, seed + 5)).kind == "none"


def test_a_network_that_misses_couplings_is_no_alarm():
    """Near its glass, 200 rows of 200 spins find two thirds of the edges.

    Seen to fail where what the network expects is not stretched to what most pairs of rows show.
    """
    model = ik.erdos_renyi(n_spins=200, mean_degree=6, coupling=0.4, random_state=3)
    assert look(draw(model, 200, 3)).kind == "none"


def test_missing_values_are_no_alarm_and_hide_no_series(rng):
    values = draw(world(0), N_ROWS, 1).astype(float)
    values[rng.random(values.shape) < 0.25] = np.nan
    values[:50, 3:] = np.nan  # nearly empty rows
    assert look(values, missing="pairwise").kind == "none"
    slow = series(world(0), N_ROWS, 2).astype(float)
    slow[rng.random(slow.shape) < 0.25] = np.nan
    assert look(slow, missing="pairwise").kind == "ordered"


def test_copies_of_rows_with_missing_values_are_copies(rng):
    values = draw(world(0), 500, 1).astype(float)
    values[rng.random(values.shape) < 0.1] = np.nan
    assert look(np.vstack([values, values]), missing="pairwise").kind == "pasted"


def test_the_order_of_a_histogram_is_not_looked_at(monkeypatch):
    """Which takes most of the time of such a fit."""
    patterns = np.array([[-1, -1, -1], [1, 1, 1], [-1, 1, 1], [1, -1, -1], [1, 1, -1], [1, -1, 1]])
    times = [900, 800, 300, 250, 200, 220]
    monkeypatch.setattr("isingkit.estimators.row_dependence.row_order", None)
    assert ik.AutoIsing().fit(patterns, counts=times).n_samples_ == sum(times)


@pytest.mark.parametrize("n_rows", [1, 2, 19, 20, 21, 64, 65])
@pytest.mark.parametrize("n_spins", [2, 4, 10])
def test_few_rows_and_columns_are_no_alarm(n_rows, n_spins):
    couplings = np.diag(np.full(n_spins - 1, 0.3), 1)
    model = ik.IsingModel(couplings + couplings.T)
    found = row_dependence(ik.sample(model, n_samples=n_rows, random_state=0), model)
    assert found.kind == "none"


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ConstantColumnWarning")
def test_columns_that_never_change_are_left_aside():
    values = draw(world(0, n_spins=10), 200, 1)
    constant = np.ones((200, 3), dtype=np.int8)
    packed = ik.pack(np.hstack([values, constant]))
    couplings = np.zeros((13, 13))
    assert row_dependence(packed, ik.IsingModel(couplings)).kind == "none"
    only = row_dependence(ik.pack(constant), ik.IsingModel(np.zeros((3, 3))))
    assert only.kind == "none"
    assert "do not change" in only.words


def test_weak_memory_does_not_matter(rng):
    """A tenth of all values copied from the row before: a design effect of 1.02."""
    values = draw(world(0), N_ROWS, 1).copy()
    for row in range(1, N_ROWS):
        copied = rng.random(N_SPINS) < 0.1
        values[row, copied] = values[row - 1, copied]
    assert look(values).kind == "none"


def test_long_tables_compare_some_rows_with_all_others():
    """6000 rows, of which every 8th is a query: 1200 persons in 5 waves, one after the other.

    A third of the design effect of 2.6, less 1, hides among so many pairs.
    """
    waves = panel(world(0), 1200, 5, 4)
    packed = ik.pack(waves.reshape(6000, N_SPINS))
    found = row_dependence(packed, world(0))
    assert found.kind == "repeats"
    assert 1.8 < found.design_effect < 3.2


def test_the_answer_is_the_same_every_time():
    values = panel(world(0), 200, 5, 1).reshape(N_ROWS, N_SPINS)
    one, other = look(values), look(values)
    assert one.design_effect == other.design_effect
    assert (one.groups == other.groups).all()


def row_words(values):
    """Bits of rows from the first column on, in whole words."""
    bits = (values > 0).tolist()
    words = [[reference.word(row[k : k + 64]) for k in range(0, len(row), 64)] for row in bits]
    return np.array(words, dtype=np.uint64)


@pytest.fixture
def table(rng):
    """70 columns are two words, 100 rows too; values that change now and then."""
    values = rng.choice([-1, 1], (100, 70))
    for row in range(1, 100):
        copied = rng.random(70) < 0.6
        values[row, copied] = values[row - 1, copied]
    return values


def test_bits_by_row_are_the_bits_of_the_table(table):
    """Of either half of the columns from a word's edge on."""
    packed = ik.pack(table)
    found = row_bits(packed, ik.IsingModel(np.zeros((70, 70))), np.random.default_rng(0))
    assert sorted(found.columns) == list(range(70))
    first = row_words(table[:, found.columns[:35]])
    second = row_words(table[:, found.columns[35:]])
    np.testing.assert_array_equal(found.rows, np.hstack([first, second]))


@pytest.mark.parametrize("step", [1, 7])
def test_distance_counts_are_those_of_the_definition(table, step):
    n_queries = -(-len(table) // step)
    found = kernels.distance_counts(0, n_queries, row_words(table), step, 1, 71)
    expected = reference.distance_counts(table, step, n_first=64)
    np.testing.assert_array_equal(found.reshape(3, 71), expected)


def test_close_pairs_are_those_of_the_definition(table):
    found = kernels.close_pairs(0, len(table), row_words(table), 30).reshape(3, -1)
    np.testing.assert_array_equal(found.T, reference.close_pairs(table, 30))


@pytest.mark.parametrize("few", [0, 512])
def test_distances_of_few_rows_by_numpy_are_those_of_kernels(table, few, monkeypatch):
    monkeypatch.setattr("isingkit.estimators.row_distances._FEW", few)
    packed = ik.pack(table)
    rows = row_bits(packed, ik.IsingModel(np.zeros((70, 70))), np.random.default_rng(0))
    halves = np.zeros((100, 128), dtype=table.dtype)
    halves[:, rows.places] = table[:, rows.columns]
    expected = reference.distance_counts(halves, 1, n_first=64)
    np.testing.assert_array_equal(rows.distances(), expected[:, :71])
    for lag in (1, 64):
        found = lagged_distances(rows.rows, lag)
        np.testing.assert_array_equal(found, reference.lagged_distances(table, lag))


@pytest.mark.parametrize("lag", [1, 5, 64, 99])
def test_lagged_distances_are_those_of_the_definition(table, lag):
    found = np.empty(100 - lag, dtype=np.int64)
    kernels.lagged_distances(0, len(found), row_words(table), lag, found)
    np.testing.assert_array_equal(found, reference.lagged_distances(table, lag))


def lineages(n_columns, rng, n_lineages=12, n_rows=360, changes=0.15):
    """Rows of lineages: a founder each, of which a share of the cells is drawn anew."""
    founders = rng.choice([-1, 1], (n_lineages, n_columns))
    rows = founders[np.arange(n_rows) % n_lineages]
    return np.where(rng.random(rows.shape) < changes, rng.choice([-1, 1], rows.shape), rows)


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")
def test_a_long_search_among_rows_that_are_much_alike_is_not_ended(rng, monkeypatch):
    """Seen to fail without the look: the search for the first network is ended, too."""
    ended = []
    select_edges = network_search.select_edges

    def counted(*arguments, **named):
        found = select_edges(*arguments, **named)
        if isinstance(found, selection.Selection):
            ended.append(len(found.fitted.graph.pairs))
        return found

    monkeypatch.setattr(network_search, "select_edges", counted)
    fit = ik.AutoIsing().fit(lineages(220, rng))
    assert max(ended) < 100
    check = next(one for one in fit.diagnostics_ if one.check == "rows alike")
    assert check.serious
    assert check.value >= 4
    assert len(fit.edges_) < 5


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")
def test_a_long_search_among_independent_rows_finds_what_it_found_without_a_look(monkeypatch):
    truth = ik.erdos_renyi(n_spins=210, mean_degree=6, coupling=0.25, random_state=3)
    samples = ik.sample(truth, n_samples=400, random_state=4)
    monkeypatch.setattr(selection, "_MANY_TESTS", 0)
    looked = ik.AutoIsing().fit(samples)
    monkeypatch.setattr(selection, "_MANY_SPINS", 10**9)
    plain = ik.AutoIsing().fit(samples)
    np.testing.assert_array_equal(looked.edges_, plain.edges_)
