"""Pictures of the report: communities, faint edges, names, dark charts, and what is downloaded."""

import io
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib import image as images

import isingkit as ik
from isingkit.report.contents import contents_in, contents_of_model, with_groups
from isingkit.report.page import html_page

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def model():
    """57 columns in five blocks and 379 edges, as a survey of several scales has them."""
    rng = np.random.default_rng(0)
    block = np.sort(rng.integers(0, 5, 57))
    first, second = np.triu_indices(57, 1)
    is_within = block[first] == block[second]
    chances = np.where(is_within, 6.0, 1.0)
    chosen = rng.choice(len(first), 379, replace=False, p=chances / chances.sum())
    couplings = np.zeros((57, 57))
    signs = np.where(is_within[chosen], 1.6, rng.choice([-1, 1], 379))
    couplings[first[chosen], second[chosen]] = (rng.gamma(1.2, 0.09, 379) + 0.03) * signs
    names = [f"scale {block[k]} item {k}" for k in range(57)]
    return ik.IsingModel(couplings + couplings.T, names=names)


@pytest.fixture(scope="module")
def contents(model):
    return contents_of_model(model, "survey")


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(contents, tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "report.html"
    path.write_text(html_page(contents), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def visit(browser, address):
    """Open the report; a word on the console is a failure: the policy of the page would say so."""
    opened = []

    def open_page(**options):
        page = browser.new_context(accept_downloads=True, **options).new_page()
        page.noticed = []
        page.on("console", lambda message: page.noticed.append(message.text))
        page.on("pageerror", lambda error: page.noticed.append(str(error)))
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        opened.append(page)
        return page

    yield open_page
    for page in opened:
        assert page.noticed == []
        page.context.close()


def downloaded(page, button):
    with page.expect_download() as download:
        page.locator(button).press("Enter")  # by keyboard
    return download.value.suggested_filename, download.value.path().read_bytes()


def test_without_groups_colours_are_communities_and_say_so(contents, model):
    found = ik.communities(model)
    names = [spin["community"] for spin in contents.spins]
    assert names == [f"community {k}" for k in found.numbers]
    page = html_page(contents)
    assert "Colours are communities" in page
    assert ">Community</th>" in page
    grouped = html_page(with_groups(contents, {model.names[0]: "mine"}))
    assert "Colours are communities" not in grouped
    assert "</svg> community 1" not in grouped


def test_a_page_of_an_earlier_version_has_no_communities(contents, tmp_path):
    """Their spins know of none."""
    page = tmp_path / "report.html"
    page.write_text(html_page(contents), encoding="utf-8")
    old = contents_in(page)
    for spin in old.spins:
        del spin["community"]
    assert "Colours are communities" not in html_page(old)


def test_of_many_edges_weak_ones_are_faint_at_first(visit):
    page = visit()
    assert page.locator("#lines .edge.faint").count() == 379 - 85
    words = page.locator("#shown").inner_text()
    assert words.startswith("379 edges; the 85 strongest")
    assert "the others are faint" in words
    assert page.locator("#slider").input_value() == str(379 - 85)
    assert page.locator("#edges tbody tr:visible").count() == 379
    page.select_option("#weak", "hidden")
    assert page.locator("#edges tbody tr:visible").count() == 85
    page.locator("#slider").press("Home")
    assert page.locator("#lines .edge.faint, #lines .edge.off").count() == 0
    assert page.locator("#shown").inner_text() == "379 of 379 edges are shown."


def test_the_eye_finds_the_strongest_edges(visit):
    """The widest and clearest lines are the strongest edges, on top of others, and several times as
    wide as those in the middle.
    """
    page = visit()
    widths, opacities = (
        page.locator("#lines .edge").evaluate_all(
            f"all => all.map(one => parseFloat(getComputedStyle(one).{name}))"
        )
        for name in ("strokeWidth", "strokeOpacity")
    )
    assert widths == sorted(widths)
    assert min(widths[-5:]) > 2.5 * np.median(widths)
    assert opacities == sorted(opacities)
    assert min(opacities[-5:]) > 1.2 * opacities[-60]


NAMED = """() => {
  const box = document.getElementById('network').getBoundingClientRect();
  return [...document.querySelectorAll('#dots .spin:not(.quiet) text')].map(one => {
    const {left, right, top, bottom} = one.getBoundingClientRect();
    const inside = left > box.left - 2 && right < box.right + 2;
    return [left, right, top + 3, bottom - 3, inside, one.textContent];
  });
}"""


@pytest.mark.parametrize("width", [1180, 375])
def test_every_name_is_seen_at_some_zoom_and_none_covers_another(visit, width):
    page = visit(viewport={"width": width, "height": 800})
    boxes = page.evaluate(NAMED)
    assert len(boxes) > (50 if width > 400 else 30)
    assert all(box[4] for box in boxes)
    n_covered = sum(
        min(a[1], b[1]) - max(a[0], b[0]) > 6 and min(a[3], b[3]) - max(a[2], b[2]) > 2
        for k, a in enumerate(boxes)
        for b in boxes[:k]
    )
    assert n_covered == 0
    seen = {box[5] for box in boxes}
    names = page.locator("#dots text").evaluate_all("all => all.map(one => one.textContent)")
    for name in set(names) - seen:
        page.click("#whole")
        if width < 400:
            page.evaluate("document.getElementById('controls-part').open = true")
        page.fill("#search", name)
        for _ in range(3):
            page.click("#closer")
            page.locator("#dots .spin.chosen").focus()
        assert (
            name in {box[5] for box in page.evaluate(NAMED)}
            or page.locator("#dots .spin.chosen text").is_visible()
        )


def test_on_a_telephone_the_picture_stands_upright(visit):
    wide, narrow = visit(), visit(viewport={"width": 375, "height": 700})
    view = (
        "(({width, height}) => [width, height])(document.getElementById('network').viewBox.baseVal)"
    )
    assert wide.evaluate(view) == [1200, 800]
    assert narrow.evaluate(view) == [800, 1200]
    line = narrow.locator("#lines .edge").last.evaluate(
        "one => ['x1', 'y1', 'x2', 'y2'].map(name => one.getAttribute(name)).join()"
    )
    turned = wide.locator("#lines .edge").last.evaluate(
        "one => ['y1', 'x1', 'y2', 'x2'].map(name => one.getAttribute(name)).join()"
    )
    assert [float(one) for one in line.split(",")] == [float(one) for one in turned.split(",")]


def test_charts_are_as_dark_as_the_page(visit):
    """No blue or orange of the light page is left in dark charts, nor anything white."""
    page = visit(color_scheme="dark")
    used = page.locator(".chart path, .chart use").evaluate_all(
        "all => [...new Set(all.map(one => getComputedStyle(one))"
        ".filter(style => style.opacity !== '0').flatMap(style => [style.fill, style.stroke]))]"
    )
    assert "rgb(109, 179, 242)" in used
    for light in ("rgb(33, 102, 172)", "rgb(194, 65, 12)", "rgb(255, 255, 255)"):
        assert light not in used
    assert page.locator(".chart image").count() == 0


def rendered(svg, width, tmp_path):
    """(height, width, 3) as rsvg-convert, a renderer that is no browser, draws it."""
    program = shutil.which("rsvg-convert")
    if program is None:
        pytest.skip("no rsvg-convert is installed (Debian: librsvg2-bin)")
    (tmp_path / "picture.svg").write_bytes(svg)
    command = [program, "-w", str(width), str(tmp_path / "picture.svg")]
    png = subprocess.run(command, capture_output=True, check=True).stdout
    return images.imread(io.BytesIO(png), format="png")[:, :, :3]


def blurred(picture, size=12):
    """Means over squares: letters of another font differ in pixels, not in ink."""
    height, width = (side // size * size for side in picture.shape[:2])
    squares = picture[:height, :width].reshape(height // size, size, width // size, size, 3)
    return squares.mean(axis=(1, 3))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_network_as_svg_looks_elsewhere_as_in_the_page(visit, tmp_path, scheme):
    """A mean difference of 0.012 is let pass. Seen to fail without opacities (0.039), and where the
    copy of a dark page was dark (0.046)."""
    page = visit(color_scheme=scheme, viewport={"width": 1180, "height": 1000})
    name, svg = downloaded(page, "#save-svg")
    assert name == "network.svg"
    root = ElementTree.fromstring(svg)
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert sum(text.startswith("scale") for text in texts) == len(page.evaluate(NAMED))
    assert {"alike (coupling above 0)", "community 1", "community 5"} <= set(texts)
    assert len(list(root.iter(f"{SVG}line"))) >= 379
    assert root.get("width") == "7in"
    families = {one.get("font-family") for one in root.iter()} - {None}
    assert families == {"Helvetica, Arial, sans-serif"}
    assert b"var(" not in svg
    assert b"<image" not in svg
    if scheme == "dark":
        page.click("#theme")
    box = page.locator("#network").bounding_box()
    drawn = rendered(svg, round(box["width"]) - 2, tmp_path)
    shot = page.locator("#network").screenshot()
    seen = images.imread(io.BytesIO(shot), format="png")[1:, 1:, :3]
    height = min(len(drawn), len(seen)) - 4
    width = min(drawn.shape[1], seen.shape[1]) - 4
    difference = np.abs(blurred(drawn[:height, :width]) - blurred(seen[:height, :width]))
    assert difference.mean() < 0.012
    assert difference.max() < 0.35


def test_what_is_hidden_or_zoomed_away_is_not_in_the_picture(visit):
    page = visit()
    page.select_option("#weak", "hidden")
    page.click("#closer")
    _, svg = downloaded(page, "#save-svg")
    root = ElementTree.fromstring(svg)
    assert len(root.find(f"{SVG}g")[0]) == 85
    width = float(root.get("viewBox").split()[2])
    assert width == pytest.approx(1200 / 1.6, abs=1)


def resolution(png):
    """Dots an inch, across and down, that a PNG says it has."""
    place = png.index(b"pHYs") + 4
    across, down = (int.from_bytes(png[k : k + 4], "big") for k in (place, place + 4))
    assert png[place + 8] == 1  # a metre
    return across * 0.0254, down * 0.0254


def test_the_network_as_png_has_300_dots_an_inch(visit):
    name, png = downloaded(visit(color_scheme="dark"), "#save-png")
    assert name == "network.png"
    picture = images.imread(io.BytesIO(png), format="png")  # checks sums of all chunks, too
    assert picture.shape[1] == 2100
    assert resolution(png) == pytest.approx((300, 300), abs=0.1)
    np.testing.assert_allclose(picture[3, 3, :3], 1.0)  # on white, whatever the page is
    assert (picture[:, :, :3].min(axis=2) < 0.5).mean() > 0.005


def test_every_chart_can_be_downloaded_and_drawn_elsewhere(visit, tmp_path):
    page = visit(color_scheme="dark")
    buttons = page.locator(".saving button")
    assert buttons.count() == 2 * page.locator("figure > .chart").count() == 6
    for part in ("edges", "couplings", "centrality"):
        name, svg = downloaded(page, f"#{part}-part .saving button[data-kind=svg]")
        assert name == f"{part}.svg"
        assert b"var(" not in svg
        assert b"currentColor" not in svg
        assert b"DejaVu" not in svg
        assert b"<image" not in svg
        picture = rendered(svg, 700, tmp_path)
        assert picture.min() < 0.4
        np.testing.assert_allclose(picture[2, 2], 1.0)
    name, png = downloaded(page, "#couplings-part .saving button[data-kind=png]")
    assert name == "couplings.png"
    assert images.imread(io.BytesIO(png), format="png").shape[1] == 2100
    assert resolution(png)[0] == pytest.approx(300, abs=0.1)


def test_no_script_but_the_page_s_own_may_run(contents, browser, tmp_path):
    """Handlers in attributes, and a second script: the policy refuses both."""
    page_text = html_page(contents)
    assert "script-src 'sha256-" in page_text
    assert "onsubmit" not in page_text
    planted = "<img src='data:,' onerror='window.hit = 1'><script>window.hit = 2</script></main>"
    path = tmp_path / "planted.html"
    path.write_text(page_text.replace("</main>", planted), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("window.hit") is None
    page.close()
