"""IsingModel: couplings, fields and names; what every estimator returns and every world starts
from.
"""

import csv
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse import csr_array

from isingkit.alike import AlikeColumns
from isingkit.archives import arrays_in
from isingkit.atomic import replacing
from isingkit.checksums import checksum_of_arrays
from isingkit.covariates import CovariateEffects, coding_from
from isingkit.edge_table import CSV_ALIKE, CSV_COLUMNS, edge_array
from isingkit.exceptions import (
    ColumnNamesError,
    EmptyTableError,
    FileFormatError,
    ModelError,
    SettingError,
)
from isingkit.formats import FilePath
from isingkit.packing import PackedSpins
from isingkit.result_table import ResultTable
from isingkit.spins import Names, require_names_without_nul

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

FORMAT = "isingkit model 2"
_FIRST_FORMAT = "isingkit model 1"  # without a checksum
_NOT_IN_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
_LARGEST = 1e100  # of couplings and fields: sums of their squares, and digits, can be taken
_MOST_DRAWN = 200  # spins whose picture a notebook shows
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
    alike
        Of a model of a table: which of its columns are one spin. By default all are spins of their
        own.

    Examples
    --------
    >>> from isingkit import IsingModel
    >>> IsingModel([[0, 0.5], [0.5, 0]], names=["Ann", "Bob"]).edges()["coupling"]
    array([0.5])
    """

    couplings: Any  # (n_spins, n_spins) scipy.sparse.csr_array, float64, explicit zeros removed
    fields: NDArray[np.float64] = None  # type: ignore[assignment]  # (n_spins,)
    names: Names = None  # type: ignore[assignment]
    effects: CovariateEffects | None = None
    alike: AlikeColumns | None = None

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
        if self.alike is not None and self.alike.names != self.names:
            raise ModelError(problem="names of its spins are not those of its merged columns")

    @property
    def n_spins(self) -> int:
        return len(self.names)

    @property
    def n_edges(self) -> int:
        return int(self.couplings.nnz) // 2

    def __repr__(self) -> str:
        n_known = 0 if self.effects is None else len(self.effects.names)
        covariates = f", {n_known} covariate{'s' * (n_known > 1)}" if n_known else ""
        merged = "" if self.alike is None else f", {self.alike.n_merged} columns merged"
        return f"IsingModel({self.n_spins} variables, {self.n_edges} edges{covariates}{merged})"

    def _repr_html_(self) -> str:
        """The picture, up to 200 spins, and the table of edges."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        from isingkit.notebook import picture_html

        words = f"{self.n_spins} variables, {self.n_edges} edges"
        picture = ""
        if self.n_edges and self.n_spins <= _MOST_DRAWN:
            figure = Figure(figsize=(7, 4.7))
            FigureCanvasAgg(figure)
            self.plot(figure.add_subplot())
            picture = picture_html(figure, f"Network of {words}")
        return f"<p>{words}</p>{picture}{self.edges().view(ResultTable)._repr_html_()}"

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
        Python numbers; where columns were merged, nodes have a text `alike` that names the others.
        """
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(
            (name, {"field": float(field)})
            for name, field in zip(self.names, self.fields, strict=True)
        )
        if self.alike is not None:
            members = self.alike.members()
            for name, node in graph.nodes(data=True):
                node["alike"] = members.get(name, "")
        graph.add_edges_from(
            (str(a), str(b), {"coupling": float(coupling)}) for a, b, coupling in self.edges()
        )
        return graph

    def to_graphml(self, path: FilePath) -> None:
        """Write the graph as GraphML, for Gephi, Cytoscape, igraph, yEd. Edges have a `coupling`,
        and weigh |J|.
        """
        import networkx

        graph = self._weighted_graph()
        with replacing(path) as temporary:
            networkx.write_graphml(graph, temporary)

    def to_gexf(self, path: FilePath) -> None:
        """Write the graph as GEXF, for Gephi. Edges have a `coupling`, and weigh |J|, for weights
        below zero are not allowed there.
        """
        import networkx

        graph = self._weighted_graph()
        with replacing(path) as temporary:
            networkx.write_gexf(graph, temporary)

    def _weighted_graph(self) -> "networkx.Graph":
        """For programs that draw: edges have a weight |J|, and names are such as XML can hold."""
        self._require_names_for_xml()
        graph = self.to_networkx()
        for _, _, edge in graph.edges(data=True):
            edge["weight"] = abs(edge["coupling"])
        return graph

    def _require_names_for_xml(self) -> None:
        wrong = [name for name in self.names if _NOT_IN_XML.search(name)]
        if wrong:
            expected = "without control characters and others that XML cannot hold"
            raise SettingError(setting="names", value=wrong[0], expected=expected)

    def to_json(self, path: FilePath) -> None:
        """Write the graph as JSON: nodes with fields, edges with couplings, as networkx's
        `node_link_graph` and D3 read it.
        """
        import networkx

        with replacing(path) as temporary:
            data = networkx.node_link_data(self.to_networkx(), edges="edges")
            temporary.write_text(
                json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
            )

    def to_adjacency(self, path: FilePath) -> None:
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
                    row = self.couplings[[i]].toarray()[0].tolist()
                    writer.writerow([name, *map(repr, row)])

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        groups: Any = None,
        layout: Any = "structure",
        size: Any = "strength",
        labels: Any = None,
        max_edges: int | None = None,
        rings: Any = None,
    ) -> "Axes":
        """Draw the network; returns the Axes.

        Blue edges join columns that tend to agree, dashed orange ones those that tend to disagree;
        wider is stronger. Where there are more edges than an eye can follow, weak ones are faint.

        Parameters
        ----------
        ax
            Axes to draw into; by default new ones.
        groups
            Colours of columns: a mapping from names to groups, or a group for each column. By
            default the communities that `isingkit.communities` finds; False for none.
        layout
            "structure" puts the ends of strong edges close to each other, and communities
            together; "circle" puts columns around a circle; or x and y of each column.
        size
            Area of dots: "strength" (sum of |J|), "degree", or a number for each column.
        labels
            Texts, one for each column, or whether to write names; by default where there are at
            most 120.
        max_edges
            Only so many edges are drawn, the strongest.
        rings
            Numbers from 0 to 1, one for each column: how much of the ring around it is dark. Such
            as `isingkit.centrality(model, X)["predictability"]`.
        """
        from isingkit.drawing import draw_network, new_axes
        from isingkit.network_look import chosen_look, with_marks

        marks = {"size": size, "labels": labels, "max_edges": max_edges, "rings": rings}
        look = chosen_look(self.couplings, self.names, groups, layout)
        look = with_marks(look, self.couplings, marks)
        axes = new_axes((9, 6)) if ax is None else ax
        draw_network(axes, self.couplings, self.names, look)
        return axes

    def to_csv(self, path: FilePath) -> None:
        """Write the table of edges as CSV; columns this model knows nothing about stay empty. Where
        columns of the table were merged, two more name the others that ends stand for.
        """
        members = None if self.alike is None else self.alike.members()
        with (
            replacing(path) as temporary,
            open(temporary, "w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(CSV_COLUMNS if members is None else CSV_COLUMNS + CSV_ALIKE)
            unknown = [""] * (len(CSV_COLUMNS) - 3)
            for source, target, coupling in self.edges():
                ends = [str(source), str(target)]
                alike = [] if members is None else [members.get(end, "") for end in ends]
                writer.writerow([*ends, repr(float(coupling)), *unknown, *alike])

    def save(self, path: FilePath) -> None:
        """Write the model as .npz, whole or not at all."""
        arrays = {
            "format": np.str_(FORMAT),
            "data": self.couplings.data,
            "indices": self.couplings.indices,
            "indptr": self.couplings.indptr,
            "fields": self.fields,
            "names": np.array(self.names, dtype=np.str_),
            **_effect_arrays(self.effects),
            **_alike_arrays(self.alike),
        }
        checksum = np.str_(checksum_of_arrays(arrays))
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.savez_compressed(file, **arrays, checksum=checksum)

    @staticmethod
    def load(path: FilePath) -> "IsingModel":
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
    couplings = csr_array(csr, shape=(n_spins, n_spins))
    couplings.check_format(full_check=True)  # an index out of range would crash
    names = tuple(arrays["names"].tolist())
    return IsingModel(couplings, arrays["fields"], names, _effects_from(arrays), _alike_in(arrays))


def _alike_arrays(alike: AlikeColumns | None) -> dict[str, Any]:
    """What a file holds of columns that were merged."""
    if alike is None:
        return {}
    return {
        "columns": np.array(alike.columns, dtype=np.str_),
        "column_spins": alike.spins,
        "column_correlations": alike.correlations,
    }


def _alike_in(arrays: dict[str, NDArray[Any]]) -> AlikeColumns | None:
    """What `_alike_arrays` has written; models without, and old files, have none."""
    if "columns" not in arrays:
        return None
    columns = tuple(arrays["columns"].tolist())
    return AlikeColumns(columns, arrays["column_spins"], arrays["column_correlations"])


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
    """Mean over samples of the sum over spins of log P(s_i | the others) [eq:PL-def]; missing
    values are left out.

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
        log_conditional = -np.logaddexp(0.0, -2 * spins * local)
        each = np.where(spins == 0, 0.0, log_conditional).sum(axis=1)
        weight = np.ones(len(each)) if weights is None else weights[start : start + 4096]
        total += float(weight @ each)
        total_weight += float(weight.sum())
    return total / total_weight if total_weight else float("nan")


def _checked_fields(fields: Any, n_spins: int) -> NDArray[np.float64]:
    checked = np.zeros(n_spins) if fields is None else _numbers(fields, "fields").copy()
    if checked.shape != (n_spins,) or not (np.abs(checked) <= _LARGEST).all():
        came = f"fields of shape {checked.shape} came"
        raise ModelError(problem=f"{came} where {n_spins} finite numbers were expected")
    return checked


def _numbers(values: Any, what: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(problem=f"{what} are no numbers: {values!r:.40}") from None


def _check_effects(effects: CovariateEffects | None, n_spins: int) -> None:
    if effects is None:
        return
    shape = (n_spins, len(effects.names))
    if effects.values.shape != shape or not np.isfinite(effects.values).all():
        came = f"effects of shape {effects.values.shape} came"
        raise ModelError(problem=f"{came} where {shape} finite numbers were expected")


def _checked_names(names: Any, n_spins: int) -> Names:
    if names is None:
        return tuple(f"x{i}" for i in range(n_spins))
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise SettingError(setting="names", value=names, expected=f"a list of {n_spins} texts")
    checked = tuple(str(name) for name in names)
    if len(set(checked)) != n_spins or len(checked) != n_spins:
        raise ColumnNamesError(names=checked, n_spins=n_spins)
    require_names_without_nul(checked)
    return checked


def _checked_couplings(couplings: Any) -> csr_array:
    if not scipy.sparse.issparse(couplings):
        couplings = _numbers(couplings, "couplings")
    if couplings.ndim != 2 or couplings.shape[0] != couplings.shape[1]:
        raise ModelError(problem=f"its shape is {couplings.shape}")
    matrix = csr_array(couplings, dtype=np.float64, copy=True)
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


def _symmetric(matrix: csr_array) -> csr_array:
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
        other_way = f"entry ({j}, {i}) is {matrix[j, i]:.9g}"
        raise ModelError(problem=f"{one_way} and {other_way}")
    return csr_array((matrix + matrix.T) / 2)
