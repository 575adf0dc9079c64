"""Diagnostics: when not to trust a network, in plain words."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Limits:
    """Beyond these a check is serious."""

    least_power: float = 0.95  # probability to find an edge like the median of those found
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
_SMALL_MATRIX = 30  # rows, below which all eigenvalues are quicker than one


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was looked at."""

    check: str
    value: float
    limit: float  # beyond it, the check is serious
    serious: bool
    words: str  # what was seen, and where that is serious, one thing to do
    levels_hold: bool = True  # False: more edges may be false, and intervals too short


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What the checks look at: a network found, and on the way to it."""

    packed: PackedSpins
    design: RowDesign
    dependence: RowDependence
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


def diagnose(evidence: Evidence) -> tuple[Diagnosis, ...]:
    """Every check, serious ones first, which also warn."""
    checks = (
        _rows,
        _groups,
        _incomplete,
        _hidden,
        _sparse,
        _tiny,
        _samples,
        _alike,
        _strength,
        _loops,
        _screen,
        _order,
    )
    found = [check(evidence) for check in checks]
    found.sort(key=lambda one: (not one.serious, one.levels_hold))
    for one in found:
        if one.serious:
            warn(ReliabilityWarning(check=one.check, words=one.words))
    return tuple(found)


def _samples(e: Evidence) -> Diagnosis:
    """Would an edge like the median one be found again?"""
    changes = e.moments.changes
    precision = 1.0
    if changes.any():
        precision = np.sqrt(max(float(np.median(e.fitted.information[changes])), 1.0))
    typical = float(np.median(np.abs(e.z_scores))) if len(e.z_scores) else _TYPICAL * precision
    power = float(ndtr(typical - e.critical_z))
    smallest = e.at_least + float((e.critical_z + ndtri(0.9)) / precision)
    n_groups = e.n_groups
    counted = f"{n_groups} groups of rows" if n_groups else f"{e.moments.n_samples:.0f} rows"
    serious = power < LIMITS.least_power
    words = (
        f"with {counted} a coupling must be about {smallest:.2f} to be found in nine of ten cases"
    )
    if serious:
        more = "groups" if n_groups else "rows"
        words += f"; weaker ones are probably there and were missed: collect more {more}"
    return Diagnosis("few samples", power, LIMITS.least_power, serious, words)


def _rows(e: Evidence) -> Diagnosis:
    """Are rows independent draws, and if not, do errors allow for it?"""
    limit = LIMITS.design_effect
    is_allowed_for = e.rows != "independent" or e.dependence.kind == "none"
    effect = e.design.design_effect if is_allowed_for else e.dependence.design_effect
    larger = f"{np.sqrt(effect):.1f} times those of as many independent rows"
    if e.dependence.kind == "none":
        words = e.dependence.words
        if e.n_groups:
            words = f"{words}: errors are {larger}"
        return Diagnosis("rows alike", effect, limit, False, words)
    if not is_allowed_for:
        words = (
            f"{e.dependence.words}; rows were taken as independent, as asked, and errors are too "
            f"small by a factor of about {np.sqrt(effect):.1f}; {e.dependence.advice}"
        )
        return Diagnosis("rows alike", effect, limit, True, words, levels_hold=False)
    words = f"{e.dependence.words}; errors allow for it, and are {larger}"
    was_asked = e.rows == "ordered"
    if not was_asked:
        words += f"; {e.dependence.advice}"
    return Diagnosis("rows alike", effect, limit, not was_asked, words)


def _groups(e: Evidence) -> Diagnosis:
    """Are groups of rows enough to tell how much they vary?"""
    n_groups = e.n_groups
    limit = LIMITS.least_groups
    if n_groups == 0:
        words = "rows count by themselves, not by groups"
        return Diagnosis("few groups", np.inf, limit, False, words)
    serious = n_groups < limit
    words = f"rows belong to {n_groups} groups"
    if serious:
        words += (
            ", which are few to tell how much groups vary: errors are uncertain, and only strong "
            "edges can be found; more groups would help, more rows of the same ones would not"
        )
    return Diagnosis("few groups", n_groups, limit, serious, words)


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
    )


def _alike(e: Evidence) -> Diagnosis:
    """Are there columns that say nearly the same?"""
    largest, pairs = e.scores.most_alike(e.candidates, LIMITS.alike)
    words = f"the largest correlation of two columns is {largest:.2f}"
    serious = largest > LIMITS.alike
    if serious:
        names = e.moments.names
        some = ", ".join(f"'{names[i]}' and '{names[j]}'" for i, j in pairs[:3])
        others = " and others" if len(pairs) > 3 else ""
        words = f"{some}{others} are nearly the same: which of them has an edge is chance; keep one"
    return Diagnosis("columns alike", largest, LIMITS.alike, serious, words)


def _strength(e: Evidence) -> Diagnosis:
    """How much of spins is left open once their neighbours are known?"""
    connected = e.fitted.graph.degrees > 0
    left = 1.0
    if connected.any():
        variances = e.moments.variances[connected] / e.moments.n_samples * e.fitted.seen[connected]
        ratios = e.fitted.information[connected] / np.maximum(variances, 1e-9)
        left = float(ratios.mean())
    serious = left < LIMITS.least_open
    words = f"neighbours leave {left:.0%} of a spin's variance open"
    if serious:
        words += (
            ": couplings are strong, so linear estimates are far off and some edges hide behind "
            "others; keep refit='pseudolikelihood'"
        )
    return Diagnosis("strong coupling", left, LIMITS.least_open, serious, words)


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
        words += (
            ": loops or unmodelled dependence matter, so that refit='bethe' and linear estimates "
            "cannot be trusted here; keep refit='pseudolikelihood'"
        )
    return Diagnosis("loops", fraction, limit, serious, words)


def _screen(e: Evidence) -> Diagnosis:
    """Did the linear steps miss edges that later tests brought in?"""
    graph = e.fitted.graph
    n_missed = len(np.setdiff1d(graph.keys, keys_of(e.survivors, graph.n_spins)))
    n_edges = len(graph.pairs)
    fraction = n_missed / max(n_edges, 1)
    words = (
        f"{n_missed} of {n_edges} edges were not among those that the linear steps had left, and "
        "were found by later tests"
    )
    serious = fraction > LIMITS.late
    if serious:
        words += "; do not take linear estimates instead"
    return Diagnosis("linear screen", fraction, LIMITS.late, serious, words)


def _order(e: Evidence) -> Diagnosis:
    """Does one mode carry much of the variance?"""
    correlation = e.scores.correlations(e.scores.probe())
    n_spins = len(correlation)
    fraction = _largest_eigenvalue(correlation) / max(n_spins, 1)
    ratio = n_spins / max(e.moments.n_samples, 1.0)
    noise = (1 + np.sqrt(ratio)) ** 2 / max(n_spins, 1)
    serious = bool(fraction > max(LIMITS.one_mode, 2 * noise) and n_spins > 2)
    words = f"one mode carries {fraction:.0%} of the variance"
    if serious:
        words += (
            ": the spins move together, as in a magnet that has ordered, so that samples tell "
            "couplings apart only poorly; read strong edges only"
        )
    return Diagnosis("order", fraction, LIMITS.one_mode, serious, words)


def _hidden(e: Evidence) -> Diagnosis:
    """Does something that is no column act on many spins?"""
    name, found = "hidden cause", e.causes
    if not found.was_looked_for:
        return _leftover(e)
    limit = least_gain(e.fitted.n_spins)
    was_asked = e.hidden not in (0, "auto")
    if was_asked or found.n_found == 0:
        words = "nothing that is no column seems to act on many spins"
        if was_asked:
            words = f"edges allow for hidden causes: {e.hidden}, as asked"
        elif e.moments.changes.sum() < CAUSES.few_spins:
            words = "with so few columns a common cause cannot be told from edges"
        return Diagnosis(name, found.gain, limit, False, words)
    remedy = "if you know what it is (a group, a site, a trend), pass it as covariates"
    if e.hidden == "auto":
        acts = "a cause that is no column of the table acts"
        if found.n_found > 1:
            acts = f"{found.n_found} causes that are no columns of the table act"
        words = (
            f"{acts} on many spins; edges and errors allow for that, and hidden_ has who follows; "
            f"{remedy}"
        )
        if e.fitted.samples.causes.n_covariates:
            words += (
                "; effects of covariates include what it shares with them, and their intervals "
                "hold 92 to 93 percent instead of 95"
            )
        return Diagnosis(name, found.gain, limit, True, words)
    words = (
        "many pairs are more alike than edges explain, as something that acts on many spins and "
        f"is no column would make them; edges may stand for it: set hidden='auto', or, {remedy}"
    )
    return Diagnosis(name, found.gain, limit, True, words, levels_hold=False)


def _leftover(e: Evidence) -> Diagnosis:
    """Is there a dense part of low rank in what the network leaves? Where causes themselves were
    not looked for.
    """
    value = e.causes.leftover
    serious = value > LIMITS.leftover and e.fitted.n_spins > CAUSES.few_spins
    words = f"outside the network, z-scores have an eigenvalue {value:.1f} times that of noise"
    if serious:
        words += (
            ": many pairs are more alike than edges explain, as something that acts on many spins "
            "and is no column would make them; edges may stand for it: pass what you know of rows "
            "as covariates"
        )
    return Diagnosis(
        "hidden cause", value, LIMITS.leftover, serious, words, levels_hold=not serious
    )


def _sparse(e: Evidence) -> Diagnosis:
    """Are so many pairs coupled that a network of few edges is the wrong picture?"""
    spread = e.sparsity.spread
    serious = e.sparsity.is_dense
    words = f"most pairs are no more alike than chance and the network make them ({spread:.1f})"
    if serious:
        words = (
            "nearly every pair is coupled, if weakly, so that no network of few edges explains the "
            "data: estimate all couplings with PseudolikelihoodIsing(), or with up to 24 columns "
            "MaximumLikelihoodIsing() (isingkit fit --method pseudolikelihood)"
        )
    return Diagnosis("not sparse", spread, MOST_SPREAD, serious, words, levels_hold=not serious)


def _tiny(e: Evidence) -> Diagnosis:
    """Are rows so many that couplings pass which are tiny beside the others?"""
    name, limit = "tiny couplings", LIMITS.tiny
    sizes = np.sort(e.sizes)
    n_edges = len(sizes)
    n_tiny = _below_gap(sizes)
    advice = "with so many rows couplings that hardly matter are found as well; to leave them out, "
    if n_tiny == 0:
        typical = float(np.sqrt(np.mean(sizes**2))) if n_edges else 0.0
        cut = _two_digits(_TINY * typical)
        n_tiny = int((sizes < cut).sum())
        words = f"{n_tiny} of {n_edges} edges have couplings below {cut:g}, a tenth of typical ones"
        proposed = cut
        limit = LIMITS.tiny_without_gap
    else:
        below, above = float(sizes[n_tiny - 1]), float(sizes[n_tiny])
        words = (
            f"{n_tiny} of {n_edges} edges have couplings of at most {below:.2g} in absolute value, "
            f"and all others at least {above:.2g}"
        )
        proposed = _two_digits(np.sqrt(below * above))
    fraction = n_tiny / max(n_edges, 1)
    serious = fraction > limit
    if serious:
        option = f"(isingkit fit --at-least {proposed:g})"
        words += f": {advice}set at_least={proposed:g} {option}"
    return Diagnosis(name, fraction, limit, serious, words)


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
