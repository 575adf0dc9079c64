"""
The theory in ten minutes
=========================

How wrong will an estimate be, before there are any data? For linear and ridge regression on sparse
networks there is an answer on paper: the replica and cavity methods of statistical physics turn
the average over all possible data sets into a few equations with one unknown. ``ik.theory`` solves
them. This page shows what comes out, and holds it against a small simulation.

You need not know the methods to use their results. What they assume: a sparse network without
short loops, couplings weak enough that the system is not frozen (its paramagnetic phase), no
fields, and many columns.
"""

# %%
# The setting
# -----------
#
# A *teacher* with N spins, each coupled to c = 3 others with strength K = 0.4 and random signs,
# gives M samples. Each spin is regressed on all others. With J the couplings of spin 0, one
# minimises
#
# .. math::
#
#    \sum_{\mu=1}^{M} \Bigl(s_0^{\mu} - \sum_{j} J_{j} s_j^{\mu}\Bigr)^2 + \lambda N \sum_j J_j^2
#
# In code M/N is ``samples_per_spin`` and the penalty λ is ``ridge``. The error is the sum of
# squares over all estimates of one spin, ``rss``. It has two parts: estimates are too small
# (``bias``), and they scatter (``R``).

import matplotlib.pyplot as plt
import numpy as np

import isingkit as ik

world = {"degree": 3, "coupling": 0.4}
p = ik.theory.random_regular(**world, samples_per_spin=0.8, ridge=0.1)
print(f"error {p.rss:.3f}: mean estimate {p.bias:.3f} of the coupling, scatter {p.R:.3f}")

# %%
# Error against the number of samples
# -----------------------------------
#
# All arguments broadcast, so that a curve is one call. Beside it, measured: teachers with 200
# spins, four for each point.

curve = np.geomspace(0.5, 10, 100)
points = np.array([0.5, 0.8, 1.25, 2.0, 4.0, 8.0])
ridges = (0.0, 0.1, 1.4)


def measured(samples_per_spin, ridge, n_spins=200, n_worlds=4):
    """Mean squared error of one spin's couplings, summed over all of them, in planted worlds."""
    errors = []
    for seed in range(n_worlds):
        truth = ik.random_regular(n_spins=n_spins, **world, random_state=seed)
        n_samples = round(samples_per_spin * n_spins)
        samples = ik.sample(truth, n_samples=n_samples, random_state=100 + seed)
        estimator = ik.LinearIsing(fit_fields=False)
        if ridge > 0:
            estimator = ik.RidgeIsing(ridge=ridge, fit_fields=False)
        difference = estimator.fit(samples).estimates_ - truth.couplings.toarray()
        errors.append((difference**2).sum() / n_spins)
    return np.mean(errors)


fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for ridge, colour in zip(ridges, ("tab:gray", "tab:orange", "tab:blue"), strict=True):
    # least squares needs more samples than spins
    fewest = 1.02 if ridge == 0 else 0.0
    there = curve[curve > fewest]
    predicted = ik.theory.random_regular(**world, samples_per_spin=there, ridge=ridge)
    ax.loglog(there, predicted.rss, color=colour, label=f"ridge {ridge:g}")
    seen = points[points > fewest]
    ax.loglog(seen, [measured(alpha, ridge) for alpha in seen], "o", color=colour)
ax.set(
    xlabel="samples per spin",
    ylabel="error (RSS)",
    title="lines: theory; points: four worlds of 200 spins",
)
ax.legend()

# %%
# Least squares explodes where there are as many samples as spins. A small ridge tames it, and at
# 0.8 samples a spin the right ridge more than halves the error again. The numbers agree closely,
# although 200 spins are far from infinitely many:

for alpha, ridge in ((0.8, 0.1), (0.8, 1.4), (2.0, 0.0), (8.0, 1.4)):
    theory = ik.theory.random_regular(**world, samples_per_spin=alpha, ridge=ridge).rss
    seen = measured(alpha, ridge)
    print(f"samples per spin {alpha}, ridge {ridge}: theory {theory:.3f}, measured {seen:.3f}")

# %%
# Which ridge?
# ------------
#
# There is a best one, and it hardly depends on the number of samples.

ridge_axis = np.geomspace(0.01, 100, 200)
fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for alpha in (0.5, 1.0, 2.0, 10.0):
    errors = ik.theory.random_regular(**world, samples_per_spin=alpha, ridge=ridge_axis).rss
    (line,) = ax.loglog(ridge_axis, errors, label=f"{alpha:g} samples per spin")
    best = ik.theory.best_ridge(**world, samples_per_spin=alpha)
    lowest = ik.theory.random_regular(**world, samples_per_spin=alpha, ridge=best).rss
    ax.plot(best, lowest, "v", color=line.get_color())
    print(f"{alpha:g} samples per spin: best ridge {best:.2f}, error {lowest:.3f}")
ax.set(xlabel="ridge", ylabel="error (RSS)", title="triangles: the best ridge")
ax.legend()

# %%
# What estimates look like
# ------------------------
#
# Ridge estimates of a spin's neighbours are too small (generation 1), and those of its neighbours'
# neighbours are not zero on average (generation 2): the penalty makes a spin share its coupling
# with what stands behind it. By the paper's second theorem this dies out at least geometrically
# with distance. With little ridge it hardly matters; with much, a threshold must clear it.

for ridge in (0.1, 10):
    p = ik.theory.random_regular(**world, samples_per_spin=10, ridge=ridge)
    means = ", ".join(f"{mean:.4f}" for mean in p.means[:4])
    bound = ik.theory.decay_bound(0.4, p.effective_ridge)
    print(f"ridge {ridge:>4}: means of generations 1 to 4: {means}; bound of decay {bound:.3f}")

# %%
# From error to recovery
# ----------------------
#
# What users want is not a small error but the right network. Estimates scatter like Gaussian
# numbers around their means, so that the fraction of edges that pass a threshold can be computed as
# well. Two stages: keep what ridge estimates above ``prune``, fit least squares on what is left,
# keep what is above the threshold. With N = 800 and M = 640, fewer samples than spins:

recovery = ik.theory.recovery(800, 3, 0.4, n_samples=640, ridge=0.1, prune=0.1, rule="directed")
truth = ik.random_regular(n_spins=800, **world, random_state=0)
samples = ik.sample(truth, n_samples=640, random_state=1)
fit = ik.TwoStageIsing(ridge=0.1, prune=0.1, threshold=0.15, fit_fields=False).fit(samples)
fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ik.plot_precision_recall(fit.estimates_, truth, ax=ax)
thresholds = np.linspace(0.02, 0.5, 200)
ax.plot(thresholds, recovery.precision(thresholds), color="black", lw=1, ls=":", label="theory")
ax.plot(thresholds, recovery.recall(thresholds), color="black", lw=1, ls=":")
ax.set(xlim=(0, 0.5))
ax.legend(frameon=False)

# %%
# How many samples?
# -----------------
#
# Turned around, the theory says how many samples find the exact network, and which knobs to use:

for n_spins in (100, 10_000):
    needed = ik.theory.samples_needed(n_spins=n_spins, **world, probability=0.99)
    best = ik.theory.best_two_stage(n_spins, **world, n_samples=needed)
    knobs = f"ridge {best.ridge:.2g}, prune {best.prune:.2g}, threshold {best.best_threshold():.2g}"
    print(f"{n_spins} spins: {needed} samples, with {knobs}")

# %%
# A hundred times the spins need about one and a half times the samples: the number grows roughly
# with the logarithm of the number of spins. :doc:`/how_much_data` goes on from here;
# :doc:`/reproduction/README` has every figure of the paper, measured and predicted;
# :doc:`/equations` lists the paper's equations with the functions that hold them.
#
# Where it ends
# -------------
#
# The theory refuses where it does not hold, for instance where couplings are so strong that the
# network freezes:

try:
    ik.theory.random_regular(degree=3, coupling=1.2, samples_per_spin=2, ridge=0.1)
except ik.exceptions.IsingkitError as problem:
    print(problem)
