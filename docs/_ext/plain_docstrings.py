r"""Docstrings are written for the terminal; this makes reStructuredText of them.

`[eq:label]` links to the index of equations, bars are bars, Greek letters written as \lambda become
letters, and documented arguments get the types of their annotations, where docstrings leave them.
"""

import inspect
import re
import types
import typing
from typing import Any

LETTERS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "chi": "χ",
    "psi": "ψ",
    "tanh": "tanh",
    "sinh": "sinh",
    "atanh": "atanh",
    "log": "log",
    "sum": "Σ",
    "sqrt": "√",
}
ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303"}


def plain(line: str) -> str:
    """One line of a docstring, outside of examples."""
    pieces = re.split(r"(`[^`]*`|\[eq:[^\]]+\])", line)
    return "".join(_piece(piece) for piece in pieces)


def _piece(text: str) -> str:
    if text.startswith("`"):
        return text
    if text.startswith("[eq:"):
        return f":doc:`{text[1:-1]} </equations>`"
    text = re.sub(r"\\(hat|bar|tilde) ?(\w)", lambda found: found[2] + ACCENTS[found[1]], text)
    text = re.sub(r"\\([a-zA-Z]+)", lambda found: LETTERS.get(found[1], "\\\\" + found[1]), text)
    text = re.sub(r"^(\s*\w)\.$", r"\1\\.", text)  # a letter alone is no list
    text = re.sub(r"(?<=\w)\*(?=\w)", r"\\*", text)
    text = re.sub(r"(\w)_(?!\w)", r"\1\\_", text)
    return text.replace("|", "\\|")


def type_in_words(annotation: Any) -> str:
    """An annotation for people: nothing where it says nothing."""
    if annotation in (inspect.Parameter.empty, Any) or isinstance(annotation, str):
        return ""
    if "_NestedSequence" in str(annotation):
        return "number or array"
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        parts = [type_in_words(part) for part in typing.get_args(annotation)]
        return "" if "" in parts else " or ".join(dict.fromkeys(parts))
    if annotation is type(None):
        return "None"
    origin = typing.get_origin(annotation)
    if origin is not None:
        return "array" if "numpy" in str(annotation) else getattr(origin, "__name__", "").lower()
    return getattr(annotation, "__name__", "")


def with_types(lines: list[str], thing: Any) -> None:
    """Arguments in the section Parameters get their types."""
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return
    if "Parameters" not in lines:
        return
    for place in range(lines.index("Parameters") + 2, len(lines)):
        if lines[place].startswith("---"):
            return
        words = (
            type_in_words(parameters[lines[place]].annotation) if lines[place] in parameters else ""
        )
        if words:
            lines[place] += f" : {words}"


def process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    in_example = False
    for place, line in enumerate(lines):
        in_example = line.lstrip().startswith((">>>", "...")) or (in_example and bool(line.strip()))
        if not in_example:
            lines[place] = plain(line)
    with_types(lines, thing)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process, priority=400)  # before napoleon
    return {"parallel_read_safe": True}
