"""Hidden causes for people: the command, its folder, the report, the fit check and explain."""

import csv
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

import isingkit as ik
from isingkit.cli import main
from isingkit.estimators.hidden_causes import HiddenReport
from isingkit.estimators.hidden_table import LOADING_COLUMNS
from isingkit.fit_check import _given, _Rows
from isingkit.fit_folder import fit_of
from isingkit.packing import pack
from isingkit.report.contents import contents_in, contents_of
from isingkit.report.page import html_page

pytestmark = pytest.mark.filterwarnings("ignore::isingkit.exceptions.ReliabilityWarning")

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
N_SPINS = 30
N_ROWS = 1500
NASTY = "<b>bold</b>"
WITHOUT = ["edges.csv", "fit.json", "model.npz", "report.html"]
WITH = sorted([*WITHOUT, "hidden_loadings.csv", "hidden_scores.csv"])


def rows_of(truth, causes, loadings, seed):
    """One sample for each row of causes, each -1 or +1, which shift fields by loadings."""
    rows = np.empty((len(causes), truth.n_spins), dtype=np.int8)
    for k, values in enumerate(np.unique(causes, axis=0)):
        here = (causes == values).all(axis=1)
        model = ik.IsingModel(truth.couplings, values @ loadings.T)
        rows[here] = np.asarray(ik.sample(model, int(here.sum()), random_state=seed + k))
    return rows


@pytest.fixture(scope="module")
def world():
    """Spins that follow two causes, and these."""
    rng = np.random.default_rng(8)
    truth = ik.random_regular(n_spins=N_SPINS, degree=3, coupling=0.35, random_state=8)
    loadings = rng.normal(0, 0.7, (N_SPINS, 2))
    causes = rng.choice([-1, 1], (N_ROWS, 2))
    names = [f"item {k}" for k in range(N_SPINS - 1)] + [NASTY]
    spins = pd.DataFrame(rows_of(truth, causes, loadings, seed=1), columns=names)
    return spins, pd.DataFrame({"age": causes[:, 0] * 1.0}), causes, loadings


@pytest.fixture(scope="module")
def fit(world):
    """One cause is known, the other is found."""
    spins, known, _, _ = world
    found = ik.AutoIsing().fit(spins, covariates=known)
    assert found.hidden_ is not None
    assert found.hidden_.n_hidden == 1
    return found


@pytest.fixture
def run(capsys):
    def called(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(one) for one in arguments])
        return stopped.value.code, *capsys.readouterr()

    return called


@pytest.fixture
def data(world, tmp_path):
    spins, known, _, _ = world
    path = tmp_path / "data.csv"
    pd.concat([spins, known], axis=1).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def contents(world, fit):
    spins, known, _, _ = world
    packed = pack(spins)
    check = ik.fit_check(fit.model_, packed, covariates=known, hidden=fit.hidden_)
    return contents_of(fit_of(fit, packed, "auto", None, []), check, "two causes")


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def table_in(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_command_finds_the_hidden_causes_that_python_does(data, fit, run):
    folder = data.parent / "fit"
    folder.mkdir()  # an empty one is filled, file by file
    code, out, err = run("fit", data, "--covariates", "age", "--hidden", "auto", "-o", folder)
    assert code == 0, err
    share = fit.hidden_.variance_shares[0]
    line = f"hidden causes: 1, which explains {share:.0%} of the variance; see hidden_loadings.csv"
    assert line in out.split("\n")
    assert "covariate_effects.csv, hidden_loadings.csv, hidden_scores.csv, model.npz" in out
    assert files_in(folder) == sorted([*WITH, "covariate_effects.csv"])
    facts = json.loads((folder / "fit.json").read_text())
    assert facts["settings"]["hidden"] == "auto"
    assert facts["hidden_variance_shares"] == [share]

    rows = table_in(folder / "hidden_loadings.csv")
    assert tuple(rows[0]) == LOADING_COLUMNS
    place = {name: i for i, name in enumerate(fit.model_.names)}
    spins = [place[row["variable"]] for row in rows]
    assert sorted(spins) == list(range(N_SPINS))
    loadings = np.array([float(row["loading"]) for row in rows])
    errors = np.array([float(row["std_error"]) for row in rows])
    np.testing.assert_array_equal(loadings, fit.hidden_.loadings[spins, 0])
    np.testing.assert_array_equal(errors, fit.hidden_.std_errors[spins, 0])
    np.testing.assert_allclose([float(row["z"]) for row in rows], loadings / errors)
    assert (np.diff(np.abs(loadings)) <= 0).all()
    assert {row["cause"] for row in rows} == {"1"}

    rows = table_in(folder / "hidden_scores.csv")
    assert [int(row["row"]) for row in rows] == list(range(1, N_ROWS + 1))
    scores = [float(row["score_1"]) for row in rows]
    np.testing.assert_array_equal(scores, fit.hidden_.scores[:, 0])


@pytest.mark.parametrize("missing", ["drop", "pairwise"])
def test_rows_that_are_left_out_keep_their_numbers(data, run, missing):
    """Scores go with rows of the table. Seen to be counted without those left out."""
    table = pd.read_csv(data, dtype=str)
    table.iloc[[0, 70, 71]] = ""
    table.iloc[5, 3] = ""
    table.to_csv(data, index=False)
    folder = data.parent / "fit"
    options = ("--hidden", "1", "--missing", missing, "-o", folder, "--rows", "independent")
    code, _, err = run("fit", data, "--drop", "age", *options)
    assert code == 0, err
    gone = {1, 71, 72, 6} if missing == "drop" else {1, 71, 72}
    numbers = [int(row["row"]) for row in table_in(folder / "hidden_scores.csv")]
    assert numbers == [row for row in range(1, len(table) + 1) if row not in gone]


def test_as_many_causes_as_asked_for_go_into_the_folder(data, run):
    folder = data.parent / "fit"
    code, out, err = run("fit", data, "--drop", "age", "--hidden", "2", "-o", folder)
    assert code == 0, err
    assert re.search(r"hidden causes: 2, which explain \d+% and \d+% of the variance", out)
    assert files_in(folder) == WITH
    assert json.loads((folder / "fit.json").read_text())["settings"]["hidden"] == 2
    rows = table_in(folder / "hidden_loadings.csv")
    assert [row["cause"] for row in rows] == ["1"] * N_SPINS + ["2"] * N_SPINS
    assert list(table_in(folder / "hidden_scores.csv")[0]) == ["row", "score_1", "score_2"]
    assert "2 causes that are no columns" in (folder / "report.html").read_text()

    code, out, err = run("fit", data, "--drop", "age", "--hidden", "0", "-o", folder, "--force")
    assert code == 0, err
    assert "hidden causes" not in out
    assert "'hidden cause'; more edges may be false" in out
    assert files_in(folder) == WITHOUT
    assert 'id="hidden-part"' not in (folder / "report.html").read_text()


@pytest.mark.parametrize("value", ["lots", "-1", "1.5", "", "Auto"])
def test_a_wrong_number_of_causes_is_one_line(data, value, run):
    code, _, err = run("fit", data, "--hidden", value)
    assert code == 2
    assert f"--hidden wants auto, 0 or a number of causes, not '{value}'" in err
    assert err.count("\n") == 1


def test_hidden_causes_are_refused_by_methods_without(data, run):
    code, _, err = run("fit", data, "--method", "ridge", "--hidden", "1")
    assert code == 2
    assert "method 'ridge' has no setting 'hidden'" in err
    assert err.count("\n") == 1


def test_effects_of_covariates_are_tabulated_beside_hidden_causes(world, fit):
    """And follow those that were planted: catches effects of the wrong cause."""
    _, _, _, loadings = world
    effects = fit.covariate_effects_
    assert len(effects) == N_SPINS
    names = list(fit.model_.names)
    planted = np.array([loadings[names.index(row["variable"]), 0] for row in effects])
    assert np.corrcoef(effects["effect"], planted)[0, 1] > 0.9


def test_scores_are_those_of_rows_as_read_whatever_they_count(world):
    spins, known, _, _ = world
    counts = np.where(np.arange(N_ROWS) % 5 == 0, 2, 1)
    fit = ik.AutoIsing(hidden=1).fit(spins, counts=counts, covariates=known)
    assert fit.n_samples_ == counts.sum()
    assert fit.hidden_.scores.shape == (N_ROWS, 1)


def rms_off(check):
    off = check.data_correlations - check.model_correlations
    return float(np.sqrt(np.mean(off**2)))


def test_data_are_compared_with_the_model_given_hidden_causes(world, fit):
    """Samples of the same edges without causes are off by several times as much."""
    spins, known, _, _ = world
    given = ik.fit_check(fit.model_, spins, covariates=known, hidden=fit.hidden_)
    without = ik.fit_check(fit.model_, spins, covariates=known)
    assert rms_off(given) < 0.04
    assert rms_off(without) > 3 * rms_off(given)
    assert "weaker" not in given.words()
    axes = ik.plot_fit_check(fit.model_, spins, covariates=known, hidden=fit.hidden_)
    plotted = axes.lines[1].get_ydata()
    np.testing.assert_array_equal(np.sort(plotted), np.sort(given.model_correlations))


def test_a_small_model_is_sampled_given_hidden_causes_too(rng):
    """Which could be summed exactly, had it no causes: without couplings, means and correlations
    are those of tanh(field + shift) over rows. 10,000 draws: catches 0.05.
    """
    spins = np.where(rng.random((500, 4)) < [0.5, 0.3, 0.6, 0.5], 1, -1)
    spins[:, 1] = np.where(rng.random(500) < 0.8, spins[:, 0], spins[:, 1])
    weights = np.array([[0.5, 0.5, -0.3, 0.0]])
    effects = np.array([[0.8], [0.6], [-1.0], [0.0]])
    hidden = HiddenReport(
        scores=spins @ weights.T,
        loadings=effects,
        std_errors=np.full((4, 1), 0.1),
        variance_shares=np.array([0.2]),
        _weights=weights,
        _means=spins.mean(axis=0),
        _bends=np.zeros(1),
        _effects=effects,
        _slopes=np.empty((1, 0)),
    )
    model = ik.IsingModel(np.zeros((4, 4)), np.array([0.1, -0.2, 0.0, 0.3]))
    check = ik.fit_check(model, spins, hidden=hidden)
    given = np.tanh(model.fields + hidden.shifts(spins.astype(float)))
    means = given.mean(axis=0)
    i, j = check.pairs.T
    covariances = (given[:, i] * given[:, j]).mean(axis=0) - means[i] * means[j]
    spread = np.sqrt(1 - means**2)
    np.testing.assert_allclose(check.model_means, means, atol=0.05)
    expected = covariances / (spread[i] * spread[j])
    np.testing.assert_allclose(check.model_correlations, expected, atol=0.05)
    assert np.abs(expected).max() > 0.2


def test_rows_are_drawn_with_the_shifts_that_scores_are_made_with(world, fit):
    spins, known, _, _ = world
    packed, weights = fit._read(spins, None, None, covariates=known, reset=False)
    some = np.array([3, 3, 700, 12])
    rows = _Rows(packed, None, weights.covariates, fit.hidden_)
    model, shifts = _given(fit.model_, rows, some)
    np.testing.assert_allclose(shifts, fit._shifts(packed, weights)[some], atol=1e-12)
    np.testing.assert_array_equal(model.effects.shifts(shifts, 4), shifts)


def test_the_report_says_who_follows_hidden_causes(contents, fit, tmp_path):
    page = html_page(contents)
    share = fit.hidden_.variance_shares[0]
    assert "with 1 covariate and 1 hidden cause by method" in page
    assert f"it explains <strong>{share:.0%}</strong> of the variance" in page
    assert "given what hidden causes and covariates do" in page
    assert NASTY not in page
    part = page[page.index('id="hidden-part"') : page.index('id="check-part"')]
    cells = re.findall(r'<tr><td>(.*?)</td><td class="number (\w+)">([-+\d.]+)</td>', part)
    strongest = int(np.argmax(np.abs(fit.hidden_.loadings[:, 0])))
    assert len(cells) == N_SPINS
    assert cells[0][0] == fit.model_.names[strongest]
    assert cells[0][2] == f"{fit.hidden_.loadings[strongest, 0]:+.3f}"
    assert all((colour == "alike") == value.startswith("+") for _, colour, value in cells)
    path = tmp_path / "report.html"
    path.write_text(page)
    assert contents_in(path) == contents
    assert html_page(contents_in(path)) == page


def test_reports_without_hidden_causes_and_of_earlier_versions_have_no_such_part(
    contents, tmp_path
):
    page = html_page(contents)
    written = re.sub(r', "loadings": \[.*?\]', "", page)
    assert written != page
    written = written[: written.index("<!-- sha256")]  # earlier versions had no checksum
    path = tmp_path / "report.html"
    path.write_text(written)
    earlier = contents_in(path)
    assert earlier.loadings == []
    assert "hidden-part" not in html_page(earlier)


@pytest.mark.parametrize("width", [400, 1200])
def test_the_part_on_hidden_causes_opens_in_a_browser(contents, fit, tmp_path, width):
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    playwright = pytest.importorskip("playwright.sync_api")
    path = tmp_path / "report.html"
    path.write_text(html_page(contents), encoding="utf-8")
    noticed = []
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.on("console", lambda message: noticed.append(message.text))
        page.on("pageerror", lambda error: noticed.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.get_by_role("link", name="Hidden causes").click()
        part = page.locator("#hidden-part")
        assert part.get_by_role("heading").is_visible()
        assert abs(part.bounding_box()["y"]) < 800
        assert part.locator("svg").is_visible()
        chart = part.locator("svg").text_content()
        assert NASTY in chart
        assert "cause 1: loading" in chart
        assert not part.locator("#loadings").is_visible()
        part.locator("summary").click()
        assert part.locator("#loadings").is_visible()
        assert part.locator("#loadings tbody tr").count() == N_SPINS
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()
    assert noticed == []


def test_explain_says_what_a_pair_was_tested_given(world, fit):
    hidden = fit.hidden_
    lines = fit.explain("item 2", "item 5").split("\n")
    assert "causes     tested given 1 covariate and 1 hidden cause" in lines
    both = ", ".join(
        f"'item {i}' {hidden.loadings[i, 0]:+.3f} +- {hidden.std_errors[i, 0]:.3f}" for i in (2, 5)
    )
    assert f"loadings   on hidden cause 1: {both}" in lines
    spins, known, _, _ = world
    plain = ik.AutoIsing(hidden=0).fit(spins).explain("item 2", "item 5")
    assert "causes  " not in plain
    assert "loadings" not in plain
    told = known.assign(sex=np.where(np.arange(N_ROWS) % 3 == 0, "f", "m"))
    told = ik.AutoIsing(hidden=2).fit(spins, covariates=told).explain("item 2", "item 5")
    assert "tested given 2 covariates and 2 hidden causes\n" in told
    assert told.count("loadings   on hidden cause") == 2
