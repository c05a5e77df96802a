"""Versions over time: for each test and API, the time of its releases by their dates, with published figures."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import groupby, pairwise

from runner.analysis.releases import EnvironmentRelease, framework_name
from runner.catalog.cases import CASES
from runner.catalog.published import PHASE_SUFFIX, SOURCES, figures
from runner.catalog.release_dates import release_date
from runner.core import units
from runner.core.model.cells import is_control
from runner.report.compared_rows import description
from runner.report.formatting import escape
from runner.report.times import Case, Line

MIN_RELEASES = 3
"""Releases of an API, measured or published, from which there is a line: two are a comparison."""
WIDTH, HEIGHT = 300, 120
LEFT, RIGHT, TOP, BOTTOM = 52, 288, 12, 92
"""Ends of the axes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePoint:
    """The time of a release.

    Attributes:
        day: when the release came out.
        release: its version.
        seconds: the time of a step; ``low`` and ``high`` are the ends of its 95 % interval, None without one.
        published: the source of a published figure and its device; empty for a measured time.
        environment: the environment that was measured; empty for a published figure.
    """

    day: date
    release: str
    seconds: float
    low: float | None = None
    high: float | None = None
    published: str = ""
    environment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The releases of one API in one test, by date."""

    test: str
    api: str
    framework: str
    description: str
    points: tuple[TimelinePoint, ...]

    @property
    def years(self) -> str:
        """The first and the last date."""
        return f"{self.points[0].day:%Y-%m} to {self.points[-1].day:%Y-%m}"


def timelines(cases: Iterable[Case], releases: Mapping[str, EnvironmentRelease]) -> list[Timeline]:
    """Return a timeline for each test and API with three releases or more that have a date; the longest first.

    Args:
        cases: the measured times of a run.
        releases: environment -> its release.
    """
    lines = []
    for case in cases:
        groups: dict[tuple[str, str, str], list[Line]] = {}
        for line in case.lines:
            release = releases.get(line.environment)
            if release and not is_control(line.environment) and not line.phase.startswith("compile"):
                family = framework_name(release.framework)
                family += f" on {release.backend.partition(' ')[0]}" if release.backend else ""
                groups.setdefault((line.label, line.implementation, family), []).append(line)
        for (label, api, family), group in groups.items():
            framework = releases[group[0].environment].framework
            measured = [point for line in group if (point := _measured(line, releases[line.environment]))]
            known = _published(case.name, group[0], framework) if measured else []
            points = sorted([*measured, *known], key=lambda point: (point.day, point.published))
            if len({point.day for point in points}) >= MIN_RELEASES:
                lines.append(
                    Timeline(
                        test=f"{case.name} {label}",
                        api=api,
                        framework=family,
                        description=", ".join(filter(None, (description(case.name), case.device_name))),
                        points=tuple(points),
                    )
                )
    return sorted(lines, key=lambda line: -len(line.points))


def _measured(line: Line, release: EnvironmentRelease) -> TimelinePoint | None:
    known = release_date(release.framework, release.version)
    if known is None:
        return None
    return TimelinePoint(
        day=known.day,
        release=release.version,
        seconds=line.seconds,
        low=line.low,
        high=line.high,
        environment=line.environment,
    )


def _published(case_id: str, line: Line, framework: str) -> list[TimelinePoint]:
    """Return the published figures of the same test and API, whatever their device."""
    if case_id not in CASES:
        return []
    points = []
    phase = line.phase.removesuffix(PHASE_SUFFIX)
    for figure in figures():
        same = (figure.case, figure.phase, figure.precision) == (case_id, phase, line.precision)
        if same and figure.framework == framework and figure.implementation == line.implementation:
            known = release_date(figure.framework, figure.release)
            if known:
                where = f"{SOURCES[figure.source].citation}, on {figure.device}"
                points.append(
                    TimelinePoint(day=known.day, release=figure.release, seconds=figure.seconds, published=where)
                )
    return points


def picture(line: Timeline) -> str:
    """Return the drawing: dates across, the time of a step up on a logarithmic axis; published figures are hollow."""
    days = [point.day.toordinal() for point in line.points]
    ends = [value for point in line.points for value in (point.seconds, point.low, point.high) if value]
    low, high = min(ends) / 1.15, max(ends) * 1.15
    unit = units.time_unit([min(ends)])

    def x(day: date) -> float:
        return LEFT + 10 + (day.toordinal() - days[0]) / max(days[-1] - days[0], 1) * (RIGHT - LEFT - 30)

    def y(seconds: float) -> float:
        return BOTTOM - math.log(seconds / low) / math.log(high / low) * (BOTTOM - TOP)

    times = [point.seconds for point in line.points]
    first_of_days = {day: next(points) for day, points in groupby(line.points, key=lambda point: point.day)}
    measured = [point for point in line.points if not point.published]
    parts = [f'<path class="one" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>']
    parts += [
        f'<text class="e" x="{LEFT - 4}" y="{y(value) + 3:.0f}">{escape(units.step_time(value, unit))}</text>'
        for value in sorted({min(times), max(times)})
    ]
    corners = [f"{x(point.day):.0f} {y(point.seconds):.0f}" for point in measured]
    parts += [f'<path class="grid" d="M{first}L{second}"/>' for first, second in pairwise(corners)]
    parts += [_mark(point, x(point.day), y) for point in line.points]
    parts += [
        f'<text x="{x(point.day):.0f}" y="{BOTTOM + 12 + 11 * (index % 2)}">{escape(point.release)}</text>'
        for index, point in enumerate(first_of_days.values())
    ]
    label = f"time of {line.api} in {line.test} by release, {line.years}, logarithmic"
    return (
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _mark(point: TimelinePoint, x: float, y: Callable[[float], float]) -> str:
    title = f"{point.release}, {point.day:%Y-%m}: {units.step_time(point.seconds)}"
    title += f", published: {point.published}" if point.published else ""
    bar = f'<path class="i" d="M{x:.0f} {y(point.low):.0f}V{y(point.high):.0f}"/>' if point.low and point.high else ""
    kind = "" if point.published else ' class="same"'
    return (
        f'{bar}<circle{kind} cx="{x:.0f}" cy="{y(point.seconds):.0f}" r="3.5"><title>{escape(title)}</title></circle>'
    )
