"""Errors and warnings: what was expected, what came, what to do. The facts of each message are its attributes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def _listed(items: Sequence[object], most: int = 5) -> str:
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown}, and {len(items) - most} more"


def _quoted(names: Sequence[str], most: int = 5) -> str:
    return _listed([f"'{name}'" for name in names], most)


def _rebuilt(kind: type["IsingkitError"], message: str, facts: dict[str, Any]) -> "IsingkitError":
    error = kind.__new__(kind)
    error.args = (message,)
    error.__dict__.update(facts)
    return error


class IsingkitError(ValueError):
    """Base of every error that isingkit raises on purpose."""

    def __reduce__(self) -> Any:  # joblib sends errors between processes; constructors here take keywords only
        return _rebuilt, (type(self), self.args[0], vars(self))


class IsingkitWarning(UserWarning):
    """Base of every warning that isingkit raises on purpose."""


class SettingError(IsingkitError):
    """An argument of a function or an estimator is outside what it accepts."""

    def __init__(self, *, setting: str, value: object, expected: str) -> None:
        self.setting, self.value, self.expected = setting, value, expected
        super().__init__(f"{setting} must be {expected}, but got {value!r}.")


class TableShapeError(IsingkitError):
    """The data is not a two-dimensional table."""

    def __init__(self, *, shape: tuple[int, ...]) -> None:
        self.shape = shape
        super().__init__(
            f"Expected 2D array, got {len(shape)}D array instead (shape {shape}): one row a sample, one column a spin. "
            "Reshape your data, e.g. X.reshape(-1, 1) for one column or X.reshape(1, -1) for one row."
        )


class EmptyTableError(IsingkitError):
    """The table has no rows or no columns, or has none left once incomplete rows are dropped."""

    def __init__(self, *, n_samples: int, n_spins: int, dropped: int = 0) -> None:
        self.n_samples, self.n_spins, self.dropped = n_samples, n_spins, dropped
        what = "0 sample(s)" if n_samples == 0 else "0 feature(s)"
        message = f"Found array with {what} (shape=({n_samples}, {n_spins})) while a minimum of 1 is required."
        if dropped:
            message += (
                f" missing='drop' removed all {dropped} rows, for each has a missing value: "
                "drop the emptiest columns first, or use missing='pairwise'."
            )
        super().__init__(message)


class TableTooSmallError(IsingkitError):
    """There are too few rows or columns for a network."""

    def __init__(self, *, n_samples: int, n_spins: int) -> None:
        self.n_samples, self.n_spins = n_samples, n_spins
        super().__init__(
            f"A network needs at least 2 samples of at least 2 spins, but got n_samples = {n_samples}, "
            f"n_features = {n_spins} (1 sample or 1 feature(s) cannot show a coupling): give more rows or columns."
        )


class ColumnNamesError(IsingkitError):
    """Two columns share a name, or the number of names is not the number of columns."""

    def __init__(self, *, names: Sequence[str], n_spins: int) -> None:
        self.names, self.n_spins = tuple(names), n_spins
        repeated = sorted({name for name in names if list(names).count(name) > 1})
        self.repeated = tuple(repeated)
        problem = f"{_quoted(repeated)} repeated" if repeated else f"{len(names)} names"
        super().__init__(
            f"Expected {n_spins} different names, one for each spin, but got {problem}: rename the columns, e.g. X.columns = [...]."
        )


class ColumnTypeError(IsingkitError):
    """A column holds things that cannot be spins: complex numbers, dates, mixtures of text and numbers."""

    def __init__(self, *, column: str, kind: str) -> None:
        self.column, self.kind = column, kind
        if kind == "complex":
            super().__init__(
                f"Complex data not supported: column '{column}' holds complex numbers. "
                f"Binarise it first, e.g. X['{column}'].real > 0."
            )
        else:
            super().__init__(
                f"column '{column}' holds {kind}, but a spin is a bool, a number or one of two texts; "
                "argument must be a string or a number. Convert the column first, or leave it out."
            )


class SpinValueError(IsingkitError):
    """A column holds other than two values, or two values that are no known coding of a spin."""

    def __init__(self, *, column: str, values: Sequence[object], n_columns: int = 1, expected: object = None) -> None:
        self.column, self.values, self.n_columns, self.expected = column, tuple(values), n_columns, expected
        shown = _listed([value if isinstance(value, str) else f"{value:g}" for value in self.values])  # type: ignore[str-bytes-safe]
        if expected is not None:
            text = f"column '{column}' holds {shown}, but {expected} was expected. Use the same coding throughout."
        elif len(self.values) == 2:
            text = (
                f"column '{column}' holds the values {shown}, but a numeric spin is 0/1, -1/+1 or 1/2. "
                f"Recode it first, e.g. X['{column}'] == {shown.split(', ')[-1]}, or pass binarize=threshold."
            )
        else:
            count = f"{len(self.values)}" + ("" if len(self.values) < 20 else " or more")
            text = f"column '{column}' holds {count} values ({shown}), but a spin has two. Binarise it first, e.g. " + (
                f"X['{column}'] == '{self.values[-1]}'."
                if isinstance(self.values[-1], str)
                else f"X['{column}'] >= {self.values[len(self.values) // 2]:g}, or pass binarize=threshold."  # type: ignore[str-bytes-safe]
            )
        if n_columns > 1:
            text += f" ({n_columns - 1} more columns have the same trouble.)"
        super().__init__(text)


class InfiniteValueError(IsingkitError):
    """A column holds an infinite value."""

    def __init__(self, *, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        super().__init__(
            f"Input X contains infinity (inf) in {_quoted(columns)}, but a spin has two finite values: "
            "replace it, or set it to NaN and choose missing='drop' or missing='pairwise'."
        )


class MissingValuesError(IsingkitError):
    """Values are missing and the caller has not said what to do about them."""

    def __init__(self, *, counts: Mapping[str, int], n_samples: int) -> None:
        self.counts, self.n_samples = dict(counts), n_samples
        worst = sorted(self.counts.items(), key=lambda item: -item[1])
        listed = _listed([f"'{name}': {count}" for name, count in worst])
        super().__init__(
            f"Input X contains NaN: {sum(self.counts.values())} missing values in {len(self.counts)} columns of "
            f"{n_samples} rows ({listed}). Pass missing='drop' to use complete rows only, or missing='pairwise' "
            "to use for each pair the rows where both are present."
        )


class NoValuesError(IsingkitError):
    """A column has no value at all."""

    def __init__(self, *, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        super().__init__(f"every value of {_quoted(columns)} is missing (NaN), so nothing can be learnt: leave the column out.")


class SampleWeightError(IsingkitError):
    """Sample weights are negative, not finite, all zero, or not one for each row."""

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(f"sample_weight must hold one finite number >= 0 for each row and not only zeros, but {problem}.")


class UnderdeterminedError(IsingkitError):
    """Ordinary least squares has at least as many unknowns as samples."""

    def __init__(self, *, n_samples: float, n_spins: int) -> None:
        self.n_samples, self.n_spins = n_samples, n_spins
        super().__init__(
            f"n_samples={n_samples:g} rows of {n_spins} spins leave least squares underdetermined (it needs more rows than spins). "
            "Use RidgeIsing(ridge=0.1) or TwoStageIsing(), which work with fewer samples than spins."
        )


class DuplicateColumnsError(IsingkitError):
    """Two columns are equal or opposite in every row, so least squares cannot tell them apart."""

    def __init__(self, *, pair: tuple[str, str], opposite: bool, n_pairs: int) -> None:
        self.pair, self.opposite, self.n_pairs = pair, opposite, n_pairs
        how = "opposite" if opposite else "identical"
        more = f" (and {n_pairs - 1} more such pairs)" if n_pairs > 1 else ""
        super().__init__(
            f"columns '{pair[0]}' and '{pair[1]}' are {how} in every row{more}, so least squares cannot tell them apart. "
            "Leave one of the two out, or use RidgeIsing(ridge=0.1)."
        )


class SingularSystemError(IsingkitError):
    """The normal equations of least squares are singular."""

    def __init__(self, *, spin: str, ridge: float) -> None:
        self.spin, self.ridge = spin, ridge
        super().__init__(
            f"column '{spin}' is a linear combination of other columns, so the regression with ridge={ridge:g} is singular. "
            "Leave the column out, or use RidgeIsing(ridge=0.1)."
        )


class StageTwoError(IsingkitError):
    """The second stage of a two-stage fit cannot be solved for some spin."""

    def __init__(self, *, spin: str, n_unknowns: int, n_samples: float) -> None:
        self.spin, self.n_unknowns, self.n_samples = spin, n_unknowns, n_samples
        why = "as many unknowns as samples or more" if n_unknowns >= n_samples else "columns that depend on each other"
        super().__init__(
            f"stage two at spin '{spin}' has {n_unknowns} unknowns and {n_samples:g} samples: {why}, so it has no single answer. "
            "Raise prune so that fewer candidates survive stage one, or give more samples."
        )


class ModelError(IsingkitError):
    """Couplings, fields or names do not make an Ising model."""

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(f"an Ising model needs a finite, symmetric matrix of couplings with zero diagonal, but {problem}.")


class ModelMismatchError(IsingkitError):
    """Two things that should speak of the same spins do not."""

    def __init__(self, *, left: int, right: int, what: str) -> None:
        self.left, self.right = left, right
        super().__init__(f"{what} must be over the same spins, but one has {left} and the other {right}.")


class FileFormatError(IsingkitError):
    """A file is not of the kind that was asked for, or is damaged."""

    def __init__(self, *, path: Path, kind: str, problem: str) -> None:
        self.path, self.kind, self.problem = Path(path), kind, problem
        super().__init__(f"'{path}' is not {kind}: {problem}. Give a file that isingkit has saved.")


class ConstantColumnWarning(IsingkitWarning):
    """Columns with one value only: they stay as isolated spins."""

    def __init__(self, *, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        super().__init__(
            f"{_quoted(columns)} never changes, which says nothing about couplings: kept as isolated spin(s). "
            "Leave the column out to silence this."
        )


class UnobservedPairWarning(IsingkitWarning):
    """Pairs of columns that are never present in the same row: no coupling between them can be learnt."""

    def __init__(self, *, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)
        listed = _listed([f"'{a}' - '{b}'" for a, b in pairs])
        super().__init__(f"never present in the same row: {listed}. Their coupling is taken as zero, for the data cannot tell.")


class ContradictoryPairsWarning(IsingkitWarning):
    """Pair sums over different rows are those of no complete table."""

    def __init__(self, *, smallest: float) -> None:
        self.smallest = smallest
        super().__init__(
            f"with missing='pairwise' the pair sums come from different rows and contradict each other (smallest eigenvalue "
            f"{smallest:.2g} of the mean one): the nearest consistent ones were taken. "
            "Leave out the emptiest columns, or use a larger ridge."
        )
