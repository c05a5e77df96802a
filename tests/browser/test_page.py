"""Nothing is cut, requested or logged at five widths and in print; filter, sort, links, keyboard and contrast work."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.browser.conftest import EVIL, Opened
from tests.support.needs import slow

WIDTHS = (390, 768, 1024, 1440, 1920)
PAPER = 718
"""Pixels across an A4 page within its margins, at 96 to the inch."""
FOLDED_BELOW = 20_000
"""Pixels that a page of 400 cases and three releases is high, with its sections folded."""
CUT = """() => [...document.querySelectorAll('.name, .times, .change, .numbers dd, .trust li, .race tbody th, h1, h2')]
  .filter((each) => each.offsetParent !== null)
  .filter((each) => {
    const box = each.getBoundingClientRect();
    let right = document.documentElement.clientWidth;
    for (let parent = each.parentElement; parent; parent = parent.parentElement)
      if (getComputedStyle(parent).overflowX !== 'visible')
        right = Math.min(right, parent.getBoundingClientRect().right);
    const wide = each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0;
    return box.right > right + 1 || box.left < -1 || wide && getComputedStyle(each).display !== 'inline';
  }).map((each) => each.textContent.trim().slice(0, 60))"""
"""Returns the texts that lie outside the window, or outside a box that scrolls or clips."""
SQUEEZED = """() => [...document.querySelectorAll('.name, .change, .plot, .heat th[scope=row]')]
  .filter((each) => each.offsetParent !== null && getComputedStyle(each).display !== 'inline')
  .filter((each) => each.clientWidth < 100)
  .map((each) => `${each.clientWidth} px: ${each.textContent.trim().slice(0, 60)}`)"""
"""Returns the cells that are so narrow that their names break every few letters."""
SHOWN = "() => [...document.querySelectorAll('details.row')].filter((row) => !row.hidden).map((row) => row.id)"
LAST_ROW = (
    "() => Math.max(...[...document.querySelectorAll('details.row')].map((e) => e.getBoundingClientRect().bottom))"
)
OVERLAPS = """() => [...document.querySelectorAll('.forest.head')].flatMap((head) => {
  const boxes = [...head.querySelectorAll('text')].map((each) => each.getBoundingClientRect());
  return boxes.flatMap((box, index) => boxes.slice(index + 1).filter((other) =>
    box.left < other.right && other.left < box.right));
}).length"""
"""Returns how many labels of the axes lie on others."""
COLUMNS = """() => [...new Set([...document.querySelectorAll('summary.line')].map((row) =>
  getComputedStyle(row).gridTemplateColumns.split(' ').length))]"""
"""Returns the numbers of columns that the rows of the plots have."""
SCREENS = {1440: 1.6, 390: 4.0}
"""Width of a window -> screens until the last of 28 comparisons, at most."""


@pytest.mark.parametrize("width", [390, 1024, 1440, *slow(768, 1920)])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["report_page", "quick_page", "own_page"])
def test_nothing_is_cut_requested_or_logged(
    chromium: Browser, request: pytest.FixtureRequest, name: str, width: int, *, dark: bool
) -> None:
    path: Path = request.getfixturevalue(name)
    with Opened(chromium, path, width, dark=dark) as opened:
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.page.evaluate(CUT) == []
        assert opened.page.evaluate(SQUEEZED) == []
        assert opened.page.evaluate(OVERLAPS) == 0
        assert opened.console == []
        assert opened.requests == [path.as_uri()]


@pytest.mark.parametrize(("width", "screens"), SCREENS.items())
def test_28_comparisons_are_seen_within_few_screens(
    chromium: Browser, quick_page: Path, width: int, screens: float
) -> None:
    with Opened(chromium, quick_page, width) as opened:
        assert opened.page.locator("details.row").count() == 28
        height = opened.page.evaluate("innerHeight")
        assert opened.page.evaluate(LAST_ROW) <= screens * height


def test_each_number_stands_once(chromium: Browser, quick_page: Path) -> None:
    with Opened(chromium, quick_page, 1440) as opened:
        page = opened.page
        text = " ".join(page.locator("body").inner_text().split())
        on_top = page.locator(".numbers").inner_text()
        rows = page.locator("details.row summary").all()
        for row in rows:
            times, change = row.locator(".times").inner_text(), row.locator(".change b").inner_text()
            assert text.count(times) == 1, times
            ends = row.locator(".ends").inner_text()
            alike = sum(each.locator(".change").inner_text().startswith(f"{change} {ends}") for each in rows)
            assert text.count(f"{change} {ends}") == alike, change
            assert text.count(ends) == sum(each.locator(".ends").inner_text() == ends for each in rows), ends
        assert sum(on_top.count(change) for change in {row.locator(".change b").inner_text() for row in rows}) == 2


def test_the_axis_reaches_the_ends_of_the_intervals_or_an_arrow_shows_that_one_is_cut(
    chromium: Browser, quick_page: Path
) -> None:
    with Opened(chromium, quick_page, 1440) as opened:
        outside = opened.page.evaluate("""() => [...document.querySelectorAll('details.row .forest')].filter((svg) => {
          const box = svg.getBoundingClientRect();
          const bars = [...svg.querySelectorAll('line.i')].map((each) => each.getBoundingClientRect());
          const cut = bars.some((each) => each.left < box.left + 3 || each.right > box.right - 3);
          return cut !== (svg.querySelector('.cut') !== null);
        }).length""")
        assert outside == 0
        labels = opened.page.locator(".forest.head").first.locator("text").all_text_contents()
        assert "same" in labels
        assert labels[-1] == "8x"


def test_a_row_whose_base_did_not_settle_says_so(chromium: Browser, quick_page: Path) -> None:
    with Opened(chromium, quick_page, 1440) as opened:
        marked = opened.page.locator("details.row:has(.mark.serious)")
        labels = marked.locator(".name").all_inner_texts()
        assert labels == ["LSTM, 1 layer of 128 · nn.LSTM · forward"] * 2
        assert marked.first.locator(".mark").inner_text() == "! PyTorch 1.0.0 did not settle"


def test_tests_without_a_comparison_and_the_fastest_frameworks_are_named(chromium: Browser, quick_page: Path) -> None:
    with Opened(chromium, quick_page, 1440) as opened:
        page = opened.page
        assert page.locator("#alone summary").inner_text().startswith("10 more tests compared with nothing")
        assert page.locator("#alone li").count() == 10
        races = page.locator(".race").all()
        assert len(races) == 6
        caption = page.locator(".race", has_text="Language model")
        assert caption.locator("tbody th").first.inner_text() == "PyTorch 2.13.0 nn.LSTM"


def test_a_network_of_two_rows_is_two_rows_and_a_sentence(chromium: Browser, own_page: Path) -> None:
    with Opened(chromium, own_page, 1440) as opened:
        page = opened.page
        assert page.locator("details.row .name").all_inner_texts() == ["nanogpt · forward", "nanogpt · train"]
        assert page.locator(".numbers, #filter").count() == 0
        assert "smallest change this run can see" in page.locator("#answer > p").inner_text().lower()
        assert page.evaluate(LAST_ROW) < page.evaluate("innerHeight") / 2


def test_nothing_is_cut_on_paper(chromium: Browser, quick_page: Path) -> None:
    with Opened(chromium, quick_page, PAPER) as opened:
        opened.page.emulate_media(media="print")
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= PAPER
        assert opened.page.evaluate(CUT) == []
        assert opened.page.evaluate(SQUEEZED.replace("100", "70")) == []
        columns = opened.page.evaluate(COLUMNS)
        assert columns == [4], "on paper the comparisons are a table"
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
        page.fill("#filter", "nn.LSTM 2.x")
        filtered = page.evaluate(SHOWN)
        assert 0 < len(filtered) < len(everything)
        assert all("lstm" in each and "2.x" in each for each in filtered)
        page.get_by_role("button", name="slower", exact=True).click()
        slower = page.evaluate(SHOWN)
        assert set(slower) < set(filtered)
        assert page.locator("#count").inner_text() == f"{len(slower)} of {len(everything)}"
        address = page.url
    assert "#?q=nn.LSTM+2.x&verdict=slower" in address
    with Opened(chromium, report_page, 1280, fragment=f"#{address.partition('#')[2]}") as opened:
        assert opened.page.evaluate(SHOWN) == slower


def test_rows_sort_by_change_time_and_test(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        first = opened.page.locator(".pair").first
        assert first.locator("details.row").count() > 4
        for order, value in (("change", "ratio"), ("time", "time")):
            opened.page.select_option("#sort", order)
            values = first.evaluate(f"(pair) => [...pair.querySelectorAll('.row')].map((row) => +row.dataset.{value})")
            assert values == sorted(values, reverse=True)
        opened.page.select_option("#sort", "test")
        names = first.evaluate("(pair) => [...pair.querySelectorAll('.row')].map((row) => row.id)")
        assert names[0] == min(names)


def test_a_link_to_a_row_opens_its_details(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        first = opened.page.evaluate(SHOWN)[0]
    with Opened(chromium, report_page, 1280, fragment=f"#{first}") as opened:
        row = opened.page.locator(f"[id='{first}']")
        assert row.get_attribute("open") is not None
        assert row.locator("svg.samples").is_visible()
        assert row.get_by_text("measure again").is_visible()


def test_a_cell_of_the_map_leads_to_its_row(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        opened.page.locator("#map summary").click()
        link = opened.page.locator("td.h a").first
        target = (link.get_attribute("href") or "")[1:]
        link.click()
        assert opened.page.locator(f"[id='{target}']").get_attribute("open") is not None


def test_the_keyboard_reaches_the_answer_the_filter_and_the_details(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        page = opened.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
        for _ in range(120):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "filter":
                break
        page.keyboard.type("nn.lstm")
        assert 0 < len(page.evaluate(SHOWN)) < page.locator("details.row").count()
        page.locator("details.row:not([hidden]) summary").first.focus()
        page.keyboard.press("Enter")
        assert page.locator("details.row[open]").count() == 1


def test_rows_are_copied_with_names_and_ids(chromium: Browser, report_page: Path) -> None:
    with Opened(chromium, report_page, 1280) as opened:
        opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
        opened.page.fill("#filter", "lstm-cell-fused torch-1.12/")
        opened.page.get_by_role("button", name="copy as Markdown").click()
        opened.page.wait_for_function("document.getElementById('count').textContent.startsWith('copied')")
        lines = opened.page.evaluate("navigator.clipboard.readText()").splitlines()
        row = opened.page.locator("details.row:not([hidden])").first
        row.locator("summary").click()
        row.locator(".copy-row").click()
        row.get_by_text("copied").wait_for()
        sentence = opened.page.evaluate("navigator.clipboard.readText()")
    assert lines[0] == "| test | id | from → to | time | change | 95 % interval | notes |"
    assert len(lines) == 2 + 4
    assert len({line.split(" | ")[1] for line in lines[2:]}) == 4
    for line in lines[2:]:
        assert " · nn.LSTMCell · " in line
        assert "torch-1.12/lstm-cell-fused/" in line
    assert sentence.startswith("PyTorch 1.0 → 1.12: LSTM, 1 layer of ")
    assert sentence.endswith("/fp32]")
    assert "venv, measured " in sentence, "a sentence says what it was measured on, and when"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_complete_without_scripts(chromium: Browser, report_page: Path, width: int) -> None:
    with Opened(chromium, report_page, width) as opened:
        complete = opened.page.locator("main").inner_text()
    with Opened(chromium, report_page, width, scripts=False) as opened:
        page = opened.page
        assert page.locator("#filter").is_hidden()
        assert page.locator("#copy").is_hidden()
        assert page.locator("details.row").count() > 10
        assert all(each.is_visible() for each in page.locator("details.row, .numbers div, .trust").all())
        assert set(page.locator("main").inner_text().splitlines()) <= set(complete.splitlines())
        summary = page.locator("details.row summary").first
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
