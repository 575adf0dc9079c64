"""
I have a presence-absence table
===============================

Twenty bird species, four hundred sites, present or absent. Some species occur together more often
than chance, some less. Which pairs go together because they have something to do with each other,
and which only because they like the same habitat?

This guide shows the one mistake that matters most with such data, how to notice it, and two ways
out: say what you know of the sites, or let isingkit find what they have in common.
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
# First with the birds alone, and ``hidden=0``, which takes all that goes together for links:


def fitted(data, covariates=None, **settings):
    """A fit, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ik.AutoIsing(**settings).fit(data, covariates=covariates)


def compared(what, found):
    """Edges found, false and missed, in one line."""
    scores = ik.score(found.model_, truth)
    wrong = f"{scores.false_positives} false, {scores.false_negatives} missed"
    print(f"{what}: {found.model_.n_edges} edges, {wrong}")


birds = fitted(counts, binarize=0, hidden=0)
compared("birds alone", birds)

# %%
# That is the trap: more false links than true ones, each with a small q-value. Of your own data you
# would not know. The check "hidden cause" tells, and comes as a warning, too:

checks = {check.check: check for check in birds.diagnostics_}
print(checks["hidden cause"].words)

# %%
# Tell what you know
# ------------------
#
# If you know the habitat, pass it as ``covariates``: a table with one row a site, of numbers
# (moisture, altitude) or categories. They say how likely each species is at a site, and are no part
# of the network. Species that go together only because of them are no longer tied.

presence = counts > 0
habitat = pd.DataFrame({"habitat": np.where(is_wetland, "wetland", "dry land")}, index=counts.index)
fit = fitted(presence, covariates=habitat)
compared("with the habitat", fit)

# %%
# ``covariate_effects_`` says who follows what, surest first:

effects = fit.covariate_effects_.to_pandas()
follows = effects["q_value"] < 0.05
likes = set(effects["variable"][follows & (effects["effect"] > 0)])
avoids = set(effects["variable"][follows & (effects["effect"] < 0)])
print(f"{len(likes)} species like the wetland, {len(avoids)} avoid it:", end=" ")
print("as planted" if (likes, avoids) == (set(wet), set(dry)) else "not as planted")
effects.head(5).drop(columns="p_value").round({"effect": 2, "std_error": 2, "z": 1})

# %%
# The edges between species, and how sure they are. Positive: found together more often than the
# habitat and all other species explain. Negative: less often. ``q_value``: in a list cut at 0.05,
# one edge in twenty is expected to be false.

edges = fit.edges_.to_pandas()
edges.drop(columns="p_value").round({"coupling": 2, "std_error": 3, "z": 1})

# %%
# If nobody wrote the habitat down
# --------------------------------
#
# ``hidden="auto"``, which is what you get if you say nothing, looks for causes that act on many
# species. Each site gets a score, and edges are those that the score does not explain:

found = fitted(presence)
compared("with the cause that was found", found)
print(next(check.words for check in found.diagnostics_ if check.check == "hidden cause"))

# %%
# Look at ``hidden_``: who has which loading often tells what the cause is. The sign of a score
# means nothing; here it happens to be high on wetland.

score = found.hidden_.scores[:, 0]
loadings = pd.Series(found.hidden_.loadings[:, 0], index=species).sort_values()
errors = pd.Series(found.hidden_.std_errors[:, 0], index=species)[loadings.index]
print(f"correlation of the score with the habitat: {abs(np.corrcoef(score, is_wetland)[0, 1]):.2f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
colours = ["tab:blue" if name in wet else "tab:olive" for name in loadings.index]
left.barh(loadings.index, loadings, xerr=1.96 * errors, color=colours)
left.set(xlabel="loading, with 95 percent intervals", title="species of wetland in blue")
left.tick_params(axis="y", labelsize=8)
for where, colour in ((is_wetland, "tab:blue"), (~is_wetland, "tab:olive")):
    right.hist(score[where], bins=np.linspace(-2.5, 2.5, 26), color=colour, alpha=0.6)
right.set(xlabel="score", ylabel="sites", title="sites of wetland in blue")

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
# **More sites do not help against a cause.** We repeat the survey with weaker and stronger
# preferences and with more sites, and count false edges (and those missed), and whether the check
# speaks:


def false_and_missed(found):
    scores = ik.score(found.model_, truth)
    return f"{scores.false_positives} ({scores.false_negatives})"


rows = []
for preference in (0.0, 0.3, 0.5):
    for n_sites in (200, 400, 1500):
        sites = rng.random(n_sites) < 0.5
        shift = 2 * preference * prefers
        wet_sites = ik.sample(ik.IsingModel(couplings, common + shift), n_sites, random_state=5)
        dry_sites = ik.sample(ik.IsingModel(couplings, common - shift), n_sites, random_state=6)
        world = pd.DataFrame(np.where(sites[:, None], wet_sites, dry_sites) > 0, columns=species)
        alone = fitted(world, hidden=0)
        speaks = any(one.check == "hidden cause" and one.serious for one in alone.diagnostics_)
        informed = fitted(world, covariates=pd.DataFrame({"wetland": sites}))
        guessed = fitted(world)
        three = [false_and_missed(one) for one in (alone, informed, guessed)]
        rows.append((preference, n_sites, *three, "yes" if speaks else "no"))
columns = ["preference", "sites", "hidden=0", "covariates", 'hidden="auto"', "check speaks"]
pd.DataFrame(rows, columns=columns)

# %%
# Without remedy, the more sites, the *more* false edges: with much data even a weak common cause is
# significant in every pair. Small q-values do not protect you. Both remedies do. Where sites are
# few and the preference is strong, a score made of the birds themselves costs links: at 200 sites 8
# of 15 are missed, with the known habitat 4. What you can measure, measure.
#
# **Causes that cannot be found.** ``hidden="auto"`` sees what acts on many species. A cause of two
# or three looks like links between these. With a dozen species and several gradients little can be
# told, as below.
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
    halves = ik.AutoIsing().stability(presence, covariates=habitat, n_resamples=50, random_state=0)
pd.DataFrame(halves.edges).head(18).round(2)

# %%
# Two real tables
# ---------------
#
# Planted birds are easy. These numbers are from ``tests/test_real_causes.py``, for the tables are
# not part of the package.
#
# *Eucalypts*: 12 species at 458 sites, with nine covariates. Neighbouring rows of the table are
# alike; AutoIsing says so, and makes errors 1.8 times as large. One edge passes: ARE and GON, with
# a coupling of 0.98. Given the covariates it goes. Both species follow the variation of temperature
# (effects 1.04 and 1.38 of one standard deviation), and this covariate alone takes the edge. The
# habitat also explains some of what neighbouring sites share: errors are then 1.4 times as large,
# and two pairs appear that avoid each other, BAX and ALP (-0.80), ARE and BAX (-0.87).
#
# Whoever takes the sites for independent (``rows="independent"``) gets 29 edges without covariates
# and 18 with them. Of the 16 edges that go, 15 have a covariate that both species follow, with the
# signs that make the edge; rocky ground alone takes six, such as that of ALP, which likes it, and
# ARO.SAB, which does not.
#
# *Fungi*: 11 species on 800 dead trunks, with 12 covariates. Ten edges become seven. Three of the
# four that go are of species that both like thick trunks, the fourth is of one that likes bark and
# one that does not. One edge is new: fompin and phenig both like thick trunks, and avoid each other
# there. Without the diameter the two cancel.
#
# In neither table does ``hidden="auto"`` find a cause: species are few, and there is more than one
# gradient. That nothing was found does not mean that nothing is there.
#
# Two hints for covariates. Of two that say nearly the same (here the latitude and the variation of
# temperature, a correlation of 0.99), give one: together neither is sure of its effect. And a
# species that never occurs in one category has an effect that the data leave open: it is kept
# finite, and says no more than "rare there".

# %%
# Take it with you
# ----------------

with TemporaryDirectory() as name:
    folder = Path(name)
    edges.to_csv(folder / "edges.csv", index=False)
    fit.model_.to_graphml(folder / "species.graphml")  # igraph in R, Cytoscape, Gephi
    fit.model_.to_adjacency(folder / "couplings.csv")
    fit.model_.save(folder / "species.npz")
    print(sorted(path.name for path in folder.iterdir()))
