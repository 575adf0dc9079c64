"""The report of 500 spins and 3,000 edges in a browser: seconds to open it and move its slider."""

import shutil
import tempfile
from pathlib import Path

import networkx

import isingkit as ik
from isingkit.report.contents import contents_of_model
from isingkit.report.page import html_page
from side_by_side import Claim, within

SPINS = 500
EDGES = 3000
ROUNDS = 9
# From one input of the slider to the frame that shows it.
MOVE = """(value) => new Promise((done) => {
  const slider = document.getElementById("slider"), start = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => setTimeout(() => done((performance.now() - start) / 1000)));
})"""


def measure() -> list[Claim]:
    """Promises in seconds, for people who wait: 3 to open, a tenth to move."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium is installed: the report was not measured")
        return []
    from playwright.sync_api import sync_playwright

    graph = networkx.gnm_random_graph(SPINS, EDGES, seed=1)
    graph.add_weighted_edges_from((a, b, 0.01 + 1e-5 * k) for k, (a, b) in enumerate(graph.edges))
    model = ik.IsingModel(networkx.to_scipy_sparse_array(graph))
    page_text = html_page(contents_of_model(model, "large"))
    opened = []
    moved = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        path = Path(folder) / "report.html"
        path.write_text(page_text, encoding="utf-8")
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for number in range(ROUNDS):
            page = browser.new_page()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready]")
            opened.append(page.evaluate("performance.now() / 1000"))
            values = range(100 * number, EDGES, 700)
            moved.append(max(page.evaluate(MOVE, str(value)) for value in values))
            assert page.locator("#lines .edge").count() == EDGES
            page.close()
        browser.close()
    size = f"{SPINS} spins, {EDGES} edges, {len(page_text) / 1e6:.1f} MB"
    opening = f"report of {size}: from opening to an answer"
    moving = "the same: slowest of its slider's moves"
    return [
        within(opening, "3 seconds", opened, [3.0] * ROUNDS, at_most=1),
        within(moving, "a tenth of a second", moved, [0.1] * ROUNDS, at_most=1),
    ]


if __name__ == "__main__":
    for claim in measure():
        print(claim)
