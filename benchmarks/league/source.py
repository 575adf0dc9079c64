"""Which code a row was measured with: rows of one world and method are never of two."""

import functools
import hashlib
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import isingkit

LEAGUE = Path(__file__).parent
PACKAGE = Path(isingkit.__file__).parent
# what samples are drawn by, and what learns from them
DRAWING = (LEAGUE / "worlds.py", LEAGUE / "methods.py", *sorted(PACKAGE.glob("worlds/*.py")))
LEARNING = tuple(
    path
    for pattern in ("estimators/*.py", "_kernels/*.py", "model.py", "packing.py", "gram.py")
    for path in sorted(PACKAGE.glob(pattern))
)


@functools.cache
def source_of(method: str) -> str:
    """Version, and the first digits of a digest of the files that decide the answer."""
    if method == "abess":
        return f"abess {version('abess')}+{_digest(DRAWING)}"
    return f"isingkit {isingkit.__version__}+{_digest((*DRAWING, *LEARNING))}"


def _digest(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in files:
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:8]
