"""scikit-learn's own checks of its contract. They feed real numbers, which binarize=0.0 turns into
spins.
"""

import warnings

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import isingkit as ik
from isingkit.exceptions import ConstantColumnWarning, EmptyCellWarning, ReliabilityWarning

ESTIMATORS = [
    kind(binarize=0.0)
    for kind in (
        ik.LinearIsing,
        ik.RidgeIsing,
        ik.TwoStageIsing,
        ik.LassoIsing,
        ik.ELassoIsing,
        ik.AutoIsing,
    )
]
ESTIMATORS += [
    kind(binarize=0.0, l2=0.01) for kind in (ik.PseudolikelihoodIsing, ik.InteractionScreeningIsing)
]
ESTIMATORS += [
    ik.MeanFieldIsing(binarize=0.0, method=method) for method in ("bethe", "independent-pair")
]
ESTIMATORS += [ik.MaximumLikelihoodIsing(binarize=0.0, l2=0.01)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        for kind in (ConstantColumnWarning, EmptyCellWarning, ReliabilityWarning):
            warnings.simplefilter("ignore", kind)
        check(estimator)
