"""IsingEstimator: what all estimators share, from reading a table to the symmetric model."""

from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from isingkit.estimators.normal import NormalEquations, normal_equations, warn_of_constants
from isingkit.estimators.symmetric import symmetric_couplings
from isingkit.exceptions import SettingError
from isingkit.gram import Gram, gram
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins, pack
from isingkit.spins import as_spins, as_weights, require_network


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
        if isinstance(X, PackedSpins):
            warn_of_constants(normal)
        self.mapping_ = packed.mapping
        return self._finish(stat, normal, self._estimate(stat, normal, packed, weights))

    def fit_gram(self, stat: Gram) -> Self:
        """Learn from a Gram, for instance one added up from chunks.

        Parameters
        ----------
        stat
            The pair sums of the data.
        """
        self._check_settings()
        require_network(stat.n_samples, stat.n_spins)
        normal = normal_equations(stat, self.fit_fields)
        warn_of_constants(normal)
        self.mapping_ = None
        self.n_features_in_ = stat.n_spins
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
        if not self.threshold >= 0:
            raise SettingError(setting="threshold", value=self.threshold, expected="a number >= 0")
        if self.rule not in ("average", "and", "or"):
            raise SettingError(setting="rule", value=self.rule, expected="'average', 'and' or 'or'")

    def _read(self, X: Any, sample_weight: Any, reset: bool) -> tuple[PackedSpins, NDArray[np.float64] | None]:
        rows = None
        if not reset:
            validate_data(self, X, reset=False, skip_check_array=True)  # the same spins as in fit
        if isinstance(X, PackedSpins):
            packed = X
        else:
            mapping = None if reset else self.mapping_
            spins = as_spins(X, binarize=self.binarize, missing=self.missing, mapping=mapping)
            packed, rows = pack(spins), spins.rows
        if reset:
            validate_data(self, X, reset=True, skip_check_array=True)  # sets n_features_in_ and feature_names_in_
        weights = None if sample_weight is None else as_weights(sample_weight, packed.n_samples, rows)
        return packed, weights

    def _finish(self, stat: Gram, normal: NormalEquations, estimates: NDArray[np.float64]) -> Self:
        self.estimates_ = estimates
        self.intercepts_ = normal.means - estimates @ normal.means
        couplings = symmetric_couplings(estimates, self.threshold, self.rule)
        self.model_ = IsingModel(couplings, normal.means - couplings @ normal.means, stat.names)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags
