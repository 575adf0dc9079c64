"""Small fits with kernels as plain Python, which numba says the same of and coverage can see.

`python tests/uncompiled.py FILE` with NUMBA_DISABLE_JIT=1 writes what they find. Instructions that
numba has no Python for have plain twins here; vector code and what calls it is left out.
"""

import pickle
import sys
import tempfile
import warnings
from pathlib import Path

import numba
import numpy as np

import isingkit as ik
from isingkit import packing
from isingkit._kernels import lookup_popcount, sources
from isingkit.estimators import sizes
from isingkit.landscape.descents import minima_below
from isingkit.tables import read_spins

N_SPINS, N_SAMPLES = 7, 90
TEXT = """time,a,b,c,weight
1.5e0,yes,0,-1,1
-2,no,1.0,+1,0.25
"3",yes,"0",NA,1e-3
4,"no",1,-1.0,2
5,yes,0,1,.5
"a ""quoted"" one", yes ,"1", 1 ,1E+2\r

6,no,1,-1,123456789012345678901234567890
"""


def popcount(word):
    return np.uint64(int(word).bit_count())


def spin_row(spins, i, out):
    return sources._spin_row(numba.typeof(spins), None, None)(spins, i, out)


def covariance(source, i, j):
    return sources._covariance(numba.typeof(source), None, None)(source, i, j)


def without_compiler():
    """Put plain twins where kernels look for what only a compiler has."""
    twins = {"popcount": popcount, "spin_row": spin_row, "covariance": covariance}
    for name, module in list(sys.modules.items()):
        if name.startswith("isingkit._kernels."):
            for one, twin in twins.items():
                if hasattr(module, one):
                    setattr(module, one, twin)
    lookup_popcount.has_shuffle = lambda: False


def table(n_samples=N_SAMPLES, n_spins=N_SPINS, strength=0.5):
    """Samples of a chain of spins, each like its neighbour more often than not."""
    rng = np.random.default_rng(3)
    values = rng.choice([-1, 1], (n_samples, n_spins))
    for j in range(1, n_spins):
        copied = rng.random(n_samples) < strength
        values[copied, j] = values[copied, j - 1]
    return values


def fits(values):
    """Estimators of every kind of kernel, by name."""
    yield "auto", ik.AutoIsing().fit(values)
    yield "auto, fwer, bethe", ik.AutoIsing(control="fwer", refit="bethe").fit(values)
    yield "ridge", ik.RidgeIsing().fit(values)
    yield "linear", ik.LinearIsing().fit(values)
    yield "two stages", ik.TwoStageIsing().fit(values)
    yield "two stages, screened", ik.TwoStageIsing(ridge=float("inf"), prune=0.15).fit(values)
    yield "lasso", ik.LassoIsing().fit(values)
    yield "elasso", ik.ELassoIsing().fit(values)
    yield "pseudolikelihood", ik.PseudolikelihoodIsing(l1=0.02, l2=0.01).fit(values)
    yield "screening", ik.InteractionScreeningIsing(l1=0.02).fit(values)
    yield "log screening", ik.InteractionScreeningIsing(l1=0.02, log=True).fit(values)
    yield "mean field", ik.MeanFieldIsing().fit(values)
    yield "likelihood", ik.MaximumLikelihoodIsing().fit(values)
    holes = values.astype(float)
    holes[::9, 2] = np.nan
    yield "pairwise", ik.AutoIsing(missing="pairwise").fit(holes)
    weights = np.tile([0.5, 1.0, 2.0], N_SAMPLES // 3)
    yield "weighted", ik.AutoIsing().fit(values, sample_weight=weights)


def fits_by_tiles(values):
    """The same where few spins count as many, so that pairs are counted as they are needed."""
    dense = sizes.MOST_DENSE
    sizes.MOST_DENSE = 3
    yield "tiles, auto", ik.AutoIsing(level=0.5).fit(table(n_samples=28, n_spins=30, strength=0.8))
    yield "tiles, screened", ik.TwoStageIsing(ridge=float("inf"), prune=0.15).fit(values)
    yield "tiles, ridge", ik.TwoStageIsing(ridge=0.1, prune=0.1).fit(values)
    weights = np.tile([0.5, 1.0, 2.0], N_SAMPLES // 3)
    yield "tiles, weighted", ik.TwoStageIsing(prune=0.1).fit(values, sample_weight=weights)
    holes = np.asarray(values, dtype=float)
    holes[::9, 2] = np.nan
    yield "tiles, pairwise", ik.TwoStageIsing(prune=0.1, missing="pairwise").fit(holes)
    sizes.MOST_DENSE = dense


def hard_fits(values):
    """Regressions that need every way through their kernels: few rows, equal and rare columns."""
    rng = np.random.default_rng(4)
    few = values[:40]
    yield "few rows", ik.ELassoIsing(gamma=0.0, rule="or").fit(few)
    yield "no penalty", ik.PseudolikelihoodIsing().fit(values)
    yield "screening, no penalty", ik.InteractionScreeningIsing().fit(values)
    wide = np.hstack([values, values[::-1], np.roll(values, 7, axis=0)])
    yield "more columns", ik.AutoIsing(level=0.5).fit(wide)
    yield "candidates", ik.TwoStageIsing(ridge=0.01, prune=0.001, threshold=0.0).fit(wide)
    hub = np.where(rng.random((N_SAMPLES, 1)) < 0.5, 1, -1)
    leaves = np.where(rng.random((N_SAMPLES, 9)) < 0.85, hub, -hub)
    yield "hub", ik.AutoIsing(level=0.5).fit(np.hstack([hub, leaves]))
    yield "hub, no penalty", ik.LinearIsing(threshold=0.0).fit(np.hstack([hub, leaves]))
    half = np.repeat(["a", "b"], N_SAMPLES // 2)
    yield "covariates", ik.PseudolikelihoodIsing(l1=0.01).fit(values, covariates=half)
    yield "covariates, no penalty", ik.PseudolikelihoodIsing().fit(values, covariates=half)
    rare = values.copy()
    rare[3:, 0] = -1
    yield "rare", ik.AutoIsing(refit="linear").fit(rare)


def given_covariates(values):
    """Samples of a model with effects, and its score."""
    half = np.repeat(["a", "b"], N_SAMPLES // 2)
    fit = ik.PseudolikelihoodIsing(l2=0.1).fit(values, covariates=half)
    options = {"covariates": half, "warm_up": 2, "check": False, "random_state": 1}
    orders = [ik.sample(fit.model_, order=order, **options) for order in ("sequential", "random")]
    drawn = np.concatenate([np.asarray(one) for one in orders])
    return drawn, np.array(fit.score(values, covariates=half))


def read_back():
    """A small table in every kind of cell, read from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text(TEXT)
        read = read_spins(path, columns=["a", "b", "c"], weights="weight", missing="drop")
    return np.asarray(read.packed), read.weights


def landscapes():
    """Minima of all states, and of descents from some, with the passes between them."""
    model = ik.square_lattice(side=3, coupling=0.3, fields=0.05, random_state=1)
    found = ik.landscape(model)
    starts = np.array([found.states[0], *np.eye(9, dtype=np.int8) * 2 - 1], dtype=np.int8)
    below, ends = minima_below(model, starts, np.ones(len(starts), dtype=bool))
    return found.barriers(), found.basins, below.energies, below.passes.energies, ends


def results():
    """What was found: couplings and fields of every fit, bits, pair sums, tables, exact worlds."""
    values = table()
    found = {}
    for several in (fits, fits_by_tiles, hard_fits):
        for name, fit in several(values):
            found[name] = (fit.model_.couplings.toarray(), fit.model_.fields)
    for module in (packing, sys.modules["isingkit.gram"]):
        module._FEW = 0  # from here on by kernels, not by numpy
    packed = ik.pack(values.astype(np.int8))
    found["bits"] = (np.asarray(packed), ik.gram(packed).sums)
    found["table"] = read_back()
    found["given"] = given_covariates(values)
    for name, model in (
        ("tree", ik.random_tree(n_spins=30, coupling=0.4, fields=0.1, random_state=1)),
        ("states", ik.square_lattice(side=3, coupling=0.3, random_state=1)),
    ):
        world = ik.exact(model)
        found[name] = (np.array(world.log_z), world.means)
    found["landscape"] = landscapes()
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of fits of few rows
    if numba.config.DISABLE_JIT:
        without_compiler()
    with np.errstate(all="ignore"):  # words of 64 bits wrap, which plain numpy warns of
        found = results()
    with open(sys.argv[1], "wb") as file:
        pickle.dump(found, file)
