"""Edges that must exceed a size: `AutoIsing(at_least=...)`, and the check that proposes one."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm, t

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.cli import main
from isingkit.estimators.diagnostics import _below_gap, _tiny
from isingkit.estimators.sized_edges import size_z_scores
from isingkit.fit_folder import fit_of
from isingkit.report.contents import contents_of
from isingkit.report.page import html_page

doubts_allowed = pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")


def two_sizes(seed, n_spins=24, large=0.3, small=0.03):
    """A regular world of large couplings, and another of small ones in between."""
    settings = {"n_spins": n_spins, "degree": 3}
    strong = ik.random_regular(**settings, coupling=large, random_state=seed).couplings.toarray()
    weak = ik.random_regular(**settings, coupling=small, random_state=100 + seed)
    return ik.IsingModel(np.where(strong != 0, strong, weak.couplings.toarray()))


def complete(seed, large=0.25, small=0.1):
    """Nine spins: half of all pairs have a large coupling, the others a small one."""
    rng = np.random.default_rng(seed)
    sizes = np.where(rng.random((9, 9)) < 0.5, large, small)
    upper = np.triu(sizes * rng.choice([-1, 1], (9, 9)), k=1)
    return ik.IsingModel(upper + upper.T)


def planted(edges, truth):
    """True couplings of edges."""
    place = {name: i for i, name in enumerate(truth.names)}
    ends = [[place[edge["source"]], place[edge["target"]]] for edge in edges]
    return truth.couplings.toarray()[tuple(np.array(ends).reshape(-1, 2).T)]


@pytest.fixture(scope="module")
def many_rows():
    truth = two_sizes(0)
    return truth, ik.sample(truth, n_samples=40_000, random_state=1)


@doubts_allowed
def test_with_many_rows_only_couplings_of_the_size_asked_for_are_edges(many_rows):
    """40,000 rows, couplings of 0.3 and 0.03: all are significant, 36 of them are large."""
    truth, rows = many_rows
    everything = ik.AutoIsing().fit(rows)
    large = ik.AutoIsing(at_least=0.1).fit(rows)
    assert len(everything.edges_) > 60
    np.testing.assert_array_equal(np.abs(planted(large.edges_, truth)), np.full(36, 0.3))
    assert large.model_.n_edges == 36
    before = everything.model_.couplings.toarray()
    after = large.model_.couplings.toarray()
    np.testing.assert_array_equal(after, np.where(np.abs(before) > 0.2, before, 0.0))
    couplings = planted(large.rejected_, truth)
    off = (large.rejected_["coupling"] - couplings) / large.rejected_["std_error"]
    assert np.sqrt(np.mean(off[couplings != 0] ** 2)) < 1.4
    assert (large.rejected_["q_value"] == 1).all()


@doubts_allowed
def test_fields_go_with_the_edges_that_are_left(many_rows):
    """Means of spins are those of the data although small couplings are gone; with the fields of
    the whole network some are off by 0.025.
    """
    rng = np.random.default_rng(0)
    fields = ik.IsingModel(many_rows[0].couplings, fields=rng.uniform(0.2, 0.6, 24))
    values = np.asarray(ik.sample(fields, n_samples=40_000, random_state=2), dtype=np.float64)
    for refit, allowed in (("pseudolikelihood", 1e-5), ("bethe", 0.03), ("linear", None)):
        model = ik.AutoIsing(at_least=0.1, refit=refit).fit(values).model_
        assert model.n_edges == 36
        local = values @ model.couplings.toarray() + model.fields
        means = local if refit == "linear" else np.tanh(local)
        np.testing.assert_allclose(means.mean(axis=0), values.mean(axis=0), atol=allowed or 1e-9)


def test_z_scores_of_sizes_have_the_p_values_of_the_largest_coupling_that_is_none(rng):
    """As they are by definition, normal and Student's t; 0 is the usual two-sided test."""
    couplings = rng.normal(0, 0.3, 40)
    errors = rng.uniform(0.05, 0.2, 40)
    freedom = np.where(np.arange(40) % 2, np.inf, 7.0)
    for at_least in (0.0, 0.1, 0.4):
        found = 2 * norm.sf(size_z_scores(couplings, errors, freedom, at_least))
        above = (np.abs(couplings) - at_least) / errors
        below = (np.abs(couplings) + at_least) / errors
        by_t = t.sf(above, 7) + t.sf(below, 7)
        expected = np.where(np.isinf(freedom), norm.sf(above) + norm.sf(below), by_t)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@doubts_allowed
@pytest.mark.statistics
@pytest.mark.parametrize("control", ["fdr", "fwer"])
def test_couplings_of_just_that_size_are_no_edges(control):
    """60 worlds of nine spins, half of their 36 couplings are 0.1 and count as false: 0.039 of the
    edges, and with "fwer" edges of 2 worlds. Tests against 0.08 give 0.14, and 19 worlds.
    """
    false, covered = [], []
    for seed in range(60):
        truth = complete(seed)
        rows = ik.sample(truth, n_samples=3000, random_state=1000 + seed)
        fit = ik.AutoIsing(at_least=0.1, control=control).fit(rows)
        couplings = planted(fit.edges_, truth)
        false.append(np.mean(np.abs(couplings) < 0.11))
        low, high = fit.intervals_.T
        covered += ((low <= couplings) & (couplings <= high)).tolist()
    if control == "fdr":
        assert np.mean(false) < 0.05
    else:
        assert np.mean(np.array(false) > 0) < 0.11
    assert 0.925 < np.mean(covered) < 0.975


def tiny_couplings(fit):
    return next(one for one in fit.diagnostics_ if one.check == "tiny couplings")


@doubts_allowed
def test_where_tiny_couplings_are_many_a_size_is_proposed_that_leaves_them_out(many_rows):
    _, rows = many_rows
    with pytest.warns(ex.ReliabilityWarning, match="edges have couplings of at most 0.0"):
        check = tiny_couplings(ik.AutoIsing().fit(rows))
    assert check.serious
    assert check.levels_hold
    proposed = float(re.search(r"set at_least=([\d.]+)", check.advice).group(1))
    again = ik.AutoIsing(at_least=proposed).fit(rows)
    assert len(again.edges_) == 36
    assert not tiny_couplings(again).serious


@pytest.mark.parametrize(
    ("sizes", "n_below"),
    [
        (np.r_[np.full(30, 0.03), np.full(40, 0.3)], 30),
        (np.r_[np.full(30, 0.03), np.full(40, 0.05)], 0),  # no gap
        (np.r_[np.full(30, 0.15), np.full(40, 0.6)], 0),  # not tiny
        (np.r_[np.full(2, 0.03), np.full(40, 0.3)], 0),  # too few to be told
        (np.r_[np.full(30, 0.03), np.full(2, 0.3)], 0),
        (np.linspace(0.001, 1, 50), 0),
        (np.empty(0), 0),
        (np.array([0.01]), 0),
    ],
)
def test_tiny_couplings_are_those_below_a_gap(sizes, n_below):
    assert _below_gap(sizes) == n_below


@pytest.mark.parametrize(("decades", "is_said"), [(3.0, True), (1.0, False)])
def test_many_tiny_couplings_without_a_gap_are_said_too(decades, is_said):
    """Sizes from 1 downwards, evenly by their logarithm over decades."""
    check = _tiny(SimpleNamespace(sizes=np.logspace(-decades, 0, 60)))
    assert check.serious == is_said
    assert ("set at_least=" in check.advice) == is_said


@doubts_allowed
def test_a_pair_that_is_too_small_is_explained(many_rows):
    truth, rows = many_rows
    fit = ik.AutoIsing(at_least=0.1).fit(rows)
    couplings = np.triu(np.abs(truth.couplings.toarray()))
    names = truth.names
    i, j = np.argwhere((couplings > 0) & (couplings < 0.1))[0]
    words = fit.explain(names[i], names[j])
    assert "against |coupling| <= 0.1" in words
    assert "verdict    not an edge" in words
    i, j = np.argwhere(couplings > 0.1)[0]
    assert "verdict    an edge" in fit.explain(names[i], names[j])


@doubts_allowed
def test_halves_of_the_rows_find_edges_of_that_size_only():
    truth = two_sizes(1, n_spins=12)
    rows = ik.sample(truth, n_samples=20_000, random_state=1)
    found = ik.AutoIsing(at_least=0.15).stability(rows, n_resamples=4, random_state=0)
    assert len(found.edges) == 18
    assert (found.edges["frequency"] == 1).all()
    assert (np.abs(found.edges["coupling"]) > 0.2).all()


@doubts_allowed
def test_imputed_tables_have_edges_of_that_size(rng):
    truth = two_sizes(2, n_spins=12)
    values = np.asarray(ik.sample(truth, n_samples=4000, random_state=1)).astype(float)
    values[rng.random(values.shape) < 0.05] = np.nan
    fit = ik.AutoIsing(at_least=0.1, missing="impute").fit(values)
    assert len(fit.edges_) == 18
    assert np.isfinite(fit.intervals_).all()


@pytest.mark.parametrize("at_least", [-0.1, np.nan, "0.1"])
def test_sizes_are_numbers_from_0_on(spins, at_least):
    with pytest.raises(ex.SettingError, match="at_least"):
        ik.AutoIsing(at_least=at_least).fit(spins)


@doubts_allowed
def test_the_command_line_and_the_report_say_what_edges_exceed(tmp_path, spins, capsys):
    path = tmp_path / "table.csv"
    np.savetxt(path, spins, fmt="%d", delimiter=",", header=",".join("abcdefghijkl"), comments="")
    folder = tmp_path / "fit"
    with pytest.raises(SystemExit) as stopped:
        main(["fit", str(path), "-o", str(folder), "--at-least", "0.15"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert "may be false or no larger than 0.15" in out
    facts = json.loads((folder / "fit.json").read_text())
    assert facts["settings"]["at_least"] == 0.15
    assert "shown to exceed 0.15 in absolute value" in (folder / "report.html").read_text()
    fit = ik.AutoIsing().fit(spins)
    contents = contents_of(fit_of(fit, ik.pack(spins), "auto", None, []), None, "table")
    assert "shown to exceed" not in html_page(contents)
