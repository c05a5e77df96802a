"""The site over the history: nothing is cut, requested or logged at six widths and on paper; charts are legible."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.browser.conftest import NIGHTLY, REGRESSION, Opened
from tests.support.needs import slow

PAPER = 718
"""Pixels across an A4 page within its margins, at 96 to the inch."""
PAGES = ("index", "device", "cell", "short cell", "night")
OVERLAPS = """() => [...document.querySelectorAll('.xs, .ys')].flatMap((row) => {
  const all = [...row.querySelectorAll('span')].map((each) => each.getBoundingClientRect());
  const boxes = all.filter((box) => box.width);
  return boxes.flatMap((box, index) => boxes.slice(index + 1).filter((other) =>
    box.left < other.right - 1 && other.left < box.right - 1
    && box.top < other.bottom - 3 && other.top < box.bottom - 3));
}).length"""
"""Returns how many labels of axes lie on others."""
OUTSIDE = """() => [...document.querySelectorAll('td, h1, li, .chart span, figcaption')]
  .filter((each) => each.offsetParent !== null && !each.closest('.wide'))
  .filter((each) => {
    const box = each.getBoundingClientRect();
    return box.right > document.documentElement.clientWidth + 1 || box.left < -1;
  }).map((each) => each.textContent.trim().slice(0, 60))"""
"""JavaScript that returns the start of each text outside the window."""
SCROLLING_TABLES = """() => [...document.querySelectorAll('.wide')]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .map((each) => `${each.getAttribute('aria-label')}: ${each.scrollWidth} of ${each.clientWidth} px`)"""
"""JavaScript that returns the label and the widths of each table that scrolls sideways."""


def page_of(site: Path, name: str) -> Path:
    """Return a page: the index, that of a device, of a cell with many or few points, or of the last night."""
    if name == "index":
        return site / "index.html"
    if name == "night":
        return max((site / "nights").glob("*.html"))
    start = {"device": "device-docker-h200", "cell": NIGHTLY, "short cell": REGRESSION}[name].replace("/", "-")
    return next((site / "trends").glob(f"{start}*.html"))


@pytest.mark.parametrize("width", [390, 1024, 1440, *slow(768, 1280, 1920)])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_requested_or_logged(chromium: Browser, site: Path, name: str, width: int) -> None:
    path = page_of(site, name)
    with Opened(chromium, path, width, dark=width == 1024, scripts=name == "night") as opened:
        page = opened.page
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(SCROLLING_TABLES) == []
        assert page.evaluate(OUTSIDE) == []
        assert page.evaluate(OVERLAPS) == 0
        assert opened.console == []
        assert opened.requests == [path.as_uri()]


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_on_paper(chromium: Browser, site: Path, name: str) -> None:
    with Opened(chromium, page_of(site, name), PAPER) as opened:
        opened.page.emulate_media(media="print")
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= PAPER
        assert opened.page.evaluate(OVERLAPS) == 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_violation(chromium: Browser, site: Path, name: str, *, dark: bool) -> None:
    with Opened(chromium, page_of(site, name), 1280, dark=dark) as opened:
        violations = Axe().run(opened.page).response["violations"]
        serious = [
            (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["any"][:1])
            for each in violations
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == []


def test_the_index_leads_to_the_regression_and_the_device(chromium: Browser, site: Path) -> None:
    with Opened(chromium, site / "index.html", 1280) as opened:
        page = opened.page
        page.locator("#regressions a").click()
        assert page.locator("h1").inner_text() == REGRESSION
        assert page.get_by_text("Confirmed regression").is_visible()
        page.locator("header a").last.click()
        assert page.locator("h1").inner_text() == "docker H200 of bench1"
        assert page.locator("tbody tr").first.get_by_text("confirmed regression").is_visible()


def test_the_strip_and_the_points_lead_to_a_night_whose_run_is_gone(chromium: Browser, site: Path) -> None:
    with Opened(chromium, site / "index.html", 1440) as opened:
        page = opened.page
        page.locator(".strip .regressed a").click()
        assert page.locator("h1").inner_text() == "Night of 2026-10-30 02:30 UTC"
        assert "1 regression confirmed" in page.locator("header").inner_text()
        assert "no longer kept" in page.locator("header").inner_text()
        plots = [each.bounding_box() for each in page.locator("details.row .plot").all()]
        assert plots
        assert all(box and box["width"] > 200 for box in plots), "the plot of a run, not that of a trend"
        page.locator("#changes a").first.click()
        assert page.locator("h1").inner_text() == REGRESSION
        dot = page.locator(".chart a").last.locator("path")
        dot.dispatch_event("click")
        assert page.locator("h1").inner_text() == "Night of 2026-10-30 02:30 UTC"
        page.locator("header a").click()
        assert page.locator("h1").inner_text() == "Releases over time"


def test_the_parts_of_a_chart_are_visible_at_their_sizes(chromium: Browser, site: Path) -> None:
    with Opened(chromium, page_of(site, "short cell"), 390) as opened:
        page = opened.page
        dot = page.locator(".chart .dot").first
        assert page.evaluate("(dot) => getComputedStyle(dot).strokeWidth", dot.element_handle()) == "5px"
        ends = page.locator(".chart .bar").first.bounding_box()
        assert ends is not None
        assert ends["height"] > 10
        sizes = page.evaluate(
            "[...document.querySelectorAll('.chart span')].map((e) => parseFloat(getComputedStyle(e).fontSize))"
        )
        assert min(sizes) >= 11
    with Opened(chromium, page_of(site, "cell"), 1280) as opened:
        page = opened.page
        for style in ("interval", "level", "shift.slower", "accepted", "release"):
            assert page.locator(f".chart .{style}").count() > 0, style
        assert page.get_by_text("the new check of shapes").is_visible()
        labels = page.locator(".chart").first.locator(".shifts").inner_text()
        assert "10 % slower" in labels, labels
