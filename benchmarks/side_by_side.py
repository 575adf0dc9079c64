"""Time rivals in one run, round after round, so that a noisy machine is noisy for all of them."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """One row of RESULTS.md: a ratio measured side by side, and what was promised of it."""

    what: str
    peer: str
    ours_seconds: float  # median of the rounds
    peer_seconds: float
    ratio: float  # median of the rounds' ratios
    spread: tuple[float, float]  # quartiles of the rounds' ratios
    promise: str
    holds: bool


def seconds(rivals: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each rival in each round, after one round that is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in rivals}
    for counted in [False] + [True] * rounds:
        for name, work in rivals.items():
            time.sleep(0.1)  # BLAS threads go on spinning for a while after their work is done
            start = time.perf_counter()
            work()
            if counted:
                taken[name].append(time.perf_counter() - start)
    return taken


def faster(what: str, peer: str, ours: list[float], theirs: list[float], at_least: float) -> Claim:
    """The claim that ours takes at most 1 / at_least of the peer's time."""
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    holds = statistics.median(ratios) >= at_least
    return _claim(what, peer, ours, theirs, ratios, f"at least {at_least:g}", holds)


def within(what: str, peer: str, ours: list[float], theirs: list[float], at_most: float) -> Claim:
    """The claim that ours takes at most at_most times the peer's time."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    holds = statistics.median(ratios) <= at_most
    return _claim(what, peer, ours, theirs, ratios, f"at most {at_most:g}", holds)


def _claim(
    what: str,
    peer: str,
    ours: list[float],
    theirs: list[float],
    ratios: list[float],
    promise: str,
    holds: bool,
) -> Claim:
    low, _, high = statistics.quantiles(ratios, n=4)
    return Claim(
        what=what,
        peer=peer,
        ours_seconds=statistics.median(ours),
        peer_seconds=statistics.median(theirs),
        ratio=statistics.median(ratios),
        spread=(low, high),
        promise=promise,
        holds=holds,
    )
