"""Errors and warnings: what was expected, what came, what to do. The facts of each message are its
attributes.
"""

import csv
import io
import math
import numbers
import shlex
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from isingkit.missing import EVERY_POLICY, MissingPolicy

_LONGEST = 100  # characters of one thing in a message


def short(item: object) -> str:
    """A text for messages, the middle of a long one left out."""
    text = str(item)
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]}...{text[-half:]}"


def _listed(items: Sequence[object], most: int = 5) -> str:
    shown = ", ".join(short(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown}, and {len(items) - most} more"


def typed_list(names: Sequence[str]) -> str:
    """Names as they are typed in a shell where several may stand, quoted where that is needed, and
    in a readable way where that is possible.
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    text = line.getvalue()
    has_special = any(one in text for one in '"$`!\\')
    return f'"{text}"' if "'" in text and not has_special else shlex.quote(text)


def _quoted(names: Sequence[str], most: int = 5) -> str:
    return _listed([f"'{name}'" for name in names], most)


def _besides(not_two_valued: Sequence[str]) -> str:
    """What else is wrong with a table, after what was said; nothing where nothing is."""
    if not not_two_valued:
        return ""
    which = _quoted(not_two_valued, most=10)
    has_one = len(not_two_valued) == 1
    hold = "holds" if has_one else "hold"
    them = "it" if has_one else "them"
    said = f" Besides, {which} {hold} other than two values"
    return f"{said}: leave {them} out, give {them} as covariates, or binarise {them}."


def _shown(value: Any) -> str:
    return f"'{short(value)}'" if isinstance(value, str) else f"{value:g}"


def _rebuilt(kind: type[Exception], message: str, facts: dict[str, Any]) -> Exception:
    error = kind.__new__(kind)
    error.args = (message,)
    error.__dict__.update(facts)
    return error


class IsingkitError(ValueError):
    """Base of every error that isingkit raises on purpose."""

    survey: Any = None  # where a table is read: what is known of all its columns, and their length

    def __reduce__(
        self,
    ) -> Any:  # joblib sends errors between processes; constructors here take keywords only
        return _rebuilt, (type(self), self.args[0], vars(self))


class IsingkitWarning(UserWarning):
    """Base of every warning that isingkit raises on purpose."""

    is_minor: ClassVar[bool] = False  # whether it hardly matters for a result
    is_first: ClassVar[bool] = False  # whether it makes all others needless

    def __reduce__(self) -> Any:
        return _rebuilt, (type(self), self.args[0], vars(self))


def warn(warning: IsingkitWarning) -> None:
    """Warn at the line of the caller outside isingkit, however deep inside we are."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("isingkit."):
        frame = frame.f_back
        level += 1
    warnings.warn(warning, stacklevel=level)


class SettingError(IsingkitError):
    """An argument of a function or an estimator is outside what it accepts."""

    def __init__(self, *, setting: str, value: object, expected: str) -> None:
        self.setting = setting
        self.value = value
        self.expected = expected
        super().__init__(f"{setting} must be {expected}, but got {value!r}.")


LARGEST_PENALTY = 1e100  # of one that is larger, products may be infinite


def require_number(
    setting: str,
    value: object,
    *,
    at_least: float = -math.inf,
    above: float = -math.inf,
    at_most: float = math.inf,
    finite: bool = True,
    whole: bool = False,
    auto: bool = False,
) -> None:
    """Refuse what is no number within the bounds, nor "auto" where that is allowed; where infinity
    is, `at_most` is not about it.
    """
    if auto and value == "auto":
        return
    kind = numbers.Integral if whole else numbers.Real
    if isinstance(value, kind) and not isinstance(value, bool):
        number: Any = value
        is_infinite = abs(number) == math.inf
        is_allowed = not finite if is_infinite else number <= at_most
        if number >= at_least and number > above and is_allowed:
            return
    bounds = _bound(at_least, above) + _upper_bound(at_most)
    expected = _number(finite, whole) + bounds + (" or 'auto'" if auto else "")
    raise SettingError(setting=setting, value=value, expected=expected)


def _number(finite: bool, whole: bool) -> str:
    if whole:
        return "a whole number"
    return "a finite number" if finite else "a number"


def _bound(at_least: float, above: float) -> str:
    if above > -math.inf:
        return f" > {above:g}"
    return f" >= {at_least:g}" if at_least > -math.inf else ""


def _upper_bound(at_most: float) -> str:
    return f" and <= {at_most:g}" if at_most < math.inf else ""


def require_choice(setting: str, value: object, choices: Sequence[str], why: str = "") -> None:
    """Refuse what is none of the choices; `why` says why there are no more."""
    if value not in choices:
        *most, last = (f"'{choice}'" for choice in choices)
        expected = f"{', '.join(most)} or {last}" + (why and f": {why}")
        raise SettingError(setting=setting, value=value, expected=expected)


def require_instance(setting: str, value: object, kind: type, expected: str) -> None:
    """Refuse what is not of a kind."""
    if not isinstance(value, kind):
        raise SettingError(setting=setting, value=type(value), expected=expected)


class TableShapeError(IsingkitError):
    """The data is not a two-dimensional table."""

    def __init__(self, *, shape: tuple[int, ...]) -> None:
        self.shape = shape
        super().__init__(
            f"Expected 2D array, got {len(shape)}D array instead (shape {shape}): one row a "
            "sample, one column a variable. "
            "Reshape your data, e.g. X.reshape(-1, 1) for one column or X.reshape(1, -1) for one "
            "row."
        )


class NotATableError(IsingkitError):
    """What came is no table at all."""

    def __init__(self, *, kind: str) -> None:
        self.kind = kind
        advice = {
            "str": "read the file first, e.g. with pandas.read_csv",
            "PosixPath": "read the file first, e.g. with pandas.read_csv",
            "list of rows of different lengths": "give every row a value for each column, None "
            "where it is missing",
            "dict": "make it a table first, e.g. with pandas.DataFrame",
            "Gram": "a Gram goes to fit_gram",
            "IsingModel": "draw samples of it first, with isingkit.sample",
        }.get(kind, "give an array or a pandas, polars or pyarrow table")
        super().__init__(
            f"expected a table, one row a sample and one column a variable, but got a {kind}: "
            f"{advice}."
        )


class EmptyTableError(IsingkitError):
    """The table has no rows or no columns, or has none left once incomplete, or empty, rows are
    dropped.
    """

    def __init__(
        self,
        *,
        n_samples: int,
        n_spins: int,
        dropped: int = 0,
        policy: MissingPolicy = MissingPolicy.DROP,
    ) -> None:
        self.n_samples = n_samples
        self.n_spins = n_spins
        self.dropped = dropped
        what = "0 sample(s)" if n_samples == 0 else "0 feature(s)"
        shape = f"(shape=({n_samples}, {n_spins}))"
        message = f"Found array with {what} {shape} while a minimum of 1 is required."
        if dropped and policy is MissingPolicy.DROP:
            message += (
                f" missing='drop' removed all {dropped} rows, for each has a missing value: "
                "drop the emptiest columns first, or use missing='impute' (AutoIsing) or "
                "missing='pairwise'."
            )
        elif dropped:
            message += f" None of the {dropped} rows holds any value: give rows that do."
        super().__init__(message)


class TableTooSmallError(IsingkitError):
    """There are too few rows or columns for a network."""

    def __init__(self, *, n_samples: int, n_spins: int) -> None:
        self.n_samples = n_samples
        self.n_spins = n_spins
        super().__init__(
            "A network needs at least 2 rows of at least 2 columns, but got n_samples = "
            f"{n_samples}, "
            f"n_features = {n_spins} (1 sample or 1 feature(s) cannot show a coupling): give "
            "more rows or columns."
        )


class ColumnNamesError(IsingkitError):
    """Two columns share a name, or the number of names is not the number of columns."""

    def __init__(self, *, names: Sequence[str], n_spins: int) -> None:
        self.names = tuple(names)
        self.n_spins = n_spins
        repeated = sorted({name for name in names if list(names).count(name) > 1})
        self.repeated = tuple(repeated)
        problem = f"{_quoted(repeated)} repeated" if repeated else f"{len(names)} names"
        super().__init__(
            f"Expected {n_spins} different names, one for each column, but got {problem}: rename "
            "the columns, e.g. X.columns = [...]."
        )


class ColumnTypeError(IsingkitError):
    """A column holds things that cannot be spins: complex numbers, dates, mixtures of text and
    numbers.
    """

    def __init__(self, *, column: str, kind: str) -> None:
        self.column = column
        self.kind = kind
        if kind == "complex":
            super().__init__(
                f"Complex data not supported: column '{column}' holds complex numbers. "
                f"Binarise it first, e.g. X['{column}'].real > 0."
            )
        else:
            super().__init__(
                f"column '{column}' holds {kind}, but should hold two values: truth values, "
                "numbers or texts; "
                "argument must be a string or a number. Convert the column first, or leave it out."
            )


class SpinValueError(IsingkitError):
    """A column holds other than two values, or two values that are no known coding of a spin."""

    def __init__(
        self,
        *,
        column: str,
        values: Sequence[object],
        others: Sequence[str] = (),
        expected: str | None = None,
    ) -> None:
        self.column = column
        self.values = tuple(values)
        self.others = tuple(others)  # more columns of which the same must be said
        self.expected = expected
        text = self._problem()
        if others:
            plural = "s" if len(others) > 1 else ""
            text += f" ({len(others)} more such column{plural}: {_quoted(others, most=10)}.)"
        super().__init__(text)

    def _problem(self) -> str:
        shown = [_shown(value) for value in self.values]
        holds = f"column '{self.column}' holds"
        if self.expected is not None:
            came = f"{holds} {shown[0]}, but {self.expected} was expected"
            return f"{came}. Use the same coding throughout."
        if len(shown) == 2:
            return (
                f"{holds} the values {_listed(shown)}, but numbers must be 0/1, -1/+1 or 1/2. "
                f"Recode it, e.g. X['{self.column}'] == {shown[1]}, or pass binarize=threshold, "
                "which all numeric columns then share."
            )
        number = f"{len(shown)}" + ("" if len(shown) < 20 else " or more")
        came = f"{holds} {number} values ({_listed(shown)}), but two are needed"
        return f"{came}. {self._advice(shown)}"

    def _advice(self, shown: Sequence[str]) -> str:
        column = f"X['{self.column}']"
        texts = [value for value in self.values if isinstance(value, str)]
        if texts and len({text.strip().casefold() for text in texts}) == 2:
            return f"They differ only in case or spaces: {column}.str.strip().str.lower()."
        middle = shown[len(shown) // 2]
        binary = f"{column} == {shown[0]}" if texts else f"{column} >= {middle}"
        return (
            "Leave it out if it is no yes-or-no variable, set codes of missing values to NaN, "
            "repair typos, "
            f"or binarise it, e.g. {binary}."
        )


class InfiniteValueError(IsingkitError):
    """A column holds an infinite value."""

    def __init__(self, *, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        super().__init__(
            f"Input X contains infinity (inf) in {_quoted(columns)}, but two finite values are "
            "needed: "
            "replace it, or set it to NaN and choose missing='impute' (AutoIsing), missing='drop' "
            "or missing='pairwise'."
        )


class MissingValuesError(IsingkitError):
    """Values are missing and the caller has not said what to do about them."""

    def __init__(
        self,
        *,
        counts: Mapping[str, int],
        n_samples: int,
        n_spins: int,
        n_complete: int | None = None,
        policies: Sequence[MissingPolicy] = EVERY_POLICY,
        not_two_valued: Sequence[str] = (),
    ) -> None:
        self.counts = dict(counts)
        self.n_samples = n_samples
        self.n_spins = n_spins
        self.n_complete = n_complete  # rows without a missing value; None where not counted
        self.not_two_valued = tuple(not_two_valued)  # columns with a problem of another kind
        total = sum(self.counts.values())
        worst_first = sorted(self.counts.items(), key=lambda item: -item[1])
        listed = _listed([f"'{name}': {count}" for name, count in worst_first])
        recommended_first = sorted(policies, key=lambda one: one is not MissingPolicy.IMPUTE)
        remedies = [self._advice(one) for one in recommended_first if one.remedy]
        super().__init__(
            f"Input X contains NaN (missing values): {total} in "
            f"{len(self.counts)} column(s) of {n_samples} rows ({listed}), "
            f"{100 * total / (n_samples * n_spins):.2g} percent of all values. "
            f"Give the estimator or as_spins {', or '.join(remedies)}."
            f"{_besides(not_two_valued)}"
        )

    def _advice(self, policy: MissingPolicy) -> str:
        """What choosing a policy does, and what it keeps."""
        n_seen = self.n_samples - max(self.counts.values())
        n_complete = f"at most {n_seen}" if self.n_complete is None else f"{self.n_complete}"
        kept = policy.kept(self.n_samples, n_complete, n_seen)
        return f"missing='{policy}' {policy.remedy} ({kept})"

    def offering(self, policies: Sequence[MissingPolicy]) -> "MissingValuesError":
        """The same, for methods that take only these policies."""
        return MissingValuesError(
            counts=self.counts,
            n_samples=self.n_samples,
            n_spins=self.n_spins,
            n_complete=self.n_complete,
            policies=policies,
            not_two_valued=self.not_two_valued,
        )


class NoValuesError(IsingkitError):
    """A column has no value at all."""

    def __init__(self, *, columns: Sequence[str], not_two_valued: Sequence[str] = ()) -> None:
        self.columns = tuple(columns)
        self.not_two_valued = tuple(not_two_valued)  # columns with a problem of another kind
        super().__init__(
            f"every value of {_quoted(columns)} is missing (NaN), so nothing can be learnt: "
            f"leave the column out.{_besides(not_two_valued)}"
        )


class SampleWeightError(IsingkitError):
    """Sample weights are negative, not finite, all zero, or not one for each row."""

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(
            "sample_weight must hold one finite number >= 0 for each row and not only zeros, "
            f"but {problem}."
        )


class CountsError(IsingkitError):
    """Counts of rows are negative, no whole numbers, all zero, or not one for each row."""

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(
            "counts must hold one whole number >= 0 for each row, how many equal samples it stands "
            f"for, and not only zeros, but {problem}. How much rows matter is sample_weight."
        )


class CountsAsWeightsWarning(IsingkitWarning):
    """Sample weights look like a histogram."""

    def __init__(self, *, n_rows: int, total: int) -> None:
        self.n_rows = n_rows
        self.total = total
        super().__init__(
            f"sample_weight holds whole numbers, {total} in all, for {n_rows} rows that all "
            "differ: if they say how often each row was seen, pass them as counts; weights say how "
            "much rows matter and add no samples."
        )


class GroupsError(IsingkitError):
    """Labels of groups of rows are missing, or not one for each row."""

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(
            "groups must hold one label for each row, a number or a text that is the same for rows "
            f"which belong together, but {problem}. Give such rows labels of their own."
        )


class CovariatesError(IsingkitError):
    """Covariates lack values, are constant, follow from each other, or are not one row each."""

    def __init__(self, *, problem: str, advice: str) -> None:
        self.problem = problem
        self.advice = advice
        super().__init__(
            "covariates must be a table of numbers or categories, one row for each row of data "
            f"and nothing missing, but {problem}: {advice}."
        )


class FewGroupsError(IsingkitError):
    """Rows belong to so few groups that nobody could tell how much groups vary."""

    def __init__(self, *, n_groups: int, least: int) -> None:
        self.n_groups = n_groups
        self.least = least
        super().__init__(
            f"groups has {n_groups} different labels, but errors by groups need at least {least}. "
            "Give smaller groups (a session of a person instead of the person), add the group as a "
            "column, or leave groups out and read strong edges only."
        )


class GroupSizeError(IsingkitError):
    """Groups whose networks are to be compared are fewer than two, or have too few rows."""

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"groups must be two or more, each of enough rows to compare, but {problem}. Name "
            "another column of groups, put small groups together, or leave their rows out."
        )


class UnderdeterminedError(IsingkitError):
    """An estimator without penalty has at least as many unknowns as samples."""

    def __init__(self, *, n_samples: float, n_spins: int, what: str = "least squares") -> None:
        self.n_samples = n_samples
        self.n_spins = n_spins
        self.what = what
        super().__init__(
            f"n_samples={n_samples:g} rows of {n_spins} columns leave {what} underdetermined (it "
            "needs more rows than columns). "
            "Use RidgeIsing(ridge=0.1) or TwoStageIsing(), which work with fewer rows than "
            "columns, or a penalty, e.g. l2=0.01."
        )


class DuplicateColumnsError(IsingkitError):
    """Two columns are equal or opposite in every row, so nothing without a penalty can tell them
    apart.
    """

    def __init__(self, *, pair: tuple[str, str], opposite: bool, n_pairs: int) -> None:
        self.pair = pair
        self.opposite = opposite
        self.n_pairs = n_pairs
        how = "opposite" if opposite else "identical"
        more = f" (and {n_pairs - 1} more such pairs)" if n_pairs > 1 else ""
        super().__init__(
            f"columns '{pair[0]}' and '{pair[1]}' are {how} in every row{more}, so nothing "
            "without a penalty can tell them apart. "
            "Make one variable of such columns (merge_alike=True, or --merge-alike), leave one of "
            "the two out, or use RidgeIsing(ridge=0.1), or l2=0.01 where there is an l2."
        )


class SingularSystemError(IsingkitError):
    """The normal equations of least squares are singular."""

    def __init__(self, *, spin: str, n_samples: float, n_spins: int) -> None:
        self.spin = spin
        self.n_samples = n_samples
        self.n_spins = n_spins
        super().__init__(
            f"in these {n_samples:g} rows of {n_spins} columns '{spin}' is a linear "
            "combination of others (nearly), so that "
            "regression has no single answer. Give more rows, leave the column out, or use "
            "RidgeIsing(ridge=0.1), or l2=0.01 where "
            "there is an l2."
        )


class SeparationError(IsingkitError):
    """A likelihood has no maximum: a coupling could grow for ever, for the data hold no exception
    to it.
    """

    def __init__(
        self,
        *,
        pair: tuple[str, str],
        coupling: float,
        never: tuple[int, int] | None = None,
        rows_needed: int | None = None,
    ) -> None:
        self.pair = pair
        self.coupling = coupling
        self.never = never
        self.rows_needed = rows_needed
        if never is None:
            why = f"others predict '{pair[0]}' without exception in these rows"
            if rows_needed is not None:
                why += f", as happens by chance where so many columns have fewer than {rows_needed}"
        else:
            first, second = ("+1" if value > 0 else "-1" for value in never)
            why = f"no row has '{pair[0]}' at {first} and '{pair[1]}' at {second}"
        super().__init__(
            f"the coupling of '{pair[0]}' and '{pair[1]}' grows without bound (it had come to "
            f"{coupling:.3g}), for {why}. "
            "Give a penalty, e.g. l2=0.01, give more rows, or leave out one of the two."
        )


class NotConvergedError(IsingkitError):
    """An iteration did not come to rest."""

    def __init__(
        self, *, what: str, residual: float, advice: str = "use a larger ridge, or weaker couplings"
    ) -> None:
        self.what = what
        self.residual = residual
        super().__init__(f"{what} did not converge (residual {residual:.2g}): {advice}.")


class NotEquilibratedError(IsingkitError):
    """Chains started at random and chains started aligned still tell different stories."""

    def __init__(self, *, diagnostics: Mapping[str, Mapping[str, float]], warm_up: int) -> None:
        self.diagnostics = {name: dict(found) for name, found in diagnostics.items()}
        self.warm_up = warm_up
        worst = max(
            self.diagnostics,
            key=lambda k: max(
                self.diagnostics[k]["r_hat"] / 1.1, self.diagnostics[k]["starts_apart"] / 5
            ),
        )
        found = self.diagnostics[worst]
        super().__init__(
            f"after {warm_up} sweeps the chains have not forgotten how they started: of their "
            f"{worst} R-hat is "
            f"{found['r_hat']:.2f}, where 1.1 is allowed, and random and aligned starts differ "
            f"by {found['starts_apart']:.1f} "
            "standard errors, where 5 are. Raise warm_up, e.g. tenfold; weaken the couplings; or "
            "pass check=False to take the "
            "samples as they are."
        )


class OrderedPhaseError(IsingkitError):
    """The theory was asked about a teacher outside its paramagnetic phase."""

    def __init__(self, *, growth: float | None, strongest: float | None = None) -> None:
        self.growth = growth
        self.strongest = strongest
        came = (
            "its Bethe matrix has an eigenvalue <= 0"
            if growth is None
            else f"they grow {growth:.3g}-fold"
        )
        advice = "weaker couplings" if strongest is None else f"couplings below {strongest:.4g}"
        super().__init__(
            "the theory holds in the paramagnetic phase, where disturbances shrink from spin to "
            f"spin, but here {came}. "
            f"Use {advice}, or fewer neighbours."
        )


class UnreachableError(IsingkitError):
    """A plan asks for more than studies with the most rows allowed find."""

    def __init__(
        self, *, n_rows: int, goal: str, success: float, found: float, false_share: float
    ) -> None:
        self.n_rows = n_rows
        self.goal = goal
        self.success = success
        self.found = found
        self.false_share = false_share
        super().__init__(
            f"even with {n_rows} rows only {success:.0%} of the studies find {goal}; on average "
            f"they find {found:.0%}, and {false_share:.0%} of what they find is false. Ask for a "
            "smaller share by find, leave weak couplings out by at_least, take another method, or "
            "raise max_rows."
        )


class StageTwoError(IsingkitError):
    """The second stage of a two-stage fit cannot be solved for some spin."""

    def __init__(self, *, spin: str, n_unknowns: int, most: int) -> None:
        self.spin = spin
        self.n_unknowns = n_unknowns
        self.most = most
        if n_unknowns > most:
            why = f"but the rows allow {max(0, most)} at the most"
            advice = ", or give more rows"
        else:
            why = "of which some follow from others"
            advice = ", or leave out columns that follow from others"
        super().__init__(
            f"stage two at column '{spin}' has {n_unknowns} candidates, {why}, so it has no single "
            "answer. "
            f"Raise prune so that fewer candidates survive stage one{advice}."
        )


class CheckpointError(IsingkitError):
    """Records of an earlier run that are not of the same data and settings."""

    def __init__(self, *, folder: Any) -> None:
        self.folder = folder
        super().__init__(
            f"the records in '{folder}' are of other data, settings or another version. Name "
            "another folder, or delete this one."
        )


class DamagedRecordsWarning(IsingkitWarning):
    """Records of an earlier run that cannot be used: their part is computed again."""

    def __init__(self, *, folder: Any, n_damaged: int) -> None:
        self.folder = folder
        self.n_damaged = n_damaged
        super().__init__(
            f"{n_damaged} record(s) in '{folder}' are damaged or of another run: what they held is "
            "computed again."
        )


class NotEnoughMemoryError(IsingkitError):
    """A run would need more memory than there is."""

    def __init__(self, *, needed: int, there: int, n_spins: int, n_samples: int) -> None:
        self.needed = needed
        self.there = there
        self.n_spins = n_spins
        self.n_samples = n_samples
        super().__init__(
            f"{n_samples} rows of {n_spins} columns need {needed / 2**30:.1f} GiB beside the "
            f"data, {there / 2**30:.1f} are free. "
            "TwoStageIsing(ridge=inf) needs least, less with a larger prune; or take fewer columns "
            "or rows, or a larger machine."
        )


class SchedulerUnreachableError(IsingkitError):
    """No Dask scheduler answers at an address."""

    def __init__(self, *, address: str, seconds: float) -> None:
        self.address = address
        self.seconds = seconds
        super().__init__(
            f"no Dask scheduler with workers answered at '{address}' within {seconds:g} seconds: "
            "look whether 'dask scheduler' and 'dask worker' run and whether the address is theirs."
        )


class WorkersLostError(IsingkitError):
    """Workers of a cluster were lost with work or data that only they had."""

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"the workers of the cluster were lost ({problem}): see their logs, where lack of "
            "memory is the likeliest cause, and "
            "start again; with a checkpoint, what is finished is not done again."
        )


class ModelError(IsingkitError):
    """Couplings, fields or names do not make an Ising model."""

    def __init__(self, *, problem: str) -> None:
        self.problem = problem
        super().__init__(
            "an Ising model needs a finite, symmetric matrix of couplings with zero diagonal, "
            f"but {problem}."
        )


class ModelMismatchError(IsingkitError):
    """Two things that should speak of the same columns do not."""

    def __init__(self, *, left: Sequence[str], right: Sequence[str], what: str) -> None:
        self.left = tuple(left)
        self.right = tuple(right)
        if len(self.left) != len(self.right):
            came = f"one has {len(self.left)} columns and the other {len(self.right)}"
        else:
            place = next(
                (k for k, pair in enumerate(zip(left, right, strict=True)) if pair[0] != pair[1]), 0
            )
            came = f"column {place} is '{self.left[place]}' in one"
            came += f" and '{self.right[place]}' in the other"
        super().__init__(f"{what} must be over the same columns in the same order, but {came}.")


class CodingMismatchError(IsingkitError):
    """Two parts of one table were read with different codings."""

    def __init__(self, *, column: str, left: object, right: object) -> None:
        self.column = column
        self.left = left
        self.right = right
        super().__init__(
            f"column '{column}' was read as {left} in one part and as {right} in the other. Read "
            "all parts alike: "
            "as_spins(part, mapping=...), with the mapping of one part that holds both values of "
            "every column."
        )


class FileFormatError(IsingkitError):
    """A file is not of the kind that was asked for, or is damaged."""

    def __init__(self, *, path: Path, kind: str, problem: str) -> None:
        self.path = Path(path)
        self.kind = kind
        self.problem = problem
        super().__init__(f"'{path}' is not {kind}: {problem}. Give a file that isingkit has saved.")


class FolderExistsError(IsingkitError):
    """A folder to write into is there already."""

    def __init__(self, *, folder: Any, is_fit: bool, others: Sequence[str] = ()) -> None:
        self.folder = folder
        self.is_fit = is_fit
        self.others = tuple(others)
        if not is_fit:
            what = "is there already and is no fit: name another with -o"
        elif others:
            what = f"holds a fit and {_quoted(others)}, not of that fit: name another with -o"
        else:
            what = "holds a fit already: name another with -o, or replace it with --force"
        super().__init__(f"'{folder}' {what}.")


class TableFileError(IsingkitError):
    """A file of data cannot be read."""

    def __init__(self, *, path: Path | None, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(
            f"{'this table' if path is None else repr(str(path))} cannot be used: {problem}."
        )


class ConstantColumnWarning(IsingkitWarning):
    """Columns with one value only: they stay, without edges."""

    is_minor = True

    def __init__(self, *, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        is_one = len(columns) == 1
        super().__init__(
            f"column{'' if is_one else 's'} {_quoted(columns)} {'holds' if is_one else 'hold'} one "
            "value only, which says nothing about links, and "
            f"{'is' if is_one else 'are'} kept without edges: "
            f"leave {'it' if is_one else 'them'} out to silence this."
        )


class RareColumnsWarning(IsingkitWarning):
    """Columns that hardly ever change were left out, as asked."""

    is_minor = True

    def __init__(
        self, *, columns: Sequence[str], n_columns: int, min_count: int, max_share: float
    ) -> None:
        self.columns = tuple(columns)
        self.n_columns = n_columns
        self.min_count = min_count
        self.max_share = max_share
        asked = []
        if min_count > 0:
            asked.append(f"one value in fewer than {min_count} rows")
        if max_share < 1:
            asked.append(f"one value in more than {max_share:.3g} of the rows")
        super().__init__(
            f"{len(self.columns)} of {n_columns} columns have {' or '.join(asked)}, and were left "
            f"out: {_quoted(columns)}"
        )


class RepeatedNamesWarning(IsingkitWarning):
    """Columns of a file share a name, and were given others."""

    is_minor = True

    def __init__(self, *, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        first = self.columns[0]
        super().__init__(
            f"Several columns are called {_quoted(columns)}: from the second on, they are named "
            f"'{short(first)}.1' and so on."
        )


class OutcomeColumnWarning(IsingkitWarning):
    """Columns whose names say that they tell what rows are, and are no variables among others."""

    def __init__(self, *, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        named = typed_list(columns)
        if len(columns) == 1:
            looks = "looks like an outcome or a group of rows, and is taken as one more variable"
            own, it = "its own", "it"
        else:
            looks = "look like outcomes or groups of rows, and are taken as variables, too"
            own, it = "their own", "them"
        super().__init__(
            f"{_quoted(columns)} {looks}, which can make edges of {own}: to find edges given {it}, "
            f"use --covariates {named}; to leave {it} out, --drop {named}."
        )


class WideTableWarning(IsingkitWarning):
    """A handful of rows of very many columns: variables are perhaps in rows."""

    is_first = True

    def __init__(self, *, n_rows: int, n_columns: int) -> None:
        self.n_rows = n_rows
        self.n_columns = n_columns
        super().__init__(
            f"only {n_rows} rows of {n_columns} columns: if each line of the file is a variable (a "
            "gene, a signal), add --transpose."
        )


class EmptyRowsWarning(IsingkitWarning):
    """Rows without any value: they are left out, and not counted as rows."""

    is_minor = True

    def __init__(self, *, n_empty: int, n_rows: int) -> None:
        self.n_empty = n_empty
        self.n_rows = n_rows
        super().__init__(
            f"{n_empty} of {n_rows} rows hold no value at all: they are left out and not counted. "
            "Leave them out to silence this."
        )


class UncachedKernelsWarning(IsingkitWarning):
    """Compiled kernels cannot be kept: every process compiles them anew."""

    is_minor = True

    def __init__(self) -> None:
        super().__init__(
            "compiled code cannot be kept, for no folder for it can be written into: each start "
            "takes some seconds more. Set NUMBA_CACHE_DIR to a folder of yours to avoid this."
        )


class OrderedTeacherWarning(IsingkitWarning):
    """A teacher outside its paramagnetic phase: sampling is slow and the theory does not hold."""

    def __init__(self, *, glass: float, order: float) -> None:
        self.glass = glass
        self.order = order
        super().__init__(
            f"this model is not paramagnetic: disturbances grow {max(glass, order):.2f}-fold a "
            "step (it should be below 1), so "
            "chains need long to forget their start and the theory does not hold. Use weaker "
            "couplings, or fewer neighbours."
        )


class UnobservedPairWarning(IsingkitWarning):
    """Pairs of columns that are never present in the same row: no coupling between them can be
    learnt.
    """

    def __init__(self, *, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)
        listed = _listed([f"'{a}' - '{b}'" for a, b in pairs])
        super().__init__(
            f"never present in the same row: {listed}. Their coupling is taken as zero, for the "
            "data cannot tell."
        )


class ContradictoryPairsWarning(IsingkitWarning):
    """Pair sums over different rows are those of no complete table."""

    def __init__(self, *, smallest: float) -> None:
        self.smallest = smallest
        super().__init__(
            "with missing='pairwise' the pair sums come from different rows and contradict each "
            "other (smallest eigenvalue "
            f"{smallest:.2g} of the mean one): the nearest consistent ones were taken. "
            "Leave out the emptiest columns to avoid this."
        )


class NotConvergedWarning(IsingkitWarning):
    """An iteration stopped before it came to rest; what it had reached is used."""

    def __init__(self, *, what: str, residual: float, allowed: float, advice: str) -> None:
        self.what = what
        self.residual = residual
        self.allowed = allowed
        super().__init__(
            f"{what} stopped with a residual of {residual:.2g}, where {allowed:.2g} is allowed: "
            f"{advice}."
        )


class ReliabilityWarning(IsingkitWarning):
    """A result is there, but something about the data says not to trust all of it."""

    def __init__(self, *, check: str, words: str, n_more: int = 0) -> None:
        self.check = check
        self.n_more = n_more  # warnings that are not given: what they would say is in diagnostics_
        more = f" (And {n_more} more: print diagnostics_.)" if n_more else ""
        super().__init__(f"{check}: {words}.{more}")


class EmptyCellWarning(IsingkitWarning):
    """Pairs of which two values never occur together: taken alone, their coupling would be
    infinite.
    """

    def __init__(self, *, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)
        listed = _listed([f"'{a}' - '{b}'" for a, b in pairs])
        super().__init__(
            f"never seen with all four combinations of their values: {listed}. Half a sample was "
            "added to each combination, which "
            "keeps their coupling finite; give more rows to learn it."
        )


class NoMeanFieldWarning(IsingkitWarning):
    """Pairs whose covariances no coupling can have, as a mean-field method sees it."""

    def __init__(
        self,
        *,
        method: str,
        pairs: Sequence[tuple[str, str]],
        instead: str = "as independent pairs",
    ) -> None:
        self.method = method
        self.pairs = tuple(pairs)
        listed = _listed([f"'{a}' - '{b}'" for a, b in pairs])
        super().__init__(
            f"method '{method}' has no answer for {listed}: they were taken {instead}. "
            "Couplings are too strong, or rows too few, for it: try PseudolikelihoodIsing(l2=0.01)."
        )
