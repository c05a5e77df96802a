"""The page of a night of which only the history is left: what it decided, and its tests against their bases.

The plot of its tests is that of the page of a run, as far as the history knows them: it has no samples, no warnings,
and no facts about environments.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from runner.analysis.comparison_model import VERDICTS, Comparison, Row
from runner.analysis.releases import EnvironmentRelease
from runner.core.grouping import grouped
from runner.core.metrics import BETTER, BY_NAME, Metric
from runner.core.model import Cell
from runner.core.model.cells import environment_of
from runner.core.row_ids import row_title
from runner.history.entries import ChangeEntry, RunRow, SeriesPoint, series_device
from runner.report import formatting, wording
from runner.report.answer import answer
from runner.report.compared_rows import compared_rows
from runner.report.html import drawn
from runner.report.last_nights import night_title
from runner.report.night_changes import night_changes
from runner.report.page_templates import template
from runner.report.trends import FOLDER as TRENDS
from runner.report.trends import device_title, page_name, trend_page

FOLDER = "nights"
"""The folder of these pages in the site."""
NOT_KEPT = (
    "The details of this nightly run, such as samples, logs and environments, are {}. This page shows what the history "
    "has of it."
)


class Links(NamedTuple):
    """Where the page can lead to: ``pages`` are run -> address in the site, ``trends`` the names of their pages."""

    pages: Mapping[str, str]
    trends: Collection[str]

    def trend(self, series: str, device: str, host: str) -> str:
        """Return the address of a trend as seen from the page of a night; empty without a page."""
        name = trend_page(series, device, host)
        return f"../{TRENDS}/{name}" if name in self.trends else ""

    def run(self, run: str) -> str:
        """Return the address of a run as seen from the page of a night; empty without a page."""
        return f"../{self.pages[run]}" if run in self.pages else ""


class DecidedChange(NamedTuple):
    """A change that the night decided: addresses of its trend and of the run before, and when it was confirmed."""

    change: ChangeEntry
    title: str
    metric: Metric
    word: str
    trend: str
    before: str
    confirmed: str


class MeasuredAlone(NamedTuple):
    """A test without a base: its release, its id, its time, and the address of its trend."""

    release: str
    test: str
    time: str
    trend: str


def night_address(run: str) -> str:
    """Return the address of the page of a night in the site."""
    return f"{FOLDER}/{page_name(run, run)}"


def night_page(
    night: RunRow, points: Mapping[str, SeriesPoint], changes: Iterable[ChangeEntry], margin: float, links: Links
) -> str:
    """Return the page of a night.

    Args:
        night: its run.
        points: id of a cell -> its time in this night.
        changes: all that the night looked at.
        margin: the relative change that counts as none.
        links: the pages of the site.
    """
    changes = tuple(changes)
    releases = _releases(points)
    comparisons = _comparisons(points, releases, margin)
    rows = compared_rows(comparisons, releases)
    plots = drawn(rows, comparisons, answer(comparisons, releases, None, ""), releases)
    device = series_device(night.backend, night.device_name)
    tests = formatting.counted(night.cells, "test")
    return template("night.html.j2", releases, plots["axis_scale"], {}, {}).render(
        title=f"Night of {night_title(night)} UTC",
        night=night,
        summary=f"{tests}, {night_changes(night.run, changes).text()}",
        device=device_title(device, night.host),
        note=NOT_KEPT.format("not kept here" if night.kind == "import" else "no longer kept"),
        changes=[_decided(change, device, night.host, links) for change in changes if _is_decided(change)],
        rows=rows,
        alone=_alone(points, releases, links),
        margin=margin,
        change_text=wording.change,
        change_range=wording.change_range,
        **plots,
    )


def _releases(points: Mapping[str, SeriesPoint]) -> dict[str, EnvironmentRelease]:
    """Return environment -> its release, called by both: the history does not have the name of its framework."""
    versions = {environment_of(point.base): point.base_release for point in points.values() if point.base}
    versions |= {environment_of(cell): point.release for cell, point in points.items()}
    names = {name: name if version in name else f"{name} {version}" for name, version in versions.items()}
    return {
        name: EnvironmentRelease(
            environment=name, framework="", version=version, backend="", name=names[name], short=names[name]
        )
        for name, version in sorted(versions.items())
    }


def _comparisons(
    points: Mapping[str, SeriesPoint], releases: Mapping[str, EnvironmentRelease], margin: float
) -> list[Comparison]:
    """Return the tests with a base, by the environment of the base."""
    by_base = grouped((environment_of(point.base), cell) for cell, point in points.items() if point.base)
    comparisons = []
    for base, cells in by_base.items():
        device = points[cells[0]].device
        others = tuple(dict.fromkeys(map(environment_of, cells)))
        rows = tuple(_row(cell, points) for cell in cells)
        comparisons.append(
            Comparison(
                base=base,
                others=others,
                device=device,
                device_name=device,
                rows=rows,
                margin=margin,
                releases=releases,
            )
        )
    return comparisons


def _row(cell: str, points: Mapping[str, SeriesPoint]) -> Row:
    point = points[cell]
    return Row(
        base=Cell.parse(point.base),
        other=Cell.parse(cell),
        base_seconds=points[point.base].seconds if point.base in points else None,
        seconds=point.seconds,
        ratio=point.ratio,
        ratio_low=point.ratio_low,
        ratio_high=point.ratio_high,
        rounds=point.rounds,
        verdict=point.verdict if point.verdict in VERDICTS else "inconclusive",
        runs=(point.run,),
        device_name=point.device,
    )


def _alone(
    points: Mapping[str, SeriesPoint], releases: Mapping[str, EnvironmentRelease], links: Links
) -> list[MeasuredAlone]:
    """Return the tests without a base that are the base of none."""
    bases = {point.base for point in points.values()}
    return [
        MeasuredAlone(
            release=releases[environment_of(cell)].name,
            test=cell,
            time=formatting.step_time(point.seconds),
            trend=links.trend(cell, point.device, point.host),
        )
        for cell, point in sorted(points.items())
        if not point.base and cell not in bases
    ]


def _is_decided(change: ChangeEntry) -> bool:
    return bool(change.confirmed_in) or change.verdict in BETTER


def _decided(change: ChangeEntry, device: str, host: str, links: Links) -> DecidedChange:
    return DecidedChange(
        change=change,
        title=row_title(change.cell, change.metric),
        metric=BY_NAME[change.metric],
        word="slower" if change.confirmed_in else "faster",
        trend=links.trend(change.series, device, host),
        before=links.run(change.before),
        confirmed=formatting.date(change.confirmed_in) or change.confirmed_in,
    )
