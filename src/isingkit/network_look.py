"""How a network is to look: colours, places, sizes and texts that were asked for, checked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from isingkit.arrays import FloatArray
from isingkit.drawing import COLOURS, Look
from isingkit.exceptions import SettingError, require_number
from isingkit.modularity import IntArray, best_partition, by_size
from isingkit.network_layout import around_a_circle, positions

_SEED = 0  # of communities that nobody asked for


def community_numbers(couplings: scipy.sparse.csr_array) -> IntArray:
    """(n_nodes,): 1 is the largest community; 0 where a node is in none."""
    labels, _ = best_partition(couplings, np.random.default_rng(_SEED))
    return by_size(labels)


def community_names(numbers: IntArray) -> list[str | None]:
    """What legends call communities; the smallest of very many have no colour left, and no name."""
    is_one = int(numbers.max(initial=0)) < 2  # which needs no colour
    return [
        None if is_one or not 0 < number <= len(COLOURS) else f"community {number}"
        for number in numbers.tolist()
    ]


def chosen_look(
    couplings: scipy.sparse.csr_array, names: Sequence[str], groups: Any, layout: Any
) -> Look:
    """Colours and places."""
    numbers = community_numbers(couplings)
    found = community_names(numbers) if groups is None else _given_groups(groups, names)
    return Look(groups=found, places=_places(couplings, numbers, layout))


def with_marks(look: Look, couplings: scipy.sparse.csr_array, marks: Mapping[str, Any]) -> Look:
    """The look with `size`, `labels`, `rings` and `max_edges` that are asked for."""
    n_nodes = couplings.shape[0]
    max_edges = marks["max_edges"]
    if max_edges is not None:
        require_number("max_edges", max_edges, at_least=0, whole=True)
    labels = marks["labels"]
    if labels is not None and not isinstance(labels, bool):
        labels = [str(label) for label in labels]
        if len(labels) != n_nodes:
            expected = f"True, False or {n_nodes} texts"
            raise SettingError(setting="labels", value=f"{len(labels)} of them", expected=expected)
    rings = marks["rings"]
    if rings is not None:
        rings = _numbers("rings", rings, n_nodes)
    sizes = _sizes(couplings, marks["size"])
    return replace(look, labels=labels, sizes=sizes, rings=rings, max_edges=max_edges)


def _sizes(couplings: scipy.sparse.csr_array, size: Any) -> FloatArray | None:
    """What areas of nodes are in proportion to; None for strengths."""
    if isinstance(size, str):
        if size == "strength":
            return None
        if size == "degree":
            return np.diff(couplings.indptr).astype(np.float64)
        expected = "'strength', 'degree' or a number for each column"
        raise SettingError(setting="size", value=size, expected=expected)
    values = _numbers("size", size, couplings.shape[0])
    if not (np.isfinite(values) & (values >= 0)).all():
        raise SettingError(setting="size", value=values.min(), expected="finite and at least 0")
    return values


def _numbers(setting: str, values: Any, n_nodes: int) -> FloatArray:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (n_nodes,):
        expected = f"{n_nodes} numbers, one for each column"
        raise SettingError(setting=setting, value=values, expected=expected)
    return found


def _given_groups(groups: Any, names: Sequence[str]) -> list[str | None] | None:
    if groups is False:
        return None
    if isinstance(groups, Mapping):
        if names and not set(groups) & set(names):
            expected = f"a mapping from names of columns, such as '{names[0]}', to groups"
            raise SettingError(setting="groups", value=list(groups)[:3], expected=expected)
        listed = [groups.get(name) for name in names]
    elif isinstance(groups, str) or not np.iterable(groups) or len(list(groups)) != len(names):
        expected = f"a mapping from names to groups, {len(names)} groups, None or False"
        raise SettingError(setting="groups", value=groups, expected=expected)
    else:
        listed = list(groups)
    return [None if group is None else str(group) for group in listed]


def _places(couplings: scipy.sparse.csr_array, numbers: IntArray, layout: Any) -> FloatArray:
    n_nodes = couplings.shape[0]
    if isinstance(layout, str):
        if layout == "structure":
            return positions(couplings, numbers)
        if layout == "circle":
            return around_a_circle(np.where(numbers == 0, numbers.max(initial=0) + 1, numbers))
        expected = "'structure', 'circle' or x and y of each column"
        raise SettingError(setting="layout", value=layout, expected=expected)
    try:
        places = np.asarray(layout, dtype=np.float64)
    except (TypeError, ValueError):
        places = np.empty(0)
    if places.shape != (n_nodes, 2) or not np.isfinite(places).all():
        expected = f"'structure', 'circle' or {n_nodes} pairs of numbers"
        raise SettingError(setting="layout", value=type(layout), expected=expected)
    return places
