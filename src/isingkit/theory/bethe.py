"""The Bethe matrix of a model, and its spectrum by all eigenvalues."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from isingkit.arrays import FloatArray
from isingkit.exceptions import OrderedPhaseError, SettingError, require_instance
from isingkit.model import IsingModel
from isingkit.theory.phase import require_paramagnetic
from isingkit.theory.spectrum import Spectrum, Traces, numbers, scalar_weights, traces_one_by_one

MOST_COUPLING = 12.0  # beyond, 1 - tanh^2 J keeps less than half of its digits


def bethe_matrix(model: IsingModel) -> csr_array:
    r"""H of a tree-like model: H_ii = 1 + \sum_k \sinh^2 J_ik, H_ij = -\sinh(2 J_ij) / 2.
    [eq:C0-inverse-matrix-1-v2]

    It is the inverse of the correlation matrix where the graph is a tree, and Bethe's approximation
    to it elsewhere.

    Parameters
    ----------
    model
        An IsingModel without fields.

    Examples
    --------
    >>> import numpy as np, isingkit as ik
    >>> chain = ik.IsingModel([[0, 0.5, 0], [0.5, 0, 0.3], [0, 0.3, 0]])
    >>> C = np.linalg.inv(ik.theory.bethe_matrix(chain).toarray())
    >>> bool(np.isclose(C[0, 2], np.tanh(0.5) * np.tanh(0.3)))
    True
    """
    require_instance("model", model, IsingModel, "an IsingModel")
    if model.fields.any():
        expected = "a model without fields: the theory assumes none"
        raise SettingError(setting="model", value="one with fields", expected=expected)
    strengths = model.couplings.data
    largest = float(np.abs(strengths).max(initial=0.0))
    if largest > MOST_COUPLING:
        value = f"one with a coupling of size {largest:.3g}"
        expected = (
            f"couplings of at most {MOST_COUPLING:g}: of stronger ones both ends are the same"
        )
        raise SettingError(setting="model", value=value, expected=expected)
    matrix = model.couplings.copy()
    matrix.data = np.sinh(strengths) ** 2
    diagonal = 1 + matrix.sum(axis=1)
    matrix.data = -np.sinh(2 * strengths) / 2
    return (matrix + scipy.sparse.diags_array(diagonal)).tocsr()


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpectrum(Spectrum):
    """The eigenvalues of one model's Bethe matrix, all of them: for a few thousand spins.

    Parameters
    ----------
    eigenvalues
        Of H; `ModelSpectrum.of(model)` computes them.
    """

    eigenvalues: FloatArray  # (n_spins,)

    def __post_init__(self) -> None:
        eigenvalues = numbers("eigenvalues", self.eigenvalues)
        if eigenvalues.ndim != 1 or len(eigenvalues) == 0 or not np.isfinite(eigenvalues).all():
            expected = "a list of finite numbers"
            raise SettingError(setting="eigenvalues", value=self.eigenvalues, expected=expected)
        if np.min(eigenvalues) <= 0:
            raise OrderedPhaseError(growth=None)
        object.__setattr__(self, "eigenvalues", eigenvalues)

    @staticmethod
    def of(model: IsingModel) -> "ModelSpectrum":
        """Eigenvalues of a model's Bethe matrix; refuses models that are not paramagnetic."""
        matrix = bethe_matrix(model)
        require_paramagnetic(model)
        return ModelSpectrum(np.linalg.eigvalsh(matrix.toarray()))

    def traces(self, effective_ridge: ArrayLike) -> Traces:
        return traces_one_by_one(effective_ridge, self._traces_at)

    def log_trace(self, effective_ridge: float) -> float:
        return float(np.log1p(effective_ridge * self.eigenvalues).mean())

    def _traces_at(self, effective_ridge: float) -> Traces:
        one, k = scalar_weights(effective_ridge)
        inverse = 1 / (one + k * self.eigenvalues)
        kept = self.eigenvalues * inverse
        return Traces(
            t=inverse.mean(),
            t2=(inverse**2).mean(),
            p=kept.mean(),
            p2=(kept * inverse).mean(),
        )
