"""A static site over runs: an index, and the trends of each test over the runs that were measured alike."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from runner.core import units
from runner.report import wording
from runner.report.formatting import escape
from runner.report.page_templates import environment

MAX_TRENDS = 300
"""Trends that the page draws, those with the largest change from the first run to the last."""
WIDTH, HEIGHT = 300, 70

Summary = Mapping[str, Any]
"""The content of a run's ``summary.json``."""


class Trend(NamedTuple):
    """A test of an environment over runs that were measured alike.

    Attributes:
        cell: its id.
        runs: the ids of the runs, oldest first; ``seconds`` are its times in them.
    """

    cell: str
    runs: tuple[str, ...]
    seconds: tuple[float, ...]

    @property
    def last(self) -> str:
        """The newest time, and the oldest."""
        return f"{units.step_time(self.seconds[0])} → {units.step_time(self.seconds[-1])}"

    @property
    def change(self) -> float:
        """How far the newest time is from the oldest: the absolute logarithm of their quotient."""
        return abs(math.log(self.seconds[-1] / self.seconds[0]))


def site(summaries: Sequence[Summary]) -> dict[str, str]:
    """Return file name -> content of the pages of a site.

    Args:
        summaries: of the runs, newest first; each run has its page at ``runs/<run>/index.html``.
    """
    trends = trends_by_kind(summaries)
    names = environment()
    pictures = {"trend_picture": lambda trend: Markup(picture(trend))}  # noqa: S704  numbers only
    shown = {kind: of_kind[:MAX_TRENDS] for kind, of_kind in trends.items()}
    left_out = sum(map(len, trends.values())) - sum(map(len, shown.values()))
    return {
        "index.html": names.get_template("site.html.j2").render(
            summaries=summaries, counted_words=wording.counted_words, has_trends=bool(trends)
        ),
        "trends.html": names.get_template("trends.html.j2").render(trends=shown, left_out=left_out, **pictures),
    }


def trends_by_kind(summaries: Sequence[Summary]) -> dict[str, list[Trend]]:
    """Return the trends of the tests with two runs or more, by what the runs have alike; the largest change first."""
    series: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for summary in reversed(summaries):
        of_kind = series.setdefault(summary["alike"], {})
        for cell, (seconds, *_) in summary["cells"].items():
            of_kind.setdefault(cell, []).append((summary["run"], seconds))
    trends = {
        kind: sorted(
            (
                Trend(cell, tuple(run for run, _ in points), tuple(seconds for _, seconds in points))
                for cell, points in of_kind.items()
                if len(points) > 1
            ),
            key=lambda trend: -trend.change,
        )
        for kind, of_kind in series.items()
    }
    return {kind: of_kind for kind, of_kind in trends.items() if of_kind}


def picture(trend: Trend) -> str:
    """Return the line of a trend: runs across, in their order; the time of a step up, on a logarithmic axis."""
    low, high = min(trend.seconds), max(trend.seconds)
    span = math.log(high / low) or 1.0
    step = (WIDTH - 20) / (len(trend.seconds) - 1)
    points = [
        f"{10 + index * step:.0f} {HEIGHT - 10 - math.log(seconds / low) / span * (HEIGHT - 20):.0f}"
        for index, seconds in enumerate(trend.seconds)
    ]
    label = f"{trend.cell} over {len(trend.runs)} runs, {units.step_time(low)} to {units.step_time(high)}"
    return (
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'<path class="trend" d="M{"L".join(points)}"/></svg>'
    )
