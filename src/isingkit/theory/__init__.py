"""What the replica and cavity methods predict of estimators: formulas only, never data.

How its parts hang together: docs/design/theory.md.
"""

from isingkit.theory.bethe import ModelSpectrum, bethe_matrix
from isingkit.theory.cavity import CavitySpectrum
from isingkit.theory.limits import fano_limit, pair_limit
from isingkit.theory.linear import couplings_from_linear, linear_means
from isingkit.theory.local_loss import LossPrediction, interaction_screening, pseudolikelihood
from isingkit.theory.population import EnsembleSpectrum
from isingkit.theory.prediction import Prediction
from isingkit.theory.recovery import Recovery
from isingkit.theory.recovery_model import recovery_of_model
from isingkit.theory.recovery_regular import recovery
from isingkit.theory.regular import RegularSpectrum
from isingkit.theory.ridge import (
    best_ridge,
    decay_bound,
    free_energy,
    generation_bound,
    random_regular,
)
from isingkit.theory.ridge_of_ensemble import erdos_renyi, of_ensemble
from isingkit.theory.ridge_of_model import of_model
from isingkit.theory.separation import separation_limit
from isingkit.theory.sparse_recovery import SparseRecovery, lasso_limit, sparse_recovery
from isingkit.theory.two_stage import best_two_stage, samples_needed

__all__ = [
    "CavitySpectrum",
    "EnsembleSpectrum",
    "LossPrediction",
    "ModelSpectrum",
    "Prediction",
    "Recovery",
    "RegularSpectrum",
    "SparseRecovery",
    "best_ridge",
    "best_two_stage",
    "bethe_matrix",
    "couplings_from_linear",
    "decay_bound",
    "erdos_renyi",
    "fano_limit",
    "free_energy",
    "generation_bound",
    "interaction_screening",
    "lasso_limit",
    "linear_means",
    "of_ensemble",
    "of_model",
    "pair_limit",
    "pseudolikelihood",
    "random_regular",
    "recovery",
    "recovery_of_model",
    "samples_needed",
    "separation_limit",
    "sparse_recovery",
]
