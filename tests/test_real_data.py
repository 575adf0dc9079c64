"""Real tables, with what others know of them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

import isingkit as ik
from isingkit import exceptions as ex


def test_court_couplings_order_as_the_exact_maximum_likelihood_ones_do(shared_data):
    """Nine justices: linear estimates are no couplings, but rank as the exact ones (Spearman above
    0.9; shuffled, below 0.5).
    """
    table = pd.read_csv(shared_data / "scotus_rehnquist2_895x9.csv")
    exact = json.loads((shared_data / "reference" / "exact_mle_scotus.json").read_text())
    couplings = np.array(next(value for key, value in exact.items() if np.shape(value) == (9, 9)))
    fit = ik.LinearIsing(threshold=0).fit(table)
    mean = (fit.estimates_ + fit.estimates_.T) / 2
    above = np.triu_indices(9, 1)
    assert spearmanr(mean[above], couplings[above]).statistic > 0.9
    assert fit.model_.names == tuple(table.columns)


def test_senators_who_never_sat_together_get_no_edge(shared_data):
    table = pd.read_csv(shared_data / "senate109_645x102.csv").drop(columns="rollcall")
    with pytest.raises(ex.MissingValuesError, match=r"2933 in 100 column"):
        ik.RidgeIsing().fit(table)
    with (
        pytest.warns(ex.ContradictoryPairsWarning),
        pytest.warns(ex.UnobservedPairWarning) as caught,
    ):
        fit = ik.RidgeIsing(ridge=2.0, threshold=0.02, missing="pairwise").fit(table)
    corzine, menendez = (
        next(name for name in table if name.startswith(who)) for who in ("CORZINE", "MENENDEZ")
    )
    pairs = next(w.message.pairs for w in caught if isinstance(w.message, ex.UnobservedPairWarning))
    assert {frozenset(pair) for pair in pairs} == {frozenset((corzine, menendez))}
    graph = fit.model_.to_networkx()
    assert not graph.has_edge(corzine, menendez)

    def party(name):
        return name.split("(")[1][0]

    strongest = fit.model_.edges()[:100]
    alike = [
        party(a) == party(b) for a, b in zip(strongest["source"], strongest["target"], strict=True)
    ]
    assert np.mean(alike) > 0.9


def test_symptoms_of_one_kind_cluster(shared_data):
    """ADHD: nine items of inattention, nine of hyperactivity; most strong edges lie within a
    kind.
    """
    table = pd.read_csv(shared_data / "adhd_symptoms_355x19.csv").drop(columns="group")
    edges = ik.TwoStageIsing().fit(table).model_.edges()[:20]
    inattention = set(table.columns[:9])
    within = [
        (a in inattention) == (b in inattention)
        for a, b in zip(edges["source"], edges["target"], strict=True)
    ]
    assert np.mean(within) > 0.7


def test_histograms_are_read_through_counts(shared_data):
    """A million samples as counted states: equal to couplings of the weighted moments, by numpy."""
    table = pd.read_csv(
        shared_data / "interaction_screening" / "a_samples.csv", header=None
    ).to_numpy()
    counts, values = table[:, 0], table[:, 1:]
    fit = ik.LinearIsing().fit(values, counts=counts)
    inverse = np.linalg.inv(np.cov(values.T, fweights=counts))
    expected = -inverse / np.diagonal(inverse)[:, None] * (1 - np.eye(values.shape[1]))
    np.testing.assert_allclose(fit.estimates_, expected, atol=1e-10)


def test_neurons_of_head_direction_couple_by_their_directions(shared_data):
    table = pd.read_csv(shared_data / "hd_spikes_25ms_21174x15.csv.gz")
    units = pd.read_csv(shared_data / "hd_spikes_units.csv").set_index("unit")
    fit = ik.LinearIsing(threshold=0).fit(table[list(units.index)])
    mean = (fit.estimates_ + fit.estimates_.T) / 2
    heads = np.flatnonzero(units["region"] == "adn")
    direction = units["preferred_dir_rad"].to_numpy()[heads]
    above = np.triu_indices(len(heads), 1)
    cosines = np.cos(direction[:, None] - direction)[above]
    assert np.corrcoef(cosines, mean[np.ix_(heads, heads)][above])[0, 1] > 0.5


def without_knobs(table, **settings):
    """Couplings above the diagonal that AutoIsing finds; these tables give it reason to doubt."""
    with pytest.warns(ex.ReliabilityWarning):
        fit = ik.AutoIsing(**settings).fit(table)
    return fit, fit.model_.couplings.toarray()[np.triu_indices(table.shape[1], 1)]


def test_court_without_knobs_has_the_exact_couplings(shared_data):
    """Edges carry the exact maximum-likelihood couplings (correlation above 0.95), and what is no
    edge is weak there.
    """
    exact = json.loads((shared_data / "reference" / "exact_mle_scotus.json").read_text())
    theirs = np.array(exact["J"])[np.triu_indices(9, 1)]
    fit, ours = without_knobs(pd.read_csv(shared_data / "scotus_rehnquist2_895x9.csv"))
    assert np.corrcoef(ours[ours != 0], theirs[ours != 0])[0, 1] > 0.95
    assert np.abs(theirs[ours == 0]).mean() < np.abs(theirs[ours != 0]).mean() / 2
    assert {"strong coupling", "common movement"} <= {
        one.check for one in fit.diagnostics_ if one.serious
    }


def test_symptoms_without_knobs_are_isingfits_surest(shared_data):
    """Every edge is one of IsingFit's 70, and its strongest twenty are all there: if nobody looks
    for what acts on all symptoms, which IsingFit does not.
    """
    table = pd.read_csv(shared_data / "adhd_symptoms_355x19.csv").drop(columns="group")
    weights = np.array(
        json.loads((shared_data / "reference" / "isingfit_adhd_all_g0.25_AND.json").read_text())[
            "weights"
        ]
    )
    theirs = weights[np.triu_indices(18, 1)]
    _, ours = without_knobs(table, hidden=0)
    assert np.count_nonzero(ours) > 30
    assert (theirs[ours != 0] != 0).mean() > 0.95
    assert (ours[np.argsort(-np.abs(theirs))[:20]] != 0).all()


def test_neurons_without_knobs_couple_by_direction_and_hardly_across_regions(shared_data):
    """And neighbouring bins of 25 ms are said to be alike: taken as such, the directions stay, and
    half of the other edges go.
    """
    units = pd.read_csv(shared_data / "hd_spikes_units.csv").set_index("unit")
    table = pd.read_csv(shared_data / "hd_spikes_25ms_21174x15.csv.gz")[list(units.index)]
    trusting, _ = without_knobs(table, rows="independent", hidden=0)
    honest, _ = without_knobs(table, hidden=0)
    heads = np.flatnonzero(units["region"] == "adn")
    places = np.flatnonzero(units["region"] != "adn")
    direction = units["preferred_dir_rad"].to_numpy()[heads]
    above = np.triu_indices(len(heads), 1)
    alike = np.cos(direction[:, None] - direction)[above]
    for fit in (trusting, honest):
        couplings = fit.model_.couplings.toarray()
        assert np.corrcoef(alike, couplings[np.ix_(heads, heads)][above])[0, 1] > 0.5
        across = np.abs(couplings[np.ix_(heads, places)]).mean()
        regions = (heads, places) if fit is trusting else (heads,)
        for region in regions:
            within = couplings[np.ix_(region, region)][np.triu_indices(len(region), 1)]
            assert across < np.abs(within).mean() / 2
        assert "rows alike" in {one.check for one in fit.diagnostics_ if one.serious}
    assert len(honest.edges_) < 0.7 * len(trusting.edges_)
    new = set(honest.edges_["source"] + honest.edges_["target"]) - set(
        trusting.edges_["source"] + trusting.edges_["target"]
    )
    assert len(new) <= 0.1 * len(honest.edges_)
    errors = honest.edges_["std_error"].mean() / trusting.edges_["std_error"].mean()
    assert errors > 1.3


PAGE = Path(__file__).parents[1] / "docs" / "real_tables.md"
LINES = PAGE.read_text(encoding="utf-8").splitlines()
ROWS = [line[1:-1].split("|") for line in LINES if line.startswith("|") and ".csv" in line]


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.IsingkitWarning")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_the_page_of_real_tables_says_what_is_found(shared_data, row):
    name, left_out, first, n_rows, n_columns, n_edges, strongest, coupling = map(str.strip, row)
    table = pd.read_csv(shared_data / name).drop(columns=[left_out] if left_out else [])
    n_spins = list(table).index(first) if first else table.shape[1]
    covariates = table.iloc[:, n_spins:] if first else None
    fit = ik.AutoIsing().fit(table.iloc[:, :n_spins], covariates=covariates)
    assert (len(table), n_spins, len(fit.edges_)) == (int(n_rows), int(n_columns), int(n_edges))
    edge = fit.edges_[0]
    assert f"{edge['source']} - {edge['target']}" == strongest
    assert edge["coupling"] == pytest.approx(float(coupling), abs=0.006)
