"""Covariates: what else is known of each row, as centred numbers that shift the fields of spins."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from isingkit.arrays import BoolArray, FloatArray
from isingkit.exceptions import ColumnTypeError, CovariatesError, SettingError
from isingkit.result_table import Record
from isingkit.spins import Names, columns_of, missing_labels

_COLLINEAR = 1e-8  # of a covariate's size: less than this is nothing of its own
_MOST_CATEGORIES = 50  # of one column: more would be the names of rows


@dataclass(frozen=True, slots=True)
class CovariateColumn:
    """How one column becomes numbers: standardised, or one for each category but the first."""

    name: str
    categories: Names  # sorted; none where the column holds numbers
    means: tuple[float, ...]  # one for each number that the column becomes
    scale: float  # numbers are divided by it; 1 for categories

    @property
    def names(self) -> Names:
        """Of the numbers that the column becomes."""
        if not self.categories:
            return (self.name,)
        return tuple(f"{self.name}={category}" for category in self.categories[1:])

    def values(self, column: Any) -> FloatArray:
        """(n_rows, n): the numbers of a column that is read like this one."""
        _require_values(self.name, column)
        holds_texts = column.dtype.kind not in "iuf"
        if holds_texts != bool(self.categories):
            kinds = ("numbers", "texts") if holds_texts else ("texts", "numbers")
            raise CovariatesError(
                problem=f"'{self.name}' held {kinds[0]} when the network was learnt, and now "
                f"holds {kinds[1]}",
                advice="pass the same columns",
            )
        if not self.categories:
            _require_finite(self.name, column)
            return np.asarray((column[:, None] - self.means) / self.scale, dtype=np.float64)
        texts = column.astype(str)
        unknown = sorted(set(texts.tolist()) - set(self.categories))
        if unknown:
            raise CovariatesError(
                problem=f"'{self.name}' holds '{unknown[0]}', which it did not when the network "
                "was learnt",
                advice="leave these rows out",
            )
        indicators = texts[:, None] == np.array(self.categories[1:])
        return np.asarray(indicators - np.array(self.means), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class CovariateCoding:
    """How a table of covariates becomes numbers, wherever it is read again."""

    columns: tuple[CovariateColumn, ...]

    @property
    def names(self) -> Names:
        """Of the numbers."""
        return tuple(name for column in self.columns for name in column.names)

    def values(
        self, table: Any, n_rows: int | None = None, rows: BoolArray | None = None
    ) -> FloatArray:
        """(n_rows, n): a table of the same columns as numbers.

        n_rows: how many rows it should have, where that is known; rows: which of them to keep
        """
        columns = dict(_columns(table, n_rows))
        lacking = [column.name for column in self.columns if column.name not in columns]
        if lacking:
            raise CovariatesError(
                problem=f"there is no column '{lacking[0]}'", advice="pass the same columns"
            )
        kept = slice(None) if rows is None else rows
        parts = [column.values(columns[column.name][kept]) for column in self.columns]
        return np.concatenate(parts, axis=1)

    def as_plain(self) -> list[Record]:
        """As JSON has it."""
        return [asdict(column) for column in self.columns]


def coding_from(plain: Sequence[Record]) -> CovariateCoding:
    """The coding that `as_plain` has made."""
    columns = []
    for one in plain:
        categories = tuple(one["categories"])
        means = tuple(one["means"])
        columns.append(CovariateColumn(one["name"], categories, means, one["scale"]))
    return CovariateCoding(tuple(columns))


@dataclass(frozen=True, slots=True, eq=False)
class Covariates:
    """Numbers of rows, whose means are 0, and how they were made."""

    values: FloatArray  # (n_rows, n): float64
    coding: CovariateCoding

    @property
    def names(self) -> Names:
        return self.coding.names


@dataclass(frozen=True, slots=True, eq=False)
class CovariateEffects:
    """By how much covariates shift the fields of spins."""

    values: FloatArray  # (n_spins, n): of one standard deviation of a number, or of a category
    coding: CovariateCoding

    @property
    def names(self) -> Names:
        return self.coding.names

    def shifts(self, table: Any, n_rows: int) -> FloatArray:
        """(n_rows, n_spins): what covariates add to fields, row by row."""
        return self.coding.values(table, n_rows) @ self.values.T


def of_plain_numbers(effects: CovariateEffects) -> CovariateEffects:
    """The same effects, of covariates that are such numbers already: columns z0, z1, ..."""
    n_covariates = effects.values.shape[1]
    columns = [CovariateColumn(f"z{k}", (), (0.0,), 1.0) for k in range(n_covariates)]
    return CovariateEffects(effects.values, CovariateCoding(tuple(columns)))


def covariates_for(
    effects: CovariateEffects | None,
    table: Any,
    n_rows: int | None = None,
    rows: BoolArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray | None:
    """(n_rows, n): covariates as the numbers that these effects are of; None where there are no
    effects.

    A table that is lacking, or that nothing depends on, is refused. Rows whose weight is 0 are
    taken at the means, whatever is said of them.
    """
    if effects is None:
        if table is None:
            return None
        raise SettingError(
            setting="covariates",
            value="a table",
            expected="None, for the model was learnt without covariates",
        )
    if table is None:
        names = ", ".join(column.name for column in effects.coding.columns)
        raise SettingError(
            setting="covariates",
            value=None,
            expected=f"a table of {names}, with which fields of the model change "
            "(dataclasses.replace(model, effects=None) is the model at their means)",
        )
    if weights is None or weights.all():
        return effects.coding.values(table, n_rows, rows)
    counts = weights > 0
    kept = np.ones(len(weights), dtype=bool) if rows is None else rows.copy()
    kept[kept] = counts
    values = np.zeros((len(weights), len(effects.names)))
    values[counts] = effects.coding.values(table, n_rows, kept)
    return values


def as_covariates(
    table: Any,
    n_samples: int,
    rows: BoolArray | None = None,
    weights: FloatArray | None = None,
) -> Covariates:
    """Numbers standardised, texts and truth values one for each category but the first.

    rows: which rows of the table were kept; there are `n_samples` of them
    weights: (n_samples,), what rows count for where means are taken
    """
    columns = _columns(table, n_samples if rows is None else len(rows))
    if rows is not None:
        columns = [(name, column[rows]) for name, column in columns]
    counted = np.ones(n_samples) if weights is None else weights
    coding = CovariateCoding(tuple(_coding(name, column, counted) for name, column in columns))
    pairs = zip(coding.columns, columns, strict=True)
    parts = [one.values(_with_known(one, column)) for one, (_, column) in pairs]
    values = np.concatenate(parts, axis=1)
    _refuse_collinear(values, coding.names, counted)
    return Covariates(values, coding)


def _columns(table: Any, n_rows: int | None) -> list[tuple[str, Any]]:
    """Names and columns, each of numbers or of texts."""
    try:
        columns = columns_of(table, unnamed="z")
    except ColumnTypeError as error:
        raise CovariatesError(
            problem=f"'{error.column}' holds {_kind(error)}",
            advice="make numbers or texts of it, or leave it out",
        ) from None
    if not columns:
        raise CovariatesError(problem="there is no column", advice="leave covariates out")
    length = len(columns[0][1])
    if n_rows is not None and length != n_rows:
        raise CovariatesError(
            problem=f"there are {length} rows of them for {n_rows} rows of data",
            advice="pass one row for each",
        )
    return columns


def _kind(error: ColumnTypeError) -> str:
    return "complex numbers" if error.kind == "complex" else error.kind


def _coding(name: str, column: Any, weights: FloatArray) -> CovariateColumn:
    """What a column holds, with the means of the rows that count."""
    _require_values(name, column)
    if column.dtype.kind in "iuf":
        return _numbers(name, column, weights)
    texts = column.astype(str)
    categories = tuple(sorted(set(texts[weights > 0].tolist())))
    if len(categories) < 2:
        raise _constant(name)
    if len(categories) > _MOST_CATEGORIES:
        raise CovariatesError(
            problem=f"'{name}' holds {len(categories)} different texts, which look like names of "
            "rows",
            advice="leave it out, or pass it as groups",
        )
    indicators = texts[:, None] == np.array(categories[1:])
    means = weights @ indicators / weights.sum()
    return CovariateColumn(name, categories, tuple(means.tolist()), 1.0)


def _with_known(coding: CovariateColumn, column: Any) -> Any:
    """A column with its first category for those that only rows without weight hold."""
    if not coding.categories:
        return column
    is_known = np.isin(column.astype(str), coding.categories)
    return np.where(is_known, column, coding.categories[0])


def _numbers(name: str, column: Any, weights: FloatArray) -> CovariateColumn:
    """Of a column of numbers, which will be standardised."""
    numbers = column.astype(np.float64)
    _require_finite(name, numbers)
    mean = float(weights @ numbers / weights.sum())
    variance = weights @ (numbers - mean) ** 2 / weights.sum()
    scale = float(np.sqrt(variance))
    if scale <= 1e-12 * max(abs(mean), 1e-300):
        raise _constant(name)
    return CovariateColumn(name, (), (mean,), scale)


def _require_finite(name: str, numbers: Any) -> None:
    if not np.isfinite(numbers).all():
        raise CovariatesError(problem=f"'{name}' holds infinity", advice="leave these rows out")


def _constant(name: str) -> CovariatesError:
    return CovariatesError(
        problem=f"'{name}' is the same in all rows, which explains nothing", advice="leave it out"
    )


def _require_values(name: str, column: Any) -> None:
    """Refuse missing values: of a row of which something is not known, nothing can be said."""
    missing = missing_labels(column)
    if missing.any():
        problem = f"'{name}' lacks {int(missing.sum())} of {len(column)} values"
        raise CovariatesError(problem=problem, advice="fill them in, or leave these rows out")


def _refuse_collinear(values: FloatArray, names: Sequence[str], weights: FloatArray) -> None:
    """Refuse a covariate that follows from those before it."""
    scaled = np.sqrt(weights)[:, None] * values
    found: list[FloatArray] = []
    for column, name in zip(scaled.T, names, strict=True):
        left = column.copy()
        for _ in range(2):  # the second time for what rounding has left
            for one in found:
                left -= (one @ left) * one
        size = float(np.linalg.norm(left))
        if size <= _COLLINEAR * float(np.linalg.norm(column)):
            raise CovariatesError(
                problem=f"'{name}' follows from the others, so that their effects cannot be told "
                "apart",
                advice="leave it out",
            )
        found.append(left / size)
