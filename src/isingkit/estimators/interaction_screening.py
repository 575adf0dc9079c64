"""InteractionScreeningIsing: the losses that screen a spin from its neighbours."""

from isingkit._kernels import nodewise as kernels
from isingkit.estimators.nodewise import NodewiseEstimator
from isingkit.exceptions import require_instance
from isingkit.spins import Binarize


class InteractionScreeningIsing(NodewiseEstimator):
    r"""Couplings and fields by interaction screening (RISE), or by its logarithm (logRISE).

    Row i minimises the mean over samples of exp(-s_i (H_i + \sum_j J_ij s_j)), or the logarithm of
    that mean, plus l1 \sum_j |J_ij| + l2 \sum_j J_ij^2; at the minimum the factor of row i cancels
    the interactions of spin i. The theory's penalty is l1 = c sqrt(log(N^2 / 0.05) / M), with c =
    0.4 (RISE) or 0.8 (logRISE). With joint=True and log=False it is minimum probability flow over
    flips of single spins.

    Parameters
    ----------
    l1
        Weight of the absolute values of couplings; sets weak ones to exactly zero.
    l2
        Weight of their squares.
    log
        Whether to take the logarithm of the mean, which needs fewer samples where couplings are
        strong.
    joint
        Whether to minimise the sum over all spins with J_ij = J_ji, instead of spin by spin.
    threshold
        Couplings below it count as absent.
    rule
        How two directed estimates become one coupling: "average" thresholds their mean; "and" asks
        both to pass; "or" asks one to.
    fit_fields
        Whether to fit fields, which are not penalised; without, spins are taken to be symmetric.
    binarize
        Threshold that turns real-valued columns into spins, or thresholds by names of columns.
    missing
        "error" or "drop".
    merge_alike
        Whether columns that are equal, or opposite, in all rows become one spin, with the name of
        the first of them: True, False, or a number, the correlation from which on they do. "auto"
        is True beyond 1000 columns.
    n_jobs
        Threads to use; None or -1 is all.

    Attributes
    ----------
    estimates_
        (n_spins, n_spins) array; row i is the directed estimate of J_i before the threshold.
    intercepts_
        (n_spins,) array of the estimated fields.
    model_
        The IsingModel after threshold and rule.
    alike_
        Table of columns that became part of another's spin: column, spin, correlation. Empty where
        none did; else `model_` and all that is said of spins has one for all of them.
    covariate_effects_
        Where `fit` was given covariates: structured array of the columns variable, covariate,
        effect, low, high, std_error, z, p_value and q_value, strongest first; it has no errors.
    n_samples_
        Samples used: rows, or their counts; of weights w (sum w)^2 / sum w^2.
    mapping_
        For each spin the values of the table that became -1 and +1.

    Examples
    --------
    >>> import isingkit as ik
    >>> truth = ik.random_regular(n_spins=20, degree=3, coupling=0.5, random_state=0)
    >>> samples = ik.sample(truth, n_samples=3000, random_state=1)
    >>> fit = ik.InteractionScreeningIsing(l1=0.05, threshold=0.1).fit(samples)
    >>> ik.score(fit.model_, truth).exact
    True
    """

    def __init__(
        self,
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        log: bool = False,
        joint: bool = False,
        threshold: float = 0.0,
        rule: str = "average",
        fit_fields: bool = True,
        binarize: Binarize = None,
        missing: str = "error",
        merge_alike: bool | float | str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            l1=l1,
            l2=l2,
            joint=joint,
            threshold=threshold,
            rule=rule,
            fit_fields=fit_fields,
            binarize=binarize,
            missing=missing,
            merge_alike=merge_alike,
            n_jobs=n_jobs,
        )
        self.log = log

    def _check_settings(self) -> None:
        super()._check_settings()
        require_instance("log", self.log, bool, "True or False")

    @property
    def _loss(self) -> int | None:
        return kernels.LOG_SCREENING if self.log else kernels.SCREENING
