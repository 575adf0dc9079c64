"""Have chains forgotten how they started? Split R-hat, effective sample sizes, and a comparison of
two kinds of start.
"""

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from isingkit.arrays import FloatArray, SpinArray
from isingkit.exceptions import NotEquilibratedError
from isingkit.model import IsingModel

N_LOOKS = 16
LARGEST_R_HAT = 1.1
STANDARD_ERRORS = 5.0


class EquilibrationMonitor:
    """Looks at some chains in the second half of the warm-up: their energy, the sum over coupled
    pairs, and the sum of spins.

    fields: (n_chains / 2, n_spins), where chains have fields of their own: one that started at
    random and one that started aligned have the same, and only their differences are looked at
    """

    def __init__(self, model: IsingModel, fields: NDArray[np.float64] | None = None) -> None:
        self._upper = scipy.sparse.triu(model.couplings, k=1).tocsr()
        self._pairs = self._upper.astype(bool).astype(np.float64)
        self._fields = model.fields if fields is None else np.tile(fields, (2, 1))
        self._diagnose = _diagnosed if fields is None else _diagnosed_pairs
        self._seen: list[
            dict[str, FloatArray]
        ] = []  # for each look: one number a chain, random starts first

    def intervals(self, warm_up: int) -> list[int]:
        """Sweeps before each look, at least one; they add up to warm_up."""
        n_looks = max(2, min(N_LOOKS, warm_up // 2 // 2 * 2))
        looks = np.unique(np.linspace(warm_up - warm_up // 2, warm_up, n_looks).astype(int))
        return np.diff(looks, prepend=0).tolist()  # type: ignore[no-any-return]

    def look(self, chains: tuple[SpinArray, SpinArray]) -> None:
        """Note what the chains, (n_chains, n_spins) from random and from aligned starts, show
        now.
        """
        spins = np.concatenate(chains).astype(np.float64)
        of_couplings = (spins * (spins @ self._upper)).sum(axis=1)
        pair_sum = (spins * (spins @ self._pairs)).sum(axis=1)
        look = {
            "energy": -of_couplings - self._in_fields(spins),
            "pair sum": pair_sum,
            "spin sum": spins.sum(axis=1),
        }
        self._seen.append(look)

    def _in_fields(self, spins: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n_chains,): sum_i H_i s_i."""
        if self._fields.ndim == 1:
            return np.asarray(spins @ self._fields)
        return np.asarray((spins * self._fields).sum(axis=1))

    def diagnostics(self) -> dict[str, dict[str, float]]:
        """For each quantity R-hat, effective sample size, and how far random and aligned starts are
        apart, in standard errors.
        """
        return {
            name: self._diagnose(np.stack([look[name] for look in self._seen], axis=1))
            for name in ("energy", "pair sum", "spin sum")
        }

    def check(self, warm_up: int) -> None:
        """Raise NotEquilibratedError where chains disagree."""
        found = self.diagnostics()
        if any(disagrees(one) for one in found.values()):
            raise NotEquilibratedError(diagnostics=found, warm_up=warm_up)


def disagrees(diagnosis: dict[str, float]) -> bool:
    """Whether chains disagree in one quantity."""
    return diagnosis["r_hat"] > LARGEST_R_HAT or diagnosis["starts_apart"] > STANDARD_ERRORS


def _diagnosed(draws: FloatArray) -> dict[str, float]:
    """draws: (n_chains, n_looks), the first half of the chains started at random, the other
    aligned.
    """
    n_chains, n_looks = draws.shape
    smallest = (1e-9 * np.abs(draws).max()) ** 2  # what is less is rounding
    ends = draws[:, n_looks // 2 :].mean(axis=1)
    random = ends[: n_chains // 2]
    aligned = ends[n_chains // 2 :]
    variance = (random.var(ddof=1) + aligned.var(ddof=1)) / (n_chains // 2)
    apart = (random.mean() - aligned.mean()) ** 2
    return _summary(draws, float(apart), float(variance), smallest)


def _diagnosed_pairs(draws: NDArray[np.float64]) -> dict[str, float]:
    """The same of chains with fields of their own, of which chain k and chain n_chains / 2 + k have
    the same: the differences within these pairs have mean 0 whatever the fields.
    """
    n_pairs = len(draws) // 2
    smallest = (1e-9 * np.abs(draws).max()) ** 2
    differences = draws[:n_pairs] - draws[n_pairs:]
    ends = differences[:, draws.shape[1] // 2 :].mean(axis=1)
    variance = ends.var(ddof=1) / n_pairs
    return _summary(differences, float(ends.mean() ** 2), float(variance), smallest)


def _summary(
    draws: NDArray[np.float64], apart: float, variance: float, smallest: float
) -> dict[str, float]:
    """R-hat, effective sample size, and how far two kinds of start are apart.

    draws: (n_chains, n_looks)     apart, variance: the square of their distance, and its variance
    R-hat wants chains that have had time to change: where there are fewer looks than planned it is
    left at 1.
    """
    n_chains, n_looks = draws.shape
    starts_apart = (
        0.0 if apart <= smallest else np.sqrt(apart / variance) if variance > smallest else np.inf
    )
    if n_looks < N_LOOKS:
        return {
            "r_hat": 1.0,
            "effective_samples": float(n_chains),
            "starts_apart": float(starts_apart),
        }
    halves = draws.reshape(2 * n_chains, n_looks // 2)  # split: each chain's first and second half
    length = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean()
    between = halves.mean(axis=1).var(ddof=1)
    if between <= smallest:
        r_hat = 1.0
        effective = float(draws.size)
    else:
        r_hat = np.sqrt((length - 1) / length + between / within) if within > smallest else np.inf
        # draws of one chain: the variance of its mean over that of independent ones
        effective = min(draws.size, len(halves) * within / between)
    return {
        "r_hat": float(r_hat),
        "effective_samples": float(effective),
        "starts_apart": float(starts_apart),
    }
