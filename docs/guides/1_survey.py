"""
I have a survey
===============

You asked a few hundred people sixteen yes/no questions about how they feel. Some answers go
together. You want to know which ones are linked *directly*: whether bad sleep and worrying go
together by themselves, or only because both go with being tired.

A table of correlations cannot tell. A network of couplings can, as far as the answers allow: an
edge between two questions means that they still go together among people whose other answers are
the same.
"""

# %%
# The data
# --------
#
# So that we can check the answer at the end, we make the survey ourselves. Skip this block when
# you have your own: all you need is a table with one row a person and one column a question, as
# ``pandas.read_csv`` gives it.

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import isingkit as ik

links = {
    ("sad", "no interest"): 0.55, ("sad", "worthless"): 0.40, ("no interest", "slow"): 0.30,
    ("tired", "slow"): 0.35, ("tired", "bad sleep"): 0.50, ("bad sleep", "worried"): 0.25,
    ("tired", "unfocused"): 0.35, ("no appetite", "sad"): 0.30, ("nervous", "worried"): 0.55,
    ("worried", "tense"): 0.40, ("tense", "restless"): 0.50, ("restless", "irritable"): 0.35,
    ("nervous", "afraid"): 0.35, ("afraid", "racing heart"): 0.45,
    ("afraid", "avoids people"): 0.30, ("worthless", "avoids people"): 0.30,
    ("unfocused", "restless"): 0.25, ("bad sleep", "irritable"): 0.20,
}  # fmt: skip
questions = sorted({name for pair in links for name in pair})
couplings = pd.DataFrame(0.0, index=questions, columns=questions)
for (one, other), strength in links.items():
    couplings.loc[one, other] = couplings.loc[other, one] = strength
rng = np.random.default_rng(1)
truth = ik.IsingModel(couplings, fields=rng.uniform(-0.6, 0.0, len(questions)))

answers = np.asarray(ik.sample(truth, n_samples=800, random_state=1))
survey = pd.DataFrame(np.where(answers > 0, "yes", "no"), columns=questions)
how_tired = rng.integers(1, 4, len(survey))  # 0 never ... 3 nearly every day
survey["tired"] = np.where(survey["tired"] == "yes", how_tired, 0)
survey.insert(0, "person", [f"P{number:04d}" for number in range(1, 801)])
survey.iloc[:5, :7]

# %%
# Fit
# ---
#
# Put the table in as it is, without the column that names the people. What cannot be read is
# refused with a sentence that says why:

table = survey.drop(columns="person")
try:
    ik.AutoIsing().fit(table)
except ik.exceptions.SpinValueError as problem:
    print(problem)

# %%
# "tired" was asked on a scale from 0 to 3. Where to cut such a scale is your decision, and it
# should be made before you look at the network. Here: anything above "never" counts.

table["tired"] = table["tired"] >= 1
fit = ik.AutoIsing().fit(table)
print(fit.model_)

# %%
# ``mapping_`` says how each column was read, the value that became -1 first. Look at it once: a
# question read the wrong way round turns the sign of all its edges.

for name in ("sad", "tired"):
    low, high = fit.mapping_[list(table.columns).index(name)]
    print(f"{name}: {low!r} is -1, {high!r} is +1")

# %%
# The edges, and how sure they are
# --------------------------------
#
# ``coupling`` is the strength: with everything else the same, a "yes" to one question multiplies
# the odds of a "yes" to the other by exp(4 coupling). ``std_error`` is its standard error. With 95
# percent confidence the coupling is between ``low`` and ``high``, which allow for luck: an edge
# that was only just found may be weaker than it looks.
# ``q_value`` is about the edge being there at all: in a list that is cut at a q-value of 0.05,
# about one edge in twenty is expected to be false. That is what ``AutoIsing`` does by itself.

edges = pd.DataFrame(fit.edges_)
edges[["low", "high"]] = fit.intervals_
edges["odds ratio"] = np.exp(4 * edges["coupling"])
edges.drop(columns="p_value").round(
    {"coupling": 2, "std_error": 3, "z": 1, "low": 2, "high": 2, "odds ratio": 1}
)

# %%
# The edges at the end of the list deserve doubt: their q-values are close to the limit. If a false
# edge would hurt more than a missed one, ask for ``control="fwer"``: the probability of *any*
# false edge in the whole network is then at most 0.05.

strict = ik.AutoIsing(control="fwer").fit(table)
print(f"{len(fit.edges_)} edges with fdr, {len(strict.edges_)} with fwer")

# %%
# A picture
# ---------
#
# Blue edges join questions that are answered alike, dashed orange ones would join opposite
# answers; wide is strong. Where a question stands means little: the drawing only tries to keep
# neighbours close.

fit.model_.plot()

# %%
# The same as a heat map, which hides nothing behind anything:

ik.plot_couplings(fit.model_)

# %%
# Does the network explain the data? We draw new "people" from the model and compare. Each point is
# a pair of questions; a good model has them on the diagonal.

ik.plot_fit_check(fit.model_, table)
print(ik.fit_check(fit.model_, table).words())

# %%
# What could mislead you
# ----------------------
#
# ``diagnostics_`` is a list of checks. Serious ones also come as warnings when you fit.

for check in fit.diagnostics_:
    print(f"{'SERIOUS' if check.serious else 'fine   '}  {check.check}: {check.words}")

# %%
# How stable are the edges? ``stability`` fits random halves of the people. An edge that is found
# in nearly all halves is not an accident of this sample. Half the people find fewer edges, so a
# weak but true edge may have a low frequency.

stable = pd.DataFrame(ik.AutoIsing().stability(table, n_resamples=50, random_state=0).edges)
stable.head(22).round(2)

# %%
# One pair in full: what every step thought of it.

print(fit.explain("bad sleep", "worried"))

# %%
# And what no check can see:
#
# * **Two questions that ask the same** ("sad", "feels down") share an edge that says nothing, and
#   take edges from each other. Keep one.
# * **Skipped questions.** If "how bad is it?" is only asked after a "yes", a missing answer is not
#   a "no".
# * **A mixed group.** Patients and healthy people in one table: all symptoms go together, because
#   being a patient goes with all of them. :doc:`The guide on presence and absence
#   <4_presence_absence>` shows what that looks like.
# * **An edge has no direction.** Bad sleep may cause worrying, or the other way round, or both.
# * **An absent edge is not an absent link.** The line "few samples" above says how strong a
#   coupling must be to be found.
#
# Was it right?
# -------------
#
# We planted the network, so we can look. Precision is the fraction of edges found that are true,
# recall the fraction of true ones that were found.

scores = ik.score(fit.model_, truth)
print(f"precision {scores.precision:.2f}, recall {scores.recall:.2f}")
planted = {frozenset(pair) for pair in links}
false = [
    (row.source, row.target, round(row.q_value, 3))
    for row in edges.itertuples()
    if {row.source, row.target} not in planted
]
print("false edges, with their q-values:", false)
strict_scores = ik.score(strict.model_, truth)
print("with fwer: precision", strict_scores.precision, "recall", round(strict_scores.recall, 2))

# %%
# Take it with you
# ----------------
#
# ``isingkit fit survey.csv --id-column person`` does the same from the command line and writes a
# folder. From Python:

with TemporaryDirectory() as name:
    folder = Path(name)
    edges.to_csv(folder / "edges.csv", index=False)  # with errors and q-values
    fit.model_.to_graphml(folder / "network.graphml")  # Gephi, Cytoscape, igraph in R
    fit.model_.to_adjacency(folder / "couplings.csv")  # the matrix, for R's qgraph
    fit.model_.save(folder / "network.npz")  # to load again: ik.IsingModel.load
    print(sorted(path.name for path in folder.iterdir()))
