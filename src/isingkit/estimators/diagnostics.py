"""Diagnostics: when not to trust a network, in plain words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import ndtr, ndtri

from isingkit.arrays import FloatArray, Pairs
from isingkit.estimators.cause_search import SETTINGS as CAUSES
from isingkit.estimators.cause_search import CauseEvidence, least_gain
from isingkit.estimators.fitted_graph import FittedGraph
from isingkit.estimators.graph import keys_of
from isingkit.estimators.moments import SecondMoments
from isingkit.estimators.row_dependence import RowDependence
from isingkit.estimators.row_design import RowDesign
from isingkit.estimators.row_stories import Finding
from isingkit.estimators.score_cache import ScoreCache
from isingkit.estimators.sparsity import LIMIT as MOST_SPREAD
from isingkit.estimators.sparsity import Sparsity
from isingkit.exceptions import ReliabilityWarning, warn
from isingkit.missing import MissingPolicy
from isingkit.packing import PackedSpins
from isingkit.result_table import ResultTable, as_table


@dataclass(frozen=True, slots=True)
class Limits:
    """Beyond these a check is serious."""

    least_power: float = 0.95  # probability to find an edge like the median of those found
    findable: float = 0.2  # coupling that nine of ten tables would show; others are hardly missed
    design_effect: float = 1.1  # of rows
    least_groups: int = 20  # of rows
    incomplete: float = 0.01  # p-value of what incomplete rows tell
    alike: float = 0.95  # correlation of two columns
    least_open: float = 0.4  # of the variance of spins, once their neighbours are known
    off_tree: float = 0.1  # of couplings, between Bethe's inversion and the refit
    late: float = 0.1  # fraction of edges that the linear steps had dropped
    one_mode: float = 0.3  # of all variance
    leftover: float = 2.5  # largest eigenvalue of z-scores outside, in units of that of noise
    tiny: float = 0.1  # fraction of edges whose couplings a gap tells from all others
    tiny_without_gap: float = 0.25  # the same of couplings below a tenth of typical ones


LIMITS = Limits()
_TYPICAL = 0.3  # coupling, where none was found
_LARGE = 5.0  # standard errors
_TINY = 0.1  # what tiny couplings are at most
_GAP = 2.0  # factor between the largest tiny coupling and the smallest other
_FEW_EDGES = 3  # too few to be separated from others by a gap
_RARE = 0.1  # share of rows with the rarer value of a column, below which that is what lacks
_MOST_WARNINGS = 3  # of the most serious; all are in diagnostics_
_SMALL_MATRIX = 30  # rows, below which all eigenvalues are quicker than one


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was looked at."""

    check: str
    value: float
    limit: float  # beyond it, the check is serious
    serious: bool
    words: str  # what was seen, and what it means for the network
    levels_hold: bool = True  # False: more edges may be false, and intervals too short
    advice: str = ""  # where that is serious, one thing to do; "" where nothing is asked for

    @property
    def warns(self) -> bool:
        """Whether it is serious and there is something to do."""
        return self.serious and bool(self.advice)

    @property
    def message(self) -> str:
        """All it says, without the name of the check."""
        return f"{self.words}; {self.advice}" if self.advice else self.words


class Diagnostics(tuple[Diagnosis, ...]):
    """Every check, the most serious first: a tuple that prints, and shows in a notebook, as a
    table.
    """

    __slots__ = ()

    def table(self) -> ResultTable:
        """Columns check, serious, value, limit, words and advice."""
        names = ("check", "serious", "value", "limit", "words", "advice")
        return as_table({name: [getattr(one, name) for one in self] for name in names})

    def to_pandas(self) -> Any:
        """A pandas.DataFrame."""
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        """A polars.DataFrame."""
        return self.table().to_polars()

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """For libraries that take any data frame."""
        return self.table().__dataframe__(nan_as_null, allow_copy)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The same for newer ones."""
        return self.table().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        width = max((len(one.check) for one in self), default=0)
        verdicts = ["look" if one.serious else "fine" for one in self]
        lines = [
            f"{verdict}  {one.check:<{width}}  {one.message}"
            for verdict, one in zip(verdicts, self, strict=True)
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What the checks look at: a network found, and on the way to it."""

    packed: PackedSpins
    design: RowDesign
    dependence: RowDependence
    refit: str  # how couplings were estimated
    rows: str  # "auto", "independent" or "ordered": what was asked
    missing: str  # the policy
    n_groups: int  # that were declared
    incomplete: tuple[Finding, ...]
    moments: SecondMoments
    fitted: FittedGraph
    scores: ScoreCache
    hidden: int | str  # causes that were asked for
    causes: CauseEvidence
    sparsity: Sparsity
    couplings: FloatArray  # (n_edges,): of the refit
    errors: FloatArray  # (n_edges,): their standard errors
    sizes: FloatArray  # |couplings| of those that are large enough to be edges
    tree_couplings: FloatArray  # (n_edges,): couplings by Bethe's inversion, 0 where that has none
    z_scores: FloatArray  # of the edges
    critical_z: float  # of an edge of the median weight
    at_least: float  # what couplings of edges must exceed
    candidates: Pairs
    survivors: Pairs


def diagnose(evidence: Evidence) -> Diagnostics:
    """Every check, the most serious first; those that ask for something also warn, three of them
    at most.
    """
    checks = (  # in the order of what they mean for the result
        _sparse,
        _incomplete,
        _rows,
        _hidden,
        _alike,
        _groups,
        _samples,
        _tiny,
        _common,
        _strength,
        _loops,
        _screen,
    )
    found = [check(evidence) for check in checks]
    found.sort(key=lambda one: (not one.warns, not one.serious, one.levels_hold))
    _warn_of([one for one in found if one.warns])
    return Diagnostics(found)


def _warn_of(found: Sequence[Diagnosis]) -> None:
    """Warn of the most serious, and say how many more there are."""
    for place, one in enumerate(found[:_MOST_WARNINGS], start=1):
        n_more = len(found) - place if place == _MOST_WARNINGS else 0
        warn(ReliabilityWarning(check=one.check, words=one.message, n_more=n_more))


def _samples(e: Evidence) -> Diagnosis:
    """Would an edge like the median one be found again?"""
    changes = e.moments.changes
    precision = 1.0
    if changes.any():
        information = float(np.median(e.fitted.information[changes]))
        precision = np.sqrt(max(information, 1.0))
    typical = float(np.median(np.abs(e.z_scores))) if len(e.z_scores) else _TYPICAL * precision
    power = float(ndtr(typical - e.critical_z))
    smallest = e.at_least + float((e.critical_z + ndtri(0.9)) / precision)
    serious = power < LIMITS.least_power and smallest > LIMITS.findable
    words = (
        f"with {_counted_rows(e)} a coupling must be about {smallest:.2f} to be found in nine of "
        "ten cases"
    )
    advice = ""
    if serious:
        words += ", so that weaker links were probably missed"
        more = "groups" if e.n_groups else "rows"
        advice = f"take a pair without an edge as unknown, and collect more {more} if you can"
    limit = LIMITS.least_power
    return Diagnosis("few samples", power, limit, serious, words, advice=advice)


def _counted_rows(e: Evidence) -> str:
    """What evidence is counted in: groups, rows, or those with the rarer value of a column."""
    if e.n_groups:
        return f"{e.n_groups} groups of rows"
    n_samples = e.moments.n_samples
    counted = f"{n_samples:.0f} rows"
    means = np.abs(e.moments.means[e.moments.changes])
    rarer = float(np.median(1 - means)) / 2 if len(means) else 0.5
    if rarer >= _RARE:
        return counted
    seen = f"{n_samples * rarer:.0f} rows with the rarer value of a typical column"
    return f"some {seen} (of {counted})"


def _rows(e: Evidence) -> Diagnosis:
    """Are rows independent draws, and if not, do errors allow for it?"""
    name, limit = "rows alike", LIMITS.design_effect
    found = e.dependence
    is_allowed_for = e.rows != "independent" or found.kind == "none"
    effect = e.design.design_effect if is_allowed_for else found.design_effect
    larger = f"{np.sqrt(effect):.1f} times those of as many independent rows"
    if found.kind == "none":
        words = f"{found.words}: errors are {larger}" if e.n_groups else found.words
        return Diagnosis(name, effect, limit, False, words)
    if not is_allowed_for:
        words = (
            f"{found.words}; rows were taken as independent, as asked, so that errors are too "
            f"small by a factor of about {np.sqrt(effect):.1f} and some edges are probably false"
        )
        return Diagnosis(name, effect, limit, True, words, levels_hold=False, advice=found.advice)
    words = f"{found.words}; errors allow for it, and are {larger}"
    if e.rows == "ordered":
        return Diagnosis(name, effect, limit, False, words)
    return Diagnosis(name, effect, limit, True, words, advice=found.advice)


def _groups(e: Evidence) -> Diagnosis:
    """Are groups of rows enough to tell how much they vary?"""
    n_groups = e.n_groups
    limit = LIMITS.least_groups
    if n_groups == 0:
        words = "rows count by themselves, not by groups"
        return Diagnosis("few groups", np.inf, limit, False, words)
    serious = n_groups < limit
    words = f"rows belong to {n_groups} groups"
    advice = ""
    if serious:
        words += (
            ", which are few to tell how much groups vary: errors are uncertain, and only strong "
            "edges can be found"
        )
        advice = "collect more groups: more rows of the same ones would not help"
    return Diagnosis("few groups", n_groups, limit, serious, words, advice=advice)


def _incomplete(e: Evidence) -> Diagnosis:
    """Do rows with missing values tell another story than the others?"""
    telling = [one for one in e.incomplete if one.kind != "empty"]
    if not telling:
        words = "incomplete rows tell the same as complete ones"
        if e.packed.present is None:
            words = "no value is missing"
        return Diagnosis("incomplete rows", 1.0, LIMITS.incomplete, False, words)
    first = telling[0]
    others = f" (and {len(telling) - 1} more such things)" if len(telling) > 1 else ""
    levels_hold = first.kind == "depends" and e.missing == MissingPolicy.IMPUTE
    return Diagnosis(
        "incomplete rows",
        first.p_value,
        LIMITS.incomplete,
        not levels_hold,
        first.words + others,
        levels_hold=levels_hold,
        advice=first.advice,
    )


def _alike(e: Evidence) -> Diagnosis:
    """Are there columns that say nearly the same?"""
    largest, pairs = e.scores.most_alike(e.candidates, LIMITS.alike)
    words = f"the largest correlation of two columns is {largest:.2f}"
    advice = ""
    serious = largest > LIMITS.alike
    if serious:
        names = e.moments.names
        some = ", ".join(f"'{names[i]}' and '{names[j]}'" for i, j in pairs[:3])
        others = " and others" if len(pairs) > 3 else ""
        words = f"{some}{others} are nearly the same: which of them has an edge is chance"
        advice = "keep one of each pair, or make one of them (merge_alike=0.95, --merge-alike 0.95)"
    return Diagnosis("columns alike", largest, LIMITS.alike, serious, words, advice=advice)


def _strength(e: Evidence) -> Diagnosis:
    """How much of columns is left open once their neighbours are known?"""
    connected = e.fitted.graph.degrees > 0
    left = 1.0
    if connected.any():
        of_means = e.moments.variances[connected] / e.moments.n_samples
        variances = of_means * e.fitted.seen[connected]
        ratios = e.fitted.information[connected] / np.maximum(variances, 1e-9)
        left = float(ratios.mean())
    serious = left < LIMITS.least_open
    words = f"neighbours leave {left:.0%} of a column's variance open"
    if serious:
        words += ": couplings are strong, and weak edges may hide behind them"
    advice = _better_refit(e) if serious else ""
    limit = LIMITS.least_open
    return Diagnosis("strong coupling", left, limit, serious, words, advice=advice)


def _better_refit(e: Evidence) -> str:
    """What to do where approximate couplings are far off; nothing where they are not."""
    return "" if e.refit == "pseudolikelihood" else "set refit='pseudolikelihood'"


def _loops(e: Evidence) -> Diagnosis:
    """Do couplings that would be exact on a tree differ from the refit's?"""
    limit = LIMITS.off_tree
    if len(e.couplings) == 0:
        return Diagnosis("loops", 0.0, limit, False, "there are no edges, so no loops")
    off = e.tree_couplings - e.couplings
    fraction = float(np.abs(off).mean() / np.abs(e.couplings).mean())
    in_errors = off / np.maximum(e.errors, 1e-9)
    serious = bool(fraction > limit and np.sqrt(np.mean(in_errors**2)) > 2)
    words = f"a formula that is exact without loops changes couplings by {fraction:.0%}"
    if serious:
        words += ": the couplings of refit='bethe' and of linear methods cannot be trusted here"
    advice = _better_refit(e) if serious else ""
    return Diagnosis("loops", fraction, limit, serious, words, advice=advice)


def _screen(e: Evidence) -> Diagnosis:
    """Did the linear steps miss edges that later tests brought in? For those who would stop there:
    it asks for nothing.
    """
    graph = e.fitted.graph
    n_missed = len(np.setdiff1d(graph.keys, keys_of(e.survivors, graph.n_spins)))
    n_edges = len(graph.pairs)
    fraction = n_missed / max(n_edges, 1)
    words = f"{n_missed} of {n_edges} edges were found only after the first, linear steps"
    serious = fraction > LIMITS.late
    return Diagnosis("linear screen", fraction, LIMITS.late, serious, words)


def _common(e: Evidence) -> Diagnosis:
    """Do all columns move together? Where hidden causes are allowed for, that is what they are."""
    correlation = e.scores.correlations(e.scores.probe())
    n_spins = len(correlation)
    fraction = _largest_eigenvalue(correlation) / max(n_spins, 1)
    ratio = n_spins / max(e.moments.n_samples, 1.0)
    noise = (1 + np.sqrt(ratio)) ** 2 / max(n_spins, 1)
    serious = bool(fraction > max(LIMITS.one_mode, 2 * noise) and n_spins > 2)
    words = f"one pattern of all columns carries {fraction:.0%} of the variance"
    advice = ""
    if serious:
        words += ": columns rise and fall together, which makes single edges hard to tell apart"
        causes = e.fitted.samples.causes
        is_allowed_for = causes.n_causes > causes.n_covariates
        advice = "" if is_allowed_for else "rely on the strongest edges only"
    return Diagnosis("common movement", fraction, LIMITS.one_mode, serious, words, advice=advice)


def _hidden(e: Evidence) -> Diagnosis:
    """Does something that is no column act on many of them?"""
    name, found = "hidden cause", e.causes
    if not found.was_looked_for:
        return _leftover(e)
    limit = least_gain(e.fitted.n_spins)
    was_asked = e.hidden not in (0, "auto")
    if was_asked and not e.fitted.samples.causes.are_hidden:
        words = "nearly all pairs are coupled: edges do not allow for the hidden causes asked for"
        return Diagnosis(name, found.gain, limit, False, words)
    if was_asked or found.n_found == 0:
        words = "nothing that is no column seems to act on many columns"
        if was_asked:
            words = f"edges allow for hidden causes: {e.hidden}, as asked"
        elif e.moments.changes.sum() < CAUSES.few_spins:
            words = "with so few columns a common cause cannot be told from edges"
        return Diagnosis(name, found.gain, limit, False, words)
    if e.hidden == "auto":
        words = _found_causes(e)
        advice = f"if you know what it is {_SUCH_AS}, pass it as covariates="
        return Diagnosis(name, found.gain, limit, True, words, advice=advice)
    advice = f"set hidden='auto', or, if you know what it is {_SUCH_AS}, pass it as covariates="
    return Diagnosis(name, found.gain, limit, True, _UNEXPLAINED, levels_hold=False, advice=advice)


_SUCH_AS = "(a group, a site, a trend)"
_UNEXPLAINED = (
    "many pairs are more alike than edges explain, as something that acts on many columns and is "
    "none of them would make them, so that some edges may stand for it"
)


def _found_causes(e: Evidence) -> str:
    """What is said of causes that edges allow for."""
    acts = "something that is no column of the table acts"
    if e.causes.n_found > 1:
        acts = f"{e.causes.n_found} things that are no columns of the table act"
    words = f"{acts} on many columns; edges and errors allow for it, and hidden_ has who follows"
    if e.fitted.samples.causes.n_covariates:
        words += (
            "; effects of covariates include what it shares with them, and their intervals "
            "hold 92 to 93 percent instead of 95"
        )
    return words


def _leftover(e: Evidence) -> Diagnosis:
    """Is there a dense part of low rank in what the network leaves? Where causes themselves were
    not looked for.
    """
    name, limit = "hidden cause", LIMITS.leftover
    value = e.causes.leftover
    words = f"what the network leaves moves together {value:.1f} times as much as chance does"
    if value <= limit or e.fitted.n_spins <= CAUSES.few_spins:
        return Diagnosis(name, value, limit, False, words)
    advice = "pass what you know of rows as covariates="
    if e.missing != MissingPolicy.IMPUTE:
        advice += ", or ask for causes: hidden=1, or more"
    return Diagnosis(name, value, limit, True, _UNEXPLAINED, levels_hold=False, advice=advice)


def _sparse(e: Evidence) -> Diagnosis:
    """Are so many pairs coupled that a network of few edges is the wrong picture?"""
    spread = e.sparsity.spread
    # copies of rows, taken as rows of their own, make couplings vary more than by chance, too
    has_copies = e.rows == "independent" and e.dependence.kind != "none"
    serious = e.sparsity.is_dense and not has_copies
    words = f"most pairs are no more alike than chance and the network make them ({spread:.1f})"
    advice = ""
    if has_copies:
        words = "unknown while rows that are alike are taken as independent"
    if serious:
        words = (
            "nearly every pair is linked, if weakly, so that a network of few edges is the wrong "
            "picture: which weak pairs are edges is chance"
        )
        advice = "estimate all pairs instead, with PseudolikelihoodIsing()"
    holds = not serious
    return Diagnosis("not sparse", spread, MOST_SPREAD, serious, words, holds, advice)


def _tiny(e: Evidence) -> Diagnosis:
    """Are rows so many that couplings pass which are tiny beside the others?"""
    name, limit = "tiny couplings", LIMITS.tiny
    sizes = np.sort(e.sizes)
    n_edges = len(sizes)
    n_tiny = _below_gap(sizes)
    if n_tiny == 0:
        typical = float(np.sqrt(np.mean(sizes**2))) if n_edges else 0.0
        cut = _two_digits(_TINY * typical)
        n_tiny = int((sizes < cut).sum())
        words = f"{n_tiny} of {n_edges} edges have couplings below {cut:g}, a tenth of typical ones"
        proposed = cut
        limit = LIMITS.tiny_without_gap
    else:
        below = float(sizes[n_tiny - 1])
        above = float(sizes[n_tiny])
        words = (
            f"{n_tiny} of {n_edges} edges have couplings of at most {below:.2g} in absolute value, "
            f"and all others at least {above:.2g}"
        )
        proposed = _two_digits(np.sqrt(below * above))
    fraction = n_tiny / max(n_edges, 1)
    serious = fraction > limit
    advice = ""
    if serious:
        words += ": with so many rows couplings that hardly matter are found as well"
        advice = f"to leave them out, set at_least={proposed:g}"
    return Diagnosis(name, fraction, limit, serious, words, advice=advice)


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def _below_gap(sizes: FloatArray) -> int:
    """How many of these sorted sizes are tiny and below the widest gap; 0 where there is none."""
    ratios = sizes[1:] / np.maximum(sizes[:-1], 1e-300)
    n_below = np.arange(1, len(sizes))
    enough = np.minimum(n_below, n_below[::-1]) >= _FEW_EDGES
    gaps = np.where(enough & (sizes[:-1] <= _TINY) & (ratios >= _GAP), ratios, 0.0)
    return int(gaps.argmax()) + 1 if gaps.any() else 0


def _largest_eigenvalue(matrix: NDArray[np.floating]) -> float:
    if not matrix.any():
        return 0.0
    if len(matrix) < _SMALL_MATRIX:
        return float(np.linalg.eigvalsh(matrix)[-1])

    def product(x: FloatArray) -> FloatArray:
        return np.asarray(matrix @ x.astype(matrix.dtype))

    operator = LinearOperator(matrix.shape, matvec=product, dtype=np.float64)
    # a fixed start, for the same answer every time
    start = np.random.default_rng(0).normal(size=len(matrix))
    found = eigsh(operator, k=1, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)
    return float(found[0])
