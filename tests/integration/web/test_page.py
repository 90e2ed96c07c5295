"""The status page of a real sidecar, in a real Chromium."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page

from tests.integration.web import page_cluster
from tests.server.sidecar_process import SidecarProcess
from tests.tiers import long

WIDTHS = (400, 1060, 1280)
"""Window sizes: a wall screen, half a screen, a phone."""

CLIPPED = """() => [...document.querySelectorAll(".scroll")]
  .filter(each => each.scrollWidth > each.clientWidth + 1)
  .map(each => each.getAttribute("aria-label"))"""
UNNAMED = """() => [...document.querySelectorAll(".scroll tbody td:not([colspan]):not(:empty)")]
  .filter(each => each.getClientRects().length && !each.classList.contains("wide"))
  .filter(each => !/[a-z]/.test(getComputedStyle(each, "::before").content.replace("none", "")))
  .map(each => each.innerText)"""

BUSY = re.compile("ask again in a moment", re.IGNORECASE)
"""What a page says that the observer of a busy machine does not make in time."""

PATHS = (
    "/?refresh=0",
    "/shares?fair=1",
    "/agents?resource=mem",
    "/explain?kind=framework&name=id-0003",
    "/explain?kind=role&name=eng",
    "/explain?kind=agent&name=rack00-node-5",
    "/shares?role=nobody",
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a sidecar in session that has made decisions."""
    with SidecarProcess() as sidecar, sidecar.channel() as channel:
        module = page_cluster.begin(channel, agents=90)
        page_cluster.set_by_operators(channel)
        assert page_cluster.cycle(module) > 0
        yield f"http://{sidecar.http}"
        module.leave()


Open = Callable[..., Page]


def answered(page: Page) -> Page:
    """Reload a page until the observer has had the time to make it."""
    for _ in range(20):
        if not page.get_by_text(BUSY).count():
            break
        page.reload()
    return page


def follow(page: Page, link: Locator) -> Page:
    """Click a link, and wait for the page behind it: a click alone does not."""
    with page.expect_navigation():
        link.click()
    return answered(page)


@pytest.fixture
def open_page(browser, address) -> Iterator[Open]:
    """Give a function that opens a page; fails on page errors and on requests to other hosts."""
    problems: list[str] = []
    asked: list[str] = []
    contexts = []

    def open_(path: str, **options) -> Page:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", lambda request: problems.append(request.url))
        page.on("request", lambda request: asked.append(request.url))
        assert page.goto(address + path) is not None
        return answered(page)

    yield open_
    for context in contexts:
        context.close()
    # A status with these errors is not the page's fault: unknown role, busy core.
    assert not [text for text in problems if "the server responded with a status" not in text]
    assert not [url for url in asked if not url.startswith((address, "data:"))]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("width", [WIDTHS[0], *long(*WIDTHS[1:])])
def test_pages_fit_the_screen(open_page, path, width, tmp_path):
    page = open_page(path, viewport={"width": width, "height": 800})
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"{path} is {wide} wide"
    for section in page.locator("section:visible").all():
        box = section.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
    assert page.evaluate(CLIPPED) == [], "columns are out of sight"
    if width == WIDTHS[0]:
        assert page.evaluate(UNNAMED) == [], "elements without a visible name"
    page.screenshot(path=tmp_path / "page.png", full_page=True)


def test_names_of_frameworks_are_not_executed(open_page):
    page = open_page("/?refresh=0")
    assert page.get_by_text(page_cluster.HOSTILE).count() >= 1
    assert "stolen" not in page.title()
    assert page.title().endswith("mesos-allocator")


def test_all_is_there_without_javascript(open_page):
    page = open_page("/?refresh=0", java_script_enabled=False)
    rows = page.locator("table tbody tr")
    assert rows.count() > 20
    headings = page.locator("h2").all_inner_texts()
    assert len(headings) >= 6
    assert page.locator(".map a").count() == 90
    assert page.locator("table:visible").count() == page.locator("table").count()


def test_drains_and_the_shadow_policy_have_sections(open_page):
    page = open_page("/?refresh=0", java_script_enabled=False)
    drained = page.locator("#drained tbody tr")
    assert drained.count() == len(page_cluster.DRAINED)
    assert "operator" in drained.first.inner_text()
    shadow = page.locator("#shadow")
    assert f"Shadow policy: {page_cluster.SHADOW}" in shadow.locator("h2").inner_text()
    assert shadow.locator("table").last.locator("tbody tr").count() == len(page_cluster.ROLES)


def test_a_framework_is_found_by_the_form_and_the_map(open_page):
    page = open_page("/?refresh=0", java_script_enabled=False)
    page.get_by_label("of this name or id get nothing?").fill("spark-pi")
    follow(page, page.get_by_role("button", name="Explain"))
    assert page.locator("dl").first.inner_text().count("spark-pi") == 1
    page.go_back()
    follow(page, page.locator(".map a").nth(4))
    assert "agent" in page.locator("header").inner_text()
    assert page.get_by_text("zone").count() == 0
    follow(page, page.get_by_role("link", name="mesos-allocator"))
    follow(page, page.get_by_role("link", name="with fair shares"))
    assert page.locator("svg .fair").count() > 3


def test_the_page_refreshes_until_it_is_held(open_page, address):
    page = open_page("/?refresh=1")
    with page.expect_navigation(timeout=20_000):
        pass
    follow(page, page.get_by_role("link", name="hold"))
    assert page.locator("meta[http-equiv=refresh]").count() == 0


@pytest.mark.parametrize("scheme", ["dark", *long("light")])
def test_text_stands_out_from_what_is_behind_it(open_page, scheme):
    page = open_page("/?refresh=0", color_scheme=scheme)
    contrast = page.evaluate(CONTRAST)
    assert len(contrast) > 100
    poor = [(text, ratio) for text, ratio in contrast if ratio < 4.5]
    assert not poor, poor


CONTRAST = """
() => {
  const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const seen = (color, under) => {
    paint.fillStyle = under; paint.fillRect(0, 0, 1, 1);
    paint.fillStyle = color; paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const style = getComputedStyle(each);
      if (style.backgroundImage !== "none") return null;
      if (style.backgroundColor !== "rgba(0, 0, 0, 0)") return style.backgroundColor;
    }
    return "white";
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const style = getComputedStyle(element);
    if (!own || style.display === "none" || parseFloat(style.fontSize) === 0) continue;
    if (!element.getClientRects().length || element.tagName === "OPTION") continue;
    const back = behind(element);
    if (back === null) continue;
    const a = light(seen(style.color, back)), b = light(seen(back, "white"));
    found.push([element.textContent.trim().slice(0, 40),
                (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]);
  }
  return found;
}
"""
"""The contrast between each text and its background (WCAG)."""
