"""isingkit warm-up"""

import json
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isingkit import __version__

if TYPE_CHECKING:
    from isingkit.methods import Method
    from isingkit.packing import PackedSpins

_MANY = 5_100  # spins that are looked at tile by tile
_MANY_ROWS = 1_000  # that are compared with each other by kernels


@click.command("warm-up")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(as_json: bool) -> None:
    """Compile everything now, so that nobody waits for it later.

    What is compiled is kept until isingkit or numba change; a first fit compiles what it needs by
    itself. For images of containers, classrooms and clusters.
    """
    from tqdm import tqdm

    from isingkit._kernels.compilation import noticed_compilation

    roads = _roads()
    rows = []
    with tqdm(total=len(roads), desc="compiling", leave=False) as bar:
        for name, road in roads.items():
            bar.set_description(f"compiling: {name}")
            start = time.perf_counter()
            with (
                warnings.catch_warnings(),
                noticed_compilation(announce=False) as compiled,
                tempfile.TemporaryDirectory() as folder,
            ):
                warnings.simplefilter("ignore")  # so few samples are worth many
                road(Path(folder))
            seconds = time.perf_counter() - start
            rows.append({"what": name, "kernels": compiled.n_kernels, "seconds": seconds})
            bar.update()
    if as_json:
        click.echo(json.dumps({"version": __version__, "compiled": rows}))
        return
    click.echo(f"{'what':<24}{'kernels':>8}{'seconds':>9}")
    for row in rows:
        click.echo(f"{row['what']:<24}{row['kernels']:>8}{row['seconds']:>9.1f}")
    if not any(row["kernels"] for row in rows):
        click.echo("\nall of it was compiled before")


def _roads() -> dict[str, Callable[[Path], None]]:
    """What people do with isingkit, each once on tiny data."""
    from isingkit.methods import FIT_METHODS

    return {
        "reading tables": _read_tables,
        "many rows": _pack_many,
        "sampling": _sample,
        "covariates": _fit_covariates,
        "report": _report,
        "landscapes": _landscapes,
        **{f"method {method.name}": _fit_by(method) for method in FIT_METHODS},
        "missing values": _fit_missing,
        "many columns": _fit_many,
    }


def _read_tables(folder: Path) -> None:
    """Bits, words, numbers with a threshold, weights, and a column of many values."""
    from isingkit.exceptions import IsingkitError
    from isingkit.tables import read_spins

    numbers = "".join(f"{k % 2},{k / 7:.3f},{1 + k % 3}.5\n" for k in range(1, 200))
    path = folder / "table.csv"
    path.write_text('a,b,w\n0,"yes",1.5\n1,no,2.5\n')
    read_spins(path, weights="w")
    read_spins(path, drop=["w"])
    path.write_text(f"a,b,w\n{numbers}")
    read_spins(path, binarize=1.0, weights="w")
    read_spins(path, binarize=1.0)
    with suppress(IsingkitError):  # refused, but only when all of it was read
        read_spins(path)


def _pack_many(folder: Path) -> None:
    """So many values that numpy is not the quickest to make bits of them, and to count on bits."""
    import numpy as np

    import isingkit as ik
    from isingkit.packing import pack, unpacked

    values = np.tile(np.array([[-1], [1]], np.int8), (1 << 14, 64))
    packed = pack(values)
    for dtype in (np.int8, np.float64):
        unpacked(packed.words, packed.n_samples, dtype)
    ik.gram(packed)
    ik.AutoIsing().fit(_samples(n_spins=8, n_samples=_MANY_ROWS))


def _sample(folder: Path) -> None:
    """Chains as bits, by their largest numbers of neighbours, as numbers, and exactly."""
    import numpy as np

    import isingkit as ik
    from isingkit.worlds import UPDATES

    for update in UPDATES:
        for degree in (3, 7, 15, 17):
            model = ik.random_regular(
                n_spins=20, degree=degree, coupling=0.5 / degree, random_state=0
            )
            ik.sample(model, n_samples=100, warm_up=2, update=update, check=False)
        model = ik.IsingModel(model.couplings, np.full(20, 0.1))
        ik.sample(model, n_samples=100, warm_up=2, update=update, check=False)
    tree = ik.random_tree(n_spins=10, coupling=0.3, random_state=0)
    ik.exact(tree).sample(n_samples=100, random_state=0)
    ik.exact(ik.random_regular(n_spins=10, degree=3, coupling=0.3, random_state=0))


def _report(folder: Path) -> None:
    """What `isingkit fit` does with a file."""
    import isingkit as ik
    from isingkit.fit_check import fit_check
    from isingkit.fit_folder import fit_of
    from isingkit.report.contents import contents_of
    from isingkit.report.minima import quick_landscape
    from isingkit.report.page import html_page

    packed = _samples(n_spins=20, n_samples=500)
    estimator = ik.AutoIsing().fit(packed)
    fit = fit_of(estimator, packed, "auto", None, ())
    minima = quick_landscape(fit.model, packed)
    html_page(contents_of(fit, fit_check(fit.model, packed), "warm-up", minima))


def _landscapes(folder: Path) -> None:
    """Of few spins and of many."""
    import isingkit as ik

    for n_spins in (10, 26):
        model = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.3, random_state=0)
        ik.landscape(model)


def _fit_by(method: "Method") -> Callable[[Path], None]:
    """Fits by one method, with and without counts."""
    from isingkit.methods import suggested_settings

    def road(folder: Path) -> None:
        import numpy as np

        packed = _samples(n_spins=8, n_samples=400)
        twice = np.ones(400)
        twice[:10] = 2.0
        for counts in (None, twice):
            estimator = method.build(suggested_settings(8, 400))
            estimator.fit(packed, counts=counts)

    return road


def _fit_covariates(folder: Path) -> None:
    """Rows of which more is known, and samples given that."""
    import numpy as np

    import isingkit as ik

    packed = _samples(n_spins=8, n_samples=400)
    ages = np.linspace(20, 80, 400)
    fit = ik.PseudolikelihoodIsing().fit(packed, covariates=ages)
    ik.sample(fit.model_, covariates=ages, warm_up=2, check=False)


def _fit_missing(folder: Path) -> None:
    """Rows that lack some values."""
    import numpy as np

    import isingkit as ik

    values = np.asarray(_samples(n_spins=8, n_samples=400)).astype(np.float64)
    values[:20, 0] = np.nan
    ik.AutoIsing(missing="pairwise").fit(values)
    ik.AutoIsing(missing="impute").fit(values)
    ik.LinearIsing(missing="pairwise").fit(values)


def _fit_many(folder: Path) -> None:
    """So many columns that pairs are looked at tile by tile."""
    import isingkit as ik

    packed = _samples(n_spins=_MANY, n_samples=128)
    ik.AutoIsing(checkpoint=folder / "records").fit(packed)
    ik.TwoStageIsing(ridge=0.1, prune=0.3).fit(packed)


def _samples(*, n_spins: int, n_samples: int) -> "PackedSpins":
    """Samples of a planted network."""
    import isingkit as ik

    truth = ik.random_regular(n_spins=n_spins, degree=3, coupling=0.4, random_state=0)
    return ik.sample(truth, n_samples=n_samples, warm_up=20, check=False, random_state=0)
