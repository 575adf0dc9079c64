"""Contents: every number and word of a report, in a form that JSON can hold."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from isingkit.centrality import betweenness
from isingkit.estimators.hidden_table import loading_rows
from isingkit.exceptions import FileFormatError
from isingkit.fit_check import FitCheck
from isingkit.fit_folder import Fit, covariates_of, edge_rows, rows_of_effects
from isingkit.landscape import Landscape
from isingkit.model import IsingModel
from isingkit.network_layout import positions
from isingkit.network_look import community_names, community_numbers
from isingkit.report.minima import minima_shown, quick_landscape

MOST_SPINS = 1000  # more than this nobody can look at; edges.csv has them all
MOST_EDGES = 5000
MOST_EFFECTS = 1000  # of covariates
_DIGITS = 9  # of strengths that spins are ranked by: rounding does not reach them
_MOST_FOR_PATHS = 200  # spins up to which shortest paths between all of them are quick
_SEAL = re.compile(rb"<!-- sha256 ([0-9a-f]{64}) -->\s*\Z")
_BLOCK = re.compile(r'<script type="application/json" id="contents">(.*?)</script>', re.S)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a report shows: at most MOST_SPINS spins, those of the strongest edges first, and
    MOST_EDGES edges, the strongest.
    """

    title: str
    # of fit.json, codings instead of the mapping, and n_groups of rows; of a model by itself only
    # n_spins and n_edges
    facts: dict[str, Any]
    # name, field, degree, strength, influence, betweenness, group, community, x, y
    spins: list[dict[str, Any]]
    # by the names of `edge_table`; source and target are places in `spins`
    edges: list[dict[str, Any]]
    diagnostics: list[dict[str, Any]]  # check, words, advice, serious, levels_hold
    check: dict[str, Any] | None  # a FitCheck
    # by the names of `covariate_table`, surest first: MOST_EFFECTS of them
    effects: list[dict[str, Any]] = field(default_factory=list)
    # by LOADING_COLUMNS: who follows hidden causes, of each the MOST_SPINS strongest
    loadings: list[dict[str, Any]] = field(default_factory=list)
    # spin, alike (text): further columns that a spin stands for, of spins that are shown
    alike: list[dict[str, str]] = field(default_factory=list)
    # `minima_shown`: the states that the network rests in, where there are several
    landscape: dict[str, Any] | None = None

    def fit_check(self) -> FitCheck | None:
        """The comparison of data and model, where there is one."""
        if self.check is None:
            return None
        arrays = {
            name: _numbers(value)
            for name, value in self.check.items()
            if name.startswith(("data_", "model_"))
        }
        return FitCheck(
            names=tuple(self.check["names"]),
            pairs=np.array(self.check["pairs"], dtype=np.int64).reshape(-1, 2),
            sums=np.array(self.check["sums"]),
            n_drawn=self.check["n_drawn"],
            problem=self.check["problem"],
            **arrays,
        )


def contents_of(
    fit: Fit, check: FitCheck | None, title: str, landscape: Landscape | None = None
) -> Contents:
    """The contents of the report of a fit."""
    facts = asdict(fit.facts)
    facts["codings"] = _codings(facts.pop("mapping"))
    facts["n_groups"] = fit.n_groups
    facts["n_effects"] = len(fit.covariate_effects)
    if check is not None and check.problem is not None:
        check = replace(check, names=(), data_means=np.empty(0), model_means=np.empty(0))
    spins, edges = _network(fit.model, fit.edges)
    return Contents(
        title=title,
        facts=facts,
        spins=spins,
        edges=edges,
        diagnostics=[dict(one) for one in fit.diagnostics],
        check=None if check is None else _plain(check),
        effects=[dict(row) for row in fit.covariate_effects[:MOST_EFFECTS]],
        loadings=_strongest_loadings(fit),
        alike=_members(fit.model, spins),
        landscape=minima_shown(landscape),
    )


def _members(model: IsingModel, spins: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Further columns of spins that are shown."""
    members = {} if model.alike is None else model.alike.members()
    shown = (spin["name"] for spin in spins)
    return [{"variable": name, "alike": members[name]} for name in shown if name in members]


def _strongest_loadings(fit: Fit) -> list[dict[str, Any]]:
    n_spins = fit.model.n_spins
    rows = loading_rows(fit.model.names, fit.hidden)
    return [row for place, row in enumerate(rows) if place % n_spins < MOST_SPINS]


def contents_of_model(model: IsingModel, title: str) -> Contents:
    """The contents of the report of a model by itself."""
    facts: dict[str, Any] = {"n_spins": model.n_spins, "n_edges": model.n_edges}
    effects = rows_of_effects(model)
    if effects:
        facts |= {"n_effects": len(effects), "covariates": covariates_of(model)}
    spins, edges = _network(model, edge_rows(model))
    shown = effects[:MOST_EFFECTS]
    return Contents(
        title=title,
        facts=facts,
        spins=spins,
        edges=edges,
        diagnostics=[],
        check=None,
        effects=shown,
        alike=_members(model, spins),
        landscape=minima_shown(quick_landscape(model)),
    )


def _network(
    model: IsingModel, rows: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Spins and edges to show, of a model with these rows of edges."""
    strengths = abs(model.couplings).sum(axis=0)
    shown = _shown(model, rows, strengths)
    place = {model.names[i]: k for k, i in enumerate(shown)}
    edges = [
        {**edge, "source": place[edge["source"]], "target": place[edge["target"]]}
        for edge in rows
        if edge["source"] in place and edge["target"] in place
    ][:MOST_EDGES]
    return _spins(model, shown, strengths), edges


def _spins(model: IsingModel, shown: Any, strengths: Any) -> list[dict[str, Any]]:
    """What is shown of each spin."""
    influence = model.couplings.sum(axis=0)
    degrees = np.diff(model.couplings.indptr)
    on_paths = _betweenness(model) if model.n_spins <= _MOST_FOR_PATHS else {}
    couplings = model.couplings[shown][:, shown]
    numbers = community_numbers(couplings)
    places = positions(couplings, numbers)
    communities = community_names(numbers)
    return [
        {
            "name": model.names[i],
            "field": float(model.fields[i]),
            "degree": int(degrees[i]),
            "strength": float(strengths[i]),
            "influence": float(influence[i]),
            "betweenness": on_paths.get(model.names[i]),
            "group": None,
            "community": community,
            "x": float(x),
            "y": float(y),
        }
        for i, community, (x, y) in zip(shown, communities, places, strict=True)
    ]


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
    strongest = np.argsort(-np.round(strengths, _DIGITS), kind="stable")[:MOST_SPINS]
    ranked = dict.fromkeys([*ends, *strongest.tolist()])
    return np.sort(np.array(list(ranked)[:MOST_SPINS]))


def by_strength(spins: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Spins, those with the most coupling first; equal ones as they are."""
    return sorted(spins, key=lambda spin: -round(spin["strength"], _DIGITS))


def with_groups(contents: Contents, groups: Mapping[str, str]) -> Contents:
    """The same, with each spin in its group."""
    spins = [{**spin, "group": groups.get(spin["name"])} for spin in contents.spins]
    return replace(contents, spins=spins)


def colours_of(spins: Sequence[dict[str, Any]]) -> list[str | None]:
    """What the colour of each spin means: its group, or, where none has one, its community.

    Pages of earlier versions know no communities.
    """
    groups = [spin["group"] for spin in spins]
    if any(group is not None for group in groups):
        return groups
    return [spin.get("community") for spin in spins]


def sealed(page: str) -> str:
    """A page with its checksum at the end; what UTF-8 cannot hold, as in odd names of files, is
    replaced.
    """
    data = page.encode("utf-8", "replace")
    return f"{data.decode()}<!-- sha256 {hashlib.sha256(data).hexdigest()} -->\n"


def contents_in(page: Path) -> Contents:
    """The contents that a report carries inside; pages of earlier versions have no checksum."""
    kind = "a report"
    data = page.read_bytes()
    seal = _SEAL.search(data)
    if seal is not None:
        is_sound = hashlib.sha256(data[: seal.start()]).hexdigest().encode() == seal.group(1)
        if not is_sound:
            raise FileFormatError(path=page, kind="a sound report", problem="its checksum differs")
    try:
        found = _BLOCK.search(data.decode("utf-8"))
        if found is None:
            raise FileFormatError(path=page, kind=kind, problem="it carries no contents")
        values = json.loads(found.group(1))
        for name in ("effects", "loadings", "alike"):  # pages of earlier versions have none
            values.setdefault(name, [])
        for row in (one for name in ("effects", "loadings", "alike") for one in values[name]):
            if "spin" in row:  # as variables were called
                row["variable"] = row.pop("spin")
        values.setdefault("landscape", None)
        return Contents(**{one.name: values[one.name] for one in fields(Contents)})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, FileFormatError):
            raise
        problem = "its contents cannot be read"
        raise FileFormatError(path=page, kind=kind, problem=problem) from error


def require_same_fit(contents: Contents, facts: Mapping[str, Any], page: Path) -> None:
    """Refuse a page that is of another fit than these facts."""
    shared = set(facts) & set(contents.facts)
    if any(facts[name] != contents.facts[name] for name in shared):
        kind = "the report of the fit beside it"
        raise FileFormatError(path=page, kind=kind, problem="fit.json says otherwise")


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
    """Fraction of the shortest paths that pass a spin; an edge is as long as it is weak."""
    n_others = model.n_spins - 1
    shares = betweenness(model) / max(n_others * (n_others - 1), 1)
    return dict(zip(model.names, shares.tolist(), strict=True))


def _plain(check: FitCheck) -> dict[str, Any]:
    """A check as JSON can hold it."""
    return {one.name: _jsonable(getattr(check, one.name)) for one in fields(FitCheck)}


def _jsonable(value: Any) -> Any:
    """Numbers to five digits, which no eye can tell from all of them, and None where there is
    none.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return [float(f"{one:.5g}") if math.isfinite(one) else None for one in value]
    if isinstance(value, tuple | np.ndarray):
        return np.asarray(value).tolist()
    return value


def _numbers(values: Sequence[float | None]) -> Any:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
