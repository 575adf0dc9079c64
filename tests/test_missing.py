"""Missing cells: drawing them from a network, what incomplete rows tell, and what is said."""

import itertools

import numpy as np
import pandas as pd
import pytest

import isingkit as ik
import isingkit.exceptions as ex
from isingkit.estimators import incomplete_rows as findings_of_rows
from isingkit.estimators import row_stories, shifted_rows
from isingkit.estimators.fitted_graph import fit_graph, samples_of
from isingkit.estimators.graph import graph_of
from isingkit.estimators.imputation import Network, drawn_network, impute, start
from isingkit.estimators.incomplete_rows import incomplete_rows
from isingkit.missing import COMPLETE_ROWS, WITHOUT_DRAWING
from isingkit.packing import apply_missing_policy
from isingkit.tables import read_spins

# Drawing missing cells from a network

PAIRS = np.array([[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]])
COUPLINGS = np.array([0.5, -0.4, 0.3, 0.6, -0.5, 0.4, 0.7])
FIELDS = np.array([0.2, -0.3, 0.1, 0.0, 0.4, -0.2])
MISSING = [1, 2, 4]


def directed(graph, couplings, difference=0.2):
    """Couplings of both directions, which differ, in the order of `graph.indices`."""
    values = np.empty(len(graph.indices))
    values[graph.sides] = couplings[:, None] + difference * np.array([1, -1])
    return values


def network(graph):
    """What cells are drawn from: the same fields in all rows."""
    shifts = np.empty((len(FIELDS), 0))
    return Network(graph, directed(graph, COUPLINGS), FIELDS, shifts)


def conditional_chances(observed):
    """Of the eight states of the missing cells (0 in `observed`), by enumeration."""
    weights = []
    for state in itertools.product([-1, 1], repeat=len(MISSING)):
        spins = observed.copy()
        spins[MISSING] = state
        weights.append(np.exp(COUPLINGS @ spins[PAIRS].prod(axis=1) + FIELDS @ spins))
    return np.array(weights) / np.sum(weights)


@pytest.mark.parametrize("observed", [[1, 0, 0, -1, 0, 1], [-1, 0, 0, -1, 0, 1]])
def test_missing_cells_are_drawn_as_enumeration_has_them(observed, rng):
    """40,000 rows, 5 standard errors: catches a chance wrong by 0.012 (seen to, by couplings of the
    wrong sign, of one direction only, and by fields that are left out).
    """
    observed = np.array(observed, dtype=float)
    graph = graph_of(PAIRS, 6)
    n_rows = 40_000
    is_seen = np.repeat((observed != 0)[:, None], n_rows, axis=1)
    spins = np.where(is_seen, observed[:, None], -1.0)
    drawn = impute(spins, is_seen, network(graph), 20, rng)
    np.testing.assert_array_equal(drawn[is_seen], spins[is_seen])
    states = ((drawn[MISSING] > 0).T @ [4, 2, 1]).astype(int)
    found = np.bincount(states, minlength=8) / n_rows
    chances = conditional_chances(observed)
    error = np.sqrt(chances * (1 - chances) / n_rows)
    assert (np.abs(found - chances) < 5 * error).all()


def test_the_same_seed_draws_the_same_cells_on_any_number_of_threads(rng):
    """Also where some rows are complete, which stay as they are, and nothing given is changed."""
    graph = graph_of(PAIRS, 6)
    observed = rng.random((6, 1000)) < 0.7
    spins = start(rng.choice([-1.0, 1.0], (6, 1000)), observed, rng)
    before = spins.copy()
    one, two, three = (
        impute(spins, observed, network(graph), 3, np.random.default_rng(seed), n_jobs)
        for seed, n_jobs in ((5, 1), (5, 2), (6, 1))
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(spins, before)
    assert (one != three).any()
    assert (one != spins).any()
    np.testing.assert_array_equal(one[observed], spins[observed])


def test_a_start_has_the_margins_of_what_is_seen(rng):
    """20,000 missing cells a column, 5 standard errors: catches a share wrong by 0.018."""
    share_up = np.array([0.5, 0.1, 1.0])
    spins = np.where(rng.random((3, 40_000)) < share_up[:, None], 1.0, -1.0)
    observed = rng.random(spins.shape) < 0.5
    completed = start(np.where(observed, spins, 0.0), observed, rng)
    np.testing.assert_array_equal(completed[observed], spins[observed])
    for column, seen, share in zip(completed, observed, share_up, strict=True):
        missing = column[~seen]
        assert set(missing) <= {-1.0, 1.0}
        error = np.sqrt(share * (1 - share) * (1 / seen.sum() + 1 / len(missing)))
        assert abs((missing > 0).mean() - share) <= 5 * error


def test_coefficients_are_drawn_around_estimates_with_their_errors(rng):
    """4000 draws, 5 standard errors: catches a standard error wrong by 6 percent."""
    truth = ik.random_regular(n_spins=6, degree=3, coupling=0.3, random_state=0)
    packed = ik.sample(truth, n_samples=500, random_state=1)
    pairs = np.array([[0, 1], [0, 2], [0, 3], [2, 3]])
    fitted = fit_graph(samples_of(packed), pairs)
    draws = np.array([drawn_network(fitted, rng).couplings for _ in range(4000)])
    directed, errors = fitted.observed_couplings_and_errors()
    for pair, (forth, back) in enumerate(fitted.graph.sides):
        np.testing.assert_array_equal(draws[:, forth], draws[:, back])
        off = draws[:, forth].mean() - directed[pair].mean()
        assert abs(off) < 5 * errors[pair] / np.sqrt(4000)
        assert draws[:, forth].std() == pytest.approx(errors[pair], rel=5 / np.sqrt(2 * 4000))


def test_coefficients_of_a_column_that_never_changes_stay_near_their_estimates(rng):
    spins = rng.choice([-1, 1], (200, 3))
    spins[:, 1] = 1
    with pytest.warns(ex.ConstantColumnWarning):
        packed = ik.pack(spins)
    fitted = fit_graph(samples_of(packed), np.array([[0, 2]]))
    fields = np.array([drawn_network(fitted, rng).fields[1] for _ in range(200)])
    assert 0.5 < fields.std() < 1.5  # by the Hessian it would be above 10


# What incomplete rows tell


def rows_of_a_world(seed, n_rows=1000, n_spins=40, field=0.0):
    """-1 and +1, (n_rows, n_spins), of 3-regular couplings of 0.3; columns skewed by fields."""
    truth = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.3, random_state=seed)
    fields = np.random.default_rng(seed).normal(0, 1, n_spins) * field
    model = ik.IsingModel(truth.couplings, fields)
    return np.asarray(ik.sample(model, n_samples=n_rows, random_state=seed + 1, check=False))


def with_gaps(values, share, seed):
    """Some cells missing (0), completely at random."""
    return values * (np.random.default_rng(seed).random(values.shape) >= share)


def packed_of(values):
    names = tuple(f"V{j + 1}" for j in range(values.shape[1]))
    mapping = (("no", "yes"),) * len(names)
    has_missing = not values.all()
    return ik.pack(ik.Spins(values.astype(np.int8), names, mapping, None, has_missing))


def shifted_right(values, rows, first, last):
    """Values of columns first to last - 1 stand one column further; `first` is empty."""
    moved = values.copy()
    moved[rows, first + 1 : last + 1] = values[rows, first:last]
    moved[rows, first] = 0
    return moved


def shifted_left(values, rows, first, last):
    """Values of columns first + 1 to last stand one column before; `last` is empty."""
    return shifted_right(values[:, ::-1], rows, 39 - last, 39 - first)[:, ::-1]


def of_kind(findings, kind):
    return [one for one in findings if one.kind == kind]


def test_rows_shifted_by_one_column_are_named_in_every_table():
    """5 percent of 1000 rows, in 24 worlds: to the right or left, with and without other gaps,
    skewed or not.
    """
    kinds = itertools.product((False, True), (0.0, 0.1), (0.0, 0.7), range(3))
    for seed, (is_left, gaps, field, _) in enumerate(kinds):
        values = rows_of_a_world(seed, field=field)
        move = shifted_left if is_left else shifted_right
        table = with_gaps(move(values, slice(0, 1000, 20), 0, 39), gaps, seed)
        findings = incomplete_rows(packed_of(table))
        (found,) = of_kind(findings, "shifted")
        empty, following = ("V40", "V39") if is_left else ("V1", "V2")
        assert found.columns[:2] == (empty, following)
        assert 30 <= found.n_rows <= 60
        assert found.p_value < 1e-3
        assert f"'{following}' behaves like '{empty}' elsewhere" in found.words
        assert not of_kind(findings, "reversed")
        assert not of_kind(findings, "unrelated")


def test_clean_tables_with_gaps_tell_nothing():
    """40 worlds with 10 percent missing, half of them skewed. Of "depends", 1 percent may do."""
    findings = []
    for seed in range(40):
        values = rows_of_a_world(100 + seed, field=seed % 2)
        findings += incomplete_rows(packed_of(with_gaps(values, 0.1, seed)))
    assert {one.kind for one in findings} <= {"depends"}
    assert len(findings) <= 3


@pytest.mark.parametrize(
    ("move", "first", "last", "empty"),
    [(shifted_right, 12, 39, "V13"), (shifted_left, 0, 25, "V26"), (shifted_left, 15, 39, "V40")],
)
def test_a_shift_of_part_of_a_row_is_named(move, first, last, empty):
    values = rows_of_a_world(7)
    table = with_gaps(move(values, slice(0, 1000, 20), first, last), 0.05, 1)
    (found,) = of_kind(incomplete_rows(packed_of(table)), "shifted")
    assert found.columns[0] == empty
    other_end = {"V13": 40, "V26": 1, "V40": 16}[empty]
    assert abs(int(found.columns[-1][1:]) - other_end) <= 3


def test_shifts_in_both_directions_are_named_apart():
    values = rows_of_a_world(3)
    right = shifted_right(values, slice(0, 1000, 40), 0, 39)
    table = shifted_left(right, slice(20, 1000, 40), 0, 39)
    shifts = of_kind(incomplete_rows(packed_of(table)), "shifted")
    assert {(one.columns[0], one.n_rows) for one in shifts} == {("V1", 25), ("V40", 25)}
    words = {one.columns[0]: one.words for one in shifts}
    assert words["V1"] == (
        "in 25 rows where 'V1' is empty the values look shifted by one column: 'V2' behaves like "
        "'V1' elsewhere, 'V3' like 'V2', and so on up to 'V40'"
    )
    assert all(one.advice == "move them back, or leave these rows out" for one in shifts)


def test_a_column_reversed_where_another_is_empty_is_named():
    values = rows_of_a_world(5)
    values[:100, 11] *= -1
    values[:100, 3] = 0
    (found,) = incomplete_rows(packed_of(values))
    assert (found.kind, found.columns, found.n_rows) == ("reversed", ("V4", "V12"), 100)
    assert "in 100 rows where 'V4' is empty 'V12' looks reversed" in found.words


def test_rows_answered_at_random_are_unrelated_not_shifted(rng):
    values = rows_of_a_world(5)
    values[:60] = rng.permuted(values, axis=0)[:60]
    values[:60, 0] = 0
    (found,) = incomplete_rows(packed_of(with_gaps(values, 0.05, 2)))
    assert (found.kind, found.columns) == ("unrelated", ("V1",))
    assert 20 <= found.n_rows <= 70


@pytest.mark.parametrize("field", [0.0, 1.0])
def test_missing_values_that_depend_on_others_are_said_to_and_are_no_other_story(field, rng):
    """Every column is missing more often where the seventh next is yes."""
    values = rows_of_a_world(2, n_rows=2000, field=field)
    chances = np.where(np.roll(values, -7, axis=1) > 0, 0.5, 0.1)
    table = values * (rng.random(values.shape) >= chances)
    findings = incomplete_rows(packed_of(table))
    assert {one.kind for one in findings} == {"depends"}
    pairs = {one.columns for one in findings}
    expected = {(f"V{j + 1}", f"V{(j + 7) % 40 + 1}") for j in range(40)}
    assert len(pairs & expected) >= 30  # of skewed columns some cannot show it
    assert findings[0].words.startswith(f"'{findings[0].columns[0]}' is missing more often where")
    assert " is yes (" in findings[0].words
    assert (
        findings[0].advice == "use missing='impute', which allows for that; missing='drop' does not"
    )
    assert [one.p_value for one in findings] == sorted(one.p_value for one in findings)


@pytest.mark.parametrize("seed", [0, 11, 18])
def test_columns_missing_for_a_rare_value_of_another_are_no_shift(seed):
    """Seen to be taken for one where the cells that speak most for it are not left out."""
    rng = np.random.default_rng(seed)
    values = rows_of_a_world(seed, n_rows=3000, field=1.0)
    table = values.copy()
    for column in range(0, 40, 4):
        other = rng.integers(40)
        is_rare = values[:, other] == -np.sign(values[:, other].sum())
        if other != column:
            table[is_rare & (rng.random(3000) < 0.9), column] = 0
    assert {one.kind for one in incomplete_rows(packed_of(table))} == {"depends"}


def test_a_neighbour_missing_by_a_columns_own_value_does_not_reverse_it(rng):
    """The first column is missing where the second is yes, and that where the third is: what is
    left of the second, missing or yes, then seems to say the opposite of the third.
    """
    values = rng.choice([-1, 1], (4000, 3))
    is_same = rng.random(4000) < 0.4
    values[is_same, 1] = values[is_same, 2]
    table = values.copy()
    for column in (0, 1):
        chances = np.where(values[:, column + 1] > 0, 0.7, 0.1)
        table[rng.random(4000) < chances, column] = 0
    assert {one.kind for one in incomplete_rows(packed_of(table))} == {"depends"}


def test_the_share_of_missing_values_is_that_of_rows_with_either_value():
    values = np.ones((400, 2), dtype=np.int8)
    values[:200, 1] = -1
    values[200:250, 0] = -1
    values[:20, 0] = 0
    values[300:400, 0] = 0
    (found,) = incomplete_rows(packed_of(values))
    assert found.words.startswith(
        "'V1' is missing more often where 'V2' is yes (50 against 10 percent of rows)"
    )
    assert found.n_rows == 120


def test_dropping_out_is_no_story(rng):
    """Rows that end early: where a column is empty, so are all that follow."""
    values = rows_of_a_world(4, n_rows=2000, field=0.7)
    ends = np.where(rng.random(2000) < 0.4, rng.integers(1, 40, 2000), 40)
    assert incomplete_rows(packed_of(values * (np.arange(40) < ends[:, None]))) == ()


def test_empty_rows_are_counted_and_complete_tables_have_no_findings():
    values = rows_of_a_world(1)
    assert incomplete_rows(packed_of(values)) == ()
    values[[3, 500, 999]] = 0
    (found,) = incomplete_rows(packed_of(values))
    assert (found.kind, found.n_rows) == ("empty", 3)
    assert found.words == "3 of 1000 rows hold no value at all and are not counted"


@pytest.mark.parametrize("shape", [(1, 2), (3, 2), (60, 3), (5, 40)])
def test_tables_too_small_to_tell_anything_have_no_findings(shape, rng):
    values = rng.choice([-1, 0, 1], shape, p=[0.4, 0.2, 0.4])
    values[:, 0] = np.abs(values[:, 0])  # constant
    values[0] = 1
    values[-1, -1] = 0
    assert not [one for one in incomplete_rows(packed_of(values)) if one.kind != "empty"]


def test_of_large_tables_rows_in_regular_distances_are_looked_at(monkeypatch):
    values = shifted_right(rows_of_a_world(6, n_rows=3000), slice(0, 3000, 10), 0, 39)
    monkeypatch.setattr(findings_of_rows, "_MOST_VALUES", 40 * 1000)
    (found,) = of_kind(incomplete_rows(packed_of(values)), "shifted")
    assert found.columns[0] == "V1"
    assert found.n_rows == 100


@pytest.mark.parametrize("is_mirrored", [False, True])
def test_shifts_looked_at_all_at_once_have_the_likelihoods_of_each(is_mirrored, monkeypatch):
    monkeypatch.setattr(row_stories, "_TERMS", 6400)  # in several portions
    table = row_stories.row_table(
        with_gaps(rows_of_a_world(0, 300, 12), 0.2, 0).T.astype(np.float32)
    )
    table = table.mirrored() if is_mirrored else table
    for family in shifted_rows._suspects(table, False):
        as_is, _ = shifted_rows._log_likelihoods(table, np.arange(12))
        for place in range(1, 11):
            moved, _ = shifted_rows._log_likelihoods(table, family.shift(place).sources(12))
            is_here = family.places == place
            expected = (moved - as_is)[family.rows[is_here]]
            np.testing.assert_allclose(family.ratios[is_here], expected, atol=1e-4)


# What is said of missing values, and what is kept


def gappy(rng, n_rows=60, n_spins=4):
    """Zeros, ones, and NaN in every second row; no row is empty."""
    table = rng.integers(0, 2, (n_rows, n_spins)).astype(float)
    table[::2, 0] = np.nan
    table[::6, 1] = np.nan
    return table


def written(table, path):
    if path.suffix == ".npy":
        np.save(path, table)
    elif path.suffix == ".parquet":
        pd.DataFrame(table, columns=[f"x{j}" for j in range(table.shape[1])]).to_parquet(path)
    elif path.suffix == ".spins":
        ik.pack(ik.as_spins(table, missing="pairwise")).save(path)
    else:
        pd.DataFrame(table, columns=[f"x{j}" for j in range(table.shape[1])]).to_csv(
            path, index=False
        )
    return path


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet", ".spins", None])
def test_the_error_recommends_drawing_first_and_says_what_each_policy_keeps(suffix, rng, tmp_path):
    table = gappy(rng)
    path = None if suffix is None else written(table, tmp_path / f"table{suffix}")
    with pytest.raises(ex.MissingValuesError) as caught:
        ik.AutoIsing().fit(table) if path is None else read_spins(path)
    assert (caught.value.n_complete, caught.value.n_spins) == (30, 4)
    message = str(caught.value)
    places = [message.index(f"missing='{one}'") for one in ("impute", "drop", "pairwise")]
    assert places == sorted(places)
    assert "40 in 2 column(s) of 60 rows ('x0': 30, 'x1': 10), 17 percent of all values" in message
    assert "(keeps 30 of 60 rows)" in message
    assert "(keeps all, the emptiest column being seen in 30)" in message
    assert "(keeps all; AutoIsing only)" in message
    for missing in ("impute", "drop", "pairwise"):  # and its advice works
        assert ik.as_spins(table, missing=missing).n_samples == (30 if missing == "drop" else 60)


def test_without_a_count_of_complete_rows_the_error_says_how_many_there_can_be():
    error = ex.MissingValuesError(counts={"a": 5, "b": 40}, n_samples=100, n_spins=3)
    assert "keeps at most 60 of 100 rows" in str(error)
    assert "keeps at most 60 of 100 rows" in str(error.offering(COMPLETE_ROWS))


@pytest.mark.parametrize(
    ("estimator", "policies"),
    [
        (ik.RidgeIsing, WITHOUT_DRAWING),
        (ik.MeanFieldIsing, WITHOUT_DRAWING),
        (ik.TwoStageIsing, WITHOUT_DRAWING),
        (ik.ELassoIsing, COMPLETE_ROWS),
        (ik.PseudolikelihoodIsing, COMPLETE_ROWS),
        (ik.MaximumLikelihoodIsing, COMPLETE_ROWS),
    ],
)
def test_estimators_other_than_auto_refuse_to_draw_and_offer_what_they_take(
    estimator, policies, rng
):
    with pytest.raises(ex.SettingError, match="AutoIsing.*but got 'impute'") as refused:
        estimator(missing="impute").fit(gappy(rng))
    assert refused.value.expected.startswith(", ".join(f"'{one}'" for one in policies[:-1]))
    with pytest.raises(ex.MissingValuesError) as caught:
        estimator().fit(gappy(rng))
    offered = [one for one in ("impute", "drop", "pairwise") if f"'{one}'" in str(caught.value)]
    assert offered == [one for one in policies if one.remedy]


def test_auto_takes_every_policy(rng):
    table = gappy(rng, n_rows=1000)
    for missing in ("drop", "pairwise", "impute"):
        ik.AutoIsing(missing=missing).fit(table)


@pytest.mark.parametrize("missing", ["pairwise", "impute"])
@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet"])
def test_rows_with_nothing_in_them_are_reported_and_never_counted(suffix, missing, rng, tmp_path):
    table = gappy(rng, n_rows=200)
    holed = np.insert(table, [0, 70, 200], np.nan, axis=0)
    with pytest.warns(ex.EmptyRowsWarning, match="3 of 203 rows hold no value") as caught:
        spins = ik.as_spins(holed, missing=missing)
    assert (caught[0].message.n_empty, caught[0].message.n_rows) == (3, 203)
    whole = ik.as_spins(table, missing=missing)
    np.testing.assert_array_equal(spins.values, whole.values)
    np.testing.assert_array_equal(spins.rows, ~np.isnan(holed).all(axis=1))
    with pytest.warns(ex.EmptyRowsWarning, match="3 of 203"):
        reading = read_spins(written(holed, tmp_path / f"table{suffix}"), missing=missing)
    np.testing.assert_array_equal(np.asarray(reading.packed), whole.values)


@pytest.mark.parametrize("missing", ["pairwise", "impute"])
def test_packed_rows_with_nothing_in_them_are_left_out_with_their_weights(missing, rng):
    values = ik.as_spins(gappy(rng, n_rows=300), missing="pairwise").values
    holed = np.insert(values, [5, 100, 290], 0, axis=0)
    is_kept = holed.any(axis=1)
    spins = ik.Spins(holed, tuple("abcd"), ((-1, 1),) * 4, None, True)
    with pytest.warns(ex.EmptyRowsWarning, match="3 of 303"):
        packed, rows = apply_missing_policy(ik.pack(spins), missing)
    np.testing.assert_array_equal(rows, is_kept)
    np.testing.assert_array_equal(np.asarray(packed), values)
    weights = np.where(is_kept, 2.0, 1e6)
    with pytest.warns(ex.EmptyRowsWarning):
        fit = ik.AutoIsing(missing=missing).fit(spins, sample_weight=weights)
    assert fit.n_samples_ == 300


def test_rows_either_complete_or_empty_lack_nothing(rng):
    table = np.insert(rng.integers(0, 2, (50, 3)).astype(float), 7, np.nan, axis=0)
    with pytest.warns(ex.EmptyRowsWarning):
        spins = ik.as_spins(table, missing="impute")
    assert not spins.has_missing
    assert ik.as_spins(table, missing="drop").n_samples == 50  # which needs no warning


def test_a_table_of_empty_rows_only_has_no_rows():
    with pytest.raises(ex.EmptyTableError, match="None of the 2 rows holds any value"):
        ik.as_spins(np.full((2, 2), np.nan), missing="pairwise", mapping=[(0, 1)] * 2)


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.IsingkitWarning")
def test_stability_of_counted_rows_with_holes_finds_their_edges(rng):
    """Seen to find none where a counted row was one that repeats itself."""
    pair = ik.IsingModel([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]])
    values = np.asarray(ik.exact(pair).sample(n_samples=300, random_state=0)).astype(float)
    values[rng.random(values.shape) < 0.03] = np.nan
    rows, counts = np.unique(np.nan_to_num(values), axis=0, return_counts=True)
    rows = np.where(rows == 0, np.nan, rows)
    estimator = ik.AutoIsing(hidden=0, rows="independent", missing="impute")
    edges = estimator.stability(rows, counts=counts, n_resamples=2, random_state=0).edges
    assert (edges["source"][0], edges["target"][0], edges["frequency"][0]) == ("x0", "x1", 1.0)
