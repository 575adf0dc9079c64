"""IsingEstimator: what all estimators share, from reading a table to the symmetric model."""

from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from isingkit.estimators.normal import NormalEquations, normal_equations, warn_of_constants
from isingkit.estimators.symmetric import RULES, symmetric_couplings
from isingkit.exceptions import EmptyTableError, ModelMismatchError, SettingError, require_instance, require_number
from isingkit.gram import Gram, gram
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins, as_asked, pack, require_same_coding
from isingkit.spins import Spins, as_spins, as_weights, require_network


class IsingEstimator(BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator of couplings in the manner of scikit-learn: constructors only store, `fit` learns, names end in `_`."""

    def __init__(self, *, threshold: float, rule: str, fit_fields: bool, binarize: float | None, missing: str) -> None:
        self.threshold = threshold
        self.rule = rule
        self.fit_fields = fit_fields
        self.binarize = binarize
        self.missing = missing

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a table of two-valued columns or from PackedSpins.

        Parameters
        ----------
        X
            One row a sample, one column a spin: PackedSpins, numpy, scipy.sparse, pandas, polars or pyarrow.
        y
            Ignored; present because scikit-learn's tools pass it.
        sample_weight
            One weight for each row; counts, where rows stand for many.
        """
        self._check_settings()
        packed, weights = self._read(X, sample_weight, reset=True)
        require_network(packed.n_samples, packed.n_spins)
        stat = gram(packed, sample_weight=weights)
        normal = normal_equations(stat, self.fit_fields)
        if isinstance(X, PackedSpins | Spins):
            warn_of_constants(normal)
        return self._finish(stat, normal, self._estimate(stat, normal, packed, weights))

    def fit_gram(self, stat: Gram) -> Self:
        """Learn from a Gram, for instance one added up from chunks.

        Parameters
        ----------
        stat
            The pair sums of the data.
        """
        self._check_settings()
        require_instance("stat", stat, Gram, "a Gram, as isingkit.gram makes it")
        require_network(stat.n_rows, stat.n_spins)
        normal = normal_equations(stat, self.fit_fields)
        warn_of_constants(normal)
        self.n_features_in_ = stat.n_spins
        self._set_names(stat.names)
        return self._finish(stat, normal, self._estimate(stat, normal, None, None))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log pseudolikelihood of the samples under `model_`, the sum over spins of log P(s_i | the others); larger is better.

        Parameters
        ----------
        X
            Samples of the same spins as in `fit`.
        y
            Ignored.
        sample_weight
            One weight for each row.
        """
        check_is_fitted(self)
        packed, weights = self._read(X, sample_weight, reset=False)
        if packed.n_samples == 0:
            raise EmptyTableError(n_samples=0, n_spins=packed.n_spins)
        total, weight = 0.0, 0.0
        for start in range(0, packed.n_samples, 4096):
            spins = np.asarray(packed[start : start + 4096], dtype=np.float64)
            local = spins @ self.model_.couplings + self.model_.fields
            each = np.where(spins == 0, 0.0, -np.logaddexp(0.0, -2 * spins * local)).sum(axis=1)
            share = np.ones(len(each)) if weights is None else weights[start : start + 4096]
            total, weight = total + float(share @ each), weight + float(share.sum())
        return total / weight

    @abstractmethod
    def _estimate(
        self, stat: Gram, normal: NormalEquations, packed: PackedSpins | None, weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Directed estimates; row i is spin i on the others. The data come along where they are at hand."""

    def _check_settings(self) -> None:
        require_number("threshold", self.threshold, at_least=0)
        require_instance("fit_fields", self.fit_fields, bool, "True or False")
        if self.missing not in ("error", "drop", "pairwise"):
            raise SettingError(setting="missing", value=self.missing, expected="'error', 'drop' or 'pairwise'")
        if self.rule not in RULES:
            raise SettingError(setting="rule", value=self.rule, expected="'average', 'and' or 'or'")

    def _read(self, X: Any, sample_weight: Any, reset: bool) -> tuple[PackedSpins, NDArray[np.float64] | None]:
        if isinstance(X, PackedSpins | Spins):
            packed, rows = as_asked(pack(X), self.missing)
            if reset:
                self.n_features_in_ = packed.n_spins
                self._set_names(packed.names)
            elif packed.names != self.model_.names:
                raise ModelMismatchError(left=self.model_.names, right=packed.names, what="the fit and the samples")
            else:
                require_same_coding(packed.names, self.mapping_, packed.mapping)
        else:
            if not reset:
                validate_data(self, X, reset=False, skip_check_array=True)  # the same spins as in fit
            spins = as_spins(X, binarize=self.binarize, missing=self.missing, mapping=None if reset else self.mapping_)
            packed, rows = pack(spins), spins.rows
            if reset:
                validate_data(self, X, reset=True, skip_check_array=True)  # sets n_features_in_ and feature_names_in_
        weights = None if sample_weight is None else as_weights(sample_weight, packed.n_samples, rows)
        return packed, weights

    def _set_names(self, names: tuple[str, ...]) -> None:
        """scikit-learn's attribute, present only where the spins have names of their own."""
        self.__dict__.pop("feature_names_in_", None)
        if names != tuple(f"x{j}" for j in range(len(names))):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _finish(self, stat: Gram, normal: NormalEquations, estimates: NDArray[np.float64]) -> Self:
        self.estimates_ = estimates
        self.n_samples_ = stat.n_samples
        self.mapping_ = stat.mapping
        self.intercepts_ = normal.means - estimates @ normal.means
        couplings = symmetric_couplings(estimates, self.threshold, self.rule)
        self.model_ = IsingModel(couplings, normal.means - couplings @ normal.means, stat.names)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags
