"""What must hold of any table: tables, orders, codings, weights and parts drawn by hypothesis.

Examples are derived from the tests themselves, so that every run tries the same ones.
"""

import csv
import json
import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sklearn.base import clone

import isingkit as ik
import reference
from isingkit import exceptions as ex
from isingkit.estimators import sizes
from isingkit.estimators.executor import use_executor
from isingkit.methods import METHODS, suggested_settings

QUICK = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}
# every method that is not another package's, or random
NAMES = [one.name for one in METHODS if one.requires is None and one.name != "boltzmann"]
L1 = ("elasso", "l1-pseudolikelihood", "screening", "log-screening")
SAME = 2e-6  # what iterations leave open, of couplings


def built(name, n_spins, n_samples):
    method = next(one for one in METHODS if one.name == name)
    return method.build(suggested_settings(n_spins, n_samples))


@st.composite
def tables(draw, least_rows=12, most_rows=90, odd=True, alike=True):
    """Rows of 3 to 7 columns that follow each other, as -1 and +1; with odd columns now and then:
    constant, nearly constant, the product of two others, or, where `alike`, the same or the
    opposite of another.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = draw(st.integers(least_rows, most_rows))
    n_columns = draw(st.integers(3, 7))
    table = rng.choice([-1, 1], (n_rows, n_columns))
    for j in range(1, n_columns):
        is_copied = rng.random(n_rows) < 0.4
        table[is_copied, j] = table[is_copied, rng.integers(j)]
    kinds = ["plain"] * 3 + ["constant", "rare", "product"] * odd + ["same", "opposite"] * alike
    match draw(st.sampled_from(kinds)):
        case "constant":
            table[:, 0] = 1
        case "rare":
            table[:, 0] = -1
            table[rng.integers(n_rows), 0] = 1
        case "same":
            table[:, 1] = table[:, 0]
        case "opposite":
            table[:, 1] = -table[:, 0]
        case "product":
            table[:, 2] = table[:, 0] * table[:, 1]
    return table


def learnt(estimator, table, **given):
    """The model, or the kind of error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.IsingkitWarning)
        try:
            return clone(estimator).fit(ik.as_spins(table, mapping=codes(table)), **given).model_
        except ex.IsingkitError as error:
            return type(error)


def codes(table):
    return [(-1, 1)] * table.shape[1]


def require_same(found, expected, atol=SAME):
    if isinstance(expected, type) or isinstance(found, type):
        assert found is expected
        return
    left, right = found.couplings.toarray(), expected.couplings.toarray()
    np.testing.assert_allclose(left, right, atol=atol)
    np.testing.assert_allclose(found.fields, expected.fields, atol=10 * atol)
    assert np.isfinite(left).all()


def reordered(model, order):
    """The same model with columns in another order."""
    if isinstance(model, type):
        return model
    couplings = model.couplings.toarray()[np.ix_(order, order)]
    return ik.IsingModel(couplings, model.fields[order])


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, **QUICK)
@given(data=st.data())
def test_columns_in_another_order_are_the_result_in_another_order(name, data):
    """But for columns that are the same, one of which an l1 penalty, or an elimination, takes."""
    table = data.draw(tables(alike=name not in {"auto", "lasso", *L1}))
    order = np.array(data.draw(st.permutations(range(table.shape[1]))))
    estimator = built(name, *table.shape[::-1])
    found = learnt(estimator, table[:, order])
    require_same(found, reordered(learnt(estimator, table), order))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, **QUICK)
@given(data=st.data())
def test_the_other_coding_of_a_column_is_the_other_sign(name, data):
    """`AutoIsing` asks more of an edge whose sign is rare among others, so that there all columns
    change their coding at once.
    """
    table = data.draw(tables())
    signs = np.array(data.draw(st.lists(st.sampled_from([-1, 1]), min_size=7, max_size=7)))
    signs = -np.ones(table.shape[1], int) if name == "auto" else signs[: table.shape[1]]
    estimator = built(name, *table.shape[::-1])
    expected = learnt(estimator, table)
    if not isinstance(expected, type):
        couplings = expected.couplings.toarray() * np.outer(signs, signs)
        expected = ik.IsingModel(couplings, expected.fields * signs)
    require_same(learnt(estimator, table * signs), expected)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10, **QUICK)
@given(data=st.data())
def test_counts_of_one_are_none_and_a_factor_of_weights_is_nothing(name, data):
    table = data.draw(tables(least_rows=20))
    estimator = built(name, *table.shape[::-1])
    plain = learnt(estimator, table)
    require_same(learnt(estimator, table, counts=np.ones(len(table), int)), plain, atol=0)
    require_same(learnt(estimator, table, sample_weight=np.full(len(table), 7)), plain, atol=0)
    seed = data.draw(st.integers(0, 2**32 - 1))
    weights = np.random.default_rng(seed).integers(1, 5, len(table))
    factor = data.draw(st.sampled_from([2, 1000, 1 / 3, 1e-6, 1e6]))
    weighted = learnt(estimator, table, sample_weight=weights)
    require_same(learnt(estimator, table, sample_weight=factor * weights), weighted)


@settings(max_examples=6, **QUICK)
@given(seed=st.integers(0, 2**32 - 1), control=st.sampled_from(["fdr", "fwer"]))
def test_an_independent_column_changes_no_verdict_beyond_its_share_of_the_level(seed, control):
    """Of a chain of eight, 2000 rows: what was an edge at a twentieth of the level stays one, and
    nothing becomes one that was not so at three times the level. A column that is no independent
    one, the product of two, does not pass this.
    """
    rng = np.random.default_rng(seed)
    couplings = np.diag(rng.choice([-1, 1], 7) * rng.uniform(0.2, 0.5, 7), 1)
    table = np.asarray(ik.sample(ik.IsingModel(couplings + couplings.T), 2000, random_state=rng))
    estimator = ik.AutoIsing(control=control, hidden=0, rows="independent")
    before = clone(estimator).fit(table)
    after = clone(estimator).fit(np.column_stack([table, rng.choice([-1, 1], 2000)]))
    was = {(e["source"], e["target"]): e["q_value"] for e in before.edges_}
    rejected = {(e["source"], e["target"]): e["q_value"] for e in before.rejected_}
    now = {(e["source"], e["target"]) for e in after.edges_ if "x8" not in (e[0], e[1])}
    assert {pair for pair, q in was.items() if q < 0.05 / 20} <= now
    assert not {pair for pair, q in rejected.items() if q > 0.15} & now
    assert now <= {*was, *rejected} or control == "fdr"


KINDS = ["plain", "counts", "weights"]  # of what rows count for


class PartsOfATable(RuleBasedStateMachine):
    """Rows come in parts, with or without weights, and parts are merged in any order."""

    parts = Bundle("parts")

    @initialize(
        seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["plain", "counts", "weights"])
    )
    def start(self, seed, kind):
        self.rng = np.random.default_rng(seed)
        self.kind = kind
        self.rows = []
        self.fit = ik.RidgeIsing()

    def drawn(self):
        table = self.rng.choice([-1, 1], (int(self.rng.integers(2, 150)), 4))
        given = {}
        if self.kind == "counts":
            given = {"counts": self.rng.integers(1, 4, len(table))}
        if self.kind == "weights":
            given = {"sample_weight": self.rng.integers(1, 4, len(table)) / 4}  # no rounding
        return table, given

    @rule(target=parts)
    def another(self):
        table, given = self.drawn()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ex.ConstantColumnWarning)
            self.fit.partial_fit(ik.as_spins(table, mapping=codes(table)), **given)
        self.rows.append((table, given))
        stat = ik.gram(ik.as_spins(table, mapping=codes(table)), **given)
        return stat, frozenset([len(self.rows) - 1])

    @rule(target=parts, left=consumes(parts), right=consumes(parts))
    def merge(self, left, right):
        merged = left[0] + right[0], left[1] | right[1]
        assume(not left[1] & right[1])
        self.require_sums(*merged)
        return merged

    def require_sums(self, stat, which):
        table = np.concatenate([self.rows[k][0] for k in sorted(which)])
        names = ("counts", "sample_weight")
        totals = np.ones(len(table))
        for name in names:
            if name in self.rows[0][1]:
                totals = np.concatenate([self.rows[k][1][name] for k in sorted(which)])
        np.testing.assert_array_equal(stat.sums, (table * totals[:, None]).T @ table)
        np.testing.assert_array_equal(stat.spin_sums, totals @ table)
        assert stat.n_samples == totals.sum()

    @invariant()
    def what_was_learnt_in_parts_is_what_the_whole_says(self):
        if not getattr(self, "rows", None):
            return
        table = np.concatenate([rows for rows, _ in self.rows])
        given = {name: np.concatenate([g[name] for _, g in self.rows]) for name in self.rows[0][1]}
        whole = ik.RidgeIsing().fit(ik.as_spins(table, mapping=codes(table)), **given)
        np.testing.assert_allclose(self.fit.estimates_, whole.estimates_, atol=1e-11)


@pytest.mark.filterwarnings("ignore::isingkit.exceptions.ConstantColumnWarning")
def test_parts_merged_in_any_order_are_the_whole():
    how = settings(max_examples=15, stateful_step_count=8, **QUICK)
    run_state_machine_as_test(PartsOfATable, settings=how)


@st.composite
def models(draw):
    """Of 2 to 6 columns with any names, any finite couplings, and fields."""
    n_spins = draw(st.integers(2, 6))
    letters = st.characters(blacklist_categories=("Cs", "Cc", "Cn"))
    text = st.text(letters, min_size=1, max_size=8).filter(lambda name: name.strip() == name)
    names = draw(st.lists(text, min_size=n_spins, max_size=n_spins, unique=True))
    number = st.floats(-50, 50, allow_subnormal=False)
    couplings = np.zeros((n_spins, n_spins))
    for i in range(n_spins):
        for j in range(i):
            couplings[i, j] = couplings[j, i] = draw(st.one_of(st.just(0.0), number))
    fields = [draw(number) for _ in range(n_spins)]
    return ik.IsingModel(couplings, fields, names)


@settings(max_examples=25, **QUICK)
@given(model=models())
def test_models_are_read_back_as_they_were_written(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    model.save(folder / "model.npz")
    require_same_model(ik.IsingModel.load(folder / "model.npz"), model)
    model.to_adjacency(folder / "adjacency.csv")
    with (folder / "adjacency.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0][1:]) == model.names
    values = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    np.testing.assert_array_equal(values, model.couplings.toarray())
    model.to_csv(folder / "edges.csv")
    with (folder / "edges.csv").open(encoding="utf-8", newline="") as file:
        listed = {
            (row["source"], row["target"]): float(row["coupling"]) for row in csv.DictReader(file)
        }
    assert listed == {(e["source"], e["target"]): e["coupling"] for e in model.edges()}
    for kind, read in (("graphml", nx.read_graphml), ("gexf", nx.read_gexf)):
        getattr(model, f"to_{kind}")(folder / f"model.{kind}")
        graph = read(folder / f"model.{kind}")
        assert (graph.number_of_nodes(), graph.number_of_edges()) == (model.n_spins, model.n_edges)
    model.to_json(folder / "model.json")
    json.loads((folder / "model.json").read_text(encoding="utf-8"))


def require_same_model(found, expected):
    np.testing.assert_array_equal(found.couplings.toarray(), expected.couplings.toarray())
    np.testing.assert_array_equal(found.fields, expected.fields)
    assert found.names == expected.names


@settings(max_examples=4, **QUICK)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_a_model_gives_leads_back_to_it(seed):
    """Of trees of six, 60,000 rows: every coupling within six of its standard errors, 1 / sqrt(M),
    divided by what is left of a spin's variance; a tenth off would be ten of them.
    """
    rng = np.random.default_rng(seed)
    tree = ik.random_tree(n_spins=6, coupling=0.4, random_state=rng)
    truth = ik.IsingModel(tree.couplings, fields=rng.uniform(-0.3, 0.3, 6))
    rows = ik.sample(truth, 60_000, random_state=rng)
    expected = truth.couplings.toarray()
    for estimator in (
        ik.AutoIsing(),
        ik.PseudolikelihoodIsing(),
        ik.MaximumLikelihoodIsing(),
        ik.MeanFieldIsing(method="bethe"),
    ):
        found = learnt(estimator, np.asarray(rows)).couplings.toarray()
        np.testing.assert_allclose(found, expected, atol=6 / np.sqrt(60_000) * 1.6)


@settings(max_examples=4, **QUICK)
@given(seed=st.integers(0, 2**32 - 1), rows=st.sampled_from([40, 90]))
def test_tiles_and_other_workers_give_what_one_machine_gives_at_once(seed, rows):
    """150 columns, as if they were too many for all pairs, by whoever does bands of them, last band
    first.
    """
    truth = ik.random_regular(n_spins=150, degree=3, coupling=0.6, random_state=seed)
    samples = ik.sample(truth, rows, random_state=seed)
    estimators = (ik.TwoStageIsing(prune=0.1), ik.AutoIsing(hidden=0, rows="independent"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.IsingkitWarning)
        for estimator in estimators:
            dense = clone(estimator).fit(samples)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sizes, "MOST_DENSE", 10)
                patch.setattr(sizes, "BAND", 64)
                patch.setattr(sizes, "WIDE", 128)
                tiled = clone(estimator).fit(samples)
                with use_executor(backwards):
                    spread = clone(estimator).fit(samples)
            assert scipy.sparse.issparse(tiled.estimates_)
            require_same(tiled.model_, dense.model_, atol=1e-9)
            require_same(spread.model_, tiled.model_, atol=0)


def backwards(work, shared, items):
    """As a cluster runs work: in any order."""
    for place in reversed(range(len(items))):
        yield place, work(shared, items[place])


@settings(max_examples=20, **QUICK)
@given(table=tables(odd=False, alike=False), data=st.data())
def test_ridge_of_any_table_is_that_of_plain_regressions(table, data):
    ridge = data.draw(st.sampled_from([1e-3, 0.1, 1.0, 30.0]))
    found = ik.RidgeIsing(ridge=ridge).fit(ik.as_spins(table, mapping=codes(table)))
    assume(all(len(set(column)) == 2 for column in table.T))
    rows, _ = reference.regressions(table.astype(float), ridge * table.shape[1], True)
    np.testing.assert_allclose(found.estimates_, rows, atol=1e-9)
