"""Trends for a terminal: they fit, and are legible without colour."""

import re
from dataclasses import replace
from typing import Any

import pytest

from runner.history.entries import RunEntry, SeriesPoint
from runner.report.formatting import DASH
from runner.report.history_chart import HEIGHT, ChartMark, chart, sparkline
from runner.report.history_text import CellSeries, list_text, trend_text
from tests.support.histories import CELL, DEVICE, level, measured, night


def point(entry: RunEntry) -> SeriesPoint:
    """Return the point of the only cell of a run."""
    (cell,) = entry.cells
    fields: dict[str, Any] = {name: getattr(cell, name, getattr(entry, name, None)) for name in SeriesPoint._fields}
    return SeriesPoint(**{**fields, "device": DEVICE})


def trend(*seconds: float, **changes: Any) -> CellSeries:
    """Return the trend of nights with such ratios."""
    points = tuple(point(night(number, measured(seconds=value, **changes))) for number, value in enumerate(seconds))
    return CellSeries(cell=CELL, device=DEVICE, points=points)


def mark(value: float, **changes: Any) -> ChartMark:
    plain = ChartMark(value=value, low=None, high=None, verdict="", date="2026-01-01", release="2.9.1")
    return replace(plain, **changes)


STEP = trend(*[0.5] * 40, *[0.55] * 40)


@pytest.mark.parametrize("width", [60, 72, 80, 88, 100, 120, 160])
@pytest.mark.parametrize("count", [1, 2, 7, 80])
def test_everything_fits_the_width(width: int, count: int) -> None:
    shown = replace(STEP, points=STEP.points[-count:], levels=(level("20260101-023000-ab12"),))
    text = trend_text(shown, width, colour=False) + list_text(
        [shown, replace(shown, device="venv EPYC")], width, colour=False
    )
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert "\x1b[" in trend_text(shown, width, colour=True)


def test_a_trend_has_the_numbers_of_each_night() -> None:
    lines = trend_text(trend(0.5, 0.6), 120, colour=False).splitlines()
    assert lines[0] == CELL
    assert "time as a share of that of torch-1.0, measured alternately in the same run" in lines
    assert re.split(r"\s{2,}", lines[-1].strip()) == [
        *("2026-01-02", "2.9.1", "600", f"594 {DASH} 606", "1.67x faster", "1.65x to 1.68x", "faster")
    ]


def test_narrow_terminals_lose_intervals_and_keep_verdicts() -> None:
    assert trend_text(trend(0.5), 60, colour=False).splitlines()[-1].split() == [
        *("2026-01-01", "2.9.1", "500", "2.00x", "faster", "faster")
    ]


def test_the_newest_are_listed_and_the_others_counted() -> None:
    text = trend_text(STEP, 100, colour=False, shown=3)
    assert len(re.findall(r"^2026-\S+ +2\.9\.1", text, re.MULTILINE)) == 3
    assert "77 earlier runs not listed: --last 80" in text


def test_without_ratios_the_trend_is_of_times() -> None:
    alone = trend(0.001, 0.002, base="", ratio=None, ratio_low=None, ratio_high=None, verdict="")
    text = trend_text(alone, 80, colour=False)
    assert "median of a step in ms" in text
    assert "against the base" not in text
    assert "2.00x slower" in list_text([alone], 100, colour=False)


def test_ratios_to_another_base_are_another_series() -> None:
    """The base of a confirmation is the environment as it was, and its ratio says nothing of the level."""
    before = replace(trend(0.5, 0.5), points=trend(0.9, 0.9, base="torch-0.4/rest").points)
    confirmed = trend(1.1).points[0]._replace(kind="confirmation", base="torch-2.x@20260101-023000-ab12/rest")
    shown = replace(before, points=(*before.points, *trend(0.5, 0.51, 0.5).points, confirmed))
    assert [mark.value for mark in shown.marks] == [0.5, 0.51, 0.5]
    listed = list_text([shown], 100, colour=False).splitlines()[1]
    assert re.findall(r"\d+ ms|\S+ %", listed) == ["500 ms", "500 ms", "0.0 %"], "of the runs with the newest base"
    text = trend_text(shown, 100, colour=False)
    assert "time as a share of that of torch-1.0" in text
    assert "1 confirmation not shown" in text
    assert [line.split()[-1] for line in text.splitlines()[-6:-1]] == [*["torch-0.4"] * 2, *["torch-1.0"] * 3]


def test_an_accepted_level_has_its_reason_and_shows_no_escape() -> None:
    shown = replace(trend(0.5), levels=(level("run-a", reason="why\x1b[31m", person="ann"),))
    text = trend_text(shown, 100, colour=False)
    assert "accepted: run run-a on 2026-03-01 by ann: why\\x1b[31m" in text


def test_a_list_starts_with_what_became_slower() -> None:
    slower, faster = replace(trend(0.5, 0.6), cell="a/b/c/d/e/slow"), replace(trend(0.5, 0.4), cell="a/b/c/d/e/fast")
    lines = list_text([faster, slower], 120, colour=False).splitlines()
    assert [line.split()[0] for line in lines[1:3]] == [slower.cell, faster.cell]
    assert [line.split()[2:4] for line in lines[1:3]] == [["500", "ms"], ["500", "ms"]]
    assert [re.findall(r"\S+ (?:slower|faster)", line)[0] for line in lines[1:3]] == ["1.20x slower", "1.25x faster"]


def test_a_step_is_visible_in_the_chart() -> None:
    lines = [line.plain for line in chart([mark(1.0)] * 10 + [mark(1.1)] * 10, 60)]
    drawn = {number: line for number, line in enumerate(lines[:HEIGHT]) if "•" in line}
    (high, upper), (low, lower) = sorted(drawn.items())
    assert high < HEIGHT / 2 < low
    assert upper.count("•") == lower.count("•") == 10
    assert lower.rindex("•") < upper.index("•")


def test_noise_of_a_thousandth_looks_flat() -> None:
    lines = [line.plain for line in chart([mark(1.0), mark(1.001), mark(0.999)], 60)]
    assert sum("•" in line for line in lines) == 1
    assert len(set(sparkline([1.0, 1.001, 0.999], 10))) == 1


def test_the_axis_ends_above_zero() -> None:
    lines = [line.plain for line in chart([mark(0.3, low=0.01, high=9.0), mark(1.1, low=0.1, high=9.0)], 60)]
    assert float(lines[HEIGHT - 1].split()[0]) == pytest.approx(0.15)


def test_verdicts_have_marks_and_intervals_are_drawn() -> None:
    verdicts = ("slower", "faster", "same", "inconclusive")
    marks = [mark(1.0 + index / 100, low=0.99, high=1.05, verdict=name) for index, name in enumerate(verdicts)]
    text = "\n".join(line.plain for line in chart(marks, 60))
    assert all(text.count(character) == 1 for character in "▲▼●○")
    assert sum("│" in line[8:] for line in text.splitlines()) > 4


def test_more_points_than_columns_share_them_and_the_ends_stay() -> None:
    marks = [mark(1.0 + index / 1000, date=f"day {index:06}", release=f"2.{index // 100}") for index in range(500)]
    lines = [line.plain for line in chart(marks, 60)]
    assert max(map(len, lines)) <= 60
    assert lines[-2].split() == ["2.0", "2.1", "2.2", "2.3", "2.4"]
    assert lines[-1].split()[1] < "000010"
    assert lines[-1].split()[-1] > "000490"
    assert len(sparkline([mark.value for mark in marks], 20)) == 20
