"""isingkit learns the network of couplings behind binary data, and knows how well it will do."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from isingkit import theory as theory
    from isingkit.bootstrap import Bootstrap as Bootstrap
    from isingkit.bootstrap import bootstrap as bootstrap
    from isingkit.case_dropping import CaseDropping as CaseDropping
    from isingkit.case_dropping import case_dropping as case_dropping
    from isingkit.centrality import centrality as centrality
    from isingkit.communities import Communities as Communities
    from isingkit.communities import communities as communities
    from isingkit.comparison import compare as compare
    from isingkit.estimators.auto import AutoIsing as AutoIsing
    from isingkit.estimators.elasso import ELassoIsing as ELassoIsing
    from isingkit.estimators.interaction_screening import (
        InteractionScreeningIsing as InteractionScreeningIsing,
    )
    from isingkit.estimators.lasso import LassoIsing as LassoIsing
    from isingkit.estimators.linear import LinearIsing as LinearIsing
    from isingkit.estimators.maximum_likelihood import (
        MaximumLikelihoodIsing as MaximumLikelihoodIsing,
    )
    from isingkit.estimators.mean_field import MeanFieldIsing as MeanFieldIsing
    from isingkit.estimators.pseudolikelihood import PseudolikelihoodIsing as PseudolikelihoodIsing
    from isingkit.estimators.ridge import RidgeIsing as RidgeIsing
    from isingkit.estimators.two_stage import TwoStageIsing as TwoStageIsing
    from isingkit.fit_check import FitCheck as FitCheck
    from isingkit.fit_check import fit_check as fit_check
    from isingkit.gram import Gram as Gram
    from isingkit.gram import gram as gram
    from isingkit.groups.comparison import GroupComparison as GroupComparison
    from isingkit.groups.comparison import compare_groups as compare_groups
    from isingkit.landscape import Landscape as Landscape
    from isingkit.landscape import landscape as landscape
    from isingkit.metrics import PrecisionRecall as PrecisionRecall
    from isingkit.metrics import Scores as Scores
    from isingkit.metrics import precision_recall as precision_recall
    from isingkit.metrics import score as score
    from isingkit.model import IsingModel as IsingModel
    from isingkit.packing import PackedSpins as PackedSpins
    from isingkit.packing import pack as pack
    from isingkit.plan import plan as plan
    from isingkit.plan.result import Plan as Plan
    from isingkit.plots import plot_centrality as plot_centrality
    from isingkit.plots import plot_couplings as plot_couplings
    from isingkit.plots import plot_disconnectivity as plot_disconnectivity
    from isingkit.plots import plot_edges as plot_edges
    from isingkit.plots import plot_fit_check as plot_fit_check
    from isingkit.plots import plot_plan as plot_plan
    from isingkit.plots import plot_precision_recall as plot_precision_recall
    from isingkit.plots import plot_stability as plot_stability
    from isingkit.spins import Spins as Spins
    from isingkit.spins import as_spins as as_spins
    from isingkit.theory.phase import paramagnetic as paramagnetic
    from isingkit.worlds.exact import exact as exact
    from isingkit.worlds.graphs import erdos_renyi as erdos_renyi
    from isingkit.worlds.graphs import from_graph as from_graph
    from isingkit.worlds.graphs import random_regular as random_regular
    from isingkit.worlds.graphs import random_tree as random_tree
    from isingkit.worlds.graphs import square_lattice as square_lattice
    from isingkit.worlds.heat_capacity import HeatCapacity as HeatCapacity
    from isingkit.worlds.heat_capacity import heat_capacity as heat_capacity
    from isingkit.worlds.sampling import sample as sample

_HOMES = {
    "Bootstrap": "bootstrap",
    "bootstrap": "bootstrap",
    "CaseDropping": "case_dropping",
    "case_dropping": "case_dropping",
    "centrality": "centrality",
    "Communities": "communities",
    "communities": "communities",
    "compare": "comparison",
    "AutoIsing": "estimators.auto",
    "ELassoIsing": "estimators.elasso",
    "InteractionScreeningIsing": "estimators.interaction_screening",
    "LassoIsing": "estimators.lasso",
    "MaximumLikelihoodIsing": "estimators.maximum_likelihood",
    "MeanFieldIsing": "estimators.mean_field",
    "PseudolikelihoodIsing": "estimators.pseudolikelihood",
    "LinearIsing": "estimators.linear",
    "RidgeIsing": "estimators.ridge",
    "TwoStageIsing": "estimators.two_stage",
    "FitCheck": "fit_check",
    "fit_check": "fit_check",
    "Gram": "gram",
    "gram": "gram",
    "GroupComparison": "groups.comparison",
    "compare_groups": "groups.comparison",
    "Landscape": "landscape",
    "landscape": "landscape",
    "PrecisionRecall": "metrics",
    "Scores": "metrics",
    "precision_recall": "metrics",
    "score": "metrics",
    "IsingModel": "model",
    "PackedSpins": "packing",
    "pack": "packing",
    "Plan": "plan.result",
    "plan": "plan",
    "plot_centrality": "plots",
    "plot_couplings": "plots",
    "plot_disconnectivity": "plots",
    "plot_edges": "plots",
    "plot_fit_check": "plots",
    "plot_plan": "plots",
    "plot_precision_recall": "plots",
    "plot_stability": "plots",
    "Spins": "spins",
    "as_spins": "spins",
    "exact": "worlds.exact",
    "erdos_renyi": "worlds.graphs",
    "from_graph": "worlds.graphs",
    "random_regular": "worlds.graphs",
    "random_tree": "worlds.graphs",
    "square_lattice": "worlds.graphs",
    "HeatCapacity": "worlds.heat_capacity",
    "heat_capacity": "worlds.heat_capacity",
    "paramagnetic": "theory.phase",
    "sample": "worlds.sampling",
}
_MODULES = ("exceptions", "theory")
__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> object:
    """Import public names when they are first used, so that `isingkit --help` need not wait for
    numba and scipy.
    """
    if name in _MODULES:
        return import_module(f"isingkit.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'isingkit' has no attribute '{name}'")
    value = getattr(import_module(f"isingkit.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps `isingkit.gram` the function when Python binds the module of that name, which it does
    on importing it.
    """

    def __reduce__(
        self,
    ) -> tuple[object, tuple[str]]:  # cloudpickle sends modules by name, but only plain ones
        return import_module, (self.__name__,)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name in _HOMES:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
