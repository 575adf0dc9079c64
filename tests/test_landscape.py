"""Landscapes: minima, basins and barriers against plain enumeration, and what rows do in them."""

import io
import json
import types

import numpy as np
import pandas as pd
import pytest

import isingkit as ik
import reference
from isingkit import exceptions as ex
from isingkit._kernels import landscape as kernels
from isingkit.cli import main
from isingkit.landscape.descents import minima_below
from isingkit.landscape.minima import numbers_of, states_of
from isingkit.landscape.rows import read_table
from isingkit.landscape.uncertainty import uncertainty_of
from isingkit.tables.many import coded_as


def a_model(rng, n_spins, coupling=0.7, fields=0.2):
    upper = np.triu(rng.normal(0, coupling, (n_spins, n_spins)), 1)
    return ik.IsingModel(upper + upper.T, rng.normal(0, fields, n_spins))


def a_model_with_ties(rng, n_spins):
    """Couplings and fields among few values: many states have equal energies."""
    upper = np.triu(rng.choice([-0.5, 0.0, 0.5], (n_spins, n_spins)), 1)
    return ik.IsingModel(upper + upper.T, rng.choice([-0.5, 0.0, 0.0, 0.5], n_spins))


def enumerated(model):
    return reference.energies_of_states(model.couplings.toarray(), model.fields)


def two_wells(n_samples=400, coupling=0.35, field=0.15, random_state=0):
    """Rows of five spins that rest in two states, and their fit."""
    couplings = coupling * (np.ones((5, 5)) - np.eye(5))
    truth = ik.IsingModel(couplings, fields=np.full(5, field))
    rows = np.asarray(ik.exact(truth).sample(n_samples=n_samples, random_state=random_state))
    return rows, ik.MaximumLikelihoodIsing().fit(rows).model_


def test_minima_basins_and_barriers_are_those_of_enumeration():
    """200 random models of 2 to 12 spins, every state. Seen to fail with one flip left out."""
    rng = np.random.default_rng(1)
    for n_spins in np.tile(np.arange(2, 12), 19).tolist() + [12] * 10:
        model = a_model(rng, n_spins)
        energies = enumerated(model)
        found = ik.landscape(model)
        minima = reference.local_minima(energies)
        assert numbers_of(found.states).tolist() == minima
        np.testing.assert_allclose(found.energies, energies[minima], atol=1e-12)
        ends = [minima.index(end) for end in reference.descents(energies)]
        np.testing.assert_array_equal(found.basins, ends)
        np.testing.assert_array_equal(found.basin_states, np.bincount(ends))
        shares = np.exp(-energies) / np.exp(-energies).sum()
        np.testing.assert_allclose(found.probabilities, np.bincount(ends, shares), atol=1e-12)
        saddles = reference.saddle_energies(energies, minima)
        np.testing.assert_allclose(found.passes.saddles(), saddles, atol=1e-12)
        climbs = np.where(np.eye(len(minima)) > 0, 0.0, saddles - energies[minima][:, None])
        np.testing.assert_allclose(found.barriers(), climbs, atol=1e-12)
        if len(minima) > 1:
            out = np.nanmin(saddles, axis=1) - energies[minima]
            np.testing.assert_allclose(found.depths, out, atol=1e-12)


def test_equal_states_that_touch_are_one_minimum_or_none():
    """60 models with many ties: minima and barriers exact; descents never climb, and take the
    lowest neighbour wherever one is lower. Seen to fail with plateaus taken for minima.
    """
    rng = np.random.default_rng(2)
    for n_spins in np.tile(np.arange(2, 8), 10).tolist():
        model = a_model_with_ties(rng, n_spins)
        energies = enumerated(model)
        found = ik.landscape(model)
        minima = reference.local_minima(energies)
        assert numbers_of(found.states).tolist() == minima
        saddles = reference.saddle_energies(energies, minima)
        np.testing.assert_array_equal(found.passes.saddles(), saddles)
        for state in range(2**n_spins):
            lowest = reference.lowest_neighbour(energies, state)
            basin = found.basins[state]
            assert energies[minima[basin]] <= energies[state]
            if lowest != state:
                assert found.basins[lowest] == basin


def test_descents_of_single_rows_find_the_minima_and_bounds_above_their_barriers():
    """20 models of 8 spins from all states: minima and basins exact, passes never below the true
    ones, and most of them those.
    """
    rng = np.random.default_rng(3)
    n_exact = 0
    n_pairs = 0
    for _ in range(20):
        model = a_model(rng, 8)
        found = ik.landscape(model)
        starts = states_of(np.arange(2**8), 8)
        minima, ends = minima_below(model, starts, np.ones(2**8, dtype=bool))
        np.testing.assert_array_equal(minima.states, found.states)
        np.testing.assert_array_equal(ends, found.basins)
        exact = found.passes.saddles()
        above = minima.passes.saddles() - exact
        above = above[~np.isnan(exact)]
        assert above.min(initial=0) >= -1e-12
        n_exact += (above < 1e-12).sum()
        n_pairs += len(above)
    assert n_exact > 0.7 * n_pairs


def test_descents_take_the_lowest_number_among_equals_and_paths_what_costs_least(rng):
    """Kernels against their plain twins, on models with many ties."""
    for n_spins in (3, 5, 7, 8):
        model = a_model_with_ties(rng, n_spins)
        ends = states_of(np.arange(2**n_spins), n_spins)
        graph = model.couplings
        structure = (graph.indptr.astype(np.int64), graph.indices.astype(np.int64), graph.data)
        kernels.descend(0, len(ends), structure, model.fields, ends)
        assert numbers_of(ends).tolist() == reference.descents(enumerated(model))
        spins = rng.choice([-1, 1], (6, n_spins)).astype(np.int8)
        pairs = np.array([(0, 1), (1, 0), (2, 3), (4, 5)])
        heights = np.empty(4)
        tops = np.empty((4, n_spins), np.int8)
        kernels.climb(0, 4, structure, model.fields, spins, pairs, heights, tops)
        for (a, b), height in zip(pairs, heights, strict=True):
            plain = (model.couplings.toarray(), model.fields, spins[a], spins[b])
            assert reference.greedy_climb(*plain) == pytest.approx(height, abs=1e-12)
        reached = (
            enumerated(model)[numbers_of(tops)] - enumerated(model)[numbers_of(spins)[[0, 1, 2, 4]]]
        )
        np.testing.assert_allclose(reached, heights, atol=1e-12)


def test_barriers_of_many_spins_are_those_of_the_complete_graph():
    """30 spins, all coupled alike: the path is the same in any order, so that bounds are exact."""
    n_spins = 30
    coupling = field = 0.1
    couplings = np.full((n_spins, n_spins), coupling) - coupling * np.eye(n_spins)
    found = ik.landscape(ik.IsingModel(couplings, np.full(n_spins, field)))
    total = np.arange(-n_spins, n_spins + 1, 2)
    along = -coupling * (total**2 - n_spins) / 2 - field * total
    assert not found.is_exact
    assert found.states.tolist() == [[1] * n_spins, [-1] * n_spins]
    np.testing.assert_allclose(found.energies, along[[-1, 0]], atol=1e-9)
    np.testing.assert_allclose(found.depths, along.max() - along[[-1, 0]], atol=1e-9)
    assert "upper bounds" in str(found)


def test_errors_and_stability_are_those_of_refits():
    """100 refits of rows drawn anew: depths spread as their errors say, within 30 percent (four
    times the error of such a spread), and minima stay as often, within 0.12.
    """
    rows, model = two_wells(300, coupling=0.2, field=0.4, random_state=3)
    found = ik.landscape(model, rows, resolution=0, random_state=0)
    rng = np.random.default_rng(5)
    gaps = []
    stays = []
    high = found.passes.minima[-1, 1]
    saddle = found.passes.states[-1]
    for _ in range(100):
        again = rows[rng.integers(len(rows), size=len(rows))]
        refit = ik.MaximumLikelihoodIsing().fit(again).model_
        energies = enumerated(refit)
        of_saddle, of_high = energies[numbers_of(np.stack([saddle, found.states[high]]))]
        gaps.append(of_saddle - of_high)
        ends = np.array(reference.descents(energies))
        stays.append(ends[numbers_of(found.states)] == numbers_of(found.states))
    error = found.depth_errors[high]
    assert np.std(gaps) == pytest.approx(error, rel=0.3)
    np.testing.assert_allclose(found.stability, np.mean(stays, axis=0), atol=0.12)


def test_one_coupling_of_many_spins_has_an_error():
    """26 spins, more than are summed over, and one parameter: its error is about that of a
    correlation, within 20 percent.
    """
    couplings = np.zeros((26, 26))
    couplings[0, 1] = couplings[1, 0] = 0.3
    model = ik.IsingModel(couplings)
    rows = np.asarray(ik.sample(model, n_samples=500, random_state=0))
    samples = np.asarray(ik.sample(model, n_samples=2000, random_state=1))
    found = uncertainty_of(model, read_table(model, rows, None, None, None).complete(), samples)
    error = (1 - np.tanh(0.3) ** 2) ** -0.5 / np.sqrt(500)
    assert found.covariance == pytest.approx(np.array([[error**2]]), rel=0.4)


def test_minima_merge_where_the_data_cannot_tell_them_apart():
    """The upper well of 60 rows is within its error, that of 4000 is not; nothing else changes."""
    few, model = two_wells(60, random_state=3)
    apart = ik.landscape(model, few, resolution=0)
    merged = ik.landscape(model, few)
    height = apart.passes.energies - apart.energies[apart.passes.minima[:, 1]]
    assert apart.n_minima > 1
    assert apart.n_merged == 0
    assert merged.n_merged == apart.n_minima - merged.n_minima > 0
    assert (height < 2 * np.nanmax(apart.depth_errors)).any()
    assert merged.probabilities.sum() == pytest.approx(1)
    assert merged.basin_states.sum() == 32
    assert "the data cannot tell apart" in str(merged)
    many, model = two_wells(4000)
    assert ik.landscape(model, many).n_minima == ik.landscape(model).n_minima == 2


def test_weights_counts_groups_and_names_mean_what_they_mean_elsewhere():
    """Equal weights change nothing; rows twice are counts of 2, with half the variance; rows
    repeated in groups of two are no more than the rows.
    """
    rows, model = two_wells(150)
    named = ik.IsingModel(model.couplings, model.fields, list("abcde"))
    plain = ik.landscape(model, rows, resolution=0)
    weighted = ik.landscape(model, rows, resolution=0, sample_weight=np.full(150, 3.0))
    np.testing.assert_allclose(weighted.depth_errors, plain.depth_errors, rtol=1e-9)
    np.testing.assert_array_equal(weighted.stability, plain.stability)
    counted = ik.landscape(model, rows, resolution=0, counts=np.full(150, 2))
    np.testing.assert_allclose(counted.depth_errors, plain.depth_errors / np.sqrt(2), rtol=1e-9)
    assert counted.visits.transitions is None
    twice = np.repeat(rows, 2, axis=0)
    grouped = ik.landscape(model, twice, resolution=0, groups=np.repeat(np.arange(150), 2))
    np.testing.assert_allclose(grouped.depth_errors, plain.depth_errors, rtol=1e-9)
    np.testing.assert_array_equal(grouped.stability, plain.stability)
    assert grouped.visits.transitions.sum() == 150  # none from one group to the next
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(rows, columns=list("abcde"))[list("ecabd")]
    turned = ik.landscape(named, table, resolution=0)
    np.testing.assert_array_equal(turned.visits.basins, plain.visits.basins)


def test_rows_go_from_basin_to_basin():
    model = ik.IsingModel([[0, 0.5], [0.5, 0]], fields=[0.1, 0.1])
    rows = np.array([[1, 1], [1, 1], [-1, -1], [0, 1], [-1, -1], [1, 1]], dtype=float)
    rows[rows == 0] = np.nan
    visits = ik.landscape(model, rows, n_resamples=0, resolution=0).visits
    assert visits.basins.tolist() == [0, 0, 1, -1, 1, 0]
    assert visits.transitions.tolist() == [[1, 1], [1, 0]]
    assert visits.shares.tolist() == [0.6, 0.4]
    assert visits.stays.tolist() == [1.5, 1.0]
    np.testing.assert_allclose(visits.energies, [-0.7, -0.7, -0.3, np.nan, -0.3, -0.7])


def test_the_same_seed_gives_the_same_landscape():
    model = ik.random_regular(n_spins=40, degree=3, coupling=0.5, fields=0.1, random_state=0)
    rows = np.asarray(ik.sample(model, 100, warm_up=50, check=False, random_state=1))
    one, two = (ik.landscape(model, rows, random_state=3) for _ in range(2))
    for column in one.table().dtype.names:
        np.testing.assert_array_equal(one.table()[column], two.table()[column])
    assert str(one) == str(two)
    assert one.table()["basin_states"].max() == -1


def test_a_file_of_the_energy_landscape_toolbox(shared_data):
    """Its 4 minima, and its accuracy of the fit, 0.9045."""
    rows = np.loadtxt(shared_data / "energy_landscape_7x2390.dat").T
    model = ik.MaximumLikelihoodIsing(method="exact").fit(rows).model_
    found = ik.landscape(model, rows)
    assert found.n_minima == ik.landscape(model).n_minima == 4
    assert found.accuracy == pytest.approx(0.9045, abs=5e-5)
    assert not found.notes
    assert "the accuracy is too small" in str(ik.landscape(model, rows[::40]))
    assert found.visits.transitions.sum() == 2389


def test_the_command_takes_a_file_of_the_toolbox_as_it_is(capsys, tmp_path, shared_data):
    data = shared_data / "energy_landscape_7x2390.dat"
    rows = ("--transpose", "--method", "maximum-likelihood", "--set", "threshold=0")
    code, _, _ = run(capsys, "fit", data, *rows, "--set", "l2=0", "-o", tmp_path / "fit")
    assert code == 0
    code, out, _ = run(
        capsys, "landscape", tmp_path / "fit", "--data", data, "--transpose", "--json"
    )
    facts = json.loads(out)
    assert (code, facts["n_minima"]) == (0, 4)
    assert facts["accuracy"] == pytest.approx(0.9045, abs=5e-5)
    code, _, err = run(capsys, "landscape", tmp_path / "fit", "--transpose")
    assert code == 2
    assert "--data" in err


def test_what_has_no_landscape_is_refused():
    model = ik.IsingModel([[0, 0.5], [0.5, 0]])
    with pytest.raises(ex.SettingError, match="an IsingModel"):
        ik.landscape("model")
    with pytest.raises(ex.SettingError, match="resolution"):
        ik.landscape(model, resolution=-1)
    with pytest.raises(ex.ModelMismatchError):
        ik.landscape(model, np.tile([[1, -1, 1], [-1, 1, -1]], (2, 1)))
    assert isinstance(ik.landscape(model), ik.Landscape)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main([str(one) for one in arguments])
    return stopped.value.code, *capsys.readouterr()


def test_the_command_prints_and_writes_what_the_function_finds(capsys, tmp_path):
    """Names in another order than in the model, columns besides, groups, and a missing value."""
    values, model = two_wells(300)
    named = ik.IsingModel(model.couplings, model.fields, list("abcde"))
    named.save(tmp_path / "model.npz")
    visits = np.repeat(np.arange(60), 5)
    lines = ["visit,e,d,c,b,a,time"]
    for k, row in enumerate(values[:, ::-1]):
        cells = ["" if k == 7 and j == 2 else str(cell) for j, cell in enumerate(row)]
        lines.append(",".join([f"v{visits[k]}", *cells, str(k)]))
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    about = (tmp_path / "model.npz", "--data", tmp_path / "data.csv", "--row-groups", "visit")
    code, out, _ = run(capsys, "landscape", *about, "--json", "-o", tmp_path / "found")
    assert code == 0
    facts = json.loads(out)
    holes = values.astype(float)
    holes[7, 2] = np.nan
    found = ik.landscape(named, holes, groups=visits)
    assert facts["n_minima"] == found.n_minima == 2
    assert [one["state"] for one in facts["minima"]] == found.states.tolist()
    assert [one["stability"] for one in facts["minima"]] == found.stability.tolist()
    assert facts["transitions"] == found.visits.moves.tolist()
    times = np.loadtxt(tmp_path / "found" / "transitions.csv", delimiter=",", skiprows=1)
    assert times[:, 2].sum() == found.visits.transitions.sum() == 60 * 4 - 2
    rows = (tmp_path / "found" / "rows.csv").read_text().splitlines()
    assert len(rows) == 301
    assert rows[8] == "8,,"
    assert (tmp_path / "found" / "minima.csv").read_text().startswith("minimum,energy,depth,")
    barriers = np.loadtxt(tmp_path / "found" / "barriers.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(barriers[:, 1:], found.barriers())
    assert "<svg" in (tmp_path / "found" / "disconnectivity.svg").read_text()
    assert "1 row lacks values or weight" in str(found)
    code, out, _ = run(capsys, "landscape", tmp_path / "model.npz")
    assert (code, out) == (0, f"{ik.landscape(named)}\n")
    code, out, err = run(capsys, "landscape", tmp_path / "model.npz", "--row-groups", "visit")
    assert (code, out) == (2, "")
    assert "--data" in err


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.EmptyRowsWarning")
def test_rows_without_any_value_keep_their_place(capsys, tmp_path):
    """In memory and from a file: no transition passes over them, and what is of rows fits."""
    values, model = two_wells(300)
    values = values[:60]
    model.save(tmp_path / "model.npz")
    holes = values.astype(float)
    holes[[0, 9, 10, 59]] = np.nan
    weights = np.linspace(1, 2, 60)
    groups = np.repeat(np.arange(20), 3)
    about = {"sample_weight": weights, "groups": groups, "n_resamples": 0}
    found = ik.landscape(model, holes, **about)
    few = holes.copy()
    few[:, 1:][np.isnan(holes[:, 1:])] = values[:, 1:][np.isnan(holes[:, 1:])]
    partly = ik.landscape(model, few, **about)  # the same rows lack something, but not all
    np.testing.assert_array_equal(found.visits.basins, partly.visits.basins)
    assert np.flatnonzero(found.visits.basins < 0).tolist() == [0, 9, 10, 59]
    np.testing.assert_array_equal(found.visits.moves, partly.visits.moves)
    np.testing.assert_allclose(found.depth_errors, partly.depth_errors)
    is_empty = np.isnan(holes).all(axis=1)
    unknown = {"sample_weight": np.where(is_empty, np.nan, weights), "n_resamples": 0}
    labels = np.where(is_empty, None, groups.astype(object))  # of which nothing is known, either
    again = ik.landscape(model, holes, groups=labels, **unknown)
    np.testing.assert_array_equal(again.visits.moves, found.visits.moves)
    np.testing.assert_allclose(again.depth_errors, found.depth_errors)
    table = np.column_stack([holes, weights, groups]).tolist()
    lines = [",".join("" if cell != cell else f"{cell:.17g}" for cell in row) for row in table]
    (tmp_path / "data.csv").write_text("\n".join(["x0,x1,x2,x3,x4,w,g", *lines]))
    options = ("--weights", "w", "--row-groups", "g", "--resamples", 0, "-o", tmp_path / "found")
    run(capsys, "landscape", tmp_path / "model.npz", "--data", tmp_path / "data.csv", *options)
    rows = (tmp_path / "found" / "rows.csv").read_text().splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [
        [str(k + 1), "" if basin < 0 else str(basin + 1)]
        for k, basin in enumerate(found.visits.basins)
    ]
    times = (tmp_path / "found" / "transitions.csv").read_text().splitlines()[1:]
    moves = [[before + 1, after + 1, n] for before, after, n in found.visits.moves.tolist()]
    assert [list(map(int, line.split(","))) for line in times] == moves


@pytest.mark.parametrize(
    ("low", "high", "spelt"),
    [("1", "2", "2"), ("left", "right", "RIGHT"), ("no", "yes", "Yes"), ("0", "1", "1.0")],
)
@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ConstantColumnWarning")
def test_a_few_rows_are_coded_as_the_fit_was(capsys, tmp_path, low, high, spelt):
    """Each row by itself, of which no column tells what its value means. Seen to take 1 of 1 and 2
    for the higher, and left for right.
    """
    values, _ = two_wells(300)
    words = np.where(values > 0, high, low).tolist()

    def written(name, rows):
        (tmp_path / name).write_text("\n".join(map(",".join, [list("abcde"), *rows])) + "\n")
        return tmp_path / name

    fit = tmp_path / "fit"
    data = written("data.csv", words)
    arguments = ("--method", "maximum-likelihood", "-o", fit, "--json")
    code, _, err = run(capsys, "fit", data, *arguments)
    assert code == 0, err
    model = ik.IsingModel.load(fit / "model.npz")
    whole = ik.landscape(model, values, n_resamples=0, resolution=0)
    for row in (0, 1, 2, 3):
        few = written("few.csv", [[spelt if one == high else one for one in words[row]]])
        options = ("--resamples", 0, "--resolution", 0, "-o", tmp_path / "found", "--force")
        code, _, err = run(capsys, "landscape", fit, "--data", few, *options)
        assert code == 0, err
        cells = (tmp_path / "found" / "rows.csv").read_text().splitlines()[1].split(",")
        assert int(cells[1]) == whole.visits.basins[row] + 1
        assert float(cells[2]) == pytest.approx(whole.visits.energies[row])


def test_codings_of_an_earlier_table_are_taken_where_its_values_occur():
    """And a value that it had not is the other one; those of other tables stay."""
    table = pd.DataFrame({"a": ["x", "x"], "b": [1, 1], "c": ["up", "up"], "d": [0, 1]})
    with pytest.warns(ex.ConstantColumnWarning):
        packed = ik.pack(ik.as_spins(table))
    known = {"a": ["x", "y"], "b": [1, 2], "c": ["", "down"], "d": ["no", "yes"]}
    coded = coded_as(packed, known)
    assert coded.mapping == (("x", "y"), (1, 2), ("up", "down"), (0, 1))
    assert np.asarray(coded).tolist() == [[-1, -1, -1, -1], [-1, -1, -1, 1]]


def test_rows_from_standard_input_go_into_a_folder_that_is_there(capsys, tmp_path, monkeypatch):
    values, model = two_wells(300)
    model.save(tmp_path / "model.npz")
    text = "\n".join(["x0,x1,x2,x3,x4", *(",".join(map(str, row)) for row in values)])
    arguments = ("landscape", tmp_path / "model.npz", "--data", "-", "--resamples", 0, "--force")
    for _ in range(2):
        monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(text.encode())))
        code, _, err = run(capsys, *arguments, "-o", tmp_path / "found")
        assert code == 0, err
