"""Spins: any table of two-valued columns as int8 -1/+1. The only place that validates data."""

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from isingkit._kernels import spins as kernels
from isingkit._kernels.threads import parallel_map
from isingkit.arrays import BoolArray, FloatArray, IntArray, SpinArray
from isingkit.exceptions import (
    ColumnNamesError,
    ColumnTypeError,
    ConstantColumnWarning,
    CountsError,
    EmptyRowsWarning,
    EmptyTableError,
    GroupsError,
    InfiniteValueError,
    IsingkitError,
    MissingValuesError,
    NotATableError,
    NoValuesError,
    SampleWeightError,
    SettingError,
    SpinValueError,
    TableShapeError,
    TableTooSmallError,
    require_choice,
    require_number,
    warn,
)
from isingkit.missing import EVERY_POLICY, MissingPolicy

Names = tuple[str, ...]  # of columns, of groups or of covariates
Coding = tuple[object, object]  # the value that becomes -1, the value that becomes +1
# a threshold of all columns of numbers, or of some by their names
Binarize = float | Mapping[str, float] | None
NUMERIC_CODINGS: tuple[tuple[float, float], ...] = ((0, 1), (-1, 1), (1, 2))
# Of two texts the one found here becomes -1; otherwise the first in alphabetical order does.
NEGATIVE_TEXTS = frozenset([
    "no", "n", "false", "f", "absent", "off", "nay", "negative", "never", "low", "down", "dead",
    "inactive", "disagree", "fail", "incorrect", "wrong", "unchecked", "control", "nein", "non",
    "nej", "0", "-1",
])  # fmt: skip
MISSING_TEXTS = frozenset([
    "", "na", "n/a", "nan", "-nan", "+nan", "null", "none", "<na>", "#n/a", "#na", "#null!",
])  # fmt: skip
# in any case, as longer ones; x is a mark
_SHORT_WORDS = frozenset(["no", "ja", "si", "sí", "da", "ne", "on", "x"])
_LONG = 3  # letters: shorter texts, such as alleles, may differ in case alone
_BELOW_PYTHON = ("ns", "ps", "fs", "as")  # units of times that Python's own do not go down to
_TIMES = (datetime.date, datetime.time, datetime.timedelta)  # and what derives from them
_LARGEST_WEIGHT = 1e100  # whose square is a number, too
_ROUNDING = 1e-14  # relative, of one division and one product
_MOST_SAMPLES = 2**53  # so that sums of counts are exact
_CHUNK = 1 << 22  # values looked at in one go, so that no temporary copy of a large table is made


@dataclass(frozen=True, slots=True, eq=False)
class Spins:
    """A validated table of spins."""

    values: SpinArray  # (n_samples, n_spins): -1 or +1, and 0 where missing
    names: Names
    mapping: tuple[Coding, ...]  # for each spin the values of the table that became -1 and +1
    rows: BoolArray | None  # which rows of the table were kept; None when all were
    has_missing: bool

    @property
    def n_samples(self) -> int:
        return int(self.values.shape[0])

    @property
    def n_spins(self) -> int:
        return int(self.values.shape[1])

    def __repr__(self) -> str:
        return f"Spins({self.n_samples} samples of {self.n_spins} spins)"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of one kind with names."""

    names: Names
    array: NDArray[Any]  # (n_samples, n_columns)


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring columns of one kind: a matrix of numbers (dense or sparse), or one column of
    texts.
    """

    names: Names
    array: Any  # (n_samples, n_columns)

    def chunks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Ranges of rows, dense."""
        step = max(1, _CHUNK // self.array.shape[1])
        for start in range(0, self.array.shape[0], step):
            chunk = self.array[start : start + step]
            yield start, chunk.toarray() if scipy.sparse.issparse(chunk) else chunk


@dataclass(frozen=True, slots=True)
class Column:
    """What is known of one column before it is turned into spins."""

    name: str
    low: Any
    high: Any
    n_missing: int
    distinct: tuple[Any, ...] | None  # the first values, listed only where there are more than two
    repeats: bool = False  # whether any came again before there were too many to list

    @property
    def is_text(self) -> bool:
        """Whether it holds texts; else numbers."""
        return isinstance(self.low, str)

    def values(self) -> set[Any]:
        """Values that are known to occur; without any, low and high are infinite."""
        seen = {self.low, self.high, *(self.distinct or ())} - {None}
        return {value for value in seen if isinstance(value, str) or np.isfinite(value)}


def as_spins(
    table: Any,
    *,
    binarize: Binarize = None,
    missing: str = "error",
    mapping: Sequence[Coding] | None = None,
) -> Spins:
    """Spins of any table of two-valued columns: numpy, scipy.sparse, pandas, polars or pyarrow.

    Columns may hold bool, 0/1, -1/+1, 1/2 or two texts such as no/yes; `mapping` of the result says
    which value became which spin.

    Parameters
    ----------
    table
        One row a sample, one column a spin.
    binarize
        Threshold for real-valued columns: larger values become +1, the others -1; or thresholds by
        the names of columns, where others keep their two values. By default real-valued columns
        are refused.
    missing
        What to do about missing values: "error" refuses them, "drop" keeps complete rows,
        "pairwise" and "impute" keep all rows that hold a value, and mark them.
    mapping
        For each column the pair of values that become -1 and +1; by default it is found from the
        data.

    Examples
    --------
    >>> from isingkit import as_spins
    >>> as_spins([["no", "yes"], ["yes", "yes"], ["yes", "no"]]).values
    array([[-1,  1],
           [ 1,  1],
           [ 1, -1]], dtype=int8)
    """
    policy = missing_policy(missing)
    require_binarize(binarize)
    names, n_samples, blocks = _blocks(table)
    require_columns_to_cut(binarize, names)
    columns = [column for block in blocks for column in _survey(block, binarize)]
    is_to_learn = mapping is None  # else it is read like an earlier table
    check_missing(
        columns,
        policy,
        n_samples,
        is_to_learn,
        lambda: _n_complete(blocks, n_samples),
        binarize=binarize,
    )
    codings = codings_of(columns, binarize) if mapping is None else _given(mapping, columns)
    values = _encoded_or_same(blocks, columns, codings, binarize, n_samples)
    has_missing = any(column.n_missing for column in columns)
    rows = _kept_rows(values, policy) if has_missing else None
    if rows is not None:
        values = values[rows]
        has_missing = not values.all()
    if is_to_learn:
        if rows is not None and policy.keeps_all_rows:
            warn_of_empty_rows(n_samples - len(values), n_samples)
        is_as_surveyed = rows is None and binarize is None
        one_valued = [column.low == column.high for column in columns]
        warn_of_constants(names, one_valued if is_as_surveyed else constant_columns(values))
    return Spins(values, names, tuple(codings), rows, has_missing)


def _kept_rows(values: SpinArray, policy: MissingPolicy) -> BoolArray | None:
    """Complete rows, or those that hold anything, as the policy wants it; None where all are."""
    rows = np.asarray(values.any(axis=1) if policy.keeps_all_rows else values.all(axis=1))
    if rows.all():
        return None
    require_rows(int(rows.sum()), values.shape, policy)
    return rows


def require_rows(n_kept: int, shape: tuple[int, ...], policy: MissingPolicy) -> None:
    """Refuse a table of this shape of which a policy keeps no row."""
    if n_kept == 0:
        n_rows, n_spins = shape
        raise EmptyTableError(n_samples=0, n_spins=n_spins, dropped=n_rows, policy=policy)


def missing_policy(
    missing: str, allowed: Sequence[MissingPolicy] = EVERY_POLICY, why: str = ""
) -> MissingPolicy:
    """The policy of this name, refused where it is none of those allowed."""
    require_choice("missing", missing, allowed, why)
    return MissingPolicy(missing)


def require_binarize(binarize: Binarize) -> None:
    """Refuse what is no threshold, nor thresholds by column."""
    thresholds = binarize.values() if isinstance(binarize, Mapping) else [binarize]
    for one in thresholds:
        if one is not None:
            require_number("binarize", one)


def require_columns_to_cut(binarize: Binarize, names: Sequence[str]) -> None:
    """Refuse thresholds of columns that are not there."""
    named = binarize if isinstance(binarize, Mapping) else {}
    unknown = [name for name in named if name not in names]
    if unknown:
        there_are = f"thresholds of columns that are there ({', '.join(names[:20])})"
        raise SettingError(setting="binarize", value=unknown[0], expected=there_are)


def threshold_of(binarize: Binarize, name: str) -> float | None:
    """The threshold of a column; None where it keeps its two values."""
    return binarize.get(name) if isinstance(binarize, Mapping) else binarize


def require_table(names: Sequence[str], n_samples: int) -> None:
    """Refuse tables without rows or columns, and columns of one name."""
    if n_samples == 0 or len(names) == 0:
        raise EmptyTableError(n_samples=n_samples, n_spins=len(names))
    if len(set(names)) < len(names):
        raise ColumnNamesError(names=names, n_spins=len(names))
    require_names_without_nul(names)


def require_names_without_nul(names: Sequence[str]) -> None:
    """Refuse names that arrays of texts would cut short, and take for others."""
    wrong = [name for name in names if "\0" in name]
    if wrong:
        expected = "without the character NUL"
        raise SettingError(setting="names", value=wrong[0], expected=expected)


def require_matrix(shape: tuple[int, ...], kind: str) -> None:
    """Refuse what has not two dimensions."""
    if len(shape) == 0:
        raise NotATableError(kind=kind)
    if len(shape) != 2:
        raise TableShapeError(shape=shape)


def require_network(n_samples: float, n_spins: int) -> None:
    """Refuse fewer than two samples or two spins."""
    if n_samples < 2 or n_spins < 2:
        raise TableTooSmallError(n_samples=int(n_samples), n_spins=n_spins)


def as_weights(sample_weight: Any, n_samples: int, rows: BoolArray | None = None) -> FloatArray:
    """One weight for each kept row, float64 (n_samples,); `rows` says which rows of the table were
    kept.
    """
    weights = _row_numbers(sample_weight, n_samples, rows, SampleWeightError)
    if weights.max() > _LARGEST_WEIGHT or weights.max() < 1 / _LARGEST_WEIGHT:
        raise SampleWeightError(problem=f"its largest is {weights.max():g}: divide all by that")
    return weights


def as_counts(counts: Any, n_samples: int, rows: BoolArray | None = None) -> FloatArray:
    """How many samples each kept row stands for, whole numbers as float64 (n_samples,)."""
    numbers = _row_numbers(counts, n_samples, rows, CountsError)
    parts = np.flatnonzero(numbers != np.rint(numbers))
    if len(parts):
        raise CountsError(problem=f"it holds {numbers[parts[0]]:g}")
    if numbers.sum() > _MOST_SAMPLES:
        raise CountsError(problem=f"they add up to {numbers.sum():g}")
    return numbers


def _row_numbers(
    given: Any,
    n_samples: int,
    rows: BoolArray | None,
    error: type[SampleWeightError] | type[CountsError],
) -> FloatArray:
    """Finite numbers >= 0, one for each kept row, that are not all zero."""
    n_rows = n_samples if rows is None else len(rows)
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise error(problem=f"it is {given!r:.40}") from None
    if numbers.ndim == 0:
        numbers = np.full(n_rows, float(numbers))
    if numbers.shape != (n_rows,):
        raise error(problem=f"its shape is {numbers.shape} for {n_rows} rows")
    if rows is not None:
        numbers = numbers[rows]
    if not np.isfinite(numbers).all():
        raise error(problem="it holds NaN or infinity")
    if (numbers < 0).any():
        raise error(problem=f"it holds {numbers.min():g}")
    if not numbers.any():
        raise error(problem="all are zero")
    return numbers


def as_groups(groups: Any, n_samples: int, rows: BoolArray | None = None) -> IntArray:
    """Which kept rows belong together: codes from 0 on of any labels, int64 (n_samples,)."""
    n_rows = n_samples if rows is None else len(rows)
    labels = np.asarray(groups)
    if labels.shape != (n_rows,):
        raise GroupsError(problem=f"its shape is {labels.shape} for {n_rows} rows")
    if rows is not None:
        labels = labels[rows]
    missing = missing_labels(labels)
    if missing.any():
        some = "1 row has none" if missing.sum() == 1 else f"{missing.sum()} rows have none"
        raise GroupsError(problem=some)
    if labels.dtype.kind == "O":  # perhaps of several types, which cannot be sorted
        places: dict[Any, int] = {}
        codes = [places.setdefault(label, len(places)) for label in labels.tolist()]
        return np.array(codes, dtype=np.int64)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def missing_labels(labels: NDArray[Any]) -> BoolArray:
    """(n_rows,): which labels of any kind are missing."""
    if labels.dtype.kind in "fc":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind in "mM":
        return np.asarray(np.isnat(labels))
    if labels.dtype.kind in "OUST":
        return np.array([_is_missing(label) for label in labels.tolist()], dtype=bool)
    return np.zeros(len(labels), dtype=bool)


@dataclass(frozen=True, slots=True, eq=False)
class RowWeights:
    """What rows count for, and what else is known of them. A row of count c and weight w adds c w
    to sums and c w^2 to variances.
    """

    totals: FloatArray  # (n_rows,): what a row adds to sums
    squares: FloatArray  # (n_rows,): what it adds to variances; counts add the same
    groups: IntArray | None = None  # (n_rows,): codes of rows that belong together
    covariates: FloatArray | None = None  # (n_rows, n): centred

    @property
    def n_effective(self) -> float:
        """Samples of equal weight that would tell as much."""
        return float(self.totals.sum() ** 2 / self.squares.sum())

    @property
    def counts(self) -> FloatArray:
        """(n_rows,): samples that a row stands for; 0 where its weight is."""
        ones = np.ones_like(self.totals)
        there = self.squares > 0
        weights = np.divide(self.squares, self.totals, out=ones, where=there)
        return np.asarray(np.rint(self.totals / weights))

    def of_each_sample(self) -> FloatArray:
        """(n_samples,): weights, each as often as its row was counted."""
        counts = self.counts
        each = self.totals / np.maximum(counts, 1)
        return np.repeat(each, counts.astype(np.int64))

    @property
    def n_samples(self) -> int:
        """Samples of positive weight."""
        return int(self.counts.sum())

    @property
    def are_counts(self) -> bool:
        """Whether all samples weigh the same: 1."""
        return bool((self.totals == self.squares).all())

    @property
    def are_whole(self) -> bool:
        """Whether weights are whole numbers, each as good as so many samples."""
        some = self.squares > 0
        weights = self.squares[some] / self.totals[some]
        is_whole = (weights == np.rint(weights)).all() and self.totals.sum() <= _MOST_SAMPLES
        return bool(is_whole and (self.totals == np.rint(self.totals)).all())

    @property
    def are_equal(self) -> bool:
        """Whether all samples that weigh anything weigh the same."""
        some = self.squares > 0
        weights = self.squares[some] / self.totals[some]
        return bool(np.ptp(weights) <= _ROUNDING * weights.max())

    def scaled(self) -> "RowWeights":
        """The same weights, multiplied so that their total is the effective number of samples, and
        that of their squares, too: only ratios count, whole numbers or not. Counts stay as they
        are, and equal weights are none.
        """
        if self.are_counts:
            return self
        if self.are_equal:
            counts = self.counts
            return replace(self, totals=counts, squares=counts)
        total = float(self.totals.sum())
        total_of_squares = float(self.squares.sum())
        totals = self.totals * total / total_of_squares
        squares = self.squares * (total / total_of_squares) ** 2
        return replace(self, totals=totals, squares=squares)

    def with_centred_covariates(self) -> "RowWeights":
        """The same of rows that are some of others, of which covariates were centred."""
        if self.covariates is None:
            return self
        means = np.average(self.covariates, axis=0, weights=self.totals)
        return replace(self, covariates=self.covariates - means)

    @property
    def are_plain(self) -> bool:
        """Whether each row is one sample."""
        return bool((self.totals == 1).all() and (self.squares == 1).all())

    def __getitem__(self, rows: NDArray[Any]) -> "RowWeights":
        groups = None if self.groups is None else self.groups[rows]
        covariates = None if self.covariates is None else self.covariates[rows]
        return RowWeights(self.totals[rows], self.squares[rows], groups, covariates)


def row_weights(
    sample_weight: Any,
    counts: Any,
    n_samples: int,
    *,
    groups: Any = None,
    rows: BoolArray | None = None,
) -> RowWeights | None:
    """What rows count for, of what a user has given for all rows; None where that is nothing.

    `rows` says which rows of the table were kept; there are `n_samples` of them.
    """
    if sample_weight is None and counts is None and groups is None:
        return None
    weights = np.ones(n_samples)
    times = np.ones(n_samples)
    if sample_weight is not None:
        weights = as_weights(sample_weight, n_samples, rows)
    if counts is not None:
        times = as_counts(counts, n_samples, rows)
    codes = None if groups is None else as_groups(groups, n_samples, rows)
    totals = times * weights
    if not totals.any():
        raise SampleWeightError(problem="it is zero wherever counts are not")
    return RowWeights(totals, totals * weights, codes)


# From any table to blocks


def columns_of(table: Any, unnamed: str = "x") -> list[tuple[str, NDArray[Any]]]:
    """Names and columns of any table: numbers, NaN where missing, truth values, or texts, None
    where missing; categories and times are texts. What has one dimension is one column; those
    without names are numbered.
    """
    named = _named_series(table)
    if named is not None:
        names, columns = named
    elif isinstance(table, Table):
        names, columns = table.names, list(table.array.T)
    else:
        names, columns = _unnamed_columns(table, unnamed)
    require_table(names, len(columns[0]) if columns else 0)
    pairs = zip(names, columns, strict=True)
    return [(name, _plain(_with_categories(column), name)) for name, column in pairs]


def _unnamed_columns(table: Any, unnamed: str) -> tuple[Names, list[Any]]:
    """Columns, or the one, of what has no names, with names by their places."""
    if not scipy.sparse.issparse(table) and _as_array(table).ndim == 1:
        name = getattr(table, "name", None)
        is_series = hasattr(table, "to_numpy")  # of pandas, polars or pyarrow
        label = f"{unnamed}0" if name in (None, "") else str(name)
        return (label,), [table if is_series else _as_array(table)]
    array = _matrix(table)
    dense = array.toarray() if scipy.sparse.issparse(array) else array
    return tuple(f"{unnamed}{j}" for j in range(dense.shape[1])), list(dense.T)


def _with_categories(column: Any) -> NDArray[Any]:
    """A column as numpy has it, but with texts for categories, times, and truth values of any
    kind.
    """
    values = _values(column)
    if _are_times(values):
        return as_texts(values)
    is_truth = values.dtype.kind == "O" and all(
        isinstance(value, bool | np.bool_) or _is_missing(value) for value in values.tolist()
    )
    return as_texts(values) if is_truth or are_categories(column) else values


def _are_times(values: NDArray[Any]) -> bool:
    """Whether a column holds dates, times or spans of time, as numpy or Python has them."""
    if values.dtype.kind != "O":
        return values.dtype.kind in "mM"
    known = [value for value in values.tolist() if not _is_missing(value)]
    return bool(known) and all(isinstance(value, _TIMES) for value in known)


def are_categories(column: Any) -> bool:
    """Whether a column of pandas, polars or pyarrow holds categories, whatever these are."""
    if _is_of_arrow(column):
        return hasattr(column.type, "index_type")
    return hasattr(getattr(column, "dtype", None), "categories")


def _is_of_arrow(column: Any) -> bool:
    return type(column).__module__.startswith("pyarrow")


def as_texts(values: NDArray[Any]) -> NDArray[Any]:
    """Values of any kind as texts, None where missing."""
    is_fine = values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] in _BELOW_PYTHON
    if is_fine:  # of which numpy makes numbers
        values = values.astype(f"{values.dtype.kind}8[us]")
    pairs = zip(values.tolist(), missing_labels(values).tolist(), strict=True)
    return np.array([None if lacks else str(value) for value, lacks in pairs], dtype=object)


def _blocks(table: Any) -> tuple[Names, int, list[_Block]]:
    """Names, number of samples, and the columns in blocks of one kind."""
    named = _named_series(table)
    if named is not None:
        names, series = named
        columns = list(map(_values, series))
        n_samples = len(columns[0]) if columns else 0
        blocks = [_column_block(name, one) for name, one in zip(names, columns, strict=True)]
    else:
        array = _matrix(table.array if isinstance(table, Table) else table)
        n_samples, n_columns = array.shape
        names = table.names if isinstance(table, Table) else ()
        names = names or tuple(f"x{j}" for j in range(n_columns))
        if array.dtype.kind in "biuf":
            blocks = [_Block(names, array)]
        else:
            blocks = [_column_block(name, array[:, j]) for j, name in enumerate(names)]
    require_table(names, n_samples)
    return names, n_samples, blocks


def _column_block(name: str, column: NDArray[Any]) -> _Block:
    return _Block((name,), _plain(column, name).reshape(-1, 1))


def _matrix(table: Any) -> Any:
    """A table without names as an array of two dimensions, dense or CSR."""
    kind = type(table).__name__
    array = table.tocsr() if scipy.sparse.issparse(table) else _as_array(table)
    require_matrix(array.shape, kind)
    return array


def _as_array(table: Any) -> NDArray[Any]:
    """What has no names as an array; what is masked is missing."""
    if isinstance(table, np.ma.MaskedArray):
        gap: Any = None if table.dtype.kind in "OUST" else np.nan
        return np.where(np.ma.getmaskarray(table), gap, table.data)
    try:
        return np.asarray(table)
    except ValueError:
        raise NotATableError(kind="list of rows of different lengths") from None


def _named_series(table: Any) -> tuple[Names, list[Any]] | None:
    """Names and columns of a pandas, polars or pyarrow table, none of which we import."""
    if hasattr(table, "column_names") and hasattr(table, "itercolumns"):  # pyarrow
        return tuple(table.column_names), list(table.itercolumns())
    if hasattr(table, "iloc") and hasattr(table, "columns"):  # pandas
        names = tuple(str(name) for name in table.columns)
        return names, [table.iloc[:, j] for j in range(len(names))]
    if hasattr(table, "get_columns"):  # polars
        return tuple(table.columns), list(table.get_columns())
    return None


def _values(column: Any) -> NDArray[Any]:
    """A column of any kind as numpy has it."""
    if _is_of_arrow(column):
        return arrow_values(column)
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)


def arrow_values(column: Any) -> NDArray[Any]:
    """A column of pyarrow as numpy has it."""
    if are_categories(column):  # of which to_numpy would forget which values are missing
        column = column.cast(column.type.value_type)
    elif str(column.type).startswith("decimal"):
        column = column.cast("float64")
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _plain(column: NDArray[Any], name: str) -> NDArray[Any]:
    """A column as numbers, NaN where missing, or as texts, None where missing."""
    kind = column.dtype.kind
    if kind in "biuf":
        return column
    if kind == "c":
        raise ColumnTypeError(column=name, kind="complex")
    if kind not in "OUST":
        raise ColumnTypeError(column=name, kind=f"values of type {column.dtype}")
    values = [None if _is_missing(value) else value for value in column.tolist()]
    types = {type(value) for value in values if value is not None}
    if all(issubclass(one, (bool, int, float, Decimal, np.number, np.bool_)) for one in types):
        return np.array([np.nan if value is None else float(value) for value in values])
    if all(issubclass(one, str) for one in types):
        return np.array(values, dtype=object)
    if complex in types:
        raise ColumnTypeError(column=name, kind="complex")
    mixture = sorted(f"values of type {one.__name__}" for one in types)
    raise ColumnTypeError(column=name, kind=" and ".join(mixture))


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().casefold() in MISSING_TEXTS
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


# What each column holds


def survey(table: Any, binarize: Binarize) -> list[Column]:
    """What each column of a table holds; the surveys of its parts can be `merged`."""
    return [column for block in _blocks(table)[2] for column in _survey(block, binarize)]


def merged(left: Sequence[Column], right: Sequence[Column]) -> list[Column]:
    """What each column holds in either of two parts of one table."""
    return [_both(one, other) for one, other in zip(left, right, strict=True)]


def _both(left: Column, right: Column) -> Column:
    n_missing = left.n_missing + right.n_missing
    both = column_of(left.name, left.values() | right.values(), n_missing)
    if both.distinct is None and (left.distinct is not None or right.distinct is not None):
        return replace(both, distinct=())
    return both


def column_of(name: str, values: Iterable[Any], n_missing: int) -> Column:
    """A column that holds these values, all numbers or all texts."""
    distinct = sorted(values)
    if not distinct:
        return Column(name, None, None, n_missing, None)
    if isinstance(distinct[0], str):
        distinct = sorted({folded(text): text for text in reversed(distinct)}.values())
        negative_first = sorted(distinct, key=lambda text: not says_no(text))
        low, high = negative_first[0], negative_first[-1]
    else:
        low, high = _python(distinct[0]), _python(distinct[-1])
    shown = tuple(distinct[:20]) if len(distinct) > 2 else None
    return Column(name, low, high, n_missing, shown)


def folded(text: str) -> str:
    """What is the same for texts that mean the same, as "Yes" and "yes" do."""
    word = text.strip().casefold()
    return word if len(word) >= _LONG or word in _SHORT_WORDS else text


def says_no(text: str) -> bool:
    """Whether a text is the lower of two values."""
    return text.strip().casefold() in NEGATIVE_TEXTS


def _survey(block: _Block, binarize: Binarize) -> list[Column]:
    if block.array.dtype.kind == "O":
        return [_survey_texts(block)]
    if block.array.dtype == np.int8 and isinstance(block.array, np.ndarray):
        columns = _survey_spins(block)
        if columns is not None:
            return columns
    return _survey_numbers(block, binarize)


def _survey_spins(block: _Block) -> list[Column] | None:
    """What int8 columns of at most two of -1, 0 and +1 hold; None where one has more, or others."""
    n_samples, n_columns = block.array.shape
    chunk = max(1, _CHUNK // n_columns)
    parts = parallel_map(kernels.values_seen, n_samples, block.array, chunk=chunk)
    seen = np.bitwise_or.reduce(parts)
    if (seen >= kernels.MINUS | kernels.ZERO | kernels.PLUS).any():
        return None
    has_minus = seen & kernels.MINUS > 0
    has_zero = seen & kernels.ZERO > 0
    has_plus = seen & kernels.PLUS > 0
    low = np.select([has_minus, has_zero], [-1, 0], 1)
    high = np.select([has_plus, has_zero], [1, 0], -1)
    return [Column(name, int(low[j]), int(high[j]), 0, None) for j, name in enumerate(block.names)]


def _survey_numbers(block: _Block, binarize: Binarize) -> list[Column]:
    n_samples, n_columns = block.array.shape
    low = np.full(n_columns, np.inf)
    high = np.full(n_columns, -np.inf)
    n_missing = np.zeros(n_columns, dtype=np.int64)
    for _, chunk in block.chunks():
        low = np.fmin(low, np.fmin.reduce(chunk, axis=0))
        high = np.fmax(high, np.fmax.reduce(chunk, axis=0))
        if chunk.dtype.kind == "f":
            n_missing += np.isnan(chunk).sum(axis=0)
    is_infinite = (n_missing < n_samples) & ~(np.isfinite(low) & np.isfinite(high))
    if is_infinite.any():
        raise InfiniteValueError(columns=[block.names[j] for j in np.flatnonzero(is_infinite)])
    distinct: list[tuple[Any, ...] | None] = [None] * n_columns
    is_kept = np.array([threshold_of(binarize, name) is None for name in block.names])
    if is_kept.any():
        more_than_two = np.flatnonzero(is_kept & _has_values_between(block, low, high))
        for j in more_than_two:
            distinct[j] = ()
        for j in more_than_two[:1]:  # one column's values are enough for the message
            distinct[j] = _distinct(block, int(j))
    return [
        Column(name, _python(low[j]), _python(high[j]), int(n_missing[j]), distinct[j])
        for j, name in enumerate(block.names)
    ]


def _python(number: float) -> float:
    """A plain number, whole where it is."""
    return int(number) if float(number).is_integer() else float(number)


def _has_values_between(block: _Block, low: FloatArray, high: FloatArray) -> BoolArray:
    found = np.zeros(len(low), dtype=bool)
    whole = block.array.dtype.kind in "biu"
    if whole and (high - low <= 1).all():
        return found
    for _, chunk in block.chunks():
        found |= ((chunk > low) & (chunk < high)).any(axis=0)  # false for NaN
    return found


def _distinct(block: _Block, column: int) -> tuple[Any, ...]:
    of_chunks = [np.unique(chunk[:, column]) for _, chunk in block.chunks()]
    values: NDArray[Any] = np.unique(np.concatenate(of_chunks))
    return tuple(values[~np.isnan(values)][:20].tolist())


def _survey_texts(block: _Block) -> Column:
    texts = block.array[:, 0]
    distinct = {text for text in texts if text is not None}
    return column_of(block.names[0], distinct, sum(text is None for text in texts))


def check_missing(
    columns: Sequence[Column],
    policy: MissingPolicy,
    n_samples: int,
    to_learn: bool,
    n_complete: Callable[[], int] | None = None,
    binarize: Binarize = None,
) -> None:
    """Refuse columns without any value, and missing values where they are an error. For the message
    only: `n_complete` counts complete rows, and `binarize` tells which columns are wrong besides.
    """
    counts = {column.name: column.n_missing for column in columns if column.n_missing}
    empty = [name for name, count in counts.items() if count == n_samples]
    others = [column for column in columns if to_learn and column.n_missing < n_samples]
    not_two_valued = [column.name for column in others if not is_codable(column, binarize)]
    if empty and to_learn:
        raise NoValuesError(columns=empty, not_two_valued=not_two_valued)
    if counts and policy is MissingPolicy.ERROR:
        raise MissingValuesError(
            counts=counts,
            n_samples=n_samples,
            n_spins=len(columns),
            n_complete=None if n_complete is None else n_complete(),
            not_two_valued=not_two_valued,
        )


def n_complete_rows(table: Any) -> int:
    """How many rows of a table lack no value."""
    _, n_samples, blocks = _blocks(table)
    return _n_complete(blocks, n_samples)


def _n_complete(blocks: Sequence[_Block], n_samples: int) -> int:
    """How many rows lack no value."""
    lacks = np.zeros(n_samples, dtype=bool)
    for block in blocks:
        for start, chunk in block.chunks():
            is_missing = np.broadcast_to(_missing_in(chunk), chunk.shape)
            lacks[start : start + len(chunk)] |= is_missing.any(axis=1)
    return int((~lacks).sum())


# From values to -1 and +1


@contextmanager
def surveyed(columns: Sequence[Column], n_rows: int) -> Iterator[None]:
    """Errors about columns know of all of them, not only of the first that is wrong."""
    try:
        yield
    except IsingkitError as error:
        error.survey = (tuple(columns), n_rows)
        raise


def codings_of(columns: Sequence[Column], binarize: Binarize) -> list[Coding]:
    """For each column the values that become -1 and +1. A constant column follows the columns that
    change.
    """
    wrong = [column for column in columns if not is_codable(column, binarize)]
    if wrong:
        values = wrong[0].distinct or tuple(sorted({wrong[0].low, wrong[0].high}))
        others = [column.name for column in wrong[1:]]
        raise SpinValueError(column=wrong[0].name, values=values, others=others)
    changing = {(column.low, column.high) for column in columns if column.low != column.high}
    return [_coding(column, binarize, changing) for column in columns]


def is_codable(column: Column, binarize: Binarize) -> bool:
    """Whether a column has two values, or one, in a known coding, or is binarised."""
    if threshold_of(binarize, column.name) is not None and _is_numeric(column):
        return True
    return column.distinct is None and _is_coded(column)


def _coding(column: Column, binarize: Binarize, changing: set[Coding]) -> Coding:
    threshold = threshold_of(binarize, column.name)
    if threshold is not None and _is_numeric(column):
        return f"<= {threshold:g}", f"> {threshold:g}"
    if column.low == column.high:
        return _constant_coding(column.low, changing)
    return column.low, column.high


def _given(mapping: Sequence[Coding], columns: Sequence[Column]) -> list[Coding]:
    """The codings of a mapping, one for each column."""
    is_list = isinstance(mapping, Sequence | np.ndarray) and len(mapping) == len(columns)
    are_pairs = is_list and all(
        isinstance(pair, tuple | list | np.ndarray) and len(pair) == 2 for pair in mapping
    )
    if not are_pairs:
        expected = f"{len(columns)} pairs of values, one for each column"
        raise SettingError(setting="mapping", value=mapping, expected=expected)
    return [_filled(coding, column) for coding, column in zip(mapping, columns, strict=True)]


def _is_numeric(column: Column) -> bool:
    return not isinstance(column.low, str)


def _filled(coding: Coding, column: Column) -> Coding:
    """A coding of texts of which one was never seen ("") learns it from a column that has it."""
    low, high = coding
    found = {column.low, column.high} - {low, high, None}
    if "" in coding and len(found) == 1:
        return (found.pop(), high) if low == "" else (low, found.pop())
    return coding


def _is_coded(column: Column) -> bool:
    return (
        not _is_numeric(column)
        or column.low == column.high
        or (column.low, column.high) in NUMERIC_CODINGS
    )


def _constant_coding(value: Any, changing: set[Coding]) -> Coding:
    shared = [coding for coding in changing if value in coding]
    if len(shared) == 1:
        return shared[0]
    if isinstance(value, str):
        return (value, "") if says_no(value) else ("", value)
    return next((coding for coding in NUMERIC_CODINGS if value in coding), (value - 1, value))


def encoded(table: Any, codings: Sequence[Coding], binarize: Binarize) -> SpinArray:
    """-1 for the low value of each column, +1 for the high one, 0 where missing: int8 (n_samples,
    n_columns).
    """
    _, n_samples, blocks = _blocks(table)
    return _encoded(blocks, codings, binarize, n_samples)


def _encoded_or_same(
    blocks: Sequence[_Block],
    columns: Sequence[Column],
    codings: Sequence[Coding],
    binarize: Binarize,
    n_samples: int,
) -> SpinArray:
    """Encoded values; a table that is int8 -1 and +1 already is not copied."""
    array = blocks[0].array
    is_int8 = len(blocks) == 1 and isinstance(array, np.ndarray) and array.dtype == np.int8
    if is_int8 and set(codings) == {(-1, 1)} and all(_is_spin(column) for column in columns):
        return np.asarray(array)
    return _encoded(blocks, codings, binarize, n_samples)


def _is_spin(column: Column) -> bool:
    return column.distinct is None and {column.low, column.high} <= {-1, 1}


def _encoded(
    blocks: Sequence[_Block], codings: Sequence[Coding], binarize: Binarize, n_samples: int
) -> SpinArray:
    values = np.empty((n_samples, len(codings)), dtype=np.int8)
    first = 0
    for block in blocks:
        here = slice(first, first + len(block.names))
        first = here.stop
        thresholds = [threshold_of(binarize, name) for name in block.names]
        is_kept = [one is None for one in thresholds]
        limit = np.array(thresholds, dtype=float) if isinstance(binarize, Mapping) else binarize
        for start, chunk in block.chunks():
            out = values[start : start + len(chunk), here]
            if chunk.dtype.kind == "O" or all(is_kept):
                _encode_pairs(chunk, codings[here], block.names, out)
                continue
            not_above = np.where(np.isnan(chunk), 0, -1)
            out[:] = np.where(chunk > limit, 1, not_above)
            for j in np.flatnonzero(is_kept).tolist():
                one = slice(j, j + 1)
                _encode_pairs(chunk[:, one], codings[here][one], block.names[one], out[:, one])
    return values


def _encode_pairs(
    chunk: NDArray[Any], codings: Sequence[Coding], names: Sequence[str], out: SpinArray
) -> None:
    low, high = np.array(codings, dtype=object).T
    if chunk.dtype.kind != "O":
        _clear_texts(chunk, codings, names, low, high)
        is_exact = chunk.dtype.kind == "i" and set(low) | set(high) <= {-1, 0, 1, 2}
        dtype = chunk.dtype if is_exact else np.float64
        low, high = low.astype(dtype), high.astype(dtype)
    is_low = chunk == low
    is_high = chunk == high
    np.subtract(is_high, is_low, out=out, dtype=np.int8, casting="unsafe")
    is_unknown = ~(is_low | is_high | _missing_in(chunk))
    for row, j in np.argwhere(is_unknown):  # spelt otherwise; a given mapping may leave values out
        same = _same_text(chunk[row, j], codings[j])
        if same is None:
            raise _unexpected(names[j], chunk[row, j], codings[j])
        out[row, j] = 1 if same == high[j] else -1


def _same_text(value: Any, coding: Coding) -> Any:
    """Which value of a coding a text is, in another spelling."""
    texts = [one for one in coding if isinstance(one, str) and isinstance(value, str)]
    return next((one for one in texts if folded(one) == folded(value)), None)


def _clear_texts(
    chunk: NDArray[Any],
    codings: Sequence[Coding],
    names: Sequence[str],
    low: NDArray[Any],
    high: NDArray[Any],
) -> None:
    """Set codings of texts to 0 in low and high: all values of such a column are missing here,
    which looks like numbers.
    """
    for j, coding in enumerate(codings):
        if not any(isinstance(value, str) for value in coding):
            continue
        numbers = chunk[:, j][~np.isnan(chunk[:, j])]
        if len(numbers):
            raise _unexpected(names[j], numbers[0], coding)
        low[j] = high[j] = 0


def _missing_in(chunk: NDArray[Any]) -> Any:
    if chunk.dtype.kind == "O":
        return chunk == np.array(None)
    return np.isnan(chunk) if chunk.dtype.kind == "f" else False


def _unexpected(column: str, value: Any, coding: Coding) -> SpinValueError:
    expected = " or ".join(str(one) for one in coding)
    return SpinValueError(column=column, values=(value,), expected=expected)


def constant_columns(values: SpinArray) -> BoolArray:
    """Which columns of spins never change (zeros, which are missing values, set aside)."""
    return np.asarray((values >= 0).all(axis=0) | (values <= 0).all(axis=0))


def warn_of_empty_rows(n_empty: int, n_rows: int) -> None:
    """Warn of rows without any value, where there are any."""
    if n_empty:
        warn(EmptyRowsWarning(n_empty=n_empty, n_rows=n_rows))


def warn_of_constants(names: Sequence[str], constant: Iterable[bool]) -> None:
    """Warn of columns that never change, where there are any."""
    columns = [name for name, never_changes in zip(names, constant, strict=True) if never_changes]
    if columns:
        warn(ConstantColumnWarning(columns=columns))
