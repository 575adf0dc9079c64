"""Ten thousand points of a phase diagram at once against one by one."""

import numpy as np

from isingkit import theory
from side_by_side import Claim, faster, seconds

N_ALONE = 200


def measure() -> list[Claim]:
    """100 x 100 points of samples per spin and ridge, infinite depth and depth 50."""
    alpha, ridge = (
        grid.ravel()
        for grid in np.meshgrid(np.geomspace(1e-2, 1e2, 100), np.geomspace(1e-3, 1e3, 100))
    )
    claims = []
    for depth in (None, 50):
        few = np.linspace(0, len(alpha) - 1, N_ALONE).astype(int)
        together = theory.random_regular(3, 0.4, alpha, ridge, depth)
        alone = [theory.random_regular(3, 0.4, alpha[k], ridge[k], depth).rss for k in few]
        np.testing.assert_allclose(together.rss[few], alone, rtol=1e-10)
        taken = seconds(
            {
                "together": lambda depth=depth: theory.random_regular(3, 0.4, alpha, ridge, depth),
                "alone": lambda depth=depth, few=few: [
                    theory.random_regular(3, 0.4, alpha[k], ridge[k], depth) for k in few
                ],
            },
            rounds=7,
        )
        scaled = [time * len(alpha) / N_ALONE for time in taken["alone"]]
        what = f"10,000 solutions of the equations of state, depth {'infinite' if depth is None else depth}"
        claims.append(
            faster(what, f"one by one ({N_ALONE} timed)", taken["together"], scaled, at_least=20)
        )
    return claims
