"""The page of a comparison of groups: networks side by side, what differs, and tables."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from isingkit import __version__
from isingkit.groups.comparison import GroupComparison, network_panels, shared_couplings
from isingkit.groups.summary import (
    centrality_cells,
    edge_cells,
    heading,
    overall_cells,
    verdict,
)
from isingkit.network_layout import positions
from isingkit.report import figures
from isingkit.report.page import resource, template_environment

_SCORE = (
    "One network is learnt of all rows. By how much a coupling differs in a group is, to first "
    "order, a sum over its rows, cleared of the group's own fields and other couplings. Rows are "
    "relabelled to see how large such differences get where groups mean nothing."
)
_EQUAL = " Groups were taken to have the same fields: a difference may be one of fields."
_NCT = (
    "The Network Comparison Test (van Borkulo et al. 2022): both networks are learnt by eLasso, "
    "again for every relabelling of the rows. Couplings times 4 are the weights of IsingFit."
)


def group_page(found: GroupComparison, title: str) -> str:
    """The comparison as HTML. All texts of the data are escaped."""
    panels = network_panels(found)
    places = positions(shared_couplings(found))
    environment = template_environment()
    template = environment.from_string(resource("group_page.html"))
    return template.render(
        style=Markup(resource("page.css")),
        version=__version__,
        title=title,
        labels=found.labels,
        verdict=verdict(found),
        heading=heading(found),
        networks=Markup(figures.networks(panels, found.names, places)),
        description=_description(found),
        table=_html_table,
        overall=overall_cells(found),
        edges=edge_cells(found),
        centralities=centrality_cells(found),
        n_differing=len(found.differing),
        method=_method(found),
    )


def _method(found: GroupComparison) -> str:
    if found.method == "nct":
        return _NCT
    return _SCORE + (_EQUAL if found.fields == "equal" else "")


def _description(found: GroupComparison) -> str:
    """The picture in words, for those who do not see it."""
    counts = [f"{label}: {found.models[label].n_edges} edges" for label in found.labels]
    pairs = [
        f"{row['source']} and {row['target']} ({row['difference']:+.2f})"
        for row in found.differing[:5]
    ]
    differing = f"The surest differences: {', '.join(pairs)}." if pairs else "No pair differs."
    return f"Networks of {', '.join(counts)}. {differing}"


def _html_table(name: str, rows: Sequence[Sequence[str]], n_texts: int) -> Markup:
    """A table whose first row is its head, and whose first cells are texts."""
    head, *body = rows
    titles = Markup("").join(_cell("th", text, k >= n_texts) for k, text in enumerate(head))
    lines = []
    for row in body:
        cells = [_cell("td", text, k >= n_texts) for k, text in enumerate(row)]
        lines.append(Markup("<tr>{}</tr>").format(Markup("").join(cells)))
    parts = (name, titles, Markup("\n").join(lines))
    return Markup('<table id="{}"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>').format(
        *parts
    )


def _cell(tag: str, text: str, is_number: bool) -> Markup:
    kind = Markup(' class="number"') if is_number else Markup("")
    return Markup("<{0}{1}>{2}</{0}>").format(tag, kind, escape(text))
