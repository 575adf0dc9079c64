"""The page: one HTML file with everything inside, which opens from disk and asks nothing of the
network.

The viewer is our own, some two hundred lines on plain SVG. The libraries that Python packages carry
were looked at: Bokeh (1.27 megabytes, draws on a canvas, which screen readers and the keyboard
cannot enter), vis-network (0.47 to 0.9 megabytes) and cytoscape.js (canvas as well, inside packages
that bring a notebook or a web server along), plotly (4.8 megabytes). Places are computed in Python,
so the layout never jumps; spins are elements of the page, so that they print, take the focus and
are read aloud; and without JavaScript the page still shows network, tables and charts.
"""

from dataclasses import asdict
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from isingkit import __version__
from isingkit.report import figures
from isingkit.report.contents import Contents
from isingkit.report.methods import PAPER, REFERENCES, REFITS, WORDS

WIDTH, HEIGHT, MARGIN = 1200, 800, 60
N_COLOURS = 12


def html_page(contents: Contents) -> str:
    """The report as HTML. All texts of the data are escaped."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["signed"] = lambda value: "" if value is None else f"{value:+.3f}"
    environment.filters["short"] = lambda value: "" if value is None else f"{value:.2g}"
    here = files("isingkit.report")
    style, viewer = (
        Markup(here.joinpath(name).read_text(encoding="utf-8"))
        for name in ("page.css", "viewer.js")
    )
    method = str(contents.facts.get("method", "")).lower()
    groups = sorted({spin["group"] for spin in contents.spins if spin["group"] is not None})
    checks = {name: Markup(svg) for name, svg in figures.data_and_model(contents).items()}
    check = contents.fit_check()
    return environment.from_string(here.joinpath("page.html").read_text(encoding="utf-8")).render(
        contents=asdict(contents), title=contents.title, facts=contents.facts, style=style, viewer=viewer, version=__version__,
        spins=_drawn_spins(contents, groups), edges=_drawn_edges(contents), groups=groups, n_colours=N_COLOURS, width=WIDTH,
        height=HEIGHT, heat_map=Markup(figures.heat_map(contents)), centrality=Markup(figures.centrality(contents)), checks=checks,
        check_words=None if check is None else check.words(), method_words=_words(contents, method),
        reference=REFERENCES.get(method),
        paper=PAPER, strongest=_strongest(contents), codings=contents.facts.get("codings", []),
        is_judged=any(edge["q_value"] is not None for edge in contents.edges), cut=_cut(contents, method),
        # pages of earlier versions have none
        has_intervals=any(edge.get("low") is not None for edge in contents.edges),
    )  # fmt: skip


def _words(contents: Contents, method: str) -> str | None:
    """What the method did, as it was set."""
    refit = contents.facts.get("settings", {}).get("refit", "pseudolikelihood")
    words = WORDS.get(method)
    return words if words is None or refit == "pseudolikelihood" else f"{words} {REFITS[refit]}"


def _cut(contents: Contents, method: str) -> str | None:
    """The threshold below which couplings were set to zero, where the method's own words do not
    tell of it.
    """
    threshold = contents.facts.get("settings", {}).get("threshold")
    is_told = method in ("auto", "linear", "ridge", "two-stage")
    return (
        None
        if is_told or not isinstance(threshold, float | int) or threshold <= 0
        else f"{threshold:.3g}"
    )


def _drawn_spins(contents: Contents, groups: list[str]) -> list[dict[str, Any]]:
    """Spins with their places in the picture and their sizes, by strength and by degree."""
    largest = float(np.clip(110 / np.sqrt(max(len(contents.spins), 1)), 4, 18))
    most = {
        name: max([abs(spin[name]) for spin in contents.spins], default=0) or 1
        for name in ("strength", "degree")
    }
    drawn = []
    for spin in contents.spins:
        radius = {
            name: round(largest * (0.35 + 0.65 * float(np.sqrt(spin[name] / most[name]))), 2)
            for name in most
        }
        across, down = (
            MARGIN + (WIDTH - 2 * MARGIN) * spin["x"],
            HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * spin["y"],
        )
        place = {
            "px": round(across, 1),
            "py": round(down, 1),
            "by_strength": radius["strength"],
            "by_degree": radius["degree"],
        }
        colour = groups.index(spin["group"]) % N_COLOURS if spin["group"] is not None else -1
        drawn.append(spin | place | {"colour": colour})
    return drawn


def _drawn_edges(contents: Contents) -> list[dict[str, Any]]:
    """Edges with their names, widths and 95 percent intervals."""
    strongest = max([abs(edge["coupling"]) for edge in contents.edges], default=0.0) or 1.0
    widest = float(np.clip(50 / np.sqrt(max(len(contents.edges), 1)), 1.2, 7))
    drawn = []
    for edge in contents.edges:
        ends = [
            f"{end:+.3f}" if end else "0"
            for end in (edge.get("low"), edge.get("high"))
            if end is not None
        ]
        stroke = round(widest * (0.12 + 0.88 * abs(edge["coupling"]) / strongest), 2)
        names = {
            "a": contents.spins[edge["source"]]["name"],
            "b": contents.spins[edge["target"]]["name"],
        }
        drawn.append(edge | names | {"interval": " to ".join(ends), "stroke": stroke})
    return drawn


def _strongest(contents: Contents) -> str:
    """The strongest edges as a sentence, for those who do not see the picture."""
    some = sorted(contents.edges, key=lambda edge: -abs(edge["coupling"]))[:5]
    names = [spin["name"] for spin in contents.spins]
    told = ", ".join(
        f"{names[edge['source']]} and {names[edge['target']]} ({edge['coupling']:+.2f})"
        for edge in some
    )
    return f"The strongest: {told}." if some else "There are no edges."
