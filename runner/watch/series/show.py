"""`runner history`: the trends of cells, as text, JSON or CSV."""

import csv
import io
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from runner.core.errors import NothingSelectedError, Problem, UsageError, file_problem
from runner.history.database import History
from runner.history.entries import SeriesPoint
from runner.history.location import sqlite_path
from runner.report.history_text import SHOWN, CellSeries, list_text, trend_text
from runner.store.samples import csv_text

LEVEL_FIELDS = ("run", "at", "reason", "person")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTrends:
    """What `runner history` shows.

    Attributes:
        pattern: what was asked for.
        trends: the series that match, by cell and device.
        last: how many points the table of a trend lists.
    """

    pattern: str
    trends: tuple[CellSeries, ...]
    last: int = SHOWN

    @property
    def is_one_cell(self) -> bool:
        """Whether all trends are of the same cell, on one or more devices."""
        return len({trend.cell for trend in self.trends}) == 1

    def text(self, width: int, *, colour: bool) -> str:
        """Return a chart and a table of a single cell, or a list of several."""
        if not self.is_one_cell:
            return list_text(self.trends, width, colour=colour)
        return "\n".join(trend_text(trend, width, colour=colour, shown=self.last) for trend in self.trends)

    def json(self) -> dict[str, Any]:
        """Return all points and accepted levels."""
        return {"version": 1, "pattern": self.pattern, "trends": [_trend_json(trend) for trend in self.trends]}

    def csv(self) -> str:
        """Return a row for each point of each trend."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("cell", *SeriesPoint._fields))
        writer.writerows(map(_csv_value, (trend.cell, *point)) for trend in self.trends for point in trend.points)
        return stream.getvalue()


def shown(history: History, pattern: str, *, device: str = "", last: int = SHOWN) -> ShownTrends:
    """Return the trends of the cells that match, without those that have never been measured.

    Args:
        history: an open history.
        pattern: an environment, the id of a cell, or a glob over ids of cells.
        device: only this device, as trends name it; empty for all.
        last: how many points the table of a trend lists.

    Raises:
        HistoryError: the history cannot be read.
        NothingSelectedError: no cell matches.
    """
    levels = history.levels(pattern)
    trends = tuple(
        CellSeries(cell=cell, device=of, points=points, levels=levels.get((cell, of), ()))
        for of, cell, points in history.all_series(pattern, device=device)
    )
    if not trends:
        raise NothingSelectedError(_nothing(history, pattern, device))
    return ShownTrends(
        pattern=pattern, trends=tuple(sorted(trends, key=lambda each: (each.cell, each.device))), last=last
    )


def existing(url: str) -> str:
    """Return the URL of a history that exists.

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
        raise UsageError(Problem(f"there is no history {path}", hint=hint))
    return url


def _nothing(history: History, pattern: str, device: str) -> Problem:
    names = history.cells()
    if not names:
        hint = "`runner history rebuild` adds the stored runs"
        return Problem(f"the history {history.name} is empty", hint=hint)
    devices = history.devices()
    if device and device not in devices:
        return Problem(f"the history has no device {device!r}", hint=f"it has {', '.join(devices)}")
    similar = get_close_matches(pattern, names, n=3, cutoff=0.3) or names[:3]
    hint = f"write the id of a cell, an environment, or a glob: the history has {', '.join(similar)}"
    return Problem(f"the history {history.name} has no cell {pattern!r}", hint=hint)


def _csv_value(value: object) -> object:
    return csv_text(value) if isinstance(value, str) else value


def _trend_json(trend: CellSeries) -> dict[str, Any]:
    return {
        "cell": trend.cell,
        "device": trend.device,
        "points": [point._asdict() for point in trend.points],
        "levels": [{name: getattr(level, name) for name in LEVEL_FIELDS} for level in trend.levels],
    }
