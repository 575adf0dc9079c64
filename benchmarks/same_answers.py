"""Whether a change of the code changed answers: fits of one version, compared with another's.

    git worktree add ../before HEAD~1
    PYTHONPATH=../before/src python benchmarks/same_answers.py store before.pickle
    python benchmarks/same_answers.py compare before.pickle

The file holds the data as well, so that a change of the sampler is not taken for one of estimators.
"""

import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import isingkit as ik

SHARED = Path(__file__).parents[2] / "shared" / "data"


def real_tables() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Tables beside the checkout, and settings of AutoIsing; none where they are not there."""
    if not SHARED.is_dir():
        return {}
    import pandas as pd

    histogram = pd.read_csv(SHARED / "interaction_screening" / "a_samples.csv", header=None)
    senate = pd.read_csv(SHARED / "senate109_645x102.csv", index_col=0)
    return {
        "scotus": (pd.read_csv(SHARED / "scotus_rehnquist2_895x9.csv"), {}),
        "adhd": (pd.read_csv(SHARED / "adhd_symptoms_355x19.csv").drop(columns="group"), {}),
        "spikes": (pd.read_csv(SHARED / "hd_spikes_25ms_21174x15.csv.gz"), {}),
        "senate, pairwise": (senate, {"missing": "pairwise"}),
        "histogram": (histogram.iloc[:, 1:], {"counts": histogram[0].to_numpy()}),
    }


def planted_tables() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Worlds of every kind that the code treats differently."""
    rng = np.random.default_rng(7)
    regular = ik.random_regular(n_spins=100, degree=3, coupling=0.4, random_state=0)
    erdos_renyi = ik.erdos_renyi(n_spins=150, mean_degree=4, coupling=0.4, random_state=0)
    glass = ik.square_lattice(side=4, coupling=0.8, random_state=3)
    star = np.zeros((60, 60))
    star[0, 1:30] = star[1:30, 0] = 0.25
    large = ik.random_regular(n_spins=5200, degree=3, coupling=0.5, random_state=1)
    values = np.asarray(ik.sample(regular, n_samples=400, random_state=1))
    holes = np.where(rng.random(values.shape) < 0.05, np.nan, values.astype(float))
    fields = ik.IsingModel(regular.couplings, fields=np.where(np.arange(100) % 3 == 0, -1.2, 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the glass is outside the theory
        frozen = ik.sample(glass, n_samples=5000, random_state=1, check=False)
    return {
        "regular": (values, {}),
        "regular, fwer": (values, {"control": "fwer"}),
        "no fields, bethe": (values, {"fit_fields": False, "refit": "bethe"}),
        "erdos-renyi, few rows": (ik.sample(erdos_renyi, n_samples=120, random_state=2), {}),
        "glass": (frozen, {}),
        "hub": (ik.sample(ik.IsingModel(star), n_samples=600, random_state=2), {}),
        "rare": (ik.sample(fields, n_samples=800, random_state=3), {}),
        "weighted": (values, {"counts": rng.integers(0, 4, 400)}),
        "pairwise": (holes, {"missing": "pairwise"}),
        "by tiles": (ik.sample(large, n_samples=500, random_state=4), {}),
    }


def answers(table: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Everything that AutoIsing says of a table."""
    counts = settings.get("counts")
    own = {name: value for name, value in settings.items() if name != "counts"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = ik.AutoIsing(**own).fit(table, counts=counts)
    found: dict[str, Any] = {
        "couplings": fit.model_.couplings.toarray(),
        "fields": fit.model_.fields,
    }
    for name, edges in (("edges", fit.edges_), ("rejected", fit.rejected_)):
        order = np.lexsort((edges["target"], edges["source"]))
        found |= {f"{name}: {column}": edges[column][order] for column in edges.dtype.names}
        if name == "edges":
            found["intervals"] = fit.intervals_[order]
    found["candidates"] = fit.candidates_
    found["diagnostics"] = np.array([one.value for one in fit.diagnostics_])
    found["serious"] = np.array([one.serious for one in fit.diagnostics_])
    return found


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What is not the same, each with the largest difference relative to the largest number."""
    words = []
    for name, old in before.items():
        new = now[name]
        if np.shape(old) != np.shape(new):
            words.append(f"{name}: {np.shape(old)} -> {np.shape(new)}")
        elif old.dtype.kind in "iubUS":
            if not np.array_equal(old, new):
                words.append(f"{name}: {np.count_nonzero(old != new)} differ")
        else:
            is_finite = np.isfinite(old) & np.isfinite(new)
            scale = np.abs(old[is_finite]).max(initial=1e-300)
            off = np.abs(new[is_finite] - old[is_finite]).max(initial=0.0) / scale
            if off > 1e-12 or not np.array_equal(old[~is_finite], new[~is_finite], equal_nan=True):
                words.append(f"{name}: {off:.1e}")
    return words


if __name__ == "__main__":
    what, file = sys.argv[1], Path(sys.argv[2])
    if what == "store":
        tables = real_tables() | planted_tables()
        file.write_bytes(pickle.dumps({k: (v, answers(*v)) for k, v in tables.items()}))
    else:
        for name, (problem, before) in pickle.loads(file.read_bytes()).items():
            found = differences(before, answers(*problem))
            print(f"{name}: {len(before['edges: z'])} edges, " + ("; ".join(found) or "the same"))
