"""Missing cells: drawing them from a network, what incomplete rows tell, and what is said."""

import itertools

import numpy as np
import pandas as pd
import pytest

import isingkit as ik
import isingkit.exceptions as ex
from isingkit.estimators.fitted_graph import Samples, fit_graph
from isingkit.estimators.graph import graph_of
from isingkit.estimators.imputation import drawn_coefficients, impute, start
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
    drawn = impute(spins, is_seen, graph, directed(graph, COUPLINGS), FIELDS, 20, rng)
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
        impute(
            spins, observed, graph, directed(graph, COUPLINGS), FIELDS, 3,
            np.random.default_rng(seed), n_jobs
        )
        for seed, n_jobs in ((5, 1), (5, 2), (6, 1))
    )  # fmt: skip
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


def test_coefficients_are_drawn_with_the_covariances_of_their_regressions(rng):
    """4000 draws, 5 standard errors: catches a standard error wrong by 6 percent, and fields and
    couplings that are mixed up.
    """
    truth = ik.random_regular(n_spins=6, degree=3, coupling=0.3, random_state=0)
    spins = np.asarray(ik.sample(truth, n_samples=500, random_state=1), dtype=float).T
    pairs = np.array([[0, 1], [0, 2], [0, 3], [2, 3]])
    fitted = fit_graph(Samples(np.ascontiguousarray(spins), np.ones(500)), pairs)
    draws = [drawn_coefficients(fitted, rng) for _ in range(4000)]
    fields = np.array([one[0] for one in draws])
    couplings = np.array([one[1] for one in draws])
    for i in range(6):
        own = slice(fitted.graph.indptr[i], fitted.graph.indptr[i + 1])
        estimate = np.append(fitted.fields[i], fitted.couplings[own])
        size = len(estimate)
        first = fitted.places[i]
        covariance = fitted.inverses[first : first + size**2].reshape(size, size)
        found = np.column_stack([fields[:, i], couplings[:, own]])
        errors = np.sqrt(np.diag(covariance))
        assert (np.abs(found.mean(axis=0) - estimate) < 5 * errors / np.sqrt(4000)).all()
        difference = np.cov(found.T).reshape(size, size) - covariance
        assert (np.abs(difference) < 5 * np.outer(errors, errors) * np.sqrt(2 / 4000)).all()


def test_coefficients_of_a_column_that_never_changes_stay_near_their_estimates(rng):
    spins = rng.choice([-1.0, 1.0], (3, 200))
    spins[1] = 1.0
    fitted = fit_graph(Samples(spins, np.ones(200)), np.array([[0, 2]]))
    fields = np.array([drawn_coefficients(fitted, rng)[0][1] for _ in range(200)])
    assert 0.5 < fields.std() < 1.5  # by the Hessian it would be above 10


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
    assert fit.n_samples_ == 600


def test_rows_either_complete_or_empty_lack_nothing(rng):
    table = np.insert(rng.integers(0, 2, (50, 3)).astype(float), 7, np.nan, axis=0)
    with pytest.warns(ex.EmptyRowsWarning):
        spins = ik.as_spins(table, missing="impute")
    assert not spins.has_missing
    assert ik.as_spins(table, missing="drop").n_samples == 50  # which needs no warning


def test_a_table_of_empty_rows_only_has_no_rows():
    with pytest.raises(ex.EmptyTableError, match="None of the 2 rows holds any value"):
        ik.as_spins(np.full((2, 2), np.nan), missing="pairwise", mapping=[(0, 1)] * 2)
