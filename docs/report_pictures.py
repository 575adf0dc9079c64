"""Pictures of a report for these pages, light and dark; needs playwright and chromium."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from isingkit.cli.wording import ranked_warnings
from isingkit.experiments.demo import digits_report

HERE = Path(__file__).parent / "pictures"


def main() -> None:
    """The demo's report from the top, one spin chosen."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        page_file = Path(folder) / "report.html"
        page_file.write_text(digits_report(ranked_warnings), encoding="utf-8")
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 1180, "height": 1240}, color_scheme=scheme)
            page.goto(page_file.as_uri())
            page.fill("#search", "row 3 column 4")
            page.screenshot(path=HERE / f"report_{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
