"""The last nights of each device, for the top of the site: the newest in words, and all of them as a strip."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from runner.core.grouping import grouped
from runner.history.entries import RunRow, series_device
from runner.report.formatting import counted
from runner.report.trends import device_title, instant

MAX_NIGHTS = 60
"""Nights of a strip."""


class ShownNight(NamedTuple):
    """A night: when it was, how many tests and changes it had, in words, and the page of its run; empty without one."""

    text: str
    has_changes: bool
    page: str


class LastNights(NamedTuple):
    """The newest nights of a device, oldest first, at least one."""

    device: str
    nights: tuple[ShownNight, ...]

    @property
    def last(self) -> ShownNight:
        """The newest night."""
        return self.nights[-1]


def last_nights(rows: Iterable[RunRow], stored: Collection[str]) -> list[LastNights]:
    """Return the newest nights of each device and host, by their names.

    Args:
        rows: runs of the history; those that are no nights do not count.
        stored: the runs that have a page.
    """
    nights = sorted((row for row in rows if row.kind == "night"), key=lambda row: instant(row.at))
    by_device = grouped((device_title(series_device(row.backend, row.device_name), row.host), row) for row in nights)
    return [
        LastNights(device, tuple(_shown(row, stored) for row in of_device[-MAX_NIGHTS:]))
        for device, of_device in sorted(by_device.items())
    ]


def _shown(row: RunRow, stored: Collection[str]) -> ShownNight:
    changes = counted(row.changes, "change") if row.changes else "no change"
    text = f"{instant(row.at):%Y-%m-%d %H:%M}: {counted(row.cells, 'test')}, {changes}"
    return ShownNight(text, row.changes > 0, f"runs/{row.run}/index.html" if row.run in stored else "")
