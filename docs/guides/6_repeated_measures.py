"""
I have repeated measures
========================

A hundred and fifty people kept a diary for six weeks: once a week each of them ticked which of
twenty things had happened. That makes nine hundred rows, but not nine hundred people. A week is
much like the week before, and what you see twice you have not learned twice.

The same goes for patients with several visits, sites that were visited every year, trials of one
animal, pupils of one class: rows that belong together. This guide shows what goes wrong when
nobody says so, what to pass, and what ``AutoIsing`` notices by itself.
"""

# %%
# The data
# --------
#
# We plant a network of thirty links among twenty things. Each person starts anywhere; from one
# week to the next, three things in ten are looked at anew, given all others, and the rest stays as
# it was.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import isingkit as ik

things = [
    "stress", "argument", "headache", "poor sleep", "tired", "low mood", "worried", "lonely",
    "bored", "late work", "coffee", "alcohol", "sweets", "sport", "outdoors", "friends",
    "laughed", "read", "cooked", "illness",
]  # fmt: skip
network = ik.random_regular(n_spins=20, degree=3, coupling=0.3, random_state=4)
truth = ik.IsingModel(network.couplings, fields=np.full(20, -0.2), names=things)


def diary(n_people, n_weeks, random_state):
    """One row a person and week, week after week."""
    rng = np.random.default_rng(random_state)
    couplings = truth.couplings.toarray()
    state = np.asarray(ik.sample(truth, n_samples=n_people, random_state=random_state), float)
    weeks = [state.copy()]
    for _ in range(1, n_weeks):
        for thing in range(len(things)):
            odds = np.exp(2 * (state @ couplings[thing] + truth.fields[thing]))
            new = np.where(rng.random(n_people) < odds / (1 + odds), 1.0, -1.0)
            is_new = rng.random(n_people) < 0.3
            state[is_new, thing] = new[is_new]
        weeks.append(state.copy())
    table = pd.DataFrame(np.concatenate(weeks) > 0, columns=things)
    table.insert(0, "person", np.tile(np.arange(1, n_people + 1), n_weeks))
    return table


table = diary(n_people=150, n_weeks=6, random_state=1)
person = table["person"]
answers = table.drop(columns="person")
table.iloc[[0, 150, 300, 450], :8]

# %%
# What goes wrong
# ---------------
#
# ``rows="independent"`` takes every row for another person, and ``hidden=0`` all that goes together
# for links. (We collect warnings to print them; without that they go to the screen by themselves.)


def fitted(data, groups=None, **settings):
    """A fit, and its warnings printed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = ik.AutoIsing(**settings).fit(data, groups=groups)
    for warning in caught:
        print("warning:", warning.message)
    return fit


naive = fitted(answers, rows="independent", hidden=0)
scores = ik.score(naive.model_, truth)
print(f"{naive.model_.n_edges} edges, of which {scores.false_positives} are false")

# %%
# It was promised that one edge in twenty is false. The first warning says why that did not hold.
# The second takes the same for a cause that nobody measured: rows that are alike make pairs look
# alike. It goes once rows are taken for what they are.
#
# Couplings themselves are not wrong on average: only how sure we are of them is, and what is not
# sure comes in as an edge.
#
# Say which rows belong together
# ------------------------------
#
# ``groups`` has one label for each row, in any order of rows. Sums are then taken within a person
# before anything is said about how much they vary, so that people are the samples, not weeks.

fit = fitted(answers, groups=person)
scores = ik.score(fit.model_, truth)
print(f"{fit.model_.n_edges} edges, of which {scores.false_positives} are false")

# %%
# Edges have larger errors now, and intervals are wider. The check "rows alike" says by how much:

checks = {check.check: check for check in fit.diagnostics_}
print(checks["rows alike"].words)
print(checks["few groups"].words)
print(checks["few samples"].words)

# %%
# Nine hundred rows are worth some 450 independent ones here. That is more than 150: asking a person
# again tells something, but less than asking another one.

errors = pd.DataFrame(
    {
        "rows independent": naive.edges_.to_pandas().set_index(["source", "target"])["std_error"],
        "by person": fit.edges_.to_pandas().set_index(["source", "target"])["std_error"],
    }
).dropna()
fig, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
ax.scatter(errors["rows independent"], errors["by person"], color="tab:blue")
largest = errors.max().max()
ax.plot([0, largest], [0, largest], color="gray", lw=1)
ax.set(xlabel="standard error, rows independent", ylabel="standard error, by person")

# %%
# What it finds by itself
# -----------------------
#
# If nobody says anything, ``rows="auto"`` looks: are rows more alike than the network explains,
# next to each other or anywhere in the table? What it finds goes into all errors. Here it has to do
# without the names of people, and without any order:

shuffled = answers.sample(frac=1, random_state=0)
auto = fitted(shuffled)
scores = ik.score(auto.model_, truth)
print(f"{auto.model_.n_edges} edges, of which {scores.false_positives} are false")

# %%
# That is a net, not a substitute. It sees rows that are alike in many columns; with ten columns, or
# with columns that are nearly always the same, rows are alike by nature and nothing can be seen.
# You know who filled in which row: pass it.
#
# Was it luck? Ten diaries of other people, with the share of false edges, of planted links that
# were found, and of 95 percent intervals of planted links that hold the coupling:

planted = truth.couplings.toarray()
rows = []
for number in range(10):
    again = diary(n_people=150, n_weeks=6, random_state=100 + number)
    data = again.drop(columns="person")
    for what, settings, groups in (
        ("independent", {"rows": "independent"}, None),
        ("auto", {}, None),
        ("groups=", {}, again["person"]),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = ik.AutoIsing(**settings).fit(data, groups=groups)
        scores = ik.score(one.model_, truth)
        first = [things.index(name) for name in one.edges_["source"]]
        second = [things.index(name) for name in one.edges_["target"]]
        true = planted[first, second]
        low, high = one.intervals_.T
        holds = ((low <= true) & (true <= high))[true != 0].mean()
        rows.append((what, 1 - scores.precision, scores.recall, holds))
columns = ["rows", "false", "found", "intervals hold"]
pd.DataFrame(rows, columns=columns).groupby("rows", sort=False).mean().round(2)

# %%
# Few people
# ----------
#
# Twelve people and seventy-five weeks are as many rows, but how much people vary can be told from
# twelve of them only roughly. Fewer than twenty groups come with a warning:

few = diary(n_people=12, n_weeks=75, random_state=2)
of_few = fitted(few.drop(columns="person"), groups=few["person"])
print(f"{of_few.model_.n_edges} edges, {ik.score(of_few.model_, truth).false_positives} false")

# %%
# and fewer than eight are refused:

five = few[few["person"] <= 5]
try:
    ik.AutoIsing().fit(five.drop(columns="person"), groups=five["person"])
except ik.exceptions.FewGroupsError as problem:
    print(problem)

# %%
# What could mislead you
# ----------------------
#
# * **Groups that are too small.** If families were asked, and people of a family are alike, the
#   family is the group. Take the largest unit that shares something; there must be enough of them.
# * **People who differ for good.** Someone who is ill all year ticks "tired" and "poor sleep" every
#   week. ``groups`` makes errors right about that, but the network remains one of weeks *and* of
#   people: links may be about who you are, not about what happens in a week. If you know what
#   people differ in, pass it as ``covariates`` (:doc:`4_presence_absence`).
# * **One long series.** One person, a thousand days: there is only one group, and neighbouring days
#   are alike. That is ``rows="ordered"`` (:doc:`2_spikes`).
# * **Equal rows that count.** A table of patterns and how often each was seen is no repetition:
#   pass the numbers as ``counts``.
#
# Take it with you
# ----------------
#
# From the command line, with the diary as a file:
#
# .. code-block:: sh
#
#    isingkit fit diary.csv --row-groups person
