"""Pictures and values as HTML, for notebooks."""

import base64
import html
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 80  # some 40 kilobytes a picture


class Summary:
    """What prints as words, at a prompt and in a notebook as well."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def picture_html(figure: "Figure", description: str) -> str:
    """The figure as an image inside the page; the description is for those who do not see it."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=_DPI, bbox_inches="tight")
    data = base64.b64encode(picture.getvalue()).decode("ascii")
    return f'<img alt="{html.escape(description)}" src="data:image/png;base64,{data}">'


def values_html(values: Mapping[str, Any]) -> str:
    """A table of names and values."""
    rows = [
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(_text(value))}</td></tr>"
        for name, value in values.items()
    ]
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
