"""What the replica and cavity methods predict of linear estimators: formulas only, never data."""

from isingkit.theory.cavity import CavitySpectrum, EnsembleSpectrum
from isingkit.theory.linear import couplings_from_linear, linear_means
from isingkit.theory.recovery import Recovery, recovery, recovery_of_model
from isingkit.theory.ridge import (
    Prediction,
    best_ridge,
    decay_bound,
    erdos_renyi,
    free_energy,
    of_ensemble,
    of_model,
    random_regular,
)
from isingkit.theory.spectrum import ModelSpectrum, RegularSpectrum, bethe_matrix
from isingkit.theory.two_stage import best_two_stage, samples_needed

__all__ = [
    "CavitySpectrum",
    "EnsembleSpectrum",
    "ModelSpectrum",
    "Prediction",
    "Recovery",
    "RegularSpectrum",
    "best_ridge",
    "best_two_stage",
    "bethe_matrix",
    "couplings_from_linear",
    "decay_bound",
    "erdos_renyi",
    "free_energy",
    "linear_means",
    "of_ensemble",
    "of_model",
    "random_regular",
    "recovery",
    "recovery_of_model",
    "samples_needed",
]
