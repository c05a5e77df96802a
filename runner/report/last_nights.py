"""The last nights of each device, for the top of the site: the newest in words, and all of them as a strip."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from runner.core.grouping import grouped
from runner.history.entries import ChangeEntry, RunRow, series_device
from runner.report.formatting import counted
from runner.report.night_changes import night_changes
from runner.report.trends import device_title, instant

MAX_NIGHTS = 60
"""Nights of a strip."""


class ShownNight(NamedTuple):
    """A night.

    Attributes:
        text: when it was, how many tests it measured, and what changed.
        has_regressions: whether it confirmed one; not whether an earlier one still stands.
        page: its address in the site; empty without one.
    """

    text: str
    has_regressions: bool
    page: str


class LastNights(NamedTuple):
    """The newest nights of a device, oldest first, at least one."""

    device: str
    nights: tuple[ShownNight, ...]

    @property
    def last(self) -> ShownNight:
        """The newest night."""
        return self.nights[-1]


def newest_nights(rows: Iterable[RunRow]) -> dict[str, list[RunRow]]:
    """Return device with its host -> its newest nights, oldest first, of runs of the history, by their names."""
    nights = sorted((row for row in rows if row.is_night), key=lambda row: instant(row.at))
    by_device = grouped((device_title(series_device(row.backend, row.device_name), row.host), row) for row in nights)
    return {device: of_device[-MAX_NIGHTS:] for device, of_device in sorted(by_device.items())}


def last_nights(
    nights: Mapping[str, Sequence[RunRow]],
    pages: Mapping[str, str],
    changes_of: Callable[[str], Iterable[ChangeEntry]],
) -> list[LastNights]:
    """Return the newest nights of each device as the site shows them.

    Args:
        nights: of ``newest_nights``.
        pages: run -> its address in the site, if it has a page.
        changes_of: returns the changes of a night.
    """
    return [
        LastNights(device, tuple(_shown(row, pages, changes_of) for row in of_device))
        for device, of_device in nights.items()
    ]


def _shown(row: RunRow, pages: Mapping[str, str], changes_of: Callable[[str], Iterable[ChangeEntry]]) -> ShownNight:
    changed = night_changes(row.run, changes_of(row.run) if row.changes else ())
    text = f"{night_title(row)}: {counted(row.cells, 'test')}, {changed.text()}"
    return ShownNight(text, bool(changed.confirmed), pages.get(row.run, ""))


def night_title(row: RunRow) -> str:
    """Return when a night was, ``2026-09-04 02:30``."""
    return f"{instant(row.at):%Y-%m-%d %H:%M}"
