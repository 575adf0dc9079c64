"""isingkit fit"""

import json
import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from isingkit.cli.cluster import cluster, scheduler_option
from isingkit.exceptions import MissingValuesError, SettingError
from isingkit.report.methods import WORDS

METHODS = tuple(WORDS)
OWN_OPTIONS = {
    "missing": "--missing", "binarize": "--binarize", "n_jobs": "--threads", "random_state": "--seed", "checkpoint": "--resume",
    "progress": "nothing",
}  # fmt: skip


def _methods(start: str) -> list[str]:
    return [name for name in METHODS if name.startswith(start.lower())]


@click.command("fit")
@click.argument("data", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Folder to write; by default named after DATA."
)
@click.option("--force", is_flag=True, help="Replace a fit that is there.")
@click.option("--resume", is_flag=True, help="Go on with a fit of many spins that was stopped.")
@click.option("--method", default="auto", show_default=True, shell_complete=lambda ctx, param, start: _methods(start),
              help="How: " + ", ".join(METHODS) + ".")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the method, e.g. ridge=0.5; repeatable.")
@click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Of method auto: false edges you accept.")
@click.option("--control", type=click.Choice(["fdr", "fwer"]), help="Of method auto: as a share of edges, or any at all.")
@click.option("--columns", help="Columns to use, separated by commas; by default all.")
@click.option("--drop", default="", help="Columns to leave out, separated by commas.")
@click.option("--id-column", help="Column that names the rows; left out.")
@click.option("--weights", help="Column that says how often a row was seen.")
@click.option("--binarize", type=float, help="Threshold that turns real-valued columns into spins.")
@click.option("--missing", type=click.Choice(["error", "drop", "pairwise"]), default="error", show_default=True,
              help="About missing values.")  # fmt: skip
@click.option("--groups", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="Table with the group of each spin, for colours in the report.")  # fmt: skip
@click.option("--group-by", help="Its column of groups; by default the first that looks like one.")
@click.option("--seed", type=click.IntRange(min=0), help="Of methods that draw random numbers.")
@click.option("--threads", type=click.IntRange(min=1), help="By default all.")
@scheduler_option("Of method two-stage with more than 5000 columns: look at pairs")
@click.option("--workers", type=click.IntRange(min=1), help="The same, by as many processes of this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print fit.json instead of a summary.")
def command(
    data: Path, output: Path | None, force: bool, resume: bool, method: str, settings: tuple[str, ...], level: float | None,
    control: str | None,
    columns: str | None, drop: str, id_column: str | None, weights: str | None, binarize: float | None, missing: str,
    groups: Path | None, group_by: str | None, seed: int | None, threads: int | None, scheduler: str | None, workers: int | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Learn the network behind a file of data, and write it into a folder: report.html, edges.csv, model.npz, fit.json.

    DATA is a CSV, TSV (also .gz), Parquet, NPY, NPZ or .spins file, one row a sample and one column a spin; - reads CSV from
    standard input.
    """
    from tqdm import tqdm

    from isingkit.fit_check import fit_check
    from isingkit.fit_folder import fit_of, require_free, write_fit
    from isingkit.report.contents import contents_of, with_groups
    from isingkit.report.groups import read_groups
    from isingkit.report.page import html_page
    from isingkit.spins import require_network
    from isingkit.tables import listed, read_spins

    title = _title(data)
    folder = (output or Path(f"{title}-fit")).resolve()
    if group_by is not None and groups is None:
        raise click.UsageError(
            "--group-by says which column of --groups to take, but there are no --groups", click.get_current_context()
        )
    require_free(folder, force)
    records = _records(folder, resume)
    asked = dict(_setting(text) for text in settings) | {
        k: v for k, v in {"level": level, "control": control}.items() if v is not None
    }
    given = {"missing": missing, "binarize": binarize, "n_jobs": threads, "random_state": seed}
    method = method.lower().replace(" ", "-")
    _estimator(method, 2, 100, asked, given)._check_settings()  # mistakes are told before a long wait
    if (scheduler or workers) and method != "two-stage":
        raise click.UsageError("--scheduler and --workers are for --method two-stage", click.get_current_context())
    left_out = [name for name in (*listed(drop), id_column) if name]
    with _learning_on(scheduler, workers), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            reading = read_spins(
                data, columns=listed(columns), drop=left_out, weights=weights, binarize=binarize, missing=missing, progress=True
            )
        except MissingValuesError as error:
            raise error.without_pairwise() if not _takes_pairwise(method, asked, given) else error from None
        packed = reading.packed
        require_network(packed.n_samples, packed.n_spins)
        total = packed.n_samples if reading.weights is None else max(round(float(reading.weights.sum())), packed.n_samples)
        labels = read_groups(groups, packed.names, group_by) if groups else {}
        with tqdm(total=3, desc="learning the network", bar_format="{desc} {bar} {elapsed}", leave=False, delay=0.5) as bar:
            estimator = _estimator(method, packed.n_spins, total, asked, given)
            if "checkpoint" in estimator.get_params():
                estimator.set_params(checkpoint=records, progress=True)
            estimator.fit(packed, sample_weight=reading.weights)
            said = list(dict.fromkeys(str(one.message) for one in caught))
            fit = fit_of(estimator, packed, method, seed, said)
            _next(bar, "comparing data and model")
            check = fit_check(fit.model, packed, sample_weight=reading.weights)
            _next(bar, "writing the report")
            contents = with_groups(contents_of(fit, check, title), labels)
            write_fit(fit, html_page(contents), folder, force=force)
            shutil.rmtree(records, ignore_errors=True)
    for words in said:
        click.echo(f"isingkit: warning: {words}", err=True)
    if as_json:
        click.echo(json.dumps(asdict(fit.facts)))
    else:
        click.echo(_summary(fit, output or Path(folder.name)))


def _title(data: Path) -> str:
    """The name of the file without what says its kind."""
    name = re.sub(r"(\.(csv|tsv|parquet|npy|npz|spins))?(\.gz)?$", "", data.name, flags=re.IGNORECASE).lstrip(".-")
    return name or "data"


def _takes_pairwise(method: str, asked: dict[str, Any], given: dict[str, Any]) -> bool:
    """Whether the method can do with rows that lack some values."""
    try:
        _estimator(method, 2, 100, asked, given | {"missing": "pairwise"})._check_settings()
    except SettingError:
        return False
    return True


def _records(folder: Path, resume: bool) -> Path:
    """Where finished work of a fit of many spins is kept until all is done."""
    records = folder.with_name(f"{folder.name}.partial")
    if records.exists() and not resume:
        told = f"'{records}' holds finished work of a fit that was stopped: go on with --resume, or delete it"
        raise click.UsageError(told, click.get_current_context())
    return records


@contextmanager
def _learning_on(scheduler: str | None, workers: int | None) -> Iterator[None]:
    """Within, estimators that can use the cluster do, where one is asked for."""
    if scheduler is None and workers is None:
        yield
        return
    with cluster(scheduler, workers) as client:
        from isingkit import dask

        with dask.using(client):
            yield


def _next(bar: Any, what: str) -> None:
    bar.update()
    bar.set_description(what)


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"--set wants NAME=VALUE, not '{text}'", click.get_current_context())
    for kind in (int, float):
        try:
            return name.strip(), kind(value)
        except ValueError:
            continue
    return name.strip(), {"true": True, "false": False, "none": None}.get(value.strip().lower(), value.strip())


def _estimator(method: str, n_spins: int, n_samples: int, asked: dict[str, Any], given: dict[str, Any]) -> Any:
    """The method, with the knobs that theory suggests for the data, then what the user asked for."""
    from isingkit.comparison import known_methods

    methods = {name.lower().replace(" ", "-"): one for name, one in known_methods(n_spins, n_samples).items()}
    if method not in METHODS:
        raise click.UsageError(f"there is no method '{method}'; there are {', '.join(METHODS)}", click.get_current_context())
    estimator = methods[method]
    known = estimator.get_params()
    elsewhere = [name for name in asked if name in OWN_OPTIONS]
    if elsewhere:
        told = f"{elsewhere[0]} is set by {OWN_OPTIONS[elsewhere[0]]}, not by --set"
        raise click.UsageError(told, click.get_current_context())
    unknown = [name for name in asked if name not in known]
    if unknown:
        listed = ", ".join(sorted(known))
        raise click.UsageError(f"method '{method}' has no setting '{unknown[0]}'; it has {listed}", click.get_current_context())
    return estimator.set_params(**asked, **{name: value for name, value in given.items() if name in known and value is not None})


def _how_sure(facts: Any) -> str:
    level = facts.settings.get("level")
    if level is None:
        return f"how sure: method {facts.method} does not say; method auto does"
    if facts.settings["control"] == "fwer":
        return f"how sure: with a probability of {1 - level:g} none of them is false"
    share = f"some {level:.0%} of the edges, {max(1, round(level * facts.n_edges))} or so"
    return f"how sure: {share}, may be false; those with a small q-value hardly"


def _summary(fit: Any, folder: Path) -> str:
    facts = fit.facts
    codings: dict[str, int] = {}
    for low, high in facts.mapping.values():
        codings[f"{low} is -1, {high} is +1"] = codings.get(f"{low} is -1, {high} is +1", 0) + 1
    lines = [
        f"{facts.n_samples:g} rows of {facts.n_spins} spins, method {facts.method}: {facts.n_edges} edge"
        + ("" if facts.n_edges == 1 else "s"),
        "coding: " + "; ".join(f"{words} ({count} columns)" for words, count in list(codings.items())[:3])
        + (" and others, see fit.json" if len(codings) > 3 else ""),
    ]  # fmt: skip
    if fit.edges:
        width = max(6, *(len(name) for edge in fit.edges[:10] for name in (edge["source"], edge["target"])))
        lines.append("")
        lines.append(f"{'source':<{width}}  {'target':<{width}}  coupling  error   q-value")
        for edge in fit.edges[:10]:
            error = "" if edge["std_error"] is None else f"{edge['std_error']:.3f}"
            share = "" if edge["q_value"] is None else f"{edge['q_value']:.2g}"
            lines.append(
                f"{edge['source']:<{width}}  {edge['target']:<{width}}  {edge['coupling']:+8.3f}  {error:<6}  {share}".rstrip()
            )
        lines += ["", _how_sure(facts)]
    return "\n".join([*lines, "", f"look at {folder / 'report.html'}; beside it are edges.csv, model.npz and fit.json"])
