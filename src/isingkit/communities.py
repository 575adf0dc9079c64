"""Communities: columns of a network that hold together, and apart from others."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isingkit.exceptions import require_instance
from isingkit.model import IsingModel
from isingkit.modularity import best_partition, by_size
from isingkit.notebook import Summary
from isingkit.result_table import ResultTable, as_table
from isingkit.worlds.graphs import Seed, generator


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Communities(Summary):
    """The community of each column, and how far all of them are from chance. Prints as lists."""

    names: tuple[str, ...]
    # (n_columns,): 1 is the largest community; 0 where a column is in none
    numbers: NDArray[np.intp]
    modularity: float  # 0 is what chance would give, and 1 is never reached

    @property
    def n_communities(self) -> int:
        return int(self.numbers.max(initial=0))

    def __str__(self) -> str:
        lines = [f"{self.n_communities} communities, modularity {self.modularity:.2f}"]
        for number in [*range(1, self.n_communities + 1), 0]:
            members = [self.names[k] for k in np.flatnonzero(self.numbers == number)]
            label = f"community {number}" if number else "in none"
            if members:
                lines.append(f"{label}: {', '.join(members)}")
        return "\n".join(lines)

    def table(self) -> ResultTable:
        """Names and communities, in the order of the model."""
        return as_table({"name": np.array(self.names, dtype=np.str_), "community": self.numbers})


def communities(model: IsingModel, *, random_state: Seed = 0) -> Communities:
    r"""Communities of columns: couplings above 0 are within them, and those below 0 between.

    They maximise modularity for couplings of both signs (Gomez, Jensen and Arenas 2009). With
    k^\pm_i the sum of a column's couplings of one sign and 2 w^\pm the sum of k^\pm, it is the sum
    of [J_ij - k^+_i k^+_j / 2 w^+ + k^-_i k^-_j / 2 w^-] / (2 w^+ + 2 w^-) over pairs in one
    community. Couplings of each sign are compared with chance of their own: one below 0 drives
    its ends apart, and does not cancel one above 0.

    The maximum is looked for by Louvain's steps from several random orders of columns. A column
    that is best by itself is in no community, and has the number 0.

    Parameters
    ----------
    model
        Such as `model_` of a fitted estimator.
    random_state
        Seed or numpy Generator of the orders.

    Examples
    --------
    >>> import isingkit as ik
    >>> J = [[0, 0.5, 0, -0.3], [0.5, 0, 0, 0], [0, 0, 0, 0.4], [-0.3, 0, 0.4, 0]]
    >>> ik.communities(ik.IsingModel(J, names=["a", "b", "c", "d"])).table()
    name  community
    a             1
    b             1
    c             2
    d             2
    """
    require_instance(
        "model", model, IsingModel, "an IsingModel, such as model_ of a fitted estimator"
    )
    labels, modularity = best_partition(model.couplings, generator(random_state))
    return Communities(model.names, by_size(labels), modularity)
