"""isingkit fit"""

import json
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit.cli.cluster import learning_on, scheduler_option
from isingkit.cli.groups import group_options, require_table
from isingkit.cli.method import METHODS, Method, chosen_method, methods_that_start
from isingkit.exceptions import MissingValuesError

if TYPE_CHECKING:
    from isingkit.tables.rows import Reading


@click.command("fit")
@click.argument(
    "data", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write; by default named after DATA.",
)
@click.option("--force", is_flag=True, help="Replace a fit that is there.")
@click.option("--resume", is_flag=True, help="Go on with a fit of many spins that was stopped.")
@click.option("--method", default="auto", show_default=True, shell_complete=lambda ctx, param, start: methods_that_start(start),
              help="How: " + ", ".join(METHODS) + ".")  # fmt: skip
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the method, e.g. ridge=0.5; repeatable.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Of method auto: false edges you accept.",
)
@click.option(
    "--control",
    type=click.Choice(["fdr", "fwer"]),
    help="Of method auto: as a share of edges, or any at all.",
)
@click.option("--columns", help="Columns to use, separated by commas; by default all.")
@click.option("--drop", default="", help="Columns to leave out, separated by commas.")
@click.option("--id-column", help="Column that names the rows; left out.")
@click.option("--weights", help="Column that says how often a row was seen.")
@click.option("--binarize", type=float, help="Threshold that turns real-valued columns into spins.")
@click.option("--missing", type=click.Choice(["error", "drop", "pairwise"]), default="error", show_default=True,
              help="About missing values.")  # fmt: skip
@group_options
@click.option("--seed", type=click.IntRange(min=0), help="Of methods that draw random numbers.")
@click.option("--threads", type=click.IntRange(min=1), help="By default all.")
@scheduler_option("With more than 5000 columns, of methods auto and two-stage: look at pairs")
@click.option(
    "--workers", type=click.IntRange(min=1), help="The same, by as many processes of this machine."
)
@click.option("--json", "as_json", is_flag=True, help="Print fit.json instead of a summary.")
def command(
    data: Path, output: Path | None, force: bool, resume: bool, method: str, settings: tuple[str, ...], level: float | None,
    control: str | None,
    columns: str | None, drop: str, id_column: str | None, weights: str | None, binarize: float | None, missing: str,
    groups: Path | None, group_by: str | None, seed: int | None, threads: int | None, scheduler: str | None, workers: int | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Learn the network behind a file of data, and write it into a folder: report.html, edges.csv,
    model.npz, fit.json.

    DATA is a CSV, TSV (also .gz), Parquet, NPY, NPZ or .spins file, one row a sample and one column
    a spin; - reads CSV from standard input.
    """
    from isingkit._kernels.compilation import noticed_compilation
    from isingkit.fit_check import fit_check
    from isingkit.fit_folder import fit_of, require_free, write_fit
    from isingkit.report.contents import contents_of, with_groups
    from isingkit.report.groups import read_groups
    from isingkit.report.page import html_page
    from isingkit.tables import listed

    require_table(groups, group_by)
    title = _title(data)
    folder = (output or Path(f"{title}-fit")).resolve()
    require_free(folder, force)
    records = _records(folder, resume)
    given = {"missing": missing, "binarize": binarize, "n_jobs": threads, "random_state": seed}
    chosen = chosen_method(method, settings, {"level": level, "control": control}, given)
    left_out = [name for name in (*listed(drop), id_column) if name]
    if scheduler or workers:
        _require_cluster_use(chosen)
    with (
        noticed_compilation(),
        learning_on(scheduler, workers),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        reading = _read(
            chosen,
            data,
            columns=listed(columns),
            drop=left_out,
            weights=weights,
            binarize=binarize,
            missing=missing,
        )
        labels = read_groups(groups, reading.packed.names, group_by) if groups else {}
        with _progress() as next_step:
            estimator = _learnt(chosen, reading, records)
            said = list(dict.fromkeys(str(one.message) for one in caught))
            fit = fit_of(estimator, reading.packed, chosen.name, seed, said)
            next_step("comparing data and model")
            check = fit_check(fit.model, reading.packed, sample_weight=reading.weights)
            next_step("writing the report")
            contents = with_groups(contents_of(fit, check, title), labels)
            write_fit(fit, html_page(contents), folder, force=force)
            shutil.rmtree(records, ignore_errors=True)
    for words in said:
        click.echo(f"isingkit: warning: {words}", err=True)
    click.echo(
        json.dumps(asdict(fit.facts)) if as_json else _summary(fit, output or Path(folder.name))
    )


def _title(data: Path) -> str:
    """The name of the file without what says its kind."""
    name = re.sub(
        r"(\.(csv|tsv|parquet|npy|npz|spins))?(\.gz)?$", "", data.name, flags=re.IGNORECASE
    ).lstrip(".-")
    return name or "data"


def _records(folder: Path, resume: bool) -> Path:
    """Where finished work of a fit of many spins is kept until all is done."""
    records = folder.with_name(f"{folder.name}.partial")
    if records.exists() and not resume:
        told = f"'{records}' holds finished work of a fit that was stopped: go on with --resume, or delete it"
        raise click.UsageError(told, click.get_current_context())
    return records


def _require_cluster_use(chosen: Method) -> None:
    """Refuse a cluster for a method that could not use it."""
    if chosen.name not in ("auto", "two-stage"):
        told = f"--scheduler and --workers go with --method auto or two-stage, not with {chosen.name}: leave them out"
        raise click.UsageError(told, click.get_current_context())


def _read(chosen: Method, data: Path, **options: Any) -> "Reading":
    """The file's spins and weights; where values are missing, advice that suits the method."""
    from isingkit.spins import require_network
    from isingkit.tables import read_spins

    try:
        reading = read_spins(data, **options, progress=True)
    except MissingValuesError as error:
        if chosen.takes_pairwise():
            raise
        raise error.without_pairwise() from None
    require_network(reading.packed.n_samples, reading.packed.n_spins)
    return reading


def _learnt(chosen: Method, reading: "Reading", records: Path) -> Any:
    """The method's estimator, fitted; one for many spins keeps finished work in `records`."""
    packed, weights = reading.packed, reading.weights
    total = (
        packed.n_samples if weights is None else max(round(float(weights.sum())), packed.n_samples)
    )
    estimator = chosen.estimator(packed.n_spins, total)
    if "checkpoint" in estimator.get_params():
        estimator.set_params(checkpoint=records, progress=True)
    return estimator.fit(packed, sample_weight=weights)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A bar of three steps, of which the first is learning; call what is given with the name of the
    next.
    """
    from tqdm import tqdm

    with tqdm(
        total=3,
        desc="learning the network",
        bar_format="{desc} {bar} {elapsed}",
        leave=False,
        delay=0.5,
    ) as bar:

        def next_step(name: str) -> None:
            bar.update()
            bar.set_description(name)

        yield next_step


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
        width = max(
            6, *(len(name) for edge in fit.edges[:10] for name in (edge["source"], edge["target"]))
        )
        lines.append("")
        lines.append(f"{'source':<{width}}  {'target':<{width}}  coupling  error   q-value")
        for edge in fit.edges[:10]:
            error = "" if edge["std_error"] is None else f"{edge['std_error']:.3f}"
            share = "" if edge["q_value"] is None else f"{edge['q_value']:.2g}"
            lines.append(
                f"{edge['source']:<{width}}  {edge['target']:<{width}}  {edge['coupling']:+8.3f}  {error:<6}  {share}".rstrip()
            )
        lines += ["", _how_sure(facts)]
    return "\n".join(
        [
            *lines,
            "",
            f"look at {folder / 'report.html'}; beside it are edges.csv, model.npz and fit.json",
        ]
    )
