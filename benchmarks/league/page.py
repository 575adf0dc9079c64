"""The page of the league, its summary and its pictures, all from the tables."""

import math
from collections.abc import Sequence
from pathlib import Path

from isingkit.atomic import replacing
from league.measures import Row
from league.methods import FINDERS, METHODS
from league.picture import picture
from league.real_tables import TABLES
from league.summary import (
    BEHIND,
    COVERAGE,
    ENOUGH_INTERVALS,
    Estimate,
    Standing,
    mean,
    standings,
    summary_rows,
)
from league.worlds import N_HELD_OUT, WORLDS
from protocols.results import markdown, write_picture, write_table

HEAD = f"""\
# A league of worlds

```sh
make league                            # what has no record yet: all of it after a change
make league ARGS="--methods auto-fdr"  # one method; likewise --worlds, --seeds, --workers
make league ARGS="--final"             # what is reserved
make league ARGS="--page"              # tables and this page of what is on record
```

Everybody tunes to their own worlds. Here are {len(WORLDS)} kinds of Ising models (`worlds.py`), N
spins and M samples each, and the same samples for all methods. Standard errors are over seeds:
another truth, and other samples of it. Tables, pictures and this page are written by the command
above; a run that was killed goes on where it was. `results/` has a table for each world, with every
seed, and `results/summary.csv` means and standard errors of all measures: F1, precision, recall,
exact networks, false share of the edges found, whether any is false, coverage of 95 percent
intervals, root mean square error of couplings over all pairs, log pseudolikelihood of
{N_HELD_OUT} rows held out, and CPU seconds.

**What is reserved.** Seeds from 1000 on, a third of those of every world, and three whole worlds
({", ".join(f"`{name}`" for name, world in WORLDS.items() if world.reserved)}) are for a final run:
nothing is tuned on them, and the command touches them with `--final` only.
"""


def write_page(table: Sequence[Row], folder: Path) -> None:
    """README.md, results/summary.csv and a picture for each world, of rows of all tables."""
    (folder / "results").mkdir(parents=True, exist_ok=True)
    worlds = [row for row in table if row["name"] in WORLDS]
    development = standings(worlds, final=False)
    final = standings(worlds, final=True)
    parts = [HEAD, _methods(worlds)]
    parts += _run("Development seeds", development)
    parts += _run("Final run", final)
    parts += [_real_tables(table), _worlds(development + final, folder)]
    with replacing(folder / "README.md") as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")
    summary = [row for one in development for row in summary_rows(one, final=False)]
    summary += [row for one in final for row in summary_rows(one, final=True)]
    write_table(folder / "results" / "summary.csv", summary)


def _methods(table: Sequence[Row]) -> str:
    """What each is, and the code it was measured with."""
    rows = [["method", "what it is", "measured with"]]
    for name, method in METHODS.items():
        sources = sorted({row["source"] for row in table if row["method"] == name})
        rows.append([name, method.about, ", ".join(sources)])
    dates = sorted({row["date"] for row in table if "date" in row})
    when = f"Measured from {dates[0]} to {dates[-1]}. " if dates else ""
    after = (
        f"{when}After the version: the first digits of a digest of the code that decides the "
        "answer. Oracles are no competitors: they show what a method's ranking of pairs could "
        "give.\n"
    )
    return f"## Methods\n\n{markdown(rows)}\n\n{after}"


def _run(title: str, found: Sequence[Standing]) -> list[str]:
    """Ranking, promises and what else was measured, of one run."""
    if not found:
        return [f"## {title}\n\nNot run yet.\n"]
    return [
        f"## {title}\n",
        _verdict(found),
        _ranking(found),
        _promises(found),
        _costs(found),
    ]


def _verdict(found: Sequence[Standing]) -> str:
    """The worlds that AutoIsing has to answer for."""
    rivals = [(one, one.rival()) for one in found]
    ahead = [one.name for one, rival in rivals if rival and one.ahead("auto-fdr", rival).mean > 0]
    lines = {
        f"`AutoIsing()` finds more than the best of the other methods without an oracle in "
        f"{len(ahead)} of {len(found)} worlds; behind by more than {BEHIND:g} of F1": [
            one.name for one in found if one.is_behind()
        ],
        "False share above the level by more than two standard errors": [
            one.name for one in found if one.has_many_false()
        ],
        f"Coverage outside {COVERAGE[0]:.0%} to {COVERAGE[1]:.0%} where at least "
        f"{ENOUGH_INTERVALS} true edges were found": [
            one.name for one in found if one.covers_badly()
        ],
    }
    listed = [f"- {what}: {', '.join(names) or 'none'}." for what, names in lines.items()]
    return "\n".join([*listed, _any_false(found)])


def _any_false(found: Sequence[Standing]) -> str:
    """Networks with a false edge, over all worlds that have as many samples as spins."""
    enough = [one for one in found if WORLDS[one.name].n_samples >= WORLDS[one.name].n_spins]
    networks = [row["any_false"] for one in enough for row in one.rows.get("auto-fwer", [])]
    what = f'`AutoIsing(control="fwer")` has a false edge in {mean(networks)} of'
    return f"- {what} {len(networks)} networks where M >= N (level 0.05)."


def _ranking(found: Sequence[Standing]) -> str:
    """F1 of every method, the best without an oracle in bold."""
    labels = [f"{name}, oracle" if one.has_oracle else name for name, one in FINDERS.items()]
    rows = [["world", "N", "M", "seeds", *labels, "auto-fdr, less the best other"]]
    for one in found:
        world = WORLDS[one.name]
        leader = one.best_of(name for name, method in FINDERS.items() if not method.has_oracle)
        cells = [_leading(str(one.estimate(name, "f1")), name == leader) for name in FINDERS]
        size = [str(world.n_spins), str(world.n_samples), _seeds(one)]
        rows.append([one.name, *size, *cells, _difference(one)])
    return f"\n**F1.** Bold: the best without an oracle.\n\n{markdown(rows)}\n"


def _seeds(standing: Standing) -> str:
    """How many, from the method with fewest to that with most."""
    numbers = sorted({standing.n_seeds(method) for method in standing.rows})
    return " to ".join(str(number) for number in dict.fromkeys((numbers[0], numbers[-1])))


def _leading(text: str, leads: bool) -> str:
    return f"**{text}**" if leads else text


def _difference(standing: Standing) -> str:
    rival = standing.rival()
    if rival is None:
        return ""
    difference = standing.ahead("auto-fdr", rival)
    text = f"{_signed(difference)} ({rival})"
    return _leading(text, standing.is_behind())


def _signed(estimate: Estimate) -> str:
    return f"+{estimate}" if estimate.mean >= 0 else str(estimate)


def _promises(found: Sequence[Standing]) -> str:
    """What AutoIsing promises, and false shares of the others."""
    others = [name for name, method in FINDERS.items() if method.is_rival]
    head = ["world", "false share, auto-fdr", "any false, auto-fwer", "coverage", "true edges"]
    rows = [[*head, "bias / error", *(f"false share, {name}" for name in others)]]
    for one in found:
        share = str(one.estimate("auto-fdr", "false_share"))
        coverage = str(one.coverage("auto-fdr"))
        rows.append(
            [
                one.name,
                _leading(share, one.has_many_false()),
                str(one.estimate("auto-fwer", "any_false")),
                _leading(coverage, one.covers_badly()),
                str(one.n_intervals("auto-fdr")),
                str(one.estimate("auto-fdr", "bias_per_error")),
                *(str(one.estimate(name, "false_share")) for name in others),
            ]
        )
    return (
        "\n**Promises.** Levels are 0.05, intervals are of 95 percent; bold: not kept. Coverage is"
        "\nof true edges that auto-fdr found; *bias / error* is the mean of (estimate - truth) in"
        f"\nthe direction of the truth, in standard errors of a coupling.\n\n{markdown(rows)}\n"
    )


def _costs(found: Sequence[Standing]) -> str:
    """Errors of couplings, prediction and processor time."""
    methods = [name for name, method in FINDERS.items() if not method.has_oracle]
    measures = {"rms error": "rms_error", "held out": "held_out", "CPU s": "cpu_seconds"}
    heads = [f"{label}, {name}" for label in measures for name in methods]
    rows = [["world", *heads]]
    for one in found:
        cells = [_number(one, name, measure) for measure in measures.values() for name in methods]
        rows.append([one.name, *cells])
    return (
        "\n**Couplings, prediction, time.** Root mean square error over all pairs; log"
        "\npseudolikelihood of a row held out, less that of the truth; processor time, kernels"
        f"\ncompiled before. Standard errors are in `results/summary.csv`.\n\n{markdown(rows)}\n"
    )


def _number(standing: Standing, method: str, measure: str) -> str:
    value = standing.estimate(method, measure).mean
    if math.isnan(value):
        return ""
    if measure == "held_out":
        return f"{value - standing.estimate(method, 'held_out_truth').mean:.2f}"
    return f"{value:.4f}" if measure == "rms_error" else f"{value:.2g}"


def _real_tables(table: Sequence[Row]) -> str:
    """Held-out log pseudolikelihood of tables whose truth nobody knows."""
    rows = [["table", *METHODS]]
    about = []
    for name, real in TABLES.items():
        found = [row for row in table if row["name"] == name and "held_out" in row]
        if not found:
            continue
        by_method = {method: _by_fold(found, method) for method in METHODS}
        best = max(by_method, key=lambda one, given=by_method: _mean_or_least(given[one]))
        cells = [_below(by_method[one], by_method[best], one == best) for one in METHODS]
        rows.append([name, *cells])
        about.append(f"- `{name}`: {real.about}.")
    if not about:
        return "## Real tables\n\nNot measured yet.\n"
    text = (
        "Mean over five folds of the log pseudolikelihood of a row held out: the best method's,\n"
        "and by how much the others are below it, with the standard error of that over folds. No\n"
        "truth is known, so `l1` and `logrise` have the thresholds of theory here."
    )
    lines = "\n".join(about)
    return f"## Real tables\n\n{text}\n\n{markdown(rows)}\n\n{lines}\n"


def _by_fold(rows: Sequence[Row], method: str) -> dict[int, float]:
    return {row["seed"]: row["held_out"] for row in rows if row["method"] == method}


def _mean_or_least(folds: dict[int, float]) -> float:
    return mean(folds.values()).mean if folds else -math.inf


def _below(folds: dict[int, float], best: dict[int, float], is_best: bool) -> str:
    """The best method's score, or by how much this one is below it."""
    if is_best:
        return f"**{mean(folds.values())}**"
    return str(mean(value - best[number] for number, value in folds.items() if number in best))


def _worlds(found: Sequence[Standing], folder: Path) -> str:
    """What each world is, with its picture, which is drawn here: of the final run where there is
    one.
    """
    lines = ["## Worlds\n"]
    standing_of = {one.name: one for one in found}
    for name, world in WORLDS.items():
        reserved = "; reserved" if world.reserved else ""
        exactly = "; exact samples" if world.is_exact else ""
        size = f"N = {world.n_spins}, M = {world.n_samples}"
        lines.append(f"**{name}**: {world.about}; {size}{exactly}{reserved}.\n")
        if name in standing_of:
            write_picture(folder / "results" / f"{name}.png", picture(standing_of[name]))
            lines.append(f"![{name}](results/{name}.png)\n")
    return "\n".join(lines)
