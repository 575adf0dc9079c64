"""The page: one HTML file with everything inside, which opens from disk and asks nothing of the
network.

The viewer is our own, some four hundred lines on plain SVG. Libraries that Python packages carry
were looked at: Bokeh (1.27 megabytes, draws on a canvas, which screen readers and the keyboard
cannot enter), vis-network (0.47 to 0.9 megabytes) and cytoscape.js (canvas as well, inside packages
that bring a notebook or a web server along), plotly (4.8 megabytes). Places are computed in Python,
so the layout never jumps; spins are elements of the page, so that they print, take the focus and
are read aloud; and without JavaScript the page still shows network, tables and charts.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from isingkit import __version__
from isingkit.drawing import clearness, group_order, n_outstanding, widest_edge
from isingkit.edge_table import COLUMNS, CSV_COLUMNS, PAGE_TABLE, PageColumn, interval_text
from isingkit.methods import PAPER, method_named
from isingkit.report import figures
from isingkit.report.contents import Contents, by_strength, colours_of, sealed
from isingkit.report.minima import MOST_MINIMA

WIDTH = 1200  # of the picture, in units of its own
HEIGHT = 800
MARGIN = 60
N_COLOURS = 12
_MOST_MEMBERS = 6  # of a community that are named
_EDGE = 2.3  # units of the picture in a point of a printed one
_ALWAYS = ("a", "b", "coupling")  # columns that a table without edges has, too


def html_page(contents: Contents) -> str:
    """The report as HTML. All texts of the data are escaped."""
    colours = colours_of(contents.spins)
    groups = group_order(colours)
    viewer = resource("pictures.js") + resource("viewer.js")
    columns = [one for one in PAGE_TABLE if one.key in _ALWAYS or one.is_known(contents.edges)]
    rendered = _template().render(
        style=Markup(resource("page.css")),
        viewer=Markup(viewer),
        viewer_hash=_hash(viewer),
        version=__version__,
        contents=asdict(contents),
        title=contents.title,
        facts=contents.facts,
        codings=contents.facts.get("codings", []),
        width=WIDTH,
        height=HEIGHT,
        n_colours=N_COLOURS,
        groups=groups,
        has_groups=any(spin["group"] is not None for spin in contents.spins),
        members=_members_named(contents, groups),
        spins=_drawn_spins(contents, colours, groups),
        ranked_spins=by_strength(contents.spins),
        edges=_drawn_edges(contents, columns),
        n_outstanding=n_outstanding(len(contents.spins), len(contents.edges)),
        edge_columns=columns,
        csv_columns=CSV_COLUMNS,
        doubts=[one["check"] for one in contents.diagnostics if not one.get("levels_hold", True)],
        is_tested=any(edge["q_value"] is not None for edge in contents.edges),
        strongest=_strongest(contents),
        alike=contents.alike,
        effects=contents.effects,
        has_errors=any(effect["q_value"] is not None for effect in contents.effects),
        n_effects=contents.facts.get("n_effects", len(contents.effects)),
        hidden=_hidden(contents),
        landscape=contents.landscape,
        most_minima=MOST_MINIMA,
        **_charts(contents),
        **_method(contents.facts),
    )
    return sealed(rendered)


def _members_named(contents: Contents, communities: Sequence[str]) -> list[dict[str, str]]:
    """Of each community that was found its strongest variables, as words."""
    found = []
    for community in communities[:N_COLOURS]:
        names = [
            one["name"] for one in by_strength(contents.spins) if one.get("community") == community
        ]
        more = len(names) - _MOST_MEMBERS
        words = ", ".join(names[:_MOST_MEMBERS]) + (f" and {more} more" if more > 0 else "")
        found.append({"name": community, "words": words})
    return found


@cache
def _template() -> Template:
    """Read once a process: that takes longer than to write a small page."""
    environment = template_environment()
    environment.filters["signed"] = "{:+.3f}".format
    environment.filters["small"] = lambda value: "" if value is None else f"{value:.2g}"
    environment.filters["error"] = lambda value: "" if value is None else f"{value:.3f}"
    environment.filters["whole_options"] = whole_options
    return environment.from_string(resource("page.html"))


def template_environment() -> Environment:
    """How templates of pages are read: all texts are escaped."""
    return Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def whole_options(text: str) -> Markup:
    """A text with options of the command line that no end of a line divides."""
    escaped = str(escape(text))
    return Markup(re.sub(r"--[a-z][a-z-]*", r'<span class="option">\g<0></span>', escaped))


def resource(name: str) -> str:
    """A file of this folder."""
    return files("isingkit.report").joinpath(name).read_text(encoding="utf-8")


def _charts(contents: Contents) -> dict[str, Any]:
    """Figures, and a sentence on data and model, where both are known."""
    check = contents.fit_check()
    fit_charts = [(chart, Markup(svg)) for chart, svg in figures.data_and_model(contents)]
    return {
        "edge_weights": Markup(figures.edge_weights(contents)),
        "heat_map": Markup(figures.heat_map(contents)),
        "centrality": Markup(figures.centrality(contents)),
        "disconnectivity": Markup(figures.disconnectivity(contents)),
        "fit_charts": fit_charts,
        "check_summary": None if check is None else check.words(),
    }


@dataclass(frozen=True, slots=True)
class _Hidden:
    """What the page shows of hidden causes."""

    shares: list[str]  # of the variance that each explains
    chart: Markup
    # of each spin: name, and a loading and its error for each cause, None where not shown
    rows: list[tuple[str, list[dict[str, Any] | None]]]


def _hidden(contents: Contents) -> _Hidden | None:
    if not contents.loadings:
        return None
    shares = contents.facts["hidden_variance_shares"]
    names = dict.fromkeys(row["variable"] for row in contents.loadings)
    of_cause = {(row["variable"], row["cause"]): row for row in contents.loadings}
    causes = range(1, len(shares) + 1)
    rows = [(name, [of_cause.get((name, cause)) for cause in causes]) for name in names]
    return _Hidden([f"{share:.0%}" for share in shares], Markup(figures.loadings(contents)), rows)


def _method(facts: dict[str, Any]) -> dict[str, Any]:
    """What the method did, with its settings, and what to cite; None of a model by itself."""
    method = method_named(str(facts.get("method", "")).lower())
    settings = facts.get("settings", {})
    threshold = settings.get("threshold")
    is_cut = isinstance(threshold, float | int) and threshold > 0
    is_described = method is not None and method.describes_threshold
    at_least = settings.get("at_least")
    return {
        "description": None if method is None else method.described(settings),
        "reference": None if method is None else method.reference,
        "paper": PAPER,
        "cut": f"{threshold:.3g}" if is_cut and not is_described else None,
        "at_least": f"{at_least:.3g}" if at_least else None,
    }


def _hash(script: str) -> str:
    """By which the page's policy knows the one script that may run."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return base64.b64encode(digest).decode("ascii")


def _drawn_spins(
    contents: Contents, colours: Sequence[str | None], groups: list[str]
) -> list[dict[str, Any]]:
    """Spins with their places in the picture and their sizes, by strength and by degree."""
    largest = float(np.clip(110 / np.sqrt(max(len(contents.spins), 1)), 4, 18))
    radii = {
        name: _radii([spin[name] for spin in contents.spins], largest)
        for name in ("strength", "degree")
    }
    drawn = []
    for k, spin in enumerate(contents.spins):
        group = colours[k]
        look = {
            "px": round(MARGIN + (WIDTH - 2 * MARGIN) * spin["x"], 1),
            "py": round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * spin["y"], 1),
            "by_strength": radii["strength"][k],
            "by_degree": radii["degree"][k],
            "meaning": group,
            "colour": -1 if group is None else groups.index(group) % N_COLOURS,
        }
        drawn.append(spin | look)
    return drawn


def _radii(values: list[float], largest: float) -> list[float]:
    """Radii of discs whose areas grow with the values."""
    most = max([abs(value) for value in values], default=0) or 1
    return [round(largest * (0.35 + 0.65 * float(np.sqrt(one / most))), 2) for one in values]


def _drawn_edges(contents: Contents, columns: Sequence[PageColumn]) -> list[dict[str, Any]]:
    """Edges with their widths and the texts of their cells, one for each column."""
    strongest = max([abs(edge["coupling"]) for edge in contents.edges], default=0.0) or 1.0
    widest = _EDGE * widest_edge(len(contents.edges))
    names = [spin["name"] for spin in contents.spins]
    drawn = []
    for edge in contents.edges:
        ends = {"source": names[edge["source"]], "target": names[edge["target"]]}
        share = abs(edge["coupling"]) / strongest
        stroke = round(widest * (0.06 + 0.94 * share), 2)
        cells = [(_cell(column, edge | ends), column) for column in columns]
        dash = max(2 * stroke, 6.0)
        dashes = f"{dash:.3g} {dash / 2:.3g}"
        look = {"stroke": stroke, "dashes": dashes, "opacity": f"{clearness(share):.2f}"}
        drawn.append(edge | look | {"cells": cells})
    return drawn


def _cell(column: PageColumn, edge: dict[str, Any]) -> str:
    if column.key == "interval":
        return interval_text(edge.get("low"), edge.get("high"))
    (name,) = column.columns
    return COLUMNS[name].text(edge.get(name))


def _strongest(contents: Contents) -> str:
    """The strongest edges as a sentence, for those who do not see the picture."""
    some = contents.edges[:5]
    if not some:
        return "There are no edges."
    names = [spin["name"] for spin in contents.spins]
    listed = ", ".join(
        f"{names[edge['source']]} and {names[edge['target']]} ({edge['coupling']:+.2f})"
        for edge in some
    )
    return f"The strongest: {listed}."
