"""Pictures: what is drawn, where it is put, and the check of a model against its data."""

import matplotlib as mpl
import networkx
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.collections import LineCollection

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.drawing import n_outstanding
from isingkit.label_places import label_offsets
from isingkit.network_layout import positions

mpl.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture
def triangle():
    return ik.IsingModel([[0, 0.5, -0.2], [0.5, 0, 0], [-0.2, 0, 0]], names=["Ann", "$Bob$", "Cy"])


def test_the_drawing_has_every_edge_by_sign_and_every_name(triangle):
    axes = triangle.plot()
    lines = {
        one.get_label(): one.get_segments()
        for one in axes.collections
        if isinstance(one, LineCollection)
    }
    assert {label: len(segments) for label, segments in lines.items()} == {
        "alike": 1,
        "opposite": 1,
    }
    assert len(axes.collections[-1].get_offsets()) == 3
    assert {text.get_text() for text in axes.texts} == {"Ann", "Cy", r"\$Bob\$"}
    axes.figure.canvas.draw()  # a dollar in a name must not start mathematics
    assert not triangle.plot(labels=False).texts


@pytest.mark.parametrize(
    "draw", [lambda m, ax: m.plot(ax), ik.plot_couplings], ids=["network", "couplings"]
)
def test_plots_draw_into_the_axes_given_and_return_them(triangle, draw):
    _, axes = pyplot.subplots()
    assert draw(triangle, axes) is axes
    assert axes.has_data()


def test_positions_are_those_of_the_picture_every_time_and_parts_do_not_overlap():
    graph = networkx.disjoint_union_all(
        [networkx.cycle_graph(9), networkx.path_graph(5), networkx.path_graph(2)]
    )
    graph.add_nodes_from(range(16, 40))
    model = ik.from_graph(graph, coupling=0.3, random_state=0)
    places = positions(model.couplings)
    assert places.shape == (40, 2)
    assert places.min() >= -1e-12
    assert places.max() <= 1 + 1e-12
    np.testing.assert_array_equal(places, positions(model.couplings))
    ring, path = places[:9], places[9:14]
    assert (ring.max(axis=0) < path.min(axis=0)).any() or (
        ring.min(axis=0) > path.max(axis=0)
    ).any()
    apart = np.linalg.norm(places[:, None] - places, axis=2) + np.eye(40)
    assert apart.min() > 0.01  # nothing on top of another


@pytest.mark.parametrize("n_spins", [1, 2, 3])
def test_networks_without_edges_are_drawn(n_spins):
    model = ik.IsingModel(np.zeros((n_spins, n_spins)))
    assert np.isfinite(positions(model.couplings)).all()
    model.plot()
    ik.plot_couplings(model)


def test_a_large_part_is_laid_out_by_springs():
    model = ik.random_regular(n_spins=120, degree=3, coupling=0.4, random_state=0)
    places = positions(model.couplings)
    first, second = model.couplings.nonzero()
    lengths = np.linalg.norm(places[first] - places[second], axis=1)
    among_all = np.linalg.norm(places[:, None] - places, axis=2).mean()
    assert lengths.mean() < 0.6 * among_all  # neighbours are near; at random they are not


def test_precision_and_recall_are_drawn_with_the_interval_where_both_are_perfect(triangle):
    estimates = triangle.couplings.toarray() + 0.01
    axes = ik.plot_precision_recall(estimates, triangle)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[:2] == ["precision", "recall"]
    assert labels[2] == "both perfect: 0.01 to 0.19"


def test_the_fit_check_agrees_with_enumeration_and_tells_a_wrong_model(rng):
    """40,000 rows: catches a coupling wrong by 0.1 (the correlations then differ by 0.04 in the
    root mean square).
    """
    truth = ik.random_regular(n_spins=10, degree=3, coupling=0.4, fields=0.2, random_state=0)
    data = ik.exact(truth).sample(n_samples=40_000, random_state=1)
    check = ik.fit_check(truth, data)
    whole = ik.exact(truth)
    np.testing.assert_allclose(check.data_means, whole.means, atol=0.03)
    np.testing.assert_allclose(check.model_means, whole.means, atol=0.06)
    assert np.sqrt(np.mean((check.data_correlations - check.model_correlations) ** 2)) < 0.02
    assert np.minimum(check.data_shares, check.model_shares).sum() > 0.97
    assert "differ from the data by 0.0" in check.words()
    wrong = ik.IsingModel(truth.couplings * 1.25, truth.fields, truth.names)
    off = ik.fit_check(wrong, data)
    assert np.sqrt(np.mean((off.data_correlations - off.model_correlations) ** 2)) > 0.03


def test_counts_of_the_fit_check_count_rows():
    data = np.array([[0, 0], [0, 1], [1, 1]])
    model = ik.IsingModel(np.zeros((2, 2)))
    weighted = ik.fit_check(model, data, counts=[3, 1, 2])
    repeated = ik.fit_check(model, np.repeat(data, [3, 1, 2], axis=0))
    for name in ("data_means", "data_correlations", "data_shares"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name))
    np.testing.assert_allclose(weighted.data_shares, [3 / 6, 1 / 6, 2 / 6])


def test_what_is_of_rows_may_be_of_rows_without_any_value_too():
    data = np.array([[0, 1], [np.nan, np.nan], [1, 1], [1, 0]])
    kept = [0, 2, 3]
    weights = np.array([3, 9, 1, 2])
    model = ik.IsingModel([[0, 0.2], [0.2, 0]])
    with pytest.warns(ex.EmptyRowsWarning):
        check = ik.fit_check(model, data, sample_weight=weights)
    other = ik.fit_check(model, data[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(check.data_means, other.data_means)


def test_the_fit_check_looks_where_values_are_present():
    values = np.array([[0, 1, np.nan], [1, 1, 0], [1, 0, 1], [0, np.nan, 1]])
    check = ik.fit_check(ik.IsingModel(np.zeros((3, 3))), values)
    np.testing.assert_allclose(check.data_means, [0, 1 / 3, 1 / 3])
    pair = values[:3, :2]
    np.testing.assert_allclose(check.data_correlations[0], np.corrcoef(pair.T)[0, 1])
    np.testing.assert_allclose(check.data_shares, [0, 0, 1, 0])  # two complete rows


def test_a_model_that_cannot_be_sampled_says_why():
    with pytest.warns(ex.OrderedTeacherWarning):
        frozen = ik.square_lattice(side=6, coupling=2.0, signs="fixed", random_state=0)
    data = np.where(np.arange(80)[:, None] % 2, 1, -1) * np.ones((1, 36), dtype=int)
    data[0, 0] *= -1
    check = ik.fit_check(frozen, data)
    assert check.problem
    assert "could not be compared" in check.words()
    assert np.isnan(check.model_means).all()
    for show in ("means", "correlations", "sums"):
        assert ik.plot_fit_check(frozen, data, show).figure


@pytest.mark.parametrize("show", ["means", "correlations", "sums"])
def test_every_view_of_the_fit_check_is_drawn(spins, show):
    model = ik.AutoIsing().fit(spins).model_
    axes = ik.plot_fit_check(model, spins, show)
    assert axes.lines
    assert axes.get_xlabel()


def test_a_check_is_a_fit_check_and_wrong_wishes_are_refused(spins):
    model = ik.AutoIsing().fit(spins).model_
    assert isinstance(ik.fit_check(model, spins), ik.FitCheck)
    with pytest.raises(ex.SettingError, match="'correlations', 'means' or 'sums'"):
        ik.plot_fit_check(model, spins, "all")
    with pytest.raises(ex.ModelMismatchError):
        ik.fit_check(model, spins[:, :5])


def test_large_networks_are_checked_on_some_pairs_and_huge_ones_on_none():
    model = ik.random_regular(n_spins=200, degree=3, coupling=0.3, random_state=0)
    check = ik.fit_check(model, ik.sample(model, n_samples=500, random_state=1))
    assert 3000 < len(check.pairs) <= 4000
    assert (check.pairs[:, 0] < check.pairs[:, 1]).all()
    edges = {tuple(pair) for pair in np.argwhere(np.triu(model.couplings.toarray(), 1)).tolist()}
    assert edges <= {tuple(pair) for pair in check.pairs.tolist()}
    huge = ik.IsingModel(np.zeros((2001, 2001)))
    assert (
        "2000 columns"
        in ik.fit_check(
            huge, ik.pack(np.ones((4, 2001), dtype=np.int8) * [[1], [-1], [1], [-1]])
        ).problem
    )


def test_the_fit_check_matches_spins_by_name(rng):
    import pandas as pd

    table = pd.DataFrame(rng.random((300, 3)) < [0.2, 0.5, 0.9], columns=["a", "b", "c"]).astype(
        int
    )
    model = ik.AutoIsing().fit(table).model_
    check, turned = ik.fit_check(model, table), ik.fit_check(model, table[["c", "a", "b"]])
    np.testing.assert_array_equal(check.data_means, turned.data_means)
    np.testing.assert_array_equal(check.data_correlations, turned.data_correlations)
    np.testing.assert_array_equal(
        ik.fit_check(model, table.to_numpy()).data_means, check.data_means
    )
    with pytest.raises(ex.ModelMismatchError):
        ik.fit_check(model, table.rename(columns={"a": "z"}))


def test_constant_data_are_compared_in_the_means_only():
    with pytest.warns(ex.ConstantColumnWarning):
        constant = ik.pack(np.ones((5, 2)))
    check = ik.fit_check(ik.IsingModel(np.zeros((2, 2))), constant)
    assert "no pair of columns changes" in check.words()


def test_branches_join_minima_at_their_passes():
    """Every minimum a dot at its energy, every pass two branches and a bar, the bar at its energy;
    bars reach over the parts that they join.
    """
    rng = np.random.default_rng(0)
    upper = np.triu(rng.normal(0, 0.8, (8, 8)), 1)
    found = ik.landscape(ik.IsingModel(upper + upper.T, fields=rng.normal(0, 0.1, 8)))
    axes = ik.plot_disconnectivity(found)
    lines, dots = axes.collections
    np.testing.assert_allclose(dots.get_offsets()[:, 1], found.energies)
    segments = np.array(lines.get_segments())
    assert len(segments) == 3 * (found.n_minima - 1) > 3
    np.testing.assert_allclose(segments[2::3, :, 1].T, [found.passes.energies] * 2)
    np.testing.assert_allclose(segments[0::3, 1], segments[2::3, 0])
    np.testing.assert_allclose(segments[1::3, 1], segments[2::3, 1])
    assert {text.get_text() for text in axes.texts} == {str(k + 1) for k in range(found.n_minima)}
    _, given = pyplot.subplots()
    assert ik.plot_disconnectivity(found, given) is given
    with pytest.raises(ex.SettingError, match=r"isingkit\.landscape returns"):
        ik.plot_disconnectivity("landscape")
    one = ik.plot_disconnectivity(ik.landscape(ik.IsingModel([[0]], fields=[0.5])))
    assert len(one.collections[1].get_offsets()) == 1


def test_strong_edges_are_short_and_communities_stay_together():
    """57 columns in five blocks, 379 edges. Seen to fail with a layout that does not know weights,
    whose strongest edges are as long as others.
    """
    rng = np.random.default_rng(0)
    block = np.sort(rng.integers(0, 5, 57))
    first, second = np.triu_indices(57, 1)
    is_within = block[first] == block[second]
    chances = np.where(is_within, 6.0, 1.0)
    chosen = rng.choice(len(first), 379, replace=False, p=chances / chances.sum())
    couplings = np.zeros((57, 57))
    strengths = rng.gamma(1.2, 0.09, 379) + 0.03
    signs = np.where(is_within[chosen], 1.6, rng.choice([-1, 1], 379))
    couplings[first[chosen], second[chosen]] = strengths * signs
    model = ik.IsingModel(couplings + couplings.T)
    found = ik.communities(model)
    places = positions(model.couplings, found.numbers) * (1.5, 1.0)
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    edges = model.edges()
    index = {name: k for k, name in enumerate(model.names)}
    lengths = np.array([apart[index[row["source"]], index[row["target"]]] for row in edges])
    assert lengths[:5].max() < 0.4  # the picture is 1.5 wide
    assert lengths[:40].mean() < 0.5 * lengths.mean()
    is_same = found.numbers[:, None] == found.numbers
    nearest = (apart + 9 * np.eye(57)).argsort(axis=1)[:, :4]
    assert np.take_along_axis(is_same, nearest, axis=1).mean() > 0.85
    assert n_outstanding(57, 379) == 85
    assert n_outstanding(57, 100) == 100


def test_no_canvas_is_wasted_on_a_node_far_away():
    """A ring of strong edges, and one node on a very weak one."""
    ring = networkx.cycle_graph(12)
    networkx.set_edge_attributes(ring, 0.5, "weight")
    ring.add_edge(0, 12, weight=1e-4)
    places = positions(networkx.to_scipy_sparse_array(ring)) * (1.5, 1.0)
    extent = np.ptp(places, axis=0)
    assert (np.ptp(places[:12], axis=0) / extent).min() > 0.5


def test_labels_do_not_cover_each_other(rng):
    places = rng.random((40, 2)) * (500, 330)
    widths = np.full(40, 30.0)
    offsets = label_offsets(places, np.full(40, 4.0), widths, 8.0, np.arange(40))
    middles = places + offsets
    steps = np.abs(middles[:, None] - middles) + 99 * np.eye(40)[:, :, None]
    covers = (steps[:, :, 0] < 30 - 1e-9) & (steps[:, :, 1] < 8 - 1e-9)
    assert not covers.any()
    on_node = np.abs(middles[:, None] - places) < [15, 4]
    assert on_node.all(axis=2).sum() <= 2


def test_groups_sizes_labels_rings_and_fewer_edges_are_drawn_as_asked_for(triangle):
    axes = triangle.plot(groups={"Ann": "x", "Cy": "y"}, size=[1, 4, 9], max_edges=1)
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["alike", "opposite", "x", "y"]
    lines, dots = axes.collections
    assert len(lines.get_segments()) == 1
    assert len({tuple(colour) for colour in dots.get_facecolors()}) == 3
    assert np.all(np.diff(dots.get_sizes()) > 0)
    plain = triangle.plot(groups=False, labels=["A", "B", "C"], layout=[[0, 0], [1, 0], [0, 1]])
    assert {text.get_text() for text in plain.texts} == {"A", "B", "C"}
    assert len({tuple(colour) for colour in plain.collections[-1].get_facecolors()}) == 1
    ringed = triangle.plot(groups=["a", "a", "b"], layout="circle", rings=[0.0, np.nan, 0.5])
    arcs = [one for one in ringed.collections[:-1] if not isinstance(one, LineCollection)]
    assert len(arcs) == 3  # two pale rings, and the dark half of one
    assert len(triangle.plot(size="degree").collections[-1].get_offsets()) == 3


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        ({"groups": {"Zoe": "x"}}, "names of columns, such as 'Ann'"),
        ({"groups": ["x"]}, "3 groups, None or False"),
        ({"layout": "spiral"}, "'structure', 'circle' or"),
        ({"layout": [1, 2]}, "3 pairs of numbers"),
        ({"size": "mass"}, "'strength', 'degree' or"),
        ({"size": [1, 2, -3]}, "at least 0"),
        ({"size": [1]}, "3 numbers, one for each column"),
        ({"labels": ["A"]}, "3 texts"),
        ({"max_edges": -1}, "max_edges must be"),
        ({"rings": "half"}, "3 numbers"),
    ],
)
def test_wrong_wishes_for_a_picture_are_refused_in_words(triangle, wish, problem):
    with pytest.raises(ex.SettingError, match=problem):
        triangle.plot(**wish)


def test_edges_are_drawn_with_their_intervals_strongest_first(spins):
    fit = ik.AutoIsing().fit(spins)
    axes = ik.plot_edges(fit.edges_, max_edges=5)
    names = [text.get_text() for text in axes.get_yticklabels()]
    rows = fit.edges_[:5]
    assert names == [f"{row['source']} - {row['target']}" for row in rows]
    bars, dots = axes.collections[:2]
    np.testing.assert_allclose(dots.get_offsets()[:, 0], rows["coupling"])
    ends = np.array(bars.get_segments())[:, :, 0]
    np.testing.assert_allclose(ends, np.stack([rows["low"], rows["high"]], axis=1))
    assert dots.get_offsets()[0, 1] == 4  # on top
    _, given = pyplot.subplots()
    assert ik.plot_edges(fit.model_.edges(), given) is given  # without intervals
    with pytest.raises(ex.SettingError, match="edges_ of a fitted estimator"):
        ik.plot_edges(fit)


def test_centralities_are_drawn_a_panel_a_measure_strongest_first(triangle):
    table = ik.centrality(triangle)
    axes = ik.plot_centrality(table)
    assert [one.get_xlabel() for one in axes] == [
        "strength",
        "expected influence",
        "betweenness",
        "closeness",
    ]
    strengths = table["strength"].tolist()
    np.testing.assert_allclose(axes[0].lines[0].get_xdata(), sorted(strengths, reverse=True))
    (one,) = ik.plot_centrality(table, measures=["betweenness"])
    assert one.get_yticklabels()[0].get_text() == "Ann"
    with pytest.raises(ex.SettingError, match="measures must be"):
        ik.plot_centrality(table, measures=["fame"])
    with pytest.raises(ex.SettingError, match=r"isingkit\.centrality returns"):
        ik.plot_centrality(triangle.edges())
    with pytest.raises(ex.SettingError, match="what isingkit.centrality returns"):
        ik.plot_centrality(ik.AutoIsing())
