"""
I have a presence-absence table
===============================

Twenty bird species, four hundred sites, present or absent. Some species occur together more often
than chance, some less. Which pairs go together because they have something to do with each other,
and which only because they like the same habitat?

This guide shows the one mistake that matters most with such data, and how to notice it.
"""

# %%
# The data
# --------
#
# We plant fifteen links between species. Half of the sites are wetland; ten species prefer it and
# ten avoid it, all to the same degree. That preference is *not* a link between species.

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import isingkit as ik

wet = [
    "reed warbler", "bittern", "water rail", "moorhen", "coot", "grebe", "snipe", "teal", "heron",
    "kingfisher",
]  # fmt: skip
dry = [
    "great tit", "blue tit", "nuthatch", "treecreeper", "woodpecker", "jay", "robin", "wren",
    "blackcap", "chiffchaff",
]  # fmt: skip
links = {
    ("great tit", "blue tit"): 0.45, ("nuthatch", "woodpecker"): 0.40,
    ("treecreeper", "nuthatch"): 0.30, ("reed warbler", "bittern"): 0.40,
    ("moorhen", "coot"): -0.40, ("coot", "grebe"): 0.45, ("teal", "snipe"): 0.35,
    ("heron", "kingfisher"): 0.35, ("blackcap", "chiffchaff"): 0.45, ("robin", "wren"): -0.35,
    ("jay", "woodpecker"): -0.35, ("water rail", "moorhen"): 0.35, ("blackcap", "wren"): 0.30,
    ("great tit", "nuthatch"): 0.30, ("heron", "coot"): -0.30,
}  # fmt: skip
species = wet + dry
couplings = pd.DataFrame(0.0, index=species, columns=species)
for (one, other), strength in links.items():
    couplings.loc[one, other] = couplings.loc[other, one] = strength
truth = ik.IsingModel(couplings)

rng = np.random.default_rng(11)
common = rng.uniform(-0.5, 0.1, 20)  # how common each species is
prefers = np.array([0.5] * 10 + [-0.5] * 10)
n_sites = 400
is_wetland = rng.random(n_sites) < 0.5
birds_of_wetland = ik.IsingModel(couplings, common + prefers)
birds_elsewhere = ik.IsingModel(couplings, common - prefers)
on_wetland = ik.sample(birds_of_wetland, n_samples=n_sites, random_state=100)
elsewhere = ik.sample(birds_elsewhere, n_samples=n_sites, random_state=101)
present = np.where(is_wetland[:, None], on_wetland, elsewhere) > 0
counts = pd.DataFrame(present * rng.integers(1, 9, present.shape), columns=species)
counts.index = pd.Index([f"site {number}" for number in range(1, n_sites + 1)])
counts.iloc[:5, :8]

# %%
# Fit
# ---
#
# The field sheet has counts. Presence is a count above zero; ``binarize=0`` does just that. (A
# zero that stands for "not visited" must be made a missing value before; see :doc:`3_votes`.)
#
# First with the birds alone, as they come:


def fitted(data, **settings):
    """A fit, and its warnings printed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = ik.AutoIsing(**settings).fit(data)
    for warning in caught:
        print("warning:", warning.message)
    return fit


birds = fitted(counts, binarize=0)
print(birds.model_)

# %%
# Three warnings. The last one matters here. "One mode carries 31 percent of the variance" says
# that there is one thing along which all species move together. In a table of species that is
# nearly always the habitat.
#
# See it: the first principal component of the table orders the species by what they have in
# common. It has found the wetland.

presence = counts > 0
values, vectors = np.linalg.eigh(presence.corr())
mode = pd.Series(vectors[:, -1], index=species).sort_values()
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.barh(mode.index, mode, color=["tab:blue" if name in wet else "tab:olive" for name in mode.index])
ax.set(xlabel="weight in the mode that carries most variance", title="species of wetland in blue")
ax.tick_params(axis="y", labelsize=8)

# %%
# Make the cause a column
# -----------------------
#
# If you know the habitat, put it into the table as one more column. Species that go together only
# because of it are then no longer tied to each other, but each to the habitat.

with_habitat = presence.assign(wetland=is_wetland)
fit = fitted(with_habitat)
edges = pd.DataFrame(fit.edges_)
between = edges[edges["target"] != "wetland"]
print(f"edges between species: {birds.model_.n_edges} before, {len(between)} now")
print(f"edges between a species and the habitat: {len(edges) - len(between)}")

# %%
# The warning is still there, because the species still move together. But now the network knows
# why: the mode is the column "wetland".
#
# The edges between species, and how sure they are. Positive: found together more often than the
# habitat and all other species explain. Negative: less often. ``q_value``: in a list cut at 0.05,
# one edge in twenty is expected to be false.

between.drop(columns="p_value").round({"coupling": 2, "std_error": 3, "z": 1})

# %%
# A picture
# ---------

fig, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
birds.model_.plot(ax=left)
left.set_title("birds alone")
fit.model_.plot(ax=right)
right.set_title("with the habitat")

# %%
# What could mislead you
# ----------------------
#
# **A cause that nobody wrote down.** The checks notice a strong one. They do not notice every one.
# We repeat the survey with weaker and stronger preferences and with more sites, and count the
# false edges between species, and what the checks say:

pairs = {frozenset(pair) for pair in links}


def false_edges(found):
    """Edges between species that were not planted."""
    named = [frozenset((row["source"], row["target"])) for row in found.edges_]
    return len([pair for pair in named if "wetland" not in pair and pair not in pairs])


rows = []
for preference in (0.0, 0.3, 0.5):
    for n_sites in (200, 400, 1500):
        sites = rng.random(n_sites) < 0.5
        shift = 2 * preference * prefers
        wet_sites = ik.sample(ik.IsingModel(couplings, common + shift), n_sites, random_state=5)
        dry_sites = ik.sample(ik.IsingModel(couplings, common - shift), n_sites, random_state=6)
        world = pd.DataFrame(np.where(sites[:, None], wet_sites, dry_sites) > 0, columns=species)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = ik.AutoIsing().fit(world)
            informed = ik.AutoIsing().fit(world.assign(wetland=sites))
        serious = ", ".join(check.check for check in alone.diagnostics_ if check.serious)
        rows.append((preference, n_sites, false_edges(alone), false_edges(informed), serious))
pd.DataFrame(rows, columns=["preference", "sites", "false", "with habitat", "serious checks"])

# %%
# The more sites, the *more* false edges: with much data even a weak common cause is significant in
# every pair. Small q-values do not protect you. A question that does: is there anything that acts
# on many species and is no column? If so, measure it, or read the edges as "found together", not
# as "have to do with each other".
#
# A habitat that comes in degrees (moisture, altitude) helps as a column only as far as one cut
# describes it; two or three columns with different cuts describe more.
#
# **Sites that belong together.** Sites along a road, or visits to one site year after year, are no
# independent samples. Pass the road or the site as ``groups`` (:doc:`6_repeated_measures`). If you
# do not, the check "rows alike" may see it, and then errors allow for it.
#
# **Rare species.** A species seen at five sites can have no sure edge. It stays in the network
# without one, and that means nothing.
#
# How stable are the edges? Here is how often each is found in random halves of the sites:

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    halves = ik.AutoIsing().stability(with_habitat, n_resamples=50, random_state=0)
stable = pd.DataFrame(halves.edges)
stable[stable["target"] != "wetland"].head(18).round(2)

# %%
# Was it right?
# -------------

for what, table in (("birds alone", pd.DataFrame(birds.edges_)), ("with the habitat", between)):
    found = {frozenset((row.source, row.target)) for row in table.itertuples()}
    right = len(found & pairs)
    print(f"{what}: {right} of {len(pairs)} planted links found, {len(found) - right} false")

# %%
# Take it with you
# ----------------

with TemporaryDirectory() as name:
    folder = Path(name)
    between.to_csv(folder / "edges.csv", index=False)
    fit.model_.to_graphml(folder / "species.graphml")  # igraph in R, Cytoscape, Gephi
    fit.model_.to_adjacency(folder / "couplings.csv")
    fit.model_.save(folder / "species.npz")
    print(sorted(path.name for path in folder.iterdir()))
