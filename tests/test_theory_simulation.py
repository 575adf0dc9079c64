"""The theory against Monte Carlo: planted worlds, sampled and fitted."""

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path
from scipy.sparse.linalg import splu
from scipy.stats import binom

import isingkit as ik
import reference
from isingkit import theory
from isingkit.theory.spectrum import effective_ridge

pytestmark = pytest.mark.statistics


def measured(model, estimates, spins, depths):
    """RSS, bias and Q by depth [eq:Q-def] of some spins, Q in the system without the spin."""
    truth = model.couplings.toarray()
    distance = shortest_path((truth != 0).astype(float), unweighted=True)
    rows = []
    for i in spins:
        rss = np.sum((truth[i] - estimates[i]) ** 2)
        near = truth[i] != 0
        bias = np.mean(estimates[i, near] / truth[i, near]) if near.any() else np.nan
        rest = np.arange(len(truth)) != i
        without = ik.IsingModel(model.couplings[rest][:, rest])
        cavity = splu(theory.bethe_matrix(without).tocsc())
        noise = [np.where(distance[i] > d, estimates[i], 0.0)[rest] for d in depths]
        rows.append([rss, bias, *(x @ cavity.solve(x) for x in noise)])
    return np.array(rows)


def within(name, found, expected, allowance):
    """Mean over worlds within three standard errors plus a relative allowance for finite size."""
    mean = found.mean()
    error = found.std(ddof=1) / np.sqrt(len(found))
    close = abs(mean - expected) < 3 * error + allowance * abs(expected)
    assert close, (name, mean, error, expected)


@pytest.mark.parametrize(("alpha", "ridge"), [(2.0, 0.0), (0.8, 0.1), (0.8, 1.0), (3.0, 10.0)])
@pytest.mark.parametrize("n_spins", [100, 200])
def test_random_regular_worlds_have_the_predicted_error(n_spins, alpha, ridge):
    """[eq:RSS-def-1] [eq:Q-def] [eq:bias-def]: 20 worlds, 40 centres each, 3 standard errors of a
    percent or less.

    The allowance for finite size shrinks like 1 / N: 1 / N, and for Q the fraction of spins
    within its depth. Seen to catch a ridge of 0.105 for 0.100.
    """
    worlds = []
    for seed in range(20):
        model = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=seed)
        samples = ik.sample(model, int(alpha * n_spins), random_state=100 + seed)
        fit = (
            ik.LinearIsing(fit_fields=False)
            if ridge == 0
            else ik.RidgeIsing(ridge=ridge, fit_fields=False)
        )
        spins = np.random.default_rng(seed).choice(n_spins, 40, replace=False)
        worlds.append(measured(model, fit.fit(samples).estimates_, spins, (1, 2)).mean(axis=0))
    worlds = np.array(worlds)
    finite = n_spins / (n_spins - 1)  # a spin has N - 1 regressors
    p = [
        theory.random_regular(3, 0.4, alpha * finite, ridge * finite, depth)
        for depth in (None, 1, 2)
    ]
    for column, (name, expected) in enumerate(
        (("rss", p[0].rss), ("bias", p[0].bias), ("Q1", p[1].Q), ("Q2", p[2].Q))
    ):
        # the ansatz neglects at depth d what later generations contribute to Q: their means
        later = (
            0.0
            if column < 2
            else float(np.sum((p[0].means ** 2 * 3 * 2.0 ** np.arange(8))[column - 1 :])) / expected
        )
        within(name, worlds[:, column], expected, (1 + (0, 0, 4, 10)[column]) / n_spins + 3 * later)


@pytest.mark.parametrize(("alpha", "ridge"), [(2.0, 0.0), (0.9, 0.1), (0.9, 1.0)])
def test_erdos_renyi_worlds_have_the_predicted_error(alpha, ridge):
    """[eq:RSS-def-1] 400 spins of mean degree 4, each world against its own Bethe matrix: 3
    standard errors plus 2 percent.
    """
    found = []
    expected = []
    for seed in range(12):
        model = ik.erdos_renyi(n_spins=400, mean_degree=4, coupling=0.4, random_state=seed)
        samples = ik.sample(model, int(alpha * 400), random_state=100 + seed)
        fit = (
            ik.LinearIsing(fit_fields=False)
            if ridge == 0
            else ik.RidgeIsing(ridge=ridge, fit_fields=False)
        )
        estimates = fit.fit(samples).estimates_
        spectrum = theory.ModelSpectrum.of(model)
        spins = np.random.default_rng(seed).choice(400, 40, replace=False)
        p = [
            [theory.of_model(model, int(i), alpha, ridge, d, spectrum) for d in (None, 1, 2)]
            for i in spins
        ]
        found.append(np.nanmean(measured(model, estimates, spins, (1, 2)), axis=0))
        expected.append(np.nanmean([[a.rss, a.bias, b.Q, c.Q] for a, b, c in p], axis=0))
    found = np.array(found)
    expected = np.array(expected)
    # means of generation 2 and on, of which Q at depth 1 knows nothing
    later = (0.0, 0.0, 0.15 if ridge == 1 else 0.02, 0.02)
    for column, name in enumerate(("rss", "bias", "Q1", "Q2")):
        within(name, found[:, column] / expected[:, column], 1.0, 0.02 + later[column])


def directed_curves(estimates, truths, thresholds):
    """Precision and recall of all directed estimates of several worlds."""
    edges = np.sort(np.concatenate([np.abs(e[t]) for e, t in zip(estimates, truths, strict=True)]))
    others = np.sort(
        np.concatenate(
            [
                np.abs(e[~t & ~np.eye(len(t), dtype=bool)])
                for e, t in zip(estimates, truths, strict=True)
            ]
        )
    )
    found = len(edges) - np.searchsorted(edges, thresholds, side="right")
    false = len(others) - np.searchsorted(others, thresholds, side="right")
    return found / np.maximum(found + false, 1), found / len(edges)


SETTINGS = {
    "regular, both stages": (0.1, 0.1, 640),
    "regular, couplings lost in stage one": (1.45, 0.1, 640),
    "regular, least squares": (0.0, None, 1600),
    "Erdos-Renyi, both stages": (0.1, 0.05, 720),
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_predicted_precision_and_recall_are_the_measured_ones(kind):
    """800 spins, 24 regular graphs or 7 samplings of each of 3 others: both within 0.01, where a
    twentieth of the edges is found.

    Seen to catch stage two without its correlation with stage one (off by 0.14), noise 5 percent
    off (0.11), and stage two without the neighbours that stage one loses (0.05). Standard errors
    are 0.002.
    """
    thresholds = np.linspace(0.01, 0.33, 33)
    ridge, prune, n_samples = SETTINGS[kind]
    regular = kind.startswith("regular")
    first = []
    second = []
    truths = []
    models = []
    for seed in range(24 if regular else 3):
        if regular:
            model = ik.random_regular(n_spins=800, degree=3, coupling=0.4, random_state=seed)
        else:
            model = ik.erdos_renyi(n_spins=800, mean_degree=4, coupling=0.4, random_state=seed)
        models.append(model)
        for sampling in range(1 if regular else 7):
            samples = ik.sample(model, n_samples, random_state=100 + 1000 * sampling + seed)
            if prune is None:
                first.append(ik.LinearIsing(fit_fields=False).fit(samples).estimates_)
            else:
                fit = ik.TwoStageIsing(ridge=ridge, prune=prune, fit_fields=False).fit(samples)
                first.append(fit.stage_one_estimates_)
                second.append(fit.estimates_)
            truths.append(model.couplings.toarray() != 0)
    for estimates, level in ((first, None), (second, prune)):
        if not estimates:
            continue
        precision, recall = directed_curves(estimates, truths, thresholds)
        if regular:
            predicted = [
                theory.recovery(800, 3, 0.4, n_samples, ridge=ridge, prune=level, rule="directed")
            ]
        else:
            predicted = [
                theory.recovery_of_model(model, n_samples, ridge=ridge, prune=level)
                for model in models
            ]
        seen = recall > 0.05
        off = np.abs(precision - np.mean([p.precision(thresholds) for p in predicted], axis=0))[
            seen
        ]
        assert off.max() < 0.01, (kind, level, off.max())
        off = np.abs(recall - np.mean([p.recall(thresholds) for p in predicted], axis=0))
        assert off.max() < 0.01, (kind, level, off.max())


@pytest.mark.parametrize(("n_spins", "coupling"), [(200, 0.4), (400, 0.3), (800, 0.4)])
@pytest.mark.parametrize("probability", [0.8, 0.99])
def test_samples_needed_are_the_samples_needed(n_spins, coupling, probability):
    """At its answer, exact recoveries of 50 worlds are within the binomial 95 percent band of what
    was asked for.

    A quarter of the samples fewer is seen to fall out of the band of 0.8 (checked below for the
    smallest network).
    """

    def exact(n_samples):
        best = theory.best_two_stage(n_spins, 3, coupling, n_samples)
        knobs = {"ridge": best.ridge, "prune": best.prune, "threshold": best.best_threshold()}
        count = 0
        for seed in range(50):
            model = ik.random_regular(
                n_spins=n_spins, degree=3, coupling=coupling, random_state=seed
            )
            fit = ik.TwoStageIsing(**knobs).fit(
                ik.sample(model, n_samples, random_state=1000 + seed)
            )
            count += ik.score(fit.model_, model).exact
        return count

    needed = theory.samples_needed(n_spins, 3, coupling, probability)
    low, high = binom.interval(0.95, 50, probability)
    assert low <= exact(needed) <= high
    if n_spins == 200 and probability == 0.8:
        assert exact(3 * needed // 4) < low


@pytest.mark.parametrize(("alpha", "ridge"), [(6.0, 0.0), (0.8, 0.1), (2.0, 1.0)])
@pytest.mark.parametrize("loss", ["pseudolikelihood", "screening"])
def test_local_losses_have_the_predicted_error(loss, alpha, ridge):
    """10 worlds of 100 spins of degree 3: errors and bias within 3 standard errors (some percent)
    plus 2 / N. Tables of more points: benchmarks/protocols/theory_against_simulation.py.
    """
    n_spins = 100
    estimators = {
        "pseudolikelihood": ik.PseudolikelihoodIsing,
        "screening": ik.InteractionScreeningIsing,
    }
    predict = {
        "pseudolikelihood": theory.pseudolikelihood,
        "screening": theory.interaction_screening,
    }
    rows = []
    for seed in range(10):
        model = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=seed)
        samples = ik.sample(model, int(alpha * n_spins), random_state=100 + seed)
        estimator = estimators[loss](l2=ridge / alpha, fit_fields=False)
        estimates = estimator.fit(samples).estimates_
        truth = model.couplings.toarray()
        near = truth != 0
        rss = np.mean(np.sum((estimates - truth) ** 2, axis=1))
        rows.append([rss, np.mean(estimates[near] / truth[near])])
    worlds = np.array(rows)
    finite = n_spins / (n_spins - 1)
    expected = predict[loss](3, 0.4, alpha * finite, ridge * finite)
    within("rss", worlds[:, 0], expected.rss, 2 / n_spins)
    within("bias", worlds[:, 1], expected.bias, 2 / n_spins)


def test_pseudolikelihood_loses_its_maximum_where_the_limit_says():
    """A linear program decides whether some combination of the others predicts a spin: of 40 spins
    of two worlds of 80, the share without a maximum is above 3/4 at 0.85 of the limit and below
    1/4 at 1.15. A limit off by 15 percent would be seen.
    """
    limit = theory.separation_limit(3, 0.4)
    n_spins = 80
    shares = []
    for more in (0.85, 1.15):
        separated = []
        for seed in range(2):
            model = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=seed)
            n_samples = int(more * limit * (n_spins - 1))
            spins = np.asarray(ik.sample(model, n_samples, random_state=seed)).astype(float)
            separated += [reference.is_separable(spins, spin) for spin in range(20)]
        shares.append(np.mean(separated))
    assert shares[0] > 0.75, shares
    assert shares[1] < 0.25, shares


@pytest.mark.parametrize("rule", ["average", "and"])
@pytest.mark.parametrize("loss", ["squares", "pseudolikelihood", "screening"])
def test_penalised_estimates_find_what_was_predicted(loss, rule):
    """8 worlds of 200 spins of degree 3 from 200 samples, half of the edges claimed being false:
    precision and recall within 0.02, some 2 standard errors of precision.
    """
    estimators = {
        "squares": ik.LassoIsing,
        "pseudolikelihood": ik.PseudolikelihoodIsing,
        "screening": ik.InteractionScreeningIsing,
    }
    n_spins = 200
    counts = np.zeros(3)
    for seed in range(8):
        model = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=seed)
        samples = ik.sample(model, 200, random_state=100 + seed)
        fit = estimators[loss](l1=0.16, rule=rule).fit(samples)
        found = fit.model_.couplings.toarray() != 0
        truth = model.couplings.toarray() != 0
        counts += np.sum(found & truth), np.sum(found & ~truth), np.sum(truth)
    expected = theory.sparse_recovery(n_spins, 3, 0.4, 200, 0.16, loss=loss, rule=rule)
    assert counts[0] / (counts[0] + counts[1]) == pytest.approx(expected.precision, abs=0.02)
    assert counts[0] / counts[2] == pytest.approx(expected.recall, abs=0.02)


def test_predictions_on_lattices_allow_for_their_loops():
    """10 x 10 spins, one sign: the bias within 0.012, where the tree's formula is off by 0.025.

    Of 12 samplings; the standard error is 0.003.
    """
    model = ik.square_lattice(side=10, coupling=0.3, signs="fixed", random_state=0)
    couplings = model.couplings.toarray()
    near = couplings != 0
    biases = []
    for seed in range(12):
        samples = ik.sample(model, n_samples=400, random_state=seed)
        estimates = ik.RidgeIsing(ridge=0.3, fit_fields=False).fit(samples).estimates_
        biases.append(np.mean(estimates[near] / couplings[near]))
    predicted = theory.of_model(model, 0, 400 / 99, 0.3 * 100 / 99)
    assert abs(np.mean(biases) - predicted.bias) < 0.012
    on_tree = theory.ModelSpectrum.of(model)
    k = float(effective_ridge(on_tree, 400 / 99, 0.3 * 100 / 99))
    matrix = theory.bethe_matrix(model).toarray()
    kept = matrix @ np.linalg.inv(np.eye(100) + k * matrix)
    by_tree = -(kept / np.diag(kept)[:, None])[near] / couplings[near]
    assert abs(np.mean(biases) - np.mean(by_tree)) > 0.015


def test_two_stages_of_models_are_right_where_stage_one_is_correlations():
    """8 worlds of 400 spins: recall within 0.03, which the closed formulas of `recovery` miss.

    These are off by 0.036 and 0.057 at the last two thresholds; the standard error is 0.003.
    """
    thresholds = [0.1, 0.2, 0.3]
    knobs = {"ridge": np.inf, "prune": 0.15}
    recalls = []
    for seed in range(8):
        model = ik.random_regular(n_spins=400, degree=3, coupling=0.4, random_state=seed)
        samples = ik.sample(model, n_samples=320, random_state=50 + seed)
        fit = ik.TwoStageIsing(**knobs, threshold=0.01, fit_fields=False).fit(samples)
        edges = np.abs(fit.estimates_[model.couplings.toarray() != 0])
        recalls.append([np.mean(edges > level) for level in thresholds])
    predicted = theory.recovery_of_model(model, 320, **knobs).recall(thresholds)
    np.testing.assert_allclose(np.mean(recalls, axis=0), predicted, atol=0.03)


def test_edges_on_no_short_loop_scatter_by_loops_beside_them():
    """20 graphs, some 6000 edges: their standard deviation to 3 percent, 2.5 standard errors; by
    noise alone it would be 6 percent smaller.
    """
    found = []
    for seed in range(20):
        truth = ik.random_regular(n_spins=200, degree=6, coupling=0.35, random_state=seed)
        samples = ik.sample(truth, n_samples=876, random_state=seed + 100, n_jobs=1)
        estimates = ik.RidgeIsing(ridge=10.0, threshold=0.0).fit(samples).estimates_
        both = (estimates + estimates.T) / 2 * np.sign(truth.couplings.toarray())
        edges = (truth.couplings.toarray() != 0).astype(float)
        in_loops = edges @ edges + (edges @ edges @ edges - 11)  # triangles, and squares
        found.append(np.triu(both, 1)[(np.triu(edges, 1) > 0) & (in_loops == 0)])
    predicted = theory.recovery(200, 6, 0.35, 876, ridge=10.0, prune=0.0268).pairs
    values = np.concatenate(found)
    assert len(values) > 5000
    assert values.std() == pytest.approx(predicted.std[0], rel=0.03)
