"""TwoStageIsing: the paper's estimator for fewer samples than spins."""

import numpy as np
from numpy.typing import NDArray

from isingkit._kernels import estimators as kernels
from isingkit._kernels.threads import spread
from isingkit.estimators.base import LinearEstimator
from isingkit.estimators.normal import Matrix, NormalEquations, refuse_duplicates
from isingkit.estimators.ridge import ridge_estimates
from isingkit.exceptions import StageTwoError, require_number
from isingkit.gram import Gram
from isingkit.packing import PackedSpins


class TwoStageIsing(LinearEstimator):
    """Couplings by ridge regression, pruned, then least squares on what is left, thresholded. [eq:stage1-threshold]

    Stage one, ridge regression of each spin on all others, keeps estimates above `prune`, small enough to lose no coupling. Stage
    two, least squares of each spin on its few candidates, has far more samples than unknowns and finds the network even where there
    are fewer samples than spins. The paper's own knobs are ridge=0.1, prune=0.1 (or 0.05); the defaults find more of a network
    of a few hundred spins.

    Parameters
    ----------
    ridge
        lambda of stage one, exactly the paper's. Infinity screens on sample correlations instead.
    prune
        K_1: estimates of stage one below it are dropped.
    threshold
        K_2: couplings of stage two below it count as absent.
    rule
        How two directed estimates become one coupling: "average" thresholds their mean; "and" asks both to pass; "or" asks one to.
    fit_fields
        Whether to fit fields (intercepts); without, spins are taken to be symmetric.
    binarize
        Threshold that turns real-valued columns into spins.
    missing
        "error", "drop" or "pairwise".

    Attributes
    ----------
    stage_one_estimates_
        (n_spins, n_spins) array: the ridge estimates before pruning, or sample correlations where ridge is infinite.
    support_sizes_
        (n_spins,) array: how many candidates of each spin survive stage one.
    estimates_
        (n_spins, n_spins) array: stage two before the threshold; row i is the directed estimate of J_i, 0 where pruned.
    intercepts_
        (n_spins,) array of the regressions' intercepts.
    model_
        The IsingModel after threshold and rule.
    n_samples_
        Rows used, or their total weight.
    mapping_
        For each spin the values of the table that became -1 and +1.

    Examples
    --------
    Fewer samples than spins:

    >>> import isingkit as ik
    >>> truth = ik.random_regular(n_spins=200, degree=3, coupling=0.4, random_state=0)
    >>> fit = ik.TwoStageIsing().fit(ik.sample(truth, n_samples=180, random_state=1))
    >>> ik.score(fit.model_, truth).f1 > 0.9
    True
    """

    def __init__(
        self,
        *,
        ridge: float = 1.0,
        prune: float = 0.08,
        threshold: float = 0.15,
        rule: str = "average",
        fit_fields: bool = True,
        binarize: float | None = None,
        missing: str = "error",
    ) -> None:
        super().__init__(threshold=threshold, rule=rule, fit_fields=fit_fields, binarize=binarize, missing=missing)
        self.ridge = ridge
        self.prune = prune

    def _check_settings(self) -> None:
        super()._check_settings()
        require_number("ridge", self.ridge, above=0, finite=False)
        require_number("prune", self.prune, at_least=0)

    def _regress(
        self, stat: Gram, normal: NormalEquations, packed: PackedSpins | None, weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        if np.isinf(self.ridge):
            self.stage_one_estimates_ = correlations(normal)
        else:
            self.stage_one_estimates_ = ridge_estimates(normal, self.ridge, packed, weights)
        most = normal.n_rows - 1 - int(self.fit_fields)
        try:
            estimates, self.support_sizes_ = restricted_estimates(normal, self.stage_one_estimates_, self.prune, most)
        except StageTwoError:
            refuse_duplicates(stat, normal)  # the likeliest cause, and a clearer message
            raise
        return estimates


def correlations(normal: NormalEquations) -> Matrix:
    """Sample correlations, the direction of the ridge estimates as ridge grows without bound; 0 on the diagonal."""
    scale = np.sqrt(np.diagonal(normal.matrix))
    scale[~normal.changes] = np.inf
    matrix = normal.matrix / scale[:, None]
    matrix /= scale
    np.fill_diagonal(matrix, 0.0)
    for i, j in normal.unobserved:
        matrix[i, j] = matrix[j, i] = 0.0
    return matrix


def restricted_estimates(normal: NormalEquations, candidates: Matrix, prune: float, most: int) -> tuple[Matrix, NDArray[np.int64]]:
    """Least squares of each spin on its candidates |candidates[i, j]| > prune, and how many these are. Needs only the Gram.

    A spin with more than `most` candidates is refused: its regression would be underdetermined.
    """
    n_spins = normal.n_spins
    estimates = np.zeros((n_spins, n_spins))
    sizes = np.zeros(n_spins, dtype=np.int64)
    failed = spread(kernels.restricted_regressions, n_spins, normal.matrix, candidates, prune, most, sizes, estimates, chunk=16)
    for spin in failed:
        if spin >= 0:
            raise StageTwoError(spin=normal.names[spin], n_unknowns=int(sizes[spin]), most=most)
    return estimates, sizes
