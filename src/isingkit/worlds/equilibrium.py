"""Have chains forgotten how they started? Split R-hat, effective sample sizes, and a comparison of two kinds of start."""

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from isingkit.exceptions import NotEquilibratedError
from isingkit.model import IsingModel

N_LOOKS = 16
LARGEST_R_HAT = 1.1
STANDARD_ERRORS = 5.0


class Watch:
    """Looks at some chains in the second half of the warm-up: their energy, the sum over coupled pairs, and the sum of spins."""

    def __init__(self, model: IsingModel) -> None:
        self._upper = scipy.sparse.triu(model.couplings, k=1).tocsr()
        self._pairs = self._upper.astype(bool).astype(np.float64)
        self._fields = model.fields
        self._seen: list[dict[str, NDArray[np.float64]]] = []  # for each look: one number a chain, random starts first

    def intervals(self, warm_up: int) -> list[int]:
        """Sweeps before each look; they add up to warm_up."""
        second_half = np.linspace(warm_up - warm_up // 2, warm_up, N_LOOKS).astype(int)
        return np.diff(second_half, prepend=0).tolist()  # type: ignore[no-any-return]

    def look(self, chains: tuple[NDArray[np.int8], NDArray[np.int8]]) -> None:
        """Note what the chains, (n_chains, n_spins) from random and from aligned starts, show now."""
        spins = np.concatenate(chains).astype(np.float64)
        self._seen.append(
            {
                "energy": -(spins * (spins @ self._upper)).sum(axis=1) - spins @ self._fields,
                "pair sum": (spins * (spins @ self._pairs)).sum(axis=1),
                "spin sum": spins.sum(axis=1),
            }
        )

    def diagnostics(self) -> dict[str, dict[str, float]]:
        """For each quantity R-hat, effective sample size, and how far random and aligned starts are apart, in standard errors."""
        return {
            name: _diagnosed(np.stack([look[name] for look in self._seen], axis=1)) for name in ("energy", "pair sum", "spin sum")
        }

    def judge(self, warm_up: int) -> None:
        """Raise NotEquilibratedError where chains disagree."""
        found = self.diagnostics()
        if any(one["r_hat"] > LARGEST_R_HAT or one["starts_apart"] > STANDARD_ERRORS for one in found.values()):
            raise NotEquilibratedError(diagnostics=found, warm_up=warm_up)


def _diagnosed(draws: NDArray[np.float64]) -> dict[str, float]:
    """draws: (n_chains, n_looks), the first half of the chains started at random, the other aligned."""
    n_chains, n_looks = draws.shape
    halves = draws.reshape(2 * n_chains, n_looks // 2)  # split: each chain's first and second half
    within = halves.var(axis=1, ddof=1).mean()
    between = halves.mean(axis=1).var(ddof=1)
    length = halves.shape[1]
    r_hat = np.sqrt((length - 1) / length + between / within) if within > 0 else 1.0 if between == 0 else np.inf
    # draws of one chain: the variance of its mean over that of independent ones
    effective = draws.size if between == 0 else min(draws.size, len(halves) * within / between)
    ends = draws[:, -n_looks // 2 :].mean(axis=1)
    random, aligned = ends[: n_chains // 2], ends[n_chains // 2 :]
    error = np.sqrt((random.var(ddof=1) + aligned.var(ddof=1)) / (n_chains // 2))
    apart = abs(random.mean() - aligned.mean())
    starts_apart = apart / error if error > 0 else 0.0 if apart == 0 else np.inf
    return {"r_hat": float(r_hat), "effective_samples": float(effective), "starts_apart": float(starts_apart)}
