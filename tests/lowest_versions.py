"""The core of the package, from its wheel, with the lowest versions that pyproject.toml allows.

`make test-lowest` runs it: a venv in a temporary folder; the oldest releases of all that the core
and its extras [io], [app] and [dask] need; the wheel; TESTS, and a few of the page and the cluster.
Takes about a minute of one core.

With `--newest PYTHON ...` (`make test-pythons`) the same runs under other Pythons, with the newest
releases instead.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ("test_spins", "test_packing", "test_gram", "test_model", "test_metrics", "test_fit_folder")
EXTRAS = ("io", "app", "dask")
REQUESTS = ("test_app", "test_dask")  # of these, what has one of these words in its name
WORDS = "token or origin or host or proposed or gram_of"
WITH = ("pytest>=8", "pytest-xdist>=3.5", "hypothesis>=6.100", "polars==1.0")  # to run them
# old releases call what new ones of their own needs, which they do not bound, no longer like
QUIET = ("-W", "ignore::DeprecationWarning")


def lowest(requirements: list[str]) -> list[str]:
    """Each as the lowest release that it allows."""
    return [re.sub(r">=", "==", one) for one in requirements]


def run(*command: object) -> None:
    print("+", *command, flush=True)
    subprocess.run([str(one) for one in command], check=True)


def main(python: str, folder: Path, *, newest: bool) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(one for name in EXTRAS for one in extras[name])]
    run(python, "-m", "venv", folder)
    inside = folder / "bin" / "python"
    install = (inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*install, *(needed if newest else lowest(needed)), *WITH)
    run(*install, "--no-deps", ROOT)
    run(inside, "-m", "pip", "check")
    test = (inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *QUIET)
    run(*test, "-n", "2", *map(file_of, TESTS))
    run(*test, *map(file_of, REQUESTS), "-k", WORDS)


def file_of(name: str) -> Path:
    return ROOT / "tests" / f"{name}.py"


if __name__ == "__main__":
    others = sys.argv[2:] if sys.argv[1:2] == ["--newest"] else []
    for python in others or [sys.executable]:
        with tempfile.TemporaryDirectory() as temporary:
            main(python, Path(temporary) / "venv", newest=bool(others))
