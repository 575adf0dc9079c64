"""Ten thousand points of a phase diagram at once against one by one."""

import numpy as np

from isingkit import theory
from side_by_side import Claim, faster, seconds

N_ALONE = 200


def measure() -> list[Claim]:
    """100 x 100 points of samples per spin and ridge, infinite depth and depth 50."""
    return [together_or_alone(depth) for depth in (None, 50)]


def together_or_alone(depth: int | None) -> Claim:
    grid = np.meshgrid(np.geomspace(1e-2, 1e2, 100), np.geomspace(1e-3, 1e3, 100))
    alpha, ridge = (values.ravel() for values in grid)
    few = np.linspace(0, len(alpha) - 1, N_ALONE).astype(int)

    def together() -> theory.Prediction:
        return theory.random_regular(3, 0.4, alpha, ridge, depth)

    def alone() -> list[theory.Prediction]:
        return [theory.random_regular(3, 0.4, alpha[k], ridge[k], depth) for k in few]

    expected = [prediction.rss for prediction in alone()]
    np.testing.assert_allclose(together().rss[few], expected, rtol=1e-10)
    taken = seconds({"together": together, "alone": alone}, rounds=7)
    scaled = [time * len(alpha) / N_ALONE for time in taken["alone"]]
    depth_in_words = "infinite" if depth is None else depth
    what = f"10,000 solutions of the equations of state, depth {depth_in_words}"
    peer = f"one by one ({N_ALONE} timed)"
    return faster(what, peer, taken["together"], scaled, at_least=20)
