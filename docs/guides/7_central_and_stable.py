"""
I want to know which symptoms are central, and how sure I can be
================================================================

A network has been learnt from a questionnaire, and everybody asks which symptom is the most
central. Before you answer: would the same symptom be on top in another sample? Which edges are
really stronger than others? Do symptoms fall into communities, and which ones bridge them? And of a
pair without an edge: is it absent, or only unseen?

If you have used R's bootnet, qgraph, networktools or bgms, these are their questions.
"""

# %%
# The data
# --------
#
# We plant two communities of six symptoms each. "worry" has most edges, and "sleep" is the one that
# joins both.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import isingkit as ik

symptoms = [
    "low mood", "no interest", "appetite", "sleep", "tired", "guilt",
    "worry", "tense", "restless", "irritable", "afraid", "panic",
]  # fmt: skip
pairs = {
    ("low mood", "no interest"): 0.5, ("low mood", "guilt"): 0.4, ("low mood", "sleep"): 0.3,
    ("no interest", "tired"): 0.3, ("sleep", "tired"): 0.5, ("sleep", "appetite"): 0.3,
    ("worry", "tense"): 0.4, ("worry", "restless"): 0.4, ("worry", "irritable"): 0.4,
    ("worry", "afraid"): 0.4, ("afraid", "panic"): 0.5, ("tense", "restless"): 0.3,
    ("sleep", "worry"): 0.3, ("sleep", "restless"): 0.25,
}  # fmt: skip
couplings = np.zeros((12, 12))
for (one, other), coupling in pairs.items():
    i, j = symptoms.index(one), symptoms.index(other)
    couplings[i, j] = couplings[j, i] = coupling
truth = ik.IsingModel(couplings, fields=np.full(12, -0.2), names=symptoms)
answers = pd.DataFrame(
    np.asarray(ik.sample(truth, n_samples=500, random_state=1)) > 0, columns=symptoms
)
answers.mean().round(2).to_dict()

# %%
# The network, and what is central in it
# --------------------------------------
#
# ``ELassoIsing`` is the method of IsingFit, which bootnet calls for binary data. Couplings are a
# quarter of its weights; so are strength, expected influence and closeness.

estimator = ik.ELassoIsing()
fit = estimator.fit(answers)
central = ik.centrality(fit.model_, answers)
central.to_pandas().set_index("name").round(3).sort_values("strength", ascending=False)

# %%
# ``expected_influence`` adds couplings with their signs; where all are positive it is the strength.
# ``predictability`` says how much better a symptom is predicted from its neighbours than by its
# commoner answer: 0 is no better, 1 is always right. Drawn as rings, as mgm's users know them:

fit.model_.plot(rings=central["predictability"])

# %%
# Is the order stable?
# --------------------
#
# Drop a quarter, half, three quarters of the people, learn the network again, and see how well
# centralities agree with those of everybody. The CS-coefficient is the largest share that can be
# dropped so that the correlation is at least 0.7 in 95 percent of the parts: below 0.25 the order
# of symptoms should not be interpreted, above 0.5 it may be.

dropping = ik.case_dropping(estimator, answers, n_resamples=25, random_state=0)
print(dropping)
ik.plot_stability(dropping)

# %%
# Shortest paths turn on single edges. That betweenness and closeness are less stable than strength
# is what one finds in most data.
#
# Which differences are real?
# ---------------------------
#
# People drawn anew with replacement, as many as there are: how often is each edge found, and how
# far does its coupling vary?

drawn = ik.bootstrap(estimator, answers, n_resamples=100, random_state=0)
drawn.edges[:5]

# %%
# A penalty draws edges towards zero, so that ``low`` and ``high`` are no confidence intervals;
# ``ik.AutoIsing().fit(answers).edges_`` has these. What the bootstrap can say is which edges, and
# which symptoms, differ from each other. Is "worry" really stronger than the next ones?

tests = drawn.centrality_differences("strength").to_pandas()
of_worry = tests[(tests["name"] == "worry") | (tests["other_name"] == "worry")]
of_worry.round(2)

# %%
# Where ``differs`` is False, do not write that one is more central than the other. (As in bootnet
# nothing is corrected for many tests. ``drawn.differences()`` has the same of edges.)
#
# Communities, and who bridges them
# ---------------------------------

found = ik.communities(fit.model_, random_state=0)
print(found)

# %%
# These are finer than what we planted: within the two halves some symptoms hold together more than
# others. Would another sample have the same ones? In what share of the networks drawn anew two
# symptoms are in one community:

together = drawn.together(lambda model: ik.communities(model, random_state=0).numbers)
figure, axes = plt.subplots(figsize=(5, 4.2), layout="constrained")
picture = axes.imshow(together, vmin=0, vmax=1, cmap="Blues")
axes.set_xticks(range(12), symptoms, rotation=90)
axes.set_yticks(range(12), symptoms)
figure.colorbar(picture, label="share of networks")

# %%
# Bridge strength is that of the edges to *other* communities. Communities may be those found, or
# those that theory has; here they are the two questionnaires.

questionnaire = ["depression"] * 6 + ["anxiety"] * 6
bridges = ik.centrality(fit.model_, communities=questionnaire).to_pandas().set_index("name")
bridges["bridge_strength"].sort_values(ascending=False).round(2).head(4)

# %%
# Absent, or only unseen?
# -----------------------
#
# A missing edge in a penalised network says little. ``inclusion=True`` says of every pair how
# probable an edge is, given all data, and with Bayes factors how much these data speak for it or
# against it: 1 is ten to one for an edge, -1 ten to one against. Nothing is sampled. All is clear
# with these 500 people; had we asked only 150 of them, which a warning calls few:

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    inclusion = ik.AutoIsing(inclusion=True).fit(answers[:150]).inclusion_.to_pandas()
is_open = inclusion["probability"].between(0.1, 0.9)
print(f"{(inclusion['probability'] > 0.9).sum()} pairs are edges with more than 0.9")
print(f"{(inclusion['probability'] < 0.1).sum()} with less than 0.1, {is_open.sum()} are open")
inclusion[is_open].round(2)

# %%
# We know the truth: is what was planted probable, and what was not improbable?

named = zip(inclusion["source"], inclusion["target"], strict=True)
planted = [pair in pairs or pair[::-1] in pairs for pair in named]
inclusion.groupby(planted)["probability"].describe()[["count", "min", "50%", "max"]].round(3)

# %%
# What could mislead you
# ----------------------
#
# * **People who answered several times**: pass ``groups=person`` to ``case_dropping`` and
#   ``bootstrap``, and they are dropped and drawn whole. Weights of a survey (``sample_weight=``),
#   patterns with counts (``counts=``) and what else is known of people (``covariates=``) go with
#   their rows.
# * **AutoIsing** tests edges as if rows were independent, and rows that are drawn twice are not:
#   ``bootstrap`` is for others; ``case_dropping`` takes it, and its ``stability`` draws halves.
# * **A common cause** of all symptoms makes all of them central. ``AutoIsing`` looks for one.
# * **Central is not causal.** No centrality says what treating a symptom would do.
#
# Reporting it
# ------------
#
# *Stability was assessed by case dropping (isingkit; n parts of each size); the CS-coefficient of
# strength was ... Differences between symptoms were tested by a nonparametric bootstrap of n
# samples.*
