"""Memory that `AutoIsing` takes beside the data, by the size of a table: before anything starts.

The constants are measured: `tests/test_memory.py` measures them again. docs/scale.md lists them.
"""

from isingkit.estimators.dual import bytes_of_dual
from isingkit.estimators.primal import bytes_of_primal
from isingkit.estimators.score_cache import n_plausible_pairs, n_probed

_START = 44e6  # of buffers, whatever the size
_PAIRS, _CELLS = 56, 18  # for each pair of spins and each cell, with all pairs in memory
_PLAUSIBLE = 300  # for each pair that noise makes plausible
# by tiles: for each pair of spins that are probed, each spin and each row
_PROBED, _SPIN, _ROW = 26, 7_000, 72_000
_BOTH = 2  # matrices of all pairs of spins, while ridges are compared


def bytes_by_matrices(n_spins: int, n_rows: int) -> float:
    """With all pairs in memory."""
    n_bytes = _START + _PAIRS * n_spins**2 + _CELLS * n_spins * n_rows
    if n_rows >= n_spins:
        n_bytes += _PLAUSIBLE * n_plausible_pairs(n_spins, are_rows_few=False)
    return n_bytes


def bytes_by_tiles(n_spins: int, n_rows: int, is_complete: bool) -> float:
    """By tiles: what the screen takes, or the tests after it, if these take more.

    is_complete: whether no value is missing; else spins are numbers in tests
    """
    held = 0.0 if is_complete else 8.0 * n_spins * n_rows
    if n_rows >= n_spins:
        of_screen = _BOTH * bytes_of_primal(n_spins, n_rows)
    else:
        of_screen = bytes_of_dual(n_spins, n_rows)
    n_plausible = n_plausible_pairs(n_spins, are_rows_few=n_rows < n_spins)
    of_look = _PROBED * n_probed(n_spins) ** 2 + _ROW * n_rows
    of_tests = max(of_look, _PLAUSIBLE * n_plausible) + _SPIN * n_spins
    return held + max(of_screen, of_tests)
