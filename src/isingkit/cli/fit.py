"""isingkit fit"""

import json
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isingkit.cli.cluster import learning_on, scheduler_option
from isingkit.cli.data import (
    binarize_option,
    codes_option,
    columns_option,
    counts_option,
    covariates_option,
    data_argument,
    drop_option,
    id_option,
    missing_option,
    read,
    shape_options,
    ticked_option,
    weights_option,
)
from isingkit.cli.groups import group_options, require_table
from isingkit.cli.method import (
    METHODS,
    ON_CLUSTER,
    ChosenMethod,
    chosen_method,
    merging,
    methods_that_start,
    n_hidden,
    require_cluster_use,
    require_covariates,
    require_row_groups,
)
from isingkit.cli.usage import usage_error
from isingkit.cli.wording import MOST_SHOWN, ranked_warnings, worded_checks
from isingkit.formats import bare_name

if TYPE_CHECKING:
    from isingkit.fit_folder import Facts, Fit
    from isingkit.spins import Binarize
    from isingkit.tables.rows import Reading

_SUMMARY_COLUMNS = ("source", "target", "coupling", "std_error", "q_value")
_MOST_SHOWN = 10  # edges in the summary
_FEW_ROWS = 50
_WIDE = 10  # columns a row: with few rows, the table perhaps stands the other way
_NOT_LONG = 0.5  # seconds before there is a bar
_COUPLING = (
    "coupling: how strongly two columns go together (above 0) or exclude each other (below 0), "
    "whatever the others do"
)
_NO_EDGES = "no pair of columns is surely linked; the report says what was looked at"


@dataclass(frozen=True, slots=True)
class FitOptions:
    """What was typed after `isingkit fit`."""

    data: Path
    output: Path | None
    title: str | None
    force: bool
    resume: bool
    method: str
    settings: tuple[str, ...]
    level: float | None
    control: str | None
    columns: str | None
    drop: str
    id_column: str | None
    weights: str | None
    counts: str | None
    row_groups: str | None
    covariates: str | None
    rows: str | None
    hidden: int | str | None
    at_least: float | None
    inclusion: bool
    merge_alike: bool | float | None
    binarize: "Binarize"
    missing: str
    missing_codes: str | None
    ticked: str | None
    transpose: bool
    min_count: int
    max_share: float
    groups: Path | None
    group_by: str | None
    seed: int | None
    threads: int | None
    scheduler: str | None
    workers: int | None
    as_json: bool

    @property
    def name(self) -> str:
        """Of the file, without what says its format."""
        return bare_name(self.data) or "data"

    @property
    def folder(self) -> Path:
        """Where the fit goes."""
        return (self.output or Path(f"{self.name}-fit")).resolve()

    def chosen_method(self) -> ChosenMethod:
        """The method, with its settings."""
        shortcuts = {
            "level": self.level,
            "control": self.control,
            "rows": self.rows,
            "hidden": self.hidden,
            "at_least": self.at_least,
            "inclusion": self.inclusion or None,
            "merge_alike": self.merge_alike,
        }
        shared = {
            "missing": self.missing,
            "binarize": self.binarize,
            "n_jobs": self.threads,
            "random_state": self.seed,
        }
        return chosen_method(self.method, self.settings, shortcuts, shared)


@click.command("fit")
@data_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write; by default named after DATA.",
)
@click.option("--title", help="Of the report; by default the name of DATA.")
@click.option("--force", is_flag=True, help="Replace a fit that is there.")
@click.option("--resume", is_flag=True, help="Go on with a fit of many columns that was stopped.")
@click.option(
    "--method",
    default="auto",
    show_default=True,
    shell_complete=lambda ctx, param, start: methods_that_start(start),
    help="How: " + ", ".join(METHODS) + ".",
)
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
@columns_option
@drop_option
@id_option
@weights_option
@counts_option
@click.option(
    "--row-groups",
    help="Of method auto: column of labels, the same for rows that belong together (a person, a "
    "recording, a site).",
)
@covariates_option
@click.option(
    "--rows",
    type=click.Choice(["auto", "independent", "ordered"]),
    help="Of method auto: whether rows are independent, or a series in this order; auto looks.",
)
@click.option(
    "--hidden",
    metavar="auto|0|NUMBER",
    callback=lambda ctx, param, value: n_hidden(value),
    help="Of method auto: how many causes that are no columns act on many of them; auto looks.",
)
@click.option(
    "--at-least",
    type=click.FloatRange(0),
    help="Of method auto: edges are couplings that are shown to exceed this in absolute value.",
)
@click.option(
    "--inclusion",
    is_flag=True,
    help="Of method auto: write how probable each pair is an edge, with Bayes factors, to "
    "inclusion.csv, too.",
)
@click.option(
    "--merge-alike",
    is_flag=False,
    flag_value="yes",
    metavar="[yes|no|NUMBER]",
    callback=lambda ctx, param, value: merging(value),
    help="Make one variable of columns that are equal or opposite, or, with a number such as 0.98, "
    "whose correlation is at least that; by default of equal and opposite ones beyond 1000 "
    "columns.",
)
@binarize_option
@missing_option()
@codes_option
@ticked_option
@shape_options
@group_options
@click.option("--seed", type=click.IntRange(min=0), help="Of methods that draw random numbers.")
@click.option("--threads", type=click.IntRange(min=1), help="By default all.")
@scheduler_option(
    f"With more than 5000 columns, of methods {' and '.join(ON_CLUSTER)}: look at pairs"
)
@click.option(
    "--workers", type=click.IntRange(min=1), help="The same, by as many processes of this machine."
)
@click.option("--json", "as_json", is_flag=True, help="Print fit.json instead of a summary.")
def command(**arguments: Any) -> None:
    """Learn the network behind a file of data, and write it into a folder: report.html, edges.csv,
    model.npz, fit.json.
    """
    from isingkit._kernels.compilation import noticed_compilation
    from isingkit.fit_folder import require_free

    options = FitOptions(**arguments)
    require_table(options.groups, options.group_by)
    require_free(options.folder, options.force)
    _require_inputs_kept(options)
    records = _records(options.folder, options.resume)
    chosen = options.chosen_method()
    if options.row_groups is not None:
        require_row_groups(chosen)
    if options.covariates is not None:
        require_covariates(chosen)
    if options.scheduler or options.workers:
        require_cluster_use(chosen)
    with (
        noticed_compilation(),
        learning_on(options.scheduler, options.workers),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        fit = _fit_and_write(options, chosen, records, caught)
    shown = options.output or Path(options.folder.name)
    _tell_warnings(fit.facts.warnings, shown / "report.html")
    if options.as_json:
        written = (options.folder / "fit.json").read_text(encoding="utf-8")
        click.echo(json.dumps(json.loads(written)))
    else:
        click.echo(_summary(fit, shown))


def _fit_and_write(
    options: FitOptions,
    chosen: ChosenMethod,
    records: Path,
    caught: list[warnings.WarningMessage],
) -> "Fit":
    """The fit, with the warnings caught on the way, once its folder is written."""
    from isingkit.estimators.checkpoint import clear_checkpoint
    from isingkit.fit_check import fit_check
    from isingkit.fit_folder import fit_of, write_fit
    from isingkit.report.contents import contents_of, with_groups
    from isingkit.report.groups import read_groups
    from isingkit.report.minima import quick_landscape
    from isingkit.report.page import html_page

    reading = _read(options, chosen)
    packed = reading.packed
    labels = read_groups(options.groups, packed.names, options.group_by) if options.groups else {}
    with _progress() as next_step:
        estimator = _fitted(chosen, reading, records)
        fit = fit_of(estimator, packed, chosen.name, options.seed, [])
        next_step("comparing data and model")
        check = fit_check(
            fit.model,
            packed,
            sample_weight=reading.weights,
            counts=reading.counts,
            covariates=reading.covariates,
            hidden=fit.hidden,
        )
        _name_outcomes(packed.names)
        _doubt_shape(reading.n_samples, packed.n_spins, options.transpose)
        facts = replace(fit.facts, warnings=ranked_warnings(caught, fit, check))
        fit = replace(fit, facts=facts, left_out=reading.left_out)
        next_step("writing the report")
        known = {"sample_weight": reading.weights, "counts": reading.counts}
        minima = quick_landscape(fit.model, packed, **known, groups=reading.groups)
        contents = contents_of(fit, check, options.title or options.name, minima)
        contents = replace(contents, diagnostics=worded_checks(contents.diagnostics))
        page = html_page(with_groups(contents, labels))
        write_fit(fit, page, options.folder, force=options.force)
        clear_checkpoint(records)
    return fit


def _name_outcomes(names: Sequence[str]) -> None:
    """Warn of columns that seem to say what rows are."""
    from isingkit.exceptions import OutcomeColumnWarning, warn
    from isingkit.tables.decisions import looks_like_outcome

    found = [name for name in names if looks_like_outcome(name)]
    if found:
        warn(OutcomeColumnWarning(columns=found))


def _doubt_shape(n_rows: int, n_columns: int, transposed: bool) -> None:
    """Warn of a table that perhaps stands the other way."""
    from isingkit.exceptions import WideTableWarning, warn

    if n_rows < _FEW_ROWS and n_columns > _WIDE * n_rows and not transposed:
        warn(WideTableWarning(n_rows=n_rows, n_columns=n_columns))


def _tell_warnings(messages: Sequence[str], report: Path) -> None:
    """The most serious warnings, and where the others are."""
    for message in messages[:MOST_SHOWN]:
        click.echo(f"isingkit: warning: {message}", err=True)
    n_more = len(messages) - MOST_SHOWN
    if n_more > 0:
        click.echo(f"isingkit: and {n_more} more: see {report}", err=True)


def _require_inputs_kept(options: FitOptions) -> None:
    """Refuse to learn from a file that the fit would replace."""
    from isingkit.fit_folder import FILES

    inputs = [path for path in (options.data, options.groups) if path is not None and path.exists()]
    outputs = [options.folder / name for name in FILES]
    for path in inputs:
        if any(output.exists() and output.samefile(path) for output in outputs):
            raise usage_error(f"the fit would replace '{path}': name another folder with -o")


def _records(folder: Path, resume: bool) -> Path:
    """Where finished work of a fit of many spins is kept until all is done."""
    records = folder.with_name(f"{folder.name}.partial")
    if records.exists() and not resume:
        raise usage_error(
            f"'{records}' holds finished work of a fit that was stopped: "
            "go on with --resume, or delete it"
        )
    return records


def _read(options: FitOptions, chosen: ChosenMethod) -> "Reading":
    """What the file holds; where values are missing, advice that suits the method."""
    from isingkit.spins import require_network
    from isingkit.tables import listed

    reading = read(
        options.data,
        chosen.missing_policies(),
        columns=listed(options.columns),
        drop=[*listed(options.drop), *([options.id_column] if options.id_column else [])],
        weights=options.weights,
        counts=options.counts,
        groups=options.row_groups,
        covariates=listed(options.covariates),
        binarize=options.binarize,
        missing=options.missing,
        missing_codes=listed(options.missing_codes),
        ticked=listed(options.ticked),
        transpose=options.transpose,
        min_count=options.min_count,
        max_share=options.max_share,
    )
    require_network(reading.n_samples, reading.packed.n_spins)
    return reading


def _fitted(chosen: ChosenMethod, reading: "Reading", records: Path) -> Any:
    """The method's estimator, fitted; one for many spins keeps finished work in `records`."""
    packed = reading.packed
    estimator = chosen.estimator(packed.n_spins, reading.n_effective)
    if "checkpoint" in estimator.get_params():
        estimator.set_params(checkpoint=records, progress=True)
    also = {"groups": reading.groups, "covariates": reading.covariates}
    known = {name: value for name, value in also.items() if value is not None}
    return estimator.fit(packed, sample_weight=reading.weights, counts=reading.counts, **known)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A bar of three steps, of which the first is learning; call what is given with the name of the
    next.
    """
    from tqdm import tqdm

    look = {"bar_format": "{desc} {bar} {elapsed}", "leave": False, "delay": _NOT_LONG}
    with tqdm(total=3, desc="learning the network", **look) as bar:

        def next_step(name: str) -> None:
            bar.set_description(name, refresh=False)  # a bar that is not due is not cleared either
            bar.update()

        # a bar shows itself when it moves, and this one stands while the network is learnt
        first_look = threading.Timer(1.2 * _NOT_LONG, bar.update, [0])
        first_look.daemon = True
        first_look.start()
        try:
            yield next_step
        finally:
            first_look.cancel()


def _summary(fit: "Fit", folder: Path) -> str:
    """What was read and found, the strongest edges, and where to look."""
    facts = fit.facts
    edges = f"{facts.n_edges} edge" + ("" if facts.n_edges == 1 else "s")
    groups = f" in {fit.n_groups} groups" if fit.n_groups else ""
    is_whole = facts.n_samples == round(facts.n_samples)
    n_rows = f"{facts.n_samples:.0f} rows"
    if not is_whole:
        n_rows = f"rows worth {facts.n_samples:.0f} (by their weights)"
    n_columns = facts.n_spins + facts.n_merged
    rows = f"{n_rows}{groups} of {n_columns} columns{_counted_covariates(facts)}"
    lines = [
        f"{rows}, method {facts.method}: {edges}",
        f"coding: {_codings(facts)}",
        *_merged_lines(facts),
        *_hidden_lines(facts),
        "",
    ]
    if fit.edges:
        lines += [*_edge_lines(fit.edges[:_MOST_SHOWN]), "", _COUPLING, _reliability(fit), ""]
    else:
        lines += [_NO_EDGES, ""]
    also = "covariate_effects.csv, " if fit.covariate_effects else ""
    also += "alike.csv, " if facts.n_merged else ""
    also += "hidden_loadings.csv, hidden_scores.csv, " if fit.hidden is not None else ""
    also += "inclusion.csv, " if fit.inclusion is not None else ""
    beside = f"beside it are edges.csv, {also}model.npz and fit.json"
    lines.append(f"look at {folder / 'report.html'}; {beside}")
    return "\n".join(lines)


def _counted_covariates(facts: "Facts") -> str:
    """How many covariates there are, where there are any."""
    n_covariates = len(facts.covariates)
    return f" and {n_covariates} covariate{'s' * (n_covariates > 1)}" if n_covariates else ""


def _merged_lines(facts: "Facts") -> list[str]:
    """How many columns became part of another's, where any did."""
    if not facts.n_merged:
        return []
    n_columns = facts.n_spins + facts.n_merged
    found = f"columns alike: {facts.n_merged} of {n_columns} became one with another"
    return [f"{found}; see alike.csv"]


def _hidden_lines(facts: "Facts") -> list[str]:
    """What was found of hidden causes, where there are any."""
    shares = facts.hidden_variance_shares
    if not shares:
        return []
    explained = " and ".join(f"{share:.0%}" for share in shares)
    verb = "which explains" if len(shares) == 1 else "which explain"
    found = f"hidden causes: {len(shares)}, {verb} {explained} of the variance"
    return [f"{found}; see hidden_loadings.csv"]


def _codings(facts: "Facts") -> str:
    """Which values became -1 and +1, and in how many columns."""
    counts = Counter(_coding(low, high) for low, high in facts.mapping.values())
    listed = [
        f"{coding} ({n_columns} column{'s' * (n_columns > 1)})"
        for coding, n_columns in counts.items()
    ]
    more = " and others, see fit.json" if len(listed) > 3 else ""
    return "; ".join(listed[:3]) + more


def _coding(low: Any, high: Any) -> str:
    """Of a constant column of texts, the other value is not known."""
    if "" in (low, high):
        return f"{low or high} alone is {'-1' if low else '+1'}"
    return f"{low} is -1, {high} is +1"


def _edge_lines(edges: Sequence[dict[str, Any]]) -> list[str]:
    """A table of edges as text."""
    from isingkit.edge_table import COLUMNS
    from isingkit.result_table import on_one_line

    width = max(6, *(len(on_one_line(edge[end])) for edge in edges for end in ("source", "target")))
    layout = f"{{:<{width}}}  {{:<{width}}}  {{:>8}}  {{:<6}}  {{}}"
    columns = [COLUMNS[name] for name in _SUMMARY_COLUMNS]
    rows = [[on_one_line(column.text(edge[column.name])) for column in columns] for edge in edges]
    lines = [layout.format(*row) for row in [[column.label for column in columns], *rows]]
    return [line.rstrip() for line in lines]


def _reliability(fit: "Fit") -> str:
    """How many of the edges may be false."""
    facts = fit.facts
    level = facts.settings.get("level")
    if level is None:
        return f"how sure: method {facts.method} does not say; method auto does"
    if fit.doubts:
        why = ", ".join(f"'{check}'" for check in fit.doubts)
        return f"how sure: nobody can say: see the warning {why}; more edges may be false"
    allowed_for = "; this allows for rows that are alike" if fit.has_alike_rows else ""
    at_least = facts.settings["at_least"]
    false = f"false or no larger than {at_least:g}" if at_least else "false"
    if facts.settings["control"] == "fwer":
        sure = f"with a probability of {1 - level:g} none of them is {false}"
        return f"how sure: {sure}{allowed_for}"
    some = f"some {level:.0%} of the edges, {max(1, round(level * facts.n_edges))} or so"
    return f"how sure: {some}, may be {false}; those with a small q-value hardly{allowed_for}"
