"""The core of the package, from its wheel, with the lowest versions that pyproject.toml allows.

`make test-lowest` runs it: a venv in a temporary folder, or in the one named, which is kept; the
oldest releases of all that the package and `[io]` need; the wheel; and TESTS. Takes three minutes.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ("test_spins", "test_packing", "test_gram", "test_model", "test_metrics", "test_fit_folder")
WITH = ("pytest>=8", "pytest-xdist>=3.5", "hypothesis>=6.100", "polars==1.0")  # to run them
# old releases call what new ones of their own needs, which they do not bound, no longer like
QUIET = ("-W", "ignore::DeprecationWarning")


def lowest(requirements: list[str]) -> list[str]:
    """Each as the lowest release that it allows."""
    return [re.sub(r">=", "==", one) for one in requirements]


def run(*command: object) -> None:
    print("+", *command, flush=True)
    subprocess.run([str(one) for one in command], check=True)


def main(folder: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["io"]]
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*install, *lowest(needed), *WITH)
    run(*install, "--no-deps", ROOT)
    run(python, "-m", "pip", "check")
    files = [ROOT / "tests" / f"{name}.py" for name in TESTS]
    run(python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *QUIET, *files)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary) / "venv")
