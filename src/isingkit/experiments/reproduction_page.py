"""One page that shows every figure, what the paper says of it, and what was found."""

import html
import json
from collections.abc import Sequence
from pathlib import Path

from isingkit.experiments import runner
from isingkit.experiments.runner import FIGURES, Row
from isingkit.experiments.snapshots import DEFAULT

TITLE = "The paper, reproduced"
PAGES = ("reproduction.html", "README.md")
_HEAD = 1000  # bytes in which a page has its title
STYLE = """
body {
  font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff;
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
}
img { max-width: 100%; height: auto; background: #fff }
dt { font-weight: 600 }
code { font-size: 0.85em }
li { margin: 0.2rem 0 }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #1b1b1b }
  a { color: #8cf }
}
"""
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\
<meta name="viewport" content="width=device-width"><style>{style}</style></head><body>
<h1>{title}</h1>
<p>Meng, Obuchi and Kabashima, <em>Structure Learning in Inverse Ising Problems Using \
&#8467;<sub>2</sub>-Regularized Linear Estimator</em>: every figure, measured and predicted by \
isingkit.</p>
<nav>{links}</nav>
{sections}
</body></html>
"""
SECTION = """<section id="{name}"><h2>{name}: {title}</h2>
<img src="{name}.{pictures}" alt="{title}. {claim}">
<dl><dt>The paper</dt><dd>{claim}</dd><dt>Found</dt><dd><ul>{agreement}</ul></dd>\
<dt>Table</dt><dd><a href="{name}.csv">{name}.csv</a></dd></dl>
<p><small>{made}; <code>{settings}</code></small></p></section>"""
INTRODUCTION = f"""# {TITLE}

Written by `isingkit reproduce`; every number below was measured in that run.

Where theory and measurement part, finite size is why: compare sizes. Stage two is predicted where \
candidates are
fewer than a fifth of the samples.
"""
MARKDOWN = """## {name}: {title}

![{name}: {title}]({name}.png)

The paper: {claim}

Found:

{agreement}

{made}.
"""


QUICK = "A quick version (--quick), of fewer and smaller worlds than the paper has:"


def others_files(names: Sequence[str], folder: Path) -> list[Path]:
    """Files in the place of those that reproducing these figures writes, which it has not
    written: a README.md of a project, say.
    """
    pages = [folder / page for page in PAGES]
    others = [page for page in pages if page.is_file() and not _is_own_page(page)]
    for name in names:
        if not runner.has_written(name, folder):
            files = [folder / f"{name}.{kind}" for kind in runner.KINDS]
            others += [path for path in files if path.exists()]
    return others


def _is_own_page(page: Path) -> bool:
    head = page.read_bytes()[:_HEAD]
    return f"# {TITLE}".encode() in head or f"<title>{TITLE}</title>".encode() in head


def facts(folder: Path) -> list[Row]:
    """What has been written about each figure in the folder."""
    paths = [folder / f"{name}.json" for name in FIGURES]
    return [json.loads(path.read_text()) for path in paths if path.is_file()]


def html_page(found: list[Row], pictures: str = "svg") -> str:
    """The page; pictures lie beside it."""
    names = [figure["figure"] for figure in found]
    links = " ".join(f'<a href="#{name}">{name}</a>' for name in names)
    sections = "\n".join(_section(figure, pictures) for figure in found)
    return PAGE.format(title=TITLE, style=STYLE, links=links, sections=sections)


def markdown_page(found: list[Row]) -> str:
    """The same for the documentation, with PNG pictures beside it."""
    return "\n".join([INTRODUCTION, *(_markdown_section(figure) for figure in found)])


def _section(figure: Row, pictures: str) -> str:
    agreement = "".join(f"<li>{html.escape(line)}</li>" for line in figure["agreement"])
    return SECTION.format(
        name=figure["figure"],
        pictures=pictures,
        title=html.escape(figure["title"]),
        claim=html.escape(figure["claim"]),
        agreement=agreement,
        made=_made(figure),
        settings=html.escape(json.dumps(figure["configuration"])),
    )


def _markdown_section(figure: Row) -> str:
    return MARKDOWN.format(
        name=figure["figure"],
        title=figure["title"],
        claim=figure["claim"],
        agreement="\n".join(f"- {line}" for line in figure["agreement"]),
        made=_made(figure),
    )


def _made(figure: Row) -> str:
    made = f"isingkit {figure['version']}, seed {figure['seed']}, {figure['date']}"
    sampling = figure["configuration"].get("sampling", DEFAULT)
    made += "" if sampling == DEFAULT else f", sampled as in the {sampling}"
    return f"{QUICK} {made}" if figure.get("quick") else made
