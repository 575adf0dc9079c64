"""Guides run without a warning, and leave no file behind: else the pages are not made."""

import warnings
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

GUIDES = Path(__file__).parents[1] / "guides"
_BEFORE = sorted(GUIDES.iterdir())
_SHOWN = list(warnings.filters)  # by all that is no guide


def hold(gallery_conf: dict[str, Any], guide: str | None, when: str) -> None:
    """Called before and after each guide, and once without one."""
    warnings.filters[:] = _SHOWN
    if guide is not None and when == "before":
        warnings.simplefilter("error")
    left = sorted(set(GUIDES.iterdir()).difference(_BEFORE))
    if left:
        raise ExtensionError(f"left behind by {guide}: {', '.join(map(str, left))}")
