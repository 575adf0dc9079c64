"""Which code a row was measured with: rows of one world and method are never of two."""

import ast
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
    """Version, and the first digits of a digest of the code that decides the answer."""
    if method == "abess":
        return f"abess {version('abess')}+{_digest(DRAWING)}"
    return f"isingkit {isingkit.__version__}+{_digest((*DRAWING, *LEARNING))}"


def _digest(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in files:
        found.update(path.name.encode() + code_of(path.read_text(encoding="utf-8")).encode())
    return found.hexdigest()[:8]


def code_of(text: str) -> str:
    """What a file does: without comments, docstrings and layout."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        has_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if has_docstring and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
