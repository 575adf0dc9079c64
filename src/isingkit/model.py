"""IsingModel: couplings, fields and names; what every estimator returns and every world starts
from.
"""

import csv
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from isingkit.archives import arrays_in
from isingkit.atomic import replacing
from isingkit.checksums import checksum_of_arrays
from isingkit.covariates import CovariateEffects, coding_from
from isingkit.edge_table import CSV_COLUMNS, edge_array
from isingkit.exceptions import (
    ColumnNamesError,
    EmptyTableError,
    FileFormatError,
    ModelError,
    SettingError,
)
from isingkit.packing import PackedSpins
from isingkit.spins import require_names_without_nul

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

FORMAT = "isingkit model 2"
_FIRST_FORMAT = "isingkit model 1"  # without a checksum
_NOT_IN_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
_LARGEST = 1e100  # of couplings and fields: sums of their squares, and digits, can be taken
_DIGITS = 9  # of couplings that edges are ordered by: rounding does not reach them


@dataclass(frozen=True, slots=True, eq=False)
class IsingModel:
    """P(s) ~ exp(sum_{i<j} J_ij s_i s_j + sum_i H_i s_i), s_i = -1 or +1. [eq:BotzmanDistr-def]

    Parameters
    ----------
    couplings
        J, dense or scipy.sparse: symmetric, finite, zero diagonal. Kept as CSR.
    fields
        H; zero by default.
    names
        One for each spin; x0, x1, ... by default.
    effects
        By how much covariates of a sample shift fields; `fields` are those at their means. By
        default there are none.

    Examples
    --------
    >>> from isingkit import IsingModel
    >>> IsingModel([[0, 0.5], [0.5, 0]], names=["Ann", "Bob"]).edges()["coupling"]
    array([0.5])
    """

    couplings: Any  # (n_spins, n_spins) scipy.sparse.csr_array, float64, explicit zeros removed
    fields: NDArray[np.float64] = None  # type: ignore[assignment]  # (n_spins,)
    names: tuple[str, ...] = None  # type: ignore[assignment]
    effects: CovariateEffects | None = None

    def __post_init__(self) -> None:
        names = self.names
        if names is None:  # a pandas table of couplings knows them
            names = getattr(self.couplings, "columns", None)
        couplings = _checked_couplings(self.couplings)
        n_spins = couplings.shape[0]
        object.__setattr__(self, "couplings", couplings)
        object.__setattr__(self, "fields", _checked_fields(self.fields, n_spins))
        object.__setattr__(self, "names", _checked_names(names, n_spins))
        _check_effects(self.effects, n_spins)

    @property
    def n_spins(self) -> int:
        return len(self.names)

    @property
    def n_edges(self) -> int:
        return int(self.couplings.nnz) // 2

    def __repr__(self) -> str:
        covariates = "" if self.effects is None else f", {len(self.effects.names)} covariates"
        return f"IsingModel({self.n_spins} spins, {self.n_edges} edges{covariates})"

    def edges(self) -> NDArray[Any]:
        """A table of edges, strongest first: the columns source, target, coupling of a structured
        array. Strengths that agree to 9 decimals count as equal, and are in the order of spins.
        """
        upper = scipy.sparse.triu(self.couplings, k=1).tocoo()
        # the last digits differ from processor to processor, and must not decide on the order
        strengths = np.round(np.abs(upper.data), _DIGITS)
        order = np.lexsort((upper.col, upper.row, -strengths))
        names = np.array(self.names, dtype=np.str_)
        table: NDArray[Any] = edge_array(len(order), names, ("source", "target", "coupling"))
        table["source"] = names[upper.row[order]]
        table["target"] = names[upper.col[order]]
        table["coupling"] = upper.data[order]
        return table

    def to_networkx(self) -> "networkx.Graph":
        """A networkx graph: nodes are names with a `field`, edges have a `coupling`, all plain
        Python numbers.
        """
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(
            (name, {"field": float(field)})
            for name, field in zip(self.names, self.fields, strict=True)
        )
        graph.add_edges_from(
            (str(a), str(b), {"coupling": float(coupling)}) for a, b, coupling in self.edges()
        )
        return graph

    def to_graphml(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as GraphML, for Gephi, Cytoscape, igraph, yEd."""
        import networkx

        self._require_names_for_xml()
        with replacing(path) as temporary:
            networkx.write_graphml(self.to_networkx(), temporary)

    def to_gexf(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as GEXF, for Gephi. Edges weigh |J|, for weights below zero are not
        allowed there.
        """
        import networkx

        self._require_names_for_xml()
        graph = self.to_networkx()
        for _, _, edge in graph.edges(data=True):
            edge["weight"] = abs(edge["coupling"])
        with replacing(path) as temporary:
            networkx.write_gexf(graph, temporary)

    def _require_names_for_xml(self) -> None:
        wrong = [name for name in self.names if _NOT_IN_XML.search(name)]
        if wrong:
            expected = "without control characters and others that XML cannot hold"
            raise SettingError(setting="names", value=wrong[0], expected=expected)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the graph as JSON: nodes with fields, edges with couplings, as networkx's
        `node_link_graph` and D3 read it.
        """
        import networkx

        with replacing(path) as temporary:
            data = networkx.node_link_data(self.to_networkx(), edges="edges")
            temporary.write_text(
                json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
            )

    def to_adjacency(self, path: str | os.PathLike[str]) -> None:
        """Write the matrix of couplings: .csv with names in the first row and column, or .npz for
        `scipy.sparse.load_npz`.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in (".csv", ".npz"):
            raise SettingError(
                setting="path", value=str(path), expected="a name that ends in .csv or .npz"
            )
        with replacing(path) as temporary:
            if suffix == ".npz":
                with open(temporary, "wb") as packed:
                    scipy.sparse.save_npz(packed, self.couplings)
                return
            with open(temporary, "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(["", *self.names])
                for i, name in enumerate(self.names):
                    writer.writerow([name, *map(repr, self.couplings[[i]].toarray()[0].tolist())])

    def plot(self, ax: "Axes | None" = None, *, labels: bool | None = None) -> "Axes":
        """Draw the network; returns the Axes.

        Blue edges join spins that tend to agree, dashed orange ones those that tend to disagree;
        wider is stronger. Larger spins have more coupling in all.

        Parameters
        ----------
        ax
            Axes to draw into; by default new ones.
        labels
            Whether to write names; by default where there are at most 60.
        """
        from isingkit.drawing import draw_network, new_axes

        axes = new_axes((9, 6)) if ax is None else ax
        draw_network(axes, self.couplings, self.names, labels=labels)
        return axes

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table of edges as CSV; columns this model knows nothing about stay empty."""
        with (
            replacing(path) as temporary,
            open(temporary, "w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(CSV_COLUMNS)
            unknown = [""] * (len(CSV_COLUMNS) - 3)
            for source, target, coupling in self.edges():
                writer.writerow([str(source), str(target), repr(float(coupling)), *unknown])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as .npz, whole or not at all."""
        arrays = {
            "format": np.str_(FORMAT),
            "data": self.couplings.data,
            "indices": self.couplings.indices,
            "indptr": self.couplings.indptr,
            "fields": self.fields,
            "names": np.array(self.names, dtype=np.str_),
            **_effect_arrays(self.effects),
        }
        checksum = np.str_(checksum_of_arrays(arrays))
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays, checksum=checksum)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "IsingModel":
        """Read a model that `save` has written, this version or an earlier one, with its checksum
        verified. Never unpickles.
        """
        kind = "an isingkit model"
        try:
            with open(path, "rb") as file:
                arrays = arrays_in(file)
            problem = _problem_of(arrays)
            if problem is not None:
                raise FileFormatError(path=Path(path), kind=kind, problem=problem)
            return _from_arrays(arrays)
        except (FileFormatError, FileNotFoundError, PermissionError, IsADirectoryError):
            raise
        # damage shows in many ways: zipfile, zlib, tokenize, numpy and scipy each have their own
        except Exception as error:
            problem = "its contents cannot be read as one"
            raise FileFormatError(path=Path(path), kind=kind, problem=problem) from error


def _problem_of(arrays: dict[str, NDArray[Any]]) -> str | None:
    """Why these are not the arrays that `save` has written, where they are not."""
    found = str(arrays.get("format", ""))
    if found == _FIRST_FORMAT:
        return None
    if found != FORMAT:
        is_newer = re.fullmatch(r"isingkit model \d+", found) is not None
        return "a newer isingkit has written it" if is_newer else f"it is not marked '{FORMAT}'"
    checksum = str(arrays.pop("checksum", ""))
    return None if checksum == checksum_of_arrays(arrays) else "its checksum differs"


def _from_arrays(arrays: dict[str, NDArray[Any]]) -> IsingModel:
    """The model whose arrays `save` has written."""
    n_spins = len(arrays["names"])
    csr = (arrays["data"], arrays["indices"], arrays["indptr"])
    couplings = scipy.sparse.csr_array(csr, shape=(n_spins, n_spins))
    couplings.check_format(full_check=True)  # an index out of range would crash
    names = tuple(arrays["names"].tolist())
    return IsingModel(couplings, arrays["fields"], names, _effects_from(arrays))


def _effect_arrays(effects: CovariateEffects | None) -> dict[str, Any]:
    """What a file holds of effects: numbers, and how covariates become numbers, as JSON."""
    if effects is None:
        return {}
    coding = json.dumps(effects.coding.as_plain())
    return {"effects": effects.values, "covariates": np.str_(coding)}


def _effects_from(arrays: dict[str, NDArray[Any]]) -> CovariateEffects | None:
    """What `_effect_arrays` has written; models without covariates, and old files, have none."""
    if "effects" not in arrays:
        return None
    return CovariateEffects(arrays["effects"], coding_from(json.loads(str(arrays["covariates"]))))


def log_pseudolikelihood(
    model: IsingModel,
    packed: PackedSpins,
    weights: NDArray[np.float64] | None,
    shifts: NDArray[np.float64] | None = None,
) -> float:
    """Mean over samples of the sum over spins of log P(s_i | the others); missing values are left
    out.

    shifts: (n_samples, n_spins), what causes outside the network add to fields
    """
    if packed.n_samples == 0:
        raise EmptyTableError(n_samples=0, n_spins=packed.n_spins)
    total = 0.0
    total_weight = 0.0
    for start in range(0, packed.n_samples, 4096):
        spins = np.asarray(packed[start : start + 4096], dtype=np.float64)
        local = spins @ model.couplings + model.fields
        if shifts is not None:
            local += shifts[start : start + 4096]
        each = np.where(spins == 0, 0.0, -np.logaddexp(0.0, -2 * spins * local)).sum(axis=1)
        weight = np.ones(len(each)) if weights is None else weights[start : start + 4096]
        total += float(weight @ each)
        total_weight += float(weight.sum())
    return total / total_weight if total_weight else float("nan")


def _checked_fields(fields: Any, n_spins: int) -> NDArray[np.float64]:
    checked = np.zeros(n_spins) if fields is None else np.array(fields, dtype=np.float64)
    if checked.shape != (n_spins,) or not (np.abs(checked) <= _LARGEST).all():
        came = f"fields of shape {checked.shape} came"
        raise ModelError(problem=f"{came} where {n_spins} finite numbers were expected")
    return checked


def _check_effects(effects: CovariateEffects | None, n_spins: int) -> None:
    if effects is None:
        return
    shape = (n_spins, len(effects.names))
    if effects.values.shape != shape or not np.isfinite(effects.values).all():
        came = f"effects of shape {effects.values.shape} came"
        raise ModelError(problem=f"{came} where {shape} finite numbers were expected")


def _checked_names(names: Any, n_spins: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"x{i}" for i in range(n_spins))
    checked = tuple(str(name) for name in names)
    if len(set(checked)) != n_spins or len(checked) != n_spins:
        raise ColumnNamesError(names=checked, n_spins=n_spins)
    require_names_without_nul(checked)
    return checked


def _checked_couplings(couplings: Any) -> scipy.sparse.csr_array:
    if not scipy.sparse.issparse(couplings):
        couplings = np.asarray(couplings, dtype=np.float64)
    if couplings.ndim != 2 or couplings.shape[0] != couplings.shape[1]:
        raise ModelError(problem=f"its shape is {couplings.shape}")
    matrix = scipy.sparse.csr_array(couplings, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not np.isfinite(matrix.data).all():
        raise ModelError(problem="it holds NaN or infinity")
    if abs(matrix.data).max(initial=0.0) > _LARGEST:
        raise ModelError(problem=f"it holds a number beyond {_LARGEST:g}")
    on_diagonal = np.flatnonzero(matrix.diagonal())
    if len(on_diagonal):
        i = on_diagonal[0]
        raise ModelError(problem=f"entry ({i}, {i}) is {matrix[i, i]:g}")
    return _symmetric(matrix)


def _symmetric(matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """A matrix that is symmetric but for rounding, made symmetric."""
    asymmetry = abs(matrix - matrix.T).tocoo()
    asymmetry.eliminate_zeros()
    if asymmetry.nnz == 0:
        return matrix
    worst = int(asymmetry.data.argmax())
    if asymmetry.data[worst] > 1e-12 * np.abs(matrix.data).max():  # more than rounding
        i = int(asymmetry.row[worst])
        j = int(asymmetry.col[worst])
        one_way = f"entry ({i}, {j}) is {matrix[i, j]:.9g}"
        raise ModelError(problem=f"{one_way} and entry ({j}, {i}) is {matrix[j, i]:.9g}")
    return scipy.sparse.csr_array((matrix + matrix.T) / 2)
