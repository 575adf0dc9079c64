"""No page may load anything from elsewhere: the build fails if one does."""

import re
from pathlib import Path
from typing import Any

from sphinx.errors import ExtensionError

LOADS = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\bsrc=["'](?:https?:)?//"""
    r"""|<link[^>]*\bhref=["'](?:https?:)?//"""
    r"""|@import|url\(["']?https?:"""
)


def look(app: Any, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    files = [path for pattern in ("*.html", "*.css") for path in folder.rglob(pattern)]
    guilty = [str(path.relative_to(folder)) for path in files if LOADS.search(path.read_text())]
    if guilty:
        raise ExtensionError(f"these pages load something from elsewhere: {', '.join(guilty)}")


def setup(app: Any) -> dict[str, bool]:
    app.connect("build-finished", look)
    return {"parallel_read_safe": True}
