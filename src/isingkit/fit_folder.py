"""FitFolder: what a fit leaves on disk: `model.npz`, `edges.csv`, `fit.json` and `report.html`;
where columns were merged `alike.csv`, where there are covariates `covariate_effects.csv`, where
there are hidden causes `hidden_loadings.csv` and `hidden_scores.csv`, and where it was asked for
`inclusion.csv`.
"""

import csv
import datetime
import errno
import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from isingkit import __version__
from isingkit.alike import ALIKE_COLUMNS, alike_table
from isingkit.atomic import exchange, locked, new_folder, replacing
from isingkit.checksums import checksum_of_facts, checksum_of_file
from isingkit.edge_table import CSV_ALIKE, CSV_COLUMNS, TESTED
from isingkit.estimators.covariate_table import COVARIATE_COLUMNS, covariate_table
from isingkit.estimators.hidden_causes import HiddenReport
from isingkit.estimators.hidden_table import (
    LOADING_COLUMNS,
    loading_rows,
    score_columns,
    score_rows,
)
from isingkit.exceptions import FileFormatError, FolderExistsError
from isingkit.model import IsingModel
from isingkit.packing import PackedSpins, fingerprint
from isingkit.result_table import Record, ResultTable

_WITHOUT_EFFECT = ("checkpoint", "n_jobs", "progress")  # on the answer
_DIGITS = 6  # of sums of weights: rounding is not to be seen
_FIRST_FACTS = {"n_spins", "n_samples", "n_edges", "method", "settings", "version", "fingerprint"}
_ALIKE = "alike.csv"
_EFFECTS = "covariate_effects.csv"
_LOADINGS = "hidden_loadings.csv"
_SCORES = "hidden_scores.csv"
_INCLUSION = "inclusion.csv"
_SOMETIMES = (_ALIKE, _EFFECTS, _LOADINGS, _SCORES, _INCLUSION)  # where there is something to write
FILES = ("model.npz", "edges.csv", *_SOMETIMES, "report.html", "fit.json")  # the last makes it one


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted model and all that should be known of it."""

    model: IsingModel
    # by the names of `edge_table`, strongest first; None where the method gives none
    edges: tuple[Record, ...]
    facts: "Facts"
    # check, words, advice, serious, levels_hold; of method auto
    diagnostics: tuple[Record, ...] = ()
    n_groups: int = 0  # of rows that belong together, where that was said
    # by the names of COVARIATE_COLUMNS, surest first; None where the method gives none
    covariate_effects: tuple[Record, ...] = ()
    hidden: HiddenReport | None = None  # causes that are no columns, where any were found
    inclusion: ResultTable | None = None  # `inclusion_` of AutoIsing, where it was asked for
    left_out: tuple[int, ...] = ()  # places of rows of the table that were left out

    @property
    def doubts(self) -> list[str]:
        """Checks by which more edges may be false than their level says."""
        return [one["check"] for one in self.diagnostics if not one["levels_hold"]]

    @property
    def has_alike_rows(self) -> bool:
        """Whether rows depend on each other in a way that nobody had declared."""
        return any(one["check"] == "rows alike" and one["serious"] for one in self.diagnostics)


@dataclass(frozen=True, slots=True)
class Facts:
    """What `fit.json` holds."""

    n_spins: int
    n_samples: float
    n_edges: int
    method: str
    settings: Record
    seed: int | None
    version: str
    date: str
    mapping: dict[str, list[Any]]
    warnings: list[str]
    fingerprint: str  # of the data
    covariates: list[str] = field(default_factory=list)  # columns of what else is known of rows
    # of hidden causes, one number for each: by how much it explains spins
    hidden_variance_shares: list[float] = field(default_factory=list)
    n_merged: int = 0  # columns that became part of another's spin


def fit_of(
    estimator: Any, packed: PackedSpins, method: str, seed: int | None, warnings: Sequence[str]
) -> Fit:
    """The fit of an estimator that has learned from these samples."""
    model = estimator.model_
    hidden = getattr(estimator, "hidden_", None)
    variance_shares = [] if hidden is None else hidden.variance_shares.tolist()
    today = datetime.date.today()
    facts = Facts(
        n_spins=model.n_spins,
        n_samples=round(float(estimator.n_samples_), _DIGITS),
        n_edges=model.n_edges,
        method=method,
        settings=_settings(estimator),
        seed=seed,
        version=__version__,
        date=today.isoformat(),
        mapping=_mapping(estimator),
        warnings=list(warnings),
        fingerprint=fingerprint(packed),
        covariates=covariates_of(model),
        hidden_variance_shares=variance_shares,
        n_merged=0 if model.alike is None else model.alike.n_merged,
    )
    diagnostics = tuple(
        {
            "check": one.check,
            "words": one.words,
            "advice": one.advice,
            "serious": bool(one.serious),
            "levels_hold": bool(one.levels_hold),
        }
        for one in getattr(estimator, "diagnostics_", ())
    )
    inclusion = getattr(estimator, "inclusion_", None)
    rows = edge_rows(model, getattr(estimator, "edges_", ()))
    if inclusion is not None:
        rows = _with_probabilities(rows, inclusion)
    effects = tuple(effect_rows(getattr(estimator, "covariate_effects_", ())))
    n_groups = getattr(estimator, "n_groups_", 0)
    return Fit(model, tuple(rows), facts, diagnostics, n_groups, effects, hidden, inclusion)


def _with_probabilities(rows: Sequence[Record], inclusion: ResultTable) -> list[Record]:
    """Rows of edges with the probability of each."""
    ends = zip(inclusion["source"], inclusion["target"], strict=True)
    known = dict(zip(ends, inclusion["probability"].tolist(), strict=True))
    return [row | {"probability": known.get((row["source"], row["target"]))} for row in rows]


def covariates_of(model: IsingModel) -> list[str]:
    """Names of the columns that are covariates."""
    effects = model.effects
    return [] if effects is None else [column.name for column in effects.coding.columns]


def effect_rows(table: Any) -> list[Record]:
    """Rows of `covariate_effects_` of an estimator, as plain values; None for NaN."""
    return [
        {"variable": str(row["variable"]), "covariate": str(row["covariate"])}
        | {name: _known(row[name]) for name in COVARIATE_COLUMNS[2:]}
        for row in table
    ]


def rows_of_effects(model: IsingModel) -> list[Record]:
    """The same of a model by itself, which knows no errors."""
    effects = model.effects
    if effects is None:
        return []
    unknown = np.full_like(effects.values, np.nan)
    return effect_rows(covariate_table(model.names, effects.names, effects.values, unknown))


def _known(value: Any) -> float | None:
    return None if math.isnan(value) else float(value)


def _mapping(estimator: Any) -> dict[str, list[Any]]:
    """For each column the values that became -1 and +1."""
    model = estimator.model_
    names = model.names if model.alike is None else model.alike.columns
    codings = estimator.mapping_ or [(-1, 1)] * len(names)  # samples that were drawn as spins
    return {
        name: [_plain(value) for value in pair] for name, pair in zip(names, codings, strict=True)
    }


def _settings(estimator: Any) -> Record:
    """Settings that the answer depends on."""
    return {
        name: _plain(value)
        for name, value in sorted(estimator.get_params().items())
        if name not in _WITHOUT_EFFECT
    }


def write_fit(fit: Fit, report: str, folder: Path, *, force: bool = False) -> None:
    """The folder, whole or not at all, with the page `report`. One that is there is left alone,
    unless `force` and a fit: then the files of that fit are replaced, and others are kept.
    """
    folder = folder.resolve()  # what a link leads to, not the link
    require_free(folder, force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(folder) as new:
        _write_files(fit, report, new)
        with locked(folder.parent):
            require_free(folder, force)  # another may have been quicker
            _take_place(new, folder)


def _write_files(fit: Fit, report: str, folder: Path) -> None:
    """All files, and in the last checksums of all, its own included; but for the report, which has
    one inside, for it may be written anew.
    """
    fit.model.save(folder / "model.npz")
    _write_edges(fit, folder / "edges.csv")
    if fit.model.alike is not None:
        _write_table(alike_rows(fit.model), ALIKE_COLUMNS, folder / _ALIKE)
    if fit.covariate_effects:
        _write_table(fit.covariate_effects, COVARIATE_COLUMNS, folder / _EFFECTS)
    if fit.hidden is not None:
        loadings = loading_rows(fit.model.names, fit.hidden)
        _write_table(loadings, LOADING_COLUMNS, folder / _LOADINGS)
        scores = score_rows(fit.hidden, fit.left_out)
        _write_table(scores, score_columns(fit.hidden), folder / _SCORES)
    if fit.inclusion is not None:
        names = fit.inclusion.dtype.names or ()
        columns = [fit.inclusion[name].tolist() for name in names]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        _write_table(rows, names, folder / _INCLUSION)
    with replacing(folder / "report.html") as path:
        path.write_text(report, encoding="utf-8")
    sealed = [name for name in FILES if (folder / name).exists() and name != "report.html"]
    files = {name: checksum_of_file(folder / name) for name in sealed}
    facts = asdict(fit.facts) | {"files": files}
    facts["checksum"] = checksum_of_facts(facts)
    with replacing(folder / "fit.json") as path:
        path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _write_edges(fit: Fit, path: Path) -> None:
    """Edges; where columns were merged, with those that the ends of an edge stand for."""
    if fit.model.alike is None:
        _write_table(fit.edges, CSV_COLUMNS, path)
        return
    members = fit.model.alike.members()
    rows = [
        edge | {name: members.get(edge[name.removesuffix("_alike")], "") for name in CSV_ALIKE}
        for edge in fit.edges
    ]
    _write_table(rows, CSV_COLUMNS + CSV_ALIKE, path)


def alike_rows(model: IsingModel) -> list[Record]:
    """Columns that became part of another's spin, by the names of ALIKE_COLUMNS."""
    return [
        {
            "column": str(row["column"]),
            "variable": str(row["variable"]),
            "correlation": float(row["correlation"]),
        }
        for row in alike_table(model.alike)
    ]


def _write_table(rows: Sequence[Record], columns: Sequence[str], path: Path) -> None:
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def _take_place(new: Path, folder: Path) -> None:
    """Put new files where old ones are. A folder that holds nothing else changes places with the
    new one, in one step: killed at any moment, one of both is there. Elsewhere files are replaced
    one by one.
    """
    if not folder.exists():
        new.replace(folder)
        return
    own = _own_files(folder)
    there = {path.name for path in folder.iterdir()}
    # an empty folder stays what it is: somebody may be in it
    if there and there <= own and exchange(new, folder):
        return
    for name in FILES:
        if (new / name).exists():
            _move(new / name, folder / name)
        elif name in own:
            (folder / name).unlink(missing_ok=True)


def _move(path: Path, final: Path) -> None:
    """To its final place, which may be on another disk than the folder around it."""
    try:
        path.replace(final)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with replacing(final) as temporary:
            shutil.copyfile(path, temporary)


def require_free(folder: Path, force: bool) -> None:
    """Refuse a folder that holds anything, but a fit that may be replaced, and one that could not
    be made.
    """
    if folder.exists() and any(folder.iterdir()):
        own = _own_files(folder)
        others = [name for name in FILES if (folder / name).exists() and name not in own]
        if others or not own or not force:
            raise FolderExistsError(folder=folder, is_fit=bool(own), others=others)
    above = next(place for place in folder.absolute().parents if place.exists())
    try:
        with new_folder(above / folder.name):  # what a kill leaves of it, the next clears away
            pass
    except OSError as error:  # as writing would fail, but before hours of work
        advice = f"no folder can be made there ({error.strerror}); name another with -o"
        raise OSError(error.errno, advice, str(folder)) from None


def require_whole(folder: Path) -> Record:
    """What `fit.json` says, where all files are as they were written; folders of earlier versions,
    and without that file, are believed.
    """
    path = folder / "fit.json"
    if not path.exists():
        return {}
    try:
        facts = dict(json.loads(path.read_text(encoding="utf-8")))
        if "checksum" in facts or "files" in facts:
            _require_sealed(folder, dict(facts))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise _changed(path) from None
    return facts


def _require_sealed(folder: Path, facts: Record) -> None:
    """Refuse files that are not those which the facts speak of."""
    if facts.pop("checksum") != checksum_of_facts(facts):
        raise _changed(folder / "fit.json")
    for name, checksum in facts["files"].items():
        path = folder / name
        if not path.is_file() or checksum_of_file(path) != checksum:
            raise _changed(path)


def _changed(path: Path) -> FileFormatError:
    return FileFormatError(path=path, kind="as its fit has left it", problem="its checksum differs")


def _own_files(folder: Path) -> set[str]:
    """Names of what `write_fit` has written there, none where it has not: others have files named
    fit.json, too.
    """
    try:
        facts = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    if not isinstance(facts, dict) or not set(facts) >= _FIRST_FACTS:
        return set()
    own = {"model.npz", "edges.csv", "report.html", "fit.json"}
    if facts.get("n_merged"):
        own.add(_ALIKE)
    if facts.get("covariates"):
        own.add(_EFFECTS)
    if facts.get("hidden_variance_shares"):
        own |= {_LOADINGS, _SCORES}
    settings = facts["settings"]
    if isinstance(settings, dict) and settings.get("inclusion"):
        own.add(_INCLUSION)
    return own


def edge_rows(model: IsingModel, tested: Any = ()) -> list[Record]:
    """Edges by the names of `edge_table`, strongest first; None where nothing is known.

    tested: like `edges_` of AutoIsing
    """
    results = {(row["source"], row["target"]): _result(row) for row in tested}
    unknown = dict.fromkeys(TESTED)
    rows = []
    for edge in model.edges():
        ends = {"source": str(edge["source"]), "target": str(edge["target"])}
        result = results.get((edge["source"], edge["target"]), unknown)
        rows.append(ends | {"coupling": float(edge["coupling"])} | result)
    return rows


def _result(row: Any) -> dict[str, float | None]:
    """What the test of an edge tells; None for NaN, and for columns that the method has not."""
    values = {name: row[name] if name in row.dtype.names else math.nan for name in TESTED}
    return {name: _known(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """What JSON can hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
