"""ik.plan: how many rows will be needed."""

import json
import re

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.plan.result import Success, value_at
from isingkit.plan.study import Studies
from isingkit.plan.success_curve import success_curve
from isingkit.theory.edge_power import edge_power, standardized_couplings
from isingkit.worlds.description import described
from isingkit.worlds.exact import enumeration

KIND = {"n_spins": 8, "mean_degree": 2, "coupling": (0.2, 0.5), "method": "lasso"}


@pytest.fixture(scope="module")
def answer():
    return ik.plan(**KIND, find=0.7, random_state=3, n_jobs=1)


# The parts


def test_the_curve_is_found_from_which_successes_were_drawn(rng):
    """6000 studies: catches an error of 3 percent in the rows (4 standard errors)."""
    log_rows = np.log(rng.choice([300, 350, 400, 450], size=6000))
    successes = rng.random(6000) < expit(1.4 + 4 * (log_rows - np.log(370)))
    curve = success_curve(log_rows, successes.astype(float))
    needed = curve.log_rows(expit(1.4))
    assert abs(needed - np.log(370)) < 0.03
    low, high = curve.interval(expit(1.4))
    assert low < needed < high
    nominal = curve.error(needed) / (expit(1.4) * expit(-1.4)) / curve.slope
    assert (high - low) / 2 == pytest.approx(1.96 * nominal, rel=0.1)


def test_intervals_of_rows_hold_the_true_number_95_times_in_100(rng):
    """400 curves of 120 studies: catches a coverage below 0.92."""
    held = 0
    for _ in range(400):
        log_rows = np.log(rng.choice([300, 370, 450], size=120))
        successes = rng.random(120) < expit(1.4 + 4 * (log_rows - np.log(370)))
        low, high = success_curve(log_rows, successes.astype(float)).interval(expit(1.4))
        held += low <= np.log(370) <= high
    assert 0.92 <= held / 400 <= 0.985


def test_a_curve_through_separated_studies_is_finite():
    log_rows = np.log([100.0] * 8 + [200.0] * 8)
    curve = success_curve(log_rows, np.repeat([0.0, 1.0], 8))
    assert np.log(100) < curve.log_rows(0.5) < np.log(200)
    assert curve.rises
    assert np.isfinite(curve.covariance).all()


def test_fisher_information_of_a_pair_is_that_of_its_one_coupling():
    """Without fields s_i s_j is all that counts: information 1 - tanh^2 J."""
    coupling = 0.4
    rng = np.random.default_rng(0)
    spins = 2.0 * rng.integers(2, size=(4000, 1)) - 1
    found = standardized_couplings(np.array([coupling]), spins, coupling * spins[:, 0])
    assert found[0] == pytest.approx(coupling / np.cosh(coupling), rel=1e-3)


def test_power_of_tests_is_the_normal_one():
    power = edge_power(np.full(10, 0.3), n_pairs=45, share=0.8, level=0.05)
    critical = norm.isf(0.05 * 8 / 45 / 2)
    assert power.share(100) == pytest.approx(norm.sf(critical - 3.0))
    needed = power.samples_for(0.8, most=1e6)
    assert power.share(needed) == pytest.approx(0.8, abs=2e-3)


def test_networks_that_are_described_have_what_was_described():
    kind = described(
        n_spins=12,
        degree=None,
        mean_degree=3,
        coupling=(0.1, 0.4),
        negative=0.25,
        prevalence=(0.2, 0.4),
    )
    models = [kind.draw(np.random.default_rng(seed)) for seed in range(40)]
    degrees = np.mean([2 * model.n_edges / 12 for model in models])
    assert degrees == pytest.approx(3, abs=4 * 0.13)  # 0.13: standard error over 40 networks
    couplings = np.concatenate([model.couplings.data for model in models])
    assert np.abs(couplings).min() >= 0.1
    assert np.abs(couplings).max() <= 0.4
    assert (couplings < 0).mean() == pytest.approx(0.25, abs=0.1)
    shares = np.array([(enumeration(model).means + 1) / 2 for model in models[:10]])
    assert shares.min() > 0.17
    assert shares.max() < 0.43
    assert shares.mean() == pytest.approx(0.3, abs=0.025)


@pytest.mark.parametrize("prevalence", [0.3, 0.002, 1e-5])
def test_columns_are_as_rare_as_described(prevalence):
    """Against all states: 5 percent off is caught, of each column."""
    kind = described(
        n_spins=10,
        degree=3,
        mean_degree=None,
        coupling=(0.4, 0.6),
        negative=0.0,
        prevalence=prevalence,
    )
    shares = (enumeration(kind.draw(np.random.default_rng(5))).means + 1) / 2
    assert shares == pytest.approx(np.full(10, prevalence), rel=0.05)


def test_values_at_a_number_of_rows_lie_on_the_line_through_studies_nearby():
    at = np.log(np.repeat([90.0, 100.0, 110.0, 1000.0], 20))
    value, error = value_at(np.log(100), at, np.where(at < 5, 0.5 + (at - np.log(100)), 0.0))
    assert value == pytest.approx(0.5)
    assert error == pytest.approx(0, abs=1e-9)


def test_studies_of_one_size_say_their_mean():
    """46 studies of 279 rows, asked about 272: a mean of the logarithms of 279 is a digit off, and
    a slope by such digits was 1e15.
    """
    values = np.random.default_rng(0).uniform(0.8, 0.9, 46)
    value, error = value_at(np.log(272), np.full(46, np.log(279)), values)
    assert value == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(46))


def test_success_may_ask_for_few_false_edges_as_well():
    studies = Studies(np.array([50, 50, 50]), np.array([0.8, 0.9, 0.7]), np.array([0.1, 0.3, 0.0]))
    assert Success(0.8, None).of(studies).tolist() == [1, 1, 0]
    assert Success(0.8, 0.1).of(studies).tolist() == [1, 0, 0]
    assert str(Success(0.8, 0.1)) == "at least 80% of the edges with at most 10% false"


# The answer


def test_fresh_studies_of_the_rows_proposed_succeed_as_often_as_asked(answer):
    """200 of them, drawn and scored apart: the band is 4 standard errors of both, 0.23; a plan of
    half the rows was seen to fail.
    """
    kind = described(
        n_spins=8, degree=None, mean_degree=2, coupling=(0.2, 0.5), negative=0.0, prevalence=0.5
    )
    rng = np.random.default_rng(11)
    n_right = 0
    for _ in range(200):
        truth = kind.draw(rng)
        while truth.n_edges == 0:
            truth = kind.draw(rng)
        rows = ik.sample(truth, answer.n_rows, random_state=rng, n_jobs=1)
        learnt = _lasso(8, answer.n_rows).fit(rows).model_
        n_right += ik.score(learnt, truth).recall >= 0.7 - 1e-9
    assert abs(n_right / 200 - 0.8) < 4 * np.hypot(0.4 / np.sqrt(200), answer.precision / 1.96)


def test_the_answer_is_the_same_on_any_number_of_threads(answer):
    again = ik.plan(**KIND, find=0.7, random_state=3, n_jobs=2)
    assert repr(again) == repr(answer)
    assert str(again) == str(answer)
    other = ik.plan(**KIND, find=0.7, random_state=4, n_jobs=1)
    assert str(other) != str(answer)


def test_the_answer_says_rows_interval_shares_and_errors(answer):
    assert isinstance(answer, ik.Plan)
    assert answer.low < answer.n_rows < answer.high
    assert 0 < answer.precision <= 0.11
    words = str(answer)
    assert words.startswith(
        f"With {answer.n_rows} rows ({answer.low} to {answer.high}) a study finds at least 70% of "
        "the edges with probability 0.8."
    )
    assert "networks of 8 columns, mean degree 2, couplings 0.2 to 0.5" in words.replace("\n", " ")
    assert answer.n_studies == answer.table()["studies"].sum()
    assert answer._repr_html_().count("<img") == 1


def test_more_precision_takes_more_studies_and_leaves_less_open(answer):
    finer = ik.plan(**KIND, find=0.7, precision=0.07, random_state=3, n_jobs=1)
    assert finer.n_studies > 1.4 * answer.n_studies
    assert finer.precision <= 0.077
    assert finer.precision < answer.precision


def test_a_pilot_may_be_a_model_an_estimator_or_a_file(tmp_path):
    truth = ik.random_regular(n_spins=8, degree=2, coupling=0.5, random_state=0)
    truth.save(tmp_path / "model.npz")
    fit = ik.LinearIsing(threshold=0.1).fit(ik.sample(truth, n_samples=4000, random_state=0))
    given = (truth, tmp_path / "model.npz", str(tmp_path))
    settings = {"method": "lasso", "random_state": 0, "n_jobs": 1}
    assert len({repr(ik.plan(one, **settings)) for one in given}) == 1
    by_fit = ik.plan(fit, **settings)
    assert by_fit.network == "the network, 8 columns and 8 edges"


def test_weak_edges_that_need_not_be_found_save_rows():
    couplings = np.zeros((6, 6))
    for left, strength in enumerate((0.5, 0.1, 0.5, 0.1, 0.5)):
        couplings[left, left + 1] = couplings[left + 1, left] = strength
    chain = ik.IsingModel(couplings)
    settings = {"find": 1.0, "method": "lasso", "random_state": 0, "n_jobs": 1}
    every = ik.plan(chain, **settings)
    strong = ik.plan(chain, at_least=0.3, **settings)
    assert strong.n_rows < every.n_rows / 4
    assert "3 edges with couplings of at least 0.3" in strong.network


def test_the_picture_has_the_answer_and_no_legend_over_data(answer):
    axes = ik.plot_plan(answer)
    figure = axes.figure
    figure.canvas.draw()
    legend = axes.get_legend().get_window_extent()
    assert legend.y0 >= axes.get_window_extent().y1 - 1
    assert str(answer.n_rows) in [tick.get_text() for tick in axes.get_xticklabels()]
    with pytest.raises(ex.SettingError, match=r"what isingkit\.plan returns"):
        ik.plot_plan("no plan")


# What is refused


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"find": 1.2}, "find must be a share, at most 1"),
        ({"probability": 1}, "probability must be below 1"),
        ({"precision": 0.7}, "precision must be below 0.5"),
        ({"method": "guess"}, "method must be one of 'independent', 'auto'"),
        ({"level": 0.01}, "level must be None, or method 'auto'"),
        ({"coupling": (0.5, 0.2)}, "coupling must be a number above 0, or two"),
        ({"prevalence": 1.5}, "prevalence must be a number above 0 and below 1"),
        ({"mean_degree": 9}, "mean_degree must be at most n_spins - 1 = 7"),
        ({"mean_degree": None}, "mean_degree must be given, or degree"),
        ({"negative": 2}, "negative must be a share from 0 to 1"),
        ({"at_least": 0.6}, "at_least must be at most 0.5, the strongest coupling"),
        ({"method": 3}, "method must be the name of a method, an estimator"),
    ],
)
def test_a_question_without_sense_is_refused(settings, words):
    with pytest.raises(ex.SettingError, match=re.escape(words)):
        ik.plan(**(KIND | settings))


def test_networks_that_no_memory_holds_are_refused():
    """Seen to run without end."""
    with pytest.raises(ex.NotEnoughMemoryError, match="rows of 1000000000 columns"):
        ik.plan(**(KIND | {"n_spins": 10**9}))


def test_a_model_is_not_described_twice():
    model = ik.random_regular(n_spins=8, degree=2, coupling=0.5, random_state=0)
    with pytest.raises(ex.SettingError, match="n_spins must be None where there is a model"):
        ik.plan(model, n_spins=8)
    with pytest.raises(ex.SettingError, match="an IsingModel, a fitted estimator, or the path"):
        ik.plan(np.zeros((3, 3)))
    with pytest.raises(ex.SettingError, match="one with edges of at least 0.7"):
        ik.plan(model, at_least=0.7)


def test_what_no_number_of_rows_reaches_is_said_and_the_advice_helps():
    """A fixed threshold never finds couplings below it; at_least leaves those out."""
    model = ik.IsingModel([[0, 0.5, 0], [0.5, 0, 0.05], [0, 0.05, 0]])
    settings = {"method": ik.TwoStageIsing(), "random_state": 0, "max_rows": 2000, "n_jobs": 1}
    with pytest.raises(ex.UnreachableError, match="even with 1878 rows only 0%") as caught:
        ik.plan(model, find=1.0, **settings)
    assert caught.value.success == 0
    assert caught.value.found == pytest.approx(0.5)
    assert ik.plan(model, find=1.0, at_least=0.3, **settings).n_rows < 200


# The command line


def run(capsys, *arguments):
    from isingkit.cli import main

    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code, capsys.readouterr()


def test_the_command_answers_draws_and_prints_json(capsys, tmp_path):
    picture = tmp_path / "curve.svg"
    options = "--variables 8 --mean-degree 2 --coupling 0.2:0.5 --method lasso --find 0.7 --seed 3"
    asked = ["plan", *options.split(), "--plot", str(picture)]
    code, printed = run(capsys, *asked, "--json")
    assert code == 0
    facts = json.loads(printed.out)
    assert facts["answer"].startswith(f"With {facts['n_rows']} rows ({facts['low']} to ")
    assert facts["find"] == 0.7
    assert sum(row["studies"] for row in facts["curve"]) == facts["n_studies"]
    assert picture.read_text().startswith("<?xml")
    code, printed = run(capsys, *asked, "--set", "l1=0.1", "--force")
    assert code == 0
    assert "LassoIsing, for networks of 8 columns" in printed.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "name a model, or describe the network: --variables is missing"),
        ("--variables 8 --coupling 0.3", "give one of --mean-degree and --degree"),
        ("--variables 8 --degree 2 --coupling 0.3:a", "expected a number or FROM:TO"),
        ("--variables 8 --degree 2 --coupling 0.3 --plot a.txt", "--plot takes a .png"),
        ("--variables 8 --degree 2 --coupling 0.3 --method x", "there is no method 'x'"),
    ],
)
def test_the_command_says_in_one_line_what_is_missing(capsys, options, words):
    code, printed = run(capsys, "plan", *options.split())
    assert code == 2
    assert words in printed.err
    assert printed.err.count("\n") == 1


def test_theory_points_to_plan_where_it_has_no_answer(capsys):
    code, printed = run(
        capsys, "theory", "--mean-degree", "3", "--coupling", "0.4", "--spins", "50"
    )
    assert code == 2
    assert "ask 'isingkit plan'" in printed.err


def _lasso(n_spins, n_rows):
    from isingkit.methods import method_named, suggested_settings

    return method_named("lasso").build(suggested_settings(n_spins, n_rows))


@pytest.mark.parametrize("method", ["ridge", "linear"])
def test_a_plan_ends_where_more_rows_do_not_help(method):
    """Two columns that are always alike. Seen never to end, and to end in a division by zero."""
    pair = ik.IsingModel([[0, 3], [3, 0]])
    asked = {"method": method, "precision": 0.4, "max_rows": 60, "random_state": 0}
    if method == "ridge":
        answer = ik.plan(pair, **asked)
        assert (answer.n_rows, answer.low, answer.high) == (10, 10, 10)
        return
    with pytest.raises(ex.UnreachableError, match="of the studies find"):
        ik.plan(pair, **asked)


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_never_asks_for_more_rows_than_allowed(seed):
    """Seen to answer 32 rows where 21 were allowed."""
    model = ik.random_regular(n_spins=6, degree=3, coupling=0.5, random_state=0)
    asked = {"method": "ridge", "precision": 0.45, "max_rows": 21, "random_state": seed}
    try:
        most = ik.plan(model, **asked).n_rows
    except ex.UnreachableError as error:
        most = error.n_rows
    assert most <= 21
