"""Pictures of the app for these pages; needs playwright and chromium."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent / "pictures"
SURVEY = "person,age,sad,tired,slow,sleeps badly,worried,nervous,group\n" + "".join(
    f"{k},{18 + k * 7 % 60}," + ",".join("01"[k * j % 11 > 4] for j in range(1, 6)) + f",{k % 2}"
    f",{'' if k % 50 == 7 else k // 3 % 2}\n"
    for k in range(1, 401)
)


def main() -> None:
    """Columns of a survey, and what is proposed."""
    command = [sys.executable, "-m", "isingkit", "app", "--no-browser", "--json"]
    app = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert app.stdout is not None
        draw(json.loads(app.stdout.readline())["address"])
    finally:
        app.terminate()


def draw(address: str) -> None:
    with sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1080, "height": 700})
        page.set_default_timeout(60_000)
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        file = {"name": "survey.csv", "mimeType": "text/csv", "buffer": SURVEY.encode()}
        page.set_input_files("#file", file)
        page.wait_for_selector("#choices-part[aria-busy=false]")
        page.screenshot(path=HERE / "app_choices.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
