"""Judge: which pairs are edges, and how sure that is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from isingkit.estimators.network import Network
from isingkit.estimators.normal import Matrix
from isingkit.estimators.screen import Pairs
from isingkit.exceptions import NotConvergedWarning, warn

_LOOK = 3.0  # deviate at which a pair outside the network is looked at closely, at most ...
_BY_NOISE = 6.0  # ... unless so many pairs of each spin would reach it by chance
_MARGIN = 1.5  # how far below the deviate of an edge, since a first look is rough
_NARROW = 0.8  # the same where the deviate of an edge is only known once the network is
_MOST_ROUNDS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Pairs tested, in the network or not, and how sure of each."""

    pairs: Pairs
    inside: NDArray[np.bool_]
    deviates: Matrix
    chances: Matrix  # two-sided p-values
    shares: Matrix  # q-values, by Benjamini and Hochberg over all pairs of spins
    passes: NDArray[np.bool_]
    n_rounds: int


def deviate_to_look_at(n_spins: int, n_edges: int, level: float, control: str) -> float:
    """Pairs outside a network of about so many edges that have a lesser deviate at a first look will hardly become edges."""
    needed = deviate_of_an_edge(n_spins, n_edges, level, control)
    by_noise = float(norm.isf(min(_BY_NOISE / (2 * n_spins), 0.5)))
    return needed - _MARGIN if control == "fwer" else min(max(_LOOK, by_noise), needed - _NARROW)


def deviate_of_an_edge(n_spins: int, n_edges: int, level: float, control: str) -> float:
    """The least deviate of an edge in a network of so many."""
    return float(norm.isf(level * (max(n_edges, 1) if control == "fdr" else 1) / max(n_spins * (n_spins - 1), 2)))


def judge(network: Network, known: dict[int, float], pairs: Pairs, level: float, control: str, n_rounds: int) -> Judged:
    """These pairs, those of the network first. `known` keeps deviates for later."""
    keys = network.keys(pairs)
    new = np.array([key not in known for key in keys.tolist()], dtype=bool)
    needed = deviate_of_an_edge(network.n_spins, len(pairs), level, control)
    known.update(zip(keys[new].tolist(), network.deviates(pairs[new], needed).tolist(), strict=True))
    deviates = np.array([known[key] for key in keys.tolist()])
    chances = np.asarray(2 * norm.sf(np.abs(deviates)))
    n_pairs = network.n_spins * (network.n_spins - 1) / 2
    order = np.argsort(chances)
    shares = np.empty(len(pairs))
    stepped = chances[order] * n_pairs / np.arange(1, len(pairs) + 1)
    shares[order] = np.minimum(np.minimum.accumulate(stepped[::-1])[::-1], 1.0)
    passes = shares <= level if control == "fdr" else chances * n_pairs <= level
    return Judged(pairs, np.arange(len(pairs)) < len(network.pairs), deviates, chances, shares, passes, n_rounds)


def settle(network: Network, also: Pairs, level: float, control: str) -> Judged:
    """Let in what passes and out what fails, the clearest cases of each neighbourhood first, until nothing moves.

    At first things only go: to look around costs most, and is of little use before.

    The result judges the pairs `also`, too, whether they were ever in question or not.
    """
    known: dict[int, float] = {}
    moves: dict[int, int] = {}
    last: dict[int, float] = {}  # deviates of pairs that went, when they did
    rounds, only_going = 0, True
    while True:
        rounds += 1
        if not only_going:
            network.look_around()
        judged = judge(network, known, np.concatenate([network.pairs, network.unkeyed(network.suspects)]), level, control, rounds)
        keys = network.keys(judged.pairs)
        tried = np.array([moves.get(key, 0) > 1 for key in keys.tolist()], dtype=bool)  # no going round in circles
        strongest = _leads(judged.pairs, judged.passes & ~judged.inside & ~tried, judged.deviates, 1)
        weakest = _leads(judged.pairs, ~judged.passes & judged.inside, judged.deviates, -1)
        comes, goes = strongest[0] & strongest[1], weakest[0] | weakest[1]
        n_moves = int(comes.sum() + goes.sum())
        if only_going and (n_moves == 0 or rounds >= _MOST_ROUNDS):
            only_going = False
            continue
        if n_moves > 0 and rounds >= _MOST_ROUNDS:
            advice = "the network may be too dense to be told apart with these rows; trust strong edges only"
            warn(NotConvergedWarning(what="judging edges", residual=n_moves, allowed=0, advice=advice))
        if n_moves == 0 or rounds >= _MOST_ROUNDS:
            outside = np.union1d(np.setdiff1d(network.keys(also), network.keys(network.pairs)), network.suspects)
            for key in set(outside.tolist()) & {key for key, times in moves.items() if times > 1}:
                known[key] = last[key]  # outside it would be an edge, inside it is none
            return judge(network, known, np.concatenate([network.pairs, network.unkeyed(outside)]), level, control, rounds)
        last.update(zip(keys[goes].tolist(), judged.deviates[goes].tolist(), strict=True))
        for key in keys[comes].tolist():
            moves[key] = moves.get(key, 0) + 1
        pairs = judged.pairs[(judged.inside & ~goes) | comes]
        touched = np.zeros(network.n_spins, dtype=bool)
        touched[network.connect(pairs[np.argsort(network.keys(pairs))])] = True
        for key in [key for key in known if touched[key // network.n_spins] or touched[key % network.n_spins]]:
            del known[key]


def _leads(pairs: Pairs, among: NDArray[np.bool_], deviates: Matrix, sign: int) -> list[NDArray[np.bool_]]:
    """Whether a pair is the strongest (sign 1) or weakest (-1) of its first spin's pairs in question, and of its second's."""
    ranks = np.argsort(np.argsort(sign * np.abs(deviates), kind="stable"), kind="stable")  # of equal ones, one leads
    sizes = np.where(among, ranks.astype(np.float64), -np.inf)
    largest = np.full(int(pairs.max(initial=0)) + 1, -np.inf)
    for side in (0, 1):
        np.maximum.at(largest, pairs[:, side], sizes)
    return [among & (sizes >= largest[pairs[:, side]]) for side in (0, 1)]
