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

import warnings
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

edges = fit.edges_.to_pandas()
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
# Missing answers
# ---------------
#
# People skip questions. Let every answer be missing with a probability of 15 percent. isingkit does
# not guess what to do about it:

holes = rng.random(table.shape) < 0.15
with_holes = table.astype(object).mask(holes)
try:
    ik.AutoIsing().fit(with_holes)
except ik.exceptions.MissingValuesError as problem:
    print(problem)

# %%
# ``missing="impute"`` draws the missing answers from the network, given what the person did answer,
# finds the network anew, and does so several times over. What is drawn helps to explain other
# answers but is never taken for an answer: an edge is tested among the people who answered both
# questions, and what the missing answers leave open is part of all errors. Beside it the other two
# ways:

rows = []
for policy in ("drop", "pairwise", "impute"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the rows left by "drop" are few
        one = ik.AutoIsing(missing=policy).fit(with_holes)
    scores = ik.score(one.model_, truth)
    error = one.edges_["std_error"].mean()
    rows.append((policy, one.n_samples_, scores.recall, scores.false_positives, error))
columns = ["missing", "rows", "found", "false edges", "mean std_error"]
pd.DataFrame(rows, columns=columns).round(2)

# %%
# Complete questionnaires are few, and most links are lost with the others. ``"pairwise"`` looks for
# each pair at the people who answered both questions and all that are linked to them; ``"impute"``
# completes the latter, and has more to look at: the more is missing, the more it is ahead.
#
# Whether an answer is missing may depend on other answers that are there: ``"impute"`` allows for
# it. It cannot know if "worthless" is skipped by those who feel it.
#
# Weights
# -------
#
# Surveys seldom ask everyone alike. Suppose that three thousand people were screened: all who said
# that they are sad or nervous were asked the rest, and one in five of all others. A person of the
# latter kind stands for five. That is a *weight*, and it comes with the table:

people = np.asarray(ik.sample(truth, n_samples=3000, random_state=13))
population = pd.DataFrame(people > 0, columns=questions)
chance = np.where(population["sad"] | population["nervous"], 1.0, 0.2)
is_asked = rng.random(3000) < chance
asked, weight = population[is_asked], 1 / chance[is_asked]
print(f"{len(asked)} people were asked")

# %%
# Without weights the way of asking becomes a finding. Among those asked, who is not sad is nervous:

planted = {frozenset(pair) for pair in links}


def false_edges(found):
    """Edges that were not planted, with their couplings."""
    ends = [(str(row["source"]), str(row["target"]), row["coupling"]) for row in found.edges_]
    return [f"{a} - {b} {value:+.2f}" for a, b, value in ends if {a, b} not in planted]


unweighted = ik.AutoIsing().fit(asked)
weighted = ik.AutoIsing().fit(asked, sample_weight=weight)
for what, one in (("without weights", unweighted), ("with weights", weighted)):
    error = one.edges_["std_error"].mean()
    print(f"{what}: {one.model_.n_edges} edges, mean error {error:.3f}, false {false_edges(one)}")

# %%
# Weights cost precision: ``n_samples_`` is what the weighted rows are worth. Only ratios of weights
# matter, so that it is all the same in which units they come:

thousands = ik.AutoIsing().fit(asked, sample_weight=1000 * weight)
same = np.allclose(thousands.edges_["q_value"], weighted.edges_["q_value"])
print(f"worth {weighted.n_samples_:.0f} people; the same with weights in thousands: {same}")

# %%
# A weight is not a *count*. If a row of your table says how many people gave just these answers,
# pass ``counts``, which is the same as repeating rows. Counts are evidence, weights are not: the
# same weights passed as counts pretend to three thousand interviews. (AutoIsing notices that so
# many people give just the same answers, and would allow for it; ``rows="independent"`` tells it
# not to.)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    as_counts = ik.AutoIsing(rows="independent").fit(asked, counts=weight.astype(int))
print(f"{as_counts.model_.n_edges} edges, of which {len(false_edges(as_counts))} are false")

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
# **A mixed group.** Patients and healthy people in one table: all symptoms go together, because
# being a patient goes with all of them. If you know who is who, pass it: ``fit(table,
# covariates=people[["group", "age"]])``. If not, the check "hidden cause" looks for it, and edges
# allow for what it finds. (In a real table, 18 symptoms of 355 children, the score that it found
# has a correlation of 0.92 with a diagnosis it had not seen: ``tests/test_real_causes.py``.)
# :doc:`The guide on presence and absence <4_presence_absence>` shows how.
#
# And what no check can see:
#
# * **Two questions that ask the same** ("sad", "feels down") share an edge that says nothing, and
#   take edges from each other. Keep one.
# * **Skipped questions.** If "how bad is it?" is only asked after a "yes", a missing answer is not
#   a "no", and nothing can be drawn for it: nobody was asked.
# * **The same people twice.** Waves of a survey are rows that belong together:
#   :doc:`6_repeated_measures`.
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
print("false edges:", false_edges(fit))
strict_scores = ik.score(strict.model_, truth)
print("with fwer: precision", strict_scores.precision, "recall", round(strict_scores.recall, 2))

# %%
# Take it with you
# ----------------
#
# ``isingkit fit survey.csv --id-column person`` does the same from the command line and writes a
# folder; ``--missing impute`` and ``--weights COLUMN`` are there, too. From Python:

with TemporaryDirectory() as name:
    folder = Path(name)
    edges.to_csv(folder / "edges.csv", index=False)  # with errors and q-values
    fit.model_.to_graphml(folder / "network.graphml")  # Gephi, Cytoscape, igraph in R
    fit.model_.to_adjacency(folder / "couplings.csv")  # the matrix, for R's qgraph
    fit.model_.save(folder / "network.npz")  # to load again: ik.IsingModel.load
    print(sorted(path.name for path in folder.iterdir()))
