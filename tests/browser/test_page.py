"""Nothing is cut, requested or logged at five widths and in print; filter, sort, links, keyboard and contrast work."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.browser.conftest import EVIL, Opened

WIDTHS = (390, 1024, 1280, 1440, 1920)
PAPER = 718
"""Pixels across an A4 page within its margins, at 96 to the inch."""
FOLDED_BELOW = 20_000
"""Pixels that a page of 400 cases and three releases is high, with its sections folded."""
CUT = """() => [...document.querySelectorAll('.compared td, .compared .w, .card p, .trust dd, .slow li, h1')]
  .filter((each) => each.offsetParent !== null)
  .filter((each) => {
    const box = each.getBoundingClientRect();
    let right = document.documentElement.clientWidth;
    for (let parent = each.parentElement; parent; parent = parent.parentElement)
      if (getComputedStyle(parent).overflowX !== 'visible')
        right = Math.min(right, parent.getBoundingClientRect().right);
    return box.right > right + 1 || box.left < -1 || each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0;
  }).map((each) => each.textContent.trim().slice(0, 60))"""
"""Returns the texts that lie outside the window, or outside a box that scrolls or clips."""
SQUEEZED = """() => [...document.querySelectorAll('.compared td.test, .heat th[scope=row], .sides')]
  .filter((each) => each.offsetParent !== null && each.clientWidth < 100)
  .map((each) => `${each.clientWidth} px: ${each.textContent.trim().slice(0, 60)}`)"""
"""Returns the cells that are so narrow that their names break every few letters."""
SHOWN = "() => [...document.querySelectorAll('#compared tbody')].filter((row) => !row.hidden).map((row) => row.id)"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_requested_or_logged(chromium: Browser, report_page: Path, width: int, *, dark: bool) -> None:
    with Opened(chromium, report_page, width, dark=dark) as opened:
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.page.evaluate(CUT) == []
        assert opened.page.evaluate(SQUEEZED) == []
        assert opened.console == []
        assert opened.requests == [report_page.as_uri()]


def test_nothing_is_cut_on_paper(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, PAPER) as opened:
        opened.page.emulate_media(media="print")
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= PAPER
        assert opened.page.evaluate(CUT) == []
        assert opened.page.evaluate(SQUEEZED.replace("100", "70")) == []
        assert opened.page.locator("#compared thead").is_visible(), "on paper the comparisons are a table"
        assert opened.page.locator("nav").is_hidden()
        assert opened.page.locator("#filter").is_hidden()


def test_dark_mode_has_its_palette(chromium: Browser, report_page: Path) -> None:
    grounds = []
    for dark in (False, True):
        with Opened(chromium, report_page, 1280, dark=dark) as opened:
            colour = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
            grounds.append(sum(int(number) for number in re.findall(r"\d+", colour)))
    light, dark_ground = grounds
    assert (light > 700, dark_ground < 100) == (True, True)


def test_400_cases_and_three_releases_are_a_page_below_20_000_pixels(chromium: Browser, large_page: Path) -> None:
    assert large_page.stat().st_size < 2e6
    for width in WIDTHS[1:]:
        with Opened(chromium, large_page, width) as opened:
            assert opened.page.evaluate("document.documentElement.scrollHeight") < FOLDED_BELOW
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
            assert opened.page.evaluate(CUT) == []
            assert opened.console == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_no_serious_violation(chromium: Browser, report_page: Path, width: int, *, dark: bool) -> None:
    with Opened(chromium, report_page, width, dark=dark) as opened:
        opened.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        violations = Axe().run(opened.page).response["violations"]
        serious = [
            (each["id"], each["nodes"][0]["html"][:120])
            for each in violations
            if each["impact"] in ("serious", "critical")
        ]
        assert serious == []


def test_the_filter_and_the_buttons_narrow_the_table_and_the_link_restores_it(
    chromium: Browser, report_page: Path
) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        page = opened.page
        everything = page.evaluate(SHOWN)
        page.fill("#filter", "fused 2.x")
        filtered = page.evaluate(SHOWN)
        assert 0 < len(filtered) < len(everything)
        assert all("fused" in each and "2.x" in each for each in filtered)
        page.get_by_role("button", name="slower", exact=True).click()
        slower = page.evaluate(SHOWN)
        assert set(slower) < set(filtered)
        assert page.locator("#count").inner_text() == f"{len(slower)} of {len(everything)}"
        address = page.url
    assert "#?q=fused+2.x&verdict=slower" in address
    with Opened(chromium, report_page, 1280, fragment=f"#{address.partition('#')[2]}") as opened:
        assert opened.page.evaluate(SHOWN) == slower


def test_rows_sort_by_change_time_and_test(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        page = opened.page
        sizes = page.evaluate("[...document.querySelectorAll('#compared tbody')].map((row) => +row.dataset.size)")
        assert sizes == sorted(sizes, reverse=True)
        page.select_option("#sort", "time")
        times = page.evaluate("[...document.querySelectorAll('#compared tbody')].map((row) => +row.dataset.time)")
        assert times == sorted(times, reverse=True)
        page.select_option("#sort", "test")
        assert page.evaluate(SHOWN)[0] == min(page.evaluate(SHOWN))


def test_a_link_to_a_row_opens_its_details(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        first = opened.page.evaluate(SHOWN)[0]
    with Opened(chromium, report_page, 1280, fragment=f"#{first}") as opened:
        row = opened.page.locator(f"[id='{first}']")
        assert row.locator("details").get_attribute("open") is not None
        assert row.locator("svg.samples").is_visible()
        assert row.get_by_text("measure again").is_visible()


def test_a_cell_of_the_map_leads_to_its_row(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        link = opened.page.locator("td.h a").first
        target = (link.get_attribute("href") or "")[1:]
        link.click()
        assert opened.page.locator(f"[id='{target}'] details").get_attribute("open") is not None


def test_the_keyboard_reaches_the_answer_the_filter_and_the_details(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        page = opened.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
        for _ in range(120):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "filter":
                break
        page.keyboard.type("nn-lstm")
        assert 0 < len(page.evaluate(SHOWN)) < page.locator("#compared tbody").count()
        page.locator("#compared tbody:not([hidden]) summary").first.focus()
        page.keyboard.press("Enter")
        assert page.locator("#compared details[open]").count() == 1


def test_the_table_is_copied_as_markdown(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
        opened.page.fill("#filter", "lstm-cell-fused torch-1.12/")
        opened.page.get_by_role("button", name="copy as Markdown").click()
        opened.page.wait_for_function("document.getElementById('count').textContent.startsWith('copied')")
        lines = opened.page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[0] == "| test | from → to | time | change | verdict |"
    assert len(lines) == 2 + 4
    assert all(
        line.count(" | ") == 4 and ("faster" in line or "slower" in line or "1.00x" in line) for line in lines[2:]
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_complete_without_scripts(chromium: Browser, report_page: Path, width: int) -> None:
    with Opened(chromium, report_page, width) as opened:
        complete = opened.page.locator("main").inner_text()
    with Opened(chromium, report_page, width, scripts=False) as opened:
        page = opened.page
        assert page.locator("#filter").is_hidden()
        assert page.locator("#copy").is_hidden()
        assert page.locator("#compared tbody").count() > 10
        assert all(each.is_visible() for each in page.locator("#compared tbody, .card, .trust").all())
        assert set(page.locator("main").inner_text().splitlines()) <= set(complete.splitlines())
        summary = page.locator("#compared summary").first
        summary.click()
        assert page.get_by_text("measure again").first.is_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_names_stay_text(chromium: Browser, hostile_page: Path, width: int) -> None:
    with Opened(chromium, hostile_page, width) as opened:
        page = opened.page
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert "owned" not in page.evaluate("[document.title === 'owned', window.owned].join()")
        assert page.title() != "owned"
        assert opened.console == []
        assert opened.requests == [hostile_page.as_uri()]
        assert page.locator("script").count() == 1
        assert page.locator("img, iframe, object").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        text = page.locator("body").inner_text()
        for origin in ("release", "failure", "skip", "cpu", "package", "library"):
            assert f"{origin}{EVIL[:40]}" in text, origin


def test_a_hostile_log_is_a_file_that_the_page_only_links_to(chromium: Browser, hostile_page: Path) -> None:
    logs = list((hostile_page.parent / "logs").iterdir())
    assert any(EVIL.encode()[:30] in log.read_bytes() for log in logs)
    with Opened(chromium, hostile_page, 1280) as opened:
        links = [each.get_attribute("href") for each in opened.page.locator("#failures a").all()]
        assert links
        assert all((hostile_page.parent / unquote(link or "")).exists() for link in links)
        assert f"log{EVIL[:30]}" not in opened.page.content()
