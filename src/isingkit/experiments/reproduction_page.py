"""One page that shows every figure, what the paper says of it, and what was found."""

import html
import json
from pathlib import Path

from isingkit.experiments.runner import FIGURES, Row

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
img { max-width: 100%; height: auto; background: #fff } dt { font-weight: 600 } code { font-size: 0.85em } li { margin: 0.2rem 0 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1b1b1b } a { color: #8cf } }
"""


def facts(folder: Path) -> list[Row]:
    """What has been written about each figure in the folder."""
    return [
        json.loads((folder / f"{name}.json").read_text())
        for name in FIGURES
        if (folder / f"{name}.json").is_file()
    ]


def html_page(found: list[Row], pictures: str = "svg") -> str:
    """The page; pictures lie beside it."""
    sections = "\n".join(_section(figure, pictures) for figure in found)
    links = " ".join(f'<a href="#{figure["figure"]}">{figure["figure"]}</a>' for figure in found)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>The paper, reproduced</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>\n'
        f"<h1>The paper, reproduced</h1>\n<p>Meng, Obuchi and Kabashima, <em>Structure Learning in Inverse Ising Problems Using "
        f"&#8467;<sub>2</sub>-Regularized Linear Estimator</em>: every figure, measured and predicted by isingkit.</p>\n"
        f"<nav>{links}</nav>\n"
        f"{sections}\n</body></html>\n"
    )


def markdown_page(found: list[Row]) -> str:
    """The same for the documentation, with PNG pictures beside it."""
    lines = ["# The paper, reproduced", "", "Written by `isingkit reproduce`; every number below was measured in that run.", "",
             "Where theory and measurement part, finite size is why: compare sizes. Stage two is predicted where candidates are",
             "fewer than a fifth of the samples.", ""]  # fmt: skip
    for figure in found:
        name = figure["figure"]
        lines += [
            f"## {name}: {figure['title']}",
            "",
            f"![{name}: {figure['title']}]({name}.png)",
            "",
        ]
        lines += [
            f"The paper: {figure['claim']}",
            "",
            "Found:",
            "",
            *(f"- {line}" for line in figure["agreement"]),
            "",
        ]
        lines += [f"isingkit {figure['version']}, seed {figure['seed']}, {figure['date']}.", ""]
    return "\n".join(lines)


def _section(figure: Row, pictures: str) -> str:
    name, title = figure["figure"], html.escape(figure["title"])
    agreement = "".join(f"<li>{html.escape(line)}</li>" for line in figure["agreement"])
    settings = html.escape(json.dumps(figure["configuration"]))
    claim, made = (
        html.escape(figure["claim"]),
        f"isingkit {figure['version']}, seed {figure['seed']}, {figure['date']}",
    )
    return (
        f'<section id="{name}"><h2>{name}: {title}</h2>\n<img src="{name}.{pictures}" alt="{title}. {claim}">\n'
        f"<dl><dt>The paper</dt><dd>{claim}</dd><dt>Found</dt><dd><ul>{agreement}</ul></dd>"
        f'<dt>Table</dt><dd><a href="{name}.csv">{name}.csv</a></dd></dl>\n'
        f"<p><small>{made}; <code>{settings}</code></small></p></section>"
    )
