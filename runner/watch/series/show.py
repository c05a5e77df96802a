"""`runner history`: the trends of cells, as text, JSON or CSV."""

import csv
import io
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from runner.core.errors import NothingSelectedError, Problem, UsageError, file_problem
from runner.core.grouping import grouped
from runner.core.metrics import BY_NAME, TIME
from runner.core.model.cells import environment_of
from runner.history.database import History
from runner.history.entries import SeriesPoint
from runner.history.location import sqlite_path
from runner.matrix import load
from runner.releases.named import id_of, with_id
from runner.report.history_text import SHOWN, CellSeries, list_text, trend_text
from runner.store.samples import csv_text

LEVEL_FIELDS = ("run", "at", "reason", "person")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTrends:
    """What `runner history` shows.

    Attributes:
        pattern: what was asked for.
        trends: the series that match, by metric, cell and device.
        last: how many points the table of a trend lists.
    """

    pattern: str
    trends: tuple[CellSeries, ...]
    last: int = SHOWN

    @property
    def is_one_cell(self) -> bool:
        """Whether all trends are of the same cell, on one or more devices."""
        return len({(trend.cell, trend.metric) for trend in self.trends}) == 1

    def text(self, width: int, *, colour: bool) -> str:
        """Return a chart and a table of a single cell, or a list of several."""
        if not self.is_one_cell:
            by_metric = grouped((trend.metric, trend) for trend in self.trends)
            lists = {name: list_text(trends, width, colour=colour) for name, trends in by_metric.items()}
            if len(lists) == 1:
                return "".join(lists.values())
            return "\n".join(f"{BY_NAME[name].title}\n{text}" for name, text in lists.items())
        return "\n".join(trend_text(trend, width, colour=colour, shown=self.last) for trend in self.trends)

    def json(self) -> dict[str, Any]:
        """Return all points and accepted levels."""
        return {"version": 1, "pattern": self.pattern, "trends": [_trend_json(trend) for trend in self.trends]}

    def csv(self) -> str:
        """Return a row for each point of each trend; ``seconds`` are ``value`` unless all are times."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        if {trend.metric for trend in self.trends} == {TIME}:
            writer.writerow(("cell", *SeriesPoint._fields))
            writer.writerows(map(_csv_value, (trend.cell, *point)) for trend in self.trends for point in trend.points)
        else:
            writer.writerow(("cell", "metric", "unit", *map(_value_name, SeriesPoint._fields)))
            writer.writerows(
                map(_csv_value, (trend.cell, trend.metric, BY_NAME[trend.metric].unit, *point))
                for trend in self.trends
                for point in trend.points
            )
        return stream.getvalue()


def shown(
    history: History,
    pattern: str,
    *,
    device: str = "",
    last: int = SHOWN,
    metrics: Sequence[str] = (TIME,),
    typed: str = "",
) -> ShownTrends:
    """Return the trends of the cells that match, without those that have never been measured.

    Args:
        history: an open history.
        pattern: an environment, the id of a cell, or a glob over ids of cells.
        device: only this device, as trends name it; empty for all.
        last: how many points the table of a trend lists.
        metrics: the names of the metrics, at least one.
        typed: the pattern as it was typed, where that is not an id: ``torch==2.9.1``.

    Raises:
        HistoryError: the history cannot be read.
        NothingSelectedError: no cell matches.
    """
    levels = history.levels(pattern)
    trends = [
        CellSeries(cell=cell, device=of, points=points, levels=levels.get((cell, of), ()), metric=metric)
        for metric in metrics
        for of, cell, points in history.all_series(_pattern_of(metric, pattern), device=device, metric=metric)
    ]
    if not trends:
        raise NothingSelectedError(_nothing(history, pattern, device, metrics[0], typed or pattern))
    trends.sort(key=lambda each: (metrics.index(each.metric), each.cell, each.device))
    return ShownTrends(pattern=pattern, trends=tuple(trends), last=last)


def _pattern_of(metric: str, pattern: str) -> str:
    """Return a pattern for the cells of a metric: one of environments has none of their cells."""
    of_environments = BY_NAME[metric].scope == "environment" and "/" in pattern
    return f"{environment_of(pattern)}/*" if of_environments else pattern


def with_release_id(selector: str, matrix: Path) -> str:
    """Return a selector with the id of the release that it names; the matrix file, where it exists, may have that."""
    is_release = id_of(selector, None) is not None
    return with_id(selector, load(matrix, networks=False) if is_release and matrix.exists() else None)


def existing(url: str, release: str = "") -> str:
    """Return the URL of a history that exists.

    Args:
        url: the URL.
        release: the selector of the release whose history is to be shown; empty for that of an id.

    Raises:
        UsageError: it is a file that does not exist, or in a folder that cannot be looked into.
    """
    path: Path | None = sqlite_path(url)
    try:
        is_missing = path is not None and not path.exists()
    except OSError as error:
        raise UsageError(file_problem(error, path, "read")) from error
    if is_missing:
        hint = "`runner history rebuild` makes it of the stored runs; every `runner run` adds to it"
        if release:
            hint = f"{_measures(release)}; `runner history rebuild` adds the runs that are kept"
            raise UsageError(Problem(f"no run in a history has measured {release}: there is no {path}", hint=hint))
        raise UsageError(Problem(f"there is no history {path}", hint=hint))
    return url


def _nothing(history: History, pattern: str, device: str, metric: str, typed: str) -> Problem:
    names = history.cells(metric=metric)
    if not names and metric != TIME:
        hint = "`runner history rebuild` adds the metrics of the stored runs"
        return Problem(f"the history {history.name} has no {BY_NAME[metric].title}", hint=hint)
    if not names:
        hint = "`runner history rebuild` adds the stored runs"
        return Problem(f"the history {history.name} is empty", hint=hint)
    devices = history.devices()
    if device and device not in devices:
        return Problem(f"the history has no device {device!r}", hint=f"it has {', '.join(devices)}")
    if typed != pattern:
        return Problem(f"the history {history.name} has no test of {typed}", hint=_measures(typed))
    similar = get_close_matches(pattern, names, n=3, cutoff=0.3) or names[:3]
    hint = f"write the id of a test, an environment, or a glob: the history has {', '.join(similar)}"
    return Problem(f"the history {history.name} has no test {pattern!r}", hint=hint)


def _measures(selector: str) -> str:
    """Return the command that measures a release."""
    return f"`{shlex.join(['runner', 'run', selector])}` measures it"


def _csv_value(value: object) -> object:
    return csv_text(value) if isinstance(value, str) else value


def _value_name(field: str) -> str:
    """Return the name of a field of a point that is not about time: ``value`` for ``seconds``."""
    return field.replace("seconds", "value")


def _trend_json(trend: CellSeries) -> dict[str, Any]:
    is_time = trend.metric == TIME
    of_metric = {} if is_time else {"metric": trend.metric, "unit": BY_NAME[trend.metric].unit}
    rename = str if is_time else _value_name
    return {
        "cell": trend.cell,
        **of_metric,
        "device": trend.device,
        "points": [{rename(name): value for name, value in point._asdict().items()} for point in trend.points],
        "levels": [{name: getattr(level, name) for name in LEVEL_FIELDS} for level in trend.levels],
    }
