"""Pictures of reports of six real tables, for real_tables.md: light, dark and on a telephone.

python docs/table_pictures.py FOLDER, where the tables are; needs playwright and chromium.
"""

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).parent / "pictures" / "tables"
TABLES = {
    "adhd_symptoms_355x19.csv": ["--covariates", "group"],
    "scotus_rehnquist2_895x9.csv": [],
    "eucalypts_458x12_9covariates.csv": [
        "--covariates",
        "Rockiness,Sandiness,VallyBotFlat,PPTann,Loaminess,cvTemp,T0,latitude,longitude",
    ],
    "fungi_800x11_12covariates.csv": [
        "--covariates",
        "diam,dc1,dc2,dc3,dc4,dc5,quality3,quality4,ground3,ground4,epi,bark",
    ],
    "hd_spikes_25ms_21174x15.csv.gz": [],
    "senate109_645x102.csv": ["--id-column", "rollcall", "--missing", "impute"],
}
HEIGHT = 1500  # pixels of the page; the pictures have half of them
LOOKS = {"light": (1100, "light"), "dark": (1100, "dark"), "telephone": (390, "light")}
COLOURS = 64


def draw(browser: Browser, report: Path, picture: Path) -> None:
    """The three looks of a report side by side."""
    shots = []
    for width, scheme in LOOKS.values():
        page = browser.new_page(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)
        page.goto(report.as_uri())
        page.wait_for_selector("html[data-ready]")
        shots.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
        page.close()
    sheet = Image.new("RGB", (sum(one.width for one in shots), HEIGHT))
    left = 0
    for one in shots:
        sheet.paste(one, (left, 0))
        left += one.width
    half = sheet.resize((sheet.width // 2, HEIGHT // 2), Image.Resampling.LANCZOS)
    half.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


def main(tables: Path) -> None:
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, options in TABLES.items():
            fit = Path(folder) / name
            command = [sys.executable, "-m", "isingkit", "fit", tables / name, *options, "-o", fit]
            subprocess.run(command, check=True)
            draw(browser, fit / "report.html", HERE / f"{name.partition('.')[0]}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
