"""Writes rare_species.json: rare species, and their network by IsingFit's recipe on glmnet.

    python tests/glmnet/rare_species.py

Needs R with glmnet; rare_species.R has the recipe.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
N_ROWS, N_COLUMNS = 302, 51


def table() -> np.ndarray:
    """Zeros and ones: species of which 0.3 to 30 percent of sites have one, along two gradients."""
    rng = np.random.RandomState(4)
    prevalence = np.exp(rng.uniform(np.log(0.003), np.log(0.3), N_COLUMNS))
    gradients = rng.normal(size=(N_ROWS, 2))
    loadings = rng.normal(size=(2, N_COLUMNS))
    logits = np.log(prevalence / (1 - prevalence)) + gradients @ loadings
    return (rng.uniform(size=logits.shape) < 1 / (1 + np.exp(-logits))).astype(int)


def by_glmnet(values: np.ndarray) -> dict:
    """What rare_species.R prints of a table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        np.savetxt(path, values, fmt="%d", delimiter=",")
        command = ["Rscript", "--vanilla", str(HERE / "rare_species.R"), str(path)]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


if __name__ == "__main__":
    values = table()
    rows = ["".join(map(str, row)) for row in values]
    found = {"rows": rows, **by_glmnet(values)}
    (HERE / "rare_species.json").write_text(json.dumps(found, indent=0) + "\n")
