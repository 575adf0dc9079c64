"""What each method does, in plain words, and whom to cite for it."""

PAPER = (
    "X. Meng, T. Obuchi, Y. Kabashima, Structure learning in inverse Ising problems using ℓ₂-regularized linear estimator, "
    "Journal of Statistical Mechanics: Theory and Experiment (2021)."
)
_LINEAR = "Values of linear estimates are smaller than the couplings of the Ising model; they rank pairs and find networks."
_MEAN_FIELD = "Couplings come in closed form from the inverse of the matrix of covariances"

WORDS: dict[str, str] = {
    "independent": "Spins are taken as independent; only fields are fitted.",
    "auto": "All pairs are screened by ridge regressions, the weakest candidates are eliminated, and each spin is then explained "
    "by its remaining neighbours with a logistic regression. Every pair is tested given the rest of the network, and edges are "
    "kept so that the level of false edges asked for holds, all pairs counted as tested. Nothing had to be tuned.",
    "linear": f"Each spin is regressed on all others by least squares, and couplings above the threshold are kept. {_LINEAR}",
    "ridge": f"Each spin is regressed on all others by ridge regression, and couplings above the threshold are kept. {_LINEAR}",
    "two-stage": "Each spin is regressed on all others by ridge regression; those whose coefficients pass a first threshold are "
    f"kept, and each spin is regressed on them alone without ridge; couplings above a second threshold are edges. {_LINEAR}",
    "lasso": f"Each spin is regressed on all others by least squares with an l1 penalty: weak couplings become zero. {_LINEAR}",
    "naive-mean-field": f"{_MEAN_FIELD}, to first order (naive mean field).",
    "tap": f"{_MEAN_FIELD}, to second order (Thouless, Anderson and Palmer).",
    "bethe": f"{_MEAN_FIELD}, by a formula that is exact where the network is a tree (Bethe).",
    "sessak-monasson": f"{_MEAN_FIELD}, with loops and pairs resummed (Sessak and Monasson).",
    "pseudolikelihood": "Each spin is explained by all others with a logistic regression.",
    "l1-pseudolikelihood": "Each spin is explained by all others with an l1-penalised logistic regression.",
    "elasso": "Each spin is explained by all others with l1-penalised logistic regressions; the penalty is chosen by the extended "
    "Bayesian information criterion, as R's IsingFit does.",
    "screening": "Each spin's couplings minimise the interaction screening objective with an l1 penalty (RISE).",
    "log-screening": "Each spin's couplings minimise the logarithm of the screening objective with an l1 penalty (logRISE).",
    "probability-flow": "All couplings together minimise the flow of probability out of the data.",
    "maximum-likelihood": "Couplings and fields maximise the exact likelihood, summed over all states.",
    "boltzmann": "Couplings and fields maximise the likelihood, its gradient measured by Monte Carlo (Boltzmann learning).",
}
REFITS: dict[str, str] = {
    "bethe": "Values of couplings are by Bethe's formula, which is exact where the network is a tree.",
    "linear": f"Values of couplings are those of linear regressions on neighbours. {_LINEAR}",
}
_RAVIKUMAR = (
    "P. Ravikumar, M. Wainwright, J. Lafferty, High-dimensional Ising model selection using l1-regularized logistic regression "
    "(2010)."
)
_LOKHOV = "A. Lokhov, M. Vuffray, S. Misra, M. Chertkov, Optimal structure and parameter learning of Ising models (2018)."
_NGUYEN = "H. C. Nguyen, R. Zecchina, J. Berg, Inverse statistical problems: from the inverse Ising problem to data science (2017)."
REFERENCES: dict[str, str] = {
    "lasso": "N. Meinshausen, P. Bühlmann, High-dimensional graphs and variable selection with the lasso (2006).",
    "naive-mean-field": _NGUYEN,
    "tap": _NGUYEN,
    "bethe": "F. Ricci-Tersenghi, The Bethe approximation for solving the inverse Ising problem (2012).",
    "sessak-monasson": "V. Sessak, R. Monasson, Small-correlation expansions for the inverse Ising problem (2009).",
    "pseudolikelihood": _RAVIKUMAR,
    "l1-pseudolikelihood": _RAVIKUMAR,
    "elasso": "C. van Borkulo et al., A new method for constructing networks from binary data (2014).",
    "screening": _LOKHOV,
    "log-screening": _LOKHOV,
    "probability-flow": "J. Sohl-Dickstein, P. Battaglino, M. DeWeese, Minimum probability flow learning (2011).",
    "boltzmann": "D. Ackley, G. Hinton, T. Sejnowski, A learning algorithm for Boltzmann machines (1985).",
}
