"""IsingEstimator: what all estimators share, from reading a table to the symmetric model."""

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from isingkit._kernels.threads import blas_threads_for
from isingkit.alike import (
    AlikeColumns,
    alike_columns,
    alike_table,
    merging_limit,
    require_merging,
)
from isingkit.arrays import BoolArray, FloatArray
from isingkit.covariates import (
    CovariateCoding,
    CovariateEffects,
    as_covariates,
    covariates_for,
)
from isingkit.estimators.covariate_effects import RegressedEffects, regressed_effects
from isingkit.estimators.covariate_table import covariate_table
from isingkit.estimators.normal import (
    NormalEquations,
    covariate_sums,
    left_by,
    normal_equations,
)
from isingkit.estimators.symmetric import RULES, symmetric_couplings
from isingkit.exceptions import (
    CountsAsWeightsWarning,
    MissingValuesError,
    ModelMismatchError,
    SettingError,
    require_instance,
    require_number,
    warn,
)
from isingkit.gram import Gram, gram_of
from isingkit.missing import WITHOUT_DRAWING, MissingPolicy
from isingkit.model import IsingModel, log_pseudolikelihood
from isingkit.packing import (
    PackedSpins,
    apply_missing_policy,
    distinct_samples,
    pack,
    require_same_coding,
)
from isingkit.spins import (
    Binarize,
    Names,
    RowWeights,
    Spins,
    as_spins,
    missing_policy,
    require_network,
    row_weights,
    warn_of_constants,
)
from isingkit.worlds.exact import exact, log_partitions

_MANY_TIMES = 3  # samples a row, of which a histogram has more


class IsingEstimator(BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator of couplings in the manner of scikit-learn: constructors only store, `fit`
    learns, names end in `_`.
    """

    _takes_covariates: ClassVar[bool] = False
    _coding: CovariateCoding | None = None  # of the covariates of the last fit
    _regressed: RegressedEffects | None = None  # what that said of them
    _alike: AlikeColumns | None = None  # columns that the last fit has merged
    model_: IsingModel
    # what `missing` may be, and why no more
    _policies: ClassVar[Sequence[MissingPolicy]] = WITHOUT_DRAWING
    _why_no_more: ClassVar[str] = "only AutoIsing draws missing values, 'impute'"

    def __init__(
        self,
        *,
        threshold: float | str,
        rule: str,
        fit_fields: bool,
        binarize: Binarize,
        missing: str,
        merge_alike: bool | float | str,
    ) -> None:
        self.threshold = threshold
        self.rule = rule
        self.fit_fields = fit_fields
        self.binarize = binarize
        self.missing = missing
        self.merge_alike = merge_alike

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        counts: Any = None,
        covariates: Any = None,
    ) -> Self:
        """Learn from a table of two-valued columns or from PackedSpins.

        Parameters
        ----------
        X
            One row a sample, one column a spin: PackedSpins, numpy, scipy.sparse, pandas, polars or
            pyarrow.
        y
            Ignored; present because scikit-learn's tools pass it.
        sample_weight
            How much each row matters: one number >= 0 for each. Only ratios count: what depends on
            how many samples there are, penalties, too, takes (sum w)^2 / sum w^2 for their number.
        counts
            How many equal samples each row stands for: one whole number >= 0 for each. The same as
            repeating rows.
        covariates
            What else is known of each row (age, habitat, day), a table of numbers or categories:
            they shift the fields of spins, and are no part of the network.
        """
        with self._as_before_if_stopped():
            read, packed, weights = self._to_learn_from(
                X, sample_weight, counts, covariates=covariates
            )
            with blas_threads_for(packed.n_spins):
                self._learn(packed, weights, warned=warns_itself(X))
            self._name_merged(read)
        return self

    @contextmanager
    def _as_before_if_stopped(self) -> Iterator[None]:
        """Within, an error or an interrupt leaves all attributes as they were: none of a new fit
        beside those of an old one.
        """
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _to_learn_from(
        self,
        X: Any,
        sample_weight: Any,
        counts: Any,
        groups: Any = None,
        covariates: Any = None,
    ) -> tuple[PackedSpins, PackedSpins, RowWeights | None]:
        """What `fit` was given, where it and the settings are such as can be learnt from: as read,
        with columns merged that are alike, and weights.
        """
        self._check_settings()
        if covariates is not None and not self._takes_covariates:
            raise SettingError(
                setting="covariates",
                value="a table",
                expected=f"None for {type(self).__name__}; AutoIsing, PseudolikelihoodIsing and "
                "linear estimators take covariates",
            )
        try:
            packed, weights = self._read(
                X, sample_weight, counts, groups=groups, covariates=covariates, reset=True
            )
        except MissingValuesError as error:
            raise error.offering(self._policies) from None
        n_samples = packed.n_samples if weights is None else weights.n_samples
        require_network(n_samples, packed.n_spins)
        merged = self._merge(packed, weights)
        return packed, merged, self._in_samples(merged, weights)

    def _merge(self, packed: PackedSpins, weights: RowWeights | None) -> PackedSpins:
        """Samples in which columns that are alike are one spin, where that is asked for."""
        limit = merging_limit(self.merge_alike, packed.n_spins)
        self._alike = None if limit is None else alike_columns(packed, limit, weights)
        return packed if self._alike is None else self._alike.merged(packed)

    def _name_merged(self, as_read: PackedSpins) -> None:
        """After a fit, what was merged: columns of the table that was read, and spins."""
        self.alike_ = alike_table(self._alike)
        if self._alike is None:
            return
        self.mapping_ = as_read.mapping
        self.model_ = replace(self.model_, alike=self._alike)

    def _in_samples(self, packed: PackedSpins, weights: RowWeights | None) -> RowWeights | None:
        """Weights as penalties and sums take them."""
        if weights is None:
            return None
        if _look_like_histogram(packed, weights):
            total = int(weights.totals.sum())
            warn(CountsAsWeightsWarning(n_rows=packed.n_samples, total=total))
        return weights.scaled()

    def _repr_html_inner(self) -> str:
        """scikit-learn's table of settings, and below it the network, once there is one."""
        network = self.model_._repr_html_() if hasattr(self, "model_") else ""
        return f"{super()._repr_html_inner()}{network}"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        counts: Any = None,
        covariates: Any = None,
    ) -> float:
        """Mean log pseudolikelihood of the samples under `model_`, the sum over spins of log P(s_i
        | the others); larger is better.

        Parameters
        ----------
        X
            Samples of the same spins as in `fit`.
        y
            Ignored.
        sample_weight
            How much each row matters.
        counts
            How many equal samples each row stands for.
        covariates
            What else is known of each row: the same columns as in `fit`.
        """
        check_is_fitted(self)
        packed, weights = self._read(X, sample_weight, counts, covariates=covariates, reset=False)
        return self.mean_log_pseudolikelihood(packed, weights)

    def mean_log_pseudolikelihood(self, packed: PackedSpins, weights: RowWeights | None) -> float:
        """The score of samples that are read already."""
        totals = None if weights is None else weights.totals
        with blas_threads_for(packed.n_spins):
            return log_pseudolikelihood(self.model_, packed, totals, self._shifts(packed, weights))

    def _shifts(self, packed: PackedSpins, weights: RowWeights | None) -> FloatArray | None:
        """(n_samples, n_spins): what covariates add to fields of `model_`; None for nothing."""
        effects = self.model_.effects
        if weights is None or weights.covariates is None or effects is None:
            return None
        return np.asarray(weights.covariates @ effects.values.T)

    def log_likelihood(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        counts: Any = None,
        covariates: Any = None,
    ) -> float:
        """Mean exact log likelihood of the samples under `model_`, for up to 24 spins, or where the
        network is a tree.

        Parameters
        ----------
        X
            Samples of the same spins as in `fit`.
        y
            Ignored.
        sample_weight
            How much each row matters.
        counts
            How many equal samples each row stands for.
        covariates
            What else is known of each row: the same columns as in `fit`.
        """
        check_is_fitted(self)
        packed, weights = self._read(X, sample_weight, counts, covariates=covariates, reset=False)
        if packed.present is not None:
            raise SettingError(
                setting="missing", value=self.missing, expected="'drop' for an exact likelihood"
            )
        stat, model = gram_of(packed, weights), self.model_
        of_couplings = model.couplings.multiply(stat.sums).sum() / 2
        energy = of_couplings + model.fields @ stat.spin_sums
        if weights is None or weights.covariates is None or model.effects is None:
            return float(energy / stat.n_samples - exact(model).log_z)
        energy += (model.effects.values * _pair_sums(packed, weights)).sum()
        return float(energy / stat.n_samples - _mean_log_z(model, weights))

    @abstractmethod
    def _learn(self, packed: PackedSpins, weights: RowWeights | None, warned: bool) -> Self:
        """Learn from samples; `warned`: constant columns were already warned of."""

    def _check_settings(self) -> None:
        self._check_threshold()
        require_instance("fit_fields", self.fit_fields, bool, "True or False")
        missing_policy(self.missing, self._policies, self._why_no_more)
        if self.rule not in RULES:
            raise SettingError(setting="rule", value=self.rule, expected="'average', 'and' or 'or'")
        require_merging(self.merge_alike)

    def _check_threshold(self) -> None:
        require_number("threshold", self.threshold, at_least=0)

    def _read(
        self,
        X: Any,
        sample_weight: Any,
        counts: Any,
        *,
        reset: bool,
        groups: Any = None,
        covariates: Any = None,
    ) -> tuple[PackedSpins, RowWeights | None]:
        if isinstance(X, PackedSpins | Spins):
            packed, rows = apply_missing_policy(pack(X), self.missing)
            if reset:
                self.n_features_in_ = packed.n_spins
                self._set_names(packed.names)
            elif packed.names != self._columns:
                raise ModelMismatchError(
                    left=self._columns, right=packed.names, what="the fit and the samples"
                )
            else:
                require_same_coding(packed.names, self.mapping_, packed.mapping)
        else:
            if not reset:
                validate_data(
                    self, _named_alike(X), reset=False, skip_check_array=True
                )  # the same spins as in fit
            spins = as_spins(
                X,
                binarize=self.binarize,
                missing=self.missing,
                mapping=None if reset else self.mapping_,
            )
            packed, rows = pack(spins), spins.rows
            if reset:
                validate_data(
                    self, _named_alike(X), reset=True, skip_check_array=True
                )  # sets n_features_in_ and feature_names_in_
            else:
                self._require_same_names(packed.names)
        if not reset and self._alike is not None:
            packed = self._alike.merged(packed)
        weights = row_weights(sample_weight, counts, packed.n_samples, groups=groups, rows=rows)
        values = self._covariates(packed, weights, covariates, rows, reset)
        if values is None:
            return packed, weights
        ones = np.ones(packed.n_samples)
        plain = RowWeights(ones, ones) if weights is None else weights
        return packed, replace(plain, covariates=values)

    @property
    def _columns(self) -> Names:
        """Of the table of the last fit."""
        names: Names = self.model_.names if self._alike is None else self._alike.columns
        return names

    def _covariates(
        self,
        packed: PackedSpins,
        weights: RowWeights | None,
        table: Any,
        rows: BoolArray | None,
        reset: bool,
    ) -> FloatArray | None:
        """(n_rows, n): covariates as numbers, where there are any; `fit` (reset) keeps how they
        were coded, and everything else takes what it kept.
        """
        n_rows = packed.n_samples if rows is None else len(rows)
        totals = None if weights is None else weights.totals
        if not reset:
            return covariates_for(self.model_.effects, table, n_rows, rows, totals)
        self._forget_covariates()
        if table is None:
            return None
        coded = as_covariates(table, packed.n_samples, rows, totals)
        self._coding = coded.coding
        return coded.values

    def _forget_covariates(self) -> None:
        """Those of an earlier fit."""
        self._coding = None
        self.__dict__.pop("covariate_effects_", None)

    def _read_only(
        self,
        X: Any,
        sample_weight: Any,
        counts: Any,
        groups: Any = None,
        covariates: Any = None,
    ) -> tuple[PackedSpins, RowWeights | None]:
        """As `fit` reads what it learns from, but nothing of it is kept."""
        reader = clone(self)
        packed, weights = reader._read(
            X, sample_weight, counts, groups=groups, covariates=covariates, reset=True
        )
        n_samples = packed.n_samples if weights is None else weights.n_samples
        require_network(n_samples, packed.n_spins)
        merged = reader._merge(packed, weights)
        return merged, self._in_samples(merged, weights)

    def _require_same_names(self, names: Names) -> None:
        """Refuse other names than those of the fit, where both tables have names; scikit-learn
        compares those alone that are texts.
        """
        are_named = not _are_numbered(names) and not _are_numbered(self._columns)
        if are_named and names != self._columns:
            raise ModelMismatchError(
                left=self._columns, right=names, what="the fit and the samples"
            )

    def _set_names(self, names: Names) -> None:
        """scikit-learn's attribute, present only where the spins have names of their own."""
        self.__dict__.pop("feature_names_in_", None)
        if not _are_numbered(names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _finish(
        self,
        data: Gram | PackedSpins,
        n_samples: float,
        estimates: FloatArray,
        intercepts: FloatArray,
        means: FloatArray,
    ) -> Self:
        """From directed estimates to the model: threshold, rule, and fields that keep the means
        where couplings were changed.
        """
        self.estimates_, self.intercepts_ = estimates, intercepts
        self.n_samples_ = n_samples
        self.mapping_ = data.mapping
        couplings = symmetric_couplings(estimates, self._least_coupling(), self.rule)
        self.model_ = IsingModel(couplings, self._fields(couplings, means), data.names)
        if self._coding is not None:
            self.model_ = replace(self.model_, effects=self._effects(self._coding))
        return self

    def _effects(self, coding: CovariateCoding) -> CovariateEffects:
        """By how much covariates shift fields of `model_`: what regressions say, and what couplings
        that were changed explained of them. The table of effects is that of the regressions.
        """
        found = self._regressed
        assert found is not None
        names = self.model_.names
        self.covariate_effects_ = covariate_table(names, coding.names, found.values, found.errors)
        left = self._taken_up(self.model_.couplings, found.slopes)
        return CovariateEffects(found.values + left, coding)

    def _taken_up(self, couplings: Any, of_spins: FloatArray) -> FloatArray:
        """What fields must do for couplings that were changed; of_spins: (n_spins, ...), means, or
        how means follow covariates.
        """
        return np.asarray(self.estimates_ @ of_spins - couplings @ of_spins)

    def _least_coupling(self) -> float:
        """What counts as absent is below it."""
        return float(self.threshold)

    def _fields(self, couplings: Any, means: FloatArray) -> FloatArray:
        return np.asarray(self.intercepts_ + self.estimates_ @ means - couplings @ means)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        return tags


def _are_numbered(names: Names) -> bool:
    """Whether names are those that a table without names gets."""
    return names == tuple(f"x{j}" for j in range(len(names)))


def _named_alike(X: Any) -> Any:
    """A table, of which scikit-learn will look at names and shape; names of several types, which it
    refuses, are texts.
    """
    if not hasattr(X, "iloc") or len({type(name) for name in X.columns}) < 2:
        return X
    return X.iloc[:0].set_axis([str(name) for name in X.columns], axis=1)


def warns_itself(X: Any) -> bool:
    """Whether reading warns of constant columns."""
    return not isinstance(X, PackedSpins | Spins)


def _look_like_histogram(packed: PackedSpins, weights: RowWeights) -> bool:
    """Whether weights seem to count how often each row was seen: rows all differ, and have large
    whole weights, not all the same.
    """
    is_counted = weights.counts.max() > 1
    if is_counted or weights.are_equal or not weights.are_whole:
        return False
    if weights.totals.sum() < _MANY_TIMES * packed.n_samples:
        return False
    return len(distinct_samples(packed)[0]) == packed.n_samples


def _pair_sums(packed: PackedSpins, weights: RowWeights) -> FloatArray:
    """(n_spins, n): sums over rows of a spin times a covariate."""
    assert weights.covariates is not None
    weighted = weights.totals[:, None] * weights.covariates
    sums = np.zeros((packed.n_spins, weighted.shape[1]))
    for start in range(0, packed.n_samples, 4096):
        spins = np.asarray(packed[start : start + 4096], dtype=np.float64)
        sums += spins.T @ weighted[start : start + 4096]
    return sums


def _mean_log_z(model: IsingModel, weights: RowWeights) -> float:
    """Mean over rows of log Z given their covariates; equal ones are looked at once."""
    assert model.effects is not None
    assert weights.covariates is not None
    kept = weights.totals > 0
    different, place = np.unique(weights.covariates[kept], axis=0, return_inverse=True)
    totals = np.bincount(place.ravel(), weights=weights.totals[kept])
    shares = totals / weights.totals.sum()
    fields = model.fields + different @ model.effects.values.T
    return float(shares @ log_partitions(model, fields))


class GramEstimator(IsingEstimator):
    """An estimator that needs the pair sums of the data only."""

    gram_: Gram  # of `partial_fit`: the pair sums so far

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
        with self._as_before_if_stopped(), blas_threads_for(stat.n_spins):
            self.n_features_in_ = stat.n_spins
            self._set_names(stat.names)
            self._forget_covariates()
            self._require_unmerged("fit_gram")
            return self._learn(None, None, warned=False, stat=stat)

    def _require_unmerged(self, method: str) -> None:
        """Refuse to merge columns of which only pair sums are known."""
        if self.merge_alike != "auto" and self.merge_alike is not False:
            raise SettingError(
                setting="merge_alike",
                value=self.merge_alike,
                expected=f"False or 'auto' for {method}: only fit, which sees rows, merges columns",
            )
        self._alike = None
        self.alike_ = alike_table(None)

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, counts: Any = None
    ) -> Self:
        """Learn from more rows of the same columns: as `fit` on all rows so far, of which only the
        pair sums are kept.

        Values are read as in the first part, which should hold both values of every column.

        Parameters
        ----------
        X
            Rows, as for `fit`.
        y
            Ignored.
        sample_weight
            How much each row matters, in all parts on one scale.
        counts
            How many equal samples each row stands for.
        """
        self._check_settings()
        is_first = not hasattr(self, "gram_")
        with self._as_before_if_stopped():
            self._require_unmerged("partial_fit")
            packed, weights = self._read(X, sample_weight, counts, reset=is_first)
            with blas_threads_for(packed.n_spins):
                more = gram_of(packed, weights)
            stat = more if is_first else self.gram_ + more
            require_network(stat.n_rows, stat.n_spins)
            with blas_threads_for(stat.n_spins):
                self._learn(None, None, warned=True, stat=stat)
            self.gram_ = stat
        return self

    def _learn(
        self,
        packed: PackedSpins | None,
        weights: RowWeights | None,
        warned: bool,
        stat: Gram | None = None,
    ) -> Self:
        """Learn from samples, or from their pair sums alone."""
        self.__dict__.pop("gram_", None)  # of parts, which this forgets
        if stat is None:
            assert packed is not None
            stat = gram_of(packed, weights)
        stat = stat.in_samples()
        normal = normal_equations(stat, self.fit_fields)
        if not warned:
            warn_of_constants(normal.names, ~normal.changes)
        sums = None
        if packed is not None and weights is not None and weights.covariates is not None:
            sums = covariate_sums(normal, packed, weights)
            normal = left_by(sums, normal, pairwise=packed.present is not None)
        estimates, intercepts = self._estimate(stat, normal, packed, weights)
        if sums is not None:
            self._regressed = regressed_effects(sums.slopes, estimates)
        return self._finish(stat, stat.n_samples, estimates, intercepts, normal.means)

    @abstractmethod
    def _estimate(
        self,
        stat: Gram,
        normal: NormalEquations,
        packed: PackedSpins | None,
        weights: RowWeights | None,
    ) -> tuple[FloatArray, FloatArray]:
        """Directed estimates, row i spin i on the others, and intercepts. The data come along where
        they are at hand.
        """


class LinearEstimator(GramEstimator):
    """An estimator by linear regressions of what covariates leave of spins."""

    _takes_covariates = True
