"""Methods: every way to learn a network, with its name, its settings and what to say of it.

`compare`, the command line and the report read this table. A new estimator needs its own file, its
public name in `isingkit/__init__.py`, and an entry here.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import isingkit as ik  # lazy: estimators are imported when one is built

PAPER = (
    "X. Meng, T. Obuchi, Y. Kabashima, Structure learning in inverse Ising problems using "
    "ℓ₂-regularized linear estimator, "
    "Journal of Statistical Mechanics: Theory and Experiment (2021)."
)
_LINEAR = (
    "Values of linear estimates are smaller than the couplings of the Ising model; "
    "they rank pairs and find networks."
)
_MEAN_FIELD = "Couplings come in closed form from the inverse of the matrix of covariances"
_RAVIKUMAR = (
    "P. Ravikumar, M. Wainwright, J. Lafferty, High-dimensional Ising model selection using "
    "l1-regularized logistic regression (2010)."
)
_LOKHOV = (
    "A. Lokhov, M. Vuffray, S. Misra, M. Chertkov, Optimal structure and parameter learning of "
    "Ising models (2018)."
)
_NGUYEN = (
    "H. C. Nguyen, R. Zecchina, J. Berg, Inverse statistical problems: from the inverse Ising "
    "problem to data science (2017)."
)


@dataclass(frozen=True, slots=True)
class Suggested:
    """Settings that theory suggests for data of this size."""

    threshold: float  # the largest noise of all absent couplings passes it one time in twenty
    penalty: float  # unit of l1 penalties


@dataclass(frozen=True, slots=True)
class Method:
    """One way to learn a network."""

    label: str  # in tables of `compare`
    build: Callable[[Suggested], Any]  # the estimator
    description: str  # what it does, for the report
    reference: str | None = None  # to cite beside the paper
    most_spins: float = math.inf  # `compare` tries it by default up to so many
    on_cluster: bool = False  # whether workers can share one fit of many spins
    describes_threshold: bool = False  # whether `description` says what the threshold does
    requires: str | None = None  # a package that may not be installed; then only for `compare`
    # What a value of a setting adds to the description, by setting and value.
    variants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As on the command line, in fit.json and in reports."""
        return command_name(self.label)

    @property
    def is_installed(self) -> bool:
        """Whether the package it needs is there."""
        return self.requires is None or find_spec(self.requires) is not None

    def described(self, settings: Mapping[str, Any]) -> str:
        """What it does with these settings."""
        added = (texts.get(settings.get(name, "")) for name, texts in self.variants.items())
        return " ".join([self.description, *(text for text in added if text)])


def command_name(label: str) -> str:
    """A method's name as on the command line, however it is spelt: lower case, with hyphens."""
    return "-".join(label.lower().replace("_", " ").replace("-", " ").split())


def suggested_settings(n_spins: int, n_samples: int) -> Suggested:
    """Settings for so many spins and samples.

    An absent coupling is estimated with a noise of about 1 / sqrt(M - N) by estimators without
    penalty; thresholds are where the largest of all N (N - 1) / 2 passes one time in twenty.
    Penalties are in units of sqrt(log(N^2 / 0.05) / M). Of them the authors of interaction
    screening found best 0.2 for the pseudolikelihood, 0.4 and 0.8 for screening and its logarithm.
    """
    from scipy.special import ndtri

    n_pairs = n_spins * (n_spins - 1) / 2
    critical_z = -float(ndtri(0.025 / n_pairs))
    threshold = critical_z / math.sqrt(max(n_samples - n_spins, 1))
    penalty = math.sqrt(math.log(n_spins**2 / 0.05) / n_samples)
    return Suggested(threshold=threshold, penalty=penalty)


def known_methods(n_spins: int, n_samples: int) -> dict[str, Any]:
    """Estimators by label, with the settings that theory suggests for so many spins and samples."""
    suggested = suggested_settings(n_spins, n_samples)
    return {one.label: one.build(suggested) for one in METHODS if one.is_installed}


def method_named(name: str) -> Method | None:
    """The method of this name, as on the command line; None where there is none."""
    return next((one for one in METHODS if one.name == name), None)


def _abess() -> Any:
    from isingkit.abess import AbessIsing

    return AbessIsing()


METHODS = (
    Method(
        label="independent",
        build=lambda theory: ik.MeanFieldIsing(method="independent"),
        description="Columns are taken as independent: only how often each is +1 is fitted.",
    ),
    Method(
        label="auto",
        build=lambda theory: ik.AutoIsing(),
        description="All pairs are screened by ridge regressions, the weakest candidates are "
        "eliminated, and each column is then explained by its remaining neighbours with a logistic "
        "regression. Every pair is tested given the rest of the network, and edges are kept by the "
        "level of false edges asked for, all pairs counted as tested; it holds where rows, or "
        "groups of rows, are independent draws and nothing that is no column acts on several. "
        "Nothing had to be tuned.",
        on_cluster=True,
        describes_threshold=True,
        variants={
            "refit": {
                "bethe": "Values of couplings are by Bethe's formula, "
                "which is exact where the network is a tree.",
                "linear": "Values of couplings are those of linear regressions on neighbours. "
                + _LINEAR,
            }
        },
    ),
    Method(
        label="linear",
        build=lambda theory: ik.LinearIsing(threshold=theory.threshold),
        description="Each column is regressed on all others by least squares, "
        f"and couplings above the threshold are kept. {_LINEAR}",
        describes_threshold=True,
    ),
    Method(
        label="ridge",
        build=lambda theory: ik.RidgeIsing(),
        description="Each column is regressed on all others by ridge regression, "
        f"and couplings above the threshold are kept. {_LINEAR}",
        describes_threshold=True,
    ),
    Method(
        label="two-stage",
        build=lambda theory: ik.TwoStageIsing(),
        description="Each column is regressed on all others by ridge regression; those whose "
        "coefficients pass a first threshold are kept, and each column is regressed on them alone "
        f"without ridge; couplings above a second threshold are edges. {_LINEAR}",
        on_cluster=True,
        describes_threshold=True,
    ),
    Method(
        label="lasso",
        build=lambda theory: ik.LassoIsing(l1=theory.penalty),
        description="Each column is regressed on all others by least squares with an l1 penalty: "
        f"weak couplings become zero. {_LINEAR}",
        reference="N. Meinshausen, P. Bühlmann, High-dimensional graphs and variable selection "
        "with the lasso (2006).",
    ),
    Method(
        label="naive mean field",
        build=lambda theory: ik.MeanFieldIsing(method="naive", threshold=theory.threshold),
        description=f"{_MEAN_FIELD}, to first order (naive mean field).",
        reference=_NGUYEN,
    ),
    Method(
        label="TAP",
        build=lambda theory: ik.MeanFieldIsing(method="tap", threshold=theory.threshold),
        description=f"{_MEAN_FIELD}, to second order (Thouless, Anderson and Palmer).",
        reference=_NGUYEN,
    ),
    Method(
        label="Bethe",
        build=lambda theory: ik.MeanFieldIsing(method="bethe", threshold=theory.threshold),
        description=f"{_MEAN_FIELD}, "
        "by a formula that is exact where the network is a tree (Bethe).",
        reference="F. Ricci-Tersenghi, The Bethe approximation for solving the inverse Ising "
        "problem (2012).",
    ),
    Method(
        label="Sessak-Monasson",
        build=lambda theory: ik.MeanFieldIsing(
            method="sessak-monasson", threshold=theory.threshold
        ),
        description=f"{_MEAN_FIELD}, with loops and pairs resummed (Sessak and Monasson).",
        reference="V. Sessak, R. Monasson, Small-correlation expansions for the inverse Ising "
        "problem (2009).",
    ),
    Method(
        label="pseudolikelihood",
        build=lambda theory: ik.PseudolikelihoodIsing(l2=1e-4, threshold=theory.threshold),
        description="Each column is explained by all others with a logistic regression.",
        reference=_RAVIKUMAR,
    ),
    Method(
        label="l1 pseudolikelihood",
        build=lambda theory: ik.PseudolikelihoodIsing(
            l1=0.2 * theory.penalty, threshold=theory.threshold / 2
        ),
        description="Each column is explained by all others with an l1-penalised logistic "
        "regression.",
        reference=_RAVIKUMAR,
    ),
    Method(
        label="eLasso",
        build=lambda theory: ik.ELassoIsing(),
        description="Each column is explained by all others with l1-penalised logistic "
        "regressions; the penalty is chosen by the extended Bayesian information criterion, "
        "as R's IsingFit does.",
        reference="C. van Borkulo et al., A new method for constructing networks from binary data "
        "(2014).",
    ),
    Method(
        label="screening",
        build=lambda theory: ik.InteractionScreeningIsing(
            l1=0.4 * theory.penalty, threshold=theory.threshold / 2
        ),
        description="Each column's couplings minimise the interaction screening objective with an "
        "l1 penalty (RISE).",
        reference=_LOKHOV,
    ),
    Method(
        label="log screening",
        build=lambda theory: ik.InteractionScreeningIsing(
            l1=0.8 * theory.penalty, log=True, threshold=theory.threshold / 2
        ),
        description="Each column's couplings minimise the logarithm of the screening objective "
        "with an l1 penalty (logRISE).",
        reference=_LOKHOV,
    ),
    Method(
        label="probability flow",
        build=lambda theory: ik.InteractionScreeningIsing(
            l2=1e-4, joint=True, threshold=theory.threshold
        ),
        description="All couplings together minimise the flow of probability out of the data.",
        reference="J. Sohl-Dickstein, P. Battaglino, M. DeWeese, Minimum probability flow learning "
        "(2011).",
    ),
    Method(
        label="maximum likelihood",
        build=lambda theory: ik.MaximumLikelihoodIsing(l2=1e-4, threshold=theory.threshold),
        description="Couplings and fields maximise the exact likelihood, summed over all states.",
        most_spins=20,  # with which it takes less than a second
    ),
    Method(
        label="boltzmann",
        build=lambda theory: ik.MaximumLikelihoodIsing(
            method="boltzmann", l2=1e-4, threshold=theory.threshold, random_state=0
        ),
        description="Couplings and fields maximise the likelihood, its gradient measured by "
        "Monte Carlo (Boltzmann learning).",
        reference="D. Ackley, G. Hinton, T. Sejnowski, A learning algorithm for Boltzmann machines "
        "(1985).",
        most_spins=0,  # minutes: only where it is named
    ),
    Method(
        label="abess",
        build=lambda theory: _abess(),
        description="Best subsets of couplings, without fields, by the package abess.",
        requires="abess",
    ),
)
FIT_METHODS = tuple(one for one in METHODS if one.requires is None)  # of `isingkit fit`
