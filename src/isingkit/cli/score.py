"""isingkit score"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isingkit import __version__

if TYPE_CHECKING:
    from isingkit.model import IsingModel


@click.command("score")
@click.argument("found", type=click.Path(path_type=Path, exists=True))
@click.argument("truth", type=click.Path(path_type=Path, exists=True))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(found: Path, truth: Path, as_json: bool) -> None:
    """Compare a network found with the true one: precision, recall, signs, errors of couplings.

    FOUND and TRUTH are models, .npz, or folders that 'isingkit fit' has written.
    """
    from isingkit.metrics import score

    model = _loaded(found)
    true = _loaded(truth)
    scores = score(model, true)
    if as_json:
        names = {"version": __version__, "found": str(found), "truth": str(truth)}
        click.echo(json.dumps(names | asdict(scores)))
        return
    click.echo(f"{model.n_edges} edges found, {true.n_edges} true, among {true.n_spins} columns")
    rows = {
        "precision": (scores.precision, f"{scores.false_positives} wrong"),
        "recall": (scores.recall, f"{scores.false_negatives} missed"),
        "F1": (scores.f1, "the network is exact" if scores.exact else ""),
        "signs right": (scores.sign_accuracy, "of the true edges found"),
        "RSS": (scores.rss, "squared error of a variable's couplings"),
    }
    for name, (value, note) in rows.items():
        click.echo(f"{name:<12} {value:.4f}  {note}".rstrip())


def _loaded(path: Path) -> "IsingModel":
    """The model of a file, or of a fit that is whole."""
    from isingkit.fit_folder import require_whole
    from isingkit.model import IsingModel

    if not path.is_dir():
        return IsingModel.load(path)
    require_whole(path)
    return IsingModel.load(path / "model.npz")
