"""Decisions as lines of text: what a table leaves open, columns that ask the same together."""

import textwrap
from collections.abc import Sequence

from isingkit.exceptions import short
from isingkit.tables.decisions import Decision

_ENOUGH = 3  # columns that ask the same, to be told together
_WIDTH = 100
_UNBROKEN = "\0"  # a space within a name, where no line ends
NOTHING_LEFT = (
    "no two columns of two values would be left: if some values stand for no answer, name them: "
    "--missing-codes VALUE,VALUE; else make two values of each column in the file"
)


def decision_lines(found: Sequence[Decision]) -> list[list[str]]:
    """Of each thing to decide its lines, the first of which says what it is."""
    alike: dict[tuple[str, ...], list[Decision]] = {}
    for one in found:
        key = (one.column,) if one.name is None else one.asked()
        alike.setdefault(key, []).append(one)
    lines = []
    for several in alike.values():
        if len(several) < _ENOUGH:
            lines += [[one.line()] for one in several]
        else:
            lines.append(_lines_of_many(several))
    return lines


def _lines_of_many(alike: Sequence[Decision]) -> list[str]:
    """What these columns have in common, and their names."""
    first = alike[0]
    options = first.asked()[: len(first.options)]
    are_same = all(one.seen == first.seen for one in alike)
    seen = first.seen if are_same else f"such as {first.column}, which holds {first.seen}"
    names = [short(one.name or "").replace(" ", _UNBROKEN) for one in alike]
    wrapped = textwrap.wrap(
        ", ".join(names), _WIDTH, break_long_words=False, break_on_hyphens=False
    )
    heading = f"{len(alike)} columns: {seen}: {' or '.join(options)}"
    return [heading, *(f"  {line.replace(_UNBROKEN, ' ')}" for line in wrapped)]
