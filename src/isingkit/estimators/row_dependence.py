"""RowDependence: are rows independent draws, and if not, which belong together?

What is looked at, and how often it is seen: docs/design/rows.md.
"""

from dataclasses import dataclass

import numpy as np

from isingkit.arrays import FloatArray, IntArray
from isingkit.estimators.row_distances import (
    Excess,
    RowBits,
    RowGroups,
    fraction_present,
    linked_rows,
    null_of_halves,
    null_of_model,
    repeated,
    row_bits,
    stretched,
)
from isingkit.estimators.row_order import RowOrder, row_order
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins

_FEW_ROWS = 20
_FEW_PATTERNS = 20  # different rows, below which their counts may have a common divisor by chance
_MANY_EQUAL = 0.9  # different rows, in units of all, below which many are equal
_MATTERS = 1.1  # design effect
_SUSPICIOUS = 0.05  # design effect less 1, beyond which the fitted network is simulated
_CAPTURED = 0.6  # of a design effect, less 1, by groups of rows alike at any distance
_CUT = 0.5  # of the correlation of neighbouring rows, between those in different groups
_MOST_LINKED = 20_000  # rows
_SEED = 0
_LINEAGES = (
    "pass lineages (or whatever rows have in common) as covariates=, or have them found, with "
    "hidden=20"
)
_BELONG = "say which rows belong together (waves of a person, a site, a recording) by groups="


@dataclass(frozen=True, slots=True, eq=False)
class RowDependence:
    """What rows have to do with each other that the network does not explain.

    kind: "none"; "pasted", every row occurs the same number of times; "repeats", rows are alike at
    any distance; "ordered", neighbouring rows are alike.
    """

    kind: str
    groups: IntArray | None  # (n_rows,): rows that belong together, where that could be told
    block_length: int  # neighbouring rows that make blocks nearly independent; of "ordered"
    design_effect: float  # variance of a pair's score, in units of that of independent rows
    n_alike: int  # rows with a near-repeat that is not expected
    words: str  # what was seen
    advice: str = ""  # what to do about it


def row_dependence(
    packed: PackedSpins,
    model: IsingModel,
    shifts: FloatArray | None = None,
    *,
    is_series: bool = False,
) -> RowDependence:
    """Whether rows look like independent draws of the network fitted to them.

    The score of a pair of spins is a sum over rows, and those of two rows with correlation c have
    correlation c^2: the variance is 1 + (1/M) sum_{a != b} c_ab^2 times that of independent rows.

    Parameters
    ----------
    packed
        The rows.
    model
        The network fitted to them as if they were independent.
    shifts
        (n_spins, n_rows): what causes outside the network add to fields; by default nothing.
    is_series
        Whether rows are known to be in the order of time: then what neighbouring ones have in
        common counts, however little it is.
    """
    rng = np.random.default_rng(_SEED)
    n_rows = packed.n_samples
    if n_rows < _FEW_ROWS:
        return independent_rows("rows are few: whether they are alike was not looked at")
    rows = row_bits(packed, model, rng)
    if len(rows.columns) < 2:
        return independent_rows("columns do not change: whether rows are alike was not looked at")
    which, n_equal = repeated(packed, rows)
    pasted = _pasted(which, n_equal)
    if pasted is not None:
        return pasted
    counts = rows.distances()
    n_queries = -(-n_rows // rows.step)
    present = fraction_present(packed)
    excess = Excess(counts[2], stretched(null_of_halves(counts), counts[2]), n_queries, present)
    has_order = not _is_histogram(which, n_equal)  # whose order means nothing
    order = row_order(packed, rows, excess.variance) if has_order or is_series else None
    to_allow_for = order if has_order and _matters(order, is_series) else None
    if excess.tail_effect() > _SUSPICIOUS:
        null = stretched(null_of_model(rows, packed, model, shifts, rng), counts[2])
        excess = Excess(counts[2], null, n_queries, present)
        found = _repeats(rows, excess, to_allow_for)
        is_held = is_series and found is not None and _holds(order, found.design_effect)
        if found is not None and not is_held:
            return found
    if to_allow_for is not None and to_allow_for.design_effect > 1:
        return _ordered(to_allow_for)
    return independent_rows("rows look independent of each other")


def _matters(order: RowOrder | None, is_series: bool) -> bool:
    """Whether there is something to allow for in the order of rows."""
    return order is not None and (is_series or (order.is_seen and order.design_effect > _MATTERS))


def _holds(order: RowOrder | None, effect: float) -> bool:
    """Whether the order of rows holds most of a design effect."""
    return order is not None and order.design_effect - 1 >= _CAPTURED * (effect - 1)


def independent_rows(words: str) -> RowDependence:
    """Nothing found, or not looked at: `words` say why."""
    return RowDependence("none", None, 1, 1.0, 0, words)


def harmless(found: RowDependence, design_effect: float) -> RowDependence:
    """What was found, where it hardly matters once the network is known."""
    words = f"{found.words}; once the network is known, that hardly matters: by {design_effect:.2f}"
    return RowDependence("none", None, 1, 1.0, found.n_alike, words)


def inflated(design_effect: float, n_rows: int) -> RowDependence:
    """Rows that share what neither the network nor its causes explain: they count for fewer."""
    words = (
        "pairs of columns vary together far more than chance explains, nearly all of them, as "
        "where rows belong to lineages: as if there were only some "
        f"{n_rows / design_effect:.0f} independent ones"
    )
    return RowDependence("repeats", None, 1, design_effect, 0, words, _LINEAGES)


def _is_histogram(which: IntArray, counts: IntArray) -> bool:
    """Whether all equal rows stand together, and there are many such: a histogram, written out.

    which: (n_rows,), the same for equal rows     counts: how many rows are equal, by that
    """
    n_runs = 1 + np.count_nonzero(np.diff(which))
    return n_runs == len(counts) and len(counts) < _MANY_EQUAL * len(which)


def _pasted(which: IntArray, counts: IntArray) -> RowDependence | None:
    """Whether every row occurs a multiple of the same number of times."""
    copies = int(np.gcd.reduce(counts))
    if copies < 2 or len(counts) < _FEW_PATTERNS:
        return None
    # rows of a group are equal, so that it does not matter which equal rows it holds
    order = np.argsort(which, kind="stable")
    groups = np.empty(len(which), dtype=np.int64)
    groups[order] = np.arange(len(which)) // copies
    n_rows = len(which)
    n_own = n_rows // copies
    words = (
        f"every row occurs {copies} times or a multiple of that, as if a table of "
        f"{n_own} rows had been pasted {copies} times: there is evidence of {n_own} rows only"
    )
    advice = 'drop the copies, or, where rows are truly so often the same, pass rows="independent"'
    return RowDependence("pasted", groups, 1, float(copies), n_rows, words, advice)


def _repeats(rows: RowBits, excess: Excess, order: RowOrder | None) -> RowDependence | None:
    """Rows alike wherever they are, if that matters and is not better told by their order."""
    if excess.tail_effect() <= _MATTERS - 1:
        return None
    effect = excess.design_effect
    in_order = 1.0 if order is None else order.design_effect
    linked = linked_rows(rows, excess) if len(rows.rows) <= _MOST_LINKED else None
    if linked is not None and _tell(linked, rows, excess, max(effect, in_order), order):
        effect = max(effect, linked.design_effect)
        words = _repeat_words(rows, linked, effect)
        groups = linked.groups
        n_alike = linked.n_alike
        return RowDependence("repeats", groups, 1, effect, n_alike, words, _BELONG)
    if order is not None and _holds(order, effect):
        return _ordered(order)
    words = (
        "rows are more alike than the network explains, wherever they are in the table, as if "
        f"there were only some {len(rows.rows) / effect:.0f} independent ones"
    )
    advice = f'{_BELONG}, or, if they are a series, put them in order and pass rows="ordered"'
    n_alike = 0 if linked is None else linked.n_alike
    return RowDependence("repeats", None, 1, effect, n_alike, words, advice)


def _tell(
    linked: RowGroups, rows: RowBits, excess: Excess, effect: float, order: RowOrder | None
) -> bool:
    """Whether groups hold most of the design effect, and no series is cut into pieces by them."""
    if linked.design_effect - 1 < _CAPTURED * (effect - 1):
        return False
    if order is None:
        return True
    across = rows.neighbours_apart(linked.groups)
    alike = 1 - float(across.mean()) / excess.mean if len(across) else 0.0
    return alike < _CUT * float(order.correlations[0])


def _repeat_words(rows: RowBits, linked: RowGroups, effect: float) -> str:
    n_rows = len(rows.rows)
    n_columns = len(rows.columns)
    return (
        f"{linked.n_alike} of {n_rows} rows agree with another row in all but {linked.distance} of "
        f"{n_columns} columns or less, which hardly any independent ones would, as if there were "
        f"only some {n_rows / effect:.0f} independent rows"
    )


def _ordered(order: RowOrder) -> RowDependence:
    value = float(order.correlations[0])
    n_effective = order.n_rows / order.design_effect
    words = (
        f"neighbouring rows have a correlation of {value:.2f}, and it takes some "
        f"{len(order.squares)} rows to die out, as if there were only some {n_effective:.0f} "
        "independent rows"
    )
    advice = (
        'pass rows="ordered" for a series in time, or groups= where neighbouring rows belong to '
        "one person, site or recording"
    )
    effect = order.design_effect
    return RowDependence("ordered", None, order.block_length, effect, order.n_rows, words, advice)
