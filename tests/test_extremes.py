"""Tables at the edge of what can be learnt from: a right answer, or one sentence."""

import json
import warnings

import numpy as np
import pytest

import isingkit as ik
from isingkit import exceptions as ex
from isingkit.cli import main
from isingkit.methods import METHODS, suggested_settings

RNG = np.random.default_rng(20261)
ALL = [one for one in METHODS if one.requires is None]
QUICK = [one for one in ALL if one.name != "boltzmann"]  # without Monte Carlo
PATTERNS = np.array([[1 if k >> j & 1 else -1 for j in range(5)] for k in range(32)])


def independent(n_rows, n_columns):
    return RNG.choice([-1, 1], (n_rows, n_columns))


def made(kind):
    """A table of five columns, of which the first ones have something to do with each other."""
    table = independent(400, 5)
    match kind:
        case "separated":
            table[:, 1] = np.where(table[:, 0] + table[:, 2] > 0, 1, -1)
        case "duplicated":
            table[:, 1] = table[:, 0]
        case "complementary":
            table[:, 1] = -table[:, 0]
        case "exclusive or":
            table[:, 2] = table[:, 0] * table[:, 1]
    return table


def fitted(method, table, n_samples=None, **given):
    """A finite model, or the error; a warning that is none of ours is an error."""
    suggested = suggested_settings(table.shape[1], n_samples or len(table))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ex.IsingkitWarning)
        try:
            model = method.build(suggested).fit(table, **given).model_
        except ex.IsingkitError as error:
            found = error
        else:
            assert np.isfinite(model.couplings.data).all()
            assert np.isfinite(model.fields).all()
            return model
    assert "\n" not in str(found)
    return found


@pytest.mark.parametrize("method", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize(
    "rows", [[[0, 1], [1, 0], [1, 1]], [[0, 1], [1, 0], [1, 0]], [[0, 0], [1, 1], [1, 1]]]
)
def test_two_columns_and_three_rows(method, rows):
    found = fitted(method, np.array(rows))
    if method.name in {"auto", "elasso"}:
        assert found.n_edges == 0  # three rows prove nothing


@pytest.mark.parametrize("method", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["separated", "duplicated", "complementary", "exclusive or"])
def test_columns_that_follow_from_others(method, kind):
    """What is found has the right sign; an effect of three columns is no edge, of methods that
    test.
    """
    found = fitted(method, made(kind))
    if isinstance(found, ex.IsingkitError):
        assert isinstance(found, ex.DuplicateColumnsError | ex.SeparationError)
        assert "'x1'" in str(found)
        return
    couplings = found.couplings.toarray()
    if kind == "separated" and method.name != "independent":
        assert min(couplings[1, 0], couplings[1, 2]) > 0.2
    if kind == "duplicated" and method.name != "independent":
        assert couplings[0, 1] > 0.5
    if kind == "complementary" and method.name != "independent":
        assert couplings[0, 1] < -0.5
    if kind == "exclusive or" and method.name in {"auto", "elasso"}:
        assert found.n_edges == 0


@pytest.mark.parametrize(
    "method", [one for one in ALL if one.most_spins == np.inf], ids=lambda one: one.name
)
def test_five_rows_of_many_columns(method):
    """Nothing is found, or the sentence says that rows are too few; those that go through all
    columns one by one have 100 of them.
    """
    one_by_one = {"pseudolikelihood", "l1-pseudolikelihood", "probability-flow", "elasso"}
    found = fitted(method, independent(5, 100 if method.name in one_by_one else 1000))
    if isinstance(found, ex.IsingkitError):
        assert isinstance(found, ex.UnderdeterminedError)
    elif method.name == "auto":
        assert found.n_edges == 0


@pytest.mark.parametrize("method", QUICK, ids=lambda one: one.name)
def test_ten_million_rows_as_counts(method):
    """Of five columns, two of which are coupled: the coupling of the histogram, to the noise and
    what a formula leaves out (naive mean field and TAP, up to 0.02).
    """
    probabilities = np.exp(0.3 * PATTERNS[:, 0] * PATTERNS[:, 1])
    counts = np.random.default_rng(3).multinomial(10**7, probabilities / probabilities.sum())
    found = fitted(method, PATTERNS, 10**7, counts=counts)
    if method.name == "independent":
        return
    is_linear = method.name in {"linear", "ridge", "two-stage", "lasso"}
    expected = np.tanh(0.3) if is_linear else 0.3
    if method.name == "naive-mean-field":
        expected = np.tanh(0.3) / (1 - np.tanh(0.3) ** 2)  # its own formula for a pair
    assert found.couplings[0, 1] == pytest.approx(expected, abs=0.02)
    assert found.n_edges == 1


def test_ten_million_rows_as_they_come():
    """The same as their histogram, to the last bit."""
    rows = RNG.integers(0, 2, (10**7, 5), dtype=np.int8)
    agrees = RNG.random(10**7) < 0.02
    rows[agrees, 1] = rows[agrees, 0]
    places = rows @ (1 << np.arange(5, dtype=np.int8))
    counts = np.bincount(places, minlength=32)
    packed = ik.pack(ik.as_spins(rows))
    plain = ik.RidgeIsing().fit(packed).estimates_
    counted = ik.RidgeIsing().fit(PATTERNS, counts=counts).estimates_
    np.testing.assert_array_equal(plain, counted)
    found = ik.AutoIsing(rows="independent").fit(packed).model_
    assert found.edges()["coupling"] == pytest.approx([0.02], abs=0.002)


@pytest.mark.parametrize("method", QUICK, ids=lambda one: one.name)
def test_one_event_in_a_million(method):
    """Its column is no neighbour of any by what tests, and its field is that of one in a million
    where fields are those of the model; 20 percent more often would be 0.09 off.
    """
    counts = np.where(PATTERNS[:, 0] > 0, 0, 10**6 // 16)
    counts[1] = 1
    found = fitted(method, PATTERNS, 10**6, counts=counts)
    if method.name in {"independent", "auto", "elasso"}:
        assert found.n_edges == 0
        assert found.fields[0] == pytest.approx(np.log(1e-6) / 2, abs=0.01)


@pytest.mark.parametrize("method", QUICK, ids=lambda one: one.name)
def test_totals_beyond_what_floats_count(method):
    """Counts of up to 2^53 in all are exact; more are refused with the total. Weights have no such
    limit.
    """
    beyond = fitted(method, PATTERNS, 2**54, counts=np.full(32, 2**49))
    assert isinstance(beyond, ex.CountsError)
    assert "1.80144e+16" in str(beyond)
    below = fitted(method, PATTERNS, 2**52, counts=np.full(32, 2**47))
    assert below.n_edges == 0  # all patterns equally often
    weights = 2.0**60 * RNG.random(32)
    light = fitted(method, PATTERNS, 32, sample_weight=weights * 2.0**-60)
    heavy = fitted(method, PATTERNS, 32, sample_weight=weights)
    if not isinstance(light, ex.IsingkitError):
        np.testing.assert_allclose(heavy.couplings.toarray(), light.couplings.toarray(), atol=1e-6)


def test_a_hundred_thousand_columns_of_which_most_are_constant():
    """One percent change: edges are those of these columns alone; the warning is one of a few
    lines.
    """
    n_columns, n_changing = 100_000, 1000
    truth = ik.random_regular(n_spins=n_changing, degree=3, coupling=0.5, random_state=0)
    rows = np.asarray(ik.sample(truth, n_samples=150, random_state=1))
    places = np.sort(RNG.choice(n_columns, n_changing, replace=False))
    table = np.ones((150, n_columns), dtype=np.int8)
    table[:, places] = rows
    alone = ik.TwoStageIsing(ridge=np.inf, prune=0.3).fit(rows).model_.edges()
    with pytest.warns(ex.ConstantColumnWarning) as caught:
        found = ik.TwoStageIsing(ridge=np.inf, prune=0.3).fit(table).model_
    assert max(len(str(one.message)) for one in caught) < 500
    edges = found.edges()
    expected = {
        (f"x{places[int(e['source'][1:])]}", f"x{places[int(e['target'][1:])]}") for e in alone
    }
    assert {(e["source"], e["target"]) for e in edges} == expected
    assert len(expected) > 500
    assert np.isfinite(found.fields).all()


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.IsingkitWarning")
@pytest.mark.parametrize(
    ("table", "options"),
    [
        (np.array([[0, 1], [1, 0], [1, 1]]), []),
        (np.column_stack([PATTERNS, np.full(32, 2**49)]), ["--counts", "n"]),
        (np.column_stack([PATTERNS, np.full(32, 10**7 // 32)]), ["--counts", "n"]),
        (independent(5, 300), []),
        *((made(kind), []) for kind in ("separated", "duplicated", "exclusive or")),
    ],
)
@pytest.mark.parametrize("method", ["auto", "linear", "log-screening"])
def test_the_command_line_ends_well(tmp_path, capsys, table, options, method):
    names = [f"q{k}" for k in range(table.shape[1])]
    if options:
        names[-1] = "n"
    data = tmp_path / "d.csv"
    np.savetxt(data, table, fmt="%d", delimiter=",", header=",".join(names), comments="")
    arguments = ["fit", data, "--method", method, "--json", "-o", tmp_path / "fit", *options]
    with pytest.raises(SystemExit) as stopped:
        main([str(one) for one in arguments])
    said = capsys.readouterr()
    if stopped.value.code == 0:
        facts = json.loads(said.out)
        assert np.isfinite(facts["n_edges"])
        assert "NaN" not in said.out
    else:
        assert stopped.value.code == 2
        assert said.err.startswith("isingkit: ")
        assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "estimator",
    [
        ik.RidgeIsing(ridge=1e308),
        ik.TwoStageIsing(ridge=1e308),
        ik.ELassoIsing(gamma=1e308),
        ik.PseudolikelihoodIsing(l2=1e308),
        ik.MaximumLikelihoodIsing(l2=1e308),
    ],
)
def test_penalties_whose_products_are_infinite_are_refused(spins, estimator):
    """Seen to end in divisions by zero, or in edges from what is no number."""
    with pytest.raises(ex.SettingError, match=r"<= 1e\+100"):
        estimator.fit(spins)


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.IsingkitWarning")
@pytest.mark.parametrize("hidden", [5, 99, 10**20])
def test_more_hidden_causes_than_columns_that_vary_are_refused(hidden):
    """Seen to end in a traceback."""
    table = np.random.default_rng(0).integers(0, 2, (80, 5))
    table[:, 4] = 1
    with pytest.raises(ex.SettingError, match="from 0 to 4, as many columns vary"):
        ik.AutoIsing(hidden=hidden).fit(table)
