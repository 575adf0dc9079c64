"""Judge: which pairs are edges, and how sure that is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from isingkit.arrays import FloatArray
from isingkit.estimators.degrees import degree_weights
from isingkit.estimators.network import Network
from isingkit.estimators.screen import Pairs
from isingkit.exceptions import NotConvergedWarning, warn

_LOOK = 3.0  # deviate at which a pair outside the network is looked at closely, at most ...
_BY_NOISE = 6.0  # ... unless so many pairs of each spin would reach it by chance
# how far below the deviate of an edge, since a first look is rough and degrees may lower it
_MARGIN = 1.75
_NARROW = 0.8  # the same where the deviate of an edge is only known once the network is
_MOST_ROUNDS = 200
_MANY = 16  # neighbours, for each of which a spin may have one more let in or go at a time
DIGITS = 6  # of deviates that tell one from another
_UNKNOWN = np.inf, np.inf
Known = dict[
    int, tuple[float, float]
]  # by key: a pair's deviate, and that from which on it was tested against rivals


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Pairs tested, in the network or not, and how sure of each."""

    pairs: Pairs
    inside: NDArray[np.bool_]
    deviates: FloatArray
    chances: FloatArray  # two-sided p-values
    weights: FloatArray  # by the degrees of their spins
    # q-values, by Benjamini and Hochberg over all pairs of spins, p-values over weights
    shares: FloatArray
    passes: NDArray[np.bool_]
    n_rounds: int


def deviate_to_look_at(n_spins: int, n_edges: int, level: float, control: str) -> float:
    """Pairs outside a network of about so many edges that have a lesser deviate at a first look
    will hardly become edges.
    """
    needed = float(deviate_of_an_edge(n_spins, n_edges, level, control))
    by_noise = float(norm.isf(min(_BY_NOISE / max(2 * n_spins, 1), 0.5)))
    return needed - _MARGIN if control == "fwer" else min(max(_LOOK, by_noise), needed - _NARROW)


def deviate_of_an_edge(
    n_spins: int, n_edges: int, level: float, control: str, weights: FloatArray | float = 1.0
) -> FloatArray:
    """The least deviate of an edge in a network of so many."""
    share = (
        level
        * weights
        * (max(n_edges, 1) if control == "fdr" else 1)
        / max(n_spins * (n_spins - 1), 2)
    )
    return np.asarray(norm.isf(np.clip(share, 1e-300, 0.5)))


def judge(
    network: Network, known: Known, pairs: Pairs, level: float, control: str, n_rounds: int
) -> Judged:
    """These pairs, those of the network first. Known deviates are taken as they are unless less is
    needed now than when tested.
    """
    keys, changes = network.keys(pairs).tolist(), network.normal.changes
    weights, n_spins = degree_weights(pairs, network.pairs, changes), int(changes.sum())
    needed = deviate_of_an_edge(n_spins, len(pairs), level, control, weights)
    before = [known.get(key, _UNKNOWN) for key in keys]
    size, tested = (
        np.abs([deviate for deviate, _ in before]),
        np.array([least for _, least in before]),
    )
    new = np.flatnonzero((tested >= size) & (size > needed))
    for k, deviate in zip(
        new.tolist(), network.deviates(pairs[new], needed[new]).tolist(), strict=True
    ):
        known[keys[k]] = deviate, float(needed[k])
    deviates = np.array([known[key][0] for key in keys])
    chances = np.asarray(2 * norm.sf(np.abs(deviates)))
    counted = chances / weights * max(n_spins * (n_spins - 1) / 2, 1)
    order = np.argsort(counted)
    shares = np.empty(len(pairs))
    stepped = counted[order] / np.arange(1, len(pairs) + 1)
    shares[order] = np.minimum(np.minimum.accumulate(stepped[::-1])[::-1], 1.0)
    passes = shares <= level if control == "fdr" else counted <= level
    return Judged(
        pairs,
        np.arange(len(pairs)) < len(network.pairs),
        deviates,
        chances,
        weights,
        shares,
        passes,
        n_rounds,
    )


def settle(network: Network, also: Pairs, level: float, control: str) -> Judged:
    """Let in what passes and out what fails, the clearest cases of each neighbourhood first, until
    nothing moves.

    At first things only go: to look around costs most, and is of little use before.

    The result judges the pairs `also`, too, whether they were ever in question or not.
    """
    known: Known = {}
    moves: dict[int, int] = {}
    last: dict[int, float] = {}  # deviates of pairs that went, when they did
    rounds, only_going = 0, True
    while True:
        rounds += 1
        if not only_going:
            network.look_around()
        judged = judge(
            network,
            known,
            np.concatenate([network.pairs, network.unkeyed(network.suspects)]),
            level,
            control,
            rounds,
        )
        keys = network.keys(judged.pairs)
        circling = [key for key, times in moves.items() if times > 1]
        room = (
            1 + np.diff(network.indptr) // _MANY
        )  # at a hub one move more or less makes little difference
        strongest = _leads(
            judged.pairs,
            judged.passes & ~judged.inside & ~np.isin(keys, circling),
            judged.deviates,
            1,
            room,
        )
        weakest = _leads(judged.pairs, ~judged.passes & judged.inside, judged.deviates, -1, room)
        comes, goes = strongest[0] & strongest[1], weakest[0] | weakest[1]
        n_moves = int(comes.sum() + goes.sum())
        if only_going and (n_moves == 0 or rounds >= _MOST_ROUNDS):
            only_going = False
            continue
        if n_moves > 0 and rounds >= _MOST_ROUNDS:
            advice = "the network may be too dense to be told apart with these rows; trust strong edges only"
            warn(
                NotConvergedWarning(
                    what="judging edges", residual=n_moves, allowed=0, advice=advice
                )
            )
        if n_moves == 0 or rounds >= _MOST_ROUNDS:
            outside = np.union1d(
                np.setdiff1d(network.keys(also), network.keys(network.pairs)), network.suspects
            )
            for key in set(outside.tolist()) & set(circling):
                known[key] = last[key], 0.0  # outside it would be an edge, inside it is none
            judged = judge(
                network,
                known,
                np.concatenate([network.pairs, network.unkeyed(outside)]),
                level,
                control,
                rounds,
            )
            late = np.setdiff1d(
                network.keys(judged.pairs[judged.passes & ~judged.inside]), circling
            )
            suspects = np.union1d(
                network.suspects, np.union1d(late, np.intersect1d(outside, circling))
            ).astype(np.int64)
            if rounds >= _MOST_ROUNDS or len(late) == 0 or len(suspects) == len(network.suspects):
                return judged
            network.suspects = suspects
            continue
        last.update(zip(keys[goes].tolist(), judged.deviates[goes].tolist(), strict=True))
        for key in keys[comes].tolist():
            moves[key] = moves.get(key, 0) + 1
        pairs = judged.pairs[(judged.inside & ~goes) | comes]
        touched = np.zeros(network.n_spins, dtype=bool)
        touched[network.connect(pairs[np.argsort(network.keys(pairs))])] = True
        for key in [
            key
            for key in known
            if touched[key // network.n_spins] or touched[key % network.n_spins]
        ]:
            del known[key]


def _leads(
    pairs: Pairs, among: NDArray[np.bool_], deviates: FloatArray, sign: int, room: NDArray[np.int64]
) -> list[NDArray[np.bool_]]:
    """Whether a pair is one of the strongest (sign 1) or weakest (-1) of its first spin's pairs in
    question, and of its second's.

    room: (n_spins,), how many of a spin's pairs may be
    """
    chosen = np.flatnonzero(among)
    spins = pairs[chosen].T.ravel()  # first spins, then second ones
    sizes = np.tile(sign * np.round(np.abs(deviates[chosen]), DIGITS), 2)
    order = np.lexsort((np.tile(chosen, 2), -sizes, spins))  # of equal ones, the first leads
    _, starts, counts = np.unique(spins[order], return_index=True, return_counts=True)
    ranks = np.empty(len(spins), dtype=np.int64)
    ranks[order] = np.arange(len(spins)) - np.repeat(starts, counts)
    leads = np.zeros((2, len(pairs)), dtype=np.bool_)
    leads[:, chosen] = (ranks < room[spins]).reshape(2, -1)
    return list(leads)
