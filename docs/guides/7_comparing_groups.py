"""
I want to compare two groups
============================

Two hundred and fifty patients and three hundred controls have answered the same twelve questions.
Do symptoms hang together in the same way in both? That is not the question how *often* each
symptom occurs: patients have more of all of them. It is the question whether the network differs,
and if so, where.

If you have used R's NetworkComparisonTest, this is what it asks. Here no network is learnt anew for
a permutation, so ten thousand of them take a second; there may be more than two groups, and people
who answered several times.
"""

# %%
# The data
# --------
#
# We plant a network of symptoms. Among patients one link of appetite has the other sign, and they
# have more of all symptoms.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import isingkit as ik

symptoms = [
    "low mood", "no interest", "appetite", "sleep", "restless", "tired", "guilt", "concentration",
    "irritable", "worried", "tense", "headache",
]  # fmt: skip
network = ik.random_regular(n_spins=12, degree=3, coupling=0.35, random_state=2)
couplings = np.abs(network.couplings.toarray())
i = symptoms.index("appetite")
j = np.flatnonzero(couplings[i])[0]
among_patients = couplings.copy()
among_patients[i, j] = among_patients[j, i] = -0.35
controls = ik.IsingModel(couplings, fields=np.full(12, -0.1), names=symptoms)
patients = ik.IsingModel(among_patients, fields=np.full(12, 0.1), names=symptoms)

parts = [
    pd.DataFrame(np.asarray(ik.sample(model, n_samples=size, random_state=size)) > 0,
                 columns=symptoms).assign(group=label)
    for model, size, label in ((controls, 300, "control"), (patients, 250, "patient"))
]  # fmt: skip
table = pd.concat(parts, ignore_index=True)
table.groupby("group").mean().round(2)

# %%
# Do the networks differ?
# -----------------------

found = ik.compare_groups(table[symptoms], table["group"], random_state=0)
print(found)

# %%
# The first line that matters is the second: the largest difference of all pairs is larger than in
# nearly all relabellings. The table says where. ``p`` is family-wise: with a probability of 0.95
# no pair with p at most 0.05 is there by chance. ``q`` is less strict, the share of false ones
# (``control="fdr"``). Couplings and their errors are of each group by itself.
#
# That patients have more of all symptoms is no difference of the network: ``fields="free"`` allows
# each group its own means.

print(symptoms[i], "and", symptoms[j], "are what we have planted")

# %%
# Both networks in one layout, and what differs:

figure, axes = plt.subplots(1, 3, figsize=(15, 4.5), layout="constrained")
found.plot(axes)

# %%
# Two halves of one group
# -----------------------
#
# A test that always finds something is worth nothing. Halves of the controls, drawn at random,
# should not differ:

healthy = table[table["group"] == "control"]
half = np.random.default_rng(1).permutation(len(healthy)) < 150
halves = ik.compare_groups(healthy[symptoms], half, random_state=0)
print(f"p = {halves.p_value:.2f}, {len(halves.differing)} pairs differ")

# %%
# Which column has changed its place?
# -----------------------------------
#
# Strength and expected influence of each column, with 95 percent intervals of the difference:

columns = ["name", "measure", "value_control", "value_patient", "low", "high", "q_value"]
pd.DataFrame(found.centralities[:4])[columns].round(3)

# %%
# Two real tables
# ---------------
#
# *Votes.* Of the "congressional voting records" of the US House of 1984, 16 roll calls, 232 of 435
# members voted in all, 124 Democrats and 108 Republicans. Parties differ in nearly all means,
# which is no difference of networks. The networks differ, too (p = 0.002), in one of 120 pairs:
# given all other votes, a Democrat for the immigration bill was rather for the right to sue under
# the superfund (+0.32), a Republican rather against it (-0.51). Global strength does not differ
# (5.1 and 4.4, the difference from -2.0 to +0.6).
#
# *Symptoms.* Of 18 symptoms of ADHD in 355 children, in the two groups of the study, no difference
# is shown (p = 0.14), and none of strength; ``method="nct"`` says the same.
#
# Both tables at random halves, a hundred times each: HALVES
#
# .. code-block:: python
#
#    found = ik.compare_groups(votes, party, missing="drop", random_state=0)
#
# What could mislead you
# ----------------------
#
# * **No difference shown is not no difference.** With 20 columns and 100 rows in each group, a link
#   that turns around was found in three of four planted tables; smaller changes need more rows.
# * **Other causes.** If patients are older and age moves answers, pass it as ``covariates``.
# * **People who answered several times** are one person each: ``row_groups=person``. If they are in
#   both groups, before and after a treatment, they are compared with themselves.
# * **Very unequal groups.** With 60 patients the small group decides what can be seen.
# * **Rare answers.** Pairs of columns that hardly ever change in a group cannot be compared there;
#   the summary says how many.
#
# Reporting it
# ------------
#
# *We compared networks with isingkit's compare_groups (10,000 permutations, fields free in each
# group). Networks differed (largest difference, p = ...); k pairs differed at a family-wise level
# of 0.05.* If a journal wants the Network Comparison Test itself, ``method="nct"`` is it, with
# eLasso; it learns both networks for every permutation, so ask for a hundred.
#
# Take it with you
# ----------------
#
# .. code-block:: sh
#
#    isingkit compare-groups answers.csv --by group -o groups.html
#    isingkit compare-groups control.csv patient.csv --json
