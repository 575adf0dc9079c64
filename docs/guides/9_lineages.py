"""
I have genes that come and go together
======================================

Five hundred bacterial genomes, seven hundred genes, and for each whether a genome has it. Which
genes need each other, and which exclude each other? Nearly all pairs go together somehow, for
genomes of one lineage share their history: two genes that the same ancestor had by chance are in
all its descendants, and in none of the others.

The same goes for species of one archipelago, words of one dialect, members of one party: rows that
descend from few profiles. This guide shows what goes wrong when that is ignored, what ``AutoIsing``
finds by itself, and what to pass if you know the lineages.
"""

# %%
# The data
# --------
#
# We plant sixty couplings among six hundred genes and let them come and go along a tree. The root
# is old; eight founders descend from it, and from each founder the genomes of a lineage. Along a
# branch a gene is drawn anew now and then, given its partner, if it has one. A fifth as many genes
# repeat the profile of another: they lie next to it and are never seen without it.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import isingkit as ik

n_genes, n_lineages, n_genomes = 600, 8, 500
rng = np.random.default_rng(1)
pairs = rng.permutation(n_genes)[:120].reshape(-1, 2)
partner = np.full(n_genes, -1)
partner[pairs[:, 0]], partner[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
is_second = np.isin(np.arange(n_genes), pairs[:, 1])
share = rng.uniform(0.15, 0.85, n_genes)
fields = np.log(share / (1 - share)) / 2


def along(genome, length):
    """A genome at the end of a branch."""
    genome = genome.copy()
    for _ in range(round(length / 0.1)):
        for half in (~is_second, is_second):
            of_partner = np.where(partner >= 0, genome[partner], 0)
            up = 1 / (1 + np.exp(-2 * (fields + 1.0 * of_partner)))
            changes = half & (rng.random(n_genes) < 0.1)
            genome = np.where(changes, np.where(rng.random(n_genes) < up, 1, -1), genome)
    return genome


root = along(np.where(rng.random(n_genes) < 0.5, 1, -1), 10.0)
sizes = rng.dirichlet(np.full(n_lineages, 3.0))
lineage = np.sort(rng.choice(n_lineages, n_genomes, p=sizes))
founders = [along(root, 1.0) for _ in range(n_lineages)]
genomes = np.array([along(founders[k], 0.5) for k in lineage])
copied = rng.choice(n_genes, 120)
names = [f"gene{j}" for j in range(n_genes)] + [f"copy{j}" for j in range(120)]
table = pd.DataFrame(np.column_stack([genomes, genomes[:, copied]]) > 0, columns=names)
planted = {frozenset((f"gene{a}", f"gene{b}")) for a, b in pairs}
table.iloc[:4, :8]

# %%
# What goes wrong
# ---------------
#
# ``rows="independent", hidden=0`` takes each genome for a draw of its own and all that goes
# together for couplings. ``merge_alike=True`` makes one of columns that are equal, or opposite, in
# every row: nothing in the data can tell these apart. (Beyond 1000 columns that is the default.)


def fitted(covariates=None, **settings):
    """A fit, and how many of its edges were planted, and were not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # we print what they say ourselves
        fit = ik.AutoIsing(merge_alike=True, **settings).fit(table, covariates=covariates)
    edges = fit.edges_
    found = {frozenset(pair) for pair in zip(edges["source"], edges["target"], strict=True)}
    print(f"{len(found & planted)} of {len(planted)} couplings, and {len(found - planted)} others")
    return fit


naive = fitted(rows="independent", hidden=0)

# %%
# More than a thousand edges, nearly all of them history. The check "rows alike" sees it:

print({check.check: check for check in naive.diagnostics_}["rows alike"].words)

# %%
# What it finds by itself
# -----------------------
#
# With nothing set, ``AutoIsing`` looks at what nearly all pairs of columns share beyond the edges
# it is sure of. Where that is more than chance makes, and few principal components of the table
# explain it, these are taken for hidden causes, and edges are those that they do not explain.

fit = fitted()
checks = {check.check: check for check in fit.diagnostics_}
print(len(fit.alike_), "columns merged")
print(checks["hidden cause"].words)

# %%
# The causes are the lineages. ``hidden_`` has a score of each genome; nobody told it the colours:

scores = fit.hidden_.scores
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for ax, (first, second) in zip(axes, ((0, 1), (2, 3)), strict=True):
    ax.scatter(scores[:, first], scores[:, second], c=lineage, cmap="tab10", s=8)
    ax.set(xlabel=f"score {first + 1}", ylabel=f"score {second + 1}")

# %%
# You may also say how many to take. Twice as many as there are lineages find two couplings fewer.

asked = fitted(hidden=8)

# %%
# If you know the lineages
# ------------------------
#
# Sequence types, clades of a tree, clusters of another program: pass them. A category a row is
# enough, and finds the most:

told = fitted(covariates=pd.DataFrame({"lineage": [f"L{k}" for k in lineage]}))

# %%
# Not all couplings are found this way either. Two genes that never change within a lineage say
# nothing about each other there, and eight founders are eight observations: who counts genomes
# counts the same event again and again. The edges that are left rest on changes within lineages.
#
# What is left
# ------------

told.edges_.to_pandas().head(8)[["source", "target", "coupling", "low", "high", "q_value"]]

# %%
# Genes that repeat a profile are one with it: read an edge of ``gene12`` as one of ``gene12`` or
# any of the columns that ``alike_`` lists for it.

told.alike_.to_pandas().head(4)

# %%
# What could mislead you
# ----------------------
#
# * **A tree without few lineages.** Where genomes split all the way, every clade has a profile of
#   its own and no thirty components explain the table. ``AutoIsing`` then counts rows for as many
#   as nearly all pairs of columns seem to show, which may be very few, and finds hardly an edge
#   rather than thousands. Pass what you know of the tree: clades as a covariate, or clusters of
#   clones as ``groups`` (:doc:`6_repeated_measures`).
# * **Genes on one plasmid.** They come and go together and are coupled in this sense. Equal columns
#   are merged; ``merge_alike=0.98`` merges nearly equal ones, too.
# * **Rare genes.** A gene in five genomes can hardly be seen to need another. ``--min-count 13``
#   leaves out columns whose rarer value occurs less often, and says which.
#
# Take it with you
# ----------------
#
# From the command line, with a table of Roary or Panaroo:
#
# .. code-block:: sh
#
#    isingkit fit gene_presence_absence.Rtab --min-count 13 --hidden 20
