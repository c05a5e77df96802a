"""Bar charts of a publication, one of the releases of each framework and one of the frameworks, with those of a run.

Braun 2018 draws its table 4 like this. Published bars and measured bars have axes of their own, because they are times
of different devices; both axes are linear and begin at 0.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from packaging.version import Version

from runner.analysis.releases import EnvironmentRelease, framework_name
from runner.catalog.published import PHASE_SUFFIX, Figure
from runner.core import units
from runner.core.model.cells import is_control
from runner.core.units import MILLISECONDS, SECONDS
from runner.matrix.select import release_key
from runner.report.formatting import few
from runner.report.times import Line

WIDTH, HEIGHT = 200, 14
"""Units of the longest bar and of a row."""
AS_PRINTED = {"ms/batch": MILLISECONDS, "ms": MILLISECONDS, "s": SECONDS}
"""Published units of a step; figures in them are shown as printed, others are converted to the time of a step."""
MIN_BARS = 2
"""Published bars from which there is a chart."""
MAX_BARS = 40
"""Published bars up to which there is a chart; more are easier to read in the tables."""


class Bar(NamedTuple):
    """The time of one implementation.

    Attributes:
        framework: as in matrix.yaml, with its ``version``.
        release: both as text.
        name: the implementation, as its source calls it.
        seconds: the time of a step; ``low`` and ``high`` are the ends of its interval, None without one.
        shown: the time with its unit, as printed in the publication.
        device: what it was measured on.
        environment: the environment that was measured; empty for a published time.
    """

    framework: str
    version: str
    release: str
    name: str
    seconds: float
    low: float | None
    high: float | None
    shown: str
    device: str
    environment: str = ""


class BarChart(NamedTuple):
    """The times of one case and phase: published bars, and measured bars next to them.

    Attributes:
        title: what the bars have in common, such as ``PyTorch, train``.
        measured: empty if the run has measured none of these frameworks.
    """

    title: str
    published: Sequence[Bar]
    measured: Sequence[Bar]

    @property
    def published_on(self) -> str:
        """The devices of the published bars."""
        return few(list(dict.fromkeys(bar.device for bar in self.published)))

    @property
    def measured_on(self) -> str:
        """The devices of the measured bars."""
        return few(list(dict.fromkeys(bar.device for bar in self.measured)))


def bar_charts(
    published: Sequence[Figure],
    lines: Sequence[Line],
    releases: Mapping[str, EnvironmentRelease],
    devices: Mapping[str, str],
) -> tuple[BarChart, ...]:
    """Return the charts of a case: the releases of each framework that has several, then all frameworks.

    Args:
        published: the figures of the case.
        lines: the measured times of the case, in the phases of the figures.
        releases: measured environment -> its release.
        devices: measured environment -> the name of its device.
    """
    charts = []
    for phase in dict.fromkeys(figure.phase for figure in published):
        of_source = [_published(each) for each in published if each.phase == phase and each.precision == "fp32"]
        measured = [
            _measured(line, releases[line.environment], devices[line.environment])
            for line in lines
            if line.environment in releases and not is_control(line.environment)
            if line.phase.removesuffix(PHASE_SUFFIX) == phase and line.precision == "fp32"
        ]
        frameworks = dict.fromkeys(bar.framework for bar in of_source)
        for framework in frameworks:
            bars = [bar for bar in of_source if bar.framework == framework]
            if len({bar.version for bar in bars}) > 1:
                shown = [bar for bar in measured if bar.framework == framework]
                charts.append(BarChart(f"{framework_name(framework)}, {phase}", bars, shown))
        if len(frameworks) > 1:
            shown = [bar for bar in measured if bar.framework in frameworks]
            charts.append(
                BarChart(f"frameworks, the newest release of each, {phase}", _newest(of_source), _newest(shown))
            )
    return tuple(chart for chart in charts if MIN_BARS <= len(chart.published) <= MAX_BARS)


def picture(bar: Bar, longest: float, css_class: str = "") -> str:
    """Return a bar with its interval as SVG: hollow if it is published, else in the colour of its release.

    Args:
        bar: the bar.
        longest: seconds at the right end of the axis, which begins at 0.
        css_class: the class of its colour in the style sheet.
    """
    width = bar.seconds / longest * WIDTH
    kind = f'class="{css_class}"' if bar.environment else 'class="hollow"'
    marks = f'<rect {kind} x="0.5" y="1.5" width="{max(width - 0.5, 0.5):.1f}" height="{HEIGHT - 3}"/>'
    if bar.low is not None and bar.high is not None:
        left, right = (min(max(end / longest, 0.0), 1.0) * WIDTH for end in (bar.low, bar.high))
        marks += f'<path class="whisker" d="M{left:.1f} {HEIGHT / 2:g}H{right:.1f}"/>'
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none"'
    return f'<svg class="bar" {box} aria-hidden="true">{marks}</svg>'


def longest(bars: Sequence[Bar]) -> float:
    """Return the right end of an axis that holds the bars and their intervals, in seconds."""
    return max(max(bar.seconds, bar.high or 0.0) for bar in bars)


def _newest(bars: Sequence[Bar]) -> list[Bar]:
    """Return the bars of the newest release of each framework."""
    newest: dict[str, str] = {}
    for bar in bars:
        newest[bar.framework] = max(newest.get(bar.framework, bar.version), bar.version, key=_version)
    return [bar for bar in bars if newest[bar.framework] == bar.version]


def _version(release: str) -> Version:
    """Return the version at the start of a text such as ``1.0.1, Lasagne 0.2.1dev``; ``2.x`` is after all ``2.1``."""
    return release_key(release.partition(",")[0].replace(".x", ".*")) or Version("0")


def printed(figure: Figure) -> str:
    """Return a figure as it was printed, or the time of a step if it was printed as something else."""
    unit = AS_PRINTED.get(figure.unit)
    return units.step_time(figure.seconds) if unit is None else f"{figure.value} {unit.name}"


def _published(figure: Figure) -> Bar:
    low, high = (None, None)
    if figure.spread is not None:
        low, high = figure.seconds - figure.spread, figure.seconds + figure.spread
    release = f"{framework_name(figure.framework)} {figure.release}"
    if figure.framework == "keras":  # two of its environments have the same release
        release += f" ({figure.environment})"
    return Bar(
        figure.framework,
        figure.release,
        release,
        figure.name,
        figure.seconds,
        low,
        high,
        printed(figure),
        figure.device,
    )


def _measured(line: Line, release: EnvironmentRelease, device: str) -> Bar:
    return Bar(
        release.framework,
        release.version,
        release.name,
        line.implementation,
        line.seconds,
        line.low,
        line.high,
        units.step_time(line.seconds),
        device,
        line.environment,
    )
