"""The theory against itself by other routes: quadrature, trees, enumeration, gradients."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom

import isingkit as ik
import reference
from isingkit import exceptions as ex
from isingkit import theory
from isingkit.theory import losses
from isingkit.theory.local_loss import local_loss
from isingkit.theory.loops import cluster_estimates
from isingkit.theory.regions import inverse_correlations
from isingkit.theory.scatter import edge_scatter, neighbour_scatter
from isingkit.theory.spectrum import effective_ridge


# Numbers of an independent program.
@pytest.mark.parametrize(
    ("point", "expected"),
    [
        (
            (3, 0.4, 10, 10, 1),
            {"kappa": 19.132136, "Q": 0.015783, "rss": 0.184731, "bias": 0.406957},
        ),
        ((3, 0.4, 10, 10, 2), {"Q": 0.015667, "R": 0.015798, "rss": 0.209670, "bias": 0.374158}),
        ((3, 0.4, 10, 10, 4), {"rss": 0.210791}),
        (
            (3, 0.4, 0.8, 0.1, 4),
            {"kappa": 0.399711, "Q": 0.623151, "R": 0.724649, "rss": 0.852772, "bias": 0.491751},
        ),
        ((3, 0.4, 2, 0, None), {"Q": 0.663943, "R": 1.0, "rss": 1.033185, "bias": 0.737065}),
    ],
)
def test_predictions_match_another_programs_numbers(point, expected):
    """[eq:EOS-sparse] [eq:RSS-def-2] [eq:bias-def] [eq:R-def-resuls] to the six decimals that were
    given.
    """
    prediction = theory.random_regular(*point)
    assert isinstance(prediction, theory.Prediction)
    for name, value in expected.items():
        assert getattr(prediction, name) == pytest.approx(value, abs=6e-7), name
    if point[-1] == 2:
        np.testing.assert_allclose(prediction.means, [0.149663, 0.031270], atol=6e-7)


def integral(spectrum, function):
    """Over the density by adaptive quadrature, with a substitution that tames the square roots at
    both ends.
    """
    low, high = spectrum.support
    middle, half = (low + high) / 2, (high - low) / 2

    def smooth(angle):
        eta = middle + half * np.sin(angle)
        return float(spectrum.density(eta)) * half * np.cos(angle) * function(eta)

    return quad(smooth, -np.pi / 2, np.pi / 2, epsabs=0, epsrel=1e-12, limit=500)[0]


@pytest.mark.parametrize(
    ("degree", "coupling"), [(3, 0.4), (4, 0.1), (2, 0.8), (10, -0.2), (3, 0.85)]
)
@pytest.mark.parametrize(("x", "ridge"), [(2.0, 0.3), (0.01, 5.0), (40.0, 0.001)])
def test_g_functions_are_integrals_over_the_density(degree, coupling, x, ridge):
    """[eq:G1-x-def-1] [eq:G3-x] [eq:EVD-nita-results] to ten digits; the inverse undoes G1."""
    spectrum = theory.RegularSpectrum(degree, coupling)
    for found, function in (
        (1.0, lambda eta: 1.0),
        (spectrum.g1(x, ridge), lambda eta: 1 / (x + 2 * ridge * eta)),
        (spectrum.g2(x, ridge), lambda eta: np.log(x + 2 * ridge * eta)),
        (spectrum.g3(x, ridge), lambda eta: eta / (x + 2 * ridge * eta)),
        (spectrum.g1_slope(x, ridge), lambda eta: -1 / (x + 2 * ridge * eta) ** 2),
        (spectrum.g3_slope(x, ridge), lambda eta: -eta / (x + 2 * ridge * eta) ** 2),
    ):
        assert found == pytest.approx(integral(spectrum, function), rel=1e-10)
    assert spectrum.inverse_g1(spectrum.g1(x, ridge), ridge) == pytest.approx(x, rel=1e-12)


def test_moments_of_the_spectrum_are_those_of_the_bethe_matrix():
    """[eq:ivnerse-correlation-mat-result] E eta = h, E eta^2 = h^2 + c w^2, E 1/eta = 1, and the
    exact edges.
    """
    for degree, coupling in ((1, 0.7), (2, 0.3), (3, 0.4), (7, 0.25)):
        spectrum = theory.RegularSpectrum(degree, coupling)
        h, w = 1 + degree * np.sinh(coupling) ** 2, np.sinh(2 * coupling) / 2
        assert spectrum.moment(1) == pytest.approx(h, rel=1e-13)
        assert spectrum.moment(2) == pytest.approx(h**2 + degree * w**2, rel=1e-13)
        assert spectrum.moment(-1) == pytest.approx(1, rel=1e-12)
        assert spectrum.support == pytest.approx(
            (h - 2 * w * np.sqrt(degree - 1), h + 2 * w * np.sqrt(degree - 1)), abs=1e-14
        )
    assert theory.RegularSpectrum(3, 0.4).density([0.0, 5.0]).tolist() == [0.0, 0.0]


def test_equations_of_state_hold_everywhere():
    """[eq:q and a equation] [eq:EOS-sparse]: kappa and Q as the paper's appendix
    prints them, alpha from 1e-3 to 1e4, ridge from 1e-6 to 1e6, from weak coupling to the edge of
    the phase, one neighbour or fifty."""
    ridges = np.geomspace(1e-6, 1e6, 25)
    for alpha in [*np.geomspace(1e-3, 1e4, 15), 1.0, 1 - 1e-12, 1 + 1e-12]:
        for degree, coupling in (
            (1, 0.5),
            (2, 2.0),
            (3, 1e-3),
            (3, 0.4),
            (3, np.arctanh(0.999999 / np.sqrt(2))),
            (50, 0.1),
        ):
            for depth in (None, 1, 2, 50):
                p = theory.random_regular(degree, coupling, alpha, ridges, depth)
                spectrum = theory.RegularSpectrum(degree, coupling)
                g1 = np.array(
                    [
                        spectrum.g1(kappa, ridge)
                        for kappa, ridge in zip(p.kappa, ridges, strict=True)
                    ]
                )
                slope = np.array(
                    [
                        spectrum.g1_slope(kappa, ridge)
                        for kappa, ridge in zip(p.kappa, ridges, strict=True)
                    ]
                )
                np.testing.assert_allclose(
                    p.kappa, 2 * alpha / (1 + 2 * g1), rtol=1e-12, atol=1e-12 * alpha
                )
                np.testing.assert_allclose(p.chi, g1, rtol=1e-9)
                # (2 b J - J C J - 1) is minus what is unexplained
                printed = (
                    -4 * alpha * slope * p.unexplained / ((1 + 2 * g1) ** 2 + 4 * alpha * slope)
                )
                # the printed difference cancels at small ridge
                np.testing.assert_allclose(p.Q, printed, rtol=2e-6)
                assert np.all(
                    (p.Q > 0) & (p.R > 0) & np.isfinite(p.rss) & (p.test_error >= p.unexplained)
                )


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize(("degree", "ridge"), [(3, 0.1), (4, 3.0), (2, 1.0)])
def test_generations_solve_the_explicit_tree(degree, ridge, depth, rng):
    """[eq:J-mean-linear-equation] [eq:Linear-equation-regularize] on trees of up to 485 spins with
    random signs, to 1e-11.
    """
    couplings, generations = reference.cayley_tree(degree, depth, 0.4, rng)
    parents = [-1] + [int(np.flatnonzero(couplings[i, :i])[0]) for i in range(1, len(couplings))]
    strengths = [0.0] + [couplings[i, parents[i]] for i in range(1, len(couplings))]
    p = theory.random_regular(degree, 0.4, 1.5, ridge, depth)
    means, unexplained = reference.mean_estimates(
        reference.tree_correlations(parents, strengths), p.effective_ridge
    )
    for generation in range(1, depth + 1):
        np.testing.assert_allclose(
            np.abs(means[generations[1:] == generation]), p.means[generation - 1], rtol=1e-11
        )
    assert p.unexplained == pytest.approx(unexplained, rel=1e-11)
    assert p.rss - p.R == pytest.approx(np.sum((couplings[0, 1:] - means) ** 2), rel=1e-11)
    # the ball's linear system, the graph's own spectrum
    spectrum = theory.RegularSpectrum(degree, 0.4)
    of_model = theory.of_model(ik.IsingModel(couplings), 0, 1.5, ridge, depth, spectrum=spectrum)
    for name in ("kappa", "Q", "R", "rss", "bias", "unexplained", "free_energy"):
        assert getattr(of_model, name) == pytest.approx(getattr(p, name), rel=1e-11), name
    np.testing.assert_allclose(of_model.means, p.means, rtol=1e-11)


def test_infinite_depth_is_the_limit_of_depth():
    for degree, coupling, alpha, ridge in (
        (3, 0.4, 0.8, 0.1),
        (3, 0.4, 10, 10),
        (2, 1.0, 0.5, 1),
        (5, 0.3, 2, 100),
        (1, 0.4, 2, 1),
    ):
        deep, limit = (
            theory.random_regular(degree, coupling, alpha, ridge, depth) for depth in (80, None)
        )
        for name in ("Q", "R", "rss", "bias", "unexplained", "free_energy"):
            assert getattr(deep, name) == pytest.approx(getattr(limit, name), rel=1e-10), name
        np.testing.assert_allclose(deep.means[:8], limit.means, rtol=1e-9, atol=1e-12)


def random_tree(rng, n_spins, strongest=0.8):
    parents = [-1] + [int(rng.integers(i)) for i in range(1, n_spins)]
    return parents, rng.uniform(-strongest, strongest, n_spins)


def test_bethe_matrix_inverts_the_correlations_of_trees(rng):
    """[eq:C0-inverse-matrix-1-v2] to 1e-12, for trees of 2 to 60 spins with unequal couplings."""
    for n_spins in (2, 5, 20, 60):
        parents, strengths = random_tree(rng, n_spins)
        matrix = theory.bethe_matrix(ik.IsingModel(reference.tree_couplings(parents, strengths)))
        np.testing.assert_allclose(
            matrix @ reference.tree_correlations(parents, strengths), np.eye(n_spins), atol=1e-12
        )


def test_theorem_one_holds_on_explicit_trees(rng):
    """Least squares on all other spins of random trees, to 1e-12.

    [eq:solution-Jbar-lamda=00003D0-1] [eq:solution-Jbar-lamda=00003D0]
    [eq:J-mean-linear-equation-1]
    """
    for _ in range(50):
        parents, strengths = random_tree(rng, 30)
        truth = reference.tree_couplings(parents, strengths)[0, 1:]
        means, _ = reference.mean_estimates(reference.tree_correlations(parents, strengths), 0.0)
        np.testing.assert_allclose(means, theory.linear_means(truth), atol=1e-12)
        if np.sum(np.tanh(truth) ** 2 / (1 + np.tanh(truth) ** 2)) < 1:
            np.testing.assert_allclose(theory.couplings_from_linear(means), truth, atol=1e-9)
    k = np.tanh(0.4) / (1 + 2 * np.tanh(0.4) ** 2)  # all of one strength
    np.testing.assert_allclose(theory.linear_means([0.4, -0.4, 0.4]), [k, -k, k], rtol=1e-14)


def test_couplings_from_linear_refuses_what_no_tree_gives():
    with pytest.raises(ex.SettingError, match="paramagnetic tree"):
        theory.couplings_from_linear([0.6, 0.6, 0.6])
    with pytest.raises(ex.SettingError, match="finite"):
        theory.couplings_from_linear([np.nan])
    assert theory.couplings_from_linear([]).tolist() == []


@given(st.data())
@settings(max_examples=1000, deadline=None)
def test_theorem_two_bounds_the_decay_on_any_tree(data):
    """[eq:decay-ratio-generalnode] [eq:decay-ratio-Leaf]: along each bond away from the spin, and
    equality at leaves.
    """
    n_spins = data.draw(st.integers(2, 14))
    parents = [-1] + [data.draw(st.integers(0, i - 1)) for i in range(1, n_spins)]
    coupling, k = data.draw(st.floats(0.01, 2.0)), data.draw(st.floats(1e-3, 1e3))
    signs = np.array([data.draw(st.sampled_from([-1, 1])) for _ in range(n_spins)])
    means, _ = reference.mean_estimates(reference.tree_correlations(parents, coupling * signs), k)
    bound = theory.decay_bound(coupling, k)
    for i in range(1, n_spins):
        smallest = 1e-7 * np.abs(means).max()  # of which rounding leaves enough digits
        if parents[i] > 0 and abs(means[parents[i] - 1]) > smallest:
            ratio = means[i - 1] / means[parents[i] - 1] * signs[i]
            assert 0 < ratio <= bound * (1 + 1e-5)
            if i not in parents:
                assert ratio == pytest.approx(bound, rel=1e-5)


def test_no_generation_adds_more_than_its_bound():
    """[eq:RSS_NN]: equality at the first generation, and at infinite ridge, where means fall like
    correlations.
    """
    for degree, coupling in ((2, 0.8), (3, 0.4), (5, 0.3)):
        for ridge in (0.1, 10.0, 1e8):
            p = theory.random_regular(degree, coupling, 0.8, ridge)
            generations = np.arange(1, 7)
            sizes = degree * (degree - 1.0) ** (generations - 1)
            added = sizes * np.array(p.means[:6]) ** 2
            bound = theory.generation_bound(degree, coupling, p.means[0], generations)
            assert added[0] == pytest.approx(bound[0])
            assert (added[1:] < bound[1:]).all()
            if ridge == 1e8:
                assert added == pytest.approx(bound, rel=1e-5)
    with pytest.raises(ex.SettingError, match="generation must be 1 or more"):
        theory.generation_bound(3, 0.4, 0.2, 0)


def test_least_squares_is_in_closed_form():
    """kappa = 2 (alpha - 1), Q = (1 - b J) / (alpha - 1) and R = 1 / (alpha - 1) for every coupling
    and degree.
    """
    for alpha in (1.001, 2.0, 50.0):
        for degree, coupling in ((1, 2.0), (3, 0.01), (3, 0.8), (20, 0.2)):
            for depth in (None, 1, 4):
                p = theory.random_regular(degree, coupling, alpha, 0, depth)
                b_j = degree * np.tanh(coupling) * theory.linear_means(np.full(degree, coupling))[0]
                assert p.kappa == pytest.approx(2 * (alpha - 1), rel=1e-13)
                assert pytest.approx((1 - b_j) / (alpha - 1), rel=1e-10) == p.Q
                assert pytest.approx(1 / (alpha - 1), rel=1e-10) == p.R
    with pytest.raises(ex.SettingError, match="> 1 where ridge is 0"):
        theory.random_regular(3, 0.4, 1.0, 0)


def test_infinite_ridge_is_correlation_screening():
    """Estimates times ridge / alpha become sample correlations: tanh^g K on average, variance 1 /
    M, Q = (1/N) Tr C^2 / alpha.
    """
    huge, limit = (theory.random_regular(3, 0.4, 0.7, ridge) for ridge in (1e9, np.inf))
    scale = 1e9 / 0.7
    np.testing.assert_allclose(limit.means, np.tanh(0.4) ** np.arange(1, 9), rtol=1e-13)
    assert limit.kappa == pytest.approx(1.4)
    assert pytest.approx(1 / 0.7) == limit.R
    assert pytest.approx(theory.RegularSpectrum(3, 0.4).moment(-2) / 0.7, rel=1e-10) == limit.Q
    np.testing.assert_allclose(huge.means * scale, limit.means, rtol=1e-6)
    assert huge.R * scale**2 == pytest.approx(limit.R, rel=1e-6)
    assert huge.Q * scale**2 == pytest.approx(limit.Q, rel=1e-6)
    finite = theory.random_regular(3, 0.4, 0.7, np.inf, 3)
    np.testing.assert_allclose(finite.means, np.tanh(0.4) ** np.arange(1, 4), rtol=1e-13)
    assert theory.decay_bound(0.4, np.inf) == pytest.approx(np.tanh(0.4))
    chain = ik.IsingModel(np.diag([0.5, 0.4, 0.3], 1) + np.diag([0.5, 0.4, 0.3], -1))
    of_chain = theory.of_model(chain, 0, 2, np.inf)
    np.testing.assert_allclose(of_chain.means, np.cumprod(np.tanh([0.5, 0.4, 0.3])), rtol=1e-12)
    assert limit.test_error == pytest.approx(1, rel=1e-12)  # that of no estimates at all
    model = ik.random_regular(n_spins=400, degree=3, coupling=0.4, random_state=0)
    alike = theory.recovery_of_model(model, 320, ridge=np.inf).recall([0.1, 0.2, 0.3])
    formula = theory.recovery(400, 3, 0.4, 320, ridge=np.inf, rule="directed")
    np.testing.assert_allclose(alike, formula.recall([0.1, 0.2, 0.3]), atol=0.01)


def test_free_energy_is_stationary_at_the_solution(rng):
    """[eq:limit-free-energy-sparse] [eq:J-bar-condition]: gradients by kappa, by Q and by all mean
    estimates vanish to 1e-7.
    """
    couplings, _ = reference.cayley_tree(3, 3, 0.4, rng)
    parents = [-1] + [int(np.flatnonzero(couplings[i, :i])[0]) for i in range(1, len(couplings))]
    correlations = reference.tree_correlations(
        parents, [0.0] + [couplings[i, parents[i]] for i in range(1, len(couplings))]
    )
    b, rest = correlations[1:, 0], correlations[1:, 1:]
    for alpha, ridge in ((0.8, 0.1), (3.0, 2.0)):
        p = theory.random_regular(3, 0.4, alpha, ridge, 3)
        spectrum = theory.RegularSpectrum(3, 0.4)

        def f(kappa, q, means, spectrum=spectrum, alpha=alpha, ridge=ridge):
            return theory.free_energy(
                spectrum,
                samples_per_spin=alpha,
                ridge=ridge,
                kappa=kappa,
                Q=q,
                squares=means @ means,
                overlap=b @ means,
                power=means @ rest @ means,
            )

        means, _ = reference.mean_estimates(correlations, p.effective_ridge)
        assert f(p.kappa, p.Q, means) == pytest.approx(p.free_energy, rel=1e-12)

        def slope(function, step=1e-5):
            return abs(function(step) - function(-step)) / (2 * step)

        assert slope(lambda step, p=p, m=means: f(p.kappa + step, p.Q, m)) < 1e-7
        assert slope(lambda step, p=p, m=means: f(p.kappa, p.Q + step, m)) < 1e-7
        for way in rng.normal(size=(5, len(means))):
            assert slope(lambda step, p=p, m=means, w=way: f(p.kappa, p.Q, m + step * w)) < 1e-7
        # it can fail
        assert slope(lambda step, p=p, m=means: f(1.1 * p.kappa + step, p.Q, m)) > 1e-4


def test_cavity_messages_are_exact_on_trees_and_on_regular_graphs(rng):
    """Against all eigenvalues of a tree's Bethe matrix, to 1e-11; on 20,000 spins of a regular
    graph against the closed form.
    """
    parents, strengths = random_tree(rng, 300, strongest=0.6)
    model = ik.IsingModel(reference.tree_couplings(parents, strengths))
    exact, cavity = theory.ModelSpectrum.of(model), theory.CavitySpectrum(model)
    for k in (0.0, 1e-3, 0.5, 30.0, np.inf):
        for name in ("t", "t2", "p", "p2"):
            assert getattr(cavity.traces(k), name) == pytest.approx(
                getattr(exact.traces(k), name), rel=1e-11
            ), (k, name)
    assert cavity.log_trace(0.7) == pytest.approx(exact.log_trace(0.7), rel=1e-11)
    large = ik.random_regular(n_spins=20_000, degree=3, coupling=0.4, random_state=0)
    messages, closed = theory.CavitySpectrum(large), theory.RegularSpectrum(3, 0.4)
    for name in ("t", "t2", "p", "p2"):
        assert getattr(messages.traces(0.5), name) == pytest.approx(
            getattr(closed.traces(0.5), name), rel=1e-11
        )
    p, q = theory.of_model(large, 5, 0.8, 0.1, 4), theory.random_regular(3, 0.4, 0.8, 0.1, 4)
    assert p.kappa == pytest.approx(q.kappa, rel=1e-9)
    assert p.rss == pytest.approx(q.rss, rel=1e-6)  # spin 5 may be on a loop of nine


def test_ensembles_agree_with_their_members():
    """Population dynamics against the eigenvalues of one graph of 1200 spins: kappa within 1
    percent and errors within 5, which loops and chance allow. A coupling of 0.41 in the ensemble
    is caught (seen: by 9 percent in Q at infinite ridge).
    """
    regular = theory.EnsembleSpectrum([0, 0, 0, 1], 0.4, size=50)
    assert regular.log_trace(0.5) == pytest.approx(
        theory.RegularSpectrum(3, 0.4).log_trace(0.5), rel=1e-9
    )
    assert float(effective_ridge(regular, 0.8, 0.1)) == pytest.approx(
        float(effective_ridge(theory.RegularSpectrum(3, 0.4), 0.8, 0.1)), rel=1e-11
    )
    model = ik.erdos_renyi(n_spins=1200, mean_degree=4, coupling=0.4, random_state=3)
    spectrum = theory.ModelSpectrum.of(model)
    for alpha, ridge in ((0.9, 0.1), (2.0, 0.0), (0.5, np.inf)):
        ensemble = theory.erdos_renyi(4, 0.4, alpha, ridge)
        spins = [
            theory.of_model(model, spin, alpha, ridge, spectrum=spectrum)
            for spin in range(0, 1200, 8)
        ]
        assert ensemble.kappa == pytest.approx(spins[0].kappa, rel=0.01)
        for name in ("Q", "R", "unexplained", "rss"):
            assert getattr(ensemble, name) == pytest.approx(
                np.mean([getattr(p, name) for p in spins]), rel=0.05
            ), name
    critical = theory.EnsembleSpectrum([0, 0, 0, 1], 0.85, size=20)
    assert critical.traces(np.inf).t2 == pytest.approx(
        theory.RegularSpectrum(3, 0.85).traces(np.inf).t2, rel=1e-3
    )
    mixed = theory.EnsembleSpectrum([0.2, 0.3, 0.5], [0.2, 0.6], size=2000)
    assert mixed.traces(np.inf).t == pytest.approx(1, abs=1e-6)  # (1/N) Tr C
    assert theory.of_ensemble(mixed, 2.0).kappa == pytest.approx(2.0)


def test_arrays_of_points_equal_points_one_by_one():
    alpha, ridge = np.meshgrid([0.5, 1.0, 3.0], [0.1, 1.0, np.inf], indexing="ij")
    degree = np.array([[3], [4], [2]])
    for depth in (None, 3):
        together = theory.random_regular(degree, 0.3, alpha, ridge, depth)
        for place in np.ndindex(3, 3):
            alone = theory.random_regular(
                int(degree[place[0], 0]), 0.3, alpha[place], ridge[place], depth
            )
            for name in ("kappa", "Q", "R", "rss", "bias", "free_energy"):
                assert getattr(together, name)[place] == pytest.approx(
                    getattr(alone, name), rel=1e-12
                )
            np.testing.assert_allclose(
                together.means[(slice(None), *place)], alone.means, rtol=1e-10, atol=1e-14
            )


def test_the_best_ridge_is_far_from_the_papers():
    """RSS falls from 0.853 to 0.365 at alpha = 0.8; the best ridge stays between 1.2 and 1.6."""
    for alpha in (0.5, 0.8, 2, 10):
        best = theory.best_ridge(3, 0.4, alpha)
        assert 1.15 < best < 1.65
        rss = theory.random_regular(3, 0.4, alpha, best * np.array([0.99, 1, 1.01])).rss
        assert rss[1] == min(rss)
    assert theory.random_regular(3, 0.4, 0.8, theory.best_ridge(3, 0.4, 0.8)).rss == pytest.approx(
        0.365, abs=5e-4
    )


def test_what_has_no_coupling_or_one_neighbour_is_no_special_case():
    """No coupling: nothing but noise, and no warning. Pairs: formulas of degree 1 agree with the
    model of many pairs.
    """
    p = theory.random_regular(3, 0.0, 2.0)
    assert (p.R, p.rss) == pytest.approx((1.0, 1.0))
    assert np.isnan(p.bias)
    assert theory.erdos_renyi(4, 0.0, 2.0).rss == pytest.approx(1.0)
    assert theory.best_ridge(3, 0.0, 2.0) == np.inf
    assert theory.best_ridge(3, 0.4, 1e4) == pytest.approx(
        0, abs=1e-9
    )  # rounding chooses among all that are next to 0
    assert (
        theory.random_regular(np.uint8(3), 0.4, 2, 1).rss == theory.random_regular(3, 0.4, 2, 1).rss
    )
    assert np.isfinite(theory.random_regular(3, 0.4, 2, 1, depth=2000).rss)
    pairs = ik.IsingModel(np.kron(np.eye(50), [[0, 0.4], [0.4, 0]]))
    grid = [0.15, 0.2, 0.25]
    # 100 worlds have 0.490, 0.823 and 0.984, give or take 0.004; a model's first stage is drawn
    for found in (
        theory.recovery_of_model(pairs, 200, ridge=1, prune=0.1),
        theory.recovery(100, 1, 0.4, 200, ridge=1, prune=0.1, rule="directed"),
    ):
        np.testing.assert_allclose(found.precision(grid), [0.490, 0.823, 0.984], atol=0.015)


def test_the_theory_says_where_it_does_not_hold():
    with pytest.raises(ex.OrderedPhaseError, match="paramagnetic") as caught:
        theory.random_regular(3, 1.0, 2)
    assert caught.value.growth == pytest.approx(2 * np.tanh(1) ** 2)
    with pytest.raises(ex.OrderedPhaseError, match="Bethe matrix"):
        theory.ModelSpectrum(np.array([-0.1, 1.0]))
    with pytest.raises(ex.OrderedPhaseError):
        theory.EnsembleSpectrum([0, 0, 0, 0, 1], 0.8)
    fields = ik.IsingModel([[0, 0.3], [0.3, 0]], fields=[0.1, 0])
    with pytest.raises(ex.SettingError, match="without fields"):
        theory.bethe_matrix(fields)
    ferromagnet = ik.IsingModel(
        abs(ik.random_regular(n_spins=4000, degree=4, coupling=0.4, random_state=0).couplings)
    )
    # its Bethe matrix has but one bad eigenvalue, which messages do not see
    with pytest.raises(ex.OrderedPhaseError):
        theory.of_model(ferromagnet, 0, 2, 1)
    for bad in (
        {"degree": 2.5},
        {"degree": 0},
        {"coupling": np.nan},
        {"coupling": "x"},
        {"samples_per_spin": 0},
        {"samples_per_spin": "a"},
        {"ridge": -1},
        {"depth": 0},
        {"depth": np.inf},
        {"samples_per_spin": [1, 2], "ridge": [1, 2, 3]},
    ):
        with pytest.raises(ex.SettingError):
            theory.random_regular(**({"degree": 3, "coupling": 0.4, "samples_per_spin": 2} | bad))
    model = ik.random_regular(n_spins=20, degree=3, coupling=0.4, random_state=0)
    with pytest.raises(ex.SettingError, match="below n_spins"):
        theory.of_model(model, 20, 2)
    with pytest.raises(ex.SettingError, match="below"):
        theory.RegularSpectrum(3, 0.4).inverse_g1(1.0, 1.0)
    for bad in ({"probability": 1}, {"probability": 0}, {"n_spins": 2}, {"coupling": 0}):
        with pytest.raises(ex.SettingError):
            theory.samples_needed(**({"n_spins": 100, "degree": 3, "coupling": 0.4} | bad))
    for bad in (
        {"degree": 100},
        {"coupling": 0.0},
        {"ridge": -1},
        {"ridge": "a"},
        {"prune": -1},
        {"n_samples": 50, "ridge": 1, "prune": 0.01},
    ):
        with pytest.raises(ex.SettingError):
            theory.recovery(
                **(
                    {"n_spins": 100, "degree": 3, "coupling": 0.4, "n_samples": 200, "ridge": 0.1}
                    | bad
                )
            )
    with pytest.raises(ex.UnderdeterminedError):
        theory.recovery(100, 3, 0.4, 50)
    with pytest.raises(ex.UnderdeterminedError):
        theory.recovery_of_model(
            ik.random_regular(n_spins=20, degree=3, coupling=0.4, random_state=0), 10
        )
    for bad in ("x", ik.IsingModel(np.zeros((5, 5)))):
        with pytest.raises(ex.SettingError):
            theory.recovery_of_model(bad, 20)
    # the larger the ridge, the closer to what correlations alone say
    model = ik.random_regular(n_spins=20, degree=3, coupling=0.4, random_state=0)
    large, larger = (
        theory.recovery_of_model(model, 200, ridge=ridge, prune=0.1 / ridge).precision(0.1)
        for ridge in (1e7, 1e12)
    )
    assert larger == pytest.approx(large, rel=1e-4)
    for bad in (
        lambda: theory.best_ridge(3, 0.4, [1, 2]),
        lambda: theory.erdos_renyi(4, 0.4, [1, 2]),
        lambda: theory.linear_means([np.nan]),
        lambda: theory.EnsembleSpectrum([0, 1], []),
        lambda: theory.ModelSpectrum([]),
        lambda: theory.decay_bound(0.4, -2),
    ):
        with pytest.raises(ex.SettingError):
            bad()
    with pytest.raises(ex.SettingError, match="average"):
        theory.recovery(100, 3, 0.4, 200, rule="or")


@pytest.mark.parametrize(("degree", "strength"), [(1, 0.5), (2, 0.3), (3, 0.4), (4, 0.35)])
def test_scatter_of_least_squares_matches_enumeration(degree, strength):
    """The sandwich with non-Gaussian residuals, by all states of an edge and both its
    neighbourhoods: to 1e-10.
    """
    parents = [-1, 0] + [0] * (degree - 1) + [1] * (degree - 1)
    couplings = reference.tree_couplings(parents, [strength] * len(parents))
    variance, product = reference.least_squares_scatter(couplings, 0, 1)
    assert edge_scatter(degree, strength) == pytest.approx(
        (variance, product / variance), rel=1e-10
    )
    unequal = strength * np.linspace(0.5, 1.5, degree)
    star = reference.tree_couplings([-1] + [0] * degree, [0, *unequal])
    expected = [reference.least_squares_scatter(star, 0, j)[0] for j in range(1, degree + 1)]
    np.testing.assert_allclose(np.diagonal(neighbour_scatter(unequal)), expected, rtol=1e-10)


def test_recovery_behaves_as_precision_and_recall_do():
    """[eq:Precision-Recall]: recall falls with the threshold, more samples help, models of one
    degree agree with the formula.
    """
    grid = np.linspace(0, 0.4, 41)
    for prune in (None, 0.05):
        few, many = (theory.recovery(400, 3, 0.4, m, ridge=1.0, prune=prune) for m in (300, 1200))
        assert isinstance(few, theory.Recovery)
        assert np.all(np.diff(few.recall(grid)) <= 1e-12)
        assert many.probability(many.best_threshold()) > few.probability(few.best_threshold())
        low, high = many.interval(0.9)
        assert low < many.best_threshold() < high
        assert many.probability([low, high]).min() >= 0.9 - 1e-12
        assert many.probability([low - 1e-4, high + 1e-4]).max() < 0.9
        assert few.interval(0.999999) is None
    # nearly any threshold will do
    plenty = theory.recovery(400, 3, 0.4, 20_000, ridge=1.0, prune=0.03)
    low, high = plenty.interval(0.9)
    assert high > 0.25
    assert plenty.probability(high + 1e-4) < 0.9
    model = ik.random_regular(n_spins=400, degree=3, coupling=0.4, random_state=1)
    alike = theory.recovery_of_model(model, 320, ridge=0.1)
    formula = theory.recovery(400, 3, 0.4, 320, ridge=0.1, rule="directed")
    np.testing.assert_allclose(alike.recall(grid), formula.recall(grid), atol=0.01)
    np.testing.assert_allclose(alike.precision(grid[:25]), formula.precision(grid[:25]), atol=0.01)
    best = theory.best_two_stage(400, 3, 0.4, 500)
    usual = theory.recovery(400, 3, 0.4, 500, ridge=0.1, prune=0.1)
    assert best.probability(best.best_threshold()) > usual.probability(usual.best_threshold())


def test_limits_lie_below_what_two_stages_need():
    """The pair limit against a plain sum over binomial numbers, which catches one sample more or
    less; Fano's bound grows like the logarithm of the number of networks.
    """
    needed = theory.pair_limit(200, 3, 0.4, 0.9)

    def probability(n_samples):
        agreements = np.arange(n_samples + 1)
        null = binom.pmf(agreements, n_samples, 0.5)
        edge = binom.pmf(agreements, n_samples, (1 + np.tanh(0.4)) / 2)
        best = 0.0
        for least in range(n_samples // 2 + 1, n_samples + 1):
            invented = 2 * null[least:].sum()
            found = edge[least:].sum()
            best = max(best, (1 - min(invented, 1)) ** (199 * 100 - 300) * found**300)
        return best

    assert probability(needed) >= 0.9 > probability(needed - 1)
    for coupling in (0.1, -0.3, 0.6):
        setting = (200, 3, coupling, 0.9)
        assert theory.fano_limit(*setting) < theory.pair_limit(*setting)
    assert theory.pair_limit(200, 3, 0.6) < theory.samples_needed(200, 3, 0.6)
    assert theory.fano_limit(1000, 3, 0.4) == 101
    assert theory.fano_limit(1000, 3, 0.4, 0.5) < 60
    # a hundredth of the coupling takes ten thousand times the samples, to 1e-4: also where log cosh
    # would have no digits left, and where samples are too many to list
    for limit in (theory.pair_limit, theory.fano_limit):
        strong, weak = limit(1000, 3, 1e-3), limit(1000, 3, 1e-5)
        assert weak / strong == pytest.approx(1e4, rel=1e-4)
    assert theory.fano_limit(1000, 3, 1e-8) / theory.fano_limit(1000, 3, 1e-3) == pytest.approx(
        1e10, rel=1e-4
    )
    for limit in (theory.pair_limit, theory.fano_limit):
        with pytest.raises(ex.SettingError, match="nothing is certain"):
            limit(100, 3, 0.4, 1.0)
        with pytest.raises(ex.OrderedPhaseError):
            limit(100, 3, 1.5)


LOSSES = [losses.Squares(), losses.Logistic(), losses.Exponential()]


def test_any_loss_becomes_least_squares_to_twelve_digits():
    """The equations of state of a general loss, with squares for the loss, against those of least
    squares, which are solved for one unknown in closed form.
    """
    points = [
        (3, 0.4, 10, 10),
        (3, -0.4, 0.8, 0.1),
        (4, 0.5, 2, 0),
        (6, 0.35, 0.5, 1.0),
        (1, 0.7, 2, 0.3),
        (2, 0.9, 3, 0.01),
    ]
    for point in points:
        found = local_loss(losses.Squares(), *point)
        expected = theory.random_regular(*point)
        for name in ("kappa", "chi", "effective_ridge", "Q", "R", "rss", "bias"):
            quantity = getattr(found, name)
            assert quantity == pytest.approx(getattr(expected, name), rel=1e-12), (point, name)
        np.testing.assert_allclose(found.means, expected.means, rtol=1e-11, atol=1e-16)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_proximal_operators_minimise(loss):
    """l'(x) + (x - y) / chi vanishes at the fitted field x, its slope by y is the one given, and
    slope and curvature are the derivatives of the loss as it is written.
    """
    value = {
        "squares": lambda y: (1 - y) ** 2,
        "pseudolikelihood": lambda y: np.logaddexp(0, -2 * y),
        "screening": lambda y: np.exp(-y),
    }[loss.name]
    y = np.linspace(-30, 30, 241)
    for chi in (1e-3, 0.3, 5.0, 300.0):
        slope, by_field = loss.fitted_slope(y, chi)
        fitted = y - chi * slope
        np.testing.assert_allclose(loss.slope(fitted), slope, rtol=1e-9, atol=1e-12)
        there, _ = loss.fitted_slope(y + 1e-5, chi)
        before, _ = loss.fitted_slope(y - 1e-5, chi)
        np.testing.assert_allclose((there - before) / 2e-5, by_field, rtol=1e-5, atol=1e-8)
    near = np.linspace(-2, 2, 21)
    numeric = (value(near + 1e-6) - value(near - 1e-6)) / 2e-6
    np.testing.assert_allclose(loss.slope(near), numeric, rtol=1e-7, atol=1e-9)
    numeric = (loss.slope(near + 1e-6) - loss.slope(near - 1e-6)) / 2e-6
    np.testing.assert_allclose(loss.curvature(near), numeric, rtol=1e-7)


@pytest.mark.parametrize("predict", [theory.pseudolikelihood, theory.interaction_screening])
def test_errors_of_local_losses_have_the_limits_they_must(predict):
    """Consistent with many samples; like least squares with a large ridge, whose half is theirs;
    divergent where the minimum is lost, and refused beyond.
    """
    many = predict(3, 0.4, 10_000)
    assert isinstance(many, theory.LossPrediction)
    assert many.bias == pytest.approx(1, abs=3e-4)
    assert many.rss < 4e-4
    assert not many.means[1:].any()
    shrunk = predict(3, 0.4, 2, ridge=1000)
    linear = theory.random_regular(3, 0.4, 2, ridge=2000)
    assert shrunk.rss == pytest.approx(linear.rss, rel=1e-4)
    np.testing.assert_allclose(shrunk.means[:2], linear.means[:2], rtol=3e-3)
    limit = theory.separation_limit(3, 0.4)
    errors = [predict(3, 0.4, limit * more).rss for more in (1.02, 1.1, 1.5, 3)]
    assert np.all(np.diff(errors) < 0)
    assert errors[0] > 50
    with pytest.raises(ex.SettingError, match="no minimum"):
        predict(3, 0.4, limit)
    assert np.isfinite(predict(3, 0.4, 0.5 * limit, ridge=1e-3).rss)
    for bad in ({"ridge": -1}, {"samples_per_spin": 0}, {"coupling": 0}, {"degree": 2.5}):
        with pytest.raises(ex.SettingError):
            predict(**({"degree": 3, "coupling": 0.4, "samples_per_spin": 5} | bad))
    with pytest.raises(ex.OrderedPhaseError):
        predict(3, 1.0, 5)


def test_separation_limit_is_two_without_couplings_and_grows_with_them():
    """2 is Cover's; with one neighbour that always agrees no number of samples is enough."""
    assert theory.separation_limit(3, 0.0) == pytest.approx(2, abs=1e-12)
    limits = [theory.separation_limit(2, coupling) for coupling in (0.1, 0.4, 0.8, 1.6, 3.0)]
    assert np.all(np.diff(limits) > 0)
    assert limits[-1] > 100
    with pytest.raises(ex.SettingError):
        theory.separation_limit(3, "a")


def test_lasso_limit_is_that_of_the_optimality_conditions():
    """k = 2 E[e^2] / l1^2 in closed form for least squares, 19.41 at c = 3, K = 0.4, l1 = 0.3; all
    losses have the same limit for weak couplings, where neighbours hardly matter.
    """
    for degree, coupling, l1 in ((3, 0.4, 0.3), (5, 0.3, 0.1), (1, 0.7, 0.2)):
        square = np.tanh(coupling) ** 2
        error = (1 - square + degree * l1**2) / (1 + (degree - 1) * square)
        assert theory.lasso_limit(degree, coupling, l1) == pytest.approx(2 * error / l1**2)
    assert round(theory.lasso_limit(3, 0.4, 0.3), 2) == 19.41
    for loss in ("pseudolikelihood", "screening"):
        assert theory.lasso_limit(3, 0.01, 0.005, loss) == pytest.approx(2 / 0.005**2, rel=1e-3)
    with pytest.raises(ex.SettingError, match="loss"):
        theory.lasso_limit(3, 0.4, 0.3, "absolute")


def test_penalised_recovery_behaves_as_precision_and_recall_do():
    """More samples find more, a larger penalty invents less, "and" claims less than "or"."""
    setting = {"n_spins": 200, "degree": 3, "coupling": 0.4, "n_samples": 200}
    low, high = (theory.sparse_recovery(**setting, l1=l1) for l1 in (0.15, 0.25))
    assert isinstance(low, theory.SparseRecovery)
    assert low.false > 5 * high.false
    assert low.recall > high.recall
    more = theory.sparse_recovery(**(setting | {"n_samples": 800}), l1=0.15)
    assert more.precision > low.precision
    assert more.probability > low.probability
    both = theory.sparse_recovery(**setting, l1=0.15, rule="and")
    each = theory.sparse_recovery(**setting, l1=0.15, rule="directed")
    assert low.false + both.false == pytest.approx(each.false)
    assert both.found < low.found
    # beyond tanh K only edges of triangles are found, beyond their correlation, 0.497, none
    many = setting | {"n_samples": 20_000}
    assert 0.01 < theory.sparse_recovery(**many, l1=0.41).recall < 0.05
    assert theory.sparse_recovery(**many, l1=0.55).recall < 1e-3
    for bad in ({"l1": 0}, {"l1": 0.2, "rule": "x"}, {"l1": 0.2, "loss": "x"}, {"l1": 1e-3}):
        with pytest.raises(ex.SettingError):
            theory.sparse_recovery(**(setting | bad))
    with pytest.raises(ex.SettingError, match="but got '0.001, which leaves"):
        theory.sparse_recovery(**setting, l1=1e-3)
    with pytest.raises(ex.SettingError, match="n_samples must be a whole number >= 2"):
        theory.sparse_recovery(**(setting | {"n_samples": 1}), l1=0.2)


def test_estimates_on_loops_are_those_of_the_inverse_correlations():
    """Rings of three and four spins, frustrated or not, by all their states: to 1e-12. A pair with
    trees on both ends is as on a tree, and a triangle's sign moves estimates by a tenth or more.
    """
    strength = 0.5
    spectrum = theory.RegularSpectrum(2, strength)
    for length in (3, 4):
        for sign in (1, -1):
            signs = np.zeros((length, length))
            for place in range(length):
                signs[place, (place + 1) % length] = 1
            signs[length - 1, 0] = sign
            signs = signs + signs.T
            inverse = np.linalg.inv(ik.exact(ik.IsingModel(strength * signs)).pair_means)
            for k in (0.3, 2.0):
                kept = inverse @ np.linalg.inv(np.eye(length) + k * inverse)
                found = cluster_estimates(spectrum, k, signs)
                assert found.first == pytest.approx(-kept[0, 1] / kept[0, 0], rel=1e-12)
            found = cluster_estimates(spectrum, 0.0, signs)
            assert found.first == pytest.approx(-inverse[0, 1] / inverse[0, 0], rel=1e-12)
    spectrum = theory.RegularSpectrum(4, strength)
    pair = np.array([[0.0, 1.0], [1.0, 0.0]])
    p = theory.random_regular(4, strength, 2.0, 1.0)
    found = cluster_estimates(spectrum, p.effective_ridge, pair)
    assert found.first == pytest.approx(float(p.means[0]), rel=1e-12)
    assert found.second == pytest.approx(theory.linear_means([strength] * 4)[0], rel=1e-12)
    assert found.noise == pytest.approx(1, rel=1e-12)
    weak, strong = (
        cluster_estimates(spectrum, p.effective_ridge, np.array(signs)).first
        for signs in ([[0, 1, 1], [1, 0, -1], [1, -1, 0]], [[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    )
    assert weak < 0.9 * found.first < 1.1 * found.first < strong


def test_regions_hold_what_enumeration_finds_on_loops():
    """Exact where loops meet in single spins, and on a lattice far closer than a tree's formula.

    Seen to catch edges counted without the loops around them (no correlation matrix is left).
    """
    couplings = np.zeros((9, 9))
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 6), (6, 3), (4, 7), (7, 8)]
    for place, (a, b) in enumerate(edges):
        couplings[a, b] = couplings[b, a] = 0.5 * (-1) ** (place // 2)
    lattice = ik.square_lattice(side=4, coupling=0.3, random_state=1)
    cases = [(ik.IsingModel(couplings), 1e-9, 0.01), (lattice, 0.003, 0.02)]
    for model, close, by_tree in cases:
        exact = ik.exact(model).pair_means
        found = np.linalg.inv(inverse_correlations(model).toarray())
        assert np.max(np.abs(found - exact)) < close
        tree = np.linalg.inv(theory.bethe_matrix(model).toarray())
        assert np.max(np.abs(tree - exact)) > by_tree


@pytest.mark.parametrize("coupling", [12.1, 100.0, 400.0, 1e89])
def test_couplings_that_leave_no_digits_are_refused(coupling):
    """Seen to fail: eigenvalues that were not finite, and at 100 a Q of 1e-212."""
    couplings = np.diag([coupling, 0.5], 1)
    chain = ik.IsingModel(couplings + couplings.T)
    with pytest.raises(ex.SettingError, match="couplings of at most 12"):
        theory.of_model(chain, spin=0, samples_per_spin=2, ridge=0.1)
    with pytest.raises(ex.SettingError, match="couplings of at most 12"):
        theory.ModelSpectrum.of(chain)


def test_a_loop_of_spins_that_are_always_the_same_is_refused():
    """Seen to fail: its correlations have no inverse."""
    triangle = ik.IsingModel(10.0 * (1 - np.eye(3)))
    with pytest.raises(ex.SettingError, match="always the same"):
        theory.of_model(triangle, spin=0, samples_per_spin=2, ridge=0.1)


def test_models_with_too_many_loops_are_refused_with_the_reason():
    grid = nx.triangular_lattice_graph(10, 10, periodic=True)
    couplings = 0.42 * nx.to_numpy_array(grid)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=couplings.shape)
    signs = np.triu(signs, 1)
    strong = ik.IsingModel(couplings * (signs + signs.T))
    with pytest.raises(ex.SettingError, match="triangles and squares leave variances"):
        theory.of_model(strong, spin=0, samples_per_spin=4, ridge=0.3)
