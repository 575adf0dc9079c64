"""
I have votes
============

Twenty-five members of a chamber, five hundred roll calls, yea or nay. You want to know who votes
with whom beyond party lines drawn by hand: which pairs pull each other, which push each other
away, and what the blocs are.

Roll calls have holes. Members are absent, or leave in mid-term and are replaced. This guide is
about them, too.
"""

# %%
# The data
# --------
#
# Two parties of twelve. Within each, members follow a few colleagues; a few members vote against
# one of the other party; Lodge and York are friends across the aisle. After 300 roll calls York
# leaves and Zane takes the seat, with the same allies. And anyone may miss a vote.

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import networkx as nx
import numpy as np
import pandas as pd

import isingkit as ik

greens = [
    "Abbot", "Bright", "Carver", "Dale", "Ellis", "Frost", "Gray", "Hale", "Irwin", "Jarvis",
    "Kemp", "Lodge",
]  # fmt: skip
blues = [
    "Marsh", "Nash", "Owens", "Pike", "Quill", "Reed", "Stone", "Tate", "Usher", "Vance", "Wells",
    "York",
]  # fmt: skip
planted = nx.Graph()
for party in (greens, blues):
    for seat in range(12):
        planted.add_edge(party[seat], party[(seat + 1) % 12], coupling=0.35)
    for seat in range(0, 12, 3):
        planted.add_edge(party[seat], party[(seat + 5) % 12], coupling=0.30)
for seat in range(0, 12, 3):
    planted.add_edge(greens[seat], blues[seat], coupling=-0.35)
planted.add_edge("Lodge", "York", coupling=0.25)

couplings = nx.to_pandas_adjacency(planted, nodelist=greens + blues, weight="coupling")
votes = np.asarray(ik.sample(ik.IsingModel(couplings), n_samples=500, random_state=8))
table = pd.DataFrame(np.where(votes > 0, "yea", "nay"), columns=greens + blues, dtype=object)
table = table.mask(np.random.default_rng(7).random(table.shape) < 0.04)
table["Zane"] = table["York"]
table.loc[300:, "York"] = None
table.loc[:299, "Zane"] = None
table.iloc[297:303, -4:].fillna("")

# %%
# What to do about holes
# ----------------------
#
# isingkit does not guess. It counts what is missing and asks you to decide:

try:
    ik.AutoIsing().fit(table)
except ik.exceptions.MissingValuesError as problem:
    print(problem)

# %%
# ``missing="drop"`` keeps complete rows. With York and Zane both in the table there are none:

try:
    ik.AutoIsing(missing="drop").fit(table)
except ik.exceptions.EmptyTableError as problem:
    print(problem)

# %%
# ``missing="impute"`` draws the missing votes from the network, given the votes that were cast in
# the same roll call, finds the network anew, and does so several times over. Nothing is thrown
# away, and nothing is made up: a drawn vote helps to explain other votes, but two members are
# compared only in roll calls in which both voted, and what the drawn votes leave open is part of
# all errors. (We collect warnings here to print them; without that they go to the screen by
# themselves.)


def fitted(data, **settings):
    """A fit, and its warnings printed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = ik.AutoIsing(**settings).fit(data)
    for warning in caught:
        print("warning:", warning.message)
    return fit


fit = fitted(table, missing="impute")
print(fit.model_)

# %%
# **Never fill holes with "nay".** It is tempting, and it invents politics. York and Zane now seem
# to be bitter opponents:

filled = fitted(table.fillna("nay"))
strongest = filled.edges_[:1].to_pandas().round({"coupling": 2, "std_error": 2, "z": 1})
print(strongest.to_string(index=False))

# %%
# For comparison, complete rows of those who sat through the whole term:

complete = fitted(table.drop(columns=["York", "Zane"]), missing="drop")
print(f"{complete.n_samples_:.0f} of 500 roll calls are complete")
print(f"{complete.model_.n_edges} edges instead of {fit.model_.n_edges}")

# %%
# And ``missing="pairwise"``, which draws nothing: it looks at two members in the roll calls in
# which both voted *and* all who are linked to them.

pairwise = fitted(table, missing="pairwise")
print(f"{pairwise.model_.n_edges} edges")

# %%
# The warning is right for both ways: York and Zane never voted together, so nobody can know whether
# they would agree.

# %%
# The edges, and how sure they are
# --------------------------------
#
# A positive coupling: two members vote alike more often than all others' votes explain. A negative
# one: they vote against each other. A q-value of 0.05 means that in a list cut there one edge in
# twenty is expected to be false.

edges = fit.edges_.to_pandas()
party = dict.fromkeys(greens, "green") | dict.fromkeys([*blues, "Zane"], "blue")
edges["parties"] = [
    " - ".join(sorted({party[row.source], party[row.target]})) for row in edges.itertuples()
]
edges.drop(columns="p_value").sort_values("coupling").head(8).round(
    {"coupling": 2, "std_error": 3, "z": 1}
)

# %%
edges.groupby("parties")["coupling"].agg(["count", "min", "mean", "max"]).round(2)

# %%
# A picture
# ---------
#
# Solid blue edges join members who vote alike, dashed orange ones members who vote against each
# other.

fit.model_.plot()

# %%
# Blocs
# -----
#
# The colours are communities: members whom couplings above 0 hold together, and couplings below 0
# do not drive apart.

found = ik.communities(fit.model_)
blocs = found.table()
for number in range(1, found.n_communities + 1):
    print(sorted(blocs["name"][blocs["community"] == number].tolist()))

# %%
# The blocs are parts of the parties, for each party is a ring of people who follow their
# neighbours: no bloc crosses the aisle, and one could cut a ring elsewhere as well. Blocs of a
# method like this are a summary, not a finding.
#
# What could mislead you
# ----------------------
#
# **Who left, and who came.** Zane has the same allies as York, and was there for 200 roll calls
# only. Two of Zane's four couplings are found:

edges[(edges["source"] == "Zane") | (edges["target"] == "Zane")].round(
    {"coupling": 2, "std_error": 3, "z": 1}
)

# %%
# Without drawing, one of the two is lost, whatever the votes say. Ask why:

print(pairwise.explain("Marsh", "Zane"))

# %%
# The screen saw the pair at once. But Marsh is York's ally, an edge is tested given the neighbours
# already found, and there is no roll call with Marsh, York and Zane: nothing can be tested, and
# z = 0 is what that looks like. Such an absent edge is unknown, not zero. ``"impute"`` knows what
# York would probably have voted.
#
# What 200 roll calls can find, if one looks at these alone:

late = fitted(table.loc[300:].drop(columns="York"), missing="impute")
print(next(check.words for check in late.diagnostics_ if check.check == "few samples"))

# %%
# **Lopsided and unanimous votes.** Where everyone votes yea, rows say nothing about couplings, but
# a chamber in which *most* votes are party votes acts like one big bloc: one mode carries most of
# the variance, and single couplings cannot be told apart. The check "common movement" looks at it.

for check in fit.diagnostics_:
    print(f"{'SERIOUS' if check.serious else 'fine   '}  {check.check}: {check.words}")

# %%
# **The agenda is a common cause.** Which bills come to a vote changes over a term. A network of
# the whole term mixes them. If you know what a bill was about, or who brought it in, pass that as
# ``covariates`` (:doc:`4_presence_absence`). Causes that nobody wrote down are looked for as well,
# but not where votes are drawn, as here. Or fit halves of the term, and compare.
#
# Was it right?
# -------------
#
# Precision is the fraction of edges found that were planted, recall the fraction of planted edges
# that were found. Zane was not planted; we leave the seat out.

true = {frozenset(edge) for edge in planted.edges}
for what, one in (("impute", fit), ("pairwise", pairwise)):
    found = {frozenset((str(row["source"]), str(row["target"]))) for row in one.edges_}
    found = {pair for pair in found if "Zane" not in pair}
    right = len(found & true)
    print(f"{what}: precision {right / len(found):.2f}, recall {right / len(true):.2f}")

# %%
# Take it with you
# ----------------

with TemporaryDirectory() as name:
    folder = Path(name)
    edges.to_csv(folder / "edges.csv", index=False)
    fit.model_.to_gexf(folder / "chamber.gexf")  # Gephi
    fit.model_.to_json(folder / "chamber.json")  # networkx, D3
    fit.model_.save(folder / "chamber.npz")
    print(sorted(path.name for path in folder.iterdir()))
