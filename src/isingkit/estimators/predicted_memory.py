"""Memory that `AutoIsing` takes beside the data, by the size of a table: before anything starts.

The constants are measured: `tests/test_memory.py` measures them again. docs/scale.md lists them.
"""

from isingkit.estimators.dual import bytes_of_dual
from isingkit.estimators.primal import bytes_of_primal
from isingkit.estimators.score_cache import n_plausible_pairs, n_probed

# of buffers, whatever the size, where rows are few and where they are many
_START, _START_MANY = 28e6, 10e6
# with all pairs in memory: for each pair of spins, each cell, and each pair that noise makes
# plausible
_PAIRS, _CELLS, _PLAUSIBLE = 29, 18, 400
# by tiles: for each pair that noise makes plausible where rows are few and where they are many,
# each pair of spins that are probed, each spin and each cell
_PLAUSIBLE_FEW, _PLAUSIBLE_MANY, _PROBED, _SPIN, _HELD = 300, 500, 28, 7_000, 8
_BOTH = 2  # matrices of all pairs of spins, while ridges are compared
_COUNTING = 45e6  # of pairs of all spins


def bytes_by_matrices(n_spins: int, n_rows: int) -> float:
    """With all pairs in memory."""
    n_bytes = _PAIRS * n_spins**2 + _CELLS * n_spins * n_rows
    if n_rows < n_spins:
        return _START + n_bytes
    n_plausible = n_plausible_pairs(n_spins, are_rows_few=False)
    return _START_MANY + n_bytes + _PLAUSIBLE * n_plausible


def bytes_by_tiles(n_spins: int, n_rows: int, is_complete: bool) -> float:
    """By tiles: what the screen takes, or the tests after it, if these take more.

    is_complete: whether no value is missing; else spins are numbers in tests
    """
    held = 0.0 if is_complete else 8.0 * n_spins * n_rows
    if n_rows >= n_spins:
        of_screen = _COUNTING + _BOTH * bytes_of_primal(n_spins, n_rows)
        of_pair = _PLAUSIBLE_MANY
    else:
        of_screen = float(bytes_of_dual(n_spins, n_rows))
        of_pair = _PLAUSIBLE_FEW
    n_plausible = n_plausible_pairs(n_spins, are_rows_few=n_rows < n_spins)
    of_pairs = max(_PROBED * n_probed(n_spins) ** 2, of_pair * n_plausible)
    of_tests = of_pairs + n_spins * (_SPIN + _HELD * n_rows)
    return held + max(of_screen, of_tests)
