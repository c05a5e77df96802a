"""A static site over the history: what changed, the trend of each cell by device, and the page of each run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from runner.core.grouping import grouped
from runner.core.metrics import BY_NAME
from runner.core.model.cells import environment_of
from runner.report import wording
from runner.report.formatting import counted, date
from runner.report.last_nights import LastNights
from runner.report.page_templates import environment
from runner.report.run_summary import RunSummary
from runner.report.trend_charts import TrendChart, chart, spark
from runner.report.trend_rows import TrendRow, Week, is_within, row_of
from runner.report.trends import FOLDER, Trend, device_title
from runner.stats.intervals import MARGIN

PAGE_ROWS = 500
"""Cells on a page of a device; more go to further pages."""
MAX_RUNS = 500
"""Runs that the index lists, the newest ones."""
MAX_LISTED = 50
"""Changes of a kind that the index lists."""
MAX_RELEASES = 100
"""Releases that the page of a cell lists, the newest ones."""
LISTED_POINTS = 30
"""Points that the table of a trend lists, the newest ones."""


def site(
    trends: Iterable[Trend],
    summaries: Sequence[RunSummary],
    newest: datetime | None,
    margin: float = MARGIN,
    nights: Sequence[LastNights] = (),
    pages: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[str, str]]:
    """Yield file name and content of each page: those of the cells, then those of the devices, and the index last.

    Args:
        trends: of the history, in any order; each is drawn and forgotten.
        summaries: of the runs, newest first; each run has its page at ``runs/<run>/index.html``.
        newest: when the newest run of the history started; None without a run.
        margin: the relative change that counts as none.
        nights: the newest of each device.
        pages: run -> its address in the site, of those that have a page.
    """
    rows: list[TrendRow] = []
    week = Week.before(newest, margin) if newest else None
    for trend in trends:
        row = row_of(trend)
        rows.append(row)
        if week:
            week.add(trend, row)
        yield f"{FOLDER}/{row.page}", _page("trend", **_trend_content(trend, pages))
    rows.sort(key=lambda row: row.rank)
    by_device = grouped((row.device_page, row) for row in rows)
    for of_device in by_device.values():
        yield from _device_pages(of_device, margin)
    yield (
        "index.html",
        _page(
            "site",
            summaries=summaries[:MAX_RUNS],
            more_runs=max(len(summaries) - MAX_RUNS, 0),
            counted_words=wording.counted_words,
            devices=sorted(by_device.values(), key=lambda of_device: of_device[0].device),
            cells=sum(row.is_of_times for row in rows),
            regressions=[row for row in rows if row.regression],
            week=week,
            listed=MAX_LISTED,
            folder=FOLDER,
            nights=nights,
            night_date=date,
        ),
    )


def _page(template_name: str, **content: object) -> str:
    template = environment().get_template(f"{template_name}.html.j2")
    shared = {"change_text": wording.change, "change_range": wording.change_range, "counted_number": counted}
    return template.render(**content, **shared, spark=spark)


def _trend_content(trend: Trend, pages: Mapping[str, str]) -> dict[str, Any]:
    of_runs = {run: f"../{address}" for run, address in pages.items()}
    releases = trend.releases[-MAX_RELEASES:]
    following = [index for index, _ in releases[1:]] + [len(trend.points)]
    bases = list(dict.fromkeys(environment_of(point.base) for point in trend.points if point.base))
    charts: list[TrendChart] = [chart(trend, "ratio", of_runs)] if any(point.ratio for point in trend.points) else []
    return {
        "trend": trend,
        "of_runs": of_runs,
        "metric": BY_NAME[trend.metric],
        "device": device_title(trend.device, trend.host),
        "charts": [*charts, chart(trend, "seconds", of_runs)],
        "bases": bases,
        "releases": [
            (name, trend.points[start], stop - start)
            for (start, name), stop in reversed(list(zip(releases, following, strict=True)))
        ],
        "points": trend.points[: -LISTED_POINTS - 1 : -1],
        "bounds": [  # the last point of each part that was measured alike, and the first of the next
            (trend.points[before[-1]], trend.points[after[0]]) for before, after in pairwise(trend.segments)
        ],
    }


def _device_pages(rows: Sequence[TrendRow], margin: float) -> Iterator[tuple[str, str]]:
    stem = rows[0].device_page.removesuffix(".html")
    parts = [rows[start : start + PAGE_ROWS] for start in range(0, len(rows), PAGE_ROWS)]
    names = [rows[0].device_page, *(f"{stem}-{number}.html" for number in range(2, len(parts) + 1))]
    for name, part in zip(names, parts, strict=True):
        shown = [(row, is_within(row.change, margin)) for row in part]
        total = sum(row.is_of_times for row in rows)
        content = _page("trends", device=rows[0].device, rows=shown, pages=names, name=name, total=total)
        yield f"{FOLDER}/{name}", content
