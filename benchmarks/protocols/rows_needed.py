"""plan: whether studies with the rows that it proposes succeed as often as was asked for.

Settings are drawn at random from one seed: kinds of networks (or one network), how they are learnt,
which share of the edges is to be found and with which probability. For each, `ik.plan` says how
many rows are needed; then fresh studies of so many rows, drawn by `ik.sample` and scored by
`ik.score`, are counted. The band is the 95 percent binomial one of these counts about the
probability asked for; the wide band adds what the plan itself says that it leaves open. Settings
that `plan` refuses, or that ask for more than 20,000 rows, are listed and another one is drawn.
"""

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from results import Row, markdown, write_settings, write_table
from scipy.stats import binom
from tqdm import tqdm

import isingkit as ik
from isingkit.methods import method_named, suggested_settings
from isingkit.worlds.description import described

NAME = "rows_needed"
SEED = 90_125
N_SETTINGS = 30
PRECISION = 0.05
Z_95 = 1.96
METHODS = ("auto", "two-stage", "elasso", "pseudolikelihood")


@dataclass(frozen=True)
class Setting:
    """What is asked, and of which networks."""

    network: dict[str, Any]  # as plan takes it, a kind of network
    is_one: bool  # whether the network is one of that kind, always the same
    method: str
    find: float
    probability: float


def drawn_setting(rng: Generator) -> Setting:
    """A question such as somebody might ask."""
    n_spins = int(rng.integers(8, 41))
    low = round(rng.uniform(0.1, 0.35), 2)
    high = float(np.round(low + rng.choice([0, rng.uniform(0, 0.3)]), 2))
    rare = round(rng.uniform(0.15, 0.5), 2)
    network: dict[str, Any] = {"n_spins": n_spins, "coupling": (low, high)}
    network["negative"] = float(rng.choice([0.0, 0.25, 0.5]))
    network["prevalence"] = 0.5 if rng.random() < 0.3 else (rare, min(0.5, round(rare + 0.1, 2)))
    if rng.random() < 0.3:
        network["degree"] = int(rng.choice([2, 4]))
    else:
        network["mean_degree"] = round(rng.uniform(1.5, 4), 1)
    return Setting(
        network=network,
        is_one=bool(rng.random() < 0.4),
        method=str(rng.choice(METHODS)),
        find=round(rng.uniform(0.5, 0.95), 2),
        probability=float(rng.choice([0.7, 0.8, 0.9])),
    )


def estimator(setting: Setting, n_spins: int, n_rows: int) -> Any:
    """As `isingkit fit` has it; the two-stage estimator with thresholds of its own choice, as
    those of fixed size never find couplings below them.
    """
    if setting.method == "two-stage":
        return ik.TwoStageIsing(prune="auto", threshold="auto")
    method = method_named(setting.method)
    assert method is not None
    return method.build(suggested_settings(n_spins, n_rows))


def measured(setting: Setting, number: int, n_check: int) -> Row:
    """The plan, and what fresh studies find."""
    kind = described(**({"degree": None, "mean_degree": None} | setting.network))
    rng = np.random.default_rng([SEED, number])
    one = kind.draw(rng) if setting.is_one else None
    start = time.process_time()
    answer = ik.plan(
        one,
        **({} if one is not None else setting.network),
        method=lambda n_spins, n_rows: estimator(setting, n_spins, n_rows),
        find=setting.find,
        probability=setting.probability,
        precision=PRECISION,
        max_rows=20_000,
        random_state=rng,
    )
    seconds = time.process_time() - start
    n_right = 0
    for _ in range(n_check):
        truth = one
        while truth is None or truth.n_edges == 0:
            truth = kind.draw(rng)
        rows = ik.sample(truth, answer.n_rows, random_state=rng)
        learnt = estimator(setting, truth.n_spins, answer.n_rows).fit(rows).model_
        n_right += ik.score(learnt, truth).recall >= setting.find - 1e-9
    low, high = binom.ppf([0.025, 0.975], n_check, setting.probability) / n_check
    share = n_right / n_check
    binomial = setting.probability * (1 - setting.probability) / n_check
    wide = Z_95 * np.hypot(np.sqrt(binomial), answer.precision / Z_95)
    return {
        "networks": ("one of " if one is not None else "") + str(kind),
        "method": setting.method,
        "find": setting.find,
        "probability": setting.probability,
        "first guess": answer.first_guess,
        "rows": answer.n_rows,
        "interval": f"{answer.low} to {answer.high}",
        "studies": answer.n_studies,
        "CPU s": f"{seconds:.1f}",
        "found": f"{answer.found:.3f} ± {answer.found_error:.3f}",
        "false": f"{answer.false_share:.3f} ± {answer.false_error:.3f}",
        "success": f"{share:.3f}",
        "in band": "yes" if low <= share <= high else "no",
        "in wide band": "yes" if abs(share - setting.probability) <= wide else "no",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", type=int, default=N_SETTINGS)
    parser.add_argument("--check", type=int, default=150, help="fresh studies of each setting")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    rng = np.random.default_rng(SEED)
    table: list[Row] = []
    refused: list[Row] = []
    with tqdm(total=options.settings) as bar:
        while len(table) < options.settings:
            setting = drawn_setting(rng)
            number = len(table) + len(refused)
            try:
                table.append(measured(setting, number, options.check))
                bar.update()
            except ik.exceptions.IsingkitError as error:
                asked = {"method": setting.method, "find": setting.find}
                refused.append({"networks": str(setting.network), **asked, "why": str(error)})
            write_table(options.output / f"{NAME}.csv", table or [{}])
            write_table(options.output / f"{NAME}_refused.csv", refused or [{}])
    head = list(table[0])
    print(markdown([head, *[[str(row[name]) for name in head] for row in table]]))
    for band in ("in band", "in wide band"):
        print(f"{band}: {sum(row[band] == 'yes' for row in table)} of {len(table)}")
    settings = vars(options) | {"seed": SEED, "precision": PRECISION}
    write_settings(options.output / f"{NAME}.json", settings, time.perf_counter() - start)


if __name__ == "__main__":
    main()
