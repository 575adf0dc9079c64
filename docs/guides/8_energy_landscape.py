"""
I want to know which states my network rests in
===============================================

Nine brain networks, forty people in a scanner, each scan binarised: a network is active, or it is
not. The whole brain seems to dwell in a few patterns and to jump between them. Which patterns? How
stable are they, how hard is it to leave one, and do the rows really go where the model says?

Ecologists ask the same of alternative stable states: a lake that is clear or turbid, a plot that
is grass or shrub. This guide is for both. It fits a pairwise model, finds the minima of its
energy, and says which of them the data can tell apart.
"""

# %%
# The data
# --------
#
# We plant two groups of networks that excite each other within and inhibit each other, weakly,
# between. Each person is scanned 120 times; from one scan to the next, networks are looked at anew,
# one after the other, but only four in ten, so that patterns last.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import isingkit as ik

regions = [
    "visual", "somatomotor", "dorsal attention", "ventral attention",
    "default A", "default B", "limbic", "memory", "salience",
]  # fmt: skip
group = np.array([1, 1, 1, 1, -1, -1, -1, -1, -1])
couplings = np.where(group[:, None] == group, 0.25, -0.05)
np.fill_diagonal(couplings, 0)
truth = ik.IsingModel(couplings, fields=np.full(9, -0.05), names=regions)


def scans(n_people, n_scans, random_state):
    """One row a scan, person after person."""
    rng = np.random.default_rng(random_state)
    state = np.asarray(ik.exact(truth).sample(n_samples=n_people, random_state=rng), float)
    rows = []
    for _ in range(n_scans):
        for i in range(len(regions)):
            odds = np.exp(2 * (state @ couplings[i] + truth.fields[i]))
            new = np.where(rng.random(n_people) < odds / (1 + odds), 1.0, -1.0)
            is_new = rng.random(n_people) < 0.4
            state[is_new, i] = new[is_new]
        rows.append(state.copy())
    values = np.stack(rows, axis=1).reshape(-1, len(regions))
    table = pd.DataFrame((values > 0).astype(int), columns=regions)
    table.insert(0, "person", np.repeat(np.arange(1, n_people + 1), n_scans))
    return table


table = scans(n_people=40, n_scans=120, random_state=1)
person = table["person"]
active = table.drop(columns="person")
active.head()

# %%
# Your own signals are numbers, not zeros and ones: binarise each at its own mean, within each
# person, for instance ``signals.groupby(person).transform(lambda column: column > column.mean())``.
# Results depend on where you cut; try another threshold at the end.
#
# The model
# ---------
#
# Energy landscape analysis takes all pairs for coupled and fits the pairwise model by maximum
# likelihood, which is exact for up to 24 columns. (With many columns and few rows, ``AutoIsing``
# keeps the pairs that the data support, and its model has a landscape just as well.)

fit = ik.MaximumLikelihoodIsing(method="exact").fit(active)
found = ik.landscape(fit.model_, active, groups=person)
print(found)

# %%
# One row a minimum, the lowest first. **depth** is how far one must climb to leave it, and
# **error** how well the data know that. **states** counts the patterns from which every step down
# leads here, its basin. **probability** is the basin's in the model and **rows** its share of the
# scans: they should agree. **stability** is how often the pattern is still a minimum when people
# are drawn anew. **accuracy** is the share of all that ties columns together that pairs explain.
#
# ``groups=person`` matters twice. Scans of one person are alike, so that errors must be between
# people; and the last scan of one person is not followed by the first of the next.
#
# The patterns themselves, and the disconnectivity graph: minima hang at their energies, and two
# branches join at the lowest pass between them.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.imshow(found.states.T, cmap="Blues", aspect="auto", vmin=-1.5)
left.set_yticks(range(9), regions)
left.set_xticks(range(found.n_minima), range(1, found.n_minima + 1))
left.set_xlabel("minimum")
ik.plot_disconnectivity(found, right)

# %%
# Which of them are real?
# -----------------------
#
# A fitted model may have minima that are nothing but noise: shallow dents that other rows would not
# have. A minimum that lies below its way out by less than two standard errors is merged into its
# neighbour; ``resolution=0`` keeps all of them. With five people instead of forty:

few = person <= 5
of_few = ik.MaximumLikelihoodIsing(method="exact").fit(active[few]).model_
for resolution in (0, 2):
    some = ik.landscape(of_few, active[few], groups=person[few], resolution=resolution)
    depths = ", ".join(
        f"{depth:.2f} ± {error:.2f}"
        for depth, error in zip(some.depths, some.depth_errors, strict=True)
    )
    print(f"resolution {resolution}: {some.n_minima} minima, depths {depths}")

# %%
# Two of these minima are shallower than twice their errors. They happen to be real here, but five
# people cannot show it.
#
# Here we know the truth. Are the minima of forty people those that we planted?

planted = ik.landscape(truth)
same = {tuple(state) for state in planted.states} == {tuple(state) for state in found.states}
print(f"{planted.n_minima} planted, {found.n_minima} found; the same: {same}")
print(planted.barriers().round(2))
print(found.barriers().round(2))

# %%
# ``barriers()`` has the climb from the minimum of the row to that of the column.
#
# From state to state
# -------------------
#
# ``visits`` has the basin and the energy of every row, how often one basin follows another, and how
# many scans a visit lasts. Nothing of this went into the fit, which knows no order of rows; so it
# is worth looking at whether low barriers are crossed more often.

visits = found.visits
numbers = [str(k + 1) for k in range(found.n_minima)]
print(pd.DataFrame(visits.transitions, index=numbers, columns=numbers))
print("scans a visit:", visits.stays.round(1))

one = np.flatnonzero(person == 1)
fig, ax = plt.subplots(figsize=(8, 2.2), layout="constrained")
ax.step(range(len(one)), visits.basins[one] + 1, where="mid")
ax.set(xlabel="scan of the first person", ylabel="basin", yticks=range(1, found.n_minima + 1))

# %%
# To compare people, count by person: ``visits.basins`` is in the order of the rows.

by_person = pd.crosstab(person, visits.basins + 1, normalize="index")
by_person.describe().loc[["mean", "std", "min", "max"]].round(2)

# %%
# Is it critical?
# ---------------
#
# Some ask whether the brain sits where a model is most susceptible. Divide all energies by a
# temperature: at 1 we have the model as it is. The heat capacity says how much the energy
# fluctuates; a peak near 1 is what people call critical. Beware: small and finite models have a
# broad peak somewhere near 1 for dull reasons, and a peak alone says little.

temperatures = np.linspace(0.3, 4, 60)
heat = ik.heat_capacity(fit.model_, temperatures)
fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.plot(temperatures, heat.heat_capacity, label="heat capacity")
ax.plot(temperatures, heat.multi_information, ls="--", label="multi-information")
ax.axvline(1, color="0.7", lw=1)
ax.set(xlabel="temperature", ylabel="nats")
ax.legend(frameon=False)

# %%
# Alternative stable states
# -------------------------
#
# In ecology the landscape itself changes with the environment. Six plants, of which three help each
# other in the open and three in the shade, along a gradient of rain: learn the network with rain as
# a covariate, then look at the landscape where it is dry and where it is wet.

plants = ["grass", "herb", "legume", "shrub", "fern", "moss"]
side = np.array([1, 1, 1, -1, -1, -1])
links = 0.14 * np.outer(side, side)
np.fill_diagonal(links, 0)
rng = np.random.default_rng(3)
rain = rng.normal(size=1500)
plots = np.empty((1500, 6))
for k, amount in enumerate(rain):
    world = ik.IsingModel(links, fields=-0.5 * amount * side)
    plots[k] = np.asarray(ik.exact(world).sample(n_samples=1, random_state=rng))
learnt = ik.AutoIsing().fit(
    pd.DataFrame(plots > 0, columns=plants), covariates=pd.DataFrame({"rain": rain})
)
model = learnt.model_
for words, amount in (("dry", -2.0), ("average", 0.0), ("wet", 2.0)):
    fields = model.fields + amount * model.effects.values[:, 0]
    here = ik.landscape(ik.IsingModel(model.couplings, fields, plants))
    print(f"{words}, number of minima: {here.n_minima}")
    for state, probability in zip(here.states, here.probabilities, strict=True):
        present = [name for name, spin in zip(plants, state, strict=True) if spin > 0]
        print(f"   {probability:.2f} {', '.join(present)}")

# %%
# Between dry and wet there are two states for one amount of rain; at the ends there is one. That is
# what is meant by alternative stable states, and barriers say how hard it is to go from one to the
# other.
#
# What could mislead you
# ----------------------
#
# * **A minimum without rows.** Pairs can imply patterns that never occur. Compare probability and
#   rows; if they differ, the model misses something that pairs cannot say.
# * **Accuracy of few rows.** It compares entropies, and the entropy of few rows of many columns is
#   far too small; then the accuracy is, too, and a note says so.
# * **One long series.** Rows next to each other are alike. Without ``groups`` errors are too small:
#   give consecutive blocks, ``groups=np.arange(n_rows) // 50``, longer than the series remembers.
# * **More than 24 columns.** Minima are then those that descents from rows and from samples find,
#   and barriers are upper bounds.
# * **Depth is not time.** Barriers are of the model; how fast rows cross them is in the data only.
#
# Take it with you
# ----------------
#
# .. code-block:: sh
#
#    isingkit fit scans.csv --drop person --method maximum-likelihood --set threshold=0 --set l2=0
#    isingkit landscape scans-fit --data scans.csv --row-groups person -o scans-landscape
#
# (The command line adds a slight penalty, ``l2``, unless told otherwise.) The report of the fit has
# the resting states, too. A file of the energy landscape analysis toolbox, a line a region and a
# column a scan, is read as it is; where lines begin with names of regions, these are used:
#
# .. code-block:: sh
#
#    isingkit fit testdata.dat --transpose --method maximum-likelihood --set threshold=0 --set l2=0
#    isingkit landscape testdata-fit --data testdata.dat --transpose
