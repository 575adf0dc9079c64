"""Figure 1: the generations around a spin, drawn from a real teacher.

[fig:tree-graph-NN]
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from isingkit.experiments.runner import Row, Table, chosen, column, seed_of
from isingkit.worlds.graphs import random_regular

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The generations around a spin of a random regular graph"
CLAIM = (
    "On a tree-like graph the spins around a spin fall into generations, by their distance from it."
)


@dataclass(frozen=True, slots=True)
class Config:
    """A random regular graph of 200 spins, three generations of it."""

    n_spins: int = 200
    degree: int = 3
    coupling: float = 0.4
    depth: int = 3
    seed: int = 1

    @staticmethod
    def quick() -> "Config":
        return Config()


def points(config: Config) -> list[Row]:
    return [{"n_spins": config.n_spins}]


def measure(config: Config, point: Row) -> Table:
    """Spins by generation with a place to draw them at, their parent and the sign to it."""
    model = random_regular(
        n_spins=point["n_spins"],
        degree=config.degree,
        coupling=config.coupling,
        random_state=seed_of(config.seed, "generations"),
    )
    order, parents = breadth_first_order(model.couplings, 0, directed=False)
    children: dict[int, list[int]] = {int(i): [] for i in order}
    for j in order[1:]:
        children[int(parents[j])].append(int(j))
    generation = {0: 0}
    sector = {0: (0.0, 2 * np.pi)}  # of the circle, for a spin and all that descend from it
    rows = [{"spin": 0, "parent": -1, "generation": 0, "x": 0.0, "y": 0.0, "sign": 0}]
    for i in children:
        start, stop = sector[i]
        for number, j in enumerate(children[i]):
            width = (stop - start) / len(children[i])
            sector[j] = (start + number * width, start + (number + 1) * width)
            generation[j] = generation[i] + 1
            angle = start + (number + 0.5) * width
            if generation[j] <= config.depth:
                sign = int(np.sign(model.couplings[i, j]))
                rows.append(_spin(j, i, generation[j], angle, sign))
    return rows


def _spin(spin: int, parent: int, generation: int, angle: float, sign: int) -> Row:
    return {
        "spin": spin,
        "parent": parent,
        "generation": generation,
        "x": float(generation * np.cos(angle)),
        "y": float(generation * np.sin(angle)),
        "sign": sign,
    }


def predict(config: Config, point: Row) -> Any:
    """Spins in each generation of a tree."""
    del point
    degree = config.degree
    return [degree * (degree - 1) ** g for g in range(config.depth)]


def tabulate(config: Config, records: list[Row]) -> Table:
    """The spins, and the size of their generation on a tree."""
    sizes = [1, *predict(config, records[0]["point"])]
    return [row | {"size_on_a_tree": sizes[row["generation"]]} for row in records[0]["result"]]


def agreement(table: Table) -> list[str]:
    lines = []
    for generation in range(1, 1 + max(column(table, "generation"))):
        rows = chosen(table, generation=generation)
        size = rows[0]["size_on_a_tree"]
        lines.append(f"generation {generation}: {len(rows)} spins, {size} on a tree")
    return lines


def plot(table: Table) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 5.5), layout="constrained")
    axes = figure.subplots()
    place = {row["spin"]: (row["x"], row["y"]) for row in table}
    for row in table:
        if row["parent"] >= 0:
            x, y = zip(place[row["parent"]], place[row["spin"]], strict=True)
            axes.plot(x, y, "-" if row["sign"] > 0 else ":", color="gray", zorder=0)
    for generation in range(1 + max(column(table, "generation"))):
        rows = chosen(table, generation=generation)
        label = "spin 0" if generation == 0 else f"generation {generation}"
        axes.scatter(column(rows, "x"), column(rows, "y"), s=120, label=label)
    axes.set_title("The generations around a spin (dotted: negative couplings)")
    axes.set_axis_off()
    axes.legend(frameon=False, loc="lower left")
    return figure
