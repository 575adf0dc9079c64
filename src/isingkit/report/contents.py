"""Contents: every number and word of a report, in a form that JSON can hold."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np

from isingkit.drawing import positions
from isingkit.exceptions import FileFormatError
from isingkit.fit_check import FitCheck
from isingkit.fit_folder import Fit, edge_rows
from isingkit.model import IsingModel

MOST_SPINS, MOST_EDGES = 1000, 5000  # more than this nobody can look at; edges.csv has them all
_MOST_FOR_PATHS = 200  # spins up to which shortest paths between all of them are quick
_BLOCK = re.compile(r'<script type="application/json" id="contents">(.*?)</script>', re.S)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a report shows: at most MOST_SPINS spins, those of the strongest edges first, and
    MOST_EDGES edges, the strongest.
    """

    title: str
    facts: dict[
        str, Any
    ]  # of fit.json, codings instead of the mapping; of a model by itself only n_spins and n_edges
    spins: list[
        dict[str, Any]
    ]  # name, field, degree, strength, influence, betweenness, group, x, y
    edges: list[
        dict[str, Any]
    ]  # source and target by place in `spins`, coupling, std_error, z, p_value, q_value, low, high
    diagnostics: list[dict[str, Any]]  # check, words, serious
    check: dict[str, Any] | None  # a FitCheck

    def fit_check(self) -> FitCheck | None:
        """The comparison of data and model, where there is one."""
        if self.check is None:
            return None
        arrays = {
            name: _numbers(value)
            for name, value in self.check.items()
            if name.startswith(("data_", "model_"))
        }
        names, pairs = (
            tuple(self.check["names"]),
            np.array(self.check["pairs"], dtype=np.int64).reshape(-1, 2),
        )
        return FitCheck(names=names, pairs=pairs, sums=np.array(self.check["sums"]), n_drawn=self.check["n_drawn"],
                        problem=self.check["problem"], **arrays)  # fmt: skip


def contents_of(fit: Fit, check: FitCheck | None, title: str) -> Contents:
    """The contents of the report of a fit."""
    facts = asdict(fit.facts)
    facts["codings"] = _codings(facts.pop("mapping"))
    check_shown = (
        check
        if check is None or check.problem is None
        else replace(check, names=(), data_means=np.empty(0), model_means=np.empty(0))
    )
    diagnostics = [dict(one) for one in fit.diagnostics]
    return _contents(
        fit.model,
        fit.edges,
        title,
        facts,
        diagnostics,
        None if check_shown is None else _plain(check_shown),
    )


def contents_of_model(model: IsingModel, title: str) -> Contents:
    """The contents of the report of a model by itself."""
    return _contents(
        model,
        edge_rows(model),
        title,
        {"n_spins": model.n_spins, "n_edges": model.n_edges},
        [],
        None,
    )


def _contents(
    model: IsingModel, rows: Sequence[dict[str, Any]], title: str, facts: dict[str, Any], diagnostics: list[dict[str, Any]],
    check: dict[str, Any] | None,
) -> Contents:  # fmt: skip
    strengths, influence = abs(model.couplings).sum(axis=0), model.couplings.sum(axis=0)
    degrees = np.diff(model.couplings.indptr)
    names = model.names
    shown = _shown(model, rows, strengths)
    place = {names[i]: k for k, i in enumerate(shown)}
    edges = [
        {**edge, "source": place[edge["source"]], "target": place[edge["target"]]}
        for edge in rows
        if edge["source"] in place and edge["target"] in place
    ][:MOST_EDGES]
    places = positions(model.couplings[shown][:, shown])
    between = _betweenness(model) if len(names) <= _MOST_FOR_PATHS else None
    spins = [
        {
            "name": names[i], "field": float(model.fields[i]), "degree": int(degrees[i]), "strength": float(strengths[i]),
            "influence": float(influence[i]), "betweenness": None if between is None else between[names[i]], "group": None,
            "x": float(x), "y": float(y),
        }
        for i, (x, y) in zip(shown, places, strict=True)
    ]  # fmt: skip
    return Contents(title, facts, spins, edges, diagnostics, check)


def _shown(model: IsingModel, rows: Sequence[dict[str, Any]], strengths: Any) -> Any:
    """Spins to show: all, or the ends of the strongest edges and then those with the most
    coupling.
    """
    if model.n_spins <= MOST_SPINS:
        return np.arange(model.n_spins)
    place = {name: i for i, name in enumerate(model.names)}
    ends = dict.fromkeys(
        place[edge[end]] for edge in rows[:MOST_SPINS] for end in ("source", "target")
    )
    ranked = dict.fromkeys([*ends, *np.argsort(-strengths, kind="stable")[:MOST_SPINS].tolist()])
    return np.sort(np.array(list(ranked)[:MOST_SPINS]))


def with_groups(contents: Contents, groups: Mapping[str, str]) -> Contents:
    """The same, with each spin in its group."""
    return replace(
        contents, spins=[{**spin, "group": groups.get(spin["name"])} for spin in contents.spins]
    )


def contents_in(page: Path) -> Contents:
    """The contents that a report carries inside."""
    kind = "a report"
    try:
        found = _BLOCK.search(page.read_text(encoding="utf-8"))
        if found is None:
            raise FileFormatError(path=page, kind=kind, problem="it carries no contents")
        values = json.loads(found.group(1))
        return Contents(**{one.name: values[one.name] for one in fields(Contents)})
    except (UnicodeDecodeError, ValueError, KeyError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            path=page, kind=kind, problem="its contents cannot be read"
        ) from error


def _codings(mapping: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Values that became -1 and +1, how many columns have them, and the first of those."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, (low, high) in mapping.items():
        found.setdefault((str(low), str(high)), []).append(name)
    return [
        {"low": low, "high": high, "n_columns": len(names), "columns": names[:8]}
        for (low, high), names in found.items()
    ]


def _betweenness(model: IsingModel) -> dict[str, float]:
    """Share of the shortest paths that pass a spin; an edge is as long as it is weak."""
    graph = model.to_networkx()
    for _, _, edge in graph.edges(data=True):
        edge["length"] = 1 / abs(edge["coupling"])
    return {
        name: float(value)
        for name, value in networkx.betweenness_centrality(graph, weight="length").items()
    }


def _plain(check: FitCheck) -> dict[str, Any]:
    """Numbers to five digits, which no eye can tell from all of them, and None where there is
    none.
    """

    def short(value: float) -> float | None:
        return None if not math.isfinite(value) else float(f"{value:.5g}")

    found: dict[str, Any] = {}
    for one in fields(FitCheck):
        value = getattr(check, one.name)
        is_real = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        found[one.name] = (
            [short(v) for v in value]
            if is_real
            else np.asarray(value).tolist()
            if isinstance(value, tuple | np.ndarray)
            else value
        )
    return found


def _numbers(values: Sequence[float | None]) -> Any:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
